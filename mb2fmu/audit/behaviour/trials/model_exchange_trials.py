"""Model Exchange: states, derivatives, purity of the getters, completed steps."""

from __future__ import annotations

import ctypes as c
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from mb2fmu.audit.behaviour.fixture.shared_trial_results import RecordedTrialRun
from mb2fmu.audit.behaviour.fixture.trial_fixture import InstantiationError, TrialFixture, are_identical_values
from mb2fmu.audit.behaviour.fixture.trial_registry import register_trial
from mb2fmu.audit.behaviour.fixture.trial_run_comparison import (
    find_largest_final_difference,
    permitted_relative_difference,
)
from mb2fmu.audit.behaviour.fixture.trial_simulation_runs import (
    do_communication_step,
    find_first_run_difference,
    start_model_exchange_integration,
)
from mb2fmu.audit.behaviour.instance.fmi_c_interface import OK, WARNING, RefusedCallError, Value, format_fmi_status
from mb2fmu.audit.behaviour.instance.fmu_instance import FmuInstance
from mb2fmu.audit.behaviour.process.trial_time_budget import SkippedTrialError, TrialTimeBudgetError
from mb2fmu.audit.description.description_records import DescribedVariable
from mb2fmu.audit.rules_and_findings import RuleViolation

MODEL_EXCHANGE = ("ModelExchange",)
RELATIVE_SPREADS = (0.3, 0.1, 0.03, 0.005)
MOTION_POINT_SHARE = 0.5
"""Part of the points that are near the motion instead of near the start."""

MAX_MOTION_POINTS = 48
"""Points of the motion that are kept."""
MOTION_TIME_SHARE = 0.3
"""Part of a trial's time that these points may take."""
MOTION_STOPS = (0.31, 0.63, 0.97)
"""Fractions of a motion at which an instance is evaluated between events: uneven, since events occur at even ones."""
ROUND_OFF_TOLERANCE = 1e-12
_COMPLETED_STEP_TOLERANCE = 1e-8
_STEPS_BEHIND_DIFFERENCE = 4
"""Communication steps behind the first bits that differ: a difference that grows is visible then, and chaos is not."""
_DEFAULT_TOLERANCE = 1e-6
"""Of FMUs that name none."""
_TIGHTER_TOLERANCE_FACTOR = 1e-3
"""Factor of the tolerance for a second run where derivatives seem wrong."""


class FmuEvaluationPoint(NamedTuple):
    """A point for evaluations: time, states, inputs."""

    time: float
    states: tuple[float, ...]
    inputs: tuple[float, ...]


def set_fmu_to_evaluation_point(fixture: TrialFixture, instance: FmuInstance, point: FmuEvaluationPoint) -> None:
    """Move to a point, in Continuous-Time Mode.

    Raises:
        RefusedCallError: If the FMU cannot be there.
    """
    instance.set_time(point.time)
    if point.states:
        instance.set_states(point.states)
    for variable, value in zip(fixture.inputs, point.inputs, strict=True):
        instance.set({variable: value})


def set_changed_point_values(
    fixture: TrialFixture, instance: FmuInstance, here: FmuEvaluationPoint, there: FmuEvaluationPoint
) -> None:
    """Move from one point to another by setting what differs, in Continuous-Time Mode.

    Raises:
        RefusedCallError: If the FMU cannot be there.
    """
    if there.time != here.time:
        instance.set_time(there.time)
    if there.states != here.states:
        instance.set_states(there.states)
    for variable, old_value, value in zip(fixture.inputs, here.inputs, there.inputs, strict=True):
        if value != old_value:
            instance.set({variable: value})


