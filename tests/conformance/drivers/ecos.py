"""Runs an FMU in ecos; prints what it read at the end as JSON. Arguments: FMU, step size, steps, variable names."""

import json
import sys

from ecospy import EcosSimulation, EcosSimulationStructure

path, step, steps, *names = sys.argv[1:]
structure = EcosSimulationStructure()
structure.add_model("unit", path)
with EcosSimulation(structure=structure, step_size=float(step)) as simulation:
    simulation.init()
    simulation.step(int(steps))
    sys.stdout.write(json.dumps({name: simulation.get_real(f"unit::{name}") for name in names}) + "\n")
    simulation.terminate()
