"""The system as libcosim reads it: ``OspSystemStructure.xml`` of the Open Simulation Platform (MSMI 0.1)."""

from __future__ import annotations

from lxml import etree

from mb2fmu.fmu.file_tree import FileTree
from mb2fmu.systems.resolved_system import ComponentPort, find_stale_reads
from mb2fmu.systems.wired_system import WiredSystem

NAMESPACE = "http://opensimulationplatform.com/MSMI/OSPSystemStructure"
FILE = "OspSystemStructure.xml"

Element = etree._Element  # noqa: SLF001  lxml has no public name for it


def write_osp_files(joined: WiredSystem) -> FileTree:
    """Return the configuration and the FMUs, for one folder."""
    files = {f"{component.name}.fmu": component.content for component in joined.components}
    files[FILE] = etree.tostring(_structure(joined), xml_declaration=True, encoding="UTF-8", pretty_print=True)
    return FileTree(files)


def _structure(joined: WiredSystem) -> Element:
    """Return the XML of a system; comments tell where libcosim deviates from the declared coupling."""
    run, wiring = joined.system.run, joined.wiring
    root = etree.Element(f"{{{NAMESPACE}}}OspSystemStructure", nsmap={None: NAMESPACE}, version="0.1")
    for name, text in (("StartTime", "0.0"), ("BaseStepSize", repr(run.stepping.step)), ("Algorithm", "fixedStep")):
        _child(root, name).text = text
    simulators = _child(root, "Simulators")
    for component, values in zip(joined.components, joined.values, strict=True):
        made = _child(simulators, "Simulator", name=component.name, source=f"{component.name}.fmu",
                      stepSize=repr(run.stepping.step))  # fmt: skip
        if values:
            given = _child(made, "InitialValues")
            for name, value in values.items():
                _child(_child(given, "InitialValue", variable=name), "Real", value=repr(value))
    changed = {k: link for k, link in enumerate(wiring.links) if (link.factor, link.offset) != (1.0, 0.0)}
    if changed:
        functions = _child(root, "Functions")
        for k, link in changed.items():
            factor, offset = repr(link.factor), repr(link.offset)
            _child(functions, "LinearTransformation", name=f"link{k}", factor=factor, offset=offset)
    connections, stale = _child(root, "Connections"), find_stale_reads(wiring)
    late = {f"{wiring.output_name(link.source)} should arrive {link.delay:g} s late: it arrives after a step"
            for link in wiring.links if link.delay}  # fmt: skip
    for text in (*stale.values(), *sorted(late)):
        connections.append(etree.Comment(f" {text.replace('--', '- -')} "))
    for k, link in enumerate(wiring.links):
        source, target = wiring.outputs[link.source], wiring.inputs[link.target]
        if k not in changed:
            made = _child(connections, "VariableConnection")
            _variable(made, joined, source)
            _variable(made, joined, target)
            continue
        before = _child(connections, "SignalConnection")
        _variable(before, joined, source)
        _child(before, "Signal", function=f"link{k}", name="in")
        after = _child(connections, "SignalConnection")
        _child(after, "Signal", function=f"link{k}", name="out")
        _variable(after, joined, target)
    return root


def _variable(parent: Element, joined: WiredSystem, port: ComponentPort) -> None:
    """Add a reference to an FMU's variable."""
    _child(parent, "Variable", simulator=joined.wiring.components[port.component], name=port.name)


def _child(parent: Element, tag: str, /, **attributes: str) -> Element:
    """Add an element with these attributes and return it."""
    made = etree.SubElement(parent, f"{{{NAMESPACE}}}{tag}")
    for key, value in attributes.items():
        made.set(key, value)
    return made
