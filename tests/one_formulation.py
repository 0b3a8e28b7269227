"""One formulation, and pages without the theory's quantities, where tests are about something else.

``auto`` forms the equations by up to three formulations and takes the cheapest: for a user once, in a room of tests
hundreds of times. That elements, loops and events are right by each of them is tested by tests that name them.

An FMU's page shows the graph of its mechanism and Kane's quantities: to form and print them takes as long as the
validation of a small FMU. Tests of pages have them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

ROOMS = (
    "tests/conformance/",
    "tests/end_to_end/",
    "tests/unit/analysis/",
    "tests/unit/audit/",
    "tests/unit/cli/",
    "tests/unit/compiler/derivatives/",
    "tests/unit/compiler/events/",
    "tests/unit/compiler/numerics/",
    "tests/unit/fmu/",
    "tests/unit/mechanics/mechanism/",
    "tests/unit/model/",
    "tests/unit/robots/",
    "tests/unit/systems/",
    "tests/unit/targets/",
    "tests/unit/test_public_interface.py",
    "tests/unit/validation/",
    "tests/unit/visualization/",
)
"""Of tests that are about something else."""

CHOOSING = ("tests/end_to_end/test_models.py",)
"""Files in these rooms whose FMUs are by what ``auto`` takes, as those of users."""

COMPARED = ("tests/unit/cli/test_cli.py",)
"""Files in these rooms that compare whole FMUs with those of other processes."""


def is_about_something_else(nodeid: str) -> bool:
    """Whether a module's tests are served by one formulation."""
    return nodeid.startswith(ROOMS) and not nodeid.startswith(CHOOSING)


@contextmanager
def one_formulation() -> Iterator[None]:
    """``auto`` forms the composite recursion alone, wherever it applies: it takes the least time."""
    from mb2fmu.mechanics.formulations.recursive_formulation import check_applicability_composite
    from mb2fmu.pipeline.derivation import model_derivation

    list_all = model_derivation._list_candidate_equations

    def list_one(mechanism, requested):
        is_open = requested == "auto" and check_applicability_composite(mechanism).is_applicable
        return list_all(mechanism, "recursive-composite" if is_open else requested)

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(model_derivation, "_list_candidate_equations", list_one)
        yield


@contextmanager
def pages_without_theory() -> Iterator[None]:
    """Pages of FMUs show neither graph nor Kane's quantities."""
    from mb2fmu.pipeline.run_and_report import report_pages
    from mb2fmu.report.pages.report_page_records import TheorySectionContent

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(report_pages, "form_graph_and_theory_content", lambda *_, **__: TheorySectionContent())
        yield
