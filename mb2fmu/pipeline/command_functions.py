"""Commands as functions that had none: audit, fit, study, couple and split.

Input: files or objects, as on the command line. Output: the records of the stages. Must not: print, or judge by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mb2fmu.pipeline.derivation.model_derivation import AnyModel
from mb2fmu.pipeline.derivation.pipeline_results import StageObserver

if TYPE_CHECKING:
    from mb2fmu.analysis.studies.model_fitting import FitResult
    from mb2fmu.audit import AuditResult
    from mb2fmu.pipeline.study_runs.study_run import StudyOutcome
    from mb2fmu.pipeline.system_runs.coupled_system_run import SystemRunResult
    from mb2fmu.pipeline.system_runs.model_split_export import ModelSplitResult
    from mb2fmu.systems import CoupledSystem


def audit_fmu(
    fmu: Path | str,
    *,
    only: Sequence[str] = ("*",),
    skip: Sequence[str] = (),
    run: bool = True,
    time_limit: float = 120.0,
) -> AuditResult:
    """Judge any FMU: does it do what its description says?

    Args:
        fmu: The archive, of FMI 2 or 3, from any tool.
        only: Patterns of rules to judge, such as ``dependencies.*``.
        skip: Patterns of rules that are not judged.
        run: Whether to run the FMU, or to check only its files.
        time_limit: Of the whole audit, s.

    Returns:
        The findings, the worst first; ``result.exit_code() == 0`` means that no error was found.

    Raises:
        PackageError: If the file cannot be read as an archive.
        ToolError: If a package is missing (``pip install 'mb2fmu[audit]'``).

    Example:
        >>> import tempfile, mb2fmu
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     exported = mb2fmu.export("simple_pendulum", folder)
        ...     mb2fmu.audit_fmu(exported.path, run=False).count("error")
        0
    """
    from mb2fmu.audit import audit, find_reference_run_of_fmu

    path = Path(fmu)
    recorded = find_reference_run_of_fmu(path)
    return audit(path, only=only, skip=skip, run=run, run_checkers=tuple(only) == ("*",), budget=time_limit,
                 recorded=recorded)  # fmt: skip


def fit(
    model: AnyModel,
    data: Sequence[Path | str] | Path | str,
    free: Sequence[str],
    *,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    arguments: Mapping[str, Any] | None = None,
    observer: StageObserver | None = None,
) -> FitResult:
    """Find parameters and start values for which a model moves as measured.

    Args:
        model: A model, or the file that has its function; its values are where the search begins.
        data: One CSV file, or one for each experiment: ``time``, and columns headed by FMU names.
        free: FMU names of parameters, and of states whose start values are unknown.
        bounds: FMU name → lowest and highest value; None: those of the model.
        arguments: Of the model's function, by name.
        observer: Is notified of each stage.

    Returns:
        Values, their 95 % intervals (half widths) and correlations.

    Raises:
        AnalysisError: With every fault; if nothing can be found.
        ValidationError: If a table cannot be read.

    Example:
        >>> import pathlib, tempfile, mb2fmu
        >>> model = mb2fmu.load("simple_pendulum")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     table = pathlib.Path(folder, "swing.csv")
        ...     _ = mb2fmu.simulate(model, stop=2.0).to_csv(table)
        ...     found = mb2fmu.fit(model.at({"l": 0.8}), table, ["l"])
        >>> round(float(found.values[0]), 4)  # m: the length that the table was made with
        1.0
    """
    from mb2fmu.pipeline.study_runs.parameter_fit import identify_parameters

    tables = [data] if isinstance(data, Path | str) else data
    return identify_parameters(
        model, [Path(each) for each in tables], free, bounds=bounds, arguments=arguments, observer=observer
    )


def study(
    plan: Path | str | Mapping[str, Any],
    folder: Path | str,
    *,
    scheduler: str = "local",
    workers: int | None = None,
    resume: bool = False,
    observer: StageObserver | None = None,
) -> StudyOutcome:
    """Run one FMU or model over many cases; results go to Parquet files in a folder.

    Args:
        plan: A TOML file (docs/reference/studies.md), or a mapping of what such a file says.
        folder: For results; made if it is not there.
        scheduler: ``local`` (processes of this machine), ``none`` (this process), or the address of a dask scheduler.
        workers: Processes of ``local``; None: one per processor, but not more than cases.
        resume: Go on with the study that is in the folder.
        observer: Is notified of each stage.

    Returns:
        How many cases ran and failed, and where the results and their summary are.

    Raises:
        AnalysisError: With every fault of the plan; if the folder has another study.
        ToolError: If no scheduler answers; finished cases are kept.

    Example:
        >>> import tempfile, mb2fmu
        >>> cases = {"method": "grid"}
        >>> plan = {"model": "simple_pendulum", "vary": {"l": {"values": [0.5, 1.0]}}, "cases": cases}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     outcome = mb2fmu.study(plan, folder, scheduler="none")
        >>> (outcome.cases, outcome.failed)
        (2, 0)
    """
    from mb2fmu.pipeline.study_runs.study_run import run_study

    return run_study(plan, folder, scheduler=scheduler, workers=workers, resume=resume, observer=observer)


def couple(
    system: CoupledSystem | Path | str,
    folder: Path | str,
    *,
    arguments: Mapping[str, Any] | None = None,
    masters: Sequence[str] = (),
    observer: StageObserver | None = None,
) -> SystemRunResult:
    """Couple several FMUs, run them together, and write SSP and OSP files and a report.

    Args:
        system: A system, the file that has its function, or an ``.ssp``.
        folder: For the files.
        arguments: Of the file's function, by name.
        masters: Other masters that run the same files: ``fmpy``, ``libcosim``, ``ecos``.
        observer: Is notified of each stage.

    Returns:
        The motion, and the deviations from the monolithic model where the system names one.

    Raises:
        CouplingError: If the system is wrong: nothing is written; or its coupling would be unstable: no results are.
        SystemRunError: If an FMU fails during the run; results up to there are written.

    Example:
        >>> import tempfile, mb2fmu
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     mb2fmu.couple("systems/two_masses/system.py", folder).passed
        True
    """
    from mb2fmu.pipeline.system_runs.coupled_system_run import run_coupled_system

    return run_coupled_system(system, folder, arguments=arguments, masters=masters, observer=observer)


def split(
    model: AnyModel,
    at: Sequence[str],
    folder: Path | str,
    *,
    arguments: Mapping[str, Any] | None = None,
    step: float = 0.001,
    observer: StageObserver | None = None,
) -> ModelSplitResult:
    """Cut one model into several FMUs, and write them with the file that couples them.

    Args:
        model: A model's file, or a model.
        at: Names of joints, points, loads or constraints where it is cut.
        folder: For ``<Model>_<part>.fmu`` and ``system.py``.
        arguments: Of the model file's function.
        step: Communication step in s.
        observer: Is notified of each stage.

    Returns:
        The parts, the written FMUs and the system file.

    Raises:
        CouplingError: If the model cannot be cut there.

    Example:
        >>> import tempfile, mb2fmu
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     result = mb2fmu.split("systems/two_masses/whole.py", ["load[1]", "load[2]"], folder)
        >>> len(result.fmus)
        2
    """
    from mb2fmu.pipeline.system_runs.model_split_export import split_model

    return split_model(model, at, folder, arguments=arguments, step=step, observer=observer)
