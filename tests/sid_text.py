"""A flexible body as a file of standard input data: the terms by their definitions, node by node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from mb2fmu import FlexibleBody


def sid_text(body: FlexibleBody, nodes: Mapping[str, int], *, axes_within_modes: bool = False) -> str:
    """The text of a file, terms summed over the nodes' masses.

    Args:
        body: Of lumped masses.
        nodes: Name → number of the nodes that are written.
        axes_within_modes: The columns of Gr and Ge are sorted by modes; by axes otherwise.
    """
    data, m = body.data, body.data.mode_count
    masses, X, phi = data.mass.diagonal(), data.nodes, data.modes

    def add(term: Callable[..., np.ndarray]) -> np.ndarray:
        return sum(mass * term(p) for p, mass in enumerate(masses))

    unit = np.eye(3)
    spins = [np.outer(unit[i], unit[i]) - unit for i in range(3)]  # of ω̃ ω̃ = ω ωᵀ - ω² 1
    spins += [np.outer(unit[i], unit[j]) + np.outer(unit[j], unit[i]) for i, j in ((0, 1), (1, 2), (0, 2))]
    J0 = -add(lambda p: tilde(X[p]) @ tilde(X[p]))
    J1 = [-add(lambda p, k=k: tilde(X[p]) @ tilde(phi[k, p]) + tilde(phi[k, p]) @ tilde(X[p])) for k in range(m)]
    Ct = np.array([add(lambda p, k=k: phi[k, p]) for k in range(m)])
    Cr0 = np.array([add(lambda p, k=k: np.cross(X[p], phi[k, p])) for k in range(m)])
    Cr1 = [np.array([add(lambda p, k=k, l=l: np.cross(phi[l, p], phi[k, p])) for k in range(m)]) for l in range(m)]
    Me = np.array([[add(lambda p, k=k, l=l: phi[k, p] @ phi[l, p]) for l in range(m)] for k in range(m)])
    Gr = np.array([-2 * add(lambda p, k=k: tilde(X[p]) @ tilde(phi[k, p])) for k in range(m)])  # (m, 3, 3)
    Ge = np.array([[-2 * add(lambda p, k=k, l=l: phi[k, p] @ tilde(phi[l, p])) for k in range(m)] for l in range(m)])
    Oe0 = np.array([[add(lambda p, k=k, s=s: phi[k, p] @ s @ X[p]) for s in spins] for k in range(m)])
    Oe1 = [
        np.array([[add(lambda p, k=k, l=l, s=s: phi[k, p] @ s @ phi[l, p]) for s in spins] for k in range(m)])
        for l in range(m)
    ]
    axes = (1, 0, 2) if axes_within_modes else (1, 2, 0)
    lines = ["    3  2 : a body written by hand", " part", "  new modal = test", "   refmod"]
    lines += [f"    mass = {fortran(np.sum(masses))}", f"    nelastq = {m}"]
    lines += [f"    ielastq ( {k + 1:3d}) = Eigen Mode {k + 1}" for k in range(m)] + ["   end refmod", "   frame"]
    for name, node in nodes.items():
        lines += [f"    new node = {name}", "     rframe = body ref"]
        lines += term("origin", X[node][:, None], [phi[k, node][:, None] for k in range(m)])
        lines += term("phi", phi[:, node].T)
        if data.rotations is not None:
            lines += term("psi", data.rotations[:, node].T)
            lines += term("AP", unit, [tilde(data.rotations[k, node]) for k in range(m)])
        lines += ["    end node"]
    lines += ["   end frame"]
    lines += term("mdCM", add(lambda p: X[p])[:, None], [Ct[k][:, None] for k in range(m)])
    lines += term("J", column(J0), [column(J) for J in J1])
    lines += term("Ct", Ct) + term("Cr", Cr0, Cr1) + term("Me", Me, structure=2)
    lines += term("Gr", flat(Gr, axes)) + term("Ge", flat(Ge, axes)) + term("Oe", Oe0, Oe1)
    lines += term("ksigma", np.zeros((m, 1)), structure=0)
    lines += term("Ke", data.stiffness, structure=2) + term("De", data.damping, structure=2)
    return "\n".join([*lines, "  end modal", " end part", ""])


def tilde(v: np.ndarray) -> np.ndarray:
    """The matrix of v ×."""
    return np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])


def column(J: np.ndarray) -> np.ndarray:
    """xx, yy, zz, xy, xz, yz as a column."""
    return np.array([J[0, 0], J[1, 1], J[2, 2], J[0, 1], J[0, 2], J[1, 2]])[:, None]


def flat(blocks: np.ndarray, axes: tuple[int, int, int]) -> np.ndarray:
    """Blocks (m, rows, 3) side by side."""
    return blocks.transpose(axes).reshape(blocks.shape[1], -1)


def fortran(value: float) -> str:
    """A number as FORTRAN writes it, with 17 digits."""
    return f"{value:.16e}".replace("e", "D")


def term(name: str, constant: np.ndarray, linear: Iterable[np.ndarray] = (), *, structure: int = 3) -> list[str]:
    """Lines of an array; of a symmetric one the lower half."""
    linear = list(linear)
    rows, columns = constant.shape
    sizes = {"order": int(bool(linear)), "nrow": rows, "ncol": columns, "nq": max(len(linear), 1), "nqn": 0}
    lines = [f"     {name}", *(f"      {key} = {value}" for key, value in sizes.items())]
    lines += [f"      structure = {structure}"]
    for i, j in np.argwhere(constant):
        if structure != 2 or i >= j:
            lines.append(f"      m0({i + 1:2d},{j + 1:2d}) = {fortran(constant[i, j])}")
    for k, matrix in enumerate(linear):
        lines += [
            f"      m1({i + 1:2d},{k + 1:2d},{j + 1:2d}) = {fortran(matrix[i, j])}" for i, j in np.argwhere(matrix)
        ]
    return [*lines, f"     end {name}"]
