"""Runs an ``.ssp`` in ecos; prints values at the end as JSON. Arguments: file, step, stop, names."""

import json
import sys

from ecospy import EcosSimulation

path, step, stop, *names = sys.argv[1:]
with EcosSimulation(ssp_path=path, step_size=float(step)) as simulation:
    simulation.init(parameter_set="initialValues")  # without a name it applies no values
    simulation.step(round(float(stop) / float(step)))
    found = {name: simulation.get_real(name.replace(".", "::", 1)) for name in names}
    simulation.terminate()
sys.stdout.write(json.dumps(found) + "\n")
