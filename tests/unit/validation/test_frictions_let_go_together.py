"""Two dry hinges of a double pendulum are let go at rest: friction opposes what begins, in FMU and reference.

Each hinge by itself might have to let go, while with one of them held the other can hold, too: what was let go, and is
driven back as soon as the other one slips, is held again. Else the same event comes again at once, for ever.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from dry_hinges import KINETIC, L1, L2, M1, M2, STATIC, G, arm
from mechanisms import closed_mechanism_of
from representatives import by_night

import mb2fmu
from mb2fmu import export
from mb2fmu.mechanics import formulations
from mb2fmu.validation.modes.mode_equations import SwitchModes
from mb2fmu.validation.reference.reference_run import make_reference


def hinges(a: float, b: float) -> tuple[np.ndarray, np.ndarray]:
    """Return B and a in slip rates = a + B torques, at rest, by Lagrange's equations of the double pendulum."""
    c, s = np.cos(a - b), np.array([np.sin(a), np.sin(b)])
    mass = np.array([[(M1 + M2) * L1**2, M2 * L1 * L2 * c], [M2 * L1 * L2 * c, M2 * L2**2]])
    weight = -G * s * np.array([(M1 + M2) * L1, M2 * L2])
    slips = np.array([[1.0, 0.0], [-1.0, 1.0]])
    return slips @ np.linalg.solve(mass, slips.T), slips @ np.linalg.solve(mass, weight)


def is_held_again(a: float, b: float) -> bool:
    """Whether both let go, one after the other, and one then slips against its own acceleration."""
    matrix, free = hinges(a, b)
    kinetic, static = np.array(KINETIC), np.array(STATIC)
    held = np.linalg.solve(matrix, -free)
    first = int(np.argmax((np.abs(held) - static) / kinetic))
    torques = np.sign(held) * kinetic
    second = 1 - first
    held_second = -(free[second] + matrix[second, first] * torques[first]) / matrix[second, second]
    if abs(held[first]) <= static[first] or abs(held_second) <= static[second]:
        return False
    torques[second] = np.sign(held_second) * kinetic[second]
    return bool(((free + matrix @ torques) * np.sign(torques) > 1e-6).any())


def starts(n: int) -> list[tuple[float, float]]:
    """Return angles at which that happens."""
    rng = np.random.default_rng(3)
    drawn = (tuple(rng.uniform(-0.4, 0.4, 2).tolist()) for _ in range(100_000))
    found = [pair for pair, _ in zip(filter(lambda pair: is_held_again(*pair), drawn), range(n), strict=False)]
    assert len(found) == n
    return found


@pytest.fixture(scope="module")
def unit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(arm(), tmp_path_factory.mktemp("arm")).path


def assert_opposed(a: float, b: float, torques: np.ndarray) -> None:
    """What slips is opposed by its sliding friction, and what is held stays within the most that can hold it."""
    matrix, free = hinges(a, b)
    rates = free + matrix @ torques
    for rate, torque, kinetic, static in zip(rates, torques, KINETIC, STATIC, strict=True):
        if abs(rate) > 1e-9:
            assert torque == pytest.approx(-np.sign(rate) * kinetic)
        else:
            assert abs(torque) <= static * (1 + 1e-9)


@pytest.mark.parametrize("kind", ["CoSimulation", *by_night("ModelExchange")])
def test_the_fmu_begins_with_friction_against_the_motion(unit: Path, kind: str) -> None:
    for a, b in starts(5):
        motion = mb2fmu.simulate(unit, at={"q1": a, "q2": b}, kind=kind)
        assert_opposed(a, b, np.array([motion["h1.torque"][0], motion["h2.torque"][0]]))
        for hinge in ("h1", "h2"):
            assert (motion[f"{hinge}.torque"] * motion[f"{hinge}.slip"] <= 1e-12).all()


def test_the_reference_begins_alike() -> None:
    for a, b in starts(2):
        mechanism = closed_mechanism_of(arm(a, b))
        found = make_reference(mechanism.declared, formulations.formulate(mechanism, "tmt"))
        at = [found.trajectory.column(name) for name in ("h1.torque", "h2.torque")]
        assert_opposed(a, b, found.trajectory.values[0, at])
        assert len(found.events) < 10


def test_which_one_is_let_go_does_not_depend_on_which_came_to_rest_last() -> None:
    """Of several modes that are right where static friction is the larger one, both orders find the same."""
    mechanism = closed_mechanism_of(arm())
    reference = make_reference(mechanism.declared, formulations.formulate(mechanism, "tmt"))
    numeric, prepared = reference.numeric, reference.numeric.prepare([0.12, KINETIC[0], 0.045, KINETIC[1]])
    for a, b, right in ((0.285, 0.548, [0, -1]), (0.219, 0.384, [0, -1]), (0.4, -0.4, [-1, 1])):
        for last, side in product((0, 1), (-1.0, 1.0)):
            modes = SwitchModes(np.zeros(2), np.zeros(0))
            modes.values[last] = side
            numeric.settle_modes(0.0, np.array([a, b, 0.0, 0.0]), (), prepared, modes, (last,))
            assert modes.values.tolist() == right, (a, b, last, side)


def test_a_static_friction_below_the_kinetic_one_counts_as_the_kinetic_one(unit: Path) -> None:
    given = {"q1": 0.9, "q2": 0.9}
    low, equal = (mb2fmu.simulate(unit, at={**given, "h1.static": value}, stop=1.0) for value in (0.03, KINETIC[0]))
    assert np.array_equal(low["q1"], equal["q1"])
    assert np.ptp(low["q1"]) > 0.5
