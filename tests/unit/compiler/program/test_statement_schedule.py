"""What depends on what in a program, by both searches: small graphs in Python, large ones by SciPy."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from mb2fmu.compiler.program import statement_schedule
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.scalar_program import (
    LEAF_OPERATIONS,
    EquationSolveBlock,
    Op,
    ProgramVariableLayout,
    ScalarProgram,
)
from mb2fmu.compiler.program.statement_schedule import MAX_EDGES_WITHOUT_SCIPY, StatementScheduleGraph


def random_program(seed: int, operations: int, *, blocks: bool) -> ScalarProgram:
    """Operations of two operands each, on what comes before; with blocks, a linear system now and then."""
    random = np.random.default_rng(seed)
    b = ProgramBuilder(ProgramVariableLayout(states=("x", "y", "z"), parameters=("p", "q")))
    nodes = [*(b.state(i) for i in range(3)), *(b.parameter(i) for i in range(2))]
    while len(nodes) < 5 + operations:
        left, right = (nodes[i] for i in random.integers(max(0, len(nodes) - 40), len(nodes), 2))
        if blocks and random.random() < 0.05:
            factor = b.block(
                EquationSolveBlock("lu_factor", 2, (left, nodes[0], nodes[1], right), name=f"{len(nodes)}")
            )
            new = b.solution(factor, [nodes[2], left])
        else:
            new = [b.binary(Op.ATAN2, left, right)]
        nodes += [node for node in new if node not in nodes[-50:]]
    b.entry("rhs", ("last",), nodes[-1:])
    return b.build()


def operands(program: ScalarProgram, node: int) -> list[int]:
    """What a node reads."""
    op = Op(int(program.op[node]))
    if op in LEAF_OPERATIONS:
        return []
    if op is Op.BLOCK:
        return list(program.block_operands(int(program.a[node])))
    return [int(program.a[node]), int(program.b[node])]


def walk(program: ScalarProgram, result: int, given: np.ndarray) -> set[int]:
    """Given nodes that a result needs, one node after the other."""
    reached, waiting = {result}, [result]
    while waiting:
        node = waiting.pop()
        new = set() if given[node] else set(operands(program, node)) - reached
        reached |= new
        waiting += new
    return {node for node in reached if given[node] and Op(int(program.op[node])) not in LEAF_OPERATIONS}


def parameter_only(program: ScalarProgram) -> list[bool]:
    """Whether each node depends on parameters only; operands come before what reads them."""
    found: list[bool] = []
    for node in range(len(program)):
        op = Op(int(program.op[node]))
        if op in LEAF_OPERATIONS:
            found.append(op in (Op.PARAMETER, Op.CONSTANT))
        else:
            found.append(all(found[each] for each in operands(program, node)))
    return found


def check(program: ScalarProgram, seed: int) -> None:
    """Compare with a walk from node to node, which shares nothing with either search."""
    graph, random = StatementScheduleGraph(program), np.random.default_rng(seed)
    assert graph.parameter_only_mask.tolist() == parameter_only(program)
    for _ in range(3):
        given = random.random(len(program)) < 0.1
        result = int(random.integers(len(program) // 2, len(program)))
        assert graph.boundary_nodes([result], given) == walk(program, result, given)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("limit", [0, MAX_EDGES_WITHOUT_SCIPY])
def test_both_searches_find_what_is_needed(seed: int, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statement_schedule, "MAX_EDGES_WITHOUT_SCIPY", limit)
    if limit:
        monkeypatch.setitem(sys.modules, "scipy.sparse", None)  # it cannot be imported
    check(random_program(seed, 200, blocks=True), seed)


@pytest.mark.parametrize("more", [0, 1])
def test_they_agree_where_one_takes_over(more: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statement_schedule, "MAX_EDGES_WITHOUT_SCIPY", 4_000)
    check(random_program(more, 2_000 + more, blocks=False), more)
