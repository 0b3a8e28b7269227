"""Evaluate the generated entry points: fast where values are regular, by IEEE rules where they are not."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .description import Description, Function
from .failures import UndefinedValueError

Numbers = Sequence[float]
_NONE: tuple[float, ...] = ()


class Equations:
    """Entry points for one set of parameters; values that depend on these only are computed once.

    Args:
        description: Of the FMU.
        parameters: Values of the free parameters, copied.
    """

    def __init__(self, description: Description, parameters: Numbers) -> None:
        self._description = description
        self._parameters = tuple(parameters)
        self._prepared: dict[str, tuple[Function, Numbers]] = {}

    def __call__(self, entry: str, t: float, x: Numbers, r: Numbers, m: Numbers = _NONE) -> Numbers:
        """Return all results of an entry point.

        Args:
            entry: Its name.
            t: Time, s.
            x: State.
            r: Inputs.
            m: Discrete memory.

        Raises:
            UndefinedValueError: If one of them has no finite value here.
        """
        try:
            try:
                function, prepared = self._prepared.get(entry) or self._prepare(entry)
                values = function(t, x, r, self._parameters, m, _NONE, prepared)
            except (ArithmeticError, ValueError):
                # The branch of a selection that is not taken may be undefined: decide with inf and NaN.
                values = self._careful(entry, t, x, r, m)
        except self._description.singular as singular:
            raise UndefinedValueError(str(singular)) from singular
        if not all(map(math.isfinite, values)):
            raise UndefinedValueError(f"{entry} has no finite value at {t!r} s")
        return values

    def _prepare(self, entry: str) -> tuple[Function, Numbers]:
        """Evaluate what depends on parameters alone, once, and keep it for this entry."""
        function, prepare = self._description.entries[entry]
        self._prepared[entry] = function, prepare(self._parameters)
        return self._prepared[entry]

    def _careful(self, entry: str, t: float, x: Numbers, r: Numbers, m: Numbers) -> Numbers:
        """Evaluate by NumPy's rules, where division by zero gives inf or NaN and does not raise."""
        function, prepare = self._description.careful_entries[entry]
        with np.errstate(all="ignore"):
            arrays = [np.asarray(values, dtype=np.float64) for values in (x, r, self._parameters, m)]
            values = function(np.float64(t), *arrays, _NONE, prepare(arrays[2]))
            return [float(value) for value in values]
