"""Systems: implementation of ``pipeline.couple``.

Path → CoupledSystem → units (exported, or as they are) → Joined → SystemTrajectories → files, report
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import Fault, Mb2FmuError, ToolError
from mb2fmu.fmu import package
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.mechanics import mechanism
from mb2fmu.model.model_loading import load_result_of_annotated_function, resolve_model_argument
from mb2fmu.pipeline.derivation.event_requirements import needs_event_handling
from mb2fmu.pipeline.derivation.model_derivation import derive, load_model_and_mechanism
from mb2fmu.pipeline.derivation.pipeline_results import StageObserver, StageTime
from mb2fmu.pipeline.derivation.stage_stopwatch import StageStopwatch
from mb2fmu.pipeline.simulation.simulation_trajectories import format_parquet, require_parquet_support
from mb2fmu.systems.coupled_system import CoupledSystem, DeclaredSystemComponent
from mb2fmu.systems.exports.fmpy_system_script import form_fmpy_script
from mb2fmu.systems.exports.foreign_masters import FOREIGN_MASTERS, ForeignMasterResult, run_foreign_masters
from mb2fmu.systems.exports.osp_files import form_osp_files
from mb2fmu.systems.fmu_component import FmuComponent, read_fmu_component
from mb2fmu.systems.monolithic_reference_comparison import (
    SystemVariableDeviation,
    compute_errors_against_monolithic_model,
)
from mb2fmu.systems.port_and_bond_records import list_inputs_with_scaled_connections
from mb2fmu.systems.ssp.ssp_archive import SspVersion, form_ssp_files
from mb2fmu.systems.ssp.ssp_import import SspExperiment, read_ssp
from mb2fmu.systems.system_block_diagram import draw_system_block_diagram
from mb2fmu.systems.system_report import render_system_page
from mb2fmu.systems.system_simulation import SystemRunError, SystemTrajectories, UnstableSystemError, simulate_system
from mb2fmu.systems.system_wiring import find_system_declaration_faults, wire_system
from mb2fmu.systems.wired_system import CouplingError, WiredSystem
from mb2fmu.temporary_files import make_temporary_folder

Floats = npt.NDArray[np.float64]

_GRID_TOLERANCE = 1e-7
"""Part of a step by which a communication point misses a multiple of it at most."""


@dataclass(frozen=True)
class SystemRunResult:
    """A system that was run, and the files that were written.

    Attributes:
        joined: Its checked connections.
        motion: What it did.
        deviations: Against the whole model; () if none is given.
        answers: Of other masters on the same files.
        files: What was written.
        timings: Of the stages.
    """

    joined: WiredSystem
    motion: SystemTrajectories
    deviations: tuple[SystemVariableDeviation, ...]
    answers: tuple[ForeignMasterResult, ...]
    files: tuple[Path, ...]
    timings: tuple[StageTime, ...]

    @property
    def passed(self) -> bool:
        """True if every variable is within the stated bound of the whole model, or no bound is stated."""
        bound = self.joined.system.run_settings.bound
        return bound is None or all(each.relative_error <= bound for each in self.deviations)

    def to_json(self) -> str:
        """Return the verdict in numbers: errors in their variables' units and relative, energy defects in J."""
        motion, bound = self.motion, self.joined.system.run_settings.bound
        whole: dict[str, Any] = {
            "system": self.joined.system.name,
            "passed": self.passed if bound is not None and self.deviations else None,
            "bound": bound,
            "deviations": [
                {
                    "name": each.name,
                    "whole": each.reference_name,
                    "unit": each.unit,
                    "error": each.max_error,
                    "relative": each.relative_error,
                }
                for each in self.deviations
            ],
            "energy_defects": {name: float(motion.energy_defects[-1, k]) for k, name in enumerate(motion.bonds)},
            "masters": [
                {
                    "master": each.master_name,
                    "values": dict(each.final_values),
                    "failure": each.failure,
                    "note": each.note,
                }
                for each in self.answers
            ],
            "steps": motion.statistics["steps"],
            "passes": motion.statistics["total_passes"],
            "notes": [*self.joined.notes, *motion.statistics["notes"]],
            "files": [str(path) for path in self.files],
            "seconds": {each.stage: round(each.seconds, 3) for each in self.timings},
        }
        return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def _load_system(path: Path | str, arguments: Mapping[str, Any] | None = None) -> CoupledSystem:
    """Return the system that a file's function (annotated ``-> CoupledSystem``) returns."""
    return load_result_of_annotated_function(path, arguments or {}, CoupledSystem)


