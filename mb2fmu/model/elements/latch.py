"""Latches: rows held from one condition until another; docking, gripping, release, separation of stages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import sympy as sm
from sympy.core.function import AppliedUndef
from sympy.logic.boolalg import Boolean
from sympy.physics.mechanics import Point, ReferenceFrame, dynamicsymbols
from sympy.physics.vector import Vector

from mb2fmu.errors import Fault
from mb2fmu.model.declarations.contact_and_latch_declaration_records import (
    DeclaredLatchConstraintRow,
    DeclaredMechanicalLatch,
)
from mb2fmu.model.elements.element_base_class import NamedElement
from mb2fmu.model.sources.frame_and_point_restoration import list_vector_frames, restore_frames_and_points

if TYPE_CHECKING:
    from mb2fmu.model import Model

_MAX_ROWS = 12
_MAX_SIMPLIFIED_OPERATIONS = 60
"""Operations up to which an expression is simplified, so that what is zero all the time is seen."""


@dataclass(frozen=True, slots=True)
class LatchConstraintRow:
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


def _make_coincident_point_rows(first: Point, second: Point, frame: ReferenceFrame) -> list[LatchConstraintRow]:
    """Return rows for ``second`` relative to ``first`` along the axes of ``frame``, without axes that never move.

    Where points are held at a distance take a frame of one of both bodies: forces between them then have no moment
    beside what turns with it, so that angular momentum stays.
    """
    with restore_frames_and_points([frame, first, second]):
        offset = second.pos_from(first)
        return [*_movable_rows((offset.dot(axis), "m", label) for axis, label in zip(frame, _AXES, strict=True))]


def _make_hinge_latch_rows(first: Point, second: Point, axis: Vector, along: Vector) -> list[LatchConstraintRow]:
    """Return rows that hold ``second`` at ``first``, and ``along`` at ``axis``, about which it may turn.

    Args:
        first: Fixed in the frame of ``axis``.
        second: Fixed in the frame of ``along``.
        axis: Of the first body, a vector of one frame.
        along: Of the second body.
    """
    frame = axis.args[0][1]
    rows = _make_coincident_point_rows(first, second, frame)
    with restore_frames_and_points([frame, *list_vector_frames(along)]):
        across = _perpendicular_directions(axis, frame)
        turns = ((each.dot(along), "rad", f"across_{i}") for i, each in enumerate(across, start=1))
        return [*rows, *_movable_rows(turns)]


def _make_weld_latch_rows(
    first: Point, second: Point, frame: ReferenceFrame, other: ReferenceFrame
) -> list[LatchConstraintRow]:
    """Return rows that hold ``second`` at ``first``, and the orientation of ``other`` in ``frame``.

    The turn is held by half the skew part of the direction cosines, whose rate is the angular velocity where the frames
    are parallel; it must be less than 90 degrees where the latch closes.

    Args:
        first: Fixed in ``frame``.
        second: Fixed in ``other``.
        frame: Of the first body.
        other: Of the second body.
    """
    rows = _make_coincident_point_rows(first, second, frame)
    with restore_frames_and_points([frame, other]):
        a, c = [*frame], [*other]
        cyclic = ((1, 2), (2, 0), (0, 1))
        turns = (((a[j].dot(c[i]) - a[i].dot(c[j])) / 2, "rad", _AXES[k]) for k, (i, j) in enumerate(cyclic))
        return [*rows, *_movable_rows(turns)]


def _movable_rows(rows: Iterable[tuple[sm.Expr, str, str]]) -> Iterator[LatchConstraintRow]:
    """Yield the rows that some coordinate changes."""
    for expression, unit, label in rows:
        plain = sm.sympify(expression)
        if plain.atoms(AppliedUndef):
            plain = sm.trigsimp(plain) if sm.count_ops(plain) < _MAX_SIMPLIFIED_OPERATIONS else plain
        if plain.atoms(AppliedUndef):
            yield LatchConstraintRow(plain, unit, label)


def _perpendicular_directions(axis: Vector, frame: ReferenceFrame) -> tuple[Vector, Vector]:
    """Return two directions of the frame that are normal to an axis of it."""
    least = min(frame, key=lambda each: abs(float(axis.dot(each))))
    first = axis.cross(least).normalize()
    return first, axis.cross(first).normalize()


@dataclass(frozen=True)
class Latch(NamedElement):
    """Position rows that are held while the latch is closed; closing is an impact that ends motion along them.

    The FMU has ``name.engaged`` (1 while it is closed), ``name.changes`` (how often it closed or opened) and of each
    row ``name.force`` (what holds it, an output), ``name.impulse`` (of the last closing) and ``name.held_at`` (the
    value at which it is held). With several rows a label follows: ``name.force_x``, ``name.torque_z``,
    ``name.impulse_x``. Forces and impulses are positive as they drive the row up.

    Example:
        Two carts that couple as they meet, and a load that is dropped after two seconds.

        >>> model.add(Latch("coupling", x2 - x1, close=x2 - x1 <= 0, within=None))               # doctest: +SKIP
        >>> rows = Latch.point(hand, load, N)                                                    # doctest: +SKIP
        >>> model.add(Latch("hook", rows, open=t >= 2, starts_engaged=True, within=None))        # doctest: +SKIP

    Attributes:
        rows: Expressions of coordinates, parameters and time, or what ``point``, ``_make_hinge_latch_rows`` and
            ``_make_weld_latch_rows`` give; at most twelve.
        close: The latch closes where this is true; comparisons and logic of coordinates, speeds, states, inputs,
            parameters and time.
        open: It opens where this is true, which goes before ``close``.
        within: The rows are at zero where the latch fits: it closes only where each is within so much of it, in the
            row's unit. None: it closes anywhere. What is left is held as it is: positions do not jump.
        unit: Of rows that are expressions, ``m`` or ``rad``.
        starts_engaged: Whether it is closed from the start; speeds that do not fit then jump there.
        stabilization: Rate in 1/s at which what the integration errs in held rows is brought back; 0: not at all.
    """

    rows: sm.Expr | Sequence[sm.Expr | LatchConstraintRow]
    close: Boolean | bool = False
    open: Boolean | bool = False
    within: float | sm.Expr | None = field(kw_only=True)
    unit: str = "m"
    starts_engaged: bool = False
    stabilization: float | sm.Expr = 10.0

    point = staticmethod(_make_coincident_point_rows)
    hinge = staticmethod(_make_hinge_latch_rows)
    weld = staticmethod(_make_weld_latch_rows)

    @property
    def each(self) -> tuple[LatchConstraintRow, ...]:
        """All rows, with labels where there are several."""
        given = list(self.rows) if isinstance(self.rows, Sequence) else [self.rows]
        known = [
            row if isinstance(row, LatchConstraintRow) else LatchConstraintRow(sm.sympify(row), self.unit)
            for row in given
        ]
        if len(known) == 1:
            return (LatchConstraintRow(known[0].position, known[0].unit),)
        return tuple(
            LatchConstraintRow(row.position, row.unit, row.label or str(i)) for i, row in enumerate(known, start=1)
        )

    def faults(self, model: Model) -> Iterator[Fault]:  # noqa: ARG002 - others look at the model
        """Yield faulty rows, conditions and numbers."""
        if not 0 < len(self.each) <= _MAX_ROWS:
            yield self.fault(f"it holds {len(self.each)} rows", f"give 1 to {_MAX_ROWS} that some coordinate changes")
        names = [(row.effort, row.label) for row in self.each]
        for twice in sorted({name for name in names if names.count(name) > 1}):
            yield self.fault(f"two rows are called {' '.join(twice)}", "give each a label of its own")
        for row in self.each:
            if row.unit not in {"m", "rad"}:
                yield self.fault(f"a row is in {row.unit}", "take 'm' or 'rad'")
        for word, condition in (("close", self.close), ("open", self.open)):
            if not isinstance(sm.sympify(condition), Boolean):
                yield self.fault(f"{word}={condition} is no condition", "compare: h <= 0, sm.And(a > b, c < d)")
        if self.close is False and not self.starts_engaged:
            yield self.fault("it never closes", "give close=…, or starts_engaged=True")
        yield from self.negative("stabilization", self.stabilization)
        bound = sm.sympify(self.within)
        if self.within is not None and bound.is_number and not (bound.is_finite and bound > 0):
            yield self.fault(f"within is {bound}", "give a bound > 0, or None: then it closes anywhere")

    def declare(self, model: Model) -> None:
        """Declare parameters, states that only events change, forces, and the latch."""
        engaged, changes = dynamicsymbols(f"{self._word}_engaged {self._word}_changes")
        owner = f"of {self.name}"
        first = float(self.starts_engaged)
        closed = f"1 while {self.name} is closed"
        model.discrete(engaged, first, name=f"{self.name}.engaged", min=0.0, max=1.0, description=closed)
        description = f"how often {self.name} closed or opened"
        model.discrete(changes, 0.0, name=f"{self.name}.changes", min=0.0, description=description)
        rate = self.parameter(model, "stabilization", self.stabilization, "1/s", f"rate {owner} against drift", low=0.0)
        close = sm.sympify(self.close)
        if self.within is not None:
            bound = self.parameter(model, "within", self.within, self.each[0].unit, f"bound {owner} to close", low=0.0)
            near = (side for row in self.each for side in (row.position <= bound, row.position >= -bound))
            close = sm.And(close, *near)
        model.declared_latches.append(
            DeclaredMechanicalLatch(
                name=self.name,
                rows=tuple(self._row(model, row) for row in self.each),
                close=close,
                open=sm.sympify(self.open),
                engaged=engaged,
                changes=changes,
                stabilization=rate,
                where=self.where,
            )
        )

    @property
    def _word(self) -> str:
        """The name as one word, for symbols."""
        return self.name.replace(".", "_")

    def _row(self, model: Model, row: LatchConstraintRow) -> DeclaredLatchConstraintRow:
        """Declare the states and the force of one row."""
        behind = f"_{row.label}" if row.label else ""
        turn = "turn_" if row.label and row.unit == "rad" else ""
        impulse, held_at, force = dynamicsymbols(
            f"{self._word}_impulse_{turn}{row.label or 0} {self._word}_held_at_{turn}{row.label or 0} "
            f"{self._word}_{row.effort}_{row.label or 0}"
        )
        owner = f"of {self.name}" + (f" along {row.label}" if row.label else "")
        parts = {"impulse": f"{self.name}.impulse{behind}", "held_at": f"{self.name}.held_at{behind}"}
        if turn:
            parts = {"impulse": f"{self.name}.impulse_turn{behind}", "held_at": f"{self.name}.held_at_turn{behind}"}
        unit, last = f"{row.effort_unit}.s", f"impulse of the last closing {owner}"
        model.discrete(impulse, 0.0, unit, name=parts["impulse"], description=last)
        model.discrete(held_at, 0.0, row.unit, name=parts["held_at"], description=f"where the row {owner} is held")
        name = f"{self.name}.{row.effort}{behind}"
        model.output(name, force, row.effort_unit, description=f"{row.effort} {owner} while it is closed")
        return DeclaredLatchConstraintRow(name, row.position, impulse, held_at, force)


_AXES = "xyz"
