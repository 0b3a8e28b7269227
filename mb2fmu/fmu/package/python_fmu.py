"""The FMU that Python hosts: built by pythonfmu, then made reproducible; its Linux binary is patched.

pythonfmu contributes the binaries that call Python (linux64, win64) and its Python package. Its description has neither
units of measurement nor dependencies, a random token and the time of day: it is replaced by ours. Its Linux binary
frees a block twice
when a process ends: it is mended (see ``pythonfmu_builder``).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from mb2fmu.errors import Fault, PackageError
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.fmu.interface.fmu_interface import FmuInterface
from mb2fmu.fmu.package.fmu_archive import MODEL_DESCRIPTION_MEMBER, unpack_archive_bytes
from mb2fmu.fmu.toolchain.pythonfmu_builder import pythonfmu_version, read_pythonfmu_licence, run_pythonfmu_builder

_DEPENDENCY_NOTE = """\
This FMU runs Python code inside of the simulation tool. On the machine that simulates it there must be

  Python 3.11 or later (CPython, 64 bit)
  numpy  1.26 or later

The tool must be a Python program, or must load Python's shared library so that its symbols are visible:
on Linux libpython3 (e.g. LD_PRELOAD=libpython3.11.so), on Windows python3.dll in a folder of the PATH.
The package pythonfmu {version} is contained in resources/pythonfmu.
Platforms: {platforms}. The Linux binary needs glibc 2.32 or later.
"""

_LICENCE_NOTE = """\
binaries/ and resources/pythonfmu/ are parts of PythonFMU {version} (MIT, see pythonfmu-LICENSE.txt).
The Linux binary differs from PythonFMU's in one byte: its function finalizePythonInterpreter returns at once, because
it would free once more, when the process ends, what a destructor has freed already.
The generated files belong to whoever made the model; the fixed files beside them are parts of mb2fmu (BSD-3-Clause).
documentation/index.html, where it shows a motion, contains three.js (MIT, see the end of that page).
"""


def build_python_fmu(
    sources: InMemoryFileTree, description: InMemoryFileTree, interface: FmuInterface
) -> InMemoryFileTree:
    """Build the core FMU.

    Args:
        sources: From ``emit.python``: one script at the top and a package beside it.
        description: From ``emit_xml``: ``modelDescription.xml``.
        interface: Names the binaries.

    Returns:
        The whole FMU.

    Raises:
        ToolError: If pythonfmu fails.
        PackageError: If it left something out.
    """
    scripts = [path for path in sources if "/" not in path]
    if len(scripts) != 1:
        raise PackageError("the FMU cannot be built:", [Fault(f"{len(scripts)} scripts at the top of the sources")])
    built = unpack_archive_bytes(run_pythonfmu_builder(sources, scripts[0]), "pythonfmu's result")
    kept = {path: built[path] for path in built if path != MODEL_DESCRIPTION_MEMBER and "__pycache__" not in path}
    expected = {f"resources/{path}" for path in sources} | {"resources/slavemodule.txt"}
    binaries = sorted(path for path in kept if path.startswith("binaries/"))
    missing = sorted(expected - kept.keys())
    wrong = [path for path in binaries if not path.split("/")[-1].startswith(f"{interface.model_identifier}.")]
    if missing or wrong or not binaries:
        raise PackageError(
            "pythonfmu's result is not complete:",
            [*(Fault("is missing", path) for path in missing), *(Fault("has another name", path) for path in wrong)],
        )
    kept |= {
        path: patch_interpreter_finalization(kept[path]) for path in binaries if path.startswith("binaries/linux64/")
    }
    platforms = ", ".join(sorted({path.split("/")[1] for path in binaries}))
    facts = {"version": pythonfmu_version(), "platforms": platforms}
    documents = InMemoryFileTree(
        {
            "documentation/externalDependencies.txt": _DEPENDENCY_NOTE.format(**facts).encode(),
            "documentation/licenses/license.txt": _LICENCE_NOTE.format(**facts).encode(),
            "documentation/licenses/pythonfmu-LICENSE.txt": read_pythonfmu_licence(),
        }
    )
    return InMemoryFileTree(kept).joined(description).joined(documents)


PATCHED_FUNCTION = b"finalizePythonInterpreter"

_ELF_MAGIC = b"\x7fELF\x02\x01"
"""ELF, 64 bit, little-endian."""
_ELF_X86_64 = 62
_ELF_DYNAMIC_SYMBOLS = 11
_ENDBR64 = b"\xf3\x0f\x1e\xfa"
"""``endbr64``: where indirect calls may land."""
_RETURN_INSTRUCTION = b"\xc3"


def patch_interpreter_finalization(library: bytes) -> bytes:
    """Patch ``finalizePythonInterpreter`` to return at once; a library already patched stays as it is.

    Args:
        library: pythonfmu's shared library for Linux on x86-64.

    Returns:
        The same library, with at most one byte replaced.

    Raises:
        PackageError: If it is no such library, or has no such function: it is then not known whether it has the fault.
    """
    if library[:6] != _ELF_MAGIC or struct.unpack_from("<H", library, 18) != (_ELF_X86_64,):
        raise _unknown_binary_error("is no shared library for Linux on x86-64")
    places = [address for name, address in _dynamic_symbols(library) if name == PATCHED_FUNCTION and address]
    if len(places) != 1:
        raise _unknown_binary_error(f"has {len(places)} functions {PATCHED_FUNCTION.decode()}, not one")
    start = _file_offset(library, places[0])
    if library[start : start + len(_ENDBR64)] == _ENDBR64:
        start += len(_ENDBR64)
    return library[:start] + _RETURN_INSTRUCTION + library[start + 1 :]


def _dynamic_symbols(library: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield name and address of each dynamic symbol; the address is 0 where another library defines it."""
    table = struct.unpack_from("<Q", library, 40)[0]
    size, count = struct.unpack_from("<2H", library, 58)
    sections = [struct.unpack_from("<2I4Q2I2Q", library, table + k * size) for k in range(count)]
    for _, kind, _, _, start, length, link, _, _, entry in sections:
        if kind != _ELF_DYNAMIC_SYMBOLS:
            continue
        names = sections[link][4]
        for place in range(start, start + length, entry):
            name, _, _, _, address, _ = struct.unpack_from("<I2BH2Q", library, place)
            end = library.index(b"\0", names + name)
            yield library[names + name : end], address


def _file_offset(library: bytes, address: int) -> int:
    """Return the file offset of the content loaded at ``address``.

    Raises:
        PackageError: If nothing is.
    """
    table = struct.unpack_from("<Q", library, 32)[0]
    size, count = struct.unpack_from("<2H", library, 54)
    for k in range(count):
        kind, _, start, loaded, _, length = struct.unpack_from("<2I4Q", library, table + k * size)
        if kind == 1 and loaded <= address < loaded + length:
            return int(start + address - loaded)
    raise _unknown_binary_error(f"has nothing at the address of {PATCHED_FUNCTION.decode()}")


def _unknown_binary_error(what: str) -> PackageError:
    """Return the error of a binary that cannot be patched as the known one is."""
    return PackageError(
        "pythonfmu's binary for Linux is not the one that mb2fmu knows:",
        [Fault(what, "libpythonfmu-export.so", "reinstall the pythonfmu that mb2fmu requires (pip install mb2fmu)")],
    )
