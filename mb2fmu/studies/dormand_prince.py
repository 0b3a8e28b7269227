"""Dormand and Prince's pair of order 5(4) for many instances at once, each with its own time and step size.

The arithmetic is that of ``emit/c/runtime/solver_dopri5.c`` and ``solver_walk.c``, operation by operation: an instance
has the bits that the unit's Co-Simulation has over the same communication steps, whatever runs beside it. Instances
that are done make room for the next ones, so that vectors stay full.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from mb2fmu.studies.step_control import EXPONENT, Floats, Mask, Tolerance, choose, learned, root, shrink

Indices = npt.NDArray[np.intp]
Slopes = Callable[[Floats, Floats, Indices, Indices], Floats]
"""Times (n,), states (n, n_x), which instances, which communication points are passed → x', (n, n_x), or NaN."""
Arrived = Callable[[Indices, Indices, Floats, Floats], Floats]
"""Which instances, which communication points (counted from 1), their times and states → states to go on from."""

_NODES = (1.0 / 5.0, 3.0 / 10.0, 4.0 / 5.0, 8.0 / 9.0, 1.0, 1.0)
_ROWS = (
    ((0, 1, 1.0 / 5.0),),
    ((0, 1, 3.0 / 40.0), (1, 1, 9.0 / 40.0)),
    ((0, 1, 44.0 / 45.0), (1, -1, 56.0 / 15.0), (2, 1, 32.0 / 9.0)),
    ((0, 1, 19372.0 / 6561.0), (1, -1, 25360.0 / 2187.0), (2, 1, 64448.0 / 6561.0), (3, -1, 212.0 / 729.0)),
    (
        *((0, 1, 9017.0 / 3168.0), (1, -1, 355.0 / 33.0), (2, 1, 46732.0 / 5247.0), (3, 1, 49.0 / 176.0)),
        (4, -1, 5103.0 / 18656.0),
    ),
    (
        *((0, 1, 35.0 / 384.0), (2, 1, 500.0 / 1113.0), (3, 1, 125.0 / 192.0), (4, -1, 2187.0 / 6784.0)),
        (5, 1, 11.0 / 84.0),
    ),
)
_ERROR = (
    *((0, 1, 71.0 / 57600.0), (2, -1, 71.0 / 16695.0), (3, 1, 71.0 / 1920.0), (4, -1, 17253.0 / 339200.0)),
    *((5, 1, 22.0 / 525.0), (6, -1, 1.0 / 40.0)),
)

SLOTS = 2048
"""Instances that are integrated side by side: their states and stages stay in the processor's cache."""

_EPSILON = float(np.finfo(np.float64).eps)


@dataclass(slots=True)
class _Slots:
    """Instances that are under way, one element of each array per instance.

    Attributes:
        instance: Which.
        x: States.
        slope: x' there.
        point: Communication points that are passed.
        clock: Time of the last one, s.
        rest: What rounding took from it.
        passed: Since then, s.
        step: Proposed step; 0: none yet.
        last_step: The last one accepted in full length; 0: no history.
        last_error: Its error in units of the tolerance.
        rejected: Whether the last step was.
        tried: Steps since the last communication point.
    """

    instance: Indices
    x: Floats
    slope: Floats
    point: Indices
    clock: Floats
    rest: Floats
    passed: Floats
    step: Floats
    last_step: Floats
    last_error: Floats
    rejected: Mask
    tried: Indices

    def kept(self, mask: Mask) -> _Slots:
        """Only some of them."""
        return _Slots(*(getattr(self, field.name)[mask] for field in fields(self)))

    def joined(self, other: _Slots) -> _Slots:
        """Both."""
        pairs = ((getattr(self, field.name), getattr(other, field.name)) for field in fields(self))
        return _Slots(*(np.concatenate(pair) for pair in pairs))


@dataclass(frozen=True, slots=True)
class Course:
    """From where to where.

    Attributes:
        start: s.
        step: Communication step, s.
        points: How many.
        most: Steps that may be tried within one communication step.
        turns: Whether x' is another one after each communication point, since inputs are; shape (points + 1,).
        moved: Whether states may be moved at communication points.
    """

    start: float
    step: float
    points: int
    most: int
    turns: Mask
    moved: bool = False


