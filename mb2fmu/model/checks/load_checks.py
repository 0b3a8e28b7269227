"""Checks of loads and elements that were added to the mechanics."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator

import sympy as sm

from mb2fmu.errors import Fault
from mb2fmu.model.declarations.added_loads import can_add_load, extend_bodies, extend_loads
from mb2fmu.model.model import Model
from mb2fmu.model.quantity_declarations import AuxiliaryState, Input, Parameter
from mb2fmu.model.sources.record_mechanics import RecordedLoad, RecordedMechanics
from mb2fmu.units import are_compatible_units


def added_load_faults(model: Model) -> Iterator[Fault]:
    """Yield the faults of what was added."""
    yield from model.element_faults
    remedy = "give (point or frame, vector), or an actuator of SymPy"
    if isinstance(model.mechanics, RecordedMechanics):
        loads = [added.load for added in model.added_loads if isinstance(added.load, RecordedLoad)]
        loads += model.mechanics.loads
        yield from model.mechanics.load_faults(loads)
        yield from _unit_faults(model, loads)
        remedy = "give (joint, effort), or what the mechanics' force and torque return"
    for added in model.added_loads:
        if not can_add_load(added.load, model.mechanics):
            yield Fault(f"{added.load!r} cannot be added as a load", added.where, remedy)


def _unit_faults(model: Model, loads: Iterable[RecordedLoad]) -> Iterator[Fault]:
    """Yield each component that is a declared quantity of another dimension than a force or torque."""
    declared = {item.symbol: item for item in model.declared if isinstance(item, Input | Parameter | AuxiliaryState)}
    for load in loads:
        wanted = "N" if load.word == "force" else "N.m"
        for component in load.components if isinstance(load.components, tuple) else ():
            item = declared.get(component) or declared.get(-component if isinstance(component, sm.Expr) else component)
            if item is not None and not _has_dimension(item.unit, wanted):
                what = f"a component of {load} is {item.name}, which is in {item.unit}, not in {wanted}"
                yield Fault(what, load.where, f"declare {item.name} in {wanted}, or multiply it by what makes it one")


def _has_dimension(unit: str, wanted: str) -> bool:
    """Return whether a unit is of a dimension; one that cannot be read has a fault elsewhere."""
    try:
        return are_compatible_units(unit, wanted)
    except ValueError:
        return True


def complete_mechanics(model: Model) -> Model:
    """Return the model with all loads and bodies in its mechanics; the same model where nothing can be added."""
    loads = [added.load for added in model.added_loads if can_add_load(added.load, model.mechanics)]
    if not loads and not model.added_bodies:
        return model
    whole = copy.copy(model)
    whole.mechanics = extend_loads(extend_bodies(model.mechanics, model.added_bodies), loads)
    return whole
