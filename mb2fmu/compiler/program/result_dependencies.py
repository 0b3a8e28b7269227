"""Dependencies of an entry point's results on variables, their kinds, and the number of operations.

Dependence is what the graph reads, whatever the values, less what is validated to cancel (see
``cancelled_dependencies``). A set of variables is one integer, used as a row of bits, so that thousands of results cost
little. Results of a block depend on all that the block reads.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal, NamedTuple

import numpy as np

from mb2fmu.compiler.program.cancelled_dependencies import find_actual_dependencies
from mb2fmu.compiler.program.program import LEAF_OPERATIONS, Entry, Op, Program
from mb2fmu.compiler.program.reachable_nodes import find_needed_nodes

VariableGroup = Literal["time", "states", "inputs", "parameters", "memory", "seeds"]

_LEAF_GROUPS: dict[Op, VariableGroup] = {
    Op.TIME: "time",
    Op.STATE: "states",
    Op.INPUT: "inputs",
    Op.PARAMETER: "parameters",
    Op.MEMORY: "memory",
    Op.SEED: "seeds",
}
_GROUP_OPERATIONS = {group: op for op, group in _LEAF_GROUPS.items()}

_ARITHMETIC_OPERATIONS = frozenset(map(int, (Op.ADD, Op.SUB, Op.MUL, Op.DIV)))  # a member of Op takes long to look up


class DependencyKind(IntEnum):
    """How a result depends on a variable, simplest kind first; names as in FMI's ``dependenciesKind``."""

    CONSTANT = 0  # linear, with a factor that is a number
    FIXED = 1  # linear, with a factor of fixed parameters
    TUNABLE = 2  # linear, with a factor of parameters
    DEPENDENT = 3  # in any way


@dataclass(frozen=True, slots=True)
class ResultDependency:
    """One result depends on one variable.

    Attributes:
        group: Which of the program's inputs.
        index: Which of the group.
        kind: How.
    """

    group: VariableGroup
    index: int
    kind: DependencyKind


class _VariableSets(NamedTuple):
    """Sets of variables as bits: all that a node depends on, and for each kind those with no simpler one.

    A tuple, because one is made for nearly every node.
    """

    any: int = 0
    fixed: int = 0
    tunable: int = 0
    dependent: int = 0

    def __or__(self, other: _VariableSets) -> _VariableSets:
        """Return the union of both, kind by kind."""
        return _VariableSets(
            self.any | other.any,
            self.fixed | other.fixed,
            self.tunable | other.tunable,
            self.dependent | other.dependent,
        )

    def at_least(self, kind: DependencyKind) -> _VariableSets:
        """Return the same variables, each with at least this kind of dependence."""
        every = self.any
        return _VariableSets(
            every,
            every if kind >= DependencyKind.FIXED else self.fixed,
            every if kind >= DependencyKind.TUNABLE else self.tunable,
            every if kind >= DependencyKind.DEPENDENT else self.dependent,
        )


def find_dependencies(
    program: Program, entry: str, fixed_parameters: Iterable[int] = ()
) -> tuple[tuple[ResultDependency, ...], ...]:
    """Return the dependencies of each result of an entry point, ordered by group and index.

    Args:
        program: Any.
        entry: Name of the entry point.
        fixed_parameters: Indices of the parameters that are fixed; the others are tunable.
    """
    return find_all_dependencies(program, (entry,), fixed_parameters)[entry]


