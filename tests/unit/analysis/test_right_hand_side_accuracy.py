"""Digits of x' against 60 of them: all that the data allow, or the answer that some have cancelled."""

from __future__ import annotations

from pathlib import Path

import mpmath
import numpy as np
import pytest
import sympy as sm
from mechanisms import model_of
from representatives import by_night
from sympy.physics import mechanics as me
from trees import AXES, build

from mb2fmu import Model, pipeline
from mb2fmu.compiler.lowering.high_precision_evaluation import evaluate_high_precision
from mb2fmu.compiler.program.scalar_program import Op

MODELS = Path(__file__).parents[3] / "models"


def of(derivation):
    return pipeline.right_hand_side(derivation).conditioning()


@pytest.mark.parametrize("name", ["double_pendulum", "rolling_disc", *by_night("four_bar", "muscle_arm")])
def test_models_keep_what_their_data_let_them_have(name):
    found = of(pipeline.derive(MODELS / f"{name}.py"))
    assert np.all(found.digits_lost < 2.5), str(found)


@pytest.mark.parametrize("name", ["four_bar", "turntable_ball"])
def test_many_digits_begin_with_those_of_doubles(name):
    """The treatments of loops have Newton's method in them, which is refined."""
    f = pipeline.right_hand_side(pipeline.derive(MODELS / f"{name}.py"))
    leaves = {Op.TIME: [0.0], Op.STATE: f.x0, Op.INPUT: f.r0, Op.PARAMETER: f.p0}
    few, many = (evaluate_high_precision(f.program, "rhs", leaves, digits) for digits in (40, 70))
    with mpmath.workdps(40):
        for a, b in zip(few, many, strict=True):
            assert abs(a - b) <= mpmath.mpf(10) ** -25 * (1 + abs(b))
    np.testing.assert_allclose(f(0.0, f.x0), [float(v) for v in many], rtol=1e-9, atol=1e-9)


def test_what_cancels_is_reported():
    """u2' = g − g but for a spring that is 1e-12 of the weight: a double keeps four digits of that."""
    x, y, u, v = me.dynamicsymbols("x y u v")
    m, g, k = sm.symbols("m g k")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    A = O.locatenew("A", x * N.x)
    B = A.locatenew("B", y * N.x)
    O.set_vel(N, 0)
    A.set_vel(N, u * N.x)
    B.set_vel(N, (u + v) * N.x)
    bodies = [me.Particle("a", A, m), me.Particle("b", B, m)]
    loads = [(A, m * g * N.x), (B, (m * g - k * y) * N.x)]
    kane = me.KanesMethod(N, [x, y], [u, v], [x.diff() - u, y.diff() - v])
    kane.kanes_equations(bodies, loads)
    model = model_of("Cancelling", kane, [x, y], [u, v], m=1.7, g=9.81, k=3e-12)
    found = of(pipeline.derive(model, method="kane"))
    place = found.names.index("v")
    assert found.digits_lost[place] > 8.0
    assert "der(v)" in str(found)
    assert "large terms cancel" in str(found)


@pytest.mark.parametrize("seed", [0, *by_night(*range(1, 6))])
def test_random_trees_lose_no_digits_unseen(seed):
    """Whatever is reported to be right is: x' agrees with 60 digits in as many digits as are reported, over 1e±6."""
    generator = np.random.default_rng(seed)
    kinds = [(str(generator.choice(["pin", "prismatic"])), str(generator.choice(AXES)), i) for i in range(3)]
    system = build(kinds, tilted=bool(generator.integers(2)))
    model = Model("Random", system)
    for name in "mgJT":
        model.parameter(sm.Symbol(name), float(10 ** generator.uniform(-6, 6)))
    for q in system.q:
        model.coordinate(q, float(generator.uniform(-1, 1)))
    for u in system.u:
        model.speed(u, float(generator.uniform(-1, 1)))
    derivation = pipeline.derive(model, method="tmt")
    f, found = pipeline.right_hand_side(derivation), of(derivation)
    exact = evaluate_high_precision(
        f.program, "rhs", {Op.TIME: [0.0], Op.STATE: f.x0, Op.INPUT: f.r0, Op.PARAMETER: f.p0}, digits=80
    )
    for value, wanted, digits in zip(f(0.0, f.x0), exact, found.digits, strict=True):
        assert abs(value - float(wanted)) <= 1.01 * abs(float(wanted)) * 10**-digits + 1e-15 * abs(float(wanted))
