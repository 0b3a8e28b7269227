"""Dry friction on a motion that a rigid stop holds: the stop bears the load, and friction nothing, to the bit.

What friction can do there is round-off. It was pushed to one side or the other by it, ± its kinetic force, and the
reference said that no force holds what sticks: of a block that is pushed against a stop, too.
"""

from __future__ import annotations

import functools

import fmpy
import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from event_models import reference_of
from judging import Judge

from mb2fmu import Brake, CoulombFriction, HardStop, Impact, Model, export
from mb2fmu.validation.modes.coupled_holding_forces import find_ineffective_frictions, solve_coupled_holding_forces

t = me.dynamicsymbols._t
KINDS = ["CoSimulation", "ModelExchange"]
G = 9.81


def block(*, rail: bool = False, brake: bool = False) -> Model:
    """A block of 1 kg that is pushed against a stop at 0.1 m, released and drawn back, over a rough floor."""
    x, v, F = me.dynamicsymbols("x v F")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    kane = me.KanesMethod(N, [x], [v], [x.diff() - v], bodies=[me.Particle("p", P, 1)], forcelist=[(P, F * N.x)])
    model = Model("BlockAtStop", kane)
    model.coordinate(x, 0.0, "m")
    model.speed(v, 0.0, "m/s")
    model.input(F, 3.0, "N", name="F")
    along = (O, P, N.x)
    model.add(CoulombFriction("floor", along, kinetic=0.4, static=0.5))
    if rail:
        model.add(CoulombFriction("rail", along, kinetic=0.2, static=0.3))
    if brake:
        model.add(Brake("brake", along, capacity=2.0, engagement=0.5))
    model.add(HardStop("stop", along, lower=-0.1, upper=0.1, restitution=0.0, rest_below=0.01))
    pushed = sm.Piecewise((3.0, t < 1), (0.3, t < 1.5), (-0.3, t < 2), (-2.5, True))
    model.experiment(stop=2.2, step=0.05, tolerance=1e-9, signals={F: pushed})
    return model


LIMITS = {"floor": 0.5, "rail": 0.3, "brake": 1.0}
SLIDING = {"floor": 0.4, "rail": 0.2, "brake": 1.0}
PUSHES = np.array([(0.0, 3.0), (1.0, 3.0), (1.0, 0.3), (1.5, 0.3), (1.5, -0.3), (2.0, -0.3), (2.0, -2.5), (3.0, -2.5)],
                  dtype=[("time", float), ("F", float)])  # fmt: skip


ALONE, TWO = (pytest.param(more, marks=pytest.mark.repeats) for more in ((), ("rail",)))


@pytest.fixture(scope="module")
def unit_of(tmp_path_factory):
    """Path of the FMU of a model that is made with some options, exported once."""

    @functools.cache
    def unit(make, **options) -> str:
        return str(export(make(**options), tmp_path_factory.mktemp("stops")).path)

    return unit


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("more", [ALONE, TWO, ("brake",)], ids=["alone", "two", "with_brake"])
def test_a_stop_bears_what_friction_would_share(unit_of, more, kind):
    """Of frictions on one motion each takes its part of what they can hold, as soon as the stop lets go."""
    parts = ["floor", *more]
    names = ["x", "stop.upper_stop.force", *(f"{p}.{what}" for p in parts for what in ("force", "sticking"))]
    found = fmpy.simulate_fmu(
        unit_of(block, **dict.fromkeys(more, True)), fmi_type=kind, stop_time=2.2, input=PUSHES,
        output_interval=0.05, relative_tolerance=1e-9, output=names,
    )  # fmt: skip
    time = found["time"]
    most, rubs = sum(LIMITS[p] for p in parts), sum(SLIDING[p] for p in parts)
    reached = np.sqrt(2 * 0.1 / (3.0 - rubs))
    for begin, end, push in ((reached, 1.0, 3.0), (1.0, 1.5, 0.3)):
        rests = (time > begin + 1e-6) & (time < end - 1e-6)
        assert rests.any()
        assert found["stop.upper_stop.force"][rests] == pytest.approx(push, abs=1e-7)
        for part in parts:
            assert not found[f"{part}.force"][rests].any()
            assert (found[f"{part}.sticking"][rests] == 1.0).all()
    holds = (time > 1.5 + 1e-6) & (time < 2.0 - 1e-6)
    assert not found["stop.upper_stop.force"][holds].any()
    for part in parts:
        assert found[f"{part}.force"][holds] == pytest.approx(0.3 * LIMITS[part] / most, rel=1e-6)
    last = time > 2.0 + 1e-6
    assert found["x"][last] == pytest.approx(0.1 - 0.5 * (2.5 - rubs) * (time[last] - 2.0) ** 2, abs=1e-7)


