"""Computes the constants of the FMU's elementary functions and writes ``runtime/elementary_coefficients.h``.

Every polynomial is the best one in the sense of Chebyshev: its largest relative error on the interval is as small as
its degree allows, found by Remez' second algorithm with 60 digits (Cheney: Introduction to Approximation Theory, 2nd
ed. 1982, chapter 3). The functions are made such that rounding the coefficients to double costs next to nothing.

Run it without arguments: it takes a minute and always writes the same bytes.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import mpmath as mp

mp.mp.dps = 60
TARGET = Path(__file__).parent.parent / "mb2fmu" / "fmu" / "emit_c" / "runtime" / "elementary_coefficients.h"

Function = Callable[[mp.mpf], mp.mpf]


@dataclass(frozen=True)
class Polynomial:
    """f(z) ≈ c[0] + c[1] z + … on [low, high].

    Attributes:
        name: Of the macros, before the number of the coefficient.
        says: One line of explanation.
        function: f.
        weight: The error is judged times this.
        low, high: The interval.
        terms: Number of coefficients.
    """

    name: str
    says: str
    function: Function
    weight: Function
    low: mp.mpf
    high: mp.mpf
    terms: int

    def error(self, coefficients: Sequence[mp.mpf], z: mp.mpf) -> mp.mpf:
        """The weighted error at one point."""
        return (self.function(z) - mp.polyval(list(reversed(coefficients)), z)) * self.weight(z)


def best(p: Polynomial) -> list[mp.mpf]:
    """The coefficients of the best polynomial."""
    n = p.terms
    middle, half = (p.low + p.high) / 2, (p.high - p.low) / 2
    points = [middle - half * mp.cos(mp.pi * i / n) for i in range(n + 1)]
    coefficients: list[mp.mpf] = []
    for _ in range(30):
        rows = [[z**k for k in range(n)] + [(-1) ** i / p.weight(z)] for i, z in enumerate(points)]
        solution = mp.lu_solve(mp.matrix(rows), mp.matrix([p.function(z) for z in points]))
        coefficients, level = list(solution[:n]), abs(solution[n])
        points, largest = _exchange(partial(p.error, coefficients), points, p)
        if largest <= level * (1 + mp.mpf(10) ** -3):
            break
    return coefficients


def _exchange(error: Function, points: Sequence[mp.mpf], p: Polynomial) -> tuple[list[mp.mpf], mp.mpf]:
    """The extrema of the error, one between every two of its zeros, and the largest."""
    edges = [p.low]
    for left, right in itertools.pairwise(points):
        edges.append(_zero(error, left, right))
    edges.append(p.high)
    extrema = [_extremum(error, left, right) for left, right in itertools.pairwise(edges)]
    return extrema, max(abs(error(z)) for z in extrema)


def _zero(error: Function, left: mp.mpf, right: mp.mpf) -> mp.mpf:
    sign = error(left) > 0
    for _ in range(40):
        middle = (left + right) / 2
        if (error(middle) > 0) == sign:
            left = middle
        else:
            right = middle
    return (left + right) / 2


def _extremum(error: Function, left: mp.mpf, right: mp.mpf) -> mp.mpf:
    """By golden sections; the ends count too."""
    golden = (mp.sqrt(5) - 1) / 2
    low, high = left, right
    for _ in range(40):
        a, b = high - golden * (high - low), low + golden * (high - low)
        if abs(error(a)) < abs(error(b)):
            low = a
        else:
            high = b
    return max((left, right, (low + high) / 2), key=lambda z: abs(error(z)))


def rounded(p: Polynomial) -> tuple[list[float], mp.mpf]:
    """Coefficients as doubles and the largest weighted error they leave."""
    values = [mp.mpf(float(c)) for c in best(p)]
    grid = (p.low + (p.high - p.low) * (i + mp.mpf(1) / 3) / 1000 for i in range(1000))
    return [float(c) for c in values], max(abs(p.error(values, z)) for z in grid)


def _series(function: Function, terms: Callable[[int], mp.mpf]) -> Function:
    """The function by its power series where the closed form cancels."""

    def evaluate(z: mp.mpf) -> mp.mpf:
        if abs(z) > mp.mpf("1e-3"):
            return function(z)
        return mp.fsum(terms(k) * z**k for k in range(20))

    return evaluate


def _one(_z: mp.mpf) -> mp.mpf:
    return mp.mpf(1)


QUARTER = (mp.pi / 4 * (1 + mp.mpf(2) ** -20)) ** 2
"""Squares of reduced angles; a little more, because the quadrant is found with rounding."""

CENTRE = mp.mpf(3)
"""erfc is approximated in u = (x − CENTRE)/(x + CENTRE)."""


def _in_root(function: Function) -> Function:
    """The function of √z, for odd or even functions."""
    return lambda z: function(mp.sqrt(z))


def _erfc(u: mp.mpf) -> mp.mpf:
    x = CENTRE * (1 + u) / (1 - u)
    return mp.erfc(x) * mp.exp(x * x) * x


def polynomials() -> list[Polynomial]:
    """All polynomials."""
    half_ln2 = mp.log(2) / 2 * (1 + mp.mpf(2) ** -20)
    largest_s = (mp.sqrt(2) - 1) / (mp.sqrt(2) + 1) * (1 + mp.mpf(2) ** -20)
    return [
        Polynomial(
            "SIN",
            "(x - sin x) / x^3 in z = x^2",
            _series(_in_root(lambda x: (x - mp.sin(x)) / x**3), lambda k: mp.mpf(-1) ** k / mp.factorial(2 * k + 3)),
            _in_root(lambda x: x**3 / mp.sin(x) if x else mp.mpf(10) ** -30),
            mp.mpf(0),
            QUARTER,
            6,
        ),
        Polynomial(
            "COS",
            "(cos x - 1 + x^2 / 2) / x^4 in z = x^2",
            _series(
                _in_root(lambda x: (mp.cos(x) - 1 + x * x / 2) / x**4),
                lambda k: mp.mpf(-1) ** k / mp.factorial(2 * k + 4),
            ),
            _in_root(lambda x: x**4 / mp.cos(x) if x else mp.mpf(10) ** -30),
            mp.mpf(0),
            QUARTER,
            6,
        ),
        Polynomial(
            "EXP",
            "(exp x - 1 - x - x^2 / 2) / x^3",
            _series(lambda x: (mp.exp(x) - 1 - x - x * x / 2) / x**3, lambda k: 1 / mp.factorial(k + 3)),
            lambda x: x**3 / mp.expm1(x) if x else mp.mpf(10) ** -30,
            -half_ln2,
            half_ln2,
            11,
        ),
        Polynomial(
            "LOG",
            "(artanh x - x - x^3 / 3) / x^5 in z = x^2",
            _series(_in_root(lambda x: (mp.atanh(x) - x - x**3 / 3) / x**5), lambda k: mp.mpf(1) / (2 * k + 5)),
            _in_root(lambda x: x**5 / mp.atanh(x) if x else mp.mpf(10) ** -30),
            mp.mpf(0),
            largest_s**2,
            8,
        ),
        Polynomial(
            "ATAN",
            "(x - atan x) / x^3 in z = x^2",
            _series(_in_root(lambda x: (x - mp.atan(x)) / x**3), lambda k: mp.mpf(-1) ** k / (2 * k + 3)),
            _in_root(lambda x: x**3 / mp.atan(x) if x else mp.mpf(10) ** -30),
            mp.mpf(0),
            (mp.mpf("0.41422")) ** 2,
            13,
        ),
        Polynomial(
            "ASIN",
            "(asin x - x) / x^3 in z = x^2",
            _series(
                _in_root(lambda x: (mp.asin(x) - x) / x**3),
                lambda k: mp.binomial(2 * k + 2, k + 1) / mp.mpf(4) ** (k + 1) / (2 * k + 3),
            ),
            _in_root(lambda x: x**3 / mp.asin(x) if x else mp.mpf(10) ** -30),
            mp.mpf(0),
            mp.mpf(1) / 4,
            14,
        ),
        Polynomial(
            "ERF",
            "erf x / x - 1 in z = x^2",
            _series(
                _in_root(lambda x: mp.erf(x) / x - 1),
                lambda k: 2 / mp.sqrt(mp.pi) * mp.mpf(-1) ** k / mp.factorial(k) / (2 * k + 1) - (1 if k == 0 else 0),
            ),
            _in_root(lambda x: x / mp.erf(x) if x else mp.sqrt(mp.pi) / 2),
            mp.mpf(0),
            mp.mpf(1),
            14,
        ),
        Polynomial(
            "ERFC",
            "erfc(x) exp(x^2) x in u = (x - centre) / (x + centre), 1 <= x <= 6",
            _erfc,
            _one,
            (1 - CENTRE) / (1 + CENTRE),
            (6 - CENTRE) / (6 + CENTRE),
            20,
        ),
    ]


def _leading(value: mp.mpf, bits: int) -> mp.mpf:
    """The first bits of a positive number, the rest cut off."""
    scale = mp.mpf(2) ** (bits - 1 - int(mp.floor(mp.log(value, 2))))
    return mp.floor(value * scale) / scale


def constants() -> list[tuple[str, float, str]]:
    """Names, values and explanations of single numbers."""
    half_pi, ln2, third = mp.pi / 2, mp.log(2), mp.mpf(1) / 3
    first = _leading(half_pi, 36)
    second = _leading(half_pi - first, 36)
    ln2_hi = _leading(ln2, 42)
    return [
        ("HALF_PI_1", float(first), "pi/2 in three parts: 36 bits,"),
        ("HALF_PI_2", float(second), "the next 36 bits,"),
        ("HALF_PI_3", float(half_pi - first - second), "and the rest"),
        ("HALF_PI_HI", float(half_pi), "pi/2 as a pair"),
        ("HALF_PI_LO", float(half_pi - mp.mpf(float(half_pi))), ""),
        ("TWO_OVER_PI", float(1 / half_pi), ""),
        ("ANGLE_LIMIT", 131072.0, "2^17: the quadrant has at most 17 bits, 36 + 17 = 53"),
        ("LN2_HI", float(ln2_hi), "log 2: 42 bits,"),
        ("LN2_LO", float(ln2 - ln2_hi), "and the rest"),
        ("ONE_OVER_LN2", float(1 / ln2), ""),
        ("THIRD_HI", float(third), "1/3 as a pair"),
        ("THIRD_LO", float(third - mp.mpf(float(third))), ""),
        ("SQRT_2", float(mp.sqrt(2)), ""),
        ("ERFC_CENTRE", float(CENTRE), ""),
        ("TINY", 2.0**-28, "f(x) = x for odd functions of less, to the last bit"),
        ("LARGE", 2.0**28, "sqrt(x^2 + 1) = x for more, to the last bit"),
        ("SMALLEST_NORMAL", 2.0**-1022, ""),
        ("TWO_TO_MINUS_42", 2.0**-42, ""),
    ]


def words_of_two_over_pi() -> list[int]:
    """64 zero bits, then the bits of 2/π after the binary point."""
    with mp.workdps(450):
        number = int(mp.floor(2 / mp.pi * mp.mpf(2) ** (64 * 20)))
    return [0, *((number >> (64 * (19 - i))) & (2**64 - 1) for i in range(20))]


WRITTEN_OUT = ("SIN", "COS")
"""Evaluated in an order of their own, so each coefficient has a name."""


def text() -> str:
    """The whole file."""
    lines = [
        "/* elementary_coefficients.h: constants of elementary.c. Made by scripts/elementary_coefficients.py. */",
        "#ifndef MB2FMU_ELEMENTARY_COEFFICIENTS_H",
        "#define MB2FMU_ELEMENTARY_COEFFICIENTS_H",
        "",
        "#include <stdint.h>",
        "",
    ]
    for name, value, says in constants():
        lines.append(f"#define MB2FMU_{name} {value!r}" + (f" /* {says} */" if says else ""))
    for polynomial in polynomials():
        values, error = rounded(polynomial)
        power = mp.nstr(mp.log(error, 2), 4)
        lines += ["", f"/* {polynomial.says}; largest relative error of the function 2^{power} */"]
        if polynomial.name in WRITTEN_OUT:
            lines += [f"#define MB2FMU_{polynomial.name}_{i} ({value!r})" for i, value in enumerate(values)]
            continue
        lines.append(f"#define MB2FMU_{polynomial.name}_TERMS {len(values)}")
        lines.append(f"static const double mb2fmu_{polynomial.name.lower()}_coefficients[] = {{")
        lines += [f"    {value!r}," for value in values]
        lines.append("};")
    lines += ["", "/* 64 zeros, then 2/pi, bit by bit */", "static const uint64_t mb2fmu_two_over_pi_bits[] = {"]
    lines += [f"    0x{word:016x}u," for word in words_of_two_over_pi()]
    return "\n".join([*lines, "};", "", "#endif", ""])


if __name__ == "__main__":
    TARGET.write_text(text(), encoding="utf-8")
    sys.stdout.write(f"{TARGET}\n")
