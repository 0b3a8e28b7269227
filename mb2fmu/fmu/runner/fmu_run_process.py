"""Run one FMU in a process of its own (``python fmu_run_process.py request.json``): a crash ends only this process.

The request (written by ``validation.runs.fmu_run``) names everything. Written into its ``folder``: ``log.jsonl`` (one
[status, category, message] a line, as they come), ``values-i.npy`` (n + 1, n_variables) of experiment i, and
``outcome.json``.

A request with a ``script`` runs that instead, with its ``arguments``, as ``python -c`` does: fmpy is imported already.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from fmpy.fmi1 import FMICallException

from mb2fmu.fmu.runner.api_call_sessions import ApiCallSession
from mb2fmu.fmu.runner.fmpy_instances import FMI_STATUS_NAMES, INSTANCE_CLASSES, FmuMessageLog


def run_fmu_experiment(request: dict[str, Any], experiment: dict[str, Any], log: FmuMessageLog) -> dict[str, Any]:
    """Step through an experiment; return where and why it ended, or how long it took."""
    held = np.load(experiment["held"])
    steps, size = len(held), float(experiment["step"])
    values = np.full((steps + 1, len(request["variables"])), np.nan)
    outcome: dict[str, Any] = {"reached": 0, "failure": "", "seconds": 0.0}
    k = 0
    try:
        instance = INSTANCE_CLASSES[request["kind"], request["version"]](request, log)
        instance.initialize(experiment, held[0].tolist())
        read_variables = instance.make_reader(request["variables"])
        values[0] = read_variables()
        for k in range(steps):
            if k:
                instance.change(experiment["inputs"], held[k].tolist())
            begin = time.perf_counter()
            outcome["failure"] = instance.step(k * size, size)
            outcome["seconds"] += time.perf_counter() - begin
            if outcome["failure"]:
                break
            values[k + 1] = read_variables()
            if request["stops_at_not_finite"] and not np.isfinite(values[k + 1]).all():
                first = int(np.flatnonzero(~np.isfinite(values[k + 1]))[0])
                what = f"{request['names'][first]} is {values[k + 1, first]}"
                outcome["failure"] = f"{what} at t = {(k + 1) * size:.9g} s"
                break
            outcome["reached"] = k + 1
        else:
            instance.close()
    except FMICallException as error:
        outcome["failure"] = (
            f"{error.function} returned {FMI_STATUS_NAMES[error.status]} in the step from t = {k * size:.9g} s"
        )
    except RuntimeError as error:  # CVODE's failures
        outcome["failure"] = f"{error} in the step from t = {k * size:.9g} s"
    outcome["events"] = instance.recorded_events() if outcome["reached"] else []
    np.save(experiment["values"], values)
    return outcome


def run_fmu_process_request(request_file: Path) -> None:
    """Read a request; run its script, or its experiments until one fails, then its sessions, and write the outcome."""
    request = json.loads(request_file.read_text(encoding="utf-8"))
    if "script" in request:
        sys.argv[1:] = request["arguments"]
        exec(request["script"], {"__name__": "__main__"})  # noqa: S102  our own scripts
        return
    folder = Path(request["folder"])
    outcome: dict[str, Any] = {"experiments": [], "sessions": {}}
    others: list[Any] = []
    with (folder / "log.jsonl").open("w", encoding="utf-8") as stream:
        log = FmuMessageLog(stream)
        for experiment in request["experiments"]:
            if outcome["experiments"] and request["several"]:  # what follows is not alone in its process
                others.append(INSTANCE_CLASSES[request["kind"], request["version"]](request, log))
            outcome["experiments"].append(run_fmu_experiment(request, experiment, log))
            if outcome["experiments"][-1]["failure"]:
                break
        else:
            for name, operations in request["sessions"].items():
                outcome["sessions"][name] = ApiCallSession(request, log).run(operations)
        for other in others:
            other.free()
    (folder / "outcome.json").write_text(json.dumps(outcome), encoding="utf-8")


if __name__ == "__main__":
    run_fmu_process_request(Path(sys.argv[1]))
