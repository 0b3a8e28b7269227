"""Compare declared dependencies with the effects of changes of knowns on unknowns, at random points."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from mb2fmu.audit.behaviour.fixture.initial_solutions import (
    SLIGHT,
    VISIBLE,
    drop_jumps_to_other_solutions,
    drop_mode_changes,
)
from mb2fmu.audit.behaviour.fixture.short_runs import do_communication_step
from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture
from mb2fmu.audit.behaviour.fixture.trial_registry import probe
from mb2fmu.audit.behaviour.instance.fmi_types import RefusedCallError, Value
from mb2fmu.audit.behaviour.instance.instance import FmuInstance
from mb2fmu.audit.behaviour.process.time_budget import SkippedTrialError
from mb2fmu.audit.behaviour.trials.model_exchange_trials import (
    EvaluationPoint,
    choose_random_point,
    iterate_points_between_events,
    list_points_of_motion,
    move_to_point,
)
from mb2fmu.audit.description.description_records import DescribedVariable, StructureUnknown
from mb2fmu.audit.findings import Observation

ROUND_OFF = 1e-13
"""Part of the largest unknown that the round-off of another one is: forces that cancel leave it, solves share it."""

LINEAR = 1e-5
"""Relative difference of quotients that is more than round-off."""

RULES = (
    "dependencies.missing", "dependencies.feedthrough", "dependencies.excessive", "dependencies.kind",
    "dependencies.own_state",
)  # fmt: skip
Group = tuple[int, ...]


@dataclass
class ChangeEffects:
    """Effects of changes.

    Attributes:
        moved: (unknown, known) → whether the unknown changed at all, at any point.
        visible: (unknown, known) → whether it changed by more than noise.
        quotients: (unknown, known) → (which set of parameters, quotient of the changes), one per point.
        tried: Knowns that could be changed at all.
    """

    moved: set[tuple[int, int]] = field(default_factory=set)
    visible: dict[tuple[int, int], float] = field(default_factory=dict)
    quotients: dict[tuple[int, int], list[tuple[Group, float, float]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    tried: dict[int, int] = field(default_factory=lambda: defaultdict(int))

    def enter(
        self,
        unknowns: Sequence[DescribedVariable],
        known: DescribedVariable,
        base: Sequence[Value],
        other: Sequence[Value],
        change: float,
        group: Group,
    ) -> None:
        """Enter what one change of one known does to the unknowns."""
        self.tried[known.index] += 1
        shared = ROUND_OFF * max(
            (abs(each) for each in base if isinstance(each, float) and math.isfinite(each)), default=0
        )
        for unknown, before, after in zip(unknowns, base, other, strict=True):
            key = unknown.index, known.index
            if before == after or not (isinstance(before, float) and isinstance(after, float)):
                if before != after:
                    self.moved.add(key)
                    self.visible[key] = 1.0
                else:
                    self.quotients[key].append((group, 0.0, 0.0))
                continue
            if not (math.isfinite(before) and math.isfinite(after)):
                continue
            self.moved.add(key)
            size = abs(after - before) / max(abs(before), abs(after), 1e-9)
            if size > VISIBLE and abs(after - before) > shared:
                self.visible[key] = max(size, self.visible.get(key, 0.0))
            noise = 1e-14 * max(abs(before), abs(after)) / abs(change)
            self.quotients[key].append((group, (after - before) / change, noise))


def compare_effects_with_dependencies(
    stage: TrialFixture,
    entries: Sequence[StructureUnknown],
    effects: ChangeEffects,
    knowns: Sequence[DescribedVariable],
    times: int,
) -> Iterator[Observation]:
    """Compare effects with declarations."""
    among = frozenset(knowns)
    for unknown in entries:
        variable = unknown.variable
        if variable is None or unknown.dependencies is None:
            continue
        declared = dict.fromkeys(each for each in unknown.targets if each)
        for known in knowns:
            key = variable.index, known.index
            if key in effects.visible and known not in declared:
                by = f"(by {effects.visible[key]:.2g} of its value)"
                text = f'changes with "{known.name}" {by}, which its dependencies leave out'
                rule = "dependencies.own_state" if known is variable else "dependencies.missing"
                yield Observation(rule, text, f"{stage.kind}, {unknown.place}")
        for known in declared:
            if (
                known in among
                and effects.tried[known.index] >= times
                and (variable.index, known.index) not in effects.moved
            ):
                points = effects.tried[known.index]
                text = f'does not change with "{known.name}" at any of {points} points, though that is listed'
                through = unknown.list == "Outputs" and known.causality == "input"
                rule = "dependencies.feedthrough" if through else "dependencies.excessive"
                yield Observation(rule, text, f"{stage.kind}, {unknown.place}")
        kinds = unknown.kinds or ()
        for target, kind in zip(unknown.targets, kinds, strict=False):
            if target is not None and kind != "dependent":
                yield from _kind(stage, unknown, target, kind, effects.quotients[variable.index, target.index])


def _kind(
    stage: TrialFixture,
    unknown: StructureUnknown,
    known: DescribedVariable,
    kind: str,
    quotients: Sequence[tuple[Group, float, float]],
) -> Iterator[Observation]:
    """Check that factors stay the same: ``constant`` always, ``fixed`` after initialization, others between events."""
    moved = _moved_factor(kind, quotients)
    if moved is None:
        return
    weaker = next((each for each in WEAKER[kind] if _moved_factor(each, quotients) is None), "dependent")
    text = f'its factor in front of "{known.name}" is called {kind}, but goes from {moved[0]:.6g} to {moved[1]:.6g}'
    yield Observation("dependencies.kind", f"{text}; {weaker} would be right", f"{stage.kind}, {unknown.place}")


WEAKER: Mapping[str, tuple[str, ...]] = defaultdict(tuple, {"constant": ("fixed", "tunable"), "fixed": ("tunable",)})
"""Kind → those that promise less."""


def _moved_factor(kind: str, quotients: Sequence[tuple[Group, float, float]]) -> tuple[float, float] | None:
    """Return the smallest and largest value of a factor that should be constant; None if it is."""
    depth = {"constant": 0, "fixed": 1}.get(kind, 2)
    groups: dict[Group, list[tuple[float, float]]] = defaultdict(list)
    for group, quotient, noise in quotients:
        groups[group[:depth]].append((quotient, noise))
    for found in groups.values():
        numbers = [quotient for quotient, _ in found]
        spread = max(numbers) - min(numbers)
        if spread > LINEAR * max(map(abs, numbers)) + 10 * max(noise for _, noise in found):
            return min(numbers), max(numbers)
    return None


def choose_value_changes(stage: TrialFixture, variable: DescribedVariable, value: float) -> list[float]:
    """Return a large and a small change of a value, within the bounds."""
    size = max(abs(value), stage.scale(variable))
    found = []
    for relative in (0.37, -0.11):
        for sign in (1.0, -1.0):
            other = stage.inside(variable, value + sign * relative * size)
            if other != value:
                found.append(other)
                break
    return found


@probe("changing states, inputs and time", *RULES, kinds=("ModelExchange",))
def try_continuous_dependencies(stage: TrialFixture) -> Iterator[Observation]:
    """Check outputs and derivatives in Continuous-Time Mode."""
    entries = [
        each
        for name in ("Outputs", "Derivatives", "EventIndicators")
        for each in stage.description.listed(name)
        if each.variable in stage.scalar_set
    ]
    if not entries or len(stage.states) != stage.n_states:
        return
    effects = ChangeEffects()
    unknowns = list({id(each.variable): each.variable for each in entries if each.variable}.values())
    independent = stage.description.independent
    knowns = [*stage.states, *stage.inputs, *([independent] if independent in stage.scalar_set and independent else [])]
    done = 0
    parameters = stage.role("parameter")
    patient = stage.patient()
    for phase in range(4):
        if not patient():
            break
        with stage.instance() as instance:
            try:
                done += _phase(stage, instance, phase, parameters, unknowns, effects, patient)
            except (RefusedCallError, SkippedTrialError):
                continue
    with stage.instance() as instance, suppress(RefusedCallError, SkippedTrialError):
        stage.initialize(instance)
        for point in list_points_of_motion(stage):
            _round(stage, instance, point, unknowns, effects, (0, 0), patient)
    with stage.instance() as instance, suppress(RefusedCallError, SkippedTrialError):
        for point, due in iterate_points_between_events(stage, instance):
            _round(stage, instance, point, unknowns, effects, (0, 0), patient, due)
    if done < 2:
        stage.skipped.append(
            f"{stage.kind}: dependencies in Continuous-Time Mode: it could not be evaluated at enough points"
        )
        return
    yield from compare_effects_with_dependencies(stage, entries, effects, knowns, 4)
    if stage.description.version == 3:
        yield from _parameters(stage, entries, unknowns)


def _phase(
    stage: TrialFixture,
    instance: FmuInstance,
    phase: int,
    parameters: Sequence[DescribedVariable],
    unknowns: Sequence[DescribedVariable],
    effects: ChangeEffects,
    patient: Callable[[], bool],
) -> int:
    """Run one initialization: from the second on with other parameters, then tunable ones changed by an event."""
    within: dict[DescribedVariable, Value] = {}
    if phase:
        within = {each: stage.near(each, 0.2) for each in parameters}
        within |= {
            each: stage.near(each, 0.3)
            for each in stage.role("local", "output")
            if each.initial == "exact" and each.variability in {"fixed", "tunable"}
        }
    stage.initialize(instance, within=within)
    done = 0
    for part in range(2):
        if part:
            tunable = [each for each in parameters if each.variability == "tunable"]
            if not tunable:
                break
            instance.event()
            instance.set({each: stage.near(each, 0.15) for each in tunable})
            stage.settle(instance)
            instance.go_on()
        for _ in range(2):
            _round(stage, instance, choose_random_point(stage, instance), unknowns, effects, (phase, part), patient)
            done += 1
    return done


def _moves(
    stage: TrialFixture, point: EvaluationPoint, due: float
) -> Iterator[tuple[DescribedVariable, EvaluationPoint, float]]:
    """Yield points with one known changed: the known, the point, and the change."""
    for k, state in enumerate(stage.states):
        for value in choose_value_changes(stage, state, point.states[k]):
            others = (*point.states[:k], value, *point.states[k + 1 :])
            yield state, EvaluationPoint(point.time, others, point.inputs), value - point.states[k]
    for k, each in enumerate(stage.inputs):
        for value in choose_value_changes(stage, each, point.inputs[k]):
            others = (*point.inputs[:k], value, *point.inputs[k + 1 :])
            yield each, EvaluationPoint(point.time, point.states, others), value - point.inputs[k]
    independent = stage.description.independent
    if independent is not None and independent in stage.scalar_set:
        for later in (0.3 * stage.step, 1.7 * stage.step):
            if point.time + later < due:
                yield independent, EvaluationPoint(point.time + later, point.states, point.inputs), later


def _round(
    stage: TrialFixture, instance: FmuInstance, point: EvaluationPoint, unknowns: Sequence[DescribedVariable],
    effects: ChangeEffects, group: Group,
    patient: Callable[[], bool], due: float = math.inf,
) -> None:  # fmt: skip
    """Change every known at one point; time by less than the distance to the next time event."""
    move_to_point(stage, instance, point)
    base = instance.get(unknowns)
    for known, moved, change in _moves(stage, point, due):
        if not patient():
            return
        try:
            move_to_point(stage, instance, moved)
            other = instance.get(unknowns)
        except RefusedCallError:
            move_to_point(stage, instance, point)
            continue
        effects.enter(unknowns, known, base, other, change, group)
        move_to_point(stage, instance, point)


def _parameters(
    stage: TrialFixture, entries: Sequence[StructureUnknown], unknowns: Sequence[DescribedVariable]
) -> Iterator[Observation]:
    """Check tunable parameters, which are knowns in FMI 3: another value, then the same point."""
    tunable = stage.role("parameter", variability="tunable")
    effects = ChangeEffects()
    for round_ in range(3):
        with stage.instance() as instance:
            try:
                stage.initialize(
                    instance, within={each: stage.near(each, 0.2) for each in stage.role("parameter")} if round_ else {}
                )
                point = choose_random_point(stage, instance)
                _tuned(stage, instance, point, tunable, unknowns, effects, round_)
            except (RefusedCallError, SkippedTrialError):
                continue
    yield from compare_effects_with_dependencies(stage, entries, effects, tunable, 2)


def _tuned(
    stage: TrialFixture,
    instance: FmuInstance,
    point: EvaluationPoint,
    tunable: Sequence[DescribedVariable],
    unknowns: Sequence[DescribedVariable],
    effects: ChangeEffects,
    round_: int,
) -> None:
    """Enter what changing each tunable parameter does to the unknowns; its old value is restored."""
    move_to_point(stage, instance, point)
    for parameter in tunable:
        now = instance.get([parameter])[0]
        if not isinstance(now, float):
            continue
        # Event Mode at a point that was jumped to may switch a mode by itself: that is no effect of the parameter.
        _tune(stage, instance, parameter, now)
        move_to_point(stage, instance, point)
        base = instance.get(unknowns)
        for value in choose_value_changes(stage, parameter, now):
            try:
                seen = partial(_tuned_values, stage, instance, point, unknowns, parameter)
                other = seen(value)
                if stage.description.listed("EventIndicators"):
                    back, nearby = seen(now), seen(now + SLIGHT * (value - now))
                    other = drop_mode_changes(base, nearby, other, (back, seen(now)))
            except RefusedCallError:
                continue
            effects.enter(unknowns, parameter, base, other, value - now, (round_, len(effects.tried)))
        _tune(stage, instance, parameter, now)
        move_to_point(stage, instance, point)


def _tuned_values(
    stage: TrialFixture,
    instance: FmuInstance,
    point: EvaluationPoint,
    unknowns: Sequence[DescribedVariable],
    parameter: DescribedVariable,
    value: float,
) -> Sequence[Value]:
    """Return the unknowns at a point with a tunable parameter at a value."""
    _tune(stage, instance, parameter, value)
    move_to_point(stage, instance, point)
    return instance.get(unknowns)


def _tune(stage: TrialFixture, instance: FmuInstance, parameter: DescribedVariable, value: float) -> None:
    """Set a tunable parameter in Event Mode, as the standard demands, and go on."""
    instance.event()
    instance.set({parameter: value})
    stage.settle(instance)
    instance.go_on()


@probe("changing what is known at initialization", *RULES)
def try_initial_dependencies(stage: TrialFixture) -> Iterator[Observation]:
    """Check initial unknowns in Initialization Mode."""
    entries = [each for each in stage.description.listed("InitialUnknowns") if each.variable in stage.scalar_set]
    if not entries:
        return
    knowns = [
        each for each in stage.scalars
        if (each.causality == "input" and each.variability in {"continuous", "discrete"})
        or (each.initial == "exact" and each.variability != "constant" and each.causality != "independent")
    ]  # fmt: skip
    effects, done, patient = ChangeEffects(), 0, stage.patient()
    for phase in range(4):
        if phase > 1 and not patient():
            break
        with stage.instance() as instance:
            try:
                _initial_phase(stage, instance, phase, knowns, entries, effects)
                done += 1
            except (RefusedCallError, SkippedTrialError):
                continue
    if done < 2:
        stage.skipped.append(
            f"{stage.kind}: dependencies of the initial unknowns: it could not be evaluated at enough points"
        )
        return
    yield from compare_effects_with_dependencies(stage, entries, effects, knowns, 4)


def _initial_phase(
    stage: TrialFixture,
    instance: FmuInstance,
    phase: int,
    knowns: Sequence[DescribedVariable],
    entries: Sequence[StructureUnknown],
    effects: ChangeEffects,
) -> None:
    """Change every known at one set of start values."""
    unknowns = [each.variable for each in entries if each.variable]
    instance.enter(stage.start, None, stage.tolerance)
    spread = (0.0, 0.2, 0.1, 0.03)[phase]
    values: Mapping[DescribedVariable, float] = {each: stage.near(each, spread) for each in knowns}
    if phase:
        instance.set(dict(values))
    base = instance.get(unknowns)
    if not all(isinstance(each, float) and math.isfinite(each) for each in base):
        raise SkippedTrialError("not finite")
    for known in knowns:
        now = instance.get([known])[0]
        if not isinstance(now, float):
            continue
        # An FMU that solves anew, or only then, whenever something is set: that alone is no dependency.
        with suppress(RefusedCallError):
            instance.set({known: now})
            base = instance.get(unknowns)
        for value in choose_value_changes(stage, known, now):
            try:
                instance.set({known: value})
                other = instance.get(unknowns)
                instance.set({known: now + SLIGHT * (value - now)})
                nearby = instance.get(unknowns)
            except RefusedCallError:
                continue
            finally:
                instance.set({known: now})
            kept = drop_jumps_to_other_solutions(stage, entries, known, (base, nearby, other))
            effects.enter(unknowns, known, base, kept, value - now, (phase, known.index))


TINY = 1e-5
"""Part of a communication step in which next to nothing moves."""


@probe("changing inputs between tiny steps", "dependencies.missing", kinds=("CoSimulation",))
def try_dependencies_within_steps(stage: TrialFixture) -> Iterator[Observation]:
    """Check Co-Simulation: an output that an input changes within a tiny step depends on it directly."""
    outputs = [
        each
        for each in stage.description.listed("Outputs")
        if each.variable in stage.scalar_set and each.dependencies is not None
    ]
    if (
        not outputs
        or not stage.inputs
        or not stage.flag("canHandleVariableCommunicationStepSize")
        or "ModelExchange" in stage.description.interfaces
    ):
        return
    for known in stage.inputs:
        found = _after(stage, known, outputs, TINY * stage.step)
        suspects = [
            k
            for k, (base, sizes) in enumerate(found)
            if sizes and min(sizes) > 1e-2 * max(base, 1e-6) and all(known is not each for each in outputs[k].targets)
        ]
        # What goes by way of a state is small with the time that goes by, and may be large beside a state near zero.
        sooner = _after(stage, known, outputs, TINY * stage.step / 8.0) if suspects else []
        for k in suspects:
            if min(sooner[k][1], default=0.0) > 0.5 * min(found[k][1]):
                text = f'changes with "{known.name}" without time going by, which its dependencies leave out'
                yield Observation("dependencies.missing", text, f"{stage.kind}, {outputs[k].place}")


def _after(
    stage: TrialFixture, known: DescribedVariable, outputs: Sequence[StructureUnknown], tiny: float
) -> list[tuple[float, list[float]]]:
    """Return each output's size after two ``tiny`` steps, and its change by an input changed between them."""
    rows = []
    value = stage.near(known, 0.0)
    for other in (value, *choose_value_changes(stage, known, value)):
        with stage.instance() as instance:
            stage.initialize(instance, within={known: value})
            do_communication_step(stage, instance, stage.start, tiny)
            instance.set({known: other})
            do_communication_step(stage, instance, stage.start + tiny, tiny)
            rows.append(instance.get([each.variable for each in outputs if each.variable]))
    return [
        (abs(base) if isinstance(base, float) else 0.0,
         [abs(each - base) for each in moved if isinstance(each, float) and isinstance(base, float)])
        for base, *moved in zip(*rows, strict=True)
    ]  # fmt: skip
