"""Sensitivities of trajectories: against a closed form, against finite differences, and what is refused."""

from __future__ import annotations

from pathlib import Path

import event_models
import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from representatives import by_night

import mb2fmu
from mb2fmu import Model, Parts, analysis, pipeline
from mb2fmu.errors import AnalysisError
from mb2fmu.units import derive_quotient_unit

MODELS = Path(__file__).parents[3] / "models"
T, X0, V0 = sm.symbols("T X0 V0")
MASS, STIFFNESS, DAMPING, SIZE, FREQUENCY = sm.symbols("m k d F w", positive=True)
VALUES = {MASS: 2.0, STIFFNESS: 50.0, DAMPING: 0.8, X0: 0.1, V0: -0.3, SIZE: 3.0, FREQUENCY: 4.0}


def oscillator() -> Model:
    """A mass on a spring and a damper, with a force that the input gives."""
    x, v, force = me.dynamicsymbols("x v force")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    parts = Parts(
        frame=N,
        origin=O,
        q=[x],
        u=[v],
        kinematic_equations=[x.diff() - v],
        bodies=[me.Particle("mass", P, MASS)],
        loads=[(P, (force - STIFFNESS * x - DAMPING * v) * N.x)],
    )
    model = Model("Oscillator", parts)
    model.parameter(MASS, VALUES[MASS], "kg")
    model.parameter(STIFFNESS, VALUES[STIFFNESS], "N/m")
    model.parameter(DAMPING, VALUES[DAMPING], "N.s/m")
    model.input(force, 0.0, "N")
    model.coordinate(x, VALUES[X0], "m")
    model.speed(v, VALUES[V0], "m/s")
    model.output("spring_force", -STIFFNESS * x, "N")
    model.output("acceleration", v.diff(), "m/s2")
    signal = VALUES[SIZE] * sm.cos(VALUES[FREQUENCY] * me.dynamicsymbols._t)
    model.experiment(stop=5.0, step=0.05, tolerance=1e-9, signals={force: signal})
    return model


def motion() -> sm.Expr:
    """x(T) of the oscillator: m x'' + d x' + k x = F cos(w T), x(0) = X0, x'(0) = V0, damped less than critically."""
    m, k, d, F, w = MASS, STIFFNESS, DAMPING, SIZE, FREQUENCY
    decay, rate = d / (2 * m), sm.sqrt(k / m - d**2 / (4 * m**2))
    stiffness, loss = k - m * w**2, d * w
    scale = F / (stiffness**2 + loss**2)
    steady = scale * (stiffness * sm.cos(w * T) + loss * sm.sin(w * T))
    x0, v0 = X0 - steady.subs(T, 0), V0 - steady.diff(T).subs(T, 0)
    return steady + sm.exp(-decay * T) * (x0 * sm.cos(rate * T) + (v0 + decay * x0) / rate * sm.sin(rate * T))


def test_an_oscillator_has_its_closed_form():
    result = mb2fmu.sensitivities(oscillator(), to=("m", "k", "d", "x", "v"), tolerance=1e-12)
    assert result.of == ("x", "v", "spring_force", "acceleration")
    assert result.values.shape == (101, 4)
    assert result.derivatives.shape == (101, 4, 5)
    x = motion()
    wanted = {"x": x, "v": x.diff(T), "spring_force": -STIFFNESS * x, "acceleration": x.diff(T, 2)}
    by = {"m": MASS, "k": STIFFNESS, "d": DAMPING, "x": X0, "v": V0}

    for name, expression in wanted.items():
        function = sm.lambdify([T, *VALUES], expression)
        assert result.value(name) == pytest.approx(function(result.time, *VALUES.values()), abs=1e-9 * 50)
        for to, symbol in by.items():  # a step along the imaginary axis gives derivatives to round-off
            beside = [value + 1e-30j * (known == symbol) for known, value in VALUES.items()]
            exact = function(result.time, *beside).imag / 1e-30
            assert np.max(np.abs(result[name, to] - exact)) < 1e-9 * np.max(np.abs(exact)) + 1e-11, (name, to)


@pytest.mark.parametrize(
    ("model", "of", "to", "stop"),
    [
        *by_night(("double_pendulum", ("shoulder.angle", "elbow.speed"), ("m1", "elbow.angle"), 1.0)),
        ("chaplygin_sleigh", ("theta", "blade_force"), ("a", "v"), 2.0),  # velocity constraints
        ("muscle_arm", ("elbow.angle", "activation", "biceps_power"), ("F_max",), 0.3),  # auxiliary states
    ],
)
def test_models_have_those_of_finite_differences(model, of, to, stop):
    path = MODELS / f"{model}.py"
    definition = mb2fmu.load(path)
    declared = {item.name: item for item in definition.declared if hasattr(item, "name")}
    to = tuple(name for name in to if name in declared)
    result = mb2fmu.sensitivities(path, of=of, to=to, stop=stop, step=stop / 10, tolerance=1e-12)
    for name in to:
        value = float(getattr(declared[name], "value", None) or declared[name].start)
        h = 1e-4 * max(abs(value), 0.1)

        def moved(by, name=name, value=value):
            ran = mb2fmu.sensitivities(
                path, of=of, to=to[:1], at={name: value + by}, stop=stop, step=stop / 10, tolerance=1e-13
            )
            return ran.values

        slope = (moved(h) - moved(-h)) / (2 * h)  # h is 1e-4 of the value: off by 1e-8 or so
        exact = result.derivatives[:, :, to.index(name)]
        scale = np.max(np.abs(slope), axis=0) + 1e-6 * np.max(np.abs(result.values), axis=0)  # of what does not depend
        assert np.max(np.abs(exact - slope) / scale) < 2e-6, name


