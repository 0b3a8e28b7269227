"""``wire_system``: wire a declared system and its FMUs, set its values, or report all faults at once."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import get_args

from mb2fmu.errors import Fault
from mb2fmu.systems.connection_resolution import SystemConnectionResolver
from mb2fmu.systems.coupled_system import CoupledSystem
from mb2fmu.systems.fmu_component import FmuComponent, FmuUnitDefinition, compute_unit_conversion
from mb2fmu.systems.master.input_evaluation_order import (
    format_algebraic_loop,
    order_gauss_seidel_components,
    order_inputs_by_level,
)
from mb2fmu.systems.port_and_bond_records import (
    EXTRAPOLATION_ORDERS,
    ComponentPort,
    PortLink,
    SteppingMethod,
    SystemWiring,
)
from mb2fmu.systems.power_bond_resolution import DeclaredBondResolver
from mb2fmu.systems.wired_system import CouplingError, MappedComponentParameter, WiredSystem, WiringFaultCollector
from mb2fmu.units import parse_unit

_OPTION_CHOICES = {"method": get_args(SteppingMethod), "loops": ("refuse", "solve"), "unstable": ("refuse", "run")}
"""Options of the stepping that are words → their possible values."""


def wire_system(system: CoupledSystem, components: Sequence[FmuComponent]) -> WiredSystem:
    """Check a declared system and its FMUs, and resolve its connections.

    Args:
        system: Declared system.
        components: FMUs, in the order of declaration.

    Raises:
        CouplingError: With all faults.
    """
    diagnostics = WiringFaultCollector(system, components, find_system_declaration_faults(system))
    connection_resolver = SystemConnectionResolver(diagnostics)
    for connection in system.connections:
        connection_resolver.connect(connection)
    parameter_values = _SystemParameterValueResolver(diagnostics)
    values = tuple(parameter_values.component_values(index) for index in range(len(diagnostics.components)))
    mapped_parameters = tuple(parameter_values.map_system_parameters(values))
    wiring = _make_wiring(diagnostics, connection_resolver, values)
    input_ports = {(port.component, port.name): i for i, port in enumerate(wiring.inputs)}
    output_ports = {(port.component, port.name): i for i, port in enumerate(wiring.outputs)}
    bonds = [
        bond for make_bonds in connection_resolver.terminal_bonds for bond in make_bonds(input_ports, output_ports)
    ]
    if (
        not diagnostics.faults
    ):  # A bond names connected variables: after a wrong connection its fault would only be a second one.
        bond_resolver = DeclaredBondResolver(diagnostics, input_ports, output_ports)
        bonds += [bond for declared_bond in system.bonds if (bond := bond_resolver.resolve_bond(declared_bond))]
    _check_loops_and_capabilities(diagnostics, wiring)
    if diagnostics.faults:
        raise CouplingError(f"{system.name} cannot be coupled:", diagnostics.faults)
    wiring = replace(wiring, bonds=tuple(bonds))
    return WiredSystem(
        system,
        diagnostics.components,
        wiring,
        values,
        tuple(diagnostics.notes),
        mapped_parameters,
        tuple(connection_resolver.terminal_links),
    )


def find_system_declaration_faults(system: CoupledSystem) -> Iterator[Fault]:
    """Yield faults of names and numbers, which need no FMU."""
    if not system.name.isidentifier():
        yield Fault(f"a system cannot be called {system.name!r}", system.where, "use letters, digits and _")
    locations_by_name: dict[str, str] = {}
    for component in system.components:
        if not component.name.isidentifier():
            yield Fault(
                f"a component cannot be called {component.name!r}", component.where, "use letters, digits and _"
            )
        if component.name.casefold() in locations_by_name:
            problem = f"two components are called {component.name}"
            yield Fault(
                problem,
                component.where,
                f"rename it; the other stands at {locations_by_name[component.name.casefold()]}",
            )
        locations_by_name.setdefault(component.name.casefold(), component.where)
    if not system.components:
        yield Fault("it has no components", system.where, "add them by component(name, source)")
    yield from _find_number_faults(system)


def _find_number_faults(system: CoupledSystem) -> Iterator[Fault]:
    """Yield faults of the run's numbers and words."""
    run_settings, stepping = system.run_settings, system.run_settings.stepping
    required_numbers = {
        "stop": run_settings.stop,
        "step": stepping.step,
        "tolerance": run_settings.tolerance,
        "converged": stepping.converged,
    }
    optional_numbers = {"accuracy": stepping.accuracy, "longest": stepping.longest, "bound": run_settings.bound}
    for name, value in (
        required_numbers | {name: value for name, value in optional_numbers.items() if value is not None}
    ).items():
        if not (isinstance(value, Real) and 0.0 < value < float("inf")):
            yield Fault(f"{name} is {value!r}", system.where, "give a positive number")
    for name, choices in _OPTION_CHOICES.items():
        if (choice := getattr(stepping, name)) not in choices:
            yield Fault(f"{name} is {choice!r}", system.where, f"give {' or '.join(choices)}")
    if stepping.order not in EXTRAPOLATION_ORDERS:
        yield Fault(f"order is {stepping.order!r}", system.where, "give 0 (held), 1 (lines) or 2 (parabolas)")
    for name, count in (("passes", stepping.passes), ("substeps", stepping.substeps)):
        if not isinstance(count, Integral) or count < 1:
            yield Fault(f"{name} is {count!r}", system.where, "give 1 or more")


