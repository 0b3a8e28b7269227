"""EquationsOfMotion: the unexpanded equations of one mechanism by one formulation, with names for all parts.

Input of this stage: none (it is a type). All symbols are plain ``sympy.Symbol`` objects: no function of time and no
``Derivative`` is left. What a formulation knows by name stays a named intermediate; expressions may use intermediates
that come before them. Sizes: n_q coordinates, n_u speeds (independent ones and m dependent ones), n_z auxiliary states.

    q' = K u + k0                         kinematic differential equations
    A u + b = 0                           velocity constraints (m rows; holonomic ones differentiated included)
    A u' + gamma = 0                      the same differentiated
    M u' = f                              dynamics: see MassMatrixDynamics, or ArticulatedBodyStructure
    z' = f_z                              auxiliary states
    phi(q, t) = 0                         holonomic constraints
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import sympy as sm

from mb2fmu.errors import Fault, FormulationError
from mb2fmu.mechanics.equations import notebook_display_registry
from mb2fmu.mechanics.equations.event_definitions import EventDefinition, form_contact_and_latch_events
from mb2fmu.mechanics.equations.link_recursion import ArticulatedBodyStructure, LinkRecursion
from mb2fmu.mechanics.equations.observable_quantities import (
    DIAGNOSTIC_SYMBOLS,
    BodyMotion,
    ConstraintDiagnosticSymbols,
    EnergyBalance,
    MotionObservables,
    OutputExpression,
)
from mb2fmu.model.expression_traversal import list_free_symbols
from mb2fmu.model.quantity_declarations import StartKind

if TYPE_CHECKING:
    from mb2fmu.mechanics.equations.contact_equations import ContactEquations
    from mb2fmu.mechanics.equations.latch_equations import LatchEquations

__all__ = [
    "DIAGNOSTIC_SYMBOLS",
    "BodyMotion",
    "ClosedFormLoopSolution",
    "ConstraintDiagnosticSymbols",
    "EnergyBalance",
    "EquationsOfMotion",
    "EventDefinition",
    "Intermediate",
    "KinematicEquations",
    "LinearSystemAssignment",
    "MassMatrixDynamics",
    "Method",
    "MotionConstraints",
    "MotionDynamics",
    "MotionObservables",
    "MotionVariables",
    "OutputExpression",
    "SymbolAssignment",
    "SymbolStartKind",
    "Treatment",
    "VelocityConstraints",
]


@dataclass(frozen=True, slots=True)
class SymbolAssignment:
    """``symbol`` := ``expression``."""

    symbol: sm.Symbol
    expression: sm.Expr


@dataclass(frozen=True, slots=True)
class LinearSystemAssignment:
    """``unknowns`` := the solution X of ``matrix`` X = ``right_hand_side``, by pivoted LU, numerically.

    Attributes:
        unknowns: Shape (n, k), symbols, row-major.
        matrix: Shape (n, n).
        right_hand_side: Shape (n, k).
        name: What is solved for, for messages when the matrix is singular.
        symmetric: True: the matrix is symmetric positive definite, LDLᵀ may be used.
    """

    unknowns: tuple[sm.Symbol, ...]
    matrix: sm.ImmutableMatrix
    right_hand_side: sm.ImmutableMatrix
    name: str
    symmetric: bool = False


Intermediate = SymbolAssignment | LinearSystemAssignment


@dataclass(frozen=True, slots=True)
class KinematicEquations:
    """q' = ``matrix`` u + ``offset``; n_q ≠ n_u is allowed (quaternions).

    Attributes:
        matrix: K(q, t), shape (n_q, n_u).
        offset: k0(q, t), shape (n_q, 1).
    """

    matrix: sm.ImmutableMatrix
    offset: sm.ImmutableMatrix


@dataclass(frozen=True, slots=True)
class VelocityConstraints:
    """A u + b = 0 and A u' + gamma = 0.

    Attributes:
        names: One per row.
        jacobian: A(q, t), shape (m, n_u), columns in the order of ``EquationsOfMotion.u``.
        offset: b(q, t), shape (m, 1).
        bias: gamma(q, u, t) = A' u + b', shape (m, 1).
    """

    names: tuple[str, ...]
    jacobian: sm.ImmutableMatrix
    offset: sm.ImmutableMatrix
    bias: sm.ImmutableMatrix


@dataclass(frozen=True, slots=True)
class ClosedFormLoopSolution:
    """Coordinates of one closed loop in closed form of others.

    Attributes:
        kind: Of loop, as messages name it.
        rows: Names of the holonomic constraints that it solves.
        unknowns: The coordinates that it gives.
        assignments: In order of evaluation; may use time, parameters, coordinates that are states and coordinates of
            closed forms before it. They end in those of ``unknowns``.
        conditions: What must be positive for the loop to close.
        relation: Rows ψ = 0, one per unknown, whose rates give the unknowns' rates in place of those of ``rows``: they
            say the same, and are regular where those lose rank (a parallelogram that lies flat). Empty: ``rows``.
    """

    kind: str
    rows: tuple[str, ...]
    unknowns: tuple[sm.Symbol, ...]
    assignments: tuple[SymbolAssignment, ...]
    conditions: tuple[sm.Expr, ...] = ()
    relation: tuple[sm.Expr, ...] = ()

    @property
    def name(self) -> str:
        """Kind and rows of the loop, for messages."""
        return f"{self.kind} of {', '.join(self.rows)}"


@dataclass(frozen=True, slots=True)
class MassMatrixDynamics:
    """M u' = f.

    Attributes:
        mass_matrix: Shape (n_u, n_u), symmetric: the unconstrained mass matrix over *all* speeds, which the velocity
            constraints reduce to the independent speeds; or (n_u - m, n_u): rows already reduced (Kane with dependent
            speeds), which together with the constraints' A u' + gamma = 0 determine u'. The same if m = 0.
        forcing: One row per row of ``mass_matrix``.
    """

    mass_matrix: sm.ImmutableMatrix
    forcing: sm.ImmutableMatrix


@dataclass(frozen=True, slots=True)
class SymbolStartKind:
    """Start value of a coordinate or speed: ``fixed`` is kept, a ``guess`` is solved for from the constraints."""

    symbol: sm.Symbol
    kind: StartKind


Method = str
"""Name of a row of :data:`mb2fmu.mechanics.formulation_registry.FORMULATIONS`."""

Treatment = Literal["attractor", "explicit", "partition", "multipliers"]
"""What becomes of holonomic constraints in the ordinary differential equation of the FMU:

    attractor     all q, u are states; x' = f(P(x)) - rate (x - P(x)), P the projection onto the constraints
    explicit      dependent coordinates of known loops in closed form of the independent ones
    partition     dependent coordinates by Newton's method, dependent speeds by a linear solve
    multipliers   all q, u are states; M u' + A^T lambda = f and A u' + gamma = 0, Baumgarte's terms on request
