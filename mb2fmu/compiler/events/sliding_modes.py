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

for a vanishing ε: frictions on one motion share it in proportion to the most that each can hold, and slip together.
Of what is not vanishing the part is taken away that E = (B + T)⁻¹ T gives (``regularized_constraint_systems`` has the
same for constraints):

    σ = (1 + 4 E + 10 E² − 15 E³) (B + T)⁻¹ F³ right,    F = 1 − T (B + T)⁻¹

lacks 35 e³ where B is regular (e < 1e-6), and does not magnify round-off where it is not. F takes from the right side
what no σ can supply. Such a part is there while what sticks moves: a crank with a constant rate accelerates its rocker.
The solution for it is 1e9 times as large and cancels in the polynomial, but a part in 1e7 of it is round-off and stays:
σ and its derivatives were noise. Each F leaves a part in 1e7 of what is there, and after three only the round-off of
the rest is left.

Friction that nothing presses (B_ii = 0: the normal force is zero) can hold nothing. It is *idle*: σ = 0, and where
ds/dt is not zero it slips, the way in which s is driven.

**What contacts and latches hold already, friction does not hold.** B_ii is round-off there: less than 1e-9 of F_ii,
which it is where all contacts are open and all latches released (at a dead centre both vanish together). Such friction
is idle, too, while s is next to nothing: it sticks with σ = 0, and contact or latch bear the whole load. A wall that
moves drives s all the same, and friction slides on what the wall pushes: so it is s that releases it, and not ds/dt.
What drift has made of s is taken away at an event as if contacts were open (by F): one may open right then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mb2fmu.compiler.derivatives.forward_derivatives import (
    add_jacobian_entry_point,
    add_time_derivative_entry,
    list_variable_group_members,
)
from mb2fmu.compiler.numerics.linear_solve import FactoredLinearSystem
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.program_copy import CopiedProgramNodes
from mb2fmu.compiler.program.scalar_program import Op, ScalarProgram

_RELAXATION = 1e-9  # ε, as a part of a row
_MAX_RELAXATION = 1e-6  # ε', as a part of the diagonal: for what can take much less than others

_RIGHT_SIDE_FILTERS = 3  # factors F
_FILTER_WEIGHTS = (1.0, 4.0, 10.0, -15.0)  # of 1, E, E², E³; their sum is 0

_BLOCKED_SLIP_RATIO = 1e-9
"""Part of what a friction changes its own slip by, below which contacts and latches hold that slip already."""

_MOVING_SLIP_RATIO = 1e-6
"""Slip over its size, above which a wall moves what friction rubs on: more than what drift makes of none."""


