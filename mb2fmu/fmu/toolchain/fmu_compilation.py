"""``compile_fmu_binaries``: compile the shared libraries of an FMU from its sources, for any platforms.

``FmuCompilation`` is the same for sources that are still being made: what is complete of them is compiled meanwhile.
"""

from __future__ import annotations

import os
import struct
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from types import TracebackType
from typing import Literal, Protocol, Self

from mb2fmu.errors import Fault, ToolError
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.fmu.toolchain.compile_cache import MAX_CACHED_BINARIES, CompiledFileCache, hash_texts_and_files
from mb2fmu.fmu.toolchain.compiler_processes import CompilerProcesses
from mb2fmu.fmu.toolchain.compilers import Compiler, Variant, find_compiler, linker_options, read_linked_sources
from mb2fmu.fmu.toolchain.fmu_platform_build import (
    MAIN_TRANSLATION_UNIT,
    CompilationSettings,
    FmuBuildFolder,
    list_compiler_input_files,
    list_platform_translation_units,
)
from mb2fmu.fmu.toolchain.target_platforms import AARCH64_DARWIN, PLATFORMS, X86_64_DARWIN, TargetPlatform
from mb2fmu.fmu.user_cache import cache_folder

_BINARIES_CACHE_VERSION = b"mb2fmu binaries 4"
_BEGUN_CACHE_VERSION = b"mb2fmu begun 3"


class CompileObserver(Protocol):
    """Protocol: is notified how compiling goes on, from several threads but one at a time."""

    def started(self, platform: TargetPlatform) -> None:
        """Note that the FMU is being compiled for this platform."""

    def finished(self, platform: TargetPlatform, seconds: float, *, cached: bool) -> None:
        """Note that a binary is there, compiled or (``cached``) from an earlier time."""


def compile_fmu_binaries(
    sources: InMemoryFileTree,
    identifier: str,
    platforms: Iterable[TargetPlatform],
    *,
    fmi: Literal[2, 3],
    compiler: Compiler = "zig",
    fast: bool = False,
    variant: Variant = "any",
    observer: CompileObserver | None = None,
) -> InMemoryFileTree:
    """Compile an FMU.

    Args:
        sources: ``sources/unit.c``, further translation units of equations, and what they include.
        identifier: Of the model: name of the libraries.
        platforms: What to compile for; side by side, as many as there are processors.
        fmi: Names the folders.
        compiler: ``zig``, or ``cc``: the system's, for the running platform only.
        fast: Allows fused multiply-adds: faster, but no longer the same bits everywhere.
        variant: Processors that ``unit.c`` may be for: with more than ``any`` the library runs on those only.
        observer: Is notified how it goes on.

    Returns:
        ``binaries/<platform>/<identifier>.<extension>``. FMI 2's ``darwin64`` holds both processors' code where both
        are requested. Equal input gives equal bytes, whatever the folder, machine or cache.

    Raises:
        ToolError: If there is no compiler, or it fails: with command, exit code and output, for each platform.
    """
    with FmuCompilation(CompilationSettings(identifier, compiler, fast, variant), platforms, observer) as compilation:
        return compilation.finish(sources, fmi)


