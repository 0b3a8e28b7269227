"""A bushing: stiffness and damping in all six directions between two frames."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sympy as sm
from sympy.physics.mechanics import Point, ReferenceFrame
from sympy.physics.vector import Vector

from mb2fmu.errors import Fault
from mb2fmu.model.elements.element_base_class import NamedElement
from mb2fmu.model.sources import mechanics_source
from mb2fmu.model.sources.frame_and_point_restoration import restore_frames_and_points

if TYPE_CHECKING:
    from mb2fmu.model import Model

__all__ = ["Bushing"]

PointAndFrame = tuple[Point, ReferenceFrame]


@dataclass(frozen=True)
class Bushing(NamedElement):
    """Six springs and dampers between a point and frame of one body and those of another.

    The strain e = (d, θ) is written in the first frame A: d from P to Q, θ half the vector of R − Rᵀ, R = A_C_B: the
    axis times the sine of the angle, which is the angles about A.x, A.y, A.z where they are small; beyond a quarter
    turn the spring grows weaker. With w = K e + D e' the force on Q is −w_d, the torque on B is −Eᵀ w_θ where
    θ' = E ω, E = (tr(R) 1 − R) / 2, and A has the reaction. So its power is −wᵀ e' for angles of any size: it keeps
    eᵀ K e / 2 where K is symmetric. Source for R and E: M. D. Shuster, A survey of attitude representations, 1993.

    Example:
        A rubber mount, stiff across and soft about its axis::

            model.add(Bushing("mount", (P, A), (Q, B), stiffness=(1e6, 1e6, 2e5, 80.0, 80.0, 5.0)))

        Outputs are ``mount.force.x`` … and ``mount.torque.x`` … on the second at Q, in A, and ``mount.energy``.

    Attributes:
        name: In front of the names of its variables.
        first: (P, A): point and frame fixed in the first body, or in the ground.
        second: (Q, B): in the second body.
        stiffness: K: six numbers of its diagonal (N/m, N.m/rad), or six rows of six: force by displacement, force by
            angle (N/rad), torque by displacement (N.m/m), torque by angle.
        damping: D likewise, by s.
    """

    first: PointAndFrame
    second: PointAndFrame
    stiffness: Sequence[Any]
    damping: Sequence[Any] = (0.0,) * 6

    def faults(self, model: Model) -> Iterator[Fault]:
        """Yield faults of places and matrices."""
        fits = [_is_place(place) for place in (self.first, self.second)]
        for place, fit in zip((self.first, self.second), fits, strict=True):
            if not fit:
                yield self.fault(f"it acts on {place!r}", "give (point, frame) of each side")
        if not hasattr(mechanics_source.inertial_frame(model.mechanics), "dcm"):
            yield self.fault("the mechanics have no frame of SymPy", "bushings are for mechanics of SymPy")
        elif all(fits):
            try:
                self._relative()
            except ValueError as error:
                reason = " ".join(str(error).split())
                yield self.fault(f"the way is not known: {reason}", "connect both with the mechanism")
        for part in ("stiffness", "damping"):
            matrix = _read_matrix(getattr(self, part))
            if matrix is None:
                yield self.fault(f"{part} is {getattr(self, part)!r}", "give six numbers, or six rows of six")
            elif any(entry.is_number and not entry.is_finite for entry in matrix):
                yield self.fault(f"{part} has an entry that is not finite", "give finite numbers")
            elif any(entry.is_number and entry < 0 for entry in matrix.diagonal()):
                yield self.fault(f"{part} has a number below 0 on its diagonal", "a passive bushing has none")

    def _relative(self) -> tuple[sm.Matrix, sm.Matrix, sm.Matrix, sm.Matrix]:
        """Return d and its rate in A, the rotation R, ω of the second against the first in A."""
        (P, A), (Q, B) = self.first, self.second
        with restore_frames_and_points([P, Q, A, B]):
            offset = Q.pos_from(P)
            d, rate = offset.to_matrix(A), offset.dt(A).to_matrix(A)
            return d, rate, A.dcm(B), B.ang_vel_in(A).to_matrix(A)

    def declare(self, model: Model) -> None:
        """Declare loads, parameters and outputs."""
        A, (Q, B) = self.first[1], self.second
        K = self._declared(model, "stiffness", "")
        D = self._declared(model, "damping", ".s")
        d, rate, R, omega = self._relative()
        skew = R - R.T
        strain = sm.Matrix([*d, skew[2, 1] / 2, skew[0, 2] / 2, skew[1, 0] / 2])
        E = (R.trace() * sm.eye(3) - R) / 2
        wrench = K * strain + D * sm.Matrix([*rate, *(E * omega)])
        force, torque = -wrench[:3, :], -E.T * wrench[3:, :]
        energy = (strain.T * K * strain)[0, 0] / 2 if K == K.T else None
        self._load(model, (_make_vector(force, A), _make_vector(torque, A), _make_vector(d, A)), energy)
        for part, vector, unit in (("force", force, "N"), ("torque", torque, "N.m")):
            for axis, value in zip("xyz", vector, strict=True):
                words = f"on {B.name} at {Q.name}, along {A.name}.{axis}"
                model.output(f"{self.name}.{part}.{axis}", value, unit, description=words)
        if energy is not None:
            model.output(f"{self.name}.energy", energy, "J", description="kept in its springs")

    def _load(self, model: Model, vectors: tuple[Vector, Vector, Vector], energy: sm.Expr | None) -> None:
        """Add force and torque on the second, and the reaction on the first, with the moment of its lever arm."""
        (P, A), (Q, B) = self.first, self.second
        force, torque, offset = vectors
        ground = mechanics_source.inertial_frame(model.mechanics)
        on_second = () if ground == B else ((Q, force), (B, torque))
        on_first = () if ground == A else ((P, -force), (A, -torque - offset.cross(force)))
        model.add_loads(*on_second, *on_first, potential=energy)

    def _declared(self, model: Model, part: str, ending: str) -> sm.Matrix:
        """Return the matrix with a parameter for each number that is not zero; one for both where it is symmetric."""
        given = _read_matrix(getattr(self, part))
        assert given is not None  # or it has faults
        is_symmetric = given == given.T
        matrix = sm.zeros(6, 6)
        for i in range(6):
            for j in range(6):
                if is_symmetric and j < i:
                    matrix[i, j] = matrix[j, i]
                elif not (given[i, j].is_number and abs(given[i, j]) == 0):
                    unit = _COEFFICIENT_UNITS[i // 3][j // 3]
                    unit = f"N.m{ending}/m" if unit == "N" and ending else unit.replace("/", f"{ending}/")
                    low = 0.0 if i == j else None
                    name = f"{part}[{i + 1},{j + 1}]"
                    matrix[i, j] = self.parameter(model, name, given[i, j], unit, "of the bushing", low=low)
        return matrix


_COEFFICIENT_UNITS = (("N/m", "N/rad"), ("N", "N.m/rad"))


def _is_place(place: object) -> bool:
    """Return whether an object is a pair of point and frame."""
    if not isinstance(place, tuple) or len(place) != 2:
        return False
    return isinstance(place[0], Point) and isinstance(place[1], ReferenceFrame)


def _read_matrix(given: Any) -> sm.Matrix | None:
    """Return the 6 × 6 matrix; None if it is not one."""
    try:
        rows = sm.Matrix(given).applyfunc(sm.sympify)
    except (TypeError, ValueError):
        return None
    if rows.shape == (6, 1):
        return sm.diag(*rows)
    return rows if rows.shape == (6, 6) else None


def _make_vector(components: sm.Matrix, frame: ReferenceFrame) -> Vector:
    """Return components along a frame's axes as a vector."""
    return components[0] * frame.x + components[1] * frame.y + components[2] * frame.z
