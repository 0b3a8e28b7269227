"""Read requested outputs: points, frames, loads, bodies and constraint rows become numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import sympy as sm
from sympy.physics.mechanics.joint import Joint as SympyJoint

from mb2fmu.mechanics.mechanism.records.mechanism_records import FlexibleBodyRecord, ForceLoad, Load, Mechanism
from mb2fmu.mechanics.mechanism.records.output_and_joint_records import (
    ExpressionOutput,
    Joint,
    LoopClosedForm,
    OutputRecord,
    RequestedOutput,
    UnavailableOutput,
)
from mb2fmu.mechanics.mechanism.records.quaternion_coordinates import substitute_unit_quaternions
from mb2fmu.mechanics.mechanism.records.symbol_replacement_and_derivatives import DynamicsymbolMap
from mb2fmu.mechanics.mechanism.sympy_import.constraint_import import find_constraint_row
from mb2fmu.model.checked_model import CheckedModel
from mb2fmu.model.declarations.declared_outputs import OUTPUT_KINDS, OutputKind, SubjectKind
from mb2fmu.model.model import OutputRequest
from mb2fmu.model.quantity_declarations import DeclaredVariable, Output
from mb2fmu.model.sources import mechanics_source

_QUANTITY_FIELDS = tuple(item.name for item in fields(DeclaredVariable))


class _MissingRequestedItemError(Exception):
    """The requested item does not exist: its name, and the remedy."""


@dataclass(frozen=True, slots=True)
class SympySourceObjectRecordNumbers:
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

    def assign_elastic_loads(self, definition: CheckedModel, loads: Sequence[Load]) -> tuple[Load, ...]:
        """Return the loads; elastic forces act on their flexible body, whatever else is at their points."""
        remaining_loads = list(loads)
        for body in definition.flexible_bodies:
            for elastic_load in body.select_loads(mechanics_source.loads(definition.mechanics)):
                load = remaining_loads[self.loads[id(elastic_load)]]
                assert isinstance(load, ForceLoad), "they are forces"
                remaining_loads[self.loads[id(elastic_load)]] = replace(load, body=self.bodies[id(body.body)])
        return tuple(remaining_loads)

    def flexible_body_records(self, bodies: Iterable[Any]) -> tuple[FlexibleBodyRecord, ...]:
        """Return what belongs to each ``FlexibleBody``, by numbers."""
        return tuple(
            FlexibleBodyRecord(
                self.bodies[id(body.body)],
                tuple(self.bodies[id(particle)] for particle in body.particles),
                {
                    self.points[point]: self.frames.get(frame, -1)
                    for point, frame in body.places()
                    if point in self.points
                },
            )
            for body in bodies
        )


def read_outputs(
    definition: CheckedModel, mechanism: Mechanism, plain: DynamicsymbolMap, numbers: SympySourceObjectRecordNumbers
) -> tuple[OutputRecord, ...]:
    """Read outputs in declared order; requests that cannot be met are kept with the reason.

    Args:
        definition: The checked model.
        mechanism: The mechanism without its outputs.
        plain: Translates the user's expressions.
        numbers: Numbers of the user's objects.

    Raises:
        MechanismError: If an expression contains something that nothing declares.
    """
    coordinates_and_speeds = [c.symbol for c in definition.coordinates], [speed.symbol for speed in definition.speeds]
    request_reader = _OutputRequestImporter(mechanism, plain, numbers, *coordinates_and_speeds)
    return tuple(request_reader.read_output(item) for item in definition.outputs)


class _OutputRequestImporter:
    """Turns requests into numbers, one after the other."""

    def __init__(
        self,
        mechanism: Mechanism,
        plain: DynamicsymbolMap,
        numbers: SympySourceObjectRecordNumbers,
        coordinates: Sequence[sm.Expr],
        speeds: Sequence[sm.Expr],
    ) -> None:
        self._mechanism, self._plain, self._numbers = mechanism, plain, numbers
        self._coordinates = {q: j for j, q in enumerate(coordinates)}
        self._speeds = {speed: j for j, speed in enumerate(speeds)}
        self._name = ""

    def read_output(self, item: Output | OutputRequest) -> OutputRecord:
        """Read one output."""
        self._name = item.name
        quantity = {name: getattr(item, name) for name in _QUANTITY_FIELDS}
        if isinstance(item, Output):
            drives = None if item.drives is None else self._plain(item.drives)
            return ExpressionOutput(**quantity, expression=self._plain(item.expression), drives=drives)
        try:
            return RequestedOutput(
                **quantity,
                kind=self._find_kind(item),
                subject=self._find_subject(item),
                relative_to=self._find_reference(item),
                of_joint=_is_joint_reaction(item),
                expressed_in=None if item.expressed_in is None else self._oriented_frame_number(item.expressed_in),
                component=item.component,
                representation=item.representation,
            )
        except _MissingRequestedItemError as refused:
            problem, remedy = refused.args
            return UnavailableOutput(**quantity, problem=problem, remedy=remedy)

    def _find_kind(self, item: OutputRequest) -> OutputKind:
        """Return the kind of a request; a momentum may be that of a coordinate."""
        of_coordinate = item.kind == "momentum" and item.subject[0] in self._coordinates
        return "coordinate_momentum" if of_coordinate else item.kind

    def _find_subject(self, item: OutputRequest) -> tuple[int, ...]:
        """Return the numbers of the items that a request is about."""
        kind = item.kind
        if self._mechanism.is_lagrangian_only and not OUTPUT_KINDS[kind].of_lagrangian:
            raise _MissingRequestedItemError(
                f"a Lagrangian alone has no points, frames or bodies: {kind} is not known",
                "hand over a System, a KanesMethod or Parts, or write the output as an expression",
            )
        subject = OUTPUT_KINDS[kind].subject
        if subject in {"point and speed", "frame and speed"}:
            node, speed = item.subject
            return (self._point_number if subject == "point and speed" else self._frame_number)(
                node
            ), self._variable_number(speed)
        if subject == "joint or bodies":
            subject = "joint" if _is_joint_reaction(item) else "body"
        return tuple(self._find_number(subject, subject_item) for subject_item in item.subject)

    def _find_number(self, kind: SubjectKind, item: Any) -> int:
        """Return the number of an object of one kind."""
        number_functions: Mapping[SubjectKind, Callable[[Any], int]] = {
            "point": self._point_number,
            "located point": self._located_point_number,
            "frame": self._frame_number,
            "oriented frame": self._oriented_frame_number,
            "body": self._body_number,
            "joint": self._joint_number,
            "load": self._load_number,
            "constraint row": self._row_number,
            "coordinate or speed": self._variable_number,
        }
        return number_functions[kind](item)

    def _find_reference(self, item: OutputRequest) -> int | None:
        """Return the number of the point or frame that the output is relative to."""
        reference = item.relative_to
        if reference is None or self._mechanism.is_lagrangian_only:
            return None
        return self._find_number(OUTPUT_KINDS[item.kind].relative_to, reference)

    def _frame_number(self, frame: Any) -> int:
        """Return a frame's number; refuse one that is not connected to the inertial frame."""
        if frame not in self._numbers.frames:
            raise _MissingRequestedItemError(f"frame {frame} is not connected to the inertial frame", "orient it")
        return self._numbers.frames[frame]

    def _oriented_frame_number(self, frame: Any) -> int:
        """Return the number of a frame whose orientation is known, not only its angular velocity."""
        number = self._frame_number(frame)
        if not self._mechanism.frames[number].oriented:
            raise _MissingRequestedItemError(f"of frame {frame} nothing but the angular velocity is known", "orient it")
        return number

    def _point_number(self, point: Any) -> int:
        """Return a point's number; refuse one that is not connected to the mechanism."""
        if point not in self._numbers.points:
            raise _MissingRequestedItemError(
                f"point {point} is not connected to the mechanism", "locate it, or give its velocity"
            )
        return self._numbers.points[point]

    def _located_point_number(self, point: Any) -> int:
        """Return the number of a point whose position is known, not only its velocity."""
        number = self._point_number(point)
        has_unlocated_points = number == 0 and any(
            record.parent == 0 and not record.located for record in self._mechanism.points
        )
        if has_unlocated_points:
            problem = (
                f"the place of point {point} is unknown: its velocity is zero, and what hangs on it moves otherwise"
            )
            raise _MissingRequestedItemError(
                f"{problem}, as where a wheel touches the ground",
                "give the positions from a point at rest, and name it",
            )
        if self._mechanism.points[number].located:
            return number
        if self._mechanism.contradicted_positions:
            problem = f"the place of point {point} is unknown: {self._mechanism.contradicted_positions[0]}"
            raise _MissingRequestedItemError(problem, "correct set_vel, or the position")
        if any(record.located for record in self._mechanism.points[1:]):
            problem = f"no chain of positions leads from the origin to point {point}"
            raise _MissingRequestedItemError(problem, "locate it by set_pos or locatenew")
        raise _MissingRequestedItemError(
            f"the place of point {point} is unknown: no point joined to it has velocity zero, so there is no origin",
            f"join one that is at rest:  F = Point('F'); F.set_vel(N, 0); {point}.set_pos(F, …)",
        )

    def _load_number(self, load: Any) -> int:
        """Return a load's number; it must be the very object given to the mechanics, an equal one is refused."""
        number = self._numbers.loads.get(id(load))
        if number is None:
            raise _MissingRequestedItemError(
                f"{self._name} requests a load that is not among those of the mechanics",
                "pass the very object that was given to the mechanics",
            )
        return number

    def _row_number(self, row: sm.Expr) -> int:
        """Return the number of the constraint that an expression is, up to its sign and form."""
        m, constraints = self._mechanism, self._mechanism.velocity_constraints
        rows = list(constraints.jacobian * sm.Matrix(m.u) + constraints.offset) if constraints else []
        index = find_constraint_row(
            substitute_unit_quaternions(self._plain(row), m.quaternions, m.q), [phi for _, phi in m.holonomic], rows
        )
        if index is None:
            raise _MissingRequestedItemError(
                f"{str(row)[:80]} is not among the mechanics' constraints", "give the expression given to the mechanics"
            )
        return index

    def _variable_number(self, symbol: sm.Expr) -> int:
        """Return the number of a coordinate or of a speed."""
        for numbers in (self._coordinates, self._speeds):
            if symbol in numbers:
                return numbers[symbol]
        symbol_list = ", ".join(map(str, (*self._coordinates, *self._speeds)))
        raise _MissingRequestedItemError(
            f"{symbol} is no coordinate and no speed of the mechanics", f"take one of {symbol_list}"
        )

    def _joint_number(self, joint: Any) -> int:
        """Return a joint's number in the system."""
        if joint not in self._numbers.joints:
            raise _MissingRequestedItemError(
                f"joint {joint.name} is none of the system's", "add it to the system, or give the bodies"
            )
        return list(self._numbers.joints).index(joint)

    def _body_number(self, body: Any) -> int:
        """Return a body's number; it must be an object given to the mechanics."""
        if id(body) not in self._numbers.bodies:
            raise _MissingRequestedItemError(
                f"{body} is no moving body of the mechanics", "give one of the mechanics' own"
            )
        return self._numbers.bodies[id(body)]


