"""Frames and points of a mechanism, each relative to one before it.

Frames and points are numbered; 0 is the inertial frame N and the origin O. A vector is kept as the sum of components
in several frames, just as the user wrote it, so that nothing is expanded.
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sm

Components = tuple[sm.Expr, sm.Expr, sm.Expr]
VectorTerms = tuple[tuple[int, Components], ...]
"""Sum over (frame number, components in that frame)."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One reference frame and how it moves relative to frames before it.

    Attributes:
        name: As the user named it.
        parent: Number of the frame it is oriented in (smaller than its own); -1 for N.
        rotation: ``A_C_B``, parent A, this frame B: components in A = ``A_C_B`` @ components in B. A composite rotation
            (body-fixed sequence, quaternion) is one matrix.
        reference: Number of the frame ``angular_velocity`` is relative to.
        angular_velocity: Of this frame in ``reference``, rad/s, linear in u.
        oriented: False if only the angular velocity is known (a wheel whose angle is no coordinate): ``parent`` then
            has the axes in which its body's inertia is written, and nothing is written in its own.
    """

    name: str
    parent: int
    rotation: sm.ImmutableMatrix
    reference: int
    angular_velocity: VectorTerms
    oriented: bool = True


@dataclass(frozen=True, slots=True)
class KinematicPoint:
    """One point.

    Attributes:
        name: As the user named it.
        parent: Number of the point ``position`` starts from (smaller than its own); -1 for a root.
        position: From ``parent``, m; None for a root.
        velocity: In N, m/s, linear in u, where it is taken as the user gave it; None: it is the derivative of
            ``position`` added to the velocity of ``parent``.
        located: True if a chain of positions leads to the origin.
        is_instantaneous: True: ``position`` says where a particle of a body is now (as the one of a ball that touches
            the ground), and ``velocity`` is that particle's, or one of auxiliary speeds only: not the position's rate.
    """

    name: str
    parent: int
    position: VectorTerms | None
    velocity: VectorTerms | None
    located: bool
    is_instantaneous: bool = False
