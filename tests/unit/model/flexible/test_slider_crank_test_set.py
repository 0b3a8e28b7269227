"""The flexible slider-crank of the Test Set for IVP Solvers: the model's equations are the published ones.

Source: B. Simeon, Modelling a flexible slider crank mechanism by a mixed system of DAEs and PDEs, Math. Modelling of
Systems 2 (1996) 1-18; F. Mazzia, C. Magherini, Test Set for Initial Value Problem Solvers, release 2.4, University of
Bari, 2008, ch. Slider crank: matrices, initial values close to smooth motion, reference solution at 0.1 s.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from mb2fmu import rhs

PI = 3.1415927
"""As published."""

M2, M3, L1, L2, J2, OMEGA = 0.151104, 0.075552, 0.15, 0.30, 0.0045339259, 150.0
E, B, H, RHO = 0.20e12, 0.0080, 0.0080, 7870.0
MASS, STIFF, VOLUME = RHO * B * H * L2, E * B * H / L2, B * H * L2

M_Q = MASS * np.array([[0.5, 0, 0, 0], [0, 0.5, 0, 0], [0, 0, 8, 1], [0, 0, 1, 2]])
K_Q = STIFF * np.array(
    [
        [PI**4 / 24 * (H / L2) ** 2, 0, 0, 0],
        [0, PI**4 * 2 / 3 * (H / L2) ** 2, 0, 0],
        [0, 0, 16 / 3, -8 / 3],
        [0, 0, -8 / 3, 7 / 3],
    ]
)
B_Q = np.zeros((4, 4))
B_Q[0, 2], B_Q[0, 3], B_Q[1, 3] = -16 / PI**3, 8 / PI**3 - 1 / PI, 0.5 / PI
B_Q = VOLUME * (B_Q - B_Q.T)
C_1, C_2 = VOLUME * np.array([0, 0, 2 / 3, 1 / 6]), VOLUME * np.array([2 / PI, 0, 0, 0])
C_12, C_21 = L2 * VOLUME * np.array([0, 0, 1 / 3, 1 / 6]), L2 * VOLUME * np.array([1 / PI, -0.5 / PI, 0, 0])

START = (0.0, 0.0, 0.103339863e-4, 0.169327969e-4, 0.444896105, 0.463434311e-2, -0.178591076e-5, -0.268938672e-5)
"""q and q' at the start, close to smooth motion."""

REFERENCE = {
    "phi_2": -3.311734987910881e-01, "x_3": 1.697373326718410e-01, "q_1": 1.893192460247178e-04,
    "q_2": 2.375751865617931e-05, "q_3": -5.323907988763734e-06, "q_4": -8.363283141616840e-06,
    "phi_2'": 6.025346682645789e01, "x_3'": -8.753116989887888e00, "q_1'": -3.005536801092212e-02,
    "q_2'": -5.500488291932075e-03, "q_3'": 4.978243404809343e-04, "q_4'": 1.104933470696396e-03,
}  # fmt: skip
"""At 0.1 s, published with sixteen digits."""


