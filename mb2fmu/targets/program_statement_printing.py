"""``ProgramStatementPrinter``: statements of a program as text, for every target whose functions are straight lines.

The order of statements, what is checked, and what reads what are decided here, so that all languages evaluate one
graph, operation by operation. A language adds its spelling: numbers, elements of vectors, names of functions, and how a
value is defined, a condition required, a linear or nonlinear system solved.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar, Literal

import numpy as np

from mb2fmu.compiler.program.scalar_program import (
    LEAF_OPERATIONS,
    EquationSolveBlock,
    Op,
    PiecewisePolynomial,
    ScalarProgram,
    find_domain_restricted_nodes,
)
from mb2fmu.compiler.program.statement_schedule import (
    FactorizationStatement,
    NewtonStatement,
    OperationStatement,
    SineCosineStatement,
    SolveStatement,
    Statement,
    StatementScheduleGraph,
    StatementSequence,
)
from mb2fmu.model.scalar_operation_table import OPERATIONS

Requirement = Literal["positive", "not zero"]
"""What a value must be, and finite; else there is no valid result."""

LEAF_VECTORS: Mapping[Op, str] = MappingProxyType(
    {Op.STATE: "x", Op.INPUT: "r", Op.PARAMETER: "p", Op.MEMORY: "m", Op.SEED: "s"}
)
"""Vectors that functions read."""


class ProgramStatementPrinter(ABC):
    """Prints statements that compute results of a program; a subclass is a language.

    Args:
        program: Any.

    Attributes:
        first_index: Of a vector.
        brackets: Of an element of a vector.
        function_names: Names of functions that differ from those of :data:`OPERATIONS`.
        lines: What has been printed.
    """

    first_index: ClassVar[int] = 1
    brackets: ClassVar[tuple[str, str]] = ("(", ")")
    function_names: ClassVar[Mapping[str, str]] = MappingProxyType({})

    def __init__(self, program: ScalarProgram) -> None:
        self.program = program
        self.lines: list[str] = []
        self._graph = StatementScheduleGraph(program)
        self._required = _list_requirements(program)

    def schedule(self, results: Sequence[int]) -> StatementSequence:
        """Return the statements that compute nodes, in order."""
        return self._graph.schedule_statements(results, np.zeros(len(self.program), dtype=np.bool_))

    def add(self, statement: Statement) -> None:
        """Print a statement, and what its values must be."""
        self.require_leaves(statement.reads)
        match statement:
            case OperationStatement():
                self._compute(statement.node, self._format_operation(statement.node, statement.reads))
            case SineCosineStatement():
                for angle, *nodes in zip(statement.reads, statement.sines, statement.cosines, strict=True):
                    for function, node in zip(("sin", "cos"), nodes, strict=True):
                        if node >= 0:
                            self._compute(node, self.format_call(function, [self.read(angle)]))
            case FactorizationStatement():
                self.factorize(statement.block, self.program.blocks[statement.block])
            case SolveStatement() | NewtonStatement():
                block = self.program.blocks[statement.block]
                solve = self.print_newton_iteration if isinstance(statement, NewtonStatement) else self.solve
                vector, first = solve(statement.block, block)
                for node, result in zip(statement.nodes, statement.results, strict=True):
                    self._compute(node, self.element(vector, first + result))

    def require_leaves(self, nodes: Iterable[int]) -> None:
        """Print what leaves that are read must be, each once."""
        for node in nodes:
            if self.is_leaf(node) and node in self._required:
                requirement, clause = self._required.pop(node)
                self.require(node, requirement, clause)

    def is_leaf(self, node: int) -> bool:
        """Return whether a node is a number or an element of an argument."""
        return bool(self._graph.is_leaf[node])

    def read(self, node: int) -> str:
        """Return the text that reads a node: a number, an element of an argument, or the name of its value."""
        op = Op(int(self.program.op[node]))
        if op is Op.CONSTANT:
            return self.format_number(float(self.program.constants[self.program.a[node]]))
        if op is Op.TIME:
            return "t"
        if op in LEAF_VECTORS:
            return self.element(LEAF_VECTORS[op], int(self.program.a[node]))
        return f"v{node}"

    def element(self, vector: str, index: int) -> str:
        """Return an element of a vector; ``index`` counts from 0."""
        return f"{vector}{self.brackets[0]}{index + self.first_index}{self.brackets[1]}"

    def _compute(self, node: int, text: str) -> None:
        """Print the definition of a value and what it must be."""
        self.define(node, text)
        if node in self._required:
            self.require(node, *self._required[node])

    def _format_operation(self, node: int, reads: Sequence[int]) -> str:
        """Return the text of an operation."""
        op, operands = Op(int(self.program.op[node])), [self.read(each) for each in reads]
        if op is Op.TABLE:
            table = self.program.tables[int(self.program.a[node])].derivative(int(self.program.b[node]))
            return self.look_up(table, operands[0])
        if op is Op.FROZEN:
            return self.format_without_derivative(operands[0])
        if op is Op.NEG:
            return f"-{operands[0]}"
        row = OPERATIONS[op]
        return f" {row.infix} ".join(operands) if row.infix else self.format_call(row.function, operands)

    def format_without_derivative(self, operand: str) -> str:
        """Return a value that is a number to whoever differentiates the code."""
        return operand

    def requirement_of(self, node: int) -> Requirement | None:
        """Return what a node's value must be; None: anything."""
        return self._required[node][0] if node in self._required else None

    def format_call(self, function: str, operands: Sequence[str]) -> str:
        """Return the call of a function of the table of operations."""
        return f"{self.function_name(function)}({', '.join(operands)})"

    def function_name(self, name: str) -> str:
        """Return how the language writes the name of a function."""
        return self.function_names.get(name, name)

    # --- the language ------------------------------------------------------------------------------------------------

    @abstractmethod
    def format_number(self, value: float) -> str:
        """Return a double that reads back to the same bits; negative ones stand in parentheses."""

    @abstractmethod
    def look_up(self, table: PiecewisePolynomial, operand: str) -> str:
        """Return the value of a table."""

    @abstractmethod
    def define(self, node: int, text: str) -> None:
        """Print the definition of a node's value."""

    @abstractmethod
    def require(self, node: int, requirement: Requirement, clause: str) -> None:
        """Print that a node's value must be positive or not zero, and finite; ``clause`` says what is wrong else."""

    @abstractmethod
    def factorize(self, index: int, block: EquationSolveBlock) -> None:
        """Print the factorization of a matrix."""

    @abstractmethod
    def solve(self, index: int, block: EquationSolveBlock) -> tuple[str, int]:
        """Print a linear solve; return the vector of its solution, and where it begins there, from 0."""

    @abstractmethod
    def print_newton_iteration(self, index: int, block: EquationSolveBlock) -> tuple[str, int]:
        """Print Newton's method; return the vector of its solution, and where it begins there, from 0."""


