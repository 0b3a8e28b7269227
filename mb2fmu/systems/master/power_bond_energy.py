"""Energy over power bonds: the sum over the sides of a connection is zero for an exact coupling.

Over a step each signal is a polynomial. An input is its extrapolation polynomial. An output is a polynomial of one
degree more, through its values at the step's ends and at earlier communication points; of two degrees more where inputs
are iterated, since their error is of a higher order. With the same degree, iterated inputs would pass through the same
points as the outputs that feed them, and the energy defect would always be zero. Where inputs jump at each point,
outputs have kinks there, and more points increase the error. Gauss's rule of five points integrates effort times flow
(degree eight at most) exactly. At the end of a step an input jumps from its polynomial to the value that the outputs
give; a held input may also jump at the beginning. A position that jumps does work: mean effort times the jump.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mb2fmu.systems.master import input_polynomial_operations
from mb2fmu.systems.master.coupled_system_stepping import AcceptedCommunicationStep
from mb2fmu.systems.port_and_bond_records import PowerBondSide, PowerBondVariable, SystemWiring

Floats = npt.NDArray[np.float64]

_GAUSS_POINTS, _GAUSS_WEIGHTS = (np.polynomial.legendre.leggauss(5) + np.array([[1.0], [0.0]])) / 2.0


class SystemBondEnergies:
    """Energies of all bonds of a system during its run.

    Args:
        wiring: The system.
        order: Order of the inputs' polynomials.
        iterated: Inputs agree with outputs at the ends of steps, so that nothing jumps there.
        time: Time of the first communication point, in s.
        inputs: Inputs there, shape (n_inputs,).
        outputs: Outputs there, shape (n_outputs,).

    Attributes:
        energies: Energy that each side of each bond has received, in J: one array of shape (n_sides,) per bond.
        feedthrough_pairs: (input, output) of bonds whose outputs depend on the input at the same moment.
    """

    def __init__(
        self, wiring: SystemWiring, order: int, time: float, inputs: Floats, outputs: Floats, *, iterated: bool = False
    ) -> None:
        self._bonds = wiring.bonds
        self._point_count = order + 1 + iterated
        self._past_points = [(time, np.concatenate([outputs, inputs]))]
        self._inputs = inputs.copy()
        signals = [
            bond_variable for bond in wiring.bonds for side in bond.sides for bond_variable in (side.effort, side.flow)
        ]
        bond_outputs = {signal.index for signal in signals if signal.kind == "output"}
        self.feedthrough_pairs = (
            sorted(
                (input_index, output_index)
                for input_index, output_index in wiring.feedthrough
                if output_index in bond_outputs
            )
            if order
            else []
        )
        self.energies = [np.zeros(len(bond.sides)) for bond in wiring.bonds]

    def add_step(self, step: AcceptedCommunicationStep, inputs: Floats, outputs: Floats, derivatives: Floats) -> None:
        """Add an accepted step.

        Args:
            step: The step.
            inputs: Inputs at its end that agree with the outputs, shape (n_inputs,).
            outputs: Outputs there, shape (n_outputs,).
            derivatives: ∂output/∂input there of ``pairs``, shape (n_pairs,).
        """
        end_time = step.start_time + step.size
        if self._bonds:
            first_inputs, last_inputs = (
                input_polynomial_operations.evaluate_input_polynomials(step.input_polynomials, 0.0),
                input_polynomial_operations.evaluate_input_polynomials(step.input_polynomials, step.size),
            )
            previous_outputs = self._past_points[-1][1][: len(outputs)]
            output_polynomials = self._fit_outputs(step, first_inputs, last_inputs, derivatives)
            for energy, bond in zip(self.energies, self._bonds, strict=True):
                for side_index, side in enumerate(bond.sides):
                    work = _integrate_power(side, step, output_polynomials)
                    work += _compute_jump_work(
                        side, (self._inputs, first_inputs), (previous_outputs, step.initial_outputs)
                    )
                    work += _compute_jump_work(side, (last_inputs, inputs), (step.final_outputs, outputs))
                    energy[side_index] += side.sign * work
        past_points = [*self._past_points, (end_time, np.concatenate([outputs, inputs]))]
        self._past_points = past_points[-1:] if step.event else past_points[-self._point_count :]
        self._inputs = inputs.copy()

    def _fit_outputs(
        self, step: AcceptedCommunicationStep, first_inputs: Floats, last_inputs: Floats, derivatives: Floats
    ) -> Floats:
        """Return the outputs over a step as polynomials, shape (n_outputs, n_coefficients).

        They pass through the outputs' points. Between these, an input's polynomial differs from the smooth signal that
        it approximates; an output with feedthrough of this input gets the difference too.
        """
        first_point = self._past_points[-1][0], np.concatenate([step.initial_outputs, first_inputs])
        last_point = step.start_time + step.size, np.concatenate([step.final_outputs, last_inputs])
        points = input_polynomial_operations.select_interpolation_points(
            [*([] if step.after_event else self._past_points[:-1]), first_point, last_point], step.size
        )
        fitted_polynomials = input_polynomial_operations.fit_input_polynomials(
            [time - step.start_time for time, _ in points], np.array([values for _, values in points])
        )
        output_polynomials, smooth_inputs = np.split(fitted_polynomials, [len(step.final_outputs)])
        input_differences = -smooth_inputs
        input_differences[:, :3] += step.input_polynomials
        for (input_index, output_index), derivative in zip(self.feedthrough_pairs, derivatives, strict=True):
            output_polynomials[output_index] += derivative * input_differences[input_index]
        return output_polynomials

    def energy_defects(self) -> Floats:
        """Return the energy in J that each connection has removed (added, if negative), shape (n_bonds,)."""
        return -np.array([energy.sum() for energy in self.energies])

    def exchanged_energies(self) -> Floats:
        """Return the energy in J that the first side of each bond has received, shape (n_bonds,)."""
        return np.array([energy[0] for energy in self.energies])


def _integrate_power(side: PowerBondSide, step: AcceptedCommunicationStep, output_polynomials: Floats) -> float:
    """Return the integral of effort × flow of one side over a step, in J, by Gauss's quadrature."""
    points = _GAUSS_POINTS * step.size
    effort, flow = (
        _evaluate_signal(signal, step.input_polynomials, output_polynomials, points)
        for signal in (side.effort, side.flow)
    )
    return step.size * float(_GAUSS_WEIGHTS @ (effort * flow))


def _compute_jump_work(side: PowerBondSide, inputs: tuple[Floats, Floats], outputs: tuple[Floats, Floats]) -> float:
    """Return the work of a position that jumps; inputs and outputs before and after."""
    flow, effort = side.flow, side.effort
    if flow.kind != "input" or not flow.rate:
        return 0.0
    before, after = inputs if effort.kind == "input" else outputs
    mean_effort = effort.factor * (before[effort.index] + after[effort.index]) / 2.0
    return float(mean_effort * flow.factor * (inputs[1][flow.index] - inputs[0][flow.index]))


def _evaluate_signal(signal: PowerBondVariable, inputs: Floats, outputs: Floats, points: Floats) -> Floats:
    """Return a signal, or its rate, at points of a step (s from its start), in base units."""
    polynomials = (inputs if signal.kind == "input" else outputs)[signal.index : signal.index + 1]
    evaluate = (
        input_polynomial_operations.differentiate_input_polynomials
        if signal.rate
        else input_polynomial_operations.evaluate_input_polynomials
    )
    return signal.factor * evaluate(polynomials, points)
