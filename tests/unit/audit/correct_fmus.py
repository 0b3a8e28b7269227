"""Correct FMUs that mutants start from: members of their archives, each made once."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import ball

MODELS = Path(__file__).parents[3] / "models"
Members = dict[str, bytes]
Base = Callable[[str], Members]


def maker(folder: Path) -> Base:
    """Gives the members of a correct FMU by its name: ``ball2``, ``ball3``, ``cart2``, ``cart3``, ``python``."""
    made: dict[str, Members] = {}

    def members(name: str) -> Members:
        if name not in made:
            if name.startswith("ball"):
                made[name] = ball.contents(int(name[4]))
            elif name == "python":
                made[name] = exported("simple_pendulum", folder / name, backend="python")
            else:
                compiler = "cc" if shutil.which("gcc") else "zig"
                made[name] = exported("cart_pole", folder / name, fmi=name[-1], compiler=compiler)
        return dict(made[name])

    return members


def exported(model: str, folder: Path, **options: str) -> Members:
    from mb2fmu import pipeline

    path = pipeline.export(MODELS / f"{model}.py", folder, **options).path
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}
