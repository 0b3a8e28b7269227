"""A freely rotating frame, by a quaternion: SymPy has no joint of this kind."""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sm
from sympy.physics.mechanics import ReferenceFrame
from sympy.physics.vector import dynamicsymbols


def orient_by_quaternion(
    frame: ReferenceFrame, parent: ReferenceFrame, quaternion: Sequence[sm.Expr], speeds: Sequence[sm.Expr]
) -> list[sm.Expr]:
    """Orient a frame by a quaternion; the speeds are the components of its angular velocity along its own axes.

    Args:
        frame: Is oriented in ``parent`` and gets its angular velocity in it.
        parent: Any frame.
        quaternion: Coordinates (w, x, y, z), functions of time; start them at unit length, (1, 0, 0, 0) for parallel
            axes. Their length is stabilized at 1 in the equations of motion.
        speeds: Angular velocity in rad/s along ``frame.x``, ``frame.y``, ``frame.z``.

    Returns:
        The four kinematic equations, expressions that vanish.

    Example:
        >>> import sympy.physics.mechanics as me, mb2fmu
        >>> N, A = me.ReferenceFrame("N"), me.ReferenceFrame("A")
        >>> e, w = me.dynamicsymbols("e:4"), me.dynamicsymbols("w:3")
        >>> len(mb2fmu.orient_by_quaternion(A, N, e, w))
        4
    """
    w, x, y, z = quaternion
    p, q, r = speeds
    frame.orient_quaternion(parent, (w, x, y, z))
    frame.set_ang_vel(parent, p * frame.x + q * frame.y + r * frame.z)
    rates = (-x * p - y * q - z * r, w * p + y * r - z * q, w * q + z * p - x * r, w * r + x * q - y * p)
    return [e.diff(dynamicsymbols._t) - rate / 2 for e, rate in zip((w, x, y, z), rates, strict=True)]  # noqa: SLF001
