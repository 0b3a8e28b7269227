"""Sensitivities through events against closed forms: impacts, rest, friction that sticks, sampling; grazing."""

from __future__ import annotations

from pathlib import Path

import event_models
import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from representatives import by_night

import mb2fmu
from mb2fmu import Impact, Model, pre
from mb2fmu.analysis.saltation_sensitivities import SaltationIntegration
from mb2fmu.errors import AnalysisError

MODELS = Path(__file__).parents[3] / "models"
G = 9.81
E, H, V, T, F, K, P = sm.symbols("e h v t F k K", positive=True)


def particle(force: sm.Expr, start: float, speed: float) -> tuple[Model, sm.Expr, sm.Expr]:
    """A mass of 1 kg on a line, its coordinate and its speed."""
    model, x, v = event_models.particle(start, speed, lambda *_: force)
    model.experiment(stop=1.4, step=0.1, tolerance=1e-9)
    return model, x, v


def ball(speed: float = 0.0, ceiling: float | None = None) -> Model:
    model, x, _ = particle(-sm.Float(G), 1.0, speed)
    model.parameter(E, 0.7, "1")
    model.add(Impact("ground", x, restitution=E, rest_below=0.5 if ceiling is None else 1e-3))
    if ceiling is not None:
        model.add(Impact("ceiling", ceiling - x, restitution=0.5))
    return model


def is_derivative(found, of: str, to: str, pieces, by: sm.Symbol, values: dict) -> None:
    """Whether a result is the derivative of a function of T that is given piece by piece: (until, function)."""
    functions = [(until, sm.lambdify(T, sm.sympify(each).diff(by).subs(values))) for until, each in pieces]
    exact = [next(f(t) for until, f in functions if t < until) for t in found.time.tolist()]
    assert found[of, to] == pytest.approx(exact, rel=1e-8, abs=1e-8 * max(map(abs, exact)))


def test_a_ball_through_its_bounces():
    fall = sm.sqrt(V**2 + 2 * G * H)
    first = (V + fall) / G
    second = first + 2 * E * fall / G
    heights = [
        (0.45152364, H + V * T - G * T**2 / 2),
        (1.08365673, E * fall * (T - first) - G * (T - first) ** 2 / 2),
        (9.0, E**2 * fall * (T - second) - G * (T - second) ** 2 / 2),
    ]
    found = mb2fmu.sensitivities(ball(), of=("x", "v"), to=("e", "x", "v"), tolerance=1e-11)
    for to, by in (("e", E), ("x", H), ("v", V)):
        values = {E: 0.7, H: 1.0, V: 0.0}
        is_derivative(found, "x", to, heights, by, values)
        is_derivative(found, "v", to, [(until, h.diff(T)) for until, h in heights], by, values)


def test_what_rests_does_not_depend_on_where_it_began():
    """It leaves the sixth impact with less than 0.5 m/s; its last impulse still depends on the restitution."""
    found = mb2fmu.sensitivities(ball(), of=("x", "ground.impulse"), to=("e", "x"), stop=2.6, step=2.6)
    impulse = E**6 * sm.sqrt(2 * G * H)
    assert found.value("ground.impulse")[-1] == pytest.approx(float(impulse.subs({E: 0.7, H: 1})), rel=1e-8)
    assert np.abs([found["x", "e"][-1], found["x", "x"][-1]]).max() < 1e-8
    for to, by in (("e", E), ("x", H)):
        exact = float(impulse.diff(by).subs({E: 0.7, H: 1}))
        assert found["ground.impulse", to][-1] == pytest.approx(exact, rel=1e-8)


def test_dry_friction_turns_and_rests():
    """Each half period begins where the one before ended, 2 F/k nearer; after eight of them the mass rests."""
    rate, pieces = sm.sqrt(K), []
    for n in range(8):
        centre = (-1) ** n * F / K
        begin = (-1) ** n * (H - 2 * n * F / K)
        turned = centre + (begin - centre) * sm.cos(rate * T - n * sm.pi)
        pieces.append(((n + 1) * np.pi / 10, turned))
    pieces.append((9.0, H - 16 * F / K))
    found = mb2fmu.sensitivities(
        MODELS / "dry_friction_oscillator.py", of=("x",), to=("F", "k", "x"), stop=3.0, step=0.11, tolerance=1e-11
    )
    for to, by in (("F", F), ("k", K), ("x", H)):
        is_derivative(found, "x", to, pieces, by, {F: 1.2, K: 100.0, H: 0.2})


