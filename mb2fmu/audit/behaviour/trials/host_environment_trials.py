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

from mb2fmu.audit.behaviour.fixture.short_runs import (
    ShortRun,
    find_first_difference,
    run_co_simulation,
    run_interface_type,
    run_model_exchange,
)
from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture
from mb2fmu.audit.behaviour.fixture.trial_registry import NEAR, probe
from mb2fmu.audit.behaviour.instance.fmi_types import RefusedCallError, Value
from mb2fmu.audit.behaviour.process.process_settings import (
    PROCESSORS,
    Settings,
    allow_all_processors,
    load_c_math_library,
    read_process_settings,
    restore_broken_pipe_signal,
    set_rounding_to_nearest,
)
from mb2fmu.audit.behaviour.process.time_budget import SkippedTrialError
from mb2fmu.audit.behaviour.trials.life_cycle_trials import SHORT
from mb2fmu.audit.description.description_records import DescribedVariable
from mb2fmu.audit.findings import Observation

_UPWARD = {"x86_64": 0x800, "aarch64": 0x400000}
_INVALID_ZERO_OVERFLOW = {"x86_64": 0x01 | 0x04 | 0x08, "aarch64": 0x1 | 0x2 | 0x4}
_LOCALES = ("de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "fr_FR.utf8", "de_DE", "es_ES.UTF-8", "it_IT.UTF-8")


def _machine() -> str:
    """Return the processor's architecture."""
    import platform

    return platform.machine()


@probe("a host with floating-point traps on", "host.traps", "host.restored", crash="host.traps", where=NEAR)
def try_floating_point_traps(stage: TrialFixture) -> Iterator[Observation]:
    """Check a host with floating-point traps: an invalid operation would kill its process."""
    bits = _INVALID_ZERO_OVERFLOW.get(_machine())
    if bits is None or load_c_math_library() is None or stage.flag("needsExecutionTool"):
        return
    trapping = replace(stage, library=replace(stage.library, traps=bits))
    lost = False
    with trapping.instance() as instance:
        run_interface_type(trapping, instance, stage.variables, steps=2)
        lost = instance.traps_lost
    for variable in stage.inputs[:1]:
        with trapping.instance() as instance, suppress(RefusedCallError, SkippedTrialError):
            trapping.initialize(instance, within={variable: math.inf})
            if stage.kind == "CoSimulation":
                run_co_simulation(trapping, instance, (), steps=1, first=False)
            elif stage.n_states:
                instance.slopes(stage.n_states)
    if lost:
        yield Observation("host.restored", "floating-point traps that the host had on are off after a call", stage.kind)


@probe("another rounding mode", "host.rounding", "host.restored", where=NEAR)
def try_upward_rounding(stage: TrialFixture) -> Iterator[Observation]:
    """Check a host that rounds upward: the motion is nearly the same, and the mode is restored."""
    upward = _UPWARD.get(_machine())
    library = load_c_math_library()
    if upward is None or library is None or stage.flag("needsExecutionTool"):
        return
    variables = stage.variables
    with stage.instance() as instance:
        usual = run_interface_type(stage, instance, variables, steps=SHORT)
    library.fesetround(upward)
    try:
        with stage.instance() as instance:
            found = run_interface_type(stage, instance, variables, steps=SHORT)
        left = int(library.fegetround())
    finally:
        library.fesetround(0)
    if left != upward:
        yield Observation(
            "host.restored", "the rounding mode that the host had set has changed after a run", stage.kind
        )
    for k, variable in enumerate(variables):
        a, b = usual.rows[-1][k], found.rows[-1][k]
        if not isinstance(a, float) or not isinstance(b, float) or _near(a, b, 1e-4, stage.scale(variable)):
            continue
        c = _in_other_steps(stage, variables)[k]
        if isinstance(c, float) and abs(a - b) < OF_STEPS * abs(a - c):
            continue
        yield Observation(
            "host.rounding",
            f"ends at {b:.9g} instead of {a:.9g} if the host rounds upward",
            f'{stage.kind}, "{variable.name}"',
        )
        return


OF_STEPS = 10.0
"""How much more than other steps another rounding may change what the auditor itself integrates: it shifts them."""


def _in_other_steps(stage: TrialFixture, variables: Sequence[DescribedVariable]) -> Sequence[Value]:
    """Return the values at the end of the short run in other integrator steps; in Co-Simulation they are the FMU's."""
    with stage.instance() as instance:
        if stage.kind == "CoSimulation":
            return run_interface_type(stage, instance, variables, steps=SHORT).rows[-1]
        return run_model_exchange(stage, instance, variables, tolerance=3e-7, steps=SHORT).rows[-1]


def _near(first: float, second: float, relative: float, scale: float) -> bool:
    """Return whether two numbers agree; below 1e-3 of the variable's `scale` differences count as absolute."""
    if math.isnan(first) and math.isnan(second):
        return True
    return abs(first - second) <= relative * max(abs(first), abs(second), 1e-3 * scale)


def _comma(folder: Path) -> str | None:
    """Return a locale of glibc's format with a decimal comma, made for this trial: few machines have one installed."""
    texts = (b",\0", b"\0", b"\x7f\0", b",\0\0\0", b"\0\0\0\0", b"UTF-8\0")
    head = 8 + 4 * len(texts)
    body, places = b"", []
    for text in texts:
        body += b"\0" * (-(head + len(body)) % 4)
        places.append(head + len(body))
        body += text
    home = folder / "locales" / "xx_XX"
    home.mkdir(parents=True, exist_ok=True)
    (home / "LC_NUMERIC").write_bytes(
        struct.pack(f"=II{len(texts)}I", 0x20031115 ^ locale.LC_NUMERIC, len(texts), *places) + body
    )
    os.environ["LOCPATH"] = str(home.parent)
    for name in ("xx_XX", *_LOCALES):
        with suppress(locale.Error):
            locale.setlocale(locale.LC_NUMERIC, name)
            if locale.localeconv()["decimal_point"] == ",":
                return name
        os.environ.pop("LOCPATH", None)
    return None


@probe("another locale", "host.locale", "host.restored", crash="host.locale", where=NEAR)
def try_decimal_comma_locale(stage: TrialFixture) -> Iterator[Observation]:
    """Check a locale with decimal commas: numbers in strings and messages must not change the motion."""
    variables = stage.variables
    with stage.instance() as instance:
        usual = run_interface_type(stage, instance, variables, steps=SHORT)
    before = locale.setlocale(locale.LC_NUMERIC)
    try:
        if _comma(stage.folder.parent) is None:
            stage.skipped.append(f"{stage.kind}: another locale: none with a decimal comma can be had here")
            return
        with stage.instance() as instance:
            found: ShortRun = run_interface_type(stage, instance, variables, steps=SHORT)
        left = locale.localeconv()["decimal_point"]
    finally:
        locale.setlocale(locale.LC_NUMERIC, before)
        os.environ.pop("LOCPATH", None)
    different = find_first_difference(variables, usual, found)
    if different:
        yield Observation("host.locale", f'"{different[0].name}" differs in a locale with a decimal comma', stage.kind)
    if left != ",":
        yield Observation("host.restored", "the locale of the host has changed after a run", stage.kind)


_before: list[Settings] = []


def note_process_settings() -> None:
    """Note the settings before the library is loaded: loading may change them, too."""
    allow_all_processors()
    restore_broken_pipe_signal()
    _before[:] = [read_process_settings()]


@probe("an ordinary host", "host.restored", where=NEAR)
def try_restored_settings(stage: TrialFixture) -> Iterator[Observation]:
    """Check that rounding mode, traps, locale, working folder, signal handlers and more stay as they are.

    They are looked at while the instance is there, too, since its host goes on beside it; and after a whole run, since
    what an event changes is seen only then.
    """
    before = (_before or [read_process_settings()])[0]
    set_rounding_to_nearest()  # as a host has it; trials before this one may have left another mode
    only = before.get(PROCESSORS)
    if isinstance(only, frozenset) and len(only) == 1:
        stage.skipped.append(f"{stage.kind}: whether it pins its host to one processor: this machine gives no second")
    seen: set[str] = set()
    for steps, how in ((2, ""), (None, " to the stop time")):
        with stage.instance() as instance:
            run_interface_type(stage, instance, stage.variables, steps=steps)
            beside = read_process_settings()
            instance.terminate()
        for after, when in ((beside, f"while an instance runs{how}"), (read_process_settings(), f"after a run{how}")):
            for what in before.keys() - seen:
                if after.get(what, before[what]) != before[what]:
                    seen.add(what)
                    yield Observation("host.restored", f"{what} of the host is another one {when}", stage.kind)


@probe("unloading the library", "life.unload", crash="life.unload", late=True, where=NEAR)
def try_unloading(stage: TrialFixture) -> Iterator[Observation]:
    """Check that unloading the library does not crash."""
    try:
        from _ctypes import dlclose
    except ImportError:
        stage.nothing("life.unload", "libraries are not unloaded on this system")
        return
    handle = stage.library.handle._handle  # noqa: SLF001  ctypes has no other way
    with stage.library.pace.calling("unloading the library"):
        dlclose(handle)
    yield from ()
