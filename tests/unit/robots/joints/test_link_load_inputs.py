"""Forces and torques on links: Pinocchio's external forces, the independent import, inverse dynamics, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pinocchio as pin
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from representatives import by_night
from unit.robots.robot_texts import ARM, link
from unit.robots.test_robot_equations import worst_of
from unit.robots.test_robot_loops import FOUR_BAR, SIDE_FILE

from mb2fmu import pipeline
from mb2fmu.errors import ModelError
from mb2fmu.robots.tree import mechanism_from_robot

Array = npt.NDArray[np.float64]
LOADS = """
[[loads]]
frame = "tool"
of = ["force", "torque"]
offset = [0.1, -0.05, 0.2]
[[loads]]
frame = "l2"
offset = [0, 0.3, 0.1]
axes = "l4"
name = "push"
"""
INPUTS = [f"{load}.{axis}" for load in ("tool.force", "tool.torque", "push.force") for axis in "xyz"]
MJCF = """<mujoco model="m"><compiler angle="radian"/><worldbody>
  <body name="trunk" pos="0 0 1"><freejoint name="free"/><geom type="box" size="0.2 0.1 0.05"/>
    <body name="leg" pos="0.1 0 0"><joint name="hip" axis="0 1 0.2" damping="0.1"/>
      <geom type="capsule" size="0.03" fromto="0 0 0 0.05 0 -0.4"/>
      <site name="foot" pos="0.05 0 -0.4" euler="0.3 0 0.5"/>
    </body></body></worldbody></mujoco>"""
SDF = """<sdf version="1.7"><model name="m"><pose>0.1 0.2 0.3 0.4 0.5 0.6</pose>
  <link name="a"><pose>0 0 0.1 0.2 0 0</pose><inertial><mass>2</mass></inertial></link>
  <link name="b"><pose>0.3 0 0.1 0 0.4 0.1</pose><inertial><mass>1</mass></inertial></link>
  <joint name="h" type="revolute"><pose>0 0 -0.1 0 0 0.3</pose><parent>a</parent><child>b</child>
    <axis><xyz>0 0.6 0.8</xyz></axis></joint></model></sdf>"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "arm.urdf"
    ranged = '<limit lower="-9" upper="9" effort="20" velocity="9"/><dynamics damping="0.1"/>'  # else cosine and sine
    text = (
        ARM.replace('<link name="base"/>', link("base", 3.0))
        .replace('type="continuous"', 'type="revolute"')
        .replace('<dynamics damping="0.1"/>', ranged)
    )
    path.write_text(text)
    path.with_suffix(".toml").write_text(LOADS)
    return path


def external(model: pin.Model, data: pin.Data, values: Array) -> pin.StdVec_Force:
    """The loads of the side file as Pinocchio has them: on joints, in the joints' axes, after forward kinematics."""
    pin.updateFramePlacements(model, data)
    forces = [pin.Force.Zero() for _ in range(model.njoints)]
    where = {name: data.oMf[model.getFrameId(name)] for name in ("tool", "l2", "l4")}
    loads = (
        ("tool", np.array([0.1, -0.05, 0.2]), values[:3], values[3:6]),
        ("l2", np.array([0, 0.3, 0.1]), where["l4"].rotation @ values[6:], np.zeros(3)),
    )
    for name, offset, force, torque in loads:
        joint = model.frames[model.getFrameId(name)].parentJoint
        place = data.oMi[joint]
        arm = where[name].translation + where[name].rotation @ offset - place.translation
        R = place.rotation.T
        forces[joint] += pin.Force(R @ force, R @ (np.cross(arm, force) + torque))
    return pin.StdVec_Force(forces)


def state(random: np.random.Generator, model: pin.Model, floating: bool) -> tuple[Array, Array, Array]:
    """Pinocchio's q and v, and ours; quaternions begin with their real part here."""
    q, v = random.uniform(-1, 1, model.nq), random.uniform(-2, 2, model.nv)
    if not floating:
        return q, v, np.concatenate([q, v])
    q[3:7] /= np.linalg.norm(q[3:7])
    return q, v, np.concatenate([q[:3], q[6:7], q[3:6], q[7:], v])


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_accelerations_are_those_of_pinocchio(file: Path, base: str) -> None:
    """At 200 states, within 1e-10 of the largest; mimics are free, which its articulated bodies leave out."""
    derivation = pipeline.derive(file, arguments={"base": base, "mimic": "free"}, method="recursive-composite")
    f = pipeline.right_hand_side(derivation)
    assert [item.name for item in derivation.definition.inputs][-9:] == INPUTS
    floating = base == "floating"
    model = pin.buildModelFromUrdf(str(file), *([pin.JointModelFreeFlyer()] if floating else []))
    data, random = model.createData(), np.random.default_rng(5)
    damping = np.array([*[0.0] * (6 * floating), 0.3, 0.1, 0.0, 0.0])
    for _ in range(200):
        q, v, own = state(random, model, floating)
        tau, values = random.uniform(-5, 5, 4), random.uniform(-20, 20, 9)
        pin.forwardKinematics(model, data, q)
        full = np.concatenate([np.zeros(6 * floating), tau]) - damping * v
        wanted = pin.aba(model, data, q, v, full, external(model, data, values))
        found = f(0.0, own, [*tau, *values])[model.nq :]
        assert np.max(np.abs(found - wanted)) < 1e-10 * np.max(np.abs(wanted))


