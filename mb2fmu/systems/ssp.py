"""SSP 1.0: a joined system as one archive (System Structure and Parameterization, 2019).

Written are ``SystemStructure.ssd`` with connectors, units, connections (linear transformations where a unit of measure
or a sign changes), geometry and the default experiment; ``resources/<component>.fmu``; start values of a component as
``resources/<component>.ssv``. No mapping (SSM) is needed: parameters have the names of the units' variables.
Annotations say the fixed step to OMSimulator (``org.openmodelica``) and libcosim (``com.opensimulationplatform``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import fmpy.ssp
from lxml import etree

from mb2fmu.errors import EmitError, Fault
from mb2fmu.filetree import FileTree
from mb2fmu.systems.component import Component, UnitOfMeasure
from mb2fmu.systems.coupling import stale_reads
from mb2fmu.systems.joining import Joined
from mb2fmu.systems.system_layout import Box, boxes
from mb2fmu.units import BASE_UNITS

STRUCTURE = "SystemStructure.ssd"
_SSP1 = "http://ssp-standard.org/SSP1"
SSC, SSD, SSV = (f"{_SSP1}/SystemStructure{part}" for part in ("Common", "Description", "ParameterValues"))
OMS = "https://raw.githubusercontent.com/OpenModelica/OMSimulator/master/schema/oms.xsd"
OSP = "http://opensimulationplatform.com/SSP/OSPAnnotations"
TOOL = "mb2fmu"
OWN = "https://mb2fmu/SSP/Annotations"
"""A delay of a connection; SSP has none, and other masters pass the value on after their own step."""

Element = etree._Element  # noqa: SLF001  lxml has no public name for it


def ssp_files(joined: Joined) -> FileTree:
    """A system as the files of an ``.ssp``.

    Raises:
        EmitError: If what was made does not follow the schemas of SSP 1.0.
    """
    files = {STRUCTURE: _printed(_structure(joined))}
    for component, values in zip(joined.components, joined.values, strict=True):
        files[f"resources/{component.name}.fmu"] = component.content
        if values:
            files[f"resources/{component.name}.ssv"] = _printed(_parameters(component, values))
    faults = [fault for name, text in files.items() if not name.endswith(".fmu") for fault in schema_faults(name, text)]
    if faults:
        raise EmitError(f"{joined.system.name} cannot be written as SSP:", faults)
    return FileTree(files)


def schema_faults(name: str, content: bytes) -> Iterator[Fault]:
    """What in a file does not follow SSP's schemas."""
    kind = {".ssv": "ParameterValues", ".ssm": "ParameterMapping"}.get(Path(name).suffix, "Description")
    schema = _schema(kind)
    if not schema.validate(etree.fromstring(content)):
        for error in schema.error_log:
            yield Fault(str(error.message), f"{name}:{error.line}")


@cache
def _schema(kind: str) -> etree.XMLSchema:
    folder = Path(fmpy.ssp.__file__).parent / "schema"
    return etree.XMLSchema(etree.parse(folder / f"SystemStructure{kind}.xsd"))


def _structure(joined: Joined) -> Element:
    system = joined.system
    root = etree.Element(f"{{{SSD}}}SystemStructureDescription", nsmap={"ssd": SSD, "ssc": SSC, "oms": OMS, "osp": OSP})
    root.set("name", system.name)
    root.set("version", "1.0")
    root.set("generationTool", TOOL)
    top = _child(root, SSD, "System", name=system.name)
    if system.description:
        top.set("description", system.description)
    places = boxes(joined.wiring)
    elements = _child(top, SSD, "Elements")
    for k, component in enumerate(joined.components):
        _component(elements, joined, k, component, places[k])
    if joined.wiring.links:
        connections, stale = _child(top, SSD, "Connections"), stale_reads(joined.wiring)
        for link in joined.wiring.links:
            source, target = joined.wiring.outputs[link.source], joined.wiring.inputs[link.target]
            made = _child(
                connections, SSD, "Connection",
                startElement=joined.wiring.components[source.component], startConnector=source.name,
                endElement=joined.wiring.components[target.component], endConnector=target.name,
            )  # fmt: skip
            if link.source in stale:
                made.set("description", stale[link.source])
            if (link.factor, link.offset) != (1.0, 0.0):
                made.set("suppressUnitConversion", "true")
                _child(made, SSC, "LinearTransformation", factor=repr(link.factor), offset=repr(link.offset))
            if link.delay:
                made.set("description", f"arrives {link.delay:g} s late")
                late = etree.Element(f"{{{OWN}}}Delay", nsmap={"mb2fmu": OWN}, seconds=repr(link.delay))
                _annotated(made, TOOL, late)
    right, top_edge = max(box.right for box in places), max(box.bottom for box in places)
    _child(top, SSD, "SystemGeometry", x1="0.0", y1="0.0", x2=repr(right + 40.0), y2=repr(top_edge + 40.0))
    _annotated(top, "org.openmodelica", _open_modelica(joined))
    _units(root, joined)
    experiment = _child(root, SSD, "DefaultExperiment", startTime="0.0", stopTime=repr(system.run.stop))
    _annotated(experiment, "com.opensimulationplatform", _simulation_platform(joined))
    return root


