"""Reactions of joints in a closed loop: the force of the cut joint acts where the model says."""

from __future__ import annotations

import pytest
import sympy as sm
from representatives import by_night
from sympy.physics import mechanics as me

import mb2fmu
from mb2fmu import Model, pipeline
from mb2fmu.errors import FormulationError
from mb2fmu.mechanics.mechanism import read_mechanism
from mb2fmu.model import check_model

LENGTHS = (1, 2, sm.Rational(5, 2))


def four_bar(*, acts: bool) -> Model:
    """Three hinged rods; the last one's end is held two metres from the first hinge."""
    q, u = me.dynamicsymbols("q1:4"), me.dynamicsymbols("u1:4")
    m, g = sm.symbols("m g")
    ground = me.RigidBody("ground")
    system = me.System.from_newtonian(ground)
    N, parent, joints = system.frame, ground, []
    for i, length in enumerate(LENGTHS):
        frame, centre = me.ReferenceFrame(f"F{i}"), me.Point(f"G{i}")
        inertia = me.inertia(frame, 0.01, m * length**3 / 12, m * length**3 / 12)
        rod = me.RigidBody(f"rod{i}", centre, frame, m * length, (inertia, centre))
        start = LENGTHS[i - 1] / sm.S(2) * parent.frame.x if i else None
        joint = me.PinJoint(
            f"hinge{i}", parent, rod, q[i], u[i], joint_axis=parent.frame.z, parent_point=start,
            child_point=-length / sm.S(2) * frame.x,
        )  # fmt: skip
        system.add_joints(joint)
        joints.append(joint)
        parent = rod
    system.apply_uniform_gravity(-g * N.y)
    end = parent.masscenter.locatenew("end", LENGTHS[2] / 2 * parent.frame.x)
    gap = end.pos_from(system.fixed_point.locatenew("hold", 2 * N.x))
    rows = [gap.dot(N.x), gap.dot(N.y)]
    system.add_holonomic_constraints(*rows)
    model = Model("FourBar", system)
    model.parameter(m, 1.0, "kg")
    model.parameter(g, 9.81, "m/s2")
    for symbol, value in zip(q, (1.2, -0.8, -1.5), strict=True):
        model.coordinate(symbol, value, "rad", kind="fixed" if symbol is q[0] else "guess")
    for symbol in u:
        model.speed(symbol, 1.0, "rad/s", kind="fixed" if symbol is u[0] else "guess")
    for row, axis, name in zip(rows, (N.x, N.y), "xy", strict=True):
        model.constraint(row, f"loop.{name}", acts=[(end, axis)] if acts else ())
    for joint in joints:
        model.output_reaction(joint.name, joint)
    model.output_reaction("last", parent, at=end)
    return model


@pytest.mark.parametrize("method", ["tmt", *by_night("kane", "lagrange")])
def test_hinges_carry_no_torque_about_themselves(method):
    f = pipeline.right_hand_side(mb2fmu.derive(four_bar(acts=True), method=method))
    found = dict(zip(f.output_names, f.outputs(0.0, f.x0), strict=True))
    for i in range(3):
        assert found[f"hinge{i}.torque.z"] == pytest.approx(0.0, abs=1e-9)
    # What the last rod needs beyond its loads and the held end's force comes through its hinge.
    for axis in "xy":
        assert found[f"hinge2.force.{axis}"] == pytest.approx(found[f"last.force.{axis}"], rel=1e-9)
    assert abs(found["hinge0.force.y"]) > 10


def test_a_sum_of_reactions_is_reported():
    """With ``acts`` the loop's force is a load, and only one hinge holds the last rod; the middle one has two."""
    model = four_bar(acts=True)
    middle = next(body for body in model.mechanics.bodies if body.name == "rod1")
    model.output_reaction("middle", middle, at=middle.masscenter)
    (note,) = pipeline.derive(model).mechanism.import_notes
    assert note.startswith("middle: joint hinge1, joint hinge2 can act on rod1;")
    model = four_bar(acts=False)
    model.declared = [each for each in model.declared if not getattr(each, "name", "").startswith("hinge")]
    mechanism = read_mechanism(check_model(model))
    (note,) = mechanism.import_notes
    assert note.startswith("last: joint hinge2, constraint loop.x, constraint loop.y can act on rod2;")


def test_it_must_be_said_where_the_loop_pulls():
    with pytest.raises(FormulationError, match=r"depends on where the force of loop\.x, loop\.y acts") as refused:
        mb2fmu.derive(four_bar(acts=False), method="tmt")
    assert "model.constraint(row, 'loop.x', acts=[(P, " in str(refused.value)
    assert len(refused.value.faults) == len(LENGTHS)  # each joint once, not its force and its torque
