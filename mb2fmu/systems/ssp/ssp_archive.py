"""SSP: a joined system as one archive (System Structure and Parameterization 1.0 of 2019, 2.0 of 2024).

Written are ``SystemStructure.ssd`` with connectors, units, connections (linear transformations where a unit of measure
or a sign changes), geometry and the default experiment; ``resources/<component>.fmu``; values of a component as
``resources/<component>.ssv``; parameters of the system as ``resources/parameters.ssv`` with the mapping
``resources/parameters.ssm`` to variables of components. These values stand in the components' own files too: a
master that reads no mapping has the right values, one that does lets the system's have precedence (5.2.3 of SSP 1.0.1).
``2.1-draft`` writes connected terminals as such (``_list_connected_terminal_types``); no released version has them.
Annotations give the fixed step to OMSimulator (``org.openmodelica``) and libcosim (``com.opensimulationplatform``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, get_args

import fmpy.ssp
from lxml import etree

from mb2fmu.errors import EmitError, Fault
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.systems.block_diagram_layout import DiagramComponentBox, place_block_diagram_boxes
from mb2fmu.systems.fmu_component import FmuComponent, FmuUnitDefinition
from mb2fmu.systems.port_and_bond_records import find_outputs_read_before_inputs
from mb2fmu.systems.wired_system import ConnectedTerminals, WiredSystem
from mb2fmu.units import BASE_UNITS, parse_unit

SSP_STRUCTURE_FILE = "SystemStructure.ssd"
PARAMETER_FILE_STEM = "resources/parameters"
"""Values and mapping of the system's own parameters, without their endings."""
PARAMETER_SET_NAME = "initialValues"
"""Name of every component's parameter set: ecos applies the sets of one name, given at initialization."""
_SSP1 = "http://ssp-standard.org/SSP1"
SSC, SSD, SSV, SSM = (
    f"{_SSP1}/SystemStructure{part}" for part in ("Common", "Description", "ParameterValues", "ParameterMapping")
)
OMS = "https://raw.githubusercontent.com/OpenModelica/OMSimulator/master/schema/oms.xsd"
OSP = "http://opensimulationplatform.com/SSP/OSPAnnotations"
GENERATION_TOOL = "mb2fmu"
SspVersion = Literal["1.0", "2.0", "2.1-draft"]
SSP_VERSIONS: tuple[SspVersion, ...] = get_args(SspVersion)
_SCHEMA_NAMES = {".ssv": "ParameterValues", ".ssm": "ParameterMapping"}
MB2FMU_NAMESPACE = "https://mb2fmu/SSP/Annotations"
"""Namespace of a connection's delay; SSP has none, and other masters pass the value on after their own step."""

Element = etree._Element  # noqa: SLF001  lxml has no public name for it


def form_ssp_files(wired_system: WiredSystem, version: SspVersion = "1.0") -> InMemoryFileTree:
    """Return a system as the files of an ``.ssp``.

    Args:
        wired_system: The system.
        version: Version of SSP. Most importers read only 1.0.

    Raises:
        EmitError: If a written file violates the schemas of that version.
    """
    files = {SSP_STRUCTURE_FILE: _serialize_xml(_make_structure(wired_system, version))}
    for component, values in zip(wired_system.components, wired_system.values, strict=True):
        files[f"resources/{component.name}.fmu"] = component.content
        if values:
            files[f"resources/{component.name}.ssv"] = _serialize_xml(
                _make_component_values(component, values, version)
            )
    if wired_system.mapped_parameters:
        files[f"{PARAMETER_FILE_STEM}.ssv"] = _serialize_xml(_make_system_parameters(wired_system, version))
        files[f"{PARAMETER_FILE_STEM}.ssm"] = _serialize_xml(_make_parameter_mapping(wired_system, version))
    faults = [
        fault
        for name, content in files.items()
        if not name.endswith(".fmu")
        for fault in find_ssp_schema_faults(name, content)
    ]
    if faults:
        raise EmitError(f"{wired_system.system.name} cannot be written as SSP:", faults)
    return InMemoryFileTree(files)


