"""Differences at kinks and beside them: what has no derivative is not compared, what has one is."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from mb2fmu.audit.behaviour.fixture.typical_magnitudes import MagnitudeWeightedMaxima
from mb2fmu.audit.behaviour.trials.partial_derivative_trials import RELATIVE_CHANGE, _difference_column


def column(*functions: Callable[[float], float]) -> list[tuple[float, float] | None]:
    """Of functions of one variable, at 0."""
    return _difference_column(
        lambda change: [f(change) for f in functions], RELATIVE_CHANGE, MagnitudeWeightedMaxima([1.0] * len(functions))
    )


@pytest.mark.parametrize(
    "kinked",
    [
        abs,
        lambda x: abs(x) + 0.3 * x,
        lambda x: max(x, 0.0),
        lambda x: 0.2 * abs(x + 1e-9),
        lambda x: 5 + abs(x) + x * x,
    ],
)
def test_a_kink_has_no_derivative(kinked):
    """The middle may be off by what a state on the constraints is off by."""
    assert column(math.sin, kinked)[1] is None


@pytest.mark.parametrize(
    ("smooth", "slope"),
    [
        (math.sin, 1.0),
        (lambda x: x * x, 0.0),
        (lambda x: 40 * x * x + 1e-6 * x, 1e-6),
        (math.cosh, 0.0),
        (lambda _: 3.0, 0),
    ],
)
def test_what_is_curved_has_one_even_where_it_is_level(smooth, slope):
    """Beside a kink, too: each row by itself."""
    found = column(abs, smooth)[1]
    assert found is not None
    assert found[0] == pytest.approx(slope, rel=1e-6, abs=1e-9)
