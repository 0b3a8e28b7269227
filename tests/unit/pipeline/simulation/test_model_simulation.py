"""Simulations with values and inputs of the user's: closed forms, units against models, tables that read back."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import mb2fmu
from mb2fmu import pipeline
from mb2fmu.cli import commands
from mb2fmu.errors import ValidationError
from mb2fmu.pipeline.simulation.input_signals import parse_input_formula, read_input_signals
from mb2fmu.pipeline.simulation.simulation_times import MAX_TIMES, choose_stop_time_and_step
from mb2fmu.pipeline.simulation.simulation_trajectories import _format_csv_rows
from mb2fmu.visualization.default_plots import choose_default_plots
from mb2fmu.visualization.scene.scene_pose_trajectories import PlotSignals

OSCILLATOR = '''"""A mass on a spring, pushed."""
import sympy as sm
import sympy.physics.mechanics as me
from mb2fmu import Model


def oscillator():
    x, v, push = me.dynamicsymbols("x v push")
    m, k = sm.symbols("m k")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    kane = me.KanesMethod(N, [x], [v], [x.diff() - v], bodies=[me.Particle("P", P, m)],
                         forcelist=[(P, (push - k * x) * N.x)])
    model = Model("Oscillator", kane)
    model.parameter(m, 1.0, "kg")
    model.parameter(k, 4.0, "N/m")
    model.input(push, 0.0, "N")
    model.coordinate(x, 1.0, "m")
    model.speed(v, 0.0, "m/s")
    model.output("spring", k * x, "N")
    model.experiment(stop=2.0, step=0.01, tolerance=1e-9)
    return model
'''


@pytest.fixture(scope="module")
def oscillator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("oscillator") / "oscillator.py"
    path.write_text(OSCILLATOR)
    return path


@pytest.fixture(scope="module")
def unit(oscillator: Path) -> Path:
    return pipeline.export(oscillator, oscillator.parent / "out").path


def test_values_and_inputs_move_the_mass_as_the_closed_form_says(oscillator: Path) -> None:
    """M x'' + k x = c t from rest at 0.5 m: x = c t/k + a cos w t + b sin w t, with what the start says."""
    m, k, c = 2.0, 8.0, 3.0
    at = {"m": m, "k": k, "x": "50 cm"}
    motion = mb2fmu.simulate(oscillator, at=at, inputs={"push": f"{c}*t"}, stop=3.0, step=0.05)
    w, t = math.sqrt(k / m), motion.time
    expected = c * t / k + 0.5 * np.cos(w * t) - c / (k * w) * np.sin(w * t)
    assert t[-1] == pytest.approx(3.0)
    np.testing.assert_allclose(motion["x"], expected, atol=2e-8)
    np.testing.assert_allclose(motion["spring"], k * motion["x"], rtol=1e-14)
    np.testing.assert_allclose(motion["push"], c * t, rtol=1e-14)


def test_a_pulse_is_not_stepped_over(oscillator: Path) -> None:
    """0.1 N s within 10 ms change the speed of 1 kg by 0.1 m/s."""
    pulse = "10*(step(t - 0.5) - step(t - 0.51))"
    motion = mb2fmu.simulate(oscillator, at={"k": 1e-9, "x": 0.0}, inputs={"push": pulse}, stop=1.0)
    assert motion["v"][-1] == pytest.approx(0.1, rel=1e-5)


def test_two_rows_of_one_time_are_a_jump(oscillator: Path, tmp_path: Path) -> None:
    """As a formula has it: the table rises to 1 N, falls to -2 N at once, and stays there."""
    table = tmp_path / "push.csv"
    table.write_text("time,push\n0,0\n0.5,1\n0.5,-2\n1,-2\n", encoding="utf-8")
    by_table = mb2fmu.simulate(oscillator, inputs=table, stop=1.0)
    by_formula = mb2fmu.simulate(oscillator, inputs={"push": "2*t if t < 0.5 else -2"}, stop=1.0)
    for name in ("x", "v", "push"):
        np.testing.assert_allclose(by_table[name], by_formula[name], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", ["CoSimulation", "ModelExchange"])
def test_a_fmu_and_its_model_move_alike(oscillator: Path, unit: Path, kind) -> None:
    given = {"at": {"m": 2.0, "x": 0.3}, "inputs": {"push": "1.5 if t >= 0.5 else 0"}, "stop": 1.5}
    model = mb2fmu.simulate(oscillator, **given)
    ran = mb2fmu.simulate(unit, kind=kind, **given)
    np.testing.assert_allclose(ran.time, model.time, rtol=1e-14)
    for name in ("x", "v", "spring"):
        np.testing.assert_allclose(ran[name], model[name], atol=2e-7)
    assert ran.units["spring"] == "N"
    assert ran.drawing().poses.positions.shape[0] == len(ran.time)


def test_tables_read_back(oscillator: Path, tmp_path: Path) -> None:
    motion = mb2fmu.simulate(oscillator, stop=0.2)
    motion.to_csv(tmp_path / "a.csv")
    motion.to_parquet(tmp_path / "a.parquet")
    read = pd.read_csv(tmp_path / "a.csv")
    assert list(read.columns) == ["time", "x [m]", "v [m/s]", "spring [N]", "push [N]"]
    np.testing.assert_array_equal(read["x [m]"].to_numpy(), motion["x"])
    frame = motion.to_pandas()
    np.testing.assert_array_equal(frame["v"].to_numpy(), motion["v"])
    assert frame.index.name == "time"
    assert frame.attrs["units"]["v"] == "m/s"
    table = pq.read_table(tmp_path / "a.parquet")
    np.testing.assert_array_equal(table["spring"].to_numpy(), motion["spring"])
    assert table.schema.field("v").metadata[b"unit"] == b"m/s"


@given(arrays(np.float64, (2, 3), elements=st.floats()))
def test_numbers_of_a_csv_file_read_back_to_the_same_bits(table: np.ndarray) -> None:
    """Also the smallest and largest ones, negative zero, and what is no number."""
    text = _format_csv_rows(table).decode()
    read = np.array([[float(number) for number in line.split(",")] for line in text.splitlines()])
    np.testing.assert_array_equal(read, table)
    np.testing.assert_array_equal(np.signbit(read[read == 0.0]), np.signbit(table[table == 0.0]))


def test_the_command_writes_and_validate_reads(oscillator: Path, unit: Path, tmp_path: Path) -> None:
    def call(*arguments: object) -> object:
        return CliRunner().invoke(commands, [str(a) for a in arguments], prog_name="mb2fmu")

    files = ("--csv", tmp_path / "a.csv", "--plot", tmp_path / "a.svg", "--json", tmp_path / "a.json")
    done = call("simulate", oscillator, "--input", "push=sin(3*t)", "--stop", "1", *files)
    assert done.exit_code == 0, done.output
    assert "spring" in done.output
    assert (tmp_path / "a.svg").read_bytes().startswith(b"<?xml")
    assert json.loads((tmp_path / "a.json").read_text())["units"]["x"] == "m"
    judged = call("validate", unit, "--data", tmp_path / "a.csv", "--tolerance", "1%")
    assert judged.exit_code == 0, judged.output
    table = call("simulate", unit, "--input", tmp_path / "a.csv", "--json")
    assert table.exit_code == 2  # the table of a simulation has outputs too: these are no inputs
    assert "there is no input x" in table.stderr
    inputs = tmp_path / "push.csv"
    inputs.write_text("time [ms],push [mN]\n0,0\n1000,2000\n")
    ran = json.loads(call("simulate", unit, "--input", inputs, "--stop", "1", "--json").stdout)
    assert ran["values"]["push"][50] == pytest.approx(2 * 0.49)  # what was set at the step's beginning


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--at", "mass=2"], "there is no parameter, state or input mass"),
        (["--input", "pull=1"], "there is no input pull"),
        (["--input", "push=5*sin(x)"], "x is not known"),
        (["--input", "push=__import__('os')"], "is no function"),
        (["--input", "push=1/t"], "division"),
        (["--input", "push="], "NAME=FORMULA"),
        (["--input", "nowhere.csv"], "nowhere.csv"),
        (["--show", "z"], "there is no variable z"),
        (["--kind", "me"], "a model is integrated"),
        (["--stop", "0"], "--stop"),
        (["--plot", "a.bmp"], ".bmp"),
        (["--stop", "1e9"], "more than 10,000,000"),
        (["--stop", "1", "--step", "2"], "longer than the run"),
    ],
)
def test_bad_input_is_named(oscillator: Path, tmp_path: Path, monkeypatch, arguments, says) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(commands, ["simulate", str(oscillator), *arguments], prog_name="mb2fmu")
    assert done.exit_code == 2, done.output
    assert says in done.stderr
    assert not list(tmp_path.iterdir())


def test_what_a_fmu_cannot_be_set_to(unit: Path) -> None:
    with pytest.raises(ValidationError) as caught:
        mb2fmu.simulate(unit, at={"spring": 1.0, "nothing": 2.0, "m": "3 s"})
    assert len(caught.value.faults) == 3
    with pytest.raises(ValidationError, match="no kind of FMU"):
        mb2fmu.simulate(unit, kind="exchange")


@pytest.mark.parametrize("command", ["simulate", "animate"])
def test_what_only_a_model_has_is_refused_for_a_fmu(unit: Path, tmp_path: Path, monkeypatch, command) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(commands, [command, str(unit), "--set", "n=2", "--limits", "stop"], prog_name="mb2fmu")
    assert done.exit_code == 2
    assert "--set, --limits: an FMU does not have this" in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_picture_shows_what_simulate_computes(oscillator: Path, unit: Path) -> None:
    """Other values, inputs and times are those of the picture, too, of a model and of a unit."""
    asked = {"at": {"m": 2.0, "x": 0.3}, "inputs": {"push": "3*t"}, "stop": 0.5, "step": 0.05}
    for source in (oscillator, unit):
        drawing, signals = pipeline.animate(source, **asked)
        expected = mb2fmu.simulate(source, **asked)
        np.testing.assert_array_equal(signals.values, expected.signals.values)
        np.testing.assert_array_equal(drawing.poses.time, expected.time)
    with pytest.raises(ValidationError, match="beside a model"):
        pipeline.animate(unit, model=oscillator, stop=0.5)


TIMES = st.floats(1e-9, 1e9) | st.integers(1, 100)


@given(TIMES | st.none(), TIMES | st.none(), st.floats(1e-3, 1e3), st.floats(1e-6, 1e6))
def test_times_are_possible_or_refused(stop, step, usual_stop, usual_step) -> None:
    """What is asked for is kept; the end is never passed by the first step; nobody waits for memory."""
    end, size = stop or usual_stop, step or usual_step
    if (step is not None and size > end) or end / size > MAX_TIMES:
        with pytest.raises(ValidationError, match="→"):
            choose_stop_time_and_step(stop, step, usual_stop=usual_stop, usual_step=usual_step)
        return
    end, size = choose_stop_time_and_step(stop, step, usual_stop=usual_stop, usual_step=usual_step)
    assert end == (stop or usual_stop)
    assert step is None or size == step
    assert end / MAX_TIMES <= size <= end


@pytest.mark.parametrize("time", [0, -1.0, math.inf, math.nan, "5", True, np.ones(2)])
def test_times_that_are_none_are_all_reported(oscillator: Path, time) -> None:
    with pytest.raises(ValidationError) as caught:
        mb2fmu.simulate(oscillator, stop=time, step=time)
    assert len(caught.value.faults) == 2


def test_results_are_printed_on_a_line(oscillator: Path, unit: Path) -> None:
    """Who types a name at the prompt sees what it is, not every number in it."""
    model = mb2fmu.load(oscillator)
    motion = mb2fmu.simulate(model, stop=0.1)
    ran = mb2fmu.simulate(unit, stop=0.1, kind="me")
    assert ran.kind == "ModelExchange"
    records = [motion, ran, motion.animate(), motion.derivation, model, model.rhs(), mb2fmu.linearize(model)]
    records += [mb2fmu.sensitivities(model, to=("k",), stop=0.1), mb2fmu.sweep(model, "k", [1.0, 2.0])]
    for record in records:
        text = repr(record)
        assert text.startswith("<")
        assert len(text) < 300, text
        assert "\n" not in text


def test_all_faults_of_inputs_are_reported_at_once() -> None:
    with pytest.raises(ValidationError) as caught:
        read_input_signals({"a": "t +", "b": "1", "c": "tan(pi/2*0) + nothing"}, (), {"a": "N", "c": "N"}, 1.0)
    assert len(caught.value.faults) == 3


@given(st.floats(-5, 5), st.floats(0.1, 4))
def test_formulas_are_python(amplitude: float, t: float) -> None:
    text = f"{amplitude!r}*sin(2*pi*t)^2 + max(t, 1) - (step(t - 1) if t > 2 else ramp(t - 3))"
    later = (1.0 if t >= 1 else 0.0) if t > 2 else max(t - 3, 0.0)
    assert parse_input_formula(text)(t) == pytest.approx(amplitude * math.sin(2 * math.pi * t) ** 2 + max(t, 1) - later)


def test_a_first_look_is_at_what_moves() -> None:
    t = np.linspace(0, 10, 200)
    names = ("wheel", "lean", "still", "kinetic_energy", "x", "y", "z")
    units = ("rad", "rad", "m", "J", "m", "m", "m")
    columns = [5 * t, np.sin(t), 0 * t + 1, np.cos(t), np.sin(2 * t), np.cos(3 * t), np.sin(t)]
    chosen = choose_default_plots(PlotSignals(names, units, np.array(columns).T), 3)
    assert chosen == ("lean", "x", "y")


def test_what_follows_from_the_states_is_there_too() -> None:
    """A belt and gears: dependent coordinates and speeds are variables of the FMU, and of the simulated model."""
    moved = mb2fmu.simulate("transmission", stop=0.5, constraints="explicit")
    np.testing.assert_allclose(moved["motor"], -12.0 * (moved["arm"] + np.pi / 2.0), atol=1e-12)
    np.testing.assert_allclose(moved["w_between"], -4.0 * moved["w_arm"], atol=1e-12)
    assert np.ptp(moved["w_arm"]) > 0.1
    assert moved.units["w_between"] == "rad/s"


def test_friction_that_sticks_is_run_by_the_models_fmu() -> None:
    """Coulomb's oscillator loses 4 F / k of its swing in each period and rests at 0.008 m from 0.8 π s on."""
    motion = mb2fmu.simulate(Path(__file__).parents[4] / "models" / "dry_friction_oscillator.py")
    rests = motion.time > 0.8 * math.pi
    assert rests.sum() > 10
    np.testing.assert_allclose(motion["x"][rests], 0.008, atol=1e-9)
    assert len(motion.drawing().poses.time) == len(motion.time)  # the FMU is gone, and its scene is still there


