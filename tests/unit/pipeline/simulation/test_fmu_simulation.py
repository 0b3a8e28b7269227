"""Simulating an FMU that does not come to its end: what it had reached is kept."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import sympy as sm
from click.testing import CliRunner
from sympy.physics import mechanics as me

from mb2fmu import Model, pipeline
from mb2fmu.cli import commands
from mb2fmu.fmu.runner import fmu_run_process
from mb2fmu.fmu.runner.fmpy_instances import FmuMessageLog
from mb2fmu.pipeline.simulation.fmu_simulation import simulate_fmu_file
from mb2fmu.pipeline.simulation.simulation_trajectories import SimulationStoppedError


class NotANumberAfterTwoSteps:  # its methods are called as those of an instance
    """Stands in for an instance whose second variable is NaN from its third step on."""

    def __init__(self, *_: object) -> None:
        self.steps = 0

    def initialize(self, *_: object) -> None: ...

    def change(self, *_: object) -> None: ...

    def make_reader(self, _: list[int]) -> Callable[[], list[float]]:
        return lambda: [float(self.steps), math.nan if self.steps > 2 else 1.0]

    def step(self, *_: float) -> str:
        self.steps += 1
        return ""

    def close(self) -> None: ...

    def recorded_events(self) -> list[Any]:
        return []


@pytest.mark.parametrize("stops", [True, False])
def test_a_run_ends_at_the_first_value_that_is_no_number(
    stops: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fmu_run_process, "INSTANCE_CLASSES", {("CoSimulation", 2): NotANumberAfterTwoSteps})
    np.save(tmp_path / "held.npy", np.zeros((10, 0)))
    experiment = {"held": str(tmp_path / "held.npy"), "values": str(tmp_path / "values.npy"), "step": 0.1, "inputs": []}
    request = {"kind": "CoSimulation", "version": 2, "variables": [0, 1], "names": ["x", "y"]}
    outcome = fmu_run_process.run_fmu_experiment(
        {**request, "stops_at_not_finite": stops}, experiment, FmuMessageLog(io.StringIO())
    )
    assert outcome["reached"] == (2 if stops else 10)
    assert outcome["failure"] == ("y is nan at t = 0.3 s" if stops else "")


class Neighbour(NotANumberAfterTwoSteps):
    """How many instances there are as one gets its first values."""

    alive = 0
    seen: ClassVar[list[int]] = []

    def __init__(self, request: dict[str, Any], log: FmuMessageLog) -> None:
        super().__init__(request, log)
        Neighbour.alive += 1

    def initialize(self, experiment: dict[str, Any], inputs: list[float]) -> None:
        super().initialize(experiment, inputs)
        Neighbour.seen.append(Neighbour.alive)

    def free(self) -> None:
        Neighbour.alive -= 1

    close = free


@pytest.mark.parametrize("several", [True, False])
def test_all_but_the_first_experiment_run_beside_another_instance(
    several: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A unit whose second instance in a process is another is reported; one that can be there once is alone."""
    monkeypatch.setattr(fmu_run_process, "INSTANCE_CLASSES", {("CoSimulation", 2): Neighbour})
    monkeypatch.setattr(Neighbour, "seen", [])
    np.save(tmp_path / "held.npy", np.zeros((2, 0)))
    experiment = {"held": str(tmp_path / "held.npy"), "values": str(tmp_path / "values.npy"), "step": 0.1, "inputs": []}
    request = {"kind": "CoSimulation", "version": 2, "variables": [0, 1], "names": ["x", "y"], "several": several}
    request |= {"folder": str(tmp_path), "experiments": [experiment] * 2, "sessions": {}, "stops_at_not_finite": False}
    (tmp_path / "request.json").write_text(json.dumps(request))
    fmu_run_process.run_fmu_process_request(tmp_path / "request.json")
    assert Neighbour.seen == ([1, 2] if several else [1, 1])
    assert Neighbour.alive == 0


def falling_into_a_root() -> Model:
    """x = 1 − t: the root of x has no value after 1 s."""
    (x, v), m = me.dynamicsymbols("x v"), sm.Symbol("m")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    loads = [(P, 1e-9 * m * sm.sqrt(x) * N.x)]
    kane = me.KanesMethod(N, [x], [v], [x.diff() - v], bodies=[me.Particle("b", P, m)], forcelist=loads)
    model = Model("Root", kane)
    model.parameter(m, 2.0, "kg")
    model.coordinate(x, 1.0, "m")
    model.speed(v, -1.0, "m/s")
    model.experiment(stop=2.0, step=0.1)
    return model


def test_what_was_reached_before_a_failure_is_kept_and_written(tmp_path: Path) -> None:
    fmu = pipeline.export(falling_into_a_root(), tmp_path).path
    with pytest.raises(SimulationStoppedError, match="the trajectories up to t = ") as error:
        simulate_fmu_file(fmu)
    kept = error.value.simulation
    assert 0.8 <= kept.time[-1] <= 1.0
    assert kept["x"] == pytest.approx(1.0 - kept.time, abs=1e-6)
    table = tmp_path / "root.csv"
    done = CliRunner().invoke(commands, ["simulate", str(fmu), "--csv", str(table)], prog_name="mb2fmu")
    assert done.exit_code == 3
    assert len(table.read_text(encoding="utf-8").splitlines()) == 1 + len(kept.time)
