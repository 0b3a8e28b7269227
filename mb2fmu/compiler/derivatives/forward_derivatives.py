"""Forward derivatives of entry points, as other entry points of a new Program.

Every node carries the derivatives that are not zero, by direction. Each elementary operation follows the chain rule;
sums of products are differentiated as one sum (see below); a linear solve A X = B, be it a block or written out,
follows from the implicit function theorem, dX = A⁻¹ (dB − dA X), with the factors of A that are there already, and a
solution X = S⁺ B of least norm, of constant rank, from dX = S⁺ (dB − dS X) + (I − S⁺ S) dS S⁺ X + S⁺ S⁺ dS (B − S X)
(Golub and Pereyra, SIAM Journal on Numerical Analysis 10 (1973) 413-432, for symmetric S); solutions of Newton's method
are made differentiable first (``newton_solution_derivatives``). Where an operation has a kink (Abs, Min, Max,
selections) the derivative is that of the branch taken; jumps (sign, floor) have none.

Sums of products of derivatives, each written in the shortest of several ways.

What a sum of products needs beyond its value, d(Σ a b) = Σ a db + Σ b da, is built as one sum. Three ways are tried:
factors that terms have in common taken out, terms of one derivative collected (of c x − s y with c = cos θ, s = sin θ:
c dx − s dy − (s x + c y) dθ, where s x + c y is there already if both components of the vector are), or all as it
stands. The way is taken that needs the fewest new nodes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import numpy.typing as npt

from mb2fmu.compiler.derivatives.elementary_partials import ZERO_DERIVATIVE_OPERATIONS, form_operation_derivative
from mb2fmu.compiler.derivatives.newton_solution_derivatives import make_newton_solutions_differentiable
from mb2fmu.compiler.derivatives.non_finite_derivative_masks import NonFiniteForwardDerivativeMasks
from mb2fmu.compiler.numerics.linear_solve import solve_written_out_system
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.program_copy import LEAF_GROUPS, CopiedProgramNodes, find_factor_entry_row_and_column
from mb2fmu.compiler.program.program_pruning import prune_program
from mb2fmu.compiler.program.program_result_dependencies import VariableGroup
from mb2fmu.compiler.program.scalar_program import EquationSolveBlock, Op, ScalarizedLinearSystem, ScalarProgram

DerivativeTerm = tuple[int, int]
"""Nodes of a factor and of a derivative that it multiplies."""

SumStrategy = Literal["shortest", "collected", "factored", "plain"]
"""All tried; terms of one derivative collected, which is most of what can be saved, in a third of the time; factors
that terms have in common taken out; as it stands."""


ALL_GROUPS: tuple[VariableGroup, ...] = ("states", "inputs", "parameters", "time")
_ADD, _SUB, _MUL, _DIV, _NEG = map(int, (Op.ADD, Op.SUB, Op.MUL, Op.DIV, Op.NEG))  # a member takes long to look up
_SUM_OPERATIONS = frozenset({_ADD, _SUB, _NEG})
_SUM_AND_PRODUCT_OPERATIONS = _SUM_OPERATIONS | {_MUL}
MAX_NODES_FOR_SUM_SEARCH = 10_000
"""Nodes above which sums are not written in several ways to find the shortest: a third of the time, nearly as good."""
TangentNodes = dict[int, int]  # direction → node
VariableReference = tuple[str, tuple[VariableGroup, int]]  # name and place
SignedTerms = tuple[list[DerivativeTerm], list[DerivativeTerm]]  # what is added, what is taken away
IndexArray = npt.NDArray[np.intp]


class _TangentSumBuilder:
    """Builds sums of derivatives.

    Args:
        builder: Takes the nodes.
        first: What comes before this node is no derivative.
        way: How sums are written.
    """

    def __init__(self, builder: ProgramBuilder, first: int, way: SumStrategy) -> None:
        self._builder = builder
        self._first = first
        self._way = way
        self._innermost: dict[int, int] = {}
        self._factors: dict[int, frozenset[int]] = {}

    def build_sum(self, plus: Sequence[DerivativeTerm], minus: Sequence[DerivativeTerm] = ()) -> int:
        """Return the sum of some terms less the sum of others."""
        terms = (*plus, *minus)
        if len(terms) == 1 or self._way == "plain":
            return self._as_it_stands(plus, minus)
        if self._way == "factored":
            return self._factored(plus, minus)
        again = len({self._derivative_in(term) for term in terms}) < len(terms)
        if self._way == "collected":
            return self._by_derivative(plus, minus) if again else self._as_it_stands(plus, minus)
        ways = [self._factored] if self._have_factors_in_common(terms) else []
        if again:
            ways.append(self._by_derivative)
        ways.append(self._as_it_stands)
        return self._builder.build_smallest_alternative([partial(way, plus, minus) for way in ways])

    def _derivative_in(self, term: DerivativeTerm) -> int:
        """Return the terms that the product rule does not produce."""
        known = self._innermost.get(term[1])
        if known is None:
            known = self._innermost[term[1]] = self._taken_apart(term)[1]
        return known

    def _have_factors_in_common(self, terms: Sequence[DerivativeTerm]) -> bool:
        """Return whether any factor occurs in more than one term, so that factoring can pay."""
        every: set[int] = set()
        count = 0
        for term in terms:
            factors = self._factors_of(term[0]) | self._factors_of(term[1])
            count += len(factors)
            every |= factors
        return len(every) < count

    def _factors_of(self, node: int) -> frozenset[int]:
        """Return the factors of a node that are no numbers."""
        known = self._factors.get(node)
        if known is None:
            b = self._builder
            known = self._factors[node] = frozenset(
                factor for factor in b.factors(node) if b.variability_rank(factor) > 0
            )
        return known

    def _as_it_stands(self, plus: Iterable[DerivativeTerm], minus: Iterable[DerivativeTerm]) -> int:
        """Return the sum of products without taking factors out."""
        return self._builder.plain_sum(self._products(plus), self._products(minus))

    def _factored(self, plus: Iterable[DerivativeTerm], minus: Iterable[DerivativeTerm]) -> int:
        """Return the sum of products with common factors taken out."""
        return self._builder.sum(self._products(plus), self._products(minus))

    def _products(self, terms: Iterable[DerivativeTerm]) -> list[int]:
        """Return the node of each factor times its derivative."""
        return [self._builder.mul(factor, derivative) for factor, derivative in terms]

    def _by_derivative(self, plus: Iterable[DerivativeTerm], minus: Iterable[DerivativeTerm]) -> int:
        """Add up terms that share a derivative first and multiplies by the derivative once."""
        b = self._builder
        collected: dict[int, list[tuple[int, DerivativeTerm, list[int], bool]]] = {}
        for side, terms in enumerate((plus, minus)):
            for term in terms:
                factors, derivative, turned = self._taken_apart(term)
                collected.setdefault(derivative, []).append((side, term, factors, turned))
        sums: tuple[list[int], list[int]] = ([], [])
        for derivative, members in collected.items():
            if len(members) == 1:
                side, term, _, _ = members[0]
                sums[side].append(b.mul(*term))
                continue
            sides: tuple[list[int], list[int]] = ([], [])
            for side, _, factors, turned in members:
                sides[side ^ turned].append(b.product(factors))
            sums[0].append(b.mul(derivative, b.plain_sum(*sides)))
        return b.plain_sum(*sums)

    def _taken_apart(self, term: DerivativeTerm) -> tuple[list[int], int, bool]:
        """Return the factors that are no derivatives, the derivative that they multiply, and whether all is negated."""
        b, first = self._builder, self._first
        factor, derivative = term
        factors, turned = [factor], False
        while True:
            if b.operation(derivative) == _NEG:
                (derivative,) = b.operands(derivative)
                turned = not turned
            elif b.operation(derivative) == _MUL and b.operands(derivative)[0] < first <= b.operands(derivative)[1]:
                one, derivative = b.operands(derivative)
                factors.append(one)
            else:
                return factors, derivative, turned


@dataclass(frozen=True, slots=True)
class SparseJacobianEntryPoint:
    """A sparse Jacobian as an entry point.

    Attributes:
        program: Has the entry point ``jacobian_<entry>``, whose results are the entries that are not zero, row by row.
        entry: Its name.
        shape: (results, variables).
        rows: Of each entry, shape (n_nonzero,).
        columns: Of each entry, shape (n_nonzero,).
    """

    program: ScalarProgram
    entry: str
    shape: tuple[int, int]
    rows: npt.NDArray[np.intp]
    columns: npt.NDArray[np.intp]


def differentiate_forward(
    program: ScalarProgram, entry: str, with_respect_to: Sequence[VariableGroup] = ALL_GROUPS
) -> ScalarProgram:
    """Return the program with one more entry point, ``jvp_<entry>``: derivatives of its results in a direction.

    Args:
        program: Any.
        entry: Name of the entry point to differentiate.
        with_respect_to: Groups of variables; the direction has one seed per variable, group after group, appended to
            the seeds that the program has.

    Returns:
        A program whose ``layout.seeds`` end with ``d <variable>``.
    """
    program, source = make_newton_solutions_differentiable(program, entry)
    variables = list_variable_group_members(program, with_respect_to)
    first = len(program.layout.seeds)
    seeds = (*program.layout.seeds, *(f"d {name}" for name, _ in variables))
    builder = ProgramBuilder(dataclasses.replace(program.layout, seeds=seeds))
    add_tangent_entry_point(CopiedProgramNodes(program, builder), source, variables, first, f"jvp_{entry}")
    if source != entry:
        builder.forget(source)
    return prune_program(builder.build())


def add_tangent_entry_point(
    copy: CopiedProgramNodes, entry: str, variables: Sequence[VariableReference], first_seed: int, name: str
) -> None:
    """Add an entry point: derivatives of another one's results in a direction.

    Args:
        copy: Of the program that has the other one.
        entry: The other one.
        variables: That the direction has components for.
        first_seed: Seed of the first component.
        name: Of the new entry point.
    """
    b, old = copy.builder, copy.program.entries[entry]
    along = {leaf: b.seed(first_seed + i) for i, (_, leaf) in enumerate(variables)}
    b.entry(name, old.labels, form_directional_derivatives(copy, along, old.results))


def form_directional_derivatives(
    copy: CopiedProgramNodes, along: Mapping[tuple[VariableGroup, int], int], results: Sequence[int]
) -> list[int]:
    """Return nodes for the derivatives of results in a direction.

    Args:
        copy: Of the program that has the results.
        along: Place of a variable → node of the builder: its component of the direction.
        results: Nodes of the program.
    """
    found = _ForwardDifferentiation(copy, {leaf: {0: node} for leaf, node in along.items()}, results)
    zero = copy.builder.constant(0.0)
    return [found.tangent(node).get(0, zero) for node in results]


def add_time_derivative_entry(program: ScalarProgram, entry: str, name: str) -> ScalarProgram:
    """Return the program with an entry point added: time derivatives of another one's results along x', inputs held.

    They can be differentiated once more.

    Args:
        program: With entry ``rhs``.
        entry: The other one.
        name: Of the new entry point.
    """
    program, source = make_newton_solutions_differentiable(program, entry, order=2)
    builder = ProgramBuilder(program.layout)
    copy = CopiedProgramNodes(program, builder)
    rates = [copy.node[node] for node in program.entries["rhs"].results]
    tangents: dict[tuple[VariableGroup, int], TangentNodes] = {("time", 0): {0: builder.constant(1.0)}}
    zero = builder.constant(0.0)
    tangents |= {("states", i): {0: node} for i, node in enumerate(rates) if node != zero}
    old = program.entries[source]
    found = _ForwardDifferentiation(copy, tangents, old.results)
    builder.entry(name, old.labels, [found.tangent(node).get(0, zero) for node in old.results])
    if source != entry:
        builder.forget(source)
    return prune_program(builder.build())


def form_jacobian(
    program: ScalarProgram, entry: str, with_respect_to: Sequence[VariableGroup]
) -> SparseJacobianEntryPoint:
    """Return the derivatives of all results of an entry point with respect to all variables of some groups.

    Args:
        program: Any.
        entry: Name of the entry point.
        with_respect_to: Groups of variables; columns are in their order.
    """
    program, source = make_newton_solutions_differentiable(program, entry)
    variables = list_variable_group_members(program, with_respect_to)
    builder = ProgramBuilder(program.layout)
    name = f"jacobian_{entry}"
    rows, columns = add_jacobian_entry_point(CopiedProgramNodes(program, builder), source, variables, name)
    if source != entry:
        builder.forget(source)
    return SparseJacobianEntryPoint(
        program=prune_program(builder.build()),
        entry=name,
        shape=(len(program.entries[source].results), len(variables)),
        rows=rows,
        columns=columns,
    )


def add_jacobian_entry_point(
    copy: CopiedProgramNodes, entry: str, variables: Sequence[VariableReference], name: str
) -> tuple[IndexArray, IndexArray]:
    """Add an entry point: the non-zero entries of a Jacobian, row by row.

    Args:
        copy: Of the program that has the results.
        entry: Whose results.
        variables: By which they are differentiated.
        name: Of the new entry point.

    Returns:
        Row and column of each.
    """
    b, old = copy.builder, copy.program.entries[entry]
    one = b.constant(1.0)
    tangents = _ForwardDifferentiation(copy, {leaf: {i: one} for i, (_, leaf) in enumerate(variables)}, old.results)
    found = [
        (i, j, node) for i, result in enumerate(old.results) for j, node in sorted(tangents.tangent(result).items())
    ]
    labels = [f"d {old.labels[i]} / d {variables[j][0]}" for i, j, _ in found]
    b.entry(name, labels, [node for _, _, node in found])
    return (
        np.array([i for i, _, _ in found], dtype=np.intp),
        np.array([j for _, j, _ in found], dtype=np.intp),
    )


def list_variable_group_members(program: ScalarProgram, groups: Iterable[VariableGroup]) -> list[VariableReference]:
    """Return names and places of the variables of some groups."""
    layout = program.layout
    names: dict[VariableGroup, tuple[str, ...]] = {
        "time": ("time",),
        "states": layout.states,
        "inputs": layout.inputs,
        "parameters": layout.parameters,
        "memory": layout.memory,
        "seeds": layout.seeds,
    }
    return [(name, (group, i)) for group in groups for i, name in enumerate(names[group])]


def _find_written_out_systems(program: ScalarProgram) -> dict[int, ScalarizedLinearSystem]:
    """Return written-out systems by the nodes of their solutions, where these come after all that they depend on."""
    found: dict[int, ScalarizedLinearSystem] = {}
    for system in program.systems:
        solution = [node for node in system.solution if program.op[node] != Op.CONSTANT]
        if solution and max(*system.matrix, *system.right) < min(solution):
            found.update(dict.fromkeys(solution, system))
    return found


class _ForwardDifferentiation:
    """A copy of a program with tangents for the nodes that some results need."""

    def __init__(
        self, copy: CopiedProgramNodes, tangents: dict[tuple[VariableGroup, int], TangentNodes], results: Iterable[int]
    ) -> None:
        self._program = copy.program
        self._builder = copy.builder
        self._leaf_tangents = tangents
        self._copy = copy
        self._zero = copy.builder.constant(0.0)
        self._solution_tangents: dict[int, list[TangentNodes]] = {}
        self._op: list[int] = copy.program.op.tolist()
        self._operands = copy.program.all_operands()
        self._tangent: list[TangentNodes] = [{}] * len(copy.program)
        self._one = copy.builder.constant(1.0)
        seeds = [node for tangent in tangents.values() for node in tangent.values()]
        self._systems = _find_written_out_systems(copy.program)
        self._system_tangents: dict[int, TangentNodes] = {}
        self._terms: dict[int, dict[int, SignedTerms]] = {}
        order, within = self._plan(list(results))
        small = len(order) <= MAX_NODES_FOR_SUM_SEARCH
        if len(set().union(*tangents.values())) > 1:
            way: SumStrategy = "factored" if small else "plain"
        else:
            way = "shortest" if small else "collected"
        self._sums = _TangentSumBuilder(copy.builder, min(seeds, default=0), way)
        single = {leaf: node for leaf, tangent in tangents.items() for node in tangent.values()}
        moves = any(copy.builder.value(node) is None for node in seeds)  # else every variable has a seed of 1
        self._sources = NonFiniteForwardDerivativeMasks(copy, single, self._operands) if moves else None
        for node in order:
            if node in within:
                self._terms[node] = self._terms_of(node)
                continue
            tangent = self._tangent_of(node)
            if self._sources is not None:
                tangent = {i: self._sources.masked_tangent(node, d) for i, d in tangent.items()}
            if self._zero in tangent.values():
                tangent = {i: d for i, d in tangent.items() if d != self._zero}
            self._tangent[node] = tangent

    def _plan(self, results: Sequence[int]) -> tuple[list[int], set[int]]:
        """Return the nodes that need derivatives, and those of them that are built inside the sum that reads them."""
        reads = self._operands.copy()
        for node, system in self._systems.items():
            reads[node] = (*system.matrix, *system.right)
        readers = [0] * len(reads)
        reader = [-1] * len(reads)
        for node in results:
            readers[node] = 2  # more than one
        order = []
        for node in range(len(reads) - 1, -1, -1):
            if readers[node]:
                order.append(node)
                for operand in set(reads[node]):
                    readers[operand] += 1
                    reader[operand] = node
        within = {
            node
            for node in order
            if readers[node] == 1
            and self._op[node] in _SUM_AND_PRODUCT_OPERATIONS
            and self._op[reader[node]] in _SUM_OPERATIONS
            and reader[node] not in self._systems
            and node not in self._systems
        }
        return order[::-1], within

    def tangent(self, node: int) -> TangentNodes:
        """Return the non-zero derivatives of a node of the program."""
        return self._tangent[node]

    def _tangent_of(self, node: int) -> TangentNodes:  # noqa: C901, PLR0911 (one kind of node after the other)
        """Form the tangent of a node, by the rule of its operation or block."""
        program, operands = self._program, self._operands[node]
        code = self._op[node]
        if node in self._systems:
            return self._of_system(node)
        if code in _SUM_AND_PRODUCT_OPERATIONS:  # nearly all
            return {i: self._sums.build_sum(*terms) for i, terms in sorted(self._terms_of(node).items())}
        if code == _DIV:
            return self._of_quotient(node)
        op, index = Op(code), int(program.a[node])
        if op is Op.CONSTANT or op in ZERO_DERIVATIVE_OPERATIONS:
            return {}
        if op in LEAF_GROUPS:
            return self._leaf_tangents.get((LEAF_GROUPS[op], index), {})
        if op is Op.BLOCK:
            if program.blocks[index].kind == "newton":
                return {}  # smoothing has left it a number
            if index not in self._solution_tangents:
                self._solution_tangents[index] = self._implicit(index)
            return self._solution_tangents[index][int(program.b[node])]
        if op is Op.TABLE:
            return self._of_table(node)
        tangents = [self._tangent[operand] for operand in operands]
        if not any(tangents):
            return {}
        return self._rule(op, [self._copy.node[operand] for operand in operands], tangents, self._copy.node[node])

    # --- operations --------------------------------------------------------------------------------------------------

    def _terms_of(self, node: int) -> dict[int, SignedTerms]:
        """Return the terms of x + y, x − y, −x and x·y by direction: those added and those subtracted."""
        operands, op = self._operands[node], self._op[node]
        found: dict[int, SignedTerms] = {}
        if op == _MUL:
            x, y = operands
            for one, other in ((x, y), (y, x)):
                factor = self._copy.node[other]
                for i, d in self._tangent[one].items():
                    found.setdefault(i, ([], []))[0].append((factor, d))
            return found
        for which, operand in enumerate(operands):
            away = op == _NEG or (op == _SUB and which == 1)
            for i, terms in self._terms_at(operand).items():
                sides = found.setdefault(i, ([], []))
                sides[away].extend(terms[0])
                sides[not away].extend(terms[1])
        return found

    def _terms_at(self, node: int) -> dict[int, SignedTerms]:
        """Return the terms of a sum's operand, by direction."""
        known = self._terms.get(node)
        return {i: ([(self._one, d)], []) for i, d in self._tangent[node].items()} if known is None else known

    def _of_quotient(self, node: int) -> TangentNodes:
        """Return d(x/y) = (dx − (x/y) dy)/y."""
        b, (x, y) = self._builder, self._operands[node]
        dx, dy = self._tangent[x], self._tangent[y]
        value, divisor = self._copy.node[node], self._copy.node[y]
        return {
            i: b.div(
                self._sums.build_sum(
                    [(self._one, dx[i])] if i in dx else [],
                    [(value, dy[i])] if i in dy else [],
                ),
                divisor,
            )
            for i in sorted(dx.keys() | dy.keys())
        }

    def _rule(self, op: Op, nodes: list[int], tangents: list[TangentNodes], value: int) -> TangentNodes:
        """Form the tangent of a scalar operation: partials times tangents, of the chosen branch at selections."""
        b, zero = self._builder, self._zero
        directions = sorted(set().union(*tangents))
        if op is Op.SELECT:
            return {i: b.select(nodes[0], tangents[1].get(i, zero), tangents[2].get(i, zero)) for i in directions}
        if op in {Op.MIN, Op.MAX}:
            first = b.binary(Op.LT, *(nodes if op is Op.MIN else nodes[::-1]))
            return {i: b.select(first, tangents[0].get(i, zero), tangents[1].get(i, zero)) for i in directions}
        partials = [
            form_operation_derivative(b, op, nodes, value, k) if tangent else zero for k, tangent in enumerate(tangents)
        ]
        return {
            i: b.sum(
                b.mul(slope, tangent[i]) for slope, tangent in zip(partials, tangents, strict=True) if i in tangent
            )
            for i in directions
        }

    def _of_table(self, node: int) -> TangentNodes:
        """Return the tangents of a table: its slope (the derivative table) times the operand's tangents."""
        program, b = self._program, self._builder
        table, order, operand = program.tables[program.a[node]], int(program.b[node]), int(program.c[node])
        slope = b.table(table, order + 1, self._copy.node[operand])
        return {i: b.mul(slope, d) for i, d in self._tangent[operand].items()}

    # --- linear solves -----------------------------------------------------------------------------------------------

    def _of_system(self, node: int) -> TangentNodes:
        """Return the tangents of a written-out linear system, dx = A⁻¹ (db − dA x)."""
        if node not in self._system_tangents:
            b, copy, system = self._builder, self._copy.node, self._systems[node]
            n = len(system.right)
            x = [copy[i] for i in system.solution]
            matrix = [self._tangent[i] for i in system.matrix]
            right = [self._tangent[i] for i in system.right]
            found: dict[int, TangentNodes] = {i: {} for i in system.solution}
            places = [(i, j) for i in range(n) for j in range(i + 1)]
            for direction in sorted(set().union(*right, *matrix)):
                less: list[list[DerivativeTerm]] = [[] for _ in range(n)]
                for (i, j), slope in zip(places, matrix, strict=True):
                    if direction in slope:
                        less[i].append((x[j], slope[direction]))
                        if i != j:
                            less[j].append((x[i], slope[direction]))
                residual = [
                    self._sums.build_sum([(self._one, known[direction])] if direction in known else [], terms)
                    for known, terms in zip(right, less, strict=True)
                ]
                for i, d in zip(
                    system.solution, solve_written_out_system(b, system.renumber_nodes(copy), residual), strict=True
                ):
                    found[i][direction] = d
            self._system_tangents |= found
        return self._system_tangents[node]

    def _implicit(self, index: int) -> list[TangentNodes]:
        """Return dX = A⁻¹ (dB − dA X), one solve per direction."""
        block = self._program.blocks[index]
        old = self._program.blocks[block.factor]
        b, n, zero = self._builder, old.size, self._zero
        factor, x = self._copy.factor[block.factor], self._copy.solution[index]
        right = [self._tangent[node] for node in block.operands]
        matrix = [self._tangent[node] for node in old.operands]
        result: list[TangentNodes] = [{} for _ in range(n)]
        short = _LeastNormSolutionTangent.of(self._copy, block) if old.kind == "least_norm_factor" else None
        for direction in sorted(set().union(*right, *matrix)):
            slopes = {i: tangent[direction] for i, tangent in enumerate(matrix) if direction in tangent}
            known = [tangent.get(direction, zero) for tangent in right]
            residual = [
                b.sum([value], less) for value, less in zip(known, _form_row_products(b, old, slopes, x), strict=True)
            ]
            found = short.tangent(residual, slopes) if short else b.solution(factor, residual)
            for i, node in enumerate(found):
                if not b.is_zero(node):
                    result[i][direction] = node
        return result