def wire_loaded_system(
    system: CoupledSystem | Path | str,
    *,
    arguments: Mapping[str, Any] | None = None,
    observer: StageObserver | None = None,
) -> WiredSystem:
    """Return a joined system: path → CoupledSystem → units; FMUs of models are exported to a temporary folder.

    Raises:
        CouplingError: With everything that is wrong with names, connections, units of measure, loops.
    """
    if isinstance(system, Path | str) and Path(system).suffix == ".ssp":
        with make_temporary_folder("lay out the FMUs") as folder:
            return wire_loaded_system(
                read_ssp(Path(system), folder, _parse_ssp_experiment(arguments or {})), observer=observer
            )
    given = system if isinstance(system, CoupledSystem) else _load_system(system, arguments)
    with make_temporary_folder("build the FMUs") as folder:
        return wire_system(given, _load_components(given, folder, observer))


def _load_components(system: CoupledSystem, folder: Path, observer: StageObserver | None) -> list[FmuComponent]:
    """Return all FMUs; faults of several are reported together, with their lines.

    Raises:
        CouplingError: With every fault of models and archives, and of names and numbers.
        ToolError: If a tool outside fails.
    """
    found, faults = [], []
    for number, declared in enumerate(system.components):
        try:
            found.append(_load_component(system, declared, folder / str(number), observer))
        except ToolError:
            raise
        except Mb2FmuError as error:
            faults_of_component = error.faults or (Fault(str(error)),)
            where = f"{declared.where}, {declared.name}"
            faults += [
                Fault(f"{each.where}: {each.what}" if each.where else each.what, where, each.remedy)
                for each in faults_of_component
            ]
    if faults:
        others = list(
            find_system_declaration_faults(system)
        )  # without FMUs nothing can be said of connections, but of these
        what = "cannot be coupled" if others else "has components that cannot be read or exported"
        raise CouplingError(f"{system.name} {what}:", [*others, *faults])
    return found


def _parse_ssp_experiment(arguments: Mapping[str, Any]) -> SspExperiment:
    """Return how an archive's system is run, from arguments that may be text; raise for unknown ones."""
    types: dict[str, Callable[[Any], Any]] = {"step": float, "stop": float, "order": int, "passes": int, "loops": str}
    faults = [
        Fault(f"{name!r} cannot be set", "--set", f"set {', '.join(types)}") for name in arguments if name not in types
    ]
    values = {}
    for name, value in arguments.items():
        try:
            values[name] = types.get(name, str)(value)
        except ValueError:
            faults.append(Fault(f"{name} = {value!r} is no number", "--set", "write a number"))
    if values.get("loops", "refuse") not in {"refuse", "solve"}:
        faults.append(Fault(f"loops = {values['loops']!r}", "--set", "take refuse or solve"))
    if faults:
        raise CouplingError("the system cannot be run so:", faults)
    return SspExperiment(**values)


def _load_component(
    system: CoupledSystem, declared: DeclaredSystemComponent, folder: Path, observer: StageObserver | None
) -> FmuComponent:
    """Read a component's unit; export it into `folder` first unless its source is an FMU."""
    from mb2fmu.pipeline.run_and_report.model_export_and_run import export

    name = declared.name
    source = _locate_source(declared.source, system)
    if isinstance(source, Path) and source.suffix == ".fmu":
        return read_fmu_component(name, source)
    exported = export(source, folder, arguments=declared.arguments, observer=observer, fmi=declared.fmi)
    return read_fmu_component(name, exported.path)


def _locate_source(source: Any, system: CoupledSystem) -> Any:
    """Return the file that a system means: beside its own, or a model that comes along; a model stays one."""
    if not isinstance(source, str | Path):
        return source
    return resolve_model_argument(source, system.source.parent if system.source else Path())


