"""Time limits of probes: every call of the FMU passes here, is noted, and ends a probe whose time is over.

A probe whose share of time is spent ends at its next call, and what it did not try is said.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

SPENT = "the time for the whole audit is spent (--budget)"
BETWEEN_LOOKS = 0.01
"""Time between two looks at the processor's clock, in s: asking for it takes longer than a call of a small unit."""


class SkippedTrialError(Exception):
    """A probe cannot judge this FMU; the text says why."""


class TimeBudgetError(SkippedTrialError):
    """The time for a probe, or for all of them, is spent."""


class CallObserver(Protocol):
    """Protocol: notes the beginning and end of calls."""

    def enter(self, name: str) -> None:
        """Note that a call begins."""

    def leave(self) -> None:
        """Note that all calls came back."""


class _NoObserver:
    def enter(self, name: str) -> None:
        """Note nothing."""

    def leave(self) -> None:
        """Note nothing."""


@dataclass
class TimeBudget:
    """Limits of the probe that is being tried.

    Attributes:
        witness: Notes calls.
        deadline: Of everything, by the monotonic clock, in s.
        share: Time of the processor at which the present probe is over, in s.
        depth: Calls that have not come back: of several threads, or from within callbacks.
        spent: Why the present probe was ended; empty if it was not.
        look: When to ask for the time of the processor again, by the monotonic clock, in s.
    """

    witness: CallObserver = field(default_factory=_NoObserver)
    deadline: float = math.inf
    share: float = math.inf
    depth: int = 0
    spent: str = ""
    look: float = 0.0

    def begin(self, share: float) -> None:
        """Begin another probe, with its limit of processor time, in s."""
        self.share = time.process_time() + share
        self.spent = ""

    def check(self) -> None:
        """End the present probe if its time is over.

        Raises:
            SpentError: Then.
        """
        now = time.monotonic()
        if now > self.deadline:
            self.spent = SPENT
            raise TimeBudgetError(self.spent)
        if now < self.look:
            return
        self.look = now + BETWEEN_LOOKS
        if time.process_time() > self.share:
            self.look = 0.0
            self.spent = "its share of the time is spent (--budget)"
            raise TimeBudgetError(self.spent)

    @contextmanager
    def within(self, part: float) -> Iterator[None]:
        """Limit what is done inside to a fraction of the probe's remaining time; break it off afterwards.

        The probe itself goes on with the rest, unless that is spent, too.

        Args:
            part: From 0 to 1.

        Raises:
            SpentError: If the probe is over.
        """
        whole, now = self.share, time.process_time()
        self.share = now + part * (whole - now)
        try:
            yield
        except TimeBudgetError:
            if time.monotonic() > self.deadline or time.process_time() > whole:
                raise
            self.spent = ""
        finally:
            self.share = whole

    @contextmanager
    def calling(self, name: str) -> Iterator[None]:
        """Note one call; for calls whose speed does not matter."""
        self.enter(name)
        try:
            yield
        finally:
            self.leave()

    def enter(self, name: str) -> None:
        """Note that a call begins."""
        self.depth += 1
        self.witness.enter(name)

    def leave(self) -> None:
        """Note that the call came back."""
        self.depth -= 1
        if self.depth <= 0:
            self.witness.leave()

    @property
    def over(self) -> bool:
        """Whether nothing more is to be begun."""
        return time.monotonic() > self.deadline
