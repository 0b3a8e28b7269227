"""``cost``: what an entry point costs in a compiled unit, estimated from its operations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mb2fmu.lowering.dependencies import block_operations
from mb2fmu.lowering.needed import needed
from mb2fmu.lowering.program import LEAVES, Op, Program

_WEIGHTS = {
    **dict.fromkeys((Op.DIV, Op.SQRT), 5.0),
    **dict.fromkeys((Op.SIN, Op.COS), 10.0),
    **dict.fromkeys((Op.TAN, Op.ASIN, Op.ACOS, Op.ATAN, Op.ATAN2, Op.EXP, Op.LOG), 20.0),
    **dict.fromkeys((Op.SINH, Op.COSH, Op.TANH, Op.ASINH, Op.ACOSH, Op.ATANH, Op.POW, Op.ERF), 30.0),
}
"""In additions: estimates for x86-64, between what an operation takes alone and among others; not measured."""

_BLOCK = 2.0  # an operation inside a block, with its loops and loads, against one that is written out: an estimate
_ITERATIONS = 3.0  # of Newton's method from the last solution on: an estimate


def cost(program: Program, entry: str) -> float:
    """Cost of one evaluation, in additions; what depends on parameters only is evaluated beforehand and costs nothing.

    Args:
        program: Any.
        entry: Name of an entry point.
    """
    return _cost(program, program.entries[entry].results, (Op.CONSTANT, Op.PARAMETER))


def _cost(program: Program, results: Sequence[int], fixed: Sequence[Op]) -> float:
    nodes, _ = needed(program, results)
    moving = _moving(program, fixed)
    read = nodes & moving
    total = 0.0
    for op, count in zip(*np.unique(program.op[read], return_counts=True), strict=True):
        if Op(int(op)) not in LEAVES | {Op.BLOCK, Op.FROZEN}:
            total += _WEIGHTS.get(Op(int(op)), 1.0) * float(count)
    blocks = {int(i) for i in np.unique(program.a[read & (program.op == Op.BLOCK)])}
    factors = {program.blocks[i].factor for i in blocks} - {-1}
    blocks |= {i for i in factors if moving[list(program.blocks[i].operands)].any()}
    return total + sum(_block_cost(program, i) for i in sorted(blocks))


def _block_cost(program: Program, index: int) -> float:
    """Of a factorisation, of a solution with given factors, or of Newton's method with all that it evaluates."""
    block = program.blocks[index]
    if block.kind != "newton":
        return _BLOCK * sum(block_operations(block.kind, block.size).values())
    body = program.bodies[block.body]  # its parameters are what the block reads, which moves
    results = (*body.entries["residual"].results, *body.entries["step"].results)
    return _ITERATIONS * _cost(body, results, (Op.CONSTANT,))


def _moving(program: Program, fixed: Sequence[Op]) -> npt.NDArray[np.bool_]:
    """Mask of the nodes that depend on more than ``fixed`` leaves."""
    still = {int(op) for op in fixed}
    leaves = {int(op) for op in LEAVES}
    moving = bytearray(len(program))
    operands = program.all_operands()
    for node, op in enumerate(program.op.tolist()):
        if op in leaves:
            moving[node] = op not in still
        else:
            moving[node] = any(moving[operand] for operand in operands[node])
    return np.frombuffer(moving, dtype=np.uint8).astype(bool)
