"""The simplest walker on its stable gait, against the fixed point of Garcia and others (1998) and the gait's period."""

from __future__ import annotations

from pathlib import Path

import fmpy
import numpy as np
import pytest
from event_runs import run_with_events
from mechanisms import closed_mechanism_of

from mb2fmu import export
from mb2fmu.mechanics import formulations
from mb2fmu.model import load
from mb2fmu.validation.reference.reference_run import make_reference

MODEL = Path(__file__).parents[3] / "models" / "simplest_walker.py"
FIXED_POINT = {"theta": 0.200310900544287, "omega": -0.199832473004977}
"""theta and theta' behind a strike, as published with their program, whose integrator is good for nine digits."""
PERIOD = 3.88246375285
"""From the published equations by SciPy alone, to twelve digits."""
STRIDE = 2 * np.sin(FIXED_POINT["theta"])


@pytest.fixture(scope="module")
def reference():
    mechanism = closed_mechanism_of(load(MODEL))
    return make_reference(mechanism.declared, formulations.formulate(mechanism, "tmt"))


def test_the_gait_comes_back_to_the_published_fixed_point(reference):
    """A start beside the fixed point would not: the map of one step has the multipliers -.19 +- .56 i."""
    strikes = [event for event in reference.events if event.sets_state]
    assert len(strikes) == 5
    columns = list(reference.state_columns)
    theta, omega = (columns.index(reference.trajectory.column(name)) for name in FIXED_POINT)
    behind = np.array([event.states[1] for event in strikes])
    assert behind[:, theta] == pytest.approx(FIXED_POINT["theta"], rel=1e-8)
    assert behind[:, omega] == pytest.approx(FIXED_POINT["omega"], rel=1e-8)
    assert np.diff([0.0, *(event.time for event in strikes)]) == pytest.approx(PERIOD, rel=1e-8)


def test_what_strikes_take_is_what_the_slope_gives(reference):
    """A step goes down by stride times sin(slope): the total energy falls by that, with a hip of 1 kg and g = 1."""
    values = reference.trajectory.values
    place, energy = (values[:, reference.trajectory.column(name)] for name in ("place", "total_energy"))
    assert place[-1] == pytest.approx(5 * STRIDE, rel=1e-8)
    assert energy[-1] - energy[0] == pytest.approx(-5 * STRIDE * np.sin(0.009), rel=1e-7)


@pytest.mark.repeats  # by day the reference walks as far
@pytest.mark.parametrize(("kind", "accuracy"), [("CoSimulation", 1e-8), ("ModelExchange", 1e-6)])
def test_the_fmu_walks_as_far(unit, kind, accuracy):
    found = fmpy.simulate_fmu(unit, fmi_type=kind, stop_time=20.0, output_interval=0.1, relative_tolerance=1e-9)
    assert found["steps"][-1] == 5.0
    assert found["place"][-1] == pytest.approx(5 * STRIDE, rel=accuracy)


@pytest.mark.repeats  # by day the reference does
def test_the_fmu_comes_back_to_the_published_fixed_point(tmp_path):
    path = str(export(load(MODEL), tmp_path, fmi="3").path)
    run = run_with_events(path, "CoSimulation", 20.0, 0.1, ["theta", "omega", "steps"])
    behind = np.flatnonzero(np.diff(run.found["steps"]) == 1.0) + 1
    assert run.found["theta"][behind] == pytest.approx([FIXED_POINT["theta"]] * 5, rel=1e-7)
    assert run.found["omega"][behind] == pytest.approx([FIXED_POINT["omega"]] * 5, rel=1e-7)
    assert np.diff([0.0, *run.found["time"][behind]]) == pytest.approx(PERIOD, rel=1e-7)


@pytest.fixture(scope="module")
def unit(tmp_path_factory):
    return str(export(load(MODEL), tmp_path_factory.mktemp("walker")).path)
