"""Many instances at once: each has the bits of the FMU's own solver, and what is wrong is said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from scipy.integrate import solve_ivp

import mb2fmu
from mb2fmu import HydraulicCylinder, Impact, Model, Valve, pipeline, validation
from mb2fmu.analysis.studies.compiled_model_ensembles import CompiledModelEnsemble
from mb2fmu.analysis.studies.output_reductions import FirstLevelCrossing, LargestValue
from mb2fmu.errors import AnalysisError
from mb2fmu.pipeline.simulation.model_ensemble_compilation import compile_model_ensemble

MODELS = Path(__file__).parents[4] / "models"


@pytest.fixture(scope="module")
def cart_pole() -> CompiledModelEnsemble:
    return compile_model_ensemble(MODELS / "cart_pole.py")


def bits_of_the_unit(
    name: str,
    folder: Path,
    varied: dict[str, tuple[float, ...]],
    ensemble: CompiledModelEnsemble,
    solver: Literal["explicit", "implicit"] = "explicit",
) -> None:
    """Runs the FMU for each set of values, and all of them at once."""
    n = len(next(iter(varied.values())))
    unit = pipeline.export(MODELS / f"{name}.py", folder, fmi="3", solver=solver)
    values_of = {key: np.array(values) for key, values in varied.items()}
    runs = ensemble.simulate(n, values_of, trajectories=True, solver=solver)
    assert not any(runs.messages)
    for k in range(n):
        parameters = {key: values[k] for key, values in varied.items()}
        run = validation.form_experiment_values(unit.build.derivation.definition, parameters)
        wanted = validation.simulate_fmu(unit.path, run, runs.state_names, kind="CoSimulation")
        np.testing.assert_array_equal(runs.states[k], wanted.values)


def test_instances_have_the_bits_of_the_fmu_under_changing_inputs(
    cart_pole: CompiledModelEnsemble, tmp_path: Path
) -> None:
    bits_of_the_unit("cart_pole", tmp_path, {"m": (0.1, 0.4), "l": (1.0, 0.7)}, cart_pole)


def test_instances_have_the_bits_of_the_fmus_implicit_solver(cart_pole: CompiledModelEnsemble, tmp_path: Path) -> None:
    bits_of_the_unit("cart_pole", tmp_path, {"m": (0.1, 0.4), "l": (1.0, 0.7)}, cart_pole, "implicit")


def test_instances_begin_on_their_own_constraints_as_the_fmu_does(tmp_path: Path) -> None:
    """Another crank: its loop closes elsewhere."""
    ensemble = compile_model_ensemble(MODELS / "four_bar.py")
    bits_of_the_unit("four_bar", tmp_path, {"la": (0.8, 0.816, 0.85)}, ensemble)


def test_an_instance_whose_loop_does_not_close_says_so() -> None:
    ensemble = compile_model_ensemble(MODELS / "four_bar.py")
    runs = ensemble.simulate(2, {"ln": [2.0, 9.0]}, stop=0.1)
    assert runs.messages == ("", "the start values cannot be put on the constraints")
    assert np.isnan(runs.states[1]).all()
    assert np.isfinite(runs.states[0]).all()


@pytest.mark.repeats
@pytest.mark.parametrize("solver", ["explicit", "implicit"])
@pytest.mark.parametrize(("name", "varied"), [("double_pendulum", "m2"), ("four_bar", "g"), ("robot_arm", "g")])
def test_instances_of_further_models_have_the_bits_of_the_fmu(
    name: str, varied: str, solver: Literal["explicit", "implicit"], tmp_path: Path
) -> None:
    ensemble = compile_model_ensemble(MODELS / f"{name}.py")
    value = ensemble.p0[ensemble.parameters.index(varied)]
    bits_of_the_unit(name, tmp_path, {varied: (value, 1.01 * value)}, ensemble, solver)


def stiff_cylinder() -> Model:
    """200 kg pushed by a cylinder through a valve that is open by a part; eigenvalues to -1e5/s."""
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    x, v = me.dynamicsymbols("x v")
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    load = [(P, -3e3 * (1 + sm.sin(20 * me.dynamicsymbols._t)) * N.x)]
    kane = me.KanesMethod(N, [x], [v], [x.diff() - v], bodies=[me.Particle("load", P, 200)], forcelist=load)
    model = Model("Carriage", kane)
    model.coordinate(x, 0.9, "m")
    model.speed(v, 0.0, "m/s")
    opening, oil = sm.symbols("opening oil")
    model.parameter(opening, 0.3, "1")
    model.parameter(oil, 1.2e9, "Pa")
    valve = Valve(opening=opening, flow=8e-4, pressure_drop=3.5e6, supply=1.5e7, tank=2e5)
    sizes = {"area": 2e-3, "rod_area": 1.2e-3, "stroke": 0.5, "retracted": 0.7, "dead_volume": 5e-5}
    rest = {"bulk_modulus": oil, "leakage": 2e-12, "friction": 400.0, "pressures": (3e6, 2.5e6)}
    model.add(HydraulicCylinder("boom", on=(O, P), valve=valve, **sizes, **rest))
    model.experiment(stop=0.2, step=0.01, stiff=True)
    return model


def pushed(opening: float, oil: float) -> np.ndarray:
    """The same written by hand (volumes, edges of the valve, momentum), by Radau's method."""

    def rate(t: float, state: np.ndarray) -> list[float]:
        x, v, a, b = state
        flows = [8e-4 * d / (d**2 + 1e8) ** 0.25 / np.sqrt(3.5e6) for d in (1.5e7 - a, b - 2e5)]
        leak, out = 2e-12 * (a - b), x - 0.7
        a_rate = oil * (opening * flows[0] - 2e-3 * v - leak) / (5e-5 + 2e-3 * out)
        b_rate = oil * (-opening * flows[1] + 1.2e-3 * v + leak) / (5e-5 + 1.2e-3 * (0.5 - out))
        return [v, (2e-3 * a - 1.2e-3 * b - 400 * v - 3e3 * (1 + np.sin(20 * t))) / 200, a_rate, b_rate]

    at = np.linspace(0.0, 0.2, 21)
    found = solve_ivp(rate, (0.0, 0.2), [0.9, 0.0, 3e6, 2.5e6], "Radau", at, rtol=1e-8, atol=1e-8)
    return np.asarray(found.y.T)


