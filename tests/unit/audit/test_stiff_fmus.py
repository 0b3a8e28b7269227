"""What a right FMU of a stiff mechanism says of its derivatives is no fault."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest

from mb2fmu import Model, pipeline
from mb2fmu.audit import audit

FINGER = """<robot name="finger"><link name="palm"/>
<link name="a"><inertial><origin xyz="0 0 0.02"/><mass value="0.02"/>
  <inertia ixx="1e-6" iyy="1e-6" izz="1e-6" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j" type="revolute"><parent link="palm"/><child link="a"/><axis xyz="0 1 0"/>
  <limit effort="50" velocity="9" lower="-3" upper="3"/><dynamics damping="3"/></joint>
<link name="b"><inertial><origin xyz="0 0 0.02"/><mass value="0.01"/>
  <inertia ixx="1e-6" iyy="1e-6" izz="1e-6" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="k" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/><origin xyz="0 0 0.1"/>
  <limit effort="50" velocity="9" lower="-3" upper="3"/><dynamics damping="10"/></joint></robot>"""


@pytest.fixture(scope="module")
def unit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """By the explicit method, for nobody says that it is stiff."""
    path = tmp_path_factory.mktemp("finger") / "finger.urdf"
    path.write_text(FINGER)
    model = Model.from_urdf(path)
    model.experiment(stop=1.0, step=0.01, signals=model.default_experiment.signals)
    return pipeline.export(model, path.parent, fmi="3").path


def slopes(unit: Path) -> list[str]:
    """What the auditor says of them."""
    return [each.where for each in audit(unit, only=["derivative.slope"], run_checkers=False).findings]


def test_errors_that_dampers_magnify_go_with_the_tolerance(unit: Path) -> None:
    """Speeds are within 1e-8 of their nominal, and slopes 1e6 times as far off."""
    assert slopes(unit) == []


@pytest.mark.repeats
def test_a_slope_of_another_state_stays_a_fault(unit: Path, tmp_path: Path) -> None:
    wrong = tmp_path / unit.name
    with zipfile.ZipFile(unit) as old, zipfile.ZipFile(wrong, "w") as new:
        for item in old.infolist():
            content = old.read(item)
            if item.filename == "modelDescription.xml":
                own, other = re.findall(r'derivative="(\d+)"', content.decode())[:2]
                content = content.replace(f'derivative="{own}"'.encode(), f'derivative="{other}"'.encode())
            new.writestr(item, content)
    found = slopes(wrong)
    assert any("CoSimulation" in each and "der(j.angle)" in each for each in found)
