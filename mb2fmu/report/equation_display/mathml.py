"""SymPy expressions as presentation MathML, which browsers show without script or network.

SymPy has a MathML printer too; it leaves names unescaped, writes entities that are not XML, and prints neither cases
nor derivative dots, so the few node types that mechanics need are printed here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from html import unescape
from types import MappingProxyType
from typing import Any

import sympy as sm
from markupsafe import escape
from sympy.core.relational import Relational
from sympy.logic.boolalg import BooleanFunction

from mb2fmu.model.scalar_operation_table import OPERATIONS

_GREEK_LETTER_NAMES = (
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu", "nu", "xi",
    "omicron", "pi", "rho", "", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega",
)  # fmt: skip
_GREEK_LETTERS = {name: chr(0x3B1 + k) for k, name in enumerate(_GREEK_LETTER_NAMES) if name}
_GREEK_LETTERS |= {name.capitalize(): chr(ord(letter) - 32) for name, letter in _GREEK_LETTERS.items()} | {"lamda": "λ"}
_NAME_PART_PATTERN = re.compile(r"([A-Za-z]+|\d+|[^A-Za-z\d]+)")
_THIN_SPACE = '<mspace width="0.16em"/>'
_FUNCTION_APPLICATION = "<mo>&#x2061;</mo>"
_RELATION_SIGNS = {"==": "=", "!=": "≠", "<": "<", "<=": "≤", ">": ">", ">=": "≥"}
_FUNCTION_NOTATIONS = {row.sympy: row.notation for row in OPERATIONS.values() if row.sympy and row.notation}

# Binding strengths: what binds weaker than its place requires is put into parentheses.
_SUM, _PRODUCT, _POWER, _ATOM = range(4)
_PrintedFormula = tuple[str, int]
_ANGLE_FUNCTIONS = (sm.sin, sm.cos, sm.tan)
_TAG_PATTERN = re.compile("<[^>]*>")
_REMEMBERED = 20_000
"""Parts and texts whose form is remembered: a formula is printed whole and in pieces, and in two pages."""


@dataclass(frozen=True, slots=True)
class MathMLPrinter:
    """Prints expressions.

    Attributes:
        symbols: Symbol → MathML, where a symbol is not to be printed by its name.
    """

    symbols: Mapping[Any, str] = field(default_factory=lambda: MappingProxyType({}))
    _printed: dict[Any, _PrintedFormula] = field(default_factory=dict, init=False, repr=False, compare=False)

    def expression(self, expression: Any) -> str:
        """Return a scalar expression as one ``mrow``."""
        return f"<mrow>{self._print(sm.sympify(expression))[0]}</mrow>"

    def terms(self, expression: Any) -> list[str]:
        """Return the terms of a sum, each with its sign (the first one without a plus)."""
        return [sign + self._within(term, _PRODUCT) for sign, term in _signed_terms(expression)]

    def pieces(self, expression: Any, widest: int) -> list[str]:
        """Return an expression in pieces between which a line may be broken.

        Sums are broken between their terms, within brackets too; a fraction that is too wide becomes a quotient in one
        line, a root a sign before brackets.

        Args:
            expression: A scalar.
            widest: Letters and signs that a piece should not have more of; names and tables are never broken.
        """
        if not expression.is_Add:
            return self._broken(expression, widest)
        parts = [(sign, self._broken(term, widest)) for sign, term in _signed_terms(expression)]
        return [piece for sign, term in parts for piece in (sign + term[0], *term[1:])]

    def _broken(self, e: Any, widest: int) -> list[str]:
        """Return pieces of a product, fraction or power; sums stand in brackets."""
        whole = self._within(e, _PRODUCT)
        if estimate_formula_width(whole) <= widest:
            return [whole]
        if e.as_coeff_Mul()[0].is_negative:
            first, *others = self._broken(-e, widest)
            return [f"<mo>−</mo>{first}", *others]
        over, under = _split_fraction(e)
        if not under and len(over) == 1:
            return self._broken_factor(over[0], widest) or [whole]
        parts = self._broken_factors(over or [sm.Integer(1)], widest)
        if not under:
            return parts
        below = self._broken_factors(under, widest)
        first, *others = _bracket_pieces(below) if len(under) > 1 else below
        return [*parts, f"<mo>/</mo>{first}", *others]

    def _broken_factors(self, factors: Sequence[Any], widest: int) -> list[str]:
        """Return pieces of factors side by side."""
        found: list[str] = []
        for factor in _sort_factors(factors):
            whole = self._within(factor, _PRODUCT)
            parts = (self._broken_factor(factor, widest) if estimate_formula_width(whole) > widest else []) or [whole]
            sign = "<mo>·</mo>" if found and factor.is_number else ""
            found += [sign + parts[0], *parts[1:]]
        return found

    def _broken_factor(self, e: Any, widest: int) -> list[str]:
        """Return pieces of one factor, in brackets; none if its kind is not broken."""
        if e.is_Add:
            return _bracket_pieces(self.pieces(e, widest))
        base, exponent = e.as_base_exp()
        if e.is_Pow and exponent == sm.Rational(1, 2):
            return _bracket_pieces(self.pieces(base, widest), before="<mo>√</mo>")
        if e.is_Pow and exponent != 1:
            inner = self.pieces(base, widest)
            return _bracket_pieces(inner, after=f"<mrow>{self._print(exponent)[0]}</mrow>")
        if type(e) in _ANGLE_FUNCTIONS:
            return _bracket_pieces(
                self.pieces(e.args[0], widest), before=_format_function_name(e.func.__name__) + _FUNCTION_APPLICATION
            )
        return []

    def matrix(self, entries: list[list[str]]) -> str:
        """Return a table of MathML entries; the style sheet draws its brackets, since fonts often cannot."""
        rows = "".join(f"<mtr>{''.join(f'<mtd>{entry}</mtd>' for entry in row)}</mtr>" for row in entries)
        return f'<mtable class="matrix">{rows}</mtable>'

    def _print(self, e: Any) -> _PrintedFormula:
        """Print an expression by the printer of the first of its classes that has one; equal parts once."""
        if e in self.symbols:
            return self.symbols[e], _ATOM
        if e not in self._printed:
            kind = next((kind for kind in type(e).__mro__ if kind in _PRINTERS_BY_CLASS), None)
            self._printed[e] = (
                _PRINTERS_BY_CLASS[kind](self, e) if kind else (f"<mtext>{escape(str(e))}</mtext>", _ATOM)
            )
        return self._printed[e]

    def _within(self, e: Any, at_least: int) -> str:
        """Return an expression, in brackets if it binds weaker than its place demands."""
        text, strength = self._print(e)
        return text if strength >= at_least else _parenthesize(text)

    def _number(self, e: Any) -> _PrintedFormula:
        """Print a number: integer, fraction, or decimal with a power of ten."""
        if not e.is_finite:
            return f"<mtext>{escape(str(e))}</mtext>", _ATOM
        if e < 0:
            return f"<mo>−</mo>{self._print(-e)[0]}", _SUM
        if e.is_Rational and not e.is_Integer:
            return f"<mfrac><mn>{e.p}</mn><mn>{e.q}</mn></mfrac>", _PRODUCT
        mantissa, _, exponent = (str(e) if e.is_Integer else repr(float(e))).partition("e")
        mantissa = mantissa.removesuffix(".0")
        if not exponent:
            return f"<mn>{mantissa}</mn>", _ATOM
        ten = f"<msup><mn>10</mn>{_format_integer(int(exponent))}</msup>"
        return (ten, _ATOM) if mantissa == "1" else (f"<mn>{mantissa}</mn><mo>·</mo>{ten}", _PRODUCT)

    def _symbol(self, e: Any) -> _PrintedFormula:
        """Return a symbol: letter, index and dots."""
        return format_mathml_identifier(str(e.name)), _ATOM

    def _sum(self, e: Any) -> _PrintedFormula:
        """Return a sum, term by term."""
        return "".join(self.terms(e)), _SUM

    def _product(self, e: Any) -> _PrintedFormula:
        """Print a product: a sign before it, factors with negative exponents under a fraction bar."""
        if e.as_coeff_Mul()[0].is_negative:
            return f"<mo>−</mo>{self._within(-e, _PRODUCT)}", _SUM
        over, under = _split_fraction(e)
        if not under:
            return self._factors(over), _PRODUCT
        return f"<mfrac>{self._row(over)}{self._row(under)}</mfrac>", _PRODUCT

    def _row(self, factors: Sequence[Any]) -> str:
        """Return a product as one row; 1 if it has no factors."""
        if not factors:
            return "<mn>1</mn>"
        return f"<mrow>{self._print(factors[0])[0] if len(factors) == 1 else self._factors(factors)}</mrow>"

    def _factors(self, factors: Sequence[Any]) -> str:
        """Return factors side by side, angle functions last, with signs between numbers."""
        text = ""
        for k, factor in enumerate(_sort_factors(factors)):
            between = "" if k == 0 else "<mo>·</mo>" if factor.is_number else _THIN_SPACE
            text += between + self._within(factor, _PRODUCT)
        return text

    def _power(self, e: Any) -> _PrintedFormula:
        """Print a power: a fraction, a root, a power of sin, cos or tan, or a raised base."""
        base, exponent = e.as_base_exp()
        if exponent.is_Rational and exponent.is_negative:
            return f"<mfrac><mn>1</mn>{self._row([base**-exponent])}</mfrac>", _PRODUCT
        if exponent == sm.Rational(1, 2):
            return f"<msqrt>{self._print(base)[0]}</msqrt>", _ATOM
        raised = f"<mrow>{self._print(exponent)[0]}</mrow>"
        if isinstance(base, sm.Function) and base.func in _ANGLE_FUNCTIONS and exponent.is_Integer:
            name = f"<msup><mi>{base.func.__name__}</mi>{raised}</msup>"
            return f"{name}{_FUNCTION_APPLICATION}{self._arguments(base)}", _POWER
        return f"<msup><mrow>{self._within(base, _ATOM)}</mrow>{raised}</msup>", _POWER

    def _function(self, e: Any) -> _PrintedFormula:
        """Return a function of its arguments; one of time alone is its name."""
        name = str(e.func.__name__)
        if not e.args or e.args == (sm.Symbol("t"),):
            return format_mathml_identifier(name), _ATOM
        return f"{_format_function_name(name)}{_FUNCTION_APPLICATION}{self._arguments(e)}", _POWER

    def _extreme(self, e: Any) -> _PrintedFormula:
        """Return a maximum or minimum, whose arguments have no order."""
        arguments = (self._print(argument)[0] for argument in sorted(e.args, key=sm.default_sort_key))
        return (
            f"<mi>{e.func.__name__.lower()}</mi>{_FUNCTION_APPLICATION}{_parenthesize('<mo>,</mo>'.join(arguments))}",
            _POWER,
        )

    def _arguments(self, e: Any) -> str:
        """Return arguments; a single name stands without parentheses: sin θ."""
        if len(e.args) == 1 and e.args[0].is_Symbol and e.func in _ANGLE_FUNCTIONS:
            return _THIN_SPACE + self._print(e.args[0])[0]
        return _parenthesize("<mo>,</mo>".join(self._print(argument)[0] for argument in e.args))

    def _absolute(self, e: Any) -> _PrintedFormula:
        """Return |x|."""
        return f"<mrow><mo>|</mo>{self._print(e.args[0])[0]}<mo>|</mo></mrow>", _ATOM

    def _exponential(self, e: Any) -> _PrintedFormula:
        """Return e to a power."""
        return f"<msup><mi>e</mi><mrow>{self._print(e.args[0])[0]}</mrow></msup>", _POWER

    def _cases(self, e: Any) -> _PrintedFormula:
        """Print the cases of a Piecewise below each other, each with its condition."""
        rows = ""
        for value, condition in e.args:
            when = (
                "<mtext>otherwise</mtext>" if condition == sm.true else f"<mtext>if </mtext>{self._print(condition)[0]}"
            )
            rows += f"<mtr><mtd>{self._print(value)[0]}</mtd><mtd>{when}</mtd></mtr>"
        return f'<mrow><mo>{{</mo><mtable columnalign="left">{rows}</mtable></mrow>', _ATOM

    def _relation(self, e: Any) -> _PrintedFormula:
        """Return left side, sign and right side of a comparison."""
        sign = escape(_RELATION_SIGNS.get(e.rel_op, e.rel_op))
        return f"{self._print(e.lhs)[0]}<mo>{sign}</mo>{self._print(e.rhs)[0]}", _SUM

    def _logic(self, e: Any) -> _PrintedFormula:
        """Print a negation, or conditions joined by their sign."""
        if isinstance(e, sm.Not):
            return f"<mo>¬</mo>{self._within(e.args[0], _ATOM)}", _POWER
        sign = {"And": "∧", "Or": "∨"}.get(e.func.__name__, e.func.__name__)
        parts = sorted(e.args, key=sm.default_sort_key)
        return f"<mo>{escape(sign)}</mo>".join(self._within(argument, _ATOM) for argument in parts), _SUM

    def _derivative(self, e: Any) -> _PrintedFormula:
        """Return an expression with one to three dots."""
        return _add_dots(self._within(e.expr, _ATOM), min(int(e.derivative_count), 3)), _ATOM


@lru_cache(_REMEMBERED)
def estimate_formula_width(printed: str) -> int:
    """Return the number of letters and signs of a formula, roughly its width in half em."""
    return len(unescape(_TAG_PATTERN.sub("", printed)))


@lru_cache(_REMEMBERED)
def _signed_terms(expression: Any) -> tuple[tuple[str, Any], ...]:
    """Return terms of a sum without signs, and the signs as MathML: none before a positive first one."""
    found = []
    for k, term in enumerate(expression.as_ordered_terms()):
        negative = bool(term.as_coeff_Mul()[0].is_negative)
        # In front of a piece an operator would pass for a sign and lose its space: form="infix" keeps it.
        infix = f'<mo form="infix">{"−" if negative else "+"}</mo>'
        found.append((infix if k else "<mo>−</mo>" if negative else "", -term if negative else term))
    return tuple(found)


@lru_cache(_REMEMBERED)
def _split_fraction(e: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the factors over and under the bar of a product or power with non-negative coefficient."""
    coefficient, rest = e.as_coeff_Mul()
    over: list[Any] = []
    under: list[Any] = []
    if coefficient.is_Rational:
        over += [] if coefficient.p == 1 else [sm.Integer(coefficient.p)]
        under += [] if coefficient.q == 1 else [sm.Integer(coefficient.q)]
    else:
        over.append(coefficient)
    for factor in rest.as_ordered_factors():
        base, exponent = factor.as_base_exp()
        if exponent.is_Rational and exponent.is_negative:
            under.append(base**-exponent)
        else:
            over.append(factor)
    return tuple(over), tuple(under)


