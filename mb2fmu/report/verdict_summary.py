"""The verdict of a command in a few lines: one line for each question that a user has."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from mb2fmu.report.sections.validation_failure_diagnosis import (
    describe_likeliest_failure_cause,
    format_tolerance_share,
    list_validation_failures,
)
from mb2fmu.report.summary_lines import SummaryState, VerdictSummaryLine
from mb2fmu.validation.validation_result import TOO_LITTLE_EFFECT

if TYPE_CHECKING:
    from mb2fmu.validation.validation_result import ValidationResult

MAX_LISTED_FAILURES = 5
"""Failures that are shown; the report lists all."""


def summarize_validation(
    result: ValidationResult,
    made: Sequence[VerdictSummaryLine],
    files: Sequence[VerdictSummaryLine],
    seconds: float | None = None,
) -> tuple[VerdictSummaryLine, list[VerdictSummaryLine]]:
    """Return the headline and the lines of a validation.

    Args:
        result: The verdict.
        made: What was validated: the FMU.
        files: Places of what was written.
        seconds: Duration of the command in s.
    """
    took = f" ({seconds:.1f} s)" if seconds is not None else ""
    lines = [
        *made,
        *_describe_reference(result),
        *_describe_source(result),
        *_describe_energy(result),
        *_describe_events(result),
        *_describe_checkers(result),
        *_describe_tables(result),
        *_describe_notes(result),
        *_describe_exercise(result),  # the longest: where lines are left out, these are
        *files,
    ]
    if result.verdict == "passed":
        return VerdictSummaryLine(
            "", f"{result.model} passed: the FMU moves as the mechanism does{took}", "good"
        ), lines
    if result.verdict == "default experiment only":
        reason = result.perturbed_experiment.text if result.perturbed_experiment else ""
        remedy = [] if result.default_only else [VerdictSummaryLine("", "if that is enough: --default-only")]
        headline = VerdictSummaryLine("", f"{result.model} validated at the default experiment only{took}", "doubt")
        return headline, [VerdictSummaryLine("Why", reason, "doubt"), *remedy, *lines]
    failures = list_validation_failures(result)
    cause = describe_likeliest_failure_cause(result)
    first = failures[0]
    state: SummaryState = "bad" if result.has_failures else "doubt"
    reason = _shorten(first.text.removeprefix(f"{result.verdict}: "), 160)
    text = f"{result.model} {result.verdict}: {first.what}: {reason}{took}"
    headline = VerdictSummaryLine("", text, state)
    shown = [_shorten(f"{each.what}: {each.text}", 150) for each in failures[1:MAX_LISTED_FAILURES]]
    if len(failures) > MAX_LISTED_FAILURES:
        shown.append(f"{len(failures) - MAX_LISTED_FAILURES} more in the report and with -v")
    also = [VerdictSummaryLine("Also" if k == 0 else "", text) for k, text in enumerate(shown)]
    why = [VerdictSummaryLine("Cause", f"likely: {cause}")] if cause else []
    return headline, [*why, *also, *lines]


def _shorten(text: str, most: int) -> str:
    """Return a text of a limited length; the report has all of it."""
    text = " ".join(text.split())
    return text if len(text) <= most else textwrap.shorten(text, most, placeholder=" …")


def _describe_reference(result: ValidationResult) -> Iterator[VerdictSummaryLine]:
    """Say whether trajectories match the reference."""
    kinds = [kind for _, kind in result.judged_runs]
    variables = [variable for kind in kinds for variable in kind.variables]
    bad = [variable for variable in variables if variable.verdict == "failed"]
    unjudged = sum(variable.verdict == "unjudged" for variable in variables)
    runs = f"{len(kinds)} runs" if len(kinds) > 1 else "1 run"
    if bad:
        yield VerdictSummaryLine("Reference", f"{len(bad)} of {len(variables)} trajectories in {runs} differ", "bad")
    elif unjudged:
        yield VerdictSummaryLine(
            "Reference", f"{unjudged} of {len(variables)} trajectories in {runs} cannot be judged", "doubt"
        )
    else:
        worst = _find_worst(variables)
        text = f"{len(variables)} trajectories in {runs} match; worst {worst.name}: "
        yield VerdictSummaryLine("Reference", text + format_tolerance_share(worst.ratio), "good")
    stop = float(result.reference.trajectory.time[-1])
    early = [variable for variable in result.variables if variable.horizon < stop]
    if early:
        first = min(early, key=lambda variable: variable.horizon)
        text = f"{len(early)} of {len(result.variables)} trajectories are predictable only until t = "
        yield VerdictSummaryLine("", f"{text}{first.horizon:.3g} s; later only balances are judged", "doubt")


class _BoundedError(Protocol):
    """What has a name and an error over its bound."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def ratio(self) -> float:
        """Error over bound."""


