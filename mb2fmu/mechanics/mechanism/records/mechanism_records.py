"""Mechanism: plain frozen records in place of SymPy's frames, points, bodies and joints.

All expressions are scalar, in plain symbols: no function of time, no ``Derivative``; q' has been replaced by K u + k0.
Frames and points are numbered; 0 is the inertial frame N and the origin O. A vector is kept as the sum of components
in several frames, just as the user wrote it, so that nothing is expanded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import sympy as sm

from mb2fmu.errors import Fault, MechanismError
from mb2fmu.mechanics.equations.equations_of_motion import (
    EventDefinition,
    KinematicEquations,
    SymbolAssignment,
    VelocityConstraints,
)
from mb2fmu.mechanics.mechanism.records.appearance_records import AppearanceRecords
from mb2fmu.mechanics.mechanism.records.frame_and_point_records import Components, Frame, KinematicPoint, VectorTerms
from mb2fmu.mechanics.mechanism.records.output_and_joint_records import (
    InverseDynamicsRequest,
    Joint,
    LoopClosedForm,
    OutputRecord,
    RequestedOutput,
)
from mb2fmu.model.declarations.declared_content_and_experiment import DeclaredModelContent
from mb2fmu.model.supported_functions import StickingSign

if TYPE_CHECKING:
    from mb2fmu.mechanics.equations.contact_equations import ContactEquations
    from mb2fmu.mechanics.equations.latch_equations import LatchEquations

__all__ = [
    "Body",
    "Components",
    "ConstraintForceApplication",
    "ForceLoad",
    "Frame",
    "KinematicPoint",
    "KinematicVectorSymbols",
    "Lagrangian",
    "Load",
    "Mechanism",
    "PathwayLoad",
    "TorqueActuatorLoad",
    "TorqueLoad",
    "VectorTerms",
    "list_load_components",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Body:
    """A rigid body, or a particle.

    Attributes:
        name: Name of the body.
        masscenter: Number of the mass centre's point.
        frame: Number of the body-fixed frame; -1 for a particle.
        mass: Mass, kg.
        inertia: Central inertia in the body-fixed frame, shape (3, 3), kg·m²; None for a particle.
    """

    name: str
    masscenter: int
    frame: int
    mass: sm.Expr
    inertia: sm.ImmutableMatrix | None


@dataclass(frozen=True, slots=True)
class ForceLoad:
    """A force (N) on a point; ``body``: number of the body that it acts on, where it is known; else -1."""

    name: str
    point: int
    force: VectorTerms
    body: int = -1


@dataclass(frozen=True, slots=True)
class TorqueLoad:
    """A torque (N·m) on a frame; ``body``: number of the body that it acts on, where it is known; else -1."""

    name: str
    frame: int
    torque: VectorTerms
    body: int = -1


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
        axis: Axis as given: ``torque`` times ``axis`` acts, whatever the axis's length, as in SymPy.
    """

    name: str
    frame: int
    reaction: int
    torque: sm.Expr
    axis: VectorTerms


Load = ForceLoad | TorqueLoad | PathwayLoad | TorqueActuatorLoad


def list_load_components(load: Load) -> tuple[sm.Expr, ...]:
    """Return the expressions of a load's size: components in all its frames, N or N·m, or its one scalar."""
    match load:
        case ForceLoad():
            return tuple(component for _, components in load.force for component in components)
        case TorqueLoad():
            return tuple(component for _, components in load.torque for component in components)
        case PathwayLoad():
            return (load.force,)
    return (load.torque,)


MotionVectorKind = Literal["position", "velocity", "angular velocity"]


@dataclass(frozen=True, slots=True)
class KinematicVectorSymbols:
    """A position, velocity or angular velocity, components in N, whose symbols expressions may contain.

    Attributes:
        kind: Kind of the vector.
        point_or_frame: Number of the point; for an angular velocity, of the frame.
        symbols: Symbols of the three components.
    """

    kind: MotionVectorKind
    point_or_frame: int
    symbols: tuple[sm.Symbol, sm.Symbol, sm.Symbol]


@dataclass(frozen=True, slots=True)
class ConstraintForceApplication:
    """Application of a constraint's force: applied force or torque = −λ · ``vector`` at this point or frame.

    Attributes:
        point_or_frame: Number of the point, or of the frame.
        is_torque: True: a torque on a frame; False: a force at a point.
        vector: Force or torque per unit of the multiplier.
        body: Number of the body whose particle at the point takes the force; -1: the point moves with its body.
    """

    point_or_frame: int
    is_torque: bool
    vector: VectorTerms
    body: int = -1


