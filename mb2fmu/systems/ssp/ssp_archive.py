"""SSP: a joined system as one archive (System Structure and Parameterization 1.0 of 2019, 2.0 of 2024).

Written are ``SystemStructure.ssd`` with connectors, units, connections (linear transformations where a unit of measure
or a sign changes), geometry and the default experiment; ``resources/<component>.fmu``; values of a component as
``resources/<component>.ssv``; parameters of the system as ``resources/parameters.ssv`` with the mapping
``resources/parameters.ssm`` to variables of components. What these give stands in the components' own files too: a
master that reads no mapping has the right values, one that does lets the system's have precedence (5.2.3 of SSP 1.0.1).
``2.1-draft`` writes connected terminals as such (``list_terminal_types``); no released version has them.
Annotations say the fixed step to OMSimulator (``org.openmodelica``) and libcosim (``com.opensimulationplatform``).
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
from mb2fmu.fmu.file_tree import FileTree
from mb2fmu.systems.fmu_component import FmuComponent, UnitOfMeasure
from mb2fmu.systems.resolved_system import find_stale_reads
from mb2fmu.systems.system_layout import ComponentBox, place_component_boxes
from mb2fmu.systems.wired_system import TerminalLink, WiredSystem
from mb2fmu.units import BASE_UNITS, parse_unit

STRUCTURE = "SystemStructure.ssd"
PARAMETERS = "resources/parameters"
"""Values and mapping of the system's own parameters, without their endings."""
VALUES = "initialValues"
"""Name of every component's parameter set: ecos applies the sets of one name, which it is told at initialization."""
_SSP1 = "http://ssp-standard.org/SSP1"
SSC, SSD, SSV, SSM = (
    f"{_SSP1}/SystemStructure{part}" for part in ("Common", "Description", "ParameterValues", "ParameterMapping")
)
OMS = "https://raw.githubusercontent.com/OpenModelica/OMSimulator/master/schema/oms.xsd"
OSP = "http://opensimulationplatform.com/SSP/OSPAnnotations"
TOOL = "mb2fmu"
SspVersion = Literal["1.0", "2.0", "2.1-draft"]
VERSIONS: tuple[SspVersion, ...] = get_args(SspVersion)
_KINDS = {".ssv": "ParameterValues", ".ssm": "ParameterMapping"}
OWN = "https://mb2fmu/SSP/Annotations"
"""A delay of a connection; SSP has none, and other masters pass the value on after their own step."""

Element = etree._Element  # noqa: SLF001  lxml has no public name for it


def write_ssp_files(joined: WiredSystem, version: SspVersion = "1.0") -> FileTree:
    """Return a system as the files of an ``.ssp``.

    Args:
        joined: The system.
        version: Of SSP. Most importers read 1.0 alone.

    Raises:
        EmitError: If what was made does not follow the schemas of that version.
    """
    files = {STRUCTURE: _printed(_structure(joined, version))}
    for component, values in zip(joined.components, joined.values, strict=True):
        files[f"resources/{component.name}.fmu"] = component.content
        if values:
            files[f"resources/{component.name}.ssv"] = _printed(_values(component, values, version))
    if joined.mapped:
        files[f"{PARAMETERS}.ssv"] = _printed(_parameters(joined, version))
        files[f"{PARAMETERS}.ssm"] = _printed(_mapping(joined, version))
    faults = [
        fault for name, text in files.items() if not name.endswith(".fmu") for fault in find_schema_faults(name, text)
    ]
    if faults:
        raise EmitError(f"{joined.system.name} cannot be written as SSP:", faults)
    return FileTree(files)


def find_schema_faults(name: str, content: bytes) -> Iterator[Fault]:
    """Yield violations of SSP's schemas in a file, by the version that it declares."""
    kind = _KINDS.get(Path(name).suffix, "Description")
    root = etree.fromstring(content)
    schema = _schema(kind, root.get("version", ""))
    if not schema.validate(root):
        for error in schema.error_log:
            yield Fault(str(error.message), f"{name}:{error.line}")