def test_stiff_instances_move_as_written_by_hand_and_each_has_its_own_steps() -> None:
    """All of the motion within 1e-6 of each range; alone or beside a tenfold stiffer one the bits are the same."""
    ensemble = compile_model_ensemble(stiff_cylinder())
    values = {"opening": np.array([0.1, 0.3, 0.3]), "oil": np.array([1.2e9, 1.2e9, 1.2e10])}
    runs = ensemble.simulate(3, values, solver="implicit", tolerance=1e-8, trajectories=True)
    assert not any(runs.messages)
    for k in (0, 2):
        theirs = pushed(values["opening"][k], values["oil"][k])
        assert (np.abs(runs.states[k] - theirs).max(axis=0) < 1e-6 * np.ptp(theirs, axis=0)).all()
    alone = ensemble.simulate(
        1, {key: values[key][1:2] for key in values}, solver="implicit", tolerance=1e-8, trajectories=True
    )
    np.testing.assert_array_equal(alone.states[0], runs.states[1])


def test_neighbours_change_no_bits_however_many_there_are(cart_pole: CompiledModelEnsemble) -> None:
    masses = np.linspace(0.05, 2.0, 2100)  # more than fit side by side: some take the places of others
    many = cart_pole.simulate(2100, {"m": masses}, stop=1.0, step=0.5)
    picked = np.array([0, 2047, 2048, 2099])
    few = cart_pole.simulate(4, {"m": masses[picked]}, stop=1.0, step=0.5)
    np.testing.assert_array_equal(many.states[picked], few.states)


def test_inputs_keep_their_times_where_the_communication_step_is_another(cart_pole: CompiledModelEnsemble) -> None:
    steps = len(cart_pole.inputs)
    assert steps > 20
    fine = cart_pole.simulate(1, stop=20 * cart_pole.step)
    wide = replace(cart_pole, inputs=np.repeat(cart_pole.inputs[:20:4], 4, axis=0))
    np.testing.assert_allclose(
        cart_pole.simulate(1, stop=20 * cart_pole.step, step=4 * cart_pole.step).states,
        wide.simulate(1, stop=20 * cart_pole.step).states,
        rtol=1e-6,
        atol=1e-9,
    )
    assert np.abs(fine.states - wide.simulate(1, stop=20 * cart_pole.step).states).max() > 1e-6


def test_dependent_variables_are_there_as_in_a_simulation() -> None:
    model = MODELS / "chaplygin_sleigh.py"
    runs = compile_model_ensemble(model).simulate(1, stop=0.2, step=0.05, tolerance=1e-10, trajectories=True)
    wanted = mb2fmu.simulate(model, stop=0.2, step=0.05)
    assert set(wanted.names) <= {*runs.state_names, *runs.output_names}
    for name in wanted.names:
        np.testing.assert_allclose(runs[name][0], wanted[name], rtol=1e-7, atol=1e-8)


def test_fixed_steps_converge_with_the_fourth_power(cart_pole: CompiledModelEnsemble) -> None:
    exact = cart_pole.simulate(2, {"m": [0.1, 0.3]}, stop=1.0, tolerance=1e-12).states
    errors = [
        np.abs(cart_pole.simulate(2, {"m": [0.1, 0.3]}, stop=1.0, solver="rk4", internal_step=h).states - exact).max()
        for h in (cart_pole.step / 1, cart_pole.step / 2)
    ]
    assert 14.0 < errors[0] / errors[1] < 18.0


