"""``read_ssp``: an ``.ssp`` of SSP 1.0 or 2.0 (or the draft 2.1), own or foreign, becomes a ``CoupledSystem``.

Read are components that are FMUs, connections with their linear transformations, parameter values (SSV) and mappings
(SSM), inside the structure or in files, and the default experiment with the fixed step of OMSimulator or libcosim.
What is not read is refused by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from lxml import etree

from mb2fmu.errors import Fault
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.fmu.package import read_archive, write_file_tree
from mb2fmu.model.experiment_defaults import DEFAULT_STEP_COUNT
from mb2fmu.systems.coupled_system import CoupledSystem, DeclaredSystemParameter, DeclaredValue, SystemParameterTarget
from mb2fmu.systems.ssp.ssp_archive import SSP_STRUCTURE_FILE, find_ssp_schema_faults
from mb2fmu.systems.wired_system import CouplingError

_IGNORED_ELEMENTS = ("Annotations", "ConnectionGeometry")
_NUMBER_TYPES = (
    "Real", "Integer", "Enumeration",  # SSP 1.0
    "Float64", "Float32", "Int8", "UInt8", "Int16", "UInt16", "Int32", "UInt32", "Int64", "UInt64",
)  # fmt: skip
_FMU_COMPONENT_TYPES = ("application/x-fmu-sharedlibrary", "")

Element = etree._Element  # noqa: SLF001  lxml has no public name for it


@dataclass(frozen=True)
class SspExperiment:
    """Settings of an archive's run; None: as the archive says, or the default."""

    step: float | None = None
    stop: float | None = None
    order: int = 1
    passes: int = 1
    loops: Any = "refuse"


def read_ssp(path: Path, folder: Path, experiment: SspExperiment) -> CoupledSystem:
    """Read a system, and write its FMUs into a folder.

    Args:
        path: Path of the archive.
        folder: Folder for the FMUs; must exist until they are read.
        experiment: Settings of the run.

    Raises:
        PackageError: If it is no archive, or members would land outside of a folder.
        CouplingError: With everything that violates SSP or is not supported.
    """
    tree = read_archive(path, needed=SSP_STRUCTURE_FILE, what="SSP archive")
    reader = _SspReader(tree, path.name)
    system = reader.read_system(experiment)
    if reader.faults:
        raise CouplingError(f"{path.name} cannot be read as a system:", reader.faults)
    write_file_tree(tree, folder)
    system.source = folder / SSP_STRUCTURE_FILE
    return system


