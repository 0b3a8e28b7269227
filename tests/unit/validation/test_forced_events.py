"""Forced motions with events against closed forms: friction under a harmonic force, a ball on a table that shakes."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from lines import masses, t
from mechanisms import closed_mechanism_of

from mb2fmu import Impact, Model
from mb2fmu.mechanics import formulations
from mb2fmu.validation.reference.reference_run import make_reference


def events(model: Model, stop: float):
    """Instants at which something jumps, and the motion at 40 equal steps."""
    model.experiment(stop=stop, step=stop / 40, tolerance=1e-9)
    mechanism = closed_mechanism_of(model)
    found = make_reference(mechanism.declared, formulations.formulate(mechanism, "tmt"))
    return [event.time for event in found.events if event.sets_state], found.trajectory


def test_a_mass_with_dry_friction_answers_a_harmonic_force_as_den_hartog_has_it():
    """Trans. ASME 53 (1931) 107: without stops, k = m = 1, amplitude² = a² - (F U)², turning at each half period."""
    F, P, w = 0.2, 1.0, 0.6
    a = P / (1 - w**2)
    U = np.sin(np.pi / w) / (w * (1 + np.cos(np.pi / w)))
    amplitude, lag = np.sqrt(a**2 - (F * U) ** 2), np.arcsin(-F * U / a)
    friction = F * sm.sign(me.dynamicsymbols("v1"))
    force = P * sm.cos(w * t + sm.Float(lag, 17))
    model, *_ = masses("DenHartog", [(amplitude, 0.0)], lambda x: [force - x[0] - friction])
    times, motion = events(model, 5 * np.pi / w)
    assert times == pytest.approx(np.arange(1, 5) * np.pi / w, abs=1e-9)
    x = motion.values[::8, motion.column("x1")]
    assert x == pytest.approx(amplitude * (-1.0) ** np.arange(6), abs=1e-9)


def test_a_ball_stays_in_step_with_the_table_that_throws_it():
    """Period 1 (Holmes, J. Sound Vib. 84 (1982) 173): it is struck where the table has g T/2 (1 - e)/(1 + e)."""
    g, e, A, w = 9.81, 0.5, 0.12, 10.0
    period = 2 * np.pi / w
    strikes = g * period / 2 * (1 - e) / (1 + e)
    phase = np.arccos(strikes / (A * w))
    top = A * np.sin(phase) + g * period**2 / 8
    model, *_ = masses("Thrown", [(top, 0.0)], lambda _: [-sm.Float(g)])
    table = A * sm.sin(w * t + sm.Float(phase - w * period / 2, 17))
    model.add(Impact("table", me.dynamicsymbols("x1") - table, restitution=e))
    times, motion = events(model, 5 * period)
    assert times == pytest.approx((np.arange(5) + 0.5) * period, abs=1e-9)
    impulse = motion.values[-1, motion.column("table.impulse")]
    assert impulse == pytest.approx(g * period, rel=1e-9)
