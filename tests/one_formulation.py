"""One formulation, where tests are about something else.

``auto`` forms the equations by up to three formulations and takes the cheapest: for a user once, in a room of tests
hundreds of times. That elements, loops and events are right by each of them is tested by tests that name them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

ROOMS = (
    "tests/unit/analysis/",
    "tests/unit/compiler/derivatives/",
    "tests/unit/compiler/events/",
    "tests/unit/compiler/numerics/",
    "tests/unit/mechanics/mechanism/",
    "tests/unit/model/elements/",
    "tests/unit/systems/",
    "tests/unit/targets/",
    "tests/unit/validation/",
    "tests/unit/visualization/",
)
"""Of tests that are about something else."""


@contextmanager
def one_formulation() -> Iterator[None]:
    """``auto`` forms the composite recursion alone, wherever it applies: it takes the least time."""
    from mb2fmu.mechanics import formulations
    from mb2fmu.pipeline.derivation import model_derivation

    list_all = model_derivation._list_candidate_equations

    def list_one(mechanism, requested):
        answers = formulations.check_applicability_of_all_formulations(mechanism)
        named = "recursive-composite"
        return list_all(mechanism, named if requested == "auto" and answers[named].is_applicable else requested)

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(model_derivation, "_list_candidate_equations", list_one)
        yield
