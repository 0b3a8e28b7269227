"""Where links are and how they move, written out in coordinates and speeds: rigid gaps and rows need the slopes.

Expressions share their subexpressions: as graphs they grow with the number of joints, as text exponentially. So they
are differentiated, replaced and evaluated by functions that visit each subexpression once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import sympy as sm

from mb2fmu.mechanics.mechanism.records.frame_and_point_records import Components, Frame, KinematicPoint, VectorTerms
from mb2fmu.mechanics.mechanism.records.mechanism_records import KinematicVectorSymbols
from mb2fmu.mechanics.mechanism.records.symbol_replacement_and_derivatives import differentiate_along_rates
from mb2fmu.robots.tree.exact_sympy_components import ZERO


def write_out_link_motion(
    motion_vectors: Iterable[KinematicVectorSymbols],
    frames: Sequence[Frame],
    points: Sequence[KinematicPoint],
    rates: Mapping[sm.Symbol, sm.Expr],
) -> dict[sm.Symbol, sm.Expr]:
    """Return the symbols of positions, velocities and angular velocities → expressions of q, u, inputs and time.

    Args:
        motion_vectors: What the symbols stand for, components in the ground's axes, m, m/s and rad/s.
        frames: Of the mechanism.
        points: Of the mechanism; all are located.
        rates: Moving symbols of positions → their derivatives by time, linear in the speeds.
    """
    written: dict[sm.Symbol, sm.Expr] = {}
    for vector in motion_vectors:
        if vector.kind == "angular velocity":
            components = _sum_in_ground(frames, _list_turning_terms(frames, vector.point_or_frame))
        else:
            components = _sum_in_ground(frames, _list_position_terms(points, vector.point_or_frame))
        if vector.kind == "velocity":
            x, y, z = (differentiate_along_rates(component, rates) for component in components)
            components = (x, y, z)
        written.update(zip(vector.symbols, components, strict=True))
    return written


def express_in_parent_frame(frame: Frame, vector: Components) -> Components:
    """Turn components from a frame's axes into those of its parent."""
    matrix = frame.rotation
    x, y, z = (sparse_dot_product((matrix[i, 0], matrix[i, 1], matrix[i, 2]), vector) for i in range(3))
    return x, y, z


def sparse_dot_product(a: Components, b: Components) -> sm.Expr:
    """Return the dot product; terms that are zero are left out."""
    return sm.Add(*(x * y for x, y in zip(a, b, strict=True) if x != 0 and y != 0))


def _sum_in_ground(frames: Sequence[Frame], terms: Iterable[tuple[int, Components]]) -> Components:
    """Return the sum of terms (frame, components) in the ground's axes.

    From the outermost frame inwards, each step adds what lies in the frame and turns the sum: every rotation once.
    """
    sums: dict[int, Components] = {0: ZERO}
    for frame, vector in terms:
        sums[frame] = _add(sums.get(frame, ZERO), vector)
    while outermost := max(sums):  # parents have smaller numbers
        turned, parent = express_in_parent_frame(frames[outermost], sums.pop(outermost)), frames[outermost].parent
        sums[parent] = _add(sums.get(parent, ZERO), turned)
    return sums[0]


def _add(a: Components, b: Components) -> Components:
    """Return the sum of two vectors in one frame."""
    x, y, z = (i + j for i, j in zip(a, b, strict=True))
    return x, y, z


def _list_position_terms(points: Sequence[KinematicPoint], point: int) -> VectorTerms:
    """Return the terms of a point's position from the origin."""
    terms: list[tuple[int, Components]] = []
    while point > 0:
        terms += points[point].position or ()
        point = points[point].parent
    return tuple(terms)


def _list_turning_terms(frames: Sequence[Frame], frame: int) -> VectorTerms:
    """Return the terms of a frame's angular velocity in the ground."""
    terms: list[tuple[int, Components]] = []
    while frame > 0:
        terms += frames[frame].angular_velocity
        frame = frames[frame].parent
    return tuple(terms)
