"""Model Exchange: states, derivatives, purity of the getters, completed steps."""

from __future__ import annotations

import ctypes as c
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from mb2fmu.audit.behaviour.fixture.short_runs import ModelExchangeIntegration, begin_run, do_communication_step
from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture, have_same_bits
from mb2fmu.audit.behaviour.fixture.trial_registry import probe
from mb2fmu.audit.behaviour.instance.fmi_types import OK, WARNING, RefusedCallError, Value, status_name
from mb2fmu.audit.behaviour.instance.instance import FmuInstance
from mb2fmu.audit.behaviour.process.time_budget import SkippedTrialError, TimeBudgetError
from mb2fmu.audit.description.description_records import DescribedVariable
from mb2fmu.audit.findings import Observation

ME = ("ModelExchange",)
SPREADS = (0.3, 0.1, 0.03, 0.005)
ELSEWHERE = 0.5
"""Part of the points that are near the motion instead of near the start."""

REMEMBERED = 48
"""Points of the motion that are kept."""
JOURNEY = 0.3
"""Part of a probe's time that these points may take."""
STOPS = (0.31, 0.63, 0.97)
"""Parts of a motion at which an instance that is led through its events is tried: odd, for events are at even ones."""
NOISE = 1e-12
_TOLERANCE = 1e-6
"""Of FMUs that name none."""
_FINER = 1e-3
"""Part of its tolerance with which an FMU is run again where its derivatives seem wrong."""


@dataclass(frozen=True)
class EvaluationPoint:
    """A point for evaluations: time, states, inputs."""

    time: float
    states: tuple[float, ...]
    inputs: tuple[float, ...]


def move_to_point(stage: TrialFixture, instance: FmuInstance, point: EvaluationPoint) -> None:
    """Move to a point, in Continuous-Time Mode.

    Raises:
        RefusedError: If the FMU cannot be there.
    """
    instance.set_time(point.time)
    if point.states:
        instance.set_states(point.states)
    for variable, value in zip(stage.inputs, point.inputs, strict=True):
        instance.set({variable: value})


def choose_random_point(stage: TrialFixture, instance: FmuInstance, part: float | None = None) -> EvaluationPoint:
    """Return a random point near the start, or near the motion, at which the FMU can be evaluated and is finite.

    Args:
        stage: Of the FMU.
        instance: In Continuous-Time Mode.
        part: Of the motion, from 0 to 1; None: near the start or, by chance, anywhere on it.

    Raises:
        SkippedError: If none is found.
    """
    now = instance.states(stage.n_states) if stage.n_states else []
    nominals = instance.vector("GetNominalsOfContinuousStates", stage.n_states) if stage.n_states else []
    passed = _journey(stage)
    if part is not None and passed:
        now = list(passed[min(int(part * len(passed)), len(passed) - 1)])
    for trial, spread in enumerate(SPREADS):
        if passed and part is None and trial == 0 and stage.random.random() < ELSEWHERE:
            now = list(stage.random.choice(passed))
        states = []
        for k, (value, nominal) in enumerate(zip(now, nominals, strict=True)):
            variable = stage.states[k] if len(stage.states) == stage.n_states else None
            size = max(abs(value), stage.scale(variable) if variable else 0.0) or abs(nominal) or 1.0
            moved = value + size * spread * stage.random.uniform(0.2, 1.0) * stage.random.choice((-1.0, 1.0))
            states.append(stage.inside(variable, moved) if variable else moved)
        inputs = tuple(stage.near(each, spread) for each in stage.inputs)
        time = stage.start + stage.step * stage.random.uniform(0.2, 1.0)
        if part is not None:  # up to the first time event, beyond which it may not be set here
            latest = stage.stop if stage.due is None else min(stage.stop, stage.due)
            time = max(time, stage.start + stage.random.uniform(0.3, 0.95) * (latest - stage.start))
        point = EvaluationPoint(time, tuple(states), inputs)
        try:
            move_to_point(stage, instance, point)
            slopes = instance.slopes(stage.n_states) if stage.n_states else []
            others = instance.get(stage.scalars)
        except RefusedCallError:
            continue
        if all(map(math.isfinite, slopes)) and all(isinstance(each, float) and math.isfinite(each) for each in others):
            return point
    raise SkippedTrialError("no point near the start was found at which it can be evaluated")