_Item = TypeVar("_Item", bound=_BoundedError)


def _find_worst(items: Sequence[_Item]) -> _Item:
    """Return what is nearest to its tolerance, or furthest beyond."""
    return max(items, key=lambda item: -1.0 if math.isnan(item.ratio) else item.ratio)


def _describe_source(result: ValidationResult) -> Iterator[VerdictSummaryLine]:
    """Say whether the FMU agrees with the user's own objects, or with an independent import."""
    if result.independent_check_set is None:
        return
    checks = result.independent_check_set.all_checks
    failed = [check for check in checks if check.verdict == "failed"]
    done = [check for check in checks if check.verdict == "passed"]
    label = "Equations"
    if failed:
        yield VerdictSummaryLine(label, f"{len(failed)} of {len(checks)} checks differ: {failed[0].name}", "bad")
    elif done:
        worst = _find_worst(done)
        text = f"your own equations agree in {len(done)} check{'s' * (len(done) != 1)}; worst "
        yield VerdictSummaryLine(label, text + format_tolerance_share(worst.ratio), "good")
    else:
        yield VerdictSummaryLine(label, "your own equations could not be compared; the report says why", "doubt")


def _describe_energy(result: ValidationResult) -> Iterator[VerdictSummaryLine]:
    """Say whether energy and other invariants are kept."""
    kinds = [kind for _, kind in result.judged_runs]
    kept = [item for kind in kinds for item in kind.invariants if not item.name.startswith("one-step error")]
    if not kept:
        return
    bad = [item for item in kept if item.verdict != "passed"]
    names = list(dict.fromkeys(item.name for item in (bad or kept)))
    worst = _find_worst(bad or kept)
    label = "Energy" if any("energy" in name for name in names) else "Invariants"
    others = f" and {len(names) - 1} more" if len(names) > 1 else ""
    text = f"{names[0]}{others} {'not kept' if bad else 'kept'}; worst{f' {worst.name}:' * (len(names) > 1)} "
    yield VerdictSummaryLine(label, text + format_tolerance_share(worst.ratio), "bad" if bad else "good")


def _describe_events(result: ValidationResult) -> Iterator[VerdictSummaryLine]:
    """Say whether events agree."""
    events = result.all_events
    if not events:
        return
    judged_events = [event for event in events if event.verdict != "unjudged"]
    passed = sum(event.verdict == "passed" for event in judged_events)
    unjudged = len(events) - len(judged_events)
    left = f"; {unjudged} of {len(events)} cannot be judged" if unjudged else ""
    late = max((abs(e.difference) for e in judged_events if not math.isnan(e.difference)), default=0.0)
    text = f"{passed} of {len(judged_events)} as in the reference, at most {late:.2g} s apart{left}"
    yield VerdictSummaryLine("Events", text, "bad" if passed < len(judged_events) else "doubt" if unjudged else "good")