def test_the_start_is_where_it_begins():
    path = MODELS / "double_pendulum.py"
    result = mb2fmu.sensitivities(path, of=("shoulder.angle",), to=("shoulder.angle", "m1"), stop=0.1)
    assert result["shoulder.angle", "shoulder.angle"][0] == 1.0
    assert result["shoulder.angle", "m1"][0] == 0.0
    assert result.unit("shoulder.angle", "m1") == "rad/kg"
    assert result.unit("shoulder.angle", "shoulder.angle") == "1"
    with pytest.raises(KeyError, match="not among"):
        result["elbow.angle", "m1"]


def test_everything_that_is_wrong_is_said_at_once():
    with pytest.raises(AnalysisError) as caught:
        mb2fmu.sensitivities(oscillator(), of=("y",), to=("spring_force", "k"), stop=-1.0)
    message = str(caught.value)
    assert "y cannot be differentiated" in message
    assert "spring_force cannot be differentiated by" in message
    assert "the instants do not increase" in message


def test_units_of_derivatives():
    assert derive_quotient_unit("m/s", "kg.m2") == "1/(m.s.kg)"
    assert derive_quotient_unit("rad", "rad") == "1"
    assert derive_quotient_unit("N.m", "1") == "N.m"
    assert derive_quotient_unit("degC", "s") == "K/s"


@pytest.mark.repeats  # by day one with a stop, in studies/test_derivatives_with_events, by the same equations
def test_a_closed_loop_is_differentiated_as_the_fmu_starts_it():
    """A longer crank closes elsewhere: the start moves, too. Differences are those of the FMU's own motion.

    Its motion is known to 1e-7, so with a tenth of this h the differences themselves would be off by 1e-3.
    """
    model, h, stop = MODELS / "four_bar.py", 5e-4, 0.5
    found = mb2fmu.sensitivities(model, of=("q1", "q2", "q3"), to=("la", "q1"), stop=stop, tolerance=1e-11)
    for k, (name, value) in enumerate({"la": 0.8, "q1": np.radians(10.0)}.items()):
        less, more = (mb2fmu.simulate(model, at={name: value + by}, stop=stop) for by in (-h, h))
        for i, of in enumerate(("q1", "q2", "q3")):
            differences = (more[of] - less[of]) / (2 * h)
            np.testing.assert_array_equal(found.time, more.time)
            assert np.abs(found.derivatives[:, i, k] - differences).max() < 1e-3 * np.abs(differences).max()
    assert abs(found["q2", "la"][0]) > 0.5


def test_inputs_that_jump_are_held_to_the_instant():
    """A mass on a spring under a force that is held: pushed by 1 N until 0.3 s, pulled by 2 N from there on."""
    push, stiffness = me.dynamicsymbols("push"), sm.Symbol("k")
    model, *_ = event_models.particle(0.5, 0.0, lambda x, _: push - stiffness * x)
    model.parameter(stiffness, 4.0, "N/m")
    model.input(push, 0.0, "N")
    derivation = pipeline.derive(model)
    start = analysis.make_operating_point_start(derivation.definition, derivation.equations, {})
    study = analysis.make_sensitivity_request(
        derivation.definition, derivation.equations, start, ("x",), ("k",), stop=0.7, step=0.1, tolerance=1e-12
    )
    held = analysis.ZeroOrderHoldInputs(study.time[[0, 3]], np.array([[1.0], [-2.0]]))
    found = analysis.compute_sensitivities(derivation.program, start, held, study)

    def place(k, t):
        w = np.sqrt(k)
        x, v = 1 / k + (0.5 - 1 / k) * np.cos(w * np.minimum(t, 0.3)), -(0.5 - 1 / k) * w * np.sin(w * min(t, 0.3))
        later = max(t - 0.3, 0.0)
        return x if later == 0.0 else -2 / k + (x + 2 / k) * np.cos(w * later) + v / w * np.sin(w * later)

    exact = [(place(4.0 + 1e-5, t) - place(4.0 - 1e-5, t)) / 2e-5 for t in found.time.tolist()]
    np.testing.assert_allclose(found["x", "k"], exact, rtol=0, atol=1e-10)
