"""Units inferred from a mechanism's expressions: what they promise under a change of the units of kg, m and s."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest
import sympy as sm
from sympy.physics import mechanics as me

from mb2fmu.model.checks.mechanics_expressions import collect_mechanics_expressions
from mb2fmu.model.checks.unit_exponent_equations import (
    ExpressionUnitWithUnknowns,
    UnitExponentEquations,
    make_unit_exponents,
)
from mb2fmu.model.script_import.mechanics_from_script import list_mechanics_symbols
from mb2fmu.pipeline.adoption.unit_inference import format_inferred_unit, infer_units
from mb2fmu.units import parse_unit

SCALES = {"kg": 3.0, "m": 0.7, "s": 1.9}
EXPECTED = {
    "the mass": "kg",
    "the inertia": "kg.m2",
    "the position": "m",
    "the velocity": "m/s",
    "the orientation": "1",
}


def factor(unit: str) -> float:
    """By what a quantity's number changes when kg, m and s are changed."""
    result = 1.0
    for base, exponent in parse_unit(unit).powers.items():
        result *= SCALES.get(base, 1.0) ** exponent
    return result


def cart_with_spring_pendulum() -> me.KanesMethod:
    x, q, v, u, F = me.dynamicsymbols("x q v u F")
    M, m, l, g, k, c, kt, x0, J = sm.symbols("M m l g k c kt x0 J")
    N, A = me.ReferenceFrame("N"), me.ReferenceFrame("A")
    A.orient_axis(N, N.z, q)
    A.set_ang_vel(N, u * N.z)
    O = me.Point("O")
    O.set_vel(N, 0)
    C = O.locatenew("C", x * N.x)
    C.set_vel(N, v * N.x)
    G = C.locatenew("G", -l * A.y)
    G.v2pt_theory(C, N, A)
    bodies = [me.Particle("cart", C, M), me.RigidBody("rod", G, A, m, (me.inertia(A, J, 0, J), G))]
    loads = [(C, (F - k * (x - x0) - c * v) * N.x), (G, -m * g * N.y), (A, (-kt * q - sm.Symbol("ct") * u) * N.z)]
    kane = me.KanesMethod(N, [x, q], [v, u], kd_eqs=[x.diff() - v, q.diff() - u])
    kane._bodylist, kane._forcelist = bodies, loads
    return kane


def pendulum_by_lagrange() -> me.LagrangesMethod:
    q = me.dynamicsymbols("theta")
    m, l, g, b = sm.symbols("m l g b")
    N = me.ReferenceFrame("N")
    A = N.orientnew("A", "Axis", [q, N.z])
    O = me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", l * A.x)
    P.v2pt_theory(O, N, A)
    bob = me.Particle("bob", P, m)
    bob.potential_energy = -m * g * l * sm.cos(q)
    loads = [(A, -b * q.diff() * N.z)]
    return me.LagrangesMethod(me.Lagrangian(N, bob), [q], forcelist=loads, bodies=[bob], frame=N)


@pytest.mark.parametrize("make", [cart_with_spring_pendulum, pendulum_by_lagrange])
def test_expressions_scale_as_their_place_says(make: Callable[[], object]) -> None:
    mechanics = make()
    symbols = list_mechanics_symbols(mechanics)
    units = infer_units(mechanics, symbols)
    assert not units.free
    assert not units.contradictions
    at = {s: sm.Float(0.3 + 0.17 * i) for i, s in enumerate(symbols)}
    checked = 0
    for use in collect_mechanics_expressions(mechanics):
        expected = next((unit for place, unit in EXPECTED.items() if use.place.startswith(place)), None)
        if expected is None or use.expression.atoms(sm.Derivative):
            continue
        scaled = {s: at[s] * factor(units.names[s]) for s in symbols}
        one, other = (float(use.expression.xreplace(values)) for values in (at, scaled))
        assert other == pytest.approx(one * factor(expected), rel=1e-12), use.place
        checked += 1
    assert checked > 4


def test_names_of_units_are_the_field_s_own() -> None:
    mechanics = cart_with_spring_pendulum()
    names = {str(s): unit for s, unit in infer_units(mechanics, list_mechanics_symbols(mechanics)).names.items()}
    assert names == {
        "x(t)": "m", "q(t)": "rad", "v(t)": "m/s", "u(t)": "rad/s", "F(t)": "N", "M": "kg", "m": "kg", "l": "m",
        "g": "m/s2", "k": "N/m", "c": "N.s/m", "kt": "N.m/rad", "ct": "N.m.s/rad", "x0": "m", "J": "kg.m2",
    }  # fmt: skip


