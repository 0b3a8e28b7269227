"""Many instances with events: each has the bits of the FMU that runs alone, and what goes wrong is said."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from representatives import by_night

from mb2fmu import Model, pipeline, validation
from mb2fmu.analysis.studies.compiled_model_ensembles import CompiledModelEnsemble
from mb2fmu.analysis.studies.output_reductions import FirstLevelCrossing, LargestValue
from mb2fmu.errors import AnalysisError
from mb2fmu.pipeline.simulation.model_ensemble_compilation import compile_model_ensemble

MODELS = Path(__file__).parents[4] / "models"


@pytest.fixture(scope="module")
def ball() -> CompiledModelEnsemble:
    """It falls and bounces."""
    return compile_model_ensemble(MODELS / "bouncing_ball.py")


def alone(
    model: Path, ensemble: CompiledModelEnsemble, folder: Path, name: str, values: np.ndarray, solver: str
) -> np.ndarray:
    """States and outputs of an FMU of FMI 3 in the ordinary driver, one run for each value."""
    unit = pipeline.export(model, folder, fmi="3", solver=solver)
    definition = unit.build.derivation.definition
    read = (*ensemble.states, *ensemble.output_names)
    runs = [validation.form_experiment_values(definition, {name: value}) for value in values]
    return np.array([validation.simulate_fmu(unit.path, run, read, kind="CoSimulation").values for run in runs])


BALL, BELT, GRIPPER = ("bouncing_ball", "e"), ("stick_slip_belt", "F_s"), ("gripper", "m")


@pytest.mark.parametrize(
    ("name", "varied", "solver"),
    [
        *((*BALL, "explicit"), (*BELT, "implicit")),
        *by_night((*BALL, "implicit"), (*BELT, "explicit"), (*GRIPPER, "explicit"), (*GRIPPER, "implicit")),
    ],
)
def test_instances_with_events_have_the_bits_of_the_fmu(
    name: str, varied: str, solver: Literal["explicit", "implicit"], tmp_path: Path
) -> None:
    """Bounces into rest, friction that sticks and breaks away, a latch and a floor: whole trajectories."""
    model = MODELS / f"{name}.py"
    ensemble = compile_model_ensemble(model)
    values = ensemble.p0[ensemble.parameters.index(varied)] * np.array([1.0, 0.9, 1.05])
    runs = ensemble.simulate(3, {varied: values}, trajectories=True, solver=solver)
    assert runs.messages == ("", "", "")
    theirs = alone(model, ensemble, tmp_path, varied, values, solver)
    np.testing.assert_array_equal(np.concatenate([runs.states, runs.outputs], axis=2), theirs)
    assert np.abs(runs.states[0] - runs.states[1]).max() > 1e-3


def test_inputs_that_change_and_a_memory_of_loops_have_the_bits_of_the_fmu(tmp_path: Path) -> None:
    """The four-bar with two dependent coordinates, whose branch is remembered."""
    model = MODELS / "four_bar.py"
    ensemble = compile_model_ensemble(model, constraints="partition")
    assert ensemble.runs_sequentially
    unit = pipeline.export(model, tmp_path, fmi="3", solver="explicit", constraints="partition")
    values = np.array([9.81, 5.0])
    runs = ensemble.simulate(2, {"g": values}, trajectories=True)
    for k, g in enumerate(values):
        run = validation.form_experiment_values(unit.build.derivation.definition, {"g": float(g)})
        theirs = validation.simulate_fmu(unit.path, run, ("q1", "q2", "u3"), kind="CoSimulation")
        for i, name in enumerate(("q1", "q2", "u3")):
            np.testing.assert_array_equal(runs[name][k], theirs.values[:, i])


def test_neighbours_change_no_bits(ball: CompiledModelEnsemble) -> None:
    """Each is a run of its own, whatever the one before it has come to: more than one block, start values too."""
    heights = np.linspace(0.5, 2.0, 1100)
    many = ball.simulate(1100, {"h": heights}, stop=2.0)
    few = ball.simulate(3, {"h": heights[[0, 1023, 1099]]}, stop=2.0)
    np.testing.assert_array_equal(many.states[[0, 1023, 1099]], few.states)


def test_what_is_reduced_is_that_of_the_trajectory(ball: CompiledModelEnsemble) -> None:
    wanted = {"top": LargestValue("h"), "low": FirstLevelCrossing("total_energy", 0.5, "falling")}
    with pytest.raises(AnalysisError, match="h is no output"):
        ball.simulate(2, reduce=wanted)
    energy = ball.output_names[0]
    runs = ball.simulate(2, {"h": [1.0, 2.0]}, trajectories=True, reduce={"top": LargestValue(energy)})
    np.testing.assert_array_equal(runs["top"], runs[energy].max(axis=1))


def test_a_ball_bounces_as_the_closed_form_says(ball: CompiledModelEnsemble) -> None:
    """After the first bounce, between instants: h = v1 s - g s²/2 with v1 = e √(2 g h0)."""
    e = np.array([0.3, 0.6, 0.9])
    start = dict(zip((*ball.parameters, *ball.states), (*ball.p0, *ball.x0), strict=True))
    g, h0 = start["g"], start["h"]
    fall = np.sqrt(2 * h0 / g)
    after = e * g * fall
    t = round(float(fall) + 0.1, 2)
    runs = ball.simulate(3, {"e": e}, stop=t, step=t / 10)
    s = t - fall
    assert runs["h"] == pytest.approx(after * s - 0.5 * g * s**2, abs=1e-7)
    assert runs["v"] == pytest.approx(after - g * s, abs=1e-7)


def kinked() -> Model:
    """A mass between springs of different stiffness: x' has a kink, and no event of the model's own."""
    x, v = me.dynamicsymbols("x v")
    N, O, k = me.ReferenceFrame("N"), me.Point("O"), sm.Symbol("k")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    load = [(P, -sm.Piecewise((k * x, x > 0), (9 * k * x, True)) * N.x)]
    kane = me.KanesMethod(N, [x], [v], [x.diff() - v], bodies=[me.Particle("load", P, 1)], forcelist=load)
    model = Model("Kinked", kane)
    model.parameter(k, 4.0, "N/m")
    model.coordinate(x, 1.0, "m")
    model.speed(v, 0.0, "m/s")
    model.experiment(stop=3.0, step=0.1)
    return model


def test_kinks_are_met_as_the_fmu_meets_them(tmp_path: Path) -> None:
    ensemble = compile_model_ensemble(kinked())
    unit = pipeline.export(kinked(), tmp_path, fmi="3", solver="explicit")
    for k in (4.0, 5.0):
        run = validation.form_experiment_values(unit.build.derivation.definition, {"k": k})
        theirs = validation.simulate_fmu(unit.path, run, ensemble.states, kind="CoSimulation")
        runs = ensemble.simulate(1, {"k": k}, trajectories=True)
        np.testing.assert_array_equal(runs.states[0], theirs.values)


def test_an_instance_that_gives_up_is_nan_and_others_go_on(ball: CompiledModelEnsemble) -> None:
    runs = ball.simulate(3, {"v": [0.0, 1e300, 0.0]}, stop=0.5)
    assert runs.messages[0] == runs.messages[2] == ""
    assert "total_energy is infinity, not a finite number" in runs.messages[1]
    assert np.isnan(runs.states[1]).all()
    np.testing.assert_array_equal(runs.states[0], runs.states[2])
    assert np.isfinite(runs.states[0]).all()


def test_a_value_out_of_bounds_is_reported_in_the_fmus_words(ball: CompiledModelEnsemble) -> None:
    runs = ball.simulate(2, {"m": [1.0, -1.0]}, stop=0.1)
    assert runs.messages[0] == ""
    assert "m" in runs.messages[1]
    assert np.isnan(runs.outputs[1]).all()


def test_what_instances_with_events_cannot_do_is_named(ball: CompiledModelEnsemble) -> None:
    with pytest.raises(AnalysisError, match="rk4 knows no events"):
        ball.simulate(1, solver="rk4")
