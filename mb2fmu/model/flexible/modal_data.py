"""FlexibleBodyModalData: nodes, masses, mode shapes and stiffness of a flexible body as arrays, and their checks.

Displacement of node p in the body's own frame, of modal coordinates η (m), and small rotation of its section:

    s_p = X_p + Σ_k φ_kp η_k + ½ Σ_kl S_klp η_k η_l          angle_p = Σ_k ψ_kp η_k

Kinetic energy, of the masses m_pq of one component of translation and of the second moments Σ_p of sections:

    T = ½ Σ_pq m_pq v_p · v_q + ½ Σ_p Σ_ij Σ_p,ij (d/dt a_pi) · (d/dt a_pj)          a_pi = e_i + Σ_k (ψ_kp × e_i) η_k

Where there are second-order displacements, arms are of second order, too, as they are of a section that turns:

    a_pi = e_i + Σ_k (ψ_kp × e_i) η_k + ½ Σ_kl A_klp e_i η_k η_l          A_kl = ½ (ψ_k ψ_lᵀ + ψ_l ψ_kᵀ) - (ψ_k · ψ_l) 1

Of first order alone, a section grows as it turns: a shaft has no gyroscopic stiffening, and torsion becomes softer with
the spin. Some pairs of modes are left out, see :meth:`FlexibleBodyModalData.second_order_pairs`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse

from mb2fmu.errors import Fault, ModelError
from mb2fmu.model.flexible.flexible_body_equivalent import (
    convert_inertia_to_second_moment,
    convert_second_moment_to_inertia,
    factor_gram_matrix,
)
from mb2fmu.units import convert_unit_to_modelica, parse_unit

Array = npt.NDArray[np.float64]

MassMatrix: TypeAlias = Any
"""Array (n, n) or sparse matrix of SciPy."""

SYMMETRY_TOLERANCE = 1e-9
"""Largest difference of a matrix and its transpose, of the largest entry."""

RIGHT_ANGLE_TOLERANCE = 1e-12
"""Product of two modes' rotations, of the largest of each, that is zero."""

SMALL_ROTARY_SHARE = 1e-3
"""Of rotation of sections in the kinetic energy of modes: less than the shear that Euler's beams leave out."""

