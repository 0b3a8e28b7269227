"""From ``Model`` to ``ModelDefinition``: find all faults that need no equations, and raise them together."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, TypeVar

import sympy as sm
from sympy.physics.mechanics import Point, ReferenceFrame, dynamicsymbols
from sympy.physics.mechanics.actuator import ActuatorBase
from sympy.physics.mechanics.body_base import BodyBase
from sympy.physics.mechanics.joint import Joint
from sympy.physics.vector import Vector

from mb2fmu.errors import Fault, ModelError
from mb2fmu.model.calculated_parameters import order_parameters
from mb2fmu.model.checks.bound_checks import bound_faults
from mb2fmu.model.checks.element_checks import (
    added_load_faults,
    complete_mechanics,
    contact_faults,
    latch_faults,
    loop_faults,
)
from mb2fmu.model.checks.event_checks import event_faults
from mb2fmu.model.checks.experiment_checks import experiment_faults
from mb2fmu.model.checks.expression_contents import collect_contents
from mb2fmu.model.checks.mechanics_completeness import mechanics_faults
from mb2fmu.model.checks.mechanics_expressions import collect_mechanics_expressions
from mb2fmu.model.checks.symbol_checks import symbol_faults
from mb2fmu.model.checks.terminal_checks import array_faults, resolve_arrays, resolve_terminals, terminal_faults
from mb2fmu.model.declarations.declared_outputs import OUTPUT_KINDS
from mb2fmu.model.declarations.shapes import LoadArrow, appearance_item_faults
from mb2fmu.model.declarations.shared_clock import share_clocks
from mb2fmu.model.model import Model, OutputRequest
from mb2fmu.model.model_definition import ModelDefinition
from mb2fmu.model.quantity_declarations import (
    AuxiliaryState,
    Constraint,
    ConstraintForce,
    Coordinate,
    Input,
    Output,
    Parameter,
    Quantity,
    Speed,
    symbol_word,
)
from mb2fmu.model.sources import mechanics_source
from mb2fmu.model.sources.record_mechanics import (
    RecordedBody,
    RecordedFrame,
    RecordedJoint,
    RecordedMechanics,
    RecordedPoint,
)
from mb2fmu.model.variable_naming import is_model_name, is_variable_name, output_variable_names, suggest_identifier
from mb2fmu.units import are_compatible_units, format_base_units, parse_unit

MAX_NAME_LENGTH = 200
"""Characters of a model's name: file systems take 255 bytes, and FMI's identifiers are longer by a prefix."""
DeclaredKind = TypeVar("DeclaredKind", bound=Quantity)


def check_model(model: Model) -> ModelDefinition:
    """Check a model: find every fault that needs no equations.

    Args:
        model: As the user wrote it.

    Returns:
        The definition: coordinates and speeds in the mechanics' order, calculated parameters behind those they need.

    Raises:
        ModelError: With every fault found.
    """
    headline = f"the model {model.name} cannot be used:"
    if not mechanics_source.is_mechanics(model.mechanics):
        raise ModelError(headline, [_mechanics_fault(model)])
    added = [*_model_name_faults(model), *added_load_faults(model)]
    model = complete_mechanics(model)
    parameters, parameter_faults = order_parameters(_declared_items(model, Parameter))
    faults = [*added, *_declaration_faults(model), *mechanics_faults(model), *parameter_faults, *_further_faults(model)]
    if faults:
        raise ModelError(headline, dict.fromkeys(faults))
    return ModelDefinition(
        name=model.name,
        description=model.description,
        mechanics=model.mechanics,
        parameters=parameters,
        inputs=_declared_items(model, Input),
        coordinates=_order_records(_declared_items(model, Coordinate), mechanics_source.coordinates(model.mechanics)),
        speeds=_order_records(_declared_items(model, Speed), mechanics_source.speeds(model.mechanics).all),
        auxiliary_states=_declared_items(model, AuxiliaryState),
        constraint_forces=_declared_items(model, ConstraintForce),
        constraints=_declared_items(model, Constraint),
        outputs=tuple(item for item in model.declared if isinstance(item, Output | OutputRequest)),
        potential_energy=model.potential,
        experiment=model.default_experiment,
        source=model.source,
        diagram=model.diagram,
        terminals=resolve_terminals(model),
        arrays=resolve_arrays(model),
        looks=tuple(model.looks),
        ground=model.ground,
        loops=tuple(model.loops),
        given=model.given,
        events=share_clocks(model.declared_events),
        contacts=tuple(model.declared_contacts),
        known_potentials=tuple(model.known_potentials),
        element_of_load=tuple((added.load, added.element) for added in model.added_loads if added.element),
        latches=tuple(model.declared_latches),
    )


def _further_faults(model: Model) -> Iterator[Fault]:
    """Yield the faults of every other part of a model: symbols, requests, experiment, connections, looks, events."""
    requests = _declared_items(model, OutputRequest)
    yield from symbol_faults(model, collect_mechanics_expressions(model.mechanics, requests))
    for request in requests:
        yield from _request_faults(model, request)
    parts = (
        experiment_faults, terminal_faults, array_faults, _appearance_faults, loop_faults, event_faults, contact_faults,
        latch_faults,
    )  # fmt: skip
    for faults_of in parts:
        yield from faults_of(model)


def _declared_items(model: Model, kind: type[DeclaredKind]) -> tuple[DeclaredKind, ...]:
    """Return all declared items of one kind, in their order."""
    return tuple(item for item in model.declared if isinstance(item, kind))


def _order_records(records: Iterable[Any], order: Iterable[sm.Expr]) -> tuple[Any, ...]:
    """Return records in the order of these symbols."""
    by_symbol = {record.symbol: record for record in records}
    return tuple(by_symbol[symbol] for symbol in order)


def _mechanics_fault(model: Model) -> Fault:
    """Return the fault of a model whose mechanics are of no known kind."""
    what = f"its mechanics are a {type(model.mechanics).__name__}"
    return Fault(what, model.where, "hand over a System, a KanesMethod or LagrangesMethod already set up, or Parts")


def _model_name_faults(model: Model) -> Iterator[Fault]:
    """Yield a fault if the model's name is no identifier, or too long for a file name."""
    if not is_model_name(model.name):
        remedy = f"call it {suggest_identifier(model.name, 'Mechanism')}"
        yield Fault(
            f"{model.name!r} cannot name a model: it must be an identifier of C and Python", model.where, remedy
        )
    elif len(model.name) > MAX_NAME_LENGTH:
        what = f"the model's name has {len(model.name)} characters, and names a file"
        yield Fault(what, model.where, f"take at most {MAX_NAME_LENGTH}")


