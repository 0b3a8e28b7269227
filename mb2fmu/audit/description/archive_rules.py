"""The archive as it lies on disk, and its rules: members, compression, required files."""

from __future__ import annotations

import posixpath
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from mb2fmu.audit.description.description_import import parse_root_element_safely
from mb2fmu.audit.description.description_records import DESCRIPTION, TERMINALS, DescribedModel
from mb2fmu.audit.rules_and_findings import RuleViolation
from mb2fmu.errors import Fault, PackageError

MAX_UNPACKED_BYTES = 2 * 1024**3
"""Archives that unpack to more bytes than this are not unpacked."""

_METHOD_STORED, _METHOD_DEFLATED = 0, 8
_FLAG_ENCRYPTED, _FLAG_STREAMED = 0x1, 0x8
_SYMBOLIC_LINK_MODE = 0xA000
_TOP_LEVEL_NAMES = {
    2: {DESCRIPTION, "model.png", "documentation", "sources", "binaries", "resources", "terminalsAndIcons", "extra"},
    3: {DESCRIPTION, "documentation", "terminalsAndIcons", "icons", "sources", "binaries", "resources", "extra"},
}
_TOP_LEVEL_NAMES[2] |= {"licenses"}


@dataclass(frozen=True)
class FmuArchive:
    """Directory of an archive, and the contents of its members.

    Attributes:
        path: The file.
        members: As the directory lists them, folders left out.
        contents: Name → bytes.
    """

    path: Path
    members: tuple[zipfile.ZipInfo, ...]
    contents: dict[str, bytes] = field(repr=False)

    @property
    def names(self) -> frozenset[str]:
        """Paths of all members."""
        return frozenset(self.contents)


def read_fmu_archive(path: Path) -> FmuArchive:
    """Read a whole archive into memory.

    Raises:
        PackageError: If it is no archive, or too large, or damaged.
    """
    try:
        with zipfile.ZipFile(path) as file:
            members = tuple(member for member in file.infolist() if not member.is_dir())
            size = sum(member.file_size for member in members)
            if size > MAX_UNPACKED_BYTES:
                raise PackageError(
                    f"{path} unpacks to {size} bytes", [Fault("more than the auditor unpacks", str(path))]
                )
            contents = {
                member.filename: file.read(member) for member in members if not member.flag_bits & _FLAG_ENCRYPTED
            }
    except FileNotFoundError as error:
        raise PackageError(f"{path} is not there") from error
    except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        remedy = "give an .fmu file: a zip archive with a modelDescription.xml"
        raise PackageError(f"{path} cannot be read as an archive", [Fault(str(error), str(path), remedy)]) from error
    return FmuArchive(path, members, contents)


def check_archive_members(archive: FmuArchive) -> Iterator[RuleViolation]:
    """Check rules that hold for any archive, whatever its description says."""
    if archive.path.suffix != ".fmu":
        yield RuleViolation("archive.suffix", f"the file ends in {archive.path.suffix!r}", archive.path.name)
    for name, count in Counter(member.filename for member in archive.members).items():
        if count > 1:
            yield RuleViolation("archive.paths", f"the member is there {count} times", name)
    for name, count in Counter(name.lower() for name in {member.filename for member in archive.members}).items():
        if count > 1:
            yield RuleViolation("archive.paths", f"{count} members differ only in capital letters", name)
    for member in archive.members:
        yield from _check_member(member)
    folders = {parent for member in archive.members for parent in _iterate_parent_folders(member.filename)}
    for name in sorted(folders & {member.filename for member in archive.members}):
        yield RuleViolation("archive.paths", "is a file, and other members lie below it", name)
    if DESCRIPTION not in archive.names:
        yield RuleViolation(
            "archive.description", "modelDescription.xml is not at the top of the archive", archive.path.name
        )


def _iterate_parent_folders(name: str) -> Iterator[str]:
    """Return the folders that a member lies in."""
    parts = name.split("/")
    return ("/".join(parts[:depth]) for depth in range(1, len(parts)))


def _check_member(member: zipfile.ZipInfo) -> Iterator[RuleViolation]:
    """Yield faults of one member: its path, compression and the version needed."""
    path = member.orig_filename
    parts = path.split("/")
    if "\\" in path:
        yield RuleViolation("archive.paths", "a backslash separates folders on Windows only", path)
    if path.startswith("/") or ".." in parts or (len(path) > 1 and path[1] == ":"):
        yield RuleViolation("archive.paths", "the path leaves the folder that the FMU is unpacked into", path)
    if (member.external_attr >> 16) & 0xF000 == _SYMBOLIC_LINK_MODE:
        yield RuleViolation("archive.paths", "is a symbolic link, which not every system can make", path)
    if member.flag_bits & _FLAG_ENCRYPTED:
        yield RuleViolation("archive.compression", "the member is encrypted", path)
    if member.compress_type not in {_METHOD_STORED, _METHOD_DEFLATED}:
        yield RuleViolation(
            "archive.compression", f"compression method {member.compress_type}; allowed are 0 and 8", path
        )
    if member.compress_type == _METHOD_STORED and member.flag_bits & _FLAG_STREAMED:
        yield RuleViolation("archive.compression", "stored with general purpose bit 3", path)
    if member.extract_version > 20:
        message = f"needs version {member.extract_version / 10:g} to extract; allowed is 2.0"
        yield RuleViolation("archive.compression", message, path)


