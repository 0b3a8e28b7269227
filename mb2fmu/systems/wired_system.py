"""A system with checked connections, and the data that its checks share."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mb2fmu.errors import Fault, Mb2FmuError
from mb2fmu.systems.coupled_system import CoupledSystem
from mb2fmu.systems.fmu_component import FmuComponent
from mb2fmu.systems.port_and_bond_records import SystemWiring


class CouplingError(Mb2FmuError):
    """FMUs cannot be coupled as declared, or their coupling cannot work."""


@dataclass(frozen=True, slots=True)
class MappedComponentParameter:
    """A variable that follows a parameter of the system: value = factor * parameter + offset, each in its own unit.

    Attributes:
        parameter: Index into the system's declared parameters.
        component: Index of the component.
        variable: Variable of the component.
        factor: Factor, with the conversion of units.
        offset: Offset in the variable's unit.
    """

    parameter: int
    component: int
    variable: str
    factor: float
    offset: float


@dataclass(frozen=True, slots=True)
class ConnectedTerminals:
    """Two connected terminals.

    Attributes:
        ends: (component, terminal) of each, in the order of declaration.
        targets: (component, variable) of the inputs that this connection feeds.
    """

    ends: tuple[tuple[int, str], tuple[int, str]]
    targets: frozenset[tuple[int, str]]


@dataclass(frozen=True)
class WiredSystem:
    """A system whose connections were checked.

    Attributes:
        system: Declared system.
        components: FMUs, in order.
        wiring: Ports, links and bonds for the master.
        values: Per component: variable → value in its own unit; those of mapped parameters are among them.
        notes: Remarks for the user that are no faults.
        mapped_parameters: Variables that follow parameters of the system.
        terminal_links: Connections that were made of terminals, not of variables.
    """

    system: CoupledSystem
    components: tuple[FmuComponent, ...]
    wiring: SystemWiring
    values: tuple[Mapping[str, float], ...]
    notes: tuple[str, ...]
    mapped_parameters: tuple[MappedComponentParameter, ...] = ()
    terminal_links: tuple[ConnectedTerminals, ...] = ()


class WiringFaultCollector:
    """Faults and notes that the checks of a system collect, and its components by name.

    Attributes:
        system: Declared system.
        components: FMUs, in the order of declaration.
        component_index: Name of a component → its index.
        faults: Faults found so far.
        notes: Remarks for the user that are no faults.
    """

    def __init__(self, system: CoupledSystem, components: Iterable[FmuComponent], faults: Iterable[Fault]) -> None:
        """Begin with the faults that need no FMU."""
        self.system, self.components = system, tuple(components)
        self.component_index = {component.name: index for index, component in enumerate(self.components)}
        self.faults: list[Fault] = list(faults)
        self.notes: list[str] = []

    def resolve_qualified_name(self, qualified_name: str, where: str) -> tuple[int, str] | None:
        """Return the parts of component.variable; None, with a fault, if there is no such component."""
        name, dot, variable = qualified_name.partition(".")
        if not dot or name not in self.component_index:
            similar_names = difflib.get_close_matches(name, self.component_index, n=2) or list(self.component_index)
            remedy = f"write component.variable; components are {', '.join(similar_names)}"
            self.faults.append(Fault(f"{qualified_name!r} names no component", where, remedy))
            return None
        return self.component_index[name], variable
