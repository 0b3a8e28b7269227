"""The whole way of a robot description, as a user goes it."""

from __future__ import annotations

import json
from pathlib import Path
from zipfile import ZipFile

import pytest
from click.testing import CliRunner, Result
from shorter_validations import shorter_validations
from unit.robots.robot_texts import ARM

from mb2fmu.cli import commands

WITH = ("j1.desired_acceleration", "j1.required_effort", "mass_matrix[3,1]", "j3.gravity_effort", "tool.jacobian[6,3]")


def mb2fmu(*words: str | Path, code: int = 0) -> Result:
    done = CliRunner().invoke(commands, list(map(str, words)), prog_name="mb2fmu")
    assert done.exit_code == code, done.output
    return done


def test_a_robot_description_becomes_a_fmu(tmp_path: Path) -> None:
    """It is judged by night; by day the one that bends is, below."""
    assert_exported("export", tmp_path)


@pytest.mark.repeats
def test_a_robot_description_becomes_a_proven_fmu(tmp_path: Path) -> None:
    assert_exported("run", tmp_path, "--json", tmp_path / "verdict.json")
    assert "independent import" in (tmp_path / "verdict.json").read_text()


def assert_exported(command: str, tmp_path: Path, *options: str | Path) -> None:
    path = tmp_path / "arm.urdf"
    path.write_text(ARM)
    asked = ["--set", "stop=0.5", "--friction", "ignore", "--with", "inverse-dynamics,mass-matrix"]
    done = mb2fmu(command, path, "-o", tmp_path / "out", *asked, "--with", "gravity-torques,jacobian:tool", *options)
    assert "Coulomb friction is left out: joint j1" in done.stderr
    with ZipFile(tmp_path / "out" / "test.fmu") as unit:
        description = unit.read("modelDescription.xml").decode()
        terminals = unit.read("terminalsAndIcons/terminalsAndIcons.xml").decode()
    for name in ("j1.angle", "j1.speed", "j1.effort", "j3.position", "jm.angle", "gravity", "j1.damping", *WITH):
        assert f'name="{name}"' in description
    assert 'name="j3"' in terminals


BENDING = """
start = { shoulder = 0.4, elbow = 0.3 }
reactions = ["wrist"]
energy = true
stop = 0.2
[flexible.forearm]
length = 0.7
E = 70e9
rho = 2700
section = { width = 0.02, height = 0.03 }
modes = { bending_y = 1, bending_z = 1 }
damping = 0.01
scale = 10
"""


def test_a_robot_whose_forearm_bends_becomes_a_proven_fmu(tmp_path: Path) -> None:
    path = tmp_path / "arm.urdf"
    path.write_text((Path(__file__).parents[1] / "unit/robots/flexible_links/bending_arm.urdf").read_text())
    (tmp_path / "arm.toml").write_text(BENDING)
    with shorter_validations():
        done = mb2fmu("run", path, "-o", tmp_path / "out", "--json", tmp_path / "verdict.json")
    assert "link forearm bends: mass 1.2 kg and inertia of the file are replaced" in done.stderr
    verdict = json.loads((tmp_path / "verdict.json").read_text())
    text = json.dumps(verdict)
    for words in ("independent import", "full mass matrix of their nodes", "energy balance", "wrist.reaction.force.x"):
        assert words in text


def test_a_wrong_robot_file_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "arm.urdf"
    path.write_text(ARM.replace('child link="l2"', 'child link="l9"'))
    done = mb2fmu("export", path, "-o", tmp_path / "out", code=2)
    assert "l9, which is no link" in done.stderr
    assert not (tmp_path / "out").exists()
