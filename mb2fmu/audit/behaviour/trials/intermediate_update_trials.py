"""FMI 3: intermediate updates of Co-Simulation, the values they show, and early returns after them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from mb2fmu.audit.behaviour.fixture.excited_runs import choose_changed_value
from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture
from mb2fmu.audit.behaviour.fixture.trial_registry import register_trial
from mb2fmu.audit.behaviour.fixture.trial_run_comparison import values_agree
from mb2fmu.audit.behaviour.fixture.trial_simulation_runs import do_communication_step, run_co_simulation
from mb2fmu.audit.behaviour.instance.fmi_c_interface import RefusedCallError, Value
from mb2fmu.audit.behaviour.instance.fmu_instance import FmuInstance
from mb2fmu.audit.behaviour.trials.communication_step_trials import CO_SIMULATION
from mb2fmu.audit.description.description_records import DescribedVariable
from mb2fmu.audit.rules_and_findings import RuleViolation


@dataclass
class _IntermediateUpdateRecorder:
    """Records of intermediate updates.

    Attributes:
        required_variables: Variables that are read in them.
        times: Of each update.
        early_return_possible: Whether an early return was possible then.
        readings: What was read, with the time.
        refusals: What reading was answered with, where it was allowed.
        environments: That came with them.
        in_step: A step has been begun.
        updates_outside_steps: Updates before any step.
        request_early_return: The next update requests an early return.
        instance: That they come from.
    """

    required_variables: Sequence[DescribedVariable]
    times: list[float] = field(default_factory=list)
    early_return_possible: list[bool] = field(default_factory=list)
    readings: list[tuple[float, list[Value]]] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    environments: set[int | None] = field(default_factory=set)
    in_step: bool = False
    updates_outside_steps: int = 0
    request_early_return: bool = False
    instance: FmuInstance | None = None

    def record_update(
        self, environment: int | None, time: float, _set: bool, may_get: bool, _finished: bool, can_return: bool,
        early_return_flag: Any, early_return_time: Any,
    ) -> None:  # fmt: skip
        """Handle the callback: note the time, read values, and request an early return if wanted."""
        if not self.in_step:
            self.updates_outside_steps += 1
        self.times.append(time)
        self.environments.add(environment)
        if may_get and self.required_variables and self.instance:
            try:
                self.readings.append((time, self.instance.get(self.required_variables)))
            except RefusedCallError as error:
                self.refusals.append(str(error))
        self.early_return_possible.append(bool(can_return))
        early_return_flag[0] = self.request_early_return and bool(can_return)
        early_return_time[0] = time


@register_trial("intermediate updates", "steps.intermediate", "steps.early", interfaces=CO_SIMULATION)
def try_intermediate_updates(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check FMI 3's callback: times never decrease; early return is granted where promised."""
    if fixture.description.version != 3 or not fixture.flag("providesIntermediateUpdate"):
        return
    record = _IntermediateUpdateRecorder([item for item in fixture.float_scalars if item.flag("intermediateUpdate")])
    with fixture.open_instance(
        intermediate_update=record.record_update, required_variables=record.required_variables, allow_early_return=True
    ) as instance:
        record.instance = instance
        fixture.initialize(instance, initial_values=_choose_changed_inputs(fixture))
        record.in_step = True
        if record.updates_outside_steps:
            message = "the callback is called before any step: it belongs to fmi3DoStep"
            yield RuleViolation("steps.intermediate", message, fixture.interface)
        results = [do_communication_step(fixture, instance, fixture.start, fixture.step)]
        if not results[0].returned_early:
            results.append(do_communication_step(fixture, instance, fixture.start + fixture.step, fixture.step))
        if not record.times:
            message = "providesIntermediateUpdate is true, but the callback is never called"
            yield RuleViolation("steps.intermediate", message, fixture.interface)
            return
        for message in _find_update_faults(fixture, record, fixture.start + len(results) * fixture.step):
            yield RuleViolation("steps.intermediate", message, fixture.interface)
        if any(item.returned_early for item in results) and not fixture.flag("mightReturnEarlyFromDoStep"):
            message = "it returns early without a request, though mightReturnEarlyFromDoStep is false"
            yield RuleViolation("steps.early", message, fixture.interface)
            return
        yield from _compare_with_shorter_step(fixture, record)
        record.request_early_return = True
        yield from _check_requested_early_return(fixture, instance, record)


