"""Co-Simulation steps: any size, in parts, beyond the end, against Model Exchange; early return."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress

from mb2fmu.audit.behaviour.fixture.excited_runs import (
    choose_moving_inputs,
    choose_parameters_and_starts,
    run_with_excitation,
)
from mb2fmu.audit.behaviour.fixture.short_runs import MOST_AT_ONCE, ShortRun, do_communication_step, run_co_simulation
from mb2fmu.audit.behaviour.fixture.trial_fixture import (
    SOME,
    NoInstanceError,
    SimulationEndedError,
    TrialFixture,
    have_same_bits,
)
from mb2fmu.audit.behaviour.fixture.trial_registry import probe
from mb2fmu.audit.behaviour.instance.fmi_types import ERROR, OK, WARNING, RefusedCallError, Value
from mb2fmu.audit.behaviour.instance.instance import FmuInstance
from mb2fmu.audit.behaviour.process.time_budget import SkippedTrialError, TimeBudgetError
from mb2fmu.audit.description.description_records import DescribedVariable
from mb2fmu.audit.findings import Observation

CS = ("CoSimulation",)
DISTURBANCE = 1e-6
"""Relative change of the start by which is seen how errors grow."""

PHYSICAL = -1
"""Number of the set of parameters that are floating point numbers."""

LASTING = 3
"""Points for which a difference has to last."""

MOST_CYCLES = 4
"""Of four steps each; short experiments have one. Longer runs are compared with Model Exchange."""

PERTURBATION = 1e-7
"""Relative change of a state by which is seen what a variable is made of."""


def list_continuous_variables(stage: TrialFixture) -> list[DescribedVariable]:
    """Return continuous outputs and local variables."""
    return [
        each for each in stage.scalars if each.causality in {"output", "local"} and each.variability == "continuous"
    ]


def _counted(stage: TrialFixture) -> list[DescribedVariable]:
    """Return the discrete outputs and locals, which must change as they do in Model Exchange."""
    return [
        each for each in stage.variables if each.causality in {"output", "local"} and each.variability == "discrete"
    ]


def _allowed(stage: TrialFixture) -> float:
    """Return the relative difference that a tolerance permits between two integrations; generous, as errors add up."""
    return max(1e3 * (stage.tolerance or 1e-4), 1e-5)


def _size(run: ShortRun, column: int) -> float:
    """Return the largest value of a column."""
    found = [row[column] for row in run.rows]
    return max((abs(each) for each in found if isinstance(each, float) and math.isfinite(each)), default=0.0)


def _worst(
    stage: TrialFixture,
    first: ShortRun,
    second: ShortRun,
    variables: Sequence[DescribedVariable],
    made_of: Sequence[float] | None = None,
) -> tuple[float, DescribedVariable] | None:
    """Return the largest difference at the end, relative to the size of the variable (or of its terms), and where."""
    found: tuple[float, DescribedVariable] | None = None
    for k, variable in enumerate(variables):
        size = max(_size(first, k), _size(second, k), 1e-6 * stage.scale(variable), made_of[k] if made_of else 0.0)
        a, b = first.rows[-1][k], second.rows[-1][k]
        if isinstance(a, float) and isinstance(b, float) and math.isfinite(a) and math.isfinite(b):
            error = abs(a - b) / size
            if found is None or error > found[0]:
                found = error, variable
    return found


def _made_of(exchange: TrialFixture, instance: FmuInstance, variables: Sequence[DescribedVariable]) -> list[float]:
    """Return the size of each variable's terms at the present point: Σ |∂y/∂x_k| |x_k| over the states x_k.

    A residual, or another difference of large numbers, is by itself as large as errors of the states leave it: states
    that are right within a relative error ε may change it by ε times this size, however small it is.
    """
    count = exchange.n_states
    if not count:
        return [0.0] * len(variables)
    states = instance.states(count)
    nominals = instance.vector("GetNominalsOfContinuousStates", count)
    base, sizes, patient = instance.get(variables), [0.0] * len(variables), exchange.patient()
    for k, (state, nominal) in enumerate(zip(states, nominals, strict=True)):
        size = max(abs(state), 1e-3 * abs(nominal))  # as the integrator counts errors
        try:
            instance.set_states([*states[:k], state + PERTURBATION * size, *states[k + 1 :]])
            moved = instance.get(variables)
        except RefusedCallError:
            continue
        for place, (a, b) in enumerate(zip(base, moved, strict=True)):
            if isinstance(a, float) and isinstance(b, float) and math.isfinite(b - a):
                sizes[place] += abs(b - a) / PERTURBATION
        if not patient():
            break
    return sizes


def run_as_model_exchange(stage: TrialFixture) -> TrialFixture | None:
    """Return the stage of the same FMU as Model Exchange; None if it is not that."""
    description = stage.description
    kinds = ("ModelExchange", "CoSimulation")
    if not set(kinds) <= set(description.interfaces) or len(set(map(description.identifier, kinds))) > 1:
        return None
    found = TrialFixture(stage.library, "ModelExchange", stage.folder, effort=stage.effort)
    found.notes["parameters"] = stage.notes.setdefault("parameters", {})
    found.__dict__.update(step=stage.step, steps=stage.steps)  # both at the same points
    return found


def choose_excited_inputs(stage: TrialFixture) -> dict[DescribedVariable, Value]:
    """Return every input away from its start value."""
    return {each: stage.near(each, 0.1) for each in stage.inputs}


@probe("steps of other sizes", "steps.variable", "steps.parts", kinds=CS)
def try_partial_steps(stage: TrialFixture) -> Iterator[Observation]:
    """Check one step against several, of equal and different sizes, over the same time."""
    if not stage.flag("canHandleVariableCommunicationStepSize"):
        return
    variables, within = list_continuous_variables(stage), choose_moving_inputs(stage, 0)
    cycles = MOST_CYCLES if stage.whole >= 4 * MOST_CYCLES else 1
    middle, runs = stage.start + 2 * cycles * stage.step, []
    ways = {"": [1.0] * 4, "half as many steps": [2.0] * 2, "steps of changing sizes": [0.5, 1.5, 0.25, 1.75]}
    if cycles % 2 == 0:  # so that one of them ends where inputs change
        ways["a quarter as many steps"] = [4.0]
    for sizes in (cycles * each for each in ways.values()):
        with stage.instance() as instance:
            stage.initialize(instance, within=within)
            run, point = ShortRun([stage.start], [instance.get(variables)]), stage.start
            for size in sizes:
                if abs(point - middle) < 0.1 * stage.step:  # what holds for a step must be taken up at its beginning
                    instance.set(choose_moving_inputs(stage, 1))
                try:
                    run_co_simulation(stage, instance, (), steps=1, size=size * stage.step, begin=point, first=False)
                except RefusedCallError as error:
                    text = f"{error}; canHandleVariableCommunicationStepSize is true"
                    yield Observation("steps.variable", text, stage.kind)
                    return
                point += size * stage.step
                run.rows.append(instance.get(variables))
            runs.append(run)
    for other, how in zip(runs[1:], [*ways][1:], strict=True):
        worst = _worst(stage, runs[0], other, variables)
        if worst and worst[0] > _allowed(stage) and (exchange := run_as_model_exchange(stage)):
            with exchange.instance() as instance:
                run_with_excitation(exchange, instance, variables, steps=4)
                worst = _worst(stage, runs[0], other, variables, _made_of(exchange, instance, variables))
        if worst and worst[0] > _allowed(stage):
            text = f"{how} over the same time move it by {worst[0]:.2g} of its size"
            text += f"; the tolerance is {stage.tolerance or 1e-4:g}"
            yield Observation("steps.parts", text, f'{stage.kind}, "{worst[1].name}"')
            return


@probe("Co-Simulation against Model Exchange", "steps.exchange", kinds=CS, weight=2.0)
def try_against_model_exchange(stage: TrialFixture) -> Iterator[Observation]:
    """Check that the FMU moves as its Model Exchange does, over the whole experiment with moving inputs."""
    exchange, variables = run_as_model_exchange(stage), list_continuous_variables(stage)
    if exchange is None or not variables:
        stage.nothing("steps.exchange", "it is not both Co-Simulation and Model Exchange, or has nothing to compare")
        return
    # Numbers only: what is chosen from a list may be the method of the steps, of which Model Exchange has none.
    physical = {
        each: value for each, value in choose_parameters_and_starts(stage, 1).items() if isinstance(value, float)
    }
    stage.notes["parameters"][PHYSICAL] = physical
    for number in (0, PHYSICAL):
        found = list(_compared(stage, exchange, variables, number))
        yield from found
        if found:
            return


def _compared(
    stage: TrialFixture, exchange: TrialFixture, variables: Sequence[DescribedVariable], number: int
) -> Iterator[Observation]:
    """Compare both with one set of parameters, and with Model Exchange from slightly different starts."""
    counted = _counted(stage)
    seen = [*variables, *counted]
    with stage.instance() as instance:
        try:
            own = run_with_excitation(stage, instance, seen, number=number)
        except (TimeBudgetError, SimulationEndedError):
            raise
        except (RefusedCallError, SkippedTrialError):
            return  # inputs and parameters that do not go together
    with exchange.instance() as instance:
        try:
            other = run_with_excitation(exchange, instance, seen, number=number, tolerance=1e-9)
            made_of = _made_of(exchange, instance, variables)
            near = _disturbed(exchange, seen, number)
        except TimeBudgetError:
            raise
        except (RefusedCallError, SkippedTrialError) as error:
            stage.nothing("steps.exchange", f"as Model Exchange it does not come to the end: {error}")
            return
    worst = _departure(stage, (own, other, near), variables, made_of)
    if worst:
        variable, point, gap = worst
        text = f"at t = {own.times[point]:.6g} it differs by {gap:.2g} of its size from the same unit as "
        text += f"Model Exchange; the tolerance is {stage.tolerance or 1e-4:g}"
        yield Observation("steps.exchange", text, f'{stage.kind}, "{variable.name}"')
        return
    yield from _miscounted(stage, (own, other, near), len(variables), counted)


def _disturbed(exchange: TrialFixture, seen: Sequence[DescribedVariable], number: int) -> ShortRun | None:
    """Return the run from start values of states that are a little different; None if they cannot be set."""
    within: dict[DescribedVariable, Value] = {}
    chosen = choose_parameters_and_starts(exchange, number)
    for state in exchange.states:
        start = chosen.get(state, exchange.start_value(state))
        if state.initial == "exact" and isinstance(start, float):
            within[state] = exchange.inside(state, start + DISTURBANCE * exchange.scale(state))
    if not within:
        return None
    with exchange.instance() as instance:
        try:
            return run_with_excitation(exchange, instance, seen, number=number, tolerance=1e-9, within=within)
        except TimeBudgetError:
            raise
        except (RefusedCallError, SkippedTrialError):
            return None


def _number(run: ShortRun | None, point: int, column: int) -> float:
    """Return a value of a run; NaN if it is none, or if there is no run."""
    value = run.rows[point][column] if run and point < len(run.rows) else None
    return value if isinstance(value, float) else math.nan


def _departure(
    stage: TrialFixture,
    runs: tuple[ShortRun, ShortRun, ShortRun | None],
    variables: Sequence[DescribedVariable],
    made_of: Sequence[float],
) -> tuple[DescribedVariable, int, float] | None:
    """Return where the first run leaves the second by more than the tolerance explains; None if it does not.

    What a small change of the start grows to, errors of a step grow to as well. Around an event, which comes a little
    earlier in one of them, single points differ by much: only what lasts is told (to the end of the run at least), and
    what differs at the start, before any step. Without a known growth only the first points are compared.
    """
    own, other, near = runs
    allowed, points = _allowed(stage), min(len(own.rows), len(other.rows))
    points = points if near else min(points, SOME + 1)
    lasting = min(LASTING, max(points - 1, 1))
    for k, variable in enumerate(variables):
        size = max(_size(own, k), _size(other, k), 1e-6 * stage.scale(variable), made_of[k])
        since, worst = 0, 0.0
        for j in range(points):
            error = abs(_number(own, j, k) - _number(other, j, k)) / size
            growth = abs(_number(near, j, k) - _number(other, j, k)) / size / DISTURBANCE if near else 0.0
            bound = allowed * (1.0 + 10.0 * growth)
            since, worst = (since + 1, max(worst, error)) if error > bound else (0, 0.0)
            if since >= lasting or (since and j == 0) or (since > 1 and j == points - 1):
                return variable, j - since + 1, worst
    return None


def _miscounted(
    stage: TrialFixture,
    runs: tuple[ShortRun, ShortRun, ShortRun | None],
    first: int,
    counted: Sequence[DescribedVariable],
) -> Iterator[Observation]:
    """Yield where discrete variables differ, away from events, which may come just before or after a point."""
    own, other, near = runs
    columns = [[row[first:] for row in run.rows] for run in (own, other)]
    for k in range(1, min(map(len, columns)) - 1):
        if any(
            not all(map(have_same_bits, column[k], column[beside])) for column in columns for beside in (k - 1, k + 1)
        ):
            continue
        if near and not all(map(have_same_bits, near.rows[k][first:], other.rows[k][first:])):
            return  # from here on it depends on round-off how often something has happened
        for variable, a, b in zip(counted, columns[0][k], columns[1][k], strict=True):
            if not values_agree(stage, variable, a, b):
                text = f"at t = {own.times[k]:.6g} it is {a!r}, of the same unit as Model Exchange {b!r}"
                yield Observation("steps.exchange", text, f'{stage.kind}, "{variable.name}"')
                return


def values_agree(stage: TrialFixture, variable: DescribedVariable, a: Value, b: Value, times: float = 100.0) -> bool:
    """Return whether values agree; sampled numbers carry the errors of the states that they were sampled from.

    Args:
        stage: Of the FMU.
        variable: That has the values.
        a: One value.
        b: The other.
        times: How many times what is allowed of a step they may differ by.
    """
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(
            values_agree(stage, variable, one, other, times) for one, other in zip(a, b, strict=True)
        )
    if isinstance(a, float) and isinstance(b, float):
        allowed = times * _allowed(stage)
        return have_same_bits(a, b) or math.isclose(a, b, rel_tol=allowed, abs_tol=allowed * stage.scale(variable))
    return have_same_bits(a, b)


@probe("impossible steps", "steps.size", "steps.stop", "log.silent", kinds=CS, crash="steps.size", limit=5.0, late=True)
def try_impossible_steps(stage: TrialFixture) -> Iterator[Observation]:
    """Check that steps are refused that are negative, zero, NaN, or beyond the stop time; an error has its message."""
    for size in (-stage.step, 0.0, math.nan):
        with stage.instance() as instance:
            stage.initialize(instance)
            seen = len(instance.messages)
            status = instance.step(stage.start, size).status
            if status in {OK, WARNING}:
                yield Observation("steps.size", f"a step of {size:g} s is answered with OK", stage.kind)
                break
            if status == ERROR and len(instance.messages) == seen:
                text = f"a step of {size:g} s is answered with Error, without a message"
                yield Observation("log.silent", text, stage.kind)
                break
    with stage.instance() as instance:
        _begin(stage, instance, stage.start + 2 * stage.step)
        run_co_simulation(stage, instance, (), steps=2, first=False)
        if instance.step(stage.start + 2 * stage.step, stage.step).status in {OK, WARNING}:
            yield Observation(
                "steps.stop", "a step beyond the stop time that it was told is answered with OK", stage.kind
            )


MOST_TO_STOP = 200
"""Steps up to a stop time that the FMU was told."""


@probe("steps to the stop time that it was told", "steps.stop", "life.reset", kinds=CS)
def try_steps_to_stop_time(stage: TrialFixture) -> Iterator[Observation]:
    """Check that steps, added up with round-off, reach the stop time; and that a reset forgets it."""
    count = min(stage.steps, MOST_TO_STOP)
    stop = stage.start + count * stage.step
    with stage.instance() as instance:
        _begin(stage, instance, stop)
        point = stage.start
        for _ in range(count):
            if instance.step(point, stage.step).status not in {OK, WARNING}:
                if point + stage.step > stop - 1e-6 * stage.step:
                    text = f"told to stop at {stop:.17g}, it refuses a step from {point:.17g} of {stage.step:.17g}"
                    yield Observation("steps.stop", f"{text}: there is no room for round-off", stage.kind)
                return
            point += stage.step
        instance.reset()
        try:
            _begin(stage, instance, None)
            for k in range(count + 1):
                do_communication_step(stage, instance, stage.start + k * stage.step, stage.step)
        except RefusedCallError as error:
            text = f"told no stop time after a reset, it does not go beyond the one that it was told before: {error}"
            yield Observation("life.reset", text, stage.kind)


def _begin(stage: TrialFixture, instance: FmuInstance, stop: float | None) -> None:
    """Enter Step Mode, with or without a stop time."""
    instance.enter(stage.start, stop, stage.tolerance)
    instance.exit()
    if instance.mode == "Event Mode":
        stage.settle(instance)
        instance.go_on()


@probe("what steps say of themselves", "steps.last", "steps.early", kinds=CS)
def try_early_return(stage: TrialFixture) -> Iterator[Observation]:
    """Check FMI 3's early return: only where allowed, and the last successful time is the end of the step."""
    if stage.description.version != 3:
        return
    with stage.instance(early=False) as instance:
        stage.initialize(instance)
        for k in range(3):
            done = do_communication_step(stage, instance, stage.start + k * stage.step, stage.step)
            end = stage.start + (k + 1) * stage.step
            if done.early:
                yield Observation("steps.early", "it returns early though the importer did not allow it", stage.kind)
                return
            if not math.isclose(done.last, end, rel_tol=1e-9, abs_tol=1e-9 * stage.step):
                yield Observation(
                    "steps.last", f"lastSuccessfulTime is {done.last!r} after a step to {end!r}", stage.kind
                )
                return


