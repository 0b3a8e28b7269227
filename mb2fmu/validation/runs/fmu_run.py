"""Run any FMU (FMI 2.0, 3.0; Co-Simulation, Model Exchange) through an experiment, in its own process."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import Fault, ToolError, ValidationError, describe_process_end
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.fmu.package import read_archive
from mb2fmu.temporary_files import make_temporary_folder
from mb2fmu.validation.reference.experiment_values import ExperimentValues
from mb2fmu.validation.runs.fmu_description_for_runs import FmuDescription, InterfaceType, read_fmu_description
from mb2fmu.validation.runs.fmu_process_start import REQUEST_FILE, compile_cvode_callbacks, run_request_in_process

Floats = npt.NDArray[np.float64]
Operations = Sequence[Sequence[Any]]
"""Of a session: names of operations and their arguments, see ``mb2fmu.fmu.runner.api_call_sessions``."""

TIME_LIMIT = 300.0
_TRACEBACK_FRAME = re.compile(r"Traceback \(|  ")
_EARLIER_EXCEPTION = re.compile(r"^(?:During handling of|The above exception was)[^\n]*:\n", re.MULTILINE)
_LIBRARY_REFUSAL = re.compile(r"Exception: Failed to load shared library (.+?)\. (.*)")
_SHOWN_LOG_LINES = 20


@dataclass(frozen=True, slots=True)
class FmuSimulationResult:
    """Results of an FMU's run.

    Attributes:
        kind: How the FMU was run.
        names: FMU variable names.
        time: Communication points in s, shape (n_t,).
        values: Shape (n_t, n).
        log: The FMU's messages, ``status category: text``.
        seconds_per_step: Wall clock of one communication step alone, mean.
    """

    names: tuple[str, ...]
    time: Floats
    values: Floats
    log: tuple[str, ...]
    seconds_per_step: float
    kind: InterfaceType = "CoSimulation"

    def __post_init__(self) -> None:
        if self.values.shape != (len(self.time), len(self.names)):
            raise ValueError(f"values {self.values.shape} for {len(self.time)} times and {len(self.names)} variables")

    def __getitem__(self, name: str) -> Floats:
        """Return the values of one variable, shape (n_t,)."""
        return np.asarray(self.values[:, self.names.index(name)])


@dataclass(frozen=True, slots=True)
class FmuProcessResult:
    """Results of an FMU in one process.

    Attributes:
        simulations: One per experiment.
        recorded_values: Values recorded in each session, by its name, one per operation; the last of a session that
            failed is ``{"failed": why}``. None if an experiment was refused.
        refusal: Why the FMU did not go through the last experiment, with its own last words; empty if it did. The
            values that are missing are NaN.
        events: Of each experiment in Model Exchange: the time in s of each event, what was watched before it and after.
    """

    simulations: tuple[FmuSimulationResult, ...]
    recorded_values: Mapping[str, list[Any]]
    refusal: str = ""
    events: tuple[list[Any], ...] = ()


def simulate_fmu(
    fmu: Path,
    experiment: ExperimentValues,
    variables: Sequence[str],
    *,
    kind: InterfaceType | None = None,
    time_limit: float = TIME_LIMIT,
) -> FmuSimulationResult:
    """Step an FMU through an experiment; its own defaults hold where the experiment sets nothing.

    Inputs are set at the beginning of each communication step and held; the variables are read after initialization
    and after each step, before inputs change. Model Exchange is integrated by fmpy's CVODE (backward differentiation
    formulas), with a relative tolerance of ``MODEL_EXCHANGE_TOLERANCE_FACTOR`` times the experiment's, so that its
    errors disappear behind those that the experiment allows.

    Args:
        fmu: The archive.
        experiment: Communication points, held inputs, overridden parameters.
        variables: What to record.
        kind: How to run it; None: as Co-Simulation if it can do that.
        time_limit: For the whole run, in s.

    Raises:
        PackageError: If the file is no FMU archive.
        ValidationError: If the FMU lacks variables, is of another FMI version, kind or for another platform.
        ToolError: If the FMU crashes, hangs, or a call returns Discard, Error or Fatal (in the last of several
            experiments it is reported, and is no error).
    """
    return run_fmu_process(fmu, [experiment], variables, kind=kind, time_limit=time_limit).simulations[0]


def run_fmu_process(
    fmu: Path,
    experiments: Sequence[ExperimentValues],
    variables: Sequence[str],
    *,
    kind: InterfaceType | None = None,
    sessions: Mapping[str, Operations] = MappingProxyType({}),
    watched: Sequence[str] = (),
    tolerance: float | None = None,
    state_scales: Mapping[str, float] | None = None,
    time_limit: float = TIME_LIMIT,
    keep_partial: bool = False,
) -> FmuProcessResult:
    """Run an FMU through experiments (an instance each), then through sessions, in one process.

    ``tolerance`` is what the FMU promises; None: as the strictest experiment says. ``state_scales``: as
    :meth:`FmuDescription.driver_request` has them. ``watched``: variables that are
    read before and after events in Model Exchange. ``keep_partial``: a run ends at the first value that is no finite
    number, and what it had reached by then, or by the step that failed, is returned and not raised. Other arguments and
    errors as for :func:`simulate_fmu`; the time limit is for each experiment, and for all sessions together.
    """
    tree = read_archive(fmu)
    description = read_fmu_description(tree)
    interface_type = next(iter(description.identifiers)) if kind is None else kind
    if interface_type not in description.identifiers:
        remedy = f"it offers {' and '.join(description.identifiers)}"
        fault = Fault(f"offers no {interface_type}", "modelDescription.xml", remedy)
        raise ValidationError("the FMU cannot be run here:", [fault])
    fmu_tolerance = min((each.tolerance for each in experiments), default=0.0) if tolerance is None else tolerance
    for experiment in experiments:
        require_experiment_variables(description, experiment, variables)
    with make_temporary_folder("run the FMU") as folder:
        _write_fmu(tree, folder / "unit")
        request = {
            "cvode_callbacks": compile_cvode_callbacks(folder) if interface_type == "ModelExchange" else None,
            "folder": str(folder),
            "unzipped": str(folder / "unit"),
            **description.driver_request(interface_type, fmu_tolerance, state_scales),
            "variables": [description.variables[v].reference for v in variables],
            "names": list(variables),
            "stops_at_not_finite": keep_partial,
            "watched": [description.variables[v].reference for v in watched],
            "experiments": [
                _form_experiment_record(folder, description, k, each) for k, each in enumerate(experiments)
            ],
            "sessions": {name: list(map(list, operations)) for name, operations in sessions.items()},
        }
        (folder / REQUEST_FILE).write_text(json.dumps(request), encoding="utf-8")
        total_time_limit = time_limit * (len(experiments) + bool(sessions))
        return _run_driver(
            fmu, folder, experiments, tuple(variables), interface_type, total_time_limit, keep_partial=keep_partial
        )


def _form_experiment_record(
    folder: Path, description: FmuDescription, experiment_index: int, experiment: ExperimentValues
) -> dict[str, object]:
    """Return one experiment as the driver reads it."""
    input_file = folder / f"held-{experiment_index}.npy"
    np.save(input_file, experiment.inputs)
    return {
        "held": str(input_file),
        "values": str(folder / f"values-{experiment_index}.npy"),
        "step": experiment.step,
        "stop": float(experiment.time[-1]),
        "tolerance": experiment.tolerance,
        "inputs": [description.variables[v].reference for v in experiment.input_names],
        "starts": {
            "references": [description.variables[v].reference for v in experiment.overridden_values],
            "values": list(experiment.overridden_values.values()),
        },
    }


def require_experiment_variables(
    description: FmuDescription, experiment: ExperimentValues, variables: Sequence[str]
) -> None:
    """Raise if an FMU lacks variables that the experiment sets or records.

    Raises:
        ValidationError: If it lacks some of that.
    """
    known_variables = description.variables
    faults = []
    for role, names in (
        ("variable", variables),
        ("input", experiment.input_names),
        ("parameter", tuple(experiment.overridden_values)),
    ):
        for name in names:
            if name not in known_variables:
                faults.append(Fault(f"the FMU has no {role} {name}", name, "is it an FMU of this model?"))
            elif not known_variables[name].is_double:
                faults.append(Fault("is no scalar of doubles in the FMU", name, "declare it as Real or Float64"))
            elif role == "input" and known_variables[name].causality != "input":
                faults.append(Fault(f"is {known_variables[name].causality}, not input, in the FMU", name))
    if faults:
        raise ValidationError("the FMU cannot be compared with the model:", faults)


def _write_fmu(tree: InMemoryFileTree, folder: Path) -> None:
    """Write an FMU into a folder; `resources` exists even if it is empty, as FMI demands.

    Sources, most of an FMU's files, are left out: FMI promises a running FMU no more than its resources.
    """
    for path in tree:
        if path.startswith("sources/"):
            continue
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(tree[path])
    (folder / "resources").mkdir(exist_ok=True)


def _run_driver(
    fmu: Path,
    folder: Path,
    experiments: Sequence[ExperimentValues],
    variables: tuple[str, ...],
    kind: InterfaceType,
    time_limit: float,
    *,
    keep_partial: bool,
) -> FmuProcessResult:
    """Run the driver and read its results; every failure becomes a ToolError with the FMU's messages."""
    headline = f"running {fmu.name} in fmpy failed:"
    try:
        end = run_request_in_process(folder, time_limit)
    except TimeoutError as error:
        timeout_fault = Fault(
            f"it did not finish within {time_limit:g} s", fmu.name, "give it more time or a shorter experiment"
        )
        raise ToolError(headline, [timeout_fault, *_collect_messages(folder, "", "")]) from error
    messages = _collect_messages(folder, end.stdout, end.stderr)
    if end.code != 0:
        end_fault = (
            _describe_late_end(end.code) if (folder / "outcome.json").exists() else _describe_driver_end(end.code)
        )
        raise ToolError(headline, [replace(end_fault, where=fmu.name), *messages])
    outcome = json.loads((folder / "outcome.json").read_text(encoding="utf-8"))
    failures = [run["failure"] for run in outcome["experiments"]]
    refusal = next(filter(None, failures), "")
    has_begun = keep_partial and outcome["experiments"][0]["reached"] > 0
    if refusal and not has_begun and (failures[0] or len(failures) < len(experiments)):
        raise ToolError(headline, [Fault(refusal, fmu.name), *messages])
    if refusal and messages:
        refusal += f" ({messages[-1].what})"
    simulations = tuple(
        FmuSimulationResult(
            names=variables,
            time=experiment.time,
            values=np.load(folder / f"values-{k}.npy"),
            log=tuple(str(message) for message in messages),
            seconds_per_step=run["seconds"] / len(experiment.inputs),
            kind=kind,
        )
        for k, (experiment, run) in enumerate(zip(experiments, outcome["experiments"], strict=True))
    )
    events = tuple(run["events"] for run in outcome["experiments"])
    return FmuProcessResult(simulations, outcome["sessions"], refusal, events)


