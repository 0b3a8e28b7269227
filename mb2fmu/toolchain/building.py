"""``compile_unit``: shared libraries of a unit, for any platforms, out of its sources."""

from __future__ import annotations

import hashlib
import os
import shlex
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from mb2fmu.emit.c import is_compiled_once, translation_units
from mb2fmu.errors import Fault, ToolError
from mb2fmu.filetree import FileTree
from mb2fmu.toolchain import universal
from mb2fmu.toolchain.compilers import Compiler, Tool, Variant, compiling, environment, find, linking, variants
from mb2fmu.toolchain.platforms import AARCH64_DARWIN, PLATFORMS, X86_64_DARWIN, Platform
from mb2fmu.toolchain.storage import Storage, folder

TIME_LIMIT = 1800.0
"""In s, for one platform; the first time for Windows takes minutes, any other time less than ten seconds."""

UNIT = "sources/unit.c"
"""The translation unit that every unit has."""

_LAYOUT = b"mb2fmu binaries 2"


class CompileObserver(Protocol):
    """Is told how compiling goes on; its functions are called from several threads, but never two at a time."""

    def started(self, platform: Platform) -> None:
        """The unit is being compiled for this platform."""

    def finished(self, platform: Platform, seconds: float, *, cached: bool) -> None:
        """It is there, compiled or (``cached``) from an earlier time."""


def compile_unit(
    sources: FileTree,
    identifier: str,
    platforms: Iterable[Platform],
    *,
    fmi: Literal[2, 3],
    compiler: Compiler = "zig",
    fast: bool = False,
    variant: Variant = "any",
    observer: CompileObserver | None = None,
) -> FileTree:
    """Compiles a unit.

    Args:
        sources: ``sources/unit.c``, further translation units of equations, and what they include.
        identifier: Of the model: name of the libraries.
        platforms: What to compile for; side by side, as many as there are processors.
        fmi: Names the folders.
        compiler: ``zig``, or ``cc``: the system's, for the running platform only.
        fast: Allows fused multiply-adds: faster, but no longer the same bits everywhere.
        variant: Processors that ``unit.c`` may be for: with more than ``any`` the library runs on those only.
        observer: Is told how it goes on.

    Returns:
        ``binaries/<platform>/<identifier>.<extension>``. FMI 2's ``darwin64`` holds both processors where both are
        asked for. Equal input gives equal bytes, whatever the folder, machine or cache.

    Raises:
        ToolError: If there is no compiler, or it fails: with command, exit code and output, for each platform.
    """
    wanted = [each for each in PLATFORMS if each in set(platforms)]
    if not wanted or UNIT not in sources.files or not (identifier.isidentifier() and identifier.isascii()):
        raise ValueError("needs platforms, sources/unit.c and an identifier that is one in C")
    tool = find(compiler)
    cache = folder()
    build = _Build(sources, identifier, tool, fast, Storage(cache / "binaries"), cache / "zig", observer)
    jobs = [_job(sources, compiler, each, identifier, fast=fast, own=variant) for each in wanted]
    built = _side_by_side(build, jobs)
    return FileTree(
        {f"binaries/{each.folder(fmi)}/{identifier}{each.extension}": _content(each, built, fmi) for each in wanted}
    )


def _content(platform: Platform, built: dict[Platform, bytes], fmi: int) -> bytes:
    if fmi == 2 and platform is X86_64_DARWIN and AARCH64_DARWIN in built:
        return universal.join([built[X86_64_DARWIN], built[AARCH64_DARWIN]])
    return built[platform]


@dataclass(frozen=True, slots=True)
class _Object:
    """One translation unit in one variant.

    Attributes:
        source: Path.
        name: Of the object file.
        arguments: What the compiler is told.
    """

    source: str
    name: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Job:
    """One platform, what is compiled for it, and what the compiler is told when it links."""

    platform: Platform
    objects: tuple[_Object, ...]
    linking: tuple[str, ...]


def _job(
    sources: FileTree, compiler: Compiler, platform: Platform, identifier: str, *, fast: bool, own: Variant
) -> _Job:
    names = translation_units(sources)
    several = len(names) > 1
    each_variant = [name for name in names[1:] if not is_compiled_once(name)]
    objects = [_Object(UNIT, "unit.o", compiling(compiler, platform, fast=fast, variant=own, dispatching=several))]
    for variant in variants(platform):
        arguments = compiling(compiler, platform, fast=fast, variant=variant)
        objects += [_Object(f"sources/{name}", f"{name[:-2]}_{variant}.o", arguments) for name in each_variant]
    arguments = compiling(compiler, platform, fast=fast, seldom=True)
    objects += [_Object(f"sources/{name}", f"{name[:-2]}.o", arguments) for name in names if is_compiled_once(name)]
    return _Job(platform, tuple(objects), linking(compiler, platform, identifier))