def _make_wiring(
    diagnostics: WiringFaultCollector,
    connection_resolver: SystemConnectionResolver,
    component_values: Sequence[Mapping[str, float]],
) -> SystemWiring:
    """Return ports and links, without bonds."""
    inputs = [
        _make_port(diagnostics, index, variable)
        for index, component in enumerate(diagnostics.components)
        for variable in component.inputs
        if (index, variable) in connection_resolver.links
    ]
    outputs = [
        _make_port(diagnostics, index, variable)
        for index, component in enumerate(diagnostics.components)
        for variable in component.outputs
    ]
    input_ports = {(port.component, port.name): position for position, port in enumerate(inputs)}
    output_ports = {(port.component, port.name): position for position, port in enumerate(outputs)}
    links = tuple(
        PortLink(
            output_ports[index, variable],
            input_ports[target],
            factor,
            offset,
            connection_resolver.delays[target],
            _find_input_start(diagnostics, target, component_values),
        )
        for target, (index, variable, factor, offset, _) in connection_resolver.links.items()
    )
    feedthrough = frozenset(
        (input_ports[index, input_name], output_ports[index, output_name])
        for index, component in enumerate(diagnostics.components)
        for output_name in component.outputs
        for input_name in component.feedthrough(output_name)
        if (index, input_name) in input_ports
    )
    return SystemWiring(
        tuple(component.name for component in diagnostics.components), tuple(inputs), tuple(outputs), links, feedthrough
    )


def _make_port(diagnostics: WiringFaultCollector, index: int, name: str) -> ComponentPort:
    """Return the port of a component's variable, with its value reference and unit of measure."""
    component = diagnostics.components[index]
    unit = component.unit(name)
    return ComponentPort(index, name, component.variables[name].reference or 0, unit.name if unit else "")


def _find_input_start(
    diagnostics: WiringFaultCollector, target: tuple[int, str], component_values: Sequence[Mapping[str, float]]
) -> float:
    """Return the start value of an input: its own, or the system's."""
    component, name = target
    declared_start = diagnostics.components[component].variables[name].get("start")
    return component_values[component].get(name, float(declared_start or 0.0))


def _check_loops_and_capabilities(diagnostics: WiringFaultCollector, wiring: SystemWiring) -> None:
    """Add faults for algebraic loops and for components without the capabilities that the stepping needs."""
    stepping, where = diagnostics.system.run_settings.stepping, diagnostics.system.where
    levels = order_inputs_by_level(wiring)
    for group, is_loop in zip(levels.groups, levels.loops, strict=True):
        if is_loop:
            _check_algebraic_loop(diagnostics, format_algebraic_loop(wiring, group))
    for component in diagnostics.components:
        if stepping.needs_rollback and not component.capabilities.saves_state:
            reason = "repeated passes" if stepping.passes > 1 else "steps of adapted size"
            problem = f"{reason} need FMUs that can go back, which {component.name} cannot"
            remedy = "use an FMU with canGetAndSetFMUstate, or passes=1 and no accuracy"
            diagnostics.faults.append(Fault(problem, where, remedy))
        if (stepping.accuracy is not None or stepping.substeps > 1) and not component.capabilities.variable_step:
            problem = f"{component.name} makes no steps of any size"
            diagnostics.faults.append(Fault(problem, where, "leave out accuracy and substeps"))
    try:
        order_gauss_seidel_components(wiring, stepping.sequence)
    except ValueError as error:
        diagnostics.faults.append(Fault(str(error), where))


def _check_algebraic_loop(diagnostics: WiringFaultCollector, description: str) -> None:
    """Note an algebraic loop that the master solves; otherwise add a fault."""
    if diagnostics.system.run_settings.stepping.loops == "solve":
        diagnostics.notes.append(
            f"algebraic loop, solved at each communication point: {description}; other masters do not"
        )
        return
    remedy = (
        "cut elsewhere or by a compliant element, pass accelerations through a filter, or "
        'let the master solve it: experiment(loops="solve")'
    )
    diagnostics.faults.append(Fault(f"algebraic loop: {description}", diagnostics.system.where, remedy))


