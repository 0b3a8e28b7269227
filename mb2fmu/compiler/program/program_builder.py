"""ProgramBuilder: make the nodes of a Program, fold constants, and share equal nodes.

Every method takes and gives node ids. Laws of folding, all exact in IEEE arithmetic unless said otherwise:

    x + 0, x − 0, 1·x, x/1, −(−x)      → x
    x − x → 0, x/x → 1, 0·x → 0        meant, although not so for x = inf or NaN
    a + (−b) → a − b, (−a)·b → −(a·b)  signs move outwards until a sum absorbs them
    b − a where a − b is known         → −(a − b)
    c1·(c2·x) → (c1·c2)·x              one rounding moves
    b·(a·c) where a·(b·c) is known     → that, likewise
    x/d + y/d → (x + y)/d              in sums, likewise; common factors leave them too (``_factor_out_common_terms``)
    sin(−x) → −sin x, cos(−x) → cos x  likewise the other odd and even functions
    x**n → products by squaring, x**(n/2) → powers of a square root, x**−n → 1/x**n

Operations on constants are rounded correctly, whatever the C library of the machine that exports. Zero has no sign.

Sums with common factors and divisors taken out: a·x + b·x + c/y + d/y → (a + b)·x + (c + d)/y.

SymPy's equations multiply the same sines and speeds into many terms; taking the most frequent factor out again and
again nearly halves the operations of a spatial chain of joints (7,650 → 4,430 at 6 joints with general inertia).
"""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import mpmath
import numpy as np

from mb2fmu.compiler.arithmetic.python_runtime import IEEE
from mb2fmu.compiler.program.growing_scalar_graph import ScalarGraphWithSwitches
from mb2fmu.compiler.program.scalar_program import (
    EquationSolveBlock,
    Op,
    PiecewisePolynomial,
    ProgramEntryPoint,
    ProgramVariableLayout,
    ScalarizedLinearSystem,
    ScalarProgram,
)
from mb2fmu.model.scalar_operation_table import OPERATIONS, find_operations_by_attribute

_MAX_SUM_LENGTH = 4_096  # the search is quadratic in the worst case: longer sums are added as they are


_ODD_FUNCTIONS, _EVEN_FUNCTIONS = (
    find_operations_by_attribute(lambda row: row.parity == "odd"),
    find_operations_by_attribute(lambda row: row.parity == "even"),
)
_COMMUTATIVE_OPERATIONS = find_operations_by_attribute(lambda row: row.symmetric)
# members of an enumeration are slow to look up, and these are requested at every node
_ADD, _SUB, _MUL, _DIV, _NEG = int(Op.ADD), int(Op.SUB), int(Op.MUL), int(Op.DIV), int(Op.NEG)
_MAX_FACTORS = 16  # a product of products unfolds without end
_MAX_PRODUCT_SIZE = 64  # higher powers are left to pow()


class _FactoredTerm(NamedTuple):
    """``sign`` · the product of ``factors``, which is ``node`` if that is known."""

    sign: int
    factors: list[int]
    node: int | None = None


def _factor_out_common_terms(b: ProgramBuilder, plus: Sequence[int], minus: Sequence[int]) -> int:
    """Return the sum of nodes less the sum of others, common factors taken out.

    Args:
        b: The builder.
        plus: Nodes that are no negations.
        minus: Likewise.
    """
    if not 2 <= len(plus) + len(minus) <= _MAX_SUM_LENGTH:
        return b.plain_sum(plus, minus)
    plus, minus = _join_quotients(b, plus, minus)
    signed = [*((1, node) for node in plus), *((-1, node) for node in minus)]
    return _factor_terms(b, [_FactoredTerm(sign, b.factors(node), node) for sign, node in signed])


