"""Collect every expression that a mechanism depends on, and its place.

Only what matters is looked at: the frames and points between a body (load, actuator, output) and the ground. SymPy's
caches are not written: nothing requests ``.vel``, ``.dcm`` or ``.pos_from``.
"""
# ruff: noqa: SLF001 - local relations of points and frames stand in private attributes only

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import sympy as sm
from sympy.physics.mechanics import LagrangesMethod, Point, ReferenceFrame
from sympy.physics.mechanics.body_base import BodyBase
from sympy.physics.mechanics.pathway import PathwayBase
from sympy.physics.mechanics.wrapping_geometry import WrappingGeometryBase
from sympy.physics.vector import Dyadic, Vector

from mb2fmu.model.model import OutputRequest
from mb2fmu.model.sources import mechanics_source
from mb2fmu.model.sources.mechanics_source import Mechanics
from mb2fmu.model.sources.record_based_mechanics import RecordBasedMechanics

_SYMPY_DICTIONARY_NAMES = {"dcm": "_dcm_dict", "omega": "_ang_vel_dict", "position": "_pos_dict"}

ExpressionRole = Literal["inertia", "load", "position", "velocity", "energy", "lagrangian"]


@dataclass(frozen=True, slots=True)
class MechanicsExpression:
    """An expression of the mechanics.

    Attributes:
        place: Where it stands, in words: ``the mass of body rod``.
        role: What it does there: ``position`` and ``velocity`` say how often it is differentiated still.
        expression: As the user wrote it.
    """

    place: str
    role: ExpressionRole
    expression: sm.Basic


def collect_mechanics_expressions(
    mechanics: Mechanics, requests: Iterable[OutputRequest] = ()
) -> list[MechanicsExpression]:
    """Return every expression that the motion, or one of the requested outputs, depends on."""
    if isinstance(mechanics, RecordBasedMechanics):
        return [
            MechanicsExpression(place, "load", expression)
            for place, expression in mechanics.list_added_load_expressions()
        ]
    collector = _MechanicsExpressionCollector(mechanics)
    for body in mechanics_source.bodies(mechanics):
        collector.note_body(body)
    for load in mechanics_source.loads(mechanics):
        collector.note_anchor(load[0])
        collector.note_vector(f"the load on {_item_name(load[0])}", "load", load[1])
    for actuator in mechanics_source.actuators(mechanics):
        collector.note_actuator(actuator)
    for request in requests:
        for item in (*request.subject, request.relative_to, request.expressed_in):
            collector.note_anchor(item)
    equations: list[tuple[str, ExpressionRole, Iterable[sm.Basic]]] = [
        ("kinematic equation", "velocity", mechanics_source.kinematic_equations(mechanics)),
        ("holonomic constraint", "position", mechanics_source.holonomic_constraints(mechanics)),
        ("velocity constraint", "velocity", mechanics_source.velocity_constraints(mechanics)),
    ]
    if isinstance(mechanics, LagrangesMethod):
        equations.append(("the Lagrangian", "lagrangian", mechanics._L))
    for what, role, rows in equations:
        for number, row in enumerate(rows, 1):
            collector.note_expression(what if role == "lagrangian" else f"{what} {number}", role, row)
    collector.follow_geometry()
    return collector.found


