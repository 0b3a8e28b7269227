"""``evaluate_high_precision``: evaluate an entry point of a Program with many digits, to measure rounding errors.

Slow, and for that alone: every operation in mpmath's arithmetic, linear systems solved there, and solutions of Newton's
method refined there from those that doubles find.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import mpmath
import numpy as np

from mb2fmu.compiler.arithmetic.python_newton import newton
from mb2fmu.compiler.evaluation.numpy_evaluator import make_evaluator
from mb2fmu.compiler.program.scalar_program import EquationSolveBlock, Op, ScalarProgram
from mb2fmu.model.scalar_operation_table import OPERATIONS

_EIGENVALUE_CUTOFF = 1e-14  # of the largest eigenvalue, as in python_least_norm
_MAX_REFINEMENTS = 40


def evaluate_high_precision(
    program: ScalarProgram, entry: str, leaves: Mapping[Op, Sequence[Any]], digits: int = 60
) -> list[Any]:
    """Return the results as numbers of mpmath; NaN where one is not defined, or is not real.

    Args:
        program: Any.
        entry: Name of the entry point.
        leaves: What is read: ``Op.TIME`` (one number), ``Op.STATE``, ``Op.INPUT``, ``Op.PARAMETER``, ``Op.MEMORY``,
            ``Op.SEED``.
        digits: Decimal ones that are carried.
    """
    with mpmath.workdps(digits):
        evaluation = _HighPrecisionEvaluator(
            program, {op: list(map(mpmath.mpf, values)) for op, values in leaves.items()}
        )
        return evaluation.of(program.entries[entry].results)


class _HighPrecisionEvaluator:
    """Values of the nodes of one program."""

    def __init__(self, program: ScalarProgram, leaves: Mapping[Op, Sequence[Any]]) -> None:
        self._program = program
        self._leaves = leaves
        self._found: list[Any] = []
        self._solutions: dict[int, Sequence[Any]] = {}
        operands = program.all_operands()
        for node in range(len(program)):
            self._found.append(self._value(node, operands[node]))

    def of(self, nodes: Sequence[int]) -> list[Any]:
        """Return the values of nodes."""
        return [self._found[node] for node in nodes]

    def _value(self, node: int, operands: Sequence[int]) -> Any:
        """Evaluate one node with all digits from the values of its operands."""
        program, op, index = self._program, Op(int(self._program.op[node])), int(self._program.a[node])
        if op is Op.CONSTANT:
            return mpmath.mpf(float(program.constants[index]))
        if op in self._leaves:
            return self._leaves[op][index]
        if op is Op.BLOCK:
            if index not in self._solutions:
                self._solutions[index] = self._solution(program.blocks[index])
            return self._solutions[index][int(program.b[node])]
        try:
            if op is Op.TABLE:
                return self._of_table(index, int(program.b[node]), self._found[operands[0]])
            value = OPERATIONS[op].digits(*self.of(operands))
        except (ZeroDivisionError, ValueError):
            return mpmath.nan
        return mpmath.nan if isinstance(value, mpmath.mpc) else value

    def _of_table(self, index: int, order: int, x: Any) -> Any:
        """Evaluate a table's derivative of an order with many digits; the outermost pieces hold beyond its ends."""
        table = self._program.tables[index].derivative(order)
        piece = int(np.clip(np.searchsorted(table.breaks, float(x), side="right") - 1, 0, len(table.breaks) - 2))
        step = x - mpmath.mpf(table.breaks[piece])
        return mpmath.polyval([mpmath.mpf(row[piece]) for row in reversed(table.coefficients)], step)

    def _solution(self, block: EquationSolveBlock) -> Sequence[Any]:
        """Solve a block with all digits: a linear system, or equations that are refined by Newton."""
        if block.kind == "newton":
            return self._refined(block)
        factor = self._program.blocks[block.factor]
        entries, right = self.of(factor.operands), mpmath.matrix(self.of(block.operands))
        n = factor.size
        matrix = mpmath.matrix(n, n)
        for i in range(n):
            for j in range(i + 1 if factor.symmetric else n):
                matrix[i, j] = entries[i * (i + 1) // 2 + j if factor.symmetric else i * n + j]
                if factor.symmetric:
                    matrix[j, i] = matrix[i, j]
        try:
            if factor.kind == "least_norm_factor":
                return list(_solve_least_norm(matrix, factor.rank, right))
            return list(mpmath.lu_solve(matrix, right))
        except ZeroDivisionError:
            return [mpmath.nan] * n

    def _refined(self, block: EquationSolveBlock) -> Sequence[Any]:
        """Return the solution of Newton's method in doubles, refined by steps with all digits."""
        body, n = self._program.bodies[block.body], block.size
        theta, guess = self.of(block.operands[:-n]), self.of(block.operands[-n:])
        f = make_evaluator(body, ("residual", "step"), hoist=False)
        numbers, start = [float(v) for v in theta], [float(v) for v in guess]
        found = newton(n, block.name, lambda y, p: f(0.0, y, (), p).tolist(), numbers, start)
        y = list(map(mpmath.mpf, found))
        for _ in range(_MAX_REFINEMENTS):
            inside = _HighPrecisionEvaluator(body, {Op.STATE: y, Op.PARAMETER: theta})
            step = inside.of(body.entries["step"].results)
            y = [a + b for a, b in zip(y, step, strict=True)]
            if max(map(abs, step)) <= mpmath.eps * (1 + max(map(abs, y))):
                break
        return y


def _solve_least_norm(matrix: Any, rank: int, right: Any) -> Any:
    """Solve as ``python_least_norm`` does, from the eigenvalues that count."""
    values, vectors = mpmath.eigsy(matrix)
    n = len(values)
    order = sorted(range(n), key=lambda i: -values[i])
    largest = max(values[order[0]], mpmath.mpf(0))
    found = mpmath.zeros(n, 1)
    for i in order[:rank]:
        if values[i] > 0:
            shifted = values[i] + mpmath.mpf(_EIGENVALUE_CUTOFF) * largest
            part = values[i] / shifted
            along = sum(vectors[k, i] * right[k] for k in range(n)) * part / shifted * (2 - part * part)
            for k in range(n):
                found[k] += vectors[k, i] * along
    return found
