"""Write SymPy's expressions as C; each common subexpression once, sums and products in given order.

Everything else (functions, piecewise expressions, the characteristic curves of muscles) is printed by SymPy's own
printer of C, node by node. Numbers are printed to all digits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import sympy as sm
from sympy.logic.boolalg import Boolean, BooleanFunction
from sympy.printing.c import C99CodePrinter

from mb2fmu.model.supported_functions import LookupTableDerivative

C_PRELUDE = """\
#include <math.h>
#include <stdint.h>

#ifdef _WIN32
#define EXPORTED __declspec(dllexport)
#else
#define EXPORTED __attribute__((visibility("default")))
#endif

static inline double modulo(double x, double y)
{
    const double rest = fmod(x, y);
    return rest != 0.0 && (rest < 0.0) != (y < 0.0) ? rest + y : rest;
}

static inline double step_at(double x, double at_zero) { return x == 0.0 ? at_zero : (double)(x > 0.0); }

static double piece(double x, const double breaks[], const double rows[], int64_t pieces, int64_t width)
{
    int64_t i = 0;
    while (i + 1 < pieces && breaks[i + 1] <= x) {
        i++;
    }
    double total = 0.0;
    for (int64_t k = width - 1; k >= 0; k--) {
        total = total * (x - breaks[i]) + rows[i * width + k];
    }
    return total;
}

"""
"""What the written code may call: the remainder and step function of SymPy, and tables."""

LookupTableDefinitions = dict[Any, tuple[str, str]]
"""Lookup tables (table, order of the derivative) → (arguments of ``piece`` after the first, definition)."""

_MAX_MULTIPLIED_EXPONENT = 4
"""Exponents up to which powers are products."""


class NoCExpressionError(Exception):
    """SymPy's printer has no C for an expression."""


class _CPrinter(C99CodePrinter):  # type: ignore[misc]  # SymPy has no types
    """SymPy's printer, for one function of numbers and names."""

    def __init__(self) -> None:
        super().__init__({"math_macros": {}, "precision": 17})

    def _print_Mod(self, value: sm.Mod) -> str:  # noqa: N802  SymPy's way to find the method
        """Print a − b·floor(a/b), the modulo with the divisor's sign, which C's fmod is not."""
        return f"modulo({self._print(value.args[0])}, {self._print(value.args[1])})"

    def _print_Heaviside(self, value: sm.Heaviside) -> str:  # noqa: N802
        """Print a step whose value at zero is the given one, ½ by default."""
        at_zero = value.args[1] if len(value.args) > 1 else sm.Rational(1, 2)
        return f"step_at({self._print(value.args[0])}, {float(at_zero)!r})"

    def _print_re(self, value: sm.re) -> str:
        """Print the argument: all numbers are real here."""
        return str(self._print(value.args[0]))

    _print_conjugate = _print_re

    def _print_im(self, _value: sm.im) -> str:
        """Print zero: all numbers are real here."""
        return "0.0"


