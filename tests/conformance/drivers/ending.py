"""Hosts that run FMUs, free them and end as processes do: what the FMUs loaded is still loaded then.

The first argument says how many such hosts there are: forks of this process, which has loaded all but the units.
"""

import os
import sys

import numpy as np
from fmi2 import Unit, run


def host(units):
    for unit in units:
        slave = unit.started()
        run(unit, slave, 2)
        slave.terminate()
        slave.freeInstance()


assert np.zeros(1).sum() == 0.0  # loaded before, not by each FMU again
opened = [Unit(path) for path in sys.argv[2:]]
for k in range(int(sys.argv[1])):
    child = os.fork()
    if child == 0:
        host(opened)
        sys.exit(0)  # through Python's and C's own endings
    _, status = os.waitpid(child, 0)
    assert status == 0, f"host {k} ended with status {status}"
sys.stdout.write("ok\n")
