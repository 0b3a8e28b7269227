"""``emit_web``: print a unit for a page: the same equations, elementary functions and solver, without imports.

It is compiled for WebAssembly. Directional and adjoint derivatives are left out, and the Jacobian too unless the unit's
solver is implicit: nothing calls them. What the table of derivatives does not name is not handed to the compiler, which
would work on it for seconds only for the linker to leave it out.
"""

from __future__ import annotations

import re

from mb2fmu.emit.c.sources import packaged, render
from mb2fmu.emit.c.standalone import items, outputs
from mb2fmu.filetree import FileTree
from mb2fmu.interface.fmu_interface import FmuInterface

MAIN = "web.c"
"""The translation unit that holds all but the equations."""

_HEADERS = ("math.h", "stdio.h", "stdlib.h", "string.h")
_TABLE = "const mb2fmu_derivatives MB2FMU_VARIANT(derivatives) = {"
_UNUSED = ("tangent", "adjoint", "initialize_tangent", "initialize_adjoint")


def emit_web(sources: FileTree, interface: FmuInterface) -> FileTree:
    """Print the code.

    Args:
        sources: Of the unit, ``sources/…``.
        interface: Of the unit.

    Returns:
        Files of one folder; :data:`MAIN`, and all that begin with ``equations`` or ``derived``, are translation units.
    """
    name = interface.model_identifier
    files = {
        path.removeprefix("sources/"): content
        for path, content in sources.files.items()
        if path.endswith((".c", ".h")) and path != "sources/unit.c"
    }
    facts: dict[str, object] = {
        "name": name,
        "title": interface.model_name,
        "states": items(interface, "state"),
        "inputs": items(interface, "input"),
        "parameters": items(interface, "parameter"),
        "outputs": outputs(interface),
    }
    unused = (*_UNUSED, *(() if interface.solver.kind == "implicit" else ("jacobian",)))
    head, table, functions = files["derived.c"].decode().partition(_TABLE)
    for entry in unused:
        functions = re.sub(
            rf"^    (equations_{entry}|MB2FMU_UNIT\(any_{entry}\)),$", "    NULL,", functions, flags=re.MULTILINE
        )
    files["derived.c"] = f"#include <stddef.h>\n{head}{table}{functions}".encode()
    files |= _needed({path: text for path, text in files.items() if path.startswith("derived")}, table + functions)
    files = _joined(files)
    files |= {f"{name}.h": render("standalone.h.jinja", **facts), f"{name}.c": render("standalone.c.jinja", **facts)}
    files["standalone.c"] = packaged("mb2fmu.emit.c", "standalone/standalone.c")
    files |= {file: packaged("mb2fmu.emit.c", f"web/{file}") for file in (MAIN, *_HEADERS)}
    files["web_named.h"] = f'#include "{name}.c"\n'.encode()
    return FileTree(files)


_STATIC = re.compile(r"^static [^(=;\[]*?(\w+)\s*[(\[=]", re.MULTILINE)


def _joined(files: dict[str, bytes]) -> dict[str, bytes]:
    """Join equations and derivatives in one translation unit, to share their includes, if names allow it."""
    equations, derived = files["equations.c"].decode(), files["derived.c"].decode()
    if not set(_STATIC.findall(equations)).isdisjoint(_STATIC.findall(derived)):
        return files
    here = {line for line in equations.splitlines() if line.startswith("#include")}
    whole = equations + "".join(line for line in derived.splitlines(keepends=True) if line.rstrip() not in here)
    return {path: text for path, text in files.items() if path != "derived.c"} | {"equations.c": whole.encode()}


_FUNCTION = re.compile(
    r"^[a-z][\w ]*\b(?:MB2FMU_(?:VARIANT|UNIT)\()?(?P<name>\w+)\)?\([^;{]*\)\n\{\n.*?^\}\n", re.MULTILINE | re.DOTALL
)
_WORD = re.compile(r"\w+")


def _needed(files: dict[str, bytes], table: str) -> dict[str, bytes]:
    """Leave out functions that the table does not reach; their declarations stay."""
    texts = {path: text.decode() for path, text in files.items()}
    found = {(path, match["name"]): match[0] for path, text in texts.items() for match in _FUNCTION.finditer(text)}
    by_name: dict[str, list[tuple[str, str]]] = {}
    for key in found:
        by_name.setdefault(key[1], []).append(key)
    reached: set[tuple[str, str]] = set()
    waiting = [("derived.c", table)]
    while waiting:
        path, text = waiting.pop()
        for word in set(_WORD.findall(text)) & by_name.keys():
            own = (path, word)
            called = [own] if own in found else by_name[word]
            waiting += [(key[0], found[key]) for key in called if key not in reached]
            reached.update(called)
    for key in found.keys() - reached:
        texts[key[0]] = texts[key[0]].replace(found[key], "")
    return {path: text.encode() for path, text in texts.items()}
