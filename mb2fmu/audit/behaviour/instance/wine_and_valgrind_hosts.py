"""Hosts for FMUs that cannot be loaded here: wine, or valgrind; and their requirements.

The program ``remote_host/remote_host.c`` is compiled once for each, and kept with a folder of wine in the user's
cache. Each trial gets a copy of that folder without what Windows brings, which is only read.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mb2fmu.audit.behaviour.instance.remote_library import RemoteLibrary
from mb2fmu.errors import Fault, ToolError, make_tool_failure_fault

if TYPE_CHECKING:
    from xml.etree import ElementTree as ET

HOST_SOURCE = Path(__file__).parent / "remote_host" / "remote_host.c"
IN_PROCESS, WINE, VALGRIND = "here", "wine", "valgrind"
AUDITOR_FOLDER = "auditor"
"""Folder of a trial that is the auditor's, not the FMU's."""

_WINE_COMMANDS = ("wine64", "/usr/lib/wine/wine64", "wine")
_WINE_REMEDY = "run 'wine64 cmd /c exit' by hand to see why, install wine anew, or audit the FMU on Windows"
_SETUP_TIME_LIMIT = 300.0
_VALGRIND_REPORT = "seen.xml"
MAX_STACK_FRAMES = 16


@dataclass(frozen=True, slots=True)
class RemoteHost:
    """A program that runs an FMU in place of this process.

    Attributes:
        name: ``wine`` or ``valgrind``.
        launcher: Path of that tool.
        program: Path of ``remote_host``.
        prefix: Folder that wine has set up; empty for valgrind.
        version: What wine calls itself.
    """

    name: str
    launcher: str
    program: str
    prefix: str = ""
    version: str = ""

    def as_json(self) -> dict[str, str]:
        """Return the host as JSON values, for the request to the process that tries the FMU."""
        return asdict(self)


def make_wine_host() -> RemoteHost:
    """Return a host for libraries of Windows.

    Raises:
        ToolError: If wine is not installed, or cannot be set up.
    """
    launcher = next((path for command in _WINE_COMMANDS if (path := shutil.which(command))), None)
    if launcher is None:
        remedy = "install wine (Debian: apt install wine64), or audit it on Windows"
        raise ToolError("FMUs of Windows are run through wine:", [Fault("wine64 is not installed", remedy=remedy)])
    version = _read_tool_version(launcher)
    return RemoteHost(
        WINE,
        launcher,
        str(_build_host_program("x86_64-windows-gnu")),
        str(_make_wine_prefix(launcher, version)),
        version,
    )


def make_valgrind_host() -> RemoteHost | None:
    """Return a host that watches the FMU's use of memory; None if valgrind is not installed."""
    launcher = shutil.which("valgrind") if sys.platform == "linux" else None
    if launcher is None:
        return None
    return RemoteHost(VALGRIND, launcher, str(_build_host_program("native")))


def _read_tool_version(launcher: str) -> str:
    """Return the first line that a tool prints for ``--version``."""
    process = subprocess.run(  # noqa: S603  an installed tool, without input
        [launcher, "--version"], capture_output=True, text=True, errors="replace", timeout=60, check=False
    )
    return process.stdout.strip().splitlines()[0] if process.stdout.strip() else ""


def _make_cache_folder(name: str) -> Path:
    """Return a folder below the user's cache folder, made if absent."""
    import platformdirs

    configured = os.environ.get("MB2FMU_CACHE_DIR")
    path = Path(configured).absolute() if configured else platformdirs.user_cache_path("mb2fmu", appauthor=False)
    path = path / name
    path.mkdir(parents=True, exist_ok=True)
    return path


def _hash_content(content: bytes) -> str:
    """Return a name for content made from these parts."""
    import hashlib

    return hashlib.sha256(content).hexdigest()[:16]


def _build_host_program(target: str) -> Path:
    """Return the program ``remote_host`` for a platform, compiled if needed.

    Raises:
        ToolError: If it cannot be compiled.
    """
    from mb2fmu.temporary_files import make_temporary_folder

    # "native" alone means this very processor, whose newest instructions valgrind does not know.
    # Stripped, a program for Windows begins with the same code as FMUs do, which zig builds in a minute or two, once.
    debug = "-s" if "windows" in target else "-g"
    flags = ("-target", target, "-mcpu=baseline", "-std=c11", "-D_GNU_SOURCE", "-O1", debug, "-fno-sanitize=all")
    program = (
        _make_cache_folder("audit")
        / f"remote_host-{_hash_content(HOST_SOURCE.read_bytes() + ' '.join(flags).encode())}.exe"
    )
    if not program.exists():
        with make_temporary_folder("compile the host of the FMU", program.parent) as folder:
            built_program = folder / program.name
            command = [sys.executable, "-I", "-m", "ziglang", "cc", *flags, str(HOST_SOURCE), "-o", str(built_program)]
            _run_setup_command(
                [*command, *(() if "windows" in target else ("-ldl",))],
                {"ZIG_GLOBAL_CACHE_DIR": str(_make_cache_folder("zig"))},
                "the host of the FMU is not compiled",
                "install the compiler anew (pip install --force-reinstall ziglang)",
            )
            built_program.replace(program)
    return program


