"""Reverse derivatives of entry points: the gradient of a weighted sum of results, as another entry point.

Every node's adjoint is the sum over the nodes that read it of their adjoint times the partial derivative; nodes are
visited from the last to the first, so that each is complete when its turn comes. For a linear solve A X = B with the
adjoint X̄ of its result,

    B̄ = A⁻ᵀ X̄,      Ā = −B̄ Xᵀ.

A symmetric matrix keeps its factors; a general one is factored once more, transposed. Of a solution X = S⁺ B of least
norm, of constant rank, S̄ has two terms more: (X̄ − S B̄) (S⁺ X)ᵀ + S⁺ B̄ (B − S X)ᵀ. The cost is a small multiple of
that of the results, whatever the number of variables (Griewank and Walther, Evaluating Derivatives, 2008, ch. 3-4).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from mb2fmu.compiler.derivatives.elementary_partials import ZERO_DERIVATIVE_OPERATIONS, form_operation_derivative
from mb2fmu.compiler.derivatives.forward_derivatives import (
    ALL_GROUPS,
    VariableReference,
    list_variable_group_members,
    multiply_by_matrix_entries,
)
from mb2fmu.compiler.derivatives.newton_solution_derivatives import make_newton_solutions_differentiable
from mb2fmu.compiler.derivatives.non_finite_derivative_masks import (
    SELECTION_OPERATIONS,
    NonFiniteReverseDerivativeMasks,
)
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.program_copy import LEAF_GROUPS, CopiedProgramNodes, find_factor_entry_row_and_column
from mb2fmu.compiler.program.program_pruning import prune_program
from mb2fmu.compiler.program.program_result_dependencies import VariableGroup
from mb2fmu.compiler.program.scalar_program import EquationSolveBlock, Op, ScalarProgram

_ADD, _MUL, _BLOCK, _CONSTANT = (int(op) for op in (Op.ADD, Op.MUL, Op.BLOCK, Op.CONSTANT))  # quicker to look up
_SUM_OPERATIONS = frozenset({_ADD, int(Op.SUB)})


def differentiate_reverse(
    program: ScalarProgram, entry: str, with_respect_to: Sequence[VariableGroup] = ALL_GROUPS
) -> ScalarProgram:
    """Return the program with one more entry point, ``vjp_<entry>``: the gradient of a weighted sum of its results.

    Args:
        program: Any; entry points that read seeds of their own keep them.
        entry: Name of the entry point to differentiate.
        with_respect_to: Groups of variables; one result per variable, group after group.

    Returns:
        A program whose seeds 0, 1, … are, for the new entry point, the weights of the results.
    """
    program, source = make_newton_solutions_differentiable(program, entry)
    old = program.entries[source]
    variables = list_variable_group_members(program, with_respect_to)
    missing = range(len(program.layout.seeds), len(old.results))
    seeds = (*program.layout.seeds, *(f"weight {i}" for i in missing))
    builder = ProgramBuilder(dataclasses.replace(program.layout, seeds=seeds))
    add_adjoint_entry(CopiedProgramNodes(program, builder), source, variables, f"vjp_{entry}")
    if source != entry:
        builder.forget(source)
    return prune_program(builder.build())


def add_adjoint_entry(copy: CopiedProgramNodes, entry: str, variables: Sequence[VariableReference], name: str) -> None:
    """Add an entry point: the gradient of another one's results, weighted by seeds 0, 1, …, and summed.

    Args:
        copy: Of the program that has the other one.
        entry: The other one.
        variables: By which it is differentiated.
        name: Of the new entry point.
    """
    b, old = copy.builder, copy.program.entries[entry]
    gradient = _ReverseDifferentiation(copy).gradient(old.results, [b.seed(i) for i in range(len(old.results))])
    zero = b.constant(0.0)
    b.entry(name, [label for label, _ in variables], [gradient.get(leaf, zero) for _, leaf in variables])


class _ReverseDifferentiation:
    """A copy of a program and the adjoints of its nodes."""

    def __init__(self, copy: CopiedProgramNodes) -> None:
        program = copy.program
        self._program = program
        self._builder = copy.builder
        self._copy = copy
        self._operands = program.all_operands()
        self._zero = copy.builder.constant(0.0)
        self._op: list[int] = program.op.tolist()
        self._shares: dict[int, list[int]] = {}
        self._solution_adjoints: dict[int, dict[int, int]] = {}
        self._results: dict[int, list[int]] = {}
        for node in np.flatnonzero(program.op == Op.BLOCK).tolist():
            self._results.setdefault(int(program.a[node]), []).append(node)

    def gradient(self, results: Sequence[int], weights: Sequence[int]) -> dict[tuple[VariableGroup, int], int]:
        """Return the non-zero adjoints of the leaves."""
        self._readers = NonFiniteReverseDerivativeMasks(self._copy, results, weights, self._operands)
        for result, weight in zip(results, weights, strict=True):
            self._add(result, weight)
        gradient: dict[tuple[VariableGroup, int], int] = {}
        for node in range(len(self._program) - 1, -1, -1):
            shares = self._shares.pop(node, None)
            op = self._op[node]
            if op == _BLOCK:
                self._of_result(node, shares)
            elif shares is not None:
                adjoint = self._builder.sum(shares)
                if op in LEAF_GROUPS:
                    gradient[LEAF_GROUPS[Op(op)], int(self._program.a[node])] = adjoint
                elif op != _CONSTANT and op not in ZERO_DERIVATIVE_OPERATIONS and adjoint != self._zero:
                    self._spread(op, node, adjoint)
        return gradient

    def _add(self, node: int, share: int) -> None:
        """Add a share to a node's adjoint; a constant zero is left out."""
        if share == self._zero:
            return
        known = self._shares.get(node)
        if known is None:
            self._shares[node] = [share]
        else:
            known.append(share)

    def _spread(self, op: int, node: int, adjoint: int) -> None:
        """Add each operand's share of a node's adjoint."""
        operands, nodes, readers = self._operands[node], self._copy.node, self._readers
        readers.propagate_readers(node)
        if op == _MUL:
            x, y = operands
            self._add(x, readers.masked_share(node, self._builder.mul(nodes[y], adjoint), y))
            self._add(y, readers.masked_share(node, self._builder.mul(nodes[x], adjoint), x))
        elif op in _SUM_OPERATIONS:
            x, y = operands
            self._add(x, adjoint)
            self._add(y, adjoint if op == _ADD else self._builder.neg(adjoint))
        else:
            shares = self._shares_of(Op(op), node, [nodes[operand] for operand in operands], adjoint)
            for operand, share in zip(operands, shares, strict=True):
                self._add(operand, share if op in SELECTION_OPERATIONS else readers.masked_share(node, share))

    def _shares_of(self, op: Op, node: int, nodes: list[int], adjoint: int) -> list[int]:
        """Return the share of each operand, for operations other than products and sums."""
        program, b = self._program, self._builder
        value, zero = self._copy.node[node], self._zero
        if op is Op.TABLE:
            slope = b.table(program.tables[program.a[node]], int(program.b[node]) + 1, nodes[0])
            return [b.mul(slope, adjoint)]
        if op is Op.SELECT:
            return [zero, b.select(nodes[0], adjoint, zero), b.select(nodes[0], zero, adjoint)]
        if op in {Op.MIN, Op.MAX}:
            first = b.binary(Op.LT, *(nodes if op is Op.MIN else nodes[::-1]))
            return [b.select(first, adjoint, zero), b.select(first, zero, adjoint)]
        if op is Op.DIV:
            quotient = b.div(adjoint, nodes[1])
            return [quotient, b.neg(b.mul(value, quotient))]
        return [b.mul(form_operation_derivative(b, op, nodes, value, k), adjoint) for k in range(len(nodes))]

    def _of_result(self, node: int, shares: list[int] | None) -> None:
        """Handle one result of a solve; when the first one's turn comes, the others are complete."""
        index, result = int(self._program.a[node]), int(self._program.b[node])
        if shares is not None:
            self._solution_adjoints.setdefault(index, {})[result] = self._builder.sum(shares)
        if self._results[index][0] == node and index in self._solution_adjoints:
            self._readers.propagate_block(self._results[index])
            self._of_solve(index, self._solution_adjoints.pop(index))

    def _of_solve(self, index: int, adjoints: dict[int, int]) -> None:
        """Pass on adjoints of the solution x of A x = b: Aᵀ w = adjoints, w to b, and -w xᵀ to the entries of A."""
        b, zero = self._builder, self._zero
        block = self._program.blocks[index]
        if block.kind == "newton":
            return  # smoothing has left it a number
        first, share_of = self._results[index][0], self._readers.masked_share
        old = self._program.blocks[block.factor]
        x = self._copy.solution[index]
        right = b.solution(self._transposed(block.factor), [adjoints.get(i, zero) for i in range(old.size)])
        for operand, share in zip(block.operands, right, strict=True):
            self._add(operand, share_of(first, share))
        more: list[tuple[list[int], list[int]]] = []
        if old.kind == "least_norm_factor":
            more = self._of_least_norm(block, [adjoints.get(i, zero) for i in range(old.size)], right)
        for position, operand in enumerate(old.operands):
            i, j = find_factor_entry_row_and_column(old, position)
            share, terms = b.mul(right[i], x[j]), [b.mul(left[i], other[j]) for left, other in more]
            if old.symmetric and i != j:
                share = b.add(share, b.mul(right[j], x[i]))
                terms += [b.mul(left[j], other[i]) for left, other in more]
            self._add(operand, share_of(first, b.sum([b.neg(share), *terms])))

    def _of_least_norm(
        self, block: EquationSolveBlock, adjoints: Sequence[int], right: Sequence[int]
    ) -> list[tuple[list[int], list[int]]]:
        """Return the columns and rows of the two extra terms of a least-norm solution."""
        b, copy, old = self._builder, self._copy, self._program.blocks[block.factor]
        factor = copy.factor[block.factor]
        entries = {i: copy.node[node] for i, node in enumerate(old.operands)}
        known = [copy.node[node] for node in block.operands]
        x = b.solution(factor, known)
        outside = [
            b.sub(a, s) for a, s in zip(adjoints, multiply_by_matrix_entries(b, old, entries, right), strict=True)
        ]
        left = [b.sub(a, s) for a, s in zip(known, multiply_by_matrix_entries(b, old, entries, x), strict=True)]
        return [(outside, b.solution(factor, x)), (b.solution(factor, right), left)]

    def _transposed(self, factor: int) -> int:
        """Return a factor block of the transposed matrix."""
        old = self._program.blocks[factor]
        if old.symmetric:
            return self._copy.factor[factor]
        n = old.size
        operands = tuple(self._copy.node[old.operands[j * n + i]] for i in range(n) for j in range(n))
        return self._builder.block(EquationSolveBlock(old.kind, n, operands, name=old.name))
