"""Runs of FMUs through fmpy that keep the instants of events."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from unittest.mock import patch

import fmpy
import numpy as np
from fmpy import sundials

_ONE = 1e-9  # s


@dataclass(frozen=True)
class EventRun:
    """What fmpy recorded, and when the FMU asked for an event.

    Attributes:
        found: The rows, two of them at each event: before and after.
        events: The instants, in s; of such as follow at once the first.
    """

    found: np.ndarray
    events: np.ndarray

    def at(self, name: str, time: float) -> float:
        """A variable at a communication point, behind an event there."""
        return float(self.found[name][np.flatnonzero(np.isclose(self.found["time"], time, rtol=0, atol=1e-12))[-1]])


def run_with_events(
    unit: str, kind: str, stop: float, step: float, names: Sequence[str], tolerance: float = 1e-9, **start: float
) -> EventRun:
    """Runs an FMU of FMI 3; in Co-Simulation it returns at each event, in Model Exchange CVODE finds them.

    Args:
        unit: The file.
        kind: ``CoSimulation`` or ``ModelExchange``.
        stop: In s.
        step: Between communication points, in s.
        names: Of the variables to record.
        tolerance: Relative.
        start: Start values by name, with ``__`` for a dot.

    Returns:
        The recorded run.
    """
    returns = {"use_event_mode": True, "early_return_allowed": True} if kind == "CoSimulation" else {}
    found = fmpy.simulate_fmu(
        unit, fmi_type=kind, stop_time=stop, output_interval=step, relative_tolerance=tolerance, output=list(names),
        start_values={name.replace("__", "."): value for name, value in start.items()}, **returns,
    )  # fmt: skip
    time = np.array(found["time"])
    events = np.unique(time[1:][np.diff(time) == 0.0])
    return EventRun(found, events[np.diff(events, prepend=-1.0) > _ONE])


@contextlib.contextmanager
def states_of_its_own() -> Iterator[None]:
    """An importer that goes on from its own states behind each event, whatever the FMU says of values that changed."""
    step, reset = sundials.CVodeSolver.step, sundials.CVodeSolver.reset

    def deaf(method):
        def call(self, *arguments):
            fetch, self.get_x = self.get_x, lambda *_: None
            try:
                return method(self, *arguments)
            finally:
                self.get_x = fetch

        return call

    with patch.multiple(sundials.CVodeSolver, step=deaf(step), reset=deaf(reset)):
        yield
