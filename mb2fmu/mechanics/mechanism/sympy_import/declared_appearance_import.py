"""Read the declared appearance of a mechanism: shapes, traces and arrows, by numbers of frames and points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, TypeVar

import sympy as sm
from sympy.physics.mechanics import CylindricalJoint, PinJoint, Point, PrismaticJoint, ReferenceFrame
from sympy.physics.vector import Vector

from mb2fmu.errors import Fault, MechanismError
from mb2fmu.mechanics.mechanism.records.appearance_records import (
    AppearanceRecords,
    DrawnFlexibleMesh,
    DrawnJoint,
    DrawnLoad,
    DrawnShape,
    JointKind,
    TracedPoint,
)
from mb2fmu.mechanics.mechanism.records.frame_and_point_records import Components, VectorTerms
from mb2fmu.mechanics.mechanism.records.symbol_replacement_and_derivatives import DynamicsymbolMap
from mb2fmu.model.checked_model import CheckedModel
from mb2fmu.model.declarations.appearance_declarations import (
    AppearanceItem,
    FlexibleMeshShape,
    HiddenBodyDeclaration,
    LoadArrow,
    Mesh,
    TracedPointDeclaration,
    VisualShape,
)
from mb2fmu.model.sources import mechanics_source

AppearanceKind = TypeVar("AppearanceKind", VisualShape, TracedPointDeclaration, LoadArrow, FlexibleMeshShape)


class AppearanceImportContext(Protocol):
    """State of the import that appearances need."""

    plain: DynamicsymbolMap
    frame_of: dict[Any, int]
    point_of: dict[Any, int]

    def read_vector(self, vector: Vector) -> VectorTerms:
        """Return the vector's components in the frames it is written in."""


def list_appearance_points(definition: CheckedModel) -> Iterator[Point]:
    """Yield the points that appearances need."""
    for item in definition.appearance_items:
        if isinstance(item, TracedPointDeclaration):
            yield item.point
        elif isinstance(item, LoadArrow) and isinstance(item.load[0] if isinstance(item.load, tuple) else None, Point):
            yield item.load[0]
        elif isinstance(item, FlexibleMeshShape):
            yield from (item.origin, *item.carriers)
        elif isinstance(item, VisualShape):
            if isinstance(item.at, Point):
                yield item.at
            elif hasattr(item.body, "masscenter"):
                yield item.body.masscenter


def read_declared_appearance(
    definition: CheckedModel, reader: AppearanceImportContext, load_of: Any, q_dynamic: Sequence[sm.Symbol]
) -> AppearanceRecords:
    """Read the model's declarations of its appearance.

    Args:
        definition: The checked model.
        reader: Numbers of frames and points, translation of expressions.
        load_of: id of the user's load or actuator → its number.
        q_dynamic: Plain symbols that vary in time: vectors fixed in a body may not contain them.

    Raises:
        MechanismError: Naming every item that is not connected to the mechanism, or not fixed in its body.
    """
    faults: list[Fault] = []
    appearance = AppearanceRecords(
        shapes=tuple(
            _read_each(
                definition.appearance_items, VisualShape, lambda v: _read_shape(v, reader, set(q_dynamic)), faults
            )
        ),
        traces=tuple(
            _read_each(definition.appearance_items, TracedPointDeclaration, lambda t: _read_trace(t, reader), faults)
        ),
        arrows=tuple(
            _read_each(definition.appearance_items, LoadArrow, lambda a: _read_arrow(a, reader, load_of), faults)
        ),
        joints=tuple(_read_joints(definition, reader)),
        bendings=tuple(
            _read_each(definition.appearance_items, FlexibleMeshShape, lambda b: _read_bending(b, reader), faults)
        ),
        hidden_bodies=tuple(
            str(item.body.name) for item in definition.appearance_items if isinstance(item, HiddenBodyDeclaration)
        ),
    )
    if faults:
        raise MechanismError("the appearance of the mechanism cannot be used:", faults)
    return appearance


def _read_each(
    items: Sequence[AppearanceItem], kind: type[AppearanceKind], read: Any, faults: list[Fault]
) -> Iterator[Any]:
    """Yield the record of each item of one kind; collect the faults of those that cannot be drawn."""
    for item in items:
        if isinstance(item, kind):
            try:
                yield read(item)
            except MechanismError as error:
                faults += [Fault(fault.what, item.where, fault.remedy) for fault in error.faults]


def _appearance_error(problem: str, remedy: str) -> MechanismError:
    """Return the error of an item that cannot be drawn, with its remedy."""
    return MechanismError("", [Fault(problem, remedy=remedy)])


