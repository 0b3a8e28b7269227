"""Instants of events as the auditor sees them: told too late while an indicator finds them."""

from __future__ import annotations

from pathlib import Path

import lines
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from representatives import by_night
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


def named(path: Path) -> list[str]:
    """Messages of the rule."""
    return [each.message for each in audit(path, only=[RULE], run_checkers=False).findings if each.rule == RULE]


@pytest.mark.parametrize("fmi", [*by_night("2"), "3"])
def test_time_events_announced_too_late_are_named_though_an_indicator_finds_them(fmi, tmp_path):
    """In importers that watch indicators such an FMU moves as it should: its validation passes."""
    build = pipeline.build(derive(sampled()), fmi=fmi)
    assert not named(packed(build, tmp_path / "right.fmu"))
    late = named(changed_unit(build, tmp_path / "late.fmu", {"events.c": NEXT}))
    assert len(late) == 1
    assert "announced for t = 0.043, and comes at t = 0.013" in late[0]


def samples_at_points() -> Model:
    """A mass that a sampled controller drives to a goal, an input: it samples at each communication point."""
    held, goal = me.dynamicsymbols("held goal")
    model, _, _, _ = lines.masses("Driven", [(1.0, 0.0)], lambda _: [held])
    model.input(goal, 1.0, "m", name="goal")
    model.discrete(held, 0.0)
    x, v = me.dynamicsymbols("x1 v1")
    model.every(0.05, {held: 4 * (goal - x) - 3 * v}, name="sample")
    model.experiment(stop=2.0, step=0.05, tolerance=1e-8)
    return model


SAMPLE_RULES = ["steps.exchange", "steps.early", "exchange.unannounced"]
RATES = "    const int number = model_rhs(t, x, work->r, problem->p, problem->w, dx);\n"
OFF = f"{RATES}    dx[1] *= 1.001;\n"
SILENT = ("    instance->at_event |= instance->event_mode && !*early && mb2fmu_is_due(instance, size);\n", "")


def test_samples_at_communication_points_take_the_inputs_of_then(tmp_path):
    """A right FMU was warned of: the auditor's Model Exchange sampled before inputs changed at that instant."""
    build = pipeline.build(derive(samples_at_points()), fmi="3")
    for edits, expected in (
        ({}, set()),
        ({"cosimulation.c": (RATES, OFF)}, {"steps.exchange"}),
        ({"communication.c": SILENT}, {"exchange.unannounced"}),
    ):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.fmu"
        fmu = changed_unit(build, path, edits) if edits else packed(build, path)
        found = audit(fmu, only=SAMPLE_RULES, run_checkers=False, jobs=1).findings
        assert {each.rule for each in found} == expected, found
