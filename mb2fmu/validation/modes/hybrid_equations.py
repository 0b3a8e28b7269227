"""Equations with events as functions of numbers, the reference's own, by NumPy alone.

Between events every switch has a mode, and the motion is smooth (``event_integration`` goes from one to the next). A
sign that can keep its own surface at zero (dry friction) holds it there while the value that this takes is within its
limit; a contact that rests holds its gap.

At one instant alone (``x_dot``, ``motion``) modes follow from the state: by the sides on which the surfaces are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from mb2fmu.model.quantity_declarations import MODE_THRESHOLD
from mb2fmu.validation.evaluation_plans.event_iteration_errors import (
    make_alternating_switches_error,
    make_conflicting_events_error,
)
from mb2fmu.validation.modes.contact_friction_modes import solve_frictional_contact_events
from mb2fmu.validation.modes.coupled_holding_forces import compute_friction_influence, solve_coupled_holding_forces
from mb2fmu.validation.modes.equations_between_events import EquationsBetweenEvents, compute_distance_to_next_count
from mb2fmu.validation.modes.event_names import format_event_name, list_switch_names
from mb2fmu.validation.modes.impact_impulses import solve_impact_impulses
from mb2fmu.validation.modes.instant_motion_in_modes import InstantMotionInModes
from mb2fmu.validation.modes.latch_closing_impulses import eliminate_held_rows, solve_latch_closing_impulses
from mb2fmu.validation.modes.mode_equations import ModeEquations, SwitchModes
from mb2fmu.validation.reference_equations.numeric_equations import InstantMotion, InstantMotions

Floats = npt.NDArray[np.float64]

REST_SLIP_TOLERANCE = 1e-9
"""Surfaces of signs closer to zero than this, over their sizes, may be held there."""

_MAX_MODE_CHANGES = 50
_DEAD_SIGN_FACTOR = 1e4  # times what a sign can hold: nothing could have brought it to rest


class HybridEquations(ModeEquations):
    """Equations with events: the state x has no modes.

    Args:
        frozen: The equations between events.
        typical: Magnitude of each coordinate, then of each speed.

    ``start_events_done``: what is at 0 s is behind what ``every`` and ``once`` set there.
    """

    def __init__(self, frozen: EquationsBetweenEvents, typical: Sequence[float] | None = None) -> None:
        super().__init__(frozen, typical)
        self._fixed_modes: SwitchModes | None = None
        self.start_events_done = False
        self.switch_names = list_switch_names(frozen)
        self._counters = [i for i, switch in enumerate(frozen.switches) if switch.kind == "integer"]
        self._are_set_at_events = np.array(
            [switch.kind == "truth" and switch.changes_only_at_events for switch in frozen.switches], dtype=np.bool_
        )

    def surfaces(self, t: float, x: Sequence[float], r: Sequence[float], parameters: Sequence[float]) -> Floats:
        """Return switching functions over their sizes; where signs slip and closed contacts are held.

        Raises:
            ArithmeticError: Where one is not finite; Python's functions raise there, compiled ones do not.
        """
        modes = SwitchModes(
            np.array([float(i in self.signs) for i in range(self._switch_count)]), np.zeros(len(self.frozen.events))
        )
        motion, _ = self.evaluate_with_holding_values(t, np.array(x), r, self.prepare(parameters), modes)
        if not np.isfinite(motion.surfaces).all():
            raise ArithmeticError("a switching function is not finite")
        return motion.surfaces

    # --- one instant -------------------------------------------------------------------------------------------------

    def x_dot(self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float]) -> tuple[Floats, float]:
        """Return x' with the modes that the state implies."""
        modes = self.find_modes(t, x, r, prepared)
        return self.slope(t, x, r, prepared, modes)

    def motion(self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float]) -> InstantMotion:
        """Return all quantities at one instant, with the modes of the state."""
        return self.motion_in_modes(t, x, r, prepared, self.find_modes(t, x, r, prepared))

    def motions(self, time: Floats, states: Floats, inputs: Floats, prepared: Sequence[float]) -> InstantMotions:
        """Return all quantities at many instants, with the modes of each state."""
        rows = zip(time.tolist(), states, inputs.tolist(), strict=True)
        modes = [self.find_modes(t, x, r, prepared) for t, x, r in rows]
        return self.motions_in_modes(time, states, inputs, prepared, modes)

    def kinetic_energy_at(self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float]) -> float:
        """Return the kinetic energy in J, which no mode changes."""
        return super().motion(t, x, [*r, *self._expand_modes(np.ones(self._switch_count)).tolist()], prepared).kinetic

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
        self._fixed_modes = modes
        try:
            yield
        finally:
            self._fixed_modes = None

    def state_after_parameter_change(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], after: Sequence[float]
    ) -> Floats:
        """Return the state after the event in which parameters become ``after``."""
        return self.settle_modes(t, x, r, after, self.find_modes(t, x, r, prepared), ())[0]

    def find_modes(self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float]) -> SwitchModes:
        """Return modes by the sides on which a state is."""
        if self._fixed_modes is not None:
            return self._fixed_modes.copy()
        modes = SwitchModes(np.zeros(self._switch_count), np.zeros(len(self.frozen.events)))
        motion = self.evaluate_in_modes(t, x, r, prepared, modes.values)
        for _ in range(self._switch_count + 1):
            found_modes = (motion.surfaces > 0.0).astype(np.float64)
            found_modes[self._counters] = np.floor(motion.surfaces[self._counters])
            if self.signs:
                rest_limits = self.rest_slip_limits(t, x, r, prepared, modes)[self.signs]
                slips = motion.surfaces[self.signs]
                is_at_rest = np.abs(slips) <= np.maximum(REST_SLIP_TOLERANCE, rest_limits)
                found_modes[self.signs] = np.where(is_at_rest, 0.0, np.sign(slips))
            if np.array_equal(found_modes, modes.values):
                break
            modes.values = found_modes
            motion = self.evaluate_in_modes(t, x, r, prepared, modes.values)
        self._release_signs(t, x, r, prepared, modes)
        modes.past_conditions = motion.conditions.copy()
        return modes

    def _release_signs(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], modes: SwitchModes
    ) -> None:
        """Release signs that cannot be held, one after the other, in their driven direction.

        What the others drive back once they slip, too, is held again, once each.
        """
        released: set[int] = set()
        held_again: set[int] = set()
        for _ in range(3 * len(self.signs)):
            motion, values = self.evaluate_with_holding_values(t, x, r, prepared, modes)
            rest_limits = self.rest_slip_limits(t, x, r, prepared, modes)
            values = self._compute_driven_holding_values(motion, values, rest_limits)
            excess_values = [
                abs(values[i]) - motion.holding_limits[i] if modes.values[i] == 0.0 else -np.inf for i in self.signs
            ]
            worst = int(np.argmax(excess_values))
            if excess_values[worst] > 0.0:
                modes.values[self.signs[worst]] = np.sign(values[self.signs[worst]])
                released.add(self.signs[worst])
                continue
            reversed_slip = self._find_reversed_slip(t, x, r, prepared, modes, released - held_again)
            if reversed_slip is None:
                return
            modes.values[reversed_slip] = 0.0
            held_again.add(reversed_slip)

    def _compute_driven_holding_values(
        self, motion: InstantMotionInModes, values: Floats, rest_limits: Floats
    ) -> Floats:
        """Return the holding values; of a driven sign without effect, a value beyond its limit in that direction.

        Where contacts or latches hold its motion it is driven by slip alone, which they give it.
        """
        driven_values = values.copy()
        for i in self.signs:
            if driven_values[i] == 0.0 and rest_limits[i] > 0.0:
                driven_values[i] = motion.holding_limits[i] * motion.surfaces[i] / rest_limits[i]
            elif driven_values[i] == 0.0 and abs(motion.rates[i]) > REST_SLIP_TOLERANCE:
                driven_values[i] = np.copysign(motion.holding_limits[i] + abs(motion.rates[i]), motion.rates[i])
        return driven_values

    def moves_freely(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], modes: SwitchModes | None = None
    ) -> bool:
        """Return whether nothing sticks, touches or is latched, and no event is due; ``modes``: None: of the state."""
        modes = modes or self.find_modes(t, x, r, prepared)
        is_held = any(modes.values[i] == 0.0 for i in self.signs) or any(
            x[place] > MODE_THRESHOLD for place in (*self._resting_states, *self._latch_states)
        )
        if is_held or modes.past_conditions.any():
            return False
        return not self._contact_count or not np.any(
            self.evaluate_in_modes(t, x, r, prepared, modes.values).contact_rows.closed > MODE_THRESHOLD
        )

    def margins(self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], modes: SwitchModes) -> Floats:
        """Return margins, positive where modes are right, one per switch."""
        compiled = self.set_modes_in_c(x, r, prepared, modes)
        margins = compiled.compute_margins(t, x) if compiled else None
        if margins is None:
            held = self.evaluate_with_holding_values(t, x, r, prepared, modes)
            margins = self._compute_margins(held, t, x, r, prepared, modes)
        return margins

    def _compute_margins(
        self, held: tuple[InstantMotionInModes, Floats], t: float, x: Floats, r: Sequence[float],
        prepared: Sequence[float], modes: SwitchModes,
    ) -> Floats:  # fmt: skip
        """Return :meth:`margins`; ``held``: of :meth:`evaluate_with_holding_values` there."""
        motion, values = held
        surfaces, are_on = motion.surfaces, modes.values > MODE_THRESHOLD
        margins = np.where(are_on, surfaces, -surfaces)
        margins[are_on & self._are_set_at_events & (surfaces == 0.0)] = -1.0  # no motion comes to it: it is as it says
        for i in self._counters:
            surface, mode = float(surfaces[i]), float(modes.values[i])
            margins[i] = compute_distance_to_next_count(surface, mode, clock=i in self.frozen.clock_switches)
        if self.signs:
            rest_limits = self.rest_slip_limits(t, x, r, prepared, modes)
            values = self._compute_driven_holding_values(motion, values, rest_limits)
            for i in self.signs:
                mode = modes.values[i]
                margins[i] = (
                    motion.holding_limits[i] - abs(values[i]) if mode == 0.0 else mode * surfaces[i] - rest_limits[i]
                )
        return np.asarray(margins + self.margin_offset)

    def mode_contradiction(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], modes: SwitchModes
    ) -> float:
        """Return how far a state contradicts its modes at most, over switching functions' sizes; 0: not at all.

        What holds contradicts a state that slips, however much it could hold.
        """
        held = [i for i in self.signs if modes.values[i] == 0.0]
        slips: list[float] = []
        if held:
            surfaces = self.evaluate_in_modes(t, x, r, prepared, modes.values).surfaces
            rest_limits = self.rest_slip_limits(t, x, r, prepared, modes)
            slips = [abs(surfaces[i]) - rest_limits[i] for i in held]
        return float(max(0.0, *slips, *(-self.margins(t, x, r, prepared, modes)), 0.0))

    # --- events ------------------------------------------------------------------------------------------------------

    def settle_modes(
        self,
        t: float,
        x: Floats,
        r: Sequence[float],
        prepared: Sequence[float],
        modes: SwitchModes,
        due_switches: Sequence[int],
    ) -> tuple[Floats, str]:
        """Update modes after an event in place; return the states after it and the event's name.

        The switches ``due_switches`` have come to their surfaces: they change, whatever side round-off puts them on.
        Without
        any, something was set: inputs or parameters.
        """
        name = self.switch_names[due_switches[0]] if due_switches else ""
        state_before, first_model_event = x, ""
        switches_at_surface: set[int] = set()
        held_again: set[int] = set()
        changed = [self.switch_names[i] for i in due_switches]
        if not due_switches:
            self._release_moved_signs(t, x, r, prepared, modes)
        before = modes.values.copy()
        for i in due_switches:
            if modes.values[i] == before[i]:  # or another's rest was its own
                x = self._change_mode(i, t, x, r, prepared, modes)
            switches_at_surface.add(i)
        for _ in range(_MAX_MODE_CHANGES):
            held = self.evaluate_with_holding_values(t, x, r, prepared, modes)
            margins = self._compute_margins(held, t, x, r, prepared, modes)
            tolerances = np.array(
                [REST_SLIP_TOLERANCE if i in switches_at_surface else 0.0 for i in range(self._switch_count)]
            )
            contradicted_modes = np.flatnonzero(margins < -tolerances)
            if len(contradicted_modes):
                i = int(contradicted_modes[np.argmin(margins[contradicted_modes])])
                x = self._change_mode(i, t, x, r, prepared, modes)
                switches_at_surface.add(i)
                changed.append(self.switch_names[i])
                name = name or self.switch_names[i]
                continue
            reversed_slip = self._find_reversed_slip(t, x, r, prepared, modes, switches_at_surface - held_again)
            if reversed_slip is not None:
                modes.values[reversed_slip] = 0.0
                held_again.add(reversed_slip)
                changed.append(self.switch_names[reversed_slip])
                continue
            fired_event, state_after = self._find_fired_event(held, t, x, r, prepared, modes)
            if not fired_event:
                return x, format_event_name(self.frozen, (state_before, x), first_model_event, name)
            x = state_after
            changed.append(fired_event)
            first_model_event = first_model_event or fired_event
            self._release_moved_signs(t, x, r, prepared, modes)
        raise make_alternating_switches_error(
            t, f"modes switch to and fro {_MAX_MODE_CHANGES} times at one instant", changed
        )

    def _find_reversed_slip(
        self,
        t: float,
        x: Floats,
        r: Sequence[float],
        prepared: Sequence[float],
        modes: SwitchModes,
        candidates: set[int],
    ) -> int | None:
        """Return a sign that begins to slip against its own rate, since others slip, too; None if there is none."""
        signs = [i for i in self.signs if i in candidates and modes.values[i] != 0.0]
        if not signs:
            return None
        motion, _ = self.evaluate_with_holding_values(t, x, r, prepared, modes)
        for i in signs:
            is_at_rest = abs(motion.surfaces[i]) <= REST_SLIP_TOLERANCE
            if is_at_rest and modes.values[i] * motion.rates[i] < -REST_SLIP_TOLERANCE:
                return i
        return None

    def _change_mode(
        self, i: int, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], modes: SwitchModes
    ) -> Floats:
        """Change the mode of a switch at its event and return the state; a sign is first tried at rest."""
        kind, mode = self.frozen.switches[i].kind, modes.values[i]
        if kind == "truth":
            modes.values[i] = 1.0 - mode
            return x
        motion, values = self.evaluate_with_holding_values(t, x, r, prepared, modes)
        if kind == "integer":
            modes.values[i] = mode + 1.0 if motion.surfaces[i] > mode + 0.5 else mode - 1.0
            return x
        rest_limits = self.rest_slip_limits(t, x, r, prepared, modes)
        if mode == 0.0:
            modes.values[i] = np.sign(self._compute_driven_holding_values(motion, values, rest_limits)[i])
        else:
            for j in self.signs:  # what rests with it is held by all that could
                if abs(motion.surfaces[j]) <= max(REST_SLIP_TOLERANCE, rest_limits[j]):
                    modes.values[j] = 0.0
            modes.values[i], slip = 0.0, motion.surfaces[i]
            slipping_state, x = x, self._bring_surfaces_to_rest(t, x, r, prepared, modes)
            motion, values = self.evaluate_with_holding_values(t, x, r, prepared, modes)
            values = self._compute_driven_holding_values(motion, values, rest_limits)
            excess = {j: abs(values[j]) - motion.holding_limits[j] for j in self.signs if modes.values[j] == 0.0}
            if excess[i] > 0.0 and excess[i] == max(excess.values()):  # else another one is released first
                is_at_rest = abs(motion.surfaces[i]) <= max(
                    REST_SLIP_TOLERANCE, rest_limits[i]
                )  # what has no effect brings nothing to rest
                modes.values[i] = np.sign(values[i] if is_at_rest else motion.surfaces[i])
                if abs(values[i]) > _DEAD_SIGN_FACTOR * motion.holding_limits[i]:
                    x = slipping_state  # at a dead centre round-off of slip would be an impulse on all that moves
                    if abs(slip) > REST_SLIP_TOLERANCE:  # a rough integration has stopped before it is at rest
                        modes.values[i] = np.sign(slip)
        return x

    def _bring_surfaces_to_rest(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], modes: SwitchModes
    ) -> Floats:
        """Return speeds changed by an impulse of the held signs alone, so that their surfaces are at zero."""
        holding_inputs = self._list_holding_inputs(x, modes)
        motion_without_forces = self.evaluate_in_modes(t, x, r, prepared, modes.values)
        B, state_effects = self._measure_force_effects(t, x, r, prepared, motion_without_forces, modes, holding_inputs)
        state_effects[: self.n_q] = 0.0
        state_effects[len(x) - self.n_z :] = 0.0
        surface_rates = np.concatenate(
            [
                motion_without_forces.surfaces,
                motion_without_forces.contact_rows.rates,
                motion_without_forces.friction_contacts.slip_speeds,
                motion_without_forces.latch_rows.rates,
            ]
        )[holding_inputs]
        return np.asarray(
            x
            + state_effects
            @ self._solve_forces(
                B, -surface_rates, holding_inputs, motion_without_forces.holding_limits, t, REST_SLIP_TOLERANCE
            )
        )

    def _remove_drift_slip(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], modes: SwitchModes
    ) -> Floats:
        """Return the state without what drift makes of slip that contacts or latches hold: they may open now."""
        rest_limits = self.rest_slip_limits(t, x, r, prepared, modes)
        signs = [i for i in self.signs if modes.values[i] == 0.0]
        if not rest_limits[signs].any():
            return x
        holding_inputs = self._list_holding_inputs(x, modes)
        motion_without_forces = self.evaluate_in_modes(t, x, r, prepared, modes.values)
        B, state_effects = self._measure_force_effects(t, x, r, prepared, motion_without_forces, modes, holding_inputs)
        B, state_effects = compute_friction_influence(
            self._remove_pinned_effects(B, holding_inputs), state_effects, rest_limits[signs] > 0.0
        )
        state_effects[: self.n_q] = 0.0
        state_effects[len(x) - self.n_z :] = 0.0
        return np.asarray(
            x
            - state_effects
            @ solve_coupled_holding_forces(
                B, motion_without_forces.surfaces[signs], motion_without_forces.holding_limits[signs], np.inf
            )
        )

    def _find_fired_event(
        self, held: tuple[InstantMotionInModes, Floats], t: float, x: Floats, r: Sequence[float],
        prepared: Sequence[float], modes: SwitchModes,
    ) -> tuple[str, Floats]:  # fmt: skip
        """Return the first of the model's own events that happens, and what they set, with the values before.

        ``held``: of :meth:`evaluate_with_holding_values` there.
        """
        drifted, x = x, self._remove_drift_slip(t, x, r, prepared, modes)
        motion, values = held if x is drifted else self.evaluate_with_holding_values(t, x, r, prepared, modes)
        if not (self.frozen.conditions_know_impacts or np.any(motion.conditions > modes.past_conditions)):
            modes.past_conditions = motion.conditions.copy()  # nothing happens, whatever impacts there would be
            return "", x
        if self._contact_count or self._latch_row_count:
            forces = values[: self._switch_count + self.contact_line_count + self._latch_row_count]
            impact_results = [
                *self._solve_contact_impacts(motion, t, x, r, prepared, modes),
                *self._solve_latch_closures(t, x, r, prepared, modes),
            ]
            pinned_flags = (
                values[self._own_input_count - self.contact_line_count :] if self._latch_row_count else np.empty(0)
            )
            motion = self.evaluate_in_modes(t, x, r, prepared, np.concatenate([forces, impact_results, pinned_flags]))
        state_after, setting_index, fired_event = x.copy(), 0, ""
        setters: dict[int, str] = {}
        events, conditions = self.frozen.events, motion.conditions.copy()
        model_event_fires = any(
            is_true > was_true and not v.is_contact_or_latch_event
            for v, is_true, was_true in zip(events, conditions, modes.past_conditions, strict=True)
        )
        for k, targets in enumerate(self.event_targets):
            event = events[k]
            if event.is_deferred and model_event_fires:  # impacts and closings see what the model's own events set
                conditions[k] = modes.past_conditions[k]
            elif conditions[k] > modes.past_conditions[k]:
                fired_event = fired_event or event.name
                for offset, target in enumerate(targets):
                    value = motion.event_set_values[setting_index + offset]
                    if target in setters and value != state_after[target]:
                        raise make_conflicting_events_error(
                            t, self.equations.states[target], setters[target], event.name
                        )
                    state_after[target] = value
                    setters[target] = event.name
            setting_index += len(event.settings)
        modes.past_conditions = conditions
        return fired_event, state_after

    def _solve_contact_impacts(
        self,
        held: InstantMotionInModes,
        t: float,
        x: Floats,
        r: Sequence[float],
        prepared: Sequence[float],
        modes: SwitchModes,
    ) -> Floats:
        """Return the results of contacts at this instant, in the order of ``ContactEquations.impact_unknowns``."""
        contacts = self.frozen.contacts
        if contacts is None:
            return np.empty(0)
        motion_without_forces = self.evaluate_in_modes(t, x, r, prepared, modes.values)
        contact_and_latch_inputs = [self._switch_count + k for k in range(self.contact_line_count)]
        contact_and_latch_inputs += [
            self._switch_count + self.contact_line_count + int(k)
            for k in np.flatnonzero(motion_without_forces.latch_rows.engaged > MODE_THRESHOLD)
        ]
        effects = self._measure_force_effects(t, x, r, prepared, motion_without_forces, modes, contact_and_latch_inputs)
        W, state_effects, accelerations = eliminate_held_rows(
            *effects, motion_without_forces.rates[contact_and_latch_inputs], self.contact_line_count
        )
        contact_rows = replace(motion_without_forces.contact_rows, accelerations=accelerations[: self._contact_count])
        friction_contacts = replace(
            motion_without_forces.friction_contacts, accelerations=accelerations[self._contact_count :]
        )
        if not self._friction_contact_indices:
            impulses, resting_after = solve_impact_impulses(contacts, W, contact_rows)
            return np.concatenate([impulses, resting_after, self._expand_speed_jumps(state_effects @ impulses)])
        counts = [sum(x[place] for place in self._impact_count_states), x[self._mode_change_state]]
        has_impact, has_mode_change = (
            self._is_event_due(held, modes, *prefix_and_count)
            for prefix_and_count in zip(("impact of ", "friction of "), counts, strict=True)
        )
        event_values, impulses, mode_change_impulses = solve_frictional_contact_events(
            contacts, (W, state_effects), (contact_rows, friction_contacts), t, hit=has_impact, change=has_mode_change
        )
        return np.concatenate(
            [event_values, self._expand_speed_jumps(impulses), self._expand_speed_jumps(mode_change_impulses)]
        )

    def _is_event_due(self, motion: InstantMotionInModes, modes: SwitchModes, prefix: str, count: float) -> bool:
        """Return whether an event with this name prefix happens now, with a number above its last one."""
        return any(
            event.name.startswith(prefix) and motion.conditions[k] > max(modes.past_conditions[k], count + 0.5)
            for k, event in enumerate(self.frozen.events)
        )

    def _solve_latch_closures(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], modes: SwitchModes
    ) -> Floats:
        """Return impulses of latches that close at this instant, and the changes of speeds."""
        if not self._latch_row_count:
            return np.empty(0)
        motion_without_forces = self.evaluate_in_modes(t, x, r, prepared, modes.values)
        impulses, state_jumps = np.zeros(self._latch_row_count), np.zeros(len(x))
        if motion_without_forces.latch_rows.closes_now.any():
            closing_rows = np.flatnonzero(motion_without_forces.latch_rows.closed_after > MODE_THRESHOLD)
            latch_inputs = [self._switch_count + self.contact_line_count + int(k) for k in closing_rows]
            W, state_effects = self._measure_force_effects(
                t, x, r, prepared, motion_without_forces, modes, latch_inputs
            )
            impulses[closing_rows] = solve_latch_closing_impulses(
                W, motion_without_forces.latch_rows.rates[closing_rows]
            )
            state_jumps = state_effects @ impulses[closing_rows]
        return np.append(impulses, self._expand_speed_jumps(state_jumps))

    def _expand_speed_jumps(self, state_jumps: Floats) -> Floats:
        """Return jumps of speeds from those of states; 0 for speeds that are no states."""
        jumps = np.zeros(self.n_u)
        jumps[self._independent] = state_jumps[self.n_q : self.n_q + len(self._independent)]
        return jumps

    def _release_moved_signs(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], modes: SwitchModes
    ) -> None:
        """Make signs slip to the side on which an event has set their surface."""
        motion, rest_limits = (
            self.evaluate_in_modes(t, x, r, prepared, modes.values),
            self.rest_slip_limits(t, x, r, prepared, modes),
        )
        for i in self.signs:
            if abs(motion.surfaces[i]) > max(REST_SLIP_TOLERANCE, rest_limits[i]):
                modes.values[i] = np.sign(motion.surfaces[i])

    def stop_held_speeds(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], modes: SwitchModes
    ) -> Floats:
        """Return the state with speeds for which everything held by these modes stands still."""
        return self._bring_surfaces_to_rest(t, x, r, prepared, modes) if self._list_holding_inputs(x, modes) else x

    def start_modes_and_state(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float]
    ) -> tuple[SwitchModes, Floats]:
        """Return modes and states at the start of a simulation, perhaps with the first instants of ``every``."""
        modes = self.find_modes(t, x, r, prepared)
        for k, event in enumerate(self.frozen.events):
            if event.kind == "ticks" and (event.is_contact_or_latch_event or not self.start_events_done):
                modes.past_conditions[k] = 0.0
        x, _ = self.settle_modes(t, x, r, prepared, modes, ())
        return modes, x
