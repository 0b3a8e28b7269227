"""Folders of a trial (unpacked unit, work, home, temporary files), and changes in them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from mb2fmu.audit.behaviour.far_hosts import OWN

UNIT, WORK, HOME, TEMPORARY = "mb2fmu audit größe é", "work", "home", "tmp"
"""The unit lies in a folder as users have them: with spaces and umlauts."""

MOST = 3
"""Names of files in a message."""

_NAMES = {WORK: "its host's working folder", HOME: "the home folder", TEMPORARY: "the folder for temporary files"}


def folders(root: Path) -> None:
    """Make missing folders."""
    for name in _NAMES:
        (root / name).mkdir(exist_ok=True)


def environment(root: Path) -> dict[str, str]:
    """Return environment variables that make a process use these folders."""
    home, temporary = str(root / HOME), str(root / TEMPORARY)
    return {
        "HOME": home, "USERPROFILE": home, "XDG_CONFIG_HOME": f"{home}/.config", "XDG_CACHE_HOME": f"{home}/.cache",
        "TMPDIR": temporary, "TMP": temporary, "TEMP": temporary,
    }  # fmt: skip


class Watched:
    """The present files of folders.

    Args:
        root: Of the folders.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._before = self._look()

    def _look(self) -> Mapping[str, tuple[int, int]]:
        """Return size and time of change of every file, by path from the root; vanishing files are skipped."""
        found: dict[str, tuple[int, int]] = {}
        wanted = [str(each) for each in self._root.iterdir() if each.is_dir()] if self._root.exists() else []
        while wanted:
            folder = wanted.pop()
            try:
                entries = list(os.scandir(folder))
            except OSError:
                continue
            for entry in entries:
                try:
                    if entry.is_dir(follow_symlinks=False):
                        wanted.append(entry.path)
                    else:
                        seen = entry.stat(follow_symlinks=False)
                        found[entry.path[len(str(self._root)) + 1 :]] = seen.st_size, seen.st_mtime_ns
                except OSError:
                    continue
        return found

    def changes(self) -> Iterator[str]:
        """Yield new, changed and removed files, one message for each folder."""
        now = self._look()
        kept = now.keys() & self._before.keys()
        kinds = {
            "leaves files in": sorted(now.keys() - self._before.keys()),
            "removes files from": sorted(self._before.keys() - now.keys()),
            "changes files in": sorted(each for each in kept if now[each] != self._before[each]),
        }  # fmt: skip
        for verb, names in kinds.items():
            for folder in sorted({name.partition(os.sep)[0] for name in names}):
                if folder in {"locales", OWN}:
                    continue  # the auditor's own
                inner = [name[len(folder) + 1 :] for name in names if name.partition(os.sep)[0] == folder]
                more = f" and {len(inner) - MOST} more" if len(inner) > MOST else ""
                place = _NAMES.get(folder, "the folder that it was unpacked into")
                yield f"{verb} {place}: {', '.join(inner[:MOST])}{more}"
