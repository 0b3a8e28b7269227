"""``compile_wasm_module``: compile the sources of ``emit_wasm_module_sources`` to WebAssembly without imports."""

from __future__ import annotations

from mb2fmu.errors import ToolError
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.fmu.toolchain.compile_cache import CompiledFileCache, compute_cache_key
from mb2fmu.fmu.toolchain.compiler_processes import CompilerProcesses
from mb2fmu.fmu.toolchain.compilers import InstalledCompiler, compiler_environment, find_compiler
from mb2fmu.fmu.user_cache import cache_folder
from mb2fmu.temporary_files import make_temporary_folder, translate_disk_errors

_ACTION = "compile the FMU for a page"
_WEB_OPTIONS = (
    "-target", "wasm32-freestanding", "-std=c99", "-Oz", "-g0", "-fno-math-errno", "-ffp-contract=off",
    "-fno-inline", "-fvisibility=hidden", "-ffreestanding", "-nostdlib", "-Wl,--no-entry", "-s", "-I.",
)  # fmt: skip
"""WebAssembly has no fused multiply-adds and computes as IEEE 754 says: results have the bits of the native FMU."""


def compile_wasm_module(sources: InMemoryFileTree) -> bytes | None:
    """Compile and link the module; the same sources give the same bytes.

    Args:
        sources: As ``emit_wasm_module_sources`` prints them.

    Returns:
        The module; None where there is no compiler for it (``zig`` alone has WebAssembly).

    Raises:
        ToolError: If the compiler fails.
    """
    tool = _find_zig()
    if tool is None:
        return None
    storage = CompiledFileCache(cache_folder() / "binaries")
    key = compute_cache_key([tool.version, *_WEB_OPTIONS], sources.files)
    content = storage.get(key)
    if content is not None:
        return content
    units = sorted(name for name in sources.files if name.endswith(".c") and name.startswith(("equations", "derived")))
    with make_temporary_folder(_ACTION) as work, translate_disk_errors(_ACTION):
        for path in sources:
            (work / path).parent.mkdir(parents=True, exist_ok=True)
            (work / path).write_bytes(sources[path])
        command = (*tool.command, *_WEB_OPTIONS, "web.c", *units, "-o", "unit.wasm")
        CompilerProcesses().run(command, work, compiler_environment(cache_folder() / "zig", work), _ACTION)
        content = (work / "unit.wasm").read_bytes()
    storage.put(key, content)
    return content


def _find_zig() -> InstalledCompiler | None:
    """Return zig; None if it is not installed."""
    try:
        return find_compiler("zig")
    except ToolError:
        return None
