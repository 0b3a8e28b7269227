"""Compare declared dependencies with the effects of changes of knowns on unknowns, of numbers and of other types."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial

from mb2fmu.audit.behaviour.fixture.dependency_effects import (
    DependencyEffects,
    ParameterSet,
    choose_value_changes,
    compare_effects_with_dependencies,
    map_declared_dependencies,
)
from mb2fmu.audit.behaviour.fixture.excited_runs import choose_changed_value
from mb2fmu.audit.behaviour.fixture.spurious_effects import (
    SMALL_FRACTION,
    VISIBLE_CHANGE,
    drop_effects_of_mode_changes,
    drop_effects_of_solution_jumps,
)
from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture, are_identical_values
from mb2fmu.audit.behaviour.fixture.trial_registry import register_trial
from mb2fmu.audit.behaviour.fixture.trial_simulation_runs import do_communication_step
from mb2fmu.audit.behaviour.instance.fmi_c_interface import RefusedCallError, Value
from mb2fmu.audit.behaviour.instance.fmu_instance import FmuInstance
from mb2fmu.audit.behaviour.process.trial_time_budget import SkippedTrialError
from mb2fmu.audit.behaviour.trials.model_exchange_trials import (
    FmuEvaluationPoint,
    choose_random_fmu_point,
    iterate_points_between_events,
    list_fmu_motion_points,
    set_changed_point_values,
    set_fmu_to_evaluation_point,
)
from mb2fmu.audit.description.description_records import DescribedUnknown, DescribedVariable
from mb2fmu.audit.rules_and_findings import RuleViolation

DEPENDENCY_RULES = (
    "dependencies.missing", "dependencies.feedthrough", "dependencies.excessive", "dependencies.kind",
    "dependencies.own_state",
)  # fmt: skip

CALLS_PER_CHANGE = 3
"""A known is set, the unknowns are read, the known is set back."""

CALLS_AT_ALL_POINTS = 27 * CALLS_PER_CHANGE
"""Of one change at each point: there are 27 at most where the calls of a run are limited."""

CHANGE_FRACTIONS = (1.0, 1.0 / 32.0, 1.0 / 1024.0)
"""Of a change of a state or an input, tried in turn: states far from its constraints are refused by many an FMU."""


@register_trial("changing states, inputs and time", *DEPENDENCY_RULES, interfaces=("ModelExchange",))
def try_continuous_dependencies(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check outputs and derivatives in Continuous-Time Mode."""
    entries = [
        entry
        for list_name in ("Outputs", "Derivatives", "EventIndicators")
        for entry in fixture.description.model_structure_entries(list_name)
        if entry.variable in fixture.float_scalar_set
    ]
    if not entries or len(fixture.states) != fixture.n_states:
        return
    effects = DependencyEffects(declared=map_declared_dependencies(entries))
    unknowns = list({id(entry.variable): entry.variable for entry in entries if entry.variable}.values())
    independent = fixture.description.independent
    knowns = [
        *fixture.states,
        *fixture.inputs,
        *([independent] if independent in fixture.float_scalar_set and independent else []),
    ]
    evaluated = 0
    parameters = fixture.select_scalars("parameter")
    has_time = fixture.make_time_remaining_check()
    for phase in range(4):
        if not has_time():
            break
        with fixture.open_instance() as instance:
            try:
                evaluated += _run_phase(fixture, instance, phase, parameters, unknowns, effects, has_time)
            except (RefusedCallError, SkippedTrialError):
                continue
    with fixture.open_instance() as instance, suppress(RefusedCallError, SkippedTrialError):
        fixture.initialize(instance)
        calls_per_point = CALLS_PER_CHANGE * 2 * len(knowns)
        for point in fixture.choose_affordable(list_fmu_motion_points(fixture), 2 * calls_per_point):
            _record_effects_at_point(fixture, instance, point, unknowns, effects, (0, 0), has_time)
    with fixture.open_instance() as instance, suppress(RefusedCallError, SkippedTrialError):
        for point, next_event_time in iterate_points_between_events(fixture, instance):
            _record_effects_at_point(fixture, instance, point, unknowns, effects, (0, 0), has_time, next_event_time)
    if evaluated < 2:
        fixture.skipped.append(
            f"{fixture.interface}: dependencies in Continuous-Time Mode: it could not be evaluated at enough points"
        )
        return
    yield from compare_effects_with_dependencies(fixture, entries, effects, knowns, 4)
    if fixture.description.version == 3:
        yield from _check_tunable_parameters(fixture, entries, unknowns)