def check_archive_content(archive: FmuArchive, description: DescribedModel) -> Iterator[RuleViolation]:
    """Check rules about files that the description promises."""
    for name in sorted({name.split("/")[0] for name in archive.names} - _TOP_LEVEL_NAMES[description.version]):
        yield RuleViolation("archive.unexpected", "the standard knows no such file or folder here", name)
    yield from _check_sources(archive, description)
    for member, picture in (
        ("documentation/diagram.svg", "documentation/diagram.png"),
        ("terminalsAndIcons/icon.svg", "terminalsAndIcons/icon.png"),
    ):
        if member in archive.names and picture not in archive.names:
            yield RuleViolation("archive.pictures", f"{picture} must stand beside it", member)
    for name in sorted(archive.names):
        if _is_picture(name) and not archive.contents[name].startswith(_PNG_SIGNATURE):
            yield RuleViolation("archive.pictures", "is no PNG file", name)
    yield from _check_icons(archive)
    licences = [name for name in archive.names if name.startswith("documentation/licenses/")]
    if licences and not any(
        name.rsplit("/", 1)[1] in {"license.txt", "license.html", "license.spdx"} for name in licences
    ):
        yield RuleViolation(
            "archive.licences", "no license.txt, license.html or license.spdx to begin with", "documentation/licenses"
        )
    if not any(name.startswith("documentation/") and name.count("/") == 1 for name in archive.names):
        yield RuleViolation("archive.documentation", "no documentation", archive.path.name)
    needs_tool = any(description.flag(interface, "needsExecutionTool") for interface in description.interfaces)
    if needs_tool and "documentation/externalDependencies.txt" not in archive.names:
        message = "needsExecutionTool is true, but documentation/externalDependencies.txt does not say what is needed"
        yield RuleViolation("archive.external", message, archive.path.name)


def _check_icons(archive: FmuArchive) -> Iterator[RuleViolation]:
    """Yield pictures that terminals name and that are not there; names are relative to the file that has them."""
    try:
        root = parse_root_element_safely(archive.contents[TERMINALS])
    except (KeyError, ValueError):
        return  # none, or reported as no XML
    for element in root.iter("TerminalGraphicalRepresentation"):
        base_name = element.get("iconBaseName", "")
        name = posixpath.normpath(posixpath.join(posixpath.dirname(TERMINALS), unquote(base_name))) + ".png"
        if base_name and "://" not in base_name and name not in archive.names:
            yield RuleViolation(
                "archive.pictures", f"{name} is not in the archive", f"{TERMINALS}:{element.sourceline}"
            )


_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def _is_picture(name: str) -> bool:
    """Return whether a member is a picture that the standard names, by its place and ending."""
    return name.startswith(("terminalsAndIcons/", "documentation/diagram")) and name.endswith(".png")


def _check_sources(archive: FmuArchive, description: DescribedModel) -> Iterator[RuleViolation]:
    """Yield source files that are listed and absent, and FMI 3 sources without a build description."""
    for interface, files in description.sources.items():
        for name in files:
            if posixpath.normpath(f"sources/{name}") not in archive.names:
                yield RuleViolation(
                    "archive.sources", f"{interface} lists sources/{name}, which is not in the archive", DESCRIPTION
                )
    build_description = archive.contents.get("sources/buildDescription.xml")
    if build_description is not None:
        yield from _check_build_description(archive, description, build_description)
    elif description.version == 3 and any(name.startswith("sources/") for name in archive.names):
        yield RuleViolation("archive.sources", "sources without sources/buildDescription.xml", "sources")


def _check_build_description(
    archive: FmuArchive, description: DescribedModel, content: bytes
) -> Iterator[RuleViolation]:
    """Yield faults of buildDescription.xml: unreadable, of no interface, or listing absent files."""
    place = "sources/buildDescription.xml"
    try:
        root = parse_root_element_safely(content)
    except ValueError as error:
        yield RuleViolation("archive.sources", str(error), place)
        return
    identifiers = {description.identifier(interface) for interface in description.interfaces}
    for configuration in root.findall("BuildConfiguration"):
        name = configuration.get("modelIdentifier", "")
        if name not in identifiers:
            yield RuleViolation("archive.sources", f'modelIdentifier "{name}" is that of no interface', place)
    for element in root.iter("IncludeDirectory"):
        name = element.get("name", "").strip("/")
        folder = posixpath.normpath(f"sources/{name}") + "/"
        if not any(member.startswith(folder) for member in archive.names):
            yield RuleViolation(
                "archive.sources", f"lists the folder sources/{name}, which is not in the archive", place
            )
    for element in root.iter("SourceFile"):
        name = element.get("name", "")
        if posixpath.normpath(f"sources/{name}") not in archive.names:
            yield RuleViolation("archive.sources", f"lists sources/{name}, which is not in the archive", place)
