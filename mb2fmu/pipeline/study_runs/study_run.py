"""Turn a plan into a folder of results: get the FMU, choose and run cases, summarize them in a page."""

from __future__ import annotations

import hashlib
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mb2fmu.analysis.studies.resolved_study_plan import InputSignal, ResolvedStudy, resolve_study_names
from mb2fmu.analysis.studies.study_case_runner import StudyCaseResults
from mb2fmu.analysis.studies.study_case_scheduling import (
    InProcessStudyCaseEngine,
    StudyCaseRunTime,
    StudyWorkerPool,
    run_study_cases,
)
from mb2fmu.analysis.studies.study_plan import StudyPlan, Value, is_study_target_missing, parse_study_plan
from mb2fmu.analysis.studies.study_result_store import INDICES_FILE, INPUTS_FILE, SUMMARY_FILE, StudyResultStore
from mb2fmu.analysis.studies.trajectory_files import import_pyarrow, import_zarr
from mb2fmu.errors import AnalysisError, Fault, Mb2FmuError, ToolError
from mb2fmu.pipeline.simulation.input_signals import InputValue, read_input_signals
from mb2fmu.temporary_files import make_temporary_folder

if TYPE_CHECKING:
    from mb2fmu.pipeline.derivation.pipeline_results import StageObserver
    from mb2fmu.validation.data.validation_data_tables import ValidationDataTable
    from mb2fmu.validation.runs.fmu_description_for_runs import FmuDescription

CaseProgressCallback = Callable[[int, int, int], None]
"""Is notified how many cases are done, how many there are, how many failed."""
IN_PROCESS_SCHEDULER = "none"


@dataclass(frozen=True, slots=True)
class StudyOutcome:
    """Result of a study.

    Attributes:
        folder: Of the results.
        study: What was run.
        cases: How many.
        failed: How many of them.
        summary: The page.
        effort: What the cases of this run took, in words; empty if none was run.
        overhead: Time of workers beside the cases, as a part of the cases' own; None if none was run.
        commonest_failure: Message of most cases that failed; empty if none did.
    """

    folder: Path
    study: ResolvedStudy
    cases: int
    failed: int
    summary: Path
    effort: str = ""
    overhead: float | None = None
    commonest_failure: str = ""

    @property
    def default_variation_note(self) -> str:
        """Say which parameters vary by default where the plan names none; empty otherwise."""
        part = self.study.plan.spread
        return f"Vary by {part:.3g} of their values: {', '.join(self.study.varied)}" if part else ""


def run_study(
    plan: Path | str | Mapping[str, Any],
    folder: Path | str,
    *,
    scheduler: str = "local",
    workers: int | None = None,
    resume: bool = False,
    client: Any = None,
    on_progress: CaseProgressCallback | None = None,
    observer: StageObserver | None = None,
) -> StudyOutcome:
    """Run all cases of a plan; finished cases are kept, however this ends.

    Args:
        plan: A TOML file, see docs/how_to/studies.md, or what such a file would say, seen from the working directory.
        folder: For results; made if it is not there.
        scheduler: ``local`` (processes of this machine), ``none`` (in this process), or the address of a scheduler of
            dask.distributed.
        workers: Of ``local``: how many processes; None: one per processor, but not more than cases.
        resume: Go on with the study that is in the folder.
        client: A ``distributed.Client`` that is there already, instead of ``scheduler``.
        on_progress: Is notified of progress.
        observer: Is notified of the stages before.

    Raises:
        AnalysisError: With every fault of the plan; if the folder has another study, or one is being run in it.
        ToolError: If no scheduler answers, or it is gone; finished cases are kept. If a package is missing, at once.
    """
    written = plan if isinstance(plan, Mapping) else _read_plan_file(Path(plan))
    checked, faults = parse_study_plan(written)
    import_pyarrow()  # reported before anything runs
    if checked.trajectory_format == "zarr":
        import_zarr()
    base = Path() if isinstance(plan, Mapping) else Path(plan).parent
    study, name, content = _prepare_study(base, checked, observer, faults)
    store = StudyResultStore(Path(folder), study, (name, content), written)
    with store.lock_folder():
        store.prepare_study_folder(resume=resume)
        say = on_progress or (lambda _done, _n, _failed: None)
        left = np.flatnonzero(~store.done).tolist()
        say(int(store.done.sum()), len(store.done), store.failed)
        try:
            if left:
                with _open_case_engine(study, content, scheduler, workers, client, len(left)) as engine:
                    store.effort = _run_remaining_cases(engine, store, left, say)
        finally:
            store.flush()
            store.remove_new_files()
        if not store.complete:
            store.join_result_parts()
        return _write_summary(store, study, name, content)


