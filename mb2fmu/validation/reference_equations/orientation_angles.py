"""Angles and quaternions of direction cosines: the reference's own formulas."""

from __future__ import annotations

import sympy as sm


def unit_quaternion(R: sm.MatrixBase) -> tuple[sm.Expr, ...]:
    """Return (w, x, y, z) with w ≥ 0 of a rotation ``A_C_B``.

    Four times the product of each two components stands in the matrix; a row of these products, divided by the root of
    its own diagonal entry, is the quaternion up to its sign (Shepperd, J. Guidance and Control 1, 1978, 223-224). The
    row with the largest entry is taken.
    """
    trace = R[0, 0] + R[1, 1] + R[2, 2]
    w = [1 + trace, R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]
    products = sm.zeros(4, 4)
    for i in range(4):
        products[0, i] = products[i, 0] = w[i]
    for i in range(3):
        for j in range(3):
            products[1 + i, 1 + j] = R[i, j] + R[j, i] if i != j else 1 + 2 * R[i, i] - trace
    largest = [sm.And(*(products[i, i] >= products[j, j] for j in range(4) if j != i)) for i in range(3)]
    parts = []
    for part in range(4):
        branches = []
        for i in range(4):
            sign = sm.Piecewise((1, products[i, 0] >= 0), (-1, True)) if i else sm.S.One
            value = sign * products[i, part] / (2 * sm.sqrt(sm.Max(products[i, i], 1)))
            branches.append((value, largest[i] if i < 3 else sm.true))
        parts.append(sm.Piecewise(*branches))
    return tuple(parts)


def euler_angles(R: sm.MatrixBase, sequence: str) -> tuple[sm.Expr, sm.Expr, sm.Expr]:
    """Return angles (a, b, c) in rad of a body-fixed sequence such as ``zxy`` or ``313``, for ``A_C_B``.

    a and c lie in (-π, π], b in [-π/2, π/2] for three different axes and in [0, π] otherwise. b comes from an
    arctangent, which loses no digits near the ends of its range.
    """
    i, j, k = ("xyz".index(axis) for axis in sequence.lower().translate(str.maketrans("123", "xyz")))
    if i != k:
        e = sm.LeviCivita(i, j, k)
        b = sm.atan2(e * R[i, k], sm.sqrt(R[i, i] ** 2 + R[i, j] ** 2))
        return sm.atan2(-e * R[j, k], R[k, k]), b, sm.atan2(-e * R[i, j], R[i, i])
    third = 3 - i - j
    e = sm.LeviCivita(i, j, third)
    b = sm.atan2(sm.sqrt(R[i, j] ** 2 + R[i, third] ** 2), R[i, i])
    return sm.atan2(R[j, i], -e * R[third, i]), b, sm.atan2(R[i, j], e * R[i, third])
