"""Numbers for people: few digits that are right, and exact ones beside them."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mb2fmu.report.number_format import format_declared_number, format_exact_number, format_short_number

_LOWERED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹−", "-0123456789-")


def read(text):
    power = re.fullmatch("(?:(.*)·)?(−?)10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)", text)
    if not power:
        return float(text.translate(_LOWERED))
    mantissa = float((power[1] or "1").translate(_LOWERED)) * (-1 if power[2] else 1)
    return float(f"{mantissa!r}e{power[3].translate(_LOWERED)}") if "e" not in repr(mantissa) else math.nan


@given(st.floats(-1e300, 1e300, allow_subnormal=False), st.integers(1, 9))
def test_a_short_number_is_right_to_its_digits(value, digits):
    assert read(format_short_number(value, digits)) == pytest.approx(value, rel=0.51 * 10.0 ** (1 - digits), abs=1e-320)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_an_exact_number_reads_back_to_the_same_bits(value):
    assert math.copysign(1.0, float(format_exact_number(value))) == math.copysign(1.0, value)
    assert float(format_exact_number(value)) == value


@given(st.floats(-1e300, 1e300, allow_subnormal=False))
def test_a_plain_number_has_all_its_digits(value):
    assert read(format_declared_number(value)) == pytest.approx(value, rel=1e-14)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (float("nan"), "not a number"),
        (float("inf"), "∞"),
        (float("-inf"), "−∞"),
        (0.0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (100.0, "100"),
        (0.012345, "0.0123"),
        (-1234.5, "−1234"),
        (1.2345e-9, "1.23·10⁻⁹"),
        (9.999e-9, "1·10⁻⁸"),
        (1e300, "1·10³⁰⁰"),
    ],
)
def test_short_numbers(value, text):
    assert format_short_number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(9.81, "9.81"), (2.0, "2"), (1e-6, "10⁻⁶"), (2.5e-7, "2.5·10⁻⁷"), (-1.5, "−1.5"), (0.0, "0"), (math.inf, "∞")],
)
def test_plain_numbers(value, text):
    assert format_declared_number(value) == text
