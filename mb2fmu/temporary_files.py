"""Temporary folders, removed however the work ends; errors of a full disk are reported with their remedy.

A process that is killed cannot remove its folder. Each folder is therefore locked while somebody works in it: the
system gives the lock up with the process, and the next one that needs a folder removes those that nobody holds.
"""

from __future__ import annotations

import errno
import functools
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mb2fmu.errors import Fault, ToolError

DISK_FULL_ERRORS = frozenset(getattr(errno, name) for name in ("ENOSPC", "EDQUOT", "EFBIG") if hasattr(errno, name))
"""What systems say when there is no room for a file."""
TEMPORARY_FOLDER_VARIABLE = "TMP" if os.name == "nt" else "TMPDIR"

WORK_FOLDER_PREFIX = "mb2fmu-work-"
MIN_ABANDONED_AGE_S = 60.0
"""Age up to which a folder is left alone, in s: it may have been made and not been locked yet."""


@contextmanager
def make_temporary_folder(what: str, place: Path | None = None) -> Iterator[Path]:
    """Make a folder, and remove it at the end.

    Args:
        what: Is done in it, for the message: "run the FMU".
        place: Where; None: in the system's place for temporary files.

    Yields:
        Its path, without links in it.

    Raises:
        ToolError: If it cannot be made, or something in it cannot be written.
    """
    with translate_disk_errors(what):
        parent = str(place or tempfile.gettempdir())
        remove_abandoned_temporary_folders(parent)
        # Removing can fail on Windows while a virus scanner looks at what was just written.
        made = tempfile.TemporaryDirectory(prefix=WORK_FOLDER_PREFIX, dir=parent, ignore_cleanup_errors=os.name == "nt")
    with made as name, translate_disk_errors(what, Path(name)), lock_temporary_folder(name):
        yield Path(name).resolve()


@contextmanager
def lock_temporary_folder(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Keep a folder from being taken for abandoned: it is locked while somebody works in it.

    Args:
        folder: Is there.
    """
    handle = _take_folder_lock(folder)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


@functools.cache
def remove_abandoned_temporary_folders(place: str, prefix: str = WORK_FOLDER_PREFIX, suffix: str = "") -> None:
    """Remove folders of :func:`lock_temporary_folder` whose process was killed: once for each place and kind of name.

    Those of other users stay, and so do all where the system has no lock for folders (Windows).

    Args:
        place: The folder that they are in.
        prefix: What their names begin with; what follows was made by ``tempfile``.
        suffix: What they end with.
    """
    if os.name != "posix":
        return
    ours = re.compile(re.escape(prefix) + "[a-z0-9_]{8}" + re.escape(suffix))
    with suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            if ours.fullmatch(entry.name):
                with suppress(OSError):
                    _remove_if_abandoned(entry)


def _remove_if_abandoned(entry: os.DirEntry[str]) -> None:
    """Remove a folder of ours that nobody has locked; young ones stay, since their lock may still come."""
    seen = entry.stat(follow_symlinks=False)
    if (
        seen.st_uid != os.getuid()
        or not entry.is_dir(follow_symlinks=False)
        or time.time() - seen.st_mtime < MIN_ABANDONED_AGE_S
    ):
        return
    handle = _take_folder_lock(entry.path)
    if handle is not None:
        shutil.rmtree(entry.path, ignore_errors=True)
        os.close(handle)


def _take_folder_lock(folder: str | os.PathLike[str]) -> int | None:
    """Lock a folder for this process until it ends, or closes the returned descriptor.

    Returns:
        None if another process has locked it, or nothing can be locked there.
    """
    if os.name != "posix":
        return None
    import fcntl

    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


@contextmanager
def translate_disk_errors(what: str, folder: Path | None = None) -> Iterator[None]:
    """Turn errors of the disk into errors for users.

    Args:
        what: Cannot be done then, for the message: "run the FMU".
        folder: Where files are written; None: it is just being made, and any error is about it.

    Raises:
        ToolError: Instead of an ``OSError`` of a full disk (NumPy's have no number), with the file and what to do.
    """
    try:
        yield
    except OSError as error:
        if folder is not None and error.errno is not None and error.errno not in DISK_FULL_ERRORS:
            raise
        raise ToolError(f"there is no room to {what}:", [make_disk_fault(error, folder)]) from error


def make_disk_fault(error: OSError, folder: Path | None = None) -> Fault:
    """Return what is wrong with a disk or folder, and the remedy.

    Args:
        error: Of the file system; NumPy's have neither a number nor a file.
        folder: Where files are written, if ``error`` does not say it.
    """
    where = error.filename if error.filename is not None else folder or ""
    remedy = f"free some space there, or name another folder by the environment variable {TEMPORARY_FOLDER_VARIABLE}"
    return Fault(error.strerror or str(error), os.fsdecode(where) if where else "", remedy)
