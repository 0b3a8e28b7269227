"""Unusual hosts: floating-point traps, other rounding, another locale, an awkward path; FMUs must not change them."""

from __future__ import annotations

import locale
import math
import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from mb2fmu.audit.behaviour.fixture.shared_trial_results import RecordedTrialRun
from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture
from mb2fmu.audit.behaviour.fixture.trial_registry import IN_PROCESS_ONLY, register_trial
from mb2fmu.audit.behaviour.fixture.trial_simulation_runs import (
    find_first_run_difference,
    run_as_interface_type,
    run_co_simulation,
    run_model_exchange,
)
from mb2fmu.audit.behaviour.instance.fmi_c_interface import RefusedCallError, Value
from mb2fmu.audit.behaviour.process.process_global_settings import (
    PROCESSOR_SET,
    ProcessSettings,
    allow_all_processors,
    load_c_rounding_mode_library,
    read_process_settings,
    restore_broken_pipe_signal,
    set_rounding_to_nearest,
)
from mb2fmu.audit.behaviour.process.trial_time_budget import SkippedTrialError
from mb2fmu.audit.behaviour.trials.life_cycle_trials import SHORT_RUN_STEPS
from mb2fmu.audit.description.description_records import DescribedVariable
from mb2fmu.audit.rules_and_findings import RuleViolation