def _declaration_faults(model: Model) -> Iterator[Fault]:
    """Yield faults of the declarations by themselves."""
    yield from text_faults(model.description, "the description of the model", model.where)
    yield from text_faults(model.diagram, "the diagram of the model", model.where, lines=True)
    for item in model.declared:
        yield from text_faults(item.description, f"the description of {item.name}", item.where)
        yield from _symbol_kind_faults(item)
        yield from _unit_faults(item)
        yield from _number_faults(item)
        if isinstance(item, Coordinate | Speed) and item.kind not in {"fixed", "guess"}:
            yield Fault(f"the start of {item.name} cannot be {item.kind!r}", item.where, "take 'fixed' or 'guess'")
        if not isinstance(item, Constraint) and not is_variable_name(item.name):
            remedy = (
                f"letters, digits and _, with dots and [indices] between: name={suggest_identifier(item.name, 'x')!r}"
            )
            yield Fault(f"the FMU cannot have a variable called {item.name!r}", item.where, remedy)
    yield from _duplicate_symbol_faults(model)
    yield from _duplicate_name_faults(model)


def _symbol_kind_faults(item: Quantity) -> Iterator[Fault]:
    """Yield symbols of the wrong kind: parameters are symbols, all others functions of time."""
    symbol = getattr(item, "symbol", None)
    if symbol is None or isinstance(item, ConstraintForce):
        return
    kind = _kind_name(item)
    if isinstance(item, Parameter):
        if not isinstance(symbol, sm.Symbol):
            remedy = "make it by sympy.symbols, or declare it as an input"
            yield Fault(f"{symbol} is declared as a parameter, but is no plain symbol", item.where, remedy)
        elif symbol == dynamicsymbols._t:  # noqa: SLF001 - SymPy has no public name for it
            remedy = f"take another symbol: sympy.Symbol('{symbol}_0'); expressions of time need no declaration"
            yield Fault(f"{symbol} is declared as a parameter, but is SymPy's symbol of time", item.where, remedy)
        elif symbol.name == str(dynamicsymbols._t):  # noqa: SLF001 - as above
            remedy = f"give it another name in the mechanics: sympy.Symbol('{symbol}_0'); name='{symbol}' may stay"
            yield Fault(f"the parameter {symbol} is printed as SymPy's symbol of time is", item.where, remedy)
        return
    inside = collect_contents(symbol) if isinstance(symbol, sm.Basic) else None
    is_function = inside is not None and symbol in inside.functions
    is_derivative = inside is not None and isinstance(symbol, sm.Derivative) and len(inside.derivatives) == 1
    if not (is_function or (is_derivative and isinstance(item, Speed | Input))):
        remedy = f"make it by dynamicsymbols('{symbol_word(symbol)}')"
        yield Fault(f"{symbol} is declared as {_add_article(kind)}, but is no function of time", item.where, remedy)


