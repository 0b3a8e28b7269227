"""Runs an OSP configuration in libcosim; prints values at the end as JSON. Arguments: folder, step, stop, names."""

import json
import sys

from libcosimpy.CosimExecution import CosimExecution
from libcosimpy.CosimObserver import CosimObserver

path, step, stop, *names = sys.argv[1:]
execution = CosimExecution.from_osp_config_file(osp_path=path)
observer = CosimObserver.create_last_value()
execution.add_observer(observer=observer)
if not execution.step(step_count=round(float(stop) / float(step))):
    sys.exit("libcosim could not step")
found = {}
for name in names:
    component, _, variable = name.partition(".")
    index = execution.slave_index_from_instance_name(component)
    known = {each.name.decode(): each.reference for each in execution.slave_variables(slave_index=index)}
    (found[name],) = observer.last_real_values(slave_index=index, variable_references=[known[variable]])
sys.stdout.write(json.dumps(found) + "\n")
