"""Brakes against quadratures: Stribeck's curve, normal forces that follow state and input; one that holds, lets go."""

from __future__ import annotations

import fmpy
import lines
import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from event_runs import run_with_events
from mechanisms import closed_mechanism_of
from representatives import by_night
from scipy.integrate import quad

from mb2fmu import Brake, CoulombFriction, Model, export
from mb2fmu.mechanics import formulations
from mb2fmu.validation.reference.reference_run import make_reference

KINDS = [("CoSimulation", 1e-8), ("ModelExchange", 1e-5)]


def flywheel() -> tuple[Model, float, float]:
    """2 kg m² at 10 rad/s against 3 (1 + e^(-2 w)/2) N.m: with when it stops (s), and by how much it turns (rad)."""
    model, N, (A,) = lines.inertias("Flywheel", 2.0, [(0.0, 10.0)], sm.S.Zero)
    model.add(CoulombFriction("brake", (None, A, N.z), curve=lambda w: 3 * (1 + sm.exp(-2 * w) / 2)))
    model.experiment(stop=8.0, step=1.0, tolerance=1e-9)
    return model, *stopped(lambda w: 1.5 * (1 + np.exp(-2 * w) / 2), 10.0)


def vehicle() -> tuple[Model, float, float]:
    """1 kg at 20 m/s, pressed by ``press`` times (9.81 + 0.01 v²) N: when it stops (s), and how far it goes (m)."""
    v, press = me.dynamicsymbols("v1 press")
    model, N, O, (P,) = lines.masses("Vehicle", [(0.0, 20.0)], lambda _: [sm.S.Zero])
    model.input(press, 1.2, "1", name="press")
    law = CoulombFriction(
        "road", (O, P, N.x), curve=lambda s: 0.8 + sm.exp(-s / 2) / 5, normal=press * (9.81 + 0.01 * v**2)
    )
    model.add(law)
    model.experiment(stop=4.0, step=0.5, tolerance=1e-9, signals={press: sm.Float(1.2)})
    return model, *stopped(lambda s: 1.2 * (0.8 + np.exp(-s / 2) / 5) * (9.81 + 0.01 * s**2), 20.0)


def stopped(slowing, speed: float) -> tuple[float, float]:
    """The time that a deceleration, of the speed alone, takes, and the way."""
    return tuple(quad(lambda s, n=n: s**n / slowing(s), 0.0, speed, epsabs=1e-13, limit=200)[0] for n in (0, 1))


@pytest.mark.parametrize("make", [flywheel, *by_night(vehicle)])
def test_what_is_braked_rests_when_and_where_it_should(make, tmp_path):
    model, time, way = make()
    place, speed = ("phi1", "w1") if make is flywheel else ("x1", "v1")
    mechanism = closed_mechanism_of(model)
    found = make_reference(mechanism.declared, formulations.formulate(mechanism, "tmt"))
    assert [event.time for event in found.events] == pytest.approx([time], rel=1e-12)
    ends = [found.trajectory.values[-1, found.trajectory.column(name)] for name in (place, speed)]
    assert ends == pytest.approx([way, 0.0], rel=1e-10, abs=1e-15)
    unit = str(export(model, tmp_path, fmi="3").path)
    stop = model.default_experiment.stop
    for kind, accuracy in KINDS:
        run = run_with_events(unit, kind, stop, 0.3, [place, speed])
        assert run.events == pytest.approx([time], rel=accuracy)
        late = run.found["time"] > time * (1 + 1e-5)
        assert (run.found[speed][late] == 0.0).all()
        assert np.ptp(run.found[place][late]) == 0.0
        assert run.at(place, stop) == pytest.approx(way, rel=accuracy)


@pytest.mark.parametrize("fmi", [*by_night("2"), "3"])
@pytest.mark.parametrize(("kind", "accuracy"), KINDS)
def test_a_brake_holds_until_it_is_loosened(fmi, kind, accuracy, tmp_path):
    """1 N.m drives 2 kg m², the brake takes 5 N.m, and 6 N.m where it holds: pressed at 1 s, at rest from 6 s on.

    At 7 s it is loosened to 0.2, which holds 1.2 N.m; at 8 s to 0.1, which holds 0.6 N.m and slips with 0.5 N.m.
    """
    model, N, (A,) = lines.inertias("Held", 2.0, [(0.0, 9.5)], sm.S.One)
    model.add(Brake("brake", (None, A, N.z), capacity=5.0, peak=1.2))
    model.experiment(stop=10.0, step=0.5, tolerance=1e-9)
    pressed = [(0, 0), (1, 0), (1, 1), (7, 1), (7, 0.2), (8, 0.2), (8, 0.1), (10, 0.1)]
    table = np.array(pressed, dtype=[("time", float), ("brake.engagement", float)])
    run = fmpy.simulate_fmu(
        str(export(model, tmp_path, fmi=fmi).path), fmi_type=kind, stop_time=10.0, output_interval=0.25, input=table,
        relative_tolerance=1e-9, output=["w1", "brake.sticking"],
    )  # fmt: skip
    t = run["time"]
    exact = np.select([t <= 1, t <= 6, t <= 8], [9.5 + t / 2, 10 - 2 * (t - 1), 0 * t], 0.25 * (t - 8))
    assert run["w1"] == pytest.approx(exact, abs=accuracy)
    assert np.abs(run["w1"][(t > 6.01) & (t < 7.99)]).max() < 1e-15
    assert (run["brake.sticking"][(t > 6.01) & (t < 7.99)] == 1.0).all()
    assert (run["brake.sticking"][t > 8.01] == 0.0).all()