def list_points_of_motion(stage: TrialFixture) -> list[EvaluationPoint]:
    """Return points of the motion, evenly spread over the experiment as far as it ran; with start inputs."""
    inputs = tuple(each if isinstance(each := stage.start_value(one), float) else 0.0 for one in stage.inputs)
    moment = stage.start + 0.5 * stage.step
    return [EvaluationPoint(moment, tuple(states), inputs) for states in _journey(stage)]


def iterate_points_between_events(
    stage: TrialFixture, instance: FmuInstance
) -> Iterator[tuple[EvaluationPoint, float]]:
    """Yield an instance at points between the events of a motion: other modes may hold there.

    Args:
        stage: Of the FMU.
        instance: In the state Instantiated. Between two points it may be placed anywhere.

    Yields:
        Where it stands, and the next time event (infinite if none is announced), which it must not be placed behind.

    Raises:
        RefusedError: If it cannot be led there.
        SkippedError: If it ends, or takes too long.
    """
    given = {each: stage.near(each, 0.1) for each in stage.inputs}
    integration = ModelExchangeIntegration(stage, instance, stage.start, 1e-4, begin_run(stage, instance, dict(given)))
    length = stage.steps * stage.step
    for part in STOPS:
        integration.advance(stage.start + part * length)
        point = EvaluationPoint(integration.time, tuple(integration.states), tuple(given.values()))
        yield point, integration.following
        move_to_point(stage, instance, point)


def _journey(stage: TrialFixture) -> list[list[float]]:
    """Return states along the motion, with the start values of everything."""
    if "journey" not in stage.notes:
        found: list[list[float]] = stage.notes.setdefault("journey", [])
        if not stage.n_states or stage.kind != "ModelExchange":
            return found
        # A stiff FMU, or one whose states are not what they seem, may take more time than a probe has: the points that
        # were passed so far are enough.
        with stage.library.pace.within(JOURNEY), stage.instance() as instance:
            try:
                integration = ModelExchangeIntegration(stage, instance, stage.start, 1e-4, begin_run(stage, instance))
                for k in range(REMEMBERED):
                    integration.advance(stage.start + (k + 1) * stage.steps / REMEMBERED * stage.step)
                    found.append(list(integration.states))
            except TimeBudgetError:
                raise
            except (RefusedCallError, SkippedTrialError):
                pass
    points: list[list[float]] = stage.notes["journey"]
    return points


@probe("asking before the start and after the end", "exchange.modes", kinds=ME)
def asked_early(stage: TrialFixture) -> Iterator[Observation]:
    """Check states, derivatives, nominal values and indicators in modes in which no run reads them."""
    wanted = {
        "GetContinuousStates": stage.n_states,
        "GetNominalsOfContinuousStates": stage.n_states,
        ("GetDerivatives" if stage.description.version == 2 else "GetContinuousStateDerivatives"): stage.n_states,
        "GetEventIndicators": stage.n_indicators,
    }
    if not any(wanted.values()):
        stage.nothing("exchange.modes", "it has neither continuous states nor event indicators")
        return
    for late in (False, True):
        for name, size in wanted.items():
            with stage.instance() as instance:  # what refuses one call may refuse all that follow
                if late:
                    stage.initialize(instance)
                    instance.terminate()
                else:
                    instance.enter(stage.start, None, stage.tolerance)
                try:
                    if size:
                        instance.vector(name, size)
                except RefusedCallError as error:
                    yield Observation("exchange.modes", str(error), stage.kind)


