"""Decide what each symbol of a script's mechanics is, and with which value, unit and start."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any

import sympy as sm
from sympy.core.function import AppliedUndef
from sympy.physics.mechanics import LagrangesMethod
from sympy.physics.vector import dynamicsymbols

from mb2fmu.model.checks.expression_symbols import collect_expression_symbols
from mb2fmu.model.checks.mechanics_expressions import MechanicsExpression, collect_mechanics_expressions
from mb2fmu.model.quantity_declarations import format_symbol_as_word
from mb2fmu.model.script_import.integrator_call_recording import ScriptIntegratorCallRecord
from mb2fmu.model.script_import.mechanics_from_script import list_mechanics_symbols
from mb2fmu.model.script_import.observed_script_run import ScriptRun
from mb2fmu.model.script_import.observed_script_values import ORIGINS, Origin
from mb2fmu.model.sources import mechanics_source
from mb2fmu.pipeline.adoption.script_value_selection import ScriptNumbersBySymbol
from mb2fmu.pipeline.adoption.unit_inference import InferredUnits, infer_units

_START_ORIGINS: tuple[Origin, ...] = ("integration", "package", "function call", "dictionary")
"""Origins of start values: substitutions put coordinates to zero where they linearize."""
_VALUE_ORIGINS = tuple(origin for origin in ORIGINS if origin != "bounds")
_LASTING_ORIGINS = tuple(origin for origin in _VALUE_ORIGINS if origin not in {"integration", "function call"})
"""Origins of values that hold at all times, unless they were found in the integrand, evaluated at the start."""
_MIN_SAMPLES = 16
"""Instants of the integration from which a value is taken for one that stays."""
_CHANGES = "it changes later"
_NOT_KNOWN = "how it goes on is not known"
_START_COMMENT = "its value as the script's integration begins: {}"
_BOUNDS_COMMENT = "the middle of its bounds in the script"
_NO_EFFECT_COMMENT = "no value in the script: it does not enter the equations of motion"
_FORCE_NAME = re.compile(r"(F|f|T|tau|Tau|u|U|V|M|P|torque|force|thrust)(_?[A-Za-z]{0,8})?_?\d*")


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptedQuantity:
    """One line of the model file.

    Attributes:
        kind: The method of ``Model`` that declares it.
        symbol: Symbol of the mechanics.
        value: Number, expression of other symbols, or None where the script says nothing of a parameter.
        unit: In Modelica's notation.
        is_guess: Whether the start value may be solved for.
        rates: Whether an input brings its rates as inputs.
        is_assumed: Whether the start value is not the script's; of an input, whether it holds at the start at most.
        is_integrated: Whether the script integrates it beside coordinates and speeds: a state, not an input.
        doubt: Why the value may not be the script's at later instants; empty if nothing speaks for it.
        comment: What might be changed.
    """

    kind: str
    symbol: sm.Expr
    value: float | sm.Expr | None
    unit: str
    is_guess: bool = False
    rates: bool = False
    is_assumed: bool = False
    is_integrated: bool = False
    doubt: str = ""
    comment: str = ""


@dataclass(frozen=True, slots=True)
class AdoptedModelContent:
    """All that a model file says.

    Attributes:
        name: FMU model name.
        label: How the script's mechanics are found.
        mechanics: The script's object.
        quantities: Parameters, inputs, coordinates, speeds, constraint forces.
        signals: Input → function of time.
        stop: End of the experiment in s; None: the default.
        step: Communication step in s; None: the default.
        units: As inferred.
    """

    name: str
    label: str
    mechanics: Any
    quantities: tuple[AdoptedQuantity, ...]
    signals: dict[sm.Expr, sm.Expr]
    stop: float | None
    step: float | None
    units: InferredUnits

    @property
    def missing(self) -> tuple[AdoptedQuantity, ...]:
        """Quantities that the script says no number of."""
        return tuple(each for each in self.quantities if each.value is None)


def classify_mechanics_symbols(run: ScriptRun, label: str, mechanics: Any, name: str) -> AdoptedModelContent:
    """Return the declarations for one object of a script's mechanics."""
    decider = _SymbolClassifier(run, mechanics, run.mechanics[label])
    quantities = tuple(decider.iterate_adopted_quantities())
    stop, step = _experiment_times(run.integration)
    return AdoptedModelContent(name, label, mechanics, quantities, decider.signals, stop, step, decider.units)


