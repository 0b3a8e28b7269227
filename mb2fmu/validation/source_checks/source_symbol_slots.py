"""Numbers for the user's expressions: functions of time, their derivatives, and parameters have one slot each."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import sympy as sm
from sympy.core.function import AppliedUndef
from sympy.physics.vector import dynamicsymbols
from sympy.printing.numpy import NumPyPrinter

from mb2fmu.mechanics.mechanism.records.symbol_replacement_and_derivatives import replace_symbols
from mb2fmu.model.checked_model import CheckedModel
from mb2fmu.model.expression_traversal import (
    iterate_distinct_subexpressions,
    lambdify_with_shared_parts,
    list_free_symbols,
    rename_symbols,
)
from mb2fmu.model.numpy_lambdify import NUMPY_FUNCTIONS
from mb2fmu.model.supported_functions import LookupTableDerivative
from mb2fmu.validation.evaluation_plans.lambdified_scalar_functions import SCALAR_FUNCTIONS, compile_scalar_function
from mb2fmu.validation.source_checks.source_objects import SympySourceObjects

Floats = npt.NDArray[np.float64]

# Not analytic, or unknown to NumPy with complex arguments: nothing of it may be differentiated by a complex step.
_NO_COMPLEX_STEP = (
    sm.Abs, sm.sign, sm.Heaviside, sm.Max, sm.Min, sm.Piecewise, sm.atan2, sm.floor, sm.ceiling, sm.re, sm.im,
    sm.conjugate, sm.Mod,
)  # fmt: skip


class SympySourceEvaluationError(Exception):
    """The user's objects do not give numbers in this way; the text says why."""


def _to_real(value: complex) -> float:
    """Return a number as a float: of a power of a negative number that is multiplied by 0, the real part; else NaN."""
    if isinstance(value, complex):
        return value.real if value.imag == 0.0 else math.nan
    return float(value)


def make_unused_symbol(number: int, purpose: str = "slot") -> sm.Symbol:
    """Return a symbol that no model has."""
    return sm.Symbol(f"mb2fmu_own_{purpose}_{number}")


