"""FMI 3: clocks: intervals, ticks and their effects on variables, states and dependencies; no change without a tick."""

from __future__ import annotations

import ctypes as c
from collections.abc import Iterator, Sequence
from contextlib import suppress

from mb2fmu.audit.behaviour.fixture.dependency_effects import choose_value_changes
from mb2fmu.audit.behaviour.fixture.excited_runs import choose_changed_value
from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture, are_identical_values
from mb2fmu.audit.behaviour.fixture.trial_registry import register_trial
from mb2fmu.audit.behaviour.fixture.trial_simulation_runs import do_communication_step
from mb2fmu.audit.behaviour.instance.fmi_c_interface import OK, WARNING, RefusedCallError, Value, format_fmi_status
from mb2fmu.audit.behaviour.instance.fmu_instance import FmuInstance
from mb2fmu.audit.behaviour.process.trial_time_budget import SkippedTrialError, TrialTimeBudgetError
from mb2fmu.audit.description.description_records import DescribedUnknown, DescribedVariable, parse_xml_number
from mb2fmu.audit.rules_and_findings import RuleViolation

PERIODIC_INTERVALS = frozenset({"constant", "fixed", "tunable", "changing", "countdown"})
"""Variabilities of intervals that can be read."""

TICKS_PER_CLOCK = 6
"""Of each input clock: an output clock may divide it."""


