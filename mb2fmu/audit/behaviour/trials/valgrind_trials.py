"""Runs under valgrind: no use of uninitialized memory, no access outside of what was requested."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

from mb2fmu.audit.behaviour.fixture.excited_runs import choose_parameters_and_starts, run_with_excitation
from mb2fmu.audit.behaviour.fixture.short_runs import run_interface_type
from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture
from mb2fmu.audit.behaviour.fixture.trial_registry import MEMORY, WATCHED, probe
from mb2fmu.audit.behaviour.instance.fmi_types import RefusedCallError
from mb2fmu.audit.behaviour.instance.remote_hosts import VALGRIND, read_valgrind_errors
from mb2fmu.audit.behaviour.process.time_budget import SkippedTrialError
from mb2fmu.audit.findings import Observation

STEPS = 10
"""Communication steps of all runs."""

PATIENCE = 0.12
"""Part of the budget after which nothing more is begun: an FMU is thirty times slower there."""

MOST = 5
"""Findings."""


@probe(WATCHED, MEMORY, crash=MEMORY, slow="life.crash", where=(VALGRIND,))
def try_under_valgrind(stage: TrialFixture) -> Iterator[Observation]:
    """Check an ordinary run, runs with other values, saved states and derivatives, by valgrind's report."""
    end = time.monotonic() + PATIENCE * stage.effort
    stage.__dict__["steps"] = min(stage.steps, STEPS)
    for action in _actions(stage):
        if time.monotonic() > end:
            stage.skipped.append(f"{stage.kind}: {WATCHED}: not to its end: its share of the time is spent (--budget)")
            break
        with suppress(RefusedCallError, SkippedTrialError):  # what is refused is told by others
            action()
    stage.library.handle.close()
    root, library = stage.folder.parent, stage.library.path
    for text in read_valgrind_errors(root, library)[:MOST]:
        yield Observation(MEMORY, text, stage.kind)


def _actions(stage: TrialFixture) -> Iterator[Callable[[], object]]:
    """Yield what is run under valgrind: one step first, then states, whole runs, driven runs."""
    yield partial(_run, stage, 1)
    if stage.keeps_states:
        yield partial(_kept, stage)
    yield partial(_run, stage, stage.steps)
    yield partial(_driven, stage, 0)
    if choose_parameters_and_starts(stage, 1):
        yield partial(_driven, stage, 1)


def _run(stage: TrialFixture, steps: int) -> None:
    """Run so many steps, terminate and reset."""
    with stage.instance() as instance:
        run_interface_type(stage, instance, stage.variables, steps=steps)
        instance.terminate()
        instance.reset()


def _driven(stage: TrialFixture, number: int) -> None:
    """Run with the parameters of this number and moving inputs."""
    with stage.instance() as instance:
        run_with_excitation(stage, instance, stage.variables, number=number, steps=stage.steps)


def _kept(stage: TrialFixture) -> None:
    """Keep a state, restore it, read everything and free it."""
    with stage.instance() as instance:
        stage.initialize(instance)
        state = instance.get_state()
        instance.set_state(state)
        instance.get(stage.variables)
        instance.free_state(state)
