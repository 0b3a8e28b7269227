"""Compare directional and adjoint derivatives with differences, in Continuous-Time and Initialization Mode."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial

from mb2fmu.audit.behaviour.fixture.excited_runs import choose_excited_run_values
from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture
from mb2fmu.audit.behaviour.fixture.trial_registry import register_trial
from mb2fmu.audit.behaviour.fixture.typical_magnitudes import (
    compute_mixed_magnitude_weight,
    find_largest_of_similar_magnitude,
)
from mb2fmu.audit.behaviour.instance.fmi_c_interface import DISCARD, OK, WARNING, RefusedCallError, Value, status_name
from mb2fmu.audit.behaviour.instance.fmu_instance import FmuInstance
from mb2fmu.audit.behaviour.process.trial_time_budget import SkippedTrialError
from mb2fmu.audit.behaviour.trials.model_exchange_trials import (
    EvaluationPoint,
    choose_random_fmu_point,
    iterate_points_between_events,
    set_fmu_to_evaluation_point,
)
from mb2fmu.audit.description.description_records import DescribedVariable
from mb2fmu.audit.findings import RuleViolation

RELATIVE_CHANGE = 1e-5
"""Relative change for differences of second order; their error is near 1e-9 then."""

RELATIVE_TOLERANCE = 1e-3
"""Relative; an FMU may calculate them by one-sided differences, which are right to some 1e-4."""
PARAMETER_SETS = 3
"""Sets of other parameters, with each of which one point is tried."""

MAX_POINTS = 8
"""Near the start and along the motion, if there is time for them."""

DifferenceMatrix = list[list[tuple[float, float] | None]]
"""[known][unknown]: derivative by differences, and how far these may be off; None where they disagree."""

PARTIAL_DERIVATIVE_RULES = ("partials.directional", "partials.adjoint")


def _difference_column(
    evaluate: Callable[[float], list[float]], change: float, unit_magnitudes: Sequence[float]
) -> list[tuple[float, float] | None]:
    """Return one column of a Jacobian; None where two step sizes disagree (a kink, or noise).

    Args:
        evaluate: Returns the unknowns with the known changed by an amount.
        change: Of the known.
        unit_magnitudes: Magnitudes of the unknowns' units.
    """
    column: list[tuple[float, float] | None] = []
    evaluations = [[evaluate(sign * size) for sign in (1.0, -1.0)] for size in (change, 0.3 * change)]
    end_values = list(zip(evaluations[0][0], evaluations[0][1], evaluations[1][0], evaluations[1][1], strict=True))
    # The unknowns of one linear solve share their round-off.
    noise_levels = [
        1e-13 * magnitude / change
        for magnitude in find_largest_of_similar_magnitude(
            [max(_iterate_finite_magnitudes(end), default=0.0) for end in end_values], unit_magnitudes
        )
    ]
    has_kink = any(_may_have_kink(end, change, noise) for end, noise in zip(end_values, noise_levels, strict=True))
    middle_values = evaluate(0.0) if has_kink else [0.0] * len(end_values)
    for (plus, minus, near_plus, near_minus), middle_value, noise in zip(
        end_values, middle_values, noise_levels, strict=True
    ):
        wide_difference, narrow_difference = (plus - minus) / (2 * change), (near_plus - near_minus) / (0.6 * change)
        is_smooth = (
            abs(wide_difference - narrow_difference)
            <= 1e-3 * max(abs(wide_difference), abs(narrow_difference)) + 100 * noise
        )
        # Beside the middle a kink rises in proportion (0.3), what is curved by squares (0.09).
        is_kink = _may_have_kink((plus, minus, near_plus, near_minus), change, noise) and abs(
            near_plus + near_minus - 2 * middle_value
        ) > 0.2 * abs(plus + minus - 2 * middle_value)
        is_reliable = is_smooth and not is_kink and math.isfinite(narrow_difference)
        column.append(
            (narrow_difference, abs(wide_difference - narrow_difference) + 10 * noise) if is_reliable else None
        )
    return column


def _iterate_finite_magnitudes(values: Sequence[float]) -> Iterator[float]:
    """Yield the sizes of finite numbers."""
    return (abs(value) for value in values if math.isfinite(value))


def _may_have_kink(end_values: tuple[float, float, float, float], change: float, noise: float) -> bool:
    """Return whether slopes on both sides may differ: of values at 1, -1, 0.3 and -0.3 times the change."""
    plus, minus, near_plus, near_minus = end_values
    slope_change = abs(plus + minus - near_plus - near_minus) / (1.4 * change)
    return slope_change > RELATIVE_TOLERANCE * abs(near_plus - near_minus) / (0.6 * change) + 100 * noise


def _compare_with_differences(
    fixture: TrialFixture,
    instance: FmuInstance,
    unknowns: Sequence[DescribedVariable],
    knowns: Sequence[DescribedVariable],
    matrix: DifferenceMatrix,
    mode: str,
) -> Iterator[RuleViolation]:
    """Compare ``matrix[known][unknown]`` from differences with the FMU's derivatives."""
    has_directional = fixture.flag(
        "providesDirectionalDerivative" if fixture.description.version == 2 else "providesDirectionalDerivatives"
    )
    has_adjoint = fixture.description.version == 3 and fixture.flag("providesAdjointDerivatives")
    answers: list[tuple[str, list[list[float]]]] = []
    for is_provided, name in ((has_directional, "partials.directional"), (has_adjoint, "partials.adjoint")):
        if not is_provided:
            continue
        is_adjoint = name == "partials.adjoint"
        rows = []
        for variable in unknowns if is_adjoint else knowns:
            rows_of, columns_of = ([variable], knowns) if is_adjoint else (unknowns, [variable])
            status, values = instance.get_partial_derivatives(rows_of, columns_of, [1.0], adjoint=is_adjoint)
            if status not in {OK, WARNING}:
                message = f'the request for "{variable.name}" in {mode} returns {status_name(status)}'
                message += f': "{instance.messages[-1][2]}"' if instance.messages else ""
                yield RuleViolation(name, message, fixture.interface)
                break
            rows.append(values)
        else:
            answers.append((name, [list(column) for column in zip(*rows, strict=True)] if is_adjoint else rows))
            yield from _check_combined_directions(fixture, instance, unknowns, knowns, rows, (name, mode))
    yield from _find_differing_entry(fixture, unknowns, knowns, matrix, answers, mode)