class CExpressionWriter:
    """Writes the statements of one function.

    Args:
        places: How each symbol is read.
        tables: Names of the tables that were printed before, by content; those that are met are added.
    """

    def __init__(self, places: Mapping[sm.Symbol, str], tables: LookupTableDefinitions) -> None:
        self.lines: list[str] = []
        self._names: dict[Any, str] = dict(places)
        self._tables = tables
        self._printer = _CPrinter()

    def define(self, symbol: sm.Symbol, place: str) -> None:
        """Read ``symbol`` at ``place`` from now on."""
        self._names[symbol] = place

    def write_atom(self, expression: sm.Expr) -> str:
        """Return a name or number that has the value of an expression, after statements that evaluate it.

        Raises:
            NoCExpressionError: If SymPy's printer has no C for it.
        """
        known_name = self._names.get(expression)
        if known_name is not None:
            return known_name
        if expression.is_number and expression.is_Atom:
            return _format_c_number(expression)
        if expression.is_Add:
            text = self._format_sum(expression.args)
        elif expression.is_Mul:
            text = self._format_product(expression.args)
        elif expression.is_Pow:
            return self._format_power(*expression.args)
        else:
            text = self._format_function(expression)
        return self.name_constant(expression, text)

    def name_constant(self, key: Any, text: str) -> str:
        """Add a constant with this text and return its name."""
        name = f"c{len(self.lines)}"
        self.lines.append(f"const double {name} = {text};")
        self._names[key] = name
        return name

    def _format_sum(self, terms: tuple[sm.Expr, ...]) -> str:
        """Return a sum in C, term by term from the left; a factor −1 becomes a minus sign."""
        text = ""
        for term in terms:
            if term.is_Mul and term.args[0] is sm.S.NegativeOne:
                text += f" - {self._name_product(term.args[1:])}"
            else:
                text += f" + {self.write_atom(term)}"
        return text.removeprefix(" + ").strip()

    def _name_product(self, factors: tuple[sm.Expr, ...]) -> str:
        """Return a name for the product of some factors, which may stand in other products too."""
        if len(factors) == 1:
            return self.write_atom(factors[0])
        known_name = self._names.get(factors)
        return known_name if known_name is not None else self.name_constant(factors, self._format_product(factors))

    def _format_product(self, factors: tuple[sm.Expr, ...]) -> str:
        """Return a product in C; negative powers become one division."""
        if factors[0] is sm.S.NegativeOne:
            return f"-{self._name_product(factors[1:])}"
        numerator_factors, denominator_factors = [], []
        for factor in factors:
            if factor.is_Pow and factor.args[1].is_Rational and factor.args[1].is_negative:
                denominator_factors.append(self._format_power(factor.args[0], -factor.args[1]))
            else:
                numerator_factors.append(self.write_atom(factor))
        numerator = "*".join(numerator_factors) or "1.0"
        if not denominator_factors:
            return numerator
        return (
            f"{numerator}/{denominator_factors[0]}"
            if len(denominator_factors) == 1
            else f"{numerator}/({'*'.join(denominator_factors)})"
        )

    def _format_power(self, base: sm.Expr, exponent: sm.Expr) -> str:
        """Return a power in C by its name, computed once."""
        if exponent is sm.S.One:
            return self.write_atom(base)
        key = ("power", base, exponent)
        known_name = self._names.get(key)
        return known_name if known_name is not None else self.name_constant(key, self._power_text(base, exponent))

    def _power_text(self, base: sm.Expr, exponent: sm.Expr) -> str:
        """Return a power in C: small whole ones as products, ½ as sqrt, negative ones as 1/x, else pow."""
        if exponent.is_Rational and exponent.is_negative:
            return f"1.0/{self._format_power(base, -exponent)}"
        if base is sm.S.Exp1:
            return f"exp({self.write_atom(exponent)})"
        base_text = self.write_atom(base)
        if exponent.is_Integer and exponent <= _MAX_MULTIPLIED_EXPONENT:
            return "*".join([base_text] * int(exponent))
        return f"sqrt({base_text})" if exponent is sm.S.Half else f"pow({base_text}, {self.write_atom(exponent)})"

    def _format_function(self, expression: sm.Expr) -> str:
        """Return a function or condition in C; arguments are computed first and enter by name."""
        if isinstance(expression, LookupTableDerivative):
            return self._table(expression)
        if isinstance(expression, sm.Piecewise):
            return self._format_choice([(value, condition) for value, condition in expression.args])
        if isinstance(expression, sm.ITE):
            condition, true_value, false_value = expression.args
            return self._format_choice([(true_value, condition), (false_value, sm.true)])
        if isinstance(expression, Boolean):
            return f"(double){self._format_condition(expression)}"
        stand_ins = {}
        arguments = []
        for argument in expression.args:
            if argument.is_number and argument.is_Atom:
                arguments.append(argument)
                continue
            named_argument = sm.Symbol(self.write_atom(argument), real=True)
            stand_ins[named_argument] = argument
            arguments.append(named_argument)
        text = self._printer.doprint(expression.func(*arguments))
        if not stand_ins:
            return _format_c_number(sm.N(expression, 17))
        if "Not supported" in text:
            raise NoCExpressionError(f"there is no C for {expression.func.__name__}")
        return " ".join(text.split())

    def _format_choice(self, branches: list[tuple[sm.Expr, Any]]) -> str:
        """Return nested conditional expressions; NaN where no condition holds."""
        text = "NAN"
        for value, condition in reversed(branches):
            value_text = self.write_atom(value)
            text = (
                value_text if condition is sm.true else f"({self._format_condition(condition)} ? {value_text} : {text})"
            )
        return text

    def _format_condition(self, condition: Any) -> str:
        """Return a condition in C, in parentheses."""
        if condition in (sm.true, sm.false):
            return "(1)" if condition is sm.true else "(0)"
        if isinstance(condition, sm.Not):
            return f"(!{self._format_condition(condition.args[0])})"
        if isinstance(condition, sm.And | sm.Or):
            joint = " && " if isinstance(condition, sm.And) else " || "
            return f"({joint.join(self._format_condition(part) for part in condition.args)})"
        if condition.is_Relational:
            left, right = (self.write_atom(part) for part in condition.args)
            return f"({left} {condition.rel_op} {right})"
        if isinstance(condition, BooleanFunction):
            return self._format_condition(condition.to_nnf())
        raise NoCExpressionError(f"there is no C for the condition {condition}")

    def _table(self, value: LookupTableDerivative) -> str:
        """Return a call that evaluates a table or its derivative; its numbers are written once."""
        table, order = value.table, value.order
        key = (table, order)
        if key not in self._tables:
            breaks, rows = _tabulate_polynomial_pieces(table.breaks, table.coefficients, order)
            name = f"table{len(self._tables)}"
            text = f"static const double {name}_breaks[] = {{{', '.join(map(repr, breaks))}}};\n"
            text += f"static const double {name}_rows[] = {{{', '.join(repr(x) for row in rows for x in row)}}};\n"
            self._tables[key] = (f"{name}_breaks, {name}_rows, {len(rows)}, {len(rows[0])}", text)
        return f"piece({self.write_atom(value.args[0])}, {self._tables[key][0]})"


def _tabulate_polynomial_pieces(
    breaks: tuple[float, ...], coefficients: tuple[tuple[float, ...], ...], order: int
) -> tuple[tuple[float, ...], list[list[float]]]:
    """Return breaks, and of each piece the coefficients of the derivative of some order, the lowest power first."""
    rows = [
        [math.perm(k, order) * row[i] for k, row in enumerate(coefficients)][order:] or [0.0]
        for i in range(len(breaks) - 1)
    ]
    return breaks, rows


def _format_c_number(value: sm.Expr) -> str:
    """Return a number in C, to the nearest double."""
    if value in (sm.nan, sm.zoo):
        return "NAN"
    if value in (sm.oo, -sm.oo):
        return "INFINITY" if value is sm.oo else "(-INFINITY)"
    text = repr(float(value))
    return f"({text})" if text.startswith("-") else text
