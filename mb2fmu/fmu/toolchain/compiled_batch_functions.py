"""``compile_entry_point``: a Program as a compiled callable for many instances at once."""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mb2fmu.compiler.program.scalar_program import ScalarProgram
from mb2fmu.fmu.emit_c import PROCESSOR_PROBE, emit_batch_library, emit_cpu_feature_probe
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.fmu.toolchain.compilers import Compiler, Variant, choose_default_compiler
from mb2fmu.fmu.toolchain.fmu_compilation import compile_fmu_binaries
from mb2fmu.fmu.toolchain.target_platforms import host_platform
from mb2fmu.temporary_files import make_temporary_folder

Floats = npt.NDArray[np.float64]


class CompiledEntryPoint:
    """``f(t, x, r, p, m, s)`` of an entry point; each argument one set of values, or one row per instance.

    Rows have the bits that the native FMU has; rows for which the FMU would say that a matrix is singular, or no
    solution found, are NaN. It may be called from several threads at the same time, and releases Python's lock.

    Attributes:
        labels: Of the results.

    Args:
        program: Any.
        entry: Name of the entry point.
        library: The compiled library.
    """

    def __init__(self, program: ScalarProgram, entry: str, library: ctypes.CDLL) -> None:
        layout = program.layout
        self.labels = program.entries[entry].labels
        named = (layout.states, layout.inputs, layout.parameters, layout.memory, layout.seeds)
        self._widths = (1, *map(len, named))
        self._function = library.mb2fmu_batch
        self._function.restype = None
        self._function.argtypes = [ctypes.c_long, ctypes.c_long, *[ctypes.c_void_p] * 8]
        library.mb2fmu_batch_memory.restype = ctypes.c_long
        self._memory = int(library.mb2fmu_batch_memory())
        self._local = threading.local()

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
        """Return the results, shape (n_results,), or (n_batch, n_results) if any argument is a batch.

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
        own: _ThreadBuffers | None = getattr(self._local, "own", None)
        if own is None:
            own = self._local.own = _ThreadBuffers(self._widths, self._memory)
        n, batches, arrays = _read_arguments(own, (t, x, r, p, m, s))
        shape = (n, len(self.labels)) if batches else (len(self.labels),)
        if out is None:
            out = np.empty(shape)
        elif out.shape != shape or out.dtype != np.float64 or not (out.flags.c_contiguous and out.flags.writeable):
            raise ValueError(f"out must be doubles of shape {shape} in C's order, and writeable")
        addresses = own.addresses.copy()
        for k, array in arrays.items():
            addresses[k] = array.ctypes.data
        self._function(n, batches, *addresses, out.ctypes.data, own.memory)
        return out


class _ThreadBuffers:
    """Buffers that a thread keeps for its calls: to look up an array's address costs as much as a small mechanism.

    Attributes:
        places: Where an argument goes that is one set of values.
        addresses: Of these.
        memory: Address of what the compiled function works in.

    Args:
        widths: Numbers in one set of t, x, r, p, m, s.
        memory: Doubles.
    """

    def __init__(self, widths: Sequence[int], memory: int) -> None:
        once = np.empty(sum(widths) + 1)
        ends = np.cumsum(widths)
        self.places = [once[end - width : end] for end, width in zip(ends, widths, strict=True)]
        self.addresses = [int(once.ctypes.data) + 8 * int(end - width) for end, width in zip(ends, widths, strict=True)]
        self._kept = once, np.empty(memory)
        self.memory = int(self._kept[1].ctypes.data)


def _read_arguments(own: _ThreadBuffers, values: Sequence[npt.ArrayLike]) -> tuple[int, int, dict[int, Floats]]:
    """Return the number of instances, and which arguments are batches (as bits) with their arrays."""
    n, batches, arrays = 1, 0, {}
    for k, (value, place) in enumerate(zip(values, own.places, strict=True)):
        array = np.asarray(value, dtype=np.float64, order="C")
        one = place.shape if k else ()
        if array.shape == one:
            place[:] = array
        elif array.shape[1:] == one and array.ndim == len(one) + 1:
            if batches and len(array) != n:
                raise ValueError(f"batches of different sizes: {sorted((n, len(array)))}")
            n, batches = len(array), batches | 1 << k
            arrays[k] = array
        else:
            needed = f"{len(place)} values are needed" if k else "one value is needed"
            raise ValueError(f"{'txrpms'[k]} has shape {array.shape}: {needed}, or a row of so many per instance")
    return n, batches, arrays


def compile_entry_point(
    program: ScalarProgram, entry: str = "rhs", compiler: Compiler | None = None, variant: Variant | None = None
) -> CompiledEntryPoint:
    """Compile an entry point for the running machine.

    Args:
        program: Any.
        entry: Name of an entry point.
        compiler: ``zig``, or ``cc``: the system's; None: zig where it is installed.
        variant: For which processors; None: for this one, with the widest vectors that it has.

    Raises:
        ToolError: If there is no compiler, or it fails.
    """
    return CompiledEntryPoint(
        program,
        entry,
        compile_and_load_library(
            emit_batch_library(program, entry), compiler, variant or find_widest_vector_variant(compiler)
        ),
    )


def compile_and_load_library(sources: InMemoryFileTree, compiler: Compiler | None, variant: Variant) -> ctypes.CDLL:
    """Compile sources for the running machine, and load them."""
    compiler = compiler or choose_default_compiler()
    tree = compile_fmu_binaries(sources, "batch", [host_platform()], fmi=3, compiler=compiler, variant=variant)
    (content,) = tree.files.values()
    with make_temporary_folder("load what was compiled") as folder:  # Windows does not remove a library that is in use
        file = folder / f"batch{host_platform().extension}"
        file.write_bytes(content)
        return ctypes.CDLL(str(file))


@functools.cache
def find_widest_vector_variant(compiler: Compiler | None = None) -> Variant:
    """Return the variant with the widest vectors of the running machine: 8 instances at once, 4, or 2 (``any``)."""
    known: tuple[Variant, ...] = ("any", "avx2", "avx512")
    return known[int(compile_and_load_library(emit_cpu_feature_probe(), compiler, "any")[PROCESSOR_PROBE]())]
