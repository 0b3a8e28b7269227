"""The FMU's elementary functions: errors against mpmath, special values of C99 Annex F, bits of several compilers."""

from __future__ import annotations

import ctypes
import importlib.util
import math
import sys
from collections.abc import Callable
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest
from compiled_c import ARCHITECTURE, compile_library, missing
from hypothesis import given
from hypothesis import strategies as st
from representatives import by_night

ONE = ("sin", "cos", "tan", "asin", "acos", "atan", "exp", "log", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh")
ONE += ("erf", "floor", "ceil", "sign")
TWO = ("atan2", "pow", "min", "max")
EXACT = {
    **{name: getattr(mp, name) for name in ("sin", "cos", "tan", "asin", "acos", "atan", "exp", "log", "erf")},
    **{name: getattr(mp, name) for name in ("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "atan2")},
    "pow": mp.power,
}
ALLOWED = {"sin": 1.0, "cos": 1.0, "tan": 1.0}
"""In units of the last place; 2 for all others."""

INF, NAN = math.inf, math.nan
Functions = Callable[..., np.ndarray]


def harness() -> str:
    lines = ['#include "elementary.c"']
    for name in ONE:
        head = f"void each_{name}(int n, const double x[], double y[])"
        lines += [f"{head};", f"{head} {{ for (int i = 0; i < n; i++) {{ y[i] = mb2fmu_{name}(x[i]); }} }}"]
    for name in TWO:
        head = f"void each_{name}(int n, const double a[], const double b[], double y[])"
        lines += [f"{head};", f"{head} {{ for (int i = 0; i < n; i++) {{ y[i] = mb2fmu_{name}(a[i], b[i]); }} }}"]
    head = "void each_sincos(int n, const double x[], double s[], double c[])"
    lines += [f"{head};", f"{head} {{ mb2fmu_sincos_each(n, x, s, c); }}", ""]
    return "\n".join(lines)


def load(compiler: str, folder: Path) -> Functions:
    library = ctypes.CDLL(str(compile_library(compiler, folder, harness(), ARCHITECTURE[compiler])))

    def call(name: str, *arguments: np.ndarray) -> np.ndarray:
        arrays = [np.ascontiguousarray(a, dtype=np.float64) for a in arguments]
        outputs = [np.empty_like(arrays[0]) for _ in range(2 if name == "sincos" else 1)]
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in (*arrays, *outputs)]
        getattr(library, f"each_{name}")(len(arrays[0]), *pointers)
        return np.concatenate(outputs)

    return call


@pytest.fixture(scope="module")
def gcc(tmp_path_factory: pytest.TempPathFactory) -> Functions:
    reason = missing("gcc")
    if reason:
        pytest.skip(reason)
    return load("gcc", tmp_path_factory.mktemp("gcc"))


@pytest.fixture(scope="module")
def zig(tmp_path_factory: pytest.TempPathFactory) -> Functions:
    reason = missing("zig")
    if reason:
        pytest.skip(reason)
    return load("zig", tmp_path_factory.mktemp("zig"))


def error(value: float, exact: mp.mpf) -> float:
    """In units of the last place of the exact value."""
    if value == exact:
        return 0.0
    if not math.isfinite(value):
        return 0.0 if math.isinf(value) and abs(exact) > mp.mpf(2) ** 1024 * (1 - mp.mpf(2) ** -54) else INF
    exponent = max(int(mp.floor(mp.log(abs(exact), 2))) - 52, -1074)
    return float(abs(mp.mpf(value) - exact) / mp.mpf(2) ** exponent)


def wide(rng: np.random.Generator, low: float, high: float, n: int) -> np.ndarray:
    return np.exp(rng.uniform(math.log(low), math.log(high), n)) * rng.choice([-1.0, 1.0], n)


def arguments(name: str, n: int) -> tuple[np.ndarray, ...]:
    """Random ones near and far, and those where cancellation is worst."""
    rng = np.random.default_rng(7)
    uniform = rng.uniform
    angles = [
        *(uniform(-7.0, 7.0, n), wide(rng, 1e-300, 1.4e5, n), wide(rng, 1e5, 1e308, n)),
        *(rng.integers(-(10**5), 10**5, n) * (np.pi / 2), np.ldexp(rng.integers(2**52, 2**53, n) * 1.0, 500)),
        np.array([6381956970095103.0 * 2.0**797, 1.7976931348623157e308, 131072.0, 131072.00000000003, 5e-324]),
    ]
    unit = [uniform(-1.0, 1.0, n), wide(rng, 1e-300, 1.0, n), 1.0 - np.abs(wide(rng, 1e-17, 0.5, n)), np.array([0.5])]
    line = [uniform(-3.0, 3.0, n), wide(rng, 1e-300, 1e300, n), wide(rng, 1e-3, 1e3, n)]
    grown = [uniform(-3.0, 3.0, n), uniform(-709.7, 709.7, n), wide(rng, 1e-300, 40.0, n)]
    positive = [np.abs(wide(rng, 5e-324, 1.7e308, n)), 1.0 + wide(rng, 1e-16, 0.5, n), uniform(1e-3, 4.0, n)]
    above_one = [1.0 + np.abs(wide(rng, 1e-16, 10.0, n)), np.abs(wide(rng, 1.0, 1e300, n))]
    chosen = {
        **dict.fromkeys(("sin", "cos", "tan"), angles),
        **dict.fromkeys(("asin", "acos"), unit),
        "atanh": [part[np.abs(part) < 1.0] for part in unit],
        **dict.fromkeys(("sinh", "cosh", "tanh"), grown),
        "exp": [*grown, uniform(-745.0, -700.0, n)],
        **dict.fromkeys(("atan", "asinh"), line),
        "log": positive,
        "acosh": above_one,
        "erf": [uniform(-6.5, 6.5, n), wide(rng, 1e-300, 2.0, n)],
    }
    if name in chosen:
        return (np.concatenate(chosen[name]),)
    if name == "atan2":
        pairs = [(wide(rng, 1e-3, 1e3, n), wide(rng, 1e-3, 1e3, n)), (wide(rng, 1e-300, 1e300, n),) * 2]
        pairs += [(wide(rng, 5e-324, 1e308, n), wide(rng, 5e-324, 1e308, n))]
    else:
        pairs = [(np.abs(wide(rng, 1e-3, 1e3, n)), uniform(-10.0, 10.0, n))]
        pairs += [(np.abs(wide(rng, 1e-300, 1e300, n)), uniform(-1.0, 1.0, n))]
        pairs += [(1.0 + wide(rng, 1e-9, 1e-3, n), wide(rng, 1.0, 1e5, n))]
    return np.concatenate([a for a, _ in pairs]), np.concatenate([b for _, b in pairs])


@pytest.mark.parametrize("count", [50, *by_night(300)])
@pytest.mark.parametrize("name", sorted(EXACT))
def test_errors_are_below_one_or_two_units_of_the_last_place(name: str, count: int, gcc: Functions) -> None:
    values = arguments(name, count)
    with mp.workprec(1300):
        errors = [
            error(float(y), EXACT[name](*(mp.mpf(float(x)) for x in xs)))
            for y, *xs in zip(gcc(name, *values), *values, strict=True)
        ]
    worst = int(np.argmax(errors))
    assert errors[worst] <= ALLOWED.get(name, 2.0), [float(x[worst]) for x in values]


@pytest.mark.parametrize("name", sorted(EXACT))
def test_bits_do_not_depend_on_the_compiler(name: str, gcc: Functions, zig: Functions) -> None:
    values = arguments(name, 3_000)
    assert gcc(name, *values).tobytes() == zig(name, *values).tobytes()


@given(st.lists(st.floats(), min_size=1, max_size=9))
def test_sines_and_cosines_of_many_angles_are_those_of_each(
    gcc: Functions, zig: Functions, angles: list[float]
) -> None:
    x = np.array(angles)
    both = np.concatenate([gcc("sin", x), gcc("cos", x)])
    np.testing.assert_array_equal(gcc("sincos", x), both)
    np.testing.assert_array_equal(zig("sincos", x), both)


SPECIAL = {
    "sin": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN)],
    "cos": [(0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN)],
    "tan": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN)],
    "asin": [(0.0, 0.0), (-0.0, -0.0), (1.0000000000000002, NAN), (-INF, NAN), (1.0, math.pi / 2)],
    "acos": [(1.0, 0.0), (-1.0, math.pi), (1.0000000000000002, NAN), (INF, NAN), (0.0, math.pi / 2)],
    "atan": [(0.0, 0.0), (-0.0, -0.0), (INF, math.pi / 2), (-INF, -math.pi / 2), (1.0, math.pi / 4)],
    "exp": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (710.0, INF), (-746.0, 0.0), (-745.0, 5e-324)],
    "log": [(0.0, -INF), (-0.0, -INF), (1.0, 0.0), (-1.0, NAN), (INF, INF), (-INF, NAN)],
    "sinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (711.0, INF), (-711.0, -INF)],
    "cosh": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, INF), (-711.0, INF)],
    "tanh": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0)],
    "asinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF)],
    "acosh": [(1.0, 0.0), (0.5, NAN), (INF, INF), (-INF, NAN)],
    "atanh": [(0.0, 0.0), (-0.0, -0.0), (1.0, INF), (-1.0, -INF), (1.5, NAN), (INF, NAN)],
    "erf": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0)],
    "floor": [(-0.5, -1.0), (1.5, 1.0), (-0.0, -0.0), (INF, INF)],
    "ceil": [(-0.5, -0.0), (1.5, 2.0), (-0.0, -0.0), (-INF, -INF)],
    "sign": [(-3.0, -1.0), (0.5, 1.0), (-0.0, -0.0), (0.0, 0.0), (-INF, -1.0)],
}