def _join_quotients(b: ProgramBuilder, plus: Sequence[int], minus: Sequence[int]) -> tuple[list[int], list[int]]:
    """Join quotients with the same divisor: x/d + y/d → (x + y)/d."""
    quotients: dict[int, list[tuple[int, int, int]]] = {}  # by divisor: side, node, and what is divided
    rest: tuple[list[int], list[int]] = ([], [])
    for side, nodes in enumerate((plus, minus)):
        for node in nodes:
            quotient = b.quotient(node)
            if quotient is None:
                rest[side].append(node)
            else:
                quotients.setdefault(quotient[1], []).append((side, node, quotient[0]))
    for divisor, members in quotients.items():
        if len(members) == 1:
            side, node, _ = members[0]
            rest[side].append(node)
            continue
        dividends: tuple[list[int], list[int]] = ([], [])
        for side, _, dividend in members:
            dividends[side].append(dividend)
        rest[0].append(b.div(b.sum(*dividends), divisor))
    return rest


def _factor_terms(b: ProgramBuilder, terms: list[_FactoredTerm]) -> int:
    """Return the sum of terms, taking out the most frequent common factors first, recursively."""
    plus: list[int] = []
    minus: list[int] = []
    counts = _count_shared_factors(b, terms)
    while (shared := _most_frequent_factor(b, counts)) is not None:
        inside = [term for term in terms if shared in term.factors]
        terms = [term for term in terms if shared not in term.factors]
        for term in inside:
            for factor in set(term.factors) & counts.keys():
                counts[factor] -= 1
        common = _common_factors(inside)
        plus.append(b.mul(b.product(common), _factor_terms(b, [_divide_term(term, common) for term in inside])))
    for term in terms:
        node = b.product(term.factors) if term.node is None else term.node
        (plus if term.sign > 0 else minus).append(node)
    return b.plain_sum(plus, minus)


def _count_shared_factors(b: ProgramBuilder, terms: Sequence[_FactoredTerm]) -> dict[int, int]:
    """Count the terms that have each factor, for factors of more than one term; numbers do not count."""
    counts: dict[int, int] = {}
    for term in terms:
        for factor in set(term.factors):
            counts[factor] = counts.get(factor, 0) + 1
    return {factor: count for factor, count in counts.items() if count > 1 and b.variability_rank(factor) > 0}


def _most_frequent_factor(b: ProgramBuilder, counts: Mapping[int, int]) -> int | None:
    """Return the factor in most terms; of several the most variable one, so that the rest may be constant."""
    most = max(counts.values(), default=0)
    return (
        max((b.variability_rank(node), node) for node, count in counts.items() if count == most)[1]
        if most > 1
        else None
    )


def _common_factors(terms: Sequence[_FactoredTerm]) -> list[int]:
    """Return the factors that all terms have; as one product, its constant part becomes one number."""
    common = Counter(terms[0].factors)
    for term in terms[1:]:
        common &= Counter(term.factors)
    return list(common.elements())


def _divide_term(term: _FactoredTerm, taken: Sequence[int]) -> _FactoredTerm:
    """Return a term with the given factors removed; its node is unknown afterwards."""
    factors = list(term.factors)
    for factor in taken:
        factors.remove(factor)
    return _FactoredTerm(term.sign, factors)


