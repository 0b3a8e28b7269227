"""Units of measurement as exponents of base units: equations that expressions give, and their exact solution.

The exponents of a product are the sum of its factors', those of a sum's terms are equal. So each expression gives
linear equations between the unknown exponents of its symbols. They are solved by elimination in rational numbers,
equation by equation: one that contradicts those before it is left out and reported, and what stays free is known to be
free. The factor of a unit is one more exponent, of the base 10: mm is m · 10⁻³.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

import sympy as sm
from sympy.core.function import AppliedUndef
from sympy.logic.boolalg import Boolean
from sympy.physics.vector import dynamicsymbols

from mb2fmu.model.supported_functions import NoEvent, Pre, StickingSign
from mb2fmu.units import BASE_UNITS, Exponent, UnitOfMeasurement

Exponents: TypeAlias = tuple[Exponent, ...]
"""Exponents of the base units without rad, kg, m and s first; then that of 10."""

ZERO: Exponents = (0,) * len(BASE_UNITS)
STRUCTURAL_LIMIT = 24
"""Integers and fractions up to this number are factors of formulas (1/2, 3, 12), as far as nothing else is known."""
_PURE_FUNCTIONS = (
    sm.sin, sm.cos, sm.tan, sm.asin, sm.acos, sm.atan, sm.sinh, sm.cosh, sm.tanh, sm.asinh, sm.acosh, sm.atanh, sm.exp,
    sm.log, sm.erf,
)  # fmt: skip
_SCALE_ROUNDING = 1e-6  # of logarithms to base 10 that are no fractions


def make_unit_exponents(kg: int = 0, m: int = 0, s: int = 0) -> Exponents:
    """Return exponents from whole numbers."""
    return (kg, m, s, *ZERO[3:])


def read_unit_exponents(unit: UnitOfMeasurement) -> Exponents:
    """Return the exponents of a unit; radians are pure numbers."""
    scale = Fraction(math.log10(unit.factor)).limit_denominator(10**9)
    return (*(each for base, each in zip(BASE_UNITS, unit.exponents, strict=True) if base != "rad"), scale)


def are_commensurable_units(difference: Exponents) -> bool:
    """Return whether units that differ by this measure the same kind of quantity: mm and m do."""
    return not any(difference[:-1])


def _is_zero(difference: Exponents) -> bool:
    return are_commensurable_units(difference) and abs(float(difference[-1])) < _SCALE_ROUNDING


@dataclass(frozen=True, slots=True)
class ExpressionUnitWithUnknowns:
    """The unit of an expression: a constant part, and multiples of unknown units.

    Attributes:
        known: Its constant exponents.
        unknowns: Symbol → exponent of that symbol's unit.
    """

    known: Exponents = ZERO
    unknowns: Mapping[Hashable, Fraction] = field(default_factory=dict)

    def __add__(self, other: ExpressionUnitWithUnknowns) -> ExpressionUnitWithUnknowns:
        """The unit of a product."""
        unknowns = dict(self.unknowns)
        for key, factor in other.unknowns.items():
            unknowns[key] = unknowns.get(key, Fraction(0)) + factor
        known = tuple(a + b for a, b in zip(self.known, other.known, strict=True))
        return ExpressionUnitWithUnknowns(known, {key: f for key, f in unknowns.items() if f})

    def scale(self, factor: Exponent) -> ExpressionUnitWithUnknowns:
        """The unit of a power."""
        known = tuple(factor * each if each else 0 for each in self.known)
        return ExpressionUnitWithUnknowns(
            known, {key: factor * each for key, each in self.unknowns.items()} if factor else {}
        )


@dataclass(frozen=True, slots=True)
class UnitContradiction:
    """Two expressions whose units do not fit together.

    Attributes:
        place: Where the later one stands, in words.
        expression: The later one.
        difference: By which unit the two sides differ.
        earlier: Places that say otherwise.
        sides: The units of the two sides.
        symbols: In them.
        of_terms: Whether the sides are terms that are added or compared, not an expression and what its place needs.
    """

    place: str
    expression: str
    difference: Exponents
    earlier: str
    sides: tuple[ExpressionUnitWithUnknowns, ExpressionUnitWithUnknowns]
    symbols: frozenset[Hashable]
    of_terms: bool


class UnitExponentEquations:
    """Equations between units, eliminated as they come."""

    def __init__(self) -> None:
        self.rows: dict[
            Hashable, tuple[ExpressionUnitWithUnknowns, str]
        ] = {}  # pivot → its unit as a form in free unknowns, place
        self.contradictions: list[UnitContradiction] = []
        self._opaque = 0
        self._fractions: list[ExpressionUnitWithUnknowns] = []
        self._integers: list[ExpressionUnitWithUnknowns] = []
        self._contradicted: set[Hashable] = set()

    def require_equal(
        self,
        one: ExpressionUnitWithUnknowns,
        other: ExpressionUnitWithUnknowns,
        place: str = "",
        expression: sm.Basic = sm.S.Zero,
    ) -> bool:
        """Require equal units; a requirement without a place is a wish that is dropped where it contradicts.

        Returns:
            Whether it holds now.
        """
        rest = self._reduce(one + other.scale(-1))
        if not rest.unknowns:
            if place and not _is_zero(rest.known):
                self._note_contradiction(one, other, place, expression)
            return _is_zero(rest.known)
        pivot, factor = min(rest.unknowns.items(), key=lambda item: (not _is_opaque(item[0]), str(item[0])))
        others = ExpressionUnitWithUnknowns(rest.known, {key: f for key, f in rest.unknowns.items() if key != pivot})
        solved = others.scale(-1 / factor)
        for key, (form, where) in list(self.rows.items()):
            if pivot in form.unknowns:
                without = ExpressionUnitWithUnknowns(form.known, {k: f for k, f in form.unknowns.items() if k != pivot})
                self.rows[key] = (without + solved.scale(form.unknowns[pivot]), where)
        self.rows[pivot] = (solved, place)
        return True

    def _note_contradiction(
        self, one: ExpressionUnitWithUnknowns, other: ExpressionUnitWithUnknowns, place: str, expression: sm.Basic
    ) -> None:
        """Note that two units differ, unless that follows from a contradiction that is noted already."""
        symbols = frozenset(key for key in (*one.unknowns, *other.unknowns) if not _is_opaque(key))
        if symbols & self._contradicted:
            return
        self._contradicted |= symbols
        used = {self.rows[key][1] for key in {*one.unknowns, *other.unknowns} if key in self.rows}
        earlier = ", ".join(sorted(used - {place, ""})[:2])
        difference = self._reduce(one + other.scale(-1)).known
        sides = self._reduce(one), self._reduce(other)
        of_terms = bool(other.unknowns)
        found = UnitContradiction(place, _short(expression), difference, earlier, sides, symbols, of_terms)
        self.contradictions.append(found)

    def unit_of(self, symbol: Hashable) -> Exponents | None:
        """Return a symbol's exponents; None where they are free."""
        form = self._reduce(ExpressionUnitWithUnknowns(ZERO, {symbol: Fraction(1)}))
        return None if form.unknowns else form.known

    def unit_of_expression(self, expression: sm.Basic) -> Exponents | None:
        """Return an expression's exponents, as for one symbol."""
        form = self._reduce(self.form_unit(expression, ""))
        return None if form.unknowns else form.known

    def require_unit(self, expression: sm.Basic, unit: Exponents, place: str) -> None:
        """Require that an expression has a unit; a bare number has it."""
        form = self.form_unit(expression, place)
        if unit == ZERO or not _is_bare_number(form):
            self.require_equal(form, ExpressionUnitWithUnknowns(unit), place, expression)

    def form_unit(self, expression: sm.Basic, place: str) -> ExpressionUnitWithUnknowns:
        """Return the unit of an expression; its sums and functions give equations on the way."""
        if isinstance(expression, sm.Number):
            return self._number(expression)
        if isinstance(expression, sm.Symbol):
            time = expression == dynamicsymbols._t  # noqa: SLF001 - SymPy has no public name for it
            return (
                ExpressionUnitWithUnknowns(make_unit_exponents(s=1))
                if time
                else ExpressionUnitWithUnknowns(ZERO, {expression: Fraction(1)})
            )
        if isinstance(expression, sm.NumberSymbol | Boolean):  # symbols are Boolean, too: they come before
            self._conditions(expression, place)
            return ExpressionUnitWithUnknowns()
        if isinstance(expression, sm.Derivative):
            return self.form_unit(expression.expr, place) + ExpressionUnitWithUnknowns(
                make_unit_exponents(s=-expression.derivative_count)
            )
        if isinstance(expression, AppliedUndef):
            return ExpressionUnitWithUnknowns(ZERO, {expression: Fraction(1)})
        return self._composite(expression, place)

    def wish_pure_fractions(self) -> None:
        """Let 0.5 and the like be pure numbers where nothing else says their unit: Python's 1/2 is one of them."""
        for form in self._fractions:
            self.require_equal(form, ExpressionUnitWithUnknowns())

    def wish_pure_integers(self) -> None:
        """Let small integers be pure numbers where nothing else says their unit."""
        for form in self._integers:
            self.require_equal(form, ExpressionUnitWithUnknowns())

    def _number(self, number: sm.Number) -> ExpressionUnitWithUnknowns:
        """Small fractions and -1 are pure numbers; the others may carry any unit."""
        small = number.is_Rational and abs(number.p) <= STRUCTURAL_LIMIT and number.q <= STRUCTURAL_LIMIT
        if small and (abs(number) == 1 or not number.is_Integer):
            return ExpressionUnitWithUnknowns()
        form = self._any_unit()
        if small and number != 0:
            self._integers.append(form)
        elif number.is_Float and abs(24 * float(number) - round(24 * float(number))) < 1e-12:
            self._fractions.append(form)
        return form

    def _any_unit(self) -> ExpressionUnitWithUnknowns:
        """Return a unit that nothing else has."""
        self._opaque += 1
        return ExpressionUnitWithUnknowns(ZERO, {_UnknownNumberUnit(self._opaque): Fraction(1)})

    def _composite(self, expression: sm.Basic, place: str) -> ExpressionUnitWithUnknowns:
        """Return the unit of a sum, product, power or function."""
        match expression:
            case sm.Mul():
                product = ExpressionUnitWithUnknowns()
                for factor in expression.args:
                    product += self.form_unit(factor, place)
                return product
            case sm.Pow():
                return self._power(expression, place)
            case sm.Add() | sm.Max() | sm.Min():
                return self._equal_terms(expression.args, place, expression)
            case sm.Piecewise():
                for _, condition in expression.args:
                    self._conditions(condition, place)
                return self._equal_terms([value for value, _ in expression.args], place, expression)
            case sm.Abs() | sm.UnevaluatedExpr() | Pre() | NoEvent():
                return self.form_unit(expression.args[0], place)
        return self._function(expression, place)

    def _function(self, expression: sm.Basic, place: str) -> ExpressionUnitWithUnknowns:
        """Return the unit of a function: none; its arguments have none, or equal ones where only ratios count."""
        if isinstance(expression, sm.atan2):
            self._equal_terms(expression.args, place, expression)
            return ExpressionUnitWithUnknowns()
        if isinstance(expression, sm.sign | sm.Heaviside | StickingSign):
            self.form_unit(expression.args[0], place)
            return ExpressionUnitWithUnknowns()
        if not isinstance(expression, _PURE_FUNCTIONS):
            return self._any_unit()
        for argument in expression.args:
            form = self.form_unit(argument, place)
            reduced = self._reduce(form)
            # Numbers that smooth a step, tanh(20*u), carry units: only trigonometric functions say something for sure,
            # and these only of angles in degrees, or in orientations: sin(x) is the height of a wavy ground.
            angle = place.startswith("the orientation") or (
                not reduced.unknowns and are_commensurable_units(reduced.known)
            )
            sure = isinstance(expression, sm.sin | sm.cos | sm.tan) and angle and bool(form.unknowns)
            if not isinstance(argument, sm.Number):
                self.require_equal(form, ExpressionUnitWithUnknowns(), place if sure else "", expression)
        return ExpressionUnitWithUnknowns()

    def _power(self, expression: sm.Pow, place: str) -> ExpressionUnitWithUnknowns:
        """Return the unit of a power; with a symbol as exponent it may be any."""
        base, exponent = self.form_unit(expression.base, place), expression.exp
        if exponent.is_Rational:
            return base.scale(Fraction(int(exponent.p), int(exponent.q)))
        if exponent.is_Float:
            return base.scale(Fraction(float(exponent)).limit_denominator(1000))
        self.require_equal(self.form_unit(exponent, place), ExpressionUnitWithUnknowns())
        return ExpressionUnitWithUnknowns() if expression.base is sm.E else self._any_unit()

    def _equal_terms(self, terms: Iterator[sm.Basic] | list[sm.Basic] | tuple[sm.Basic, ...], place: str,
                     whole: sm.Basic) -> ExpressionUnitWithUnknowns:  # fmt: skip
        """Return the unit of terms that are added or compared: all of them have it. Bare numbers among them fit."""
        forms = [form for form in (self.form_unit(term, place) for term in terms) if not _is_bare_number(form)]
        if not forms:
            return self._any_unit()
        for other in forms[1:]:
            self.require_equal(forms[0], other, place, whole)
        return forms[0]

    def _conditions(self, condition: sm.Basic, place: str) -> None:
        """Both sides of a comparison have one unit."""
        for each in condition.atoms(sm.core.relational.Relational):
            self._equal_terms(each.args, place, each)

    def _reduce(self, form: ExpressionUnitWithUnknowns) -> ExpressionUnitWithUnknowns:
        """Return a form in free unknowns alone."""
        result = ExpressionUnitWithUnknowns(form.known)
        for key, factor in form.unknowns.items():
            known = self.rows.get(key)
            result += (ExpressionUnitWithUnknowns(ZERO, {key: Fraction(1)}) if known is None else known[0]).scale(
                factor
            )
        return result


@dataclass(frozen=True, slots=True)
class _UnknownNumberUnit:
    """The unknown unit of a number."""

    number: int


def _is_bare_number(form: ExpressionUnitWithUnknowns) -> bool:
    """Return whether a form has no symbol in it: numbers, and functions of what has no unit, stand for quantities."""
    return form.known == ZERO and all(map(_is_opaque, form.unknowns))


def _is_opaque(key: Hashable) -> bool:
    return isinstance(key, _UnknownNumberUnit)


def _short(expression: sm.Basic) -> str:
    """Return an expression's text, cut to what fits into a line."""
    text = str(expression).replace("(t)", "")
    return text if len(text) <= 70 else f"{text[:67]}…"
