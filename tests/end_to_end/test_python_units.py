"""Units of Python code, built with pythonfmu, the whole way to the verdict: by day a few kinds, by night all models."""

from __future__ import annotations

from pathlib import Path

import pytest
from large_models import LARGE
from representatives import KINDS, marked

from mb2fmu import pipeline

MODELS = sorted(path for path in (Path(__file__).parents[2] / "models").glob("*.py") if path.stem not in LARGE)


@pytest.mark.parametrize("path", marked(MODELS, repeating={path.stem for path in MODELS} - set(KINDS)))
def test_the_python_unit_moves_as_the_mechanism(path: Path, tmp_path: Path) -> None:
    finished = pipeline.run(path, tmp_path, backend="python")
    result = finished.validated.result
    failed = [variable.name for variable in result.variables if variable.verdict != "passed"]
    assert failed == []
    assert finished.passed
