"""``compile_program``: a Program as a compiled callable for many instances at once."""

from __future__ import annotations

import ctypes
import functools
import tempfile
import threading
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
    """``f(t, x, r, p, m, s)`` of an entry point; each argument one set of values, or one row per instance.

    Rows have the bits that the native unit has; rows for which the unit would say that a matrix is singular, or no
    solution found, are NaN. It may be called from several threads at the same time, and lets go of Python's lock.

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
        named = (layout.states, layout.inputs, layout.parameters, layout.memory, layout.seeds)
        self._widths = (1, *map(len, named))
        self._function = library.mb2fmu_batch
        self._function.restype = None
        self._function.argtypes = [ctypes.c_long, ctypes.c_int * len(self._widths), *[ctypes.c_void_p] * 8]
        library.mb2fmu_batch_memory.restype = ctypes.c_long
        self._memory = int(library.mb2fmu_batch_memory())
        self._own = threading.local()

    def __call__(
        self,
        t: npt.ArrayLike,
        x: npt.ArrayLike,
        r: npt.ArrayLike = (),
        p: npt.ArrayLike = (),
        m: npt.ArrayLike = (),
        s: npt.ArrayLike = (),
        *,
        out: Floats | None = None,
    ) -> Floats:
        """The results, shape (n_results,), or (n_batch, n_results) if any argument is a batch.

        Args:
            t: Time; a batch has shape (n_batch,).
            x: States; a batch has shape (n_batch, n_x), here and below.
            r: Inputs.
            p: Parameters.
            m: Discrete memory.
            s: Seeds.
            out: Where results are stored, (n_batch, n_results) doubles in C's order; None: in a new array.

        Raises:
            ValueError: If shapes do not fit.
        """
        arrays = [np.asarray(value, dtype=np.float64, order="C") for value in (t, x, r, p, m, s)]
        many = [array.ndim > (k > 0) for k, array in enumerate(arrays)]
        n = self._size(arrays, many)
        batch = any(many)
        shape = (n, len(self.labels)) if batch else (len(self.labels),)
        if out is None:
            out = np.empty(shape)
        elif out.shape != shape or out.dtype != np.float64 or not (out.flags.c_contiguous and out.flags.writeable):
            raise ValueError(f"out must be doubles of shape {shape} in C's order, and writeable")
        memory: Floats | None = getattr(self._own, "memory", None)
        if memory is None:
            memory = self._own.memory = np.empty(self._memory)
        self._function(n, (ctypes.c_int * len(many))(*many), *(array.ctypes.data for array in (*arrays, out, memory)))
        return out

    def _size(self, arrays: list[Floats], many: list[bool]) -> int:
        """How many instances there are; all shapes are looked at."""
        sizes = {len(array) for array, is_batch in zip(arrays, many, strict=True) if is_batch}
        if len(sizes) > 1:
            raise ValueError(f"batches of different sizes: {sorted(sizes)}")
        for name, array, width, is_batch in zip("txrpms", arrays, self._widths, many, strict=True):
            last = array.shape[int(is_batch) :] if name != "t" else array.shape[1:] or (1,)
            if last != (width,):
                raise ValueError(f"{name} has shape {array.shape}: {width} values are needed, or rows of so many")
        return next(iter(sizes), 1)


def compile_program(
    program: Program, entry: str = "rhs", compiler: Compiler = "zig", variant: Variant | None = None
) -> CompiledProgram:
    """Compiles an entry point for the running machine.

    Args:
        program: Any.
        entry: Name of an entry point.
        compiler: ``zig``, or ``cc``: the system's.
        variant: For which processors; None: for this one, with the widest vectors that it has.

    Raises:
        ToolError: If there is no compiler, or it fails.
    """
    return CompiledProgram(program, entry, _library(emit_batch(program, entry), compiler, variant or widest(compiler)))


def _library(sources: FileTree, compiler: Compiler, variant: Variant) -> ctypes.CDLL:
    tree = compile_unit(sources, "batch", [host()], fmi=3, compiler=compiler, variant=variant)
    (content,) = tree.files.values()
    # Windows does not remove a library that is in use.
    with tempfile.TemporaryDirectory(prefix="mb2fmu-", ignore_cleanup_errors=True) as folder:
        file = Path(folder) / f"batch{host().extension}"
        file.write_bytes(content)
        return ctypes.CDLL(str(file))


@functools.cache
def widest(compiler: Compiler = "zig") -> Variant:
    """The variant for the widest vectors that the running machine has: 8 instances side by side, 4, or 2 (``any``)."""
    known: tuple[Variant, ...] = ("any", "avx2", "avx512")
    return known[int(_library(emit_probe(), compiler, "any")[PROBE]())]
