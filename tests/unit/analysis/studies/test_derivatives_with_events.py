"""Derivatives of many motions with events: closed forms, differences of the FMUs, and what has none."""

from __future__ import annotations

from pathlib import Path

import event_models
import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from representatives import by_night

import mb2fmu
from mb2fmu import Impact, Model, load, sticking_sign
from mb2fmu.analysis.saltation_sensitivities import SaltationIntegration
from mb2fmu.analysis.studies.compiled_model_ensembles import CompiledModelEnsemble
from mb2fmu.analysis.studies.output_reductions import LargestValue
from mb2fmu.errors import AnalysisError
from mb2fmu.pipeline.simulation.model_ensemble_compilation import compile_model_ensemble

MODELS = Path(__file__).parents[4] / "models"
STEP = 1e-5
"""Of differences, as a part of the value."""


@pytest.fixture(scope="module")
def ball() -> CompiledModelEnsemble:
    """It falls and bounces."""
    return compile_model_ensemble(MODELS / "bouncing_ball.py")


def known(ensemble: CompiledModelEnsemble) -> dict[str, float]:
    """Parameters and start values."""
    return dict(zip((*ensemble.parameters, *ensemble.states), (*ensemble.p0, *ensemble.x0), strict=True))


def check_ball(ball: CompiledModelEnsemble) -> None:
    """After the first bounce: h = v1 s - g s²/2 with v1 = e √(2 g h0), s since the bounce at √(2 h0/g)."""
    start, e = known(ball), np.array([0.3, 0.6, 0.9])
    g, h0 = start["g"], start["h"]
    fall = np.sqrt(2 * h0 / g)
    t = round(float(fall) + 0.1, 2)
    runs = ball.simulate(3, {"e": e}, stop=t, step=t / 10, sensitivities=("e", "h"), trajectories=True)
    s, late = t - fall, fall / (2 * h0)
    assert runs.no_derivatives == ("", "", "")
    assert runs["v", "e"][:, -1] == pytest.approx(np.full(3, g * fall), rel=1e-8)
    assert runs["v", "h"][:, -1] == pytest.approx(e * g * late + g * late, rel=1e-8)
    assert runs["h", "e"][:, -1] == pytest.approx(np.full(3, g * fall * s), rel=1e-8)
    assert runs["h", "h"][:, -1] == pytest.approx(e * g * late * s - (e * g * fall - g * s) * late, rel=1e-8)
    np.testing.assert_array_equal(runs["h", "h"][:, 0], 1.0)


def test_a_ball_behind_its_bounce_is_the_closed_form(ball: CompiledModelEnsemble) -> None:
    check_ball(ball)