def _check_request(masters: Sequence[str], *, parquet: bool) -> None:
    """Raise before any run for unknown masters, and for Parquet without pyarrow."""
    unknown = [name for name in masters if name not in FOREIGN_MASTERS]
    if unknown:
        raise CouplingError(
            "no such master:",
            [Fault(f"{n!r} is not known", "--masters", f"name {', '.join(FOREIGN_MASTERS)}") for n in unknown],
        )
    if parquet:
        require_parquet_support()


def run_coupled_system(
    system: CoupledSystem | Path | str,
    folder: Path | str,
    *,
    arguments: Mapping[str, Any] | None = None,
    masters: Sequence[str] = (),
    parquet: bool = False,
    ssp: SspVersion = "1.0",
    observer: StageObserver | None = None,
) -> SystemRunResult:
    """Couple FMUs, run them, write files for other masters and a report.

    Args:
        system: A system, the file that has its function, or an ``.ssp``.
        folder: Where to write ``NAME.ssp``, ``NAME.html``, ``NAME.svg``, ``NAME.csv``, ``NAME_fmpy.py``, and the folder
            ``NAME`` with the FMUs and ``OspSystemStructure.xml``.
        arguments: Of the file's function.
        masters: Others that run the same files: keys of ``systems.exports.foreign_masters.MASTERS``.
        parquet: Also write the results as Parquet, ``NAME.parquet``.
        ssp: Version of the ``.ssp``; most importers read 1.0 alone.
        observer: Is notified of each stage.

    Raises:
        CouplingError: If the system is wrong; nothing is written.
        UnstableSystemError: If its coupling is foretold to explode; its files for other masters are written.
        SystemRunError: If a component fails during the run; files and results up to there are written all the same.
    """
    _check_request(masters, parquet=parquet)
    stage = StageStopwatch(observer)
    joined = wire_loaded_system(system, arguments=arguments, observer=observer)
    target, name = Path(folder), joined.system.name
    files = _form_publication_files(joined, ssp)
    archive = target / f"{name}.ssp"
    if isinstance(system, Path | str) and Path(system).suffix == ".ssp":  # what was read is not written again
        archive = Path(system)
        files = InMemoryFileTree({key: files[key] for key in files if key != f"{name}.ssp"})
    try:
        with stage("run the system"):
            motion = simulate_system(joined, _progress_callback(observer, "run the system"))
    except UnstableSystemError as error:  # of this master and step: another one may carry what is wired
        package.write_file_tree(files, target)
        kept = Fault(f"{archive} is written", remedy="a master with other steps may carry it")
        raise UnstableSystemError(error.headline, [*error.faults, kept]) from error
    except SystemRunError as error:
        package.write_file_tree(files.joined(_form_result_files(name, error.motion, parquet=parquet)), target)
        raise
    with stage("write the system"):  # kept, whatever the whole says
        written = list(package.write_file_tree(files.joined(_form_result_files(name, motion, parquet=parquet)), target))
    truth: tuple[SystemVariableDeviation, ...] = ()
    if joined.system.reference_model is not None:
        with stage("run the whole"):
            truth = _compare_with_monolithic_model(joined, motion, observer)
    answers: tuple[ForeignMasterResult, ...] = ()
    if masters:
        run = joined.system.run_settings
        with stage("run other masters"):
            wanted = [each.name for each in truth] or list(motion.names)
            answers = run_foreign_masters(
                masters,
                archive,
                target / name,
                run.stepping.step,
                run.stop,
                wanted,
                list_inputs_with_scaled_connections(joined.wiring),
            )
    with stage("report"):
        page = render_system_page(joined, motion, truth, answers)
    written += package.write_file_tree(InMemoryFileTree({f"{name}.html": page}), target)
    return SystemRunResult(joined, motion, truth, answers, tuple(written), stage.timings)


def _progress_callback(observer: StageObserver | None, stage: str) -> Callable[[float], None] | None:
    """Notify an observer with a method ``report_progress`` which part of a stage is done."""
    report_progress: Callable[[str, float], None] | None = getattr(observer, "report_progress", None)
    return None if report_progress is None else partial(report_progress, stage)


