"""``FmuBuildFolder``: compile and link the translation units of an FMU for one platform, in the background.

A translation unit that was compiled before, with the same words to the compiler and the same files included, is not
compiled again: the object is kept under the hash of these. The runtime (``unit.c``) includes nothing of a model but its
sizes, so that it is compiled once for all FMUs of these sizes.
"""

from __future__ import annotations

import contextlib
import re
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from pathlib import Path

from mb2fmu.fmu.emit_c import (
    FUNCTION_NAMES_HEADER,
    is_motion_equation_translation_unit,
    is_rarely_evaluated_translation_unit,
    list_translation_units,
    translation_unit_has_derivatives,
)
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.fmu.toolchain.compile_cache import CompiledFileCache, compute_cache_key
from mb2fmu.fmu.toolchain.compiler_processes import CompilerProcesses, make_command_failure_error
from mb2fmu.fmu.toolchain.compilers import (
    CompilationEffort,
    Compiler,
    InstalledCompiler,
    Variant,
    compiler_environment,
    compiler_options,
    list_linked_libraries,
    processor_variants,
    read_linked_sources,
)
from mb2fmu.fmu.toolchain.target_platforms import TargetPlatform
from mb2fmu.temporary_files import make_temporary_folder, translate_disk_errors

MAIN_TRANSLATION_UNIT = "sources/unit.c"
"""The translation unit that every FMU has."""
_ACTION = "compile the FMU"
_OBJECT_CACHE_VERSION = "mb2fmu object 1"


@dataclass(frozen=True, slots=True)
class CompilationSettings:
    """Everything about a build except its sources.

    Attributes:
        identifier: Of the model: name of the libraries.
        compiler: ``zig``, or ``cc``: the system's, for the running platform only.
        fast: Allows fused multiply-adds: faster, but no longer the same bits everywhere.
        variant: Processors that ``unit.c`` may be for: with more than ``any`` the library runs on those only.
    """

    identifier: str
    compiler: Compiler = "zig"
    fast: bool = False
    variant: Variant = "any"


@dataclass(frozen=True, slots=True)
class TranslationUnit:
    """One translation unit in one variant.

    Attributes:
        source: Path.
        name: Of the object file.
        arguments: What the compiler is given.
    """

    source: str
    name: str
    arguments: tuple[str, ...]


def list_platform_translation_units(
    sources: InMemoryFileTree, order: CompilationSettings, platform: TargetPlatform
) -> tuple[TranslationUnit, ...]:
    """Return the translation units of a platform, in linking order.

    Args:
        sources: Of the FMU, or those that are there already: ``unit.c`` and equations together, or equations.
        order: What is to be built.
        platform: To build for.
    """
    compiler, fast = order.compiler, order.fast
    names = list_translation_units(sources)
    equations = [name for name in names if is_motion_equation_translation_unit(name)]
    main = compiler_options(compiler, platform, fast=fast, variant=order.variant, dispatching=bool(equations))
    plain = [
        name
        for name in names
        if not is_motion_equation_translation_unit(name) and not translation_unit_has_derivatives(name)
    ]
    found = [TranslationUnit(f"sources/{name}", f"{name[:-2]}.o", main) for name in plain]
    for variant in processor_variants(platform):
        arguments = compiler_options(compiler, platform, fast=fast, variant=variant, care="equations")
        found += [TranslationUnit(f"sources/{name}", f"{name[:-2]}_{variant}.o", arguments) for name in equations]
    for name in filter(translation_unit_has_derivatives, names):
        care: CompilationEffort = "seldom" if is_rarely_evaluated_translation_unit(name) else "equations"
        arguments = compiler_options(compiler, platform, fast=fast, care=care)
        found.append(TranslationUnit(f"sources/{name}", f"{name[:-2]}.o", arguments))
    return tuple(found)


def list_compiler_input_files(sources: InMemoryFileTree) -> list[str]:
    """Return the files that compilers read; shared libraries have no name prefix, so that file is left out."""
    return [
        path for path in sources if path.endswith((".c", ".h", ".inc")) and path != f"sources/{FUNCTION_NAMES_HEADER}"
    ]


_INCLUDE_PATTERN = re.compile(rb'^[ \t]*#[ \t]*include[ \t]+"([^"\n]+)"', re.MULTILINE)


