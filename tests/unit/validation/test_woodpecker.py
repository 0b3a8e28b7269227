"""The toy woodpecker: its cycle takes as long, and goes down as far, as with the parameters of Siconos' example."""

from __future__ import annotations

from pathlib import Path

import fmpy
import numpy as np
import pytest
from event_models import reference_of

from mb2fmu import export
from mb2fmu.model import load

pytestmark = pytest.mark.repeats  # by day contacts that rest and slide have closed forms in test_published_contact
MODEL = Path(__file__).parents[3] / "models" / "woodpecker.py"
PERIOD, FALL = 0.1459761, 19.4454e-3
PUBLISHED_START = {
    "y": 0.0,
    "phi_M": -0.0006 / 0.0058,
    "phi_S": -0.2788,
    "v": -0.3411,
    "omega_M": 0.0,
    "omega_S": -7.4583,
    "lower.resting": 1.0,
    "lower.sliding": -1.0,
}
"""Pfeiffer and Glocker's: the sleeve slides down, jammed by its lower edge."""


@pytest.fixture(scope="module")
def unit(tmp_path_factory):
    return str(export(load(MODEL), tmp_path_factory.mktemp("woodpecker")).path)


def falls(unit, *, start, cycles: int, tolerance: float, kind: str = "CoSimulation", parts: int = 1):
    """Heights and turns of the bird, cycle by cycle."""
    found = fmpy.simulate_fmu(
        unit,
        fmi_type=kind,
        start_values=start,
        stop_time=cycles * PERIOD,
        output_interval=PERIOD / parts,
        relative_tolerance=tolerance,
        output=["y", "phi_S", "omega_S", "beak.impacts"],
        record_events=False,
    )
    return found[::parts]


@pytest.mark.parametrize(
    ("kind", "tolerance", "parts"), [("CoSimulation", 1e-11, 1), ("ModelExchange", 1e-10, 20)], ids=["CS", "ME"]
)
def test_a_cycle_takes_and_falls_as_published(unit, kind, tolerance, parts):
    found = falls(unit, start={}, cycles=10, tolerance=tolerance, kind=kind, parts=parts)
    assert found["beak.impacts"].tolist() == list(range(11))
    assert np.diff(found["y"]) == pytest.approx(-FALL, abs=5e-8)  # the published digits, in m
    late = np.diff(found["phi_S"]) / found["omega_S"][0]  # what a cycle is shorter by than the published digits
    assert np.abs(late).max() < 5e-8


def test_the_published_start_comes_to_the_same_cycle(unit):
    found = falls(unit, start=PUBLISHED_START, cycles=60, tolerance=1e-9)
    assert np.diff(found["y"])[0] != pytest.approx(-FALL, abs=1e-5)
    assert (found["y"][-1] - found["y"][-21]) / 20 == pytest.approx(-FALL, abs=5e-8)
    assert found["beak.impacts"][-1] == 60


def test_by_the_reference_a_cycle_takes_and_falls_as_published():
    """From one strike of the beak to the next, three of them."""
    model = load(MODEL)
    model.experiment(stop=0.45, step=0.0025, tolerance=1e-9)
    strikes = [event for event in reference_of(model).events if event.name == "impact of beak"]
    assert np.diff([event.time for event in strikes]) == pytest.approx([PERIOD] * 2, abs=5e-8)
    assert np.diff([np.ravel(event.states)[0] for event in strikes]) == pytest.approx([-FALL] * 2, abs=5e-8)
