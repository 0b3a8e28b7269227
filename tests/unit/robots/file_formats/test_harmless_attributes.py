"""A misspelt attribute is a fault where it may move something, and a note where it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from mb2fmu import Model
from mb2fmu.errors import ModelError

HAND = """
<robot name="hand">
<link name="palm"/>
<link name="finger"><inertial><origin xyz="0.03 0 0"/><mass value="0.03"/>
<inertia ixx="1e-6" iyy="1e-5" izz="1e-5" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="sensor">{sensor}</link>
<joint name="knuckle" type="revolute"><parent link="palm"/><child link="finger"/><axis xyz="0 0 1"/>
<limit lower="0" upper="1.5" effort="1" velocity="8"/>{more}</joint>
<joint name="pad" type="fixed"><parent link="finger"/><child link="sensor"/>
<origin rrpy="-1.4 0.2 -0.4" xyz="0.05 0.02 0"/></joint></robot>
"""
MASS = '<inertial><mass value="0.01"/><inertia ixx="1e-6" iyy="1e-6" izz="1e-6" ixy="0" ixz="0" iyz="0"/></inertial>'


def test_the_pose_of_a_frame_without_mass_moves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "hand.urdf"
    path.write_text(HAND.format(sensor="", more=""), encoding="utf-8")
    notes = Model.from_urdf(path).mechanics.notes
    assert any("rrpy" in note and "did you mean rpy" in note for note in notes)


def test_the_pose_of_a_mass_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "hand.urdf"
    path.write_text(HAND.format(sensor=MASS, more=""), encoding="utf-8")
    with pytest.raises(ModelError, match="cannot have the attribute rrpy"):
        Model.from_urdf(path)


@pytest.mark.parametrize(("more", "expected"), [
    ('<dynamics dampng="0.5"/>', "dynamics> cannot have the attribute dampng"),
    ('<mimic joint="pad" multiplyer="2"/>', "mimic> cannot have the attribute multiplyer"),
    ('<mimic jont="pad"/>', "mimic> cannot have the attribute jont"),
    ('<axis xzy="0 1 0"/>', "axis> cannot have the attribute xzy"),
])  # fmt: skip
def test_a_misspelt_attribute_of_a_joint_that_moves_is_the_one_fault(tmp_path: Path, more: str, expected: str) -> None:
    path = tmp_path / "hand.urdf"
    text = HAND.replace('<axis xyz="0 0 1"/>', "") if "axis" in more else HAND
    path.write_text(text.format(sensor="", more=more), encoding="utf-8")
    with pytest.raises(ModelError) as caught:
        Model.from_urdf(path)
    (fault,) = caught.value.faults
    assert expected in fault.what


def test_a_vendors_attribute_is_reported_and_refuses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "hand.urdf"
    text = HAND.replace('<link name="palm"/>', '<link name="palm" colour="red"/>')
    path.write_text(text.format(sensor="", more='<dynamics damping="0.1" mu_coulomb="1"/>'), encoding="utf-8")
    notes = Model.from_urdf(path).mechanics.notes
    assert "the attribute mu_coulomb of <dynamics> is not known and left out" in notes
    assert "the attribute colour of <link> is not known and left out" in notes