@dataclass(frozen=True, slots=True)
class FlexibleBodyRecord:
    """What belongs to one flexible body, which elastic forces hold together.

    Attributes:
        body: Number of its rigid body.
        particles: Numbers of its particles.
        points: Number of a point that moves with its material or carries its elastic forces → number of the frame of
            the section there; -1: none.
    """

    body: int
    particles: tuple[int, ...]
    points: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Lagrangian:
    """A Lagrangian given by the user; the speeds are q'.

    Attributes:
        expression: L(q, q', t) in plain symbols, J.
        forces: Generalized forces of the loads, one per coordinate.
    """

    expression: sm.Expr
    forces: tuple[sm.Expr, ...]


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)  # only a part of a record
class MechanismVariables:
    """Quantities of a mechanism and the symbols that stand for them.

    Attributes:
        declared: Names, units, start values and values of all quantities, and the experiment.
        t: Time.
        q, u, u_dot, u_auxiliary, z, p, r: Plain symbols, orders as in ``declared`` (p: free parameters).
        inputs_with_rates: (input, input that is its rate) where the model has both: motion may be prescribed by them.
        calculated_parameters: Assignments, in order of evaluation.
        constraint_forces: Symbols of unknown forces.
        u_independent: Indices into u.
        dynamic: Plain symbol → function of time, for SymPy's own methods; made from the symbols if it is left out.
        quaternions: Indices of coordinates that form quaternions; constraints are written in them at unit length.
    """

    declared: DeclaredModelContent
    t: sm.Symbol
    q: tuple[sm.Symbol, ...]
    u: tuple[sm.Symbol, ...]
    u_dot: tuple[sm.Symbol, ...]
    u_auxiliary: tuple[sm.Symbol, ...]
    z: tuple[sm.Symbol, ...]
    p: tuple[sm.Symbol, ...]
    r: tuple[sm.Symbol, ...]
    inputs_with_rates: tuple[tuple[sm.Symbol, sm.Symbol], ...] = ()
    calculated_parameters: tuple[SymbolAssignment, ...]
    constraint_forces: tuple[sm.Symbol, ...]
    u_independent: tuple[int, ...]
    quaternions: tuple[tuple[int, int, int, int], ...] = ()
    dynamic: Mapping[sm.Symbol, sm.Expr] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)  # only a part of a record
