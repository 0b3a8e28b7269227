"""Dry friction under harmonic forces: with stops and without, with two coefficients, between two masses that move.

Steady motions without stops are Den Hartog's (Trans. ASME 53 (1931) 107); those with stops and with two coefficients
(Shaw, J. Sound Vib. 108 (1986) 305) go from phase to phase by closed forms, ``piecewise_sliding``.
"""

from __future__ import annotations

import math

import lines
import numpy as np
import piecewise_sliding
import pytest
import sympy as sm
from event_runs import run_with_events
from mechanisms import closed_mechanism_of
from piecewise_sliding import Oscillator, Pair
from representatives import by_night, marked

from mb2fmu import CoulombFriction, Model, export
from mb2fmu.mechanics import formulations
from mb2fmu.validation.reference.reference_run import make_reference

STOP = 40.0
SINGLE = {
    "turns": Oscillator(P=1, w=0.6, F=0.2, x=1.5),
    "stops": Oscillator(P=1, w=0.4, F=0.6),
    "rests": Oscillator(P=1, w=0.3, F=1.2, x=0.1),
    "comes_to_rest": Oscillator(P=1, w=0.3, F=1.2, x=2.5),
    "two_coefficients": Oscillator(P=1, w=0.5, F=0.5, peak=1.3),
    "held_long": Oscillator(P=1, w=0.4, F=0.6, peak=1.3),
}
PAIRS = {"sticks": Pair(P=1, w=0.7, F=0.3), "peak": Pair(P=1, w=0.9, F=0.2, peak=1.5), "one": Pair(P=1, w=2, F=0.6)}
BY_DAY = {"stops", "two_coefficients", "comes_to_rest", "peak"}
"""What a reference is told apart by: stops in each cycle, less friction while it slides, rest for ever, two masses."""
KINDS = [("CoSimulation", 1e-7), ("ModelExchange", 1e-5)]
"""How an FMU is run, and how near its events and places are, in s and m."""


def forced(names: list[str], pairs: list[str]) -> Model:
    """Each oscillator, then two masses of each pair, with friction of an element."""
    single, double = [SINGLE[name] for name in names], [PAIRS[name] for name in pairs]

    def forces(x: list[sm.Expr]) -> list[sm.Expr]:
        on = [b.P * sm.cos(sm.Float(b.w) * lines.t) - q for b, q in zip(single, x, strict=False)]
        return on + [f for b in double for f in (sm.S.Zero, b.P * sm.cos(sm.Float(b.w) * lines.t))]

    starts = [(b.x, b.v) for b in single] + [(0.0, 0.0)] * (2 * len(double))
    model, N, O, points = lines.masses("Forced", starts, forces)
    for name, body, point in zip(names, single, points, strict=False):
        model.add(CoulombFriction(name, (O, point, N.x), kinetic=body.F, normal=1, static=body.F * body.peak))
    for name, body, i in zip(pairs, double, range(len(single), len(points), 2), strict=True):
        between = (points[i], points[i + 1], N.x)
        model.add(CoulombFriction(name, between, kinetic=body.F, normal=1, static=body.F * body.peak))
    model.experiment(stop=STOP, step=0.5, tolerance=1e-9)
    return model


def moved(model: Model):
    mechanism = closed_mechanism_of(model)
    return make_reference(mechanism.declared, formulations.formulate(mechanism, "tmt"))


@pytest.mark.parametrize("name", marked(SINGLE, repeating=SINGLE.keys() - BY_DAY))
def test_the_reference_goes_from_phase_to_phase(name):
    wanted = piecewise_sliding.run(SINGLE[name], STOP)
    found = moved(forced([name], []))
    assert [event.time for event in found.events] == pytest.approx(wanted.instants(), rel=1e-10)
    assert [event.after[0] for event in found.events] == [sense for _, sense in wanted.events]
    values = [found.trajectory.values[-1, found.trajectory.column(each)] for each in ("x1", "v1")]
    assert values == pytest.approx(wanted.end, abs=1e-9)


@pytest.mark.parametrize("name", marked(PAIRS, repeating=PAIRS.keys() - BY_DAY))
def test_the_reference_of_two_masses_goes_from_phase_to_phase(name):
    wanted = piecewise_sliding.run(PAIRS[name], STOP)
    found = moved(forced([], [name]))
    assert [event.time for event in found.events] == pytest.approx(wanted.instants(), rel=1e-10)
    x1, v1, x2, v2 = (found.trajectory.values[-1, found.trajectory.column(each)] for each in ("x1", "v1", "x2", "v2"))
    assert (x2 - x1, v2 - v1) == pytest.approx(wanted.end, abs=1e-9)
    assert v1 + v2 == pytest.approx(math.sin(PAIRS[name].w * STOP) / PAIRS[name].w, abs=1e-9)


@pytest.mark.repeats
def test_the_cases_are_those_that_they_are_called():
    """Two stops in a cycle, none, rest for ever; and without stops the amplitude is Den Hartog's."""
    runs = {name: piecewise_sliding.run(body, 2000.0 if name == "turns" else STOP) for name, body in SINGLE.items()}
    for name in ("stops", "two_coefficients", "held_long"):
        last = [event for event, _ in runs[name].events if event > STOP - 2 * np.pi / SINGLE[name].w]
        assert len(last) == 4
    assert [sense for _, sense in runs["turns"].events if not sense] == []
    assert runs["rests"].events == []
    assert runs["comes_to_rest"].events[-1][1] == 0
    w, F = SINGLE["turns"].w, SINGLE["turns"].F
    U = math.sin(math.pi / w) / (w * (1 + math.cos(math.pi / w)))
    amplitude = math.sqrt(1 / (1 - w**2) ** 2 - (F * U) ** 2)
    assert np.abs(runs["turns"].places[-4:]) == pytest.approx(amplitude, abs=1e-12)


@pytest.fixture(scope="module", params=["some", *by_night("all")])
def bodies(request):
    """Oscillators and pairs of one unit, which has the events of all of them."""
    return [{name: each[name] for name in each if request.param == "all" or name in BY_DAY} for each in (SINGLE, PAIRS)]


@pytest.fixture(scope="module")
def unit(bodies, tmp_path_factory):
    single, pairs = bodies
    return str(export(forced(list(single), list(pairs)), tmp_path_factory.mktemp("forced"), fmi="3").path)


@pytest.mark.parametrize(("kind", "accuracy"), KINDS)
def test_the_fmu_goes_from_phase_to_phase(bodies, unit, kind, accuracy):
    single, pairs = bodies
    wanted = {name: piecewise_sliding.run(body, STOP) for name, body in (single | pairs).items()}
    places = [f"x{i + 1}" for i in range(len(single) + 2 * len(pairs))]
    run = run_with_events(unit, kind, STOP, 0.3, places, tolerance=1e-9)
    instants = np.sort([time for one in wanted.values() for time in one.instants()])
    assert run.events[run.events > 1e-9] == pytest.approx(instants[np.diff(instants, prepend=0.0) > 1e-9], abs=accuracy)
    ends = [run.at(name, STOP) for name in places]
    n = len(single)
    apart = np.subtract(ends[n + 1 :: 2], ends[n::2])
    assert [*ends[:n], *apart] == pytest.approx([one.end[0] for one in wanted.values()], abs=accuracy)
