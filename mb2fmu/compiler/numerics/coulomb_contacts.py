"""Contacts with Coulomb's friction as nodes: find which stick, slide or open, by enumeration of all modes.

The same problem at two levels: of forces, where y are accelerations of gaps and slip, and of impulses, where y are the
rates behind an impact. With the normal and tangential parts N, T of each contact, y = q + W (N, T) and

    y_n >= 0,  N >= F,  y_n (N - F) = 0       F: what it is at least, 0 but for restitution by Poisson's law
    T = -mu N sense(y_t),  |T| <= mu N where y_t = 0

each contact has the modes open, stick, slide one way, slide the other way. Of each combination the unknown parts follow
from a small linear system, and its merit is the smallest of all that must not be negative. The combination of the
largest merit is taken. None that fits, or two that fit and move differently, are Painleve's paradox, and are reported.

Source: Pfeiffer and Glocker, Multibody Dynamics with Unilateral Contacts, 1996, ch. 5 and 8; Stewart, SIAM Review 42
(2000) 3-39, section 5.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from mb2fmu.compiler.numerics.frictionless_impacts_and_resting_forces import solve_small_linear_system
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.scalar_program import Op

NodeMatrix = list[list[int]]

_EXCLUDED_MERIT = -1e300  # merit of what is excluded
_DIAGONAL_REGULARIZATION = (
    1e-9  # to diagonals: where rows say the same, modes are distinguished by what is nearly the least norm
)
_MERIT_TOLERANCE = 1e-9  # of the size of q, by which a merit may be negative
_UNIQUENESS_TOLERANCE = 1e-6  # of the size of q, by which another solution must fit and differ


@dataclass(frozen=True, slots=True)
class _CoulombContactMode:
    """Mode of one contact.

    Attributes:
        pressed: y_n = 0; else N is what it is at least.
        stuck: y_t = 0.
        sense: Of slip, 1 or -1; 0 where it sticks or is open.
    """

    pressed: bool
    stuck: bool = False
    sense: int = 0


_OPEN_MODE = _CoulombContactMode(pressed=False)
_FRICTIONLESS_MODES = (_CoulombContactMode(pressed=True), _OPEN_MODE)
_FRICTION_MODES = (
    _CoulombContactMode(pressed=True, stuck=True),
    _CoulombContactMode(pressed=True, sense=1),
    _CoulombContactMode(pressed=True, sense=-1),
    _OPEN_MODE,
)
_FRICTION_MODES_WITH_LEAST_FORCE = (
    _CoulombContactMode(pressed=False, stuck=True), _CoulombContactMode(pressed=False, sense=1),
    _CoulombContactMode(pressed=False, sense=-1), *_FRICTION_MODES[:3],
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CoulombContactProblem:
    """Contacts at one level (forces or impulses), as nodes.

    Attributes:
        W: Shape (k + f, k + f): normals of all contacts, then tangents of those with friction.
        q: Shape (k + f,).
        tangents: Of each contact the number of its tangent among the rows, or -1.
        coefficients: mu of those with friction.
        participates: Truth: whether a contact takes part; others are open.
        known: Of those with friction 1 or -1 where the sense of slip is known, 0 where it follows.
        now: Modes at present, of each contact 1 where it is pressed, then of those with friction the sense: this
            combination is known to be wrong. None where all may be right.
        least: F of each contact; None: 0.
    """

    W: NodeMatrix
    q: Sequence[int]
    tangents: Sequence[int]
    coefficients: Sequence[int]
    participates: Sequence[int]
    known: Sequence[int]
    now: tuple[Sequence[int], Sequence[int]] | None = None
    least: Sequence[int] | None = None


@dataclass(frozen=True, slots=True)
class ChosenContactModes:
    """Chosen modes, as nodes.

    Attributes:
        pressed: Of each contact, 1 or 0.
        stuck: Of those with friction, 1 or 0.
        senses: Of those with friction.
        fits: Positive if they are right.
        uniqueness_merit: Positive if no other motion is right.
    """

    pressed: list[int]
    stuck: list[int]
    senses: list[int]
    fits: int
    uniqueness_merit: int


def choose_contact_modes(b: ProgramBuilder, problem: CoulombContactProblem) -> ChosenContactModes:
    """Return the modes of all contacts, at most three, by Coulomb's law."""
    zero, one = b.constant(0.0), b.constant(1.0)
    size = b.sum(b.select(p, b.unary(Op.ABS, problem.q[i]), zero) for i, p in _participating_rows(problem))
    tried = [*_enumerate_mode_combinations(b, problem)]
    merit, place = b.constant(2 * _EXCLUDED_MERIT), zero
    for number, (_, fit, _) in enumerate(tried):
        better = b.binary(Op.LT, merit, fit)  # a singular mode has no number, and is not better
        merit = b.select(better, fit, merit)
        place = b.select(better, b.constant(float(number)), place)
    taken = [b.binary(Op.EQ, place, b.constant(float(number))) for number in range(len(tried))]

    def of_taken(values: Sequence[int]) -> int:
        """Select the value of the combination of modes that was taken."""
        found = values[0]
        for here, value in zip(taken[1:], values[1:], strict=True):
            found = b.select(here, value, found)
        return found

    y = [of_taken([rates[row] for _, _, rates in tried]) for row in range(len(problem.q))]
    margin = b.add(b.mul(b.constant(_UNIQUENESS_TOLERANCE), size), b.constant(1e-300))
    other = zero
    for _, fit, rates in tried:
        apart = zero
        for row, p in _participating_rows(problem):
            apart = b.binary(Op.MAX, apart, b.select(p, b.unary(Op.ABS, b.sub(rates[row], y[row])), zero))
        differs = b.binary(Op.AND, b.binary(Op.LT, margin, fit), b.binary(Op.LT, margin, apart))
        other = b.select(differs, one, other)
    modes = [combination for combination, _, _ in tried]
    with_friction = [k for k, tangent in enumerate(problem.tangents) if tangent >= 0]

    def constants(part: str, k: int) -> int:
        return of_taken([b.constant(float(getattr(combination[k], part))) for combination in modes])

    return ChosenContactModes(
        [constants("pressed", k) for k in range(len(problem.tangents))],
        [constants("stuck", k) for k in with_friction],
        [constants("sense", k) for k in with_friction],
        b.sum([merit, b.mul(b.constant(_MERIT_TOLERANCE), size), b.constant(1e-300)]),
        b.sub(b.constant(0.5), other),
    )


