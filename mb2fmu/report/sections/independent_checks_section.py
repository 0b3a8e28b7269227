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


def _row(rung: Rung) -> LadderRow:
    """Format one independent check: points, the worst ratio and its verdict."""
    done = rung.verdict != "unjudged"
    return LadderRow(
        name=rung.name,
        how=rung.how,
        points=str(rung.points) if done else "",
        ratio=Number(short(rung.ratio), exact(rung.ratio)) if done else None,
        worst=rung.worst,
        verdict=_WORDS[rung.verdict],
        state=_STATES[rung.verdict],
        remark=rung.reason,
    )
