"""Compose all stages: from a model to its FMU, and to its validated FMU with a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.fmu.package.fmu_archive import make_fmu_archive
from mb2fmu.pipeline.derivation.formulation_and_build_options import (
    ExportOptions,
    separate_formulation_and_build_options,
)
from mb2fmu.pipeline.derivation.model_derivation import DerivableModel, derive
from mb2fmu.pipeline.derivation.pipeline_results import ExportResult, RunResult, StageObserver
from mb2fmu.pipeline.derivation.stage_stopwatch import StageStopwatch
from mb2fmu.pipeline.fmu_build.fmu_assembly import build
from mb2fmu.pipeline.fmu_build.target_source_export import print_target_source_files, write_target_source_files
from mb2fmu.pipeline.run_and_report import report_pages, validation_run
from mb2fmu.pipeline.run_and_report.fmu_and_report_publication import publish_fmu_and_report, refuse_unrunnable_fmu
from mb2fmu.pipeline.run_and_report.wasm_page_fmu import build_wasm_page_fmu


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
