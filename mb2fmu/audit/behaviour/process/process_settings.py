"""Settings of a process that a library can change for all its users."""

from __future__ import annotations

import ctypes as c
import errno
import locale
import os
import platform
import signal
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

Settings = dict[str, object]
PROCESSORS = "the set of processors"
_NEVER = ("SIGKILL", "SIGSTOP")
"""Nobody can handle these."""

_LIMITS = ("RLIMIT_STACK", "RLIMIT_NOFILE", "RLIMIT_CPU", "RLIMIT_DATA")


class _Action(c.Structure):
    """struct sigaction up to the handler, with room for the rest."""

    _fields_ = (("handler", c.c_void_p), ("rest", c.c_ubyte * 248))


@cache
def load_c_math_library() -> c.CDLL | None:
    """Return the library that knows rounding modes and traps; None where there is none by that name."""
    if sys.platform != "linux":
        return None
    with suppress(OSError):
        return c.CDLL("libm.so.6")
    return None


def set_rounding_to_nearest() -> None:
    """Set rounding to nearest, as hosts have it."""
    library = load_c_math_library()
    if library is not None:
        library.fesetround(0)


def _handlers() -> Iterator[int]:
    """Yield the handler of each signal as an address, 0 for the default, 1 where it is ignored."""
    for each in sorted(signal.valid_signals()):
        if getattr(each, "name", "") in _NEVER:
            continue
        action = _Action()
        c.CDLL(None).sigaction(int(each), None, c.byref(action))
        yield action.handler or 0


_PRECISION = 0x300
"""Bits of the x87 control word: how many bits a number of extended precision is rounded to."""


def _extended_precision(library: c.CDLL) -> int:
    """Return the precision of extended arithmetic on x86 processors; -1 where there is none to set."""
    room = c.create_string_buffer(256)  # fenv_t: it begins with the control word there
    if platform.machine() not in {"x86_64", "AMD64"} or library.fegetenv(room):
        return -1
    return int.from_bytes(room.raw[:2], "little") & _PRECISION


def _cancellable() -> int:
    """Return whether this thread can be cancelled, as the C library numbers it."""
    libc, found = c.CDLL(None), c.c_int()
    libc.pthread_setcancelstate(0, c.byref(found))
    libc.pthread_setcancelstate(found, None)
    return found.value


def _environment() -> tuple[tuple[bytes, bytes], ...]:
    """Return the environment variables that the C library has; Python keeps a copy of its own."""
    pointer = c.POINTER(c.c_char_p).in_dll(c.CDLL(None), "environ")
    found, place = [], 0
    while pointer and pointer[place]:
        name, _, value = (pointer[place] or b"").partition(b"=")
        found.append((name, value))
        place += 1
    return tuple(sorted(found))


def restore_broken_pipe_signal() -> None:
    """Let a broken pipe end this process, as in hosts written in C; Python ignores it: who does so would not show."""
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)


def allow_all_processors() -> None:
    """Let this process run on every processor of the machine, if it may on one only: who pins it would not show."""
    if hasattr(os, "sched_setaffinity") and len(os.sched_getaffinity(0)) == 1:
        with suppress(OSError):
            os.sched_setaffinity(0, range(os.cpu_count() or 1))


def read_process_settings() -> Settings:
    """Return everything that a library can change for the process or its thread, as far as the system tells."""
    small = sys.float_info.min
    found: Settings = {
        "the locale": locale.setlocale(locale.LC_ALL),
        "arithmetic with denormal numbers": struct.pack(
            "d", small * 0.5
        ),  # as bytes: such a mode holds it equal to zero
    }
    with suppress(OSError):
        found["the working folder"] = str(Path.cwd())
    library = load_c_math_library()
    if library is not None:
        found["the rounding mode"] = int(library.fegetround())
        found["the set of floating-point traps"] = int(library.fegetexcept())
        found["the precision of extended arithmetic"] = _extended_precision(library)
        found["the handler of a signal"] = tuple(_handlers())
        found["whether a thread can be cancelled"] = _cancellable()
        found["the environment"] = _environment()
    if os.name == "posix":
        import resource

        mask = os.umask(0)
        os.umask(mask)
        found["the mask of file modes"] = mask
        found["a timer"] = tuple(
            signal.getitimer(each)[0] > 0.0 for each in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL)
        )
        found["the mask of signals"] = frozenset(signal.pthread_sigmask(signal.SIG_BLOCK, ()))
        found["a limit of the process"] = tuple(resource.getrlimit(getattr(resource, name)) for name in _LIMITS)
        found["the priority"] = os.getpriority(os.PRIO_PROCESS, 0)
        found["a standard descriptor"] = tuple(map(_leads_to, range(3)))
    if hasattr(os, "sched_getaffinity"):
        found[PROCESSORS] = frozenset(os.sched_getaffinity(0))
    return found


def _leads_to(number: int) -> tuple[int, int, int] | None:
    """Return what a descriptor leads to: numbers of device and file, and of the device that it is; None: closed."""
    try:
        seen = os.fstat(number)
    except OSError:
        return None
    return seen.st_dev, seen.st_ino, seen.st_rdev


def _is_open(number: int) -> bool:
    """Return whether a descriptor is open."""
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def list_open_descriptors() -> int | None:
    """Count the open descriptors; None where the system does not tell."""
    listed = Path("/proc/self/fd")
    try:
        return len(list(listed.iterdir()))
    except OSError as error:
        if error.errno != errno.EMFILE:
            return None
    import resource

    return sum(map(_is_open, range(resource.getrlimit(resource.RLIMIT_NOFILE)[0])))  # none is left to list them with


MOST_OPEN = 200
"""Descriptors that an FMU leaves open: the auditor's own are a dozen."""

MOST_THREADS = max(50, 4 * (os.cpu_count() or 1))
"""Threads that an FMU leaves: libraries that compute in parallel keep one for each processor, some of them two."""


def describe_exhausted_resources() -> str:
    """Say which resources of this process the FMU has nearly used up; empty if none."""
    for number, most, what in (
        (list_open_descriptors(), MOST_OPEN, "descriptors"),
        (count_own_threads(), MOST_THREADS, "threads"),
    ):
        if number is not None and number > most:
            return f"{number} {what} are there, left by what was tried before: a process can have so many only"
    return ""


def count_own_threads() -> int | None:
    """Count the threads; None where the system does not tell."""
    with suppress(OSError):
        return len(list(Path("/proc/self/task").iterdir()))
    return None
