"""Copies of programs."""

from __future__ import annotations

import numpy as np

from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.program_copy import CopiedProgramNodes
from mb2fmu.compiler.program.program_pruning import prune_program
from mb2fmu.compiler.program.scalar_program import EquationSolveBlock, Op, ProgramVariableLayout


def program_with_blocks(read):
    """Two solves with one factorization; of each, results are read."""
    builder = ProgramBuilder(ProgramVariableLayout(states=("a", "b", "c")))
    a, b, c = (builder.state(i) for i in range(3))
    factor = builder.block(EquationSolveBlock("ldlt_factor", 2, (a, builder.unary(Op.SIN, b), c), name="M"))
    first = builder.solution(factor, [c, builder.mul(a, b)])
    second = builder.solution(factor, [first[0], builder.mul(first[1], c)])
    builder.entry("rhs", [f"x{i}" for i in read], [builder.mul(a, second[i]) for i in read])
    return builder.build()


def test_a_copy_has_the_numbers_of_its_program():
    program = program_with_blocks((0, 1))
    builder = ProgramBuilder(program.layout)
    copy = CopiedProgramNodes(program, builder)
    assert copy.node == list(range(len(program)))
    copied = builder.build()
    for name in ("op", "a", "b", "c", "constants"):
        assert np.array_equal(getattr(copied, name), getattr(program, name)), name
    assert (copied.blocks, copied.entries) == (program.blocks, program.entries)
    # What is known stays known: it is found again, and results of blocks are no numbers.
    solution = builder.solution(copy.factor[0], [copy.node[i] for i in program.blocks[1].operands])
    assert solution == copy.solution[1]
    assert {builder.variability_rank(node) for node in solution} == {2}


def test_results_that_nothing_reads_have_nodes_in_a_copy():
    program = prune_program(program_with_blocks((0,)))
    copy = CopiedProgramNodes(program, ProgramBuilder(program.layout))
    assert [len(nodes) for nodes in copy.solution.values()] == [2, 2]
