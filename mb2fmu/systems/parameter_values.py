"""Values that a system sets in its components, directly or by parameters of the system."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Sequence

from mb2fmu.errors import Fault
from mb2fmu.systems.fmu_component import Component, UnitOfMeasure, conversion
from mb2fmu.systems.wired_system import Mapped, Told
from mb2fmu.units import parse_unit


class DeclaredValues:
    """Values in the variables' own units."""

    def __init__(self, told: Told) -> None:
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

    def mapped(self, values: Sequence[dict[str, float]]) -> Iterator[Mapped]:
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
                made = Mapped(index, k, name, target.factor * taken[0], target.factor * taken[1] + target.offset)
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

    def _within(self, component: Component, name: str, value: float, where: str) -> None:
        """Add a fault if a value, in the variable's own unit, is outside of the bounds that the unit declares."""
        for bound, side in (("min", -1.0), ("max", 1.0)):
            limit = component.variables[name].get(bound)
            if limit is not None and side * value > side * float(limit):
                which = "below the least" if bound == "min" else "above the greatest"
                what = f"{value!r} is {which} value of the unit, {limit}"
                self._told.faults.append(Fault(what, where, f"give a value within the variable's {bound}"))

    def _settable(self, component: Component, name: str, unit: str | None, where: str) -> tuple[float, float] | None:
        """Return (factor, offset) from a unit to that of a settable variable; None after a fault."""
        if name not in component.variables:
            near = difflib.get_close_matches(name, component.variables, n=3)
            remedy = f"did you mean {', '.join(near)}?" if near else "see its modelDescription.xml"
            self._told.faults.append(Fault("the unit has no such variable", where, remedy))
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

    def _to_own(self, component: Component, name: str, unit: str | None) -> tuple[float, float]:
        """Return (factor, offset) from a unit of measure to the variable's own; (1, 0) without a unit."""
        if unit is None:
            return 1.0, 0.0
        read = parse_unit(unit)
        return conversion(UnitOfMeasure(unit, read.exponents, read.factor, read.offset), component.unit(name))
