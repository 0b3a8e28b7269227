"""Loops in closed form: as units in both backends, and against published numbers."""

from __future__ import annotations

import json

import fmpy
import numpy as np
import pytest
from end_to_end.test_models import CASES, ROOT
from fmpy.fmi1 import FMICallException
from fmpy.fmi2 import FMU2Slave
from representatives import by_night
from scipy.integrate import solve_ivp

from mb2fmu import pipeline
from mb2fmu.compiler import evaluation


@pytest.fixture(scope="module", params=["native", *by_night("python")])
def exported(request, tmp_path_factory):
    compiler = {"compiler": "cc"} if request.param == "native" else {}
    folder = tmp_path_factory.mktemp(request.param)
    path = ROOT / "models" / "four_bar.py"
    made = pipeline.export(path, folder, constraints="explicit", method="kane", backend=request.param, **compiler)
    description = fmpy.read_model_description(made.path)
    unzipped = fmpy.extract(str(made.path))
    references = {v.name: v.valueReference for v in description.modelVariables}

    def instance():
        slave = FMU2Slave(
            guid=description.guid,
            unzipDirectory=unzipped,
            modelIdentifier=description.coSimulation.modelIdentifier,
            instanceName="loop",
        )
        slave.instantiate()
        slave.setupExperiment(tolerance=1e-10, startTime=0.0)
        return slave

    return instance, references


def test_a_fmu_is_closed_and_survives_a_loop_that_opens(exported):
    instance, references = exported
    slave, angles = instance(), [references[name] for name in ("q1", "q2", "q3")]
    slave.enterInitializationMode()
    slave.exitInitializationMode()
    lengths = np.array([0.8, 2.0, 1.0])
    for k in range(20):
        slave.doStep(currentCommunicationPoint=0.1 * k, communicationStepSize=0.1)
        assert abs(lengths @ np.exp(1j * np.cumsum(slave.getReal(angles))) - 2.0) < 1e-13
    here = slave.getReal(angles)
    slave.setReal([references["lb"]], [9.0])  # no four-bar has these lengths
    with pytest.raises(FMICallException) as refused:
        slave.doStep(currentCommunicationPoint=2.0, communicationStepSize=0.1)
    assert refused.value.status == 2  # Discard
    slave.setReal([references["lb"]], [2.0])
    assert slave.getReal(angles) == here
    slave.doStep(currentCommunicationPoint=2.0, communicationStepSize=0.1)
    assert slave.getReal(angles) != here
    slave.terminate()
    slave.freeInstance()


def test_a_fmu_does_not_start_where_its_loop_cannot_close(exported):
    instance, references = exported
    slave = instance()
    slave.setReal([references["lb"]], [9.0])
    slave.enterInitializationMode()
    with pytest.raises(FMICallException) as refused:
        slave.exitInitializationMode()
    assert refused.value.status in (3, 4)  # Error; pythonfmu makes it Fatal
    slave.freeInstance()


@pytest.mark.repeats  # its motion by day in test_closed_loops; closed forms in mechanics/formulations
def test_andrews_mechanism_has_one_freedom_and_moves_as_in_quadruple_precision():
    case = json.loads((CASES / "andrews.json").read_text())
    end = case["reference_t003_quad"]
    derivation = pipeline.derive(ROOT / "models" / "andrews.py", constraints="explicit", method="tmt")
    f = pipeline.right_hand_side(derivation)
    x = solve_ivp(f, (0.0, case["t_end"]), f.x0, method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    assert [x[0], x[1]] == pytest.approx([float(end["q"][0]), float(end["qd"][0])], rel=1e-9)
    position = evaluation.make_evaluator(derivation.program, "position")(case["t_end"], x, f.r0, f.p0)[-6:]
    assert position == pytest.approx(np.array(end["q"][1:], dtype=float), rel=1e-9)
    assert f.outputs(case["t_end"], x)[:6] == pytest.approx(np.array(end["lam"], dtype=float), rel=1e-6)


def test_two_parallelograms_pass_the_positions_where_they_lie_flat():
    case = json.loads((CASES / "n_four_bar.json").read_text())
    f = pipeline.right_hand_side(pipeline.derive(ROOT / "models" / "n_four_bar.py", constraints="explicit"))
    end = solve_ivp(f, (0.0, 10.0), f.x0, method="DOP853", rtol=1e-10, atol=1e-10).y[:, -1]
    x, y, _, x_dot, y_dot, *_ = f.outputs(10.0, end)
    assert [x, y, x_dot, y_dot] == pytest.approx(case["N2_t10"], abs=1e-7)
