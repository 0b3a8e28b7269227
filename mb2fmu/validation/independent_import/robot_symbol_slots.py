"""Numbers for a robot's expressions of events, gaps and rows: motions of links are those of the independent import.

:class:`ImportedEventComparison` asks the model's own expressions for numbers and moves them along a motion. Of a
model in SymPy it asks ``SympySourceSymbolSlots`` and ``SympySourceKinematicsEvaluator``; of a robot the two classes
here, which offer the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import sympy as sm
from sympy.core.function import AppliedUndef
from sympy.physics.vector import dynamicsymbols

from mb2fmu.mechanics.mechanism.records.symbol_replacement_and_derivatives import replace_symbols
from mb2fmu.model.checked_model import CheckedModel
from mb2fmu.validation.evaluation_plans.lambdified_scalar_functions import compile_scalar_function
from mb2fmu.validation.independent_import.independent_urdf_equations import Array
from mb2fmu.validation.source_checks.source_symbol_slots import SympySourceEvaluationError, make_unused_symbol

Values = Sequence[float]


class RobotSymbolSlots:
    """Gives every symbol of a robot's expressions a slot in one list of values.

    The slots: those of a point (time, free parameters, coordinates, speeds, inputs), then q', then auxiliary states.

    Args:
        definition: The checked model.
        point_symbols: Symbols of a point's values, in their order; time first.
        motion_symbols: Functions of time that name positions and velocities of links → that of the rate, if any.
        evaluate_links: Values of a point → values of ``motion_symbols``.
    """

    def __init__(
        self,
        definition: CheckedModel,
        point_symbols: Sequence[sm.Expr],
        motion_symbols: Mapping[sm.Expr, sm.Expr | None],
        evaluate_links: Callable[[Values], Array],
    ) -> None:
        self.t = dynamicsymbols._t  # noqa: SLF001 - SymPy has no public name for it
        self.q = tuple(item.symbol for item in definition.coordinates)
        self.u = tuple(item.symbol for item in definition.speeds)
        self.z = tuple(item.symbol for item in definition.auxiliary_states)
        self.r = tuple(item.symbol for item in definition.inputs)
        rates = [q.diff(self.t) for q in self.q]
        symbols = [*point_symbols, *rates, *self.z]
        self.slot = {symbol: k for k, symbol in enumerate(symbols)}
        self._point_size, self._evaluate_links = len(point_symbols), evaluate_links
        self._slot_symbols = [make_unused_symbol(k) for k in range(len(symbols))]
        self._link_symbols = [make_unused_symbol(k, purpose="link") for k in range(len(motion_symbols))]
        self._replacements: dict[sm.Basic, sm.Expr] = dict(zip(symbols, self._slot_symbols, strict=True))
        self._replacements |= zip(motion_symbols, self._link_symbols, strict=True)
        self._replacements |= {
            symbol.diff(self.t): self._replacements[rate] for symbol, rate in motion_symbols.items() if rate is not None
        }
        self._calculated = [(p.symbol, sm.sympify(p.value)) for p in definition.parameters if p.calculated]
        for symbol, value in self._calculated:
            self._replacements[symbol] = replace_symbols(value, self._replacements)
        self.z_dot = self.compile_function([state.derivative for state in definition.auxiliary_states])

    def compile_function(
        self, expressions: Sequence[sm.Expr], further_symbols: Sequence[sm.Symbol] = ()
    ) -> Callable[[Values], list[float]]:
        """Return a function of the slots' values, then of ``further_symbols``.

        Raises:
            SympySourceEvaluationError: If an expression contains what has no number here.
        """
        translated = [replace_symbols(sm.sympify(expression), self._replacements) for expression in expressions]
        unknown = set().union(*(each.atoms(AppliedUndef, sm.Derivative) for each in translated))
        if unknown:
            raise SympySourceEvaluationError(f"{', '.join(sorted(map(str, unknown)))} has no number")
        symbols = [*self._slot_symbols, *further_symbols, *self._link_symbols]
        compiled = compile_scalar_function(symbols, translated)
        links = self._link_symbols and not set().union(*(each.free_symbols for each in translated)).isdisjoint(
            self._link_symbols
        )

        def evaluate(values: Values) -> list[float]:
            """Return the numbers; links are asked where they stand in an expression."""
            motion = self._evaluate_links(values[: self._point_size]) if links else [0.0] * len(self._link_symbols)
            return [float(value) for value in compiled(*values, *motion)]

        return evaluate


class RobotCoordinateRates:
    """q' of a robot from its speeds, in the slots of :class:`RobotSymbolSlots`.

    Args:
        definition: The checked model.
        symbols: Slots.
        rates_of_coordinates: Values of a point → q' by the name of the coordinate.
    """

    def __init__(
        self,
        definition: CheckedModel,
        symbols: RobotSymbolSlots,
        rates_of_coordinates: Callable[[list[float]], Mapping[str, float]],
    ) -> None:
        self.rates = [symbols.slot[q.diff(symbols.t)] for q in symbols.q]
        self._names = [item.name for item in definition.coordinates]
        self._rates_of_coordinates = rates_of_coordinates

    def with_rates(self, values: Sequence[float]) -> list[float]:
        """Return the values with q' as it follows from q and u."""
        changed = list(values)
        rates = self._rates_of_coordinates(changed)
        for k, name in zip(self.rates, self._names, strict=True):
            changed[k] = rates[name]
        return changed