def test_a_sampled_controller_and_a_push():
    """Force by samples at each 0.1 s, and an instant at which the speed is set; both at fixed times."""
    force = me.dynamicsymbols("force")
    model, x, v = particle(force, 1.0, 0.0)
    model.parameter(P, 4.0, "N/m")
    model.discrete(force, 0.0, "N")
    model.every(0.1, {force: -P * x - 2 * v})
    model.once(0.55, {v: pre(v) + P / 4})

    def end(gain: complex, at: complex) -> tuple[complex, complex]:
        """Place and speed after 1 s, from sample to sample."""
        speed = 0.0 + 0j
        for k in range(10):
            f = -gain * at - 2 * speed
            for i, h in enumerate((0.05, 0.05) if k == 5 else (0.1,)):
                speed += gain / 4 if i else 0
                at, speed = at + speed * h + f * h * h / 2, speed + f * h
        return at, speed

    found = mb2fmu.sensitivities(model, of=("x", "v"), to=("K", "x"), stop=1.0, step=0.25, tolerance=1e-11)
    for to, ends in (("K", end(4.0 + 1e-30j, 1.0)), ("x", end(4.0, 1.0 + 1e-30j))):
        for of, value in zip(("x", "v"), ends, strict=True):
            assert found[of, to][-1] == pytest.approx(value.imag / 1e-30, rel=1e-9)


def test_a_force_that_jumps_where_the_motion_goes_on():
    """Beyond 0.5 m a force of K brakes: the instant moves with where the mass begins, and is no event of the model."""
    x = me.dynamicsymbols("x")
    model, _, _ = particle(sm.Piecewise((-P, x > sm.Rational(1, 2)), (0, True)), 0.0, 1.0)
    model.parameter(P, 0.3, "N")
    enters = (sm.Rational(1, 2) - H) / V
    after = sm.Rational(1, 2) + V * (T - enters) - P * (T - enters) ** 2 / 2
    found = mb2fmu.sensitivities(model, of=("x",), to=("K", "x", "v"), tolerance=1e-11, step=0.09)
    for to, by in (("K", P), ("x", H), ("v", V)):
        is_derivative(found, "x", to, [(0.5, H + V * T), (9.0, after)], by, {P: 0.3, H: 0.0, V: 1.0})


def test_grazing_is_refused_by_name():
    """Thrown up at 2 m/s, under a ceiling a tenth of a nanometre below the top."""
    top = 1 + 2.0**2 / (2 * G)
    with pytest.raises(AnalysisError, match=r"ceiling.* is only touched at t = 0.2038.* s \(grazing\)"):
        mb2fmu.sensitivities(ball(2.0, top - 1e-10), of=("v",), to=("v",), stop=0.3, step=0.3)


def test_events_that_move_apart_are_refused_by_name():
    """A wall and a jump of the force at one place, each of which depends on another parameter."""
    model, x, _ = particle(sm.Piecewise((-1, me.dynamicsymbols("x") > P), (0, True)), 0.0, 1.0)
    wall = sm.Symbol("wall")
    model.parameter(P, 0.5, "m")
    model.parameter(wall, 0.5, "m")
    model.add(Impact("wall", wall - x, restitution=0.5))
    with pytest.raises(AnalysisError, match=r"change at one instant, t = 0\.5 s"):
        mb2fmu.sensitivities(model, of=("x",), to=("K", "wall"), stop=1.0, step=0.5)


def test_the_instant_of_the_event_is_in_it(monkeypatch):
    """Planted: derivatives that jump as if the event were at a fixed instant are found by the closed form."""
    monkeypatch.setattr(SaltationIntegration, "_moved", lambda self, at, rates: np.zeros(len(at.late)))  # noqa: ARG005
    with pytest.raises(AssertionError):
        test_a_ball_through_its_bounces()


def test_endless_events_are_reported():
    """Between walls whose distance, a parameter, is zero; if it is always zero that is reported when they are read."""
    model, x, _ = particle(sm.S.Zero, 0.0, -1.0)
    width = sm.Symbol("width")
    model.parameter(width, 0.0, "m")
    for name, gap in (("left", x), ("right", width - x)):
        model.add(Impact(name, gap, restitution=1.0))
    with pytest.raises(AnalysisError, match="impact of left, right"):
        mb2fmu.sensitivities(model, of=("x",), to=("x",), stop=1.0, step=0.5)


@pytest.mark.parametrize(
    ("name", "stop", "where", "planted"),
    [
        ("gripper", 0.3, r"floor is apart.* only touched at t = 0\.192592 s", ("_is_one_at_any_instant", "_is_idle")),
        *by_night(("woodpecker", 0.15, r"lower approaches.* change at one instant, t = 0\.144092 s", ("_is_idle",))),
    ],
)
def test_what_makes_no_difference_grazes_nothing(
    name: str, stop: float, where: str, planted: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gap that grows from zero speed, bodies held at rest; refused again if that is not looked at."""
    asked = {"of": ("y",), "to": ("g",), "stop": stop, "step": stop / 3}
    assert np.isfinite(mb2fmu.sensitivities(MODELS / f"{name}.py", **asked).derivatives).all()
    for each in planted:
        monkeypatch.setattr(SaltationIntegration, each, lambda *_: False)
    with pytest.raises(AnalysisError, match=where):
        mb2fmu.sensitivities(MODELS / f"{name}.py", **asked)