def _unit_faults(item: Quantity) -> Iterator[Fault]:
    """Yield units that cannot be read, and a display unit of another dimension."""
    units = []
    for text in (item.unit, *([] if item.display_unit is None else [item.display_unit])):
        try:
            units.append(parse_unit(text))
        except ValueError as error:
            remedy = "write it as Modelica does: N.m, kg.m2, rad/s, m/s2"
            yield Fault(f"{item.name}: {error}", item.where, remedy)
    if len(units) == 2 and not are_compatible_units(*units):
        unit, shown = units
        what = (
            f"{item.name}: the display unit {shown.name} ({format_base_units(shown)}) does not fit the unit {unit.name}"
        )
        what += f" ({format_base_units(unit)})"
        yield Fault(what, item.where, f"take a display unit that measures what {unit.name} does, or none")


def _number_faults(item: Quantity) -> Iterator[Fault]:
    """Yield numbers that are not finite, crossed bounds, values outside of them, and nominals not above zero."""
    numbers = {"min": item.minimum, "max": item.maximum, "nominal": item.nominal, "start value": _start_value(item)}
    if isinstance(item, Parameter):
        numbers["value"] = numbers.pop("start value")
    low, high = item.minimum, item.maximum
    for what, number in numbers.items():
        if number is not None and not math.isfinite(number):
            yield Fault(f"the {what} of {item.name} is {number}", item.where, "give a finite number")
    if low is not None and high is not None and low > high:
        yield Fault(f"{item.name} has min={low} > max={high}", item.where, "exchange them")
    elif (start := _start_value(item)) is not None:
        yield from bound_faults(item, start)
    if item.nominal is not None and item.nominal <= 0.0:
        yield Fault(f"the nominal of {item.name} is {item.nominal}", item.where, "a typical magnitude is > 0")


def _start_value(item: Quantity) -> float | None:
    """Return an item's start value; None for outputs and for calculated parameters, which are checked later."""
    value = getattr(item, "value", getattr(item, "start", None))
    return None if isinstance(value, sm.Basic) else value