@cache
def _schema(kind: str, version: str) -> etree.XMLSchema:
    """Return the schema of a kind of file; that of 1.0 for versions that are not known."""
    if version == "2.1" and kind == "Description":
        folder = Path(__file__).parent / "schema" / "ssp2.1-draft"
    elif version in {"2.0", "2.1"}:
        folder = Path(__file__).parent / "schema" / "ssp2.0"
    else:
        folder = Path(fmpy.ssp.__file__).parent / "schema"
    return etree.XMLSchema(etree.parse(folder / f"SystemStructure{kind}.xsd"))


def _structure(joined: WiredSystem, version: SspVersion) -> Element:
    """Return the SystemStructureDescription of a joined system, with geometry and annotations for other tools."""
    system = joined.system
    root = etree.Element(f"{{{SSD}}}SystemStructureDescription", nsmap={"ssd": SSD, "ssc": SSC, "oms": OMS, "osp": OSP})
    root.set("name", system.name)
    root.set("version", version.removesuffix("-draft"))
    root.set("generationTool", TOOL)
    top = _child(root, SSD, "System", name=system.name)
    if system.description:
        top.set("description", system.description)
    if joined.mapped:
        bound = _child(_child(top, SSD, "ParameterBindings"), SSD, "ParameterBinding", source=f"{PARAMETERS}.ssv")
        _child(bound, SSD, "ParameterMapping", source=f"{PARAMETERS}.ssm")
    types = list_terminal_types(joined) if version == "2.1-draft" else ()
    places = place_component_boxes(joined.wiring)
    elements = _child(top, SSD, "Elements")
    for k, component in enumerate(joined.components):
        connectors = _component(elements, joined, k, component, places[k])
        for terminal, type_name in ((name, each.name) for each in types for owner, name in each.used if owner == k):
            made = _child(connectors, SSD, "Connector", name=terminal, kind="terminal")
            _child(made, SSC, "Terminal", name=type_name)
        if not len(connectors):
            elements[-1].remove(connectors)  # by the schema a list of connectors is not empty
    if joined.wiring.links:
        _connections(_child(top, SSD, "Connections"), joined, joined.terminals if types else ())
    _annotated(top, "org.openmodelica", _open_modelica(joined))
    _units(root, joined)
    if types:
        _terminal_types(_child(root, SSD, "Terminals"), types)
    experiment = _child(root, SSD, "DefaultExperiment", startTime="0.0", stopTime=repr(system.run.stop))
    _annotated(experiment, "com.opensimulationplatform", _simulation_platform(joined))
    return root


def _terminal_types(parent: Element, types: Sequence[TerminalType]) -> None:
    """Add the types of terminals with their members (draft 2.1 only)."""
    for each in types:
        members = _child(_child(parent, SSD, "Terminal", name=each.name, matchingRule=each.rule), SSD, "Connectors")
        for name, unit in each.members:
            member = _child(members, SSD, "Connector", name=name, kind="local")
            _child(member, SSC, "Real", **({"unit": unit} if unit else {}))


def _connections(parent: Element, joined: WiredSystem, terminals: Sequence[TerminalLink]) -> None:
    """Add links one by one; those of terminals as one connection each where terminals are written."""
    wiring, stale = joined.wiring, find_stale_reads(joined.wiring)
    of = {target: k for k, each in enumerate(terminals) for target in each.targets}
    written: dict[int, Element] = {}
    for link in wiring.links:
        source, target = wiring.outputs[link.source], wiring.inputs[link.target]
        place = of.get((target.component, target.name))
        ends = (
            ((source.component, source.name), (target.component, target.name))
            if place is None
            else terminals[place].ends
        )
        made = None if place is None else written.get(place)
        if made is None:
            made = _child(
                parent, SSD, "Connection",
                startElement=wiring.components[ends[0][0]], startConnector=ends[0][1],
                endElement=wiring.components[ends[1][0]], endConnector=ends[1][1],
            )  # fmt: skip
            if link.delay:
                late = etree.Element(f"{{{OWN}}}Delay", nsmap={"mb2fmu": OWN}, seconds=repr(link.delay))
                _annotated(made, TOOL, late)
        said = [made.get("description", "")] if made.get("description") else []
        said += [stale[link.source]] if link.source in stale else []
        said += [f"arrives {link.delay:g} s late"] if link.delay and not said else []
        if said:
            made.set("description", "; ".join(dict.fromkeys(said)))
        if place is not None:
            written[place] = made
        elif (link.factor, link.offset) != (1.0, 0.0):
            made.set("suppressUnitConversion", "true")
            line = etree.Element(f"{{{SSC}}}LinearTransformation", factor=repr(link.factor), offset=repr(link.offset))
            made.insert(0, line)