class ProgramBuilder(ScalarGraphWithSwitches):
    """Builds one Program.

    Args:
        layout: Names of what the program reads.
    """

    def __init__(self, layout: ProgramVariableLayout) -> None:
        super().__init__()
        self.layout = layout
        self._blocks: list[EquationSolveBlock] = []
        self._block_index: dict[EquationSolveBlock, int] = {}
        self._bodies: list[ScalarProgram] = []
        self._systems: dict[ScalarizedLinearSystem, None] = {}
        self._tables: list[PiecewisePolynomial] = []
        self._table_index: dict[PiecewisePolynomial, int] = {}
        self._entries: dict[str, ProgramEntryPoint] = {}
        self._divisors: dict[str, dict[int, str]] = {"pivots": {}, "divisors": {}, "domains": {}}  # node → name
        self._limits: dict[int, int] = {}  # sign → how far it may be exceeded before what sticks breaks away

    def copy(self) -> ProgramBuilder:
        """Return a builder with the same nodes and entry points, which takes further ones of its own."""
        copied, divisors = copy.copy(self), {entry: named.copy() for entry, named in self._divisors.items()}
        containers = {name: value.copy() for name, value in vars(self).items() if isinstance(value, (dict, list))}
        vars(copied).update(containers, _divisors=divisors)
        return copied

    # --- arithmetic --------------------------------------------------------------------------------------------------

    def neg(self, a: int) -> int:
        """Return −a."""
        value = self._value[a]
        if value is not None:
            return self.constant(-value)
        if self._op[a] == _NEG:
            return self._a[a]
        return self._intern(_NEG, a, -1, -1, self._rank[a])

    def add(self, a: int, b: int) -> int:  # noqa: C901, PLR0911 (one law of folding after the other)
        """a + b."""
        x, y = self._value[a], self._value[b]
        if x is not None:
            if y is not None:
                return self.constant(x + y)
            if x == 0.0:
                return b
        elif y == 0.0:
            return a
        negative_a, negative_b = self._op[a] == _NEG, self._op[b] == _NEG
        if negative_a and negative_b:
            return self.neg(self.add(self._a[a], self._a[b]))
        if negative_b:
            return self.sub(a, self._a[b])
        if negative_a:
            return self.sub(b, self._a[a])
        if x is not None and x < 0.0:
            return self.sub(b, self.constant(-x))
        if y is not None and y < 0.0:
            return self.sub(a, self.constant(-y))
        if a == b:
            return self._scale(2.0, a)
        return self._binary(_ADD, a, b) if a < b else self._binary(_ADD, b, a)

    def sub(self, a: int, b: int) -> int:  # noqa: PLR0911 (one law of folding after the other)
        """a − b."""
        if a == b:
            return self.constant(0.0)
        x, y = self._value[a], self._value[b]
        if x is not None and y is not None:
            return self.constant(x - y)
        if x == 0.0:
            return self.neg(b)
        if y == 0.0:
            return a
        if self._op[b] == _NEG or (y is not None and y < 0.0):
            return self.add(a, self.neg(b))
        if self._op[a] == _NEG or (x is not None and x < 0.0):
            return self.neg(self.add(self.neg(a), b))
        reverse = self._nodes.get((_SUB, b, a, -1))
        return self._binary(_SUB, a, b) if reverse is None else self.neg(reverse)

    def mul(self, a: int, b: int) -> int:
        """Return a·b."""
        x, y = self._value[a], self._value[b]
        if x is not None:
            return self.constant(x * y) if y is not None else self._scale(x, b)
        if y is not None:
            return self._scale(y, a)
        if self._op[a] == _NEG:
            return self.neg(self.mul(self._a[a], b))
        if self._op[b] == _NEG:
            return self.neg(self.mul(a, self._a[b]))
        known = self._known_product(a, b)
        if known is not None:
            return known
        return self._binary(_MUL, a, b) if a < b else self._binary(_MUL, b, a)

    def _known_product(self, a: int, b: int) -> int | None:
        """Return a node that is a·b with the factors of a or b in another order."""
        nodes, op = self._nodes, self._op
        for one, other in ((a, b), (b, a)):
            if op[other] == _MUL:
                x, y = self._a[other], self._b[other]
                for first, last in ((x, y), (y, x)):
                    inner = nodes.get((_MUL, one, first, -1) if one < first else (_MUL, first, one, -1))
                    if inner is not None:
                        known = nodes.get((_MUL, inner, last, -1) if inner < last else (_MUL, last, inner, -1))
                        if known is not None:
                            return known
        return None

    def _scale(self, factor: float, a: int) -> int:  # noqa: PLR0911 (one law of folding after the other)
        """factor·a, where a is no number."""
        if factor == 0.0:
            return self.constant(0.0)
        if factor == 1.0:
            return a
        if factor < 0.0:
            return self.neg(self._scale(-factor, a))
        op = self._op[a]
        if op == _NEG:
            return self.neg(self._scale(factor, self._a[a]))
        if op == _MUL:
            inner = self._value[self._a[a]]
            rest = self._b[a]
            if inner is None:
                inner, rest = self._value[self._b[a]], self._a[a]
            if inner is not None:
                return self._scale(factor * inner, rest)
        if op == _DIV:
            inner = self._value[self._a[a]]
            if inner is not None:
                return self.div(self.constant(factor * inner), self._b[a])
        return self._binary(_MUL, self.constant(factor), a)

    def div(self, a: int, b: int) -> int:  # noqa: C901, PLR0911 (one law of folding after the other)
        """a / b."""
        x, y = self._value[a], self._value[b]
        if x is not None and y is not None:
            return self.constant(_evaluate_operation(Op.DIV, x, y))
        if x == 0.0:
            return a
        if a == b:
            return self.constant(1.0)
        if y is not None:
            if y < 0.0:
                return self.neg(self.div(a, self.constant(-y)))
            if y != 0.0 and math.frexp(y)[0] == 0.5 and 1e-300 < y < 1e300:  # a power of two: exact
                return self._scale(1.0 / y, a)
        if x is not None and x < 0.0:
            return self.neg(self.div(self.constant(-x), b))
        if self._op[a] == _NEG:
            return self.neg(self.div(self._a[a], b))
        if self._op[b] == _NEG:
            return self.neg(self.div(a, self._a[b]))
        if self._op[b] == _DIV and self._value[self._a[b]] == 1.0:
            return self.mul(a, self._b[b])
        return self._binary(_DIV, a, b)

    def power(self, a: int, b: int) -> int:
        """a to the power b; numbers that are multiples of ½ become products, square roots and quotients."""
        exponent = self._value[b]
        if exponent is None or not (abs(exponent) <= _MAX_PRODUCT_SIZE and 2 * exponent == int(2 * exponent)):
            if self._value[a] == 1.0:
                return a
            return self._folded(Op.POW, a, b)
        if exponent < 0:
            return self.div(self.constant(1.0), self.power(a, self.constant(-exponent)))
        whole = int(exponent)
        result = self._whole_power(a, whole)
        return self.mul(result, self.unary(Op.SQRT, a)) if exponent != whole else result

    def _whole_power(self, a: int, exponent: int) -> int:
        """a to a whole power ≥ 0, by squaring: equal squares are shared between powers."""
        result = self.constant(1.0)
        square = a
        while exponent:
            if exponent & 1:
                result = self.mul(result, square)
            exponent >>= 1
            if exponent:
                square = self.mul(square, square)
        return result

    def sum(self, positive: Iterable[int], negative: Iterable[int] = ()) -> int:
        """Return the sum of some nodes less the sum of others, common factors taken out."""
        plus, minus = self._signed(positive, negative)
        count = len(plus) + len(minus)
        if count < 2 or (count == 2 and not self._share_factor(*plus, *minus)):  # most sums
            return self._added(plus, minus)
        return _factor_out_common_terms(self, plus, minus)

    def _share_factor(self, a: int, b: int) -> bool:
        """Return whether a + b can be factored: equal terms, a common factor, or a common divisor."""
        if self._op[a] != _MUL and self._op[b] != _MUL:
            divided = self._op[a] == self._op[b] == _DIV
            return a == b or (divided and self._b[a] == self._b[b])
        return not set(self.factors(a)).isdisjoint(self.factors(b))

    def plain_sum(self, positive: Iterable[int], negative: Iterable[int] = ()) -> int:
        """Return the sum of some nodes less the sum of others, in an order that lets equal partial sums be shared."""
        return self._added(*self._signed(positive, negative))

    def _added(self, plus: list[int], minus: list[int]) -> int:
        """Return the sum of ``plus`` less the sum of ``minus``, where no term is a negation."""
        result = self.constant(0.0)
        for term in self._ordered(plus or minus):
            result = self.add(result, term)
        if not plus:
            return self.neg(result)
        for term in self._ordered(minus):
            result = self.sub(result, term)
        return result

    def _signed(self, positive: Iterable[int], negative: Iterable[int]) -> tuple[list[int], list[int]]:
        """Return the terms with signs moved outwards: none of them is a negation or zero."""
        op, inner, value = self._op, self._a, self._value
        plus: list[int] = []
        minus: list[int] = []
        for side, other, terms in ((plus, minus, positive), (minus, plus, negative)):
            for term in terms:
                if op[term] == _NEG:
                    other.append(inner[term])
                elif value[term] != 0.0:
                    side.append(term)
        return plus, minus

    def product(self, factors: Iterable[int]) -> int:
        """Return the product of some nodes: numbers first, then factors of parameters only, then the rest."""
        result = self.constant(1.0)
        for factor in self._ordered(list(factors)):
            result = self.mul(result, factor)
        return result

    def factors(self, node: int) -> list[int]:
        """Return nodes whose product the node is; only itself where there would be too many."""
        op = self._op
        if op[node] != _MUL:
            return [node]
        found, stack = [], [self._a[node], self._b[node]]
        while stack:
            last = stack.pop()
            if op[last] == _MUL:
                stack += [self._a[last], self._b[last]]
            else:
                found.append(last)
            if len(found) + len(stack) > _MAX_FACTORS:
                return [node]
        return found

    def quotient(self, node: int) -> tuple[int, int] | None:
        """Return dividend and divisor of a quotient; None for any other node."""
        return (self._a[node], self._b[node]) if self._op[node] == _DIV else None

    def dot(self, left: Sequence[int], right: Sequence[int]) -> int:
        """Return the sum of products of two rows of nodes."""
        return self.sum(self.mul(a, b) for a, b in zip(left, right, strict=True))

    def _ordered(self, nodes: list[int]) -> list[int]:
        """Order summands by depth in the graph, then by number, so that a sum's bits do not depend on their order."""
        return nodes if len(nodes) < 2 else sorted(sorted(nodes), key=self._rank.__getitem__)

    # --- functions ---------------------------------------------------------------------------------------------------

    def unary(self, op: Op, a: int) -> int:  # noqa: PLR0911 (one law of folding after the other)
        """Return a function of one argument."""
        value = self._value[a]
        if op is Op.FROZEN:
            return a if value is not None else self._intern(op, a, -1, -1, self._rank[a])
        if op is Op.NEG:
            return self.neg(a)
        if value is not None:
            return self.constant(_evaluate_operation(op, value))
        inner = self._op[a]
        if inner == _NEG and op in _ODD_FUNCTIONS:
            return self.neg(self.unary(op, self._a[a]))
        if inner == _NEG and op in _EVEN_FUNCTIONS:
            return self.unary(op, self._a[a])
        if inner == op and op in {Op.ABS, Op.NOT, Op.FLOOR, Op.CEIL}:
            return self._a[a] if op is Op.NOT else a
        return self._intern(op, a, -1, -1, self._rank[a])

    def binary(self, op: int, a: int, b: int) -> int:
        """Return an operation with two operands."""
        rule = _ARITHMETIC.get(op)
        return self._folded(Op(op), a, b) if rule is None else rule(self, a, b)

    def _folded(self, op: Op, a: int, b: int) -> int:
        """Return a binary node, folded where constants or equal operands decide it; commutative operands are sorted."""
        x, y = self._value[a], self._value[b]
        if x is not None and y is not None:
            return self.constant(_evaluate_operation(op, x, y))
        if op in _COMMUTATIVE_OPERATIONS and a > b:
            a, b, x, y = b, a, y, x
        if a == b and op in {Op.MIN, Op.MAX, Op.AND, Op.OR}:
            return a
        if a == b and op in {Op.LT, Op.LE, Op.EQ}:
            return self.constant(0.0 if op is Op.LT else 1.0)
        for value, other in ((x, b), (y, a)):
            if value is not None and op is Op.AND:
                return other if value else self.constant(0.0)
            if value is not None and op is Op.OR:
                return self.constant(1.0) if value else other
        return self._binary(int(op), a, b)

    def select(self, condition: int, a: int, b: int) -> int:
        """a where the condition is not 0, else b."""
        value = self._value[condition]
        if value is not None:
            return a if value else b
        if a == b:
            return a
        if self._op[condition] == Op.NOT:
            return self.select(self._a[condition], b, a)
        rank = max(self._rank[condition], self._rank[a], self._rank[b])
        return self._intern(Op.SELECT, condition, a, b, rank)

    def table(self, table: PiecewisePolynomial, order: int, a: int) -> int:
        """Return the derivative of that order of a table at a; beyond the table's degree it is 0."""
        if order >= len(table.coefficients):
            return self.constant(0.0)
        index = self._table_index.setdefault(table, len(self._tables))
        if index == len(self._tables):
            self._tables.append(table)
        return self._intern(Op.TABLE, index, order, a, self._rank[a])

    # --- blocks ------------------------------------------------------------------------------------------------------

    def block(self, block: EquationSolveBlock) -> int:
        """Return the index of a block statement; equal blocks are shared."""
        index = self._block_index.setdefault(block, len(self._blocks))
        if index == len(self._blocks):
            self._blocks.append(block)
        return index

    def solution(self, factor: int, right_hand_side: Sequence[int]) -> list[int]:
        """Return the nodes of the solution of one right-hand side with the factors of a block."""
        if all(self.is_zero(node) for node in right_hand_side):
            return list(right_hand_side)
        factored = self._blocks[factor]
        index = self.block(EquationSolveBlock("solve", factored.size, tuple(right_hand_side), factor, factored.name))
        rank = max(self._rank[node] for node in (*factored.operands, *right_hand_side))
        return [self._intern(Op.BLOCK, index, i, -1, max(rank, 1)) for i in range(factored.size)]

    def require(self, node: int, name: str, *, positive: bool) -> None:
        """Require a node > 0 (entry ``pivots``) or ≠ 0 (``divisors``), else linear system ``name`` is singular."""
        value = self._value[node]
        if value is None or value == 0.0 or (positive and value < 0.0):
            self._divisors["pivots" if positive else "divisors"].setdefault(node, name)

    def require_domain(self, node: int, clause: str) -> None:
        """Require a node > 0 (entry ``domains``); ``clause``, its label, says what has no value elsewhere."""
        if not (self.value(node) or 0.0) > 0.0:
            self._divisors["domains"].setdefault(node, clause)

    def sticking_sign_node(self, argument: int, limit: int) -> int:
        """Return the sign of an argument; while the argument is held at zero, it may be any value up to ± ``limit``.

        Signs of one argument with different limits are different ones: they look at 2, 4, … times the argument.
        """
        while True:
            sign = self.unary(Op.SIGN, argument)
            inner = self._a[sign] if self._op[sign] == Op.NEG else sign
            if self._op[inner] != Op.SIGN or self._limits.setdefault(inner, limit) == limit:
                return self.mark_switch(sign)
            argument = self.mul(self.constant(2.0), argument)

    def record_linear_system(self, system: ScalarizedLinearSystem) -> None:
        """Record that some nodes are the solution of a linear system."""
        self._systems[system] = None

    def newton(
        self, body: ScalarProgram, theta: Sequence[int], guess: Sequence[int], name: str, rows: Sequence[str] = ()
    ) -> list[int]:
        """Return the nodes of the solution y of F(y, theta) = 0.

        Args:
            body: F and its step (see :class:`ScalarProgram`); the same object is stored once.
            theta: One node per parameter of the body.
            guess: Where y starts.
            name: Of what is solved for, for messages.
            rows: Names of the rows of F where they may contradict each other (see :class:`EquationSolveBlock`).
        """
        place = next((i for i, known in enumerate(self._bodies) if known is body), len(self._bodies))
        if place == len(self._bodies):
            self._bodies.append(body)
        operands = (*theta, *guess)
        index = self.block(EquationSolveBlock("newton", len(guess), operands, name=name, body=place, rows=tuple(rows)))
        rank = max((self._rank[node] for node in operands), default=1)
        return [self._intern(Op.BLOCK, index, i, -1, max(rank, 1)) for i in range(len(guess))]

    # --- the whole ---------------------------------------------------------------------------------------------------

    def entry(self, name: str, labels: Sequence[str], results: Sequence[int]) -> None:
        """Declare an entry point."""
        self._entries[name] = ProgramEntryPoint(name, tuple(labels), tuple(results))

    def forget(self, name: str) -> None:
        """Remove an entry point."""
        del self._entries[name]

    def adopt_program(self, program: ScalarProgram) -> None:
        """Take over the nodes of a program with their numbers: they are folded already.

        Args:
            program: With nodes for all results of its blocks; its layout is the beginning of this one's.
        """
        self._tables, self._blocks, self._bodies = list(program.tables), list(program.blocks), list(program.bodies)
        self._table_index = {table: i for i, table in enumerate(self._tables)}
        self._block_index = {block: i for i, block in enumerate(self._blocks)}
        self._adopt_nodes(program)

    def build(self) -> ScalarProgram:
        """Return the program as it stands, with nodes that no entry needs (see ``program_pruning``)."""
        entries = dict(self._entries)
        for entry, named in self._divisors.items():
            if named:
                known = entries.get(entry, ProgramEntryPoint(entry, (), ()))
                together = dict(zip(known.results, known.labels, strict=True)) | named
                entries[entry] = ProgramEntryPoint(entry, tuple(together.values()), tuple(together))
        if self._switches:
            names = tuple(name or f"switch {i}" for i, name in enumerate(self._switches.values()))
            entries["switches"] = ProgramEntryPoint("switches", names, tuple(self._switches))
        kept = self._switches
        pairs = [n for s, limit in self._limits.items() if s in kept and self.value(limit) != 1 for n in (s, limit)]
        if pairs:
            labels = tuple(f"{i}" for i in range(len(pairs)))
            entries["break_away"] = ProgramEntryPoint("break_away", labels, tuple(pairs))
        return ScalarProgram(
            layout=self.layout,
            op=np.array(self._op, dtype=np.uint8),
            a=np.array(self._a, dtype=np.int32),
            b=np.array(self._b, dtype=np.int32),
            c=np.array(self._c, dtype=np.int32),
            constants=np.array(self._values, dtype=np.float64),
            blocks=tuple(self._blocks),
            tables=tuple(self._tables),
            entries=entries,
            bodies=tuple(self._bodies),
            systems=tuple(self._systems),
        )


_B = ProgramBuilder
_ARITHMETIC = {_ADD: _B.add, _SUB: _B.sub, _MUL: _B.mul, _DIV: _B.div, int(Op.POW): _B.power}


def _evaluate_operation(op: Op, *values: float) -> float:
    """Return the operation on numbers: inf and NaN as in IEEE 754, all else rounded to the nearest double."""
    row = OPERATIONS[op]
    with np.errstate(all="ignore"):
        if op is Op.DIV:
            return float(np.float64(values[0]) / np.float64(values[1]))
        result = float(IEEE[row.function](*values))
    if row.exact or not math.isfinite(result) or not all(map(math.isfinite, values)):
        return result
    with mpmath.workprec(160):
        return float(row.digits(*values))
