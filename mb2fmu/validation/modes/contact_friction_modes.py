"""Contacts with Coulomb's friction in the reference: in numbers, by trying all modes at one instant.

What forces at the contacts do to the accelerations of gaps and slip is known by numbers; impulses do the same to rates.
All modes of those that take part are tried, each by least squares, and those are taken that agree best with Coulomb's
law. Nothing of the program is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
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
from mb2fmu.model.quantity_declarations import MODE_THRESHOLD
from mb2fmu.validation.modes.impact_impulses import ContactsAtInstant

Floats = npt.NDArray[np.float64]
BooleanArray = npt.NDArray[np.bool_]

_RANK_TOLERANCE = 1e-11
_LAW_TOLERANCE = 1e-9  # of the largest rate or acceleration
_DISTINCT_SOLUTION_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class InstantFrictionContacts:
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
class _ContactModes:
    """Modes of contacts, one way or several: shape (k,) and (f,), or (n, k) and (n, f).

    Attributes:
        pressed: Which contacts press.
        stuck: Which contacts with friction stick.
        senses: Of slip, 1 or -1; 0 of what sticks or is open.
    """

    pressed: BooleanArray
    stuck: BooleanArray
    senses: Floats


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

    def solve(self, modes: _ContactModes) -> tuple[Floats, Floats]:
        """Return (N, T) and y in these modes, shape (…, k + f): all of them at once, since each is small."""
        k, f, contacts = len(self.minimum_forces), len(self.mu), list(self.friction_contacts)
        normals, tangents, drag = np.arange(k), k + np.arange(f), -self.mu * modes.senses
        # (N, T) = base + S z, z the unknown ones
        unknown = np.concatenate([modes.pressed, modes.stuck], axis=-1)
        base_normal = np.where(modes.pressed, 0.0, self.minimum_forces)
        base = np.concatenate([base_normal, drag * base_normal[..., contacts]], axis=-1)
        S = np.zeros((*unknown.shape, k + f))
        S[..., normals, normals], S[..., tangents, tangents] = modes.pressed, modes.stuck
        S[..., tangents, contacts] = drag * modes.pressed[..., contacts]
        # Rows of what is known are zeros, and so is its part of the solution, which is the smallest one.
        A, right_side = unknown[..., None] * (self.W @ S), unknown * -(self.q + base @ self.W.T)
        diagonal = np.diag(self.W)
        parts = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))  # a row that vanishes has no length
        inverse = np.linalg.pinv(parts[:, None] * A * parts, rcond=_RANK_TOLERANCE)
        z = parts * (inverse @ (parts * right_side)[..., None])[..., 0]
        forces = base + (S @ z[..., None])[..., 0]
        return forces, self.q + forces @ self.W.T

    def compute_violations(self, modes: _ContactModes, are_present: BooleanArray, forces: Floats, y: Floats) -> Floats:
        """Return the violations of the law by the contacts that are present, in the unit of y, shape (n,).

        They are infinite where a known sense is contradicted.
        """
        k, D, contacts = len(are_present), np.diag(self.W), list(self.friction_contacts)
        margins = np.where(modes.pressed, D[:k] * (forces[:, :k] - self.minimum_forces), y[:, :k])
        normal, tangential = forces[:, contacts], forces[:, k:]
        has_friction = are_present[contacts] & (modes.pressed[:, contacts] | (normal != 0.0))
        is_known = self.known_senses != 0.0
        sliding_margins = np.where(is_known, np.inf, modes.senses * y[:, k:])
        sticking_margins = D[contacts] * (self.mu * normal - np.abs(tangential))
        friction_margins = np.where(modes.stuck, sticking_margins, sliding_margins)
        friction_margins[is_known & (modes.senses != self.known_senses)] = -np.inf
        least_margin = np.min(margins, axis=1, initial=np.inf, where=are_present)
        least_friction_margin = np.min(friction_margins, axis=1, initial=np.inf, where=has_friction)
        return np.asarray(-np.minimum(least_margin, least_friction_margin))


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


@lru_cache
def _list_contact_modes(
    are_present: tuple[bool, ...], have_minimum: tuple[bool, ...], friction_contacts: tuple[int, ...]
) -> _ContactModes:
    """Return all modes of these contacts; ``have_minimum``: even what opens keeps a force, and thus friction."""
    is_open, sticks_or_slides = (False, False, 0.0), ((True, 0.0), (False, 1.0), (False, -1.0))
    choices: list[list[tuple[bool, bool, float]]] = []
    for contact, is_present in enumerate(are_present):
        if not is_present:
            choices.append([is_open])
        elif contact not in friction_contacts:
            choices.append([(True, False, 0.0), is_open])
        else:
            minimum_force_choices = [(False, *each) for each in sticks_or_slides]
            choices.append(
                [
                    *((True, *each) for each in sticks_or_slides),
                    *(minimum_force_choices if have_minimum[contact] else [is_open]),
                ]
            )
    ways = np.array(list(product(*choices)))  # way, contact, (pressed, stuck, sense)
    of_friction = ways[:, list(friction_contacts)]
    return _ContactModes(ways[..., 0] != 0.0, of_friction[..., 1] != 0.0, of_friction[..., 2])


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
    open_q = np.append(are_present, are_present[[*law.friction_contacts]])
    size = float(np.abs(law.q[open_q]).sum()) + 1e-300
    modes = _list_contact_modes(
        tuple(are_present.tolist()), tuple((law.minimum_forces > 0.0).tolist()), law.friction_contacts
    )
    if excluded is not None:
        is_excluded = (modes.pressed == excluded[0]).all(axis=1) & (modes.senses == excluded[1]).all(axis=1)
        modes = _ContactModes(modes.pressed[~is_excluded], modes.stuck[~is_excluded], modes.senses[~is_excluded])
    forces, y = law.solve(modes)
    violations = law.compute_violations(modes, are_present, forces, y)
    best = int(np.argmin(violations))
    if violations[best] > _LAW_TOLERANCE * size:
        raise _make_paradox_error(t, names, "no motion agrees")
    rates = np.where(open_q, y, 0.0)
    is_other_motion = np.abs(rates - rates[best]).max(axis=1) > _DISTINCT_SOLUTION_TOLERANCE * size
    if np.any(is_other_motion & (-violations > _DISTINCT_SOLUTION_TOLERANCE * size)):
        raise _make_paradox_error(t, names, "more than one motion agrees")
    return _ContactSolution(forces[best], modes.pressed[best].astype(float), modes.senses[best])


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
    contacts_before: tuple[ContactsAtInstant, InstantFrictionContacts],
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
    friction_contacts: InstantFrictionContacts,
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
    friction_contacts: InstantFrictionContacts,
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
    is_pressed = solution.pressed > MODE_THRESHOLD
    is_stuck = is_pressed[list(friction_contact_indices)] & (begins_sliding | (solution.senses == 0.0))
    impulses, _ = speeds.solve(_ContactModes(is_pressed, is_stuck, np.where(is_stuck, 0.0, solution.senses)))
    resting_after = np.where(resting, np.where(is_pressed, 1.0, float(OPENING_STATE)), contact_rows.resting)
    return resting_after, solution.senses, impulses
