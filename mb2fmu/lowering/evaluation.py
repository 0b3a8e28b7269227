"""``evaluator``: a NumPy callable of an entry point of a Program, for one state or a batch of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mb2fmu.lowering import python_runtime
from mb2fmu.lowering.program import Program
from mb2fmu.lowering.python_code import print_function

Vector = npt.ArrayLike
_EMPTY: tuple[float, ...] = ()


def evaluator(
    program: Program, entry: str | Sequence[str], results: Sequence[int] | None = None, *, hoist: bool = True
) -> Evaluator:
    """A callable ``f(t, x, r, p, m=(), s=())`` for an entry point.

    Args:
        program: Any.
        entry: One entry point, or several whose results follow one another.
        results: Positions among the results to compute; None: all.
        hoist: Compute what depends on parameters only once per set of parameters.
    """
    return Evaluator(print_function(program, entry, "evaluate", results=results, hoist=hoist), hoist=hoist)


class Evaluator:
    """Evaluates printed source.

    One state gives the same bits as printed functions in an FMU hosted by Python. Of a batch, instances whose linear
    solve fails are NaN; of one state it raises ``SingularMatrixError``. Where arithmetic is not defined the result is
    inf or NaN, as IEEE has it.

    Attributes:
        source: The printed functions.

    Args:
        source: Defines ``evaluate`` (and ``evaluate_prepare``).
        hoist: Whether it defines ``evaluate_prepare``.
    """

    def __init__(self, source: str, *, hoist: bool) -> None:
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
        m: Vector = _EMPTY,
        s: Vector = _EMPTY,
    ) -> npt.NDArray[np.float64]:
        """The results, shape (n_results,), or (n_batch, n_results) if any argument is a batch.

        Args:
            t: Time; a batch has shape (n_batch,).
            x: States; a batch has shape (n_batch, n_x), here and below.
            r: Inputs.
            p: Parameters.
            m: Discrete memory.
            s: Seeds.
        """
        arrays = [np.asarray(value, dtype=np.float64) for value in (t, x, r, p, m, s)]
        if arrays[0].ndim == 1 or any(array.ndim == 2 for array in arrays[1:]):
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
