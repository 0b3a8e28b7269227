"""Compiles what tests need, or takes what the same compiler made of the same files before, from the user's cache."""

from __future__ import annotations

import functools
import importlib.metadata
import io
import subprocess
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from mb2fmu.fmu.toolchain.compile_cache import CompiledFileCache, hash_texts_and_files
from mb2fmu.fmu.user_cache import cache_folder

INCLUDES = ("-isystem", "-I")
WARNINGS = "<warnings>"
KEPT = CompiledFileCache(cache_folder() / "tests" / "compiled", kept=1_000)


def compile_files(folder: Path, command: Sequence[str], *, time_limit: float = 300.0) -> str:
    """Run a compiler that reads files of a folder and writes others into it; return its warnings.

    It may read files elsewhere, too, and what stands beside these: ``command`` names them, or their folders behind
    ``-I``, by absolute paths.
    """
    given = contents_of(folder)
    # A program may be compiled in any folder; the folder's name stands in some commands.
    words = [version_of(command), *(word.replace(str(folder), ".") for word in command)]
    key = hash_texts_and_files(b"tests 2", words, given | contents_elsewhere(folder, command))
    kept = KEPT.get(key)
    if kept is None:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=time_limit, check=False, errors="replace"
        )
        assert done.returncode == 0, done.stderr
        made = {name: content for name, content in contents_of(folder).items() if given.get(name) != content}
        assert made, "it wrote nothing into the folder, and only that is kept"
        KEPT.put(key, packed({WARNINGS: done.stderr.encode(), **made}))
        return done.stderr
    made = unpacked(kept)
    warnings = made.pop(WARNINGS).decode()
    for name, content in made.items():
        # As compilers do it: a library of that name may be loaded, and must not change under whoever runs it.
        (folder / name).unlink(missing_ok=True)
        (folder / name).write_bytes(content)
        (folder / name).chmod(0o755)
    return warnings


def contents_of(folder: Path) -> dict[str, bytes]:
    """All files below a folder."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def contents_elsewhere(folder: Path, command: Sequence[str]) -> dict[str, bytes]:
    """Files outside of a folder that a command may read."""
    found: dict[str, bytes] = {}
    for word in command[1:]:
        place = Path(functools.reduce(str.removeprefix, INCLUDES, word))
        if place.is_absolute() and not place.is_relative_to(folder) and place.exists():
            room = place if place.is_dir() else place.parent
            found |= {f"{room}/{name}": content for name, content in sources_in(room).items()}
    return found


@functools.cache
def sources_in(room: Path) -> Mapping[str, bytes]:
    """What stands in a folder that no test changes."""
    return {path.name: path.read_bytes() for path in sorted(room.iterdir()) if path.suffix in {".c", ".h", ".inc"}}


def version_of(command: Sequence[str]) -> str:
    """Of the compiler that a command calls."""
    return importlib.metadata.version("ziglang") if "ziglang" in command[:4] else reported_version(command[0])


@functools.cache
def reported_version(program: str) -> str:
    """What a compiler says of itself."""
    return subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60, check=True).stdout


def packed(files: Mapping[str, bytes]) -> bytes:
    """One content of several files."""
    with io.BytesIO() as whole:
        with zipfile.ZipFile(whole, "w") as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        return whole.getvalue()


def unpacked(content: bytes) -> dict[str, bytes]:
    """The files of :func:`packed`."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}