class SympySourceSymbolSlots:
    """Gives every symbol of the user's expressions a slot in one list of values.

    The slots, in this order: t, q, q' (as far as it is no speed), u, z, inputs, all parameters. Auxiliary speeds and
    unknown constraint forces are zero. A rate of an input that is no input itself is zero: the input is held. A plain
    symbol that nothing declares (the mass of a ground body) has an arbitrary number: it must not matter. z' is what the
    model gives it.

    Args:
        definition: Names, symbols and parameters.
        parts: The source objects.
    """

    def __init__(self, definition: CheckedModel, parts: SympySourceObjects) -> None:
        t = dynamicsymbols._t  # noqa: SLF001  SymPy's time
        self.t = t
        rates = [qi.diff(t) for qi in parts.q]
        self.q, self.u = parts.q, parts.u
        self.rates = tuple(rate for rate in rates if rate not in parts.u)
        self.z = tuple(state.symbol for state in definition.auxiliary_states)
        self.r = tuple(record.symbol for record in definition.inputs)
        self.p = tuple(p.symbol for p in definition.parameters if not p.calculated)
        self.calculated = tuple(p.symbol for p in definition.parameters if p.calculated)
        symbols = [t, *self.q, *self.rates, *self.u, *self.z, *self.r, *self.p, *self.calculated]
        self.slot = {symbol: k for k, symbol in enumerate(symbols)}
        # No Dummies: lambdify would replace them once more, in every expression.
        self._slot_symbols = [make_unused_symbol(k) for k in range(len(symbols))]
        self._known_symbols = set(self._slot_symbols)
        self._replacements: dict[sm.Basic, sm.Expr] = dict(zip(symbols, self._slot_symbols, strict=True))
        zero_symbols = [*parts.auxiliary, *(force.symbol for force in definition.constraint_forces)]
        self._replacements |= dict.fromkeys([*zero_symbols, *(s.diff(t) for s in zero_symbols)], sm.S.Zero)
        self._replacements |= {r.diff(t): sm.S.Zero for r in self.r if r.diff(t) not in self.slot}
        self._add_state_rates(definition)
        values = [(self.slot[p.symbol], sm.sympify(p.value)) for p in definition.parameters if p.calculated]
        self._calculate = [(k, self.compile_function([value])) for k, value in values]

    def _add_state_rates(self, definition: CheckedModel) -> None:
        """Add z' where the mechanics contain it, as the model gives it; z'' is its derivative."""
        declared_rates = {state.symbol: sm.sympify(state.derivative) for state in definition.auxiliary_states}
        self._replacements |= {z.diff(self.t): self._translate(rate) for z, rate in declared_rates.items()}
        for z, rate in declared_rates.items():
            try:
                self._replacements[z.diff(self.t, 2)] = self._translate(rate.diff(self.t))
            except SympySourceEvaluationError:
                continue  # q'' would be needed: if it stands in the mechanics, the error is raised there
        self.z_dot = self.compile_function(list(declared_rates.values()))

    def compile_function(
        self, expressions: Sequence[sm.Expr], further_symbols: Sequence[sm.Symbol] = ()
    ) -> Callable[[Sequence[float]], list[float]]:
        """Return a function of the slots' values, then of ``further_symbols``, on floats; nothing is expanded."""
        self._slot_symbols += further_symbols
        self._known_symbols.update(further_symbols)
        try:
            translated = [self._translate(expression) for expression in expressions]
            compiled = compile_scalar_function(self._slot_symbols, translated)
        finally:  # also where something has no number: the next function would have them twice
            del self._slot_symbols[len(self.slot) :]
            self._known_symbols.difference_update(further_symbols)
        return lambda values: list(map(_to_real, compiled(*values)))

    def compile_array_function(
        self, expressions: Sequence[sm.Expr], *, complex_step: bool = True
    ) -> Callable[[Sequence[Any]], list[Any]]:
        """Return a function of the slots' values on arrays, complex ones too for derivatives by a ``complex_step``.

        Raises:
            SympySourceEvaluationError: If something in the expressions has no derivative by a complex step.
        """
        translated = [self._translate(expression) for expression in expressions]
        functions = set().union(*(e.atoms(sm.Function, sm.Piecewise) for e in translated))
        nonanalytic_names = {type(f).__name__ for f in functions if complex_step and isinstance(f, _NO_COMPLEX_STEP)}
        nonanalytic_names |= {type(f).__name__ for f in functions if isinstance(f, LookupTableDerivative)}
        if nonanalytic_names:
            raise SympySourceEvaluationError(
                f"the kinematics have {', '.join(sorted(nonanalytic_names))} in them, which has no complex derivative"
            )
        printer = NumPyPrinter(
            {"fully_qualified_modules": False, "inline": True, "allow_unknown_functions": True, "order": "none"}
        )
        compiled = lambdify_with_shared_parts(
            self._slot_symbols, translated, functions=NUMPY_FUNCTIONS, modules=[dict(SCALAR_FUNCTIONS)], printer=printer
        )
        return lambda values: list(compiled(*values))

    def add_acceleration_symbols(self, dots: Mapping[sm.Expr, sm.Symbol], second: Mapping[sm.Expr, sm.Symbol]) -> None:
        """Give u' and q'' stand-ins, by speed and coordinate; functions take them as ``more``."""
        self._replacements |= {u.diff(self.t): dummy for u, dummy in dots.items()}
        self._replacements |= {q.diff(self.t, 2): dummy for q, dummy in second.items()}

    def complete_values(self, values: list[float]) -> list[float]:
        """Return the values with those of calculated parameters, in order."""
        for k, value in self._calculate:
            values[k] = value(values)[0]
        return values

    def _translate(self, expression: Any) -> sm.Expr:
        """Return an expression in the slots' stand-ins; undeclared symbols get fixed arbitrary numbers."""
        expression = sm.sympify(expression)
        if expression.is_Number:
            return expression
        if self._has_stand_ins_only(expression):
            return rename_symbols([expression], self._replacements)[0]
        plain = replace_symbols(expression, self._replacements)
        untranslated = _list_functions_of_time(plain)
        if any(isinstance(part, sm.Derivative) for part in untranslated):
            plain = replace_symbols(expression.doit(), self._replacements)
            untranslated = _list_functions_of_time(plain)
        if untranslated:
            raise SympySourceEvaluationError(f"{', '.join(sorted(map(str, untranslated)))} has no number")
        unknown = sorted(list_free_symbols([plain]) - self._known_symbols, key=str)
        for symbol in unknown:
            self._replacements.setdefault(symbol, sm.Float(0.7 + 0.01 * (len(self._replacements) % 41)))
        return replace_symbols(plain, {symbol: self._replacements[symbol] for symbol in unknown}) if unknown else plain

    def _has_stand_ins_only(self, expression: sm.Expr) -> bool:
        """Return whether a symbol stands in for each symbol and function of time: then no sum or product changes."""
        for part in iterate_distinct_subexpressions([expression]):
            stand_in = self._replacements.get(part)
            if stand_in is None and isinstance(part, sm.Symbol | AppliedUndef | sm.Derivative):
                return False
            if stand_in is not None and not stand_in.is_Symbol:
                return False
        return True


def _list_functions_of_time(expression: sm.Expr) -> list[sm.Basic]:
    """Return the functions of time and derivatives in an expression."""
    parts = iterate_distinct_subexpressions([expression])
    return [part for part in parts if isinstance(part, AppliedUndef | sm.Derivative)]
