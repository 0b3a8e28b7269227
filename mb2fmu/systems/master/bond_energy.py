"""Energy over bonds: the sum over the sides of a connection; zero for an exact coupling.

Over a step each signal is a polynomial: an input its course, an output that through its values at the step's ends and,
where inputs are not held, at the communication point before. The integral of effort times flow, of degree four at most,
is exact by Gauss's rule of three points. At the end of a step an input jumps from its course to what the outputs give;
a held one may also jump at the beginning. A position that jumps does work: the mean effort before and after, times the
jump.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mb2fmu.systems.coupling import BondSide, Signal, Wiring
from mb2fmu.systems.master import courses
from mb2fmu.systems.master.marching import Stepped

Floats = npt.NDArray[np.float64]

_POINTS = np.array([-np.sqrt(0.6), 0.0, np.sqrt(0.6)]) / 2.0 + 0.5
_WEIGHTS = np.array([5.0, 8.0, 5.0]) / 18.0


class BondAccount:
    """Energies of all bonds of a system during its run.

    Args:
        wiring: The system.
        order: Of the inputs' courses.
        time: Of the first communication point, in s.
        inputs: There, shape (n_inputs,).
        outputs: There, shape (n_outputs,).

    Attributes:
        energy: Taken up by each side of each bond since the beginning, in J: one array of shape (n_sides,) per bond.
    """

    def __init__(self, wiring: Wiring, order: int, time: float, inputs: Floats, outputs: Floats) -> None:
        self._bonds = wiring.bonds
        self._known = 1 if order == 0 else 2
        self._past = [(time, outputs.copy())]
        self._inputs = inputs.copy()
        self.energy = [np.zeros(len(bond.sides)) for bond in wiring.bonds]

    def add(self, done: Stepped, inputs: Floats, outputs: Floats) -> None:
        """Add an accepted step.

        Args:
            done: The step.
            inputs: As the outputs give them at its end, shape (n_inputs,).
            outputs: There, shape (n_outputs,).
        """
        end = done.begin + done.size
        if self._bonds:
            before = self._past[-1]
            known = courses.apart([*self._past[:-1], (before[0], done.starts), (end, done.ends)], done.size)
            fitted = courses.fitted([t - done.begin for t, _ in known], np.array([y for _, y in known]))
            begun, ended = courses.at(done.courses, 0.0), courses.at(done.courses, done.size)
            for energy, bond in zip(self.energy, self._bonds, strict=True):
                for k, side in enumerate(bond.sides):
                    work = _work(side, done, fitted)
                    work += _jump(side, (self._inputs, begun), (before[1], done.starts))
                    work += _jump(side, (ended, inputs), (done.ends, outputs))
                    energy[k] += side.sign * work
        past = [*self._past, (end, outputs.copy())]
        self._past = past[-1:] if done.event else past[-self._known :]
        self._inputs = inputs.copy()

    def defects(self) -> Floats:
        """Return energy that each connection has taken out of the system (made, if negative) in J, shape (n_bonds,)."""
        return -np.array([energy.sum() for energy in self.energy])

    def exchanged(self) -> Floats:
        """Return the energy in J that the first side of each bond has taken up, shape (n_bonds,)."""
        return np.array([energy[0] for energy in self.energy])


def _work(side: BondSide, done: Stepped, fitted: Floats) -> float:
    """Return the integral of effort × flow of one side over a step, in J, by Gauss's quadrature."""
    points = _POINTS * done.size
    effort, flow = (_values(each, done.courses, fitted, points) for each in (side.effort, side.flow))
    return done.size * float(_WEIGHTS @ (effort * flow))


def _jump(side: BondSide, inputs: tuple[Floats, Floats], outputs: tuple[Floats, Floats]) -> float:
    """Return the work of a position that jumps; inputs and outputs before and after."""
    flow, effort = side.flow, side.effort
    if flow.kind != "input" or not flow.rate:
        return 0.0
    before, after = inputs if effort.kind == "input" else outputs
    mean = effort.factor * (before[effort.index] + after[effort.index]) / 2.0
    return float(mean * flow.factor * (inputs[1][flow.index] - inputs[0][flow.index]))


def _values(signal: Signal, inputs: Floats, outputs: Floats, points: Floats) -> Floats:
    """Return a signal, or its rate, at points of a step (s from its start), in base units."""
    course = (inputs if signal.kind == "input" else outputs)[signal.index : signal.index + 1]
    take = courses.rate if signal.rate else courses.at
    return np.array([signal.factor * take(course, float(s))[0] for s in points])
