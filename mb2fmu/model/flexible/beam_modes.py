"""Modes of a straight uniform beam by Ritz's method: bending with and without shear, torsion, extension.

Unknown are the strains, as series of Legendre polynomials P_j(ξ): curvature ψ' = Σ a_j P_j, shear γ = Σ b_j P_j, and
the values ψ_0, w_0 at the root; ψ and w = w_0 + ∫ (ψ + γ) dx follow by exact integration. So the strain energy

    ½ ∫ (E I ψ'² + κ G A γ²) dx

is a sum of squares, and eigenfrequencies of low modes are exact to rounding (polynomials in w lose half the digits).
The series converges exponentially; ``SERIES_MARGIN`` terms more than modes are enough for 1e-12. Ends that are held are
linear constraints. Where they leave a rigid motion, it has no momentum (mean axes).

Source: L. Meirovitch, Fundamentals of Vibrations, McGraw-Hill 2001, ch. 8 (beams) and 9 (Ritz); foreshortening as
second-order displacement field: T. R. Kane, R. R. Ryan, A. K. Banerjee, J. Guidance 10 (1987) 139-151.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.linalg
from numpy.polynomial import legendre

Array = npt.NDArray[np.float64]

SERIES_MARGIN = 14
"""Terms of the series beside two for each mode."""

END_KINDS = ("clamped", "pinned", "free")


@dataclass(frozen=True, slots=True)
class BeamModeFamily:
    """Modes of one family at stations along the beam.

    Attributes:
        frequencies: Angular eigenfrequencies, shape (m,), rad/s.
        stiffness: Modal stiffness, shape (m,).
        deflections: w, or the angle of torsion, or the axial displacement, shape (m, n); the largest is 1.
        rotations: ψ, shape (m, n), 1/m; zero for torsion and extension.
        slopes: w', shape (m, n), 1/m; that is ψ + γ.
    """

    frequencies: Array
    stiffness: Array
    deflections: Array
    rotations: Array
    slopes: Array


@dataclass(frozen=True, slots=True)
class BeamModeConstants:
    """Constants of one family of modes of a uniform beam.

    Attributes:
        bending: E I in N·m² (of torsion G J, of extension E A in N).
        mass: ρ A in kg/m (of torsion ρ I_p in kg·m).
        shear: κ G A in N; infinite without shear.
        rotary: ρ I in kg·m; zero without rotational inertia of sections.
    """

    bending: float
    mass: float
    shear: float = np.inf
    rotary: float = 0.0


def lobatto_stations(count: int, length: float) -> tuple[Array, Array]:
    """Return stations from 0 to ``length`` and weights of Gauss and Lobatto's rule, exact to degree 2 count - 3."""
    coefficients = np.zeros(count)
    coefficients[-1] = 1.0
    inner = legendre.legroots(legendre.legder(coefficients))
    xi = np.concatenate([[-1.0], np.real(inner), [1.0]])
    weights = 2.0 / (count * (count - 1) * legendre.legval(xi, coefficients) ** 2)
    return (xi + 1.0) * length / 2.0, weights * length / 2.0


def compute_bending_modes(
    line: BeamModeConstants, length: float, ends: Sequence[str], count: int, stations: Array
) -> BeamModeFamily:
    """Return modes of bending.

    Args:
        line: Stiffness and mass.
        length: m.
        ends: (root, tip), each ``clamped``, ``pinned`` or ``free``.
        count: Number of modes, those of lowest frequency.
        stations: Where shapes are wanted, shape (n,), from 0 to ``length``, m.
    """
    terms = 2 * count + SERIES_MARGIN
    series = _BendingSeries(terms, length, sheared=np.isfinite(line.shear))
    x, weights = _gauss_rule(2 * terms, length)
    w, psi = series.deflections(x), series.rotations(x)
    M = line.mass * (w * weights) @ w.T + line.rotary * (psi * weights) @ psi.T
    K = np.diag(series.strain_squares(line.bending, line.shear))
    rows = list(_held_rows(series, length, ends))
    rigid = np.array([np.ones_like(x), x])
    held_rotation, held_place = "clamped" in ends, any(end != "free" for end in ends)
    if not held_rotation and list(ends).count("pinned") < 2:
        pivot = length if ends[1] == "pinned" else 0.0
        motions = [x - pivot] if held_place else list(rigid)
        slopes = [1.0] if held_place else [0.0, 1.0]
        rows += [
            line.mass * w @ (weights * motion) + line.rotary * slope * (psi @ weights)
            for motion, slope in zip(motions, slopes, strict=True)
        ]
    coefficients, squares = _solve_ritz(K, M, np.array(rows).reshape(-1, len(K)), count)
    shapes = coefficients @ series.deflections(stations)
    scale = _normalization(shapes)
    coefficients = coefficients / scale[:, None]
    return BeamModeFamily(
        frequencies=np.sqrt(squares),
        stiffness=np.einsum("ki,ij,kj->k", coefficients, K, coefficients),
        deflections=coefficients @ series.deflections(stations),
        rotations=coefficients @ series.rotations(stations),
        slopes=coefficients @ series.slopes(stations),
    )


