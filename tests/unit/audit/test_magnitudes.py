"""Typical magnitudes of variables: nothing is taken for round-off because its unit of measure makes it small."""

from __future__ import annotations

from mb2fmu.audit.behaviour.fixture.typical_magnitudes import Magnitudes
from mb2fmu.audit.description.description_records import Variable


def _variable(name: str, unit: str, causality: str = "local", **more: str) -> Variable:
    written = {"unit": unit, **more} if unit else dict(more)
    return Variable(1, name, "Real", 1, causality, "continuous", "exact", None, written)


def test_small_units_are_as_good_as_large_ones():
    for size in (1.0, 1e-6, 1e6):
        inertia = _variable("J", "kg.m2", "parameter")
        place, rod, blank = _variable("x", "m"), _variable("l", "m", "parameter"), _variable("y", "m")
        found = Magnitudes({inertia: 1e-12 * size**2, place: 1e-17 * size, rod: 0.5 * size, blank: 0.0})
        assert found.of(inertia) == 1e-12 * size**2
        assert found.of(rod) == 0.5 * size
        assert found.of(place) == found.of(blank) == 0.5 * size, "zero, or the round-off of it"


def test_what_nobody_says_is_one():
    angle, known, bare = _variable("q", "rad"), _variable("p", "rad"), _variable("a", "")
    speed, force = _variable("v", "m/s"), _variable("F", "N", nominal="200")
    found = Magnitudes({angle: 6e-17, known: 1e-3, bare: 1e-20, speed: 1e-16})
    assert [found.of(each) for each in (angle, known, bare, speed, force)] == [1.0, 1e-3, 1.0, 1.0, 200.0]
