"""Shorter validations, for tests about what becomes of a verdict: an FMU's motion is judged, and nothing else.

What it declares, and how it answers when it is disturbed, is judged in the tests of whole validations.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from mb2fmu import validation

PRELUDE = """
import mb2fmu.validation

def validate_motion(*arguments, **options):
    from mb2fmu.validation.fmu_validation import validate
    return validate(*arguments, **{"conformance": False, "perturb": False} | options)

mb2fmu.validation.validate = validate_motion
"""
"""The same as the beginning of a script for a process of its own; it imports nothing that the process may not need."""


def shorten_validations(monkeypatch: pytest.MonkeyPatch, *, perturb: bool = False) -> None:
    """Judges nothing but the motion, to the end of the test; with ``exercise`` the disturbed motion too."""
    monkeypatch.setattr(validation, "validate", partial(validation.validate, conformance=False, perturb=perturb))


@contextmanager
def shorter_validations() -> Iterator[None]:
    """The same for fixtures that outlive a test."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        shorten_validations(monkeypatch)
        yield
