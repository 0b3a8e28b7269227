"""Report: the validation as a page that an engineer can read and sign.

Input: ``DeclaredModelContent``, ``EquationsOfMotion``, ``FmuInterface``, ``ValidationResult``. Output: the bytes of one
self-contained HTML page (:func:`render_validation_page`; :func:`render_fmu_description_page` of an FMU that
nobody has run), or a picture of one result for a document (:func:`draw_validation_figure`).

Promises: the page loads nothing and runs nothing; every text of the model is escaped; every number in a table carries
its exact value; what a long signal shows at its extremes is drawn; the same input gives the same bytes as long as no
timings and no date are given.

Must not: judge (the verdict and every bound come with the result), simulate, evaluate equations, or touch the disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mb2fmu.deferred_imports import import_on_first_use

if TYPE_CHECKING:
    from mb2fmu.report.figures.validation_figure import draw_validation_figure
    from mb2fmu.report.pages.report_page_records import (
        ReportProvenance,
        ReportVerdictAndFmuHashes,
        read_report_verdict_and_fmu_hashes,
    )
    from mb2fmu.report.pages.unvalidated_fmu_page import render_fmu_description_page
    from mb2fmu.report.pages.validation_page import ValidationFigures, render_validation_page

__all__ = [
    "ReportProvenance",
    "ReportVerdictAndFmuHashes",
    "ValidationFigures",
    "draw_validation_figure",
    "read_report_verdict_and_fmu_hashes",
    "render_fmu_description_page",
    "render_validation_page",
]

__getattr__ = import_on_first_use(
    __name__,
    {
        "figures.validation_figure": "draw_validation_figure",
        "pages.unvalidated_fmu_page": "render_fmu_description_page",
        "pages.report_page_records": "ReportVerdictAndFmuHashes ReportProvenance read_report_verdict_and_fmu_hashes",
        "pages.validation_page": "ValidationFigures render_validation_page",
    },
)
