"""Compliant contact: forces written by hand, momentum, gaps against their rates, and what is wrong in words."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
import touching
from representatives import by_night
from scipy.integrate import solve_ivp

from mb2fmu import Contact, CylinderSurface, HeightSurface, Model, PlaneSurface, SphereSurface, rhs
from mb2fmu.errors import ModelError
from mb2fmu.model import check_model

MASSES = np.array([2.0, 2.0, 0.5, 3.0, 3.0, 0.7])


@pytest.mark.parametrize(
    ("exponent", "h", "v"), [(1, 0.04, -0.3), (1.5, 0.03, 0.4), (2.2, 0.02, -2.0), (2, 0.03, 12.0)]
)
def test_the_normal_force_is_that_of_hunt_and_crossley_and_never_pulls(exponent, h, v):
    f = rhs(touching.striking_ball(exponent, 0.1))
    force = 1e4 * (0.05 - h) ** exponent * max(0.0, 1 - 0.1 * v)
    assert f(0.0, np.array([h, v]))[1] == pytest.approx(force / 2, rel=1e-13)
    assert f.outputs(0.0, np.array([h, v])) == pytest.approx([h - 0.05, -v, force], rel=1e-13)
    assert f(0.0, np.array([0.0501, v]))[1] == 0.0


def surfaces(body: me.RigidBody, N: me.ReferenceFrame) -> dict[str, object]:
    """One of each kind, carried by a body that turns."""
    C, B = body.masscenter, body.frame
    corner = C.locatenew("corner", 0.2 * B.x + 0.1 * B.y)
    corner.v2pt_theory(C, N, B)
    up = me.ReferenceFrame("up")
    up.orient_axis(B, B.x, -sm.pi / 2)
    return {
        "plane": PlaneSurface(corner, 2 * B.y + B.x, body=body),
        "sphere": SphereSurface(corner, 0.4, body=body),
        "bowl": SphereSurface(corner, 1.5, inside=True, body=body),
        "pipe": CylinderSurface(C, 3 * N.z, 1.5, inside=True, body=body),
        "slope": HeightSurface(C, up, lambda x, _y: 0.3 * x - 0.1, body=body),
    }


KINDS = ["plane", "sphere", *by_night("pipe", "bowl", "slope")]
"""A surface from within is the pipe, one by its height is in ``test_ground_of_a_height_is_as_far_as_it_is``."""


@pytest.fixture(scope="module")
def pressed():
    """(rates, outputs) of a ball of body 1 against a surface of body 2, for each kind of surface and friction."""
    known = {}

    def of(kind: str, friction: str):
        if (kind, friction) not in known:
            model, N, (first, second) = touching.two_bodies()
            surface = surfaces(second, N)[kind]
            more = {"slip_speed": 1e-2} if friction == "regularized" else {"plane": N.z}
            at = first.masscenter.locatenew("knob", 0.1 * first.frame.x)
            at.v2pt_theory(first.masscenter, N, first.frame)
            model.add(
                Contact("c", first, surface, radius=0.3, stiffness=1e3, dissipation=0.1, at=at, kinetic=0.4, **more)
            )
            known[kind, friction] = rhs(model, method="recursive-composite")
        return known[kind, friction]

    return of


def states(f, seed: int):
    """Random states in which both touch."""
    random = np.random.default_rng(seed)
    found = []
    while len(found) < 3:
        x = random.uniform(-1, 1, 12)
        if -0.25 < f.outputs(0.0, x)[0] < -0.01:
            found.append(x)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_contact_keeps_momentum_and_angular_momentum(pressed, kind):
    for friction in ("regularized", "exact") if kind == "plane" else ("regularized",):
        f = pressed(kind, friction)
        for x in states(f, 1):
            force = MASSES * f(0.0, x)[6:]
            assert np.linalg.norm(force) > 1.0
            assert force[:3][:2] + force[3:5] == pytest.approx([0.0, 0.0], abs=1e-10)
            turning = [x[i] * force[i + 1] - x[i + 1] * force[i] + force[i + 2] for i in (0, 3)]
            assert sum(turning) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_the_gap_closes_as_fast_as_it_says(pressed, kind):
    f = pressed(kind, "regularized")
    for x in states(f, 2):
        step = 1e-6 * f(0.0, x)
        step[6:] = 0.0
        gaps = [f.outputs(0.0, x + side * step)[0] for side in (-1, 1)]
        assert (gaps[0] - gaps[1]) / 2e-6 == pytest.approx(f.outputs(0.0, x)[1], rel=1e-7, abs=1e-8)


@pytest.mark.parametrize("kind", ["plane", *by_night("sphere")])
def test_friction_takes_power_and_is_no_more_than_coulombs(pressed, kind):
    f = pressed(kind, "regularized")
    exact = pressed(kind, "exact")
    for x in states(f, 3):
        _, approach, force, friction, slip = f.outputs(0.0, x)
        power = float(x[6:] @ (MASSES * f(0.0, x)[6:]))
        assert power == pytest.approx(-force * approach - friction * slip, rel=1e-6)
        assert friction == pytest.approx(0.4 * force * slip / np.hypot(slip, 0.01), rel=1e-12)
        _, _, _, signed, sticking, along = exact.outputs(0.0, x)
        assert abs(along) == pytest.approx(slip, rel=1e-9)
        assert (signed, sticking) == (pytest.approx(-0.4 * force * np.sign(along), rel=1e-12), 0.0)


@pytest.mark.parametrize(
    ("radius", "off", "aside"), [(0.0, 1e-15, 1e-6), pytest.param(0.2, 5e-5, 0.02, marks=pytest.mark.repeats)]
)
def test_ground_of_a_height_is_as_far_as_it_is(radius, off, aside):
    """A bowl of radius 2 as a height, against the bowl itself: exact where a point touches, nearly so of a sphere."""
    model, N, (first, _) = touching.two_bodies()
    up = me.ReferenceFrame("up")
    up.orient_axis(N, N.x, -sm.pi / 2)
    height = HeightSurface(model.mechanics.origin, up, lambda x, y: -sm.sqrt(4 - x**2 - y**2))
    model.add(Contact("c", first, height, radius=radius, stiffness=1e3))
    f = rhs(model, method="recursive-composite")
    for angle in (0.0, 0.3, -0.6):
        out = np.array([np.sin(angle), -np.cos(angle)])
        x = np.zeros(12)
        x[:2] = (2.0 - radius) * out
        assert f.outputs(0.0, x)[0] == pytest.approx(0.0, abs=off)
        x[:2] *= 1 + 1e-4
        push = f(0.0, x)[6:8]
        assert push @ out < 0.0
        assert abs(push[0] * out[1] - push[1] * out[0]) <= aside * np.linalg.norm(push)


def test_energy_stays_where_nothing_takes_any():
    """A ball on Hertz's spring, in free fall: the potential energy of the contact is in the total energy."""
    model = touching.striking_ball(1.5, 0.0)
    model.output_total_energy("energy")
    f = rhs(model)
    for h, v in ((0.02, -0.5), (0.049, 0.9), (0.06, -1.0)):
        wanted = v**2 + 1e4 * max(0.0, 0.05 - h) ** 2.5 / 2.5
        assert f.outputs(0.0, np.array([h, v]))[-1] == pytest.approx(wanted, rel=1e-12)


