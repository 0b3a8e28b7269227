"""Kinematic quantities: numbers read from a mechanism at an instant, as symbols for expressions.

The reference knows how frames turn and points move by numbers, body by body. What is requested of it (outputs,
energies, joint forces) is written in these numbers and in the user's own symbols, so nothing is composed between
bodies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
import sympy as sm

from mb2fmu.mechanics.mechanism.numeric.numeric_mechanism_evaluation import MechanismEvaluator
from mb2fmu.mechanics.mechanism.records.mechanism_records import VectorTerms

Floats = npt.NDArray[np.float64]
KinematicQuantityKind = Literal[
    "rotation",
    "omega",
    "alpha",
    "position",
    "velocity",
    "acceleration",
    "momentum",
    "mass matrix",
    "forcing",
    "point partials",
    "frame partials",
]
KINEMATIC_QUANTITY_KINDS: tuple[KinematicQuantityKind, ...] = get_args(KinematicQuantityKind)
"""Of frames the first three, of points the next three, of speeds the next; ``bodies.h`` has the same order."""


@dataclass(frozen=True, slots=True)
class KinematicQuantity:
    """One quantity of one frame, point or speed.

    Attributes:
        kind: What; vectors have three components in N, a rotation nine, row by row (``N_C_B``), a momentum one; M, f
            and partial velocities (shape (3, n_u), in N) are over all speeds, row by row.
        node: Number of the frame, point or speed; 0 of M and f.
        symbols: One per number.
    """

    kind: KinematicQuantityKind
    node: int
    symbols: tuple[sm.Dummy, ...]


@dataclass(slots=True)
class KinematicQuantities:
    """All requested quantities, in order.

    Attributes:
        speeds: n_u, without auxiliary ones.
    """

    speeds: int
    quantities: dict[tuple[KinematicQuantityKind, int], KinematicQuantity] = field(default_factory=dict)

    def _request_symbols(self, kind: KinematicQuantityKind, node: int) -> tuple[sm.Dummy, ...]:
        """Return the symbols of a quantity, and request it."""
        if (kind, node) not in self.quantities:
            n = self.speeds
            lengths = {"rotation": 9, "momentum": 1, "mass matrix": n * n, "forcing": n}
            length = 3 * n if kind.endswith("partials") else lengths.get(kind, 3)
            names = (sm.Dummy(f"{kind}_{node}_{i}", real=True) for i in range(length))
            self.quantities[kind, node] = KinematicQuantity(kind, node, tuple(names))
        return self.quantities[kind, node].symbols

    def rotation(self, frame: int) -> sm.Matrix:
        """Return ``N_C_B`` of a frame B."""
        return sm.eye(3) if frame == 0 else sm.Matrix(3, 3, self._request_symbols("rotation", frame))

    def vector(self, kind: KinematicQuantityKind, node: int) -> sm.Matrix:
        """Return a quantity of a frame or point, components in N."""
        return sm.Matrix(self._request_symbols(kind, node))

    def momentum(self, speed: int) -> sm.Expr:
        """Return dT/du of a speed."""
        return self._request_symbols("momentum", speed)[0]

    def mass(self, i: int, j: int) -> sm.Expr:
        """Return an entry of M, without constraints."""
        return self._request_symbols("mass matrix", 0)[i * self.speeds + j]

    def forcing(self, speed: int) -> sm.Expr:
        """Return an entry of f in M u' = f, without constraints."""
        return self._request_symbols("forcing", 0)[speed]

    def partial_velocity(self, kind: Literal["point partials", "frame partials"], node: int, speed: int) -> sm.Matrix:
        """Return the partial velocity of a point, or the partial angular velocity of a frame, in N."""
        symbols = self._request_symbols(kind, node)
        return sm.Matrix([symbols[i * self.speeds + speed] for i in range(3)])

    def in_inertial_frame(self, terms: VectorTerms) -> sm.Matrix:
        """Return components in N of a vector written in several frames."""
        parts = (self.rotation(frame) * sm.Matrix(components) for frame, components in terms)
        return sum(parts, sm.zeros(3, 1))

    @property
    def all(self) -> tuple[KinematicQuantity, ...]:
        """All quantities, in the order of requests."""
        return tuple(self.quantities.values())

    @property
    def symbols(self) -> tuple[sm.Dummy, ...]:
        """The symbols of all, in order."""
        return tuple(symbol for quantity in self.all for symbol in quantity.symbols)


def evaluate_kinematic_quantities(
    quantities: Sequence[KinematicQuantity], numeric: MechanismEvaluator, u_dot: Floats
) -> list[float]:
    """Return the numbers of the quantities at the state of ``numeric``; ``u_dot``: of all speeds, auxiliary too."""
    numbers: list[float] = []
    for quantity in quantities:
        numbers += np.ravel(_evaluate_quantity(quantity, numeric, u_dot)).tolist()
    return numbers


def _evaluate_quantity(quantity: KinematicQuantity, numeric: MechanismEvaluator, u_dot: Floats) -> Floats:
    """Return one quantity in NumPy."""
    if KINEMATIC_QUANTITY_KINDS.index(quantity.kind) > KINEMATIC_QUANTITY_KINDS.index("acceleration"):
        return _select_speed_entries(quantity, numeric)
    if KINEMATIC_QUANTITY_KINDS.index(quantity.kind) < KINEMATIC_QUANTITY_KINDS.index("position"):
        frame = numeric.frames[quantity.node]
        if quantity.kind == "rotation":
            return frame.rotation
        return frame.omega if quantity.kind == "omega" else frame.alpha0 + frame.partials @ u_dot
    point = numeric.points[quantity.node]
    if quantity.kind == "position":
        return point.position
    return point.velocity if quantity.kind == "velocity" else point.acceleration0 + point.partials @ u_dot


def _select_speed_entries(quantity: KinematicQuantity, numeric: MechanismEvaluator) -> Floats:
    """Return entries along one speed, or along all but the auxiliary ones."""
    n = len(numeric.mechanism.u)
    match quantity.kind:
        case "momentum":
            return numeric.momenta()[[quantity.node]]
        case "mass matrix":
            return numeric.unconstrained_mass_and_forcing()[0][:n, :n]
        case "forcing":
            return numeric.unconstrained_mass_and_forcing()[1][:n]
    node = numeric.points[quantity.node] if quantity.kind == "point partials" else numeric.frames[quantity.node]
    return node.partials[:, :n]
