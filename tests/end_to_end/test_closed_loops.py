"""Mechanisms with closed loops, without any unit, against published numbers and against computations made afresh."""

from __future__ import annotations

import json

import fmpy
import numpy as np
import pytest
from end_to_end import closed_forms
from end_to_end.test_models import CASES, ROOT
from fmpy.fmi1 import FMICallException
from fmpy.fmi2 import FMU2Slave
from hinges import BENNETT, PLANAR, linkage
from scipy.integrate import solve_ivp
from shorter_validations import shorten_validations

import mb2fmu
from mb2fmu import pipeline
from mb2fmu.compiler import evaluation

LOOP_FORCES = slice(0, 6)


def _relative(found, wanted) -> float:
    wanted = np.array(wanted, dtype=float)
    return float(np.max(np.abs((np.asarray(found) - wanted) / wanted)))


@pytest.fixture(scope="module", params=["tmt", pytest.param("lagrange", marks=pytest.mark.repeats)])
def andrews(request):
    case = json.loads((CASES / "andrews.json").read_text())
    derivation = pipeline.derive(ROOT / "models" / "andrews.py", method=request.param)
    return case, pipeline.right_hand_side(derivation), evaluation.make_evaluator(derivation.program, "accelerations")


def test_andrews_mechanism_starts_with_the_published_accelerations_and_forces(andrews):
    case, f, accelerations = andrews
    x = np.array([*case["q0"], *case["qd0"]], dtype=float)
    u_dot, forces = np.array(case["qdd0"], dtype=float), np.array(case["lambda0"], dtype=float)
    assert accelerations(0, x, f.r0, f.p0) == pytest.approx(u_dot, abs=1e-9 * np.max(np.abs(u_dot)))
    assert f.outputs(0, x)[LOOP_FORCES] == pytest.approx(forces, abs=1e-9 * np.max(np.abs(forces)))


