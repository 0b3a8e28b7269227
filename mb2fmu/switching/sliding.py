"""Held signs: the value that keeps the argument at zero, and states set exactly there.

With the values σ of the signs as unknowns, the rates of their arguments s are

    ds/dt = ∂s/∂t + ∂s/∂x x'(σ) = a + B σ,

linear in the σ of those held, because forces are. Of those ds/dt = 0, of the others σ is the mode, at which a and B are
taken (Stribeck's curve is not linear in it): one linear system. The same B puts
the states back on s = 0 at an event, along the way in which the held force itself acts: x + ∂x'/∂σ y with
B y = −s, an impulse of the friction and nothing else, so that constraints and momenta stay as they are.

**What holds the same motion** (two feet on one floor, a clutch between what two brakes lock) makes B singular, and σ is
not determined. As if each gave way a little, in proportion to what it can take, the system that is solved is

    (B + T) σ = right,    T_ii = sign(B_ii) min(ε ρ_i / limit_i, ε' |B_ii|),    ρ_i² = Σ B_ij² over those held

for a vanishing ε: frictions on one motion share it in proportion to the most that each can hold, and let go together.
Of what is not vanishing the part is taken away that E = (B + T)⁻¹ T tells: 1 + E + E² − 3 E³ times the solution lacks
4 e³ where B is regular (e < 1e-6), and does not magnify round-off where it is not (``constraint_systems`` has the
same for constraints).

Friction that nothing presses (B_ii = 0: the normal force is zero) can hold nothing. It is *idle*: σ = 0, and where
ds/dt is not zero it is let go, the way in which s is driven.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mb2fmu.derivatives.forward import add_jacobian, rate_along, variables_of
from mb2fmu.numerics.linear_solve import LinearSystem
from mb2fmu.program.builder import ProgramBuilder
from mb2fmu.program.copying import ProgramCopy
from mb2fmu.program.program import Op, Program

_GIVING = 1e-9  # ε, as a part of a row
_MOST_GIVING = 1e-6  # ε', as a part of the diagonal: for what can take much less than others


@dataclass(frozen=True, slots=True)
class Sliding:
    """The system of the held signs.

    Attributes:
        program: Entries ``rates`` (ds/dt), ``limits`` (of σ while it is held), ``B`` and ``X`` (the entries of ∂x'/∂σ
            that are not zero); the last inputs are σ.
        count: Number of signs.
        places: Row and column of each entry of ``B``.
        reach: The same of ``X``.
    """

    program: Program
    count: int
    places: tuple[tuple[int, int], ...]
    reach: tuple[tuple[int, int], ...]

    def factors(self, b: ProgramBuilder, modes: Sequence[int]) -> list[int]:
        """Return σ; ``modes``: nodes of −1, 1, or 0 for held."""
        rates, matrix, _ = self._at_modes(b, modes)
        right = [self._less(b, row, modes, rate) for row, rate in zip(matrix, rates, strict=True)]
        return self._solved(b, modes, matrix, right, modes, "the sticking forces")

    def drives(
        self, b: ProgramBuilder, modes: Sequence[int], factors: Sequence[int], limits: Sequence[int]
    ) -> list[int]:
        """Return the values to compare with the limits, one node per sign: σ.

        Where nothing presses and ds/dt is not zero it is more than the limit, with the sign of ds/dt: friction lets go.

        Args:
            b: Where nodes are made.
            modes: As above.
            factors: σ.
            limits: Of their magnitudes.
        """
        rates, matrix, _ = self._at_modes(b, modes)
        zero, found = b.constant(0.0), []
        for i, row in enumerate(matrix):
            idle = b.binary(Op.AND, b.binary(Op.EQ, modes[i], zero), b.binary(Op.EQ, row[i], zero))
            rate = b.sub(
                b.sum(b.mul(entry, sigma) for entry, sigma in zip(row, factors, strict=True)),
                self._less(b, row, modes, rates[i]),
            )
            beyond = b.mul(b.unary(Op.SIGN, rate), b.add(limits[i], b.unary(Op.ABS, rate)))
            found.append(b.select(idle, beyond, factors[i]))
        return found

    def at_rest(self, b: ProgramBuilder, modes: Sequence[int], slip: Sequence[int], x: Sequence[int]) -> list[int]:
        """Return the states x with s = 0 of the held signs."""
        _, matrix, reach = self._at_modes(b, modes)
        none = [b.constant(0.0)] * self.count
        y = self._solved(b, modes, matrix, [b.neg(s) for s in slip], none, "the end of slip")
        moved = list(x)
        for (i, j), factor in reach.items():
            moved[i] = b.add(moved[i], b.mul(factor, y[j]))
        return moved

    def _less(self, b: ProgramBuilder, row: Sequence[int], modes: Sequence[int], rate: int) -> int:
        """Return B σ − ds/dt at the modes: the share of ds/dt that held signs must supply."""
        if self.count == 1:
            return b.neg(rate)
        return b.sub(b.sum(b.mul(entry, mode) for entry, mode in zip(row, modes, strict=True)), rate)

    def _at_modes(
        self, b: ProgramBuilder, modes: Sequence[int]
    ) -> tuple[list[int], list[list[int]], dict[tuple[int, int], int]]:
        """Return ds/dt, B and ∂x'/∂σ with held signs at 0 and others sliding: their forces may be nonlinear in σ."""
        copy = self._copy(b, modes)
        rates = [copy.node[node] for node in self.program.entries["rates"].results]
        matrix = [[b.constant(0.0)] * self.count for _ in range(self.count)]
        for (i, j), node in zip(self.places, self.program.entries["B"].results, strict=True):
            matrix[i][j] = copy.node[node]
        found = [copy.node[node] for node in self.program.entries["X"].results]
        return rates, matrix, dict(zip(self.reach, found, strict=True))

    def _limits(self, b: ProgramBuilder, modes: Sequence[int]) -> list[int]:
        """Return the limits of σ while it is held, at the modes."""
        copy = self._copy(b, modes)
        return [copy.node[node] for node in self.program.entries["limits"].results]

    def _copy(self, b: ProgramBuilder, modes: Sequence[int]) -> _AtModes:
        """Return the copy that reads modes in place of the inputs of held signs; a single one is evaluated at 0."""
        return _AtModes(self.program, b, [b.constant(0.0)] if self.count == 1 else modes)

    def _solved(
        self,
        b: ProgramBuilder,
        modes: Sequence[int],
        matrix: Sequence[Sequence[int]],
        held: Sequence[int],
        free: Sequence[int],
        name: str,
    ) -> list[int]:
        """Solve row by row: the matrix's row where ``held`` and not idle, else σ = ``free``."""
        zero, one = b.constant(0.0), b.constant(1.0)
        at = [
            b.binary(Op.AND, b.binary(Op.EQ, mode, zero), b.unary(Op.NOT, b.binary(Op.EQ, matrix[i][i], zero)))
            for i, mode in enumerate(modes)
        ]
        if self.count == 1:
            return [b.select(at[0], b.div(held[0], matrix[0][0]), free[0])]
        limits = self._limits(b, modes)
        giving = [self._giving(b, i, row, at, limits[i]) for i, row in enumerate(matrix)]
        rows = [
            [
                b.select(at[i], b.add(entry, giving[i]) if i == j else entry, one if i == j else zero)
                for j, entry in enumerate(row)
            ]
            for i, row in enumerate(matrix)
        ]
        right = [b.select(at[i], held[i], free[i]) for i in range(self.count)]
        system = LinearSystem(b, rows, name)
        whole = [system.solve(right)]  # and what E makes of it, again and again
        for _ in range(3):
            last = zip(at, giving, whole[-1], strict=True)
            whole.append(system.solve([b.select(here, b.mul(t, value), zero) for here, t, value in last]))
        three = b.constant(-3.0)
        solved = [b.sum([x, y, z, b.mul(three, w)]) for x, y, z, w in zip(*whole, strict=True)]
        # Elimination mixes the rows: what slides is at its mode to the bit, and not to round-off.
        return [b.select(held_here, value, other) for held_here, value, other in zip(at, solved, free, strict=True)]

    def _giving(self, b: ProgramBuilder, i: int, row: Sequence[int], at: Sequence[int], limit: int) -> int:
        """Return T_ii, which relaxes the row of a held sign where it could be singular."""
        zero = b.constant(0.0)
        length = b.sum(b.select(held, b.mul(entry, entry), zero) for held, entry in zip(at, row, strict=True))
        shared = b.div(b.mul(b.constant(_GIVING), b.unary(Op.SQRT, length)), limit)
        most = b.mul(b.constant(_MOST_GIVING), b.unary(Op.ABS, row[i]))
        return b.mul(b.unary(Op.SIGN, row[i]), b.binary(Op.MIN, shared, most))


