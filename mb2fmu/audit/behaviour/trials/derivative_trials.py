"""Compare directional and adjoint derivatives with differences, in Continuous-Time and Initialization Mode."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial

from mb2fmu.audit.behaviour.fixture.excited_runs import choose_parameters_and_starts
from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture
from mb2fmu.audit.behaviour.fixture.trial_registry import probe
from mb2fmu.audit.behaviour.fixture.typical_magnitudes import relative_part, share_largest_of_unit
from mb2fmu.audit.behaviour.instance.fmi_types import OK, WARNING, RefusedCallError, Value, status_name
from mb2fmu.audit.behaviour.instance.instance import FmuInstance
from mb2fmu.audit.behaviour.process.time_budget import SkippedTrialError
from mb2fmu.audit.behaviour.trials.model_exchange_trials import (
    EvaluationPoint,
    choose_random_point,
    iterate_points_between_events,
    move_to_point,
)
from mb2fmu.audit.description.description_records import DescribedVariable
from mb2fmu.audit.findings import Observation

STEP = 1e-5
"""Relative change for differences of second order; their error is near 1e-9 then."""

AGREEMENT = 1e-3
"""Relative; an FMU may calculate them by one-sided differences, which are right to some 1e-4."""
SETS = 3
"""Sets of other parameters, with each of which one point is tried."""

POINTS = 8
"""Near the start and along the motion, if there is time for them."""

Matrix = list[list[tuple[float, float] | None]]
"""[known][unknown]: derivative by differences, and how far these may be off; None where they disagree."""

RULES = ("partials.directional", "partials.adjoint")


def _column(
    values: Callable[[float], list[float]], change: float, natural: Sequence[float]
) -> list[tuple[float, float] | None]:
    """Return one column of a Jacobian; None where two step sizes disagree (a kink, or noise).

    Args:
        values: What the unknowns are with the known changed by so much.
        change: Of the known.
        natural: Magnitudes of the unknowns' units.
    """
    found: list[tuple[float, float] | None] = []
    rows = [[values(sign * size) for sign in (1.0, -1.0)] for size in (change, 0.3 * change)]
    ends = list(zip(rows[0][0], rows[0][1], rows[1][0], rows[1][1], strict=True))
    # The unknowns of one linear solve share their round-off.
    noises = [
        1e-13 * each / change
        for each in share_largest_of_unit([max(_finite(end), default=0.0) for end in ends], natural)
    ]
    turning = any(_turns(end, change, noise) for end, noise in zip(ends, noises, strict=True))
    middle = values(0.0) if turning else [0.0] * len(ends)
    for (a, b, c, d), here, noise in zip(ends, middle, noises, strict=True):
        wide, narrow = (a - b) / (2 * change), (c - d) / (0.6 * change)
        smooth = abs(wide - narrow) <= 1e-3 * max(abs(wide), abs(narrow)) + 100 * noise
        # Beside the middle a kink rises in proportion (0.3), what is curved by squares (0.09).
        kink = _turns((a, b, c, d), change, noise) and abs(c + d - 2 * here) > 0.2 * abs(a + b - 2 * here)
        known = smooth and not kink and math.isfinite(narrow)
        found.append((narrow, abs(wide - narrow) + 10 * noise) if known else None)
    return found


def _finite(values: Sequence[float]) -> Iterator[float]:
    """Yield the sizes of finite numbers."""
    return (abs(each) for each in values if math.isfinite(each))


def _turns(ends: tuple[float, float, float, float], change: float, noise: float) -> bool:
    """Return whether slopes on both sides may differ: of values at 1, -1, 0.3 and -0.3 times the change."""
    a, b, c, d = ends
    between = abs(a + b - c - d) / (1.4 * change)
    return between > AGREEMENT * abs(c - d) / (0.6 * change) + 100 * noise


def _compare(
    stage: TrialFixture,
    instance: FmuInstance,
    unknowns: Sequence[DescribedVariable],
    knowns: Sequence[DescribedVariable],
    matrix: Matrix,
    mode: str,
) -> Iterator[Observation]:
    """Compare ``matrix[known][unknown]`` from differences with the FMU's derivatives."""
    directional = stage.flag(
        "providesDirectionalDerivative" if stage.description.version == 2 else "providesDirectionalDerivatives"
    )
    adjoint = stage.description.version == 3 and stage.flag("providesAdjointDerivatives")
    said: list[tuple[str, list[list[float]]]] = []
    for wanted, name in ((directional, "partials.directional"), (adjoint, "partials.adjoint")):
        if not wanted:
            continue
        back = name == "partials.adjoint"
        rows = []
        for each in unknowns if back else knowns:
            above, below = ([each], knowns) if back else (unknowns, [each])
            status, values = instance.directional(above, below, [1.0], adjoint=back)
            if status not in {OK, WARNING}:
                text = f'asked for "{each.name}" in {mode} it answers {status_name(status)}'
                text += f': "{instance.messages[-1][2]}"' if instance.messages else ""
                yield Observation(name, text, stage.kind)
                break
            rows.append(values)
        else:
            said.append((name, [list(column) for column in zip(*rows, strict=True)] if back else rows))
            yield from _combined(stage, instance, unknowns, knowns, rows, (name, mode))
    natural, scales = [*map(stage.magnitudes.natural, unknowns)], [*map(stage.scale, knowns)]
    # Derivatives by knowns of small magnitudes are large.
    columns = [[abs(each[0]) if each else 0.0 for each in column] for column in zip(*matrix, strict=True)]
    wholes = [share_largest_of_unit(column, [1.0 / each for each in scales]) for column in columns]
    for name, rows in said:
        for j, known in enumerate(knowns):
            for i, unknown in enumerate(unknowns):
                least = max(1e-2 * wholes[i][j], 1e-7 * relative_part(natural[i], scales[j]))
                entry = matrix[j][i]
                if entry is None:
                    continue
                measured, off = entry
                if abs(rows[j][i] - measured) <= AGREEMENT * max(abs(measured), least) + 3 * off:
                    continue
                text = f'∂"{unknown.name}"/∂"{known.name}" is {measured:.7g} by differences in {mode}'
                text += f", it says {rows[j][i]:.7g}"
                yield Observation(name, text, stage.kind)
                return


