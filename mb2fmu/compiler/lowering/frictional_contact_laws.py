"""Unilateral contacts with friction as nodes: forces by mode, impacts, and changes of mode.

The rows are the normals of all contacts, then the tangents of those with friction: G, H in ``contact_equations``.
"""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sm

from mb2fmu.compiler.lowering.contact_mobility import ContactMobility
from mb2fmu.compiler.lowering.sympy_lowering import SympyLowering
from mb2fmu.compiler.numerics.coulomb_contacts import (
    CoulombContactProblem,
    choose_contact_modes,
    require_no_painleve_paradox,
)
from mb2fmu.compiler.numerics.friction_force_solve import FrictionContactMatrix, FrictionForceSolver
from mb2fmu.compiler.numerics.frictional_impacts import FrictionalImpactProblem, solve_frictional_impulses
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.scalar_program import Op
from mb2fmu.mechanics.equations.contact_equations import OPENING_STATE, ZERO_SLIP_RATIO
from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion
from mb2fmu.mechanics.equations.event_definitions import form_mode_change_indicator
from mb2fmu.model.quantity_declarations import MODE_THRESHOLD

NodeMatrix = list[list[int]]


class FrictionalContactLaws(ContactMobility):
    """The contacts of equations, at least one of them with friction; arguments as of :class:`ContactMobility`."""

    def __init__(
        self,
        builder: ProgramBuilder,
        equations: EquationsOfMotion,
        free: Sequence[sm.Symbol],
        response: Sequence[Sequence[sm.Symbol]],
    ) -> None:
        super().__init__(builder, equations, free, response)
        places = iter(range(len(self._contacts.each), len(response)))
        self._tangents = [next(places) if contact.friction else -1 for contact in self._contacts.each]
        self._names = ", ".join(contact.name for contact in self._contacts.each)

    def define(self, walker: SympyLowering) -> None:
        """Define forces, impulses, jumps, mode changes and accelerations."""
        e, contacts = self._equations, self._contacts
        frictions, each = contacts.frictions, contacts.each
        W = self._define_mobility(walker)
        known = [*W, *(f.coefficient for f in frictions)]
        pairs = [(c, c.friction) for c in contacts.contacts_with_friction]
        levels = [c.stabilized_acceleration(e.u, self._free) for c in each]
        levels += [f.stabilized_acceleration(e.u, self._free, c.stabilization) for c, f in pairs if f]
        levels = self._where_free(walker, levels)
        states = [*(c.resting for c in each), *(f.sliding for f in frictions)]
        walker.define(contacts.forces, [*known, *levels, *states], self._forces)
        self._define_sums(walker, e.u_dot, self._free, contacts.forces)
        rates = [row.rate(e.u) for row in contacts.rows]
        closed = [sm.Piecewise((1, c.contact_condition(e.u)), (0, True)) for c in each]
        laws = [*closed, *(c.restitution for c in each), *(c.resting_speed for c in each)]
        impulse_symbols = [row.impact_impulse for row in contacts.rows]
        behind = [*(c.resting_after_impact for c in each), *(f.sliding_after_impact for f in frictions)]
        walker.define([*impulse_symbols, *behind], [*known, *rates, *states, *laws], self._form_impact_nodes)
        zeros = [sm.S.Zero] * len(e.u)
        self._define_sums(walker, contacts.jumps, zeros, impulse_symbols)
        pushes = [sm.Dummy(f"push_{i}") for i in range(len(contacts.rows))]
        stays = [
            *(c.resting_after_change for c in each if c.resting_after_change),
            *(f.sliding_after_change for f in frictions),
        ]
        assert contacts.mode_change_due is not None
        walker.define(
            [contacts.mode_change_due],
            [form_mode_change_indicator(contacts, e.latches, tuple(e.u))],
            lambda nodes: nodes,
        )
        needs = [*known, *levels, *rates, *states, *(c.resting_speed for c in each)]
        needs += [*(f.minimum_slip(e.u) for f in frictions), contacts.mode_change_due]
        walker.define([*stays, *pushes], needs, self._changes)
        self._define_sums(walker, contacts.mode_change_jumps, zeros, pushes)

    def _known(self, nodes: Sequence[int]) -> tuple[FrictionContactMatrix, list[int]]:
        """Return W and the coefficients, and the remaining nodes."""
        size, count = len(self._response), len(self._contacts.frictions)
        W = [list(nodes[size * i : size * i + size]) for i in range(size)]
        frictions = FrictionContactMatrix(W, self._tangents, nodes[size * size : size * size + count])
        return frictions, list(nodes[size * size + count :])

    def _modes(self, states: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
        """Return whether each contact rests, which rows are held, and senses: 1, -1 or 0 to the bit."""
        b, k = self._builder, len(self._contacts.each)
        half, one, zero = b.constant(MODE_THRESHOLD), b.constant(1.0), b.constant(0.0)
        rests = [b.binary(Op.LT, half, state) for state in states[:k]]
        onwards = [b.binary(Op.LT, half, state) for state in states[k:]]
        backwards = [b.binary(Op.LT, state, b.constant(-MODE_THRESHOLD)) for state in states[k:]]
        senses = [
            b.sub(b.select(onward, one, zero), b.select(backward, one, zero))
            for onward, backward in zip(onwards, backwards, strict=True)
        ]
        with_friction = [k for k, tangent in enumerate(self._tangents) if tangent >= 0]
        sticks = [
            b.binary(Op.AND, rests[contact], b.binary(Op.EQ, sense, zero))
            for contact, sense in zip(with_friction, senses, strict=True)
        ]
        return rests, [*rests, *sticks], senses

    def _forces(self, nodes: Sequence[int]) -> list[int]:
        """Return N and T of resting contacts."""
        b, size = self._builder, len(self._response)
        frictions, rest = self._known(nodes)
        _, held, senses = self._modes(rest[size:])
        system = FrictionForceSolver(b, frictions, held, senses, f"the forces of {self._names}")
        return system.solve([b.neg(level) for level in rest[:size]])

    def _form_impact_nodes(self, nodes: Sequence[int]) -> list[int]:
        """Return impulses of all rows, then the contacts that rest after them, and their senses of sliding."""
        size, k = len(self._response), len(self._contacts.each)
        frictions, rest = self._known(nodes)
        rates, states, laws = rest[:size], rest[size : 2 * size], rest[2 * size :]
        impact = FrictionalImpactProblem(
            frictions=frictions,
            rates=rates,
            resting=states[:k],
            sliding=states[k:],
            closed=laws[:k],
            restitution=laws[k : 2 * k],
            rest_below=laws[2 * k :],
            laws=[contact.law for contact in self._contacts.each],
            names=self._names,
        )
        return solve_frictional_impulses(self._builder, impact, sequential=self._contacts.order == "sequential")

    def _changes(self, nodes: Sequence[int]) -> list[int]:
        """Return new modes, then impulses that stop drift of held rows and give new slip the sign of its sense.

        A gap whose rate is above ``rest_below`` has not drifted: something has set it, and it is on its way back.
        """
        b, size, k = self._builder, len(self._response), len(self._contacts.each)
        frictions, rest = self._known(nodes)
        levels, rates, states = rest[:size], rest[size : 2 * size], rest[2 * size : 3 * size]
        slow, least, due = rest[3 * size : 3 * size + k], rest[3 * size + k : -1], rest[-1]
        rests, _, senses = self._modes(states)
        zero, one = b.constant(0.0), b.constant(1.0)
        with_friction = [contact for contact, tangent in enumerate(self._tangents) if tangent >= 0]
        known = [
            self._sense(rates[k + place], senses[place], slow[contact]) for place, contact in enumerate(with_friction)
        ]
        now = ([b.select(each, one, zero) for each in rests], senses)
        chosen = choose_contact_modes(
            b, CoulombContactProblem(frictions.W, levels, self._tangents, frictions.coefficients, rests, known, now)
        )
        half = b.constant(MODE_THRESHOLD)
        pressed = [b.binary(Op.LT, half, each) for each in require_no_painleve_paradox(b, chosen, self._names, due)]
        along, senses, begins = [], [], []
        for place, (sense, enough, sticks) in enumerate(zip(chosen.senses, least, chosen.stuck, strict=True)):
            forth = b.mul(sense, rates[k + place])
            still = b.binary(Op.LT, forth, b.mul(b.constant(float(ZERO_SLIP_RATIO)), slow[with_friction[place]]))
            turns = b.binary(
                Op.OR, b.binary(Op.EQ, known[place], zero), still
            )  # else the gap's rate would turn it back
            begun = b.binary(Op.AND, b.unary(Op.ABS, sense), turns)
            along.append(b.binary(Op.OR, b.binary(Op.LT, half, sticks), begun))
            senses.append(b.select(begun, zero, sense))
            begins.append(b.select(begun, b.mul(sense, b.binary(Op.MAX, forth, enough)), zero))
        # Where no change is due the modes mean nothing, and their rows may be dependent: nothing is held.
        held = [b.select(due, each, zero) for each in (*pressed, *along)]
        system = FrictionForceSolver(b, frictions, held, senses, f"the rest of {self._names}")
        drift = [b.binary(Op.LE, b.unary(Op.ABS, rate), part) for rate, part in zip(rates[:k], slow, strict=True)]
        kept = [b.select(each, zero, rate) for each, rate in zip(drift, rates[:k], strict=True)]
        pushes = system.solve([b.sub(wanted, rate) for wanted, rate in zip([*kept, *begins], rates, strict=True)])
        leaving = b.constant(float(OPENING_STATE))
        stays = [
            b.select(rest, b.select(each, one, leaving), state)
            for rest, each, state in zip(rests, pressed, states[:k], strict=True)
        ]
        return [*stays, *chosen.senses, *pushes]

    def _sense(self, slip: int, sense: int, slow: int) -> int:
        """Return the sense of slip, 1 or −1; 0 where slip is negligible, or has just passed zero."""
        b = self._builder
        size, zero = b.unary(Op.ABS, slip), b.constant(0.0)
        still = b.binary(Op.LT, size, b.mul(b.constant(float(ZERO_SLIP_RATIO)), slow))
        turned = b.binary(Op.AND, b.binary(Op.LE, b.mul(sense, slip), zero), b.binary(Op.LT, size, slow))
        one = b.constant(1.0)
        side = b.select(b.binary(Op.LT, zero, slip), one, b.constant(-1.0))
        return b.select(b.binary(Op.OR, still, turned), zero, side)