def integrate(slopes: Slopes, x0: Floats, course: Course, tolerance: Tolerance, arrived: Arrived) -> list[str]:
    """Moves all instances to their last communication points.

    Args:
        slopes: x'.
        x0: Start of each, shape (n, n_x).
        course: The same for all.
        tolerance: Likewise.
        arrived: Is told of states at communication points.

    Returns:
        For each instance why it ended early; empty where it did not.
    """
    messages = [""] * len(x0)
    waiting = 0
    slots = _begin(slopes, x0, np.arange(0), course, tolerance)
    while waiting < len(x0) or len(slots.instance):
        room = min(SLOTS - len(slots.instance), len(x0) - waiting)
        if room and (room >= SLOTS // 8 or not len(slots.instance) or waiting + room == len(x0)):
            slots = slots.joined(_begin(slopes, x0, np.arange(waiting, waiting + room), course, tolerance))
            waiting += room
        going = _advance(slots, slopes, course, tolerance, arrived, messages)
        if not going.all():
            slots = slots.kept(going)
    return messages


def _begin(slopes: Slopes, x0: Floats, instance: Indices, course: Course, tolerance: Tolerance) -> _Slots:
    """Puts instances at the start, with x' and a first proposal."""
    n, x = len(instance), x0[instance]
    clock = np.full(n, course.start)
    slope = slopes(clock, x, instance, np.zeros(n, dtype=np.intp)) if n else np.empty_like(x)
    counts = np.zeros(n, dtype=np.intp)
    slots = _Slots(
        instance=instance,
        x=x,
        slope=slope,
        point=counts,
        clock=clock,
        rest=np.zeros(n),
        passed=np.zeros(n),
        step=np.zeros(n),
        last_step=np.zeros(n),
        last_error=np.zeros(n),
        rejected=np.zeros(n, dtype=bool),
        tried=counts.copy(),
    )
    if n:
        slots.step = _first_steps(slots, slopes, course, tolerance)
    return slots


def _first_steps(slots: _Slots, slopes: Slopes, course: Course, tolerance: Tolerance) -> Floats:
    """Proposes sizes for the very first steps (Hairer, Nørsett, Wanner, II.4)."""
    x, slope = slots.x, slots.slope
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        size, speed = tolerance.norm(x, x, x), tolerance.norm(slope, x, x)
        h = np.where((size > 1e-5) & (speed > 1e-5) & (speed < np.inf), 0.01 * (size / speed), 1e-6)
        h = np.where(h < course.step, h, course.step)
        least = _least(slots.clock, course.step)
        h = np.where(h > least, h, least)
        found = slopes(slots.clock + h, x + h[:, None] * slope, slots.instance, slots.point)
        good = np.isfinite(found).all(axis=1)
        bend = tolerance.norm(found - slope, x, x) / h
        steepest = np.where(bend > speed, bend, speed)
        wish = np.where(h > 1e-3, 1e-3 * h, 1e-6)
        wish = np.where(steepest > 1e-15, root(0.01 / steepest, EXPONENT), wish)
        step = np.where(wish < 100.0 * h, wish, 100.0 * h)
        step = np.where(step > 0.01 * h, step, 0.01 * h)
    return np.where(good, step, 0.01 * h)


def _least(clock: Floats, step: float) -> Floats:
    """Sizes below which no step is made."""
    end = clock + step
    return 16.0 * _EPSILON * np.where(np.abs(clock) > np.abs(end), np.abs(clock), np.abs(end))


def _combined(stages: list[Floats], terms: tuple[tuple[int, int, float], ...]) -> Floats:
    """A sum of stages, from the left."""
    total = stages[terms[0][0]] * terms[0][2]
    product = np.empty_like(total)
    for stage, sign, factor in terms[1:]:
        np.multiply(stages[stage], factor, out=product)
        (np.add if sign > 0 else np.subtract)(total, product, out=total)
    return total


def _advance(
    slots: _Slots, slopes: Slopes, course: Course, tolerance: Tolerance, arrived: Arrived, messages: list[str]
) -> Mask:
    """Tries one step of every instance; which of them go on."""
    least, left = _least(slots.clock, course.step), course.step - slots.passed
    h = choose(slots.step, least, left)
    t = slots.clock + slots.passed
    wide = h[:, None]
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        stages = [slots.slope]
        for node, terms in zip(_NODES, _ROWS, strict=True):
            point = slots.x + wide * _combined(stages, terms)
            stages.append(slopes(t + node * h, point, slots.instance, slots.point))
        error = tolerance.norm(wide * _combined(stages, _ERROR), slots.x, point)
        sound = np.isfinite(point).all(axis=1) & np.logical_and.reduce([np.isfinite(k).all(axis=1) for k in stages])
        error = np.where(sound, error, np.inf)
        good = error <= 1.0
        learn = learned(h, error, slots.rejected, slots.step, slots.last_step, slots.last_error)
        slots.step = np.where(good, learn[0], h * shrink(error))
    slots.last_step = np.where(good, learn[1], slots.last_step)
    slots.last_error = np.where(good, learn[2], slots.last_error)
    slots.rejected = ~good
    slots.x = np.where(good[:, None], point, slots.x)
    slots.slope = np.where(good[:, None], stages[-1], slots.slope)
    slots.passed = np.where(good, np.where(h < left, slots.passed + h, course.step), slots.passed)
    slots.tried = slots.tried + 1
    going = np.ones(len(h), dtype=bool)
    lost = ~good & ~(slots.step >= least)
    for which, why in ((lost & sound, "the error stays above the tolerance"), (lost & ~sound, "x' is not finite"),
                       (slots.tried >= course.most, "too many steps")):  # fmt: skip
        for k in np.flatnonzero(which & going):
            messages[slots.instance[k]] = f"{why} at t = {t[k]:.6g} s"
        going &= ~which
    _communicate(slots, np.flatnonzero(going & ~(slots.passed < course.step)), slopes, course, arrived)
    return going & (slots.point < course.points)


def _communicate(slots: _Slots, at: Indices, slopes: Slopes, course: Course, arrived: Arrived) -> None:
    """Hands over the states of those that reached a communication point, and advances their clocks."""
    if not len(at):
        return
    clock, rest, h = slots.clock[at], slots.rest[at], course.step
    total = clock + h
    added = total - clock
    rest = rest + ((clock - (total - added)) + (h - added))
    slots.clock[at] = total + rest
    slots.rest[at] = rest - (slots.clock[at] - total)
    slots.point[at] += 1
    slots.passed[at] = 0.0
    slots.tried[at] = 0
    slots.rejected[at] = False
    slots.x[at] = arrived(slots.instance[at], slots.point[at], slots.clock[at], slots.x[at])
    turned = course.turns[slots.point[at]]
    slots.last_step[at[turned]] = slots.last_error[at[turned]] = 0.0
    again = at[(turned | course.moved) & (slots.point[at] < course.points)]
    if len(again):
        slots.slope[again] = slopes(slots.clock[again], slots.x[again], slots.instance[again], slots.point[again])
