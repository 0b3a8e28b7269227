"""Runs an ``.ssp`` by FMPy's own SSP simulation; prints values at the end as JSON.

Arguments: file, step, stop, names.
"""

import json
import sys

from fmpy.ssp.simulation import simulate_ssp

path, step, stop, *names = sys.argv[1:]
result = simulate_ssp(path, stop_time=float(stop) - 0.5 * float(step), step_size=float(step))
sys.stdout.write(json.dumps({name: float(result[name][-1]) for name in names if name in result.dtype.names}) + "\n")
