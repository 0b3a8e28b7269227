"""Coordinates that form a quaternion: q' drives their length to 1, and the length never affects the motion.

Four coordinates e that turn a frame by R(e) with R Rᵀ = |e|⁴ 1 (SymPy's ``orient_quaternion``), or already normalised,
are recognized by their numbers. Then

- the rotation is R / |e|², orthonormal and smooth wherever e ≠ 0,
- q' = K u is made linear in the length (K = E(e)/2 of Euler's parameters), so that the length does not change the way
  the frame turns,
- a term is added along e: e' = E(e) ω / 2 + k (1 − e·e) e, with k = 1/s; |e| = 1 attracts every other length (except
  0), without events, and on it nothing has changed: e·E(e) = 0,
- constraints are written in e / |e|, so that no loop is closed by a length other than 1.

An explicit step of size h lets |e|² grow by (h ω / 2)²; with the attractor it settles at 1 + h ω²/(8 k).

Source: stabilization of invariants by a term along their gradient, U. M. Ascher, H. Chin, S. Reich, Stabilization of
DAEs and invariant manifolds, Numerische Mathematik 67, 1994, 131-149; Euler parameters: A. A. Shabana, Dynamics of
Multibody Systems, 2013, ch. 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import sympy as sm

from mb2fmu.mechanics.equations.equations_of_motion import KinematicEquations
from mb2fmu.mechanics.mechanism.records.mechanism_records import Components, Frame
from mb2fmu.model.numpy_lambdify import lambdify_for_numpy

UNIT_LENGTH_RATE = sm.Integer(1)
"""k in 1/s."""

_TEST_POINT = (0.9, -0.4, 0.7, 0.3)  # any place off the unit sphere
_LENGTH_FACTOR = 1.3
_ZERO_TOLERANCE = 1e-12  # of expressions of symbols that are about 1

QuaternionGroup = tuple[int, int, int, int]
"""Indices of the coordinates, in their order."""


def find_quaternion_coordinates(
    rotations: Iterable[sm.MatrixBase], q: Sequence[sm.Symbol]
) -> tuple[QuaternionGroup, ...]:
    """Return the coordinates that form quaternions, one group each."""
    groups: dict[QuaternionGroup, None] = {}
    for rotation in rotations:
        group = _find_quaternion(rotation, q)
        if group is not None and _length_degree(rotation, _quaternion_symbols(group, q)) is not None:
            groups[group] = None
    return tuple(groups)


def stabilize_quaternion_length(
    kinematics: KinematicEquations,
    groups: Iterable[QuaternionGroup],
    q: Sequence[sm.Symbol],
    u: Sequence[sm.Symbol],
    attraction: sm.Expr = UNIT_LENGTH_RATE,
) -> KinematicEquations:
    """Return q' = K u + k0 with the attractor, K linear in the length of each quaternion, other rates free of it.

    Equations that already have a part along the quaternion are left as they are. ``attraction``: k in 1/s; with 0 the
    rates of all that does not depend on the length.
    """
    K, k0 = sm.MutableDenseMatrix(kinematics.matrix), sm.MutableDenseMatrix(kinematics.offset)
    for group in groups:
        quaternion = _quaternion_symbols(group, q)
        square = sm.Add(*(c**2 for c in quaternion))
        for k in set(range(len(q))) - set(group):
            K[k, :] = K[k, :].applyfunc(lambda entry, e=quaternion: _free_of_length(entry, e))
            k0[k] = _free_of_length(k0[k], quaternion)
        rates = [sm.Add(*(K[k, j] * u[j] for j in range(len(u)) if K[k, j] != 0), k0[k]) for k in group]
        values, values_at_larger_length = (
            _evaluate_at_test_point(rates, quaternion),
            _evaluate_at_test_point(rates, quaternion, _LENGTH_FACTOR),
        )
        if abs(values @ np.array(_TEST_POINT)) > 1e-9 * np.linalg.norm(values):
            continue
        if np.allclose(values_at_larger_length * _LENGTH_FACTOR, values, rtol=1e-9, atol=0):
            for k in group:
                K[k, :] = K[k, :] * square
                k0[k] = k0[k] * square
        for k, component in zip(group, quaternion, strict=True):
            k0[k] += attraction * (1 - square) * component
    return replace(kinematics, matrix=sm.ImmutableMatrix(K), offset=sm.ImmutableMatrix(k0))


def substitute_unit_quaternions(
    expression: sm.Expr, groups: Iterable[QuaternionGroup], q: Sequence[sm.Symbol]
) -> sm.Expr:
    """Return the expression with e / |e| for each quaternion e in it."""
    for group in groups:
        quaternion = _quaternion_symbols(group, q)
        if expression.free_symbols & set(quaternion):
            length = sm.sqrt(sm.Add(*(component**2 for component in quaternion)))
            expression = expression.xreplace({component: component / length for component in quaternion})
    return expression


def _free_of_length(expression: sm.Expr, quaternion: Sequence[sm.Symbol]) -> sm.Expr:
    """Return an expression for e / |e|, divided by a power of |e|² if it is proportional to one."""
    if not expression.free_symbols & set(quaternion):
        return expression
    square = sm.Add(*(component**2 for component in quaternion))
    values, values_at_larger_length = (
        _evaluate_at_test_point([expression], quaternion),
        _evaluate_at_test_point([expression], quaternion, _LENGTH_FACTOR),
    )
    for power in (0, -1, 1, -2, 2):
        if np.allclose(values_at_larger_length, values * _LENGTH_FACTOR ** (2 * power), rtol=1e-9, atol=0):
            return expression / square**power if power else expression
    length = sm.sqrt(square)
    return expression.xreplace({component: component / length for component in quaternion})


def vanishes_for_unit_quaternion(
    expression: sm.Expr, groups: Iterable[QuaternionGroup], q: Sequence[sm.Symbol]
) -> bool:
    """Return whether an expression of a quaternion is zero at unit length: e·e − 1, or e·e' of a rotation."""
    symbols = [
        quaternion for group in groups if expression.free_symbols & set(quaternion := _quaternion_symbols(group, q))
    ]
    return bool(symbols) and abs(float(_evaluate_at_test_point([expression], symbols[0])[0])) < _ZERO_TOLERANCE


