"""``emit_wasm_component``: the code of an FMU as a WebAssembly component, after the layered standard for it (a draft).

The FMU's own sources, unchanged, and around them the functions that the component model calls (``component/``), the
interface in its language (``unit.wit``), and the manifest that the layered standard requires in ``extra/``.
"""

from __future__ import annotations

from types import MappingProxyType

from mb2fmu.fmu.emit_c.fmu_c_sources import list_translation_units, render_c_template
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.fmu.packaged_templates import read_packaged_file

LAYERED_STANDARD_NAME = "org.modelica.fmi-ls-wasm"
"""Of the layered standard: of its folder below ``extra/``, too (FMI 3.0.2, section 2.5.3)."""
LAYERED_STANDARD_DRAFT = "0.1.0"
"""Its version: the working draft of 2026-07-08. It says itself that everything in it may change."""
WIT_WORLD = "unit"
"""What ``unit.wit`` calls the union of the draft's two worlds that an FMU serves."""

_FIXED_FILES = MappingProxyType(
    {name: f"component/{name}" for name in ("component.c", "component_exports.h", "component_methods.h")}
)


def emit_wasm_component(sources: InMemoryFileTree) -> tuple[InMemoryFileTree, tuple[str, ...]]:
    """Print the code of the component.

    Args:
        sources: Of an FMU of FMI 3, ``sources/…``.

    Returns:
        Files of one folder, with ``wit/unit.wit``, and the names of those that a compiler is given.
    """
    files = {path.removeprefix("sources/"): sources[path] for path in sources if path.endswith((".c", ".h"))}
    files |= {name: read_packaged_file("mb2fmu.fmu.emit_c", path) for name, path in _FIXED_FILES.items()}
    files["wit/unit.wit"] = render_c_template("unit.wit.jinja")
    return InMemoryFileTree(files), ("component.c", *list_translation_units(sources))


def emit_wasm_component_manifest() -> InMemoryFileTree:
    """Return ``extra/org.modelica.fmi-ls-wasm/manifest.xml``, which announces an FMU's component."""
    text = render_c_template("component_manifest.xml.jinja", name=LAYERED_STANDARD_NAME, version=LAYERED_STANDARD_DRAFT)
    return InMemoryFileTree({f"extra/{LAYERED_STANDARD_NAME}/manifest.xml": text})
