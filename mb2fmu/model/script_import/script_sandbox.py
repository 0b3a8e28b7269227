"""The surroundings in which a script runs: a scratch folder, no window, no keyboard, its own folder's modules."""

from __future__ import annotations

import builtins
import contextlib
import io
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class KeyboardInputRequested(Exception):  # noqa: N818 - distinguished by its name in tracebacks
    """The script requests input from the keyboard."""


@contextmanager
def enter_script_sandbox(script: Path, scratch: Path) -> Iterator[None]:
    """Run the script's code in the scratch folder, and restore everything afterwards.

    Relative paths are looked for beside the script, too; whatever is written lands in the scratch folder. What the
    script prints is dropped.
    """
    before = {name: os.environ.get(name) for name in ("MPLBACKEND", "DISPLAY", "PYGLET_HEADLESS")}
    path, arguments, switch, limit = list(sys.path), list(sys.argv), sys.dont_write_bytecode, sys.getrecursionlimit()
    modules, folder = set(sys.modules), Path.cwd()
    os.environ.update(MPLBACKEND="Agg", PYGLET_HEADLESS="1")
    os.environ.pop("DISPLAY", None)
    further = [script.parent.parent] if (script.parent / "__init__.py").is_file() else []
    sys.path[:0] = [str(folder) for folder in (script.parent, *further)]
    sys.argv, sys.dont_write_bytecode = [str(script)], True
    os.chdir(scratch)
    try:
        with _redirected_files(script.parent, scratch), _quiet():
            yield
    finally:
        os.chdir(folder)
        sys.path[:], sys.argv, sys.dont_write_bytecode = path, arguments, switch
        sys.setrecursionlimit(limit)
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        for name in set(sys.modules) - modules:
            home = getattr(sys.modules[name], "__file__", None)
            if home is not None and Path(home).resolve().is_relative_to(script.parent):
                del sys.modules[name]


@contextmanager
def _quiet() -> Iterator[None]:
    """Drop what is printed, and warnings: they are the script's business."""
    nowhere = io.StringIO()
    with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def _redirected_files(home: Path, scratch: Path) -> Iterator[None]:
    """Let ``open`` read beside the script, and write into the scratch folder only."""
    opened, made = io.open, os.mkdir

    def place(path: Any) -> Any:
        """Return where a file may be written: in the scratch folder, or in the system's for temporary files."""
        target = Path(os.fsdecode(path))
        allowed = (scratch, Path(tempfile.gettempdir()).resolve(), Path(os.devnull).parent)
        inside = any(target.resolve().is_relative_to(folder) for folder in allowed)
        return path if inside and not target.resolve().is_relative_to(home) else scratch / target.name

    def redirected_open(file: Any, mode: str = "r", *arguments: Any, **keywords: Any) -> Any:
        if not isinstance(file, str | bytes | os.PathLike):
            return opened(file, mode, *arguments, **keywords)
        if any(letter in mode for letter in "wax+"):
            return opened(place(file), mode, *arguments, **keywords)
        if not Path(os.fsdecode(file)).exists():
            beside = home / os.fsdecode(file)
            file = beside if beside.exists() else file
        return opened(file, mode, *arguments, **keywords)

    def redirected_mkdir(path: Any, *arguments: Any, **keywords: Any) -> None:
        made(place(path), *arguments, **keywords)

    builtins.open = io.open = redirected_open
    os.mkdir = redirected_mkdir
    try:
        yield
    finally:
        builtins.open = io.open = opened
        os.mkdir = made


def make_script_builtins(noting_zip: Any) -> dict[str, Any]:
    """Return builtins for the script's own code: nothing is asked, ``zip`` is noted, notebooks' names are there."""

    def refuse_input(prompt: object = "", /) -> str:
        raise KeyboardInputRequested(f"it asks for input: {prompt}" if prompt else "it asks for input")

    def show(*_: object, **__: object) -> None: ...

    further = {"zip": noting_zip, "input": refuse_input, "display": show, "get_ipython": lambda: None}
    return {**vars(builtins), **further}
