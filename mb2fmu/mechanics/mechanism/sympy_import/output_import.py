"""Read what a model requests of its mechanism: points, frames, loads, bodies and rows become numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import sympy as sm
from sympy.physics.mechanics.joint import Joint as SympyJoint

from mb2fmu.mechanics.mechanism.records.mechanism_records import Mechanism
from mb2fmu.mechanics.mechanism.records.plain_symbols import SymbolMap
from mb2fmu.mechanics.mechanism.records.quaternion_coordinates import normalize_quaternions
from mb2fmu.mechanics.mechanism.records.requested_quantities import (
    ExpressionOutput,
    Joint,
    LoopClosedForm,
    OutputRecord,
    RequestedOutput,
    UnavailableOutput,
)
from mb2fmu.mechanics.mechanism.sympy_import.constraint_import import find_constraint_row
from mb2fmu.model.declarations.declared_outputs import OUTPUT_KINDS, OutputKind, SubjectKind
from mb2fmu.model.model import OutputRequest
from mb2fmu.model.model_definition import ModelDefinition
from mb2fmu.model.quantity_declarations import Output, Quantity

_QUANTITY_FIELDS = tuple(item.name for item in fields(Quantity))


class _MissingItemError(Exception):
    """The requested item does not exist: its name, and the remedy."""


@dataclass(frozen=True, slots=True)
class RecordNumbers:
    """Numbers of the user's objects in the records.

    Attributes:
        frames, points: The user's object → number.
        loads, bodies: ``id`` of the user's object → number.
        joints: The user's joints, in the order of ``Mechanism.joints``.
    """

    frames: Mapping[Any, int] = field(default_factory=dict)
    points: Mapping[Any, int] = field(default_factory=dict)
    loads: Mapping[int, int] = field(default_factory=dict)
    bodies: Mapping[int, int] = field(default_factory=dict)
    joints: Sequence[Any] = ()

    def joint_records(self) -> tuple[Joint, ...]:
        """Return the joints by numbers."""
        return tuple(
            Joint(
                joint.name,
                self.bodies.get(id(joint.parent), -1),
                self.bodies.get(id(joint.child), -1),
                self.points[joint.child_point],
            )
            for joint in self.joints
        )


def read_outputs(
    definition: ModelDefinition, mechanism: Mechanism, plain: SymbolMap, numbers: RecordNumbers
) -> tuple[OutputRecord, ...]:
    """Read outputs in declared order; requests that cannot be met are kept with the reason.

    Args:
        definition: The checked model.
        mechanism: All but its outputs.
        plain: Translates the user's expressions.
        numbers: Of the user's objects.

    Raises:
        MechanismError: If an expression contains something that nothing declares.
    """
    moving = [c.symbol for c in definition.coordinates], [speed.symbol for speed in definition.speeds]
    asked = _RequestReader(mechanism, plain, numbers, *moving)
    return tuple(asked.read(item) for item in definition.outputs)


class _RequestReader:
    """Turns requests into numbers, one after the other."""

    def __init__(
        self,
        mechanism: Mechanism,
        plain: SymbolMap,
        numbers: RecordNumbers,
        coordinates: Sequence[sm.Expr],
        speeds: Sequence[sm.Expr],
    ) -> None:
        self._m, self._plain, self._numbers = mechanism, plain, numbers
        self._coordinates = {q: j for j, q in enumerate(coordinates)}
        self._speeds = {speed: j for j, speed in enumerate(speeds)}
        self._name = ""

    def read(self, item: Output | OutputRequest) -> OutputRecord:
        """Read one output."""
        self._name = item.name
        quantity = {name: getattr(item, name) for name in _QUANTITY_FIELDS}
        if isinstance(item, Output):
            drives = None if item.drives is None else self._plain(item.drives)
            return ExpressionOutput(**quantity, expression=self._plain(item.expression), drives=drives)
        try:
            return RequestedOutput(
                **quantity,
                kind=self._kind(item),
                subject=self._subject(item),
                relative_to=self._reference(item),
                of_joint=_is_joint_reaction(item),
                expressed_in=None if item.expressed_in is None else self._oriented(item.expressed_in),
                component=item.component,
                representation=item.representation,
            )
        except _MissingItemError as refused:
            what, remedy = refused.args
            return UnavailableOutput(**quantity, what=what, remedy=remedy)

    def _kind(self, item: OutputRequest) -> OutputKind:
        """Return the kind of a request; a momentum may be that of a coordinate."""
        of_coordinate = item.kind == "momentum" and item.subject[0] in self._coordinates
        return "coordinate_momentum" if of_coordinate else item.kind

    def _subject(self, item: OutputRequest) -> tuple[int, ...]:
        """Return the numbers of the items that a request is about."""
        kind = item.kind
        if self._m.is_lagrangian_only and not OUTPUT_KINDS[kind].of_lagrangian:
            raise _MissingItemError(
                f"a Lagrangian alone has no points, frames or bodies: {kind} is not known",
                "hand over a System, a KanesMethod or Parts, or write the output as an expression",
            )
        subject = OUTPUT_KINDS[kind].subject
        if subject in {"point and speed", "frame and speed"}:
            node, speed = item.subject
            return (self._point if subject == "point and speed" else self._frame)(node), self._moving(speed)
        if subject == "joint or bodies":
            subject = "joint" if _is_joint_reaction(item) else "body"
        return tuple(self._number(subject, one) for one in item.subject)

    def _number(self, kind: SubjectKind, item: Any) -> int:
        """Return the number of an object of one kind."""
        numbers: Mapping[SubjectKind, Callable[[Any], int]] = {
            "point": self._point,
            "located point": self._located,
            "frame": self._frame,
            "oriented frame": self._oriented,
            "body": self._body,
            "joint": self._joint,
            "load": self._load,
            "constraint row": self._row,
            "coordinate or speed": self._moving,
        }
        return numbers[kind](item)

    def _reference(self, item: OutputRequest) -> int | None:
        """Return the number of the point or frame that the output is relative to."""
        other = item.relative_to
        if other is None or self._m.is_lagrangian_only:
            return None
        return self._number(OUTPUT_KINDS[item.kind].relative_to, other)

    def _frame(self, frame: Any) -> int:
        """Return a frame's number; refuse one that is not connected to the inertial frame."""
        if frame not in self._numbers.frames:
            raise _MissingItemError(f"frame {frame} is not connected to the inertial frame", "orient it")
        return self._numbers.frames[frame]

    def _oriented(self, frame: Any) -> int:
        """Return the number of a frame whose orientation is known, not only its angular velocity."""
        number = self._frame(frame)
        if not self._m.frames[number].oriented:
            raise _MissingItemError(f"of frame {frame} nothing but the angular velocity is known", "orient it")
        return number

    def _point(self, point: Any) -> int:
        """Return a point's number; refuse one that is not connected to the mechanism."""
        if point not in self._numbers.points:
            raise _MissingItemError(
                f"point {point} is not connected to the mechanism", "locate it, or give its velocity"
            )
        return self._numbers.points[point]

    def _located(self, point: Any) -> int:
        """Return the number of a point whose position is known, not only its velocity."""
        number = self._point(point)
        touching = number == 0 and any(each.parent == 0 and not each.located for each in self._m.points)
        if touching:
            what = f"where point {point} is cannot be told: its velocity is zero, and what hangs on it moves otherwise"
            raise _MissingItemError(
                f"{what}, as where a wheel touches the ground", "give the positions from a point at rest, and name it"
            )
        if self._m.points[number].located:
            return number
        if any(each.located for each in self._m.points[1:]):
            what = f"no chain of positions leads from the origin to point {point}"
            raise _MissingItemError(what, "locate it by set_pos or locatenew")
        raise _MissingItemError(
            f"where point {point} is cannot be told: no point joined to it has velocity zero, so there is no origin",
            f"join one that is at rest:  F = Point('F'); F.set_vel(N, 0); {point}.set_pos(F, …)",
        )

    def _load(self, load: Any) -> int:
        """Return a load's number; it must be the very object given to the mechanics, an equal one is refused."""
        number = self._numbers.loads.get(id(load))
        if number is None:
            raise _MissingItemError(
                f"{self._name} asks for a load that is not among those handed over",
                "pass the very object that was given to the mechanics",
            )
        return number

    def _row(self, row: sm.Expr) -> int:
        """Return the number of the constraint that an expression is, up to its sign and form."""
        m, c = self._m, self._m.velocity_constraints
        rows = list(c.jacobian * sm.Matrix(m.u) + c.offset) if c else []
        index = find_constraint_row(
            normalize_quaternions(self._plain(row), m.quaternions, m.q), [phi for _, phi in m.holonomic], rows
        )
        if index is None:
            raise _MissingItemError(
                f"{str(row)[:80]} is not among the mechanics' constraints", "give the expression given to the mechanics"
            )
        return index

    def _moving(self, symbol: sm.Expr) -> int:
        """Number of a coordinate, or of a speed."""
        for known in (self._coordinates, self._speeds):
            if symbol in known:
                return known[symbol]
        listed = ", ".join(map(str, (*self._coordinates, *self._speeds)))
        raise _MissingItemError(f"{symbol} is no coordinate and no speed of the mechanics", f"take one of {listed}")

    def _joint(self, joint: Any) -> int:
        """Return a joint's number in the system."""
        if joint not in self._numbers.joints:
            raise _MissingItemError(
                f"joint {joint.name} is none of the system's", "add it to the system, or give the bodies"
            )
        return list(self._numbers.joints).index(joint)

    def _body(self, body: Any) -> int:
        """Return a body's number; it must be an object given to the mechanics."""
        if id(body) not in self._numbers.bodies:
            raise _MissingItemError(f"{body} is no moving body of the mechanics", "give one that was handed over")
        return self._numbers.bodies[id(body)]


