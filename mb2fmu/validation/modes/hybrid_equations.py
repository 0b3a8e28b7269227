"""Equations with events as functions of numbers, the reference's own, by NumPy alone.

Between events every switch has a mode, and the motion is smooth (``event_step_loop`` goes from one to the next). A sign
that can keep its own surface at zero (dry friction) holds it there while the value that this takes is within its
limit; a contact that rests holds its gap.

At one instant alone (``x_dot``, ``motion``) modes follow from the state: by the sides on which the surfaces are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from mb2fmu.validation.evaluation_plans.event_errors import (
    make_alternating_switches_error,
    make_conflicting_settings_error,
)
from mb2fmu.validation.modes.contact_friction_modes import solve_frictional_contact_events
from mb2fmu.validation.modes.event_names import format_event_name, list_switch_names
from mb2fmu.validation.modes.impact_impulses import solve_impact_impulses
from mb2fmu.validation.modes.latch_closure import eliminate_held_rows, solve_closing_impulses
from mb2fmu.validation.modes.mode_equations import ModeEquations, SwitchModes
from mb2fmu.validation.modes.motion_in_modes import MotionInModes
from mb2fmu.validation.modes.reference_switches import EquationsBetweenEvents, compute_counter_margin
from mb2fmu.validation.modes.shared_holding_forces import compute_friction_effects, solve_shared_holding_forces
from mb2fmu.validation.reference_equations.numeric_equations import InstantMotion

Floats = npt.NDArray[np.float64]

REST_SLIP_TOLERANCE = 1e-9
"""Surfaces of signs closer to zero than this, over their sizes, may be held there."""

_MAX_MODE_CHANGES = 50
_DEAD_SIGN_FACTOR = 1e4  # times what a sign can hold: nothing could have brought it to rest
_LIMIT_ROUND_OFF = 1e-12  # of a limit: what is nearer to it holds with all that it has


class HybridEquations(ModeEquations):
    """Equations with events: the state x has no modes.

    Args:
        frozen: The equations between events.
        typical: Magnitude of each coordinate, then of each speed.

    ``late`` is what all margins are larger by: events are late by that over the rate of the margin. ``begun``: what is
    at 0 s is behind what ``every`` and ``once`` set there.
    """

    def __init__(self, frozen: EquationsBetweenEvents, typical: Sequence[float] | None = None) -> None:
        super().__init__(frozen, typical)
        self._kept: SwitchModes | None = None
        self.late, self.begun = 0.0, False
        self._names = list_switch_names(frozen)
        places = {symbol: i for i, symbol in enumerate(frozen.equations.states)}
        self._targets = [
            [places[symbol] for symbol, _ in event.settings if symbol in places] for event in frozen.events
        ]
        if frozen.contacts and frozen.contacts.changes:
            self._counts = [places[contact.count] for contact in frozen.contacts.each]
            self._changes = places[frozen.contacts.changes]

    def surfaces(self, t: float, x: Sequence[float], r: Sequence[float], parameters: Sequence[float]) -> Floats:
        """Return switching functions over their sizes; where signs slip and closed contacts are held."""
        modes = SwitchModes(
            np.array([float(i in self.signs) for i in range(self._count)]), np.zeros(len(self.frozen.events))
        )
        return self.evaluate_with_holding_values(t, np.array(x), r, self.prepare(parameters), modes)[0].surfaces

    # --- one instant -------------------------------------------------------------------------------------------------

    def x_dot(self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float]) -> tuple[Floats, float]:
        """Return x' with the modes that the state implies."""
        modes = self.find_modes(t, x, r, prepared)
        return self.slope(t, x, r, prepared, modes)

    def motion(self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float]) -> InstantMotion:
        """Return all quantities at one instant, with the modes of the state."""
        return self.motion_in_modes(t, x, r, prepared, self.find_modes(t, x, r, prepared))

    def motion_in_modes(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], modes: SwitchModes
    ) -> InstantMotion:
        """Return all quantities at one instant, with given modes.

        A sign that holds with all that it has (a freewheel that transmits nothing holds with its lower limit) is told
        as one that holds: its value at the limit is that of a sign that slides.
        """
        look, values = self.evaluate_with_holding_values(t, x, r, prepared, modes)
        for i in self.signs:
            if modes.values[i] == 0.0 and abs(abs(values[i]) - look.limits[i]) <= _LIMIT_ROUND_OFF * look.limits[i]:
                values[i] = np.copysign((1.0 - _LIMIT_ROUND_OFF) * look.limits[i], values[i])
        motion = super().motion(t, x, [*r, *values.tolist()], prepared)
        return replace(motion, outputs=motion.outputs[: self.frozen.outputs])

    def kinetic_energy_at(self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float]) -> float:
        """Return the kinetic energy in J, which no mode changes."""
        return super().motion(t, x, [*r, *self._whole(np.ones(self._count)).tolist()], prepared).kinetic

    @contextmanager
    def keep_modes(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], after: Sequence[float] | None = None
    ) -> Iterator[None]:
        """Keep the modes of this instant, or those after the event in which parameters become ``after``."""
        modes = self.find_modes(t, x, r, prepared)
        if after is not None:
            self.settle_modes(t, x, r, after, modes, ())
        with self.start_in_modes(modes):
            yield

    @contextmanager
    def start_in_modes(self, modes: SwitchModes) -> Iterator[None]:
        """Begin in these modes, whatever the state says."""
        self._kept = modes
        try:
            yield
        finally:
            self._kept = None

    def state_after_parameter_change(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], after: Sequence[float]
    ) -> Floats:
        """Return the state after the event in which parameters become ``after``."""
        return self.settle_modes(t, x, r, after, self.find_modes(t, x, r, prepared), ())[0]

    def find_modes(self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float]) -> SwitchModes:
        """Return modes by the sides on which a state is."""
        if self._kept is not None:
            return self._kept.copy()
        modes = SwitchModes(np.zeros(self._count), np.zeros(len(self.frozen.events)))
        look = self.evaluate_in_modes(t, x, r, prepared, modes.values)
        for _ in range(self._count + 1):
            before, bars = modes.values.copy(), self.rest_slip_limits(t, x, r, prepared, modes)
            for i, switch in enumerate(self.frozen.switches):
                at = look.surfaces[i]
                if switch.kind == "integer":
                    modes.values[i] = np.floor(at)
                elif switch.kind == "truth":
                    modes.values[i] = float(at > 0.0)
                else:
                    modes.values[i] = 0.0 if abs(at) <= max(REST_SLIP_TOLERANCE, bars[i]) else np.sign(at)
            look = self.evaluate_in_modes(t, x, r, prepared, modes.values)
            if np.array_equal(before, modes.values):
                break
        self._release_signs(t, x, r, prepared, modes)
        modes.past_conditions = look.conditions.copy()
        return modes

    def _release_signs(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], modes: SwitchModes
    ) -> None:
        """Release signs that cannot be held, one after the other, in their driven direction."""
        for _ in self.signs:
            held = [i for i in self.signs if modes.values[i] == 0.0]
            if not held:
                return
            look, values = self.evaluate_with_holding_values(t, x, r, prepared, modes)
            values = self._compute_driven_holding_values(look, values, self.rest_slip_limits(t, x, r, prepared, modes))
            excess = [abs(values[i]) - look.limits[i] for i in held]
            worst = int(np.argmax(excess))
            if excess[worst] <= 0.0:
                return
            modes.values[held[worst]] = np.sign(values[held[worst]])

    def _compute_driven_holding_values(self, look: MotionInModes, values: Floats, bars: Floats) -> Floats:
        """Return the holding values; of a driven sign without effect, a value beyond its limit in that direction.

        Where contacts or latches hold its motion it is driven by slip alone, which they give it.
        """
        found = values.copy()
        for i in self.signs:
            if found[i] == 0.0 and bars[i] > 0.0:
                found[i] = look.limits[i] * look.surfaces[i] / bars[i]
            elif found[i] == 0.0 and abs(look.rates[i]) > REST_SLIP_TOLERANCE:
                found[i] = np.copysign(look.limits[i] + abs(look.rates[i]), look.rates[i])
        return found

    def margins(self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], modes: SwitchModes) -> Floats:
        """Return margins, positive where modes are right, one per switch."""
        look, values = self.evaluate_with_holding_values(t, x, r, prepared, modes)
        bars = self.rest_slip_limits(t, x, r, prepared, modes)
        values = self._compute_driven_holding_values(look, values, bars)
        surfaces, limits = look.surfaces.tolist(), look.limits.tolist()
        found = []
        for i, switch in enumerate(self.frozen.switches):
            at, mode = surfaces[i], float(modes.values[i])
            if switch.kind == "integer":
                found.append(compute_counter_margin(at, mode, clock=i in self.frozen.clock_switches))
            elif switch.kind == "truth":
                set_to = (
                    at == 0.0 and mode > 0.5 and switch.changes_only_at_events
                )  # no motion comes to it: it is what it says
                found.append(-1.0 if set_to else at if mode > 0.5 else -at)
            else:
                found.append(limits[i] - abs(float(values[i])) if mode == 0.0 else mode * at - bars[i])
        return np.array(found) + self.late

    def contradiction(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], modes: SwitchModes
    ) -> float:
        """Return how far a state contradicts its modes at most, over switching functions' sizes; 0: not at all.

        What holds contradicts a state that slips, however much it could hold.
        """
        surfaces = self.evaluate_in_modes(t, x, r, prepared, modes.values).surfaces
        bars = self.rest_slip_limits(t, x, r, prepared, modes)
        slips = [abs(surfaces[i]) - bars[i] for i in self.signs if modes.values[i] == 0.0]
        return float(max(0.0, *slips, *(-self.margins(t, x, r, prepared, modes)), 0.0))

    # --- events ------------------------------------------------------------------------------------------------------

    def settle_modes(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], modes: SwitchModes, due: Sequence[int]
    ) -> tuple[Floats, str]:
        """Update modes after an event in place; return the states after it and the event's name.

        The switches ``due`` have come to their surfaces: they change, whatever side round-off puts them on. Without
        any, something was set: inputs or parameters.
        """
        name = self._names[due[0]] if due else ""
        begin, happened = x, ""
        reached: set[int] = set()
        changed = [self._names[i] for i in due]
        if not due:
            self._moved(t, x, r, prepared, modes)
        before = modes.values.copy()
        for i in due:
            if modes.values[i] == before[i]:  # or another's rest was its own
                x = self._change(i, t, x, r, prepared, modes)
            reached.add(i)
        for _ in range(_MAX_MODE_CHANGES):
            margins = self.margins(t, x, r, prepared, modes)
            slack = np.array([REST_SLIP_TOLERANCE if i in reached else 0.0 for i in range(self._count)])
            wrong = np.flatnonzero(margins < -slack)
            if len(wrong):
                i = int(wrong[np.argmin(margins[wrong])])
                x = self._change(i, t, x, r, prepared, modes)
                reached.add(i)
                changed.append(self._names[i])
                name = name or self._names[i]
                continue
            fired, after = self._find_fired_event(t, x, r, prepared, modes)
            if not fired:
                return x, format_event_name(self.frozen, (begin, x), happened, name)
            x = after
            changed.append(fired)
            happened = happened or fired
            self._moved(t, x, r, prepared, modes)
        raise make_alternating_switches_error(
            t, f"modes switch to and fro {_MAX_MODE_CHANGES} times at one instant", changed
        )

    def _change(
        self, i: int, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], modes: SwitchModes
    ) -> Floats:
        """Change the mode of a switch at its event and return the state; a sign is first tried at rest."""
        kind, mode = self.frozen.switches[i].kind, modes.values[i]
        look, values = self.evaluate_with_holding_values(t, x, r, prepared, modes)
        bars = self.rest_slip_limits(t, x, r, prepared, modes)
        if kind == "truth":
            modes.values[i] = 1.0 - mode
        elif kind == "integer":
            modes.values[i] = mode + 1.0 if look.surfaces[i] > mode + 0.5 else mode - 1.0
        elif mode == 0.0:
            modes.values[i] = np.sign(self._compute_driven_holding_values(look, values, bars)[i])
        else:
            for j in self.signs:  # what rests with it is held by all that could
                if abs(look.surfaces[j]) <= max(REST_SLIP_TOLERANCE, bars[j]):
                    modes.values[j] = 0.0
            modes.values[i] = 0.0
            slips, x = x, self._at_rest(t, x, r, prepared, modes)
            look, values = self.evaluate_with_holding_values(t, x, r, prepared, modes)
            values = self._compute_driven_holding_values(look, values, bars)
            if abs(values[i]) > look.limits[i]:
                still = abs(look.surfaces[i]) <= max(
                    REST_SLIP_TOLERANCE, bars[i]
                )  # what has no effect brings nothing to rest
                modes.values[i] = np.sign(values[i] if still else look.surfaces[i])
                if abs(values[i]) > _DEAD_SIGN_FACTOR * look.limits[i]:
                    x = slips  # at a dead centre round-off of slip would be a blow on all that moves
        return x

    def _at_rest(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], modes: SwitchModes
    ) -> Floats:
        """Return speeds changed by an impulse of the held signs alone, so that their surfaces are at zero."""
        held = self._holding(x, modes)
        base = self.evaluate_in_modes(t, x, r, prepared, modes.values)
        B, reach = self._reach(t, x, r, prepared, base, modes, held)
        reach[: self.n_q] = 0.0
        reach[len(x) - self.n_z :] = 0.0
        off = np.concatenate(
            [base.surfaces, base.contact_rows.rates, base.friction_contacts.slip_speeds, base.latch_rows.rates]
        )[held]
        return np.asarray(x + reach @ self._solved(B, -off, held, base.limits, t, REST_SLIP_TOLERANCE))

    def _remove_drift_slip(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], modes: SwitchModes
    ) -> Floats:
        """Return the state without what drift makes of slip that contacts or latches hold: they may let go now."""
        bars = self.rest_slip_limits(t, x, r, prepared, modes)
        signs = [i for i in self.signs if modes.values[i] == 0.0]
        if not bars[signs].any():
            return x
        held = self._holding(x, modes)
        base = self.evaluate_in_modes(t, x, r, prepared, modes.values)
        B, reach = self._reach(t, x, r, prepared, base, modes, held)
        B, reach = compute_friction_effects(self._remove_pinned_effects(B, held), reach, bars[signs] > 0.0)
        reach[: self.n_q] = 0.0
        reach[len(x) - self.n_z :] = 0.0
        return np.asarray(x - reach @ solve_shared_holding_forces(B, base.surfaces[signs], base.limits[signs], np.inf))

    def _find_fired_event(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], modes: SwitchModes
    ) -> tuple[str, Floats]:
        """Return the first of the model's own events that happens, and what they set, with the values before."""
        x = self._remove_drift_slip(t, x, r, prepared, modes)
        look, values = self.evaluate_with_holding_values(t, x, r, prepared, modes)
        if self._contacts or self._latched:
            forces = values[: self._count + self._lines + self._latched]
            struck = [*self._blows(look, t, x, r, prepared, modes), *self._closing(t, x, r, prepared, modes)]
            pinned = values[self._switched - self._lines :] if self._latched else np.empty(0)
            look = self.evaluate_in_modes(t, x, r, prepared, np.concatenate([forces, struck, pinned]))
        after, place, fired = x.copy(), 0, ""
        setters: dict[int, str] = {}
        events, conditions = self.frozen.events, look.conditions.copy()
        first = any(
            now > was and not v.late for v, now, was in zip(events, conditions, modes.past_conditions, strict=True)
        )
        for k, targets in enumerate(self._targets):
            event = events[k]
            if event.is_deferred and first:  # impacts and closings see what the model's own events set
                conditions[k] = modes.past_conditions[k]
            elif conditions[k] > modes.past_conditions[k]:
                fired = fired or event.name
                for offset, target in enumerate(targets):
                    value = look.settings[place + offset]
                    if target in setters and value != after[target]:
                        raise make_conflicting_settings_error(
                            t, self.equations.states[target], setters[target], event.name
                        )
                    after[target] = value
                    setters[target] = event.name
            place += len(event.settings)
        modes.past_conditions = conditions
        return fired, after

    def _blows(
        self,
        held: MotionInModes,
        t: float,
        x: Floats,
        r: Sequence[float],
        prepared: Sequence[float],
        modes: SwitchModes,
    ) -> Floats:
        """Return the results of contacts at this instant, in the order of ``Contacts.impact_unknowns``."""
        contacts = self.frozen.contacts
        if contacts is None:
            return np.empty(0)
        base = self.evaluate_in_modes(t, x, r, prepared, modes.values)
        every = [self._count + k for k in range(self._lines)]
        every += [self._count + self._lines + int(k) for k in np.flatnonzero(base.latch_rows.engaged > 0.5)]
        looks = self._reach(t, x, r, prepared, base, modes, every)
        W, reach, pulled = eliminate_held_rows(*looks, base.rates[every], self._lines)
        touch = replace(base.contact_rows, accelerations=pulled[: self._contacts])
        rub = replace(base.friction_contacts, accelerations=pulled[self._contacts :])
        if not self._rough:
            impulses, rests = solve_impact_impulses(contacts, W, touch)
            return np.concatenate([impulses, rests, self._jumps(reach @ impulses)])
        counts = [sum(x[place] for place in self._counts), x[self._changes]]
        hit, change = (
            self._is_event_due(held, modes, *what) for what in zip(("impact of ", "friction of "), counts, strict=True)
        )
        found, impulses, pushes = solve_frictional_contact_events(
            contacts, (W, reach), (touch, rub), t, hit=hit, change=change
        )
        return np.concatenate([found, self._jumps(impulses), self._jumps(pushes)])

    def _is_event_due(self, look: MotionInModes, modes: SwitchModes, what: str, count: float) -> bool:
        """Return whether an event with this name prefix happens now, with a number above its last one."""
        return any(
            event.name.startswith(what) and look.conditions[k] > max(modes.past_conditions[k], count + 0.5)
            for k, event in enumerate(self.frozen.events)
        )

    def _closing(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], modes: SwitchModes
    ) -> Floats:
        """Return impulses of latches that close at this instant, and the changes of speeds."""
        base = self.evaluate_in_modes(t, x, r, prepared, modes.values)
        blows, reached = np.zeros(self._latched), np.zeros(len(x))
        if self._latched and base.latch_rows.closes_now.any():
            rows = np.flatnonzero(base.latch_rows.closed_after > 0.5)
            every = [self._count + self._lines + int(k) for k in rows]
            W, reach = self._reach(t, x, r, prepared, base, modes, every)
            blows[rows] = solve_closing_impulses(W, base.latch_rows.rates[rows])
            reached = reach @ blows[rows]
        return np.append(blows, self._jumps(reached)) if self._latched else blows

    def _jumps(self, reached: Floats) -> Floats:
        """Return jumps of speeds from those of states; 0 for speeds that are no states."""
        jumps = np.zeros(self.n_u)
        jumps[self._independent] = reached[self.n_q : self.n_q + len(self._independent)]
        return jumps

    def _moved(self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], modes: SwitchModes) -> None:
        """Make signs slip to the side on which an event has set their surface."""
        look, bars = (
            self.evaluate_in_modes(t, x, r, prepared, modes.values),
            self.rest_slip_limits(t, x, r, prepared, modes),
        )
        for i in self.signs:
            if abs(look.surfaces[i]) > max(REST_SLIP_TOLERANCE, bars[i]):
                modes.values[i] = np.sign(look.surfaces[i])

    def stop_held_speeds(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], modes: SwitchModes
    ) -> Floats:
        """Return the state with speeds for which everything held by these modes stands still."""
        return self._at_rest(t, x, r, prepared, modes) if self._holding(x, modes) else x

    def begin(self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float]) -> tuple[SwitchModes, Floats]:
        """Return modes and states at the start of a simulation, perhaps with the first instants of ``every``."""
        modes = self.find_modes(t, x, r, prepared)
        for k, event in enumerate(self.frozen.events):
            if event.kind == "ticks" and (event.late or not self.begun):
                modes.past_conditions[k] = 0.0
        x, _ = self.settle_modes(t, x, r, prepared, modes, ())
        return modes, x
