"""Masks that keep a zero derivative zero, even where it would be multiplied by inf or NaN.

A node in the branch that a selection does not take, or of a result that has no weight, has an adjoint of 0. Where its
partial derivative is infinite or not defined there (sin(q)/q at q = 0, √q at 0), 0 · ∞ would be NaN, and the
gradient of everything would be lost. The number 0 alone does not show this: an adjoint may be 0 by chance where the
product has another limit (√q √(q + p) at q = p = 0). So the graph decides, not the number:

- in reverse (:class:`NonFiniteReverseDerivativeMasks`) a node is active if a result of a weight other than 0 reads it,
  through branches that are taken only;
- forward (:class:`NonFiniteForwardDerivativeMasks`) a node is active if it reads a variable whose seed is other than 0,
  through branches that are taken only.

Shares of nodes that are not active are 0 by a selection. That is done where something may not be finite only (see
:class:`_NonFiniteNodeSearch`): all other nodes cost nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from mb2fmu.compiler.derivatives.elementary_partials import ZERO_DERIVATIVE_OPERATIONS
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.program_copy import LEAF_GROUPS, CopiedProgramNodes
from mb2fmu.compiler.program.program_result_dependencies import VariableGroup
from mb2fmu.compiler.program.scalar_program import Op, ScalarProgram
from mb2fmu.model.scalar_operation_table import find_operations_by_attribute

_INFINITE_SLOPE_OPERATIONS = frozenset(map(int, find_operations_by_attribute(lambda row: row.hazard == "edge")))
"""Operations that have a finite value, but no finite slope, at the end of where they are defined."""
_POLE_OPERATIONS = _INFINITE_SLOPE_OPERATIONS | frozenset(
    map(int, find_operations_by_attribute(lambda row: row.hazard == "pole"))
)
"""Operations that may give infinity, or have an infinite slope, where all operands are finite."""
_OVERFLOW_OPERATIONS = frozenset(
    map(int, find_operations_by_attribute(lambda row: row.hazard == "large"))
)  # the value may be larger than any number
_COMMUTATIVE_OPERATIONS = frozenset(map(int, find_operations_by_attribute(lambda row: row.symmetric)))
_NONNEGATIVE_OPERATIONS = frozenset(map(int, find_operations_by_attribute(lambda row: row.never_negative)))
SELECTION_OPERATIONS = frozenset(map(int, (Op.SELECT, Op.MIN, Op.MAX)))
"""Operations that give one of their operands."""
_ADD, _MUL, _DIV, _SQRT, _EXP, _COSH, _MAX, _MIN, _SELECT, _LOG, _BLOCK, _CONSTANT = map(
    int,
    (
        *(Op.ADD, Op.MUL, Op.DIV, Op.SQRT, Op.EXP, Op.COSH, Op.MAX, Op.MIN, Op.SELECT, Op.LOG),
        *(Op.BLOCK, Op.CONSTANT),
    ),
)


class _NonFiniteNodeSearch:
    """Nodes of a program whose values or partial derivatives may not be finite.

    Attributes:
        edge: Of each node: it may have a finite value without a finite slope, by what is not a parameter alone.
        pole: Of each node: it, or anything that it reads, may have a value or a slope that is not finite, by what is
            not a parameter alone.
        wild: Of each node: it, or anything that it reads, may have such a value or slope, by a parameter or by
            overflow too.

    Args:
        copy: Of the program into the builder that takes the masks.
        operands: Of each node of the program.
    """

    def __init__(self, copy: CopiedProgramNodes, operands: Sequence[tuple[int, ...]]) -> None:
        program = copy.program
        moving = [copy.builder.variability_rank(node) > 1 for node in copy.node]  # depends on more than parameters
        checked = {
            node: name
            for name in ("pivots", "divisors", "domains")
            if name in program.entries
            for node in program.entries[name].results
        }
        ops: list[int] = program.op.tolist()
        positive = _find_positive_nodes(program, ops, operands, checked)
        n = len(ops)
        self.edge = [False] * n
        self.pole = [False] * n
        self.wild = [False] * n
        for node, op in enumerate(ops):
            read = operands[node]
            if op in _POLE_OPERATIONS:
                at = read[1] if op == _DIV else read[0]
                safe = (op in {_DIV, _LOG, _SQRT} and positive[at]) or (op == _DIV and at in checked)
                number = all(ops[operand] == _CONSTANT for operand in (read if op != _DIV else (at,)))
                if not (safe or number):
                    self.wild[node] = True
                    moves = moving[at] or (op in _COMMUTATIVE_OPERATIONS and moving[read[1]])
                    self.pole[node] = moves
                    self.edge[node] = moves and op in _INFINITE_SLOPE_OPERATIONS
            for operand in read:
                if self.wild[operand]:  # as is what has a pole
                    self.wild[node] = True
                    self.pole[node] = self.pole[node] or self.pole[operand]
            self.wild[node] = self.wild[node] or op in _OVERFLOW_OPERATIONS


def _find_positive_nodes(
    program: ScalarProgram, ops: Sequence[int], operands: Sequence[tuple[int, ...]], checked: dict[int, str]
) -> list[bool]:
    """Return the nodes that are positive for all inputs."""
    n = len(ops)
    at_least_zero, positive = [False] * n, [False] * n
    for node, op in enumerate(ops):
        read = operands[node]
        if op == _CONSTANT:
            value = float(program.constants[program.a[node]])
            at_least_zero[node], positive[node] = value >= 0.0, value > 0.0
        elif checked.get(node) in {"pivots", "domains"}:
            at_least_zero[node] = positive[node] = True
        elif op in _NONNEGATIVE_OPERATIONS:
            at_least_zero[node] = True
            positive[node] = op in {_EXP, _COSH} or (op == _SQRT and positive[read[0]])
        elif op in {_ADD, _MUL, _DIV, _MIN, _MAX}:
            x, y = read
            at_least_zero[node] = (at_least_zero[x] and at_least_zero[y]) or (op == _MUL and x == y)
            both = positive[x] and positive[y]
            one = positive[x] or positive[y]
            positive[node] = (at_least_zero[node] and one) if op == _ADD else one if op == _MAX else both
        elif op == _SELECT:
            at_least_zero[node] = at_least_zero[read[1]] and at_least_zero[read[2]]
            positive[node] = positive[read[1]] and positive[read[2]]
    return positive


class _OpenPathMasks:
    """Sets of paths into a node as bits, and nodes that are 1 where one of them is open."""

    def __init__(self, builder: ProgramBuilder) -> None:
        self.builder = builder
        self._open: list[Callable[[], int]] = []  # of each path, the node that says so
        self._implied: list[int] = []  # of each path, paths that are open if it is
        self._mask: dict[int, int] = {}
        self._least: dict[int, int] = {}

    def add_path(self, is_open: Callable[[], int], implied: int = 0) -> int:
        """Return a new bit.

        Args:
            is_open: Gives the node of the builder that is 1 where the path is open, else 0.
            implied: Paths of which one is open wherever this one is; 0: none is known.
        """
        self._open.append(is_open)
        self._implied.append(implied)
        return 1 << (len(self._open) - 1)

    def drop_implied_paths(self, paths: int) -> int:
        """Return the paths without those that are open only where others of them are."""
        if paths not in self._least:
            found = paths
            for i in _iterate_bits(paths):
                if self._implied[i] and self._implied[i] & paths == self._implied[i]:
                    found &= ~(1 << i)
            self._least[paths] = found
        return self._least[paths]

    def mask(self, paths: int) -> int:
        """Return the node that is 1 where one of some paths is open, else 0."""
        paths = self.drop_implied_paths(paths)
        if paths not in self._mask:
            b, found = self.builder, self.builder.constant(0.0)
            for i in _iterate_bits(paths):
                found = b.binary(Op.OR, found, self._open[i]())
            self._mask[paths] = found
        return self._mask[paths]

    def add_seed_path(self, seed: int) -> int:
        """Return the bit of a path that is open where a seed is not 0."""
        b = self.builder
        return self.add_path(lambda: b.unary(Op.NOT, b.binary(Op.EQ, seed, b.constant(0.0))))


class NonFiniteReverseDerivativeMasks:
    """Results that read each node; a reverse sweep calls :meth:`propagate_readers` for each, from the last on.

    Args:
        copy: Of the program into the builder that takes the masks.
        results: Nodes whose weighted sum is differentiated.
        weights: Nodes of the builder.
        operands: Of each node of the program.
    """

    def __init__(
        self,
        copy: CopiedProgramNodes,
        results: Sequence[int],
        weights: Sequence[int],
        operands: Sequence[tuple[int, ...]],
    ) -> None:
        program = copy.program
        self._copy, self._operands = copy, operands
        self._ops: list[int] = program.op.tolist()
        self._hazards = _NonFiniteNodeSearch(copy, operands)
        self._masks = _OpenPathMasks(copy.builder)
        self._paths = [0] * len(program)
        self._branches: dict[tuple[int, int], tuple[int, int]] = {}
        for result, weight in zip(results, weights, strict=True):
            self._paths[result] |= self._masks.add_seed_path(weight)
        self._first_branch = 1 << len(results)
        self._needed = any(self._hazards.wild)

    def propagate_readers(self, node: int) -> None:
        """Pass the readers of a node on to its operands."""
        paths = self._paths[node]
        if not (paths and self._needed):
            return
        operands, op = self._operands[node], self._ops[node]
        if op not in SELECTION_OPERATIONS:
            for operand in operands:
                self._paths[operand] |= paths
            return
        condition, first, second = _copy_selection_operands(self._copy, op, operands)
        for operand, path in zip((first, second), self._branch(paths, condition), strict=True):
            self._paths[operand] |= path

    def _branch(self, paths: int, condition: int) -> tuple[int, int]:
        """Return the bits of the two branches of a selection."""
        b, masks = self._masks.builder, self._masks
        if b.value(condition) is not None:
            return (paths, 0) if b.value(condition) else (0, paths)
        key = (paths, condition)
        if key not in self._branches:
            self._branches[key] = (
                masks.add_path(lambda: b.binary(Op.AND, masks.mask(paths), condition), paths),
                masks.add_path(lambda: b.binary(Op.AND, masks.mask(paths), b.unary(Op.NOT, condition)), paths),
            )
        return self._branches[key]

    def propagate_block(self, nodes: Sequence[int]) -> None:
        """Pass the readers of a block's results on to all that the block reads.

        Args:
            nodes: Its results; of these the first stands for the block from now on.
        """
        paths = self._paths[nodes[0]] = _unite_bit_sets(self._paths[node] for node in nodes)
        for operand in self._operands[nodes[0]]:
            self._paths[operand] |= paths

    def masked_share(self, node: int, share: int, *factors: int) -> int:
        """Return a share of an operand of a node, or 0 where nothing active reads the node.

        Args:
            node: Of the program.
            share: Of the builder.
            factors: Nodes that the share is a product of, beside the adjoint; none: all that the node reads.
        """
        if not self._needed or not self._is_hazard(node, factors):
            return share
        b = self._masks.builder
        return b.select(self._masks.mask(self._paths[node]), share, b.constant(0.0))

    def _is_hazard(self, node: int, factors: Sequence[int]) -> bool:
        """Return whether a share needs a mask: it may be infinite or NaN where no active result reads it."""
        hazards, paths = self._hazards, self._masks.drop_implied_paths(self._paths[node])
        if paths < self._first_branch and paths.bit_count() > 1:
            return hazards.edge[node]  # of several results: where its value is not defined theirs are not either
        read = factors or (node, *self._operands[node])
        found = hazards.pole if paths < self._first_branch else hazards.wild
        return any(found[each] for each in read)


class NonFiniteForwardDerivativeMasks:
    """Variables that each node reads, in a forward sweep.

    Args:
        copy: Of the program into the builder that takes the masks.
        seeds: Node of the builder by leaf.
        operands: Of each node of the program.
    """

    def __init__(
        self, copy: CopiedProgramNodes, seeds: dict[tuple[VariableGroup, int], int], operands: Sequence[tuple[int, ...]]
    ) -> None:
        program = copy.program
        self._copy, self._operands = copy, operands
        self._ops: list[int] = program.op.tolist()
        self._hazards = _NonFiniteNodeSearch(copy, operands)
        self._masks = _OpenPathMasks(copy.builder)
        self._bits = {leaf: self._masks.add_seed_path(seed) for leaf, seed in seeds.items()}
        self._paths = self._followed(program) if any(self._hazards.edge) else []

    def _followed(self, program: ScalarProgram) -> list[int]:
        """Return for each node the mask of the leaves that it reads along the chosen branches."""
        paths = [0] * len(program)
        of_block: dict[int, int] = {}
        leaves = {int(op): group for op, group in LEAF_GROUPS.items()}
        for node, op in enumerate(self._ops):
            operands = self._operands[node]
            if op in leaves:
                paths[node] = self._bits.get((leaves[op], int(program.a[node])), 0)
            elif op in SELECTION_OPERATIONS:
                condition, first, second = _copy_selection_operands(self._copy, op, operands)
                paths[node] = self._chosen(condition, paths[first], paths[second])
            elif op == _BLOCK:
                block = int(program.a[node])
                if block not in of_block:
                    of_block[block] = _unite_bit_sets(paths[operand] for operand in operands)
                paths[node] = of_block[block]
            elif op not in ZERO_DERIVATIVE_OPERATIONS:
                paths[node] = _unite_bit_sets(paths[operand] for operand in operands)
        return paths

    def _chosen(self, condition: int, first: int, second: int) -> int:
        """Return the paths through a selection: a new one, open where the chosen branch reads a non-zero seed."""
        if first == second:
            return first
        b, masks = self._masks.builder, self._masks
        return masks.add_path(lambda: b.select(condition, masks.mask(first), masks.mask(second)), first | second)

    def masked_tangent(self, node: int, tangent: int) -> int:
        """Return the tangent of a node, or 0 where the node reads nothing that moves."""
        if not self._paths or not self._hazards.edge[node]:
            return tangent
        b = self._masks.builder
        return b.select(self._masks.mask(self._paths[node]), tangent, b.constant(0.0))


def _copy_selection_operands(copy: CopiedProgramNodes, op: int, operands: Sequence[int]) -> tuple[int, int, int]:
    """Return condition (a node of the builder) and choices of a selection, minimum or maximum."""
    if op == _SELECT:
        return copy.node[operands[0]], operands[1], operands[2]
    x, y = operands
    less = (copy.node[x], copy.node[y]) if op == _MIN else (copy.node[y], copy.node[x])
    return copy.builder.binary(Op.LT, *less), x, y


def _unite_bit_sets(sets: Iterable[int]) -> int:
    """Return all bits of some sets."""
    found = 0
    for each in sets:
        found |= each
    return found


def _iterate_bits(paths: int) -> Iterator[int]:
    """Yield the numbers of the bits of a set, from the lowest on."""
    while paths:
        lowest = paths & -paths
        yield lowest.bit_length() - 1
        paths ^= lowest