@pytest.mark.parametrize("name", ONE)
def test_special_values(name: str, gcc: Functions) -> None:
    x, expected = (np.array(column) for column in zip(*SPECIAL[name], (NAN, NAN), strict=True))
    y = gcc(name, x)
    np.testing.assert_array_equal(y, expected)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(y[known]), np.signbit(expected[known]))


LIMITS = (0.0, -0.0, INF, -INF, NAN, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 2.5, -2.5, 2.0**60, -(2.0**60), 1e300)


@pytest.mark.parametrize("name", ["atan2", "pow"])
def test_special_values_of_two_arguments_are_those_of_the_system(name: str, gcc: Functions) -> None:
    """numpy calls the C library of the system, which follows Annex F."""
    a, b = (grid.ravel() for grid in np.meshgrid(LIMITS, LIMITS))
    with np.errstate(all="ignore"):
        expected = np.arctan2(a, b) if name == "atan2" else np.power(a, b)
    y = gcc(name, a, b)
    np.testing.assert_allclose(y, expected, rtol=4e-16)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(y[known]), np.signbit(expected[known]))


def test_smaller_and_larger_as_in_the_python_runtime(gcc: Functions) -> None:
    a, b = (grid.ravel() for grid in np.meshgrid(LIMITS, LIMITS))
    np.testing.assert_array_equal(gcc("min", a, b), np.minimum(a, b))
    np.testing.assert_array_equal(gcc("max", a, b), np.maximum(a, b))


@pytest.mark.slow
@pytest.mark.parametrize("each", [8, pytest.param(1, marks=pytest.mark.repeats)])
def test_coefficients_are_what_the_script_makes(each: int) -> None:
    """By day of each eighth function, and all that stands between them; by night the whole file."""
    path = Path(__file__).parents[4] / "scripts" / "elementary_coefficients.py"
    spec = importlib.util.spec_from_file_location("elementary_coefficients", path)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    with mp.workdps(mp.mp.dps), pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, spec.name, script)  # dataclasses look their module up
        spec.loader.exec_module(script)
        some = script.polynomials()[::each]
        patch.setattr(script, "polynomials", lambda: some)
        made, written = (text.split("\n\n") for text in (script.text(), script.TARGET.read_text(encoding="utf-8")))
        assert made == written if each == 1 else set(made) <= set(written)
        assert len(made) >= 4
