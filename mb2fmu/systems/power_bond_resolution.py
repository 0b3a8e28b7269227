"""Power bonds of a system: declared ones, and those of connected terminals."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mb2fmu.audit.description.description_records import DescribedTerminalMember
from mb2fmu.errors import Fault
from mb2fmu.systems.coupled_system import DeclaredPowerBond
from mb2fmu.systems.fmu_component import FmuComponent
from mb2fmu.systems.port_and_bond_records import PowerBond, PowerBondSide, PowerBondVariable
from mb2fmu.systems.wired_system import WiringFaultCollector

PortIndices = Mapping[tuple[int, str], int]
"""(component, variable) → index of the port."""


class DeclaredBondResolver:
    """Bonds that a system declares, once ports are numbered."""

    def __init__(self, diagnostics: WiringFaultCollector, input_ports: PortIndices, output_ports: PortIndices) -> None:
        """Begin with the system that is checked."""
        self._diagnostics, self._input_ports, self._output_ports = diagnostics, input_ports, output_ports

    def resolve_bond(self, declared: DeclaredPowerBond) -> PowerBond | None:
        """Return a bond that the system declares; None, with a fault, if a side is no effort * flow."""
        sides = []
        for side_text in declared.sides:
            match = re.fullmatch(r"\s*(-?)\s*(\S+)\s*\*\s*(\S+)\s*", side_text)
            signals = (
                [self._resolve_bond_variable(variable_text) for variable_text in match.groups()[1:]]
                if match
                else [None]
            )
            if match is None or None in signals:
                remedy = "write effort * flow of connected inputs and outputs: left.F * der(left.x)"
                self._diagnostics.faults.append(
                    Fault(f"{side_text!r} is no power of the bond {declared.name}", declared.where, remedy)
                )
                return None
            (component, effort), (_, flow) = [signal for signal in signals if signal is not None]
            sides.append(PowerBondSide(component, effort, flow, -1.0 if match[1] else 1.0))
        return PowerBond(declared.name, tuple(sides))

    def _resolve_bond_variable(self, text: str) -> tuple[int, PowerBondVariable] | None:
        """Return component and signal of a connected variable, or of der(variable); None if it is not connected."""
        derivative_match = re.fullmatch(r"der\((.+)\)", text)
        qualified_name = derivative_match[1] if derivative_match else text
        name, _, variable = qualified_name.partition(".")
        component = self._diagnostics.component_index.get(name, -1)
        unit = (
            self._diagnostics.components[component].unit(variable)
            if (component, variable) in {*self._input_ports, *self._output_ports}
            else None
        )
        factor = unit.factor if unit else 1.0
        if (component, variable) in self._input_ports:
            return component, PowerBondVariable(
                "input", self._input_ports[component, variable], factor, bool(derivative_match)
            )
        if (component, variable) in self._output_ports:
            return component, PowerBondVariable(
                "output", self._output_ports[component, variable], factor, bool(derivative_match)
            )
        return None


@dataclass(frozen=True)
class ConnectedTerminalBondResolver:
    """The bond of two connected terminals, once ports are numbered."""

    name: str
    components: tuple[FmuComponent, ...]
    sides: tuple[tuple[int, Mapping[str, DescribedTerminalMember]], ...]

    def __call__(self, input_ports: PortIndices, output_ports: PortIndices) -> Iterator[PowerBond]:
        """Yield the bond, if both sides have a flow and a motion."""
        sides = []
        for component, members in self.sides:
            side = self._resolve_side(component, members, input_ports, output_ports)
            if side is None:
                return
            sides.append(side)
        yield PowerBond(self.name, tuple(sides))

    def _resolve_side(
        self, component: int, members: Mapping[str, DescribedTerminalMember], input_ports: PortIndices,
        output_ports: PortIndices,
    ) -> PowerBondSide | None:  # fmt: skip
        """Return effort and flow of one side: its one flow member and a rate; None if it has not both."""

        def find_variable(variable: str, *, rate: bool) -> PowerBondVariable | None:
            """Find a variable of the component among the master's inputs and outputs; None if it is neither."""
            unit = (
                self.components[component].unit(variable) if variable in self.components[component].variables else None
            )
            factor = unit.factor if unit else 1.0
            if (component, variable) in input_ports:
                return PowerBondVariable("input", input_ports[component, variable], factor, rate)
            return (
                PowerBondVariable("output", output_ports[component, variable], factor, rate)
                if (component, variable) in output_ports
                else None
            )

        flows = [member for member in members.values() if member.kind != "signal"]
        rates = [members[name] for name in ("v", "w") if name in members]
        positions = [members[name] for name in ("s", "phi") if name in members]
        if len(flows) != 1:
            return None
        effort = find_variable(flows[0].variable, rate=False)
        flow_variables = [found for member in rates if (found := find_variable(member.variable, rate=False))]
        flow_variables += [found for member in positions if (found := find_variable(member.variable, rate=True))]
        if effort is None or not flow_variables:
            return None
        return PowerBondSide(component, effort, flow_variables[0], 1.0 if flows[0].kind == "inflow" else -1.0)
