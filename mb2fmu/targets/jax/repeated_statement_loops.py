"""Repeated statements: stretches of straight-line code that do the same again and again, as links of a chain do.

What repeats is found in the statements themselves, whatever formulation wrote them: the same operations at a fixed
distance, each operand being the result of the same repetition, of the one before, one value for all, or a value from
outside for each. Such a stretch is a loop over arrays. The search of ``fmu.emit_c.code_loop_detection`` requests more:
there the addresses of operands grow by a constant step, here arrays are put together of what repetitions read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

MIN_REPETITIONS = 4
"""Fewer are written out."""
MAX_PERIOD = 4_000
"""Longest repetition that is looked for, in statements: a few links of a chain in space."""
MIN_SAVED = 100
"""Statements that a loop must save."""
_PHASES = 16  # beginnings of a repetition that are tried
_FIRST_REPETITIONS = 4  # that are tried as the first of a loop

Places = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class RepeatedStatementOperand:
    """One operand of a statement of a loop, in all repetitions.

    Attributes:
        values: Value (a node) that each repetition reads.
        source: Statement of the repetition that computes it, counted from 0; -1: it comes from outside the loop.
        is_carried: The repetition before has computed it; the first one reads ``values[0]`` from outside.
    """

    values: tuple[int, ...]
    source: int = -1
    is_carried: bool = False

    @property
    def is_shared(self) -> bool:
        """One value from outside serves all repetitions."""
        return self.source < 0 and len(set(self.values)) == 1


@dataclass(frozen=True, slots=True)
class RepeatedStatementLoop:
    """A stretch of statements that is a loop.

    Attributes:
        start: Place of its first statement.
        period: Statements of one repetition.
        count: Number of repetitions.
        operands: Of each statement of a repetition, in order.
    """

    start: int
    period: int
    count: int
    operands: tuple[tuple[RepeatedStatementOperand, ...], ...]

    @property
    def end(self) -> int:
        """Place of the first statement behind it."""
        return self.start + self.period * self.count


def find_repeated_statements(
    keys: Sequence[int], reads: Sequence[tuple[int, ...]], defined_at: dict[int, int]
) -> tuple[RepeatedStatementLoop, ...]:
    """Return loops that do not overlap, those that save most first found, in the order of the statements.

    Args:
        keys: Number of each statement: equal where the operation is the same; -1: it is in no loop.
        reads: Values that it reads, at most three.
        defined_at: Value → place of the statement that computes it; those of leaves are not there.
    """
    kinds = np.asarray(keys, dtype=np.intp)
    values = np.full((len(kinds), 3), -1, dtype=np.intp)
    for row, read in zip(values, reads, strict=True):
        row[: min(3, len(read))] = read[:3]
    last = int(values.max(initial=-1))
    lookup = np.full(last + 2, -1, dtype=np.intp)
    for value, place in defined_at.items():
        if value <= last:
            lookup[value] = place
    search = _RepeatedStatementSearch(values, lookup[values])
    found: list[RepeatedStatementLoop] = []
    waiting = sorted(_list_periodic_stretches(kinds), key=lambda each: each[0] - each[1] + each[2])
    while waiting:
        begin, end, period = waiting.pop(0)
        for free_begin, free_end in _cut_out(begin, end, found):
            if free_end - free_begin < max(MIN_REPETITIONS * period, MIN_SAVED + period):
                continue
            loop = search.find_longest(free_begin, free_end, period)
            if loop is not None:
                found.append(loop)
                waiting.insert(0, (begin, end, period))
                break
    return tuple(sorted(found, key=lambda loop: loop.start))


def _list_periodic_stretches(kinds: Places) -> Iterator[tuple[int, int, int]]:
    """Yield begin, end and period of stretches in which each statement is like the one a period before."""
    n = len(kinds)
    for period in range(1, min(MAX_PERIOD, n // MIN_REPETITIONS) + 1):
        alike = (kinds[period:] == kinds[:-period]) & (kinds[period:] >= 0)
        edges = np.flatnonzero(np.diff(np.concatenate([[False], alike, [False]]).view(np.int8))).reshape(-1, 2)
        long = edges[edges[:, 1] - edges[:, 0] >= max(MIN_SAVED, (MIN_REPETITIONS - 1) * period)]
        for begin, end in long.tolist():
            yield begin, end + period, period


def _cut_out(begin: int, end: int, loops: Sequence[RepeatedStatementLoop]) -> Iterator[tuple[int, int]]:
    """Yield the parts of a stretch in which there is no loop yet."""
    for loop in sorted(loops, key=lambda loop: loop.start):
        if loop.end > begin and loop.start < end:
            if loop.start > begin:
                yield begin, loop.start
            begin = loop.end
    if begin < end:
        yield begin, end


@dataclass(frozen=True, slots=True)
class _RepeatedStatementSearch:
    """Operands of all statements.

    Attributes:
        values: That each statement reads, shape (n, 3); -1: none.
        places: Of the statements that compute them; -1: none.
    """

    values: Places
    places: Places

    def find_longest(self, begin: int, end: int, period: int) -> RepeatedStatementLoop | None:
        """Return the loop of a period in a stretch that saves most statements; None: none saves enough."""
        best: tuple[int, int] | None = None
        saved = MIN_SAVED - 1
        for phase in range(0, period, max(1, period // _PHASES)):
            repetitions = (end - begin - phase) // period
            first, count = self._find_equal_repetitions(begin + phase, period, repetitions)
            if count >= MIN_REPETITIONS and (count - 1) * period > saved:
                best, saved = (begin + phase + first * period, count), (count - 1) * period
        return None if best is None else self._describe(best[0], period, best[1])

    def _find_equal_repetitions(self, start: int, period: int, count: int) -> tuple[int, int]:
        """Return the first repetition of a loop and their number, 0 if there is none."""
        best = (0, 0)
        for first in range(min(_FIRST_REPETITIONS, count - MIN_REPETITIONS + 1)):
            base = start + first * period
            distance, lag = self._measure_distances(base, period, count - first)
            usual, usual_lag = distance[1], lag[1]
            if (distance[0] != np.where(usual_lag == 0, usual, 0)).any():
                continue
            differs = np.flatnonzero((distance[1:] != usual).any(axis=(1, 2)))
            repetitions = 1 + (int(differs[0]) if len(differs) else len(distance) - 1)
            if repetitions > best[1]:
                best = (first, repetitions)
        return best

    def _measure_distances(self, base: int, period: int, count: int) -> tuple[Places, Places]:
        """Return distances to operands in the loop, 0 for those outside, and how many repetitions they go back."""
        own = np.arange(base, base + count * period)[:, np.newaxis]
        places = self.places[base : base + count * period]
        inside = places >= base
        distance = np.where(inside, own - places, 0)
        lag = np.where(inside, (own - base) // period - (places - base) // period, 0)
        return distance.reshape(count, period, 3), lag.reshape(count, period, 3)

    def _describe(self, start: int, period: int, count: int) -> RepeatedStatementLoop:
        """Return the loop with its operands."""
        values = self.values[start : start + count * period].reshape(count, period, 3)
        distance, lag = self._measure_distances(start, period, count)
        operands = []
        for i in range(period):
            of_statement = []
            for j in range(3):
                if values[0, i, j] < 0:
                    continue
                each = tuple(values[:, i, j].tolist())
                if distance[1, i, j]:
                    source = (i - int(distance[1, i, j])) % period
                    of_statement.append(RepeatedStatementOperand(each, source, bool(lag[1, i, j])))
                else:
                    of_statement.append(RepeatedStatementOperand(each))
            operands.append(tuple(of_statement))
        return RepeatedStatementLoop(start, period, count, tuple(operands))