_UPWARD_ROUNDING_MODES = {"x86_64": 0x800, "aarch64": 0x400000}
_TRAP_MASKS = {"x86_64": 0x01 | 0x04 | 0x08, "aarch64": 0x1 | 0x2 | 0x4}
_COMMA_LOCALES = ("de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "fr_FR.utf8", "de_DE", "es_ES.UTF-8", "it_IT.UTF-8")


def _processor_architecture() -> str:
    """Return the processor's architecture."""
    import platform

    return platform.machine()


@register_trial(
    "a host with floating-point traps on", "host.traps", "host.restored", crash_rule="host.traps", hosts=IN_PROCESS_ONLY
)
def try_floating_point_traps(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check a host with floating-point traps: an invalid operation would kill its process."""
    trap_mask = _TRAP_MASKS.get(_processor_architecture())
    if trap_mask is None or load_c_rounding_mode_library() is None or fixture.flag("needsExecutionTool"):
        return
    trapping_fixture = replace(fixture, library=replace(fixture.library, traps=trap_mask))
    traps_lost = False
    with trapping_fixture.open_instance() as instance:
        run_as_interface_type(trapping_fixture, instance, fixture.variables_to_try, steps=2)
        traps_lost = instance.traps_lost
    for variable in fixture.inputs[:1]:
        with trapping_fixture.open_instance() as instance, suppress(RefusedCallError, SkippedTrialError):
            trapping_fixture.initialize(instance, initial_values={variable: math.inf})
            if fixture.interface == "CoSimulation":
                run_co_simulation(trapping_fixture, instance, (), steps=1, include_start=False)
            elif fixture.n_states:
                instance.get_derivatives(fixture.n_states)
    if traps_lost:
        yield RuleViolation(
            "host.restored", "floating-point traps that the host had on are off after a call", fixture.interface
        )


@register_trial("another rounding mode", "host.rounding", "host.restored", hosts=IN_PROCESS_ONLY)
def try_upward_rounding(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check a host that rounds upward: the motion is nearly the same, and the mode is restored."""
    upward_mode = _UPWARD_ROUNDING_MODES.get(_processor_architecture())
    library = load_c_rounding_mode_library()
    if upward_mode is None or library is None or fixture.flag("needsExecutionTool"):
        return
    variables = fixture.variables_to_try
    with fixture.open_instance() as instance:
        expected_run = run_as_interface_type(fixture, instance, variables, steps=SHORT_RUN_STEPS)
    library.fesetround(upward_mode)
    try:
        with fixture.open_instance() as instance:
            upward_run = run_as_interface_type(fixture, instance, variables, steps=SHORT_RUN_STEPS)
        final_mode = int(library.fegetround())
    finally:
        library.fesetround(0)
    if final_mode != upward_mode:
        yield RuleViolation(
            "host.restored", "the rounding mode that the host had set has changed after a run", fixture.interface
        )
    for index, variable in enumerate(variables):
        expected, upward_value = expected_run.values[-1][index], upward_run.values[-1][index]
        if (
            not isinstance(expected, float)
            or not isinstance(upward_value, float)
            or _agree(expected, upward_value, 1e-4, fixture.typical_magnitude(variable))
        ):
            continue
        other_steps = _run_with_other_steps(fixture, variables)[index]
        if isinstance(other_steps, float) and abs(expected - upward_value) < ROUNDING_TOLERANCE * abs(
            expected - other_steps
        ):
            continue
        yield RuleViolation(
            "host.rounding",
            f"ends at {upward_value:.9g} instead of {expected:.9g} if the host rounds upward",
            fixture.format_finding_location(variable),
        )
        return


ROUNDING_TOLERANCE = 10.0
"""How much more than other steps another rounding may change what the auditor itself integrates: it shifts them."""


def _run_with_other_steps(fixture: TrialFixture, variables: Sequence[DescribedVariable]) -> Sequence[Value]:
    """Return the values at the end of the short run in other integrator steps; in Co-Simulation they are the FMU's."""
    with fixture.open_instance() as instance:
        if fixture.interface == "CoSimulation":
            return run_as_interface_type(fixture, instance, variables, steps=SHORT_RUN_STEPS).values[-1]
        return run_model_exchange(fixture, instance, variables, tolerance=3e-7, steps=SHORT_RUN_STEPS).values[-1]


def _agree(first: float, second: float, permitted_relative_difference: float, scale: float) -> bool:
    """Return whether two numbers agree; below 1e-3 of the variable's `scale` differences count as absolute."""
    if math.isnan(first) and math.isnan(second):
        return True
    return abs(first - second) <= permitted_relative_difference * max(abs(first), abs(second), 1e-3 * scale)


def _install_comma_locale(folder: Path) -> str | None:
    """Return a locale of glibc's format with a decimal comma, made for this trial: few machines have one installed."""
    entries = (b",\0", b"\0", b"\x7f\0", b",\0\0\0", b"\0\0\0\0", b"UTF-8\0")
    header_size = 8 + 4 * len(entries)
    body, offsets = b"", []
    for entry in entries:
        body += b"\0" * (-(header_size + len(body)) % 4)
        offsets.append(header_size + len(body))
        body += entry
    locale_folder = folder / "locales" / "xx_XX"
    locale_folder.mkdir(parents=True, exist_ok=True)
    (locale_folder / "LC_NUMERIC").write_bytes(
        struct.pack(f"=II{len(entries)}I", 0x20031115 ^ locale.LC_NUMERIC, len(entries), *offsets) + body
    )
    os.environ["LOCPATH"] = str(locale_folder.parent)
    for name in ("xx_XX", *_COMMA_LOCALES):
        with suppress(locale.Error):
            locale.setlocale(locale.LC_NUMERIC, name)
            if locale.localeconv()["decimal_point"] == ",":
                return name
        os.environ.pop("LOCPATH", None)
    return None


@register_trial("another locale", "host.locale", "host.restored", crash_rule="host.locale", hosts=IN_PROCESS_ONLY)
def try_decimal_comma_locale(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check a locale with decimal commas: numbers in strings and messages must not change the motion."""
    variables = fixture.variables_to_try
    with fixture.open_instance() as instance:
        expected_run = run_as_interface_type(fixture, instance, variables, steps=SHORT_RUN_STEPS)
    old_locale = locale.setlocale(locale.LC_NUMERIC)
    try:
        if _install_comma_locale(fixture.folder.parent) is None:
            fixture.skipped.append(f"{fixture.interface}: another locale: none with a decimal comma can be had here")
            return
        with fixture.open_instance() as instance:
            comma_run: RecordedTrialRun = run_as_interface_type(fixture, instance, variables, steps=SHORT_RUN_STEPS)
        final_decimal_point = locale.localeconv()["decimal_point"]
    finally:
        locale.setlocale(locale.LC_NUMERIC, old_locale)
        os.environ.pop("LOCPATH", None)
    difference = find_first_run_difference(variables, expected_run, comma_run)
    if difference:
        yield RuleViolation(
            "host.locale", f'"{difference[0].name}" differs in a locale with a decimal comma', fixture.interface
        )
    if final_decimal_point != ",":
        yield RuleViolation("host.restored", "the locale of the host has changed after a run", fixture.interface)


_initial_settings: list[ProcessSettings] = []


def record_initial_process_settings() -> None:
    """Note the settings before the library is loaded: loading may change them, too."""
    allow_all_processors()
    restore_broken_pipe_signal()
    _initial_settings[:] = [read_process_settings()]


@register_trial("an ordinary host", "host.restored", hosts=IN_PROCESS_ONLY)
def try_unchanged_host_settings(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that rounding mode, traps, locale, working folder, signal handlers and more stay as they are.

    They are compared also while the instance exists, since its host continues beside it, and after a whole run, since
    what an event changes is seen only then.
    """
    settings_before = (_initial_settings or [read_process_settings()])[0]
    set_rounding_to_nearest()  # as a host has it; trials before this one may have left another mode
    processors = settings_before.get(PROCESSOR_SET)
    if isinstance(processors, frozenset) and len(processors) == 1:
        fixture.skipped.append(
            f"{fixture.interface}: whether it pins its host to one processor: this machine gives no second"
        )
    changed_settings: set[str] = set()
    for steps, duration_text in ((2, ""), (None, " to the stop time")):
        with fixture.open_instance() as instance:
            run_as_interface_type(fixture, instance, fixture.variables_to_try, steps=steps)
            settings_during = read_process_settings()
            instance.terminate()
        for settings_after, moment in (
            (settings_during, f"while an instance runs{duration_text}"),
            (read_process_settings(), f"after a run{duration_text}"),
        ):
            for setting in settings_before.keys() - changed_settings:
                if settings_after.get(setting, settings_before[setting]) != settings_before[setting]:
                    changed_settings.add(setting)
                    yield RuleViolation(
                        "host.restored", f"{setting} of the host is another one {moment}", fixture.interface
                    )


@register_trial("unloading the library", "life.unload", crash_rule="life.unload", runs_last=True, hosts=IN_PROCESS_ONLY)
def try_unloading_library(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that unloading the library does not crash."""
    try:
        from _ctypes import dlclose
    except ImportError:
        fixture.mark_inapplicable("life.unload", "libraries are not unloaded on this system")
        return
    handle = fixture.library.handle._handle  # noqa: SLF001  ctypes has no other way
    with fixture.library.trial_budget.observe_call("unloading the library"):
        dlclose(handle)
    yield from ()