@probe(
    "setting and reading states", "exchange.states", "exchange.time", "exchange.nominals", "exchange.count", kinds=ME
)
def states(stage: TrialFixture) -> Iterator[Observation]:
    """Check number and order of the states, and that they can be set."""
    size = stage.n_states
    with stage.instance() as instance:
        if stage.description.version == 3:
            for function, declared in (
                ("GetNumberOfContinuousStates", size),
                ("GetNumberOfEventIndicators", stage.n_indicators),
            ):
                count = instance.count(function)
                if count != declared:
                    yield Observation(
                        "exchange.count", f"fmi3{function} says {count}, the description {declared}", stage.kind
                    )
                    return
        stage.initialize(instance)
        nominals = instance.vector("GetNominalsOfContinuousStates", size) if size else []
        wrong = [each for each in nominals if not (each > 0.0 and math.isfinite(each))]
        if wrong:
            yield Observation("exchange.nominals", f"a nominal value is {wrong[0]!r}", stage.kind)
        point = choose_random_point(stage, instance)
        move_to_point(stage, instance, point)
        found = instance.states(size) if size else []
        if found != list(point.states):
            yield Observation("exchange.states", "the continuous states read are not those that were set", stage.kind)
        independent = stage.description.independent
        if independent in stage.scalar_set and independent is not None:
            said = instance.get([independent])[0]
            if said != point.time:
                yield Observation(
                    "exchange.time", f'set to {point.time!r}, "{independent.name}" says {said!r}', stage.kind
                )


@probe("comparing derivatives with slopes", "derivative.state", "derivative.value", kinds=ME)
def derivatives(stage: TrialFixture) -> Iterator[Observation]:
    """Check that each ``derivative=`` refers to its state: both vectors against the variables, in order."""
    listed = [each.variable for each in stage.description.listed("Derivatives") if each.variable]
    if len(stage.states) != len(listed) or not listed or any(each not in stage.scalars for each in listed):
        return
    wrong: dict[tuple[str, str], str] = {}
    for instance, point in _places(stage):
        slopes = instance.slopes(len(listed))
        shown = instance.get(stage.states)
        for k, (variable, state, value) in enumerate(zip(listed, stage.states, shown, strict=True)):
            if not _equal(value, point.states[k]):
                owner = next((each.name for j, each in enumerate(stage.states) if _equal(value, point.states[j])), None)
                points = variable.written.get("derivative")
                text = f'derivative={points} makes "{state.name}" state {k + 1}, which another variable is'
                if owner:
                    slope = listed[[each.name for each in stage.states].index(owner)]
                    text += f': "{state.name}" is the state whose slope is "{slope.name}"'
                wrong[variable.name, "derivative.state"] = text
        for variable, number, value in zip(listed, slopes, instance.get(listed), strict=True):
            if not _equal(value, number):
                text = f"reading it gives {value!r}, the vector of derivatives {number!r}"
                wrong[variable.name, "derivative.value"] = text
    for (name, rule), text in wrong.items():
        yield Observation(rule, text, f'{stage.kind}, "{name}"')


def _places(stage: TrialFixture) -> Iterator[tuple[FmuInstance, EvaluationPoint]]:
    """Yield instances in Continuous-Time Mode at points: near the start, and along a motion, between its events."""
    with stage.instance() as instance:
        stage.initialize(instance)
        for _ in range(3):
            point = choose_random_point(stage, instance)
            move_to_point(stage, instance, point)
            yield instance, point
        for point in list_points_of_motion(stage):
            with suppress(RefusedCallError):
                move_to_point(stage, instance, point)
                yield instance, point
    with stage.instance() as instance, suppress(RefusedCallError, SkippedTrialError):
        for point, _ in iterate_points_between_events(stage, instance):
            yield instance, point


@probe("comparing event indicators with their variables", "derivative.value", kinds=ME)
def indicators(stage: TrialFixture) -> Iterator[Observation]:
    """Check FMI 3's variables of event indicators against the vector, in order."""
    listed = [each.variable for each in stage.description.listed("EventIndicators") if each.variable]
    if not listed or len(listed) != stage.n_indicators or any(each not in stage.scalar_set for each in listed):
        return
    for instance, _ in _places(stage):
        vector = instance.vector("GetEventIndicators", len(listed))
        for variable, number, value in zip(listed, vector, instance.get(listed), strict=True):
            if not _equal(value, number):
                text = f"reading it gives {value!r}, the vector of event indicators {number!r}"
                yield Observation("derivative.value", text, f'{stage.kind}, "{variable.name}"')
                return