def _describe_exercise(result: ValidationResult) -> Iterator[VerdictSummaryLine]:
    """Say whether everything that a user can set was seen to act."""
    total, lacking = len(result.exercised_quantities), result.not_exercised
    if total:
        text = f"{total - len(lacking)} of {total} parameters, start values and inputs had an effect"
        faint = [item.name for item in lacking if item.reason == TOO_LITTLE_EFFECT]
        others = [item.name for item in lacking if item.reason != TOO_LITTLE_EFFECT]
        for what, names in (("not exercised", others), (TOO_LITTLE_EFFECT, faint)):
            more = f" and {len(names) - 4} more" if len(names) > 4 else ""
            text += f"; {what}: {', '.join(names[:4])}{more}" if names else ""
        yield VerdictSummaryLine("Exercised", text, "doubt" if lacking else "good")
        ranges = describe_validated_value_ranges(result, 3)
        if ranges:
            yield VerdictSummaryLine("", ranges)
    if result.not_tried:
        yield VerdictSummaryLine("Not tried", _shorten("; ".join(result.not_tried), 140))
    untested = (*result.events_at_defaults_only, *result.untested_switches)
    if untested:
        yield VerdictSummaryLine("", _shorten(f"not tried on both sides: {'; '.join(untested)}", 90), "doubt")


def describe_validated_value_ranges(result: ValidationResult, count: int | None = None) -> str:
    """Say over which ranges quantities were tried that have a wider declared one; empty if none has.

    Args:
        result: Of the validation.
        count: How many are named; None: all.
    """
    ranges = [
        f"{item.name} {item.low:.3g} … {item.high:.3g} {item.unit}".removesuffix(" 1")
        for item in result.exercised_quantities
        if item.low is not None and item.high is not None and not item.is_whole_range
    ]
    more = f" and {len(ranges) - len(ranges[:count])} more, see the report" if len(ranges) > len(ranges[:count]) else ""
    return f"tried within {', '.join(ranges[:count])}{more}" if ranges else ""


def _describe_checkers(result: ValidationResult) -> Iterator[VerdictSummaryLine]:
    """Say whether checkers of FMI agree, and whether API checks during the run do."""
    errors = [finding for finding in result.conformance if finding.severity == "error"]
    warnings = [finding for finding in result.conformance if finding.severity == "warning"]
    names = list(dict.fromkeys(f.checker.split(" ")[0] for f in result.conformance if f.checker != "model"))
    wrong = [call for call in result.api_checks if call.verdict == "failed"]
    judged_calls = [call for call in result.api_checks if call.verdict != "unjudged"]
    if names:
        counts = f"{len(errors)} error{'s' * (len(errors) != 1)}"
        counts += f", {len(warnings)} warning{'s' * (len(warnings) != 1)}" if warnings else ""
        text = f"{', '.join(names)}: {counts if errors or warnings else 'no errors'}"
        if judged_calls:
            text += f"; {len(judged_calls) - len(wrong)} of {len(judged_calls)} kinds of FMI calls agree"
        yield VerdictSummaryLine("Checkers", text, "bad" if errors or wrong else "doubt" if warnings else "good")


def _describe_tables(result: ValidationResult) -> Iterator[VerdictSummaryLine]:
    """Say whether the user's own numbers agree."""
    for table in result.tables:
        bad = [column for column in table.columns if column.verdict != "passed"]
        worst = max(table.columns, key=lambda column: column.ratio, default=None)
        share = f"; the worst, {worst.name}: {format_tolerance_share(worst.ratio)}" if worst else ""
        text = f"{Path(table.source).name} ({table.kind}): {len(table.columns) - len(bad)} of {len(table.columns)} "
        yield VerdictSummaryLine("Your data", f"{text}columns within tolerance{share}", "bad" if bad else "good")


def _describe_notes(result: ValidationResult) -> Iterator[VerdictSummaryLine]:
    """Give the first note; the others are in the report."""
    if result.notes:
        more = f" ({len(result.notes) - 1} more with -v)" if len(result.notes) > 1 else ""
        yield VerdictSummaryLine("Note", _shorten(result.notes[0], 140) + more)
