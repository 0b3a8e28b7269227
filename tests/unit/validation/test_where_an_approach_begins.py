"""The reference strikes what approaches by its modes, whatever sign round-off gives the rate at that instant."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from mechanisms import closed_mechanism_of

from mb2fmu import Impact, Model, validation
from mb2fmu.mechanics import formulations
from mb2fmu.validation.modes.contact_friction_modes import (
    InstantFrictionContacts,
    _ContactComplementarityProblem,
    _ContactModes,
    solve_frictional_contact_events,
)
from mb2fmu.validation.modes.impact_impulses import ContactsAtInstant, solve_impact_impulses


def contacts(order: str, *, rough: bool = False) -> SimpleNamespace:
    friction = [rough, False]
    each = [SimpleNamespace(name=f"c{k}", law="newton", friction=friction[k]) for k in range(2)]
    return SimpleNamespace(order=order, each=each)


def touch(rate: float, meeting: float) -> ContactsAtInstant:
    """One closed contact whose rate is round-off, and one that is far."""
    pair = np.array
    return ContactsAtInstant(
        accelerations=pair([-9.81, 0.0]),
        rates=pair([rate, 3.0]),
        restitution=pair([0.3, 0.3]),
        rest_below=pair([0.02, 0.02]),
        closed=pair([1.0, 0.0]),
        resting=pair([0.0, 0.0]),
        approaching_by_mode=pair([meeting, 0.0]),
    )


@pytest.mark.parametrize("order", ["sequential", "simultaneous"])
@pytest.mark.parametrize("rate", [1e-17, 0.0, -1e-17])
def test_an_approach_that_begins_ends_at_rest(order, rate):
    impulses, rests = solve_impact_impulses(contacts(order), np.eye(2), touch(rate, 1.0))
    assert list(rests) == [1.0, 0.0]
    assert 0.0 < impulses[0] < 1e-15  # an impact, that is counted
    assert impulses[1] == 0.0


@pytest.mark.parametrize("order", ["sequential", "simultaneous"])
@pytest.mark.parametrize("rate", [1e-17, 0.0, -1e-17])
def test_so_it_is_with_friction(order, rate):
    rub = InstantFrictionContacts(*(np.array([value]) for value in (0.0, 0.4, 1e-16, 0.2, 0.0)))
    both = (np.eye(3), np.zeros((4, 3)))
    found, _, _ = solve_frictional_contact_events(
        contacts(order, rough=True), both, (touch(rate, 1.0), rub), 0.5, hit=True, change=False
    )
    assert 0.0 < found[0] < 1e-15
    assert list(found[2:4]) == [1.0, 0.0]


@pytest.mark.parametrize("order", ["sequential", "simultaneous"])
def test_what_does_not_approach_is_not_struck(order):
    impulses, rests = solve_impact_impulses(contacts(order), np.eye(2), touch(1e-17, 0.0))
    assert not impulses.any()
    assert not rests.any()


@pytest.mark.parametrize("order", ["sequential", "simultaneous"])
@pytest.mark.parametrize("beside", [0.0, 1.0])
def test_a_gap_without_slope_takes_no_impulse(order: str, beside: float) -> None:
    """Such as exp(1000 y) - 1 far below its surface, whose slope squared underflows: nothing is divided by it."""
    closed = np.array([1.0, beside])
    rows = replace(touch(0.0, 0.0), rates=np.array([-1e-200, -3.0]), closed=closed)
    impulses, _ = solve_impact_impulses(contacts(order), np.diag([0.0, 2.0]), rows)
    assert impulses == pytest.approx([0.0, beside * 3.0 * 1.3 / 2.0])


def test_a_slip_without_slope_is_no_divisor() -> None:
    """Of two contacts with friction the second one's rows vanish: the first is struck as if it were alone."""
    W = np.diag([2.0, 0.0, 3.0, 0.0])
    alone, both = (
        _ContactComplementarityProblem(
            W[np.ix_(rows, rows)], np.full(2 * n, -1.0), tuple(range(n)), np.full(n, 0.9), *np.zeros((2, n))
        )
        for n, rows in ((1, [0, 2]), (2, [0, 1, 2, 3]))
    )
    pressed, nothing = np.array([True, False]), np.zeros(2)
    forces, _ = both.solve(_ContactModes(pressed, pressed, nothing))
    assert forces[[0, 2]] == pytest.approx(alone.solve(_ContactModes(pressed[:1], pressed[:1], nothing[:1]))[0])
    assert forces[[0, 2]] == pytest.approx([1 / 2, 1 / 3])


@pytest.mark.filterwarnings("error")
def test_an_impact_at_a_steep_gap_is_found_from_far_outside() -> None:
    """A ball falls by 0.05 m onto exp(1000 x) - 1, whose slope falls by 22 powers of ten on the way."""
    x, v = me.dynamicsymbols("x v")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.y)
    P.set_vel(N, v * N.y)
    ball = [me.Particle("p", P, sm.S.One)]
    model = Model("Steep", me.KanesMethod(N, [x], [v], [x.diff() - v], bodies=ball, forcelist=[(P, -9.81 * N.y)]))
    model.coordinate(x, 0.05, "m")
    model.speed(v, 0.0, "m/s")
    model.add(Impact("table", sm.exp(1000 * x) - 1, restitution=0.5))
    model.experiment(stop=0.15, step=0.01)
    mechanism = closed_mechanism_of(model)
    equations = formulations.formulate(mechanism, "tmt")
    run = validation.make_reference(mechanism.declared, equations)
    instant = np.sqrt(2 * 0.05 / 9.81)
    (strike,) = [event for event in run.events if event.sets_state]
    assert strike.time == pytest.approx(instant, rel=1e-9)
    assert strike.states[:, 1] == pytest.approx([-9.81 * instant, 0.5 * 9.81 * instant], rel=1e-9)