def find_all_dependencies(
    program: Program, entries: Sequence[str], fixed_parameters: Iterable[int] = ()
) -> dict[str, tuple[tuple[ResultDependency, ...], ...]]:
    """Return :func:`find_dependencies` of several entry points in one pass; equal results share one tuple.

    Args:
        program: Any.
        entries: Names of entry points.
        fixed_parameters: Indices of the parameters that are fixed; the others are tunable.
    """
    bits = _DependencyPropagation(program, fixed_parameters)
    reads = bits.of(node for entry in entries for node in program.entries[entry].results)
    found: dict[str, tuple[tuple[ResultDependency, ...], ...]] = {}
    for entry in entries:
        results = program.entries[entry].results
        union = _unite_variable_sets(reads[node] for node in results).any
        read = [variable for i, variable in enumerate(bits.variables) if union >> i & 1]
        column = {variable: i for i, variable in enumerate(read)}
        rows = find_actual_dependencies(program, results, [(_GROUP_OPERATIONS[group], index) for group, index in read])
        keys = [(reads[node], row.tobytes()) for node, row in zip(results, rows, strict=True)]
        lists: dict[tuple[_VariableSets, bytes], tuple[ResultDependency, ...]] = {}
        for key, row in zip(keys, rows, strict=True):
            if key not in lists:
                lists[key] = tuple(each for each in bits.named(key[0]) if row[column[each.group, each.index]])
        found[entry] = tuple(lists[key] for key in keys)
    return found


class _DependencyPropagation:
    """Numbers the variables and propagates sets of them through the graph."""

    def __init__(self, program: Program, fixed_parameters: Iterable[int]) -> None:
        layout = program.layout
        sizes = {
            "time": 1,
            "states": len(layout.states),
            "inputs": len(layout.inputs),
            "parameters": len(layout.parameters),
            "memory": len(layout.memory),
            "seeds": len(layout.seeds),
        }
        self._program = program
        self._first: dict[str, int] = {}
        self.variables: list[tuple[VariableGroup, int]] = []
        for group in _LEAF_GROUPS.values():
            self._first[group] = len(self.variables)
            self.variables += [(group, i) for i in range(sizes[group])]
        start = self._first["parameters"]
        self._parameters = ((1 << sizes["parameters"]) - 1) << start
        self._fixed = sum(1 << (start + i) for i in set(fixed_parameters))

    def of(self, results: Iterable[int]) -> dict[int, _VariableSets]:
        """Return the dependencies of each node that the results need."""
        program = self._program
        reads: dict[int, _VariableSets] = {}
        blocks: dict[int, _VariableSets] = {}
        nodes, _ = find_needed_nodes(program, results)
        first, second, others = program.pairs()
        ops = program.op.tolist()
        for node in np.flatnonzero(nodes).tolist():
            if ops[node] in _ARITHMETIC_OPERATIONS:  # nearly all
                reads[node] = self._arithmetic(ops[node], reads[first[node]], reads[second[node]])
                continue
            op = Op(ops[node])
            if op in LEAF_OPERATIONS:
                bit = 0 if op is Op.CONSTANT else 1 << (self._first[_LEAF_GROUPS[op]] + int(program.a[node]))
                reads[node] = _VariableSets(bit)
            elif op is Op.BLOCK:
                block = int(program.a[node])
                if block not in blocks:
                    blocks[block] = self._block(block, reads)
                reads[node] = blocks[block]
            else:
                read = others[node] if node in others else [i for i in (first[node], second[node]) if i >= 0]
                reads[node] = self._node(op, [reads[operand] for operand in read])
        return reads

    def _factor(self, reads: _VariableSets) -> DependencyKind:
        """Return the kind of dependence through a factor that reads these variables."""
        if not reads.any:
            return DependencyKind.CONSTANT
        if not reads.any & ~self._fixed:
            return DependencyKind.FIXED
        return DependencyKind.TUNABLE if not reads.any & ~self._parameters else DependencyKind.DEPENDENT

    def _arithmetic(self, op: int, x: _VariableSets, y: _VariableSets) -> _VariableSets:
        """Return the reads of x + y, x − y, x·y or x/y."""
        if x.dependent == x.any and y.dependent == y.any:  # so does the result: nothing else is to be found out
            every = x.any | y.any
            if every == x.any:
                return x
            return y if every == y.any else _VariableSets(every, every, every, every)
        if op == Op.MUL:
            product = x.at_least(self._factor(y)) | y.at_least(self._factor(x))
            both = x.any & y.any
            return _VariableSets(product.any, product.fixed | both, product.tunable | both, product.dependent | both)
        return self._linear(x, y) if op == Op.DIV else x | y

    def _node(self, op: Op, operands: list[_VariableSets]) -> _VariableSets:
        """Return the reads of a node: linear in the branches of a selection, no better than dependent elsewhere."""
        if op is Op.NEG:
            return operands[0]
        if op is Op.SELECT:
            return self._linear(operands[1] | operands[2], operands[0])
        return _unite_variable_sets(operands).at_least(DependencyKind.DEPENDENT)

    def _linear(self, linear: _VariableSets, factor: _VariableSets) -> _VariableSets:
        """Return reads of a product: linear in some variables, with a factor of others; common ones are dependent."""
        return linear.at_least(self._factor(factor)) | factor.at_least(DependencyKind.DEPENDENT)

    def _block(self, index: int, reads: dict[int, _VariableSets]) -> _VariableSets:
        """Return the reads of a block's solution: linear in the right side, ``dependent`` on matrix and body."""
        block = self._program.blocks[index]
        if block.kind == "newton":
            return _unite_variable_sets(reads[node] for node in block.operands).at_least(DependencyKind.DEPENDENT)
        factor = self._program.blocks[block.factor]
        return self._linear(
            _unite_variable_sets(reads[node] for node in block.operands),
            _unite_variable_sets(reads[node] for node in factor.operands),
        )

    def named(self, reads: _VariableSets) -> Iterator[ResultDependency]:
        """Yield the variables of a set."""
        rest = reads.any
        while rest:
            bit = rest & -rest
            rest ^= bit
            kind = DependencyKind.CONSTANT
            for stronger, members in ((1, reads.fixed), (2, reads.tunable), (3, reads.dependent)):
                if members & bit:
                    kind = DependencyKind(stronger)
            group, index = self.variables[bit.bit_length() - 1]
            yield ResultDependency(group, index, kind)


