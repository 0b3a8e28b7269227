"""Properties of one FMU that a system needs: variables, units, feedthrough, terminals, abilities; of any FMU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from mb2fmu.audit.description.description_import import read_terminals
from mb2fmu.audit.description.description_records import (
    TERMINALS,
    DescribedModel,
    DescribedVariable,
    TerminalMember,
    parse_number,
)
from mb2fmu.errors import Fault, ValidationError
from mb2fmu.fmu.file_tree import FileTree
from mb2fmu.fmu.package import read_archive
from mb2fmu.systems.master.fmu_slaves import SlaveCapabilities
from mb2fmu.units import BASE_UNITS
from mb2fmu.validation.runs.fmu_description import read_fmu_description


@dataclass(frozen=True, slots=True)
class UnitOfMeasure:
    """An FMU as an FMU declares it: a value v is ``factor * v + offset`` in base units.

    Attributes:
        name: As written.
        exponents: Of FMI's base units, in their order; None: only the name is declared.
        factor: Base units per unit.
        offset: In base units.
    """

    name: str
    exponents: tuple[int, ...] | None
    factor: float = 1.0
    offset: float = 0.0


def unit_conversion(source: UnitOfMeasure | None, target: UnitOfMeasure | None) -> tuple[float, float]:
    """Return (factor, offset) from one FMU to another: target value = factor * source value + offset.

    Angles may be left out of an FMU (N.m for N.m/rad): as a pure number a radian is 1.

    Raises:
        ValueError: If they measure different quantities.
    """
    if source is None or target is None or source.name == target.name:
        return 1.0, 0.0
    if source.exponents is None or target.exponents is None:
        raise ValueError(f"{source.name} and {target.name} cannot be compared: one of them is declared by name only")
    if source.exponents[:-1] != target.exponents[:-1]:
        raise ValueError(f"{source.name} is not {target.name}")
    return source.factor / target.factor, (source.offset - target.offset) / target.factor


@dataclass(frozen=True)
class FmuComponent:
    """One FMU of a system.

    Attributes:
        name: In the system.
        path: Of its archive.
        content: Its archive.
        tree: The files in it.
        description: All of ``modelDescription.xml``.
        variables: By name; scalars of doubles only.
        units: By name.
        terminals: Name → members.
        abilities: What the master may ask of it.
        identifier: Of its Co-Simulation library.
        troubles: Log categories of failed calls.
    """

    name: str
    path: Path
    content: bytes
    tree: FileTree
    description: DescribedModel
    variables: Mapping[str, DescribedVariable]
    units: Mapping[str, UnitOfMeasure]
    terminals: Mapping[str, tuple[TerminalMember, ...]]
    abilities: SlaveCapabilities
    identifier: str
    troubles: tuple[str, ...]

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of scalar inputs."""
        return tuple(name for name, each in self.variables.items() if each.causality == "input")

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of scalar outputs."""
        return tuple(name for name, each in self.variables.items() if each.causality == "output")

    def unit(self, variable: str) -> UnitOfMeasure | None:
        """Return the unit of a variable; None if it has none."""
        name = self.variables[variable].get("unit")
        return None if name is None else self.units.get(name, UnitOfMeasure(name, None))

    def feedthrough(self, output: str) -> frozenset[str]:
        """Return inputs on which an output depends at the same instant: as declared, else all."""
        for unknown in self.description.listed("Outputs"):
            if unknown.variable is not None and unknown.variable.name == output:
                if unknown.dependencies is None:
                    return frozenset(self.inputs)
                return frozenset(
                    each.name for each in unknown.targets if each is not None and each.causality == "input"
                )
        return frozenset(self.inputs)


def read_component(name: str, path: Path) -> FmuComponent:
    """Read an FMU that is to be a component.

    Args:
        name: In the system.
        path: Of the archive.

    Raises:
        PackageError: If it is no sound archive.
        ValidationError: If it is no Co-Simulation FMU of FMI 2 or 3 that runs on this machine.
    """
    tree, content = read_archive(path), path.read_bytes()
    try:
        description = read_fmu_description(tree)
    except ValidationError as error:
        faults = [Fault(each.what, f"{name} ({path.name})", each.remedy) for each in error.faults]
        raise ValidationError(f"{name} cannot be a component:", faults) from error
    if "CoSimulation" not in description.identifiers:
        fault = Fault("offers Model Exchange only", f"{name} ({path.name})", "export it for Co-Simulation")
        raise ValidationError(f"{name} cannot be a component:", [fault])
    variables = {each.name: each for each in description.model.variables if each.type in {"Real", "Float64"}}
    scalars = {key: each for key, each in variables.items() if not each.dimensions and each.reference is not None}
    return FmuComponent(
        name,
        path,
        content,
        tree,
        description.model,
        MappingProxyType(scalars),
        MappingProxyType({each.name: _unit(each.name, each.base) for each in description.model.units}),
        MappingProxyType(dict(read_terminals(tree[TERMINALS]) if TERMINALS in tree else {})),
        _abilities(description.model),
        description.identifiers["CoSimulation"],
        description.trouble_log_categories,
    )


def _unit(name: str, base: Mapping[str, str] | None) -> UnitOfMeasure:
    """Return a unit of measure; without a base unit its exponents are unknown (None)."""
    if base is None:
        return UnitOfMeasure(name, None)
    exponents = tuple(int(parse_number(base.get(each)) or 0) for each in BASE_UNITS)
    factor, offset = parse_number(base.get("factor")), parse_number(base.get("offset"))
    return UnitOfMeasure(name, exponents, 1.0 if factor is None else factor, offset or 0.0)


def _abilities(description: DescribedModel) -> SlaveCapabilities:
    """Return what an FMU can do in Co-Simulation, by its flags; FMI 2 has no events and no early return."""

    def flag(name: str) -> bool:
        return description.flag("CoSimulation", name)

    if description.version == 2:
        return SlaveCapabilities(
            lines=flag("canInterpolateInputs"),
            back=flag("canGetAndSetFMUstate"),
            any_step=flag("canHandleVariableCommunicationStepSize"),
            directional=flag("providesDirectionalDerivative"),
        )
    return SlaveCapabilities(
        updates=flag("providesIntermediateUpdate"),
        back=flag("canGetAndSetFMUState"),
        any_step=flag("canHandleVariableCommunicationStepSize"),
        directional=flag("providesDirectionalDerivatives"),
        events=flag("hasEventMode"),
        early=flag("hasEventMode") or flag("mightReturnEarlyFromDoStep"),
    )
