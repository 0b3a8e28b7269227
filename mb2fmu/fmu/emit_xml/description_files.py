"""Print the description files of an FMU: description, terminals and icons, and build instructions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache

import jinja2

from mb2fmu.fmu import packaged_templates
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.fmu.interface.fmu_interface import FmuInterface
from mb2fmu.fmu.interface.model_structure import assign_model_structure_indices, form_model_structure

BUILD_DESCRIPTION_PATH = "sources/buildDescription.xml"
MODEL_DESCRIPTION_PATH = "modelDescription.xml"
TERMINALS_PATH = "terminalsAndIcons/terminalsAndIcons.xml"


def emit_fmu_description_files(interface: FmuInterface, sources: Sequence[str] = ("unit.c",)) -> InMemoryFileTree:
    """Print the description files.

    Native FMUs of both standards have all three: terminals and build description were taken over into FMI 2.0.4.

    Args:
        interface: What to describe.
        sources: Of a native FMU: names of the files to compile, from the folder ``sources``; none: it has no sources.

    Returns:
        ``modelDescription.xml``; for native FMUs ``terminalsAndIcons/terminalsAndIcons.xml`` too, and
        ``sources/buildDescription.xml`` if there are sources.
    """
    native = interface.target.backend == "native"
    files = {
        MODEL_DESCRIPTION_PATH: _render_xml_template(
            f"modelDescription.fmi{interface.target.fmi}.xml.jinja",
            interface=interface,
            structure=form_model_structure(interface),
            index=assign_model_structure_indices(interface),
            sources=tuple(sources) if native else (),
        )
    }
    if native:
        files[TERMINALS_PATH] = _render_xml_template("terminalsAndIcons.xml.jinja", interface=interface)
        if sources:
            files[BUILD_DESCRIPTION_PATH] = _render_xml_template(
                "buildDescription.xml.jinja", interface=interface, sources=tuple(sources)
            )
    return InMemoryFileTree(files)


def _render_xml_template(template: str, **names: object) -> bytes:
    """Render a template as bytes."""
    return _make_template_environment().get_template(template).render(**names).encode()


@cache
def _make_template_environment() -> jinja2.Environment:
    """Return the template environment: undefined names raise, text is escaped for XML."""
    environment = packaged_templates.make_template_environment("mb2fmu.fmu.emit_xml", escape=True)
    environment.globals["number"] = repr
    environment.filters["spaced"] = _format_xml_list
    environment.filters["repr"] = repr
    return environment


@lru_cache(maxsize=64)
def _format_xml_list(items: tuple[int | str, ...]) -> str:
    """Return items as an XML list; cached, as many unknowns depend on the same thousand variables."""
    return " ".join(map(str, items))