@dataclass(frozen=True, slots=True)
class SlidingModeSystem:
    """The system of the held signs.

    Attributes:
        program: Entries ``rates`` (ds/dt), ``limits`` (of σ while it is held), ``B`` and ``X`` (the entries of ∂x'/∂σ
            that are not zero), ``F`` and ``Y``; the last inputs are σ.
        count: Number of signs.
        places: Row and column of each entry of ``B``.
        reach: The same of ``X``.
        open: The same of ``F`` and ``Y``: what ``B`` and ``X`` are where no contact rests and no latch is closed;
            empty: there are none.
    """

    program: ScalarProgram
    count: int
    places: tuple[tuple[int, int], ...]
    reach: tuple[tuple[int, int], ...]
    open: tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]] = ((), ())

    def sticking_factors(self, b: ProgramBuilder, modes: Sequence[int]) -> list[int]:
        """Return σ; ``modes``: nodes of −1, 1, or 0 for held."""
        rates, matrix, _ = self._at_modes(b, modes)
        right = [self._less(b, row, modes, rate) for row, rate in zip(matrix, rates, strict=True)]
        held = self._held(b, modes, matrix)
        if any(self.open):
            barred = self._barred(b, modes, matrix)
            held = [b.binary(Op.AND, here, b.unary(Op.NOT, other)) for here, other in zip(held, barred, strict=True)]
        return self._solved(b, modes, matrix, held, right, modes, "the sticking forces")

    def sticking_slip_limits(self, b: ProgramBuilder, modes: Sequence[int]) -> list[int]:
        """Return the slip, over its size, below which each sign sticks: more than 0 where something else holds it."""
        _, matrix, _ = self._at_modes(b, modes)
        moving, none = b.constant(_MOVING_SLIP_RATIO), b.constant(0.0)
        return [b.select(here, moving, none) for here in self._barred(b, modes, matrix)]

    def sticking_test_values(
        self,
        b: ProgramBuilder,
        modes: Sequence[int],
        factors: Sequence[int],
        limits: Sequence[int],
        slip: Sequence[int],
    ) -> list[int]:
        """Return the values to compare with the limits, one node per sign: σ.

        Where nothing presses and ds/dt is not zero it is more than the limit, with the sign of ds/dt: friction slips.
        What contacts and latches hold is released where s is more than next to nothing.

        Args:
            b: Where nodes are made.
            modes: As above.
            factors: σ.
            limits: Of their magnitudes.
            slip: s over its size.
        """
        rates, matrix, _ = self._at_modes(b, modes)
        barred = self._barred(b, modes, matrix)
        zero, found = b.constant(0.0), []
        for i, row in enumerate(matrix):
            idle = b.binary(Op.AND, b.binary(Op.EQ, modes[i], zero), b.binary(Op.EQ, row[i], zero))
            rate = b.sub(
                b.sum(b.mul(entry, sigma) for entry, sigma in zip(row, factors, strict=True)),
                self._less(b, row, modes, rates[i]),
            )
            beyond = b.mul(b.unary(Op.SIGN, rate), b.add(limits[i], b.unary(Op.ABS, rate)))
            found.append(b.select(idle, beyond, factors[i]))
            driven = b.mul(limits[i], b.mul(b.constant(1.0 / _MOVING_SLIP_RATIO), slip[i]))
            here = b.binary(Op.AND, b.binary(Op.EQ, modes[i], zero), barred[i])
            found[i] = b.select(here, driven, found[i])
        return found

    def states_at_rest(
        self, b: ProgramBuilder, modes: Sequence[int], slip: Sequence[int], x: Sequence[int]
    ) -> list[int]:
        """Return the states x with s = 0 of the held signs."""
        _, matrix, reach = self._at_modes(b, modes)
        none, zero = [b.constant(0.0)] * self.count, b.constant(0.0)
        barred = self._barred(b, modes, matrix)
        for i, j, node in self._opened(b, modes, "F"):
            matrix[i][j] = b.select(barred[j], node, matrix[i][j])
        for i, j, node in self._opened(b, modes, "Y"):
            reach[i, j] = b.select(barred[j], node, reach.get((i, j), zero))
        held = self._held(b, modes, matrix)
        y = self._solved(b, modes, matrix, held, [b.neg(s) for s in slip], none, "the end of slip")
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

    def _barred(self, b: ProgramBuilder, modes: Sequence[int], matrix: Sequence[Sequence[int]]) -> list[int]:
        """Return whether contacts or latches hold each slip already."""
        found = [b.constant(0.0)] * self.count
        for i, j, node in self._opened(b, modes, "F"):
            if i == j and node != matrix[i][i]:
                least = b.mul(b.constant(_BLOCKED_SLIP_RATIO), b.unary(Op.ABS, node))
                found[i] = b.binary(Op.LT, b.unary(Op.ABS, matrix[i][i]), least)
        return found

    def _opened(
        self, b: ProgramBuilder, modes: Sequence[int], name: Literal["F", "Y"]
    ) -> Iterator[tuple[int, int, int]]:
        """Yield row, column and value of the entries of a matrix without contacts and latches."""
        places = self.open["FY".index(name)]
        if places:
            copy = self._copy(b, modes)
            for (i, j), result in zip(places, self.program.entries[name].results, strict=True):
                yield i, j, copy.node[result]

    def _held(self, b: ProgramBuilder, modes: Sequence[int], matrix: Sequence[Sequence[int]]) -> list[int]:
        """Return whether each sign is held, and has an effect."""
        zero = b.constant(0.0)
        return [
            b.binary(Op.AND, b.binary(Op.EQ, mode, zero), b.unary(Op.NOT, b.binary(Op.EQ, matrix[i][i], zero)))
            for i, mode in enumerate(modes)
        ]

    def _limits(self, b: ProgramBuilder, modes: Sequence[int]) -> list[int]:
        """Return the limits of σ while it is held, at the modes."""
        copy = self._copy(b, modes)
        return [copy.node[node] for node in self.program.entries["limits"].results]

    def _copy(self, b: ProgramBuilder, modes: Sequence[int]) -> _ProgramCopyReadingModes:
        """Return the copy that reads modes in place of the inputs of held signs; a single one is evaluated at 0."""
        return _ProgramCopyReadingModes(self.program, b, [b.constant(0.0)] if self.count == 1 else modes)

    def _solved(
        self,
        b: ProgramBuilder,
        modes: Sequence[int],
        matrix: Sequence[Sequence[int]],
        at: Sequence[int],
        right: Sequence[int],
        free: Sequence[int],
        name: str,
    ) -> list[int]:
        """Solve row by row: the matrix's row where held (``at``), else σ = ``free``."""
        zero, one = b.constant(0.0), b.constant(1.0)
        if self.count == 1:
            return [b.select(at[0], b.div(right[0], matrix[0][0]), free[0])]
        limits = self._limits(b, modes)
        giving = [
            b.select(here, self._giving(b, i, row, at, limits[i]), zero)
            for i, (here, row) in enumerate(zip(at, matrix, strict=True))
        ]
        rows = [
            [
                b.select(at[i], b.add(entry, giving[i]) if i == j else entry, one if i == j else zero)
                for j, entry in enumerate(row)
            ]
            for i, row in enumerate(matrix)
        ]
        system = FactoredLinearSystem(b, rows, name)

        def relax(values: Sequence[int]) -> list[int]:
            """Return T times values."""
            return [b.mul(t, value) for t, value in zip(giving, values, strict=True)]

        whole = [b.select(*side) for side in zip(at, right, free, strict=True)]
        for _ in range(_RIGHT_SIDE_FILTERS):
            whole = [b.sub(x, y) for x, y in zip(whole, relax(system.solve(whole)), strict=True)]
        powers = [system.solve(whole)]  # and what E makes of it, again and again
        for _ in _FILTER_WEIGHTS[1:]:
            powers.append(system.solve(relax(powers[-1])))
        weights = [b.constant(weight) for weight in _FILTER_WEIGHTS]
        solved = [b.dot(weights, values) for values in zip(*powers, strict=True)]
        # Elimination mixes the rows: what slides is at its mode to the bit, and not to round-off.
        return [b.select(held_here, value, other) for held_here, value, other in zip(at, solved, free, strict=True)]

    def _giving(self, b: ProgramBuilder, i: int, row: Sequence[int], at: Sequence[int], limit: int) -> int:
        """Return T_ii, which relaxes the row of a held sign where it could be singular."""
        zero = b.constant(0.0)
        length = b.sum(b.select(held, b.mul(entry, entry), zero) for held, entry in zip(at, row, strict=True))
        shared = b.div(b.mul(b.constant(_RELAXATION), b.unary(Op.SQRT, length)), limit)
        most = b.mul(b.constant(_MAX_RELAXATION), b.unary(Op.ABS, row[i]))
        return b.mul(b.unary(Op.SIGN, row[i]), b.binary(Op.MIN, shared, most))


