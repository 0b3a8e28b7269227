"""Array variables of FMI 3.0, made from scalars that are described already.

Scalars keep their value references; those of arrays come behind. An input or output is in its array only, since two
inputs for one value contradict each other. Of the motion the scalars stay, because states have start values, limits and
derivatives by themselves, and the array is one more output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mb2fmu.fmu.interface.fmu_interface import FmuVariable
from mb2fmu.fmu.interface.variable_groups import FmuArray, Terminal
from mb2fmu.model.declarations.model_declarations import Declarations

_ARRAY_SOURCES = frozenset({"input", "position", "velocity", "acceleration"})
"""Sources of inputs and of outputs that a model asks for."""


def describe_arrays(definition: Declarations, variables: Sequence[FmuVariable]) -> tuple[FmuArray, ...]:
    """Return the arrays of an FMU of FMI 3.0; their value references follow those of ``variables``."""
    return tuple(_declared_arrays(definition, variables))


def drop_terminals_of_array_elements(terminals: Sequence[Terminal], arrays: Sequence[FmuArray]) -> tuple[Terminal, ...]:
    """Return the terminals whose members are all variables of their own: elements of arrays are not."""
    gone = {name for array in arrays if array.replaces for name in array.elements}
    return tuple(each for each in terminals if gone.isdisjoint(member.variable for member in each.members))


def _declared_arrays(definition: Declarations, variables: Sequence[FmuVariable]) -> Iterator[FmuArray]:
    """Yield the declared arrays with the attributes that their elements share; value references count elements."""
    known = {variable.name: variable for variable in variables}
    motion = {
        item.name for item in (*definition.coordinates, *definition.speeds, *definition.auxiliary_states)
    }  # a dependent coordinate is computed where positions are
    reference = 1 + max(variable.value_reference for variable in variables)
    for declared in definition.arrays:
        names = tuple(map(str, declared.elements))
        held = [known[name] for name in names]
        inputs = held[0].causality == "input"
        yield FmuArray(
            name=declared.name,
            value_reference=reference,
            causality="input" if inputs else "output",
            dimensions=declared.shape,
            elements=names,
            replaces=all(each.source in _ARRAY_SOURCES and each.name not in motion for each in held),
            start=tuple(float(each.start or 0.0) for each in held) if inputs else (),
            unit=_shared_attribute(held, lambda each: each.unit),
            display_unit=_shared_attribute(held, lambda each: each.display_unit),
            declared_type=_shared_attribute(held, lambda each: each.declared_type),
            minimum=_widest_bound(min, [each.minimum for each in held]),
            maximum=_widest_bound(max, [each.maximum for each in held]),
            nominal=_smallest_nominal([each.nominal for each in held]),
            description=declared.description,
        )
        reference += len(names)


def _shared_attribute(held: Sequence[FmuVariable], of: Callable[[FmuVariable], Any]) -> Any:
    """Return the attribute that all elements share, or None."""
    found = {of(each) for each in held}
    return found.pop() if len(found) == 1 else None


def _widest_bound(of: Callable[[Sequence[float]], float], bounds: Sequence[float | None]) -> float | None:
    """Return the widest bound, which all elements keep."""
    known = [bound for bound in bounds if bound is not None]
    return of(known) if len(known) == len(bounds) else None


def _smallest_nominal(nominals: Sequence[float | None]) -> float | None:
    """Return the smallest nominal value, so that a small error is small for every element."""
    return min(each or 1.0 for each in nominals) if any(nominals) else None
