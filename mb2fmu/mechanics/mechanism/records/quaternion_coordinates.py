"""Coordinates that form a quaternion: q' draws their length to 1, and the length never affects the motion.

Four coordinates e that turn a frame by R(e) with R Rᵀ = |e|⁴ 1 (SymPy's ``orient_quaternion``), or already normalised,
are recognized by their numbers. Then

- the rotation is R / |e|², orthonormal and smooth wherever e ≠ 0,
- q' = K u is made linear in the length (K = E(e)/2 of Euler's parameters), so that the length does not change the way
  the frame turns,
- a term is added along e: e' = E(e) ω / 2 + k (1 − e·e) e, with k = 1/s; |e| = 1 attracts every other length (except
  0), without events, and on it nothing has changed: e·E(e) = 0,
- constraints are written in e / |e|, so that no loop is closed by a length other than 1, of which bodies know nothing.

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

UNIT_LENGTH_RATE = sm.Integer(1)
"""k in 1/s."""

_TEST_POINT = (0.9, -0.4, 0.7, 0.3)  # any place off the unit sphere
_LENGTH_FACTOR = 1.3
_ZERO_TOLERANCE = 1e-12  # of expressions of symbols that are about 1

QuaternionGroup = tuple[int, int, int, int]
"""Indices of the coordinates, in their order."""


def find_quaternions(rotations: Iterable[sm.MatrixBase], q: Sequence[sm.Symbol]) -> tuple[QuaternionGroup, ...]:
    """Return the coordinates that form quaternions, one group each."""
    found: dict[QuaternionGroup, None] = {}
    for rotation in rotations:
        group = _find_quaternion(rotation, q)
        if group is not None and _length_degree(rotation, _quaternion_symbols(group, q)) is not None:
            found[group] = None
    return tuple(found)


def stabilize_unit_length(
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
        e = _quaternion_symbols(group, q)
        square = sm.Add(*(c**2 for c in e))
        for k in set(range(len(q))) - set(group):
            K[k, :] = K[k, :].applyfunc(lambda entry, e=e: _free_of_length(entry, e))
            k0[k] = _free_of_length(k0[k], e)
        rates = [sm.Add(*(K[k, j] * u[j] for j in range(len(u)) if K[k, j] != 0), k0[k]) for k in group]
        here, there = _evaluate_at_test_point(rates, e), _evaluate_at_test_point(rates, e, _LENGTH_FACTOR)
        if abs(here @ np.array(_TEST_POINT)) > 1e-9 * np.linalg.norm(here):
            continue
        if np.allclose(there * _LENGTH_FACTOR, here, rtol=1e-9, atol=0):
            for k in group:
                K[k, :] = K[k, :] * square
                k0[k] = k0[k] * square
        for k, component in zip(group, e, strict=True):
            k0[k] += attraction * (1 - square) * component
    return replace(kinematics, matrix=sm.ImmutableMatrix(K), offset=sm.ImmutableMatrix(k0))


def normalize_quaternions(expression: sm.Expr, groups: Iterable[QuaternionGroup], q: Sequence[sm.Symbol]) -> sm.Expr:
    """Return the expression with e / |e| for each quaternion e in it."""
    for group in groups:
        e = _quaternion_symbols(group, q)
        if expression.free_symbols & set(e):
            length = sm.sqrt(sm.Add(*(c**2 for c in e)))
            expression = expression.xreplace({c: c / length for c in e})
    return expression


def _free_of_length(expression: sm.Expr, e: Sequence[sm.Symbol]) -> sm.Expr:
    """Return what an expression is for e / |e|: times a power of |e|² where it grows with one."""
    if not expression.free_symbols & set(e):
        return expression
    square = sm.Add(*(c**2 for c in e))
    here, there = _evaluate_at_test_point([expression], e), _evaluate_at_test_point([expression], e, _LENGTH_FACTOR)
    for power in (0, -1, 1, -2, 2):
        if np.allclose(there, here * _LENGTH_FACTOR ** (2 * power), rtol=1e-9, atol=0):
            return expression / square**power if power else expression
    length = sm.sqrt(square)
    return expression.xreplace({c: c / length for c in e})


def vanishes_at_unit_length(expression: sm.Expr, groups: Iterable[QuaternionGroup], q: Sequence[sm.Symbol]) -> bool:
    """Return whether an expression contains a quaternion and is zero all the same: e·e − 1, or e·e' of a rotation."""
    symbols = [e for group in groups if expression.free_symbols & set(e := _quaternion_symbols(group, q))]
    return bool(symbols) and abs(float(_evaluate_at_test_point([expression], symbols[0])[0])) < _ZERO_TOLERANCE


