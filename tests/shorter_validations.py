"""Shorter validations, for tests about what becomes of a verdict: an FMU's motion is judged, and nothing else.

What it declares, and how it answers when it is disturbed, is judged in the tests of whole validations.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mb2fmu import pipeline, validation
from mb2fmu.pipeline.derivation.stage_stopwatch import StageStopwatch
from mb2fmu.pipeline.run_and_report.validation_run import validate_fmu

PRELUDE = """
from functools import partial
import mb2fmu.validation
mb2fmu.validation.validate = partial(mb2fmu.validation.validate, conformance=False, perturb=False)
"""
"""The same as the beginning of a script for a process of its own."""


def shorten_validations(monkeypatch: pytest.MonkeyPatch, *, perturb: bool = False) -> None:
    """Judges nothing but the motion, to the end of the test; with ``exercise`` the disturbed motion too."""
    monkeypatch.setattr(validation, "validate", partial(validation.validate, conformance=False, perturb=perturb))


@contextmanager
def shorter_validations() -> Iterator[None]:
    """The same for fixtures that outlive a test."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        shorten_validations(monkeypatch)
        yield


def run_without_pages(model: Any, folder: Path) -> tuple[pipeline.ExportResult, pipeline.ValidationOutcome]:
    """As ``pipeline.run`` does, the model is read and derived once; nothing is written of the verdict."""
    exported = pipeline.export(model, folder)
    made = exported.build.derivation
    return exported, validate_fmu(
        exported.path, made.checked, made.mechanism, made.equations.method, StageStopwatch(None)
    )
