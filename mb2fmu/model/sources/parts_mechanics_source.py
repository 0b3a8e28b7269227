"""Parts: the mechanics source for users who have neither a ``System`` nor a method object."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sm
from sympy.core.function import AppliedUndef
from sympy.physics.mechanics import JointsMethod, KanesMethod, Point, ReferenceFrame
from sympy.physics.mechanics.actuator import ActuatorBase
from sympy.physics.mechanics.body_base import BodyBase
from sympy.physics.vector import Vector

from mb2fmu.errors import Fault, ModelError
from mb2fmu.model.source_location import find_user_source_line


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Mechanics as separate parts: frames, points, bodies, loads, coordinates, speeds, constraints.

    Attributes:
        frame: The inertial frame N.
        origin: A point fixed in N.
        q: Generalized coordinates.
        u: Generalized speeds, independent ones first or in any order (see ``u_dependent``).
        kinematic_equations: Expressions that vanish, linear in q' and u, one per coordinate.
        bodies: ``RigidBody`` and ``Particle`` objects.
        loads: ``Force``/``Torque`` objects or ``(point or frame, vector)`` pairs.
        actuators: SymPy actuators (``LinearSpring``, ``ForceActuator``, ``TorqueActuator``, musculotendons).
        velocity_constraints: Nonholonomic constraints, expressions that vanish, linear in u.
        u_dependent: As many of ``u`` as there are holonomic and nonholonomic constraints together.
        holonomic_constraints: Expressions of q and t that vanish.
        q_dependent: As many of ``q`` as there are holonomic constraints.
        u_auxiliary: Auxiliary speeds, which bring noncontributing forces to light.

    Raises:
        ModelError: If something is not of the kind said above.
    """

    frame: ReferenceFrame
    origin: Point
    q: Sequence[sm.Expr]
    u: Sequence[sm.Expr]
    kinematic_equations: Sequence[sm.Expr]
    bodies: Sequence[Any]
    loads: Sequence[Any] = ()
    actuators: Sequence[Any] = ()
    velocity_constraints: Sequence[sm.Expr] = ()
    u_dependent: Sequence[sm.Expr] = ()
    holonomic_constraints: Sequence[sm.Expr] = ()
    q_dependent: Sequence[sm.Expr] = ()
    u_auxiliary: Sequence[sm.Expr] = ()

    def __post_init__(self) -> None:
        faults = list(self._faults(find_user_source_line()))
        if faults:
            raise ModelError("the parts do not make a mechanism:", faults)

    def _faults(self, where: str) -> Iterator[Fault]:
        """Yield parts of the wrong type, and dependent symbols that are not among all of them."""
        if not isinstance(self.frame, ReferenceFrame):
            yield Fault(f"frame is {self.frame!r}, not a ReferenceFrame", where, "give the inertial frame")
        if not isinstance(self.origin, Point):
            yield Fault(f"origin is {self.origin!r}, not a Point", where, "give a point fixed in the inertial frame")
        lists = [name for name in _PART_RULES if isinstance(getattr(self, name), Sequence | sm.MatrixBase)]
        for name, (fits, meant) in _PART_RULES.items():
            if name not in lists:
                yield Fault(f"{name} is {getattr(self, name)!r}, not a list", where, f"write {name}=[…]")
                continue
            wrong = [item for item in getattr(self, name) if not fits(item)]
            yield from (Fault(f"{item!r} cannot stand in {name}", where, f"{name}: {meant}") for item in wrong)
        for part, whole in (("u_dependent", "u"), ("q_dependent", "q")):
            if part in lists and whole in lists:
                strange = [symbol for symbol in getattr(self, part) if symbol not in getattr(self, whole)]
                what = f"stands in {part} and not in {whole}"
                yield from (Fault(f"{symbol} {what}", where, f"add it to {whole}") for symbol in strange)


def get_method_of_joints_method(joints: JointsMethod) -> Any:
    """Return the method of a ``JointsMethod``; Kane's method of its parts if its equations are not formed yet."""
    if joints.method is not None:
        return joints.method
    return KanesMethod(
        joints.frame, joints.q, joints.u, kd_eqs=joints.kdes, forcelist=joints.loads, bodies=list(joints.bodies)
    )


def _is_motion(item: object) -> bool:
    """Return whether an item can be a coordinate or speed: a function of time, or a derivative."""
    return isinstance(item, AppliedUndef | sm.Derivative)


def _is_expression(item: object) -> bool:
    """Return whether an item is an expression."""
    return isinstance(item, sm.Expr)


def _is_load(item: object) -> bool:
    """Return whether an item is a pair of place and vector; a zero vector may be written 0."""
    if not isinstance(item, tuple) or len(item) != 2:
        return False
    place, vector = item
    return isinstance(place, Point | ReferenceFrame | BodyBase) and (isinstance(vector, Vector) or vector == 0)


def _is_body(item: object) -> bool:
    """Return whether an item is a SymPy body."""
    return isinstance(item, BodyBase)


def _is_actuator(item: object) -> bool:
    """Return whether an item is a SymPy actuator."""
    return isinstance(item, ActuatorBase)


_MOTION_RULE = (_is_motion, "functions of time, made by dynamicsymbols")
_EQUATION_RULE = (_is_expression, "expressions that vanish")
_PART_RULES: dict[str, tuple[Callable[[object], bool], str]] = {
    **dict.fromkeys(("q", "u", "u_dependent", "q_dependent", "u_auxiliary"), _MOTION_RULE),
    **dict.fromkeys(("kinematic_equations", "velocity_constraints", "holonomic_constraints"), _EQUATION_RULE),
    "bodies": (_is_body, "RigidBody and Particle objects"),
    "loads": (_is_load, "Force and Torque objects, or (point or frame, vector) pairs"),
    "actuators": (_is_actuator, "SymPy's actuators"),
}
"""Field → what its items are."""
