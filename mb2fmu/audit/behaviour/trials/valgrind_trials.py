"""Runs under valgrind: no use of uninitialized memory, no access outside of what was requested."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

from mb2fmu.audit.behaviour.fixture.excited_runs import choose_excited_run_values, run_with_excitation
from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture
from mb2fmu.audit.behaviour.fixture.trial_registry import MEMORY_RULE, VALGRIND_TITLE, register_trial
from mb2fmu.audit.behaviour.fixture.trial_simulation_runs import run_as_interface_type
from mb2fmu.audit.behaviour.instance.fmi_c_interface import RefusedCallError
from mb2fmu.audit.behaviour.instance.wine_and_valgrind_hosts import VALGRIND, read_valgrind_errors
from mb2fmu.audit.behaviour.process.trial_time_budget import SkippedTrialError
from mb2fmu.audit.rules_and_findings import RuleViolation

MAX_VALGRIND_STEPS = 10
"""Communication steps of all runs."""

TIME_SHARE = 0.12
"""Share of the budget after which no run is begun: an FMU is thirty times slower under valgrind."""

MAX_FINDINGS = 5
"""Findings."""


@register_trial(VALGRIND_TITLE, MEMORY_RULE, crash_rule=MEMORY_RULE, timeout_rule="life.crash", hosts=(VALGRIND,))
def try_under_valgrind(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check an ordinary run, runs with other values, saved states and derivatives, by valgrind's report."""
    end_time = time.monotonic() + TIME_SHARE * fixture.effort
    fixture.step_count = min(fixture.affordable_step_count, MAX_VALGRIND_STEPS)
    for action in _list_actions(fixture):
        if time.monotonic() > end_time:
            fixture.skipped.append(
                f"{fixture.interface}: {VALGRIND_TITLE}: not to its end: its share of the time is spent (--budget)"
            )
            break
        with suppress(RefusedCallError, SkippedTrialError):  # other trials report refusals
            action()
    trial_folder, library = fixture.folder.parent, fixture.library.path
    for error in read_valgrind_errors(trial_folder, library)[:MAX_FINDINGS]:
        yield RuleViolation(MEMORY_RULE, error)  # of the library: all interface types run in one process


def _list_actions(fixture: TrialFixture) -> Iterator[Callable[[], object]]:
    """Yield the runs under valgrind: one step, saved states, a whole run, excited runs."""
    yield partial(_run_and_reset, fixture, 1)
    if fixture.can_save_states:
        yield partial(_save_and_restore_state, fixture)
    yield partial(_run_and_reset, fixture, fixture.affordable_step_count)
    yield partial(_run_excited, fixture, 0)
    if choose_excited_run_values(fixture, 1):
        yield partial(_run_excited, fixture, 1)


def _run_and_reset(fixture: TrialFixture, steps: int) -> None:
    """Run so many steps, terminate and reset."""
    with fixture.open_instance() as instance:
        run_as_interface_type(fixture, instance, fixture.variables_to_try, steps=steps)
        instance.terminate()
        instance.reset()


def _run_excited(fixture: TrialFixture, number: int) -> None:
    """Run with the parameters of this number and moving inputs."""
    with fixture.open_instance() as instance:
        run_with_excitation(
            fixture, instance, fixture.variables_to_try, number=number, steps=fixture.affordable_step_count
        )


def _save_and_restore_state(fixture: TrialFixture) -> None:
    """Keep a state, restore it, read everything and free it."""
    with fixture.open_instance() as instance:
        fixture.initialize(instance)
        state = instance.get_state()
        instance.set_state(state)
        instance.get(fixture.variables_to_try)
        instance.free_state(state)
