"""The model structure: all unknowns, and the knowns that each depends on.

Both standards have the same three lists and differ in what is known, and in how variables are numbered. In FMI 2.0 they
are numbered from 1 in their order, and parameters are no knowns: 2.0.5 (section 2.2.8) wants dependencies on inputs and
time; on states in Model Exchange, and in Co-Simulation where directional derivatives are provided; on parameters never.
In FMI 3.0 they are named by their value references; knowns are, by 3.0.2 (section 2.4.8), inputs, states, parameters
and time.

- Outputs: every output. One that is a state depends on itself, where states are known.
- Derivatives: those of the states, in the order of the states.
- Initial unknowns: all outputs, derivatives and calculated parameters that are not ``exact``; on inputs, on time, and
  on all that is ``exact``: start values of states and parameters. States that are ``approx`` are unknowns themselves:
  what depends on one depends on what its start value depends on. Kinds: ``constant`` or ``dependent``.

A list of dependencies is always written, empty where nothing is needed: a missing one means "depends on everything".
Kinds are written where one of them is not ``dependent``: missing ones mean that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mb2fmu.fmu.interface.fmu_interface import (
    FmiDependencyKind,
    FmuInterface,
    FmuVariable,
    VariableDependency,
    VariableSource,
)
from mb2fmu.fmu.interface.fmu_types_arrays_terminals import FmuArray

_NumberedDependencies = tuple[tuple[int, ...], tuple[FmiDependencyKind, ...]]
_KINDS_BY_GENERALITY: tuple[FmiDependencyKind, ...] = ("constant", "fixed", "tunable", "dependent")


@dataclass(frozen=True, slots=True)
class FmiUnknown:
    """One element of the model structure.

    Attributes:
        index: Of the unknown, as the standard numbers variables.
        dependencies: Numbers of what it depends on, ascending.
        kinds: One per dependency.
    """

    index: int
    dependencies: tuple[int, ...]
    kinds: tuple[FmiDependencyKind, ...]

    @property
    def has_default_kinds(self) -> bool:
        """Whether every kind is ``dependent``, FMI's default for kinds that are not written."""
        return set(self.kinds) <= {"dependent"}


@dataclass(frozen=True, slots=True)
class ModelStructure:
    """``ModelStructure`` of the description file."""

    outputs: tuple[FmiUnknown, ...]
    derivatives: tuple[FmiUnknown, ...]
    initial_unknowns: tuple[FmiUnknown, ...]
    event_indicators: tuple[FmiUnknown, ...] = ()


def assign_model_structure_indices(interface: FmuInterface) -> dict[str, int]:
    """Return by name the number of each variable; in FMI 3.0 of one that is in an array only that of the array."""
    if interface.target.fmi == "2":
        return {variable.name: i for i, variable in enumerate(interface.variables, start=1)}
    references = {variable.name: variable.value_reference for variable in interface.variables}
    return references | {
        name: array.value_reference for array in interface.arrays if array.replaces for name in array.elements
    }


