"""Co-Simulation steps: any size, in parts, beyond the end, against Model Exchange; early return."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress

from mb2fmu.audit.behaviour.fixture.excited_runs import (
    choose_excited_run_values,
    choose_varied_input_values,
    run_with_excitation,
)
from mb2fmu.audit.behaviour.fixture.shared_trial_results import RecordedTrialRun
from mb2fmu.audit.behaviour.fixture.trial_fixture import (
    InstantiationError,
    TerminateSimulationError,
    TrialFixture,
    are_identical_values,
)
from mb2fmu.audit.behaviour.fixture.trial_registry import register_trial
from mb2fmu.audit.behaviour.fixture.trial_run_comparison import (
    START_DISTURBANCE,
    find_largest_final_difference,
    find_run_deviation,
    permitted_relative_difference,
    values_agree,
)
from mb2fmu.audit.behaviour.fixture.trial_simulation_runs import (
    MAX_SIMULTANEOUS_EVENTS,
    do_communication_step,
    run_co_simulation,
)
from mb2fmu.audit.behaviour.instance.fmi_c_interface import (
    ERROR,
    OK,
    WARNING,
    RefusedCallError,
    Value,
    format_fmi_status,
)
from mb2fmu.audit.behaviour.instance.fmu_instance import (
    LAST_SUCCESSFUL_TIME_KIND,
    STEP_STATUS_KIND,
    TERMINATED_STATUS_KIND,
    FmuInstance,
)
from mb2fmu.audit.behaviour.process.trial_time_budget import SkippedTrialError, TrialTimeBudgetError
from mb2fmu.audit.description.description_records import DescribedVariable
from mb2fmu.audit.rules_and_findings import RuleViolation

CO_SIMULATION = ("CoSimulation",)
PHYSICAL_SET_NUMBER = -1
"""Number of the parameter set with floating point parameters only."""

MAX_CYCLES = 4
"""Of four steps each; short experiments have one. Longer runs are compared with Model Exchange."""

STATE_PERTURBATION = 1e-7
"""Relative change of a state that shows the size of a variable's terms."""


def list_continuous_variables(fixture: TrialFixture) -> list[DescribedVariable]:
    """Return continuous outputs and local variables."""
    return [
        variable
        for variable in fixture.float_scalars
        if variable.causality in {"output", "local"} and variable.variability == "continuous"
    ]


def _list_discrete_variables(fixture: TrialFixture) -> list[DescribedVariable]:
    """Return the discrete outputs and locals, which must change as they do in Model Exchange."""
    return [
        variable
        for variable in fixture.variables_to_try
        if variable.causality in {"output", "local"} and variable.variability == "discrete"
    ]


def _term_magnitudes(
    fixture: TrialFixture, instance: FmuInstance, variables: Sequence[DescribedVariable]
) -> list[float]:
    """Return the size of each variable's terms at the present point: Σ |∂y/∂x_k| |x_k| over the states x_k.

    A residual, or another difference of large numbers, is by itself as large as errors of the states leave it: states
    that are right within a relative error ε may change it by ε times this size, however small it is.
    """
    n_states = fixture.n_states
    if not n_states:
        return [0.0] * len(variables)
    states = instance.get_states(n_states)
    nominals = instance.get_vector("GetNominalsOfContinuousStates", n_states)
    values_before, magnitudes = instance.get(variables), [0.0] * len(variables)
    has_time = fixture.make_time_remaining_check()
    for index, (state, nominal) in enumerate(zip(states, nominals, strict=True)):
        magnitude = max(abs(state), 1e-3 * abs(nominal))  # as the integrator counts errors
        try:
            instance.set_states([*states[:index], state + STATE_PERTURBATION * magnitude, *states[index + 1 :]])
            values_after = instance.get(variables)
        except RefusedCallError:
            continue
        for position, (before, after) in enumerate(zip(values_before, values_after, strict=True)):
            if isinstance(before, float) and isinstance(after, float) and math.isfinite(after - before):
                magnitudes[position] += abs(after - before) / STATE_PERTURBATION
        if not has_time():
            break
    return magnitudes


