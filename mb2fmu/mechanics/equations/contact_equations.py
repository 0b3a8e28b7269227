"""Unilateral contacts of equations of motion: gaps ≥ 0, with impact laws and contact forces.

Of contact k with the gap g_k(q, t) >= 0 and G_k = dg_k'/du:

    g_k'  = G_k u + b_k                    rate of the gap
    g_k'' = G_k u' + c_k                   where the contact rests: -2 s g' - s^2 g, by the force N_k >= 0
    M u' + A^T lambda = f + sum G_k^T N_k
    M (u+ - u-) + A^T Gamma = sum G_k^T Lambda_k,    A (u+ - u-) = 0       at an impact

What the impulses Lambda_k are is the law of the impact; ``docs/explanation/impacts.md`` derives it.

Where there is friction, with the speed of slip s_k = H_k u + d_k along the tangent of a motion in a plane, the
tangential force T_k acts as H_k^T T_k, and so does the tangential impulse; ``docs/explanation/contact_friction.md``
has the law.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import sympy as sm

from mb2fmu.mechanics.equations.unilateral_constraint_rows import UnilateralPositionRow, UnilateralRow
from mb2fmu.model.quantity_declarations import MODE_THRESHOLD, ImpactOrder, RestitutionLaw
from mb2fmu.model.supported_functions import no_event

REIMPACT_SPEED_RATIO = sm.Rational(1, 1000)
"""Part of the speed below which a contact rests, at which a resting one must approach for another impact."""

OPENING_STATE = sm.Rational(1, 4)
"""What ``resting`` is from where a contact opens to where it parts: its rate is still round-off."""


LIFT_OFF_SPEED_RATIO = 2 * REIMPACT_SPEED_RATIO
"""Part B of the speed below which a contact rests: a resting one is open where s g or g' + s g is larger than that.