class _SspReader:
    """Reads one archive and collects faults.

    Args:
        tree: Files of the archive.
        archive_name: Name of the archive, for messages.
    """

    def __init__(self, tree: InMemoryFileTree, archive_name: str) -> None:
        self._tree, self._archive_name = tree, archive_name
        self.faults: list[Fault] = []

    def read_system(self, experiment: SspExperiment) -> CoupledSystem:
        """Return the declared system, not joined yet."""
        root = self._parse_file(SSP_STRUCTURE_FILE)
        system_element = None if root is None else root.find("{*}System")
        system = CoupledSystem(
            _make_identifier(
                (system_element.get("name") if system_element is not None else "") or Path(self._archive_name).stem
            )
        )
        system.where = self._archive_name
        if root is None or system_element is None:
            if root is not None:
                self._add_fault("the structure has no system", SSP_STRUCTURE_FILE)
            return system
        system.description = system_element.get("description", "")
        values = self._read_system_values(system, system_element)
        for element in system_element.iterfind("{*}Elements/*"):
            self._read_component(system, element, values)
        for connection in system_element.iterfind("{*}Connections/{*}Connection"):
            self._read_connection(system, connection)
        self._read_experiment(system, root, experiment)
        return system

    def _add_fault(self, problem: str, where: str, remedy: str = "") -> None:
        """Add a fault with its place in the archive."""
        self.faults.append(Fault(problem, f"{self._archive_name}: {where}", remedy))

    def _locate_element(self, element: Element) -> str:
        """Return the place of an element, for messages: archive, member and line."""
        return f"{self._archive_name}: {SSP_STRUCTURE_FILE}:{element.sourceline}"

    def _parse_file(self, name: str) -> Element | None:
        """Return a file of the archive as XML that follows its schema; None after a fault."""
        try:
            root = etree.fromstring(self._tree[name], etree.XMLParser(resolve_entities=False, no_network=True))
        except etree.XMLSyntaxError as error:
            self._add_fault(f"is no XML: {error.msg}", name)
            return None
        for fault in find_ssp_schema_faults(name, self._tree[name]):
            self.faults.append(Fault(fault.what, f"{self._archive_name}: {fault.where}"))
        return root

    def _resolve_member(self, source: str, location: str) -> str | None:
        """Return the archive's member that a source names; None after a fault."""
        name = PurePosixPath(source.removeprefix("./"))
        if ":" in source or name.is_absolute() or ".." in name.parts or "\\" in source:
            self._add_fault(f"{source!r} lies outside of the archive", location, "put it into resources/")
        elif str(name) not in self._tree:
            self._add_fault(f"{source!r} is not in the archive", location)
        else:
            return str(name)
        return None

    def _read_component(
        self, system: CoupledSystem, element: Element, values: Mapping[str, Mapping[str, DeclaredValue]]
    ) -> None:
        """Read a component."""
        kind, name = etree.QName(element).localname, element.get("name", "")
        if kind != "Component" or element.get("type", "") not in _FMU_COMPONENT_TYPES:
            description = "a nested system" if kind == "System" else element.get("type") or kind
            self._add_fault(
                f"{name} is {description}, which is not read",
                SSP_STRUCTURE_FILE,
                "put its units into the system itself",
            )
            return
        source = self._resolve_member(element.get("source", ""), f"component {name}")
        if source is None:
            return
        location, system_values = f"component {name}", values.get(name, {})
        component_values: dict[str, DeclaredValue] = {}
        for binding in element.iterfind("{*}ParameterBindings/{*}ParameterBinding"):
            if binding.find("{*}ParameterMapping") is None:
                component_values |= dict(self._read_bound_values(binding, location))
                continue
            given_variables = {f"{name}.{variable}" for variable in system_values} | _list_mapped_variables(system)
            for parameter in self._read_mapped_parameters(binding, location, f"{name}."):
                kept_targets = tuple(target for target in parameter.targets if target.variable not in given_variables)
                system.parameters += [replace(parameter, targets=kept_targets)] if kept_targets else []
        component_values |= system_values  # what the system says has precedence
        mapped_variables = _list_mapped_variables(system)
        system.component(
            name,
            source,
            values={key: component_values[key] for key in component_values if f"{name}.{key}" not in mapped_variables},
        )
        system.components[-1] = replace(system.components[-1], where=self._locate_element(element))

    def _read_system_values(
        self, system: CoupledSystem, system_element: Element
    ) -> dict[str, dict[str, DeclaredValue]]:
        """Return values bound to the whole system: component → variable → value; mapped ones become its parameters."""
        values_by_component: dict[str, dict[str, DeclaredValue]] = {}
        location = "the system's parameters"
        for binding in system_element.iterfind("{*}ParameterBindings/{*}ParameterBinding"):
            if binding.find("{*}ParameterMapping") is not None:
                system.parameters += self._read_mapped_parameters(binding, location)
                continue
            for name, value in self._read_bound_values(binding, location):
                component, dot, variable = name.partition(".")
                if dot:
                    values_by_component.setdefault(component, {})[variable] = value
                else:
                    self._add_fault(f"{name} names no component", location, "write component.variable")
        return values_by_component

    def _read_mapped_parameters(
        self, binding: Element, location: str, component_prefix: str = ""
    ) -> Iterator[DeclaredSystemParameter]:
        """Yield parameters with their mapped variables; ``component_prefix`` is ``component.`` or empty."""
        prefix = component_prefix + binding.get("prefix", "")
        values = self._find_values(binding, location)
        mapping = self._load_content(_find_required_child(binding, "ParameterMapping"), "ParameterMapping", location)
        entries = [] if mapping is None else list(mapping.iterfind("{*}MappingEntry"))
        for parameter in values.iterfind("{*}Parameters/{*}Parameter") if values is not None else ():
            name = parameter.get("name", "")
            targets = tuple(
                SystemParameterTarget(
                    prefix + entry.get("target", ""),
                    *_read_linear_transformation(entry),
                    not _suppresses_conversion(entry),
                )
                for entry in entries
                if entry.get("source") == name
            )
            value = self._read_value(parameter, location) if targets else None  # others are not applied
            if value is not None:
                yield DeclaredSystemParameter(
                    component_prefix + name, value, targets, f"{self._archive_name}: {location}"
                )

    def _read_bound_values(self, binding: Element, location: str) -> Iterator[tuple[str, DeclaredValue]]:
        """Yield (name, value) of one binding without mapping, with its prefix."""
        prefix = binding.get("prefix", "")
        values = self._find_values(binding, location)
        for parameter in values.iterfind("{*}Parameters/{*}Parameter") if values is not None else ():
            value = self._read_value(parameter, location)
            if value is not None:
                yield prefix + parameter.get("name", ""), value

    def _find_values(self, binding: Element, location: str) -> Element | None:
        """Return values inside the binding, or in the file that it names."""
        holder = binding.find("{*}ParameterValues")
        if holder is not None:
            return holder.find("{*}ParameterSet")
        return self._load_content(binding, "ParameterSet", location)

    def _load_content(self, holder: Element, inline_tag: str, location: str) -> Element | None:
        """Return the content of a holder: its source, or its own elements."""
        if holder.get("source") is None:
            return holder.find(f"{{*}}{inline_tag}")
        name = self._resolve_member(holder.get("source", ""), location)
        return None if name is None else self._parse_file(name)

    def _read_value(self, parameter: Element, location: str) -> DeclaredValue | None:
        """Return a number, with its unit if it has one; None after a fault."""
        for number_type in _NUMBER_TYPES:
            number_element = parameter.find(f"{{*}}{number_type}")
            if number_element is not None:
                number = float(number_element.get("value", "nan"))
                unit = number_element.get("unit")
                return number if unit is None else (number, unit)
        self._add_fault(f"{parameter.get('name')} is no number, which is not read", location)
        return None

    def _read_connection(self, system: CoupledSystem, connection: Element) -> None:
        """Add a connection; add faults for ends at the system's own connectors and for unsupported transformations."""
        component_names = [connection.get(f"{end}Element") for end in ("start", "end")]
        connector_names = [connection.get(f"{end}Connector", "") for end in ("start", "end")]
        if None in component_names:
            problem = f"{connector_names[0]} → {connector_names[1]} goes over the system's own edge, which is not read"
            self._add_fault(problem, SSP_STRUCTURE_FILE, "connect an FMU there")
            return
        transformation = connection.find("{*}LinearTransformation")
        delay_element = connection.find("{*}Annotations/{*}Annotation/{*}Delay")
        factor_and_offset = None
        if transformation is not None:
            factor_and_offset = float(transformation.get("factor", "1")), float(transformation.get("offset", "0"))
        elif unknown_elements := [
            child for child in connection if etree.QName(child).localname not in _IGNORED_ELEMENTS
        ]:
            unknown_tag = etree.QName(unknown_elements[0]).localname
            self._add_fault(
                f"{connector_names[0]} → {connector_names[1]}: {unknown_tag} is not read", SSP_STRUCTURE_FILE
            )
        suppresses_conversion = _suppresses_conversion(connection)
        system.connect(
            f"{component_names[0]}.{connector_names[0]}",
            f"{component_names[1]}.{connector_names[1]}",
            transformation=factor_and_offset,
            convert=not suppresses_conversion,
            delay=0.0 if delay_element is None else float(delay_element.get("seconds", "0")),
        )
        system.connections[-1] = replace(system.connections[-1], where=self._locate_element(connection))

    def _read_experiment(self, system: CoupledSystem, root: Element, experiment: SspExperiment) -> None:
        """Set stop time and step as given, else as in the archive."""
        default_experiment = root.find("{*}DefaultExperiment")
        stop = experiment.stop or float(
            (default_experiment.get("stopTime") if default_experiment is not None else None) or 1.0
        )
        step_sizes = [
            element.get("stepSize") or element.get("baseStepSize") for element in root.iterfind(".//{*}FixedStepMaster")
        ]
        step_sizes += [element.get("baseStepSize") for element in root.iterfind(".//{*}FixedStepAlgorithm")]
        step = experiment.step or float(next((element for element in step_sizes if element), stop / DEFAULT_STEP_COUNT))
        system.experiment(
            stop=stop, step=step, order=experiment.order, passes=experiment.passes, loops=experiment.loops
        )


def _read_linear_transformation(entry: Element) -> tuple[float, float]:
    """Return (factor, offset) of a mapping's entry."""
    transformation = entry.find("{*}LinearTransformation")
    if transformation is None:
        return 1.0, 0.0
    return float(transformation.get("factor", "1")), float(transformation.get("offset", "0"))


def _suppresses_conversion(entry: Element) -> bool:
    """Return whether numbers are passed without conversion of units."""
    return entry.get("suppressUnitConversion") in {"true", "1"}


def _find_required_child(parent: Element, tag: str) -> Element:
    """Return a child that the schema demands, in any version's namespace."""
    child = parent.find(f"{{*}}{tag}")
    assert child is not None
    return child


def _list_mapped_variables(system: CoupledSystem) -> set[str]:
    """Return variables that follow parameters of the system."""
    return {target.variable for parameter in system.parameters for target in parameter.targets}


def _make_identifier(name: str) -> str:
    """Return the name as an identifier, with _ in place of other characters."""
    identifier = "".join(character if character.isalnum() or character == "_" else "_" for character in name)
    return identifier if identifier[:1].isalpha() or identifier[:1] == "_" else f"_{identifier}"