def _run_phase(
    fixture: TrialFixture,
    instance: FmuInstance,
    phase: int,
    parameters: Sequence[DescribedVariable],
    unknowns: Sequence[DescribedVariable],
    effects: DependencyEffects,
    has_time: Callable[[], bool],
) -> int:
    """Run one initialization: from the second on with other parameters, then tunable ones changed by an event."""
    initial_values: dict[DescribedVariable, Value] = {}
    if phase:
        initial_values = {variable: fixture.choose_near_start(variable, 0.2) for variable in parameters}
        initial_values |= {
            variable: fixture.choose_near_start(variable, 0.3)
            for variable in fixture.select_scalars("local", "output")
            if variable.initial == "exact" and variable.variability in {"fixed", "tunable"}
        }
    fixture.initialize(instance, initial_values=initial_values)
    evaluated = 0
    for tuning_round in range(2):
        if tuning_round:
            tunable_parameters = [variable for variable in parameters if variable.variability == "tunable"]
            if not tunable_parameters:
                break
            instance.enter_event_mode()
            instance.set({variable: fixture.choose_near_start(variable, 0.15) for variable in tunable_parameters})
            fixture.settle_events(instance)
            instance.leave_event_mode()
        for _ in range(2):
            _record_effects_at_point(
                fixture,
                instance,
                choose_random_fmu_point(fixture, instance),
                unknowns,
                effects,
                (phase, tuning_round),
                has_time,
            )
            evaluated += 1
    return evaluated


def _iterate_changed_points(
    fixture: TrialFixture, point: FmuEvaluationPoint, next_event_time: float
) -> Iterator[tuple[DescribedVariable, FmuEvaluationPoint, float]]:
    """Yield points with one known changed: the known, the point, and the change."""
    for index, state in enumerate(fixture.states):
        for value in choose_value_changes(fixture, state, point.states[index]):
            changed_values = (*point.states[:index], value, *point.states[index + 1 :])
            yield state, FmuEvaluationPoint(point.time, changed_values, point.inputs), value - point.states[index]
    for index, input_variable in enumerate(fixture.inputs):
        for value in choose_value_changes(fixture, input_variable, point.inputs[index]):
            changed_values = (*point.inputs[:index], value, *point.inputs[index + 1 :])
            yield (
                input_variable,
                FmuEvaluationPoint(point.time, point.states, changed_values),
                value - point.inputs[index],
            )
    independent = fixture.description.independent
    if independent is not None and independent in fixture.float_scalar_set:
        for delay in (0.3 * fixture.step, 1.7 * fixture.step):
            if point.time + delay < next_event_time:
                yield independent, FmuEvaluationPoint(point.time + delay, point.states, point.inputs), delay


