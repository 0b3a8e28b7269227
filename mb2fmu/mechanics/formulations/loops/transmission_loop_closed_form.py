"""Gears, belts and racks as loops: one row that is linear in one coordinate, with a constant factor."""

from __future__ import annotations

import sympy as sm

from mb2fmu.mechanics.equations.equations_of_motion import ClosedFormLoopSolution
from mb2fmu.mechanics.formulations.loops.closed_form_loop_protocol import (
    AssemblyBranchStartValues,
    LoopClosureEquations,
    LoopKindMismatchError,
    make_closed_form_loop_solution,
)
from mb2fmu.model.expression_traversal import partial_derivative


class TransmissionLoopSolver:
    """c x + g(known) = 0 with c of parameters only: x = −g / c.

    A ratio of gears, with or without an offset; also a cam, or a motion prescribed by time: g may be any expression of
    coordinates that are known and of time. There is one branch, and no position where it fails.
    """

    name = "Transmission"
    size = 1

    def solve(self, rows: LoopClosureEquations, start: AssemblyBranchStartValues) -> ClosedFormLoopSolution:
        """x = −g / c; see :class:`LoopConnection`."""
        (phi,), (x,) = rows.phi, rows.unknowns
        factor = partial_derivative(phi, x)
        if factor.free_symbols & start.moving_symbols:
            factor = sm.expand(factor)
        if factor.free_symbols & start.moving_symbols:
            raise LoopKindMismatchError(f"{rows.names[0]} is not linear in {x} with a constant factor")
        if start.evaluate(factor) == 0.0:
            raise LoopKindMismatchError(f"the factor of {x} in {rows.names[0]} is 0")
        rest = phi.xreplace({x: sm.S.Zero})
        return make_closed_form_loop_solution(self, rows, (), {x: -rest / factor}, ())