def _duplicate_symbol_faults(model: Model) -> Iterator[Fault]:
    """Yield symbols that are declared twice, or differ in their assumptions only."""
    first: dict[Any, Quantity] = {}
    for item in model.declared:
        symbol = getattr(item, "symbol", None)
        if symbol is None:
            continue
        alike = next((other for other in first if _print_alike(symbol, other)), None)
        if alike is not None:
            what = f"{symbol} and a symbol declared at {first[alike].where} differ in their assumptions only"
            yield Fault(what, item.where, "make one symbol of them, or give one another name in the mechanics")
        if symbol in first:
            what = f"{symbol} is declared twice: as {_add_article(_kind_name(first[symbol]))} "
            what += f"at {first[symbol].where}, and again"
            yield Fault(what, item.where, "remove one of the two")
        first.setdefault(symbol, item)


def _print_alike(symbol: Any, other: Any) -> bool:
    """Return whether two different plain symbols print alike; readers and printed code would confuse them."""
    plain = isinstance(symbol, sm.Symbol) and isinstance(other, sm.Symbol)
    return plain and symbol != other and symbol.name == other.name


def _duplicate_name_faults(model: Model) -> Iterator[Fault]:
    """Yield faults of names that two FMU variables have, those that mb2fmu adds included."""
    owners: dict[str, tuple[str, str]] = {"time": ("the independent variable", "")}
    for name, owner, where in sorted(_list_variable_names(model), key=lambda entry: str(entry[0]).startswith("der(")):
        if name in owners:
            other, place = owners[name]
            what = f"two variables are called {name}: {other}{f' ({place})' if place else ''} and {owner}"
            yield Fault(what, where, "give one of them another name (name=…)")
        owners.setdefault(name, (owner, where))


def _list_variable_names(model: Model) -> Iterator[tuple[str, str, str]]:
    """Yield (name, owner, where) of each FMU variable."""
    dependent = mechanics_source.speeds(model.mechanics).dependent
    for item in model.declared:
        if isinstance(item, OutputRequest):
            yield from ((name, f"output {item.name}", item.where) for name in output_variable_names(item))
            continue
        if isinstance(item, Constraint):  # its name is for messages
            continue
        what = (
            f"output {item.name}" if isinstance(item, Output) else f"{_kind_name(item)} {getattr(item, 'symbol', '')}"
        )
        yield item.name, what, item.where
        if isinstance(item, Coordinate | Speed | AuxiliaryState) and item.symbol not in dependent:
            yield f"der({item.name})", f"the derivative of {item.name}", item.where


def _request_faults(model: Model, request: OutputRequest) -> Iterator[Fault]:
    """Yield faults of one-line outputs that ask for something the mechanics do not have."""
    call, name = f"output_{request.kind}", request.name
    recorded = isinstance(model.mechanics, RecordedMechanics)
    point = (RecordedPoint, "a point of the mechanics: .point(frame)") if recorded else (Point, "a Point")
    frame = (RecordedFrame, "one of the mechanics: .frame(name)") if recorded else (ReferenceFrame, "a ReferenceFrame")
    held = (RecordedBody, "what a joint carries") if recorded else (Joint | BodyBase, "a joint, or bodies")
    wanted: dict[str, tuple[Any, str]] = {
        **dict.fromkeys(("point", "located point"), point),
        **dict.fromkeys(("frame", "oriented frame"), frame),
        "body": (BodyBase, "bodies of the mechanics"),
        "joint or bodies": held,
        "joint": (RecordedJoint, "joints of a robot"),
    }
    row = OUTPUT_KINDS[request.kind]
    if mechanics_source.inertial_frame(model.mechanics) is None and not request.kind.endswith("energy"):
        remedy = "give LagrangesMethod its frame and bodies, or write the quantity as an expression"
        yield Fault(f"{call}({name!r}): the mechanics have no inertial frame", request.where, remedy)
    elif row.subject in wanted:
        kind, article = wanted[row.subject]
        relative_to = (request.relative_to,) if row.relative_to == row.subject else ()
        for item in (*request.subject, *relative_to):
            if item is not None and not isinstance(item, kind):
                what = f"{call}({name!r}) is asked of {item}, which is a {type(item).__name__}"
                yield Fault(what, request.where, f"give it {article}")
    elif row.subject == "load" and not _belongs_to_mechanics(model, request.subject[0]):
        remedy = "give one of the loads or actuators of the mechanics, the object itself"
        yield Fault(f"{call}({name!r}) is asked of {request.subject[0]}, which is none of them", request.where, remedy)
    sequence = request.representation
    is_euler = len(sequence) == 3 and set(sequence) <= set("xyz") and all(a != b for a, b in pairwise(sequence))
    if sequence != "quaternion" and not is_euler:
        what = f"{call}({name!r}): there is no representation {sequence!r}"
        yield Fault(what, request.where, "take 'quaternion', or the axes of a body-fixed sequence such as 'zxy'")


