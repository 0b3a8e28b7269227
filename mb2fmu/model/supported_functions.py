"""Functions that loads and outputs may use: the supported SymPy functions, event functions and lookup tables.

``SUPPORTED_FUNCTIONS`` names every SymPy function that a Program can compute, with a line for the documentation.
Model checks refuse anything else by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self, cast

import numpy as np
import sympy as sm

from mb2fmu.model.scalar_operation_table import OPERATIONS

TableKind = Literal["linear", "cubic", "pchip"]
Extrapolation = Literal["linear", "constant"]

SUPPORTED_FUNCTIONS: dict[str, str] = {
    "+ - * / **": "arithmetic; powers with any real exponent",
    "sqrt": "square root",
    "exp exp2": "exponential, and 2**x",
    "log log2 log10": "natural logarithm, and those to base 2 and 10",
    "sin cos tan cot sec csc": "trigonometric functions of radians",
    "asin acos atan acot asec acsc": "their inverses",
    "sinh cosh tanh coth sech csch": "hyperbolic functions",
    "asinh acosh atanh": "their inverses",
    "sinc": "sin(x)/x, 1 at 0",
    "erf erfc": "error function, and 1 − erf",
    "floor ceiling frac Mod": "largest integer that is not greater, its like, and remainders",
    "Min": "smallest of any number of arguments",
    "Max": "largest of any number of arguments",
    "Heaviside": "step, with its value at 0",
    "Piecewise": "choice by conditions; NaN where none holds",
    "ITE": "if, then, else",
    "< <= > >= Eq Ne": "comparisons, in conditions",
    "And Or Not": "logic, in conditions",
    "re im conjugate": "every symbol is real",
    "pre no_event sticking_sign": "for events",
    "LookupTable": "linear, cubic or monotone interpolation of data",
    "musculotendon curves": "the characteristic curves of sympy.physics.biomechanics",
    **{row.sympy: row.meaning for row in OPERATIONS.values() if row.meaning},
}


class _EventAnnotationFunction(sm.Function):  # type: ignore[misc] # SymPy has no types
    """Base of functions whose value is that of a plain expression; only the treatment of events differs."""

    is_real = True

    def _plain(self) -> sm.Expr:
        """Return the expression of the same value."""
        return self.args[0]

    def doit(self, **hints: Any) -> sm.Expr:
        """Return the plain expression of the same value (SymPy's hook)."""
        return self._plain().doit(**hints)

    def _eval_evalf(self, prec: int) -> sm.Expr:
        """Evaluate the plain function in its place (SymPy's hook)."""
        return self._plain()._eval_evalf(prec)  # noqa: SLF001  SymPy's protocol

    def _eval_derivative(self, symbol: sm.Symbol) -> sm.Expr:
        """Differentiate the plain function in its place (SymPy's hook)."""
        return self._plain().diff(symbol)

    def _pythoncode(self, printer: Any) -> str:
        """Print the plain function in its place (SymPy's hook)."""
        return f"({printer._print(self._plain())})"  # noqa: SLF001  SymPy's protocol

    _numpycode = _pythoncode
    _ccode = _pythoncode


class Pre(_EventAnnotationFunction):
    """``pre(x)``: the value of x just before the event, usable in values that an event sets; elsewhere it is x.

    Example:
        >>> import sympy.physics.mechanics as me, mb2fmu
        >>> v = me.dynamicsymbols("v")
        >>> -0.7 * mb2fmu.pre(v)  # the speed after an impact: model.when(h <= 0, {v: -0.7 * pre(v)})
        -0.7*pre(v(t))
    """

    nargs = 1


class NoEvent(_EventAnnotationFunction):
    """``no_event(expression)``: the expression without events; integrators step across its jumps and kinks.

    Example:
        >>> import sympy as sm, mb2fmu
        >>> x = sm.Symbol("x", real=True)
        >>> mb2fmu.no_event(sm.Abs(x)).args
        (Abs(x),)
    """

    nargs = 1

    def _eval_derivative(self, symbol: sm.Symbol) -> sm.Expr:
        """Return the derivative of the argument, also without events."""
        slope = self.args[0].diff(symbol)
        return NoEvent(slope) if slope.free_symbols else slope


class StickingSign(_EventAnnotationFunction):
    """``sticking_sign(v, ratio)``: sign(v); while v is held at zero, the value in [-ratio, ratio] that holds it there.

    Dry friction is -F_k sticking_sign(v, F_s/F_k): F_k while it slides, at most F_s while it sticks. A ratio
    below 1 counts as 1.

    Example:
        >>> import sympy.physics.mechanics as me, mb2fmu
        >>> v = me.dynamicsymbols("v")
        >>> -2.0 * mb2fmu.sticking_sign(v, 1.25)  # slides at 2 N, sticks up to 2.5 N
        -2.0*sticking_sign(v(t), 1.25)
    """

    nargs = 2

    def _plain(self) -> sm.Expr:
        """Return sign(v), the value while it slips."""
        return sm.sign(self.args[0])


pre, no_event, sticking_sign = Pre, NoEvent, StickingSign


class LookupTable(sm.AtomicExpr):  # type: ignore[misc] # SymPy has no types
    """Data to interpolate; call it with an expression to get the interpolated value.

    Two tables of equal content are equal. Beyond its data it goes on as a straight line, or stays constant.

    Example:
        >>> drag = LookupTable("drag", [0, 1, 2], [0, 1, 4])
        >>> drag(sm.Symbol("v"))
        drag(v)

    Args:
        name: For printing.
        x: Abscissae, at least two, growing.
        y: Ordinates, as many.
        kind: ``linear``; ``cubic``: spline whose second derivative is continuous (not-a-knot; with fewer than four
            points the polynomial through them); ``pchip``: cubic, keeps monotone data monotone.
        extrapolation: ``linear``: goes on with the slope at the end; ``constant``: stays at the end value.

    Raises:
        ValueError: The data are not two growing, finite columns of one length.
    """

    is_commutative = True
    is_real = True
    __slots__ = ("_data", "breaks", "coefficients", "name")

    name: str
    breaks: tuple[float, ...]
    coefficients: tuple[tuple[float, ...], ...]
    _data: tuple[Any, ...]

    def __new__(
        cls,
        name: str,
        x: Sequence[float],
        y: Sequence[float],
        kind: TableKind = "linear",
        extrapolation: Extrapolation = "linear",
    ) -> Self:
        """Make a table from data; arguments as in the class docstring."""
        xs, ys = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        if xs.ndim != 1 or xs.shape != ys.shape or len(xs) < 2:
            raise ValueError(f"table {name}: two columns of one length, at least 2, are needed")
        if not (np.isfinite(xs).all() and np.isfinite(ys).all() and (np.diff(xs) > 0).all()):
            raise ValueError(f"table {name}: abscissae must grow and all numbers be finite")
        breaks, pieces = _extend_pieces(xs, _polynomial_pieces(xs, ys, kind), extrapolation)
        table: Self = super().__new__(cls)
        table.name = name
        table._data = (name, tuple(map(float, xs)), tuple(map(float, ys)), kind, extrapolation)
        table.breaks = tuple(map(float, breaks))
        table.coefficients = tuple(tuple(map(float, row)) for row in pieces)
        return table

    def __call__(self, argument: Any) -> LookupTableDerivative:
        """Return the interpolated value at an expression."""
        return LookupTableDerivative(argument, self, 0)

    @property
    def data(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Abscissae and ordinates, as they were given."""
        return self._data[1], self._data[2]

    @property
    def kind(self) -> TableKind:
        """How it is interpolated."""
        return cast("TableKind", self._data[3])

    @property
    def extrapolation(self) -> Extrapolation:
        """How it goes on beyond its data."""
        return cast("Extrapolation", self._data[4])

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self._data

    def _hashable_content(self) -> tuple[Any, ...]:
        """Return the attributes by which tables are equal: name, breaks and coefficients."""
        return (self.name, self.breaks, self.coefficients)

    def _eval_derivative(self, _symbol: sm.Symbol) -> sm.Expr:
        """Return 0: the table itself is a constant, its values are not."""
        return sm.S.Zero

    def _sympystr(self, _printer: Any) -> str:
        """Print the table's name."""
        return self.name

    _latex = _sympystr


class LookupTableDerivative(sm.Function):  # type: ignore[misc] # SymPy has no types
    """The derivative of some order of a table at an expression: ``LookupTableDerivative(argument, table, order)``."""

    nargs = 3
    is_real = True

    @property
    def table(self) -> LookupTable:
        """The table."""
        return cast("LookupTable", self.args[1])

    @property
    def order(self) -> int:
        """0: the value, 1: the slope, and so on."""
        return int(self.args[2])

    def fdiff(self, argindex: int = 1) -> sm.Expr:
        """Return the derivative with respect to the argument."""
        if argindex != 1:
            return sm.S.Zero
        return LookupTableDerivative(self.args[0], self.table, self.order + 1)

    def _eval_rewrite_as_Piecewise(self, *_args: Any, **_hints: Any) -> sm.Expr:  # noqa: N802 (SymPy's name)
        """Return the table as a ``Piecewise``, for printers that know no tables."""
        x, breaks = self.args[0], self.table.breaks
        pieces = []
        for i, start in enumerate(breaks[:-1]):
            polynomial = sm.S.Zero
            for k in range(len(self.table.coefficients) - 1, self.order - 1, -1):
                factor = sm.ff(k, self.order) * sm.Float(self.table.coefficients[k][i])
                polynomial = polynomial * (x - sm.Float(start)) + factor
            last = i == len(breaks) - 2
            pieces.append((polynomial, sm.true if last else x < sm.Float(breaks[i + 1])))
        return sm.Piecewise(*pieces)

    def _eval_evalf(self, precision: int) -> sm.Expr | None:
        """Evaluate the table at a number; None at anything else."""
        if not self.args[0].is_number:
            return None
        return self.rewrite(sm.Piecewise)._eval_evalf(precision)  # noqa: SLF001 (SymPy's protocol)

    def _printed(self, printer: Any) -> str:
        """Print the table with one prime per derivative, and its argument."""
        primes = "'" * self.order
        return f"{self.table.name}{primes}({printer.doprint(self.args[0])})"

    _sympystr = _printed

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        """LaTeX; ``exp`` is the power that the printer wants to set at the name."""
        name = rf"\operatorname{{{self.table.name}}}" + "'" * self.order
        base = rf"{name}\left({printer.doprint(self.args[0])}\right)"
        return base if exp is None else rf"\left[{base}\right]^{{{exp}}}"

    def _printed_as_code(self, printer: Any) -> str:
        """Print the table as a Piecewise, for targets without tables."""
        text: str = printer._print(self.rewrite(sm.Piecewise))  # noqa: SLF001 (how SymPy's printers call each other)
        return text

    _pythoncode = _numpycode = _mpmathcode = _scipycode = _ccode = _printed_as_code


def _polynomial_pieces(x: np.ndarray, y: np.ndarray, kind: TableKind) -> np.ndarray:
    """Return the coefficients of powers 0, 1, … of x − x[i], shape (powers, len(x) − 1)."""
    if kind == "linear":
        return np.array([y[:-1], np.diff(y) / np.diff(x)])
    from scipy.interpolate import CubicSpline, PchipInterpolator  # takes longer to import than most models to derive

    if kind == "cubic":
        return CubicSpline(x, y).c[::-1]
    if kind == "pchip":
        return PchipInterpolator(x, y).c[::-1]
    raise ValueError(f"a table is linear, cubic or pchip, not {kind}")


def _extend_pieces(x: np.ndarray, pieces: np.ndarray, extrapolation: Extrapolation) -> tuple[np.ndarray, np.ndarray]:
    """Return the polynomials with a straight line added at each end, as wide as the data."""
    if extrapolation not in {"linear", "constant"}:
        raise ValueError(f"a table is continued linear or constant, not {extrapolation}")
    powers = np.arange(len(pieces))
    width = x[-1] - x[0]
    step = x[-1] - x[-2]
    start, end = pieces[0, 0], float(np.sum(pieces[:, -1] * step**powers))
    slopes = pieces[1, 0], float(np.sum(powers[1:] * pieces[1:, -1] * step ** powers[:-1]))
    if extrapolation == "constant":
        slopes = 0.0, 0.0
    left, right = np.zeros(len(pieces)), np.zeros(len(pieces))
    left[:2] = start - slopes[0] * width, slopes[0]
    right[:2] = end, slopes[1]
    breaks = np.concatenate([[x[0] - width], x, [x[-1] + width]])
    return breaks, np.column_stack([left, pieces, right])
