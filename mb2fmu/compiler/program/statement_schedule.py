"""Statement schedule: order and statements by which some results of a Program are computed.

Statements are few kinds of records without any text, so that order and cutting (``long_function_splitting``) can be
looked at apart from C. Order: by depth of sines and cosines, then as the program has it. All angles of one depth are
evaluated in one statement, which is what makes them a loop over an array. An operand's depth is never larger than that
of what uses it, so operands still come first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

import numpy as np
import numpy.typing as npt

from mb2fmu.compiler.program.scalar_program import (
    BINARY_OPERATIONS,
    LEAF_OPERATIONS,
    TERNARY_OPERATIONS,
    UNARY_OPERATIONS,
    Op,
    ScalarProgram,
)

_TRIGONOMETRIC_OPERATIONS = (Op.SIN, Op.COS)

MAX_EDGES_WITHOUT_SCIPY = 100_000
"""Edges of a graph that is searched in Python: SciPy's graphs take longer to import than so many to walk."""

NodeMask = npt.NDArray[np.bool_]
NodeArray = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class OperationStatement:
    """Computes ``node`` from its operands."""

    node: int
    reads: tuple[int, ...]

    @property
    def defines(self) -> tuple[int, ...]:
        """Computed nodes."""
        return (self.node,)


@dataclass(frozen=True, slots=True)
class SineCosineStatement:
    """Sines and cosines of angles; -1 where one of the two is not needed."""

    reads: tuple[int, ...]
    sines: tuple[int, ...]
    cosines: tuple[int, ...]

    @property
    def defines(self) -> tuple[int, ...]:
        """Computed nodes."""
        return tuple(node for node in (*self.sines, *self.cosines) if node >= 0)


@dataclass(frozen=True, slots=True)
class FactorizationStatement:
    """The factors of block ``block``."""

    block: int
    reads: tuple[int, ...]
    defines: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _SolutionStatement:
    """The solution of block ``block``; ``nodes[i]`` is the node of its result ``results[i]``."""

    block: int
    reads: tuple[int, ...]
    nodes: tuple[int, ...]
    results: tuple[int, ...]

    @property
    def defines(self) -> tuple[int, ...]:
        """Computed nodes."""
        return self.nodes


class SolveStatement(_SolutionStatement):
    """The solution of a linear system, by the factors of its block."""

    __slots__ = ()


class NewtonStatement(_SolutionStatement):
    """The solution by Newton's method."""

    __slots__ = ()


Statement = OperationStatement | SineCosineStatement | FactorizationStatement | SolveStatement | NewtonStatement


class StatementSequence(Sequence[Statement]):
    """Statements in order, stored as arrays: long programs look at few of them one by one.

    Args:
        graph: Of the program.
        nodes: The node of each statement that is an operation, -1 where it is another one.
        others: The other ones by their places.
    """

    def __init__(self, graph: StatementScheduleGraph, nodes: NodeArray, others: Mapping[int, Statement]) -> None:
        self._graph = graph
        self.nodes = nodes
        self.others = others

    def __len__(self) -> int:
        """Number of statements."""
        return len(self.nodes)

    @overload
    def __getitem__(self, place: int) -> Statement: ...

    @overload
    def __getitem__(self, place: slice) -> list[Statement]: ...

    def __getitem__(self, place: int | slice) -> Statement | list[Statement]:
        """Return the statement at a place, or those of a range."""
        if isinstance(place, slice):
            return self._between(*place.indices(len(self)))
        return self._between(place, place + 1)[0]

    def __iter__(self) -> Iterator[Statement]:
        """Yield the statements in order."""
        return iter(self._between(0, len(self)))

    def operands_of(self, places: NodeArray) -> NodeArray:
        """Return the nodes that the statements at some places read, each once, in their order."""
        nodes = self.nodes[places]
        read = self._graph.matrix[nodes[nodes >= 0]]
        others = [node for place in places[nodes < 0].tolist() for node in self.others[place].reads]
        return np.unique(np.concatenate([read[read >= 0], np.array(others, dtype=np.intp)]))

    def _between(self, begin: int, end: int, step: int = 1) -> list[Statement]:
        """Return the statements from `begin` to `end`, every `step`-th."""
        nodes = self.nodes[begin:end:step]
        rows = zip(range(begin, end, step), nodes.tolist(), self._graph.matrix[nodes].tolist(), strict=True)
        return [
            OperationStatement(node, tuple([read for read in reads if read >= 0])) if node >= 0 else self.others[place]
            for place, node, reads in rows
        ]