def _record_effects_at_point(
    fixture: TrialFixture, instance: FmuInstance, point: FmuEvaluationPoint, unknowns: Sequence[DescribedVariable],
    effects: DependencyEffects, parameter_set: ParameterSet,
    has_time: Callable[[], bool], next_event_time: float = math.inf,
) -> None:  # fmt: skip
    """Change knowns at one point; time by less than the distance to the next time event.

    Where the calls of a run are limited, a point has some of the changes, the next ones have the others.
    """
    set_fmu_to_evaluation_point(fixture, instance, point)
    values_before = instance.get(unknowns)
    here, changes = point, [*_iterate_changed_points(fixture, point, next_event_time)]
    effects.point_count += 1
    for known, changed_point, change in fixture.choose_affordable(changes, CALLS_AT_ALL_POINTS, effects.point_count):
        for fraction in CHANGE_FRACTIONS:
            if not has_time():
                return
            nearer_point = _move_part_of_way(point, changed_point, fraction)
            try:
                set_changed_point_values(fixture, instance, here, nearer_point)
                values_after = instance.get(unknowns)
            except RefusedCallError:
                set_fmu_to_evaluation_point(fixture, instance, point)
                here = point
                continue
            effects.record_change(unknowns, known, values_before, values_after, fraction * change, parameter_set)
            here = nearer_point
            break
    set_changed_point_values(fixture, instance, here, point)


def _move_part_of_way(
    point: FmuEvaluationPoint, changed_point: FmuEvaluationPoint, fraction: float
) -> FmuEvaluationPoint:
    """Return the point that is a fraction of the way from one point to another."""
    if fraction == 1.0:
        return changed_point

    def move(before: float, after: float) -> float:
        return before + fraction * (after - before)

    return FmuEvaluationPoint(
        move(point.time, changed_point.time),
        tuple(map(move, point.states, changed_point.states)),
        tuple(map(move, point.inputs, changed_point.inputs)),
    )


def _check_tunable_parameters(
    fixture: TrialFixture, entries: Sequence[DescribedUnknown], unknowns: Sequence[DescribedVariable]
) -> Iterator[RuleViolation]:
    """Check tunable parameters, which are knowns in FMI 3: another value, then the same point."""
    tunable_parameters = fixture.select_scalars("parameter", variability="tunable")
    effects = DependencyEffects(declared=map_declared_dependencies(entries))
    for set_number in range(3):
        with fixture.open_instance() as instance:
            try:
                fixture.initialize(
                    instance,
                    initial_values={
                        parameter: fixture.choose_near_start(parameter, 0.2)
                        for parameter in fixture.select_scalars("parameter")
                    }
                    if set_number
                    else {},
                )
                point = choose_random_fmu_point(fixture, instance)
                _record_tuning_effects(fixture, instance, point, tunable_parameters, unknowns, effects, set_number)
            except (RefusedCallError, SkippedTrialError):
                continue
    yield from compare_effects_with_dependencies(fixture, entries, effects, tunable_parameters, 2)


def _record_tuning_effects(
    fixture: TrialFixture,
    instance: FmuInstance,
    point: FmuEvaluationPoint,
    tunable_parameters: Sequence[DescribedVariable],
    unknowns: Sequence[DescribedVariable],
    effects: DependencyEffects,
    set_number: int,
) -> None:
    """Record the effects of changing each tunable parameter on the unknowns; restore its old value."""
    set_fmu_to_evaluation_point(fixture, instance, point)
    for parameter in tunable_parameters:
        old_value = instance.get([parameter])[0]
        if not isinstance(old_value, float):
            continue
        # Event Mode at a point that was jumped to may switch a mode by itself: that is no effect of the parameter.
        _set_in_event_mode(fixture, instance, parameter, old_value)
        set_fmu_to_evaluation_point(fixture, instance, point)
        values_before = instance.get(unknowns)
        for value in choose_value_changes(fixture, parameter, old_value):
            try:
                read_with = partial(_read_with_parameter, fixture, instance, point, unknowns, parameter)
                values_after = read_with(value)
                if fixture.description.model_structure_entries("EventIndicators"):
                    restored, after_small_change = (
                        read_with(old_value),
                        read_with(old_value + SMALL_FRACTION * (value - old_value)),
                    )
                    values_after = drop_effects_of_mode_changes(
                        values_before, after_small_change, values_after, (restored, read_with(old_value))
                    )
            except RefusedCallError:
                continue
            effects.record_change(
                unknowns,
                parameter,
                values_before,
                values_after,
                value - old_value,
                (set_number, len(effects.change_counts)),
            )
        _set_in_event_mode(fixture, instance, parameter, old_value)
        set_fmu_to_evaluation_point(fixture, instance, point)