def _format_painleve_paradox(names: str, *, others: bool) -> str:
    """Return Painlevé's paradox as a clause.

    Args:
        names: Of the contacts.
        others: Whether there is more than one solution; else there is none.
    """
    how = "more than one motion agrees" if others else "no motion agrees"
    return f"{how} with Coulomb's friction of {names} (Painleve's paradox)"


def require_no_painleve_paradox(b: ProgramBuilder, chosen: ChosenContactModes, names: str, due: int) -> list[int]:
    """Return which contacts are pressed; NaN and the reason where Painlevé's paradox is met and ``due`` is true.

    Args:
        b: Takes the nodes.
        chosen: The modes.
        names: Of the contacts.
        due: Truth: whether the modes count.
    """
    one, zero = b.constant(1.0), b.constant(0.0)
    pressed = chosen.pressed
    for node, others in ((chosen.fits, False), (chosen.uniqueness_merit, True)):
        counts = b.select(due, node, one)
        b.require_domain(counts, _format_painleve_paradox(names, others=others))
        right = b.binary(Op.LT, zero, counts)
        pressed = [b.select(right, each, b.constant(float("nan"))) for each in pressed]
    return pressed


def _participating_rows(problem: CoulombContactProblem) -> Iterator[tuple[int, int]]:
    """Yield rows, and whether they count."""
    for k, tangent in enumerate(problem.tangents):
        yield k, problem.participates[k]
        if tangent >= 0:
            yield tangent, problem.participates[k]


def _enumerate_mode_combinations(
    b: ProgramBuilder, problem: CoulombContactProblem
) -> Iterator[tuple[tuple[_CoulombContactMode, ...], int, list[int]]]:
    """Yield all combinations: modes, merit, y."""
    with_friction = _FRICTION_MODES if problem.least is None else _FRICTION_MODES_WITH_LEAST_FORCE
    choices = [with_friction if tangent >= 0 else _FRICTIONLESS_MODES for tangent in problem.tangents]
    for combination in product(*choices):
        yield combination, *_evaluate_mode_combination(b, problem, combination)