class _AtModes(ProgramCopy):
    """A copy that reads modes for σ."""

    def __init__(self, program: Program, builder: ProgramBuilder, modes: Sequence[int]) -> None:
        self._from = len(program.layout.inputs) - len(modes)
        self._modes = modes
        builder.constant(0.0)  # nothing is adopted: nodes change
        super().__init__(program, builder, ())

    def _leaf(self, op: Op, index: int) -> int:
        """Return the node of a leaf; inputs beyond the model's own are modes of held signs."""
        if op is Op.INPUT and index >= self._from:
            return self._modes[index - self._from]
        return super()._leaf(op, index)


def with_sliding(program: Program, sticking: Sequence[int]) -> Sliding:
    """Return the system of the signs of a frozen program.

    Args:
        program: With entry ``slip``, the arguments s; its last inputs are σ.
        sticking: The signs.
    """
    count = len(sticking)
    rated = rate_along(program, "slip", "rates")
    first = len(program.layout.inputs) - count
    factors = variables_of(rated, ("inputs",))[first:]
    builder = ProgramBuilder(rated.layout)
    copy = ProgramCopy(rated, builder)
    places = _pairs(*add_jacobian(copy, "rates", factors, "B"))
    reach = _pairs(*add_jacobian(copy, "rhs", factors, "X"))
    return Sliding(builder.build(), count, places, reach)


def _pairs(rows: np.ndarray, columns: np.ndarray) -> tuple[tuple[int, int], ...]:
    """Return rows and columns as pairs."""
    return tuple(zip(rows.tolist(), columns.tolist(), strict=True))
