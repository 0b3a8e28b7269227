"""Derivatives requested one by one agree with those of one call, or the difference is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from mb2fmu.validation.api_checks.directional_derivative_consistency import (
    compare_derivative_calls,
    plan_single_seed_calls,
)

JACOBIAN = np.array([[2.0, -300.0, 0.0], [0.5, 4.0, 1e-9]])
"""Two unknowns by three knowns."""
UNKNOWN, KNOWN, SIZES, NAMES = [7, 9], [1, 2, 3], (0.1, 2.0, 50.0), ("a", "b")


@dataclass(frozen=True)
class Call:
    """One call for derivatives."""

    verb: str
    unknown: list[int]
    known: list[int]
    seed: list[float]


Fault = Callable[[Call], float]


def _answers(fault: Fault, *, adjoint: bool) -> list[list[list[float]]]:
    """What an FMU answers whose derivatives are times a factor that depends on the call."""
    found = []
    for verb, unknown, known, rows in plan_single_seed_calls(UNKNOWN, KNOWN, SIZES, adjoint=adjoint):
        block = JACOBIAN[np.ix_([UNKNOWN.index(u) for u in unknown], [KNOWN.index(k) for k in known])]
        block = block if verb == "directional" else block.T
        found.append([(fault(Call(verb, unknown, known, row)) * block @ np.array(row)).tolist() for row in rows])
    return found


def _worst(fault: Fault, *, adjoint: bool) -> float:
    compared = list(compare_derivative_calls(_answers(fault, adjoint=adjoint), NAMES, SIZES, (1e-8, 1e-8)))
    assert len(compared) >= 6
    return max(difference / bound for difference, bound, _ in compared)


@pytest.mark.parametrize("adjoint", [False, True])
def test_a_linear_map_agrees_with_itself(adjoint):
    assert _worst(lambda _: 1.0, adjoint=adjoint) < 1e-6


@pytest.mark.parametrize(
    "when",
    [
        lambda c: c.verb == "adjoint",
        lambda c: c.verb == "adjoint" and len(c.unknown) == 1,
        lambda c: c.verb == "adjoint" and len(c.known) == 1,
        lambda c: c.verb == "adjoint" and len(c.unknown) > 1 and np.count_nonzero(c.seed) > 1,
        lambda c: c.verb == "directional" and len(c.known) == 1,
        lambda c: c.verb == "directional" and len(c.unknown) == 1,
        lambda c: c.verb == "directional" and len(c.known) > 1 and np.count_nonzero(c.seed) == 1,
        lambda c: c.verb == "directional" and c.known == [2],
        lambda c: c.verb == "directional" and len(c.known) == len(c.unknown) == 1,
        lambda c: c.verb == "adjoint" and c.known == [2] and c.unknown == [9],
        lambda c: c.verb == "directional" and c.known == [3, 2, 1],
        lambda c: c.verb == "adjoint" and c.unknown == [9, 7],
    ],
)
def test_a_way_that_is_off_by_a_ten_thousandth_is_told(when):
    assert _worst(lambda call: 1.0001 if when(call) else 1.0, adjoint=True) > 10.0


def test_no_number_at_all_is_told():
    answers = _answers(lambda _: 1.0, adjoint=True)
    answers[-1] = [[float("nan")]]
    compared = compare_derivative_calls(answers, NAMES, SIZES, (0.0, 0.0))
    assert any(np.isnan(difference) for difference, _, _ in compared)