class FmuCompilation:
    """Compilation of an FMU while its sources are still being made.

    What was begun goes on in the background until :meth:`finish`, which reports what failed of it. Leaving the context
    ends whatever still runs and removes all that was written.

    Args:
        order: What is to be built.
        platforms: To build for; side by side, as many as there are processors. None: nothing is built.
        observer: Is notified how it goes on.

    Raises:
        ToolError: If there is no compiler, or no folder for it.
    """

    def __init__(
        self, order: CompilationSettings, platforms: Iterable[TargetPlatform], observer: CompileObserver | None = None
    ) -> None:
        self._order = order
        self._platforms = [each for each in PLATFORMS if each in set(platforms)]
        if not (order.identifier.isidentifier() and order.identifier.isascii()):
            raise ValueError("needs an identifier that is one in C")
        self._linker_arguments = {
            each: linker_options(order.compiler, each, order.identifier) for each in self._platforms
        }
        self._tool = find_compiler(order.compiler)
        self._cache = cache_folder()
        self._storage = CompiledFileCache(self._cache / "binaries")
        self._marked = CompiledFileCache(self._cache / "begun", kept=4 * MAX_CACHED_BINARIES)
        self._objects = CompiledFileCache(self._cache / "objects", kept=2 * MAX_CACHED_BINARIES)
        self._observer = observer
        self._lock = threading.Lock()
        self._processes = CompilerProcesses()
        self._processors = ThreadPoolExecutor(max_workers=os.cpu_count() or 1)
        self._workshops: dict[TargetPlatform, FmuBuildFolder] = {}
        self._begun = InMemoryFileTree({})
        self._marks: dict[TargetPlatform, list[str]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Stop compilers that still run, and remove their folders."""
        self._processes.stop()
        self._processors.shutdown(wait=True, cancel_futures=True)
        for workshop in self._workshops.values():
            workshop.clear()

    def begin(self, sources: InMemoryFileTree) -> None:
        """Compile translation units in the background; all their includes must be there.

        Where an FMU that began like this was built before nothing is done: the whole of it will be there.
        """
        self._begun = self._begun.joined(sources)
        for platform in self._platforms:
            mark = self._key(platform, self._begun, _BEGUN_CACHE_VERSION)
            self._marks.setdefault(platform, []).append(mark)
            if self._marked.get(mark) is None:
                self._workshop(platform).begin(self._begun)

    def finish(self, sources: InMemoryFileTree, fmi: Literal[2, 3]) -> InMemoryFileTree:
        """Compile the rest.

        Args:
            sources: All of them; what was begun is as it was.
            fmi: Names the folders.

        Returns:
            As :func:`compile_fmu_binaries`.

        Raises:
            ToolError: If the compiler fails: with command, exit code and output, for each platform.
        """
        if MAIN_TRANSLATION_UNIT not in sources.files:
            raise ValueError(f"needs {MAIN_TRANSLATION_UNIT}")
        sources = self._begun.joined(sources)
        built = self._side_by_side(sources)
        return InMemoryFileTree(
            {
                f"binaries/{each.folder(fmi)}/{self._order.identifier}{each.extension}": _platform_binary(
                    each, built, fmi
                )
                for each in self._platforms
            }
        )

    def _side_by_side(self, sources: InMemoryFileTree) -> dict[TargetPlatform, bytes]:
        """Return all platforms; after a failure no further one is begun, and all failures are reported."""
        with ThreadPoolExecutor(max_workers=min(len(self._platforms), os.cpu_count() or 1) or 1) as threads:
            futures: dict[TargetPlatform, Future[bytes]] = {
                each: threads.submit(self._library, each, sources) for each in self._platforms
            }
            try:
                wait(futures.values(), return_when="FIRST_EXCEPTION")
            except BaseException:  # whoever ends us does not wait until everything is compiled
                self._processes.stop()
                raise
            finally:
                threads.shutdown(wait=True, cancel_futures=True)
        errors = [each.exception() for each in futures.values() if not each.cancelled()]
        faults: list[Fault] = []
        for error in filter(None, errors):
            if not isinstance(error, ToolError):
                raise error
            faults += error.faults
        if faults:
            version = self._tool.version.splitlines()[0]
            raise ToolError(f"{self._order.identifier} could not be compiled with {version}:", faults)
        return {platform: future.result() for platform, future in futures.items()}

    def _library(self, platform: TargetPlatform, sources: InMemoryFileTree) -> bytes:
        """Return the library for one platform."""
        begin = time.monotonic()
        if self._observer:
            with self._lock:
                self._observer.started(platform)
        key = self._key(platform, sources, _BINARIES_CACHE_VERSION)
        content = self._storage.get(key)
        cached = content is not None
        if content is None:
            content = self._workshop(platform).finish_library(sources)
            self._storage.put(key, content)
            for mark in self._marks.get(platform, ()):
                self._marked.put(mark, b"")
        if self._observer:
            with self._lock:
                self._observer.finished(platform, time.monotonic() - begin, cached=cached)
        return content

    def _workshop(self, platform: TargetPlatform) -> FmuBuildFolder:
        """Return the workshop of a platform, made once."""
        with self._lock:
            if platform not in self._workshops:
                zig, processors = self._cache / "zig", self._processors
                linker_arguments = self._linker_arguments[platform]
                tool, objects = self._tool, self._objects
                made = FmuBuildFolder(
                    self._order, platform, linker_arguments, tool, objects, zig, processors, self._processes
                )
                self._workshops[platform] = made
            return self._workshops[platform]

    def _key(self, platform: TargetPlatform, sources: InMemoryFileTree, kind: bytes) -> str:
        """Return a hash of everything that these sources' binaries depend on."""
        texts = [self._tool.version, *self._linker_arguments[platform]]
        texts += [each.decode() for each in read_linked_sources(self._order.compiler, platform).values()]
        made = list_platform_translation_units(sources, self._order, platform)
        texts += [word for each in made for word in (each.source, *each.arguments)]
        return hash_texts_and_files(kind, texts, {path: sources[path] for path in list_compiler_input_files(sources)})


def _platform_binary(platform: TargetPlatform, built: Mapping[TargetPlatform, bytes], fmi: int) -> bytes:
    """Return the binary of a platform; FMI 2 on macOS has one file for both processors."""
    if fmi == 2 and platform is X86_64_DARWIN and AARCH64_DARWIN in built:
        return join_universal_binary([built[X86_64_DARWIN], built[AARCH64_DARWIN]])
    return built[platform]


_FAT_MAGIC = 0xCAFEBABE
_THIN_MAGIC = 0xFEEDFACF
_X86_64 = 0x01000007
_ALIGNMENT = {_X86_64: 12}
"""Power of 2, the page size: 4 KiB for x86-64."""
_ALIGNMENT_OF_OTHERS = 14
"""That of all others: Arm Macs have pages of 16 KiB."""


def join_universal_binary(slices: Sequence[bytes]) -> bytes:
    """Make one universal file.

    Args:
        slices: Thin 64-bit files of different processors.

    Raises:
        ValueError: If one is not such a file, or two are of one processor.
    """
    processors = [_read_processor_type(content) for content in slices]
    if len({kind for kind, _ in processors}) != len(slices):
        raise ValueError("two slices are of one processor")
    header = struct.pack(">2I", _FAT_MAGIC, len(slices))
    used = len(header) + 20 * len(slices)
    body = b""
    for (kind, subtype), content in zip(processors, slices, strict=True):
        alignment = _ALIGNMENT.get(kind, _ALIGNMENT_OF_OTHERS)
        start = _round_up_to_alignment(used + len(body), alignment)
        body += bytes(start - used - len(body)) + content
        header += struct.pack(">5I", kind, subtype, start, len(content), alignment)
    return header + body


def _read_processor_type(content: bytes) -> tuple[int, int]:
    """Return type and subtype of the processor."""
    if len(content) < 32 or struct.unpack_from("<I", content)[0] != _THIN_MAGIC:
        raise ValueError("not a thin 64-bit Mach-O file")
    kind, subtype = struct.unpack_from("<2I", content, 4)
    return kind, subtype


def _round_up_to_alignment(size: int, alignment: int) -> int:
    """Return a size rounded up to a multiple of 2^alignment."""
    return -(-size >> alignment) << alignment