def collect_included_files(sources: InMemoryFileTree, path: str) -> dict[str, bytes]:
    """Return the files that the compilation of one file reads: the file and all that it includes.

    Args:
        sources: Of the FMU.
        path: Of the translation unit.
    """
    folder = path.rpartition("/")[0]
    there = set(list_compiler_input_files(sources))
    found: dict[str, bytes] = {}
    waiting = [path]
    while waiting:
        name = waiting.pop()
        if name in there and name not in found:
            found[name] = sources[name]
            waiting += [f"{folder}/{included.decode()}" for included in _INCLUDE_PATTERN.findall(found[name])]
    return found


class FmuBuildFolder:
    """Folder in which an FMU is compiled for one platform; it exists as long as there is work in it.

    Args:
        order: What is to be built.
        platform: To build for.
        linker_arguments: What the compiler is given when it links.
        tool: The compiler.
        objects: Where compiled translation units are kept.
        zig_cache: Of zig's C libraries.
        processors: Where compilers wait for their turn.
        processes: Runs them.
    """

    def __init__(
        self,
        order: CompilationSettings,
        platform: TargetPlatform,
        linker_arguments: tuple[str, ...],
        tool: InstalledCompiler,
        objects: CompiledFileCache,
        zig_cache: Path,
        processors: Executor,
        processes: CompilerProcesses,
    ) -> None:
        self._order, self._platform, self._linker_arguments, self._tool = order, platform, linker_arguments, tool
        self._processors, self._processes = processors, processes
        self._folder = contextlib.ExitStack()
        self._work = self._folder.enter_context(make_temporary_folder(_ACTION))
        # Paths are relative, so that none of this folder gets into the result.
        self._variables = compiler_environment(zig_cache, self._work)
        self._written: set[str] = set()
        self._kept = objects
        self._objects: dict[str, Future[None]] = {}

    def begin(self, sources: InMemoryFileTree) -> None:
        """Compile the new translation units in the background; files that were there before must be the same."""
        with translate_disk_errors(_ACTION, self._work):
            for path in list_compiler_input_files(sources):
                if path not in self._written:
                    file = self._work / path
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_bytes(sources[path])
                    self._written.add(path)
        new = [
            each
            for each in list_platform_translation_units(sources, self._order, self._platform)
            if each.name not in self._objects
        ]
        # The longest first, so that none of them is what everything waits for in the end.
        for each in sorted(new, key=lambda each: (each.source != MAIN_TRANSLATION_UNIT, -len(sources[each.source]))):
            key = compute_cache_key(
                [_OBJECT_CACHE_VERSION, self._tool.version, *each.arguments],
                collect_included_files(sources, each.source),
            )
            self._objects[each.name] = self._processors.submit(self._compile, each, key)

    def finish_library(self, sources: InMemoryFileTree) -> bytes:
        """Compile the rest, wait, and link.

        Raises:
            ToolError: If the compiler fails.
        """
        self.begin(sources)
        for done in self._objects.values():
            done.result()
        platform, identifier = self._platform, self._order.identifier
        result = self._work / f"{identifier}{platform.extension}"
        names = [each.name for each in list_platform_translation_units(sources, self._order, platform)]
        linked = read_linked_sources(self._order.compiler, platform)
        with translate_disk_errors(_ACTION, self._work):
            for name, content in linked.items():
                (self._work / name).write_bytes(content)
        libraries = list_linked_libraries(platform)
        command = [*self._tool.command, *self._linker_arguments, *names, *linked, "-o", result.name, *libraries]
        output = self._processes.run(command, self._work, self._variables, str(platform))
        if not result.is_file():
            raise make_command_failure_error(str(platform), command, "made no library", output)
        with translate_disk_errors(_ACTION, self._work):
            return result.read_bytes()

    def clear(self) -> None:
        """Remove the folder; nothing may be running in it any more."""
        self._folder.close()

    def _compile(self, each: TranslationUnit, key: str) -> None:
        """Compile a translation unit, or take the object kept from before under the same key."""
        place = self._work / each.name
        kept = self._kept.get(key)
        if kept is not None:
            with translate_disk_errors(_ACTION, self._work):
                place.write_bytes(kept)
            return
        command = [*self._tool.command, *each.arguments, "-c", each.source, "-o", each.name]
        self._processes.run(command, self._work, self._variables, str(self._platform))
        with translate_disk_errors(_ACTION, self._work):
            self._kept.put(key, place.read_bytes())
