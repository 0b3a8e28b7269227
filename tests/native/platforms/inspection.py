"""What stands in the headers of ELF, PE and Mach-O libraries, read by lief."""

from __future__ import annotations

import re
from dataclasses import dataclass

import lief

lief.logging.disable()

MACHINES = {
    "x86_64": {"X86_64", "AMD64"},
    "aarch64": {"AARCH64", "ARM64"},
}


@dataclass(frozen=True, slots=True)
class Slice:
    """One processor's library.

    Attributes:
        processor: As FMI 3 calls it.
        exports: Names, without the leading underscore of macOS and without what the linker adds there.
        imports: Names of functions and data that the dynamic linker looks for.
        libraries: Needed at run time.
        versions: glibc's symbol versions that are needed, as pairs.
        minimum: macOS version, as a pair; (0, 0) elsewhere.
        signed: Whether there is a code signature.
    """

    processor: str
    exports: frozenset[str]
    imports: frozenset[str]
    libraries: frozenset[str]
    versions: frozenset[tuple[int, ...]]
    minimum: tuple[int, int]
    signed: bool


def read(content: bytes) -> list[Slice]:
    """The slices of a library; several only in universal Mach-O files."""
    if content[:4] == b"\x7fELF":
        return [_elf(lief.ELF.parse(list(content)))]
    if content[:2] == b"MZ":
        return [_pe(lief.PE.parse(list(content)))]
    universal = lief.MachO.parse(list(content))  # must outlive its slices
    assert universal is not None
    return [_macho(universal.at(number)) for number in range(universal.size)]


def _processor(machine: object) -> str:
    name = str(machine).split(".")[-1]
    return next(processor for processor, names in MACHINES.items() if name in names)


def _elf(binary: lief.ELF.Binary) -> Slice:
    texts = [aux.name for need in binary.symbols_version_requirement for aux in need.get_auxiliary_symbols()]
    numbers = [re.fullmatch(r"GLIBC_([0-9.]+)", text) for text in texts]
    assert all(numbers), texts
    return Slice(
        _processor(binary.header.machine_type),
        frozenset(str(each.name) for each in binary.exported_symbols),
        # An own function that is called through the dynamic linker is defined, but a relocation names it.
        frozenset(str(each.name) for each in binary.imported_symbols)
        | {str(each.symbol.name) for each in binary.relocations if each.symbol is not None} - {""},
        frozenset(binary.libraries),
        frozenset(tuple(int(part) for part in number[1].split(".")) for number in numbers if number),
        (0, 0),
        signed=False,
    )


def _pe(binary: lief.PE.Binary) -> Slice:
    export = binary.get_export()
    assert export is not None
    return Slice(
        _processor(binary.header.machine),
        frozenset(str(each.name) for each in export.entries),
        frozenset(str(entry.name) for library in binary.imports for entry in library.entries),
        frozenset(str(each.name) for each in binary.imports),
        frozenset(),
        (0, 0),
        signed=bool(binary.signatures),
    )


LINKER = {"__mh_dylib_header", "___dso_handle"}
"""Every Mach-O library of zig's linker shows its own header by these names."""


def _macho(binary: lief.MachO.Binary) -> Slice:
    names = {str(each.name) for each in binary.exported_symbols} - LINKER
    version = binary.build_version.minos if binary.has_build_version else binary.version_min.version
    own = binary[lief.MachO.LoadCommand.TYPE.ID_DYLIB]
    return Slice(
        _processor(binary.header.cpu_type),
        frozenset(name.removeprefix("_") for name in names),
        frozenset(str(each.name).removeprefix("_") for each in binary.imported_symbols),
        frozenset(each.name for each in binary.libraries if each.name != own.name),
        frozenset(),
        (version[0], version[1]),
        binary.has_code_signature,
    )
