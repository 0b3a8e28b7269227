"""Check that values follow changes at once, in any order, and also when time goes back."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from mb2fmu.audit.behaviour.fixture.excited_runs import (
    choose_changed_value,
    list_freely_settable_inputs,
    list_parameters_and_exact_starts,
)
from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture, are_identical_values
from mb2fmu.audit.behaviour.fixture.trial_registry import register_trial
from mb2fmu.audit.behaviour.instance.fmi_c_interface import RefusedCallError, Value
from mb2fmu.audit.behaviour.instance.fmu_instance import FmuInstance
from mb2fmu.audit.behaviour.process.trial_time_budget import TrialTimeBudgetError
from mb2fmu.audit.behaviour.trials.model_exchange_trials import (
    FmuEvaluationPoint,
    choose_random_fmu_point,
    set_fmu_to_evaluation_point,
)
from mb2fmu.audit.description.description_records import DescribedVariable
from mb2fmu.audit.rules_and_findings import RuleViolation

MODEL_EXCHANGE = ("ModelExchange",)
CHANGE_COUNT = 14
RELATIVE_TOLERANCE = 1e-9
"""Relative difference that an iteration within the FMU may leave."""


def _agree(first: Value, second: Value) -> bool:
    """Return whether two values agree as closely as two evaluations may; arrays element by element."""
    if isinstance(first, tuple) and isinstance(second, tuple):
        return len(first) == len(second) and all(map(_agree, first, second))
    if isinstance(first, float) and isinstance(second, float):
        return are_identical_values(first, second) or math.isclose(
            first, second, rel_tol=RELATIVE_TOLERANCE, abs_tol=1e-12
        )
    return are_identical_values(first, second)


def _read_in_order(fixture: TrialFixture, instance: FmuInstance, order: int) -> list[Value]:
    """Return everything that can be evaluated, in one of several orders."""
    variables = list(fixture.variables_to_try)

    def read_vectors() -> list[Value]:
        """Read derivatives, then event indicators."""
        values: list[Value] = list(instance.get_derivatives(fixture.n_states)) if fixture.n_states else []
        count = fixture.n_indicators
        return [*values, *(instance.get_vector("GetEventIndicators", count) if count else [])]

    if order % 4 == 0:
        vector_values = read_vectors()
        return [*vector_values, *instance.get(variables)]
    if order % 4 == 1:
        values = instance.get(variables)
        return [*read_vectors(), *values]
    if order % 4 == 2:
        values_by_index = {variable.index: instance.get([variable])[0] for variable in reversed(variables)}
        return [*read_vectors(), *(values_by_index[variable.index] for variable in variables)]
    instance.get(variables[:1])
    vector_values = read_vectors()
    return [*vector_values, *instance.get(variables)]


def _list_quantity_names(fixture: TrialFixture) -> list[str]:
    """Return the names of the values that `_read_in_order` returns: derivatives, event indicators, variables."""
    return [
        *(f"derivative {index + 1}" for index in range(fixture.n_states)),
        *(f"event indicator {index + 1}" for index in range(fixture.n_indicators)),
        *(f'"{variable.name}"' for variable in fixture.variables_to_try),
    ]


@register_trial("changing one thing at a time", "exchange.pure", interfaces=MODEL_EXCHANGE)
def try_values_follow_changes(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check changes of time, states and single inputs, back and forth, against a new instance at the same point."""
    with fixture.open_instance() as instance:
        fixture.initialize(instance)
        points = [choose_random_fmu_point(fixture, instance) for _ in range(3)]
    with fixture.open_instance() as instance:
        fixture.initialize(instance)
        set_fmu_to_evaluation_point(fixture, instance, points[0])
        _read_in_order(fixture, instance, 0)
        point = points[0]
        for change_number in range(CHANGE_COUNT):
            point, change_text = _change_point(fixture, instance, point, points[(change_number + 1) % 3], change_number)
            values = _read_in_order(fixture, instance, change_number)
            expected = _read_from_new_instance(fixture, point)
            for name, value, expected_value in zip(_list_quantity_names(fixture), values, expected, strict=True):
                if not _agree(value, expected_value):
                    message = (
                        f"{name} is {value!r} after {change_text}; a new instance at the same point has "
                        f"{expected_value!r}"
                    )
                    yield RuleViolation("exchange.pure", message, fixture.interface)
                    return