def _combined(
    stage: TrialFixture, instance: FmuInstance, unknowns: Sequence[DescribedVariable],
    knowns: Sequence[DescribedVariable],
    rows: Sequence[Sequence[float]], what: tuple[str, str],
) -> Iterator[Observation]:  # fmt: skip
    """Check all directions at once, with seeds other than 1: the result is the weighted sum of the single ones.

    Every second seed is zero then, as in importers that ask for one column of a matrix with all its knowns.

    Each seed is a change of its variable's own magnitude: beside 1 kg what 1 m/s2 does to a nanogram is round-off.
    """
    name, mode = what
    back = name == "partials.adjoint"
    scales, natural = [*map(stage.scale, knowns)], [*map(stage.magnitudes.natural, unknowns)]
    sizes, answers = ([1.0 / each for each in natural], [1.0 / each for each in scales]) if back else (scales, natural)
    whole = [size * stage.random.choice((-1.0, 1.0)) * stage.random.uniform(0.3, 3.0) for size in sizes]
    for first in (None, 0, 1):
        seed = whole if first is None else [0.0 if k % 2 == first else each for k, each in enumerate(whole)]
        status, found = instance.directional(unknowns, knowns, seed, adjoint=back)
        if status not in {OK, WARNING}:
            text = f"asked for all directions at once in {mode} it answers {status_name(status)}"
            yield Observation(name, text, stage.kind)
            return
        wrong = next(_departing((knowns if back else unknowns), found, (seed, whole), rows, answers), None)
        if wrong:
            each, value, total = wrong
            how = "all directions at once" if first is None else "all directions at once, half of them with zero,"
            text = f'"{each.name}": for {how} it says {value:.7g} in {mode}, the sum of the directions one by one is '
            yield Observation(name, f"{text}{total:.7g}", stage.kind)
            return


def _departing(
    sought: Sequence[DescribedVariable], found: Sequence[float], seeds: tuple[Sequence[float], Sequence[float]],
    rows: Sequence[Sequence[float]], answers: Sequence[float],
) -> Iterator[tuple[DescribedVariable, float, float]]:  # fmt: skip
    """Yield where the answer to the first seed is another one than the weighted sum of rows, with both.

    The second one, without zeros, gives the magnitudes.
    """
    sown, columns = (
        [[factor * row[k] for factor, row in zip(seed, rows, strict=True)] for k in range(len(found))] for seed in seeds
    )
    # A derivative that is zero but for round-off has the round-off of the others, with which it was computed.
    totals = [sum(map(abs, parts)) for parts in columns]
    noises = [
        1e-11 * each
        for each in share_largest_of_unit([size if math.isfinite(size) else 0.0 for size in totals], answers)
    ]
    for each, value, parts, total, noise in zip(sought, found, sown, totals, noises, strict=True):
        if math.isfinite(sum(parts)) and not abs(value - sum(parts)) <= 0.1 * AGREEMENT * total + noise:
            yield each, value, sum(parts)


def _wanted(stage: TrialFixture) -> bool:
    """Return whether the FMU offers directional or adjoint derivatives."""
    return any(
        stage.flag(name)
        for name in ("providesDirectionalDerivative", "providesDirectionalDerivatives", "providesAdjointDerivatives")
    )


