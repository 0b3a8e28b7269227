"""From ``Model`` to ``CheckedModel``: find all faults that need no equations, and raise them together.

Check the default experiment: its numbers and signals.

Checks of the events that a model declares.
"""

from __future__ import annotations

import dataclasses
import difflib
import itertools
import math
import unicodedata
from collections.abc import Hashable, Iterable, Iterator
from itertools import pairwise
from typing import Any, TypeVar

import sympy as sm
from sympy.physics.mechanics import Point, ReferenceFrame, dynamicsymbols
from sympy.physics.mechanics.actuator import ActuatorBase
from sympy.physics.mechanics.body_base import BodyBase
from sympy.physics.mechanics.joint import Joint
from sympy.physics.vector import Vector

from mb2fmu.errors import Fault, ModelError
from mb2fmu.model.calculated_parameters import sort_calculated_parameters
from mb2fmu.model.checked_model import CheckedModel
from mb2fmu.model.checks.bound_checks import find_declared_value_bound_faults
from mb2fmu.model.checks.constraint_level_checks import find_constraint_level_faults
from mb2fmu.model.checks.contact_loop_and_load_checks import (
    add_elements_to_mechanics,
    find_added_load_faults,
    find_contact_declaration_faults,
    find_latch_declaration_faults,
    find_loop_declaration_faults,
)
from mb2fmu.model.checks.expression_symbols import collect_expression_symbols
from mb2fmu.model.checks.mechanics_completeness import find_mechanics_faults, format_symbol_for_model_file
from mb2fmu.model.checks.mechanics_expressions import collect_mechanics_expressions
from mb2fmu.model.checks.symbol_checks import find_symbol_faults
from mb2fmu.model.checks.terminal_checks import (
    find_array_declaration_faults,
    find_terminal_declaration_faults,
    resolve_array_members,
    resolve_terminal_members,
)
from mb2fmu.model.declarations.appearance_declarations import LoadArrow, find_appearance_item_faults
from mb2fmu.model.declarations.declared_content_and_experiment import choose_communication_step, derive_rate_signals
from mb2fmu.model.declarations.declared_events import (
    DeclaredEvent,
    find_first_common_instant,
    find_first_instant_and_period,
    has_valid_declared_event_instants,
)
from mb2fmu.model.declarations.declared_outputs import OUTPUT_KINDS
from mb2fmu.model.declarations.shared_event_clock import share_event_clocks
from mb2fmu.model.model import DeclaredExperiment, Model, OutputRequest
from mb2fmu.model.quantity_declarations import (
    MISSING_VALUE,
    AuxiliaryState,
    ConstraintForce,
    Coordinate,
    DeclaredConstraint,
    DeclaredVariable,
    Input,
    Output,
    Parameter,
    Speed,
    format_symbol_as_word,
)
from mb2fmu.model.sources import mechanics_source
from mb2fmu.model.sources.record_based_mechanics import (
    BodyReference,
    FrameReference,
    JointReference,
    NamedFramePoint,
    RecordBasedMechanics,
)
from mb2fmu.model.variable_naming import is_model_name, is_variable_name, list_output_variable_names, suggest_identifier
from mb2fmu.units import are_compatible_units, format_base_units, parse_unit

MAX_STEPS = 1_000_000
"""Communication steps of a default experiment: the validation keeps what every variable is at each of them."""


MAX_NAME_LENGTH = 200
"""Characters of a model's name: file systems take 255 bytes, and FMI's identifiers are longer by a prefix."""
DeclaredKind = TypeVar("DeclaredKind", bound=DeclaredVariable)