def find_ssp_schema_faults(name: str, content: bytes) -> Iterator[Fault]:
    """Yield violations of SSP's schemas in a file, by the version that it declares."""
    schema_name = _SCHEMA_NAMES.get(Path(name).suffix, "Description")
    root = etree.fromstring(content)
    schema = _load_schema(schema_name, root.get("version", ""))
    if not schema.validate(root):
        for error in schema.error_log:
            yield Fault(str(error.message), f"{name}:{error.line}")


@cache
def _load_schema(schema_name: str, version: str) -> etree.XMLSchema:
    """Return the schema of a kind of file; that of 1.0 for versions that are not known."""
    if version == "2.1" and schema_name == "Description":
        folder = Path(__file__).parent / "schema" / "ssp2.1-draft"
    elif version in {"2.0", "2.1"}:
        folder = Path(__file__).parent / "schema" / "ssp2.0"
    else:
        folder = Path(fmpy.ssp.__file__).parent / "schema"
    return etree.XMLSchema(etree.parse(folder / f"SystemStructure{schema_name}.xsd"))


def _make_structure(wired_system: WiredSystem, version: SspVersion) -> Element:
    """Return the SystemStructureDescription of a joined system, with geometry and annotations for other tools."""
    system = wired_system.system
    root = etree.Element(f"{{{SSD}}}SystemStructureDescription", nsmap={"ssd": SSD, "ssc": SSC, "oms": OMS, "osp": OSP})
    root.set("name", system.name)
    root.set("version", version.removesuffix("-draft"))
    root.set("generationTool", GENERATION_TOOL)
    system_element = _add_child(root, SSD, "System", name=system.name)
    if system.description:
        system_element.set("description", system.description)
    if wired_system.mapped_parameters:
        binding = _add_child(
            _add_child(system_element, SSD, "ParameterBindings"),
            SSD,
            "ParameterBinding",
            source=f"{PARAMETER_FILE_STEM}.ssv",
        )
        _add_child(binding, SSD, "ParameterMapping", source=f"{PARAMETER_FILE_STEM}.ssm")
    terminal_types = _list_connected_terminal_types(wired_system) if version == "2.1-draft" else ()
    boxes = place_block_diagram_boxes(wired_system.wiring)
    elements = _add_child(system_element, SSD, "Elements")
    for index, component in enumerate(wired_system.components):
        connectors = _add_component(elements, wired_system, index, component, boxes[index])
        for terminal, type_name in (
            (name, terminal_type.name)
            for terminal_type in terminal_types
            for owner, name in terminal_type.terminals
            if owner == index
        ):
            connector = _add_child(connectors, SSD, "Connector", name=terminal, kind="terminal")
            _add_child(connector, SSC, "Terminal", name=type_name)
        if not len(connectors):
            elements[-1].remove(connectors)  # by the schema a list of connectors is not empty
    if wired_system.wiring.links:
        _add_connections(
            _add_child(system_element, SSD, "Connections"),
            wired_system,
            wired_system.terminal_links if terminal_types else (),
        )
    _add_annotation(system_element, "org.openmodelica", _make_omsimulator_annotation(wired_system))
    _add_units(root, wired_system)
    if terminal_types:
        _add_terminal_types(_add_child(root, SSD, "Terminals"), terminal_types)
    experiment = _add_child(root, SSD, "DefaultExperiment", startTime="0.0", stopTime=repr(system.run_settings.stop))
    _add_annotation(experiment, "com.opensimulationplatform", _make_osp_annotation(wired_system))
    return root


def _add_terminal_types(parent: Element, terminal_types: Sequence[_SspTerminalType]) -> None:
    """Add the types of terminals with their members (draft 2.1 only)."""
    for terminal_type in terminal_types:
        members = _add_child(
            _add_child(parent, SSD, "Terminal", name=terminal_type.name, matchingRule=terminal_type.matching_rule),
            SSD,
            "Connectors",
        )
        for name, unit in terminal_type.members:
            member = _add_child(members, SSD, "Connector", name=name, kind="local")
            _add_child(member, SSC, "Real", **({"unit": unit} if unit else {}))


