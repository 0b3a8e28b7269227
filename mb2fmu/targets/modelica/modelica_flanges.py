"""A model with the 1-D mechanical flanges of the Modelica Standard Library around the flat one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

MemberKind = Literal["signal", "inflow", "outflow"]


@dataclass(frozen=True, slots=True)
class TerminalVariables:
    """Variables that are connected together, as in a terminal of the FMU.

    Attributes:
        name: Of the terminal.
        members: (name as ``tau``, ``phi``, ``w``; variable; kind).
    """

    name: str
    members: tuple[tuple[str, str, MemberKind], ...]


@dataclass(frozen=True, slots=True)
class ModelicaFlangeFileContent:
    """Content of the file of flanges.

    Attributes:
        flanges: (class of Modelica.Mechanics, name, description).
        equations: Between flanges and the flat model ``unit``.
        used: Identifiers of the flat model's inputs that have an equation.
    """

    flanges: tuple[tuple[str, str, str], ...]
    equations: tuple[str, ...]
    used: frozenset[str]


_FLANGE_TYPES: Mapping[tuple[str, str], tuple[str, str]] = MappingProxyType(
    {("tau", "phi"): ("Rotational", "w"), ("f", "s"): ("Translational", "v")}
)
"""Names of effort and place → package of Modelica.Mechanics, name of the rate."""


def form_modelica_flanges(
    terminals: Sequence[TerminalVariables], inputs: Mapping[str, str], others: Mapping[str, str]
) -> ModelicaFlangeFileContent | None:
    """Return flanges for terminals that form a power bond (effort and position) of which one is an input.

    The effort of a flange is positive into the component, as an ``inflow`` is.

    Args:
        terminals: Those of the FMU.
        inputs: Name in the FMU → identifier in the flat model; likewise ``others``.
        others: States and outputs.

    Returns:
        None: there is no such terminal.
    """
    flanges: list[tuple[str, str, str]] = []
    equations: list[str] = []
    used = set[str]()
    for terminal in terminals:
        members = {name: (variable, kind) for name, variable, kind in terminal.members}
        for (effort, place), (package, rate) in _FLANGE_TYPES.items():
            if effort not in members or place not in members:
                continue
            (force, kind), (position, _) = members[effort], members[place]
            velocity = members.get(rate, ("", ""))[0]
            name = f"flange{len(flanges) + 1}"
            sign = "-" if kind == "outflow" else ""
            if force in inputs and position in others:
                equations += [f"{name}.{place} = unit.{others[position]}"]
                equations += [f"unit.{inputs[force]} = {sign}{name}.{effort}"]
                used.add(inputs[force])
            elif force in others and position in inputs:
                equations += [f"unit.{inputs[position]} = {name}.{place}"]
                equations += [f"{name}.{effort} = {sign}unit.{others[force]}"]
                used.add(inputs[position])
                if velocity in inputs:
                    equations += [f"unit.{inputs[velocity]} = der({name}.{place})"]
                    used.add(inputs[velocity])
            else:
                continue
            flanges.append((package, name, terminal.name))
    return ModelicaFlangeFileContent(tuple(flanges), tuple(equations), frozenset(used)) if flanges else None
