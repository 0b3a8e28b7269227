"""A host that runs units, frees them and ends as processes do: what the units loaded is still loaded then."""

import sys

from fmi2 import Unit, run

for path in sys.argv[1:]:
    unit = Unit(path)
    slave = unit.started()
    run(unit, slave, 2)
    slave.terminate()
    slave.freeInstance()
sys.stdout.write("ok\n")
