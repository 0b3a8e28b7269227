"""Rigid stops, impacts and latches on a robot, in coordinates of its joints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from sympy.physics.vector import dynamicsymbols
from unit.robots.robot_texts import joint, link, robot

from mb2fmu import HardStop, Impact, Latch, pipeline
from mb2fmu.errors import MechanismError

LIMIT = '<limit lower="-9" upper="9" effort="50" velocity="90"/>'
TWO = robot(
    link("base", 3.0),
    link("l1", 2.0),
    link("l2", 1.5, 0.05),
    joint("j1", "revolute", "base", "l1", f'{LIMIT}<dynamics damping="0.3"/>'),
    joint("j2", "revolute", "l1", "l2", f'{LIMIT}<dynamics damping="0.1"/>', axis="2 0 0"),
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "two.urdf"
    path.write_text(TWO)
    return path


def model_of(file: Path, what: str = "") -> pipeline.Model:
    model = pipeline.Model.from_urdf(file, inputs=["j1"], stop=1.0)
    q = model.mechanics.position
    if what == "stop":
        model.add(HardStop("stop", "j2", restitution=0.4, lower=-0.3, upper=0.25))
    elif what == "impact":
        model.add(Impact("hit", 0.3 - q["j1"] - q["j2"], restitution=0.5, unit="rad"))
    elif what == "latch":
        late = dynamicsymbols._t > 0.8
        model.add(Latch("hold", q["j2"] - 0.2, close=q["j2"] > 0.2, open=late, within=None, unit="rad"))
    return model


def test_an_impact_takes_momentum_along_its_gap_only(file: Path) -> None:
    """M of Pinocchio times the jump of the speeds is the impulse along the gap, and the gap opens with e times."""
    model = model_of(file, "impact")
    model.experiment(stop=0.15, step=1e-5, signals={})  # it strikes at 0.135 s
    result = pipeline.simulate(model)
    q = np.stack([result["j1.angle"], result["j2.angle"]], axis=1)
    u = np.stack([result["j1.speed"], result["j2.speed"]], axis=1)
    k = int(np.argmax(np.abs(np.diff(u[:, 1]))))
    other = pin.buildModelFromUrdf(str(file))
    M = pin.crba(other, other.createData(), q[k])
    M = np.triu(M) + np.triu(M, 1).T
    momentum = M @ (u[k + 1] - u[k])
    assert momentum[0] == pytest.approx(momentum[1], rel=1e-3)
    assert u[k + 1].sum() == pytest.approx(-0.5 * u[k].sum(), rel=1e-3)
    assert result["hit.impulse"][k + 1] == pytest.approx(-momentum[0], rel=1e-3)
    assert q.sum(axis=1).max() < 0.3 + 1e-9


def test_a_rigid_stop_and_a_latch_hold(file: Path) -> None:
    angle = np.array(pipeline.simulate(model_of(file, "stop"))["j2.angle"])
    assert angle.max() < 0.25 + 1e-9
    assert np.abs(angle[-20:] - 0.25).max() < 1e-6  # it rests there
    result = pipeline.simulate(model_of(file, "latch"))
    engaged, angle = np.array(result["hold.engaged"]) > 0.5, np.array(result["j2.angle"])
    assert 0 < engaged.sum() < len(engaged)
    assert not engaged[-1]
    assert np.ptp(angle[engaged]) < 1e-7


@pytest.mark.repeats
@pytest.mark.parametrize("what", ["stop", "impact", "latch"])
def test_they_are_proven(file: Path, tmp_path: Path, what: str) -> None:
    assert pipeline.run(model_of(file, what), tmp_path / "out").passed


def test_two_with_one_gap_are_reported(file: Path) -> None:
    model: Any = model_of(file)
    for name in ("a", "b"):
        model.add(Impact(name, 1 - model.mechanics.position["j2"], unit="rad"))
    with pytest.raises(MechanismError, match="b has the gap of a"):
        pipeline.derive(model)
