"""Nodes of a program as equations of Modelica: one unknown per operation, linear systems as they are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from mb2fmu.errors import EmitError, Fault
from mb2fmu.operations import LEAVES, OPERATIONS, Op
from mb2fmu.program.needed import needed
from mb2fmu.program.program import Block, Program

# Without events, as the unit has none: the branch is that of the present values.
_CHOICE = "noEvent(if {0} then {1} else {2})"
_WRITTEN: Mapping[Op, str] = MappingProxyType(
    {
        Op.NEG: "-({0})",
        Op.POW: "({0}) ^ ({1})",
        Op.HYPOT: "sqrt(({0}) ^ 2 + ({1}) ^ 2)",
        Op.ASINH: "log({0} + sqrt(({0}) ^ 2 + 1.0))",
        Op.ACOSH: "log({0} + sqrt(({0}) ^ 2 - 1.0))",
        Op.ATANH: "0.5 * log((1.0 + {0}) / (1.0 - {0}))",
        Op.ABS: _CHOICE.format("{0} < 0.0", "-({0})", "{0}"),
        Op.SIGN: _CHOICE.format("{0} > 0.0", "1.0", _CHOICE.format("{0} < 0.0", "-1.0", "0.0")),
        Op.MIN: _CHOICE.format("{1} < {0}", "{1}", "{0}"),
        Op.MAX: _CHOICE.format("{1} > {0}", "{1}", "{0}"),
        Op.LT: _CHOICE.format("{0} < {1}", "1.0", "0.0"),
        Op.LE: _CHOICE.format("{0} <= {1}", "1.0", "0.0"),
        Op.NOT: "1.0 - {0}",
        Op.AND: "{0} * {1}",
        Op.OR: _CHOICE.format("{1} > {0}", "{1}", "{0}"),
        Op.SELECT: _CHOICE.format("{0} > 0.5", "{1}", "{2}"),
        Op.FROZEN: "{0}",
    }
)
_SAME_NAME = frozenset(
    {Op.SQRT, Op.EXP, Op.LOG, Op.SIN, Op.COS, Op.TAN, Op.ASIN, Op.ACOS, Op.ATAN, Op.ATAN2, Op.SINH, Op.COSH, Op.TANH}
)
_LINEAR = ("lu_factor", "ldlt_factor")


def number(value: float) -> str:
    """A double as a literal of Modelica that reads back to the same bits; negative ones stand in parentheses."""
    return repr(value) if math.copysign(1.0, value) > 0.0 else f"({value!r})"


class EquationPrinter:
    """Equations for the results of entry points.

    Args:
        program: Any.
        states: Names of x, in their order; likewise the following.
        inputs: Of r.
        parameters: Of p.
    """

    def __init__(
        self, program: Program, states: Sequence[str], inputs: Sequence[str], parameters: Sequence[str]
    ) -> None:
        self._program = program
        self._operands = program.all_operands()
        self._leaves = {Op.STATE: states, Op.INPUT: inputs, Op.PARAMETER: parameters}
        self._blocks: set[int] = set()
        self.unknowns: list[str] = []
        self.equations: list[str] = []

    def print_entries(self, entries: Sequence[str]) -> dict[str, list[str]]:
        """Adds unknowns and equations of entry points; how the results of each are read.

        Raises:
            EmitError: With everything that Modelica cannot say.
        """
        results = {entry: list(self._program.entries[entry].results) for entry in entries}
        nodes, _ = needed(self._program, [node for found in results.values() for node in found])
        leaf = np.isin(self._program.op, [int(op) for op in LEAVES])
        wanted = np.flatnonzero(nodes & ~leaf).tolist()
        faults = sorted({fault for node in wanted for fault in self._faults(node)}, key=str)
        if faults:
            raise EmitError("the model cannot be written in Modelica:", faults)
        for node in wanted:
            self._print(node)
        return {entry: [self._read(node) for node in found] for entry, found in results.items()}

    def _faults(self, node: int) -> list[Fault]:
        op = Op(int(self._program.op[node]))
        if op is Op.TABLE:
            return [Fault("lookup tables are not written yet", "a table", "use the C or MATLAB target")]
        if op is Op.BLOCK:
            block = self._program.blocks[int(self._program.a[node])]
            kind = block.kind if block.kind == "newton" else self._program.blocks[block.factor].kind
            if kind in _LINEAR:
                return []
            reasons = {
                "newton": "Newton's method from where the states are",
                "least_norm_factor": "solutions of least norm of equations that may be redundant",
            }
            return [Fault(f"it needs {reasons[kind]}", block.name or kind, "use the C or MATLAB target")]
        if op not in _WRITTEN and op not in _SAME_NAME and not (op in OPERATIONS and OPERATIONS[op].infix):
            return [Fault(f"Modelica has no function {op.name.lower()}", "an expression", "use the C or MATLAB target")]
        return []

    def _print(self, node: int) -> None:
        op = Op(int(self._program.op[node]))
        if op is Op.BLOCK:
            self._solve(int(self._program.a[node]))
            return
        operands = [self._read(each) for each in self._operands[node]]
        if op in _WRITTEN:
            text = _WRITTEN[op].format(*operands)
        elif op in _SAME_NAME:
            text = f"{op.name.lower()}({', '.join(operands)})"
        else:
            text = f"{operands[0]} {OPERATIONS[op].infix} {operands[1]}"
        self.unknowns.append(f"v{node}")
        self.equations.append(f"v{node} = {text}")

    def _solve(self, index: int) -> None:
        """A linear system A b = right, row by row; once."""
        if index in self._blocks:
            return
        self._blocks.add(index)
        block = self._program.blocks[index]
        factor = self._program.blocks[block.factor]
        self.unknowns += [f"b{index}_{k + 1}" for k in range(block.size)]
        for i in range(block.size):
            row = [f"{self._read(factor.operands[_place(factor, i, j)])} * b{index}_{j + 1}" for j in range(block.size)]
            self.equations.append(f"{' + '.join(row)} = {self._read(block.operands[i])}")

    def _read(self, node: int) -> str:
        program, op = self._program, Op(int(self._program.op[node]))
        if op is Op.CONSTANT:
            return number(float(program.constants[program.a[node]]))
        if op is Op.TIME:
            return "time"
        if op in self._leaves:
            return self._leaves[op][int(program.a[node])]
        if op is Op.BLOCK:
            return f"b{int(program.a[node])}_{int(program.b[node]) + 1}"
        return f"v{node}"


def _place(factor: Block, i: int, j: int) -> int:
    """Index of A[i, j] in the operands of a factorization."""
    if not factor.symmetric:
        return i * factor.size + j
    low, high = min(i, j), max(i, j)
    return high * (high + 1) // 2 + low
