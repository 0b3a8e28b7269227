"""Program: one hash-consed scalar graph with named entry points, stored as arrays, built once, never changed.

Node ids grow: an operand has a smaller id than the node that uses it. Inputs are nodes too (``Op.TIME``, ``Op.STATE``,
and so on), with their index in operand ``a``. Block statements (linear solves, Newton's method) read nodes and are read
through ``Op.BLOCK`` nodes (``a`` = block, ``b`` = which of its results).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from mb2fmu.model.scalar_operation_table import LEAF_OPERATIONS, OPERATIONS, Op, find_operations_by_attribute

__all__ = [
    "BINARY_OPERATIONS",
    "LEAF_OPERATIONS",
    "TERNARY_OPERATIONS",
    "UNARY_OPERATIONS",
    "EquationSolveBlock",
    "Op",
    "PiecewisePolynomial",
    "ProgramEntryPoint",
    "ProgramVariableLayout",
    "ScalarProgram",
    "ScalarizedLinearSystem",
    "find_domain_restricted_nodes",
    "read_constant_entry_point_results",
    "read_initial_discrete_memory",
]  # fmt: skip


UNARY_OPERATIONS = find_operations_by_attribute(lambda row: row.arity == 1)
BINARY_OPERATIONS = find_operations_by_attribute(lambda row: row.arity == 2)
TERNARY_OPERATIONS = find_operations_by_attribute(lambda row: row.arity == 3)

_ARITY_TABLE, _ARITY_BLOCK = 4, 5
_OPERATION_ARITY = np.array(
    [
        OPERATIONS[op].arity if op in OPERATIONS else {Op.TABLE: _ARITY_TABLE, Op.BLOCK: _ARITY_BLOCK}.get(op, 0)
        for op in Op
    ]
)


@dataclass(frozen=True, slots=True)
class ProgramVariableLayout:
    """Names of the variables that entry points read beside time; x = (q, independent u, z)."""

    states: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    memory: tuple[str, ...] = ()
    seeds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EquationSolveBlock:
    """A linear algebra statement, or a nonlinear system.

    Attributes:
        kind: ``lu_factor`` (pivoted), ``ldlt_factor`` (symmetric positive definite, lower triangle row by row),
            ``least_norm_factor`` (symmetric positive semidefinite, lower triangle row by row; solutions are those of
            least norm, see ``rank``), ``solve`` (with the factors of block ``factor``; ``operands`` are the right-hand
            side), ``newton`` (unknowns y with F(y, theta) = 0; ``operands`` are theta, then the guess of y; see
            :class:`ScalarProgram` for ``body``).
        size: n of the n × n matrix, or the number of unknowns.
        operands: Node ids.
        factor: For ``solve``: the index of its factor block; -1 otherwise.
        name: For messages when it fails.
        body: For ``newton``: the index of its body; -1 otherwise.
        rank: For ``least_norm_factor``: how many eigenvalues count, the largest; those below 1e-14 of the largest fade
            out. -1 otherwise.
        rows: For ``newton``: names of the rows of F where they may contradict each other, so that small steps do not
            show that they hold. The last 2 n values of theta are then what a unit of each row counts in F, and how
            much of F may be left over of each. Empty: small steps show it.
    """

    kind: Literal["lu_factor", "ldlt_factor", "least_norm_factor", "solve", "newton"]
    size: int
    operands: tuple[int, ...]
    factor: int = -1
    name: str = ""
    body: int = -1
    rank: int = -1
    rows: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        triangle = self.size * (self.size + 1) // 2
        entries = {
            "lu_factor": self.size**2,
            "ldlt_factor": triangle,
            "least_norm_factor": triangle,
            "solve": self.size,
        }
        assert len(self.operands) == entries.get(self.kind, len(self.operands)), (
            f"{self.kind} of size {self.size}: {len(self.operands)} operands"
        )
        assert (self.factor >= 0) == (self.kind == "solve"), f"{self.kind} with factor block {self.factor}"
        assert (self.body >= 0) == (self.kind == "newton"), f"{self.kind} with body {self.body}"
        assert len(self.rows) in {0, self.size}, f"{self.name}: {len(self.rows)} names of rows"
        ranked = self.kind == "least_norm_factor"
        assert 0 <= self.rank <= self.size if ranked else self.rank < 0, f"{self.kind} with rank {self.rank}"

    @property
    def symmetric(self) -> bool:
        """Whether it is a factor block whose operands are a lower triangle."""
        return self.kind in {"ldlt_factor", "least_norm_factor"}


@dataclass(frozen=True, slots=True)
class ScalarizedLinearSystem:
    """A symmetric linear system A x = b that is written out in nodes, for whoever differentiates its solution.

    Attributes:
        matrix: The lower triangle of A, row by row.
        right: b.
        solution: x.
        rows: The lower triangle of L without its diagonal of ones, row by row, where A = L D Lᵀ.
        pivots: The diagonal of D.
    """

    matrix: tuple[int, ...]
    right: tuple[int, ...]
    solution: tuple[int, ...]
    rows: tuple[int, ...]
    pivots: tuple[int, ...]

    @property
    def nodes(self) -> tuple[int, ...]:
        """Every node of the system."""
        return (*self.matrix, *self.right, *self.solution, *self.rows, *self.pivots)

    def renumber_nodes(self, node: Sequence[int] | npt.NDArray[np.int32]) -> ScalarizedLinearSystem:
        """Return the system with other node numbers."""
        groups = (self.matrix, self.right, self.solution, self.rows, self.pivots)
        return ScalarizedLinearSystem(*(tuple(int(node[i]) for i in group) for group in groups))


@dataclass(frozen=True, slots=True)
class PiecewisePolynomial:
    """A piecewise polynomial of one variable: on [breaks[i], breaks[i+1]) sum_k coefficients[k, i] (x - breaks[i])^k.

    Outside the breaks the first and last pieces go on. A table with equal content is stored once.
    """

    name: str
    breaks: tuple[float, ...]
    coefficients: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        pieces = len(self.breaks) - 1
        assert pieces >= 1, "a table needs a piece"
        assert all(a < b for a, b in zip(self.breaks, self.breaks[1:], strict=False)), "breaks must grow"
        assert self.coefficients, "a table needs coefficients"
        assert all(len(row) == pieces for row in self.coefficients), "one coefficient per piece and power"

    def derivative(self, order: int) -> PiecewisePolynomial:
        """Return the table of the derivative of that order, piece by piece; jumps between pieces are ignored."""
        rows = self.coefficients
        for _ in range(order):
            rows = tuple(tuple(k * c for c in row) for k, row in enumerate(rows) if k > 0)
        return PiecewisePolynomial(self.name, self.breaks, rows or ((0.0,) * (len(self.breaks) - 1),))


@dataclass(frozen=True, slots=True)
class ProgramEntryPoint:
    """A named entry point: ``labels[i]`` is the value of node ``results[i]``; only what they need is evaluated.

    Two are no results but conditions, where a program has them: the linear system called ``labels[i]``, written out in
    nodes, is singular where ``results[i]`` is not positive (entry ``pivots``) or is zero (entry ``divisors``).
    """

    name: str
    labels: tuple[str, ...]
    results: tuple[int, ...]

    def __post_init__(self) -> None:
        assert len(self.labels) == len(self.results), (
            f"{self.name}: {len(self.labels)} labels, {len(self.results)} results"
        )


@dataclass(frozen=True, slots=True)
class ScalarProgram:
    """The scalar graph.

    Attributes:
        layout: What is read.
        op, a, b, c: One element per node; int32, -1 where an operand is not used.
        constants: Read by ``Op.CONSTANT``.
        blocks: In an order in which operands come first.
        tables: Lookup tables.
        entries: Entry points by name.
        systems: Symmetric linear systems that are written out in nodes; who only evaluates need not know them.
        bodies: What ``newton`` blocks evaluate again and again, each a program of its own: ``layout.states`` are the
            unknowns y, ``layout.parameters`` theta. Its entry ``residual`` is F, ``step`` the step of Newton's method,
            both scaled so that 1 is large, ``jacobian`` the matrix dF/dy row by row, regular also where F is singular;
            ``regularization``, if it is there, is what was added to its diagonal for that.
    """

    layout: ProgramVariableLayout
    op: npt.NDArray[np.uint8]
    a: npt.NDArray[np.int32]
    b: npt.NDArray[np.int32]
    c: npt.NDArray[np.int32]
    constants: npt.NDArray[np.float64]
    blocks: tuple[EquationSolveBlock, ...]
    tables: tuple[PiecewisePolynomial, ...]
    entries: Mapping[str, ProgramEntryPoint]
    bodies: tuple[ScalarProgram, ...] = ()
    systems: tuple[ScalarizedLinearSystem, ...] = ()

    def __post_init__(self) -> None:
        _check_node_arrays(self)
        _check_newton_bodies(self)
        _check_leaves(self)
        _check_operand_order(self)
        for name, entry in self.entries.items():
            assert name == entry.name, f"entry {entry.name} stored as {name}"
            assert all(0 <= result < len(self.op) for result in entry.results), f"{name} names a node that is not there"

    def __len__(self) -> int:
        return len(self.op)

    def operands(self, node: int) -> tuple[int, ...]:
        """Return the nodes that a node reads; for a block's result those that the block and its factors read."""
        op = Op(self.op[node])
        a, b, c = int(self.a[node]), int(self.b[node]), int(self.c[node])
        if op in BINARY_OPERATIONS:
            return a, b
        if op in UNARY_OPERATIONS:
            return (a,)
        if op is Op.TABLE:
            return (c,)
        if op is Op.SELECT:
            return a, b, c
        if op is Op.BLOCK:
            return self.block_operands(a)
        return ()

    def all_operands(self, stop: int | None = None) -> list[tuple[int, ...]]:
        """Return the operands of every node (before ``stop``) at once, much faster than one by one."""
        blocks = [self.block_operands(i) for i in range(len(self.blocks))]
        arity = _OPERATION_ARITY[self.op[:stop]]
        result: list[tuple[int, ...]] = list(zip(self.a[:stop].tolist(), self.b[:stop].tolist(), strict=True))
        others = np.flatnonzero(arity != 2)
        columns = (arity, self.a, self.b, self.c)
        for node, count, a, b, c in zip(others.tolist(), *(each[others].tolist() for each in columns), strict=True):
            if count == 1:
                result[node] = (a,)
            elif count == 0:
                result[node] = ()
            elif count == 3:
                result[node] = (a, b, c)
            else:
                result[node] = (c,) if count == _ARITY_TABLE else blocks[a]
        return result

    def operand_pairs(self, stop: int | None = None) -> tuple[list[int], list[int], dict[int, tuple[int, ...]]]:
        """Return first and second operand of every node (before ``stop``), for passes over all of them.

        Returns:
            The first operands, the second ones; -1 where there is none, so that what stands behind the last node is
            read; and all operands of the nodes that have others (selections, results of blocks), by node.
        """
        arity = _OPERATION_ARITY[self.op[:stop]]
        first = np.where((arity == 1) | (arity == 2), self.a[:stop], -1)
        is_table = arity == _ARITY_TABLE
        first[is_table] = self.c[:stop][is_table]
        second = np.where(arity == 2, self.b[:stop], -1)
        blocks = [self.block_operands(i) for i in range(len(self.blocks))]
        results, selections = np.flatnonzero(arity == _ARITY_BLOCK), np.flatnonzero(arity == 3)
        others = {node: blocks[i] for node, i in zip(results.tolist(), self.a[results].tolist(), strict=True)}
        rows = np.stack([self.a, self.b, self.c], axis=1)[selections].tolist()
        others |= {node: tuple(row) for node, row in zip(selections.tolist(), rows, strict=True)}
        return first.tolist(), second.tolist(), others

    def block_operands(self, index: int) -> tuple[int, ...]:
        """Return the nodes that a block reads, those of its factor block included."""
        block = self.blocks[index]
        if block.factor < 0:
            return block.operands
        return (*self.blocks[block.factor].operands, *block.operands)