def make_rotations_length_independent(
    frames: Iterable[Frame], groups: Iterable[QuaternionGroup], q: Sequence[sm.Symbol]
) -> tuple[Frame, ...]:
    """Return frames whose rotations are orthonormal for any length of the quaternions."""
    group_set = set(groups)
    return tuple(
        _normalize_frame(frame, q) if _find_quaternion(frame.rotation, q) in group_set else frame for frame in frames
    )


def _normalize_frame(frame: Frame, q: Sequence[sm.Symbol]) -> Frame:
    """Return a frame whose rotation and angular velocity do not change with the quaternion's length."""
    group = _find_quaternion(frame.rotation, q)
    assert group is not None
    quaternion = _quaternion_symbols(group, q)
    square = sm.Add(*(component**2 for component in quaternion))
    rotation = frame.rotation
    if _length_degree(rotation, quaternion) == 2:
        rotation = sm.ImmutableMatrix(rotation / square)
    angular_velocity = tuple(
        (k, _scale_angular_velocity(components, quaternion, square)) for k, components in frame.angular_velocity
    )
    return replace(frame, rotation=rotation, angular_velocity=angular_velocity)


def _scale_angular_velocity(components: Components, quaternion: Sequence[sm.Symbol], square: sm.Expr) -> Components:
    """Return an angular velocity that grows with the square of the length, divided by it."""
    if not any(component.free_symbols & set(quaternion) for component in components):
        return components
    values, values_at_larger_length = (
        _evaluate_at_test_point(components, quaternion),
        _evaluate_at_test_point(components, quaternion, _LENGTH_FACTOR),
    )
    if not np.allclose(values_at_larger_length, values * _LENGTH_FACTOR**2, rtol=1e-9, atol=0):
        return components
    return (components[0] / square, components[1] / square, components[2] / square)


def _find_quaternion(rotation: sm.MatrixBase, q: Sequence[sm.Symbol]) -> QuaternionGroup | None:
    """Return the four coordinates of a rotation that depends on four coordinates only."""
    symbols = rotation.free_symbols
    if len(symbols) != 4:
        return None
    indices = [k for k, symbol in enumerate(q) if symbol in symbols]
    return (indices[0], indices[1], indices[2], indices[3]) if len(indices) == 4 else None


def _quaternion_symbols(group: QuaternionGroup, q: Sequence[sm.Symbol]) -> list[sm.Symbol]:
    """Return the four coordinates of a quaternion, in its order."""
    return [q[index] for index in group]


def _length_degree(rotation: sm.MatrixBase, quaternion: Sequence[sm.Symbol]) -> int | None:
    """Return 2 if R Rᵀ = |e|⁴ 1 (R grows with |e|²), 0 if R is orthonormal for any length, None otherwise."""
    values, values_at_larger_length = (
        _evaluate_at_test_point(rotation, quaternion, length_factor).reshape(3, 3)
        for length_factor in (1.0, _LENGTH_FACTOR)
    )
    square = sum(component**2 for component in _TEST_POINT)
    for degree in (2, 0):
        orthogonal = np.allclose(values @ values.T, square**degree * np.eye(3), rtol=1e-9, atol=1e-9)
        if orthogonal and np.allclose(values_at_larger_length, values * _LENGTH_FACTOR**degree, rtol=1e-9, atol=1e-9):
            return degree
    return None


def _evaluate_at_test_point(
    expressions: Iterable[sm.Expr], quaternion: Sequence[sm.Symbol], length_factor: float = 1.0
) -> npt.NDArray[np.float64]:
    """Return values at a test point; all other symbols get arbitrary values."""
    expression_list = [sm.sympify(expression) for expression in expressions]
    other_symbols = sorted(
        {symbol for expression in expression_list for symbol in expression.free_symbols} - set(quaternion), key=str
    )
    values: Mapping[sm.Symbol, float] = {
        **{symbol: 0.3 + 0.17 * i for i, symbol in enumerate(other_symbols)},
        **{symbol: length_factor * value for symbol, value in zip(quaternion, _TEST_POINT, strict=True)},
    }
    evaluate = lambdify_for_numpy([*quaternion, *other_symbols], expression_list)
    return np.array(evaluate(*(values[symbol] for symbol in (*quaternion, *other_symbols))), dtype=float)
