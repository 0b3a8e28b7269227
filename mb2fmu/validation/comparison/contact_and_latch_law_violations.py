"""Laws of contacts and latches along a reference: nothing pulls, penetrates, or holds what it should release.

FMU and reference take from one place when a contact touches, opens and begins to slide, and when a latch closes and
opens. If that is late, it is late on both sides. Just before each event, and at communication points of each mode, the
laws themselves must hold, in the gaps, slips and coefficients that were read and in the forces that the reference finds
by trying:

    a contact that rests    N >= 0, and while it sticks |T| <= mu N
    one that slides         its slip has the sense in which it slides
    one that is open        g >= 0
    one with an impact      g = 0

At all communication points and just before events:

    a latch that is closed  its condition to open does not hold
    one that is open        its condition to close does not hold, or that to open does

At a single instant round-off may decide on which side a condition is: it must be broken at two, which are two
communication points, or the instant of an event and one a little before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import sympy as sm

from mb2fmu.model.quantity_declarations import MODE_THRESHOLD
from mb2fmu.validation.comparison.output_formula_comparison import choose_comparison_instants
from mb2fmu.validation.evaluation_plans.expression_evaluation_plan import EvaluationPlanner
from mb2fmu.validation.modes.hybrid_equations_recognition import is_hybrid
from mb2fmu.validation.reference.reference_run import ReferenceRun

if TYPE_CHECKING:
    from mb2fmu.validation.modes.hybrid_equations import HybridEquations
    from mb2fmu.validation.modes.located_events import LocatedEvent
    from mb2fmu.validation.modes.mode_equations import SwitchModes

Floats = npt.NDArray[np.float64]

_MAX_EVENTS = 99
"""Events at which laws are judged: of more the first and last thirds of so many, and a random third between."""
_EARLIER_FRACTION = 1e-3
"""Of a communication step: so long before an event conditions of latches are looked at, too."""
_RANDOM_SEED = 11
_FORCE_TOLERANCE = 1e-6  # of the largest force of any contact
_LEAST_FORCE = 0.1  # of the natural energy over the gap's size: what is less all the time is round-off
_SAME_INSTANT = 1e-9  # of a communication step
_REST_TOLERANCE = 1e-3
"""Of the speed below which a contact rests, and of what its stabilization makes of that: of a slip, and of a gap."""
_GAP_TOLERANCE = 1e-6  # of a gap's size, for the round-off of an event's time
LawViolation = tuple[float, str]
"""How far a law is broken over what is allowed; contact and time."""


def compute_contact_and_latch_law_violations(references: Sequence[ReferenceRun]) -> tuple[LawViolation, ...] | None:
    """Return how far each law is broken at each instant; None where there are neither contacts nor latches.

    Args:
        references: Of one mechanism.
    """
    numeric = references[0].numeric
    if not is_hybrid(numeric) or not (numeric.frozen.contacts or numeric.frozen.latches):
        return None
    violations: list[LawViolation] = []
    if numeric.frozen.contacts:
        contact_laws = _ReferenceContactLawChecker(numeric)
        violations += (violation for reference in references for violation in contact_laws.judge(reference))
    if numeric.frozen.latches:
        violations += (violation for reference in references for violation in _judge_latches(numeric, reference))
    return tuple(violations)


def _judge_latches(numeric: HybridEquations, reference: ReferenceRun) -> Iterator[LawViolation]:
    """Yield whether each latch is closed or open against its conditions, at points and just before events."""
    e, run, latches = numeric.equations, reference.experiment, numeric.frozen.latches
    assert latches is not None
    inputs = e.r[: numeric.frozen.inputs]
    known_symbols = [e.t, *e.q, *e.u, *e.z, *inputs, *e.p, *(c.symbol for c in e.calculated_parameters)]
    planner = EvaluationPlanner(e.intermediates, {symbol: place for place, symbol in enumerate(known_symbols)})
    checked_latches = [
        each for each in latches.each if (each.close.free_symbols | each.open.free_symbols) <= {*known_symbols}
    ]
    conditions = [sm.Piecewise((1, each), (0, True)) for latch in checked_latches for each in (latch.close, latch.open)]
    plan, prepared = planner.plan(conditions), numeric.prepare(run.parameters)
    engaged = [numeric.n_q + numeric.n_u + list(e.z).index(latch.engaged) for latch in checked_latches]

    def list_broken(t: float, x: Floats, r: Sequence[float]) -> list[tuple[bool, str]]:
        """Return whether each latch is against its conditions, and which."""
        values = [t, *x[: numeric.n_q + numeric.n_u + numeric.n_z].tolist(), *r, *prepared]
        holds = [each > MODE_THRESHOLD for each in plan(values + [0.0] * (planner.size - len(values)))]
        is_closed = [x[place] > MODE_THRESHOLD for place in engaged]
        return [
            (opens if closed else closes and not opens, f"{latch.name} is {'closed' if closed else 'open'}")
            for latch, closed, closes, opens in zip(checked_latches, is_closed, holds[::2], holds[1::2], strict=True)
        ]

    pairs = []
    broken = [(False, "")] * len(checked_latches)
    for k, row in enumerate(reference.trajectory.values):
        before, broken = broken, list_broken(float(run.time[k]), row, run.inputs_at(k).tolist())
        pairs.append((float(run.time[k]), before, broken))
    earlier = _EARLIER_FRACTION * float(np.min(np.diff(run.time)))
    for event in _choose_events(reference, 2.0 * earlier):
        t, x, r = event.time, event.states[0][:-1], run.inputs[event.step].tolist()
        motion = numeric.motion_in_modes(t, x, r, prepared, event.sides[0])
        x_earlier = x - earlier * np.asarray(motion.x_dot)
        u_earlier = numeric.motion_in_modes(t - earlier, x_earlier, r, prepared, event.sides[0]).u
        rows = (
            np.concatenate([each[: numeric.n_q], u, each[len(each) - numeric.n_z :]])
            for each, u in ((x_earlier, u_earlier), (x, motion.u))
        )
        pairs.append((t, list_broken(t - earlier, next(rows), r), list_broken(t, next(rows), r)))
    for t, before, now in pairs:
        for (was_broken, _), (is_broken, what) in zip(before, now, strict=True):
            yield np.inf if is_broken and was_broken else 0.0, f"{what} against its condition at t = {t:.4g} s"


def _choose_events(reference: ReferenceRun, distance: float) -> list[LocatedEvent]:
    """Return the first, the last and random ones of the events that come later than ``distance`` behind what is before.

    What follows at the same instant begins where laws are about to be kept again; so does a jump of inputs.
    """
    time_before, apart = -np.inf, []
    for event in reference.events:
        if event.time > max(time_before, float(reference.experiment.time[event.step])) + distance:
            apart.append(event)
        time_before = event.time
    if len(apart) <= _MAX_EVENTS:
        return apart
    third = _MAX_EVENTS // 3
    between = np.random.default_rng(_RANDOM_SEED).choice(np.arange(third, len(apart) - third), third, replace=False)
    return [*apart[:third], *(apart[k] for k in sorted(between)), *apart[-third:]]


class _ReferenceContactLawChecker:
    """Laws of the contacts of one reference's equations."""

    def __init__(self, numeric: HybridEquations) -> None:
        e, contacts = numeric.equations, numeric.frozen.contacts
        assert contacts is not None
        self._numeric, self._contacts = numeric, contacts
        known_symbols = [e.t, *e.q, *e.u, *e.z, *e.r, *e.p, *(c.symbol for c in e.calculated_parameters)]
        planner = EvaluationPlanner(e.intermediates, {symbol: place for place, symbol in enumerate(known_symbols)})
        freeze, places = numeric.frozen.replace_switches, {symbol: place for place, symbol in enumerate(e.states)}
        expressions = [part for c in contacts.each for part in (c.position, c.resting_speed, c.stabilization)]
        expressions += [part for f in contacts.frictions for part in (f.rate(e.u), f.coefficient)]
        typical = dict(zip(e.q, numeric.typical.tolist(), strict=False))
        gap_sizes = [sm.Add(*(sm.Abs(c.position.diff(q)) * typical[q] for q in e.q)) for c in contacts.each]
        self._plan = planner.plan([*map(freeze, expressions), *gap_sizes])
        self._size, self._start_gaps = planner.size, [0.0] * len(contacts.each)
        self._resting = [places[c.resting] for c in contacts.each]
        self._impact_counts = [places[c.impact_count] for c in contacts.each]
        self._sliding = [places[f.sliding] for f in contacts.frictions]
        self._normal_of_friction = [k for k, c in enumerate(contacts.each) if c.friction]
        first_force = len(numeric.frozen.switches)
        self._normals = slice(first_force, first_force + len(contacts.each))
        self._tangents = slice(self._normals.stop, self._normals.stop + len(contacts.frictions))

    def judge(self, reference: ReferenceRun) -> Iterator[LawViolation]:
        """Yield how far each law is broken, instant by instant."""
        run, instants = reference.experiment, []
        for k in choose_comparison_instants(reference):
            x = reference.states[k]
            instants.append((float(run.time[k]), x, x, run.inputs_at(k).tolist(), reference.modes[k]))
        for event in _choose_events(reference, _SAME_INSTANT * float(np.min(np.diff(run.time)))):
            r = run.inputs[event.step].tolist()
            instants.append((event.time, *event.states[:, :-1], r, event.sides[0]))
        prepared = self._numeric.prepare(run.parameters)
        t, x, _, r, modes = instants[0]  # what is taken for closed may begin there with a small overlap
        _, numbers = self._evaluate(t, x, r, prepared, modes)
        self._start_gaps = numbers[0 : 3 * len(self._contacts.each) : 3]
        found = [self._measure(t, x, after, r, prepared, modes) for t, x, after, r, modes in instants]
        largest_force = max(force for force, *_ in found)
        smallest_gap_size = min(gap_size for _, gap_size, *_ in found)
        if smallest_gap_size > 0.0:
            largest_force = max(largest_force, _LEAST_FORCE * reference.natural_energy / smallest_gap_size)
        for (t, *_), (_, _, lacking_forces, others) in zip(instants, found, strict=True):
            for lacking_force, what in lacking_forces:
                ratio = lacking_force / (_FORCE_TOLERANCE * largest_force) if lacking_force > 0.0 else 0.0
                yield ratio, f"{what} at t = {t:.4g} s"
            yield from ((ratio, f"{what} at t = {t:.4g} s") for ratio, what in others)

    def _evaluate(
        self, t: float, x: Floats, r: list[float], prepared: Sequence[float], modes: SwitchModes
    ) -> tuple[Floats, list[float]]:
        """Return the values of all own inputs, forces among them, and the numbers that laws are written in."""
        own_inputs = self._numeric.find_observed_values(t, x, r, prepared, modes)
        u = self._numeric.motion_in_modes(t, x, r, prepared, modes).u
        n_q, n_z = self._numeric.n_q, self._numeric.n_z
        values = [t, *x[:n_q].tolist(), *u.tolist(), *x[len(x) - n_z :].tolist(), *r, *own_inputs.tolist(), *prepared]
        return own_inputs, self._plan(values + [0.0] * (self._size - len(values)))

    def _measure(
        self, t: float, x: Floats, after: Floats, r: list[float], prepared: Sequence[float], modes: SwitchModes
    ) -> tuple[float, float, list[LawViolation], list[LawViolation]]:
        """Return the largest force, the smallest gap's size, what forces lack, and how far other laws are broken.

        Forces are in N; the others are over what is allowed.
        """
        own_inputs, numbers = self._evaluate(t, x, r, prepared, modes)
        N, T = own_inputs[self._normals], own_inputs[self._tangents]
        force_laws: list[LawViolation] = []
        laws: list[LawViolation] = []
        for k, contact in enumerate(self._contacts.each):
            gap, resting_speed, stabilization = numbers[3 * k : 3 * k + 3]
            depth = _GAP_TOLERANCE * numbers[k - len(N)]
            if stabilization > 0.0:
                depth = max(depth, _REST_TOLERANCE * resting_speed / stabilization)
            depth += max(-self._start_gaps[k], 0.0)
            if x[self._resting[k]] > MODE_THRESHOLD:
                force_laws.append((-N[k], f"{contact.name} pulls"))
            else:
                laws.append((_excess_ratio(-gap, depth), f"{contact.name} is open and penetrates"))
            if after[self._impact_counts[k]] > x[self._impact_counts[k]]:
                laws.append((_excess_ratio(abs(gap), depth), f"{contact.name} has an impact while it is open"))
        for j, k in enumerate(self._normal_of_friction):
            slip, coefficient = numbers[3 * len(N) + 2 * j : 3 * len(N) + 2 * j + 2]
            sense, name = x[self._sliding[j]], self._contacts.each[k].name
            if abs(sense) > MODE_THRESHOLD:
                allowed_slip = _REST_TOLERANCE * numbers[3 * k + 1]
                laws.append((_excess_ratio(-sense * slip, allowed_slip), f"{name} slides against its sense"))
            else:
                force_laws.append((abs(T[j]) - coefficient * N[k], f"{name} sticks by more than friction holds"))
        return float(np.max(np.abs([*N, *T]), initial=0.0)), min(numbers[-len(N) :]), force_laws, laws


def _excess_ratio(excess: float, allowed: float) -> float:
    """Return excess / allowed; 0 without an excess, or where no allowed size is known."""
    return excess / allowed if excess > 0.0 and allowed > 0.0 else 0.0