class _SymbolClassifier:
    """Decides about the symbols of one mechanism."""

    def __init__(self, run: ScriptRun, mechanics: Any, made: Any) -> None:
        self.mechanics = mechanics
        self.formed = None if run.values.is_deferred else _symbols_of_formed_equations(made)
        self.values = ScriptNumbersBySymbol.of(run.values.found)
        self.lasting = ScriptNumbersBySymbol.of(note for note in run.values.found if not note.at_start)
        self.samples = [ScriptNumbersBySymbol.of(found) for found in run.values.samples]
        self.uses = collect_mechanics_expressions(mechanics)
        self.speeds = mechanics_source.speeds(mechanics)
        self.coordinates = mechanics_source.coordinates(mechanics)
        symbols = list_mechanics_symbols(mechanics)
        states = {*self.coordinates, *self.speeds.all, *self.speeds.auxiliary}
        self.functions = [each for each in symbols if isinstance(each, AppliedUndef) and each not in states]
        self.constants = [each for each in symbols if isinstance(each, sm.Symbol)]
        self.units = infer_units(mechanics, [*symbols, *self.speeds.all])
        self.order = self._state_order(run.integration)
        self.integrated = self._further_states(run)
        self.forces = _forces_at_auxiliary_speeds(mechanics)
        self.signals: dict[sm.Expr, sm.Expr] = {}

    def _state_order(self, integration: ScriptIntegratorCallRecord) -> dict[sm.Expr, float]:
        """Return start values by the order q, u where the integrator's state is as long."""
        states = [*self.coordinates, *self.speeds.all]
        if len(integration.start) != len(states):
            return {}
        return {state: start for state, start in zip(states, integration.start, strict=True) if isfinite(start)}

    def _further_states(self, run: ScriptRun) -> set[sm.Expr]:
        """Return functions that are neither q nor u, and that the script's integrator integrates beside them."""
        known = len(self.coordinates) + len(self.speeds.all)
        if len(run.integration.start) <= known:
            return set()
        further = set(run.integration.start)
        noted = {note.symbol: note.value for note in run.values.found if note.origin == "integration"}
        return {function for function in self.functions if noted.get(function) in further}

    def iterate_adopted_quantities(self) -> Iterator[AdoptedQuantity]:
        """Yield the lines in the order of the file."""
        known = frozenset(self.constants)
        calculated = []
        for symbol in self.constants:
            quantity = self._constant(symbol, known)
            calculated += [quantity] if isinstance(quantity.value, sm.Expr) else []
            if not isinstance(quantity.value, sm.Expr):
                yield quantity
        yield from calculated
        for function in self.functions:
            yield self._function(function)
        guesses = self._guessed()
        for coordinate in self.coordinates:
            yield self._start("coordinate", coordinate, coordinate in guesses)
        for speed in self.speeds.all:
            yield self._start("speed", speed, speed in guesses)

    def _constant(self, symbol: sm.Symbol, known: frozenset[sm.Expr]) -> AdoptedQuantity:
        """Return a parameter; an input where it stands in loads only, has no value, and is called like a force."""
        unit = self._unit(symbol)
        expression = self.values.expression(symbol, known)
        value = self.values.number(symbol, _VALUE_ORIGINS) if expression is None else expression
        only_in_loads = self._roles(symbol) == {"load"}
        if isinstance(value, float) and self._changes(symbol, value):
            return AdoptedQuantity(
                kind="input" if only_in_loads else "parameter", symbol=symbol, value=value, unit=unit,
                is_assumed=only_in_loads, doubt=_CHANGES, comment=_START_COMMENT.format(_CHANGES),
            )  # fmt: skip
        if value is None and only_in_loads and symbol in self.forces:
            return AdoptedQuantity(kind="constraint_force", symbol=symbol, value=0.0, unit=unit)
        if value is None and only_in_loads and _FORCE_NAME.fullmatch(symbol.name):
            return AdoptedQuantity(
                kind="input", symbol=symbol, value=0.0, unit=unit, is_assumed=True,
                comment="no value in the script: taken as an input",
            )  # fmt: skip
        if value is None and (value := self.values.number(symbol, ("bounds",))) is not None:
            return AdoptedQuantity(kind="parameter", symbol=symbol, value=value, unit=unit, comment=_BOUNDS_COMMENT)
        if value is None and self.formed is not None and symbol not in self.formed:
            return AdoptedQuantity(kind="parameter", symbol=symbol, value=1.0, unit=unit, comment=_NO_EFFECT_COMMENT)
        comment = "" if symbol not in self.units.free else "unit: nothing in the mechanics says it"
        if only_in_loads and _FORCE_NAME.fullmatch(symbol.name) and isinstance(value, float):
            comment = "stands in loads only: model.input in place of model.parameter makes it an input"
        return AdoptedQuantity(kind="parameter", symbol=symbol, value=value, unit=unit, comment=comment)

    def _function(self, function: sm.Expr) -> AdoptedQuantity:
        """Return an input for a function of time that nothing determines; an unknown force at auxiliary speeds."""
        unit, roles = self._unit(function), self._roles(function)
        value = self.values.number(function, _VALUE_ORIGINS)
        if roles == {"load"} and function in self.forces:
            return AdoptedQuantity(kind="constraint_force", symbol=function, value=0.0, unit=unit)
        signal = self.values.expression(function, frozenset({dynamicsymbols._t}))  # noqa: SLF001 - no public name
        if signal is not None:
            self.signals[function] = signal
        rates = bool(roles & {"position", "velocity"}) or any(
            function in {f for f, _ in collect_expression_symbols(use.expression).derivatives} for use in self.uses
        )
        comment = "" if signal is not None else "no signal in the script" if value is None else ""
        is_integrated = function in self.integrated
        doubt = "" if value is None or signal is not None or is_integrated else self._doubt(function, value)
        if doubt:
            comment = _START_COMMENT.format(doubt)
        return AdoptedQuantity(
            kind="input", symbol=function, value=value or 0.0, unit=unit, rates=rates,
            is_assumed=bool(comment) and not is_integrated, is_integrated=is_integrated, doubt=doubt, comment=comment,
        )  # fmt: skip

    def _doubt(self, function: sm.Expr, value: float) -> str:
        """Return why an input's value may not hold at later instants; empty where the script says that it does."""
        if self._changes(function, value):
            return _CHANGES
        if len(self._sampled(function)) >= _MIN_SAMPLES:
            return ""
        calls = {note.value for note in self.values.notes.get(function, ()) if note.origin == "function call"}
        # A script's own integration loop has the value of one call in a variable, as a function that ends has.
        origins = [origin for origin in _LASTING_ORIGINS if not calls or origin != "same name"]
        if len(calls) > 1:
            return _CHANGES
        return "" if self.lasting.number(function, origins) is not None else _NOT_KNOWN

    def _changes(self, symbol: sm.Expr, value: float) -> bool:
        """Return whether another value was seen at another instant or state of the script's integration."""
        return any(each != value for each in self._sampled(symbol))

    def _sampled(self, symbol: sm.Expr) -> list[float]:
        """Return the values of a symbol in further evaluations of the integrand.

        Variables of a symbol's name count only where nothing else says its value: they may be something else.
        """
        origins: tuple[Origin, ...] = tuple(origin for origin in _VALUE_ORIGINS if origin != "same name")
        if self.values.number(symbol, origins) is None:
            origins = _VALUE_ORIGINS
        found = [sample.number(symbol, origins) for sample in self.samples]
        return [number for number in found if number is not None]

    def _start(self, kind: str, symbol: sm.Expr, is_guess: bool) -> AdoptedQuantity:
        """Return a coordinate or speed with its start value."""
        value = self.values.number(symbol, _START_ORIGINS[:2])
        if value is None:
            value = self.order.get(symbol)
        if value is None:
            value = self.values.number(symbol, _START_ORIGINS)
        comment = ""
        if value is None and (value := self.values.number(symbol, ("bounds",))) is not None:
            comment = _BOUNDS_COMMENT
        return AdoptedQuantity(
            kind=kind, symbol=symbol, value=0.0 if value is None else value, unit=self._unit(symbol),
            is_guess=is_guess, is_assumed=value is None, comment=comment,
        )  # fmt: skip

    def _guessed(self) -> set[sm.Expr]:
        """Return the coordinates and speeds that constraints determine; all of a Lagrangian's, which names none."""
        if isinstance(self.mechanics, LagrangesMethod):
            rows = mechanics_source.holonomic_constraints(self.mechanics)
            both = mechanics_source.velocity_constraints(self.mechanics)
            return {*(self.coordinates if rows else ()), *(self.speeds.all if both else ())}
        return {*mechanics_source.dependent_coordinates(self.mechanics), *self.speeds.dependent}

    def _unit(self, symbol: sm.Expr) -> str:
        return self.units.names.get(symbol, "1")

    def _roles(self, symbol: sm.Expr) -> set[str]:
        """Return the roles of the expressions in which a symbol stands."""
        return {use.role for use in self.uses if _contains(use, symbol)}


