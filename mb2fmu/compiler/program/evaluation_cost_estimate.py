"""``estimate_evaluation_cost``: the cost of an entry point in a compiled FMU, estimated from its operations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mb2fmu.compiler.program.program_pruning import find_needed_nodes
from mb2fmu.compiler.program.program_result_dependencies import count_solve_operations
from mb2fmu.compiler.program.scalar_program import LEAF_OPERATIONS, Op, ScalarProgram
from mb2fmu.model.scalar_operation_table import OPERATIONS

OPERATION_COSTS = {**{op: row.cost for op, row in OPERATIONS.items()}, Op.TABLE: 25.0}
"""In operations of a chain's x', of which nearly all are products, sums and differences: what an operation adds to it,
among others, as ``scripts/bench_cost`` measured it on x86-64 with AVX2. Others weigh 1. Divisions, roots, sines and
cosines are computed several at once; the other functions, which have the same bits everywhere, alone."""

_BLOCK_COST_FACTORS = {"ldlt_factor": 1.5, "lu_factor": 3.0, "least_norm_factor": 2.0}
"""What an operation of a matrix, or of a solution with it, costs against one that is written out: 1.3 to 1.9 measured
for sizes of 2 to 9, and 2.1 to 6.5 with pivots; the last is an estimate."""

_NEWTON_ITERATIONS = 2.0
"""Of a body by Newton's method, on the average while a loop moves: 1.0 to 3.0 counted in four models."""


def estimate_evaluation_cost(program: ScalarProgram, entry: str) -> float:
    """Return the cost of one evaluation in additions; parts that depend on parameters only are free.

    Args:
        program: Any.
        entry: Name of an entry point.
    """
    return _sum_operation_costs(program, program.entries[entry].results, (Op.CONSTANT, Op.PARAMETER))


def _sum_operation_costs(program: ScalarProgram, results: Sequence[int], fixed: Sequence[Op]) -> float:
    """Sum the weights of all nodes and blocks that results need and that do not depend on `fixed` leaves alone."""
    nodes, _ = find_needed_nodes(program, results)
    moving = _find_varying_nodes(program, fixed)
    read = nodes & moving
    total = 0.0
    for op, count in zip(*np.unique(program.op[read], return_counts=True), strict=True):
        if Op(int(op)) not in LEAF_OPERATIONS | {Op.BLOCK, Op.FROZEN}:
            total += OPERATION_COSTS.get(Op(int(op)), 1.0) * float(count)
    blocks = {int(i) for i in np.unique(program.a[read & (program.op == Op.BLOCK)])}
    factors = {program.blocks[i].factor for i in blocks} - {-1}
    blocks |= {i for i in factors if moving[list(program.blocks[i].operands)].any()}
    return total + sum(_block_cost(program, i) for i in sorted(blocks))


def _block_cost(program: ScalarProgram, index: int) -> float:
    """Return the cost of a factorization, of a solve, or of Newton's method with all that it evaluates."""
    block = program.blocks[index]
    if block.kind != "newton":
        counts = count_solve_operations(block.kind, block.size)
        kind = program.blocks[block.factor].kind if block.kind == "solve" else block.kind
        return _BLOCK_COST_FACTORS[kind] * sum(OPERATION_COSTS.get(Op[op], 1.0) * count for op, count in counts.items())
    body = program.bodies[block.body]  # its parameters are what the block reads, which moves
    results = (*body.entries["residual"].results, *body.entries["step"].results)
    return _NEWTON_ITERATIONS * _sum_operation_costs(body, results, (Op.CONSTANT,))


def _find_varying_nodes(program: ScalarProgram, fixed: Sequence[Op]) -> npt.NDArray[np.bool_]:
    """Return a mask of the nodes that depend on more than ``fixed`` leaves."""
    still = {int(op) for op in fixed}
    leaves = {int(op) for op in LEAF_OPERATIONS}
    moving = bytearray(len(program) + 1)  # the last is the operand that a node does not have
    first, second, others = program.operand_pairs()
    for node, op in enumerate(program.op.tolist()):
        if op in leaves:
            moving[node] = op not in still
        elif node in others:
            moving[node] = any(moving[operand] for operand in others[node])
        else:
            moving[node] = moving[first[node]] | moving[second[node]]
    return np.frombuffer(moving, dtype=np.uint8)[:-1].astype(bool)