@pytest.mark.parametrize("way", ["plant", "inverse-dynamics"])
def test_efforts_of_a_motion_overcome_the_loads(file: Path, way: str) -> None:
    """``--with`` and ``--as inverse-dynamics`` against ``rnea`` with external forces."""
    asked: dict[str, Any] = {"quantities": "inverse-dynamics"} if way == "plant" else {"role": way}
    derivation = pipeline.derive(file, arguments={"mimic": "free", **asked}, method="recursive-composite")
    f, inputs = pipeline.right_hand_side(derivation), [item.name for item in derivation.definition.inputs]
    model = pin.buildModelFromUrdf(str(file))
    data, random = model.createData(), np.random.default_rng(6)
    damping = np.array([0.3, 0.1, 0.0, 0.0])
    joints = ["j1", "j2", "j3", "jm"]
    for _ in range(20):
        q, v, a, values = (random.uniform(-1, 1, n) for n in (4, 4, 4, 9))
        pin.forwardKinematics(model, data, q)
        wanted = pin.rnea(model, data, q, v, a, external(model, data, values)) + damping * v
        known = dict(zip(INPUTS, values, strict=True))
        words = ("angle", "position", "speed", "acceleration", "desired_acceleration")
        known |= {
            f"{joint}.{word}": float(part[k])
            for k, joint in enumerate(joints)
            for word, part in zip(words, (q, q, v, a, a), strict=True)
        }
        x = np.concatenate([q, v]) if way == "plant" else []
        y = f.outputs(0.0, x, [known.get(name, 0.0) for name in inputs])
        last = "required_effort" if way == "plant" else "effort"
        found = [y[list(f.output_names).index(f"{joint}.{last}")] for joint in joints]
        assert np.max(np.abs(found - wanted)) < 1e-12 * np.max(np.abs(wanted))


@pytest.mark.parametrize("loaded", [*by_night("l1"), "l2"])
def test_a_force_where_two_links_meet_acts_on_the_one_that_is_named(file: Path, loaded: str) -> None:
    """The origin of l2 is a point of l1, too: joint j2 carries the force on l2 and none on l1."""
    offset = [0.1, 0.0, 0.3] if loaded == "l1" else [0.0, 0.0, 0.0]
    asked = {"mimic": "free", "reactions": "j2", "inputs": "none", "loads": [{"frame": loaded, "offset": offset}]}
    derivation = pipeline.derive(file, arguments=asked, method="recursive-composite")
    f = pipeline.right_hand_side(derivation)
    model = pin.buildModelFromUrdf(str(file))
    data, random = model.createData(), np.random.default_rng(7)
    damping, names = np.array([0.3, 0.1, 0.0, 0.0]), list(f.output_names)
    at = [names.index(f"j2.reaction.force.{axis}") for axis in "xyz"]
    for _ in range(5):
        q, v, force = random.uniform(-1, 1, 4), random.uniform(-1, 1, 4), random.uniform(-9, 9, 3)
        pin.forwardKinematics(model, data, q)
        pin.updateFramePlacements(model, data)
        forces = [pin.Force.Zero() for _ in range(model.njoints)]
        frame = model.frames[model.getFrameId(loaded)]
        R = data.oMi[frame.parentJoint].rotation.T @ force
        forces[frame.parentJoint] = pin.Force(R, np.cross(offset, R))
        on = pin.StdVec_Force(forces)
        a = pin.aba(model, data, q, v, -damping * v, on)
        pin.rnea(model, data, q, v, a, on)
        j2 = model.getJointId("j2")
        wanted = data.oMi[j2].rotation @ data.f[j2].linear
        assert f.outputs(0.0, [*q, *v], force)[at] == pytest.approx(wanted, rel=1e-10)


