"""Set other values than the model file's: parameters, start values and inputs, by their FMU names."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

from mb2fmu.errors import Fault, ModelError
from mb2fmu.model.declarations.declared_content_and_experiment import DeclaredExperiment
from mb2fmu.model.declarations.declared_outputs import OutputRequest
from mb2fmu.model.quantity_declarations import AuxiliaryState, Coordinate, DeclaredVariable, Input, Parameter, Speed
from mb2fmu.units import parse_value_in_unit


class _ModelWithOverridableValues(Protocol):
    """The attributes of a ``Model`` that are read and replaced here."""

    name: str
    declared: list[DeclaredVariable | OutputRequest]
    default_experiment: DeclaredExperiment
    given: Mapping[str, float]


AnyModel = TypeVar("AnyModel", bound=_ModelWithOverridableValues)
OverrideValue = float | str


def override_values(model: AnyModel, values: Mapping[str, OverrideValue]) -> AnyModel:
    """Return a copy of the model with other values.

    Args:
        model: As the user wrote it.
        values: FMU name of a free parameter, a state or an input → value in its unit, or text with a unit. An input
            keeps the value: the experiment's signal of it is dropped.

    Raises:
        ModelError: For every name that cannot be set and every value that is no number.
    """
    settable = {
        i.name: i for i in model.declared if isinstance(i, Parameter | Input | Coordinate | Speed | AuxiliaryState)
    }
    faults, numbers = [], {}
    for name, value in values.items():
        item = settable.get(name)
        if item is None or (isinstance(item, Parameter) and item.calculated):
            faults.append(_value_fault(name, item, list(settable)))
            continue
        try:
            numbers[name] = parse_value_in_unit(value, item.unit)
        except ValueError as error:
            remedy = f"write {name}=NUMBER in {item.unit}, or with a unit: {name}='NUMBER UNIT'"
            faults.append(Fault(f"{name} cannot be set: {error}", item.where, remedy))
    if faults:  # what only lies out of its bounds is reported by the checks of the model, with all that these find
        from mb2fmu.model.checks.bound_checks import find_declared_value_bound_faults

        faults += [
            fault
            for name, number in numbers.items()
            for fault in find_declared_value_bound_faults(settable[name], number)
        ]
        raise ModelError(f"{model.name} cannot be set as requested:", faults)
    return _copy_with_numbers(model, numbers)


def _copy_with_numbers(model: AnyModel, numbers: Mapping[str, float]) -> AnyModel:
    """Return a copy of the model with these numbers in its declarations."""
    import copy

    other = copy.copy(model)
    other.declared = [_set_number(item, numbers) for item in model.declared]
    kept = {item.symbol for item in model.declared if isinstance(item, Input) and item.name in numbers}
    experiment = model.default_experiment
    dropped = {symbol for symbol in experiment.signals if {symbol, getattr(symbol, "expr", symbol)} & kept}  # and rates
    signals = {symbol: signal for symbol, signal in experiment.signals.items() if symbol not in dropped}
    other.default_experiment = replace(experiment, signals=signals)
    other.given = {**model.given, **numbers}
    return other


def _set_number(item: DeclaredVariable, numbers: Mapping[str, float]) -> DeclaredVariable:
    """Return an item with the number set for its name, as its value or start."""
    if isinstance(item, Parameter) and item.name in numbers:
        return replace(item, value=numbers[item.name])
    if isinstance(item, Input | Coordinate | Speed | AuxiliaryState) and item.name in numbers:
        return replace(item, start=numbers[item.name])
    return item


def _value_fault(name: str, item: DeclaredVariable | None, names: Sequence[str]) -> Fault:
    """Return why a name cannot be given a value."""
    if isinstance(item, Parameter):
        symbols = sorted(map(str, getattr(item.value, "free_symbols", ())))
        return Fault(f"{name} is calculated from {', '.join(symbols)}", item.where, "set those")
    near = difflib.get_close_matches(name, names, n=3)
    remedy = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(names)}"
    return Fault(f"there is no parameter, state or input {name}", remedy=remedy)
