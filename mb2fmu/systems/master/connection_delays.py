"""Delays: a connection with delay T gives u(t) = y(t - T).

Steps are no longer than the shortest delay, so that what arrives over a step is known when it begins: nothing is
extrapolated, and no algebraic loop goes through a delay. Between points what was given is a line, whatever the order of
other inputs: a mean of two values is no larger than they are, so that a line's waves do not grow, be the masses at its
ends as unlike as they may; parabolas exceed their points, and were seen to explode.

That is the transmission line method (D. M. Auslander, Distributed system simulation with bilateral delay-line models,
J. Basic Engng 90 (1968), 195-200; P. Krus et al., Distributed simulation of hydromechanical systems, 3rd Bath
International Fluid Power Workshop, 1990).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mb2fmu.systems.master import input_extrapolation
from mb2fmu.systems.resolved_system import SystemWiring

Floats = npt.NDArray[np.float64]


class DelayedConnections:
    """Values under way on the delayed links of a system.

    Args:
        wiring: The system.

    Attributes:
        targets: Inputs that delayed links feed.
        shortest: Delay in s; infinite if there is none.
    """

    def __init__(self, wiring: SystemWiring) -> None:
        links = [link for link in wiring.links if link.delay]
        self.targets = np.array([link.target for link in links], dtype=int)
        self._sources = np.array([link.source for link in links], dtype=int)
        self._factor = np.array([link.factor for link in links])
        self._offset = np.array([link.offset for link in links])
        self._delay = [link.delay for link in links]
        self._start = np.array([link.start for link in links])
        self.shortest = min(self._delay, default=np.inf)
        self._times: list[float] = []
        self._given: list[Floats] = []

    def remember(self, time: float, outputs: Floats) -> None:
        """Store the outputs at a communication point; another value at the same time replaces it."""
        if not self.targets.size:
            return
        self.forget_after(time, also=True)
        self._times.append(time)
        self._given.append(self._factor * outputs[self._sources] + self._offset)
        while len(self._times) > 1 and self._times[1] < time - max(self._delay):
            del self._times[0], self._given[0]

    def forget_after(self, time: float, *, also: bool = False) -> None:
        """Drop values later than a time (``also``: and at it)."""
        while self._times and (self._times[-1] > time or (also and self._times[-1] == time)):
            del self._times[-1], self._given[-1]

    def arriving(self, time: float) -> Floats:
        """Return the targets' values at a time; before the first output they are the inputs' start values."""
        found = self._start.copy()
        for k, delay in enumerate(self._delay):
            then = time - delay
            if self._times and then >= self._times[0] - 1e-9 * delay:
                found[k] = self._between(then)[k]
        return found

    def courses(self, time: float, size: float) -> Floats:
        """Return the targets' courses over a step: lines between arriving values at its ends, shape (n_targets, 3)."""
        return input_extrapolation.fit_polynomials(
            (0.0, size), np.array([self.arriving(time), self.arriving(time + size)])
        )

    def _between(self, time: float) -> Floats:
        """Return the value at a time, on the line between the points around it."""
        after = min(max(int(np.searchsorted(self._times, time)), 1), len(self._times) - 1)
        if after < 1:
            return self._given[0]
        begin, end = self._times[after - 1], self._times[after]
        share = min(max((time - begin) / (end - begin), 0.0), 1.0)
        return (1.0 - share) * self._given[after - 1] + share * self._given[after]