def _evaluate_mode_combination(
    b: ProgramBuilder, problem: CoulombContactProblem, modes: Sequence[_CoulombContactMode]
) -> tuple[int, list[int]]:
    """Return merit and y of one combination."""
    zero = b.constant(0.0)
    with_friction = [k for k, tangent in enumerate(problem.tangents) if tangent >= 0]
    mu = dict(zip(with_friction, problem.coefficients, strict=True))
    parts = _contact_forces(b, problem, modes, mu)
    W, n = problem.W, len(problem.q)
    y = [
        b.sum([problem.q[row], *(b.mul(W[row][j], parts[j]) for j in range(n) if parts[j] != zero)]) for row in range(n)
    ]
    merit = b.constant(-2 * _EXCLUDED_MERIT)
    for k, (mode, present) in enumerate(zip(modes, problem.participates, strict=True)):
        tests = [*_mode_inequalities(b, problem, k, mode, (parts, y), mu.get(k, zero))]
        if k in mu:
            known = problem.known[with_friction.index(k)]
            right = b.binary(Op.EQ, known, b.constant(float(mode.sense)))
            free = b.binary(Op.EQ, known, zero)
            tests = [
                b.select(b.binary(Op.OR, free, right), test, b.constant(_EXCLUDED_MERIT)) if mode.pressed else test
                for test in tests
            ]
        worst = tests[0]
        for test in tests[1:]:
            worst = b.binary(Op.MIN, worst, test)
        absent = b.constant(_EXCLUDED_MERIT if mode.pressed or mode.stuck or mode.sense else -_EXCLUDED_MERIT)
        merit = b.binary(Op.MIN, merit, b.select(present, worst, absent))
    if problem.now is None:
        return merit, y
    same = b.constant(1.0)
    for k, mode in enumerate(modes):
        same = b.binary(Op.AND, same, b.binary(Op.EQ, problem.now[0][k], b.constant(float(mode.pressed))))
    for place, k in enumerate(with_friction):
        same = b.binary(Op.AND, same, b.binary(Op.EQ, problem.now[1][place], b.constant(float(modes[k].sense))))
    return b.select(same, b.constant(_EXCLUDED_MERIT), merit), y


def _contact_forces(
    b: ProgramBuilder, problem: CoulombContactProblem, modes: Sequence[_CoulombContactMode], mu: dict[int, int]
) -> list[int]:
    """Return N and T of one combination, row by row."""
    zero, W, n = b.constant(0.0), problem.W, len(problem.q)
    parts = [zero] * n
    ratio = {k: b.mul(b.constant(-float(mode.sense)), mu[k]) for k, mode in enumerate(modes) if mode.sense}
    for k, mode in enumerate(modes):
        if not mode.pressed and problem.least is not None:
            parts[k] = problem.least[k]
            if k in ratio:
                parts[problem.tangents[k]] = b.mul(ratio[k], parts[k])
    rows: list[int] = []
    for k, mode in enumerate(modes):
        rows += [k] * mode.pressed + [problem.tangents[k]] * mode.stuck

    def column(row: int, unknown: int) -> int:
        """Return the contribution of an unknown to a row: a normal force brings its friction along."""
        if unknown not in ratio:
            return W[row][unknown]
        return b.add(W[row][unknown], b.mul(ratio[unknown], W[row][problem.tangents[unknown]]))

    def entry(i: int, j: int) -> int:
        whole = column(i, j)
        return (
            b.add(whole, b.mul(b.constant(_DIAGONAL_REGULARIZATION), W[i][i])) if i == j and len(modes) > 1 else whole
        )

    right = [
        b.neg(b.sum([problem.q[i], *(b.mul(W[i][j], parts[j]) for j in range(n) if parts[j] != zero)])) for i in rows
    ]
    found = solve_small_linear_system(b, [[entry(i, j) for j in rows] for i in rows], right)
    for row, value in zip(rows, found, strict=True):
        parts[row] = value
        if row in ratio:
            parts[problem.tangents[row]] = b.mul(ratio[row], value)
    return parts


def _mode_inequalities(
    b: ProgramBuilder,
    problem: CoulombContactProblem,
    k: int,
    mode: _CoulombContactMode,
    found: tuple[Sequence[int], Sequence[int]],
    mu: int,
) -> Iterator[int]:
    """Yield the quantities of one contact that must not be negative, in the unit of y."""
    parts, y = found
    W, tangent = problem.W[k][k], problem.tangents[k]
    if mode.pressed:
        least = problem.least[k] if problem.least is not None else b.constant(0.0)
        yield b.mul(W, b.sub(parts[k], least))
    else:
        yield y[k]
    if mode.stuck:
        yield b.mul(W, b.sub(b.mul(mu, parts[k]), b.unary(Op.ABS, parts[tangent])))
    elif mode.sense:
        yield b.select(
            b.binary(Op.EQ, problem.known[_friction_index(problem, k)], b.constant(0.0)),
            b.mul(b.constant(float(mode.sense)), y[tangent]),
            b.constant(-_EXCLUDED_MERIT),
        )


def _friction_index(problem: CoulombContactProblem, k: int) -> int:
    """Return a contact's place among those with friction."""
    return sum(tangent >= 0 for tangent in problem.tangents[:k])