@dataclass(frozen=True)
class _SortedGraphEdges:
    """Edges of a graph, sorted by the node from which they go.

    Attributes:
        offsets: Of the edges of each node among all, and the number of all, shape (n + 1,).
        ends: Nodes to which they go.
    """

    offsets: NodeArray
    ends: NodeArray

    @classmethod
    def between(cls, starts: NodeArray, ends: NodeArray, count: int) -> _SortedGraphEdges:
        """Return the edges of ``count`` nodes."""
        offsets = np.concatenate([[0], np.cumsum(np.bincount(starts, minlength=count))])
        return cls(offsets, ends[np.argsort(starts, kind="stable")])

    @cached_property
    def lists(self) -> tuple[list[int], list[int]]:
        """Offsets and ends as lists, which Python reads faster."""
        return self.offsets.tolist(), self.ends.tolist()


@dataclass(frozen=True, slots=True)
class _PartiallyEvaluatedGraph:
    """A graph in which the values of some nodes are given.

    Attributes:
        known: Nodes that are not computed.
        reads: From each node that is computed to its operands.
        used_by: The other way round.
    """

    known: NodeMask
    reads: _SortedGraphEdges
    used_by: _SortedGraphEdges


class StatementScheduleGraph:
    """A program with the analyses that all functions printed from it share.

    Args:
        program: Any.
    """

    def __init__(self, program: ScalarProgram) -> None:
        self.program = program
        self.op: list[int] = program.op.tolist()
        self.is_leaf: NodeMask = np.isin(program.op, [int(op) for op in LEAF_OPERATIONS])
        self.matrix = _form_operand_matrix(program)
        self._edges = _list_edges(program, self.matrix)
        self._is_trigonometric: NodeMask = np.isin(program.op, [int(op) for op in _TRIGONOMETRIC_OPERATIONS])
        self._views: dict[bytes, _PartiallyEvaluatedGraph] = {}
        self._depths: dict[bytes, NodeArray] = {}
        self._masks: dict[tuple[bytes, tuple[int, ...]], NodeMask] = {}

    @property
    def parameter_only_mask(self) -> NodeMask:
        """Mask of the nodes that depend on parameters only (numbers included)."""
        others = self.is_leaf & ~np.isin(self.program.op, [Op.CONSTANT, Op.PARAMETER])
        return ~_find_reachable(self._view(np.zeros_like(others)).used_by, np.flatnonzero(others).tolist())

    def schedule_statements(self, results: Iterable[int], given: NodeMask) -> StatementSequence:
        """Return the statements that compute ``results``.

        Args:
            results: Nodes.
            given: Mask of nodes that are read from somewhere and not computed; leaves always are.
        """
        wanted = np.flatnonzero(self._needed(results, given) & ~self._view(given).known)
        depth = self._depth(given, wanted)
        order = wanted[np.argsort(depth[wanted], kind="stable")]
        special = self._is_trigonometric[order] | (self.program.op[order] == Op.BLOCK)
        places = np.flatnonzero(special)
        found = self._others(order[places].tolist(), depth)
        counts = np.ones(len(order), dtype=np.intp)
        counts[places] = [len(each) for each in found]
        nodes = np.repeat(np.where(special, -1, order), counts)
        others = (statement for each in found for statement in each)
        return StatementSequence(self, nodes, dict(zip(np.flatnonzero(nodes < 0).tolist(), others, strict=True)))

    def boundary_nodes(self, results: Iterable[int], given: NodeMask) -> set[int]:
        """Return given nodes that the computation of ``results`` reads, or that are results; without leaves."""
        reached = self._needed(results, given)
        return set(np.flatnonzero(reached & given & ~self.is_leaf).tolist())

    def _needed(self, results: Iterable[int], given: NodeMask) -> NodeMask:
        """Return the mask of the results and of all nodes computed or read for them."""
        key = (given.tobytes(), tuple(results))
        if key not in self._masks:
            self._masks[key] = _find_reachable(self._view(given).reads, key[1])
        return self._masks[key]

    def _view(self, given: NodeMask) -> _PartiallyEvaluatedGraph:
        """Return the graph without edges into given nodes; cached by the set of given nodes."""
        key = given.tobytes()
        if key not in self._views:
            known = self.is_leaf | given
            users, operands = (ends[~known[self._edges[0]]] for ends in self._edges)
            reads, used_by = (
                _SortedGraphEdges.between(users, operands, len(known)),
                _SortedGraphEdges.between(operands, users, len(known)),
            )
            self._views[key] = _PartiallyEvaluatedGraph(known, reads, used_by)
        return self._views[key]

    def _depth(self, given: NodeMask, wanted: NodeArray) -> NodeArray:
        """Count the sines and cosines nested in the value of each wanted node; cached by the set of given nodes."""
        depth, key = np.zeros(len(given), dtype=np.intp), given.tobytes()
        if not self._is_trigonometric[wanted].any():  # as where parameters are prepared
            return depth
        if key not in self._depths:
            view = self._view(given)
            trigonometric = np.flatnonzero(self._is_trigonometric & ~view.known)
            deeper = trigonometric
            while len(deeper):
                reached = _find_reachable(view.used_by, deeper.tolist())
                depth += reached
                deeper = trigonometric[reached[self.matrix[trigonometric, 0]]]
            self._depths[key] = depth
        return self._depths[key]

    def _others(self, nodes: Sequence[int], depth: NodeArray) -> list[list[Statement]]:
        """Return for each sine, cosine and result of a block the statements that replace it."""
        angles: dict[int, list[int]] = {}
        siblings: dict[int, list[int]] = {}
        for node in nodes:
            if self.op[node] != Op.BLOCK:
                angles.setdefault(int(depth[node]), []).append(node)
        for node in sorted(nodes):
            if self.op[node] == Op.BLOCK:
                siblings.setdefault(int(self.program.a[node]), []).append(node)
        done: set[int] = set()
        found: list[list[Statement]] = []
        for node in nodes:
            if self.op[node] == Op.BLOCK:
                found.append(self._block(int(self.program.a[node]), siblings, done))
            else:
                group = angles.pop(int(depth[node]), None)
                found.append([self._angles(group)] if group else [])
        return found

    def _angles(self, group: Sequence[int]) -> SineCosineStatement:
        """Group sines and cosines by angle, so that each angle is evaluated once; −1 where one is not wanted."""
        sines: dict[int, int] = {}
        cosines: dict[int, int] = {}
        for node in group:
            (sines if self.op[node] == Op.SIN else cosines)[int(self.matrix[node, 0])] = node
        reads = tuple(dict.fromkeys(int(self.matrix[node, 0]) for node in group))
        return SineCosineStatement(
            reads, tuple(sines.get(a, -1) for a in reads), tuple(cosines.get(a, -1) for a in reads)
        )

    def _block(self, index: int, siblings: Mapping[int, list[int]], done: set[int]) -> list[Statement]:
        """Return the statements of a block: its factorization, unless already done, and its solve or iteration."""
        if index in done:
            return []
        block = self.program.blocks[index]
        nodes = tuple(siblings[index])
        results = tuple(int(self.program.b[node]) for node in nodes)
        done.add(index)
        if block.kind == "newton":
            return [NewtonStatement(index, block.operands, nodes, results)]
        solve = SolveStatement(index, block.operands, nodes, results)
        if block.factor in done:
            return [solve]
        done.add(block.factor)
        return [FactorizationStatement(block.factor, self.program.blocks[block.factor].operands), solve]


