"""Units: what is read, what is refused, and the laws that hold for all of them."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mb2fmu.units import (
    BASE_UNITS,
    UnitOfMeasurement,
    are_compatible_units,
    convert_unit_to_modelica,
    derive_rate_unit,
    display_unit_conversion,
    format_base_units,
    parse_unit,
)

SYMBOLS = ["m", "kg", "s", "N", "J", "W", "Pa", "rad", "deg", "mm", "kN", "min", "h", "l", "bar", "rpm", "A", "V", "K"]
symbols = st.sampled_from(SYMBOLS)
products = st.lists(st.tuples(symbols, st.integers(1, 3)), min_size=1, max_size=4)
exponents = st.tuples(*[st.integers(-4, 4)] * len(BASE_UNITS))


def written(product):
    return ".".join(f"{symbol}{power if power > 1 else ''}" for symbol, power in product)


def added(product):
    """Exponents and factor of a product, from its factors one by one."""
    units = [(parse_unit(symbol), power) for symbol, power in product]
    powers = tuple(sum(power * unit.exponents[i] for unit, power in units) for i in range(len(BASE_UNITS)))
    return powers, math.prod(unit.factor**power for unit, power in units)


@pytest.mark.parametrize(
    ("text", "factor", "powers"),
    [
        ("1", 1.0, {}),
        ("N.m", 1.0, {"kg": 1, "m": 2, "s": -2}),
        ("rad/s", 1.0, {"rad": 1, "s": -1}),
        ("kg.m2", 1.0, {"kg": 1, "m": 2}),
        ("m/s2", 1.0, {"m": 1, "s": -2}),
        ("m.s-2", 1.0, {"m": 1, "s": -2}),
        ("N.m.s/rad", 1.0, {"kg": 1, "m": 2, "s": -1, "rad": -1}),
        ("1/s", 1.0, {"s": -1}),
        ("N/m1.5", 1.0, {"kg": 1, "m": Fraction(-1, 2), "s": -2}),
        ("N.m-3/2", 1.0, {"kg": 1, "m": Fraction(-1, 2), "s": -2}),
        ("N/mm1.5", 1000.0**1.5, {"kg": 1, "m": Fraction(-1, 2), "s": -2}),
        ("m0.5.m0.5", 1.0, {"m": 1}),
        ("m4/2", 1.0, {"m": 2}),
        ("Hz", 1.0, {"s": -1}),
        ("kg/(m.s2)", 1.0, {"kg": 1, "m": -1, "s": -2}),
        ("deg", math.pi / 180, {"rad": 1}),
        ("r/min", 2 * math.pi / 60, {"rad": 1, "s": -1}),
        ("rev/min", 2 * math.pi / 60, {"rad": 1, "s": -1}),
        ("rpm", 2 * math.pi / 60, {"rad": 1, "s": -1}),
        ("bar", 1e5, {"kg": 1, "m": -1, "s": -2}),
        ("h", 3600.0, {"s": 1}),
        ("min", 60.0, {"s": 1}),
        ("l", 1e-3, {"m": 3}),
        ("km/h", 1 / 3.6, {"m": 1, "s": -1}),
        ("g/cm3", 1000.0, {"kg": 1, "m": -3}),
        ("mm", 1e-3, {"m": 1}),
        ("MPa", 1e6, {"kg": 1, "m": -1, "s": -2}),
        ("kW.h", 3.6e6, {"kg": 1, "m": 2, "s": -2}),
        ("cd", 1.0, {"cd": 1}),
    ],
)
def test_reads(text, factor, powers):
    unit = parse_unit(text)
    assert unit.name == text
    assert unit.factor == pytest.approx(factor, rel=1e-15)
    assert unit.offset == 0.0
    assert unit.powers == powers


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("m/s^2", "m/s2"),
        ("m/s**2", "m/s2"),
        ("m s^-2", "m.s-2"),
        ("m·s⁻²", "m.s-2"),
        ("N*m", "N.m"),
        ("N m", "N.m"),
        ("kg*m2", "kg.m2"),
        ("kg m^2 / s^2", "kg.m2/s2"),
        ("N*m*s/rad", "N.m.s/rad"),
        ("kg/(m * s^2)", "kg/(m.s2)"),
        ("kg m²", "kg.m2"),
        ("µm", "um"),
        ("-", "1"),
        ("°", "deg"),
        ("°C", "degC"),
        ("Ω", "Ohm"),
        (" N.m ", "N.m"),
    ],
)
def test_units_as_people_write_them(written, name):
    assert convert_unit_to_modelica(written) == name
    assert parse_unit(written) == parse_unit(name)
    assert parse_unit(written).name == name


def test_a_unit_is_text():
    with pytest.raises(ValueError, match="a unit is text"):
        parse_unit(None)


def test_degrees_celsius_have_an_offset():
    assert parse_unit("degC").offset == 273.15
    assert display_unit_conversion("K", "degC") == (1.0, -273.15)
    with pytest.raises(ValueError, match="degC has an offset and can only stand alone; write K"):
        parse_unit("J/degC")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Nm", "did you mean 'N.m'"),
        ("Nms/rad", "did you mean 'N.m.s/rad'?"),
        ("kgm2", "did you mean 'kg.m2'?"),
        ("kNm", "did you mean 'kN.m'?"),
        ("Nmm", "did you mean 'N.mm'?"),
        ("rad/Nm2", "did you mean 'rad/(N.m2)'?"),
        ("Kg", "did you mean 'kg'?"),
        ("Newton", "did you mean 'N'?"),
        ("metres/s", "did you mean 'm/s'?"),
        ("radd", "did you mean 'rad'"),
        ("degrees", "did you mean 'deg'"),
        ("newtons/m", "unknown unit 'newtons' in 'newtons/m'"),
        ("kg/m/s2", "brackets"),
        ("W/m2.K", "brackets"),
        ("m^", "an exponent is a number directly behind its unit"),
        ("kg*m/s*s", "brackets"),
        ("kg m/s s", "brackets"),
        ("m/s/s", "brackets"),
        ("(m/s)^2", "'2' cannot stand there"),
        ("", "a pure number has the unit '1'"),
        ("m/", "a unit is missing at the end"),
        ("/s", "a unit is missing before '/'"),
        ("kg/(m.s2", "a bracket is not closed"),
        ("m)", "one too many"),
        ("2m", "'2' cannot stand there"),
        ("rad/1", "a unit is missing before '1'"),
    ],
)
def test_refuses_and_says_why(text, says):
    with pytest.raises(ValueError, match="unit") as caught:
        parse_unit(text)
    assert says in str(caught.value)


@given(products)
def test_a_product_multiplies_factors_and_adds_exponents(product):
    powers, factor = added(product)
    unit = parse_unit(written(product))
    assert unit.exponents == powers
    assert unit.factor == pytest.approx(factor, rel=1e-13)


@given(products, products)
def test_below_the_line_is_the_inverse(above, below):
    quotient = parse_unit(f"{written(above)}/({written(below)})")
    top, bottom = parse_unit(written(above)), parse_unit(written(below))
    assert quotient.exponents == tuple(a - b for a, b in zip(top.exponents, bottom.exponents, strict=True))
    assert quotient.factor == pytest.approx(top.factor / bottom.factor, rel=1e-13)


@given(exponents)
def test_base_text_reads_back(powers):
    text = format_base_units(UnitOfMeasurement("x", 1.0, 0.0, powers))
    unit = parse_unit(text)
    assert unit.exponents == powers
    assert unit.factor == 1.0


@given(products, products)
def test_the_derivative_is_per_second(above, below):
    text = f"{written(above)}/({written(below)})"
    derivative, per_second = parse_unit(derive_rate_unit(text)), parse_unit(f"({text})/s")
    assert derivative.exponents == per_second.exponents
    assert derivative.factor == pytest.approx(per_second.factor, rel=1e-13)


def test_derivatives_look_as_one_writes_them():
    names = {
        "m": "m/s",
        "m/s": "m/s2",
        "1": "1/s",
        "rad/s": "rad/s2",
        "kg/(m.s2)": "kg/(m.s3)",
        "degC": "K/s",
        "s": "1",
    }
    assert {text: derive_rate_unit(text) for text in names} == names


@given(symbols, symbols, st.floats(-1e3, 1e3))
def test_shown_values_convert_back(text, shown, value):
    if not are_compatible_units(text, shown):
        with pytest.raises(ValueError, match="cannot show values in"):
            display_unit_conversion(text, shown)
        return
    factor, offset = display_unit_conversion(text, shown)
    back, back_offset = display_unit_conversion(shown, text)
    assert back * (factor * value + offset) + back_offset == pytest.approx(value, rel=1e-12, abs=1e-12)


def test_compatible_minds_angles():
    assert are_compatible_units("rad", "deg")
    assert are_compatible_units("rad/s", "rpm")
    assert are_compatible_units("K", "degC")
    assert not are_compatible_units("N.m", "N.m/rad")
    assert not are_compatible_units("m", "deg")


@pytest.mark.parametrize(
    ("factor", "offset", "size"), [(0.0, 0.0, 8), (math.nan, 0.0, 8), (1.0, math.inf, 8), (1.0, 0.0, 7)]
)
def test_a_unit_keeps_its_laws(factor, offset, size):
    with pytest.raises(ValueError, match="x: "):
        UnitOfMeasurement("x", factor, offset, (0,) * size)


@pytest.mark.parametrize(
    ("written", "canonical"),
    [("N/m^1.5", "N/m1.5"), ("N/m^(3/2)", "N/m3/2"), ("N*m**(-3 / 2)", "N.m-3/2"), ("N m^-1.5", "N.m-1.5")],
)
def test_fractions_are_exponents(written, canonical):
    assert convert_unit_to_modelica(written) == canonical
    assert parse_unit(written).exponents == parse_unit("N/m1.5").exponents
    assert parse_unit(written).whole_exponents is None
    assert derive_rate_unit("N/m3/2") == "N/(m1.5.s)"
    assert derive_rate_unit("m2/3") == "m2/3/s"
    assert parse_unit("m2/3/s").exponents[1:3] == (Fraction(2, 3), -1)
    assert parse_unit("N/m").whole_exponents == (1, 0, -2, 0, 0, 0, 0, 0)


@pytest.mark.parametrize("text", ["m1.37", "m2/0", "m1/13", "m1.5.5", "m99.5", "m1.", "m/2", "Gm98.5"])
def test_other_exponents_are_refused(text):
    with pytest.raises(ValueError, match="unit"):
        parse_unit(text)