def normalize_frames(
    frames: Iterable[Frame], groups: Iterable[QuaternionGroup], q: Sequence[sm.Symbol]
) -> tuple[Frame, ...]:
    """Return frames whose rotations are orthonormal for any length of the quaternions."""
    known = set(groups)
    return tuple(
        _normalize_frame(frame, q) if _find_quaternion(frame.rotation, q) in known else frame for frame in frames
    )


def _normalize_frame(frame: Frame, q: Sequence[sm.Symbol]) -> Frame:
    """Return a frame whose rotation and angular velocity do not change with the quaternion's length."""
    group = _find_quaternion(frame.rotation, q)
    assert group is not None
    e = _quaternion_symbols(group, q)
    square = sm.Add(*(c**2 for c in e))
    rotation = frame.rotation
    if _length_degree(rotation, e) == 2:
        rotation = sm.ImmutableMatrix(rotation / square)
    spin = tuple((k, _scale_angular_velocity(components, e, square)) for k, components in frame.angular_velocity)
    return replace(frame, rotation=rotation, angular_velocity=spin)


def _scale_angular_velocity(components: Components, e: Sequence[sm.Symbol], square: sm.Expr) -> Components:
    """Return an angular velocity that grows with the square of the length, divided by it."""
    if not any(c.free_symbols & set(e) for c in components):
        return components
    here, there = _evaluate_at_test_point(components, e), _evaluate_at_test_point(components, e, _LENGTH_FACTOR)
    if not np.allclose(there, here * _LENGTH_FACTOR**2, rtol=1e-9, atol=0):
        return components
    return (components[0] / square, components[1] / square, components[2] / square)


def _find_quaternion(rotation: sm.MatrixBase, q: Sequence[sm.Symbol]) -> QuaternionGroup | None:
    """Return the four coordinates that a rotation is made of, and nothing else."""
    symbols = rotation.free_symbols
    if len(symbols) != 4:
        return None
    indices = [k for k, symbol in enumerate(q) if symbol in symbols]
    return (indices[0], indices[1], indices[2], indices[3]) if len(indices) == 4 else None


def _quaternion_symbols(group: QuaternionGroup, q: Sequence[sm.Symbol]) -> list[sm.Symbol]:
    """Return the four coordinates of a quaternion, in its order."""
    return [q[k] for k in group]


def _length_degree(rotation: sm.MatrixBase, e: Sequence[sm.Symbol]) -> int | None:
    """Return 2 if R Rᵀ = |e|⁴ 1 (R grows with |e|²), 0 if R is orthonormal for any length, None otherwise."""
    here, there = (_evaluate_at_test_point(rotation, e, longer).reshape(3, 3) for longer in (1.0, _LENGTH_FACTOR))
    square = sum(c**2 for c in _TEST_POINT)
    for degree in (2, 0):
        orthogonal = np.allclose(here @ here.T, square**degree * np.eye(3), rtol=1e-9, atol=1e-9)
        if orthogonal and np.allclose(there, here * _LENGTH_FACTOR**degree, rtol=1e-9, atol=1e-9):
            return degree
    return None


def _evaluate_at_test_point(
    expressions: Iterable[sm.Expr], e: Sequence[sm.Symbol], longer: float = 1.0
) -> npt.NDArray[np.float64]:
    """Return values at one place; all other symbols get some value each."""
    wanted = [sm.sympify(x) for x in expressions]
    others = sorted({s for x in wanted for s in x.free_symbols} - set(e), key=str)
    values: Mapping[sm.Symbol, float] = {
        **{s: 0.3 + 0.17 * i for i, s in enumerate(others)},
        **{s: longer * value for s, value in zip(e, _TEST_POINT, strict=True)},
    }
    evaluate = sm.lambdify([*e, *others], wanted, modules="numpy")
    return np.array(evaluate(*(values[s] for s in (*e, *others))), dtype=float)
