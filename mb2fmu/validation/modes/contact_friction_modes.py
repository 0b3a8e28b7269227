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
from mb2fmu.mechanics.equations.contact_equations import (
    OPENING_STATE,
    REIMPACT_SPEED_RATIO,
    ZERO_SLIP_RATIO,
    ContactEquations,
)
from mb2fmu.model.declarations.contact_and_latch_declaration_records import MODE_THRESHOLD
from mb2fmu.validation.modes.impact_impulses import ContactsAtInstant

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
        return np.where(np.abs(self.sliding) > MODE_THRESHOLD, np.sign(self.sliding), 0.0)


@dataclass(frozen=True, slots=True)
class _ContactComplementarityProblem:
    """A contact problem: y = q + W (N, T).

    Attributes:
        W: Shape (k + f, k + f).
        q: Shape (k + f,).
        friction_contacts: Numbers of the contacts with friction.
        mu: Shape (f,).
        minimum_forces: Smallest N, shape (k,).
        known_senses: Known senses of slip, shape (f,); 0 of others.
    """

    W: Floats
    q: Floats
    friction_contacts: tuple[int, ...]
    mu: Floats
    minimum_forces: Floats
    known_senses: Floats

    def solve(self, are_pressed: Sequence[bool], senses: Sequence[int | None]) -> tuple[Floats, Floats]:
        """Return (N, T) and y for these pressed contacts; those with ``senses`` None stick, others slide."""
        k = len(are_pressed)
        # parts = base + S z, z the unknown ones
        columns, rows = [], []
        base = np.where(are_pressed, 0.0, self.minimum_forces)
        base = np.append(base, np.zeros(len(self.friction_contacts)))
        for contact in range(k):
            if not are_pressed[contact]:
                continue
            column = np.zeros(len(base))
            column[contact] = 1.0
            columns.append(column)
            rows.append(contact)
        for friction_index, (contact, sense) in enumerate(zip(self.friction_contacts, senses, strict=True)):
            if sense is None:
                column = np.zeros(len(base))
                column[k + friction_index] = 1.0
                columns.append(column)
                rows.append(k + friction_index)
                continue
            base[k + friction_index] = -self.mu[friction_index] * sense * base[contact]
            for column in columns:
                column[k + friction_index] -= (
                    self.mu[friction_index] * sense * column[contact] if column[contact] else 0.0
                )
        if not rows:
            return base, self.q + self.W @ base
        S = np.array(columns).T
        A, right_side = (self.W @ S)[rows], -(self.q + self.W @ base)[rows]
        diagonal = np.diag(self.W)[rows]
        parts = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))  # a row that vanishes has no length
        z = parts * np.linalg.lstsq(parts[:, None] * A * parts, parts * right_side, rcond=_RANK_TOLERANCE)[0]
        forces = base + S @ z
        return forces, self.q + self.W @ forces

    def compute_violation(
        self, are_pressed: Sequence[bool], senses: Sequence[int | None], forces: Floats, y: Floats
    ) -> float:
        """Return the violation of the law, in the unit of y; infinite where a known sense is contradicted."""
        k, D = len(are_pressed), np.diag(self.W)
        worst = -np.inf
        for contact in range(k):
            margin = (
                D[contact] * (forces[contact] - self.minimum_forces[contact]) if are_pressed[contact] else y[contact]
            )
            worst = max(worst, -margin)
        for friction_index, (contact, sense) in enumerate(zip(self.friction_contacts, senses, strict=True)):
            normal, tangential = forces[contact], forces[k + friction_index]
            if normal == 0.0 and not are_pressed[contact]:
                continue
            if self.known_senses[friction_index] and sense != self.known_senses[friction_index]:
                return np.inf
            if sense is None:
                worst = max(worst, D[contact] * (abs(tangential) - self.mu[friction_index] * normal))
            elif not self.known_senses[friction_index]:
                worst = max(worst, -sense * y[k + friction_index])
        return float(worst)


@dataclass(frozen=True, slots=True)
class _ContactSolution:
    """Normal and tangential unknowns of all contacts, and which press, stick or slide.

    Attributes:
        contact_unknowns: N of all, T of those with friction.
        pressed: 1 or 0, shape (k,).
        senses: Of slip, shape (f,).
    """

    contact_unknowns: Floats
    pressed: Floats
    senses: Floats


