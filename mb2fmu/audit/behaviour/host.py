"""Unusual hosts: floating-point traps, other rounding, another locale, an awkward path; nothing of it is changed."""

from __future__ import annotations

import ctypes as c
import locale
import math
import os
import signal
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from mb2fmu.audit.behaviour.binding import RefusedError, Value
from mb2fmu.audit.behaviour.life import SHORT
from mb2fmu.audit.behaviour.probe import probe
from mb2fmu.audit.behaviour.simulation import Run, cosimulate, differing, run
from mb2fmu.audit.behaviour.stage import SkippedError, Stage
from mb2fmu.audit.finding import Observation

_UPWARD = {"x86_64": 0x800, "aarch64": 0x400000}
_INVALID_ZERO_OVERFLOW = {"x86_64": 0x01 | 0x04 | 0x08, "aarch64": 0x1 | 0x2 | 0x4}
_LOCALES = ("de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "fr_FR.utf8", "de_DE", "es_ES.UTF-8", "it_IT.UTF-8")


def _machine() -> str:
    import platform

    return platform.machine()


def _math() -> c.CDLL:
    return c.CDLL("libm.so.6")


@probe("a host with floating-point traps on", "host.traps", "host.restored", crash="host.traps")
def traps(stage: Stage) -> Iterator[Observation]:
    """An operation that gives no number kills the process of such a host, unless the unit looks after itself."""
    bits = _INVALID_ZERO_OVERFLOW.get(_machine())
    if bits is None or stage.flag("needsExecutionTool"):
        return
    trapping = replace(stage, library=replace(stage.library, traps=bits))
    lost = False
    with trapping.instance() as instance:
        run(trapping, instance, stage.variables, steps=2)
        lost = instance.traps_lost
    for variable in stage.inputs[:1]:
        with trapping.instance() as instance, suppress(RefusedError, SkippedError):
            trapping.initialize(instance, within={variable: math.inf})
            if stage.kind == "CoSimulation":
                cosimulate(trapping, instance, (), steps=1, first=False)
            elif stage.n_states:
                instance.slopes(stage.n_states)
    if lost:
        yield Observation("host.restored", "floating-point traps that the host had on are off after a call", stage.kind)


@probe("another rounding mode", "host.rounding", "host.restored")
def rounding(stage: Stage) -> Iterator[Observation]:
    """A host that rounds upward: the motion is nearly the same, and so is the mode afterwards."""
    upward = _UPWARD.get(_machine())
    if upward is None or stage.flag("needsExecutionTool"):
        return
    variables = stage.variables
    with stage.instance() as instance:
        usual = run(stage, instance, variables, steps=SHORT)
    library = _math()
    library.fesetround(upward)
    try:
        with stage.instance() as instance:
            found = run(stage, instance, variables, steps=SHORT)
        left = int(library.fegetround())
    finally:
        library.fesetround(0)
    if left != upward:
        yield Observation(
            "host.restored", "the rounding mode that the host had set is another one after a run", stage.kind
        )
    for k, variable in enumerate(variables):
        a, b = usual.rows[-1][k], found.rows[-1][k]
        if isinstance(a, float) and isinstance(b, float) and not _near(a, b, 1e-4, stage.scale(variable)):
            yield Observation(
                "host.rounding",
                f"ends at {b:.9g} instead of {a:.9g} if the host rounds upward",
                f'{stage.kind}, "{variable.name}"',
            )
            return


def _near(first: float, second: float, relative: float, scale: float) -> bool:
    if math.isnan(first) and math.isnan(second):
        return True
    return abs(first - second) <= relative * max(abs(first), abs(second), 1e-3 * scale)


def _comma(folder: Path) -> str | None:
    """A locale of glibc's format with a decimal comma, made for this trial: few machines have one installed."""
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


@probe("another locale", "host.locale", "host.restored", crash="host.locale")
def other_locale(stage: Stage) -> Iterator[Observation]:
    """Where a comma separates decimals, numbers in strings and messages must not change the motion."""
    variables = stage.variables
    with stage.instance() as instance:
        usual = run(stage, instance, variables, steps=SHORT)
    before = locale.setlocale(locale.LC_NUMERIC)
    try:
        if _comma(stage.folder.parent) is None:
            stage.skipped.append(f"{stage.kind}: another locale: none with a decimal comma can be had here")
            return
        with stage.instance() as instance:
            found: Run = run(stage, instance, variables, steps=SHORT)
        left = locale.localeconv()["decimal_point"]
    finally:
        locale.setlocale(locale.LC_NUMERIC, before)
        os.environ.pop("LOCPATH", None)
    different = differing(variables, usual, found)
    if different:
        yield Observation("host.locale", f'"{different[0].name}" differs in a locale with a decimal comma', stage.kind)
    if left != ",":
        yield Observation("host.restored", "the locale of the host is another one after a run", stage.kind)


_SETTINGS = ("the rounding mode", "the locale", "the working folder", "arithmetic with denormal numbers",
             "the handler of a signal")  # fmt: skip
_before: list[tuple[Value, ...]] = []


class _Action(c.Structure):
    """struct sigaction, as far as the handler; the rest is room enough."""

    _fields_ = (("handler", c.c_void_p), ("rest", c.c_ubyte * 248))


def _handlers() -> Iterator[int]:
    for number in (signal.SIGABRT, signal.SIGFPE, signal.SIGILL, signal.SIGINT, signal.SIGSEGV, signal.SIGTERM):
        action = _Action()
        c.CDLL(None).sigaction(int(number), None, c.byref(action))
        yield action.handler or 0


def _settings() -> tuple[Value, ...]:
    """What a library can change for the whole process, or for its thread."""
    small = sys.float_info.min
    return (
        int(_math().fegetround()),
        locale.setlocale(locale.LC_ALL).encode(),
        str(Path.cwd()).encode(),
        struct.pack("d", small * 0.5),  # compared as bytes: such a mode holds it equal to zero
        tuple(_handlers()),
    )


def remember() -> None:
    """Notes the settings before the library is loaded: loading it, too, may change them."""
    _before[:] = [_settings()]


@probe("an ordinary host", "host.restored")
def restored(stage: Stage) -> Iterator[Observation]:
    """Rounding mode, traps, locale, working folder and handlers of signals are the host's, and stay as they are."""
    library = _math()
    before = (_before or [_settings()])[0]
    traps_before = int(library.fegetexcept())
    library.fesetround(0)  # as a host has it; trials before this one may have left another mode
    with stage.instance() as instance:
        run(stage, instance, stage.variables, steps=2)
    after = _settings()
    for what, a, b in zip(_SETTINGS, before, after, strict=True):
        if a != b:
            yield Observation("host.restored", f"{what} of the host is another one after a run", stage.kind)
    if int(library.fegetexcept()) != traps_before:
        yield Observation("host.restored", "the floating-point traps of the host are others after a run", stage.kind)
