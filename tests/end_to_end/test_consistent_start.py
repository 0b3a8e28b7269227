"""Start values are solved for again in the unit, in Initialization Mode, when what they follow from has changed."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from functools import cache

import fmpy
import numpy as np
import pytest
from end_to_end.test_models import ROOT
from fmpy import calloc, free
from fmpy.fmi1 import FMICallException
from fmpy.fmi2 import (
    FMU2Model,
    FMU2Slave,
    fmi2CallbackAllocateMemoryTYPE,
    fmi2CallbackFreeMemoryTYPE,
    fmi2CallbackFunctions,
    fmi2CallbackLoggerTYPE,
)
from fmpy.fmi3 import FMU3Model, FMU3Slave
from representatives import marked

from mb2fmu import model, pipeline, visualization
from mb2fmu.mechanics import mechanism

STATES = ("q1", "q2", "q3", "u1", "u2", "u3")
UNITS = {"native 2": {"fmi": "2"}, "native 3": {"fmi": "3"}, "python": {"backend": "python"}}


@cache
def closed(**values):
    """Start values of the states as an export with these values has them."""
    definition = model.check_model(model.load(ROOT / "models" / "four_bar.py"))
    parameters = tuple(replace(p, value=values.get(p.name, p.value)) for p in definition.parameters)
    coordinates = tuple(replace(c, start=values.get(c.name, c.start)) for c in definition.coordinates)
    speeds = tuple(replace(s, start=values.get(s.name, s.start)) for s in definition.speeds)
    changed = replace(definition, parameters=parameters, coordinates=coordinates, speeds=speeds)
    found = mechanism.solve_loop_closure_start_values(mechanism.read_mechanism(changed)).declared
    return [item.start for item in (*found.coordinates, *found.speeds)]


class Unit:
    """Instances of one FMU, by either standard."""

    def __init__(self, path, fmi3):
        self.path, self.fmi3, self.folder = path, fmi3, fmpy.extract(str(path))
        self.description = fmpy.read_model_description(path)
        self.variables = {v.name: v for v in self.description.modelVariables}

        self.messages = []
        said = lambda *message: self.messages.append((message[-3], message[-1].decode()))  # noqa: E731
        self._callbacks = fmi2CallbackFunctions()
        self._callbacks.logger = fmi2CallbackLoggerTYPE(said)
        self._callbacks.allocateMemory = fmi2CallbackAllocateMemoryTYPE(calloc)
        self._callbacks.freeMemory = fmi2CallbackFreeMemoryTYPE(free)
        self._logging = {"logMessage": said} if fmi3 else {"callbacks": self._callbacks}

    def initializing(self, *, exchange=False, **before):
        """An instance in Initialization Mode; ``before`` is set before that."""
        d = self.description
        kinds = ((FMU2Slave, FMU2Model), (FMU3Slave, FMU3Model))
        instance = kinds[self.fmi3][exchange](
            guid=d.guid,
            unzipDirectory=self.folder,
            modelIdentifier=d.coSimulation.modelIdentifier,
            instanceName="start",
        )
        instance.instantiate(loggingOn=True, **self._logging)
        return self.initialize(instance, **before)

    def initialize(self, instance, **before):
        self.messages.clear()
        if not self.fmi3:
            instance.setupExperiment(startTime=0.0)
        self.put(instance, **before)
        instance.enterInitializationMode(**({"startTime": 0.0} if self.fmi3 else {}))
        return instance

    def put(self, slave, **values):
        put = slave.setFloat64 if self.fmi3 else slave.setReal
        if values:
            put([self.variables[name].valueReference for name in values], list(values.values()))

    def get(self, slave, *names):
        get = slave.getFloat64 if self.fmi3 else slave.getReal
        return np.array(get([self.variables[name].valueReference for name in names]))


# FMI 2 by day: test_declared_constraints solves for a guess again, test_closed_loops outlives a loop that opens.
@pytest.fixture(scope="module", params=marked(UNITS, repeating={"native 2"}))
def unit(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("start")
    exported = pipeline.export(ROOT / "models" / "four_bar.py", folder, method="tmt", **UNITS[request.param])
    return Unit(exported.path, request.param == "native 3")


CHANGES = [{"lb": 2.1}, {"q1": 0.5}, {"q1": -0.3, "u1": 2.0, "lc": 1.1}, {}]


@pytest.mark.parametrize("changed", CHANGES, ids=str)
def test_the_fmu_starts_as_an_export_with_these_values_would(unit, changed):
    slave = unit.initializing()
    unit.get(slave, *STATES)  # solved for once; the next line undoes it
    unit.put(slave, **changed)
    assert unit.get(slave, *STATES) == pytest.approx(closed(**changed), abs=1e-12)
    assert unit.get(slave, "diagnostics.position_residual")[0] < 1e-14
    slave.exitInitializationMode()
    assert unit.get(slave, *STATES) == pytest.approx(closed(**changed), abs=1e-12)
    slave.doStep(currentCommunicationPoint=0.0, communicationStepSize=0.01)
    slave.terminate()
    slave.freeInstance()


def opening(q):
    """How far the loop is from closed, m."""
    return abs(np.array([0.8, 2.0, 1.0]) @ np.exp(1j * np.cumsum(q[:3])) - 2.0)


@pytest.mark.parametrize("angle", [-2.5, -1.24, 1.86, 2.17, 3.1])
def test_wherever_the_crank_is_set_the_rocker_stays_on_its_side(unit, angle):
    """Newton's path from the FMU's own guesses leads to no solution there: the crank is turned to these angles."""
    slave = unit.initializing()
    unit.put(slave, q1=angle)
    q = unit.get(slave, *STATES)
    assert q[0] == angle
    assert opening(q) < 1e-14
    assert np.sin(q[2]) < 0.0
    if unit.description.coSimulation.providesDirectionalDerivative or unit.fmi3:
        references = [unit.variables[name].valueReference for name in ("q2", "q3", "q1")]
        slopes = np.array(slave.getDirectionalDerivative(references[:2], references[2:], [1.0]))
        unit.put(slave, q1=angle + 1e-6)
        assert (unit.get(slave, "q2", "q3") - q[1:3]) / 1e-6 == pytest.approx(slopes, abs=1e-5)
    slave.exitInitializationMode()
    slave.doStep(currentCommunicationPoint=0.0, communicationStepSize=0.01)
    slave.terminate()
    slave.freeInstance()


def test_guesses_on_no_branch_are_refused_and_better_ones_taken(unit):
    slave = unit.initializing(q2=2.0, q3=2.5)
    with pytest.raises(FMICallException):
        slave.exitInitializationMode()
    reported = (
        "a solution is found for the start values of q2, q3 on the holonomic constraints on another branch of the"
    )
    assert any(reported in message for _, message in unit.messages), unit.messages
    assert unit.messages[-1][0] >= 3  # Error; pythonfmu makes it Fatal
    slave.reset()
    unit.initialize(slave, q2=0.0, q3=2.0)
    q = unit.get(slave, *STATES)
    assert opening(q) < 1e-14
    assert np.sin(q[2]) > 0.0
    slave.exitInitializationMode()
    slave.doStep(currentCommunicationPoint=0.0, communicationStepSize=0.01)
    slave.terminate()
    slave.freeInstance()


def test_a_loop_that_opens_in_mid_run_is_reported_and_outlived(unit):
    slave = unit.initializing()
    slave.exitInitializationMode()
    slave.doStep(currentCommunicationPoint=0.0, communicationStepSize=0.05)
    here = unit.get(slave, *STATES)
    unit.put(slave, lb=9.0)
    with pytest.raises(FMICallException) as refused:
        slave.doStep(currentCommunicationPoint=0.05, communicationStepSize=0.05)
    assert refused.value.status == 2  # Discard
    status, message = unit.messages[-1]
    assert status == 2
    assert "no solution is found for the holonomic constraints" in message
    unit.put(slave, lb=2.0)
    assert unit.get(slave, *STATES).tolist() == here.tolist()
    slave.doStep(currentCommunicationPoint=0.05, communicationStepSize=0.05)
    assert opening(unit.get(slave, *STATES)) < 1e-14
    slave.terminate()
    slave.freeInstance()


def test_states_that_lead_to_another_branch_are_discarded_in_mid_run(unit):
    """In Model Exchange, as an importer sets them; what it sets instead is taken."""
    if unit.description.modelExchange is None:
        pytest.skip("Python FMUs are for Co-Simulation only")
    instance = unit.initializing(exchange=True)
    instance.exitInitializationMode()
    if unit.fmi3:
        instance.updateDiscreteStates()
    else:
        instance.newDiscreteStates()
    instance.enterContinuousTimeMode()
    x = unit.get(instance, *STATES)
    before = unit.get(instance, "crank_acceleration")
    unit.put(instance, q2=1.0, q3=-2.5)
    with pytest.raises(FMICallException) as refused:
        unit.get(instance, "crank_acceleration")
    assert refused.value.status == 2  # Discard
    status, message = unit.messages[-1]
    assert status == 2
    assert "for the holonomic constraints on another branch of the assembly only" in message
    unit.put(instance, **dict(zip(STATES, x, strict=True)))
    assert unit.get(instance, "crank_acceleration") == before
    instance.terminate()
    instance.freeInstance()


def test_guesses_are_approximate_and_unknown(unit):
    initial = {name: unit.variables[name].initial for name in STATES}
    assert initial == {n: "approx" if n[1] in "23" else "exact" for n in STATES}
    unknown = {u.variable.name: {d.name for d in u.dependencies} for u in unit.description.initialUnknowns}
    assert unknown["q2"] == {"q1", "la", "lb", "lc", "ln"}
    assert {"q1", "u1", "la"} <= unknown["u2"]
    assert all(unit.variables[on].initial == "exact" or on == "time" for known in unknown.values() for on in known)
    slave = unit.initializing()
    with pytest.raises(FMICallException):
        unit.put(slave, q2=0.1)  # too late
    slave.freeInstance()


def test_a_start_that_cannot_be_closed_is_refused(unit):
    slave = unit.initializing()
    unit.put(slave, lb=9.0)
    with pytest.raises(FMICallException):
        slave.exitInitializationMode()


def test_derivatives_by_start_values_and_parameters_go_through_the_solution(unit):
    if unit.description.coSimulation.providesDirectionalDerivative is not True and not unit.fmi3:
        pytest.skip("Python FMUs offer no derivatives")
    unknown, known = ["q2", "u3", "coupler_pin.x", "total_energy"], ["q1", "u1", "lb"]
    at = {"q1": 0.4, "u1": 1.5, "lb": 2.05}
    slave = unit.initializing()

    def values(**changed):
        unit.put(slave, **{**at, **changed})
        return unit.get(slave, *unknown)

    h = 1e-6
    slopes = [(values(**{n: at[n] + h}) - values(**{n: at[n] - h})) / (2 * h) for n in known]
    values()
    vr = lambda names: [unit.variables[n].valueReference for n in names]  # noqa: E731
    for column, name in zip(slopes, known, strict=True):
        found = slave.getDirectionalDerivative(vr(unknown), vr([name]), [1.0])
        assert found == pytest.approx(column, rel=1e-7, abs=1e-7)
    if unit.fmi3:
        weights = [0.3, -0.7, 1.1, 0.2]
        found = slave.getAdjointDerivative(vr(unknown), vr(known), weights, len(known))
        assert found == pytest.approx([column @ weights for column in slopes], rel=1e-7, abs=1e-7)
    slave.exitInitializationMode()
    slave.terminate()
    slave.freeInstance()


def test_what_is_read_after_a_step_is_the_state_on_the_constraints(unit):
    """The state is projected at the end of a step: what is read is what is kept, not what integration left."""
    slave = unit.initializing()
    slave.exitInitializationMode()
    slave.doStep(currentCommunicationPoint=0.0, communicationStepSize=0.05)
    found = unit.get(slave, *STATES)
    residuals = unit.get(slave, "diagnostics.position_residual", "diagnostics.velocity_residual")
    state = slave.getFMUState()
    slave.setFMUState(state)
    assert unit.get(slave, *STATES).tolist() == found.tolist()
    assert max(residuals) < 1e-13
    slave.freeFMUState(state)
    slave.terminate()
    slave.freeInstance()


def test_the_scene_in_the_fmu_can_be_read_with_its_nonlinear_systems(unit):
    with zipfile.ZipFile(unit.path) as archive:
        content = archive.read("extra/org.mb2fmu.scene/scene.json")
    scene = visualization.Scene.from_json(content, unit.path.name)
    assert scene.to_json() == content
    assert [body.name for body in scene.bodies] == ["M2", "M3"]
