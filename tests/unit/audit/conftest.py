"""Correct units, each made once."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
MODELS = Path(__file__).parents[3] / "models"
Members = dict[str, bytes]


def exported(model: str, folder: Path, **options: str) -> Members:
    from mb2fmu import pipeline

    path = pipeline.export(MODELS / f"{model}.py", folder, **options).path
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Members]:
    """Members of a correct unit's archive, by its name."""
    import ball

    made: dict[str, Members] = {}
    folder = tmp_path_factory.mktemp("correct")

    def members(name: str) -> Members:
        if name not in made:
            if name.startswith("ball"):
                made[name] = ball.contents(int(name[4]))
            elif name == "python":
                made[name] = exported("simple_pendulum", folder / name, backend="python")
            else:
                made[name] = exported("cart_pole", folder / name, fmi=name[-1], compiler=chosen_compiler())
        return dict(made[name])

    return members


def chosen_compiler() -> str:
    import shutil

    return "cc" if shutil.which("gcc") else "zig"
