"""Check that every symbol of mechanics and declarations is declared, and allowed where it stands."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import sympy as sm
from sympy.core.function import AppliedUndef
from sympy.physics.mechanics import LagrangesMethod

from mb2fmu.errors import Fault
from mb2fmu.model.checks.expression_symbols import collect_expression_symbols, differentiate_by_time
from mb2fmu.model.checks.mechanics_completeness import format_symbol_for_model_file
from mb2fmu.model.checks.mechanics_expressions import ExpressionRole, MechanicsExpression
from mb2fmu.model.declarations.declared_events import list_event_expressions
from mb2fmu.model.model import Model
from mb2fmu.model.quantity_declarations import (
    AuxiliaryState,
    ConstraintForce,
    Coordinate,
    DeclaredConstraint,
    Input,
    Output,
    Parameter,
    Speed,
    format_symbol_as_word,
)
from mb2fmu.model.sources import mechanics_source
from mb2fmu.model.sources.record_based_mechanics import RecordBasedMechanics

if TYPE_CHECKING:
    from mb2fmu.model.declarations.contact_and_latch_declaration_records import DeclaredContact, DeclaredMechanicalLatch

DeclarationRole = Literal["output", "state", "value", "potential"]
GEOMETRIC_ROLES: tuple[ExpressionRole, ...] = ("position", "velocity")


@dataclass(frozen=True, slots=True)
class _ExpressionOccurrence:
    """One expression with the line that made it, if it is known."""

    place: str
    role: ExpressionRole | DeclarationRole
    expression: sm.Basic
    where: str


_CONSTRAINT_PLACES = ("holonomic constraint", "velocity constraint")
_MAX_SHOWN_LENGTH = 60  # characters of an expression in a remedy


class _ModelSymbolsByKind:
    """Symbols by what they are."""

    def __init__(self, model: Model) -> None:
        def declared(kind: type[Any]) -> set[sm.Basic]:
            """Return the symbols of all declarations of one kind."""
            return {item.symbol for item in model.declared if isinstance(item, kind)}

        speeds = mechanics_source.speeds(model.mechanics)
        self.parameters = declared(Parameter)
        self.inputs = declared(Input)
        self.forces = declared(ConstraintForce)
        unilateral: tuple[DeclaredContact | DeclaredMechanicalLatch, ...] = (
            *model.declared_contacts,
            *model.declared_latches,
        )
        self.multipliers = declared(DeclaredConstraint) - {None} | {
            force for item in unilateral for force in item.forces
        }
        self.states = declared(AuxiliaryState)
        self.coordinates: set[sm.Basic] = set(mechanics_source.coordinates(model.mechanics))
        self.speeds: set[sm.Basic] = set(speeds.all)
        self.auxiliary: set[sm.Basic] = set(speeds.auxiliary)
        self.functions = (
            self.inputs | self.forces | self.multipliers | self.states | self.coordinates | self.speeds | self.auxiliary
        )
        recorded = model.mechanics if isinstance(model.mechanics, RecordBasedMechanics) else None
        self.sensed = recorded.motion_symbols if recorded else {}
        self.functions |= {*self.sensed}
        self.outputs = {item.name: item for item in model.declared if isinstance(item, Output)}
        # declared as something that the mechanics do not have: reported once, where it is declared
        self.mistaken = (declared(Speed) | declared(Coordinate)) - self.functions


def find_symbol_faults(model: Model, uses: Iterable[MechanicsExpression]) -> list[Fault]:
    """Return every fault of a symbol or function; each is reported once, with all its places.

    Args:
        model: The model.
        uses: The expressions of its mechanics.
    """
    known = _ModelSymbolsByKind(model)
    occurrences = [_ExpressionOccurrence(use.place, use.role, use.expression, model.where) for use in uses]
    occurrences += _declared_expressions(model)
    lists = _SymbolFaultCollector(known, lagrange=isinstance(model.mechanics, LagrangesMethod))
    for occurrence in occurrences:
        lists.check_occurrence(occurrence)
    return [*lists.faults(), *_unused_force_faults(model, occurrences)]


def _declared_expressions(model: Model) -> Iterator[_ExpressionOccurrence]:
    """Yield each expression of the declarations with its role and line."""
    for item in model.declared:
        if isinstance(item, Output):
            yield _ExpressionOccurrence(f"output {item.name}", "output", item.expression, item.where)
        elif isinstance(item, AuxiliaryState):
            yield _ExpressionOccurrence(f"the derivative of state {item.name}", "state", item.derivative, item.where)
        elif isinstance(item, Parameter) and isinstance(item.value, sm.Expr):
            yield _ExpressionOccurrence(f"the value of parameter {item.name}", "value", item.value, item.where)
    yield from _event_expressions(model)
    if model.potential is not None:
        yield _ExpressionOccurrence("the potential energy", "potential", model.potential, model.where)


def _event_expressions(model: Model) -> Iterator[_ExpressionOccurrence]:
    """Yield the expressions of events, contacts and latches."""
    for event in model.declared_events:
        for expression in list_event_expressions(event):
            yield _ExpressionOccurrence(f"the event {event.name}", "state", expression, event.where)
    for contact in model.declared_contacts:
        for expression in contact.expressions:
            yield _ExpressionOccurrence(f"the contact {contact.name}", "state", expression, contact.where)
    for latch in model.declared_latches:
        for expression in latch.expressions:
            yield _ExpressionOccurrence(f"the latch {latch.name}", "state", expression, latch.where)


class _SymbolFaultCollector:
    """Gathers (what is wrong, symbol) → places, so that a symbol used ten times is reported once."""

    def __init__(self, known: _ModelSymbolsByKind, *, lagrange: bool) -> None:
        self.known = known
        self.lagrange = lagrange
        self.places: dict[tuple[str, str], list[_ExpressionOccurrence]] = {}
        self.texts: dict[tuple[str, str], tuple[str, str]] = {}

    def faults(self) -> Iterator[Fault]:
        """Yield all that was found, in the order found."""
        for key, occurrences in self.places.items():
            what, remedy = self.texts[key]
            names = list(dict.fromkeys(occurrence.place for occurrence in occurrences))
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            yield Fault(f"{what} (in {', '.join(names[:3])}{more})", occurrences[0].where, remedy)

    def check_occurrence(self, occurrence: _ExpressionOccurrence) -> None:
        """Check the contents of one expression."""
        inside = collect_expression_symbols(occurrence.expression)
        for symbol in sorted(inside.constants - self.known.parameters - self.known.forces, key=str):
            if symbol in self.known.inputs:
                self._plain_input(symbol, occurrence)
            else:
                self._undeclared_constant(symbol, occurrence)
        for function in sorted(inside.functions, key=str):
            self._function(function, occurrence)
        for function, order in sorted(inside.derivatives, key=str):
            self._derivative(function, order, occurrence)
        for name in sorted(inside.unsupported):
            self._add(
                f"{name} is not a supported function",
                name,
                occurrence,
                "see docs/reference/functions.md for those that are",
            )
        if not inside.defined:
            self._add("a number is not finite", str(occurrence.expression), occurrence, "remove NaN and infinity")

    def _add(self, what: str, key: str, occurrence: _ExpressionOccurrence, remedy: str) -> None:
        """Record where a fault occurs; equal faults become one message with all places."""
        self.texts.setdefault((what, key), (what, remedy))
        self.places.setdefault((what, key), []).append(occurrence)

    def _plain_input(self, symbol: sm.Basic, occurrence: _ExpressionOccurrence) -> None:
        """Record an input that is a plain symbol where its rate would count, which a plain symbol does not have."""
        if occurrence.role == "value":
            what = f"{symbol} is an input, which changes with time, and parameters do not"
            self._add(what, str(symbol), occurrence, "calculate parameters from parameters only")
        elif occurrence.role in {"inertia", "energy", "lagrangian", *GEOMETRIC_ROLES}:
            what = f"the input {symbol} is a plain symbol, and stands where its rate counts"
            remedy = (
                f"make it by dynamicsymbols('{symbol}') in the mechanics; plain symbols may stand in loads and outputs"
            )
            self._add(what, str(symbol), occurrence, remedy)

    def _undeclared_constant(self, symbol: sm.Basic, occurrence: _ExpressionOccurrence) -> None:
        """Record a symbol that is not declared, with the likeliest remedy."""
        near = difflib.get_close_matches(str(symbol), map(str, self.known.parameters), n=1, cutoff=0.75)
        same = [other for other in self.known.parameters if str(other) == str(symbol)]
        if same:
            remedy = f"the declared {same[0]} has other assumptions (positive, real, …): use one and the same symbol"
        elif str(symbol) in self.known.outputs:
            remedy = self._output_named(str(symbol), occurrence)
        else:
            remedy = f'add  model.parameter({symbol}, value, "unit"){f", or is {near[0]} meant?" if near else ""}'
        self._add(f"{symbol} is not declared", str(symbol), occurrence, remedy)

    def _output_named(self, name: str, occurrence: _ExpressionOccurrence) -> str:
        """Record an output that is used as a symbol, perhaps in its own expression, with the remedy."""
        own = self.known.outputs[name].expression
        inside = {format_symbol_as_word(each) for each in sm.sympify(own).atoms(sm.Symbol, AppliedUndef)}
        if occurrence.place == f"output {name}" or name in inside:
            return f"the output {name} depends on itself: model.discrete keeps a value from one event to the next"
        expression = str(own)
        what = expression if len(expression) <= _MAX_SHOWN_LENGTH else "its expression"
        return f"{name} is an output, and no symbol: write {what} in its place"

    def _function(self, function: sm.Expr, occurrence: _ExpressionOccurrence) -> None:
        """Record a function of time that is undeclared, or stands where its kind may not."""
        known, name, role = self.known, format_symbol_as_word(function), occurrence.role
        if role == "value":
            what = f"{function} changes with time, and parameters do not"
            self._add(what, name, occurrence, "calculate parameters from parameters only")
        elif self.lagrange and function not in known.functions and role in {"lagrangian", *GEOMETRIC_ROLES}:
            self._speed_in_lagrangian(function, occurrence)
        elif function not in known.functions | known.mistaken:
            self._undeclared_function(function, occurrence)
        elif function in known.inputs and role in GEOMETRIC_ROLES:
            self._prescribed(function, 0, occurrence)
        elif function in known.multipliers and role != "output":
            remedy = "what it does is in the equations already; outputs may contain it"
            self._add(f"the multiplier {name} stands in something else than an output", name, occurrence, remedy)
        elif function in known.forces and role not in {"load", "output"}:
            self._add(
                f"the constraint force {name} stands where no load is", name, occurrence, "use it in a load, once"
            )

    def _rate_of_link(self, function: sm.Expr, order: int, occurrence: _ExpressionOccurrence) -> None:
        """Record an acceleration of a robot's link; velocities are known, and so are derivatives that are inputs."""
        if function in self.known.sensed and (order > 1 or self.known.sensed[function] is None):
            what = f"{differentiate_by_time(function, order)} is an acceleration of the robot, "
            what += "which expressions cannot contain"
            remedy = "use position_of, its first derivative, and velocity_of; an output may be an acceleration"
            self._add(what, format_symbol_as_word(function), occurrence, remedy)

    def _derivative(self, function: sm.Expr, order: int, occurrence: _ExpressionOccurrence) -> None:
        """Record a derivative that is undeclared, unknown, or stands where it may not."""
        known, name, role = self.known, format_symbol_as_word(function), occurrence.role
        derivative = differentiate_by_time(function, order)
        if role == "value":
            self._add(f"{derivative} changes with time, and parameters do not", name, occurrence, "use parameters only")
        elif role in GEOMETRIC_ROLES and (derivative in known.inputs or function in known.inputs):
            self._prescribed(function, order, occurrence)
        elif derivative in known.inputs or function in known.sensed:
            self._rate_of_link(function, order, occurrence)
        elif function in known.inputs:
            what = f"{format_symbol_as_word(derivative)} is used, but the input {name} carries no derivatives"
            remedy = (
                f'give it as an input too: add  model.input({format_symbol_for_model_file(derivative)}, 0.0, "unit")'
            )
            self._add(what, name, occurrence, remedy)
        elif function in known.coordinates | known.speeds:
            self._motion(function, order, occurrence)
        elif function in known.states:
            if order > 1:
                remedy = f"write out the derivative of what was given to model.state({name}, …)"
                self._add(f"a higher derivative of state {name} is used", name, occurrence, remedy)
        elif function in known.forces:
            self._add(f"the derivative of the constraint force {name} is used", name, occurrence, "it is not known")
        elif function not in known.auxiliary | known.mistaken:
            self._undeclared_function(function, occurrence)

    def _motion(self, function: sm.Expr, order: int, occurrence: _ExpressionOccurrence) -> None:
        """Record derivatives of coordinates or speeds where they may not stand: accelerations only in outputs."""
        name = format_symbol_as_word(differentiate_by_time(function, order))
        is_coordinate = function in self.known.coordinates
        if order > (2 if is_coordinate else 1):
            if occurrence.place.startswith(_CONSTRAINT_PLACES):
                return  # the rate of a row that was given as one of another level
            what = f"{name} is beyond accelerations, and a mechanism knows its motion no further"
            self._add(what, name, occurrence, "use q, q', q'', u, u' only")
        elif (order > 1 or not is_coordinate) and occurrence.role in {"energy", "lagrangian", "potential"}:
            what = f"the acceleration {name} stands in an energy"
            remedy = "what is proportional to acceleration is inertia: give it as a body; outputs may use accelerations"
            self._add(what, name, occurrence, remedy)

    def _undeclared_function(self, function: sm.Expr, occurrence: _ExpressionOccurrence) -> None:
        """Record a function of time that is not declared, with the likeliest remedy."""
        name = format_symbol_as_word(function)
        remedy = (
            f'add  model.input({name}, 0.0, "unit")  if it comes from outside, or  model.state({name}, derivative, …)'
        )
        if self.known.auxiliary and occurrence.role == "load":
            remedy += f", or  model.constraint_force({name})  if it is an unknown force"
        same = [
            other
            for other in self.known.functions
            if isinstance(other, sm.Expr) and format_symbol_as_word(other) == name
        ]
        if name in self.known.outputs:
            remedy = self._output_named(name, occurrence)
        if same:
            remedy = f"the declared {name} is another symbol of the same name: use one and the same"
        self._add(f"{name}(t) is not declared", name, occurrence, remedy)

    def _speed_in_lagrangian(self, function: sm.Expr, occurrence: _ExpressionOccurrence) -> None:
        """Record a speed u ≠ q' in a Lagrangian L(q, q', t): SymPy would treat it as a constant without a warning."""
        name = format_symbol_as_word(function)
        what = f"{name} is no q', and LagrangesMethod differentiates with respect to q' only: its equations are wrong"
        remedy = "write q.diff() for it (a joint takes speeds=q.diff()), or hand over the System or Parts instead; "
        remedy += f'if it comes from outside, add  model.input({name}, 0.0, "unit")'
        self._add(what, name, occurrence, remedy)

    def _prescribed(self, function: sm.Expr, order: int, occurrence: _ExpressionOccurrence) -> None:
        """Record inputs that prescribe motion and lack derivatives: positions need two of them, velocities one."""
        further = 2 if occurrence.role == "position" else 1
        missing = [
            derivative
            for k in range(order, order + further + 1)
            if (derivative := differentiate_by_time(function, k) if k else function) not in self.known.inputs
        ]
        if not missing:
            return
        name = format_symbol_as_word(function)
        what = f"the motion is prescribed by the input {name}, and stands in the equations with its derivatives"
        lines = ", ".join(
            f'model.input({format_symbol_for_model_file(derivative)}, 0.0, "unit")' for derivative in missing
        )
        remedy = f"give them as inputs too: add  {lines}; or prescribe an expression of time (dynamicsymbols._t)"
        self._add(what, name, occurrence, remedy)


def _unused_force_faults(model: Model, occurrences: Sequence[_ExpressionOccurrence]) -> Iterator[Fault]:
    """Yield constraint forces that stand in no load: nothing determines them."""
    loaded: set[sm.Basic] = set()
    for occurrence in occurrences:
        if occurrence.role == "load":
            inside = collect_expression_symbols(occurrence.expression)
            loaded |= inside.constants | inside.functions
    for item in model.declared:
        if isinstance(item, ConstraintForce) and item.symbol not in loaded:
            what = f"the constraint force {item.name} stands in no load of the mechanics"
            yield Fault(what, item.where, f"apply {item.symbol} to the point that has the auxiliary speed")
