"""Tables that bend: which of their smooth pieces holds is a mode, found by FMU and reference each for itself."""

from __future__ import annotations

import math

import fmpy
import numpy as np
import pytest
import scipy.integrate
import sympy as sm
from event_models import particle, reference_of
from event_runs import run_with_events
from hypothesis import given
from hypothesis import strategies as st
from representatives import by_night, examples

from mb2fmu import export, no_event
from mb2fmu.model.supported_functions import LookupTable, TableKind
from mb2fmu.validation.modes.equations_between_events import _SwitchReplacer

SOFT, STIFF, EDGE, SPEED = 10.0, 1000.0, 0.1, 2.0
X, Y = [-1.0, -EDGE, EDGE, 1.0], [-901.0, -1.0, 1.0, 901.0]


def spring(events: bool = True):
    """A mass on a spring that is a hundred times stiffer beyond 0.1 m."""
    table = LookupTable("spring", X, Y)
    model, x, _ = particle(0.0, SPEED, lambda x, _: -(table(x) if events else no_event(table(x))))
    model.output("force", table(x) if events else no_event(table(x)), "N")
    model.experiment(stop=1.0, step=0.01)
    return model


def passages(count: int) -> list[float]:
    """When the mass comes to the kinks: in closed form, by two springs in turn."""
    soft, stiff = math.sqrt(SOFT), math.sqrt(STIFF)
    fast = math.sqrt(SPEED**2 - SOFT * EDGE**2)
    inside = math.asin(EDGE * soft / SPEED) / soft
    # beyond the edge it swings about the place at which the stiff spring alone would be without force
    beyond = 2 * math.atan2(fast / stiff, SOFT * EDGE / STIFF) / stiff
    times, now = [], inside
    while len(times) < count:
        times += [now, now + beyond]
        now += beyond + 2 * inside
    return times[:count]


def test_the_reference_finds_the_kinks():
    events = reference_of(spring()).events
    expected = passages(8)
    assert [event.name for event in events[:8]] == ["spring(x)"] * 8
    assert [event.time for event in events[:8]] == pytest.approx(expected, abs=1e-9)


def test_without_events_there_are_none():
    assert not reference_of(spring(events=False)).events


def test_a_fmu_is_as_exact_as_without_kinks(tmp_path):
    unit = export(spring(), tmp_path).path
    where = {t: fmpy.simulate_fmu(
        str(unit), fmi_type="CoSimulation", stop_time=t, output_interval=t / 7, relative_tolerance=1e-8, output=["x"],
    )["x"][-1] for t in passages(5)}  # fmt: skip
    assert list(where.values()) == pytest.approx([EDGE, EDGE, -EDGE, -EDGE, EDGE], abs=1e-6)


def held_at_its_ends(kind: TableKind, slope: float = 1.0):
    """A mass on a spring of force 4 x³ + slope · x between −1 and 1 m, constant beyond; at rest at −2 m."""
    xs = np.linspace(-1.0, 1.0, 41)
    table = LookupTable("spring", xs, 4.0 * xs**3 + slope * xs, kind, "constant")
    model, x, _ = particle(-2.0, 0.0, lambda x, _: -table(x))
    model.output("slope", table(x).diff(x), "N/m")
    model.experiment(stop=1.5, step=0.01)
    return model


def crossing_time() -> float:
    """From −1 to 1 m by the energy integral, whose potential is x⁴ + x²/2."""
    energy = 5.0 + 1.0 + 0.5
    return scipy.integrate.quad(lambda x: 1.0 / math.sqrt(2.0 * (energy - x**4 - x**2 / 2.0)), -1.0, 1.0)[0]


@pytest.mark.parametrize(("kind", "off"), [("cubic", 1e-9), *by_night(("pchip", 1e-3))])
def test_cubics_bend_at_ends_from_which_on_they_are_constant(tmp_path, kind, off):
    """A cubic spline is the polynomial itself; a monotone one lies within 1e-3 of it."""
    into = math.sqrt(2.0 / 5.0)
    out = into + crossing_time()
    events = reference_of(held_at_its_ends(kind)).events
    assert [event.name for event in events] == ["spring(x)"] * 2
    assert [event.time for event in events] == pytest.approx([into, out], abs=off)
    path = str(export(held_at_its_ends(kind), tmp_path, fmi="3").path)
    run = run_with_events(path, "CoSimulation", 1.5, 0.01, ["x", "slope"], 1e-9)
    assert run.events == pytest.approx([event.time for event in events], abs=1e-7)
    slope, x = run.found["slope"], run.found["x"]
    inside = np.abs(x) < 1.0 - 1e-6
    assert slope[inside] == pytest.approx(12.0 * x[inside] ** 2 + 1.0, rel=1e-9 if kind == "cubic" else 0.05)
    assert not slope[np.abs(x) > 1.0 + 1e-6].any()


def test_cubics_that_end_level_bend_nowhere():
    """4 x³ − 12 x has no slope at ±1 m."""
    assert not reference_of(held_at_its_ends("cubic", slope=-12.0)).events


@examples(5)
@given(
    steps=st.lists(st.floats(0.05, 3.0), min_size=1, max_size=5),
    heights=st.lists(st.floats(-5.0, 5.0), min_size=6, max_size=6),
    constant=st.booleans(),
    places=st.lists(st.floats(-12.0, 18.0), min_size=1, max_size=8),
)
def test_the_line_that_holds_gives_the_tables_value_and_slope(steps, heights, constant, places):
    xs = [0.0, *np.cumsum(steps).tolist()]
    table = LookupTable("t", xs, heights[: len(xs)], "linear", "constant" if constant else "linear")
    x = sm.Symbol("x")
    finder = object.__new__(_SwitchReplacer)
    finder._constant, finder._event_constant, finder.switches, finder._replacements = set(), set(), {}, {}
    for order in (0, 1):
        wanted = table(x).diff(x) if order else table(x)
        found = finder(wanted)
        # What is nearer to a kink than its number can tell is on either line.
        for place in [*(p for p in places if min(abs(p - x) for x in xs) > 1e-9), *xs]:
            modes = {s.symbol: math.floor(float(s.surface.subs(x, place).evalf())) for s in finder.switches.values()}
            value = float(found.subs({**modes, x: place}).evalf())
            assert value == pytest.approx(float(wanted.subs(x, place).evalf()), rel=1e-9, abs=1e-9)
