"""What a URDF file says, and every fault of one that is wrong, at once and with its line."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from unit.robots.robot_texts import ARM, joint, link, robot

from mb2fmu.errors import ModelError
from mb2fmu.robots.file_formats.urdf_import import read_urdf

PATH = Path("test.urdf")


def read(text: str):
    return read_urdf(text.encode(), PATH)


def faults(text: str) -> dict[str, str]:
    """What is wrong, by line."""
    with pytest.raises(ModelError) as caught:
        read(text)
    found: dict[str, str] = {}
    for fault in caught.value.faults:
        line = fault.where.rpartition(":")[2]
        found[line] = f"{found.get(line, '')} {fault.what}"
    return found


def test_an_arm_is_read_as_it_is_written() -> None:
    arm = read(ARM)
    assert (arm.name, arm.root) == ("test", "base")
    kinds = {j.name: j.kind for j in arm.joints}
    assert kinds == {"j1": "revolute", "j2": "revolute", "j3": "prismatic", "jf": "fixed", "jm": "revolute"}
    by_name = {j.name: j for j in arm.joints}
    assert by_name["j2"].axis == pytest.approx([1, 0, 0])  # (2, 0, 0) in the file
    assert (by_name["j1"].damping, by_name["j1"].friction, by_name["j1"].limits.upper) == (0.3, 0.1, 2.0)
    mimic = by_name["jm"].mimic
    assert mimic is not None
    assert (mimic.joint, mimic.multiplier, mimic.offset) == ("j1", 0.5, 0.1)


def test_an_inertia_is_turned_from_its_origin_to_the_link() -> None:
    inertial = next(one.inertial for one in read(ARM).links if one.name == "l1")
    assert inertial is not None
    given = np.array([[0.03, 0.001, -0.002], [0.001, 0.04, 0.0015], [-0.002, 0.0015, 0.02]])
    assert np.linalg.eigvalsh(inertial.inertia) == pytest.approx(np.linalg.eigvalsh(given), rel=1e-14)
    assert np.max(np.abs(inertial.inertia - given)) > 1e-3


def test_all_faults_are_reported_at_once_with_their_lines() -> None:
    text = robot(
        link("a"),  # line 3
        link("a"),
        '<link name="b"><inertial><mass value="nan"/><inertia ixx="1" iyy="x" izz="1"/></inertial></link>\n',
        joint("j1", "revolute", "a", "nowhere"),
        joint("j2", "revolvute", "a", "b"),
        joint("j3", "revolute", "a", "b", axis="0 0 0"),
        '<joint name="j4" type="prismatic"><parent link="a"/></joint>\n',
        link("alone"),
        joint("j5", "revolute", "a", "c", '<mimic joint="j6"/>'),
        joint("j6", "revolute", "a", "d", '<mimic joint="j5"/>'),
        link("c"),
        link("d"),
        '<lnik name="e"/>\n',
    )
    found = faults(text)
    assert "2 links are called a" in found["4"]
    assert "5" in found
    assert "nowhere, which is no link" in found["6"]
    assert "'revolvute'" in found["7"]
    assert "axis of joint j3 is zero" in found["8"]
    assert "has no <child>" in found["9"]
    assert "mimic each other in a circle" in found["11"]
    assert "cannot have <lnik>" in found["15"]


def test_two_roots_are_reported_unless_a_broken_joint_explains_them() -> None:
    links = [link(name) for name in "abc"]
    whole = joint("k", "revolute", "b", "c")
    assert "2 links have no parent: a, b" in faults(robot(*links, whole))["4"]
    broken = {
        joint("j", "hinge", "a", "b"): "'hinge'",
        joint("j", "revolute", "a", "b").replace(' type="revolute"', ""): '<joint name="j"> has no type',
        joint("j", "revolute", "a", "b").replace('<child link="b"/>', ""): "has no <child>",
        joint("j", "revolute", "a", "nix"): "nix, which is no link",
        joint("j", "revolute", "b", "b"): "j goes from b to itself",
    }
    for text, word in broken.items():
        follower = whole.replace("</joint>", '<mimic joint="j"/></joint>')
        found = faults(robot(*links, text, follower))
        assert list(found) == ["6"]
        assert word in found["6"]
        assert "have no parent" not in found["6"]
        more = faults(robot(*links, link("d"), link("e"), text, follower))  # one broken joint explains one root only
        assert re.search(r"have no parent: a, (b, )?d, e", " ".join(more.values()))


def test_nothing_is_reported_that_only_follows_from_another_fault() -> None:
    tree = [link("a"), link("b"), joint("j", "revolute", "a", "b")]
    assert faults(robot(*tree, "<link/>\n")) == {"6": " <link> has no name"}
    assert faults(robot(*tree, '<link name=" "/>\n')) == {"6": " name of <link> is empty"}
    assert faults(robot(*tree, link("b"), link("b"))) == {"6": " 3 links are called b"}
    assert faults(robot(*tree, joint("l", "revolute", "b", "b"))) == {"6": " joint l goes from b to itself"}
    assert faults(robot(link("a"), link("b"), joint("", "revolute", "a", "b"))) == {"5": " name of <joint> is empty"}


def test_a_negative_mass_is_reported_with_the_other_faults() -> None:
    negative = link("b").replace('mass value="', 'mass value="-')
    found = faults(robot(link("a"), negative, joint("j", "hinge", "a", "b")))
    assert "link b cannot be a body: its mass is -" in found["4"]
    assert "'hinge'" in found["5"]
    assert read(robot(link("a"), negative, joint("j", "revolute", "a", "b"))).links  # --inertia says what becomes of it


def test_a_cycle_and_two_parents_are_refused() -> None:
    cycle = robot(link("r"), link("a"), link("b"), joint("j1", "fixed", "a", "b"), joint("j2", "fixed", "b", "a"))
    assert "in a circle: j1 → j2 → j1" in faults(cycle)["6"]
    twice = robot(link("r"), link("a"), joint("j1", "fixed", "r", "a"), joint("j2", "revolute", "r", "a"))
    assert "the child of j1 and of j2" in faults(twice)["6"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('<!DOCTYPE robot [<!ENTITY e SYSTEM "file:///etc/passwd">]><robot name="r"/>', "document type"),
        ('<robot xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include href="other.urdf"/></robot>', "XInclude"),
        ('<robot xmlns:xacro="http://ros.org/wiki/xacro"><xacro:macro name="m"/></robot>', "macro"),
        ('<robot><xacro:macro name="m"/></robot>', "macro"),
        ('<robot><xi:include href="other.urdf"/></robot>', "XInclude"),
        ('<robot><link drake:a="1"></robot>', "no XML"),
        ('<!DOCTYPE robot [<!ENTITY e "x">]><robot><drake:a b="&e;"/></robot>', "document type"),
        ('<robot><link name="${name}"/></robot>', "expand the macros"),
        ("<robot><link></robot>", "no XML"),
        ("<sdf/>", "<sdf>"),
        ("<robot/>", "no link"),
        (f"<robot>{'<a>' * 300}{'</a>' * 300}</robot>", "nested too deep"),
    ],
)
def test_what_is_no_robot_is_refused(text: str, words: str) -> None:
    with pytest.raises(ModelError, match="cannot be read") as caught:
        read(text)
    assert words in str(caught.value)


def test_a_file_of_many_megabytes_is_not_parsed() -> None:
    with pytest.raises(ModelError, match="more than 32 MB"):
        read_urdf(b" " * (32 * 2**20 + 1), PATH)


def test_prefixes_that_are_declared_nowhere_are_taken_as_if_they_were() -> None:
    """Public files have them, and tools that know nothing of namespaces take these files."""
    text = robot(link("a"), link("b"), joint("j", "revolute", "a", "b", '<limit drake:acceleration="2" effort="1"/>'))
    text = text.replace("</robot>", '<drake:collision_filter_group name="g"/></robot>')
    declared = text.replace("<robot", '<robot xmlns:drake="http://drake.mit.edu"')
    assert read(text).notes == read(declared).notes
    assert "<collision_filter_group>" in " ".join(read(text).notes)
    assert read(text).joints[0].limits == read(declared).joints[0].limits


@pytest.mark.parametrize(
    ("element", "note"),
    [
        (
            '<gazebo reference="j"><springStiffness>9</springStiffness></gazebo>',
            "<springStiffness> in <gazebo> of j acts",
        ),
        ("<gazebo><joint name='loop' type='revolute'/></gazebo>", "<joint> in <gazebo> acts"),
        ('<gazebo reference="a"><gravity>false</gravity></gazebo>', "<gravity> in <gazebo> of a acts"),
        ('<gazebo reference="a"><gravity>true</gravity></gazebo>', "<gazebo> in <robot> is left out: it does not move"),
        ('<gazebo reference="a"><turnGravityOff>false</turnGravityOff></gazebo>', "it does not move the robot"),
        ('<loop_joint name="pin"/>', "loop_joint pin is left out, which leaves its loop open"),
    ],
)
def test_what_other_tools_take_for_the_motion_is_not_called_without_effect(element: str, note: str) -> None:
    notes = " ".join(read(robot(link("a"), link("b"), joint("j", "revolute", "a", "b"), element)).notes)
    assert note in notes
    assert ("does not move the robot" in notes) == ("does not move" in note)


def test_what_acts_elsewhere_in_a_joint_is_named_with_its_place_here() -> None:
    properties = '<rotor_inertia>1</rotor_inertia><joint_properties damping="1"/>'
    notes = " ".join(read(robot(link("a"), link("b"), joint("j", "revolute", "a", "b", properties))).notes)
    assert "<rotor_inertia> in joint j is left out: it counts in the actuator" in notes
    assert "<joint_properties> in joint j is left out: damping and friction count in <dynamics>" in notes


def test_extensions_of_other_tools_are_left_out_and_reported() -> None:
    text = robot(link("a"), link("b"), joint("j", "revolute", "a", "b"), "<gazebo/>", "<vendor_thing/>", name="")
    notes = " ".join(read(text).notes)
    assert "<gazebo>" in notes
    assert "<vendor_thing>" in notes
    assert "has no name" in notes
