"""Make inputs and outputs agree at one instant; solve algebraic loops by Newton's method.

At one instant inputs are u = L y(u) + e: an output may depend on inputs of its own FMU (feedthrough). Where that makes
no loop, values are passed on level by level. A loop is solved by Newton's method; its Jacobian is made of differences
and used again as long as the iteration converges.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mb2fmu.systems.master.fmu_slaves import Slave, SlaveError
from mb2fmu.systems.master.input_evaluation_order import format_algebraic_loop, order_inputs_by_level
from mb2fmu.systems.port_and_bond_records import SystemWiring

Floats = npt.NDArray[np.float64]
SavedPortValues = tuple[Floats, Floats, dict[tuple[int, ...], Floats]]
"""Inputs, outputs, and Jacobians of loops."""

MAX_NEWTON_STEPS = 30
"""Newton steps over one loop."""
NEWTON_TOLERANCE = 1e-12
"""Relative residual of a loop's inputs at which round-off begins."""
_RELATIVE_INCREMENT = 1e-6
_SLOW_CONVERGENCE_RATIO = 0.2


class PortValuePropagation:
    """Passes values over the links of a system at one instant.

    Args:
        wiring: The system.
        slaves: The components.

    Attributes:
        u: Inputs, shape (n_inputs,); at first their start values: at zeros, outputs may not exist.
        y: Outputs, shape (n_outputs,).
    """

    def __init__(self, wiring: SystemWiring, slaves: Sequence[Slave]) -> None:
        self._wiring, self._slaves = wiring, slaves
        levels = order_inputs_by_level(wiring)
        self._groups = [
            (np.array(group, dtype=int), is_loop) for group, is_loop in zip(levels.groups, levels.loops, strict=True)
        ]
        self._inputs_of = [np.array(wiring.inputs_of(component), dtype=int) for component in range(len(slaves))]
        self._outputs_of = [np.array(wiring.outputs_of(component), dtype=int) for component in range(len(slaves))]
        self._component_of = [port.component for port in wiring.inputs]
        self._links = [(-1, 1.0, 0.0) for _ in wiring.inputs]
        self.u, self.y = np.zeros(len(wiring.inputs)), np.zeros(len(wiring.outputs))
        for link in wiring.links:
            self.u[link.target] = link.start
            if link.delay:  # arrives by itself: see ``delays``
                continue
            self._links[link.target] = link.source, link.factor, link.offset
        self._jacobians: dict[tuple[int, ...], Floats] = {}

    def save(self) -> SavedPortValues:
        """Return the argument for :meth:`restore`."""
        return self.u.copy(), self.y.copy(), dict(self._jacobians)

    def restore(self, saved_values: SavedPortValues) -> None:
        """Restore earlier inputs and outputs, and the Jacobians of loops."""
        self.u, self.y, self._jacobians = saved_values[0].copy(), saved_values[1].copy(), dict(saved_values[2])

    def input_indices(self, component: int) -> npt.NDArray[np.int64]:
        """Return indices of a component's inputs."""
        return self._inputs_of[component]

    def output_indices(self, component: int) -> npt.NDArray[np.int64]:
        """Return indices of a component's outputs."""
        return self._outputs_of[component]

    def evaluate_links(self, inputs: npt.NDArray[np.int64]) -> Floats:
        """Return the values that links give to some inputs with the present outputs."""
        u, y, links = self.u.tolist(), self.y.tolist(), self._links
        values = []
        for index in inputs.tolist():
            source, factor, offset = links[index]
            values.append(u[index] if source < 0 else factor * y[source] + offset)
        return np.array(values)

    def inputs_fed_by(self, component: int) -> npt.NDArray[np.int64]:
        """Return the inputs that a component feeds."""
        component_outputs = set(self._outputs_of[component].tolist())
        return np.array(
            [input_index for input_index, (source, _, _) in enumerate(self._links) if source in component_outputs],
            dtype=int,
        )

    def read_outputs(self, component: int) -> None:
        """Read a component's outputs."""
        self.y[self._outputs_of[component]] = self._slaves[component].read_outputs()

    def _set_inputs(self, inputs: npt.NDArray[np.int64], values: Floats) -> None:
        """Set some inputs, and read their components again."""
        self.u[inputs] = values
        component_of = self._component_of
        for component in sorted({component_of[input_index] for input_index in inputs.tolist()}):
            self._slaves[component].write_inputs(self.u[self._inputs_of[component]])
            self.read_outputs(component)

    def feedthrough_derivatives(self, pairs: Sequence[tuple[int, int]]) -> Floats:
        """Return ∂output/∂input at this instant, by differences.

        Args:
            pairs: (input, output), each of one component.

        Returns:
            Shape (len(pairs),).
        """
        derivatives = np.zeros(len(pairs))
        for perturbed_input in sorted({input_index for input_index, _ in pairs}):
            component = self._wiring.inputs[perturbed_input].component
            slave, component_inputs, present_outputs = (
                self._slaves[component],
                self._inputs_of[component],
                self.y.copy(),
            )
            perturbed_inputs = self.u.copy()
            perturbed_inputs[perturbed_input] += _RELATIVE_INCREMENT * max(1.0, abs(perturbed_inputs[perturbed_input]))
            slave.write_inputs(perturbed_inputs[component_inputs])
            self.read_outputs(component)
            change = (self.y - present_outputs) / (perturbed_inputs[perturbed_input] - self.u[perturbed_input])
            slave.write_inputs(self.u[component_inputs])
            self.y[:] = present_outputs  # the caller may hold the array
            for pair_index, (input_index, output_index) in enumerate(pairs):
                derivatives[pair_index] = (
                    change[output_index] if input_index == perturbed_input else derivatives[pair_index]
                )
        return derivatives

    def make_consistent(self, *, outputs_are_read: bool = False) -> None:
        """Make all inputs and outputs agree at this instant.

        Args:
            outputs_are_read: The outputs ``y`` were read after the inputs ``u`` were set, as after a step.

        Raises:
            SlaveError: If a loop has no solution near the present values.
        """
        for component in range(0 if outputs_are_read else len(self._slaves)):
            self._slaves[component].write_inputs(self.u[self._inputs_of[component]])
            self.read_outputs(component)
        for inputs, is_loop in self._groups:
            if is_loop:
                self._solve_loop(inputs)
            else:
                self._set_inputs(inputs, self.evaluate_links(inputs))

    def make_initially_consistent(self) -> None:
        """Do :meth:`make_consistent`; then solve remaining differences (start values that depend on inputs) together.

        Raises:
            SlaveError: If there is no consistent start near the present values.
        """
        self.make_consistent()
        linked_inputs = np.array([index for index, (source, _, _) in enumerate(self._links) if source >= 0], dtype=int)
        defect = self.evaluate_links(linked_inputs) - self.u[linked_inputs]
        if linked_inputs.size and np.any(np.abs(defect) > 1e-9 * (1.0 + np.abs(self.u[linked_inputs]))):
            self._solve_loop(linked_inputs)

    def _solve_loop(self, inputs: npt.NDArray[np.int64]) -> None:
        """Solve an algebraic loop of these inputs by Newton's method; raise if there is no solution nearby."""
        key = tuple(inputs.tolist())
        previous_size = np.inf
        defect = np.zeros(len(inputs))
        for _ in range(MAX_NEWTON_STEPS):
            defect = self.evaluate_links(inputs) - self.u[inputs]
            relative_defect = float(
                np.max(np.abs(defect) / (np.abs(self.u[inputs]) + np.max(np.abs(self.u[inputs])) + 1e-30))
            )
            if not np.all(np.isfinite(defect)):
                break
            if relative_defect <= NEWTON_TOLERANCE or (
                relative_defect >= 0.5 * previous_size and relative_defect <= 1e-9
            ):
                self._jacobians.setdefault(key, np.eye(len(inputs)))
                return
            if key not in self._jacobians or relative_defect > _SLOW_CONVERGENCE_RATIO * previous_size:
                self._jacobians[key] = self._compute_jacobian(inputs, defect)
            previous_size = relative_defect
            try:
                change = np.linalg.solve(self._jacobians[key], -defect)
            except np.linalg.LinAlgError:
                break
            self._set_inputs(inputs, self.u[inputs] + change)
        loop_names = format_algebraic_loop(self._wiring, key)
        raise SlaveError(
            f"the algebraic loop {loop_names} has no solution near the present values "
            f"(defects {np.abs(defect).max():.3g})"
        )

    def _compute_jacobian(self, inputs: npt.NDArray[np.int64], defect: Floats) -> Floats:
        """Return the derivatives of the defects by the inputs, by differences."""
        present_inputs = self.u[inputs].copy()
        columns = []
        for position in range(len(inputs)):
            increment = _RELATIVE_INCREMENT * max(1.0, abs(present_inputs[position]))
            perturbed_inputs = present_inputs.copy()
            perturbed_inputs[position] += increment
            self._set_inputs(inputs, perturbed_inputs)
            columns.append((self.evaluate_links(inputs) - self.u[inputs] - defect) / increment)
        self._set_inputs(inputs, present_inputs)
        return np.stack(columns, axis=1)
