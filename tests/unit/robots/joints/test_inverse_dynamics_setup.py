"""Efforts that a motion takes, against Pinocchio's and MuJoCo's inverse dynamics; what has none is refused by name."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pinocchio as pin
import pytest
from representatives import by_night
from sympy.physics.vector import dynamicsymbols
from unit.robots.robot_texts import ARM, joint, link, robot

from mb2fmu import pipeline
from mb2fmu.errors import ModelError
from mb2fmu.validation import independent_checks

GEAR = (
    '<transmission name="t"><joint name="j2"/><actuator name="m"><mechanicalReduction>50</mechanicalReduction>'
    "<motorInertia>0.0002</motorInertia></actuator></transmission></robot>"
)
SPRINGS = """<mujoco>
  <worldbody><body name="a"><joint name="h" axis="0 1 1" damping="0.2" armature="0.3" stiffness="4" springref="0.2"/>
    <geom type="capsule" size="0.05" fromto="0 0 0 0.4 0.1 0"/>
    <body name="b" pos="0.4 0 0"><joint name="s" type="slide" axis="1 0 0.2" damping="0.5" armature="0.1"/>
      <joint name="g" axis="1 0 0"/><geom type="box" size="0.1 0.05 0.02"/></body></body></worldbody>
  <tendon><fixed name="t" stiffness="40" damping="3" springlength="0.1"><joint joint="h" coef="0.5"/>
    <joint joint="s" coef="-2"/></fixed></tendon>
  <actuator><position joint="h" kp="100"/></actuator>
</mujoco>"""


def efforts(path: Path, motion: dict[str, tuple[float, float, float]], **settings: object) -> dict[str, float]:
    """Joint → effort, of joint → position, speed, acceleration."""
    derivation = pipeline.derive(path, arguments={"role": "inverse-dynamics", **settings}, method="recursive-composite")
    assert not derivation.equations.states
    f = pipeline.right_hand_side(derivation)
    places = {"angle": 0, "position": 0, "speed": 1, "acceleration": 2}
    inputs = [motion[name][places[part]] for name, part in (i.name.split(".") for i in derivation.checked.inputs)]
    y = f.outputs(0.0, [], inputs, [p.value for p in derivation.checked.parameters])
    return {name.split(".")[0]: float(v) for name, v in zip(f.output_names, y, strict=True) if name.endswith("effort")}


@pytest.mark.parametrize("massless", [False, True])
def test_efforts_are_pinocchios(tmp_path: Path, massless: bool) -> None:
    """With damping, a rotor behind a gear, a joint that mimics, and a link without mass between two joints."""
    path = tmp_path / "arm.urdf"
    text = ARM.replace("</robot>", GEAR)
    path.write_text(text.replace(link("l2", 1.5, 0.05), '<link name="l2"/>\n') if massless else text)
    model = pin.buildModelFromUrdf(str(path), mimic=True)
    data, random = model.createData(), np.random.default_rng(5)
    q, v, a = random.normal(size=(3, 3))
    place = np.array([q[0], np.cos(q[1]), np.sin(q[1]), q[2]])
    expected = pin.rnea(model, data, place, v, a) + np.array([0.3, 0.1, 0.0]) * v + np.array([0, 0.0002 * 50**2, 0]) * a
    found = efforts(path, dict(zip(("j1", "j2", "j3"), zip(q, v, a, strict=True), strict=True)))
    assert [found[n] for n in ("j1", "j2", "j3")] == pytest.approx(expected, rel=1e-13, abs=1e-13)


def test_efforts_are_mujocos(tmp_path: Path) -> None:
    """With springs, armature, a tendon, and two joints of one body; laws of actuators are not part of it."""
    path = tmp_path / "springs.xml"
    path.write_text(SPRINGS)
    model = mujoco.MjModel.from_xml_path(str(path))
    data, random = mujoco.MjData(model), np.random.default_rng(6)
    data.qpos[:], data.qvel[:], data.qacc[:] = random.normal(size=(3, 3))
    motion = {n: (data.qpos[k], data.qvel[k], data.qacc[k]) for k, n in enumerate(("h", "s", "g"))}
    mujoco.mj_inverse(model, data)
    found = efforts(path, motion)
    assert [found[n] for n in ("h", "s", "g")] == pytest.approx(data.qfrc_inverse.tolist(), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("content", [*by_night("arm.urdf"), "springs.xml"])
def test_efforts_are_held_against_a_second_reading(tmp_path: Path, content: str) -> None:
    """A unit without states, and its file: when that says a thousandth more of one mass the unit is not of the file."""
    path, right = tmp_path / content, ARM.replace("</robot>", GEAR) if content.endswith("urdf") else SPRINGS
    path.write_text(right)
    arguments = {"role": "inverse-dynamics", "name": "control"}
    derivation = pipeline.derive(path, arguments=arguments, method="recursive-composite")
    unit = pipeline.export(path, tmp_path, arguments=arguments).path
    for text, verdict in (
        (right, "passed"),
        (right.replace('mass value="1.5"', 'mass value="1.5015"').replace("<geom ", '<geom density="1001" '), "failed"),
    ):
        path.write_text(text)
        found = independent_checks.run_independent_checks(unit, derivation.checked, derivation.mechanism).checks
        assert [(check.name, check.verdict) for check in found] == [
            ("an independent import of the robot's file", verdict)
        ]
        assert found[0].points == 24
        assert found[0].ratio < 0.1 or found[0].ratio > 1e5, found[0].ratio


def test_what_has_no_inverse_dynamics_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "flying.urdf"
    path.write_text(robot(link("a"), link("b"), joint("loose", "floating", "a", "b")))
    with pytest.raises(ModelError) as caught:
        pipeline.Model.from_urdf(path, role="inverse-dynamics", base="floating")
    assert [fault.what for fault in caught.value.faults] == [
        "joint loose is floating, and no drive gives all of its motion",
        "base is floating, and no drive gives its motion",
    ]
    assert all("--with inverse-dynamics" in fault.remedy for fault in caught.value.faults)


def test_ranges_are_bounds_of_the_positions_that_go_in(tmp_path: Path) -> None:
    """And the default experiment stays within them."""
    path = tmp_path / "arm.urdf"
    path.write_text(ARM.replace('lower="-2" upper="2"', 'lower="-0.01" upper="2"'))
    definition = pipeline.derive(path, arguments={"role": "inverse-dynamics"}, method="recursive-composite").checked
    bounds = {i.name: (i.minimum, i.maximum) for i in definition.inputs}
    assert bounds["j1.angle"] == (-0.01, 2.0)
    assert bounds["j1.acceleration"] == (None, None)
    signal = next(s for r, s in definition.experiment.signals.items() if r == definition.inputs[0].symbol)
    assert abs(float(signal.subs(dynamicsymbols._t, 0.1))) <= 0.01
