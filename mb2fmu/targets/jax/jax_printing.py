"""JAX's spelling of printed functions: values by name, vectors as arrays, and loops by ``lax.scan``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from mb2fmu.compiler.evaluation.numpy_printer import format_python_literal
from mb2fmu.compiler.program.scalar_program import EquationSolveBlock, Op, PiecewisePolynomial, ScalarProgram
from mb2fmu.compiler.program.statement_schedule import OperationStatement, SineCosineStatement, Statement
from mb2fmu.targets.jax.repeated_statement_loops import (
    RepeatedStatementLoop,
    RepeatedStatementOperand,
    find_repeated_statements,
)
from mb2fmu.targets.program_statement_printing import LEAF_VECTORS, ProgramStatementPrinter, Requirement

MIN_STATEMENTS_WITH_LOOPS = 1_000
"""Shorter functions are written out: they compile in seconds, and run faster so."""

_MIN_ANGLES_OF_ARRAY = 4
_Place = tuple[str, int]
"""Name of an array, and index of an element."""


class JaxPrinter(ProgramStatementPrinter):
    """Prints a function ``name(t, x, r, p, m)`` that returns a vector, or a body of Newton's method ``name(x, p)``.

    Args:
        program: Any.
        name: Of the function; bodies of Newton's method beside it begin with this name.
    """

    first_index = 0
    brackets = ("[", "]")

    def __init__(self, program: ScalarProgram, name: str) -> None:
        super().__init__(program)
        self._name = name
        self._bodies: dict[int, str] = {}
        self._names: dict[int, str] = {}  # of values that have another name than v<node>
        self._places: dict[int, _Place] = {}  # of values that are elements of arrays
        self._indent = ""
        self._loops = 0

    def function(self, entries: Sequence[str], arguments: str = "t, x, r, p, m") -> str:
        """Return the source of the function, after those that it calls.

        Args:
            entries: Entry points whose results follow one another.
            arguments: Of the function.
        """
        results = [node for entry in entries for node in self.program.entries[entry].results]
        statements = list(self.schedule(results))
        self._indent = "    "
        self.require_leaves(node for statement in statements for node in statement.reads)
        self.require_leaves(results)
        place = 0
        for loop in self._find_loops(statements):
            for statement in statements[place : loop.start]:
                self.add(statement)
            self._add_loop(statements, loop, results)
            place = loop.end
        for statement in statements[place:]:
            self.add(statement)
        self._print(f"return {self._join(results, 'assemble')}")
        own = "\n".join([f"def {self._name}({arguments}):", *self.lines])
        return "\n\n\n".join([*self._print_bodies(), own])

    def _print_bodies(self) -> Iterator[str]:
        """Yield the functions that Newton's method evaluates, and those of the space in which it has a solution."""
        for index, name in sorted(self._bodies.items()):
            body = self.program.bodies[index]
            yield JaxPrinter(body, name).function(("residual", "step"), "x, p")
            if "turned" in body.entries:
                yield JaxPrinter(body, f"{name}_space").function(("turned", "jacobian"), "x, p")

    # --- the language ------------------------------------------------------------------------------------------------

    def add(self, statement: Statement) -> None:
        """Print a statement; many sines and cosines at once are those of an array."""
        if not isinstance(statement, SineCosineStatement) or len(statement.reads) < _MIN_ANGLES_OF_ARRAY:
            super().add(statement)
            return
        angles = f"angles_{statement.reads[0]}"
        self._print(f"{angles} = {self._join(statement.reads)}")
        for function, nodes in (("sin", statement.sines), ("cos", statement.cosines)):
            array = f"{function}_{statement.reads[0]}"
            self._print(f"{array} = {function}({angles})")
            self._places |= {node: (array, i) for i, node in enumerate(nodes) if node >= 0}
        for node in statement.defines:
            if node in self._required:
                self.require(node, *self._required[node])

    def read(self, node: int) -> str:
        """Return the text that reads a node."""
        if node in self._names:
            return self._names[node]
        if node in self._places:
            array, index = self._places[node]
            return f"{array}[{index}]"
        return super().read(node)

    def format_number(self, value: float) -> str:
        """Return a literal."""
        return format_python_literal(value)

    def format_without_derivative(self, operand: str) -> str:
        """Return the call that keeps a value out of derivatives."""
        return f"stop_gradient({operand})"

    def look_up(self, table: PiecewisePolynomial, operand: str) -> str:
        """Return a call with the table as its arguments."""
        pieces = range(len(table.breaks) - 1)
        rows = [tuple(row[i] for row in reversed(table.coefficients)) for i in pieces]
        return f"table({table.breaks!r}, {tuple(rows)!r}, {operand})"

    def define(self, node: int, text: str) -> None:
        """Print an assignment."""
        self._print(f"v{node} = {text}")

    def require(self, node: int, requirement: Requirement, clause: str) -> None:  # noqa: ARG002 (NaN has no text)
        """Print that the value is NaN where it is not what it must be."""
        function = "if_positive" if requirement == "positive" else "if_not_zero"
        self._print(f"v{node} = {function}({self.read(node)})")
        self._names[node] = f"v{node}"

    def factorize(self, index: int, block: EquationSolveBlock) -> None:
        """Print a factorization."""
        rank = f", {block.rank}" if block.rank >= 0 else ""
        self._print(f"b{index} = {block.kind}({block.size}, {self._join(block.operands)}{rank})")

    def solve(self, index: int, block: EquationSolveBlock) -> tuple[str, int]:
        """Print a solve."""
        kind = self.program.blocks[block.factor].kind.removesuffix("_factor")
        self._print(f"b{index} = {kind}_solve(b{block.factor}, {self._join(block.operands)})")
        return f"b{index}", 0

    def print_newton_iteration(self, index: int, block: EquationSolveBlock) -> tuple[str, int]:
        """Print a call of Newton's method with its body."""
        body = self._bodies.setdefault(block.body, f"{self._name}_body_{block.body}")
        theta, guess = (self._join(part) for part in (block.operands[: -block.size], block.operands[-block.size :]))
        space = f", {body}_space" if "turned" in self.program.bodies[block.body].entries else ""
        self._print(f"b{index} = newton({block.size}, {body}, {theta}, {guess}, {bool(block.rows)}{space})")
        return f"b{index}", 0

    def _print(self, line: str) -> None:
        """Print a line of the function."""
        self.lines.append(f"{self._indent}{line}")

    # --- arrays ------------------------------------------------------------------------------------------------------

    def _join(self, nodes: Sequence[int], function: str = "join") -> str:
        """Return a vector of nodes, formed by a function of the runtime; neighbours in an array stay together."""
        parts = list(self._list_parts(nodes))
        if len(parts) == 1 and parts[0].endswith("]") and ":" in parts[0]:
            return parts[0]
        return f"{function}(x.dtype, {', '.join(parts)})" if parts else "jnp.zeros(0, x.dtype)"

    def _list_parts(self, nodes: Sequence[int]) -> Iterator[str]:
        """Yield slices of arrays, tuples of numbers, and single values."""
        for is_number, group in groupby(nodes, lambda node: self.program.op[node] == Op.CONSTANT):
            found = list(group)
            if is_number:
                yield (
                    f"({''.join(f'{self.read(node)}, ' for node in found)})" if len(found) > 1 else self.read(found[0])
                )
                continue
            while found:
                length, text = self._find_slice(found)
                yield text
                found = found[length:]

    def _find_slice(self, nodes: Sequence[int]) -> tuple[int, str]:
        """Return how many nodes at the beginning are evenly spaced in one array, and their text."""
        places = [self._locate(nodes[0])]
        if places[0] is None or len(nodes) < 2:
            return 1, self.read(nodes[0])
        array, first = places[0]
        length, step = 1, 0
        for node in nodes[1:]:
            place = self._locate(node)
            if place is None or place[0] != array:
                break
            step = step or place[1] - first
            if step == 0 or place[1] != first + length * step:
                break
            length += 1
        if length == 1:
            return 1, self.read(nodes[0])
        last = first + (length - 1) * step
        low, high, size = min(first, last), max(first, last) + 1, abs(step)
        part = f"{array}[{low}:{high}{f':{size}' if size > 1 else ''}]"
        return length, part if step > 0 else f"{part}[::-1]"

    def _locate(self, node: int) -> _Place | None:
        """Return where in an array a node stands; None: it does not."""
        if node in self._names:
            return None
        op = Op(int(self.program.op[node]))
        if op in LEAF_VECTORS:
            return LEAF_VECTORS[op], int(self.program.a[node])
        return self._places.get(node)

    # --- loops -------------------------------------------------------------------------------------------------------

    def _find_loops(self, statements: Sequence[Statement]) -> tuple[RepeatedStatementLoop, ...]:
        """Return the stretches of a long function that are loops; solves and angles are in none."""
        if len(statements) < MIN_STATEMENTS_WITH_LOOPS:
            return ()
        program = self.program
        numbers: dict[tuple[object, ...], int] = {}
        keys: list[int] = []
        reads: list[tuple[int, ...]] = []
        for statement in statements:
            if not isinstance(statement, OperationStatement):
                keys.append(-1)
                reads.append(())
                continue
            node, operands = statement.node, statement.reads
            is_table = program.op[node] == Op.TABLE
            table = (int(program.a[node]), int(program.b[node])) if is_table else ()
            same = tuple(operands.index(operand) for operand in operands)
            key = (int(program.op[node]), same, table, self.requirement_of(node))
            keys.append(numbers.setdefault(key, len(numbers)))
            reads.append(operands)
        defined = {node: place for place, statement in enumerate(statements) for node in statement.defines}
        return find_repeated_statements(keys, reads, defined)

    def _add_loop(self, statements: Sequence[Statement], loop: RepeatedStatementLoop, results: Sequence[int]) -> None:
        """Print a function of one repetition, and its ``lax.scan``."""
        self._loops += 1
        first = statements[loop.start : loop.start + loop.period]
        targets = [node for statement in first for node in statement.defines]
        outside = [*statements[: loop.start], *statements[loop.end :]]
        read_outside = {node for statement in outside for node in statement.reads} | set(results)
        given, carried = _JaxLoopArguments("e"), _JaxLoopArguments("c")
        texts = [[self._name_operand(operand, targets, given, carried) for operand in row] for row in loop.operands]
        kept = self._place_results(statements, loop, read_outside)
        begin = [self._join(operand.values[:1]) for operand in carried.operands]
        arrays = [self._join(operand.values) for operand in given.operands]

        outer, names = self._indent, self._names
        self._print(f"def repeat_{self._loops}(c, e):")
        self._indent += "    "
        for arguments, vector in ((carried, "c"), (given, "e")):
            if arguments.names:
                self._print(f"{''.join(f'{name}, ' for name in arguments.names)}= {vector}")
        for statement, row, text in zip(first, loop.operands, texts, strict=True):
            self._names = names | {operand.values[0]: each for operand, each in zip(row, text, strict=True)}
            self.add(statement)
        self._names = names
        following = "".join(f"v{targets[operand.source]}, " for operand in carried.operands)
        self._print(f"return ({following}), ({''.join(f'v{targets[i]}, ' for i in kept)})")
        self._indent = outer
        arrays_kept = "".join(f"y{self._loops}_{i}, " for i in kept)
        starts = "".join(f"{text}[0], " for text in begin)
        self._print(
            f"_, ({arrays_kept}) = scan(repeat_{self._loops}, ({starts}), ({', '.join([*arrays, ''])}), {loop.count})"
        )

    def _name_operand(
        self,
        operand: RepeatedStatementOperand,
        targets: Sequence[int],
        given: _JaxLoopArguments,
        carried: _JaxLoopArguments,
    ) -> str:
        """Return the text of an operand in the function of one repetition; shared values get a name before it."""
        if operand.is_carried:
            return carried.name(operand)
        if operand.source >= 0:
            return f"v{targets[operand.source]}"
        node = operand.values[0]
        if not operand.is_shared:
            return given.name(operand)
        if self._locate(node) is None:
            return self.read(node)
        self._print(f"v{node} = {self.read(node)}")
        self._names[node] = f"v{node}"
        return f"v{node}"

    def _place_results(
        self, statements: Sequence[Statement], loop: RepeatedStatementLoop, read_outside: set[int]
    ) -> list[int]:
        """Note in which arrays the results of all repetitions will stand; return the statements that have one."""
        kept = []
        for i in range(loop.period):
            nodes = [
                node for place in range(loop.start + i, loop.end, loop.period) for node in statements[place].defines
            ]
            if read_outside.isdisjoint(nodes):
                continue
            kept.append(i)
            self._places |= {node: (f"y{self._loops}_{i}", k) for k, node in enumerate(nodes)}
        return kept


class _JaxLoopArguments:
    """Operands that a repetition is given, each once.

    Args:
        letter: With which their names begin.
    """

    def __init__(self, letter: str) -> None:
        self._letter = letter
        self._found: dict[tuple[object, ...], tuple[str, RepeatedStatementOperand]] = {}

    def name(self, operand: RepeatedStatementOperand) -> str:
        """Return the name of an operand."""
        key = (operand.source, operand.values[0]) if operand.is_carried else operand.values
        return self._found.setdefault(key, (f"{self._letter}{len(self._found)}", operand))[0]

    @property
    def names(self) -> list[str]:
        """Names, in order."""
        return [name for name, _ in self._found.values()]

    @property
    def operands(self) -> list[RepeatedStatementOperand]:
        """Operands, in order."""
        return [operand for _, operand in self._found.values()]
