"""Description of an FMU: passed from the generated part to the fixed part."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Function = Callable[..., Sequence[float]]
"""An entry point: (t, x, r, p, m, s, h) → values, where h is what depends on p only."""

Entries = Mapping[str, tuple[Function, Function]]
"""Name → (function, function that computes h from p)."""


@dataclass(frozen=True, slots=True)
class SettableValue:
    """A stored value that an importer may set.

    Attributes:
        name: Of the variable.
        start: Value until it is set.
        nominal: Typical magnitude, > 0.
        tunable: For parameters: may be changed after initialization.
        approximate: For states: the start value is a guess, solved for in Initialization Mode.
    """

    name: str
    start: float
    nominal: float = 1.0
    tunable: bool = False
    approximate: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """The FMU.

    Attributes:
        name: Model identifier.
        token: UUID.
        states: x.
        inputs: r.
        parameters: p.
        variables: Value reference → (name of the vector or entry point, index in it).
        solver: ``explicit``, ``implicit`` or ``fixed``.
        tolerance: Relative, unless the importer gives another.
        internal_step: Of the fixed-step solver, s; 0.0: the communication step.
        jacobian: (row, column) of each result of the entry point ``jacobian``, which only the implicit solver has:
        columns are the states and then time; the other elements are 0.
        memory: What is remembered from one accepted step to the next, as it is at first.
        entries: With arithmetic on floats, which raises where IEEE arithmetic gives inf or NaN.
        careful_entries: With arithmetic that gives inf and NaN; slower.
        singular: What both raise where a linear solve fails.
    """

    name: str
    token: str
    states: tuple[SettableValue, ...]
    inputs: tuple[SettableValue, ...]
    parameters: tuple[SettableValue, ...]
    variables: Mapping[int, tuple[str, int]]
    solver: str
    tolerance: float
    internal_step: float
    jacobian: tuple[tuple[int, int], ...]
    memory: tuple[float, ...]
    entries: Entries
    careful_entries: Entries
    singular: type[Exception]