def _change_point(
    fixture: TrialFixture,
    instance: FmuInstance,
    point: FmuEvaluationPoint,
    target: FmuEvaluationPoint,
    change_number: int,
) -> tuple[FmuEvaluationPoint, str]:
    """Change one part of a point."""
    change_kind = change_number % 4
    if change_kind == 0 or (change_kind == 1 and not target.states) or (change_kind > 1 and not target.inputs):
        direction = "back" if target.time < point.time else "forward"
        instance.set_time(target.time)
        return FmuEvaluationPoint(target.time, point.states, point.inputs), f"setting the time {direction}"
    if change_kind == 1:
        instance.set_states(target.states)
        return FmuEvaluationPoint(point.time, target.states, point.inputs), "setting the states"
    input_index = (change_number // 4) % len(target.inputs)
    variable = fixture.inputs[input_index]
    instance.set({variable: target.inputs[input_index]})
    input_values = (*point.inputs[:input_index], target.inputs[input_index], *point.inputs[input_index + 1 :])
    return FmuEvaluationPoint(point.time, point.states, input_values), f'setting "{variable.name}"'


def _read_from_new_instance(fixture: TrialFixture, point: FmuEvaluationPoint) -> list[Value]:
    """Return the values of a new instance at a point."""
    with fixture.open_instance() as instance:
        fixture.initialize(instance)
        set_fmu_to_evaluation_point(fixture, instance, point)
        return _read_in_order(fixture, instance, 0)


@register_trial("reading after setting in Initialization Mode", "value.stale")
def try_values_after_single_changes(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check values after each single change against a new instance in which all was set before reading."""
    knowns = [*list_parameters_and_exact_starts(fixture), *list_freely_settable_inputs(fixture)]
    unknowns = [
        entry.variable for entry in fixture.description.model_structure_entries("InitialUnknowns")
        if entry.variable is not None and entry.variable in fixture.variables_to_try
    ]  # fmt: skip
    if not knowns or not unknowns:
        fixture.mark_inapplicable("value.stale", "it has nothing to set, or no initial unknowns")
        return
    values: dict[DescribedVariable, Value] = {}
    with fixture.open_instance() as instance:
        instance.enter_initialization(fixture.start, None, fixture.tolerance)
        try:
            instance.get(unknowns)
            for known in knowns:
                value = choose_changed_value(fixture, known, "stale", 0.05)
                if value is not None:
                    instance.set({known: value})
                    values[known] = value
                    read_values = instance.get(unknowns)
            read_values = instance.get(unknowns)
        except TrialTimeBudgetError:
            raise
        except RefusedCallError:
            fixture.mark_inapplicable("value.stale", "other values do not go together")
            return
    yield from _compare_with_new_instance(fixture, values, unknowns, read_values)


def _compare_with_new_instance(
    fixture: TrialFixture,
    values: dict[DescribedVariable, Value],
    unknowns: Sequence[DescribedVariable],
    read_values: list[Value],
) -> Iterator[RuleViolation]:
    """Yield the first unknown that differs from an instance in which all was set before anything was read."""
    with fixture.open_instance() as instance:
        instance.enter_initialization(fixture.start, None, fixture.tolerance)
        instance.set(values)
        expected = instance.get(unknowns)
    for variable, value, expected_value in zip(unknowns, read_values, expected, strict=True):
        if not _agree(value, expected_value):
            message = f"is {value!r} where it was read before; where all was set first it is {expected_value!r}"
            yield RuleViolation("value.stale", message, fixture.format_finding_location(variable))
            return
