"""Programs of further expressions beside the equations of motion: poses for pictures, input signals.

The constraint manifold of the states as a program of its own: residuals, and K of q' = K u + k0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import sympy as sm

from mb2fmu.compiler.lowering.equation_lowering import EquationsLowering
from mb2fmu.compiler.lowering.sympy_lowering import SympyLowering
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.program_pruning import prune_program
from mb2fmu.compiler.program.scalar_program import ProgramVariableLayout, ScalarProgram
from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion, SymbolAssignment


def lower_constraint_residuals(equations: EquationsOfMotion) -> ScalarProgram:
    """Return a program of the residuals that the states themselves must satisfy, without projection or solves.

    Entry points: ``residual`` (phi where all coordinates are states, A u + b where all speeds are) [names],
    ``directions`` (K where there are more coordinates than speeds, as quaternions have) [K[i,j] row by row].

    Raises:
        LoweringError: As ``lower``.
    """
    e = equations
    layout = ProgramVariableLayout(tuple(map(str, e.states)), tuple(map(str, e.r)), tuple(map(str, e.p)))
    b = ProgramBuilder(layout)
    symbols = {e.t: b.time()}
    for group, leaf in ((e.states, b.state), (e.r, b.input), (e.p, b.parameter)):
        symbols |= {symbol: leaf(i) for i, symbol in enumerate(group)}
    walker = SympyLowering(b, symbols)
    for item in (*e.calculated_parameters, *e.intermediates):
        if isinstance(item, SymbolAssignment):
            walker.define([item.symbol], [item.expression], lambda nodes: nodes)
    rows = list(e.holonomic) if not e.q_dependent else []
    constraints = e.velocity_constraints
    if constraints and not e.u_dependent:
        rates = constraints.jacobian * sm.Matrix(e.u) + constraints.offset
        rows += [(f"rate of {name}", rate) for name, rate in zip(constraints.names, rates, strict=True)]
    b.entry("residual", [name for name, _ in rows], walker.lower([row for _, row in rows]))
    K = e.kinematics.matrix
    entries = list(K) if K.rows > K.cols and not e.q_dependent else []
    labels = [f"K[{i},{j}]" for i in range(K.rows) for j in range(K.cols)] if entries else []
    b.entry("directions", labels, walker.lower(entries))
    return prune_program(b.build())


class AuxiliaryProgramBuilder:
    """A program over the layout of some equations, with other entry points, built step by step.

    Rotations and vectors are composed as nodes, so that long chains cost SymPy nothing.

    Args:
        equations: Say what is a state, an input and a parameter, and what follows from them (dependent speeds).
    """

    def __init__(self, equations: EquationsOfMotion) -> None:
        self._lowering = EquationsLowering.start_lowering(equations)

    def define(self, assignments: Iterable[SymbolAssignment]) -> None:
        """Define intermediates beside those of the equations, in order; with names of their own."""
        for item in assignments:
            self._lowering.walker.define([item.symbol], [item.expression], lambda nodes: nodes)

    def nodes(self, expressions: Iterable[sm.Expr]) -> list[int]:
        """Return the nodes of expressions in plain symbols.

        Raises:
            LoweringError: Names every function without a counterpart and every symbol that nothing defines.
        """
        return self._lowering.walker.lower(expressions)

    def added(self, a: Sequence[int], b: Sequence[int]) -> list[int]:
        """a + b."""
        return [self._lowering.builder.add(x, y) for x, y in zip(a, b, strict=True)]

    def product(self, a: Sequence[int], b: Sequence[int]) -> list[int]:
        """Return a 3 × 3 matrix, row by row, times a vector or another matrix."""
        builder, columns = self._lowering.builder, len(b) // 3
        return [
            builder.sum([builder.mul(a[3 * i + k], b[columns * k + j]) for k in range(3)])
            for i in range(3)
            for j in range(columns)
        ]

    def entry(self, name: str, results: Sequence[int], labels: Sequence[str] = ()) -> None:
        """Declare an entry point; without labels its results are numbered."""
        self._lowering.builder.entry(name, list(labels) or [f"{name}[{i}]" for i in range(len(results))], results)

    def program(self) -> ScalarProgram:
        """Return the program without nodes that no entry point needs."""
        return prune_program(self._lowering.builder.build())
