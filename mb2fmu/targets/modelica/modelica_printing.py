"""Print nodes of a program as equations of Modelica: one unknown per operation, linear systems as they are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from mb2fmu.compiler.program.program_pruning import find_needed_nodes
from mb2fmu.compiler.program.scalar_program import EquationSolveBlock, PiecewisePolynomial, ScalarProgram
from mb2fmu.errors import EmitError, Fault
from mb2fmu.model.scalar_operation_table import LEAF_OPERATIONS, OPERATIONS, Op

_RELATION_FORMATS: Mapping[Op, str] = MappingProxyType(
    {
        Op.LT: "{0} < {1}",
        Op.LE: "{0} <= {1}",
        Op.NOT: "not ({0})",
        Op.AND: "({0}) and ({1})",
        Op.OR: "({0}) or ({1})",
    }
)


_NAN_LITERAL = "1e60"
_INFINITY_EXPRESSION = "1e308 * (10.0 + time ^ 2)"


def format_modelica_number(value: float) -> str:
    """Return a double as a literal of Modelica that reads back to the same bits; negative ones stand in parentheses.

    Modelica has no literals for what is not finite. What has no value (the impulse where no combination of modes fits)
    stands as a number that no motion survives: tools evaluate it also where it is not used, and want a number there.
    """
    if math.isnan(value):
        return _NAN_LITERAL
    if math.isinf(value):
        return f"({_INFINITY_EXPRESSION})" if value > 0.0 else f"(-{_INFINITY_EXPRESSION})"
    return repr(value) if math.copysign(1.0, value) > 0.0 else f"({value!r})"


@dataclass(frozen=True, slots=True)
class ModelicaVariableNames:
    """Names of a program's leaves in Modelica.

    Attributes:
        states: Of x, in their order; likewise the following.
        inputs: Of r.
        parameters: Of p.
        prefix: Before the names of unknowns.
        memory: Discrete variables; equations read what they were before the event.
    """

    states: Sequence[str]
    inputs: Sequence[str]
    parameters: Sequence[str]
    prefix: str = ""
    memory: Sequence[str] = ()


class ModelicaEquationPrinter:
    """Prints equations for the results of entry points.

    Args:
        program: Any.
        names: Of what it reads.
        tables: Name of the function of each table that is used, by its content; those that are new are added.

    Attributes:
        unknowns: What stands on the left, with start values where they are guesses.
        nodes: The node of each unknown that is one, by its name.
        equations: One per unknown.
        bodies: Printers of the bodies of nonlinear systems, by their blocks.
    """

    def __init__(
        self, program: ScalarProgram, names: ModelicaVariableNames, tables: dict[PiecewisePolynomial, str] | None = None
    ) -> None:
        self._program = program
        self._operands = program.all_operands()
        self._leaves = {Op.STATE: names.states, Op.INPUT: names.inputs, Op.PARAMETER: names.parameters}
        self._memory = names.memory
        self.prefix = names.prefix
        self._blocks: set[int] = set()
        marked = program.entries.get("switches")
        self._switches = frozenset(marked.results if marked else ())
        self.tables = {} if tables is None else tables
        self.unknowns: list[tuple[str, float | None]] = []
        self.nodes: dict[str, int] = {}
        self.equations: list[str] = []
        self.bodies: dict[int, ModelicaEquationPrinter] = {}

    def print_entries(self, entries: Sequence[str]) -> dict[str, list[str]]:
        """Add unknowns and equations of entry points; return the text of each result.

        Raises:
            EmitError: With everything that Modelica cannot say.
        """
        results = {entry: list(self._program.entries[entry].results) for entry in entries}
        nodes, _ = find_needed_nodes(self._program, [node for found in results.values() for node in found])
        leaf = np.isin(self._program.op, [int(op) for op in LEAF_OPERATIONS])
        wanted = np.flatnonzero(nodes & ~leaf).tolist()
        faults = sorted({fault for node in wanted for fault in self._faults(node)}, key=str)
        if faults:
            raise EmitError("the model cannot be written in Modelica:", faults)
        for node in wanted:
            self._print(node)
        return {entry: [self.read(node) for node in found] for entry, found in results.items()}

    def condition(self, node: int) -> str:
        """Return a truth-valued node as a condition of Modelica, whose relations generate events."""
        op = Op(int(self._program.op[node]))
        if op not in _RELATION_FORMATS:
            return f"{self.read(node)} > 0.5"
        read = self.read if op in {Op.LT, Op.LE} else self.condition
        return _RELATION_FORMATS[op].format(*map(read, self._operands[node]))

    def _faults(self, node: int) -> list[Fault]:
        """Return why Modelica cannot hold a node; empty if it can."""
        op = Op(int(self._program.op[node]))
        if op is Op.BLOCK:
            block = self._program.blocks[int(self._program.a[node])]
            kind = block.kind if block.kind == "newton" else self._program.blocks[block.factor].kind
            if kind != "least_norm_factor":
                return []
            what = "it needs solutions of least norm of equations that may be redundant"
            return [Fault(what, block.name or kind, "use the C or MATLAB target")]
        if op is Op.TABLE or (op in OPERATIONS and OPERATIONS[op].modelica):
            return []
        return [Fault(f"Modelica has no function {op.name.lower()}", "an expression", "use the C or MATLAB target")]

    def _print(self, node: int) -> None:
        """Print the equation of a node; a switch that makes events loses its noEvent."""
        op = Op(int(self._program.op[node]))
        if op is Op.BLOCK:
            self._solve(int(self._program.a[node]))
            return
        self._define(
            f"{self.prefix}v{node}", self._text(node, [self.read(each) for each in self._operands[node]]), node
        )

    def _text(self, node: int, operands: Sequence[str]) -> str:
        """Return a node's operation on operands that are given as text."""
        op = Op(int(self._program.op[node]))
        if op is Op.TABLE:
            table = self._program.tables[int(self._program.a[node])].derivative(int(self._program.b[node]))
            name = self.tables.setdefault(table, f"table{len(self.tables) + 1}")
            return f"{name}({operands[-1]})"
        text = OPERATIONS[op].modelica.format(*operands)
        return text.replace("noEvent(", "(") if node in self._switches else text

    def _define(self, name: str, text: str, node: int) -> None:
        """Add an unknown and its equation."""
        self.unknowns.append((name, None))
        self.nodes[name] = node
        self.equations.append(f"{name} = {text}")

    def _solve(self, index: int) -> None:
        """Print a block as equations in its results, row by row; once."""
        if index in self._blocks:
            return
        self._blocks.add(index)
        block = self._program.blocks[index]
        if block.kind == "newton":
            self._solve_nonlinear(index, block)
            return
        factor = self._program.blocks[block.factor]
        self.unknowns += [(self._result(index, k), None) for k in range(block.size)]
        for i in range(block.size):
            row = [
                f"{self.read(factor.operands[_factor_entry_index(factor, i, j)])} * {self._result(index, j)}"
                for j in range(block.size)
            ]
            self.equations.append(f"{' + '.join(row)} = {self.read(block.operands[i])}")

    def _solve_nonlinear(self, index: int, block: EquationSolveBlock) -> None:
        """Print F(y, theta) = 0: the body's nodes under own names, and its residuals set to zero.

        A tool begins with the guess at the start, and goes on from the last solution.
        """
        results = [self._result(index, k) for k in range(block.size)]
        guesses, body = block.operands[-block.size :], self._program.bodies[block.body]
        for name, guess in zip(results, guesses, strict=True):
            self.unknowns.append((name, self._constant(guess) or 0.0))
        theta = [self.read(node) for node in block.operands[: -block.size]]
        inner = ModelicaEquationPrinter(
            body, ModelicaVariableNames(results, (), theta, f"{self.prefix}b{index}"), self.tables
        )
        residuals = inner.print_entries(("residual",))["residual"]
        self.bodies[index] = inner
        self.unknowns += inner.unknowns
        self.equations += [*inner.equations, *(f"{residual} = 0.0" for residual in residuals)]

    def _constant(self, node: int) -> float | None:
        """Return the value of a constant node; None of any other."""
        if Op(int(self._program.op[node])) is Op.CONSTANT:
            return float(self._program.constants[self._program.a[node]])
        return None

    def _result(self, index: int, k: int) -> str:
        """Return the name of unknown k (from 0) of a block."""
        return f"{self.prefix}b{index}_{k + 1}"

    def read(self, node: int) -> str:
        """Return a node as an operand: a name or a number."""
        program, op = self._program, Op(int(self._program.op[node]))
        value = self._constant(node)
        if value is not None:
            return format_modelica_number(value)
        if op is Op.TIME:
            return "time"
        if op is Op.MEMORY:
            return f"pre({self._memory[int(program.a[node])]})"
        if op in self._leaves:
            return self._leaves[op][int(program.a[node])]
        if op is Op.BLOCK:
            return self._result(int(program.a[node]), int(program.b[node]))
        return f"{self.prefix}v{node}"


def _factor_entry_index(factor: EquationSolveBlock, i: int, j: int) -> int:
    """Return the index of A[i, j] in the operands of a factorization."""
    if not factor.symmetric:
        return i * factor.size + j
    low, high = min(i, j), max(i, j)
    return high * (high + 1) // 2 + low