def test_several_points_touch_for_themselves():
    model, N, (first, _) = touching.two_bodies()
    points = [first.masscenter.locatenew(name, side * first.frame.x) for name, side in (("toe", 1), ("heel", -1))]
    for point in points:
        point.v2pt_theory(first.masscenter, N, first.frame)
    model.add(Contact("foot", first, PlaneSurface(model.mechanics.origin, N.y), stiffness=1e3, exponent=1, at=points))
    f = rhs(model)
    x = np.zeros(12)
    x[1], x[2] = -0.1, 0.05
    deep = np.array([0.1 - np.sin(0.05), 0.1 + np.sin(0.05)])
    rates = f(0.0, x)
    assert rates[7] == pytest.approx(1e3 * deep.sum() / 2, rel=1e-12)
    assert rates[8] == pytest.approx(1e3 * (deep[0] - deep[1]) * np.cos(0.05) / 0.5, rel=1e-12)
    names = [output.name for output in check_model(model).outputs]
    assert names[:4] == ["foot.toe.gap", "foot.toe.approach", "foot.toe.force", "foot.heel.gap"]
    assert [p.name for p in check_model(model).parameters] == ["foot.stiffness"]


def test_everything_wrong_is_reported_at_once():
    model, N, (first, _) = touching.two_bodies()
    O, far = model.mechanics.origin, me.Point("far")
    plane = PlaneSurface(O, N.y)
    stranger = me.RigidBody("stranger")
    for wrong in (
        Contact("a", first, plane, stiffness=-1.0, dissipation=-2.0, radius=-0.1, exponent=0.5),
        Contact("b", stranger, plane, stiffness=1.0, kinetic=0.3),
        Contact("c", first, SphereSurface(O, -1.0), stiffness=1.0, slip_speed=1e-3),
        Contact("d", first, PlaneSurface(O, 0 * N.y), stiffness=1.0, kinetic=0.3, slip_speed=1e-3, plane=N.z),
        Contact("e", first, O, stiffness=1.0, kinetic=-0.3, slip_speed=0.0, static=0.2),
        Contact("f", first, plane, stiffness=1.0, at=far, kinetic=0.3, plane=N.z, static=0.1),
        Contact("g", first, HeightSurface(O, O, 0.3, body=stranger), stiffness=1.0, at=[]),
        Contact("h", first, plane, stiffness=1.0, at=[far, me.Point("far")], kinetic=0.0, plane=N.z),
        Contact("i", first, plane, stiffness=1.0, presliding=1e-3),
        Contact("j", first, plane, stiffness=1.0, kinetic=0.3, plane=N.z, presliding=-1e-3),
        Contact("k", first, SphereSurface(O, 1.0), stiffness=1.0, kinetic=0.3, slip_speed=1.0, presliding=1e-3),
        Contact("l", first, PlaneSurface(O, N.y + first.frame.x), stiffness=1.0, kinetic=0.3, slip_speed=1.0,
                presliding=1e-3),
    ):  # fmt: skip
        model.add(wrong)
    with pytest.raises(ModelError) as caught:
        check_model(model)
    message = str(caught.value)
    for part in (
        "Contact a: stiffness is -1", "Contact a: dissipation is -2", "Contact a: radius is -0.1",
        "Contact a: exponent is 0.5", "Contact b: what touches, stranger, is no body",
        "Contact b: it has friction and neither slip_speed nor plane", "Contact c: the radius of its sphere is -1",
        "Contact c: it has slip_speed, and no friction", "Contact d: the normal of its surface is 0",
        "Contact d: it has friction and both slip_speed and plane", "Contact e: its surface is O",
        "Contact e: kinetic is -0.3", "Contact e: slip_speed is 0",
        "Contact e: static needs friction with two coefficients",
        "Contact f: where far is against the surface is not known", "Contact f: static 0.1",
        "Contact g: the frame of its surface is O", "Contact g: the height of its surface is 0.3",
        "Contact g: what carries its surface, stranger,", "Contact g: it touches with []",
        "Contact h: two of its points are called far", "Contact h: kinetic is 0",
        "Contact i: it has presliding, and no friction", "Contact j: it has both plane and presliding",
        "Contact j: presliding is -0.001", "Contact k: its surface is curved",
        "Contact l: the normal of its plane is not three numbers in one frame",
    ):  # fmt: skip
        assert part in message, (part, message)