RIGID_MOTION_TOLERANCE = 1e-8
"""A mode whose kinetic energy is less than this share beside that of a rigid motion, deforms nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlexibleBodyModalData:
    """A linear flexible body of n nodes and m modes; components in its own frame.

    Attributes:
        nodes: Positions at rest, shape (n, 3), m.
        mass: Mass matrix of one component of translation, shape (n, n), kg; dense or sparse.
        modes: Mode shapes φ, shape (m, n, 3), m of displacement per m of the modal coordinate.
        stiffness: Modal stiffness, shape (m, m), N/m.
        damping: Modal damping, shape (m, m), N·s/m.
        rotations: Rotations ψ of the nodes, shape (m, n, 3), rad per m; None where they are not known.
        rotational_inertia: Inertia of each node's section, shape (n, 3, 3), kg·m²; None: none.
        second_order: S, shape (m, m, n, 3), 1/m, symmetric in the first two; None: none.
    """

    nodes: Array
    mass: MassMatrix
    modes: Array
    stiffness: Array
    damping: Array
    rotations: Array | None = None
    rotational_inertia: Array | None = None
    second_order: Array | None = None

    @property
    def mode_count(self) -> int:
        """Number m of modes."""
        return len(self.modes)

    def gram(self) -> Array:
        """Return the Gram matrix ∫ f fᵀ dm of f = (1, X, φ, S), the pairs k ≤ l of S."""
        return self._integrate(*self._fields())

    def gram_factor(self) -> Array:
        """Return L with Lᵀ L equal to the Gram matrix, as ``find_particle_equivalent`` takes it.

        It is the triangular factor of the fields, weighted by the root of the mass matrix, with all digits of fields
        that nearly depend on each other, as the shapes of a beam's two planes do, which differ by rotary inertia. Of a
        sparse mass matrix that is not diagonal it is that of the Gram matrix.
        """
        F, slopes = self._fields()
        sparse = scipy.sparse.issparse(self.mass)
        masses = self.mass.diagonal()
        diagonal = np.count_nonzero(masses) == (self.mass.count_nonzero() if sparse else np.count_nonzero(self.mass))
        if sparse and not diagonal:
            return factor_gram_matrix(self._integrate(F, slopes))
        rows = [np.sqrt(np.clip(masses, 0.0, None))[:, None] * F if diagonal else _root(self.mass) @ F]
        if slopes is not None and self.rotational_inertia is not None:
            roots = _root(convert_inertia_to_second_moment(self.rotational_inertia))
            rows.append((roots @ slopes).reshape(-1, F.shape[1]))
        weighted = np.vstack(rows)
        size = np.linalg.norm(weighted, axis=0)
        size = np.where(size > 0.0, size, 1.0)
        return np.asarray(scipy.linalg.qr(weighted / size, mode="r")[0][: F.shape[1]] * size)

    def _fields(self) -> tuple[Array, Array | None]:
        """Return the fields f of the nodes, shape (n, N), and slopes of their sections, (n, 3, N), if these count."""
        n, m = len(self.nodes), self.mode_count
        columns = [np.ones((n, 1)), self.nodes, self.modes.transpose(1, 0, 2).reshape(n, 3 * m)]
        if self.second_order is not None:
            columns += [self.second_order[k, l] for k in range(m) for l in range(k, m)]
        F = np.column_stack(columns)
        if self.rotational_inertia is None or self.rotations is None:
            return F, None
        slopes = np.zeros((n, 3, F.shape[1]))
        for i, axis in enumerate(np.eye(3)):
            slopes[:, i, 1:4] = axis
            turned = np.cross(self.rotations, axis)  # (m, n, 3)
            slopes[:, i, 4 : 4 + 3 * m] = turned.transpose(1, 0, 2).reshape(n, 3 * m)
        if self.second_order is not None:
            arms = self._second_order_arms(self.rotations)
            slopes[:, :, 4 + 3 * m :] = np.concatenate([arms[k, l] for k in range(m) for l in range(k, m)], axis=-1)
        return F, slopes

    def second_order_pairs(self) -> npt.NDArray[np.bool_]:
        """Return the pairs of modes whose sections turn to second order, shape (m, m).

        A mode k counts by the share β_k of its kinetic energy that is rotation of sections: without the pair (k, k) the
        critical speed of a shaft is ½ β_k too low. Pairs with √(β_k β_l) below :data:`SMALL_ROTARY_SHARE` are left out;
        and those that turn all sections about axes at right angles (bending in two planes; bending and torsion), whose
        terms are a shear of the section and the order of its rotations.
        """
        m, psi, J = self.mode_count, self.rotations, self.rotational_inertia
        if self.second_order is None or psi is None or J is None:
            return np.zeros((m, m), dtype=bool)
        turning = np.einsum("kni,nij,knj->k", psi, J, psi)
        flat = self.modes.transpose(1, 0, 2).reshape(len(self.nodes), -1)
        moving = np.sum(flat * (self.mass @ flat), axis=0).reshape(m, 3).sum(axis=1)
        shares = np.sqrt(turning / np.maximum(turning + moving, 1e-300))
        size = np.max(np.linalg.norm(psi, axis=-1), axis=-1)
        oblique = np.max(np.abs(np.einsum("kni,lni->kln", psi, psi)), axis=-1) > RIGHT_ANGLE_TOLERANCE * np.outer(
            size, size
        )
        return np.asarray(oblique & (np.outer(shares, shares) > SMALL_ROTARY_SHARE))

    def _second_order_arms(self, rotations: Array) -> Array:
        """Return A of each pair of modes and node, shape (m, m, n, 3, 3), 1/m²."""
        outer = np.einsum("kni,lnj->klnij", rotations, rotations)
        arms = (outer + outer.swapaxes(-1, -2)) / 2.0 - np.einsum("klnii->kln", outer)[..., None, None] * np.eye(3)
        return np.asarray(np.where(self.second_order_pairs()[:, :, None, None, None], arms, 0.0))

    def _integrate(self, F: Array, slopes: Array | None) -> Array:
        """Return the Gram matrix of fields of the nodes and slopes of their sections."""
        gram = np.asarray(F.T @ (self.mass @ F))
        if slopes is not None and self.rotational_inertia is not None:
            moments = convert_inertia_to_second_moment(self.rotational_inertia)
            gram = gram + np.einsum("nia,nij,njb->ab", slopes, moments, slopes, optimize=True)
        return np.asarray((gram + gram.T) / 2.0)

    def modal_mass(self) -> Array:
        """Return the mass matrix of the modal coordinates in the body's frame, shape (m, m), kg."""
        m = self.mode_count
        fields = self.gram()[4 : 4 + 3 * m, 4 : 4 + 3 * m].reshape(m, 3, m, 3)
        return np.asarray(np.einsum("kili->kl", fields))

    def frequencies(self) -> Array:
        """Return the angular eigenfrequencies with the body's frame at rest, ascending, rad/s."""
        values = scipy.linalg.eigh(self.stiffness, self.modal_mass(), eigvals_only=True)
        return np.asarray(np.sqrt(np.clip(values, 0.0, None)))

    def arrays(self) -> dict[str, Any]:
        """Return the arrays by the names that :func:`make_modal_data` takes them by."""
        return {name: getattr(self, name) for name in FlexibleBodyModalData.__slots__}

    @property
    def total_mass(self) -> float:
        """Total mass, kg."""
        return float(self.gram()[0, 0])

    @property
    def centre(self) -> Array:
        """Mass centre at rest, shape (3,), m."""
        gram = self.gram()
        return np.asarray(gram[0, 1:4] / gram[0, 0])

    @property
    def inertia(self) -> Array:
        """Inertia at rest about the origin of the body's frame, shape (3, 3), kg·m²."""
        return convert_second_moment_to_inertia(self.gram()[1:4, 1:4])


