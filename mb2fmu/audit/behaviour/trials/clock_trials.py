"""FMI 3: effects of ticks: clocked variables, saved states, dependencies; and no change without a tick."""

from __future__ import annotations

import ctypes as c
from collections.abc import Iterator, Sequence
from contextlib import suppress

from mb2fmu.audit.behaviour.fixture.excited_runs import choose_other_value
from mb2fmu.audit.behaviour.fixture.short_runs import do_communication_step
from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture, have_same_bits
from mb2fmu.audit.behaviour.fixture.trial_registry import probe
from mb2fmu.audit.behaviour.instance.fmi_types import OK, WARNING, RefusedCallError, Value
from mb2fmu.audit.behaviour.instance.instance import FmuInstance
from mb2fmu.audit.behaviour.process.time_budget import SkippedTrialError
from mb2fmu.audit.behaviour.trials.dependency_trials import choose_value_changes
from mb2fmu.audit.description.description_records import DescribedVariable, StructureUnknown
from mb2fmu.audit.findings import Observation


def _clocks(stage: TrialFixture) -> list[DescribedVariable]:
    """Return input clocks that can be activated in this interface type."""
    usable = stage.kind == "ModelExchange" or stage.needs_event_mode
    known = stage.description.variables if stage.description.version == 3 and usable else ()
    return [each for each in known if each.type == "Clock" and each.causality == "input"]


def _clocked(stage: TrialFixture, clock: DescribedVariable) -> list[DescribedVariable]:
    """Return readable variables of a clock that are no inputs."""
    return [
        each for each in stage.description.variables
        if str(clock.reference) in each.written.get("clocks", "").split() and each.type != "Clock"
        and each.causality != "input" and each.reference is not None
    ]  # fmt: skip


def _activate(instance: FmuInstance, clock: DescribedVariable, *, on: bool) -> bool:
    """Set a clock in Event Mode, and return whether it was accepted."""
    state = (c.c_bool * 1)(on)
    return instance.call("SetClock", (c.c_uint * 1)(clock.reference or 0), c.c_size_t(1), state) in {OK, WARNING}


@probe("event mode without a tick", "clock.ticks")
def try_without_ticks(stage: TrialFixture) -> Iterator[Observation]:
    """Check that clocked variables stay unchanged while no clock is set, or clocks are set inactive."""
    for clock in _clocks(stage):
        clocked = _clocked(stage, clock)
        with stage.instance() as instance:
            first = _begun(stage, instance, clocked)
            instance.event()
            before = instance.get(clocked)
            for variable, a, b in zip(clocked, first or before, before, strict=True):
                if not have_same_bits(a, b):
                    text = f"goes from {a!r} to {b!r} at the first event, where no clock ticks"
                    yield Observation("clock.ticks", text, f'{stage.kind}, "{variable.name}"')
                    return
            for how in ("no clock ticks", "its clock is set to inactive"):
                if how != "no clock ticks" and not _activate(instance, clock, on=False):
                    break
                stage.settle(instance)
                for variable, a, b in zip(clocked, before, instance.get(clocked), strict=True):
                    if not have_same_bits(a, b):
                        text = f"goes from {a!r} to {b!r} in Event Mode, where {how}"
                        yield Observation("clock.ticks", text, f'{stage.kind}, "{variable.name}"')
                        return


def _begun(stage: TrialFixture, instance: FmuInstance, clocked: Sequence[DescribedVariable]) -> list[Value] | None:
    """Initialize, and return the values at the end of Initialization Mode; None if they cannot be read there."""
    instance.enter(stage.start, None, stage.tolerance)
    try:
        found = instance.get(clocked)
    except RefusedCallError:
        found = None
    instance.exit()
    if instance.mode == "Event Mode":
        stage.settle(instance, first=True)
        instance.go_on()
    return found


@probe("a tick, and back to the state before it", "state.roundtrip", "exchange.values_changed")
def try_restoring_before_tick(stage: TrialFixture) -> Iterator[Observation]:
    """Check that a restored state takes a tick back; and that ticks that move continuous states are reported."""
    for clock in _clocks(stage):
        clocked = _clocked(stage, clock)
        with stage.instance() as instance:
            stage.initialize(instance)
            instance.event()
            before, states = instance.get(clocked), _states(stage, instance)
            kept = instance.get_state() if stage.keeps_states else None
            if not _activate(instance, clock, on=True):
                continue
            events = stage.settle(instance)
            if stage.kind == "ModelExchange" and _states(stage, instance) != states and not events.values_changed:
                text = f'a tick of "{clock.name}" moves continuous states, and valuesOfContinuousStatesChanged is false'
                yield Observation("exchange.values_changed", text, stage.kind)
            if kept is None:
                continue
            instance.set_state(kept)
            found = instance.get(clocked)
            instance.free_state(kept)
        for variable, a, b in zip(clocked, before, found, strict=True):
            if not have_same_bits(a, b):
                text = f"is {b!r} after a tick was taken back by setting a state; it was {a!r} when that was kept"
                yield Observation("state.roundtrip", text, f'{stage.kind}, "{variable.name}"')
                return


