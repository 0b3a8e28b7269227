"""``make_parameter_function``: all parameters of a mechanism in numbers, from the free ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import sympy as sm

from mb2fmu.mechanics.mechanism.records.mechanism_records import Mechanism

Array = npt.NDArray[np.float64]


def make_parameter_function(mechanism: Mechanism) -> Callable[[Sequence[float] | Array], Array]:
    """Return all parameters, free ones first, then calculated ones."""
    calculate = sm.lambdify(mechanism.p, _substitute_calculated(mechanism), modules=["scipy", "numpy"])
    return lambda p: np.array([*p, *calculate(*p)], dtype=float)


def _substitute_calculated(mechanism: Mechanism) -> list[sm.Expr]:
    """Return calculated parameters as expressions of free ones."""
    known: dict[sm.Symbol, sm.Expr] = {}
    for assignment in mechanism.calculated_parameters:
        known[assignment.symbol] = assignment.expression.xreplace(known)
    return list(known.values())
