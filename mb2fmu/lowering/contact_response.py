"""Common part of the laws of contacts with and without friction: rows G, responses M⁻¹ Gᵀ, and W = G M⁻¹ Gᵀ."""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sm

from mb2fmu.equations.motion import EquationsOfMotion
from mb2fmu.equations.unilateral import Contacts
from mb2fmu.program.builder import ProgramBuilder


class ContactResponse:
    """The contacts of equations, and the effects of their forces.

    Args:
        builder: Takes the nodes.
        equations: With contacts.
        free: Symbols of u' without the forces of contacts.
        response: Symbols of M⁻¹ Gᵀ, row by row of G: what a unit of each force changes u' by.
    """

    def __init__(
        self,
        builder: ProgramBuilder,
        equations: EquationsOfMotion,
        free: Sequence[sm.Symbol],
        response: Sequence[Sequence[sm.Symbol]],
    ) -> None:
        assert equations.contacts is not None
        self._builder, self._equations = builder, equations
        self._contacts: Contacts = equations.contacts
        self._free, self._response = free, response
        n = len(response)
        self._W = [[sm.Dummy(f"W_{i}_{j}") for j in range(n)] for i in range(n)]

    def _mobility(self, nodes: Sequence[int]) -> list[int]:
        """Return W, row by row, from G and the responses; the same node on both sides of the diagonal."""
        b, n, size = self._builder, len(self._equations.u), len(self._response)
        rows = [nodes[n * i : n * i + n] for i in range(2 * size)]
        return [b.dot(rows[max(i, j)], rows[size + min(i, j)]) for i in range(size) for j in range(size)]

    def _moved(self, nodes: Sequence[int]) -> list[int]:
        """Return a vector plus the contributions of the given forces or impulses of all rows, by the responses."""
        b, n, size = self._builder, len(self._equations.u), len(self._response)
        forces = nodes[n + n * size :]
        return [
            b.sum([nodes[i], *(b.mul(nodes[n + n * c + i], force) for c, force in enumerate(forces))]) for i in range(n)
        ]
