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

ProcessSettings = dict[str, object]
PROCESSOR_SET = "the set of processors"
_UNHANDLED_SIGNALS = ("SIGKILL", "SIGSTOP")
"""Nobody can handle these."""

_RESOURCE_LIMITS = ("RLIMIT_STACK", "RLIMIT_NOFILE", "RLIMIT_CPU", "RLIMIT_DATA")


class _SignalAction(c.Structure):
    """struct sigaction up to the handler, with room for the rest."""

    _fields_ = (("handler", c.c_void_p), ("rest", c.c_ubyte * 248))


@cache
def load_c_rounding_mode_library() -> c.CDLL | None:
    """Return the library that knows rounding modes and traps; None where there is none by that name."""
    if sys.platform != "linux":
        return None
    with suppress(OSError):
        return c.CDLL("libm.so.6")
    return None


def set_rounding_to_nearest() -> None:
    """Set rounding to nearest, as hosts have it."""
    library = load_c_rounding_mode_library()
    if library is not None:
        library.fesetround(0)


def _list_signal_handlers() -> Iterator[int]:
    """Yield the handler of each signal as an address, 0 for the default, 1 where it is ignored."""
    libc = c.CDLL(None)
    for signal_number in sorted(signal.valid_signals()):
        if getattr(signal_number, "name", "") in _UNHANDLED_SIGNALS:
            continue
        action = _SignalAction()
        libc.sigaction(int(signal_number), None, c.byref(action))
        yield action.handler or 0


_PRECISION_MASK = 0x300
"""Bits of the x87 control word: how many bits a number of extended precision is rounded to."""


def _read_extended_precision(library: c.CDLL) -> int:
    """Return the precision of extended arithmetic on x86 processors; -1 where there is none to set."""
    buffer = c.create_string_buffer(256)  # fenv_t: it begins with the control word there
    if platform.machine() not in {"x86_64", "AMD64"} or library.fegetenv(buffer):
        return -1
    return int.from_bytes(buffer.raw[:2], "little") & _PRECISION_MASK


def _read_cancel_state() -> int:
    """Return whether this thread can be cancelled, as the C library numbers it."""
    libc, state = c.CDLL(None), c.c_int()
    libc.pthread_setcancelstate(0, c.byref(state))
    libc.pthread_setcancelstate(state, None)
    return state.value


def _read_c_environment() -> tuple[tuple[bytes, bytes], ...]:
    """Return the environment variables that the C library has; Python keeps a copy of its own."""
    pointer = c.POINTER(c.c_char_p).in_dll(c.CDLL(None), "environ")
    variables, index = [], 0
    while pointer and pointer[index]:
        name, _, value = (pointer[index] or b"").partition(b"=")
        variables.append((name, value))
        index += 1
    return tuple(sorted(variables))


def restore_broken_pipe_signal() -> None:
    """Let a broken pipe end this process, as in hosts written in C; with it ignored a change by the FMU is hidden."""
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)


def allow_all_processors() -> None:
    """Let this process run on every processor, if it may use only one: pinning by the FMU would not show."""
    if hasattr(os, "sched_setaffinity") and len(os.sched_getaffinity(0)) == 1:
        with suppress(OSError):
            os.sched_setaffinity(0, range(os.cpu_count() or 1))


def read_process_settings() -> ProcessSettings:
    """Return everything that a library can change for the process or its thread, as far as the system reports it."""
    smallest_normal = sys.float_info.min
    settings: ProcessSettings = {
        "the locale": locale.setlocale(locale.LC_ALL),
        "arithmetic with denormal numbers": struct.pack(
            "d", smallest_normal * 0.5
        ),  # as bytes: such a mode holds it equal to zero
    }
    with suppress(OSError):
        settings["the working folder"] = str(Path.cwd())
    library = load_c_rounding_mode_library()
    if library is not None:
        settings["the rounding mode"] = int(library.fegetround())
        settings["the set of floating-point traps"] = int(library.fegetexcept())
        settings["the precision of extended arithmetic"] = _read_extended_precision(library)
        settings["the handler of a signal"] = tuple(_list_signal_handlers())
        settings["whether a thread can be cancelled"] = _read_cancel_state()
        settings["the environment"] = _read_c_environment()
    if os.name == "posix":
        import resource

        file_mode_mask = os.umask(0)
        os.umask(file_mode_mask)
        settings["the mask of file modes"] = file_mode_mask
        settings["a timer"] = tuple(
            signal.getitimer(timer)[0] > 0.0 for timer in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL)
        )
        settings["the mask of signals"] = frozenset(signal.pthread_sigmask(signal.SIG_BLOCK, ()))
        settings["a limit of the process"] = tuple(
            resource.getrlimit(getattr(resource, name)) for name in _RESOURCE_LIMITS
        )
        settings["the priority"] = os.getpriority(os.PRIO_PROCESS, 0)
        settings["a standard descriptor"] = tuple(map(_identify_descriptor, range(3)))
    if hasattr(os, "sched_getaffinity"):
        settings[PROCESSOR_SET] = frozenset(os.sched_getaffinity(0))
    return settings


def _identify_descriptor(descriptor: int) -> tuple[int, int, int] | None:
    """Return device, inode and device number of a descriptor's target; None if it is closed."""
    try:
        status = os.fstat(descriptor)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_rdev


def _is_open(descriptor: int) -> bool:
    """Return whether a descriptor is open."""
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def count_open_descriptors() -> int | None:
    """Count the open descriptors; None where the system does not report them."""
    try:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208  asked twice a trial: a path for each takes longer
    except OSError as error:
        if error.errno != errno.EMFILE:
            return None
    import resource

    return sum(map(_is_open, range(resource.getrlimit(resource.RLIMIT_NOFILE)[0])))  # none is left to list them with


MAX_OPEN_DESCRIPTORS = 200
"""Descriptors that an FMU leaves open: the auditor's own are a dozen."""

MAX_THREADS = max(50, 4 * (os.cpu_count() or 1))
"""Threads that an FMU leaves: libraries that compute in parallel keep one for each processor, some of them two."""


def describe_exhausted_resources() -> str:
    """Say which resources of this process the FMU has nearly used up; empty if none."""
    for count, limit, name in (
        (count_open_descriptors(), MAX_OPEN_DESCRIPTORS, "descriptors"),
        (count_own_threads(), MAX_THREADS, "threads"),
    ):
        if count is not None and count > limit:
            return f"{count} {name} are there, left by what was tried before: a process can have so many only"
    return ""


def count_own_threads() -> int | None:
    """Count the threads; None where the system does not report them."""
    with suppress(OSError):  # of one line: an FMU whose threads have used up the memory is asked, too
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(status.partition("Threads:")[2].split(maxsplit=1)[0])
    return None
