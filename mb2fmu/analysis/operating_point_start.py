"""Start of the search for an operating point: the model's start values, with requested values in their place."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import AnalysisError, Fault
from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion
from mb2fmu.model.checks.bound_checks import find_declared_value_bound_faults
from mb2fmu.model.declarations.declared_content_and_experiment import DeclaredModelContent
from mb2fmu.model.quantity_declarations import AuxiliaryState, Coordinate, Speed
from mb2fmu.model.scales.characteristic_units import estimate_characteristic_units
from mb2fmu.model.value_overrides import OverrideValue
from mb2fmu.units import parse_value_in_unit

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class OperatingPointStart:
    """Values at which the search for an operating point begins.

    Attributes:
        x, r, p: States, inputs, free parameters.
        t: Time in s.
        names: FMU names of the states, in their order.
        inputs: FMU names of the inputs.
        coordinates: Indices of the states that are coordinates.
        dependent: Indices of the states that the model calls dependent; not to be among ξ where that can be.
        guessed_states: Indices of the states whose start values are guesses.
        held: Indices of the states that keep their values.
        free_inputs: Indices of the inputs that may change.
        typical: Typical magnitude of each state, in its unit.
    """

    x: Floats
    r: Floats
    p: Floats
    t: float = 0.0
    names: tuple[str, ...]
    inputs: tuple[str, ...]
    coordinates: Collection[int]
    dependent: Collection[int] = ()
    guessed_states: Collection[int] = ()
    held: Collection[int] = ()
    free_inputs: Collection[int] = ()
    typical: Floats


def make_operating_point_start(
    definition: DeclaredModelContent,
    equations: EquationsOfMotion,
    at: Mapping[str, OverrideValue],
    trim: Collection[str] = (),
) -> OperatingPointStart:
    """Return the model's start values with others put in their place.

    Args:
        definition: The checked model.
        equations: Which coordinates and speeds are states.
        at: FMU name → value in its unit, or text with one: of states (which are then held), inputs, free parameters,
            or ``time``.
        trim: FMU names of inputs that may change.

    Raises:
        AnalysisError: For every name that cannot be set or trimmed, every value that is none or out of its bounds.
    """
    e, d = equations, definition
    states: list[Coordinate | Speed | AuxiliaryState] = [
        *(d.coordinates[i] for i in e.q_independent),
        *(d.speeds[i] for i in e.u_independent),
        *d.auxiliary_states,
    ]
    free = [p for p in d.parameters if not p.calculated]
    names, inputs, parameters = [s.name for s in states], [i.name for i in d.inputs], [p.name for p in free]
    faults = [_unknown_name_fault(name, d) for name in at if name not in {*names, *inputs, *parameters, "time"}]
    remedy = f"inputs are {', '.join(inputs)}" if inputs else "the model has none"
    faults += [Fault(f"{name} is no input", remedy=remedy) for name in trim if name not in inputs]
    units = {item.name: item.unit for item in (*states, *d.inputs, *free)}
    values: dict[str, float] = {}
    for name, value in at.items():
        try:
            values[name] = parse_value_in_unit(value, units.get(name, "s"))
        except ValueError as error:
            faults.append(Fault(f"{name} cannot be set: {error}", remedy="give a finite number"))
    for item in (*states, *d.inputs, *free):
        if item.name in values:
            faults += find_declared_value_bound_faults(item, values[item.name])
    if faults:
        raise AnalysisError("there is no such operating point:", faults)

    def is_guess(item: Coordinate | Speed | AuxiliaryState) -> bool:
        return not isinstance(item, AuxiliaryState) and item.kind == "guess"

    natural = estimate_characteristic_units(d)
    return OperatingPointStart(
        x=np.array([values.get(item.name, item.start) for item in states], dtype=float),
        r=np.array([values.get(item.name, item.start) for item in d.inputs], dtype=float),
        p=np.array([values.get(item.name, float(item.value)) for item in free], dtype=float),
        t=values.get("time", 0.0),
        names=tuple(names),
        inputs=tuple(inputs),
        coordinates=range(len(e.q_independent)),
        dependent=[i for i, item in enumerate(states) if item.name in d.dependent],
        guessed_states=[i for i, item in enumerate(states) if is_guess(item) and item.name not in at],
        held=[names.index(name) for name in at if name in names],
        free_inputs=[inputs.index(name) for name in trim],
        typical=np.array([natural.typical(item) for item in states], dtype=float),
    )


def _unknown_name_fault(name: str, definition: DeclaredModelContent) -> Fault:
    """Return why a name cannot be given a value."""
    dependent = {item.name for item in (*definition.coordinates, *definition.speeds)}
    if name in dependent:
        return Fault(f"{name} follows from the constraints", remedy="give the independent ones")
    if name in {p.name for p in definition.parameters}:
        return Fault(f"{name} is calculated from other parameters", remedy="give those")
    items = (*definition.coordinates, *definition.speeds, *definition.auxiliary_states, *definition.inputs)
    names = [item.name for item in (*items, *definition.parameters)]
    near = difflib.get_close_matches(name, names)
    remedy = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(names)}"
    return Fault(f"{name} is no state, input or parameter", remedy=remedy)
