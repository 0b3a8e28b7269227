"""What the auditor compiles or sets up once, and keeps in the user's cache folder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from mb2fmu.errors import Fault, ToolError, make_tool_failure_fault

PLAIN_LINKER_FLAGS = ("-nostdlib", "-lc")
"""The system's C library without zig's own, which it would build the first time, for half a minute."""

_STAGES_SOURCE = Path(__file__).parent / "compiled_stages" / "runge_kutta_stages.c"
_SETUP_TIME_LIMIT = 300.0
"""For one command, in s."""


def make_cache_folder(name: str) -> Path:
    """Return a folder below the user's cache folder, made if absent."""
    import platformdirs

    configured = os.environ.get("MB2FMU_CACHE_DIR")
    path = Path(configured).absolute() if configured else platformdirs.user_cache_path("mb2fmu", appauthor=False)
    path = path / name
    path.mkdir(parents=True, exist_ok=True)
    return path


def hash_content(content: bytes) -> str:
    """Return a name for content made from these parts."""
    import hashlib

    return hashlib.sha256(content).hexdigest()[:16]


def compile_cached_c_file(
    source: Path, target: str, flags: Sequence[str], suffix: str, linker_flags: Sequence[str] = ()
) -> Path:
    """Return a program or library of one C file, compiled if it is not in the cache.

    Args:
        source: The file.
        target: Platform, as zig names it; ``native``: this one.
        flags: Further flags of the compiler.
        suffix: Of the file's name.
        linker_flags: Further flags of the linker.

    Raises:
        ToolError: If it cannot be compiled.
    """
    from mb2fmu.temporary_files import make_temporary_folder

    # "native" alone means this very processor, whose newest instructions valgrind does not know.
    shared = ("-target", target, "-mcpu=baseline", "-fno-sanitize=all")
    flags, linker_flags = (*shared, "-std=c11", *flags), (*shared, *linker_flags)
    content = source.read_bytes() + " ".join((*flags, *linker_flags)).encode()
    compiled = make_cache_folder("audit") / f"{source.stem}-{hash_content(content)}{suffix}"
    if not compiled.exists():
        with make_temporary_folder("compile a part of the auditor", compiled.parent) as folder:
            new = folder / compiled.name
            object_file = folder / "compiled.o"
            # One after the other: where zig links without its C library it finds no headers.
            for words in (
                ["-c", str(source), *flags, "-o", str(object_file)],
                [str(object_file), *linker_flags, "-o", str(new)],
            ):
                run_setup_command(
                    [sys.executable, "-I", "-m", "ziglang", "cc", *words],
                    {"ZIG_GLOBAL_CACHE_DIR": str(make_cache_folder("zig"))},
                    f"{source.name} of the auditor is not compiled",
                    "install the compiler anew (pip install --force-reinstall ziglang)",
                )
            new.replace(compiled)
    return compiled


def compile_model_exchange_stages() -> Path | None:
    """Return the library of :mod:`compiled_model_exchange_stages`; None if it cannot be compiled, or not kept.

    None on Windows, where zig builds that system's own libraries first, for minutes.
    """
    if os.name != "posix":
        return None
    with suppress(ToolError, OSError):
        return compile_cached_c_file(
            _STAGES_SOURCE, "native", ("-O2", "-ffp-contract=off", "-fPIC"), ".so", ("-shared", *PLAIN_LINKER_FLAGS)
        )
    return None


def run_setup_command(command: Sequence[str], variables: dict[str, str], failure: str, remedy: str) -> None:
    """Run a command of the set-up; raise with its last line and what to do if it fails or takes too long."""
    try:
        process = subprocess.run(  # noqa: S603  our own commands
            command, env={**os.environ, **variables}, capture_output=True, text=True, errors="replace",
            stdin=subprocess.DEVNULL, timeout=_SETUP_TIME_LIMIT, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        retry_remedy = "run it again when the machine is less busy"
        fault = Fault(f"it did not finish within {_SETUP_TIME_LIMIT:g} s", command[0], retry_remedy)
        raise ToolError(f"{failure}:", [fault]) from error
    if process.returncode:
        tool = "the compiler zig" if "ziglang" in command else Path(command[0]).name
        fault = make_tool_failure_fault(tool, process.returncode, process.stderr, remedy)
        raise ToolError(f"{failure}:", [fault])
