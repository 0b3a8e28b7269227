"""Parameters from measured motions: clean data give them back, noise gives honest intervals, blindness is said."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from representatives import by_night
from scipy.integrate import solve_ivp

import mb2fmu
from mb2fmu import pipeline
from mb2fmu.analysis.studies.model_fitting import FitUnknown, fit_unknowns
from mb2fmu.cli import commands
from mb2fmu.errors import AnalysisError, Fault
from mb2fmu.pipeline.study_runs.parameter_fit import identify_parameters

MODELS = Path(__file__).parents[4] / "models"
TRUE = {"m2": 1.3, "l2": 0.8}
NAMES = ("shoulder.angle", "elbow.angle")


def motion(torque: float = 0.5, stop: float = 0.5, **values: float) -> tuple[np.ndarray, np.ndarray]:
    """Angles of a double pendulum, by another way than the fit's."""
    f = pipeline.load(MODELS / "double_pendulum.py").at(values).rhs()
    time = np.linspace(0.0, stop, round(50 * stop) + 1)

    def slope(t: float, x: np.ndarray) -> np.ndarray:
        return f(t, x, [torque * np.sin(2.0 * t)])

    return time, solve_ivp(slope, (0.0, stop), f.x0, method="DOP853", t_eval=time, rtol=1e-12, atol=1e-12).y[:2].T


def written(path: Path, time: np.ndarray, angles: np.ndarray, head: str = "time,shoulder.angle,elbow.angle") -> Path:
    rows = "\n".join(",".join(map(repr, row)).replace("nan", "") for row in np.column_stack([time, angles]).tolist())
    path.write_text(f"{head}\n{rows}\n")
    return path


@pytest.fixture(scope="module")
def swing() -> tuple[np.ndarray, np.ndarray]:
    return motion(**TRUE)


@pytest.mark.repeats  # by day a simulated motion gives a mass back; units of columns are read as in comparisons
def test_clean_data_give_the_parameters_back_in_any_unit(tmp_path: Path) -> None:
    """Both masses and a length, with the torque as it was measured, in columns as ``mb2fmu simulate`` writes them."""
    time, angles = motion(5.0, stop=1.0, m1=1.2, **TRUE)
    columns = np.column_stack([np.degrees(angles), 5.0 * np.sin(2.0 * time), np.zeros(len(time))])
    head = "time [ms],shoulder.angle [deg],elbow.angle [deg],shoulder.torque,der(elbow.speed) [rad/s2]"
    file = written(tmp_path / "a.csv", 1e3 * time, columns, head)
    found = identify_parameters(MODELS / "double_pendulum.py", [file], ["m1", *TRUE])
    np.testing.assert_allclose(found.values, [1.2, *TRUE.values()], rtol=1e-6)
    assert found.rank == 3
    assert "der(elbow.speed): derivatives of states, and what follows from them, are not compared" in found.words


@pytest.mark.parametrize("between", ["lines", *by_night("smooth")])
def test_what_was_simulated_on_lines_is_fitted_on_lines(between: str, tmp_path: Path) -> None:
    """A cart that a zigzag of a force pushes: its mass is exact on the same lines, and not on cubics."""
    table = tmp_path / "push.csv"
    table.write_text("time,force\n0,0\n0.15,8\n0.3,-6\n0.45,5\n0.6,0\n")
    model, data = MODELS / "cart_pole.py", tmp_path / "moved.csv"
    command = ["simulate", str(model), "--input", str(table), "--stop", "0.6", "--step", "0.15", "--csv", str(data)]
    done = CliRunner().invoke(commands, [*command, "--at", "M=1.25"])
    assert done.exit_code == 0, done.output
    found = identify_parameters(model, [data], ["M"], between=between).values[0]
    assert found == pytest.approx(1.25, rel=1e-6) if between == "lines" else abs(found - 1.25) > 1e-3


@pytest.mark.parametrize(
    ("name", "stop", "at", "free"),
    [
        ("bouncing_ball", "1.2", {"e": 0.75}, "e,h"),
        *by_night(("stick_slip_belt", "10", {"F_s": 1.1, "k": 1.2}, "F_s,k")),
    ],
)
def test_what_bounces_and_what_sticks_is_fitted_from_simulated_motions(
    name: str, stop: str, at: dict[str, float], free: str, tmp_path: Path
) -> None:
    """Derivatives go through impacts and through friction that holds; margins of events are not compared."""
    data, file = tmp_path / f"{name}.csv", str(MODELS / f"{name}.py")
    values = [word for key, value in at.items() for word in ("--at", f"{key}={value}")]
    done = CliRunner().invoke(commands, ["simulate", file, *values, "--stop", stop, "--csv", str(data)])
    assert "event_indicator[1]" in data.read_text().split("\n", 1)[0], done.output
    found = identify_parameters(file, [data], free.split(","))
    wanted = [at.get(unknown.name, unknown.start) for unknown in found.unknowns]
    np.testing.assert_allclose(found.values, wanted, rtol=1e-7)
    assert any(sentence.startswith("no noise is left over") for sentence in found.words)
    assert not any("rough" in sentence for sentence in found.words)


