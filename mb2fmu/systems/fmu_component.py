"""Properties of one FMU that a system needs: variables, units, feedthrough, terminals, capabilities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from mb2fmu.audit.description.description_import import read_terminals
from mb2fmu.audit.description.description_records import (
    TERMINALS,
    DescribedModel,
    DescribedTerminalMember,
    DescribedVariable,
    parse_xml_number,
)
from mb2fmu.errors import Fault, ValidationError
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.fmu.package import read_archive
from mb2fmu.systems.master.fmu_slaves import SlaveCapabilities
from mb2fmu.units import BASE_UNITS
from mb2fmu.validation.runs.fmu_description_for_runs import read_fmu_description


@dataclass(frozen=True, slots=True)
class FmuUnitDefinition:
    """A unit of measure as an FMU declares it: a value v is ``factor * v + offset`` in base units.

    Attributes:
        name: Name as written.
        exponents: Exponents of FMI's base units, in their order; None: only the name is declared.
        factor: Base units per unit.
        offset: Offset in base units.
    """

    name: str
    exponents: tuple[int, ...] | None
    factor: float = 1.0
    offset: float = 0.0


def compute_unit_conversion(source: FmuUnitDefinition | None, target: FmuUnitDefinition | None) -> tuple[float, float]:
    """Return (factor, offset) from one unit to another: target value = factor * source value + offset.

    Angles may be left out of a unit (N.m for N.m/rad): as a pure number a radian is 1.

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
        name: Name in the system.
        path: Path of its archive.
        content: Bytes of its archive.
        file_tree: The files in it.
        description: All of ``modelDescription.xml``.
        variables: Scalar variables of type double, by name.
        units: Units of measure, by name.
        terminals: Name → members.
        capabilities: Optional functions that the master may use.
        model_identifier: Model identifier of its Co-Simulation library.
        trouble_log_categories: Log categories of failed calls.
    """

    name: str
    path: Path
    content: bytes
    file_tree: InMemoryFileTree
    description: DescribedModel
    variables: Mapping[str, DescribedVariable]
    units: Mapping[str, FmuUnitDefinition]
    terminals: Mapping[str, tuple[DescribedTerminalMember, ...]]
    capabilities: SlaveCapabilities
    model_identifier: str
    trouble_log_categories: tuple[str, ...]

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of scalar inputs."""
        return tuple(name for name, variable in self.variables.items() if variable.causality == "input")

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of scalar outputs."""
        return tuple(name for name, variable in self.variables.items() if variable.causality == "output")

    def unit(self, variable: str) -> FmuUnitDefinition | None:
        """Return the unit of a variable; None if it has none."""
        name = self.variables[variable].get("unit")
        return None if name is None else self.units.get(name, FmuUnitDefinition(name, None))

    def feedthrough(self, output: str) -> frozenset[str]:
        """Return inputs on which an output depends at the same instant: as declared, else all."""
        for unknown in self.description.model_structure_entries("Outputs"):
            if unknown.variable is not None and unknown.variable.name == output:
                if unknown.dependencies is None:
                    return frozenset(self.inputs)
                return frozenset(
                    target.name for target in unknown.targets if target is not None and target.causality == "input"
                )
        return frozenset(self.inputs)


def read_fmu_component(name: str, path: Path) -> FmuComponent:
    """Read an FMU as a component.

    Args:
        name: Name in the system.
        path: Path of the archive.

    Raises:
        PackageError: If it is no sound archive.
        ValidationError: If it is no Co-Simulation FMU of FMI 2 or 3 that runs on this machine.
    """
    tree, content = read_archive(path), path.read_bytes()
    try:
        description = read_fmu_description(tree)
    except ValidationError as error:
        relocated_faults = [Fault(fault.what, f"{name} ({path.name})", fault.remedy) for fault in error.faults]
        raise ValidationError(f"{name} cannot be a component:", relocated_faults) from error
    if "CoSimulation" not in description.identifiers:
        fault = Fault("offers Model Exchange only", f"{name} ({path.name})", "export it for Co-Simulation")
        raise ValidationError(f"{name} cannot be a component:", [fault])
    model = description.model
    variables = {variable.name: variable for variable in model.variables if variable.type in {"Real", "Float64"}}
    scalars = {
        scalar_name: variable
        for scalar_name, variable in variables.items()
        if not variable.dimensions and variable.reference is not None
    }
    return FmuComponent(
        name,
        path,
        content,
        tree,
        model,
        MappingProxyType(scalars),
        MappingProxyType({unit.name: _make_unit_of_measure(unit.name, unit.base) for unit in model.units}),
        MappingProxyType(dict(read_terminals(tree[TERMINALS]) if TERMINALS in tree else {})),
        _read_capabilities(model),
        description.identifiers["CoSimulation"],
        description.trouble_log_categories,
    )


def _make_unit_of_measure(name: str, base: Mapping[str, str] | None) -> FmuUnitDefinition:
    """Return a unit of measure; without a base unit its exponents are unknown (None)."""
    if base is None:
        return FmuUnitDefinition(name, None)
    exponents = tuple(int(parse_xml_number(base.get(base_unit)) or 0) for base_unit in BASE_UNITS)
    factor, offset = parse_xml_number(base.get("factor")), parse_xml_number(base.get("offset"))
    return FmuUnitDefinition(name, exponents, 1.0 if factor is None else factor, offset or 0.0)


def _read_capabilities(description: DescribedModel) -> SlaveCapabilities:
    """Return the capabilities that an FMU declares for Co-Simulation; FMI 2 has no events and no early return."""

    def read_flag(name: str) -> bool:
        return description.flag("CoSimulation", name)

    if description.version == 2:
        return SlaveCapabilities(
            interpolates_inputs=read_flag("canInterpolateInputs"),
            saves_state=read_flag("canGetAndSetFMUstate"),
            variable_step=read_flag("canHandleVariableCommunicationStepSize"),
            directional_derivatives=read_flag("providesDirectionalDerivative"),
        )
    return SlaveCapabilities(
        intermediate_updates=read_flag("providesIntermediateUpdate"),
        saves_state=read_flag("canGetAndSetFMUState"),
        variable_step=read_flag("canHandleVariableCommunicationStepSize"),
        directional_derivatives=read_flag("providesDirectionalDerivatives"),
        event_mode=read_flag("hasEventMode"),
        early_return=read_flag("hasEventMode") or read_flag("mightReturnEarlyFromDoStep"),
    )
