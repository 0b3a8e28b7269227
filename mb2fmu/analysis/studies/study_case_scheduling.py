"""Hand out cases in chunks of about a second, and lose none of them."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from mb2fmu.analysis.studies.study_case_runner import StudyCaseResults, StudyCaseRunner, StudyCaseRunSettings

Floats = npt.NDArray[np.float64]
CaseNumbers = tuple[int, ...]
FinishedChunks = list[tuple[CaseNumbers, StudyCaseResults | None]]
"""Which cases, and their answer; None: the process that ran them ended."""

CHUNK_DURATION_S = 1.0
"""In s: long beside what handing out costs, short for who waits."""
_MIN_DURATION_FOR_OVERHEAD_S = 5.0
"""In s: what cases take until overhead is reported as a part of it."""
_MAX_CHUNK_GROWTH = 8
_MAX_CHUNK_CASES = 20_000
CHUNKS_PER_WORKER = 2
"""Chunks per worker that are given out: one that runs, and one that waits."""


class StudyWorkerPool(Protocol):
    """Protocol: runs chunks."""

    def worker_count(self) -> int:
        """Return the present number of workers."""
        ...

    def submit(self, cases: CaseNumbers) -> None:
        """Hand out a chunk."""
        ...

    def wait(self) -> FinishedChunks:
        """Return finished chunks, at least one."""
        ...


class InProcessStudyCaseEngine:
    """Runs everything in this process: for trials, and to measure the cost of workers.

    Args:
        job: What all cases have in common.
        unzipped: Folder of the FMU.
        cases: All of them, a row each.
    """

    def __init__(self, job: StudyCaseRunSettings, unzipped: Path, cases: Floats) -> None:
        self._runner, self._cases = StudyCaseRunner(job, unzipped), cases
        self._handed: deque[CaseNumbers] = deque()

    def worker_count(self) -> int:
        """Return one worker: this process."""
        return 1

    def submit(self, cases: CaseNumbers) -> None:
        """Keep a chunk until it is requested."""
        self._handed.append(cases)

    def wait(self) -> FinishedChunks:
        """Run the next chunk."""
        chunk = self._handed.popleft()
        return [(chunk, self._runner.run(self._cases[list(chunk)]))]


@dataclass(frozen=True, slots=True)
class StudyCaseRunTime:
    """Time spent on cases.

    Attributes:
        elapsed: From the first chunk that was given out to the last answer, s.
        cases: In the cases themselves, all workers together, s.
        workers: The most that there were.
    """

    elapsed: float
    cases: float
    workers: int

    @property
    def overhead(self) -> float:
        """The time of workers outside of cases, as a fraction of the cases' time: transfer, writing, waiting."""
        return self.workers * self.elapsed / self.cases - 1.0 if self.cases > 0.0 else 0.0

    def format_effort(self) -> str:
        """Return the effort in words, for people."""
        beside = self.workers * self.elapsed - self.cases
        # A share of next to nothing says nothing.
        part = f" ({self.overhead:.1%})" if self.cases >= _MIN_DURATION_FOR_OVERHEAD_S else ""
        return (
            f"{self.elapsed:.3g} s with {self.workers} at a time: {self.cases:.3g} s in the cases, {beside:.3g} s{part}"
            " beside them (loading the FMU, handing out, writing, waiting)"
        )

    def effort_record(self) -> dict[str, float]:
        """Return the effort as JSON values, for the manifest."""
        return {
            "workers": self.workers,
            "elapsed [s]": round(self.elapsed, 3),
            "cases [s]": round(self.cases, 3),
            "overhead": round(self.overhead, 4),
        }


def run_study_cases(
    engine: StudyWorkerPool, left: Sequence[int], take: Callable[[CaseNumbers, StudyCaseResults], None], results: int
) -> tuple[float, int]:
    """Run cases until each has an answer.

    A chunk whose process ended is run again with nothing beside it, in pieces, and the cases of a piece that ends it
    again one by one: so a case that kills its process is found, and its message says so.

    Args:
        engine: Runs chunks.
        left: Numbers of the cases.
        take: Is given answers as they come.
        results: Numbers per case.

    Returns:
        The time that all took in their processes, s, and the most workers that there were.
    """
    spent, most = 0.0, 1
    waiting, suspects = deque(left), deque[CaseNumbers]()
    per_case, size, handed = 0.0, 1, 0
    while waiting or handed:
        width = max(engine.worker_count(), 1)
        most = max(most, width)
        while waiting and handed < CHUNKS_PER_WORKER * width:
            n = max(min(size, -(-len(waiting) // width)), 1)
            engine.submit(tuple(waiting.popleft() for _ in range(min(n, len(waiting)))))
            handed += 1
        for cases, answer in engine.wait():
            handed -= 1
            if answer is None:
                suspects.extend(_split_chunk(cases))
                continue
            take(cases, answer)
            spent += answer.seconds
            now = max(answer.seconds / len(cases), 1e-7)
            per_case = now if per_case == 0.0 else 0.5 * (per_case + now)
            size = max(min(int(CHUNK_DURATION_S / per_case), _MAX_CHUNK_GROWTH * size, _MAX_CHUNK_CASES), 1)
    spent += _run_suspect_chunks(engine, suspects, take, results)
    return spent, most


def _run_suspect_chunks(
    engine: StudyWorkerPool,
    suspects: deque[CaseNumbers],
    take: Callable[[CaseNumbers, StudyCaseResults], None],
    results: int,
) -> float:
    """Run pieces of chunks whose process ended, one at a time; return the time of their cases, s."""
    ended: set[int] = set()
    spent = 0.0
    while suspects:
        cases = suspects.popleft()
        engine.submit(cases)
        ((_, answer),) = engine.wait()
        if answer is not None:
            take(cases, answer)
            spent += answer.seconds
        elif len(cases) > 1:
            suspects.extendleft((case,) for case in reversed(cases))
        elif cases[0] not in ended:  # whoever ended it may not have meant this case
            ended.add(cases[0])
            suspects.appendleft(cases)
        else:
            take(cases, _crashed_case_results(results))
    return spent


def _split_chunk(cases: CaseNumbers) -> list[CaseNumbers]:
    """Return parts of a chunk, split so that few processes end until one case is found."""
    n = math.isqrt(len(cases) - 1) + 1 if len(cases) > 1 else 1
    return [cases[k : k + n] for k in range(0, len(cases), n)]


def _crashed_case_results(results: int) -> StudyCaseResults:
    """Return the outcome of a case that ends its process."""
    why = "the process that ran it ended each time: the FMU crashed, did not return in time, or memory ran out"
    return StudyCaseResults(np.full((1, results), np.nan), (why,), np.full((1, 0, 0), np.nan), 0.0)
