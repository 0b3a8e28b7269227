"""Operations on numbers at lowering time, rounded correctly.

The C library's sin differs between machines in the last bit; what is folded into a program must not.
"""

from __future__ import annotations

import math

import mpmath
import numpy as np

from mb2fmu.arithmetic.python_runtime import IEEE
from mb2fmu.program.operations import RUNTIME_NAME
from mb2fmu.program.program import Op

_PRECISE = {
    Op.EXP: mpmath.exp,
    Op.LOG: mpmath.log,
    Op.SIN: mpmath.sin,
    Op.COS: mpmath.cos,
    Op.TAN: mpmath.tan,
    Op.ASIN: mpmath.asin,
    Op.ACOS: mpmath.acos,
    Op.ATAN: mpmath.atan,
    Op.ATAN2: mpmath.atan2,
    Op.SINH: mpmath.sinh,
    Op.COSH: mpmath.cosh,
    Op.TANH: mpmath.tanh,
    Op.ASINH: mpmath.asinh,
    Op.ACOSH: mpmath.acosh,
    Op.ATANH: mpmath.atanh,
    Op.ERF: mpmath.erf,
    Op.POW: mpmath.power,
}


def evaluate(op: Op, *values: float) -> float:
    """The operation on numbers: inf and NaN as IEEE has them, all else rounded to the nearest double."""
    with np.errstate(all="ignore"):
        if op is Op.DIV:
            return float(np.float64(values[0]) / np.float64(values[1]))
        result = float(IEEE[RUNTIME_NAME[op]](*values))
    if op not in _PRECISE or not math.isfinite(result) or not all(map(math.isfinite, values)):
        return result
    with mpmath.workprec(160):
        return float(_PRECISE[op](*values))