def _iterate_contact_modes(
    law: _ContactComplementarityProblem, are_present: BooleanArray
) -> Iterator[tuple[tuple[bool, ...], tuple[int | None, ...]]]:
    """Yield pressed or not, and the ways of those with friction: None sticks, 1, -1 or 0 (open)."""
    choices: list[list[tuple[bool, int | None]]] = []
    for contact in range(len(are_present)):
        if not are_present[contact]:
            choices.append([(False, 0)])
        elif contact not in law.friction_contacts:
            choices.append([(True, 0), (False, 0)])
        else:
            force_choices: list[tuple[bool, int | None]] = [(True, None), (True, 1), (True, -1)]
            minimum_force_choices: list[tuple[bool, int | None]] = [(False, None), (False, 1), (False, -1)]
            choices.append(
                [*force_choices, *(minimum_force_choices if law.minimum_forces[contact] > 0.0 else [(False, 0)])]
            )
    for each in product(*choices):
        yield tuple(p for p, _ in each), tuple(each[contact][1] for contact in law.friction_contacts)


def _solve_contact_modes(
    law: _ContactComplementarityProblem,
    are_present: BooleanArray,
    names: str,
    t: float,
    excluded: tuple[BooleanArray, Floats] | None = None,
) -> _ContactSolution:
    """Return the modes that fit Coulomb's law best, except those known to be ``excluded`` (pressed, senses).

    Raises:
        ValidationError: If none does, or another motion does, too.
    """
    k, restricted = len(are_present), _restrict_problem(law, are_present)
    open_q = np.append(are_present, are_present[[*law.friction_contacts]])
    size = float(np.abs(law.q[open_q]).sum()) + 1e-300
    candidates: list[tuple[float, _ContactSolution, Floats]] = []
    for are_pressed, friction_senses in _iterate_contact_modes(law, are_present):
        sense_values = np.array([sense or 0 for sense in friction_senses], dtype=float)
        if (
            excluded is not None
            and np.array_equal(are_pressed, excluded[0])
            and np.array_equal(sense_values, excluded[1])
        ):
            continue
        parts, y = law.solve(are_pressed, friction_senses)
        violation = restricted.compute_violation(
            *_restrict_modes(are_present, law.friction_contacts, are_pressed, friction_senses),
            *_select_contact_rows(are_present, law.friction_contacts, parts, y),
        )
        rates = np.where(open_q, y, 0.0)
        candidates.append((violation, _ContactSolution(parts, np.array(are_pressed, dtype=float), sense_values), rates))
    best_candidate = min(candidates, key=lambda each: each[0])
    if best_candidate[0] > _LAW_TOLERANCE * size:
        raise _make_paradox_error(t, names, "no motion agrees")
    for violation, _, y in candidates:
        if (
            -violation > _DISTINCT_SOLUTION_TOLERANCE * size
            and np.abs(y - best_candidate[2]).max() > _DISTINCT_SOLUTION_TOLERANCE * size
        ):
            raise _make_paradox_error(t, names, "more than one motion agrees")
    assert len(best_candidate[1].contact_unknowns) == k + len(law.friction_contacts)
    return best_candidate[1]


def _restrict_problem(law: _ContactComplementarityProblem, are_present: BooleanArray) -> _ContactComplementarityProblem:
    """Return the law restricted to some contacts."""
    contacts = [contact for contact in range(len(are_present)) if are_present[contact]]
    places = [place for place, contact in enumerate(law.friction_contacts) if are_present[contact]]
    rows = [*contacts, *(len(are_present) + place for place in places)]
    return _ContactComplementarityProblem(
        law.W[np.ix_(rows, rows)],
        law.q[rows],
        tuple(contacts.index(law.friction_contacts[place]) for place in places),
        law.mu[places],
        law.minimum_forces[contacts],
        law.known_senses[places],
    )


def _restrict_modes(
    are_present: BooleanArray,
    friction_contact_indices: Sequence[int],
    are_pressed: Sequence[bool],
    senses: Sequence[int | None],
) -> tuple[list[bool], list[int | None]]:
    """Return modes restricted to some contacts."""
    kept_senses = [
        sense for sense, contact in zip(senses, friction_contact_indices, strict=True) if are_present[contact]
    ]
    return [p for p, is_present in zip(are_pressed, are_present, strict=True) if is_present], kept_senses


def _select_contact_rows(
    are_present: BooleanArray, friction_contact_indices: Sequence[int], parts: Floats, y: Floats
) -> tuple[Floats, Floats]:
    """Return the rows of some contacts."""
    rows = np.append(are_present, are_present[[*friction_contact_indices]])
    return parts[rows], y[rows]


