"""``WorkArrayFunctionPrinter``: straight-line functions of compiled languages, without structures and exceptions.

All that is not a single value stands in two arrays: ``w`` keeps factors of matrices, and values that a later part of a
long function reads; ``b`` holds right-hand sides, solutions, and what Newton's method reads and finds. A function that
fails returns a number, which stands for a clause that says what is wrong. So one sequence of statements serves every
such language, and the factorizations have the memory layout and the order of operations of the FMU's C code.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from mb2fmu.compiler.program.scalar_program import EquationSolveBlock, PiecewisePolynomial, ScalarProgram
from mb2fmu.compiler.program.statement_schedule import Statement, count_factor_doubles, group_statements_by_size
from mb2fmu.targets.program_statement_printing import ProgramStatementPrinter, Requirement, describe_singular_matrix

MAX_VALUES_PER_FUNCTION = 1_000
"""A function that computes more is cut into parts: compilers take more than linear time for one function."""


@dataclass(frozen=True, slots=True)
class StraightLineFunctionPart:
    """Statements of one part of a function.

    Attributes:
        lines: Of the language.
        values: Names of the values that they define, in order.
        scratch: Places that they need in ``b``.
    """

    lines: tuple[str, ...]
    values: tuple[str, ...]
    scratch: int


@dataclass(frozen=True, slots=True)
class StraightLineFunctionText:
    """A function for a template to frame.

    Attributes:
        name: Of the function.
        result: Name of the vector that it stores.
        parts: One or several, to be evaluated in order over the same ``w``.
        work: Places in ``w``.
    """

    name: str
    result: str
    parts: tuple[StraightLineFunctionPart, ...]
    work: int


@dataclass(slots=True)
class TargetModuleContents:
    """What the functions of one module share; their printers fill it in.

    Attributes:
        functions: Entry points.
        bodies: Functions that Newton's method evaluates: residuals, then steps, of its unknowns and parameters.
        failures: What is wrong, as a clause → the number that functions return.
        tables: Lookup tables by the names of their arrays.
        routines: Parts of the runtime that functions call: ``ldlt``, ``lu``, ``least_norm``, ``newton``, ``lookup``.
    """

    functions: list[StraightLineFunctionText] = field(default_factory=list)
    bodies: dict[str, StraightLineFunctionText] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)
    tables: dict[PiecewisePolynomial, str] = field(default_factory=dict)
    routines: set[str] = field(default_factory=set)

    def first_failure_number(self, *clauses: str) -> int:
        """Return the number of the first of several clauses, which have consecutive numbers."""
        for clause in clauses:
            self.failures.setdefault(clause, len(self.failures) + 1)
        return self.failures[clauses[0]]


class WorkArrayFunctionPrinter(ProgramStatementPrinter):
    """Prints one function.

    Args:
        program: Any.
        contents: Of the module.
    """

    functions_in_files: ClassVar[frozenset[str]] = frozenset()
    """Scalar functions that are long: each has a file of the runtime, which modules without it do not have."""
    not_positive: ClassVar[str]
    """The condition that a value, ``{0}``, is not positive and finite."""

    def __init__(self, program: ScalarProgram, contents: TargetModuleContents) -> None:
        super().__init__(program)
        self._contents = contents
        self._values: list[str] = []
        self._scratch = 0
        self._work = 0
        self._factors: dict[int, int] = {}  # place in w of each factorization
        self._home: dict[int, int] = {}  # part that defines a node
        self._kept: dict[int, int] = {}  # place in w of nodes that later parts read
        self._part = 0

    def print_function(self, name: str, results: Sequence[int], result: str) -> StraightLineFunctionText:
        """Print the function that stores nodes in the vector ``result``."""
        parts = group_statements_by_size(self.schedule(results), MAX_VALUES_PER_FUNCTION)
        self._home = {node: i for i, part in enumerate(parts) for statement in part for node in statement.defines}
        for i, part in enumerate(parts):
            for node in (node for statement in part for node in statement.reads):
                if self._home.get(node, i) < i and node not in self._kept:
                    self._kept[node] = self._reserve(1)
        printed = [self._print_part(i, part, results, result, len(parts)) for i, part in enumerate(parts)]
        return StraightLineFunctionText(name, result, tuple(printed), self._work)

    def _print_part(
        self, number: int, statements: Iterable[Statement], results: Sequence[int], result: str, count: int
    ) -> StraightLineFunctionPart:
        """Print the statements of a part, and store the results that it defines; leaves are stored at the end."""
        self._part, self._scratch = number, 0
        self.lines, self._values = [], []
        for statement in statements:
            self.add(statement)
        for i, node in enumerate(results):
            if self._home.get(node, count - 1) == number:
                self.require_leaves([node])
                self.assign(self.element(result, i), self.read(node))
        return StraightLineFunctionPart(tuple(self.lines), tuple(self._values), self._scratch)

    def read(self, node: int) -> str:
        """Return the text that reads a node, from ``w`` if an earlier part has defined it."""
        if self._home.get(node, self._part) < self._part:
            return self.element("w", self._kept[node])
        return super().read(node)

    def define(self, node: int, text: str) -> None:
        """Print the definition of a value, and keep it where a later part reads it."""
        name = f"v{node}"
        self._values.append(name)
        self.define_value(name, text)
        if node in self._kept:
            self.assign(self.element("w", self._kept[node]), name)

    def require(self, node: int, requirement: Requirement, clause: str) -> None:
        """Print the return of a failure number."""
        self.fail(self.format_violation(requirement, self.read(node)), self._contents.first_failure_number(clause))

    def factorize(self, index: int, block: EquationSolveBlock) -> None:
        """Print a factorization in place, in ``w``."""
        size = count_factor_doubles(block.kind, block.size)
        first = self._factors[index] = self._reserve(size)
        self._fill("w", first, block.operands)
        kind = block.kind.removesuffix("_factor")
        self._contents.routines.add(kind)
        rank = [str(block.rank)] if block.rank >= 0 else []
        number = self._contents.first_failure_number(describe_singular_matrix(block.name))
        self.call(block.kind, [str(block.size), *rank, self.section("w", first, size)], number)

    def solve(self, index: int, block: EquationSolveBlock) -> tuple[str, int]:  # noqa: ARG002 (structures of others have a name)
        """Print a solve in place, in ``b``."""
        factor = self.program.blocks[block.factor]
        factors = self.section("w", self._factors[block.factor], count_factor_doubles(factor.kind, factor.size))
        self._use_scratch(block.size)
        self._fill("b", 0, block.operands)
        routine = f"{factor.kind.removesuffix('_factor')}_solve"
        self.call(routine, [str(block.size), factors, self.section("b", 0, block.size)], None)
        return "b", 0

    def print_newton_iteration(self, index: int, block: EquationSolveBlock) -> tuple[str, int]:  # noqa: ARG002
        """Print Newton's method: in ``b`` stand its parameters, then its guess, which becomes the solution."""
        contents, count = self._contents, len(block.operands) - block.size
        name = self.function_name(f"body_{block.body}")
        if name not in contents.bodies:
            body = self.program.bodies[block.body]
            nodes = [*body.entries["residual"].results, *body.entries["step"].results]
            contents.bodies[name] = type(self)(body, contents).print_function(name, nodes, "y")
        contents.routines.add("newton")
        self._use_scratch(len(block.operands))
        self._fill("b", 0, block.operands)
        wrong = f"no solution is found for {block.name}"
        clauses = [wrong, f"{wrong}: its rows contradict each other"] if block.rows else [wrong]
        arguments = [
            *(str(block.size), name, str(count), self.section("b", 0, count)),
            *(self.format_truth(bool(block.rows)), self.section("b", count, block.size)),
        ]
        self.call("newton", arguments, contents.first_failure_number(*clauses))
        return "b", count

    def look_up(self, table: PiecewisePolynomial, operand: str) -> str:
        """Return a call with the arrays of the table."""
        self._contents.routines.add("lookup")
        name = self._contents.tables.setdefault(table, f"table_{len(self._contents.tables) + 1}")
        return f"{self.function_name('lookup')}({name}_breaks, {name}_coefficients, {operand})"

    def format_call(self, function: str, operands: Sequence[str]) -> str:
        """Return the call of a scalar function, and note the part of the runtime that has it."""
        if function in self.functions_in_files:
            self._contents.routines.add(function)
        return super().format_call(function, operands)

    def format_violation(self, requirement: Requirement, value: str) -> str:
        """Return the condition that a value is not what it must be."""
        size = value if requirement == "positive" else self.format_call("absolute", [value])
        return self.not_positive.format(size)

    def define_value(self, name: str, text: str) -> None:
        """Print the definition of a value by its name; an assignment, unless the language declares it there."""
        self.assign(name, text)

    @staticmethod
    def format_failure_number(number: int) -> str:
        """Return the failure number of a call of which ``failed`` is 1 for failure ``number``, 2 for the next one."""
        return "failed" if number == 1 else f"{number - 1} + failed"

    def _fill(self, vector: str, first: int, nodes: Sequence[int]) -> None:
        """Print assignments to neighbouring elements."""
        for i, node in enumerate(nodes):
            self.assign(self.element(vector, first + i), self.read(node))

    def _reserve(self, size: int) -> int:
        """Return the first of some new places in ``w``."""
        self._work += size
        return self._work - size

    def _use_scratch(self, size: int) -> None:
        """Note that ``b`` needs so many places."""
        self._scratch = max(self._scratch, size)

    # --- the language ------------------------------------------------------------------------------------------------

    @abstractmethod
    def section(self, vector: str, first: int, count: int) -> str:
        """Return the argument that hands over neighbouring elements; ``first`` counts from 0."""

    @abstractmethod
    def format_truth(self, value: bool) -> str:
        """Return a truth value."""

    @abstractmethod
    def assign(self, target: str, text: str) -> None:
        """Print an assignment to an element of a vector."""

    @abstractmethod
    def fail(self, condition: str, number: int) -> None:
        """Print the return of a failure number where a condition holds."""

    @abstractmethod
    def call(self, routine: str, arguments: Sequence[str], number: int | None) -> None:
        """Print the call of a routine of the runtime.

        Args:
            routine: Its neutral name.
            arguments: In order.
            number: Of the failure that it means if it finds 1; of the next one if it finds 2; None: it cannot fail.
        """


MODULE_FUNCTIONS = (
    ("rhs", "rhs", "dx"),
    ("outputs", "outputs", "y"),
    ("initialize", "initial_state", "start"),
    ("remember", "remember", "next"),
)
"""Entry points of the program that modules have, their neutral names, and the vectors that they store."""


def print_module_model_functions(
    program: ScalarProgram, printer: type[WorkArrayFunctionPrinter]
) -> TargetModuleContents:
    """Print all functions of a module: x', outputs, start values on the constraints, memory; those that there are.

    Args:
        program: With the entry points ``rhs`` and ``outputs``, and ``remember`` where there is discrete memory.
        printer: Of the language.
    """
    contents = TargetModuleContents()
    for entry, name, result in MODULE_FUNCTIONS:
        if entry in {"rhs", "outputs"} or (entry in program.entries and program.entries[entry].results):
            function = printer(program, contents)
            results = program.entries[entry].results
            contents.functions.append(function.print_function(function.function_name(name), results, result))
    return contents
