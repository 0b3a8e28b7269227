"""Dependencies of an entry point's results on variables, their kinds, and the number of operations.

Dependence is what the graph reads, whatever the values, less what is validated to cancel (see below). A set of
variables is one integer, used as a row of bits, so that thousands of results cost little. Results of a block depend on
all that the block reads.

Find results that do not depend on a variable although the graph reads it: a mass that divides out, sin² + cos².

A derivative is zero for all values of all variables if it is zero as a rational expression of variables and of what
the other functions give, each taken for an unknown of its own. That is tried by computing it at random points modulo a
prime: exactly, without round-off. An expression of degree d that is not zero vanishes at a random point with a
probability of at most d/p (Schwartz, J. ACM 27 (1980) 701; Zippel, EUROSAM 1979, 216); here p is 2³¹ − 1, and there are
:data:`RANDOM_POINT_COUNT` points, so that a dependence is missed about once in 10¹² programs, and the same program
always gives the same answer.

Of the functions the following is known: sin and cos of one angle lie on the circle and are each other's derivatives;
e^x is its own derivative; √x, |x| and the quotients of tan have theirs by formula. Everything else, branches and jumps
included, is an unknown with unknown slopes: what cancels for all of them cancels. Solutions of linear systems and of
Newton's method have their derivatives by the implicit function theorem; but those of least norm are unknowns too, since
random points are off the constraints, where rows that are redundant on them hold the mechanism still. Numbers are
exactly what their bits say.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from mb2fmu.compiler.program.program_pruning import find_needed_nodes
from mb2fmu.compiler.program.scalar_program import (
    BINARY_OPERATIONS,
    LEAF_OPERATIONS,
    UNARY_OPERATIONS,
    EquationSolveBlock,
    Op,
    ProgramEntryPoint,
    ScalarProgram,
)

Residues = npt.NDArray[np.int64]
"""Numbers modulo P."""

MODULUS = 2**31 - 1
RANDOM_POINT_COUNT = 2
MAX_PARTIAL_DERIVATIVES = 1_000_000
"""Partial derivatives, nodes times variables, above which nothing is tried: what is that large is a chain of bodies,
where everything moves everything."""


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


class _ModularDualNumber(NamedTuple):
    """A value and its partial derivatives by all variables, modulo P; a tuple, because one is made for each node.

    Attributes:
        value: Shape (POINTS,).
        partials: Shape (POINTS, n).
    """

    value: Residues
    partials: Residues


def find_dependencies_by_modular_arithmetic(
    program: ScalarProgram, results: Sequence[int], variables: Sequence[tuple[Op, int]]
) -> npt.NDArray[np.bool_]:
    """Return whether each result depends on each variable, shape (n_results, n_variables); True where not validated.

    True too where a result is zero whatever the values: what is seen of it is round-off of everything it reads.

    Args:
        program: Any.
        results: Nodes.
        variables: Leaves, as operation and index.
    """
    rows = _find_modular_dependencies(program, results, variables)
    return np.ones((len(results), len(variables)), dtype=bool) if rows is None else rows


def _find_modular_dependencies(
    program: ScalarProgram, results: Sequence[int], variables: Sequence[tuple[Op, int]]
) -> npt.NDArray[np.bool_] | None:
    """Return the same; None where nothing is tried, or something is divided by zero."""
    wanted, _ = find_needed_nodes(program, results)
    if np.count_nonzero(wanted) * len(variables) > MAX_PARTIAL_DERIVATIVES:
        return None
    n = len(variables)
    leaves = {
        variable: _ModularDualNumber(
            _random_residues("leaf", variable),
            np.tile(np.arange(n) == column, (RANDOM_POINT_COUNT, 1)).astype(np.int64),
        )
        for column, variable in enumerate(variables)
    }
    try:
        found = _ModularEvaluation(program, leaves, n).of(results)
    except ZeroDivisionError:  # by what is zero everywhere, or by chance at one of the points
        return None
    rows = [found[node].partials.any(axis=0) | (not found[node].value.any()) for node in results]
    return np.array(rows, dtype=bool).reshape(len(results), n)


class _ModularEvaluation:
    """Values and derivatives of the nodes of a program at random points.

    Args:
        program: Any.
        leaves: What is read. All else that is read does not vary.
        n: Number of variables.
    """

    def __init__(self, program: ScalarProgram, leaves: Mapping[tuple[Op, int], _ModularDualNumber], n: int) -> None:
        self._program = program
        self._leaves = leaves
        self._zero = np.zeros((RANDOM_POINT_COUNT, n), dtype=np.int64)
        self._found: dict[int, _ModularDualNumber] = {}
        self._solutions: dict[int, list[_ModularDualNumber]] = {}
        self._inverses: dict[int, Residues] = {}

    def of(self, results: Iterable[int]) -> Mapping[int, _ModularDualNumber]:
        """Return all nodes that the results need."""
        program = self._program
        nodes, _ = find_needed_nodes(program, results)
        needed = np.flatnonzero(nodes)
        columns = (needed, program.op[needed], program.a[needed], program.b[needed], program.c[needed])
        for node, operation, a, b, c in zip(*(column.tolist() for column in columns), strict=True):
            op = Op(operation)
            if op in LEAF_OPERATIONS:
                self._found[node] = self._leaf(op, a)
            elif op is Op.BLOCK:
                self._found[node] = self._block(a)[b]
            elif op is Op.TABLE:
                self._found[node] = self._opaque(f"table {a} {b}", [self._found[c]])
            else:
                operands = (a,) if op in UNARY_OPERATIONS else (a, b) if op in BINARY_OPERATIONS else (a, b, c)
                self._found[node] = self._node(op, [self._found[operand] for operand in operands])
        return self._found

    def _leaf(self, op: Op, index: int) -> _ModularDualNumber:
        """Return the residue of a constant or variable; one that does not vary is an unknown with no partials."""
        if op is Op.CONSTANT:
            return _ModularDualNumber(
                np.full(RANDOM_POINT_COUNT, _residue(float(self._program.constants[index]))), self._zero
            )
        given = self._leaves.get((op, index))
        return given or _ModularDualNumber(_random_residues("leaf", (op, index)), self._zero)

    def _node(self, op: Op, x: list[_ModularDualNumber]) -> _ModularDualNumber:
        """Evaluate an operation modulo P; one without rules in residues becomes an unknown that its operands name."""
        arithmetic = _ARITHMETIC_RULES.get(op)
        if arithmetic is not None:
            return arithmetic(*x)
        if op is Op.SELECT:
            first = self._opaque("select", x[:1])
            rest = _ModularDualNumber((1 - first.value) % MODULUS, -first.partials % MODULUS)
            return _sum(_product(first, x[1]), _product(rest, x[2]))
        known = _evaluate_function(op, x[0].value)
        if known is None:
            return self._opaque(op.name, x)
        return _ModularDualNumber(known[0], _scale_partials(known[1], x[0].partials))

    def _opaque(self, name: str, x: Sequence[_ModularDualNumber]) -> _ModularDualNumber:
        """Return an unknown function with unknown slopes, the same for the same operands."""
        key = tuple(operand.value.tobytes() for operand in x)
        partials = self._zero
        for i, operand in enumerate(x):
            partials = partials + _scale_partials(_random_residues(f"{name} by {i}", key), operand.partials)
        return _ModularDualNumber(_random_residues(name, key), partials % MODULUS)

    def _block(self, index: int) -> list[_ModularDualNumber]:
        """Return the solution of a block, evaluated once."""
        if index not in self._solutions:
            block = self._program.blocks[index]
            solve = self._newton if block.kind == "newton" else self._solve
            self._solutions[index] = solve(block)
        return self._solutions[index]

    def _solve(self, block: EquationSolveBlock) -> list[_ModularDualNumber]:
        """Solve a y = b: y' = A⁻¹ (b' − A' y)."""
        factor = self._program.blocks[block.factor]
        entries = [[self._found[node] for node in row] for row in _factored_matrix_nodes(factor)]
        if factor.kind == "least_norm_factor":
            every = [*(entry for row in entries for entry in row), *(self._found[node] for node in block.operands)]
            return [self._opaque(f"least norm {i}", every) for i in range(block.size)]
        if block.factor not in self._inverses:
            self._inverses[block.factor] = _invert_matrix(np.array([[e.value for e in row] for row in entries]))
        inverse = self._inverses[block.factor]
        right = [self._found[node] for node in block.operands]
        y = _multiply_residues(inverse, np.array([b.value for b in right])[..., None])[..., 0]
        rest = []
        for row, b in zip(entries, right, strict=True):
            partials = b.partials
            for entry, value in zip(row, y, strict=True):
                if entry.partials.any():
                    partials = (partials - _scale_partials(value, entry.partials)) % MODULUS
            rest.append(partials)
        slopes = _multiply_residues(inverse, np.array(rest))
        return [_ModularDualNumber(value, slope) for value, slope in zip(y, slopes, strict=True)]

    def _newton(self, block: EquationSolveBlock) -> list[_ModularDualNumber]:
        """Solve F(y, θ) = 0: y' = −F_y⁻¹ F_θ θ', with y an unknown of its own."""
        n, body = block.size, self._program.bodies[block.body]
        theta = [self._found[node] for node in block.operands[:-n]]
        key = tuple(each.value.tobytes() for each in theta)
        y = [_random_residues(f"newton {block.body} {i}", key) for i in range(n)]
        eye = np.eye(n + len(theta), dtype=np.int64)
        leaves = {
            (Op.STATE, i): _ModularDualNumber(value, np.tile(eye[i], (RANDOM_POINT_COUNT, 1)))
            for i, value in enumerate(y)
        }
        leaves |= {
            (Op.PARAMETER, i): _ModularDualNumber(each.value, np.tile(eye[n + i], (RANDOM_POINT_COUNT, 1)))
            for i, each in enumerate(theta)
        }
        residual = body.entries["residual"].results
        inside = _ModularEvaluation(body, leaves, len(eye)).of(residual)
        slopes = np.array([inside[node].partials for node in residual])
        right = []
        for row in slopes:
            partials = self._zero
            for i, each in enumerate(theta):
                if row[:, n + i].any():
                    partials = (partials - _scale_partials(row[:, n + i], each.partials)) % MODULUS
            right.append(partials)
        found = _multiply_residues(_invert_matrix(slopes[:, :, :n].transpose(0, 2, 1)), np.array(right))
        return [_ModularDualNumber(value, slope) for value, slope in zip(y, found, strict=True)]