def _component(parent: Element, joined: WiredSystem, k: int, component: FmuComponent, box: ComponentBox) -> Element:
    """Add a component, and return the element of its connectors."""
    made = _child(
        parent, SSD, "Component", name=component.name, type="application/x-fmu-sharedlibrary",
        source=f"resources/{component.name}.fmu",
    )  # fmt: skip
    linked = {joined.wiring.inputs[i].name for i in joined.wiring.inputs_of(k)}
    inputs = [*(n for n in component.inputs if n in linked), *(n for n in component.inputs if n not in linked)]
    connectors = _child(made, SSD, "Connectors")
    for kind, names, x in (("input", inputs, "0.0"), ("output", component.outputs, "1.0")):
        for place, name in enumerate(names):
            connector = _connector(connectors, component, name, kind)
            _child(connector, SSD, "ConnectorGeometry", x=x, y=repr((place + 1.0) / (len(names) + 1.0)))
    for name in joined.values[k]:
        if component.variables[name].causality == "parameter":
            _connector(connectors, component, name, "parameter")
    _child(made, SSD, "ElementGeometry", x1=repr(box.left), y1=repr(box.top), x2=repr(box.right), y2=repr(box.bottom))
    if joined.values[k]:
        bindings = _child(made, SSD, "ParameterBindings")
        _child(bindings, SSD, "ParameterBinding", source=f"resources/{component.name}.ssv")
    return connectors


def _connector(parent: Element, component: FmuComponent, name: str, kind: str) -> Element:
    """Add a connector of a component, with the variable's unit."""
    made = _child(parent, SSD, "Connector", name=name, kind=kind)
    unit = component.unit(name)
    _child(made, SSC, "Real", **({"unit": unit.name} if unit else {}))
    return made


def _values(component: FmuComponent, values: Mapping[str, float], version: SspVersion) -> Element:
    """Return the set of a component's own values."""
    return _parameter_set(VALUES, [(name, value, component.unit(name)) for name, value in values.items()], version)


def _parameters(joined: WiredSystem, version: SspVersion) -> Element:
    """Return the set of the system's parameters, as declared."""
    found = []
    for each in joined.system.parameters:
        value, name = each.value if isinstance(each.value, tuple) else (each.value, None)
        read = None if name is None else parse_unit(name)
        unit = None if read is None else UnitOfMeasure(str(name), read.exponents, read.factor, read.offset)
        found.append((each.name, float(value), unit))
    return _parameter_set(joined.system.name, found, version)


def _parameter_set(
    name: str, values: Sequence[tuple[str, float, UnitOfMeasure | None]], version: SspVersion
) -> Element:
    """Return a parameter set with the FMUs that it uses."""
    root = etree.Element(f"{{{SSV}}}ParameterSet", nsmap={"ssv": SSV, "ssc": SSC})
    root.set("version", "1.0" if version == "1.0" else "2.0")
    root.set("name", name)
    parameters = _child(root, SSV, "Parameters")
    used = {}
    for parameter, value, unit in values:
        real = _child(_child(parameters, SSV, "Parameter", name=parameter), SSV, "Real", value=repr(value))
        if unit is not None:
            real.set("unit", unit.name)
            used[unit.name] = unit
    if used:
        units = _child(root, SSV, "Units")
        for unit in used.values():
            _unit(units, unit)
    return root


def _mapping(joined: WiredSystem, version: SspVersion) -> Element:
    """Return which variables follow which parameter, with conversions of FMUs spelled out for every importer."""
    root = etree.Element(f"{{{SSM}}}ParameterMapping", nsmap={"ssm": SSM, "ssc": SSC})
    root.set("version", "1.0" if version == "1.0" else "2.0")
    for each in joined.mapped:
        component = joined.components[each.component].name
        source = joined.system.parameters[each.parameter].name
        entry = _child(root, SSM, "MappingEntry", source=source, target=f"{component}.{each.variable}")
        if (each.factor, each.offset) != (1.0, 0.0):
            entry.set("suppressUnitConversion", "true")
            _child(entry, SSC, "LinearTransformation", factor=repr(each.factor), offset=repr(each.offset))
    return root