def _is_joint_reaction(item: OutputRequest) -> bool:
    """Return whether a reaction is that of one joint."""
    return item.kind.startswith("reaction") and len(item.subject) == 1 and isinstance(item.subject[0], SympyJoint)


def read_loop_closed_forms(
    definition: CheckedModel, mechanism: Mechanism, plain: DynamicsymbolMap
) -> Iterator[LoopClosedForm]:
    """Read closed forms that the model gives, in plain symbols."""
    m = mechanism
    phis = [phi for _, phi in m.holonomic]
    for loop in definition.loops:
        row_numbers = [
            find_constraint_row(substitute_unit_quaternions(plain(row), m.quaternions, m.q), phis, [])
            for row in loop.rows
        ]
        unknown_rows = [row for row, row_number in zip(loop.rows, row_numbers, strict=True) if row_number is None]
        yield LoopClosedForm(
            loop.name,
            tuple(row_number for row_number in row_numbers if row_number is not None),
            tuple({_as_symbol(plain(q)): plain(value) for q, value in branch.items()} for branch in loop.branches),
            tuple(map(plain, loop.positive)),
            tuple(map(plain, loop.relation)),
            loop.where,
            str(unknown_rows[0])[:80] if unknown_rows else "",
        )


def _as_symbol(expression: sm.Expr) -> sm.Symbol:
    """Return the expression typed as a symbol: a coordinate is always translated to a symbol."""
    return expression
