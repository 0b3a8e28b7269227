"""``compile_program``: a Program as a compiled callable for many instances at once."""

from __future__ import annotations

import ctypes
import functools
import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mb2fmu.emit.c import PROBE, emit_batch, emit_probe
from mb2fmu.filetree import FileTree
from mb2fmu.lowering.program import Program
from mb2fmu.toolchain.building import compile_unit
from mb2fmu.toolchain.compilers import Compiler, Variant
from mb2fmu.toolchain.platforms import host

Floats = npt.NDArray[np.float64]


class CompiledProgram:
    """``f(t, x, r, p)`` of an entry point; each argument one set of values, or one row per instance.

    Rows have the bits that the native unit has; rows whose equations are singular are NaN.

    Attributes:
        labels: Of the results.

    Args:
        program: Any.
        entry: Name of the entry point.
        library: The compiled library.
    """

    def __init__(self, program: Program, entry: str, library: ctypes.CDLL) -> None:
        layout = program.layout
        self.labels = program.entries[entry].labels
        self._widths = (1, len(layout.states), len(layout.inputs), len(layout.parameters))
        self._function = library.mb2fmu_batch
        self._function.restype = None
        library.mb2fmu_batch_memory.restype = ctypes.c_long
        self._memory = int(library.mb2fmu_batch_memory())

    def __call__(self, t: npt.ArrayLike, x: npt.ArrayLike, r: npt.ArrayLike = (), p: npt.ArrayLike = ()) -> Floats:
        """The results, shape (n_results,), or (n_batch, n_results) if any argument is a batch.

        Args:
            t: Time; a batch has shape (n_batch,).
            x: States; a batch has shape (n_batch, n_x), here and below.
            r: Inputs.
            p: Parameters.

        Raises:
            ValueError: If shapes do not fit.
        """
        given = [np.asarray(value, dtype=np.float64) for value in (t, x, r, p)]
        batches = {len(array) for i, array in enumerate(given) if array.ndim == (2 if i else 1)}
        if len(batches) > 1:
            raise ValueError(f"batches of different sizes: {sorted(batches)}")
        n = next(iter(batches), 1)
        many = (n, n, n, len(given[3]) if given[3].ndim == 2 else 1)
        rows = [
            np.ascontiguousarray(np.broadcast_to(array.reshape((-1, width) if array.size else (1, 0)), (count, width)))
            for array, width, count in zip(given, self._widths, many, strict=True)
        ]
        result = np.empty((n, len(self.labels)))
        memory = np.empty(self._memory)
        arrays = [array.ctypes.data_as(ctypes.c_void_p) for array in (*rows, result, memory)]
        self._function(ctypes.c_long(n), ctypes.c_long(many[3]), *arrays)
        return result if batches else result[0]


def compile_program(program: Program, entry: str = "rhs", compiler: Compiler = "zig") -> CompiledProgram:
    """Compiles an entry point for the running machine.

    Args:
        program: Any.
        entry: Name of an entry point; without block statements (see ``emit.c.emit_batch``).
        compiler: ``zig``, or ``cc``: the system's.

    Raises:
        EmitError: If the entry point needs what there are no lanes for.
        ToolError: If there is no compiler, or it fails.
    """
    variant: Variant = "avx2" if _has_avx2(compiler) else "any"
    return CompiledProgram(program, entry, _library(emit_batch(program, entry), compiler, variant))


def _library(sources: FileTree, compiler: Compiler, variant: Variant) -> ctypes.CDLL:
    tree = compile_unit(sources, "batch", [host()], fmi=3, compiler=compiler, variant=variant)
    (content,) = tree.files.values()
    # Windows does not remove a library that is in use.
    with tempfile.TemporaryDirectory(prefix="mb2fmu-", ignore_cleanup_errors=True) as folder:
        file = Path(folder) / f"batch{host().extension}"
        file.write_bytes(content)
        return ctypes.CDLL(str(file))


@functools.cache
def _has_avx2(compiler: Compiler) -> bool:
    return bool(_library(emit_probe(), compiler, "any")[PROBE]())