def _find_differing_entry(
    fixture: TrialFixture,
    unknowns: Sequence[DescribedVariable],
    knowns: Sequence[DescribedVariable],
    matrix: DifferenceMatrix,
    answers: Sequence[tuple[str, list[list[float]]]],
    mode: str,
) -> Iterator[RuleViolation]:
    """Yield the first derivative of the FMU that is not that by differences."""
    unit_magnitudes, scales = (
        [*map(fixture.magnitudes.unit_magnitude, unknowns)],
        [*map(fixture.typical_magnitude, knowns)],
    )
    # Derivatives by knowns of small magnitudes are large.
    columns = [[abs(entry[0]) if entry else 0.0 for entry in column] for column in zip(*matrix, strict=True)]
    column_magnitudes = [
        find_largest_of_similar_magnitude(column, [1.0 / scale for scale in scales]) for column in columns
    ]
    for name, rows in answers:
        for known_index, known in enumerate(knowns):
            for unknown_index, unknown in enumerate(unknowns):
                smallest_scale = max(
                    1e-2 * column_magnitudes[unknown_index][known_index],
                    1e-7 * compute_mixed_magnitude_weight(unit_magnitudes[unknown_index], scales[known_index]),
                )
                entry = matrix[known_index][unknown_index]
                if entry is None:
                    continue
                measured, uncertainty = entry
                if (
                    abs(rows[known_index][unknown_index] - measured)
                    <= RELATIVE_TOLERANCE * max(abs(measured), smallest_scale) + 3 * uncertainty
                ):
                    continue
                message = f'∂"{unknown.name}"/∂"{known.name}" is {measured:.7g} by differences in {mode}'
                message += f", it reports {rows[known_index][unknown_index]:.7g}"
                yield RuleViolation(name, message, fixture.interface)
                return


def _check_combined_directions(
    fixture: TrialFixture, instance: FmuInstance, unknowns: Sequence[DescribedVariable],
    knowns: Sequence[DescribedVariable],
    rows: Sequence[Sequence[float]], rule_and_mode: tuple[str, str],
) -> Iterator[RuleViolation]:  # fmt: skip
    """Check all directions at once, with seeds other than 1: the result is the weighted sum of the single ones.

    Every second seed is zero then, as in importers that request one column of a matrix with all its knowns.

    Each seed is a change of its variable's own magnitude: with equal seeds small effects would be lost in round-off.
    """
    name, mode = rule_and_mode
    is_adjoint = name == "partials.adjoint"
    scales, unit_magnitudes = (
        [*map(fixture.typical_magnitude, knowns)],
        [*map(fixture.magnitudes.unit_magnitude, unknowns)],
    )
    sizes, answer_scales = (
        ([1.0 / factor for factor in unit_magnitudes], [1.0 / factor for factor in scales])
        if is_adjoint
        else (scales, unit_magnitudes)
    )
    full_seed = [size * fixture.random.choice((-1.0, 1.0)) * fixture.random.uniform(0.3, 3.0) for size in sizes]
    for zero_parity in (None, 0, 1):
        seed = (
            full_seed
            if zero_parity is None
            else [0.0 if index % 2 == zero_parity else factor for index, factor in enumerate(full_seed)]
        )
        status, combined_values = instance.get_partial_derivatives(unknowns, knowns, seed, adjoint=is_adjoint)
        if status not in {OK, WARNING}:
            message = f"a request of all directions at once in {mode} returns {status_name(status)}"
            yield RuleViolation(name, message, fixture.interface)
            return
        deviation = next(
            _find_deviations(
                (knowns if is_adjoint else unknowns), combined_values, (seed, full_seed), rows, answer_scales
            ),
            None,
        )
        if deviation:
            variable, answer, expected = deviation
            direction_text = (
                "all directions at once" if zero_parity is None else "all directions at once, half of them with zero,"
            )
            message = (
                f'"{variable.name}": for {direction_text} it reports {answer:.7g} in {mode}, the sum of the '
                "directions one by one is "
            )
            yield RuleViolation(name, f"{message}{expected:.7g}", fixture.interface)
            return


