"""Contacts with Coulomb's friction in the reference: in numbers, by trying all modes at one instant.

What forces at the contacts do to the accelerations of gaps and slip is known by numbers; impulses do the same to rates.
All modes of those that take part are tried, each by least squares, and those are taken that agree best with Coulomb's
law. Nothing of the program is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import Fault, ValidationError
from mb2fmu.mechanics.equations.contact_records import OPENING_STATE, REIMPACT_SPEED_RATIO, ZERO_SLIP_RATIO, Contacts
from mb2fmu.validation.modes.impact_impulses import ContactRows

Floats = npt.NDArray[np.float64]
BooleanArray = npt.NDArray[np.bool_]

_RANK_TOLERANCE = 1e-11
_LAW_TOLERANCE = 1e-9  # of the largest rate or acceleration
_DISTINCT_SOLUTION_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class FrictionContacts:
    """Contacts with friction at one instant, shape (f,) each.

    Attributes:
        accelerations: Rates of slip.
        slip_speeds: Speeds of sliding.
        sliding_thresholds: Magnitudes with which sliding begins.
        coefficients: mu.
        sliding: Senses.
    """

    accelerations: Floats
    slip_speeds: Floats
    sliding_thresholds: Floats
    coefficients: Floats
    sliding: Floats

    @property
    def senses(self) -> Floats:
        """Senses of slip: 1, -1 or 0 to the bit."""
        return np.where(np.abs(self.sliding) > 0.5, np.sign(self.sliding), 0.0)


@dataclass(frozen=True, slots=True)
class _ContactProblem:
    """A contact problem: y = q + W (N, T).

    Attributes:
        W: Shape (k + f, k + f).
        q: Shape (k + f,).
        friction_contacts: Numbers of the contacts with friction.
        mu: Shape (f,).
        least: N at least, shape (k,).
        known: Senses of slip that are known, shape (f,); 0 of others.
    """

    W: Floats
    q: Floats
    friction_contacts: tuple[int, ...]
    mu: Floats
    least: Floats
    known: Floats

    def solution(self, pressed: Sequence[bool], ways: Sequence[int | None]) -> tuple[Floats, Floats]:
        """Return (N, T) and y for these pressed contacts; those with ``ways`` None stick, others slide."""
        k = len(pressed)
        # parts = base + S z, z the unknown ones
        columns, rows = [], []
        base = np.where(pressed, 0.0, self.least)
        base = np.append(base, np.zeros(len(self.friction_contacts)))
        for contact in range(k):
            if not pressed[contact]:
                continue
            column = np.zeros(len(base))
            column[contact] = 1.0
            columns.append(column)
            rows.append(contact)
        for place, (contact, way) in enumerate(zip(self.friction_contacts, ways, strict=True)):
            if way is None:
                column = np.zeros(len(base))
                column[k + place] = 1.0
                columns.append(column)
                rows.append(k + place)
                continue
            base[k + place] = -self.mu[place] * way * base[contact]
            for column in columns:
                column[k + place] -= self.mu[place] * way * column[contact] if column[contact] else 0.0
        if not rows:
            return base, self.q + self.W @ base
        S = np.array(columns).T
        A, right = (self.W @ S)[rows], -(self.q + self.W @ base)[rows]
        scale = 1.0 / np.sqrt(np.diag(self.W))
        parts = scale[rows]
        z = parts * np.linalg.lstsq(parts[:, None] * A * parts, parts * right, rcond=_RANK_TOLERANCE)[0]
        found = base + S @ z
        return found, self.q + self.W @ found

    def law_violation(self, pressed: Sequence[bool], ways: Sequence[int | None], found: Floats, y: Floats) -> float:
        """Return the violation of the law, in the unit of y; infinite where a known sense is contradicted."""
        k, D = len(pressed), np.diag(self.W)
        worst = -np.inf
        for contact in range(k):
            good = D[contact] * (found[contact] - self.least[contact]) if pressed[contact] else y[contact]
            worst = max(worst, -good)
        for place, (contact, way) in enumerate(zip(self.friction_contacts, ways, strict=True)):
            normal, along = found[contact], found[k + place]
            if normal == 0.0 and not pressed[contact]:
                continue
            if self.known[place] and way != self.known[place]:
                return np.inf
            if way is None:
                worst = max(worst, D[contact] * (abs(along) - self.mu[place] * normal))
            elif not self.known[place]:
                worst = max(worst, -way * y[k + place])
        return float(worst)


@dataclass(frozen=True, slots=True)
class ContactSolution:
    """A solution.

    Attributes:
        contact_unknowns: N of all, T of those with friction.
        pressed: 1 or 0, shape (k,).
        senses: Of slip, shape (f,).
    """

    contact_unknowns: Floats
    pressed: Floats
    senses: Floats


def _iterate_contact_modes(
    law: _ContactProblem, present: BooleanArray
) -> Iterator[tuple[tuple[bool, ...], tuple[int | None, ...]]]:
    """Yield pressed or not, and the ways of those with friction: None sticks, 1, -1 or 0 (open)."""
    choices: list[list[tuple[bool, int | None]]] = []
    for contact in range(len(present)):
        if not present[contact]:
            choices.append([(False, 0)])
        elif contact not in law.friction_contacts:
            choices.append([(True, 0), (False, 0)])
        else:
            pressed: list[tuple[bool, int | None]] = [(True, None), (True, 1), (True, -1)]
            pushed: list[tuple[bool, int | None]] = [(False, None), (False, 1), (False, -1)]
            choices.append([*pressed, *(pushed if law.least[contact] > 0.0 else [(False, 0)])])
    for each in product(*choices):
        yield tuple(p for p, _ in each), tuple(each[contact][1] for contact in law.friction_contacts)


def _solve_contact_modes(
    law: _ContactProblem, present: BooleanArray, names: str, t: float, wrong: tuple[BooleanArray, Floats] | None = None
) -> ContactSolution:
    """Return the modes that fit Coulomb's law best, except those known to be ``wrong`` (pressed, senses).

    Raises:
        ValidationError: If none does, or another motion does, too.
    """
    k = len(present)
    open_q = np.append(present, present[[*law.friction_contacts]])
    size = float(np.abs(law.q[open_q]).sum()) + 1e-300
    tried: list[tuple[float, ContactSolution, Floats]] = []
    for pressed, ways in _iterate_contact_modes(law, present):
        senses = np.array([way or 0 for way in ways], dtype=float)
        if wrong is not None and np.array_equal(pressed, wrong[0]) and np.array_equal(senses, wrong[1]):
            continue
        parts, y = law.solution(pressed, ways)
        some = _restrict_problem(law, present)
        misfit = some.law_violation(
            *_restrict_modes(present, law.friction_contacts, pressed, ways),
            *_select_contact_rows(present, law.friction_contacts, parts, y),
        )
        rates = np.where(open_q, y, 0.0)
        tried.append((misfit, ContactSolution(parts, np.array(pressed, dtype=float), senses), rates))
    best = min(tried, key=lambda each: each[0])
    if best[0] > _LAW_TOLERANCE * size:
        raise _make_paradox_error(t, names, "no motion agrees")
    for misfit, _, y in tried:
        if (
            -misfit > _DISTINCT_SOLUTION_TOLERANCE * size
            and np.abs(y - best[2]).max() > _DISTINCT_SOLUTION_TOLERANCE * size
        ):
            raise _make_paradox_error(t, names, "more than one motion agrees")
    assert len(best[1].contact_unknowns) == k + len(law.friction_contacts)
    return best[1]


def _restrict_problem(law: _ContactProblem, present: BooleanArray) -> _ContactProblem:
    """Return the law restricted to some contacts."""
    contacts = [contact for contact in range(len(present)) if present[contact]]
    places = [place for place, contact in enumerate(law.friction_contacts) if present[contact]]
    rows = [*contacts, *(len(present) + place for place in places)]
    return _ContactProblem(
        law.W[np.ix_(rows, rows)],
        law.q[rows],
        tuple(contacts.index(law.friction_contacts[place]) for place in places),
        law.mu[places],
        law.least[contacts],
        law.known[places],
    )


def _restrict_modes(
    present: BooleanArray, rough: Sequence[int], pressed: Sequence[bool], ways: Sequence[int | None]
) -> tuple[list[bool], list[int | None]]:
    """Return modes restricted to some contacts."""
    kept = [way for way, contact in zip(ways, rough, strict=True) if present[contact]]
    return [p for p, here in zip(pressed, present, strict=True) if here], kept


def _select_contact_rows(
    present: BooleanArray, rough: Sequence[int], parts: Floats, y: Floats
) -> tuple[Floats, Floats]:
    """Return the rows of some contacts."""
    rows = np.append(present, present[[*rough]])
    return parts[rows], y[rows]


def _make_paradox_error(t: float, names: str, how: str) -> ValidationError:
    """Return the error of an instant at which no mode of friction fits, or several do, with its remedy."""
    what = f"at t = {t:.6g} s {how} with Coulomb's friction of {names} (Painleve's paradox)"
    remedy = "take less friction, a compliant Contact, or another start"
    return ValidationError("the reference cannot be integrated:", [Fault(what, remedy=remedy)])


def list_friction_contacts(contacts: Contacts) -> tuple[int, ...]:
    """Return the numbers of the contacts with friction."""
    return tuple(k for k, contact in enumerate(contacts.each) if contact.friction)


def _format_contact_names(contacts: Contacts) -> str:
    """Return the names of contacts, for a message."""
    return ", ".join(contact.name for contact in contacts.each)


def solve_frictional_contact_events(
    contacts: Contacts,
    pushes: tuple[Floats, Floats],
    look: tuple[ContactRows, FrictionContacts],
    t: float,
    *,
    hit: bool,
    change: bool,
) -> tuple[Floats, Floats, Floats]:
    """Return contact results at this instant, as ``Contacts.impact_unknowns`` before jumps; then both jumps of x.

    Args:
        contacts: Their laws.
        pushes: What each row changes the rates by, shape (k + f, k + f), and x, shape (n_x, k + f); a normal force
            has the friction of what slides in it.
        look: Just before.
        t: In s, for messages.
        hit: Whether there is an impact.
        change: Whether modes change.
    """
    touch, rub = look
    W, reach = pushes[0].copy(), pushes[1].copy()
    k = len(contacts.each)
    for place, contact in enumerate(list_friction_contacts(contacts)):
        share = rub.coefficients[place] * rub.senses[place]
        W[:, contact] += share * W[:, k + place]
        reach[:, contact] += share * reach[:, k + place]
    none, rests, senses = np.zeros(len(W)), touch.resting, rub.sliding
    impulses, after, slides = _solve_friction_impacts(contacts, W, touch, rub, t) if hit else (none, rests, senses)
    stays, turns, shifts = _change_friction_modes(contacts, W, touch, rub, t) if change else (rests, senses, none)
    found = np.concatenate([impulses[:k], after, impulses[k:], slides, stays, turns])
    return found, reach @ impulses, reach @ shifts


def _solve_friction_impacts(
    contacts: Contacts, W: Floats, touch: ContactRows, rub: FrictionContacts, t: float
) -> tuple[Floats, Floats, Floats]:
    """Return impulses row by row at this instant, the contacts that rest after it, and senses of slip.

    Args:
        contacts: Their laws.
        W: What an impulse along each row changes the rates by, shape (k + f, k + f).
        touch: Just before.
        rub: Just before.
        t: In s, for messages.
    """
    k, rough = len(contacts.each), list_friction_contacts(contacts)
    settled = float(REIMPACT_SPEED_RATIO) * touch.rest_below
    v = np.append(touch.approach_rates, rub.slip_speeds)
    impulses, rests, senses = np.zeros(len(v)), touch.resting.copy(), rub.senses
    groups = [[each] for each in range(k)] if contacts.order == "in turn" else [[*range(k)]]
    for group in groups:
        among = np.isin(np.arange(k), group) & (touch.closed > 0.5)
        if not np.any(among & (v[:k] < -settled * touch.resting)):
            continue
        slow = -touch.restitution * v[:k] < touch.rest_below
        e = np.where(slow, 0.0, touch.restitution)
        found = _solve_impact_law(
            contacts, _ContactProblem(W, v, rough, rub.coefficients, np.zeros(k), np.zeros(len(rough))), among, e, t
        )
        impulses += found.contact_unknowns
        v = v + W @ found.contact_unknowns
        pushed = among & (found.contact_unknowns[:k] > 0.0)
        stays = np.maximum(slow, touch.resting) if len(group) > 1 else slow
        rests = np.where(pushed, stays, rests)
        struck = np.array([contact in group for contact in rough], dtype=bool)
        senses = np.where(struck, found.senses, senses)
    drifted = np.where(touch.resting > 0.0, np.maximum(touch.rates, 0.0), 0.0)
    rests = np.where(touch.rates + (W @ impulses)[:k] > drifted + settled, 0.0, rests)
    return impulses, rests, np.where(rests[list(rough)] > 0.5, senses, 0.0)


def _solve_impact_law(
    contacts: Contacts, law: _ContactProblem, present: BooleanArray, e: Floats, t: float
) -> ContactSolution:
    """Return the impulses by Newton's or Poisson's law."""
    k, names = len(present), _format_contact_names(contacts)
    v = law.q
    if contacts.each[int(np.argmax(present))].law == "newton":
        raised = v - np.append(e * np.maximum(-v[:k], 0.0), np.zeros(len(v) - k))
        return _solve_contact_modes(
            _ContactProblem(law.W, raised, law.friction_contacts, law.mu, law.least, law.known), present, names, t
        )
    first = _solve_contact_modes(law, present, names, t)
    if not np.any(e * first.contact_unknowns[:k] > 0.0):
        return first
    second = _ContactProblem(
        law.W,
        v + law.W @ first.contact_unknowns,
        law.friction_contacts,
        law.mu,
        e * first.contact_unknowns[:k],
        law.known,
    )
    back = _solve_contact_modes(second, present, names, t)
    return ContactSolution(first.contact_unknowns + back.contact_unknowns, back.pressed, back.senses)


def _change_friction_modes(
    contacts: Contacts, W: Floats, touch: ContactRows, rub: FrictionContacts, t: float
) -> tuple[Floats, Floats, Floats]:
    """Return new ``resting`` and ``sliding``, then impulses that adapt speeds to held and new sliding contacts."""
    k, rough = len(contacts.each), list_friction_contacts(contacts)
    present = touch.resting > 0.5
    slow = touch.rest_below[list(rough)]
    still = np.abs(rub.slip_speeds) < float(ZERO_SLIP_RATIO) * slow
    turned = (rub.senses * rub.slip_speeds <= 0.0) & (np.abs(rub.slip_speeds) < slow)
    known = np.where(still | turned, 0.0, np.where(rub.slip_speeds > 0.0, 1.0, -1.0))
    law = _ContactProblem(
        W, np.append(touch.accelerations, rub.accelerations), rough, rub.coefficients, np.zeros(k), known
    )
    found = _solve_contact_modes(law, present, _format_contact_names(contacts), t, (present, rub.senses))
    begun = (found.senses != 0.0) & ((known == 0.0) | (found.senses * rub.slip_speeds < float(ZERO_SLIP_RATIO) * slow))
    begins = found.senses * np.maximum(found.senses * rub.slip_speeds, rub.sliding_thresholds)
    off = rub.slip_speeds - np.where(begun, begins, 0.0)
    drift = np.where(np.abs(touch.rates) <= touch.rest_below, touch.rates, 0.0)  # a faster one has been set
    speeds = _ContactProblem(W, np.append(drift, off), rough, rub.coefficients, np.zeros(k), known)
    ways: list[int | None] = [
        None if found.pressed[contact] and (new or not sense) else int(sense)
        for contact, sense, new in zip(rough, found.senses, begun, strict=True)
    ]
    pushes, _ = speeds.solution([bool(p) for p in found.pressed], ways)
    stays = np.where(present, np.where(found.pressed > 0.5, 1.0, float(OPENING_STATE)), touch.resting)
    return stays, found.senses, pushes
