"""Publish results together: write the FMU and its report in a private folder, then rename both.

The private folder lies in the output folder, so that renaming stays within one file system; its name is hidden and
unlike any other, so that runs into one folder at the same time never see each other's files. Whatever goes wrong before
publishing leaves what was there before as it was; while a pair is published others wait at a lock, and what fails then
is taken back. Where even that is cut off (no power, SIGKILL) the FMU is without a report, never beside a wrong one;
whoever writes results of that name next removes the private folder that is left.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from mb2fmu.errors import Fault, PackageError
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.fmu.package.file_locks import acquire_lock_with_waiting
from mb2fmu.temporary_files import DISK_FULL_ERRORS, lock_temporary_folder, remove_abandoned_temporary_folders

_FORMER_FILES_FOLDER = "before"


@contextmanager
def make_unpublished_folder(folder: Path, name: str) -> Iterator[Path]:
    """Make a folder for results that must not be seen yet; it is removed at the end in any case.

    Args:
        folder: Where results are to be published; made if it is not there, and removed if nothing is published then.
        name: Of the results, for the folder's name.

    Raises:
        PackageError: If it cannot be made.
    """
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    with translate_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        with _make_hidden_folder(folder, name) as private:
            yield private
    finally:
        with suppress(OSError):  # it has results
            for path in made:
                path.rmdir()


@contextmanager
def _make_hidden_folder(folder: Path, name: str) -> Iterator[Path]:
    """Make a private folder as :func:`make_unpublished_folder` does, inside a folder that exists.

    Those of the same name that killed processes left there are removed.
    """
    prefix, suffix = f".{name}.", ".tmp"
    remove_abandoned_temporary_folders(str(folder), prefix, suffix)
    with translate_write_errors(folder):
        made = Path(tempfile.mkdtemp(prefix=prefix, suffix=suffix, dir=folder))
    try:
        with lock_temporary_folder(made):
            yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def publish_files(private: Path, names: Sequence[str], stale: Sequence[str] = ()) -> None:
    """Move results out of their private folder, all of them or none.

    Args:
        private: From :func:`make_unpublished_folder`.
        names: Of the files in it, the FMU first: whoever looks meanwhile may miss a report, but finds no old one.
        stale: Names of files beside the private folder that are removed, because what they are about is replaced.

    Raises:
        PackageError: If a file cannot be replaced; all are then as they were.
    """
    folder = private.parent
    kept = private / _FORMER_FILES_FOLDER
    touched = (*names, *stale)
    with translate_write_errors(folder), acquire_lock_with_waiting(folder / f".{names[0]}.lock"):
        kept.mkdir()
        for name in touched:
            _back_up_file(folder / name, kept / name)
        try:
            for name in (*names[1:], *stale):
                (folder / name).unlink(missing_ok=True)
            for name in names:
                (private / name).replace(folder / name)
        except BaseException:
            for name in touched:
                _restore_file(folder / name, kept / name)
            raise


def write_new_file(path: Path, content: bytes) -> None:
    """Write a new file down to the disk; the user's umask sets its permissions.

    Raises:
        OSError: If it cannot be written; nothing is left of it.
    """
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def write_file_atomically(path: Path, content: bytes) -> None:
    """Write a file, or replace it, in one step; special files (a pipe, a terminal) are written directly.

    Folders on its way that are missing are made.

    Raises:
        PackageError: If it cannot be written; an old file is then as it was.
    """
    with translate_write_errors(path):
        if path.exists() and not path.is_file():
            path.write_bytes(content)
            return
        real = path.resolve()  # a link stays one
        real.parent.mkdir(parents=True, exist_ok=True)
        with _make_hidden_folder(real.parent, real.name) as private:
            write_new_file(private / real.name, content)
            (private / real.name).replace(real)


def write_file_tree(tree: InMemoryFileTree, folder: Path) -> tuple[Path, ...]:
    """Write files into a folder, each in one step; other files of the folder stay.

    Args:
        tree: The files.
        folder: Where to; made if it is not there.

    Returns:
        Their paths, those at the top of the folder first.

    Raises:
        PackageError: If a file cannot be written; it is then as it was.
    """
    paths = []
    for name in sorted(tree, key=lambda name: (name.count("/"), name)):
        path = folder / name
        with translate_write_errors(path.parent):
            path.parent.mkdir(parents=True, exist_ok=True)
        write_file_atomically(path, tree[name])
        paths.append(path)
    return tuple(paths)


def relative_posix_path(folder: Path, file: Path) -> str:
    """Return the path of a file as seen from a folder, with slashes."""
    return Path(os.path.relpath(file.resolve(), folder.resolve())).as_posix()


@contextmanager
def translate_write_errors(path: Path) -> Iterator[None]:
    """Turn errors of the file system into errors for users.

    Args:
        path: What was to be written.

    Raises:
        PackageError: Instead of any ``OSError``, with what to do.
    """
    try:
        yield
    except OSError as error:
        full = error.errno in DISK_FULL_ERRORS
        remedy = "free some space there, or choose another folder" if full else "choose a folder that can be written to"
        fault = Fault(error.strerror or str(error), str(path), remedy)
        raise PackageError("the result was not written:", [fault]) from error


def _back_up_file(path: Path, copy: Path) -> None:
    """Keep the present file of a name, so that it can be restored; the name stays valid meanwhile."""
    if not path.exists():
        return
    try:
        os.link(path, copy)
    except OSError:  # a file system without links
        shutil.copy2(path, copy)


def _restore_file(path: Path, copy: Path) -> None:
    """Restore the former file of a name."""
    with contextlib.suppress(OSError):
        if copy.exists():
            copy.replace(path)
        else:
            path.unlink(missing_ok=True)
