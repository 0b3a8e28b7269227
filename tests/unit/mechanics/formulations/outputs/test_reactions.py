"""Reactions of joints and multipliers of constraints, against statics, closed forms and Kane's auxiliary speeds."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import sympy as sm
from mechanisms import Evaluated, mechanism_of, model_of, pendulum_with_reactions, random_states
from representatives import by_night
from sympy.physics import mechanics as me

from mb2fmu import Model, Parts
from mb2fmu.errors import FormulationError, MechanismError, ModelError
from mb2fmu.mechanics.equations.equations_of_motion import Method
from mb2fmu.mechanics.formulations import formulate
from mb2fmu.mechanics.mechanism import Mechanism, read_mechanism
from mb2fmu.model import OutputRequest, check_model, load
from mb2fmu.model.quantity_declarations import Output

MODELS = Path(__file__).parents[5] / "models"
m, l, g = sm.symbols("m l g")


def _spinning_arm() -> Model:
    """Three joints in space: a turning column, a sliding arm, a swinging bob; loads everywhere."""
    q = me.dynamicsymbols("q1:4")
    u = me.dynamicsymbols("u1:4")
    drive = me.dynamicsymbols("drive")
    wall = me.RigidBody("wall")
    system = me.System.from_newtonian(wall)
    N = system.frame
    bodies = []
    for i, name in enumerate("ABC"):
        frame, centre = me.ReferenceFrame(name), me.Point(f"centre{name}")
        inertia = me.inertia(frame, 0.2 + i, 0.3 + i, 0.25 + i, 0.02)
        bodies.append(me.RigidBody(name, centre, frame, (i + 1) * m, (inertia, centre)))
    A, B, C = bodies
    turn = me.PinJoint("turn", wall, A, q[0], u[0], child_point=-0.2 * A.x + 0.1 * A.z, joint_axis=N.z)
    slide = me.PrismaticJoint("slide", A, B, q[1], u[1], parent_point=l * A.x, joint_axis=A.x)
    swing = me.PinJoint("swing", B, C, q[2], u[2], parent_point=l * B.x, child_point=l * C.y, joint_axis=B.y)
    system.add_joints(turn, slide, swing)
    system.apply_uniform_gravity(-g * N.z)
    system.add_actuators(me.TorqueActuator.at_pin_joint(drive - 0.3 * u[2], swing))
    tip = C.masscenter.locatenew("tip", -0.3 * C.frame.y)
    system.add_loads(me.Force(tip, 1.5 * N.x - 0.7 * C.frame.z), me.Torque(B, 0.4 * A.y))
    rope = me.LinearPathway(wall.masscenter.locatenew("corner", 0.9 * N.x - 0.4 * N.y), tip)
    system.add_actuators(me.LinearSpring(20 * m, rope, l), me.LinearDamper(3 * m, rope))
    model = model_of("Arm", system, q, u, m=1.3, l=0.7, g=9.81)
    model.input(drive, 0.8, "N.m")
    for joint in (turn, slide, swing):
        model.output_reaction(joint.name, joint)
    model.output_reaction("along", slide, expressed_in=A.frame)
    model.output_reaction("all", [A, B, C], at=turn.child_point)
    model.output_reaction("axis", swing, expressed_in=C.frame)
    return model


@pytest.mark.parametrize("method", ["lagrange", *by_night("kane", "tmt")])
def test_a_pendulums_rod(method):
    """Closed form: along the rod m l u² + m g cos q, across it nothing for a point mass."""
    q, u = me.dynamicsymbols("q u")
    N, A, O = me.ReferenceFrame("N"), me.ReferenceFrame("A"), me.Point("O")
    A.orient_axis(N, N.z, q)
    bob = me.Particle("bob", O.locatenew("P", -l * A.y), m)
    parts = Parts(
        frame=N, origin=O, q=[q], u=[u], kinematic_equations=[q.diff() - u], bodies=[bob],
        loads=[(bob.masscenter, -m * g * N.y)],
    )  # fmt: skip
    model = model_of("Pendulum", parts, [q], [u], m=1.3, l=0.7, g=9.81)
    model.output_reaction("rod", bob, at=O, expressed_in=A)
    mechanism = mechanism_of(model)
    evaluated = Evaluated(mechanism, method)
    for state in random_states(mechanism, 4):
        mass, length, gravity = state.p
        tension = mass * length * state.x[1] ** 2 + mass * gravity * np.cos(state.x[0])
        assert evaluated("outputs", state) == pytest.approx([0, tension, 0, 0, 0, 0], abs=1e-12)


def test_kanes_auxiliary_speeds_give_the_same():
    model, (fx, fy) = pendulum_with_reactions()
    model.declared = [item for item in model.declared if not isinstance(item, Output | OutputRequest)]
    (rod,) = model.mechanics.bodies
    pin = next(point for point in rod.masscenter._pos_dict if point.name == "pin")
    model.output_reaction("pin", rod, at=pin)
    model.output("pin_x", fx, "N")
    model.output("pin_y", fy, "N")
    mechanism = mechanism_of(model)
    for method in ("kane", "tmt"):
        evaluated = Evaluated(mechanism, method)
        for state in random_states(mechanism, 3):
            for axis in "xy":
                # the load that holds the unknown force is a load, so the rest of the reaction is nothing
                assert evaluated.output(f"pin.force.{axis}", state) == pytest.approx(0, abs=1e-11)
            assert evaluated.output("pin.torque.z", state) == pytest.approx(0, abs=1e-11)


@cache
def arm() -> Mechanism:
    return mechanism_of(_spinning_arm())


@cache
def arm_by(method: Method) -> Evaluated:
    return Evaluated(arm(), method)


@pytest.mark.parametrize("method", [*by_night("kane", "lagrange", "recursive-articulated"), "recursive-composite"])
def test_methods_agree_and_free_directions_carry_nothing(method):
    for state in random_states(arm(), 3):
        tmt = arm_by("tmt")
        values = tmt("outputs", state)
        assert np.allclose(values, arm_by(method)("outputs", state), rtol=1e-10, atol=1e-10)
        assert tmt.output("turn.torque.z", state) == pytest.approx(0, abs=1e-10)
        assert tmt.output("along.force.x", state) == pytest.approx(0, abs=1e-10)
        assert tmt.output("axis.torque.y", state) == pytest.approx(0, abs=1e-10)
        assert np.max(np.abs(values)) > 1


def test_a_cut_and_the_sum_of_what_is_beyond_it_are_one():
    tmt = arm_by("tmt")
    for state in random_states(arm(), 2):
        for part in ("force", "torque"):
            for axis in "xyz":
                one = tmt.output(f"turn.{part}.{axis}", state)
                assert one == pytest.approx(tmt.output(f"all.{part}.{axis}", state), abs=1e-10)


def test_reactions_cost_a_constant_per_joint():
    """Chains of 5 and 7 links: the cost of all their reactions grows by their number, not by its square."""

    def late(n: int) -> int:
        q, u = me.dynamicsymbols(f"q1:{n + 1}"), me.dynamicsymbols(f"u1:{n + 1}")
        wall = me.RigidBody("wall")
        system = me.System.from_newtonian(wall)
        parent, joints = wall, []
        for i in range(n):
            frame, centre = me.ReferenceFrame(f"A{i}"), me.Point(f"G{i}")
            link = me.RigidBody(f"link{i}", centre, frame, m, (me.inertia(frame, 1, 1, 1), centre))
            axis = parent.frame.z if i % 2 else parent.frame.y
            joint = me.PinJoint(
                f"joint{i}", parent, link, q[i], u[i], joint_axis=axis, child_point=-l * frame.x,
                parent_point=None if parent is wall else l * parent.frame.x,
            )  # fmt: skip
            system.add_joints(joint)
            joints.append(joint)
            parent = link
        system.apply_uniform_gravity(-g * system.frame.y)
        model = model_of("Chain", system, q, u, m=1.0, l=0.4, g=9.81)
        for joint in joints:
            model.output_reaction(joint.name, joint)
        equations = formulate(mechanism_of(model), "tmt")
        return int(sum(sm.count_ops(item.expression) for item in equations.late_intermediates))

    assert late(7) < 1.6 * late(5)


def test_statics_of_a_beam_at_rest():
    """A horizontal beam held by a spring at its tip: at rest the pin carries half of its weight."""
    q, u = me.dynamicsymbols("q u")
    wall = me.RigidBody("wall")
    system = me.System.from_newtonian(wall)
    N, A, centre = system.frame, me.ReferenceFrame("A"), me.Point("G")
    beam = me.RigidBody("beam", centre, A, m, (me.inertia(A, 0, 1, 1), centre))
    pin = me.PinJoint("pin", wall, beam, q, u, child_point=-l * A.x, joint_axis=N.z)
    system.add_joints(pin)
    system.apply_uniform_gravity(-g * N.y)
    tip = centre.locatenew("tip", l * A.x)
    system.add_loads(me.Force(tip, m * g / 2 * N.y))
    model = model_of("Beam", system, [q], [u], m=2.0, l=0.5, g=10.0)
    model.output_reaction("pin", pin)
    mechanism = mechanism_of(model)
    state = replace(random_states(mechanism, 1)[0], x=np.zeros(2), p=np.array([2.0, 0.5, 10.0]))
    assert Evaluated(mechanism, "tmt")("outputs", state) == pytest.approx([0, 10, 0, 0, 0, 0], abs=1e-13)


def _sled(**more: object) -> tuple[Model, sm.Expr]:
    """Chaplygin's sleigh with the coordinates' rates as speeds."""
    x, y, a = me.dynamicsymbols("x y a")
    vx, vy, w = me.dynamicsymbols("vx vy w")
    N, B, O = me.ReferenceFrame("N"), me.ReferenceFrame("B"), me.Point("O")
    B.orient_axis(N, N.z, a)
    P = O.locatenew("P", x * N.x + y * N.y)
    G = P.locatenew("G", l * B.x)
    body = me.RigidBody("sleigh", G, B, m, (me.inertia(B, 0, 0, m * l**2), G))
    row = -sm.sin(a) * vx + sm.cos(a) * vy
    parts = Parts(
        frame=N, origin=O, q=[x, y, a], u=[vx, vy, w], bodies=[body], velocity_constraints=[row], u_dependent=[vy],
        kinematic_equations=[x.diff() - vx, y.diff() - vy, a.diff() - w], loads=[(G, 0.3 * N.x)],
    )  # fmt: skip
    model = model_of("Sleigh", parts, [x, y, a], [vx, vy, w], m=1.3, l=0.4)
    model.constraint(row, "blade", acts=[(P, B.y)], **more)
    model.output_multiplier("blade", row)
    model.output_reaction("ice", body, at=P, expressed_in=B)
    return model, row


@pytest.mark.parametrize("method", ["kane", *by_night("tmt", "lagrange")])
def test_the_force_on_a_blade(method):
    """Without acts the reaction is the force of the blade, minus the multiplier."""
    model, _ = _sled()
    model.declared = [item for item in model.declared if item.name != "blade" or not hasattr(item, "acts")]
    mechanism = mechanism_of(model)
    evaluated = Evaluated(mechanism, method)
    for state in random_states(mechanism, 3):
        force = -evaluated.output("blade", state)
        expected = [0, force, 0, 0, 0, 0]
        assert evaluated("outputs", state)[1:] == pytest.approx(expected, abs=1e-11)
        assert abs(force) > 1e-3


def test_acts_take_the_force_out_of_the_reaction():
    model, _ = _sled()
    mechanism = mechanism_of(model)
    evaluated = Evaluated(mechanism, "tmt")
    for state in random_states(mechanism, 2):
        assert evaluated("outputs", state)[1:] == pytest.approx(np.zeros(6), abs=1e-11)


def test_multipliers_stand_in_outputs():
    multiplier = me.dynamicsymbols("blade_lambda")
    model, _ = _sled(multiplier=multiplier)
    model.output("twice", -2 * multiplier, "N")
    mechanism = mechanism_of(model)
    evaluated = Evaluated(mechanism, "kane")
    state = random_states(mechanism, 1)[0]
    assert evaluated.output("twice", state) == pytest.approx(-2 * evaluated.output("blade", state))


@pytest.mark.parametrize("bodies", [True, False])
def test_a_lagrangian_with_a_constraint(bodies):
    """A LagrangesMethod names no dependent speeds: the best determined is taken; λ has our sign, not SymPy's."""
    model, row = _sled()
    parts = model.mechanics
    x, y, a = parts.q
    rates = {u: q.diff() for u, q in zip(parts.u, parts.q, strict=True)}
    O, N = parts.origin, parts.frame
    O.set_vel(N, 0)
    (body,) = parts.bodies
    B = body.frame
    B.set_ang_vel(N, a.diff() * N.z)
    energy = m * (x.diff() ** 2 + y.diff() ** 2 + l**2 * a.diff() ** 2) / 2
    energy += m * l * a.diff() * (-sm.sin(a) * x.diff() + sm.cos(a) * y.diff()) + m * l**2 * a.diff() ** 2 / 2
    given = row.xreplace(rates)
    G = body.masscenter
    method = me.LagrangesMethod(
        energy, parts.q, nonhol_coneqs=[given], forcelist=[(G, 0.3 * N.x)], frame=N, bodies=[body] if bodies else None
    )
    lagrange = model_of("Sleigh", method, parts.q, list(rates.values()), m=1.3, l=0.4)
    lagrange.output_multiplier("blade", given)
    mechanism, other = mechanism_of(lagrange), mechanism_of(model)
    assert len(mechanism.u_independent) == 2
    ours, theirs = Evaluated(mechanism, "lagrange"), Evaluated(other, "tmt")
    for state in random_states(other, 3):
        q, u = state.x[:3], theirs("dependent_speeds", state)
        speeds = np.array([state.x[3], u[0], state.x[4]])
        same = replace(state, x=np.concatenate([q, speeds[list(mechanism.u_independent)]]))
        expected = theirs("accelerations", state)[[0, 2, 1]]  # theirs: independent speeds first
        assert ours("accelerations", same) == pytest.approx(expected, rel=1e-10, abs=1e-12)
        assert ours.output("blade", same) == pytest.approx(theirs.output("blade", state), rel=1e-10)


