"""``wire_system``: wire a declared system and its FMUs, set its values, or report all faults at once."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import get_args

from mb2fmu.errors import Fault
from mb2fmu.systems.connection_resolution import ResolvedConnections
from mb2fmu.systems.coupled_system import CoupledSystem
from mb2fmu.systems.fmu_component import FmuComponent, UnitOfMeasure, unit_conversion
from mb2fmu.systems.master.evaluation_order import format_algebraic_loop, order_components, order_inputs_by_level
from mb2fmu.systems.power_bonds import DeclaredBonds
from mb2fmu.systems.resolved_system import ORDERS, ComponentPort, Method, PortLink, SystemWiring
from mb2fmu.systems.wired_system import CouplingError, MappedParameter, WiredSystem, WiringDiagnostics
from mb2fmu.units import parse_unit

_WORDS = {"method": get_args(Method), "loops": ("refuse", "solve"), "unstable": ("refuse", "run")}
"""Options of the stepping that are words, and what they can be."""


def wire_system(system: CoupledSystem, components: Sequence[FmuComponent]) -> WiredSystem:
    """Resolve a system.

    Args:
        system: As declared.
        components: Its units, in the order of declaration.

    Raises:
        CouplingError: With everything that is wrong.
    """
    told = WiringDiagnostics(system, components, find_name_faults(system))
    connections = ResolvedConnections(told)
    for connection in system.connections:
        connections.connect(connection)
    given = DeclaredParameterValues(told)
    values = tuple(given.of(k) for k in range(len(told.components)))
    mapped = tuple(given.mapped(values))
    wiring = _wiring(told, connections, values)
    ins = {(p.component, p.name): i for i, p in enumerate(wiring.inputs)}
    outs = {(p.component, p.name): i for i, p in enumerate(wiring.outputs)}
    bonds = [bond for make in connections.bonds for bond in make(ins, outs)]
    if (
        not told.faults
    ):  # A bond names connected variables: after a wrong connection its fault would only be a second one.
        declared = DeclaredBonds(told, ins, outs)
        bonds += [bond for each in system.bonds if (bond := declared.bond(each))]
    _judge(told, wiring)
    if told.faults:
        raise CouplingError(f"{system.name} cannot be coupled:", told.faults)
    wiring = replace(wiring, bonds=tuple(bonds))
    return WiredSystem(
        system, told.components, wiring, values, tuple(told.notes), mapped, tuple(connections.terminal_links)
    )


def find_name_faults(system: CoupledSystem) -> Iterator[Fault]:
    """Yield faults of names and numbers that need no unit."""
    if not system.name.isidentifier():
        yield Fault(f"a system cannot be called {system.name!r}", system.where, "use letters, digits and _")
    seen: dict[str, str] = {}
    for each in system.components:
        if not each.name.isidentifier():
            yield Fault(f"a component cannot be called {each.name!r}", each.where, "use letters, digits and _")
        if each.name.casefold() in seen:
            what = f"two components are called {each.name}"
            yield Fault(what, each.where, f"rename it; the other stands at {seen[each.name.casefold()]}")
        seen.setdefault(each.name.casefold(), each.where)
    if not system.components:
        yield Fault("it has no components", system.where, "add them by component(name, source)")
    yield from _number_faults(system)


def _number_faults(system: CoupledSystem) -> Iterator[Fault]:
    """Yield faults of the run's numbers and words."""
    run, stepping = system.run, system.run.stepping
    needed = {"stop": run.stop, "step": stepping.step, "tolerance": run.tolerance, "converged": stepping.converged}
    chosen = {"accuracy": stepping.accuracy, "longest": stepping.longest, "bound": run.bound}
    for name, value in (needed | {name: value for name, value in chosen.items() if value is not None}).items():
        if not (isinstance(value, Real) and 0.0 < value < float("inf")):
            yield Fault(f"{name} is {value!r}", system.where, "give a positive number")
    for name, words in _WORDS.items():
        if (word := getattr(stepping, name)) not in words:
            yield Fault(f"{name} is {word!r}", system.where, f"give {' or '.join(words)}")
    if stepping.order not in ORDERS:
        yield Fault(f"order is {stepping.order!r}", system.where, "give 0 (held), 1 (lines) or 2 (parabolas)")
    for name, count in (("passes", stepping.passes), ("substeps", stepping.substeps)):
        if not isinstance(count, Integral) or count < 1:
            yield Fault(f"{name} is {count!r}", system.where, "give 1 or more")


