"""Reads a ModelDefinition once: SymPy's local relations become plain records.

Only *local* relations are read (a frame's direction cosines to its parent, a point's position from its parent), so that
SymPy never composes, and never expands, anything. SymPy's ``Point.vel`` writes into the points it passes; it is never called.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

import sympy as sm
from sympy.physics.mechanics import LagrangesMethod, Particle, Point, ReferenceFrame, RigidBody
from sympy.physics.vector import Vector, dynamicsymbols

from mb2fmu.equations.motion import Assignment, KinematicEquations, VelocityConstraints
from mb2fmu.errors import Fault, MechanismError
from mb2fmu.mechanism.consistency import settle_kinematics
from mb2fmu.mechanism.loads import read_loads, wrapping_loads
from mb2fmu.mechanism.records import Body, Frame, Lagrangian, Mechanism, Place, VectorTerms
from mb2fmu.mechanism.symbols import SymbolMap, plain_symbols, solve_kinematics, time_derivative
from mb2fmu.model import mechanics as door
from mb2fmu.model.definition import ModelDefinition, OutputRequest


def read(definition: ModelDefinition) -> Mechanism:
    """Reads the mechanics of a checked model.

    Args:
        definition: As ``mb2fmu.model.check`` returns it.

    Returns:
        The mechanism; the user's SymPy objects are as before.

    Raises:
        MechanismError: If the kinematics are missing, not linear, or contradict each other.
    """
    return _Reader(definition).mechanism()


class _Reader:
    """Holds what is needed while one definition is read."""

    def __init__(self, definition: ModelDefinition) -> None:
        self.definition = definition
        self.mechanics = definition.mechanics
        self.t = dynamicsymbols._t
        self._declare_symbols()
        self.kinematics = self._read_kinematics()
        self.N: ReferenceFrame | None = door.inertial_frame(self.mechanics)
        self.frame_of: dict[Any, int] = {}
        self.point_of: dict[Any, int] = {}

    def _declare_symbols(self) -> None:
        d = self.definition
        taken = {p.symbol.name for p in d.parameters} | {str(self.t)}
        self.q_user = [c.symbol for c in d.coordinates]
        self.u_user = [s.symbol for s in d.speeds]
        self.aux_user = list(door.speeds(self.mechanics).auxiliary)
        groups = [
            self.q_user,
            self.u_user,
            self.aux_user,
            [s.symbol for s in d.auxiliary_states],
            [i.symbol for i in d.inputs],
            [f.symbol for f in d.constraint_forces],
        ]
        plain = [plain_symbols(group, taken) for group in groups]
        self.q, self.u, self.u_aux, self.z, self.r, self.forces = plain
        taken_dots = set(taken)
        self.u_dot = tuple(_fresh(f"{ui.name}_d", taken_dots) for ui in self.u)
        self.to_plain: dict[sm.Basic, sm.Expr] = {}
        for group, symbols in zip(groups, plain, strict=True):
            self.to_plain.update(zip(group, symbols, strict=True))
        self.to_dynamic: dict[sm.Basic, sm.Expr] = {symbol: user for user, symbol in self.to_plain.items()}

    def _read_kinematics(self) -> KinematicEquations:
        """K and k0; afterwards ``self.plain`` knows q', q'', u' too."""
        equations = door.kinematic_equations(self.mechanics)
        # auxiliary speeds are zero in the motion: they must not enter q'
        equations = [sm.sympify(e).xreplace(dict.fromkeys(self.aux_user, sm.S.Zero)) for e in equations]
        kinematics = solve_kinematics(equations, self.q_user, self.u_user, dict(self.to_plain))
        q_dot = list(kinematics.matrix * sm.Matrix(self.u) + kinematics.offset) if self.u else []
        for user, dot in zip(self.q_user, q_dot, strict=True):
            self.to_plain[user.diff(self.t)] = dot
        for user, dot in zip(self.u_user, self.u_dot, strict=True):
            self.to_plain[user.diff(self.t)] = dot
        for user, dot in zip(self.q_user, q_dot, strict=True):
            second = time_derivative(dot, self.q, q_dot, self.t)
            second += sum(sm.diff(dot, ui) * udi for ui, udi in zip(self.u, self.u_dot, strict=True))
            self.to_plain[user.diff(self.t, 2)] = second
        for user in self.aux_user:
            self.to_plain[user.diff(self.t)] = sm.S.Zero
        self.q_dot = tuple(q_dot)
        self.plain = SymbolMap(self.to_plain, self.to_dynamic)
        return kinematics

    def mechanism(self) -> Mechanism:
        """Puts everything together and checks the kinematics numerically."""
        d = self.definition
        calculated = tuple(Assignment(p.symbol, sm.sympify(p.value)) for p in d.parameters if p.calculated)
        speeds = door.speeds(self.mechanics)
        dependent = set(speeds.dependent)
        shared: dict[str, Any] = {
            "definition": d,
            "t": self.t,
            "q": self.q,
            "u": self.u,
            "u_dot": self.u_dot,
            "u_auxiliary": self.u_aux,
            "z": self.z,
            "p": tuple(p.symbol for p in d.parameters if not p.calculated),
            "r": self.r,
            "calculated_parameters": calculated,
            "constraint_forces": self.forces,
            "u_independent": tuple(i for i, s in enumerate(self.u_user) if s not in dependent),
            "dynamic": self.to_dynamic,
            "kinematics": self.kinematics,
            "z_dot": tuple(self.plain(s.derivative) for s in d.auxiliary_states),
            "plain": self.plain,
        }
        if isinstance(self.mechanics, LagrangesMethod):
            return Mechanism(**shared, frames=(), points=(), bodies=(), loads=(), lagrangian=self._lagrangian())
        frames = self._read_frames()
        points = self._read_points()
        bodies = self._read_bodies()
        taken = {s.name for s in (*self.q, *self.u, *self.u_aux, *self.z, *self.r, *self.forces, *self.u_dot)}
        taken |= {p.symbol.name for p in d.parameters}
        loads, load_of, z_dot = read_loads(
            door.loads(self.mechanics), door.actuators(self.mechanics), self, shared["z_dot"], taken
        )
        shared["z_dot"] = z_dot
        draft = Mechanism(
            **shared,
            frames=frames,
            points=points,
            bodies=bodies,
            loads=loads,
            load_of=load_of,
            frame_of=self.frame_of,
            point_of=self.point_of,
            holonomic=self._holonomic(),
            velocity_constraints=self._velocity_constraints(),
        )
        return settle_kinematics(draft, self._user_velocities())

    def terms(self, vector: Vector) -> VectorTerms:
        """A SymPy vector as components in the frames it is written in."""
        if vector == 0:
            return ()
        faults = [
            Fault(f"frame {frame.name} is not connected to the inertial frame", str(vector)[:60], "orient it")
            for _, frame in vector.args
            if frame not in self.frame_of
        ]
        if faults:
            raise MechanismError("a vector cannot be read:", faults)
        return tuple(
            (self.frame_of[frame], (self.plain(m[0]), self.plain(m[1]), self.plain(m[2]))) for m, frame in vector.args
        )

    def _lagrangian(self) -> Lagrangian:
        method = self.mechanics
        loads_only = LagrangesMethod(0, list(method.q), method.forcelist or None, None, method.inertial)
        loads_only.form_lagranges_equations()
        forces = tuple(self.plain(force) for force in loads_only.forcing)
        return Lagrangian(self.plain(method._L[0]), forces, method)

    def _read_frames(self) -> tuple[Frame, ...]:
        """Breadth first from N over direct orientations."""
        assert self.N is not None
        frames = [Frame(self.N.name, -1, sm.ImmutableMatrix.eye(3), 0, ())]
        self.frame_of[self.N] = 0
        order: list[ReferenceFrame] = [self.N]
        queue = deque(order)
        while queue:
            parent = queue.popleft()
            for child in parent._dcm_dict:
                if child not in self.frame_of:
                    self.frame_of[child] = len(order)
                    order.append(child)
                    queue.append(child)
        references = _angular_velocity_tree(self.N)
        for child in order[1:]:
            parent = next(p for p in order if p in child._dcm_dict and self.frame_of[p] < self.frame_of[child])
            rotation = sm.ImmutableMatrix(parent._dcm_dict[child]).applyfunc(self.plain)
            reference = references.get(child)
            if reference is None or reference not in self.frame_of:
                raise MechanismError(
                    "the kinematics are incomplete:",
                    [Fault(f"frame {child.name} has no angular velocity in {self.N.name}", remedy="orient it, or set_ang_vel")],
                )
            omega = self.terms(child._ang_vel_dict[reference])
            frames.append(Frame(child.name, self.frame_of[parent], rotation, self.frame_of[reference], omega))
        return tuple(frames)

    def _wanted_points(self) -> list[Point]:
        """Points that something needs: mass centres, loads, pathways, outputs, joints."""
        wanted: list[Point] = []
        origin = door.origin(self.mechanics)
        if origin is not None:
            wanted.append(origin)
        for body in door.bodies(self.mechanics):
            wanted.append(body.masscenter)
        for load in door.loads(self.mechanics):
            place = load[0]
            if isinstance(place, Point):
                wanted.append(place)
            elif isinstance(place, (RigidBody, Particle)):
                wanted.append(place.masscenter)
        for actuator in door.actuators(self.mechanics):
            pathway = getattr(actuator, "pathway", None)
            wanted += list(getattr(pathway, "attachments", ()))
            wanted += [load.point for load in wrapping_loads(actuator) if isinstance(getattr(load, "point", None), Point)]
        for request in self.definition.outputs:
            if isinstance(request, OutputRequest):
                wanted += [item for item in (*request.subject, request.relative_to) if isinstance(item, Point)]
        for joint in door.joints(self.mechanics):
            wanted += [joint.parent_point, joint.child_point]
        return list(dict.fromkeys(wanted))

    def _read_points(self) -> tuple[Place, ...]:
        """Shortest chains of positions from the origin; what does not hang on the origin hangs on given velocities."""
        origin = door.origin(self.mechanics) or Point("O")
        tree = _position_tree([origin])
        wanted = self._wanted_points()
        places: list[Place] = [Place(origin.name, -1, None, (), True)]
        self.point_of[origin] = 0
        self._points = [origin]
        for point in wanted:
            self._add_chain(point, tree, places, located=True)
        loose = [point for point in wanted if point not in self.point_of]
        if not loose:
            return tuple(places)
        given = [p for p in _connected(loose) if self.N in p._vel_dict]
        faults = []
        tree = _position_tree(given)
        for point in given:
            if point in loose or point in {tree.get(p) for p in loose}:
                self._number(point, Place(point.name, -1, None, self.terms(point._vel_dict[self.N]), False), places)
        for point in loose:
            if point in self.point_of:
                continue
            if point not in tree:
                what = f"the velocity of {point.name} in {self.N} is not known"
                faults.append(Fault(what, remedy=f"locate it from {origin.name}, or give its velocity by set_vel"))
                continue
            self._add_chain(point, tree, places, located=False)
        if faults:
            raise MechanismError("the kinematics are incomplete:", faults)
        return tuple(places)

    def _add_chain(
        self, point: Point, tree: dict[Point, Point | None], places: list[Place], *, located: bool
    ) -> None:
        """Adds ``point`` and those between it and what is already there."""
        if point not in tree:
            return
        chain = []
        current: Point | None = point
        while current is not None and current not in self.point_of:
            chain.append(current)
            current = tree[current]
        for node in reversed(chain):
            parent = tree[node]
            if parent is None:
                self._number(node, Place(node.name, -1, None, self.terms(node._vel_dict[self.N]), False), places)
                continue
            offset = self.terms(node._pos_dict[parent])
            self._number(node, Place(node.name, self.point_of[parent], offset, None, located), places)

    def _number(self, point: Point, place: Place, places: list[Place]) -> None:
        self.point_of[point] = len(places)
        self._points.append(point)
        places.append(place)

    def _user_velocities(self) -> dict[int, VectorTerms]:
        """Velocities in N as the user (or a SymPy joint) has set them, for located points."""
        return {
            self.point_of[point]: self.terms(point._vel_dict[self.N])
            for point in self._points[1:]
            if self.N in point._vel_dict
        }

    def _read_bodies(self) -> tuple[Body, ...]:
        bodies = []
        for body in door.bodies(self.mechanics):
            point = self.point_of[body.masscenter]
            mass = self.plain(body.mass)
            if isinstance(body, Particle) or getattr(body, "is_rigidbody", True) is False:
                bodies.append(Body(body.name, point, -1, mass, None))
                continue
            inertia = body.central_inertia
            matrix = sm.ImmutableMatrix(inertia.to_matrix(body.frame)) if inertia != 0 else sm.ImmutableMatrix.zeros(3, 3)
            bodies.append(Body(body.name, point, self.frame_of[body.frame], mass, matrix.applyfunc(self.plain)))
        return tuple(bodies)

    def _holonomic(self) -> tuple[tuple[str, sm.Expr], ...]:
        rows = door.holonomic_constraints(self.mechanics)
        return tuple((f"holonomic[{i + 1}]", self.plain(row)) for i, row in enumerate(rows))

    def _velocity_constraints(self) -> VelocityConstraints | None:
        """All velocity constraints, linear in u."""
        rows = [self.plain(row) for row in door.velocity_constraints(self.mechanics)]
        if not rows:
            return None
        u = list(self.u)
        vector = sm.Matrix(rows)
        jacobian = vector.jacobian(u)
        offset = vector.xreplace(dict.fromkeys(u, sm.S.Zero))
        faults = []
        for i, row in enumerate(rows):
            late = row.free_symbols & {*self.u_dot, *self.u_aux}
            if late:
                faults.append(Fault(f"velocity constraint {i + 1} contains {', '.join(sorted(map(str, late)))}"))
            if jacobian[i, :].free_symbols & set(u):
                faults.append(Fault(f"velocity constraint {i + 1} is not linear in the speeds", str(row)[:80]))
        if faults:
            raise MechanismError("the velocity constraints cannot be used:", faults)
        derivative = [time_derivative(row, self.q, self.q_dot, self.t) for row in rows]
        names = tuple(f"nonholonomic[{i + 1}]" for i in range(len(rows)))
        return VelocityConstraints(
            names, sm.ImmutableMatrix(jacobian), sm.ImmutableMatrix(offset), sm.ImmutableMatrix(derivative)
        )


def _fresh(name: str, taken: set[str]) -> sm.Symbol:
    while name in taken:
        name += "_"
    taken.add(name)
    return sm.Symbol(name)


def _angular_velocity_tree(root: ReferenceFrame) -> dict[ReferenceFrame, ReferenceFrame]:
    """Frame → next frame on the shortest chain of angular velocities to ``root``, as SymPy's ``ang_vel_in`` goes."""
    tree: dict[ReferenceFrame, ReferenceFrame] = {root: root}
    queue = deque([root])
    while queue:
        parent = queue.popleft()
        for child in parent._ang_vel_dict:
            if child not in tree:
                tree[child] = parent
                queue.append(child)
    return tree


def _position_tree(roots: Iterable[Point]) -> dict[Point, Point | None]:
    """Point → previous point on the shortest chain of positions from one of ``roots``."""
    tree: dict[Point, Point | None] = dict.fromkeys(roots)
    queue = deque(tree)
    while queue:
        parent = queue.popleft()
        for child in parent._pos_dict:
            if child not in tree:
                tree[child] = parent
                queue.append(child)
    return tree


def _connected(points: Iterable[Point]) -> list[Point]:
    """All points that are connected to ``points`` by positions."""
    return list(_position_tree(points))
