"""Arrays that a model declares: each is one variable in FMUs of FMI 3.0."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sympy as sm


@dataclass(frozen=True, slots=True)
class DeclaredArray:
    """An array as the user wrote it; see :meth:`mb2fmu.Model.array`.

    Attributes:
        name: Of the array.
        elements: Symbols or names of variables, the last index running fastest.
        shape: Sizes of its dimensions.
        description: One line.
        where: ``file:line``.
    """

    name: str
    elements: tuple[sm.Expr | str, ...]
    shape: tuple[int, ...]
    description: str = ""
    where: str = ""


def array_shape(elements: Sequence[object], shape: Sequence[int] | None) -> tuple[int, ...]:
    """Return the shape as declared, or that of a list."""
    return (len(elements),) if shape is None else tuple(int(size) for size in shape)