def _component(parent: Element, joined: Joined, k: int, component: Component, box: Box) -> None:
    made = _child(
        parent, SSD, "Component", name=component.name, type="application/x-fmu-sharedlibrary",
        source=f"resources/{component.name}.fmu",
    )  # fmt: skip
    linked = {joined.wiring.inputs[i].name for i in joined.wiring.inputs_of(k)}
    inputs = [*(n for n in component.inputs if n in linked), *(n for n in component.inputs if n not in linked)]
    connectors = _child(made, SSD, "Connectors")
    for kind, names, x in (("input", inputs, "0.0"), ("output", component.outputs, "1.0")):
        for place, name in enumerate(names):
            connector = _child(connectors, SSD, "Connector", name=name, kind=kind)
            unit = component.unit(name)
            _child(connector, SSC, "Real", **({"unit": unit.name} if unit else {}))
            _child(connector, SSD, "ConnectorGeometry", x=x, y=repr((place + 1.0) / (len(names) + 1.0)))
    _child(made, SSD, "ElementGeometry", x1=repr(box.left), y1=repr(box.top), x2=repr(box.right), y2=repr(box.bottom))
    if joined.values[k]:
        bindings = _child(made, SSD, "ParameterBindings")
        _child(bindings, SSD, "ParameterBinding", source=f"resources/{component.name}.ssv")


def _parameters(component: Component, values: Mapping[str, float]) -> Element:
    root = etree.Element(f"{{{SSV}}}ParameterSet", nsmap={"ssv": SSV, "ssc": SSC})
    root.set("version", "1.0")
    root.set("name", component.name)
    parameters = _child(root, SSV, "Parameters")
    used = {}
    for name, value in values.items():
        unit = component.unit(name)
        real = _child(_child(parameters, SSV, "Parameter", name=name), SSV, "Real", value=repr(value))
        if unit is not None:
            real.set("unit", unit.name)
            used[unit.name] = unit
    if used:
        units = _child(root, SSV, "Units")
        for unit in used.values():
            _unit(units, unit)
    return root


def _units(root: Element, joined: Joined) -> None:
    used: dict[str, UnitOfMeasure] = {}
    for component in joined.components:
        for name in (*component.inputs, *component.outputs):
            unit = component.unit(name)
            if unit is not None:
                used.setdefault(unit.name, unit)
    if used:
        units = _child(root, SSD, "Units")
        for name in sorted(used):
            _unit(units, used[name])


def _unit(parent: Element, unit: UnitOfMeasure) -> None:
    made = _child(parent, SSC, "Unit", name=unit.name)
    powers = {base: str(power) for base, power in zip(BASE_UNITS, unit.exponents or (), strict=False) if power}
    if unit.factor != 1.0:
        powers["factor"] = repr(unit.factor)
    if unit.offset:
        powers["offset"] = repr(unit.offset)
    _child(made, SSC, "BaseUnit", **powers)


def _open_modelica(joined: Joined) -> Element:
    """What OMSimulator reads: its fixed-step master and the step."""
    run = joined.system.run
    root = etree.Element(f"{{{OMS}}}Annotations", nsmap={"oms": OMS})
    information = _child(root, OMS, "SimulationInformation")
    _child(
        information, OMS, "FixedStepMaster", description="oms-ma", stepSize=repr(run.stepping.step),
        absoluteTolerance=repr(run.tolerance), relativeTolerance=repr(run.tolerance),
    )  # fmt: skip
    return root


def _simulation_platform(joined: Joined) -> Element:
    """What libcosim reads: its fixed-step algorithm and the step."""
    root = etree.Element(f"{{{OSP}}}Algorithm", nsmap={"osp": OSP})
    _child(root, OSP, "FixedStepAlgorithm", baseStepSize=repr(joined.system.run.stepping.step))
    return root


def _annotated(parent: Element, kind: str, content: Element) -> None:
    annotations = _child(parent, SSD, "Annotations")
    _child(annotations, SSC, "Annotation", type=kind).append(content)


def _child(parent: Element, namespace: str, tag: str, /, **attributes: str) -> Element:
    made = etree.SubElement(parent, f"{{{namespace}}}{tag}")
    for key, value in attributes.items():
        made.set(key, value)
    return made


def _printed(root: Element) -> bytes:
    text: bytes = etree.tostring(root, xml_declaration=True, encoding="UTF-8", pretty_print=True)
    return text