@probe("steps from a wrong point", "steps.point", kinds=CS)
def try_wrong_communication_point(stage: TrialFixture) -> Iterator[Observation]:
    """Check that a communication point other than the FMU's own is refused."""
    with stage.instance() as instance:
        stage.initialize(instance)
        do_communication_step(stage, instance, stage.start, stage.step)
        if instance.step(stage.start + 5 * stage.step, stage.step).status in {OK, WARNING}:
            yield Observation(
                "steps.point", "a step that begins four steps ahead of where it stands is answered with OK", stage.kind
            )


@probe("changing inputs and tunable parameters between steps", "value.set", kinds=CS)
def try_values_set_between_steps(stage: TrialFixture) -> Iterator[Observation]:
    """Check that values set in Step Mode are read after the next step."""
    known = [*stage.inputs, *stage.role("parameter", variability="tunable")]
    patient = stage.patient()
    with stage.instance() as instance:
        stage.initialize(instance)
        do_communication_step(stage, instance, stage.start, stage.step)
        for k, variable in enumerate(known):
            if not patient() or k + 2 > max(stage.steps, 2):
                return
            value = stage.near(variable, 0.03)
            if instance.put(variable, value) not in {OK, WARNING}:
                if variable.causality == "input":
                    text = f"setting it to {value:.6g} is refused between steps"
                    yield Observation("value.set", text, f'{stage.kind}, "{variable.name}"')
                continue
            do_communication_step(stage, instance, stage.start + (k + 1) * stage.step, stage.step)
            found = instance.get([variable])[0]
            if isinstance(found, float) and not math.isclose(value, found, rel_tol=1e-13, abs_tol=1e-300):
                text = f"set to {value!r} between two steps, read as {found!r} after the second"
                yield Observation("value.set", text, f'{stage.kind}, "{variable.name}"')


