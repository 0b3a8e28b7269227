"""Expressions in mathematical notation: well-formed, safe, and with the meaning they have."""

from __future__ import annotations

import pytest
import sympy as sm
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lxml import etree
from sympy.parsing.sympy_parser import (
    implicit_multiplication_application,
    parse_expr,
    standard_transformations,
)

from mb2fmu.report.equation_display.mathml import MathMLPrinter, estimate_formula_width, format_mathml_identifier

a, b, q1, m_rod, theta_2 = sm.symbols("a b q1 m_rod theta_2")
t = sm.Symbol("t")


def parsed(expression, symbols=None):
    return etree.fromstring(f"<math>{MathMLPrinter(symbols or {}).expression(expression)}</math>")


_FORMS = {
    "mfrac": "({})/({})",
    "msup": "{}^{{{}}}",
    "msub": "{}_{}",
    "mover": "{}{}",
    "mtr": "{} {};",
    "mspace": " ",
}


def flat(element):
    """MathML as one line of text that keeps what is over, under, raised and within a root."""
    inner = [flat(child) for child in element]
    if etree.QName(element).localname == "msqrt":
        return f"√({''.join(inner)})"
    form = _FORMS.get(etree.QName(element).localname)
    return form.format(*inner) if form else (element.text or "").replace("\u2061", "") + "".join(inner)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (a + b, "a+b"),
        (a - b, "a−b"),
        (-a - b, "−a−b"),
        (a - (b - q1), "a−b+q_1"),
        (sm.Mul(-1, a + b, evaluate=False), "−(a+b)"),
        (a * (a + b), "a (a+b)"),
        (a / b, "(a)/(b)"),
        (-a / (2 * b), "−(a)/(2 b)"),
        (1 / a, "(1)/(a)"),
        (a**-2 * b, "(b)/(a^{2})"),
        ((a + b) ** 2, "(a+b)^{2}"),
        ((a * b) ** q1, "(a b)^{q_1}"),
        ((a**b) ** q1, "(a^{b})^{q_1}"),
        (a ** (b + 1), "a^{b+1}"),
        (sm.sqrt(a + b), "√(a+b)"),
        (1 / sm.sqrt(a), "(1)/(√(a))"),
        (a ** sm.Rational(1, 3), "a^{(1)/(3)}"),
        (2 * sm.pi * a, "2·π a"),
        (sm.Rational(-2, 3) * a, "−(2 a)/(3)"),
        (sm.Float(1e-7) * a, "10^{−7} a"),
        (sm.Float(2.5e20), "2.5·10^{20}"),
        (sm.Float(0.5), "0.5"),
        (sm.Rational(1, 2) - a, "(1)/(2)−a"),
        (sm.sin(q1), "sin q_1"),
        (sm.sin(q1) ** 2, "sin^{2} q_1"),
        (sm.sin(a + b) * a, "a sin(a+b)"),
        (sm.sin(q1) * (a + b), "(a+b) sin q_1"),
        (sm.exp(-a), "e^{−a}"),
        (sm.Abs(a), "|a|"),
        (sm.sign(a), "sgn(a)"),
        (sm.atan2(a, b), "atan2(a,b)"),
        (sm.Max(a, b), "max(a,b)"),
        (sm.log(a), "ln(a)"),
        (sm.Piecewise((a, a > 0), (b, True)), "{a if a>0;b otherwise;"),
        (sm.And(a > 0, b <= 1), "(b≤1)∧(a>0)"),
        (sm.Not(sm.Eq(a, b), evaluate=False), "¬(a=b)"),
        (sm.Function("f")(a), "f(a)"),
        (sm.Function("x_1")(t), "x_1"),
        (sm.Derivative(sm.Function("q")(t), t), "q˙"),
        (sm.oo, "oo"),
        (sm.Integer(0), "0"),
    ],
)
def test_notation(expression, text):
    assert flat(parsed(expression)) == text


@pytest.mark.parametrize(
    ("name", "dots", "text"),
    [
        ("q", 0, "q"),
        ("q12", 0, "q_12"),
        ("theta1", 1, "θ˙_1"),
        ("theta_1", 2, "θ¨_1"),
        ("Omega", 0, "Ω"),
        ("lamda", 0, "λ"),
        ("k_knee", 0, "k_knee"),
        ("I_rod_xx", 0, "I_rod xx"),
        ("alpha_beta", 0, "α_β"),
        ("mass", 0, "mass"),
        ("mass2", 0, "mass2"),
        ("<b>", 0, "<b>"),
        ("_", 0, "_"),
    ],
)
def test_names(name, dots, text):
    assert flat(etree.fromstring(format_mathml_identifier(name, dots))) == text


