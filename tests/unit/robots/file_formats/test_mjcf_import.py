"""What an MJCF file says, and every fault of one that is wrong, at once and with its line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from unit.robots.mjcf_texts import DEGREES, EVERYTHING, mujoco_test_model

from mb2fmu.errors import ModelError
from mb2fmu.robots.description.solid_inertia import form_primitive_solid_inertia
from mb2fmu.robots.file_formats.mjcf_import import read_mjcf
from mb2fmu.robots.robot_loading import read_included_robot_file

PATH = Path("test.xml")


def faults(text: str, path: Path = PATH) -> dict[str, str]:
    """What is wrong, by place."""
    with pytest.raises(ModelError) as caught:
        read_mjcf(text.encode(), path, read_included_robot_file)
    found: dict[str, str] = {}
    for fault in caught.value.faults:
        found[fault.where] = f"{found.get(fault.where, '')} {fault.what}".strip()
    return found


def body(*inside: str) -> str:
    """A file with one body, its contents a line each from line 3."""
    lines = "\n".join(inside)
    return f'<mujoco model="m">\n<worldbody><body name="b"><geom size="1"/>\n{lines}\n</body></worldbody></mujoco>'


def test_what_is_left_out_or_assumed_is_reported() -> None:
    robot = read_mjcf(EVERYTHING.encode(), PATH, read_included_robot_file)
    notes = " | ".join(robot.notes)
    assert "contact is left out" in notes
    assert "tip" in {link.name for link in robot.links}
    nameless = read_mjcf(DEGREES.encode(), PATH, read_included_robot_file)
    assert "called after its file" in " | ".join(nameless.notes)
    assert sum(link.inertial.mass for link in nameless.links if link.inertial) == pytest.approx(3.0)


def test_everything_of_mujocos_own_model_that_is_not_honoured_is_refused_by_name() -> None:
    found = faults(mujoco_test_model().decode())
    reported = " | ".join(found.values())
    for words in ("density=", "viscosity=", "gravcomp=", "<spatial", "<intvelocity>", "site=",
                  'dyntype="filter"', 'dyntype="integrator"', "actearly="):  # fmt: skip
        assert words in reported


@pytest.mark.parametrize(
    ("inside", "word"),
    [
        ('<joint type="hnge"/>', "type"),
        ('<joint axis="0 0 0"/>', "is zero"),
        ('<joint damping="nan"/>', "damping"),
        ('<joint damping="-1"/>', "damping of joint"),
        ('<joint dampnig="1"/>', "dampnig"),
        ('<joint range="1 -1"/>', "range"),
        ('<joint class="no"/>', "class 'no'"),
        ('<joint type="ball" stiffness="1" limited="false"/>', "ball joint"),
        ('<inertial mass="nan" diaginertia="1 1 1"/>', "mass"),
        ('<inertial mass="1"/>', "diaginertia"),
        ('<geom quat="1 0 0 0" euler="1 0 0" size="1"/>', "several orientations"),
        ('<geom type="box" size="1 1"/>', "size"),
        ('<geom size="-1"/>', "size"),
        ('<geom type="mesh" mesh="no" mass="0"/>', "none of <asset>"),
        ('<body name="c" quat="0 0 0 0"/>', "is zero"),
        ('<composite type="grid"/>', "<composite>"),
        ('<replicate count="3"/>', "<replicate>"),
        ('<body name="c"><freejoint/></body>', "free joint"),
        ('<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="x"/>', "XInclude"),
    ],
)
def test_a_fault_is_reported_with_its_line(inside: str, word: str) -> None:
    assert word in faults(body(inside))["test.xml:3"]


def test_what_says_that_its_effect_is_not_there_is_no_fault() -> None:
    inside = '<body name="a" mocap="false" gravcomp="0"><joint springdamper="0 0"/></body>'
    text = f"<mujoco><worldbody>{inside}</worldbody></mujoco>"
    assert read_mjcf(text.encode(), PATH, read_included_robot_file).joints
    found_faults = faults(text.replace('"0"', '"0.5"').replace("false", "true").replace("0 0", "0 1"))
    assert len(found_faults) == 1
    assert all(word in found_faults["test.xml:1"] for word in ("mocap=", "gravcomp=", "springdamper="))


def test_all_faults_are_reported_at_once() -> None:
    text = body('<joint name="j" axis="0 0 0"/>', '<geom type="cube" size="1"/>', '<joint name="j" stiffness="-2"/>')
    tail = (
        '<actuator>\n<motor joint="k"/><muscle joint="j"/></actuator><tendon><fixed><joint joint="x" coef="1"/></fixed>'
    )
    tail += '</tendon>\n<equality><connect body1="b" body2="w"/><flex/><joint joint1="j" joint2="q"/></equality>'
    tail += "<extension/></mujoco>"
    found_faults = " | ".join(faults(text.replace("</mujoco>", tail)).values())
    for words in ("axis of joint j", '"cube"', "joints are called j", "stiffness of joint j", "'k'", "<muscle>", "'x'",
                  "'w'", "<flex>", "'q'", "<extension>"):  # fmt: skip
        assert words in found_faults


@pytest.mark.parametrize("row", ['<weld body1="b" body2="b"/>', '<connect body1="b" body2="b" anchor="0 0 0"/>'])
def test_a_loop_of_a_body_with_itself_is_refused(row: str) -> None:
    text = body('<joint name="j"/><geom size="1"/>').replace("</mujoco>", f"\n<equality>{row}</equality></mujoco>")
    assert "connects b with itself" in " ".join(faults(text).values())


def test_two_bodies_of_one_name_are_one_fault() -> None:
    inner = '<joint name="j"/><geom size="1"/><body name="b"><joint name="k"/><geom size="1"/></body>'
    (reported,) = faults(body(inner)).values()
    assert "2 links are called b" in reported
    assert "itself" not in reported


def test_included_files_stand_in_the_folder_and_their_lines_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "robot.xml"
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "a.xml").write_text(
        '<mujoco>\n<body name="a"><joint axis="0 0 0"/>\n<geom size="1"/></body></mujoco>'
    )
    text = '<mujoco><worldbody><include file="parts/a.xml"/></worldbody></mujoco>'
    assert "axis" in faults(text, path)["parts/a.xml:2"]
    (tmp_path / "parts" / "a.xml").write_text(
        '<mujoco><body name="a"><joint name="j"/><geom size="1"/></body></mujoco>'
    )
    assert [joint.name for joint in read_mjcf(text.encode(), path, read_included_robot_file).joints] == ["j"]
    for name in ("../robot.xml", "/etc/hostname", "parts/../../x.xml", "none.xml", "robot.xml", ""):
        assert "include" in " ".join(faults(text.replace("parts/a.xml", name), path).values())
    (tmp_path / "parts" / "a.xml").write_text('<mujoco><include file="parts/a.xml"/></mujoco>')
    assert "twice" in " ".join(faults(text, path).values())
    (tmp_path / "link.xml").symlink_to("/etc/hostname")
    assert "include" in " ".join(faults(text.replace("parts/a.xml", "link.xml"), path).values())


def test_nested_defaults_without_end_and_entities_are_refused() -> None:
    deep = "<default>" * 5000 + "</default>" * 5000
    assert "nested too deep" in " ".join(faults(f"<mujoco>{deep}</mujoco>").values())
    assert "no name" in " ".join(faults("<mujoco><default><default/></default><worldbody/></mujoco>").values())
    found_faults = " ".join(
        faults('<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/hostname">]><mujoco>&e;</mujoco>').values()
    )
    assert "document type" in found_faults


@pytest.mark.parametrize("kind", ["sphere", "capsule", "cylinder", "ellipsoid", "box"])
def test_moments_of_solids_are_those_of_many_points(kind: str) -> None:
    """A grid of points inside each solid."""
    size = np.array([0.3, 0.2, 0.5][: {"sphere": 1, "capsule": 2, "cylinder": 2}.get(kind, 3)])
    if kind in {"capsule", "cylinder"}:
        size = np.array([0.3, 0.4])
    reach = 0.8
    axis = np.linspace(-reach, reach, 161)
    step = axis[1] - axis[0]
    x, y, z = np.meshgrid(axis, axis, axis, indexing="ij")
    beyond = np.maximum(np.abs(z) - size[-1], 0.0)
    inside = {
        "sphere": x**2 + y**2 + z**2 <= size[0] ** 2,
        "capsule": x**2 + y**2 + beyond**2 <= size[0] ** 2,
        "cylinder": (x**2 + y**2 <= size[0] ** 2) & (beyond == 0),
        "ellipsoid": (x / size[0]) ** 2 + (y / size[1 % len(size)]) ** 2 + (z / size[-1]) ** 2 <= 1,
        "box": (np.abs(x) <= size[0]) & (np.abs(y) <= size[1 % len(size)]) & (beyond == 0),
    }[kind]
    solid = form_primitive_solid_inertia(kind, size)
    assert np.sum(inside) * step**3 == pytest.approx(solid.volume, rel=0.06)
    points = np.array([x[inside], y[inside], z[inside]]) ** 2
    assert np.diag(solid.inertia) == pytest.approx(np.mean(np.sum(points, axis=0) - points, axis=1), rel=0.06)