class MechanismMotionRecords:
    """Frames, points, bodies and loads of a mechanism, and how they move with the speeds.

    Attributes:
        kinematics: q' = K u + k0.
        z_dot: Derivatives of z; may contain pathway lengths and rates.
        frames: Frame 0 is N; parents come first.
        points: Point 0 is O; parents come first.
        bodies: Rigid bodies and particles.
        loads: Loads and actuators in the order in which they were given.
        motion_vectors: Positions, velocities and angular velocities that expressions contain.
        joints: Joints between bodies, where they are known.
        prescribed: Whether bodies or loads move in a way that no speeds alone can bring about, as by a motor that turns
            at a constant rate: then the work of the drive is not among that of the loads.
        lagrangian: Only for a ``LagrangesMethod``; it may have no bodies.
        potential_forces: Generalized forces -∂V/∂q of the potential energy in a Lagrangian, one per speed; empty
            otherwise, and where there are no bodies.
        events: Events that the model declares.
        contacts: Unilateral contacts; None where there are none.
        latches: Constraints that events close and release; None where there are none.
        flexible_bodies: Which bodies, points and frames are those of flexible bodies.
    """

    kinematics: KinematicEquations
    z_dot: tuple[sm.Expr, ...]
    frames: tuple[Frame, ...]
    points: tuple[KinematicPoint, ...]
    bodies: tuple[Body, ...]
    loads: tuple[Load, ...]
    motion_vectors: tuple[KinematicVectorSymbols, ...] = ()
    joints: tuple[Joint, ...] = ()
    prescribed: bool = False
    lagrangian: Lagrangian | None = None
    potential_forces: tuple[sm.Expr, ...] = ()
    events: tuple[EventDefinition, ...] = ()
    contacts: ContactEquations | None = None
    latches: LatchEquations | None = None
    flexible_bodies: tuple[FlexibleBodyRecord, ...] = ()


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)  # only a part of a record
class MechanismConstraints:
    """Constraints of a mechanism.

    Attributes:
        holonomic: (name, phi).
        velocity_constraints: A u + b = 0, or None.
        kinematic_invariants: (name, phi) of further constraints on positions, the rates of which vanish by q' = K u +
            k0 whatever u is: solved for at the start like the holonomic ones, and kept from there on without forces.
        auxiliary_rows: A_aux of A u + A_aux u_aux + b = 0, shape (m, n_aux), where auxiliary speeds stand in the
            constraints: their forces then stand in the equations of the auxiliary speeds; None otherwise.
        multipliers: Symbols of lambda, one per velocity constraint.
        force_applications: Where the force of each velocity constraint acts; empty tuples where the model does not
            declare it.
        redundant_constraints: Names of velocity constraints that were left out, since they follow from the others.
        points_using_constraints: Names of points whose velocity already uses a constraint.
        contradicted_positions: One sentence for each point whose given velocity, which the equations contain, is not
            the rate of its position, which they do not contain.
        speed_choice: A sentence where other speeds depend than those that were named; else empty.
        stabilization_rate: The parameter (one of ``p``) of the rate, in 1/s, at which violations of the constraints
            decay; None where the equations have a number for it, or none.
        needs_multipliers: True if an output or unknown force may need multipliers: then all speeds have equations.
    """

    holonomic: tuple[tuple[str, sm.Expr], ...] = ()
    velocity_constraints: VelocityConstraints | None = None
    kinematic_invariants: tuple[tuple[str, sm.Expr], ...] = ()
    auxiliary_rows: sm.ImmutableMatrix | None = None
    multipliers: tuple[sm.Symbol, ...] = ()
    force_applications: tuple[tuple[ConstraintForceApplication, ...], ...] = ()
    redundant_constraints: tuple[str, ...] = ()
    points_using_constraints: tuple[str, ...] = ()
    contradicted_positions: tuple[str, ...] = ()
    speed_choice: str = ""
    stabilization_rate: sm.Symbol | None = None
    needs_multipliers: bool = False


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)  # only a part of a record
class MechanismRequests:
    """Requests of a mechanism beside its motion.

    Attributes:
        outputs: Requested outputs, in declared order.
        loop_closed_forms: Closed forms that the model gives.
        given_potential: Potential energy of all loads that the model declares, J; None: it must be found.
        spring_potential: Potential energy of springs along joints and tendons, whose forces are among
            ``potential_forces``, J.
        drive_forces: What laws of actuators (a position drive) make of ``potential_forces``: they have no potential
            energy; empty where there are none.
        declared_potential: Sum of the potential energies that bodies declare, J, not checked yet.
        known_potentials: (names of loads, their potential energy together, J): declared by elements, checked where
            used.
        element_of_load: Name of a load → name of the element that it belongs to, for messages.
        appearance: Shapes, traces and arrows; None where nothing is drawn.
        inverse_dynamics: Request of ``inverse_effort``; None if nothing requests it.
    """

    outputs: tuple[OutputRecord, ...] = ()
    loop_closed_forms: tuple[LoopClosedForm, ...] = ()
    given_potential: sm.Expr | None = None
    spring_potential: sm.Expr = sm.S.Zero
    drive_forces: tuple[sm.Expr, ...] = ()
    declared_potential: sm.Expr = sm.S.Zero
    known_potentials: tuple[tuple[frozenset[str], sm.Expr], ...] = ()
    element_of_load: Mapping[str, str] = field(default_factory=dict)
    appearance: AppearanceRecords | None = None
    inverse_dynamics: InverseDynamicsRequest | None = None


