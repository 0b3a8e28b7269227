"""Read the elastic data of a link from a file: arrays of NumPy, or standard input data."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from mb2fmu.errors import Fault, ModelError
from mb2fmu.model.flexible.flexible_body import FlexibleBody

REQUIRED_ARRAYS = ("nodes", "mass", "modes", "stiffness")
"""Arrays that a ``.npz`` must have, by the names of ``FlexibleBody``'s arguments."""

_OPTIONAL_ARRAYS = ("damping", "rotations", "rotational_inertia", "second_order", "start")
FACES = "faces"
"""Array of the triangles that pictures show, numbers of nodes, shape (f, 3)."""


def read_flexible_body_file(name: str, path: Path, damping: Any) -> tuple[FlexibleBody, Any]:
    """Return the flexible body of a file, and its triangles for pictures; None where there are none.

    Args:
        name: Of the body.
        path: ``.npz``, else standard input data.
        damping: As ``FlexibleBody`` takes it, in place of the file's; None: the file's.

    Raises:
        ModelError: If the file cannot be read, and with every fault of its content.
    """
    if not path.is_file():
        raise ModelError(
            "elastic data cannot be read:",
            [Fault("there is no such file", path.name, "file is a name seen from the robot's folder")],
        )
    if path.suffix.lower() != ".npz":
        return FlexibleBody.from_sid(name, path, damping=damping), None
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as archive:
            arrays = {key: np.asarray(archive[key]) for key in archive.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        fault = Fault(f"it is no archive of arrays: {error}", path.name, "write it by numpy.savez")
        raise ModelError("elastic data cannot be read:", [fault]) from None
    known = (*REQUIRED_ARRAYS, *_OPTIONAL_ARRAYS, FACES)
    faults = [Fault(f"it has no array {key}", path.name, "add it") for key in REQUIRED_ARRAYS if key not in arrays]
    remedy = f"there are {', '.join(known)}"
    faults += [
        Fault(f"it has the array {key}, which means nothing", path.name, remedy) for key in arrays if key not in known
    ]
    if faults:
        raise ModelError("elastic data cannot be read:", faults)
    faces = arrays.pop(FACES, None)
    return FlexibleBody(name, **arrays | ({} if damping is None else {"damping": damping})), faces
