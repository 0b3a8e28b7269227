"""The two-mass oscillator as two linear components, stepped exactly: what remains is the coupling's error alone."""

from __future__ import annotations

import numpy as np

from mb2fmu.systems.master.stability_forecast import LinearSlave
from mb2fmu.systems.resolved_system import Bond, BondSide, Link, Port, Signal, Wiring

K, K12 = 4.0 * np.pi**2, 16.0 * np.pi**2

WIRING = Wiring(
    ("left", "right"),
    (Port(0, "F", 0), Port(1, "s", 0)),
    (Port(0, "x", 0), Port(0, "v", 1), Port(1, "force", 0), Port(1, "x", 1)),
    (Link(0, 1), Link(2, 0)),
    frozenset({(1, 2)}),
    (
        Bond(
            "spring",
            (
                BondSide(0, Signal("input", 0), Signal("output", 1)),
                BondSide(1, Signal("output", 2), Signal("input", 1, rate=True), -1.0),
            ),
        ),
    ),
)


def mass(stiffness: float, gain: float, C: list[list[float]], D: list[list[float]], x: float) -> LinearSlave:
    A = np.array([[0.0, 1.0], [-stiffness, 0.0]])
    return LinearSlave(A, np.array([[0.0], [gain]]), np.array(C), np.array(D), np.array([x, 0.0]))


def slaves() -> list[LinearSlave]:
    """The left mass gives its motion and takes a force, the right one the reverse."""
    return [
        mass(K, 1.0, [[1.0, 0.0], [0.0, 1.0]], [[0.0], [0.0]], 1.0),
        mass(K + K12, K12, [[K12, 0.0], [1.0, 0.0]], [[-K12], [0.0]], 0.0),
    ]


def exact(time: float) -> float:
    return 0.5 * np.cos(2.0 * np.pi * time) + 0.5 * np.cos(6.0 * np.pi * time)
