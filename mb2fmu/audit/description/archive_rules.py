"""The archive as it lies on disk, and its rules: members, compression, required files."""

from __future__ import annotations

import posixpath
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from mb2fmu.audit.description.description_import import parse_description
from mb2fmu.audit.description.description_records import DESCRIPTION, DescribedModel
from mb2fmu.audit.findings import Observation
from mb2fmu.errors import Fault, PackageError

LARGEST = 2 * 1024**3
"""Archives that unpack to more bytes than this are not unpacked."""

_STORED, _DEFLATED = 0, 8
_ENCRYPTED, _STREAMED = 0x1, 0x8
_LINK = 0xA000
_TOP = {
    2: {DESCRIPTION, "model.png", "documentation", "sources", "binaries", "resources", "terminalsAndIcons", "extra"},
    3: {DESCRIPTION, "documentation", "terminalsAndIcons", "icons", "sources", "binaries", "resources", "extra"},
}
_TOP[2] |= {"licenses"}


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


def read_archive(path: Path) -> FmuArchive:
    """Read a whole archive into memory.

    Raises:
        PackageError: If it is no archive, or too large, or damaged.
    """
    try:
        with zipfile.ZipFile(path) as file:
            members = tuple(each for each in file.infolist() if not each.is_dir())
            size = sum(each.file_size for each in members)
            if size > LARGEST:
                raise PackageError(
                    f"{path} unpacks to {size} bytes", [Fault("more than the auditor unpacks", str(path))]
                )
            contents = {each.filename: file.read(each) for each in members if not each.flag_bits & _ENCRYPTED}
    except FileNotFoundError as error:
        raise PackageError(f"{path} is not there") from error
    except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        remedy = "hand over an .fmu file: a zip archive with a modelDescription.xml"
        raise PackageError(f"{path} cannot be read as an archive", [Fault(str(error), str(path), remedy)]) from error
    return FmuArchive(path, members, contents)


def check_archive_members(archive: FmuArchive) -> Iterator[Observation]:
    """Check rules that hold for any archive, whatever its description says."""
    if archive.path.suffix != ".fmu":
        yield Observation("archive.suffix", f"the file ends in {archive.path.suffix!r}", archive.path.name)
    for name, count in Counter(each.filename for each in archive.members).items():
        if count > 1:
            yield Observation("archive.paths", f"the member is there {count} times", name)
    for name, count in Counter(name.lower() for name in {each.filename for each in archive.members}).items():
        if count > 1:
            yield Observation("archive.paths", f"{count} members differ only in capital letters", name)
    for each in archive.members:
        yield from _member(each)
    folders = {parent for each in archive.members for parent in _parents(each.filename)}
    for name in sorted(folders & {each.filename for each in archive.members}):
        yield Observation("archive.paths", "is a file, and other members lie below it", name)
    if DESCRIPTION not in archive.names:
        yield Observation(
            "archive.description", "modelDescription.xml is not at the top of the archive", archive.path.name
        )


def _parents(name: str) -> Iterator[str]:
    """Return the folders that a member lies in."""
    parts = name.split("/")
    return ("/".join(parts[:k]) for k in range(1, len(parts)))


def _member(each: zipfile.ZipInfo) -> Iterator[Observation]:
    """Yield faults of one member: its path, compression and the version needed."""
    written = each.orig_filename
    parts = written.split("/")
    if "\\" in written:
        yield Observation("archive.paths", "a backslash separates folders on Windows only", written)
    if written.startswith("/") or ".." in parts or (len(written) > 1 and written[1] == ":"):
        yield Observation("archive.paths", "the path leaves the folder that the FMU is unpacked into", written)
    if (each.external_attr >> 16) & 0xF000 == _LINK:
        yield Observation("archive.paths", "is a symbolic link, which not every system can make", written)
    if each.flag_bits & _ENCRYPTED:
        yield Observation("archive.compression", "the member is encrypted", written)
    if each.compress_type not in {_STORED, _DEFLATED}:
        yield Observation(
            "archive.compression", f"compression method {each.compress_type}; allowed are 0 and 8", written
        )
    if each.compress_type == _STORED and each.flag_bits & _STREAMED:
        yield Observation("archive.compression", "stored with general purpose bit 3", written)
    if each.extract_version > 20:
        text = f"needs version {each.extract_version / 10:g} to extract; allowed is 2.0"
        yield Observation("archive.compression", text, written)