def _symbols_of_formed_equations(made: Any) -> set[sm.Basic] | None:
    """Return the symbols of M u' = f as SymPy formed it; None where the script did not have it formed."""
    try:
        matrices = [made.mass_matrix, made.forcing]
    except Exception:  # noqa: BLE001 - SymPy raises errors of many kinds where nothing is formed
        return None
    return {symbol for matrix in matrices for symbol in matrix.free_symbols}


def _forces_at_auxiliary_speeds(mechanics: Any) -> set[sm.Expr]:
    """Return the unknown forces: those whose power, over all loads, is that at auxiliary speeds alone."""
    auxiliary = dict.fromkeys(mechanics_source.speeds(mechanics).auxiliary, sm.S.Zero)
    frame = mechanics_source.inertial_frame(mechanics)
    powers: dict[sm.Expr, sm.Expr] = {}
    for place, vector in mechanics_source.loads(mechanics) if auxiliary else ():
        motion = (getattr(place, "_vel_dict", None) or getattr(place, "_ang_vel_dict", {})).get(frame)
        inside = [collect_expression_symbols(component) for components, _ in vector.args for component in components]
        for force in {each for contents in inside for each in (*contents.constants, *contents.functions)}:
            power = sm.nan if motion is None else motion.dot(vector.diff(force, frame))
            powers[force] = powers.get(force, sm.S.Zero) + power
    return {force for force, power in powers.items() if not _vanishes(power) and _vanishes(power.xreplace(auxiliary))}