def _add_connections(parent: Element, wired_system: WiredSystem, terminal_links: Sequence[ConnectedTerminals]) -> None:
    """Add links one by one; those of terminals as one connection each where terminals are written."""
    wiring, stale_reads = wired_system.wiring, find_outputs_read_before_inputs(wired_system.wiring)
    terminal_link_of_target = {
        target: index for index, terminal_link in enumerate(terminal_links) for target in terminal_link.targets
    }
    written_connections: dict[int, Element] = {}
    for link in wiring.links:
        source, target = wiring.outputs[link.source], wiring.inputs[link.target]
        terminal_link_index = terminal_link_of_target.get((target.component, target.name))
        ends = (
            ((source.component, source.name), (target.component, target.name))
            if terminal_link_index is None
            else terminal_links[terminal_link_index].ends
        )
        connection = None if terminal_link_index is None else written_connections.get(terminal_link_index)
        if connection is None:
            connection = _add_child(
                parent, SSD, "Connection",
                startElement=wiring.components[ends[0][0]], startConnector=ends[0][1],
                endElement=wiring.components[ends[1][0]], endConnector=ends[1][1],
            )  # fmt: skip
            if link.delay:
                delay_element = etree.Element(
                    f"{{{MB2FMU_NAMESPACE}}}Delay", nsmap={"mb2fmu": MB2FMU_NAMESPACE}, seconds=repr(link.delay)
                )
                _add_annotation(connection, GENERATION_TOOL, delay_element)
        descriptions = [connection.get("description", "")] if connection.get("description") else []
        descriptions += [stale_reads[link.source]] if link.source in stale_reads else []
        descriptions += [f"arrives {link.delay:g} s late"] if link.delay and not descriptions else []
        if descriptions:
            connection.set("description", "; ".join(dict.fromkeys(descriptions)))
        if terminal_link_index is not None:
            written_connections[terminal_link_index] = connection
        elif (link.factor, link.offset) != (1.0, 0.0):
            connection.set("suppressUnitConversion", "true")
            transformation = etree.Element(
                f"{{{SSC}}}LinearTransformation", factor=repr(link.factor), offset=repr(link.offset)
            )
            connection.insert(0, transformation)


def _add_component(
    parent: Element, wired_system: WiredSystem, index: int, component: FmuComponent, box: DiagramComponentBox
) -> Element:
    """Add a component, and return the element of its connectors."""
    component_element = _add_child(
        parent, SSD, "Component", name=component.name, type="application/x-fmu-sharedlibrary",
        source=f"resources/{component.name}.fmu",
    )  # fmt: skip
    linked_inputs = {
        wired_system.wiring.inputs[input_index].name for input_index in wired_system.wiring.inputs_of(index)
    }
    inputs = [
        *(input_name for input_name in component.inputs if input_name in linked_inputs),
        *(input_name for input_name in component.inputs if input_name not in linked_inputs),
    ]
    connectors = _add_child(component_element, SSD, "Connectors")
    for connector_kind, names, position_x in (("input", inputs, "0.0"), ("output", component.outputs, "1.0")):
        for position, name in enumerate(names):
            connector = _add_connector(connectors, component, name, connector_kind)
            _add_child(connector, SSD, "ConnectorGeometry", x=position_x, y=repr((position + 1.0) / (len(names) + 1.0)))
    for name in wired_system.values[index]:
        if component.variables[name].causality == "parameter":
            _add_connector(connectors, component, name, "parameter")
    _add_child(
        component_element,
        SSD,
        "ElementGeometry",
        x1=repr(box.left),
        y1=repr(box.top),
        x2=repr(box.right),
        y2=repr(box.bottom),
    )
    if wired_system.values[index]:
        bindings = _add_child(component_element, SSD, "ParameterBindings")
        _add_child(bindings, SSD, "ParameterBinding", source=f"resources/{component.name}.ssv")
    return connectors


