"""Runs an FMU in libcosim; prints what it read last as JSON. Arguments: FMU, step size, steps, variable names."""

import json
import sys

from libcosimpy.CosimExecution import CosimExecution
from libcosimpy.CosimObserver import CosimObserver
from libcosimpy.CosimSlave import CosimLocalSlave

path, step, steps, *names = sys.argv[1:]
execution = CosimExecution.from_step_size(step_size=round(float(step) * 1e9))  # in ns
index = execution.add_local_slave(CosimLocalSlave(fmu_path=path, instance_name="unit"))
observer = CosimObserver.create_last_value()
execution.add_observer(observer=observer)
assert execution.step(step_count=int(steps))
references = {variable.name.decode(): variable.reference for variable in execution.slave_variables(slave_index=index)}
values = observer.last_real_values(slave_index=index, variable_references=[references[name] for name in names])
sys.stdout.write(json.dumps(dict(zip(names, values, strict=True))) + "\n")
