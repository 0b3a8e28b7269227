"""The life of a real FMU's instances, as an importer may lead it. Arguments: FMU; file; ``write`` or ``read``.

``write``: reset gives a new instance; the same calls give the same bits; states kept, set and serialized; steps in
parts and in one; refused calls; instances in threads; and a serialized state with what came after it is left in the
file. ``read``: that state goes on in another process.
"""

import math
import struct
import sys
import threading
from pathlib import Path

import numpy as np
from native import Unit, refused

path, file, action = sys.argv[1:]
unit = Unit(path)
step = float(unit.description.defaultExperiment.stepSize)
tolerance = float(unit.description.defaultExperiment.tolerance)
everything = unit.named()
outputs = [unknown.variable.name for unknown in unit.description.outputs]
inputs = unit.named(causality="input")
SOLVERS = (1, 2, 3, 4)


def bits(rows):
    return b"".join(struct.pack(f"{len(row)}d", *row) for row in rows)


def run(instance, steps, first=0, size=step):
    seen = []
    for k in range(first, first + steps):
        instance.set(**{name: math.sin(0.7 * k) for name in inputs})
        instance.step(k * size, size)
        seen.append(instance.get(everything))
    return seen


def started(solver=None):
    instance = unit.instance("CS")
    if solver is not None:
        instance.choose(solver)
    return instance.initialize(tolerance=tolerance)


def check_states(solver):
    """Kept, set and serialized; in the same instance and in another: the same future, bit for bit."""
    instance = started(solver)
    run(instance, 7)
    state = instance.save()
    content = instance.serialize(state)
    future = bits(run(instance, 8, 7))
    instance.restore(state)
    instance.set(**dict.fromkeys(inputs, 3.0))
    instance.step(7 * step, 0.3 * step)
    instance.restore(state)
    assert bits(run(instance, 8, 7)) == future, "a state that was set goes another way"
    instance.forget(state)
    other = started(solver)
    again = other.deserialize(content)
    other.restore(again)
    other.forget(again)
    assert bits(run(other, 8, 7)) == future, "a deserialized state goes another way"
    other.close()
    instance.close()
    return content, future


def check_reset(solver):
    instance = started(solver)
    first = bits(run(instance, 10))
    instance.fmu.reset()
    if solver is not None:
        instance.choose(solver)
    instance.initialize(tolerance=tolerance)
    assert bits(run(instance, 10)) == first, "reset is not a new instance"
    instance.close()
    return first


def check_parts():
    """Ten steps, or one ten times as long: the same motion to the tolerance."""
    ends = []
    for steps, size in ((10, step), (1, 10 * step), (40, step / 4)):
        instance = started()
        for k in range(steps):
            instance.step(k * size, size)
        ends.append(np.array(instance.get(unit.states)))
        instance.close()
    scale = np.max(np.abs(ends[0])) + 1.0
    for end in ends[1:]:
        assert np.max(np.abs(end - ends[0])) < 2000 * tolerance * scale, "the size of steps changes the motion"


def check_refusals():
    """What is wrong is refused with a message, and leaves all as it was; a state that was kept leads out of it."""
    instance = started()
    run(instance, 3)
    state = instance.save()
    before = instance.get(everything)
    wrong = [
        lambda: instance.step(3 * step, 0.0),
        lambda: instance.step(3 * step, -step),
        lambda: instance.step(3 * step, math.nan),
        lambda: instance.step(77.0, step),
        lambda: instance.set(**{unit.states[0]: math.nan}),
        lambda: (instance.fmu.getFloat64 if instance.new else instance.fmu.getReal)([99999]),
        *(lambda n=name, v=value: instance.set(**{n: v}) for name in inputs for value in (math.nan, math.inf)),
    ]
    for number, call in enumerate(wrong):
        unit.messages.clear()
        assert refused(call), number
        assert unit.messages, number
        assert "%" not in unit.messages[0][2].replace("%%", ""), unit.messages
        assert instance.get(everything) == before, number
        instance.restore(state)
    instance.forget(state)
    run(instance, 1, 3)
    instance.close()
    bounded = unit.instance("CS").initialize(stop=5 * step)
    run(bounded, 5)
    assert refused(bounded.step, 5 * step, step), "a step past the stop time"
    bounded.fmu.freeInstance()
    for parameter in unit.named(causality="parameter")[:1]:
        instance = unit.instance("CS")
        assert refused(instance.set, **{parameter: math.nan})
        instance.fmu.freeInstance()


def check_threads(expected):
    seen = {}

    def work(number):
        instance = unit.instance("CS", f"thread {number}").initialize(tolerance=tolerance)
        seen[number] = bits(run(instance, 10))
        instance.close()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(seen.values()) == {expected}
    assert len(seen) == 8


if action == "write":
    default = check_reset(None)
    for solver in SOLVERS:
        check_reset(solver)
        check_states(solver)
    content, future = check_states(None)
    check_parts()
    check_refusals()
    check_threads(default)
    crowd = [unit.instance("CS", f"{i}").initialize(tolerance=tolerance) for i in range(200)]
    assert bits(run(crowd[100], 10)) == default
    for instance in crowd:
        instance.close()
    Path(file).write_bytes(len(content).to_bytes(8, "little") + content + future)
else:
    stored = Path(file).read_bytes()
    size = int.from_bytes(stored[:8], "little")
    instance = unit.instance("CS")
    state = instance.deserialize(stored[8 : 8 + size])
    instance.restore(state)
    instance.forget(state)
    assert bits(run(instance, 8, 7)) == stored[8 + size :]
    for damaged in (b"", stored[8:40], bytes(size), stored[8 : 7 + size] + bytes([stored[7 + size] ^ 1])):
        unit.messages.clear()
        assert refused(instance.deserialize, damaged)
        assert unit.messages
    instance.fmu.freeInstance()
sys.stdout.write("ok\n")