def compute_torsion_or_extension_modes(
    line: BeamModeConstants, length: float, held: Sequence[bool], count: int, stations: Array
) -> BeamModeFamily:
    """Return modes of torsion or extension, of strain Σ a_j P_j; arguments as of :func:`compute_bending_modes`.

    Args:
        line: Stiffness and mass.
        length: m.
        held: Whether root and tip are held.
        count: Number of modes.
        stations: Where shapes are wanted, shape (n,), m.
    """
    terms = 2 * count + SERIES_MARGIN
    x, weights = _gauss_rule(2 * terms, length)

    def shapes_at(places: Array) -> Array:
        """Return the displacement of each unknown (strain a_j, displacement of the root), shape (terms + 1, n)."""
        return np.vstack([_integrals(terms, length, places)[0], np.ones_like(places)])

    u = shapes_at(x)
    M = line.mass * (u * weights) @ u.T
    K = np.diag([*line.bending * _norms(terms, length), 0.0])
    rows = [shapes_at(np.array([end]))[:, 0] for end, is_held in zip((0.0, length), held, strict=True) if is_held]
    if not any(held):
        rows.append(line.mass * u @ weights)
    coefficients, squares = _solve_ritz(K, M, np.array(rows), count)
    coefficients = coefficients / _normalization(coefficients @ shapes_at(stations))[:, None]
    shapes = coefficients @ shapes_at(stations)
    return BeamModeFamily(
        frequencies=np.sqrt(squares),
        stiffness=np.einsum("ki,ij,kj->k", coefficients, K, coefficients),
        deflections=shapes,
        rotations=np.zeros_like(shapes),
        slopes=np.zeros_like(shapes),
    )


def foreshortening(slopes: Array, stations: Array, weights: Array, held: Sequence[bool], places: Array) -> Array:
    """Return ∫ w_k' w_l' dx from the end that is held, shape (m, m, n), 1/m; from the mean where none is.

    Args:
        slopes: w' of each mode at the stations, shape (m, stations), 1/m.
        stations: From 0 to the length, m: of :func:`lobatto_stations`.
        weights: Of the stations, m.
        held: Whether root and tip are held along the beam.
        places: Where it is wanted, shape (n,), m.
    """
    length = float(stations[-1])
    n = len(stations)
    xi = 2.0 * stations / length - 1.0
    to_series = np.linalg.inv(legendre.legvander(xi, n - 1))
    products = np.einsum("kn,ln->kln", slopes, slopes) @ to_series.T
    integral = legendre.legint(products, lbnd=-1.0, axis=-1) * length / 2.0
    series = np.moveaxis(integral, -1, 0)
    values = legendre.legval(2.0 * places / length - 1.0, series)
    if held[0]:
        return np.asarray(values)
    if held[1]:
        return np.asarray(values - legendre.legval(np.ones(1), series))
    return np.asarray(values - (legendre.legval(xi, series) @ weights)[:, :, None] / length)


