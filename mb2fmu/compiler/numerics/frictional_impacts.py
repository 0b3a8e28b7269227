"""Impulses of contacts with Coulomb's friction as nodes, by Newton's or by Poisson's restitution.

    Newton    y_n = rate behind + e times the rate before, of what approaches
    Poisson   one problem that ends compression, then one with N >= e times the normal impulse of that

The tangential impulse of each is bounded by mu times its normal one, and has no restitution of its own: what comes to a
stand during an impact sticks, or slides on where that is too much.

Source: Pfeiffer and Glocker, Multibody Dynamics with Unilateral Contacts, 1996, ch. 8.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mb2fmu.compiler.numerics.coulomb_contacts import (
    CoulombContactProblem,
    choose_contact_modes,
    require_no_painleve_paradox,
)
from mb2fmu.compiler.numerics.friction_force_solve import FrictionContactMatrix, FrictionForceSolver
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.scalar_program import Op
from mb2fmu.mechanics.equations.contact_equations import REIMPACT_SPEED_RATIO
from mb2fmu.model.quantity_declarations import MODE_THRESHOLD, RestitutionLaw


@dataclass(frozen=True, slots=True)
class FrictionalImpactProblem:
    """Quantities of contacts just before an impact, as nodes.

    Attributes:
        frictions: W, tangents, coefficients.
        rates: Of the gaps of all contacts, then slip of those with friction.
        resting: 1 or 0, one per contact.
        sliding: Senses of those with friction.
        closed: 1 or 0, one per contact.
        restitution: Coefficients, one per contact.
        rest_below: Speeds, one per contact.
        laws: One per contact.
        names: Of all contacts, for messages.
    """

    frictions: FrictionContactMatrix
    rates: Sequence[int]
    resting: Sequence[int]
    sliding: Sequence[int]
    closed: Sequence[int]
    restitution: Sequence[int]
    rest_below: Sequence[int]
    laws: Sequence[RestitutionLaw]
    names: str


@dataclass(slots=True)
class _ImpactSolution:
    """Result of an impact: impulses row by row, resting contacts, senses of slip."""

    impulses: list[int]
    rests: list[int]
    slides: list[int]


def solve_frictional_impulses(b: ProgramBuilder, impact: FrictionalImpactProblem, *, sequential: bool) -> list[int]:
    """Return impulses row by row, then the contacts that rest after the impact, then senses of slip.

    Args:
        b: Takes the nodes.
        impact: Just before.
        sequential: Each approaching contact has an impact of its own, in order; else all that are closed together.
    """
    count = len(impact.resting)
    found = _ImpactSolution([b.constant(0.0)] * len(impact.rates), [*impact.resting], [*impact.sliding])
    for some in [[k] for k in range(count)] if sequential else [[*range(count)]]:
        _apply_impact(b, impact, some, found)
    W, zero = impact.frictions.W, b.constant(0.0)
    rests = []
    for k in range(count):
        v = b.sum([impact.rates[k], b.dot(W[k], found.impulses)])
        drifted = b.select(impact.resting[k], b.binary(Op.MAX, impact.rates[k], zero), zero)
        thrown = b.binary(
            Op.LT, b.add(drifted, b.mul(b.constant(float(REIMPACT_SPEED_RATIO)), impact.rest_below[k])), v
        )
        rests.append(b.select(thrown, zero, found.rests[k]))
    with_friction = [k for k, tangent in enumerate(impact.frictions.tangents) if tangent >= 0]
    slides = [
        b.select(b.binary(Op.LT, b.constant(MODE_THRESHOLD), rests[k]), sense, zero)
        for k, sense in zip(with_friction, found.slides, strict=True)
    ]
    return [*found.impulses, *rests, *slides]


def _apply_impact(
    b: ProgramBuilder, impact: FrictionalImpactProblem, some: Sequence[int], found: _ImpactSolution
) -> None:
    """Apply one impact to some contacts together, if one of them approaches."""
    zero, half = b.constant(0.0), b.constant(MODE_THRESHOLD)
    whole = impact.frictions
    tangents = [whole.tangents[k] for k in some if whole.tangents[k] >= 0]
    rows = [*some, *tangents]
    places = iter(range(len(some), len(rows)))
    first = len(impact.resting)
    part = FrictionContactMatrix(
        [[whole.W[i][j] for j in rows] for i in rows],
        [next(places) if whole.tangents[k] >= 0 else -1 for k in some],
        [whole.coefficients[row - first] for row in tangents],
    )
    v = [b.sum([impact.rates[row], b.dot(whole.W[row], found.impulses)]) for row in rows]
    closed = [b.binary(Op.LT, half, impact.closed[k]) for k in some]
    hit, plastic, e = zero, [], []
    for place, k in enumerate(some):
        settled = b.mul(b.mul(b.constant(float(REIMPACT_SPEED_RATIO)), impact.rest_below[k]), impact.resting[k])
        approaches = b.binary(Op.LT, b.add(v[place], settled), zero)
        hit = b.binary(Op.OR, hit, b.select(closed[place], approaches, zero))
        slow = b.binary(Op.LT, b.mul(impact.restitution[k], b.neg(v[place])), impact.rest_below[k])
        plastic.append(slow)
        e.append(b.select(slow, zero, impact.restitution[k]))
    present = [b.select(hit, each, zero) for each in closed]
    law = _apply_poisson_restitution if impact.laws[some[0]] == "poisson" else _apply_newton_restitution
    impulses, senses = law(b, part, v, e, present, impact.names)
    for row, impulse in zip(rows, impulses, strict=True):
        found.impulses[row] = b.add(found.impulses[row], impulse)
    for place, k in enumerate(some):
        pressed = b.binary(Op.AND, present[place], b.binary(Op.LT, zero, impulses[place]))
        stays = b.binary(Op.MAX, plastic[place], impact.resting[k]) if len(some) > 1 else plastic[place]
        found.rests[k] = b.select(pressed, stays, found.rests[k])
    for row, sense in zip(tangents, senses, strict=True):
        found.slides[row - first] = b.select(hit, sense, found.slides[row - first])


def _apply_newton_restitution(
    b: ProgramBuilder,
    part: FrictionContactMatrix,
    v: Sequence[int],
    e: Sequence[int],
    present: Sequence[int],
    names: str,
) -> tuple[list[int], list[int]]:
    """Return the impulses of one problem by Newton's law, and senses of slip after it."""
    zero = b.constant(0.0)
    back = [b.mul(each, b.binary(Op.MAX, b.neg(rate), zero)) for each, rate in zip(e, v, strict=False)]
    q = [b.sub(rate, each) for rate, each in zip(v, back, strict=False)] + [*v[len(e) :]]
    return _solve_impact_problem(b, part, q, present, None, names)