def _vanishes(expression: sm.Expr) -> bool:
    """Return whether an expression is zero at a state picked at random."""
    inside = collect_expression_symbols(expression)
    atoms = [*inside.constants, *inside.functions]
    at = {atom: sm.Float(0.3 + 0.137 * number) for number, atom in enumerate(sorted(atoms, key=str))}
    value = sm.N(expression.xreplace(at))
    return bool(value.is_number and value.is_finite and abs(value) < 1e-9)


def _contains(use: MechanicsExpression, symbol: sm.Expr) -> bool:
    inside = collect_expression_symbols(use.expression)
    return symbol in inside.constants or symbol in inside.functions_of_time


def _experiment_times(integration: ScriptIntegratorCallRecord) -> tuple[float | None, float | None]:
    """Return stop and step of the experiment, from the instants that the script requested."""
    if integration.span is None:
        return None, None
    stop = integration.span[1] - integration.span[0]
    if not 0.0 < stop < float("inf"):
        return None, None
    step = stop / (integration.points - 1) if 50 <= integration.points <= 20_000 else None
    return stop, step


def list_script_symbols_without_value(adopted: AdoptedModelContent) -> list[str]:
    """Return the names of the symbols without a number."""
    return [format_symbol_as_word(each.symbol) for each in adopted.missing]
