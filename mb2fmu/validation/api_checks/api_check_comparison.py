"""Compare the values that API calls during the perturbed run recorded with the reference.

Numbers that come of the same calls (a parameter read, a row of the run) must have the same bits. Numbers that the
reference knows may differ by the agreement = 1e-5 + 10 · FACTOR · tolerance of their size (the FMU's state may be off
by FACTOR · tolerance), plus twenty times the difference of the reference's own finite differences with two step sizes;
numbers that the reference knows no better than to 5 % are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import ValidationError
from mb2fmu.model.declarations.model_declarations import Declarations
from mb2fmu.model.scales.characteristic_units import choose_attractor_rate
from mb2fmu.validation.api_checks.api_call_plan import (
    ONE_BY_ONE_CHECK,
    ApiCallPlan,
    ApiCallScenario,
    compute_largest_rates,
    list_state_and_input_changes,
    list_typical_changes,
)
from mb2fmu.validation.api_checks.directional_derivative_consistency import compare_derivative_calls
from mb2fmu.validation.api_checks.extreme_state_checks import EXTREMES, compare_extreme_points
from mb2fmu.validation.api_checks.unusual_step_checks import RAMPS, SOLVERS, STEPS, UnusualStepComparison
from mb2fmu.validation.bounds.bounded_differences import BoundedDifferences
from mb2fmu.validation.bounds.one_step_flow import ExperimentCommunicationStep, OneStepFlow, start_flow_in_modes
from mb2fmu.validation.bounds.stabilization_allowance import compute_stabilization_effect
from mb2fmu.validation.comparison.motion_comparison import CONTRADICTED_MARGIN, ErrorBounds, find_fmu_switch_modes
from mb2fmu.validation.modes.hybrid_equations import HybridEquations
from mb2fmu.validation.modes.mode_equations import SwitchModes
from mb2fmu.validation.reference.experiment_values import evaluate_calculated_parameters
from mb2fmu.validation.reference.finite_differences import DirectionalDifferences, compute_variable_time_derivatives
from mb2fmu.validation.reference.variable_scales import (
    ERROR_BOUND_FACTOR,
    MAX_INFORMATIVE_FRACTION,
    enlarge_sizes_of_zeros,
)
from mb2fmu.validation.runs.fmu_run import FmuProcessResult, FmuSimulationResult
from mb2fmu.validation.validation_result import ApiCheckResult

Floats = npt.NDArray[np.float64]
RecordedValues = Mapping[str, Any]
"""Label of a call → the values that it recorded."""

NOT_OFFERED = "the FMU does not offer it"
_RELATIVE_AGREEMENT = 1e-5
_UNCERTAINTY_FACTOR = 20.0
_KNOWN_FRACTION = 0.05
_NOISE_FRACTION = 1e-8
_DUE_TIME_FRACTION = 1e-12  # of the experiment: an instant so near behind a point falls on it


def compare_api_checks(
    definition: Declarations,
    scenario: ApiCallScenario,
    plan: ApiCallPlan,
    fmu_result: FmuProcessResult,
    limits: ErrorBounds,
) -> tuple[ApiCheckResult, ...]:
    """Return one result per family of calls.

    Args:
        definition: The checked model.
        scenario: Where the calls were made.
        plan: The requested calls.
        fmu_result: Results of the FMU: the last of its experiments is the perturbed one.
        limits: Bounds of the perturbed experiment.
    """
    comparison = _ApiCheckComparison(
        definition, scenario, plan, fmu_result.recorded_values, limits, fmu_result.simulations[-1]
    )
    return tuple(comparison.results())


@dataclass(slots=True)
class _ApiCheckComparison:
    """Compares the API checks of one interface type with the reference.

    Attributes:
        definition: The checked model.
        scenario: Where the calls were made.
        plan: The requested calls.
        values: API check → values that its calls recorded.
        limits: Bounds of the perturbed experiment.
        simulation: The FMU's uninterrupted run of it.
    """

    definition: Declarations
    scenario: ApiCallScenario
    plan: ApiCallPlan
    values: Mapping[str, list[Any]]
    limits: ErrorBounds
    simulation: FmuSimulationResult
    _rates: Floats = field(init=False)
    _modes: dict[int, SwitchModes] = field(
        init=False
    )  # of points near an event: those of the side on which the FMU was

    def __post_init__(self) -> None:
        self._rates = compute_largest_rates(self.scenario.reference)
        self._modes = find_fmu_switch_modes(self.scenario.reference, self.limits, self.simulation)

    def results(self) -> Iterator[ApiCheckResult]:
        """Compare each family of calls; one that was not planned is unjudged with its reason, or left out."""
        for check in _CHECKS:
            if check.sequence not in self.plan.sequences:
                reason = self._reason_not_planned(check)
                if reason:
                    yield self._result(check, BoundedDifferences(), reason)
                continue
            sequence, values, table = (
                self.plan.sequences[check.sequence],
                self.values[check.sequence],
                BoundedDifferences(),
            )
            failure = values[-1]["failed"] if values and isinstance(values[-1], dict) else ""
            if failure:
                table.add(np.inf, 0.0, f"{sequence.operations[len(values) - 1][0]}: {failure}")
            else:
                check.compare(self, sequence.label_recorded_values(values), table)
            yield self._result(check, table, "" if table.count else "there is nothing to compare")

    def _reason_not_planned(self, check: _ApiCheck) -> str:
        """Return why calls were not made; empty where they do not exist for this interface type or version."""
        if not check.reported_if_absent or (check.kind and check.kind != self.plan.kind):
            return ""
        if check.sequence == "directional" and self.scenario.derivatives_before_change is None:
            return "the reference has no derivatives there"
        return NOT_OFFERED

    def _result(self, check: _ApiCheck, error_table: BoundedDifferences, unjudged: str) -> ApiCheckResult:
        """Return the verdict of one family from its largest ratio of error to bound; above 1 it has failed."""
        reason = unjudged
        if not unjudged and error_table.ratio > 1:
            reason = f"{error_table.worst_place}: off by {error_table.value:.3g}, bound {error_table.bound:.3g}"
        return ApiCheckResult(
            name=check.name,
            kind=self.plan.kind,
            formula=check.formula,
            value=error_table.value,
            bound=error_table.bound,
            ratio=error_table.ratio,
            where=error_table.worst_place,
            count=error_table.count,
            verdict="unjudged" if unjudged else "failed" if error_table.ratio > 1 else "passed",
            reason=reason,
        )

    @property
    def _agreement(self) -> float:
        """The largest relative difference from the reference that is no fault."""
        return _RELATIVE_AGREEMENT + 10 * ERROR_BOUND_FACTOR * self.scenario.reference.experiment.tolerance

    @property
    def _run_parameters(self) -> tuple[float, ...]:
        """The free parameters of the perturbed experiment."""
        return self.scenario.reference.experiment.parameters

    # --- sessions

    def compare_values(self, recorded: RecordedValues, error_table: BoundedDifferences) -> None:
        """Compare all variables at start and end: settings and records to the bit, the others within their bounds."""
        run, row = self.scenario.reference.experiment, self.scenario.row
        time, names = run.time, self.simulation.names
        error_table.add_identical_rows(recorded["rows"], self.simulation.values[1 : row + 1], names, time[1 : row + 1])
        for recorded_reals, point in ((recorded["start"], 0), (recorded["end"], row)):
            values = dict(zip(self.plan.real_variables, recorded_reals, strict=True))
            self._compare_parameters_and_inputs(values, point, run.parameters, error_table)
            for name, value in zip(names, self.simulation.values[point].tolist(), strict=True):
                error_table.add_identical(values[name], value, f"{name} at {time[point]:.6g} s")
            self._compare_rates_and_outputs(
                values, (point, self._find_modes(point)), run.parameters, error_table, f"at {time[point]:.6g} s"
            )
        for state, nominal in zip(self.plan.states, recorded.get("nominals", ()), strict=False):
            declared = self.plan.nominals.get(state, nominal)
            error_table.add(abs(nominal - declared), 1e-9 * declared, f"nominal value of {state}")
        for kind, discrete in self.plan.discrete_parameters.items():
            for name, recorded_value, set_value in zip(
                discrete, recorded[kind], self.plan.discrete_start_values[kind], strict=True
            ):
                error_table.add_identical(float(recorded_value), float(set_value), name)

    def _find_modes(self, point: int) -> SwitchModes | None:
        """Return the modes at a point: of the FMU's side of an event, or in which the reference sticks; else None.

        While it sticks an integrator leaves a slip of round-off (a block on a plate that shakes), which is none. An FMU
        that slides is off by the whole difference then.
        """
        modes, reference = self._modes.get(point), self.scenario.reference
        numeric, run = reference.numeric, reference.experiment
        if modes is not None or not reference.modes or not isinstance(numeric, HybridEquations):
            return modes
        sticking = reference.modes[point]
        if not any(sticking.values[i] == 0.0 for i in numeric.signs):
            return None
        columns = [self.simulation.names.index(reference.trajectory.names[c]) for c in reference.state_columns]
        state, inputs = self.simulation.values[point, columns], run.inputs_at(point).tolist()
        prepared = numeric.prepare(run.parameters)
        contradiction = numeric.mode_contradiction(float(run.time[point]), state, inputs, prepared, sticking)
        return sticking if contradiction <= CONTRADICTED_MARGIN else None

    def _compare_parameters_and_inputs(
        self, values: Mapping[str, float], row: int, parameters: Sequence[float], error_table: BoundedDifferences
    ) -> None:
        """Compare parameters (calculated ones too) and inputs with the values that were set."""
        scenario, experiment_settings = self.scenario, self.scenario.experiment_settings
        free = [p.name for p in self.definition.parameters if not p.calculated]
        for name, value in zip(free, parameters, strict=True):
            if name in experiment_settings.overridden_values and name in values:
                error_table.add_identical(values[name], value, name)
        for name, value in evaluate_calculated_parameters(self.definition, parameters).items():
            if name in values and set(free) <= set(values):
                error_table.add(abs(values[name] - value), 1e-12 * abs(value) + 1e-300, name)
        for name, value in zip(self.plan.inputs, scenario.reference.experiment.inputs_at(row).tolist(), strict=True):
            error_table.add_identical(values[name], value, name)

    def _compare_rates_and_outputs(
        self,
        values: Mapping[str, float],
        point_and_modes: tuple[int, SwitchModes | None],
        parameters: Sequence[float],
        error_table: BoundedDifferences,
        situation: str,
        parameters_before: Sequence[float] | None = None,
    ) -> None:
        """Compare rates and outputs with the reference's at the FMU's own state.

        Args:
            values: All that the FMU shows.
            point_and_modes: Number of the point, and the modes there where they do not follow from the state.
            parameters: Free ones.
            error_table: Takes the comparisons.
            situation: For people.
            parameters_before: Parameters before the event just now, the modes behind which are the FMU's; None: there
                was none.
        """
        reference, (row, modes) = self.scenario.reference, point_and_modes
        numeric, run = reference.numeric, reference.experiment
        x = np.array([values[reference.trajectory.names[c]] for c in reference.state_columns])
        t = float(run.time[row])
        try:
            r = run.inputs_at(row).tolist()
            prepared = numeric.prepare(list(parameters))
            prepared_before = prepared if parameters_before is None else numeric.prepare(list(parameters_before))
            prepared_after = None if parameters_before is None else prepared
            with start_flow_in_modes(numeric, modes), numeric.keep_modes(t, x, r, prepared_before, prepared_after):
                motion = numeric.motion(t, x, r, prepared)
        except (ValidationError, ArithmeticError, ValueError):
            return
        scale = ERROR_BOUND_FACTOR * run.tolerance
        places = self._state_places()
        for state, rate in zip(self.plan.states, self.plan.rates, strict=True):
            if state in places and rate in values:
                j = places[state]
                expected = float(motion.x_dot[j])
                error_table.add(
                    abs(values[rate] - expected), scale * max(self._rates[j], abs(expected)), f"{rate} {situation}"
                )
        outputs = [v.name for v in reference.variables if v.kind == "output"]
        for name, expected in zip(outputs, motion.outputs.tolist(), strict=True):
            allowed = float(self.limits.values[row, reference.trajectory.column(name)])
            error_table.add(abs(values[name] - expected), max(allowed, scale * abs(expected)), f"{name} {situation}")

    def _state_places(self) -> dict[str, int]:
        """Return name of a state of the reference → its place in x."""
        reference = self.scenario.reference
        return {reference.trajectory.names[c]: j for j, c in enumerate(reference.state_columns)}

    def compare_tuning(self, recorded: RecordedValues, error_table: BoundedDifferences) -> None:
        """Compare x', outputs and later steps after parameters changed during the run with a reference of the new."""
        scenario = self.scenario
        expected = [scenario.changed_parameters[i] for i in scenario.tuned_parameters]
        for name, recorded_value, set_value in zip(
            self.plan.tuned_parameters, recorded["parameters"], expected, strict=True
        ):
            error_table.add_identical(recorded_value, set_value, name)
        if not scenario.tuned_parameters:
            return
        values = dict(zip(self.plan.real_variables, recorded["after the change"], strict=True))
        start_modes = self._modes.get(scenario.row)
        if self.plan.kind == "ModelExchange":
            start_modes = self._compare_states_after_change(values, error_table)
            parameters_before = scenario.reference.experiment.parameters
            point_and_modes = (scenario.row, start_modes)
            self._compare_rates_and_outputs(
                values, point_and_modes, scenario.changed_parameters, error_table, "after the change", parameters_before
            )
        modes = self._compare_one_step_states(values, recorded["rows"], start_modes, error_table)
        end_values, end_point = (
            dict(zip(self.plan.real_variables, recorded["end"], strict=True)),
            scenario.row + scenario.steps_after,
        )
        self._compare_parameters_and_inputs(end_values, end_point, scenario.changed_parameters, error_table)
        self._compare_rates_and_outputs(
            end_values, (end_point, modes), scenario.changed_parameters, error_table, "after the change"
        )

    def _compare_states_after_change(
        self, values: Mapping[str, float], error_table: BoundedDifferences
    ) -> SwitchModes | None:
        """Compare states after a change of parameters with the reference's event from the FMU's states before.

        An instant that falls on the point may come in that event, with the new parameters, or behind it.

        Returns:
            Modes in which the motion goes on, where they do not follow from the state: near an event.
        """
        scenario = self.scenario
        reference, run = scenario.reference, scenario.reference.experiment
        numeric, names = reference.numeric, self.simulation.names
        states = [reference.trajectory.names[c] for c in reference.state_columns]
        x = np.array([self.simulation.values[scenario.row, names.index(name)] for name in states])
        t, r = float(run.time[scenario.row]), run.inputs_at(scenario.row).tolist()
        modes_after = self._modes.get(scenario.row)
        prepared_before, prepared_after = (
            numeric.prepare(run.parameters),
            numeric.prepare(list(scenario.changed_parameters)),
        )
        try:
            with start_flow_in_modes(numeric, modes_after):
                expected = numeric.state_after_parameter_change(t, x, r, prepared_before, prepared_after)
                if scenario.row in self.limits.sides_near_events and isinstance(numeric, HybridEquations):
                    modes = numeric.find_modes(t, x, r, prepared_before)
                    state_after_due_event = numeric.settle_modes(
                        t + _DUE_TIME_FRACTION * float(run.time[-1]), x, r, prepared_after, modes, ()
                    )[0]
                    fmu_state = np.array([values[name] for name in states])
                    scales = reference.state_scales
                    if np.max(np.abs(fmu_state - state_after_due_event) / scales) < np.max(
                        np.abs(fmu_state - expected) / scales
                    ):
                        expected, modes_after = state_after_due_event, modes
        except (ValidationError, ArithmeticError, ValueError):
            return modes_after
        for name, value, scale in zip(states, expected.tolist(), reference.state_scales.tolist(), strict=True):
            allowed = ERROR_BOUND_FACTOR * run.tolerance * max(abs(value), scale)
            error_table.add(abs(values[name] - value), allowed, f"{name} as parameters change")
        return modes_after

    def _compare_one_step_states(
        self,
        values: Mapping[str, float],
        rows: Sequence[Sequence[float]],
        modes: SwitchModes | None,
        error_table: BoundedDifferences,
    ) -> SwitchModes | None:
        """Compare states step by step with the reference's, from the FMU's own, with the changed parameters.

        Co-Simulation reconsiders modes at the beginning of the first step, Model Exchange has done so in its event:
        a contact whose gap the new parameters lift opens there.

        ``modes``: in which the first step begins; None: those of the state.

        Returns:
            Modes at the end, where they do not follow from the state: near an event.
        """
        scenario = self.scenario
        reference, names = scenario.reference, self.simulation.names
        columns = [names.index(reference.trajectory.names[c]) for c in reference.state_columns]
        states = [[values[reference.trajectory.names[c]] for c in reference.state_columns]]
        states += [[row[c] for c in columns] for row in rows]
        run, flow = reference.experiment, OneStepFlow(reference, scenario.changed_parameters)
        parameters_before = None if self.plan.kind == "ModelExchange" else run.parameters
        for k, (state_before, state_after) in enumerate(pairwise(states), scenario.row):
            try:
                fmu_state = np.array(state_after) if k + 1 in self.limits.sides_near_events else None
                step = ExperimentCommunicationStep(
                    k,
                    modes,
                    fmu_state,
                    tuple(parameters_before) if parameters_before is not None and k == scenario.row else None,
                )
                step_end = flow.compute_step_end(step, np.array(state_before))
            except (ValidationError, ArithmeticError, ValueError):
                return None
            modes = step_end.modes if step.fmu_state_near_event is not None else None
            step_size = np.maximum(np.abs(step_end.x - state_before), reference.state_scales)
            allowed, error = ERROR_BOUND_FACTOR * run.tolerance * step_size, np.abs(np.array(state_after) - step_end.x)
            if np.any(error > allowed):
                delay_shift = flow.compute_delay_shift(step, np.array(state_before), step_end, self.plan.kind)
                cap = MAX_INFORMATIVE_FRACTION * step_size
                same_event_error, other_event_error = flow.compute_error_after_events(
                    step, np.array(state_before), step_end, np.minimum(allowed, cap)
                )
                allowed = np.minimum(allowed + delay_shift + same_event_error, cap) + other_event_error
            for j, c in enumerate(reference.state_columns):
                place = f"step of {reference.trajectory.names[c]} from {run.time[k]:.6g} s"
                error_table.add(float(error[j]), float(allowed[j]), place)
        return modes

    def compare_directional(self, recorded: RecordedValues, error_table: BoundedDifferences) -> None:
        """Compare directional derivatives with differences of the reference, before and after parameters change."""
        assert self.scenario.derivatives_before_change is not None
        after_change = self.scenario.derivatives_after_change(self.plan.kind)
        assert after_change is not None
        parameters_before, parameters_after = self._run_parameters, self.scenario.changed_parameters
        self._compare_partial_derivatives(
            self.scenario.derivatives_before_change, np.array(recorded["before"]), error_table, "", parameters_before
        )
        self._compare_partial_derivatives(
            after_change, np.array(recorded["after"]), error_table, " after parameters changed", parameters_after
        )

    def compare_adjoint(self, recorded: RecordedValues, error_table: BoundedDifferences) -> None:
        """Compare adjoint derivatives times directions with differences of the reference."""
        assert self.scenario.derivatives_before_change is not None
        after_change = self.scenario.derivatives_after_change(self.plan.kind)
        assert after_change is not None
        for directions, derivatives, situation, parameters in (
            (self.scenario.derivatives_before_change, recorded["before"], "", self._run_parameters),
            (after_change, recorded["after"], " after parameters changed", self.scenario.changed_parameters),
        ):
            changes = np.array(list_state_and_input_changes(directions, self.scenario.reference, self.plan.states))
            self._compare_partial_derivatives(
                directions, changes @ np.array(derivatives).T, error_table, situation, parameters
            )

    def compare_by_parameters(self, recorded: RecordedValues, error_table: BoundedDifferences) -> None:
        """Compare derivatives by parameters with differences of the reference."""
        assert self.scenario.by_parameters is not None
        directions = self.scenario.by_parameters
        self._compare_partial_derivatives(
            directions, np.array(recorded["derivatives"]), error_table, " by parameters", self._run_parameters
        )

    def compare_single_seeds(self, recorded: RecordedValues, error_table: BoundedDifferences) -> None:
        """Compare derivatives by one seed, of one unknown and in dense directions with each other."""
        places, largest = self._state_places(), self._magnitudes()
        rate_of = dict(zip(self.plan.rates, self.plan.states, strict=True))
        column = self.scenario.reference.trajectory.column
        scales = [self._rates[places[rate_of[n]]] if n in rate_of else largest[column(n)] for n in self.plan.unknowns]
        sizes = list_typical_changes(self.scenario, self.plan.states)
        noise = [_NOISE_FRACTION * float(scale) for scale in scales]
        derivatives = [recorded[str(number)] for number in range(len(recorded) - 1)]  # beside the rows before
        for difference, bound, place in compare_derivative_calls(derivatives, self.plan.unknowns, sizes, noise):
            error_table.add(difference, bound, place)

    def _compare_partial_derivatives(
        self,
        directions: DirectionalDifferences,
        derivatives: Floats,
        error_table: BoundedDifferences,
        situation: str,
        parameters: Sequence[float],
    ) -> None:
        """Compare ``derivatives``: a row per direction, a column per unknown; drift stabilization is allowed for.

        ``parameters``: free ones at that point.
        """
        reference, places = self.scenario.reference, self._state_places()
        names, row = self.simulation.names, self.scenario.row
        columns = [names.index(reference.trajectory.names[c]) for c in reference.state_columns]
        x, attractor_rate = self.simulation.values[row, columns], choose_attractor_rate(self.definition)
        largest, stabilization_effect = (
            self._magnitudes(),
            compute_stabilization_effect(reference, directions, row, x, parameters, attractor_rate),
        )
        rate_of = dict(zip(self.plan.rates, self.plan.states, strict=True))
        for column, name in enumerate(self.plan.unknowns):
            if name in rate_of:
                if rate_of[name] not in places:
                    continue
                j = places[rate_of[name]]
                expected, uncertainty, scale = (
                    directions.rates[:, j],
                    directions.rate_errors[:, j],
                    float(self._rates[j]),
                )
            else:
                j = reference.trajectory.column(name)
                expected, uncertainty, scale = (
                    directions.variables[:, j],
                    directions.variable_errors[:, j],
                    float(largest[j]),
                )
            size = float(np.max(np.abs(expected), initial=0.0))
            for d in range(len(derivatives)):
                if _UNCERTAINTY_FACTOR * uncertainty[d] > _KNOWN_FRACTION * max(size, _NOISE_FRACTION * scale):
                    error_table.left_out_count += 1
                    continue
                allowed = self._agreement * size + _UNCERTAINTY_FACTOR * uncertainty[d] + _NOISE_FRACTION * scale
                allowed += float(stabilization_effect[d, j]) if name in rate_of else 0.0
                error_table.add(
                    abs(derivatives[d, column] - expected[d]), float(allowed), f"{name} in direction {d + 1}{situation}"
                )

    def compare_extremes(self, recorded: RecordedValues, error_table: BoundedDifferences) -> None:
        """Compare x' and outputs at points beyond the experiments with the reference's at the FMU's own state."""
        reference, names = self.scenario.reference, self.plan.real_variables
        values = [each if isinstance(each, str) else dict(zip(names, each, strict=True)) for each in recorded["points"]]
        outputs = [k for k, v in enumerate(reference.variables) if v.kind == "output"]
        largest = np.max(np.abs(reference.trajectory.values), axis=0)[outputs]
        units = [reference.variables[k].unit for k in outputs]
        sizes = enlarge_sizes_of_zeros(self._magnitudes()[outputs], largest, units, reference.work_scale)
        sizes = np.concatenate([self._rates, sizes])
        rates = dict(zip(self.plan.states, self.plan.rates, strict=True))
        compare_extreme_points(self.scenario.extreme_points, values, reference, rates, sizes, error_table)

    def compare_steps(self, recorded: RecordedValues, error_table: BoundedDifferences) -> None:
        """Compare tiny and long steps from another start time with the reference."""
        assert self.scenario.steps is not None
        UnusualStepComparison(self.scenario.steps, error_table).compare_steps(recorded[STEPS])

    def compare_solvers(self, recorded: RecordedValues, error_table: BoundedDifferences) -> None:
        """Compare a step by each solver that the FMU offers with the reference."""
        assert self.scenario.steps is not None
        UnusualStepComparison(self.scenario.steps, error_table).compare_solvers(recorded)

    def compare_ramps(self, recorded: RecordedValues, error_table: BoundedDifferences) -> None:
        """Compare a step along ramps of the inputs with the reference, and what was saved with that."""
        assert self.scenario.steps is not None
        UnusualStepComparison(self.scenario.steps, error_table).compare_ramps(recorded)

    def _magnitudes(self) -> Floats:
        """Return each compared variable's magnitude, > 0, shape (n,), for bounds of round-off."""
        reference = self.scenario.reference
        return np.asarray(np.maximum(np.max(np.abs(reference.trajectory.values), axis=0), reference.scales))

    def compare_output_derivatives(self, recorded: RecordedValues, error_table: BoundedDifferences) -> None:
        """Compare time derivatives of outputs with differences of the reference; skip those it does not know well."""
        reference = self.scenario.reference
        try:
            expected, uncertainty = compute_variable_time_derivatives(reference, self.scenario.point)
        except (ValidationError, ArithmeticError, ValueError):
            return
        values, time = reference.trajectory.values, reference.experiment.time
        steepest = np.max(np.abs(np.diff(values, axis=0)), axis=0) / np.diff(time)[0]
        for name, derivative in zip(self.plan.differentiated_outputs, recorded["slopes"], strict=True):
            j = reference.trajectory.column(name)
            size = max(float(steepest[j]), abs(float(expected[j])))
            if _UNCERTAINTY_FACTOR * uncertainty[j] > _KNOWN_FRACTION * size:
                error_table.left_out_count += 1
                continue
            noise = _NOISE_FRACTION * float(self._magnitudes()[j]) / float(time[1])
            error_table.add(
                abs(derivative - expected[j]),
                self._agreement * size + _UNCERTAINTY_FACTOR * float(uncertainty[j]) + noise,
                name,
            )


