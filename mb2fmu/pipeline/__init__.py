"""The pipeline: the only place that composes stages.

Input: a model, or the file that has its function, and options (``formulation_and_build_options``). Output: frozen
records (``pipeline_results``).

Promises: every function returns a frozen record with all intermediates, each made once; showing equations or a program
is a print. Time is read (``stage_stopwatch``) for the observer and for the page beside the FMU only; it never enters an
FMU.

Must not: derive, lower, print, judge or draw by itself; the stages do.
"""

# The way of the data: records, function, module.
#
#   Path → Model → DeclaredModelContent → Mechanism
#        → EquationsOfMotion → Program                                       derive      model_derivation
#        → Linearization, Sensitivities                                      linearize   linearization_and_sensitivities
#        → TheoryQuantities, graph                                           quantities  model_graph_and_theory
#        → FmuInterface → InMemoryFileTree (sources, description, binaries) → core   build       fmu_assembly
#        → .fmu                                                              export      fmu_and_report_publication
#        → ValidationResult                                                  validate    validation_run
#        → report → .fmu with its report                                     run         report_pages

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from mb2fmu.deferred_imports import import_on_first_use
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.fmu.package.atomic_publishing import write_file_atomically as write
from mb2fmu.fmu.package.fmu_archive import make_fmu_archive
from mb2fmu.pipeline.derivation.formulation_and_build_options import (
    BuildOptions,
    ExportOptions,
    FormulationOptions,
    separate_formulation_and_build_options,
)
from mb2fmu.pipeline.derivation.model_derivation import DerivableModel, derive
from mb2fmu.pipeline.derivation.pipeline_results import (
    DerivationResult,
    ExportResult,
    FmuBuildResult,
    RunResult,
    StageObserver,
    StageTime,
    ValidationOutcome,
)
from mb2fmu.pipeline.derivation.stage_stopwatch import StageStopwatch
from mb2fmu.pipeline.fmu_build.fmu_assembly import build
from mb2fmu.pipeline.fmu_build.target_source_export import print_target_source_files, write_target_source_files
from mb2fmu.pipeline.run_and_report import notebook_displays as notebook_displays  # registers how records are shown
from mb2fmu.pipeline.run_and_report import report_pages, validation_run
from mb2fmu.pipeline.run_and_report.fmu_and_report_publication import publish_fmu_and_report, refuse_unrunnable_fmu
from mb2fmu.pipeline.run_and_report.report_pages import render_validation_report
from mb2fmu.pipeline.run_and_report.validation_run import compare_with_data, validate
from mb2fmu.pipeline.run_and_report.wasm_page_fmu import build_wasm_page_fmu

if TYPE_CHECKING:
    from mb2fmu.pipeline.derivation.right_hand_side import RightHandSide
    from mb2fmu.pipeline.derivation.right_hand_side_of_derivation import right_hand_side, start_values
    from mb2fmu.pipeline.display.mechanism_animation import animate
    from mb2fmu.pipeline.fmu_build.target_source_export import export_target_source_code
    from mb2fmu.pipeline.run_and_report.model_graph_and_theory import draw_model_graph, quantities
    from mb2fmu.pipeline.simulation.model_right_hand_side import Model, load, rhs
    from mb2fmu.pipeline.simulation.model_simulation import simulate
    from mb2fmu.pipeline.simulation.simulation_trajectories import FmuSimulation, ModelSimulation
    from mb2fmu.pipeline.study_runs.linearization_and_sensitivities import linearize, sensitivities, sweep

__getattr__ = import_on_first_use(
    __name__,
    {
        "derivation.right_hand_side": "RightHandSide",
        "derivation.right_hand_side_of_derivation": "right_hand_side start_values",
        "display.mechanism_animation": "animate",
        "fmu_build.target_source_export": "export_target_source_code",
        "run_and_report.model_graph_and_theory": "draw_model_graph quantities",
        "simulation.model_right_hand_side": "Model load rhs",
        "simulation.model_simulation": "simulate",
        "simulation.simulation_trajectories": "FmuSimulation ModelSimulation",
        "study_runs.linearization_and_sensitivities": "linearize sensitivities sweep",
    },
)