def _states(stage: TrialFixture, instance: FmuInstance) -> list[float]:
    """Return the continuous states of Model Exchange."""
    return instance.states(stage.n_states) if stage.n_states and stage.kind == "ModelExchange" else []


FAR = (1.0, -1.0, 3.0)
"""Changes of continuous states, in their sizes: what a tick does may turn at some value."""


@probe("what ticks sample", "dependencies.missing", "clock.ticks", kinds=("ModelExchange",))
def try_sampled_dependencies(stage: TrialFixture) -> Iterator[Observation]:
    """Check that clocked outputs and states list the states and inputs that change their values at a tick."""
    if len(stage.states) != stage.n_states:
        return
    for clock in _clocks(stage):
        entries = _sampling(stage, clock)
        outputs = [each.variable for each in entries if each.variable]
        base = _after_tick(stage, clock, outputs, None, 0.0)
        told: set[tuple[int, int]] = set()
        for known, value in _other_values(stage) if base else ():
            found = _after_tick(stage, clock, outputs, known, value)
            if found and found[-1]:
                text = f'it is still active after the discrete states were updated where "{known.name}" is {value!r}'
                yield Observation("clock.ticks", text, f'{stage.kind}, "{clock.name}"')
                return
            for entry, a, b in zip(entries, (base or ())[:-1], (found or base or ())[:-1], strict=True):
                key = id(entry), known.index
                if key not in told and not have_same_bits(a, b) and all(known is not each for each in entry.targets):
                    told.add(key)
                    text = f'changes with "{known.name}" at a tick of "{clock.name}", which its dependencies leave out'
                    yield Observation("dependencies.missing", text, f"{stage.kind}, {entry.place}")


def _sampling(stage: TrialFixture, clock: DescribedVariable) -> list[StructureUnknown]:
    """Return outputs and clocked states of a clock whose dependencies are declared."""
    clocked = set(map(id, _clocked(stage, clock)))
    found: dict[int, StructureUnknown] = {}
    for name in ("Outputs", "ClockedStates"):
        for each in stage.description.listed(name):
            if id(each.variable) in clocked and each.dependencies is not None:
                found.setdefault(id(each.variable), each)
    return list(found.values())


def _other_values(stage: TrialFixture) -> Iterator[tuple[DescribedVariable, Value]]:
    """Yield states and inputs of all types that can be set in Event Mode, with values that they do not have."""
    for state in stage.states:
        start = stage.start_value(state)
        if isinstance(start, float):
            size = max(abs(start), stage.scale(state))
            for value in (*choose_value_changes(stage, state, start), *(start + far * size for far in FAR)):
                yield state, stage.inside(state, value)
    for known in stage.variables:
        other = (
            choose_other_value(stage, known, "tick", 0.3)
            if known.causality == "input" and known.type != "Clock"
            else None
        )
        if other is not None:
            yield known, other


def _after_tick(
    stage: TrialFixture,
    clock: DescribedVariable,
    outputs: Sequence[DescribedVariable],
    known: DescribedVariable | None,
    value: Value,
) -> list[Value] | None:
    """Return outputs after a tick before which one known was set, and whether the clock ticks; None if that fails."""
    with stage.instance() as instance, suppress(RefusedCallError, SkippedTrialError):
        stage.initialize(instance)
        if known is not None and known in stage.states and isinstance(value, float):
            instance.set_states([value if each is known else x for each, x in
                                 zip(stage.states, _states(stage, instance), strict=True)])  # fmt: skip
        instance.event()
        if known is not None and known not in stage.states:
            instance.set({known: value})
        if _activate(instance, clock, on=True):
            stage.settle(instance)
            return [*instance.get(outputs), _active(instance, clock)]
    return None


def _active(instance: FmuInstance, clock: DescribedVariable) -> bool:
    """Return whether a clock ticks."""
    state = (c.c_bool * 1)()
    answer = instance.call("GetClock", (c.c_uint * 1)(clock.reference or 0), c.c_size_t(1), state)
    return answer in {OK, WARNING} and bool(state[0])


@probe("two ticks at one instant", "dependencies.missing", kinds=("ModelExchange",))
def try_two_ticks(stage: TrialFixture) -> Iterator[Observation]:
    """Check clocked states by two ticks: the second changes one only if the first has changed something that it lists.

    Its knowns are its own and others' previous values, which importers cannot set: here time, inputs and continuous
    states stay, and whatever else the first tick has changed is seen. Other clocked variables may have hidden memories.
    """
    for clock in _clocks(stage):
        entries = [
            each
            for each in _sampling(stage, clock)
            if each.variable and each.variable.written.get("previous") is not None
        ]
        outputs = [each.variable for each in entries if each.variable]
        with stage.instance() as instance, suppress(RefusedCallError, SkippedTrialError):
            stage.initialize(instance)
            instance.event()
            known = [*stage.variables, *_clocked(stage, clock)]
            rows = [(instance.get(known), instance.get(outputs))]
            while len(rows) < 3 and outputs and _activate(instance, clock, on=True):
                stage.settle(instance)
                rows.append((instance.get(known), instance.get(outputs)))
            if len(rows) < 3:
                continue
            other = {
                each.index for each, a, b in zip(known, rows[0][0], rows[1][0], strict=True) if not have_same_bits(a, b)
            }
            other |= _previous(stage, other)
            for entry, a, b in zip(entries, rows[1][1], rows[2][1], strict=True):
                listed = {each.index for each in entry.targets if each}
                if not have_same_bits(a, b) and not listed & other:
                    text = f'goes from {a!r} to {b!r} with a second tick of "{clock.name}" at one instant, where '
                    text += "nothing that its dependencies list had changed: they leave out what it does depend on"
                    yield Observation("dependencies.missing", text, f"{stage.kind}, {entry.place}")


