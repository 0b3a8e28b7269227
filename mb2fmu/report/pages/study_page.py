"""The summary of a study as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from mb2fmu.report.pages.page_rendering import render_html_document


@dataclass(frozen=True, slots=True)
class StudyCaseRow:
    """A case shown in the page.

    Attributes:
        number: Of the case.
        cells: Values as text, by the columns of its table.
        command: That replays it.
        message: Why it failed; empty if it did not.
    """

    number: int
    cells: tuple[str, ...]
    command: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class StudyPageContent:
    """Content of the page.

    Attributes:
        title: The model's name.
        summary_sentence: One sentence.
        cases: How many.
        failed: How many of them.
        left: How many have not been run.
        pictures: Heading → SVG, what it shows in words.
        ranges: Of each result: name, unit, smallest, 5 %, median, 95 %, largest, as text.
        indices: Of each result and quantity: their names, Sobol' index alone and its interval, the same together.
        case_table_heads: Of the tables of cases.
        worst: Heading → cases.
        failures: The first cases that failed.
        notes: What must be known.
        facts: Provenance.
    """

    title: str
    summary_sentence: str
    cases: int
    failed: int
    left: int
    pictures: Mapping[str, tuple[Markup, str]]
    ranges: Sequence[tuple[str, ...]]
    indices: Sequence[tuple[str, ...]]
    case_table_heads: Sequence[str]
    worst: Mapping[str, Sequence[StudyCaseRow]]
    failures: Sequence[StudyCaseRow]
    notes: Sequence[str]
    facts: Mapping[str, str]


def render_study_page(page: StudyPageContent) -> bytes:
    """Render the page of a study."""
    return render_html_document("study.html.jinja", page=page)
