"""Excitation of a unit: other parameters and start values, and inputs of all types that change all the time.

Everything is drawn from numbers that are the same each time, whatever was tried before.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mb2fmu.audit.behaviour.binding import RefusedError, Value
from mb2fmu.audit.behaviour.instance import Instance
from mb2fmu.audit.behaviour.pace import SkippedError, SpentError
from mb2fmu.audit.behaviour.simulation import Integration, Run, advance, begin
from mb2fmu.audit.behaviour.stage import EndedError, Stage
from mb2fmu.audit.description.described_model import RANGES, Variable

PARTS = 8
"""Pieces of a run between which inputs change."""

TRIED = 60
"""Communication steps, at most, by which a set of parameters is chosen."""

_SPREADS = (0.3, 0.1, 0.02)
Values = dict[Variable, Value]


def another(stage: Stage, variable: Variable, key: object, spread: float) -> Value | None:
    """Choose another value for a variable of any type, reproducible by key; None if there is none.

    Args:
        stage: Of the unit.
        variable: With a start value.
        key: Tells the values of one variable apart.
        spread: Relative size of changes of floating point numbers.
    """
    start = stage.start_value(variable)
    if start is None:
        return None
    draw = random.Random(f"{variable.name} {key}")  # noqa: S311
    if isinstance(start, tuple):
        moved = tuple(_moved(stage, variable, each, draw, spread) for each in start)
        return None if any(each is None for each in moved) else moved
    return _moved(stage, variable, start, draw, spread)


def _other_bytes(start: bytes, draw: random.Random) -> bytes:
    """Return bytes with another last one and one more: what comes first may tell their format."""
    last = bytes(each ^ draw.randrange(1, 256) for each in start[-1:])
    return start[:-1] + last + bytes((draw.randrange(256),))


def _moved(stage: Stage, variable: Variable, start: Value, draw: random.Random, spread: float) -> Value | None:
    """Return another admissible value of a variable's type; None if there is none."""
    if isinstance(start, bytes):
        return _other_bytes(start, draw) if variable.type == "Binary" else b"%s %d" % (start, draw.randrange(10, 99))
    if isinstance(start, bool):
        return not start
    if isinstance(start, int):
        items = [each for each in stage.description.items(variable) if each != start]
        if variable.type == "Enumeration":
            return draw.choice(items) if items else None
        low, high = RANGES.get(variable.type, (start, start))
        others = [start + step for step in (1, -1, 2, 5, 7) if stage.inside(variable, start + step) == start + step]
        others = [each for each in others if low <= each <= high]
        return draw.choice(others) if others else None
    assert isinstance(start, float)
    if not math.isfinite(start):
        return None
    offset = stage.scale(variable) * spread * draw.uniform(0.3, 1.0) * draw.choice((-1.0, 1.0))
    if stage.inside(variable, start + offset) != start + offset:
        offset = -offset
    value = stage.inside(variable, start + offset)
    return _single(value) if variable.type == "Float32" else value


def _single(value: float) -> float:
    """Return a number rounded to single precision."""
    import struct

    return float(struct.unpack("f", struct.pack("f", value))[0])


def settable(stage: Stage) -> list[Variable]:
    """Return parameters, and start values that are exact numbers.

    The standards let importers set all that is exact; few units take others than these, and hardly an importer asks.
    """
    return [
        each for each in stage.variables
        if each.variability != "constant"
        and (
            each.causality == "parameter"
            or (each.initial == "exact" and each.causality in {"local", "output"} and each.is_float)
        )
    ]  # fmt: skip


def parameters(stage: Stage, number: int) -> Values:
    """Return parameters and start values with which an instance runs; empty if none is found.

    With some sets a mechanism cannot move on, which is no fault of the unit: changes become milder until it does.

    Args:
        stage: Of the unit.
        number: From 1 on; 0 is the set of the start values.
    """
    if number == 0:
        return {}
    known: dict[int, Values] = stage.notes.setdefault("parameters", {})
    if number not in known:
        known[number] = _feasible(stage, number)
    return known[number]


