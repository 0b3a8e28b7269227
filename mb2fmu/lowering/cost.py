"""``cost``: what an entry point costs in a compiled unit, estimated from its operations."""

from __future__ import annotations

import numpy as np

from mb2fmu.lowering.dependencies import block_operations
from mb2fmu.lowering.needed import needed
from mb2fmu.lowering.program import LEAVES, Op, Program

_WEIGHTS = {
    **dict.fromkeys((Op.DIV, Op.SQRT), 5.0),
    **dict.fromkeys((Op.SIN, Op.COS), 10.0),
    **dict.fromkeys((Op.TAN, Op.ASIN, Op.ACOS, Op.ATAN, Op.ATAN2, Op.EXP, Op.LOG), 20.0),
    **dict.fromkeys((Op.SINH, Op.COSH, Op.TANH, Op.ASINH, Op.ACOSH, Op.ATANH, Op.POW, Op.ERF), 30.0),
}
"""In additions; measured in units compiled for x86-64."""

_BLOCK = 2.0  # an operation inside a block, with its loops and loads, against one that is written out


def cost(program: Program, entry: str) -> float:
    """Cost of one evaluation, in additions; what depends on parameters only is evaluated beforehand and costs nothing.

    Args:
        program: Any.
        entry: Name of an entry point.
    """
    nodes, blocks = needed(program, program.entries[entry].results)
    moving = _moving(program)
    total = 0.0
    for op, count in zip(*np.unique(program.op[nodes & moving], return_counts=True), strict=True):
        if Op(int(op)) not in LEAVES | {Op.BLOCK}:
            total += _WEIGHTS.get(Op(int(op)), 1.0) * float(count)
    for index in np.flatnonzero(blocks):
        block = program.blocks[index]
        total += _BLOCK * sum(block_operations(block.kind, block.size).values())
    return total


def _moving(program: Program) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Mask of the nodes that depend on more than parameters."""
    fixed = {int(Op.CONSTANT), int(Op.PARAMETER)}
    leaves = {int(op) for op in LEAVES}
    moving = bytearray(len(program))
    operands = program.all_operands()
    for node, op in enumerate(program.op.tolist()):
        if op in leaves:
            moving[node] = op not in fixed
        else:
            moving[node] = any(moving[operand] for operand in operands[node])
    return np.frombuffer(moving, dtype=np.uint8).astype(bool)
