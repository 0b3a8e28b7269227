"""``emit_wasm_module_sources``: an FMU for a page: the same equations, functions and solver, no imports.

It is compiled for WebAssembly. What nothing in a page calls is left out: directional and adjoint derivatives, the
Jacobian unless the FMU's solver is implicit, u' and dependent speeds as values of their own, solvers that the FMU
does not begin with, variables that are no states. What the tables do not name is not handed to the compiler, which
would work on it for seconds only for the linker to leave it out. What x', outputs and projection share is printed once
(``shared_entry_point_function``); the native FMU, which has room, computes each alone and is faster.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath as Path

from mb2fmu.compiler.program.scalar_program import ScalarProgram
from mb2fmu.fmu.emit_c.equations_c_source import EquationFunctionTable
from mb2fmu.fmu.emit_c.fmu_c_sources import (
    emit_compact_equation_files,
    is_motion_equation_translation_unit,
    render_c_template,
)
from mb2fmu.fmu.emit_c.standalone_c_program import form_standalone_template_values
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.fmu.interface.fmu_interface import FmuInterface
from mb2fmu.fmu.packaged_templates import read_packaged_file

MAIN_FILE = "web.c"
"""The translation unit that holds all but the equations."""

_STANDARD_HEADERS = ("math.h", "stdio.h", "stdlib.h", "string.h")
_TABLE_BEGINNINGS = {
    "equations.c": "const mb2fmu_equations MB2FMU_VARIANT(equations) = {",
    "derived.c": "const mb2fmu_derivatives MB2FMU_VARIANT(derivatives) = {",
}
_UNUSED_ENTRIES = (
    "tangent",
    "adjoint",
    "initialize_tangent",
    "initialize_adjoint",
    "accelerations",
    "dependent_speeds",
    "next_time_event",
)


def emit_wasm_module_sources(
    sources: InMemoryFileTree, program: ScalarProgram, interface: FmuInterface, printed: EquationFunctionTable
) -> InMemoryFileTree:
    """Print the code.

    Args:
        sources: Of the FMU, ``sources/…``.
        program: That they were printed from.
        interface: Of the FMU.
        printed: What ``emit_equation_sources`` printed of the program.

    Returns:
        Files of one folder; :data:`MAIN_FILE`, and all that begin with ``equations`` or ``derived``, are translation
        units.
    """
    name = interface.model_identifier
    files = {
        path.removeprefix("sources/"): content
        for path, content in sources.files.items()
        if path.endswith(".h")
        or (
            path.endswith(".c")
            and path != "sources/unit.c"
            and not is_motion_equation_translation_unit(Path(path).name)
        )
    }
    motion, work = emit_compact_equation_files(program, printed)
    files |= motion.files
    files["derived.c"] = _enlarge_work(files["derived.c"], work)
    facts = form_standalone_template_values(interface)
    unused = (*_UNUSED_ENTRIES, *(() if interface.solver.kind == "implicit" else ("jacobian",)))
    files |= _remove_table_entries(files, unused)
    files["solver_methods.c"] = _keep_one_solver(files["solver_methods.c"], interface.solver.solver_enumeration_value)
    files |= _keep_state_variables(files)
    files = _join_translation_units(files)
    files |= {
        f"{name}.h": render_c_template("standalone.h.jinja", **facts),
        f"{name}.c": render_c_template("standalone.c.jinja", **facts),
    }
    files["standalone.c"] = read_packaged_file("mb2fmu.fmu.emit_c", "standalone/standalone.c")
    files |= {file: read_packaged_file("mb2fmu.fmu.emit_c", f"web/{file}") for file in (MAIN_FILE, *_STANDARD_HEADERS)}
    files["web_named.h"] = f'#include "{name}.c"\n'.encode()
    return InMemoryFileTree(files)


def _remove_table_entries(files: dict[str, bytes], unused: tuple[str, ...]) -> dict[str, bytes]:
    """Return the equations' translation units without these table entries and the functions that only they call."""
    found, tables = dict(files), ""
    for path, first_line in _TABLE_BEGINNINGS.items():
        head, begin, table = found[path].decode().partition(first_line)
        for entry in unused:
            name = rf"^    (equations_{entry}|MB2FMU_UNIT\(any_{entry}\)),$"
            table = re.sub(name, "    NULL,", table, flags=re.MULTILINE)
        found[path] = f"#include <stddef.h>\n{head}{begin}{table}".encode()
        tables += table
    return _keep_called_functions(
        {path: text for path, text in found.items() if path.startswith(("equations", "derived"))}, tables
    )


