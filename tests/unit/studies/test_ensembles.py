"""Many instances at once: each has the bits of the unit's own solver, and what is wrong is said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import sympy.physics.mechanics as me

import mb2fmu
from mb2fmu import Impact, Model, pipeline, validation
from mb2fmu.errors import AnalysisError
from mb2fmu.pipeline.compiling import compiled
from mb2fmu.pipeline.identifying import identify
from mb2fmu.studies.ensembles import Ensemble
from mb2fmu.studies.reductions import FirstCrossing, Largest

MODELS = Path(__file__).parents[3] / "models"


@pytest.fixture(scope="module")
def cart_pole() -> Ensemble:
    return compiled(MODELS / "cart_pole.py")


def bits_of_the_unit(name: str, folder: Path, varied: dict[str, tuple[float, ...]], ensemble: Ensemble) -> None:
    """Runs the unit for each set of values, and all of them at once."""
    n = len(next(iter(varied.values())))
    unit = pipeline.export(MODELS / f"{name}.py", folder, fmi="3")
    runs = ensemble.simulate(n, {key: np.array(values) for key, values in varied.items()}, trajectories=True)
    assert not any(runs.messages)
    for k in range(n):
        parameters = {key: values[k] for key, values in varied.items()}
        run = validation.conditions(unit.build.derivation.definition, parameters)
        wanted = validation.simulate(unit.path, run, runs.state_names, kind="CoSimulation")
        np.testing.assert_array_equal(runs.states[k], wanted.values)


def test_instances_have_the_bits_of_the_unit_under_changing_inputs(cart_pole: Ensemble, tmp_path: Path) -> None:
    bits_of_the_unit("cart_pole", tmp_path, {"m": (0.1, 0.4), "l": (1.0, 0.7)}, cart_pole)


@pytest.mark.repeats
@pytest.mark.parametrize(("name", "varied"), [("double_pendulum", "m2"), ("four_bar", "g"), ("robot_arm", "g")])
def test_instances_of_further_models_have_the_bits_of_the_unit(name: str, varied: str, tmp_path: Path) -> None:
    ensemble = compiled(MODELS / f"{name}.py")
    value = ensemble.p0[ensemble.parameters.index(varied)]
    bits_of_the_unit(name, tmp_path, {varied: (value, 1.01 * value)}, ensemble)


def test_neighbours_change_no_bits_however_many_there_are(cart_pole: Ensemble) -> None:
    masses = np.linspace(0.05, 2.0, 2100)  # more than fit side by side: some take the places of others
    many = cart_pole.simulate(2100, {"m": masses}, stop=1.0, step=0.5)
    picked = np.array([0, 2047, 2048, 2099])
    few = cart_pole.simulate(4, {"m": masses[picked]}, stop=1.0, step=0.5)
    np.testing.assert_array_equal(many.states[picked], few.states)


def test_fixed_steps_converge_with_the_fourth_power(cart_pole: Ensemble) -> None:
    exact = cart_pole.simulate(2, {"m": [0.1, 0.3]}, stop=1.0, tolerance=1e-12).states
    errors = [
        np.abs(cart_pole.simulate(2, {"m": [0.1, 0.3]}, stop=1.0, solver="rk4", internal_step=h).states - exact).max()
        for h in (cart_pole.step / 1, cart_pole.step / 2)
    ]
    assert 14.0 < errors[0] / errors[1] < 18.0


def test_reductions_are_those_of_the_trajectories(cart_pole: Ensemble) -> None:
    values = {"theta": np.array([0.02, 0.1, 0.3])}
    runs = cart_pole.simulate(
        3, values, trajectories=True, reduce={"top": Largest("tip.y"), "when": FirstCrossing("tip.y", 0.5)}
    )
    heights = runs["tip.y"]
    np.testing.assert_array_equal(runs["top"], heights.max(axis=1))
    for k in range(3):
        below = np.flatnonzero(heights[k] <= 0.5)
        expected = np.interp(0.5, heights[k, [below[0], below[0] - 1]], runs.time[[below[0], below[0] - 1]])
        assert runs["when"][k] == pytest.approx(expected, abs=1e-12)
    assert runs["when"][0] > runs["when"][1] > runs["when"][2]


def test_an_instance_without_result_is_nan_and_says_why(cart_pole: Ensemble) -> None:
    runs = cart_pole.simulate(2, {"omega": np.array([0.0, 1e200])}, stop=0.1)
    assert runs.messages[0] == ""
    assert "at t = " in runs.messages[1]
    assert np.isfinite(runs.states[0]).all()
    assert np.isnan(runs.states[1]).all()


def test_every_fault_is_named(cart_pole: Ensemble) -> None:
    with pytest.raises(AnalysisError) as caught:
        cart_pole.simulate(3, {"mass": 1.0, "m": [1.0, 2.0]}, stop=-1.0, reduce={"top": Largest("nose")})
    message = str(caught.value)
    for part in ("mass is neither", "m has 2 values for 3", "-1 is not positive", "nose is no output"):
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
def test_what_x_dot_alone_does_not_tell_is_refused(model: Model | Path, tmp_path: Path) -> None:
    """Events of the model's own, friction that sticks, impacts: no trial integrates across them unseen."""
    with pytest.raises(AnalysisError, match="events"):
        compiled(model)
    with pytest.raises(AnalysisError, match="events"):
        identify(model, [tmp_path / "measured.csv"], ["h"])
    with pytest.raises(AnalysisError, match="events"):
        mb2fmu.sensitivities(model, to=("h",))