def _sort_factors(factors: Sequence[Any]) -> list[Any]:
    """Return factors in writing order: angle functions last."""
    return sorted(factors, key=_is_with_angle_function)


@lru_cache(_REMEMBERED)
def _is_with_angle_function(factor: Any) -> bool:
    """Return whether a factor, which is no sum, has an angle function in it."""
    return not factor.is_Add and bool(factor.has(*_ANGLE_FUNCTIONS))


def _bracket_pieces(pieces: list[str], *, before: str = "", after: str = "") -> list[str]:
    """Return pieces within brackets that do not grow; ``after`` is the exponent of the closing one."""
    closing = '<mo stretchy="false">)</mo>'
    found = [f'{before}<mo stretchy="false">(</mo>{pieces[0]}', *pieces[1:]]
    found[-1] += f"<msup>{closing}{after}</msup>" if after else closing
    return found


def format_mathml_identifier(name: str, dots: int = 0) -> str:
    """Return a name in mathematical notation, with ``dots`` over it for derivatives by time (at most three).

    ``theta_1`` becomes θ with index 1, ``q12`` q with index 12, ``k_knee`` k with index knee.
    """
    stem, _, tail = name.strip("_").partition("_")
    split = re.fullmatch(r"([A-Za-z]+)(\d+)", stem)
    if split and (len(split[1]) == 1 or split[1] in _GREEK_LETTERS):
        stem, tail = split[1], f"{split[2]} {tail}".strip()
    tail = tail.replace("_", " ").strip()
    if not stem or not tail:
        return _add_dots(f"<mi>{_replace_greek_names(stem or name)}</mi>", dots)
    return f"<msub>{_add_dots(f'<mi>{_replace_greek_names(stem)}</mi>', dots)}{_format_subscript(tail)}</msub>"


