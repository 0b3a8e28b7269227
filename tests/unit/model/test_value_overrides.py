"""Values set instead of the model file's: what changes, what stays, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mb2fmu
from mb2fmu.errors import ModelError
from mb2fmu.model import check_model, load
from mb2fmu.model.variable_naming import strip_latex
from mb2fmu.units import parse_value_in_unit

CART_POLE = Path(__file__).parents[3] / "models" / "cart_pole.py"


@pytest.fixture(scope="module")
def cart_pole() -> mb2fmu.Model:
    return load(CART_POLE)


def named(model, name):
    return next(item for item in model.declared if item.name == name)


def test_values_are_set_by_name_and_the_model_stays(cart_pole):
    names = {item.name: item for item in cart_pole.declared}
    coordinate = next(c for c in check_model(cart_pole).coordinates if c.unit == "rad")
    parameter = next(p for p in check_model(cart_pole).parameters if not p.calculated and p.unit == "kg")
    before = (coordinate.start, parameter.value)
    other = check_model(cart_pole.at({coordinate.name: "30 deg"}, **{parameter.name: "250 g"}))
    assert next(c for c in other.coordinates if c.name == coordinate.name).start == pytest.approx(np.pi / 6, rel=1e-15)
    assert next(p for p in other.parameters if p.name == parameter.name).value == 0.25
    assert set(other.given) == {coordinate.name, parameter.name}
    assert (names[coordinate.name].start, names[parameter.name].value) == before
    assert check_model(cart_pole).given == {}


def test_an_input_that_is_set_keeps_its_value(cart_pole):
    definition = check_model(cart_pole)
    driven = [i for i in definition.inputs if i.symbol in definition.experiment.signals]
    assert driven
    other = check_model(cart_pole.at({driven[0].name: 3.0}))
    assert driven[0].symbol not in other.experiment.signals
    assert next(i for i in other.inputs if i.name == driven[0].name).start == 3.0


def test_every_fault_is_reported_at_once(cart_pole):
    mass = next(p for p in check_model(cart_pole).parameters if p.unit == "kg")
    with pytest.raises(ModelError) as caught:
        cart_pole.at({"wings": 2.0, mass.name: "3 m", "thetta": 1.0, "l": -1.0})
    message = str(caught.value)
    assert "l = -1.0 lies outside of its bounds" in message
    assert "no parameter, state or input wings" in message
    assert f"{mass.name} cannot be set" in message
    assert "did you mean theta" in message


def test_a_calculated_parameter_names_what_to_set(tmp_path):
    model = load(mb2fmu.model.write_model_template("crane", tmp_path))
    with pytest.raises(ModelError, match="Izz is calculated from l, m"):
        model.at(Izz=1.0)


def test_bounds_are_kept(tmp_path):
    model = load(mb2fmu.model.write_model_template("crane", tmp_path))
    with pytest.raises(ModelError, match="lies outside of its bounds"):
        check_model(model.at(m=-1.0))


@given(st.floats(-1e6, 1e6))
def test_numbers_with_units_are_those_of_the_unit(value):
    assert parse_value_in_unit(repr(value), "m") == value
    assert parse_value_in_unit(f"{value!r} deg", "rad") == pytest.approx(np.deg2rad(value), rel=1e-14, abs=1e-300)
    assert parse_value_in_unit(f"{value!r}degC", "K") == pytest.approx(value + 273.15, rel=1e-14, abs=1e-9)


@pytest.mark.parametrize("value", ["", "much", "nan", float("inf"), "1e999", "2 apples"])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(ValueError, match=r"no number|finite|unknown unit"):
        parse_value_in_unit(value, "m")


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        (r"\theta", "theta"),
        (r"\theta_{1}", "theta_1"),
        (r"\dot{q}_1", "q_1_dot"),
        (r"\ddot{\phi}", "phi_ddot"),
        (r"\mathrm{m}_\mathrm{arm}", "m_arm"),
        (r"$l_0$", "l_0"),
        ("q'", "q_prime"),
        ("q_1", "q_1"),
        ("arm.angle", "arm.angle"),
    ],
)
def test_latex_is_cleaned_from_names(symbol, name):
    assert strip_latex(symbol) == name
