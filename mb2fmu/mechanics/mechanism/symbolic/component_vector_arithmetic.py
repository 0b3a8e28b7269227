"""Vectors as three components in one frame: sums, products, lengths."""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sm

from mb2fmu.mechanics.mechanism.records.mechanism_records import Components
from mb2fmu.model.supported_functions import NoEvent

ZERO: Components = (sm.S.Zero, sm.S.Zero, sm.S.Zero)


def add_vector_components(a: Components, b: Components) -> Components:
    """Return a + b."""
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


def scale_components(factor: sm.Expr, a: Components) -> Components:
    """Return factor · a by components."""
    x, y, z = (sm.S.Zero if component is sm.S.Zero else factor * component for component in a)
    return (x, y, z)


def dot_product(a: Sequence[sm.Expr], b: Components) -> sm.Expr:
    """Return a · b."""
    return sm.Add(*(x * y for x, y in zip(a, b, strict=True) if x is not sm.S.Zero and y is not sm.S.Zero))


def cross_product(a: Components, b: Components) -> Components:
    """Return a × b."""
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def multiply_matrix_by_vector(matrix: sm.MatrixBase, a: Components) -> Components:
    """Return matrix @ a."""
    entries = matrix.flat()
    return (dot_product(entries[0:3], a), dot_product(entries[3:6], a), dot_product(entries[6:9], a))


def vector_length(square: sm.Expr) -> sm.Expr:
    """Return the root of a sum of squares; of a single square without Abs, whose kink would be an event."""
    length = sm.sqrt(square)
    return NoEvent(length) if length.has(sm.Abs) else length
