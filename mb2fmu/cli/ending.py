"""How the command line ends when others end it: as an exception, so that nothing of its work is left behind."""

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
    """What shells expect of a process that a signal ended: 128 and the signal's number."""
    return 128 + error.number if isinstance(error, Terminated) else INTERRUPTED


def end_with_exceptions() -> None:
    """Lets the system's requests to end raise ``Terminated`` in the main thread, once, so that cleaning up goes on."""
    for name in ("SIGTERM", "SIGHUP", "SIGBREAK"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _raise)


def _raise(number: int, _frame: FrameType | None) -> None:
    """Raises; further such signals are ignored from now on."""
    signal.signal(number, signal.SIG_IGN)
    raise Terminated(number)
