"""Dependencies on, and of, what is no single floating point number: whole numbers, switches, texts, bytes, arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress

from mb2fmu.audit.behaviour.fixture.excited_runs import choose_other_value
from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture, have_same_bits
from mb2fmu.audit.behaviour.fixture.trial_registry import probe
from mb2fmu.audit.behaviour.instance.fmi_types import RefusedCallError, Value
from mb2fmu.audit.behaviour.instance.instance import FmuInstance
from mb2fmu.audit.behaviour.process.time_budget import SkippedTrialError
from mb2fmu.audit.description.description_records import DescribedVariable, StructureUnknown
from mb2fmu.audit.findings import Observation

SPREADS = (0.3, 0.1)
"""Relative sizes of the changes of floating point numbers."""

VISIBLE = 1e-7
"""Relative change of a floating point number that is more than noise."""

Read = Callable[[], Sequence[Value]]


def can_be_set_at_start(known: DescribedVariable) -> bool:
    """Return whether importers may give a value before the end of the initialization."""
    settable = known.causality in {"parameter", "input"} or known.initial == "exact"
    return settable and known.variability != "constant" and known.causality != "independent" and known.type != "Clock"


def has_visibly_changed(before: Value, after: Value, size: float = 0.0) -> bool:
    """Return whether a value is visibly another one; ``size`` is the largest number that was read with it."""
    if isinstance(before, tuple) and isinstance(after, tuple):
        if len(before) != len(after):
            return True
        numbers = [abs(each) for each in before if isinstance(each, float) and math.isfinite(each)]
        return any(has_visibly_changed(a, b, max(numbers, default=0.0)) for a, b in zip(before, after, strict=True))
    if isinstance(before, float) and isinstance(after, float):
        if not (math.isfinite(before) and math.isfinite(after)):
            return False
        return abs(after - before) > max(VISIBLE * max(abs(before), abs(after), 1e-9), 1e-13 * size)
    return before != after


def find_undeclared_dependencies(
    stage: TrialFixture, entries: Sequence[StructureUnknown], knowns: Sequence[DescribedVariable],
    put: Callable[[Mapping[DescribedVariable, Value]], None], read: Read,
) -> Iterator[Observation]:  # fmt: skip
    """Yield knowns that an unknown does not list, that change it, and that restore it when they are restored.

    Args:
        stage: Of the FMU.
        entries: Of the model structure, in the order in which ``read`` gives their values.
        knowns: Are changed one by one.
        put: Sets values.
        read: Reads the unknowns.
    """
    told: set[tuple[int, int]] = set()
    numbers = all(each.variable in stage.scalar_set for each in entries)
    patient = stage.patient()
    for known in knowns:
        for spread in SPREADS if not (numbers and known in stage.scalar_set) and patient() else ():
            other = choose_other_value(stage, known, "dependencies", spread)
            now = stage.start_value(known)
            if other is None or now is None:
                break
            rows = []
            try:
                for value in (now, other, now):  # setting it alone may make an FMU solve anew: that is no effect
                    put({known: value})
                    rows.append(read())
            except RefusedCallError:
                with suppress(RefusedCallError):
                    put({known: now})
                continue
            for entry, before, after, back in zip(entries, *rows, strict=True):
                if entry.variable is None or (entry.variable in stage.scalar_set and known in stage.scalar_set):
                    continue  # by other probes, more thoroughly
                key = entry.variable.index, known.index
                if key in told or any(known is each for each in entry.targets):
                    continue
                if not have_same_bits(before, back) or not has_visibly_changed(before, after):
                    continue
                told.add(key)
                text = f'changes with "{known.name}", which its dependencies leave out'
                yield Observation("dependencies.missing", text, f"{stage.kind}, {entry.place}")


def _entries(stage: TrialFixture, *names: str) -> list[StructureUnknown]:
    """Return unknowns whose dependencies are declared and that are tried."""
    tried = frozenset(stage.variables)
    listed = [each for name in names for each in stage.description.listed(name)]
    return [each for each in listed if each.variable in tried and each.dependencies is not None]


@probe("changing what is no single number at initialization", "dependencies.missing")
def try_initial_typed_dependencies(stage: TrialFixture) -> Iterator[Observation]:
    """Check the dependencies of initial unknowns on parameters, inputs and start values of all types."""
    entries = _entries(stage, "InitialUnknowns")
    knowns = [each for each in stage.variables if can_be_set_at_start(each)]
    if not entries or not knowns:
        return
    with stage.instance() as instance, suppress(SkippedTrialError):
        instance.enter(stage.start, None, stage.tolerance)
        yield from find_undeclared_dependencies(stage, entries, knowns, instance.set, _reader(instance, entries))


@probe("changing what is no single number in Event Mode", "dependencies.missing", kinds=("ModelExchange",))
def try_typed_dependencies_at_events(stage: TrialFixture) -> Iterator[Observation]:
    """Check the dependencies of outputs and derivatives on inputs of all types, in FMI 3 also on tunable parameters.

    Between two updates of discrete states: what follows at once depends on what was set, and not on what that made of a
    discrete state.
    """
    entries = _entries(stage, "Outputs", "Derivatives")
    knowns = [
        each for each in stage.variables
        if (each.causality == "input" and each.type != "Clock")
        or (stage.description.version == 3 and each.causality == "parameter" and each.variability == "tunable")
    ]  # fmt: skip
    if not entries or not knowns:
        return
    with stage.instance() as instance, suppress(SkippedTrialError):
        stage.initialize(instance)
        instance.event()
        stage.settle(instance)
        yield from find_undeclared_dependencies(stage, entries, knowns, instance.set, _reader(instance, entries))


def _reader(instance: FmuInstance, entries: Sequence[StructureUnknown]) -> Read:
    """Read the unknowns of these entries."""
    return lambda: instance.get([each.variable for each in entries if each.variable])