def _add_connector(parent: Element, component: FmuComponent, name: str, connector_kind: str) -> Element:
    """Add a connector of a component, with the variable's unit."""
    connector = _add_child(parent, SSD, "Connector", name=name, kind=connector_kind)
    unit = component.unit(name)
    _add_child(connector, SSC, "Real", **({"unit": unit.name} if unit else {}))
    return connector


def _make_component_values(component: FmuComponent, values: Mapping[str, float], version: SspVersion) -> Element:
    """Return the set of a component's own values."""
    return _make_parameter_set(
        PARAMETER_SET_NAME, [(name, value, component.unit(name)) for name, value in values.items()], version
    )


def _make_system_parameters(wired_system: WiredSystem, version: SspVersion) -> Element:
    """Return the set of the system's parameters, as declared."""
    parameters = []
    for parameter in wired_system.system.parameters:
        value, name = parameter.value if isinstance(parameter.value, tuple) else (parameter.value, None)
        parsed_unit = None if name is None else parse_unit(name)
        unit = (
            None
            if parsed_unit is None
            else FmuUnitDefinition(str(name), parsed_unit.whole_exponents, parsed_unit.factor, parsed_unit.offset)
        )
        parameters.append((parameter.name, float(value), unit))
    return _make_parameter_set(wired_system.system.name, parameters, version)


def _make_parameter_set(
    name: str, values: Sequence[tuple[str, float, FmuUnitDefinition | None]], version: SspVersion
) -> Element:
    """Return a parameter set with the units of measure that it uses."""
    root = etree.Element(f"{{{SSV}}}ParameterSet", nsmap={"ssv": SSV, "ssc": SSC})
    root.set("version", "1.0" if version == "1.0" else "2.0")
    root.set("name", name)
    parameters = _add_child(root, SSV, "Parameters")
    used_units = {}
    for parameter, value, unit in values:
        value_element = _add_child(
            _add_child(parameters, SSV, "Parameter", name=parameter), SSV, "Real", value=repr(value)
        )
        if unit is not None:
            value_element.set("unit", unit.name)
            used_units[unit.name] = unit
    if used_units:
        units = _add_child(root, SSV, "Units")
        for unit in used_units.values():
            _add_unit(units, unit)
    return root


def _make_parameter_mapping(wired_system: WiredSystem, version: SspVersion) -> Element:
    """Return which variables follow which parameter, with conversions of units spelled out for every importer."""
    root = etree.Element(f"{{{SSM}}}ParameterMapping", nsmap={"ssm": SSM, "ssc": SSC})
    root.set("version", "1.0" if version == "1.0" else "2.0")
    for mapped_parameter in wired_system.mapped_parameters:
        component = wired_system.components[mapped_parameter.component].name
        source = wired_system.system.parameters[mapped_parameter.parameter].name
        entry = _add_child(root, SSM, "MappingEntry", source=source, target=f"{component}.{mapped_parameter.variable}")
        if (mapped_parameter.factor, mapped_parameter.offset) != (1.0, 0.0):
            entry.set("suppressUnitConversion", "true")
            _add_child(
                entry,
                SSC,
                "LinearTransformation",
                factor=repr(mapped_parameter.factor),
                offset=repr(mapped_parameter.offset),
            )
    return root


def _add_units(root: Element, wired_system: WiredSystem) -> None:
    """Add all units of measure that connectors and values use, sorted by name."""
    used_units: dict[str, FmuUnitDefinition] = {}
    for index, component in enumerate(wired_system.components):
        for name in (*component.inputs, *component.outputs, *wired_system.values[index]):
            unit = component.unit(name)
            if unit is not None:
                used_units.setdefault(unit.name, unit)
    if used_units:
        units = _add_child(root, SSD, "Units")
        for name in sorted(used_units):
            _add_unit(units, used_units[name])