@given(st.text(st.characters(min_codepoint=32, exclude_categories=("Cs", "Cn", "Co")), min_size=1))
def test_no_name_breaks_out(name):
    root = etree.fromstring(f"<math>{format_mathml_identifier(name)}</math>")
    assert {etree.QName(e).localname for e in root.iter()} <= {"math", "mi", "msub", "mn", "mtext"}


def test_symbols_may_be_printed_otherwise():
    assert flat(parsed(a + b, {b: format_mathml_identifier("u", dots=1)})) == "a+u˙"


expressions = st.recursive(
    st.sampled_from([a, b, q1, m_rod, theta_2, sm.Integer(2), sm.Rational(-1, 3), sm.Float(0.25)]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda pair: pair[0] + pair[1]),
        st.tuples(inner, inner).map(lambda pair: pair[0] * pair[1]),
        st.tuples(inner, st.sampled_from([2, -1, sm.Rational(1, 2)])).map(lambda pair: abs(pair[0]) ** pair[1]),
        inner.map(sm.sin),
        inner.map(lambda e: -e),
    ),
    max_leaves=12,
)


@given(expressions)
def test_every_expression_is_well_formed_with_all_its_symbols(expression):
    root = parsed(expression)
    assert not root.xpath("//mrow[not(node())]")
    for symbol in sm.sympify(expression).free_symbols:
        assert etree.tostring(etree.fromstring(format_mathml_identifier(symbol.name))) in etree.tostring(root)


@given(expressions)
def test_the_terms_of_a_sum_make_the_sum(expression):
    expression = sm.sympify(expression)
    if expression.is_Add:
        whole = MathMLPrinter().expression(expression)
        assert "".join(MathMLPrinter().terms(expression)) == whole.removeprefix("<mrow>").removesuffix("</mrow>")


smooth = st.recursive(
    st.sampled_from([a, b, q1, m_rod, theta_2, sm.Integer(2), sm.Rational(-1, 3)]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda pair: pair[0] + pair[1]),
        st.tuples(inner, inner).map(lambda pair: pair[0] * pair[1]),
        st.tuples(inner, st.sampled_from([2, -1, sm.Rational(1, 2), -sm.Rational(1, 2)])).map(
            lambda pair: (pair[0] ** 2 + 1) ** pair[1]
        ),
        inner.map(sm.sin),
    ),
    max_leaves=9,
)
SIGNS = {"−": "-", "·": "*", "^{": "**(", "}": ")", "√": "sqrt"}


def read_back(pieces):
    """The value at a point of what people read: names are replaced by numbers, signs side by side multiply."""
    text = " ".join(flat(etree.fromstring(f"<mrow>{piece}</mrow>")) for piece in pieces)
    for sign, ours in SIGNS.items():
        text = text.replace(sign, ours)
    for name, value in POINT.items():
        text = text.replace(flat(etree.fromstring(format_mathml_identifier(name))), f" ({value}) ")
    rules = (*standard_transformations, implicit_multiplication_application)
    return float(parse_expr(text, transformations=rules))


POINT = {"m_rod": 1.3, "theta_2": 0.7, "q1": 0.4, "a": 0.9, "b": 1.7}


@given(smooth, st.sampled_from([1, 12]))
@example(a / ((b**2 + 1) * sm.sqrt(q1**2 + 1)), 1)
@settings(max_examples=40)
def test_broken_expressions_read_back_as_the_same_number(expression, widest):
    """However narrow the page: brackets match, quotients divide all that stood under the bar, roots cover all."""
    expression = sm.sympify(expression)
    expected = float(expression.subs({symbol: POINT[symbol.name] for symbol in expression.free_symbols}))
    assert read_back(MathMLPrinter().pieces(expression, widest)) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_what_is_wider_than_a_page_is_broken_within_its_brackets():
    inner = sum(sm.Symbol(f"length_{k}") * sm.sin(sm.Symbol(f"angle_{k}")) for k in range(12))
    wide = (inner**2 + 1) ** sm.Rational(-1, 2) * inner * a
    pieces = MathMLPrinter().pieces(wide + b, 40)
    assert max(map(estimate_formula_width, pieces)) <= 40 < estimate_formula_width(MathMLPrinter().expression(wide))
