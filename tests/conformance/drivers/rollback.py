"""States: kept, set, serialized; in the same instance, in another, and in another process.

Arguments: FMU; file; ``write`` or ``read``.
"""

import struct
import sys
from pathlib import Path

from fmi2 import Unit, refused, run

path, file, action = sys.argv[1:]
unit = Unit(path)


def bits(rows):
    return b"".join(struct.pack(f"{len(row)}d", *row) for row in rows)


if action == "read":
    # The file holds a state, and what came after it in the process that wrote it.
    content = Path(file).read_bytes()
    size = int.from_bytes(content[:8], "little")
    other = unit.instance("reader")
    state = other.deSerializeFMUstate(content[8 : 8 + size])
    other.setFMUstate(state)
    other.freeFMUstate(state)
    assert bits(run(unit, other, 10, first=5)) == content[8 + size :]
    # Refused states leave the instance as it was, usable and free to go.
    before = unit.get(other)
    for damaged in (b"", content[8:40], bytes(size), content[8 : 7 + size] + b"\x00"):
        unit.messages.clear()
        assert refused(other.deSerializeFMUstate, damaged)
        assert unit.messages[0][:2] == (3, "logStatusError"), unit.messages
    assert unit.get(other) == before
    other.terminate()
    other.freeInstance()
else:
    slave = unit.started(tolerance=1e-7)
    unit.set(slave, tau=0.2)
    run(unit, slave, 5)
    state = slave.getFMUstate()
    data = slave.serializeFMUstate(state)
    future = bits(run(unit, slave, 10, first=5))
    for _ in range(3):
        slave.setFMUstate(state)
        unit.set(slave, tau=0.9)
        run(unit, slave, 2, first=5)
        slave.setFMUstate(state)
        assert bits(run(unit, slave, 10, first=5)) == future
    slave.freeFMUstate(state)
    Path(file).write_bytes(len(data).to_bytes(8, "little") + bytes(data) + future)
sys.stdout.write("ok\n")
