"""FMUs that couple and let go: closed forms in Co-Simulation and Model Exchange; planted faults are caught."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import fmpy
import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from judging import Judge
from scipy.interpolate import CubicHermiteSpline

from mb2fmu import Impact, Latch, Model, export
from mb2fmu.compiler.lowering import latch_laws

pytestmark = pytest.mark.slow
MODELS = Path(__file__).parents[2] / "models"


def carts(within: float | None = None, distance: float = 0.5) -> Model:
    """Two carts, of which the faster one couples to the other."""
    x1, x2, v1, v2 = me.dynamicsymbols("x1 x2 v1 v2")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    A, B = O.locatenew("A", x1 * N.x), O.locatenew("B", x2 * N.x)
    A.set_vel(N, v1 * N.x)
    B.set_vel(N, v2 * N.x)
    bodies = [me.Particle("a", A, 2), me.Particle("b", B, 3)]
    kane = me.KanesMethod(N, [x1, x2], [v1, v2], [x1.diff() - v1, x2.diff() - v2], bodies=bodies)
    model = Model("Carts", kane)
    for symbol, start in ((x1, 0.0), (x2, 1.0)):
        model.coordinate(symbol, start, "m")
    for symbol, start in ((v1, 2.0), (v2, 0.5)):
        model.speed(symbol, start, "m/s")
    model.add(Latch("coupling", x2 - x1 - 0.5, close=x2 - x1 <= distance, within=within))
    model.experiment(stop=1.0, step=0.1, tolerance=1e-9)
    return model


LETS_GO = 0.713


def pendulum(lets_go: float = LETS_GO) -> Model:
    """A free bob that a string's end holds, until it is let go."""
    x, y, u, v = me.dynamicsymbols("x y u v")
    t = me.dynamicsymbols._t
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, u * N.x + v * N.y)
    bob = me.Particle("bob", P, 2)
    loads = [(P, -2 * sm.Float(9.81) * N.y)]
    kane = me.KanesMethod(N, [x, y], [u, v], [x.diff() - u, y.diff() - v], bodies=[bob], forcelist=loads)
    model = Model("Released", kane)
    for symbol, start in ((x, 0.6), (y, -0.8)):
        model.coordinate(symbol, start, "m")
    for symbol, start in ((u, 0.8), (v, 0.6)):
        model.speed(symbol, start, "m/s")
    string = (x**2 + y**2 - 1) / 2
    model.add(Latch("string", string, open=t >= lets_go, starts_engaged=True, within=None))
    model.experiment(stop=1.5, step=0.1, tolerance=1e-10)
    return model


@pytest.fixture(scope="module")
def units(tmp_path_factory):
    folder = tmp_path_factory.mktemp("latches")
    return {make: export(make(), folder).path for make in (carts, pendulum)}


def moved(unit, kind: str, names: list[str], stop: float, step: float):
    return fmpy.simulate_fmu(
        str(unit), fmi_type=kind, stop_time=stop, output_interval=step, relative_tolerance=1e-10, output=names
    )


@pytest.mark.parametrize("kind", ["CoSimulation", "ModelExchange"])
def test_carts_that_couple_keep_their_momentum(units, kind):
    names = ["x1", "v1", "v2", "coupling.impulse", "coupling.force", "coupling.held_at"]
    found = moved(units[carts], kind, names, 1.0, 0.1)[-1]
    common = (2 * 2.0 + 3 * 0.5) / 5
    assert [found["v1"], found["v2"]] == pytest.approx([common, common], rel=1e-9)
    assert found["coupling.impulse"] == pytest.approx(3 * (common - 0.5), rel=1e-9)
    lost = 0.5 * (2 * 4.0 + 3 * 0.25) - 0.5 * 5 * found["v1"] ** 2
    assert lost == pytest.approx(0.5 * 2 * 3 / 5 * 1.5**2, rel=1e-9)
    assert found["x1"] == pytest.approx(2.0 / 3 + common * 2 / 3, abs=1e-8)
    assert abs(found["coupling.held_at"]) < 1e-8


