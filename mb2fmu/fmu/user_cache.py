"""Find the user's cache folder, which keeps what takes long to make and can be used again.

The folder is ``$MB2FMU_CACHE_DIR`` or the system's usual place (``~/.cache/mb2fmu`` on Linux). It may be deleted at any
time. Below it are ``binaries/`` (one file each, named by the hash of all that it was made from), ``objects/`` (the same
for compiled translation units), ``begun/`` (empty contents: what such binaries begin with), ``zig/`` (zig's own: C
libraries, built once for each platform) and ``templates/`` (compiled templates of pages and sources).
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import platformdirs

from mb2fmu.errors import Fault, ToolError

CACHE_FOLDER_VARIABLE = "MB2FMU_CACHE_DIR"


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


def find_cache_subfolder(name: str) -> Path | None:
    """Return a folder below the cache folder, made if it is missing; None where it cannot be made."""
    with suppress(ToolError, OSError):
        folder = cache_folder() / name
        folder.mkdir(exist_ok=True)
        return folder
    return None


def _unusable_cache_error(path: Path, what: str) -> ToolError:
    """Return the error of a cache folder that cannot be used, with its remedy."""
    remedy = f"name another folder by the environment variable {CACHE_FOLDER_VARIABLE}"
    return ToolError("there is no folder to compile in:", [Fault(what, str(path), remedy)])
