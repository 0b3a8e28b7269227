"""What only round-off or the auditor's own integration changes is no finding."""

from __future__ import annotations

import os
from pathlib import Path

import hostile_fmus
import pytest

from mb2fmu import pipeline
from mb2fmu.audit import audit

MODELS = Path(__file__).parents[3] / "models"


@pytest.mark.parametrize(
    ("model", "rule"),
    [
        # Couplers that stay at 1e-18 rad: what moves them there is no effect of the mass.
        ("n_four_bar", "steps.exchange"),
        # Dampers of 4e4 N.s/m: the integrator's steps, which rounding shifts, show in an acceleration by 3e-4 of it.
        pytest.param("governor", "host.rounding", marks=pytest.mark.repeats),
    ],
)
def test_right_fmus_at_the_edge_of_round_off_raise_no_alarm(model: str, rule: str, tmp_path: Path) -> None:
    result = audit(pipeline.export(MODELS / f"{model}.py", tmp_path).path, only=[rule], run_checkers=False)
    assert [str(each) for each in result.findings] == []
    assert rule in result.judged


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity") or (os.cpu_count() or 1) < 2, reason="needs two processors")
def test_who_pins_its_host_is_named_by_a_pinned_host_too(tmp_path: Path) -> None:
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {0})
    try:
        result = audit(hostile_fmus.unit(93, tmp_path / "unit.fmu"), only=["host.restored"], run_checkers=False)
    finally:
        os.sched_setaffinity(0, allowed)
    assert ["the set of processors" in each.message for each in result.findings] == [True]
