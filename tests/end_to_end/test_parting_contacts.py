"""Contacts that are said to rest and part: new parameters, or the start values, have set their bodies in motion.

Gap and rate of a resting contact were looked at for the gap alone. So what was pierced and parted rested on, until its
stabilization had thrown it over the surface: there Co-Simulation, which asks at each step, let it go, while Model
Exchange and the reference, which ask at events, held it for good.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from mechanisms import closed_mechanism_of

from mb2fmu import Impact, Model, export
from mb2fmu.fmu.package import read_archive
from mb2fmu.mechanics import formulations
from mb2fmu.validation.bounds.one_step_flow import ExperimentCommunicationStep, OneStepFlow
from mb2fmu.validation.reference.experiment_values import form_experiment_values
from mb2fmu.validation.reference.reference_run import ReferenceRun, make_reference
from mb2fmu.validation.runs.fmu_description_for_runs import read_fmu_description
from mb2fmu.validation.runs.fmu_run import run_fmu_process

MASS, STIFFNESS, DAMPING, PRESSED, G = 0.2, 400.0, 0.5, 0.02, 9.81
HEIGHT, TURNS, FASTER = 0.01, 60.0, 63.0
STEP, AT = 0.005, 20  # s, and the step with which the cam turns faster
NAMES = ["y", "v", "cam.resting", "cam.impacts"]
EVERY_WAY = [(fmi, kind) for fmi in ("2", "3") for kind in ("CoSimulation", "ModelExchange")]


def follower(speed: float = 0.0, stabilization: float = 10.0) -> Model:
    """A follower that a spring presses upon a cam, from the cam's highest point."""
    y, v, t = *me.dynamicsymbols("y v"), me.dynamicsymbols._t
    turns = sm.Symbol("turns")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", y * N.y)
    P.set_vel(N, v * N.y)
    force = -sm.Float(STIFFNESS) * (y + PRESSED) - sm.Float(DAMPING) * v - MASS * sm.Float(G)
    mass = me.Particle("follower", P, MASS)
    model = Model("Follower", me.KanesMethod(N, [y], [v], [y.diff() - v], bodies=[mass], forcelist=[(P, force * N.y)]))
    model.parameter(turns, TURNS, "rad/s")
    model.coordinate(y, HEIGHT, "m")
    model.speed(v, speed, "m/s")
    gap = y - HEIGHT * sm.cos(turns * t)
    laws = {"restitution": 0.3, "rest_below": 0.01, "stabilization": stabilization}
    model.add(Impact("cam", gap, starts_resting=True, **laws))
    model.experiment(stop=0.15, step=STEP, tolerance=1e-9)
    return model


def flight(y: float, v: float, time: float) -> list[float]:
    """The place and speed of the follower in the air, in closed form."""
    rest, decay = -PRESSED - MASS * G / STIFFNESS, DAMPING / (2 * MASS)
    omega = np.sqrt(STIFFNESS / MASS - decay**2)
    a, b = y - rest, (v + decay * (y - rest)) / omega
    c, s, fades = np.cos(omega * time), np.sin(omega * time), np.exp(-decay * time)
    return [rest + fades * (a * c + b * s), fades * (omega * (b * c - a * s) - decay * (a * c + b * s))]


@pytest.fixture(scope="module")
def unit(tmp_path_factory):
    """Makes the FMU of a version: its file, its conditions, and what stands for the cam's rate."""

    def made(fmi: str):
        model = follower()
        path = export(model, tmp_path_factory.mktemp(f"follower{fmi}"), fmi=fmi).path
        references = {name: v.reference for name, v in read_fmu_description(read_archive(path)).variables.items()}
        return path, form_experiment_values(closed_mechanism_of(model).declared), references

    return {fmi: made(fmi) for fmi in ("2", "3")}


def reference_of(model: Model) -> ReferenceRun:
    mechanism = closed_mechanism_of(model)
    return make_reference(mechanism.declared, formulations.formulate(mechanism, "lagrange"))


