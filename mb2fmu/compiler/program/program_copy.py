"""Copy a program into a builder, so that more can be added to it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable

import numpy as np

from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.program_result_dependencies import VariableGroup
from mb2fmu.compiler.program.scalar_program import EquationSolveBlock, Op, ScalarProgram

LEAF_GROUPS: dict[Op, VariableGroup] = {
    Op.TIME: "time",
    Op.STATE: "states",
    Op.INPUT: "inputs",
    Op.PARAMETER: "parameters",
    Op.MEMORY: "memory",
    Op.SEED: "seeds",
}


_ARITHMETIC_OPERATIONS = frozenset(map(int, (Op.ADD, Op.SUB, Op.MUL, Op.DIV)))  # a member of Op takes long to look up


class CopiedProgramNodes:
    """The nodes and entry points of a program in a builder.

    Args:
        program: Any.
        builder: Takes the nodes; its layout begins like the program's.
        entries: Names of the entry points that are declared too; None: all.

    Attributes:
        program: As given.
        builder: As given.
        node: Node of the program → node of the builder.
        factor: Factor block of the program → factor block of the builder.
        solution: Solve or Newton block of the program → its results in the builder.
    """

    def __init__(self, program: ScalarProgram, builder: ProgramBuilder, entries: Iterable[str] | None = None) -> None:
        self.program = program
        self.builder = builder
        self.node: list[int] = []
        self.factor: dict[int, int] = {}
        self.solution: dict[int, list[int]] = {}
        solutions = None if len(builder) else _find_complete_solutions(program)
        if solutions is None:
            self._copy_nodes()
        else:
            builder.adopt_program(program)
            self.node += range(len(program))
            self.solution |= solutions
            self.factor |= {block.factor: block.factor for block in program.blocks if block.kind == "solve"}
        for system in program.systems:
            builder.record_linear_system(system.renumber_nodes(self.node))
        for name in program.entries if entries is None else entries:
            entry = program.entries[name]
            builder.entry(name, entry.labels, [self.node[result] for result in entry.results])

    def _copy_nodes(self) -> None:
        """Copy all nodes in order: operands before the nodes that read them."""
        self._op: list[int] = self.program.op.tolist()
        self._operands = self.program.all_operands()
        for node in range(len(self.program)):
            self.node.append(self._copied(node))

    def _copied(self, node: int) -> int:  # noqa: PLR0911 (one kind of node after the other)
        """Build the copy of one node from the copies of its operands; the builder folds and shares it again."""
        program, b = self.program, self.builder
        op, operands = self._op[node], self._operands[node]
        if op in _ARITHMETIC_OPERATIONS:  # nearly all of them
            return b.binary(op, self.node[operands[0]], self.node[operands[1]])
        op, index = Op(op), int(program.a[node])
        if op is Op.CONSTANT:
            return b.constant(float(program.constants[index]))
        if op in LEAF_GROUPS:
            return self._leaf(op, index)
        if op is Op.BLOCK:
            return self._solved(index)[int(program.b[node])]
        if op is Op.TABLE:
            return b.table(program.tables[index], int(program.b[node]), self.node[int(program.c[node])])
        nodes = [self.node[operand] for operand in operands]
        if op is Op.SELECT:
            return b.select(*nodes)
        return b.unary(op, nodes[0]) if len(nodes) == 1 else b.binary(op, nodes[0], nodes[1])

    def _leaf(self, op: Op, index: int) -> int:
        """Return the builder's node for a variable: time, state, input, parameter, memory or seed."""
        b = self.builder
        if op is Op.TIME:
            return b.time()
        make = {Op.STATE: b.state, Op.INPUT: b.input, Op.PARAMETER: b.parameter, Op.MEMORY: b.memory, Op.SEED: b.seed}
        return make[op](index)

    def _solved(self, index: int) -> list[int]:
        """Return the nodes of a block's solution in the copy; copy a factorization once for all its solves."""
        if index in self.solution:
            return self.solution[index]
        b = self.builder
        block = self.program.blocks[index]
        if block.kind == "newton":
            self.solution[index] = self._newton(block)
            return self.solution[index]
        if block.factor not in self.factor:
            old = self.program.blocks[block.factor]
            operands = tuple(self.node[node] for node in old.operands)
            self.factor[block.factor] = b.block(dataclasses.replace(old, operands=operands))
        right = [self.node[node] for node in block.operands]
        self.solution[index] = b.solution(self.factor[block.factor], right)
        return self.solution[index]

    def _newton(self, block: EquationSolveBlock) -> list[int]:
        """Copy a Newton block: its parameters theta, the guesses, and the body as it is."""
        nodes = [self.node[node] for node in block.operands]
        theta, guess = nodes[: -block.size], nodes[-block.size :]
        return self.builder.newton(self.program.bodies[block.body], theta, guess, block.name, block.rows)


def _find_complete_solutions(program: ScalarProgram) -> dict[int, list[int]] | None:
    """Return the nodes of the results of each solve or Newton block; None if a copy would number anything anew.

    It would where results that nothing reads have no nodes, as they may be asked for, and where blocks or bodies do not
    stand in the order of the nodes that read them.
    """
    solutions: dict[int, list[int]] = {}
    blocks: dict[int, None] = {}
    for node in np.flatnonzero(program.op == Op.BLOCK).tolist():
        index, place = int(program.a[node]), int(program.b[node])
        found = solutions.setdefault(index, [])
        if place != len(found) or (found and node != found[-1] + 1):
            return None
        found.append(node)
        blocks |= dict.fromkeys(i for i in (program.blocks[index].factor, index) if i >= 0)
    bodies = dict.fromkeys(program.blocks[i].body for i in blocks if program.blocks[i].body >= 0)
    are_in_order = [*blocks] == [*range(len(program.blocks))] and [*bodies] == [*range(len(program.bodies))]
    is_complete = all(len(found) == program.blocks[index].size for index, found in solutions.items())
    return solutions if are_in_order and is_complete else None


def find_factor_entry_row_and_column(factor: EquationSolveBlock, position: int) -> tuple[int, int]:
    """Return row and column of an operand of a factor block."""
    if factor.kind == "lu_factor":
        return divmod(position, factor.size)
    row = (math.isqrt(8 * position + 1) - 1) // 2
    return row, position - row * (row + 1) // 2
