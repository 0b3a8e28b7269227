"""Clutches, freewheels and stops: x' against laws written by hand, and what is wrong with them in words."""

from __future__ import annotations

import lines
import numpy as np
import pytest
import sympy as sm
from mechanisms import closed_mechanism_of

from mb2fmu import Backlash, Brake, Clutch, CoulombFriction, HardStop, Impact, OneWayClutch, rhs
from mb2fmu.errors import ModelError
from mb2fmu.mechanics import formulations
from mb2fmu.model import check_model
from mb2fmu.validation.reference.reference_run import make_reference

t = lines.t


def test_a_clutch_is_pressed_by_its_input():
    model, N, (A, B) = lines.inertias("Two", 2.0, [(0.0, 0.0)] * 2, sm.S.Zero)
    model.add(Clutch("c", (A, B, N.z), capacity=10.0))
    model.add(Brake("b", (None, B, N.z), capacity=3.0, engagement=0.5))
    f = rhs(model)
    x = np.array([0.0, 0.0, 3.0, 1.0])
    assert f(0.0, x, r=np.array([0.6])) == pytest.approx([3.0, 1.0, -3.0, 3.0 - 0.75])
    assert f(0.0, x, r=np.array([-1.0])) == pytest.approx([3.0, 1.0, 0.0, -0.75], abs=1e-9)


def test_a_freewheel_drives_one_way():
    model, N, (A, B) = lines.inertias("Two", 2.0, [(0.0, 0.0)] * 2, sm.S.Zero)
    model.add(OneWayClutch("wheel", (A, B, N.z), capacity=8.0))
    f = rhs(model)
    assert f(0.0, np.array([0.0, 0.0, 3.0, 1.0]))[2:] == pytest.approx([-4.0, 4.0])
    assert f(0.0, np.array([0.0, 0.0, 1.0, 3.0]))[2:].tolist() == [0.0, 0.0]


def test_stops_push_by_a_spring_and_no_more_than_twice_it():
    model, N, O, (P,) = lines.masses("One", [(0.0, 0.0)], lambda _: [sm.S.Zero])
    model.add(HardStop("s", (O, P, N.x), stiffness=10, damping=2, lower=-0.5, upper=0.5))
    f = rhs(model)
    for x, v in ((0.3, 1.0), (0.6, 0.2), (0.6, 9.0), (0.6, -9.0), (-0.7, 0.3), (-0.7, -0.3)):
        beyond = max(abs(x) - 0.5, 0.0)
        damper = np.clip(2 * v * np.sign(x), -10 * beyond, 10 * beyond)
        assert f(0.0, np.array([x, v]))[1] == pytest.approx(-np.sign(x) * (10 * beyond + damper), abs=1e-14)


def test_play_of_a_gear_turns_both_sides_by_its_ratio():
    model, N, (A, B) = lines.inertias("Gear", 2.0, [(0.0, 0.0)] * 2, sm.S.Zero)
    angles = [item.symbol for item in model.declared[::2]]
    model.add(Backlash("g", (A, B, N.z), stiffness=10, damping=0.5, position=tuple(angles), play=0.2, ratio=-4.0))
    f = rhs(model)
    for x in ((2.0, 0.3, 0.4, 0.05), (-1.0, 0.2, 0.4, 0.05), (-4.0, 0.3, -8.0, 0.2)):
        behind = x[1] + x[0] / 4
        spring = -10 * np.sign(behind) * max(abs(behind) - 0.1, 0.0)
        push = spring + np.clip(-0.5 * (x[3] + x[2] / 4), -abs(spring), abs(spring))
        assert f(0.0, np.array(x))[2:] == pytest.approx([push / 4 / 2.0, push / 2.0], rel=1e-13)


def test_a_rigid_stop_is_an_impact_at_each_bound():
    model, N, O, (P,) = lines.masses("One", [(0.0, 1.0)], lambda _: [sm.S.Zero])
    model.add(HardStop("s", (O, P, N.x), restitution=0.5, lower=-0.5, upper=0.25))
    model.experiment(stop=2.0, step=0.1)
    definition = check_model(model)
    assert [p.name for p in definition.parameters] == [
        "s.lower",
        "s.upper",
        "s.restitution",
        "s.rest_below",
        "s.stabilization",
    ]
    assert [str(c.gap) for c in model.declared_contacts] == ["-s_lower + x1(t)", "s_upper - x1(t)"]
    found = make_reference(definition, formulations.formulate(closed_mechanism_of(model), "tmt")).events
    assert sorted({round(event.time, 10) for event in found}) == [0.25, 0.25 + 0.75 / 0.5]


def test_what_only_numbers_tell_is_reported_before_anything_moves():
    """A restitution by a parameter of the user's, instants that never come."""
    model, _, _, _ = lines.masses("One", [(1.0, 0.0)], lambda _: [sm.S.Zero])
    x, v = (item.symbol for item in model.declared[:2])
    e = sm.Symbol("e")
    model.parameter(e, 1.5)
    model.add(Impact("ground", x, restitution=e))
    model.once(-1.0, {v: 0})
    model.once(float("nan"), {v: 1})
    with pytest.raises(ModelError) as caught:
        check_model(model)
    for part in ("restitution of ground, e, is 1.5", "t = -1 s begins at -1 s", "t = nan s has instants that are no"):
        assert part in str(caught.value), part


def test_what_is_wrong_with_elements_is_reported_at_once():
    model, N, (A, B) = lines.inertias("Two", 2.0, [(0.0, 0.0)] * 2, sm.S.Zero)
    for wrong in (
        Clutch("a", (A, B, N.z), capacity=-1, peak=0.9, drag=0),
        OneWayClutch("b", (A, B, N.z), capacity=0.0),
        HardStop("c", (A, B, N.z), stiffness=1e3),
        HardStop("d", (A, B, N.z), stiffness=-1, lower=1, upper=0, position=model.declared[0].symbol),
        Backlash("e", (A, B, N.z), stiffness=1, play=-0.1, position=model.declared[0].symbol),
        HardStop("f", (A, B, N.z), lower=0.0, position=model.declared[0].symbol),
        HardStop("g", (A, B, N.z), restitution=1.2, damping=1.0, lower=0.0, position=model.declared[0].symbol),
        HardStop("i", (A, B, N.z), lower=float("nan"), upper=1.0, restitution=0.5, position=model.declared[0].symbol),
        CoulombFriction("j", (A, B, N.z), static=float("nan"), kinetic=0.5),
        Backlash("h", (A, B, N.z), ratio=0.0, position=model.declared[0].symbol),
    ):
        model.add(wrong)
    with pytest.raises(ModelError) as caught:
        check_model(model)
    for part in (
        "Clutch a: capacity is -1",
        "Clutch a: peak is 0.9",
        "Clutch a: drag is 0",
        "OneWayClutch b: capacity is 0: it would transmit nothing",
        "HardStop c: it has no bound",
        "HardStop c: the angle between the frames is not known",
        "HardStop d: stiffness is -1",
        "HardStop d: lower 1 is not below upper 0",
        "Backlash e: play is -0.1",
        "HardStop f: it has neither stiffness nor restitution",
        "HardStop g: its restitution is 1.2",
        "HardStop g: it has damping and is rigid",
        "HardStop i: its bounds are nan and 1.0",
        "CoulombFriction j: static is nan",
        "Backlash h: it has no stiffness",
        "Backlash h: ratio is 0",
        "Backlash h: a gear with a ratio needs both angles",
    ):
        assert part in str(caught.value), part