def read_initial_discrete_memory(program: ScalarProgram) -> tuple[float, ...]:
    """Return the initial discrete memory; empty where there is none."""
    return read_constant_entry_point_results(program, "first_memory")


def read_constant_entry_point_results(program: ScalarProgram, name: str) -> tuple[float, ...]:
    """Return the results of an entry point that are numbers all; empty where there is no such entry point."""
    entry = program.entries.get(name)
    return tuple(float(program.constants[program.a[node]]) for node in entry.results) if entry else ()


def find_domain_restricted_nodes(program: ScalarProgram, name: str) -> dict[int, str]:
    """Return the nodes that must be positive, or not zero, for valid results, and their names in messages.

    Args:
        program: Any.
        name: ``pivots``, ``divisors`` or ``domains``.
    """
    required = program.entries.get(name)
    return dict(zip(required.results, required.labels, strict=True)) if required else {}


def _check_node_arrays(program: ScalarProgram) -> None:
    """Make the node arrays read-only and check that they have one length and known operations."""
    n = len(program.op)
    for array in (program.op, program.a, program.b, program.c, program.constants):
        array.flags.writeable = False
    assert len(program.a) == len(program.b) == len(program.c) == n, "one element per node in each array"
    assert n == 0 or program.op.max() <= max(Op), "unknown operation"


