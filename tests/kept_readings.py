"""Models of this project that are read once in a process, where tests are about what is made of them.

A user's command reads its model once. A room of tests comes back to the same few, and reading them took a fifth of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOMS = ("tests/unit/analysis/", "tests/unit/visualization/")
"""Where no test changes how a model is read."""
MODELS = Path(__file__).parents[1] / "models"


@contextmanager
def kept_readings(known: dict[Any, Any]) -> Iterator[None]:
    """``derive`` reads each shipped model once for each of its arguments; ``known`` holds what was read."""
    from mb2fmu.pipeline.derivation import model_derivation

    read_anew = model_derivation.load_model_and_mechanism

    def read(model, arguments, stage):
        if not isinstance(model, Path | str) or not Path(model).resolve().is_relative_to(MODELS):
            return read_anew(model, arguments, stage)
        key = (Path(model).resolve(), repr(arguments or {}))
        if key not in known:
            known[key] = read_anew(model, arguments, stage)
        return known[key]

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(model_derivation, "load_model_and_mechanism", read)
        yield
