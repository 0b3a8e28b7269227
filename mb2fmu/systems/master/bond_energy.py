"""Energy over bonds: the sum over the sides of a connection; zero for an exact coupling.

Over a step each signal is a polynomial: an input its course, an output one of a degree more, through its values at the
step's ends and at the communication points before; of two degrees more where inputs are iterated, since what they err
by is of a higher order then. With the same degree, inputs that were iterated would go through the same points as the
outputs they come from, and no defect could be seen. Where inputs jump at each point, outputs bend there, and more
points make it worse. The integral of effort times flow, of degree eight at most, is exact by Gauss's rule of five
points. At the end of a step an input jumps from its course to what the outputs give; a held one may also jump at the
beginning. A position that jumps does work: the mean effort before and after, times the jump.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mb2fmu.systems.master import input_extrapolation
from mb2fmu.systems.master.communication_steps import AcceptedStep
from mb2fmu.systems.resolved_system import BondSide, BondVariable, SystemWiring

Floats = npt.NDArray[np.float64]

_POINTS, _WEIGHTS = (np.polynomial.legendre.leggauss(5) + np.array([[1.0], [0.0]])) / 2.0


class BondEnergyAccount:
    """Energies of all bonds of a system during its run.

    Args:
        wiring: The system.
        order: Of the inputs' courses.
        iterated: Inputs agree with outputs at the ends of steps, so that nothing jumps there.
        time: Of the first communication point, in s.
        inputs: There, shape (n_inputs,).
        outputs: There, shape (n_outputs,).

    Attributes:
        energy: Taken up by each side of each bond since the beginning, in J: one array of shape (n_sides,) per bond.
        pairs: (input, output) of bonds whose outputs depend on the input at the same moment.
    """

    def __init__(
        self, wiring: SystemWiring, order: int, time: float, inputs: Floats, outputs: Floats, *, iterated: bool = False
    ) -> None:
        self._bonds = wiring.bonds
        self._known = order + 1 + iterated
        self._past = [(time, np.concatenate([outputs, inputs]))]
        self._inputs = inputs.copy()
        signals = [s for bond in wiring.bonds for side in bond.sides for s in (side.effort, side.flow)]
        seen = {signal.index for signal in signals if signal.kind == "output"}
        self.pairs = sorted((i, j) for i, j in wiring.feedthrough if j in seen) if order else []
        self.energy = [np.zeros(len(bond.sides)) for bond in wiring.bonds]

    def add(self, done: AcceptedStep, inputs: Floats, outputs: Floats, slopes: Floats) -> None:
        """Add an accepted step.

        Args:
            done: The step.
            inputs: As the outputs give them at its end, shape (n_inputs,).
            outputs: There, shape (n_outputs,).
            slopes: ∂output/∂input there of ``pairs``, shape (n_pairs,).
        """
        end = done.begin + done.size
        if self._bonds:
            begun, ended = (
                input_extrapolation.evaluate_polynomials(done.courses, 0.0),
                input_extrapolation.evaluate_polynomials(done.courses, done.size),
            )
            before = self._past[-1][1][: len(outputs)]
            fitted = self._fitted(done, begun, ended, slopes)
            for energy, bond in zip(self.energy, self._bonds, strict=True):
                for k, side in enumerate(bond.sides):
                    work = _work(side, done, fitted)
                    work += _jump(side, (self._inputs, begun), (before, done.starts))
                    work += _jump(side, (ended, inputs), (done.ends, outputs))
                    energy[k] += side.sign * work
        past = [*self._past, (end, np.concatenate([outputs, inputs]))]
        self._past = past[-1:] if done.event else past[-self._known :]
        self._inputs = inputs.copy()

    def _fitted(self, done: AcceptedStep, begun: Floats, ended: Floats, slopes: Floats) -> Floats:
        """Return the outputs over a step: through their points, and by feedthrough with the inputs' courses.

        Between the points a course differs from the smooth signal that it stands for; an output that depends on the
        input at once differs with it.
        """
        first = self._past[-1][0], np.concatenate([done.starts, begun])
        last = done.begin + done.size, np.concatenate([done.ends, ended])
        known = input_extrapolation.select_distant_points(
            [*([] if done.anew else self._past[:-1]), first, last], done.size
        )
        all_fitted = input_extrapolation.fit_polynomials(
            [t - done.begin for t, _ in known], np.array([y for _, y in known])
        )
        fitted, smooth = np.split(all_fitted, [len(done.ends)])
        bent = np.pad(done.courses, ((0, 0), (0, smooth.shape[1] - 3))) - smooth
        for (i, j), slope in zip(self.pairs, slopes, strict=True):
            fitted[j] += slope * bent[i]
        return fitted

    def defects(self) -> Floats:
        """Return energy that each connection has taken out of the system (made, if negative) in J, shape (n_bonds,)."""
        return -np.array([energy.sum() for energy in self.energy])

    def exchanged(self) -> Floats:
        """Return the energy in J that the first side of each bond has taken up, shape (n_bonds,)."""
        return np.array([energy[0] for energy in self.energy])


def _work(side: BondSide, done: AcceptedStep, fitted: Floats) -> float:
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


def _values(signal: BondVariable, inputs: Floats, outputs: Floats, points: Floats) -> Floats:
    """Return a signal, or its rate, at points of a step (s from its start), in base units."""
    course = (inputs if signal.kind == "input" else outputs)[signal.index : signal.index + 1]
    take = input_extrapolation.differentiate_polynomials if signal.rate else input_extrapolation.evaluate_polynomials
    return np.array([signal.factor * take(course, float(s))[0] for s in points])
