"""The report of one validated unit, and the description of one that nobody has run."""

from __future__ import annotations

from mb2fmu.equations.motion import EquationsOfMotion
from mb2fmu.interface.description import FmuInterface
from mb2fmu.model.definition import ModelDefinition
from mb2fmu.report import description, results
from mb2fmu.report.content import FigureGroup, Page, Provenance
from mb2fmu.report.equations import equation_blocks
from mb2fmu.report.numbers import short
from mb2fmu.report.page import print_page
from mb2fmu.report.picture import picture
from mb2fmu.validation.result import ValidationResult


def render(
    definition: ModelDefinition,
    equations: EquationsOfMotion,
    interface: FmuInterface | None,
    result: ValidationResult,
    provenance: Provenance | None = None,
) -> bytes:
    """One self-contained HTML page: verdict, model, errors, trajectories, balances, checkers, equations, variables.

    Args:
        definition: The checked model.
        equations: The unit's; the reference's if the unit is not ours.
        interface: Of the unit; None if the unit is not ours: then the model's own variables are listed.
        result: Of the validation. Its timings are not printed; hand them in with ``provenance`` if they are wanted.
        provenance: Hashes, versions, how to repeat; with timings or a date in it the bytes differ from run to run.

    Returns:
        UTF-8. Equal arguments give equal bytes.
    """
    given = provenance or Provenance()
    drawing = picture(definition.diagram, f"What the coordinates of {definition.name} mean")
    page = Page(
        title=definition.name,
        description=definition.description,
        verdict=results.verdict(result),
        facts=description.model_facts(definition, equations, interface),
        picture=drawing,
        drawing="" if drawing else definition.diagram.strip("\n"),
        errors=results.error_rows(result),
        errors_text=results.errors_text(result),
        others=results.other_kinds(result),
        groups=results.trajectory_groups(
            result, description.texts(definition, equations), {record.name: record.unit for record in definition.inputs}
        ),
        invariants=results.invariant_rows(result),
        balances=results.balances(result),
        reference=results.reference_text(result),
        checks=results.check_rows(result),
        equations=equation_blocks(equations),
        equations_text=description.equations_text(equations, interface),
        variables=description.variable_rows(interface, definition)
        if interface
        else description.declared_rows(definition),
        facts_of_proof=results.provenance_facts(result),
        timings={activity: f"{short(seconds)} s" for activity, seconds in given.timings.items()},
        provenance=given,
    )
    return print_page(page)


def describe(
    definition: ModelDefinition,
    equations: EquationsOfMotion,
    interface: FmuInterface,
    provenance: Provenance | None = None,
    *,
    licences: str = "",
) -> bytes:
    """The same page of a unit that nobody has run: model, equations, variables; no verdict, no trajectories.

    Args:
        definition: The checked model.
        equations: The unit's.
        interface: Of the unit.
        provenance: Hashes, versions, how to repeat.
        licences: Where they stand, seen from the page; empty: nowhere.

    Returns:
        UTF-8. Equal arguments give equal bytes.
    """
    drawing = picture(definition.diagram, f"What the coordinates of {definition.name} mean")
    page = Page(
        title=definition.name,
        description=definition.description,
        verdict=None,
        facts=description.model_facts(definition, equations, interface),
        picture=drawing,
        drawing="" if drawing else definition.diagram.strip("\n"),
        errors=(),
        errors_text="",
        others={},
        groups=(),
        invariants=(),
        balances=FigureGroup("", "", ()),
        reference="",
        checks=(),
        equations=equation_blocks(equations),
        equations_text=description.equations_text(equations, interface),
        variables=description.variable_rows(interface, definition),
        facts_of_proof={"Token of the unit": interface.token},
        timings={},
        provenance=provenance or Provenance(),
        licences=licences,
    )
    return print_page(page)
