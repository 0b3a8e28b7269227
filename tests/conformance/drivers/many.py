"""FMUs of different models in one process, two instances each, in turns: each moves as it does alone."""

import sys

from fmi2 import Unit, run

units = [Unit(path) for path in sys.argv[1:]]
alone = [run(unit, unit.started(), 5) for unit in units]
slaves = [(unit, unit.started(f"instance {k}")) for k in range(2) for unit in units]
together = [[] for _ in slaves]
for i in range(5):
    for k, (unit, slave) in enumerate(slaves):
        together[k] += run(unit, slave, 1, first=i)
assert together == alone + alone
assert len({unit.description.guid for unit in units}) == len(units)
assert len({tuple(map(tuple, seen)) for seen in alone}) == len(units), "different FMUs move differently"
for _, slave in slaves:
    slave.terminate()
    slave.freeInstance()
sys.stdout.write("ok\n")