def _is_joint_reaction(item: OutputRequest) -> bool:
    """Return whether a reaction is that of one joint."""
    return item.kind.startswith("reaction") and len(item.subject) == 1 and isinstance(item.subject[0], SympyJoint)


def read_closed_forms(definition: ModelDefinition, mechanism: Mechanism, plain: SymbolMap) -> Iterator[LoopClosedForm]:
    """Read closed forms that the model gives, in plain symbols."""
    m = mechanism
    phis = [phi for _, phi in m.holonomic]
    for loop in definition.loops:
        places = [
            find_constraint_row(normalize_quaternions(plain(row), m.quaternions, m.q), phis, []) for row in loop.rows
        ]
        strange = [row for row, place in zip(loop.rows, places, strict=True) if place is None]
        yield LoopClosedForm(
            loop.name,
            tuple(place for place in places if place is not None),
            tuple({_as_symbol(plain(q)): plain(value) for q, value in branch.items()} for branch in loop.branches),
            tuple(map(plain, loop.positive)),
            tuple(map(plain, loop.relation)),
            loop.where,
            str(strange[0])[:80] if strange else "",
        )


def _as_symbol(expression: sm.Expr) -> sm.Symbol:
    """Return the same value, typed: a coordinate is always translated to a symbol."""
    return expression