def _evaluate_function(op: Op, x: Residues) -> tuple[Residues, Residues] | None:
    """Return value and slope of a function at a point; None if neither is known."""
    half = x > MODULUS // 2  # odd and even parts: f(-x) follows from f(x)
    sign = np.where(half, -1, 1)
    key = (np.where(half, MODULUS - x, x).tobytes(),)
    if op in (Op.SIN, Op.COS, Op.TAN):
        t = _random_residues("circle", key)
        scale = _modular_inverse((1 + t * t) % MODULUS)
        sine, cosine = sign * (2 * t % MODULUS * scale % MODULUS) % MODULUS, (1 - t * t) % MODULUS * scale % MODULUS
        if op is Op.TAN:
            tangent = sine * _modular_inverse(cosine) % MODULUS
            return tangent, (1 + tangent * tangent) % MODULUS
        return (sine, cosine) if op is Op.SIN else (cosine, -sine % MODULUS)
    if op is Op.EXP:
        value = _random_residues("exp", key)
        value = np.where(half, _modular_inverse(value), value)
        return value, value
    if op is Op.SQRT:
        value = _random_residues("sqrt", (x.tobytes(),))
        return value, _modular_inverse(2 * value % MODULUS)
    if op is Op.ABS:
        slope = _random_residues("sign of", (x.tobytes(),))
        return slope * x % MODULUS, slope
    return None


