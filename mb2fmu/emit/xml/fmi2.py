"""modelDescription.xml of FMI 2.0 for co-simulation."""

from __future__ import annotations

from functools import cache

import jinja2

from mb2fmu.filetree import FileTree
from mb2fmu.interface.description import FmuInterface
from mb2fmu.interface.fmi2 import indices, model_structure


def emit(interface: FmuInterface) -> FileTree:
    """Prints the description.

    Args:
        interface: What to describe.

    Returns:
        One file: ``modelDescription.xml``.
    """
    text = _template().render(
        interface=interface,
        structure=model_structure(interface),
        index=indices(interface),
        number=repr,
    )
    return FileTree({"modelDescription.xml": text.encode()})


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("mb2fmu.emit.xml"),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template("modelDescription.fmi2.xml.jinja")