@register_trial("clocks that tick", "clock.ticks", "clock.interval", "clock.previous")
def try_input_clocks(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check clocks: activate input clocks in Event Mode, read clocked variables, request intervals."""
    clocks = [variable for variable in fixture.description.variables if variable.type == "Clock"]
    if fixture.description.version != 3 or not clocks:
        for rule in ("clock.ticks", "clock.interval", "clock.previous"):
            fixture.mark_inapplicable(rule, "it has no clocks")
        return
    if fixture.interface == "CoSimulation" and not fixture.needs_event_mode:
        for rule in ("clock.ticks", "clock.interval", "clock.previous"):
            fixture.mark_inapplicable(rule, "clocks need hasEventMode")
        return
    periodic = [variable for variable in clocks if variable.written.get("intervalVariability") in PERIODIC_INTERVALS]
    with fixture.open_instance() as instance:
        fixture.initialize(instance)
        for clock in periodic * 2:  # the second answer counts as the first
            yield from _check_interval(fixture, instance, clock)
        instance.enter_event_mode()
        for clock in clocks:
            if clock.causality == "input":
                yield from _check_repeated_ticks(fixture, instance, clock)
        for clock in periodic:
            if clock.written.get("intervalVariability") == "constant":  # after ticks, too
                yield from _check_interval(fixture, instance, clock)


def _check_repeated_ticks(
    fixture: TrialFixture, instance: FmuInstance, clock: DescribedVariable
) -> Iterator[RuleViolation]:
    """Check that at each tick a ``previous`` variable has the value of the tick before."""
    previous_values: dict[DescribedVariable, Value] = {}
    for _ in range(TICKS_PER_CLOCK):
        current_values: dict[DescribedVariable, Value] = {}
        faults = list(_check_tick(fixture, instance, clock, current_values))
        yield from faults
        if faults:
            return
        for variable in current_values:
            previous_variable = fixture.description.find_referenced_variable(variable.written.get("previous"))
            if (
                previous_variable
                and previous_variable in current_values
                and variable in previous_values
                and not are_identical_values(current_values[previous_variable], previous_values[variable])
            ):
                message = (
                    f'it is {current_values[previous_variable]!r} at a tick; "{variable.name}" was '
                    f"{previous_values[variable]!r} at the one before"
                )
                yield RuleViolation("clock.previous", message, fixture.format_finding_location(previous_variable))
                return
        previous_values = current_values


def _check_interval(fixture: TrialFixture, instance: FmuInstance, clock: DescribedVariable) -> Iterator[RuleViolation]:
    """Yield a clock's interval that is refused, not positive, or other than declared."""
    value, qualifier = c.c_double(float("nan")), c.c_int(-1)
    references = (c.c_uint * 1)(clock.reference or 0)
    status = instance.call("GetIntervalDecimal", references, c.c_size_t(1), c.byref(value), c.byref(qualifier))
    place = fixture.format_finding_location(clock)
    variability = clock.written.get("intervalVariability")
    if status not in {OK, WARNING}:
        if variability in {"changing", "countdown"}:
            yield RuleViolation(
                "clock.interval",
                f"a {variability} clock, whose interval request returns {format_fmi_status(status)}",
                place,
            )
        return
    declared = parse_xml_number(clock.written.get("intervalDecimal"))
    if qualifier.value == 0 and variability in {"constant", "fixed"}:
        yield RuleViolation(
            "clock.interval", f"a {variability} clock, whose interval is reported as not known yet", place
        )
    if qualifier.value != 0 and variability in {"constant", "fixed", "tunable"} and not value.value > 0.0:
        yield RuleViolation("clock.interval", f"its interval is {value.value!r}, which is not positive", place)
    elif (
        declared is not None
        and variability == "constant"
        and qualifier.value != 0
        and abs(value.value - declared) > 1e-12 * declared
    ):
        yield RuleViolation(
            "clock.interval", f"its interval is {value.value!r}, the description says {declared!r}", place
        )


def _find_active_output_clock(fixture: TrialFixture, instance: FmuInstance) -> Iterator[RuleViolation]:
    """Yield output clocks that are active though the discrete states were updated."""
    for clock in fixture.description.variables:
        if clock.type == "Clock" and clock.causality == "output":
            is_active = (c.c_bool * 1)()
            status = instance.call("GetClock", (c.c_uint * 1)(clock.reference or 0), c.c_size_t(1), is_active)
            if status in {OK, WARNING} and is_active[0]:
                message = "it is still active after the discrete states were updated"
                yield RuleViolation("clock.ticks", message, fixture.format_finding_location(clock))
                return


def _check_tick(
    fixture: TrialFixture, instance: FmuInstance, clock: DescribedVariable, values: dict[DescribedVariable, Value]
) -> Iterator[RuleViolation]:
    """Do one tick; values of its variables while it is active go to ``values``."""
    place = fixture.format_finding_location(clock)
    references, count = (c.c_uint * 1)(clock.reference or 0), c.c_size_t(1)
    clocked = [
        variable for variable in fixture.description.variables
        if str(clock.reference) in variable.written.get("clocks", "").split() and variable.type != "Clock"
        and variable.causality != "input" and variable.reference is not None
    ]  # fmt: skip
    is_active = (c.c_bool * 1)()
    is_active[0] = True
    status = instance.call("SetClock", references, count, is_active)
    if status not in {OK, WARNING}:
        yield RuleViolation("clock.ticks", f"setting it in Event Mode returns {format_fmi_status(status)}", place)
        return
    try:
        values.update(zip(clocked, instance.get(clocked), strict=True))
        fixture.settle_events(instance)
        is_active[0] = True
        if instance.call("GetClock", references, count, is_active) in {OK, WARNING} and is_active[0]:
            yield RuleViolation("clock.ticks", "it is still active after the discrete states were updated", place)
        yield from _find_active_output_clock(fixture, instance)
    except TrialTimeBudgetError:
        raise
    except (RefusedCallError, SkippedTrialError) as error:
        yield RuleViolation("clock.ticks", f"while it ticks: {error}", place)


def _list_input_clocks(fixture: TrialFixture) -> list[DescribedVariable]:
    """Return input clocks that can be activated in this interface type."""
    has_event_mode = fixture.interface == "ModelExchange" or fixture.needs_event_mode
    variables = fixture.description.variables if fixture.description.version == 3 and has_event_mode else ()
    return [variable for variable in variables if variable.type == "Clock" and variable.causality == "input"]


def _list_clocked_variables(fixture: TrialFixture, clock: DescribedVariable) -> list[DescribedVariable]:
    """Return readable variables of a clock that are no inputs."""
    return [
        variable for variable in fixture.description.variables
        if str(clock.reference) in variable.written.get("clocks", "").split() and variable.type != "Clock"
        and variable.causality != "input" and variable.reference is not None
    ]  # fmt: skip


def _set_clock(instance: FmuInstance, clock: DescribedVariable, *, active: bool) -> bool:
    """Set a clock in Event Mode, and return whether it was accepted."""
    state = (c.c_bool * 1)(active)
    return instance.call("SetClock", (c.c_uint * 1)(clock.reference or 0), c.c_size_t(1), state) in {OK, WARNING}


@register_trial("event mode without a tick", "clock.ticks")
def try_clocked_variables_without_tick(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that clocked variables stay unchanged while no clock is set, or clocks are set inactive."""
    for clock in _list_input_clocks(fixture):
        clocked = _list_clocked_variables(fixture, clock)
        with fixture.open_instance() as instance:
            initial_values = _initialize_and_read(fixture, instance, clocked)
            instance.enter_event_mode()
            values_before = instance.get(clocked)
            for variable, old, new in zip(clocked, initial_values or values_before, values_before, strict=True):
                if not are_identical_values(old, new):
                    message = f"goes from {old!r} to {new!r} at the first event, where no clock ticks"
                    yield RuleViolation("clock.ticks", message, fixture.format_finding_location(variable))
                    return
            for situation in ("no clock ticks", "its clock is set to inactive"):
                if situation != "no clock ticks" and not _set_clock(instance, clock, active=False):
                    break
                fixture.settle_events(instance)
                for variable, old, new in zip(clocked, values_before, instance.get(clocked), strict=True):
                    if not are_identical_values(old, new):
                        message = f"goes from {old!r} to {new!r} in Event Mode, where {situation}"
                        yield RuleViolation("clock.ticks", message, fixture.format_finding_location(variable))
                        return


def _initialize_and_read(
    fixture: TrialFixture, instance: FmuInstance, clocked: Sequence[DescribedVariable]
) -> list[Value] | None:
    """Initialize, and return the values at the end of Initialization Mode; None if they cannot be read there."""
    instance.enter_initialization(fixture.start, None, fixture.tolerance)
    try:
        values = instance.get(clocked)
    except RefusedCallError:
        values = None
    instance.exit_initialization()
    if instance.mode == "Event Mode":
        fixture.settle_events(instance, after_initialization=True)
        instance.leave_event_mode()
    return values


@register_trial("a tick, and back to the state before it", "state.roundtrip", "exchange.values_changed")
def try_restoring_before_tick(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that a restored state takes a tick back; and that ticks that move continuous states are reported."""
    for clock in _list_input_clocks(fixture):
        clocked = _list_clocked_variables(fixture, clock)
        with fixture.open_instance() as instance:
            fixture.initialize(instance)
            instance.enter_event_mode()
            values_before, states = instance.get(clocked), _get_states(fixture, instance)
            saved_state = instance.get_state() if fixture.can_save_states else None
            if not _set_clock(instance, clock, active=True):
                continue
            update = fixture.settle_events(instance)
            if (
                fixture.interface == "ModelExchange"
                and _get_states(fixture, instance) != states
                and not update.values_changed
            ):
                message = (
                    f'a tick of "{clock.name}" moves continuous states, and valuesOfContinuousStatesChanged is false'
                )
                yield RuleViolation("exchange.values_changed", message, fixture.interface)
            if saved_state is None:
                continue
            instance.set_state(saved_state)
            values_restored = instance.get(clocked)
            instance.free_state(saved_state)
        for variable, old, new in zip(clocked, values_before, values_restored, strict=True):
            if not are_identical_values(old, new):
                message = (
                    f"is {new!r} after a tick was taken back by setting a state; it was {old!r} when that was kept"
                )
                yield RuleViolation("state.roundtrip", message, fixture.format_finding_location(variable))
                return


def _get_states(fixture: TrialFixture, instance: FmuInstance) -> list[float]:
    """Return the continuous states of Model Exchange."""
    return instance.get_states(fixture.n_states) if fixture.n_states and fixture.interface == "ModelExchange" else []


STATE_CHANGES = (1.0, -1.0, 3.0)
"""Changes of continuous states, in typical magnitudes: the effect of a tick may depend on a threshold."""


@register_trial("what ticks sample", "dependencies.missing", "clock.ticks", interfaces=("ModelExchange",))
def try_clocked_dependencies(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that clocked outputs and states list the states and inputs that change their values at a tick."""
    if len(fixture.states) != fixture.n_states:
        return
    for clock in _list_input_clocks(fixture):
        entries = _list_sampled_unknowns(fixture, clock)
        outputs = [sampled_unknown.variable for sampled_unknown in entries if sampled_unknown.variable]
        base_values = _read_after_tick(fixture, clock, outputs, None, 0.0)
        reported: set[tuple[int, int]] = set()
        for known, value in _iterate_changed_values(fixture) if base_values else ():
            values = _read_after_tick(fixture, clock, outputs, known, value)
            if values and values[-1]:
                message = f'it is still active after the discrete states were updated where "{known.name}" is {value!r}'
                yield RuleViolation("clock.ticks", message, fixture.format_finding_location(clock))
                return
            for entry, old, new in zip(
                entries, (base_values or ())[:-1], (values or base_values or ())[:-1], strict=True
            ):
                key = id(entry), known.index
                if (
                    key not in reported
                    and not are_identical_values(old, new)
                    and all(known is not sampled_unknown for sampled_unknown in entry.targets)
                ):
                    reported.add(key)
                    message = (
                        f'changes with "{known.name}" at a tick of "{clock.name}", which its dependencies leave out'
                    )
                    yield RuleViolation(
                        "dependencies.missing", message, f"{fixture.interface}, {entry.location_in_file}"
                    )


def _list_sampled_unknowns(fixture: TrialFixture, clock: DescribedVariable) -> list[DescribedUnknown]:
    """Return outputs and clocked states of a clock whose dependencies are declared."""
    clocked_ids = set(map(id, _list_clocked_variables(fixture, clock)))
    entries: dict[int, DescribedUnknown] = {}
    for name in ("Outputs", "ClockedStates"):
        for entry in fixture.description.model_structure_entries(name):
            if id(entry.variable) in clocked_ids and entry.dependencies is not None:
                entries.setdefault(id(entry.variable), entry)
    return list(entries.values())


def _iterate_changed_values(fixture: TrialFixture) -> Iterator[tuple[DescribedVariable, Value]]:
    """Yield states and inputs of all types that can be set in Event Mode, with values that they do not have."""
    for state in fixture.states:
        start = fixture.start_value(state)
        if isinstance(start, float):
            magnitude = max(abs(start), fixture.typical_magnitude(state))
            for value in (
                *choose_value_changes(fixture, state, start),
                *(start + factor * magnitude for factor in STATE_CHANGES),
            ):
                yield state, fixture.clip_to_bounds(state, value)
    for variable in fixture.variables_to_try:
        changed = (
            choose_changed_value(fixture, variable, "tick", 0.3)
            if variable.causality == "input" and variable.type != "Clock"
            else None
        )
        if changed is not None:
            yield variable, changed


def _read_after_tick(
    fixture: TrialFixture,
    clock: DescribedVariable,
    outputs: Sequence[DescribedVariable],
    known: DescribedVariable | None,
    value: Value,
) -> list[Value] | None:
    """Return outputs after a tick before which one known was set, and whether the clock ticks; None if that fails."""
    with fixture.open_instance() as instance, suppress(RefusedCallError, SkippedTrialError):
        fixture.initialize(instance)
        if known is not None and known in fixture.states and isinstance(value, float):
            instance.set_states([value if state is known else state_value for state, state_value in
                                 zip(fixture.states, _get_states(fixture, instance), strict=True)])  # fmt: skip
        instance.enter_event_mode()
        if known is not None and known not in fixture.states:
            instance.set({known: value})
        if _set_clock(instance, clock, active=True):
            fixture.settle_events(instance)
            return [*instance.get(outputs), _is_clock_active(instance, clock)]
    return None


def _is_clock_active(instance: FmuInstance, clock: DescribedVariable) -> bool:
    """Return whether a clock ticks."""
    state = (c.c_bool * 1)()
    status = instance.call("GetClock", (c.c_uint * 1)(clock.reference or 0), c.c_size_t(1), state)
    return status in {OK, WARNING} and bool(state[0])


@register_trial("two ticks at one instant", "dependencies.missing", interfaces=("ModelExchange",))
def try_clocked_state_dependencies(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check clocked states by two ticks: the second changes one only if the first has changed something that it lists.

    Its knowns are its own and others' previous values, which importers cannot set: here time, inputs and continuous
    states stay, and whatever else the first tick has changed is seen. Other clocked variables may have hidden memories.
    """
    for clock in _list_input_clocks(fixture):
        entries = [
            sampled_unknown
            for sampled_unknown in _list_sampled_unknowns(fixture, clock)
            if sampled_unknown.variable and sampled_unknown.variable.written.get("previous") is not None
        ]
        outputs = [sampled_unknown.variable for sampled_unknown in entries if sampled_unknown.variable]
        with fixture.open_instance() as instance, suppress(RefusedCallError, SkippedTrialError):
            fixture.initialize(instance)
            instance.enter_event_mode()
            variables = [*fixture.variables_to_try, *_list_clocked_variables(fixture, clock)]
            readings = [(instance.get(variables), instance.get(outputs))]
            while len(readings) < 3 and outputs and _set_clock(instance, clock, active=True):
                fixture.settle_events(instance)
                readings.append((instance.get(variables), instance.get(outputs)))
            if len(readings) < 3:
                continue
            changed = {
                sampled_unknown.index
                for sampled_unknown, old, new in zip(variables, readings[0][0], readings[1][0], strict=True)
                if not are_identical_values(old, new)
            }
            changed |= _list_previous_holders(fixture, changed)
            for entry, old, new in zip(entries, readings[1][1], readings[2][1], strict=True):
                declared = {sampled_unknown.index for sampled_unknown in entry.targets if sampled_unknown}
                if not are_identical_values(old, new) and not declared & changed:
                    message = (
                        f'goes from {old!r} to {new!r} with a second tick of "{clock.name}" at one instant, where '
                    )
                    message += "nothing that its dependencies list had changed: they leave out what it does depend on"
                    yield RuleViolation(
                        "dependencies.missing", message, f"{fixture.interface}, {entry.location_in_file}"
                    )


def _list_previous_holders(fixture: TrialFixture, indices: set[int]) -> set[int]:
    """Return variables that hold the previous values of others."""
    holder_names = (
        fixture.description.find_referenced_variable(variable.written.get("previous"))
        for variable in fixture.description.variables
        if variable.index in indices
    )
    return {variable.index for variable in holder_names if variable}


@register_trial("event mode between steps, where nothing is due", "exchange.unannounced", interfaces=("CoSimulation",))
def try_event_mode_without_event(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check FMI 3: entering and leaving Event Mode changes nothing if the step announced no event."""
    if fixture.description.version != 3 or not fixture.flag("hasEventMode"):
        return
    variables = [candidate for candidate in fixture.variables_to_try if candidate.causality in {"local", "output"}]
    with fixture.open_instance(event_mode=True) as instance, suppress(RefusedCallError, SkippedTrialError):
        fixture.initialize(instance)
        for step_index in range(2):
            result = do_communication_step(fixture, instance, fixture.start + step_index * fixture.step, fixture.step)
            if result.event_needed:
                continue
            values_before = instance.get(variables)
            instance.enter_event_mode()
            fixture.settle_events(instance)
            instance.leave_event_mode()
            for variable, old, new in zip(variables, values_before, instance.get(variables), strict=True):
                if not are_identical_values(old, new):
                    message = (
                        f"goes from {old!r} to {new!r} by way of Event Mode, though the step reported "
                        f"that no event is due"
                    )
                    yield RuleViolation("exchange.unannounced", message, fixture.format_finding_location(variable))
                    return


TICK_COUNT = 3
"""Number of ticks that a trial makes."""


@register_trial("ticks of another clock", "clock.ticks")
def try_variables_of_other_clocks(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that variables of other clocks change only where one of these ticks, too."""
    clocks_by_reference = {
        candidate.reference: candidate for candidate in fixture.description.variables if candidate.type == "Clock"
    }
    for clock in _list_input_clocks(fixture):
        foreign_variables = {
            candidate: references
            for candidate in fixture.description.variables
            if (references := _list_clock_references(candidate))
            and clock.reference not in references
            and candidate.causality != "input"
        }
        if not foreign_variables or any(
            not _reports_activity(clocks_by_reference.get(candidate))
            for references in foreign_variables.values()
            for candidate in references
        ):
            continue
        with fixture.open_instance() as instance, suppress(RefusedCallError, SkippedTrialError):
            fixture.initialize(instance)
            instance.enter_event_mode()
            for _ in range(TICK_COUNT):
                values_before = instance.get([*foreign_variables])
                if not _set_clock(instance, clock, active=True):
                    break
                active_references = {
                    candidate
                    for references in foreign_variables.values()
                    for candidate in references
                    if _is_clock_active(instance, clocks_by_reference[candidate])
                }
                fixture.settle_events(instance)
                for (variable, references), old, new in zip(
                    foreign_variables.items(), values_before, instance.get([*foreign_variables]), strict=True
                ):
                    if not are_identical_values(old, new) and not references & active_references:
                        message = (
                            f'goes from {old!r} to {new!r} with a tick of "{clock.name}", which is none of its clocks'
                        )
                        yield RuleViolation("clock.ticks", message, fixture.format_finding_location(variable))
                        return


def _list_clock_references(variable: DescribedVariable) -> frozenset[int]:
    """Return the value references of a variable's clocks; none for clocks."""
    references = variable.written.get("clocks", "").split() if variable.type != "Clock" else []
    return frozenset(int(reference) for reference in references if reference.isdecimal())


def _reports_activity(clock: DescribedVariable | None) -> bool:
    """Return whether the activity of a clock can be read: input clocks are set, output clocks are read."""
    return clock is not None and clock.causality in {"input", "output"}


@register_trial("a reset after ticks", "life.reset")
def try_reset_after_ticks(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that a reset forgets what ticks have changed: every value is that of a new instance."""
    clocks = _list_input_clocks(fixture)
    if not clocks:
        return
    variables = list(
        dict.fromkeys(
            [
                *fixture.variables_to_try,
                *(candidate for clock in clocks for candidate in _list_clocked_variables(fixture, clock)),
            ]
        )
    )
    with fixture.open_instance() as instance, suppress(RefusedCallError, SkippedTrialError):
        fixture.initialize(instance)
        values_of_new = instance.get(variables)
        instance.enter_event_mode()
        for clock in clocks * TICK_COUNT:
            if _set_clock(instance, clock, active=True):
                fixture.settle_events(instance)
        instance.reset()
        fixture.initialize(instance)
        for variable, expected, value in zip(variables, values_of_new, instance.get(variables), strict=True):
            if not are_identical_values(expected, value):
                message = f"after ticks and a reset it is {value!r}, in a new instance {expected!r}"
                yield RuleViolation("life.reset", message, fixture.format_finding_location(variable))
                return