def _previous(stage: TrialFixture, indices: set[int]) -> set[int]:
    """Return which variables hold previous values of some: at the next tick they have what these have now."""
    holders = (stage.description.target(each.written.get("previous")) for each in stage.description.variables
               if each.index in indices)  # fmt: skip
    return {each.index for each in holders if each}


@probe("event mode between steps, where nothing is due", "exchange.unannounced", kinds=("CoSimulation",))
def try_event_mode_without_tick(stage: TrialFixture) -> Iterator[Observation]:
    """Check FMI 3: entering and leaving Event Mode changes nothing if the step announced no event."""
    if stage.description.version != 3 or not stage.flag("hasEventMode"):
        return
    variables = [each for each in stage.variables if each.causality in {"local", "output"}]
    with stage.instance(event_mode=True) as instance, suppress(RefusedCallError, SkippedTrialError):
        stage.initialize(instance)
        for k in range(2):
            done = do_communication_step(stage, instance, stage.start + k * stage.step, stage.step)
            if done.events:
                continue
            before = instance.get(variables)
            instance.event()
            stage.settle(instance)
            instance.go_on()
            for variable, a, b in zip(variables, before, instance.get(variables), strict=True):
                if not have_same_bits(a, b):
                    text = f"goes from {a!r} to {b!r} by way of Event Mode, though the step said that no event is due"
                    yield Observation("exchange.unannounced", text, f'{stage.kind}, "{variable.name}"')
                    return


FEW = 3
"""Ticks after which something has changed."""


@probe("ticks of another clock", "clock.ticks")
def try_variables_of_other_clocks(stage: TrialFixture) -> Iterator[Observation]:
    """Check that variables of other clocks change only where one of these ticks, too."""
    known = {each.reference: each for each in stage.description.variables if each.type == "Clock"}
    for clock in _clocks(stage):
        strange = {
            each: owners for each in stage.description.variables
            if (owners := _owners(each)) and clock.reference not in owners and each.causality != "input"
        }  # fmt: skip
        if not strange or any(not _asked(known.get(each)) for owners in strange.values() for each in owners):
            continue
        with stage.instance() as instance, suppress(RefusedCallError, SkippedTrialError):
            stage.initialize(instance)
            instance.event()
            for _ in range(FEW):
                before = instance.get([*strange])
                if not _activate(instance, clock, on=True):
                    break
                ticked = {each for owners in strange.values() for each in owners if _active(instance, known[each])}
                stage.settle(instance)
                for (variable, owners), a, b in zip(strange.items(), before, instance.get([*strange]), strict=True):
                    if not have_same_bits(a, b) and not owners & ticked:
                        text = f'goes from {a!r} to {b!r} with a tick of "{clock.name}", which is none of its clocks'
                        yield Observation("clock.ticks", text, f'{stage.kind}, "{variable.name}"')
                        return


def _owners(variable: DescribedVariable) -> frozenset[int]:
    """Return the value references of a variable's clocks; none for clocks."""
    listed = variable.written.get("clocks", "").split() if variable.type != "Clock" else []
    return frozenset(int(each) for each in listed if each.isdecimal())


def _asked(clock: DescribedVariable | None) -> bool:
    """Return whether a clock tells by itself whether it ticks: output clocks do, input clocks are set."""
    return clock is not None and clock.causality in {"input", "output"}


@probe("a reset after ticks", "life.reset")
def try_reset_after_ticks(stage: TrialFixture) -> Iterator[Observation]:
    """Check that a reset forgets what ticks have changed: every value is that of a new instance."""
    clocks = _clocks(stage)
    if not clocks:
        return
    seen = list(dict.fromkeys([*stage.variables, *(each for clock in clocks for each in _clocked(stage, clock))]))
    with stage.instance() as instance, suppress(RefusedCallError, SkippedTrialError):
        stage.initialize(instance)
        usual = instance.get(seen)
        instance.event()
        for clock in clocks * FEW:
            if _activate(instance, clock, on=True):
                stage.settle(instance)
        instance.reset()
        stage.initialize(instance)
        for variable, a, b in zip(seen, usual, instance.get(seen), strict=True):
            if not have_same_bits(a, b):
                text = f"after ticks and a reset it is {b!r}, in a new instance {a!r}"
                yield Observation("life.reset", text, f'{stage.kind}, "{variable.name}"')
                return