def _model_experiment_faults(model: Model) -> Iterator[Fault]:
    """Yield faults of the default experiment."""
    experiment = model.default_experiment
    for holds, what, remedy in _experiment_rules(experiment):
        if not holds:
            yield Fault(what, experiment.where or model.where, remedy)
    inputs = dict.fromkeys(item.symbol for item in model.declared if isinstance(item, Input))
    for symbol, signal in experiment.signals.items():
        if symbol not in inputs:
            near = difflib.get_close_matches(str(symbol), map(str, inputs), n=1) or list(map(str, inputs))
            remedy = (
                f"the inputs are {', '.join(near)}"
                if near
                else f'model.input({format_symbol_for_model_file(symbol)}, 0.0, "unit")'
            )
            yield Fault(f"the experiment has a signal for {symbol}, which is no input", experiment.where, remedy)
        yield from _signal_faults(experiment, symbol, sm.sympify(signal))
    rates = {item.symbol: item for item in model.declared if isinstance(item, Input)}
    for symbol, signal in derive_rate_signals(experiment.signals, list(rates.values()), model.given).items():
        if collect_expression_symbols(signal).unsupported:
            what = f"{rates[symbol].name} would be the derivative of a signal that has none at some instants"
            yield Fault(what, experiment.where, f"give {rates[symbol].name} a signal of its own: {symbol}: …")


def _complete_rate_signals(model: Model) -> DeclaredExperiment:
    """Return the experiment, in which the rates of a prescribed motion follow its signal."""
    experiment = model.default_experiment
    rates = derive_rate_signals(experiment.signals, _declared_items(model, Input), model.given)
    return dataclasses.replace(experiment, signals={**experiment.signals, **rates}) if rates else experiment


def _experiment_rules(experiment: DeclaredExperiment) -> Iterator[tuple[bool, str, str]]:
    """Yield (holds, message if it does not, remedy); comparisons with NaN never hold."""
    stop, step, tolerance = experiment.stop, experiment.step, experiment.tolerance
    yield 0.0 < stop < math.inf, f"the experiment's stop time is {stop}", "the start time is 0: give a stop > 0, in s"
    yield 0.0 < step < math.inf, f"the experiment's step is {step}", "give a communication step > 0, in s"
    if step > 0.0 and stop > 0.0:
        yield (
            step <= stop,
            f"the experiment's step {step} is longer than the experiment ({stop})",
            "take a shorter step",
        )
        what = f"the experiment has {stop / step:.3g} communication steps, more than {MAX_STEPS:,}"
        remedy = f"take step={choose_communication_step(stop):g}, or leave step out; or an earlier stop"
        yield not stop > MAX_STEPS * step, what, remedy
    what = f"the experiment's tolerance is {tolerance}"
    yield 0.0 < tolerance <= 1e-2, what, "give a relative tolerance in (0, 0.01], such as 1e-6"
    what = f"there is no solver {experiment.solver!r}"
    yield experiment.solver in {"adaptive", "fixed"}, what, "take 'adaptive' or 'fixed'"
    internal = experiment.internal_step
    if internal is not None:
        what = f"the internal step is {internal}, the communication step {step}"
        yield 0.0 < internal <= step, what, "give an internal_step in (0, step]"


def _signal_faults(experiment: DeclaredExperiment, symbol: sm.Expr, signal: sm.Expr) -> Iterator[Fault]:
    """Yield signals of an experiment that are not finite functions of time alone."""
    inside = collect_expression_symbols(signal)
    others = sorted(map(str, (*inside.constants, *inside.functions_of_time)))
    if others:
        what = f"the signal of {symbol} contains {', '.join(others)}"
        yield Fault(what, experiment.where, "a signal is a number, or an expression of time (dynamicsymbols._t) alone")
    for name in sorted(inside.unsupported):
        yield Fault(f"the signal of {symbol} contains {name}, which is not supported", experiment.where)
    if not inside.defined:
        yield Fault(f"the signal of {symbol} is {signal}", experiment.where, "give a finite signal")