def choose_random_fmu_point(
    fixture: TrialFixture, instance: FmuInstance, motion_share: float | None = None
) -> FmuEvaluationPoint:
    """Return a random point near the start, or near the motion, at which the FMU can be evaluated and is finite.

    Args:
        fixture: Of the FMU.
        instance: In Continuous-Time Mode.
        motion_share: Of the motion, from 0 to 1; None: near the start or, by chance, anywhere on it.

    Raises:
        SkippedTrialError: If none is found.
    """
    states_there = instance.get_states(fixture.n_states) if fixture.n_states else []
    nominals = instance.get_vector("GetNominalsOfContinuousStates", fixture.n_states) if fixture.n_states else []
    motion_states = _integrate_motion(fixture)
    if motion_share is not None and motion_states:
        states_there = list(motion_states[min(int(motion_share * len(motion_states)), len(motion_states) - 1)])
    for attempt, spread in enumerate(RELATIVE_SPREADS):
        if motion_states and motion_share is None and attempt == 0 and fixture.random.random() < MOTION_POINT_SHARE:
            states_there = list(fixture.random.choice(motion_states))
        states = []
        for index, (value, nominal) in enumerate(zip(states_there, nominals, strict=True)):
            variable = fixture.states[index] if len(fixture.states) == fixture.n_states else None
            magnitude = max(abs(value), fixture.typical_magnitude(variable) if variable else 0.0) or abs(nominal) or 1.0
            changed = value + magnitude * spread * fixture.random.uniform(0.2, 1.0) * fixture.random.choice((-1.0, 1.0))
            states.append(fixture.clip_to_bounds(variable, changed) if variable else changed)
        inputs = tuple(fixture.choose_near_start(scalar, spread) for scalar in fixture.inputs)
        time = fixture.start + fixture.step * fixture.random.uniform(0.2, 1.0)
        if motion_share is not None:  # up to the first time event, beyond which it may not be set here
            latest_time = (
                fixture.stop if fixture.first_time_event is None else min(fixture.stop, fixture.first_time_event)
            )
            time = max(time, fixture.start + fixture.random.uniform(0.3, 0.95) * (latest_time - fixture.start))
        point = FmuEvaluationPoint(time, tuple(states), inputs)
        try:
            set_fmu_to_evaluation_point(fixture, instance, point)
            derivatives = instance.get_derivatives(fixture.n_states) if fixture.n_states else []
            values = instance.get(fixture.float_scalars)
        except RefusedCallError:
            continue
        if all(map(math.isfinite, derivatives)) and all(
            isinstance(scalar, float) and math.isfinite(scalar) for scalar in values
        ):
            return point
    raise SkippedTrialError("no point near the start was found at which it can be evaluated")


def list_fmu_motion_points(fixture: TrialFixture) -> list[FmuEvaluationPoint]:
    """Return points of the motion, evenly spread over the experiment as far as it ran; with start inputs."""
    inputs = tuple(
        start if isinstance(start := fixture.start_value(input_variable), float) else 0.0
        for input_variable in fixture.inputs
    )
    time = fixture.start + 0.5 * fixture.step
    return [FmuEvaluationPoint(time, tuple(states), inputs) for states in _integrate_motion(fixture)]


def iterate_points_between_events(
    fixture: TrialFixture, instance: FmuInstance
) -> Iterator[tuple[FmuEvaluationPoint, float]]:
    """Yield an instance at points between the events of a motion: other modes may hold there.

    Args:
        fixture: Of the FMU.
        instance: In the state Instantiated. Between two points it may be placed anywhere.

    Yields:
        Where it stands, and the next time event (infinite if none is announced), which it must not be placed behind.

    Raises:
        RefusedCallError: If it cannot be led there.
        SkippedTrialError: If it ends, or takes too long.
    """
    input_values = {variable: fixture.choose_near_start(variable, 0.1) for variable in fixture.inputs}
    integration = start_model_exchange_integration(fixture, instance, 1e-4, dict(input_values))
    duration = fixture.affordable_step_count * fixture.step
    for share in MOTION_STOPS:
        integration.advance(fixture.start + share * duration)
        point = FmuEvaluationPoint(integration.time, tuple(integration.states), tuple(input_values.values()))
        yield point, integration.next_event_time
        set_fmu_to_evaluation_point(fixture, instance, point)


