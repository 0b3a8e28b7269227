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
from mb2fmu.errors import Fault, ToolError

if TYPE_CHECKING:
    from xml.etree import ElementTree as ET

SOURCE = Path(__file__).parent / "remote_host" / "remote_host.c"
HERE, WINE, VALGRIND = "here", "wine", "valgrind"
OWN = "auditor"
"""Folder of a trial that is the auditor's, not the FMU's."""

_WINE = ("wine64", "/usr/lib/wine/wine64", "wine")
_SETUP_LIMIT = 300.0
_SEEN = "seen.xml"
MOST_FRAMES = 16


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
    launcher = next((found for each in _WINE if (found := shutil.which(each))), None)
    if launcher is None:
        remedy = "install wine (Debian: apt install wine64), or audit it on Windows"
        raise ToolError("FMUs of Windows are run through wine:", [Fault("wine64 is not installed", remedy=remedy)])
    version = _said(launcher)
    return RemoteHost(WINE, launcher, str(_program("x86_64-windows-gnu")), str(_prefix(launcher, version)), version)


def make_valgrind_host() -> RemoteHost | None:
    """Return a host that watches the FMU's use of memory; None if valgrind is not installed."""
    launcher = shutil.which("valgrind") if sys.platform == "linux" else None
    if launcher is None:
        return None
    return RemoteHost(VALGRIND, launcher, str(_program("native")))


def _said(launcher: str) -> str:
    """Return the first line of a tool's --version."""
    done = subprocess.run(  # noqa: S603  an installed tool, without input
        [launcher, "--version"], capture_output=True, text=True, errors="replace", timeout=60, check=False
    )
    return done.stdout.strip().splitlines()[0] if done.stdout.strip() else ""


def _cache() -> Path:
    """Return the folder for the auditor's wine prefix, made if absent."""
    import platformdirs

    named = os.environ.get("MB2FMU_CACHE_DIR")
    path = Path(named).absolute() if named else platformdirs.user_cache_path("mb2fmu", appauthor=False)
    path = path / "audit"
    path.mkdir(parents=True, exist_ok=True)
    return path


def _digest(content: bytes) -> str:
    """Return a name for content made from these parts."""
    import hashlib

    return hashlib.sha256(content).hexdigest()[:16]


def _program(target: str) -> Path:
    """Return the program ``remote_host`` for a platform, compiled if needed.

    Raises:
        ToolError: If it cannot be compiled.
    """
    from mb2fmu.temporary_files import make_work_folder

    # "native" alone means this very processor, whose newest instructions valgrind does not know.
    words = ("-target", target, "-mcpu=baseline", "-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-fno-sanitize=all")
    place = _cache() / f"remote_host-{_digest(SOURCE.read_bytes() + ' '.join(words).encode())}.exe"
    if not place.exists():
        with make_work_folder("compile the host of the FMU", place.parent) as folder:
            made = folder / place.name
            command = [sys.executable, "-I", "-m", "ziglang", "cc", *words, str(SOURCE), "-o", str(made)]
            _done([*command, *(() if "windows" in target else ("-ldl",))], {}, "the host of the FMU is not compiled")
            made.replace(place)
    return place


def _prefix(launcher: str, version: str) -> Path:
    """Return a folder as wine sets it up, made once for each version of wine.

    Raises:
        ToolError: If wine cannot do it.
    """
    from mb2fmu.temporary_files import make_work_folder

    place = _cache() / f"wine-{_digest(version.encode())}"
    if not place.exists():
        with make_work_folder("set wine up", place.parent) as folder:
            made = folder / "prefix"
            _done([launcher, "cmd", "/c", "exit"], _settings(made, folder), "wine does not set itself up")
            server = Path(launcher).with_name("wineserver64")
            if server.exists():
                _done([str(server), "-w"], _settings(made, folder), "wine does not end")
            if not place.exists():
                made.rename(place)
    return place


def _settings(prefix: Path, temporary: Path) -> dict[str, str]:
    """Return the environment of wine: prefix, no debug output, no Mono or Gecko."""
    return {"WINEPREFIX": str(prefix), "WINEDEBUG": "-all", "WINEDLLOVERRIDES": "mscoree,mshtml=",
            "TMPDIR": str(temporary)}  # fmt: skip


def _done(command: Sequence[str], settings: dict[str, str], failure: str) -> None:
    """Run a command of the set-up; raise with its last output if it fails or takes too long."""
    try:
        done = subprocess.run(  # noqa: S603  our own commands
            command, env={**os.environ, **settings}, capture_output=True, text=True, errors="replace",
            stdin=subprocess.DEVNULL, timeout=_SETUP_LIMIT, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise ToolError(f"{failure}:", [Fault(f"{command[0]} is not back after {_SETUP_LIMIT:g} s")]) from error
    if done.returncode:
        raise ToolError(f"{failure}:", [Fault(done.stderr.strip()[-1000:] or f"exit code {done.returncode}")])


# --- in the process that tries the FMU


def load_remote_library(given: dict[str, Any], root: Path, path: Path) -> RemoteLibrary:
    """Load a library in that host.

    Args:
        given: A host, as JSON has it.
        root: Folder of the trial.
        path: Of the library.

    Raises:
        OSError: If it is refused.
    """
    host = RemoteHost(**given)
    own = root / OWN
    own.mkdir(exist_ok=True)
    if host.name == VALGRIND:
        command = [host.launcher, "--quiet", "--xml=yes", f"--xml-file={own / _SEEN}", "--track-origins=yes",
                   f"--num-callers={MOST_FRAMES}", "--leak-check=no", host.program]  # fmt: skip
        return RemoteLibrary(command, str(path), {**os.environ, "VALGRIND_OPTS": ""})
    prefix = own / "prefix"
    if not prefix.exists():
        _copy(Path(host.prefix), prefix)
    settings = _settings(prefix, own)
    return RemoteLibrary([host.launcher, host.program], windows_path(path), {**os.environ, **settings})


def _copy(template: Path, prefix: Path) -> None:
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
        errors = ET.parse(root / OWN / _SEEN).getroot().iter("error")  # noqa: S314  written by valgrind
    except (OSError, ET.ParseError):
        return []
    found = [text for each in errors if (text := _told(each, library))]
    return list(dict.fromkeys(found))


def _told(error: ET.Element, library: Path) -> str:
    """Return valgrind's error in words, with the FMU's own function on the stack; empty if the FMU is not on it."""
    if (error.findtext("kind") or "").startswith("Leak_"):
        return ""  # an FMU can ask for these itself; what it leaves behind is counted elsewhere
    what = error.findtext("what") or error.findtext("xwhat/text") or error.findtext("kind") or ""
    frames = [frame for stack in error.iter("stack") for frame in stack.iter("frame")]
    own = next((each for each in frames if each.findtext("obj") == str(library)), None)
    if own is None:
        return ""
    line = f", {own.findtext('file')}:{own.findtext('line')}" if own.findtext("line") else ""
    public = next((each.findtext("fn") for each in frames if (each.findtext("fn") or "").startswith("fmi")), "")
    name = own.findtext("fn") or "a function without a name"
    return f"{what} in {name}{line}{f', called in {public}' if public and public != name else ''}"
