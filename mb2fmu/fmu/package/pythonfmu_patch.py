"""Patch pythonfmu's Linux binary, which frees one block twice when the importer's process ends.

The binary of pythonfmu 0.7.0 owns the state of the interpreter by a global ``std::shared_ptr`` and lets go of it
twice: in the destructor of that global, which ``exit`` calls, and then, when the loader closes the library, in its own
function ``finalizePythonInterpreter``, which reads and writes the block that was freed before. Where memory is used in
an unlucky order, the process dies with "corrupted double-linked list" after its work is done. The library is never
closed earlier (it has unique symbols), so the destructor of the global always does what the function is for; the
function returns at once here.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from mb2fmu.errors import Fault, PackageError

FUNCTION = b"finalizePythonInterpreter"

_MAGIC = b"\x7fELF\x02\x01"
"""ELF, 64 bit, little-endian."""
_X86_64 = 62
_DYNAMIC_SYMBOLS = 11
_LANDING = b"\xf3\x0f\x1e\xfa"
"""``endbr64``: where indirect calls may land."""
_RETURN = b"\xc3"


def without_second_free(library: bytes) -> bytes:
    """Patch ``finalizePythonInterpreter`` to return at once; a library already patched stays as it is.

    Args:
        library: pythonfmu's shared library for Linux on x86-64.

    Returns:
        The same library, with at most one byte replaced.

    Raises:
        PackageError: If it is no such library, or has no such function: it is then not known whether it has the fault.
    """
    if library[:6] != _MAGIC or struct.unpack_from("<H", library, 18) != (_X86_64,):
        raise _unknown("is no shared library for Linux on x86-64")
    places = [address for name, address in _symbols(library) if name == FUNCTION and address]
    if len(places) != 1:
        raise _unknown(f"has {len(places)} functions {FUNCTION.decode()}, not one")
    start = _offset(library, places[0])
    if library[start : start + len(_LANDING)] == _LANDING:
        start += len(_LANDING)
    return library[:start] + _RETURN + library[start + 1 :]


def _symbols(library: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield name and address of each dynamic symbol; the address is 0 where another library defines it."""
    table = struct.unpack_from("<Q", library, 40)[0]
    size, count = struct.unpack_from("<2H", library, 58)
    sections = [struct.unpack_from("<2I4Q2I2Q", library, table + k * size) for k in range(count)]
    for _, kind, _, _, start, length, link, _, _, entry in sections:
        if kind != _DYNAMIC_SYMBOLS:
            continue
        names = sections[link][4]
        for place in range(start, start + length, entry):
            name, _, _, _, address, _ = struct.unpack_from("<I2BH2Q", library, place)
            end = library.index(b"\0", names + name)
            yield library[names + name : end], address


def _offset(library: bytes, address: int) -> int:
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
    raise _unknown(f"has nothing at the address of {FUNCTION.decode()}")


def _unknown(what: str) -> PackageError:
    """Return the error of a binary that cannot be patched as the known one is."""
    return PackageError(
        "pythonfmu's binary for Linux is not the one that mb2fmu knows:",
        [Fault(what, "libpythonfmu-export.so", "reinstall the pythonfmu that mb2fmu requires (pip install mb2fmu)")],
    )