def bristle_force_and_rates(z, v, presliding, slip_speed):
    """Return p and z' of bristles in NumPy: friction is -μ F p."""
    p = z + 0.5 * (1.0 - z @ z) * v / np.sqrt(v @ v + slip_speed**2)
    excess = max(0.0, z @ z - 0.5) / 0.5
    return p, (v - max(0.0, z @ v) * excess**2 * z) / presliding


def sliding_block(slope: float, speeds: tuple[float, float] = (0.0, 0.0), presliding: float = 1e-3) -> Model:
    """A block of 2 kg in space upon a slope about N.x, pressed in as deep as its weight does."""
    x, y, z, u, v, w = me.dynamicsymbols("x y z u v w")
    N, A, O = me.ReferenceFrame("N"), me.ReferenceFrame("A"), me.Point("O")
    A.orient_axis(N, N.x, slope)
    O.set_vel(N, 0)
    P = O.locatenew("P", x * A.x + y * A.y + z * A.z)
    P.set_vel(N, u * A.x + v * A.y + w * A.z)
    block = me.Particle("block", P, 2.0)
    rates = [x.diff() - u, y.diff() - v, z.diff() - w]
    kane = me.KanesMethod(N, [x, y, z], [u, v, w], rates, bodies=[block], forcelist=[(P, -2.0 * 9.81 * N.z)])
    model = Model("Block", kane)
    for symbol, start in ((x, 0.0), (y, 0.0), (z, -2.0 * 9.81 * np.cos(slope) / 1e5)):
        model.coordinate(symbol, start, "m")
    for symbol, start in ((u, speeds[0]), (v, speeds[1]), (w, 0.0)):
        model.speed(symbol, start, "m/s")
    model.add(
        Contact("floor", block, PlaneSurface(O, A.z), stiffness=1e5, exponent=1, dissipation=1.0, kinetic=0.5,
                slip_speed=0.02, presliding=presliding)
    )  # fmt: skip
    return model


