"""``find_statement_loops``: find repeating runs of statements, so that each can be printed once, as a loop.

What a chain of joints or a row of equal elements needs is the same code over and over again, with other operands.
Where a run of statements is a body repeated, and each operand moves on by the same step from one turn to the next, the
body is printed once. Operations and their order stay what they are, so results have the same bits; but compilers see
hundreds of statements where there were hundreds of thousands, and processors find the code in their caches.

Operands have addresses: the place of the statement that computes them, or of the leaf, sine or prepared value that they
are. An operand that stays where it is may be anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mb2fmu.compiler.program.scalar_program import LEAF_OPERATIONS, Op
from mb2fmu.compiler.program.statement_schedule import SineCosineStatement, StatementScheduleGraph, StatementSequence

ValueAddress = tuple[str, int]
"""What kind of array, and which element."""

VALUE, SINE, COSINE, PREPARED = "value", "sine", "cosine", "prepared"
_ADDRESS_KINDS = (*(op.name for op in Op), VALUE, SINE, COSINE, PREPARED)
_ADDRESS_KIND_SHIFT = 38
"""An address as a number: element + 2^38 × kind. What has no address has a kind of its own behind all others."""

_WINDOW_LENGTH = 16
_MAX_TRIED_PERIODS = 8
_MIN_ITERATIONS = 4
_SEARCH_CHUNK = 1_000
_SAMPLE_OFFSETS = (0, 7, 14, 21, 28, 35, 63, 98)
"""Places behind the beginning of a run at which it is tried."""
_MIN_SAVED_STATEMENTS = 150
"""Statements that a loop must spare: below, straight code is as small and faster."""

MIN_SAVED_STATEMENTS_QUICK = 24
"""The same where quick compiling is worth more."""

IntegerArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class DetectedCodeLoop:
    """A repeating run of statements.

    Attributes:
        first: Place of its first statement.
        period: Statements of one turn.
        turns: How many.
        steps: For each statement of a turn by how much the address of each operand grows from turn to turn; 0 where it
            is the same node.
    """

    first: int
    period: int
    turns: int
    steps: tuple[tuple[int, ...], ...]

    @property
    def end(self) -> int:
        """Place behind its last statement."""
        return self.first + self.period * self.turns

    @property
    def saved_statement_count(self) -> int:
        """Number of statements that need not be printed."""
        return self.period * (self.turns - 1)

    def join_iterations(self, count: int) -> DetectedCodeLoop:
        """Return the loop with several turns joined into one; left-over turns are dropped."""
        steps = tuple(tuple(count * step for step in row) for row in self.steps) * count
        return DetectedCodeLoop(self.first, self.period * count, self.turns // count, steps)

    def select_turns(self, begin: int, turns: int) -> DetectedCodeLoop:
        """Return some turns of the loop."""
        return DetectedCodeLoop(self.first + begin * self.period, self.period, turns, self.steps)


class StatementValueAddresses:
    """Addresses of the values that statements read.

    Args:
        graph: Of the program.
        statements: In their order.
        prepared: Place in w of nodes that are read from there.
        marks: Nodes that something else is done with as well, and what.

    Attributes:
        codes: The addresses of all nodes as numbers, two of one array as far apart as their elements.
    """

    def __init__(
        self,
        graph: StatementScheduleGraph,
        statements: StatementSequence,
        prepared: Mapping[int, int],
        marks: Mapping[int, int] | None = None,
    ) -> None:
        program = graph.program
        self.marks = marks or {}
        self.codes = (np.arange(len(program), dtype=np.int64) + len(_ADDRESS_KINDS)) << _ADDRESS_KIND_SHIFT
        for op in LEAF_OPERATIONS - {Op.CONSTANT}:
            nodes = np.flatnonzero(program.op == op)
            self.codes[nodes] = _first_element_address(op.name) + program.a[nodes].astype(np.int64)
        for node in self.marks:
            self.codes[node] = (node + len(_ADDRESS_KINDS)) << _ADDRESS_KIND_SHIFT
        for node, index in prepared.items():
            self.codes[node] = _first_element_address(PREPARED) + index
        places = np.flatnonzero(statements.nodes >= 0)
        self.codes[statements.nodes[places]] = _first_element_address(VALUE) + places
        angles = 0
        for statement in statements.others.values():
            if isinstance(statement, SineCosineStatement):
                for sine, cosine in zip(statement.sines, statement.cosines, strict=True):
                    for node, kind in ((sine, SINE), (cosine, COSINE)):
                        if node >= 0:
                            self.codes[node] = _first_element_address(kind) + angles
                    angles += 1

    def places(self, nodes: npt.NDArray[np.intp]) -> npt.NDArray[np.int64]:
        """Return the places of the statements that compute some nodes; -1 where none of these does."""
        codes = self.codes[nodes] - _first_element_address(VALUE)
        return np.where((codes >= 0) & (codes < 1 << _ADDRESS_KIND_SHIFT), codes, -1)

    def of(self, node: int) -> ValueAddress | None:
        """Return the address of a node, None if it has none: numbers, and results of linear solves."""
        kind, element = divmod(int(self.codes[node]), 1 << _ADDRESS_KIND_SHIFT)
        return (_ADDRESS_KINDS[kind], element) if kind < len(_ADDRESS_KINDS) else None


def _first_element_address(kind: str) -> int:
    """Return the address of the first element of an array, as a number."""
    return _ADDRESS_KINDS.index(kind) << _ADDRESS_KIND_SHIFT


def find_statement_loops(
    graph: StatementScheduleGraph,
    statements: StatementSequence,
    addresses: StatementValueAddresses,
    least: int | None = None,
) -> list[DetectedCodeLoop]:
    """Find loops that do not overlap, in order.

    Args:
        graph: Of the program.
        statements: In their order.
        addresses: Of what they read.
        least: How many statements each of them must spare; None: as many as pay where code is evaluated all the time.
    """
    if len(statements) <= _WINDOW_LENGTH:
        return []
    return _CodeLoopSearch(graph, statements, addresses, _MIN_SAVED_STATEMENTS if least is None else least).loops()


class _CodeLoopSearch:
    """Searches for loops.

    At each place the periods in question are the distances to the next places where the same kinds of statements begin.
    All of them are looked at together; the few that four turns in a row speak for are followed to their ends.
    """

    def __init__(
        self,
        graph: StatementScheduleGraph,
        statements: StatementSequence,
        addresses: StatementValueAddresses,
        least: int,
    ) -> None:
        self._kinds = _statement_keys(graph, statements, addresses.marks)
        operands = graph.matrix[statements.nodes]
        self._arity = np.where(statements.nodes >= 0, np.count_nonzero(operands >= 0, axis=1), 0)
        used = (operands >= 0) & (statements.nodes >= 0)[:, None]
        self._codes = np.where(used, addresses.codes[operands], 0)
        self._least = least
        self._windows = _hash_windows(self._kinds)
        self._next = _find_next_windows(self._windows)
        self._broken: dict[int, int] = {}  # period → place up to which runs of it are too short

    def loops(self) -> list[DetectedCodeLoop]:
        """Return loops that do not overlap, in order."""
        found: list[DetectedCodeLoop] = []
        begin = 0
        while begin < len(self._kinds):
            end = min(begin + _SEARCH_CHUNK, len(self._kinds))
            periods = self._likely_periods(begin, end)
            for place in (begin + np.flatnonzero(periods.any(axis=0))).tolist():
                loop = self._best(place, periods[:, place - begin].tolist())
                if loop is not None:
                    found.append(loop)
                    end = loop.end
                    break
            begin = end
        return found

    def _best(self, place: int, periods: Sequence[int]) -> DetectedCodeLoop | None:
        """Return the longest loop that begins at a place, of the shortest period; None if nothing repeats."""
        best: DetectedCodeLoop | None = None
        for period in periods:
            if period == 0 or (best is not None and period % best.period == 0):
                continue  # the same loop, several turns at once
            loop = self._run(place, period)
            if loop is not None and (best is None or loop.end - loop.period > best.end - best.period):
                best = loop
        return best

    def _run(self, first: int, period: int) -> DetectedCodeLoop | None:
        """Return the longest loop of that period that begins there."""
        if first <= self._broken.get(period, -1):
            return None
        place, broken = self._end(first, period)
        turns = (place - first) // period + 1
        if turns < _MIN_ITERATIONS or period * (turns - 1) < self._least:
            self._broken[period] = broken
            return None
        steps = self._codes[first + period : first + 2 * period] - self._codes[first : first + period]
        arity = self._arity[first : first + period].tolist()
        rows = zip(steps.tolist(), arity, strict=True)
        return DetectedCodeLoop(first, period, turns, tuple(tuple(row[:count]) for row, count in rows))

    def _end(self, first: int, period: int) -> tuple[int, int]:
        """Return the first place that breaks the repetition, and the place up to which no new search is useful."""
        kinds, codes = self._kinds, self._codes
        place, end, size = first, len(kinds) - period, max(4 * period, 256)
        while place < end:
            stop = min(place + size, end)
            later, now = slice(place + period, stop + period), slice(place, stop)
            steps = codes[later] - codes[now]
            moves = (kinds[later] == kinds[now]) & (kinds[now] >= 0) & _have_constant_steps(steps)
            goes_on = moves.copy()
            begin = max(place, first + period)
            if begin < stop:
                before = codes[begin:stop] - codes[begin - period : stop - period]
                goes_on[begin - place :] &= (before == steps[begin - place :]).all(axis=1)
            if not goes_on.all():
                at = int(np.argmin(goes_on))
                return place + at, place + at if not moves[at] else place + at - period
            place, size = stop, 2 * size
        return max(place, first), first

    def _likely_periods(self, begin: int, end: int) -> npt.NDArray[np.intp]:
        """Return likely periods of loops that begin at the places of a range, 0: none; shape (8, n)."""
        n, codes, windows = len(self._kinds), self._codes, self._windows
        likely = np.zeros((_MAX_TRIED_PERIODS, end - begin), dtype=np.intp)
        places = other = begin + np.flatnonzero(self._kinds[begin:end] >= 0)
        for row in likely:
            other = self._next[other]
            places, other = places[other >= 0], other[other >= 0]
            period = other - places
            inside = places + (_MIN_ITERATIONS - 1) * period < n
            at, p = places[inside], period[inside]
            for turn in range(2, _MIN_ITERATIONS):
                same = windows[at + turn * p] == windows[at]
                at, p = at[same], p[same]
            steps = codes[at + p] - codes[at]
            good = _have_constant_steps(steps) & (codes[at + 2 * p] - codes[at + p] == steps).all(axis=1)
            at, p = self._select_long_runs(at[good], p[good])
            row[at - begin] = p
        return likely

    def _select_long_runs(
        self, places: npt.NDArray[np.intp], periods: npt.NDArray[np.intp]
    ) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Return the runs without those that samples show to end before they spare enough: nearly all of them."""
        codes, end = self._codes, len(self._codes)
        for offset in _SAMPLE_OFFSETS:
            if offset >= self._least or not len(places):
                break
            later = np.minimum(places + offset + 2 * periods, end - 1)
            now, before = later - periods, later - 2 * periods
            is_beyond = offset + periods >= np.maximum(self._least, (_MIN_ITERATIONS - 1) * periods)
            may_go_on = is_beyond | (codes[later] - codes[now] == codes[now] - codes[before]).all(axis=1)
            places, periods = places[may_go_on], periods[may_go_on]
        return places, periods


