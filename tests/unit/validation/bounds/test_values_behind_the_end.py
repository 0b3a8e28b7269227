"""A controller that samples at the end: the reference's clock may have that instant behind it by round-off."""

from __future__ import annotations

import numpy as np
import pytest
from event_models import reference_of
from sympy.physics import mechanics as me

from mb2fmu import Model
from mb2fmu.validation.comparison.motion_comparison import compute_error_bounds
from mb2fmu.validation.reference.start_error_growth import measure_start_error_growth

PERIOD, GAIN = 0.005, 40.0


def sampled_mass(stop: float) -> Model:
    x, v, force = me.dynamicsymbols("x v force")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    loads = [(P, force * N.x)]
    kane = me.KanesMethod(N, [x], [v], [x.diff() - v], bodies=[me.Particle("b", P, 1)], forcelist=loads)
    model = Model("Sampled", kane)
    model.coordinate(x, 1.0, "m")
    model.speed(v, 0.5, "m/s")
    model.discrete(force, 0.0, "N")
    model.every(PERIOD, {force: -GAIN * x})
    model.experiment(stop=stop, step=PERIOD / 2)
    return model


@pytest.mark.parametrize(("periods", "events"), [(20, 19), (20.5, 20)])
def test_an_fmu_may_sample_at_the_end_or_not(periods: float, events: int) -> None:
    """Twenty sums of 0.005 s come to more than 0.1 s."""
    reference = reference_of(sampled_mass(periods * PERIOD))
    assert len(reference.events) == events
    last, column = len(reference.states) - 1, reference.trajectory.column("force")
    near = compute_error_bounds(reference, measure_start_error_growth(reference)).sides_near_events
    assert (last in near) == (events == 19)
    if last in near:
        forces = near[last].values[:, column]
        assert forces == pytest.approx([reference.trajectory.values[last, column], -GAIN * reference.states[last, 0]])
        assert np.ptp(forces) > 1e-3
