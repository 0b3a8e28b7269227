"""Times of stages, for the observer and for the page beside an FMU; they never enter an FMU."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from mb2fmu.pipeline.derivation.pipeline_results import StageObserver, StageTime

if TYPE_CHECKING:
    from mb2fmu.fmu.toolchain import TargetPlatform


class StageStopwatch:
    """Times stages and notifies the observer."""

    def __init__(self, observer: StageObserver | None, before: tuple[StageTime, ...] = ()) -> None:
        self._observer = observer
        self._timings = [*before]

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        """Time a stage."""
        if self._observer:
            self._observer.started(stage)
        begin = time.perf_counter()
        yield
        timing = StageTime(stage, time.perf_counter() - begin)
        self._timings.append(timing)
        if self._observer:
            self._observer.finished(timing)

    def activity_reporter(self, stage: str) -> Callable[[str], None] | None:
        """Notify an observer with a method ``report_activity`` in words which part of a stage runs."""
        report_activity: Callable[[str, str], None] | None = getattr(self._observer, "report_activity", None)
        return None if report_activity is None else partial(report_activity, stage)

    @property
    def timings(self) -> tuple[StageTime, ...]:
        """The times of all stages so far."""
        return tuple(self._timings)


class PlatformCompileObserver:
    """Notifies the pipeline's observer of each platform, as of a stage."""

    def __init__(self, observer: StageObserver) -> None:
        self._observer = observer

    def started(self, platform: TargetPlatform) -> None:
        """Note that compilation for a platform begins."""
        self._observer.started(f"compile for {platform}")

    def finished(self, platform: TargetPlatform, seconds: float, *, cached: bool) -> None:
        """Note that a binary is there, compiled now or before."""
        self._observer.finished(StageTime(f"compile for {platform}", seconds, was_cached=cached))
