"""Saving, restoring and serializing the state: the motion continues bit for bit, also in other instances."""

from __future__ import annotations

import ctypes as c
import math
from collections.abc import Iterator
from contextlib import suppress

from mb2fmu.audit.behaviour.fixture.excited_runs import (
    choose_other_value,
    choose_parameters_and_starts,
    run_with_excitation,
)
from mb2fmu.audit.behaviour.fixture.short_runs import (
    ModelExchangeIntegration,
    ShortRun,
    find_first_difference,
    run_co_simulation,
)
from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture, have_same_bits
from mb2fmu.audit.behaviour.fixture.trial_registry import probe
from mb2fmu.audit.behaviour.instance.fmi_types import RefusedCallError
from mb2fmu.audit.behaviour.instance.instance import FmuInstance
from mb2fmu.audit.behaviour.process.time_budget import SkippedTrialError
from mb2fmu.audit.findings import Observation

MOST = 120
"""Communication steps from a kept state on."""


def _points(stage: TrialFixture) -> int:
    """Return communication steps after the saved state: to the end of the run, with its later events."""
    return max(1, min(MOST, stage.steps - _middle(stage)))


def _middle(stage: TrialFixture) -> int:
    """Return communication steps up to the saved state."""
    return max(1, min(3, stage.steps - 1), min(stage.steps // 2, MOST))


def _flags(stage: TrialFixture) -> tuple[bool, bool]:
    """Return whether the FMU keeps states, and whether it serializes them."""
    word = "state" if stage.description.version == 2 else "State"
    return stage.keeps_states, stage.flag(f"canSerializeFMU{word}")


def _onward(stage: TrialFixture, instance: FmuInstance, start: float) -> ShortRun:
    """Return more of the motion from a state on, values at its start first."""
    variables = stage.variables
    if stage.kind == "CoSimulation":
        return run_co_simulation(stage, instance, variables, steps=_points(stage), begin=start)
    run = ShortRun([start], [instance.get(variables)])
    instance.set_time(start)
    instance.event()
    following = stage.settle(instance).next_time
    instance.go_on()
    integration = ModelExchangeIntegration(stage, instance, start, 1e-4, following)
    for k in range(_points(stage)):
        integration.advance(start + (k + 1) * stage.step)
        run.times.append(integration.time)
        run.rows.append(instance.get(variables))
    return run


def _to_middle(stage: TrialFixture, instance: FmuInstance) -> float:
    """Move to the middle of the run, with inputs that move."""
    run_with_excitation(stage, instance, (), steps=_middle(stage), tolerance=1e-4)
    return stage.start + _middle(stage) * stage.step


def _disorder(stage: TrialFixture, instance: FmuInstance) -> None:
    """Set other inputs and tunable parameters of all types, which a restored state must take back."""
    wanted = [
        each for each in stage.variables
        if each.causality == "input" or (each.causality == "parameter" and each.variability == "tunable")
    ]  # fmt: skip
    exchange = stage.kind == "ModelExchange"
    if exchange:
        instance.event()
    for variable in wanted:
        value = choose_other_value(stage, variable, "disorder", 0.2)
        if value is not None:
            instance.put(variable, value)
    if exchange:
        with suppress(SkippedTrialError):
            stage.settle(instance)
            instance.go_on()


AT_ONCE = 1e-3
"""Part of the bound that holds before anything was integrated: what is read then is what was kept."""


def _told(stage: TrialFixture, rule: str, runs: tuple[ShortRun, ShortRun], when: str) -> Iterator[Observation]:
    """Yield the first difference: an error if it is visible, a warning if only last digits differ."""
    first, second = runs
    found = find_first_difference(stage.variables, first, second)
    if not found:
        return
    allowed = max(1e3 * (stage.tolerance or 1e-4), 1e-5)
    for k, variable in enumerate(stage.variables):
        values = [(a[k], b[k]) for a, b in zip(first.rows, second.rows, strict=True)]
        sizes = [abs(a) for a, _ in values if isinstance(a, float) and math.isfinite(a)]
        size = max([*sizes, 1e-3 * stage.scale(variable)])
        for point, (a, b) in enumerate(values):
            bound = (allowed if point else AT_ONCE * allowed) * size
            small = isinstance(a, float) and isinstance(b, float) and abs(a - b) <= bound
            if not have_same_bits(a, b) and not small:
                where = "at once" if point == 0 else f"{point} points"
                yield Observation(rule, f'"{variable.name}" differs {where} after {when}', stage.kind)
                return
    text = f'"{found[0].name}" differs in its last digits {found[1]} points after {when}'
    yield Observation("state.bits", text, stage.kind)


@probe("going back to a state", "state.roundtrip", "state.free", "state.bits")
def try_saved_state(stage: TrialFixture) -> Iterator[Observation]:
    """Check save, continue, restore, continue; also with other inputs, parameters and modes in between."""
    if not _flags(stage)[0]:
        for rule in ("state.roundtrip", "state.free", "state.bits"):
            stage.nothing(rule, "it cannot get and set its state")
        return
    with stage.instance() as instance:
        middle = _to_middle(stage, instance)
        mode = instance.mode
        try:
            state = instance.get_state()
            first = _onward(stage, instance, middle)
            again = []
            for when in ("a state was set", "a state was set once more", OTHERWISE):
                if when == OTHERWISE and not _elsewhere(stage, instance):
                    continue
                if when != OTHERWISE:
                    _disorder(stage, instance)
                instance.set_state(state)
                instance.mode = mode
                again.append((_onward(stage, instance, middle), when))
            instance.free_state(state)
        except RefusedCallError as error:
            yield Observation("state.roundtrip", str(error), stage.kind)
            return
        if state.value:
            yield Observation("state.free", "the pointer to a freed state is not null afterwards", stage.kind)
    for run, when in again:
        found = list(_told(stage, "state.roundtrip", (first, run), when))
        yield from found
        if found:
            return


@probe("getting a state into the memory of an earlier one", "state.roundtrip")
def try_refilled_state(stage: TrialFixture) -> Iterator[Observation]:
    """Check that saving into an existing copy replaces it, as importers do at each step."""
    if not _flags(stage)[0]:
        return
    with stage.instance() as instance:
        stage.initialize(instance)
        state = instance.get_state()
        _go(stage, instance, 1)
        instance.get_state(state)
        expected = instance.get(stage.variables)
        _go(stage, instance, 2)
        instance.set_state(state)
        found = instance.get(stage.variables)
        instance.free_state(state)
    wrong = find_first_difference(stage.variables, ShortRun([0.0], [expected]), ShortRun([0.0], [found]))
    if wrong:
        text = f'"{wrong[0].name}" differs after a state was set that had been got into the memory of an earlier one'
        yield Observation("state.roundtrip", text, stage.kind)


def _go(stage: TrialFixture, instance: FmuInstance, number: int) -> None:
    """Do a step, or move to another point."""
    point = stage.start + (number - 1) * stage.step
    if stage.kind == "CoSimulation":
        instance.must_step(point, stage.step)
        return
    states = instance.states(stage.n_states) if stage.n_states else []
    slopes = instance.slopes(stage.n_states) if stage.n_states else []
    moved = [x + stage.step * dx for x, dx in zip(states, slopes, strict=True)]
    stage.at(instance, point + stage.step, moved)


OTHERWISE = "a state was set where the instance had been initialized with other parameters"


def _elsewhere(stage: TrialFixture, instance: FmuInstance) -> bool:
    """Reset, and begin with other parameters; return whether that is possible."""
    other = choose_parameters_and_starts(stage, 1)
    if not other:
        return False
    instance.reset()
    with suppress(SkippedTrialError):
        stage.initialize(instance, within=other)
        return True
    return False


@probe("a state as bytes", "state.serialize", "state.bits")
def try_serialized_state(stage: TrialFixture) -> Iterator[Observation]:
    """Check serialization: restore in a new instance that began otherwise, and continue there."""
    if not all(_flags(stage)) or stage.flag("canBeInstantiatedOnlyOncePerProcess"):
        stage.nothing("state.serialize", "it cannot serialize its state, or there can be only one instance")
        return
    with stage.instance() as instance:
        middle = _to_middle(stage, instance)
        try:
            state = instance.get_state()
            data = instance.serialize(state)
            if instance.serialize(state) != data:
                yield Observation("state.serialize", "the same state gives other bytes the second time", stage.kind)
            instance.free_state(state)
            first = _onward(stage, instance, middle)
        except RefusedCallError as error:
            yield Observation("state.serialize", str(error), stage.kind)
            return
        # The first one is another by now: bytes that lead back to it are found out.
        with suppress(RefusedCallError):
            _elsewhere(stage, instance)
        yield from _inherited(stage, data, middle, first)


def _inherited(stage: TrialFixture, data: bytes, middle: float, first: ShortRun) -> Iterator[Observation]:
    """Check a new instance that gets the bytes of another one: it continues in the same way."""
    with stage.instance(name=b"heir") as heir:
        stage.initialize(heir, within=choose_parameters_and_starts(stage, 1))
        try:
            state = heir.deserialize(data)
            heir.set_state(state)
            second = _onward(stage, heir, middle)
            heir.free_state(state)
        except RefusedCallError as error:
            yield Observation("state.serialize", f"in a new instance: {error}", stage.kind)
            return
    yield from _told(stage, "state.serialize", (first, second), "bytes were set in a new instance")


@probe("freeing no state", "state.free", crash="state.free")
def try_freeing_null_state(stage: TrialFixture) -> Iterator[Observation]:
    """Check that freeing a null pointer is ignored."""
    if _flags(stage)[0]:
        with stage.instance() as instance:
            try:
                instance.free_state(c.c_void_p())
            except RefusedCallError as error:
                yield Observation("state.free", f"a null state: {error}", stage.kind)