def test_carts_couple_only_where_they_fit(tmp_path):
    """The condition holds from 0.7 m on, the bound of 1 mm around 0.5 m; without a bound it is held at 0.7 m."""
    for within, offset in ((1e-3, 1e-3), (None, 0.2)):
        path = export(carts(within, 0.7), tmp_path / f"{within}").path
        found = moved(path, "CoSimulation", ["coupling.held_at", "x1", "x2"], 1.0, 0.5)[-1]
        assert found["coupling.held_at"] == pytest.approx(offset, abs=1e-9)
        assert found["x2"] - found["x1"] == pytest.approx(0.5 + offset, abs=1e-9)


def test_a_bob_that_is_let_go_flies_on(units):
    """The string's force is that of the pendulum, m (v^2 + g·r) / l; then the bob flies on a parabola."""
    found = moved(units[pendulum], "CoSimulation", ["x", "y", "u", "v", "string.force"], 1.5, 0.02)
    time = found["time"]
    held = time < LETS_GO - 1e-9
    x, y, u, v = (found[name][held] for name in ("x", "y", "u", "v"))
    assert np.hypot(x, y) == pytest.approx(np.ones(held.sum()), abs=1e-9)
    assert 0.5 * (u**2 + v**2) + 9.81 * y == pytest.approx(np.full(held.sum(), 0.5 - 9.81 * 0.8), abs=1e-8)
    assert found["string.force"][held] == pytest.approx(-2 * (u**2 + v**2 - 9.81 * y), rel=1e-8)
    assert (found["string.force"][time > LETS_GO + 1e-9] == 0.0).all()
    first = int(np.argmax(time > LETS_GO + 1e-9))
    since = time[first:] - time[first]
    for name, speed, g in (("x", "u", 0.0), ("y", "v", 9.81)):
        path = found[name][first] + found[speed][first] * since - g / 2 * since**2
        assert found[name][first:] == pytest.approx(path, abs=1e-9)


def gripper() -> Model:
    """A hand that is drawn down to the ring of a ball on the ground, picks it up, swings it and drops it at 2 s."""
    t = me.dynamicsymbols._t
    q, speeds = me.dynamicsymbols("x y bx by theta"), me.dynamicsymbols("u v bu bv omega")
    (x, y, bx, by, theta), (u, v, bu, bv, omega) = q, speeds
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    H, C = O.locatenew("H", x * N.x + y * N.y), O.locatenew("C", bx * N.x + by * N.y)
    H.set_vel(N, u * N.x + v * N.y)
    C.set_vel(N, bu * N.x + bv * N.y)
    B = N.orientnew("B", "Axis", (theta, N.z))
    B.set_ang_vel(N, omega * N.z)
    bodies = [me.Particle("hand", H, 1), me.RigidBody("ball", C, B, 0.5, (me.inertia(B, 0, 0, 0.002), C))]
    way = (0.3 * (1 - sm.cos(sm.pi * (t - 1) / 2)), 0.3 + sm.cos(sm.pi * t) / 10)
    drawn = [4000 * (w - p) + 150 * (w.diff(t) - s) for w, p, s in zip(way, (x, y), (u, v), strict=True)]
    loads = [(H, drawn[0] * N.x + drawn[1] * N.y), (C, -0.5 * sm.Float(9.81) * N.y)]
    rates = [place.diff() - speed for place, speed in zip(q, speeds, strict=True)]
    model = Model("Gripper", me.KanesMethod(N, q, speeds, rates, bodies=bodies, forcelist=loads))
    for place, start in zip(q, (0.3, 0.4, 0.0, 0.1, 0.0), strict=True):
        model.coordinate(place, start, "rad" if place == theta else "m")
    for speed in speeds:
        model.speed(speed, -0.15 * np.pi if speed == u else 0.0, "rad/s" if speed == omega else "m/s")
    ring = C.locatenew("ring", 0.1 * B.y)
    grasp = {"close": sm.And(t >= 0.5, t < 2), "open": t >= 2}
    model.add(Latch("grip", Latch.point(H, ring, N), within=2e-3, **grasp))
    model.add(Impact("ground", by - 0.1, restitution=0.3, rest_below=0.05, starts_resting=True))
    model.experiment(stop=3.0, step=0.01, tolerance=1e-9)
    return model