def _make_paradox_error(t: float, names: str, reason: str) -> ValidationError:
    """Return the error of an instant at which no mode of friction fits, or several do, with its remedy."""
    message = f"at t = {t:.6g} s {reason} with Coulomb's friction of {names} (Painleve's paradox)"
    remedy = "take less friction, a compliant Contact, or another start"
    return ValidationError("the reference cannot be integrated:", [Fault(message, remedy=remedy)])


def list_friction_contacts(contacts: ContactEquations) -> tuple[int, ...]:
    """Return the numbers of the contacts with friction."""
    return tuple(k for k, contact in enumerate(contacts.each) if contact.friction)


def _format_contact_names(contacts: ContactEquations) -> str:
    """Return the names of contacts, for a message."""
    return ", ".join(contact.name for contact in contacts.each)


def solve_frictional_contact_events(
    contacts: ContactEquations,
    effects: tuple[Floats, Floats],
    contacts_before: tuple[ContactsAtInstant, FrictionContacts],
    t: float,
    *,
    hit: bool,
    change: bool,
) -> tuple[Floats, Floats, Floats]:
    """Return contact results now, as ``ContactEquations.impact_unknowns`` before jumps; then both jumps of x.

    Args:
        contacts: Their laws.
        effects: What each row changes the rates by, shape (k + f, k + f), and x, shape (n_x, k + f); a normal force
            has the friction of what slides in it.
        contacts_before: Just before.
        t: In s, for messages.
        hit: Whether there is an impact.
        change: Whether modes change.
    """
    contact_rows, friction_contacts = contacts_before
    W, state_effects = effects[0].copy(), effects[1].copy()
    k = len(contacts.each)
    for place, contact in enumerate(list_friction_contacts(contacts)):
        friction_share = friction_contacts.coefficients[place] * friction_contacts.senses[place]
        W[:, contact] += friction_share * W[:, k + place]
        state_effects[:, contact] += friction_share * state_effects[:, k + place]
    zero_impulses, resting, senses = np.zeros(len(W)), contact_rows.resting, friction_contacts.sliding
    impulses, after, slip_senses = (
        _solve_friction_impacts(contacts, W, contact_rows, friction_contacts, t)
        if hit
        else (zero_impulses, resting, senses)
    )
    resting_after, senses_after, speed_impulses = (
        _change_friction_modes(contacts, W, contact_rows, friction_contacts, t)
        if change
        else (resting, senses, zero_impulses)
    )
    results = np.concatenate([impulses[:k], after, impulses[k:], slip_senses, resting_after, senses_after])
    return results, state_effects @ impulses, state_effects @ speed_impulses


def _solve_friction_impacts(
    contacts: ContactEquations,
    W: Floats,
    contact_rows: ContactsAtInstant,
    friction_contacts: FrictionContacts,
    t: float,
) -> tuple[Floats, Floats, Floats]:
    """Return impulses row by row at this instant, the contacts that rest after it, and senses of slip.

    Args:
        contacts: Their laws.
        W: What an impulse along each row changes the rates by, shape (k + f, k + f).
        contact_rows: Just before.
        friction_contacts: Just before.
        t: In s, for messages.
    """
    k, friction_contact_indices = len(contacts.each), list_friction_contacts(contacts)
    reimpact_speed = float(REIMPACT_SPEED_RATIO) * contact_rows.rest_below
    v = np.append(contact_rows.approach_rates, friction_contacts.slip_speeds)
    impulses, resting, senses = np.zeros(len(v)), contact_rows.resting.copy(), friction_contacts.senses
    groups = [[each] for each in range(k)] if contacts.order == "sequential" else [[*range(k)]]
    for group in groups:
        in_group = np.isin(np.arange(k), group) & (contact_rows.closed > MODE_THRESHOLD)
        if not np.any(in_group & (v[:k] < -reimpact_speed * contact_rows.resting)):
            continue
        comes_to_rest = -contact_rows.restitution * v[:k] < contact_rows.rest_below
        e = np.where(comes_to_rest, 0.0, contact_rows.restitution)
        solution = _solve_impact_law(
            contacts,
            _ContactComplementarityProblem(
                W,
                v,
                friction_contact_indices,
                friction_contacts.coefficients,
                np.zeros(k),
                np.zeros(len(friction_contact_indices)),
            ),
            in_group,
            e,
            t,
        )
        impulses += solution.contact_unknowns
        v = v + W @ solution.contact_unknowns
        has_impulse = in_group & (solution.contact_unknowns[:k] > 0.0)
        rests_after = np.maximum(comes_to_rest, contact_rows.resting) if len(group) > 1 else comes_to_rest
        resting = np.where(has_impulse, rests_after, resting)
        is_struck = np.array([contact in group for contact in friction_contact_indices], dtype=bool)
        senses = np.where(is_struck, solution.senses, senses)
    drift_rates = np.where(contact_rows.resting > 0.0, np.maximum(contact_rows.rates, 0.0), 0.0)
    resting = np.where(contact_rows.rates + (W @ impulses)[:k] > drift_rates + reimpact_speed, 0.0, resting)
    return impulses, resting, np.where(resting[list(friction_contact_indices)] > MODE_THRESHOLD, senses, 0.0)