def test_a_note_says_that_a_model_with_events_holds_its_inputs(tmp_path: Path) -> None:
    """Its equations alone follow an input at every instant; friction that sticks makes an FMU of it."""
    path = tmp_path / "rubbing.py"
    path.write_text(OSCILLATOR.replace("push - k * x", "push - k * x - 0.1 * sm.sign(v)"))
    run = ["simulate", str(path), "--stop", "0.02", "--input"]
    noted = CliRunner().invoke(commands, [*run, "push=5*sin(t)"])
    assert "note: push: held over each step of 0.01 s" in noted.stderr
    assert "note" not in CliRunner().invoke(commands, [*run, "push=5"]).stderr


def test_inputs_of_the_experiment_have_their_values_up_to_the_last_time() -> None:
    """The last row repeated the one before it, and outputs that see the input were wrong there."""
    motion = mb2fmu.simulate("double_pendulum", stop=0.1, step=0.02)
    assert motion["shoulder.torque"] == pytest.approx(0.5 * np.sin(2.0 * motion.time), rel=1e-12)
    power = motion["shoulder.torque"] * motion["shoulder.speed"]
    assert motion["motor_power"] == pytest.approx(power, rel=1e-12)


def test_a_start_without_slope_is_refused_and_not_tried_for_ever(tmp_path: Path) -> None:
    """A force with the logarithm of a negative coordinate: the FMU can still be made, it may be started elsewhere."""
    path = tmp_path / "logarithm.py"
    path.write_text(OSCILLATOR.replace("push - k * x", "push - k * sm.log(x - 2)"))
    with pytest.raises(ValidationError, match=r"at the start, der\(v\) has no value"):
        mb2fmu.simulate(path)
    with pytest.raises(ValidationError, match="x' has no value at x = 1"):
        pipeline.run(path, tmp_path / "out")
    assert not list(tmp_path.glob("out/*"))
    assert pipeline.export(path, tmp_path).path.is_file()


RANGES = {'model.coordinate(x, 1.0, "m")': 'model.coordinate(x, 1.0, "m", min=-0.5, max=1.0)',
          'model.speed(v, 0.0, "m/s")': 'model.speed(v, 0.0, "m/s", min=-3.0)'}  # fmt: skip


def test_a_range_that_is_left_is_reported(tmp_path: Path) -> None:
    """x = cos 2t is below -0.5 from t = pi/3 on; it touches 1 m and v stays above -3 m/s, which is nothing to tell."""
    text = OSCILLATOR
    for old, new in RANGES.items():
        assert text.count(old) == 1
        text = text.replace(old, new)
    path = tmp_path / "oscillator.py"
    path.write_text(text)
    for source in (path, pipeline.export(path, tmp_path / "out").path):
        [left] = mb2fmu.simulate(source).range_violations()
        assert (left.name, left.unit, left.bound) == ("x", "m", -0.5)
        assert left.time == pytest.approx(math.pi / 3, abs=0.01)
        assert left.extreme_value == pytest.approx(-1.0, abs=1e-4)
        result = CliRunner().invoke(commands, ["simulate", str(source)])
        assert "note: x is below -0.5 m, the smallest value that is declared for it, from t = 1.05 s" in result.stderr
