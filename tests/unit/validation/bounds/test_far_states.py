"""States far from zero that hardly move: a solver's error is a part of their value, bounds of others stay."""

from __future__ import annotations

import numpy as np
import pytest
from event_models import reference_of
from sympy.physics import mechanics as me

from mb2fmu import Model
from mb2fmu.validation.comparison.motion_comparison import compute_error_bounds
from mb2fmu.validation.reference.start_error_growth import measure_start_error_growth, measure_step_control_errors

TOLERANCE = 1e-6


def oscillator(middle: float) -> Model:
    """It moves by a thousandth of a metre about a place."""
    x, v = me.dynamicsymbols("x v")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    loads = [(P, -9 * (x - middle) * N.x)]
    kane = me.KanesMethod(N, [x], [v], [x.diff() - v], bodies=[me.Particle("b", P, 1)], forcelist=loads)
    model = Model("Far", kane)
    model.coordinate(x, middle + 0.0005, "m")
    model.speed(v, 0.0, "m/s")
    model.output("double", 2 * x, "m")
    model.experiment(stop=2.0, step=0.05, tolerance=TOLERANCE)
    return model


@pytest.mark.parametrize(("middle", "part"), [(0.0, None), (0.3, 10 * TOLERANCE), (5.0, 10 * TOLERANCE)])
def test_what_hardly_moves_may_be_off_by_the_step_control(middle: float, part: float | None) -> None:
    reference = reference_of(oscillator(middle))
    bounds = compute_error_bounds(reference, measure_start_error_growth(reference))
    values = dict(zip(reference.trajectory.names, bounds.values[0], strict=True))
    largest = np.max(np.abs(reference.states[:, 0]))
    allowed = 50 * TOLERANCE * 0.01 if part is None else min(part * largest, 0.05 * 0.001)
    if part is None:
        assert not measure_step_control_errors(reference).any()
        assert values["x"] < allowed
    else:
        assert values["x"] == pytest.approx(allowed, rel=0.01)
        assert values["double"] == pytest.approx(2 * allowed, rel=0.01)
    assert values["v"] < 1e-6
    assert set(bounds.predictable_points) == {len(reference.states)}