def _add_dots(text: str, dots: int) -> str:
    """Return an expression with so many dots above it."""
    return f'<mover accent="true">{text}<mo stretchy="false">{"˙¨⃛"[dots - 1]}</mo></mover>' if dots else text


def _format_subscript(tail: str) -> str:
    """Return a subscript: a number, or upright words."""
    if tail.isdigit():
        return f"<mn>{tail}</mn>"
    return f'<mtext class="index">{" ".join(_replace_greek_names(part) for part in tail.split(" "))}</mtext>'


def _replace_greek_names(name: str) -> str:
    """Return a name with Greek letters, part by part; all else is escaped."""
    return "".join(_GREEK_LETTERS.get(part) or str(escape(part)) for part in _NAME_PART_PATTERN.findall(name))


def _format_function_name(name: str) -> str:
    """Return a function's name, the usual one where SymPy's differs."""
    known = _FUNCTION_NOTATIONS.get(name, name)
    return f"<mi>{escape(known)}</mi>"


def _format_integer(value: int) -> str:
    """Return a whole number with a proper minus sign."""
    return f"<mn>{value}</mn>" if value >= 0 else f"<mrow><mo>−</mo><mn>{-value}</mn></mrow>"


def _parenthesize(text: str) -> str:
    """Return an expression in round brackets."""
    return f"<mrow><mo>(</mo>{text}<mo>)</mo></mrow>"