@pytest.mark.repeats  # a latch beside an impact is tried below; the library's gripper is known in unit/validation
def test_a_gripper_picks_up_and_drops(tmp_path):
    """Latch and impact together: the ring stays where it was caught, the ball is lifted, flies, bounces and rests."""
    path = export(gripper(), tmp_path).path
    names = ["x", "y", "bx", "by", "theta", "bu", "bv", "omega"]
    names += ["grip.engaged", "grip.changes", "grip.held_at_x", "grip.held_at_y", "ground.resting", "ground.impacts"]
    found = moved(path, "CoSimulation", names, 3.0, 0.01)
    time, held = found["time"], found["grip.engaged"] > 0.5
    sure = np.abs(time - 2.0) > 1e-6
    assert (held == ((time >= time[held][0]) & (time < 2.0)))[sure].all()
    assert 0.9 < time[held][0] < 1.0
    ring = (found["bx"] - 0.1 * np.sin(found["theta"]), found["by"] + 0.1 * np.cos(found["theta"]))
    for place, hand, name in zip(ring, ("x", "y"), ("grip.held_at_x", "grip.held_at_y"), strict=True):
        assert (place - found[hand])[held] == pytest.approx(found[name][held], abs=1e-8)
        assert np.abs(found[name]).max() <= 2e-3 + 1e-9
    assert found["by"][held].max() > 0.25
    flies = (time > 2.005) & (time < 2.15)
    since, first = time[flies] - time[flies][0], int(np.flatnonzero(flies)[0])
    for name, speed, g in (("bx", "bu", 0.0), ("by", "bv", 9.81), ("theta", "omega", 0.0)):
        way = found[name][first] + found[speed][first] * since - g / 2 * since**2
        assert found[name][flies] == pytest.approx(way, abs=1e-8)
    assert found["ground.resting"][-1] == 1.0
    assert found["ground.impacts"][-1] > 1
    assert found["by"][-1] == pytest.approx(0.1, abs=1e-9)


def test_a_block_rocks_as_published(tmp_path):
    """Housner 1963: half .1 m by .4 m from alpha / 2; omega- is that of the pendulum, omega+ less by what is caught."""
    path = export(MODELS / "rocking_block.py", tmp_path).path
    names = ["theta", "omega", "right.engaged", "left.force_y"]
    impact, before = 0.312308575112622, -0.893414307302563
    kept = 1 - 1.5 * np.sin(np.arctan(0.25)) ** 2
    for kind in ("CoSimulation", "ModelExchange"):
        for stop, closed, speed in ((impact - 1e-8, 0.0, before), (impact + 1e-8, 1.0, kept * before)):
            found = moved(path, kind, names, stop, stop)[-1]
            assert found["right.engaged"] == closed
            assert found["omega"] == pytest.approx(speed, abs=1e-7)
    found = moved(path, "CoSimulation", names, 0.61, 1e-3)
    after = int(np.flatnonzero((found["omega"] > 0) & (found["time"] > 0.5))[0])
    swing = CubicHermiteSpline(*(found[name][after - 1 : after + 1] for name in ("time", "theta", "omega")))
    (top,) = swing.derivative().roots(extrapolate=False)
    assert -swing(top) == pytest.approx(0.0947367931208167, rel=1e-8)
    assert (found["left.force_y"][found["time"] < 0.3] > 0.0).all()