@pytest.mark.parametrize("method", ["recursive-composite", *by_night("kane", "recursive-articulated")])
def test_momenta(method):
    """The moment of momentum about the pin, m l² u, and the sum over a chain, by differences of T."""
    model = _spinning_arm()
    speeds = model.mechanics.u
    for i, u in enumerate(speeds):
        model.output_momentum(f"p{i}", u, unit="kg.m2/s")
    model.output_kinetic_energy()
    mechanism = mechanism_of(model)
    evaluated = Evaluated(mechanism, method)
    state = random_states(mechanism, 1)[0]
    n = len(mechanism.q)
    for i in range(len(mechanism.u)):
        sides = []
        for sign in (1, -1):
            x = state.x.copy()
            x[n + i] += sign * 0.5  # T is quadratic: the difference is exact
            sides.append(evaluated.output("kinetic_energy", replace(state, x=x)))
        assert evaluated.output(f"p{i}", state) == pytest.approx(sides[0] - sides[1], rel=1e-11)


def test_what_cannot_be_reported():
    model, row = _sled()
    model.output_multiplier("other", row + 1)
    with pytest.raises(FormulationError, match="not among the mechanics' constraints"):
        formulate(mechanism_of(model))
    model, row = _sled()
    model.constraint(row + 1, "wrong")
    with pytest.raises(MechanismError, match="not among the mechanics' constraints"):
        mechanism_of(model)
    model, row = _sled()
    body = model.mechanics.bodies[0]
    model.output_reaction("nowhere", body)
    with pytest.raises(FormulationError, match="needs its point"):
        formulate(mechanism_of(model))
    model, row = _sled()
    model.output_reaction("nothing", row)
    with pytest.raises(ModelError, match="a joint, or bodies"):
        check_model(model)
    model, row = _sled()
    model.declared = [item for item in model.declared if not hasattr(item, "acts")]
    body = model.mechanics.bodies[0]
    model.constraint(row, "blade", acts=[(body.masscenter, body.frame.y)])
    with pytest.raises(MechanismError, match="blade"):
        mechanism_of(model)