def _point_number(point: Point, reader: AppearanceImportContext) -> int:
    """Return a point's number; refuse one that is not connected to the mechanism."""
    if point not in reader.point_of:
        raise _appearance_error(
            f"point {point.name} is not connected to the mechanism", "locate it by set_pos or locatenew"
        )
    return reader.point_of[point]


def _read_shape(shape: VisualShape, reader: AppearanceImportContext, moving: set[sm.Symbol]) -> DrawnShape:
    """Read a shape: its frame and point, sizes, fixed offset, and the direction of its axis (y by default)."""
    frame = shape.body if isinstance(shape.body, ReferenceFrame) else getattr(shape.body, "frame", None)
    if frame is not None and frame not in reader.frame_of:
        raise _appearance_error(f"frame {frame.name} is not connected to the inertial frame", "orient it")
    frame_number = 0 if frame is None else reader.frame_of[frame]
    point = shape.at if isinstance(shape.at, Point) else shape.body.masscenter
    zero, y_axis = (sm.S.Zero, sm.S.Zero, sm.S.Zero), (sm.S.Zero, sm.S.One, sm.S.Zero)
    offset, along = shape.at if isinstance(shape.at, Vector) else None, shape.along
    return DrawnShape(
        body=str(shape.body.name),
        point=_point_number(point, reader),
        frame=frame_number,
        kind=type(shape.shape).__name__.lower(),  # type: ignore[arg-type]
        sizes=tuple(reader.plain(sm.sympify(size)) for size in shape.shape.sizes),
        mesh=str(shape.shape.path) if isinstance(shape.shape, Mesh) else "",
        offset=zero if offset is None else _fixed_components(offset, frame_number, reader, moving),
        along=y_axis if along is None else _fixed_components(along, frame_number, reader, moving),
        color=shape.color,
        opacity=shape.opacity,
        where=shape.where,
    )


def _fixed_components(
    vector: Vector, frame: int, reader: AppearanceImportContext, moving: set[sm.Symbol]
) -> Components:
    """Return the components of a vector that is fixed in one frame."""
    terms = reader.read_vector(vector)
    if not terms:
        return (sm.S.Zero, sm.S.Zero, sm.S.Zero)
    if len(terms) != 1 or terms[0][0] != frame or any(component.free_symbols & moving for component in terms[0][1]):
        raise _appearance_error(
            f"{vector} is not fixed in the body that it belongs to", "write it along the axes of its frame"
        )
    return terms[0][1]


def _read_bending(shape: FlexibleMeshShape, reader: AppearanceImportContext) -> DrawnFlexibleMesh:
    """Read a surface that bends."""
    return DrawnFlexibleMesh(
        body=str(shape.body.name),
        point=_point_number(shape.origin, reader),
        frame=reader.frame_of[shape.body.frame],
        carriers=tuple(_point_number(carrier, reader) for carrier in shape.carriers),
        vertices=shape.vertices,
        faces=shape.faces,
        shapes=shape.shapes,
        scale=shape.scale,
        color=shape.color,
        opacity=shape.opacity,
    )


def _read_trace(trace: TracedPointDeclaration, reader: AppearanceImportContext) -> TracedPoint:
    """Read a point whose path is drawn."""
    return TracedPoint(trace.point.name, _point_number(trace.point, reader), trace.color)


def _read_arrow(arrow: LoadArrow, reader: AppearanceImportContext, load_of: Any) -> DrawnLoad:
    """Read an arrow: either a load of the mechanics by its number, or a point and a vector of the user's."""
    if id(arrow.load) in load_of:
        load_number = load_of[id(arrow.load)]
        point_or_frame = arrow.load[0] if isinstance(arrow.load, tuple) else arrow.load
        name = str(getattr(point_or_frame, "name", "")) or f"load {load_number + 1}"
        return DrawnLoad(name, load_number, -1, (), arrow.scale, arrow.color)
    point, vector = arrow.load
    return DrawnLoad(
        f"at {point.name}", -1, _point_number(point, reader), reader.read_vector(vector), arrow.scale, arrow.color
    )


def _read_joints(definition: CheckedModel, reader: AppearanceImportContext) -> Iterator[DrawnJoint]:
    """Yield each joint of a SymPy system as drawn: its kind, point and axis; a zero axis where it has none."""
    for joint in mechanics_source.joints(definition.mechanics):
        kind: JointKind = "pin" if isinstance(joint, PinJoint) else "other"
        if isinstance(joint, PrismaticJoint | CylindricalJoint):
            kind = "slide"
        terms = reader.read_vector(joint.joint_axis) if hasattr(joint, "joint_axis") else ()
        frame, axis = terms[0] if len(terms) == 1 else (0, (sm.S.Zero, sm.S.Zero, sm.S.Zero))
        yield DrawnJoint(joint.name, kind, reader.point_of[joint.parent_point], frame, axis)