def _run_remaining_cases(
    engine: StudyWorkerPool, store: StudyResultStore, left: Sequence[int], say: CaseProgressCallback
) -> StudyCaseRunTime:
    """Run the cases that are left, and keep each result as it comes."""

    def take(cases: tuple[int, ...], answer: StudyCaseResults) -> None:
        store.add_results(cases, answer)
        say(int(store.done.sum()), len(store.done), store.failed)

    begin = time.perf_counter()
    spent, workers = run_study_cases(engine, left, take, len(store.study.results))
    return StudyCaseRunTime(time.perf_counter() - begin, spent, workers)


def _read_plan_file(path: Path) -> Mapping[str, Any]:
    """Read the plan's file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        what = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        fault = Fault(what, str(path), "is it the right path, and text in UTF-8?")
    except tomllib.TOMLDecodeError as error:
        fault = Fault(
            str(error), str(path), 'names with dots are quoted: "elbow.angle" = …; see docs/how_to/studies.md'
        )
    raise AnalysisError("the plan cannot be read:", [fault])


def _prepare_study(
    base: Path, plan: StudyPlan, observer: StageObserver | None, earlier: Sequence[Fault] = ()
) -> tuple[ResolvedStudy, str, bytes]:
    """Return the study, and the FMU's file name and archive; raise with earlier faults, too."""
    from mb2fmu import validation
    from mb2fmu.fmu.package.fmu_archive import unpack_archive_bytes
    from mb2fmu.validation.runs.fmu_description_for_runs import read_fmu_description

    if is_study_target_missing(plan, earlier):
        raise AnalysisError("the plan cannot be used:", earlier)
    faults = list(earlier)
    table: ValidationDataTable | None = None
    if plan.table:
        try:
            table = validation.read_validation_table(base / plan.table)
        except Mb2FmuError as error:
            faults += error.faults
    try:
        name, content, defaults = _load_study_fmu(base, plan, observer)
    except Mb2FmuError as error:
        if not faults:
            raise
        raise type(error)(error.headline, [*faults, *error.faults]) from error
    tree = unpack_archive_bytes(content, name)
    fmu: FmuDescription = read_fmu_description(tree)
    return resolve_study_names(plan, fmu, table, defaults, _make_input_signals, faults), name, content


def _load_study_fmu(
    base: Path, plan: StudyPlan, observer: StageObserver | None
) -> tuple[str, bytes, Mapping[str, InputSignal]]:
    """Return name and archive of the FMU, made from the model if one is given; and its inputs' signals."""
    path = base / plan.source
    if plan.source_is_fmu:
        try:
            return path.name, path.read_bytes(), {}
        except OSError as error:
            raise AnalysisError("the plan cannot be used:", [Fault(error.strerror or str(error), str(path))]) from error
    from mb2fmu import validation
    from mb2fmu.fmu.package.fmu_archive import make_fmu_archive
    from mb2fmu.pipeline.derivation.model_derivation import derive
    from mb2fmu.pipeline.fmu_build.fmu_assembly import build

    source = path if path.exists() else Path(plan.source)  # the name of a model that comes with mb2fmu
    derivation = derive(source, arguments=plan.arguments, observer=observer)
    built = build(derivation, observer=observer)
    definition = derivation.definition
    run = definition.experiment
    run = replace(run, stop=plan.stop or run.stop, step=plan.step or run.step)
    given = validation.form_experiment_values(replace(definition, experiment=run))
    defaults: dict[str, InputSignal] = {}
    for column, name in enumerate(given.input_names):
        values = given.inputs[:, column].tolist()
        defaults[name] = lambda t, values=values: values[min(int(t / run.step + 0.5), len(values) - 1)]  # type: ignore[misc]
    return f"{definition.name}.fmu", make_fmu_archive(built.core), defaults


