"""Different native FMUs in one process, two instances each, in turns: each moves as it does alone.

Arguments: local or global (how the libraries are loaded), units.
"""

import ctypes
import sys
from pathlib import Path

from native import Unit

loading, *paths = sys.argv[1:]
units = [Unit(path) for path in paths]
if loading == "global":
    for unit in units:
        (library,) = Path(unit.folder, "binaries").rglob("*.so")
        ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)


def begun(unit, name):
    return unit, unit.instance("CS", name).initialize()


def moved(unit, instance, i):
    instance.step(0.05 * i, 0.05)
    return instance.get([*unit.states, *(variable.name for variable in unit.derivatives)])


def accepts(unit, token):
    """Whether an FMU instantiates itself with a token."""
    own, unit.description.guid = unit.description.guid, token
    try:
        unit.instance("CS").fmu.freeInstance()
    except Exception as error:  # fmpy has no class of its own for it
        if "instantiate" not in str(error):
            raise
        return False
    finally:
        unit.description.guid = own
    return True


alone = []
for unit, other in zip(units, [*units[2:], *units[:2]], strict=True):
    assert accepts(unit, unit.description.guid)
    assert not accepts(unit, other.description.guid), "another FMU's token"
    _, instance = begun(unit, "alone")
    alone.append([moved(unit, instance, i) for i in range(4)])
    instance.close()
several = [begun(unit, f"instance {k}") for k in range(2) for unit in units]
together = [[moved(unit, instance, i) for unit, instance in several] for i in range(4)]
assert [list(each) for each in zip(*together, strict=True)] == alone + alone
assert len({str(seen) for seen in alone}) == len(units), "different FMUs move differently"
for _, instance in several:
    instance.close()
sys.stdout.write("ok\n")
