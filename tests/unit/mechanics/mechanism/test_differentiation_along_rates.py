"""Two ways to differentiate, of which the FMU's equations take one and the reference the other, agree with SymPy's."""

from __future__ import annotations

import pytest
import sympy as sm

from mb2fmu.mechanics.mechanism.records.symbol_replacement_and_derivatives import (
    differentiate_along_rates,
    total_time_derivative,
)

x, y, u, k = sm.symbols("x y u k", real=True)
RATES = {x: u, y: k * sm.cos(x) * u}
INSIDE = (x + 2 * y) * sm.sin(x * y) / (1 + x**2) + k
AT = {x: 0.7, y: 1.3, u: -0.4, k: 2.1}


@pytest.mark.parametrize(
    "expression",
    [INSIDE, k, x - 3 * y, sm.sqrt(x**2 + y**2) ** 3 * (x - y), x**y, sm.atan2(INSIDE, x), sm.Max(x, y) * INSIDE]
    + [sm.Piecewise((INSIDE, x > y), (y**2, True)), INSIDE**k]
    + [f(INSIDE) for f in (sm.sin, sm.cos, sm.tan, sm.exp, sm.acos, sm.tanh, sm.Abs)],
    ids=str,
)
def test_both_agree_with_sympy(expression):
    expected = sum(expression.diff(symbol) * rate for symbol, rate in RATES.items()).subs(AT)
    for differentiate in (differentiate_along_rates, total_time_derivative):
        assert complex(differentiate(expression, RATES).subs(AT)) == pytest.approx(complex(expected), rel=1e-12)
