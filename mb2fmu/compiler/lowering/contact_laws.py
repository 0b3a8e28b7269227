"""Unilateral contacts as nodes: forces while they rest, and impulses at this instant."""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sm

from mb2fmu.compiler.lowering.contact_response import ContactResponse
from mb2fmu.compiler.lowering.sympy_walker import SympyWalker
from mb2fmu.compiler.numerics.complementarity import Blows, impulses_at_once, impulses_in_turn, resting_forces
from mb2fmu.compiler.program.program import Op
from mb2fmu.mechanics.equations.contact_records import REIMPACT_SPEED_RATIO

Rows = list[list[int]]


class ContactLaws(ContactResponse):
    """The contacts of equations, none with friction; the rows G are their normals."""

    @property
    def _count(self) -> int:
        """Number of contacts."""
        return len(self._contacts.each)

    @property
    def rows(self) -> list[sm.Expr]:
        """G, row by row."""
        return [entry for contact in self._contacts.each for entry in contact.jacobian]

    @property
    def forces(self) -> list[sm.Symbol]:
        """The symbols of the normal forces N."""
        return [contact.force for contact in self._contacts.each]

    def define(self, walker: SympyWalker) -> None:
        """Define forces, impulses, jumps and accelerations."""
        b, e, each = self._builder, self._equations, self._contacts.each
        n, k = len(e.u), self._count
        flat = [symbol for column in self._response for symbol in column]
        W = self._define_mobility(walker, self.rows)
        gaps = self._where_free(walker, [contact.acceleration(e.u, self._free) for contact in each])
        walker.define(self.forces, [*W, *gaps, *(c.resting for c in each)], self._forces)
        walker.define(e.u_dot, [*self._free, *flat, *self.forces], self._moved)
        blows = [contact.impact_impulse for contact in each]
        needs = [*W, *(c.rate(e.u) for c in each), *(sm.Piecewise((1, c.closed(e.u)), (0, True)) for c in each)]
        needs += [*(c.resting for c in each), *(c.restitution for c in each), *(c.rest_below for c in each)]
        walker.define([*blows, *(c.rests for c in each)], needs, self._blows)

        def jumps(nodes: Sequence[int]) -> list[int]:
            """Return u+ - u-, from impulses and responses."""
            struck, columns = nodes[:k], [nodes[k + n * i : k + n * i + n] for i in range(k)]
            return [b.dot(struck, [column[i] for column in columns]) for i in range(n)]

        walker.define(self._contacts.jumps, [*blows, *flat], jumps)

    def _square(self, nodes: Sequence[int]) -> Rows:
        """Return the leading k² nodes as a k × k matrix, row by row, for k contacts."""
        k = self._count
        return [list(nodes[k * i : k * i + k]) for i in range(k)]

    def _forces(self, nodes: Sequence[int]) -> list[int]:
        """Return N from W, the free accelerations of the gaps, and the resting contacts."""
        b, k = self._builder, self._count
        half = b.constant(0.5)
        rests = [b.binary(Op.LT, half, node) for node in nodes[k * k + k :]]
        return resting_forces(b, self._square(nodes), nodes[k * k : k * k + k], rests)

    def _blows(self, nodes: Sequence[int]) -> list[int]:
        """Return impulses, then the contacts that rest after them."""
        b, k = self._builder, self._count
        rates, closed, resting, e, slow = (list(nodes[k * k + k * i : k * k + k * i + k]) for i in range(5))
        settled = [b.mul(b.constant(float(REIMPACT_SPEED_RATIO)), speed) for speed in slow]
        blows = Blows(self._square(nodes), rates, closed, resting, e, slow, settled)
        if self._contacts.order == "in turn":
            impulses, rests = impulses_in_turn(b, blows)
        else:
            poisson = self._contacts.each[0].law == "poisson"
            impulses, rests = impulses_at_once(b, blows, poisson=poisson)
        return [*impulses, *rests]
