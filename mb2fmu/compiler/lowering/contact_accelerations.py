"""Accelerations with contacts and latches as nodes: free motion, response to each row, and both together."""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sm

from mb2fmu.compiler.lowering.contact_laws import ContactLaws
from mb2fmu.compiler.lowering.dynamics_solves import ConstrainedDynamics
from mb2fmu.compiler.lowering.friction_laws import FrictionLaws
from mb2fmu.compiler.lowering.latch_laws import LatchLaws
from mb2fmu.compiler.lowering.recursion import RecursiveMotion
from mb2fmu.compiler.lowering.sympy_walker import SympyWalker
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion
from mb2fmu.mechanics.equations.link_recursion import RecursiveDynamics

Rows = list[list[int]]


class _Touching:
    """All rows along which forces act: those of latches, then normals and tangents of contacts.

    Attributes:
        rows: G, row by row.
        forces: One per row.
        pushes: G^T times the forces, one per speed.
        free: Symbols of u' without these forces.
        response: Symbols of M^-1 G^T, column by column.
    """

    def __init__(self, e: EquationsOfMotion) -> None:
        self._contacts = [(contact.jacobian, contact.force) for contact in e.contacts.each] if e.contacts else []
        self._contacts += [(f.jacobian, f.force) for f in e.contacts.frictions] if e.contacts else []
        held = [(row.jacobian, row.force) for row in e.latches.rows] if e.latches else []
        jacobians = [jacobian for jacobian, _ in (*held, *self._contacts)]
        self.rows = [entry for jacobian in jacobians for entry in jacobian]
        self.forces = [force for _, force in (*held, *self._contacts)]
        self.free = [sm.Dummy(f"free_{i}") for i in range(len(e.u))]
        self.response = [[sm.Dummy(f"response_{k}_{i}") for i in range(len(e.u))] for k in range(len(self.forces))]
        pairs = [*zip(jacobians, self.forces, strict=True)]
        self.pushes = [sm.Add(*(jacobian[i] * force for jacobian, force in pairs)) for i in range(len(e.u))]

    @property
    def flat(self) -> list[sm.Symbol]:
        """The symbols of the responses, column by column."""
        return [symbol for column in self.response for symbol in column]

    def define(self, builder: ProgramBuilder, walker: SympyWalker, e: EquationsOfMotion) -> None:
        """Define forces, jumps and accelerations; ``free`` and ``response`` are defined elsewhere."""
        contact_laws = FrictionLaws if e.contacts and e.contacts.frictions else ContactLaws
        if e.latches is None:
            contact_laws(builder, e, self.free, self.response).define(walker)
            return
        pinned = e.contacts.held_by_latches if e.contacts else ()
        laws = LatchLaws(builder, e, self.free, self.response, self._contacts, pinned)
        laws.define(walker)
        if e.contacts:
            contact_laws(builder, e, laws.free, laws.response).define(walker)
        else:
            walker.define(e.u_dot, laws.free, lambda nodes: nodes)


def define_where_touching(
    b: ProgramBuilder,
    walker: SympyWalker,
    e: EquationsOfMotion,
    motion: RecursiveMotion | None,
    dynamics: ConstrainedDynamics | None,
) -> None:
    """Define dependent speeds, accelerations and multipliers where there are contacts or latches.

    Args:
        b: Takes the nodes.
        walker: Knows the symbols.
        e: With contacts or latches.
        motion: Where there is no mass matrix.
        dynamics: Where there is one.
    """
    touching = _Touching(e)
    n, k = len(e.u), len(touching.forces)
    flat = touching.flat

    def columns(nodes: Sequence[int]) -> Rows:
        """Return the columns of G^T."""
        return [list(nodes[n * i : n * i + n]) for i in range(k)]

    if dynamics is None or isinstance(e.dynamics, RecursiveDynamics):
        assert motion is not None
        walker.define(touching.free, (), lambda _: motion.accelerations())

        def answer(nodes: Sequence[int]) -> list[int]:
            """Return the responses of articulated bodies, which are linear in the forces."""
            free, with_force = nodes[:n], motion.forward(columns(nodes[n:]))
            return [b.sub(x, y) for one in with_force for x, y in zip(one, free, strict=True)]

        walker.define(flat, [*touching.free, *touching.rows], answer)
        touching.define(b, walker, e)
        return
    if e.u_dependent:
        walker.define([e.u[i] for i in e.u_dependent], dynamics.speed_expressions(), dynamics.dependent_speeds)
    needs = dynamics.expressions()
    reactions = [[sm.Dummy() for _ in e.multipliers] for _ in range(k)]

    def respond(nodes: Sequence[int]) -> list[int]:
        """Return responses of u', then of multipliers where they are requested."""
        rates, multipliers = dynamics.response(nodes[: len(needs)], columns(nodes[len(needs) :]))
        wanted = multipliers if e.multipliers and dynamics.with_multipliers else []
        return [node for part in (*rates, *wanted) for node in part]

    if dynamics.with_multipliers:
        free = [sm.Dummy() for _ in e.multipliers]
        walker.define((*touching.free, *free), needs, dynamics.accelerations_and_multipliers)
        walker.define([*flat, *(s for column in reactions for s in column)], [*needs, *touching.rows], respond)
        for i, symbol in enumerate(e.multipliers):
            parts = [free[i], *(column[i] * force for column, force in zip(reactions, touching.forces, strict=True))]
            walker.define([symbol], [sm.Add(*parts)], lambda nodes: nodes)
    else:
        walker.define(touching.free, needs, dynamics.accelerations)
        walker.define(flat, [*needs, *touching.rows], respond)
        if e.multipliers:
            walker.define(e.multipliers, dynamics.multiplier_expressions(touching.pushes), dynamics.multipliers)
    touching.define(b, walker, e)
