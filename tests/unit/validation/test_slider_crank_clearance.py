"""The slider-crank with play: its first impacts by a simulation of its own, energy, and the limit of no play."""

from __future__ import annotations

from pathlib import Path

import fmpy
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from mb2fmu import export

MODEL = Path(__file__).parents[3] / "models" / "slider_crank_clearance.py"
r, L, J, MC, MS, C, R, MU, E = 0.05, 0.15, 0.05, 0.3, 0.5, 5e-4, 0.01, 0.1, 0.4
K = MC * r * L / 2


@pytest.fixture(scope="module")
def moved(tmp_path_factory):
    unit = str(export(MODEL, tmp_path_factory.mktemp("clearance"), method="kane").path)

    def run(stop: float, step: float, **start: float):
        names = ["crank", "coupler", "slider", "omega", "nu", "v", "kinetic_energy", "play.x", "play.y"]
        names += ["joint.impacts", "joint.resting"]
        return fmpy.simulate_fmu(
            unit, fmi_type="CoSimulation", stop_time=stop, output_interval=step, relative_tolerance=1e-9,
            start_values=start, output=names,
        )  # fmt: skip

    return run


def mass(a: float, b: float) -> np.ndarray:
    coupling = K * np.cos(a - b)
    return np.array([[J + MC * r**2, coupling, 0], [coupling, MC * L**2 / 3, 0], [0, 0, MS]])


def offset(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The pin from the middle of its bush, and what each speed changes that by."""
    a, b, s = x[:3]
    e = np.array([r * np.cos(a) + L * np.cos(b) - s, r * np.sin(a) + L * np.sin(b)])
    return e, np.array([[-r * np.sin(a), -L * np.sin(b), -1.0], [r * np.cos(a), L * np.cos(b), 0.0]])


def flight(_: float, x: np.ndarray) -> np.ndarray:
    a, b, _, w, nu, _ = x
    right = K * np.sin(a - b) * np.array([-(nu**2), w**2, 0.0])
    return np.append(x[3:], np.linalg.solve(mass(a, b), right))


def struck(x: np.ndarray) -> np.ndarray:
    """Poisson's law with friction, for one contact: compression, then what restitution adds."""
    e, slopes = offset(x)
    rows = np.array([-e @ slopes, np.array([-e[1], e[0]]) @ slopes + [0, R * C, 0]]) / C  # gap, slip
    reach = np.linalg.solve(mass(*x[:2]), rows.T)
    W, y = rows @ reach, rows @ x[3:]
    stick = -np.linalg.solve(W, y)
    compressed = stick
    if abs(stick[1]) > MU * stick[0]:
        for sense in (1, -1):
            normal = -y[0] / (W[0, 0] - MU * sense * W[0, 1])
            compressed = np.array([normal, -MU * sense * normal])
            if sense * (y + W @ compressed)[1] >= 0:
                break
    normal = E * compressed[0]
    along = np.clip(-((y + W @ compressed)[1] + W[1, 0] * normal) / W[1, 1], -MU * normal, MU * normal)
    return np.append(x[:3], x[3:] + reach @ (compressed + np.array([normal, along])))


def test_the_first_impacts_are_those_of_a_simulation_by_hand(moved):
    """It flies from the start on; the fifth impact is so slow that the pin rests behind it, at 8.35 ms."""

    def touches(_: float, x: np.ndarray) -> float:
        e = offset(x)[0]
        return C - np.hypot(*e)

    touches.terminal, touches.direction = True, -1
    t, x, count = 0.0, np.array([0, 0, 0.1995, 40, -40 / 3, 0]), 0
    while t < 0.0083:
        run = solve_ivp(flight, (t, 0.0083), x, events=touches, method="DOP853", rtol=1e-12, atol=1e-14, max_step=1e-5)
        t, x = run.t[-1], run.y[:, -1]
        if t < 0.0083:
            x, count = struck(x), count + 1
    found = moved(0.0083, 0.0083)[-1]
    assert count == found["joint.impacts"] == 4
    assert [found[name] for name in ("crank", "coupler", "slider")] == pytest.approx(x[:3], rel=1e-8, abs=1e-10)
    assert [found[name] for name in ("omega", "nu", "v")] == pytest.approx(x[3:], rel=1e-6)


def test_energy_stays_in_flight_and_goes_where_it_strikes_or_rubs(moved):
    found = moved(0.12, 5e-4)
    energy, away = found["kinetic_energy"], np.hypot(found["play.x"], found["play.y"])
    flies = (found["joint.resting"] == 0.0) & (away < 1.0)
    lost = -np.diff(energy) / energy[0]
    same = flies[1:] & flies[:-1] & (np.diff(found["joint.impacts"]) == 0)
    assert same.sum() > 5
    assert np.abs(lost[same]).max() < 1e-8
    assert lost.min() > -1e-8
    assert 1e-5 < lost.sum() < 0.1
    assert away.max() < 1 + 1e-6


def test_without_play_and_friction_it_is_the_ideal_mechanism(moved):
    """Its kinetic energy as a function of the crank's angle says how fast that turns."""
    play = 1e-6
    found = moved(0.12, 0.01, c=play, slider=0.2 - play, e=0.0, mu=0.0)
    coupler = -np.arcsin(r * np.sin(found["crank"]) / L)
    assert found["slider"] == pytest.approx(r * np.cos(found["crank"]) + L * np.cos(coupler), abs=2 * play)
    assert found["coupler"] == pytest.approx(coupler, abs=2 * play / L)
    inertia = []
    for a, b in zip(found["crank"], coupler, strict=True):
        nu = -r * np.cos(a) / (L * np.cos(b))
        speeds = np.array([1.0, nu, -r * np.sin(a) - L * np.sin(b) * nu])
        inertia.append(speeds @ mass(a, b) @ speeds)
    ideal = 40.0 * np.sqrt(inertia[0] / np.array(inertia))
    assert found["omega"] == pytest.approx(ideal, rel=1e-4)
    assert np.ptp(ideal) > 0.1
