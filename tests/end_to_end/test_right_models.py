"""A right model that fails is as bad as a wrong one that passes."""

from __future__ import annotations

from pathlib import Path

import pytest
from right_models import RIGHT

import mb2fmu


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_model_passes(name: str, tmp_path: Path) -> None:
    result = mb2fmu.run(RIGHT[name](), tmp_path).validated.result
    failed = [each.name for each in (*result.variables, *result.invariants) if each.verdict != "passed"]
    assert result.passed, (failed, result.notes)
