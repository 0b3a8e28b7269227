"""The summary of a verdict: its length, its width, its words, its symbols, and what a failure names first."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mb2fmu.audit.external_checkers import ExternalCheckerFinding
from mb2fmu.report.sections.validation_failure_diagnosis import (
    describe_likeliest_failure_cause,
    format_tolerance_share,
    list_validation_failures,
)
from mb2fmu.report.summary_lines import VerdictSummaryLine, truncate_summary, wrap_summary_lines
from mb2fmu.report.terminal_verdict_tables import format_verdict_line
from mb2fmu.report.verdict_summary import summarize_validation
from mb2fmu.validation import InterfaceTypeResult, PerturbedExperimentResult
from mb2fmu.validation.validation_result import (
    TOO_LITTLE_EFFECT,
    EventResult,
    ExercisedQuantityResult,
    ValidationResult,
)


def summary(result: ValidationResult, width: int = 100, encoding: str = "utf-8") -> list[str]:
    made = [VerdictSummaryLine("FMU", "out/Pendulum.fmu", is_path=True)]
    files = [
        VerdictSummaryLine("Report", "out/a long/path/that is never broken/" + 5 * "folder/" + "x.html", is_path=True)
    ]
    headline, lines = summarize_validation(result, made, files, 8.25)
    return [line.plain for line in wrap_summary_lines(headline, lines, width, encoding)]


def spoil(result: ValidationResult, k: int, ratio: float = 40.0, onset: int = 3) -> ValidationResult:
    """Return the result with variable ``k`` beyond its bound from sample ``onset`` on."""
    variable = result.variables[k]
    errors = np.array(variable.errors)
    errors[onset:] = ratio * variable.bounds[onset:]
    at = float(result.simulation.time[-1])
    bad = replace(variable, verdict="failed", ratio=ratio, errors=errors, at=at, error=float(errors[-1]))
    return replace(result, variables=tuple(bad if j == k else each for j, each in enumerate(result.variables)))


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_pass_is_short_and_as_wide_as_the_terminal(pendulum, width):
    lines = summary(pendulum().result, width)
    assert "passed: the FMU moves as the mechanism does (8.2 s)" in " ".join(" ".join(lines[:2]).split())
    assert len(lines) <= 14
    assert all(len(line) <= width for line in lines if "/" not in line)
    assert lines[-1].endswith("x.html")  # a path stays in one piece


def unexercised(result: ValidationResult) -> ValidationResult:
    """Return a right result for which no perturbed experiment could be made."""
    lacking = PerturbedExperimentResult(kinds=(), reference=None, perturbations=(), part=0.0, text="None: a reason")
    item = ExercisedQuantityResult(
        name="g", role="parameter", ratio=0.0, most="", reason="there is no perturbed experiment"
    )
    return replace(result, perturbed_experiment=lacking, exercised_quantities=(item,))


def test_nothing_exercised_is_no_pass(pendulum):
    """Seen: a robot was passed with 0 of 20 parameters exercised."""
    result = unexercised(pendulum().result)
    assert (result.verdict, result.passed, result.passed_at_defaults) == ("default experiment only", False, True)
    lines = summary(result)
    assert "validated at the default experiment only" in lines[0]
    assert "a reason" in lines[1]
    assert "--default-only" in lines[2]
    assert format_verdict_line(result).style == "bold yellow"
    assert "passed" not in format_verdict_line(result).plain
    accepted = replace(result, default_only=True)
    assert (accepted.verdict, accepted.passed) == ("default experiment only", True)
    assert "--default-only" not in "".join(summary(accepted))
    failed = replace(spoil(result, 0), default_only=True)
    assert (failed.verdict, failed.passed) == ("failed", False)


def test_what_cannot_be_judged_is_not_called_wrong(pendulum):
    result = pendulum(unjudged=("hinge.speed",)).result
    assert (result.verdict, result.passed, result.has_failures) == ("not judged", False, False)
    said = " ".join(" ".join(summary(result)).split()) + str(format_verdict_line(result))
    assert "hinge.speed" in said
    assert not re.search("failed|differ|not within", said)
    wrong = spoil(result, 0)
    assert wrong.verdict == "failed"
    assert "hinge.speed could not be judged" in format_verdict_line(wrong).plain


def test_what_has_too_little_effect_is_said_to_have_it(pendulum):
    result = pendulum().result
    quantities = tuple(
        ExercisedQuantityResult(name=name, role="parameter", ratio=ratio, most="", reason=reason)
        for name, ratio, reason in (("m", 50.0, ""), ("c", 0.5, TOO_LITTLE_EFFECT), ("k", 0.0, "nothing was moved"))
    )
    text = " ".join(" ".join(summary(replace(result, exercised_quantities=quantities))).split())
    assert "! 1 of 3 parameters" in text
    assert "; not exercised: k; too little effect to be seen: c" in text


def test_events_that_cannot_be_judged_are_no_tick(pendulum):
    result = pendulum().result
    judged = EventResult(
        name="impact", kind="CoSimulation", time=0.5, found=0.5, difference=0.0, allowed=1e-6, ratio=0.0, worst="q",
        jumps=(), grazing=False, verdict="passed", reason="",
    )  # fmt: skip
    unjudged = replace(judged, verdict="unjudged", difference=float("nan"))
    (line,) = (each for each in summary(replace(result, events=(judged, unjudged, unjudged))) if "Events" in each)
    assert "! 1 of 1 as in the reference" in line
    assert "2 of 3 cannot be judged" in line
    assert any("Events     ✓ 1 of 1" in each for each in summary(replace(result, events=(judged,))))


def test_symbols_have_plain_fallbacks(pendulum):
    lines = summary(pendulum().result, encoding="ascii")
    assert lines[0].startswith("ok ")
    for line in lines:
        line.encode("ascii")
    assert summary(pendulum().result)[0].startswith("✓ ")


def test_a_failure_begins_with_what_failed_first_by_how_much_and_when(pendulum):
    result = spoil(spoil(pendulum().result, 0, onset=9), 1, onset=3)
    first, second = result.variables[1], result.variables[0]
    lines = summary(result)
    assert len(lines) <= 30
    assert f"failed: {first.name}: off by" in lines[0]
    assert "40 times its tolerance" in lines[0]
    assert f"from {result.simulation.time[3]:.4g} s on" in " ".join(lines[:2])
    assert any(second.name in line for line in lines[1:8])
    assert any("Cause" in line for line in lines[1:4])


def test_many_failures_stay_within_thirty_lines(pendulum):
    result = pendulum().result
    findings = tuple(ExternalCheckerFinding("auditor", "error", f"rule {k}: " + 60 * "long words ") for k in range(40))
    headline, lines = summarize_validation(replace(result, conformance=findings, notes=("n " * 300,) * 9), [], [])
    rows = truncate_summary(list(wrap_summary_lines(headline, lines, 80, "utf-8")), 30)
    assert len(rows) <= 30
    assert "more" in "".join(row.plain for row in rows)


def perturbed(result: ValidationResult, kind: InterfaceTypeResult) -> ValidationResult:
    moved = PerturbedExperimentResult(
        kinds=(kind,), reference=result.reference, perturbations=(), part=1.0, text="moved"
    )
    return replace(result, perturbed_experiment=moved)


def other_kind(result: ValidationResult) -> InterfaceTypeResult:
    simulation = replace(result.simulation, kind="ModelExchange")
    return InterfaceTypeResult(variables=result.variables, invariants=result.invariants, simulation=simulation)


def test_each_pattern_of_failures_has_its_cause(pendulum):
    good = pendulum().result
    bad = spoil(good, 0)
    assert describe_likeliest_failure_cause(good) == ""
    assert "a default value inside the FMU differs" in describe_likeliest_failure_cause(perturbed(bad, good.kinds[0]))
    assert "ignores or misuses a parameter" in describe_likeliest_failure_cause(perturbed(good, bad.kinds[0]))
    in_one_kind = replace(bad, other_interface_types=(other_kind(good),))
    assert "only Co-Simulation uses" in describe_likeliest_failure_cause(in_one_kind)
    coarse = replace(perturbed(good, bad.kinds[0]), agreeing_tolerance=1e-7)
    assert "set model.experiment(tolerance=1e-7)" in describe_likeliest_failure_cause(coarse)
    assert "only Model Exchange uses" in describe_likeliest_failure_cause(
        replace(good, other_interface_types=(other_kind(bad),))
    )
    outputs = [k for k, each in enumerate(good.variables) if each.kind == "output"]
    assert "by another formula" in describe_likeliest_failure_cause(spoil(good, outputs[0]))
    assert "is not a finite number" in describe_likeliest_failure_cause(spoil(good, 0, ratio=float("inf")))
    rule_broken = ExternalCheckerFinding("auditor", "error", "a rule")  # then nothing may say that the motion agrees
    assert "other equations" in describe_likeliest_failure_cause(
        replace(bad, invariants=(), conformance=(rule_broken,))
    )
    wrong = ExternalCheckerFinding("model", "error", "g is declared to start at 9.8; the model has 9.81")
    assert "another version of the model: g" in describe_likeliest_failure_cause(replace(bad, conformance=(wrong,)))
    step = replace(good.invariants[0], name="one-step error of u", verdict="failed", value=float("nan"), at=0.5)
    for first, words in ((step, "a singular position"), (replace(step, value=1.0), "does not close between")):
        assert words in describe_likeliest_failure_cause(replace(good, invariants=(first,)))


def test_a_failed_result_always_names_a_failure(pendulum):
    for k in range(len(pendulum().result.variables)):
        result = spoil(pendulum().result, k)
        assert not result.passed
        assert list_validation_failures(result)[0].what == result.variables[k].name


@given(st.floats(min_value=0.0, allow_infinity=True) | st.just(float("nan")))
def test_shares_are_words(ratio: float) -> None:
    words = format_tolerance_share(ratio)
    assert ("times its tolerance" in words) == (1.0 < ratio < float("inf"))
    assert ("%" in words) == (ratio <= 1.0)


@pytest.mark.parametrize(
    ("ratio", "words"),
    [(0.00386, "0.39 % of its tolerance"), (3896.2, "3,896 times its tolerance"), (1.0, "100 % of its tolerance"),
     (1e-9, "less than 0.01 % of its tolerance"), (2.37, "2.4 times its tolerance")],
)  # fmt: skip
def test_shares_have_two_digits(ratio: float, words: str) -> None:
    assert format_tolerance_share(ratio) == words