def find_event_declaration_faults(model: Model) -> Iterator[Fault]:
    """Yield the faults of events that a model declares."""
    states = {item.symbol for item in model.declared if isinstance(item, AuxiliaryState)}
    settable = (
        states | set(mechanics_source.coordinates(model.mechanics)) | set(mechanics_source.speeds(model.mechanics).all)
    )
    moving = settable - _discrete_states(model)
    for event in model.declared_events:
        if not event.settings:
            yield Fault(f"the event {event.name} sets nothing", event.where, "give a dict {symbol: expression}")
        if math.isnan(event.period) or math.isnan(event.offset):
            what = f"the event {event.name} has instants that are no numbers"
            remedy = "give them in s; what shall vary from FMU to FMU can be an argument of the model function"
            yield Fault(what, event.where, remedy)
            continue
        if not event.period > 0.0:
            what = f"the event {event.name} has a period of {event.period:g} s"
            yield Fault(what, event.where, "take a positive one")
        if not 0.0 <= event.offset < math.inf:
            what = f"the event {event.name} begins at {event.offset:g} s"
            yield Fault(what, event.where, "take an instant of 0 s or more")
        if event.kind == "when" and not isinstance(event.condition, sm.logic.boolalg.Boolean):
            what = f"{event.condition} is no condition"
            yield Fault(what, event.where, "compare: h <= 0, sm.And(a > b, c < d)")
        elif event.condition in (sm.true, sm.false):
            truth = str(event.condition).lower()
            what = f"the condition of the event {event.name} is always {truth}: it never becomes true"
            yield Fault(what, event.where, "compare what moves; an instant is said by model.once")
        yield from _equality_faults(event, moving)
        for symbol in sorted(set(event.settings) - settable, key=str):
            what = f"the event {event.name} sets {symbol}, which is no coordinate, speed or state"
            remedy = "declare it by model.discrete, or set one of those"
            yield Fault(what, event.where, remedy)
    yield from _duplicate_event_name_faults(model)
    yield from _conflicting_event_faults(model)


def _discrete_states(model: Model) -> set[sm.Expr]:
    """Return the states that only events change."""
    return {item.symbol for item in model.declared if isinstance(item, AuxiliaryState) and item.derivative == 0}


def _equality_faults(event: DeclaredEvent, moving: set[sm.Expr]) -> Iterator[Fault]:
    """Yield equalities of what moves: they hold for an instant, between two looks."""
    moving = moving | {dynamicsymbols._t}  # noqa: SLF001 - SymPy has no public name for it
    for each in sorted(event.condition.atoms(sm.Eq, sm.Ne), key=str):
        if any(_changes_between_events(side, moving) for side in each.args):
            what = f"{event.name}: {each.lhs} and {each.rhs} are equal for an instant at most, which no one sees"
            yield Fault(what, event.where, "compare by <= or >=, which stays true behind that instant")


def _changes_between_events(expression: sm.Basic, moving: set[sm.Expr]) -> bool:
    """Return whether a value changes between events."""
    if isinstance(expression, (sm.floor, sm.ceiling, sm.sign, sm.Heaviside, sm.logic.boolalg.Boolean)):
        return False
    return expression in moving or any(_changes_between_events(part, moving) for part in expression.args)


def _duplicate_event_name_faults(model: Model) -> Iterator[Fault]:
    """Yield names that two events share: reports and messages could not name which of them happened."""
    first: dict[str, DeclaredEvent] = {}
    for event in model.declared_events:
        if event.is_named and event.name in first:
            what = f"two events are called {event.name}: one is said at {first[event.name].where}, and another"
            yield Fault(what, event.where, "give one of them another name (name=…)")
        elif event.is_named:
            first[event.name] = event


