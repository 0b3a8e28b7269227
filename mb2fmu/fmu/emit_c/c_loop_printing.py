"""C functions with loops: the places of their values in ``work``, and the printing of loops.

A function is cut into straight parts and loops (``rolling``). What a turn of a loop hands on, to later turns, to other
loops or to straight parts, has a place in an array of the loop: one row per turn, one column per value. A value that is
computed outside of the loop, but read as if it belonged to a turn before the first or behind the last one, is stored in
a row that is put before or behind. So operands that move on from turn to turn are found at places that do so, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from math import gcd

import numpy as np
import numpy.typing as npt

from mb2fmu.compiler.program.statement_schedule import (
    OperationStatement,
    SineCosineStatement,
    Statement,
    StatementScheduleGraph,
    StatementSequence,
    group_statements_by_size,
)
from mb2fmu.fmu.emit_c.c_function_printing_records import CNameRegistry, PrintedCFunction, PrintedCFunctionSignature
from mb2fmu.fmu.emit_c.code_loop_detection import (
    COSINE,
    MIN_SAVED_STATEMENTS_QUICK,
    PREPARED,
    SINE,
    VALUE,
    DetectedCodeLoop,
    StatementValueAddresses,
    find_statement_loops,
)
from mb2fmu.fmu.emit_c.long_function_splitting import MAX_VALUES_PER_PART, SplitCFunction
from mb2fmu.fmu.emit_c.straight_line_printing import CFunctionBodyPrinter


def print_function_with_loops(
    graph: StatementScheduleGraph,
    signature: PrintedCFunctionSignature,
    outputs: Sequence[tuple[str, int]],
    names: CNameRegistry,
    *,
    given: npt.NDArray[np.bool_] | None = None,
    part: int = MAX_VALUES_PER_PART,
) -> PrintedCFunction:
    """Return a function that stores nodes, with loops where statements repeat themselves.

    The arguments are those of ``long_function_splitting.print_c_function``, and so are the bits of the results.
    """
    known = np.zeros(len(graph.op), dtype=bool) if given is None else given
    statements = graph.schedule_statements([node for _, node in outputs], known)
    marks = {**dict.fromkeys(names.divisors, 1), **dict.fromkeys(names.pivots, 2), **dict.fromkeys(names.domains, 3)}
    addresses = StatementValueAddresses(graph, statements, names.prepared, marks)
    least = MIN_SAVED_STATEMENTS_QUICK if signature.compiled_quickly else None
    memory = _arrange_storage(statements, find_statement_loops(graph, statements, addresses, least), addresses, outputs)
    if not memory.loops:
        return SplitCFunction(graph, signature, group_statements_by_size(statements, part), outputs, names).printed()
    return _CFunctionWithLoops(graph, signature, memory, outputs, names, part).printed()


_MIN_COPIED_RESULTS = 4
"""Results that are worth a loop of their own."""

_MIN_JOINED_ITERATIONS = 4
"""Turns that a loop must have of which several were put together, or that is a piece of another one."""

_MAX_JOINED_ITERATIONS = 12
"""Turns that become one."""


@dataclass(frozen=True, slots=True)
class _LoopOperandAddress:
    """Place of an operand: ``array[first + step * turn]``."""

    array: str
    first: int
    step: int


@dataclass(slots=True)
class _CLoopArray:
    """The array of a loop.

    Attributes:
        loop: Whose.
        columns: Statement of a turn → column.
        first: The first row, counted from the first turn.
        last: The last one.
        base: Place of the array in ``work``.
    """

    loop: DetectedCodeLoop
    columns: dict[int, int] = field(default_factory=dict)
    first: int = 0
    last: int = 0
    base: int = 0

    def reserve_storage(self, place: int, turns: int, step: int) -> None:
        """Make room for the result of the statement at a place, and of those that follow in so many rows."""
        row, column = divmod(place - self.loop.first, self.loop.period)
        self.columns.setdefault(column, len(self.columns))
        ends = (row, row + step * (turns - 1))
        self.first, self.last = min(self.first, *ends), max(self.last, *ends)

    def place(self, place: int) -> int:
        """Return the place in ``work`` of a statement's result, existing or future."""
        row, column = divmod(place - self.loop.first, self.loop.period)
        return self.base + (row - self.first) * len(self.columns) + self.columns[column]

    @property
    def size(self) -> int:
        """Number of doubles in the array."""
        return (self.last - self.first + 1) * len(self.columns)


