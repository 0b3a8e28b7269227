"""Events that an integration of the reference has located, and where they are collected."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from mb2fmu.validation.modes.hybrid_equations_recognition import is_hybrid
from mb2fmu.validation.modes.mode_equations import SwitchModes
from mb2fmu.validation.reference_equations.numeric_equations import NumericEquations

Floats = npt.NDArray[np.float64]


@dataclass(slots=True)
class LocatedEvent:
    """An event of a motion, which nobody changes: `frozen` would make each take five times as long.

    Attributes:
        time: In s.
        name: What it did to contacts and latches, or of the first of the model's events, or of the first switch.
        before: Modes before.
        after: Modes after.
        sets_state: Whether a state was set.
        from_input_jump: Inputs that jumped made it, and not the motion.
        switch: Number of the switch that came first; -1 where inputs did.
        step: Number of the communication step.
        mode_values: Modes before and after once more, as arrays, shape (2, number of switches).
        past_conditions: Conditions as they were found last, before and after, shape (2, number of conditions).
        states: (x, W) just before and just after, shape (2, n_x + 1).
        round_off: It changes nothing but which of two sides a condition's quantity is on, which is zero all the time
            (what a latch holds): the sign of round-off.
    """

    time: float
    name: str
    before: tuple[float, ...]
    after: tuple[float, ...]
    sets_state: bool
    from_input_jump: bool
    switch: int
    step: int
    mode_values: Floats
    past_conditions: Floats
    states: Floats
    round_off: bool = False

    @property
    def sides(self) -> tuple[SwitchModes, SwitchModes]:
        """Everything that is discrete just before and just after."""
        before, after = map(SwitchModes, self.mode_values, self.past_conditions)
        return before, after


@dataclass(slots=True)
class IntegrationEventLog:
    """Events of an integration, and the step size that one like it begins with.

    Attributes:
        events: In their order.
        modes: At each communication point, at the end of the step before.
        step_size: Internal step to begin with, s, infinite where the slopes decide; then that to go on with.
        records_events: False: ``events`` stays empty.
        event_count: How many events there were.
    """

    events: list[LocatedEvent] = field(default_factory=list)
    modes: list[SwitchModes] = field(default_factory=list)
    step_size: float = np.inf
    records_events: bool = True
    event_count: int = 0


@contextmanager
def assume_start_events_done(numeric: NumericEquations) -> Iterator[None]:
    """Treat states at 0 s as those after the events of the start: ``every`` does not sample there again."""
    if not is_hybrid(numeric):
        yield
        return
    numeric.start_events_done = True
    try:
        yield
    finally:
        numeric.start_events_done = False
