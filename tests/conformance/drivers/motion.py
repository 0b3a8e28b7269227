"""An FMU through fmpy's simulate_fmu; prints its last values as JSON.

Arguments: FMU, kind (ModelExchange, CoSimulation), solver (CVode, Euler), step, stop, relative tolerance, names.
"""

import json
import sys

import fmpy

path, kind, solver, step, stop, tolerance, *names = sys.argv[1:]
result = fmpy.simulate_fmu(
    path,
    fmi_type=kind,
    solver=solver,
    step_size=float(step),
    output_interval=float(step),
    stop_time=float(stop),
    relative_tolerance=float(tolerance),
    output=names,
)
row = result[-1]
sys.stdout.write(json.dumps({"time": float(row["time"]), **{name: float(row[name]) for name in names}}) + "\n")
