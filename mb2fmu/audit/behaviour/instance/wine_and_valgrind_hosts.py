"""Hosts for FMUs that cannot be loaded here: wine, or valgrind; and their requirements.

The program ``remote_host/remote_host.c`` is compiled once for each, and kept with a folder of wine in the user's
cache. Each trial gets a copy of that folder without what Windows brings, which is only read.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mb2fmu.audit.behaviour.instance.auditor_build_cache import (
    PLAIN_LINKER_FLAGS,
    compile_cached_c_file,
    hash_content,
    make_cache_folder,
    run_setup_command,
)
from mb2fmu.errors import Fault, ToolError

if TYPE_CHECKING:
    from xml.etree import ElementTree as ET

    from mb2fmu.audit.behaviour.instance.remote_library import RemoteFmuLibrary

HOST_SOURCE = Path(__file__).parent / "remote_host" / "remote_host.c"
IN_PROCESS, WINE, VALGRIND = "here", "wine", "valgrind"
AUDITOR_FOLDER = "auditor"
"""Folder of a trial that is the auditor's, not the FMU's."""

_WINDOWS_LINKER_FLAGS = ("-s", "-nostdlib", "-rtlib=compiler-rt", "-Wl,-e,start_program", "-lucrtbase", "-lkernel32")
"""Windows' own C library alone: mingw-w64's, with its start-up code, takes zig minutes the first time."""

_WINE_COMMANDS = ("wine64", "/usr/lib/wine/wine64", "wine")
_WINE_REMEDY = "run 'wine64 cmd /c exit' by hand to see why, install wine anew, or audit the FMU on Windows"
MAX_STACK_FRAMES = 16


@dataclass(frozen=True, slots=True)
class FmuHostProgram:
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


def make_wine_host() -> FmuHostProgram:
    """Return a host for libraries of Windows.

    Raises:
        ToolError: If wine is not installed, or cannot be set up.
    """
    launcher = next((path for command in _WINE_COMMANDS if (path := shutil.which(command))), None)
    if launcher is None:
        remedy = "install wine (Debian: apt install wine64), or audit it on Windows"
        raise ToolError("FMUs of Windows are run through wine:", [Fault("wine64 is not installed", remedy=remedy)])
    version = _read_tool_version(launcher)
    return FmuHostProgram(
        WINE,
        launcher,
        str(_build_host_program("x86_64-windows-gnu")),
        str(_make_wine_prefix(launcher, version)),
        version,
    )


def make_valgrind_host() -> FmuHostProgram | None:
    """Return a host that watches the FMU's use of memory; None if valgrind is not installed."""
    launcher = shutil.which("valgrind") if sys.platform == "linux" else None
    if launcher is None:
        return None
    return FmuHostProgram(VALGRIND, launcher, str(_build_host_program("native")))


def _read_tool_version(launcher: str) -> str:
    """Return the first line that a tool prints for ``--version``."""
    process = subprocess.run(  # noqa: S603  an installed tool, without input
        [launcher, "--version"], capture_output=True, text=True, errors="replace", timeout=60, check=False
    )
    return process.stdout.strip().splitlines()[0] if process.stdout.strip() else ""


def _build_host_program(target: str) -> Path:
    """Return the program ``remote_host`` for a platform, compiled if needed.

    Raises:
        ToolError: If it cannot be compiled.
    """
    if "windows" in target:
        return compile_cached_c_file(HOST_SOURCE, target, ("-O1",), ".exe", _WINDOWS_LINKER_FLAGS)
    return compile_cached_c_file(
        HOST_SOURCE, target, ("-g", "-D_GNU_SOURCE", "-O1"), ".exe", (*PLAIN_LINKER_FLAGS, "-ldl")
    )


