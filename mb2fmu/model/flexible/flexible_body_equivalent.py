"""A rigid body and a few particles that move exactly as a linear flexible body does.

Displacement field of a flexible body in its own frame, of modal coordinates η:

    s(x) = X(x) + Σ_k φ_k(x) η_k + ½ Σ_kl S_kl(x) η_k η_l

Kinetic energy, momenta and the work of gravity depend on the scalar functions f = (1, X_x, X_y, X_z, φ_1x, φ_1y, …)
only through their Gram matrix G = ∫ f fᵀ dm. Any mass distribution with the same G has the same equations of motion,
for every motion of frame and modes. G is taken apart in two steps:

1. G = Lᵀ L. The columns of the fields (φ, S) in L span rows that are taken out by orthogonal transformations (QR with
   pivoting): as many as the fields have independent components. What remains is a *rigid body*, on which all fields
   vanish. It is done for φ, and then for what is left of S.
2. A Householder reflection from the left leaves Lᵀ L as it is and makes the column of "1" constant, √μ: each row is
   then a *particle* of mass μ with position and mode shapes L / √μ. Where the fields have too little of the mass (modes
   of a free body have no momentum: the column is zero), a point mass at the rigid body's mass centre is a further row.

Source of the Gram matrix as all that inertia needs: R. Schwertassek, O. Wallrapp, Dynamik flexibler
Mehrkörpersysteme, Vieweg 1999, ch. 6 (standard input data are its entries).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.linalg

Array = npt.NDArray[np.float64]

MINIMUM_PARTICLE_SHARE = 0.25
"""Least share of the mass in the particles: their positions grow with 1/√share, and with them rounding errors."""

RANK_TOLERANCE = 5e-8
"""Share of a second-order field's size below which its independent part is left out: each one more is a particle.

The Gram matrix then is off by 2e-9 of its entries at most, below what the check against the nodes sees."""

MODE_RANK_TOLERANCE = 1e-13
"""The same of mode shapes: only rounding errors go."""

_ROUND_OFF = 1e-15
"""Diagonal entries of a Gram matrix with ones on its diagonal that are rounding errors."""


@dataclass(frozen=True, slots=True)
class FlexibleBodyParticleEquivalent:
    """A rigid body and r particles with the inertia of a flexible body; components in the body's frame.

    Attributes:
        rigid_mass: Mass of the rigid body, kg.
        rigid_centre: Its mass centre, shape (3,), m.
        rigid_inertia: Its central inertia, shape (3, 3), kg·m².
        masses: Of the particles, shape (r,), kg.
        positions: Of the particles at rest, shape (r, 3), m.
        modes: Mode shapes at the particles, shape (m, r, 3).
        second_order: Second-order displacements at the particles, shape (m, m, r, 3).
    """

    rigid_mass: float
    rigid_centre: Array
    rigid_inertia: Array
    masses: Array
    positions: Array
    modes: Array
    second_order: Array

    @property
    def total_mass(self) -> float:
        """Mass of all together, kg."""
        return self.rigid_mass + float(np.sum(self.masses))

    @property
    def centre(self) -> Array:
        """Mass centre of all together at rest, shape (3,), m."""
        moment = self.rigid_mass * self.rigid_centre + self.masses @ self.positions
        return np.asarray(moment / self.total_mass)

    @property
    def inertia(self) -> Array:
        """Inertia of all together at rest about the frame's origin, shape (3, 3), kg·m²."""
        second = self.rigid_mass * np.outer(self.rigid_centre, self.rigid_centre)
        second += np.einsum("p,pi,pj->ij", self.masses, self.positions, self.positions)
        return self.rigid_inertia + convert_second_moment_to_inertia(second)


def convert_second_moment_to_inertia(second_moment: Array) -> Array:
    """Return the inertia tr(Σ) 1 - Σ of a second moment of mass Σ = ∫ x xᵀ dm, shape (3, 3), kg·m²."""
    return np.asarray(np.trace(second_moment) * np.eye(3) - second_moment)


def convert_inertia_to_second_moment(inertia: Array) -> Array:
    """Return the second moment of mass ½ tr(J) 1 - J of an inertia J, shape (…, 3, 3), kg·m²."""
    trace = np.trace(inertia, axis1=-2, axis2=-1)
    return np.asarray(0.5 * np.multiply.outer(trace, np.eye(3)) - inertia)


