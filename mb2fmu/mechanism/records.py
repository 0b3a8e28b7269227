"""Mechanism: a mechanism as plain frozen records. SymPy's frames, points, bodies and joints end here.

All expressions are scalar, in plain symbols: no function of time, no ``Derivative``; q' has been replaced by K u + k0.
Frames and points are numbered; 0 is the inertial frame N and the origin O. A vector is kept as the sum of components
in several frames, just as the user wrote it, so that nothing is expanded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import sympy as sm

from mb2fmu.equations.motion import Assignment, KinematicEquations, VelocityConstraints
from mb2fmu.errors import Fault, MechanismError
from mb2fmu.model.definition import ModelDefinition, OutputRequest

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
class Place:
    """One point.

    Attributes:
        name: As the user named it.
        parent: Number of the point ``position`` starts from (smaller than its own); -1 for a root.
        position: From ``parent``, m; None for a root.
        velocity: In N, m/s, linear in u, where it is taken as the user gave it; None: it is the derivative of
            ``position`` added to the velocity of ``parent``.
        located: True if a chain of positions leads to the origin.
        passing: True: ``position`` says where a particle of a body is now (as the one of a ball that touches the
            ground), and ``velocity`` is that particle's, or one of auxiliary speeds only: not the position's rate.
    """

    name: str
    parent: int
    position: VectorTerms | None
    velocity: VectorTerms | None
    located: bool
    passing: bool = False


@dataclass(frozen=True, slots=True)
class Body:
    """A rigid body, or a particle.

    Attributes:
        name: Of the body.
        masscenter: Number of the point.
        frame: Number of the body-fixed frame; -1 for a particle.
        mass: kg.
        inertia: Central inertia in the body-fixed frame, shape (3, 3), kg·m²; None for a particle.
    """

    name: str
    masscenter: int
    frame: int
    mass: sm.Expr
    inertia: sm.ImmutableMatrix | None


@dataclass(frozen=True, slots=True)
class ForceLoad:
    """A force (N) on a point."""

    name: str
    point: int
    force: VectorTerms


@dataclass(frozen=True, slots=True)
class TorqueLoad:
    """A torque (N·m) on a frame."""

    name: str
    frame: int
    torque: VectorTerms


@dataclass(frozen=True, slots=True)
class PathwayLoad:
    """A force along a chain of straight segments through points fixed in bodies.

    Attributes:
        name: For messages and outputs.
        points: Numbers of the points, from end to end.
        force: Scalar, expansile positive (pushes the ends apart), N; may contain ``length`` and ``rate``.
        length: Symbol of the pathway's length, m.
        rate: Symbol of its time derivative, m/s; positive while it grows.
        potential: Potential energy in terms of ``length``, J; None where there is none.
    """

    name: str
    points: tuple[int, ...]
    force: sm.Expr
    length: sm.Symbol
    rate: sm.Symbol
    potential: sm.Expr | None = None


@dataclass(frozen=True, slots=True)
class TorqueActuatorLoad:
    """A torque on a frame and its reaction on another.

    Attributes:
        name: For messages and outputs.
        frame: Number of the frame it acts on.
        reaction: Number of the frame that takes the reaction; -1: none.
        torque: Scalar, N·m.
        axis: As it was given: ``torque`` times ``axis`` acts, whatever the axis's length, as SymPy has it.
    """

    name: str
    frame: int
    reaction: int
    torque: sm.Expr
    axis: VectorTerms


Load = ForceLoad | TorqueLoad | PathwayLoad | TorqueActuatorLoad


@dataclass(frozen=True, slots=True)
class Act:
    """Where the force of a constraint acts: ``vector`` times minus the multiplier is the force or torque there.

    Attributes:
        at: Number of the point, or of the frame.
        torque: True: a torque on a frame.
        vector: Of the force per unit of the multiplier.
        body: Number of the body whose particle at the point takes the force; -1: the point moves with its body.
    """

    at: int
    torque: bool
    vector: VectorTerms
    body: int = -1


@dataclass(frozen=True, slots=True)
class Lagrangian:
    """A Lagrangian handed over; the speeds are q'.

    Attributes:
        expression: L(q, q', t) in plain symbols, J.
        forces: Generalized forces of the loads, one per coordinate.
        method: The user's ``LagrangesMethod``.
    """

    expression: sm.Expr
    forces: tuple[sm.Expr, ...]
    method: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Mechanism:
    """A mechanism as records.

    Attributes:
        definition: The model it was read from.
        t: Time.
        q, u, u_dot, u_auxiliary, z, p, r: Plain symbols, orders as in ``definition`` (p: free parameters).
        driven: (input, input that is its rate) where the model has both: motion may be prescribed by them.
        calculated_parameters: In order of evaluation.
        constraint_forces: Unknown forces.
        u_independent: Indices into u.
        dynamic: Plain symbol → the user's function of time.
        kinematics: q' = K u + k0.
        z_dot: Derivatives of z; may contain pathway lengths and rates.
        frames: Frame 0 is N; parents come first.
        points: Point 0 is O; parents come first.
        bodies: Rigid bodies and particles.
        loads: Loads and actuators in the order they were handed over.
        load_of: id of the user's load or actuator object → number in ``loads``.
        frame_of, point_of: The user's frame or point → number.
        holonomic: (name, phi).
        velocity_constraints: A u + b = 0, or None.
        auxiliary_rows: A_aux of A u + A_aux u_aux + b = 0, shape (m, n_aux), where auxiliary speeds stand in the
            constraints: their forces then stand in the equations of the auxiliary speeds; None otherwise.
        multipliers: Symbols of lambda, one per velocity constraint.
        acts: Where the force of each velocity constraint acts; empty tuples where the model does not say it.
        redundant: Names of velocity constraints that were left out, since they follow from the others.
        given_by_constraint: Names of points whose velocity already uses a constraint.
        prescribed: Whether bodies or loads move in a way that no speeds alone can bring about, as by a motor that turns
            at a constant rate: then what moves them does work that is not among that of the loads.
        lagrangian: For a ``LagrangesMethod``; bodies are known only if it was given them.
        potential_forces: Generalized forces -∂V/∂q of the potential energy in a Lagrangian, one per speed; empty
            otherwise, and where there are no bodies.
        stabilization_rate: The parameter (one of ``p``) that says how fast what leaves the constraints is drawn back
            to them, in 1/s; None where the equations have a number for it, or none.
        quaternions: Indices of coordinates that form quaternions; constraints are written in them at unit length.
        plain: Translates the user's expressions to plain symbols (a ``SymbolMap``).
        handed_over: The checked model before it was put into the words of a mechanism: for those who judge the reading.
        scenery: What pictures need (a ``Scenery``); None where there is nothing to be drawn.
    """

    definition: ModelDefinition
    t: sm.Symbol
    q: tuple[sm.Symbol, ...]
    u: tuple[sm.Symbol, ...]
    u_dot: tuple[sm.Symbol, ...]
    u_auxiliary: tuple[sm.Symbol, ...]
    z: tuple[sm.Symbol, ...]
    p: tuple[sm.Symbol, ...]
    r: tuple[sm.Symbol, ...]
    calculated_parameters: tuple[Assignment, ...]
    constraint_forces: tuple[sm.Symbol, ...]
    u_independent: tuple[int, ...]
    dynamic: Mapping[sm.Symbol, sm.Expr]
    kinematics: KinematicEquations
    z_dot: tuple[sm.Expr, ...]
    frames: tuple[Frame, ...]
    points: tuple[Place, ...]
    bodies: tuple[Body, ...]
    loads: tuple[Load, ...]
    load_of: Mapping[int, int] = field(default_factory=dict)
    frame_of: Mapping[Any, int] = field(default_factory=dict)
    point_of: Mapping[Any, int] = field(default_factory=dict)
    holonomic: tuple[tuple[str, sm.Expr], ...] = ()
    velocity_constraints: VelocityConstraints | None = None
    auxiliary_rows: sm.ImmutableMatrix | None = None
    driven: tuple[tuple[sm.Symbol, sm.Symbol], ...] = ()
    multipliers: tuple[sm.Symbol, ...] = ()
    acts: tuple[tuple[Act, ...], ...] = ()
    redundant: tuple[str, ...] = ()
    given_by_constraint: tuple[str, ...] = ()
    prescribed: bool = False
    lagrangian: Lagrangian | None = None
    potential_forces: tuple[sm.Expr, ...] = ()
    stabilization_rate: sm.Symbol | None = None
    quaternions: tuple[tuple[int, int, int, int], ...] = ()
    plain: Any = None
    scenery: Any = None
    handed_over: ModelDefinition | None = None

    def __post_init__(self) -> None:
        faults = [
            Fault(f"frame {frame.name} comes before the frame it is oriented in")
            for i, frame in enumerate(self.frames)
            if frame.parent >= i
        ]
        faults += [
            Fault(f"point {point.name} comes before the point it is located from")
            for i, point in enumerate(self.points)
            if point.parent >= i
        ]
        if faults:
            raise MechanismError("the mechanism's records break their own laws:", faults)

    @property
    def lagrangian_alone(self) -> bool:
        """True if nothing is known but a Lagrangian."""
        return self.lagrangian is not None and not self.bodies

    @property
    def asks_for_multipliers(self) -> bool:
        """True if an output or unknown force may need multipliers: then all speeds have equations."""
        d = self.definition
        kinds = {item.kind for item in d.outputs if isinstance(item, OutputRequest)}
        reactions = bool(kinds & {"reaction_force", "reaction_torque"}) and any(self.acts)
        return (
            self.auxiliary_rows is not None
            or "multiplier" in kinds
            or reactions
            or any(c.symbol is not None for c in d.constraints)
        )

    def rates(self, q_dot: Iterable[sm.Expr]) -> dict[sm.Symbol, sm.Expr]:
        """Everything that positions may contain and that moves, with its rate; time's is 1."""
        return {**dict(zip(self.q, q_dot, strict=True)), **dict(self.driven), self.t: sm.S.One}

    @property
    def auxiliary_reactions(self) -> sm.ImmutableMatrix:
        """A_auxᵀ λ, what the constraints' forces do along the auxiliary speeds, shape (n_aux, 1)."""
        if self.auxiliary_rows is None:
            return sm.ImmutableMatrix.zeros(len(self.u_auxiliary), 1)
        return sm.ImmutableMatrix(self.auxiliary_rows.T * sm.Matrix(self.multipliers))

    @property
    def u_all(self) -> tuple[sm.Symbol, ...]:
        """Speeds, auxiliary speeds last."""
        return (*self.u, *self.u_auxiliary)

    @property
    def rheonomic(self) -> bool:
        """True if time or an input moves something by itself: in the kinematics, or in a constraint with an offset."""
        moving = {self.t, *self.r}
        parts: list[sm.Basic] = [self.kinematics.matrix, self.kinematics.offset]
        parts += [frame.rotation for frame in self.frames]
        parts += [c for frame in self.frames for _, cs in frame.angular_velocity for c in cs]
        for point in self.points:
            for terms in (point.position, point.velocity):
                parts += [c for _, cs in terms or () for c in cs]
        constraints = self.velocity_constraints
        if constraints:
            parts.append(constraints.jacobian)
            parts += [phi for _, phi in self.holonomic]
            if any(entry != 0 for entry in constraints.offset[len(self.holonomic) :]):
                return True
        return any(moving & part.free_symbols for part in parts)