def test_the_instant_of_the_event_is_in_it(ball: CompiledModelEnsemble, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: jumps as if events were at fixed instants."""
    monkeypatch.setattr(SaltationIntegration, "_moved", lambda self, at, rates: np.zeros(len(at.late)))  # noqa: ARG005
    with pytest.raises(AssertionError):
        check_ball(ball)


@pytest.mark.parametrize(
    ("name", "to", "of", "step"),
    [
        ("gripper", ("t_drop", "q1"), ("q1", "q2", "x", "y", "u1", "u2", "vx", "vy"), 0.07),
        *by_night(
            ("gripper", ("m", "k"), ("q1", "q2", "x", "y", "u1", "u2", "vx", "vy"), 0.07),
            (
                "woodpecker",
                ("c_phi", "mu", "J_M", "omega_S"),
                ("y", "phi_M", "phi_S", "v", "omega_M", "omega_S"),
                0.0075,
            ),
        ),
        ("stick_slip_belt", ("k", "F_s"), (), 0.137),
    ],
)
def test_through_latches_floors_and_friction_they_are_differences_of_the_fmus(
    name: str, to: tuple[str, ...], of: tuple[str, ...], step: float
) -> None:
    """Contacts open at no speed, others are held at rest: neither grazes. No event is at a sample."""
    many = compile_model_ensemble(MODELS / f"{name}.py")
    start, n = known(many), 2 * len(to) + 1
    values = {by: np.full(n, start[by]) for by in to}
    for k, by in enumerate(to):
        values[by][2 * k + 1 : 2 * k + 3] *= [1 + STEP, 1 - STEP]
    moved = many.simulate(n, values, step=step, tolerance=1e-12, trajectories=True)
    runs = many.simulate(1, step=step, tolerance=1e-11, trajectories=True, sensitivities=to)
    alone = many.simulate(1, step=step, tolerance=1e-11, trajectories=True)
    assert not any(moved.messages)
    assert runs.no_derivatives == ("",)
    np.testing.assert_array_equal(runs.states, alone.states)
    for k, by in enumerate(to):
        for each in of or many.states:
            path = moved[each]
            differences = (path[2 * k + 1] - path[2 * k + 2]) / (2 * STEP * start[by])
            size = max(np.abs(differences).max(), 1e-3 * np.abs(path).max() / abs(start[by]))
            np.testing.assert_allclose(
                runs[each, by][0], differences, rtol=0, atol=1e-5 * size, err_msg=f"{each} by {by}"
            )


def pushed() -> Model:
    """A mass on a spring that a sampled force pushes, with dry friction: it sticks, and jumps of the force free it."""
    push, k, f = me.dynamicsymbols("push"), *sm.symbols("k f")
    model, *_ = event_models.particle(0.0, 0.0, lambda x, v: push - k * x - f * sticking_sign(v, 1.3 * f))
    model.parameter(k, 2.0, "N/m")
    model.parameter(f, 0.6, "N")
    model.input(push, 0.0, "N")
    model.experiment(stop=3.0, step=0.1, signals={push: 2 * sm.sin(2.3 * me.dynamicsymbols._t)})
    return model


def stopped() -> Model:
    """A four-bar linkage under a torque that changes, its rocker between stops; two of its angles follow."""
    model, torque = load(MODELS / "four_bar.py"), me.dynamicsymbols("torque")
    gap = -sm.Rational(9, 5) - sum(model.mechanics.q)
    model.add(Impact("stop", gap, restitution=0.5, unit="rad", rest_below=1e-3))
    model.experiment(stop=1.2, step=0.02, signals={torque: sm.sin(3 * me.dynamicsymbols._t) / 3})
    return model


def check_differences(many: CompiledModelEnsemble, to: tuple[str, ...], of: tuple[str, ...], within: float) -> None:
    """Derivatives against central differences of the FMUs, over the experiment."""
    start, n = known(many), 2 * len(to) + 1
    values = {by: np.full(n, start[by]) for by in to}
    for k, by in enumerate(to):
        values[by][2 * k + 1 : 2 * k + 3] *= [1 + STEP, 1 - STEP]
    moved = many.simulate(n, values, tolerance=1e-12, trajectories=True)
    runs = many.simulate(1, tolerance=1e-11, trajectories=True, sensitivities=to)
    assert runs.no_derivatives == ("",)
    for k, by in enumerate(to):
        for each in of:
            path = moved[each]
            differences = (path[2 * k + 1] - path[2 * k + 2]) / (2 * STEP * start[by])
            size = np.abs(differences).max()
            assert size > 1e-3
            np.testing.assert_allclose(runs[each, by][0], differences, rtol=0, atol=within * size)


def test_inputs_may_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """Held from one communication point to the next, as the FMU is given them; planted: all jumps left out."""
    many = compile_model_ensemble(pushed())
    check_differences(many, ("k", "f"), ("x", "v"), 1e-8)
    monkeypatch.setattr(
        "mb2fmu.analysis.zero_order_hold_inputs.ZeroOrderHoldInputs.hold_interval_ends", lambda _, end: iter((end,))
    )
    with pytest.raises(AssertionError):
        check_differences(many, ("k", "f"), ("x", "v"), 1e-8)


def test_what_follows_from_states_has_them_too() -> None:
    many = compile_model_ensemble(stopped(), constraints="explicit")
    of = ("q1", "u1", "q2", "q3", "u2", "u3", "coupler_pin.x", "total_energy", "loop_force.x", "stop.impulse")
    check_differences(many, ("lb",), of, 1e-6)


def test_an_instance_that_ends_early_has_none_in_its_own_words(ball: CompiledModelEnsemble) -> None:
    runs = ball.simulate(3, {"v": [0.0, 1e300, 0.5]}, stop=0.6, step=0.1, sensitivities=("e",), trajectories=True)
    assert runs.no_derivatives[0] == runs.no_derivatives[2] == ""
    assert "total_energy is infinity" in runs.no_derivatives[1]
    assert np.isnan(runs["h", "e"][1]).all()
    assert np.isfinite(runs["h", "e"][[0, 2]]).all()


def test_an_instance_that_grazes_is_nan_beside_others(
    ball: CompiledModelEnsemble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of three is refused by the variational equations: its motion stays, its derivatives are NaN."""
    follow, asked = SaltationIntegration.integrate_through_events, []

    def second(self: SaltationIntegration, x: np.ndarray, slopes: np.ndarray) -> list:
        asked.append(x)
        if len(asked) == 2:
            raise AnalysisError("the motion cannot be differentiated:", [mb2fmu.errors.Fault("ground is only touched")])
        return follow(self, x, slopes)

    monkeypatch.setattr(SaltationIntegration, "integrate_through_events", second)
    energy = ball.output_names[0]
    runs = ball.simulate(3, stop=0.5, sensitivities=("e",), reduce={"top": LargestValue(energy)})
    assert runs.messages == ("", "", "")
    assert runs.no_derivatives == ("", "ground is only touched", "")
    assert np.isfinite(runs.states).all()
    assert np.isnan(runs.state_derivatives[1]).all()
    assert np.isnan(runs["top", "e"][1])
    assert np.isfinite(runs["top", "e"][[0, 2]]).all()


def test_blocks_and_solvers_have_derivatives_alike(
    ball: CompiledModelEnsemble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mb2fmu.analysis.studies.compiled_model_ensembles.INSTANCES_PER_BLOCK", 2)
    values = {"e": np.linspace(0.4, 0.8, 5)}
    explicit = ball.simulate(5, values, stop=0.7, step=0.1, sensitivities=("e", "h"))
    implicit = ball.simulate(5, values, stop=0.7, step=0.1, sensitivities=("e", "h"), solver="implicit")
    np.testing.assert_array_equal(explicit.state_derivatives, implicit.state_derivatives)
    assert explicit.state_derivatives.shape == (5, len(ball.states), 2)
    assert len(explicit.no_derivatives) == 5


def test_where_they_cannot_be_had_it_is_named() -> None:
    remembering = compile_model_ensemble(MODELS / "four_bar.py", constraints="partition")
    with pytest.raises(AnalysisError, match="loops remember their branch"):
        remembering.simulate(1, sensitivities=("g",))
