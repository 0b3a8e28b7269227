"""Files of standard input data (SID): what finite element pre-processors write of a flexible body, as arrays.

A file has blocks ``name … end name``. A block of an array has the lines ``order``, ``nrow``, ``ncol``, ``nq``, ``nqn``
and ``structure``, then ``m0( row, column)`` and ``m1( row, mode, column)`` for what is not zero: the array is
m0 + Σ m1_k q_k. Of a symmetric one (structure 2) half of the entries will do.

Source: O. Wallrapp, Standardization of Flexible Body Modeling in Multibody System Codes, Mechanics of Structures and
Machines 22 (1994) 283-304.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import Fault, ModelError

Array = npt.NDArray[np.float64]

GLOBAL_TERMS = ("mdCM", "J", "Ct", "Cr", "Me", "Gr", "Ge", "Oe", "ksigma", "Ke", "De")
"""Arrays of the body."""

NODE_TERMS = ("origin", "phi", "psi", "AP", "sigma")
"""Arrays of a node."""

SYMMETRIC, UNIT = 2, 4
"""Structures whose entries are not all written; of the others what is not written is zero."""

_ENTRY = re.compile(r"(m0|m1)\s*\(([\d\s,]+)\)\s*=\s*(\S+)$")
_SETTING = re.compile(r"([A-Za-z]\w*)\s*(?:\(\s*\d+\s*\))?\s*=\s*(.*)$")


@dataclass(slots=True)
class SidTaylorExpansion:
    """One array m0 + Σ m1_k q_k.

    Attributes:
        line: Where it begins.
        settings: ``order``, ``nrow``, ``ncol``, ``nq``, ``nqn``, ``structure``.
        entries: (``m0`` or ``m1``, indices from 1) → number.
    """

    line: int
    settings: dict[str, int] = field(default_factory=dict)
    entries: dict[tuple[str, tuple[int, ...]], float] = field(default_factory=dict)

    def constant(self) -> Array:
        """Return m0, shape (nrow, ncol)."""
        rows, columns = self.settings["nrow"], self.settings["ncol"]
        matrix = np.eye(rows, columns) if self.settings.get("structure") == UNIT else np.zeros((rows, columns))
        for (kind, index), value in self.entries.items():
            if kind == "m0":
                matrix[index[0] - 1, index[1] - 1] = value
        if self.settings.get("structure") == SYMMETRIC and rows == columns:
            matrix = np.where(matrix != 0.0, matrix, matrix.T)
        return matrix

    def linear(self, modes: int) -> Array:
        """Return m1, shape (modes, nrow, ncol)."""
        found = np.zeros((modes, self.settings["nrow"], self.settings["ncol"]))
        for (kind, index), value in self.entries.items():
            if kind == "m1":
                found[index[1] - 1, index[0] - 1, index[2] - 1] = value
        return found


@dataclass(frozen=True, slots=True)
class SidFile:
    """What stands in a file.

    Attributes:
        path: Of the file.
        mass: kg.
        modes: Number of modes.
        terms: Arrays of the body by name.
        nodes: Name of a node → its arrays by name.
        reference_frames: Of the nodes; ``body ref`` where it is the body's own.
    """

    path: Path
    mass: float
    modes: int
    terms: Mapping[str, SidTaylorExpansion]
    nodes: Mapping[str, Mapping[str, SidTaylorExpansion]]
    reference_frames: Mapping[str, str]


def read_sid_file(path: Path) -> SidFile:
    """Return the arrays of a file, unchecked but for their shapes.

    Raises:
        ModelError: If it cannot be read, or with every line that is none of the standard.
    """
    try:
        text = path.read_text(encoding="latin-1")
    except OSError as error:
        fault = Fault(f"it cannot be read ({error.strerror})", str(path), "correct the path")
        raise ModelError("the SID file cannot be used:", [fault]) from error
    reader = _SidLineReader(path)
    for number, line in enumerate(text.splitlines(), 1):
        reader.take(number, line.strip())
    return reader.finish()


class _SidLineReader:
    """Takes the lines of a file one after the other."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.faults: list[Fault] = []
        self.numbers: dict[str, float] = {}
        self.terms: dict[str, SidTaylorExpansion] = {}
        self.nodes: dict[str, dict[str, SidTaylorExpansion]] = {}
        self.frames: dict[str, str] = {}
        self._node: str | None = None
        self._term: SidTaylorExpansion | None = None

    def take(self, number: int, line: str) -> None:
        """Read a line; those before ``new modal`` are a title."""
        if entry := _ENTRY.match(line):
            self._take_entry(number, entry)
        elif line in GLOBAL_TERMS or line in NODE_TERMS:
            self._term = SidTaylorExpansion(number)
            home = self.terms if self._node is None else self.nodes[self._node]
            home[line] = self._term
        elif line.startswith("end "):
            self._term = None
            self._node = None if line == "end node" else self._node
        elif setting := _SETTING.match(line):
            self._take_setting(number, setting[1], setting[2].strip())
        elif line.startswith("new node"):
            self._node = line.partition("=")[2].strip()
            self.nodes[self._node] = {}

    def _take_entry(self, number: int, entry: re.Match[str]) -> None:
        """Read a line ``m0( 1, 2) = 3.4D+00`` or ``m1( 1, 2, 3) = …``."""
        index = tuple(int(part) for part in entry[2].split(","))
        if self._term is None:
            self._fail(number, "an entry stands outside an array", "correct the file")
            return
        sizes = [self._term.settings.get(name, 0) for name in ("nrow", "ncol", "nq")]
        most = (sizes[0], sizes[1]) if entry[1] == "m0" else (sizes[0], sizes[2], sizes[1])
        if len(index) != len(most) or any(not 1 <= i <= size for i, size in zip(index, most, strict=True)):
            order = "(row, column)" if entry[1] == "m0" else "(row, mode, column)"
            self._fail(number, f"{entry[0]} does not fit {most}", f"indices are {order}, within nrow, nq and ncol")
            return
        self._term.entries[entry[1], index] = self._read_number(number, entry[3])

    def _take_setting(self, number: int, name: str, value: str) -> None:
        """Read a line ``nrow = 3``, ``rframe = body ref``; the names of modes are left."""
        if self._term is not None and re.fullmatch(r"\d+", value):
            self._term.settings[name] = int(value)
        elif name == "rframe" and self._node is not None:
            self.frames[self._node] = value
        elif name in {"mass", "nelastq"}:
            self.numbers[name] = self._read_number(number, value)

    def _read_number(self, number: int, text: str) -> float:
        """Return a number as FORTRAN writes it; 0 with a fault, if it is none."""
        try:
            return float(text.replace("D", "E").replace("d", "e"))
        except ValueError:
            self._fail(number, f"{text} is no number", "correct the file")
            return 0.0

    def _fail(self, number: int, what: str, remedy: str) -> None:
        """Note a fault of a line."""
        self.faults.append(Fault(what, f"{self.path.name}:{number}", remedy))

    def finish(self) -> SidFile:
        """Return what was read.

        Raises:
            ModelError: With every fault.
        """
        missing = [name for name in ("mass", "nelastq") if name not in self.numbers]
        missing += [name for name in ("mdCM", "J", "Ct", "Cr", "Me", "Gr", "Oe", "Ke") if name not in self.terms]
        if missing:
            what = f"it lacks {', '.join(missing)}"
            self.faults.append(Fault(what, self.path.name, "write all of the standard input data of a modal body"))
        every = [*self.terms.items(), *(pair for node in self.nodes.values() for pair in node.items())]
        for name, term in every:
            if not {"nrow", "ncol"} <= term.settings.keys():
                self._fail(term.line, f"{name} has no nrow and ncol", "correct the file")
        if self.faults:
            raise ModelError("the SID file cannot be used:", self.faults)
        modes = int(self.numbers["nelastq"])
        return SidFile(self.path, self.numbers["mass"], modes, self.terms, self.nodes, self.frames)