def _root(matrices: Array) -> Array:
    """Return A with Aᵀ A equal to positive semidefinite matrices, shape (…, n, n)."""
    values, vectors = np.linalg.eigh(matrices)
    return np.asarray(np.sqrt(np.clip(values, 0.0, None))[..., None] * np.swapaxes(vectors, -1, -2))


def make_modal_data(
    *,
    nodes: Any,
    mass: Any,
    modes: Any,
    stiffness: Any,
    damping: Any = 0.0,
    rotations: Any = None,
    rotational_inertia: Any = None,
    second_order: Any = None,
    up_to: float | str | None = None,
    where: str = "",
) -> FlexibleBodyModalData:
    """Return arrays of a flexible body in their full shapes.

    Args:
        nodes: Shape (n, 3), m.
        mass: Lumped masses (n,), or the mass matrix (n, n) of one component, or (3 n, 3 n) of all in the order
            x_1, y_1, z_1, x_2, …, in which the components must be alike and uncoupled; kg.
        modes: Shape (m, n, 3).
        stiffness: Shape (m,) or (m, m), N/m.
        damping: Damping ratios of the eigenmodes in ascending order of their frequencies, a number or shape (m,); or
            the damping matrix, shape (m, m), N·s/m.
        rotations: Shape (m, n, 3), rad per m, NaN where it is not known; or None.
        rotational_inertia: Shape (n, 3), moments about x, y, z, or (n, 3, 3), kg·m²; or None.
        second_order: Shape (m, m, n, 3), 1/m; or None.
        up_to: Frequency limit, Hz or text with a unit, of modes that are uncoupled; None: all modes are kept.
        where: ``file:line`` for messages.

    Raises:
        ModelError: With every fault of the arrays.
    """
    X, phi = _as_array(nodes), _as_array(modes)
    given = {
        "nodes": X, "modes": phi, "stiffness": _as_array(stiffness), "damping": _as_array(damping),
        "rotations": _as_array(rotations), "rotational_inertia": _as_array(rotational_inertia),
        "second_order": _as_array(second_order),
    }  # fmt: skip
    M = mass if scipy.sparse.issparse(mass) else _as_array(mass)
    faults = [*_shape_faults(given, M), *_number_faults(given, M)]
    _raise_faults(faults, where)
    n, m = len(X), len(phi)
    reduced, mass_faults = _one_component(M, n)
    K = np.diag(given["stiffness"]) if given["stiffness"].ndim == 1 else given["stiffness"]
    J = given["rotational_inertia"]
    data = FlexibleBodyModalData(
        nodes=X,
        mass=reduced,
        modes=phi,
        stiffness=K,
        damping=np.zeros((m, m)),
        rotations=given["rotations"],
        rotational_inertia=J[:, :, None] * np.eye(3) if J is not None and J.ndim == 2 else J,
        second_order=given["second_order"],
    )
    _raise_faults([*mass_faults, *_matrix_faults(data, given["damping"])], where)
    _raise_faults([*_mode_faults(data)], where)
    data = _with_damping(data, given["damping"])
    return data if up_to is None else _keep_slow_modes(data, up_to, where)


