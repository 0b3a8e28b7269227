"""Several instances at once: with other parameters, interleaved calls, and threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

from mb2fmu.audit.behaviour.fixture.excited_runs import TRIED, choose_parameters_and_starts, iterate_excited_run
from mb2fmu.audit.behaviour.fixture.short_runs import ShortRun, find_first_difference
from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture
from mb2fmu.audit.behaviour.fixture.trial_registry import NEAR, probe
from mb2fmu.audit.behaviour.instance.fmi_types import RefusedCallError
from mb2fmu.audit.behaviour.process.time_budget import SkippedTrialError, TimeBudgetError
from mb2fmu.audit.findings import Observation

ROUNDS = 3
"""How often instances in threads are compared: what clashes does so by chance."""

FEW = 5
"""Steps of an instance that goes from thread to thread."""

MOST = TRIED
"""Communication steps of these runs."""


def _alone(stage: TrialFixture, number: int, steps: int) -> ShortRun:
    """Return the run of one instance by itself, with the parameters of this number."""
    with stage.instance(name=b"alone%d" % number) as instance:
        for run in iterate_excited_run(stage, instance, stage.variables, number=number, steps=steps):
            found = run
    return found


def _expected(stage: TrialFixture, steps: int) -> dict[int, ShortRun]:
    """Return different parameter sets with which one instance runs, and its motion with each."""
    found = {0: _alone(stage, 0, steps)}
    for number in (1, 2):
        if not choose_parameters_and_starts(stage, number):
            continue
        try:
            found[number] = _alone(stage, number, steps)
        except TimeBudgetError:
            raise
        except (RefusedCallError, SkippedTrialError) as error:
            stage.skipped.append(f"{stage.kind}: instances with set {number} of other parameters: alone: {error}")
    return found


@probe("instances with other parameters, mixed", "life.several", weight=1.5)
def try_interleaved_instances(stage: TrialFixture) -> Iterator[Observation]:
    """Check interleaved steps of several instances: each moves as it does alone."""
    if stage.flag("canBeInstantiatedOnlyOncePerProcess"):
        stage.nothing("life.several", "it can be instantiated only once")
        return
    steps = min(stage.steps, MOST)
    expected = _expected(stage, steps)
    numbers = list(expected)
    runs: list[ShortRun] = [ShortRun() for _ in numbers]
    with ExitStack() as stack:
        made = [stack.enter_context(stage.instance(name=b"mixed%d" % number)) for number in numbers]
        drives = [
            iterate_excited_run(stage, instance, stage.variables, number=number, steps=steps)
            for number, instance in zip(numbers, made, strict=True)
        ]
        try:
            for _ in range(steps):
                runs = [next(each) for each in drives]
        except RefusedCallError as error:
            yield Observation("life.several", f"{error}, which alone it does not", stage.kind)
            return
    for number, found in zip(numbers, runs, strict=True):
        different = find_first_difference(stage.variables, expected[number], found)
        if different:
            text = f'"{different[0].name}" differs at point {different[1]} when instances with other parameters run'
            yield Observation("life.several", f"{text} beside it (set {number})", stage.kind)
            return


@probe("instances with other parameters in threads", "life.threads", where=NEAR)
def try_instances_in_threads(stage: TrialFixture) -> Iterator[Observation]:
    """Check instances in threads of their own: each moves as it does alone."""
    if stage.flag("canBeInstantiatedOnlyOncePerProcess") or stage.flag("needsExecutionTool"):
        stage.nothing("life.threads", "it can be instantiated only once, or needs a tool")
        return
    steps = min(stage.steps, MOST)
    expected = _expected(stage, steps)
    numbers = list(expected) if len(expected) > 1 else [0, 0]
    for _ in range(ROUNDS):
        runs, refused = _together(stage, numbers, steps)
        if refused:
            yield Observation("life.threads", f"{refused[0]}, which alone it does not", stage.kind)
            return
        for number, run in zip(numbers, runs, strict=True):
            different = find_first_difference(stage.variables, expected[number], run) if run else None
            if different:
                text = f'"{different[0].name}" differs at point {different[1]} between threads'
                yield Observation("life.threads", text, stage.kind)
                return


@probe("an instance that goes from thread to thread", "life.threads", where=NEAR)
def try_instance_across_threads(stage: TrialFixture) -> Iterator[Observation]:
    """Check one instance used by changing threads, never two at once."""
    if stage.flag("needsExecutionTool"):
        return
    steps = min(stage.steps, FEW)
    expected = _alone(stage, 0, steps)
    with stage.instance(name=b"alone0") as instance:
        drive = iterate_excited_run(stage, instance, stage.variables, number=0, steps=steps)
        try:
            for _ in range(steps):
                found = _in_a_thread(lambda: next(drive))
        except RefusedCallError as error:
            yield Observation("life.threads", f"{error}, which it does not where one thread calls it", stage.kind)
            return
    different = find_first_difference(stage.variables, expected, found)
    if different:
        text = f'"{different[0].name}" differs at point {different[1]} when steps are made in other threads'
        yield Observation("life.threads", text, stage.kind)


def _in_a_thread(function: Callable[[], ShortRun]) -> ShortRun:
    """Return what a function returns in a new thread; what it raises there is raised here."""
    runs: list[ShortRun] = []
    failed: list[BaseException] = []

    def call() -> None:
        """Keep the result for the waiting thread."""
        try:
            runs.append(function())
        except BaseException as error:  # noqa: BLE001  raised again where it is waited for
            failed.append(error)

    worker = threading.Thread(target=call)
    worker.start()
    worker.join()
    if failed:
        raise failed[0]
    return runs[0]


def _together(stage: TrialFixture, numbers: Sequence[int], steps: int) -> tuple[list[ShortRun | None], list[str]]:
    """Run all parameter sets at once; return the runs, and what was refused."""
    runs: list[ShortRun | None] = [None] * len(numbers)
    refused: list[str] = []

    def one(place: int, number: int) -> None:
        """Do one run in a thread of its own."""
        try:
            runs[place] = _alone(stage, number, steps)
        except RefusedCallError as error:
            refused.append(str(error))
        except SkippedTrialError:
            return

    workers = [threading.Thread(target=one, args=pair) for pair in enumerate(numbers)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return runs, refused
