"""The side of an event on which a motion is, at instants within round-off of it.

Two motions have the same event at slightly different instants, and what jumps there differs by the whole jump in
between. That is no error of the jump's size: it is one of time, as large as the events are apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from mb2fmu.validation.modes.hybrid_equations import HybridEquations
    from mb2fmu.validation.modes.located_events import LocatedEvent
    from mb2fmu.validation.modes.mode_equations import SwitchModes

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

SAME_EVENT_FRACTION = 1e-2
"""Part of a communication step within which events of two motions are taken for the same."""
SIMULTANEOUS_FRACTION = 1e-9
"""Part of a communication step within which events of one motion are one: a condition that a jump makes false again."""
_ROUND_OFF_STEP = 4.0 * float(np.finfo(float).eps)
"""Part of a time that is its round-off."""


@dataclass(slots=True)
class SimultaneousEvents:
    """Events of one motion too close together to be distinguished; mostly a single one. Not frozen, as those are not.

    Attributes:
        first: What begins it.
        last: What ends it.
        count: How many they are.
    """

    first: LocatedEvent
    last: LocatedEvent
    count: int

    @property
    def time(self) -> float:
        """Time of the first event, s."""
        return self.first.time

    @property
    def from_input_jump(self) -> bool:
        """Whether a jump of inputs caused it."""
        return self.first.from_input_jump


def group_simultaneous_events(events: Sequence[LocatedEvent], gaps: Sequence[float]) -> list[SimultaneousEvents]:
    """Return events in groups of simultaneous ones.

    Args:
        events: In their order.
        gaps: Largest difference to the event before for one group, s. An event of inputs is a group by itself.
    """
    groups: list[SimultaneousEvents] = []
    for event, gap in zip(events, gaps, strict=True):
        last_event = groups[-1].last if groups else None
        if (
            last_event
            and not last_event.from_input_jump
            and not event.from_input_jump
            and event.time - last_event.time <= gap
        ):
            groups[-1] = SimultaneousEvents(groups[-1].first, event, groups[-1].count + 1)
        else:
            groups.append(SimultaneousEvents(event, event, 1))
    return groups


def drop_round_off_events(events: Sequence[LocatedEvent]) -> tuple[LocatedEvent, ...]:
    """Return the events without those that round-off makes."""
    return tuple(event for event in events if not event.round_off)


def find_round_off_switches(events: Sequence[LocatedEvent]) -> frozenset[int]:
    """Return the numbers of the switches whose modes round-off changes."""
    pairs = (zip(event.before, event.after, strict=True) for event in events if event.round_off)
    return frozenset(i for pair in pairs for i, (old_side, new_side) in enumerate(pair) if old_side != new_side)


def _drop_idle_modes(modes: Sequence[float], round_off_switches: frozenset[int]) -> tuple[float, ...]:
    """Return the modes of the other switches."""
    if not round_off_switches:
        return tuple(modes)
    return tuple(mode for i, mode in enumerate(modes) if i not in round_off_switches)


def find_points_between_matching_events(
    time: Floats, first: Sequence[LocatedEvent], second: Sequence[LocatedEvent]
) -> tuple[Flags, float]:
    """Return points between the same event in two motions, and the largest time difference, s.

    Events are the same as long as their sequences are, and their instants closer than ``SAME_EVENT_FRACTION`` steps.
    Those that
    round-off makes are no part of the sequence.

    Args:
        time: Communication points in s, shape (n,).
        first: Events of one motion.
        second: Of the other.
    """
    is_between, largest_difference = np.zeros(len(time), dtype=np.bool_), 0.0
    step = float(np.min(np.diff(time)))
    motions = (drop_round_off_events(events) for events in (first, second))
    first_groups, second_groups = (
        group_simultaneous_events(events, [SIMULTANEOUS_FRACTION * step] * len(events)) for events in motions
    )
    round_off_switches = find_round_off_switches((*first, *second))
    for first_group, second_group in zip(first_groups, second_groups, strict=False):
        gap = abs(first_group.time - second_group.time)
        if gap > SAME_EVENT_FRACTION * step or not _have_same_modes(first_group, second_group, round_off_switches):
            break
        largest_difference = max(largest_difference, gap)
        begin, end = min(first_group.time, second_group.time), max(first_group.last.time, second_group.last.time)
        if end > begin:
            is_between[np.searchsorted(time, begin) : np.searchsorted(time, end, side="right")] = True
    return is_between, largest_difference


def _have_same_modes(first: SimultaneousEvents, second: SimultaneousEvents, round_off_switches: frozenset[int]) -> bool:
    """Return whether two events lead from the same modes to the same, but for those that round-off changes."""
    begins, ends = (first.first.before, second.first.before), (first.last.after, second.last.after)
    if begins[0] == begins[1] and ends[0] == ends[1]:
        return True
    return all(
        _drop_idle_modes(one, round_off_switches) == _drop_idle_modes(other, round_off_switches)
        for one, other in (begins, ends)
    )


def find_brief_mode_disagreements(
    first: Sequence[SwitchModes], second: Sequence[SwitchModes], round_off_switches: frozenset[int]
) -> Flags:
    """Return points at which modes of two motions differ, and agree again at the next; shape (n,).

    ``round_off_switches``: switches that are not looked at.
    """
    pairs = [
        [_drop_idle_modes(modes.values.tolist(), round_off_switches) for modes in pair]
        for pair in zip(first, second, strict=True)
    ]
    is_different = np.array([first_modes != second_modes for first_modes, second_modes in pairs], dtype=np.bool_)
    return np.asarray(is_different & ~np.append(is_different[1:], True))


def advance_with_held_modes(
    numeric: HybridEquations, begin: float, y: Floats, end: float, r: Sequence[float], prepared: Sequence[float],
    modes: SwitchModes,
) -> Floats:  # fmt: skip
    """Return (x, W) a little later or earlier with modes held, ignoring margins.

    One step of order 4; of order 1 where it is the round-off of the time: the rest of it is no number then.
    """

    def slope(t: float, z: Floats) -> Floats:
        x_dot, power = numeric.slope(t, z[:-1], r, prepared, modes)
        return np.append(x_dot, power)

    step = end - begin
    if not step:
        return y
    k1 = slope(begin, y)
    if abs(step) <= _ROUND_OFF_STEP * max(abs(begin), abs(end)):
        return np.asarray(y + step * k1)
    k2 = slope(begin + step / 2, y + step / 2 * k1)
    k3 = slope(begin + step / 2, y + step / 2 * k2)
    k4 = slope(end, y + step * k3)
    return np.asarray(y + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4))


def evaluate_both_event_sides(
    numeric: HybridEquations,
    event_group: SimultaneousEvents,
    time: float,
    r: Sequence[float],
    prepared: Sequence[float],
) -> tuple[tuple[Floats, SwitchModes], tuple[Floats, SwitchModes]]:
    """Return (x, W) and modes at an instant near an event: as if it came later, and as if it had come before."""
    before, after = (extrapolate_from_event(numeric, event_group, side, time, r, prepared) for side in (0, 1))
    return before, after


def extrapolate_from_event(
    numeric: HybridEquations, event_group: SimultaneousEvents, side: int, time: float, r: Sequence[float],
    prepared: Sequence[float],
) -> tuple[Floats, SwitchModes]:  # fmt: skip
    """Return (x, W) and modes at an instant near an event, on one side: 0: as if it came later, 1: earlier."""
    event = (event_group.first, event_group.last)[side]
    modes = event.sides[side]
    return advance_with_held_modes(numeric, event.time, event.states[side], time, r, prepared, modes), modes
