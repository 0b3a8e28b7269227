"""A communication step that cannot be made is given up after a work that is known beforehand."""

from __future__ import annotations

import re
from pathlib import Path

import fmpy
import pytest
from fmpy.fmi1 import FMICallException
from fmpy.fmi2 import FMU2Slave
from fmpy.fmi3 import FMU3Slave
from representatives import by_night

from mb2fmu import pipeline
from mb2fmu.compiler.program.evaluation_cost_estimate import estimate_evaluation_cost
from mb2fmu.fmu.emit_c.fmu_c_sources import (
    EVALUATIONS_PER_INTERNAL_STEP,
    MAX_INTERNAL_STEP_LIMIT,
    MAX_STEP_WORK,
    MIN_INTERNAL_STEP_LIMIT,
    compute_max_internal_steps,
)

ROOT = Path(__file__).parents[2]
MODELS = ROOT / "models"

SEMI_IMPLICIT_EULER = 3


def make_callbacks(log) -> fmpy.fmi2.fmi2CallbackFunctions:
    """Callbacks of FMI 2.0 that hand each message of an FMU to ``log``, as bytes."""
    callbacks = fmpy.fmi2.fmi2CallbackFunctions()
    callbacks.logger = fmpy.fmi2.fmi2CallbackLoggerTYPE(lambda *arguments: log(arguments[4]))
    callbacks.allocateMemory = fmpy.fmi2.fmi2CallbackAllocateMemoryTYPE(fmpy.fmi2.calloc)
    callbacks.freeMemory = fmpy.fmi2.fmi2CallbackFreeMemoryTYPE(fmpy.fmi2.free)
    return callbacks


def make_steps(unit: FMU2Slave, count: int) -> None:
    for step in range(count):
        unit.doStep(0.01 * step, 0.01)


def test_a_muscle_whose_tendon_is_shorter_than_nothing(tmp_path):
    """It pulls harder and harder: internal steps of nanoseconds."""
    exported = pipeline.export(MODELS / "muscle_arm.py", tmp_path, fmi="3")
    program = exported.build.derivation.program
    description = fmpy.read_model_description(str(exported.path))
    unit = FMU3Slave(
        guid=description.guid,
        unzipDirectory=fmpy.extract(str(exported.path), str(tmp_path / "unpacked")),
        modelIdentifier=description.coSimulation.modelIdentifier,
        instanceName="arm",
    )
    messages: list[str] = []
    unit.instantiate(
        loggingOn=True,
        logMessage=fmpy.fmi3.fmi3LogMessageCallback(lambda _, __, ___, text: messages.append(text.decode())),
    )
    reference = {variable.name: variable.valueReference for variable in description.modelVariables}
    unit.enterInitializationMode(startTime=0.0)
    unit.setFloat64([reference["l_slack"]], [-0.4])
    unit.exitInitializationMode()
    with pytest.raises(FMICallException) as caught:
        unit.doStep(0.0, 0.01)
    unit.freeInstance()
    assert caught.value.status == fmpy.fmi3.fmi3Discard
    limit = compute_max_internal_steps(program)
    found = re.search(
        r"more than (\d+) internal steps; given up after (\d+) of them and (\d+) evaluations of the derivatives",
        messages[-1],
    )
    assert found is not None, messages
    foreseen, steps, evaluations = map(int, found.groups())
    assert foreseen == limit < MAX_INTERNAL_STEP_LIMIT
    assert steps <= limit
    assert evaluations * estimate_evaluation_cost(program, "rhs") <= 1.01 * MAX_STEP_WORK


def test_events_within_femtoseconds_of_each_other_are_given_up(tmp_path):
    """Seen: a million of them, 5e-15 s apart, in ten seconds. Semi-implicit Euler cannot hold the crank that sticks."""
    exported = pipeline.export(ROOT / "scripts" / "bench_mechanisms.py", tmp_path, arguments={"name": "spatial_loop"})
    description = fmpy.read_model_description(str(exported.path))
    unit = FMU2Slave(
        guid=description.guid,
        unzipDirectory=fmpy.extract(str(exported.path), str(tmp_path / "unpacked")),
        modelIdentifier=description.coSimulation.modelIdentifier,
        instanceName="loop",
    )
    messages: list[str] = []
    unit.instantiate(loggingOn=True, callbacks=make_callbacks(lambda text: messages.append(text.decode())))
    reference = {variable.name: variable.valueReference for variable in description.modelVariables}
    unit.setInteger([reference["solver"]], [SEMI_IMPLICIT_EULER])
    unit.setupExperiment(startTime=0.0)
    unit.enterInitializationMode()
    unit.exitInitializationMode()
    with pytest.raises(FMICallException) as caught:
        make_steps(unit, 300)
    unit.freeInstance()
    assert caught.value.status == fmpy.fmi2.fmi2Discard
    found = re.search(r"event (\d+), events follow each other without end", messages[-1])
    assert found is not None, messages
    assert int(found[1]) < 1000


@pytest.mark.parametrize("name", ["simple_pendulum", *by_night("four_bar"), "chain"])
def test_dear_equations_are_allowed_fewer_steps(name):
    program = pipeline.derive(MODELS / f"{name}.py").program
    steps = compute_max_internal_steps(program)
    assert MIN_INTERNAL_STEP_LIMIT <= steps <= MAX_INTERNAL_STEP_LIMIT
    work = steps * EVALUATIONS_PER_INTERNAL_STEP * estimate_evaluation_cost(program, "rhs")
    assert work <= MAX_STEP_WORK or steps == MIN_INTERNAL_STEP_LIMIT
    assert work >= 0.5 * MAX_STEP_WORK or steps == MAX_INTERNAL_STEP_LIMIT
