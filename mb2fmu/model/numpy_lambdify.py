"""Functions of NumPy arrays from SymPy expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import sympy as sm
from sympy.printing.numpy import SciPyPrinter

from mb2fmu.model.elementary_lambdify import ElementaryFunctions, lambdify_elementary_expressions
from mb2fmu.model.expression_traversal import lambdify_with_shared_parts

NUMPY_FUNCTIONS: ElementaryFunctions = {
    sm.Pow: np.sqrt, sm.sin: np.sin, sm.cos: np.cos, sm.tan: np.tan, sm.asin: np.arcsin, sm.acos: np.arccos,
    sm.atan: np.arctan, sm.atan2: np.arctan2, sm.exp: np.exp, sm.log: np.log, sm.sinh: np.sinh, sm.cosh: np.cosh,
    sm.tanh: np.tanh, sm.Abs: np.abs, sm.sign: np.sign,
}  # fmt: skip
"""SymPy's class → NumPy's function; ``Pow`` → square root."""


def lambdify_for_numpy(
    arguments: Sequence[sm.Expr],
    expressions: Any,
    *,
    cse: bool = False,
    named: Sequence[tuple[sm.Symbol, sm.Expr]] = (),
) -> Callable[..., Any]:
    """Return ``sympy.lambdify`` for NumPy, without importing what no expression needs.

    With names of modules, ``lambdify`` imports all of NumPy and SciPy's special functions, which takes longer than a
    small mechanism to derive. Given a printer, it imports the names that were printed.

    Args:
        arguments: Symbols, in the order of the function's arguments.
        expressions: An expression, a list of them, or a matrix.
        cse: Whether repeated parts are evaluated once; then nothing is ``named``.
        named: Symbols of the expressions with what they stand for, in order of evaluation.
    """
    settings = {"fully_qualified_modules": False, "inline": True, "allow_unknown_functions": True, "order": "none"}
    options = {"modules": [{}], "printer": SciPyPrinter(settings)}
    if cse:
        return lambdify_with_shared_parts(arguments, expressions, functions=NUMPY_FUNCTIONS, **options)
    quick = lambdify_elementary_expressions(arguments, named, expressions, NUMPY_FUNCTIONS)
    shared = (lambda reduced: (named, list(reduced))) if named else False
    function: Callable[..., Any] = quick or sm.lambdify(
        arguments, expressions, cse=shared, docstring_limit=0, **options
    )
    return function
