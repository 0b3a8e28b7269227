"""What settings of a robot are refused: all that is wrong at once, and nothing that is right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from unit.robots.robot_texts import ARM

from mb2fmu import pipeline
from mb2fmu.errors import ModelError


@pytest.fixture
def arm(tmp_path: Path) -> Path:
    path = tmp_path / "arm.urdf"
    path.write_text(ARM)
    return path


def faults(path: Path, **settings: object) -> list[str]:
    """What is wrong, where and what."""
    with pytest.raises(ModelError) as caught:
        pipeline.Model.from_urdf(path, **settings)
    return [f"{fault.where} {fault.what}" for fault in caught.value.faults]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"start": {"j1": float("nan")}}, "nan is no finite number"),
        ({"locked": "j1=inf"}, "'inf' is no finite number"),
        ({"speeds": {"j1": "fast"}}, "'fast' is no finite number"),
        ({"gravity": [0, 0, True]}, "True is no finite number"),
        ({"step": 0}, "a number > 0"),
        ({"stop": "-1"}, "a number > 0"),
        ({"locked": "{j1: 0.3}"}, "it is no TOML"),
        ({"locked": "{j1=nan}"}, "nan is no finite number"),
    ],
)
def test_a_number_that_cannot_be_is_refused(arm: Path, settings: dict[str, object], words: str) -> None:
    (reported,) = faults(arm, **settings)
    assert words in reported


@pytest.mark.parametrize("locked", ["j1=0.3,j2=-0.1", "{j1=0.3, j2=-0.1}", {"j1": 0.3, "j2": -0.1}])
def test_a_table_goes_on_a_command_line_as_in_the_side_file(arm: Path, locked: object) -> None:
    model = pipeline.Model.from_urdf(arm, locked=locked, inputs='["j3"]')
    assert model.mechanics.settings.locked == {"j1": 0.3, "j2": -0.1}
    assert model.mechanics.settings.inputs == ("j3",)


def test_a_start_out_of_its_range_is_refused_and_not_moved(arm: Path) -> None:
    (reported,) = faults(arm, start={"j1": 2.5, "j3": 9.0, "j2": 99.0})  # j3 at its bound, j2 without one
    assert "start gives joint j1 2.5, out of its range -2 … 2" in reported
    assert int(reported.split()[0].rpartition(":")[2]) == 1 + next(
        i for i, line in enumerate(ARM.splitlines()) if 'joint name="j1"' in line
    )
    model = pipeline.Model.from_urdf(arm, start={"j1": 2.0})  # the bound itself is in the range
    assert [item.start for item in model.declared if item.name == "j1.angle"] == [2.0]


def test_joints_links_and_loops_that_are_not_are_reported_at_once(arm: Path) -> None:
    loops = [{"frames": ["l1", "l1"], "by": "weld"}, {"frames": ["l1", "what"]}]
    found_faults = " | ".join(
        faults(arm, inputs=["nix"], locked={"zz": 1}, start={"j1": -3}, outputs=["nope"], loops=loops)
    )
    for words in ("the joint nix", "the joint zz", "j1 -3", "'nope', which is no link", "'what', which is no link",
                  "l1 with itself"):  # fmt: skip
        assert words in found_faults
    assert found_faults.count(" | ") == 5


def test_loops_between_two_links_have_names_of_their_own(arm: Path) -> None:
    loops = [{"frames": ["l1", "l4"], "offset": [0.1 * k, 0, 0]} for k in range(3)]
    model = pipeline.Model.from_urdf(arm, loops=loops)
    assert [loop.name for loop in model.mechanics.loops] == ["l1_l4", "l1_l4_2", "l1_l4_3"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"locked": {"j3": 0.1}, "prescribed": ["j3"]}, "locked and prescribed name the joint j3"),
        ({"locked": {"j3": 0.1}, "inputs": ["j3"]}, "inputs and locked name the joint j3"),
        ({"locked": {"j3": 0.1}, "speeds": {"j3": 1.0}}, "locked and speeds name the joint j3"),
        ({"inputs": ["j2"], "prescribed": ["j2"]}, "inputs and prescribed name the joint j2"),
        ({"inputs": ["jf"]}, "inputs names the joint jf, which is fixed"),
        ({"locked": {"jf": 0.1}}, "locked names the joint jf, which is fixed"),
    ],
)
def test_what_the_settings_ask_of_a_joint_does_not_contradict_itself(
    arm: Path, settings: dict[str, object], words: str
) -> None:
    (reported,) = faults(arm, **settings)
    assert words in reported


def test_what_goes_together_is_taken(arm: Path) -> None:
    model = pipeline.Model.from_urdf(arm, prescribed=["j2"], start={"j2": 0.5, "j1": 1.0}, locked={"j3": 0.1})
    assert {"j1.angle", "j2.angle"} <= {item.name for item in model.declared}


def test_a_setting_that_cannot_be_hides_no_other_fault(arm: Path) -> None:
    """Neither joints and links that are not there, nor the side file's faults, nor those of the robot's file."""
    arm.with_suffix(".toml").write_text('step = "often"\n')
    found_faults = " | ".join(faults(arm, base="flaoting", gravity="1 2", locked={"zz": 1}, outputs=["nope"]))
    for words in ("step = 'often'", "base = 'flaoting'", "gravity = '1 2'", "the joint zz", "'nope', which is no link"):
        assert words in found_faults
    assert found_faults.count(" | ") == 4
    arm.write_text(ARM.replace("<mass", "<maas", 1))
    found_faults = " | ".join(faults(arm, base="flaoting"))
    assert "base = 'flaoting'" in found_faults
    assert "<maas>" in found_faults


def test_the_remedy_of_a_negative_mass_is_one(arm: Path) -> None:
    """Whether the file is right otherwise or not."""
    heavy = next(line for line in ARM.splitlines() if "<mass value=" in line)
    wrong = ARM.replace(heavy, re.sub(r'mass value="[^"]*"', 'mass value="-1"', heavy, count=1))
    remedies = set()
    for text in (wrong, wrong.replace('name="j1" type="revolute"', 'name="j1" type="turning"')):
        assert text != ARM
        arm.write_text(text)
        with pytest.raises(ModelError) as caught:
            pipeline.Model.from_urdf(arm)
        remedies |= {fault.remedy for fault in caught.value.faults if "its mass is -1" in fault.what}
    assert len(remedies) == 1
