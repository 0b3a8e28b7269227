"""What users get wrong, as the command tells it: every fault, its line, a remedy; nothing that was found is lost."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyarrow import parquet

from mb2fmu.cli import commands

Units = dict[str, dict[str, Path]]

SYSTEM = """
from mb2fmu import CoupledSystem


def bad() -> CoupledSystem:
    system = CoupledSystem("Bad")
{lines}
    system.experiment(stop=0.1, step=0.01)
    return system
"""

FAILING = """
import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Model


def failing() -> Model:
    x, v, s = me.dynamicsymbols("x v s")
    m, t = sm.Symbol("m"), me.dynamicsymbols._t
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    loads = [(P, (s - sm.log(sm.Rational(1, 20) - t)) * N.x)]
    kane = me.KanesMethod(N, [x], [v], [x.diff() - v], bodies=[me.Particle("b", P, m)], forcelist=loads)
    model = Model("Failing", kane)
    model.parameter(m, 1.0, "kg")
    model.input(s, 0.0, "N")
    model.coordinate(x, 0.0, "m")
    model.speed(v, 0.0, "m/s")
    model.experiment(stop=0.04, step=0.01)
    return model
"""


def read_message(folder: Path, *lines: str, name: str = "bad.py") -> str:
    """What the command says of a system."""
    (folder / name).write_text(SYSTEM.format(lines="\n".join(f"    system.{line}" for line in lines)))
    done = CliRunner().invoke(commands, ["system", str(folder / name), "-o", str(folder / "out"), "--parquet"])
    assert done.exit_code in {2, 3}, done.output
    assert "Traceback" not in done.output
    return done.output


def test_all_components_that_cannot_be_had_are_reported_with_their_lines(tmp_path: Path) -> None:
    (tmp_path / "text.fmu").write_text("no archive")
    said = read_message(
        tmp_path, 'component("a", "none.fmu")', 'component("b", "none.py")', 'component("c", "text.fmu")',
        'component("d", "bad.py")',
    )  # fmt: skip
    for place, words in (
        ("bad.py:7, a:", "No such file"), ("bad.py:8, b:", "there is no such file"),
        ("bad.py:9, c:", "no whole ZIP archive"), ("bad.py:10, d:", "no function is annotated -> Model"),
    ):  # fmt: skip
        (line,) = [each for each in said.splitlines() if place in each]
        assert words in line


def test_names_and_numbers_are_reported_with_what_else_is_wrong(tmp_path: Path, mass_units: Units) -> None:
    """With components that cannot be had, and, where all can be, with wrong connections."""
    twice, nowhere = f'component("a", "{mass_units["2"]["left"].as_posix()}")', 'component("b", "none.fmu")'
    said = read_message(tmp_path, twice, twice, nowhere, 'connect("a.nothing", "c.x")')
    assert "two components are called a" in said
    assert "No such file" in said
    said = read_message(tmp_path, twice, twice, 'connect("a.nothing", "a.F")', 'connect("a.x", "c.x")')
    assert "two components are called a" in said
    assert "a has no variable or terminal nothing" in said
    assert "'c.x' names no component" in said


def test_what_is_no_system_is_reported_as_such(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("import mb2fmu\n\n\ndef build() -> mb2fmu.Model: ...\n")
    (tmp_path / "unit.fmu").write_text("")
    for name, words in (
        ("model.py", "write  def build() -> CoupledSystem"),
        ("unit.fmu", "give the Python file that has the system function, or an .ssp"),
        ("none.py", "no system could be loaded"),
    ):
        done = CliRunner().invoke(commands, ["system", str(tmp_path / name)])
        assert done.exit_code == 2
        assert words in done.output


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (['connect("left.v", "right.s")', 'connect("right.force", "left.F")'], "m/s is not m"),
        (['connect("left.x", "right.s")', 'connect("right.x", "right.s")'], "right.s has two sources"),
        (['component("Left", "{right}")'], "two components are called Left"),
    ],
)
def test_wrong_connections_are_reported(mass_units: Units, tmp_path: Path, lines: list[str], words: str) -> None:
    units = {name: path.as_posix() for name, path in mass_units["2"].items()}
    both = [f'component("{name}", "{path}")' for name, path in units.items()]
    assert words in read_message(tmp_path, *both, *(line.replace("{right}", units["right"]) for line in lines))


def test_all_faults_of_a_system_are_reported_once(mass_units: Units, tmp_path: Path) -> None:
    """Both ends of a connection, values beyond bounds and what is no number; a bond that only follows is not."""
    left, right = (mass_units["2"][name].as_posix() for name in ("left", "right"))
    said = read_message(
        tmp_path, f'component("left", "{left}", values={{"m": -1.0, "x": float("inf")}})',
        f'component("right", "{right}")',
        'connect("left.y", "right.z")', 'connect("right.force", "left.F", transformation=(float("nan"), 0.0))',
        'parameter("k", "four", to=["left.k"])', 'bond("b", "left.F * left.v", "-right.force * der(right.s)")',
    )  # fmt: skip
    for place, words in (
        ("bad.py:7, left.m:", "-1.0 is below the least value of the FMU"),
        ("bad.py:7, left.x:", "inf is no finite number"),
        ("bad.py:9:", "left has no variable or terminal y"),
        ("bad.py:9:", "right has no variable or terminal z"),
        ("bad.py:10:", "factor and offset are nan and 0.0"),
        ("bad.py:11, k:", "'four' is no finite number"),
    ):
        assert len([each for each in said.splitlines() if place in each and words in each]) == 1, words
    assert said.count("•") == 6


def test_a_failure_in_mid_run_keeps_what_was_found(
    mass_units: Units, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the user's folder has a file with the name of a module of Python."""
    (tmp_path / "failing.py").write_text(FAILING)
    (tmp_path / "platform.py").write_text("raise RuntimeError\n")
    monkeypatch.chdir(tmp_path)
    said = read_message(
        tmp_path, 'component("weak", "failing.py")', f'component("right", "{mass_units["2"]["right"].as_posix()}")',
        'connect("right.force", "weak.s")', 'connect("weak.x", "right.s")',
    )  # fmt: skip
    assert "weak failed while Bad ran" in said
    assert "the last good point is t = 0.04 s, point 4" in said
    assert "log: weak: fmi2DoStep: step from 0.04 s" in said
    with (tmp_path / "out" / "Bad.csv").open() as stream:
        assert [float(row["time"]) for row in csv.DictReader(stream)] == pytest.approx([0.0, 0.01, 0.02, 0.03, 0.04])
    kept = parquet.read_table(tmp_path / "out" / "Bad.parquet")
    assert kept["time"].to_pylist() == pytest.approx([0.0, 0.01, 0.02, 0.03, 0.04])
    assert kept.schema.field("weak.x").metadata == {b"unit": b"m"}


def test_results_are_kept_where_the_whole_cannot_be_had(mass_units: Units, tmp_path: Path) -> None:
    units = {name: path.as_posix() for name, path in mass_units["2"].items()}
    said = read_message(
        tmp_path, *(f'component("{name}", "{path}")' for name, path in units.items()),
        'connect("left.x", "right.s")', 'connect("right.force", "left.F")', 'monolith("none.py", {"left.x": "x1"})',
    )  # fmt: skip
    assert "there is no such file" in said
    assert len((tmp_path / "out" / "Bad.csv").read_text().splitlines()) == 12
