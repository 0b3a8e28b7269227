"""Published tables against FMUs, by nothing but the command: ``validate NAME.fmu --data …`` and ``--points …``."""

import json
import math
from pathlib import Path

import pytest
from click.testing import CliRunner
from representatives import by_night

from mb2fmu import pipeline
from mb2fmu.cli import commands

ROOT = Path(__file__).parents[2]
CASES = Path(__file__).parent / "cases"


@pytest.fixture(scope="module")
def unit(tmp_path_factory):
    """Name of a model → its unit, exported once."""
    made = {}

    def export(model):
        if model not in made:
            path = ROOT / "models" / f"{model}.py"
            made[model] = pipeline.export(path, tmp_path_factory.mktemp(model)).path
        return made[model]

    return export


def validate(*arguments):
    """Exit code, and the record of every column by kind and name."""
    done = CliRunner().invoke(commands, ["validate", *map(str, arguments), "--json", "-"], prog_name="mb2fmu")
    assert done.exit_code in {0, 1}, done.output
    tables = json.loads(done.stdout)["tables"]
    return done.exit_code, {(each["kind"], c["name"]): c for each in tables for c in each["columns"]}


def test_three_body_pendulum(unit, tmp_path):
    case = json.loads((CASES / "three_body_pendulum.json").read_text())
    given, p = case["inputs"], case["inputs"]["p"]
    angles = {f"q{k + 1} [deg]": float(given["q"][k].removesuffix("deg")) for k in range(2)}
    speeds = {f"u{k + 1}": value for k, value in enumerate(given["u"])}
    free = {"m": p["m"], "l": p["l"], "g": p["g"], "k_t": p["kt"], "k_l": p["kl"]}
    slopes = {f"der(u{k + 1})": float(value) for k, value in enumerate(case["ud"])}
    point = angles | speeds | free | slopes | {"q3": given["q"][2]}
    (tmp_path / "book.json").write_text(json.dumps([point]))
    code, columns = validate(unit("three_body_pendulum"), "--points", tmp_path / "book.json", "--tolerance", "1e-12")
    assert code == 0
    assert {name for _, name in columns} == set(slopes)
    point["der(u2)"] += 3e-12
    (tmp_path / "book.json").write_text(json.dumps([point]))
    code, columns = validate(unit("three_body_pendulum"), "--points", tmp_path / "book.json", "--tolerance", "1e-12")
    assert code == 1
    assert [name for (_, name), c in columns.items() if c["verdict"] == "failed"] == ["der(u2)"]


@pytest.mark.parametrize(
    ("model", "file", "renamed", "tolerances"),
    [
        ("msl_pendulum", "msl_Pendulum.csv", {}, ["rev.phi=1e-5", "rev.w=1e-4"]),
        *by_night(
            (
                "msl_planar_four_bar",
                "msl_PlanarFourbar.csv",
                {"revolute1.phi": "phi1", "revolute1.w": "w1"},
                ["phi1=1e-3", "w1=1e-2"],
            )
        ),
    ],
)
def test_modelica_s_results(unit, tmp_path, model, file, renamed, tolerances):
    text = (CASES / file).read_text()
    for theirs, ours in renamed.items():
        text = text.replace(theirs, ours, 1)
    (tmp_path / file).write_text(text)
    options = [word for each in tolerances for word in ("--tolerance", each)]
    code, columns = validate(unit(model), "--data", tmp_path / file, *options)
    assert code == 0, {key: (c["error"], c["tolerance"]) for key, c in columns.items()}
    assert {kind for kind, _ in columns} == {"CoSimulation", "ModelExchange"}
    assert all(c["count"] == len(text.splitlines()) - 1 for c in columns.values())


def test_another_gravity_is_seen(unit):
    """The pendulum of the table falls at 9.80665 m/s²; at 9.81 it is distinguished."""
    data = ("--data", CASES / "msl_Pendulum.csv", "--tolerance", "rev.phi=1e-5", "--tolerance", "rev.w=1e-4")
    code, columns = validate(unit("msl_pendulum"), *data, "--at", "g=9.81")
    assert code == 1
    assert all(c["verdict"] == "failed" and not math.isnan(c["error"]) for c in columns.values())
