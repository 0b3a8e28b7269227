"""Runtime of printed Python functions: scalar and batched arithmetic, lookup tables and linear solves.

Imports ``math``, ``numpy``, ``python_newton`` and ``python_least_norm`` only, because these very files are copied into
FMUs that are hosted by Python.

The same printed source runs in three name spaces:

- ``FAST``: Python floats and ``math``; raises ``ZeroDivisionError``, ``ValueError`` or ``OverflowError`` where IEEE
  arithmetic would give inf or NaN.
- ``IEEE``: numpy float64 scalars; the same bits as ``FAST`` where that does not raise, inf and NaN elsewhere. Needed
  because both branches of a selection are evaluated, and the one not taken may divide by zero.
- ``ARRAY``: numpy arrays of shape (n_batch,) per symbol.

``FAST`` and ``IEEE`` raise ``SingularMatrixError`` where a linear solve fails, or a value leaves its domain; ``ARRAY``
gives NaN for those instances.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .python_least_norm import array_least_norm_factor, array_least_norm_solve, least_norm_factor, least_norm_solve
from .python_newton import NonPositiveValueError, NoSolutionError, SingularMatrixError, array_newton, newton

__all__ = ["ARRAY", "FAST", "IEEE", "NoSolutionError", "NonPositiveValueError", "SingularMatrixError"]

Pieces = tuple[tuple[float, ...], tuple[tuple[float, ...], ...]]
Factors = tuple[Any, ...]


# --- scalars ---------------------------------------------------------------------------------------------------------


def _minimum(a: float, b: float) -> float:
    """Return the smaller one; NaN if either is NaN."""
    return a if a < b or a != a else b  # noqa: PLR0124 (only NaN differs from itself)


def _maximum(a: float, b: float) -> float:
    """Return the larger one; NaN if either is NaN."""
    return a if a > b or a != a else b  # noqa: PLR0124


def _sign(a: float) -> float:
    """Return −1, 0 or 1; NaN of NaN."""
    if a > 0.0:
        return 1.0
    return -1.0 if a < 0.0 else 0.0 * a


def _less(a: float, b: float) -> float:
    """Return 1.0 where a < b, else 0.0."""
    return 1.0 if a < b else 0.0


def _less_equal(a: float, b: float) -> float:
    """Return 1.0 where a ≤ b, else 0.0."""
    return 1.0 if a <= b else 0.0


def _equal(a: float, b: float) -> float:
    """Return 1.0 where a = b, else 0.0."""
    return 1.0 if a == b else 0.0


def _not(a: float) -> float:
    """Return the opposite of a truth value, 0.0 or 1.0."""
    return 1.0 - a


def _and(a: float, b: float) -> float:
    """Return whether both hold, as 0.0 or 1.0."""
    return a * b


def _select(condition: float, a: float, b: float) -> float:
    """Return a where the condition is not 0, else b."""
    return a if condition != 0.0 else b


def _inside(a: float, clause: str) -> float:
    """Return a, which must be positive; else raise with the clause that says what is wrong."""
    if not 0.0 < a < math.inf:
        raise NonPositiveValueError(clause)
    return a


def _floor(a: float) -> float:
    """Return the largest whole number ≤ a, as a float; inf and NaN raise."""
    return float(math.floor(a))


def _ceil(a: float) -> float:
    """Return the smallest whole number ≥ a, as a float; inf and NaN raise."""
    return float(math.ceil(a))


def _piece(breaks: Sequence[float], x: float) -> int:
    """Return the index of the piece that holds x; the first and last piece continue outside."""
    low, high = 0, len(breaks) - 2
    while low < high:
        middle = (low + high + 1) // 2
        if breaks[middle] <= x:
            low = middle
        else:
            high = middle - 1
    return low


def _table(pieces: Pieces, x: float) -> float:
    """Return a piecewise polynomial: ``pieces`` = (breaks, per piece the coefficients from the highest power down)."""
    breaks, coefficients = pieces
    i = _piece(breaks, x)
    h = x - breaks[i]
    total = 0.0
    for coefficient in coefficients[i]:
        total = total * h + coefficient
    return total


def _ldlt_factor(n: int, name: str, entries: Sequence[float]) -> Factors:
    """Return L D Lᵀ of a symmetric positive definite matrix from its lower triangle, row by row."""
    rows = []
    position = 0
    for i in range(n):
        rows.append(list(entries[position : position + i + 1]))
        position += i + 1
    pivots = [0.0] * n
    for i in range(n):
        row = rows[i]
        for j in range(i):
            lower = rows[j]
            value = row[j]
            for k in range(j):
                value -= row[k] * lower[k]
            row[j] = value  # l_ij d_j until the row is done
        pivot = row[i]
        for j in range(i):
            scaled = row[j] / pivots[j]
            pivot -= scaled * row[j]
            row[j] = scaled
        if not 0.0 < pivot < math.inf:
            raise SingularMatrixError(name, i, float(pivot))
        pivots[i] = pivot
    return rows, pivots


def _ldlt_solve(factors: Factors, right: Sequence[float]) -> list[float]:
    """Return the solution x of L D Lᵀ x = right."""
    rows, pivots = factors
    n = len(pivots)
    x = list(right)
    for i in range(1, n):
        row = rows[i]
        value = x[i]
        for j in range(i):
            value = value - row[j] * x[j]  # never in place: these may be arrays
        x[i] = value
    for i in range(n):
        x[i] = x[i] / pivots[i]
    for i in range(n - 1, 0, -1):
        row, value = rows[i], x[i]
        for j in range(i):
            x[j] = x[j] - row[j] * value
    return x


def _lu_factor(n: int, name: str, entries: Sequence[float]) -> Factors:
    """Return P A = L U with row pivoting; ``entries`` row by row."""
    rows = [list(entries[i * n : i * n + n]) for i in range(n)]
    order = list(range(n))
    for k in range(n):
        best = k
        for i in range(k + 1, n):
            if abs(rows[i][k]) > abs(rows[best][k]):
                best = i
        rows[k], rows[best] = rows[best], rows[k]
        order[k], order[best] = order[best], order[k]
        upper = rows[k]
        pivot = upper[k]
        if pivot == 0.0 or not abs(pivot) < math.inf:
            raise SingularMatrixError(name, k, float(pivot))
        for i in range(k + 1, n):
            row = rows[i]
            factor = row[k] / pivot
            row[k] = factor
            for j in range(k + 1, n):
                row[j] -= factor * upper[j]
    return rows, order


def _lu_solve(factors: Factors, right: Sequence[float]) -> list[float]:
    """Return the solution x of A x = right."""
    rows, order = factors
    n = len(order)
    x = [right[i] for i in order]
    for i in range(1, n):
        row, value = rows[i], x[i]
        for j in range(i):
            value -= row[j] * x[j]
        x[i] = value
    for i in range(n - 1, -1, -1):
        row, value = rows[i], x[i]
        for j in range(i + 1, n):
            value -= row[j] * x[j]
        x[i] = value / row[i]
    return x


# --- scalars as IEEE 754 has them ------------------------------------------------------------------------------------


def _ieee(function: Callable[..., float]) -> Callable[..., np.float64]:
    """Return the function with NaN where it is not defined."""

    def quiet(*arguments: float) -> np.float64:
        try:
            return np.float64(function(*arguments))
        except ValueError:
            return np.float64(math.nan)

    return quiet


def _ieee_floor(a: float) -> np.float64:
    """Return floor(a); inf and NaN are passed on."""
    return np.float64(math.floor(a) if math.isfinite(a) else a)


def _ieee_ceil(a: float) -> np.float64:
    """Return ceil(a); inf and NaN are passed on."""
    return np.float64(math.ceil(a) if math.isfinite(a) else a)


def _ieee_exp(a: float) -> np.float64:
    """Return exp(a), inf where it overflows."""
    return np.float64(math.inf if a > 710.0 else math.exp(a))  # exp(709.79) is the largest finite one


def _ieee_sinh(a: float) -> np.float64:
    """Return sinh(a), ±inf where it overflows."""
    return np.float64(math.sinh(a) if not abs(a) > 711.0 else math.copysign(math.inf, a))


def _ieee_cosh(a: float) -> np.float64:
    """Return cosh(a), inf where it overflows."""
    return np.float64(math.cosh(a) if not abs(a) > 711.0 else math.inf)


def _ieee_log(a: float) -> np.float64:
    """Return ln(a), −inf at 0 and NaN below."""
    if a > 0.0:
        return np.float64(math.log(a))
    return np.float64(-math.inf if a == 0.0 else math.nan)


def _ieee_atanh(a: float) -> np.float64:
    """Return atanh(a), ±inf at ±1 and NaN beyond."""
    if abs(a) == 1.0:
        return np.float64(math.copysign(math.inf, a))
    return np.float64(math.atanh(a) if abs(a) < 1.0 else math.nan)


def _ieee_power(a: float, b: float) -> np.float64:
    """Return a^b; where Python raises, what IEEE demands (inf, NaN or 0)."""
    try:
        return np.float64(math.pow(a, b))
    except (ValueError, OverflowError):
        return np.float64(np.power(np.float64(a), np.float64(b)))


def _ieee_list(function: Callable[..., list[float]]) -> Callable[..., list[np.float64]]:
    """Return a function whose list of results has NumPy floats, which divide by zero without raising."""

    def wrapped(*arguments: Any) -> list[np.float64]:
        return [np.float64(value) for value in function(*arguments)]

    return wrapped


# --- arrays over a batch ---------------------------------------------------------------------------------------------


def _array_erf(a: Any) -> Any:
    """Return erf elementwise, which NumPy does not have."""
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(a), dtype=float)


def _as_float(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose truth values become 0.0 and 1.0."""

    def wrapped(*arguments: Any) -> Any:
        return np.asarray(function(*arguments), dtype=float)

    return wrapped