@pytest.mark.parametrize("kind", ["urdf", *by_night("floating"), "loops", "mjcf", "sdf", "python"])
def test_the_second_reading_knows_the_loads(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "robot.urdf"
    settings: dict[str, Any] = {"base": "floating"} if kind == "floating" else {}
    text, side = ARM, LOADS
    if kind == "loops":
        text, side = FOUR_BAR, SIDE_FILE + '[[loads]]\nframe = "b"\nof = ["force", "torque"]\noffset = [0.1, 0, 0.2]\n'
    elif kind == "mjcf":
        path, text = path.with_suffix(".xml"), MJCF
        side = '[[loads]]\nframe = "foot"\nof = ["force", "torque"]\noffset = [0, 0, 0.1]\naxes = "leg"\n'
        side += '[[loads]]\nframe = "leg"\naxes = "foot"\n'
    elif kind == "sdf":
        path, text = path.with_suffix(".sdf"), SDF
        side = '[[loads]]\nframe = "b"\nof = ["force", "torque"]\noffset = [0.2, 0, 0.1]\n'
    path.write_text(text)
    if kind != "python":
        path.with_suffix(".toml").write_text(side)
        assert worst_of(pipeline.derive(path, arguments=settings, method="recursive-composite")) < 1
        return
    assert worst_of(pipeline.derive(added(path), method="recursive-composite")) < 1


def added(path: Path) -> pipeline.Model:
    """The arm with a force and a torque of inputs, parameters, states, and time; with an effort."""
    model = pipeline.Model.from_urdf(path, friction="ignore")
    arm, push, k, half = model.mechanics, me.dynamicsymbols("push"), *sm.symbols("k half")
    t = me.dynamicsymbols._t
    model.input(push, 0.0, "N", name="push")
    model.parameter(k, 3.0, "N.m")
    model.parameter(half, k / 2, "N.m")
    arm.add_force("tool", (push, -2 * push + sm.cos(t), 5), offset=(0, 0.1, 0.1), axes="l1")
    arm.add_torque("l1", (0, half * arm.position["j2"], -k * arm.speed["j1"]), axes="world")
    arm.add_effort("j2", -k * arm.position["j2"].diff(t))
    return model


def test_a_load_that_is_read_wrongly_is_seen(file: Path) -> None:
    """The side file is read again: a wrong point, frame or axes in the unit is another load there."""
    derivation = pipeline.derive(file, method="recursive-composite")
    side = file.with_suffix(".toml")
    right = side.read_text()
    for old, new in (
        ("offset = [0.1, -0.05, 0.2]", "offset = [0.1, 0.05, 0.2]"),
        ('axes = "l4"', 'axes = "l3"'),
        ('axes = "l4"', ""),
        ('frame = "l2"', 'frame = "l3"'),
        ("offset = [0, 0.3, 0.1]", ""),
    ):
        side.write_text(right.replace(old, new, 1))
        assert worst_of(derivation) > 1e6, new


def test_a_force_of_wrong_sign_is_seen(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = mechanism_from_robot.read_link_loads

    def turned(*given: Any) -> Any:
        first, *rest = whole(*given)
        ((frame, (x, y, z)),) = first.force
        return [type(first)(first.name, first.point, ((frame, (-x, y, z)),), first.body), *rest]

    monkeypatch.setattr(mechanism_from_robot, "read_link_loads", turned)
    assert worst_of(pipeline.derive(file, method="recursive-composite")) > 1e6


def test_all_faults_are_reported_at_once(file: Path) -> None:
    model = pipeline.Model.from_urdf(file, loads=[])
    arm, push, other = model.mechanics, me.dynamicsymbols("push"), sm.Symbol("other")
    model.input(push, 0.0, "N.m")
    arm.add_force("tol", (0, 0, 1))
    arm.add_force("tool", (0, 0, other), axes="no")
    arm.add_force("tool", (push, 0, 1), offset=(0, 1))
    arm.add_torque("tool", (0, 1))
    arm.add_torque("base", (0, 1, 0))
    with pytest.raises(ModelError) as caught:
        pipeline.derive(model)
    text = str(caught.value)
    for part in (
        "a force acts on 'tol', which is no link",
        "along the axes of 'no', which is no link",
        "the offset of the force on tool is (0, 1)",
        "push, which is in N.m, not in N",
        "the torque on tool is (0, 1)",
        "a torque acts on base, which stands still",
        "other is not declared",
        "test_link_load_inputs.py:",
    ):
        assert part in text


def test_a_side_file_with_faults_tells_them_at_once(file: Path) -> None:
    side = file.with_suffix(".toml")
    side.write_text('[[loads]]\nframe = "tol"\naxes = "no"\n[[outputs]]\nframe = "nowhere"\n')
    with pytest.raises(ModelError) as caught:
        pipeline.Model.from_urdf(file)
    assert all(part in str(caught.value) for part in ("acts on 'tol'", "the axes of 'no'", "requested for 'nowhere'"))
    side.write_text('[[loads]]\nframe = "tool"\npoint = [0, 0, 1]\n')
    with pytest.raises(ModelError, match="a load has frame, of, offset, axes, name; not point"):
        pipeline.Model.from_urdf(file)
    side.write_text('[[loads]]\nframe = "tool"\noffset = [0, 1]\n')
    with pytest.raises(ModelError, match="three numbers"):
        pipeline.Model.from_urdf(file)


def test_arrays_of_loads(file: Path) -> None:
    d = pipeline.derive(file, arguments={"arrays": True}, method="recursive-composite")
    arrays = {array.name: tuple(array.elements) for array in d.definition.arrays}
    assert arrays["tool.force"] == ("tool.force.x", "tool.force.y", "tool.force.z")
    assert arrays["push.force"] == ("push.force.x", "push.force.y", "push.force.z")
    assert not any(name in arrays.get("tau", ()) for name in INPUTS)
