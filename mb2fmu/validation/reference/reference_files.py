"""Stored references: ``trajectory.csv`` and ``provenance.json`` in a folder of the model's name.

Small on purpose: at most ``MAX_STORED_ROWS`` communication points, and only as long as the reference knows every
variable well.
Numbers are written so that they read back to the same bits. They contain no date, folder or machine.
"""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import Fault, ValidationError
from mb2fmu.validation.reference.reference_run import ReferenceRun
from mb2fmu.validation.reference.trajectory_records import Trajectory

Floats = npt.NDArray[np.float64]

MAX_STORED_ROWS = 200
KNOWN_UNCERTAINTY = 1e-7
_AGREEMENT_FACTOR = 3.0


def take_reference_excerpt(reference: ReferenceRun) -> Trajectory:
    """Return the stored part of a reference: equally spaced rows, as long as every variable is well known.

    That is to 1e-7 of its scale.
    The uncertainty of each variable is the largest within the excerpt, at every row.
    """
    trajectory = reference.trajectory
    is_known = np.all(trajectory.uncertainty <= KNOWN_UNCERTAINTY * reference.scales, axis=1)
    end = len(is_known) if is_known.all() else max(int(np.argmin(is_known)), 1)
    rows = slice(0, end, math.ceil((end - 1) / MAX_STORED_ROWS) or 1)
    uncertainty = np.broadcast_to(trajectory.uncertainty[:end][-1], trajectory.values[rows].shape).copy()
    balances = {balance.name: _round_to_two_digits(balance.worst) for balance in reference.balances}
    provenance = {**trajectory.provenance, "balances": balances}
    return Trajectory(trajectory.names, trajectory.time[rows], trajectory.values[rows], uncertainty, provenance)


def write_reference_trajectory_files(trajectory: Trajectory, folder: Path) -> None:
    """Write an :func:`take_reference_excerpt`; the folder is made if needed."""
    folder.mkdir(parents=True, exist_ok=True)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["time", *trajectory.names])
    for time, row in zip(trajectory.time.tolist(), trajectory.values.tolist(), strict=True):
        writer.writerow([repr(number) for number in (time, *row)])
    (folder / "trajectory.csv").write_text(text.getvalue(), encoding="utf-8")
    provenance = {
        **trajectory.provenance,
        "uncertainty": dict(zip(trajectory.names, trajectory.uncertainty[-1].tolist(), strict=True)),
    }
    (folder / "provenance.json").write_text(
        json.dumps(provenance, indent=2, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8"
    )


def read_reference_files(folder: Path) -> Trajectory:
    """Read files of :func:`write_reference_trajectory_files`.

    Raises:
        ValidationError: If a file is not there, or the two do not belong together.
    """
    try:
        rows = list(csv.reader((folder / "trajectory.csv").read_text(encoding="utf-8").splitlines()))
        provenance: dict[str, Any] = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))
        names = tuple(rows[0][1:])
        table = np.array([[float(number) for number in row] for row in rows[1:]]).reshape(len(rows) - 1, len(names) + 1)
        uncertainty = provenance.pop("uncertainty")
        uncertainties = np.array([float(uncertainty[name]) for name in names])
    except (OSError, ValueError, KeyError, IndexError) as error:
        remedy = "make it afresh with scripts/make_reference"
        raise ValidationError(
            "the stored reference cannot be read:", [Fault(str(error), folder.name, remedy)]
        ) from error
    values = table[:, 1:]
    return Trajectory(names, table[:, 0], values, np.broadcast_to(uncertainties, values.shape).copy(), provenance)


def explain_outdated_reference(stored: Trajectory, current: Trajectory) -> tuple[str, ...]:
    """Return why a stored reference is out of date; () if it is not.

    It is current if it has the same variables, times and provenance (versions, measured balances and whether it was
    compiled aside), and no
    value differs by more than three times the sum of both uncertainties.
    """
    reasons = []
    if stored.names != current.names:
        return (f"variables {', '.join(stored.names)} instead of {', '.join(current.names)}",)
    ignored_keys = {"versions", "balances", "evaluation"}
    for key in sorted((stored.provenance.keys() | current.provenance.keys()) - ignored_keys):
        stored_value, current_value = stored.provenance.get(key), current.provenance.get(key)
        if stored_value != current_value:
            reasons.append(f"{key}: {stored_value!r} instead of {current_value!r}")
    count = min(len(stored.time), len(current.time))
    if not np.allclose(stored.time[:count], current.time[:count], rtol=1e-12, atol=0) or 2 * count < len(current.time):
        return (*reasons, "other points in time")
    allowed = _AGREEMENT_FACTOR * (stored.uncertainty[:count] + current.uncertainty[:count])
    differences = np.abs(stored.values[:count] - current.values[:count])
    for column, name in enumerate(stored.names):
        if not np.all(differences[:, column] <= allowed[:, column]):
            row = int(np.argmax(differences[:, column] - allowed[:, column]))
            reasons.append(f"{name} differs by {differences[row, column]:.3g} at t = {stored.time[row]:.6g} s")
    return tuple(reasons)


def _round_to_two_digits(number: float) -> float:
    """Return two digits: further ones differ between machines by round-off."""
    return float(f"{number:.1e}")
