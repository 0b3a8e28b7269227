"""Start values are solved for again in the unit, in Initialization Mode, when what they follow from has changed."""

from __future__ import annotations

import zipfile
from dataclasses import replace

import fmpy
import numpy as np
import pytest
from end_to_end.test_models import ROOT
from fmpy.fmi1 import FMICallException
from fmpy.fmi2 import FMU2Slave
from fmpy.fmi3 import FMU3Slave

from mb2fmu import animation, mechanism, model, pipeline

STATES = ("q1", "q2", "q3", "u1", "u2", "u3")
UNITS = {"native 2": {"fmi": "2"}, "native 3": {"fmi": "3"}, "python": {"backend": "python"}}


def closed(**values):
    """Start values of the states as an export with these values has them."""
    definition = model.check(model.load(ROOT / "models" / "four_bar.py"))
    parameters = tuple(replace(p, value=values.get(p.name, p.value)) for p in definition.parameters)
    coordinates = tuple(replace(c, start=values.get(c.name, c.start)) for c in definition.coordinates)
    speeds = tuple(replace(s, start=values.get(s.name, s.start)) for s in definition.speeds)
    changed = replace(definition, parameters=parameters, coordinates=coordinates, speeds=speeds)
    found = mechanism.close_loops(mechanism.read(changed)).definition
    return [item.start for item in (*found.coordinates, *found.speeds)]


class Unit:
    """Instances of one unit, by either standard."""

    def __init__(self, path, fmi3):
        self.path, self.fmi3, self.folder = path, fmi3, fmpy.extract(str(path))
        self.description = fmpy.read_model_description(path)
        self.variables = {v.name: v for v in self.description.modelVariables}

    def initializing(self):
        d = self.description
        identifier = d.coSimulation.modelIdentifier
        kind = FMU3Slave if self.fmi3 else FMU2Slave
        slave = kind(guid=d.guid, unzipDirectory=self.folder, modelIdentifier=identifier, instanceName="start")
        slave.instantiate()
        if self.fmi3:
            slave.enterInitializationMode(startTime=0.0)
        else:
            slave.setupExperiment(startTime=0.0)
            slave.enterInitializationMode()
        return slave

    def put(self, slave, **values):
        put = slave.setFloat64 if self.fmi3 else slave.setReal
        put([self.variables[name].valueReference for name in values], list(values.values()))

    def get(self, slave, *names):
        get = slave.getFloat64 if self.fmi3 else slave.getReal
        return np.array(get([self.variables[name].valueReference for name in names]))


@pytest.fixture(scope="module", params=UNITS)
def unit(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("start")
    exported = pipeline.export(ROOT / "models" / "four_bar.py", folder, method="tmt", **UNITS[request.param])
    return Unit(exported.path, request.param == "native 3")


CHANGES = [{"lb": 2.1}, {"q1": 0.5}, {"q1": -0.3, "u1": 2.0, "lc": 1.1}, {}]


@pytest.mark.parametrize("changed", CHANGES, ids=str)
def test_the_unit_starts_as_an_export_with_these_values_would(unit, changed):
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
        pytest.skip("Python units offer no derivatives")
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


def test_the_scene_in_the_unit_can_be_read_with_its_nonlinear_systems(unit):
    with zipfile.ZipFile(unit.path) as archive:
        content = archive.read("extra/org.mb2fmu.scene/scene.json")
    scene = animation.Scene.from_json(content, unit.path.name)
    assert scene.to_json() == content
    assert [body.name for body in scene.bodies] == ["M2", "M3"]
