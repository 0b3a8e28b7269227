"""Gravity among the loads: the same acceleration of every body, to round-off of masses in double precision."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sympy as sm
from flexible_bodies import pinned_body, random_arrays
from mechanisms import mechanism_of
from representatives import by_night

from mb2fmu import FlexibleBody
from mb2fmu.mechanics.mechanism import Mechanism
from mb2fmu.mechanics.mechanism.symbolic.gravity_detection import find_gravity


def pinned_mechanism(seed: int) -> Mechanism:
    """A rigid body and particles whose masses are numbers, and weights as products with them."""
    return mechanism_of(pinned_body(FlexibleBody("arm", **random_arrays(seed, n=4, second=False)), "parts"))


@pytest.mark.parametrize("seed", [0, *by_night(1, 2, 3, 4)])
def test_weights_of_a_flexible_body_are_gravity(seed: int) -> None:
    mechanism = pinned_mechanism(seed)
    gravity = find_gravity(mechanism)
    assert gravity.acceleration == (0, -sm.Symbol("g"), 0)  # exactly: a factor of 1.0 would cost an operation
    assert len(gravity.weight_loads) == len(mechanism.bodies)


@pytest.mark.parametrize("factor", [1 + 1e-14, 1 - 1e-14])
def test_a_weight_that_is_off_by_more_than_round_off_is_none(factor: float) -> None:
    mechanism = pinned_mechanism(1)
    number = next(iter(find_gravity(mechanism).weight_loads))
    load = mechanism.loads[number]
    frame, components = load.force[0]
    changed = replace(load, force=((frame, tuple(sm.Float(factor) * c for c in components)),))
    loads = tuple(changed if k == number else each for k, each in enumerate(mechanism.loads))
    assert find_gravity(replace(mechanism, loads=loads)).acceleration is None
