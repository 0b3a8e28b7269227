"""Power bonds of a system: declared ones, and those of connected terminals."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mb2fmu.audit.description.description_records import TerminalMember
from mb2fmu.errors import Fault
from mb2fmu.systems.coupled_system import DeclaredBond
from mb2fmu.systems.fmu_component import FmuComponent
from mb2fmu.systems.resolved_system import BondSide, BondVariable, PowerBond
from mb2fmu.systems.wired_system import WiringDiagnostics

Ports = Mapping[tuple[int, str], int]
"""(component, variable) → index of the port."""


class DeclaredBonds:
    """Bonds that a system declares, once ports are numbered."""

    def __init__(self, told: WiringDiagnostics, ins: Ports, outs: Ports) -> None:
        """Begin with the system that is checked."""
        self._told, self._ins, self._outs = told, ins, outs

    def bond(self, declared: DeclaredBond) -> PowerBond | None:
        """Return a bond that the system declares; None, with a fault, if a side is no effort * flow."""
        sides = []
        for text in declared.sides:
            match = re.fullmatch(r"\s*(-?)\s*(\S+)\s*\*\s*(\S+)\s*", text)
            signals = [self._signal(part) for part in match.groups()[1:]] if match else [None]
            if match is None or None in signals:
                remedy = "write effort * flow of connected inputs and outputs: left.F * der(left.x)"
                self._told.faults.append(
                    Fault(f"{text!r} is no power of the bond {declared.name}", declared.where, remedy)
                )
                return None
            (component, effort), (_, flow) = [each for each in signals if each is not None]
            sides.append(BondSide(component, effort, flow, -1.0 if match[1] else 1.0))
        return PowerBond(declared.name, tuple(sides))

    def _signal(self, text: str) -> tuple[int, BondVariable] | None:
        """Return component and signal of a connected variable, or of der(variable); None if it is not connected."""
        match = re.fullmatch(r"der\((.+)\)", text)
        inner = match[1] if match else text
        name, _, variable = inner.partition(".")
        component = self._told.place.get(name, -1)
        unit = (
            self._told.components[component].unit(variable)
            if (component, variable) in {*self._ins, *self._outs}
            else None
        )
        factor = unit.factor if unit else 1.0
        if (component, variable) in self._ins:
            return component, BondVariable("input", self._ins[component, variable], factor, bool(match))
        if (component, variable) in self._outs:
            return component, BondVariable("output", self._outs[component, variable], factor, bool(match))
        return None


@dataclass(frozen=True)
class TerminalBond:
    """The bond of two connected terminals, once ports are numbered."""

    name: str
    components: tuple[FmuComponent, ...]
    sides: tuple[tuple[int, Mapping[str, TerminalMember]], ...]

    def __call__(self, ins: Ports, outs: Ports) -> Iterator[PowerBond]:
        """Yield the bond, if both sides have a flow and a motion."""
        made = []
        for component, members in self.sides:
            side = self._side(component, members, ins, outs)
            if side is None:
                return
            made.append(side)
        yield PowerBond(self.name, tuple(made))

    def _side(
        self, k: int, members: Mapping[str, TerminalMember], ins: Ports,
        outs: Ports,
    ) -> BondSide | None:  # fmt: skip
        """Return effort and flow of one side: its one flow member and a rate; None if it has not both."""

        def signal(variable: str, *, rate: bool) -> BondVariable | None:
            """Return a variable of component ``k`` as an input or output of the master; None if it is neither."""
            unit = self.components[k].unit(variable) if variable in self.components[k].variables else None
            factor = unit.factor if unit else 1.0
            if (k, variable) in ins:
                return BondVariable("input", ins[k, variable], factor, rate)
            return BondVariable("output", outs[k, variable], factor, rate) if (k, variable) in outs else None

        flows = [each for each in members.values() if each.kind != "signal"]
        rates = [members[each] for each in ("v", "w") if each in members]
        places = [members[each] for each in ("s", "phi") if each in members]
        if len(flows) != 1:
            return None
        effort = signal(flows[0].variable, rate=False)
        found = [each for m in rates if (each := signal(m.variable, rate=False))]
        found += [each for m in places if (each := signal(m.variable, rate=True))]
        if effort is None or not found:
            return None
        return BondSide(k, effort, found[0], 1.0 if flows[0].kind == "inflow" else -1.0)