def _check_newton_bodies(program: ScalarProgram) -> None:
    """Check that every Newton block has a body of its size, which reads no outer node."""
    for block in program.blocks:
        if block.kind == "newton":
            assert block.body < len(program.bodies), f"{block.name}: no such body"
            body = program.bodies[block.body]
            theta = len(body.layout.parameters)
            assert len(body.layout.states) == block.size, f"{block.name}: body of another size"
            assert len(block.operands) == theta + block.size, f"{block.name}: {len(block.operands)} operands"
            sizes = {name: len(entry.results) for name, entry in body.entries.items()}
            wanted = {"residual": block.size, "step": block.size, "jacobian": block.size**2}
            assert wanted.items() <= sizes.items(), f"{block.name}: body with {sizes}"
            assert not body.bodies, f"{block.name}: bodies in bodies"


def _check_leaves(program: ScalarProgram) -> None:
    """Check that every index of a variable is in range."""
    layout = program.layout
    sizes = {
        Op.CONSTANT: len(program.constants),
        Op.TIME: 1,
        Op.STATE: len(layout.states),
        Op.INPUT: len(layout.inputs),
        Op.PARAMETER: len(layout.parameters),
        Op.MEMORY: len(layout.memory),
        Op.SEED: len(layout.seeds),
        Op.TABLE: len(program.tables),
        Op.BLOCK: len(program.blocks),
    }
    for op, size in sizes.items():
        index = program.a[program.op == op]
        assert not len(index) or (index.min() >= 0 and index.max() < size), f"{op.name} reads what is not there"