_WORK_PATTERN = re.compile(r"(?<=^    )\d+(?=,\n    \d+,\n    model_failures,)", re.MULTILINE)


def _enlarge_work(derived: bytes, work: int) -> bytes:
    """The table of the derivatives with room for so many doubles of ``work`` at least."""
    return _WORK_PATTERN.sub(lambda found: str(max(int(found[0]), work)), derived.decode(), count=1).encode()


_METHOD_FILE_PATTERN = re.compile(r'^#include "solver_(?!h")\w+\.c"\n', re.MULTILINE)
_METHOD_ROW_PATTERN = re.compile(r'^    \{"\w+",[^{}]*\{[^{}]*\}[^{}]*\},\n', re.MULTILINE)


def _keep_one_solver(source: bytes, number: int) -> bytes:
    """Return the table of methods with only one row, in its place; steps of the others are left out."""
    text = source.decode()
    row = _METHOD_ROW_PATTERN.findall(text)[number - 1]
    own = re.findall(r"mb2fmu_(\w+)_(?:step|dense)\b", row)
    text = _METHOD_FILE_PATTERN.sub(lambda file: file[0] if f"solver_{own[0]}.c" in file[0] else "", text)
    return _METHOD_ROW_PATTERN.sub(lambda each: each[0] if each[0] == row else "    {0},\n", text).encode()


_VARIABLES_PATTERN = re.compile(r"(?<=model_variables\[MB2FMU_N_VARIABLES\] = \{\n)(?:    \{.*\},\n)*")


def _keep_state_variables(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return the table of variables with states only, whose names and nominal values a solver needs."""
    rows = _VARIABLES_PATTERN.search(files["model.c"].decode())
    assert rows
    every = rows[0].splitlines(keepends=True)
    states = [row for row in every if "MB2FMU_SOURCE_STATE," in row] or every[:1]
    size = re.sub(r"(?<=#define MB2FMU_N_VARIABLES )\d+", str(len(states)), files["model_config.h"].decode())
    return {
        "model.c": _VARIABLES_PATTERN.sub(lambda _: "".join(states), files["model.c"].decode()).encode(),
        "model_config.h": size.encode(),
    }


_STATIC_PATTERN = re.compile(r"^static [^(=;\[]*?(\w+)\s*[(\[=]", re.MULTILINE)


def _join_translation_units(files: dict[str, bytes]) -> dict[str, bytes]:
    """Join equations and derivatives in one translation unit, to share their includes, if names allow it."""
    equations, derived = files["equations.c"].decode(), files["derived.c"].decode()
    if not set(_STATIC_PATTERN.findall(equations)).isdisjoint(_STATIC_PATTERN.findall(derived)):
        return files
    here = {line for line in equations.splitlines() if line.startswith("#include")}
    whole = equations + "".join(line for line in derived.splitlines(keepends=True) if line.rstrip() not in here)
    return {path: text for path, text in files.items() if path != "derived.c"} | {"equations.c": whole.encode()}


_FUNCTION_PATTERN = re.compile(
    r"^[a-z][\w ]*\b(?:MB2FMU_(?:VARIANT|UNIT)\()?(?P<name>\w+)\)?\([^;{]*\)\n\{\n.*?^\}\n", re.MULTILINE | re.DOTALL
)
_WORD_PATTERN = re.compile(r"\w+")


def _keep_called_functions(files: dict[str, bytes], table: str) -> dict[str, bytes]:
    """Leave out functions that the table does not reach; their declarations stay."""
    texts = {path: text.decode() for path, text in files.items()}
    found = {
        (path, match["name"]): match[0] for path, text in texts.items() for match in _FUNCTION_PATTERN.finditer(text)
    }
    by_name: dict[str, list[tuple[str, str]]] = {}
    for key in found:
        by_name.setdefault(key[1], []).append(key)
    reached: set[tuple[str, str]] = set()
    waiting = [("", table)]
    while waiting:
        path, text = waiting.pop()
        for word in set(_WORD_PATTERN.findall(text)) & by_name.keys():
            own = (path, word)
            called = [own] if own in found else by_name[word]
            waiting += [(key[0], found[key]) for key in called if key not in reached]
            reached.update(called)
    for key in found.keys() - reached:
        texts[key[0]] = texts[key[0]].replace(found[key], "")
    return {path: text.encode() for path, text in texts.items()}
