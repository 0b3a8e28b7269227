"""Time range of many instances, and input and output of the C function that moves them."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

FAILURE_REASONS = ("", "the error stays above the tolerance", "x' is not finite", "too many steps", "its unit gave up")
"""Why an instance ended early, by the numbers of ``batch_step_loop.h`` and ``batch_unit.c``."""


class BatchRunStruct(ctypes.Structure):
    """``mb2fmu_course`` of ``batch_course.h``."""

    _fields_ = (
        *((name, ctypes.c_long) for name in ("points", "most", "parameter_rows", "input_rows", "selected")),
        *((name, ctypes.c_double) for name in ("start", "step", "tolerance")),
        *((name, ctypes.c_void_p) for name in ("scale", "x0", "p", "r", "turns", "select")),
        *((name, ctypes.c_void_p) for name in ("path_x", "path_y", "end_x", "end_y", "why", "when")),
    )


@dataclass(frozen=True, slots=True)
class BatchRunTimeGrid:
    """Time range and communication points, the same for all instances.

    Attributes:
        start: s.
        step: Communication step, s.
        points: How many.
        most: Internal steps that may be tried within one communication step.
        tolerance: Relative.
        scale: Absolute over relative tolerance of each state, shape (n_x,).
        inputs: Held over each communication step, shape (points, n_r), or one row.
        turns: Whether inputs change after each communication point, shape (points + 1,).
    """

    start: float
    step: float
    points: int
    most: int
    tolerance: float
    scale: Floats
    inputs: Floats
    turns: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class BatchRunResult:
    """States of instances at the end; NaN from where one ended early.

    Attributes:
        states: At the last communication point, shape (n, n_x).
        outputs: Likewise, (n, n_y).
        path_states: At all of them, (n, points + 1, n_x); empty if not requested.
        path_outputs: Likewise those that were requested, (n, points + 1, n_selected).
        messages: Why an instance ended early; empty where it did not.
        no_derivatives: Why an instance has no derivatives; empty where it has, and for all if none were requested.
    """

    states: Floats
    outputs: Floats
    path_states: Floats
    path_outputs: Floats
    messages: tuple[str, ...]
    no_derivatives: tuple[str, ...] = ()


class BatchRunArguments:
    """Input of the C function, and room for its answer.

    Attributes:
        record: Addresses of all of it; good as long as this object is there.

    Args:
        x0: Starts, shape (n, n_x).
        p: Parameters, shape (n, n_p), or (n_p,): the same for all.
        time_grid: From where to where.
        widths: Numbers of states, inputs and parameters.
        n_y: Number of outputs.
        states: Keep them at all communication points.
        outputs: Keep these, by their places, at all communication points.

    Raises:
        ValueError: If shapes do not fit.
    """

    def __init__(
        self,
        x0: Floats,
        p: Floats,
        time_grid: BatchRunTimeGrid,
        widths: tuple[int, int, int],
        n_y: int,
        *,
        states: bool,
        outputs: Sequence[int],
    ) -> None:
        n, points, (n_x, n_r, n_p) = len(x0), time_grid.points, widths
        start, parameters, held = (
            np.ascontiguousarray(array, dtype=np.float64) for array in (x0, np.atleast_2d(p), time_grid.inputs)
        )
        scale, turns = np.ascontiguousarray(time_grid.scale, dtype=np.float64), time_grid.turns.astype(np.uint8)
        select = np.array(outputs, dtype=np.dtype("l"))
        right = (
            start.shape == (n, n_x) and parameters.shape in {(1, n_p), (n, n_p)} and scale.shape == (n_x,)
            and held.shape in {(1, n_r), (points, n_r)} and turns.shape == (points + 1,)
            and all(0 <= each < n_y for each in outputs)
        )  # fmt: skip
        if not right:
            raise ValueError(f"shapes do not fit {n_x} states, {n_r} inputs, {n_p} parameters, {points} steps")
        self._end_x, self._end_y = np.full((n, n_x), np.nan), np.full((n, n_y), np.nan)
        self._path_x = np.full((n if states else 0, points + 1, n_x), np.nan)
        self._path_y = np.full((n, points + 1, len(outputs)), np.nan)
        self._why, self._when = np.zeros(n, dtype=np.dtype("l")), np.zeros(n)
        given = (scale, start, parameters, held, turns, select)
        room = (self._path_y, self._end_x, self._end_y, self._why, self._when)
        self._kept = given
        self.record = BatchRunStruct(
            points, time_grid.most, len(parameters), len(held), len(outputs),
            time_grid.start, time_grid.step, time_grid.tolerance,
            *(array.ctypes.data for array in given),
            self._path_x.ctypes.data if states else None,
            *(array.ctypes.data for array in room),
        )  # fmt: skip

    def read_batch_result(self, last_messages: Mapping[int, str] = MappingProxyType({})) -> BatchRunResult:
        """Return the answer of the C function.

        Args:
            last_messages: Instance → its last message, where there is more to say than a number does.
        """
        messages = tuple(
            (last_messages.get(i) or f"{FAILURE_REASONS[k]} at t = {t:.6g} s") if k else ""
            for i, (k, t) in enumerate(zip(self._why, self._when, strict=True))
        )
        failed = np.flatnonzero(self._why)
        self._end_x[failed] = self._end_y[failed] = np.nan
        return BatchRunResult(self._end_x, self._end_y, self._path_x, self._path_y, messages)
