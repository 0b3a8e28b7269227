"""Signals of a prescribed motion: what a formula says of the rates, and that a table without them is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import sympy as sm
from hypothesis import given
from hypothesis import strategies as st
from sympy.physics import mechanics as me

import mb2fmu
from mb2fmu import Model
from mb2fmu.errors import ModelError, ValidationError
from mb2fmu.model.checks.model_definition_checks import check_model
from mb2fmu.pipeline.simulation.input_signals import (
    differentiate_input_formula,
    parse_input_formula,
    read_input_signals,
)
from mb2fmu.validation import form_experiment_values

T = me.dynamicsymbols._t
S = me.dynamicsymbols("s")
UNITS = {"s": "m", "s_dot": "m/s", "s_ddot": "m/s2"}
RATES = {"s": "s_dot", "s_dot": "s_ddot"}
MOTION = "0.1*sin(3*t)"


def pendulum(**signals: sm.Expr | float) -> Model:
    """A pendulum whose pivot is moved."""
    q, u = me.dynamicsymbols("q u")
    m, l, g = sm.symbols("m l g")
    N, A, O = me.ReferenceFrame("N"), me.ReferenceFrame("A"), me.Point("O")
    O.set_vel(N, 0)
    A.orient_axis(N, N.z, q)
    A.set_ang_vel(N, u * N.z)
    pivot = O.locatenew("C", S * N.x)
    pivot.set_vel(N, S.diff() * N.x)
    bob = pivot.locatenew("P", -l * A.y)
    bob.v2pt_theory(pivot, N, A)
    loads = [(bob, -m * g * N.y)]
    kane = me.KanesMethod(N, [q], [u], [q.diff() - u], bodies=[me.Particle("bob", bob, m)], forcelist=loads)
    model = Model("Pendulum", kane)
    for symbol, value in ((m, 1.0), (l, 0.5), (g, 9.81)):
        model.parameter(symbol, value)
    model.input(S, 0.0, "m", rates=True)
    model.coordinate(q, 0.2, "rad")
    model.speed(u, 0.0, "rad/s")
    by_name = {"s": S, "s_dot": S.diff(), "s_ddot": S.diff(T, 2)}
    model.experiment(stop=0.5, signals={by_name[name]: signal for name, signal in signals.items()})
    return model


@pytest.mark.parametrize(
    "text", ["0.3*exp(-t)*tanh(2*t)^3", "atan2(t, 2) + hypot(t, 1)", "e^(t/3)*log(2 + t)", "asin(t/5)*pi", "2*time"]
)
@given(t=st.floats(0.0, 3.0))
def test_the_derivative_of_a_formula_is_its_slope(text: str, t: float) -> None:
    value, slope = parse_input_formula(text), parse_input_formula(differentiate_input_formula(text))
    assert slope(t) == pytest.approx((value(t + 1e-5) - value(t - 1e-5)) / 2e-5, rel=1e-7, abs=1e-8)


def test_a_formula_moves_its_rates() -> None:
    """The motion is the one of rates that are written out; what is given stays as it is given."""
    written = {"s": MOTION, "s_dot": "0.3*cos(3*t)", "s_ddot": "-0.9*sin(3*t)"}
    expected = mb2fmu.simulate(pendulum(), inputs=written)
    found = mb2fmu.simulate(pendulum(), inputs={"s": MOTION})
    for name in (*UNITS, "q"):
        np.testing.assert_allclose(found[name], expected[name], atol=1e-9)
    assert np.ptp(found["s_ddot"]) > 0.5
    still = {
        signal.name: signal.at(0.4) for signal in read_input_signals({"s": MOTION, "s_dot": 0.0}, (), UNITS, 1.0, RATES)
    }
    assert (still["s_dot"], still["s_ddot"]) == (0.0, 0.0)


@pytest.mark.parametrize("motion", ["0.1*step(t - 0.2)", "ramp(t - 0.2)", "t % 1", "1 if t > 1 else t", lambda t: t])
def test_a_motion_without_rates_is_refused_where_they_cannot_be_formed(motion) -> None:
    with pytest.raises(ValidationError) as caught:
        read_input_signals({"s": motion}, (), UNITS, 1.0, RATES)
    (fault,) = caught.value.faults
    assert "s_dot, s_ddot" in str(fault)
    read_input_signals({"s": motion, "s_dot": 1.0}, (), UNITS, 1.0, RATES)


def test_a_table_gives_the_rates_too_or_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "s.csv"
    table.write_text("time,s\n0,0\n1,0.1\n")
    with pytest.raises(ValidationError, match="its rates are not given: s_dot, s_ddot") as caught:
        mb2fmu.simulate(pendulum(), inputs=table)
    assert len(caught.value.faults) == 1
    with pytest.raises(ValidationError, match="there is no input s_dott") as caught:
        read_input_signals({"s_dott": 0.0}, (table,), UNITS, 1.0, RATES)
    assert len(caught.value.faults) == 1, "what is missing is misspelt"
    table.write_text("time\n0\n1\n")
    with pytest.raises(ValidationError, match="has the column time only"):
        read_input_signals({"s": 0.0}, (table,), UNITS, 1.0, RATES)
    table.write_text("time,s,s_dot\n0,0,0.1\n1,0.1,0.1\n")
    with pytest.raises(ValidationError, match="its rates are not given: s_ddot"):
        read_input_signals({}, (table,), UNITS, 1.0, RATES)
    assert {signal.name for signal in read_input_signals({"s_ddot": 0.0}, (table,), UNITS, 1.0, RATES)} == set(UNITS)


def test_the_experiment_moves_rates_with_their_signal() -> None:
    """As its signal says; a rate with a signal or value of its own keeps it, and a value of s has no rates."""

    def inputs(model: Model) -> np.ndarray:
        return form_experiment_values(check_model(model)).inputs[20]

    t = 0.2
    exact = [0.1 * np.sin(3 * t), 0.3 * np.cos(3 * t), -0.9 * np.sin(3 * t)]
    motion = 0.1 * sm.sin(3 * T)
    assert inputs(pendulum(s=motion)) == pytest.approx(exact)
    assert inputs(pendulum(s=motion, s_dot=2 * T)) == pytest.approx([exact[0], 2 * t, 2.0])
    assert inputs(pendulum(s=motion).at({"s_dot": 0.7})) == pytest.approx([exact[0], 0.7, 0.0])
    assert inputs(pendulum(s=motion, s_dot=T).at({"s": 0.7})) == pytest.approx([0.7, 0.0, 0.0])
    with pytest.raises(ModelError, match="s_ddot would be the derivative"):
        check_model(pendulum(s=sm.Max(T - 1, 0)))