def published_accelerations(t: float, q: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """Return q'' by the published mass matrix, forces and constraints, of φ_2, x_3 and q; φ_1 = Ω t."""
    phi1, w1 = OMEGA * t, OMEGA
    phi2 = -np.arcsin(L1 * np.sin(phi1) / (L2 + q[3]))
    w2 = -(L1 * np.cos(phi1) * w1 + np.sin(phi2) * rate[3]) / ((L2 + q[3]) * np.cos(phi2))
    c, s = np.cos(phi1 - phi2), np.sin(phi1 - phi2)
    M, f = np.zeros((6, 6)), np.zeros(6)
    M[0, 0] = J2 + q @ M_Q @ q + 2 * RHO * C_12 @ q
    M[0, 2:] = M[2:, 0] = RHO * C_21 + RHO * (q @ B_Q)
    M[1, 1], M[2:, 2:] = M3, M_Q
    f[0] = 0.5 * L1 * L2 * M2 * w1**2 * s + RHO * L1 * w1**2 * (s * C_1 - c * C_2) @ q
    f[0] -= 2 * RHO * w2 * C_12 @ rate + 2 * w2 * rate @ M_Q @ q + RHO * rate @ B_Q @ rate
    f[2:] = w2**2 * M_Q @ q - K_Q @ q
    f[2:] += RHO * (w2**2 * C_12 + L1 * w1**2 * (c * C_1 + s * C_2) + 2 * w2 * B_Q @ rate)
    G = np.zeros((2, 6))
    G[0, 0], G[0, 5] = (L2 + q[3]) * np.cos(phi2), np.sin(phi2)
    G[1, 0], G[1, 1], G[1, 5] = (L2 + q[3]) * np.sin(phi2), 1.0, -np.cos(phi2)
    centripetal = np.array([-L1 * np.sin(phi1) * w1**2, L1 * np.cos(phi1) * w1**2])
    turning = np.array([-np.sin(phi2), np.cos(phi2)]) * (L2 + q[3]) * w2**2
    gamma = centripetal + turning + 2 * w2 * rate[3] * np.array([np.cos(phi2), np.sin(phi2)])
    whole = np.block([[M, G.T], [G, np.zeros((2, 2))]])
    return np.linalg.solve(whole, np.concatenate([f, -gamma]))[2:6]


@pytest.mark.parametrize("method", [pytest.param("kane", marks=pytest.mark.repeats), "recursive"])
def test_the_equations_are_the_published_ones(method):
    """To what seven digits of π leave between its sines and its formulas."""
    f = rhs("flexible_slider_crank", method=method)
    random = np.random.default_rng(2)
    for t in (0.0, 0.0123, 0.031):
        q, rate = random.normal(size=(2, 4)) * np.array([[1e-3, 3e-4, 3e-5, 3e-5], [0.5, 0.2, 0.01, 0.01]])
        expected = published_accelerations(t, q, rate)
        found = f(t, [*q, *rate])[4:]
        assert np.max(np.abs(found - expected)) < 1e-6 * np.max(np.abs(expected))


@pytest.mark.repeats
def test_the_end_is_the_published_reference():
    """The reference's fast longitudinal speeds are off by 2e-4 of their amplitude: so are the published equations'."""
    f, times = rhs("flexible_slider_crank").compile(), np.linspace(0.0, 0.1, 101)
    motion = solve_ivp(f, (0.0, 0.1), START, method="DOP853", rtol=1e-11, atol=1e-15, t_eval=times).y
    q, rate = motion[:4, -1], motion[4:, -1]
    phi2 = -np.arcsin(L1 * np.sin(OMEGA * 0.1) / (L2 + q[3]))
    w2 = -(L1 * np.cos(OMEGA * 0.1) * OMEGA + np.sin(phi2) * rate[3]) / ((L2 + q[3]) * np.cos(phi2))
    found = {
        "phi_2": phi2, "x_3": L1 * np.cos(OMEGA * 0.1) + (L2 + q[3]) * np.cos(phi2), "phi_2'": w2,
        "x_3'": -L1 * np.sin(OMEGA * 0.1) * OMEGA + rate[3] * np.cos(phi2) - (L2 + q[3]) * np.sin(phi2) * w2,
    }  # fmt: skip
    found |= {f"q_{k + 1}": q[k] for k in range(4)} | {f"q_{k + 1}'": rate[k] for k in range(4)}
    for name, near in (("phi_2", 1e-9), ("x_3", 1e-9), ("phi_2'", 1e-7), ("x_3'", 3e-7)):
        assert found[name] == pytest.approx(REFERENCE[name], rel=near), name
    amplitudes = np.max(np.abs(motion), axis=1)
    for k in range(4):
        assert abs(found[f"q_{k + 1}"] - REFERENCE[f"q_{k + 1}"]) < 1e-5 * amplitudes[k], k
        assert abs(found[f"q_{k + 1}'"] - REFERENCE[f"q_{k + 1}'"]) < 5e-4 * amplitudes[4 + k], k