def test_a_contradiction_names_both_places() -> None:
    mechanics = cart_with_spring_pendulum()
    (cart, rod), (l, m) = mechanics.bodies, sm.symbols("l m")
    cart.mass = m + l
    said = infer_units(mechanics, list_mechanics_symbols(mechanics)).contradictions
    assert len(said) == 1
    assert "the position of G from C" in said[0] or "the mass of body cart" in said[0]
    assert rod.mass == m


def test_a_constraint_that_contradicts_the_geometry_is_reported_alone() -> None:
    mechanics = cart_with_spring_pendulum()
    x, q = mechanics.q
    a, b = sm.symbols("a b")
    mechanics._f_h = sm.Matrix([x - a * sm.sin(b * q) - q])  # an angle beside a length
    found = infer_units(mechanics, [*list_mechanics_symbols(mechanics), a, b])
    assert [said.partition(":")[0] for said in found.contradictions] == ["holonomic constraint 1"]
    assert found.names[x] == "m"


@pytest.mark.parametrize(("half", "unit"), [(1 / 2, "N/m"), (1 / 12, "N/m"), (0.45, "N.s/m")])
def test_half_as_a_float_is_a_pure_number(half: float, unit: str) -> None:
    x, (c, m) = me.dynamicsymbols("x"), sm.symbols("c m")
    method = me.LagrangesMethod(sm.Rational(1, 2) * m * x.diff() ** 2 - half * c * x**2, [x])
    assert infer_units(method, [x, c, m]).names[c] == unit  # a number that may carry a unit: the name c decides


def test_half_as_a_float_has_the_unit_that_its_place_needs() -> None:
    x, m = me.dynamicsymbols("x"), sm.Symbol("m")
    method = me.LagrangesMethod(0.5 * m * x.diff() ** 2 - 0.5 * x**2, [x])
    found = infer_units(method, [x, m])
    assert (found.names[x], found.names[m], found.contradictions) == ("m", "kg", ())


def test_the_sign_of_a_speed_leaves_a_torque_its_unit() -> None:
    mechanics = cart_with_spring_pendulum()
    (A, _), mu = mechanics.forcelist[-1], sm.Symbol("mu")
    mechanics._forcelist[-1] = (A, -mu * sm.sign(mechanics.u[1]) * A.z)
    assert infer_units(mechanics, [mu]).names[mu] == "N.m"


def test_bare_numbers_fit_everywhere() -> None:
    mechanics = cart_with_spring_pendulum()
    (x, _), (v, _), t = mechanics.q, mechanics.u, me.dynamicsymbols._t
    C, N = mechanics.forcelist[0][0], mechanics._inertial
    mechanics._forcelist[0] = (C, (-50 * x - 2 * v + 5 * sm.sin(3 * t)) * N.x)
    found = infer_units(mechanics, [x, v])
    assert (found.contradictions, found.names) == ((), {x: "m", v: "m/s"})


def test_a_wish_yields_to_an_equation_and_breaks_a_tie() -> None:
    g, k = sm.symbols("g k")
    equations = UnitExponentEquations()
    equations.require_unit(g * k, make_unit_exponents(m=1), "product")
    assert equations.unit_of(g) is None
    assert equations.require_equal(
        ExpressionUnitWithUnknowns(unknowns={g: Fraction(1)}),
        ExpressionUnitWithUnknowns(make_unit_exponents(m=1, s=-2)),
    )
    assert equations.unit_of(k) == make_unit_exponents(s=2)
    assert not equations.require_equal(
        ExpressionUnitWithUnknowns(unknowns={k: Fraction(1)}), ExpressionUnitWithUnknowns(make_unit_exponents(kg=1))
    )
    assert equations.contradictions == []


@pytest.mark.parametrize(
    ("unit", "angular", "text"),
    [
        (make_unit_exponents(), True, "rad"),
        (make_unit_exponents(s=-1), True, "rad/s"),
        (make_unit_exponents(1, 2, -2), False, "N.m"),
        (make_unit_exponents(1, 2, -2), True, "N.m/rad"),
        (make_unit_exponents(2, -1, -3), False, "kg2/(m.s3)"),
        (make_unit_exponents(m=3), False, "m3"),
    ],
)
def test_every_name_is_a_unit_with_these_exponents(unit: tuple[Fraction, ...], angular: bool, text: str) -> None:
    assert format_inferred_unit(unit, angular=angular) == text
    powers = parse_unit(text).powers
    assert tuple(powers.get(base, 0) for base in ("kg", "m", "s")) == unit[:3]
