"""Plan the API checks during the perturbed run: sequences of calls for the driver, with labels of what is compared.

The plan requests everything that only the reference can judge: values of all variables, derivatives of both kinds by
states, inputs and parameters, derivatives of outputs by time, and the motion after tunable parameters were changed.
What an FMU can be compared with itself in (states saved, restored and serialized, resets) is the auditor's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import ValidationError
from mb2fmu.model.declarations.model_declarations import Declarations
from mb2fmu.validation.api_checks.call_sequence import ApiCallSequence
from mb2fmu.validation.api_checks.directional_derivative_consistency import plan_single_seed_calls
from mb2fmu.validation.api_checks.extreme_state_checks import (
    EXTREMES,
    ExtremePoint,
    choose_extreme_points,
    make_point_evaluation_call,
)
from mb2fmu.validation.api_checks.unusual_step_checks import (
    StepCheckScenario,
    choose_step_scenario,
    plan_unusual_step_calls,
)
from mb2fmu.validation.bounds.experiment_perturbation_sizes import round_to_significant_digits
from mb2fmu.validation.comparison.motion_comparison import ErrorBounds
from mb2fmu.validation.experiment.perturbed_experiment import compute_constraint_row_scales, list_settable_names
from mb2fmu.validation.reference.experiment_values import ExperimentValues
from mb2fmu.validation.reference.finite_differences import (
    DirectionalDifferences,
    FiniteDifferencePoint,
    compute_parameter_differences,
    compute_state_and_input_differences,
)
from mb2fmu.validation.reference.reference_run import ReferenceRun
from mb2fmu.validation.runs.fmu_description import FmuDescription, InterfaceCapabilities, InterfaceType
from mb2fmu.validation.runs.fmu_run import Operations

Floats = npt.NDArray[np.float64]

PERTURBED_EXPERIMENT_INDEX = 1
"""Index of the perturbed experiment among those that the driver is given."""
ONE_BY_ONE_CHECK = "one by one"
STEPS_AFTER_CHANGE = 3
MAX_BOUND_GROWTH = 30.0
"""What bounds of states may have grown by where calls are made: derivatives are known to that many tolerances."""
_MAX_UNKNOWNS = 40
_CLOSURE_TOLERANCE = 1e-10


@dataclass(frozen=True, slots=True)
class ApiCallScenario:
    """Place and values of the calls; the same for all interface types of an FMU.

    Attributes:
        reference: Of the perturbed experiment.
        experiment_settings: Values that are set in the FMU before the experiment.
        row: The communication point.
        steps_after: Steps that are made from there.
        tuned_parameters: Indices of the free parameters that are changed there: tunable ones that leave the loops
            closed.
        changed_parameters: All free parameters after that.
        derivatives_before_change: Derivatives there, by states and inputs.
        derivatives_in_old_modes: The same after the change, in the modes before it: Co-Simulation reconsiders them as
            it steps on.
        derivatives_in_new_modes: The same in the modes behind the event that the change is in Model Exchange.
        by_parameters: Derivatives by ``tuned_parameters``, one by one; in the last direction with states and inputs.
        extreme_points: Points beyond both experiments.
        steps: Where other steps begin than those of the experiments; None where there are none.
    """

    reference: ReferenceRun
    experiment_settings: ExperimentValues
    row: int
    steps_after: int
    tuned_parameters: tuple[int, ...]
    changed_parameters: tuple[float, ...]
    derivatives_before_change: DirectionalDifferences | None
    derivatives_in_old_modes: DirectionalDifferences | None
    derivatives_in_new_modes: DirectionalDifferences | None
    by_parameters: DirectionalDifferences | None
    extreme_points: tuple[ExtremePoint, ...] = ()
    steps: StepCheckScenario | None = None

    @property
    def point(self) -> FiniteDifferencePoint:
        """The point before the change."""
        run = self.reference.experiment
        return FiniteDifferencePoint(self.row, run.inputs_at(self.row), run.parameters)

    def derivatives_after_change(self, kind: InterfaceType) -> DirectionalDifferences | None:
        """Return the derivatives after the change, in the form of an interface type."""
        return self.derivatives_in_new_modes if kind == "ModelExchange" else self.derivatives_in_old_modes


def choose_api_call_scenario(
    definition: Declarations,
    default: ReferenceRun,
    reference: ReferenceRun,
    experiment_settings: ExperimentValues,
    description: FmuDescription,
    limits: ErrorBounds,
) -> ApiCallScenario:
    """Choose the point, half-way through the perturbed experiment, and the parameters to change there.

    The point is earlier where the motion is sensitive: the FMU evaluates at its own state, and its values are
    compared with those at the reference's state, so both must still be close to each other. ``limits``: of the
    perturbed experiment.
    """
    run = reference.experiment
    steps = len(run.time) - 1
    steps_after = min(STEPS_AFTER_CHANGE, steps // 3)
    row = _find_point_apart_from_events(
        limits, _latest_predictable_point(reference, limits, min(steps // 2, steps - steps_after - 1))
    )
    free = [p for p in definition.parameters if not p.calculated]
    values, tuned, row_scales = list(run.parameters), [], compute_constraint_row_scales(reference)
    for k, parameter in enumerate(free):
        variable = description.variables.get(parameter.name)
        if variable is None or not variable.settable or variable.variability != "tunable" or not parameter.tunable:
            continue
        # Between the moved value and the default: where the mechanism works. Again no two are equal.
        fraction = 0.35 + 0.3 * ((k + 1) * 0.6180339887498949 % 1.0)
        target = round_to_significant_digits(values[k] + fraction * (default.experiment.parameters[k] - values[k]))
        if target != values[k] and _keeps_constraints_closed(reference, row_scales, row, k, target):
            values[k] = target
            tuned.append(k)
    inputs, settable = run.inputs_at(row), list_settable_names(description)
    point_before, point_after = (
        FiniteDifferencePoint(row, inputs, run.parameters),
        FiniteDifferencePoint(row, inputs, tuple(values)),
    )
    return ApiCallScenario(
        reference=reference,
        experiment_settings=experiment_settings,
        row=row,
        steps_after=steps_after,
        tuned_parameters=tuple(tuned),
        changed_parameters=tuple(values),
        derivatives_before_change=_result_or_none(lambda: compute_state_and_input_differences(reference, point_before)),
        derivatives_in_old_modes=_result_or_none(lambda: compute_state_and_input_differences(reference, point_after)),
        derivatives_in_new_modes=_result_or_none(
            lambda: compute_state_and_input_differences(reference, replace(point_after, after_event=True))
        ),
        by_parameters=_result_or_none(lambda: compute_parameter_differences(reference, point_before, tuned)),
        extreme_points=choose_extreme_points(definition, reference, row, settable, compute_largest_rates(reference)),
        steps=choose_step_scenario(definition, reference, row, limits, settable),
    )


def _latest_predictable_point(reference: ReferenceRun, limits: ErrorBounds, latest: int) -> int:
    """Return the latest point of predictable states whose bounds have grown by at most :data:`MAX_BOUND_GROWTH`."""
    columns = list(reference.state_columns)
    if not columns:
        return latest
    allowed = limits.values[: latest + 1, columns]
    growth = np.max(allowed / np.where(allowed[0] > 0, allowed[0], np.inf), axis=1)
    too_large = np.flatnonzero(growth > MAX_BOUND_GROWTH)
    last_predictable = int(np.min(limits.predictable_points[columns])) - 1
    return max(min(latest, last_predictable, int(too_large[0]) - 1 if too_large.size else latest), min(1, latest))


def _find_point_apart_from_events(limits: ErrorBounds, latest: int) -> int:
    """Return the latest point not near an event; if every point is near one (samples), the latest of all."""
    return next((row for row in range(latest, 0, -1) if row not in limits.sides_near_events), latest)


def _result_or_none(measure: Callable[[], DirectionalDifferences]) -> DirectionalDifferences | None:
    """Return the result; None where the reference leaves the domain of an expression."""
    try:
        return measure()
    except (ValidationError, ArithmeticError, ValueError):
        return None


def _keeps_constraints_closed(reference: ReferenceRun, row_scales: Floats, row: int, index: int, value: float) -> bool:
    """Return whether the state at a row obeys the constraints with another parameter value.

    ``row_scales``: of the constraint rows.
    """
    numeric, run = reference.numeric, reference.experiment
    parameters = list(run.parameters)
    parameters[index] = value
    t, x = float(run.time[row]), reference.states[row]
    try:
        motion_before = numeric.motion(t, x, run.inputs_at(row).tolist(), numeric.prepare(run.parameters))
        motion_after = numeric.motion(t, x, run.inputs_at(row).tolist(), numeric.prepare(parameters))
    except (ValidationError, ArithmeticError, ValueError):
        return False
    if not np.all(np.isfinite(motion_after.x_dot)):
        return False
    scales = reference.scales[numeric.n_q : numeric.n_q + numeric.n_u]
    is_open = np.any(np.abs(motion_after.residual - motion_before.residual) > _CLOSURE_TOLERANCE * row_scales)
    return not is_open and bool(np.all(np.abs(motion_after.u - motion_before.u) <= _CLOSURE_TOLERANCE * scales))


@dataclass(frozen=True, slots=True)
class ApiCallPlan:
    """Calls for one interface type of an FMU, with the names of the value references.

    Attributes:
        kind: How it is run.
        sequences: API check → its calls.
        real_variables: Every variable of doubles.
        states: Continuous states, in order; () where the description does not list them.
        rates: Their derivatives.
        unknowns: Of derivatives: rates, then outputs.
        inputs: Names of the inputs.
        tuned_parameters: Names of the parameters changed during the run.
        differentiated_outputs: Outputs whose derivatives by time are requested.
        discrete_parameters: Integer and Boolean parameters that are set before the run: type → names.
        discrete_start_values: Type → the values that they are set to.
        nominals: State → its nominal value, where the description has one.
    """

    kind: InterfaceType
    sequences: Mapping[str, ApiCallSequence]
    real_variables: tuple[str, ...]
    states: tuple[str, ...]
    rates: tuple[str, ...]
    unknowns: tuple[str, ...]
    inputs: tuple[str, ...]
    tuned_parameters: tuple[str, ...]
    differentiated_outputs: tuple[str, ...]
    discrete_parameters: Mapping[str, tuple[str, ...]]
    discrete_start_values: Mapping[str, list[int]]
    nominals: Mapping[str, float]

    @property
    def operations(self) -> dict[str, Operations]:
        """API check → operations, for the driver."""
        return {name: sequence.operations for name, sequence in self.sequences.items()}


def plan_api_calls(
    scenario: ApiCallScenario, definition: Declarations, description: FmuDescription, kind: InterfaceType
) -> ApiCallPlan:
    """Return the calls for one interface type of an FMU."""
    variables, reference = description.variables, scenario.reference
    free = [p.name for p in definition.parameters if not p.calculated]
    states, rates = (
        zip(*description.state_derivative_pairs, strict=True) if description.state_derivative_pairs else ((), ())
    )
    compared = [v.name for v in reference.variables if variables[v.name].causality == "output"]
    outputs = tuple(name for name in compared if name not in states)[: max(4, _MAX_UNKNOWNS - len(rates))]
    has_output_derivatives = kind == "CoSimulation" and description.capabilities[kind].output_derivatives
    discrete = _list_settable_discrete_parameters(description)
    plan = ApiCallPlan(
        kind=kind,
        sequences={},
        real_variables=tuple(name for name, v in variables.items() if v.is_double),
        states=states,
        rates=rates,
        unknowns=(*rates, *outputs),
        inputs=reference.experiment.input_names,
        tuned_parameters=tuple(free[k] for k in scenario.tuned_parameters),
        differentiated_outputs=tuple(compared) if has_output_derivatives else (),
        discrete_parameters=discrete,
        discrete_start_values={t: _read_start_values(description, names) for t, names in discrete.items()},
        nominals={v.name: nominal for v in description.model.states if (nominal := v.number("nominal")) is not None},
    )
    references = {name: variable.reference for name, variable in variables.items()}
    sequences = _plan_value_calls(scenario, plan, references)
    sequences |= _plan_derivative_calls(scenario, plan, references, description.capabilities[kind])
    settable = list_settable_names(description)
    if scenario.extreme_points:
        read = [references[name] for name in plan.real_variables]
        call = make_point_evaluation_call(scenario.extreme_points, reference, references, settable, free, read)
        sequences[EXTREMES] = ApiCallSequence().with_operation(*call, label="points")
    if scenario.steps is not None:
        sequences |= plan_unusual_step_calls(scenario.steps, definition, description, settable, kind)
    return replace(plan, sequences=sequences)


def _plan_calls_to_point(scenario: ApiCallScenario) -> ApiCallSequence:
    """Return the calls that lead to the point of the API checks."""
    return (
        ApiCallSequence()
        .with_operation("begin", PERTURBED_EXPERIMENT_INDEX)
        .with_operation("steps", PERTURBED_EXPERIMENT_INDEX, 0, scenario.row, label="rows before")
    )


def _form_parameter_change_call(
    scenario: ApiCallScenario, plan: ApiCallPlan, references: Mapping[str, int]
) -> tuple[Any, ...]:
    """Return the call that changes tunable parameters."""
    return (
        "tune",
        [references[name] for name in plan.tuned_parameters],
        [scenario.changed_parameters[i] for i in scenario.tuned_parameters],
    )


def _plan_value_calls(
    scenario: ApiCallScenario, plan: ApiCallPlan, references: Mapping[str, int]
) -> dict[str, ApiCallSequence]:
    """Return the calls that set and read variables, change parameters, and read derivatives of outputs."""
    last = scenario.row + scenario.steps_after
    real_references = [references[name] for name in plan.real_variables]
    values = ApiCallSequence()
    for t, names in plan.discrete_parameters.items():
        values = values.with_operation("put", t, [references[name] for name in names], plan.discrete_start_values[t])
    values = values.with_operation("begin", PERTURBED_EXPERIMENT_INDEX).with_operation(
        "get", real_references, label="start"
    )
    values = values.with_operation("steps", PERTURBED_EXPERIMENT_INDEX, 0, scenario.row, label="rows").with_operation(
        "get", real_references, label="end"
    )
    if plan.kind == "ModelExchange" and plan.nominals:
        values = values.with_operation("nominals", label="nominals")
    for t, names in plan.discrete_parameters.items():
        values = values.with_operation("look", t, [references[name] for name in names], label=t)
    tuning = _plan_calls_to_point(scenario).with_operation(*_form_parameter_change_call(scenario, plan, references))
    tuning = tuning.with_operation("get", [references[name] for name in plan.tuned_parameters], label="parameters")
    tuning = tuning.with_operation("get", real_references, label="after the change")
    tuning = tuning.with_operation(
        "steps", PERTURBED_EXPERIMENT_INDEX, scenario.row, last, label="rows"
    ).with_operation("get", real_references, label="end")
    sequences = {"values": values, "tuning": tuning}
    if plan.differentiated_outputs:
        output_references = [references[name] for name in plan.differentiated_outputs]
        sequences["output derivatives"] = _plan_calls_to_point(scenario).with_operation(
            "slopes", output_references, 1, label="slopes"
        )
    return sequences


def _plan_derivative_calls(
    scenario: ApiCallScenario, plan: ApiCallPlan, references: Mapping[str, int], capabilities: InterfaceCapabilities
) -> dict[str, ApiCallSequence]:
    """Return the calls for derivatives: by states and inputs before and after a change of parameters, by parameters."""
    after_change = scenario.derivatives_after_change(plan.kind)
    unknown = [references[name] for name in plan.unknowns]
    if not (
        capabilities.directional and plan.states and unknown and scenario.derivatives_before_change and after_change
    ):
        return {}
    reference, sequence_to_point = scenario.reference, _plan_calls_to_point(scenario)
    change = _form_parameter_change_call(scenario, plan, references)
    known_references = [references[name] for name in (*plan.states, *plan.inputs)]
    tuned = [references[name] for name in plan.tuned_parameters]
    before, after = (
        list_state_and_input_changes(d, reference, plan.states)
        for d in (scenario.derivatives_before_change, after_change)
    )
    directional_calls = sequence_to_point.with_operation(
        "directional", unknown, known_references, before, label="before"
    ).with_operation(*change)
    sequences = {
        "directional": directional_calls.with_operation("directional", unknown, known_references, after, label="after")
    }
    if capabilities.adjoint:
        rows = np.eye(len(unknown)).tolist()
        adjoint = sequence_to_point.with_operation(
            "adjoint", unknown, known_references, rows, label="before"
        ).with_operation(*change)
        sequences["adjoint"] = adjoint.with_operation("adjoint", unknown, known_references, rows, label="after")
    if tuned and scenario.by_parameters:
        sizes = scenario.by_parameters.parameters[:, list(scenario.tuned_parameters)].tolist()
        variable_changes = list_state_and_input_changes(scenario.by_parameters, reference, plan.states)
        rows = [[*a, *b] for a, b in zip(variable_changes, sizes, strict=True)] if variable_changes else sizes[:-1]
        changed_references = (
            [*known_references, *tuned] if variable_changes else tuned
        )  # a state that the reference does not have cannot be moved
        sequences["by parameters"] = sequence_to_point.with_operation(
            "directional", unknown, changed_references, rows, label="derivatives"
        )
    single_changes = list_typical_changes(scenario, plan.states)
    if single_changes:
        calls = plan_single_seed_calls(
            unknown, [*known_references, *tuned], single_changes, adjoint=capabilities.adjoint
        )
        for number, call in enumerate(calls):
            sequence_to_point = sequence_to_point.with_operation(*call, label=str(number))
        sequences[ONE_BY_ONE_CHECK] = sequence_to_point
    return sequences


def list_typical_changes(scenario: ApiCallScenario, states: Sequence[str]) -> list[float]:
    """Return typical changes of the FMU's states, of the inputs and of the parameters changed; [] if not known."""
    assert scenario.derivatives_before_change is not None
    changes = np.array(list_state_and_input_changes(scenario.derivatives_before_change, scenario.reference, states))
    if not changes.size:
        return []
    values = np.abs(np.array(scenario.reference.experiment.parameters)[list(scenario.tuned_parameters)])
    largest = np.append(np.max(np.abs(changes), axis=0), values)
    return np.where(largest > 0, largest, 1.0).tolist()  # type: ignore[no-any-return]


