"""Events in page and terminal: the same counts in headline and last line, every wrong event named, strips and ticks."""

from __future__ import annotations

import re
from dataclasses import replace

import sympy as sm
import sympy.physics.mechanics as me
from event_models import belt, dropped, particle, reference_of
from lxml import etree

from mb2fmu.report import render_validation_page
from mb2fmu.report.figures.svg_chart import Chart, ModeTimelineStrip, draw_chart
from mb2fmu.report.sections.coverage_section import describe_uncovered_cases
from mb2fmu.report.sections.report_event_tables import form_mode_strips, list_event_times
from mb2fmu.report.terminal_verdict_tables import format_terminal_verdict_blocks, format_verdict_line
from mb2fmu.validation.validation_result import EventJump, EventResult, PerturbedExperimentResult


def event(verdict: str, reason: str = "", time: float = 0.5) -> EventResult:
    return EventResult(
        name="h <= 0", kind="CoSimulation", time=time, found=time + 1e-9, difference=1e-9, allowed=1e-7, ratio=0.01,
        worst="v", jumps=(EventJump("v", "m/s", -3.0, 2.1),), grazing=False, verdict=verdict, reason=reason,
    )  # fmt: skip


def test_page_and_terminal_count_the_same_events(pendulum):
    case = pendulum()
    events = (event("passed"), event("failed", "it is 1e-04 s late", 0.75), event("unjudged", "it grazes"))
    result = replace(case.result, events=events)
    assert not result.passed
    assert replace(case.result, events=events[::2]).passed
    text = render_validation_page(case.definition, case.equations, case.interface, result).decode()
    text = re.sub(r"<(meta|img)\b([^>]*)>", r"<\1\2/>", text.removeprefix("<!doctype html>\n"))
    root = etree.fromstring(text)
    headline = "".join(root.find(".//h2[@id='verdict']").itertext())
    assert "1 event wrong as Co-Simulation: h <= 0 at 0.75 s: it is 1e-04 s late" in headline
    assert "1 of 2 events as they should be, 1 not judged" in headline
    assert "it is 1e-04 s late" in format_verdict_line(result).plain
    right = format_verdict_line(replace(case.result, events=events[::2])).plain
    assert "1 of 1 events as they should be, 1 not judged" in right
    said = "\n".join(str(block) for block in format_terminal_verdict_blocks(result, 100))
    assert "Events, Co-Simulation: 1 of 2 as they should be" in said
    rows = ["".join(row.itertext()) for row in root.iterfind(".//section[@aria-labelledby='events']//tbody/tr")]
    assert len(rows) == 3
    assert "v −3 → 2.1 m/s" in rows[0]


def test_events_of_the_default_experiment_alone_are_named(pendulum):
    case = pendulum()
    kind = replace(case.result.kinds[0], events=(event("passed"), replace(event("unjudged"), name="g <= 0")))
    moved = PerturbedExperimentResult(
        kinds=(kind,), reference=case.result.reference, perturbations=(), part=1.0, text="moved"
    )
    both = replace(
        case.result, events=(event("passed"), replace(event("passed"), name="g <= 0")), perturbed_experiment=moved
    )
    assert both.events_at_defaults_only == ()
    assert replace(both, perturbed_experiment=None).events_at_defaults_only == ()
    result = replace(both, perturbed_experiment=replace(moved, kinds=(replace(kind, events=kind.events[:1]),)))
    assert result.events_at_defaults_only == ("g <= 0",)
    said = "\n".join(str(block) for block in format_terminal_verdict_blocks(result, 100))
    assert "not exercised: event g <= 0: it is not in the perturbed experiment" in said
    assert "of which the perturbed experiment has none (g <= 0)" in str(describe_uncovered_cases(result)[0])


def test_strips_say_what_is_held_and_ticks_when_it_changes():
    reference = reference_of(belt())
    figure = form_mode_strips(reference)
    root = etree.fromstring(figure.picture)
    spans = [(rect.get("class"), rect.find("title").text) for rect in root.iter("rect")]
    assert [style for style, _ in spans] == ["span none", "span down"]
    assert spans[0][1] == "held: 0 s to 0.5 s"
    (tick,) = list_event_times(reference)
    assert abs(tick - 0.5) < 1e-9


def strips_of(model) -> dict[str, list[str]]:
    """Return label → meanings of its spans with their ends."""
    root = etree.fromstring(form_mode_strips(reference_of(model)).picture)
    found: dict[str, list[str]] = {}
    for item in root.iter("text", "rect"):
        if item.get("class") == "label":
            found["".join(item.itertext())] = spans = []
        elif item.tag == "rect":
            spans.append(item.find("title").text)
    return found


def test_strips_say_what_is_true_and_not_how_it_is_asked():
    """The mode of t <= 0.3 is that of t > 0.3, the other way round; those of Max and Abs are no truths at all."""
    t = me.dynamicsymbols._t

    def force(*_: sm.Expr) -> sm.Expr:
        early, late = sm.Piecewise((1, t <= 0.3), (0, True)), sm.Piecewise((1, t >= 0.6), (0, True))
        return early + 2 * late + sm.Max(t, sm.Rational(1, 4)) + sm.Abs(t - sm.Rational(1, 2))

    model, *_ = particle(0.0, 0.0, force)
    found = strips_of(model)
    assert found["t <= 0.3"] == ["true: 0 s to 0.3 s", "false: 0.3 s to 0.8 s"]
    assert found["t >= 0.6"] == ["false: 0 s to 0.6 s", "true: 0.6 s to 0.8 s"]
    assert found["Max(1/4, t)"] == ["1/4: 0 s to 0.25 s", "t: 0.25 s to 0.8 s"]
    assert found["Abs(t - 1/2)"] == ["negative: 0 s to 0.5 s", "positive: 0.5 s to 0.8 s"]


def test_a_contact_has_one_strip_under_its_name():
    found = strips_of(dropped())
    assert list(found) == ["ground"]
    first, last = found["ground"]
    assert first.startswith("open: 0 s to ")
    assert last.startswith("rests: ")
    assert last.endswith(" to 1.2 s")


def test_long_labels_of_strips_are_cut_and_reported_whole():
    label = "a" * 100
    root = etree.fromstring(
        draw_chart(Chart("c", "t", (), strips=(ModeTimelineStrip(label, ((0.0, 1.0, "up", "true"),)),)))
    )
    (text,) = (each for each in root.iter("text") if each.get("class") == "label")
    assert text.find("title").text == label
    assert len(text.find("title").tail) <= 66


def test_spans_share_the_time_axis():
    strips = (ModeTimelineStrip("s", ((0.0, 1.0, "up", "true"), (1.0, 4.0, "none", "false"))),)
    root = etree.fromstring(draw_chart(Chart("c", "t", (), ticks=(1.0,), strips=strips)))
    first, second = root.iter("rect")
    assert float(second.get("width")) == 3 * float(first.get("width"))
    assert float(second.get("x")) == float(first.get("x")) + float(first.get("width"))
