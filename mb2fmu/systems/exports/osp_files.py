"""Write a system for libcosim: ``OspSystemStructure.xml`` of the Open Simulation Platform (MSMI 0.1)."""

from __future__ import annotations

from lxml import etree

from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.systems.port_and_bond_records import ComponentPort, find_outputs_read_before_inputs
from mb2fmu.systems.wired_system import WiredSystem

NAMESPACE = "http://opensimulationplatform.com/MSMI/OSPSystemStructure"
OSP_STRUCTURE_FILE = "OspSystemStructure.xml"

Element = etree._Element  # noqa: SLF001  lxml has no public name for it


def form_osp_files(wired_system: WiredSystem) -> InMemoryFileTree:
    """Return the configuration and the FMUs, for one folder."""
    files = {f"{component.name}.fmu": component.content for component in wired_system.components}
    files[OSP_STRUCTURE_FILE] = etree.tostring(
        _make_structure(wired_system), xml_declaration=True, encoding="UTF-8", pretty_print=True
    )
    return InMemoryFileTree(files)


def _make_structure(wired_system: WiredSystem) -> Element:
    """Return the XML of a system; comments say where libcosim deviates from the declared coupling."""
    run_settings, wiring = wired_system.system.run_settings, wired_system.wiring
    root = etree.Element(f"{{{NAMESPACE}}}OspSystemStructure", nsmap={None: NAMESPACE}, version="0.1")
    for name, text in (
        ("StartTime", "0.0"),
        ("BaseStepSize", repr(run_settings.stepping.step)),
        ("Algorithm", "fixedStep"),
    ):
        _add_child(root, name).text = text
    simulators = _add_child(root, "Simulators")
    for component, values in zip(wired_system.components, wired_system.values, strict=True):
        element = _add_child(simulators, "Simulator", name=component.name, source=f"{component.name}.fmu",
                      stepSize=repr(run_settings.stepping.step))  # fmt: skip
        if values:
            initial_values = _add_child(element, "InitialValues")
            for name, value in values.items():
                _add_child(_add_child(initial_values, "InitialValue", variable=name), "Real", value=repr(value))
    transformed_links = {
        index: link for index, link in enumerate(wiring.links) if (link.factor, link.offset) != (1.0, 0.0)
    }
    if transformed_links:
        functions = _add_child(root, "Functions")
        for index, link in transformed_links.items():
            factor, offset = repr(link.factor), repr(link.offset)
            _add_child(functions, "LinearTransformation", name=f"link{index}", factor=factor, offset=offset)
    connections, stale_reads = _add_child(root, "Connections"), find_outputs_read_before_inputs(wiring)
    delay_notes = {f"{wiring.output_name(link.source)} should arrive {link.delay:g} s late: it arrives after a step"
            for link in wiring.links if link.delay}  # fmt: skip
    for text in (*stale_reads.values(), *sorted(delay_notes)):
        connections.append(etree.Comment(f" {text.replace('--', '- -')} "))
    for index, link in enumerate(wiring.links):
        source, target = wiring.outputs[link.source], wiring.inputs[link.target]
        if index not in transformed_links:
            element = _add_child(connections, "VariableConnection")
            _add_variable(element, wired_system, source)
            _add_variable(element, wired_system, target)
            continue
        source_connection = _add_child(connections, "SignalConnection")
        _add_variable(source_connection, wired_system, source)
        _add_child(source_connection, "Signal", function=f"link{index}", name="in")
        target_connection = _add_child(connections, "SignalConnection")
        _add_child(target_connection, "Signal", function=f"link{index}", name="out")
        _add_variable(target_connection, wired_system, target)
    return root


def _add_variable(parent: Element, wired_system: WiredSystem, port: ComponentPort) -> None:
    """Add a reference to an FMU's variable."""
    _add_child(parent, "Variable", simulator=wired_system.wiring.components[port.component], name=port.name)


def _add_child(parent: Element, tag: str, /, **attributes: str) -> Element:
    """Add an element with these attributes and return it."""
    child = etree.SubElement(parent, f"{{{NAMESPACE}}}{tag}")
    for key, value in attributes.items():
        child.set(key, value)
    return child
