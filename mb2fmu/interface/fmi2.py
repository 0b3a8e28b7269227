"""FMI 2.0's view of the interface: the model structure of a co-simulation unit without directional derivatives.

What 2.0.5 (section 2.2.8) wants to see of the dependencies differs by element:

- ``Outputs`` and ``Derivatives``: on inputs and time. Dependencies on states are given only where directional
  derivatives are provided, dependencies on parameters never.
- ``InitialUnknowns``: all outputs, derivatives and calculated parameters that are not ``exact``; on inputs, on time,
  and on everything whose ``initial`` is ``exact``: start values of states and parameters. Kinds: ``constant`` or
  ``dependent``.

A list is always written, empty where nothing is needed: a missing one means "depends on everything".
"""

from __future__ import annotations

from dataclasses import dataclass

from mb2fmu.interface.description import FmuInterface, FmuVariable, Kind, Source

_DIRECT: tuple[Source, ...] = ("time", "input")


@dataclass(frozen=True, slots=True)
class Unknown:
    """One element of the model structure; indices count the variables from 1, as FMI 2.0 does.

    Attributes:
        index: Of the unknown.
        dependencies: Indices of what it depends on, ascending.
        kinds: One per dependency.
    """

    index: int
    dependencies: tuple[int, ...]
    kinds: tuple[Kind, ...]


@dataclass(frozen=True, slots=True)
class ModelStructure:
    """FMI 2.0's ``ModelStructure``."""

    outputs: tuple[Unknown, ...]
    derivatives: tuple[Unknown, ...]
    initial_unknowns: tuple[Unknown, ...]


def _at_start(kind: Kind) -> Kind:
    """Before initialization no parameter has its value yet: nothing is ``fixed`` or ``tunable``."""
    return "constant" if kind == "constant" else "dependent"


def indices(interface: FmuInterface) -> dict[str, int]:
    """Index of each variable by name, counted from 1."""
    return {variable.name: i for i, variable in enumerate(interface.variables, start=1)}


def model_structure(interface: FmuInterface) -> ModelStructure:
    """The structure of a co-simulation unit without directional derivatives."""
    index = indices(interface)
    direct = {variable.name for variable in interface.of(*_DIRECT)}

    def unknown(variable: FmuVariable, *, at_start: bool) -> Unknown:
        seen = sorted(
            (index[dependency.on], _at_start(dependency.kind) if at_start else dependency.kind)
            for dependency in variable.dependencies
            if at_start or dependency.on in direct
        )
        return Unknown(index[variable.name], tuple(i for i, _ in seen), tuple(kind for _, kind in seen))

    derivatives = sorted(
        (variable for variable in interface.variables if variable.derivative_of is not None),
        key=lambda variable: index[variable.derivative_of or ""],
    )
    starting = [
        variable
        for variable in interface.variables
        if variable.initial == "calculated"
        and (variable.causality in ("output", "calculatedParameter") or variable.derivative_of is not None)
    ]
    return ModelStructure(
        outputs=tuple(unknown(v, at_start=False) for v in interface.variables if v.causality == "output"),
        derivatives=tuple(unknown(variable, at_start=False) for variable in derivatives),
        initial_unknowns=tuple(unknown(variable, at_start=True) for variable in starting),
    )
