"""All URDF files of the package example-robot-data: they move as in Pinocchio, or are refused by link or joint."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

SCRIPT = runpy.run_path(str(Path(__file__).parents[3] / "scripts" / "check_robots"))
FILES = SCRIPT["urdf_files"](SCRIPT["examples"]())

ALWAYS_REFUSED = {
    "alex_psyonic_hands.urdf": "joint Left_index_q2 mimics index_q1, which is no joint",
    "romeo.urdf": "joint LHand moves link LFinger11Link, which has no mass",
    "romeo_laas_small.urdf": "joint l_gripper_joint moves link l_gripper, which has no mass",
    "ur3.urdf": "the robot has no link",
}
REFUSED = {
    "fixed": ALWAYS_REFUSED
    | dict.fromkeys(["iris_simple.urdf", "quadrotor_base.urdf"], "the robot has no joint that moves"),
    "floating": ALWAYS_REFUSED,
}


def check(file: Path, base: str, states: int) -> None:
    verdict, text = SCRIPT["judged"](file, base, "keep", states)
    expected = REFUSED[base].get(file.name)
    assert verdict == ("refused" if expected else "right"), text
    assert (expected or "") in text


def test_all_robots_of_the_package_are_there() -> None:
    assert len(FILES) == 69
    assert set(REFUSED["fixed"]) <= {file.name for file in FILES}


BY_DAY = {"anymal0", "baxter", "finger_edu", "hyq_no_sensors", "panda", "so100", "talos_left_arm", "xarm7"}
"""Legs, two arms, arms and hands of several makers, and what is refused; all others are known by night."""


@pytest.mark.parametrize(
    "file", [f for f in FILES if f.stem in BY_DAY or f.name in REFUSED["fixed"]], ids=lambda file: file.stem
)
def test_a_public_robot_moves_as_in_pinocchio(file: Path) -> None:
    check(file, "fixed", 4)


@pytest.mark.repeats
@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_at_200_states(file: Path, base: str) -> None:
    check(file, base, 200)
