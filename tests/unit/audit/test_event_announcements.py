"""Instants of events as the auditor sees them: told too late while an indicator finds them."""

from __future__ import annotations

from pathlib import Path

import lines
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from wrong_units import changed_unit, packed

from mb2fmu import Model, derive, pipeline
from mb2fmu.audit.audit_run import audit

NEXT = ("    return next < least ? least : next;", "    next += 0.03;\n    return next < least ? least : next;")
RULE = "exchange.next_event"


def sampled() -> Model:
    """A mass that is held by a sampled spring, and pushed by a stop where it comes to it."""
    held = me.dynamicsymbols("held")
    model, _, _, _ = lines.masses("Held", [(1.0, 0.0)], lambda x: [held - sm.Max(0, x[0] - sm.Rational(1, 2))])
    model.discrete(held, 0.0)
    model.every(0.07, {held: -4 * me.dynamicsymbols("x1")}, offset=0.013, name="sample")
    model.experiment(stop=1.0, step=0.05, tolerance=1e-6)
    return model


@pytest.fixture(scope="module")
def build():
    return {fmi: pipeline.build(derive(sampled()), fmi=fmi) for fmi in ("2", "3")}


def named(path: Path) -> list[str]:
    """Messages of the rule."""
    return [each.message for each in audit(path, only=[RULE], run_checkers=False).findings if each.rule == RULE]


@pytest.mark.parametrize("fmi", ["2", "3"])
def test_time_events_told_too_late_are_named_though_an_indicator_finds_them(fmi, build, tmp_path):
    """In importers that watch indicators such an FMU moves as it should: its validation passes."""
    assert not named(packed(build[fmi], tmp_path / "right.fmu"))
    late = named(changed_unit(build[fmi], tmp_path / "late.fmu", {"events.c": NEXT}))
    assert len(late) == 1
    assert "announced for t = 0.043, and comes at t = 0.013" in late[0]
