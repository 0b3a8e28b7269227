"""Functions of NumPy arrays from SymPy expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import sympy as sm
from sympy.printing.numpy import SciPyPrinter

from mb2fmu.model.expression_traversal import lambdify_with_shared_parts


def lambdify_for_numpy(
    arguments: Sequence[sm.Expr], expressions: Any, *, cse: Callable[..., Any] | bool = False
) -> Callable[..., Any]:
    """Return ``sympy.lambdify`` for NumPy, without importing what no expression needs.

    With names of modules, ``lambdify`` imports all of NumPy and SciPy's special functions, which takes longer than a
    small mechanism to derive. Given a printer, it imports the names that were printed.

    Args:
        arguments: Symbols, in the order of the function's arguments.
        expressions: An expression, a list of them, or a matrix.
        cse: Whether repeated parts are evaluated once; or a function that finds them, as for ``lambdify``.
    """
    settings = {"fully_qualified_modules": False, "inline": True, "allow_unknown_functions": True, "order": "none"}
    options = {"modules": [{}], "printer": SciPyPrinter(settings)}
    if cse is True:
        return lambdify_with_shared_parts(arguments, expressions, **options)
    function: Callable[..., Any] = sm.lambdify(arguments, expressions, cse=cse, docstring_limit=0, **options)
    return function
