"""Locks between processes; the system releases them whenever a process ends."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_RETRY_INTERVAL_S = 0.05
"""In s, between two looks at a lock, where the system cannot wait for it."""
_LOCKED_ERRORS = frozenset({errno.EACCES, errno.EAGAIN, errno.EDEADLK})
_LOCKED_BYTE = 1 << 30
"""On Windows locked bytes cannot be read: the lock is on one behind the text."""


class FileLockHeldError(Exception):
    """Another process holds the lock; the message is the text that it wrote into the lock's file."""


@contextmanager
def acquire_lock_with_waiting(path: Path) -> Iterator[None]:
    """Hold a lock that other processes wait for.

    Args:
        path: Of the lock's file, which is removed at the end. Who waited for a removed one requests the next.
    """
    while True:
        with _open_lock_file(path) as handle:
            _acquire_waiting(handle)
            if _is_same_file(handle, path):
                with _remove_lock_file_after(path):
                    yield
                return


@contextmanager
def acquire_lock_without_waiting(path: Path, holder: str) -> Iterator[None]:
    """Hold a lock that nobody waits for; a file left by a process that has ended is taken over.

    Args:
        path: Of the lock's file, which is removed at the end.
        holder: Who holds it, for others to read.

    Raises:
        FileLockHeldError: If another process, or another call in this one, has it.
    """
    while True:
        with _open_lock_file(path) as handle:
            if not _acquire_at_once(handle):
                raise FileLockHeldError(_read_holder(handle))
            if _is_same_file(handle, path):
                with _remove_lock_file_after(path):
                    os.ftruncate(handle, 0)
                    os.write(handle, holder.encode())
                    yield
                return


@contextmanager
def _open_lock_file(path: Path) -> Iterator[int]:
    """Open a lock's file and close it afterwards; Windows removes it only then."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        yield handle
    finally:
        os.close(handle)
        if os.name == "nt":  # where an open file cannot be removed: not ours before it is closed, nor another's lock
            with contextlib.suppress(OSError):
                path.unlink()


@contextmanager
def _remove_lock_file_after(path: Path) -> Iterator[None]:
    """Remove a lock's file afterwards, while the lock is still held."""
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink()


def _is_same_file(handle: int, path: Path) -> bool:
    """Return whether an open file is still the one that its path names."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _read_holder(handle: int) -> str:
    """Return who holds a lock, as written in its file."""
    return os.read(handle, 1000).decode(errors="replace").strip()


def _acquire_waiting(handle: int) -> None:
    """Wait for the lock of an open file."""
    if sys.platform == "win32":
        while not _acquire_at_once(handle):
            time.sleep(_RETRY_INTERVAL_S)
    else:
        import fcntl

        with contextlib.suppress(OSError):  # a file system without locks: renaming is all that is left
            fcntl.flock(handle, fcntl.LOCK_EX)


def _acquire_at_once(handle: int) -> bool:
    """Take the lock of an open file, or raise if another process has it; True on a file system without locks."""
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(handle, _LOCKED_BYTE, os.SEEK_SET)
            try:
                msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
            finally:
                os.lseek(handle, 0, os.SEEK_SET)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in _LOCKED_ERRORS
    return True
