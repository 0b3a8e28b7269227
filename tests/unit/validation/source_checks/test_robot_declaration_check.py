"""What is declared of a robot is what its files say: dampers, bounds, starts; gravity of MJCF."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from unit.robots.test_robot_equations import worst_of

import mb2fmu
from mb2fmu import pipeline
from mb2fmu.model import CheckedModel, check_model
from mb2fmu.robots.tree.robot_mechanics_records import RobotMechanics
from mb2fmu.validation.independent_import.mujoco_equations import MujocoEquations
from mb2fmu.validation.independent_import.robot_declaration_check import compare_joint_declarations_with_file

MASS = '<mass value="1"/><inertia ixx="0.01" iyy="0.02" izz="0.02"/>'
LINK = f'<link name="{{}}"><inertial><origin xyz="0.1 0 0"/>{MASS}</inertial></link>'
ARM = f"""<robot name="arm"><link name="base"/>{LINK.format("a")}{LINK.format("b")}
<joint name="j1" type="revolute"><parent link="base"/><child link="a"/><axis xyz="0 0 1"/>
<limit lower="-3" upper="2" effort="50" velocity="5"/><dynamics damping="0.3"/></joint>
<joint name="j2" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/></joint></robot>"""
HINGE = """<mujoco model="hinge"><option gravity="0.5 0 -9.81"/><worldbody><body name="a">
<joint name="j1" axis="0 1 0" damping="0.2" limited="true" range="-90 90"/>
<inertial pos="0.1 0 0" mass="1" diaginertia="0.01 0.02 0.02"/></body></worldbody></mujoco>"""


SDF_MASS = "<inertial><pose>0.1 0 0 0 0 0</pose><mass>1</mass></inertial>"
SDF_ARM = f"""<sdf version="1.9"><model name="arm"><link name="base">{SDF_MASS}</link>
<joint name="hold" type="fixed"><parent>world</parent><child>base</child></joint>
<link name="a">{SDF_MASS}</link><link name="b">{SDF_MASS}</link><link name="c">{SDF_MASS}</link>
<joint name="j1" type="revolute"><parent>base</parent><child>a</child><axis><xyz>0 0 1</xyz>
<limit><lower>-3</lower><upper>1e16</upper><effort>50</effort><velocity>5</velocity></limit>
<dynamics><damping>0.3</damping><spring_stiffness>2</spring_stiffness></dynamics></axis></joint>
<joint name="cross" type="universal"><parent>a</parent><child>b</child>
<axis><xyz>1 0 0</xyz><limit><lower>-1</lower><upper>2</upper><effort>-1</effort></limit></axis>
<axis2><xyz>0 1 0</xyz><dynamics><damping>0.7</damping></dynamics></axis2></joint>
<joint name="ball" type="ball"><parent>b</parent><child>c</child>
<axis><xyz>0 0 1</xyz><dynamics><damping>0.2</damping></dynamics></axis></joint></model></sdf>"""


@pytest.fixture(params=["urdf", "xml", "sdf"])
def read(request, tmp_path: Path) -> CheckedModel:
    path = tmp_path / f"arm.{request.param}"
    path.write_text({"urdf": ARM, "xml": HINGE, "sdf": SDF_ARM}[request.param], encoding="utf-8")
    path.with_suffix(".toml").write_text("start = { j1 = 0.4 }\nspeeds = { j1 = 0.1 }\n", encoding="utf-8")
    return check_model(mb2fmu.load(path))


def list_differences(definition: CheckedModel) -> list[str]:
    return [text for text, is_equal in compare_joint_declarations_with_file(definition) if not is_equal]


def changed(definition: CheckedModel, field: str, **values: float) -> CheckedModel:
    """The first declaration of a kind with other values."""
    first, *others = getattr(definition, field)
    return replace(definition, **{field: (replace(first, **values), *others)})


def test_what_is_declared_is_what_the_files_say(read):
    assert list_differences(read) == []
    assert len(list(compare_joint_declarations_with_file(read))) >= 6


def test_each_other_value_is_reported(read):
    assert list_differences(changed(read, "coordinates", start=-0.4)) == [
        "joint j1: start is 0.4 in the file, -0.4 was read"
    ]
    assert [text[:20] for text in list_differences(changed(read, "coordinates", minimum=-1.0))] == [
        "joint j1: lower boun"
    ]
    assert [text[:20] for text in list_differences(changed(read, "speeds", start=0.2))] == ["joint j1: start spee"]


def test_a_damper_that_was_not_read_is_reported(read):
    assert isinstance(read.mechanics, RobotMechanics)
    lost = replace(read, mechanics=replace(read.mechanics, damping={}))
    assert len(list_differences(lost)) == len(read.mechanics.damping)
    assert "joint j1: damping is" in list_differences(lost)[0]


def test_dampings_of_balls_that_a_user_sets_are_no_fault_of_reading(tmp_path: Path):
    path = tmp_path / "arm.sdf"
    path.write_text(SDF_ARM, encoding="utf-8")
    assert list_differences(check_model(mb2fmu.load(path).at({"j1.damping": 0.9, "ball.damping": 0.5}))) == []


def test_a_follower_of_a_prescribed_joint_needs_no_damping(tmp_path: Path):
    """No effort moves it, so that its damper is left out: a right robot failed."""
    path = tmp_path / "arm.urdf"
    mimic = '<mimic joint="j1" multiplier="0.5"/><dynamics damping="0.2"/></joint></robot>'
    path.write_text(ARM.replace("</joint></robot>", mimic), encoding="utf-8")
    assert list_differences(check_model(mb2fmu.load(path, {"prescribed": ["j1"]}))) == []


def test_gravity_is_that_of_the_file(tmp_path: Path):
    path = tmp_path / "hinge.xml"
    path.write_text(HINGE, encoding="utf-8")
    assert MujocoEquations(path, ["j1"]).gravity.tolist() == [0.5, 0.0, -9.81]


def test_what_a_user_sets_is_no_fault_of_reading(read):
    """A damping, a start and a speed that ``--at`` gave are not the file's; other values still are."""
    given = dict.fromkeys(("j1.damping", "j1.angle", "j1.speed"), 0.25)
    parameters = tuple(replace(p, value=0.25) if p.name == "j1.damping" else p for p in read.parameters)
    definition = replace(changed(changed(read, "coordinates", start=0.25), "speeds", start=0.25), parameters=parameters)
    assert len(list_differences(definition)) == 3
    assert list_differences(replace(definition, given=given)) == []
    assert len(list_differences(replace(changed(definition, "coordinates", minimum=-1.0), given=given))) == 1


def test_limits_may_have_attributes_of_other_tools(tmp_path: Path):
    path = tmp_path / "arm.urdf"
    path.write_text(ARM.replace('velocity="5"', 'velocity="5" vendor="soft"'), encoding="utf-8")
    assert list_differences(check_model(mb2fmu.load(path))) == []


@pytest.mark.parametrize("gravity", [5.0, 0.0])
def test_another_gravity_is_no_fault_of_reading(tmp_path: Path, gravity: float):
    path = tmp_path / "hinge.xml"
    path.write_text(HINGE, encoding="utf-8")
    assert worst_of(pipeline.derive(mb2fmu.load(path).at(gravity=gravity))) < 1.0


def test_another_friction_is_no_fault_of_reading(tmp_path: Path):
    path = tmp_path / "arm.urdf"
    path.write_text(ARM.replace('damping="0.3"', 'damping="0.3" friction="0.2"'), encoding="utf-8")
    model = mb2fmu.load(path, {"friction": "stick"})
    assert worst_of(pipeline.derive(model.at({"j1.friction.kinetic": 0.4}))) < 1.0
