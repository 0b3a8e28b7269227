"""Where the API checks during the perturbed run are made, and what their calls are planned from.

The calls request what only the reference can judge: values of all variables, derivatives of both kinds by states,
inputs and parameters, derivatives of outputs by time, and the motion after tunable parameters were changed. The
families of calls, each with its comparison, are in ``api_check_families``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import ValidationError
from mb2fmu.model.declarations.declared_content_and_experiment import DeclaredModelContent
from mb2fmu.validation.api_checks.extreme_state_checks import ExtremeEvaluationPoint, choose_extreme_state_points
from mb2fmu.validation.api_checks.labelled_api_calls import ApiCallSequence
from mb2fmu.validation.api_checks.unusual_step_checks import UnusualStepCheckStart, choose_unusual_step_check_start
from mb2fmu.validation.bounds.perturbation_and_excitation_sizes import round_to_significant_digits
from mb2fmu.validation.comparison.motion_comparison import ErrorBounds
from mb2fmu.validation.experiment.perturbed_experiment import compute_constraint_row_scales, list_settable_fmu_variables
from mb2fmu.validation.reference.experiment_values import ExperimentValues
from mb2fmu.validation.reference.finite_differences import (
    DirectionalDifferences,
    FiniteDifferencePoint,
    compute_parameter_differences,
    compute_state_and_input_differences,
)
from mb2fmu.validation.reference.reference_run import ReferenceRun
from mb2fmu.validation.runs.fmu_description_for_runs import FmuDescription, InterfaceCapabilities, InterfaceType
from mb2fmu.validation.runs.fmu_run import Operations

Floats = npt.NDArray[np.float64]

PERTURBED_EXPERIMENT_INDEX = 1
"""Index of the perturbed experiment among those that the driver is given."""
STEPS_AFTER_CHANGE = 3
MAX_BOUND_GROWTH = 30.0
"""What bounds of states may have grown by where calls are made: derivatives are known to that many tolerances."""
_MAX_UNKNOWNS = 40
_CLOSURE_TOLERANCE = 1e-10


@dataclass(frozen=True, slots=True)
class ApiCheckPoint:
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
    extreme_points: tuple[ExtremeEvaluationPoint, ...] = ()
    steps: UnusualStepCheckStart | None = None

    @property
    def point(self) -> FiniteDifferencePoint:
        """The point before the change."""
        run = self.reference.experiment
        return FiniteDifferencePoint(self.row, run.inputs_at(self.row), run.parameters)

    def derivatives_after_change(self, kind: InterfaceType) -> DirectionalDifferences | None:
        """Return the derivatives after the change, in the form of an interface type."""
        return self.derivatives_in_new_modes if kind == "ModelExchange" else self.derivatives_in_old_modes


def choose_api_check_point(
    definition: DeclaredModelContent,
    default: ReferenceRun,
    reference: ReferenceRun,
    experiment_settings: ExperimentValues,
    description: FmuDescription,
    limits: ErrorBounds,
) -> ApiCheckPoint:
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
    inputs, settable = run.inputs_at(row), list_settable_fmu_variables(description)
    point_before, point_after = (
        FiniteDifferencePoint(row, inputs, run.parameters),
        FiniteDifferencePoint(row, inputs, tuple(values)),
    )
    return ApiCheckPoint(
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
        extreme_points=choose_extreme_state_points(
            definition, reference, row, settable, compute_largest_state_rates(reference)
        ),
        steps=choose_unusual_step_check_start(definition, reference, row, limits, settable),
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
        sequences: Name of an API check → its calls.
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
        """Name of an API check → operations, for the driver."""
        return {name: sequence.operations for name, sequence in self.sequences.items()}


@dataclass(frozen=True, slots=True)
class ApiCallPlanner:
    """What the calls for one interface type of an FMU are planned from.

    Attributes:
        check_point: Where the calls are made.
        definition: The checked model.
        description: Of the FMU.
        plan: Names of what is read and set; its sequences are not there yet.
    """

    check_point: ApiCheckPoint
    definition: DeclaredModelContent
    description: FmuDescription
    plan: ApiCallPlan

    @property
    def capabilities(self) -> InterfaceCapabilities:
        """Capabilities of the interface type."""
        return self.description.capabilities[self.plan.kind]

    def list_references(self, names: Sequence[str]) -> list[int]:
        """Return the value references of variables."""
        return [self.description.variables[name].reference for name in names]

    def plan_calls_to_point(self) -> ApiCallSequence:
        """Return the calls that lead to the point of the API checks."""
        return (
            ApiCallSequence()
            .with_operation("begin", PERTURBED_EXPERIMENT_INDEX)
            .with_operation("steps", PERTURBED_EXPERIMENT_INDEX, 0, self.check_point.row, label="rows before")
        )

    def form_parameter_change_call(self) -> tuple[Any, ...]:
        """Return the call that changes tunable parameters."""
        return (
            "tune",
            self.list_references(self.plan.tuned_parameters),
            [self.check_point.changed_parameters[i] for i in self.check_point.tuned_parameters],
        )


def make_api_check_planner(
    check_point: ApiCheckPoint, definition: DeclaredModelContent, description: FmuDescription, kind: InterfaceType
) -> ApiCallPlanner:
    """Return what the calls for one interface type of an FMU are planned from."""
    variables, reference = description.variables, check_point.reference
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
        tuned_parameters=tuple(free[k] for k in check_point.tuned_parameters),
        differentiated_outputs=tuple(compared) if has_output_derivatives else (),
        discrete_parameters=discrete,
        discrete_start_values={t: _read_start_values(description, names) for t, names in discrete.items()},
        nominals={v.name: nominal for v in description.model.states if (nominal := v.number("nominal")) is not None},
    )
    return ApiCallPlanner(check_point, definition, description, plan)


def list_direction_seeds(
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


def compute_largest_state_rates(reference: ReferenceRun) -> Floats:
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
