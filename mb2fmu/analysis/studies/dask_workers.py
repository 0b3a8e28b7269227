"""Workers of dask.distributed: the FMU is sent to each of them once, then chunks of cases."""

from __future__ import annotations

import hashlib
import logging
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask
import numpy as np
import numpy.typing as npt
from dask.system import CPU_COUNT
from distributed import Client, LocalCluster, WorkerPlugin, get_worker
from distributed.client import Future
from distributed.comm.core import CommClosedError
from distributed.scheduler import KilledWorker
from distributed.utils import get_mp_context

from mb2fmu.analysis.studies.study_case_runner import StudyCaseResults, StudyCaseRunner, StudyCaseRunSettings
from mb2fmu.analysis.studies.study_case_scheduling import CaseNumbers, FinishedChunks
from mb2fmu.errors import Fault, ToolError
from mb2fmu.fmu.package.fmu_archive import unpack_archive_bytes, write_files_for_run

Floats = npt.NDArray[np.float64]

CONNECT_TIMEOUT_S = 20.0
"""In s: within that a scheduler answers."""
_WORKER_TIMEOUT_S, _LOST_WORKER_TIMEOUT_S = 30.0, 86_400.0
_SHIP_ATTEMPTS = 5
_START_METHOD = "forkserver" if sys.platform == "linux" else "spawn"
"""Of local workers: forks of a process that has imported what they run begin in a fifth of the time. Elsewhere
libraries do not promise to work in a forked process."""


class _DaskFmuWorkerPlugin(WorkerPlugin):  # type: ignore[misc]
    """The FMU and the data of all cases on a worker: sent once, also to workers that come later.

    Args:
        key: SHA-256 of both.
        content: The archive.
        job: What all cases have in common.
        own: The worker was started by this program, and ends with it.
    """

    idempotent = True  # called again, because a worker ended meanwhile: those that have it keep it

    def __init__(self, key: str, content: bytes, job: StudyCaseRunSettings, *, own: bool) -> None:
        self.key, self.content, self.job, self.own = key, content, job, own
        self.runner: StudyCaseRunner | None = None

    def setup(self, worker: Any) -> None:
        """Unpack the FMU in the worker's own folder, which the worker removes."""
        folder = Path(worker.local_directory) / f"mb2fmu-{self.key[:16]}"
        write_files_for_run(unpack_archive_bytes(self.content, "unit"), folder)
        if self.own and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal signals all; who started this one ends it
        self.runner = StudyCaseRunner(self.job, folder)
        self.runner.start_call_watchdog()


def _run_chunk_of_cases(key: str, cases: Floats) -> StudyCaseResults:
    """Run cases with this worker's instance, which may still be on its way to a new worker."""
    limit = time.monotonic() + _WORKER_TIMEOUT_S
    while (runner := getattr(get_worker().plugins.get(key), "runner", None)) is None:
        if time.monotonic() > limit:
            raise RuntimeError("the FMU did not reach this worker")
        time.sleep(0.02)
    assert isinstance(runner, StudyCaseRunner)
    return runner.run(cases)


