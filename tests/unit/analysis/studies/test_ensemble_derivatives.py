"""Derivatives of many motions at once: they change no bit, and are what differences, laws and other ways tell."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from representatives import by_night

import mb2fmu
from mb2fmu import Model
from mb2fmu.analysis.studies.compiled_model_ensembles import CompiledModelEnsemble, EnsembleSolver
from mb2fmu.analysis.studies.output_reductions import FirstLevelCrossing, LargestValue
from mb2fmu.errors import AnalysisError
from mb2fmu.pipeline.simulation.model_ensemble_compilation import compile_model_ensemble

MODELS = Path(__file__).parents[4] / "models"
ASKED = {"double_pendulum": ("m2", "elbow.angle"), "cart_pole": ("l", "theta"), "four_bar": ("la", "q1")}


@pytest.fixture(scope="module")
def ensemble(request: pytest.FixtureRequest) -> tuple[CompiledModelEnsemble, tuple[str, ...]]:
    """A model with inputs that change, and one with a loop; a parameter and a start value of each."""
    return compile_model_ensemble(MODELS / f"{request.param}.py"), ASKED[request.param]


@pytest.fixture(scope="module")
def pendulum() -> CompiledModelEnsemble:
    """Without a motor."""
    driven = compile_model_ensemble(MODELS / "double_pendulum.py")
    return replace(driven, inputs=np.zeros((1, driven.inputs.shape[1])))


def value_of(ensemble: CompiledModelEnsemble, name: str) -> float:
    """Return what a parameter or a start value is."""
    known = dict(zip((*ensemble.parameters, *ensemble.states), (*ensemble.p0, *ensemble.x0), strict=True))
    return float(known[name])


RUNS = [
    *(("cart_pole", "implicit"), ("cart_pole", "rk4"), ("four_bar", "rk4")),
    *by_night(("four_bar", "implicit"), ("double_pendulum", "implicit"), ("double_pendulum", "rk4")),
    *by_night(*((model, "explicit") for model in ASKED)),
]
"""By day one solver that solves for its steps and one that does not, a model with inputs and one with a loop."""


@pytest.mark.parametrize(("ensemble", "solver"), RUNS, indirect=["ensemble"])
def test_derivatives_change_no_bit_of_the_motion(
    ensemble: tuple[CompiledModelEnsemble, tuple[str, ...]], solver: EnsembleSolver
) -> None:
    many, to = ensemble
    values = {to[0]: value_of(many, to[0]) * np.linspace(0.99, 1.01, 5)}
    alone = many.simulate(5, values, stop=0.2, trajectories=True, solver=solver)
    beside = many.simulate(5, values, stop=0.2, trajectories=True, solver=solver, sensitivities=to)
    np.testing.assert_array_equal(alone.states, beside.states)
    np.testing.assert_array_equal(alone.outputs, beside.outputs)
    assert alone.messages == beside.messages == ("",) * 5


@pytest.mark.parametrize(("ensemble", "solver"), RUNS, indirect=["ensemble"])
def test_derivatives_are_those_of_central_differences(
    ensemble: tuple[CompiledModelEnsemble, tuple[str, ...]], solver: EnsembleSolver
) -> None:
    """Within 1e-6 of the largest of each state and output: differences of this step are off by 1e-8 of themselves."""
    many, to = ensemble
    for i, name in enumerate(to):
        at, h = value_of(many, name), 1e-4
        values = {name: np.array([at, at - h, at + h])}
        runs = many.simulate(3, values, stop=0.3, trajectories=True, solver=solver, tolerance=1e-11, sensitivities=to)
        for found, path in ((runs.state_derivatives, runs.states), (runs.output_derivatives, runs.outputs)):
            differences = (path[2] - path[1]) / (2 * h)
            size = np.maximum(np.abs(differences).max(axis=0), 1e-3)
            assert (np.abs(found[0, :, :, i] - differences).max(axis=0) < 1e-6 * size).all()
        assert np.abs(runs.state_derivatives[0, :, :, i]).max() > 0.1


@pytest.mark.parametrize(("tolerance", "bound"), [(1e-6, 1e-4), (1e-8, 1e-6), (1e-10, 1e-7)])
def test_derivatives_are_as_exact_as_the_motion(
    pendulum: CompiledModelEnsemble, tolerance: float, bound: float
) -> None:
    """Beside those that are integrated under an error control of their own, for all parameters at once."""
    to = (*pendulum.parameters, "elbow.angle")
    found = pendulum.simulate(1, trajectories=True, stop=2.0, tolerance=tolerance, sensitivities=to)
    finer = pendulum.simulate(1, trajectories=True, stop=2.0, tolerance=1e-12, sensitivities=to)
    size = np.abs(finer.state_derivatives).max(axis=(0, 1))
    error = np.abs(found.state_derivatives - finer.state_derivatives).max(axis=(0, 1))
    assert (error < bound * np.maximum(size, 1e-3)).all()


def test_derivatives_are_those_of_the_variational_equations_under_their_own_control() -> None:
    """The four-bar without a torque (its input held at 0), beside ``mb2fmu.sensitivities`` at 1e-11."""
    model = mb2fmu.load(MODELS / "four_bar.py")
    model.experiment(stop=0.5, step=0.05)
    held = compile_model_ensemble(model)
    assert not held.inputs.any()
    to = ("la", "q1")
    runs = held.simulate(1, trajectories=True, tolerance=1e-11, sensitivities=to)
    theirs = mb2fmu.sensitivities(model, of=held.states, to=to, tolerance=1e-11)
    np.testing.assert_allclose(runs.state_derivatives[0], theirs.derivatives, rtol=0, atol=1e-7)
    assert np.abs(theirs.derivatives[:, :, 0]).max() > 1.0


def test_lengths_and_gravity_scale(pendulum: CompiledModelEnsemble) -> None:
    """Angles move alike if all lengths and gravity grow by one factor, or all masses do (no motor): Euler."""
    to = pendulum.parameters
    values = {"elbow.angle": np.linspace(0.2, 1.0, 9)}
    runs = pendulum.simulate(9, values, stop=2.0, tolerance=1e-10, trajectories=True, sensitivities=to)
    weighted = runs.state_derivatives * pendulum.p0
    for group in (("l1", "l2", "g"), ("m1", "m2")):
        parts = weighted[..., [to.index(name) for name in group]]
        assert np.abs(parts.sum(axis=-1)).max() < 1e-8 * np.abs(parts).max()


def test_each_derivative_is_the_same_alone_and_beside_others(pendulum: CompiledModelEnsemble) -> None:
    together = pendulum.simulate(2, {"m1": [1.0, 2.0]}, stop=1.0, sensitivities=("m2", "g"))
    alone = pendulum.simulate(2, {"m1": [1.0, 2.0]}, stop=1.0, sensitivities=("g",))
    for name in (*pendulum.states, *pendulum.output_names):
        np.testing.assert_allclose(together[name, "g"], alone[name, "g"], rtol=1e-11, atol=1e-12)
    np.testing.assert_array_equal(together.states, alone.states)


def stiff() -> Model:
    """A mass behind a spring and a damper so strong that it creeps: poles near -k/d and -d/m = -1e4/s."""
    x, v = me.dynamicsymbols("x v")
    k, d, m = sm.symbols("k d m")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    load = [(P, (-k * x - d * v) * N.x)]
    kane = me.KanesMethod(N, [x], [v], [x.diff() - v], bodies=[me.Particle("load", P, m)], forcelist=load)
    model = Model("Creeping", kane)
    for symbol, value, unit in ((k, 2e4, "N/m"), (d, 1e4, "N.s/m"), (m, 1.0, "kg")):
        model.parameter(symbol, value, unit)
    model.coordinate(x, 1.0, "m")
    model.speed(v, -2.0, "m/s")
    model.experiment(stop=2.0, step=0.1, stiff=True)
    return model


def test_stiff_derivatives_are_the_closed_form() -> None:
    """Of x = a exp(r t) + b exp(s t), by the stiffness, the damping and the start, in few steps."""
    ensemble = compile_model_ensemble(stiff())
    to = ("k", "d", "x")
    runs = ensemble.simulate(1, solver="implicit", tolerance=1e-9, trajectories=True, sensitivities=to)
    k, d, m, x0, t = sm.symbols("k d m x0 t")
    root = sm.sqrt(d**2 - 4 * k * m)
    r, s = (-d + root) / (2 * m), (-d - root) / (2 * m)
    b = (-2 - r * x0) / (s - r)
    position = (x0 - b) * sm.exp(r * t) + b * sm.exp(s * t)
    values = {k: 20000, d: 10000, m: 1, x0: 1}
    for name, symbol in zip(to, (k, d, x0), strict=True):
        slope = position.diff(symbol).subs(values)
        expected = [float(slope.evalf(30, subs={t: sm.Rational(str(round(time, 6)))})) for time in runs.time]
        assert runs["x", name][0] == pytest.approx(expected, rel=1e-6, abs=1e-6 * np.abs(expected).max())


def test_what_is_reduced_is_differentiated(pendulum: CompiledModelEnsemble) -> None:
    """Against central differences of the reduced numbers themselves."""
    wanted = {
        "top": LargestValue("tip.x"),
        "when": FirstLevelCrossing("tip.x", 0.1),
        "never": FirstLevelCrossing("tip.x", 9.0),
    }
    at, h = np.array([0.3, 0.6, 0.9]), 1e-6

    def run(angles: npt.NDArray[np.float64]) -> dict[str, npt.NDArray[np.float64]]:
        return pendulum.simulate(3, {"elbow.angle": angles}, stop=2.0, tolerance=1e-12, reduce=wanted).reduced

    more, less = run(at + h), run(at - h)
    runs = pendulum.simulate(
        3,
        {"elbow.angle": at},
        stop=2.0,
        tolerance=1e-12,
        reduce=wanted,
        sensitivities=("elbow.angle", "g"),
    )
    for name in ("top", "when"):
        expected = (more[name] - less[name]) / (2 * h)
        assert runs[name, "elbow.angle"] == pytest.approx(expected, rel=1e-6, abs=1e-7)
        assert np.abs(expected).max() > 1e-2
    assert np.isnan(runs["never", "g"]).all()


def test_faults_of_derivatives_are_named(pendulum: CompiledModelEnsemble) -> None:
    class Sum:
        """A reduction of a user's, which knows no derivative."""

        output = "tip.x"

        def begin(self, n: int) -> npt.NDArray[np.float64]:
            return np.zeros(n)

        def take(
            self,
            memory: npt.NDArray[np.float64],
            instance: npt.NDArray[np.intp],
            t: npt.NDArray[np.float64],
            y: npt.NDArray[np.float64],
        ) -> None:
            memory[instance] += y * (t >= 0.0)

        def finish(self, memory: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
            return memory

    with pytest.raises(AnalysisError) as caught:
        pendulum.simulate(2, {"nose": 1.0}, sensitivities=("m2", "m2", "mass"), reduce={"sum": Sum()})
    for part in ("nose is neither", "mass is neither", "m2 stands 2 times", "no method differentiate"):
        assert part in str(caught.value)
    with pytest.raises(KeyError, match="by m2"):
        pendulum.simulate(1, stop=0.1, sensitivities=("m2",))["tip.x", "m1"]
