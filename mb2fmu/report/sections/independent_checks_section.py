"""Independent checks of the validation, one row each; nothing is judged again."""

from __future__ import annotations

from mb2fmu.report.number_format import format_exact_number, format_short_number
from mb2fmu.report.pages.report_page_records import IndependentCheckRow, RoundedDisplayNumber, VerdictColour
from mb2fmu.validation.independent_checks import IndependentCheck
from mb2fmu.validation.validation_result import ValidationResult

_VERDICT_COLOURS: dict[str, VerdictColour] = {"passed": "good", "failed": "bad", "unjudged": "neutral"}
_VERDICT_WORDS = {"passed": "passed", "failed": "failed", "unjudged": "not done"}


def list_independent_check_rows(result: ValidationResult) -> tuple[IndependentCheckRow, ...]:
    """Return one row per independent check, the most independent first."""
    return tuple(map(_form_check_row, result.independent_checks))


def _form_check_row(check: IndependentCheck) -> IndependentCheckRow:
    """Format one independent check: points, the worst ratio and its verdict."""
    done = check.verdict != "unjudged"
    return IndependentCheckRow(
        name=check.name,
        how=check.how,
        points=str(check.points) if done else "",
        ratio=RoundedDisplayNumber(format_short_number(check.ratio), format_exact_number(check.ratio))
        if done
        else None,
        worst=check.worst,
        verdict=_VERDICT_WORDS[check.verdict],
        state=_VERDICT_COLOURS[check.verdict],
        remark=check.reason,
    )