def locked(*, rough: bool = True) -> Model:
    """A block that rests on the floor and is pushed along it, is locked there at 0.4 s, pulled up, let go at 1 s."""
    (x, y), (v, w), t = me.dynamicsymbols("x y"), me.dynamicsymbols("v w"), me.dynamicsymbols._t
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, v * N.x + w * N.y)
    loads = [(P, (14 * t - sm.Float(9.81)) * N.y + sm.sin(5 * t) * N.x)]
    rates = [x.diff() - v, y.diff() - w]
    kane = me.KanesMethod(N, [x, y], [v, w], rates, bodies=[me.Particle("block", P, 1)], forcelist=loads)
    model = Model("Locked", kane)
    for place in (x, y):
        model.coordinate(place, 0.0, "m")
    for speed in (v, w):
        model.speed(speed, 0.0, "m/s")
    friction = {"slip": v, "friction": 0.05} if rough else {}
    model.add(Impact("floor", y, restitution=0.3, rest_below=0.02, starts_resting=True, **friction))
    model.add(Latch("lock", [x, y], close=t >= 0.4, open=t >= 1.0, within=1.0))
    model.experiment(stop=1.3, step=0.02, tolerance=1e-8)
    return model


@pytest.mark.parametrize("rough", [True, pytest.param(False, marks=pytest.mark.repeats)])
def test_what_a_latch_holds_no_contact_holds(tmp_path, judge, rough):
    """Latch and floor hold the same direction: forces would be round-off over round-off; the floor's are zero."""
    make = locked if rough else locked_smoothly
    unit = export(make(), tmp_path).path
    names = ["x", "y", "v", "w", "floor.resting", "floor.force", "lock.force_2", "lock.engaged"]
    names += ["floor.sliding", "floor.friction"] if rough else []
    for kind in ("CoSimulation", "ModelExchange"):
        found = moved(unit, kind, names, 1.3, 0.02)
        time = found["time"]
        held, free = (time > 0.401) & (time < 0.999), time > 1.001
        for place in ("x", "y"):
            assert np.ptp(found[place][held]) < 1e-12
        assert (found["lock.engaged"][held] == 1.0).all()
        assert (found["floor.resting"][held] == 1.0).all()
        assert (found["floor.force"][held] == 0.0).all()
        assert found["lock.force_2"][held] == pytest.approx(9.81 - 14 * time[held], abs=1e-9)
        if rough:
            assert (found["floor.sliding"][(time > 0.2) & (time < 0.399)] == 1.0).all()
            assert not found["floor.sliding"][held].any()
            assert not found["floor.friction"][held].any()
        t = time[free]
        assert found["v"][free] == pytest.approx((np.cos(5) - np.cos(5 * t)) / 5, abs=1e-7)
        rise = 14 / 6 * (t**3 - 1 - 3 * (t - 1)) - 9.81 / 2 * (t - 1) ** 2
        assert found["y"][free] == pytest.approx(rise, abs=1e-7)
    assert judge.passes(make, unit)


def locked_smoothly() -> Model:
    """The same without friction."""
    return locked(rough=False)


# --- the validation
# --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def judge():
    return Judge()


def test_right_fmus_pass(judge, units):
    assert judge.passes(carts, units[carts])
    assert judge.passes(pendulum, units[pendulum])


def test_a_wrong_impulse_is_caught(judge, tmp_path):
    """Planted: an impulse that is larger by a hundred thousandth."""

    class Wrong(latch_laws.ActiveRowSystem):
        def solve(self, right):
            b = self._builder
            return [b.mul(b.constant(1.00001), each) for each in super().solve(right)]

    with patch.object(latch_laws, "ActiveRowSystem", Wrong):
        path = export(carts(), tmp_path).path
    assert not judge.passes(carts, path)


def test_a_latch_that_never_opens_is_caught(judge, tmp_path):
    assert not judge.passes(pendulum, export(pendulum(lets_go=1e9), tmp_path).path)