@dataclass(frozen=True, slots=True)
class _Build:
    """What all platforms share."""

    sources: FileTree
    identifier: str
    tool: Tool
    fast: bool
    storage: Storage
    zig_cache: Path
    observer: CompileObserver | None
    lock: threading.Lock = field(default_factory=threading.Lock)
    processors: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(os.cpu_count() or 1))

    def __call__(self, job: _Job) -> bytes:
        """The library for one platform."""
        begin = time.monotonic()
        if self.observer:
            with self.lock:
                self.observer.started(job.platform)
        key = self._key(job)
        content = self.storage.get(key)
        cached = content is not None
        if content is None:
            content = self._compiled(job)
            self.storage.put(key, content)
        if self.observer:
            with self.lock:
                self.observer.finished(job.platform, time.monotonic() - begin, cached=cached)
        return content

    def _key(self, job: _Job) -> str:
        """Hash of everything that the bytes depend on."""
        digest = hashlib.sha256(_LAYOUT)
        texts = [self.tool.version, *job.linking]
        texts += [word for each in job.objects for word in (each.source, *each.arguments)]
        parts = [text.encode() for text in texts]
        for path in self._compiled_files():
            parts += [path.encode(), self.sources[path]]
        for part in parts:
            digest.update(len(part).to_bytes(8, "little") + part)
        return digest.hexdigest()

    def _compiled_files(self) -> list[str]:
        return [path for path in self.sources if path.endswith((".c", ".h", ".inc"))]

    def _compiled(self, job: _Job) -> bytes:
        # Removing can fail on Windows while a virus scanner looks at what was just written.
        with tempfile.TemporaryDirectory(prefix="mb2fmu-", ignore_cleanup_errors=os.name == "nt") as name:
            work = Path(name).resolve()
            for path in self._compiled_files():
                file = work / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(self.sources[path])
            result = work / f"{self.identifier}{job.platform.extension}"
            # Paths are relative, so that none of this folder gets into the result.
            variables = environment(self.zig_cache, work)
            # The longest first, so that none of them is what everything waits for in the end.
            longest = sorted(job.objects, key=lambda each: (each.source != UNIT, -len(self.sources[each.source])))
            with ThreadPoolExecutor(max_workers=len(job.objects)) as threads:
                for done in [threads.submit(self._object, each, job.platform, work, variables) for each in longest]:
                    done.result()
            names = [each.name for each in job.objects]
            command = [*self.tool.command, *job.linking, *names, "-o", result.name, "-lm"]
            output = _run(command, work, variables, job.platform)
            if not result.is_file():
                raise _failure(job.platform, command, "made no library", output)
            return result.read_bytes()

    def _object(self, each: _Object, platform: Platform, work: Path, variables: dict[str, str]) -> None:
        command = [*self.tool.command, *each.arguments, "-c", each.source, "-o", each.name]
        with self.processors:
            _run(command, work, variables, platform)


def _run(command: Sequence[str], work: Path, variables: dict[str, str], platform: Platform) -> str:
    try:
        done = subprocess.run(  # noqa: S603 (our compiler, our sources)
            command,
            cwd=work,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=TIME_LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        raise _failure(platform, command, f"did not finish within {TIME_LIMIT:g} s", "") from late
    except OSError as error:
        raise _failure(platform, command, f"cannot be started: {error}", "") from error
    output = done.stdout.decode(errors="replace").strip()
    if done.returncode != 0:
        raise _failure(platform, command, f"exit code {done.returncode}", output)
    return output


def _failure(platform: Platform, command: Sequence[str], what: str, output: str) -> ToolError:
    text = f"{what} from {shlex.join(command)}"
    return ToolError(f"{platform}:", [Fault(f"{text}\n{output}" if output else text, str(platform))])


def _side_by_side(build: _Build, jobs: Sequence[_Job]) -> dict[Platform, bytes]:
    """All platforms; after a failure no further one is begun, and all failures are told."""
    with ThreadPoolExecutor(max_workers=min(len(jobs), os.cpu_count() or 1)) as threads:
        futures: dict[Platform, Future[bytes]] = {job.platform: threads.submit(build, job) for job in jobs}
        wait(futures.values(), return_when="FIRST_EXCEPTION")
        threads.shutdown(wait=True, cancel_futures=True)
    errors = [each.exception() for each in futures.values() if not each.cancelled()]
    faults: list[Fault] = []
    for error in filter(None, errors):
        if not isinstance(error, ToolError):
            raise error
        faults += error.faults
    if faults:
        raise ToolError(f"{build.identifier} could not be compiled with {build.tool.version.splitlines()[0]}:", faults)
    return {platform: future.result() for platform, future in futures.items()}
