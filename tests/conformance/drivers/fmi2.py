"""Drives FMUs through FMI 2.0 with fmpy's thin wrapper; what the tests of this folder share."""

import contextlib
import tempfile

from fmpy import extract, read_model_description
from fmpy.fmi2 import (
    FMU2Slave,
    calloc,
    fmi2CallbackAllocateMemoryTYPE,
    fmi2CallbackFreeMemoryTYPE,
    fmi2CallbackFunctions,
    fmi2CallbackLoggerTYPE,
    free,
)


class Unit:
    """An FMU, unpacked once.

    Attributes:
        messages: (status, category, text) of all instances.
        references: Value reference by name.
    """

    def __init__(self, path):
        self.folder = tempfile.mkdtemp()
        extract(path, self.folder)
        self.description = read_model_description(path)
        self.references = {v.name: v.valueReference for v in self.description.modelVariables}
        self.messages = []
        self._callbacks = fmi2CallbackFunctions()
        self._callbacks.logger = fmi2CallbackLoggerTYPE(self._log)
        self._callbacks.allocateMemory = fmi2CallbackAllocateMemoryTYPE(calloc)
        self._callbacks.freeMemory = fmi2CallbackFreeMemoryTYPE(free)

    def instance(self, name="unit"):
        slave = FMU2Slave(
            guid=self.description.guid,
            unzipDirectory=self.folder,
            modelIdentifier=self.description.coSimulation.modelIdentifier,
            instanceName=name,
        )
        slave.instantiate(callbacks=self._callbacks, loggingOn=True)
        return slave

    def started(self, name="unit", start=0.0, stop=None, tolerance=None, **values):
        slave = self.instance(name)
        self.start(slave, start, stop, tolerance, **values)
        return slave

    def start(self, slave, start=0.0, stop=None, tolerance=None, **values):
        slave.setupExperiment(tolerance=tolerance, startTime=start, stopTime=stop)
        slave.enterInitializationMode()
        self.set(slave, **values)
        slave.exitInitializationMode()

    def set(self, slave, **values):
        if values:
            slave.setReal([self.references[name] for name in values], list(values.values()))

    def get(self, slave, *names):
        return slave.getReal([self.references[name] for name in names or self.references])

    def _log(self, _environment, _instance, status, category, message):
        self.messages.append((status, (category or b"").decode(), message.decode()))


def run(unit, slave, steps, size=0.05, first=0, start=0.0):
    """Steps and reads everything after each step."""
    seen = []
    for i in range(first, first + steps):
        slave.doStep(currentCommunicationPoint=start + i * size, communicationStepSize=size)
        seen.append(unit.get(slave))
    return seen


def refused(call, *arguments, **keywords):
    """True if the call fails with a status of FMI."""
    with contextlib.suppress(Exception):
        call(*arguments, **keywords)
        return False
    return True