def crank() -> Model:
    """A crank-slider with bearing friction, whose slider a torque presses on one stop, then on the other."""
    q1, q2, u1, u2, tau = me.dynamicsymbols("q1 q2 u1 u2 tau")
    a, b, m = sm.Float(0.2), sm.Float(0.6), 1
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    A, B = N.orientnew("A", "Axis", (q1, N.z)), N.orientnew("B", "Axis", (-q2, N.z))
    A.set_ang_vel(N, u1 * N.z)
    B.set_ang_vel(N, -u2 * N.z)
    P = O.locatenew("P", a * A.x)
    P.v2pt_theory(O, N, A)
    S = P.locatenew("S", b * B.x)
    S.v2pt_theory(P, N, B)
    middle = O.locatenew("middle", a / 2 * A.x)
    middle.v2pt_theory(O, N, A)
    bodies = [
        me.RigidBody("crank", middle, A, m, (me.inertia(A, 0, 0, sm.Float(0.01)), middle)),
        me.Particle("slider", S, 2 * m),
    ]
    loop = a * sm.sin(q1) - b * sm.sin(q2)
    rates = {q1.diff(): u1, q2.diff(): u2}
    kane = me.KanesMethod(
        N, [q1], [u1], [q1.diff() - u1, q2.diff() - u2], q_dependent=[q2], u_dependent=[u2],
        configuration_constraints=[loop], velocity_constraints=[loop.diff(t).subs(rates)], bodies=bodies,
        forcelist=[(A, tau * N.z), (middle, -m * sm.Float(G) * N.y)],
    )  # fmt: skip
    model = Model("CrankAtStop", kane)
    model.input(tau, 6.0, "N.m", name="tau")
    model.coordinate(q1, 0.9, "rad")
    model.coordinate(q2, 0.26, "rad", kind="guess")
    model.speed(u1, 1.0, "rad/s")
    model.speed(u2, 0.2, "rad/s", kind="guess")
    model.add(CoulombFriction("bearing", (N, A, N.z), kinetic=0.4, static=0.5))
    model.add(HardStop("stop", (O, S, N.x), lower=0.5, upper=0.75, restitution=0.3, rest_below=0.02))
    model.experiment(stop=1.5, step=0.02, tolerance=1e-8, signals={tau: sm.Piecewise((6.0, t < 0.8), (-6.0, True))})
    return model


@pytest.fixture(scope="module")
def judge():
    return Judge()


@pytest.mark.repeats  # by day a crank without stops, in test_friction_at_dead_centres, and a block at a stop
@pytest.mark.parametrize("treatment", ["attractor", "explicit", "multipliers", "partition"])
def test_a_crank_that_a_stop_holds_rubs_on_nothing(tmp_path, judge, treatment):
    """The stop's force by virtual work: N dS/dq + tau − dV/dq = 0.

    By multipliers alone the loop drifted, and friction slid on what drift makes of slip: 7e-6 rad/s with CVODE.
    """
    unit = export(crank(), tmp_path, constraints=treatment).path
    torque = np.array([(0.0, 6.0), (0.8, 6.0), (0.8, -6.0), (9.0, -6.0)], dtype=[("time", float), ("tau", float)])
    names = ["q1", "bearing.torque", "bearing.sticking", "stop.lower_stop.force", "stop.upper_stop.force"]
    for kind in KINDS:
        found = fmpy.simulate_fmu(
            str(unit), fmi_type=kind, stop_time=1.5, input=torque, output_interval=0.02, relative_tolerance=1e-9,
            output=names,
        )  # fmt: skip
        q = found["q1"]
        rod = np.arcsin(0.2 * np.sin(q) / 0.6)
        slope = -0.2 * np.sin(q) - 0.6 * np.sin(rod) * 0.2 * np.cos(q) / (0.6 * np.cos(rod))
        for stop, tau in (("lower", 6.0), ("upper", -6.0)):
            force = found[f"stop.{stop}_stop.force"] * (1.0 if stop == "lower" else -1.0)
            rests = force != 0.0
            assert rests.sum() > 5
            balance = force * slope + tau - G * 0.1 * np.cos(q)
            assert np.abs(balance[rests]).max() < 1e-6
            assert not found["bearing.torque"][rests].any()
            assert (found["bearing.sticking"][rests] == 1.0).all()
    assert judge.passes(crank, unit)