def _find_deviations(
    variables: Sequence[DescribedVariable], values: Sequence[float], seeds: tuple[Sequence[float], Sequence[float]],
    rows: Sequence[Sequence[float]], answer_scales: Sequence[float],
) -> Iterator[tuple[DescribedVariable, float, float]]:  # fmt: skip
    """Yield each variable whose combined derivative differs from the weighted sum of rows, with both values.

    The second seed, without zeros, gives the magnitudes.
    """
    terms, full_terms = (
        [[factor * row[index] for factor, row in zip(seed, rows, strict=True)] for index in range(len(values))]
        for seed in seeds
    )
    # A derivative that is zero but for round-off has the round-off of the others, with which it was computed.
    magnitudes = [sum(map(abs, variable_terms)) for variable_terms in full_terms]
    noise_levels = [
        1e-11 * item
        for item in find_largest_of_similar_magnitude(
            [size if math.isfinite(size) else 0.0 for size in magnitudes], answer_scales
        )
    ]
    for item, value, variable_terms, magnitude, noise in zip(
        variables, values, terms, magnitudes, noise_levels, strict=True
    ):
        if (
            math.isfinite(sum(variable_terms))
            and not abs(value - sum(variable_terms)) <= 0.1 * RELATIVE_TOLERANCE * magnitude + noise
        ):
            yield item, value, sum(variable_terms)


def _provides_derivatives(fixture: TrialFixture) -> bool:
    """Return whether the FMU offers directional or adjoint derivatives."""
    return any(
        fixture.flag(name)
        for name in ("providesDirectionalDerivative", "providesDirectionalDerivatives", "providesAdjointDerivatives")
    )


