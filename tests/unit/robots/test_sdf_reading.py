"""SDF files: x' against the same robot in MuJoCo, and every fault at once with its line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from unit.robots.sdf_texts import ARM, twin

from mb2fmu import pipeline
from mb2fmu.errors import ModelError
from mb2fmu.robots.sdf_reading import read_sdf
from mb2fmu.validation import robot_motion
from mb2fmu.validation.mujoco_reading import MujocoReading

LINK = '<link name="{}"><inertial><mass>1</mass></inertial></link>'
HINGE = '<joint name="j" type="revolute"><parent>a</parent><child>b</child><axis><xyz>0 0 1</xyz></axis></joint>'
TWO = LINK.format("a") + LINK.format("b")


def faults(text: str) -> str:
    """What is wrong, in one line."""
    with pytest.raises(ModelError) as caught:
        read_sdf(text.encode(), Path("test.sdf"))
    return " | ".join(f"{fault.where}: {fault.what}" for fault in caught.value.faults)


def model(*inside: str) -> str:
    """A file with one model, its contents a line each from line 2."""
    lines = "\n".join(inside)
    return f'<sdf version="1.9"><model name="m">\n{lines}\n</model></sdf>'


def test_every_element_moves_as_the_twin_does_in_mujoco(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(robot_motion, "POINTS", 200)
    file, other = tmp_path / "robot.sdf", tmp_path / "twin.xml"
    file.write_text(ARM)
    other.write_text(twin())
    derivation = pipeline.derive(file, arguments={"outputs": "tip"})
    f, d = pipeline.right_hand_side(derivation), derivation.checked
    reading = MujocoReading(other, [])
    made = robot_motion._Sampler(d, d.mechanics, reading).motions()
    names = [item.name for item in (*d.coordinates, *d.speeds)]
    worst = 0.0
    for sample in made.samples:
        values = sample.point.values
        x, p = [values[made.starts[n]] for n in names], [values[made.starts[q.name]] for q in d.parameters]
        rates = f(sample.point.time, x, [values[k] for k in made.inputs.values()], p)
        own = sample.rates[robot_motion.WAY]
        worst = max(worst, *(abs(a - own[n]) / sample.bounds[n] for n, a in zip(names, rates, strict=True)))
    assert worst < 0.5
    assert "tip.position.x" in f.output_names


def test_without_a_joint_to_the_world_gravity_is_that_of_the_turned_root() -> None:
    text = model("<pose>0 0 0 1.5707963267948966 0 0</pose>", TWO)
    robot = read_sdf(text.replace("</model>", HINGE + "</model>").encode(), Path("test.sdf"))
    assert robot.gravity == pytest.approx((0.0, -9.81, 0.0))  # the root's y axis points up
    assert any("stands fixed unless" in note for note in robot.notes)


@pytest.mark.parametrize(
    ("inside", "word"),
    [
        ('<joint name="j" type="screw"><parent>a</parent><child>b</child></joint>', "'screw'"),
        ('<joint name="j" type="revolute"><parent>a</parent><child>b</child></joint>', "no <axis>"),
        ('<joint name="j" type="fixed"><parent>a</parent><child>x</child></joint>', "'x'"),
        ('<joint name="j" type="fixed"><parent>a</parent></joint>', "no <child>"),
        (HINGE.replace("0 0 1", "0 0 0"), "is zero"),
        ('<link name="a"/>', "are called a"),
        ('<frame name="f"><pose relative_to="g"/></frame><frame name="g"><pose relative_to="f"/></frame>', "circle"),
        ('<frame name="f" attached_to="no"/>', "'no'"),
        ('<link name="c"><inertial><mass>nan</mass></inertial></link>', "nan"),
        ('<link name="c"><pose>0 0 0</pose></link>', "0 0 0"),
        ('<link name="c"><gravity>false</gravity></link>', "no weight"),
        ("<include><uri>model://x</uri></include>", "<include>"),
        ("<static>true</static>", "static"),
        ('<lnk name="c"/>', "<lnk>"),
    ],
)  # fmt: skip
def test_a_fault_is_told_with_its_line(inside: str, word: str) -> None:
    told = faults(model(TWO, inside))
    assert word in told
    assert "test.sdf:" in told


def test_all_faults_are_told_at_once_and_several_models_are_refused() -> None:
    told = faults(model(TWO, '<joint name="j" type="gearbox"/>', "<static>1</static>", '<link name="b"/>'))
    for word in ("'gearbox'", "static", "are called b"):
        assert word in told
    assert "2 models" in faults('<sdf version="1.9"><model name="a"/><model name="b"/></sdf>')
    assert "root element" in faults("<robot/>")
    assert np.isfinite(read_sdf(ARM.encode(), Path("a.sdf")).links[0].line)
