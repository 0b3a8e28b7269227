"""Loads and elements that are added to mechanics: whatever was given, the equations are those written by hand."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from representatives import by_night

from mb2fmu import CoulombFriction, Model, Parts, load, rhs
from mb2fmu.errors import FormulationError, ModelError
from mb2fmu.model import check_model
from mb2fmu.model.sources import mechanics_source

KINDS = ("kane", "formed kane", "lagrange", "system", "parts")


def block(kind: str) -> tuple[Model, me.Point, me.ReferenceFrame, me.Point]:
    """A mass on a spring along N.x, handed over in one of five ways."""
    x, v = me.dynamicsymbols("x v")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    speed = x.diff() if kind == "lagrange" else v
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, speed * N.x)
    mass, spring = me.Particle("mass", P, 2), [(P, -3 * x * N.x)]
    match kind:
        case "kane" | "formed kane":
            mechanics = me.KanesMethod(N, [x], [v], [x.diff() - v], bodies=[mass], forcelist=spring)
            if kind == "formed kane":
                mechanics.kanes_equations()
        case "lagrange":
            energy = me.Lagrangian(N, mass)
            mechanics = me.LagrangesMethod(energy, [x], bodies=[mass], frame=N, forcelist=spring)
        case "system":
            mechanics = me.System(N, O)
            mechanics.add_coordinates(x)
            mechanics.add_speeds(v)
            mechanics.add_kdes(x.diff() - v)
            mechanics.add_bodies(mass)
            mechanics.add_loads(*spring)
        case _:
            mechanics = Parts(
                frame=N, origin=O, q=[x], u=[v], kinematic_equations=[x.diff() - v], bodies=[mass], loads=spring
            )
    model = Model("Block", mechanics)
    model.coordinate(x, 0.3, "m")
    model.speed(speed, 0.2, "m/s", name="v")
    return model, O, N, P


@pytest.mark.parametrize("kind", KINDS)
def test_friction_acts_on_whatever_was_handed_over(kind):
    model, O, N, P = block(kind)
    before = mechanics_source.loads(model.mechanics)
    model.add(CoulombFriction("belt", (O, P, N.x), kinetic=0.5, static=0.8, drive=0.1))
    f = rhs(model)
    for x, v in ((0.3, 0.2), (0.3, -0.2), (-0.1, 0.05)):
        assert f(0.0, np.array([x, v])) == pytest.approx([v, (-3 * x - 0.5 * np.sign(v - 0.1)) / 2], rel=1e-14)
    assert mechanics_source.loads(model.mechanics) == before
    assert [p.name for p in check_model(model).parameters] == ["belt.drive", "belt.static", "belt.kinetic"]


def test_loads_and_actuators_are_added_in_a_line():
    model, O, N, P = block("formed kane")
    model.add_loads((P, 4 * N.x), me.LinearSpring(5, me.LinearPathway(O, P)))
    assert rhs(model)(0.0, np.array([0.3, 0.2])) == pytest.approx([0.2, (4 - 8 * 0.3) / 2], rel=1e-14)


def test_friction_between_two_bodies_leaves_their_momentum():
    x, y, v, w = me.dynamicsymbols("x y v w")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P, Q = O.locatenew("P", x * N.x), O.locatenew("Q", y * N.x)
    P.set_vel(N, v * N.x)
    Q.set_vel(N, w * N.x)
    bodies = [me.Particle("A", P, 2), me.Particle("B", Q, 3)]
    model = Model("Two", me.KanesMethod(N, [x, y], [v, w], [x.diff() - v, y.diff() - w], bodies=bodies))
    for symbol in (x, y):
        model.coordinate(symbol, 0.0, "m")
    for symbol in (v, w):
        model.speed(symbol, 0.0, "m/s")
    model.add(CoulombFriction("pad", (P, Q, -2 * N.x), kinetic=0.4, normal=5.0))
    rates = rhs(model)(0.0, np.array([0, 0, 1.0, 0.5]))
    assert rates[2:] == pytest.approx([-1.0, 2 / 3])
    assert rhs(model)(0.0, np.array([0, 0, 1.0, 1.5]))[2:] == pytest.approx([1.0, -2 / 3])


def test_friction_acts_on_a_joint_and_on_frames():
    ground, arm = me.RigidBody("ground"), me.RigidBody("arm", mass=1)
    arm.central_inertia = me.inertia(arm.frame, 1, 1, 2)
    joint = me.PinJoint("pin", ground, arm, joint_axis=ground.z)
    system = me.System.from_newtonian(ground)
    system.add_joints(joint)
    for on in (joint, (ground.frame, arm.frame, ground.z), (None, arm.frame, ground.z)):
        model = Model("Arm", system)
        model.coordinate(joint.coordinates[0], 0.0, "rad")
        model.speed(joint.speeds[0], 0.0, "rad/s")
        model.add(CoulombFriction("bearing", on, curve=lambda v: 1 / (1 + 3 * v)))
        assert rhs(model)(0.0, np.array([0.0, -2.0])) == pytest.approx([-2.0, 1 / 14], rel=1e-14)


URDF = """<robot name="slider"><link name="base"/><link name="cart"><inertial><mass value="2"/>
<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
<joint name="rail" type="prismatic"><parent link="base"/><child link="cart"/><axis xyz="1 0 0"/>
<limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>"""


def test_friction_acts_on_a_joint_of_a_robot(tmp_path):
    (tmp_path / "slider.urdf").write_text(URDF)
    model = load(tmp_path / "slider.urdf")
    model.add(CoulombFriction("rail_friction", "rail", kinetic=0.5))
    x = np.array([0.0, -0.1])
    assert rhs(model)(0.0, x) == pytest.approx([-0.1, 0.25], rel=1e-14)
    outputs = {output.name: output.unit for output in check_model(model).outputs}
    assert outputs["rail_friction.force"] == "N"


def test_everything_wrong_with_elements_is_reported_at_once():
    model, O, N, P = block("kane")
    model.add(CoulombFriction("a", (O, P, N.x)))
    model.add(CoulombFriction("b", (O, N, N.x), kinetic=0.5, static=0.1))
    model.add(CoulombFriction("c d", (O, P, 0 * N.x), kinetic=-1, stribeck=0.1))
    model.add(CoulombFriction("e", (O, me.Point("far"), N.x), kinetic=1))
    model.add(CoulombFriction("f", (O, P, N.x), kinetic=sm.Symbol("mu_unknown")))
    model.add_loads((P, 3))
    with pytest.raises(ModelError) as caught:
        check_model(model)
    message = str(caught.value)
    for part in (
        "a: it has neither kinetic nor curve",
        "b: it acts between O and N, which are not two points or two frames",
        "b: static 0.1",
        "c d: the name cannot stand",
        "c d: its direction is zero",
        "c d: kinetic is -1",
        "c d: stribeck needs a static friction that falls to the kinetic one",
        "e: the speed is not known",
        "mu_unknown",
        "cannot be added as a load",
        "test_additions.py:",
    ):
        assert part in message, (part, message)


@pytest.mark.parametrize("kind", ["kane", "lagrange", *by_night("formed kane", "system", "parts")])
def test_a_load_without_a_known_potential_is_reported_with_its_element(kind):
    """The numbers of loads are ours; whoever added an element knows its name."""
    model, _, N, P = block(kind)
    x = model.declared[0].symbol

    class Odd:
        name = "odd"

        def add_to(self, model):
            model.add_loads((P, sm.asinh(x) * sm.exp(sm.sin(x) ** 2) * N.x))
            return ()

    model.add_loads((P, sm.acosh(2 + x**2) * sm.exp(sm.cos(x) ** 2) * N.x))
    model.add(Odd())
    model.output_potential_energy()
    with pytest.raises(FormulationError) as error:
        rhs(model)
    assert "load[3] at P of odd" in str(error.value)
    assert "load[2] at P," in str(error.value)
