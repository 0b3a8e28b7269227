"""The two compilers and their options.

``zig`` is the package ziglang (the extra ``zig``): clang with the headers and libraries of all platforms, so that one
machine builds for all of them and none needs a compiler of its own. ``cc`` is the system's compiler, for its own
platform.

The flags promise that an FMU moves alike everywhere: C99 arithmetic as written, no fast-math, and
``-ffp-contract=off``: a fused multiply-add rounds once where two operations round twice, and zig fuses by default on
Arm. ``-fno-math-errno`` only spares writing ``errno``, which nobody reads, and makes ``sqrt`` one instruction. Nothing
but FMI's functions is visible; calls inside of an FMU never go through the dynamic linker (``-Bsymbolic``), or the FMU
loaded first would answer for the second. Libraries are stripped, because symbol tables hold paths.

``fast`` allows contraction and nothing else: fewer roundings, but infinities, NaN checks and the order of sums hold.
Results differ between processors then. On x86-64 the variant for AVX2 then has fused multiply-adds.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from mb2fmu.errors import Fault, ToolError
from mb2fmu.fmu.packaged_templates import read_packaged_file
from mb2fmu.fmu.toolchain.target_platforms import TargetPlatform, host_platform

Compiler = Literal["zig", "cc"]
Variant = Literal["any", "avx2", "avx512"]
"""x' is compiled for any processor of a platform and, on x86-64, once more for those with AVX2; what is
compiled for the running machine only (``compile_entry_point``), for AVX-512 where there is that."""

_LANGUAGE_OPTIONS = ("-std=c99", "-O2", "-g0", "-fno-math-errno", "-fvisibility=hidden", "-fPIC")
_AVX512_OPTIONS = ("-mavx512f", "-mavx512dq", "-mavx512vl", "-mprefer-vector-width=512")
_STRAIGHT_LINE_OPTIONS: dict[Compiler, tuple[str, ...]] = {
    "zig": ("-fno-slp-vectorize", "-mllvm", "-enable-misched=0"),
    "cc": ("-fno-tree-slp-vectorize",),
}
"""Of equations: looking for vectors in straight code takes clang two fifths of its time there and gains nothing; a
better order takes a quarter of the rest and gains little (101 joints: x' 3.67 µs with it, 3.70 µs without). Loops are
vectors."""

_QUICK_OPTIONS: dict[Compiler, tuple[str, ...]] = {
    "zig": (*_STRAIGHT_LINE_OPTIONS["zig"], "-Xclang", "-O1"),  # a plain -O1 is -O2 to zig
    "cc": _STRAIGHT_LINE_OPTIONS["cc"],
}
"""The rest of -O2 takes clang a seventh of what is left."""

CompilationEffort = Literal["plain", "equations", "seldom"]
"""What a translation unit has, by which the compiler takes its time: the fixed part, equations, or what is evaluated so
seldom that quick compiling is worth more."""

_EFFORT_OPTIONS: dict[CompilationEffort, dict[Compiler, tuple[str, ...]]] = {
    "plain": {"zig": (), "cc": ()},
    "equations": _STRAIGHT_LINE_OPTIONS,
    "seldom": _QUICK_OPTIONS,
}

_UNPREFIXED_NAMES = ("-DDISABLE_PREFIX",)
"""Sources prefix FMI's functions with the model's identifier; binaries must not (FMI 2.0.5 section 2.1.1)."""

_ZIG_INSTALL_COMMAND = "pip install 'mb2fmu[zig]'"
_WINDOWS_C_LIBRARY = "windows_c_library.c"
_SYSTEM_COMPILERS = ("cc", "gcc", "clang")

_SYSTEM_LIBRARY_ONLY = ("-nostdlib", "-lc")
"""Without code of the compiler's, which zig would build for a platform the first time: ten seconds."""

_WINDOWS_LIBRARIES = (
    *("-nostdlib", "-Wl,--no-entry", "-rtlib=compiler-rt"),
    *(
        f"-lapi-ms-win-crt-{each}-l1-1-0"
        for each in ("heap", "math", "private", "runtime", "stdio", "string", "utility")
    ),
)
"""In place of mingw-w64's C library (``windows_c_library.c``): Windows' own, and what the compiler calls by itself (it
probes the stack of large functions)."""

_KEPT_VARIABLES = (
    "PATH",
    "HOME",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "DYLD_FALLBACK_LIBRARY_PATH",
    "DEVELOPER_DIR",
    "SYSTEMROOT",
    "SYSTEMDRIVE",
    "WINDIR",
    "COMSPEC",
    "PATHEXT",
    "USERPROFILE",
    "APPDATA",
    "LOCALAPPDATA",
    "PROGRAMDATA",
    "PROGRAMFILES",
)
"""Variables without which a compiler cannot be found or started. All others are kept from it: compilers and linkers
read dozens (``LD_RUN_PATH`` gets into the library, ``LIBRARY_PATH`` and ``CPATH`` say what it is made of,
``DEPENDENCIES_OUTPUT`` names a file that is overwritten), wrappers of theirs read further ones, and the next version
may read more."""


@dataclass(frozen=True, slots=True)
class InstalledCompiler:
    """An installed compiler.

    Attributes:
        compiler: Which of the two.
        command: How it is called.
        version: What it calls itself; another version may make other bytes.
    """

    compiler: Compiler
    command: tuple[str, ...]
    version: str


def find_compiler(compiler: Compiler) -> InstalledCompiler:
    """Look for an installed compiler.

    Raises:
        ToolError: If there is none.
    """
    return _find_zig() if compiler == "zig" else _find_system_compiler(os.environ.get("CC", ""))


def choose_default_compiler() -> Compiler:
    """Return the compiler to use if none is requested: zig, or the system's if only that is installed."""
    if importlib.util.find_spec("ziglang") is None:
        with suppress(ToolError):
            return find_compiler("cc").compiler
    return "zig"


@cache
def _find_zig() -> InstalledCompiler:
    """Return the zig of the package ziglang; raise if it is not installed."""
    found = importlib.util.find_spec("ziglang")
    if found is None or not found.submodule_search_locations:
        there = any(map(shutil.which, _SYSTEM_COMPILERS))
        also = "or say --compiler cc" if there else f"or install {' or '.join(_SYSTEM_COMPILERS)}"
        remedy = f"{_ZIG_INSTALL_COMMAND}; {also}, which builds for this machine alone"
        raise _missing_compiler_error("the package ziglang is not installed", remedy)
    version = f"zig {importlib.metadata.version('ziglang')}"
    program = Path(found.submodule_search_locations[0]) / ("zig.exe" if sys.platform == "win32" else "zig")
    if program.is_file():
        return InstalledCompiler("zig", (str(program), "cc"), version)
    # -I: the caller's folder and environment have no influence on which package this is.
    return InstalledCompiler("zig", (sys.executable, "-I", "-m", "ziglang", "cc"), version)


@cache
def _find_system_compiler(named: str) -> InstalledCompiler:
    """Return the system's compiler: ``named`` (command and options, as the variable CC has them), else the first found.

    What it is given there comes before what it is given here, so that it cannot allow other arithmetic by accident.
    """
    words = shlex.split(named)
    found = shutil.which(words[0]) if words else next(filter(None, map(shutil.which, _SYSTEM_COMPILERS)), None)
    if found is None and words:
        raise _missing_compiler_error(
            f"{words[0]} (from the variable CC) is not on the PATH", "correct CC, or leave it out"
        )
    if found is None:
        raise _missing_compiler_error(
            "neither cc nor gcc nor clang is on the PATH", f"install one; or the compiler zig: {_ZIG_INSTALL_COMMAND}"
        )
    command = (found, *words[1:])
    done = subprocess.run(  # noqa: S603 (the system's compiler, no input)
        [*command, "--version"],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=60,
        check=False,
        env=select_inherited_environment() | {"LC_ALL": "C"},
    )
    return InstalledCompiler(
        "cc", command, f"{shlex.join([Path(found).resolve().name, *words[1:]])}: {done.stdout.strip()}"
    )


def _missing_compiler_error(what: str, remedy: str) -> ToolError:
    """Return the error of an absent compiler, with its remedy."""
    return ToolError("there is no C compiler:", [Fault(what, remedy=remedy)])


def compiler_options(
    compiler: Compiler,
    platform: TargetPlatform,
    *,
    fast: bool,
    variant: Variant = "any",
    dispatching: bool = False,
    care: CompilationEffort = "plain",
) -> tuple[str, ...]:
    """Return the options for one translation unit besides source and destination; they contain no path.

    Args:
        compiler: Which of the two.
        platform: What to build for.
        fast: Allows fused multiply-adds.
        variant: For which processors of the platform.
        dispatching: The translation unit chooses between the variants.
        care: What is in it.

    Raises:
        ToolError: If the system's compiler is requested for another platform than its own.
    """
    contraction = "-ffp-contract=fast" if fast else "-ffp-contract=off"
    words = (
        *_target_options(compiler, platform),
        *_LANGUAGE_OPTIONS,
        contraction,
        *_UNPREFIXED_NAMES,
        *_EFFORT_OPTIONS[care][compiler],
    )
    fma = ("-mfma",) if fast else ()
    if variant == "avx2":
        return (*words, "-DMB2FMU_AVX2", "-mavx2", *fma)
    if variant == "avx512":
        return (*words, "-DMB2FMU_AVX2", *_AVX512_OPTIONS, *fma)
    if dispatching and "avx2" in processor_variants(platform):
        return (*words, "-DMB2FMU_WITH_AVX2", *(("-DMB2FMU_WITH_FMA",) if fast else ()))
    return words


def host_compiler_options(compiler: Compiler, platform: TargetPlatform, *, often: bool) -> tuple[str, ...]:
    """Return the options for code that runs on this machine only.

    Args:
        compiler: Which of the two.
        platform: The running one.
        often: It runs so often that it is worth compiling well; else compiling it is what costs.

    Raises:
        ToolError: If the system's compiler is requested for another platform than its own.
    """
    quickly = () if often else _QUICK_OPTIONS[compiler]
    return (*_target_options(compiler, platform), *_LANGUAGE_OPTIONS, "-ffp-contract=off", *quickly)


def processor_variants(platform: TargetPlatform) -> tuple[Variant, ...]:
    """Return the kinds of processors of a platform for which equations are compiled."""
    return ("any", "avx2") if platform.processor == "x86_64" else ("any",)


def linker_options(compiler: Compiler, platform: TargetPlatform, identifier: str) -> tuple[str, ...]:
    """Return the linker's options besides objects and destination; they contain no path.

    Args:
        compiler: Which of the two.
        platform: What to build for.
        identifier: Of the model; macOS wants libraries to know their names.

    Raises:
        ToolError: If the system's compiler is requested for another platform than its own.
    """
    return (*_target_options(compiler, platform), *_shared_library_options(compiler, platform, identifier))


def read_linked_sources(compiler: Compiler, platform: TargetPlatform) -> dict[str, bytes]:
    """Return C sources that are compiled into every library when it is linked: file name → content.

    Args:
        compiler: Which of the two.
        platform: What to build for.
    """
    if compiler == "zig" and platform.system == "windows":
        return {_WINDOWS_C_LIBRARY: read_packaged_file(__package__, _WINDOWS_C_LIBRARY)}
    return {}


def list_linked_libraries(platform: TargetPlatform) -> tuple[str, ...]:
    """Return the words that follow objects and destination: the library of mathematics, where it is one of its own."""
    return () if platform.system == "windows" else ("-lm",)


def _target_options(compiler: Compiler, platform: TargetPlatform) -> tuple[str, ...]:
    """Return the options that choose a platform; raise if the system's compiler would have to build for another."""
    if compiler == "cc" and platform is not host_platform():
        raise ToolError(
            f"the system's compiler cannot build for {platform}:",
            [Fault(f"it builds for {host_platform()} only", "compiler cc", _system_compiler_remedy())],
        )
    return ("-target", platform.target) if compiler == "zig" else ()


def _system_compiler_remedy() -> str:
    """Return the remedy where the system's compiler cannot do something: name zig, and how to install it."""
    there = importlib.util.find_spec("ziglang") is not None
    return "use the compiler zig" if there else f"{_ZIG_INSTALL_COMMAND}: the compiler zig builds for it"


def _shared_library_options(compiler: Compiler, platform: TargetPlatform, identifier: str) -> tuple[str, ...]:
    """Return the options that link a shared library without debug information and without paths."""
    # Else zig would build its library of that sanitizer, the first time.
    plain = ("-fno-sanitize=undefined",) if compiler == "zig" else ()
    if platform.system == "darwin":
        # Libraries are bound by name and symbol there (two-level namespace): there is nothing to bind symbolically.
        strip = ("-s", *_SYSTEM_LIBRARY_ONLY) if compiler == "zig" else ("-Wl,-x",)
        return ("-shared", *strip, *plain, f"-Wl,-install_name,@rpath/{identifier}.dylib")
    if platform.system == "windows":
        return ("-shared", "-s", "-O2", *plain, *_WINDOWS_LIBRARIES) if compiler == "zig" else ("-shared", "-s")
    # FMUs need libc and libm only: -z defs holds that.
    bare = (*_SYSTEM_LIBRARY_ONLY, "-Wl,-z,defs") if compiler == "zig" else ("-Wl,--build-id=none", "-static-libgcc")
    return ("-shared", "-s", "-Wl,-Bsymbolic", *bare)


def compiler_environment(zig_cache: Path, scratch: Path) -> dict[str, str]:
    """Return the compiler's environment: of the caller's only what it needs to run.

    Args:
        zig_cache: Where zig keeps the C libraries that it builds once for each platform.
        scratch: For everything else that it writes.
    """
    return select_inherited_environment() | {
        "LC_ALL": "C",
        **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(scratch)),
        "ZIG_GLOBAL_CACHE_DIR": str(zig_cache),
        "ZIG_LOCAL_CACHE_DIR": str(scratch / "zig"),
    }


def select_inherited_environment() -> dict[str, str]:
    """Return the part of the caller's environment that a compiler needs; Windows treats ``Path`` and ``PATH`` alike."""
    return {name: value for name, value in os.environ.items() if name.upper() in _KEPT_VARIABLES}