def factor_gram_matrix(gram: Array) -> Array:
    """Return L, shape (n, n), with Lᵀ L = G, by Cholesky with the largest diagonal entry first.

    L has half of the digits of what nearly depends on other fields; that of the fields themselves has all.
    """
    scale = np.sqrt(np.clip(np.diag(gram), 0.0, None))
    scale = np.where(scale > 0.0, scale, 1.0)
    rest = gram / np.outer(scale, scale)
    rows = []
    for _ in range(len(gram)):
        pivot = int(np.argmax(np.diag(rest)))
        if not rest[pivot, pivot] > _ROUND_OFF:
            break
        row = rest[pivot] / np.sqrt(rest[pivot, pivot])
        rest = rest - np.outer(row, row)
        rest[pivot, :] = rest[:, pivot] = 0.0
        rows.append(row * scale)
    return np.array(rows).reshape(len(rows), len(gram))


def find_particle_equivalent(factor: Array, mode_count: int) -> FlexibleBodyParticleEquivalent:
    """Return a rigid body and particles that have the inertia of a flexible body.

    Args:
        factor: L, n columns, with Lᵀ L = ∫ f fᵀ dm of f = (1, X, φ_1, …, φ_m, S_11, S_12, …, S_mm):
            n = 4 + 3 m + 3 m (m + 1) / 2; the pairs k ≤ l of S in this order. Without second-order displacements
            n = 4 + 3 m.
        mode_count: m.
    """
    linear = 4 + 3 * mode_count
    size = np.linalg.norm(factor, axis=0)
    first, rest = _take_out(factor, slice(4, linear), MODE_RANK_TOLERANCE * size)
    second, rest = _take_out(rest, slice(linear, None), RANK_TOLERANCE * size)
    rows = np.vstack([first, second])
    rigid = rest[:, :4].T @ rest[:, :4]
    mass = float(np.sum(factor[:, 0] ** 2))
    missing = MINIMUM_PARTICLE_SHARE * mass - float(np.sum(rows[:, 0] ** 2))
    if missing > 0.0:
        point_mass = np.zeros(factor.shape[1])
        point_mass[:4] = np.sqrt(missing) * rigid[:4, 0] / rigid[0, 0]
        rigid = rigid - np.outer(point_mass[:4], point_mass[:4])
        rows = np.vstack([rows, point_mass])
    return _read_parts(rigid, _level_first_column(rows), mode_count)


def _take_out(factor: Array, block: slice, negligible: Array) -> tuple[Array, Array]:
    """Return rows that have all of a block of columns, and the rows that remain, where the block is zero.

    Args:
        factor: L.
        block: Columns of the fields.
        negligible: Size of each column that is none of its own.
    """
    size = np.where(negligible[block] > 0.0, negligible[block], 1.0)
    Q, R, _ = scipy.linalg.qr(factor[:, block] / size, pivoting=True)
    rank = int(np.sum(np.abs(np.diag(R)) > 1.0))
    turned = Q.T @ factor
    rest = turned[rank:]
    rest[:, block] = 0.0
    return turned[:rank], rest


def _level_first_column(rows: Array) -> Array:
    """Return Q · rows with a reflection Q such that all entries of the first column are equal and positive."""
    first = rows[:, 0]
    level = np.full(len(rows), np.linalg.norm(first) / np.sqrt(len(rows)))
    normal = first - level
    square = float(normal @ normal)
    if square <= (1e-15 * float(np.linalg.norm(first))) ** 2:
        return rows
    return np.asarray(rows - 2.0 * np.outer(normal, normal @ rows) / square)


def _read_parts(rigid: Array, rows: Array, m: int) -> FlexibleBodyParticleEquivalent:
    """Return the parts of the Gram matrix of the rigid body, and of rows with a constant first column."""
    mass = max(float(rigid[0, 0]), 0.0)
    centre = rigid[1:, 0] / mass if mass > 0.0 else np.zeros(3)
    central = rigid[1:, 1:] - mass * np.outer(centre, centre)
    values, vectors = np.linalg.eigh((central + central.T) / 2.0)
    central = (vectors * np.clip(values, 0.0, None)) @ vectors.T  # rounding errors are no negative inertia
    functions = rows / rows[:, :1]
    count = len(rows)
    second = np.zeros((m, m, count, 3))
    column = 4 + 3 * m
    for k in range(m if functions.shape[1] > column else 0):
        for l in range(k, m):
            second[k, l] = second[l, k] = functions[:, column : column + 3]
            column += 3
    return FlexibleBodyParticleEquivalent(
        rigid_mass=mass,
        rigid_centre=centre,
        rigid_inertia=convert_second_moment_to_inertia(central),
        masses=rows[:, 0] ** 2,
        positions=functions[:, 1:4],
        modes=functions[:, 4 : 4 + 3 * m].reshape(count, m, 3).transpose(1, 0, 2),
        second_order=second,
    )
