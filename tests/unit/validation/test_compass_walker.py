"""The compass walker on its stable gait, against equations and a strike that are written by hand and run by SciPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from event_runs import run_with_events
from mechanisms import closed_mechanism_of
from scipy.integrate import solve_ivp

from mb2fmu import export
from mb2fmu.mechanics import formulations
from mb2fmu.model import load
from mb2fmu.validation.reference.reference_run import make_reference

pytestmark = pytest.mark.repeats  # the simplest walker is held to its gait by day
MODEL = Path(__file__).parents[3] / "models" / "compass_walker.py"
M, HIP, A, B, G, SLOPE = 5.0, 10.0, 0.5, 0.5, 9.81, np.pi / 60
L = A + B
NAMES = ("theta", "phi", "omega", "nu")


def slope(_: float, y: np.ndarray) -> list[float]:
    """Lagrange's equations, by hand."""
    theta, phi, omega, nu = y
    c, s = np.cos(theta - phi), np.sin(theta - phi)
    matrix = [[HIP * L**2 + M * A**2 + M * L**2, -M * L * B * c], [-M * L * B * c, M * B**2]]
    right = [
        M * L * B * s * nu**2 + (HIP * L + M * A + M * L) * G * np.sin(theta - SLOPE),
        -M * L * B * s * omega**2 - M * B * G * np.sin(phi - SLOPE),
    ]
    return [omega, nu, *np.linalg.solve(matrix, right)]


def places(theta: float, phi: float) -> list[np.ndarray]:
    """Stance mass, swing mass, hip, from the stance foot."""
    up = [np.array([-np.sin(x), np.cos(x)]) for x in (theta, phi)]
    return [A * up[0], L * up[0] - B * up[1], L * up[0]]


def struck(y: np.ndarray) -> np.ndarray:
    """What is behind a strike, by moments of momentum of three point masses in numbers."""
    theta, phi, omega, nu = y

    def momenta(speeds: np.ndarray, *, swapped: bool) -> np.ndarray:
        """About the foot that strikes, of all; about the hip, of the leg that stood."""
        at = places(theta, phi)
        foot, hip = at[2] - L * np.array([-np.sin(phi), np.cos(phi)]), at[2]
        along = [np.array([-np.cos(x), -np.sin(x)]) for x in (theta, phi)]
        if swapped:  # speeds of (new stance leg: the one at phi, new swing leg: the one at theta)
            moves_hip = L * speeds[0] * along[1]
            moves = [moves_hip - B * speeds[1] * along[0], A * speeds[0] * along[1], moves_hip]
        else:
            moves_hip = L * speeds[0] * along[0]
            moves = [A * speeds[0] * along[0], moves_hip - B * speeds[1] * along[1], moves_hip]
        cross = [r[0] * v[1] - r[1] * v[0] for r, v in zip([p - foot for p in at], moves, strict=True)]
        leg, v = at[0] - hip, moves[0]
        return np.array([np.dot([M, M, HIP], cross), M * (leg[0] * v[1] - leg[1] * v[0])])

    columns = np.array([momenta(unit, swapped=True) for unit in np.eye(2)]).T
    return np.array([phi, theta, *np.linalg.solve(columns, momenta(np.array([omega, nu]), swapped=False))])


def step(behind: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """How long a step takes, and what is before and behind the strike at its end."""
    meets = lambda _, y: y[0] + y[1]  # noqa: E731
    meets.direction = -1
    run = solve_ivp(slope, (0.0, 2.0), behind, "DOP853", rtol=1e-13, atol=1e-14, events=meets)
    time, before = next((t, y) for t, y in zip(run.t_events[0], run.y_events[0], strict=True) if y[0] < -0.05)
    return time, before, struck(before)


@pytest.fixture(scope="module")
def gait():
    """The fixed point of a step, by Newton's method from the start of the model."""
    x = np.array([0.271, -1.0924, -0.3774])
    whole = lambda x: np.array([x[0], -x[0], x[1], x[2]])  # noqa: E731
    error = lambda x: step(whole(x))[2][[0, 2, 3]] - x  # noqa: E731
    for _ in range(4):
        slopes = np.array([(error(x + 1e-6 * e) - error(x - 1e-6 * e)) / 2e-6 for e in np.eye(3)]).T
        x = x - np.linalg.solve(slopes, error(x))
    assert np.abs(error(x)).max() < 1e-13
    largest = np.abs(np.linalg.eigvals(slopes + np.eye(3))).max()
    assert largest == pytest.approx(0.58, abs=0.005)  # it comes back from beside it
    time, before, behind = step(whole(x))
    return time, before, behind


def test_the_reference_walks_the_gait(gait):
    mechanism = closed_mechanism_of(load(MODEL))
    reference = make_reference(mechanism.declared, formulations.formulate(mechanism, "tmt"))
    time, before, behind = gait
    strikes = [event for event in reference.events if event.sets_state]
    assert len(strikes) == 5
    columns = list(reference.state_columns)
    at = [columns.index(reference.trajectory.column(name)) for name in NAMES]
    for event in strikes:
        assert event.states[0][at] == pytest.approx(before, rel=1e-8)
        assert event.states[1][at] == pytest.approx(behind, rel=1e-8)
    assert np.diff([0.0, *(event.time for event in strikes)]) == pytest.approx(time, rel=1e-8)
    values = reference.trajectory.values
    place, energy = (values[:, reference.trajectory.column(name)] for name in ("place", "total_energy"))
    assert place[-1] == pytest.approx(10 * L * np.sin(behind[0]), rel=1e-8)
    # What strikes take is what the slope gives, over 5 whole steps and the part behind them that keeps its energy.
    lost = (HIP + 2 * M) * G * np.sin(SLOPE) * place[-1]
    assert energy[-1] - energy[0] == pytest.approx(-lost, rel=1e-7)


@pytest.mark.parametrize(("kind", "accuracy"), [("CoSimulation", 1e-7), ("ModelExchange", 1e-5)])
def test_the_fmu_walks_the_gait(unit, gait, kind, accuracy):
    time, before, behind = gait
    run = run_with_events(unit, kind, 4.0, 0.05, [*NAMES, "steps"])
    counted = np.flatnonzero(np.diff(run.found["steps"]) == 1.0)
    assert len(counted) == 5
    for row in counted:
        assert [run.found[name][row] for name in NAMES] == pytest.approx(before, rel=accuracy)
        assert [run.found[name][row + 1] for name in NAMES] == pytest.approx(behind, rel=accuracy)
    assert np.diff([0.0, *run.found["time"][counted]]) == pytest.approx(time, rel=accuracy)


@pytest.fixture(scope="module")
def unit(tmp_path_factory):
    return str(export(load(MODEL), tmp_path_factory.mktemp("compass"), fmi="3").path)
