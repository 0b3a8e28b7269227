"""Nothing drives the length of a quaternion away from 1, by whichever equations it is read."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sympy as sm
from mechanisms import closed_mechanism_of

from mb2fmu.mechanics.mechanism import Mechanism
from mb2fmu.validation.source_checks.declared_values_check import compare_quaternion_lengths


@pytest.fixture(scope="module")
def read() -> Mechanism:
    return closed_mechanism_of("rolling_sphere")


def with_rate(read: Mechanism, rate: sm.Expr) -> Mechanism:
    """The mechanism whose quaternion also grows by ``rate`` times itself per second."""
    (group,) = read.quaternions
    offset = read.kinematics.offset.as_mutable()
    for k in group:
        offset[k] += rate * read.q[k]
    return replace(read, kinematics=replace(read.kinematics, offset=sm.ImmutableMatrix(offset)))


def test_the_length_is_drawn_to_one(read):
    assert [good for _, good in compare_quaternion_lengths(read)] == [True]


def test_a_length_that_nothing_holds_is_found(read):
    (group,) = read.quaternions
    square = sm.Add(*(read.q[k] ** 2 for k in group))
    ((text, good),) = compare_quaternion_lengths(with_rate(read, 3 * (square - 1)))
    assert not good
    assert text.endswith("is driven away from 1")
