"""Steps in C against their twin in Python: margins at random states and modes, and whole motions."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from event_models import dropped, particle, reference_of

from mb2fmu.validation.modes.mode_equations import ModeEquations, SwitchModes
from mb2fmu.validation.reference.event_step_loop import IntegrationEventLog, integrate_with_events

TIME = me.dynamicsymbols._t

FORCES = {
    "dry friction": lambda x, v: -64 * x - 1.1 * sm.sign(v),
    "two-sided stop": lambda x, _: -sm.Piecewise((200 * (x - 0.1), x > 0.1), (200 * (x + 0.1), x < -0.1), (0, True)),
    "one-sided spring": lambda x, _: -30 * sm.Max(x, 0) - 5 * x,
    "quadratic drag": lambda x, v: -20 * x - 2 * v * sm.Abs(v),
    "friction and drag": lambda x, v: -40 * x - 0.5 * sm.sign(v) - v * sm.Abs(v),
    "belt": lambda x, v: -50 * x - 2 * sm.sign(v - sm.Rational(1, 2)),
    "step in time": lambda x, _: -20 * x + sm.Heaviside(TIME - 0.4),
    "floor of time": lambda x, _: -20 * x + sm.floor(4 * TIME) / 4,
    "saturation": lambda x, v: sm.Max(-1, sm.Min(1, -60 * x)) - 0.2 * v,
    "position-dependent friction": lambda x, v: -30 * x - (1 + x**2) * sm.sign(v),
}


@pytest.fixture(scope="module", params=FORCES)
def reference(request):
    model, *_ = particle(0.25, 0.0, FORCES[request.param])
    model.experiment(stop=1.0, step=0.05, tolerance=1e-9)
    return reference_of(model)


def test_margins_agree_at_random_states_and_modes(reference):
    numeric, random = reference.numeric, np.random.default_rng(0)
    compiled, prepared = numeric.mode_steps, numeric.prepare(reference.experiment.parameters)
    assert compiled is not None
    compared = 0
    for _ in range(50):
        t, x = float(random.random()), random.normal(size=numeric.n_x)
        values = [
            float(random.integers(-1, 2)) if switch.kind == "sign" else float(random.integers(0, 2))
            for switch in numeric.frozen.switches
        ]
        modes = SwitchModes(np.array(values), np.zeros(len(numeric.frozen.events)))
        if not compiled.can_hold(modes.values):
            continue
        compiled.set_modes(modes.values, [], prepared, 0.0)
        wanted = numeric.margins(t, x, [], prepared, modes)
        assert compiled.compute_margins(t, x) == pytest.approx(wanted, rel=1e-12, abs=1e-12)
        compared += 1
    assert compared > 10


def test_motions_and_events_agree(reference, monkeypatch):
    numeric, run = reference.numeric, reference.experiment
    found = []
    for twin in (False, True):
        if twin:
            monkeypatch.setattr(ModeEquations, "mode_steps", None)
        log = IntegrationEventLog()
        y = integrate_with_events(
            numeric, run.time, run.inputs, numeric.prepare(run.parameters), np.append(reference.states[0], 0.0),
            1e-12, np.ones(numeric.n_x + 1), parts=1, projected=False, budget=1_000_000, event_log=log,
        )  # fmt: skip
        found.append((y, log.events))
    (y, events), (wanted, wanted_events) = found
    assert y == pytest.approx(wanted, abs=1e-10)
    assert [event.name for event in events] == [event.name for event in wanted_events]
    assert [event.time for event in events] == pytest.approx([event.time for event in wanted_events], abs=1e-10)


def test_contacts_are_left_to_the_twin():
    assert reference_of(dropped()).numeric.mode_steps is None
