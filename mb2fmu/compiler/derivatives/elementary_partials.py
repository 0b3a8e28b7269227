"""Partial derivatives of the elementary operations, as nodes.

Where an operation has a kink (Abs) the derivative is that of the branch taken; jumps (sign, floor) have derivative 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.model.scalar_operation_table import OPERATIONS, Op, find_operations_by_attribute

ZERO_DERIVATIVE_OPERATIONS = find_operations_by_attribute(lambda row: row.flat)
"""Operations whose derivative is 0 wherever it exists."""


def form_operation_derivative(b: ProgramBuilder, op: Op, nodes: Sequence[int], value: int, k: int) -> int:
    """Return the derivative of an operation with respect to its operand ``k``.

    Args:
        b: Takes the nodes.
        op: One or two operands; sums, quotients and selections have rules of their own in either mode.
        nodes: The operands.
        value: What the operation gives.
        k: 0 or 1.
    """
    return OPERATIONS[op].slopes[k](b, nodes, value)