def test_a_homogeneous_ball_on_a_slope():
    """Textbook: the centre falls with 5/7 g sin(slope), friction 2/7 m g sin(slope), normal force m g cos(slope)."""
    definition = check_model(load(MODELS / "rolling_sphere.py"))
    mechanism = read_mechanism(definition)
    evaluated = Evaluated(mechanism, "tmt")
    x = np.concatenate([[0.1, 0.2, 0.06, 0.8, 0.6, 0.0, 0.0], [1.0, 2.0, 3.0]])
    slope = 0.3
    values = {"m": 0.5, "r": 0.06, "a": 0.0, "slope": slope, "g": 9.81}
    p = np.array([values[str(symbol)] for symbol in mechanism.p])
    state = replace(random_states(mechanism, 1)[0], x=x, p=p)
    down, up = 9.81 * np.sin(slope), 9.81 * np.cos(slope)
    assert evaluated("accelerations", state)[3:] == pytest.approx([5 / 7 * down, 0, 0], abs=1e-13)
    forces = [evaluated.output(f"contact.force.{axis}", state) for axis in "xyz"]
    assert forces == pytest.approx([-2 / 7 * 0.5 * down, 0, 0.5 * up], abs=1e-13)
    assert [-evaluated.output(f"multiplier.{axis}", state) for axis in "xyz"] == pytest.approx(forces, abs=1e-13)


