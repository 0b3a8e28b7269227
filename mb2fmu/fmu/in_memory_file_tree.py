"""InMemoryFileTree: a set of files in memory, path → bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class InMemoryFileTree:
    """Files by their relative POSIX path.

    Args:
        files: Path → content. Paths are relative, normalized, use ``/`` and never climb with ``..``.

    Raises:
        ValueError: If a path breaks that law.
    """

    files: Mapping[str, bytes]

    def __post_init__(self) -> None:
        for path in self.files:
            pure = PurePosixPath(path)
            if not path or pure.is_absolute() or ".." in pure.parts or str(pure) != path or "\\" in path:
                raise ValueError(f"not a normalized relative POSIX path: {path!r}")
        object.__setattr__(self, "files", MappingProxyType(dict(sorted(self.files.items()))))

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __getitem__(self, path: str) -> bytes:
        return self.files[path]

    def __len__(self) -> int:
        return len(self.files)

    def move_under(self, folder: str) -> InMemoryFileTree:
        """Return the files moved into ``folder``."""
        return InMemoryFileTree({f"{folder}/{path}": content for path, content in self.files.items()})

    def joined(self, other: InMemoryFileTree) -> InMemoryFileTree:
        """Return the union of both trees.

        Raises:
            ValueError: If a path stands in both with different contents.
        """
        clash = [path for path in other if path in self.files and self.files[path] != other[path]]
        if clash:
            raise ValueError(f"the same path with two contents: {', '.join(clash)}")
        return InMemoryFileTree({**self.files, **other.files})