def _add_unit(parent: Element, unit: FmuUnitDefinition) -> None:
    """Add a unit of measure with its base unit: exponents, factor and offset where they are not the default."""
    unit_element = _add_child(parent, SSC, "Unit", name=unit.name)
    attributes = {base: str(power) for base, power in zip(BASE_UNITS, unit.exponents or (), strict=False) if power}
    if unit.factor != 1.0:
        attributes["factor"] = repr(unit.factor)
    if unit.offset:
        attributes["offset"] = repr(unit.offset)
    _add_child(unit_element, SSC, "BaseUnit", **attributes)


def _make_omsimulator_annotation(wired_system: WiredSystem) -> Element:
    """Return the annotation of OMSimulator: its fixed-step master and the step."""
    run_settings = wired_system.system.run_settings
    root = etree.Element(f"{{{OMS}}}Annotations", nsmap={"oms": OMS})
    information = _add_child(root, OMS, "SimulationInformation")
    _add_child(
        information, OMS, "FixedStepMaster", description="oms-ma", stepSize=repr(run_settings.stepping.step),
        absoluteTolerance=repr(run_settings.tolerance), relativeTolerance=repr(run_settings.tolerance),
    )  # fmt: skip
    return root


def _make_osp_annotation(wired_system: WiredSystem) -> Element:
    """Return the annotation of libcosim: its fixed-step algorithm and the step."""
    root = etree.Element(f"{{{OSP}}}Algorithm", nsmap={"osp": OSP})
    _add_child(root, OSP, "FixedStepAlgorithm", baseStepSize=repr(wired_system.system.run_settings.stepping.step))
    return root


def _add_annotation(parent: Element, annotation_type: str, content: Element) -> None:
    """Add an annotation of a kind, with its content."""
    annotations = _add_child(parent, SSD, "Annotations")
    _add_child(annotations, SSC, "Annotation", type=annotation_type).append(content)


def _add_child(parent: Element, namespace: str, tag: str, /, **attributes: str) -> Element:
    """Add an element of a namespace with these attributes and return it."""
    child = etree.SubElement(parent, f"{{{namespace}}}{tag}")
    for key, value in attributes.items():
        child.set(key, value)
    return child


def _serialize_xml(root: Element) -> bytes:
    """Return the XML as bytes."""
    text: bytes = etree.tostring(root, xml_declaration=True, encoding="UTF-8", pretty_print=True)
    return text


@dataclass(frozen=True)
class _SspTerminalType:
    """Connected terminals with the same members.

    Attributes:
        name: Name of the type.
        matching_rule: Rule that matches members: FMI's ``bus`` connects those that both sides have.
        members: (name, unit) of each.
        terminals: (component, terminal) of those that have this type.
    """

    name: str
    matching_rule: str
    members: tuple[tuple[str, str], ...]
    terminals: tuple[tuple[int, str], ...]


def _list_connected_terminal_types(wired_system: WiredSystem) -> tuple[_SspTerminalType, ...]:
    """Return the types of all connected terminals, in the order of connections; named after their first one."""
    terminals_by_members: dict[tuple[tuple[str, str], ...], dict[tuple[int, str], None]] = {}
    for link in wired_system.terminal_links:
        for component_index, terminal in link.ends:
            component = wired_system.components[component_index]
            units = ((member.name, component.unit(member.variable)) for member in component.terminals[terminal]
                     if member.variable in component.variables)  # fmt: skip
            members = tuple((name, unit.name if unit else "") for name, unit in units)
            terminals_by_members.setdefault(members, {})[component_index, terminal] = None
    terminal_types = []
    for members, terminals in terminals_by_members.items():
        component_index, terminal = next(iter(terminals))
        terminal_types.append(
            _SspTerminalType(
                f"{wired_system.components[component_index].name}.{terminal}", "bus", members, tuple(terminals)
            )
        )
    return tuple(terminal_types)