def _feasible(stage: Stage, number: int) -> Values:
    """Return other parameters with which a short run succeeds, at the widest spread that does; empty if none does."""
    wanted = settable(stage)
    if number % 2:  # start values stay now and then: they may not go together
        wanted = [each for each in wanted if each.causality == "parameter"]
    refused: list[str] = []
    for spread in _SPREADS:
        found = {each: value for each in wanted if (value := another(stage, each, number, spread)) is not None}
        if not found:
            return {}
        with stage.instance() as instance:
            try:
                steps = min(stage.steps, TRIED)
                for _ in driving(stage, instance, (), number=number, steps=steps, tolerance=1e-4, chosen=found):
                    pass
            except SpentError:
                raise
            except (RefusedError, SkippedError) as error:
                refused.append(str(error))
                continue
        return found
    if refused:
        stage.skipped.append(
            f"{stage.kind}: set {number} of other parameters: not run by one instance alone: {refused[-1]}"
        )
    return {}


def inputs(stage: Stage) -> list[Variable]:
    """Return inputs that can be set at any time."""
    return [each for each in stage.variables if each.causality == "input"]


def moving(stage: Stage, part: int, number: int = 0) -> Values:
    """Return inputs of all types in one part of a run; discrete ones stay in every other part."""
    found: Values = {}
    for each in inputs(stage):
        key = part if each.variability == "continuous" else part // 2
        value = another(stage, each, f"part {key} of {number}", 0.4)
        if value is not None and (each.variability == "continuous" or key % 2):
            found[each] = value
        elif each.variability != "continuous":
            start = stage.start_value(each)
            if start is not None:
                found[each] = start
    return found


def division(stage: Stage, steps: int | None = None) -> list[int]:
    """Return the communication steps of each part of a run."""
    total = stage.steps if steps is None else steps
    count = max(1, min(PARTS, total))
    return [total // count + (k < total % count) for k in range(count)]


def driving(stage: Stage, instance: Instance, variables: Sequence[Variable], **how: Any) -> Iterator[Run]:
    """Yield a run from Instantiated on, with moving inputs, of either kind: see :func:`_driving`.

    Raises:
        EndedError: If it wants to end, which is no fault: it was moved.
    """
    try:
        yield from _driving(stage, instance, variables, **how)
    except EndedError as error:
        error.moved = True
        raise


def _driving(
    stage: Stage, instance: Instance, variables: Sequence[Variable], *, number: int = 0, steps: int | None = None,
    tolerance: float = 1e-6, within: Mapping[Variable, Value] | None = None,
    chosen: Mapping[Variable, Value] | None = None,
) -> Iterator[Run]:  # fmt: skip
    """Yield values after each step of a run from Instantiated on, with moving inputs, of either type.

    Args:
        stage: Of the unit.
        instance: In the state Instantiated.
        variables: That are read at the communication points.
        number: Of the set of parameters.
        steps: Communication steps; None: those of the stage.
        tolerance: Of the auditor's integrator.
        within: Further values that are set in Initialization Mode.
        chosen: Parameters and start values; None: those of the number.

    Raises:
        RefusedError: If a call is refused.
        SkippedError: If it ends early.
    """
    own = parameters(stage, number) if chosen is None else chosen
    given = {**own, **moving(stage, 0, number), **(within or {})}
    integration = None
    if stage.kind == "CoSimulation":
        stage.initialize(instance, within=given)
    else:
        integration = Integration(stage, instance, stage.start, tolerance, begin(stage, instance, given))
    run, done = Run([stage.start], [instance.get(variables)], [0]), 0
    for part, size in enumerate(division(stage, steps)):
        if part and integration:
            integration.interrupt(moving(stage, part, number))
        elif part:
            instance.set(moving(stage, part, number))
        for _ in range(size):
            if integration:
                integration.advance(stage.start + (done + 1) * stage.step)
            else:
                advance(stage, instance, stage.start + done * stage.step, stage.step)
            done += 1
            run.times.append(stage.start + done * stage.step)
            run.rows.append(instance.get(variables))
            run.events.append(integration.events if integration else 0)
            run.jumps = integration.jumps if integration else []
            yield run


def drive(stage: Stage, instance: Instance, variables: Sequence[Variable], **how: Any) -> Run:
    """Run to the end with other parameters and moving inputs; arguments as for :func:`driving`."""
    *_, run = driving(stage, instance, variables, **how)
    return run
