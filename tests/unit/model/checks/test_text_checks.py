"""Texts, names and units that no unit can carry: each is a fault that names its place and the way out."""

import pytest
import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu.model import check_model
from mb2fmu.units import MAX_EXPONENT, parse_unit

TIME = me.dynamicsymbols._t


def only(faults):
    """The one fault there is; it has a remedy."""
    assert len(faults) == 1, "\n".join(map(str, faults))
    assert faults[0].remedy
    return faults[0]


@pytest.mark.parametrize("text", [5, b"bytes", ["a"], None], ids=repr)
def test_a_description_that_is_no_text(pendulum, faults_of, text):
    model = pendulum.model()
    model.description = text
    assert "the description of the model is" in only(faults_of(model)).what
    model = pendulum.model()
    model.output("y", 2, "m", description=text)
    assert "the description of y is" in only(faults_of(model)).what
    model = pendulum.model()
    model.diagram = text
    assert "the diagram of the model is" in only(faults_of(model)).what


def test_control_characters_are_refused_and_lines_of_a_diagram_are_not(pendulum, faults_of):
    model = pendulum.model()
    model.diagram = "one\n\ttwo\r\n"
    assert check_model(model).diagram == model.diagram
    model.diagram += "\x00"
    assert "U+0000" in only(faults_of(model)).what
    model = pendulum.model()
    model.description = "one\ntwo"
    assert only(faults_of(model)).remedy == "write one line"


def test_the_symbol_of_time_is_no_parameter(pendulum, faults_of):
    model = pendulum.model()
    model.parameter(TIME, 1.0, "s")
    fault = only(faults_of(model))
    assert "SymPy's symbol of time" in fault.what
    assert "Symbol('t_0')" in fault.remedy


def test_a_parameter_that_is_printed_as_time_is(pendulum, faults_of):
    model = pendulum.model()
    model.parameter(sm.Symbol("t", positive=True), 1.0, "m", name="thickness")
    assert "printed as SymPy's symbol of time" in only(faults_of(model)).what


def test_symbols_that_differ_in_their_assumptions_only(pendulum, faults_of):
    model = pendulum.model()
    model.parameter(sm.Symbol("m", real=True), 1.0, "kg", name="other")
    assert "differ in their assumptions only" in only(faults_of(model)).what


def test_a_name_that_no_file_can_have(pendulum, faults_of):
    model = pendulum.model()
    model.name = "a" * 201
    assert "201 characters" in only(faults_of(model)).what
    model.name = "a" * 200
    assert check_model(model).name == model.name


@pytest.mark.parametrize("unit", ["m9999999999999999999", "m3000000000", "km2147483647", "m100", "s-100", "m60.m60"])
def test_an_exponent_that_no_description_can_hold(pendulum, faults_of, unit):
    model = pendulum.model()
    model.output("y", 2, unit)
    fault = only(faults_of(model))
    assert str(MAX_EXPONENT) in fault.what
    assert unit in fault.what


def test_a_factor_that_no_computer_has():
    with pytest.raises(ValueError, match="no number that a computer has"):
        parse_unit("Em20.Es20")
    with pytest.raises(ValueError, match="make no unit"):
        parse_unit("am20.as20")
    assert parse_unit("m99").exponents[1] == 99