@register_trial("derivatives in Continuous-Time Mode", *PARTIAL_DERIVATIVE_RULES, interfaces=("ModelExchange",))
def try_continuous_derivatives(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check outputs and derivatives by states and inputs."""
    variables = [
        variable.variable
        for name in ("Outputs", "Derivatives")
        for variable in fixture.description.model_structure_entries(name)
    ]
    unknowns = [
        variable
        for variable in dict.fromkeys(variables)
        if variable in fixture.float_scalar_set and variable is not None and variable.variability == "continuous"
    ]
    knowns = [*fixture.states, *fixture.inputs]
    if not _provides_derivatives(fixture) or not unknowns or not knowns or len(fixture.states) != fixture.n_states:
        return
    has_time = fixture.make_time_remaining_check()
    tunable_values: dict[DescribedVariable, Value] = {
        variable: fixture.choose_near_start(variable, 0.1)
        for variable in fixture.select_scalars("parameter", variability="tunable")
    }
    with fixture.open_instance() as instance:
        try:
            fixture.initialize(instance, initial_values=tunable_values)
        except (RefusedCallError, SkippedTrialError):
            instance.reset()
            fixture.initialize(instance)
        for number in range(MAX_POINTS):
            if not has_time():
                break
            point = choose_random_fmu_point(fixture, instance, number / MAX_POINTS if number % 2 else None)
            yield from _check_near_random_point(fixture, instance, point, unknowns, knowns)
    for number in range(1, PARAMETER_SETS + 1):
        initial_values = choose_excited_run_values(fixture, number)
        with fixture.open_instance() as instance, suppress(RefusedCallError, SkippedTrialError):
            if initial_values and has_time():
                fixture.initialize(instance, initial_values=initial_values)
                yield from _check_at_point(
                    fixture, instance, choose_random_fmu_point(fixture, instance), unknowns, knowns
                )
    with fixture.open_instance() as instance, suppress(RefusedCallError, SkippedTrialError):
        for point, _ in iterate_points_between_events(fixture, instance):
            if has_time():
                yield from _check_at_point(fixture, instance, point, unknowns, knowns)


def _check_near_random_point(
    fixture: TrialFixture,
    instance: FmuInstance,
    point: EvaluationPoint,
    unknowns: Sequence[DescribedVariable],
    knowns: Sequence[DescribedVariable],
) -> Iterator[RuleViolation]:
    """Yield what :func:`_check_at_point` yields; nothing where the FMU answers a change with Discard.

    Nobody says that the FMU has values beside states that the auditor has made up: a loop may close at a point, and not
    a little beyond it.
    """
    try:
        yield from _check_at_point(fixture, instance, point, unknowns, knowns)
    except RefusedCallError as refusal:
        if refusal.status != DISCARD:
            raise
        fixture.skipped.append(f"{fixture.interface}: derivatives beside a random point: {refusal}")


def _check_at_point(
    fixture: TrialFixture,
    instance: FmuInstance,
    point: EvaluationPoint,
    unknowns: Sequence[DescribedVariable],
    knowns: Sequence[DescribedVariable],
) -> Iterator[RuleViolation]:
    """Yield differences at a point, and the FMU's derivatives there."""
    matrix: DifferenceMatrix = []
    unit_magnitudes = [*map(fixture.magnitudes.unit_magnitude, unknowns)]
    for known_index, known in enumerate(knowns):
        change = RELATIVE_CHANGE * max(
            abs((*point.states, *point.inputs)[known_index]), fixture.typical_magnitude(known)
        )
        matrix.append(
            _difference_column(
                partial(_evaluate_with_change, fixture, instance, point, known_index, unknowns), change, unit_magnitudes
            )
        )
    set_fmu_to_evaluation_point(fixture, instance, point)
    yield from _compare_with_differences(fixture, instance, unknowns, knowns, matrix, "Continuous-Time Mode")


def _evaluate_with_change(
    fixture: TrialFixture,
    instance: FmuInstance,
    point: EvaluationPoint,
    known_index: int,
    unknowns: Sequence[DescribedVariable],
    change: float,
) -> list[float]:
    """Return the unknowns with known k (states, then inputs) changed by `change`."""
    values = [*point.states, *point.inputs]
    values[known_index] += change
    count = len(point.states)
    set_fmu_to_evaluation_point(
        fixture, instance, EvaluationPoint(point.time, tuple(values[:count]), tuple(values[count:]))
    )
    return [float(value) for value in instance.get(unknowns) if isinstance(value, float)]


@register_trial("derivatives in Initialization Mode", *PARTIAL_DERIVATIVE_RULES)
def try_initial_derivatives(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check initial unknowns by knowns of that mode, where dependencies are declared."""
    entries = [
        item
        for item in fixture.description.model_structure_entries("InitialUnknowns")
        if item.variable in fixture.float_scalar_set
    ]
    unknowns = [item.variable for item in entries if item.variable and item.variable.variability != "discrete"]
    targets = {id(target): target for item in entries for target in item.targets if target in fixture.float_scalar_set}
    knowns = [item for item in targets.values() if item is not None and item.causality != "independent"]
    if not _provides_derivatives(fixture) or not unknowns or not knowns:
        return
    with fixture.open_instance() as instance:
        instance.enter_initialization(fixture.start, None, fixture.tolerance)
        try:
            instance.set({item: fixture.choose_near_start(item, 0.03) for item in knowns})
            instance.get(unknowns)
        except RefusedCallError:
            instance.reset()
            instance.enter_initialization(fixture.start, None, fixture.tolerance)
        matrix: DifferenceMatrix = []
        unit_magnitudes = [*map(fixture.magnitudes.unit_magnitude, unknowns)]
        for known in knowns:
            try:
                old_value = instance.get([known])[0]
            except RefusedCallError:  # FMI 2 lets an FMU show only outputs, states and derivatives there
                return
            if not isinstance(old_value, float):
                return
            change = RELATIVE_CHANGE * max(abs(old_value), fixture.typical_magnitude(known))
            matrix.append(
                _difference_column(
                    partial(_evaluate_with_initial_change, instance, known, old_value, unknowns),
                    change,
                    unit_magnitudes,
                )
            )
            instance.set({known: old_value})
        yield from _compare_with_differences(fixture, instance, unknowns, knowns, matrix, "Initialization Mode")


def _evaluate_with_initial_change(
    instance: FmuInstance, known: DescribedVariable, value: float, unknowns: Sequence[DescribedVariable], change: float
) -> list[float]:
    """Return the unknowns with one known set to its value plus a change."""
    instance.set({known: value + change})
    return [float(item) for item in instance.get(unknowns) if isinstance(item, float)]