def _equal(first: Value, second: float) -> bool:
    """Return whether a value read as a variable is the number of the vector, up to round-off."""
    return isinstance(first, float) and (have_same_bits(first, second) or math.isclose(first, second, rel_tol=NOISE))


@probe("evaluating twice", "exchange.pure", kinds=ME)
def pure(stage: TrialFixture) -> Iterator[Observation]:
    """Check that evaluations between events do not depend on earlier evaluations."""
    with stage.instance() as instance:
        stage.initialize(instance)
        first, second = choose_random_point(stage, instance), choose_random_point(stage, instance)
        yield from _unlike(stage, instance, (first, second, first, first), ((0, 2), (0, 3)))
    with stage.instance() as instance, suppress(RefusedCallError, SkippedTrialError):
        for point, due in iterate_points_between_events(stage, instance):
            moved = EvaluationPoint(point.time, tuple(1.1 * each + 0.01 for each in point.states), point.inputs)
            later = EvaluationPoint(point.time + 0.1 * min(stage.step, due - point.time), point.states, point.inputs)
            yield from _unlike(stage, instance, (point, moved, later, moved, point), ((1, 3), (0, 4)))


def _unlike(
    stage: TrialFixture, instance: FmuInstance, points: Sequence[EvaluationPoint], pairs: Sequence[tuple[int, int]]
) -> Iterator[Observation]:
    """Yield the first value that differs at the same point; points are given in order, with equal ones marked."""
    rows: list[list[Value]] = []
    for point in points:
        move_to_point(stage, instance, point)
        rows.append([*(instance.slopes(stage.n_states) if stage.n_states else []), *instance.get(stage.scalars)])
    for a, b in (both for one, other in pairs for both in zip(rows[one], rows[other], strict=True)):
        if isinstance(a, float) and isinstance(b, float) and abs(a - b) > 1e-9 * max(abs(a), abs(b), 1e-3):
            text = f"evaluated at the same point again it says {b!r} instead of {a!r}"
            yield Observation("exchange.pure", text, stage.kind)
            return


@probe("completing steps", "exchange.completed", kinds=ME)
def completed(stage: TrialFixture) -> Iterator[Observation]:
    """Check that a completed step does not change the states."""
    size = stage.n_states
    if not size:
        stage.nothing("exchange.completed", "it has no continuous states")
        return
    with stage.instance() as instance:
        stage.initialize(instance)
        move_to_point(stage, instance, choose_random_point(stage, instance))
        before = instance.states(size)
        instance.completed()
        if instance.states(size) != before:
            yield Observation("exchange.completed", "completing an integrator step changes the states", stage.kind)


@probe("differentiating along a motion", "derivative.slope")
def try_declared_derivatives(stage: TrialFixture) -> Iterator[Observation]:
    """Check that every variable declared as a derivative is the slope of its variable."""
    pairs = [
        (each, target) for each in stage.scalars
        if (target := stage.description.target(each.written.get("derivative"))) is not None
        and target in stage.scalar_set
        and "input" not in {each.causality, target.causality}
    ]  # fmt: skip
    if not pairs or (stage.kind == "CoSimulation" and stage.steps < 3):
        return
    wrong = [_sloped(stage, pairs, spacing) for spacing in _spacings(stage)]
    if stage.kind == "CoSimulation" and any(map(all, zip(*wrong, strict=True))):
        # Errors of a stiff state are small, and its derivative magnifies them: they go with the tolerance, faults stay
        finer = (stage.tolerance or _TOLERANCE) * _FINER
        wrong += [_sloped(stage, pairs, spacing, finer) for spacing in _spacings(stage)]
    for (variable, _), *found in zip(pairs, *wrong, strict=True):
        if all(found):
            yield Observation("derivative.slope", found[0], f'{stage.kind}, "{variable.name}"')


