"""Drives of MJCF files whose laws depend on the robot (damping ratios, ranges, starts), and unknown masses."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest
from unit.robots.test_robot_equations import worst_against_second_reading

from mb2fmu import pipeline
from mb2fmu.errors import ModelError
from mb2fmu.robots.file_formats.mjcf_import import read_mjcf
from mb2fmu.robots.robot_loading import read_included_robot_file
from mb2fmu.validation.independent_import import independent_robot_accelerations
from mb2fmu.validation.source_checks import source_acceleration_samples

DRIVES = """<mujoco model="drives">
  <compiler angle="radian"/>
  <default><default class="p"><position kp="200" dampratio="0.7" inheritrange="0.8"/></default></default>
  <worldbody>
    <body name="trunk"><freejoint/><geom size="0.3"/>
      <body name="thigh" pos="0.5 0 0.1">
        <joint name="hip" axis="0 1 0" range="-1 3" armature="0.2" ref="0.4"/><geom size="0.1" pos="0.3 0.1 0"/>
        <body name="shank" pos="1 0 0">
          <joint name="knee" axis="0 1 1" range="-1 3" armature="0.1"/>
          <geom type="box" size="0.1 0.2 0.3" pos="0.3 0 0"/>
          <body name="foot" pos="1 0 0">
            <joint name="ankle" axis="0 1 1" range="1 3" ref="2"/><geom type="box" size="0.1 0.2 0.3" pos="0.3 0 0"/>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
  <tendon>
    <fixed name="both" limited="true" range="0 1"><joint joint="hip" coef="1"/><joint joint="knee" coef="2"/></fixed>
  </tendon>
  <equality><joint joint1="knee" joint2="hip" polycoef="0.1 0.5"/></equality>
  <actuator>
    <position class="p" name="geared" joint="hip" gear="3"/><position class="p" name="sum" tendon="both"/>
    <motor class="p" name="plain" joint="hip"/><velocity class="p" name="braked" joint="knee" kv="3"/>
    <general name="general" joint="knee" biastype="affine" gainprm="100" biasprm="0 -100 0.5"/>
    <position class="p" name="last" joint="ankle"/>
  </actuator>
</mujoco>"""

STANDING = """<mujoco model="standing">
  <asset><mesh name="foot" file="foot.stl"/></asset>
  <worldbody><body name="plate"><geom type="mesh" mesh="foot"/>
    <body name="arm"><joint name="j" axis="0 1 0"/><geom size="0.1" pos="0.3 0 0"/></body>
  </body></worldbody>
</mujoco>"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "robot.xml"
    path.write_text(DRIVES)
    return path


def test_gains_and_ranges_are_mujocos(file: Path) -> None:
    model = mujoco.MjModel.from_xml_path(str(file))
    drives = read_mjcf(file.read_bytes(), file, read_included_robot_file).actuators
    assert len(drives) == model.nu == 6
    for k, drive in enumerate(drives):
        assert drive.gain == model.actuator_gainprm[k, 0]
        assert drive.bias == pytest.approx(model.actuator_biasprm[k, :3], rel=1e-12)
        if model.actuator_ctrllimited[k]:
            assert drive.control == pytest.approx(model.actuator_ctrlrange[k], rel=1e-14)
        else:
            assert drive.control == (-np.inf, np.inf)


def test_they_move_as_in_mujoco(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_acceleration_samples, "RANDOM_POINT_COUNT", 30)
    assert worst_against_second_reading(file) < 0.1


def test_a_control_starts_within_its_range(file: Path) -> None:
    inputs = {item.name: item for item in pipeline.derive(file, method="recursive-composite").checked.inputs}
    assert inputs["last.control"].start == pytest.approx(1.2)
    assert inputs["geared.control"].start == 0.0


