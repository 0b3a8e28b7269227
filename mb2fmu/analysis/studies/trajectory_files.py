"""Values at communication points as files: Parquet as cases come, Zarr of all of them at the end."""

from __future__ import annotations

import io
import shutil
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from mb2fmu.analysis.studies.resolved_study_plan import ResolvedStudy
from mb2fmu.analysis.studies.study_case_runner import StudyCaseRunSettings
from mb2fmu.errors import Fault, ToolError
from mb2fmu.fmu.package.atomic_publishing import make_unpublished_folder

Floats = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.intp]

TRAJECTORIES_FOLDER, TRAJECTORIES_ZARR = "trajectories", "trajectories.zarr"
_CHUNK_SIZE = 1 << 20
"""Numbers in a chunk of an array: 8 MB before they are compressed."""


def format_trajectories_as_parquet(
    job: StudyCaseRunSettings, cases: IndexArray, paths: Floats, messages: Sequence[str]
) -> bytes:
    """Return trajectories as Parquet: case, time, variables; those of failed cases are left out.

    Args:
        job: What all cases have in common.
        cases: Their numbers.
        paths: Shape (n, n_t, n_kept).
        messages: Why a case failed, or empty.
    """
    pa, pq = import_pyarrow()
    good = np.array([not message for message in messages])
    cases, paths = cases[good], paths[good]
    points = paths.shape[1]
    table = {"case": np.repeat(cases, points), "time": np.tile(job.step * np.arange(points), len(cases))}
    table |= {job.names[place]: paths[:, :, k].ravel() for k, place in enumerate(job.kept)}
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_arrays([make_arrow_array(column) for column in table.values()], list(table)), sink)
    return sink.getvalue()


def make_arrow_array(values: npt.NDArray[Any] | Sequence[str]) -> Any:
    """Return numbers or texts as an Arrow array, from buffers: ``pyarrow.array`` would import pandas first."""
    pa, _ = import_pyarrow()
    if isinstance(values, np.ndarray):
        content = pa.py_buffer(np.ascontiguousarray(values))
        return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, content])
    encoded = [text.encode() for text in values]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    return pa.StringArray.from_buffers(len(encoded), pa.py_buffer(ends), pa.py_buffer(b"".join(encoded)))


def join_trajectories_as_zarr(study: ResolvedStudy, folder: Path) -> None:
    """Join the tables of a study in one Zarr group, which appears whole.

    It has ``case``, ``time`` (s) and an array (n, n_t) per variable, with its unit; rows of failed cases are NaN.

    Args:
        study: What was run.
        folder: Of the study.
    """
    zarr, (_, pq) = import_zarr(), import_pyarrow()
    job, n, points = study.job, len(study.cases), len(study.job.held) + 1
    rows = min(max(_CHUNK_SIZE // points, 1), n)
    with make_unpublished_folder(folder, TRAJECTORIES_ZARR) as private:
        group = zarr.open_group(private / TRAJECTORIES_ZARR, mode="w")
        given = {"case": (np.arange(n), ""), "time": (job.step * np.arange(points), "s")}
        for name, (values, unit) in given.items():
            group.create_array(name, data=values, attributes={"unit": unit}, dimension_names=[name])
        names = [job.names[place] for place in job.kept]
        arrays = {
            name: group.create_array(
                name, shape=(n, points), chunks=(rows, points), dtype="f8", fill_value=np.nan,
                attributes={"unit": study.units.get(name, "1")}, dimension_names=["case", "time"],
            )
            for name in names
        }  # fmt: skip
        for path in sorted((folder / TRAJECTORIES_FOLDER).glob("part-*.parquet")):
            with pq.ParquetFile(path) as file:
                _fill_arrays(arrays, file.read(), points)
        if (
            folder / TRAJECTORIES_ZARR
        ).exists():  # of a run that was cut off before its manifest said that it is complete
            shutil.rmtree(folder / TRAJECTORIES_ZARR)
        (private / TRAJECTORIES_ZARR).rename(folder / TRAJECTORIES_ZARR)


def _fill_arrays(arrays: dict[str, Any], table: Any, points: int) -> None:
    """Write the rows of a table of trajectories, neighbours together."""
    cases = table["case"].to_numpy()[::points]
    order = np.argsort(cases, kind="stable")
    runs = np.split(order, np.flatnonzero(np.diff(cases[order]) != 1) + 1) if len(cases) else []
    for name, array in arrays.items():
        values = table[name].to_numpy().reshape(-1, points)
        for run in runs:
            first = int(cases[run[0]])
            array[first : first + len(run)] = values[run]


def import_pyarrow() -> tuple[ModuleType, ModuleType]:
    """Return Arrow and its Parquet.

    Raises:
        ToolError: If it is not installed.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        fault = Fault("pyarrow is not installed", remedy="pip install 'mb2fmu[study]'")
        raise ToolError("the results cannot be written:", [fault]) from error
    return pa, pq


def import_zarr() -> Any:
    """Return the package zarr, or raise with how to install it.

    Raises:
        ToolError: If it is not installed.
    """
    try:
        import zarr
    except ImportError as error:
        remedy = "pip install 'mb2fmu[zarr]', or write trajectory_format = \"parquet\""
        fault = Fault("zarr is not installed", remedy=remedy)
        raise ToolError("the trajectories cannot be written:", [fault]) from error
    return zarr