@pytest.fixture(scope="module")
def reference():
    return reference_of(follower())


@pytest.mark.parametrize(("fmi", "kind"), EVERY_WAY)
def test_what_new_parameters_leave_pierced_and_parting_is_let_go(unit, reference, fmi, kind):
    """The cam turns faster from 0.1 s on: 0.4 mm deep the follower parts with 0.178 m/s, flies for 9 ms and strikes."""
    path, experiment, places = unit[fmi]
    calls = [["begin", 0], ["steps", 0, 0, AT], ["tune", [places["turns"]], [FASTER]], ["steps", 0, AT, 30]]
    found = np.array(
        run_fmu_process(path, [experiment], NAMES, kind=kind, sessions={"faster": calls}).recorded_values["faster"][-1]
    )
    time = AT * STEP
    y, v = HEIGHT * np.cos(TURNS * time), -HEIGHT * TURNS * np.sin(TURNS * time)
    assert y - HEIGHT * np.cos(FASTER * time) < -3.9e-4
    assert found[0].tolist() == pytest.approx([*flight(y, v, STEP), 0.0, 0.0], rel=1e-5)
    flow, x = OneStepFlow(reference, [FASTER, *reference.experiment.parameters[1:]]), reference.states[AT]
    names = [reference.trajectory.names[place] for place in reference.state_columns]
    places = [names.index(name) for name in NAMES]
    modes = None
    for k, row in enumerate(found, AT):
        before = tuple(reference.experiment.parameters) if k == AT else None
        landing = flow.compute_step_end(ExperimentCommunicationStep(k, modes, None, before), x)
        x, modes = landing.x, landing.modes
        assert row.tolist() == pytest.approx(x[places].tolist(), rel=1e-5, abs=1e-7)
    assert found[-1, -1] >= 1.0


@pytest.mark.parametrize("stabilization", [0.0, 10.0])
@pytest.mark.parametrize(("fmi", "kind"), EVERY_WAY)
def test_what_is_said_to_rest_and_parts_at_the_start_flies(unit, fmi, kind, stabilization):
    """Without stabilization, too: there the gap may be what it is, its rate may not."""
    path, experiment, _ = unit[fmi]
    thrown = dataclasses.replace(experiment, overridden_values={"v": 0.3, "cam.stabilization": stabilization})
    calls = [["begin", 0], ["steps", 0, 0, 3]]
    found = np.array(
        run_fmu_process(path, [thrown], NAMES, kind=kind, sessions={"thrown": calls}).recorded_values["thrown"][-1]
    )
    for k, row in enumerate(found, 1):
        assert row.tolist() == pytest.approx([*flight(HEIGHT, 0.3, k * STEP), 0.0, 0.0], rel=1e-5)


@pytest.mark.parametrize("kind", ["CoSimulation", "ModelExchange"])
def test_what_comes_back_quietly_rests_whenever_one_looks(unit, kind):
    """Bound: 2/1000 of 0.01 m/s. Co-Simulation looks at each of 30 steps, while the gap rises by 0.7e-6 m and falls."""
    path, experiment, _ = unit["3"]
    starts = [dataclasses.replace(experiment, overridden_values={"v": v}) for v in (1.8e-5, 2.2e-5)]
    calls = {f"{k}": [["begin", k], ["steps", k, 0, 30]] for k in range(2)}
    answers = run_fmu_process(path, starts, NAMES, kind=kind, sessions=calls).recorded_values
    slow, fast = (np.array(answers[f"{k}"][-1])[:, 2:] for k in range(2))
    assert (slow == [1.0, 0.0]).all()
    assert fast[-1, 1] >= 1.0


def test_the_reference_lets_go_at_the_start_what_parts():
    for stabilization in (0.0, 10.0):
        found = reference_of(follower(0.3, stabilization))
        names = [found.trajectory.names.index(name) for name in NAMES]
        assert found.trajectory.values[2, names] == pytest.approx([*flight(HEIGHT, 0.3, 2 * STEP), 0.0, 0.0], rel=1e-9)
