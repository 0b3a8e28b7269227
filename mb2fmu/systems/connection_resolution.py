"""Turn declared connections into links of outputs to inputs: convert units, resolve terminals, note delays."""

from __future__ import annotations

import difflib
import math

from mb2fmu.audit.description.description_records import DescribedTerminalMember
from mb2fmu.errors import Fault
from mb2fmu.systems.coupled_system import DeclaredSystemConnection
from mb2fmu.systems.fmu_component import FmuComponent, compute_unit_conversion
from mb2fmu.systems.power_bond_resolution import ConnectedTerminalBondResolver
from mb2fmu.systems.wired_system import ConnectedTerminals, WiringFaultCollector

ComponentVariable = tuple[int, str]
"""(component, variable)."""


class SystemConnectionResolver:
    """Resolves declared connections and collects the links that they make.

    Attributes:
        links: Input → (component, output, factor, offset, where it was declared).
        delays: Input → delay in s.
        terminal_bonds: Power bonds of connected terminals.
        terminal_links: Pairs of terminals.
    """

    def __init__(self, diagnostics: WiringFaultCollector) -> None:
        """Begin without connections."""
        self._diagnostics = diagnostics
        self.links: dict[ComponentVariable, tuple[int, str, float, float, str]] = {}
        self.delays: dict[ComponentVariable, float] = {}
        self.terminal_bonds: list[ConnectedTerminalBondResolver] = []
        self.terminal_links: list[ConnectedTerminals] = []

    def connect(self, declared: DeclaredSystemConnection) -> None:
        """Add a connection, or a fault."""
        earlier_inputs = set(self.links)
        self._resolve_connection(declared)
        self._record_delay(declared, set(self.links) - earlier_inputs)

    def _record_delay(self, declared: DeclaredSystemConnection, linked_inputs: set[tuple[int, str]]) -> None:
        """Note the delay of links."""
        self.delays |= dict.fromkeys(linked_inputs, declared.delay)
        if declared.delay == 0.0:
            return
        name, step = f"{declared.source} → {declared.target}", self._diagnostics.system.run_settings.stepping.step
        if not step * (1.0 - 1e-9) <= declared.delay < float("inf"):
            problem = f"{name}: its delay is {declared.delay:g} s, the communication step {step:g} s"
            self._diagnostics.faults.append(
                Fault(problem, declared.where, "give a delay of at least one step, or a shorter step")
            )
        self._diagnostics.notes.append(
            f"{name} arrives {declared.delay:g} s late; other masters pass it on after their own step"
        )

    def _resolve_connection(self, declared: DeclaredSystemConnection) -> None:
        """Join two variables or two terminals; add a fault with similar names where that cannot be done."""
        ends = [
            self._diagnostics.resolve_qualified_name(qualified_name, declared.where)
            for qualified_name in (declared.source, declared.target)
        ]
        if None in ends:
            return
        (source_component, source_name), (target_component, target_name) = [
            resolved for resolved in ends if resolved is not None
        ]
        source, target = self._diagnostics.components[source_component], self._diagnostics.components[target_component]
        are_variables = (source_name in source.variables, target_name in target.variables)
        if are_variables == (True, True):
            self._link_variables(
                source_component,
                source_name,
                target_component,
                target_name,
                declared.where,
                convert=declared.convert,
                transformation=declared.transformation,
            )
            return
        if source_name in source.terminals and target_name in target.terminals:
            self._link_terminals(source_component, source_name, target_component, target_name, declared.where)
            if declared.transformation is not None or not declared.convert:
                problem = (
                    f"{declared.source} and {declared.target} are terminals, whose members are converted as they are"
                )
                remedy = "leave transformation= and convert= out, or connect the variables one by one"
                self._diagnostics.faults.append(Fault(problem, declared.where, remedy))
            return
        unknown_name_faults = [
            _unknown_variable_fault(component, name, declared.where)
            for component, name, is_variable in (
                (source, source_name, are_variables[0]),
                (target, target_name, are_variables[1]),
            )
            if not is_variable and name not in component.terminals
        ]
        if unknown_name_faults:
            self._diagnostics.faults += unknown_name_faults
            return
        problem = f"{declared.source} and {declared.target} do not fit"
        remedy = "connect a terminal with a terminal, or an output with an input"
        self._diagnostics.faults.append(Fault(problem, declared.where, remedy))

    def _link_variables(
        self,
        source_index: int,
        output_name: str,
        target_index: int,
        input_name: str,
        where: str,
        sign: float = 1.0,
        *,
        convert: bool = True,
        transformation: tuple[float, float] | None = None,
    ) -> None:
        """Link an output to an input; ``transformation`` (factor, offset) follows the conversion of units."""
        source, target = self._diagnostics.components[source_index], self._diagnostics.components[target_index]
        names = f"{source.name}.{output_name}", f"{target.name}.{input_name}"
        if not self._check_causalities(source, output_name, target, input_name, where):
            return
        if (target_index, input_name) in self.links:
            earlier_link = self.links[target_index, input_name]
            earlier_source = f"{self._diagnostics.components[earlier_link[0]].name}.{earlier_link[1]}"
            remedy = (
                f"keep one of {earlier_source} (at {earlier_link[4]}) and {names[0]}; "
                "sums need an input each, or an FMU that adds"
            )
            self._diagnostics.faults.append(Fault(f"{names[1]} has two sources", where, remedy))
            return
        units = source.unit(output_name), target.unit(input_name)
        try:
            factor, offset = compute_unit_conversion(*units) if convert else (1.0, 0.0)
        except ValueError as error:
            remedy = "connect quantities of the same kind, or put an FMU between them"
            self._diagnostics.faults.append(Fault(f"{names[0]} → {names[1]}: {error}", where, remedy))
            return
        if (units[0] is None) != (units[1] is None):
            bare_name = names[0] if units[0] is None else names[1]
            self._diagnostics.notes.append(
                f"{names[0]} → {names[1]}: {bare_name} has no unit, so nothing was checked or converted"
            )
        if (factor, offset) != (1.0, 0.0) and units[0] and units[1]:
            self._diagnostics.notes.append(
                f"{names[0]} → {names[1]}: converted from {units[0].name} to {units[1].name} (× {factor:.9g}"
                + (f" + {offset:.9g})" if offset else ")")
            )
        if transformation is not None and not all(map(math.isfinite, transformation)):
            problem = f"{names[0]} → {names[1]}: factor and offset are {transformation[0]!r} and {transformation[1]!r}"
            self._diagnostics.faults.append(Fault(problem, where, "give finite numbers"))
            return
        if transformation is not None:
            factor, offset = transformation[0] * factor, transformation[0] * offset + transformation[1]
        self.links[target_index, input_name] = (source_index, output_name, sign * factor, sign * offset, where)

    def _check_causalities(
        self, source: FmuComponent, output_name: str, target: FmuComponent, input_name: str, where: str
    ) -> bool:
        """Return whether the variables are an output and an input; add a fault for each that is not."""
        if output_name not in source.outputs:
            causality = source.variables[output_name].causality
            hint = "; turn the connection around" if causality == "input" else ""
            problem = f"{source.name}.{output_name} is no output, but {causality}"
            self._diagnostics.faults.append(Fault(problem, where, f"the first one must be an output{hint}"))
        if input_name not in target.inputs:
            problem = f"{target.name}.{input_name} is no input, but {target.variables[input_name].causality}"
            self._diagnostics.faults.append(Fault(problem, where, "the second one must be an input"))
        return output_name in source.outputs and input_name in target.inputs

    def _link_terminals(
        self, first_component: int, first_terminal: str, second_component: int, second_terminal: str, where: str
    ) -> None:
        """Link the members of two terminals."""
        first_members = {
            member.name: member for member in self._diagnostics.components[first_component].terminals[first_terminal]
        }
        second_members = {
            member.name: member for member in self._diagnostics.components[second_component].terminals[second_terminal]
        }
        names = (
            f"{self._diagnostics.components[first_component].name}.{first_terminal}",
            f"{self._diagnostics.components[second_component].name}.{second_terminal}",
        )
        earlier_inputs = set(self.links)
        for shared_name in [member_name for member_name in first_members if member_name in second_members]:
            self._link_terminal_members(
                (first_component, first_members[shared_name]),
                (second_component, second_members[shared_name]),
                f"{names[0]} and {names[1]}: member {shared_name}",
                where,
            )
        if set(self.links) == earlier_inputs:
            member_lists = ", ".join(first_members), ", ".join(second_members)
            problem = (
                f"no output of {names[0]} ({member_lists[0]}) meets an input of {names[1]} ({member_lists[1]}), "
                "or the reverse"
            )
            remedy = "one side must give the motion and take the force, the other the reverse"
            self._diagnostics.faults.append(Fault(problem, where, remedy))
            return
        self.terminal_links.append(
            ConnectedTerminals(
                ((first_component, first_terminal), (second_component, second_terminal)),
                frozenset(set(self.links) - earlier_inputs),
            )
        )
        self.terminal_bonds.append(
            ConnectedTerminalBondResolver(
                f"{names[0]} – {names[1]}",
                self._diagnostics.components,
                ((first_component, first_members), (second_component, second_members)),
            )
        )

    def _link_terminal_members(
        self,
        first_member_key: tuple[int, DescribedTerminalMember],
        second_member_key: tuple[int, DescribedTerminalMember],
        description: str,
        where: str,
    ) -> None:
        """Join two members of terminals; flows into both sides sum to zero, so one gets the sign −1."""
        (first_component, first_member), (second_component, second_member) = first_member_key, second_member_key
        causalities = [
            self._causality(first_component, first_member.variable),
            self._causality(second_component, second_member.variable),
        ]
        are_flows = first_member.kind != "signal", second_member.kind != "signal"
        if are_flows[0] != are_flows[1]:
            remedy = "declare it as a flow on both sides, or on none"
            self._diagnostics.faults.append(Fault(f"{description} is a flow on one side only", where, remedy))
            return
        # Flows into both sides sum to zero: what one gives is minus what the other takes.
        sign = -1.0 if are_flows[0] and first_member.kind == second_member.kind else 1.0
        if causalities == ["output", "input"]:
            self._link_variables(
                first_component, first_member.variable, second_component, second_member.variable, where, sign
            )
        elif causalities == ["input", "output"]:
            self._link_variables(
                second_component, second_member.variable, first_component, first_member.variable, where, sign
            )
        elif causalities == ["input", "input"]:
            remedy = "one side must give it: cut the mechanism so that one takes motion and gives force"
            self._diagnostics.faults.append(Fault(f"{description} is an input on both sides", where, remedy))
        # Two outputs of motion are redundant if the other one of the pair is connected; nothing to link.

    def _causality(self, component_index: int, variable: str) -> str:
        """Return the causality of a component's variable; empty if it has none of that name."""
        component = self._diagnostics.components[component_index]
        return component.variables[variable].causality if variable in component.variables else ""


def _unknown_variable_fault(component: FmuComponent, name: str, where: str) -> Fault:
    """Return the fault of an unknown variable, or of one that is no scalar of doubles."""
    for variable in component.description.variables:
        if variable.name == name:
            shape = "an array" if variable.dimensions else f"of type {variable.type}"
            problem = f"{component.name}.{name} is {shape}: only scalars of doubles can be connected"
            return Fault(problem, where, "put the conversion into an FMU, or leave the connection out")
    connectable_names = list(dict.fromkeys((*component.inputs, *component.outputs, *component.terminals)))
    similar_names = difflib.get_close_matches(name, connectable_names, n=3, cutoff=0.4) or connectable_names[:8]
    remedy = (
        f"did you mean {', '.join(f'{component.name}.{name}' for name in similar_names)}?"
        if similar_names
        else ("it has none that can be connected")
    )
    return Fault(f"{component.name} has no variable or terminal {name}", where, remedy)