class _LoopValueStorage:
    """Places of the values of a function with loops.

    Args:
        statements: Of the function.
        loops: Of the function.
        addresses: Of what they read.

    Attributes:
        loops: Of the function.
        fixed: Node → places in ``work``; for good.
        operands: For each loop and each operand of a turn: where it is; None: it stays where it is; 0: in the turn.
        size: Doubles in ``work``.
        angles: Places of the sines and of the cosines of each statement.
    """

    def __init__(
        self, statements: StatementSequence, loops: Sequence[DetectedCodeLoop], addresses: StatementValueAddresses
    ) -> None:
        self.statements = statements
        self.loops = tuple(loops)
        self.addresses = addresses
        self.fixed: dict[int, tuple[int, ...]] = {}
        self.operands: dict[int, list[list[_LoopOperandAddress | None]]] = {}
        self.size = 0
        self.angles: dict[SineCosineStatement, tuple[int, int]] = {}
        self._sines = self._cosines = 0
        self._loop_at = np.full(len(statements), -1, dtype=np.intp)
        for i, loop in enumerate(loops):
            self._loop_at[loop.first : loop.end] = i
        self._loop_of: list[int] = self._loop_at.tolist()
        self._rows = [_CLoopArray(loop, last=loop.turns - 1) for loop in loops]
        self._extra: dict[int, set[int]] = {}  # straight statement → places
        self._read: set[int] = set()  # nodes that something reads which does not move on

    def loop_at(self, place: int) -> int:
        """Return the loop that the statement at a place belongs to; −1 for none."""
        return self._loop_of[place] if 0 <= place < len(self._loop_of) else -1

    def _loops_at(self, place: int, step: int, turns: int) -> npt.NDArray[np.intp]:
        """Return the loops at places that grow by a step, shape (turns,); −1 for none."""
        places = place + step * np.arange(turns)
        inside = (places >= 0) & (places < len(self._loop_at))
        return np.where(inside, self._loop_at[np.where(inside, places, 0)], -1)

    def assign_storage_places(self, outputs: Iterable[tuple[str, int]]) -> list[DetectedCodeLoop] | None:
        """Give every value its place; return fewer loops instead if operands of some have no regular place."""
        requests = []
        better: list[DetectedCodeLoop] = []
        for loop in self.loops:
            found = self._requests(loop)
            if isinstance(found, tuple):
                better += self._regular(loop, *found)
            else:
                better.append(loop)
                requests.append(found)
        if len(requests) < len(self.loops):
            return better
        self._keep_for_straight_parts(outputs)
        for rows in self._rows:
            rows.base = self.size
            self.size += rows.size
        self._place_angles()
        for index, loop in enumerate(self.loops):
            self._resolve(index, loop, requests[index])
        self._fix()
        return None

    def _requests(self, loop: DetectedCodeLoop) -> dict[tuple[int, int], int] | tuple[int, int]:
        """Return for each (place, step) of a moving operand the loop in whose array it is, or -1: an array of its own.

        Or the first of them that has no regular place.
        """
        found: dict[tuple[int, int], int] = {}
        for j, steps in enumerate(loop.steps):
            for node, step in zip(self.statements[loop.first + j].reads, steps, strict=True):
                address = self.addresses.of(node)
                if address is None or address[0] != VALUE:
                    continue
                place = address[1]
                if step == 0:
                    self._keep(place, node)
                elif not (step == loop.period and place >= loop.first) and (place, step) not in found:
                    owner = self._owner(place, step, loop.turns)
                    if owner is None:
                        return place, step
                    found[place, step] = owner
        return found

    def _regular(self, loop: DetectedCodeLoop, place: int, step: int) -> list[DetectedCodeLoop]:
        """Return the part of a loop that remains if this operand must be in one array, row after row.

        Where it moves on by a part of the turn of the loop that computes it, several turns become one; where it comes
        from one loop and then from another, so do the turns.
        """
        owners = self._loops_at(place, step, loop.turns).tolist()
        if len(set(owners) - {-1}) == 1:
            period = self.loops[max(owners)].period
            wider = period // gcd(period, step)
            return (
                [loop.join_iterations(wider)]
                if wider * _MIN_JOINED_ITERATIONS <= loop.turns and wider <= _MAX_JOINED_ITERATIONS
                else []
            )
        pieces, begin = [], 0
        for _, turns in groupby(owners):
            count = len(list(turns))
            pieces.append(loop.select_turns(begin, count))
            begin += count
        return [
            piece
            for piece in pieces
            if piece.turns >= _MIN_JOINED_ITERATIONS and piece.saved_statement_count >= MIN_SAVED_STATEMENTS_QUICK
        ]

    def _owner(self, place: int, step: int, turns: int) -> int | None:
        """Return the loop whose rows hold the values at places that grow by a step; −1 if all are straight."""
        ends = {self.loop_at(place), self.loop_at(place + step * (turns - 1))}
        if len(ends) > 1 or -1 in ends:  # a loop has no gaps
            ends = set(self._loops_at(place, step, turns).tolist())
        owners = ends - {-1}
        if not owners:
            return -1
        owner = owners.pop()
        if owners or step % self.loops[owner].period:
            return None
        self._rows[owner].reserve_storage(place, turns, step // self.loops[owner].period)
        return owner

    def _keep(self, place: int, node: int) -> None:
        """Make room in its loop's rows for a value that code outside the loop reads."""
        owner = self.loop_at(place)
        if owner >= 0:
            self._rows[owner].reserve_storage(place, 1, 0)
            self._read.add(node)

    def _keep_for_straight_parts(self, outputs: Iterable[tuple[str, int]]) -> None:
        """Make room for all values of loops that straight code or outputs read."""
        straight = self.statements.operands_of(np.flatnonzero(self._loop_at < 0))
        read = np.union1d(straight, np.array([node for _, node in outputs], dtype=np.intp))
        places = self.addresses.places(read)
        computed = places >= 0
        for place, node in zip(places[computed].tolist(), read[computed].tolist(), strict=True):
            self._keep(place, node)

    def _place_angles(self) -> None:
        """Reserve `work` for the sines and the cosines of all angles, two blocks one after the other."""
        others = self.statements.others.values()
        count = sum(len(statement.reads) for statement in others if isinstance(statement, SineCosineStatement))
        self._sines, self._cosines = self.size, self.size + count
        self.size += 2 * count

    def _resolve(self, index: int, loop: DetectedCodeLoop, requests: dict[tuple[int, int], int]) -> None:
        """Give each operand of a loop its array: rows of a loop, or a new one to which values are copied."""
        arrays: dict[tuple[int, int], int] = {}
        for (place, step), owner in requests.items():
            if owner < 0:
                arrays[place, step] = self.size
                self.size += loop.turns
            inside = owner >= 0 and self.loop_at(place) == owner == self.loop_at(place + step * (loop.turns - 1))
            if inside:
                continue
            for turn in np.flatnonzero(self._loops_at(place, step, loop.turns) < 0).tolist():
                source = place + step * turn
                at = arrays[place, step] + turn if owner < 0 else self._rows[owner].place(source)
                self._extra.setdefault(source, set()).add(at)
        self.operands[index] = [
            [self._operand(requests, arrays, node, step) for node, step in zip(reads, steps, strict=True)]
            for reads, steps in zip(
                (self.statements[loop.first + j].reads for j in range(loop.period)), loop.steps, strict=True
            )
        ]

    def _operand(
        self,
        requests: dict[tuple[int, int], int],
        arrays: dict[tuple[int, int], int],
        node: int,
        step: int,
    ) -> _LoopOperandAddress | None:
        """Return where a moving operand is read, with its step per turn; None if it stays where it is."""
        if step == 0:
            return None
        address = self.addresses.of(node)
        assert address is not None, "what moves has an address"
        kind, place = address
        if kind != VALUE:
            arrays_of = {SINE: ("work", self._sines), COSINE: ("work", self._cosines), PREPARED: ("w", 0)}
            array, first = arrays_of.get(kind, (kind, 0))
            return _LoopOperandAddress(array, first + place, step)
        owner = requests.get((place, step))
        if owner is None:
            return None
        if owner < 0:
            return _LoopOperandAddress("work", arrays[place, step], 1)
        rows = self._rows[owner]
        return _LoopOperandAddress("work", rows.place(place), step // rows.loop.period * len(rows.columns))

    def _fix(self) -> None:
        """Set the places in `work` of all values that loops and angles keep."""
        angle = 0
        for node in self._read:
            address = self.addresses.of(node)
            assert address is not None, "what a loop computes has an address"
            self.fixed[node] = (self._rows[self.loop_at(address[1])].place(address[1]),)
        for place, extra in self._extra.items():
            self.fixed[int(self.statements.nodes[place])] = tuple(sorted(extra))
        for statement in self.statements.others.values():
            if isinstance(statement, SineCosineStatement):
                self.angles[statement] = (self._sines + angle, self._cosines + angle)
                for sine, cosine in zip(statement.sines, statement.cosines, strict=True):
                    self.fixed[sine] = (self._sines + angle,)
                    self.fixed[cosine] = (self._cosines + angle,)
                    angle += 1
        self.fixed.pop(-1, None)

    def column(self, index: int, place: int) -> int:
        """Return the column of the array of a loop that a place in ``work`` is in."""
        return (place - self._rows[index].base) % len(self._rows[index].columns)

    def list_turn_stores(self, index: int) -> list[tuple[int, _LoopOperandAddress]]:
        """Return the stores of one turn of a loop: (statement of the turn, place)."""
        rows = self._rows[index]
        width = len(rows.columns)
        return [(j, _LoopOperandAddress("work", rows.place(rows.loop.first + j), width)) for j in sorted(rows.columns)]


def _arrange_storage(
    statements: StatementSequence,
    loops: Sequence[DetectedCodeLoop],
    addresses: StatementValueAddresses,
    outputs: Sequence[tuple[str, int]],
) -> _LoopValueStorage:
    """Return memory for as many of the loops as can have one."""
    better: list[DetectedCodeLoop] | None = list(loops)
    while better is not None:
        memory = _LoopValueStorage(statements, better, addresses)
        better = memory.assign_storage_places(outputs)
    return memory


class _CFunctionWithLoops(SplitCFunction):
    """Straight parts and loops, one after the other."""

    def __init__(
        self,
        graph: StatementScheduleGraph,
        signature: PrintedCFunctionSignature,
        memory: _LoopValueStorage,
        outputs: Sequence[tuple[str, int]],
        names: CNameRegistry,
        part: int,
    ) -> None:
        parts: list[Sequence[Statement]] = []
        self._loops: dict[int, int] = {}
        place = 0
        for index, loop in enumerate(memory.loops):
            if place < loop.first:
                parts += group_statements_by_size(memory.statements[place : loop.first], part)
            self._loops[len(parts)] = index
            parts.append(memory.statements[loop.first : loop.first + loop.period])  # the other turns are like this one
            place = loop.end
        parts += group_statements_by_size(memory.statements[place:], part)
        super().__init__(graph, signature, parts, outputs, names)
        self._home = {node: i for node, i in self._home.items() if i not in self._loops}  # others are in rows of loops
        self._memory = memory
        self._fixed = memory.fixed
        self._size = memory.size
        self._angles = memory.angles

    def _body(self, i: int, places: dict[int, int]) -> CFunctionBodyPrinter:
        """Return the body of a part: a loop's own, or straight code."""
        if i in self._loops:
            loop = self._loops[i]
            return _CLoopBodyPrinter(self._graph, self._signature, self._names, places, self._memory, loop)
        return super()._body(i, places)

    def _weight(self, i: int) -> int:
        """Return the statements of one turn, for a part that is a loop."""
        return self._memory.loops[self._loops[i]].period if i in self._loops else super()._weight(i)

    def _output_part(self, node: int) -> int:
        """Return the part that stores an output; outputs of loops are stored by the last part."""
        return len(self._parts) - 1 if self._loop_of(node) is not None else super()._output_part(node)

    def _loop_of(self, node: int) -> int | None:
        """Return the loop that computes a node."""
        address = self._memory.addresses.of(node)
        if address is None or address[0] != VALUE:
            return None
        loop = self._memory.loop_at(address[1])
        return loop if loop >= 0 else None

    def _store_outputs(self, body: CFunctionBodyPrinter, outputs: Sequence[tuple[str, int]]) -> None:
        """Store results of a loop in a loop, where they would take as many lines as turns."""
        columns: dict[tuple[int, int, str], list[tuple[int, int, int]]] = {}
        for target, node in outputs:
            loop = self._loop_of(node)
            if loop is None:
                body.store(target, node)
                continue
            array, _, written = target.removesuffix("]").partition("[")
            at = self._fixed[node][0]
            columns.setdefault((loop, self._memory.column(loop, at), array), []).append((at, int(written), node))
        for (_, _, array), moved in columns.items():
            for run in _find_even_runs(sorted(moved)):
                if len(run) < _MIN_COPIED_RESULTS:
                    for _, index, node in run:
                        body.store(f"{array}[{index}]", node)
                else:
                    (first, index, _), (second, following, _) = run[:2]
                    body.copy((array, index, following - index), ("work", first, second - first), len(run))


def _find_even_runs(places: Sequence[tuple[int, int, int]]) -> list[list[tuple[int, int, int]]]:
    """Return runs in which the first two numbers grow by constant steps."""
    runs: list[list[tuple[int, int, int]]] = []
    for place in places:
        run = runs[-1] if runs else []
        if run and (len(run) == 1 or all(place[i] - run[-1][i] == run[1][i] - run[0][i] for i in (0, 1))):
            run.append(place)
        else:
            runs.append([place])
    return runs


class _CLoopBodyPrinter(CFunctionBodyPrinter):
    """The lines of a part that is a loop.

    Args:
        graph: Of the program.
        signature: What leaves are called.
        names: Of the FMU.
        places: Values that are read from ``work``: place by node.
        memory: Where the values of the loop live.
        index: Which loop.
    """

    def __init__(
        self,
        graph: StatementScheduleGraph,
        signature: PrintedCFunctionSignature,
        names: CNameRegistry,
        places: dict[int, int],
        memory: _LoopValueStorage,
        index: int,
    ) -> None:
        super().__init__(graph, signature, names, places)
        self._loop = memory.loops[index]
        self._statements = memory.statements
        self._loaded: dict[_LoopOperandAddress, str] = {}
        self._turn: list[str] = []
        for j in range(self._loop.period):
            self._add_turn(j, memory.operands[index][j])
        for j, place in memory.list_turn_stores(index):
            self._turn.append(f"{self._at(place)} = {self._local[self._node(j)]};")
        self.lines += [f"    for (int k = 0; k < {self._loop.turns}; k++) {{"]
        self.lines += [f"        {line}" for line in self._turn]
        self.lines += ["    }"]

    def _node(self, j: int, turn: int = 0) -> int:
        """Return the node that statement j computes in a turn."""
        return int(self._statements.nodes[self._loop.first + turn * self._loop.period + j])

    def _add_turn(self, j: int, places: Sequence[_LoopOperandAddress | None]) -> None:
        """Print statement j for turn k; `places` says which operands move with k."""
        statement = self._statements[self._loop.first + j]
        assert isinstance(statement, OperationStatement), "loops have operations only"
        operands = [
            self._operand(node) if place is None else self._moving(place)
            for node, place in zip(statement.reads, places, strict=True)
        ]
        text = self._expression(statement.node, operands)
        self._turn.append(f"{self._declared(statement.node, text)};")
        self._require_each(j)

    def _moving(self, place: _LoopOperandAddress) -> str:
        """Return the local variable of an operand that moves, loaded once per turn."""
        name = self._loaded.get(place)
        if name is None:
            name = self._loaded[place] = f"m{len(self._loaded)}"
            self._turn.append(f"const {self._signature.real_type} {name} = {self._at(place)};")
        return name

    def _at(self, place: _LoopOperandAddress) -> str:
        """Return the C text of an operand's element in turn k."""
        leaves = {op.name: array for op, array in self._signature.leaves.items()}
        array = leaves.get(place.array, place.array)
        self._used.add(array)
        step = f"{abs(place.step)} * k" if abs(place.step) != 1 else "k"
        return f"{array}[{place.first} {'+' if place.step > 0 else '-'} {step}]"

    def _require_each(self, j: int) -> None:
        """Print the return of a failure where a written-out linear system is singular in any turn."""
        if self._signature.batch:
            return
        node, name = self._node(j), self._local[self._node(j)]
        turns = range(self._loop.turns)
        for required, condition in (
            (self._names.pivots, f"!({name} > 0.0 && {name} < MB2FMU_INFINITY)"),
            (self._names.divisors, f"!(fabs({name}) > 0.0 && fabs({name}) < MB2FMU_INFINITY)"),
        ):
            if node in required:
                numbers = [self._names.singular_failure(required[self._node(j, turn)]) for turn in turns]
                listed = ", ".join(map(str, numbers))
                self.lines.append(f"    static const int failures{j}[{len(numbers)}] = {{{listed}}};")
                self._turn += [f"if ({condition}) {{", f"    return failures{j}[k];", "}"]
                return
