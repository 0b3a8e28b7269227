"""Report: the validation as a page that an engineer can read and sign.

Input: ``Declarations``, ``EquationsOfMotion``, ``FmuInterface``, ``ValidationResult``. Output: the bytes of one
self-contained HTML page (:func:`render_validation_page`; :func:`render_description_page` of an FMU that
nobody has run), or a picture of one result for a document (:func:`draw_validation_figure`).

Promises: the page loads nothing and runs nothing; every text of the model is escaped; every number in a table carries
its exact value; what a long signal shows at its extremes is drawn; the same input gives the same bytes as long as no
timings and no date are handed in.

Must not: judge (the verdict and every bound come with the result), simulate, evaluate equations, or touch the disk.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mb2fmu.report.figures.validation_figure import draw_validation_figure
    from mb2fmu.report.pages.description_page import render_description_page
    from mb2fmu.report.pages.report_content import ReportProvenance
    from mb2fmu.report.pages.report_identity import ReportClaim, read_report_claim
    from mb2fmu.report.pages.validation_page import render_validation_page

__all__ = [
    "ReportClaim",
    "ReportProvenance",
    "draw_validation_figure",
    "read_report_claim",
    "render_description_page",
    "render_validation_page",
]

_HOMES = {
    "ReportClaim": "pages.report_identity",
    "read_report_claim": "pages.report_identity",
    "ReportProvenance": "pages.report_content",
    "render_description_page": "pages.description_page",
    "draw_validation_figure": "figures.validation_figure",
}


def __getattr__(name: str) -> object:
    """Import a public name on first use: the auditor's output needs none of them, nor SymPy."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES.get(name, 'pages.validation_page')}"), name)
    globals()[name] = value
    return value
