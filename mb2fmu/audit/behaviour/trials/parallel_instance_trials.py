"""Several instances at once: with other parameters, interleaved calls, and threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

from mb2fmu.audit.behaviour.fixture.excited_runs import (
    MAX_PARAMETER_TRIAL_STEPS,
    choose_excited_run_values,
    iterate_excited_run,
)
from mb2fmu.audit.behaviour.fixture.shared_trial_results import RecordedTrialRun
from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture
from mb2fmu.audit.behaviour.fixture.trial_registry import IN_PROCESS_ONLY, register_trial
from mb2fmu.audit.behaviour.fixture.trial_simulation_runs import find_first_run_difference
from mb2fmu.audit.behaviour.instance.fmi_c_interface import RefusedCallError
from mb2fmu.audit.behaviour.process.trial_time_budget import SkippedTrialError, TrialTimeBudgetError
from mb2fmu.audit.rules_and_findings import RuleViolation

THREAD_ROUNDS = 3
"""Number of comparisons of instances in threads: conflicts occur by chance."""

THREAD_CHANGES = 5
"""Steps of an instance that goes from thread to thread."""

MAX_STEPS_PER_RUN = MAX_PARAMETER_TRIAL_STEPS
"""Communication steps of these runs."""


def _run_alone(fixture: TrialFixture, number: int, steps: int) -> RecordedTrialRun:
    """Return the run of one instance by itself, with the parameters of this number."""
    with fixture.open_instance(name=b"alone%d" % number) as instance:
        for run in iterate_excited_run(fixture, instance, fixture.variables_to_try, number=number, steps=steps):
            last_run = run
    return last_run


def _run_each_set_alone(fixture: TrialFixture, steps: int) -> dict[int, RecordedTrialRun]:
    """Return different parameter sets with which one instance runs, and its motion with each."""
    runs = {0: _run_alone(fixture, 0, steps)}
    for number in (1, 2):
        if not choose_excited_run_values(fixture, number):
            continue
        try:
            runs[number] = _run_alone(fixture, number, steps)
        except TrialTimeBudgetError:
            raise
        except (RefusedCallError, SkippedTrialError) as error:
            fixture.skipped.append(
                f"{fixture.interface}: instances with set {number} of other parameters: alone: {error}"
            )
    return runs


@register_trial("instances with other parameters, mixed", "life.several", weight=1.5)
def try_interleaved_instances(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check interleaved steps of several instances: each moves as it does alone."""
    if fixture.flag("canBeInstantiatedOnlyOncePerProcess"):
        fixture.mark_inapplicable("life.several", "it can be instantiated only once")
        return
    steps = min(fixture.affordable_step_count, MAX_STEPS_PER_RUN)
    expected = _run_each_set_alone(fixture, steps)
    set_numbers = list(expected)
    runs: list[RecordedTrialRun] = [RecordedTrialRun() for _ in set_numbers]
    with ExitStack() as stack:
        instances = [stack.enter_context(fixture.open_instance(name=b"mixed%d" % number)) for number in set_numbers]
        run_iterators = [
            iterate_excited_run(fixture, instance, fixture.variables_to_try, number=number, steps=steps)
            for number, instance in zip(set_numbers, instances, strict=True)
        ]
        try:
            for _ in range(steps):
                runs = [next(iterator) for iterator in run_iterators]
        except RefusedCallError as error:
            yield RuleViolation("life.several", f"{error}, which alone it does not", fixture.interface)
            return
    for number, run in zip(set_numbers, runs, strict=True):
        difference = find_first_run_difference(fixture.variables_to_try, expected[number], run)
        if difference:
            message = (
                f'"{difference[0].name}" differs at point {difference[1]} when instances with other parameters run'
            )
            yield RuleViolation("life.several", f"{message} beside it (set {number})", fixture.interface)
            return


@register_trial("instances with other parameters in threads", "life.threads", hosts=IN_PROCESS_ONLY)
def try_instances_in_threads(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check instances in threads of their own: each moves as it does alone."""
    if fixture.flag("canBeInstantiatedOnlyOncePerProcess") or fixture.flag("needsExecutionTool"):
        fixture.mark_inapplicable("life.threads", "it can be instantiated only once, or needs a tool")
        return
    steps = min(fixture.affordable_step_count, MAX_STEPS_PER_RUN)
    expected = _run_each_set_alone(fixture, steps)
    set_numbers = list(expected) if len(expected) > 1 else [0, 0]
    for _ in range(THREAD_ROUNDS):
        runs, refusals = _run_in_threads(fixture, set_numbers, steps)
        if refusals:
            yield RuleViolation("life.threads", f"{refusals[0]}, which alone it does not", fixture.interface)
            return
        for number, run in zip(set_numbers, runs, strict=True):
            difference = find_first_run_difference(fixture.variables_to_try, expected[number], run) if run else None
            if difference:
                message = f'"{difference[0].name}" differs at point {difference[1]} between threads'
                yield RuleViolation("life.threads", message, fixture.interface)
                return


@register_trial("an instance that goes from thread to thread", "life.threads", hosts=IN_PROCESS_ONLY)
def try_instance_across_threads(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check one instance used by changing threads, never two at once."""
    if fixture.flag("needsExecutionTool"):
        return
    steps = min(fixture.affordable_step_count, THREAD_CHANGES)
    expected = _run_alone(fixture, 0, steps)
    with fixture.open_instance(name=b"alone0") as instance:
        run_iterator = iterate_excited_run(fixture, instance, fixture.variables_to_try, number=0, steps=steps)
        try:
            for _ in range(steps):
                run = _call_in_thread(lambda: next(run_iterator))
        except RefusedCallError as error:
            yield RuleViolation(
                "life.threads", f"{error}, which it does not where one thread calls it", fixture.interface
            )
            return
    difference = find_first_run_difference(fixture.variables_to_try, expected, run)
    if difference:
        message = f'"{difference[0].name}" differs at point {difference[1]} when steps are made in other threads'
        yield RuleViolation("life.threads", message, fixture.interface)


def _call_in_thread(function: Callable[[], RecordedTrialRun]) -> RecordedTrialRun:
    """Call a function in a new thread; return its result or raise its exception."""
    runs: list[RecordedTrialRun] = []
    errors: list[BaseException] = []

    def store_result() -> None:
        """Keep the result for the waiting thread."""
        try:
            runs.append(function())
        except BaseException as error:  # noqa: BLE001  raised again where it is waited for
            errors.append(error)

    worker = threading.Thread(target=store_result)
    worker.start()
    worker.join()
    if errors:
        raise errors[0]
    return runs[0]


def _run_in_threads(
    fixture: TrialFixture, set_numbers: Sequence[int], steps: int
) -> tuple[list[RecordedTrialRun | None], list[str]]:
    """Run all parameter sets at once; return the runs, and what was refused."""
    runs: list[RecordedTrialRun | None] = [None] * len(set_numbers)
    refusals: list[str] = []

    def run_one(position: int, number: int) -> None:
        """Do one run in a thread of its own."""
        try:
            runs[position] = _run_alone(fixture, number, steps)
        except RefusedCallError as error:
            refusals.append(str(error))
        except SkippedTrialError:
            return

    workers = [threading.Thread(target=run_one, args=pair) for pair in enumerate(set_numbers)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return runs, refusals