class DaskStudyCaseEngine:
    """An ``StudyWorkerPool``.

    Args:
        client: Connected to a scheduler.
        content: The FMU's archive.
        job: What all cases have in common.
        cases: All of them, a row each.
        own: The workers were started by this program.
    """

    def __init__(
        self, client: Client, content: bytes, job: StudyCaseRunSettings, cases: Floats, *, own: bool = False
    ) -> None:
        self._client, self._cases, self._own = client, cases, own
        digest = hashlib.sha256(content + repr(job).encode() + job.held.tobytes()).hexdigest()
        self._key = f"mb2fmu-{digest}"
        self._handed: dict[Future, CaseNumbers] = {}
        self._ship(_DaskFmuWorkerPlugin(digest, content, job, own=own))

    def _ship(self, shipment: _DaskFmuWorkerPlugin) -> None:
        """Send the FMU to all workers; those that end meanwhile are replaced, and get it when they begin.

        Raises:
            ToolError: If workers end again and again, or the scheduler is gone.
        """
        for attempt in range(_SHIP_ATTEMPTS):
            try:
                self._client.register_plugin(shipment, name=self._key)
            except (OSError, TimeoutError, CommClosedError) as error:
                if attempt == _SHIP_ATTEMPTS - 1 or self._client.status != "running":
                    raise _lost_scheduler_error(error) from error
                time.sleep(0.2)
            else:
                return

    def worker_count(self) -> int:
        """Return the present number of workers."""
        return len(self._client.nthreads())

    def submit(self, cases: CaseNumbers) -> None:
        """Hand out a chunk."""
        future = self._client.submit(_run_chunk_of_cases, self._key, self._cases[list(cases)], pure=False)
        self._handed[future] = cases

    def wait(self) -> FinishedChunks:
        """Return finished chunks, at least one.

        Raises:
            ToolError: If the scheduler is gone, or what runs on workers is not this program.
        """
        from distributed import wait

        while True:
            try:
                with self._client.as_current():
                    done = wait(list(self._handed), return_when="FIRST_COMPLETED").done
            except (OSError, TimeoutError, CommClosedError, CancelledError) as error:
                raise _lost_scheduler_error(error) from error
            # A worker may end with answers that nobody has fetched: the scheduler has them made again.
            there = [future for future in done if future.status != "lost"]
            if there:
                return [(self._handed.pop(future), _chunk_results(future)) for future in there]
            time.sleep(0.05)

    def close(self) -> None:
        """Cancel chunks and remove the FMU from foreign workers; own workers end with the study.

        To ask own workers would wait half a minute for each that an interruption has ended.
        """
        for future in self._handed:
            future.cancel(force=True)
        self._handed.clear()
        if not self._own and self._client.status == "running":
            self._client.unregister_worker_plugin(self._key)


def _chunk_results(future: Future) -> StudyCaseResults | None:
    """Return the results of a chunk; None if its process ended."""
    if future.status == "finished":
        found = future.result()
        assert isinstance(found, StudyCaseResults)
        return found
    if future.status == "cancelled":
        raise _lost_scheduler_error(ConnectionError("it lost a chunk"))
    error = future.exception()
    if isinstance(error, KilledWorker):
        return None
    remedy = "workers need the same Python packages: pip install 'mb2fmu[study]' there, in the same version"
    raise ToolError("a worker could not run a chunk:", [Fault(f"{type(error).__name__}: {error}", remedy=remedy)])


def _lost_scheduler_error(error: Exception) -> ToolError:
    """Return the error of a scheduler that cannot be reached any more."""
    remedy = "restart the scheduler, then continue with --resume: finished cases are kept"
    return ToolError(
        "the scheduler cannot be reached any more:", [Fault(str(error) or type(error).__name__, remedy=remedy)]
    )


@contextmanager
def connect_dask_workers(scheduler: str, workers: int | None, folder: Path, cases: int) -> Iterator[Client]:
    """Return a client of workers.

    Args:
        scheduler: ``local``: processes of this machine, which end with the study; else the address of a scheduler.
        workers: Of ``local``: how many; None: one per processor, but not more than cases.
        folder: For what local workers write.
        cases: How many are to be run.

    Raises:
        ToolError: If no scheduler answers.
    """
    if scheduler != "local":
        try:
            client = Client(scheduler, timeout=CONNECT_TIMEOUT_S, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            what = f"no scheduler answers at {scheduler}"
            fault = Fault(what, "--scheduler", "start one (dask scheduler), or write --scheduler local")
            raise ToolError("the study cannot be run:", [fault]) from error
        with client:
            yield client
        return
    # A chunk whose process ended comes back at once: what to do with it is decided in ``scheduling``. Its worker begins
    # anew, however long that takes: after 15 s the cluster would give it up for good, and the study would wait forever.
    settings = {"distributed.scheduler.allowed-failures": 0, "distributed.worker.daemon": True,
                "distributed.comm.timeouts.connect": _WORKER_TIMEOUT_S,
                "distributed.worker.multiprocessing-method": _START_METHOD,
                "distributed.deploy.lost-worker-timeout": _LOST_WORKER_TIMEOUT_S}  # fmt: skip
    with dask.config.set(settings):
        if _START_METHOD == "forkserver":
            get_mp_context().set_forkserver_preload([__name__])
        cluster = LocalCluster(
            n_workers=workers or min(CPU_COUNT, cases), threads_per_worker=1, processes=True, memory_limit=0,
            dashboard_address="127.0.0.1:0", local_directory=str(folder), silence_logs=logging.CRITICAL,
        )  # fmt: skip
        with cluster, Client(cluster, set_as_default=False) as client:
            yield client