_PRINTERS_BY_CLASS: dict[type, Callable[[MathMLPrinter, Any], _PrintedFormula]] = {
    sm.Number: MathMLPrinter._number,  # noqa: SLF001 (the table belongs to the class)
    sm.Symbol: MathMLPrinter._symbol,  # noqa: SLF001
    sm.Add: MathMLPrinter._sum,  # noqa: SLF001
    sm.Mul: MathMLPrinter._product,  # noqa: SLF001
    sm.Pow: MathMLPrinter._power,  # noqa: SLF001
    sm.Function: MathMLPrinter._function,  # noqa: SLF001
    sm.Max: MathMLPrinter._extreme,  # noqa: SLF001
    sm.Min: MathMLPrinter._extreme,  # noqa: SLF001
    sm.Abs: MathMLPrinter._absolute,  # noqa: SLF001
    sm.exp: MathMLPrinter._exponential,  # noqa: SLF001
    sm.Piecewise: MathMLPrinter._cases,  # noqa: SLF001
    Relational: MathMLPrinter._relation,  # noqa: SLF001
    BooleanFunction: MathMLPrinter._logic,  # noqa: SLF001
    sm.Derivative: MathMLPrinter._derivative,  # noqa: SLF001
    type(sm.pi): lambda _printer, _constant: ("<mi>π</mi>", _ATOM),
}