def _random_residues(name: str, key: object) -> Residues:
    """Return random numbers ≥ 1, the same for the same key."""
    seed = hashlib.blake2b(repr((name, key)).encode()).digest()
    return np.array(
        [int.from_bytes(seed[8 * i : 8 * i + 8], "little") % (MODULUS - 1) + 1 for i in range(RANDOM_POINT_COUNT)]
    )


def _residue(number: float) -> int:
    """Return a double as a residue modulo P: it is a fraction."""
    if not np.isfinite(number):
        raise ZeroDivisionError
    numerator, denominator = number.as_integer_ratio()
    return numerator * pow(denominator, -1, MODULUS) % MODULUS


def _modular_inverse(x: Residues) -> Residues:
    """Return 1/x modulo P, elementwise; raise where an element is zero."""
    if not x.all():
        raise ZeroDivisionError
    return np.array([pow(value, -1, MODULUS) for value in x.tolist()])


def _scale_partials(factor: Residues, partials: Residues) -> Residues:
    """Return the partial derivatives times a factor at each point, modulo P."""
    return np.asarray(factor[:, None] * partials % MODULUS)


def _product(x: _ModularDualNumber, y: _ModularDualNumber) -> _ModularDualNumber:
    """Return x·y with its partial derivatives; skip the half of the product rule that is zero."""
    value = x.value * y.value % MODULUS
    if not np.count_nonzero(y.partials):  # a number, or a parameter that does not vary
        return _ModularDualNumber(value, _scale_partials(y.value, x.partials))
    if not np.count_nonzero(x.partials):
        return _ModularDualNumber(value, _scale_partials(x.value, y.partials))
    return _ModularDualNumber(
        value, (_scale_partials(x.value, y.partials) + _scale_partials(y.value, x.partials)) % MODULUS
    )


