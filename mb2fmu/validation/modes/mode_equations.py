"""Equations with switches in given modes, as functions of numbers: forces of what holds are found by trying each.

What holds is a sign that rests on its surface (dry friction), a contact that rests, a latch that is closed. Rates of
what is held are affine in the forces that hold it; so each force is tried alone, beside none, and the forces are those
by which all these rates vanish (``coupled_holding_forces``).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import Fault, ValidationError
from mb2fmu.mechanics.equations.contact_equations import ContactEquations
from mb2fmu.mechanics.equations.event_definitions import EventDefinition
from mb2fmu.model.quantity_declarations import MODE_THRESHOLD
from mb2fmu.validation.compiled.compiled_integration_in_modes import (
    CompiledIntegrationInModes,
    ContactLayout,
    EventAssignmentLayout,
    EventRole,
    SwitchKind,
)
from mb2fmu.validation.modes.contact_friction_modes import list_friction_contacts
from mb2fmu.validation.modes.coupled_holding_forces import find_ineffective_frictions, solve_coupled_holding_forces
from mb2fmu.validation.modes.equations_between_events import EquationsBetweenEvents
from mb2fmu.validation.modes.instant_motion_in_modes import (
    DerivativesAndOutputs,
    InstantMotionInModes,
    ModeMotionOutputLayout,
)
from mb2fmu.validation.modes.latch_closing_impulses import find_contacts_blocked_by_latches
from mb2fmu.validation.reference_equations.numeric_equations import InstantMotion, InstantMotions, NumericEquations

Floats = npt.NDArray[np.float64]

_FIRST_PROBE_SIZE = 1.0  # N, N·m, or the like
_CONTACT_FORCE_ITERATIONS = 3  # to find how large a force at a contact is
_LIMIT_ROUND_OFF = 1e-12  # of a limit: what is nearer to it holds with all that it has
_PUSHED_SLIP_LIMIT = 1e-6
"""Slip over its size, above which friction slides though contacts or latches hold its motion: they push it on."""


@dataclass(slots=True)
class SwitchModes:
    """Modes of all switches; held signs are 0. ``past_conditions``: the conditions before."""

    values: Floats
    past_conditions: Floats

    def copy(self) -> SwitchModes:
        """Return an independent copy."""
        return SwitchModes(self.values.copy(), self.past_conditions.copy())


class ModeEquations(NumericEquations):
    """Equations between events, in given modes.

    Args:
        frozen: The equations between events.
        typical: Magnitude of each coordinate, then of each speed.

    ``sizes`` are what surfaces are divided by: what counts as nothing is a part of them; 1 of what steps. ``signs``
    are the numbers of the switches that may hold; ``event_targets`` the states that each event sets;
    ``contact_line_count`` how many normals and tangents contacts have. ``margin_offset`` is what all margins are larger
    by: events are late by that over the rate of the margin.
    """

    has_modes = True

    def __init__(self, frozen: EquationsBetweenEvents, typical: Sequence[float] | None = None) -> None:
        self.frozen = frozen
        self.margin_offset = 0.0
        self._output_counts: ModeMotionOutputLayout | None = None
        self._switch_count = len(frozen.switches)
        self.sizes = np.ones(self._switch_count)
        self.signs = [i for i, s in enumerate(frozen.switches) if s.kind == "sign"]
        self._contact_count = len(frozen.contacts.each) if frozen.contacts else 0
        self._friction_contact_indices = list_friction_contacts(frozen.contacts) if frozen.contacts else ()
        self.contact_line_count = self._contact_count + len(self._friction_contact_indices)  # normals, then tangents
        self._latch_row_count = len(frozen.latches.rows) if frozen.latches else 0
        self._probe_sizes = np.full(
            self._switch_count + self.contact_line_count + self._latch_row_count, _FIRST_PROBE_SIZE
        )
        super().__init__(frozen.equations, typical)
        e = frozen.equations
        self._own_input_count = len(e.r) - frozen.inputs
        self._mode_steps: CompiledIntegrationInModes | None = None
        places = {symbol: i for i, symbol in enumerate(e.states)}
        self.event_targets = [
            [places[symbol] for symbol, _ in event.settings if symbol in places] for event in frozen.events
        ]
        self._resting_states = [places[c.resting] for c in frozen.contacts.each] if frozen.contacts else []
        self._sliding_states = [places[f.sliding] for f in frozen.contacts.frictions] if frozen.contacts else []
        self._impact_count_states: list[int] = []
        self._mode_change_state = -1
        if frozen.contacts and frozen.contacts.mode_change_count:
            self._impact_count_states = [places[contact.impact_count] for contact in frozen.contacts.each]
            self._mode_change_state = places[frozen.contacts.mode_change_count]
        self._latch_states = [places[symbol] for symbol in frozen.latches.engaged_states] if frozen.latches else []

    @property
    def mode_steps(self) -> CompiledIntegrationInModes | None:
        """Steps in C; None without a compiler."""
        if self.compiled_equations is None:
            return None
        if self._mode_steps is None or self._mode_steps.sizes is not self.sizes:
            e = self.frozen.equations
            self._mode_steps = CompiledIntegrationInModes(
                self.compiled_equations,
                [self._name_kind(i) for i in range(self._switch_count)],
                self.sizes,
                self.frozen.inputs,
                self.frozen.outputs,
                (len(e.r), len(e.outputs)),
                self._count_outputs(len(e.outputs)).rate_indices,
                self._probe_sizes,
                self._list_event_settings(),
            )
        return self._mode_steps

    def _list_event_settings(self) -> EventAssignmentLayout | None:
        """Return what events set, for C; None if a latch can hold."""
        frozen = self.frozen
        if frozen.latches:
            return None
        return EventAssignmentLayout(
            first_condition=frozen.outputs + 3 * self._switch_count,
            value_counts=tuple(len(event.settings) for event in frozen.events),
            targets=tuple(map(tuple, self.event_targets)),
            roles=tuple(map(_find_event_role, frozen.events)),
            conditions_know_impacts=frozen.conditions_know_impacts,
            contacts=self._lay_out_contacts(frozen.contacts) if frozen.contacts else None,
        )

    def _lay_out_contacts(self, contacts: ContactEquations) -> ContactLayout:
        """Return where C finds contacts."""
        counts = self._count_outputs(len(self.frozen.equations.outputs))
        return ContactLayout(
            is_sequential=contacts.order == "sequential",
            first_output=counts.first_contact_output,
            friction_contacts=self._friction_contact_indices,
            follow_poisson=[contact.law == "poisson" for contact in contacts.each],
            resting_states=self._resting_states,
            sliding_states=self._sliding_states,
            impact_count_states=self._impact_count_states,
            mode_change_state=self._mode_change_state,
        )

    def list_held_inputs(self, x: Floats, modes: SwitchModes, blocked_lines: Collection[int] = ()) -> list[int] | None:
        """Return the own inputs that hold something in these modes, for C; None if C cannot find their values.

        Beside closed latches Python finds what signs may rest. ``blocked_lines``: of contacts,
        from :meth:`find_blocked_contact_lines`; they have no force.
        """
        n = self._switch_count
        holding_inputs = [i for i in self._list_holding_inputs(x, modes) if i - n not in blocked_lines]
        if holding_inputs and holding_inputs[-1] >= n + self.contact_line_count and self.signs:  # latches come last
            return None
        return holding_inputs

    def find_blocked_contact_lines(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], modes: SwitchModes
    ) -> list[int]:
        """Return which normals and tangents of contacts closed latches hold already."""
        inputs = self._list_contact_and_latch_inputs(x)
        if not inputs:
            return []
        base = self.evaluate_in_modes(t, x, r, prepared, modes.values)
        B, _ = self._measure_force_effects(t, x, r, prepared, base, modes, inputs)
        return find_contacts_blocked_by_latches(B, inputs, self._switch_count, self.contact_line_count)

    def _name_kind(self, i: int) -> SwitchKind:
        """Return what kind of switch C knows switch i as."""
        switch = self.frozen.switches[i]
        if switch.kind == "integer":
            return "clock" if i in self.frozen.clock_switches else "counter"
        if switch.kind == "truth":
            return "truth at events" if switch.changes_only_at_events else "truth"
        return "sign"

    def slope(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], modes: SwitchModes
    ) -> tuple[Floats, float]:
        """Return state derivative and power for given modes."""
        values = self._expand_modes(modes.values)
        holding_inputs = self._list_holding_inputs(x, modes)
        if holding_inputs:
            compiled = self.set_modes_in_c(x, r, prepared, modes)
            values_of_c = compiled.find_holding_values(t, x) if compiled else None
            if values_of_c is None:
                values[holding_inputs] = self._solve_holding_values(t, x, r, prepared, modes, holding_inputs)
            else:
                values = values_of_c
        return super().x_dot(t, x, [*r, *values.tolist()], prepared)

    def set_modes_in_c(
        self, x: Floats, r: Sequence[float], prepared: Sequence[float], modes: SwitchModes
    ) -> CompiledIntegrationInModes | None:
        """Return compiled equations in these modes; None where C cannot find what holds them."""
        compiled = self.mode_steps
        if compiled is None or self._list_contact_and_latch_inputs(x):
            return None
        held_inputs = self.list_held_inputs(x, modes)
        if held_inputs is None:
            return None
        compiled.set_modes(modes.values, r, prepared, self.margin_offset, held_inputs)
        return compiled

    def _expand_modes(self, modes: Floats) -> Floats:
        """Return values of all own inputs: modes, and no forces, impulses and jumps of contacts and latches."""
        own_inputs = np.zeros(self._own_input_count)
        own_inputs[: self._switch_count] = modes
        return own_inputs

    def _list_holding_inputs(self, x: Floats, modes: SwitchModes) -> list[int]:
        """Return the numbers of own inputs that hold something: signs at zero, resting contacts, closed latches."""
        if not (self.signs or self.contact_line_count or self._latch_row_count):
            return []
        signs = [i for i in self.signs if modes.values[i] == 0.0]
        states = x.tolist()  # a list of few places is slow to index an array by
        resting, sliding, latched = (
            [states[place] for place in places]
            for places in (self._resting_states, self._sliding_states, self._latch_states)
        )
        is_held = [state > MODE_THRESHOLD for state in resting]
        is_held += [
            is_held[k] and abs(state) < MODE_THRESHOLD
            for k, state in zip(self._friction_contact_indices, sliding, strict=True)
        ]
        is_held += [state > MODE_THRESHOLD for state in latched]
        return signs + [self._switch_count + k for k, is_holding in enumerate(is_held) if is_holding]

    def list_modes(self, x: Floats, modes: SwitchModes) -> tuple[float, ...]:
        """Return what distinguishes modes: sides and signs of switches, what rests, slides and is closed."""
        sides = [value for value, s in zip(modes.values, self.frozen.switches, strict=True) if s.kind != "integer"]
        return (*sides, *x[[*self._resting_states, *self._sliding_states, *self._latch_states]].tolist())

    def evaluate_in_modes(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], values: Floats
    ) -> InstantMotionInModes:
        """Evaluate the motion at mode values, with our further outputs: switches, events, contacts, latches."""
        values = self._expand_modes(values) if len(values) == self._switch_count else values
        motion = DerivativesAndOutputs(*self.observe_outputs(t, x, [*r, *values.tolist()], prepared))
        return InstantMotionInModes(motion, self._output_counts or self._count_outputs(len(motion.outputs)), self.sizes)

    def _count_outputs(self, output_count: int) -> ModeMotionOutputLayout:
        """Return the division of the outputs; settings of events take the rest."""
        if self._output_counts is None:
            n, c, k, f, m = (
                self._switch_count,
                len(self.frozen.events),
                self._contact_count,
                len(self._friction_contact_indices),
                self._latch_row_count,
            )
            settings = output_count - self.frozen.outputs - 3 * n - c - 7 * k - 5 * f - 5 * m
            self._output_counts = ModeMotionOutputLayout(self.frozen.outputs, n, c, settings, k, f, m)
        return self._output_counts

    def evaluate_with_holding_values(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], modes: SwitchModes
    ) -> tuple[InstantMotionInModes, Floats]:
        """Return the outputs with held signs at their holding values, and all values."""
        values = self.find_holding_values(t, x, r, prepared, modes)
        return self.evaluate_in_modes(t, x, r, prepared, values), values

    def find_holding_values(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], modes: SwitchModes
    ) -> Floats:
        """Return the values of all own inputs, with those of what holds."""
        holding_inputs = self._list_holding_inputs(x, modes)
        values = self._expand_modes(modes.values)
        compiled = self.set_modes_in_c(x, r, prepared, modes) if holding_inputs else None
        values_of_c = compiled.find_holding_values(t, x) if compiled else None
        if values_of_c is not None:
            return values_of_c
        if holding_inputs:
            pinning_inputs = self._list_contact_and_latch_inputs(x)
            measured_inputs = sorted({*holding_inputs, *pinning_inputs})
            base = self.evaluate_in_modes(t, x, r, prepared, modes.values)
            B, _ = self._measure_force_effects(t, x, r, prepared, base, modes, measured_inputs)
            holding_B = _select_square(B, measured_inputs, holding_inputs)
            values[holding_inputs] = self._solve_forces(
                holding_B, -base.rates[holding_inputs], holding_inputs, base.holding_limits, t
            )
            if pinning_inputs:
                pinning_B = _select_square(B, measured_inputs, pinning_inputs)
                values[self._list_pinned_row_inputs(pinning_B, pinning_inputs)] = 1.0
        return values

    def motion_in_modes(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], modes: SwitchModes
    ) -> InstantMotion:
        """Return all quantities at one instant, with given modes."""
        values = self.find_observed_values(t, x, r, prepared, modes)
        motion = super().motion(t, x, [*r, *values.tolist()], prepared)
        return replace(motion, outputs=motion.outputs[: self.frozen.outputs])

    def motions_in_modes(
        self, time: Floats, states: Floats, inputs: Floats, prepared: Sequence[float], modes: Sequence[SwitchModes]
    ) -> InstantMotions:
        """Return all quantities at many instants, with given modes for each."""
        rows = zip(time.tolist(), states, inputs.tolist(), modes, strict=True)
        values = [self.find_observed_values(t, x, r, prepared, held) for t, x, r, held in rows]
        motions = super().motions(time, states, np.hstack([inputs, values]), prepared)
        return replace(motions, outputs=motions.outputs[:, : self.frozen.outputs])

    def find_observed_values(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], modes: SwitchModes
    ) -> Floats:
        """Return the values of all own inputs with which a motion is observed.

        A sign that holds at its limit (a freewheel that transmits nothing holds with its lower limit) is reported as
        one that holds: its value at the limit itself is that of a sign that slides.
        """
        values = self.find_holding_values(t, x, r, prepared, modes)
        held_signs = [i for i in self.signs if modes.values[i] == 0.0]
        if not held_signs:
            return values
        limits = self.evaluate_in_modes(t, x, r, prepared, values).holding_limits
        for i in held_signs:
            if abs(abs(values[i]) - limits[i]) <= _LIMIT_ROUND_OFF * limits[i]:
                values[i] = np.copysign((1.0 - _LIMIT_ROUND_OFF) * limits[i], values[i])
        return values

    def _solve_holding_values(
        self,
        t: float,
        x: Floats,
        r: Sequence[float],
        prepared: Sequence[float],
        modes: SwitchModes,
        holding_inputs: Sequence[int],
    ) -> Floats:
        """Return the holding values."""
        base = self.evaluate_in_modes(t, x, r, prepared, modes.values)
        B, _ = self._measure_force_effects(t, x, r, prepared, base, modes, holding_inputs)
        return self._solve_forces(B, -base.rates[list(holding_inputs)], holding_inputs, base.holding_limits, t)

    def check_contact_effects(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], modes: SwitchModes
    ) -> None:
        """Refuse a contact that rests where no speed changes its gap: no force could hold it.

        It is called at the start, and where an integration ends: trial states, which are discarded, may have such
        contacts, too.

        Raises:
            ValidationError: Names the contact.
        """
        if not any(x[place] > MODE_THRESHOLD for place in self._resting_states):
            return
        holding_inputs = self._list_holding_inputs(x, modes)
        try:
            motion_without_forces = self.evaluate_in_modes(t, x, r, prepared, modes.values)
            B, _ = self._measure_force_effects(t, x, r, prepared, motion_without_forces, modes, holding_inputs)
        except (ArithmeticError, ValueError):  # where the motion is undefined, who integrates says so
            return
        for row, i in enumerate(holding_inputs):
            if (
                self._switch_count <= i < self._switch_count + self._contact_count
                and abs(B[row, row]) < np.finfo(float).tiny
            ):
                assert self.frozen.contacts is not None
                name = self.frozen.contacts.each[i - self._switch_count].name
                message = f"at t = {t:.6g} s {name} rests where no speed changes its gap, so that no force can hold it"
                remedy = (
                    f"it lies exactly at the end of a linkage's reach: move {name} a little, or let it not rest there"
                )
                raise ValidationError("the reference cannot be integrated:", [Fault(message, remedy=remedy)])

    def _measure_force_effects(
        self,
        t: float,
        x: Floats,
        r: Sequence[float],
        prepared: Sequence[float],
        base: InstantMotionInModes,
        modes: SwitchModes,
        holding_inputs: Sequence[int],
    ) -> tuple[Floats, Floats]:
        """Return the effect of each holding input on the held rates, shape (k, k), and on x', shape (n_x, k)."""
        places = list(holding_inputs)
        unforced_rates = base.rates[self._switch_count :]
        target_change = max(1.0, float(np.abs(unforced_rates).max())) if len(unforced_rates) else 1.0
        inputs, sizes = [*r, *self._expand_modes(modes.values).tolist()], self._probe_sizes[places]
        x_dots, outputs = self.observe_responses(t, x, inputs, prepared, [len(r) + i for i in places], sizes)
        for trial in range(1, _CONTACT_FORCE_ITERATIONS + 1):
            rate_changes = base.compute_rate_changes(outputs, places)
            rows = self._adapt_probes(places, rate_changes, sizes, target_change)
            if not rows or trial == _CONTACT_FORCE_ITERATIONS:
                break
            sizes[rows] = self._probe_sizes[[places[row] for row in rows]]
            x_dots[rows], outputs[rows] = self.observe_responses(
                t, x, inputs, prepared, [len(r) + places[row] for row in rows], sizes[rows]
            )
        return (rate_changes / sizes[:, None]).T, ((x_dots - base.motion.x_dot) / sizes[:, None]).T

    def _adapt_probes(
        self, places: Sequence[int], rate_changes: Floats, sizes: Floats, target_change: float
    ) -> list[int]:
        """Return the rows of pushes to be tried once more, and set how large these are.

        A push is as large as what it is compared with, so that little is lost to round-off.

        Args:
            places: Of the holding inputs.
            rate_changes: Of their rates, a row for each, shape (k, k).
            sizes: Of the pushes so far, shape (k,).
            target_change: How much a push should change.
        """
        rows = []
        for row, i in enumerate(places):
            change = abs(float(rate_changes[row, row]))
            if i < self._switch_count or 0.1 * target_change <= change <= 100.0 * target_change:
                continue
            if change == 0.0 and sizes[row] >= _FIRST_PROBE_SIZE:
                continue  # nothing moves it
            # One that was right where the gap was steep is lost in round-off where it is not.
            self._probe_sizes[i] = float(sizes[row]) * target_change / change if change else _FIRST_PROBE_SIZE
            rows.append(row)
        return rows

    def rest_slip_limits(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], modes: SwitchModes
    ) -> Floats:
        """Return the slip over its size up to which each sign rests whatever it could hold, shape (switches,).

        It is more than 0 where contacts that rest or latches that are closed hold its motion: they bear what drives it.
        """
        limits = np.zeros(self._switch_count)
        if not self.signs:
            return limits
        modes_at_rest = modes.copy()
        modes_at_rest.values[self.signs] = 0.0
        holding_inputs = self._list_holding_inputs(x, modes_at_rest)
        if len(holding_inputs) > len(self.signs):
            base = self.evaluate_in_modes(t, x, r, prepared, modes_at_rest.values)
            B, _ = self._measure_force_effects(t, x, r, prepared, base, modes_at_rest, holding_inputs)
            limits[self.signs] = np.where(
                find_ineffective_frictions(self._remove_pinned_effects(B, holding_inputs), len(self.signs)),
                _PUSHED_SLIP_LIMIT,
                0.0,
            )
        return limits

    def _remove_pinned_effects(self, B: Floats, holding_inputs: Sequence[int]) -> Floats:
        """Return B without effects of contacts in a direction that closed latches hold."""
        pinned = (
            find_contacts_blocked_by_latches(B, holding_inputs, self._switch_count, self.contact_line_count)
            if self._latch_row_count
            else []
        )
        if pinned:
            B = B.copy()
            B[:, pinned] = 0.0
        return B

    def _solve_forces(
        self,
        B: Floats,
        right_side: Floats,
        holding_inputs: Sequence[int],
        limits: Floats,
        t: float,
        negligible_rate: float | None = None,
    ) -> Floats:
        """Solve for the holding values; contacts in a direction that closed latches hold have none."""
        B = self._remove_pinned_effects(B, holding_inputs)
        try:
            return solve_coupled_holding_forces(
                B, right_side, limits[[i for i in holding_inputs if i < self._switch_count]], negligible_rate
            )
        except np.linalg.LinAlgError as error:
            message, remedy = f"at t = {t:.6g} s no force holds what sticks", "friction must act on what it looks at"
            raise ValidationError("the reference cannot be integrated:", [Fault(message, remedy=remedy)]) from error

    def _list_contact_and_latch_inputs(self, x: Floats) -> list[int]:
        """Return the numbers of own inputs of all rows of contacts and of closed latches; none without both."""
        first_latch_input = self._switch_count + self.contact_line_count
        latch_inputs = [
            first_latch_input + i for i, place in enumerate(self._latch_states) if x[place] > MODE_THRESHOLD
        ]
        if not (latch_inputs and self.contact_line_count):
            return []
        return [*range(self._switch_count, first_latch_input), *latch_inputs]

    def _list_pinned_row_inputs(self, B: Floats, contact_and_latch_inputs: Sequence[int]) -> list[int]:
        """Return the places among all own inputs, from their end, that say which rows of contacts latches hold.

        ``B``: effects of these inputs on their rates.
        """
        return [
            i - self.contact_line_count
            for i in find_contacts_blocked_by_latches(
                B, contact_and_latch_inputs, self._switch_count, self.contact_line_count
            )
        ]


def _select_square(B: Floats, inputs: Sequence[int], selected: Sequence[int]) -> Floats:
    """Return the rows and columns of B that belong to some of its inputs."""
    if len(selected) == len(inputs):
        return B
    places = np.array([inputs.index(i) for i in selected])
    return np.asarray(B[places[:, None], places])


def _find_event_role(event: EventDefinition) -> EventRole:
    """Return what C knows an event as."""
    if not event.is_contact_or_latch_event:
        return EventRole.NONE
    role = EventRole.OF_CONTACT | (EventRole.DEFERRED if event.is_deferred else EventRole.NONE)
    if event.name.startswith("impact of "):
        role |= EventRole.IMPACT
    return role | (EventRole.FRICTION if event.name.startswith("friction of ") else EventRole.NONE)
