"""Instants of events as the auditor sees them: told too late while an indicator finds them, and without an end."""

from __future__ import annotations

from pathlib import Path

import lines
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from wrong_units import changed_unit, packed

from mb2fmu import Model, derive, pipeline
from mb2fmu.audit.auditing import audit
from mb2fmu.audit.behaviour.binding import Events
from mb2fmu.audit.behaviour.simulation import Jump
from mb2fmu.audit.behaviour.step_trials import _endless

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
    return [each.message for each in audit(path, only=[RULE], others=False).findings if each.rule == RULE]


@pytest.mark.parametrize("fmi", ["2", "3"])
def test_time_events_told_too_late_are_named_though_an_indicator_finds_them(fmi, build, tmp_path):
    """In importers that watch indicators such a unit moves as it should: its proof passes."""
    assert not named(packed(build[fmi], tmp_path / "right.fmu"))
    late = named(changed_unit(build[fmi], tmp_path / "late.fmu", {"events.c": NEXT}))
    assert len(late) == 1
    assert "announced for t = 0.043, and comes at t = 0.013" in late[0]


class _Steps:
    step = 0.01


def struck(times: list[float], why: str = "state") -> list[Jump]:
    said = Events(needed=False, terminate=False, nominals_changed=False, values_changed=False, next_time=None)
    return [Jump(each, [0.0, -1.0], [0.0, 1.0], said, why, ([], []), ([], []), float("inf")) for each in times]


def test_events_that_have_no_end_are_told_from_those_that_have():
    bounces = [sum(0.3 * 0.5**k for k in range(n)) for n in range(1, 16)]
    since = _endless(_Steps, struck(bounces))
    assert 0.59 < since < 0.6
    assert _endless(_Steps, struck(bounces[:9])) == float("inf")  # it comes to rest at steps of 1 ms
    assert _endless(_Steps, struck([k * 1e-5 for k in range(40)])) == float("inf")  # a fast sampler
    assert _endless(_Steps, struck(bounces, why="input")) == float("inf")
