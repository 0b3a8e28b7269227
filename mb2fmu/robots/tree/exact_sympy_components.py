"""Numbers of a robot's file as components in SymPy: the same bits, and 0 and ±1 as integers that products drop."""

from __future__ import annotations

from collections.abc import Iterable

import sympy as sm

from mb2fmu.mechanics.mechanism.records.frame_and_point_records import Components
from mb2fmu.robots.description.robot_description import Array

ZERO: Components = (sm.S.Zero, sm.S.Zero, sm.S.Zero)


def make_exact_sympy_number(value: float) -> sm.Expr:
    """Return a double as a SymPy number: the same bits, and 0, ±1 as integers that products drop."""
    return sm.Integer(int(value)) if value in (0.0, 1.0, -1.0) else sm.Float(value)


def read_constant_vector_components(vector: Iterable[float]) -> Components:
    """Return three numbers."""
    x, y, z = (make_exact_sympy_number(float(c)) for c in vector)
    return (x, y, z)


def exact_rotation_matrix(rotation: Array) -> sm.ImmutableMatrix:
    """Return a constant rotation."""
    return sm.ImmutableMatrix(3, 3, [make_exact_sympy_number(float(c)) for c in rotation.flat])


def axis_vector(axis: int, value: sm.Expr) -> Components:
    """Return a vector along one coordinate axis."""
    found = list(ZERO)
    found[axis] = value
    return (found[0], found[1], found[2])


def axis_rotation(axis: int, c: sm.Expr, s: sm.Expr) -> sm.ImmutableMatrix:
    """Return the rotation about a coordinate axis: components in the turned frame → those in the frame before."""
    i, j = (axis + 1) % 3, (axis + 2) % 3
    rotation = sm.eye(3)
    rotation[i, i] = rotation[j, j] = c
    rotation[i, j], rotation[j, i] = -s, s
    return sm.ImmutableMatrix(rotation)
