"""Delays: a connection with delay T gives u(t) = y(t - T).

Steps are no longer than the shortest delay, so that arriving values are known when a step begins: nothing is
extrapolated, and no algebraic loop contains a delay. Between communication points values are interpolated linearly,
whatever the order of other inputs: a mean of two values is not larger than both, so that the waves of a transmission
line do not grow, whatever the masses at its ends. Parabolas overshoot their points, and diverged in tests.

That is the transmission line method (D. M. Auslander, Distributed system simulation with bilateral delay-line models,
J. Basic Engng 90 (1968), 195-200; P. Krus et al., Distributed simulation of hydromechanical systems, 3rd Bath
International Fluid Power Workshop, 1990).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mb2fmu.systems.master import input_polynomial_operations
from mb2fmu.systems.port_and_bond_records import SystemWiring

Floats = npt.NDArray[np.float64]


class DelayedConnections:
    """Values under way on the delayed links of a system.

    Args:
        wiring: The system.

    Attributes:
        target_inputs: Inputs that delayed links feed.
        shortest_delay: Delay in s; infinite if there is none.
    """

    def __init__(self, wiring: SystemWiring) -> None:
        links = [link for link in wiring.links if link.delay]
        self.target_inputs = np.array([link.target for link in links], dtype=int)
        self._sources = np.array([link.source for link in links], dtype=int)
        self._factors = np.array([link.factor for link in links])
        self._offsets = np.array([link.offset for link in links])
        self._delays = [link.delay for link in links]
        self._start_values = np.array([link.start for link in links])
        self.shortest_delay = min(self._delays, default=np.inf)
        self._times: list[float] = []
        self._sent_values: list[Floats] = []

    def record_outputs(self, time: float, outputs: Floats) -> None:
        """Store the outputs at a communication point; another value at the same time replaces it."""
        if not self.target_inputs.size:
            return
        self.drop_after(time, inclusive=True)
        self._times.append(time)
        self._sent_values.append(self._factors * outputs[self._sources] + self._offsets)
        while len(self._times) > 1 and self._times[1] < time - max(self._delays):
            del self._times[0], self._sent_values[0]

    def drop_after(self, time: float, *, inclusive: bool = False) -> None:
        """Drop values later than a time (``inclusive``: and at it)."""
        while self._times and (self._times[-1] > time or (inclusive and self._times[-1] == time)):
            del self._times[-1], self._sent_values[-1]

    def arriving_values(self, time: float) -> Floats:
        """Return the targets' values at a time; before the first output they are the inputs' start values."""
        delayed_values = self._start_values.copy()
        for link, delay in enumerate(self._delays):
            sent_time = time - delay
            if self._times and sent_time >= self._times[0] - 1e-9 * delay:
                delayed_values[link] = self._interpolate(sent_time)[link]
        return delayed_values

    def input_polynomials(self, time: float, size: float) -> Floats:
        """Return the targets' polynomials over a step: lines between the values at its ends, shape (n_targets, 3)."""
        return input_polynomial_operations.fit_input_polynomials(
            (0.0, size), np.array([self.arriving_values(time), self.arriving_values(time + size)])
        )

    def _interpolate(self, time: float) -> Floats:
        """Return the value at a time, on the line between the points around it."""
        next_index = min(max(int(np.searchsorted(self._times, time)), 1), len(self._times) - 1)
        if next_index < 1:
            return self._sent_values[0]
        before_time, after_time = self._times[next_index - 1], self._times[next_index]
        fraction = min(max((time - before_time) / (after_time - before_time), 0.0), 1.0)
        return (1.0 - fraction) * self._sent_values[next_index - 1] + fraction * self._sent_values[next_index]
