"""Compare directional and adjoint derivatives with differences and with each other, in two modes.

Importers request one column of a Jacobian, one gradient, or a product with a dense vector. All of that is one linear
map, whatever way it goes through the FMU.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import product

from mb2fmu.audit.behaviour.fixture.excited_runs import choose_excited_run_values
from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture
from mb2fmu.audit.behaviour.fixture.trial_registry import register_trial
from mb2fmu.audit.behaviour.fixture.typical_magnitudes import MagnitudeWeightedMaxima, compute_magnitude_ratio_weight
from mb2fmu.audit.behaviour.instance.fmi_c_interface import (
    DISCARD,
    OK,
    WARNING,
    RefusedCallError,
    Value,
    format_fmi_status,
)
from mb2fmu.audit.behaviour.instance.fmu_instance import FmuInstance
from mb2fmu.audit.behaviour.process.trial_time_budget import SkippedTrialError
from mb2fmu.audit.behaviour.trials.model_exchange_trials import (
    FmuEvaluationPoint,
    choose_random_fmu_point,
    iterate_points_between_events,
    set_changed_point_values,
    set_fmu_to_evaluation_point,
)
from mb2fmu.audit.description.description_records import DescribedVariable
from mb2fmu.audit.rules_and_findings import RuleViolation

RELATIVE_CHANGE = 1e-5
"""Relative change for differences of second order; their error is near 1e-9 then."""

RELATIVE_TOLERANCE = 1e-3
"""Relative; an FMU may calculate them by one-sided differences, which are right to some 1e-4."""
PARAMETER_SETS = 3
"""Sets of other parameters, with each of which one point is tried."""

CALLS_PER_COLUMN = 15
"""Of differences by one known: it is changed to both sides by two sizes, and where that shows a kink not at all."""

MAX_POINTS = 8
"""Near the start and along the motion, if there is time for them."""

DifferenceMatrix = list[list[tuple[float, float] | None]]
"""[known][unknown]: derivative by differences, and how far these may be off; None where they disagree."""

LINEARITY_TOLERANCE = 1e-6
"""Relative difference between requests, where derivatives are linear in their seeds."""
MAX_PAIRS = 400
"""Pairs of one unknown and one known that are requested by themselves, about."""

PARTIAL_DERIVATIVE_RULES = ("partials.directional", "partials.adjoint")


def _difference_column(
    evaluate: Callable[[float], list[float]], change: float, unit_maxima: MagnitudeWeightedMaxima
) -> list[tuple[float, float] | None]:
    """Return one column of a Jacobian; None where two step sizes disagree (a kink, or noise).

    Args:
        evaluate: Returns the unknowns with the known changed by an amount.
        change: Of the known.
        unit_maxima: Spreads the sizes of the unknowns by the magnitudes of their units.
    """
    column: list[tuple[float, float] | None] = []
    evaluations = [[evaluate(sign * size) for sign in (1.0, -1.0)] for size in (change, 0.3 * change)]
    end_values = list(zip(*evaluations[0], *evaluations[1], strict=True))
    # The unknowns of one linear solve share their round-off.
    noise_levels = [1e-13 * size / change for size in unit_maxima.of([*map(_largest_finite_magnitude, end_values)])]
    may_have_kinks = [_may_have_kink(end, change, noise) for end, noise in zip(end_values, noise_levels, strict=True)]
    middle_values = evaluate(0.0) if any(may_have_kinks) else [0.0] * len(end_values)
    for (plus, minus, near_plus, near_minus), middle_value, noise, may_have_kink in zip(
        end_values, middle_values, noise_levels, may_have_kinks, strict=True
    ):
        wide_difference, narrow_difference = (plus - minus) / (2 * change), (near_plus - near_minus) / (0.6 * change)
        deviation = abs(wide_difference - narrow_difference)
        is_smooth = deviation <= 1e-3 * max(abs(wide_difference), abs(narrow_difference)) + 100 * noise
        # Beside the middle a kink rises in proportion (0.3), what is curved by squares (0.09).
        is_kink = may_have_kink and abs(near_plus + near_minus - 2 * middle_value) > 0.2 * abs(
            plus + minus - 2 * middle_value
        )
        is_reliable = is_smooth and not is_kink and math.isfinite(narrow_difference)
        column.append((narrow_difference, deviation + 10 * noise) if is_reliable else None)
    return column


def _largest_finite_magnitude(values: tuple[float, float, float, float]) -> float:
    """Return the largest size of the finite numbers, 0 if none is."""
    if math.isfinite(sum(values)):  # seldom not: then one by one
        return max(map(abs, values))
    return max((abs(value) for value in values if math.isfinite(value)), default=0.0)


def _may_have_kink(end_values: tuple[float, float, float, float], change: float, noise: float) -> bool:
    """Return whether slopes on both sides may differ: of values at 1, -1, 0.3 and -0.3 times the change."""
    plus, minus, near_plus, near_minus = end_values
    if plus == minus == near_plus == near_minus:
        return False
    slope_change = abs(plus + minus - near_plus - near_minus) / (1.4 * change)
    return slope_change > RELATIVE_TOLERANCE * abs(near_plus - near_minus) / (0.6 * change) + 100 * noise


def _compare_with_differences(
    fixture: TrialFixture,
    instance: FmuInstance,
    unknowns: Sequence[DescribedVariable],
    knowns: Sequence[DescribedVariable],
    matrix: DifferenceMatrix,
    mode: str,
    *,
    in_parts: bool,
) -> Iterator[RuleViolation]:
    """Compare ``matrix[known][unknown]`` from differences with the FMU's derivatives.

    ``in_parts``: also compare requests of parts with each other.
    """
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
                message = f'the request for "{variable.name}" in {mode} returns {format_fmi_status(status)}'
                message += f': "{instance.messages[-1][2]}"' if instance.messages else ""
                yield RuleViolation(name, message, fixture.interface)
                break
            rows.append(values)
        else:
            answers.append((name, [list(column) for column in zip(*rows, strict=True)] if is_adjoint else rows))
            yield from _check_other_requests(fixture, instance, unknowns, knowns, rows, (name, mode), in_parts=in_parts)
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
    for name, rows in answers:
        for known_index, (column, row) in enumerate(zip(matrix, rows, strict=True)):
            for unknown_index, (entry, reported) in enumerate(zip(column, row, strict=True)):
                if entry is None:
                    continue
                measured, uncertainty = entry
                difference = abs(reported - measured)
                if difference <= RELATIVE_TOLERANCE * abs(measured) + 3 * uncertainty:
                    continue
                smallest_scale = _smallest_derivative_scale(
                    fixture, knowns, unknowns[unknown_index], [column[unknown_index] for column in matrix], known_index
                )
                if difference <= RELATIVE_TOLERANCE * smallest_scale + 3 * uncertainty:
                    continue
                message = f'∂"{unknowns[unknown_index].name}"/∂"{knowns[known_index].name}" is {measured:.7g}'
                message += f" by differences in {mode}, it reports {reported:.7g}"
                yield RuleViolation(name, message, fixture.interface)
                return


def _smallest_derivative_scale(
    fixture: TrialFixture,
    knowns: Sequence[DescribedVariable],
    unknown: DescribedVariable,
    derivatives: Sequence[tuple[float, float] | None],
    known_index: int,
) -> float:
    """Return the size of a derivative of an unknown below which it is round-off of the others, ``derivatives``."""
    scales = [*map(fixture.typical_magnitude, knowns)]
    # Derivatives by knowns of small magnitudes are large.
    maxima = MagnitudeWeightedMaxima([1.0 / scale for scale in scales])
    return max(
        1e-2 * maxima.of([abs(entry[0]) if entry else 0.0 for entry in derivatives])[known_index],
        1e-7 * compute_magnitude_ratio_weight(fixture.magnitudes.unit_magnitude(unknown), scales[known_index]),
    )


@dataclass(frozen=True, slots=True)
class _SuperposedDerivativeRequest:
    """A request whose result follows from those of single directions.

    Attributes:
        seeded: Numbers of the variables that have seeds: knowns, of adjoint derivatives unknowns.
        answered: Numbers of the others.
        seed: One for each seeded variable.
        text: Of the request, for the message.
    """

    seeded: Sequence[int]
    answered: Sequence[int]
    seed: Sequence[float]
    text: str = "all directions at once"


def _list_combined_requests(full_seed: Sequence[float], count: int) -> Iterator[_SuperposedDerivativeRequest]:
    """Yield requests of all directions, also with every second seed zero: importers request columns of matrices so."""
    everything = range(len(full_seed))
    yield _SuperposedDerivativeRequest(everything, range(count), full_seed)
    for parity in (0, 1):
        seed = [0.0 if index % 2 == parity else factor for index, factor in enumerate(full_seed)]
        yield _SuperposedDerivativeRequest(
            everything, range(count), seed, "all directions at once, half of them with zero,"
        )


def _list_partial_requests(
    full_seed: Sequence[float], count: int, order: Sequence[int]
) -> Iterator[_SuperposedDerivativeRequest]:
    """Yield requests of parts: one seed of all, one result of all seeds in another order, single pairs.

    Args:
        full_seed: Of all seeded variables.
        count: Number of results.
        order: Numbers of the seeded variables in that order.
    """
    everything = range(len(full_seed))
    for index, factor in enumerate(full_seed):
        seed = [factor if other == index else 0.0 for other in everything]
        yield _SuperposedDerivativeRequest(everything, range(count), seed, "all directions, of which one has a seed,")
    for answered in range(count):
        seed = [full_seed[index] for index in order]
        yield _SuperposedDerivativeRequest(order, [answered], seed, "all directions in another order, for it alone,")
    apart = 1 + len(full_seed) * count // MAX_PAIRS
    for index, answered in product(everything, range(count)):
        if (index + answered) % apart == 0:
            yield _SuperposedDerivativeRequest([index], [answered], [full_seed[index]], "one direction, for it alone,")


def _check_other_requests(
    fixture: TrialFixture, instance: FmuInstance, unknowns: Sequence[DescribedVariable],
    knowns: Sequence[DescribedVariable],
    rows: Sequence[Sequence[float]], rule_and_mode: tuple[str, str], *, in_parts: bool,
) -> Iterator[RuleViolation]:  # fmt: skip
    """Check other requests against those of single directions: all are one linear map.

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
    seeded, answered = (unknowns, knowns) if is_adjoint else (knowns, unknowns)

    def evaluate(request: _SuperposedDerivativeRequest) -> tuple[int, list[float]]:
        with_seed, others = [seeded[k] for k in request.seeded], [answered[k] for k in request.answered]
        rows_of, columns_of = (with_seed, others) if is_adjoint else (others, with_seed)
        return instance.get_partial_derivatives(rows_of, columns_of, list(request.seed), adjoint=is_adjoint)

    bounds = _bound_deviations(evaluate, full_seed, rows, answer_scales)
    requests = [*_list_combined_requests(full_seed, len(answered))]
    backwards = sorted(range(len(seeded)), key=lambda k: seeded[k].reference or 0, reverse=True)
    requests += [*_list_partial_requests(full_seed, len(answered), backwards)] if in_parts else []
    for request in requests:
        status, values = evaluate(request)
        if status not in {OK, WARNING}:
            message = f"a request of {request.text.rstrip(',')} in {mode} returns {format_fmi_status(status)}"
            yield RuleViolation(name, message, fixture.interface)
            return
        seeded_rows = [(rows[k], factor) for k, factor in zip(request.seeded, request.seed, strict=True) if factor]
        for position, value in zip(request.answered, values, strict=True):
            expected = sum(factor * row[position] for row, factor in seeded_rows)
            if math.isfinite(expected + bounds[position]) and not abs(value - expected) <= bounds[position]:
                message = f'"{answered[position].name}": for {request.text} it reports {value:.7g} in {mode}'
                message += f", the sum of the directions one by one is {expected:.7g}"
                yield RuleViolation(name, message, fixture.interface)
                return


