"""Independence of the validation as independent checks of a short ladder; nothing is judged again."""

from __future__ import annotations

from mb2fmu.report.number_format import exact, short
from mb2fmu.report.pages.report_content import LadderRow, Number, State
from mb2fmu.validation.independent_checks import Rung
from mb2fmu.validation.result import ValidationResult

_STATES: dict[str, State] = {"passed": "good", "failed": "bad", "unjudged": "neutral"}
_WORDS = {"passed": "passed", "failed": "failed", "unjudged": "not done"}


def ladder_rows(result: ValidationResult) -> tuple[LadderRow, ...]:
    """Return one row per independent check, the most independent first."""
    return tuple(map(_row, result.ladder))


def _row(check: Rung) -> LadderRow:
    """Format one independent check: points, the worst ratio and its verdict."""
    done = check.verdict != "unjudged"
    return LadderRow(
        name=check.name,
        how=check.how,
        points=str(check.points) if done else "",
        ratio=Number(short(check.ratio), exact(check.ratio)) if done else None,
        worst=check.worst,
        verdict=_WORDS[check.verdict],
        state=_STATES[check.verdict],
        remark=check.reason,
    )