def _sum(x: _ModularDualNumber, y: _ModularDualNumber) -> _ModularDualNumber:
    """Return x + y with its partial derivatives, modulo P."""
    return _ModularDualNumber((x.value + y.value) % MODULUS, (x.partials + y.partials) % MODULUS)


def _negative(x: _ModularDualNumber) -> _ModularDualNumber:
    """Return −x with its partial derivatives, modulo P."""
    return _ModularDualNumber(-x.value % MODULUS, -x.partials % MODULUS)


def _difference(x: _ModularDualNumber, y: _ModularDualNumber) -> _ModularDualNumber:
    """Return x − y with its partial derivatives, modulo P."""
    return _ModularDualNumber((x.value - y.value) % MODULUS, (x.partials - y.partials) % MODULUS)


def _quotient(x: _ModularDualNumber, y: _ModularDualNumber) -> _ModularDualNumber:
    """Return x/y with its partial derivatives, modulo P; raise where y is zero."""
    inverse = _modular_inverse(y.value)
    return _product(x, _ModularDualNumber(inverse, _scale_partials(-inverse * inverse % MODULUS, y.partials)))


def _identity(x: _ModularDualNumber) -> _ModularDualNumber:
    """Return x: for operations that change nothing."""
    return x


_ARITHMETIC_RULES: dict[Op, Callable[..., _ModularDualNumber]] = {
    Op.ADD: _sum,
    Op.SUB: _difference,
    Op.MUL: _product,
    Op.DIV: _quotient,
    Op.NEG: _negative,
    Op.FROZEN: _identity,
}


