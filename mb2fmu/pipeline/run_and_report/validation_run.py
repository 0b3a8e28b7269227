"""Judge an FMU: against equations of another formulation, the model's own objects, or a user's tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mb2fmu.mechanics import formulations, mechanism
from mb2fmu.model.checks.unit_contradictions import describe_unit_contradictions
from mb2fmu.pipeline.derivation.model_derivation import AnyModel, load_model_and_mechanism
from mb2fmu.pipeline.derivation.pipeline_results import ExportResult, StageObserver, ValidationOutcome
from mb2fmu.pipeline.derivation.stage_stopwatch import StageStopwatch
from mb2fmu.pipeline.run_and_report import fmu_and_report_publication

if TYPE_CHECKING:
    from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion, Method
    from mb2fmu.mechanics.mechanism import Mechanism
    from mb2fmu.model import CheckedModel
    from mb2fmu.validation import MeasuredDataRunSettings, MeasuredTableComparison


@dataclass(frozen=True, slots=True)
class ReferenceEquations:
    """Equations that a reference is integrated from.

    Attributes:
        equations: Of motion, by another formulation than the FMU's where there is one.
        mechanism: x' and outputs come from this mechanism in numbers, and ``equations`` only says what stands where;
            None: there are no bodies, or their motion alone does not determine x': x' comes from ``equations``.
    """

    equations: EquationsOfMotion
    mechanism: Mechanism | None = None


def choose_reference_equations(read: Mechanism, used: Method | None) -> ReferenceEquations:
    """Choose the equations that the reference is formed from.

    Args:
        read: The mechanism.
        used: The formulation that the FMU was made by; None if that is unknown.

    Events are found in equations, so these are what moves a mechanism that has any.
    """
    from mb2fmu import validation

    if validation.can_integrate_newton_euler_reference(read) and not mechanism.has_events(read):
        return ReferenceEquations(formulations.form_equations_except_dynamics(read), read)
    applying = [
        method
        for method, applies in formulations.check_applicability_of_all_formulations(read).items()
        if applies.is_applicable
    ]
    second = validation.choose_reference_formulation(used, applying) if applying else "auto"
    return ReferenceEquations(formulations.formulate(read, second))


def validate(
    fmu: Path | str | ExportResult,
    model: AnyModel,
    *,
    arguments: Mapping[str, Any] | None = None,
    observer: StageObserver | None = None,
    default_only: bool = False,
) -> ValidationOutcome:
    """Run any FMU through the model's experiment and judge it by the model's own equations.

    Args:
        fmu: The archive, from whatever tool (its variables are found by name), or what ``pipeline.export`` gave.
        model: A model, or the file that has its function.
        arguments: Of that function, by name.
        observer: Is notified of each stage.
        default_only: ``passed`` may be true though nothing was exercised with other values than the defaults.

    Raises:
        Mb2FmuError: The class of the stage that found fault; ``ToolError`` if the FMU fails while it runs.

    Example:
        >>> import tempfile, mb2fmu
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     exported = mb2fmu.export("simple_pendulum", folder)
        ...     outcome = mb2fmu.validate(exported.path, "simple_pendulum")
        >>> outcome.passed
        True
    """
    stage = StageStopwatch(observer)
    checked, read = load_model_and_mechanism(model, arguments, stage)
    with fmu_and_report_publication.copy_fmu_for_validation(
        fmu.path if isinstance(fmu, ExportResult) else Path(fmu)
    ) as path:
        return validate_fmu(path, checked, read, None, stage, default_only=default_only)


def validate_fmu(
    fmu: Path,
    checked: CheckedModel,
    read: Mechanism,
    used: Method | None,
    stage: StageStopwatch,
    *,
    default_only: bool = False,
) -> ValidationOutcome:
    """Judge an FMU by the mechanism of its model.

    Args:
        fmu: The archive, which nobody changes meanwhile.
        checked: The checked model, whose source objects are evaluated.
        read: The mechanism.
        used: The formulation that the FMU was made by; None if that is unknown.
        stage: Times the stages.
        default_only: As for :func:`validate`.
    """
    from mb2fmu import validation

    definition = read.declared
    with stage("formulate the reference"):
        reference = choose_reference_equations(read, used)
    with stage("validate"), mechanism.add_discontinuity_note(read):
        result = validation.validate(
            fmu, definition, reference.equations, method=used, mechanism=reference.mechanism, integrals_of=read,
            report_activity=stage.activity_reporter("validate"),
        )  # fmt: skip
    with stage("check by the source objects"):
        found = validation.run_independent_checks(
            fmu, checked, read, largest_speeds=result.largest_speeds, visited_coordinates=result.visited_coordinates,
            equations=reference.equations, runs=result.runs, references=result.references,
        )  # fmt: skip
        accuracy_notes = (
            (found.solution_accuracy.text,) if found.solution_accuracy and found.solution_accuracy.text else ()
        )
        flexible = validation.list_flexible_body_limitations(checked, read, result.reference)
        notes = (*flexible, *read.import_notes, *result.notes, *accuracy_notes)  # the first one is shown
        result = replace(result, independent_check_set=found, notes=notes, default_only=default_only)
    result = replace(result, notes=(*describe_unit_contradictions(checked), *result.notes))  # the first one is shown
    return ValidationOutcome(definition, read, reference.equations, result, stage.timings)


def compare_with_data(
    fmu: Path | str | ExportResult,
    *,
    data: Collection[Path | str] = (),
    at: Collection[Path | str] = (),
    settings: MeasuredDataRunSettings | None = None,
) -> tuple[MeasuredTableComparison, ...]:
    """Compare any FMU with the user's own numbers, without a model.

    Args:
        fmu: The archive, or what ``pipeline.export`` gave.
        data: Tables of what was measured over time, see ``validation.compare_fmu_with_measurements``.
        at: Tables of derivatives and outputs at given points, see ``validation.compare_derivatives_at_table_points``.
        settings: Start values, tolerances, steps.

    Raises:
        ValidationError: If a table cannot be read, or does not fit the FMU.
        ToolError: If the FMU fails while it runs.

    Example:
        >>> import pathlib, tempfile, mb2fmu
        >>> from mb2fmu.validation import ValidationDataTolerance, MeasuredDataRunSettings
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     table = pathlib.Path(folder, "swing.csv")
        ...     _ = mb2fmu.simulate("simple_pendulum", stop=1.0).to_csv(table)
        ...     exported = mb2fmu.export("simple_pendulum", folder)
        ...     settings = MeasuredDataRunSettings(default_tolerance=ValidationDataTolerance.read("0.1%"))
        ...     results = mb2fmu.compare_with_data(exported, data=[table], settings=settings)
        >>> all(result.passed for result in results)
        True
    """
    from mb2fmu import validation

    read = [(validation.compare_fmu_with_measurements, validation.read_validation_table(Path(each))) for each in data]
    read += [
        (validation.compare_derivatives_at_table_points, validation.read_validation_table(Path(each))) for each in at
    ]
    with fmu_and_report_publication.copy_fmu_for_validation(
        fmu.path if isinstance(fmu, ExportResult) else Path(fmu)
    ) as path:
        return tuple(result for compare, table in read for result in compare(path, table, settings))
