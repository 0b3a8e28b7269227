"""Files of CalculiX: the matrices of a model of solid elements, its nodes and its node sets, as arrays.

After ``*FREQUENCY, SOLVER=MATRIXSTORAGE`` CalculiX writes ``job.sti`` and ``job.mas``, the lower or upper half of
stiffness and mass matrix as lines ``row column value``, and ``job.dof``: for each row its ``node.direction``. Of the
input file ``job.inp`` only ``*NODE`` and ``*NSET`` are read: elements, materials and sections stand in the matrices.

Source: G. Dhondt, CalculiX CrunchiX User's Manual, version 2.20, sections *FREQUENCY, *NODE, *NSET.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import scipy.sparse

from mb2fmu.errors import Fault, ModelError

Array = npt.NDArray[np.float64]

REFUSED_KEYWORDS = {
    "*INCLUDE": "write the included lines into the file",
    "*TRANSFORM": "leave displacements in global axes",
    "*EQUATION": "leave couplings to the interfaces of the flexible body",
    "*MPC": "leave couplings to the interfaces of the flexible body",
    "*RIGID BODY": "leave rigid parts to the interfaces of the flexible body",
    "*BOUNDARY": "leave supports out: the joints of the mechanism support the body",
}
"""Keywords that change what rows of the matrices mean, and what to do instead."""

_MILLIMETRES = 1e-3


@dataclass(frozen=True, slots=True)
class CalculixModel:
    """Matrices and nodes.

    Attributes:
        K: Stiffness matrix, shape (3 n, 3 n), in the order x_1, y_1, z_1, x_2, …, N/m.
        M: Mass matrix in the same order, kg.
        nodes: Shape (n, 3), m, in ascending order of their numbers.
        node_sets: Name in capitals → positions in ``nodes``, from 0.
    """

    K: scipy.sparse.csr_array
    M: scipy.sparse.csr_array
    nodes: Array
    node_sets: dict[str, list[int]]


@dataclass(slots=True)
class _CalculixInputFile:
    """What is read of ``job.inp``."""

    places: dict[int, list[float]] = field(default_factory=dict)
    sets: dict[str, list[int]] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)


def read_calculix_files(job: Path | str, *, millimetres: bool = False) -> CalculixModel:
    """Return the model of ``job.inp``, ``job.sti``, ``job.mas`` and ``job.dof``.

    Args:
        job: Path without suffix.
        millimetres: True if the files are in mm, N and t; False: in m, N and kg.

    Raises:
        ModelError: If a file cannot be read, or with everything that is not read.
    """
    path = Path(job)
    given = _read_input_file(path.with_suffix(".inp"))
    rows = _read_rows(path.with_suffix(".dof"), given)
    numbers = sorted({node for node, _ in rows})
    index = {number: i for i, number in enumerate(numbers)}
    order = np.array([3 * index[node] + direction - 1 for node, direction in rows])
    scale = 1.0 / _MILLIMETRES if millimetres else 1.0
    K, M = (_read_matrix(path.with_suffix(suffix), scale, order) for suffix in (".sti", ".mas"))
    nodes = np.array([given.places[number] for number in numbers])
    sets = {name: [index[node] for node in members if node in index] for name, members in given.sets.items()}
    return CalculixModel(K, M, nodes / scale, sets)


def _read_lines(path: Path) -> list[str]:
    """Return the lines of a file."""
    try:
        return path.read_text(encoding="latin-1").splitlines()
    except OSError as error:
        remedy = "run CalculiX with a step *FREQUENCY, SOLVER=MATRIXSTORAGE, and give the path without suffix"
        fault = Fault(f"it cannot be read ({error.strerror})", str(path), remedy)
        raise ModelError("the files of CalculiX cannot be used:", [fault]) from error


def _read_input_file(path: Path) -> _CalculixInputFile:
    """Return nodes and node sets."""
    found = _CalculixInputFile()
    keyword, options = "", dict[str, str]()
    for number, line in enumerate(_read_lines(path), 1):
        text = line.strip().upper()
        if not text or text.startswith("**"):
            continue
        where = f"{path.name}:{number}"
        if text.startswith("*"):
            keyword, *words = (word.strip() for word in text.split(","))
            pairs = [word.partition("=") for word in words]
            options = {name.strip(): value.strip() for name, _, value in pairs}
            if keyword in REFUSED_KEYWORDS:
                found.faults.append(Fault(f"{keyword} is not read", where, REFUSED_KEYWORDS[keyword]))
            continue
        try:
            _take_data_line(found, keyword, options, [part.strip() for part in text.split(",") if part.strip()])
        except (ValueError, IndexError, KeyError):
            found.faults.append(Fault(f"{line.strip()!r} is no line of {keyword}", where, "correct the file"))
    if found.faults:
        raise ModelError("the files of CalculiX cannot be used:", found.faults)
    return found


def _take_data_line(found: _CalculixInputFile, keyword: str, options: dict[str, str], parts: Sequence[str]) -> None:
    """Read a line of ``*NODE`` or ``*NSET``; others are left."""
    if keyword == "*NODE":
        number, *place = parts
        found.places[int(number)] = [float(x) for x in [*place, "0", "0"][:3]]
        if "NSET" in options:
            found.sets.setdefault(options["NSET"], []).append(int(number))
    elif keyword == "*NSET":
        members = found.sets.setdefault(options["NSET"], [])
        if "GENERATE" in options:
            first, last, *step = (int(part) for part in parts)
            members += range(first, last + 1, *step)
        else:
            for part in parts:
                members += found.sets[part] if not part.isdecimal() else [int(part)]


def _read_rows(path: Path, given: _CalculixInputFile) -> list[tuple[int, int]]:
    """Return node and direction of each row of the matrices."""
    rows = []
    for line in _read_lines(path):
        node, _, direction = line.strip().partition(".")
        if node:
            rows.append((int(node), int(direction)))
    faults = [Fault(what, path.name, remedy) for what, remedy in _row_faults(rows, given)]
    if faults:
        raise ModelError("the files of CalculiX cannot be used:", faults)
    return rows


def _row_faults(rows: Sequence[tuple[int, int]], given: _CalculixInputFile) -> Iterator[tuple[str, str]]:
    """Yield what rows lack, and rows that are none of a solid element's."""
    numbers = {node for node, _ in rows}
    strange = sorted(numbers - given.places.keys())
    if strange:
        remedy = "use solid elements: CalculiX makes nodes of its own for shells, beams and C3D8I"
        yield f"node {strange[0]} has rows, but is not in the input file ({len(strange)} such nodes)", remedy
    directions: dict[int, set[int]] = {}
    for node, direction in rows:
        directions.setdefault(node, set()).add(direction)
    incomplete = sorted(node for node, found in directions.items() if found != {1, 2, 3})
    if incomplete:
        remedy = "leave supports and rotations out: each node has the directions 1, 2 and 3"
        found = ", ".join(map(str, sorted(directions[incomplete[0]])))
        yield f"node {incomplete[0]} has rows of direction {found} ({len(incomplete)} such nodes)", remedy


def _read_matrix(path: Path, scale: float, order: npt.NDArray[np.int64]) -> scipy.sparse.csr_array:
    """Return a symmetric matrix of which half is written, times a number, rows in the order of nodes."""
    lines = _read_lines(path)
    try:
        row, column, value = np.array([line.split() for line in lines if line.strip()], dtype=float).T
        rows, columns = order[row.astype(int) - 1], order[column.astype(int) - 1]
    except (ValueError, IndexError) as error:
        fault = Fault("its lines are not row, column and value", path.name, "write it by SOLVER=MATRIXSTORAGE")
        raise ModelError("the files of CalculiX cannot be used:", [fault]) from error
    half = scipy.sparse.coo_array((scale * value, (rows, columns)), shape=(len(order), len(order))).tocsr()
    return scipy.sparse.csr_array(half + half.T - scipy.sparse.diags_array(half.diagonal()))
