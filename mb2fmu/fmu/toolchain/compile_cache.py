"""Cache of compiled libraries, in the user's cache folder.

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

_LIBRARY_CACHE_VERSION = b"mb2fmu library 1"
MAX_CACHED_BINARIES = 2_000
"""Binaries kept, about 160 MB of small FMUs; the ones not used for longest go first."""


def compute_cache_key(compiler_settings: Iterable[str], sources: Mapping[str, bytes]) -> str:
    """Return a hash of everything that a compiled library depends on, the name under which it is stored.

    Args:
        compiler_settings: The compiler's version and the options that it gets.
        sources: File name → content.
    """
    return hash_texts_and_files(
        _LIBRARY_CACHE_VERSION, compiler_settings, {path: sources[path] for path in sorted(sources)}
    )


def hash_texts_and_files(version: bytes, texts: Iterable[str], files: Mapping[str, bytes]) -> str:
    """Return a hash of texts, and of names and contents of files, in their order.

    Args:
        version: Of what the hash is a key of.
        texts: In order.
        files: Name → content.
    """
    digest = hashlib.sha256(version)
    parts = [text.encode() for text in texts]
    for path, content in files.items():
        parts += [path.encode(), content]
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class CompiledFileCache:
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
