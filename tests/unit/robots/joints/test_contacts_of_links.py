"""Rigid contacts, friction and latches whose gaps name where a robot's links are.

The laws are held against Pinocchio's mass matrix and Jacobians; what was imported against the independent import.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
import sympy as sm
from representatives import by_night
from sympy.physics.vector import dynamicsymbols
from unit.robots.robot_texts import joint, link, robot

from mb2fmu import Impact, Latch, pipeline
from mb2fmu.errors import MechanismError
from mb2fmu.model import check_model
from mb2fmu.robots.tree import link_motion_expressions, mechanism_from_robot, robot_contacts
from mb2fmu.validation.independent_import.independent_robot_accelerations import sample_independent_robot_accelerations
from mb2fmu.validation.source_checks import source_acceleration_samples

LIMIT = '<limit lower="-9" upper="9" effort="50" velocity="90"/>'
ARM = robot(
    link("base", 3.0),
    link("l1", 2.0),
    link("l2", 1.5, 0.05),
    link("l3", 0.5, 0.02),
    joint("j1", "revolute", "base", "l1", f'{LIMIT}<dynamics damping="0.3"/>'),
    joint("j2", "revolute", "l1", "l2", f'{LIMIT}<dynamics damping="0.1"/>', axis="2 0 0"),
    joint("j3", "revolute", "l2", "l3", f'{LIMIT}<dynamics damping="0.1"/>', axis="0 1 0"),
)
HOPPER = robot(
    '<link name="base"/>\n',
    link("cart", 0.3),
    link("body", 3.0),
    link("shank", 0.8),
    joint("x", "prismatic", "base", "cart", LIMIT, axis="1 0 0").replace("0.2 0.3 0", "0 0 0"),
    joint("z", "prismatic", "cart", "body", LIMIT, axis="0 0 1").replace("0.2 0.3 0", "0 0 0"),
    joint("knee", "revolute", "body", "shank", f'{LIMIT}<dynamics damping="0.2"/>', axis="0 1 0").replace(
        "0.2 0.3 0", "0 0 0"
    ),
)
TIP = (0.05, -0.02, 0.2)
FOOT = (0.03, 0.0, -0.3)


def model_of(folder: Path, what: str, text: str = ARM, **settings: Any) -> pipeline.Model:
    """The arm; its tip above a floor, close to a ball on its first link, or held in the world for a while."""
    file = folder / "arm.urdf"
    file.write_text(text)
    model = pipeline.Model.from_urdf(file, stop=0.5, **settings)
    arm, t = model.mechanics, dynamicsymbols._t
    tip = arm.position_of("l3", TIP)
    if what == "floor":
        model.add(Impact("floor", tip[2] - 0.6, restitution=0.4))
    elif what == "ball":
        ball = arm.position_of("l1", (0.3, -0.3, 0.3))
        away = sm.sqrt(sum((a - b) ** 2 for a, b in zip(tip, ball, strict=True)))
        model.add(Impact("ball", away - 0.3, restitution=0.4))
    elif what == "latch":
        model.add(Latch("hold", [*tip], close=sm.And(tip[2] < 0.9, t >= 0.2, t < 0.35), open=t >= 0.35, within=None))
    return model


def hopper(folder: Path, friction: float = 0.6) -> pipeline.Model:
    """A leg in a plane that falls on its foot, which sticks."""
    file = folder / "hopper.urdf"
    file.write_text(HOPPER)
    model = pipeline.Model.from_urdf(file, inputs=["x"], stop=0.5, start={"knee": 0.4}, speeds={"x": 0.5})
    foot, speed = model.mechanics.position_of("shank", FOOT), model.mechanics.velocity_of("shank", FOOT)
    model.add(Impact("foot", foot[2] - 0.5, slip=speed[0], friction=friction))
    return model


def jacobian_of(file: Path, q: np.ndarray, frame: str, offset: tuple[float, float, float]) -> tuple[Any, Any]:
    """Pinocchio's mass matrix, and its Jacobian of a point in the ground's axes."""
    other = pin.buildModelFromUrdf(str(file))
    data = other.createData()
    M = pin.crba(other, data, q)
    pin.computeJointJacobians(other, data, q)
    pin.updateFramePlacements(other, data)
    number = other.getFrameId(frame)
    J = pin.getFrameJacobian(other, data, number, pin.LOCAL_WORLD_ALIGNED)
    arm = data.oMf[number].rotation @ np.array(offset)
    return np.triu(M) + np.triu(M, 1).T, J[:3] + np.cross(J[3:], arm, axis=0)


def test_an_impact_of_a_point_jumps_by_its_jacobian(tmp_path: Path) -> None:
    """M of Pinocchio times the jump of the speeds is Jᵀ times the impulse; the point leaves with e times its speed."""
    model = model_of(tmp_path, "floor")
    model.experiment(stop=0.22, step=2e-5, signals={})  # it strikes at 0.2126 s
    result = pipeline.simulate(model)
    q, u = (np.stack([result[f"j{i}.{word}"] for i in (1, 2, 3)], axis=1) for word in ("angle", "speed"))
    k = int(np.argmax(np.abs(np.diff(result["floor.impacts"]))))
    assert result["floor.impacts"][k + 1] == 1.0
    M, J = jacobian_of(tmp_path / "arm.urdf", q[k], "l3", TIP)
    momentum = M @ (u[k + 1] - u[k])
    assert momentum == pytest.approx(J[2] * result["floor.impulse"][k + 1], rel=2e-3, abs=2e-3)
    assert J[2] @ u[k + 1] == pytest.approx(-0.4 * J[2] @ u[k], rel=2e-3)


def test_a_foot_sticks_and_slides_on_the_ground(tmp_path: Path) -> None:
    """Where it sticks its point stands still, and the friction is within the cone; with less friction it slides."""
    sticking = pipeline.simulate(hopper(tmp_path))
    rests = np.array(sticking["foot.resting"]) > 0.5
    sticks = rests & (np.array(sticking["foot.sliding"]) == 0.0)
    assert sticks.sum() > 5
    assert np.abs(np.array(sticking["foot.slip"])[sticks]).max() < 1e-8
    assert np.all(np.abs(np.array(sticking["foot.friction"]))[sticks] <= 0.6 * np.array(sticking["foot.force"])[sticks])
    sliding = pipeline.simulate(hopper(tmp_path, friction=0.01))
    slides = (np.array(sliding["foot.resting"]) > 0.5) & (np.array(sliding["foot.sliding"]) != 0.0)
    assert slides.sum() > 5
    force, friction = np.array(sliding["foot.force"])[slides], np.array(sliding["foot.friction"])[slides]
    assert np.abs(friction) == pytest.approx(0.01 * force, rel=1e-9)
    assert np.all(friction * np.array(sliding["foot.slip"])[slides] <= 0.0)


@pytest.mark.repeats  # by day what was imported of it is what the file says; latches of points in elements/test_latch
def test_a_latch_holds_a_point_in_the_world(tmp_path: Path) -> None:
    model = model_of(tmp_path, "latch")
    model.output_position("tip", model.mechanics.point("l3", TIP))
    result = pipeline.simulate(model)
    engaged = np.array(result["hold.engaged"]) > 0.5
    assert 0 < engaged.sum() < len(engaged)
    assert not engaged[-1]
    for axis in "xyz":
        assert np.ptp(np.array(result[f"tip.{axis}"])[engaged]) < 1e-7
    assert max(np.ptp(result[f"tip.{axis}"]) for axis in "xyz") > 1e-3


def worst_of_events(model: pipeline.Model) -> tuple[float, str]:
    """Largest error over its bound of what was imported of contacts and latches, by the independent import."""
    derivation = pipeline.derive(model, method="recursive-composite")
    with pytest.MonkeyPatch.context() as fewer:
        fewer.setattr(source_acceleration_samples, "RANDOM_POINT_COUNT", 3)
        made = sample_independent_robot_accelerations(derivation.checked, derivation.mechanism)
    assert not made.left_out
    assert not made.missing  # x' is compared, too, where the contacts are open
    return max(made.events)


@pytest.mark.parametrize(
    ("what", "base"),
    [
        ("floor", "fixed"),
        ("latch", "fixed"),
        *by_night(("floor", "floating"), ("latch", "floating"), ("ball", "fixed"), ("ball", "floating")),
    ],
)
def test_what_was_imported_is_what_the_file_says(tmp_path: Path, what: str, base: str) -> None:
    assert worst_of_events(model_of(tmp_path, what, base=base))[0] < 1.0


def test_the_slip_of_a_foot_is_what_the_file_says(tmp_path: Path) -> None:
    assert worst_of_events(hopper(tmp_path))[0] < 1.0


@pytest.mark.repeats  # by day: another turn, whose gaps are compared by the same lines
@pytest.mark.parametrize("what", ["floor", "ball", "latch"])
def test_another_point_is_seen(tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the FMU and its reference a hundredth of a millimetre beside the point that the model names."""
    whole = robot_contacts.write_out_link_motion

    def beside(*arguments: Any) -> Any:
        return {symbol: value + 1e-5 * ("of_l3" in symbol.name) for symbol, value in whole(*arguments).items()}

    monkeypatch.setattr(robot_contacts, "write_out_link_motion", beside)
    assert worst_of_events(model_of(tmp_path, what))[0] > 1e3


