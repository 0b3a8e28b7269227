"""The report of one validated FMU."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from functools import cache, cached_property

from mb2fmu.fmu.interface.fmu_interface import FmuInterface
from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion
from mb2fmu.model.declarations.declared_content_and_experiment import DeclaredModelContent
from mb2fmu.report.equation_display.equation_html import MAX_FOLDED_CHARACTERS, EquationHtmlWriter
from mb2fmu.report.figures.supplied_model_picture import embed_supplied_model_picture
from mb2fmu.report.number_format import format_short_number
from mb2fmu.report.pages.page_rendering import render_page_template
from mb2fmu.report.pages.report_page_records import (
    ReportFigureGroup,
    ReportPageContent,
    ReportProvenance,
    TheorySectionContent,
)
from mb2fmu.report.sections import coverage_section, report_event_tables, validation_sections
from mb2fmu.report.sections import model_and_fmu_facts as description
from mb2fmu.report.sections.independent_checks_section import list_independent_check_rows
from mb2fmu.report.sections.measured_data_section import describe_failed_measured_tables, list_measurement_rows
from mb2fmu.validation.validation_result import ValidationResult
from mb2fmu.visualization import Drawing, PlotSignals, render_animation_element, render_print_picture
from mb2fmu.visualization.default_plots import choose_default_plots

_ANIMATION_OVERHEAD_BYTES = 9_000  # bytes of the style, heading and licence that come with an animation
MIN_ANIMATION_CHARACTERS = 330_000
"""Characters kept for an animation within a page that has a limit: the viewer, and room for its data."""

_CHART_DETAIL_LEVELS = (
    (382, None),
    (190, None),
    (96, None),
    (96, 80),
    (96, 40),
    (96, 20),
    (64, 8),
    (64, 0),
)
"""(pixel columns of a chart, most charts): where a page with all charts in full does not fit, the first that does."""


class ValidationFigures:
    """Figures of a validation, each drawn once: the page in an FMU and the one beside it both show them.

    Args:
        definition: The checked model.
        equations: As for :func:`render_validation_page`.
        result: Of the validation.
        motion: What is to be animated; None: nothing.
    """

    def __init__(
        self,
        definition: DeclaredModelContent,
        equations: EquationsOfMotion,
        result: ValidationResult,
        motion: tuple[Drawing, PlotSignals] | None,
    ) -> None:
        self.motion, self._result = motion, result
        self._units = {record.name: record.unit for record in definition.inputs}
        self._texts = description.list_variable_descriptions(definition, equations)
        self.equations = EquationHtmlWriter(equations)

    @cached_property
    def groups(self) -> tuple[ReportFigureGroup, ...]:
        """Charts of all variables, in full."""
        return self.draw_groups(None, None)

    def draw_groups(self, columns: int | None, most: int | None) -> tuple[ReportFigureGroup, ...]:
        """Return charts of so many pixel columns, at most so many."""
        return validation_sections.draw_trajectory_groups(
            self._result, self._texts, self._units, columns=columns, most=most
        )

    @cached_property
    def balances(self) -> ReportFigureGroup:
        """Charts of balances."""
        return validation_sections.draw_invariant_charts(self._result)

    @cached_property
    def print_picture(self) -> bytes:
        """The picture in place of the animation on paper."""
        assert self.motion is not None
        return render_print_picture(self.motion[0])


def render_validation_page(
    definition: DeclaredModelContent,
    equations: EquationsOfMotion,
    interface: FmuInterface | None,
    result: ValidationResult,
    provenance: ReportProvenance | None = None,
    *,
    motion: tuple[Drawing, PlotSignals] | None = None,
    live: str = "",
    limit: int | None = None,
    theory: TheorySectionContent | None = None,
    figures: ValidationFigures | None = None,
) -> bytes:
    """Return one self-contained HTML page: verdict, model, motion, errors, balances, checkers, equations.

    Args:
        definition: The checked model.
        equations: The FMU's; the reference's if the FMU is not ours.
        interface: Of the FMU; None if the FMU is not ours: then the model's own variables are listed.
        result: Of the validation. Its timings are not printed; hand them in with ``provenance`` if they are wanted.
        provenance: Hashes, versions, how to repeat; with timings or a date in it the bytes differ from run to run.
        motion: What is to be animated; None: nothing.
        live: The FMU as the page runs it, see ``animation.live``; empty: it does not.
        theory: Graph and quantities of the mechanism; None: none.
        limit: Most bytes; charts are thinned, then those of the best variables and frames of the motion left out.
        figures: Of the same model, result and motion, if another page shows them too.

    Returns:
        UTF-8. Equal arguments give equal bytes.
    """
    figures = figures or ValidationFigures(definition, equations, result, motion)
    given, theory = provenance or ReportProvenance(), theory or TheorySectionContent()
    page = replace(
        _form_report_page(definition, equations, interface, result, given, figures, folded=limit is None), theory=theory
    )
    left = None
    if limit is not None:
        page, size = _fit_charts(page, figures, result, limit - (MIN_ANIMATION_CHARACTERS + len(live) if motion else 0))
        left = limit - size - len(live) - _ANIMATION_OVERHEAD_BYTES
    if motion is not None:
        part = render_animation_element(
            *motion, shown=choose_default_plots(motion[1]), limit=left, autoplay=True, live=live,
            still=figures.print_picture,
        )  # fmt: skip
        page = replace(page, animation=part)
    return render_page_template(page)


def _fit_charts(
    page: ReportPageContent, figures: ValidationFigures, result: ValidationResult, limit: int
) -> tuple[ReportPageContent, int]:
    """Return the page with charts of fewer columns, and fewer of them, until it fits, and its bytes."""

    @cache
    def draw(level: int) -> tuple[ReportPageContent, int]:
        columns, most = _CHART_DETAIL_LEVELS[level]
        thinned = replace(
            page,
            errors=validation_sections.list_variable_error_rows(result, most),
            groups=figures.draw_groups(columns, most),
        )
        return thinned, len(render_page_template(thinned))

    size = len(render_page_template(page))
    if size <= limit:
        return page, size
    # Pages become smaller from level to level. Most of the time goes into the first levels, which have all charts: a
    # bisection draws few of them.
    last = len(_CHART_DETAIL_LEVELS) - 1
    return draw(bisect_left(range(last), -limit, key=lambda level: -draw(level)[1]))


def _form_report_page(
    definition: DeclaredModelContent,
    equations: EquationsOfMotion,
    interface: FmuInterface | None,
    result: ValidationResult,
    given: ReportProvenance,
    figures: ValidationFigures,
    *,
    folded: bool,
) -> ReportPageContent:
    """Collect what the template shows: facts, tables and figures of one model and its verdict."""
    drawing = embed_supplied_model_picture(definition.diagram, f"What the coordinates of {definition.name} mean")
    counts = (
        report_event_tables.describe_event_verdict_counts(result),
        coverage_section.describe_exercised_quantities(result),
    )
    return ReportPageContent(
        title=definition.name,
        description=definition.description,
        verdict=validation_sections.form_verdict_text(
            result,
            [
                *report_event_tables.describe_event_failures(result),
                *coverage_section.describe_coverage_failures(result),
                *describe_failed_measured_tables(result.tables),
            ],
            "; ".join(filter(None, counts)),
        ),
        facts=(
            *description.list_fmu_facts(interface, given.platforms),
            *description.list_model_facts(definition, equations, interface),
            *coverage_section.describe_uncovered_cases(result),
        ),
        picture=drawing,
        drawing="" if drawing else definition.diagram.strip("\n"),
        errors=validation_sections.list_variable_error_rows(result, None),
        errors_text=validation_sections.describe_error_scale(result),
        others=validation_sections.list_other_interface_type_rows(result) | list_measurement_rows(result.tables),
        groups=figures.groups,
        invariants=validation_sections.list_invariant_rows(result),
        balances=figures.balances,
        reference=validation_sections.describe_reference_balances(result),
        checks=validation_sections.list_external_checker_rows(result),
        equations=figures.equations.form_blocks(MAX_FOLDED_CHARACTERS if folded else 0),
        equations_text=description.describe_equations(equations, interface),
        variables=description.list_variable_rows(interface, definition)
        if interface
        else description.list_declared_variable_rows(definition),
        validation_facts=validation_sections.list_provenance_facts(result),
        timings={activity: f"{format_short_number(seconds)} s" for activity, seconds in given.timings.items()},
        provenance=given,
        exercised=coverage_section.form_coverage_section(result),
        independent_checks=list_independent_check_rows(result),
        events=report_event_tables.form_report_event_tables(result),
    )