def _units(root: Element, joined: WiredSystem) -> None:
    """Add all FMUs that connectors and values use, sorted by name."""
    used: dict[str, UnitOfMeasure] = {}
    for k, component in enumerate(joined.components):
        for name in (*component.inputs, *component.outputs, *joined.values[k]):
            unit = component.unit(name)
            if unit is not None:
                used.setdefault(unit.name, unit)
    if used:
        units = _child(root, SSD, "Units")
        for name in sorted(used):
            _unit(units, used[name])


def _unit(parent: Element, unit: UnitOfMeasure) -> None:
    """Add an FMU with its base unit: exponents, factor and offset where they are not the default."""
    made = _child(parent, SSC, "Unit", name=unit.name)
    powers = {base: str(power) for base, power in zip(BASE_UNITS, unit.exponents or (), strict=False) if power}
    if unit.factor != 1.0:
        powers["factor"] = repr(unit.factor)
    if unit.offset:
        powers["offset"] = repr(unit.offset)
    _child(made, SSC, "BaseUnit", **powers)


def _open_modelica(joined: WiredSystem) -> Element:
    """Return the annotation of OMSimulator: its fixed-step master and the step."""
    run = joined.system.run
    root = etree.Element(f"{{{OMS}}}Annotations", nsmap={"oms": OMS})
    information = _child(root, OMS, "SimulationInformation")
    _child(
        information, OMS, "FixedStepMaster", description="oms-ma", stepSize=repr(run.stepping.step),
        absoluteTolerance=repr(run.tolerance), relativeTolerance=repr(run.tolerance),
    )  # fmt: skip
    return root


def _simulation_platform(joined: WiredSystem) -> Element:
    """Return the annotation of libcosim: its fixed-step algorithm and the step."""
    root = etree.Element(f"{{{OSP}}}Algorithm", nsmap={"osp": OSP})
    _child(root, OSP, "FixedStepAlgorithm", baseStepSize=repr(joined.system.run.stepping.step))
    return root


def _annotated(parent: Element, kind: str, content: Element) -> None:
    """Add an annotation of a kind, with its content."""
    annotations = _child(parent, SSD, "Annotations")
    _child(annotations, SSC, "Annotation", type=kind).append(content)


def _child(parent: Element, namespace: str, tag: str, /, **attributes: str) -> Element:
    """Add an element of a namespace with these attributes and return it."""
    made = etree.SubElement(parent, f"{{{namespace}}}{tag}")
    for key, value in attributes.items():
        made.set(key, value)
    return made


def _printed(root: Element) -> bytes:
    """Return the XML as bytes."""
    text: bytes = etree.tostring(root, xml_declaration=True, encoding="UTF-8", pretty_print=True)
    return text


@dataclass(frozen=True)
class TerminalType:
    """Connected terminals with the same members.

    Attributes:
        name: Of the type.
        rule: Which members must meet: FMI's ``bus`` connects those that both sides have.
        members: (name, unit) of each.
        used: (component, terminal) of those that have this type.
    """

    name: str
    rule: str
    members: tuple[tuple[str, str], ...]
    used: tuple[tuple[int, str], ...]


def list_terminal_types(joined: WiredSystem) -> tuple[TerminalType, ...]:
    """Return the types of all connected terminals, in the order of connections; named after their first one."""
    found: dict[tuple[tuple[str, str], ...], dict[tuple[int, str], None]] = {}
    for link in joined.terminals:
        for k, terminal in link.ends:
            component = joined.components[k]
            units = ((each.name, component.unit(each.variable)) for each in component.terminals[terminal]
                     if each.variable in component.variables)  # fmt: skip
            members = tuple((name, unit.name if unit else "") for name, unit in units)
            found.setdefault(members, {})[k, terminal] = None
    made = []
    for members, used in found.items():
        k, terminal = next(iter(used))
        made.append(TerminalType(f"{joined.components[k].name}.{terminal}", "bus", members, tuple(used)))
    return tuple(made)