@dataclass(frozen=True, kw_only=True)
class Mechanism(MechanismVariables, MechanismMotionRecords, MechanismConstraints, MechanismRequests):
    """A mechanism as records: its variables, bodies, constraints and observables."""

    def __post_init__(self) -> None:
        if not self.dynamic:
            moving = (*self.q, *self.u_all, *self.z, *self.r, *self.constraint_forces, *self.multipliers)
            functions: dict[sm.Symbol, sm.Expr] = {symbol: sm.Function(symbol.name)(self.t) for symbol in moving}
            for input_symbol, rate in self.inputs_with_rates:  # positions come before speeds
                functions[rate] = functions[input_symbol].diff(self.t)
            object.__setattr__(self, "dynamic", functions)
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
    def import_notes(self) -> tuple[str, ...]:
        """What was accepted otherwise than it was given, or may mean something else, one sentence each."""
        notes = (*self.contradicted_positions, *filter(None, (self.speed_choice,)))
        return (*notes, *self._describe_summed_reactions())

    def form_acts_remedy(self, row: str) -> str:
        """Return how a model says where the force of a constraint row acts, as a line to fill in."""
        x = f"{self.frames[0].name}.x"
        line = f"model.constraint(row, {row!r}, acts=[(P, {x}), (Q, -{x})])"
        return f"for (P - Q)·{x} = 0, which holds point P of one body on point Q of another: {line}"

    def _describe_summed_reactions(self) -> Iterator[str]:
        """Yield a sentence for each reaction of bodies on which several joints, or a joint and constraints, can act."""
        rows = self.velocity_constraints.names if self.velocity_constraints else ()
        unplaced = [
            f"constraint {n}" for n, applications in zip(rows, self.force_applications, strict=True) if not applications
        ]
        for item in self.outputs:
            if not isinstance(item, RequestedOutput) or item.kind != "reaction_force" or item.of_joint:
                continue
            bodies_inside = {*item.subject}
            joints = [
                f"joint {j.name}" for j in self.joints if (j.parent in bodies_inside) != (j.child in bodies_inside)
            ]
            if len(joints) + bool(unplaced) > 1:
                bodies = ", ".join(self.bodies[number].name for number in item.subject)
                name, acting = item.name.removesuffix(".force"), ", ".join([*joints, *unplaced])
                yield f"{name}: {acting} can act on {bodies}; the output is the sum of what they exert"

    @property
    def is_lagrangian_only(self) -> bool:
        """True if the mechanics are a Lagrangian and nothing else."""
        return self.lagrangian is not None and not self.bodies

    def rates(self, q_dot: Iterable[sm.Expr]) -> dict[sm.Symbol, sm.Expr]:
        """Return all moving quantities that positions may contain, with their rates; the rate of time is 1."""
        return {**dict(zip(self.q, q_dot, strict=True)), **dict(self.inputs_with_rates), self.t: sm.S.One}

    @property
    def has_event_sources(self) -> bool:
        """Whether the model declares events, or has contacts or latches, which cause events."""
        return bool(self.events or self.contacts or self.latches)

    @property
    def can_hold_motion(self) -> bool:
        """Whether a contact that rests, a closed latch or friction that sticks may hold a motion still."""
        return bool(self.contacts or self.latches) or any(
            magnitude.has(StickingSign) for load in self.loads for magnitude in list_load_components(load)
        )

    @property
    def position_rows(self) -> tuple[tuple[str, sm.Expr], ...]:
        """All constraints on positions, (name, phi): holonomic rows, then kinematic invariants."""
        return (*self.holonomic, *self.kinematic_invariants)

    @property
    def auxiliary_reactions(self) -> sm.ImmutableMatrix:
        """A_auxᵀ λ: generalized constraint forces along the auxiliary speeds, shape (n_aux, 1)."""
        if self.auxiliary_rows is None:
            return sm.ImmutableMatrix.zeros(len(self.u_auxiliary), 1)
        return sm.ImmutableMatrix(self.auxiliary_rows.T * sm.Matrix(self.multipliers))

    @property
    def u_all(self) -> tuple[sm.Symbol, ...]:
        """Speeds, auxiliary speeds last."""
        return (*self.u, *self.u_auxiliary)

    @property
    def is_rheonomic(self) -> bool:
        """True if time or an input stands in the kinematics or in a constraint, or a constraint has an offset."""
        moving = {self.t, *self.r}
        expressions: list[sm.Basic] = [self.kinematics.matrix, self.kinematics.offset]
        expressions += [frame.rotation for frame in self.frames]
        expressions += [
            component for frame in self.frames for _, components in frame.angular_velocity for component in components
        ]
        for point in self.points:
            for terms in (point.position, point.velocity):
                expressions += [component for _, components in terms or () for component in components]
        return self.has_rheonomic_constraints or any(moving & expression.free_symbols for expression in expressions)

    @property
    def has_rheonomic_constraints(self) -> bool:
        """True if time or an input stands in a constraint, or one of speeds has an offset: it does work then."""
        constraints, moving = self.velocity_constraints, {self.t, *self.r}
        if constraints is None:
            return False
        expressions = [constraints.jacobian, *(phi for _, phi in self.holonomic)]
        offset = any(entry != 0 for entry in constraints.offset[len(self.holonomic) :])
        return offset or any(moving & expression.free_symbols for expression in expressions)
