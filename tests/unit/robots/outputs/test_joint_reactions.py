"""Reactions of joints against Pinocchio's forces through them; what has none is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from representatives import by_night
from unit.robots.joints.test_inverse_dynamics_setup import GEAR
from unit.robots.outputs.test_joint_space_outputs import FLYING
from unit.robots.robot_texts import ARM
from unit.robots.test_robot_loops import FOUR_BAR, SIDE_FILE

from mb2fmu import pipeline
from mb2fmu.errors import ModelError
from mb2fmu.mechanics.formulations import form_equations_except_dynamics
from mb2fmu.validation.reference_equations.newton_euler import NewtonEulerEquations


def reactions(derivation: pipeline.DerivationResult, x: list[float]) -> tuple[dict[str, np.ndarray], list[float]]:
    """Joint → force and torque, and x', with every effort at 2."""
    f = pipeline.right_hand_side(derivation)
    r, p = [2.0] * len(f.inputs), [item.value for item in derivation.checked.parameters]
    y = dict(zip(f.output_names, map(float, f.outputs(0.0, x, r, p)), strict=True))
    names = {name.partition(".reaction")[0] for name in y if ".reaction" in name}
    words = [f"reaction.{kind}.{axis}" for kind in ("force", "torque") for axis in "xyz"]
    return {n: np.array([y[f"{n}.{word}"] for word in words]) for n in names}, list(f(0.0, x, r, p))


@pytest.mark.parametrize("method", [*by_night("tmt"), "recursive-composite"])
def test_they_are_pinocchios_forces(tmp_path: Path, method: str) -> None:
    """A rotor behind a gear, a joint that mimics, dampers: the drive's torque is in them, the rotor's is not."""
    path = tmp_path / "robot.urdf"
    path.write_text(ARM.replace("</robot>", GEAR))
    model = pin.buildModelFromUrdf(str(path), mimic=True)
    names = [name for name in model.names if name != "universe"]
    derivation = pipeline.derive(path, method=method, arguments={"reactions": names})
    data, random = model.createData(), np.random.default_rng(4)
    q, v = random.normal(size=(2, 3))
    found, rates = reactions(derivation, [*q, *v])
    place = np.array([q[0], np.cos(q[1]), np.sin(q[1]), q[2]])
    assert set(found) == set(names)
    pin.forwardKinematics(model, data, place)
    pin.rnea(model, data, place, v, np.array(rates[3:]))
    for name in names:
        i = model.getJointId(name)
        R, force = data.oMi[i].rotation, data.f[i]
        expected = np.concatenate([R @ force.linear, R @ force.angular])
        assert found[name] == pytest.approx(expected, abs=1e-12 * np.abs(expected).max())


def test_the_reference_has_its_own(tmp_path: Path) -> None:
    """Of a robot that flies: a force that is a hundredth off in one of both is seen by the other."""
    path = tmp_path / "robot.urdf"
    path.write_text(FLYING)
    derivation = pipeline.derive(path, arguments={"base": "floating", "reactions": "h,s"}, method="recursive-composite")
    mechanism, random = derivation.mechanism, np.random.default_rng(2)
    numbers = NewtonEulerEquations(mechanism, form_equations_except_dynamics(mechanism))
    e = random.normal(size=4)
    x = np.array([*random.normal(size=3), *(e / np.linalg.norm(e)), *random.normal(size=10)])
    f = pipeline.right_hand_side(derivation)
    r, p = [2.0] * len(f.inputs), [item.value for item in derivation.checked.parameters]
    own = numbers.motion(0.0, x, r, numbers.prepare(p)).outputs
    found = f.outputs(0.0, x, r, p)
    assert len(found) == 12
    assert list(own) == pytest.approx(list(found), rel=1e-11, abs=1e-11)


def test_what_has_no_reaction_is_reported_at_once(tmp_path: Path) -> None:
    path = tmp_path / "robot.urdf"
    path.write_text(ARM)
    with pytest.raises(ModelError) as caught:
        pipeline.derive(path, arguments={"reactions": "j1,nix,tool_joint", "outputs": "nope"})
    reported = " | ".join(str(fault) for fault in caught.value.faults)
    for words in ("reactions names the joint nix, which does not exist", "'nope', which is no link"):
        assert words in reported
    path.write_text(FOUR_BAR)
    path.with_name("robot.toml").write_text('reactions = ["j1"]\n' + SIDE_FILE)
    with pytest.raises(ModelError, match="loops are closed, which hold the links, too"):
        pipeline.derive(path)
