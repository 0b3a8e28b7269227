"""``compile_motion``: a Program as a compiled integrator of many instances at once."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mb2fmu.derivatives.unit_entries import NativeProgram
from mb2fmu.emit.c import emit_ensemble
from mb2fmu.program.program import Program
from mb2fmu.toolchain.batch import compiled_library, widest
from mb2fmu.toolchain.compilers import Compiler, Variant

Floats = npt.NDArray[np.float64]

REASONS = ("", "the error stays above the tolerance", "x' is not finite", "too many steps")
"""Why an instance ended early, by the numbers of ``batch_walk.h``."""


class _Course(ctypes.Structure):
    """``mb2fmu_course`` of ``batch_walk.h``."""

    _fields_ = (
        *((name, ctypes.c_long) for name in ("points", "most", "parameter_rows", "input_rows", "selected")),
        *((name, ctypes.c_double) for name in ("start", "step", "tolerance")),
        *((name, ctypes.c_void_p) for name in ("scale", "x0", "p", "r", "turns", "select")),
        *((name, ctypes.c_void_p) for name in ("path_x", "path_y", "end_x", "end_y", "why", "when")),
    )


@dataclass(frozen=True, slots=True)
class Course:
    """From where to where, the same for all instances.

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
class Moved:
    """Where instances came to; NaN from where one ended early.

    Attributes:
        states: At the last communication point, shape (n, n_x).
        outputs: Likewise, (n, n_y).
        path_states: At all of them, (n, points + 1, n_x); empty if not asked for.
        path_outputs: Likewise those that were asked for, (n, points + 1, n_selected).
        messages: Why an instance ended early; empty where it did not.
    """

    states: Floats
    outputs: Floats
    path_states: Floats
    path_outputs: Floats
    messages: tuple[str, ...]


class CompiledMotion:
    """Integrates instances by one method, each with its own step size; lets go of Python's lock.

    Args:
        program: Without memory, seeds and events.
        library: The compiled library.
    """

    def __init__(self, program: Program, library: ctypes.CDLL) -> None:
        layout = program.layout
        self._widths = (len(layout.states), len(layout.inputs), len(layout.parameters))
        self._outputs = len(program.entries["outputs"].results) if "outputs" in program.entries else 0
        self._function = library.mb2fmu_ensemble
        self._function.restype = None
        self._function.argtypes = [ctypes.POINTER(_Course), ctypes.c_long, ctypes.c_long, ctypes.c_void_p]
        library.mb2fmu_ensemble_memory.restype = ctypes.c_long
        self._memory = int(library.mb2fmu_ensemble_memory())

    def __call__(
        self, x0: Floats, p: Floats, course: Course, *, states: bool = False, outputs: Sequence[int] = ()
    ) -> Moved:
        """Moves instances to their last communication points.

        Args:
            x0: Starts, shape (n, n_x).
            p: Parameters, shape (n, n_p), or (n_p,): the same for all.
            course: From where to where.
            states: Keep them at all communication points.
            outputs: Keep these, by their places, at all communication points.

        Raises:
            ValueError: If shapes do not fit.
        """
        n, points = len(x0), course.points
        n_x, n_r, n_p = self._widths
        start, parameters, held = (
            np.ascontiguousarray(array, dtype=np.float64) for array in (x0, np.atleast_2d(p), course.inputs)
        )
        scale, turns = np.ascontiguousarray(course.scale, dtype=np.float64), course.turns.astype(np.uint8)
        select = np.array(outputs, dtype=np.dtype("l"))
        right = (
            start.shape == (n, n_x) and parameters.shape in {(1, n_p), (n, n_p)} and scale.shape == (n_x,)
            and held.shape in {(1, n_r), (points, n_r)} and turns.shape == (points + 1,)
            and all(0 <= each < self._outputs for each in outputs)
        )  # fmt: skip
        if not right:
            raise ValueError(f"shapes do not fit {n_x} states, {n_r} inputs, {n_p} parameters, {points} steps")
        end_x, end_y = np.full((n, n_x), np.nan), np.full((n, self._outputs), np.nan)
        path_x = np.full((n if states else 0, points + 1, n_x), np.nan)
        path_y = np.full((n, points + 1, len(outputs)), np.nan)
        why, when, memory = np.zeros(n, dtype=np.dtype("l")), np.zeros(n), np.empty(self._memory)
        record = _Course(
            points, course.most, len(parameters), len(held), len(outputs), course.start, course.step, course.tolerance,
            *(array.ctypes.data for array in (scale, start, parameters, held, turns, select)),
            path_x.ctypes.data if states else None,
            *(array.ctypes.data for array in (path_y, end_x, end_y, why, when)),
        )  # fmt: skip
        self._function(ctypes.byref(record), 0, n, memory.ctypes.data)
        messages = tuple(f"{REASONS[k]} at t = {t:.6g} s" if k else "" for k, t in zip(why, when, strict=True))
        return Moved(end_x, end_y, path_x, path_y, messages)


def compile_motion(
    program: Program,
    compiler: Compiler | None = None,
    variant: Variant | None = None,
    *,
    judged: int | None = None,
) -> CompiledMotion:
    """Compiles the integrator by Dormand and Prince's method for the running machine.

    Args:
        program: Without memory, seeds and events.
        compiler: ``zig``, or ``cc``: the system's; None: zig where it is installed.
        variant: For which processors; None: for this one, with the widest vectors that it has.
        judged: So many states, the first ones, choose the step sizes; None: all.

    Raises:
        ToolError: If there is no compiler, or it fails.
    """
    sources = emit_ensemble(program, judged=judged)
    return CompiledMotion(program, compiled_library(sources, compiler, variant or widest(compiler)))


def compile_implicit_motion(
    native: NativeProgram, compiler: Compiler | None = None, variant: Variant | None = None
) -> CompiledMotion:
    """Compiles the integrator by the implicit method, which is for stiff models.

    Args:
        native: With a Jacobian that is written out; without memory and events.
        compiler: As of :func:`compile_motion`.
        variant: Likewise.

    Raises:
        ToolError: If there is no compiler, or it fails.
    """
    sparsity = (native.rows.tolist(), native.columns.tolist(), native.time_rows.tolist())
    sources = emit_ensemble(native.program, sparsity)
    return CompiledMotion(native.program, compiled_library(sources, compiler, variant or widest(compiler)))