def _bound_deviations(
    evaluate: Callable[[_SuperposedDerivativeRequest], tuple[int, list[float]]], full_seed: Sequence[float],
    rows: Sequence[Sequence[float]], answer_scales: Sequence[float],
) -> list[float]:  # fmt: skip
    """Return how far each result may be off the sum of single directions.

    Derivatives that an FMU computes by differences are no linear map; so it is measured how far those with twice and
    with minus the seeds are off.
    """
    count, everything = len(answer_scales), range(len(full_seed))
    # A derivative that is zero but for round-off has the round-off of the others, with which it was computed.
    magnitudes = [sum(abs(factor * row[k]) for factor, row in zip(full_seed, rows, strict=True)) for k in range(count)]
    noise_levels = MagnitudeWeightedMaxima(answer_scales).of(
        [size if math.isfinite(size) else 0.0 for size in magnitudes]
    )
    values = [
        evaluate(_SuperposedDerivativeRequest(everything, range(count), [factor * seed for seed in full_seed]))[1]
        for factor in (1.0, 2.0, -1.0)
    ]
    deviations = [0.0]
    for magnitude, once, *others in zip(magnitudes, *values, strict=True):
        for factor, other in zip((2.0, -1.0), others, strict=True):
            if magnitude > 0.0 and math.isfinite(other - once):
                deviations.append(abs(other / factor - once) / magnitude)
    tolerance = min(max(LINEARITY_TOLERANCE, 100.0 * max(deviations)), 0.1 * RELATIVE_TOLERANCE)
    return [tolerance * magnitude + 1e-11 * noise for magnitude, noise in zip(magnitudes, noise_levels, strict=True)]