def _wiring(
    told: WiringDiagnostics, connections: ResolvedConnections, values: Sequence[Mapping[str, float]]
) -> SystemWiring:
    """Return ports and links, without bonds."""
    inputs = [_port(told, k, v) for k, each in enumerate(told.components) for v in each.inputs
              if (k, v) in connections.links]  # fmt: skip
    outputs = [_port(told, k, v) for k, each in enumerate(told.components) for v in each.outputs]
    ins = {(p.component, p.name): i for i, p in enumerate(inputs)}
    outs = {(p.component, p.name): i for i, p in enumerate(outputs)}
    links = tuple(
        PortLink(outs[k, v], ins[to], factor, offset, connections.delays[to], _start_of_input(told, to, values))
        for to, (k, v, factor, offset, _) in connections.links.items()
    )
    through = frozenset(
        (ins[k, i], outs[k, o])
        for k, each in enumerate(told.components)
        for o in each.outputs
        for i in each.feedthrough(o)
        if (k, i) in ins
    )
    return SystemWiring(tuple(each.name for each in told.components), tuple(inputs), tuple(outputs), links, through)


def _port(told: WiringDiagnostics, component: int, variable: str) -> ComponentPort:
    """Return the port of a component's variable, with its value reference and unit of measure."""
    each = told.components[component]
    unit = each.unit(variable)
    return ComponentPort(component, variable, each.variables[variable].reference or 0, unit.name if unit else "")


def _start_of_input(told: WiringDiagnostics, target: tuple[int, str], values: Sequence[Mapping[str, float]]) -> float:
    """Return the start value of an input: its own, or the system's."""
    component, name = target
    own = told.components[component].variables[name].get("start")
    return values[component].get(name, float(own or 0.0))


def _judge(told: WiringDiagnostics, wiring: SystemWiring) -> None:
    """Judge loops, and components that lack abilities for the stepping."""
    stepping, where = told.system.run.stepping, told.system.where
    found = order_inputs_by_level(wiring)
    for group, loop in zip(found.groups, found.loops, strict=True):
        if loop:
            _judge_loop(told, format_algebraic_loop(wiring, group))
    for each in told.components:
        if stepping.goes_back and not each.abilities.back:
            why = "repeated passes" if stepping.passes > 1 else "steps of adapted size"
            what = f"{why} need FMUs that can go back, which {each.name} cannot"
            remedy = "use an FMU with canGetAndSetFMUstate, or passes=1 and no accuracy"
            told.faults.append(Fault(what, where, remedy))
        if (stepping.accuracy is not None or stepping.substeps > 1) and not each.abilities.any_step:
            what = f"{each.name} makes no steps of any size"
            told.faults.append(Fault(what, where, "leave out accuracy and substeps"))
    try:
        order_components(wiring, stepping.sequence)
    except ValueError as error:
        told.faults.append(Fault(str(error), where))


def _judge_loop(told: WiringDiagnostics, text: str) -> None:
    """Note an algebraic loop that the master solves; otherwise add a fault."""
    if told.system.run.stepping.loops == "solve":
        told.notes.append(f"algebraic loop, solved at each communication point: {text}; other masters do not")
        return
    remedy = (
        "cut elsewhere or by a compliant element, pass accelerations through a filter, or "
        'let the master solve it: experiment(loops="solve")'
    )
    told.faults.append(Fault(f"algebraic loop: {text}", told.system.where, remedy))