def describe_singular_matrix(name: str) -> str:
    """Return what is wrong where a linear solve has no unique solution."""
    return f"the matrix of {name} is singular"


def format_decimal(value: float, infinity: str, nan: str, suffix: str = "") -> str:
    """Return a double as a decimal number that reads back to the same bits; negative ones stand in parentheses.

    Args:
        value: Any double.
        infinity: How the language writes it.
        nan: How the language writes it.
        suffix: Behind a finite number.
    """
    if math.isnan(value):
        return nan
    text = f"{abs(value)!r}{suffix}" if math.isfinite(value) else infinity
    return text if math.copysign(1.0, value) > 0.0 else f"(-{text})"


def _list_requirements(program: ScalarProgram) -> dict[int, tuple[Requirement, str]]:
    """Return what values must be, and what is wrong else: pivots, divisors, and values with a domain."""
    positive, nonzero = (find_domain_restricted_nodes(program, name) for name in ("pivots", "divisors"))
    found: dict[int, tuple[Requirement, str]] = {}
    found |= {node: ("not zero", describe_singular_matrix(name)) for node, name in nonzero.items()}
    found |= {node: ("positive", describe_singular_matrix(name)) for node, name in positive.items()}
    return found | {
        node: ("positive", clause) for node, clause in find_domain_restricted_nodes(program, "domains").items()
    }


assert set(LEAF_VECTORS) | {Op.CONSTANT, Op.TIME} == LEAF_OPERATIONS
