"""Time limits of trials: every call of the FMU is noted here, and a trial without time left ends at its next call.

What such a trial did not try is reported.
"""

from __future__ import annotations

import ctypes as c
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

BUDGET_SPENT = "the time for the whole audit is spent (--budget)"
CLOCK_READ_INTERVAL = 0.01
"""Time between two readings of the processor clock, s: one takes longer than a call of a small FMU."""


class SkippedTrialError(Exception):
    """A trial cannot judge this FMU; the text says why."""


class TrialTimeBudgetError(SkippedTrialError):
    """The time for a trial, or for all of them, is spent."""


@contextmanager
def tolerate_fmu_refusals(*refusals: type[Exception]) -> Iterator[None]:
    """Leave the block quietly where the FMU ends a run, or refuses a call with one of the given errors.

    Raises:
        TrialTimeBudgetError: If the time for the trial is spent.
    """
    endings: tuple[type[Exception], ...] = (SkippedTrialError, *refusals)
    try:
        yield
    except endings as error:
        if isinstance(error, TrialTimeBudgetError):
            raise


class FmuCallObserver(Protocol):
    """Protocol: notes the beginning and end of calls."""

    def begin_call(self, name: str) -> None:
        """Note that a call begins."""

    def end_call(self) -> None:
        """Note that all calls came back."""

    def note_addresses(self) -> tuple[int, int]:
        """Return where compiled code notes calls: the addresses of their number (8 bytes) and their name (96)."""


_UNREAD_NOTE = (c.c_char * 128)()


class _NoFmuCallObserver:
    def begin_call(self, name: str) -> None:
        """Note nothing."""

    def end_call(self) -> None:
        """Note nothing."""

    def note_addresses(self) -> tuple[int, int]:
        """Return addresses that nobody reads."""
        address = c.addressof(_UNREAD_NOTE)
        return address, address + 8


@dataclass
class TrialTimeBudget:
    """Limits of the trial that is being tried.

    Attributes:
        observer: Informed of calls.
        deadline: Of everything, by the monotonic clock, in s.
        cpu_deadline: Time of the processor at which the present trial is over, in s.
        calls: Calls so far.
        open_calls: Calls that have not come back: of several threads, or from within callbacks.
        exhausted_reason: Why the present trial was ended; empty if it was not.
        next_clock_read: Monotonic time of the next reading of the processor clock, s.
    """

    observer: FmuCallObserver = field(default_factory=_NoFmuCallObserver)
    deadline: float = math.inf
    cpu_deadline: float = math.inf
    calls: int = 0
    open_calls: int = 0
    exhausted_reason: str = ""
    next_clock_read: float = 0.0

    def start_trial(self, cpu_time: float) -> None:
        """Begin another trial, with its limit of processor time, in s."""
        self.cpu_deadline = time.process_time() + cpu_time
        self.exhausted_reason = ""

    def check(self) -> None:
        """End the present trial if its time is over.

        Raises:
            TrialTimeBudgetError: Then.
        """
        now = time.monotonic()
        if now < self.next_clock_read:
            return
        self.next_clock_read = 0.0
        if now > self.deadline:
            self.exhausted_reason = BUDGET_SPENT
            raise TrialTimeBudgetError(self.exhausted_reason)
        if time.process_time() > self.cpu_deadline:
            self.exhausted_reason = "its share of the time is spent (--budget)"
            raise TrialTimeBudgetError(self.exhausted_reason)
        self.next_clock_read = now + CLOCK_READ_INTERVAL

    @contextmanager
    def limit_to_time_share(self, fraction: float) -> Iterator[None]:
        """Limit the block to a fraction of the trial's remaining time; end the block when it is spent.

        The trial itself goes on with the rest, unless that is spent, too.

        Args:
            fraction: From 0 to 1.

        Raises:
            TrialTimeBudgetError: If the trial is over.
        """
        full_deadline, now = self.cpu_deadline, time.process_time()
        self.cpu_deadline = now + fraction * (full_deadline - now)
        try:
            yield
        except TrialTimeBudgetError:
            if time.monotonic() > self.deadline or time.process_time() > full_deadline:
                raise
            self.exhausted_reason = ""
        finally:
            self.cpu_deadline = full_deadline

    @contextmanager
    def observe_call(self, name: str) -> Iterator[None]:
        """Note one call; for calls whose speed does not matter."""
        self.begin_call(name)
        try:
            yield
        finally:
            self.end_call()

    def begin_call(self, name: str) -> None:
        """Note that a call begins."""
        self.calls += 1
        self.open_calls += 1
        self.observer.begin_call(name)

    def end_call(self) -> None:
        """Note that the call came back."""
        self.open_calls -= 1
        if self.open_calls <= 0:
            self.observer.end_call()

    @property
    def is_over(self) -> bool:
        """Whether nothing more is to be begun."""
        return time.monotonic() > self.deadline
