"""When switches of time alone change next: entry ``next_time_event``, for importers that go there exactly.

Of a switch whose surface is s = a t + b, where a and b change at events only (parameters, modes, states whose rate is
zero), the next instant is known: where s reaches what ends the mode,

    floor, ceiling    (m + 1 − b)/a where a > 0, (m − b)/a where a < 0
    comparison        −b/a where s goes to the other side of its mode

and it is never where s stands still or goes away from there. The quotient is off by a few units of round-off in |t| and
in |b/a|, and so is s where it is evaluated; the instant that is announced is later by as much, so that s is on the
other side there. Surfaces of other functions of time have their indicator, and no instant.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.scalar_program import Op

_DELAY_RATIO = 2.0**-49
"""By how much an instant is announced later, in parts of |t| and of |b/a|: eight units of round-off."""


@dataclass(frozen=True, slots=True)
class AffineTimeExpression:
    """A node as it depends on time: slope · t + level.

    Attributes:
        slope: Node of a.
        level: Node of b.
    """

    slope: int
    level: int


class TimeLinearityAnalysis:
    """Which nodes are linear in time between events.

    Args:
        builder: Has the nodes; takes those of slopes and levels.
        constant: Indices of states whose rate is zero.
        inputs: Inputs count as constant, too.
    """

    def __init__(self, builder: ProgramBuilder, constant: Collection[int], *, inputs: bool = False) -> None:
        self._builder = builder
        self._constant = constant
        self._inputs = inputs
        self._known: dict[int, AffineTimeExpression | None] = {}

    def of(self, node: int) -> AffineTimeExpression | None:
        """Return a node as a function of time; None if it is not linear in time, or depends on what moves."""
        stack = [node]
        while stack:
            last = stack[-1]
            missing = [each for each in self._read(last) if each not in self._known]
            if last in self._known or not missing:
                stack.pop()
                self._known.setdefault(last, self._course(last))
            else:
                stack += missing
        return self._known[node]

    def _read(self, node: int) -> tuple[int, ...]:
        """Return the operands on which such a function can depend."""
        b, op = self._builder, self._builder.operation(node)
        if op == Op.SELECT:
            return b.selection_operands(node)
        is_leaf = op <= Op.SEED or op in {Op.BLOCK, Op.TABLE} or b.value(node) is not None
        return () if is_leaf else b.operands(node)

    def _course(self, node: int) -> AffineTimeExpression | None:
        """Return a node, whose operands are known, as a function of time."""
        b, op = self._builder, self._builder.operation(node)
        zero = b.constant(0.0)
        if op == Op.TIME:
            return AffineTimeExpression(b.constant(1.0), zero)
        still = op == Op.MEMORY or (op == Op.STATE and self._index(node) in self._constant)
        still = still or (self._inputs and op == Op.INPUT)
        if b.variability_rank(node) < 2 or still:  # numbers, parameters
            return AffineTimeExpression(zero, node)
        parts = [self._known[each] for each in self._read(node)]
        found = [part for part in parts if part is not None]
        if not parts or len(found) < len(parts):
            return None
        if all(b.is_zero(part.slope) for part in found):
            return AffineTimeExpression(zero, node)
        return self._combined(op, found)

    def _combined(self, op: int, parts: list[AffineTimeExpression]) -> AffineTimeExpression | None:
        """Return an operation as a function of time; at least one of its operands changes with time."""
        b, first, last = self._builder, parts[0], parts[-1]
        if op == Op.NEG:
            return AffineTimeExpression(b.neg(first.slope), b.neg(first.level))
        if op in {Op.ADD, Op.SUB}:
            return AffineTimeExpression(b.binary(op, first.slope, last.slope), b.binary(op, first.level, last.level))
        if op == Op.MUL:
            moving, factor = (first, last) if b.is_zero(last.slope) else (last, first)
            if b.is_zero(factor.slope):
                return AffineTimeExpression(b.mul(factor.level, moving.slope), b.mul(factor.level, moving.level))
        if op == Op.DIV and b.is_zero(last.slope):
            return AffineTimeExpression(b.div(first.slope, last.level), b.div(first.level, last.level))
        if op == Op.SELECT and b.is_zero(first.slope):
            _, one, other = parts
            chosen = [b.select(first.level, x, y) for x, y in ((one.slope, other.slope), (one.level, other.level))]
            return AffineTimeExpression(*chosen)
        return None

    def _index(self, node: int) -> int:
        """Return which state a node is."""
        return self._builder.operands(node)[0]


def form_next_event_time(
    builder: ProgramBuilder, time_function: AffineTimeExpression, mode: int, *, steps: bool
) -> int:
    """Return the instant at which a switch changes next, infinity if it does not.

    Args:
        builder: Takes the nodes.
        time_function: Of its surface.
        mode: Node of its mode.
        steps: It counts steps; else it compares.
    """
    b = builder
    zero, never = b.constant(0.0), b.constant(math.inf)
    grows, falls = b.binary(Op.LT, zero, time_function.slope), b.binary(Op.LT, time_function.slope, zero)
    if steps:
        target = b.select(grows, b.add(mode, b.constant(1.0)), mode)
        changes = b.binary(Op.OR, grows, falls)
    else:
        target = zero
        changes = b.select(mode, falls, grows)
    slope = b.select(changes, time_function.slope, b.constant(1.0))
    at, begin = b.div(b.sub(target, time_function.level), slope), b.div(time_function.level, slope)
    off = b.add(b.unary(Op.ABS, at), b.unary(Op.ABS, begin))
    return b.select(changes, b.add(at, b.mul(b.constant(_DELAY_RATIO), off)), never)
