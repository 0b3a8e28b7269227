"""Runs FMUs in a host written in C (``main.c``): here, under wine and under qemu, with and without sanitizers.

Hosts are compiled once and kept in mb2fmu's cache folder, outside of the work tree. Each test process has a folder of
wine of its own, and one server of wine for all of its hosts.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path

from kept_compilations import compile_files

from mb2fmu.audit.behaviour.instance import wine_and_valgrind_hosts
from mb2fmu.fmu import user_cache
from mb2fmu.fmu.emit_c import list_translation_units
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.fmu.toolchain import TargetPlatform, compilers, host_platform
from mb2fmu.fmu.toolchain.target_platforms import AARCH64_LINUX, X86_64_WINDOWS

HERE = Path(__file__).parent
SYSROOT = Path("/usr/aarch64-linux-gnu")
WARNINGS = (
    *("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow"),
    *("-Wstrict-prototypes", "-Wmissing-prototypes", "-Werror"),
)
SANITIZERS = {
    "address": ("-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
    "thread": ("-fsanitize=thread",),
}


WINDOWS_START = ["-nostdlib", "-rtlib=compiler-rt", "-Wl,-e,start_program", "-lucrtbase", "-lkernel32"]


@cache
def wine() -> str | None:
    """The 64-bit wine, which Debian keeps off the PATH."""
    places = (shutil.which("wine64"), "/usr/lib/wine/wine64", shutil.which("wine"))
    return next((place for place in places if place and Path(place).exists()), None)


def missing(platform: TargetPlatform) -> str:
    """Why a host for this platform cannot run here; empty if it can."""
    if platform is host_platform():
        return ""
    if host_platform().name == "x86_64-linux":
        if platform is X86_64_WINDOWS:
            return "" if wine() else "needs wine64"
        if platform is AARCH64_LINUX:
            ready = shutil.which("qemu-aarch64") and SYSROOT.is_dir()
            return "" if ready else "needs qemu-user and libc6-arm64-cross"
    return f"{platform} does not run on {host_platform()}"


@cache
def wine_environment() -> dict[str, str]:
    """Of a folder of wine for this process, removed at its end; what is only read is the auditor's.

    A host begins in 0.1 s where a server of wine waits for it, and services of Windows, which no host needs, are not
    started; else in 2 s, and whoever reads the host's pipes waits until the services have ended, too.
    """
    folder = Path(tempfile.mkdtemp(prefix="mb2fmu-wine-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    wine_and_valgrind_hosts._copy_wine_prefix(Path(wine_and_valgrind_hosts.make_wine_host().prefix), folder / "prefix")
    environment = wine_and_valgrind_hosts._wine_environment(folder / "prefix", folder)
    environment["WINEDLLOVERRIDES"] += ";wineboot.exe="
    servers = (Path(str(wine())).with_name(name) for name in ("wineserver64", "wineserver"))
    server = next((str(place) for place in servers if place.exists()), None)
    if server:
        # It is ready when this returns. Where this process cannot end it, it ends by itself.
        variables = {**os.environ, **environment}
        subprocess.run([server, "--persistent=300"], env=variables, timeout=60, check=True)
        atexit.register(subprocess.run, [server, "--kill"], env=variables, timeout=60, check=False)
    return environment


def _launcher(platform: TargetPlatform) -> tuple[list[str], dict[str, str]]:
    """What goes before a program of that platform, and its environment."""
    if platform is host_platform():
        return [], {}
    if platform is X86_64_WINDOWS:
        return [str(wine())], wine_environment()
    return ["qemu-aarch64", "-L", str(SYSROOT)], {}


def called(command: list[str], folder: Path, environment: dict[str, str]) -> None:
    """Runs a compiler."""
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr


@cache
def driver(platform: TargetPlatform, sanitizer: str = "") -> Path:
    """The host program; with a sanitizer it is the system compiler's."""
    sources = sorted(HERE.glob("*.[ch]"))
    linked = ["-ldl", "-lpthread", "-lm"]
    if not sanitizer:
        linked = WINDOWS_START if platform.system == "windows" else ["-nostdlib", "-lc", *linked]
    lacking = compilers.read_linked_sources("zig", platform)
    if sanitizer:
        command = [*compilers.find_compiler("cc").command, "-g", *SANITIZERS[sanitizer]]
        version = compilers.find_compiler("cc").version
    else:
        command = [*compilers.find_compiler("zig").command, "-target", platform.target, "-g0"]
        version = compilers.find_compiler("zig").version
    headers = resources.files("fmpy").joinpath("c-code")
    digest = hashlib.sha256("\0".join([version, *command, *WARNINGS, *linked]).encode())
    for content in [*(source.read_bytes() for source in sources), *lacking.values()]:
        digest.update(content)
    folder = user_cache.cache_folder() / "tests"
    program = folder / f"driver-{digest.hexdigest()[:24]}.exe"
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as name:
            work = Path(name)
            environment = compilers.compiler_environment(user_cache.cache_folder() / "zig", work)
            compiling = [*command, *WARNINGS, "-O1", "-isystem", str(headers)]
            objects = []
            for source in sources:
                if source.suffix == ".c":
                    objects.append(f"{source.stem}.o")
                    called([*compiling, "-c", str(source), "-o", objects[-1]], work, environment)
            for lack, content in lacking.items():
                (work / lack).write_bytes(content)
            called([*command, *objects, *lacking, "-o", "driver.exe", *linked], work, environment)
            result = work / "driver.exe"
            result.replace(program)
    return program


def compile_sanitized(sources: InMemoryFileTree, folder: Path, sanitizer: str) -> Path:
    """The FMU's library with a sanitizer, by the system's compiler."""
    for path in sources:
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(sources[path])
    library = folder / f"unit{host_platform().extension}"
    flags = [
        "-std=c99",
        "-g",
        "-O1",
        "-fPIC",
        "-shared",
        "-fvisibility=hidden",
        "-ffp-contract=off",
        "-DDISABLE_PREFIX",
    ]
    command = [
        *compilers.find_compiler("cc").command,
        *flags,
        *SANITIZERS[sanitizer],
        *(f"sources/{name}" for name in list_translation_units(sources)),
        "-o",
        library.name,
        "-lm",
    ]
    compile_files(folder, command)
    return library


def run(
    platform: TargetPlatform,
    library: Path,
    fmi: int,
    kind: str,
    token: str,
    script: str,
    options: Sequence[str] = (),
    *,
    sanitizer: str = "",
    before: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    time_limit: float = 300.0,
) -> subprocess.CompletedProcess[str]:
    """Puts an FMU through a script.

    Args:
        platform: Of the library; of the running machine, or wine or qemu must be there.
        library: File; the host runs in its folder.
        fmi: 2 or 3.
        kind: ``me`` or ``cs``.
        token: GUID or instantiation token.
        script: Commands, see ``script.c``.
        options: Conditions, see ``main.c``.
        sanitizer: Which the library was compiled with.
        before: Command that runs the host: valgrind.
        environment: Further variables.
        time_limit: In s.

    Returns:
        Exit code and output of the host.
    """
    file = library.parent / "script.txt"
    file.write_text(script, encoding="utf-8")
    launcher, variables = _launcher(platform)
    resources_place = "file:///tmp" if fmi == 2 else "/tmp/"
    command = [*before, *launcher, str(driver(platform, sanitizer))]
    command += [f"./{library.name}" if platform.system != "windows" else library.name]
    command += [str(fmi), kind, token, resources_place, file.name, *options]
    return subprocess.run(
        command,
        cwd=library.parent,
        env={**os.environ, **variables, **(environment or {})},
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=time_limit,
        check=False,
    )