def _keep_slow_modes(data: FlexibleBodyModalData, up_to: float | str, where: str) -> FlexibleBodyModalData:
    """Return the data without the modes above a frequency limit."""
    frequencies = np.sqrt(np.diag(data.stiffness) / np.diag(data.modal_mass())) / (2.0 * math.pi)
    try:
        kept = frequencies <= convert_frequency_limit_to_hertz(up_to)
    except ValueError:
        kept = np.zeros(len(frequencies), dtype=bool)
    if not np.any(kept):
        remedy = f"the lowest mode has {np.min(frequencies):.4g} Hz: give a limit above it, such as '200 Hz'"
        _raise_faults([(f"up_to is {up_to!r}, and no mode is below", remedy)], where)
    plain = data.arrays() | {"modes": data.modes[kept], "stiffness": data.stiffness[kept][:, kept]}
    plain |= {"damping": data.damping[kept][:, kept]}
    if data.rotations is not None:
        plain["rotations"] = data.rotations[kept]
    if data.second_order is not None:
        plain["second_order"] = data.second_order[kept][:, kept]
    return FlexibleBodyModalData(**plain)


def convert_frequency_limit_to_hertz(up_to: float | str) -> float:
    """Return a frequency limit in Hz.

    Raises:
        ValueError: If the text is no number with a unit of frequency.
    """
    if not isinstance(up_to, str):
        return float(up_to)
    number, _, unit = up_to.strip().partition(" ")
    parsed = parse_unit(convert_unit_to_modelica(unit.strip() or "Hz"))
    hertz = parse_unit("Hz")
    if parsed.exponents != hertz.exponents:
        raise ValueError(unit)
    return float(number) * parsed.factor / hertz.factor


def _as_array(value: Any) -> Any:
    """Return numbers as an array of floats; what are no numbers as an array of objects; None unchanged."""
    if value is None:
        return None
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        return np.asarray(value, dtype=object)


def _raise_faults(faults: Sequence[tuple[str, str]], where: str) -> None:
    """Raise all faults (what, remedy) together, if there are any."""
    if faults:
        raise ModelError("the flexible body cannot be used:", [Fault(what, where, remedy) for what, remedy in faults])


