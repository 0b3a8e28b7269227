"""Accelerations with contacts and latches as nodes: free motion, forces of resting contacts, impulses."""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sm

from mb2fmu.compiler.lowering.acceleration_solves import ConstrainedDynamicsSolver
from mb2fmu.compiler.lowering.contact_mobility import ContactMobility
from mb2fmu.compiler.lowering.frictional_contact_laws import FrictionalContactLaws
from mb2fmu.compiler.lowering.latch_laws import LatchForceLowering
from mb2fmu.compiler.lowering.recursion import LinkRecursionMotion
from mb2fmu.compiler.lowering.sympy_lowering import SympyLowering
from mb2fmu.compiler.numerics.frictionless_impacts_and_resting_forces import (
    FrictionlessImpactProblem,
    solve_resting_contact_forces,
    solve_sequential_impulses,
    solve_simultaneous_impulses,
)
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.scalar_program import Op
from mb2fmu.mechanics.equations.contact_equations import REIMPACT_SPEED_RATIO
from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion
from mb2fmu.mechanics.equations.link_recursion import ArticulatedBodyStructure
from mb2fmu.model.quantity_declarations import MODE_THRESHOLD

NodeMatrix = list[list[int]]


class _ContactAndLatchRows:
    """All rows along which forces act: those of latches, then normals and tangents of contacts.

    Attributes:
        rows: G, row by row.
        forces: One per row.
        pushes: G^T times the forces, one per speed.
        free: Symbols of u' without these forces.
        response: Symbols of M^-1 G^T, column by column.
    """

    def __init__(self, e: EquationsOfMotion) -> None:
        rows = [*(e.latches.rows if e.latches else ()), *(e.contacts.rows if e.contacts else ())]
        self.rows = [entry for row in rows for entry in row.jacobian]
        self.forces = [row.force for row in rows]
        self.free = [sm.Dummy(f"free_{i}") for i in range(len(e.u))]
        self.response = [[sm.Dummy(f"response_{k}_{i}") for i in range(len(e.u))] for k in range(len(self.forces))]
        self.pushes = [sm.Add(*(row.jacobian[i] * row.force for row in rows)) for i in range(len(e.u))]

    @property
    def flat(self) -> list[sm.Symbol]:
        """The symbols of the responses, column by column."""
        return [symbol for column in self.response for symbol in column]

    def define(self, builder: ProgramBuilder, walker: SympyLowering, e: EquationsOfMotion) -> None:
        """Define forces, jumps and accelerations; ``free`` and ``response`` are defined elsewhere."""
        contact_laws = FrictionalContactLaws if e.contacts and e.contacts.frictions else _FrictionlessContactLaws
        if e.latches is None:
            contact_laws(builder, e, self.free, self.response).define(walker)
            return
        laws = LatchForceLowering(builder, e, self.free, self.response)
        laws.define(walker)
        if e.contacts:
            contact_laws(builder, e, laws.free, laws.response).define(walker)
        else:
            walker.define(e.u_dot, laws.free, lambda nodes: nodes)


def define_contact_accelerations(
    b: ProgramBuilder,
    walker: SympyLowering,
    e: EquationsOfMotion,
    motion: LinkRecursionMotion | None,
    dynamics: ConstrainedDynamicsSolver | None,
) -> None:
    """Define dependent speeds, accelerations and multipliers where there are contacts or latches.

    Args:
        b: Takes the nodes.
        walker: Knows the symbols.
        e: With contacts or latches.
        motion: Where there is no mass matrix.
        dynamics: Where there is one.
    """
    touching = _ContactAndLatchRows(e)
    n, k = len(e.u), len(touching.forces)
    flat = touching.flat

    def columns(nodes: Sequence[int]) -> NodeMatrix:
        """Return the columns of G^T."""
        return [list(nodes[n * i : n * i + n]) for i in range(k)]

    if dynamics is None or isinstance(e.dynamics, ArticulatedBodyStructure):
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
    needs = dynamics.acceleration_expressions()
    reactions = [[sm.Dummy() for _ in e.multipliers] for _ in range(k)]

    def respond(nodes: Sequence[int]) -> list[int]:
        """Return responses of u', then of multipliers where they are requested."""
        rates, multipliers = dynamics.response(nodes[: len(needs)], columns(nodes[len(needs) :]))
        wanted = multipliers if e.multipliers and dynamics.requires_multipliers else []
        return [node for part in (*rates, *wanted) for node in part]

    if dynamics.requires_multipliers:
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


class _FrictionlessContactLaws(ContactMobility):
    """The contacts of equations, none with friction; the rows G are their normals."""

    @property
    def _count(self) -> int:
        """Number of contacts."""
        return len(self._contacts.each)

    def define(self, walker: SympyLowering) -> None:
        """Define forces, impulses, jumps and accelerations."""
        b, e, each = self._builder, self._equations, self._contacts.each
        n, k = len(e.u), self._count
        flat = [symbol for column in self._response for symbol in column]
        W = self._define_mobility(walker)
        gaps = self._where_free(walker, [contact.stabilized_acceleration(e.u, self._free) for contact in each])
        walker.define(self._contacts.forces, [*W, *gaps, *(c.resting for c in each)], self._forces)
        self._define_sums(walker, e.u_dot, self._free, self._contacts.forces)
        impulse_symbols = [contact.impact_impulse for contact in each]
        needs = [
            *W,
            *(c.rate(e.u) for c in each),
            *(sm.Piecewise((1, c.contact_condition(e.u)), (0, True)) for c in each),
        ]
        needs += [*(c.resting for c in each), *(c.restitution for c in each), *(c.resting_speed for c in each)]
        walker.define([*impulse_symbols, *(c.resting_after_impact for c in each)], needs, self._form_impact_nodes)

        def jumps(nodes: Sequence[int]) -> list[int]:
            """Return u+ - u-, from impulses and responses."""
            impulses, columns = nodes[:k], [nodes[k + n * i : k + n * i + n] for i in range(k)]
            return [b.dot(impulses, [column[i] for column in columns]) for i in range(n)]

        walker.define(self._contacts.jumps, [*impulse_symbols, *flat], jumps)

    def _square(self, nodes: Sequence[int]) -> NodeMatrix:
        """Return the leading k² nodes as a k × k matrix, row by row, for k contacts."""
        k = self._count
        return [list(nodes[k * i : k * i + k]) for i in range(k)]

    def _forces(self, nodes: Sequence[int]) -> list[int]:
        """Return N from W, the free accelerations of the gaps, and the resting contacts."""
        b, k = self._builder, self._count
        half = b.constant(MODE_THRESHOLD)
        rests = [b.binary(Op.LT, half, node) for node in nodes[k * k + k :]]
        return solve_resting_contact_forces(b, self._square(nodes), nodes[k * k : k * k + k], rests)

    def _form_impact_nodes(self, nodes: Sequence[int]) -> list[int]:
        """Return impulses, then the contacts that rest after them."""
        b, k = self._builder, self._count
        rates, closed, resting, e, slow = (list(nodes[k * k + k * i : k * k + k * i + k]) for i in range(5))
        settled = [b.mul(b.constant(float(REIMPACT_SPEED_RATIO)), speed) for speed in slow]
        impact = FrictionlessImpactProblem(self._square(nodes), rates, closed, resting, e, slow, settled)
        if self._contacts.order == "sequential":
            impulses, rests = solve_sequential_impulses(b, impact)
        else:
            poisson = self._contacts.each[0].law == "poisson"
            impulses, rests = solve_simultaneous_impulses(b, impact, poisson=poisson)
        return [*impulses, *rests]