def _describe_driver_end(code: int) -> Fault:
    """Return how a driver process ended, in words: by exit code or by signal."""
    if code >= 0:
        return Fault(f"the process that ran it ended with {describe_process_end(code)}")
    return Fault(f"the FMU crashed: its process was {describe_process_end(code)}")


def _describe_late_end(code: int) -> Fault:
    """Return how a process ended after the FMU had finished and was freed, in words."""
    end_description = f"{'was' if code < 0 else 'ended with'} {describe_process_end(code)}"
    message = f"the FMU ran to its end, and then its process {end_description} as it ended; so may every host of it"
    return Fault(message, remedy="FMUs of pythonfmu 0.7.0 free a block twice there: build it with another version")


def _collect_messages(folder: Path, output_text: str, err: str) -> list[Fault]:
    """Return the FMU's log messages and console output, the last lines of each."""
    log = folder / "log.jsonl"
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    messages = [
        Fault(f"{status} {category}: {text}".strip(), "log") for status, category, text in map(json.loads, lines)
    ]
    for stream, text in (("stdout", output_text), ("stderr", err)):
        lines = [
            line
            for line in _EARLIER_EXCEPTION.split(text)[-1].splitlines()
            if line.strip() and not _TRACEBACK_FRAME.match(line)
        ]
        messages += [_describe_console_line(line, stream) for line in dict.fromkeys(lines[-_SHOWN_LOG_LINES:])]
    return messages[-2 * _SHOWN_LOG_LINES :]


def _describe_console_line(line: str, stream: str) -> Fault:
    """Return a line of a console; of a library that is refused, which it is and why."""
    refusal = _LIBRARY_REFUSAL.fullmatch(line)
    if refusal is None:
        return Fault(line, stream)
    path, reason = refusal.groups()
    remedy = "export the FMU again, for this platform"
    return Fault(f"its library cannot be loaded: {reason.removeprefix(f'{path}: ')}", Path(path).name, remedy)
