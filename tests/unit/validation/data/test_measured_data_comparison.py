"""The user's own numbers against a unit: an oscillator whose motion and derivatives are known in closed form."""

import json
import math

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.integrate import solve_ivp
from shorter_validations import shorten_validations

from mb2fmu import pipeline
from mb2fmu.cli import commands
from mb2fmu.errors import ToolError, ValidationError
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.fmu.package import read_archive, write_fmu_archive
from mb2fmu.validation import (
    MeasuredDataRunSettings,
    ValidationDataTolerance,
    compare_derivatives_at_table_points,
    compare_fmu_with_measurements,
    read_validation_table,
)

MASS, SPRING, DAMPER, START = 2.0, 50.0, 0.8, 0.1
MODEL = """
import sympy as sm
import sympy.physics.mechanics as me
from mb2fmu import Model


def oscillator() -> Model:
    x, v, force = me.dynamicsymbols("x v force")
    m, k, d = sm.symbols("m k d")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    body = me.Particle("body", P, m)
    load = (P, (force - k * x - d * v) * N.x)
    kane = me.KanesMethod(N, [x], [v], [x.diff() - v], bodies=[body], forcelist=[load])
    model = Model("Oscillator", kane)
    model.parameter(m, 2.0, "kg")
    model.parameter(k, 50.0, "N/m")
    model.parameter(d, 0.8, "N.s/m")
    model.input(force, 0.0, "N")
    model.coordinate(x, 0.1, "m")
    model.speed(v, 0.0, "m/s")
    model.output("pull", -k * x - d * v, "N")
    model.output("angle", x / 2, "rad")
    model.experiment(stop=1.0, step=0.02, tolerance=1e-9)
    return model
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "oscillator.py"
    path.write_text(MODEL)
    return path


@pytest.fixture(scope="module", params=["3", pytest.param("2", marks=pytest.mark.repeats)])
def unit(request, model, tmp_path_factory):
    return pipeline.export(model, tmp_path_factory.mktemp("unit"), fmi=request.param).path


@pytest.fixture(scope="module")
def older(model, tmp_path_factory):
    """FMI 2.0."""
    return pipeline.export(model, tmp_path_factory.mktemp("unit"), fmi="2").path


@pytest.fixture(scope="module")
def other(model, tmp_path_factory):
    """Co-Simulation alone."""
    return pipeline.export(model, tmp_path_factory.mktemp("unit"), backend="python").path


def x_of(t, mass=MASS, spring=SPRING, damper=DAMPER):
    """The free motion from START at rest."""
    decay = damper / (2 * mass)
    omega = math.sqrt(spring / mass - decay**2)
    return START * np.exp(-decay * t) * (np.cos(omega * t) + decay / omega * np.sin(omega * t))


def table(folder, text, name="table.csv"):
    path = folder / name
    path.write_text(text)
    return read_validation_table(path)


def written(folder, head, rows, name="data.csv"):
    lines = [head, *(",".join(repr(float(cell)) if cell != "" else "" for cell in row) for row in rows)]
    return table(folder, "\n".join(lines) + "\n", name)


TIMES = np.array([0.0, 0.013, 0.1, 0.31, 0.8, 1.7])


def test_data_in_other_units_at_uneven_times(unit, older, tmp_path):
    """Milliseconds, millimetres and degrees; the row below the head says how far each may be off."""
    rows = [(1e3 * t, 1e3 * x_of(t), math.degrees(x_of(t) / 2)) for t in TIMES]
    given = written(tmp_path, "time [ms],x [mm],angle[deg]\ntolerance,1e-4,1e-5", rows)
    results = compare_fmu_with_measurements(unit, given, MeasuredDataRunSettings(tolerance=1e-9))
    assert compare_fmu_with_measurements(older, given, MeasuredDataRunSettings(tolerance=1e-9))[1].passed
    assert [result.kind for result in results] == ["CoSimulation", "ModelExchange"]
    for result in results:
        assert result.passed
        assert [(c.name, c.unit, c.count, c.tolerance) for c in result.columns] == [
            ("x", "mm", 6, 1e-4),
            ("angle", "deg", 6, 1e-5),
        ]
        assert max(c.error for c in result.columns) > 0.0


@pytest.mark.parametrize("row", [0, 3, 5])
def test_what_is_off_is_found_where_it_is(unit, tmp_path, row):
    values = x_of(TIMES)
    values[row] += 2e-3
    given = written(tmp_path, "time,x", zip(TIMES, values, strict=True))
    for tolerance, passes in ((1.9e-3, False), (2.1e-3, True)):
        for result in compare_fmu_with_measurements(
            unit, given, MeasuredDataRunSettings(default_tolerance=ValidationDataTolerance(tolerance))
        ):
            (column,) = result.columns
            assert result.passed is passes
            assert (column.row, column.time) == (row + 1, TIMES[row])
            assert column.error == pytest.approx(2e-3, rel=1e-3)
            assert column.expected == values[row]


def test_empty_cells_say_nothing(unit, tmp_path):
    rows = [(0.0, START, ""), (0.5, "", ""), (1.0, x_of(1.0), -999.0)]
    given = written(tmp_path, "time,x,pull", rows)
    result, _ = compare_fmu_with_measurements(
        unit, given, MeasuredDataRunSettings(default_tolerance=ValidationDataTolerance(1e-4))
    )
    assert [(c.name, c.count, c.verdict) for c in result.columns] == [("x", 2, "passed"), ("pull", 1, "failed")]


def test_parts_of_the_largest_magnitude(unit, tmp_path):
    given = written(tmp_path, "time,x\ntolerance,1%", [(0.0, START), (1.0, x_of(1.0) + 0.9e-3)])
    assert given.columns[1].tolerance == ValidationDataTolerance(0.01, relative=True)
    assert all(result.passed for result in compare_fmu_with_measurements(unit, given))
    tighter = MeasuredDataRunSettings(tolerances={"x": ValidationDataTolerance.read("0.8%")})
    assert not any(result.passed for result in compare_fmu_with_measurements(unit, given, tighter))


def test_parameters_and_start_values_are_set(unit, tmp_path):
    stiffer = x_of(TIMES, spring=80.0) * 3.0
    given = written(tmp_path, "time,x", zip(TIMES, stiffer, strict=True))
    settings = MeasuredDataRunSettings(
        starts={"k": 80.0, "x": 3.0 * START}, default_tolerance=ValidationDataTolerance(1e-5), tolerance=1e-9
    )
    assert all(result.passed for result in compare_fmu_with_measurements(unit, given, settings))
    assert not any(
        result.passed
        for result in compare_fmu_with_measurements(
            unit, given, MeasuredDataRunSettings(default_tolerance=ValidationDataTolerance(1e-3))
        )
    )


def test_measured_inputs_drive_the_fmu(unit, tmp_path):
    """Straight lines between the rows; what the steps err is of second order."""
    times = np.linspace(0.0, 1.0, 6)
    force = np.array([0.0, 8.0, -3.0, 5.0, 5.0, 0.0])

    def slope(t, y):
        return [y[1], (np.interp(t, times, force) - SPRING * y[0] - DAMPER * y[1]) / MASS]

    exact = solve_ivp(slope, (0.0, 1.0), [START, 0.0], t_eval=times, rtol=1e-12, atol=1e-12, max_step=0.01)
    pull = -SPRING * exact.y[0] - DAMPER * exact.y[1]
    rows = zip(times, 1e-3 * force, exact.y[0], pull, strict=True)
    given = written(tmp_path, "time,force [kN],x,pull", rows)
    errors = {}
    for step in (0.04, 0.01):
        settings = MeasuredDataRunSettings(default_tolerance=ValidationDataTolerance(0.1), step=step, tolerance=1e-9)
        for result in compare_fmu_with_measurements(unit, given, settings):
            assert result.set_columns == ("force",)
            assert result.passed
            errors[result.kind, step] = result.columns[0].error
    for kind in ("CoSimulation", "ModelExchange"):
        assert errors[kind, 0.01] < errors[kind, 0.04] / 8
    unmoved = written(tmp_path, "time,x", zip(times, exact.y[0], strict=True))
    assert not any(
        result.passed
        for result in compare_fmu_with_measurements(
            unit, unmoved, MeasuredDataRunSettings(default_tolerance=ValidationDataTolerance(1e-2))
        )
    )


def accelerations(x, v, force, spring):
    return (force - spring * x - DAMPER * v) / MASS


def points(folder, error=0.0, seed=3):
    rng = np.random.default_rng(seed)
    rows = [tuple(rng.uniform(-2.0, 2.0, 4)) for _ in range(20)]
    full = [
        (t + 3.0, x, v, 10 * force, 40.0 + x, v, accelerations(x, v, 10 * force, 40.0 + x) + error * (k == 7))
        for k, (t, x, v, force) in enumerate(rows)
    ]
    return written(folder, "time,x,v,force,k,der(x),der(v)", full, "points.csv")


def test_derivatives_at_given_points(unit, tmp_path):
    (result,) = compare_derivatives_at_table_points(
        unit, points(tmp_path), MeasuredDataRunSettings(default_tolerance=ValidationDataTolerance(1e-11))
    )
    assert result.passed
    assert result.kind == "ModelExchange"
    assert result.set_columns == ("x", "v", "force", "k")
    assert [(c.name, c.count) for c in result.columns] == [("der(x)", 20), ("der(v)", 20)]


def test_one_wrong_number_among_points_is_found(unit, tmp_path):
    (result,) = compare_derivatives_at_table_points(
        unit, points(tmp_path, error=1e-9), MeasuredDataRunSettings(default_tolerance=ValidationDataTolerance(1e-11))
    )
    assert [(c.name, c.verdict) for c in result.columns] == [("der(x)", "passed"), ("der(v)", "failed")]
    assert result.columns[1].row == 8
    assert result.columns[1].error == pytest.approx(1e-9, rel=1e-3)


def test_points_as_json_with_what_each_has(unit, tmp_path):
    record = {
        "tolerance": {"pull [kN]": 1e-15, "der(v)": "1e-12%"},
        "points": [
            {"x": 0.2, "pull [kN]": -0.01},
            {"x [mm]": 200, "v": 1.0, "der(v)": accelerations(0.2, 1.0, 0.0, 50.0)},
        ],
    }
    with pytest.raises(ValidationError, match="more than once"):
        table(tmp_path, json.dumps(record), "points.json")
    record["points"][1]["x"] = record["points"][1].pop("x [mm]") / 1000
    (result,) = compare_derivatives_at_table_points(unit, table(tmp_path, json.dumps(record), "points.json"))
    assert result.passed
    assert [(c.name, c.unit, c.count, c.tolerance) for c in result.columns] == [
        ("pull", "kN", 1, 1e-15),
        ("der(v)", "m/s2", 1, pytest.approx(5.4e-14)),
    ]


def test_a_fmu_of_co_simulation_alone_starts_at_the_points(other, tmp_path):
    head = "x,v,force,k,pull"
    rows = [(0.3, -1.0, 4.0, 45.0, -45.0 * 0.3 + DAMPER), (-0.2, 0.5, 0.0, 50.0, 10.0 - DAMPER / 2)]
    (result,) = compare_derivatives_at_table_points(
        other, written(tmp_path, head, rows), MeasuredDataRunSettings(default_tolerance=ValidationDataTolerance(1e-12))
    )
    assert result.passed
    assert result.kind == "CoSimulation"
    with pytest.raises(ValidationError, match="begins at 0 s"):
        compare_derivatives_at_table_points(
            other, points(tmp_path), MeasuredDataRunSettings(default_tolerance=ValidationDataTolerance(1.0))
        )
    data = written(tmp_path, "time,x", zip(TIMES, x_of(TIMES), strict=True))
    (result,) = compare_fmu_with_measurements(
        other, data, MeasuredDataRunSettings(default_tolerance=ValidationDataTolerance(1e-5))
    )
    assert result.passed


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("time,y", "no such variable"),
        ("time,pul", "did you mean pull"),
        ("time,x [s]", "does not measure what the FMU's unit does: m"),
        ("time,x [parsec]", "does not measure"),
        ("time,k", "--at k=VALUE"),
        ("x,pull", "no column time"),
        ("time [m],x", "no unit of time"),
        ("time,force", "nothing is compared"),
        ("time,x,x", "more than once"),
        ("time,", "no name"),
    ],
)
def test_columns_that_do_not_fit_are_reported(unit, tmp_path, head, expected):
    rows = [(float(k), *[1.0] * head.count(",")) for k in range(2)]
    with pytest.raises(ValidationError) as caught:
        compare_fmu_with_measurements(
            unit, written(tmp_path, head, rows), MeasuredDataRunSettings(default_tolerance=ValidationDataTolerance(1.0))
        )
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("time,x\n0,1\n0,2\n", "table.csv:3: time: times must be in every row, rise"),
        ("# at 20 °C\ntime,x\n0,1\n1,2\n\n,3\n2,4\n", "table.csv:6: time: times must be in every row"),
        ("time,x\n-1,1\n0,2\n", "0 or later"),
        ("time,x\n,1\n0,2\n", "in every row"),
        ("time,x\n0,1\n1,2,3\n", ":3: 3 cells below 2 names"),
        ("time,x\n0,one\n", ":2: x: 'one' is no number"),
        ("time,x\n0,nan\n", "is no number"),
        ("time,x\n0,inf\n", "is no number"),
        ("time,x\ntolerance,0\n0,1\n", "is no tolerance"),
        ("time,x\ntolerance,-1%\n0,1\n", "is no tolerance"),
        ("time,x\n", "no rows"),
        ("", "no rows"),
        ("time,x\n0,1\n", "it has no tolerance"),
        ("time,x\ntolerance,1\n0,\n", "is empty"),
        ("time,x\ntolerance,1%\n0,0\n", "0 everywhere"),
        ("time,x,force\ntolerance,1,\n0,1,1\n1,1,\n", "table.csv:4: force: is an input, and has empty cells"),
        ("time,x\ntolerance,1,2\n0,1\n", ":2: 3 cells below 2 names"),
        ('time,x\n0,"1\n1,2\n', ":2: is no line of cells"),
        ("time,x\n0," + "1" * 200_000 + "\n", ":2: is no line of cells"),
    ],
)
def test_tables_that_cannot_be_used_are_reported(unit, tmp_path, text, expected):
    with pytest.raises(ValidationError) as caught:
        compare_fmu_with_measurements(unit, table(tmp_path, text))
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    "text", ["{", "[" * 100_000, "[1]", '{"points": 1}', '{"points": [{"x": "a"}]}', '{"tolerance": {"y": 1}}']
)
def test_json_that_cannot_be_used_is_reported(tmp_path, text):
    with pytest.raises(ValidationError, match="cannot be used as a table"):
        table(tmp_path, text, "points.json")


def test_semicolons_tabs_comments_and_a_mark_at_the_beginning(tmp_path):
    expected = [("time", "s"), ("x[1]", ""), ("der(a.b)", "m/s2")]
    for mark in ";\t,":
        lines = [
            "# a comment",
            f"time [s]{mark}x[1]{mark}der(a.b) [m/s2]",
            "",
            f"0{mark} 1.5 {mark}",
            f"1{mark}2{mark}3",
        ]
        (tmp_path / "t.csv").write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
        read = read_validation_table(tmp_path / "t.csv")
        assert [(c.name, c.unit) for c in read.columns] == expected
        np.testing.assert_array_equal(read.columns[1].values, [1.5, 2.0])
        np.testing.assert_array_equal(read.columns[2].values, [np.nan, 3.0])


def test_a_start_value_that_is_none_is_reported(unit, tmp_path):
    given = written(tmp_path, "time,x", zip(TIMES, x_of(TIMES), strict=True))
    with pytest.raises(ValidationError) as caught:
        compare_fmu_with_measurements(
            unit,
            given,
            MeasuredDataRunSettings(starts={"pull": 1.0, "mas": 2.0}, tolerances={"v": ValidationDataTolerance(1.0)}),
        )
    assert [fault.where for fault in caught.value.faults] == [
        "--at pull",
        "--at: mas",
        "data.csv: x",
        "--tolerance v",
    ]


def test_a_fmu_that_refuses_a_point_says_which(unit, tmp_path):
    """A mass of zero has no acceleration."""
    given = written(tmp_path, "x,m,der(v)", [(0.1, 2.0, -2.5), (0.1, 0.0, 1.0)])
    with pytest.raises(ToolError) as caught:
        compare_derivatives_at_table_points(
            unit, given, MeasuredDataRunSettings(default_tolerance=ValidationDataTolerance(1.0))
        )
    assert "row 2" in str(caught.value)


def test_a_fmu_that_makes_steps_of_one_size_needs_even_times(unit, tmp_path):
    tree = read_archive(unit)
    text = tree["modelDescription.xml"].decode()
    assert 'canHandleVariableCommunicationStepSize="true"' in text
    text = text.replace('canHandleVariableCommunicationStepSize="true"', "")
    write_fmu_archive(InMemoryFileTree({**tree.files, "modelDescription.xml": text.encode()}), tmp_path / "even.fmu")
    settings = MeasuredDataRunSettings(default_tolerance=ValidationDataTolerance(1e-4))
    with pytest.raises(ValidationError, match="steps of one size only"):
        compare_fmu_with_measurements(
            tmp_path / "even.fmu", written(tmp_path, "time,x", [(t, x_of(t)) for t in TIMES]), settings
        )
    even = [(t, x_of(t)) for t in (0.1, 0.2, 0.3, 0.4)]
    assert compare_fmu_with_measurements(tmp_path / "even.fmu", written(tmp_path, "time,x", even), settings)[0].passed


def call(*arguments):
    return CliRunner().invoke(commands, list(map(str, arguments)), prog_name="mb2fmu")


def test_the_command_without_a_model(unit, tmp_path):
    written(tmp_path, "time,x", zip(TIMES, x_of(TIMES), strict=True))
    points(tmp_path, error=0.1)
    base = ("validate", unit, "--data", tmp_path / "data.csv")
    good = call(*base, "--tolerance", "x=1e-4")
    assert good.exit_code == 0, good.output
    assert "data.csv: passed, 1 column within tolerance" in good.stdout
    both = call(*base, "--points", tmp_path / "points.csv", "--tolerance", "0.01%", "--json", "-")
    assert both.exit_code == 1
    record = json.loads(both.stdout)
    assert [(each["source"], each["passed"]) for each in record["tables"]] == [
        ("data.csv", True),
        ("data.csv", True),
        ("points.csv", False),
    ]
    assert record["passed"] is False
    for wrong in (["--tolerance", "x=much"], ["--at", "k"], ["--step", "0"], ["--report", "r.html"], []):
        result = call(*base, *wrong)
        assert result.exit_code == 2, wrong
        assert "Traceback" not in result.output
    assert call("validate", unit, "--tolerance", "1").exit_code == 2


def test_the_command_with_a_model_reports_both(unit, model, tmp_path, monkeypatch):
    shorten_validations(monkeypatch)
    written(tmp_path, "time,x", zip(TIMES, x_of(TIMES) + 5e-3, strict=True))
    page = tmp_path / "report.html"
    given = ("--data", tmp_path / "data.csv", "--tolerance", "1e-3", "--report", page, "--json", tmp_path / "all.json")
    result = call("validate", unit, "--model", model, *given)
    assert result.exit_code == 1, result.output
    assert "data.csv, x: 5 times its tolerance" in result.stdout
    text = page.read_text()
    assert 'name="mb2fmu:verdict" content="failed"' in text
    assert "Your own numbers: along data.csv" in text
    assert "it failed" in call("validate", "--check-report", page, unit).stdout
    record = json.loads((tmp_path / "all.json").read_text())
    assert record["passed"] is False
    assert all(each["verdict"] == "passed" for each in record["variables"])  # the model itself is met
    assert [each["passed"] for each in record["tables"]] == [False, False]
