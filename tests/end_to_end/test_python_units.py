"""FMUs of Python code, built with pythonfmu, the whole way to the verdict: by day a few kinds, by night all models."""

from __future__ import annotations

from pathlib import Path

import pytest
from large_models import LARGE
from representatives import KINDS, marked
from shorter_validations import shorten_validations

from mb2fmu import Mb2FmuError, derive, pipeline
from mb2fmu.model import load
from mb2fmu.pipeline.derivation.event_requirements import needs_event_handling

FOLDER = Path(__file__).parents[2] / "models"
MODELS = sorted(path for path in FOLDER.glob("*.py") if path.stem not in LARGE)


NIGHTLY = {"double_pendulum", "muscle_arm", "rolling_disc"}
"""Their lines are printed as those of four_bar, which has a torque and loops: curves are expressions, too."""


@pytest.mark.parametrize("path", marked((path for path in MODELS if path.stem in KINDS), repeating=NIGHTLY))
def test_the_python_fmu_moves_as_the_mechanism(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shorten_validations(monkeypatch)
    assert_passed(pipeline.validate(pipeline.export(path, tmp_path, backend="python"), path))


@pytest.mark.repeats  # by day what one declares is judged in unit/audit and conformance/test_pythonfmu
@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_the_python_fmu_is_proven(path: Path, tmp_path: Path) -> None:
    """A model with events is refused instead: FMUs of Python have none."""
    if not needs_event_handling(derive(load(path))):
        prove(path, tmp_path)
        return
    with pytest.raises(Mb2FmuError, match="events or friction that sticks"):
        prove(path, tmp_path)
    assert not [*tmp_path.iterdir()]


def prove(path: Path, tmp_path: Path) -> None:
    assert_passed(pipeline.run(path, tmp_path, backend="python").validated)


def assert_passed(validated: pipeline.ValidationOutcome) -> None:
    failed = [variable.name for variable in validated.result.variables if variable.verdict != "passed"]
    assert failed == []
    assert validated.passed
