"""Print entry points of a Program as straight-line Python functions.

The text is neutral: the same source runs on floats and on arrays, by the name space it is executed in
(``python_runtime.FAST``, ``IEEE``, ``ARRAY``). Numbers are printed by ``repr`` and read back to the same bits.
Functions are of bounded size, because CPython's compiler is slow on giant ones: above ``MAX_STATEMENTS_PER_FUNCTION``
statements the work is split over several functions that pass a list of shared values.

A printed function has the arguments ``(t, x, r, p, m, s)``; with ``hoist`` there is a second one,
``<name>_prepare(p)``, that computes what depends on parameters only, and its result is the last argument ``h``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mb2fmu.compiler.program.program_pruning import find_needed_nodes
from mb2fmu.compiler.program.scalar_program import LEAF_OPERATIONS, Op, ScalarProgram
from mb2fmu.model.scalar_operation_table import OPERATIONS

MAX_STATEMENTS_PER_FUNCTION = 5_000
"""Largest number of statements of one function."""

_LEAF_ARGUMENTS = {Op.STATE: "x", Op.INPUT: "r", Op.PARAMETER: "p", Op.MEMORY: "m", Op.SEED: "s"}
_FUNCTION_ARGUMENTS = "t, x, r, p, m, s"


def print_numpy_function(
    program: ScalarProgram,
    entries: str | Sequence[str],
    name: str,
    *,
    results: Sequence[int] | None = None,
    hoist: bool = False,
    chunk: int = MAX_STATEMENTS_PER_FUNCTION,
) -> str:
    """Return the source of a function that returns the results of entry points as a tuple.

    Args:
        program: Any.
        entries: One entry point or several, whose results follow one another.
        name: Of the function; names it needs besides begin with it and an underscore.
        results: Positions among the results of ``entries`` to compute; None: all.
        hoist: Print ``<name>_prepare(p)`` too.
        chunk: Largest number of statements of one function.

    Returns:
        Source text that ends with a line break. It reads names of the runtime and defines only names that begin
        with ``name``.
    """
    names = [entries] if isinstance(entries, str) else list(entries)
    nodes = [node for entry in names for node in program.entries[entry].results]
    if results is not None:
        nodes = [nodes[i] for i in results]
    return _NumpyFunctionPrinter(program, name, nodes, hoist=hoist, chunk=chunk).text()


StatementEmitter = Callable[[str, str, Sequence[int], str], None]


class _PythonStatement(NamedTuple):
    """One line: ``target = text``, which reads the local names ``reads``; ``target`` may be a factor block."""

    target: str
    text: str
    reads: tuple[str, ...]


class _NumpyFunctionPrinter:
    def __init__(self, program: ScalarProgram, name: str, results: list[int], *, hoist: bool, chunk: int) -> None:
        self._program = program
        domains = program.entries.get("domains")
        self._domains = dict(zip(domains.results, domains.labels, strict=True)) if domains else {}
        self._name = name
        self._results = results
        self._chunk = chunk
        self._tables: dict[tuple[int, int], str] = {}
        self._bodies: dict[int, str] = {}
        self._operands = program.all_operands()
        is_constant = np.flatnonzero(program.op == Op.CONSTANT)
        self._literal = {
            int(node): format_python_literal(float(program.constants[program.a[node]])) for node in is_constant
        }
        self._nodes, self._blocks = find_needed_nodes(program, results)
        constant = find_parameter_only_nodes(program)
        is_leaf = np.isin(program.op, [int(op) for op in LEAF_OPERATIONS])
        self._inner = self._nodes & ~is_leaf
        self._leaves = {int(node): self._leaf(int(node)) for node in np.flatnonzero(self._nodes & is_leaf)}
        self._hoisted = self._inner & constant if hoist else np.zeros(len(program), dtype=bool)
        self._hoist = hoist

    def text(self) -> str:
        """Return the whole source."""
        handed_over = self._handed_over()
        given = self._leaves | {node: f"h[{i}]" for i, node in enumerate(handed_over)}
        main = self._statements(self._inner & ~self._hoisted, given, self._results)
        functions = []
        if self._hoist:
            prepared = self._statements(self._hoisted, self._leaves, handed_over)
            functions.append(self._function(f"{self._name}_prepare", "p", prepared, handed_over))
        arguments = f"{_FUNCTION_ARGUMENTS}, h" if self._hoist else _FUNCTION_ARGUMENTS
        functions.append(self._function(self._name, arguments, main, self._results))
        tables = "".join(
            f"{name} = {_format_table_pieces(self._program, *key)}\n" for key, name in sorted(self._tables.items())
        )
        bodies = [self._body(self._program.bodies[index], name) for index, name in sorted(self._bodies.items())]
        return tables + "\n\n".join([*bodies, *functions])

    def _body(self, body: ScalarProgram, name: str) -> str:
        """Return a function of (y, theta) that returns the residuals, then the steps, of Newton's method."""
        inner = print_numpy_function(body, ("residual", "step"), f"{name}_at", chunk=self._chunk)
        return f"{inner}\n\ndef {name}(y, theta):\n    return {name}_at(0.0, y, (), theta, (), ())\n"

    def _handed_over(self) -> list[int]:
        """Return hoisted nodes that other nodes, or results, read."""
        reading = np.flatnonzero(self._inner & ~self._hoisted)
        wanted = {operand for node in reading for operand in self._operands[node] if self._hoisted[operand]}
        wanted.update(node for node in self._results if self._hoisted[node])
        return sorted(wanted)

    def _statements(
        self, nodes: npt.NDArray[np.bool_], given: dict[int, str], results: Sequence[int]
    ) -> list[_PythonStatement]:
        """Return the statements in order: leaves where they are first read, blocks before their first result."""
        statements: list[_PythonStatement] = []
        done: set[str] = set()
        program, literals = self._program, self._literal

        def emit(target: str, text: str, reads: Sequence[int], factor: str) -> None:
            """Add a statement after those that define the outer names it reads."""
            for read in reads:
                if read not in literals and read in given and (local := f"v{read}") not in done:
                    done.add(local)
                    statements.append(_PythonStatement(local, given[read], ()))
            names = tuple(f"v{read}" for read in reads if read not in literals)
            done.add(target)
            statements.append(_PythonStatement(target, text, (*names, factor) if factor else names))

        for index in np.flatnonzero(nodes):
            node = int(index)
            op = Op(int(program.op[node]))
            if op is Op.BLOCK:
                self._emit_block(int(program.a[node]), done, emit)
                emit(f"v{node}", f"b{program.a[node]}[{program.b[node]}]", (), f"b{program.a[node]}")
                continue
            text = self._expression(node, op)
            if node in self._domains:
                text = f"inside({text}, {self._domains[node]!r})"
            emit(f"v{node}", text, self._operands[node], "")
        for node in results:
            if node in given and node not in literals and f"v{node}" not in done:
                done.add(f"v{node}")
                statements.append(_PythonStatement(f"v{node}", given[node], ()))
        return statements

    def _emit_block(self, index: int, done: set[str], emit: StatementEmitter) -> None:
        """Emit the statement of a block's solution, after its factorization; each once."""
        program = self._program
        if f"b{index}" in done:
            return
        block = program.blocks[index]
        if block.kind == "newton":
            theta, guess = (
                self._tuple(part) for part in (block.operands[: -block.size], block.operands[-block.size :])
            )
            body = self._bodies.setdefault(block.body, f"{self._name}_body_{block.body}")
            rows = f", {block.rows!r}" if block.rows else ""
            text = f"newton({block.size}, {block.name!r}, {body}, {theta}, {guess}{rows})"
            emit(f"b{index}", text, block.operands, "")
            return
        factor = program.blocks[block.factor]
        kind = factor.kind.removesuffix("_factor")
        if f"b{block.factor}" not in done:
            entries = self._tuple(factor.operands)
            rank = f", {factor.rank}" if factor.rank >= 0 else ""
            text = f"{kind}_factor({factor.size}, {factor.name!r}, {entries}{rank})"
            emit(f"b{block.factor}", text, factor.operands, "")
        right = self._tuple(block.operands)
        emit(f"b{index}", f"{kind}_solve(b{block.factor}, {right})", block.operands, f"b{block.factor}")

    def _expression(self, node: int, op: Op) -> str:
        """Return the Python text of an operation."""
        program = self._program
        a, b, c = int(program.a[node]), int(program.b[node]), int(program.c[node])
        if op in {Op.NEG, Op.FROZEN}:
            return f"{'-' if op is Op.NEG else ''}{self._operand(a)}"
        if op is Op.TABLE:
            name = self._tables.setdefault((a, b), f"{self._name}_table_{a}_{b}")
            return f"table({name}, {self._operand(c)})"
        row = OPERATIONS[op]
        if row.infix:
            return f"{self._operand(a)} {row.infix} {self._operand(b)}"
        return f"{row.function}({', '.join(self._operand(x) for x in self._operands[node])})"

    def _leaf(self, node: int) -> str:
        """Return the Python text of a constant, the time or an argument's element."""
        op = Op(int(self._program.op[node]))
        if op is Op.CONSTANT:
            return self._literal[node]
        return "t" if op is Op.TIME else f"{_LEAF_ARGUMENTS[op]}[{self._program.a[node]}]"

    def _operand(self, node: int) -> str:
        """Return the text of an operand: a number or leaf, or the local variable of its node."""
        return self._literal.get(node) or f"v{node}"

    def _tuple(self, nodes: Sequence[int]) -> str:
        """Return a tuple of operands as text, with a comma at its end for one element."""
        return f"({''.join(self._operand(node) + ', ' for node in nodes)})"

    def _function(self, name: str, arguments: str, statements: list[_PythonStatement], results: Sequence[int]) -> str:
        """Print a function of these statements, in chunks where there are too many for one."""
        if len(statements) <= self._chunk:
            returned = f"    return {self._tuple(results)}\n"
            lines = [f"def {name}({arguments}):\n", *(f"    {s.target} = {s.text}\n" for s in statements), returned]
            return "".join(lines)
        return self._chunks(name, arguments, statements, results)

    def _chunks(self, name: str, arguments: str, statements: list[_PythonStatement], results: Sequence[int]) -> str:
        """Return functions over a list ``w`` of the values that several of them, or the result, need."""
        parts = [statements[i : i + self._chunk] for i in range(0, len(statements), self._chunk)]
        home = {s.target: i for i, part in enumerate(parts) for s in part}
        final = list(dict.fromkeys(f"v{node}" for node in results if node not in self._literal))
        read_by = [dict.fromkeys(read for s in part for read in s.reads) for part in parts]
        shared = [r for i, reads in enumerate(read_by) for r in reads if home[r] != i]
        slot = {target: i for i, target in enumerate(dict.fromkeys([*shared, *final]))}
        text = []
        for i, part in enumerate(parts):
            text.append(f"def {name}_part_{i}({arguments}, w):\n")
            text += [f"    {read} = w[{slot[read]}]\n" for read in read_by[i] if home[read] != i]
            text += [f"    {s.target} = {s.text}\n" for s in part]
            text += [f"    w[{slot[s.target]}] = {s.target}\n" for s in part if s.target in slot]
            text.append("\n\n")
        text.append(f"def {name}({arguments}):\n    w = [0.0] * {len(slot)}\n")
        text += [f"    {name}_part_{i}({arguments}, w)\n" for i in range(len(parts))]
        values = [f"w[{slot[name]}], " if name in slot else f"{name}, " for name in map(self._operand, results)]
        return "".join([*text, f"    return ({''.join(values)})\n"])


def find_parameter_only_nodes(program: ScalarProgram) -> npt.NDArray[np.bool_]:
    """Return the mask of the nodes that depend on parameters only (numbers included)."""
    mask = np.isin(program.op, [Op.CONSTANT, Op.PARAMETER]).tolist()
    leaf = np.isin(program.op, [int(op) for op in LEAF_OPERATIONS]).tolist()
    for node, operands in enumerate(program.all_operands()):
        if not leaf[node]:
            mask[node] = all(mask[operand] for operand in operands)
    return np.array(mask, dtype=bool)


def format_python_literal(value: float) -> str:
    """Return a number as Python source that reads back to the same bits."""
    if math.isfinite(value):
        return repr(value) if value >= 0.0 else f"({value!r})"
    return {math.inf: "inf", -math.inf: "(-inf)"}.get(value, "nan")


def _format_table_pieces(program: ScalarProgram, index: int, order: int) -> str:
    """Return a table's breaks and coefficients as text, highest power first in each piece."""
    table = program.tables[index].derivative(order)
    columns = [tuple(row[i] for row in reversed(table.coefficients)) for i in range(len(table.breaks) - 1)]
    return repr((table.breaks, tuple(columns)))
