"""``compile_web``: compile the sources of ``emit_web`` into a WebAssembly module that imports nothing."""

from __future__ import annotations

from mb2fmu.errors import ToolError
from mb2fmu.fmu.file_tree import FileTree
from mb2fmu.fmu.toolchain.compile_cache import Storage, content_key, folder
from mb2fmu.fmu.toolchain.compiler_processes import Processes
from mb2fmu.fmu.toolchain.compilers import Tool, environment, find
from mb2fmu.temporary_files import told_of_disk, work_folder

_WHAT = "compile the FMU for a page"
_WORDS = (
    "-target", "wasm32-freestanding", "-std=c99", "-Oz", "-g0", "-fno-math-errno", "-ffp-contract=off",
    "-fno-inline", "-fvisibility=hidden", "-ffreestanding", "-nostdlib", "-Wl,--no-entry", "-s", "-I.",
)  # fmt: skip
"""WebAssembly has no fused multiply-adds and computes as IEEE 754 says: results have the bits of the native unit."""


def compile_web(sources: FileTree) -> bytes | None:
    """Compile and link the module; the same sources give the same bytes.

    Args:
        sources: As ``emit_web`` prints them.

    Returns:
        The module; None where there is no compiler for it (``zig`` alone has WebAssembly).

    Raises:
        ToolError: If the compiler fails.
    """
    tool = _compiler()
    if tool is None:
        return None
    storage = Storage(folder() / "binaries")
    key = content_key([tool.version, *_WORDS], sources.files)
    content = storage.get(key)
    if content is not None:
        return content
    units = sorted(name for name in sources.files if name.endswith(".c") and name.startswith(("equations", "derived")))
    with work_folder(_WHAT) as work, told_of_disk(_WHAT):
        for path in sources:
            (work / path).parent.mkdir(parents=True, exist_ok=True)
            (work / path).write_bytes(sources[path])
        command = (*tool.command, *_WORDS, "web.c", *units, "-o", "unit.wasm")
        Processes().run(command, work, environment(folder() / "zig", work), _WHAT)
        content = (work / "unit.wasm").read_bytes()
    storage.put(key, content)
    return content


def _compiler() -> Tool | None:
    """Return zig; None if it is not installed."""
    try:
        return find("zig")
    except ToolError:
        return None