def list_state_and_input_changes(
    directions: DirectionalDifferences, reference: ReferenceRun, states: Sequence[str]
) -> list[list[float]]:
    """Return changes of the FMU's states and of the inputs, one row per direction."""
    columns = [reference.trajectory.column(name) for name in states if name in reference.trajectory.names]
    if len(columns) < len(states):
        return []
    return np.hstack([directions.variables[:, columns], directions.inputs]).tolist()  # type: ignore[no-any-return]


def _list_settable_discrete_parameters(description: FmuDescription) -> dict[str, tuple[str, ...]]:
    """Return integer and Boolean parameters that can be set before a run."""
    names_by_type: dict[str, list[str]] = {}
    for name, variable in description.variables.items():
        is_candidate = (
            not variable.is_double and variable.is_scalar and variable.causality == "parameter" and variable.settable
        )
        if is_candidate and variable.kind in {"Integer", "Enumeration", "Boolean", "Int64", "Int32", "UInt64"}:
            names_by_type.setdefault(variable.kind, []).append(name)
    return {kind: tuple(names) for kind, names in names_by_type.items()}


def _read_start_values(description: FmuDescription, names: Sequence[str]) -> list[int]:
    """Return start values as the description has them."""
    texts = [description.variables[name].start for name in names]
    return [int(text == "true") if text in {"true", "false"} else int(text) for text in texts]


def compute_largest_rates(reference: ReferenceRun) -> Floats:
    """Return the largest |x'| of each state at some points of the experiment, > 0."""
    numeric, run = reference.numeric, reference.experiment
    prepared = numeric.prepare(run.parameters)
    rows = np.unique(np.linspace(0, len(run.time) - 1, 10).astype(np.int64)).tolist()
    rates = [
        np.abs(numeric.x_dot(float(run.time[k]), reference.states[k], run.inputs_at(k).tolist(), prepared)[0])
        for k in rows
    ]
    # A rate that is smaller than that moves the state by less than its scale in the whole experiment.
    smallest_rates = reference.state_scales / float(run.time[-1])
    return np.asarray(np.maximum(np.max(rates, axis=0), smallest_rates))