def _shape_faults(given: dict[str, Any], mass: Any) -> Iterator[tuple[str, str]]:
    """Yield arrays whose shapes do not fit."""
    X, phi = given["nodes"], given["modes"]
    n, m = (len(X) if X.ndim else 0), (len(phi) if phi.ndim else 0)
    allowed: dict[str, tuple[tuple[int, ...], ...]] = {
        "nodes": ((n, 3),),
        "modes": ((m, n, 3),),
        "stiffness": ((m,), (m, m)),
        "damping": ((), (m,), (m, m)),
        "rotations": ((m, n, 3),),
        "rotational_inertia": ((n, 3), (n, 3, 3)),
        "second_order": ((m, m, n, 3),),
    }
    if n == 0 or m == 0:
        yield f"it has {n} nodes and {m} modes", "give at least one of each; without modes a RigidBody will do"
        return
    for name, shapes in allowed.items():
        if given[name] is not None and given[name].dtype != object and given[name].shape not in shapes:
            expected = " or ".join(map(str, shapes))
            yield f"{name} has the shape {given[name].shape}", f"with {n} nodes and {m} modes it is {expected}"
    if mass.shape not in {(n,), (n, n), (3 * n, 3 * n)}:
        remedy = f"with {n} nodes it is ({n},), ({n}, {n}) or ({3 * n}, {3 * n})"
        yield f"mass has the shape {mass.shape}", remedy
    if given["rotational_inertia"] is not None and given["rotations"] is None:
        yield "nodes have a rotational inertia and no rotations", "give rotations of the nodes by each mode"


def _number_faults(given: dict[str, Any], mass: Any) -> Iterator[tuple[str, str]]:
    """Yield arrays with entries that are no finite numbers."""
    values = mass.data if hasattr(mass, "tocoo") else mass
    for name, array in {**given, "mass": values}.items():
        unknown = name == "rotations" and given["rotational_inertia"] is None  # NaN: not known
        legal = array is None or (array.dtype != object and np.all(np.isfinite(array) | (unknown & np.isnan(array))))
        if not legal:
            yield f"{name} has entries that are no finite numbers", f"correct {name}"


def _one_component(mass: Any, n: int) -> tuple[MassMatrix, list[tuple[str, str]]]:
    """Return the mass matrix of one component of translation, and its faults."""
    if mass.ndim == 1:
        return scipy.sparse.diags_array(mass).tocsr(), []
    if mass.shape == (n, n):
        return mass, []
    sparse = scipy.sparse.coo_array(mass)
    same = sparse.row % 3 == sparse.col % 3
    size = float(np.max(np.abs(sparse.data), initial=0.0))
    faults = []
    remedy = "lump the masses, or give rotations and rotational_inertia for what couples them"
    if np.max(np.abs(sparse.data[~same]), initial=0.0) > SYMMETRY_TOLERANCE * size:
        faults.append(("the mass matrix couples displacements along different axes", remedy))
    compressed = sparse.tocsr()
    parts = [compressed[i::3, i::3] for i in range(3)]
    if any(abs(part - parts[0]).max() > SYMMETRY_TOLERANCE * size for part in parts[1:]):
        faults.append(("the mass matrix is not the same along x, y and z", remedy))
    return parts[0], faults


def _matrix_faults(data: FlexibleBodyModalData, damping: Array) -> Iterator[tuple[str, str]]:
    """Yield matrices that are not symmetric, or not positive."""
    for name, matrix in (("mass", data.mass), ("stiffness", data.stiffness), ("damping", damping)):
        if getattr(matrix, "ndim", 2) == 2 and abs(matrix - matrix.T).max() > SYMMETRY_TOLERANCE * abs(matrix).max():
            yield f"the {name} matrix is not symmetric", "correct it, or its symmetric part will do: (A + A.T) / 2"
    if np.min(np.linalg.eigvalsh((data.stiffness + data.stiffness.T) / 2.0)) <= 0.0:
        remedy = "leave out rigid motions: frame and joints of the body have them"
        yield "the modal stiffness is not positive definite", remedy
    lowest = float(np.min(damping if damping.ndim < 2 else np.linalg.eigvalsh((damping + damping.T) / 2.0)))
    if lowest < -1e-12 * float(np.max(np.abs(damping))):
        yield f"the damping is negative ({lowest:g})", "give ratios >= 0, or a positive semidefinite matrix"
    if np.min(data.mass.diagonal()) < 0.0:
        yield "a node has a negative mass", "correct mass"
    moments = data.rotational_inertia
    if moments is not None:
        seconds = convert_inertia_to_second_moment(moments)
        if np.min(np.linalg.eigvalsh(seconds)) < -1e-9 * max(float(np.max(np.abs(moments))), 1e-300):
            remedy = "no moment of inertia is larger than the sum of the two others"
            yield "a node has a rotational inertia that no body has", remedy
    S = data.second_order
    if S is not None and np.max(np.abs(S - S.transpose(1, 0, 2, 3))) > SYMMETRY_TOLERANCE * np.max(np.abs(S)):
        yield "second_order differs for modes (k, l) and (l, k)", "give the same field for both"