class _ProgramCopyReadingModes(CopiedProgramNodes):
    """A copy that reads modes for σ."""

    def __init__(self, program: ScalarProgram, builder: ProgramBuilder, modes: Sequence[int]) -> None:
        self._from = len(program.layout.inputs) - len(modes)
        self._modes = modes
        builder.constant(0.0)  # nothing is adopted: nodes change
        super().__init__(program, builder, ())

    def _leaf(self, op: Op, index: int) -> int:
        """Return the node of a leaf; inputs beyond the model's own are modes of held signs."""
        if op is Op.INPUT and index >= self._from:
            return self._modes[index - self._from]
        return super()._leaf(op, index)


class _ProgramCopyWithOpenContacts(CopiedProgramNodes):
    """A copy in which contacts are open and latches released, of a program that is in the builder already.

    Args:
        program: The one that is copied.
        builder: Takes the nodes.
        holding: Its states that are 0 then.
    """

    def __init__(self, program: ScalarProgram, builder: ProgramBuilder, holding: Sequence[int]) -> None:
        self._holding = frozenset(holding)
        super().__init__(program, builder, ())

    def _leaf(self, op: Op, index: int) -> int:
        """Return the node of a leaf; 0 for what would hold."""
        if op is Op.STATE and index in self._holding:
            return self.builder.constant(0.0)
        return super()._leaf(op, index)


def form_sliding_mode_system(
    program: ScalarProgram, sticking: Sequence[int], holding: Sequence[int] = ()
) -> SlidingModeSystem:
    """Return the system of the signs of a frozen program.

    Args:
        program: With entry ``slip``, the arguments s; its last inputs are σ.
        sticking: The signs.
        holding: States that are 1 where a contact rests or a latch is closed.
    """
    count = len(sticking)
    rated = add_time_derivative_entry(program, "slip", "rates")
    first = len(program.layout.inputs) - count
    factors = list_variable_group_members(rated, ("inputs",))[first:]
    builder = ProgramBuilder(rated.layout)
    copy = CopiedProgramNodes(rated, builder)
    places = _index_pairs(*add_jacobian_entry_point(copy, "rates", factors, "B"))
    reach = _index_pairs(*add_jacobian_entry_point(copy, "rhs", factors, "X"))
    if not holding:
        return SlidingModeSystem(builder.build(), count, places, reach)
    released = _ProgramCopyWithOpenContacts(rated, builder, holding)
    effects = _index_pairs(*add_jacobian_entry_point(released, "rates", factors, "F"))
    opened = effects, _index_pairs(*add_jacobian_entry_point(released, "rhs", factors, "Y"))
    return SlidingModeSystem(builder.build(), count, places, reach, opened)


def _index_pairs(rows: np.ndarray, columns: np.ndarray) -> tuple[tuple[int, int], ...]:
    """Return rows and columns as pairs."""
    return tuple(zip(rows.tolist(), columns.tolist(), strict=True))