@dataclass(frozen=True, slots=True)
class _LeastNormSolutionTangent:
    """Parts shared by the derivatives of one least-norm solution x = S⁺ b.

    Attributes:
        builder: Takes the nodes.
        block: The factor block of the old program.
        factor: Its number in the new one.
        entries: Of S, by operand.
        twofold_solution: S⁺ x.
        left: b − S x.
    """

    builder: ProgramBuilder
    block: EquationSolveBlock
    factor: int
    entries: dict[int, int]
    twofold_solution: list[int]
    left: list[int]

    @classmethod
    def of(cls, copy: CopiedProgramNodes, solve: EquationSolveBlock) -> _LeastNormSolutionTangent:
        """Return the copy of a solve of least norm, with the matrix that its factors were made of."""
        b, old = copy.builder, copy.program.blocks[solve.factor]
        factor = copy.factor[solve.factor]
        entries = {i: copy.node[node] for i, node in enumerate(old.operands)}
        right = [copy.node[node] for node in solve.operands]
        x = b.solution(factor, right)
        left = [
            b.sub(value, less)
            for value, less in zip(right, multiply_by_matrix_entries(b, old, entries, x), strict=True)
        ]
        return cls(b, old, factor, entries, b.solution(factor, x), left)

    def tangent(self, residual: Sequence[int], slopes: Mapping[int, int]) -> list[int]:
        """Return dx, from db − dS x and the non-zero entries of dS."""
        b, old = self.builder, self.block
        turned = multiply_by_matrix_entries(b, old, slopes, self.twofold_solution)
        back = b.solution(self.factor, multiply_by_matrix_entries(b, old, slopes, self.left))
        inside = multiply_by_matrix_entries(b, old, self.entries, turned)
        right = [b.sub(b.add(r, k), i) for r, k, i in zip(residual, back, inside, strict=True)]
        return [b.add(x, w) for x, w in zip(b.solution(self.factor, right), turned, strict=True)]


def multiply_by_matrix_entries(
    b: ProgramBuilder, factor: EquationSolveBlock, entries: Mapping[int, int], x: Sequence[int]
) -> list[int]:
    """Return a x, of the entries of A that are not zero by operand of its factor block."""
    return [b.sum(row) for row in _form_row_products(b, factor, entries, x)]


def _form_row_products(
    b: ProgramBuilder, factor: EquationSolveBlock, entries: Mapping[int, int], x: Sequence[int]
) -> list[list[int]]:
    """Return matrix · x row by row, for a sparse matrix whose entries are numbered by position in the block."""
    products: list[list[int]] = [[] for _ in range(factor.size)]
    for position, entry in entries.items():
        i, j = find_factor_entry_row_and_column(factor, position)
        products[i].append(b.mul(entry, x[j]))
        if factor.symmetric and i != j:
            products[j].append(b.mul(entry, x[i]))
    return products