"""


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)  # only a part of a record
class MotionVariables:
    """Symbols of the equations, and the choice of the states.

    Attributes:
        t: Time.
        q: Coordinates, in the order of ``DeclaredModelContent.coordinates``.
        u: Speeds, in the order of ``DeclaredModelContent.speeds``.
        u_independent: Indices into ``u`` of the speeds that are states; the others follow from the constraints. All of
            them by the treatments ``attractor`` and ``multipliers``.
        u_dot: Symbols that stand for u', same order as ``u``.
        z: Auxiliary states.
        p: Free parameters.
        r: Inputs.
        calculated_parameters: Parameter := expression of parameters, in order of evaluation.
        q_dependent: Indices into ``q`` of the coordinates that are no states because the constraints determine them, by
            the treatments ``explicit`` and ``partition``.
        start: Of coordinates and speeds, for consistent initialization.
        quaternions: Indices into ``q`` of coordinates that form a quaternion, four each.
    """

    t: sm.Symbol
    q: tuple[sm.Symbol, ...]
    u: tuple[sm.Symbol, ...]
    u_independent: tuple[int, ...]
    u_dot: tuple[sm.Symbol, ...]
    z: tuple[sm.Symbol, ...] = ()
    p: tuple[sm.Symbol, ...] = ()
    r: tuple[sm.Symbol, ...] = ()
    calculated_parameters: tuple[SymbolAssignment, ...] = ()
    q_dependent: tuple[int, ...] = ()
    start: tuple[SymbolStartKind, ...] = ()
    quaternions: tuple[tuple[int, int, int, int], ...] = ()


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)  # only a part of a record
class MotionConstraints:
    """Constraints, and how they are treated.

    Attributes:
        holonomic: (name, phi) rows.
        velocity_constraints: All of them, holonomic ones differentiated included, which come first.
        kinematic_invariants: (name, phi) rows that q' = K u + k0 keeps by itself, solved for at the start only.
        treatment: Of the holonomic constraints; None where there are none.
        closed_forms: Of the dependent coordinates by the treatment ``explicit``, in order of evaluation.
        reduction: Rows as those of ``velocity_constraints``, which dependent speeds and accelerations follow from in
            their place; None: those themselves.
        warm_start: Start values of those coordinates by the treatment ``partition``: Newton's method begins with them.
        warm_start_at: Start values of the independent coordinates, to which they belong.
        multipliers: Symbols of lambda, one per row of ``velocity_constraints``, that outputs of level ``acceleration``
            may contain; empty where nobody may request them.
        attractor_rate: In 1/s; of the treatment ``attractor``.
        baumgarte: (rate a, rate b), both in 1/s: A u' + gamma + 2 a (A u + b) + b^2 phi = 0 by the treatment
            ``multipliers``; None: gamma alone.
        redundant: Names of the rows of ``velocity_constraints`` that follow from others wherever the constraints hold;
            of holonomic ones as many as follow from holonomic ones.
        row_lengths: Typical length of each row of ``velocity_constraints``, over the speeds, powers of ten; (): all 1.
    """

    holonomic: tuple[tuple[str, sm.Expr], ...] = ()
    velocity_constraints: VelocityConstraints | None = None
    kinematic_invariants: tuple[tuple[str, sm.Expr], ...] = ()
    treatment: Treatment | None = None
    closed_forms: tuple[ClosedFormLoopSolution, ...] = ()
    reduction: VelocityConstraints | None = None
    warm_start: tuple[float, ...] = ()
    warm_start_at: tuple[float, ...] = ()
    multipliers: tuple[sm.Symbol, ...] = ()
    attractor_rate: sm.Expr | None = None
    baumgarte: tuple[sm.Expr, sm.Expr] | None = None
    redundant: tuple[str, ...] = ()
    row_lengths: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)  # only a part of a record
class MotionDynamics:
    """Kinematics and dynamics, with the intermediates that they use.

    Attributes:
        method: The formulation.
        kinematics: q' = K u + k0.
        dynamics: M u' = f, or what gives u' without M; None where u' comes from elsewhere.
        z_dot: f_z, one per z; may contain ``u_dot``.
        intermediates: In an order in which each uses only earlier ones. They may depend on anything but ``u_dot``.
        late_intermediates: Further ones that may also depend on ``u_dot`` and ``multipliers``; for ``outputs`` only.
        recursion: Local relations of the links, and the symbols of what is evaluated from them; None where the
            equations are written out.
        constraint_forces: Unknown forces as a linear solve whose entries may contain ``u_dot``; None if there are none.
        events: That the model says itself.
        contacts: Unilateral ones, of which ``all_events`` has the impacts; None where there are none.
        latches: What events hold and release, in ``all_events``, too; None where there are none.
    """

    method: Method
    kinematics: KinematicEquations
    dynamics: MassMatrixDynamics | ArticulatedBodyStructure | None
    z_dot: tuple[sm.Expr, ...] = ()
    intermediates: tuple[Intermediate, ...] = ()
    late_intermediates: tuple[SymbolAssignment, ...] = ()
    recursion: LinkRecursion | None = None
    constraint_forces: LinearSystemAssignment | None = None
    events: tuple[EventDefinition, ...] = ()
    contacts: ContactEquations | None = None
    latches: LatchEquations | None = None


@dataclass(frozen=True, kw_only=True)
class EquationsOfMotion(MotionVariables, MotionConstraints, MotionDynamics, MotionObservables):
    """The equations of one mechanism by one formulation: variables, constraints, dynamics, observables."""

    def __post_init__(self) -> None:
        faults = [*self._shape_faults(), *self._symbol_faults()]
        if faults:
            raise FormulationError(f"the equations formed by {self.method} break their own laws:", faults)

    @property
    def mass_and_forcing(self) -> MassMatrixDynamics:
        """Mass matrix M and right-hand side f; ``TypeError`` if the dynamics are a recursion."""
        if not isinstance(self.dynamics, MassMatrixDynamics):
            raise TypeError(f"{self.method} has no mass matrix")
        return self.dynamics

    def _repr_latex_(self) -> str:
        """Return the equations as LaTeX, for notebooks."""
        return notebook_display_registry.render_record_as_latex(self)

    @property
    def u_dependent(self) -> tuple[int, ...]:
        """Indices of the dependent speeds."""
        return tuple(i for i in range(len(self.u)) if i not in self.u_independent)

    @property
    def q_independent(self) -> tuple[int, ...]:
        """Indices of the coordinates that are states."""
        return tuple(i for i in range(len(self.q)) if i not in self.q_dependent)

    @property
    def all_events(self) -> tuple[EventDefinition, ...]:
        """All events: those declared in the model, then those of latches and contacts."""
        return (
            *self.events,
            *form_contact_and_latch_events(self.latches, self.contacts, tuple(self.u), tuple(self.u_independent)),
        )

    @property
    def redundant_rows(self) -> frozenset[int]:
        """Numbers of the rows of ``velocity_constraints`` that are ``redundant``."""
        names = self.velocity_constraints.names if self.velocity_constraints else ()
        return frozenset(i for i, name in enumerate(names) if name in self.redundant)

    @property
    def redundant_positions(self) -> frozenset[int]:
        """Numbers of the ``position_rows`` that follow from others."""
        return self.redundant_rows & set(range(len(self.holonomic)))

    @property
    def position_lengths(self) -> tuple[float, ...]:
        """Typical lengths of the ``position_rows``; (): all 1."""
        lengths = self.row_lengths[: len(self.holonomic)]
        return (*lengths, *(1.0 for _ in self.kinematic_invariants)) if lengths else ()

    @property
    def solved_start_states(self) -> frozenset[sm.Symbol]:
        """States whose start values the FMU solves for from constraints on positions, beginning at guesses.

        Where dependent coordinates are no states, what is left is free, but for what kinematic invariants hold.
        """
        guesses = frozenset(s.symbol for s in self.start if s.kind == "guess") & set(self.states)
        if self.holonomic and not self.q_dependent:
            return guesses
        return guesses & set().union(*(phi.free_symbols for _, phi in self.kinematic_invariants))

    @property
    def solved_start_quaternions(self) -> tuple[tuple[int, int, int, int], ...]:
        """Quaternions that the FMU solves for at the start and then brings to length 1."""
        return tuple(
            group for group in self.quaternions if self.solved_start_states.issuperset(self.q[k] for k in group)
        )

    @property
    def position_rows(self) -> tuple[tuple[str, sm.Expr], ...]:
        """All constraints on positions, (name, phi): holonomic rows, then kinematic invariants."""
        return (*self.holonomic, *self.kinematic_invariants)

    @property
    def states(self) -> tuple[sm.Symbol, ...]:
        """The FMU's continuous states: the independent q, the independent u, z."""
        return (*(self.q[i] for i in self.q_independent), *(self.u[i] for i in self.u_independent), *self.z)

    def _shape_faults(self) -> list[Fault]:
        """Return a fault for each matrix or list whose shape contradicts n_q, n_u, n_z or the number of constraints."""
        n_q, n_u, n_z = len(self.q), len(self.u), len(self.z)
        m = len(self.velocity_constraints.names) if self.velocity_constraints else 0
        laws = [
            *self._check_dynamics_shapes(),
            (self.kinematics.matrix.shape == (n_q, n_u), f"K has shape {self.kinematics.matrix.shape}"),
            (self.kinematics.offset.shape == (n_q, 1), f"k0 has shape {self.kinematics.offset.shape}"),
            (len(self.u_dot) == n_u, f"{len(self.u_dot)} symbols for u'"),
            (len(self.z_dot) == n_z, f"{len(self.z_dot)} derivatives for {n_z} auxiliary states"),
            (
                len(self.u_independent) == (n_u if self.treatment in ("attractor", "multipliers") else n_u - m),
                f"{n_u} speeds, {m} constraints, {len(self.u_independent)} independent",
            ),
            (
                len(self.q_dependent) in (0, len(self.holonomic)),
                f"{len(self.q_dependent)} dependent coordinates for {len(self.holonomic)} holonomic constraints",
            ),
            (
                len(self.warm_start) == (len(self.q_dependent) if self.treatment == "partition" else 0),
                f"{len(self.warm_start)} values to begin with for {len(self.q_dependent)} dependent coordinates",
            ),
            (len(self.row_lengths) in (0, m), f"{len(self.row_lengths)} typical lengths for {m} constraints"),
            (len(self.multipliers) in (0, m), f"{len(self.multipliers)} multipliers for {m} constraints"),
            (
                {self.q[i] for i in self.q_dependent if self.treatment == "explicit"}
                == {q for form in self.closed_forms for q in form.unknowns},
                f"closed forms of {sum(len(form.unknowns) for form in self.closed_forms)} dependent coordinates",
            ),
        ]
        for c in (self.velocity_constraints, self.reduction):
            if c is None:
                continue
            laws += [
                (c.jacobian.shape == (m, n_u), f"A has shape {c.jacobian.shape}"),
                (c.offset.shape == (m, 1), f"b has shape {c.offset.shape}"),
                (c.bias.shape == (m, 1), f"gamma has shape {c.bias.shape}"),
            ]
        return [Fault(text) for holds, text in laws if not holds]

    def _check_dynamics_shapes(self) -> list[tuple[bool, str]]:
        """Return (holds, message) for the shapes of the mass matrix and forcing, or for the recursion's joints."""
        d, n_u = self.dynamics, len(self.u)
        if d is None:
            return []
        if isinstance(d, ArticulatedBodyStructure):
            joint_speeds = sorted(j for joint in d.joints for j in joint)
            return [
                (self.recursion is not None, "articulated bodies without a recursion"),
                (joint_speeds == list(range(n_u)), f"joints with the speeds {joint_speeds}"),
                (self.velocity_constraints is None, "articulated bodies with velocity constraints"),
            ]
        rows, m = d.mass_matrix.rows, len(self.velocity_constraints.names) if self.velocity_constraints else 0
        return [
            (rows in (n_u, n_u - m), f"mass matrix with {rows} rows for {n_u} speeds and {m} constraints"),
            (d.mass_matrix.cols == n_u, f"mass matrix with {d.mass_matrix.cols} columns"),
            (d.forcing.shape == (rows, 1), f"forcing has shape {d.forcing.shape}"),
        ]

    def _symbol_faults(self) -> list[Fault]:
        """Return one fault per expression with an undefined symbol."""
        symbols = _DefinedSymbols({self.t, *self.q, *self.u, *self.z, *self.p, *self.r})
        self._use_intermediate_symbols(symbols)
        self._use_dynamics_symbols(symbols)
        self._use_acceleration_level_symbols(symbols)
        return symbols.faults

    def _use_intermediate_symbols(self, symbols: _DefinedSymbols) -> None:
        """Check and define calculated parameters, closed forms of loops and intermediates, in order of evaluation."""
        for calculated in self.calculated_parameters:
            symbols.define(calculated.symbol, calculated.expression)
        symbols_at_loop_closure = _DefinedSymbols(
            symbols.known - {*self.u, *self.z, *(self.q[i] for i in self.q_dependent)}
        )
        for form in self.closed_forms:
            for assignment in form.assignments:
                symbols_at_loop_closure.define(assignment.symbol, assignment.expression)
            symbols_at_loop_closure.check_expression(form.name, *form.conditions)
        symbols.known |= symbols_at_loop_closure.known
        symbols.faults += symbols_at_loop_closure.faults
        if self.recursion:
            symbols.known |= {symbol for quantity in self.recursion.quantities for symbol in quantity.symbols}
        for item in self.intermediates:
            if isinstance(item, SymbolAssignment):
                symbols.define(item.symbol, item.expression)
            else:
                symbols.check_expression(item.name, item.matrix, item.right_hand_side)
                symbols.known.update(item.unknowns)

    def _use_dynamics_symbols(self, symbols: _DefinedSymbols) -> None:
        """Check everything that accelerations and multipliers are solved from."""
        symbols.check_expression("kinematics", self.kinematics.matrix, self.kinematics.offset)
        if isinstance(self.dynamics, MassMatrixDynamics):
            symbols.check_expression("dynamics", self.dynamics.mass_matrix, self.dynamics.forcing)
        for c in (self.velocity_constraints, self.reduction):
            if c is not None:
                symbols.check_expression("velocity constraints", c.jacobian, c.offset, c.bias)
        for row in (*(self.contacts.each if self.contacts else ()), *(self.latches.rows if self.latches else ())):
            symbols.check_expression(row.name, row.position, row.jacobian, row.offset, row.bias)
        symbols.check_expression(
            "holonomic constraints", *(phi for _, phi in (*self.holonomic, *self.kinematic_invariants))
        )
        rates = [self.attractor_rate] if self.attractor_rate is not None else []
        symbols.check_expression("rates of the treatment", *rates, *(self.baumgarte or ()))

    def _use_acceleration_level_symbols(self, symbols: _DefinedSymbols) -> None:
        """Check and define, in the order of evaluation, everything that may contain accelerations and multipliers."""
        symbols.known |= {*self.u_dot, *self.multipliers, *(self.contacts.symbols if self.contacts else ())}
        if self.latches:
            symbols.known |= {*self.latches.forces, *self.latches.impact_unknowns}
        if self.constraint_forces:
            unknowns = self.constraint_forces
            symbols.check_expression("constraint forces", unknowns.matrix, unknowns.right_hand_side)
            symbols.known |= set(unknowns.unknowns)
        symbols.check_expression("z'", *self.z_dot)
        for item in self.late_intermediates:
            symbols.define(item.symbol, item.expression)
        for event in self.all_events:
            symbols.check_expression(event.name, event.condition, *(value for _, value in event.settings))
        if self.velocity_constraints:
            symbols.known |= DIAGNOSTIC_SYMBOLS.all
        for output in self.outputs:
            symbols.check_expression(output.name, output.expression)


@dataclass
class _DefinedSymbols:
    """The symbols that are defined at one point of the evaluation, and a fault for each use of another one."""

    known: set[sm.Symbol]
    faults: list[Fault] = field(default_factory=list)

    def check_expression(self, where: str, *expressions: sm.Basic) -> None:
        """Note a fault if an expression contains an undefined symbol; ``where`` names its place."""
        unknown = list_free_symbols(expressions) - self.known
        if unknown:
            problem = f"uses {', '.join(sorted(map(str, unknown)))}, which nothing defines"
            self.faults.append(Fault(problem, where))

    def define(self, symbol: sm.Symbol, expression: sm.Basic) -> None:
        """Define a symbol by an expression of those that are defined already."""
        self.check_expression(str(symbol), expression)
        self.known.add(symbol)
