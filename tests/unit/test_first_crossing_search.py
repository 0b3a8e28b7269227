"""The first instant beyond a limit: the same number as bisection's, in a quarter of the looks."""

import math

import numpy as np
import pytest

from mb2fmu.first_crossing_search import find_first_crossing

SMOOTH = {
    "straight": lambda t, root: root - t,
    "falling ball": lambda t, root: 4.905 * (root * root - t * t),
    "relay": lambda t, root: -math.expm1(50.0 * (t - root)),
    "steep": lambda t, root: math.tanh(1e4 * (root - t)),
}
ROUGH = {
    "jump": lambda t, root: 1.0 if t < root else -1.0,
    "touching": lambda t, root: (root - t) ** 3,
    "the least of several": lambda t, root: min(0.5, root - t, 1e-3 + 3.0 * (root - t) ** 2),
    "zero, then falling": lambda t, root: 1e-17 if t < root else root - t,
}


def bisected(margin, low, high):
    looks = 0
    while low < (middle := low + 0.5 * (high - low)) < high:
        looks += 1
        low, high = (low, middle) if margin(middle) < 0.0 else (middle, high)
    return high, looks


def brackets():
    random = np.random.default_rng(3)
    for _ in range(50):
        width, low = 10.0 ** random.uniform(-5, -1), random.uniform(0, 2)
        yield low, low + width * random.uniform(0.01, 0.99), low + width


@pytest.mark.parametrize("name", [*SMOOTH, *ROUGH])
def test_it_is_bisection_s_number_in_fewer_looks(name):
    looks = []

    def counted(t):
        looks[-1] += 1
        return of(t, root)

    of = (SMOOTH | ROUGH)[name]
    for low, root, high in brackets():
        looks.append(0)
        found = find_first_crossing(counted, low, high, (of(low, root), of(high, root)))
        expected, most = bisected(lambda t, root=root: of(t, root), low, high)
        assert abs(found - expected) <= 2 * math.ulp(expected)
        assert of(found, root) < 0.0 <= of(math.nextafter(found, low), root)
        assert looks[-1] <= most + 3
    if name in SMOOTH:
        assert np.mean(looks) < 13


def test_noise_ends_it_between_two_numbers():
    random = np.random.default_rng(5)
    for low, root, high in brackets():
        seen = {low: 1.0, high: -1.0}

        def margin(t, root=root, seen=seen):
            return seen.setdefault(t, root - t + 1e-14 * random.uniform(-1, 1))

        found = find_first_crossing(margin, low, high, (1.0, -1.0))
        assert abs(found - root) <= 1e-14 + 2 * math.ulp(root)
        assert seen[found] < 0.0 <= seen[math.nextafter(found, low)]


def test_it_stops_where_the_bracket_is_narrow_enough():
    looks = []

    def margin(t):
        looks.append(t)
        return 1.0 if t < 0.3 else -1.0

    found = find_first_crossing(margin, 0.0, 1.0, (1.0, -1.0), near=1e-3)
    assert 0.3 <= found < 0.3 + 1e-3
    assert len(looks) <= 12