def _conflicting_event_faults(model: Model) -> Iterator[Fault]:
    """Yield pairs of events that may coincide and set one value differently.

    What cannot be seen here, conditions that become true together by the motion, is reported as it happens.
    """
    timed = [event for event in model.declared_events if not math.isnan(event.period + event.offset)]
    for one, other in itertools.combinations(timed, 2):
        both = [symbol for symbol in one.settings if symbol in other.settings]
        torn = [str(symbol) for symbol in both if one.settings[symbol] != other.settings[symbol]]
        instant = _describe_shared_instant(one, other, model.default_experiment.stop) if torn else None
        if instant is not None:
            what = f"{', '.join(torn)} is set by {one.name} and {other.name} {instant}, to different values"
            remedy = "let one of them set it, or give them conditions or offsets that never come together"
            yield Fault(what, other.where, remedy)


def _describe_shared_instant(one: DeclaredEvent, other: DeclaredEvent, stop: float) -> str | None:
    """Return words for an instant, up to ``stop``, that two events surely share; None if no such instant is known."""
    if one.kind == other.kind == "when":
        return "at the same instants" if _normal_form(one.condition) == _normal_form(other.condition) else None
    if one.kind != other.kind or not all(has_valid_declared_event_instants(event) for event in (one, other)):
        return None
    first = find_first_common_instant(*(find_first_instant_and_period(event) for event in (one, other)))
    return f"at t = {float(first):g} s" if first is not None and first <= stop else None


def _normal_form(condition: sm.Basic) -> Hashable:
    """Return a normal form of a condition: h <= 0 and 0 >= 2*h become the same."""
    if isinstance(condition, sm.Lt | sm.Le | sm.Gt | sm.Ge):
        over = sm.nsimplify(condition.gts - condition.lts, rational=True)  # 2.0*h is no multiple of h
        return isinstance(condition, sm.Lt | sm.Gt), sm.expand(over).primitive()[1]
    if isinstance(condition, sm.And | sm.Or | sm.Not):
        return condition.func, frozenset(map(_normal_form, condition.args))
    return (condition,)


def check_model(model: Model) -> CheckedModel:
    """Check a model: find every fault that needs no equations.

    Args:
        model: As the user wrote it.

    Returns:
        The definition: coordinates and speeds in the mechanics' order, calculated parameters behind those they need.

    Raises:
        ModelError: With every fault found.
    """
    headline = f"the model {model.name} cannot be used:"
    if not mechanics_source.is_mechanics_source(model.mechanics):
        raise ModelError(headline, [_mechanics_fault(model)])
    added = [*_model_name_faults(model), *find_added_load_faults(model)]
    model = add_elements_to_mechanics(model)
    parameters, parameter_faults = sort_calculated_parameters(_declared_items(model, Parameter))
    faults = [
        *added,
        *_declaration_faults(model),
        *find_mechanics_faults(model),
        *parameter_faults,
        *_further_faults(model),
    ]
    if faults:
        raise ModelError(headline, dict.fromkeys(faults))
    return CheckedModel(
        name=model.name,
        description=model.description,
        mechanics=model.mechanics,
        parameters=parameters,
        inputs=_declared_items(model, Input),
        coordinates=_order_records(_declared_items(model, Coordinate), mechanics_source.coordinates(model.mechanics)),
        speeds=_order_records(_declared_items(model, Speed), mechanics_source.speeds(model.mechanics).all),
        auxiliary_states=_declared_items(model, AuxiliaryState),
        constraint_forces=_declared_items(model, ConstraintForce),
        constraints=_declared_items(model, DeclaredConstraint),
        outputs=tuple(item for item in model.declared if isinstance(item, Output | OutputRequest)),
        potential_energy=model.potential,
        experiment=_complete_rate_signals(model),
        source=model.source,
        diagram=model.diagram,
        terminals=resolve_terminal_members(model),
        arrays=resolve_array_members(model),
        appearance_items=tuple(model.appearance_items),
        ground=model.ground,
        loops=tuple(model.loops),
        given=model.given,
        events=share_event_clocks(model.declared_events),
        contacts=tuple(model.declared_contacts),
        known_potentials=tuple(model.known_potentials),
        element_of_load=tuple((added.load, added.element) for added in model.added_loads if added.element),
        latches=tuple(model.declared_latches),
        flexible_bodies=tuple(model.flexible_bodies),
    )