def _make_wine_prefix(launcher: str, version: str) -> Path:
    """Return a folder as wine sets it up, made once for each version of wine.

    Raises:
        ToolError: If wine cannot do it.
    """
    from mb2fmu.temporary_files import make_temporary_folder

    template = _make_cache_folder("audit") / f"wine-{_hash_content(version.encode())}"
    if not template.exists():
        with make_temporary_folder("set wine up", template.parent) as folder:
            prefix = folder / "prefix"
            _run_setup_command(
                [launcher, "cmd", "/c", "exit"], _wine_environment(prefix, folder), "wine does not set itself up",
                _WINE_REMEDY,
            )  # fmt: skip
            server = Path(launcher).with_name("wineserver64")
            if server.exists():
                _run_setup_command(
                    [str(server), "-w"], _wine_environment(prefix, folder), "wine does not end", _WINE_REMEDY
                )
            if not template.exists():
                prefix.rename(template)
    return template


def _wine_environment(prefix: Path, temporary: Path) -> dict[str, str]:
    """Return the environment of wine: prefix, no debug output, no Mono or Gecko."""
    return {"WINEPREFIX": str(prefix), "WINEDEBUG": "-all", "WINEDLLOVERRIDES": "mscoree,mshtml=",
            "TMPDIR": str(temporary)}  # fmt: skip


def _run_setup_command(command: Sequence[str], variables: dict[str, str], failure: str, remedy: str) -> None:
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


# --- in the process that tries the FMU


def load_remote_library(host_values: dict[str, Any], root: Path, path: Path) -> RemoteLibrary:
    """Load a library in that host.

    Args:
        host_values: A host, as JSON has it.
        root: Folder of the trial.
        path: Of the library.

    Raises:
        OSError: If it is refused.
    """
    remote_host = RemoteHost(**host_values)
    auditor_folder = root / AUDITOR_FOLDER
    auditor_folder.mkdir(exist_ok=True)
    if remote_host.name == VALGRIND:
        command = [
            remote_host.launcher,
            "--quiet",
            "--xml=yes",
            f"--xml-file={auditor_folder / _VALGRIND_REPORT}",
            "--track-origins=yes",
            f"--num-callers={MAX_STACK_FRAMES}",
            "--leak-check=no",
            remote_host.program,
        ]
        return RemoteLibrary(command, str(path), {**os.environ, "VALGRIND_OPTS": ""})
    prefix = auditor_folder / "prefix"
    if not prefix.exists():
        _copy_wine_prefix(Path(remote_host.prefix), prefix)
    wine_variables = _wine_environment(prefix, auditor_folder)
    return RemoteLibrary(
        [remote_host.launcher, remote_host.program], windows_path(path), {**os.environ, **wine_variables}
    )


def _copy_wine_prefix(template: Path, prefix: Path) -> None:
    """Copy files; contents that are only read are linked."""
    shutil.copytree(template, prefix, symlinks=True, ignore=lambda _, names: {"windows"} & set(names))
    (prefix / "drive_c" / "windows").symlink_to(template / "drive_c" / "windows")


def windows_path(path: Path) -> str:
    """Return a path as wine names it."""
    return "Z:" + str(path).replace("/", "\\")


def read_valgrind_errors(root: Path, library: Path) -> list[str]:
    """Return valgrind's errors inside the FMU's code, each kind once per function.

    Args:
        root: Folder of the trial.
        library: The FMU's.
    """
    from xml.etree import ElementTree as ET

    try:
        errors = ET.parse(root / AUDITOR_FOLDER / _VALGRIND_REPORT).getroot().iter("error")  # noqa: S314  written by valgrind
    except (OSError, ET.ParseError):
        return []
    descriptions = [description for error in errors if (description := _describe_valgrind_error(error, library))]
    return list(dict.fromkeys(descriptions))


def _describe_valgrind_error(error: ET.Element, library: Path) -> str:
    """Return valgrind's error with the FMU's function on the stack; empty if no function of the FMU is on it."""
    if (error.findtext("kind") or "").startswith("Leak_"):
        return ""  # an FMU can request these itself; what it leaves behind is counted elsewhere
    error_kind = error.findtext("what") or error.findtext("xwhat/text") or error.findtext("kind") or ""
    frames = [frame for stack in error.iter("stack") for frame in stack.iter("frame")]
    own_frame = next((candidate for candidate in frames if candidate.findtext("obj") == str(library)), None)
    if own_frame is None:
        return ""
    line = f", {own_frame.findtext('file')}:{own_frame.findtext('line')}" if own_frame.findtext("line") else ""
    fmi_function = next(
        (candidate.findtext("fn") for candidate in frames if (candidate.findtext("fn") or "").startswith("fmi")), ""
    )
    name = own_frame.findtext("fn") or "a function without a name"
    suffix = f", called in {fmi_function}" if fmi_function and fmi_function != name else ""
    return f"{error_kind} in {name}{line}{suffix}"
