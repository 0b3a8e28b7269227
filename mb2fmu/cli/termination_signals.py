"""End the command line by an exception when the system ends it, so that its work is cleaned up."""

from __future__ import annotations

import signal
from types import FrameType

INTERRUPTED = 130


class Terminated(KeyboardInterrupt):
    """The process was told to end.

    Args:
        number: The signal's.
    """

    def __init__(self, number: int) -> None:
        super().__init__(f"ended by {signal.Signals(number).name}")
        self.number = number


def exit_code(error: KeyboardInterrupt) -> int:
    """Return the exit code of a process that a signal ended: 128 and the signal's number."""
    return 128 + error.number if isinstance(error, Terminated) else INTERRUPTED


def end_with_exceptions() -> None:
    """Raise ``Terminated`` in the main thread on the first request to end, so that cleaning up continues."""
    for name in ("SIGTERM", "SIGHUP", "SIGBREAK"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _raise)


def _raise(number: int, _frame: FrameType | None) -> None:
    """Raise; ignore further such signals."""
    signal.signal(number, signal.SIG_IGN)
    raise Terminated(number)