def _provides_derivatives(fixture: TrialFixture) -> bool:
    """Return whether the FMU offers directional or adjoint derivatives."""
    return any(
        fixture.flag(name)
        for name in ("providesDirectionalDerivative", "providesDirectionalDerivatives", "providesAdjointDerivatives")
    )


@register_trial("derivatives in Continuous-Time Mode", *PARTIAL_DERIVATIVE_RULES, interfaces=("ModelExchange",))
def try_partial_derivatives_in_continuous_mode(fixture: TrialFixture) -> Iterator[RuleViolation]:
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
            yield from _check_near_random_point(fixture, instance, point, unknowns, knowns, number)
    for number in range(1, PARAMETER_SETS + 1):
        initial_values = choose_excited_run_values(fixture, number)
        with fixture.open_instance() as instance, suppress(RefusedCallError, SkippedTrialError):
            if initial_values and has_time():
                fixture.initialize(instance, initial_values=initial_values)
                point = choose_random_fmu_point(fixture, instance)
                yield from _check_at_point(fixture, instance, point, unknowns, knowns, MAX_POINTS + number)
    with fixture.open_instance() as instance, suppress(RefusedCallError, SkippedTrialError):
        for number, (point, _) in enumerate(iterate_points_between_events(fixture, instance), 1):
            if has_time():
                yield from _check_at_point(fixture, instance, point, unknowns, knowns, number)


