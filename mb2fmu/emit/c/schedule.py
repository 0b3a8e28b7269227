"""``schedule``: in what order, and in what statements, some results of a Program are computed.

Statements are few kinds of records without any text, so that order and cutting (``functions``) can be looked at apart
from C. Order: by depth of sines and cosines, then as the program has it. All angles of one depth are evaluated in one
statement, which is what makes them a loop over an array. An operand's depth is never larger than that of what uses it,
so operands still come first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mb2fmu.lowering.program import LEAVES, Op, Program

_TRIGONOMETRIC = (Op.SIN, Op.COS)


@dataclass(frozen=True, slots=True)
class Operation:
    """``node`` from its operands."""

    node: int
    reads: tuple[int, ...]

    @property
    def defines(self) -> tuple[int, ...]:
        """The nodes it computes."""
        return (self.node,)


@dataclass(frozen=True, slots=True)
class Angles:
    """Sines and cosines of angles; -1 where one of the two is not wanted."""

    reads: tuple[int, ...]
    sines: tuple[int, ...]
    cosines: tuple[int, ...]

    @property
    def defines(self) -> tuple[int, ...]:
        """The nodes it computes."""
        return tuple(node for node in (*self.sines, *self.cosines) if node >= 0)


@dataclass(frozen=True, slots=True)
class Factor:
    """The factors of block ``block``."""

    block: int
    reads: tuple[int, ...]
    defines: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Solve:
    """The solution of block ``block``; ``nodes[i]`` is the node of its result ``results[i]``."""

    block: int
    reads: tuple[int, ...]
    nodes: tuple[int, ...]
    results: tuple[int, ...]

    @property
    def defines(self) -> tuple[int, ...]:
        """The nodes it computes."""
        return self.nodes


@dataclass(frozen=True, slots=True)
class Iterate:
    """The solution of block ``block`` by Newton's method; ``nodes[i]`` is the node of its result ``results[i]``."""

    block: int
    reads: tuple[int, ...]
    nodes: tuple[int, ...]
    results: tuple[int, ...]

    @property
    def defines(self) -> tuple[int, ...]:
        """The nodes it computes."""
        return self.nodes


Statement = Operation | Angles | Factor | Solve | Iterate


class Graph:
    """A program, with what every function that is printed from it asks about it.

    Args:
        program: Any.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.op: list[int] = program.op.tolist()
        self.operands = program.all_operands()
        self.is_leaf: npt.NDArray[np.bool_] = np.isin(program.op, [int(op) for op in LEAVES])

    def schedule(self, results: Iterable[int], given: npt.NDArray[np.bool_]) -> list[Statement]:
        """Statements that compute ``results``.

        Args:
            results: Nodes.
            given: Mask of nodes that are read from somewhere and not computed; leaves always are.
        """
        known = self.is_leaf | given
        wanted = self._wanted(results, known)
        depth = self._depth(wanted)
        order = sorted(wanted, key=lambda node: (depth[node], node))
        statements: list[Statement] = []
        done: set[int] = set()
        siblings = self._siblings(wanted)
        angles: dict[int, list[int]] = {}
        for node in order:
            if self.op[node] in _TRIGONOMETRIC:
                angles.setdefault(depth[node], []).append(node)
        for node in order:
            if self.op[node] in _TRIGONOMETRIC:
                group = angles.pop(depth[node], None)
                if group:
                    statements.append(self._angles(group))
            elif self.op[node] == Op.BLOCK:
                self._block(int(self.program.a[node]), siblings, done, statements)
            else:
                statements.append(Operation(node, self.operands[node]))
        return statements

    def boundary(self, results: Iterable[int], given: npt.NDArray[np.bool_]) -> set[int]:
        """Given nodes that are read on the way to ``results``, or are results; leaves are left out."""
        wanted = list(results)
        reached = set(wanted).union(*(self.operands[node] for node in self._wanted(wanted, self.is_leaf | given)))
        return {node for node in reached if given[node] and not self.is_leaf[node]}

    def _wanted(self, results: Iterable[int], known: npt.NDArray[np.bool_]) -> list[int]:
        """Nodes to compute: what is needed, but not what only known nodes need."""
        wanted = bytearray(len(self.op))
        is_known = known.tolist()
        newest = -1
        for result in results:
            wanted[result] = 1
            newest = max(newest, result)
        for node in range(newest, -1, -1):
            if wanted[node] and not is_known[node]:
                for operand in self.operands[node]:
                    wanted[operand] = 1
        return [node for node in range(newest + 1) if wanted[node] and not is_known[node]]

    def _depth(self, wanted: Sequence[int]) -> dict[int, int]:
        depth: dict[int, int] = {}
        for node in wanted:
            below = max((depth.get(operand, 0) for operand in self.operands[node]), default=0)
            depth[node] = below + (self.op[node] in _TRIGONOMETRIC)
        return depth

    def _siblings(self, wanted: Sequence[int]) -> Mapping[int, list[int]]:
        """The wanted results of each block."""
        siblings: dict[int, list[int]] = {}
        for node in wanted:
            if self.op[node] == Op.BLOCK:
                siblings.setdefault(int(self.program.a[node]), []).append(node)
        return siblings

    def _angles(self, group: Sequence[int]) -> Angles:
        sines: dict[int, int] = {}
        cosines: dict[int, int] = {}
        for node in group:
            (sines if self.op[node] == Op.SIN else cosines)[self.operands[node][0]] = node
        reads = tuple(dict.fromkeys(self.operands[node][0] for node in group))
        return Angles(reads, tuple(sines.get(a, -1) for a in reads), tuple(cosines.get(a, -1) for a in reads))

    def _block(
        self, index: int, siblings: Mapping[int, list[int]], done: set[int], statements: list[Statement]
    ) -> None:
        if index in done:
            return
        block = self.program.blocks[index]
        nodes = tuple(siblings[index])
        results = tuple(int(self.program.b[node]) for node in nodes)
        done.add(index)
        if block.kind == "newton":
            statements.append(Iterate(index, block.operands, nodes, results))
            return
        if block.factor not in done:
            done.add(block.factor)
            statements.append(Factor(block.factor, self.program.blocks[block.factor].operands))
        statements.append(Solve(index, block.operands, nodes, results))
