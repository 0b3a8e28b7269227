"""``find_loops``: runs of statements that repeat themselves, so that they can be printed once, as a loop.

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

from mb2fmu.emit.c.schedule import Angles, Graph, Operation, Statement
from mb2fmu.lowering.program import Op

Address = tuple[str, int]
"""What kind of array, and which element."""

VALUE, SINE, COSINE, PREPARED = "value", "sine", "cosine", "prepared"

_WINDOW = 16
_MOST_PERIODS = 8
_LEAST_TURNS = 4
_LEAST_SAVED = 150
"""Statements that a loop must spare: below, straight code is as small and faster."""


@dataclass(frozen=True, slots=True)
class Loop:
    """A run of statements that repeats itself.

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


class Addresses:
    """Where the values that statements read come from.

    Args:
        graph: Of the program.
        statements: In their order.
        prepared: Place in w of nodes that are read from there.
        marks: Nodes that something else is done with as well, and what.
    """

    def __init__(
        self,
        graph: Graph,
        statements: Sequence[Statement],
        prepared: Mapping[int, int],
        marks: Mapping[int, int] | None = None,
    ) -> None:
        self._graph = graph
        self.marks = marks or {}
        self._leaf = graph.program.a.tolist()
        self._known: dict[int, Address] = {}
        angles = 0
        for place, statement in enumerate(statements):
            if isinstance(statement, Operation):
                self._known[statement.node] = (VALUE, place)
            elif isinstance(statement, Angles):
                for sine, cosine in zip(statement.sines, statement.cosines, strict=True):
                    self._known[sine] = (SINE, angles)
                    self._known[cosine] = (COSINE, angles)
                    angles += 1
        self._known.pop(-1, None)
        for node, index in prepared.items():
            self._known.setdefault(node, (PREPARED, index))

    def of(self, node: int) -> Address | None:
        """The address of a node, None if it has none: numbers, and results of linear solves."""
        found = self._known.get(node)
        if found is None and self._is_array(node):
            found = self._known[node] = (Op(self._graph.op[node]).name, self._leaf[node])
        return found

    def _is_array(self, node: int) -> bool:
        return bool(self._graph.is_leaf[node]) and self._graph.op[node] != Op.CONSTANT and node not in self.marks

    def step(self, node: int, later: int) -> int | None:
        """By how much the address grows from one node to another; None if they do not belong to one array."""
        if node == later:
            return 0
        first, second = self.of(node), self.of(later)
        if first is None or second is None or first[0] != second[0]:
            return None
        return second[1] - first[1]


def find_loops(graph: Graph, statements: Sequence[Statement], addresses: Addresses) -> list[Loop]:
    """Loops that do not overlap, in their order.

    Args:
        graph: Of the program.
        statements: In their order.
        addresses: Of what they read.
    """
    return _Search(graph, statements, addresses).loops()


class _Search:
    def __init__(self, graph: Graph, statements: Sequence[Statement], addresses: Addresses) -> None:
        self._statements = statements
        self._addresses = addresses
        self._kinds = [_kind(graph, statement, addresses.marks) for statement in statements]
        self._windows = _windows(self._kinds)
        self._next = _next_windows(self._windows)
        self._broken: dict[int, int] = {}  # period → place up to which runs of it are too short

    def loops(self) -> list[Loop]:
        found: list[Loop] = []
        place, end = 0, len(self._statements)
        while place < end:
            loop = self._best(place)
            if loop is None:
                place += 1
            else:
                found.append(loop)
                place = loop.end
        return found

    def _best(self, place: int) -> Loop | None:
        best: Loop | None = None
        other = place
        for _ in range(_MOST_PERIODS):
            other = self._next[other]
            if other < 0:
                break
            if best is not None and (other - place) % best.period == 0:
                continue  # the same loop, several turns at once
            loop = self._run(place, other - place)
            if loop is not None and (best is None or loop.end - loop.period > best.end - best.period):
                best = loop
        return best

    def _run(self, first: int, period: int) -> Loop | None:
        """The longest loop of that period that begins there."""
        if first <= self._broken.get(period, -1) or not self._repeats(first, period):
            return None
        steps: list[tuple[int, ...]] = []
        place = broken = first
        end = len(self._statements) - period
        while place < end:
            found = self._steps(place, place + period)
            if found is None:
                broken = place
                break
            if len(steps) < period:
                steps.append(found)
            elif steps[(place - first) % period] != found:
                broken = place - period
                break
            place += 1
        turns = (place - first) // period + 1
        if turns < _LEAST_TURNS or period * (turns - 1) < _LEAST_SAVED:
            self._broken[period] = broken
            return None
        return Loop(first, period, turns, tuple(steps))

    def _repeats(self, first: int, period: int) -> bool:
        """Whether turns could begin there, as far as the first statements of some turns tell."""
        windows = self._windows[first : first + _LEAST_TURNS * period : period]
        if len(windows) != _LEAST_TURNS or len(set(windows)) != 1:
            return False
        steps = self._steps(first, first + period)
        return steps is not None and steps == self._steps(first + period, first + 2 * period)

    def _steps(self, place: int, later: int) -> tuple[int, ...] | None:
        kind = self._kinds[place]
        if kind is None or kind != self._kinds[later]:
            return None
        step = self._addresses.step
        steps = []
        for node, other in zip(self._statements[place].reads, self._statements[later].reads, strict=True):
            grows = step(node, other)
            if grows is None:
                return None
            steps.append(grows)
        return tuple(steps)


def _kind(graph: Graph, statement: Statement, marks: Mapping[int, int]) -> tuple[int, ...] | None:
    """What two statements must have in common to be the same one in two turns; None: it belongs in no loop."""
    if not isinstance(statement, Operation):
        return None
    op = graph.op[statement.node]
    if op == Op.TABLE:
        node = statement.node
        return op, int(graph.program.a[node]), int(graph.program.b[node]), marks.get(node, 0)
    return op, marks.get(statement.node, 0)


def _windows(kinds: Sequence[tuple[int, ...] | None]) -> list[int]:
    """A number for each place, the same where the same kinds of statements begin."""
    numbers: dict[tuple[int, ...] | None, int] = {}
    numbered = [numbers.setdefault(kind, len(numbers)) for kind in kinds]
    found: dict[tuple[int, ...], int] = {}
    return [found.setdefault(tuple(numbered[i : i + _WINDOW]), len(found)) for i in range(len(kinds))]


def _next_windows(windows: Sequence[int]) -> list[int]:
    """For each place the next one with the same number; -1 if there is none."""
    following = [-1] * len(windows)
    last: dict[int, int] = {}
    for place in range(len(windows) - 1, -1, -1):
        following[place] = last.get(windows[place], -1)
        last[windows[place]] = place
    return following