def _array_inside(a: Any, _clause: str) -> Any:
    """Return a where it is positive and finite, NaN elsewhere."""
    return np.where((np.asarray(a) > 0.0) & (np.asarray(a) < math.inf), a, math.nan)


def _array_select(condition: Any, a: Any, b: Any) -> Any:
    """Return a where the condition is not 0, else b, elementwise."""
    return np.where(np.asarray(condition) != 0.0, a, b)


def _array_table(pieces: Pieces, x: Any) -> Any:
    """Evaluate a table elementwise by Horner's rule; the outermost pieces hold beyond its ends."""
    breaks = np.asarray(pieces[0])
    coefficients = np.asarray(pieces[1])
    x = np.asarray(x, dtype=float)
    i = np.clip(np.searchsorted(breaks, x, side="right") - 1, 0, len(breaks) - 2)
    h = x - breaks[i]
    total = np.zeros_like(x)
    for k in range(coefficients.shape[1]):
        total = total * h + coefficients[i, k]
    return total


def _array_ldlt_factor(n: int, _name: str, entries: Sequence[Any]) -> Factors:
    """Factor a batch of symmetric matrices as L D Lᵀ; a pivot not above zero makes its case NaN."""
    stacked = np.stack(np.broadcast_arrays(*entries))
    lower: list[list[Any]] = []
    pivots: list[Any] = []
    position = 0
    for i in range(n):
        row = list(stacked[position : position + i + 1])
        position += i + 1
        for j in range(i):
            for k in range(j):
                row[j] = row[j] - row[k] * lower[j][k]
        pivot = row[i]
        for j in range(i):
            scaled = row[j] / pivots[j]
            pivot = pivot - scaled * row[j]
            row[j] = scaled
        pivots.append(np.where((pivot > 0.0) & (pivot < math.inf), pivot, math.nan))
        lower.append(row)
    return lower, pivots


