"""Dependencies on, and of, what is no single floating point number: whole numbers, switches, texts, bytes, arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress

from mb2fmu.audit.behaviour.fixture.excited_runs import choose_other_value
from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture, have_same_bits
from mb2fmu.audit.behaviour.fixture.trial_registry import register_trial
from mb2fmu.audit.behaviour.instance.fmi_types import RefusedCallError, Value
from mb2fmu.audit.behaviour.instance.instance import FmuInstance
from mb2fmu.audit.behaviour.process.time_budget import SkippedTrialError
from mb2fmu.audit.description.description_records import DescribedVariable, StructureUnknown
from mb2fmu.audit.findings import Observation

RELATIVE_SPREADS = (0.3, 0.1)
"""Relative sizes of the changes of floating point numbers."""

VISIBLE_CHANGE = 1e-7
"""Relative change of a floating point number that is more than noise."""

Reader = Callable[[], Sequence[Value]]


def can_be_set_at_start(known: DescribedVariable) -> bool:
    """Return whether importers may give a value before the end of the initialization."""
    settable = known.causality in {"parameter", "input"} or known.initial == "exact"
    return settable and known.variability != "constant" and known.causality != "independent" and known.type != "Clock"


def has_visibly_changed(before: Value, after: Value, magnitude: float = 0.0) -> bool:
    """Return whether a value is visibly another one; ``magnitude`` is the largest number that was read with it."""
    if isinstance(before, tuple) and isinstance(after, tuple):
        if len(before) != len(after):
            return True
        magnitudes = [abs(element) for element in before if isinstance(element, float) and math.isfinite(element)]
        return any(
            has_visibly_changed(old, new, max(magnitudes, default=0.0)) for old, new in zip(before, after, strict=True)
        )
    if isinstance(before, float) and isinstance(after, float):
        if not (math.isfinite(before) and math.isfinite(after)):
            return False
        return abs(after - before) > max(VISIBLE_CHANGE * max(abs(before), abs(after), 1e-9), 1e-13 * magnitude)
    return before != after


def find_undeclared_dependencies(
    fixture: TrialFixture, entries: Sequence[StructureUnknown], knowns: Sequence[DescribedVariable],
    set_values: Callable[[Mapping[DescribedVariable, Value]], None], read: Reader,
) -> Iterator[Observation]:  # fmt: skip
    """Yield knowns that an unknown does not list, that change it, and that restore it when they are restored.

    Args:
        fixture: Of the FMU.
        entries: Of the model structure, in the order in which ``read`` gives their values.
        knowns: Are changed one by one.
        set_values: Sets values.
        read: Reads the unknowns.
    """
    reported: set[tuple[int, int]] = set()
    are_all_scalar = all(item.variable in fixture.scalar_set for item in entries)
    has_time = fixture.start_time_check()
    for known in knowns:
        for spread in RELATIVE_SPREADS if not (are_all_scalar and known in fixture.scalar_set) and has_time() else ():
            changed_value = choose_other_value(fixture, known, "dependencies", spread)
            start_value = fixture.start_value(known)
            if changed_value is None or start_value is None:
                break
            readings = []
            try:
                for value in (
                    start_value,
                    changed_value,
                    start_value,
                ):  # setting it alone may make an FMU solve anew: that is no effect
                    set_values({known: value})
                    readings.append(read())
            except RefusedCallError:
                with suppress(RefusedCallError):
                    set_values({known: start_value})
                continue
            for entry, before, after, restored in zip(entries, *readings, strict=True):
                if entry.variable is None or (entry.variable in fixture.scalar_set and known in fixture.scalar_set):
                    continue  # by other probes, more thoroughly
                key = entry.variable.index, known.index
                if key in reported or any(known is item for item in entry.targets):
                    continue
                if not have_same_bits(before, restored) or not has_visibly_changed(before, after):
                    continue
                reported.add(key)
                message = f'changes with "{known.name}", which its dependencies leave out'
                yield Observation("dependencies.missing", message, f"{fixture.interface}, {entry.place}")


def _list_declared_unknowns(fixture: TrialFixture, *list_names: str) -> list[StructureUnknown]:
    """Return unknowns whose dependencies are declared and that are tried."""
    tried_variables = frozenset(fixture.variables)
    entries = [entry for list_name in list_names for entry in fixture.description.listed(list_name)]
    return [entry for entry in entries if entry.variable in tried_variables and entry.dependencies is not None]


@register_trial("changing what is no single number at initialization", "dependencies.missing")
def try_initial_typed_dependencies(fixture: TrialFixture) -> Iterator[Observation]:
    """Check the dependencies of initial unknowns on parameters, inputs and start values of all types."""
    entries = _list_declared_unknowns(fixture, "InitialUnknowns")
    knowns = [variable for variable in fixture.variables if can_be_set_at_start(variable)]
    if not entries or not knowns:
        return
    with fixture.open_instance() as instance, suppress(SkippedTrialError):
        instance.enter_initialization(fixture.start, None, fixture.tolerance)
        yield from find_undeclared_dependencies(fixture, entries, knowns, instance.set, _make_reader(instance, entries))


@register_trial(
    "changing what is no single number in Event Mode", "dependencies.missing", interfaces=("ModelExchange",)
)
def try_typed_dependencies_at_events(fixture: TrialFixture) -> Iterator[Observation]:
    """Check the dependencies of outputs and derivatives on inputs of all types, in FMI 3 also on tunable parameters.

    Between two updates of discrete states: what follows at once depends on what was set, and not on what that made of a
    discrete state.
    """
    entries = _list_declared_unknowns(fixture, "Outputs", "Derivatives")
    knowns = [
        variable
        for variable in fixture.variables
        if (variable.causality == "input" and variable.type != "Clock")
        or (
            fixture.description.version == 3 and variable.causality == "parameter" and variable.variability == "tunable"
        )
    ]
    if not entries or not knowns:
        return
    with fixture.open_instance() as instance, suppress(SkippedTrialError):
        fixture.initialize(instance)
        instance.enter_event_mode()
        fixture.settle_events(instance)
        yield from find_undeclared_dependencies(fixture, entries, knowns, instance.set, _make_reader(instance, entries))


def _make_reader(instance: FmuInstance, entries: Sequence[StructureUnknown]) -> Reader:
    """Read the unknowns of these entries."""
    return lambda: instance.get([entry.variable for entry in entries if entry.variable])
