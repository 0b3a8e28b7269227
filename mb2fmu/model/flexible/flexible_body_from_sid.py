"""Standard input data as a flexible body: inertia terms → Gram matrix → masses with mode shapes.

The terms are integrals of rest position X and mode shapes φ, in the left-hand side of the equations of motion:

    mdCM = ∫ X dm    J = -∫ X̃ X̃ dm    Ct_k = ∫ φ_k dm    Cr_k = ∫ X × φ_k dm    Gr_k = -2 ∫ X̃ φ̃_k dm
    Me_kl = ∫ φ_k · φ_l dm    Ge_kl = 2 ∫ φ_l × φ_k dm    Oe_k ω² = ∫ φ_k · (ω̃ ω̃ (X + Σ φ_l q_l)) dm

Gr_k has all of ∫ X φ_kᵀ in it; Me, Cr and Oe have all of ∫ φ_k φ_lᵀ: its trace, its antisymmetric and its symmetric
part. These are the Gram matrix. Terms of geometric stiffness stand in the same places (first order of Cr, Ct, Oe): a
file that has them does not show ∫ φ_k φ_lᵀ any more, and is refused.

Source: R. Schwertassek, O. Wallrapp, Dynamik flexibler Mehrkörpersysteme, Vieweg 1999, ch. 6.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import Fault, ModelError
from mb2fmu.model.flexible.flexible_body_equivalent import (
    convert_inertia_to_second_moment,
    factor_gram_matrix,
    find_particle_equivalent,
)
from mb2fmu.model.flexible.modal_data import FlexibleBodyModalData
from mb2fmu.model.flexible.sid_file import SidFile, SidTaylorExpansion, read_sid_file

Array = npt.NDArray[np.float64]

AGREEMENT = 1e-6
"""Share of its size by which a number of the file may miss what follows from others: they have 12 digits, or 6."""

PAIRS = ((0, 1), (1, 2), (0, 2))
"""Axes of the columns 4 to 6 of Oe."""

INERTIA_PAIRS = ((0, 1), (0, 2), (1, 2))
"""Axes of the rows 4 to 6 of a J that is written as a column."""


def read_sid_data(path: Path | str) -> tuple[FlexibleBodyModalData, dict[str, int]]:
    """Return the arrays of a flexible body, and the numbers of its nodes by their names in the file.

    Its first nodes are those of the file, without mass; behind them are masses that together have the file's inertia.

    Args:
        path: Of a file of standard input data.

    Raises:
        ModelError: With everything of the file that is not read.
    """
    file = read_sid_file(Path(path))
    _raise_faults(file, [*_shape_faults(file)])
    _raise_faults(file, [*_unread_terms(file), *_node_faults(file)])
    _raise_faults(file, [*_disagreements(file)])
    gram = _gram_matrix(file)
    m = file.modes
    size = np.sqrt(np.clip(np.diag(gram), 1e-300, None))
    lowest = float(np.min(np.linalg.eigvalsh(gram / np.outer(size, size))))
    if np.min(np.diag(gram)) < 0.0 or lowest < -AGREEMENT:
        what = "no body has these inertia terms together (mdCM, J, Ct, Cr, Me, Gr, Oe)"
        _raise_faults(file, [(what, "write the file afresh, with all terms from one mass matrix of translations")])
    masses, places, shapes = _lump(gram, m)
    X = np.array([node["origin"].constant()[:, 0] for node in file.nodes.values()]).reshape(-1, 3)
    phi = np.array([node["phi"].constant().T for node in file.nodes.values()]).reshape(-1, m, 3)
    psi = np.array([_rotations(node, m) for node in file.nodes.values()]).reshape(-1, m, 3)
    unknown = np.full((m, len(masses), 3), np.nan)
    data = FlexibleBodyModalData(
        nodes=np.vstack([X, places]),
        mass=np.concatenate([np.zeros(len(X)), masses]),
        modes=np.concatenate([phi.transpose(1, 0, 2), shapes], axis=1),
        stiffness=file.terms["Ke"].constant(),
        damping=file.terms["De"].constant() if "De" in file.terms else np.zeros((m, m)),
        rotations=np.concatenate([psi.transpose(1, 0, 2), unknown], axis=1),
    )
    return data, {name: number for number, name in enumerate(file.nodes)}


def _rotations(node: Mapping[str, SidTaylorExpansion], m: int) -> Array:
    """Return ψ of a node, shape (m, 3); NaN where the file has none."""
    return node["psi"].constant().T if "psi" in node else np.full((m, 3), np.nan)


def _lump(gram: Array, m: int) -> tuple[Array, Array, Array]:
    """Return masses (n,), positions (n, 3) and mode shapes (m, n, 3) with a Gram matrix; a rigid body is six masses."""
    parts = find_particle_equivalent(factor_gram_matrix(gram), m)
    values, vectors = np.linalg.eigh(convert_inertia_to_second_moment(parts.rigid_inertia))
    arms = np.sqrt(3.0 * np.clip(values, 0.0, None) / max(parts.rigid_mass, 1e-300))[:, None] * vectors.T
    masses = np.concatenate([np.full(6, parts.rigid_mass / 6.0), parts.masses])
    places = np.vstack([parts.rigid_centre + arms, parts.rigid_centre - arms, parts.positions])
    return masses, places, np.concatenate([np.zeros((m, 6, 3)), parts.modes], axis=1)


def _gram_matrix(file: SidFile) -> Array:
    """Return ∫ f fᵀ dm of f = (1, X, φ_1, …), shape (4 + 3 m, 4 + 3 m)."""
    terms, m = file.terms, file.modes
    gram = np.zeros((4 + 3 * m, 4 + 3 * m))
    gram[0, 0] = file.mass
    gram[0, 1:4] = terms["mdCM"].constant()[:, 0]
    gram[1:4, 1:4] = convert_inertia_to_second_moment(_inertia(terms["J"].constant()))
    gyroscopic = _gyroscopic_blocks(file)
    mass, rates, centrifugal = terms["Me"].constant(), terms["Cr"].linear(m), terms["Oe"].linear(m)
    for k in range(m):
        block = slice(4 + 3 * k, 7 + 3 * k)
        gram[0, block] = terms["Ct"].constant()[k]
        trace = np.trace(gyroscopic[k]) / 4.0
        gram[1:4, block] = trace * np.eye(3) - gyroscopic[k].T / 2.0
        for l in range(m):
            even = mass[k, l] * np.eye(3) + np.diag(centrifugal[l, k, :3])
            for column, (a, b) in enumerate(PAIRS, 3):
                even[a, b] = even[b, a] = centrifugal[l, k, column] / 2.0
            x, y, z = rates[l, k] / 2.0
            odd = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
            gram[block, 4 + 3 * l : 7 + 3 * l] = even + odd
    upper = np.triu(gram)
    return np.asarray(upper + np.triu(gram, 1).T)


def _inertia(matrix: Array) -> Array:
    """Return J, shape (3, 3), of a matrix or of a column xx, yy, zz, xy, xz, yz."""
    if matrix.shape == (3, 3):
        return matrix
    full = np.diag(matrix[:3, 0])
    for row, (a, b) in enumerate(INERTIA_PAIRS, 3):
        full[a, b] = full[b, a] = matrix[row, 0]
    return full


def _gyroscopic_blocks(file: SidFile) -> Array:
    """Return Gr_k, shape (m, 3, 3), of columns that count modes within axes, or axes within modes.

    Programs do either; J of first order, which is the symmetric part of Gr_k, shows which.
    """
    first, second = (_blocks(file.terms["Gr"].constant(), file.modes, within) for within in (True, False))
    changes = np.array([_inertia(part) for part in file.terms["J"].linear(file.modes)])
    gaps = [np.max(np.abs((G + G.transpose(0, 2, 1)) / 2.0 - changes)) for G in (first, second)]
    return first if gaps[0] <= gaps[1] else second


def _blocks(matrix: Array, m: int, modes_within_axes: bool) -> Array:
    """Return the blocks of modes, shape (m, rows, 3), of a matrix (rows, 3 m)."""
    if modes_within_axes:
        return matrix.reshape(-1, 3, m).transpose(2, 0, 1)
    return matrix.reshape(-1, m, 3).transpose(1, 0, 2)


def _shape_faults(file: SidFile) -> Iterator[tuple[str, str]]:
    """Yield arrays whose shapes do not fit the number of modes, and nodes without position or shapes."""
    m = file.modes
    expected: dict[str, tuple[tuple[int, int], ...]] = {
        "mdCM": ((3, 1),), "J": ((6, 1), (3, 3)), "Ct": ((m, 3),), "Cr": ((m, 3),), "Me": ((m, m),),
        "Gr": ((3, 3 * m),), "Ge": ((m, 3 * m),), "Oe": ((m, 6),), "ksigma": ((m, 1),), "Ke": ((m, m),),
        "De": ((m, m),),
    }  # fmt: skip
    at_nodes = {"origin": (3, 1), "phi": (3, m), "psi": (3, m), "AP": (3, 3)}
    for name, term in file.terms.items():
        shape = (term.settings["nrow"], term.settings["ncol"])
        if shape not in expected.get(name, (shape,)):
            yield f"{name} has the shape {shape} (line {term.line})", f"with {m} modes it is {expected[name][0]}"
    for name, node in file.nodes.items():
        if not {"origin", "phi"} <= node.keys():
            yield f"node {name} has no origin or no phi", "write both"
        for label, term in node.items():
            shape = (term.settings["nrow"], term.settings["ncol"])
            if shape != at_nodes.get(label, shape):
                yield f"{label} of node {name} has the shape {shape}", f"with {m} modes it is {at_nodes[label]}"


def _unread_terms(file: SidFile) -> Iterator[tuple[str, str]]:
    """Yield what stands in the file and has no place in a linear flexible body, or does not agree with the rest."""
    terms, m = file.terms, file.modes
    rates, centrifugal = terms["Cr"].linear(m), terms["Oe"].linear(m)
    mass = terms["Me"].constant()
    size = np.sqrt(np.outer(np.diag(np.abs(mass)), np.diag(np.abs(mass)))) + 1e-300
    traces = np.sum(centrifugal[:, :, :3], axis=2) + 2.0 * mass
    stiffened = [
        np.max(np.abs(terms["Ct"].linear(m))) > 0.0,
        np.max(np.abs(rates + rates.transpose(1, 0, 2)) / size[:, :, None]) > AGREEMENT,
        np.max(np.abs(traces) / size) > AGREEMENT,
    ]
    if any(stiffened):
        places = [name for name, found in zip(("Ct", "Cr", "Oe"), stiffened, strict=True) if found]
        remedy = "write the file without geometric stiffness; of beams FlexibleBody.beam has it (foreshortening)"
        yield f"it has geometric stiffness (first order of {', '.join(places)}), which is not read", remedy
    if "ksigma" in terms and np.max(np.abs(terms["ksigma"].constant())) > 0.0:
        yield "it has stresses of the reference state (ksigma), which are not read", "write it of the unloaded body"
    for name in ("Me", "Ke", "De"):
        if name in terms and np.max(np.abs(terms[name].linear(m)), initial=0.0) > 0.0:
            yield f"{name} changes with the deformation, which is not read", f"write {name} of order 0"


def _disagreements(file: SidFile) -> Iterator[tuple[str, str]]:
    """Yield terms that do not follow from others as they should."""
    terms, m, remedy = file.terms, file.modes, "write both from one mass matrix"
    gyroscopic, rates = _gyroscopic_blocks(file), terms["Cr"].linear(m)
    scale = float(np.max(np.abs(gyroscopic), initial=0.0)) + 1e-300
    changes = np.array([_inertia(part) for part in terms["J"].linear(m)])
    even = (gyroscopic + gyroscopic.transpose(0, 2, 1)) / 2.0
    if np.any(changes) and np.max(np.abs(even - changes)) > AGREEMENT * scale:
        yield "J of first order and Gr do not agree", remedy
    odd = (gyroscopic - gyroscopic.transpose(0, 2, 1)) / 2.0
    turning = np.stack([odd[:, 1, 2], odd[:, 2, 0], odd[:, 0, 1]], axis=1)
    if np.max(np.abs(turning - terms["Cr"].constant())) > AGREEMENT * scale:
        yield "Cr and Gr do not agree", remedy
    if "Ge" in terms:
        matrix = terms["Ge"].constant()
        gaps = [_blocks(matrix, m, within) - 2.0 * rates for within in (True, False)]
        size = float(np.max(np.abs(matrix), initial=0.0)) + 1e-300
        if min(np.max(np.abs(gap)) for gap in gaps) > AGREEMENT * size:
            yield "Ge and Cr of first order do not agree", remedy


def _node_faults(file: SidFile) -> Iterator[tuple[str, str]]:
    """Yield nodes in other frames, turned ones, and second-order shapes."""
    for name, node in file.nodes.items():
        if file.reference_frames.get(name, "body ref") != "body ref":
            yield (
                f"node {name} is given in the frame {file.reference_frames[name]}",
                "write it in the body's (body ref)",
            )
        turned = node["AP"].constant() if "AP" in node and node["AP"].entries else np.eye(3)
        if np.max(np.abs(turned - np.eye(3))) > AGREEMENT:
            what = f"the frame of node {name} is turned at rest (AP), which is not read"
            yield what, "write nodes with the body's axes"
        for label in ("phi", "psi"):
            if label in node and np.any(node[label].linear(file.modes)):
                yield f"{label} of node {name} has a first order, which is not read", f"write {label} of order 0"


def _raise_faults(file: SidFile, faults: list[tuple[str, str]]) -> None:
    """Raise all faults (what, remedy) together, if there are any."""
    if faults:
        raise ModelError("the SID file cannot be used:", [Fault(what, file.path.name, fix) for what, fix in faults])
