"""Run cases of a study one after the other with one instance of an FMU, in the calling process."""

from __future__ import annotations

import io
import json
import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from fmpy.fmi1 import FMICallException

from mb2fmu.analysis.studies.output_reductions import find_level_crossings
from mb2fmu.analysis.studies.study_plan_words import Direction, Take
from mb2fmu.fmu.runner.fmpy_instances import FMI_STATUS_NAMES, INSTANCE_CLASSES, FmuMessageLog

Floats = npt.NDArray[np.float64]

LONG_CASE_S = 0.1
"""In s: cases that take longer get a new instance each, which costs next to nothing then."""
_HANGING_EXIT_CODE = 70
"""Exit code of a process whose FMU does not return."""
_HANGING_GRACE_S = 5.0
"""In s: between steps a case ends by itself when its time is over; a call that hangs is given so much more."""


@dataclass(frozen=True, slots=True)
class StudyCaseResultColumn:
    """One kept number of a case.

    Attributes:
        place: Of the variable among those that are read.
        take: What of its values.
        level: Of ``first-crossing``.
        direction: Likewise.
    """

    place: int
    take: Take
    level: float = 0.0
    direction: Direction = "either"


@dataclass(frozen=True, slots=True, eq=False)
class StudyCaseRunSettings:
    """Data shared by all cases of a study.

    Attributes:
        request: As :mod:`mb2fmu.fmu.runner.fmpy_instances` reads it, without the folder of the FMU.
        step: Communication step, s.
        tolerance: Relative.
        references: Of start values that are set: first those that vary.
        fixed: Values of the others.
        input_references: Of inputs.
        held: Inputs over each communication step, shape (n_steps, n_r).
        varied_inputs: Columns of ``held`` that vary: they keep the case's value.
        order: Column of the cases for each start value that varies, then for each such input.
        read: References of the variables that are read.
        names: Their names.
        columns: Of the results.
        kept: Places, among those read, of what is kept at all communication points.
        time_limit: For one case, s.
    """

    request: dict[str, Any]
    step: float
    tolerance: float
    references: tuple[int, ...]
    fixed: tuple[float, ...]
    input_references: tuple[int, ...]
    held: Floats
    varied_inputs: tuple[int, ...]
    order: tuple[int, ...]
    read: tuple[int, ...]
    names: tuple[str, ...]
    columns: tuple[StudyCaseResultColumn, ...]
    kept: tuple[int, ...]
    time_limit: float


@dataclass(frozen=True, slots=True, eq=False)
class StudyCaseResults:
    """Results of cases.

    Attributes:
        values: NaN where a case failed, shape (n, n_columns).
        messages: Why a case failed; empty where it did not.
        paths: What is kept at communication points, shape (n, n_t, n_kept).
        seconds: That the cases took.
    """

    values: Floats
    messages: tuple[str, ...]
    paths: Floats
    seconds: float


