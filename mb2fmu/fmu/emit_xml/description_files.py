"""Print the description files of a unit: description, terminals and icons, and build instructions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache

import jinja2

from mb2fmu.fmu import template_environment
from mb2fmu.fmu.file_tree import FileTree
from mb2fmu.fmu.interface import fmi2_view, fmi3_view
from mb2fmu.fmu.interface.fmu_interface import FmuInterface

BUILD = "sources/buildDescription.xml"
DESCRIPTION = "modelDescription.xml"
TERMINALS = "terminalsAndIcons/terminalsAndIcons.xml"


def emit(interface: FmuInterface, sources: Sequence[str] = ("unit.c",)) -> FileTree:
    """Print the description files.

    Native FMUs of both standards have all three: terminals and build description were taken over into FMI 2.0.4.

    Args:
        interface: What to describe.
        sources: Of a native unit: names of the files to compile, from the folder ``sources``; none: it has no sources.

    Returns:
        ``modelDescription.xml``; for native FMUs ``terminalsAndIcons/terminalsAndIcons.xml`` too, and
        ``sources/buildDescription.xml`` if there are sources.
    """
    native = interface.target.backend == "native"
    view = fmi2_view if interface.target.fmi == "2" else fmi3_view
    index = fmi2_view.indices(interface) if interface.target.fmi == "2" else fmi3_view.references(interface)
    files = {
        DESCRIPTION: _printed(
            f"modelDescription.fmi{interface.target.fmi}.xml.jinja",
            interface=interface,
            structure=view.model_structure(interface),
            index=index,
            sources=tuple(sources) if native else (),
        )
    }
    if native:
        files[TERMINALS] = _printed("terminalsAndIcons.xml.jinja", interface=interface)
        if sources:
            files[BUILD] = _printed("buildDescription.xml.jinja", interface=interface, sources=tuple(sources))
    return FileTree(files)


def _printed(template: str, **names: object) -> bytes:
    """Render a template as bytes."""
    return _environment().get_template(template).render(**names).encode()


@cache
def _environment() -> jinja2.Environment:
    """Return the template environment: undefined names raise, text is escaped for XML."""
    environment = template_environment.environment("mb2fmu.fmu.emit_xml", escape=True)
    environment.globals["number"] = repr
    environment.filters["spaced"] = _spaced
    environment.filters["repr"] = repr
    return environment


@lru_cache(maxsize=64)
def _spaced(items: tuple[int | str, ...]) -> str:
    """Return items as an XML list; cached, as many unknowns depend on the same thousand variables."""
    return " ".join(map(str, items))
