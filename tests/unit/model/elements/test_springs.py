"""Springs, drag and gravity gradient: accelerations as they are written by hand, and laws of mechanics."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from scipy.integrate import solve_ivp

from mb2fmu import Drag, GravityGradient, Model, Parts, SpringDamper, rhs
from mb2fmu.errors import ModelError
from mb2fmu.model import check_model
from mb2fmu.model.supported_functions import LookupTable

t = me.dynamicsymbols._t


def world() -> tuple[me.ReferenceFrame, me.Point]:
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    return N, O


def bar() -> tuple[Model, me.RigidBody, me.Point]:
    """Two masses of 1 kg half a metre out from their middle, in a plane."""
    N, O = world()
    x, y, a = me.dynamicsymbols("x y a")
    vx, vy, w = me.dynamicsymbols("vx vy w")
    B, C = me.ReferenceFrame("B"), me.Point("C")
    B.orient_axis(N, N.z, a)
    B.set_ang_vel(N, w * N.z)
    C.set_pos(O, x * N.x + y * N.y)
    C.set_vel(N, vx * N.x + vy * N.y)
    body = me.RigidBody("body", C, B, 2.0, (me.inertia(B, 0, 0.5, 0.5), C))
    kde = [x.diff(t) - vx, y.diff(t) - vy, a.diff(t) - w]
    parts = Parts(frame=N, origin=O, q=[x, y, a], u=[vx, vy, w], kinematic_equations=kde, bodies=[body])
    model = Model("Bar", parts)
    for symbol, start in ((x, 300.0), (y, 400.0), (a, 0.3), (vx, 0.0), (vy, 0.0), (w, 0.0)):
        (model.coordinate if symbol in (x, y, a) else model.speed)(symbol, start)
    return model, body, O


def slider() -> tuple[Model, me.Point, me.Point]:
    """A mass of 2 kg along N.x, one metre above the line."""
    N, O = world()
    x, v = me.dynamicsymbols("x v")
    P = O.locatenew("P", x * N.x + N.y)
    P.set_vel(N, v * N.x)
    bodies = [me.Particle("mass", P, 2)]
    parts = Parts(frame=N, origin=O, q=[x], u=[v], kinematic_equations=[x.diff(t) - v], bodies=bodies)
    model = Model("Slider", parts)
    model.coordinate(x, 0.75, "m")
    model.speed(v, 0.5, "m/s")
    return model, O, P


LAWS = {
    "linear": ({"stiffness": 40.0, "damping": 3.0, "rest": 1.1}, lambda e, r: 40 * e + 3 * r),
    "law": ({"law": lambda e: 40 * e + 9 * e**3, "rest": 1.1}, lambda e, _: 40 * e + 9 * e**3),
    "table": (
        {"law": LookupTable("knee", (-1.0, 0.0, 1.0), (-20.0, 0.0, 50.0), kind="linear"), "rest": 1.1},
        lambda e, _: 50 * e if e > 0 else 20 * e,
    ),
    "rope": ({"stiffness": 40.0, "rest": 1.1, "only": "pull"}, lambda e, _: max(0.0, 40 * e)),
    "stop": ({"stiffness": 40.0, "rest": 1.1, "only": "push"}, lambda e, _: min(0.0, 40 * e)),
}


@pytest.mark.parametrize("law", LAWS)
def test_a_spring_between_points_pulls_along_the_way_between_them(law: str) -> None:
    settings, pull = LAWS[law]
    model, O, P = slider()
    model.add(SpringDamper("spring", (O, P), **settings))
    f = rhs(model)
    for x, v in ((0.75, 0.5), (-0.2, 1.0), (0.3, -2.0)):
        length = np.hypot(x, 1.0)
        by_hand = pull(length - 1.1, x * v / length)
        assert f(0.0, np.array([x, v]))[1] == pytest.approx(-by_hand * x / length / 2, rel=1e-13, abs=1e-14)
        assert f.outputs(0.0, np.array([x, v])) == pytest.approx([by_hand, length - 1.1], rel=1e-12, abs=1e-13)


def test_a_torsion_spring_acts_on_a_joint() -> None:
    ground, arm = me.RigidBody("ground"), me.RigidBody("arm", mass=1)
    arm.central_inertia = me.inertia(arm.frame, 1, 1, 2)
    joint = me.PinJoint("pin", ground, arm, joint_axis=ground.z)
    system = me.System.from_newtonian(ground)
    system.add_joints(joint)
    model = Model("Arm", system)
    model.coordinate(joint.coordinates[0], 0.0, "rad")
    model.speed(joint.speeds[0], 0.0, "rad/s")
    model.add(SpringDamper("spring", joint, stiffness=6.0, damping=0.5, rest=0.2))
    assert rhs(model)(0.0, np.array([0.7, -2.0])) == pytest.approx([-2.0, -(6 * 0.5 - 1.0) / 2], rel=1e-14)
    units = {p.name: p.unit for p in check_model(model).parameters}
    assert units == {"spring.rest": "rad", "spring.stiffness": "N.m/rad", "spring.damping": "N.m.s/rad"}


def test_drag_ends_in_the_terminal_speed() -> None:
    """A fall through air: v = v_t tanh(g t / v_t); at rest the force and its slope are finite."""
    N, O = world()
    z, v = me.dynamicsymbols("z v")
    P = O.locatenew("P", -z * N.z)
    P.set_vel(N, -v * N.z)
    bodies = [me.Particle("ball", P, 0.5)]
    parts = Parts(frame=N, origin=O, q=[z], u=[v], kinematic_equations=[z.diff(t) - v], bodies=bodies,
                  loads=[(P, -0.5 * 9.81 * N.z)])  # fmt: skip
    model = Model("Fall", parts)
    model.coordinate(z, 0.0, "m")
    model.speed(v, 0.0, "m/s")
    model.add(Drag("air", P, area=0.05, coefficient=0.47))
    f = rhs(model)
    assert f(0.0, np.zeros(2)) == pytest.approx([0.0, 9.81], rel=1e-15)
    terminal = np.sqrt(2 * 0.5 * 9.81 / (1.225 * 0.47 * 0.05))
    run = solve_ivp(f, (0, 3), f.x0, rtol=1e-11, atol=1e-12)
    assert run.y[1, -1] == pytest.approx(terminal * np.tanh(9.81 * 3 / terminal), rel=1e-9)


def test_gravity_gradient_is_that_of_two_masses_on_a_bar() -> None:
    """Against Newton's attraction of two point masses at both ends, to the order (size / distance)²."""
    model, body, O = bar()
    model.add(GravityGradient("earth", body, O, mu=1e9))
    f = rhs(model)
    place, along = np.array([300.0, 400.0]), np.array([np.cos(0.3), np.sin(0.3)])
    ends = [place + side * along for side in (0.5, -0.5)]
    forces = [-1e9 * end / np.linalg.norm(end) ** 3 for end in ends]
    levers = zip((end - place for end in ends), forces, strict=True)
    torque = sum(arm[0] * force[1] - arm[1] * force[0] for arm, force in levers)
    rates = f(0.0, f.x0)
    assert rates[3:5] == pytest.approx(sum(forces) / 2.0, rel=1e-5)
    assert rates[5] == pytest.approx(torque / 0.5, rel=1e-5)
    assert f.outputs(0.0, f.x0) == pytest.approx([500.0], rel=1e-15)


def test_everything_wrong_is_reported_at_once() -> None:
    model, O, P = slider()
    far = me.Point("far")
    model.add(SpringDamper("a", (O, P)))
    model.add(SpringDamper("b", (P, P), stiffness=-1.0, only="both"))
    model.add(SpringDamper("c", (O, far), stiffness=1.0, law=lambda e: e))
    model.add(Drag("e", far, area=-1.0, coefficient=sm.nan, still=0.0))
    model.add(GravityGradient("f", me.RigidBody("moon"), O, mu="earth"))
    with pytest.raises(ModelError) as caught:
        check_model(model)
    message = str(caught.value)
    for part in (
        "a: it has neither stiffness, law nor damping", "b: both ends are P", "b: stiffness is -1", "b: only is 'both'",
        "c: the way is not known", "c: it has both stiffness and law",
        "e: area is -1", "e: coefficient is nan", "e: still is 0", "e: the velocity of far is not known",
        "f: moon is no body of the mechanics", "f: mu is the text 'earth'", "test_springs.py:",
    ):  # fmt: skip
        assert part in message, (part, message)