def _mode_faults(data: FlexibleBodyModalData) -> Iterator[tuple[str, str]]:
    """Yield modes without mass, those that are rigid motions, and modes that are not independent."""
    m, gram = data.mode_count, data.gram()
    if not gram[0, 0] > 0.0:
        yield "it has no mass", "correct mass"
        return
    fields = gram[1 : 4 + 3 * m, 1 : 4 + 3 * m].reshape(m + 1, 3, m + 1, 3)
    modal = np.einsum("kili->kl", fields[1:, :, 1:, :])
    massless = [k for k in range(m) if not modal[k, k] > 0.0]
    if massless:
        what = f"no mass moves in mode {', '.join(map(str, massless))} (counted from 0)"
        yield what, "leave it out, or correct its shape"
        return
    coupling, rigid = _rigid_coupling(gram, m)
    scale = np.sqrt(np.diag(modal))
    deforming = modal - coupling @ np.linalg.pinv(rigid, rcond=1e-12, hermitian=True) @ coupling.T
    shares = np.diag(deforming) / scale**2
    stiff = [k for k in range(m) if shares[k] < RIGID_MOTION_TOLERANCE]
    if stiff:
        what = f"mode {', '.join(map(str, stiff))} (counted from 0) is a rigid motion"
        yield what, "leave it out: frame and joints of the body have it"
        return
    values, vectors = np.linalg.eigh(deforming / np.outer(scale, scale))
    if values[0] < RIGID_MOTION_TOLERANCE:
        among = [k for k in range(m) if abs(vectors[k, 0]) > 0.1]
        what = f"modes {', '.join(map(str, among))} (counted from 0) together make a rigid motion, or no motion"
        yield what, "leave one of them out"


def _rigid_coupling(gram: Array, m: int) -> tuple[Array, Array]:
    """Return ∫ φ_k · r_j dm, shape (m, 6), and ∫ r_i · r_j dm, (6, 6), of rigid motions r: e_i, then e_i × X."""
    epsilon = np.zeros((3, 3, 3))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        epsilon[i, j, k], epsilon[i, k, j] = 1.0, -1.0
    mass, first, second = gram[0, 0], gram[0, 1:4], gram[1:4, 1:4]
    fields = gram[:4, 4 : 4 + 3 * m].reshape(4, m, 3)
    # e_a × X has the components Σ_j ε_baj X_j along b.
    coupling = np.column_stack([fields[0], np.einsum("baj,jkb->ka", epsilon, fields[1:])])
    rigid = np.zeros((6, 6))
    rigid[:3, :3] = mass * np.eye(3)
    rigid[:3, 3:] = np.einsum("baj,j->ba", epsilon, first)
    rigid[3:, :3] = rigid[:3, 3:].T
    rigid[3:, 3:] = convert_second_moment_to_inertia(second)
    return coupling, rigid


def _with_damping(data: FlexibleBodyModalData, damping: Array) -> FlexibleBodyModalData:
    """Return the data with the damping matrix; ratios ζ give M Φ diag(2 ζ ω) Φᵀ M with Φᵀ M Φ = 1."""
    m = data.mode_count
    C = damping
    if damping.ndim < 2:
        M = data.modal_mass()
        squares, vectors = scipy.linalg.eigh(data.stiffness, M)
        ratios = np.broadcast_to(damping, (m,))
        C = M @ (vectors * (2.0 * ratios * np.sqrt(squares))) @ vectors.T @ M
    return FlexibleBodyModalData(**data.arrays() | {"damping": (C + C.T) / 2.0})
