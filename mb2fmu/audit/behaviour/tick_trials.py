"""FMI 3: effects of ticks: clocked variables, saved states, dependencies; and no change without a tick."""

from __future__ import annotations

import ctypes as c
from collections.abc import Iterator, Sequence
from contextlib import suppress

from mb2fmu.audit.behaviour.binding import OK, WARNING, RefusedError, Value
from mb2fmu.audit.behaviour.dependency_trials import changes
from mb2fmu.audit.behaviour.instance import Instance
from mb2fmu.audit.behaviour.pace import SkippedError
from mb2fmu.audit.behaviour.probe import probe
from mb2fmu.audit.behaviour.simulation import advance
from mb2fmu.audit.behaviour.stage import Stage, same
from mb2fmu.audit.description.described_model import Variable
from mb2fmu.audit.finding import Observation


def _clocks(stage: Stage) -> list[Variable]:
    """Return input clocks that can be activated in this interface type."""
    usable = stage.kind == "ModelExchange" or stage.needs_event_mode
    known = stage.description.variables if stage.description.version == 3 and usable else ()
    return [each for each in known if each.type == "Clock" and each.causality == "input"]


def _clocked(stage: Stage, clock: Variable) -> list[Variable]:
    """Return readable variables of a clock that are no inputs."""
    return [
        each for each in stage.description.variables
        if str(clock.reference) in each.written.get("clocks", "").split() and each.type != "Clock"
        and each.causality != "input" and each.reference is not None
    ]  # fmt: skip


def _activate(instance: Instance, clock: Variable, *, on: bool) -> bool:
    """Set a clock in Event Mode, and return whether it was accepted."""
    state = (c.c_bool * 1)(on)
    return instance.call("SetClock", (c.c_uint * 1)(clock.reference or 0), c.c_size_t(1), state) in {OK, WARNING}


@probe("event mode without a tick", "clock.ticks")
def unticked(stage: Stage) -> Iterator[Observation]:
    """Check that clocked variables stay unchanged while no clock is set, or clocks are set inactive."""
    for clock in _clocks(stage):
        clocked = _clocked(stage, clock)
        with stage.instance() as instance:
            stage.initialize(instance)
            instance.event()
            before = instance.get(clocked)
            for how in ("no clock ticks", "its clock is set to inactive"):
                if how != "no clock ticks" and not _activate(instance, clock, on=False):
                    break
                stage.settle(instance)
                for variable, a, b in zip(clocked, before, instance.get(clocked), strict=True):
                    if not same(a, b):
                        text = f"goes from {a!r} to {b!r} in Event Mode, where {how}"
                        yield Observation("clock.ticks", text, f'{stage.kind}, "{variable.name}"')
                        return


@probe("a tick, and back to the state before it", "state.roundtrip", "exchange.values_changed")
def ticked(stage: Stage) -> Iterator[Observation]:
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
            if not same(a, b):
                text = f"is {b!r} after a tick was taken back by setting a state; it was {a!r} when that was kept"
                yield Observation("state.roundtrip", text, f'{stage.kind}, "{variable.name}"')
                return


def _states(stage: Stage, instance: Instance) -> list[float]:
    """Return the continuous states of Model Exchange."""
    return instance.states(stage.n_states) if stage.n_states and stage.kind == "ModelExchange" else []


@probe("what ticks sample", "dependencies.missing", kinds=("ModelExchange",))
def sampled(stage: Stage) -> Iterator[Observation]:
    """Check that a clocked output that a state or input changes at a tick depends on it."""
    knowns = [*stage.states, *stage.inputs]
    if len(stage.states) != stage.n_states:
        return
    for clock in _clocks(stage):
        clocked = set(map(id, _clocked(stage, clock)))
        entries = [
            each for each in stage.description.listed("Outputs")
            if id(each.variable) in clocked and each.dependencies is not None
        ]  # fmt: skip
        outputs = [each.variable for each in entries if each.variable]
        base = _after_tick(stage, clock, outputs, None, 0.0) if outputs and knowns else None
        for known in knowns if base else ():
            value = stage.start_value(known)
            moved = changes(stage, known, value)[:1] if isinstance(value, float) else []
            found = _after_tick(stage, clock, outputs, known, moved[0]) if moved else None
            for entry, a, b in zip(entries, base or (), found or base or (), strict=True):
                if not same(a, b) and all(known is not each for each in entry.targets):
                    text = f'changes with "{known.name}" at a tick of "{clock.name}", which its dependencies leave out'
                    yield Observation("dependencies.missing", text, f"{stage.kind}, {entry.place}")


def _after_tick(
    stage: Stage, clock: Variable, outputs: Sequence[Variable], known: Variable | None, value: float
) -> list[Value] | None:
    """Return outputs during a tick and after it, with one known set before; None if that is impossible."""
    with stage.instance() as instance, suppress(RefusedError, SkippedError):
        stage.initialize(instance)
        if known is not None and known in stage.states:
            instance.set_states([value if each is known else x for each, x in
                                 zip(stage.states, _states(stage, instance), strict=True)])  # fmt: skip
        instance.event()
        if known is not None and known not in stage.states:
            instance.set({known: value})
        if _activate(instance, clock, on=True):
            stage.settle(instance)
            return instance.get(outputs)
    return None


@probe("event mode between steps, where nothing is due", "exchange.unannounced", kinds=("CoSimulation",))
def between(stage: Stage) -> Iterator[Observation]:
    """Check FMI 3: entering and leaving Event Mode changes nothing if the step announced no event."""
    if stage.description.version != 3 or not stage.flag("hasEventMode"):
        return
    variables = [each for each in stage.variables if each.causality in {"local", "output"}]
    with stage.instance(event_mode=True) as instance, suppress(RefusedError, SkippedError):
        stage.initialize(instance)
        for k in range(2):
            done = advance(stage, instance, stage.start + k * stage.step, stage.step)
            if done.events:
                continue
            before = instance.get(variables)
            instance.event()
            stage.settle(instance)
            instance.go_on()
            for variable, a, b in zip(variables, before, instance.get(variables), strict=True):
                if not same(a, b):
                    text = f"goes from {a!r} to {b!r} by way of Event Mode, though the step said that no event is due"
                    yield Observation("exchange.unannounced", text, f'{stage.kind}, "{variable.name}"')
                    return
