"""Binaries of all platforms: format of their folder, and exported symbols of the interface only."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from mb2fmu.audit.description.description_records import DescribedModel
from mb2fmu.audit.rules_and_findings import RuleViolation

if TYPE_CHECKING:
    import lief

    from mb2fmu.audit.description.archive_rules import FmuArchive

NEWEST_GLIBC = (2, 28)
"""Newer ones are missing on systems that are still supported."""

_PLATFORM_FOLDERS_FMI2 = {
    "linux64": ("ELF", "x86_64"),
    "linux32": ("ELF", "i386"),
    "win64": ("PE", "x86_64"),
    "win32": ("PE", "i386"),
    "darwin64": ("MachO", "x86_64"),
    "aarch64-darwin": ("MachO", "aarch64"),
}
_FORMATS_BY_SYSTEM = {"linux": "ELF", "windows": "PE", "darwin": "MachO"}
_SUFFIXES = {"ELF": ".so", "PE": ".dll", "MachO": ".dylib"}
_PLATFORM_TUPLE = re.compile(r"(aarch32|aarch64|i386|i586|i686|x86_64|riscv64|ppc64le)-(linux|windows|darwin)(-\w+)?\Z")
_PROCESSOR_NAMES = {
    "X86_64": "x86_64", "AMD64": "x86_64", "I386": "i386", "X86": "i386", "AARCH64": "aarch64", "ARM64": "aarch64",
    "ARM": "aarch32", "ARMNT": "aarch32", "RISCV": "riscv64", "PPC64": "ppc64le",
}  # fmt: skip
# What the linkers and runtimes of C and C++ export on their own; not the FMU's doing.
_LINKER_SYMBOLS = re.compile(
    r"(_init|_fini|__bss_start|_edata|_end|__end__|__data_start|__gmon_start__|__mh_dylib_header|___dso_handle|"
    r"DllMain|DllMainCRTStartup|_Avx2WmemEnabledWeakValue|_ITM_.*|__asan_.*|__ubsan_.*|_Z.*|\?.*|__emutls.*|__odr_asan.*|__start_.*|__stop_.*)\Z"
)
_SYSTEM_LIBRARIES = re.compile(
    r"(linux-vdso.*|ld-linux.*|libc\.so\.6|libm\.so\.6|libpthread\.so\.0|libdl\.so\.2|librt\.so\.1|libgcc_s\.so\.1|"
    r"libstdc\+\+\.so\.6|kernel32\.dll|ntdll\.dll|msvcrt\.dll|user32\.dll|advapi32\.dll|shell32\.dll|shlwapi\.dll|ws2_32\.dll|ole32\.dll|"
    r"(bcrypt|combase|comctl32|comdlg32|crypt32|cryptbase|dbghelp|dnsapi|dwmapi|gdi32|gdiplus|imm32|iphlpapi|kernelbase|"
    r"mpr|msimg32|mswsock|ncrypt|netapi32|normaliz|oleaut32|opengl32|pdh|powrprof|psapi|rpcrt4|secur32|setupapi|shcore|"
    r"userenv|uxtheme|version|wininet|winhttp|winmm|wintrust|wsock32|wtsapi32|bcryptprimitives|sspicli)\.dll|winspool\.drv|"
    r"ucrtbase\.dll|api-ms-win-.*|/usr/lib/.*|/System/Library/.*)\Z",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ParsedSharedLibrary:
    """What one image of a shared library declares; a fat Mach-O has several images.

    Attributes:
        file_format: ``ELF``, ``PE`` or ``MachO``.
        machine: Processor, by the names of FMI 3.
        exported: Names that it offers; Mach-O's underscore is taken off.
        imported: Names that it needs.
        libraries: Names that the loader looks for.
        glibc: Newest version of glibc that it requires; (0, 0) if none.
        search_paths: Folders that the loader shall search.
    """

    file_format: str
    machine: str
    exported: frozenset[str]
    imported: frozenset[str]
    libraries: frozenset[str]
    glibc: tuple[int, ...] = (0, 0)
    search_paths: tuple[str, ...] = ()


def parse_shared_library(content: bytes) -> tuple[ParsedSharedLibrary, ...]:
    """Return all images of a library: several in a fat Mach-O; none if it is no library at all."""
    import lief  # slow to load, and the trying process hardly ever needs it

    lief.logging.disable()
    bytes_list = list(content)
    if lief.is_elf(bytes_list):
        binary = lief.ELF.parse(bytes_list)
        return (_read_elf_image(binary),) if binary else ()
    if lief.is_pe(bytes_list):
        windows = lief.PE.parse(bytes_list)
        return (_read_pe_image(windows),) if windows else ()
    if lief.is_macho(bytes_list):
        macho_images = lief.MachO.parse(bytes_list)
        return tuple(_read_macho_image(image) for image in macho_images) if macho_images else ()
    return ()


def _processor_name(value: object) -> str:
    """Return a processor by the name that platform folders use."""
    name = getattr(value, "name", str(value))
    return _PROCESSOR_NAMES.get(name, name)


def _read_elf_image(binary: lief.ELF.Binary) -> ParsedSharedLibrary:
    """Return what a Linux library exports, imports and needs, the newest glibc version among it."""
    import lief

    glibc_versions = re.findall(
        r"GLIBC_(\d+(?:\.\d+)+)",
        " ".join(
            str(symbol.name)
            for requirement in binary.symbols_version_requirement
            for symbol in requirement.get_auxiliary_symbols()
        ),
    )
    search_paths = [
        str(entry.runpath) for entry in binary.dynamic_entries if isinstance(entry, lief.ELF.DynamicEntryRunPath)
    ]
    search_paths += [
        str(entry.rpath) for entry in binary.dynamic_entries if isinstance(entry, lief.ELF.DynamicEntryRpath)
    ]
    return ParsedSharedLibrary(
        "ELF",
        _processor_name(binary.header.machine_type),
        frozenset(str(item.name) for item in binary.exported_symbols),
        frozenset(str(item.name) for item in binary.imported_symbols),
        frozenset(str(item) for item in binary.libraries),
        max((tuple(int(part) for part in item.split(".")) for item in glibc_versions), default=(0, 0)),
        tuple(search_paths),
    )


def _read_pe_image(binary: lief.PE.Binary) -> ParsedSharedLibrary:
    """Return what a Windows library exports, imports and needs."""
    exports = binary.get_export()
    return ParsedSharedLibrary(
        "PE",
        _processor_name(binary.header.machine),
        frozenset(str(item.name) for item in exports.entries) if exports else frozenset(),
        frozenset(str(entry.name) for library in binary.imports for entry in library.entries),
        frozenset(str(item.name) for item in binary.imports),
    )


def _read_macho_image(binary: lief.MachO.Binary) -> ParsedSharedLibrary:
    """Return what a macOS library exports, imports and needs; its own name is not a need."""
    import lief

    own_library = binary[lief.MachO.LoadCommand.TYPE.ID_DYLIB]
    own_name = own_library.name if isinstance(own_library, lief.MachO.DylibCommand) else None
    return ParsedSharedLibrary(
        "MachO",
        _processor_name(binary.header.cpu_type),
        frozenset(str(item.name).removeprefix("_") for item in binary.exported_symbols),
        frozenset(str(item.name).removeprefix("_") for item in binary.imported_symbols),
        frozenset(str(item.name) for item in binary.libraries if item.name != own_name),
    )


@cache
def list_fmi_functions(version: int) -> frozenset[str]:
    """Return all functions of an FMI version, from the headers that fmpy carries."""
    spec = find_spec("fmpy")
    assert spec is not None
    assert spec.origin is not None
    header = Path(spec.origin).parent / f"c-code/fmi{version}Functions.h"
    return frozenset(re.findall(rf"FMI{version}_Export\s+\w+\s+(fmi{version}\w+);", header.read_text(encoding="utf-8")))


_FUNCTIONS_BY_INTERFACE = {
    "ModelExchange": (
        "EnterEventMode NewDiscreteStates EnterContinuousTimeMode CompletedIntegratorStep SetTime SetContinuousStates "
        "GetDerivatives GetEventIndicators GetContinuousStates GetNominalsOfContinuousStates InstantiateModelExchange "
        "GetContinuousStateDerivatives GetNumberOfEventIndicators GetNumberOfContinuousStates"
    ),
    "CoSimulation": (
        "SetRealInputDerivatives GetRealOutputDerivatives DoStep CancelStep GetStatus GetRealStatus GetIntegerStatus "
        "GetBooleanStatus GetStringStatus InstantiateCoSimulation EnterStepMode GetOutputDerivatives"
    ),
    "ScheduledExecution": "InstantiateScheduledExecution ActivateModelPartition",
}
"""Functions of one interface type only."""


def list_required_exports(version: int, interfaces: frozenset[str]) -> frozenset[str]:
    """Return functions that an FMU must export: the common ones and those of its interface types."""
    other_functions = {
        f"fmi{version}{name}"
        for interface, names in _FUNCTIONS_BY_INTERFACE.items()
        if interface not in interfaces
        for name in names.split()
    }
    if version == 3 and "CoSimulation" in interfaces:
        other_functions -= {"fmi3EnterEventMode"}
    return list_fmi_functions(version) - other_functions


def check_binaries(archive: FmuArchive, description: DescribedModel) -> Iterator[RuleViolation]:
    """Yield violations of the rules about binaries: folders, formats and exported symbols."""
    folders: dict[str, set[str]] = {}
    for name in archive.names:
        path_parts = name.split("/")
        if path_parts[0] == "binaries" and len(path_parts) > 2:
            folders.setdefault(path_parts[1], set()).add("/".join(path_parts[2:]))
    identifiers = {description.identifier(interface) for interface in description.interfaces}
    # Backslashes are judged by a rule of their own.
    top_level_names = {name.replace("\\", "/").partition("/")[0] for name in archive.names}
    if not folders and not top_level_names & {"binaries", "sources"}:
        yield RuleViolation("binary.any", "neither binaries nor sources: nothing can run it", archive.path.name)
    for folder, files in sorted(folders.items()):
        yield from _check_platform_folder(archive, description, folder, files, identifiers)


def _expected_format(folder: str, version: int) -> tuple[str, str] | None:
    """Return format and machine that a platform folder stands for; None if it is none of the standard."""
    if version == 2 and folder in _PLATFORM_FOLDERS_FMI2:
        return _PLATFORM_FOLDERS_FMI2[folder]
    match = _PLATFORM_TUPLE.match(folder)
    if not match:
        return None
    machine = "i386" if match[1] in {"i586", "i686"} else match[1]
    return _FORMATS_BY_SYSTEM[match[2]], machine


def _check_platform_folder(
    archive: FmuArchive, description: DescribedModel, folder: str, files: set[str], identifiers: set[str]
) -> Iterator[RuleViolation]:
    """Yield faults of a platform folder: unknown, of the other FMI version, or without the libraries named."""
    place = f"binaries/{folder}"
    expected = _expected_format(folder, description.version)
    is_of_other_version = description.version == 2 and folder in {
        "x86_64-linux",
        "x86_64-windows",
        "x86_64-darwin",
        "i686-linux",
        "i686-windows",
    }
    is_of_other_version |= description.version == 3 and folder in _PLATFORM_FOLDERS_FMI2 and folder != "aarch64-darwin"
    if expected is None or is_of_other_version:
        other_version = "FMI 3" if description.version == 2 else "FMI 2"
        message = (
            f"a folder of {other_version}: importers of this version do not look there"
            if is_of_other_version
            else "no platform of the standard"
        )
        yield RuleViolation("binary.folder", message, place)
    if expected is None:
        return
    suffix = _SUFFIXES[expected[0]]
    has_static_library = any(name.endswith((".a", ".lib")) for name in files)
    for identifier in sorted(identifiers):
        name = f"{identifier}{suffix}"
        if name in files:
            yield from _check_library(
                archive.contents[f"{place}/{name}"], f"{place}/{name}", expected, description, identifier
            )
        elif not has_static_library:
            yield RuleViolation("binary.missing", f"{name} is not there", place)


def _check_library(
    content: bytes, place: str, expected: tuple[str, str], description: DescribedModel, identifier: str
) -> Iterator[RuleViolation]:
    """Yield faults of a library: format, machine, symbols, dependencies, glibc, absolute search paths."""
    images = parse_shared_library(content)
    if not images:
        yield RuleViolation("binary.format", f"is no {expected[0]} library", place)
    machines = {image.machine for image in images}
    if images and any(image.file_format != expected[0] for image in images):
        yield RuleViolation("binary.format", f"is {images[0].file_format}; the folder is for {expected[0]}", place)
    elif images and expected[1] not in machines:
        yield RuleViolation(
            "binary.machine", f"is for {', '.join(sorted(machines))}; the folder is for {expected[1]}", place
        )
    interfaces = frozenset(
        interface for interface in description.interfaces if description.identifier(interface) == identifier
    )
    for image in images:
        yield from _check_symbols(image, place, description, interfaces, identifier)
        uncommon = sorted(name for name in image.libraries if not _SYSTEM_LIBRARIES.match(name))
        if uncommon:
            yield RuleViolation("binary.libraries", f"needs {', '.join(uncommon)}, which not every machine has", place)
        if image.glibc > NEWEST_GLIBC:
            message = f"needs glibc {'.'.join(map(str, image.glibc))}; older systems cannot load it"
            yield RuleViolation("binary.glibc", message, place)
        absolute_paths = [
            path for path in image.search_paths if path and not path.startswith(("$ORIGIN", "@loader_path", "@rpath"))
        ]
        if absolute_paths:
            yield RuleViolation("binary.search", f"looks for libraries in {', '.join(absolute_paths)}", place)


def _check_symbols(
    image: ParsedSharedLibrary, place: str, description: DescribedModel, interfaces: frozenset[str], identifier: str
) -> Iterator[RuleViolation]:
    """Yield functions of the standard that are not exported, and exported names that are none."""
    functions = list_fmi_functions(description.version)
    missing = sorted(list_required_exports(description.version, interfaces) - image.exported)
    if missing:
        message = (
            f"{len(missing)} functions are not exported: {', '.join(missing[:6])}{' …' if len(missing) > 6 else ''}"
        )
        yield RuleViolation("binary.symbols", message, place)
    # Other versions of FMI in one library, and prefixed functions of a source FMU, are documented symbols too.
    extra_names = sorted(
        name
        for name in image.exported - functions
        if name and not _LINKER_SYMBOLS.match(name) and not re.match(rf"(fmi[123]|{re.escape(identifier)}_fmi)", name)
    )
    if extra_names:
        message = (
            f"exports {len(extra_names)} other names: "
            f"{', '.join(extra_names[:6])}{' …' if len(extra_names) > 6 else ''}"
        )
        yield RuleViolation("binary.exports", message, place)
