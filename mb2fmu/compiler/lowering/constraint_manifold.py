"""The constraint manifold of the states as a program of its own: residuals, and K of q' = K u + k0."""

from __future__ import annotations

import sympy as sm

from mb2fmu.compiler.lowering.sympy_walker import SympyLowering
from mb2fmu.compiler.program.program import Layout, Program
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.pruning import prune_program
from mb2fmu.mechanics.equations.equations_of_motion import Assignment, EquationsOfMotion


def lower_constraint_manifold(equations: EquationsOfMotion) -> Program:
    """Return a program of the residuals that the states themselves must satisfy, without projection or solves.

    Entry points: ``residual`` (phi where all coordinates are states, A u + b where all speeds are) [names],
    ``directions`` (K where there are more coordinates than speeds, as quaternions have) [K[i,j] row by row].

    Raises:
        LoweringError: As ``lower``.
    """
    e = equations
    layout = Layout(tuple(map(str, e.states)), tuple(map(str, e.r)), tuple(map(str, e.p)))
    b = ProgramBuilder(layout)
    symbols = {e.t: b.time()}
    for group, leaf in ((e.states, b.state), (e.r, b.input), (e.p, b.parameter)):
        symbols |= {symbol: leaf(i) for i, symbol in enumerate(group)}
    walker = SympyLowering(b, symbols)
    for item in (*e.calculated_parameters, *e.intermediates):
        if isinstance(item, Assignment):
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
