"""Declared units against the mechanics: each planted fault is reported, and what bare numbers convert is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import sympy as sm
from sympy.physics import mechanics as me

from mb2fmu import Model
from mb2fmu.model import check_model, load
from mb2fmu.model.checks.unit_contradictions import describe_unit_contradictions

MODELS = sorted(Path(__file__).parents[4].joinpath("models").glob("*.py"))
q, u, torque = me.dynamicsymbols("q u torque")
m, l, g, k, n = sm.symbols("m l g k n")
t = me.dynamicsymbols._t
UNITS = {m: "kg", l: "m", g: "m/s2", torque: "N.m", q: "rad", u: "rad/s"}


def pendulum(
    units: dict[sm.Expr, str], *, arm: sm.Expr = l, load: sm.Expr = sm.S.Zero, output: tuple[sm.Expr, str] = (q, "rad")
) -> Model:
    N, A, O = me.ReferenceFrame("N"), me.ReferenceFrame("A"), me.Point("O")
    A.orient_axis(N, N.z, q)
    A.set_ang_vel(N, u * N.z)
    O.set_vel(N, 0)
    P = O.locatenew("P", -arm * A.y)
    P.v2pt_theory(O, N, A)
    loads = [(P, -m * g * N.y), (A, (torque + load) * N.z)]
    kane = me.KanesMethod(N, [q], [u], [q.diff() - u], bodies=[me.Particle("bob", P, m)], forcelist=loads)
    model = Model("Pendulum", kane)
    declared = UNITS | units
    for symbol, unit in declared.items():
        if isinstance(symbol, sm.Symbol):
            model.parameter(symbol, 1.0, unit)
    model.input(torque, 0.0, declared[torque])
    model.coordinate(q, 0.5, declared[q])
    model.speed(u, 0.0, declared[u])
    model.output("e", *output)
    return model


FAULTS: dict[str, tuple[Callable[[], Model], str]] = {
    "length in mm": (lambda: pendulum({l: "mm"}), "the position of P from O: -l is taken in m as it stands (l in mm)"),
    "mass in g": (lambda: pendulum({m: "g"}), "declare m in kg"),
    "mass in N": (lambda: pendulum({m: "N"}), "the mass of body bob: m is in N, where kg is needed"),
    "no unit": (lambda: pendulum({m: "1"}), "declared in 1, though the mechanics give a unit: m (in kg)"),
    "gravity in m/s": (lambda: pendulum({g: "m/s"}), "the load on P: -g*m is in N.s, where N is needed"),
    "torque in N": (lambda: pendulum({torque: "N"}), "the load on A: torque is in N, where N.m is needed"),
    "energy in N": (lambda: pendulum({}, output=(m * g * l, "N")), "output e: g*l*m is in N.m, where N is needed"),
    "energy in kJ": (lambda: pendulum({}, output=(m * g * l, "kJ")), "as it stands (g in m/s2, l in m, m in kg)"),
    "angle and length": (lambda: pendulum({}, output=(q + l, "m")), "output e: l + q: m and 1 are added or compared"),
    "degrees": (lambda: pendulum({k: "deg"}, output=(sm.sin(k), "1")), "declare k in rad"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_reported_once(name: str) -> None:
    make, text = FAULTS[name]
    said = describe_unit_contradictions(check_model(make()))
    assert len(said) == 1
    assert text in said[0]


RIGHT: dict[str, Callable[[], Model]] = {
    "declared as used": lambda: pendulum({}),
    "mm converted": lambda: pendulum({l: "mm"}, arm=l / 1000),
    "degrees converted": lambda: pendulum({k: "deg"}, output=(sm.sin(k * sm.pi / 180), "1")),
    "bare numbers": lambda: pendulum({}, load=-2 * u - 0.3 * q + 5 * sm.sin(3 * t) - sm.cos(q)),
    "friction smoothed": lambda: pendulum({k: "N.m"}, load=-k * sm.tanh(20 * u) - k * sm.sign(u)),
    "compatible names": lambda: pendulum({torque: "J", u: "1/s", k: "N.m/rad"}, load=-k * q),
    "a unit with a broken exponent": lambda: pendulum({k: "N/m0.5"}, load=k * l ** sm.Rational(3, 2)),
    "an exponent that is a symbol": lambda: pendulum({k: "N.m", n: "1"}, load=k * l**n),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_models_get_no_note(name: str) -> None:
    assert describe_unit_contradictions(check_model(RIGHT[name]())) == ()


def test_a_length_of_one_that_nobody_writes_has_its_unit() -> None:
    model = pendulum({}, arm=sm.S.One, output=(u * sm.cos(q), "m/s"))
    assert describe_unit_contradictions(check_model(model)) == ()


@pytest.mark.repeats
@pytest.mark.parametrize("file", MODELS, ids=lambda file: file.stem)
def test_shipped_models_get_no_note(file: Path) -> None:
    assert describe_unit_contradictions(check_model(load(file))) == ()


def test_a_value_as_text_is_converted() -> None:
    model = Model("Free", pendulum({}).mechanics)
    model.parameter(l, "500 mm", "m")
    model.coordinate(q, "180 deg", "rad")
    model.speed(u, "60 rpm", "rad/s")
    assert [model.declared[0].value, *(item.start for item in model.declared[1:])] == pytest.approx(
        [0.5, float(sm.pi), float(2 * sm.pi)]
    )
    with pytest.raises(ValueError, match="cannot show values in m"):
        model.parameter(m, "2 kg", "m")
