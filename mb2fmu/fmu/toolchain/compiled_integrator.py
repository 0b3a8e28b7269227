"""``compile_explicit_integrator``: a Program as a compiled integrator of many instances at once."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mb2fmu.compiler.derivatives.derivative_entry_points import ProgramWithDerivatives
from mb2fmu.compiler.program.scalar_program import ScalarProgram
from mb2fmu.fmu.emit_c import emit_batch_integrator
from mb2fmu.fmu.toolchain.batch_run_arguments_and_result import (
    BatchRunArguments,
    BatchRunResult,
    BatchRunStruct,
    BatchRunTimeGrid,
)
from mb2fmu.fmu.toolchain.compiled_batch_functions import compile_and_load_library, find_widest_vector_variant
from mb2fmu.fmu.toolchain.compilers import Compiler, Variant

Floats = npt.NDArray[np.float64]


class CompiledIntegrator:
    """Integrates instances by one method, each with its own step size; releases Python's lock.

    Args:
        program: Without memory, seeds and events.
        library: The compiled library.
    """

    def __init__(self, program: ScalarProgram, library: ctypes.CDLL) -> None:
        layout = program.layout
        self._widths = (len(layout.states), len(layout.inputs), len(layout.parameters))
        self._outputs = len(program.entries["outputs"].results) if "outputs" in program.entries else 0
        self._function = library.mb2fmu_ensemble
        self._function.restype = None
        self._function.argtypes = [ctypes.POINTER(BatchRunStruct), ctypes.c_long, ctypes.c_long, ctypes.c_void_p]
        library.mb2fmu_ensemble_memory.restype = ctypes.c_long
        self._memory = int(library.mb2fmu_ensemble_memory())

    def __call__(
        self, x0: Floats, p: Floats, time_grid: BatchRunTimeGrid, *, states: bool = False, outputs: Sequence[int] = ()
    ) -> BatchRunResult:
        """Move instances to their last communication points.

        Args:
            x0: Starts, shape (n, n_x).
            p: Parameters, shape (n, n_p), or (n_p,): the same for all.
            time_grid: From where to where.
            states: Keep them at all communication points.
            outputs: Keep these, by their places, at all communication points.

        Raises:
            ValueError: If shapes do not fit.
        """
        arguments = BatchRunArguments(x0, p, time_grid, self._widths, self._outputs, states=states, outputs=outputs)
        memory = np.empty(self._memory)
        self._function(ctypes.byref(arguments.record), 0, len(x0), memory.ctypes.data)
        return arguments.read_batch_result()


def compile_explicit_integrator(
    program: ScalarProgram,
    compiler: Compiler | None = None,
    variant: Variant | None = None,
    *,
    step_control_states: int | None = None,
) -> CompiledIntegrator:
    """Compile the integrator by Dormand and Prince's method for the running machine.

    Args:
        program: Without memory, seeds and events.
        compiler: ``zig``, or ``cc``: the system's; None: zig where it is installed.
        variant: For which processors; None: for this one, with the widest vectors that it has.
        step_control_states: So many states, the first ones, choose the step sizes; None: all.

    Raises:
        ToolError: If there is no compiler, or it fails.
    """
    sources = emit_batch_integrator(program, step_control_states=step_control_states)
    return CompiledIntegrator(
        program, compile_and_load_library(sources, compiler, variant or find_widest_vector_variant(compiler))
    )


def compile_implicit_integrator(
    native: ProgramWithDerivatives,
    compiler: Compiler | None = None,
    variant: Variant | None = None,
    *,
    step_control_states: int | None = None,
) -> CompiledIntegrator:
    """Compile the implicit integrator, for stiff models, for the running machine.

    Args:
        native: With a Jacobian that is written out; without memory and events.
        compiler: As of :func:`compile_explicit_integrator`.
        variant: Likewise.
        step_control_states: Likewise; the Jacobian has columns for these states only, and rows for all.

    Raises:
        ToolError: If there is no compiler, or it fails.
    """
    sparsity = (native.rows.tolist(), native.columns.tolist(), native.time_derivative_rows.tolist())
    sources = emit_batch_integrator(native.program, sparsity, step_control_states)
    return CompiledIntegrator(
        native.program, compile_and_load_library(sources, compiler, variant or find_widest_vector_variant(compiler))
    )
