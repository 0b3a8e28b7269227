"""``load_library``: compile C sources for the running machine, cache the library, and load it."""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Mapping
from pathlib import Path

from mb2fmu.fmu.toolchain.compile_cache import Storage, content_key, folder
from mb2fmu.fmu.toolchain.compiler_processes import Processes, failure
from mb2fmu.fmu.toolchain.compilers import Compiler, alone, environment, find, installed, linking
from mb2fmu.fmu.toolchain.platforms import host


def load_library(
    sources: Mapping[str, bytes], name: str, compiler: Compiler | None = None, *, often: bool = False
) -> ctypes.CDLL:
    """Compile all files that end in ``.c`` by one call and load the library.

    Args:
        sources: File name → content; translation units and what they include.
        name: Of the library, an identifier.
        compiler: ``zig``, or ``cc``: the system's. None: zig, or the system's where zig is not installed.
        often: It is the same for all models, so that it is worth compiling well.

    Raises:
        ToolError: If there is no compiler, or it fails.
        PlatformError: If no compiler knows this machine.
    """
    return loaded(_compiled(sources, name, compiler or installed(), often=often), name)


def loaded(content: bytes, name: str) -> ctypes.CDLL:
    """Load a library of the running machine.

    Args:
        content: The library.
        name: Of its file, without ending.
    """
    # Windows does not remove a library that is in use.
    with tempfile.TemporaryDirectory(prefix="mb2fmu-", ignore_cleanup_errors=True) as place:
        file = Path(place) / f"{name}{host().extension}"
        file.write_bytes(content)
        return ctypes.CDLL(str(file))


def _compiled(sources: Mapping[str, bytes], name: str, compiler: Compiler, *, often: bool) -> bytes:
    """Return the library's bytes, from the cache where it was compiled before."""
    tool, platform = find(compiler), host()
    units = sorted(path for path in sources if path.endswith(".c"))
    told = [*alone(compiler, platform, often=often), *linking(compiler, platform, name)]
    key = content_key([tool.version, *told], sources)
    storage = Storage(folder() / "binaries")
    content = storage.get(key)
    if content is not None:
        return content
    with tempfile.TemporaryDirectory(prefix="mb2fmu-", ignore_cleanup_errors=True) as place:
        work = Path(place).resolve()
        for path, text in sources.items():
            (work / path).write_bytes(text)
        result = work / f"{name}{platform.extension}"
        command = [*tool.command, *told, *units, "-o", result.name, "-lm"]
        output = Processes().run(command, work, environment(folder() / "zig", work), str(platform))
        if not result.is_file():
            raise failure(str(platform), command, "made no library", output)
        content = result.read_bytes()
    storage.put(key, content)
    return content
