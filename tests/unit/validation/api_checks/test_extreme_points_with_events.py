"""Points beyond the experiments where contacts and latches are: nothing is held there, and nothing happens."""

from __future__ import annotations

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Impact, Model
from mb2fmu.mechanics import formulations
from mb2fmu.mechanics.mechanism import read_mechanism
from mb2fmu.model import check_model
from mb2fmu.validation.api_checks.api_call_plan import compute_largest_state_rates
from mb2fmu.validation.api_checks.extreme_state_checks import (
    choose_extreme_state_points,
    compare_values_at_extreme_states,
)
from mb2fmu.validation.bounds.differences_with_bounds import BoundedDifferences
from mb2fmu.validation.reference.reference_run import ReferenceRun, make_reference


def pushed_mass(start: float) -> Model:
    """A mass is pushed against a wall at 0.4 m, and comes back."""
    (x, v, force), (m, e) = me.dynamicsymbols("x v F"), sm.symbols("m e")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    kane = me.KanesMethod(
        N, [x], [v], [x.diff() - v], bodies=[me.Particle("mass", P, m)], forcelist=[(P, (force - v) * N.x)]
    )
    model = Model("Pushed", kane)
    model.parameter(m, 1.2, "kg", min=0.01)
    model.parameter(e, 0.6, "1", min=0.0, max=1.0)
    model.input(force, 2.0, "N", name="force")
    model.coordinate(x, start, "m")
    model.speed(v, 0.0, "m/s")
    model.add(Impact("wall", 0.4 - x, restitution=e, starts_resting=start == 0.4))
    model.experiment(stop=1.0, step=0.05, tolerance=1e-8)
    return model


def chosen(start: float = 0.0) -> tuple[ReferenceRun, tuple]:
    definition = check_model(pushed_mass(start))
    reference = make_reference(definition, formulations.formulate(read_mechanism(definition), "tmt"))
    settable = {"m", "e", "force", "x", "v"}
    rates = compute_largest_state_rates(reference)
    return reference, choose_extreme_state_points(definition, reference, len(reference.states) - 1, settable, rates)


def test_nothing_is_held_and_what_acts_at_impacts_alone_is_not_moved() -> None:
    reference, points = chosen()
    assert len(reference.events) > 1
    assert len(points) > 30
    assert all(point.expected.x[0] < 0.4 for point in points)
    assert set().union(*(point.moved for point in points)) >= {"m", "force", "x", "v", "time"}
    assert not any("e" in point.moved for point in points)
    assert any(point.inputs[0] < 0.0 for point in points)


def test_a_rate_that_is_wrong_for_a_negative_force_is_reported() -> None:
    reference, points = chosen()
    states = [reference.trajectory.names[c] for c in reference.state_columns]
    rates = {name: f"der({name})" for name in states}
    sizes = np.ones(len(points[0].expected.values))
    for factor in (1.0, 1.01):
        recorded = []
        for point in points:
            values = dict(zip(states, point.expected.x.tolist(), strict=True))
            values |= dict(zip(rates.values(), point.expected.values.tolist(), strict=False))
            values["der(v)"] *= factor if point.inputs[0] < 0.0 else 1.0
            recorded.append(values)
        table = BoundedDifferences()
        compare_values_at_extreme_states(points, recorded, reference, rates, sizes, table)
        assert (table.ratio > 1.0) == (factor != 1.0)


def test_what_rests_from_the_start_on_has_no_such_points() -> None:
    assert chosen(0.4)[1] == ()