def _solve_impact_law(
    contacts: ContactEquations, law: _ContactComplementarityProblem, are_present: BooleanArray, e: Floats, t: float
) -> _ContactSolution:
    """Return the impulses by Newton's or Poisson's law."""
    k, names = len(are_present), _format_contact_names(contacts)
    v = law.q
    if contacts.each[int(np.argmax(are_present))].law == "newton":
        target_rates = v - np.append(e * np.maximum(-v[:k], 0.0), np.zeros(len(v) - k))
        return _solve_contact_modes(
            _ContactComplementarityProblem(
                law.W, target_rates, law.friction_contacts, law.mu, law.minimum_forces, law.known_senses
            ),
            are_present,
            names,
            t,
        )
    compression_solution = _solve_contact_modes(law, are_present, names, t)
    if not np.any(e * compression_solution.contact_unknowns[:k] > 0.0):
        return compression_solution
    restitution_problem = _ContactComplementarityProblem(
        law.W,
        v + law.W @ compression_solution.contact_unknowns,
        law.friction_contacts,
        law.mu,
        e * compression_solution.contact_unknowns[:k],
        law.known_senses,
    )
    restitution_solution = _solve_contact_modes(restitution_problem, are_present, names, t)
    return _ContactSolution(
        compression_solution.contact_unknowns + restitution_solution.contact_unknowns,
        restitution_solution.pressed,
        restitution_solution.senses,
    )


def _change_friction_modes(
    contacts: ContactEquations,
    W: Floats,
    contact_rows: ContactsAtInstant,
    friction_contacts: FrictionContacts,
    t: float,
) -> tuple[Floats, Floats, Floats]:
    """Return new ``resting`` and ``sliding``, then impulses that adapt speeds to held and new sliding contacts."""
    k, friction_contact_indices = len(contacts.each), list_friction_contacts(contacts)
    resting = contact_rows.resting > MODE_THRESHOLD
    rest_speeds = contact_rows.rest_below[list(friction_contact_indices)]
    slip_speeds = friction_contacts.slip_speeds
    is_at_rest = np.abs(slip_speeds) < float(ZERO_SLIP_RATIO) * rest_speeds
    has_reversed = (friction_contacts.senses * slip_speeds <= 0.0) & (np.abs(slip_speeds) < rest_speeds)
    known_senses = np.where(is_at_rest | has_reversed, 0.0, np.where(slip_speeds > 0.0, 1.0, -1.0))
    law = _ContactComplementarityProblem(
        W,
        np.append(contact_rows.accelerations, friction_contacts.accelerations),
        friction_contact_indices,
        friction_contacts.coefficients,
        np.zeros(k),
        known_senses,
    )
    solution = _solve_contact_modes(
        law, resting, _format_contact_names(contacts), t, (resting, friction_contacts.senses)
    )
    begins_sliding = (solution.senses != 0.0) & (
        (known_senses == 0.0) | (solution.senses * slip_speeds < float(ZERO_SLIP_RATIO) * rest_speeds)
    )
    begin_speeds = solution.senses * np.maximum(solution.senses * slip_speeds, friction_contacts.sliding_thresholds)
    excess_speeds = slip_speeds - np.where(begins_sliding, begin_speeds, 0.0)
    gap_drift = np.where(
        np.abs(contact_rows.rates) <= contact_rows.rest_below, contact_rows.rates, 0.0
    )  # a faster one has been set
    speeds = _ContactComplementarityProblem(
        W,
        np.append(gap_drift, excess_speeds),
        friction_contact_indices,
        friction_contacts.coefficients,
        np.zeros(k),
        known_senses,
    )
    friction_senses: list[int | None] = [
        None if solution.pressed[contact] and (starts_now or not sense) else int(sense)
        for contact, sense, starts_now in zip(friction_contact_indices, solution.senses, begins_sliding, strict=True)
    ]
    impulses, _ = speeds.solve([bool(p) for p in solution.pressed], friction_senses)
    resting_after = np.where(
        resting, np.where(solution.pressed > MODE_THRESHOLD, 1.0, float(OPENING_STATE)), contact_rows.resting
    )
    return resting_after, solution.senses, impulses