@probe("steps with event mode", "flags.true", kinds=CS)
def try_co_simulation_event_mode(stage: TrialFixture) -> Iterator[Observation]:
    """Check hasEventMode (FMI 3): instances can be made with it, and Event Mode entered between steps."""
    if stage.description.version != 3 or not stage.flag("hasEventMode"):
        return
    try:
        with stage.instance(event_mode=True) as instance:
            stage.initialize(instance)
            do_communication_step(stage, instance, stage.start, stage.step)
            instance.event()
            stage.settle(instance)
            instance.go_on()
            do_communication_step(stage, instance, stage.start + stage.step, stage.step)
    except NoInstanceError:
        yield Observation("flags.true", "hasEventMode is true, but no instance is made that uses it", stage.kind)
    except RefusedCallError as error:
        yield Observation("flags.true", f"hasEventMode is true, but {error}", stage.kind)


@probe("steps with event mode that return early", "steps.early", kinds=CS)
def try_early_return_at_events(stage: TrialFixture) -> Iterator[Observation]:
    """Check that steps that end before their end say earlyReturn (FMI 3), up to the stop time: events come late."""
    if stage.description.version != 3 or not stage.flag("hasEventMode"):
        return
    patient, point = stage.patient(), stage.start
    with (
        suppress(RefusedCallError, SkippedTrialError, NoInstanceError),
        stage.instance(event_mode=True, early=True) as instance,
    ):
        stage.initialize(instance)
        for k in range(stage.steps):
            end = stage.start + (k + 1) * stage.step
            for _ in range(MOST_AT_ONCE):
                done = do_communication_step(stage, instance, point, end - point)
                if not done.early and point <= done.last < end - 1e-9 * stage.step:
                    text = f"a step to {end:.9g} ends at {done.last:.9g}, and earlyReturn is false"
                    yield Observation("steps.early", text, stage.kind)
                    return
                point = done.last if done.early else end
                if not done.early or point >= end - 1e-9 * stage.step:
                    break
            if not patient():
                return