def check_promised_files(archive: FmuArchive, description: DescribedModel) -> Iterator[Observation]:
    """Check rules about files that the description promises."""
    for name in sorted({name.split("/")[0] for name in archive.names} - _TOP[description.version]):
        yield Observation("archive.unexpected", "the standard knows no such file or folder here", name)
    yield from _sources(archive, description)
    for member, pictures in (
        ("documentation/diagram.svg", "documentation/diagram.png"),
        ("terminalsAndIcons/icon.svg", "terminalsAndIcons/icon.png"),
    ):
        if member in archive.names and pictures not in archive.names:
            yield Observation("archive.pictures", f"{pictures} must stand beside it", member)
    for name in sorted(archive.names):
        if _is_picture(name) and not archive.contents[name].startswith(_PNG):
            yield Observation("archive.pictures", "is no PNG file", name)
    yield from _icons(archive)
    licences = [name for name in archive.names if name.startswith("documentation/licenses/")]
    if licences and not any(
        name.rsplit("/", 1)[1] in {"license.txt", "license.html", "license.spdx"} for name in licences
    ):
        yield Observation(
            "archive.licences", "no license.txt, license.html or license.spdx to begin with", "documentation/licenses"
        )
    if not any(name.startswith("documentation/") and name.count("/") == 1 for name in archive.names):
        yield Observation("archive.documentation", "no documentation", archive.path.name)
    needs_tool = any(description.flag(kind, "needsExecutionTool") for kind in description.interfaces)
    if needs_tool and "documentation/externalDependencies.txt" not in archive.names:
        text = "needsExecutionTool is true, but documentation/externalDependencies.txt does not say what is needed"
        yield Observation("archive.external", text, archive.path.name)


def _icons(archive: FmuArchive) -> Iterator[Observation]:
    """Yield pictures that terminals name and that are not there; names are relative to the file that has them."""
    try:
        root = parse_description(archive.contents[_TERMINALS])
    except (KeyError, ValueError):
        return  # none, or told as no XML
    for element in root.iter("TerminalGraphicalRepresentation"):
        base = element.get("iconBaseName", "")
        name = posixpath.normpath(posixpath.join(posixpath.dirname(_TERMINALS), unquote(base))) + ".png"
        if base and "://" not in base and name not in archive.names:
            yield Observation("archive.pictures", f"{name} is not in the archive", f"{_TERMINALS}:{element.sourceline}")


_TERMINALS = "terminalsAndIcons/terminalsAndIcons.xml"
_PNG = b"\x89PNG\r\n\x1a\n"


def _is_picture(name: str) -> bool:
    """Return whether a member is a picture that the standard names, by its place and ending."""
    return name.startswith(("terminalsAndIcons/", "documentation/diagram")) and name.endswith(".png")


def _sources(archive: FmuArchive, description: DescribedModel) -> Iterator[Observation]:
    """Yield source files that are listed and absent, and FMI 3 sources without a build description."""
    for kind, files in description.sources.items():
        for name in files:
            if posixpath.normpath(f"sources/{name}") not in archive.names:
                yield Observation(
                    "archive.sources", f"{kind} lists sources/{name}, which is not in the archive", DESCRIPTION
                )
    build = archive.contents.get("sources/buildDescription.xml")
    if build is not None:
        yield from _build(archive, description, build)
    elif description.version == 3 and any(name.startswith("sources/") for name in archive.names):
        yield Observation("archive.sources", "sources without sources/buildDescription.xml", "sources")


def _build(archive: FmuArchive, description: DescribedModel, build: bytes) -> Iterator[Observation]:
    """Yield faults of buildDescription.xml: unreadable, of no interface, or listing absent files."""
    where = "sources/buildDescription.xml"
    try:
        root = parse_description(build)
    except ValueError as error:
        yield Observation("archive.sources", str(error), where)
        return
    identifiers = {description.identifier(kind) for kind in description.interfaces}
    for configuration in root.findall("BuildConfiguration"):
        name = configuration.get("modelIdentifier", "")
        if name not in identifiers:
            yield Observation("archive.sources", f'modelIdentifier "{name}" is that of no interface', where)
    for element in root.iter("IncludeDirectory"):
        name = element.get("name", "").strip("/")
        folder = posixpath.normpath(f"sources/{name}") + "/"
        if not any(each.startswith(folder) for each in archive.names):
            yield Observation("archive.sources", f"lists the folder sources/{name}, which is not in the archive", where)
    for element in root.iter("SourceFile"):
        name = element.get("name", "")
        if posixpath.normpath(f"sources/{name}") not in archive.names:
            yield Observation("archive.sources", f"lists sources/{name}, which is not in the archive", where)