def test_where_there_is_no_motion_the_search_takes_a_shorter_step() -> None:
    """From 1 the first step towards 0.04 goes to -0.6, where the root has no value; at the start that is reported."""
    x = np.linspace(0.5, 1.0, 20)

    def root(v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if v[0] <= 0.0:
            raise AnalysisError("there is no motion:", [Fault("a root of less than nothing")])
        return np.sqrt(v[0]) * x, (0.5 / np.sqrt(v[0]) * x)[:, None]

    found = fit_unknowns([FitUnknown("a", 1.0, -np.inf, np.inf, "1")], root, 0.2 * x, ["y"] * len(x))
    assert found.values[0] == pytest.approx(0.04, rel=1e-6)
    with pytest.raises(AnalysisError, match="a root of less than nothing"):
        fit_unknowns([FitUnknown("a", -1.0, -np.inf, np.inf, "1")], root, 0.2 * x, ["y"] * len(x))


@pytest.mark.repeats
def test_a_length_of_a_closed_loop_is_given_back(tmp_path: Path) -> None:
    """With another crank the loop closes elsewhere from the start on; a fit that left that out was 2.4 mm off."""
    model, read = MODELS / "four_bar.py", ("q1", "q2", "q3", "torque")
    moved = mb2fmu.simulate(model, at={"la": 0.82}, stop=2.0, tolerance=1e-11)
    file = written(
        tmp_path / "a.csv", moved.time, np.column_stack([moved[name] for name in read]), f"time,{','.join(read)}"
    )
    assert identify_parameters(model, [file], ["la"], between="lines").values[0] == pytest.approx(0.82, rel=1e-6)


def test_masses_alone_are_not_seen_and_the_fit_says_so(tmp_path: Path) -> None:
    time, angles = motion(0.0, **TRUE)
    torque = np.where(np.arange(len(time)) % 7 == 3, np.nan, 0.0)  # empty cells say nothing
    head = "time,shoulder.angle,elbow.angle,shoulder.torque"
    file = written(tmp_path / "swing.csv", time, np.column_stack([angles, torque]), head)
    command = ["fit", str(MODELS / "double_pendulum.py"), "--data", str(file), "--free", "m1,m2", "--at", "l2=0.8"]
    done = CliRunner().invoke(commands, [*command, "--json"])
    facts = json.loads(done.stdout)
    assert done.exit_code == 1
    assert facts["rank"] == 1
    assert facts["fitted"]["m1"]["standard_deviation"] is None
    assert "m1, m2 cannot be distinguished: m1 by +1 % and m2 by +1 % together change nothing" in facts["words"][0]
    ratio = facts["fitted"]["m2"]["value"] / facts["fitted"]["m1"]["value"]
    assert ratio == pytest.approx(1.3, rel=1e-6)


def test_every_fault_is_named(swing: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    file = written(tmp_path / "swing.csv", swing[0][::-1], swing[1], "time,nose,elbow.angle [kg]")
    command = ["fit", str(MODELS / "double_pendulum.py"), "--data", str(file), "--free", "m2"]
    done = CliRunner().invoke(commands, [*command[:-1], "mass"])
    assert done.exit_code == 2
    for part in ("mass is no free", "times do not increase", "model has no nose", "elbow.angle is in rad, not in kg"):
        assert part in done.output
    other = written(tmp_path / "good.csv", *swing)
    done = CliRunner().invoke(commands, [*command[:2], "--data", str(other), "--free", "mass", "--bounds", "l2=1:2"])
    assert done.exit_code == 2
    assert "mass is no free parameter" in done.output
    assert "l2 has a bound but is not free" in done.output
    faults = []
    for k, text in enumerate(("t,elbow.angle\n0,0\n1,0\n", "time [kg],elbow.angle\n0,0\n1,0\n",
                              "time,elbow.angle,shoulder.torque\n0,0,\n,0,\n")):  # fmt: skip
        (tmp_path / f"{k}.csv").write_text(text)
        faults += ["--data", str(tmp_path / f"{k}.csv")]
    done = CliRunner().invoke(commands, [*command[:2], *faults, "--free", "m2"])
    assert done.exit_code == 2
    for part in ("it has no column time", "kg (kg) cannot show values in s", "time is empty in row 2",
                 "shoulder.torque has no value in any row"):  # fmt: skip
        assert part in done.output
    done = CliRunner().invoke(commands, [*command[:2], "--data", str(other), "--free", "m2", "--bounds", "m2=5:1"])
    assert "LOW is not below HIGH" in done.output


def test_a_page_shows_every_experiment_and_the_fmu_keeps_where_it_comes_from(
    swing: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    files = []
    for seed in (1, 2):
        noise = np.random.default_rng(seed).normal(0.0, 0.01, swing[1].shape)
        files.append(written(tmp_path / f"swing_{seed}.csv", swing[0][:25:4], (swing[1] + noise)[:25:4]))
    data = [word for file in files for word in ("--data", str(file))]
    page, folder = tmp_path / "fit.html", tmp_path / "fitted"
    command = ["fit", str(MODELS / "double_pendulum.py"), *data, "--free", "m2,l2", "--report", str(page)]
    done = CliRunner().invoke(commands, [*command, "-o", str(folder)])
    assert done.exit_code == 0, done.output
    text = page.read_text()
    for part in (
        "Experiment 1: swing_1.csv",
        "Experiment 2: swing_2.csv",
        "all that is free can be determined",
        "± (95 %)",
    ):
        assert part in text
    columns = swing[1].shape[1]
    assert text.count('<svg class="chart"') == text.count('class="line measured"') == 2 * columns
    assert text.count('<td style="background:') == 4  # the correlation of two unknowns
    assert "://" not in text  # nothing is loaded from elsewhere
    with zipfile.ZipFile(next(folder.glob("*.fmu"))) as unit:
        inside = json.loads(unit.read("documentation/fit.json"))
        assert b"Experiment 2" in unit.read("documentation/fit.html")
    beside = json.loads(next(folder.glob("*.fit.json")).read_text())
    assert inside["fitted"] == beside["fitted"]
    assert inside["data"] == {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def within(noise: float, seeds: int, points: int = 60) -> int:
    """How many of so many noisy straight lines have both numbers within two standard deviations."""
    x = np.linspace(0.0, 1.0, points)
    slopes = np.column_stack([np.ones(points), x])
    good = 0
    for seed in range(seeds):
        y = 2.0 + 3.0 * x + np.random.default_rng(seed).normal(0.0, noise, points)
        unknowns = [FitUnknown("a", 1.0, -np.inf, np.inf, "1"), FitUnknown("b", 1.0, -np.inf, np.inf, "1")]
        found = fit_unknowns(unknowns, lambda v: (slopes @ v, slopes), y, ["y"] * points)
        good += bool((np.abs(found.values - [2.0, 3.0]) < 2.0 * found.deviations).all())
    return good


def test_deviations_are_honest() -> None:
    assert 170 <= within(0.1, 200) <= 196  # both of two, strongly correlated: about 92 %


def test_errors_that_follow_a_course_are_reported_and_noise_is_not() -> None:
    """A line through noise, and through a line that is bent a little: its interval would be too narrow by far."""
    x, reported = np.linspace(0.0, 1.0, 60), []
    for seed in range(40):
        noise = np.random.default_rng(seed).normal(0.0, 0.02, len(x))
        for bend in (0.0, 0.3):
            y = 3.0 * x + bend * x**2 + noise
            unknown = FitUnknown("a", 1.0, -np.inf, np.inf, "1")
            found = fit_unknowns([unknown], lambda v: (v[0] * x, x[:, None]), y, ["place"] * len(x))
            reported.append(any("residual of place follows a trend" in sentence for sentence in found.words))
    assert sum(reported[0::2]) == 0
    assert sum(reported[1::2]) >= 38


def test_what_was_found_is_said_though_it_cannot_be_written(
    swing: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    file = written(tmp_path / "swing.csv", *swing)
    (tmp_path / "taken").write_text("no folder")
    command = ["fit", str(MODELS / "double_pendulum.py"), "--data", str(file), "--free", "m2", "--at", "l2=0.8"]
    done = CliRunner().invoke(commands, [*command, "--report", str(tmp_path / "taken/fit.html")])
    assert done.exit_code == 2
    assert "m2  1.3" in done.output
    assert "fit.html" in done.output


@pytest.mark.parametrize(("noise", "rough"), [(0.01, False), (0.6, True)])
def test_an_interval_beyond_what_is_straight_is_called_rough(noise: float, rough: bool) -> None:
    x = np.linspace(0.0, 3.0, 40)
    y = np.exp(-x) + np.random.default_rng(2).normal(0.0, noise, len(x))

    def decay(v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.exp(-v[0] * x), (-x * np.exp(-v[0] * x))[:, None]

    found = fit_unknowns([FitUnknown("rate", 0.8, -np.inf, np.inf, "1/s")], decay, y, ["y"] * len(x))
    assert any("the interval of rate is rough" in sentence for sentence in found.words) == rough


@pytest.mark.repeats
def test_noisy_swings_give_masses_within_two_deviations(tmp_path: Path) -> None:
    swing, good = motion(stop=1.0, **TRUE), 0
    for seed in range(100):
        noise = np.random.default_rng(seed).normal(0.0, 1.0, swing[1].shape) * 0.05 * np.abs(swing[1]).max(axis=0)
        file = written(tmp_path / "noisy.csv", swing[0], swing[1] + noise)
        found = identify_parameters(pipeline.load(MODELS / "double_pendulum.py").at(l2=0.8), [file], ["m2"])
        good += bool(abs(found.values[0] - 1.3) < 2.0 * found.deviations[0])
    assert good >= 95