def _sloped(
    stage: TrialFixture,
    pairs: Sequence[tuple[DescribedVariable, DescribedVariable]],
    h: float,
    tolerance: float | None = None,
) -> list[str]:
    """Return what is wrong with each pair along a motion of equally spaced points; empty where nothing is."""
    variables = [each for pair in pairs for each in pair]
    for inputs in ({each: stage.near(each, 0.2) for each in stage.inputs}, {}):
        with stage.instance() as instance:
            try:
                rows = _motion(stage, instance, variables, h, inputs, tolerance)
                break
            except RefusedCallError:  # of inputs that it cannot start with; without them, it is told
                if not inputs:
                    raise
    told = [""] * len(pairs)
    for k, (_, target) in enumerate(pairs if rows and len(rows) > 2 else ()):
        slope, moved = [row[2 * k] for row in rows or ()], [row[2 * k + 1] for row in rows or ()]
        wrong, judged = 0, 0
        for j in range(1, len(slope) - 1):
            measured = (moved[j + 1] - moved[j - 1]) / (2 * h)
            curved = abs(moved[j + 1] - 2 * moved[j] + moved[j - 1]) / h
            bound = (
                0.02 * max(abs(slope[j]), abs(measured))
                + curved
                + 0.5 * abs(slope[j + 1] - slope[j - 1])
                + 1e-7 * stage.scale(target) / h
            )
            judged += 1
            wrong += not abs(measured - slope[j]) <= bound
        if judged and wrong > judged / 2:
            measured = (moved[2] - moved[0]) / (2 * h)
            told[k] = f'says {slope[1]:.6g} where "{target.name}" moves with {measured:.6g} per second'
    return told


def _spacings(stage: TrialFixture) -> tuple[float, ...]:
    """Return distances of points; a derivative counts as wrong only if it is so for all of them.

    Small ones, where steps can be small: events are seldom between the points then. Whole steps: FMUs of fixed
    internal steps rest within them.
    """
    if stage.kind == "ModelExchange":
        return (0.02 * stage.step,)
    small = stage.flag("canHandleVariableCommunicationStepSize")
    return (stage.step, 0.1 * stage.step) if small else (stage.step,)


def _motion(
    stage: TrialFixture, instance: FmuInstance, variables: list[DescribedVariable], h: float,
    inputs: Mapping[DescribedVariable, float],
    tolerance: float | None,
) -> list[list[float]] | None:  # fmt: skip
    """Return values at equally spaced points of a short motion with constant inputs; None if there was an event."""
    within: dict[DescribedVariable, Value] = dict(inputs)
    rows: list[list[Value]] = []
    if stage.kind == "CoSimulation":
        stage.initialize(instance, within=within, tolerance=tolerance)
        for k in range(min(9, stage.steps)):
            do_communication_step(stage, instance, stage.start + k * h, h)
            rows.append(instance.get(variables))
    else:
        integration = ModelExchangeIntegration(stage, instance, stage.start, 1e-10, begin_run(stage, instance, within))
        for k in range(9):
            integration.advance(stage.start + h * (k + 1))
            instance.slopes(stage.n_states)
            rows.append(instance.get(variables))
        if integration.events:
            return None
    return [[float(each) for each in row if isinstance(each, float)] for row in rows]


@probe("capabilities that it has by its own words", "flags.true")
def try_capability_functions(stage: TrialFixture) -> Iterator[Observation]:
    """Check FMI 3's functions behind capability flags: they answer OK."""
    if stage.description.version != 3:
        return
    with stage.instance() as instance:
        stage.initialize(instance)
        outputs = [each.variable for each in stage.description.listed("Outputs") if each.variable in stage.variables]
        if stage.flag("providesPerElementDependencies") and outputs and outputs[0]:
            reference, count = c.c_uint(outputs[0].reference or 0), c.c_size_t()
            status = instance.call("GetNumberOfVariableDependencies", reference, c.byref(count))
            if status not in {OK, WARNING}:
                text = "providesPerElementDependencies is true, but fmi3GetNumberOfVariableDependencies"
                yield Observation("flags.true", f"{text} answers {status_name(status)}", stage.kind)
        if stage.flag("providesEvaluateDiscreteStates") and stage.kind == "ModelExchange":
            instance.event()
            status = instance.call("EvaluateDiscreteStates")
            if status not in {OK, WARNING}:
                text = f"providesEvaluateDiscreteStates is true, but the function answers {status_name(status)}"
                yield Observation("flags.true", text, stage.kind)
