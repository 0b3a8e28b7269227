"""Kinematic quantities as symbols that the recursion evaluates, for outputs, energies and loads."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import sympy as sm

from mb2fmu.mechanics.equations.link_recursion import QuantityKind, RecursionQuantity
from mb2fmu.mechanics.mechanism.records.mechanism_records import Components, Mechanism, PathwayLoad
from mb2fmu.mechanics.mechanism.symbolic.component_vector_arithmetic import (
    add_vector_components,
    dot_product,
    scale_components,
    vector_length,
)
from mb2fmu.mechanics.mechanism.symbolic.symbolic_kinematics import SymbolicKinematics

_AXES = ("x", "y", "z")
_MATRIX_ENTRIES = tuple(f"{i}{j}" for i in (1, 2, 3) for j in (1, 2, 3))


class RequestedRecursionQuantities(SymbolicKinematics):
    """Answers like ``SymbolicKinematics``, with symbols: nothing is composed here, only requested quantities exist.

    What needs u' has symbols in ``accelerated``.

    Args:
        mechanism: Whose kinematics.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        self._initialize_names(mechanism)
        self._set_rate_matrix(mechanism.kinematics.matrix.todok())  # for partials, which momenta need
        self.quantities += [
            RecursionQuantity(motion_vector.kind, motion_vector.point_or_frame, motion_vector.symbols)
            for motion_vector in mechanism.motion_vectors
        ]

    def q_dot_names(self) -> tuple[sm.Expr, ...]:
        """Return q' as symbols, or as speeds where they are equal."""
        m = self.mechanism
        rates: list[list[sm.Expr]] = [[] for _ in m.q]
        for (k, j), entry in m.kinematics.matrix.todok().items():
            rates[k].append(entry * m.u[j])
        return tuple(
            self.name(sm.Add(*terms, m.kinematics.offset[k, 0]), f"{q.name}_rate")
            for k, (q, terms) in enumerate(zip(m.q, rates, strict=True))
        )

    def kinetic_energy(self) -> sm.Expr:
        """Return T in J."""
        return self._compute_cached(
            "kinetic energy", 0, lambda n: self._request_quantity("kinetic energy", n, ["T_kinetic"])[0]
        )

    def define(
        self, kind: QuantityKind, names: Sequence[str], known_symbols: tuple[sm.Expr, ...] = ()
    ) -> tuple[sm.Symbol, ...]:
        """Return the symbols of a quantity of the whole recursion, shared by all requests."""
        return self._compute_cached(kind, 0, lambda n: self._request_quantity(kind, n, names, known_symbols))

    def mass_matrix(self) -> sm.ImmutableMatrix:
        """Return M over all speeds, shape (n_u, n_u)."""
        n = len(self.mechanism.u)
        pairs = [(i, j) for i in range(n) for j in range(i + 1)]
        entries = self.define("mass matrix", [f"M_{i + 1}_{j + 1}" for i, j in pairs])
        symbols = dict(zip(pairs, entries, strict=True))
        return sm.ImmutableMatrix(n, n, [symbols[max(i, j), min(i, j)] for i in range(n) for j in range(n)])

    def gravity_efforts(self) -> tuple[sm.Expr, ...]:
        """Return the efforts that hold the weights, along each speed."""
        return self.define("gravity effort", [f"g_{u.name}" for u in self.mechanism.u])

    def inverse_efforts(self) -> tuple[sm.Expr, ...]:
        """Return the efforts that the given accelerations need, along each speed."""
        request = self.mechanism.inverse_dynamics
        assert request is not None
        known_symbols = (*request.accelerations, *request.passive_forces)
        return self.define("inverse effort", [f"tau_{u.name}" for u in self.mechanism.u], known_symbols)

    def _request_quantity(
        self, kind: QuantityKind, number: int, names: Sequence[str], known_symbols: tuple[sm.Expr, ...] = ()
    ) -> tuple[sm.Symbol, ...]:
        """Request a quantity of the recursion: make one new symbol per component and record their meaning."""
        symbols = tuple(self.make_symbol(name) for name in names)
        self.quantities.append(RecursionQuantity(kind, number, symbols, known_symbols))
        return symbols

    def _request_vector(self, kind: QuantityKind, number: int, hint: str) -> Components:
        """Request a vector; its symbols are `hint` with _x, _y, _z."""
        x, y, z = self._request_quantity(kind, number, [f"{hint}_{axis}" for axis in _AXES])
        return (x, y, z)

    def _point_name(self, letter: str, number: int) -> str:
        """Return a letter and the point's name, as in r_tip."""
        return f"{letter}_{self.mechanism.points[number].name}"

    def _rotation(self, i: int) -> sm.ImmutableMatrix:
        """Request a frame's 3 × 3 rotation matrix to the inertial frame; frame 0 is the identity."""
        if i == 0:
            return sm.ImmutableMatrix.eye(3)
        names = [f"C_{self.mechanism.frames[i].name}_{entry}" for entry in _MATRIX_ENTRIES]
        return sm.ImmutableMatrix(3, 3, self._request_quantity("rotation", i, names))

    def _omega(self, i: int) -> Components:
        """Request a frame's angular velocity in the inertial frame, in rad/s."""
        return self._request_vector("angular velocity", i, f"w_{self.mechanism.frames[i].name}")

    def _position(self, i: int) -> Components:
        """Request a point's position from the origin, in m."""
        return self._request_vector("position", i, self._point_name("r", i))

    def _velocity(self, i: int) -> Components:
        """Request a point's velocity in the inertial frame, in m/s."""
        return self._request_vector("velocity", i, self._point_name("v", i))

    def _alpha(self, i: int) -> Components:
        """Request a frame's angular acceleration, in rad/s²; needs u'."""
        return self._request_late_vector("angular acceleration", i, f"alpha_{self.mechanism.frames[i].name}")

    def _acceleration(self, i: int) -> Components:
        """Request a point's acceleration, in m/s²; needs u'."""
        return self._request_late_vector("acceleration", i, self._point_name("acc", i))

    def _request_late_vector(self, kind: QuantityKind, number: int, hint: str) -> Components:
        """Request a vector that needs u'; its symbols are recorded as accelerated."""
        symbols = self._request_quantity(kind, number, [f"{hint}_{axis}" for axis in _AXES])
        self.acceleration_symbols.update(symbols)
        return (symbols[0], symbols[1], symbols[2])

    def _pathway(self, number: int) -> list[Components]:
        """Request length and rate of a pathway load: its symbols already exist, so none are made."""
        load = self.mechanism.loads[number]
        assert isinstance(load, PathwayLoad)
        self.quantities.append(RecursionQuantity("pathway", number, (load.length, load.rate)))
        return []

    def segment_directions(self, load: PathwayLoad) -> list[Components]:
        """Return the unit vectors of a pathway's segments in N, formed from positions: the recursion hides its own."""
        return self._compute_cached("segments", self.mechanism.loads.index(load), self._segments)

    def _segments(self, number: int) -> list[Components]:
        """Form the unit vector of each segment from the positions of its ends."""
        load = self.mechanism.loads[number]
        assert isinstance(load, PathwayLoad)
        segments = []
        for a, b in itertools.pairwise(load.points):
            d = self.name_components(
                add_vector_components(self.position(b), scale_components(sm.S.NegativeOne, self.position(a))),
                f"d_{load.name}",
            )
            size = self.name(vector_length(dot_product(d, d)), f"size_{load.name}")
            segments.append(self.name_components(scale_components(1 / size, d), f"e_{load.name}"))
        return segments

    def speed_dependent_symbols(self) -> set[sm.Symbol]:
        """Return symbols that depend on speeds."""
        symbols = set(self.mechanism.u)
        for quantity in self.quantities:
            if quantity.kind in {"angular velocity", "velocity", "kinetic energy", "inverse effort"}:
                symbols.update(quantity.symbols)
            elif quantity.kind == "pathway":
                symbols.add(quantity.symbols[1])
        for assignment in self.assignments:
            if assignment.expression.free_symbols & symbols:
                symbols.add(assignment.symbol)
        return symbols