def _belongs_to_mechanics(model: Model, subject: Any) -> bool:
    """Return whether a load or actuator belongs to the mechanics; vectors are compared as written, which is cheap."""
    if isinstance(subject, ActuatorBase):
        return any(subject is actuator for actuator in mechanics_source.actuators(model.mechanics))
    if not isinstance(subject, tuple) or len(subject) != 2:
        return False
    place, components = getattr(subject[0], "masscenter", subject[0]), getattr(subject[1], "args", ())
    return any(
        load[0] is place and getattr(load[1], "args", ()) == components
        for load in mechanics_source.loads(model.mechanics)
    )


def _appearance_faults(model: Model) -> Iterator[Fault]:
    """Yield faults of shapes, traces and arrows."""
    parameters = frozenset(parameter.symbol for parameter in _declared_items(model, Parameter))
    if model.looks and mechanics_source.inertial_frame(model.mechanics) is None and model.ground is None:
        remedy = "say model.place_in(N, O) with the inertial frame and origin of your points"
        yield Fault("pictures need an inertial frame, which the mechanics do not have", model.looks[0].where, remedy)
    for look in model.looks:
        yield from (Fault(what, look.where, remedy) for what, remedy in appearance_item_faults(look, parameters))
        if isinstance(look, LoadArrow) and not (_belongs_to_mechanics(model, look.load) or _is_pair(look.load)):
            remedy = "give one of the mechanics' loads or actuators, or a pair (point, vector)"
            yield Fault(f"an arrow is asked of {look.load}, which is none of them", look.where, remedy)


def _is_pair(load: Any) -> bool:
    """Return whether a load is a pair of a point and a force vector."""
    return isinstance(load, tuple) and len(load) == 2 and isinstance(load[0], Point) and isinstance(load[1], Vector)


def _kind_name(item: Quantity) -> str:
    """Return what a declared item is called in messages."""
    words = {"AuxiliaryState": "state", "ConstraintForce": "constraint force"}
    return words.get(type(item).__name__, type(item).__name__.lower())


def _add_article(noun: str) -> str:
    """Return a noun with its indefinite article."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def text_faults(text: object, what: str, where: str, *, lines: bool = False) -> Iterator[Fault]:
    """Yield the faults of a text.

    Args:
        text: What stands where a text belongs.
        what: It is, for messages: "the description of m".
        where: It was written.
        lines: It may have several lines.
    """
    if not isinstance(text, str):
        yield Fault(f"{what} is {_shorten_value(text)}, which is no text", where, "write it in quotes: description='…'")
        return
    strange = [mark for mark in text if unicodedata.category(mark) in {"Cc", "Cs"} and not (lines and mark in "\n\t\r")]
    if strange:
        named = ", ".join(sorted({f"U+{ord(mark):04X}" for mark in strange}))
        yield Fault(
            f"{what} holds control characters ({named})", where, "write one line" if not lines else "leave them out"
        )


def _shorten_value(value: object) -> str:
    """Return a value as Python writes it, shortened where it is long."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}…"
