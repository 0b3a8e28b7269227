"""A contact that rests exactly at the end of a linkage's reach: no force holds it, and the message names it."""

from __future__ import annotations

import pytest
import sympy.physics.mechanics as me
from event_models import reference_of

from mb2fmu import Impact, Model
from mb2fmu.errors import ValidationError


def pendulum(angle: float) -> Model:
    """A pendulum whose bob is said to rest on a floor at its lowest point."""
    q, u = me.dynamicsymbols("q u")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    A = N.orientnew("A", "Axis", (q, N.z))
    A.set_ang_vel(N, u * N.z)
    P = O.locatenew("P", -A.y / 2)
    P.v2pt_theory(O, N, A)
    kane = me.KanesMethod(N, [q], [u], [q.diff() - u], bodies=[me.Particle("bob", P, 1)], forcelist=[(P, -9.81 * N.y)])
    model = Model("AtReach", kane)
    model.coordinate(q, angle, "rad")
    model.speed(u, 0.0, "rad/s")
    gap = P.pos_from(O).dot(N.y) + 0.5
    model.add(Impact("floor", gap, restitution=0.5, rest_below=0.01, starts_resting=True))
    model.experiment(stop=0.1, step=0.05)
    return model


def test_what_rests_at_the_end_of_its_reach_is_named():
    with pytest.raises(ValidationError, match="floor rests where no speed changes its gap") as refused:
        reference_of(pendulum(0.0))
    assert "move floor a little" in str(refused.value)


def test_a_trial_state_at_the_end_of_its_reach_is_no_error():
    """Integrators try states and take them back: seen in a slider-crank whose pin rests in its bush."""
    reference = reference_of(pendulum(0.3))
    numeric, start = reference.numeric, reference.states[0].copy()
    modes = reference.modes[0]
    start[0], start[2] = 0.0, 1.0  # at its lowest point, and resting
    rates, _ = numeric.slope(0.0, start, [], numeric.prepare(reference.experiment.parameters), modes)
    assert len(rates) == len(start)
    with pytest.raises(ValidationError, match="floor rests where no speed changes its gap"):
        numeric.check_contact_effects(0.0, start, [], numeric.prepare(reference.experiment.parameters), modes)


def test_where_nothing_is_defined_the_integration_says_so():
    """It asks for contacts without effect as it ends, and where x' divides by zero that is no answer."""
    reference = reference_of(pendulum(0.3))
    numeric, start = reference.numeric, reference.states[0].copy()
    prepared, modes = numeric.prepare(reference.experiment.parameters), reference.modes[0]

    def undefined(*_):
        raise ZeroDivisionError

    numeric.evaluate_in_modes = undefined
    for resting in (0.0, 1.0):
        start[2] = resting
        numeric.check_contact_effects(0.0, start, [], prepared, modes)