def _have_constant_steps(differences: IntegerArray) -> npt.NDArray[np.bool_]:
    """Return whether the addresses of three operands form regular sequences; shape (n, 3) → (n,)."""
    return np.asarray((np.abs(differences) < 1 << (_ADDRESS_KIND_SHIFT - 1)).all(axis=1))


def _statement_keys(
    graph: StatementScheduleGraph, statements: StatementSequence, marks: Mapping[int, int]
) -> IntegerArray:
    """Return keys that the same statement has in all turns of a loop; -1: it belongs in no loop."""
    program, nodes = graph.program, statements.nodes
    marked = np.zeros(len(program), dtype=np.int64)
    for node, mark in marks.items():
        marked[node] = mark
    more = np.where(program.op == Op.TABLE, 1 + program.a.astype(np.int64) * (1 << 20) + program.b, 0)
    kinds = program.op[nodes] + (marked[nodes] << 8) + (more[nodes] << 16)
    return np.where(nodes >= 0, kinds, -1)


def _hash_windows(kinds: IntegerArray) -> npt.NDArray[np.uint64]:
    """Return a number for each place, equal where the same kinds of statements begin (collisions are rare)."""
    n = len(kinds)
    padded = np.concatenate([kinds + 2, np.zeros(_WINDOW_LENGTH, dtype=np.int64)]).astype(np.uint64)
    hashes = np.zeros(n, dtype=np.uint64)
    for i in range(_WINDOW_LENGTH):
        hashes = hashes * np.uint64(0x9E3779B97F4A7C15) + padded[i : i + n]
    return hashes


def _find_next_windows(windows: npt.NDArray[np.uint64]) -> npt.NDArray[np.intp]:
    """Return for each place the next one with the same number; -1 if there is none."""
    following = np.full(len(windows), -1, dtype=np.intp)
    order = np.argsort(windows, kind="stable")
    same = windows[order[1:]] == windows[order[:-1]]
    following[order[:-1][same]] = order[1:][same]
    return following
