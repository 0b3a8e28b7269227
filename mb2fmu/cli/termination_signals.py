"""``TerminationSignal``: a request to end the process, raised in the main thread so that cleaning up continues."""

from __future__ import annotations

import signal
import threading
import weakref
from types import FrameType

_INTERRUPTED_EXIT_CODE = 130
_PAUSE_S = 0.02
"""In s, until a signal is sent again: whoever caught it has gone on by then."""


class TerminationSignal(KeyboardInterrupt):
    """The process was requested to end.

    Args:
        number: The signal's.
    """

    def __init__(self, number: int) -> None:
        super().__init__(f"ended by {signal.Signals(number).name}")
        self.number = number


class _TerminationRequest:
    """Raises the exception of a request once, and again where it was caught on its way; ignores further signals.

    Code of others may catch every exception, or has no caller to raise it to: extension modules while they are
    imported, ``__del__``, a bare ``except`` in a script. An exception that is gone before it has reached the command
    was caught in such a place, and the signal is sent again.
    """

    def __init__(self) -> None:
        self._error: weakref.ref[TerminationSignal] | None = None
        self._arrived = False

    def raise_error(self, number: int, _frame: FrameType | None) -> None:
        """Handle a signal.

        Raises:
            TerminationSignal: Unless one is on its way, or has arrived.
        """
        if self._arrived or self._error is not None:
            return
        raise self._make_error(number)

    def arrive(self) -> None:
        """Raise no more."""
        self._arrived = True

    def _make_error(self, number: int) -> TerminationSignal:
        """Return the exception; no frame that its traceback holds may hold it, or it would be gone much later."""
        error = TerminationSignal(number)
        self._error = weakref.ref(error, lambda _gone: self._send_again(number))
        return error

    def _send_again(self, number: int) -> None:
        """Send the signal again, from another thread: here it would be raised where its exception is removed."""
        self._error = None
        if not self._arrived:
            thread = threading.Thread(target=_signal_main_thread, args=(number,), daemon=True)
            thread.start()


def _signal_main_thread(number: int) -> None:
    """Send a signal to the main thread; on Windows, where threads have none, to the process."""
    threading.Event().wait(_PAUSE_S)
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, number)
    else:
        signal.raise_signal(number)


_request = _TerminationRequest()


def get_signal_exit_code(error: KeyboardInterrupt) -> int:
    """Return the exit code of a command that a signal ended, 128 and the signal's number; raise no further one."""
    _request.arrive()
    return 128 + error.number if isinstance(error, TerminationSignal) else _INTERRUPTED_EXIT_CODE


def raise_on_termination_signals() -> None:
    """Raise ``TerminationSignal`` in the main thread on the first request to end."""
    for name in ("SIGTERM", "SIGHUP", "SIGBREAK"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _request.raise_error)
