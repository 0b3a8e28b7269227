"""The report of one validated FMU."""

from __future__ import annotations

from dataclasses import replace

from mb2fmu.fmu.interface.fmu_interface import FmuInterface
from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion
from mb2fmu.model.declarations.model_declarations import Declarations
from mb2fmu.report.equation_display.equation_html import MAX_FOLDED_CHARACTERS, form_equation_blocks
from mb2fmu.report.figures.supplied_model_picture import embed_supplied_model_picture
from mb2fmu.report.number_format import format_short_number
from mb2fmu.report.pages.page_template import render_page_template
from mb2fmu.report.pages.report_page_records import ReportPageContent, ReportProvenance, TheoryContent
from mb2fmu.report.sections import coverage_section, event_tables, validation_sections
from mb2fmu.report.sections import model_and_fmu_facts as description
from mb2fmu.report.sections.independent_checks_section import list_independent_check_rows
from mb2fmu.report.sections.measured_data_section import list_measurement_failures, list_measurement_rows
from mb2fmu.validation.validation_result import ValidationResult
from mb2fmu.visualization import Drawing, PlotSignals, render_animation_element
from mb2fmu.visualization.default_plots import choose_default_plots

_ANIMATION_OVERHEAD_BYTES = 9_000  # bytes of the style, heading and licence that come with an animation
MIN_ANIMATION_CHARACTERS = 330_000
"""Characters kept for an animation within a page that has a limit: the viewer, and room for its data."""

_CHART_DETAIL_LEVELS = (
    (None, None),
    (382, None),
    (190, None),
    (96, None),
    (96, 80),
    (96, 40),
    (96, 20),
    (64, 8),
    (64, 0),
)
"""(pixel columns of a chart, most charts), tried in this order until a page fits."""


def render_validation_page(
    definition: Declarations,
    equations: EquationsOfMotion,
    interface: FmuInterface | None,
    result: ValidationResult,
    provenance: ReportProvenance | None = None,
    *,
    motion: tuple[Drawing, PlotSignals] | None = None,
    live: str = "",
    limit: int | None = None,
    theory: TheoryContent | None = None,
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

    Returns:
        UTF-8. Equal arguments give equal bytes.
    """
    room = MIN_ANIMATION_CHARACTERS + len(live) if motion else 0
    given = provenance or ReportProvenance()
    theory = theory or TheoryContent()
    page = replace(
        _form_report_page(definition, equations, interface, result, given, folded=limit is None), theory=theory
    )
    content = render_page_template(page)
    for columns, most in _CHART_DETAIL_LEVELS[1:]:
        if limit is None or len(content) + room <= limit:
            break
        page = _reduce_chart_detail(page, definition, equations, result, columns, most)
        content = render_page_template(page)
    if motion is None:
        return content
    drawing, signals = motion
    left = None if limit is None else limit - len(content) - len(live) - _ANIMATION_OVERHEAD_BYTES
    shown = choose_default_plots(signals)
    part = render_animation_element(drawing, signals, shown=shown, limit=left, autoplay=True, live=live)
    return render_page_template(replace(page, animation=part))


def _form_report_page(
    definition: Declarations,
    equations: EquationsOfMotion,
    interface: FmuInterface | None,
    result: ValidationResult,
    given: ReportProvenance,
    *,
    folded: bool,
) -> ReportPageContent:
    """Collect what the template shows: facts, tables and figures of one model and its verdict."""
    drawing = embed_supplied_model_picture(definition.diagram, f"What the coordinates of {definition.name} mean")
    units = {record.name: record.unit for record in definition.inputs}
    texts = description.list_variable_descriptions(definition, equations)
    counts = event_tables.describe_event_verdict_counts(result), coverage_section.describe_coverage(result)
    return ReportPageContent(
        title=definition.name,
        description=definition.description,
        verdict=validation_sections.form_verdict_text(
            result,
            [
                *event_tables.list_event_failures(result),
                *coverage_section.list_exercise_failures(result),
                *list_measurement_failures(result.tables),
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
        errors=validation_sections.list_error_rows(result, None),
        errors_text=validation_sections.describe_error_scale(result),
        others=validation_sections.list_other_interface_type_rows(result) | list_measurement_rows(result.tables),
        groups=validation_sections.draw_trajectory_groups(result, texts, units, columns=None, most=None),
        invariants=validation_sections.list_invariant_rows(result),
        balances=validation_sections.draw_invariant_charts(result),
        reference=validation_sections.describe_reference_accuracy(result),
        checks=validation_sections.list_checker_rows(result),
        equations=form_equation_blocks(equations, MAX_FOLDED_CHARACTERS if folded else 0),
        equations_text=description.describe_equations(equations, interface),
        variables=description.list_variable_rows(interface, definition)
        if interface
        else description.list_declared_variable_rows(definition),
        validation_facts=validation_sections.list_provenance_facts(result),
        timings={activity: f"{format_short_number(seconds)} s" for activity, seconds in given.timings.items()},
        provenance=given,
        exercised=coverage_section.form_coverage_section(result),
        independent_checks=list_independent_check_rows(result),
        events=event_tables.form_report_event_tables(result),
    )


def _reduce_chart_detail(
    page: ReportPageContent,
    definition: Declarations,
    equations: EquationsOfMotion,
    result: ValidationResult,
    columns: int | None,
    most: int | None,
) -> ReportPageContent:
    """Return the page with charts of fewer columns, and fewer of them; nothing else is made anew."""
    units = {record.name: record.unit for record in definition.inputs}
    texts = description.list_variable_descriptions(definition, equations)
    return replace(
        page,
        errors=validation_sections.list_error_rows(result, most),
        groups=validation_sections.draw_trajectory_groups(result, texts, units, columns=columns, most=most),
    )
