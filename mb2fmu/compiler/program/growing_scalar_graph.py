"""Nodes: the scalar graph of a Program while it grows, equal nodes shared."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from mb2fmu.compiler.program.scalar_program import Op, ScalarProgram

_CONSTANT = int(Op.CONSTANT)  # members of an enumeration are slow to look up
_PARAMETER = int(Op.PARAMETER)


class ScalarGraph:
    """Numbers nodes, finds equal ones again, and knows their rank: number, parameters only, anything."""

    def __init__(self) -> None:
        self._op: list[int] = []
        self._a: list[int] = []
        self._b: list[int] = []
        self._c: list[int] = []
        self._rank: list[int] = []  # 0: a number, 1: of parameters only, 2: of anything
        self._nodes: dict[tuple[int, int, int, int], int] = {}
        self._values: list[float] = []
        self._constants: dict[float, int] = {}  # value → node
        self._value: list[float | None] = []  # of each node that is a number

    def __len__(self) -> int:
        return len(self._op)

    def constant(self, value: float) -> int:
        """Return a number; −0.0 becomes 0.0."""
        node = self._constants.get(value)
        return self._new_constant(float(value)) if node is None else node

    def _new_constant(self, value: float) -> int:
        """Return the node of a constant; all NaN share one node, and −0.0 becomes 0.0."""
        value = math.nan if math.isnan(value) else value + 0.0  # one NaN, that it is found again; −0.0 + 0.0 is 0.0
        node = self._constants.get(value)
        if node is None:
            node = self._constants[value] = self._intern(_CONSTANT, len(self._values), -1, -1, 0)
            self._values.append(value)
            self._value[node] = value
        return node

    def time(self) -> int:
        """Return the time t."""
        return self._intern(Op.TIME, 0, -1, -1, 2)

    def state(self, index: int) -> int:
        """Return x[index]."""
        return self._intern(Op.STATE, index, -1, -1, 2)

    def input(self, index: int) -> int:
        """Return r[index]."""
        return self._intern(Op.INPUT, index, -1, -1, 2)

    def parameter(self, index: int) -> int:
        """Return p[index]."""
        return self._intern(Op.PARAMETER, index, -1, -1, 1)

    def memory(self, index: int) -> int:
        """Return m[index]."""
        return self._intern(Op.MEMORY, index, -1, -1, 2)

    def seed(self, index: int) -> int:
        """Return s[index]."""
        return self._intern(Op.SEED, index, -1, -1, 2)

    def value(self, node: int) -> float | None:
        """Return the number that a node is, None if it is not one."""
        return self._value[node]

    def is_zero(self, node: int) -> bool:
        """True if the node is the number 0."""
        return self._value[node] == 0.0

    def variability_rank(self, node: int) -> int:
        """Return 0 for a number, 1 for what depends on parameters only, 2 for anything else."""
        return self._rank[node]

    def build_smallest_alternative(self, ways: Sequence[Callable[[], int]]) -> int:
        """Return the alternative that needs the fewest new nodes; the first of equals."""
        start, best, fewest = len(self._op), ways[0], math.inf
        for way in ways:
            node = way()
            count = self._new_below(node, start)
            if count < fewest:
                if count <= 1 or way is ways[-1]:
                    return node  # what is built last stays, and need not be built again
                best, fewest = way, count
            self._take_back(start)
        return best()

    def _new_below(self, node: int, start: int) -> int:
        """Count the new operations, from ``start`` on, that a node needs."""
        found: set[int] = set()
        stack = [node]
        while stack:
            last = stack.pop()
            if last >= start and last not in found and self._op[last] != _CONSTANT:
                found.add(last)
                stack.append(self._a[last])
                if self._b[last] >= 0:
                    stack.append(self._b[last])
        return len(found)

    def _take_back(self, start: int) -> None:
        """Remove the arithmetic nodes from one on."""
        for node in range(start, len(self._op)):
            del self._nodes[self._op[node], self._a[node], self._b[node], self._c[node]]
            value = self._value[node]
            if value is not None:
                del self._constants[value]
                self._values.pop()  # numbers are kept in the order of their nodes
        for column in (self._op, self._a, self._b, self._c, self._rank, self._value):
            del column[start:]

    def operation(self, node: int) -> int:
        """Return the operation of a node."""
        return self._op[node]

    def operands(self, node: int) -> tuple[int, ...]:
        """Return the operands of an operation with one or two operands."""
        return (self._a[node],) if self._b[node] < 0 else (self._a[node], self._b[node])

    def selection_operands(self, node: int) -> tuple[int, int, int]:
        """Return the condition of a selection, its value where this holds, and its value elsewhere."""
        return self._a[node], self._b[node], self._c[node]

    def _binary(self, op: int, a: int, b: int) -> int:
        """Return the node of an operation on two nodes, shared if it exists; its rank is the greater one."""
        key = (op, a, b, -1)
        node = self._nodes.get(key)
        if node is None:  # as _intern has it, which would be one more call per node
            node = self._nodes[key] = len(self._op)
            self._op.append(op)
            self._a.append(a)
            self._b.append(b)
            self._c.append(-1)
            rank = self._rank
            rank.append(max(rank[b], rank[a]))
            self._value.append(None)
        return node

    def _intern(self, op: int, a: int, b: int, c: int, rank: int) -> int:
        """Return the node with this key, an existing one if there is one, else a new one of the given rank."""
        key = (op, a, b, c)
        node = self._nodes.get(key)
        if node is None:
            node = self._nodes[key] = len(self._op)
            self._op.append(int(op))
            self._a.append(a)
            self._b.append(b)
            self._c.append(c)
            self._rank.append(rank)
            self._value.append(None)
        return node

    def _adopt_nodes(self, program: ScalarProgram) -> None:
        """Take over all nodes of a program, while there is none yet."""
        assert not self._op, "there are nodes already"
        self._op, self._a, self._b, self._c = (getattr(program, name).tolist() for name in ("op", "a", "b", "c"))
        self._nodes = dict(zip(zip(self._op, self._a, self._b, self._c, strict=True), range(len(program)), strict=True))
        self._values = [math.nan if math.isnan(value) else value for value in program.constants.tolist()]
        self._value = [None] * len(program)
        for node in np.flatnonzero(program.op == _CONSTANT).tolist():
            value = self._values[self._a[node]]
            self._value[node] = value
            self._constants[value] = node
        self._rank = _node_ranks(program)


def _node_ranks(program: ScalarProgram) -> list[int]:
    """Return the rank of each node, see ``Nodes.rank``."""
    own = np.where(program.op <= Op.SEED, 2, 0)
    own[program.op == _CONSTANT] = 0
    own[program.op == _PARAMETER] = 1
    ranks = [*own.tolist(), 0]  # the last is the operand that a node does not have
    first, second, others = program.operand_pairs()
    for node in np.flatnonzero(program.op > Op.SEED).tolist():
        x, y = ranks[first[node]], ranks[second[node]]
        ranks[node] = max(y, x)
        if node in others:  # results of blocks are no numbers, whatever they are computed from
            ranks[node] = max([int(program.op[node] == Op.BLOCK), *(ranks[operand] for operand in others[node])])
    return ranks[:-1]


SWITCHING_OPERATIONS = frozenset(map(int, (Op.ABS, Op.SIGN, Op.FLOOR, Op.CEIL, Op.MIN, Op.MAX, Op.LT, Op.LE)))
"""Operations that jump or have a kink on a surface; equality does at single points, and is no event."""


class ScalarGraphWithSwitches(ScalarGraph):
    """Nodes, and which of them switch."""

    def __init__(self) -> None:
        super().__init__()
        self._switches: dict[int, str] = {}  # node → what messages call it; empty: its expression

    def mark_switch(self, node: int) -> int:
        """Mark a node as a switch: its jumps and kinks are events (entry ``switches``). Returns the node."""
        inner = node
        while self._op[inner] in {Op.NEG, Op.NOT}:
            inner = self._a[inner]
        positive = self._op[inner] == Op.ABS and self._op[self._a[inner]] in {Op.SQRT, Op.EXP}
        if self._op[inner] in SWITCHING_OPERATIONS and self._rank[inner] > 1 and not positive:
            self._switches.setdefault(inner, "")
        return node

    def name_switch(self, make: Callable[[], int], holds: str, otherwise: str) -> None:
        """Name the switch that a condition is, if it is one; nothing becomes a switch by that.

        Args:
            make: Gives the condition's node.
            holds: What messages say where the condition holds.
            otherwise: What they say where it does not.
        """
        known = dict(self._switches)
        inner, negated = make(), False
        self._switches = known
        while self._op[inner] in {Op.NEG, Op.NOT}:
            inner, negated = self._a[inner], negated != (self._op[inner] == Op.NOT)
        if inner in known:  # of a <= b the mode is that of b < a
            known[inner] = known[inner] or (otherwise if negated != (self._op[inner] == Op.LE) else holds)

    def unmark_switches(self, node: int) -> int:
        """Remove the marks of :meth:`mark_switch` from all nodes that a node needs. Returns the node."""
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
