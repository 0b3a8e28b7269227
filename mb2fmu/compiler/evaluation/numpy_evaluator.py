"""``make_evaluator``: make a NumPy callable of a Program's entry point, for one state or a batch of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from mb2fmu.compiler.arithmetic import python_runtime
from mb2fmu.compiler.evaluation.numpy_printer import print_numpy_function
from mb2fmu.compiler.program.program_pruning import find_needed_nodes
from mb2fmu.compiler.program.scalar_program import (
    Op,
    ScalarProgram,
    read_constant_entry_point_results,
    read_initial_discrete_memory,
)

Vector = npt.ArrayLike
_DOUBLE = np.dtype(np.float64)
_NO_VALUES: npt.NDArray[np.float64] = np.empty(0)
_CONTINUATION_STEPS = 32  # of the way from one state to another that is far from it


def make_evaluator(
    program: ScalarProgram,
    entry: str | Sequence[str],
    results: Sequence[int] | None = None,
    *,
    hoist: bool = True,
    memory: PositionDeterminedMemory | None = None,
) -> EntryPointEvaluator:
    """Return a callable ``f(t, x, r, p, m=(), s=())`` for an entry point.

    Args:
        program: Any.
        entry: One entry point, or several whose results follow one another.
        results: Positions among the results to compute; None: all.
        hoist: Compute what depends on parameters only once per set of parameters.
        memory: Of another evaluator of the program, to be shared with it where there is discrete memory.
    """
    source = print_numpy_function(program, entry, "evaluate", results=results, hoist=hoist)
    first = read_initial_discrete_memory(program)
    if memory is not None or not first:
        return EntryPointEvaluator(source, memory, hoist=hoist)
    remember = print_numpy_function(program, "remember", "evaluate", hoist=hoist)
    nodes, _ = find_needed_nodes(program, program.entries["remember"].results)
    recollection = PositionDeterminedMemory(
        EntryPointEvaluator(remember, hoist=hoist),
        first,
        read_constant_entry_point_results(program, "first_place"),
        in_time=bool((program.op[nodes] == Op.TIME).any()),
        of_inputs=bool((program.op[nodes] == Op.INPUT).any()),
    )
    return EntryPointEvaluator(source, recollection, hoist=hoist)


class PositionDeterminedMemory:
    """Supplies discrete memory as a function of position alone, for evaluations that have no history.

    It is followed along a path from where it begins, the same for every place, by steps of
    :data:`MEMORY_LATTICE_SPACING` over a lattice of places. So a value depends on its arguments and on nothing that
    was requested before: not on the steps that an integrator rejected, nor on the order of questions. Memory that
        changes from one accepted step to the next,
    as FMUs have it, is given as ``m``, and entry point ``remember`` says what it becomes.

    Args:
        remember: Gives the memory after an accepted step.
        first: The memory to begin with.
        place: The coordinates that it belongs to, the first of the states, at t = 0.
        in_time: Whether it depends on time, which is then one more direction of the lattice.
        of_inputs: Whether it depends on inputs: then what was found with others is forgotten.
    """

    def __init__(
        self,
        remember: EntryPointEvaluator,
        first: Sequence[float],
        place: Sequence[float],
        *,
        in_time: bool,
        of_inputs: bool,
    ) -> None:
        self._remember = remember
        self._first = np.array(first, dtype=np.float64)
        self._place = np.array([*place, 0.0] if in_time else place, dtype=np.float64)
        self._in_time, self._of_inputs = in_time, of_inputs
        self._key = b""
        self._known: dict[tuple[int, ...], npt.NDArray[np.float64]] = {}

    def memory_at(self, arrays: Sequence[npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
        """Return the memory at (t, x, r, p).

        Raises:
            SingularMatrixError: There is none.
        """
        t, x, r, p = arrays
        here = np.array([*x[: len(self._place) - self._in_time], *([float(t)] if self._in_time else [])])
        with np.errstate(invalid="ignore"):
            places = np.rint((here - self._place) / MEMORY_LATTICE_SPACING)
        if not np.all(np.abs(places) < MAX_LATTICE_STEPS):
            return self._remember(t, x, r, p, self._first)
        node = tuple(int(k) for k in places)
        last = self._at_node(node, r, p, len(x))
        try:
            return self._remember(t, x, r, p, last)
        except python_runtime.SingularMatrixError:
            t0, x0 = self._point(node, len(x))
            for part in np.linspace(0.0, 1.0, _CONTINUATION_STEPS + 1)[1:]:
                last = self._remember(t0 + part * (t - t0), x0 + part * (x - x0), r, p, last)
            return last

    def _point(self, node: tuple[int, ...], size: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return time and states at a node of the lattice; speeds do not enter the memory."""
        values = self._place + MEMORY_LATTICE_SPACING * np.array(node)
        count = len(values) - self._in_time
        x = np.zeros(size)
        x[:count] = values[:count]
        return np.array(values[-1] if self._in_time else 0.0), x

    def _at_node(
        self, node: tuple[int, ...], r: npt.NDArray[np.float64], p: npt.NDArray[np.float64], size: int
    ) -> npt.NDArray[np.float64]:
        """Return the memory at a node; where it cannot be found, that of the previous node."""
        key = (r.tobytes() if self._of_inputs else b"") + b"|" + p.tobytes()
        if key != self._key or len(self._known) > _MAX_CACHED_LATTICE_NODES:
            self._key, self._known = key, {}
        way = [node]
        while way[-1] not in self._known and any(way[-1]):
            way.append(_previous_lattice_node(way[-1]))
        last = self._known.get(way[-1], self._first)
        for each in reversed(way):
            if each not in self._known:
                with suppress(python_runtime.SingularMatrixError):
                    last = self._remember(*self._point(each, size), r, p, last)
                self._known[each] = last
            last = self._known[each]
        return last

    def memory_along_rows(self, arrays: Sequence[npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
        """Return the memory at each row of a batch; the initial one where the program has none."""
        count = next(len(array) for i, array in enumerate(arrays) if array.ndim == (2 if i else 1))
        rows = np.tile(self._first, (count, 1))
        for k in range(count):
            row = [array[k] if array.ndim == (2 if i else 1) else array for i, array in enumerate(arrays)]
            with suppress(python_runtime.SingularMatrixError):
                rows[k] = self.memory_at(row)
        return rows


MEMORY_LATTICE_SPACING = 0.125
"""Of the lattice along which memory is followed, in rad, m or s."""
MAX_LATTICE_STEPS = 100_000
"""Steps of the lattice: from farther away memory is requested immediately."""
_MAX_CACHED_LATTICE_NODES = 200_000


def _previous_lattice_node(node: tuple[int, ...]) -> tuple[int, ...]:
    """Return the previous node on a nearly straight way from the origin; no index changes by more than 1."""
    longest = max(map(abs, node))
    return tuple(round(k * (longest - 1) / longest) for k in node)


class EntryPointEvaluator:
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

    def __init__(self, source: str, memory: PositionDeterminedMemory | None = None, *, hoist: bool) -> None:
        self.memory = memory
        self.source = source
        self._hoist = hoist
        code = compile(source, "<program>", "exec")
        self._fast = _execute_source(code, python_runtime.FAST)
        self._ieee = _execute_source(code, python_runtime.IEEE)
        self._array = _execute_source(code, python_runtime.ARRAY)
        self._prepared: dict[str, tuple[bytes, Any]] = {}

    def __call__(
        self,
        t: Vector,
        x: Vector,
        r: Vector = _NO_VALUES,
        p: Vector = _NO_VALUES,
        m: Vector | None = None,
        s: Vector = _NO_VALUES,
    ) -> npt.NDArray[np.float64]:
        """Return the results, shape (n_results,), or (n_batch, n_results) if any argument is a batch.

        Args:
            t: Time; a batch has shape (n_batch,).
            x: States; a batch has shape (n_batch, n_x), here and below.
            r: Inputs.
            p: Parameters.
            m: Discrete memory; None: that which belongs to the place (:class:`PositionDeterminedMemory`).
            s: Seeds.
        """
        # Integrators call this ten thousands of times: what is an array of doubles already is not converted.
        arrays: list[npt.NDArray[np.float64]] = [
            value if type(value) is np.ndarray and value.dtype is _DOUBLE else np.asarray(value, np.float64)
            for value in (t, x, r, p, _NO_VALUES if m is None else m, s)
        ]
        batch = arrays[0].ndim == 1 or 2 in [array.ndim for array in arrays]
        if m is None and self.memory is not None:
            arrays[4] = self.memory.memory_along_rows(arrays[:4]) if batch else self.memory.memory_at(arrays[:4])
        if batch:
            return self._evaluate_batch(arrays)
        return self._evaluate_one(arrays)

    def _evaluate_one(self, arrays: list[npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
        """Evaluate one state with Python's floats; repeat by IEEE rules where these raise (inf and NaN then)."""
        try:
            arguments = [array.tolist() for array in arrays]
            return np.array(self._call("fast", self._fast, arguments, arrays[3]))
        except (ZeroDivisionError, ValueError, OverflowError):
            with np.errstate(all="ignore"):
                return np.array(self._call("ieee", self._ieee, arrays, arrays[3]), dtype=np.float64)

    def _evaluate_batch(self, arrays: list[npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
        """Evaluate a batch at once, shape (n, results); arguments without a batch axis hold for all."""
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
        """Call the printed function; what depends on parameters alone is evaluated again only when they change."""
        if not self._hoist:
            return tuple(functions["evaluate"](*arguments))
        key = p.tobytes()
        known = self._prepared.get(kind)
        if known is None or known[0] != key:
            known = self._prepared[kind] = (key, functions["evaluate_prepare"](arguments[3]))
        return tuple(functions["evaluate"](*arguments, known[1]))


def _execute_source(code: Any, names: dict[str, Any]) -> dict[str, Callable[..., Any]]:
    """Execute printed source and return its names."""
    namespace = dict(names)
    exec(code, namespace)  # noqa: S102 (our own printed source)
    return namespace