def _apply_poisson_restitution(
    b: ProgramBuilder,
    part: FrictionContactMatrix,
    v: Sequence[int],
    e: Sequence[int],
    present: Sequence[int],
    names: str,
) -> tuple[list[int], list[int]]:
    """Return the impulses of compression and restitution by Poisson's law, and senses of slip after both."""
    pressed, first = _solve_impact_problem(b, part, v, present, None, names)
    between = [b.sum([rate, b.dot(row, pressed)]) for rate, row in zip(v, part.W, strict=True)]
    least = [b.mul(each, impulse) for each, impulse in zip(e, pressed, strict=False)]
    back, senses = _solve_impact_problem(b, part, between, present, least, names)
    some = b.constant(0.0)
    for each in least:
        some = b.binary(Op.OR, some, b.binary(Op.LT, b.constant(0.0), each))
    behind = [b.select(some, last, early) for last, early in zip(senses, first, strict=True)]  # or nothing is known
    return [b.add(x, y) for x, y in zip(pressed, back, strict=True)], behind


def _solve_impact_problem(
    b: ProgramBuilder,
    part: FrictionContactMatrix,
    q: Sequence[int],
    present: Sequence[int],
    least: Sequence[int] | None,
    names: str,
) -> tuple[list[int], list[int]]:
    """Return N and T of one problem, and senses."""
    half = b.constant(MODE_THRESHOLD)
    known = [b.constant(0.0)] * len(part.coefficients)
    problem = CoulombContactProblem(part.W, q, part.tangents, part.coefficients, present, known, least=least)
    chosen = choose_contact_modes(b, problem)
    some = b.constant(0.0)
    for each in present:
        some = b.binary(Op.OR, some, each)
    pressed = require_no_painleve_paradox(b, chosen, names, some)
    held = [b.binary(Op.LT, half, each) for each in (*pressed, *chosen.stuck)]
    system = FrictionForceSolver(b, part, held, chosen.senses, f"the impulses of {names}")
    return system.solve([b.neg(each) for each in q], least), chosen.senses
