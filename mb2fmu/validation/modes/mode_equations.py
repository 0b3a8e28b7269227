"""Equations with switches in given modes, as functions of numbers: forces of what holds are found by trying each.

What holds is a sign that rests on its surface (dry friction), a contact that rests, a latch that is closed. Rates of
what is held are affine in the forces that hold it; so each force is tried alone, beside none, and the forces are those
by which all these rates vanish (``shared_holding``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import Fault, ValidationError
from mb2fmu.validation.compiled.compiled_mode_steps import CompiledModeSteps, SwitchKind
from mb2fmu.validation.modes.contact_friction_modes import list_friction_contacts
from mb2fmu.validation.modes.latch_closure import find_pinned_contacts
from mb2fmu.validation.modes.motion_in_modes import InstantObservation, MotionInModes, OutputCounts
from mb2fmu.validation.modes.reference_switches import EquationsBetweenEvents
from mb2fmu.validation.modes.shared_holding_forces import find_held_friction_rows, solve_shared_holding_forces
from mb2fmu.validation.reference_equations.numeric_equations import NumericEquations

Floats = npt.NDArray[np.float64]

_CONTACT_FORCE_ITERATIONS = 3  # to find how large a force at a contact is
_PUSHED_SLIP_LIMIT = 1e-6
"""Slip over its size, above which friction slides though contacts or latches hold its motion: they push it on."""


@dataclass(slots=True)
class SwitchModes:
    """Modes of all switches; held signs are 0. ``fired``: conditions as they were."""

    values: Floats
    fired: Floats

    def copy(self) -> SwitchModes:
        """Return an independent copy."""
        return SwitchModes(self.values.copy(), self.fired.copy())


class ModeEquations(NumericEquations):
    """Equations between events, in given modes.

    Args:
        frozen: The equations between events.
        typical: Magnitude of each coordinate, then of each speed.

    ``sizes`` are what surfaces are divided by: what counts as nothing is a part of them; 1 of what steps. ``signs``
    are the numbers of the switches that may hold.
    """

    def __init__(self, frozen: EquationsBetweenEvents, typical: Sequence[float] | None = None) -> None:
        self.frozen = frozen
        self._divided: OutputCounts | None = None
        self._count = len(frozen.switches)
        self.sizes = np.ones(self._count)
        self.signs = [i for i, s in enumerate(frozen.switches) if s.kind == "sign"]
        self._contacts = len(frozen.contacts.each) if frozen.contacts else 0
        self._rough = list_friction_contacts(frozen.contacts) if frozen.contacts else ()
        self._lines = self._contacts + len(self._rough)  # normals, then tangents
        self._latched = len(frozen.latches.rows) if frozen.latches else 0
        self._pushes = np.ones(self._lines + self._latched)
        super().__init__(frozen.equations, typical)
        e = frozen.equations
        self._switched = len(e.r) - frozen.inputs
        self._mode_steps: CompiledModeSteps | None = None
        places = {symbol: i for i, symbol in enumerate(e.states)}
        self._rests = [places[c.resting] for c in frozen.contacts.each] if frozen.contacts else []
        self._slides = [places[f.sliding] for f in frozen.contacts.frictions] if frozen.contacts else []
        self._locks = [places[symbol] for symbol in frozen.latches.engaged] if frozen.latches else []

    @property
    def mode_steps(self) -> CompiledModeSteps | None:
        """Steps in C; None without a compiler, and where contacts or latches hold motions: Python makes them all."""
        if self.machine is None or self._lines or self._latched:
            return None
        if self._mode_steps is None or self._mode_steps.sizes is not self.sizes:
            e = self.frozen.equations
            self._mode_steps = CompiledModeSteps(
                self.machine,
                [self._name_kind(i) for i in range(self._count)],
                self.sizes,
                self.frozen.inputs,
                self.frozen.outputs,
                (len(e.r), len(e.outputs)),
            )
        return self._mode_steps

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
        held = self._holding(x, modes)
        if not held:
            return super().x_dot(t, x, [*r, *self._whole(modes.values).tolist()], prepared)
        values = self._whole(modes.values)
        values[held] = self._solve_holding_values(t, x, r, prepared, modes, held)
        return super().x_dot(t, x, [*r, *values.tolist()], prepared)

    def _whole(self, modes: Floats) -> Floats:
        """Return values of all own inputs: modes, and no forces, impulses and jumps of contacts and latches."""
        found = np.zeros(self._switched)
        found[: self._count] = modes
        return found

    def _holding(self, x: Floats, modes: SwitchModes) -> list[int]:
        """Return the numbers of own inputs that hold something: signs at zero, resting contacts, closed latches."""
        signs = [i for i in self.signs if modes.values[i] == 0.0]
        held = [x[place] > 0.5 for place in self._rests]
        held += [held[k] and abs(x[place]) < 0.5 for k, place in zip(self._rough, self._slides, strict=True)]
        held += [x[place] > 0.5 for place in self._locks]
        return signs + [self._count + k for k, here in enumerate(held) if here]

    def evaluate_in_modes(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], values: Floats
    ) -> MotionInModes:
        """Evaluate the motion at mode values, with our further outputs: switches, events, contacts, latches."""
        values = self._whole(values) if len(values) == self._count else values
        motion = InstantObservation(*self.observe_outputs(t, x, [*r, *values.tolist()], prepared))
        return MotionInModes(motion, self._divided or self._counts_of_outputs(len(motion.outputs)), self.sizes)

    def _counts_of_outputs(self, found: int) -> OutputCounts:
        """Return the division of the outputs; settings of events take the rest."""
        if self._divided is None:
            n, c, k, f, m = self._count, len(self.frozen.events), self._contacts, len(self._rough), self._latched
            settings = found - self.frozen.outputs - 3 * n - c - 7 * k - 5 * f - 5 * m
            self._divided = OutputCounts(self.frozen.outputs, n, c, settings, k, f, m)
        return self._divided

    def held_at(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], modes: SwitchModes
    ) -> tuple[MotionInModes, Floats]:
        """Return the outputs with held signs at their holding values, and all values."""
        held = self._holding(x, modes)
        values = self._whole(modes.values)
        if held:
            values[held] = self._solve_holding_values(t, x, r, prepared, modes, held)
            values[self._list_pinned_row_inputs(t, x, r, prepared, modes)] = 1.0
        return self.evaluate_in_modes(t, x, r, prepared, values), values

    def _solve_holding_values(
        self,
        t: float,
        x: Floats,
        r: Sequence[float],
        prepared: Sequence[float],
        modes: SwitchModes,
        held: Sequence[int],
    ) -> Floats:
        """Return the holding values."""
        base = self.evaluate_in_modes(t, x, r, prepared, modes.values)
        B, _ = self._reach(t, x, r, prepared, base, modes, held)
        return self._solved(B, -base.rates[list(held)], held, base.limits, t)

    def check_contact_effects(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], modes: SwitchModes
    ) -> None:
        """Refuse a contact that rests where no speed changes its gap: no force could hold it.

        Asked at the start, and where an integration ends: trial states, which are taken back, may have such contacts,
        too.

        Raises:
            ValidationError: Names the contact.
        """
        if not any(x[place] > 0.5 for place in self._rests):
            return
        held = self._holding(x, modes)
        try:
            base = self.evaluate_in_modes(t, x, r, prepared, modes.values)
            B, _ = self._reach(t, x, r, prepared, base, modes, held)
        except (ArithmeticError, ValueError):  # where the motion is undefined, who integrates says so
            return
        for row, i in enumerate(held):
            if self._count <= i < self._count + self._contacts and abs(B[row, row]) < np.finfo(float).tiny:
                assert self.frozen.contacts is not None
                name = self.frozen.contacts.each[i - self._count].name
                what = f"at t = {t:.6g} s {name} rests where no speed changes its gap, so that no force can hold it"
                remedy = (
                    f"it lies exactly at the end of a linkage's reach: move {name} a little, or let it not rest there"
                )
                raise ValidationError("the reference cannot be integrated:", [Fault(what, remedy=remedy)])

    def _reach(
        self,
        t: float,
        x: Floats,
        r: Sequence[float],
        prepared: Sequence[float],
        base: MotionInModes,
        modes: SwitchModes,
        held: Sequence[int],
    ) -> tuple[Floats, Floats]:
        """Return the effect of each holding input on the held rates, shape (k, k), and on x', shape (n_x, k)."""
        B, reach = np.empty((len(held), len(held))), np.empty((len(x), len(held)))
        rates, own, values = base.rates, list(held), self._whole(modes.values)
        pulls = rates[self._count :]
        wanted = max(1.0, float(np.abs(pulls).max())) if len(pulls) else 1.0
        for column, i in enumerate(held):
            for _ in range(_CONTACT_FORCE_ITERATIONS):
                size = float(self._pushes[i - self._count]) if i >= self._count else 1.0
                values[i] = size
                other = self.evaluate_in_modes(t, x, r, prepared, values)
                changes = other.rates - rates
                found = abs(float(changes[i]))
                # A push is as large as what it is compared with, so that little is lost to round-off.
                if i < self._count or not found > 0.0 or 0.1 * wanted <= found <= 100.0 * wanted:
                    break
                self._pushes[i - self._count] = size * wanted / found
            values[i] = modes.values[i] if i < self._count else 0.0
            B[:, column] = changes[own] / size
            reach[:, column] = (other.motion.x_dot - base.motion.x_dot) / size
        return B, reach

    def bars(self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], modes: SwitchModes) -> Floats:
        """Return the slip over its size up to which each sign rests whatever it could hold, shape (switches,).

        It is more than 0 where contacts that rest or latches that are closed hold its motion: they bear what drives it.
        """
        found, free = np.zeros(self._count), modes.copy()
        free.values[self.signs] = 0.0
        held = self._holding(x, free)
        if self.signs and len(held) > len(self.signs):
            base = self.evaluate_in_modes(t, x, r, prepared, free.values)
            B, _ = self._reach(t, x, r, prepared, base, free, held)
            found[self.signs] = np.where(
                find_held_friction_rows(self._remove_pinned_effects(B, held), len(self.signs)), _PUSHED_SLIP_LIMIT, 0.0
            )
        return found

    def _remove_pinned_effects(self, B: Floats, held: Sequence[int]) -> Floats:
        """Return B without effects of contacts in a direction that closed latches hold."""
        pinned = find_pinned_contacts(B, held, self._count, self._lines) if self._latched else []
        if pinned:
            B = B.copy()
            B[:, pinned] = 0.0
        return B

    def _solved(
        self, B: Floats, right: Floats, held: Sequence[int], limits: Floats, t: float, nothing: float | None = None
    ) -> Floats:
        """Solve for the holding values; contacts in a direction that closed latches hold have none."""
        B = self._remove_pinned_effects(B, held)
        try:
            return solve_shared_holding_forces(B, right, limits[[i for i in held if i < self._count]], nothing)
        except np.linalg.LinAlgError as error:
            what, remedy = f"at t = {t:.6g} s no force holds what sticks", "friction must act on what it looks at"
            raise ValidationError("the reference cannot be integrated:", [Fault(what, remedy=remedy)]) from error

    def _list_pinned_row_inputs(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], modes: SwitchModes
    ) -> list[int]:
        """Return the places among all own inputs, from their end, that say which rows of contacts latches hold."""
        latched = [self._count + self._lines + i for i, place in enumerate(self._locks) if x[place] > 0.5]
        if not (latched and self._lines):
            return []
        every = [*range(self._count, self._count + self._lines), *latched]
        base = self.evaluate_in_modes(t, x, r, prepared, modes.values)
        B, _ = self._reach(t, x, r, prepared, base, modes, every)
        return [i - self._lines for i in find_pinned_contacts(B, every, self._count, self._lines)]