@pytest.mark.parametrize("what", ["floor", *by_night("latch", "ball")])
def test_a_turn_the_other_way_is_seen(tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def turned_back(frame: Any, vector: Any) -> Any:
        x, y, z = frame.rotation.T * sm.Matrix(vector)
        return x, y, z

    monkeypatch.setattr(link_motion_expressions, "express_in_parent_frame", turned_back)
    assert worst_of_events(model_of(tmp_path, what))[0] > 1e3


def test_a_rate_that_lacks_a_joint_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gap is right and its slopes are not: G without the last joint."""
    whole = robot_contacts.read_contacts_and_latches

    def lacking(definition: Any, plain: Any, moving: Any, *others: Any) -> Any:
        symbols, rates, t = moving
        return whole(definition, plain, (symbols[:-1], rates[:-1], t), *others)

    monkeypatch.setattr(robot_contacts, "read_contacts_and_latches", lacking)
    worst, place = worst_of_events(model_of(tmp_path, "floor"))
    assert worst > 1e3
    assert "rate of the gap of floor" in place


def test_what_would_take_minutes_is_refused(tmp_path: Path) -> None:
    """Seven joints, each with a dense rotation before it; along coordinate axes seven are few."""
    names = [f"l{i}" for i in range(8)]
    axes = ("0 0 1", "0 1 0", "1 0 0") * 3
    chain = [joint(f"j{i}", "revolute", names[i], names[i + 1], LIMIT, axis=axes[i]) for i in range(7)]
    text = robot(*(link(name) for name in names), *chain)
    for odd in (False, True):
        file = tmp_path / "chain.urdf"
        file.write_text(text if odd else text.replace("0.2 0.3 0", "0 0 0"))
        model = pipeline.Model.from_urdf(file, stop=0.5)
        model.add(Impact("floor", model.mechanics.position_of("l7", TIP)[2]))
        if odd:
            with pytest.raises(MechanismError, match=r"the rate of floor has .* parts, written out"):
                mechanism_from_robot.make_robot_mechanism(check_model(model))
        else:
            assert mechanism_from_robot.make_robot_mechanism(check_model(model)).contacts is not None


@pytest.mark.repeats
@pytest.mark.parametrize("what", ["floor", "ball", "latch", "hopper"])
def test_they_are_validated(tmp_path: Path, what: str) -> None:
    model = hopper(tmp_path) if what == "hopper" else model_of(tmp_path, what)
    assert pipeline.run(model, tmp_path / "out").passed