class _BendingSeries:
    """Deflection w, rotation ψ and slope w' of each unknown (curvature a_j, shear b_j, ψ_0, w_0)."""

    def __init__(self, terms: int, length: float, *, sheared: bool) -> None:
        self._terms, self._length, self._sheared = terms, length, sheared

    def rotations(self, x: Array) -> Array:
        """Return ψ of each unknown, shape (unknowns, n)."""
        once, _ = _integrals(self._terms, self._length, x)
        shear = [np.zeros_like(once)] if self._sheared else []
        return np.vstack([once, *shear, np.ones_like(x), np.zeros_like(x)])

    def slopes(self, x: Array) -> Array:
        """Return w' = ψ + γ of each unknown."""
        slopes = self.rotations(x)
        if self._sheared:
            slopes[self._terms : 2 * self._terms] = legendre.legvander(2.0 * x / self._length - 1.0, self._terms - 1).T
        return slopes

    def deflections(self, x: Array) -> Array:
        """Return w of each unknown."""
        once, twice = _integrals(self._terms, self._length, x)
        shear = [once] if self._sheared else []
        return np.vstack([twice, *shear, x, np.ones_like(x)])

    def strain_squares(self, bending: float, shear: float) -> Array:
        """Return ∫ (E I ψ'² + κ G A γ²) dx of each unknown; they are orthogonal."""
        norms = _norms(self._terms, self._length)
        parts = [bending * norms, shear * norms] if self._sheared else [bending * norms]
        return np.concatenate([*parts, [0.0, 0.0]])


def _held_rows(series: _BendingSeries, length: float, ends: Sequence[str]) -> Iterator[Array]:
    """Yield the rows that vanish at ends that are held."""
    for place, end in zip((0.0, length), ends, strict=True):
        x = np.array([place])
        if end != "free":
            yield series.deflections(x)[:, 0]
        if end == "clamped":
            yield series.rotations(x)[:, 0]


def _solve_ritz(K: Array, M: Array, rows: Array, count: int) -> tuple[Array, Array]:
    """Return coefficients (count, unknowns) and squares of the frequencies of the lowest modes, ascending.

    M v = v K / ω² is solved, since low frequencies are then the large eigenvalues.
    """
    scale = 1.0 / np.sqrt(np.where(np.diag(K) > 0.0, np.diag(K), np.max(np.diag(K))))
    basis = scale[:, None] * scipy.linalg.null_space((rows * scale) / np.linalg.norm(rows * scale, axis=1)[:, None])
    inverse, vectors = scipy.linalg.eigh(basis.T @ M @ basis, basis.T @ K @ basis)
    lowest = np.argsort(-inverse)[:count]
    return (basis @ vectors[:, lowest]).T, 1.0 / inverse[lowest]


def _normalization(shapes: Array) -> Array:
    """Return the value of each shape that is largest in size, shape (m,)."""
    return np.asarray(shapes[np.arange(len(shapes)), np.argmax(np.abs(shapes), axis=1)])


def _integrals(terms: int, length: float, x: Array) -> tuple[Array, Array]:
    """Return ∫ P_j and ∬ P_j from the root, shapes (terms, n)."""
    xi, unit = 2.0 * x / length - 1.0, np.eye(terms)
    once = legendre.legint(unit, m=1, lbnd=-1.0, axis=1) * length / 2.0
    twice = legendre.legint(once, m=1, lbnd=-1.0, axis=1) * length / 2.0
    return np.asarray(legendre.legval(xi, once.T)), np.asarray(legendre.legval(xi, twice.T))


def _norms(terms: int, length: float) -> Array:
    """Return ∫ P_j² dx, shape (terms,)."""
    return np.asarray(length / (2.0 * np.arange(terms) + 1.0))


def _gauss_rule(count: int, length: float) -> tuple[Array, Array]:
    """Return points and weights of Gauss's rule from 0 to ``length``."""
    xi, weights = legendre.leggauss(count)
    return np.asarray((xi + 1.0) * length / 2.0), np.asarray(weights * length / 2.0)


def list_beam_mode_families(axis: int) -> Mapping[str, tuple[str, int]]:
    """Return the name of each family of modes → (kind, local axis of the displacement) for a beam along an axis."""
    names = "xyz"
    across = {f"bending_{names[(axis + i) % 3]}": ("bending", i) for i in (1, 2)}
    return {**across, "torsion": ("torsion", 0), "extension": ("extension", 0)}
