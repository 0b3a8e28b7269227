"""What is foretold of a coupling, against what happens."""

from __future__ import annotations

import numpy as np
import pytest
from coupled_masses import WIRING, slaves

from mb2fmu.systems.master.cosimulation_run import run_coupled_system
from mb2fmu.systems.master.stability_forecast import LinearCoupledComponentModel, forecast_coupling_stability
from mb2fmu.systems.port_and_bond_records import CommunicationStepSettings, ComponentPort, PortLink, SystemWiring

# Two masses joined rigidly: one gives its acceleration, the other the force that its own mass needs for it.
RIGID = SystemWiring(
    ("carrier", "load"),
    (ComponentPort(0, "F", 0), ComponentPort(1, "a", 0)), (ComponentPort(0, "a", 0), ComponentPort(1, "F", 0)),
    (PortLink(0, 1), PortLink(1, 0)), frozenset({(1, 1)}),
)  # fmt: skip


def rigid(ratio: float, lag: float = 1e-3) -> list[LinearCoupledComponentModel]:
    """The load's mass over the carrier's; the carrier's acceleration follows its force with a lag."""
    carrier = LinearCoupledComponentModel(*(np.array([[a]]) for a in (-1.0 / lag, 1.0 / lag, 1.0, 0.0)))
    load = LinearCoupledComponentModel(np.zeros((0, 0)), np.zeros((0, 1)), np.zeros((1, 0)), np.array([[-ratio]]))
    return [carrier, load]


@pytest.mark.parametrize(("ratio", "unstable"), [(0.8, False), (1.25, True)])
def test_the_mass_ratio_decides_with_held_inputs(ratio: float, unstable: bool) -> None:
    """Above a ratio of one the force swings ever more widely if steps are long against the lag."""
    found = forecast_coupling_stability(
        RIGID, rigid(ratio), CommunicationStepSettings(step=0.1, method="jacobi", order=0), 10.0
    )
    assert found.unstable == unstable
    assert found.spectral_radius == pytest.approx(ratio, rel=1e-6)
    if unstable:
        assert found.stable_step is not None
        assert found.stable_step < 1e-2


def test_the_radius_is_the_growth_that_is_seen() -> None:
    models = [LinearCoupledComponentModel(s.A, s.B, s.C, s.D) for s in slaves()]
    stepping = CommunicationStepSettings(step=0.02, method="jacobi", order=0)
    found = forecast_coupling_stability(WIRING, models, stepping, 4.0)
    sizes: list[float] = []
    run_coupled_system(WIRING, slaves(), stepping, 4.0, lambda _, y, *__: sizes.append(float(np.hypot(y[0], y[3]))))
    late, later = max(sizes[100:150]), max(sizes[150:200])
    assert np.log(later / late) / 50 == pytest.approx(np.log(found.spectral_radius), rel=0.05)


def test_what_would_explode_is_refused_before_the_first_step() -> None:
    rows: list[float] = []
    parts = [model.make_component() for model in rigid(1.25)]
    stepping = CommunicationStepSettings(step=0.1, method="jacobi", order=0)
    tally = run_coupled_system(RIGID, parts, stepping, 10.0, lambda t, *_: rows.append(t), lambda: rigid(1.25))
    assert tally.failure is not None
    assert tally.failure["unstable"]
    assert rows == []


def test_iterated_passes_make_it_stable() -> None:
    found = forecast_coupling_stability(
        RIGID, rigid(1.25), CommunicationStepSettings(step=0.1, order=0, passes=20, jacobian=True), 10.0
    )
    assert not found.unstable
