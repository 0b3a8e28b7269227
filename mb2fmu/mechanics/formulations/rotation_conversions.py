"""Quaternions and Euler angles out of a direction cosine matrix.

Conventions as in docs/notation.md: ``A_C_B`` takes components in B to components in A; quaternion (w, x, y, z), unit
length, w >= 0; Euler angles of a body-fixed sequence ijk: ``A_C_B`` = R_i(a) R_j(b) R_k(c).
"""

from __future__ import annotations

import sympy as sm


def quaternion_from_matrix(C: sm.ImmutableMatrix) -> tuple[sm.Expr, sm.Expr, sm.Expr, sm.Expr]:
    """Return unit quaternion of a direction cosine matrix.

    The largest of the four components is taken from the diagonal and the others from it, so that nothing is lost by
    cancellation anywhere (Shepperd, J. Guidance and Control 1, 1978, 223-224).
    """
    trace = C[0, 0] + C[1, 1] + C[2, 2]
    squares = [1 + trace, *(1 + 2 * C[i, i] - trace for i in range(3))]  # 4w², 4x², 4y², 4z²
    off = (C[2, 1] - C[1, 2], C[0, 2] - C[2, 0], C[1, 0] - C[0, 1])
    both = {(0, 1): C[0, 1] + C[1, 0], (0, 2): C[0, 2] + C[2, 0], (1, 2): C[1, 2] + C[2, 1]}
    candidates = [[squares[0], *off]]
    for i in range(3):
        row = [off[i], *(squares[1 + i] if j == i else both[min(i, j), max(i, j)] for j in range(3))]
        sign = sm.Piecewise((1, off[i] >= 0), (-1, True))
        candidates.append([sign * part for part in row])
    # The largest square is at least 1; the others, whose branches are not taken, must not divide by zero either.
    scales = [1 / (2 * sm.sqrt(sm.Max(square, 1))) for square in squares]
    parts = []
    for part in range(4):
        branches = []
        for i in range(4):
            condition = sm.And(*(squares[i] >= squares[j] for j in range(4) if j != i)) if i < 3 else sm.true
            branches.append((candidates[i][part] * scales[i], condition))
        parts.append(sm.Piecewise(*branches))
    return (parts[0], parts[1], parts[2], parts[3])


def euler_angles_from_matrix(C: sm.ImmutableMatrix, sequence: str) -> tuple[sm.Expr, sm.Expr, sm.Expr]:
    """Return angles of a body-fixed sequence.

    Args:
        C: ``A_C_B``.
        sequence: Three axes such as ``zxy`` or ``313``, neighbours different.

    Returns:
        (a, b, c) in rad: a, c in (-π, π]; b in [-π/2, π/2] for three different axes, in [0, π] otherwise.

    Raises:
        ValueError: If it is no sequence of axes.
    """
    axes = sequence.lower().translate(str.maketrans("123", "xyz"))
    if len(axes) != 3 or set(axes) - set("xyz") or axes[0] == axes[1] or axes[1] == axes[2]:
        raise ValueError(f"{sequence!r} is not a body-fixed rotation sequence")
    i, j, k = ("xyz".index(axis) for axis in axes)
    if i != k:
        e = sm.LeviCivita(i, j, k)
        return sm.atan2(-e * C[j, k], C[k, k]), sm.asin(e * C[i, k]), sm.atan2(-e * C[i, j], C[i, i])
    third = 3 - i - j
    e = sm.LeviCivita(i, j, third)
    return sm.atan2(C[j, i], -e * C[third, i]), sm.acos(C[i, i]), sm.atan2(C[i, j], e * C[i, third])
