"""Cache of compiled libraries, in the user's cache folder.

The folder is ``$MB2FMU_CACHE_DIR`` or the system's usual place (``~/.cache/mb2fmu`` on Linux). It may be deleted at any
time. Below it are ``binaries/`` (one file each, named by the hash of all that it was made from), ``objects/`` (the same
for compiled translation units), ``begun/`` (empty contents: what such binaries begin with) and ``zig/`` (zig's own: C
libraries, built once for each platform).

Any number of processes may use it at once: files are written beside their place and renamed. Each begins with the hash
of its content, so that a damaged one counts as missing.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from mb2fmu.errors import Fault, ToolError

CACHE_FOLDER_VARIABLE = "MB2FMU_CACHE_DIR"
_LIBRARY_CACHE_VERSION = b"mb2fmu library 1"
MAX_CACHED_BINARIES = 800
"""Binaries kept, about 100 MB of small FMUs; the ones not used for longest go first."""


def cache_folder() -> Path:
    """Return the cache folder, which exists afterwards.

    Raises:
        ToolError: If it cannot be made or written to.
    """
    named = os.environ.get(CACHE_FOLDER_VARIABLE)
    path = Path(named).absolute() if named else platformdirs.user_cache_path("mb2fmu", appauthor=False)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable_cache_error(path, str(error)) from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise _unusable_cache_error(path, "it cannot be written to")
    return path


def _unusable_cache_error(path: Path, what: str) -> ToolError:
    """Return the error of a cache folder that cannot be used, with its remedy."""
    remedy = f"name another folder by the environment variable {CACHE_FOLDER_VARIABLE}"
    return ToolError("there is no folder to compile in:", [Fault(what, str(path), remedy)])


def compute_cache_key(told: Iterable[str], sources: Mapping[str, bytes]) -> str:
    """Return a hash of everything that a compiled library depends on, the name under which it is stored.

    Args:
        told: The compiler's version and the options that it gets.
        sources: File name → content.
    """
    digest = hashlib.sha256(_LIBRARY_CACHE_VERSION)
    parts = [text.encode() for text in told]
    for path in sorted(sources):
        parts += [path.encode(), sources[path]]
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class ContentCache:
    """Contents by key.

    Args:
        path: Folder; made when something is stored.
        kept: How many are kept.
    """

    path: Path
    kept: int = MAX_CACHED_BINARIES

    def __post_init__(self) -> None:
        if self.kept < 1:
            raise ValueError(f"{self.kept} contents cannot be kept")

    def get(self, key: str) -> bytes | None:
        """Return the stored content, or None if there is none or it is damaged.

        Args:
            key: Hexadecimal digits.
        """
        file = self.path / key
        try:
            stored = file.read_bytes()
        except OSError:
            return None
        digest, content = stored[:32], stored[32:]
        if hashlib.sha256(content).digest() != digest:
            return None
        with suppress(OSError):  # another process may have removed it since
            os.utime(file)
        return content

    def put(self, key: str, content: bytes) -> None:
        """Store a content; if that fails (disk full, no rights) nothing is stored."""
        with suppress(OSError):
            self.path.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix="new-", dir=self.path)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(hashlib.sha256(content).digest() + content)
                Path(name).replace(self.path / key)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
            self._forget()

    def _forget(self) -> None:
        """Remove the content that was not used for longest."""
        files = [each for each in self.path.iterdir() if not each.name.startswith("new-")]
        if len(files) > self.kept:
            for file in sorted(files, key=lambda each: each.stat().st_mtime)[: len(files) - self.kept]:
                file.unlink(missing_ok=True)