def solve_block(model: Model, stop: float):
    """Return states at the end: x, y, z, u, v, w, and the two deflections."""
    f = rhs(model)
    start = check_model(model)
    x0 = [float(q.start) for q in (*start.coordinates, *start.speeds)] + [0.0, 0.0]
    solution = solve_ivp(f.compile(), (0.0, stop), x0, method="LSODA", rtol=1e-9, atol=1e-11)
    assert solution.success
    return f, solution.y[:, -1]


def test_bristles_stick_on_a_slope_below_the_limit_and_slide_above():
    """Below atan μ the block gives way by little and stands; above it slides as by Coulomb's law."""
    for slope, most in ((0.4, 2e-3),):  # atan 0.5 is 0.4636
        f, x = solve_block(sliding_block(slope), 4.0)
        assert np.linalg.norm(x[3:6]) < 1e-8
        assert 0.0 < -x[1] <= most
        *_, force, friction, _ = f.outputs(4.0, x)
        assert friction == pytest.approx(2.0 * 9.81 * np.sin(slope), rel=1e-6)
        assert friction < 0.5 * force
    f, x = solve_block(sliding_block(0.6), 2.0)
    assert f(2.0, x)[4] == pytest.approx(-9.81 * (np.sin(0.6) - 0.5 * np.cos(0.6)), rel=1e-6)


def test_bristles_stop_a_block_where_coulombs_law_does():
    """Sent off obliquely on a level floor it stops after v²/(2 μ g), in the same direction, and stays there."""
    way = 1.25 / (2 * 0.5 * 9.81)
    for presliding in (1e-3, 1e-4):
        _, x = solve_block(sliding_block(0.0, (1.0, 0.5), presliding), 1.0)
        assert np.linalg.norm(x[3:6]) < 1e-8
        assert x[:2] == pytest.approx(way * np.array([1.0, 0.5]) / np.sqrt(1.25), abs=presliding)


@pytest.mark.repeats  # by day a robot's foot has the law of bristles in NumPy, in test_robot_link_contact
def test_bristles_of_two_bodies_keep_momentum_and_coulombs_limit():
    """Upon a plane that a turning body carries; the law is that in NumPy."""
    model, N, (first, second) = touching.two_bodies()
    surface = surfaces(second, N)["plane"]
    model.add(
        Contact("c", first, surface, radius=0.3, stiffness=1e3, dissipation=0.1, kinetic=0.4, slip_speed=0.05,
                presliding=0.01)
    )  # fmt: skip
    f = rhs(model, method="recursive-composite")
    random, pressed, opened = np.random.default_rng(5), 0, 0
    for _ in range(60):
        x = np.append(random.uniform(-1, 1, 12), random.uniform(-0.7, 0.7, 2))
        gap, approach, force, friction, slip = f.outputs(0.0, x)
        rates = f(0.0, x)
        z, z_rates = x[12:], rates[12:]
        if gap >= 0.0:
            assert z_rates == pytest.approx(-2 * 0.05 / 0.01 * z, rel=1e-12)
            assert friction == 0.0
            opened += 1
            continue
        pressed += force > 0
        push = MASSES * rates[6:12]
        assert push[:2] + push[3:5] == pytest.approx([0.0, 0.0], abs=1e-9)
        turning = [x[i] * push[i + 1] - x[i + 1] * push[i] + push[i + 2] for i in (0, 3)]
        assert sum(turning) == pytest.approx(0.0, abs=1e-8)
        # All moves in the plane of N.x and N.y: t₁ is N.z (the normal is mostly along y), and along it nothing slips.
        candidates = [bristle_force_and_rates(z, np.array([0.0, side * slip]), 0.01, 0.05) for side in (-1, 1)]
        fits = [np.allclose(z_rates, rate, rtol=1e-9) for _, rate in candidates]
        assert any(fits)
        p, _ = candidates[fits.index(True)]
        assert friction == pytest.approx(0.4 * force * np.linalg.norm(p), rel=1e-9, abs=1e-12)
        assert friction <= 0.4 * force * (1 + 1e-12)
        power = float(x[6:12] @ push)
        side = 1 if fits[1] else -1
        assert power == pytest.approx(-force * approach - 0.4 * force * side * slip * p[1], rel=1e-6, abs=1e-6)
    assert min(pressed, opened) > 5