@pytest.mark.parametrize(
    ("drive", "expected"),
    [
        ('<general name="x" class="p" joint="hip"/>', ['kp="200" of <general name="x"> is not honoured']),
        ('<position name="x" joint="hip" kp="1" kv="1" dampratio="1"/>', ["has kv and dampratio"]),
        ('<position name="x" joint="hip" inheritrange="1" ctrlrange="0 1"/>', ["has ctrlrange and inheritrange"]),
        ('<position name="x" joint="free" inheritrange="1"/>', ["inheritrange of actuator x is 1"]),
        ('<position name="x" joint="hip" kp="-1"/>', ["is negative"]),
    ],
)
def test_what_cannot_be_meant_is_refused(file: Path, drive: str, expected: list[str]) -> None:
    loose = '<body name="loose"><joint name="free"/><geom size="0.1" pos="1 0 0"/></body></worldbody>'
    text = DRIVES.replace("</actuator>", drive + "</actuator>").replace("</worldbody>", loose)
    file.write_text(text)
    with pytest.raises(ModelError) as caught:
        pipeline.derive(file)
    assert all(words in str(caught.value) for words in expected), caught.value


def test_meshes_without_mass_are_of_no_matter_where_nothing_moves(file: Path) -> None:
    file.write_text(STANDING)
    assert len(pipeline.derive(file, method="recursive-composite").checked.speeds) == 1
    with pytest.raises(ModelError, match=r"robot\.xml:3: <geom> is a mesh and gives its body mass"):
        pipeline.derive(file, arguments={"base": "floating"})
    file.write_text(STANDING.replace('<body name="plate">', '<body name="plate"><joint/>'))
    with pytest.raises(ModelError, match=r"robot\.xml:3: <geom> is a mesh and gives its body mass"):
        pipeline.derive(file)


def test_a_file_that_mujoco_does_not_load_has_no_second_reading(file: Path) -> None:
    file.write_text(STANDING)
    made = independent_robot_accelerations.sample_independent_robot_accelerations(
        pipeline.derive(file, method="recursive-composite").checked
    )
    assert "MuJoCo does not load the file" in made.missing[source_acceleration_samples.INDEPENDENT_IMPORT]
    assert "foot.stl" in made.missing[source_acceleration_samples.INDEPENDENT_IMPORT]


def test_classes_do_not_change_what_a_drive_sets_itself(file: Path) -> None:
    """A motor is one though its class speaks of springs; a ball has the friction of its class left out."""
    head, _, _ = DRIVES.partition("<actuator>")
    general = '<default><joint frictionloss="0.2"/><general biastype="affine" gainprm="40" biasprm="0 -40 -3"/>'
    ball = '<body name="ball"><joint name="ball" type="ball"/><geom size="0.1" pos="0 0 1"/></body></worldbody>'
    drives = '<actuator><motor name="m" joint="hip"/><general name="g" joint="ankle"/></actuator></mujoco>'
    text = head.replace("<default>", general, 1).replace("</worldbody>", ball) + drives
    file.write_text(text)
    assert worst_against_second_reading(file) < 0.1
    notes = pipeline.derive(file, method="recursive-composite").checked.mechanics.description.notes
    assert "dry friction of joint ball is left out: it has more than one coordinate" in notes


@pytest.mark.parametrize("own", ['biastype="affine" gainprm="4" biasprm="0.1 -4 -0.3"', 'biastype="none" gainprm="4"'])
def test_a_general_drive_that_says_all_of_its_law_has_nothing_from_other_kinds(file: Path, own: str) -> None:
    """In MuJoCo all kinds of a class share one set of gains; what the drive says goes before them."""
    position = '<default><position kp="120" kv="9"/></default>'
    text = DRIVES.partition("<actuator>")[0].replace("</default>\n", f"</default>{position}\n", 1)
    file.write_text(f'{text}<actuator><general name="g" joint="hip" {own}/></actuator></mujoco>')
    assert worst_against_second_reading(file) < 0.1
    file.write_text(f'{text}<actuator><general name="g" joint="hip" gainprm="4"/></actuator></mujoco>')
    with pytest.raises(ModelError, match='kp="120" of <general name="g"> is not honoured'):
        pipeline.derive(file)