class DeclaredParameterValues:
    """Values in the variables' own units."""

    def __init__(self, told: WiringDiagnostics) -> None:
        """Begin with the system that is checked."""
        self._told = told

    def of(self, k: int) -> dict[str, float]:
        """Return the values declared with a component; add faults for those that cannot be set."""
        component, declared = self._told.components[k], self._told.system.components[k]
        found = {}
        for name, given in declared.values.items():
            where = f"{declared.where}, {component.name}.{name}"
            value, unit = given if isinstance(given, tuple) else (given, None)
            if not self._finite(value, where):
                continue
            if (conversion := self._settable(component, name, unit, where)) is not None:
                found[name] = conversion[0] * float(value) + conversion[1]
                self._within(component, name, found[name], where)
        return found

    def mapped(self, values: Sequence[dict[str, float]]) -> Iterator[MappedParameter]:
        """Yield parameters of the system and their variables; add the values to ``values``."""
        names: set[str] = set()
        for index, declared in enumerate(self._told.system.parameters):
            if not declared.targets or declared.name in names:
                what = f"the parameter {declared.name} " + (
                    "goes nowhere" if not declared.targets else "is there twice"
                )
                self._told.faults.append(Fault(what, declared.where, "name it once, with the variables that follow it"))
            names.add(declared.name)
            value, unit = declared.value if isinstance(declared.value, tuple) else (declared.value, None)
            if not self._finite(value, f"{declared.where}, {declared.name}"):
                continue
            for target in declared.targets:
                if (end := self._told.end(target.variable, declared.where)) is None:
                    continue
                k, name = end
                where = f"{declared.where}, {target.variable}"
                if name in values[k]:
                    remedy = "give it once: by component(values=) or by one parameter of the system"
                    self._told.faults.append(Fault(f"{target.variable} has two values", where, remedy))
                    continue
                taken = self._settable(self._told.components[k], name, unit if target.convert else None, where)
                if taken is None:
                    continue
                made = MappedParameter(
                    index, k, name, target.factor * taken[0], target.factor * taken[1] + target.offset
                )
                values[k][name] = made.factor * float(value) + made.offset
                self._within(self._told.components[k], name, values[k][name], where)
                yield made

    def _finite(self, value: float, where: str) -> bool:
        """Return whether a value is a finite number; add a fault if it is not."""
        try:
            if math.isfinite(float(value)):
                return True
        except (TypeError, ValueError):
            pass
        self._told.faults.append(Fault(f"the value {value!r} is no finite number", where, "give a number"))
        return False

    def _within(self, component: FmuComponent, name: str, value: float, where: str) -> None:
        """Add a fault if a value, in the variable's own unit, is outside of the bounds that the FMU declares."""
        for bound, side in (("min", -1.0), ("max", 1.0)):
            limit = component.variables[name].get(bound)
            if limit is not None and side * value > side * float(limit):
                which = "below the least" if bound == "min" else "above the greatest"
                what = f"{value!r} is {which} value of the FMU, {limit}"
                self._told.faults.append(Fault(what, where, f"give a value within the variable's {bound}"))

    def _settable(self, component: FmuComponent, name: str, unit: str | None, where: str) -> tuple[float, float] | None:
        """Return (factor, offset) from an FMU to that of a settable variable; None after a fault."""
        if name not in component.variables:
            near = difflib.get_close_matches(name, component.variables, n=3)
            remedy = f"did you mean {', '.join(near)}?" if near else "see its modelDescription.xml"
            self._told.faults.append(Fault("the FMU has no such variable", where, remedy))
            return None
        variable = component.variables[name]
        if variable.initial not in {"exact", "approx"} and variable.causality != "input":
            what = f"cannot be set: it is {variable.causality}, {variable.initial or variable.variability}"
            self._told.faults.append(Fault(what, where, "set parameters, inputs and start values"))
            return None
        try:
            return self._to_own(component, name, unit)
        except ValueError as error:
            self._told.faults.append(Fault(str(error), where, "give the value in a unit of the same quantity"))
            return None

    def _to_own(self, component: FmuComponent, name: str, unit: str | None) -> tuple[float, float]:
        """Return (factor, offset) from a unit of measure to the variable's own; (1, 0) without a unit."""
        if unit is None:
            return 1.0, 0.0
        read = parse_unit(unit)
        return unit_conversion(UnitOfMeasure(unit, read.exponents, read.factor, read.offset), component.unit(name))