def _array_lu_factor(n: int, _name: str, entries: Sequence[Any]) -> Factors:
    """Factor a batch of matrices as P A = L U with column pivots; a zero pivot makes its case NaN."""
    stacked = np.stack(np.broadcast_arrays(*[np.asarray(entry, dtype=float) for entry in entries]))
    shape = stacked.shape[1:]
    matrix = stacked.reshape(n, n, -1).transpose(2, 0, 1).copy()
    batch = np.arange(len(matrix))
    order = np.tile(np.arange(n), (len(matrix), 1))
    for k in range(n):
        best = k + np.argmax(np.abs(matrix[:, k:, k]), axis=1)
        matrix[batch, k], matrix[batch, best] = matrix[batch, best].copy(), matrix[batch, k].copy()
        order[batch, k], order[batch, best] = order[batch, best].copy(), order[batch, k].copy()
        pivot = matrix[:, k, k]
        matrix[:, k, k] = np.where((pivot != 0.0) & np.isfinite(pivot), pivot, math.nan)
        matrix[:, k + 1 :, k] /= matrix[:, k, k, None]
        matrix[:, k + 1 :, k + 1 :] -= matrix[:, k + 1 :, k, None] * matrix[:, k, None, k + 1 :]
    return matrix, order, shape


def _array_lu_solve(factors: Factors, right: Sequence[Any]) -> list[Any]:
    """Solve for a batch of right sides; factors or right sides without a batch axis hold for all."""
    matrix, order, shape = factors
    n = len(right)
    stacked = np.stack(np.broadcast_arrays(*right, np.zeros(shape)))[:n]
    full = stacked.shape[1:]
    columns = np.broadcast_to(stacked.reshape(n, -1).T, (max(len(matrix), math.prod(full)), n))
    order = np.broadcast_to(order, columns.shape)
    x = np.take_along_axis(columns, order, axis=1).T.copy()
    for i in range(1, n):
        for j in range(i):
            x[i] -= matrix[:, i, j] * x[j]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            x[i] -= matrix[:, i, j] * x[j]
        x[i] /= matrix[:, i, i]
    return [row.reshape(full) for row in x]


