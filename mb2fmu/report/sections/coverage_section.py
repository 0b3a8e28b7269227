"""Checks beside the default experiment, as records of the page: perturbed experiment, calls, coverage."""

from __future__ import annotations

import math
from collections.abc import Iterable

from mb2fmu.report.number_format import format_declared_number, format_exact_number, format_short_number
from mb2fmu.report.pages.report_page_records import (
    ApiCheckRow,
    CoverageSectionContent,
    ExercisedQuantityRow,
    ReportFact,
    RoundedDisplayNumber,
    VariableErrorRow,
    VerdictColour,
)
from mb2fmu.report.sections.validation_sections import form_variable_error_row
from mb2fmu.validation.validation_result import (
    INTERFACE_TYPE_NAMES,
    ApiCallFamilyResult,
    ExercisedQuantityResult,
    InvariantResult,
    PerturbedExperimentResult,
    ValidationResult,
    VariableResult,
)

_VERDICT_COLOURS: dict[str, VerdictColour] = {"passed": "good", "failed": "bad", "unjudged": "neutral"}
_MAX_WORST_ROWS = 12  # of the perturbed experiment's quantities, the worst; the rest is in the JSON


def form_coverage_section(result: ValidationResult) -> CoverageSectionContent | None:
    """Return all such checks; None where only the default experiment was requested."""
    moved = result.perturbed_experiment
    if moved is None:
        return None
    return CoverageSectionContent(
        text=moved.text + ".",
        moved=_list_worst_rows(moved),
        signals=tuple(moved.reference.experiment.signals.items()) if moved.reference else (),
        calls=tuple(map(_form_api_check_row, result.api_checks)),
        coverage_rows=_list_coverage_rows(result),
        coverage_text=describe_exercised_quantities(result),
    )


def describe_uncovered_cases(result: ValidationResult) -> tuple[ReportFact, ...]:
    """Say what the experiments do not cover, so that nobody overrates a pass."""
    moved = (
        ""
        if result.perturbed_experiment is None
        else " and in the moved one, whose values are in the table of influence"
    )
    stop = format_short_number(float(result.reference.trajectory.time[-1]), 9)
    parts = [f"Judged in the default experiment up to {stop} s{moved}. Not judged: other values, longer times"]
    if result.events_at_defaults_only:
        names = ", ".join(result.events_at_defaults_only)
        parts.append(
            f"events with other values than the defaults, of which the perturbed experiment has none ({names})"
        )
    if result.untested_switches:
        parts.append(f"what lies beyond switches that never changed ({'; '.join(result.untested_switches)})")
    if result.not_exercised:
        parts.append("what is listed as not exercised")
    parts += result.not_tried
    return (ReportFact("Covered", ", ".join(parts)),)


def describe_exercised_quantities(result: ValidationResult) -> str:
    """Say how many parameters, start values and inputs were exercised, and which were not; empty if none was to be."""
    if not result.exercised_quantities:
        return ""
    total, lacking = len(result.exercised_quantities), result.not_exercised
    if not lacking:
        return f"{total} of {total} parameters, start values and inputs exercised"
    names = ", ".join(item.name for item in lacking[:5]) + (f" and {len(lacking) - 5} more" if len(lacking) > 5 else "")
    return f"{total - len(lacking)} of {total} parameters, start values and inputs exercised; not exercised: {names}"


def describe_default_experiment_only(result: ValidationResult) -> str:
    """Say that nothing but the default experiment was validated."""
    total = len(result.exercised_quantities)
    return f"validated at the default experiment only, none of {total} parameters, start values and inputs exercised"


def _list_coverage_rows(result: ValidationResult) -> tuple[ExercisedQuantityRow, ...]:
    """Return one row per parameter, start value and input: the not exercised first, then the weakest."""
    if result.perturbed_experiment is None:
        return ()
    rows = []
    ordered = sorted(
        zip(result.exercised_quantities, result.perturbed_experiment.perturbations, strict=True),
        key=lambda pair: (pair[0].is_exercised, pair[0].ratio),
    )
    for item, move in ordered:
        verdict = "exercised" if item.is_exercised else "not exercised"
        rows.append(
            ExercisedQuantityRow(
                name=item.name,
                role=item.role,
                unit=move.unit,
                default=RoundedDisplayNumber(format_short_number(move.default), format_exact_number(move.default)),
                moved=RoundedDisplayNumber(format_short_number(move.moved), format_exact_number(move.moved)),
                tried=_format_range(item),
                ratio=RoundedDisplayNumber(format_short_number(item.ratio), format_exact_number(item.ratio)),
                most=item.most,
                verdict=verdict,
                state="good" if item.is_exercised else "bad",
                remark=item.reason,
            )
        )
    return tuple(rows)


def _format_range(item: ExercisedQuantityResult) -> str:
    """Return the range over which a quantity was tried; with a word where its declared range is no wider."""
    if item.low is None or item.high is None:
        return ""
    text = f"{format_short_number(item.low)} … {format_short_number(item.high)}"
    return f"{text} (all)" if item.is_whole_range else text


def describe_coverage_failures(result: ValidationResult) -> Iterable[str]:
    """Yield what failed, for headlines."""
    if result.perturbed_experiment is not None:
        yield from result.perturbed_experiment.refusals
        for kind in () if result.perturbed_experiment.refusals else result.perturbed_experiment.kinds:
            if not kind.passed:
                how = "not within its bounds" if kind.has_failures else "could not be judged"
                yield f"perturbed experiment, {INTERFACE_TYPE_NAMES[kind.simulation.kind]}: {how}"
    for call in result.api_checks:
        if call.verdict == "failed":
            yield f"{call.name}, {INTERFACE_TYPE_NAMES[call.kind]}: wrong"


def _list_worst_rows(moved: PerturbedExperimentResult) -> dict[str, tuple[VariableErrorRow, ...]]:
    """Return interface type → the worst quantities."""
    kinds = {}
    for kind in moved.kinds:
        quantities: list[VariableResult | InvariantResult] = [*kind.variables, *kind.invariants]
        ordered = sorted(quantities, key=lambda j: -j.ratio if not math.isnan(j.ratio) else -math.inf)
        kinds[INTERFACE_TYPE_NAMES[kind.simulation.kind]] = tuple(
            map(form_variable_error_row, ordered[:_MAX_WORST_ROWS])
        )
    return kinds


def _form_api_check_row(call: ApiCallFamilyResult) -> ApiCheckRow:
    """Return the row of one family of calls."""
    return ApiCheckRow(
        name=call.name,
        kind=INTERFACE_TYPE_NAMES[call.kind],
        formula=call.formula,
        ratio=RoundedDisplayNumber(format_short_number(call.ratio), format_exact_number(call.ratio)),
        count=format_declared_number(float(call.count)),
        where=call.where,
        verdict="not judged" if call.verdict == "unjudged" else call.verdict,
        state=_VERDICT_COLOURS[call.verdict],
        remark=call.reason,
    )