def _choose_changed_inputs(fixture: TrialFixture) -> dict[DescribedVariable, Value]:
    """Return changed continuous inputs, whose values within a step can be observed."""
    changes = ((variable, choose_changed_value(fixture, variable, "update", 0.1)) for variable in fixture.inputs)
    return {variable: value for variable, value in changes if value is not None}


def _find_update_faults(fixture: TrialFixture, record: _IntermediateUpdateRecorder, end_time: float) -> Iterator[str]:
    """Yield faults of times, environments and values of the updates up to a time."""
    if any(later < earlier for earlier, later in pairwise(record.times)):
        yield "the times of intermediate updates go backwards"
    time_tolerance = 1e-9 * (abs(fixture.start) + fixture.step)
    outside_time = next(
        (time for time in record.times if not fixture.start - time_tolerance <= time <= end_time + time_tolerance), None
    )
    if outside_time is not None:
        message = (
            f"an intermediate update is reported at {outside_time:.9g}, outside the steps from {fixture.start:.6g} to"
        )
        yield f"{message} {end_time:.6g}"
    if record.instance and record.environments != {record.instance.environment}:
        yield "intermediate updates come with another environment than that of their instance"
    if record.refusals:
        yield f"in an intermediate update that allows it, reading is refused: {record.refusals[0]}"


def _check_requested_early_return(
    fixture: TrialFixture, instance: FmuInstance, record: _IntermediateUpdateRecorder
) -> Iterator[RuleViolation]:
    """Check the third step, in which an early return is requested."""
    begin_time, update_count = fixture.start + 2 * fixture.step, len(record.early_return_possible)
    result = do_communication_step(fixture, instance, begin_time, fixture.step)
    if (
        fixture.flag("canReturnEarlyAfterIntermediateUpdate")
        and any(record.early_return_possible[update_count:-1])
        and not result.returned_early
    ):
        yield RuleViolation(
            "steps.early", "despite a request to return early it goes on to the end of the step", fixture.interface
        )
    if result.returned_early and not result.last_successful_time < begin_time + fixture.step:
        message = f"it reports an early return, at the end of the step, {result.last_successful_time:.6g}"
        yield RuleViolation("steps.early", message, fixture.interface)
    elif result.returned_early:
        record.request_early_return = False
        try:
            do_communication_step(
                fixture, instance, result.last_successful_time, begin_time + fixture.step - result.last_successful_time
            )
        except RefusedCallError as error:
            yield RuleViolation(
                "steps.early", f"after an early return the rest of the step is refused: {error}", fixture.interface
            )
            return
        yield from _check_completed_step(fixture, instance.get(fixture.variables_to_try))


def _check_completed_step(fixture: TrialFixture, values: list[Value]) -> Iterator[RuleViolation]:
    """Compare three steps, the last one returned early and completed, with three whole ones."""
    with fixture.open_instance() as instance:
        fixture.initialize(instance, initial_values=_choose_changed_inputs(fixture))
        expected_values = run_co_simulation(fixture, instance, fixture.variables_to_try, steps=3).values[-1]
    for variable, expected, value in zip(fixture.variables_to_try, expected_values, values, strict=True):
        if not values_agree(fixture, variable, expected, value, factor=10.0):
            message = f"after an early return and the rest of the step it is {value!r}, after a whole step {expected!r}"
            yield RuleViolation("steps.early", message, fixture.format_finding_location(variable))
            return


def _compare_with_shorter_step(fixture: TrialFixture, record: _IntermediateUpdateRecorder) -> Iterator[RuleViolation]:
    """Compare values at the first update within a step with an instance whose step ends there."""
    begin_time, end_time = fixture.start + 0.01 * fixture.step, fixture.start + 0.99 * fixture.step
    readings_in_step = [reading for reading in record.readings if begin_time < reading[0] < end_time]
    if not readings_in_step or not fixture.flag("canHandleVariableCommunicationStepSize"):
        return
    time, values = readings_in_step[0]
    with fixture.open_instance() as instance:
        fixture.initialize(instance, initial_values=_choose_changed_inputs(fixture))
        do_communication_step(fixture, instance, fixture.start, time - fixture.start)
        expected = instance.get(record.required_variables)
    for variable, expected_value, value in zip(record.required_variables, expected, values, strict=True):
        if not values_agree(fixture, variable, expected_value, value, factor=1.0):
            message = (
                f"in an intermediate update at t = {time:.6g} it is {value!r}; where a step ends there it "
                f"is {expected_value!r}"
            )
            yield RuleViolation("steps.intermediate", message, fixture.format_finding_location(variable))
            return
