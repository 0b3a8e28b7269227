"""The page of an FMU that was not run, without imports that only a validation needs."""

from __future__ import annotations

from markupsafe import Markup

from mb2fmu.fmu.interface.fmu_interface import FmuInterface
from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion
from mb2fmu.model.declarations.declared_content_and_experiment import DeclaredModelContent
from mb2fmu.report.equation_display.equation_html import form_equation_blocks
from mb2fmu.report.figures.supplied_model_picture import embed_supplied_model_picture
from mb2fmu.report.pages.page_rendering import render_page_template
from mb2fmu.report.pages.report_page_records import (
    ReportFigureGroup,
    ReportPageContent,
    ReportProvenance,
    TheorySectionContent,
)
from mb2fmu.report.sections import model_and_fmu_facts as description
from mb2fmu.visualization import EMBEDDED_PICTURE_TRIANGLES, Drawing, render_still_picture


def render_fmu_description_page(
    definition: DeclaredModelContent,
    equations: EquationsOfMotion,
    interface: FmuInterface,
    provenance: ReportProvenance | None = None,
    *,
    licences: str = "",
    start: Drawing | None = None,
    theory: TheorySectionContent | None = None,
) -> bytes:
    """Render the page of an FMU that was not run: model, equations and variables, no verdict.

    Args:
        definition: The checked model.
        equations: The FMU's.
        interface: Of the FMU.
        provenance: Hashes, versions, how to repeat.
        licences: Where they stand, seen from the page; empty: nowhere.
        start: The mechanism at its start, drawn where the model has no drawing of its own.
        theory: Graph and quantities of the mechanism; None: none.

    Returns:
        UTF-8. Equal arguments give equal bytes.
    """
    drawing = embed_supplied_model_picture(definition.diagram, f"What the coordinates of {definition.name} mean")
    page = ReportPageContent(
        title=definition.name,
        description=definition.description,
        verdict=None,
        facts=(
            *description.list_fmu_facts(interface, (provenance or ReportProvenance()).platforms),
            *description.list_model_facts(definition, equations, interface),
        ),
        picture=drawing,
        drawing="" if drawing else definition.diagram.strip("\n"),
        errors=(),
        errors_text="",
        others={},
        groups=(),
        invariants=(),
        balances=ReportFigureGroup("", "", ()),
        reference="",
        checks=(),
        equations=form_equation_blocks(equations, 0),
        equations_text=description.describe_equations(equations, interface),
        variables=description.list_variable_rows(interface, definition),
        validation_facts={"Token of the FMU": interface.token},
        timings={},
        provenance=provenance or ReportProvenance(),
        licences=licences,
        theory=theory or TheorySectionContent(),
        still=Markup()
        if drawing or start is None
        else Markup(render_still_picture(start, faces=EMBEDDED_PICTURE_TRIANGLES).decode()),  # noqa: S704 (escaped there)
    )
    return render_page_template(page)