def _further_faults(model: Model) -> Iterator[Fault]:
    """Yield the faults of every other part of a model: symbols, requests, experiment, connections, looks, events."""
    requests = _declared_items(model, OutputRequest)
    yield from find_symbol_faults(model, collect_mechanics_expressions(model.mechanics, requests))
    for request in requests:
        yield from _request_faults(model, request)
    parts = (
        find_constraint_level_faults, _model_experiment_faults, find_terminal_declaration_faults,
        find_array_declaration_faults, _appearance_faults, find_loop_declaration_faults,
        find_event_declaration_faults, find_contact_declaration_faults, find_latch_declaration_faults,
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
    yield from _find_text_faults(model.description, "the description of the model", model.where)
    yield from _find_text_faults(model.diagram, "the diagram of the model", model.where, lines=True)
    for item in model.declared:
        yield from _find_text_faults(item.description, f"the description of {item.name}", item.where)
        yield from _symbol_kind_faults(item)
        yield from _unit_faults(item)
        yield from _number_faults(item)
        if isinstance(item, Coordinate | Speed) and item.kind not in {"fixed", "guess"}:
            yield Fault(f"the start of {item.name} cannot be {item.kind!r}", item.where, "take 'fixed' or 'guess'")
        if not isinstance(item, DeclaredConstraint) and not is_variable_name(item.name):
            remedy = (
                f"letters, digits and _, with dots and [indices] between: name={suggest_identifier(item.name, 'x')!r}"
            )
            yield Fault(f"the FMU cannot have a variable called {item.name!r}", item.where, remedy)
    yield from _duplicate_symbol_faults(model)
    yield from _duplicate_name_faults(model)


def _symbol_kind_faults(item: DeclaredVariable) -> Iterator[Fault]:
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
    inside = collect_expression_symbols(symbol) if isinstance(symbol, sm.Basic) else None
    is_function = inside is not None and symbol in inside.functions
    is_derivative = inside is not None and isinstance(symbol, sm.Derivative) and len(inside.derivatives) == 1
    is_plain_input = isinstance(item, Input) and isinstance(symbol, sm.Symbol) and symbol != dynamicsymbols._t  # noqa: SLF001
    if not (is_function or is_plain_input or (is_derivative and isinstance(item, Speed | Input))):
        remedy = f"make it by dynamicsymbols('{format_symbol_as_word(symbol)}')"
        yield Fault(f"{symbol} is declared as {_add_article(kind)}, but is no function of time", item.where, remedy)


def _unit_faults(item: DeclaredVariable) -> Iterator[Fault]:
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


def _number_faults(item: DeclaredVariable) -> Iterator[Fault]:
    """Yield numbers that are not finite, crossed bounds, values outside of them, and nominals not above zero."""
    numbers = {"min": item.minimum, "max": item.maximum, "nominal": item.nominal, "start value": _start_value(item)}
    if isinstance(item, Parameter):
        numbers["value"] = numbers.pop("start value")
    low, high = item.minimum, item.maximum
    for what, number in numbers.items():
        if number is MISSING_VALUE:
            yield Fault(f"{item.name} has no value", item.where, f"write a number in {item.unit} in place of ...")
        elif number is not None and not math.isfinite(number):
            yield Fault(f"the {what} of {item.name} is {number}", item.where, "give a finite number")
    if low is not None and high is not None and low > high:
        yield Fault(f"{item.name} has min={low} > max={high}", item.where, "exchange them")
    elif (start := _start_value(item)) is not None:
        yield from find_declared_value_bound_faults(item, start)
    if item.nominal is not None and item.nominal <= 0.0:
        yield Fault(f"the nominal of {item.name} is {item.nominal}", item.where, "a typical magnitude is > 0")


def _start_value(item: DeclaredVariable) -> float | None:
    """Return an item's start value; None for outputs and for calculated parameters, which are checked later."""
    value = getattr(item, "value", getattr(item, "start", None))
    return None if isinstance(value, sm.Basic) else value


def _duplicate_symbol_faults(model: Model) -> Iterator[Fault]:
    """Yield symbols that are declared twice, or differ in their assumptions only."""
    first: dict[Any, DeclaredVariable] = {}
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
            yield from ((name, f"output {item.name}", item.where) for name in list_output_variable_names(item))
            continue
        if isinstance(item, DeclaredConstraint):  # its name is for messages
            continue
        what = (
            f"output {item.name}" if isinstance(item, Output) else f"{_kind_name(item)} {getattr(item, 'symbol', '')}"
        )
        yield item.name, what, item.where
        if isinstance(item, Coordinate | Speed | AuxiliaryState) and item.symbol not in dependent:
            yield f"der({item.name})", f"the derivative of {item.name}", item.where


def _request_faults(model: Model, request: OutputRequest) -> Iterator[Fault]:
    """Yield faults of one-line outputs that request something the mechanics do not have."""
    call, name = f"output_{request.kind}", request.name
    recorded = isinstance(model.mechanics, RecordBasedMechanics)
    point = (NamedFramePoint, "a point of the mechanics: .point(frame)") if recorded else (Point, "a Point")
    frame = (FrameReference, "one of the mechanics: .frame(name)") if recorded else (ReferenceFrame, "a ReferenceFrame")
    held = (BodyReference, "what a joint carries") if recorded else (Joint | BodyBase, "a joint, or bodies")
    wanted: dict[str, tuple[Any, str]] = {
        **dict.fromkeys(("point", "located point"), point),
        **dict.fromkeys(("frame", "oriented frame"), frame),
        "body": (BodyBase, "bodies of the mechanics"),
        "joint or bodies": held,
        "joint": (JointReference, "joints of a robot"),
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
                what = f"{call}({name!r}) is requested for {item}, which is a {type(item).__name__}"
                yield Fault(what, request.where, f"give it {article}")
    elif row.subject == "load" and not _belongs_to_mechanics(model, request.subject[0]):
        remedy = "give one of the loads or actuators of the mechanics, the object itself"
        yield Fault(
            f"{call}({name!r}) is requested for {request.subject[0]}, which is none of them", request.where, remedy
        )
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
    if model.appearance_items and mechanics_source.inertial_frame(model.mechanics) is None and model.ground is None:
        remedy = "say model.place_in(N, O) with the inertial frame and origin of your points"
        yield Fault(
            "pictures need an inertial frame, which the mechanics do not have", model.appearance_items[0].where, remedy
        )
    for item in model.appearance_items:
        yield from (Fault(what, item.where, remedy) for what, remedy in find_appearance_item_faults(item, parameters))
        if isinstance(item, LoadArrow) and not (_belongs_to_mechanics(model, item.load) or _is_pair(item.load)):
            remedy = "give one of the mechanics' loads or actuators, or a pair (point, vector)"
            yield Fault(f"an arrow is requested for {item.load}, which is none of them", item.where, remedy)


def _is_pair(load: Any) -> bool:
    """Return whether a load is a pair of a point and a force vector."""
    return isinstance(load, tuple) and len(load) == 2 and isinstance(load[0], Point) and isinstance(load[1], Vector)


def _kind_name(item: DeclaredVariable) -> str:
    """Return what a declared item is called in messages."""
    words = {"AuxiliaryState": "state", "ConstraintForce": "constraint force"}
    return words.get(type(item).__name__, type(item).__name__.lower())


def _add_article(noun: str) -> str:
    """Return a noun with its indefinite article."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def _find_text_faults(text: object, what: str, where: str, *, lines: bool = False) -> Iterator[Fault]:
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
