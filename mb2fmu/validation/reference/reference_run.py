"""The reference: integrate a model's experiment directly, sharing as little with the FMU as possible."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt
import sympy as sm

from mb2fmu.mechanics.equations.equations_of_motion import DIAGNOSTIC_SYMBOLS, EquationsOfMotion
from mb2fmu.mechanics.equations.observable_quantities import select_diagnostic_outputs
from mb2fmu.mechanics.mechanism import Mechanism
from mb2fmu.model.declarations.declared_content_and_experiment import DeclaredModelContent
from mb2fmu.model.scales.characteristic_units import estimate_characteristic_units, typical_motion_magnitudes
from mb2fmu.model.scales.switching_function_scales import estimate_switching_scales
from mb2fmu.validation.modes.hybrid_equations_recognition import is_hybrid
from mb2fmu.validation.modes.located_events import IntegrationEventLog
from mb2fmu.validation.reference.event_time_matching import find_points_between_matching_events
from mb2fmu.validation.reference.experiment_values import ExperimentValues, form_experiment_values
from mb2fmu.validation.reference.integration_standstill_diagnosis import diagnose_integration_standstill
from mb2fmu.validation.reference.perturbed_contact_starts import ContactGaps
from mb2fmu.validation.reference.smooth_integration import (
    TIGHTEST_SOLVER_TOLERANCE,
    IntegrationStandstillError,
)
from mb2fmu.validation.reference.trajectory_integration import (
    EVALUATION_BUDGET,
    MIN_EVALUATIONS_PER_STEP,
    TrajectoryIntegrationProblem,
    list_graded_step_instants,
)
from mb2fmu.validation.reference.trajectory_records import Trajectory
from mb2fmu.validation.reference.variable_scales import (
    ROUND_OFF_ALLOWANCE,
    compute_energy_scale,
    compute_motion_scales,
    compute_residual_scales_and_round_off,
    compute_tolerance_scales,
    estimate_start_scales,
    find_moving_variables,
)
from mb2fmu.validation.reference_equations.newton_euler import NewtonEulerEquations
from mb2fmu.validation.reference_equations.numeric_equations import InstantMotion, InstantMotions, NumericEquations

if TYPE_CHECKING:
    from mb2fmu.validation.modes.located_events import LocatedEvent
    from mb2fmu.validation.modes.mode_equations import SwitchModes

Floats = npt.NDArray[np.float64]
_VISITED_INSTANTS = 8
"""Instants of an experiment, at most, at which a coordinate is farthest; half as many are in between."""

ComparedVariableKind = Literal["coordinate", "speed", "state", "output"]

COARSE_TOLERANCE = 1e-12
COARSE_STRIDE = 4
_TRANSIENT_TOLERANCE = 1e-8
_ROUGH_TOLERANCE = 1e-6
_ROUGH_TOLERANCE_WITH_EVENTS = 1e-9
"""Events are located on an interpolant, which is as accurate as the steps: a sign must be at rest there, to 1e-9."""
ROUGH_RUN_POINTS = 200
ENERGY_SAMPLES = 40


@dataclass(frozen=True, slots=True)
class ComparedVariable:
    """A compared variable: FMU name, kind, unit, and ``nominal`` if it has one."""

    name: str
    kind: ComparedVariableKind
    unit: str
    nominal: float | None = None


@dataclass(frozen=True, slots=True)
class BalanceResidual:
    """A quantity of the reference that should vanish.

    Attributes:
        name: What balances.
        formula: How it is computed.
        values: Relative to ``scale``, shape (n_t,).
        scale: In ``unit``.
        unit: Of ``scale``.
    """

    name: str
    formula: str
    values: Floats
    scale: float
    unit: str

    @property
    def worst(self) -> float:
        """The largest magnitude."""
        return float(np.max(np.abs(self.values)))


@dataclass(frozen=True, slots=True)
class ReferenceRun:
    """A trajectory with all data that is needed to judge others by it.

    Attributes:
        trajectory: All coordinates, speeds (dependent ones too), auxiliary states and outputs.
        variables: One per column of the trajectory.
        states: x = (q, independent u, z) at each communication point, shape (n_t, n_x).
        state_columns: Columns of the trajectory that hold x.
        scales: Scale of each variable by its own motion, > 0, shape (n,); see ``variable_scales``.
        typical: Typical magnitude of each variable, > 0, shape (n,).
        natural_energy: Natural magnitude of energies, J.
        work: Integrated power delivered to the mechanism since t = 0, J, shape (n_t,).
        balances: The reference's own: energy, constraints.
        numeric: The equations as functions of numbers.
        experiment: The experiment.
        events: In their order.
        modes: At each communication point, at the end of the step before; empty where nothing switches.
        event_uncertainty: How far the instants of events of two runs are from each other, at most, s.
        diagnostic_outputs: Names of outputs about an FMU's own constraints, each with its symbol of
            ``DIAGNOSTIC_SYMBOLS``.
        transient_values: All variables at instants within steps in which fast motions may die out, shape (n_i, n).
    """

    trajectory: Trajectory
    variables: tuple[ComparedVariable, ...]
    states: Floats
    state_columns: tuple[int, ...]
    scales: Floats
    typical: Floats
    natural_energy: float
    work: Floats
    balances: tuple[BalanceResidual, ...]
    numeric: NumericEquations
    experiment: ExperimentValues
    events: tuple[LocatedEvent, ...] = ()
    modes: tuple[SwitchModes, ...] = ()
    event_uncertainty: float = 0.0
    diagnostic_outputs: tuple[tuple[str, sm.Symbol], ...] = ()
    transient_values: Floats = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def visited_values(self) -> Floats:
        """All variables at the communication points and at the instants between them, shape (n, n_v)."""
        values = self.trajectory.values
        return np.vstack([values, self.transient_values.reshape(-1, values.shape[1])])

    @property
    def state_scales(self) -> Floats:
        """The scale of each state, shape (n_x,)."""
        return self.scales[list(self.state_columns)]

    @property
    def largest_speeds(self) -> dict[str, float]:
        """FMU name of each speed → its largest magnitude."""
        largest = np.max(np.abs(self.trajectory.values), axis=0).tolist()
        return {v.name: size for v, size in zip(self.variables, largest, strict=True) if v.kind == "speed"}

    @property
    def visited_coordinates(self) -> tuple[dict[str, float], ...]:
        """FMU name of each coordinate → its value, where it goes farthest and at some instants in between."""
        columns = {v.name: k for k, v in enumerate(self.variables) if v.kind == "coordinate"}
        values = self.trajectory.values[:, list(columns.values())]
        if not values.size:
            return ()
        extreme_rows = np.stack([np.argmax(values, axis=0), np.argmin(values, axis=0)], axis=1).ravel()[
            :_VISITED_INSTANTS
        ]
        intermediate_rows = np.linspace(0, len(values) - 1, _VISITED_INSTANTS // 2 + 1).round().astype(int)[1:]
        rows = dict.fromkeys([*extreme_rows.tolist(), *intermediate_rows.tolist()])
        return tuple(dict(zip(columns, values[row].tolist(), strict=True)) for row in rows if row)

    @property
    def work_scale(self) -> float:
        """The scale of the work in J."""
        energies = [balance.scale for balance in self.balances if balance.name == "energy"]
        return compute_energy_scale(np.array(energies), self.work, self.natural_energy)

    def error_scales(self, tolerance: float) -> Floats:
        """Return scales of (x, W) for an integration with a relative ``tolerance``, shape (n_x + 1,)."""
        largest = np.append(np.max(np.abs(self.states), axis=0), self.work_scale)
        return compute_tolerance_scales(largest, np.append(self.typical[list(self.state_columns)], 0.0), tolerance)

    def find_undetermined_time(self, dependent: Sequence[int] | None = None) -> float | None:
        """Return when constraints first fail to determine the dependent speeds, s; None if never.

        Found where the determinant that they are solved with changes its sign between communication points.
        ``dependent``: as many speeds as there are rows; None: those of the equations.
        """
        run, numeric = self.experiment, self.numeric
        speeds = numeric.equations.u_dependent if dependent is None else dependent
        if not numeric.m or not speeds:
            return None
        points = run.form_points(self.states)
        signs = numeric.dependent_determinant_signs(points, numeric.prepare(run.parameters), speeds)
        changes = np.flatnonzero(signs * signs[0] < 0)
        return float(run.time[changes[0]]) if len(changes) else None


def make_reference(
    definition: DeclaredModelContent,
    equations: EquationsOfMotion,
    *,
    experiment: ExperimentValues | None = None,
    mechanism: Mechanism | None = None,
    numeric: NumericEquations | None = None,
) -> ReferenceRun:
    """Integrate the equations over the experiment twice; the difference is the reference's uncertainty.

    Method: Dormand-Prince 8(5, 3) with relative tolerance 2.3e-14 from communication point to communication point,
    inputs held in between. A second run has tolerance 1e-12 and longer steps: it lands on every fourth point only, or,
    where inputs change, takes one step where the first takes two. The uncertainty of a value is the running maximum of
    the difference between the two, plus 64 units of round-off of the variable's largest magnitude. Inputs jump at
    communication points: values there are those at the end of the step before (as an FMU shows them after ``doStep``).
    Where the model says stiff, both runs are made by Radau IIA collocation of order 13 instead.

    Args:
        definition: The checked model: names, experiment.
        equations: Of another formulation than the FMU's.
        experiment: Other numbers than the model's default experiment.
        mechanism: Given: the accelerations come from it by Newton-Euler, numerically; ``equations`` give outputs only.
        numeric: Of another reference of the same equations and mechanism, so that they are compiled once.

    Raises:
        ValidationError: If the experiment cannot be run: bad signals, singular or stiff equations, a gap of an impact
            that is negative at the start.
    """
    run, diagnostic_outputs = (
        experiment or form_experiment_values(definition),
        select_diagnostic_outputs(equations.outputs),
    )
    equations = drop_diagnostic_outputs(equations)
    numeric = numeric or (
        NewtonEulerEquations(mechanism, equations) if mechanism else make_numeric_equations(equations, definition)
    )
    numeric.compile()
    variables, columns = list_compared_variables(definition, equations), _find_states_among_compared_variables(numeric)
    units = estimate_characteristic_units(definition, _list_largest_inputs(definition, run))
    typical_magnitudes = np.array([units.magnitude(v.unit) if v.nominal is None else v.nominal for v in variables])
    energy = units.magnitude("J")
    integrated = _integrate_twice(numeric, run, typical_magnitudes[list(columns)], energy)
    transient = _observe_transients(numeric, run, integrated, typical_magnitudes[list(columns)], energy)
    is_moving = find_moving_variables(integrated.values, integrated.uncertainty, typical_magnitudes)
    scales = compute_motion_scales(np.vstack([integrated.values, transient]), is_moving, typical_magnitudes)
    return ReferenceRun(
        trajectory=Trajectory(
            names=tuple(v.name for v in variables),
            time=run.time,
            values=integrated.values,
            uncertainty=integrated.uncertainty,
            provenance=_describe_provenance(definition, numeric, run),
        ),
        variables=variables,
        states=integrated.motion[:, :-1],
        state_columns=columns,
        scales=scales,
        typical=typical_magnitudes,
        natural_energy=energy,
        work=integrated.motion[:, -1],
        balances=(
            *_compute_energy_balance(equations, integrated.kinetic, integrated.motion[:, -1], energy),
            *_compute_constraint_balance_residuals(numeric, run, integrated.residual, integrated.values, scales),
        ),
        numeric=numeric,
        experiment=run,
        events=tuple(integrated.event_log.events),
        modes=tuple(integrated.event_log.modes),
        event_uncertainty=integrated.time_uncertainty,
        diagnostic_outputs=diagnostic_outputs,
        transient_values=transient,
    )


@dataclass(frozen=True)
class _TwiceIntegratedExperiment:
    """The experiment integrated twice.

    Attributes:
        motion: (x, W) at the communication points, shape (n_t, n_x + 1).
        values: All compared variables, shape (n_t, n).
        kinetic: Kinetic energy in J, shape (n_t,).
        residual: Of all constraint rows, shape (n_t, n_phi + m).
        uncertainty: Of ``values``, the same shape.
        time_uncertainty: Uncertainty of the instants of events, s.
        event_log: Events and modes on the way.
    """

    motion: Floats
    values: Floats
    kinetic: Floats
    residual: Floats
    uncertainty: Floats
    time_uncertainty: float
    event_log: IntegrationEventLog


def _integrate_twice(
    numeric: NumericEquations, run: ExperimentValues, typical: Floats, energy: float
) -> _TwiceIntegratedExperiment:
    """Integrate from the start, finely and coarsely; ``typical``: sizes of x, shape (n_x,), ``energy``: natural, J."""
    prepared = numeric.prepare(run.parameters)
    start = np.concatenate([compute_start_state(numeric, run), [0.0]])
    ContactGaps(numeric).check_overlaps(start[:-1], run.inputs_at(0), prepared)
    largest_magnitudes, typical_sizes, event_log = (
        _run_roughly(numeric, run, start, typical, energy),
        np.append(typical, 0.0),
        IntegrationEventLog(),
    )
    error_scales = compute_tolerance_scales(largest_magnitudes, typical_sizes, TIGHTEST_SOLVER_TOLERANCE)
    motion = integrate_reference(
        numeric,
        run,
        start,
        TIGHTEST_SOLVER_TOLERANCE,
        error_scales,
        parts=1 if run.has_constant_inputs else 2,
        event_log=event_log,
    )
    values, kinetic, residual = observe_trajectory(numeric, run, motion[:, :-1], prepared, event_log.modes)
    uncertainty, time_uncertainty = _measure_uncertainty(
        numeric,
        run,
        start,
        compute_tolerance_scales(largest_magnitudes, typical_sizes, COARSE_TOLERANCE),
        values,
        event_log,
    )
    return _TwiceIntegratedExperiment(motion, values, kinetic, residual, uncertainty, time_uncertainty, event_log)


def _observe_transients(
    numeric: NumericEquations,
    run: ExperimentValues,
    integrated: _TwiceIntegratedExperiment,
    typical: Floats,
    energy: float,
) -> Floats:
    """Return all compared variables at instants within the first step and within those where inputs jump most.

    A stiff spring that does not begin where it rests vibrates, and has come to rest by the next communication point:
    its variables move much farther than all communication points show, and errors are relative to what they move by.
    Where events are in the first step there are no such instants.

    Args:
        numeric: The equations.
        run: The experiment.
        integrated: The experiment's motion.
        typical: Sizes of x, shape (n_x,).
        energy: Natural one, J.

    Returns:
        Shape (n_i, n).
    """
    prepared, work = numeric.prepare(run.parameters), integrated.motion[:, -1]
    largest = np.append(
        np.max(np.abs(integrated.motion[:, :-1]), axis=0), compute_energy_scale(integrated.kinetic, work, energy)
    )
    scales = compute_tolerance_scales(largest, np.append(typical, 0.0), _TRANSIENT_TOLERANCE)
    jumps = np.abs(np.diff(run.inputs, axis=0))
    steps = {0} if is_hybrid(numeric) or not jumps.any() else {0, *(np.argmax(jumps, axis=0) + 1)}
    transients = []
    for k in sorted(int(step) for step in steps):
        time = list_graded_step_instants(*run.time[k : k + 2].tolist())
        inputs = np.repeat(run.inputs[k : k + 1], len(time) - 1, axis=0)
        event_log = IntegrationEventLog()
        problem = TrajectoryIntegrationProblem(numeric, time, inputs, prepared, stiff=run.stiff)
        motion = problem.integrate_trajectory(
            integrated.motion[k], _TRANSIENT_TOLERANCE, scales, projected=numeric.has_state_constraints,
            event_log=event_log,
        )  # fmt: skip
        if event_log.events:
            continue
        held = np.repeat(run.inputs[k : k + 1], len(time), axis=0)
        instants = numeric.motions(time, motion[:, :-1], held, prepared)
        transients.append(list_compared_values(numeric, motion[:, :-1], instants))
    return np.vstack(transients) if transients else np.zeros((0, integrated.values.shape[1]))


def make_numeric_equations(equations: EquationsOfMotion, definition: DeclaredModelContent) -> NumericEquations:
    """Return the equations as functions of numbers, with events where something in them switches."""
    from mb2fmu.validation.modes.equations_between_events import form_equations_between_events

    frozen, typical = form_equations_between_events(equations), typical_motion_magnitudes(definition)
    if frozen is None:
        return NumericEquations(equations, typical)
    from mb2fmu.validation.modes.hybrid_equations import HybridEquations

    numeric, speeds = HybridEquations(frozen, typical), definition.speeds
    states = (*definition.coordinates, *(speeds[i] for i in equations.u_independent), *definition.auxiliary_states)
    steps = [switch.kind == "integer" for switch in frozen.switches]
    numeric.compile()  # else SymPy prints functions for Python, for a few dozen evaluations
    numeric.sizes = np.where(steps, 1.0, estimate_switching_scales(definition, states, numeric.surfaces, len(steps)))
    return numeric


def _list_largest_inputs(definition: DeclaredModelContent, run: ExperimentValues) -> list[tuple[float, str]]:
    """Return the largest magnitude of each input in the experiment, and its unit."""
    largest = np.max(np.abs(run.inputs), axis=0).tolist()
    return [(size, record.unit) for size, record in zip(largest, definition.inputs, strict=True)]


def choose_rough_tolerance(numeric: NumericEquations) -> float:
    """Return the relative tolerance of integrations of which only magnitudes are looked at."""
    return _ROUGH_TOLERANCE_WITH_EVENTS if is_hybrid(numeric) else _ROUGH_TOLERANCE


def _run_roughly(
    numeric: NumericEquations, run: ExperimentValues, start: Floats, typical: Floats, energy: float
) -> Floats:
    """Return the largest magnitudes of (x, W) in a rough run, shape (n_x + 1,); ``energy``: natural, J."""
    rough_experiment, _ = run.select_points(ROUGH_RUN_POINTS)
    start_scales = np.append(estimate_start_scales(start[:-1], typical), energy)
    trajectory = integrate_reference(numeric, rough_experiment, start, choose_rough_tolerance(numeric), start_scales)
    rows = np.unique(np.linspace(0, len(trajectory) - 1, ENERGY_SAMPLES).astype(np.int64))
    time, inputs = rough_experiment.time[rows], rough_experiment.inputs_at(rows)
    kinetic = numeric.motions(time, trajectory[rows, :-1], inputs, numeric.prepare(run.parameters)).kinetic
    work = compute_energy_scale(kinetic, trajectory[:, -1], energy)
    return np.append(np.max(np.abs(trajectory[:, :-1]), axis=0), work)


def _measure_uncertainty(
    numeric: NumericEquations,
    run: ExperimentValues,
    start: Floats,
    scales: Floats,
    values: Floats,
    fine_log: IntegrationEventLog,
) -> tuple[Floats, float]:
    """Return the running maximum of the difference to a coarser run plus round-off, like ``values``; of events, s.

    At a point between an event of the one and the same event of the other the difference is the jump: that is left out.
    """
    coarse_experiment, rows = run.select_points((len(run.time) - 1) // COARSE_STRIDE)
    coarse_log = IntegrationEventLog()
    coarse_trajectory = integrate_reference(
        numeric, coarse_experiment, start, COARSE_TOLERANCE, scales, event_log=coarse_log
    )
    coarse_values, _, _ = observe_trajectory(
        numeric, coarse_experiment, coarse_trajectory[:, :-1], numeric.prepare(run.parameters), coarse_log.modes
    )
    is_between_events, time_uncertainty = find_points_between_matching_events(
        coarse_experiment.time, fine_log.events, coarse_log.events
    )
    difference = np.maximum.accumulate(
        np.where(is_between_events[:, None], 0.0, np.abs(values[rows] - coarse_values)), axis=0
    )
    # Between the points of the coarser run: what it is at the next one.
    difference_at_all_points = difference[np.searchsorted(rows, np.arange(len(values)))]
    return np.asarray(difference_at_all_points + ROUND_OFF_ALLOWANCE * np.max(np.abs(values), axis=0)), time_uncertainty


def integrate_reference(
    numeric: NumericEquations,
    run: ExperimentValues,
    start: Floats,
    tolerance: float,
    scales: Floats,
    *,
    parts: int = 1,
    event_log: IntegrationEventLog | None = None,
) -> Floats:
    """Return (x, W) at each communication point, shape (n_t, n_x + 1), from ``start`` = (x, W).

    Raises:
        ValidationError: See :meth:`.TrajectoryIntegrationProblem.integrate_trajectory`.
    """
    budget = max(EVALUATION_BUDGET, MIN_EVALUATIONS_PER_STEP * (len(run.time) - 1) * parts)
    integration = TrajectoryIntegrationProblem(
        numeric, run.time, run.inputs, numeric.prepare(run.parameters), stiff=run.stiff, budget=budget
    )
    try:
        return integration.integrate_trajectory(
            start, tolerance, scales, parts=parts, projected=numeric.has_state_constraints, event_log=event_log
        )
    except IntegrationStandstillError as error:
        e = numeric.equations
        names = [symbol.name for symbol in (*e.q, *(e.u[i] for i in e.u_independent), *e.z)]
        step = min(int(np.searchsorted(run.time, error.time, side="right")), len(run.time) - 1) - 1
        raise diagnose_integration_standstill(error, integration.slope(max(step, 0)), names) from error


def compute_start_state(numeric: NumericEquations, run: ExperimentValues) -> Floats:
    """Return x at t = 0 from the start values; independent speeds keep theirs, dependent ones follow."""
    u = [run.u[i] for i in numeric.equations.u_independent]
    return numeric.project(0.0, np.array([*run.q, *u, *run.z]), run.inputs_at(0), numeric.prepare(run.parameters))


def _find_states_among_compared_variables(numeric: NumericEquations) -> tuple[int, ...]:
    """Return the places of x = (q, independent u, z) among the compared variables (q, all u, z, outputs)."""
    n_q, n_u, n_z = numeric.n_q, numeric.n_u, numeric.n_z
    speeds = (n_q + i for i in numeric.equations.u_independent)
    return (*range(n_q), *speeds, *range(n_q + n_u, n_q + n_u + n_z))


def observe_trajectory(
    numeric: NumericEquations,
    run: ExperimentValues,
    states: Floats,
    prepared: Sequence[float],
    modes: Sequence[SwitchModes] = (),
    *,
    first_point: int = 0,
) -> tuple[Floats, Floats, Floats]:
    """Return all compared variables (n_t, n), kinetic energy (n_t,) and constraint residuals (n_t, n_phi + m).

    ``modes``: of the run, one per communication point; without them they follow from the states. ``first_point``: the
    communication point of the first state.
    """
    points = np.arange(first_point, first_point + len(states))
    held = modes[first_point : first_point + len(states)]
    motions = observe_instants(numeric, run.time[points], states, run.inputs_at(points), prepared, held)
    return list_compared_values(numeric, states, motions), motions.kinetic, motions.residual


def observe_instants(
    numeric: NumericEquations,
    time: Floats,
    states: Floats,
    inputs: Floats,
    prepared: Sequence[float],
    modes: Sequence[SwitchModes],
) -> InstantMotions:
    """Return all quantities at many instants; ``modes``: one set for each, or none where they follow from states."""
    if modes and is_hybrid(numeric):
        return numeric.motions_in_modes(time, states, inputs, prepared, modes)
    return numeric.motions(time, states, inputs, prepared)


def observe_instant(
    numeric: NumericEquations,
    t: float,
    x: Floats,
    r: Sequence[float],
    prepared: Sequence[float],
    modes: SwitchModes | None,
) -> InstantMotion:
    """Return all quantities at one instant."""
    if modes is not None and is_hybrid(numeric):
        return numeric.motion_in_modes(t, x, r, prepared, modes)
    return numeric.motion(t, x, r, prepared)


def list_compared_values(numeric: NumericEquations, states: Floats, motions: InstantMotion | InstantMotions) -> Floats:
    """Return all compared variables at one instant, or a row of them for each of many instants."""
    first_z = states.shape[-1] - numeric.n_z
    return np.concatenate([states[..., : numeric.n_q], motions.u, states[..., first_z:], motions.outputs], axis=-1)


def list_compared_variables(
    definition: DeclaredModelContent, equations: EquationsOfMotion
) -> tuple[ComparedVariable, ...]:
    """Return the compared variables: coordinates, speeds, auxiliary states, outputs."""
    return (
        *(ComparedVariable(c.name, "coordinate", c.unit, c.nominal) for c in definition.coordinates),
        *(ComparedVariable(s.name, "speed", s.unit, s.nominal) for s in definition.speeds),
        *(ComparedVariable(z.name, "state", z.unit, z.nominal) for z in definition.auxiliary_states),
        *(ComparedVariable(o.name, "output", o.unit, o.nominal) for o in drop_diagnostic_outputs(equations).outputs),
    )


def drop_diagnostic_outputs(equations: EquationsOfMotion) -> EquationsOfMotion:
    """Return equations without outputs about an FMU's own constraints: they are not of the reference's motion."""
    outputs = tuple(o for o in equations.outputs if not o.expression.free_symbols & DIAGNOSTIC_SYMBOLS.all)
    return equations if outputs == equations.outputs else replace(equations, outputs=outputs)


def _compute_energy_balance(
    equations: EquationsOfMotion, kinetic: Floats, work: Floats, natural_energy: float
) -> tuple[BalanceResidual, ...]:
    """Return T - T(0) - W over the scale of energies; () if energies need not balance. ``natural_energy``: in J."""
    if equations.energy.kinetic is None or not equations.energy.balanced:
        return ()
    scale = compute_energy_scale(kinetic, work, natural_energy)
    return (BalanceResidual("energy", "T(t) − T(0) − W(t)", (kinetic - kinetic[0] - work) / scale, scale, "J"),)


def _compute_constraint_balance_residuals(
    numeric: NumericEquations, run: ExperimentValues, residual: Floats, values: Floats, scales: Floats
) -> tuple[BalanceResidual, ...]:
    """Return the largest residual of all constraint rows, each over its own scale."""
    if not residual.shape[1]:
        return ()
    sizes, _ = compute_constraint_scales(numeric, run, values, scales)
    n_phi = len(numeric.equations.position_rows)
    relative = np.abs(residual) / sizes
    return tuple(
        BalanceResidual(name, formula, np.max(residual_rows, axis=1), 1.0, "1")
        for name, formula, residual_rows in (
            ("position constraints", "φ(q, t)", relative[:, :n_phi]),
            ("velocity constraints", "A u + b", relative[:, n_phi:]),
        )
        if residual_rows.shape[1]
    )


def compute_constraint_scales(
    numeric: NumericEquations, run: ExperimentValues, values: Floats, scales: Floats
) -> tuple[Floats, Floats]:
    """Return scale and round-off of each row, by ``variable_scales.compute_residual_scales_and_round_off``."""
    n_q, n_u, n_z = numeric.n_q, numeric.n_u, numeric.n_z
    counts, points = (len(numeric.equations.position_rows), n_q), run.form_points(values[:, : n_q + n_u + n_z])
    return compute_residual_scales_and_round_off(
        numeric, counts, points, scales[: n_q + n_u], numeric.prepare(run.parameters)
    )


def _describe_provenance(
    definition: DeclaredModelContent, numeric: NumericEquations, run: ExperimentValues
) -> dict[str, object]:
    """Return the tools and settings of a reference, without time, place or machine."""
    return {
        "model": definition.name,
        "formulation": numeric.formulation,
        "evaluation": "printed in C, compiled" if numeric.compiled_equations else "sympy.lambdify(cse=True), scalar",
        "integrator": f"{'Radau IIA 13' if run.stiff else 'DOP853'}, every communication step by itself, inputs held",
        "tolerances": [TIGHTEST_SOLVER_TOLERANCE, COARSE_TOLERANCE],
        "stop": float(run.time[-1]),
        "step": run.step,
        "parameters": dict(
            zip((p.name for p in definition.parameters if not p.calculated), run.parameters, strict=True)
        ),
        "signals": dict(run.signals),
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": version("scipy"),
            "sympy": sm.__version__,
        },
    }
