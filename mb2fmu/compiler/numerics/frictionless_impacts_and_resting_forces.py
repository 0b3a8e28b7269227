"""Impulses and forces of unilateral contacts as nodes; ``docs/explanation/impacts.md`` derives them.

All are in terms of W = G M^-1 G^T, in which M^-1 respects the constraints of the mechanism: what an impulse at one
contact changes the gaps' rates by. Comparisons here are made where they are evaluated: they are no switches.

Source: Pfeiffer and Glocker: Multibody Dynamics with Unilateral Contacts, 1996, ch. 6 and 8; Murty: Linear
Complementarity, 1988, ch. 1 (complementary cones).

Rows that are held or released, as nodes: W z = r over the held ones, z = 0 at the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from mb2fmu.compiler.numerics.linear_solve import SparselyOrderedSystem
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.scalar_program import Op

NodeMatrix = list[list[int]]
_SHARED_FORCE_REGULARIZATION = 1e-7  # of matrices with a unit diagonal
_FILTER_COEFFICIENTS = (3.0, 6.0, 10.0, 15.0)
"""Of (1 − e)⁻³ from e on."""


class ActiveRowSystem:
    """W z = r over the rows that are held.

    Where rows are redundant (the legs of a table) z is the one of least norm, each entry over the square root of its
    own W.

    Args:
        builder: Takes the nodes.
        W: Shape (k, k), symmetric.
        held: Truth.
        name: What is solved for.
    """

    def __init__(self, builder: ProgramBuilder, W: NodeMatrix, held: Sequence[int], name: str) -> None:
        b, n = builder, len(held)
        zero, one = b.constant(0.0), b.constant(1.0)
        self._builder, self._W, self._held = b, W, held
        if n == 1:
            return
        self._scales = scales = [b.div(one, b.unary(Op.SQRT, W[k][k])) for k in range(n)]
        scaled = [
            [
                one
                if i == j
                else b.select(held[i], b.select(held[j], b.mul(b.mul(scales[i], scales[j]), W[i][j]), zero), zero)
                for j in range(n)
            ]
            for i in range(n)
        ]
        self._system = _LeastNormForces(b, scaled, name)

    def solve(self, right: Sequence[int]) -> list[int]:
        """Return z for right-hand sides; those of released rows do not count."""
        b, zero = self._builder, self._builder.constant(0.0)
        if len(right) == 1:
            return [b.select(self._held[0], b.div(right[0], self._W[0][0]), zero)]
        both = zip(self._held, self._scales, right, strict=True)
        found = self._system.solve([b.select(held, b.mul(scale, value), zero) for held, scale, value in both])
        # a released row that nothing can move has W = 0, perhaps less by round-off: no scale, and no number
        each = zip(self._held, self._scales, found, strict=True)
        return [b.select(held, b.mul(scale, value), zero) for held, scale, value in each]


class _LeastNormForces:
    """S y = r for S with a unit diagonal; of least norm where S is singular.

    With T = (S + ε)⁻¹ S and E = ε (S + ε)⁻¹ = 1 − T, both computed,

        y = T (S + ε)⁻¹ T (1 + 3 E + 6 E² + 10 E³ + 15 E⁴) r,      (1 − e)³ (1 + 3 e + … + 15 e⁴) = 1 − 21 e⁵ + …

    so that next to nothing is missing where rows are independent: with ε = 1e-7, 2e-9 at an eigenvalue of 1e-5. Along
    redundant rows each T leaves round-off over ε: the first 1e-9 of r, which the solve makes 1e-2, of which the second
    leaves nothing. So single forces have nine digits, and so have their derivatives by what redundant rows contradict
    each other in (the values at which latches hold one motion). A solve as the last would leave round-off over ε.
    """

    def __init__(self, builder: ProgramBuilder, S: NodeMatrix, name: str) -> None:
        self._builder, self._S = builder, S
        epsilon = self._epsilon = builder.constant(_SHARED_FORCE_REGULARIZATION)
        regular = [list(row) for row in S]
        for i, row in enumerate(regular):
            row[i] = builder.add(S[i][i], epsilon)
        self._system = SparselyOrderedSystem(builder, regular, name)

    def solve(self, right: Sequence[int]) -> list[int]:
        """Return y."""
        b = self._builder
        r, power = list(right), list(right)
        for coefficient in _FILTER_COEFFICIENTS:
            power = self._system.solve([b.mul(self._epsilon, x) for x in power])
            r = [b.add(x, b.mul(b.constant(coefficient), y)) for x, y in zip(r, power, strict=True)]
        filtered = self._system.solve(self._system.solve(self._multiply(r)))
        return self._system.solve(self._multiply(filtered))

    def _multiply(self, x: Sequence[int]) -> list[int]:
        """Return S x."""
        return [self._builder.dot(row, x) for row in self._S]


@dataclass(frozen=True, slots=True)
class FrictionlessImpactProblem:
    """Quantities of contacts just before an impact: nodes, one per contact.

    Attributes:
        W: Shape (k, k), symmetric.
        rates: Of the gaps.
        closed: Truth.
        resting: 1 or 0.
        restitution: Coefficients.
        rest_below: Speeds.
        settled: Speeds at which a resting contact must approach for another impact, or part to open.
    """

    W: NodeMatrix
    rates: Sequence[int]
    closed: Sequence[int]
    resting: Sequence[int]
    restitution: Sequence[int]
    rest_below: Sequence[int]
    settled: Sequence[int]


def solve_sequential_impulses(b: ProgramBuilder, impact: FrictionlessImpactProblem) -> tuple[list[int], list[int]]:
    """Return impulses and resting contacts: approaching contacts have their impacts one by one, in order."""
    zero = b.constant(0.0)
    impulses: list[int] = []
    rests = []
    for k in range(len(impact.rates)):
        v = b.sum([impact.rates[k], *(b.mul(impact.W[k][j], impulse) for j, impulse in enumerate(impulses))])
        quiet = b.add(v, b.mul(impact.settled[k], impact.resting[k]))
        hit = b.select(impact.closed[k], b.binary(Op.LT, quiet, zero), zero)
        e, plastic = _effective_restitution(b, impact, k, v)
        whole = b.div(b.mul(b.add(b.constant(1.0), e), b.neg(v)), impact.W[k][k])
        impulses.append(b.select(hit, whole, zero))
        rests.append(b.select(hit, plastic, impact.resting[k]))
    return impulses, _find_contacts_at_rest(b, impact, impulses, rests)


def solve_simultaneous_impulses(
    b: ProgramBuilder, impact: FrictionlessImpactProblem, *, poisson: bool
) -> tuple[list[int], list[int]]:
    """Return impulses of all closed contacts together, and the contacts that rest after them.

    Newton: v+ + e v- >= 0 is complementary to the impulses. Poisson: those of compression end all approach, those of
    restitution are at least e times as large, and leave no approach.
    """
    zero, one = b.constant(0.0), b.constant(1.0)
    n = len(impact.rates)
    laws = [_effective_restitution(b, impact, k, impact.rates[k]) for k in range(n)]
    W = [
        [
            b.select(impact.closed[i], b.select(impact.closed[j], impact.W[i][j], zero), zero)
            if i != j
            else b.select(impact.closed[i], impact.W[i][i], one)
            for j in range(n)
        ]
        for i in range(n)
    ]
    v = [b.select(impact.closed[k], impact.rates[k], one) for k in range(n)]
    if poisson:
        pressed = solve_complementarity(b, W, v)
        back = [b.mul(e, impulse) for (e, _), impulse in zip(laws, pressed, strict=True)]
        both = [b.add(x, y) for x, y in zip(pressed, back, strict=True)]
        rest = solve_complementarity(b, W, [b.add(v[k], b.dot(W[k], both)) for k in range(n)])
        impulses = [b.add(x, y) for x, y in zip(both, rest, strict=True)]
    else:
        incoming = [b.binary(Op.MAX, b.neg(rate), zero) for rate in v]
        impulses = solve_complementarity(b, W, [b.sub(v[k], b.mul(laws[k][0], incoming[k])) for k in range(n)])
    rests = [
        b.select(b.binary(Op.LT, zero, impulse), b.binary(Op.MAX, plastic, was), was)
        for impulse, (_, plastic), was in zip(impulses, laws, impact.resting, strict=True)
    ]
    return impulses, _find_contacts_at_rest(b, impact, impulses, rests)


def _effective_restitution(b: ProgramBuilder, impact: FrictionlessImpactProblem, k: int, v: int) -> tuple[int, int]:
    """Return the effective restitution for a rate before the impact (0 if the contact rests then), and if it rests."""
    plastic = b.binary(Op.LT, b.mul(impact.restitution[k], b.neg(v)), impact.rest_below[k])
    return b.select(plastic, b.constant(0.0), impact.restitution[k]), plastic


def _find_contacts_at_rest(
    b: ProgramBuilder, impact: FrictionlessImpactProblem, impulses: Sequence[int], rests: Sequence[int]
) -> list[int]:
    """Return 1 for resting contacts that no impulse parts; earlier drift does not count as parting."""
    found = []
    for k, resting in enumerate(rests):
        drifted = b.select(impact.resting[k], b.binary(Op.MAX, impact.rates[k], b.constant(0.0)), b.constant(0.0))
        v = b.sum([impact.rates[k], *(b.mul(impact.W[k][j], impulse) for j, impulse in enumerate(impulses))])
        thrown = b.binary(Op.LT, b.add(drifted, impact.settled[k]), v)
        found.append(b.select(thrown, b.constant(0.0), resting))
    return found


def solve_complementarity(b: ProgramBuilder, W: NodeMatrix, q: Sequence[int]) -> list[int]:
    """Solve z >= 0, w = W z + q >= 0, z w = 0 by entries: try all modes and take the best fit.

    Args:
        b: Takes the nodes.
        W: Shape (k, k), symmetric positive semidefinite, k <= 3.
        q: Shape (k,).
    """
    best: list[int] = []
    merit = -1
    for z, w in _enumerate_modes(b, W, q):
        fits = [*(b.mul(W[k][k], x) for k, x in z.items()), *w]
        worst = fits[0]
        for other in fits[1:]:
            worst = b.binary(Op.MIN, worst, other)
        values = [z.get(k, b.constant(0.0)) for k in range(len(q))]
        if merit < 0:
            best, merit = values, worst
            continue
        better = b.binary(Op.LT, merit, worst)  # a singular mode has no number, and is not better
        best = [b.select(better, new, old) for new, old in zip(values, best, strict=True)]
        merit = b.select(better, worst, merit)
    return best


def _enumerate_modes(b: ProgramBuilder, W: NodeMatrix, q: Sequence[int]) -> Iterator[tuple[dict[int, int], list[int]]]:
    """Yield for each set of entries with w = 0 their z, and w of the others."""
    n = len(q)
    for size in range(n + 1):
        for chosen in combinations(range(n), size):
            solution = solve_small_linear_system(
                b, [[W[i][j] for j in chosen] for i in chosen], [b.neg(q[i]) for i in chosen]
            )
            z = dict(zip(chosen, solution, strict=True))
            others = [i for i in range(n) if i not in chosen]
            yield z, [b.sum([q[i], *(b.mul(W[i][j], x) for j, x in z.items())]) for i in others]


def solve_small_linear_system(b: ProgramBuilder, A: NodeMatrix, right: Sequence[int]) -> list[int]:
    """Solve a small system by elimination in fixed order; NaN where it is singular, without a failure."""
    if not right:
        return []
    ratios = [b.div(A[i][0], A[0][0]) for i in range(1, len(A))]
    smaller = [
        [b.sub(A[i + 1][j + 1], b.mul(ratio, A[0][j + 1])) for j in range(len(ratios))]
        for i, ratio in enumerate(ratios)
    ]
    rest = solve_small_linear_system(
        b, smaller, [b.sub(right[i + 1], b.mul(ratio, right[0])) for i, ratio in enumerate(ratios)]
    )
    first = b.sub(right[0], b.dot(A[0][1:], rest)) if rest else right[0]
    return [b.div(first, A[0][0]), *rest]


def solve_resting_contact_forces(
    b: ProgramBuilder, W: NodeMatrix, accelerations: Sequence[int], resting: Sequence[int]
) -> list[int]:
    """Return the forces that keep resting contacts at zero gap acceleration; 0 at the others.

    Args:
        b: Takes the nodes.
        W: Shape (k, k).
        accelerations: Of the gaps without these forces.
        resting: Truth.
    """
    return ActiveRowSystem(b, W, resting, "the forces of resting contacts").solve(
        [b.neg(each) for each in accelerations]
    )