__all__ = [
    "BuildOptions", "DerivationResult", "ExportOptions", "ExportResult", "FmuBuildResult", "FmuSimulation",
    "FormulationOptions", "Model", "ModelSimulation", "RightHandSide", "RunResult", "StageObserver", "StageTime",
    "ValidationOutcome", "animate", "build", "compare_with_data", "derive", "draw_model_graph", "export",
    "export_target_source_code", "linearize", "load", "quantities", "render_validation_report", "rhs",
    "right_hand_side", "run", "sensitivities", "simulate", "start_values", "sweep", "validate", "write",
]  # fmt: skip


def export(
    model: DerivableModel,
    folder: Path | str,
    *,
    arguments: Mapping[str, Any] | None = None,
    observer: StageObserver | None = None,
    documents: Mapping[str, bytes] | None = None,
    languages: Sequence[str] = (),
    **options: Unpack[ExportOptions],
) -> ExportResult:
    """Derive, build and pack: ``folder/<ModelName>.fmu``; arguments as for :func:`derive` and :func:`build`.

    ``documents`` are further files, by name, for the FMU's documentation; ``languages`` source targets to be written
    beside the FMU: what one of them cannot express is reported before anything is written. In the FMU is a page that
    describes it; the validation is put there by :func:`run`. A report beside it, of the FMU that it replaces, is
    removed.

    Example:
        >>> import tempfile, mb2fmu
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     mb2fmu.export("simple_pendulum", folder, fmi="3").path.name
        'SimplePendulum.fmu'
    """
    forming, building = separate_formulation_and_build_options(options)
    derivation = derive(model, arguments=arguments, observer=observer, **forming)
    sources = [print_target_source_files(derivation, language) for language in languages]
    built = build(derivation, observer=observer, **building)
    stage = StageStopwatch(observer, built.timings)
    with stage("describe the FMU"):
        further = InMemoryFileTree({f"documentation/{name}": content for name, content in (documents or {}).items()})
        documented = report_pages.add_description_page_to_fmu(built).joined(further)
    with stage("pack"), publish_fmu_and_report(derivation.definition.name, folder) as results:
        results.pack(documented)
        results.publish()
    return ExportResult(built, results.path, stage.timings, write_target_source_files(sources, folder))


def run(
    model: DerivableModel,
    folder: Path | str,
    *,
    arguments: Mapping[str, Any] | None = None,
    observer: StageObserver | None = None,
    default_only: bool = False,
    **options: Unpack[ExportOptions],
) -> RunResult:
    """Do all stages: ``folder/<ModelName>.fmu`` with the report inside, and ``<ModelName>.html`` beside it.

    The report is made from the core FMU and packed with it afterwards; the packed one has neither times nor a date in
    it. Both are published together, after the verdict, whatever it is: until then, and if anything fails, the folder
    stays as it was. Arguments as for :func:`derive` and :func:`build`; ``default_only`` as for :func:`validate`.

    Raises:
        Mb2FmuError: The class of the stage that found fault; ``PlatformError`` if the FMU would not run here.

    Example:
        >>> import tempfile, mb2fmu
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     result = mb2fmu.run("simple_pendulum", folder)
        >>> result.passed
        True
        >>> result.path.name, result.report.name
        ('SimplePendulum.fmu', 'SimplePendulum.html')
        >>> result.errors[0].ratio < 1.0
        True
    """
    refuse_unrunnable_fmu(options)
    forming, building = separate_formulation_and_build_options(options)
    derivation = derive(model, arguments=arguments, observer=observer, **forming)
    built = build(derivation, observer=observer, **building)
    stage = StageStopwatch(observer, built.timings)
    with publish_fmu_and_report(derivation.definition.name, folder) as results:
        with stage("pack"):
            results.pack(built.core)
        validated = validation_run.validate_fmu(
            results.archive_path, derivation.checked, derivation.mechanism, derivation.equations.method, stage,
            default_only=default_only,
        )  # fmt: skip
        with stage("compile for the page"):
            built = replace(built, live=build_wasm_page_fmu(built))
        with stage("report"):
            command = report_pages.format_run_command(built, arguments or {}, options)
            content = report_pages.SharedReportPageContent(validated, built)
            documented = report_pages.add_validation_page_to_fmu(built, validated, command, content)
        with stage("pack"):
            archive = make_fmu_archive(documented)
        page = report_pages.render_report_beside_fmu(built, validated, command, stage.timings, archive, content)
        results.publish_with_report(archive, page)
    return RunResult(ExportResult(built, results.path, stage.timings), validated, results.page, stage.timings)
