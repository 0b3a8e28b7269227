"""Real FMUs under the master: the numbers that linear components give, both versions of FMI, the same bits again."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from coupled_masses import exact

from mb2fmu.fmu.runner.fmpy_instances import Fmi2CoSimulationInstance, FmuMessageLog
from mb2fmu.pipeline.system_runs.coupled_system_run import run_coupled_system
from mb2fmu.systems import (
    CommunicationStepSettings,
    CoupledSystem,
    CouplingError,
    SystemTrajectories,
    WiredSystem,
    read_fmu_component,
    system_simulation,
    wire_system,
)
from mb2fmu.systems import simulate_system as simulate
from mb2fmu.systems.master.coupled_system_stepping import SystemStepper
from mb2fmu.systems.master.fmu_slaves import Fmi2Slave
from mb2fmu.systems.system_simulation import _make_request

Units = dict[str, dict[str, Path]]


def two_masses(units: dict[str, Path], **options: object) -> CoupledSystem:
    system = CoupledSystem("TwoMasses")
    for name in ("left", "right"):
        system.component(name, units[name])
    system.connect("left.x", "right.s")
    system.connect("right.force", "left.F")
    system.bond("spring", "left.F * left.v", "-right.force * der(right.s)")
    system.experiment(**{"stop": 1.0, "tolerance": 1e-11, **options})  # type: ignore[arg-type]
    return system


def joined(system: CoupledSystem) -> WiredSystem:
    return wire_system(system, [read_fmu_component(each.name, each.source) for each in system.components])


def error(motion: SystemTrajectories) -> float:
    return float(np.max(np.abs(motion["left.x"] - exact(motion.time))))


ERRORS = {
    "hold": ({"method": "jacobi", "order": 0}, 0.347),
    "lines": ({"method": "jacobi", "order": 1}, 3.94e-2),
    "parabolas": ({"method": "jacobi", "order": 2}, 7.03e-3),
    "iterated": ({"order": 2, "passes": 30, "converged": 1e-11}, 8.27e-4),
}
BY_DAY = {("parabolas", "2"), ("iterated", "3")}


@pytest.mark.parametrize(
    ("options", "wanted", "fmi"),
    [
        pytest.param(*case, fmi, id=f"{name}-{fmi}", marks=() if (name, fmi) in BY_DAY else pytest.mark.repeats)
        for name, case in ERRORS.items()
        for fmi in ("2", "3")
    ],
)
def test_fmus_err_as_exactly_stepped_components_do(
    mass_units: Units, fmi: str, options: dict[str, object], wanted: float
) -> None:
    """Slopes (FMI 2) or intermediate updates (FMI 3) carry the courses into the units."""
    motion = simulate(joined(two_masses(mass_units[fmi], step=0.01, **options)))
    assert error(motion) == pytest.approx(wanted, rel=5e-3)
    assert motion.statistics["forecast"]["exact_spectral_radius"] == pytest.approx(1.0, abs=1e-9)


def test_who_wants_to_know_is_reported_how_far_it_is(mass_units: Units, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float] = []
    monkeypatch.setattr(system_simulation, "_POLL_INTERVAL", 0.001)
    simulate(joined(two_masses(mass_units["2"], step=0.002, order=0)), seen.append)
    assert seen
    assert seen == sorted(seen)
    assert 0.0 < seen[-1] <= 1.0


def test_fmus_set_back_step_again_with_the_same_bits(mass_units: Units, tmp_path: Path) -> None:
    """One step of 2 H, back, two of H: the bits of a sequence without the long step."""
    found = []
    for detour in (False, True):
        system = joined(two_masses(mass_units["2"], step=0.01, order=2, passes=5))
        folder = tmp_path / str(detour)
        request = _make_request(system, folder)
        log = FmuMessageLog(io.StringIO())
        slaves = []
        for k, unit in enumerate(request.components):
            wiring = request.wiring
            instance = Fmi2CoSimulationInstance(dict(unit.instance_request), log)
            inputs = [wiring.inputs[i].reference for i in wiring.inputs_of(k)]
            outputs = [wiring.outputs[i].reference for i in wiring.outputs_of(k)]
            slave = Fmi2Slave(instance, inputs, outputs, unit.capabilities, 1)
            slave.enter_initialization_mode(0.0, 1.0, 1e-11)
            slaves.append(slave)
        march = SystemStepper(request.wiring, slaves, CommunicationStepSettings(step=0.01, order=2, passes=5))
        march.initialize()
        for slave in slaves:
            slave.enter_step_mode()
        march.initialize()
        march.step(0.01)
        if detour:
            kept = march.save()
            march.step(0.02)
            march.restore(kept)
        march.step(0.01)
        march.step(0.01)
        found.append(march.loop_solver.y.tobytes())
        for slave in slaves:
            slave.terminate()
    assert found[0] == found[1]


def test_a_coupling_that_would_explode_is_refused_beforehand(mass_units: Units) -> None:
    """Extrapolated parabolas over a third of the fast oscillation's period do not carry the spring."""
    system = two_masses(mass_units["2"], stop=20.0, step=0.1, method="jacobi", order=2)
    with pytest.raises(CouplingError, match=r"would be unstable") as raised:
        simulate(joined(system))
    assert "per step of 0.1 s" in str(raised.value)
    assert "gauss-seidel" in str(raised.value)


def test_a_refused_coupling_leaves_its_archive_and_no_results(mass_units: Units, tmp_path: Path) -> None:
    """Another master, or another step, may carry it: here the archive itself, read again with iterated passes."""
    system = two_masses(mass_units["2"], stop=20.0, step=0.1, method="jacobi", order=2)
    with pytest.raises(CouplingError, match=r"would be unstable") as raised:
        run_coupled_system(system, tmp_path / "out")
    name = system.name
    archive = tmp_path / "out" / f"{name}.ssp"
    assert f"{archive} is written" in str(raised.value)
    assert not (tmp_path / "out" / f"{name}.csv").exists()
    done = run_coupled_system(archive, tmp_path / "again", arguments={"step": 0.01, "stop": 1.0, "passes": 20})
    assert done.motion.time[-1] == pytest.approx(1.0)


def test_the_request_is_plain_data(mass_units: Units, tmp_path: Path) -> None:
    system = joined(two_masses(mass_units["2"], step=0.01))
    request = _make_request(system, tmp_path)
    assert json.dumps([dict(unit.instance_request) for unit in request.components])