def test_reductions_are_those_of_the_trajectories(cart_pole: CompiledModelEnsemble) -> None:
    values = {"theta": np.array([0.02, 0.1, 0.3])}
    runs = cart_pole.simulate(
        3,
        values,
        trajectories=True,
        reduce={"top": LargestValue("tip.y"), "when": FirstLevelCrossing("tip.y", 0.5)},
    )
    heights = runs["tip.y"]
    np.testing.assert_array_equal(runs["top"], heights.max(axis=1))
    for k in range(3):
        below = np.flatnonzero(heights[k] <= 0.5)
        expected = np.interp(0.5, heights[k, [below[0], below[0] - 1]], runs.time[[below[0], below[0] - 1]])
        assert runs["when"][k] == pytest.approx(expected, abs=1e-12)
    assert runs["when"][0] > runs["when"][1] > runs["when"][2]


@pytest.mark.parametrize("direction", ["rising", "falling", "either"])
def test_crossings_are_those_of_sines(direction: str) -> None:
    """The first one in a direction, whatever the phase; the straight line between points is 1e-4 off at most."""
    phases, t = np.linspace(-3.0, 3.0, 13), np.linspace(0.0, 7.0, 351)
    kept = FirstLevelCrossing("y", 0.25, direction)
    memory = kept.allocate_memory(len(phases))
    for time in t:
        kept.add_samples(memory, np.arange(len(phases)), np.full(len(phases), time), np.sin(time + phases))
    ways = {"rising": [np.arcsin(0.25)], "falling": [np.pi - np.arcsin(0.25)]}
    at = np.array(ways.get(direction, ways["rising"] + ways["falling"]))
    expected = np.mod(at[:, None] - phases, 2 * np.pi).min(axis=0)
    assert kept.finish(memory) == pytest.approx(expected, abs=1e-4)


def test_a_direction_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="'up' is no direction: one of either, rising, falling"):
        FirstLevelCrossing("y", 0.0, "up")


def test_an_instance_without_result_is_nan_and_says_why(cart_pole: CompiledModelEnsemble) -> None:
    runs = cart_pole.simulate(2, {"omega": np.array([0.0, 1e200])}, stop=0.1)
    assert runs.messages[0] == ""
    assert "at t = " in runs.messages[1]
    assert np.isfinite(runs.states[0]).all()
    assert np.isnan(runs.states[1]).all()


def test_every_fault_is_named(cart_pole: CompiledModelEnsemble) -> None:
    with pytest.raises(AnalysisError) as caught:
        cart_pole.simulate(
            3, {"mass": 1.0, "m": [1.0, 2.0]}, stop=-1.0, solver="euler", reduce={"top": LargestValue("nose")}
        )
    message = str(caught.value)
    for part in (
        "mass is neither",
        "m has 2 values for 3",
        "-1 is not positive",
        "nose is no output",
        "no solver 'euler'",
    ):
        assert part in message


def falling_on_the_ground() -> Model:
    """A ball above the ground, an impact instead of an event of its own."""
    h, v = me.dynamicsymbols("h v")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", h * N.z)
    P.set_vel(N, v * N.z)
    loads = [(P, -9.81 * N.z)]
    kane = me.KanesMethod(N, [h], [v], [h.diff() - v], bodies=[me.Particle("ball", P, 1)], forcelist=loads)
    model = Model("Ball", kane)
    model.coordinate(h, 1.0, "m")
    model.speed(v, 0.0, "m/s")
    model.add(Impact("ground", h, restitution=0.7))
    return model


@pytest.mark.parametrize(
    "model", [MODELS / "bouncing_ball.py", MODELS / "dry_friction_oscillator.py", falling_on_the_ground()]
)
def test_what_x_dot_alone_does_not_tell_is_run_by_the_fmu(model: Model | Path) -> None:
    """Events of the model's own, friction that sticks, impacts: instances are not integrated across them unseen."""
    assert compile_model_ensemble(model).runs_sequentially


def test_fixed_steps_end_on_the_constraints() -> None:
    """A four-bar in steps of 20 ms leaves them by 1e-6 and more without being put back."""
    four_bar = compile_model_ensemble(MODELS / "four_bar.py")
    runs = four_bar.simulate(1, stop=1.0, step=0.1, solver="rk4", internal_step=0.02, trajectories=True)
    free = replace(four_bar, project=None)
    left = free.simulate(1, stop=1.0, step=0.1, solver="rk4", internal_step=0.02, trajectories=True)
    assert np.abs(runs["diagnostics.position_residual"]).max() < 1e-13
    assert np.abs(left["diagnostics.position_residual"]).max() > 1e-8