def _flail(*, sliding: bool = False) -> Model:
    """An arm on a pin in space, a rod on its end, and weights fixed to both by points only: no joint names them."""
    q, u = me.dynamicsymbols("q1:4" if sliding else "q1:3"), me.dynamicsymbols("u1:4" if sliding else "u1:3")
    wall = me.RigidBody("wall")
    system = me.System.from_newtonian(wall)
    N = system.frame
    arm, rod = (me.RigidBody(name, frame=me.ReferenceFrame(name), mass=m) for name in ("arm", "rod"))
    for body in (arm, rod):
        body.central_inertia = me.inertia(body.frame, 0.2, 0.3, 0.4)
    A, B = arm.frame, rod.frame
    turn = me.PinJoint("turn", wall, arm, q[0], u[0], child_point=-l * A.x, joint_axis=N.z)
    swing = me.PinJoint("swing", arm, rod, q[1], u[1], parent_point=l * A.x, child_point=l * B.y, joint_axis=A.x)
    system.add_joints(turn, swing)
    place = -0.4 * B.y + 0.1 * B.z + (q[2] * B.x if sliding else 0)
    knob = rod.masscenter.locatenew("knob", place)
    plate = me.RigidBody("plate", arm.masscenter.locatenew("plate", 0.3 * A.z), A, 2 * m)
    plate.central_inertia = me.inertia(A, 0.1, 0.1, 0.2)
    weight = me.Particle("knob", knob, 3 * m)
    system.add_bodies(weight, plate)
    if sliding:
        system.add_coordinates(q[2])
        system.add_speeds(u[2])
        system.add_kdes(q[2].diff() - u[2])
    system.apply_uniform_gravity(-g * N.z)
    system.add_loads(me.Force(knob, 1.5 * N.x))
    model = model_of("Flail", system, q, u, m=1.3, l=0.7, g=9.81)
    model.output_reaction("turn", turn)
    model.output_reaction("swing", swing, expressed_in=A)
    if not sliding:
        model.output_reaction("all", [arm, rod, weight, plate], at=turn.child_point)
        model.output_reaction("beyond", [rod, weight], at=swing.child_point, expressed_in=A)
    return model


@pytest.mark.parametrize("method", ["tmt", "recursive-composite"])
def test_bodies_that_are_fixed_to_others_are_carried_by_their_joints(method):
    mechanism = mechanism_of(_flail())
    evaluated = Evaluated(mechanism, method)
    for state in random_states(mechanism, 2):
        for joint, bodies, free in (("turn", "all", "torque.z"), ("swing", "beyond", "torque.x")):
            assert evaluated.output(f"{joint}.{free}", state) == pytest.approx(0.0, abs=1e-9)
            for part in ("force.x", "force.y", "force.z", "torque.x", "torque.y", "torque.z"):
                found = evaluated.output(f"{joint}.{part}", state)
                assert found == pytest.approx(evaluated.output(f"{bodies}.{part}", state), rel=1e-9, abs=1e-9)


def test_a_body_that_nothing_holds_is_reported():
    with pytest.raises(FormulationError, match="knob moves against rod, and no joint says what holds it"):
        formulate(mechanism_of(_flail(sliding=True)))
