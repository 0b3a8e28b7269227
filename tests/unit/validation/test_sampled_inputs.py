"""A sample takes the inputs that are given for its instant, in the reference as in units, whatever round-off says."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from event_models import particle, reference_of

from mb2fmu.validation.comparison.motion_comparison import compute_error_bounds, compute_invariant_results
from mb2fmu.validation.reference.start_error_growth import measure_start_error_growth
from mb2fmu.validation.runs.fmu_run import FmuSimulationResult


def test_a_clock_that_is_early_by_round_off_samples_the_input_of_its_step():
    """100 * 0.14 is more than 14 by round-off: at the end of a step of 0.02 s the clock ticked, with the old input.

    Single steps from there began behind that tick, too.
    """
    force, held, t = *me.dynamicsymbols("force held"), me.dynamicsymbols._t
    model, _, _ = particle(0.0, 0.0, lambda *_: held)
    model.input(force, 0.0, "N", name="force")
    model.discrete(held, 0.0, "N")
    model.every(0.01, {held: force})
    model.experiment(stop=0.6, step=0.02, tolerance=1e-8, signals={force: sm.sin(5 * t)})
    reference = reference_of(model)
    early = reference.trajectory.time * 100.0 - np.round(reference.trajectory.time * 100.0) > 1e-15
    assert early.any()
    speed = reference.trajectory.values[:, reference.trajectory.names.index("v")]
    assert np.diff(speed) == pytest.approx(0.02 * reference.experiment.inputs[:, 0], abs=1e-13)
    names = tuple(v.name for v in reference.variables)
    unit = FmuSimulationResult(
        names, reference.trajectory.time, reference.trajectory.values, (), 0.0, kind="CoSimulation"
    )
    limits = compute_error_bounds(reference, measure_start_error_growth(reference))
    found = {
        r.name: r.verdict
        for r in compute_invariant_results(reference, unit, limits)
        if r.name.startswith("one-step error")
    }
    assert set(found.values()) == {"passed"}