From there its stabilization would draw it back faster than :data:`REIMPACT_SPEED_RATIO`: another impact. What
is within these bounds stays there by g'' = -2 s g' - s^2 g: with y = g' + s g that is y' = -s y, (s g)' = s (y - s g).
So it does not matter when one looks.
"""

ZERO_SLIP_RATIO = REIMPACT_SPEED_RATIO**2
"""Part of the speed below which a contact rests, below which slip counts as none."""

_MAX_GAP_TEXT_LENGTH = 40
"""Characters of a gap in the name of a switch."""

_MARGIN_DESCRIPTIONS = (
    ("would have to pull: its force < 0", "does not pull: its force >= 0"),
    (
        "ends to slide forwards, or is pushed backwards by more than friction holds",
        "slides forwards, or is not pushed backwards by more than friction holds",
    ),
    (
        "ends to slide backwards, or is pushed forwards by more than friction holds",
        "slides backwards, or is not pushed forwards by more than friction holds",
    ),
)
"""What messages say of the margins of a resting contact: where one is negative, and where it is not."""

_SLIP_ROUND_OFF = sm.Integer(2) ** -44
"""What slip may be wrong by, as a part of the speeds that it is the sum of."""


def _make_condition_at_events_only(margin: sm.Expr) -> sm.Basic:
    """Return a condition (value > 0) that is evaluated at events only, so it makes no event itself."""
    return sm.Eq(no_event(sm.sign(margin)), 1)  # no Piecewise: SymPy would fold it into those around it


def is_discrete_state_on(state: sm.Expr) -> sm.Basic:
    """Return whether a state that only events change is on (above :data:`MODE_THRESHOLD`); it makes no event itself."""
    return _make_condition_at_events_only(state - sm.Rational(MODE_THRESHOLD))


def _state_flag(state: sm.Expr) -> sm.Expr:
    """Return a condition as 1 or 0, unevaluated: SymPy would fold a Piecewise into those around it."""
    return (1 + no_event(sm.sign(state - sm.Rational(MODE_THRESHOLD)))) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ContactFriction(UnilateralRow):
    """Coulomb's friction of one contact along one tangent: the row of slip, with H, d and h for G, b and c.

    ``force`` is T: what holds it while it sticks, -mu N times the sense while it slides, else 0; impulses are
    tangential.

    Attributes:
        coefficient: mu >= 0, an expression of parameters.
        sliding: State: 1 or -1, the sense of slip; 0 where the contact sticks or is open.
        sliding_after_impact: Value of ``sliding`` after an impact at this instant.
        sliding_after_change: Value of ``sliding`` after a change of modes at this instant.
        held_by_latches: 1 where closed latches hold the slip at zero; None where there are no latches.
    """

    coefficient: sm.Expr
    sliding: sm.Symbol
    sliding_after_impact: sm.Symbol
    sliding_after_change: sm.Symbol
    held_by_latches: sm.Symbol | None = None

    def minimum_slip(self, u: Sequence[sm.Symbol]) -> sm.Expr:
        """The magnitude of slip with which sliding begins, m/s: just large enough to have a sign in spite of round-off.

        Where sliding begins because the force along the surface has grown to mu N, the rate of slip is still zero:
        without it round-off decides on which side slip is.
        """
        terms = [slope * speed for slope, speed in zip(self.jacobian, u, strict=True)]
        return _SLIP_ROUND_OFF * no_event(sm.Add(*(sm.Abs(term) for term in (*terms, self.offset))))

    def stabilized_acceleration(
        self, u: Sequence[sm.Symbol], u_dot: Sequence[sm.Symbol], stabilization_rate: sm.Expr
    ) -> sm.Expr:
        """Return the residual that is zero while it sticks: rate of slip, with a term that removes drift.

        Args:
            u: Speeds.
            u_dot: Their rates.
            stabilization_rate: Rate of stabilization in 1/s.
        """
        return self.rate_derivative(u_dot) + stabilization_rate * self.rate(u)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnilateralContact(UnilateralPositionRow):
    """One contact: the row of its gap; ``force`` is N while it rests, else 0.

    Attributes:
        restitution: Coefficient e in [0, 1], an expression of parameters.
        resting_speed: Where it leaves an impact more slowly than this it rests, in the gap's unit per second, > 0.
        law: Law of restitution: ratio of rates of the gap (Newton), or of impulses of restitution and compression
            (Poisson).
        resting: State: 1 while the contact rests, :data:`OPENING_STATE` as it leaves, else 0.
        impact_count: State: number of its impacts.
        resting_after_impact: Value of ``resting`` after an impact at this instant.
        friction: None where there is none.
        resting_after_change: With friction in the model: value of ``resting`` after a change of modes at this instant.
        held_by_latches: 1 where closed latches hold the gap as it is, whatever the contact's force, which is zero
            then; else 0. None where there are no latches.
    """

    restitution: sm.Expr
    resting_speed: sm.Expr
    law: RestitutionLaw
    resting: sm.Symbol
    impact_count: sm.Symbol
    resting_after_impact: sm.Symbol
    friction: ContactFriction | None = None
    resting_after_change: sm.Symbol | None = None
    held_by_latches: sm.Symbol | None = None

    @property
    def gap(self) -> sm.Expr:
        """The position of the row, g(q, t)."""
        return self.position

    def contact_condition(self, u: Sequence[sm.Symbol]) -> sm.Basic:
        """Return the condition that the bodies touch; a resting contact touches unless it was lifted."""
        return sm.And(self.closed_gap_condition, sm.Not(self.lift_off_condition(u)))

    @property
    def _resting_flag(self) -> sm.Expr:
        """1 while the contact rests, else 0; 0 also in the instant in which it opens."""
        return self.resting * (self.resting - OPENING_STATE) / (1 - OPENING_STATE)

    @property
    def closed_gap_condition(self) -> sm.Rel:
        """The condition that the gap is closed: from the first touch (or while resting) until the gap grows.

        While it rests neither its gap nor the gap's rate is a switch. Its force keeps the second rate at zero, so that
        both are what the integration errs, and how much that is only the importer knows.
        """
        # no Piecewise: SymPy would take the comparison out of it
        return (1 - self._resting_flag) * self.gap - self._resting_flag <= 0

    def lift_off_condition(self, u: Sequence[sm.Symbol]) -> sm.Basic:
        """Return the condition that a resting contact is open: by changed parameters, an event or the start."""
        s = self.stabilization
        stabilizing_speed = s * self.gap
        lift_off_speed = (
            1 - (1 - LIFT_OFF_SPEED_RATIO) * sm.sign(s)
        ) * self.resting_speed  # with s = 0 nothing comes back
        is_separating = sm.Or(
            _make_condition_at_events_only(stabilizing_speed - lift_off_speed),
            _make_condition_at_events_only(self.rate(u) + stabilizing_speed - lift_off_speed),
        )
        return sm.And(is_discrete_state_on(self.resting), is_separating)

    def approach_condition(self, u: Sequence[sm.Symbol]) -> sm.Basic:
        """Return the condition that the gap of an open contact shrinks."""
        return (1 - self._resting_flag) * (
            self.rate(u) + REIMPACT_SPEED_RATIO * self.resting_speed * self.resting
        ) + self._resting_flag < 0

    def impact_condition(self, u: Sequence[sm.Symbol]) -> sm.Basic:
        """Return the condition that closed bodies approach each other: not at rest, or set moving by an event."""
        return sm.Or(
            sm.And(self.closed_gap_condition, self.approach_condition(u)),
            self._approaches_at_rest(self.rate(u) + self.resting_speed, u),
        )

    def approach_rate_at_rest(self, u: Sequence[sm.Symbol]) -> sm.Basic:
        """Return the rate by which resting bodies approach, caused by an event, an importer or drift."""
        return self._approaches_at_rest(self.rate(u) + REIMPACT_SPEED_RATIO * self.resting_speed, u)

    def _approaches_at_rest(self, slower: sm.Expr, u: Sequence[sm.Symbol]) -> sm.Basic:
        """Return the condition that a value is negative at a resting contact that was not lifted."""
        return sm.And(
            is_discrete_state_on(self.resting),
            sm.Not(self.lift_off_condition(u)),
            _make_condition_at_events_only(-slower),
        )

    def separation_condition(self, u: Sequence[sm.Symbol]) -> sm.Basic:
        """Return the condition that an opened contact parts faster than round-off; the gap itself shows that later.

        While it does not leave this is far from true, so that nothing happens at the top of each bounce.
        """
        parts = self.rate(u) - REIMPACT_SPEED_RATIO * self.resting_speed * OPENING_STATE
        return sm.Piecewise((parts, sm.Eq(self.resting, OPENING_STATE)), (-1, True)) > 0  # an equality is no switch

    @property
    def normal_force_margin(self) -> sm.Expr:
        """Margin that is negative where a resting contact would have to pull; 1 where it does not rest."""
        return self.compression_margin * self.resting + 1 - self.resting

    @property
    def compression_margin(self) -> sm.Expr:
        """Force of a resting contact, negative where it would have to pull; 1 where latches hold its gap."""
        return self.force + (self.held_by_latches or 0)


@dataclass(frozen=True, slots=True)
class ContactEquations:
    """All contacts of a mechanism.

    Attributes:
        each: Contacts in order of declaration.
        order: Of impacts at the same instant: sequential or simultaneous.
        jumps: Symbols of u+ - u- of an impact at this instant, one per speed.
        mode_change_jumps: With friction, the same of a change of modes: what puts speeds on what is held then, and slip
            on the side on which it begins; round-off.
        mode_change_count: With friction, state: how often modes of any contact have changed while it rested.
        mode_change_due: With friction: 1 where modes change at this instant, else 0.
    """

    each: tuple[UnilateralContact, ...]
    order: ImpactOrder
    jumps: tuple[sm.Symbol, ...]
    mode_change_jumps: tuple[sm.Symbol, ...] = ()
    mode_change_count: sm.Symbol | None = None
    mode_change_due: sm.Symbol | None = None

    @property
    def contacts_with_friction(self) -> tuple[UnilateralContact, ...]:
        """Contacts with friction."""
        return tuple(contact for contact in self.each if contact.friction)

    @property
    def frictions(self) -> tuple[ContactFriction, ...]:
        """The friction of each contact that has any."""
        return tuple(contact.friction for contact in self.each if contact.friction)

    @property
    def rows(self) -> tuple[UnilateralContact | ContactFriction, ...]:
        """All rows: normals of all contacts, then tangents of those with friction."""
        return (*self.each, *self.frictions)

    @property
    def forces(self) -> tuple[sm.Symbol, ...]:
        """Symbols of the contact forces: N of each contact, then T of those with friction."""
        return tuple(row.force for row in self.rows)

    @property
    def held_by_latches(self) -> tuple[sm.Symbol, ...]:
        """For each row of ``forces``, 1 where closed latches hold it still, else 0; none where there are no latches."""
        return tuple(row.held_by_latches for row in self.rows if row.held_by_latches is not None)

    @property
    def impact_unknowns(self) -> tuple[sm.Symbol, ...]:
        """Symbols of the results of impacts and mode changes at this instant: impulses, new modes, jumps."""
        unknowns = [getattr(c, part) for part in ("impact_impulse", "resting_after_impact") for c in self.each]
        if self.frictions:
            unknowns += [
                getattr(f, part) for part in ("impact_impulse", "sliding_after_impact") for f in self.frictions
            ]
            unknowns += [c.resting_after_change for c in self.each if c.resting_after_change is not None]
            unknowns += [f.sliding_after_change for f in self.frictions]
        return (*unknowns, *self.jumps, *self.mode_change_jumps)

    @property
    def symbols(self) -> tuple[sm.Symbol, ...]:
        """Symbols of all unknowns: forces, results of impacts, whether modes change, which rows are pinned."""
        return (
            *self.forces,
            *self.impact_unknowns,
            *((self.mode_change_due,) if self.mode_change_due else ()),
            *self.held_by_latches,
        )

    def lift_off_condition(self, u: Sequence[sm.Symbol]) -> sm.Basic:
        """Return the condition that any contact is lifted."""
        return sm.Or(*(contact.lift_off_condition(u) for contact in self.each))

    def describe_conditions(self, u: Sequence[sm.Symbol]) -> Iterator[tuple[sm.Basic, str, str]]:
        """Yield each switching condition with its descriptions where it holds and where it does not."""
        for c in self.each:
            gap, rate = _shorten_expression(c.gap), f"the rate of {_shorten_expression(c.gap)}"
            closing, opening = f"{c.name} touches: {gap} <= 0", f"{c.name} is apart: {gap} > 0"
            yield c.closed_gap_condition, closing, opening
            yield c.closed_gap_condition.canonical, closing, opening  # as SymPy writes it in a Piecewise
            yield (
                c.approach_condition(u),
                f"{c.name} approaches: {rate} < 0",
                f"{c.name} does not approach: {rate} >= 0",
            )
            yield c.separation_condition(u), f"{c.name} parts: {rate} > 0", f"{c.name} does not part: {rate} <= 0"
            margins = list(_mode_margins(c, u)) if self.frictions else [c.normal_force_margin]
            for (left, right), margin in zip(_MARGIN_DESCRIPTIONS, margins, strict=False):
                yield sm.Lt(margin, 0, evaluate=False), f"{c.name} {left}", f"{c.name} {right}"

    def mode_change_flag(self, u: Sequence[sm.Symbol]) -> sm.Expr:
        """Return 1 where modes of resting contacts must change, else 0; without friction: where a contact opens."""
        margins = [c.normal_force_margin for c in self.each]
        if self.frictions:
            margins = [margin for contact in self.each for margin in _mode_margins(contact, u)]
        right = [sm.Piecewise((0, sm.Lt(each, 0, evaluate=False)), (1, True), evaluate=False) for each in margins]
        return 1 - sm.Mul(*right, *(_sticking_undisturbed(contact, u) for contact in self.each if contact.friction))


def _shorten_expression(expression: sm.Expr) -> str:
    """Return an expression as text, its end left out where it is long."""
    text = str(expression)
    return text if len(text) <= _MAX_GAP_TEXT_LENGTH else text[: _MAX_GAP_TEXT_LENGTH - 1] + "…"


def _mode_margins(contact: UnilateralContact, u: Sequence[sm.Symbol]) -> Iterator[sm.Expr]:
    """Yield the margins of a resting contact's mode: positive while the mode is right, 1 where it does not rest.

    The margin that an event brings to zero is far from it in the mode behind: sticking ends by mu N - T = 0 where slip
    backwards begins, whose margin is the other one. So its switch is distinct from what comes next at zero.
    """
    rests = _state_flag(contact.resting)
    yield 1 - rests + rests * contact.compression_margin
    if contact.friction is None:
        return
    f = contact.friction
    slides_forward, slides_backward = _state_flag(f.sliding), _state_flag(-f.sliding)
    is_sliding, friction_limit, slip = slides_forward + slides_backward, f.coefficient * contact.force, f.rate(u)
    forward_margin, backward_margin, held = slip, -slip, sm.S.Zero
    if f.held_by_latches is not None:  # what latches hold sticks, at no force: neither is determined by round-off
        held = f.held_by_latches
        forward_margin, backward_margin = (1 - held) * slip - held, -(1 - held) * slip - held
    yield (
        1
        - rests
        + rests
        * (slides_forward * forward_margin + slides_backward + (1 - is_sliding) * (friction_limit - f.force + held))
    )
    yield (
        1
        - rests
        + rests
        * (slides_forward + slides_backward * backward_margin + (1 - is_sliding) * (friction_limit + f.force + held))
    )


def _sticking_undisturbed(contact: UnilateralContact, u: Sequence[sm.Symbol]) -> sm.Expr:
    """Return 0 where an event has set a sticking contact in motion, else 1; drift alone makes no event."""
    f = contact.friction
    assert f is not None
    sticks = _state_flag(contact.resting) * (1 - _state_flag(f.sliding) - _state_flag(-f.sliding))
    is_slow = sm.sign((REIMPACT_SPEED_RATIO * contact.resting_speed) ** 2 - sticks * f.rate(u) ** 2)
    return no_event(sm.Max(0, is_slow, evaluate=False))  # SymPy would ask which is larger, and never know
