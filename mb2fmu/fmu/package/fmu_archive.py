"""The archive of an FMU: a reproducible ZIP file with sorted names, without times, paths and users."""

from __future__ import annotations

import functools
import io
import stat
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from mb2fmu.errors import Fault, PackageError
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.fmu.package.atomic_publishing import write_file_atomically

MODEL_DESCRIPTION_MEMBER = "modelDescription.xml"
MAX_MEMBER_BYTES = 1 << 30
MAX_TOTAL_BYTES = 1 << 32
MAX_COMPRESSION_RATIO = 1000
"""Bytes out per byte in: deflate reaches 1032, files of FMUs stay far below; small members are let through."""

_ZIP_TIME = (1980, 1, 1, 0, 0, 0)
_ZIP_FILE_MODE = stat.S_IFREG | 0o644
_MIN_CHECKED_MEMBER_BYTES = 1 << 24


def make_fmu_archive(tree: InMemoryFileTree) -> bytes:
    """Return the tree as the bytes of an archive; the same tree gives the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in tree:
            member = zipfile.ZipInfo(path, _ZIP_TIME)
            member.compress_type = zipfile.ZIP_DEFLATED
            member.external_attr = _ZIP_FILE_MODE << 16
            member.create_system = 3  # Unix, on whatever system this runs
            archive.writestr(member, tree[path])
    return buffer.getvalue()


def write_fmu_archive(tree: InMemoryFileTree, path: Path) -> None:
    """Write an FMU. An existing file is replaced at the end, in one step, and kept if anything fails.

    Args:
        tree: The FMU; has ``modelDescription.xml`` at its top.
        path: Where to write it.

    Raises:
        PackageError: If the tree is no unit, or the file cannot be written.
    """
    if MODEL_DESCRIPTION_MEMBER not in tree.files:
        raise PackageError(f"{path} was not written:", [Fault(f"the FMU has no {MODEL_DESCRIPTION_MEMBER}")])
    write_file_atomically(path, make_fmu_archive(tree))


def read_archive(path: Path, needed: str = MODEL_DESCRIPTION_MEMBER, what: str = "FMU") -> InMemoryFileTree:
    """Read an FMU completely, with all checksums.

    Args:
        path: The archive.
        needed: Member without which it is not what it should be.
        what: It should be, for messages.

    Returns:
        All files in it; entries for folders are left out.

    Raises:
        PackageError: If there is no such file, it is no ZIP archive, is damaged or truncated, has no
            ``modelDescription.xml``, has members that would land outside of its folder, twice in the same place or
            not be plain files, or unpacks to more than an FMU can be.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise PackageError(
            f"{path} cannot be read:", [Fault(str(error.strerror or error), str(path), "is it the right path?")]
        ) from error
    return unpack_archive_bytes(content, str(path), needed, what)


@functools.lru_cache(maxsize=1)  # a validation reads the same FMU five times and more, 13 ms each
def unpack_archive_bytes(
    content: bytes, where: str, needed: str = MODEL_DESCRIPTION_MEMBER, what: str = "FMU"
) -> InMemoryFileTree:
    """Unpack bytes as :func:`read_archive`, of any archive with a ``needed`` member; ``where`` is for messages."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            _check_member_count(content, len(members))
            faults = list(_archive_faults(members, needed, what))
            if faults:
                raise PackageError(f"{where} is not a sound {what}:", faults)
            return InMemoryFileTree({m.filename: archive.read(m) for m in members if not m.is_dir()})
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise PackageError(
            f"{where} is not an {what}:",
            [Fault(f"it is no whole ZIP archive: {error}", where, "transfer or export it once more")],
        ) from error


def write_files_for_run(tree: InMemoryFileTree, folder: Path) -> None:
    """Write an FMU's files into a folder of its own, to be run and then removed.

    Sources stay out, most of its files: they are for who compiles the FMU. ``resources`` is there even if it is empty,
    as FMI demands.
    """
    for name in tree:
        if not name.startswith("sources/"):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(tree[name])
    (folder / "resources").mkdir(parents=True, exist_ok=True)


def _check_member_count(content: bytes, found: int) -> None:
    """Raise if the archive announces another number of members; ``zipfile`` does not check that."""
    end = content.rfind(b"PK\x05\x06")
    declared_count = int.from_bytes(content[end + 10 : end + 12], "little")
    if declared_count not in (found, 0xFFFF):  # 0xFFFF: the number stands elsewhere (ZIP64)
        raise zipfile.BadZipFile(f"it has {found} members, not {declared_count}")


def _archive_faults(members: list[zipfile.ZipInfo], needed: str, what: str) -> Iterator[Fault]:
    """Yield everything about the members that makes an archive unsafe or no FMU (or other archive)."""
    names = [member.orig_filename for member in members]
    if needed not in names:
        yield Fault(f"it has no {needed} at its top", "", f"is it an {what} at all?")
    # On Windows and macOS two names that differ in case are one file.
    folded = Counter(name.casefold() for name in names)
    for member in members:
        name = member.orig_filename
        pure = PurePosixPath(name)
        if pure.is_absolute() or ".." in pure.parts or "\\" in name or "\0" in name or name[1:2] == ":":
            yield Fault("would be unpacked outside of its folder", name, "do not use this file")
        elif str(pure) != name.rstrip("/") or not name:
            yield Fault("is not a normal path", name)
        if folded[name.casefold()] > 1:
            yield Fault("is in it more than once", name)
        kind = stat.S_IFMT(member.external_attr >> 16)
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            yield Fault("is a link or a device, not a file", name, "do not use this file")
        if member.flag_bits & 1:
            yield Fault("is encrypted", name)
        bomb = (
            member.file_size > _MIN_CHECKED_MEMBER_BYTES
            and member.file_size > MAX_COMPRESSION_RATIO * member.compress_size
        )
        if member.file_size > MAX_MEMBER_BYTES or bomb:
            yield Fault(
                f"unpacks from {member.compress_size} to {member.file_size} bytes", name, "do not use this file"
            )
    total = sum(member.file_size for member in members)
    if total > MAX_TOTAL_BYTES:
        yield Fault(f"it unpacks to {total} bytes", "", "do not use this file")
