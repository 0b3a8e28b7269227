"""``compile_library``: compile C sources for the running machine, cache the library, and load it."""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Mapping
from pathlib import Path

from mb2fmu.fmu.toolchain.compile_cache import CompiledFileCache, compute_cache_key
from mb2fmu.fmu.toolchain.compiler_processes import CompilerProcesses, make_command_failure_error
from mb2fmu.fmu.toolchain.compilers import (
    Compiler,
    choose_default_compiler,
    compiler_environment,
    find_compiler,
    host_compiler_options,
    linker_options,
    list_linked_libraries,
    read_linked_sources,
)
from mb2fmu.fmu.toolchain.target_platforms import host_platform
from mb2fmu.fmu.user_cache import cache_folder


def compile_library(
    sources: Mapping[str, bytes], name: str, compiler: Compiler | None = None, *, often: bool = False
) -> ctypes.CDLL:
    """Compile all files that end in ``.c`` by one call and load the library; as :func:`compile_library_bytes`."""
    return load_library_bytes(compile_library_bytes(sources, name, compiler, often=often), name)


def compile_library_bytes(
    sources: Mapping[str, bytes], name: str, compiler: Compiler | None = None, *, often: bool = False
) -> bytes:
    """Compile all files that end in ``.c`` by one call; return the library, from the cache if it was compiled before.

    Args:
        sources: File name → content; translation units and what they include.
        name: Of the library, an identifier.
        compiler: ``zig``, or ``cc``: the system's. None: zig, or the system's where zig is not installed.
        often: It is the same for all models, so that it is worth compiling well.

    Raises:
        ToolError: If there is no compiler, or it fails.
        PlatformError: If no compiler knows this machine.
    """
    compiler = compiler or choose_default_compiler()
    tool, platform = find_compiler(compiler), host_platform()
    units = sorted(path for path in sources if path.endswith(".c"))
    linked = read_linked_sources(compiler, platform)
    options = host_compiler_options(compiler, platform, often=often)
    arguments = linker_options(compiler, platform, name)
    key = compute_cache_key([tool.version, *options, *arguments], {**sources, **linked})
    storage = CompiledFileCache(cache_folder() / "binaries")
    content = storage.get(key)
    if content is not None:
        return content
    with tempfile.TemporaryDirectory(prefix="mb2fmu-", ignore_cleanup_errors=True) as place:
        work = Path(place).resolve()
        for path, text in {**sources, **linked}.items():
            (work / path).write_bytes(text)
        result = work / f"{name}{platform.extension}"
        run = CompilerProcesses().run
        environment = compiler_environment(cache_folder() / "zig", work)
        if linked:
            # Where zig links without its C library it finds no headers, so linking is a call of its own.
            objects = [f"{Path(each).stem}.o" for each in units]
            for unit, compiled in zip(units, objects, strict=True):
                run([*tool.command, *options, "-c", unit, "-o", compiled], work, environment, str(platform))
            units = [*objects, *linked]
        command = [*tool.command, *options, *arguments, *units, "-o", result.name, *list_linked_libraries(platform)]
        output = run(command, work, environment, str(platform))
        if not result.is_file():
            raise make_command_failure_error(str(platform), command, "made no library", output)
        content = result.read_bytes()
    storage.put(key, content)
    return content


def load_library_bytes(content: bytes, name: str) -> ctypes.CDLL:
    """Load a library of the running machine.

    Args:
        content: The library.
        name: Of its file, without ending.
    """
    # Windows does not remove a library that is in use.
    with tempfile.TemporaryDirectory(prefix="mb2fmu-", ignore_cleanup_errors=True) as place:
        file = Path(place) / f"{name}{host_platform().extension}"
        file.write_bytes(content)
        return ctypes.CDLL(str(file))
