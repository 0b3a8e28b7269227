"""Closing: make inputs and outputs agree at one instant; solve algebraic loops by Newton's method.

At one moment inputs are u = L y(u) + e: an output may depend on inputs of its own unit (feedthrough). Where that makes
no loop, values are passed on level by level. A loop is solved by Newton's method with a Jacobian of differences, which
is kept as long as it serves.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mb2fmu.systems.master.evaluation_order import format_algebraic_loop, order_inputs_by_level
from mb2fmu.systems.master.fmu_slaves import Slave, SlaveError
from mb2fmu.systems.resolved_system import SystemWiring

Floats = npt.NDArray[np.float64]
KeptValues = tuple[Floats, Floats, dict[tuple[int, ...], Floats]]
"""Inputs, outputs, and Jacobians of loops."""

MOST = 30
"""Newton steps over one loop."""
EXACT = 1e-12
"""Of a loop's inputs, relative to their size: where round-off begins."""
_SHIFT = 1e-6
_SLOW = 0.2


class AlgebraicLoopSolver:
    """Passes values over the links of a system at one instant.

    Args:
        wiring: The system.
        slaves: Its components.

    Attributes:
        u: Inputs, shape (n_inputs,); at first their start values: at zeros, outputs may not exist.
        y: Outputs, shape (n_outputs,).
    """

    def __init__(self, wiring: SystemWiring, slaves: Sequence[Slave]) -> None:
        self._wiring, self._slaves = wiring, slaves
        self._levels = order_inputs_by_level(wiring)
        self._ins = [np.array(wiring.inputs_of(k), dtype=int) for k in range(len(slaves))]
        self._outs = [np.array(wiring.outputs_of(k), dtype=int) for k in range(len(slaves))]
        self._source = np.full(len(wiring.inputs), -1)
        self._factor, self._offset = np.ones(len(wiring.inputs)), np.zeros(len(wiring.inputs))
        self.u, self.y = np.zeros(len(wiring.inputs)), np.zeros(len(wiring.outputs))
        for link in wiring.links:
            self.u[link.target] = link.start
            if link.delay:  # arrives by itself: see ``delays``
                continue
            self._source[link.target] = link.source
            self._factor[link.target], self._offset[link.target] = link.factor, link.offset
        self._jacobians: dict[tuple[int, ...], Floats] = {}

    def kept(self) -> KeptValues:
        """Return the argument for :meth:`restore`."""
        return self.u.copy(), self.y.copy(), dict(self._jacobians)

    def restore(self, kept: KeptValues) -> None:
        """Take up earlier inputs and outputs, and the Jacobians of loops that were there."""
        self.u, self.y, self._jacobians = kept[0].copy(), kept[1].copy(), dict(kept[2])

    def ins(self, component: int) -> npt.NDArray[np.int64]:
        """Return indices of a component's inputs."""
        return self._ins[component]

    def outs(self, component: int) -> npt.NDArray[np.int64]:
        """Return indices of a component's outputs."""
        return self._outs[component]

    def linked(self, inputs: npt.NDArray[np.int64]) -> Floats:
        """Return the values that links give to some inputs with the present outputs."""
        source = self._source[inputs]
        given = self._factor[inputs] * self.y[source] + self._offset[inputs]
        return np.where(source >= 0, given, self.u[inputs])

    def fed_by(self, component: int) -> npt.NDArray[np.int64]:
        """Return the inputs that a component feeds."""
        outs = set(self._outs[component].tolist())
        return np.array([k for k, source in enumerate(self._source) if source in outs], dtype=int)

    def read(self, component: int) -> None:
        """Read a component's outputs."""
        self.y[self._outs[component]] = self._slaves[component].read()

    def _give(self, inputs: npt.NDArray[np.int64], values: Floats) -> None:
        """Set some inputs, and read their components again."""
        self.u[inputs] = values
        for k in sorted({self._wiring.inputs[i].component for i in inputs.tolist()}):
            self._slaves[k].write(self.u[self._ins[k]])
            self.read(k)

    def slopes(self, pairs: Sequence[tuple[int, int]]) -> Floats:
        """Return ∂output/∂input at this instant, by differences.

        Args:
            pairs: (input, output), each of one component.

        Returns:
            Shape (len(pairs),).
        """
        found = np.zeros(len(pairs))
        for moved in sorted({i for i, _ in pairs}):
            component = self._wiring.inputs[moved].component
            slave, ins, present = self._slaves[component], self._ins[component], self.y.copy()
            shifted = self.u.copy()
            shifted[moved] += _SHIFT * max(1.0, abs(shifted[moved]))
            slave.write(shifted[ins])
            self.read(component)
            change = (self.y - present) / (shifted[moved] - self.u[moved])
            slave.write(self.u[ins])
            self.y[:] = present  # who asked may hold the array
            for k, (i, j) in enumerate(pairs):
                found[k] = change[j] if i == moved else found[k]
        return found

    def close(self) -> None:
        """Make all inputs and outputs agree at this instant.

        Raises:
            SlaveError: If a loop has no solution near the present values.
        """
        for k in range(len(self._slaves)):
            self._slaves[k].write(self.u[self._ins[k]])
            self.read(k)
        for group, loop in zip(self._levels.groups, self._levels.loops, strict=True):
            inputs = np.array(group, dtype=int)
            if loop:
                self._solve(inputs)
            else:
                self._give(inputs, self.linked(inputs))

    def close_wholly(self) -> None:
        """Close as :meth:`close` does; then solve remaining differences (start values that depend on inputs) together.

        Raises:
            SlaveError: If there is no consistent start near the present values.
        """
        self.close()
        everything = np.flatnonzero(self._source >= 0)
        defect = self.linked(everything) - self.u[everything]
        if everything.size and np.any(np.abs(defect) > 1e-9 * (1.0 + np.abs(self.u[everything]))):
            self._solve(everything)

    def _solve(self, inputs: npt.NDArray[np.int64]) -> None:
        """Solve an algebraic loop of these inputs by Newton's method; raise if there is no solution nearby."""
        key = tuple(inputs.tolist())
        before = np.inf
        defect = np.zeros(len(inputs))
        for _ in range(MOST):
            defect = self.linked(inputs) - self.u[inputs]
            size = float(np.max(np.abs(defect) / (np.abs(self.u[inputs]) + np.max(np.abs(self.u[inputs])) + 1e-30)))
            if not np.all(np.isfinite(defect)):
                break
            if size <= EXACT or (size >= 0.5 * before and size <= 1e-9):
                self._jacobians.setdefault(key, np.eye(len(inputs)))
                return
            if key not in self._jacobians or size > _SLOW * before:
                self._jacobians[key] = self._jacobian(inputs, defect)
            before = size
            try:
                change = np.linalg.solve(self._jacobians[key], -defect)
            except np.linalg.LinAlgError:
                break
            self._give(inputs, self.u[inputs] + change)
        names = format_algebraic_loop(self._wiring, key)
        raise SlaveError(
            f"the algebraic loop {names} has no solution near the present values (defects {np.abs(defect).max():.3g})"
        )

    def _jacobian(self, inputs: npt.NDArray[np.int64], defect: Floats) -> Floats:
        """Return the derivatives of the defects by the inputs, by differences."""
        present = self.u[inputs].copy()
        columns = []
        for k in range(len(inputs)):
            shift = _SHIFT * max(1.0, abs(present[k]))
            moved = present.copy()
            moved[k] += shift
            self._give(inputs, moved)
            columns.append((self.linked(inputs) - self.u[inputs] - defect) / shift)
        self._give(inputs, present)
        return np.stack(columns, axis=1)