def _check_near_random_point(
    fixture: TrialFixture,
    instance: FmuInstance,
    point: FmuEvaluationPoint,
    unknowns: Sequence[DescribedVariable],
    knowns: Sequence[DescribedVariable],
    number: int,
) -> Iterator[RuleViolation]:
    """Yield what :func:`_check_at_point` yields; nothing where the FMU answers a change with Discard.

    Nobody says that the FMU has values beside states that the auditor has made up: a loop may close at a point, and not
    a little beyond it.
    """
    try:
        yield from _check_at_point(fixture, instance, point, unknowns, knowns, number)
    except RefusedCallError as refusal:
        if refusal.status != DISCARD:
            raise
        fixture.skipped.append(f"{fixture.interface}: derivatives beside a random point: {refusal}")


def _check_at_point(
    fixture: TrialFixture,
    instance: FmuInstance,
    point: FmuEvaluationPoint,
    unknowns: Sequence[DescribedVariable],
    knowns: Sequence[DescribedVariable],
    number: int,
) -> Iterator[RuleViolation]:
    """Yield differences at a point, and the FMU's derivatives there.

    At the first point, of number 0, requests of parts are compared too. Where the calls of a run are limited, other
    points have differences by some of the knowns, each by others.
    """
    unit_maxima = MagnitudeWeightedMaxima([*map(fixture.magnitudes.unit_magnitude, unknowns)])
    chosen: Sequence[int] = range(len(knowns))
    if number:
        chosen = fixture.choose_affordable(chosen, CALLS_PER_COLUMN * (MAX_POINTS + PARAMETER_SETS), number)
    matrix: DifferenceMatrix = [[None] * len(unknowns) for _ in knowns]
    here = point
    set_fmu_to_evaluation_point(fixture, instance, point)

    def evaluate(index: int, change: float) -> list[float]:
        """Return the unknowns with one known (states, then inputs) changed by an amount."""
        nonlocal here
        values, count = [*point.states, *point.inputs], len(point.states)
        values[index] += change
        there = FmuEvaluationPoint(point.time, tuple(values[:count]), tuple(values[count:]))
        set_changed_point_values(fixture, instance, here, there)
        here = there
        return [float(value) for value in instance.get(unknowns) if isinstance(value, float)]

    for index in chosen:
        size = max(abs((*point.states, *point.inputs)[index]), fixture.typical_magnitude(knowns[index]))
        matrix[index] = _difference_column(partial(evaluate, index), RELATIVE_CHANGE * size, unit_maxima)
    set_fmu_to_evaluation_point(fixture, instance, point)
    mode = "Continuous-Time Mode"
    yield from _compare_with_differences(fixture, instance, unknowns, knowns, matrix, mode, in_parts=not number)


@register_trial("derivatives in Initialization Mode", *PARTIAL_DERIVATIVE_RULES)
def try_partial_derivatives_at_initialization(fixture: TrialFixture) -> Iterator[RuleViolation]:
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
        unit_maxima = MagnitudeWeightedMaxima([*map(fixture.magnitudes.unit_magnitude, unknowns)])
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
                    unit_maxima,
                )
            )
            instance.set({known: old_value})
        mode = "Initialization Mode"
        yield from _compare_with_differences(fixture, instance, unknowns, knowns, matrix, mode, in_parts=True)


def _evaluate_with_initial_change(
    instance: FmuInstance, known: DescribedVariable, value: float, unknowns: Sequence[DescribedVariable], change: float
) -> list[float]:
    """Return the unknowns with one known set to its value plus a change."""
    instance.set({known: value + change})
    return [float(item) for item in instance.get(unknowns) if isinstance(item, float)]
