"""The two-mass oscillator as two linear components, stepped exactly: what remains is the coupling's error alone."""

from __future__ import annotations

import numpy as np

from mb2fmu.systems.master.stability_forecast import LinearCoupledComponent
from mb2fmu.systems.port_and_bond_records import (
    ComponentPort,
    PortLink,
    PowerBond,
    PowerBondSide,
    PowerBondVariable,
    SystemWiring,
)

K, K12 = 4.0 * np.pi**2, 16.0 * np.pi**2

WIRING = SystemWiring(
    ("left", "right"),
    (ComponentPort(0, "F", 0), ComponentPort(1, "s", 0)),
    (ComponentPort(0, "x", 0), ComponentPort(0, "v", 1), ComponentPort(1, "force", 0), ComponentPort(1, "x", 1)),
    (PortLink(0, 1), PortLink(2, 0)),
    frozenset({(1, 2)}),
    (
        PowerBond(
            "spring",
            (
                PowerBondSide(0, PowerBondVariable("input", 0), PowerBondVariable("output", 1)),
                PowerBondSide(1, PowerBondVariable("output", 2), PowerBondVariable("input", 1, rate=True), -1.0),
            ),
        ),
    ),
)


def mass(stiffness: float, gain: float, C: list[list[float]], D: list[list[float]], x: float) -> LinearCoupledComponent:
    A = np.array([[0.0, 1.0], [-stiffness, 0.0]])
    return LinearCoupledComponent(A, np.array([[0.0], [gain]]), np.array(C), np.array(D), np.array([x, 0.0]))


def slaves() -> list[LinearCoupledComponent]:
    """The left mass gives its motion and takes a force, the right one the reverse."""
    return [
        mass(K, 1.0, [[1.0, 0.0], [0.0, 1.0]], [[0.0], [0.0]], 1.0),
        mass(K + K12, K12, [[K12, 0.0], [1.0, 0.0]], [[-K12], [0.0]], 0.0),
    ]


def exact(time: float) -> float:
    return 0.5 * np.cos(2.0 * np.pi * time) + 0.5 * np.cos(6.0 * np.pi * time)
