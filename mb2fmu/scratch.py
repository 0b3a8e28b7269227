"""Folders for work that is thrown away: removed however the work ends; a disk without room is told with its remedy."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mb2fmu.errors import Fault, ToolError

FULL = frozenset(getattr(errno, name) for name in ("ENOSPC", "EDQUOT", "EFBIG") if hasattr(errno, name))
"""What systems say when there is no room for a file."""
VARIABLE = "TMP" if os.name == "nt" else "TMPDIR"


@contextmanager
def work_folder(what: str) -> Iterator[Path]:
    """Makes a folder in the system's place for temporary files, and removes it at the end.

    Args:
        what: Is done in it, for the message: "run the unit".

    Yields:
        Its path, without links in it.

    Raises:
        ToolError: If it cannot be made, or something in it cannot be written.
    """
    with told_of_disk(what):
        # Removing can fail on Windows while a virus scanner looks at what was just written.
        made = tempfile.TemporaryDirectory(prefix="mb2fmu-", ignore_cleanup_errors=os.name == "nt")
    with made as name, told_of_disk(what, Path(name)):
        yield Path(name).resolve()


@contextmanager
def told_of_disk(what: str, folder: Path | None = None) -> Iterator[None]:
    """Turns errors of the disk into errors for users.

    Args:
        what: Cannot be done then, for the message: "run the unit".
        folder: Where files are written; None: it is just being made, and any error is about it.

    Raises:
        ToolError: Instead of an ``OSError`` of a full disk (NumPy's have no number), with the file and what to do.
    """
    try:
        yield
    except OSError as error:
        if folder is not None and error.errno is not None and error.errno not in FULL:
            raise
        raise ToolError(f"there is no room to {what}:", [disk_fault(error, folder)]) from error


def disk_fault(error: OSError, folder: Path | None = None) -> Fault:
    """Says what is wrong with a disk or folder, and the remedy.

    Args:
        error: Of the file system; NumPy's have neither a number nor a file.
        folder: Where files are written, if ``error`` does not say it.
    """
    where = error.filename if error.filename is not None else folder or ""
    remedy = f"free some space there, or name another folder by the environment variable {VARIABLE}"
    return Fault(error.strerror or str(error), os.fsdecode(where) if where else "", remedy)