def test_andrews_mechanism_moves_as_in_quadruple_precision(andrews):
    case, f, accelerations = andrews
    end = case["reference_t003_quad"]
    x = np.array([*case["q0"], *case["qd0"]], dtype=float)
    x = solve_ivp(f, (0.0, case["t_end"]), x, method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    assert _relative(x[:7], end["q"]) < 1e-9
    assert _relative(x[7:], end["qd"]) < 1e-8
    assert _relative(accelerations(case["t_end"], x, f.r0, f.p0), end["qdd"]) < 1e-6
    assert _relative(f.outputs(case["t_end"], x)[LOOP_FORCES], end["lam"]) < 1e-6


@pytest.mark.repeats  # as the chain of four, below
def test_two_four_bars_pass_the_positions_where_they_lie_flat():
    case = json.loads((CASES / "n_four_bar.json").read_text())
    f = pipeline.right_hand_side(pipeline.derive(ROOT / "models" / "n_four_bar.py", method="tmt"))
    solution = solve_ivp(f, (0.0, 10.0), f.x0, method="DOP853", rtol=1e-10, atol=1e-10)
    assert np.min(np.abs(np.sin(solution.y[0]))) < 0.05  # the cranks have been along the ground
    x, y, _, x_dot, y_dot, *_ = f.outputs(10.0, solution.y[:, -1])
    assert [x, y, x_dot, y_dot] == pytest.approx(case["N2_t10"], abs=1e-6)


def test_a_chain_of_four_bars_passes_them_too_and_costs_their_number():
    """As the pendulum that the cranks are together; loops are solved in the order of the chain."""
    derived = [pipeline.derive(ROOT / "models" / "n_four_bar.py", method="tmt", arguments={"n": n}) for n in (3, 6)]
    assert derived[1].operations < 2.3 * derived[0].operations
    f = pipeline.right_hand_side(derived[0])
    ratio = 9.81 * (4 / 2 + 3) / (4 / 3 + 3)
    crank = solve_ivp(
        lambda _, x: [x[1], -ratio * np.cos(x[0])], (0, 2), [np.pi / 2, -1], method="DOP853", rtol=1e-12, atol=1e-12
    ).y[0]
    assert np.min(crank) < -1.0  # through the position along the ground
    angle = crank[-1]
    x = solve_ivp(f, (0.0, 2.0), f.x0, method="DOP853", rtol=1e-9, atol=1e-9).y[:, -1]
    assert f.outputs(2.0, x)[:2] == pytest.approx([np.cos(angle), np.sin(angle)], abs=1e-6)


def test_the_library_s_four_bar_ends_where_a_fresh_computation_ends():
    f = pipeline.right_hand_side(pipeline.derive(ROOT / "models" / "msl_planar_four_bar.py"))
    end = solve_ivp(f, (0.0, 5.0), f.x0, method="DOP853", rtol=1e-10, atol=1e-10).y[:, -1]
    assert end[[0, 3]] == pytest.approx([-0.9401653, 6.9960469], abs=1e-6)


def test_a_governor_with_rigid_couplers_moves_as_its_one_freedom_does():
    f = pipeline.right_hand_side(pipeline.derive(ROOT / "models" / "governor.py", arguments={"rigid": True}))
    time = np.linspace(0.0, 1.5, 16)
    x = solve_ivp(f, (0.0, 1.5), f.x0, method="DOP853", t_eval=time, rtol=1e-10, atol=1e-10).y
    height, omega, _ = closed_forms.governor(time)
    assert np.max(np.abs(x[1] - height)) < 1e-8
    assert np.max(np.abs(x[4] - omega)) < 1e-7


def test_a_stiff_mechanism_is_simulated_though_nothing_depends_on_one_of_its_angles():
    moved = mb2fmu.simulate(ROOT / "models" / "governor.py", stop=1.0)
    height, _, _ = closed_forms.governor(moved.time)
    assert np.max(np.abs(moved["s"] - height)) < 3e-4


@pytest.mark.parametrize(  # by day of equations, in unit/mechanics/formulations/test_hinges_in_space
    ("shape", "backend", "motion_alone"),
    [
        pytest.param(BENNETT, "native", True, id="bennett", marks=pytest.mark.repeats),
        pytest.param(BENNETT, "native", False, id="bennett, whole", marks=pytest.mark.repeats),
        pytest.param(PLANAR, "python", False, id="planar", marks=pytest.mark.repeats),  # half a minute
    ],
)
def test_hinges_in_space_with_redundant_conditions_are_proved(shape, backend, motion_alone, tmp_path, monkeypatch):
    """Five conditions of rank two, as users write them: forces of all of them and a hinge's reaction are outputs."""
    if motion_alone:
        shorten_validations(monkeypatch)
    models = linkage(*shape), linkage(*shape)
    for model in models:
        model.experiment(stop=0.5, step=0.05, tolerance=1e-8)
    exported = pipeline.export(models[0], tmp_path, backend=backend, method="tmt")
    result = pipeline.validate(exported, models[1]).result
    assert result.passed, [v for v in (*result.variables, *result.invariants) if v.verdict == "failed"]
    assert "redundant" in exported.build.derivation.treated
    unit = result.simulation
    assert np.ptp(unit["q1"]) > 0.2
    assert np.max(np.abs(unit["first.torque.z"])) < 1e-9  # a hinge's free direction
    assert np.ptp(unit["total_energy"]) < 1e-6
    if shape is BENNETT:
        # Opposite angles are equal, neighbouring ones as Bennett found.
        short, long = shape[1][:2]
        ratio = np.sin((long + short) / 2) / np.sin((long - short) / 2)
        assert np.tan(unit["q1"] / 2) * np.tan(unit["q2"] / 2) == pytest.approx(ratio, rel=1e-7)
        assert unit["q3"] == pytest.approx(-unit["q1"], abs=1e-7)


@pytest.fixture(scope="module")
def unit(tmp_path_factory):
    exported = pipeline.export(ROOT / "models" / "four_bar.py", tmp_path_factory.mktemp("four_bar"))
    description = fmpy.read_model_description(exported.path)
    slave = FMU2Slave(
        guid=description.guid,
        unzipDirectory=fmpy.extract(str(exported.path)),
        modelIdentifier=description.coSimulation.modelIdentifier,
        instanceName="loop",
    )
    references = {v.name: v.valueReference for v in description.modelVariables}
    slave.instantiate()
    yield slave, references
    slave.freeInstance()


def _initialized(slave):
    slave.reset()
    slave.setupExperiment(tolerance=1e-10, startTime=0.0)
    slave.enterInitializationMode()
    slave.exitInitializationMode()


def test_the_four_bar_starts_as_printed_and_a_torque_turns_it_ten_times(unit):
    slave, references = unit
    case = json.loads((CASES / "four_bar_book.json").read_text())
    _initialized(slave)
    angles = [references[name] for name in ("q1", "q2", "q3")]
    found = np.degrees(slave.getReal(angles))
    assert found == pytest.approx([case["q1_deg"], *case["q2_q3_deg"]], abs=5e-8)
    acceleration = slave.getReal([references["crank_acceleration"]])[0]
    assert acceleration == pytest.approx(case["u1d"], abs=5e-8)
    torque = 12.0
    slave.setReal([references["torque"]], [torque])
    energy, rockers, begun, k = [], [], found[0], 0
    while found[0] < begun + 3600:
        slave.doStep(currentCommunicationPoint=0.05 * k, communicationStepSize=0.05)
        found = np.degrees(slave.getReal(angles))
        total, residual = slave.getReal([references["total_energy"], references["diagnostics.position_residual"]])
        assert residual < 1e-12
        energy.append(total - torque * np.radians(found[0]))
        rockers.append(np.sum(found) % 360)
        k += 1
        assert k < 2000
    assert np.ptp(energy) < 1e-6  # of some 750 J
    # The rocker went to and fro between where crank and coupler are in one line.
    ends = [np.degrees(np.arccos((reach**2 - 2.0**2 - 1.0**2) / (2 * 2.0 * 1.0))) for reach in (2.8, 1.2)]
    assert np.ptp(rockers) == pytest.approx(abs(ends[0] - ends[1]), abs=2.0)
    slave.terminate()


def test_a_fmu_stays_on_its_constraints_and_survives_a_loop_that_opens(unit):
    slave, references = unit
    _initialized(slave)
    angles = [references[name] for name in ("q1", "q2", "q3")]
    diagnostics = [references[f"diagnostics.{name}"] for name in ("position_residual", "velocity_residual", "rank")]
    lengths = np.array([0.8, 2.0, 1.0])
    slave.setReal([references["constraints.rate"]], [20.0])
    energies, later = [], []
    for k in (*range(50), *range(40, 100)):  # steps 40 to 49 twice
        if len(energies) == 40:
            saved = slave.getFMUState()
        elif len(energies) == 50:
            slave.setFMUState(saved)
        slave.doStep(currentCommunicationPoint=0.1 * k, communicationStepSize=0.1)
        energies.append(slave.getReal([references["total_energy"]])[0])
        later.append(slave.getReal(angles))
        ends = lengths @ np.exp(1j * np.cumsum(slave.getReal(angles)))
        assert abs(ends - 2.0) < 1e-13
        assert slave.getReal(diagnostics)[0] < 1e-13
        assert slave.getReal(diagnostics)[1] < 1e-12
        assert slave.getReal(diagnostics)[2:] == [2.0]
    slave.freeFMUState(saved)
    assert later[40:50] == later[50:60]
    # Over some 40 J of kinetic energy; scripts/long_run has it for 10,000 s.
    assert np.ptp(energies) < 1e-8
    here = slave.getReal(angles)
    slave.setReal([references["lb"]], [9.0])  # no four-bar has these lengths
    with pytest.raises(FMICallException) as refused:
        slave.doStep(currentCommunicationPoint=10.0, communicationStepSize=0.1)
    assert refused.value.status == 2  # Discard
    slave.setReal([references["lb"]], [2.0])
    assert slave.getReal(angles) == here
    slave.doStep(currentCommunicationPoint=10.0, communicationStepSize=0.1)
    assert slave.getReal(angles) != here
