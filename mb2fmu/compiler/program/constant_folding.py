"""Fold operations on numbers at lowering time, rounded correctly.

The C library's sin differs between machines in the last bit; what is folded into a program must not.
"""

from __future__ import annotations

import math

import mpmath
import numpy as np

from mb2fmu.compiler.arithmetic.python_runtime import IEEE
from mb2fmu.model.scalar_operations import OPERATIONS, Op


def evaluate(op: Op, *values: float) -> float:
    """Return the operation on numbers: inf and NaN as in IEEE 754, all else rounded to the nearest double."""
    row = OPERATIONS[op]
    with np.errstate(all="ignore"):
        if op is Op.DIV:
            return float(np.float64(values[0]) / np.float64(values[1]))
        result = float(IEEE[row.python](*values))
    if row.exact or not math.isfinite(result) or not all(map(math.isfinite, values)):
        return result
    with mpmath.workprec(160):
        return float(row.digits(*values))