def group_statements_by_size(statements: Iterable[Statement], size: int) -> list[list[Statement]]:
    """Group statements so that each group computes at most so many values."""
    parts: list[list[Statement]] = [[]]
    weight = 0
    for statement in statements:
        added = _count_values(statement)
        if parts[-1] and weight + added > size:
            parts.append([])
            weight = 0
        parts[-1].append(statement)
        weight += added
    return parts


def count_statement_values(statements: Sequence[Statement]) -> int:
    """Count the values that statements define; a statement without any counts as one."""
    return sum(map(_count_values, statements))


def _count_values(statement: Statement) -> int:
    """Return the number of values of one statement, nearly always an operation's only one."""
    return 1 if type(statement) is OperationStatement else max(1, len(statement.defines))


def count_factor_doubles(kind: str, n: int) -> int:
    """Return the number of doubles in the factors of an n × n matrix where they stand in one array.

    L D Lᵀ: the lower triangle row by row, with D on the diagonal; P A = L U: the matrix row by row, then the row with
    which each was exchanged; least norm: n n places to work with, eigenvectors as rows, factors of their eigenvalues.
    """
    sizes = {"ldlt_factor": n * (n + 1) // 2, "least_norm_factor": 2 * n * n + n}
    return sizes.get(kind, n * (n + 1))


def _form_operand_matrix(program: ScalarProgram) -> NodeArray:
    """Return the operands of each operation, shape (n, 3), -1 where there is none; those of blocks are not in it."""
    columns = [program.a, program.b, program.c]
    matrix = np.full((len(program), 3), -1, dtype=np.intp)
    for count, ops in ((1, UNARY_OPERATIONS), (2, BINARY_OPERATIONS), (3, TERNARY_OPERATIONS)):
        nodes = np.flatnonzero(np.isin(program.op, [int(op) for op in ops]))
        for i in range(count):
            matrix[nodes, i] = columns[i][nodes]
    tables = np.flatnonzero(program.op == Op.TABLE)
    matrix[tables, 0] = program.c[tables]
    return matrix


def _list_edges(program: ScalarProgram, matrix: NodeArray) -> tuple[NodeArray, NodeArray]:
    """Return each node and each of its operands."""
    nodes, columns = np.nonzero(matrix >= 0)
    users, operands = [nodes], [matrix[nodes, columns]]
    for node in np.flatnonzero(program.op == Op.BLOCK).tolist():
        read = np.array(program.block_operands(int(program.a[node])), dtype=np.intp)
        users.append(np.full(len(read), node, dtype=np.intp))
        operands.append(read)
    return np.concatenate(users), np.concatenate(operands)


def _find_reachable(edges: _SortedGraphEdges, starts: Iterable[int]) -> NodeMask:
    """Return the mask of the nodes that can be reached, the starting ones included."""
    first = np.unique(np.fromiter(starts, dtype=np.intp))
    n = len(edges.offsets) - 1
    mask = np.zeros(n + 1, dtype=bool)
    if len(edges.ends) <= MAX_EDGES_WITHOUT_SCIPY:
        offsets, ends = edges.lists
        mask[first] = True
        waiting, reached = first.tolist(), bytearray(mask)
        while waiting:
            node = waiting.pop()
            for end in ends[offsets[node] : offsets[node + 1]]:
                if not reached[end]:
                    reached[end] = True
                    waiting.append(end)
        return np.frombuffer(reached, dtype=bool)[:-1]
    from scipy import sparse
    from scipy.sparse import csgraph

    offsets_of_all = np.append(edges.offsets, len(edges.ends) + len(first))  # a last node leads to the starts
    whole = sparse.csr_matrix(
        (np.ones(offsets_of_all[-1]), np.concatenate([edges.ends, first]), offsets_of_all), shape=(n + 1, n + 1)
    )
    mask[csgraph.breadth_first_order(whole, n, return_predecessors=False)] = True
    return mask[:-1]