def _factored_matrix_nodes(factor: EquationSolveBlock) -> list[list[int]]:
    """Return the nodes of the matrix that a block factors."""
    n, nodes = factor.size, factor.operands
    if factor.kind == "lu_factor":
        return [list(nodes[i * n : i * n + n]) for i in range(n)]
    return [[nodes[max(i, j) * (max(i, j) + 1) // 2 + min(i, j)] for j in range(n)] for i in range(n)]


def _multiply_residues(matrix: Residues, columns: Residues) -> Residues:
    """Return shapes (n, n, POINTS) and (n, POINTS, k)."""
    result = np.zeros_like(columns)
    for k in range(len(columns)):
        result = (result + matrix[:, k, :, None] * columns[k]) % MODULUS
    return result


def _invert_matrix(matrix: Residues) -> Residues:
    """Return the inverse by Gauss-Jordan elimination, shape (n, n, POINTS); exact, so any pivot order will do."""
    n = len(matrix)
    whole = np.concatenate(
        [matrix, np.repeat(np.eye(n, dtype=np.int64)[:, :, None], RANDOM_POINT_COUNT, axis=2)], axis=1
    )
    for k in range(n):
        for point in range(RANDOM_POINT_COUNT):
            rows = np.flatnonzero(whole[k:, k, point])
            if not len(rows):
                raise ZeroDivisionError
            swap = k + int(rows[0])
            whole[[k, swap], :, point] = whole[[swap, k], :, point]
        whole[k] = whole[k] * _modular_inverse(whole[k, k]) % MODULUS
        others = np.arange(n) != k
        whole[others] = (whole[others] - whole[others, k][:, None] * whole[k]) % MODULUS
    return whole[:, n:]


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


class _DependencyVariableSets(NamedTuple):
    """Sets of variables as bits: all that a node depends on, and for each kind those with no simpler one.

    A tuple, because one is made for nearly every node.
    """

    any: int = 0
    fixed: int = 0
    tunable: int = 0
    dependent: int = 0

    def __or__(self, other: _DependencyVariableSets) -> _DependencyVariableSets:
        """Return the union of both, kind by kind."""
        return _DependencyVariableSets(
            self.any | other.any,
            self.fixed | other.fixed,
            self.tunable | other.tunable,
            self.dependent | other.dependent,
        )

    def with_minimum_kind(self, kind: DependencyKind) -> _DependencyVariableSets:
        """Return the same variables, each with at least this kind of dependence."""
        every = self.any
        return _DependencyVariableSets(
            every,
            every if kind >= DependencyKind.FIXED else self.fixed,
            every if kind >= DependencyKind.TUNABLE else self.tunable,
            every if kind >= DependencyKind.DEPENDENT else self.dependent,
        )


def find_result_dependencies(
    program: ScalarProgram, entry: str, fixed_parameters: Iterable[int] = ()
) -> tuple[tuple[ResultDependency, ...], ...]:
    """Return the dependencies of each result of an entry point, ordered by group and index.

    Args:
        program: Any.
        entry: Name of the entry point.
        fixed_parameters: Indices of the parameters that are fixed; the others are tunable.
    """
    return find_all_result_dependencies(program, (entry,), fixed_parameters)[entry]


def find_all_result_dependencies(
    program: ScalarProgram, entries: Sequence[str], fixed_parameters: Iterable[int] = ()
) -> dict[str, tuple[tuple[ResultDependency, ...], ...]]:
    """Return :func:`find_result_dependencies` of several entry points in one pass; equal results share one tuple.

    Args:
        program: Any.
        entries: Names of entry points.
        fixed_parameters: Indices of the parameters that are fixed; the others are tunable.
    """
    bits = _DependencyPropagation(program, fixed_parameters)
    every = [node for entry in entries for node in program.entries[entry].results]
    reads = bits.of(every)

    def list_read_leaves(nodes: Iterable[int]) -> list[tuple[Op, int]]:
        union = _unite_variable_sets(reads[node] for node in nodes).any
        return [(_GROUP_OPERATIONS[g], index) for i, (g, index) in enumerate(bits.variables) if union >> i & 1]

    found: dict[str, tuple[tuple[ResultDependency, ...], ...]] = {}
    leaves, first = list_read_leaves(every), 0
    rows_of_all = _find_modular_dependencies(program, every, leaves)
    for entry in entries:
        results = program.entries[entry].results
        if rows_of_all is not None:
            rows = rows_of_all[first : first + len(results)]
            first += len(results)
        else:  # each alone may be short enough, or nowhere divide by zero
            leaves = list_read_leaves(results)
            rows = find_dependencies_by_modular_arithmetic(program, results, leaves)
        column = {leaf: i for i, leaf in enumerate(leaves)}
        keys = [(reads[node], row.tobytes()) for node, row in zip(results, rows, strict=True)]
        lists: dict[tuple[_DependencyVariableSets, bytes], tuple[ResultDependency, ...]] = {}
        for key, row in zip(keys, rows, strict=True):
            if key not in lists:
                lists[key] = tuple(
                    each
                    for each in bits.iterate_named_dependencies(key[0])
                    if row[column[_GROUP_OPERATIONS[each.group], each.index]]
                )
        found[entry] = tuple(lists[key] for key in keys)
    return found


class _DependencyPropagation:
    """Numbers the variables and propagates sets of them through the graph."""

    def __init__(self, program: ScalarProgram, fixed_parameters: Iterable[int]) -> None:
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

    def of(self, results: Iterable[int]) -> dict[int, _DependencyVariableSets]:
        """Return the dependencies of each node that the results need."""
        program = self._program
        reads: dict[int, _DependencyVariableSets] = {}
        blocks: dict[int, _DependencyVariableSets] = {}
        nodes, _ = find_needed_nodes(program, results)
        first, second, others = program.operand_pairs()
        ops = program.op.tolist()
        for node in np.flatnonzero(nodes).tolist():
            if ops[node] in _ARITHMETIC_OPERATIONS:  # nearly all
                reads[node] = self._arithmetic(ops[node], reads[first[node]], reads[second[node]])
                continue
            op = Op(ops[node])
            if op in LEAF_OPERATIONS:
                bit = 0 if op is Op.CONSTANT else 1 << (self._first[_LEAF_GROUPS[op]] + int(program.a[node]))
                reads[node] = _DependencyVariableSets(bit)
            elif op is Op.BLOCK:
                block = int(program.a[node])
                if block not in blocks:
                    blocks[block] = self._block(block, reads)
                reads[node] = blocks[block]
            else:
                read = others[node] if node in others else [i for i in (first[node], second[node]) if i >= 0]
                reads[node] = self._node(op, [reads[operand] for operand in read])
        return reads

    def _factor(self, reads: _DependencyVariableSets) -> DependencyKind:
        """Return the kind of dependence through a factor that reads these variables."""
        if not reads.any:
            return DependencyKind.CONSTANT
        if not reads.any & ~self._fixed:
            return DependencyKind.FIXED
        return DependencyKind.TUNABLE if not reads.any & ~self._parameters else DependencyKind.DEPENDENT

    def _arithmetic(self, op: int, x: _DependencyVariableSets, y: _DependencyVariableSets) -> _DependencyVariableSets:
        """Return the reads of x + y, x − y, x·y or x/y."""
        if x.dependent == x.any and y.dependent == y.any:  # so does the result: nothing else is to be found out
            every = x.any | y.any
            if every == x.any:
                return x
            return y if every == y.any else _DependencyVariableSets(every, every, every, every)
        if op == Op.MUL:
            product = x.with_minimum_kind(self._factor(y)) | y.with_minimum_kind(self._factor(x))
            both = x.any & y.any
            return _DependencyVariableSets(
                product.any, product.fixed | both, product.tunable | both, product.dependent | both
            )
        return self._linear(x, y) if op == Op.DIV else x | y

    def _node(self, op: Op, operands: list[_DependencyVariableSets]) -> _DependencyVariableSets:
        """Return the reads of a node: linear in the branches of a selection, no better than dependent elsewhere."""
        if op is Op.NEG:
            return operands[0]
        if op is Op.SELECT:
            return self._linear(operands[1] | operands[2], operands[0])
        return _unite_variable_sets(operands).with_minimum_kind(DependencyKind.DEPENDENT)

    def _linear(self, linear: _DependencyVariableSets, factor: _DependencyVariableSets) -> _DependencyVariableSets:
        """Return reads of a product: linear in some variables, with a factor of others; common ones are dependent."""
        return linear.with_minimum_kind(self._factor(factor)) | factor.with_minimum_kind(DependencyKind.DEPENDENT)

    def _block(self, index: int, reads: dict[int, _DependencyVariableSets]) -> _DependencyVariableSets:
        """Return the reads of a block's solution: linear in the right side, ``dependent`` on matrix and body."""
        block = self._program.blocks[index]
        if block.kind == "newton":
            return _unite_variable_sets(reads[node] for node in block.operands).with_minimum_kind(
                DependencyKind.DEPENDENT
            )
        factor = self._program.blocks[block.factor]
        return self._linear(
            _unite_variable_sets(reads[node] for node in block.operands),
            _unite_variable_sets(reads[node] for node in factor.operands),
        )

    def iterate_named_dependencies(self, reads: _DependencyVariableSets) -> Iterator[ResultDependency]:
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


def _unite_variable_sets(several: Iterable[_DependencyVariableSets]) -> _DependencyVariableSets:
    """Return everything that several results read, each variable with its strongest kind."""
    result = _DependencyVariableSets()
    for reads in several:
        result |= reads
    return result


def count_operations(program: ScalarProgram, entry: str) -> Counter[str]:
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
            counts.update(count_solve_operations(block.kind, block.size))
    return Counter({name: counts[name] for name in sorted(counts) if counts[name]})


def _count_newton_operations(body: ScalarProgram) -> Counter[str]:
    """Count the operations of one Newton iteration by kind: residual and step, shared nodes once."""
    results = (*body.entries["residual"].results, *body.entries["step"].results)
    once = dataclasses.replace(body, entries={"once": ProgramEntryPoint("once", tuple(map(str, results)), results)})
    return count_operations(once, "once")


def count_solve_operations(kind: str, n: int) -> dict[str, int]:
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
