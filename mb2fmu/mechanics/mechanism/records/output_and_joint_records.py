"""Requested outputs, joints and closed forms of loops; by numbers, in plain symbols.

Numbers are those of the mechanism's records: of frames, points, bodies, loads, joints, speeds and constraint rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sympy as sm

from mb2fmu.model.declarations.declared_outputs import OutputKind
from mb2fmu.model.quantity_declarations import DeclaredVariable

Components = tuple[sm.Expr, sm.Expr, sm.Expr]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpressionOutput(DeclaredVariable):
    """An output that the model writes as an expression.

    Attributes:
        expression: In plain symbols; accelerations as u'.
        drives: For an effort: the quantity that a positive effort increases, in plain symbols.
    """

    expression: sm.Expr
    drives: sm.Expr | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedOutput(DeclaredVariable):
    """An output that the mechanism computes.

    Attributes:
        kind: Kind of the output.
        subject: Numbers, by ``kind``: of a point (``position``, ``velocity``, ``acceleration``), a frame
            (``angular_velocity``, ``angular_acceleration``, ``orientation``), two points (``distance``,
            ``relative_velocity``), bodies (``centre_of_mass``, ``linear_momentum``, …; none: all), a load
            (``force``, ``power``), a constraint row (``multiplier``), a speed (``momentum``), a
            coordinate (``coordinate_momentum``), bodies or one joint
            (``reaction_force``, ``reaction_torque``), joints (``joint_effort``), two speeds (``mass_matrix``), a speed
            (``gravity_effort``, ``inverse_effort``), a point or a frame, then a speed (``partial_velocity``,
            ``partial_angular_velocity``); empty for energies and diagnostics.
        of_joint: For a reaction: ``subject`` is a joint.
        relative_to: Number of the point (position, reaction) or frame (the others) it is relative to; None: the origin,
            the joint's point on its child, the inertial frame.
        expressed_in: Number of the frame of the components; None: the inertial frame.
        component: For a partial velocity: its component 0, 1 or 2 in the inertial frame.
        representation: For ``orientation``: ``quaternion`` (w, x, y, z) or a body-fixed Euler sequence like ``zxy``.
    """

    kind: OutputKind
    subject: tuple[int, ...] = ()
    of_joint: bool = False
    relative_to: int | None = None
    expressed_in: int | None = None
    component: int | None = None
    representation: str = "quaternion"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnavailableOutput(DeclaredVariable):
    """An output that the mechanism cannot provide.

    Attributes:
        problem: Reason why it is unavailable.
        remedy: What the user can do.
    """

    problem: str
    remedy: str = ""


OutputRecord = ExpressionOutput | RequestedOutput | UnavailableOutput


@dataclass(frozen=True, slots=True)
class Joint:
    """A joint between two bodies.

    Attributes:
        name: Name of the joint.
        parent: Number of the body before it; -1: the ground.
        child: Number of the body after it; -1: the ground.
        point: Number of the joint's point on its child.
        axis: Unit vector along which it has one degree of freedom, (frame, components); None: it has more, or none is
            known.
        is_revolute: True: about the axis; False: along it.
        speed_factor: Its speed per speed of the joint that moves it.
        passive_effort: Effort that a drive must add to the inverse dynamics of the bodies: springs, dampers, rotors,
            N·m or N.
    """

    name: str
    parent: int
    child: int
    point: int
    axis: tuple[int, Components] | None = None
    is_revolute: bool = True
    speed_factor: sm.Expr = sm.S.One
    passive_effort: sm.Expr = sm.S.Zero


@dataclass(frozen=True, slots=True)
class InverseDynamicsRequest:
    """Request of ``inverse_effort``: the generalized forces M a - f of a motion, with drives left out of f.

    Attributes:
        accelerations: a, one input per speed.
        passive_forces: The generalized forces of ``Mechanism.potential_forces`` without those of drives; empty: none.
    """

    accelerations: tuple[sm.Symbol, ...]
    passive_forces: tuple[sm.Expr, ...]


@dataclass(frozen=True, slots=True)
class LoopClosedForm:
    """A loop's closed form that the model gives.

    Attributes:
        name: Name in the model.
        rows: Numbers of the holonomic constraints that it solves.
        branches: Each unknown coordinate's value, per way of assembly.
        positive: Expressions that must be positive.
        relation: Rows whose rates stand in for those of ``rows``.
        where: Line of the model file.
        unknown_row: Text of a declared row that is no holonomic constraint; empty if there is none.
    """

    name: str
    rows: tuple[int, ...]
    branches: tuple[Mapping[sm.Symbol, sm.Expr], ...]
    positive: tuple[sm.Expr, ...]
    relation: tuple[sm.Expr, ...]
    where: str
    unknown_row: str = ""