def _read_with_parameter(
    fixture: TrialFixture,
    instance: FmuInstance,
    point: FmuEvaluationPoint,
    unknowns: Sequence[DescribedVariable],
    parameter: DescribedVariable,
    value: float,
) -> Sequence[Value]:
    """Return the unknowns at a point with a tunable parameter at a value."""
    _set_in_event_mode(fixture, instance, parameter, value)
    set_fmu_to_evaluation_point(fixture, instance, point)
    return instance.get(unknowns)


def _set_in_event_mode(
    fixture: TrialFixture, instance: FmuInstance, parameter: DescribedVariable, value: float
) -> None:
    """Set a tunable parameter in Event Mode, as the standard demands, and go on."""
    instance.enter_event_mode()
    instance.set({parameter: value})
    fixture.settle_events(instance)
    instance.leave_event_mode()


@register_trial("changing what is known at initialization", *DEPENDENCY_RULES)
def try_initial_dependencies(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check initial unknowns in Initialization Mode."""
    entries = [
        variable
        for variable in fixture.description.model_structure_entries("InitialUnknowns")
        if variable.variable in fixture.float_scalar_set
    ]
    if not entries:
        return
    knowns = [
        variable for variable in fixture.float_scalars
        if (variable.causality == "input" and variable.variability in {"continuous", "discrete"})
        or (variable.initial == "exact" and variable.variability != "constant" and variable.causality != "independent")
    ]  # fmt: skip
    effects = DependencyEffects(declared=map_declared_dependencies(entries))
    evaluated, has_time = 0, fixture.make_time_remaining_check()
    for phase in range(4):
        if phase > 1 and not has_time():
            break
        with fixture.open_instance() as instance:
            try:
                _record_initial_effects(fixture, instance, phase, knowns, entries, effects)
                evaluated += 1
            except (RefusedCallError, SkippedTrialError):
                continue
    if evaluated < 2:
        fixture.skipped.append(
            f"{fixture.interface}: dependencies of the initial unknowns: it could not be evaluated at enough points"
        )
        return
    yield from compare_effects_with_dependencies(fixture, entries, effects, knowns, 4)


def _record_initial_effects(
    fixture: TrialFixture,
    instance: FmuInstance,
    phase: int,
    knowns: Sequence[DescribedVariable],
    entries: Sequence[DescribedUnknown],
    effects: DependencyEffects,
) -> None:
    """Change every known at one set of start values."""
    unknowns = [item.variable for item in entries if item.variable]
    instance.enter_initialization(fixture.start, None, fixture.tolerance)
    spread = (0.0, 0.2, 0.1, 0.03)[phase]
    values: Mapping[DescribedVariable, float] = {item: fixture.choose_near_start(item, spread) for item in knowns}
    if phase:
        instance.set(dict(values))
    values_before = instance.get(unknowns)
    if not all(isinstance(item, float) and math.isfinite(item) for item in values_before):
        raise SkippedTrialError("not finite")
    for known, old_value in zip(knowns, instance.get(knowns), strict=True):
        if not isinstance(old_value, float):
            continue
        # An FMU that solves anew, or only then, whenever something is set: that alone is no dependency.
        with suppress(RefusedCallError):
            instance.set({known: old_value})
            values_before = instance.get(unknowns)
        for value in choose_value_changes(fixture, known, old_value):
            try:
                instance.set({known: value})
                values_after = instance.get(unknowns)
                if effects.find_telling_changes(known, values_before, values_after):
                    instance.set({known: old_value + SMALL_FRACTION * (value - old_value)})
                    values_after = drop_effects_of_solution_jumps(
                        fixture, entries, known, (values_before, instance.get(unknowns), values_after)
                    )
            except RefusedCallError:
                continue
            finally:
                instance.set({known: old_value})
            effects.record_change(unknowns, known, values_before, values_after, value - old_value, (phase, known.index))


TINY_STEP_SHARE = 1e-5
"""Size of a tiny step, relative to the communication step."""


@register_trial("changing inputs between tiny steps", "dependencies.missing", interfaces=("CoSimulation",))
def try_dependencies_within_steps(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check Co-Simulation: an output that an input changes within a tiny step depends on it directly."""
    outputs = [
        entry
        for entry in fixture.description.model_structure_entries("Outputs")
        if entry.variable in fixture.float_scalar_set and entry.dependencies is not None
    ]
    if (
        not outputs
        or not fixture.inputs
        or not fixture.flag("canHandleVariableCommunicationStepSize")
        or "ModelExchange" in fixture.description.interfaces
    ):
        return
    for known in fixture.inputs:
        effects = _measure_immediate_effects(fixture, known, outputs, TINY_STEP_SHARE * fixture.step)
        suspected_outputs = [
            index
            for index, (magnitude, changes) in enumerate(effects)
            if changes
            and min(changes) > 1e-2 * max(magnitude, 1e-6)
            and all(known is not entry for entry in outputs[index].targets)
        ]
        # What goes by way of a state is small with the time that goes by, and may be large beside a state near zero.
        effects_in_smaller_step = (
            _measure_immediate_effects(fixture, known, outputs, TINY_STEP_SHARE * fixture.step / 8.0)
            if suspected_outputs
            else []
        )
        for index in suspected_outputs:
            if min(effects_in_smaller_step[index][1], default=0.0) > 0.5 * min(effects[index][1]):
                message = f'changes with "{known.name}" without time going by, which its dependencies leave out'
                yield RuleViolation(
                    "dependencies.missing", message, f"{fixture.interface}, {outputs[index].location_in_file}"
                )


def _measure_immediate_effects(
    fixture: TrialFixture, known: DescribedVariable, outputs: Sequence[DescribedUnknown], step_size: float
) -> list[tuple[float, list[float]]]:
    """Return each output's size after two ``step_size`` steps, and its change by an input changed between them."""
    readings = []
    value = fixture.choose_near_start(known, 0.0)
    for changed_value in (value, *choose_value_changes(fixture, known, value)):
        with fixture.open_instance() as instance:
            fixture.initialize(instance, initial_values={known: value})
            do_communication_step(fixture, instance, fixture.start, step_size)
            instance.set({known: changed_value})
            do_communication_step(fixture, instance, fixture.start + step_size, step_size)
            readings.append(instance.get([entry.variable for entry in outputs if entry.variable]))
    return [
        (abs(reference) if isinstance(reference, float) else 0.0,
         [abs(entry - reference) for entry in changed if isinstance(entry, float) and isinstance(reference, float)])
        for reference, *changed in zip(*readings, strict=True)
    ]  # fmt: skip


# --- knowns and unknowns that are not single floating point numbers

RELATIVE_SPREADS = (0.3, 0.1)
"""Relative sizes of the changes of floating point numbers."""

Reader = Callable[[], Sequence[Value]]


def _can_be_set_at_start(known: DescribedVariable) -> bool:
    """Return whether importers may give a value before the end of the initialization."""
    settable = known.causality in {"parameter", "input"} or known.initial == "exact"
    return settable and known.variability != "constant" and known.causality != "independent" and known.type != "Clock"


def _is_value_visibly_different(before: Value, after: Value, magnitude: float = 0.0) -> bool:
    """Return whether a value is visibly another one; ``magnitude`` is the largest number that was read with it."""
    if isinstance(before, tuple) and isinstance(after, tuple):
        if len(before) != len(after):
            return True
        magnitudes = [abs(element) for element in before if isinstance(element, float) and math.isfinite(element)]
        return any(
            _is_value_visibly_different(old, new, max(magnitudes, default=0.0))
            for old, new in zip(before, after, strict=True)
        )
    if isinstance(before, float) and isinstance(after, float):
        if not (math.isfinite(before) and math.isfinite(after)):
            return False
        return abs(after - before) > max(VISIBLE_CHANGE * max(abs(before), abs(after), 1e-9), 1e-13 * magnitude)
    return before != after


def _find_undeclared_dependencies(
    fixture: TrialFixture, entries: Sequence[DescribedUnknown], knowns: Sequence[DescribedVariable],
    set_values: Callable[[Mapping[DescribedVariable, Value]], None], read_unknowns: Reader,
) -> Iterator[RuleViolation]:  # fmt: skip
    """Yield undeclared dependencies: the unknown changes with a known, and is restored with it.

    Args:
        fixture: Of the FMU.
        entries: Of the model structure, in the order in which ``read_unknowns`` gives their values.
        knowns: Variables that are changed one by one.
        set_values: Sets values.
        read_unknowns: Reads the unknowns.
    """
    reported: set[tuple[int, int]] = set()
    are_all_scalar = all(item.variable in fixture.float_scalar_set for item in entries)
    has_time = fixture.make_time_remaining_check()
    for known in knowns:
        for spread in (
            RELATIVE_SPREADS if not (are_all_scalar and known in fixture.float_scalar_set) and has_time() else ()
        ):
            changed_value = choose_changed_value(fixture, known, "dependencies", spread)
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
                    readings.append(read_unknowns())
            except RefusedCallError:
                with suppress(RefusedCallError):
                    set_values({known: start_value})
                continue
            for entry, before, after, restored in zip(entries, *readings, strict=True):
                if entry.variable is None or (
                    entry.variable in fixture.float_scalar_set and known in fixture.float_scalar_set
                ):
                    continue  # by other trials, more thoroughly
                key = entry.variable.index, known.index
                if key in reported or any(known is item for item in entry.targets):
                    continue
                if not are_identical_values(before, restored) or not _is_value_visibly_different(before, after):
                    continue
                reported.add(key)
                message = f'changes with "{known.name}", which its dependencies leave out'
                yield RuleViolation("dependencies.missing", message, f"{fixture.interface}, {entry.location_in_file}")


def _list_declared_unknowns(fixture: TrialFixture, *list_names: str) -> list[DescribedUnknown]:
    """Return unknowns whose dependencies are declared and that are tried."""
    tried_variables = frozenset(fixture.variables_to_try)
    entries = [entry for list_name in list_names for entry in fixture.description.model_structure_entries(list_name)]
    return [entry for entry in entries if entry.variable in tried_variables and entry.dependencies is not None]


@register_trial("changing what is no single number at initialization", "dependencies.missing")
def try_initial_dependencies_all_types(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check the dependencies of initial unknowns on parameters, inputs and start values of all types."""
    entries = _list_declared_unknowns(fixture, "InitialUnknowns")
    knowns = [variable for variable in fixture.variables_to_try if _can_be_set_at_start(variable)]
    if not entries or not knowns:
        return
    with fixture.open_instance() as instance, suppress(SkippedTrialError):
        instance.enter_initialization(fixture.start, None, fixture.tolerance)
        yield from _find_undeclared_dependencies(
            fixture, entries, knowns, instance.set, _make_reader(instance, entries)
        )


@register_trial(
    "changing what is no single number in Event Mode", "dependencies.missing", interfaces=("ModelExchange",)
)
def try_event_dependencies_all_types(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check the dependencies of outputs and derivatives on inputs of all types, in FMI 3 also on tunable parameters.

    Between two updates of discrete states: what follows at once depends on what was set, and not on what that made of a
    discrete state.
    """
    entries = _list_declared_unknowns(fixture, "Outputs", "Derivatives")
    knowns = [
        variable
        for variable in fixture.variables_to_try
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
        yield from _find_undeclared_dependencies(
            fixture, entries, knowns, instance.set, _make_reader(instance, entries)
        )


def _make_reader(instance: FmuInstance, entries: Sequence[DescribedUnknown]) -> Reader:
    """Read the unknowns of these entries."""
    return lambda: instance.get([entry.variable for entry in entries if entry.variable])
