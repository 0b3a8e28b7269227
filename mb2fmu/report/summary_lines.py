"""Lines of a command's summary, and how they are broken and limited for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rich.text import Text

SummaryState = Literal["good", "bad", "doubt", "plain"]
LABEL_WIDTH = 11
_STYLES: Mapping[SummaryState, str] = {"good": "green", "bad": "bold red", "doubt": "yellow", "plain": ""}
_SYMBOLS: Mapping[SummaryState, str] = {"good": "✓", "bad": "✗", "doubt": "!", "plain": ""}
_PLAIN_SYMBOLS: Mapping[SummaryState, str] = {"good": "ok", "bad": "FAILED", "doubt": "!", "plain": ""}


@dataclass(frozen=True, slots=True)
class VerdictSummaryLine:
    """One line of a summary.

    Attributes:
        label: The question in a word; empty: the line belongs to the one before.
        text: The answer.
        state: Whether the answer is good.
        is_path: The text ends with a path: it is never broken, so that it can be copied.
    """

    label: str
    text: str
    state: SummaryState = "plain"
    is_path: bool = False


def wrap_summary_lines(
    headline: VerdictSummaryLine, lines: Iterable[VerdictSummaryLine], width: int, encoding: str | None
) -> Iterator[Text]:
    """Yield the lines of a summary, broken to a width between words.

    Args:
        headline: The verdict; its label is not shown.
        lines: One for each question.
        width: Characters of a line.
        encoding: Of the stream; symbols that it lacks become words.
    """
    symbols = _choose_verdict_symbols(encoding)
    yield from _break_line(f"{symbols[headline.state]} {headline.text}".strip(), "", width, _STYLES[headline.state])
    for line in lines:
        mark = f"{symbols[line.state]} " if symbols[line.state] else ""
        prefix = f"  {line.label:{LABEL_WIDTH}}"
        wide = 10**6 if line.is_path else width
        yield from _break_line(f"{mark}{line.text}", prefix, wide, _STYLES[line.state] if line.state == "bad" else "")


def _choose_verdict_symbols(encoding: str | None) -> Mapping[SummaryState, str]:
    """Return the symbols of verdicts that an encoding has."""
    try:
        "".join(_SYMBOLS.values()).encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return _PLAIN_SYMBOLS
    return _SYMBOLS


def _break_line(text: str, prefix: str, width: int, style: str) -> Iterator[Text]:
    """Yield a line and its continuations, which are indented as far as the text."""
    hanging = " " * (len(prefix) or 2)
    broken = textwrap.wrap(
        text, max(width, 40), initial_indent=prefix, subsequent_indent=hanging, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
    for part in broken or [prefix]:
        yield Text(part, style=style)


def truncate_summary(lines: Sequence[Text], most: int) -> list[Text]:
    """Return at most ``most`` lines: the last one (where the report is) always, and how many are left out."""
    if len(lines) <= most:
        return list(lines)
    return [*lines[: most - 2], Text(f"  ... {len(lines) - most + 1} more lines with -v"), lines[-1]]