# --- name spaces -----------------------------------------------------------------------------------------------------

FAST: dict[str, Any] = {
    **{
        name: getattr(math, name)
        for name in (
            *("sqrt", "exp", "log", "sin", "cos", "tan", "asin", "acos", "atan", "atan2"),
            *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf"),
        )
    },
    "inf": math.inf,
    "nan": math.nan,
    "power": math.pow,
    "absolute": abs,
    "sign": _sign,
    "floor": _floor,
    "ceil": _ceil,
    "minimum": _minimum,
    "maximum": _maximum,
    "less": _less,
    "less_equal": _less_equal,
    "equal": _equal,
    "logical_not": _not,
    "logical_and": _and,
    "logical_or": _maximum,
    "select": _select,
    "hypot": math.hypot,
    "inside": _inside,
    "table": _table,
    "ldlt_factor": _ldlt_factor,
    "ldlt_solve": _ldlt_solve,
    "lu_factor": _lu_factor,
    "lu_solve": _lu_solve,
    "least_norm_factor": least_norm_factor,
    "least_norm_solve": least_norm_solve,
    "newton": newton,
}

IEEE: dict[str, Any] = {
    **{name: _ieee(value) for name, value in FAST.items() if callable(value)},
    "inf": np.float64(math.inf),
    "nan": np.float64(math.nan),
    "exp": _ieee_exp,
    "sinh": _ieee_sinh,
    "cosh": _ieee_cosh,
    "log": _ieee_log,
    "atanh": _ieee_atanh,
    "power": _ieee_power,
    "floor": _ieee_floor,
    "ceil": _ieee_ceil,
    "inside": _inside,
    "ldlt_factor": _ldlt_factor,
    "ldlt_solve": _ieee_list(_ldlt_solve),
    "lu_factor": _lu_factor,
    "lu_solve": _ieee_list(_lu_solve),
    "least_norm_factor": least_norm_factor,
    "least_norm_solve": _ieee_list(least_norm_solve),
    "newton": _ieee_list(newton),
}

ARRAY: dict[str, Any] = {
    "inf": math.inf,
    "nan": math.nan,
    **{name: getattr(np, name) for name in ("sqrt", "exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "hypot": np.hypot,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erf": _array_erf,
    "power": np.power,
    "absolute": np.abs,
    "sign": np.sign,
    "floor": np.floor,
    "ceil": np.ceil,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "less": _as_float(np.less),
    "less_equal": _as_float(np.less_equal),
    "equal": _as_float(np.equal),
    "logical_not": _as_float(np.logical_not),
    "logical_and": _as_float(np.logical_and),
    "logical_or": _as_float(np.logical_or),
    "select": _array_select,
    "inside": _array_inside,
    "table": _array_table,
    "ldlt_factor": _array_ldlt_factor,
    "ldlt_solve": _ldlt_solve,
    "lu_factor": _array_lu_factor,
    "lu_solve": _array_lu_solve,
    "least_norm_factor": array_least_norm_factor,
    "least_norm_solve": array_least_norm_solve,
    "newton": array_newton,
}