class _SystemParameterValueResolver:
    """Resolves declared values of parameters to numbers in the variables' own units."""

    def __init__(self, diagnostics: WiringFaultCollector) -> None:
        """Begin with the system that is checked."""
        self._diagnostics = diagnostics

    def component_values(self, index: int) -> dict[str, float]:
        """Return the values declared with a component; add faults for those that cannot be set."""
        component, declared = self._diagnostics.components[index], self._diagnostics.system.components[index]
        values = {}
        for name, declared_value in declared.values.items():
            where = f"{declared.where}, {component.name}.{name}"
            value, unit = declared_value if isinstance(declared_value, tuple) else (declared_value, None)
            if not self._check_finite(value, where):
                continue
            if (conversion := self._find_settable_conversion(component, name, unit, where)) is not None:
                values[name] = conversion[0] * float(value) + conversion[1]
                self._check_bounds(component, name, values[name], where)
        return values

    def map_system_parameters(self, component_values: Sequence[dict[str, float]]) -> Iterator[MappedComponentParameter]:
        """Yield parameters of the system and their variables; add the values to ``component_values``."""
        names: set[str] = set()
        for index, declared in enumerate(self._diagnostics.system.parameters):
            if not declared.targets or declared.name in names:
                problem = f"the parameter {declared.name} " + (
                    "goes nowhere" if not declared.targets else "is there twice"
                )
                self._diagnostics.faults.append(
                    Fault(problem, declared.where, "name it once, with the variables that follow it")
                )
            names.add(declared.name)
            value, unit = declared.value if isinstance(declared.value, tuple) else (declared.value, None)
            if not self._check_finite(value, f"{declared.where}, {declared.name}"):
                continue
            for target in declared.targets:
                if (resolved := self._diagnostics.resolve_qualified_name(target.variable, declared.where)) is None:
                    continue
                component_index, name = resolved
                where = f"{declared.where}, {target.variable}"
                if name in component_values[component_index]:
                    remedy = "give it once: by component(values=) or by one parameter of the system"
                    self._diagnostics.faults.append(Fault(f"{target.variable} has two values", where, remedy))
                    continue
                conversion = self._find_settable_conversion(
                    self._diagnostics.components[component_index], name, unit if target.convert else None, where
                )
                if conversion is None:
                    continue
                mapped_parameter = MappedComponentParameter(
                    index,
                    component_index,
                    name,
                    target.factor * conversion[0],
                    target.factor * conversion[1] + target.offset,
                )
                component_values[component_index][name] = (
                    mapped_parameter.factor * float(value) + mapped_parameter.offset
                )
                self._check_bounds(
                    self._diagnostics.components[component_index], name, component_values[component_index][name], where
                )
                yield mapped_parameter

    def _check_finite(self, value: float, where: str) -> bool:
        """Return whether a value is a finite number; add a fault if it is not."""
        try:
            if math.isfinite(float(value)):
                return True
        except (TypeError, ValueError):
            pass
        self._diagnostics.faults.append(Fault(f"the value {value!r} is no finite number", where, "give a number"))
        return False

    def _check_bounds(self, component: FmuComponent, name: str, value: float, where: str) -> None:
        """Add a fault if a value, in the variable's own unit, is outside of the bounds that the FMU declares."""
        for bound, side in (("min", -1.0), ("max", 1.0)):
            limit = component.variables[name].get(bound)
            if limit is not None and side * value > side * float(limit):
                description = "below the least" if bound == "min" else "above the greatest"
                problem = f"{value!r} is {description} value of the FMU, {limit}"
                self._diagnostics.faults.append(Fault(problem, where, f"give a value within the variable's {bound}"))

    def _find_settable_conversion(
        self, component: FmuComponent, name: str, unit: str | None, where: str
    ) -> tuple[float, float] | None:
        """Return (factor, offset) from a unit to that of a settable variable; None after a fault."""
        if name not in component.variables:
            similar_names = difflib.get_close_matches(name, component.variables, n=3)
            remedy = f"did you mean {', '.join(similar_names)}?" if similar_names else "see its modelDescription.xml"
            self._diagnostics.faults.append(Fault("the FMU has no such variable", where, remedy))
            return None
        variable = component.variables[name]
        if variable.initial not in {"exact", "approx"} and variable.causality != "input":
            problem = f"cannot be set: it is {variable.causality}, {variable.initial or variable.variability}"
            self._diagnostics.faults.append(Fault(problem, where, "set parameters, inputs and start values"))
            return None
        try:
            return self._convert_to_variable_unit(component, name, unit)
        except ValueError as error:
            self._diagnostics.faults.append(Fault(str(error), where, "give the value in a unit of the same quantity"))
            return None

    def _convert_to_variable_unit(self, component: FmuComponent, name: str, unit: str | None) -> tuple[float, float]:
        """Return (factor, offset) from a unit of measure to the variable's own; (1, 0) without a unit."""
        if unit is None:
            return 1.0, 0.0
        parsed_unit = parse_unit(unit)
        return compute_unit_conversion(
            FmuUnitDefinition(unit, parsed_unit.whole_exponents, parsed_unit.factor, parsed_unit.offset),
            component.unit(name),
        )
