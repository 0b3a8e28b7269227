"""The folder of a study: its files are always whole, and an interrupted study continues from them.

``manifest.json`` (what was run, with hashes), ``<Name>.fmu``, ``parts/*.parquet`` (results as they came; put together
as ``results.parquet`` at the end), ``trajectories/*.parquet`` or ``trajectories.zarr`` if they are requested.
Everything is written beside its place and renamed. ``.study.lock`` is there while a process writes.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import io
import json
import os
import platform
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mb2fmu.analysis.studies import trajectory_files
from mb2fmu.analysis.studies.resolved_study_plan import ResolvedStudy
from mb2fmu.analysis.studies.study_case_runner import StudyCaseResults
from mb2fmu.analysis.studies.study_case_scheduling import StudyCaseRunTime
from mb2fmu.analysis.studies.trajectory_files import (
    format_trajectories_as_parquet,
    import_pyarrow,
    join_trajectories_as_zarr,
    make_arrow_array,
)
from mb2fmu.errors import AnalysisError, Fault
from mb2fmu.fmu.package.atomic_publishing import translate_write_errors, write_file_atomically
from mb2fmu.fmu.package.file_locks import FileLockHeldError, acquire_lock_without_waiting

Floats = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.intp]

MANIFEST_FILE, RESULTS_FILE, PARTS_FOLDER, SUMMARY_FILE = "manifest.json", "results.parquet", "parts", "summary.html"
INDICES_FILE, INPUTS_FILE = "indices.csv", "inputs.csv"
FLUSH_INTERVAL_S = 2.0
"""In s: a process that is killed loses no more."""
LOCK_FILE = ".study.lock"
_MANIFEST_VERSION = 1
_RECORDED_PACKAGES = ("mb2fmu", "fmpy", "numpy", "scipy", "pyarrow", "distributed")


class StudyResultStore:
    """The folder of one study.

    Args:
        folder: Made if it is not there.
        study: What is run.
        fmu: File name and content of the FMU.
        written: The plan as it was read.

    Attributes:
        done: Which cases have results, shape (n,).
        failed: How many of them failed.
        complete: All results are in ``results.parquet``.
        effort: What the cases of this run took, if any were run; reported in the manifest.
    """

    def __init__(self, folder: Path, study: ResolvedStudy, fmu: tuple[str, bytes], written: Mapping[str, Any]) -> None:
        self.folder, self.study, self._fmu = folder, study, fmu
        self.done = np.zeros(len(study.cases), dtype=bool)
        self.failed = 0
        self.complete = False
        self.effort: StudyCaseRunTime | None = None
        self._fresh = False
        self._waiting: list[tuple[Sequence[int], StudyCaseResults]] = []
        self._flushed = time.monotonic()
        self._number = 0
        self._manifest: dict[str, Any] = {
            "schema": _MANIFEST_VERSION,
            "state": "running",
            "model": study.model,
            "fmu": {"file": fmu[0], "sha256": hashlib.sha256(fmu[1]).hexdigest()},
            "plan": dict(written),
            "hashes": study.content_hashes(),
            "cases": len(study.cases),
            "columns": {"case": "1", **study.varied, **study.results, "message": ""},
            "python": sys.version.split()[0],
            "packages": {name: _installed_version(name) for name in _RECORDED_PACKAGES},
        }

    @contextmanager
    def lock_folder(self) -> Iterator[None]:
        """Make the folder, and lock it against other studies; the lock of an interrupted study is taken over.

        Raises:
            AnalysisError: If another study is being run in it.
        """
        there = self.folder.exists()
        with translate_write_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        holder = f"process {os.getpid()} on {platform.node() or 'this machine'}"
        try:
            with acquire_lock_without_waiting(self.folder / LOCK_FILE, holder):
                yield
        except FileLockHeldError as error:
            what = f"a study is being run in it, by {str(error) or 'another process'}"
            raise AnalysisError(
                "nothing was run:", [Fault(what, str(self.folder), "wait until it is done, or name another folder")]
            ) from error
        finally:
            if not there:
                with contextlib.suppress(OSError):  # it has something in it
                    self.folder.rmdir()

    def prepare_study_folder(self, *, resume: bool) -> None:
        """Make the folder, or examine its contents.

        Raises:
            AnalysisError: If there is a study already, or, to go on with, another one.
        """
        before = self._before()
        if before is not None and not resume:
            fault = Fault(
                "there is a study in it", str(self.folder), "--resume goes on with it, or name another folder"
            )
            raise AnalysisError("nothing was run:", [fault])
        if before is None:
            with translate_write_errors(self.folder):
                (self.folder / PARTS_FOLDER).mkdir(parents=True, exist_ok=True)
            write_file_atomically(self.folder / self._fmu[0], self._fmu[1])
            self._write_manifest()
            self._fresh = True
            return
        self._compare(before)
        self._collect(complete=before.get("state") == "complete")

    def add_results(self, cases: Sequence[int], answer: StudyCaseResults) -> None:
        """Add results; they are on disk after ``FLUSH_INTERVAL_S`` seconds at most, or a call of :meth:`flush`."""
        self._waiting.append((cases, answer))
        self.done[list(cases)] = True
        self.failed += sum(map(bool, answer.messages))
        if time.monotonic() - self._flushed > FLUSH_INTERVAL_S:
            self.flush()

    def flush(self) -> None:
        """Write the results since the last time."""
        self._flushed = time.monotonic()
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        cases = np.concatenate([np.asarray(each, dtype=np.int64) for each, _ in waiting])
        values = np.concatenate([answer.values for _, answer in waiting])
        messages = [message for _, answer in waiting for message in answer.messages]
        name = f"part-{self._number:06d}.parquet"
        self._number += 1
        if self.study.job.kept:
            with translate_write_errors(self.folder):
                (self.folder / trajectory_files.TRAJECTORIES_FOLDER).mkdir(exist_ok=True)
            paths = np.concatenate([answer.paths for _, answer in waiting])
            table = format_trajectories_as_parquet(self.study.job, cases, paths, messages)
            write_file_atomically(self.folder / trajectory_files.TRAJECTORIES_FOLDER / name, table)
        write_file_atomically(self.folder / PARTS_FOLDER / name, self._table(cases, values, messages))

    def remove_new_files(self) -> None:
        """Remove the files of a new study of which no case was run, for example without a scheduler."""
        if self._fresh and not self.done.any():
            for name in (MANIFEST_FILE, self._fmu[0]):
                (self.folder / name).unlink(missing_ok=True)
            shutil.rmtree(self.folder / PARTS_FOLDER, ignore_errors=True)

    def join_result_parts(self) -> None:
        """Join the parts, ordered by case; the same cases give the same bytes in any way of running."""
        self.flush()
        cases, values, messages = self.results()
        assert len(cases) == len(self.done)
        write_file_atomically(self.folder / RESULTS_FILE, self._table(cases, values, messages))
        self.complete = True
        zarr = bool(self.study.job.kept) and self.study.plan.trajectory_format == "zarr"
        if zarr:
            with translate_write_errors(self.folder):
                join_trajectories_as_zarr(self.study, self.folder)
        name = trajectory_files.TRAJECTORIES_ZARR if zarr else trajectory_files.TRAJECTORIES_FOLDER
        kept = [path for path in (self.folder / name).rglob("*") if path.is_file()]
        files = [self.folder / RESULTS_FILE, *sorted(kept)]
        self._manifest |= {
            "state": "complete",
            "failed": self.failed,
            "run": None if self.effort is None else self.effort.effort_record(),
            "files": {
                path.relative_to(self.folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
                for path in files
            },
        }
        self._write_manifest()
        for name in (PARTS_FOLDER, trajectory_files.TRAJECTORIES_FOLDER) if zarr else (PARTS_FOLDER,):
            shutil.rmtree(self.folder / name, ignore_errors=True)

    def results(self) -> tuple[IndexArray, Floats, list[str]]:
        """Return cases in order, their results, shape (n, n_results), and messages."""
        _, pq = import_pyarrow()
        names = list(self.study.results)
        whole = self.folder / RESULTS_FILE
        paths = [whole] if self.complete else sorted((self.folder / PARTS_FOLDER).glob("part-*.parquet"))
        found: dict[int, tuple[list[float], str]] = {}
        for path in paths:
            with pq.ParquetFile(path) as file:
                columns = file.read().to_pydict()
            rows = zip(columns["case"], zip(*(columns[name] for name in names), strict=True), columns["message"],
                       strict=True)  # fmt: skip
            found |= {case: (list(values), message) for case, values, message in rows}
        cases = sorted(found)
        values = np.array([found[case][0] for case in cases], dtype=np.float64).reshape(len(cases), len(names))
        return np.array(cases, dtype=np.intp), values, [found[case][1] for case in cases]

    def _before(self) -> dict[str, Any] | None:
        """Return the manifest of an existing study."""
        path = self.folder / MANIFEST_FILE
        if not path.exists():
            return None
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise AnalysisError("nothing was run:", [Fault(str(error), str(path), "name another folder")]) from error
        return found if isinstance(found, dict) else {}

    def _compare(self, before: Mapping[str, Any]) -> None:
        """Refuse to continue another study.

        Raises:
            AnalysisError: Naming everything that is another.
        """
        faults = []
        old, new = before.get("fmu", {}), self._manifest["fmu"]
        if old.get("sha256") != new["sha256"]:
            what = f"the FMU is another one: SHA-256 {new['sha256'][:16]}…, it was {str(old.get('sha256'))[:16]}…"
            faults.append(Fault(what, new["file"], "bring back the FMU or model that the study began with"))
        hashes = before.get("hashes", {})
        faults += [
            Fault(f"other {name} than those that the study began with", "plan", "bring the plan back as it was")
            for name, digest in self._manifest["hashes"].items()
            if hashes.get(name) != digest
        ]
        if faults:
            headline = f"the study in {self.folder} cannot go on (another folder begins a new one):"
            raise AnalysisError(headline, faults)

    def _collect(self, *, complete: bool) -> None:
        """Collect the cases that are done."""
        self.complete = complete
        with translate_write_errors(self.folder):
            if not complete:
                (self.folder / PARTS_FOLDER).mkdir(exist_ok=True)
            kept = {path.name for path in (self.folder / PARTS_FOLDER).glob("part-*.parquet")}
            for path in () if complete else (self.folder / trajectory_files.TRAJECTORIES_FOLDER).glob("part-*.parquet"):
                if path.name not in kept:  # their results were not written any more: they are run again
                    path.unlink()
        self._number = 1 + max((int(Path(name).stem.partition("-")[2]) for name in kept), default=-1)
        cases, _, messages = self.results()
        self.done[cases] = True
        self.failed = sum(map(bool, messages))

    def _table(self, cases: IndexArray, values: Floats, messages: Sequence[str]) -> bytes:
        """Return results as Parquet: case, varied quantities, results, message; units in the columns' metadata."""
        pa, pq = import_pyarrow()
        study = self.study
        units = {**study.varied, **study.results}
        fields = [pa.field("case", pa.int64())]
        fields += [pa.field(name, pa.float64(), metadata={"unit": unit}) for name, unit in units.items()]
        fields += [pa.field("message", pa.string())]
        numbers = np.concatenate([study.cases[cases], values], axis=1)
        sink = io.BytesIO()
        arrays = [make_arrow_array(column) for column in (cases.astype(np.int64), *numbers.T, messages)]
        pq.write_table(pa.Table.from_arrays(arrays, schema=pa.schema(fields)), sink)
        return sink.getvalue()

    def _write_manifest(self) -> None:
        """Write the manifest anew, by rename, so that it is never seen half written."""
        text = json.dumps(self._manifest, indent=2, ensure_ascii=False, default=str) + "\n"
        write_file_atomically(self.folder / MANIFEST_FILE, text.encode())


def _installed_version(name: str) -> str:
    """Return the version of an installed package; empty if it is not installed."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""