class StudyCaseRunner:
    """One FMU in this process.

    An instance is reset between cases if that is the same as a new one: the first case is run both ways.

    Args:
        job: What all cases have in common.
        unzipped: Folder of the FMU.
    """

    def __init__(self, job: StudyCaseRunSettings, unzipped: Path) -> None:
        self._job = job
        self._request = {**job.request, "unzipped": str(unzipped), "variables": list(job.read)}
        self._instance: Any = None
        self._resets: bool | None = None
        self._message_log = io.StringIO()
        self._lock = threading.Lock()
        self._deadline = float("inf")
        self._through = bool(job.kept) or any(column.take != "end" for column in job.columns)

    def run(self, cases: Floats) -> StudyCaseResults:
        """Run cases, a row of values each."""
        with self._lock:
            begin = time.perf_counter()
            values = np.full((len(cases), len(self._job.columns)), np.nan)
            paths = np.full((len(cases), len(self._job.held) + 1, len(self._job.kept)), np.nan)
            messages = []
            for k, case in enumerate(cases):
                path, message = self._one(case)
                if not message:
                    values[k] = _compute_case_results(path, self._job)
                    paths[k] = path[:, self._job.kept] if self._job.kept else paths[k]
                messages.append(message)
            return StudyCaseResults(values, tuple(messages), paths, time.perf_counter() - begin)

    def start_call_watchdog(self) -> None:
        """End this process if a call of the FMU does not return: the sender of the case notices, and continues."""

        def look() -> None:
            """End the process when a case has passed its deadline."""
            while True:
                time.sleep(1.0)
                if time.monotonic() > self._deadline + _HANGING_GRACE_S:
                    os._exit(_HANGING_EXIT_CODE)

        threading.Thread(target=look, name="time limit of cases", daemon=True).start()

    def _one(self, case: Floats) -> tuple[Floats, str]:
        """Run one case, with the present instance or a new one."""
        if self._resets is None:
            begin = time.perf_counter()
            path, message = self._moved(case)
            if message:
                return path, message  # the next case decides
            if time.perf_counter() - begin > LONG_CASE_S:
                self._resets = False
            else:
                again, refused = self._moved(case)
                self._resets = not refused and again.tobytes() == path.tobytes()
            return path, message
        if not self._resets:
            self._drop()
        return self._moved(case)

    def _moved(self, case: Floats) -> tuple[Floats, str]:
        """Return the values read, shape (n_t, n_read), and why the case failed; an empty message: it did not."""
        job = self._job
        path = np.full((len(job.held) + 1, len(job.read)), np.nan)
        self._deadline = time.monotonic() + job.time_limit
        self._message_log.seek(0)
        self._message_log.truncate()
        message = ""
        try:
            message = self._stepped(case, path)
            if not message:
                self._instance.terminate()
        except FMICallException as error:
            message = f"{error.function} returned {FMI_STATUS_NAMES[error.status]}"
            if FMI_STATUS_NAMES[error.status] == "fatal":
                self._instance = None  # nothing may be called any more
        except (RuntimeError, OSError) as error:  # CVODE's failures; a library that cannot be loaded
            message = str(error)
        finally:
            self._deadline = float("inf")
        if message:
            message += self._last_words()
            self._drop()
        return path, message or _describe_non_finite(path, job, through=self._through)

    def _stepped(self, case: Floats, path: Floats) -> str:
        """Step from start to end; return why it stopped early, empty if it did not."""
        job, starts = self._job, len(self._job.order) - len(self._job.varied_inputs)
        chosen = case[list(job.order)] if job.order else case[:0]
        held = job.held
        if job.varied_inputs:
            held = held.copy()
            held[:, job.varied_inputs] = chosen[starts:]
        rows = held.tolist()
        if self._instance is None:
            self._instance = INSTANCE_CLASSES[self._request["kind"], self._request["version"]](
                self._request, FmuMessageLog(self._message_log)
            )
        else:
            self._instance.reset()
        instance = self._instance
        inputs, read = list(job.input_references), instance.make_reader(list(job.read))
        experiment = {
            "tolerance": job.tolerance,
            "stop": job.step * len(rows),
            "starts": {"references": list(job.references), "values": [*chosen[:starts].tolist(), *job.fixed]},
            "inputs": inputs,
        }
        instance.initialize(experiment, rows[0])
        if self._through:
            path[0] = read()
        for k in range(len(rows)):
            if k and inputs:
                instance.change(inputs, rows[k])
            failure = instance.step(k * job.step, job.step)
            if failure:
                return str(failure)
            if self._through:
                path[k + 1] = read()
            if time.monotonic() > self._deadline:
                return f"it was not done after {job.time_limit:g} s, at t = {(k + 1) * job.step:.6g} s"
        if not self._through:
            path[-1] = read()
        return ""

    def _last_words(self) -> str:
        """Return the FMU's last message."""
        lines = self._message_log.getvalue().splitlines()
        return f" ({json.loads(lines[-1])[2]})" if lines else ""

    def _drop(self) -> None:
        """Free the instance, as far as it permits."""
        instance, self._instance = self._instance, None
        if instance is not None:
            instance.free()


def _compute_case_results(path: Floats, job: StudyCaseRunSettings) -> Floats:
    """Return the results of a case.

    Args:
        path: What was read at communication points, shape (n_t, n_read).
        job: What is requested.
    """
    return np.array([_compute_result(path[:, column.place], column, job.step) for column in job.columns])


def _compute_result(y: Floats, column: StudyCaseResultColumn, step: float) -> float:
    """Return one result from the values at communication points, with lines between them."""
    match column.take:
        case "end":
            return float(y[-1])
        case "largest":
            return float(y.max())
        case "smallest":
            return float(y.min())
        case "mean":
            return float((y[1:] + y[:-1]).mean() / 2.0)
        case "rms":
            between = (y[1:] ** 2 + y[1:] * y[:-1] + y[:-1] ** 2) / 3.0
            return float(np.sqrt(between.mean()))
        case "first-crossing":
            side = y - column.level
            at = np.flatnonzero(find_level_crossings(side[:-1], side[1:], 0.0, column.direction))
            return float(step * (at[0] + side[at[0]] / (side[at[0]] - side[at[0] + 1]))) if len(at) else float("nan")


def _describe_non_finite(path: Floats, job: StudyCaseRunSettings, *, through: bool) -> str:
    """Name the first value that is not finite."""
    seen = path if through else path[-1:]
    if np.isfinite(seen).all():
        return ""
    row, place = np.argwhere(~np.isfinite(seen))[0]
    t = job.step * (row if through else len(path) - 1)
    return f"{job.names[place]} is {seen[row, place]} at t = {t:.6g} s"
