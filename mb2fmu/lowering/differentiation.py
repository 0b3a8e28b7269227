"""Derivatives of entry points, forward: as other entry points of a new Program.

Every node carries the derivatives that are not zero, by direction. Each elementary operation follows the chain rule;
a linear solve A X = B follows from the implicit function theorem, dX = A⁻¹ (dB − dA X), with the factors of A that
are there already. Where an operation has a kink (Abs, Min, Max, selections) the derivative is that of the branch
taken; jumps (sign, floor) have derivative 0.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mb2fmu.lowering.builder import ProgramBuilder
from mb2fmu.lowering.dependencies import Group
from mb2fmu.lowering.passes.prune import prune
from mb2fmu.lowering.program import Block, Op, Program

ALL: tuple[Group, ...] = ("states", "inputs", "parameters", "time")

_LEAF_GROUP: dict[Op, Group] = {
    Op.TIME: "time",
    Op.STATE: "states",
    Op.INPUT: "inputs",
    Op.PARAMETER: "parameters",
    Op.MEMORY: "memory",
    Op.SEED: "seeds",
}
_FLAT = frozenset({Op.SIGN, Op.FLOOR, Op.CEIL, Op.LT, Op.LE, Op.EQ, Op.NOT, Op.AND, Op.OR})

Tangent = dict[int, int]  # direction → node


@dataclass(frozen=True, slots=True)
class Jacobian:
    """A sparse Jacobian as an entry point.

    Attributes:
        program: Has the entry point ``jacobian_<entry>``, whose results are the entries that are not zero, row by row.
        entry: Its name.
        shape: (results, variables).
        rows: Of each entry, shape (n_nonzero,).
        columns: Of each entry, shape (n_nonzero,).
    """

    program: Program
    entry: str
    shape: tuple[int, int]
    rows: npt.NDArray[np.intp]
    columns: npt.NDArray[np.intp]


def differentiate_forward(program: Program, entry: str, with_respect_to: Sequence[Group] = ALL) -> Program:
    """The program with one more entry point, ``jvp_<entry>``: derivatives of its results in a direction.

    Args:
        program: Any.
        entry: Name of the entry point to differentiate.
        with_respect_to: Groups of variables; the direction has one seed per variable, group after group, appended to
            the seeds that the program has.

    Returns:
        A program whose ``layout.seeds`` end with ``d <variable>``.
    """
    variables = _variables(program, with_respect_to)
    first = len(program.layout.seeds)
    seeds = (*program.layout.seeds, *(f"d {name}" for name, _ in variables))
    builder = ProgramBuilder(dataclasses.replace(program.layout, seeds=seeds))
    tangents = {leaf: {0: builder.seed(first + i)} for i, (_, leaf) in enumerate(variables)}
    copy = _Differentiation(program, builder, tangents)
    old = program.entries[entry]
    zero = builder.constant(0.0)
    builder.entry(f"jvp_{entry}", old.labels, [copy.tangent(node).get(0, zero) for node in old.results])
    return prune(builder.build())


def jacobian(program: Program, entry: str, with_respect_to: Sequence[Group]) -> Jacobian:
    """The derivatives of all results of an entry point with respect to all variables of some groups.

    Args:
        program: Any.
        entry: Name of the entry point.
        with_respect_to: Groups of variables; columns are in their order.
    """
    variables = _variables(program, with_respect_to)
    builder = ProgramBuilder(program.layout)
    one = builder.constant(1.0)
    copy = _Differentiation(program, builder, {leaf: {i: one} for i, (_, leaf) in enumerate(variables)})
    old = program.entries[entry]
    found = [(i, j, node) for i, result in enumerate(old.results) for j, node in sorted(copy.tangent(result).items())]
    labels = [f"d {old.labels[i]} / d {variables[j][0]}" for i, j, _ in found]
    name = f"jacobian_{entry}"
    builder.entry(name, labels, [node for _, _, node in found])
    return Jacobian(
        program=prune(builder.build()),
        entry=name,
        shape=(len(old.results), len(variables)),
        rows=np.array([i for i, _, _ in found], dtype=np.intp),
        columns=np.array([j for _, j, _ in found], dtype=np.intp),
    )


def _variables(program: Program, groups: Iterable[Group]) -> list[tuple[str, tuple[Group, int]]]:
    """Names and places of the variables of some groups."""
    layout = program.layout
    names: dict[Group, tuple[str, ...]] = {
        "time": ("time",),
        "states": layout.states,
        "inputs": layout.inputs,
        "parameters": layout.parameters,
        "memory": layout.memory,
        "seeds": layout.seeds,
    }
    return [(name, (group, i)) for group in groups for i, name in enumerate(names[group])]


class _Differentiation:
    """Copies a program into a builder, its entry points included, and carries tangents along."""

    def __init__(self, program: Program, builder: ProgramBuilder, tangents: dict[tuple[Group, int], Tangent]) -> None:
        self._program = program
        self._builder = builder
        self._leaf_tangents = tangents
        self._node: list[int] = []
        self._tangent: list[Tangent] = []
        self._factors: dict[int, int] = {}
        self._solutions: dict[int, list[int]] = {}
        self._solution_tangents: dict[int, list[Tangent]] = {}
        for node in range(len(program)):
            self._copy(node)
        for entry in program.entries.values():
            builder.entry(entry.name, entry.labels, [self._node[result] for result in entry.results])

    def tangent(self, node: int) -> Tangent:
        """Derivatives of a node of the program that are not zero."""
        return self._tangent[node]

    def _copy(self, node: int) -> None:
        program, b = self._program, self._builder
        op = Op(int(program.op[node]))
        index = int(program.a[node])
        if op is Op.CONSTANT:
            self._append(b.constant(float(program.constants[index])), {})
        elif op in _LEAF_GROUP:
            make = {Op.STATE: b.state, Op.INPUT: b.input, Op.PARAMETER: b.parameter, Op.MEMORY: b.memory}
            make[Op.SEED] = b.seed
            copied = b.time() if op is Op.TIME else make[op](index)
            self._append(copied, self._leaf_tangents.get((_LEAF_GROUP[op], index), {}))
        elif op is Op.BLOCK:
            self._copy_block(index)
            result = int(program.b[node])
            self._append(self._solutions[index][result], self._solution_tangents[index][result])
        elif op is Op.TABLE:
            self._copy_table(node)
        else:
            self._copy_operation(op, program.operands(node))

    def _append(self, node: int, tangent: Tangent) -> None:
        self._node.append(node)
        self._tangent.append({i: d for i, d in tangent.items() if not self._builder.is_zero(d)})

    # --- operations --------------------------------------------------------------------------------------------------

    def _copy_operation(self, op: Op, operands: tuple[int, ...]) -> None:
        b = self._builder
        nodes = [self._node[operand] for operand in operands]
        tangents = [self._tangent[operand] for operand in operands]
        if op is Op.SELECT:
            value = b.select(*nodes)
        elif len(nodes) == 1:
            value = b.unary(op, nodes[0])
        else:
            value = b.binary(op, nodes[0], nodes[1])
        if op in _FLAT or not any(tangents):
            self._append(value, {})
            return
        self._append(value, self._rule(op, nodes, tangents, value))

    def _rule(self, op: Op, nodes: list[int], tangents: list[Tangent], value: int) -> Tangent:
        b, zero = self._builder, self._builder.constant(0.0)
        directions = sorted(set().union(*tangents))
        if op is Op.SELECT:
            return {i: b.select(nodes[0], tangents[1].get(i, zero), tangents[2].get(i, zero)) for i in directions}
        if op in {Op.ADD, Op.SUB}:
            return {i: b.binary(op, tangents[0].get(i, zero), tangents[1].get(i, zero)) for i in directions}
        if op in {Op.MIN, Op.MAX}:
            first = b.binary(Op.LT, *(nodes if op is Op.MIN else nodes[::-1]))
            return {i: b.select(first, tangents[0].get(i, zero), tangents[1].get(i, zero)) for i in directions}
        if op is Op.DIV:  # d(a/b) = (da − (a/b) db)/b
            return {
                i: b.div(b.sub(tangents[0].get(i, zero), b.mul(value, tangents[1].get(i, zero))), nodes[1])
                for i in directions
            }
        partials = [self._partial(op, nodes, value, k) if tangent else zero for k, tangent in enumerate(tangents)]
        return {
            i: b.sum(
                b.mul(partial, tangent[i]) for partial, tangent in zip(partials, tangents, strict=True) if i in tangent
            )
            for i in directions
        }

    def _partial(self, op: Op, nodes: list[int], value: int, k: int) -> int:
        """The derivative of an operation with respect to its operand k."""
        b = self._builder
        x = nodes[0]
        if op is Op.MUL:
            return nodes[1 - k]
        if op is Op.POW:
            if k == 1:
                return b.mul(value, b.unary(Op.LOG, x))
            return b.mul(nodes[1], b.power(x, b.sub(nodes[1], b.constant(1.0))))
        if op is Op.ATAN2:
            squares = b.add(b.mul(nodes[0], nodes[0]), b.mul(nodes[1], nodes[1]))
            return b.div(nodes[1], squares) if k == 0 else b.neg(b.div(nodes[0], squares))
        return self._slope(op, x, value)

    def _slope(self, op: Op, x: int, value: int) -> int:
        """The derivative of a function of one argument."""
        b = self._builder
        one = b.constant(1.0)
        square = b.mul(x, x) if op in _WITH_SQUARE else -1
        value_square = b.mul(value, value) if op in {Op.TAN, Op.TANH} else -1
        slopes = {
            Op.NEG: lambda: b.constant(-1.0),
            Op.SQRT: lambda: b.div(b.constant(0.5), value),
            Op.EXP: lambda: value,
            Op.LOG: lambda: b.div(one, x),
            Op.SIN: lambda: b.unary(Op.COS, x),
            Op.COS: lambda: b.neg(b.unary(Op.SIN, x)),
            Op.TAN: lambda: b.add(one, value_square),
            Op.ASIN: lambda: b.div(one, b.unary(Op.SQRT, b.sub(one, square))),
            Op.ACOS: lambda: b.neg(b.div(one, b.unary(Op.SQRT, b.sub(one, square)))),
            Op.ATAN: lambda: b.div(one, b.add(one, square)),
            Op.SINH: lambda: b.unary(Op.COSH, x),
            Op.COSH: lambda: b.unary(Op.SINH, x),
            Op.TANH: lambda: b.sub(one, value_square),
            Op.ASINH: lambda: b.div(one, b.unary(Op.SQRT, b.add(square, one))),
            Op.ACOSH: lambda: b.div(one, b.unary(Op.SQRT, b.sub(square, one))),
            Op.ATANH: lambda: b.div(one, b.sub(one, square)),
            Op.ABS: lambda: b.unary(Op.SIGN, x),
            Op.ERF: lambda: b.mul(b.constant(2.0 / math.sqrt(math.pi)), b.unary(Op.EXP, b.neg(square))),
        }
        return slopes[op]()

    def _copy_table(self, node: int) -> None:
        program, b = self._program, self._builder
        table, order, operand = program.tables[program.a[node]], int(program.b[node]), int(program.c[node])
        x = self._node[operand]
        slope = b.table(table, order + 1, x)
        self._append(b.table(table, order, x), {i: b.mul(slope, d) for i, d in self._tangent[operand].items()})

    # --- linear solves -----------------------------------------------------------------------------------------------

    def _copy_block(self, index: int) -> None:
        if index in self._solutions:
            return
        b = self._builder
        block = self._program.blocks[index]
        old = self._program.blocks[block.factor]
        if block.factor not in self._factors:
            operands = tuple(self._node[node] for node in old.operands)
            self._factors[block.factor] = b.block(Block(old.kind, old.size, operands, name=old.name))
        factor = self._factors[block.factor]
        x = b.solution(factor, [self._node[node] for node in block.operands])
        self._solutions[index] = x
        self._solution_tangents[index] = self._implicit(old, block, factor, x)

    def _implicit(self, old: Block, block: Block, factor: int, x: list[int]) -> list[Tangent]:
        """dX = A⁻¹ (dB − dA X), one solve per direction."""
        b, n, zero = self._builder, old.size, self._builder.constant(0.0)
        right = [self._tangent[node] for node in block.operands]
        matrix = [self._tangent[node] for node in old.operands]
        result: list[Tangent] = [{} for _ in range(n)]
        for direction in sorted(set().union(*right, *matrix)):
            products: list[list[int]] = [[] for _ in range(n)]
            for position, tangent in enumerate(matrix):
                if direction not in tangent:
                    continue
                i, j = _place(old, position)
                products[i].append(b.mul(tangent[direction], x[j]))
                if old.kind == "ldlt_factor" and i != j:
                    products[j].append(b.mul(tangent[direction], x[i]))
            residual = [b.sum([right[i].get(direction, zero)], products[i]) for i in range(n)]
            for i, node in enumerate(b.solution(factor, residual)):
                if not b.is_zero(node):
                    result[i][direction] = node
        return result


_WITH_SQUARE = frozenset({Op.ASIN, Op.ACOS, Op.ATAN, Op.ASINH, Op.ACOSH, Op.ATANH, Op.ERF})


def _place(factor: Block, position: int) -> tuple[int, int]:
    """Row and column of an operand of a factor block."""
    if factor.kind == "lu_factor":
        return divmod(position, factor.size)
    row = (math.isqrt(8 * position + 1) - 1) // 2
    return row, position - row * (row + 1) // 2
