"""A robot and the unit of its inverse dynamics, connected, follow a trajectory: in fmpy, and as a coupled system."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fmpy import extract, read_model_description
from fmpy.fmi2 import FMU2Slave
from fmpy.fmi3 import FMU3Slave
from unit.robots.robot_texts import joint, link, robot

from mb2fmu import CoupledSystem, pipeline
from mb2fmu.pipeline.system_runs.coupled_system_run import wire_loaded_system
from mb2fmu.systems import simulate_system

ARM = robot(
    '<link name="base"/>\n',
    link("l1", 2.0),
    link("l2", 1.5, 0.05),
    joint("j1", "revolute", "base", "l1", '<limit lower="-2" upper="2" effort="90" velocity="9"/>'
          '<dynamics damping="0.3"/>'),
    joint("j2", "prismatic", "l1", "l2", '<limit lower="-1" upper="1" effort="90" velocity="9"/>', axis="2 0 0"),
    name="arm",
)  # fmt: skip
PLACES = ("j1.angle", "j2.position")
MOTION = [(place, f"{place[:2]}.speed", f"{place[:2]}.acceleration") for place in PLACES]


@pytest.fixture(scope="module")
def units(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The robot, and its inverse dynamics."""
    folder = tmp_path_factory.mktemp("units")
    path = folder / "arm.urdf"
    path.write_text(ARM)
    asked = {"plant": {}, "control": {"role": "inverse-dynamics", "name": "control"}}
    return {name: pipeline.export(path, folder, arguments=given).path for name, given in asked.items()}


class Slave:
    """A co-simulation slave by names."""

    def __init__(self, path: Path, folder: Path) -> None:
        about = read_model_description(path)
        assert about.coSimulation is not None
        self._of = {v.name: v.valueReference for v in about.modelVariables}
        self.unit = FMU2Slave(
            guid=about.guid,
            unzipDirectory=extract(path, folder),
            modelIdentifier=about.coSimulation.modelIdentifier,
            instanceName=path.stem,
        )
        self.unit.instantiate()
        self.unit.setupExperiment(startTime=0.0)
        self.unit.enterInitializationMode()
        self.unit.exitInitializationMode()

    def set(self, values: dict[str, float]) -> None:
        self.unit.setReal([self._of[name] for name in values], list(values.values()))

    def get(self, *names: str) -> list[float]:
        return list(map(float, self.unit.getReal([self._of[name] for name in names])))


def wanted(t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions, speeds and accelerations: a smooth motion of both joints that begins at rest."""
    size, rate = np.array([0.6, 0.2]), np.array([3.0, 5.0])
    return size * (1 - np.cos(rate * t)), size * rate * np.sin(rate * t), size * rate**2 * np.cos(rate * t)


def worst_of_tracking(units: dict[str, Path], folder: Path, step: float, gain: float = 30.0) -> float:
    """Largest error of position over 0.5 s: torques of the desired motion with feedback, held over a step."""
    plant, control = Slave(units["plant"], folder / "plant"), Slave(units["control"], folder / "control")
    worst = 0.0
    for k in range(round(0.5 / step)):
        at, after = wanted(k * step), wanted((k + 0.5) * step)[2]
        place, speed = np.array(plant.get(*PLACES)), np.array(plant.get("j1.speed", "j2.speed"))
        push = after + 2 * gain * (at[1] - speed) + gain**2 * (at[0] - place)
        given = {n: x for (q, v, a), x3 in zip(MOTION, zip(place, speed, push, strict=True), strict=True)
                 for n, x in zip((q, v, a), x3, strict=True)}  # fmt: skip
        control.set(given)
        efforts = control.get("j1.effort", "j2.effort")
        plant.set({"j1.effort": efforts[0], "j2.effort": efforts[1]})
        plant.unit.doStep(k * step, step)
        worst = max(worst, float(np.max(np.abs(np.array(plant.get(*PLACES)) - wanted((k + 1) * step)[0]))))
    for slave in (plant, control):
        slave.unit.terminate()
        slave.unit.freeInstance()
    return worst


def test_computed_torques_track_a_trajectory_in_fmpy(units: dict[str, Path], tmp_path: Path) -> None:
    """1.2 rad and 0.4 m: nothing is left but the efforts held over a step, an error of first order in the step."""
    coarse, fine = (worst_of_tracking(units, tmp_path / str(k), step) for k, step in enumerate((0.008, 0.001)))
    assert fine < 4e-5
    assert coarse == pytest.approx(8 * fine, rel=0.1)


def test_a_fmu_without_states_tells_its_importer_of_every_step(tmp_path: Path) -> None:
    """Its communication step is one internal step: FMI 3's callback comes at its end, and what is set there holds."""
    path = tmp_path / "arm.urdf"
    path.write_text(ARM)
    unit = pipeline.export(path, tmp_path, fmi="3", arguments={"role": "inverse-dynamics"}).path
    about, folder = read_model_description(unit), extract(unit, tmp_path / "unit")
    of = {v.name: v.valueReference for v in about.modelVariables}
    slave = FMU3Slave(
        guid=about.guid, unzipDirectory=folder, modelIdentifier=about.coSimulation.modelIdentifier, instanceName="arm"
    )
    times = []

    def update(_environment: object, time: float, *_: object) -> None:
        times.append(time)
        slave.setFloat64([of["j1.acceleration"]], [time])

    slave.instantiate(intermediateUpdate=update, requiredIntermediateVariables=[of["j1.acceleration"]])
    slave.enterInitializationMode(startTime=0.0)
    slave.exitInitializationMode()
    still = slave.getFloat64([of["j1.effort"]])[0]
    assert slave.doStep(0.0, 0.25)[2:] == (False, 0.25)
    first = slave.getFloat64([of["j1.effort"]])[0] - still
    assert slave.doStep(0.25, 0.25)[2:] == (False, 0.5)
    second = slave.getFloat64([of["j1.effort"]])[0] - still
    slave.terminate()
    slave.freeInstance()
    assert times == [0.25, 0.5]
    assert first > 0.01  # kg.m2 times 0.25 rad/s2
    assert second == pytest.approx(2 * first, rel=1e-12)


def test_the_coupled_system_has_the_accelerations_that_were_asked_for(units: dict[str, Path]) -> None:
    """Nothing but inverse dynamics between a given acceleration and the motion: q = a t² / 2."""
    asked = {"j1": 1.5, "j2": -0.8}
    system = CoupledSystem("ComputedTorque")
    system.component("plant", units["plant"])
    given = {f"{name}.acceleration": (value, "rad/s2" if name == "j1" else "m/s2") for name, value in asked.items()}
    system.component("control", units["control"], values=given)
    for name, place in zip(asked, PLACES, strict=True):
        system.connect(f"plant.{place}", f"control.{place}")
        system.connect(f"plant.{name}.speed", f"control.{name}.speed")
        system.connect(f"control.{name}.effort", f"plant.{name}.effort")
    system.experiment(stop=0.5, step=0.01, tolerance=1e-10, order=2, passes=20, converged=1e-11)
    motion = simulate_system(wire_loaded_system(system))
    time = np.array(motion.time)
    for value, place in zip(asked.values(), PLACES, strict=True):
        assert motion[f"plant.{place}"] == pytest.approx(value * time**2 / 2, abs=2e-6)
