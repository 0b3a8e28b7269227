"""Forced sliding with dry friction, phase by phase from closed forms: no integrator, only roots between points."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from scipy.optimize import brentq

Slide = Callable[[float], tuple[float, float]]


@dataclass(frozen=True)
class Oscillator:
    """x'' = P cos(w t + lag) - x - friction, with m = 1 kg and k = 1 N/m.

    Attributes:
        P: Amplitude of the force, in N.
        w: Its angular frequency, in rad/s, not 1.
        F: Friction while it slides, in N; up to F * ``peak`` while it sticks.
        peak: Static over kinetic friction.
        lag: Of the force, in rad.
        x: Where it begins, in m.
        v: How fast, in m/s.
    """

    P: float
    w: float
    F: float
    peak: float = 1.0
    lag: float = 0.0
    x: float = 0.0
    v: float = 0.0

    def force(self, time: float) -> float:
        """In N."""
        return self.P * math.cos(self.w * time + self.lag)

    def pull(self, x: float, time: float) -> float:
        """What friction has to hold, in N."""
        return self.force(time) - x

    def slide(self, x: float, v: float, begin: float, sense: int) -> Slide:
        """Place and speed at a time, while it slides in one sense."""
        a = self.P / (1 - self.w**2)

        def forced(time: float) -> tuple[float, float]:
            angle = self.w * time + self.lag
            return a * math.cos(angle) - sense * self.F, -a * self.w * math.sin(angle)

        x0, v0 = forced(begin)

        def at(time: float) -> tuple[float, float]:
            c, s = math.cos(time - begin), math.sin(time - begin)
            y, u = forced(time)
            return y + (x - x0) * c + (v - v0) * s, u - (x - x0) * s + (v - v0) * c

        return at


@dataclass(frozen=True)
class Pair:
    """Two masses of 1 kg without springs and friction between them; P cos(w t) acts on the second.

    Attributes:
        P: Amplitude of the force, in N.
        w: Its angular frequency, in rad/s.
        F: Friction while they slide, in N; up to F * ``peak`` while they stick.
        peak: Static over kinetic friction.
        x: Place of the second against the first, in m.
        v: Its speed there, in m/s.
    """

    P: float
    w: float
    F: float
    peak: float = 1.0
    x: float = 0.0
    v: float = 0.0

    def pull(self, _: float, time: float) -> float:
        """What friction has to hold, in N: half of the force accelerates the first."""
        return self.P / 2 * math.cos(self.w * time)

    def slide(self, x: float, v: float, begin: float, sense: int) -> Slide:
        """Place and speed against the first at a time, while they slide in one sense."""
        w, P = self.w, self.P

        def at(time: float) -> tuple[float, float]:
            d = time - begin
            gained = P / w * (math.sin(w * time) - math.sin(w * begin))
            gone = -P / w**2 * (math.cos(w * time) - math.cos(w * begin)) - P / w * math.sin(w * begin) * d
            return x + v * d + gone - sense * self.F * d**2, v + gained - 2 * sense * self.F * d

        return at


@dataclass(frozen=True)
class Run:
    """What was found.

    Attributes:
        events: Instants in s, and what begins there: the sense of sliding, or 0 where it sticks.
        places: Where it is at these instants, in m.
        end: Place and speed at the end.
    """

    events: list[tuple[float, int]]
    places: list[float]
    end: tuple[float, float]

    def instants(self) -> list[float]:
        """In s."""
        return [time for time, _ in self.events]


def run(body: Oscillator | Pair, stop: float) -> Run:
    """From phase to phase up to ``stop`` (s). What it begins with is no event."""
    x, v, time, events, places = body.x, body.v, 0.0, [], []
    pull = body.pull(x, 0.0)
    sense = (v > 0) - (v < 0) or (abs(pull) > body.F * body.peak) * ((pull > 0) - (pull < 0))
    while True:
        if sense:
            at = body.slide(x, v, time, sense)
            end = first_root(lambda t, at=at, sense=sense: sense * at(t)[1], time, stop)
            x, v = at(end)
        else:
            holds = body.F * body.peak
            end = first_root(lambda t, x=x, holds=holds: holds - abs(body.pull(x, t)), time, stop)
        if end >= stop:
            return Run(events, places, (x, v))
        pull, v, time = body.pull(x, end), 0.0, end
        sticks = sense and abs(pull) <= body.F * body.peak
        sense = 0 if sticks else (pull > 0) - (pull < 0)
        events.append((time, sense))
        places.append(x)


def first_root(margin: Callable[[float], float], begin: float, stop: float, step: float = 2e-3) -> float:
    """Where a margin that is positive just after ``begin`` first becomes negative; ``stop`` if it does not."""
    left = begin + 1e-6
    while left < stop:
        right = left + step
        if margin(right) < 0.0:
            return brentq(margin, left, right, xtol=1e-15, rtol=8.9e-16) if margin(left) > 0.0 else left
        left = right
    return stop
