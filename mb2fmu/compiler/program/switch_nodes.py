"""Nodes of which some are marked as switches: their jumps and kinks are events."""

from __future__ import annotations

from collections.abc import Callable

from mb2fmu.compiler.program.program import Op
from mb2fmu.compiler.program.scalar_graph import Nodes

SWITCHING = frozenset(map(int, (Op.ABS, Op.SIGN, Op.FLOOR, Op.CEIL, Op.MIN, Op.MAX, Op.LT, Op.LE)))
"""Operations that jump or have a kink on a surface; equality does at single points, and is no event."""


class MarkedNodes(Nodes):
    """Nodes, and which of them switch."""

    def __init__(self) -> None:
        super().__init__()
        self._switches: dict[int, str] = {}  # node → what people are told of it; empty: its expression

    def switch(self, node: int) -> int:
        """Mark a node as a switch: its jumps and kinks are events (entry ``switches``). Returns the node."""
        inner = node
        while self._op[inner] in {Op.NEG, Op.NOT}:
            inner = self._a[inner]
        positive = self._op[inner] == Op.ABS and self._op[self._a[inner]] in {Op.SQRT, Op.EXP}
        if self._op[inner] in SWITCHING and self._rank[inner] > 1 and not positive:
            self._switches.setdefault(inner, "")
        return node

    def name_switch(self, make: Callable[[], int], holds: str, otherwise: str) -> None:
        """Name the switch that a condition is, if it is one; nothing becomes a switch by that.

        Args:
            make: Gives the condition's node.
            holds: What people are told where the condition holds.
            otherwise: What they are told where it does not.
        """
        known = dict(self._switches)
        inner, negated = make(), False
        self._switches = known
        while self._op[inner] in {Op.NEG, Op.NOT}:
            inner, negated = self._a[inner], negated != (self._op[inner] == Op.NOT)
        if inner in known:  # of a <= b the mode is that of b < a
            known[inner] = known[inner] or (otherwise if negated != (self._op[inner] == Op.LE) else holds)

    def without_events(self, node: int) -> int:
        """Remove the marks of :meth:`switch` from all nodes that a node needs. Returns the node."""
        stack, seen = [node], {node}
        while stack:
            last = stack.pop()
            self._switches.pop(last, None)
            if self._op[last] <= Op.SEED or self._op[last] == Op.BLOCK:
                continue
            several = (self._c[last],) if self._op[last] == Op.TABLE else (self._a[last], self._b[last], self._c[last])
            new = {operand for operand in several if operand >= 0} - seen
            seen |= new
            stack.extend(new)
        return node