def _unite_variable_sets(several: Iterable[_VariableSets]) -> _VariableSets:
    """Return everything that several results read, each variable with its strongest kind."""
    result = _VariableSets()
    for reads in several:
        result |= reads
    return result


def count_operations(program: Program, entry: str) -> Counter[str]:
    """Count the operations of an entry point by kind (names of ``Op``), those inside of blocks included.

    Pivot searches and row exchanges are not counted; of Newton's method one iteration is.
    """
    nodes, blocks = find_needed_nodes(program, program.entries[entry].results)
    counts: Counter[str] = Counter()
    for op, number in zip(*np.unique(program.op[nodes], return_counts=True), strict=True):
        if Op(int(op)) not in LEAF_OPERATIONS | {Op.BLOCK, Op.FROZEN}:
            counts[Op(int(op)).name] += int(number)
    for index in np.flatnonzero(blocks):
        block = program.blocks[index]
        if block.kind == "newton":
            counts.update(_count_newton_operations(program.bodies[block.body]))
        else:
            counts.update(count_block_operations(block.kind, block.size))
    return Counter({name: counts[name] for name in sorted(counts) if counts[name]})


def _count_newton_operations(body: Program) -> Counter[str]:
    """Count the operations of one Newton iteration by kind: residual and step, shared nodes once."""
    results = (*body.entries["residual"].results, *body.entries["step"].results)
    once = dataclasses.replace(body, entries={"once": Entry("once", tuple(map(str, results)), results)})
    return count_operations(once, "once")


def count_block_operations(kind: str, n: int) -> dict[str, int]:
    """Return the operations of a block of size n, by kind."""
    pairs, triples = n * (n - 1) // 2, n * (n - 1) * (n - 2) // 6
    if kind == "ldlt_factor":
        return {"MUL": triples + pairs, "SUB": triples + pairs, "DIV": pairs}
    if kind == "least_norm_factor":  # Jacobi's method: three sweeps, as a guess
        rotations = 3 * pairs
        return {"MUL": 8 * n * rotations, "ADD": 2 * n * rotations, "SUB": 2 * n * rotations, "SQRT": 2 * rotations}
    if kind == "lu_factor":
        inner = sum(k * k for k in range(n))
        return {"MUL": inner, "SUB": inner, "DIV": pairs}
    return {"MUL": 2 * pairs, "SUB": 2 * pairs, "DIV": n}
