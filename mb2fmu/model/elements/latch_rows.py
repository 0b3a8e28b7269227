"""Connections that a latch can hold, as position rows: point on point, hinge, weld."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import sympy as sm
from sympy.core.function import AppliedUndef
from sympy.physics.mechanics import Point, ReferenceFrame
from sympy.physics.vector import Vector

from mb2fmu.model.sources.sympy_cache_guard import list_vector_frames, restore_sympy_caches

_AXES = "xyz"


@dataclass(frozen=True, slots=True)
class LatchRow:
    """One row of a latch.

    Attributes:
        position: An expression of coordinates, parameters and time.
        unit: ``m`` or ``rad``.
        label: Behind the names of its force and impulse: ``x`` gives ``hook.force_x``; empty: nothing.
    """

    position: sm.Expr
    unit: str = "m"
    label: str = ""

    @property
    def effort(self) -> str:
        """``force`` or ``torque``."""
        return "force" if self.unit == "m" else "torque"

    @property
    def effort_unit(self) -> str:
        """The unit of the force or torque."""
        return "N" if self.unit == "m" else "N.m"


def point_on_point_rows(first: Point, second: Point, frame: ReferenceFrame) -> list[LatchRow]:
    """Return rows for ``second`` relative to ``first`` along the axes of ``frame``, without axes that never move.

    Where points are held at a distance take a frame of one of both bodies: forces between them then have no moment
    beside what turns with it, so that angular momentum stays.
    """
    with restore_sympy_caches([frame, first, second]):
        offset = second.pos_from(first)
        return [*_movable_rows((offset.dot(axis), "m", label) for axis, label in zip(frame, _AXES, strict=True))]


def hinge_rows(first: Point, second: Point, axis: Vector, along: Vector) -> list[LatchRow]:
    """Return rows that hold ``second`` at ``first``, and ``along`` at ``axis``, about which it may turn.

    Args:
        first: Fixed in the frame of ``axis``.
        second: Fixed in the frame of ``along``.
        axis: Of the first body, a vector of one frame.
        along: Of the second body.
    """
    frame = axis.args[0][1]
    rows = point_on_point_rows(first, second, frame)
    with restore_sympy_caches([frame, *list_vector_frames(along)]):
        across = _perpendicular_directions(axis, frame)
        turns = ((each.dot(along), "rad", f"across_{i}") for i, each in enumerate(across, start=1))
        return [*rows, *_movable_rows(turns)]


def weld_rows(first: Point, second: Point, frame: ReferenceFrame, other: ReferenceFrame) -> list[LatchRow]:
    """Return rows that hold ``second`` at ``first``, and the orientation of ``other`` in ``frame``.

    The turn is held by half the skew part of the direction cosines, whose rate is the angular velocity where the frames
    are parallel; it must be less than 90 degrees where the latch closes.

    Args:
        first: Fixed in ``frame``.
        second: Fixed in ``other``.
        frame: Of the first body.
        other: Of the second body.
    """
    rows = point_on_point_rows(first, second, frame)
    with restore_sympy_caches([frame, other]):
        a, c = [*frame], [*other]
        cyclic = ((1, 2), (2, 0), (0, 1))
        turns = (((a[j].dot(c[i]) - a[i].dot(c[j])) / 2, "rad", _AXES[k]) for k, (i, j) in enumerate(cyclic))
        return [*rows, *_movable_rows(turns)]


def _movable_rows(rows: Iterable[tuple[sm.Expr, str, str]]) -> Iterator[LatchRow]:
    """Yield the rows that some coordinate changes."""
    for expression, unit, label in rows:
        plain = sm.sympify(expression)
        if plain.atoms(AppliedUndef):
            plain = sm.trigsimp(plain) if sm.count_ops(plain) < _MAX_SIMPLIFIED_OPERATIONS else plain
        if plain.atoms(AppliedUndef):
            yield LatchRow(plain, unit, label)


def _perpendicular_directions(axis: Vector, frame: ReferenceFrame) -> tuple[Vector, Vector]:
    """Return two directions of the frame that are normal to an axis of it."""
    least = min(frame, key=lambda each: abs(float(axis.dot(each))))
    first = axis.cross(least).normalize()
    return first, axis.cross(first).normalize()


_MAX_SIMPLIFIED_OPERATIONS = 60
"""Operations up to which an expression is simplified, so that what is zero all the time is seen."""