def _check_operand_order(program: ScalarProgram) -> None:
    """Check that operands come before the nodes that read them."""
    op, ids = program.op, np.arange(len(program.op))
    reads = {
        "a": UNARY_OPERATIONS | BINARY_OPERATIONS | TERNARY_OPERATIONS,
        "b": BINARY_OPERATIONS | TERNARY_OPERATIONS,
        "c": TERNARY_OPERATIONS | {Op.TABLE},
    }
    for name, ops in reads.items():
        mask = np.isin(op, [int(o) for o in ops])
        operand = getattr(program, name)[mask]
        assert bool(np.all((operand >= 0) & (operand < ids[mask]))), f"operand {name} does not come first"
    for index, block in enumerate(program.blocks):
        assert block.factor < index, f"{block.name}: factors come first"
        factored = block.factor < 0 or program.blocks[block.factor].kind.endswith("_factor")
        assert factored, f"{block.name}: nothing was factored"
    newest = [max(program.block_operands(i), default=-1) for i in range(len(program.blocks))]
    for node in np.flatnonzero(op == Op.BLOCK):
        block = program.blocks[program.a[node]]
        assert block.kind in {"solve", "newton"}, f"{block.name}: only solutions are read"
        assert 0 <= program.b[node] < block.size, f"{block.name}: no such result"
        assert newest[program.a[node]] < node, f"{block.name}: operands come first"
