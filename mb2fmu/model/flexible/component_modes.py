"""Component modes of a finite element model of solid elements: the reduction of Craig and Bampton.

Nodes of one interface move as a rigid patch with the 6 motions q of its centre (3, if it is a single node). The body's
frame is fixed to the first interface, so that no rigid motion is left. The basis has

- constraint modes: displacement of all nodes per unit motion of one interface, -K_ii⁻¹ K_ib R, others held;
- fixed-interface modes: the lowest eigenvectors of (K_ii, M_ii), all interfaces held.

The eigenvectors of the reduced (Vᵀ K V, Vᵀ M V) are the modes: orthogonal, in ascending order. Without interfaces the
basis is the lowest modes of the free body, without its six rigid motions; the frame is then a mean frame.

Source: R. R. Craig, M. C. C. Bampton, Coupling of Substructures for Dynamic Analyses, AIAA Journal 6 (1968) 1313-1319.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg

from mb2fmu.errors import Fault, ModelError
from mb2fmu.model.flexible.mesh_multifrontal_cholesky import SparseCholesky

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int_]
SparseMatrix: TypeAlias = Any

MAX_WAVE_SPEED = 2e5
"""Of the speed of sound, estimated from neighbouring nodes, m/s; 1.8e4 in diamond, and an estimate may triple it."""

RIGID_FORCE_TOLERANCE = 1e-6
"""Share of the largest stiffness that nodal forces of a rigid motion may have: assembled matrices have 1e-12."""

MAX_MODES = 200
"""Modes from which no more are looked for below a frequency limit."""


@dataclass(frozen=True, slots=True)
class ComponentModes:
    """Modes of a reduced finite element model.

    Attributes:
        modes: Displacements of all nodes, and behind them of the interfaces' centres, shape (m, n + n_i, 3); the
            largest component is 1.
        stiffness: Modal stiffness, shape (m,), N/m.
        centres: Centres of the interfaces, shape (n_i, 3), m.
        rotations: Rotations of the interfaces, shape (m, n_i, 3), rad/m; NaN where all nodes of one lie on a line.
    """

    modes: Array
    stiffness: Array
    centres: Array
    rotations: Array


@dataclass(frozen=True, slots=True)
class _RigidInterfacePatch:
    """Nodes that move as one rigid patch.

    Attributes:
        nodes: Their numbers, shape (p,).
        centre: Mean of their positions, shape (3,), m.
        displacements: Of the nodes by the patch's six motions, shape (3 p, 6).
        motions: Basis of the motions that displace nodes, shape (6, r); r = 6 unless all nodes lie on a line.
    """

    nodes: Indices
    centre: Array
    displacements: Array
    motions: Array

    @property
    def determines_rotation(self) -> bool:
        """Whether the nodes show every rotation: they do not lie on a line."""
        return bool(self.motions.shape[1] == 6)


def reduce_finite_elements(
    stiffness: SparseMatrix,
    mass: SparseMatrix,
    nodes: Array,
    interfaces: Mapping[str, Sequence[int]],
    count: int,
    limit: float = 0.0,
    where: str = "",
) -> ComponentModes:
    """Return the component modes of a finite element model.

    Args:
        stiffness: K, shape (3 n, 3 n), in the order x_1, y_1, z_1, x_2, …, N/m; free of supports.
        mass: M, shape (3 n, 3 n), kg.
        nodes: Shape (n, 3), m.
        interfaces: Name → numbers of the nodes, from 0.
        count: Number of fixed-interface modes.
        limit: Frequency in Hz below which all of them are wanted, however many there are.
        where: ``file:line`` for messages.

    Raises:
        ModelError: With every fault of the matrices and interfaces; or too many modes lie below the limit.
    """
    n = len(nodes)
    _raise_faults([*_shape_faults(stiffness, mass, nodes), *_interface_faults(interfaces, n, count)], where)
    K, M = scipy.sparse.csr_array(stiffness, dtype=float), scipy.sparse.csr_array(mass, dtype=float)
    patches = [_read_interface(nodes, np.asarray(numbers, dtype=int)) for numbers in interfaces.values()]
    _raise_faults([*_matrix_faults(K, M, nodes), *_holding_faults(interfaces, patches)], where)
    try:
        if patches:
            basis, motions = _held_basis(K, M, nodes, patches, count, limit)
        else:
            basis = _free_basis(K, M, nodes, count, limit)
            motions = np.zeros((basis.shape[1], 0, 6))
    except np.linalg.LinAlgError:
        what = "K has no resistance against some deformation" + " while the interfaces are held" * bool(patches)
        _raise_faults([(what, "join the parts of the mesh; K is positive semidefinite")], where)
        raise
    squares, vectors = scipy.linalg.eigh(np.asarray(basis.T @ (K @ basis)), np.asarray(basis.T @ (M @ basis)))
    shapes, moved = (basis @ vectors).T, np.einsum("ki,kpa->ipa", vectors, motions)
    size = np.max(np.abs(shapes), axis=1)
    shapes, moved = shapes / size[:, None], moved / size[:, None, None]
    modes = np.concatenate([shapes.reshape(len(shapes), n, 3), moved[:, :, :3]], axis=1)
    rotations = moved[:, :, 3:].copy()
    rotations[:, [not patch.determines_rotation for patch in patches]] = np.nan
    return ComponentModes(
        modes=modes,
        stiffness=squares / size**2,
        centres=np.array([patch.centre for patch in patches]).reshape(-1, 3),
        rotations=rotations,
    )


def _rigid_displacements(nodes: Array, centre: Array) -> Array:
    """Return the displacements of nodes by three translations and three rotations about a point, shape (3 n, 6)."""
    arms = nodes - centre
    turned = np.stack([np.cross(axis, arms) for axis in np.eye(3)], axis=2)
    moved = np.broadcast_to(np.eye(3), (len(nodes), 3, 3))
    return np.concatenate([moved, turned], axis=2).reshape(-1, 6)


def _read_interface(nodes: Array, numbers: Indices) -> _RigidInterfacePatch:
    """Return an interface with a basis (6, r) of the motions that its nodes show."""
    centre = np.mean(nodes[numbers], axis=0)
    displacements = _rigid_displacements(nodes[numbers], centre)
    size = max(float(np.max(np.abs(nodes[numbers] - centre))), 1e-300)
    units = np.array([1.0, 1.0, 1.0, size, size, size])
    scaled = displacements / units
    values, vectors = np.linalg.eigh(scaled.T @ scaled)
    motions = vectors[:, values > 1e-9 * values[-1]]
    motions = np.eye(6) if motions.shape[1] == 6 else motions / units[:, None]
    return _RigidInterfacePatch(numbers, centre, displacements, motions)


def _held_basis(
    K: SparseMatrix, M: SparseMatrix, nodes: Array, patches: Sequence[_RigidInterfacePatch], count: int, limit: float
) -> tuple[Array, Array]:
    """Return basis vectors (3 n, r), and the motions of all interfaces in each, (r, n_i, 6); the first one is held."""
    size = K.shape[0]
    dofs = [(3 * patch.nodes[:, None] + np.arange(3)).ravel() for patch in patches]
    free = np.setdiff1d(np.arange(size), np.concatenate(dofs))
    K_free, M_free = K[free][:, free], M[free][:, free]
    solve = SparseCholesky(K_free, nodes[free // 3]).solve
    normal = _find_low_eigenvectors(K_free, M_free, count, limit, 0.0, solve)
    count = normal.shape[1]
    columns, motions = [np.zeros((size, count))], [np.zeros((count, len(patches), 6))]
    columns[0][free] = normal
    for number, (patch, own) in enumerate(zip(patches, dofs, strict=True)):
        if number == 0:
            continue
        moved = np.zeros((size, patch.motions.shape[1]))
        moved[own] = patch.displacements @ patch.motions
        moved[free] = -solve(np.asarray(K[free] @ moved))
        columns.append(moved)
        motion = np.zeros((moved.shape[1], len(patches), 6))
        motion[:, number] = patch.motions.T
        motions.append(motion)
    return np.column_stack(columns), np.concatenate(motions)


def _free_basis(K: SparseMatrix, M: SparseMatrix, nodes: Array, count: int, limit: float) -> Array:
    """Return the lowest modes of the free body, orthogonal to its rigid motions, shape (3 n, count)."""
    R = _rigid_displacements(nodes, np.mean(nodes, axis=0))
    stiff, heavy = float(K.diagonal().max()), float(M.diagonal().max())
    shift = -1e-6 * stiff / heavy
    solve = SparseCholesky(K - shift * M, np.repeat(nodes, 3, axis=0)).solve
    vectors = _find_low_eigenvectors(K, M, count + 6, limit, shift, solve)
    count = vectors.shape[1] - 6
    vectors = vectors - R @ np.linalg.solve(R.T @ (M @ R), R.T @ (M @ vectors))
    squares, shapes = scipy.linalg.eigh(vectors.T @ (M @ vectors))
    deforming = vectors @ shapes[:, squares > 1e-6 * squares[-1]]
    return np.asarray(deforming[:, -count:])


def _find_low_eigenvectors(
    K: SparseMatrix, M: SparseMatrix, count: int, limit: float, shift: float, solve: Any
) -> Array:
    """Return eigenvectors of (K, M) next to a shift, shape (n, count or more); the same ones in each run.

    The iteration starts from fixed numbers, since those of equal frequencies (a square section) depend on them.

    Args:
        K: Stiffness.
        M: Mass.
        count: Number of eigenvectors; twice as many, and again, until they reach the limit.
        limit: Frequency, Hz.
        shift: Square of a frequency, (rad/s)².
        solve: Solver of K - shift M.
    """
    size = K.shape[0]
    inverse = scipy.sparse.linalg.LinearOperator((size, size), matvec=solve, dtype=float)
    start = np.random.default_rng(1968).uniform(-1.0, 1.0, size)
    while True:
        count = min(count, size - (2 if shift == 0.0 else 1))
        squares, vectors = scipy.sparse.linalg.eigsh(K, k=count, M=M, sigma=shift, OPinv=inverse, v0=start)
        if np.max(squares) > (2.0 * np.pi * limit) ** 2 or count >= size - 2:
            return np.asarray(vectors)
        if count > MAX_MODES:
            _raise_faults([(f"more than {count} modes lie below {limit:g} Hz", "give a lower up_to")], "")
        count *= 2


def _raise_faults(faults: Sequence[tuple[str, str]], where: str) -> None:
    """Raise all faults (what, remedy) together, if there are any."""
    if faults:
        headline = "the finite element model cannot be used:"
        raise ModelError(headline, [Fault(what, where, remedy) for what, remedy in faults])


def _shape_faults(K: Any, M: Any, nodes: Array) -> Iterator[tuple[str, str]]:
    """Yield nodes that are no positions, and matrices whose shapes do not fit them."""
    if nodes.ndim != 2 or nodes.shape[1] != 3:
        yield f"nodes has the shape {nodes.shape}", "it is (n, 3): x, y, z of each node"
        return
    if not np.all(np.isfinite(nodes)):
        yield "nodes has entries that are no finite numbers", "correct nodes"
    n = len(nodes)
    for name, matrix in (("K", K), ("M", M)):
        if getattr(matrix, "shape", None) != (3 * n, 3 * n):
            remedy = f"with {n} nodes it is ({3 * n}, {3 * n}): x, y, z of each node, of solid elements"
            if getattr(matrix, "shape", None) == (6 * n, 6 * n):
                remedy = (
                    "rotations of nodes (shells, beams) are not read: reduce the model, and give FlexibleBody arrays"
                )
            yield f"{name} has the shape {getattr(matrix, 'shape', None)}", remedy


def _interface_faults(interfaces: Mapping[str, Sequence[int]], n: int, count: int) -> Iterator[tuple[str, str]]:
    """Yield interfaces with nodes that do not exist, none, or those of others."""
    owner: dict[int, str] = {}
    for name, numbers in interfaces.items():
        if not len(numbers):
            yield f"interface {name} has no nodes", "name at least one"
        missing = [int(i) for i in numbers if not 0 <= int(i) < n]
        if missing:
            yield f"interface {name} has nodes {missing[:5]} that do not exist", f"nodes are 0 to {n - 1}"
        shared = [int(i) for i in numbers if int(i) in owner]
        if shared:
            yield f"nodes {shared[:5]} are in {owner[shared[0]]} and in {name}", "give each node to one interface"
        owner.update(dict.fromkeys(map(int, numbers), name))
    if len(owner) == n:
        yield "every node is in an interface", "leave nodes between the interfaces, which deform"
    if not isinstance(count, int) or count < 1:
        yield f"the number of modes is {count!r}", "give a number of 1 or more"


def _holding_faults(
    interfaces: Mapping[str, Sequence[int]], patches: Sequence[_RigidInterfacePatch]
) -> Iterator[tuple[str, str]]:
    """Yield a first interface that leaves the body free to turn."""
    if patches and not patches[0].determines_rotation:
        what = f"the nodes of interface {next(iter(interfaces))}, to which the body's frame is fixed, lie on a line"
        yield what, "begin with an interface of three nodes or more that do not lie on a line"


def _matrix_faults(K: SparseMatrix, M: SparseMatrix, nodes: Array) -> Iterator[tuple[str, str]]:
    """Yield matrices that are not symmetric, not finite, or that resist rigid motions."""
    sound = True
    for name, matrix in (("K", K), ("M", M)):
        if not np.all(np.isfinite(matrix.data)):
            yield f"{name} has entries that are no finite numbers", f"correct {name}"
            sound = False
        elif abs(matrix - matrix.T).max() > 1e-9 * abs(matrix).max():
            yield f"{name} is not symmetric", "give the assembled matrix, both halves of it"
            sound = False
    if not sound:
        return
    if np.min(K.diagonal()) <= 0.0:
        number = int(np.argmin(K.diagonal()))
        yield f"node {number // 3} has no stiffness along {'xyz'[number % 3]}", "leave out nodes without elements"
    if np.min(M.diagonal()) < 0.0:
        yield f"node {int(np.argmin(M.diagonal())) // 3} has a negative mass", "correct M"
    elif not np.max(M.diagonal()) > 0.0:
        yield "M has no mass", "give the assembled mass matrix, in kg"
    size = float(np.max(np.ptp(nodes, axis=0)))
    centre = np.mean(nodes, axis=0)
    R = _rigid_displacements((nodes - centre) / max(size, 1e-300), np.zeros(3))
    resistance = np.max(np.abs(K @ R), axis=0) / abs(K).max()
    resisted = [name for name, share in zip(_MOTIONS, resistance, strict=True) if share > RIGID_FORCE_TOLERANCE]
    if resisted:
        remedy = "give K without supports, in the order x_1, y_1, z_1, x_2, …, and the nodes in the order and unit of K"
        yield f"K resists rigid motions ({', '.join(resisted)}), so it does not fit the nodes", remedy
    elif (speed := _estimate_wave_speed(K, M, nodes)) > MAX_WAVE_SPEED:
        remedy = "give nodes in m, K in N/m and M in kg: of mm, N and t divide nodes by 1000, multiply K and M by 1000"
        yield f"waves travel at about {speed:.1g} m/s, faster than in any material: units do not fit", remedy


def _estimate_wave_speed(K: SparseMatrix, M: SparseMatrix, nodes: Array) -> float:
    """Return the median over nodes of √(K_ii / M_ii) times the distance of the next node of its elements, m/s."""
    pairs = scipy.sparse.coo_array(K)
    first, second = pairs.row // 3, pairs.col // 3
    lengths = np.linalg.norm(nodes[first] - nodes[second], axis=1)
    nearest = np.full(len(nodes), np.inf)
    np.minimum.at(nearest, first, np.where(lengths > 0.0, lengths, np.inf))
    stiff, heavy = (np.max(matrix.diagonal().reshape(-1, 3), axis=1) for matrix in (K, M))
    counted = (heavy > 0.0) & np.isfinite(nearest)
    if not np.any(counted):
        return 0.0
    return float(np.median(np.sqrt(stiff[counted] / heavy[counted]) * nearest[counted]))


_MOTIONS = ("along x", "along y", "along z", "about x", "about y", "about z")
