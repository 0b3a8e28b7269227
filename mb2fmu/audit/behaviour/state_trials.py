"""Getting, setting and serializing the whole state: the motion goes on from it, bit for bit, in other instances too."""

from __future__ import annotations

import ctypes as c
from collections.abc import Iterator

from mb2fmu.audit.behaviour.binding import RefusedError, Value
from mb2fmu.audit.behaviour.instance import Instance
from mb2fmu.audit.behaviour.probe import probe
from mb2fmu.audit.behaviour.simulation import Integration, Run, cosimulate, differing
from mb2fmu.audit.behaviour.stage import Stage
from mb2fmu.audit.description.described_model import Variable
from mb2fmu.audit.finding import Observation


def _points(stage: Stage) -> int:
    """Communication steps from the kept state on: to the end of the run, so that events of later belong to it."""
    return max(stage.steps - 3, 1)


def _flags(stage: Stage) -> tuple[bool, bool]:
    word = "state" if stage.description.version == 2 else "State"
    return stage.keeps_states, stage.flag(f"canSerializeFMU{word}")


def _prepared(stage: Stage, instance: Instance, within: dict[Variable, Value] | None = None) -> None:
    stage.initialize(instance, within=within)


def _onward(stage: Stage, instance: Instance, begin: float) -> Run:
    """Some more of the motion, from a state on."""
    variables = stage.variables
    if stage.kind == "CoSimulation":
        return cosimulate(stage, instance, variables, steps=_points(stage), begin=begin)
    run = Run([begin], [instance.get(variables)])
    instance.set_time(begin)
    instance.event()
    following = stage.settle(instance).next_time
    instance.go_on()
    integration = Integration(stage, instance, begin, 1e-4, following)
    for k in range(_points(stage)):
        integration.advance(begin + (k + 1) * stage.step)
        run.times.append(integration.time)
        run.rows.append(instance.get(variables))
    return run


def _to_middle(stage: Stage, instance: Instance) -> float:
    within: dict[Variable, Value] = {each: stage.near(each, 0.1) for each in stage.inputs}
    _prepared(stage, instance, within)
    middle = stage.start + 3 * stage.step
    if stage.kind == "CoSimulation":
        cosimulate(stage, instance, (), steps=3, first=False)
    else:
        Integration(stage, instance, stage.start, 1e-4, None).advance(middle)
    return middle


@probe("going back to a state", "state.roundtrip", "state.free")
def roundtrip(stage: Stage) -> Iterator[Observation]:
    """Get, go on, set, go on again."""
    if not _flags(stage)[0]:
        return
    with stage.instance() as instance:
        middle = _to_middle(stage, instance)
        try:
            state = instance.get_state()
            first = _onward(stage, instance, middle)
            for variable in [*stage.inputs, *stage.role("parameter", variability="tunable")]:
                if stage.kind == "CoSimulation":
                    instance.put(variable, stage.near(variable, 0.2))
            instance.set_state(state)
            second = _onward(stage, instance, middle)
            instance.set_state(state)
            third = _onward(stage, instance, middle)
            instance.free_state(state)
        except RefusedError as error:
            yield Observation("state.roundtrip", str(error), stage.kind)
            return
        if state.value:
            yield Observation("state.free", "the pointer to a freed state is not null afterwards", stage.kind)
    found = differing(stage.variables, first, second) or differing(stage.variables, first, third)
    if found:
        yield Observation(
            "state.roundtrip", f'"{found[0].name}" differs {found[1]} points after a state was set', stage.kind
        )


@probe("a state as bytes", "state.serialize")
def serialize(stage: Stage) -> Iterator[Observation]:
    """Serialize, deserialize in a new instance, go on there."""
    if not all(_flags(stage)):
        return
    if stage.flag("canBeInstantiatedOnlyOncePerProcess"):
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
        except RefusedError as error:
            yield Observation("state.serialize", str(error), stage.kind)
            return
    with stage.instance(name=b"heir") as heir:
        _prepared(stage, heir)
        try:
            state = heir.deserialize(data)
            heir.set_state(state)
            second = _onward(stage, heir, middle)
            heir.free_state(state)
        except RefusedError as error:
            yield Observation("state.serialize", f"in a new instance: {error}", stage.kind)
            return
    found = differing(stage.variables, first, second)
    if found:
        yield Observation(
            "state.serialize",
            f'"{found[0].name}" differs {found[1]} points after bytes were set in a new instance',
            stage.kind,
        )


@probe("freeing no state", "state.free", crash="state.free")
def free_nothing(stage: Stage) -> Iterator[Observation]:
    """A null pointer is ignored."""
    if _flags(stage)[0]:
        with stage.instance() as instance:
            try:
                instance.free_state(c.c_void_p())
            except RefusedError as error:
                yield Observation("state.free", f"a null state: {error}", stage.kind)