def _make_input_signals(given: Mapping[str, Value], units: Mapping[str, str], stop: float) -> Mapping[str, InputSignal]:
    """Return the plan's inputs as functions of time."""
    inputs: Mapping[str, InputValue] = dict(given)
    return {signal.name: signal.at for signal in read_input_signals(inputs, (), units, stop)}


@contextmanager
def _open_case_engine(
    study: ResolvedStudy, content: bytes, scheduler: str, workers: int | None, client: Any, cases: int
) -> Iterator[StudyWorkerPool]:
    """Provide the engine that runs so many cases; it is removed at the end."""
    from mb2fmu.fmu.package.fmu_archive import unpack_archive_bytes, write_files_for_run

    with make_temporary_folder("run the cases") as folder:
        if client is None and scheduler == IN_PROCESS_SCHEDULER:
            write_files_for_run(unpack_archive_bytes(content, "unit"), folder)
            yield InProcessStudyCaseEngine(study.job, folder, study.cases)
            return
        try:
            from mb2fmu.analysis.studies.dask_workers import DaskStudyCaseEngine, connect_dask_workers
        except ImportError as error:
            remedy = "pip install 'mb2fmu[study]', or write --scheduler none: in this process, one after the other"
            raise ToolError(
                "the study cannot be run:", [Fault(f"{error.name} is not installed", remedy=remedy)]
            ) from error
        if client is not None:
            engine = DaskStudyCaseEngine(client, content, study.job, study.cases)
            try:
                yield engine
            finally:
                engine.close()
            return
        with connect_dask_workers(scheduler, workers, folder, cases) as made:
            engine = DaskStudyCaseEngine(made, content, study.job, study.cases, own=scheduler == "local")
            try:
                yield engine
            finally:
                engine.close()


def _write_summary(store: StudyResultStore, study: ResolvedStudy, name: str, content: bytes) -> StudyOutcome:
    """Write the page."""
    from mb2fmu.fmu.package.atomic_publishing import write_file_atomically
    from mb2fmu.pipeline.study_runs.study_summary import (
        compute_sobol_indices,
        format_input_signal_table,
        format_sobol_indices_as_csv,
        render_study_summary_page,
    )

    cases, values, messages = store.results()
    facts = {"FMU": name, "SHA-256 of the FMU": hashlib.sha256(content).hexdigest()}
    effort = "" if store.effort is None else store.effort.format_effort()
    facts |= {"Run": effort} if effort else {}
    found = compute_sobol_indices(study, values) if len(cases) == len(study.cases) else {}
    if found:
        write_file_atomically(store.folder / INDICES_FILE, format_sobol_indices_as_csv(study, found))
    given = format_input_signal_table(study)
    if given:
        write_file_atomically(store.folder / INPUTS_FILE, given)
    page = render_study_summary_page(study, store.folder / name, cases, values, messages, facts, found)
    write_file_atomically(store.folder / SUMMARY_FILE, page)
    overhead = None if store.effort is None else store.effort.overhead
    failures = Counter(message for message in messages if message).most_common(1)
    return StudyOutcome(
        store.folder, study, len(study.cases), store.failed, store.folder / SUMMARY_FILE, effort, overhead,
        failures[0][0] if failures else "",
    )  # fmt: skip