def make_model_exchange_fixture(fixture: TrialFixture) -> TrialFixture | None:
    """Return a fixture of the same FMU as Model Exchange; None if it has no such interface in the same binary."""
    description = fixture.description
    interfaces = ("ModelExchange", "CoSimulation")
    if not set(interfaces) <= set(description.interfaces) or len(set(map(description.identifier, interfaces))) > 1:
        return None
    model_exchange = TrialFixture(
        fixture.library,
        "ModelExchange",
        fixture.folder,
        effort=fixture.effort,
        given_step=fixture.step,  # both at the same points
        step_count=fixture.affordable_step_count,
    )
    model_exchange.shared.parameter_sets = fixture.shared.parameter_sets
    return model_exchange


def choose_excited_input_values(fixture: TrialFixture) -> dict[DescribedVariable, Value]:
    """Return every input away from its start value."""
    return {variable: fixture.choose_near_start(variable, 0.1) for variable in fixture.inputs}


@register_trial("steps of other sizes", "steps.variable", "steps.parts", interfaces=CO_SIMULATION)
def try_variable_step_sizes(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check one step against several, of equal and different sizes, over the same time."""
    if not fixture.flag("canHandleVariableCommunicationStepSize"):
        return
    variables = list_continuous_variables(fixture)
    cycles = MAX_CYCLES if fixture.total_steps >= 4 * MAX_CYCLES else 1
    change_time, runs = fixture.start + 2 * cycles * fixture.step, []
    step_patterns = {"": [1.0] * 4, "half as many steps": [2.0] * 2, "steps of changing sizes": [0.5, 1.5, 0.25, 1.75]}
    if cycles % 2 == 0:  # so that one of them ends where inputs change
        step_patterns["a quarter as many steps"] = [4.0]
    for step_sizes in (cycles * pattern for pattern in step_patterns.values()):
        try:
            runs.append(_run_step_pattern(fixture, variables, step_sizes, change_time))
        except RefusedCallError as error:
            message = f"{error}; canHandleVariableCommunicationStepSize is true"
            yield RuleViolation("steps.variable", message, fixture.interface)
            return
    for other_run, pattern_name in zip(runs[1:], [*step_patterns][1:], strict=True):
        worst = find_largest_final_difference(fixture, runs[0], other_run, variables)
        if (
            worst
            and worst[0] > permitted_relative_difference(fixture)
            and (model_exchange := make_model_exchange_fixture(fixture))
        ):
            with model_exchange.open_instance() as instance:
                run_with_excitation(model_exchange, instance, variables, steps=4)
                worst = find_largest_final_difference(
                    fixture, runs[0], other_run, variables, _term_magnitudes(model_exchange, instance, variables)
                )
        if worst and worst[0] > permitted_relative_difference(fixture):
            message = f"{pattern_name} over the same time move it by {worst[0]:.2g} of its size"
            message += f"; the tolerance is {fixture.tolerance or 1e-4:g}"
            yield RuleViolation("steps.parts", message, fixture.format_finding_location(worst[1]))
            return


def _run_step_pattern(
    fixture: TrialFixture,
    variables: Sequence[DescribedVariable],
    step_sizes: Sequence[float],
    change_time: float,
) -> RecordedTrialRun:
    """Return a run of steps of these sizes, in communication steps, with inputs that change at a time.

    Raises:
        RefusedCallError: If a step is refused.
    """
    with fixture.open_instance() as instance:
        fixture.initialize(instance, initial_values=choose_varied_input_values(fixture, 0))
        run, time = RecordedTrialRun([fixture.start], [instance.get(variables)]), fixture.start
        for step_size in step_sizes:
            if abs(time - change_time) < 0.1 * fixture.step:  # inputs of a step must act from its beginning
                instance.set(choose_varied_input_values(fixture, 1))
            do_communication_step(fixture, instance, time, step_size * fixture.step)
            time += step_size * fixture.step
            run.values.append(instance.get(variables))
    return run


@register_trial("Co-Simulation against Model Exchange", "steps.exchange", interfaces=CO_SIMULATION, weight=2.0)
def try_motion_against_model_exchange(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that the FMU moves as its Model Exchange does, over the whole experiment with moving inputs."""
    model_exchange, variables = make_model_exchange_fixture(fixture), list_continuous_variables(fixture)
    if model_exchange is None or not variables:
        fixture.mark_inapplicable(
            "steps.exchange", "it is not both Co-Simulation and Model Exchange, or has nothing to compare"
        )
        return
    # Numbers only: what is chosen from a list may be the method of the steps, of which Model Exchange has none.
    float_parameters: dict[DescribedVariable, Value] = {
        variable: value for variable, value in choose_excited_run_values(fixture, 1).items() if isinstance(value, float)
    }
    fixture.shared.parameter_sets[PHYSICAL_SET_NUMBER] = float_parameters
    for number in (0, PHYSICAL_SET_NUMBER):
        observations = list(_compare_parameter_set(fixture, model_exchange, variables, number))
        yield from observations
        if observations:
            return


def _compare_parameter_set(
    fixture: TrialFixture, model_exchange: TrialFixture, variables: Sequence[DescribedVariable], set_number: int
) -> Iterator[RuleViolation]:
    """Compare both with one set of parameters, and with Model Exchange from slightly different starts.

    Co-Simulation may handle a time event at a communication point at the end of the step, or as the next one begins,
    with the inputs that were set in between (a controller that samples there): it has to agree with one of the two.
    """
    recorded_variables = [*variables, *_list_discrete_variables(fixture)]
    with fixture.open_instance() as instance:
        try:
            own_run = run_with_excitation(fixture, instance, recorded_variables, number=set_number)
        except (TrialTimeBudgetError, TerminateSimulationError):
            raise
        except (RefusedCallError, SkippedTrialError):
            return  # inputs and parameters that do not go together
    violations: list[RuleViolation] = []
    for defer_events in (False, True):
        with model_exchange.open_instance() as instance:
            try:
                reference_run = run_with_excitation(
                    model_exchange, instance, recorded_variables,
                    number=set_number, tolerance=1e-9, defer_events=defer_events,
                )  # fmt: skip
                term_magnitudes = _term_magnitudes(model_exchange, instance, variables)
                disturbed_run = _run_from_disturbed_start(
                    model_exchange, recorded_variables, set_number, defer_events=defer_events
                )
            except TrialTimeBudgetError:
                raise
            except (RefusedCallError, SkippedTrialError) as error:
                fixture.mark_inapplicable("steps.exchange", f"as Model Exchange it does not come to the end: {error}")
                return
        runs = (own_run, reference_run, disturbed_run)
        differences = list(_find_differences(fixture, runs, variables, term_magnitudes))
        if not differences:
            return
        violations = violations or differences
        if not _has_time_event_at_point(fixture, reference_run):
            break
    yield from violations


def _has_time_event_at_point(fixture: TrialFixture, run: RecordedTrialRun) -> bool:
    """Return whether a time event of a Model Exchange run fell on a communication point."""
    steps = [(event.time - fixture.start) / fixture.step for event in run.recorded_events if event.cause == "time"]
    return any(abs(step - round(step)) < 1e-6 for step in steps)


def _find_differences(
    fixture: TrialFixture,
    runs: tuple[RecordedTrialRun, RecordedTrialRun, RecordedTrialRun | None],
    variables: Sequence[DescribedVariable],
    term_magnitudes: Sequence[float],
) -> Iterator[RuleViolation]:
    """Yield where Co-Simulation leaves Model Exchange: a continuous variable, or else a discrete one."""
    deviation = find_run_deviation(fixture, runs, variables, term_magnitudes)
    if deviation:
        variable, point, gap = deviation
        message = f"at t = {runs[0].times[point]:.6g} it differs by {gap:.2g} of its size from the same FMU as "
        message += f"Model Exchange; the tolerance is {fixture.tolerance or 1e-4:g}"
        yield RuleViolation("steps.exchange", message, fixture.format_finding_location(variable))
        return
    yield from _find_discrete_difference(fixture, runs, len(variables), _list_discrete_variables(fixture))


def _run_from_disturbed_start(
    model_exchange: TrialFixture,
    recorded_variables: Sequence[DescribedVariable],
    set_number: int,
    *,
    defer_events: bool,
) -> RecordedTrialRun | None:
    """Return the run from start values of states that are a little different; None if they cannot be set."""
    initial_values: dict[DescribedVariable, Value] = {}
    parameters = choose_excited_run_values(model_exchange, set_number)
    for state in model_exchange.states:
        start = parameters.get(state, model_exchange.start_value(state))
        if state.initial == "exact" and isinstance(start, float):
            disturbed_start = start + START_DISTURBANCE * model_exchange.typical_magnitude(state)
            initial_values[state] = model_exchange.clip_to_bounds(state, disturbed_start)
    if not initial_values:
        return None
    with model_exchange.open_instance() as instance:
        try:
            return run_with_excitation(
                model_exchange,
                instance,
                recorded_variables,
                number=set_number,
                tolerance=1e-9,
                initial_values=initial_values,
                defer_events=defer_events,
            )
        except TrialTimeBudgetError:
            raise
        except (RefusedCallError, SkippedTrialError):
            return None


def _find_discrete_difference(
    fixture: TrialFixture,
    runs: tuple[RecordedTrialRun, RecordedTrialRun, RecordedTrialRun | None],
    first_column: int,
    discrete_variables: Sequence[DescribedVariable],
) -> Iterator[RuleViolation]:
    """Yield where discrete variables differ, away from events, which may come just before or after a point."""
    own_run, reference_run, disturbed_run = runs
    discrete_rows = [[values[first_column:] for values in run.values] for run in (own_run, reference_run)]
    for point in range(1, min(map(len, discrete_rows)) - 1):
        if any(
            not all(map(are_identical_values, rows[point], rows[neighbour]))
            for rows in discrete_rows
            for neighbour in (point - 1, point + 1)
        ):
            continue
        undisturbed, disturbed = reference_run.values[point], disturbed_run.values[point] if disturbed_run else ()
        if disturbed_run and not all(map(are_identical_values, disturbed[first_column:], undisturbed[first_column:])):
            return  # from here on it depends on round-off how often something has happened
        for variable, own_value, reference_value in zip(
            discrete_variables, discrete_rows[0][point], discrete_rows[1][point], strict=True
        ):
            if not values_agree(fixture, variable, own_value, reference_value):
                message = (
                    f"at t = {own_run.times[point]:.6g} it is {own_value!r}, of the same unit as Model "
                    f"Exchange {reference_value!r}"
                )
                yield RuleViolation("steps.exchange", message, fixture.format_finding_location(variable))
                return


@register_trial(
    "impossible steps",
    "steps.size",
    "steps.stop",
    "log.silent",
    interfaces=CO_SIMULATION,
    crash_rule="steps.size",
    call_time_limit=5.0,
    runs_last=True,
)
def try_impossible_steps(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that steps are refused that are negative, zero, NaN, or beyond the stop time; an error has its message."""
    for step_size in (-fixture.step, 0.0, math.nan):
        with fixture.open_instance() as instance:
            fixture.initialize(instance)
            message_count = len(instance.messages)
            status = instance.do_step(fixture.start, step_size).status
            if status in {OK, WARNING}:
                yield RuleViolation("steps.size", f"a step of {step_size:g} s returns OK", fixture.interface)
                break
            if status == ERROR and len(instance.messages) == message_count:
                message = f"a step of {step_size:g} s returns Error, without a message"
                yield RuleViolation("log.silent", message, fixture.interface)
                break
    with fixture.open_instance() as instance:
        enter_step_mode(fixture, instance, fixture.start + 2 * fixture.step)
        run_co_simulation(fixture, instance, (), steps=2, include_start=False)
        if instance.do_step(fixture.start + 2 * fixture.step, fixture.step).status in {OK, WARNING}:
            yield RuleViolation("steps.stop", "a step beyond the given stop time returns OK", fixture.interface)


MAX_STEPS_TO_STOP = 200
"""Most steps up to a given stop time."""


@register_trial("steps to the given stop time", "steps.stop", "life.reset", interfaces=CO_SIMULATION)
def try_steps_to_stop_time(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that steps, added up with round-off, reach the stop time; and that a reset forgets it."""
    step_count = min(fixture.affordable_step_count, MAX_STEPS_TO_STOP)
    stop_time = fixture.start + step_count * fixture.step
    with fixture.open_instance() as instance:
        enter_step_mode(fixture, instance, stop_time)
        time = fixture.start
        for _ in range(step_count):
            if instance.do_step(time, fixture.step).status not in {OK, WARNING}:
                if time + fixture.step > stop_time - 1e-6 * fixture.step:
                    message = (
                        f"with the stop time {stop_time:.17g}, it refuses a step from {time:.17g} of "
                        f"{fixture.step:.17g}"
                    )
                    yield RuleViolation("steps.stop", f"{message}: there is no room for round-off", fixture.interface)
                return
            time += fixture.step
        instance.reset()
        try:
            enter_step_mode(fixture, instance, None)
            for step_index in range(step_count + 1):
                do_communication_step(fixture, instance, fixture.start + step_index * fixture.step, fixture.step)
        except RefusedCallError as error:
            message = f"without a stop time after a reset, it does not go beyond the stop time before: {error}"
            yield RuleViolation("life.reset", message, fixture.interface)


def enter_step_mode(fixture: TrialFixture, instance: FmuInstance, stop_time: float | None) -> None:
    """Enter Step Mode, with or without a stop time, in s."""
    instance.enter_initialization(fixture.start, stop_time, fixture.tolerance)
    instance.exit_initialization()
    if instance.mode == "Event Mode":
        fixture.settle_events(instance)
        instance.leave_event_mode()


@register_trial("what steps say of themselves", "steps.last", "steps.early", interfaces=CO_SIMULATION)
def try_early_return(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check what is reported of steps: the time reached, the status, and early return only where it is allowed."""
    if fixture.description.version == 2:
        yield from _check_reported_status(fixture)
        return
    with fixture.open_instance(allow_early_return=False) as instance:
        fixture.initialize(instance)
        for step_index in range(3):
            result = do_communication_step(fixture, instance, fixture.start + step_index * fixture.step, fixture.step)
            end_time = fixture.start + (step_index + 1) * fixture.step
            if result.returned_early:
                yield RuleViolation(
                    "steps.early", "it returns early though the importer did not allow it", fixture.interface
                )
                return
            if not math.isclose(result.last_successful_time, end_time, rel_tol=1e-9, abs_tol=1e-9 * fixture.step):
                yield RuleViolation(
                    "steps.last",
                    f"lastSuccessfulTime is {result.last_successful_time!r} after a step to {end_time!r}",
                    fixture.interface,
                )
                return


def _check_reported_status(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check FMI 2's functions that report the last step; what an FMU cannot report it discards, which is no fault."""
    with fixture.open_instance() as instance:
        fixture.initialize(instance)
        for step_index in range(3):
            result = do_communication_step(fixture, instance, fixture.start + step_index * fixture.step, fixture.step)
            end_time = fixture.start + (step_index + 1) * fixture.step
            status, last_time = instance.get_step_report("Real", LAST_SUCCESSFUL_TIME_KIND)
            if status == OK and not math.isclose(last_time, end_time, rel_tol=1e-9, abs_tol=1e-9 * fixture.step):
                message = f"fmi2LastSuccessfulTime is {last_time!r} after a step to {end_time!r}"
                yield RuleViolation("steps.last", message, fixture.interface)
                return
            status, step_status = instance.get_step_report("", STEP_STATUS_KIND)
            if status == OK and step_status != result.status:
                message = (
                    f"fmi2DoStepStatus is {format_fmi_status(int(step_status))} after a step that returned "
                    f"{format_fmi_status(result.status)}"
                )
                yield RuleViolation("steps.last", message, fixture.interface)
                return
            status, wants_to_end = instance.get_step_report("Boolean", TERMINATED_STATUS_KIND)
            if status == OK and wants_to_end and result.status == OK:
                message = "fmi2Terminated is true after a step that returned OK"
                yield RuleViolation("steps.last", message, fixture.interface)
                return


@register_trial("steps from a wrong point", "steps.point", interfaces=CO_SIMULATION)
def try_wrong_communication_point(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that a communication point other than the FMU's own is refused."""
    with fixture.open_instance() as instance:
        fixture.initialize(instance)
        do_communication_step(fixture, instance, fixture.start, fixture.step)
        if instance.do_step(fixture.start + 5 * fixture.step, fixture.step).status in {OK, WARNING}:
            yield RuleViolation(
                "steps.point",
                "a step that begins four steps ahead of where it stands returns OK",
                fixture.interface,
            )


@register_trial("changing inputs and tunable parameters between steps", "value.set", interfaces=CO_SIMULATION)
def try_values_set_between_steps(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that values set in Step Mode are read after the next step."""
    variables = [*fixture.inputs, *fixture.select_scalars("parameter", variability="tunable")]
    has_time = fixture.make_time_remaining_check()
    with fixture.open_instance() as instance:
        fixture.initialize(instance)
        do_communication_step(fixture, instance, fixture.start, fixture.step)
        for index, variable in enumerate(variables):
            if not has_time() or index + 2 > max(fixture.affordable_step_count, 2):
                return
            value = fixture.choose_near_start(variable, 0.03)
            if instance.try_set(variable, value) not in {OK, WARNING}:
                if variable.causality == "input":
                    message = f"setting it to {value:.6g} is refused between steps"
                    yield RuleViolation("value.set", message, fixture.format_finding_location(variable))
                continue
            do_communication_step(fixture, instance, fixture.start + (index + 1) * fixture.step, fixture.step)
            read_value = instance.get([variable])[0]
            if isinstance(read_value, float) and not math.isclose(value, read_value, rel_tol=1e-13, abs_tol=1e-300):
                message = f"set to {value!r} between two steps, read as {read_value!r} after the second"
                yield RuleViolation("value.set", message, fixture.format_finding_location(variable))


@register_trial("steps with event mode", "flags.true", interfaces=CO_SIMULATION)
def try_co_simulation_event_mode(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check hasEventMode (FMI 3): instances can be made with it, and Event Mode entered between steps."""
    if fixture.description.version != 3 or not fixture.flag("hasEventMode"):
        return
    try:
        with fixture.open_instance(event_mode=True) as instance:
            fixture.initialize(instance)
            do_communication_step(fixture, instance, fixture.start, fixture.step)
            instance.enter_event_mode()
            fixture.settle_events(instance)
            instance.leave_event_mode()
            do_communication_step(fixture, instance, fixture.start + fixture.step, fixture.step)
    except InstantiationError:
        yield RuleViolation(
            "flags.true", "hasEventMode is true, but no instance is made that uses it", fixture.interface
        )
    except RefusedCallError as error:
        yield RuleViolation("flags.true", f"hasEventMode is true, but {error}", fixture.interface)


STEPS_BEHIND_EVENT = 3
"""Communication steps behind the first event after which states are compared."""


@register_trial("steps with event mode that return early", "steps.early", interfaces=CO_SIMULATION)
def try_early_return_at_events(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that steps that end before their end say earlyReturn (FMI 3), up to the stop time: events come late.

    Behind the first event the motion is that of steps without Event Mode.
    """
    if fixture.description.version != 3 or not fixture.flag("hasEventMode"):
        return
    has_time, time, states = fixture.make_time_remaining_check(), fixture.start, fixture.description.states
    values_before_events: list[list[Value]] = []
    first_event_step, runs = (
        0,
        (RecordedTrialRun(), RecordedTrialRun()),
    )  # at a point, before and behind an event that falls on it
    with (
        suppress(RefusedCallError, SkippedTrialError, InstantiationError),
        fixture.open_instance(event_mode=True, allow_early_return=True) as instance,
    ):
        fixture.initialize(instance)
        for step_index in range(fixture.affordable_step_count):
            end_time = fixture.start + (step_index + 1) * fixture.step
            for _ in range(MAX_SIMULTANEOUS_EVENTS):
                result = do_communication_step(
                    fixture, instance, time, end_time - time,
                    lambda: values_before_events.append(instance.get(states)),
                )  # fmt: skip
                if not result.returned_early and time <= result.last_successful_time < end_time - 1e-9 * fixture.step:
                    message = (
                        f"a step to {end_time:.9g} ends at {result.last_successful_time:.9g}, and earlyReturn is false"
                    )
                    yield RuleViolation("steps.early", message, fixture.interface)
                    return
                if result.returned_early or result.event_needed:
                    first_event_step = first_event_step or step_index + 1
                time = result.last_successful_time if result.returned_early else end_time
                if not result.returned_early or time >= end_time - 1e-9 * fixture.step:
                    break
            runs[0].values.append(values_before_events[-1])
            runs[1].values.append(instance.get(states))
            if not has_time():
                return
    if first_event_step and len(runs[0].values) > first_event_step:
        yield from _compare_with_run_without_event_mode(fixture, runs, first_event_step + STEPS_BEHIND_EVENT)


def _compare_with_run_without_event_mode(
    fixture: TrialFixture, runs: Sequence[RecordedTrialRun], steps: int
) -> Iterator[RuleViolation]:
    """Compare states some steps behind an event with those of a run in which the FMU handles the event itself.

    An event at a communication point it may handle as the step ends, or as the next one begins.
    """
    states, step_count = fixture.description.states, len(runs[0].values[:steps])
    with suppress(RefusedCallError, SkippedTrialError), fixture.open_instance() as instance:
        fixture.initialize(instance)
        plain_run = run_co_simulation(fixture, instance, states, steps=step_count, include_start=False)
        differences = [
            find_largest_final_difference(fixture, RecordedTrialRun([], run.values[:steps]), plain_run, states)
            for run in runs
        ]
        worst = min((each for each in differences if each), key=lambda each: each[0], default=None)
        if worst and worst[0] > permitted_relative_difference(fixture):
            message = f"with Event Mode and early return it is {worst[0]:.2g} of its size elsewhere behind an event"
            yield RuleViolation("steps.early", message, fixture.format_finding_location(worst[1]))
