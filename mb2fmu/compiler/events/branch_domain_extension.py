"""Branches of selections that go on beyond the selection's event, where functions in them would have no value."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from mb2fmu.compiler.events.switch_guarded_powers import SwitchGuardedPowerFinder
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.scalar_program import Op, ScalarProgram

_TINY, _BELOW_ONE = float(np.finfo(float).tiny), 1.0 - 2.0**-53
_DOMAIN_ENDS: dict[Op, tuple[tuple[float, float] | None, tuple[float, float] | None, float]] = {
    Op.SQRT: ((0.0, 0.0), None, 1.0),
    Op.POW: ((0.0, 0.0), None, 1.0),
    Op.LOG: ((_TINY, math.log(_TINY)), None, 1.0),
    Op.ASIN: ((-1.0, -math.pi / 2), (1.0, math.pi / 2), 0.0),
    Op.ACOS: ((-1.0, math.pi), (1.0, 0.0), 0.0),
    Op.ACOSH: ((1.0, 0.0), None, 2.0),
    Op.ATANH: ((-_BELOW_ONE, -math.atanh(_BELOW_ONE)), (_BELOW_ONE, math.atanh(_BELOW_ONE)), 0.0),
}
"""Operation → lowest and highest operand, each with the value there (of a power 0^e), and an operand within."""


class BranchDomainExtension:
    """Copies selections so that each branch goes on with the values of its functions at the ends of their domains.

    Args:
        program: With switches.
        operands: Of each node.
        powers: The functions in question.
        builder: Takes the copies.
        node: Node of the program → its copy with frozen switches, as far as there are copies.
        unfrozen: Returns the copy of a node with its switches as functions of the present state.
    """

    def __init__(
        self,
        program: ScalarProgram,
        operands: Sequence[tuple[int, ...]],
        powers: SwitchGuardedPowerFinder,
        builder: ProgramBuilder,
        node: Sequence[int],
        unfrozen: Callable[[int], int],
    ) -> None:
        self._program, self._operands, self._powers = program, operands, powers
        self._builder, self._node, self._unfrozen = builder, node, unfrozen

    def copy_selection(self, node: int, outer: tuple[int, ...] = ()) -> int:
        """Return the copy of a selection; ``outer``: comparisons of selections in whose branches it is."""
        condition, *branches = self._operands[node]
        comparisons = tuple(dict.fromkeys((*outer, *self._powers.list_comparisons(condition))))
        return self._builder.select(self._node[condition], *(self._copy_branch(each, comparisons) for each in branches))

    def _copy_branch(self, branch: int, comparisons: tuple[int, ...]) -> int:
        """Return the copy of a branch in which limited functions end with the comparisons' modes."""
        copies: dict[int, int] = {}
        for each in self._powers.list_nodes_with_powers(branch):
            if self._powers.is_switch(each):
                continue  # its mode is decided by what it compares
            operands = [copies.get(operand, self._node[operand]) for operand in self._operands[each]]
            if self._powers.is_power_guard(each):
                copies[each] = self.copy_selection(each, comparisons)
            elif self._powers.is_limited(each, comparisons):
                if self._powers.is_power_of_switch(each):
                    operands[0] = self._unfrozen(self._operands[each][0])
                copies[each] = self._copy_limited(Op(self._program.op[each]), operands, comparisons)
            else:
                copies[each] = self._copy_node(each, operands)
        return copies.get(branch, self._node[branch])

    def _copy_node(self, node: int, operands: Sequence[int]) -> int:
        """Return the copy of a node with other operands."""
        b, op = self._builder, Op(self._program.op[node])
        if op is Op.SELECT:
            return b.select(*operands)
        if op is Op.TABLE:
            table = self._program.tables[int(self._program.a[node])]
            return b.table(table, int(self._program.b[node]), operands[0])
        return b.unary(op, operands[0]) if len(operands) == 1 else b.binary(op, *operands)

    def _copy_limited(self, op: Op, operands: Sequence[int], comparisons: tuple[int, ...]) -> int:
        """Return a function that is constant outside of its domain, wherever a comparison is not as its mode says."""
        b, (base, *exponent) = self._builder, operands
        low, high, within = _DOMAIN_ENDS[op]
        beyond = self._find_disagreement(comparisons)
        ends = []
        for end, is_low in ((low, True), (high, False)):
            if end is not None:
                limit = b.constant(end[0])
                outside = b.binary(Op.LE, base, limit) if is_low else b.binary(Op.LE, limit, base)
                value = b.binary(op, b.constant(0.0), exponent[0]) if exponent else b.constant(end[1])
                ends.append((b.binary(Op.AND, beyond, outside), value))
        for outside, _ in ends:
            base = b.select(outside, b.constant(within), base)
        result = b.binary(op, base, exponent[0]) if exponent else b.unary(op, base)
        for outside, value in ends:
            result = b.select(outside, value, result)
        return result

    def _find_disagreement(self, comparisons: tuple[int, ...]) -> int:
        """Return the node that is true where any comparison is not as its mode says."""
        b, result = self._builder, self._builder.constant(0.0)
        for each in comparisons:
            differs = b.unary(Op.NOT, b.binary(Op.EQ, self._unfrozen(each), self._node[each]))
            result = b.binary(Op.OR, result, differs)
        return result