def _integrate_motion(fixture: TrialFixture) -> list[list[float]]:
    """Return states along the motion, with the start values of everything."""
    if fixture.shared.motion_states is None:
        motion_states: list[list[float]] = []
        fixture.shared.motion_states = motion_states
        if not fixture.n_states or fixture.interface != "ModelExchange":
            return motion_states
        # A stiff FMU, or one whose states are not what they seem, may take more time than a trial has: the points that
        # were passed so far are enough.
        with fixture.library.trial_budget.limit_to_time_share(MOTION_TIME_SHARE), fixture.open_instance() as instance:
            try:
                integration = start_model_exchange_integration(fixture, instance, 1e-4)
                for index in range(MAX_MOTION_POINTS):
                    integration.advance(
                        fixture.start + (index + 1) * fixture.affordable_step_count / MAX_MOTION_POINTS * fixture.step
                    )
                    motion_states.append(list(integration.states))
            except TrialTimeBudgetError:
                raise
            except (RefusedCallError, SkippedTrialError):
                pass
    return fixture.shared.motion_states


@register_trial("reading before the start and after the end", "exchange.modes", interfaces=MODEL_EXCHANGE)
def try_reading_outside_run(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check states, derivatives, nominals and indicators in Initialization Mode and after termination."""
    vector_sizes = {
        "GetContinuousStates": fixture.n_states,
        "GetNominalsOfContinuousStates": fixture.n_states,
        ("GetDerivatives" if fixture.description.version == 2 else "GetContinuousStateDerivatives"): fixture.n_states,
        "GetEventIndicators": fixture.n_indicators,
    }
    if not any(vector_sizes.values()):
        fixture.mark_inapplicable("exchange.modes", "it has neither continuous states nor event indicators")
        return
    for after_end in (False, True):
        for function, size in vector_sizes.items():
            with fixture.open_instance() as instance:  # what refuses one call may refuse all that follow
                if after_end:
                    fixture.initialize(instance)
                    instance.terminate()
                else:
                    instance.enter_initialization(fixture.start, None, fixture.tolerance)
                try:
                    if size:
                        instance.get_vector(function, size)
                except RefusedCallError as error:
                    yield RuleViolation("exchange.modes", str(error), fixture.interface)


@register_trial(
    "setting and reading states",
    "exchange.states",
    "exchange.time",
    "exchange.nominals",
    "exchange.count",
    interfaces=MODEL_EXCHANGE,
)
def try_setting_states(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check number and order of the states, and that they can be set."""
    size = fixture.n_states
    with fixture.open_instance() as instance:
        if fixture.description.version == 3:
            for counter, declared in (
                ("GetNumberOfContinuousStates", size),
                ("GetNumberOfEventIndicators", fixture.n_indicators),
            ):
                count = instance.get_count(counter)
                if count != declared:
                    yield RuleViolation(
                        "exchange.count",
                        f"fmi3{counter} returns {count}, the description {declared}",
                        fixture.interface,
                    )
                    return
        fixture.initialize(instance)
        nominals = instance.get_vector("GetNominalsOfContinuousStates", size) if size else []
        invalid = [nominal for nominal in nominals if not (nominal > 0.0 and math.isfinite(nominal))]
        if invalid:
            yield RuleViolation("exchange.nominals", f"a nominal value is {invalid[0]!r}", fixture.interface)
        point = choose_random_fmu_point(fixture, instance)
        set_fmu_to_evaluation_point(fixture, instance, point)
        read_states = instance.get_states(size) if size else []
        if read_states != list(point.states):
            yield RuleViolation(
                "exchange.states", "the continuous states read are not those that were set", fixture.interface
            )
        independent = fixture.description.independent
        if independent in fixture.float_scalar_set and independent is not None:
            read_time = instance.get([independent])[0]
            if read_time != point.time:
                yield RuleViolation(
                    "exchange.time",
                    f'set to {point.time!r}, "{independent.name}" is {read_time!r}',
                    fixture.interface,
                )


@register_trial("comparing derivatives with slopes", "derivative.state", "derivative.value", interfaces=MODEL_EXCHANGE)
def try_derivative_vector(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that each ``derivative=`` refers to its state: both vectors against the variables, in order."""
    derivative_variables = [
        item.variable for item in fixture.description.model_structure_entries("Derivatives") if item.variable
    ]
    if (
        len(fixture.states) != len(derivative_variables)
        or not derivative_variables
        or any(item not in fixture.float_scalars for item in derivative_variables)
    ):
        return
    wrong: dict[tuple[str, str], str] = {}
    for instance, point in _iterate_evaluation_points(fixture):
        vector = instance.get_derivatives(len(derivative_variables))
        state_values = instance.get(fixture.states)
        for index, (variable, state, value) in enumerate(
            zip(derivative_variables, fixture.states, state_values, strict=True)
        ):
            if not _agree(value, point.states[index]):
                owner_name = next(
                    (
                        item.name
                        for other_index, item in enumerate(fixture.states)
                        if _agree(value, point.states[other_index])
                    ),
                    None,
                )
                reference = variable.written.get("derivative")
                message = f'derivative={reference} makes "{state.name}" state {index + 1}, which another variable is'
                if owner_name:
                    own_derivative = derivative_variables[[item.name for item in fixture.states].index(owner_name)]
                    message += f': "{state.name}" is the state whose slope is "{own_derivative.name}"'
                wrong[variable.name, "derivative.state"] = message
        for variable, vector_value, value in zip(
            derivative_variables, vector, instance.get(derivative_variables), strict=True
        ):
            if not _agree(value, vector_value):
                message = f"reading it gives {value!r}, the vector of derivatives {vector_value!r}"
                wrong[variable.name, "derivative.value"] = message
    for (name, rule), message in wrong.items():
        yield RuleViolation(rule, message, f'{fixture.interface}, "{name}"')


def _iterate_evaluation_points(fixture: TrialFixture) -> Iterator[tuple[FmuInstance, FmuEvaluationPoint]]:
    """Yield instances in Continuous-Time Mode at points: near the start, and along a motion, between its events."""
    with fixture.open_instance() as instance:
        fixture.initialize(instance)
        for _ in range(3):
            point = choose_random_fmu_point(fixture, instance)
            set_fmu_to_evaluation_point(fixture, instance, point)
            yield instance, point
        for point in list_fmu_motion_points(fixture):
            with suppress(RefusedCallError):
                set_fmu_to_evaluation_point(fixture, instance, point)
                yield instance, point
    with fixture.open_instance() as instance, suppress(RefusedCallError, SkippedTrialError):
        for point, _ in iterate_points_between_events(fixture, instance):
            yield instance, point


@register_trial("comparing event indicators with their variables", "derivative.value", interfaces=MODEL_EXCHANGE)
def try_event_indicator_variables(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check FMI 3's variables of event indicators against the vector, in order."""
    indicator_variables = [
        item.variable for item in fixture.description.model_structure_entries("EventIndicators") if item.variable
    ]
    if (
        not indicator_variables
        or len(indicator_variables) != fixture.n_indicators
        or any(item not in fixture.float_scalar_set for item in indicator_variables)
    ):
        return
    for instance, _ in _iterate_evaluation_points(fixture):
        vector = instance.get_vector("GetEventIndicators", len(indicator_variables))
        for variable, vector_value, value in zip(
            indicator_variables, vector, instance.get(indicator_variables), strict=True
        ):
            if not _agree(value, vector_value):
                message = f"reading it gives {value!r}, the vector of event indicators {vector_value!r}"
                yield RuleViolation("derivative.value", message, fixture.format_finding_location(variable))
                return


def _agree(variable_value: Value, vector_value: float) -> bool:
    """Return whether a value read as a variable is the number of the vector, up to round-off."""
    return isinstance(variable_value, float) and (
        are_identical_values(variable_value, vector_value)
        or math.isclose(variable_value, vector_value, rel_tol=ROUND_OFF_TOLERANCE)
    )


@register_trial("evaluating twice", "exchange.pure", interfaces=MODEL_EXCHANGE)
def try_repeated_evaluation(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that evaluations between events do not depend on earlier evaluations."""
    with fixture.open_instance() as instance:
        fixture.initialize(instance)
        first_point, second_point = (
            choose_random_fmu_point(fixture, instance),
            choose_random_fmu_point(fixture, instance),
        )
        yield from _compare_repeated_points(
            fixture, instance, (first_point, second_point, first_point, first_point), ((0, 2), (0, 3))
        )
    with fixture.open_instance() as instance, suppress(RefusedCallError, SkippedTrialError):
        for point, next_event_time in iterate_points_between_events(fixture, instance):
            changed_point = FmuEvaluationPoint(
                point.time, tuple(1.1 * state + 0.01 for state in point.states), point.inputs
            )
            later_point = FmuEvaluationPoint(
                point.time + 0.1 * min(fixture.step, next_event_time - point.time), point.states, point.inputs
            )
            yield from _compare_repeated_points(
                fixture, instance, (point, changed_point, later_point, changed_point, point), ((1, 3), (0, 4))
            )


def _compare_repeated_points(
    fixture: TrialFixture, instance: FmuInstance, points: Sequence[FmuEvaluationPoint], pairs: Sequence[tuple[int, int]]
) -> Iterator[RuleViolation]:
    """Yield the first value that differs at the same point; points are given in order, with equal ones marked."""
    readings: list[list[Value]] = []
    for point in points:
        set_fmu_to_evaluation_point(fixture, instance, point)
        readings.append(
            [
                *(instance.get_derivatives(fixture.n_states) if fixture.n_states else []),
                *instance.get(fixture.float_scalars),
            ]
        )
    for first, second in (
        pair for first_row, second_row in pairs for pair in zip(readings[first_row], readings[second_row], strict=True)
    ):
        if (
            isinstance(first, float)
            and isinstance(second, float)
            and abs(first - second) > 1e-9 * max(abs(first), abs(second), 1e-3)
        ):
            message = f"evaluated at the same point again it returns {second!r} instead of {first!r}"
            yield RuleViolation("exchange.pure", message, fixture.interface)
            return


@register_trial("completing steps", "exchange.completed", interfaces=MODEL_EXCHANGE)
def try_completing_step(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that a completed step does not change the states."""
    n_states = fixture.n_states
    if not n_states:
        fixture.mark_inapplicable("exchange.completed", "it has no continuous states")
        return
    with fixture.open_instance() as instance:
        fixture.initialize(instance)
        set_fmu_to_evaluation_point(fixture, instance, choose_random_fmu_point(fixture, instance))
        states_before = instance.get_states(n_states)
        instance.complete_step()
        if instance.get_states(n_states) != states_before:
            yield RuleViolation(
                "exchange.completed", "completing an integrator step changes the states", fixture.interface
            )


_SMALLEST_SPACING = 0.02  # of a communication step


@register_trial("differentiating along a motion", "derivative.slope")
def try_declared_derivatives(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that every variable declared as a derivative is the slope of its variable."""
    pairs = [
        (declared, target) for declared in fixture.float_scalars
        if (target := fixture.description.find_referenced_variable(declared.written.get("derivative"))) is not None
        and target in fixture.float_scalar_set
        and "input" not in {declared.causality, target.causality}
    ]  # fmt: skip
    if not pairs or (fixture.interface == "CoSimulation" and fixture.affordable_step_count < 3):
        return
    faults_by_spacing = [_check_slopes(fixture, pairs, spacing) for spacing in _choose_spacings(fixture)]
    if fixture.interface == "CoSimulation" and any(map(all, zip(*faults_by_spacing, strict=True))):
        # Errors of a stiff state are small, and its derivative magnifies them: they go with the tolerance, faults stay
        tighter_tolerance = (fixture.tolerance or _DEFAULT_TOLERANCE) * _TIGHTER_TOLERANCE_FACTOR
        faults_by_spacing += [
            _check_slopes(fixture, pairs, spacing, tighter_tolerance) for spacing in _choose_spacings(fixture)
        ]
    for (variable, _), *faults in zip(pairs, *faults_by_spacing, strict=True):
        if all(faults):
            yield RuleViolation("derivative.slope", faults[0], fixture.format_finding_location(variable))


def _check_slopes(
    fixture: TrialFixture,
    pairs: Sequence[tuple[DescribedVariable, DescribedVariable]],
    spacing: float,
    tolerance: float | None = None,
) -> list[str]:
    """Return a fault of each pair along a motion of equally spaced points; empty if there is none."""
    variables = [variable for pair in pairs for variable in pair]
    for inputs in ({variable: fixture.choose_near_start(variable, 0.2) for variable in fixture.inputs}, {}):
        with fixture.open_instance() as instance:
            try:
                readings = _record_motion(fixture, instance, variables, spacing, inputs, tolerance)
                break
            except RefusedCallError:  # of inputs that it cannot start with; without them, it is reported
                if not inputs:
                    raise
    faults = [""] * len(pairs)
    for pair_index, (_, target) in enumerate(pairs if readings and len(readings) > 2 else ()):
        declared_slopes, values = (
            [row[2 * pair_index] for row in readings or ()],
            [row[2 * pair_index + 1] for row in readings or ()],
        )
        wrong_count, point_count = 0, 0
        for index in range(1, len(declared_slopes) - 1):
            measured_slope = (values[index + 1] - values[index - 1]) / (2 * spacing)
            curvature_term = abs(values[index + 1] - 2 * values[index] + values[index - 1]) / spacing
            bound = (
                0.02 * max(abs(declared_slopes[index]), abs(measured_slope))
                + curvature_term
                + 0.5 * abs(declared_slopes[index + 1] - declared_slopes[index - 1])
                + 1e-7 * fixture.typical_magnitude(target) / spacing
            )
            point_count += 1
            wrong_count += not abs(measured_slope - declared_slopes[index]) <= bound
        if point_count and wrong_count > point_count / 2:
            measured_slope = (values[2] - values[0]) / (2 * spacing)
            faults[pair_index] = (
                f'reports {declared_slopes[1]:.6g} where "{target.name}" moves with {measured_slope:.6g} per second'
            )
    return faults


def _choose_spacings(fixture: TrialFixture) -> tuple[float, ...]:
    """Return distances of points; a derivative counts as wrong only if it is so for all of them.

    Small ones, where steps can be small: events are seldom between the points then, and what swings several times in a
    step is seen to do so. Whole steps: FMUs of fixed internal steps rest within them.
    """
    if fixture.interface == "ModelExchange":
        return (_SMALLEST_SPACING * fixture.step,)
    any_step_size = fixture.flag("canHandleVariableCommunicationStepSize")
    return tuple(part * fixture.step for part in ((1.0, 0.1, _SMALLEST_SPACING) if any_step_size else (1.0,)))


def _record_motion(
    fixture: TrialFixture, instance: FmuInstance, variables: list[DescribedVariable], spacing: float,
    inputs: Mapping[DescribedVariable, float],
    tolerance: float | None,
) -> list[list[float]] | None:  # fmt: skip
    """Return values at equally spaced points of a short motion with constant inputs; None if there was an event."""
    initial_values: dict[DescribedVariable, Value] = dict(inputs)
    readings: list[list[Value]] = []
    if fixture.interface == "CoSimulation":
        fixture.initialize(instance, initial_values=initial_values, tolerance=tolerance)
        for index in range(min(9, fixture.affordable_step_count)):
            do_communication_step(fixture, instance, fixture.start + index * spacing, spacing)
            readings.append(instance.get(variables))
    else:
        integration = start_model_exchange_integration(fixture, instance, 1e-10, initial_values)
        for index in range(9):
            integration.advance(fixture.start + spacing * (index + 1))
            instance.get_derivatives(fixture.n_states)
            readings.append(instance.get(variables))
        if integration.events:
            return None
    return [[float(value) for value in row if isinstance(value, float)] for row in readings]


@register_trial("capabilities that it has by its own words", "flags.true")
def try_capability_functions(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check FMI 3's functions behind capability flags: they answer OK."""
    if fixture.description.version != 3:
        return
    has_event_mode = fixture.interface == "ModelExchange" or fixture.flag("hasEventMode")
    with suppress(InstantiationError), fixture.open_instance(event_mode=has_event_mode) as instance:
        fixture.initialize(instance)
        outputs = [
            entry.variable
            for entry in fixture.description.model_structure_entries("Outputs")
            if entry.variable in fixture.variables_to_try
        ]
        if fixture.flag("providesPerElementDependencies") and outputs and outputs[0]:
            reference, count = c.c_uint(outputs[0].reference or 0), c.c_size_t()
            status = instance.call("GetNumberOfVariableDependencies", reference, c.byref(count))
            if status not in {OK, WARNING}:
                message = "providesPerElementDependencies is true, but fmi3GetNumberOfVariableDependencies"
                yield RuleViolation("flags.true", f"{message} returns {format_fmi_status(status)}", fixture.interface)
        if fixture.flag("providesEvaluateDiscreteStates") and has_event_mode:
            instance.enter_event_mode()
            status = instance.call("EvaluateDiscreteStates")
            if status not in {OK, WARNING}:
                message = (
                    f"providesEvaluateDiscreteStates is true, but the function returns {format_fmi_status(status)}"
                )
                yield RuleViolation("flags.true", message, fixture.interface)


@register_trial("motion without completed steps", "flags.true", interfaces=MODEL_EXCHANGE)
def try_motion_without_completed_steps(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check needsCompletedIntegratorStep (FMI 3), or its absence: importers then leave out these calls."""
    if fixture.description.version != 3 or fixture.flag("needsCompletedIntegratorStep"):
        return
    variables, runs = fixture.variables_to_try, (RecordedTrialRun(), RecordedTrialRun())
    for run, completes_steps in zip(runs, (True, False), strict=True):
        with suppress(SkippedTrialError), fixture.open_instance() as instance:
            integration = start_model_exchange_integration(fixture, instance, _COMPLETED_STEP_TOLERANCE)
            integration.completes_steps = completes_steps
            for step_index in range(fixture.affordable_step_count):
                integration.advance(fixture.start + (step_index + 1) * fixture.step)
                run.values.append(instance.get(variables))
    first_difference = find_first_run_difference(variables, *runs)
    if not first_difference:
        return
    end = min(first_difference[1] + _STEPS_BEHIND_DIFFERENCE, *(len(run.values) for run in runs))
    with_calls, without_calls = (RecordedTrialRun([], run.values[:end]) for run in runs)
    difference = find_largest_final_difference(fixture, with_calls, without_calls, variables)
    if difference and difference[0] > permitted_relative_difference(fixture):
        message = (
            f"needsCompletedIntegratorStep is false, but without these calls it is {difference[0]:.2g} of its size "
            f"elsewhere at t = {fixture.start + end * fixture.step:.6g} s"
        )
        yield RuleViolation("flags.true", message, fixture.format_finding_location(difference[1]))
