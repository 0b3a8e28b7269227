"""Calls in the middle of the moved experiment, as sessions for the driver.

All that a unit says it can do: reading and setting every variable, derivatives of both kinds by states, inputs and
parameters, derivatives of outputs in time, tunable parameters changed on the way, keeping and restoring the state
within an instance and as bytes in another, resetting. ``answers`` holds the answers against the reference.
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
from mb2fmu.validation.bounds.perturbation_sizes import rounded
from mb2fmu.validation.comparison.motion_comparison import Bounds
from mb2fmu.validation.experiment.perturbed_experiment import row_sizes
from mb2fmu.validation.reference.experiment_numbers import Conditions
from mb2fmu.validation.reference.finite_differences import (
    Directions,
    Point,
    parameter_directions,
    state_and_input_directions,
)
from mb2fmu.validation.reference.reference_run import Reference
from mb2fmu.validation.runs.fmu_description import UnitDescription, UnitKind
from mb2fmu.validation.runs.fmu_run import Operations

Floats = npt.NDArray[np.float64]

DEFAULT, PERTURBED = 0, 1
ONE_BY_ONE = "one by one"
STEPS_AFTER = 3
MAX_BOUND_GROWTH = 30.0
"""What bounds of states may have grown by where calls are made: derivatives are known to that many tolerances."""
_MOST_UNKNOWNS = 40
_CLOSED = 1e-10


@dataclass(frozen=True, slots=True)
class CallScenario:
    """Place and values of the calls; the same for all interface types of a unit.

    Attributes:
        reference: Of the moved experiment.
        told: What the unit was told before it.
        row: The communication point.
        after: Steps that are made from there.
        tuned: Indices of the free parameters that are changed there: tunable ones that leave the loops closed.
        changed: All free parameters after that.
        before_change: Derivatives there, by states and inputs.
        after_change: The same after the change, in the modes before it: Co-Simulation reconsiders them as it steps on.
        after_event: The same in the modes behind the event that the change is in Model Exchange.
        by_parameters: Derivatives by ``tuned``, one by one; in the last direction with states and inputs.
    """

    reference: Reference
    told: Conditions
    row: int
    after: int
    tuned: tuple[int, ...]
    changed: tuple[float, ...]
    before_change: Directions | None
    after_change: Directions | None
    after_event: Directions | None
    by_parameters: Directions | None

    @property
    def point(self) -> Point:
        """The point before the change."""
        run = self.reference.conditions
        return Point(self.row, run.held(self.row), run.parameters)

    def behind(self, kind: UnitKind) -> Directions | None:
        """Return the derivatives after the change, in the form of an interface type."""
        return self.after_event if kind == "ModelExchange" else self.after_change


def choose_call_scenario(
    definition: Declarations,
    default: Reference,
    reference: Reference,
    told: Conditions,
    description: UnitDescription,
    limits: Bounds,
) -> CallScenario:
    """Choose the point, half-way through the moved experiment, and the parameters to change there.

    The point is earlier where the motion is sensitive: the unit is asked where it is, and answers are compared with
    the reference's own state, so both must still be close to each other. ``limits``: of the moved experiment.
    """
    run = reference.conditions
    steps = len(run.time) - 1
    after = min(STEPS_AFTER, steps // 3)
    row = _apart_from_events(limits, _latest_predictable_point(reference, limits, min(steps // 2, steps - after - 1)))
    free = [p for p in definition.parameters if not p.calculated]
    values, tuned, sizes = list(run.parameters), [], row_sizes(reference)
    for k, parameter in enumerate(free):
        variable = description.variables.get(parameter.name)
        if variable is None or not variable.settable or variable.variability != "tunable" or not parameter.tunable:
            continue
        # Between the moved value and the default: where the mechanism works. Again no two are equal.
        part = 0.35 + 0.3 * ((k + 1) * 0.6180339887498949 % 1.0)
        target = rounded(values[k] + part * (default.conditions.parameters[k] - values[k]))
        if target != values[k] and _stays_closed(reference, sizes, row, k, target):
            values[k] = target
            tuned.append(k)
    held = run.held(row)
    before, changed = Point(row, held, run.parameters), Point(row, held, tuple(values))
    return CallScenario(
        reference=reference,
        told=told,
        row=row,
        after=after,
        tuned=tuple(tuned),
        changed=tuple(values),
        before_change=_result_or_none(lambda: state_and_input_directions(reference, before)),
        after_change=_result_or_none(lambda: state_and_input_directions(reference, changed)),
        after_event=_result_or_none(lambda: state_and_input_directions(reference, replace(changed, settled=True))),
        by_parameters=_result_or_none(lambda: parameter_directions(reference, before, tuned)),
    )


def _latest_predictable_point(reference: Reference, limits: Bounds, latest: int) -> int:
    """Return the latest point where all states are within horizons and no bound has grown beyond :data:`MAX_DEVIATION_GROWTH`."""
    columns = list(reference.state_columns)
    if not columns:
        return latest
    allowed = limits.values[: latest + 1, columns]
    grown = np.max(allowed / np.where(allowed[0] > 0, allowed[0], np.inf), axis=1)
    far = np.flatnonzero(grown > MAX_BOUND_GROWTH)
    known = int(np.min(limits.judged[columns])) - 1
    return max(min(latest, known, int(far[0]) - 1 if far.size else latest), min(1, latest))


def _apart_from_events(limits: Bounds, latest: int) -> int:
    """Return the latest point not near an event; if every point is near one (samples), the latest of all."""
    return next((row for row in range(latest, 0, -1) if row not in limits.sides), latest)


def _result_or_none(measure: Callable[[], Directions]) -> Directions | None:
    """Return the result; None where the reference leaves the domain of an expression."""
    try:
        return measure()
    except (ValidationError, ArithmeticError, ValueError):
        return None


def _stays_closed(reference: Reference, rows: Floats, row: int, index: int, value: float) -> bool:
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
class CallPlan:
    """Calls for one interface type of a unit, with the names of the value references.

    Attributes:
        kind: How it is run.
        operations: Session → operations.
        real: Every variable of doubles.
        states: Continuous states, in order; () where the description does not tell them.
        rates: Their derivatives.
        unknowns: Of derivatives: rates, then outputs.
        inputs: Names of the inputs.
        tuned: Names of the parameters changed on the way.
        ordered: Outputs whose derivatives by time are asked.
        typed: Variables of other types that are set before the run: type → names.
    """

    kind: UnitKind
    operations: Mapping[str, Operations]
    real: tuple[str, ...]
    states: tuple[str, ...]
    rates: tuple[str, ...]
    unknowns: tuple[str, ...]
    inputs: tuple[str, ...]
    tuned: tuple[str, ...]
    ordered: tuple[str, ...]
    typed: Mapping[str, tuple[str, ...]]


def plan_api_calls(
    chance: CallScenario, definition: Declarations, description: UnitDescription, kind: UnitKind
) -> CallPlan:
    """Return the sessions for one interface type of a unit."""
    variables, reference = description.variables, chance.reference
    offers = description.offers[kind]
    free = [p.name for p in definition.parameters if not p.calculated]
    tuned = tuple(free[k] for k in chance.tuned)
    states = tuple(state for state, _ in description.rates)
    rates = tuple(rate for _, rate in description.rates)
    judged = [v.name for v in reference.variables if variables[v.name].causality == "output"]
    outputs = tuple(name for name in judged if name not in states)[: max(4, _MOST_UNKNOWNS - len(rates))]
    inputs = reference.conditions.input_names
    real = tuple(name for name, v in variables.items() if v.real)
    typed = _settable_discrete_parameters(description)

    def numbers(names: Sequence[str]) -> list[int]:
        """Return value references."""
        return [variables[name].reference for name in names]

    k, last = chance.row, chance.row + chance.after
    begun: list[list[Any]] = [["begin", PERTURBED], ["steps", PERTURBED, 0, k]]
    change = ["tune", numbers(tuned), [chance.changed[i] for i in chance.tuned]]
    set_first = [["put", t, numbers(names), _start_values(description, names)] for t, names in typed.items()]
    look_back = [["look", t, numbers(names)] for t, names in typed.items()]
    operations: dict[str, Operations] = {
        "values": [*set_first, ["begin", PERTURBED], ["get", numbers(real)], ["steps", PERTURBED, 0, k], ["get", numbers(real)],
                   *look_back],
        "tuning": [*begun, change, ["get", numbers(tuned)], ["get", numbers(real)], ["steps", PERTURBED, k, last],
                   ["get", numbers(real)]],
        "reset": [*begun, change, ["reset"], ["begin", PERTURBED], ["steps", PERTURBED, 0, k]],
    }  # fmt: skip
    known = [*numbers(states), *numbers(inputs)]
    unknown = numbers((*rates, *outputs))
    behind = chance.behind(kind)
    if offers.directional and states and unknown and chance.before_change and behind:
        by_parameters = chance.by_parameters if tuned else None
        seeded = (
            variable_changes(chance.before_change, reference, states),
            variable_changes(behind, reference, states),
            variable_changes(by_parameters, reference, states) if by_parameters else None,
        )
        sizes = by_parameters.parameters[:, list(chance.tuned)].tolist() if by_parameters else []
        numbered = (unknown, known, numbers(tuned))
        operations |= _of_derivatives(begun, change, numbered, seeded, sizes, adjoint=offers.adjoint)
        one_by_one = typical_changes(chance, states)
        if one_by_one:
            every = [*known, *numbers(tuned)]
            operations[ONE_BY_ONE] = single_seed_calls(begun, unknown, every, one_by_one, adjoint=offers.adjoint)
    ordered = tuple(judged) if kind == "CoSimulation" and offers.output_derivatives else ()
    if ordered:
        operations["output derivatives"] = [*begun, ["slopes", numbers(ordered), 1]]
    if offers.states:
        again = [["steps", PERTURBED, k, last]]
        kept = [*begun, ["save"], *again, change, ["steps", PERTURBED, last, last + 1], ["restore"], *again,
                ["get", numbers(real)]]  # fmt: skip
        operations["state"] = kept
        if offers.bytes:
            operations["state as bytes"] = [*begun, ["save"], *again, ["write"], ["elsewhere", DEFAULT], *again,
                                            ["get", numbers(real)]]  # fmt: skip
    return CallPlan(kind, operations, real, states, rates, (*rates, *outputs), inputs, tuned, ordered, typed)


def _of_derivatives(
    begun: Operations, change: list[Any], numbered: tuple[list[int], list[int], list[int]],
    seeded: Sequence[list[list[float]] | None], sizes: list[list[float]], *, adjoint: bool,
) -> dict[str, Operations]:  # fmt: skip
    """Add calls for derivatives: by states and inputs before and after a change of parameters, and by parameters.

    Args:
        begun: What leads to the point.
        change: The call that changes parameters.
        numbered: Value references of unknowns, of states and inputs, and of tunable parameters.
        seeded: Moves of states and inputs before the change, after it, and beside those of parameters.
        sizes: Moves of parameters; all states and inputs move in the last only.
        adjoint: Whether the unit offers adjoint derivatives.
    """
    unknown, known, tuned = numbered
    before, after, beside = seeded
    found: dict[str, Operations] = {
        "directional": [*begun, ["directional", unknown, known, before], change,
                        ["directional", unknown, known, after]],
    }  # fmt: skip
    if adjoint:
        rows = np.eye(len(unknown)).tolist()
        found["adjoint"] = [*begun, ["adjoint", unknown, known, rows], change, ["adjoint", unknown, known, rows]]
    if beside:
        rows = [[*a, *b] for a, b in zip(beside, sizes, strict=True)]
        found["by parameters"] = [*begun, ["directional", unknown, [*known, *tuned], rows]]
    elif sizes:  # a state of the unit that the reference does not have cannot be moved
        found["by parameters"] = [*begun, ["directional", unknown, tuned, sizes[:-1]]]
    return found


def typical_changes(chance: CallScenario, states: Sequence[str]) -> list[float]:
    """Return typical changes of the unit's states, of the inputs and of the parameters changed; [] if not known."""
    assert chance.before_change is not None
    moves = np.array(variable_changes(chance.before_change, chance.reference, states))
    if not moves.size:
        return []
    values = np.abs(np.array(chance.reference.conditions.parameters)[list(chance.tuned)])
    largest = np.append(np.max(np.abs(moves), axis=0), values)
    return np.where(largest > 0, largest, 1.0).tolist()  # type: ignore[no-any-return]


def variable_changes(directions: Directions, reference: Reference, states: Sequence[str]) -> list[list[float]]:
    """Return changes of the unit's states and of the inputs, one row per direction."""
    columns = [reference.trajectory.column(name) for name in states if name in reference.trajectory.names]
    if len(columns) < len(states):
        return []
    return np.hstack([directions.variables[:, columns], directions.inputs]).tolist()  # type: ignore[no-any-return]


def _settable_discrete_parameters(description: UnitDescription) -> dict[str, tuple[str, ...]]:
    """Return integer and Boolean parameters that can be set before a run."""
    found: dict[str, list[str]] = {}
    for name, variable in description.variables.items():
        plain = not variable.real and variable.scalar and variable.causality == "parameter" and variable.settable
        if plain and variable.kind in {"Integer", "Enumeration", "Boolean", "Int64", "Int32", "UInt64"}:
            found.setdefault(variable.kind, []).append(name)
    return {kind: tuple(names) for kind, names in found.items()}


def _start_values(description: UnitDescription, names: Sequence[str]) -> list[int]:
    """Return start values as the description has them."""
    written = [description.variables[name].start for name in names]
    return [int(text == "true") if text in {"true", "false"} else int(text) for text in written]
