"""What somebody meets on the first day: one message with what, where and what to do, and no traceback."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

import mb2fmu
from mb2fmu import export
from mb2fmu.cli import commands
from mb2fmu.cli.system_command import _suggest_finer_stepping
from mb2fmu.model.model_template import write_model_template
from mb2fmu.systems.port_and_bond_records import CommunicationStepSettings

ROOT = Path(__file__).parents[2]


def read_message(*words: str) -> str:
    done = CliRunner().invoke(commands, [*words])
    assert done.exit_code in {1, 2, 3}, done.output
    assert "Traceback" not in done.output
    return done.output


def test_a_misspelled_method_has_its_neighbour(tmp_path: Path) -> None:
    path = write_model_template("crane", tmp_path)
    path.write_text(path.read_text().replace("model.parameter(", "model.paramater(", 1))
    assert "did you mean parameter?" in read_message("simulate", str(path))


@pytest.mark.parametrize("text", ["<fmiModelDescription", "<foo/>"])
def test_the_cause_is_the_description_that_cannot_be_read(text: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.fmu"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("modelDescription.xml", text)
    for command in ("simulate", "animate"):
        said = read_message(command, str(path))
        assert "modelDescription.xml" in said
        assert "looks like" not in said


def test_a_library_that_is_refused_is_named_with_the_reason(tmp_path: Path) -> None:
    whole = export(ROOT / "models" / "simple_pendulum.py", tmp_path).path
    broken = tmp_path / "broken.fmu"
    with zipfile.ZipFile(whole) as source, zipfile.ZipFile(broken, "w") as target:
        for name in source.namelist():
            is_library = name.startswith("binaries/") and name.endswith((".so", ".dll", ".dylib"))
            target.writestr(name, b"no library" if is_library else source.read(name))
    said = read_message("simulate", str(broken), "--stop", "0.1")
    assert "its library cannot be loaded" in said
    assert "export the FMU again" in said
    assert len(said.splitlines()) <= 5


STOPPING = """
import sympy as sm
import sympy.physics.mechanics as me
from mb2fmu import CoulombFriction, Model

x, v, z = me.dynamicsymbols("x v z")
N, O = me.ReferenceFrame("N"), me.Point("O")
O.set_vel(N, 0)
P = O.locatenew("P", x * N.x)
P.set_vel(N, v * N.x)
a = me.Particle("a", P, sm.Integer(1))
kane = me.KanesMethod(N, [x], [v], [x.diff() - v], bodies=[a], forcelist=[(P, -x * N.x)])


def block() -> Model:
    model = Model("Block", kane)
    model.coordinate(x, 0.0, "m")
    model.speed(v, 1.0, "m/s")
    model.state(z, z**2, 1.0)  # infinite at 1 s
    model.add(CoulombFriction("floor", (O, P, N.x), kinetic=0.1))
    return model
"""


@pytest.mark.parametrize("value", ["None", "[1]", '"l"'])
def test_a_value_that_is_none_is_reported_with_its_line(value: str, tmp_path: Path) -> None:
    path = write_model_template("crane", tmp_path)
    path.write_text(path.read_text().replace("model.parameter(m, 1.0,", f"model.parameter(m, {value},"))
    said = read_message("simulate", str(path))
    assert f"raised by  model.parameter(m, {value}," in said
    assert "is no number" in said


def test_a_table_may_have_decimal_commas(tmp_path: Path) -> None:
    rows = [(0.0, 0.0), (0.5, 0.25), (1.0, -1e-3)]
    point, comma = tmp_path / "point.csv", tmp_path / "comma.csv"
    point.write_text("time,pin.torque\n" + "".join(f"{t},{value}\n" for t, value in rows))
    comma.write_text(point.read_text().replace(",", ";").replace(".", ",").replace("pin,torque", "pin.torque"))
    model = mb2fmu.load(write_model_template("crane", tmp_path))
    ends = [mb2fmu.simulate(model, inputs=table, stop=1.0)["pin.angle"][-1] for table in (point, comma)]
    assert ends[0] == ends[1]


def test_a_model_that_stops_on_the_way_keeps_its_trajectories(tmp_path: Path) -> None:
    path, table = tmp_path / "block.py", tmp_path / "kept.csv"
    path.write_text(STOPPING)
    said = read_message("simulate", str(path), "--stop", "2", "--csv", str(table))
    assert "the trajectories up to t = 1 s are kept" in said
    assert len(table.read_text().splitlines()) == 102
    assert "event_indicator" not in said


def test_a_system_that_is_too_coarse_is_reported_what_to_try_next() -> None:
    coarse, fine = CommunicationStepSettings(step=0.01), CommunicationStepSettings(step=0.01, order=2, passes=20)
    assert _suggest_finer_stepping(coarse).startswith("order=2, passes=20 in system.experiment(...), then step=0.0025")
    assert _suggest_finer_stepping(fine).startswith("step=0.0025 in system.experiment(...)")