def pushed() -> Model:
    """A block on a rough floor, which a wall at p = A sin(w t) pushes: friction slides on what the wall moves."""
    x, v = me.dynamicsymbols("x v")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    kane = me.KanesMethod(N, [x], [v], [x.diff() - v], bodies=[me.Particle("p", P, 1)])
    model = Model("Pushed", kane)
    model.coordinate(x, 0.0, "m")
    model.speed(v, 0.4, "m/s")
    model.add(CoulombFriction("floor", (O, P, N.x), kinetic=0.4, static=0.5))
    gap = x - 0.2 * sm.sin(2 * t)
    model.add(Impact("wall", gap, restitution=0.3, rest_below=0.01, starts_resting=True))
    model.experiment(stop=1.2, step=0.02, tolerance=1e-9)
    return model


@pytest.mark.parametrize("kind", KINDS)
def test_a_wall_that_moves_pushes_against_friction(unit_of, kind):
    """The wall's force is m p'' + F; the block leaves where 0.8 sin(2 t) = 0.4, and slides to rest."""
    names = ["x", "wall.force", "floor.force"]
    found = fmpy.simulate_fmu(
        unit_of(pushed), fmi_type=kind, stop_time=1.2, output_interval=0.02,
        relative_tolerance=1e-9, output=names,
    )  # fmt: skip
    time, leaves = found["time"], np.arcsin(0.5) / 2
    before, after = time < leaves - 1e-6, time > leaves + 1e-6
    assert found["floor.force"][before] == pytest.approx(-0.4, abs=1e-12)
    assert found["wall.force"][before] == pytest.approx(0.4 - 0.8 * np.sin(2 * time[before]), abs=1e-6)
    speed = 0.4 * np.cos(2 * leaves)
    slides = np.minimum(time[after] - leaves, speed / 0.4)
    assert found["x"][after] == pytest.approx(0.1 + speed * slides - 0.2 * slides**2, abs=1e-6)


def test_what_contacts_hold_no_friction_holds():
    """Planted: what friction leaves of its own slip is round-off of either sign, and next to nothing."""
    for left in (0.0, 3e-16, -2e-13, 1e-10):
        B = np.array([[-2.0, 1.0], [-2.0 * (1.0 - left), 1.0]])
        found = solve_coupled_holding_forces(B, np.array([3.0, 3.0]), np.array([1.25]))
        assert find_ineffective_frictions(B, 1).tolist() == [True]
        assert found == pytest.approx([0.0, 3.0], abs=1e-12)
    assert find_ineffective_frictions(np.array([[-2.0, 1.0], [-1.9, 1.0]]), 1).tolist() == [False]


def test_two_frictions_on_one_crank_leave_round_off():
    """Slips of one motion are round-off that no factor makes zero: that is no contradiction."""
    B = np.outer((-1.67, 1.24), (1.0, -0.186))
    found = solve_coupled_holding_forces(B, np.array([-2.3e-15, -4.6e-14]), np.array([1.25, 1.25]), 1e-9)
    assert np.abs(found).max() < 1e-12
    with pytest.raises(np.linalg.LinAlgError):
        solve_coupled_holding_forces(B, np.array([-1.0, -1.0]), np.array([1.25, 1.25]))
    against_the_stop = block(rail=True)
    against_the_stop.experiment(stop=0.5, step=0.05, tolerance=1e-9)
    assert reference_of(against_the_stop).trajectory.values.shape[0] == 11
