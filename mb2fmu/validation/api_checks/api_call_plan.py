"""Plan the API checks during the perturbed run: sequences of calls for the driver, with labels of what is compared.

An FMU is asked for everything that only the reference can judge: values of all variables, derivatives of both kinds by
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
from mb2fmu.validation.api_checks.derivative_consistency import single_seed_calls
from mb2fmu.validation.bounds.perturbation_sizes import round_to_digits
from mb2fmu.validation.comparison.motion_comparison import ErrorBounds
from mb2fmu.validation.experiment.perturbed_experiment import compute_constraint_row_scales
from mb2fmu.validation.reference.experiment_numbers import ExperimentNumbers
from mb2fmu.validation.reference.finite_differences import (
    DifferencePoint,
    DirectionalDifferences,
    difference_parameters,
    difference_states_and_inputs,
)
from mb2fmu.validation.reference.reference_run import ReferenceRun
from mb2fmu.validation.runs.fmu_description import FmuDescription, InterfaceCapabilities, UnitKind
from mb2fmu.validation.runs.fmu_run import Operations

Floats = npt.NDArray[np.float64]

PERTURBED = 1
"""Index of the perturbed experiment among those that the driver is given."""
ONE_BY_ONE = "one by one"
STEPS_AFTER = 3
MAX_BOUND_GROWTH = 30.0
"""What bounds of states may have grown by where calls are made: derivatives are known to that many tolerances."""
_MOST_UNKNOWNS = 40
_CLOSED = 1e-10


@dataclass(frozen=True, slots=True)
class CallScenario:
    """Place and values of the calls; the same for all interface types of an FMU.

    Attributes:
        reference: Of the perturbed experiment.
        told: What the FMU was told before it.
        row: The communication point.
        steps_after: Steps that are made from there.
        tuned: Indices of the free parameters that are changed there: tunable ones that leave the loops closed.
        changed: All free parameters after that.
        before_change: Derivatives there, by states and inputs.
        after_change: The same after the change, in the modes before it: Co-Simulation reconsiders them as it steps on.
        after_event: The same in the modes behind the event that the change is in Model Exchange.
        by_parameters: Derivatives by ``tuned``, one by one; in the last direction with states and inputs.
    """

    reference: ReferenceRun
    told: ExperimentNumbers
    row: int
    steps_after: int
    tuned: tuple[int, ...]
    changed: tuple[float, ...]
    before_change: DirectionalDifferences | None
    after_change: DirectionalDifferences | None
    after_event: DirectionalDifferences | None
    by_parameters: DirectionalDifferences | None

    @property
    def point(self) -> DifferencePoint:
        """The point before the change."""
        run = self.reference.conditions
        return DifferencePoint(self.row, run.held(self.row), run.parameters)

    def behind(self, kind: UnitKind) -> DirectionalDifferences | None:
        """Return the derivatives after the change, in the form of an interface type."""
        return self.after_event if kind == "ModelExchange" else self.after_change


def choose_call_scenario(
    definition: Declarations,
    default: ReferenceRun,
    reference: ReferenceRun,
    told: ExperimentNumbers,
    description: FmuDescription,
    limits: ErrorBounds,
) -> CallScenario:
    """Choose the point, half-way through the perturbed experiment, and the parameters to change there.

    The point is earlier where the motion is sensitive: the FMU is asked where it is, and answers are compared with
    the reference's own state, so both must still be close to each other. ``limits``: of the perturbed experiment.
    """
    run = reference.conditions
    steps = len(run.time) - 1
    after = min(STEPS_AFTER, steps // 3)
    row = _apart_from_events(limits, _latest_predictable_point(reference, limits, min(steps // 2, steps - after - 1)))
    free = [p for p in definition.parameters if not p.calculated]
    values, tuned, sizes = list(run.parameters), [], compute_constraint_row_scales(reference)
    for k, parameter in enumerate(free):
        variable = description.variables.get(parameter.name)
        if variable is None or not variable.settable or variable.variability != "tunable" or not parameter.tunable:
            continue
        # Between the moved value and the default: where the mechanism works. Again no two are equal.
        part = 0.35 + 0.3 * ((k + 1) * 0.6180339887498949 % 1.0)
        target = round_to_digits(values[k] + part * (default.conditions.parameters[k] - values[k]))
        if target != values[k] and _stays_closed(reference, sizes, row, k, target):
            values[k] = target
            tuned.append(k)
    held = run.held(row)
    before, changed = DifferencePoint(row, held, run.parameters), DifferencePoint(row, held, tuple(values))
    return CallScenario(
        reference=reference,
        told=told,
        row=row,
        steps_after=after,
        tuned=tuple(tuned),
        changed=tuple(values),
        before_change=_result_or_none(lambda: difference_states_and_inputs(reference, before)),
        after_change=_result_or_none(lambda: difference_states_and_inputs(reference, changed)),
        after_event=_result_or_none(lambda: difference_states_and_inputs(reference, replace(changed, settled=True))),
        by_parameters=_result_or_none(lambda: difference_parameters(reference, before, tuned)),
    )


def _latest_predictable_point(reference: ReferenceRun, limits: ErrorBounds, latest: int) -> int:
    """Return the latest point of predictable states whose bounds have grown by at most :data:`MAX_BOUND_GROWTH`."""
    columns = list(reference.state_columns)
    if not columns:
        return latest
    allowed = limits.values[: latest + 1, columns]
    grown = np.max(allowed / np.where(allowed[0] > 0, allowed[0], np.inf), axis=1)
    far = np.flatnonzero(grown > MAX_BOUND_GROWTH)
    known = int(np.min(limits.judged[columns])) - 1
    return max(min(latest, known, int(far[0]) - 1 if far.size else latest), min(1, latest))


def _apart_from_events(limits: ErrorBounds, latest: int) -> int:
    """Return the latest point not near an event; if every point is near one (samples), the latest of all."""
    return next((row for row in range(latest, 0, -1) if row not in limits.sides), latest)


def _result_or_none(measure: Callable[[], DirectionalDifferences]) -> DirectionalDifferences | None:
    """Return the result; None where the reference leaves the domain of an expression."""
    try:
        return measure()
    except (ValidationError, ArithmeticError, ValueError):
        return None


def _stays_closed(reference: ReferenceRun, rows: Floats, row: int, index: int, value: float) -> bool:
    """Return whether the state at a row obeys the constraints with another parameter value; ``rows``: their scales."""
    numeric, run = reference.numeric, reference.conditions
    parameters = list(run.parameters)
    parameters[index] = value
    t, x = float(run.time[row]), reference.states[row]
    try:
        before = numeric.motion(t, x, run.held(row).tolist(), numeric.prepare(run.parameters))
        after = numeric.motion(t, x, run.held(row).tolist(), numeric.prepare(parameters))
    except (ValidationError, ArithmeticError, ValueError):
        return False
    if not np.all(np.isfinite(after.x_dot)):
        return False
    scales = reference.scales[numeric.n_q : numeric.n_q + numeric.n_u]
    opened = np.any(np.abs(after.residual - before.residual) > _CLOSED * rows)
    return not opened and bool(np.all(np.abs(after.u - before.u) <= _CLOSED * scales))


@dataclass(frozen=True, slots=True)
class CallSequence:
    """The calls of one API check, in order; those whose recorded values are compared have a label.

    Attributes:
        operations: As the driver takes them: the name of the operation, then its arguments.
        labels: One for each operation; empty where nobody reads its values.
    """

    operations: Operations = ()
    labels: tuple[str, ...] = ()

    def then(self, *operation: Any, label: str = "") -> CallSequence:
        """Return the sequence with one more operation."""
        return CallSequence((*self.operations, list(operation)), (*self.labels, label))

    def read(self, values: Sequence[Any]) -> dict[str, Any]:
        """Return label → recorded values, from the values of all operations."""
        return {label: value for label, value in zip(self.labels, values, strict=True) if label}


@dataclass(frozen=True, slots=True)
class CallPlan:
    """Calls for one interface type of an FMU, with the names of the value references.

    Attributes:
        kind: How it is run.
        sequences: API check → its calls.
        real: Every variable of doubles.
        states: Continuous states, in order; () where the description does not tell them.
        rates: Their derivatives.
        unknowns: Of derivatives: rates, then outputs.
        inputs: Names of the inputs.
        tuned: Names of the parameters changed during the run.
        ordered: Outputs whose derivatives by time are requested.
        discrete: Integer and Boolean parameters that are set before the run: type → names.
        discrete_starts: Type → the values that they are set to.
    """

    kind: UnitKind
    sequences: Mapping[str, CallSequence]
    real: tuple[str, ...]
    states: tuple[str, ...]
    rates: tuple[str, ...]
    unknowns: tuple[str, ...]
    inputs: tuple[str, ...]
    tuned: tuple[str, ...]
    ordered: tuple[str, ...]
    discrete: Mapping[str, tuple[str, ...]]
    discrete_starts: Mapping[str, list[int]]

    @property
    def operations(self) -> dict[str, Operations]:
        """API check → operations, for the driver."""
        return {name: sequence.operations for name, sequence in self.sequences.items()}


def plan_api_calls(
    scenario: CallScenario, definition: Declarations, description: FmuDescription, kind: UnitKind
) -> CallPlan:
    """Return the calls for one interface type of an FMU."""
    variables, reference = description.variables, scenario.reference
    free = [p.name for p in definition.parameters if not p.calculated]
    states, rates = zip(*description.rates, strict=True) if description.rates else ((), ())
    compared = [v.name for v in reference.variables if variables[v.name].causality == "output"]
    outputs = tuple(name for name in compared if name not in states)[: max(4, _MOST_UNKNOWNS - len(rates))]
    with_slopes = kind == "CoSimulation" and description.offers[kind].output_derivatives
    discrete = _settable_discrete_parameters(description)
    plan = CallPlan(
        kind=kind,
        sequences={},
        real=tuple(name for name, v in variables.items() if v.real),
        states=states,
        rates=rates,
        unknowns=(*rates, *outputs),
        inputs=reference.conditions.input_names,
        tuned=tuple(free[k] for k in scenario.tuned),
        ordered=tuple(compared) if with_slopes else (),
        discrete=discrete,
        discrete_starts={t: _start_values(description, names) for t, names in discrete.items()},
    )
    numbers = {name: variable.reference for name, variable in variables.items()}
    sequences = _value_calls(scenario, plan, numbers)
    sequences |= _derivative_calls(scenario, plan, numbers, description.offers[kind])
    return replace(plan, sequences=sequences)


def _to_the_point(scenario: CallScenario) -> CallSequence:
    """Return the calls that lead to the point of the API checks."""
    return CallSequence().then("begin", PERTURBED).then("steps", PERTURBED, 0, scenario.row, label="rows before")


def _change_of_parameters(scenario: CallScenario, plan: CallPlan, numbers: Mapping[str, int]) -> tuple[Any, ...]:
    """Return the call that changes tunable parameters."""
    return "tune", [numbers[name] for name in plan.tuned], [scenario.changed[i] for i in scenario.tuned]


def _value_calls(scenario: CallScenario, plan: CallPlan, numbers: Mapping[str, int]) -> dict[str, CallSequence]:
    """Return the calls that set and read variables, change parameters, and read derivatives of outputs."""
    last = scenario.row + scenario.steps_after
    real = [numbers[name] for name in plan.real]
    values = CallSequence()
    for t, names in plan.discrete.items():
        values = values.then("put", t, [numbers[name] for name in names], plan.discrete_starts[t])
    values = values.then("begin", PERTURBED).then("get", real, label="start")
    values = values.then("steps", PERTURBED, 0, scenario.row, label="rows").then("get", real, label="end")
    for t, names in plan.discrete.items():
        values = values.then("look", t, [numbers[name] for name in names], label=t)
    tuning = _to_the_point(scenario).then(*_change_of_parameters(scenario, plan, numbers))
    tuning = tuning.then("get", [numbers[name] for name in plan.tuned], label="parameters")
    tuning = tuning.then("get", real, label="after the change")
    tuning = tuning.then("steps", PERTURBED, scenario.row, last, label="rows").then("get", real, label="end")
    sequences = {"values": values, "tuning": tuning}
    if plan.ordered:
        slopes = [numbers[name] for name in plan.ordered]
        sequences["output derivatives"] = _to_the_point(scenario).then("slopes", slopes, 1, label="slopes")
    return sequences


def _derivative_calls(
    scenario: CallScenario, plan: CallPlan, numbers: Mapping[str, int], offers: InterfaceCapabilities
) -> dict[str, CallSequence]:
    """Return the calls for derivatives: by states and inputs before and after a change of parameters, by parameters."""
    after_change = scenario.behind(plan.kind)
    unknown = [numbers[name] for name in plan.unknowns]
    if not (offers.directional and plan.states and unknown and scenario.before_change and after_change):
        return {}
    reference, begun = scenario.reference, _to_the_point(scenario)
    change = _change_of_parameters(scenario, plan, numbers)
    known = [numbers[name] for name in (*plan.states, *plan.inputs)]
    tuned = [numbers[name] for name in plan.tuned]
    before, after = (variable_changes(d, reference, plan.states) for d in (scenario.before_change, after_change))
    directional = begun.then("directional", unknown, known, before, label="before").then(*change)
    sequences = {"directional": directional.then("directional", unknown, known, after, label="after")}
    if offers.adjoint:
        rows = np.eye(len(unknown)).tolist()
        adjoint = begun.then("adjoint", unknown, known, rows, label="before").then(*change)
        sequences["adjoint"] = adjoint.then("adjoint", unknown, known, rows, label="after")
    if tuned and scenario.by_parameters:
        sizes = scenario.by_parameters.parameters[:, list(scenario.tuned)].tolist()
        beside = variable_changes(scenario.by_parameters, reference, plan.states)
        rows = [[*a, *b] for a, b in zip(beside, sizes, strict=True)] if beside else sizes[:-1]
        moved = [*known, *tuned] if beside else tuned  # a state that the reference does not have cannot be moved
        sequences["by parameters"] = begun.then("directional", unknown, moved, rows, label="derivatives")
    one_by_one = typical_changes(scenario, plan.states)
    if one_by_one:
        calls = single_seed_calls(unknown, [*known, *tuned], one_by_one, adjoint=offers.adjoint)
        for number, call in enumerate(calls):
            begun = begun.then(*call, label=str(number))
        sequences[ONE_BY_ONE] = begun
    return sequences


def typical_changes(scenario: CallScenario, states: Sequence[str]) -> list[float]:
    """Return typical changes of the FMU's states, of the inputs and of the parameters changed; [] if not known."""
    assert scenario.before_change is not None
    moves = np.array(variable_changes(scenario.before_change, scenario.reference, states))
    if not moves.size:
        return []
    values = np.abs(np.array(scenario.reference.conditions.parameters)[list(scenario.tuned)])
    largest = np.append(np.max(np.abs(moves), axis=0), values)
    return np.where(largest > 0, largest, 1.0).tolist()  # type: ignore[no-any-return]


def variable_changes(
    directions: DirectionalDifferences, reference: ReferenceRun, states: Sequence[str]
) -> list[list[float]]:
    """Return changes of the FMU's states and of the inputs, one row per direction."""
    columns = [reference.trajectory.column(name) for name in states if name in reference.trajectory.names]
    if len(columns) < len(states):
        return []
    return np.hstack([directions.variables[:, columns], directions.inputs]).tolist()  # type: ignore[no-any-return]


def _settable_discrete_parameters(description: FmuDescription) -> dict[str, tuple[str, ...]]:
    """Return integer and Boolean parameters that can be set before a run."""
    found: dict[str, list[str]] = {}
    for name, variable in description.variables.items():
        plain = not variable.real and variable.scalar and variable.causality == "parameter" and variable.settable
        if plain and variable.kind in {"Integer", "Enumeration", "Boolean", "Int64", "Int32", "UInt64"}:
            found.setdefault(variable.kind, []).append(name)
    return {kind: tuple(names) for kind, names in found.items()}


def _start_values(description: FmuDescription, names: Sequence[str]) -> list[int]:
    """Return start values as the description has them."""
    written = [description.variables[name].start for name in names]
    return [int(text == "true") if text in {"true", "false"} else int(text) for text in written]