def _make_wine_prefix(launcher: str, version: str) -> Path:
    """Return a folder as wine sets it up, made once for each version of wine.

    Raises:
        ToolError: If wine cannot do it.
    """
    from mb2fmu.temporary_files import make_temporary_folder

    template = make_cache_folder("audit") / f"wine-{hash_content(version.encode())}"
    if not template.exists():
        with make_temporary_folder("set wine up", template.parent) as folder:
            prefix = folder / "prefix"
            run_setup_command(
                [launcher, "cmd", "/c", "exit"], _wine_environment(prefix, folder), "wine does not set itself up",
                _WINE_REMEDY,
            )  # fmt: skip
            server = Path(launcher).with_name("wineserver64")
            if server.exists():
                run_setup_command(
                    [str(server), "-w"], _wine_environment(prefix, folder), "wine does not end", _WINE_REMEDY
                )
            if not template.exists():
                prefix.rename(template)
    return template


def _wine_environment(prefix: Path, temporary: Path) -> dict[str, str]:
    """Return the environment of wine: prefix, no debug output, no Mono or Gecko."""
    return {"WINEPREFIX": str(prefix), "WINEDEBUG": "-all", "WINEDLLOVERRIDES": "mscoree,mshtml=",
            "TMPDIR": str(temporary)}  # fmt: skip


# --- in the process that tries the FMU


_LOADED: dict[Path, RemoteFmuLibrary] = {}
"""Libraries that run in a host: the start of one takes longer than what is tried there."""


def load_remote_library(host_values: dict[str, Any], root: Path, path: Path) -> RemoteFmuLibrary:
    """Load a library in that host; the same for all interface types that it has.

    Args:
        host_values: A host, as JSON has it.
        root: Folder of the trial.
        path: Of the library.

    Raises:
        OSError: If it is refused.
    """
    if path not in _LOADED:
        auditor_folder = root / AUDITOR_FOLDER
        auditor_folder.mkdir(exist_ok=True)
        _LOADED[path] = _start_host(FmuHostProgram(**host_values), auditor_folder, path)
    return _LOADED[path]


def _start_host(remote_host: FmuHostProgram, auditor_folder: Path, path: Path) -> RemoteFmuLibrary:
    """Return a library in a host that is started for it."""
    from mb2fmu.audit.behaviour.instance.remote_library import RemoteFmuLibrary

    if remote_host.name == VALGRIND:
        command = [
            remote_host.launcher,
            "--quiet",
            "--xml=yes",
            f"--xml-file={auditor_folder / _valgrind_report_name(path)}",
            "--track-origins=yes",
            f"--num-callers={MAX_STACK_FRAMES}",
            "--leak-check=no",
            remote_host.program,
        ]
        return RemoteFmuLibrary(command, str(path), {**os.environ, "VALGRIND_OPTS": ""})
    prefix = auditor_folder / "prefix"
    if not prefix.exists():
        _copy_wine_prefix(Path(remote_host.prefix), prefix)
    wine_variables = _wine_environment(prefix, auditor_folder)
    return RemoteFmuLibrary(
        [remote_host.launcher, remote_host.program], convert_to_wine_path(path), {**os.environ, **wine_variables}
    )


def _copy_wine_prefix(template: Path, prefix: Path) -> None:
    """Copy files; contents that are only read are linked."""
    shutil.copytree(template, prefix, symlinks=True, ignore=lambda _, names: {"windows"} & set(names))
    (prefix / "drive_c" / "windows").symlink_to(template / "drive_c" / "windows")


def convert_to_wine_path(path: Path) -> str:
    """Return a path as wine names it."""
    return "Z:" + str(path).replace("/", "\\")


def _valgrind_report_name(library: Path) -> str:
    """Return the name of the file that valgrind writes while a library runs."""
    return f"seen-{library.stem}.xml"


def read_valgrind_errors(root: Path, library: Path) -> list[str]:
    """Return valgrind's errors so far inside the FMU's code, each kind once per function.

    Args:
        root: Folder of the trial.
        library: The FMU's.
    """
    from xml.etree import ElementTree as ET

    try:
        report = (root / AUDITOR_FOLDER / _valgrind_report_name(library)).read_text("utf-8", "replace")
        written = report[: report.rfind("</error>") + len("</error>")]  # it goes on
        errors = ET.fromstring(f"{written}</valgrindoutput>").iter("error") if "</error>" in report else ()  # noqa: S314  written by valgrind
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
