"""An FMU through fmpy's simulate_fmu, once for each run; prints the last values of each as a line of JSON.

Arguments: FMU; runs as JSON, lists of kind (ModelExchange, CoSimulation), solver (CVode, Euler), step, stop and
relative tolerance; names.
"""

import json
import sys

import fmpy

path, runs, *names = sys.argv[1:]
for kind, solver, step, stop, tolerance in json.loads(runs):
    result = fmpy.simulate_fmu(
        path,
        fmi_type=kind,
        solver=solver,
        step_size=step,
        output_interval=step,
        stop_time=stop,
        relative_tolerance=tolerance,
        output=names,
    )
    row = result[-1]
    sys.stdout.write(json.dumps({"time": float(row["time"]), **{name: float(row[name]) for name in names}}) + "\n")
