"""Dry friction on the slider of a crank-slider: at its dead centres slip is zero, and nothing of it stops the crank."""

from __future__ import annotations

from pathlib import Path

import fmpy
import numpy as np
import pytest
from judging import Judge
from representatives import by_night

from mb2fmu import CoulombFriction, Model, export, load
from mb2fmu.mechanics.formulations import formulate
from mb2fmu.mechanics.mechanism import read_mechanism
from mb2fmu.model import check_model
from mb2fmu.validation import make_reference

pytestmark = pytest.mark.slow
CRANK_SLIDER = Path(__file__).parents[2] / "models" / "crank_slider.py"


def rubbing(step: float = 0.005) -> Model:
    """The machine without gas, through two dead centres; ``step``: between communication points, s."""
    model = load(CRANK_SLIDER)
    parts = model.mechanics
    pin = parts.bodies[1].masscenter
    model.add(CoulombFriction("guide", (parts.origin, pin, parts.frame.x), kinetic=45.0, static=55.0))
    model.experiment(stop=0.3, step=step, tolerance=1e-8)
    return model


TREATMENTS = ("attractor", "explicit", "partition")


@pytest.fixture(scope="module")
def judge():
    return Judge()


@pytest.mark.parametrize(("treatment", "judged"), [("attractor", False), *by_night(*((t, True) for t in TREATMENTS))])
def test_a_crank_goes_through_its_dead_centres(tmp_path, judge, treatment, judged):
    """The energy that is lost is friction times way; an FMU, and its derivatives, can be made by every treatment."""
    unit = export(rubbing(), tmp_path, constraints=treatment).path
    for kind in ("CoSimulation", "ModelExchange"):
        names = ["omega", "slider", "kinetic_energy"]
        found = fmpy.simulate_fmu(
            str(unit), fmi_type=kind, stop_time=0.3, output_interval=0.005, relative_tolerance=1e-9, output=names
        )
        assert found["omega"].min() > 20.0
        way = (found["slider"][0] - 0.1) + (0.2 - 0.1) + (0.2 - found["slider"][-1])
        lost = found["kinetic_energy"][0] - found["kinetic_energy"][-1]
        assert lost == pytest.approx(45.0 * way, rel=1e-5)
        assert np.isfinite(found["omega"]).all()
    assert not judged or judge.passes(rubbing, unit)


def test_long_steps_come_to_the_dead_centres_too():
    """The first run, for magnitudes, is a rough one: its events are as near to a dead centre as a sign needs it."""
    definition = check_model(rubbing(step=0.05))
    reference = make_reference(definition, formulate(read_mechanism(definition), "lagrange"))
    assert [event.name for event in reference.events] == ["StickingSign(v, guide_static/guide_kinetic)"] * 2
