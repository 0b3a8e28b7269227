"""``evaluator``: a NumPy callable of an entry point of a Program, for one state or a batch of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from mb2fmu.lowering import python_runtime
from mb2fmu.lowering.program import Program, first_memory
from mb2fmu.lowering.python_code import print_function

Vector = npt.ArrayLike
_EMPTY: tuple[float, ...] = ()
_PIECES = 32  # of the way from one state to another that is far from it


def evaluator(
    program: Program,
    entry: str | Sequence[str],
    results: Sequence[int] | None = None,
    *,
    hoist: bool = True,
    memory: Recollection | None = None,
) -> Evaluator:
    """A callable ``f(t, x, r, p, m=(), s=())`` for an entry point.

    Args:
        program: Any.
        entry: One entry point, or several whose results follow one another.
        results: Positions among the results to compute; None: all.
        hoist: Compute what depends on parameters only once per set of parameters.
        memory: Of another evaluator of the program, to be shared with it where there is discrete memory.
    """
    source = print_function(program, entry, "evaluate", results=results, hoist=hoist)
    first = first_memory(program)
    if memory is not None or not first:
        return Evaluator(source, memory, hoist=hoist)
    remember = print_function(program, "remember", "evaluate", hoist=hoist)
    return Evaluator(source, Recollection(Evaluator(remember, hoist=hoist), first), hoist=hoist)


class Recollection:
    """Discrete memory for those who ask for values without having one: it follows from state to state.

    Args:
        remember: Gives the memory after an accepted step.
        first: The memory to begin with.
    """

    def __init__(self, remember: Evaluator, first: Sequence[float]) -> None:
        self._remember = remember
        self._first = self._last = np.array(first, dtype=np.float64)
        self._point: list[npt.NDArray[np.float64]] = []

    def at(self, arrays: Sequence[npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
        """The memory at (t, x, r, p), from where it was last; else from where it begins."""
        try:
            self._last = self._after(arrays, self._last)
        except python_runtime.SingularMatrixError:
            self._last = self._on_the_way(arrays)
        self._point = [array.copy() for array in arrays]
        return self._last

    def _on_the_way(self, arrays: Sequence[npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
        """The memory at a place far from the last one, in small steps along the straight line; else from the first."""
        last = self._last
        try:
            for part in np.linspace(0.0, 1.0, _PIECES + 1)[1:] if self._point else ():
                between = [a + part * (b - a) for a, b in zip(self._point, arrays, strict=True)]
                last = self._after(between, last)
        except python_runtime.SingularMatrixError:
            return self._after(arrays, self._first)
        return last if self._point else self._after(arrays, self._first)

    def _after(
        self, arrays: Sequence[npt.NDArray[np.float64]], last: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64]:
        t, x, r, p = arrays
        return self._remember(t, x, r, p, last)

    def along(self, arrays: Sequence[npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
        """The memory at each row of a batch, from one to the next; where there is none it stays."""
        count = next(len(array) for i, array in enumerate(arrays) if array.ndim == (2 if i else 1))
        rows, last = np.empty((count, len(self._first))), self._first
        for k in range(count):
            row = [array[k] if array.ndim == (2 if i else 1) else array for i, array in enumerate(arrays)]
            with suppress(python_runtime.SingularMatrixError):
                last = self._after(row, last)
            rows[k] = last
        return rows


class Evaluator:
    """Evaluates printed source.

    One state gives the same bits as printed functions in an FMU hosted by Python. Of a batch, instances whose linear
    solve fails are NaN; of one state it raises ``SingularMatrixError``. Where arithmetic is not defined the result is
    inf or NaN, as IEEE has it.

    Attributes:
        source: The printed functions.
        memory: Finds the discrete memory where none is given; None: there is none.

    Args:
        source: Defines ``evaluate`` (and ``evaluate_prepare``).
        memory: Finds the discrete memory where none is given; None: there is none.
        hoist: Whether it defines ``evaluate_prepare``.
    """

    def __init__(self, source: str, memory: Recollection | None = None, *, hoist: bool) -> None:
        self.memory = memory
        self.source = source
        self._hoist = hoist
        code = compile(source, "<program>", "exec")
        self._fast = _run(code, python_runtime.FAST)
        self._ieee = _run(code, python_runtime.IEEE)
        self._array = _run(code, python_runtime.ARRAY)
        self._prepared: dict[str, tuple[bytes, Any]] = {}

    def __call__(
        self,
        t: Vector,
        x: Vector,
        r: Vector = _EMPTY,
        p: Vector = _EMPTY,
        m: Vector | None = None,
        s: Vector = _EMPTY,
    ) -> npt.NDArray[np.float64]:
        """The results, shape (n_results,), or (n_batch, n_results) if any argument is a batch.

        Args:
            t: Time; a batch has shape (n_batch,).
            x: States; a batch has shape (n_batch, n_x), here and below.
            r: Inputs.
            p: Parameters.
            m: Discrete memory; None: it follows from one call, and from one row of a batch, to the next.
            s: Seeds.
        """
        given = (t, x, r, p, _EMPTY if m is None else m, s)
        arrays = [np.asarray(value, dtype=np.float64) for value in given]
        batch = arrays[0].ndim == 1 or any(array.ndim == 2 for array in arrays[1:])
        if m is None and self.memory is not None:
            arrays[4] = self.memory.along(arrays[:4]) if batch else self.memory.at(arrays[:4])
        if batch:
            return self._evaluate_batch(arrays)
        return self._evaluate_one(arrays)

    def _evaluate_one(self, arrays: list[npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
        try:
            arguments = [array.tolist() for array in arrays]
            return np.array(self._call("fast", self._fast, arguments, arrays[3]))
        except (ZeroDivisionError, ValueError, OverflowError):
            with np.errstate(all="ignore"):
                return np.array(self._call("ieee", self._ieee, arrays, arrays[3]), dtype=np.float64)

    def _evaluate_batch(self, arrays: list[npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
        sizes = {len(array) for i, array in enumerate(arrays) if array.ndim == (2 if i else 1)}
        if len(sizes) != 1:
            raise ValueError(f"batches of different sizes: {sorted(sizes)}")
        with np.errstate(all="ignore"):
            results = self._call("array", self._array, [array.T for array in arrays], arrays[3])
        (n,) = sizes
        out = np.empty((n, len(results)))
        for i, value in enumerate(results):
            out[:, i] = value
        return out

    def _call(
        self, kind: str, functions: dict[str, Callable[..., Any]], arguments: Sequence[Any], p: npt.NDArray[np.float64]
    ) -> tuple[Any, ...]:
        if not self._hoist:
            return tuple(functions["evaluate"](*arguments))
        key = p.tobytes()
        known = self._prepared.get(kind)
        if known is None or known[0] != key:
            known = self._prepared[kind] = (key, functions["evaluate_prepare"](arguments[3]))
        return tuple(functions["evaluate"](*arguments, known[1]))


def _run(code: Any, names: dict[str, Any]) -> dict[str, Callable[..., Any]]:
    namespace = dict(names)
    exec(code, namespace)  # noqa: S102 (our own printed source)
    return namespace