class _MechanicsExpressionCollector:
    """Follows vectors to their frames and points, and these to the ground."""

    def __init__(self, mechanics: Mechanics) -> None:
        self.frame = mechanics_source.inertial_frame(mechanics)
        self.origin = mechanics_source.origin(mechanics) or mechanics_source.find_pivot_as_position_origin(mechanics)
        self.found: list[MechanicsExpression] = []
        self.frames: dict[ReferenceFrame, None] = {}
        self.directions: dict[ReferenceFrame, None] = {}  # of loads, whose rates do not count
        self.points: dict[Point, None] = {}
        self.velocities: set[Point] = set()
        self.ways: dict[str, dict[Any, Any]] = {}  # what is left to walk

    def note_expression(self, place: str, role: ExpressionRole, expression: sm.Basic) -> None:
        """Note one expression, if it has contents."""
        if not getattr(expression, "is_Number", False) or expression in {sm.nan, sm.oo, -sm.oo, sm.zoo}:
            self.found.append(MechanicsExpression(place, role, expression))

    def note_vector(self, place: str, role: ExpressionRole, vector: Vector) -> None:
        """Note the components of a vector, and the frames they are in."""
        frames = self.directions if role == "load" else self.frames
        for components, frame in getattr(vector, "args", ()):
            frames.setdefault(frame)
            for component in components:
                self.note_expression(place, role, component)

    def note_anchor(self, item: Any) -> None:
        """Note that a point, frame or body matters."""
        if isinstance(item, BodyBase):
            self.points.setdefault(item.masscenter)
            item = getattr(item, "frame", None)
        if isinstance(item, Point):
            self.points.setdefault(item)
        elif isinstance(item, ReferenceFrame):
            self.frames.setdefault(item)

    def note_body(self, body: Any) -> None:
        """Note the mass, inertia, potential energy and place of a body."""
        self.note_anchor(body)
        self.note_expression(f"the mass of body {body.name}", "inertia", body.mass)
        self.note_expression(
            f"the potential energy of body {body.name}", "energy", mechanics_source.body_potential_energy(body)
        )
        inertia = getattr(body, "inertia", None)
        if inertia is not None and mechanics_source.needs_rotational_inertia_values(body, self.frame):
            dyadic, point = inertia
            self.note_anchor(point)
            for coefficient, one, other in getattr(dyadic, "args", ()) if isinstance(dyadic, Dyadic) else ():
                place = f"the inertia of body {body.name}"
                self.note_expression(place, "inertia", coefficient)
                self.note_vector(place, "inertia", one)
                self.note_vector(place, "inertia", other)

    def note_actuator(self, actuator: Any) -> None:
        """Note an actuator's laws and its pathway; of a musculotendon only the expressions that its force uses."""
        place = f"actuator {getattr(actuator, 'name', None) or type(actuator).__name__}"
        if hasattr(actuator, "activation_dynamics"):
            self.note_expression(place, "load", actuator.force)
            self._attribute(place, actuator.pathway)
            return
        for value in vars(actuator).values():
            self._attribute(place, value)

    def _attribute(self, place: str, value: Any) -> None:
        """Collect the expressions of an actuator's attribute, at every depth."""
        if isinstance(value, Vector):
            self.note_vector(place, "load", value)
        elif isinstance(value, sm.Basic):
            self.note_expression(place, "load", value)
        elif isinstance(value, tuple | list):
            for item in value:
                self._attribute(place, item)
        elif isinstance(value, PathwayBase | WrappingGeometryBase):
            for item in vars(value).values():
                self._attribute(place, item)
        else:
            self.note_anchor(value)

    def follow_geometry(self) -> None:
        """Follow all noted frames and points to the ground; this may add more of them."""
        finished: set[Any] = set()
        while pending := [item for item in (*self.points, *self.frames) if item not in finished]:
            for item in pending:
                finished.add(item)
                if isinstance(item, Point):
                    self._point(item)
                else:
                    self._frame(item)
        for frame in self.directions:
            self._orientation(frame, "load")

    def _orientation(self, frame: ReferenceFrame, role: ExpressionRole) -> None:
        """Collect the orientations that a frame rests on."""
        for one, other in self._new_steps("dcm", frame):
            for entry in one._dcm_dict[other]:
                self.note_expression(f"the orientation of frame {one.name} in {other.name}", role, entry)

    def _frame(self, frame: ReferenceFrame) -> None:
        """Collect the orientations and angular velocities that a frame rests on."""
        self._orientation(frame, "position")
        for one, other in self._new_steps("omega", frame):
            place = f"the angular velocity of frame {one.name} in {other.name}"
            self.note_vector(place, "velocity", one._ang_vel_dict[other])

    def _point(self, point: Point) -> None:
        """Collect the positions that a point rests on, and the velocities given along the way."""
        steps = list(self._new_steps("position", point))
        for one, other in steps:
            self.note_vector(f"the position of {one.name} from {other.name}", "position", one._pos_dict[other])
        for passed in {point: None, **dict.fromkeys(one for one, _ in steps)}:
            if self.frame in passed._vel_dict and passed not in self.velocities:
                self.velocities.add(passed)
                self.note_vector(f"the velocity of {passed.name}", "velocity", passed._vel_dict[self.frame])

    def _new_steps(self, what: str, start: Any) -> Iterator[tuple[Any, Any]]:
        """Yield the shortest path from ``start`` to the ground as (node, next node), up to a node already visited."""
        if what not in self.ways:
            goal = self.origin if what == "position" else self.frame
            self.ways[what] = _paths_to_goal(goal, lambda node: getattr(node, _SYMPY_DICTIONARY_NAMES[what]))
        towards = self.ways[what]
        while start in towards:  # nobody goes on from the ground
            following = towards.pop(start)
            yield start, following
            start = following


def _paths_to_goal(goal: Any, neighbours: Callable[[Any], Iterable[Any]]) -> dict[Any, Any]:
    """Return each node connected with ``goal`` → the next node on its shortest path there, without ``goal`` itself."""
    towards = {goal: goal}
    queue = deque([goal] if goal is not None else [])
    while queue:
        node = queue.popleft()
        for neighbour in neighbours(node):
            if neighbour not in towards:
                towards[neighbour] = node
                queue.append(neighbour)
    del towards[goal]
    return towards


def _item_name(item: Any) -> str:
    """Return an item's name, or its text if it has none."""
    return str(getattr(item, "name", item))