@probe("derivatives in Continuous-Time Mode", *RULES, kinds=("ModelExchange",))
def try_continuous_derivatives(stage: TrialFixture) -> Iterator[Observation]:
    """Check outputs and derivatives by states and inputs."""
    listed = [each.variable for name in ("Outputs", "Derivatives") for each in stage.description.listed(name)]
    unknowns = [
        each
        for each in dict.fromkeys(listed)
        if each in stage.scalar_set and each is not None and each.variability == "continuous"
    ]
    knowns = [*stage.states, *stage.inputs]
    if not _wanted(stage) or not unknowns or not knowns or len(stage.states) != stage.n_states:
        return
    patient = stage.patient()
    tunable: dict[DescribedVariable, Value] = {
        each: stage.near(each, 0.1) for each in stage.role("parameter", variability="tunable")
    }
    with stage.instance() as instance:
        try:
            stage.initialize(instance, within=tunable)
        except (RefusedCallError, SkippedTrialError):
            instance.reset()
            stage.initialize(instance)
        for number in range(POINTS):
            if not patient():
                break
            point = choose_random_point(stage, instance, number / POINTS if number % 2 else None)
            yield from _at(stage, instance, point, unknowns, knowns)
    for number in range(1, SETS + 1):
        within = choose_parameters_and_starts(stage, number)
        with stage.instance() as instance, suppress(RefusedCallError, SkippedTrialError):
            if within and patient():
                stage.initialize(instance, within=within)
                yield from _at(stage, instance, choose_random_point(stage, instance), unknowns, knowns)
    with stage.instance() as instance, suppress(RefusedCallError, SkippedTrialError):
        for point, _ in iterate_points_between_events(stage, instance):
            if patient():
                yield from _at(stage, instance, point, unknowns, knowns)


def _at(
    stage: TrialFixture,
    instance: FmuInstance,
    point: EvaluationPoint,
    unknowns: Sequence[DescribedVariable],
    knowns: Sequence[DescribedVariable],
) -> Iterator[Observation]:
    """Yield differences at a point, and the FMU's derivatives there."""
    matrix: Matrix = []
    natural = [*map(stage.magnitudes.natural, unknowns)]
    for k, known in enumerate(knowns):
        size = STEP * max(abs((*point.states, *point.inputs)[k]), stage.scale(known))
        matrix.append(_column(partial(_moved, stage, instance, point, k, unknowns), size, natural))
    move_to_point(stage, instance, point)
    yield from _compare(stage, instance, unknowns, knowns, matrix, "Continuous-Time Mode")


def _moved(
    stage: TrialFixture,
    instance: FmuInstance,
    point: EvaluationPoint,
    k: int,
    unknowns: Sequence[DescribedVariable],
    change: float,
) -> list[float]:
    """Return the unknowns with known k (states, then inputs) changed by `change`."""
    values = [*point.states, *point.inputs]
    values[k] += change
    count = len(point.states)
    move_to_point(stage, instance, EvaluationPoint(point.time, tuple(values[:count]), tuple(values[count:])))
    return [float(each) for each in instance.get(unknowns) if isinstance(each, float)]


@probe("derivatives in Initialization Mode", *RULES)
def try_initial_derivatives(stage: TrialFixture) -> Iterator[Observation]:
    """Check initial unknowns by knowns of that mode, where dependencies are declared."""
    entries = [each for each in stage.description.listed("InitialUnknowns") if each.variable in stage.scalar_set]
    unknowns = [each.variable for each in entries if each.variable and each.variable.variability != "discrete"]
    targets = {id(target): target for each in entries for target in each.targets if target in stage.scalar_set}
    knowns = [each for each in targets.values() if each is not None and each.causality != "independent"]
    if not _wanted(stage) or not unknowns or not knowns:
        return
    with stage.instance() as instance:
        instance.enter(stage.start, None, stage.tolerance)
        try:
            instance.set({each: stage.near(each, 0.03) for each in knowns})
            instance.get(unknowns)
        except RefusedCallError:
            instance.reset()
            instance.enter(stage.start, None, stage.tolerance)
        matrix: Matrix = []
        natural = [*map(stage.magnitudes.natural, unknowns)]
        for known in knowns:
            try:
                now = instance.get([known])[0]
            except RefusedCallError:  # FMI 2 lets an FMU show only outputs, states and derivatives there
                return
            if not isinstance(now, float):
                return
            size = STEP * max(abs(now), stage.scale(known))
            matrix.append(_column(partial(_set, instance, known, now, unknowns), size, natural))
            instance.set({known: now})
        yield from _compare(stage, instance, unknowns, knowns, matrix, "Initialization Mode")


def _set(
    instance: FmuInstance, known: DescribedVariable, value: float, unknowns: Sequence[DescribedVariable], change: float
) -> list[float]:
    """Return the unknowns with one known set to its value plus a change."""
    instance.set({known: value + change})
    return [float(each) for each in instance.get(unknowns) if isinstance(each, float)]