def _form_publication_files(joined: WiredSystem, ssp: SspVersion) -> InMemoryFileTree:
    """Return what a system is published with: SSP archive, OSP folder, picture, and script for fmpy."""
    name = joined.system.name
    return InMemoryFileTree(
        {
            f"{name}.ssp": package.make_fmu_archive(form_ssp_files(joined, ssp)),
            f"{name}.svg": draw_system_block_diagram(joined.wiring, f"{name}: FMUs and their connections").encode(),
            f"{name}_fmpy.py": form_fmpy_script(joined, f"{name}/").encode(),
        }
    ).joined(form_osp_files(joined).move_under(name))


def _form_result_files(name: str, motion: SystemTrajectories, *, parquet: bool) -> InMemoryFileTree:
    """Return the results of a run, as far as it came."""
    files = {f"{name}.csv": _format_system_results(motion)}
    if parquet:
        units = dict(zip(motion.names, motion.units, strict=True)) | dict.fromkeys(_energy_defect_headings(motion), "J")
        values = np.concatenate([motion.values, motion.energy_defects], axis=1)
        files[f"{name}.parquet"] = format_parquet(motion.time, units, values)
    return InMemoryFileTree(files)


def _energy_defect_headings(motion: SystemTrajectories) -> list[str]:
    """Return the heading of the energy defect column of each bond, in J."""
    return [f"defect of {bond} in J" for bond in motion.bonds]


def _format_system_results(motion: SystemTrajectories) -> bytes:
    """Return results as CSV: time, outputs, energy defects of bonds; numbers read back to the same bits."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["time", *motion.names, *_energy_defect_headings(motion)])
    for time, values, defects in zip(motion.time, motion.values, motion.energy_defects, strict=True):
        writer.writerow([repr(float(each)) for each in (time, *values, *defects)])
    return stream.getvalue().encode()


def _compare_with_monolithic_model(
    joined: WiredSystem, motion: SystemTrajectories, observer: StageObserver | None
) -> tuple[SystemVariableDeviation, ...]:
    """Return the system's deviations from the whole model, at communication points.

    Where the whole has events only those that are multiples of the step count: others are where an FMU ended a step by
    an event, which the whole has at another instant, before or after, and just there all that jumps would differ.
    """
    from mb2fmu.pipeline.system_runs.monolithic_model_simulation import (  # not needed without a whole
        integrate_reference_equations,
        simulate_monolithic_model,
    )

    declared = joined.system.reference_model
    assert declared is not None
    source = _locate_source(declared.source, joined.system)
    checked, read = load_model_and_mechanism(source, declared.arguments, StageStopwatch(observer))
    if mechanism.has_events(read):
        derivation, stepping = derive(checked, observer=observer), joined.system.run_settings.stepping
        if needs_event_handling(derivation) and stepping.accuracy is None:
            motion = _select_communication_points(motion, stepping.step)
        found = simulate_monolithic_model(derivation, motion.time, where=declared.where)
    else:  # what an FMU of the whole would need is not derived
        found = integrate_reference_equations(read, motion.time)
    faults = [
        Fault(f"the whole has no variable {whole}", declared.where, f"it has {', '.join(sorted(found))}")
        for whole in declared.reference_names.values()
        if whole not in found
    ]
    faults += [
        Fault(f"the system has no output {own}", declared.where, f"it has {', '.join(motion.names)}")
        for own in declared.reference_names
        if own not in motion.names
    ]
    if faults:
        raise CouplingError(f"{joined.system.name} cannot be compared with its whole:", faults)
    return compute_errors_against_monolithic_model(motion, declared.reference_names, found)


def _select_communication_points(motion: SystemTrajectories, step: float) -> SystemTrajectories:
    """Return the motion at multiples of the communication step."""
    steps = motion.time / step
    rows = np.flatnonzero(np.abs(steps - np.round(steps)) < _GRID_TOLERANCE)
    rows = rows[np.diff(np.round(steps[rows]), append=np.inf) > 0]  # of an event just there the last point counts
    return replace(
        motion, time=motion.time[rows], values=motion.values[rows], energy_defects=motion.energy_defects[rows],
        exchanged_energies=motion.exchanged_energies[rows],
    )  # fmt: skip