@dataclass(frozen=True, slots=True)
class _ApiCheck:
    """One family of calls and its comparison.

    Attributes:
        sequence: Name of its calls in the plan.
        name: In the report.
        formula: What is compared with what, for the report.
        compare: Adds the comparisons to a table.
        reported_if_absent: Whether the report says that the FMU does not offer it.
        kind: The only interface type that has it; empty: both have.
    """

    sequence: str
    name: str
    formula: str
    compare: Callable[[_ApiCheckComparison, RecordedValues, BoundedDifferences], None]
    reported_if_absent: bool = True
    kind: str = ""


_Compare = _ApiCheckComparison
_CHECKS = (
    _ApiCheck("values", "every variable read and set", "bits of what was set and recorded; der(x) against x'",
              _Compare.compare_values),
    _ApiCheck("tuning", "parameters changed during the run",
              "x', outputs and steps from there against the reference", _Compare.compare_tuning),
    _ApiCheck("directional", "directional derivatives", "against differences of the reference's x' and outputs",
              _Compare.compare_directional),
    _ApiCheck("adjoint", "adjoint derivatives", "times directions, against the same differences",
              _Compare.compare_adjoint, reported_if_absent=False),
    _ApiCheck("by parameters", "derivatives by parameters", "against differences of the reference by parameters",
              _Compare.compare_by_parameters, reported_if_absent=False),
    _ApiCheck(ONE_BY_ONE_CHECK, "derivatives one by one",
              "against all in one call, and adjoint against directional ones", _Compare.compare_single_seeds,
              reported_if_absent=False),
    _ApiCheck(EXTREMES, "values beyond the experiments", "x' and outputs against the reference's there",
              _Compare.compare_extremes, reported_if_absent=False),
    _ApiCheck(STEPS, "other start times and step sizes", "states behind tiny and long steps against the reference",
              _Compare.compare_steps, reported_if_absent=False),
    _ApiCheck(SOLVERS, "each solver", "states behind a step against the reference", _Compare.compare_solvers,
              reported_if_absent=False),
    _ApiCheck(RAMPS, "ramps of inputs", "states behind a step against the reference; saved ones the same bits",
              _Compare.compare_ramps, reported_if_absent=False),
    _ApiCheck("output derivatives", "derivatives of outputs in time", "against differences along the reference",
              _Compare.compare_output_derivatives, kind="CoSimulation"),
)  # fmt: skip
