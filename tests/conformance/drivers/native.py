"""Drives native FMUs of both versions and both kinds through fmpy's wrappers, in one vocabulary."""

import contextlib
import tempfile

from fmi2 import FMU2Slave, calloc, fmi2CallbackAllocateMemoryTYPE, fmi2CallbackFreeMemoryTYPE, free
from fmi2 import fmi2CallbackFunctions as Callbacks
from fmi2 import fmi2CallbackLoggerTYPE as Logger
from fmpy import extract, read_model_description
from fmpy.fmi1 import FMICallException
from fmpy.fmi2 import FMU2Model
from fmpy.fmi3 import FMU3Model, FMU3Slave

CLASSES = {("2", "ME"): FMU2Model, ("2", "CS"): FMU2Slave, ("3", "ME"): FMU3Model, ("3", "CS"): FMU3Slave}


class Unit:
    """An FMU, unpacked once.

    Attributes:
        version: ``2`` or ``3``.
        variables: By name.
        states: Names, in the order of the state vector.
        messages: (status, category, text) of all instances.
    """

    def __init__(self, path):
        self.folder = tempfile.mkdtemp()
        extract(path, self.folder)
        self.description = read_model_description(path)
        self.version = self.description.fmiVersion[0]
        self.variables = {v.name: v for v in self.description.modelVariables}
        self.derivatives = [unknown.variable for unknown in self.description.derivatives]
        self.states = [variable.derivative.name for variable in self.derivatives]
        self.messages = []
        self._callbacks = Callbacks()
        self._callbacks.logger = Logger(self._log2)
        self._callbacks.allocateMemory = fmi2CallbackAllocateMemoryTYPE(calloc)
        self._callbacks.freeMemory = fmi2CallbackFreeMemoryTYPE(free)

    def references(self, names):
        return [self.variables[name].valueReference for name in names]

    def named(self, **wanted):
        """Names of the real variables with these attributes."""
        return [
            name
            for name, variable in self.variables.items()
            if variable.type in {"Real", "Float64"}
            and all(getattr(variable, attribute) == value for attribute, value in wanted.items())
        ]

    def instance(self, kind="CS", name="unit"):
        """Instantiated, not initialized."""
        interface = self.description.modelExchange if kind == "ME" else self.description.coSimulation
        fmu = CLASSES[self.version, kind](
            guid=self.description.guid,
            unzipDirectory=self.folder,
            modelIdentifier=interface.modelIdentifier,
            instanceName=name,
        )
        if self.version == "2":
            fmu.instantiate(callbacks=self._callbacks, loggingOn=True)
        else:
            fmu.instantiate(loggingOn=True, logMessage=self._log3)
        return Instance(self, fmu)

    def _log2(self, _environment, _instance, status, category, message):
        self.messages.append((status, (category or b"").decode(), message.decode()))

    def _log3(self, _environment, status, category, message):
        self.messages.append((status, (category or b"").decode(), message.decode()))


class Instance:
    """One instance; names instead of value references."""

    def __init__(self, unit, fmu):
        self.unit, self.fmu, self.new = unit, fmu, unit.version == "3"

    def initialize(self, start=0.0, stop=None, tolerance=None, **values):
        fmu = self.fmu
        if self.new:
            fmu.enterInitializationMode(tolerance=tolerance, startTime=start, stopTime=stop)
        else:
            fmu.setupExperiment(tolerance=tolerance, startTime=start, stopTime=stop)
            fmu.enterInitializationMode()
        self.set(**values)
        fmu.exitInitializationMode()
        return self

    def continuous(self):
        """To continuous-time mode."""
        self.update()
        self.fmu.enterContinuousTimeMode()
        return self

    def update(self):
        return self.fmu.updateDiscreteStates() if self.new else self.fmu.newDiscreteStates()

    def set(self, **values):
        if values:
            references = self.unit.references(values)
            (self.fmu.setFloat64 if self.new else self.fmu.setReal)(references, list(values.values()))

    def choose(self, solver):
        """The solver, by its number."""
        reference = [self.unit.variables["solver"].valueReference]
        (self.fmu.setInt64 if self.new else self.fmu.setInteger)(reference, [solver])

    def get(self, names):
        references = self.unit.references(names)
        return list((self.fmu.getFloat64 if self.new else self.fmu.getReal)(references))

    def step(self, begin, size):
        return self.fmu.doStep(begin, size)

    def forward(self, unknowns, knowns, seed):
        references = self.unit.references
        return self.fmu.getDirectionalDerivative(references(unknowns), references(knowns), list(seed))

    def backward(self, unknowns, knowns, seed):
        references = self.unit.references
        return self.fmu.getAdjointDerivative(references(unknowns), references(knowns), list(seed), len(knowns))

    def save(self):
        return self.fmu.getFMUState() if self.new else self.fmu.getFMUstate()

    def restore(self, state):
        (self.fmu.setFMUState if self.new else self.fmu.setFMUstate)(state)

    def forget(self, state):
        (self.fmu.freeFMUState if self.new else self.fmu.freeFMUstate)(state)

    def serialize(self, state):
        return bytes((self.fmu.serializeFMUState if self.new else self.fmu.serializeFMUstate)(state))

    def deserialize(self, content):
        return (self.fmu.deserializeFMUState if self.new else self.fmu.deSerializeFMUstate)(content)

    def close(self):
        self.fmu.terminate()
        self.fmu.freeInstance()


def refused(call, *arguments, **keywords):
    """True if the call is answered by Discard or Error."""
    with contextlib.suppress(FMICallException):
        call(*arguments, **keywords)
        return False
    return True
