"""The life of instances of one FMU (the pendulum), as an importer may lead it."""

import math
import sys
import threading

from fmi2 import Unit, refused, run
from fmpy.fmi2 import fmi2LastSuccessfulTime, fmi2Terminated

unit = Unit(sys.argv[1])

# The importer's start time, stop time and tolerance arrive; variables set in initialization count.
slave = unit.started(start=1.5, stop=2.0, tolerance=1e-9, q=0.3, l=0.7)
assert unit.get(slave, "time", "q", "l") == [1.5, 0.3, 0.7]
first = run(unit, slave, 10, start=1.5)

# The stop time holds, and the refusal says so.
unit.messages.clear()
assert refused(slave.doStep, currentCommunicationPoint=2.0, communicationStepSize=0.05)
((status, category, text),) = unit.messages
assert (status, category) == (2, "logStatusDiscard"), unit.messages
assert "past the stop time" in text
assert slave.getBooleanStatus(fmi2Terminated)
assert slave.getRealStatus(fmi2LastSuccessfulTime) == 2.0
assert unit.get(slave) == first[-1]

# Reset gives a new instance.
slave.reset()
unit.start(slave, start=1.5, stop=2.0, tolerance=1e-9, q=0.3, l=0.7)
assert run(unit, slave, 10, start=1.5) == first

# Refused calls leave all as it was; the instance can be used and freed afterwards.
before = unit.get(slave)
for names, values in ((["tau"], [math.nan]), (["m", "l"], [2.0, 1.0]), (["load"], [1.0]), (["tip.x"], [1.0])):
    unit.messages.clear()
    assert refused(slave.setReal, [unit.references[name] for name in names], values)
    assert unit.messages[0][:2] == (3, "logStatusError"), unit.messages
    assert unit.get(slave) == before
for call in (slave.getReal, slave.getInteger, slave.getString):
    assert refused(call, [12345])
assert unit.get(slave) == before
slave.terminate()
slave.freeInstance()

# Many instances, then freed, then new ones.
crowd = [unit.instance(f"instance {i}") for i in range(200)]
for one in crowd:
    one.fmi2FreeInstance(one.component)
slave = unit.started()
alone = run(unit, slave, 20)

# Threads with an instance each.
seen = {}


def work(number):
    seen[number] = run(unit, unit.started(f"thread {number}"), 20)


threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert all(seen[i] == alone for i in range(4))

# Only the categories that were asked for are logged.
for categories, expected in ((["logStatusError"], 0), (["logStatusDiscard"], 1)):
    slave.setDebugLogging(loggingOn=True, categories=categories)
    unit.messages.clear()
    assert refused(slave.doStep, currentCommunicationPoint=77.0, communicationStepSize=0.05)
    assert len(unit.messages) == expected, (categories, unit.messages)
sys.stdout.write("ok\n")