def form_model_structure(interface: FmuInterface) -> ModelStructure:
    """Return the model structure, with variables numbered as by :func:`assign_model_structure_indices`."""
    numbers, direct = assign_model_structure_indices(interface), _list_knowns(interface)
    approximate = {variable.name: variable for variable in interface.variables if variable.initial == "approx"}

    def seen(on: tuple[VariableDependency, ...]) -> _NumberedDependencies:
        return _number_dependencies([(numbers[item.on], item.kind) for item in on if item.on in direct])

    def seen_at_start(on: tuple[VariableDependency, ...]) -> _NumberedDependencies:
        """Number dependencies at initialization; instead of states with approximate starts, what these depend on."""
        kinds = {item.on: _initialization_kind(item.kind) for item in on if item.on not in approximate}
        through = [approximate[item.on] for item in on if item.on in approximate]
        kinds |= {item.on: "dependent" for state in through for item in state.dependencies}
        return _number_dependencies([(numbers[name], kind) for name, kind in kinds.items()])

    states = interface.variables_from_sources("state")
    itself = {state.name: (VariableDependency(state.name, "constant"),) for state in states}
    lists = {id(variable.dependencies): variable.dependencies for variable in interface.variables}  # many share one
    later_lists = {key: seen(on) for key, on in lists.items()}
    start_lists = {key: seen_at_start(on) for key, on in lists.items()}

    def later(variable: FmuVariable) -> FmiUnknown:
        own = itself.get(variable.name)
        return FmiUnknown(numbers[variable.name], *(seen(own) if own else later_lists[id(variable.dependencies)]))

    def at_start(variable: FmuVariable) -> FmiUnknown:
        """Return a variable as an initial unknown with its dependencies."""
        if variable.start_dependencies:
            # What a switch looks at has no constant factor: q mod 2 pi jumps where q does not.
            looked_at = {item.on for item in variable.start_dependencies}
            others = tuple(item for item in variable.dependencies if item.on not in looked_at)
            further = tuple(replace(item, kind="dependent") for item in variable.start_dependencies)
            return FmiUnknown(numbers[variable.name], *seen_at_start((*others, *further)))
        return FmiUnknown(numbers[variable.name], *start_lists[id(variable.dependencies)])

    def start_of(name: str) -> FmiUnknown:
        return FmiUnknown(0, *seen_at_start(itself[name])) if name in itself else at_start(variables[name])

    variables = {variable.name: variable for variable in interface.variables}
    arrays = [array for array in interface.arrays if array.causality == "output"]
    derivatives = [variable for variable in interface.variables if variable.derivative_of is not None]
    derivatives.sort(key=lambda variable: numbers[variable.derivative_of or ""])
    return ModelStructure(
        outputs=(
            *(later(variable) for variable in interface.scalars if variable.causality == "output"),
            *(
                _unite_element_dependencies(array, [later(variables[name]) for name in array.elements])
                for array in arrays
            ),
        ),
        derivatives=tuple(later(variable) for variable in derivatives),
        initial_unknowns=(
            *(at_start(variable) for variable in interface.scalars if _is_initial_unknown(variable)),
            *(_unite_element_dependencies(array, [start_of(name) for name in array.elements]) for array in arrays),
        ),
        event_indicators=tuple(later(variable) for variable in interface.variables_from_sources("indicators")),
    )


def _list_knowns(interface: FmuInterface) -> set[str]:
    """Return the names of the variables that dependencies may name; FMI 2 knows no parameters."""
    able = interface.capabilities
    knowns: tuple[VariableSource, ...] = ("time", "input", "state", "parameter")
    if interface.target.fmi == "2":
        knows_states = able.model_exchange or able.directional_derivatives
        knowns = ("time", "input", "state") if knows_states else ("time", "input")
    return {variable.name for variable in interface.variables_from_sources(*knowns)}


def _is_initial_unknown(variable: FmuVariable) -> bool:
    """Return whether a scalar is computed at the end of the initialization, as FMI defines initial unknowns."""
    is_result = variable.causality in ("output", "calculatedParameter") or variable.derivative_of is not None
    return is_result and variable.initial in ("calculated", "approx")


def _unite_element_dependencies(array: FmuArray, elements: list[FmiUnknown]) -> FmiUnknown:
    """Return the dependencies of arrays: the union of those of their elements."""
    on = [pair for each in elements for pair in zip(each.dependencies, each.kinds, strict=True)]
    return FmiUnknown(array.value_reference, *_number_dependencies(on))


def _number_dependencies(on: list[tuple[int, FmiDependencyKind]]) -> _NumberedDependencies:
    """Return dependencies in order, each once; an array gets the least specific kind of its elements."""
    kinds: dict[int, FmiDependencyKind] = {}
    for number, kind in sorted(on):
        kinds[number] = max(kinds.get(number, kind), kind, key=_KINDS_BY_GENERALITY.index)
    return tuple(kinds), tuple(kinds.values())


def _initialization_kind(kind: FmiDependencyKind) -> FmiDependencyKind:
    """Return dependencies for initialization: parameters have no value yet, so no kind is ``fixed`` or ``tunable``."""
    return "constant" if kind == "constant" else "dependent"
