"""One interface to all sources of mechanics: ``System``, ``KanesMethod``, ``LagrangesMethod``, ``Parts``, recorded.

Nothing here changes the objects: SymPy's ``Point.vel`` and ``ReferenceFrame.dcm`` write what they compute into the
points and frames they pass, so neither is called; only local relations are looked at. What a source cannot know comes
back empty or as None (a Lagrangian alone has no bodies).
"""
# ruff: noqa: SLF001 - what KanesMethod, points and frames were given stands in private attributes only

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import sympy as sm
from sympy.physics.mechanics import Dyadic, JointsMethod, KanesMethod, LagrangesMethod, Point, ReferenceFrame, System
from sympy.physics.vector import dynamicsymbols

from mb2fmu.model.expression_traversal import partial_derivative
from mb2fmu.model.sources.parts_mechanics_source import Parts
from mb2fmu.model.sources.record_based_mechanics import FrameReference, NamedFramePoint, RecordBasedMechanics

ExpressionTuple = tuple[sm.Expr, ...]
Mechanics: TypeAlias = System | KanesMethod | LagrangesMethod | Parts | RecordBasedMechanics


@dataclass(frozen=True, slots=True)
class GeneralizedSpeeds:
    """Generalized speeds of a mechanism, as SymPy keeps them.

    Attributes:
        independent: Those that are states.
        dependent: Those that follow from the velocity constraints.
        auxiliary: Always zero in the motion; they bring noncontributing forces to light.
    """

    independent: ExpressionTuple
    dependent: ExpressionTuple = ()
    auxiliary: ExpressionTuple = ()

    @property
    def all(self) -> ExpressionTuple:
        """The speeds u, independent before dependent, without auxiliary ones."""
        return (*self.independent, *self.dependent)


def is_mechanics_source(candidate: object) -> bool:
    """Return whether ``candidate`` is a mechanics source."""
    return isinstance(candidate, System | KanesMethod | LagrangesMethod | Parts | RecordBasedMechanics)


def coordinates(mechanics: Mechanics) -> ExpressionTuple:
    """Return the generalized coordinates q, independent before dependent ones where the source distinguishes them."""
    return mechanics.coordinates if isinstance(mechanics, RecordBasedMechanics) else tuple(mechanics.q)


def dependent_coordinates(mechanics: Mechanics) -> ExpressionTuple:
    """Return coordinates that holonomic constraints determine; empty for a ``LagrangesMethod``, which names none."""
    match mechanics:
        case System():
            return tuple(mechanics.q_dep)
        case KanesMethod():
            return tuple(mechanics._qdep)
    return tuple(mechanics.q_dependent) if isinstance(mechanics, Parts) else ()


def describe_mechanics_kind(mechanics: Mechanics | JointsMethod) -> str:
    """Return a noun phrase for the kind of mechanics, for the report."""
    if isinstance(mechanics, RecordBasedMechanics):
        return mechanics.kind
    kinds = {
        System: "a SymPy System",
        KanesMethod: "a KanesMethod",
        LagrangesMethod: "a LagrangesMethod",
        JointsMethod: "a JointsMethod",
    }
    return next((text for kind, text in kinds.items() if isinstance(mechanics, kind)), "parts")


def speeds(mechanics: Mechanics) -> GeneralizedSpeeds:
    """Return the generalized speeds.

    A ``LagrangesMethod`` has none of its own: there, and wherever the user chose so, a speed is ``Derivative(q)``.
    """
    match mechanics:
        case System():
            return GeneralizedSpeeds(tuple(mechanics.u_ind), tuple(mechanics.u_dep), tuple(mechanics.u_aux))
        case KanesMethod():
            dependent = tuple(mechanics._udep)
            independent = tuple(mechanics.u)[: len(mechanics.u) - len(dependent)]
            return GeneralizedSpeeds(independent, dependent, tuple(mechanics._uaux))
        case LagrangesMethod():
            return GeneralizedSpeeds(tuple(mechanics._qdots))
        case RecordBasedMechanics():
            return GeneralizedSpeeds(mechanics.speeds)
    independent = tuple(u for u in mechanics.u if u not in mechanics.u_dependent)
    return GeneralizedSpeeds(independent, tuple(mechanics.u_dependent), tuple(mechanics.u_auxiliary))


def kinematic_equations(mechanics: Mechanics) -> ExpressionTuple:
    """Return expressions that vanish, linear in q' and u.

    A q' that is itself a speed (``Derivative(q)`` among :func:`speeds`) has no equation: it needs none. So a
    ``LagrangesMethod`` has none at all.
    """
    match mechanics:
        case System():
            return _nonzero_equations(mechanics.kdes)
        case KanesMethod():
            if not mechanics._k_kqdot_implicit:
                return ()
            equations = mechanics._k_kqdot_implicit * mechanics._qdot + mechanics._f_k_implicit
            return _nonzero_equations(equations + mechanics._k_ku_implicit * mechanics.u)
        case LagrangesMethod() | RecordBasedMechanics():
            return ()
    return _nonzero_equations(mechanics.kinematic_equations)


def holonomic_constraints(mechanics: Mechanics) -> ExpressionTuple:
    """Return expressions of q and t that vanish."""
    match mechanics:
        case System():
            return tuple(mechanics.holonomic_constraints)
        case KanesMethod():
            return tuple(mechanics._f_h)
        case LagrangesMethod():
            return tuple(mechanics._hol_coneqs)
        case RecordBasedMechanics():
            return ()
    return tuple(mechanics.holonomic_constraints)


def velocity_constraints(mechanics: Mechanics) -> ExpressionTuple:
    """Return expressions that vanish, linear in u or q'; rates of holonomic constraints come first.

    As many as there are dependent speeds; a ``LagrangesMethod`` names none of those.
    """
    match mechanics:
        case System():
            return tuple(mechanics.velocity_constraints)
        case KanesMethod():
            return tuple(mechanics._k_nh * mechanics.u + mechanics._f_nh) if mechanics._k_nh else ()
        case LagrangesMethod():
            return tuple(mechanics.coneqs)
        case RecordBasedMechanics():
            return ()
    differentiated = tuple(_differentiate(row, dynamicsymbols._t) for row in mechanics.holonomic_constraints)
    return (*differentiated, *mechanics.velocity_constraints)


@lru_cache(256)  # several checks and the import take the same rows
def _differentiate(row: sm.Expr, t: sm.Symbol) -> sm.Expr:
    """Return the rate of a constraint's row."""
    return partial_derivative(sm.sympify(row), t)


def bodies(mechanics: Mechanics) -> tuple[Any, ...]:
    """Return the ``RigidBody`` and ``Particle`` objects that can move.

    A body that is the ground itself (its frame is N, its mass centre the origin: ``System.from_newtonian`` adds such a
    one) is left out: its mass and inertia do not matter and need no values.
    """
    frame = inertial_frame(mechanics)
    return tuple(body for body in _all_source_bodies(mechanics) if not _is_ground(body, frame))


def is_rigid_body(body: Any) -> bool:
    """Return whether a body has a frame and a rotational inertia, as opposed to a particle.

    SymPy's own ``Body`` is a ``RigidBody`` and a ``Particle`` at once: it says of itself which of the two it is, by
    ``is_rigidbody``. Of all other bodies their inertia shows it.
    """
    is_rigid = getattr(body, "is_rigidbody", None)
    return getattr(body, "central_inertia", None) is not None if is_rigid is None else bool(is_rigid)


def needs_rotational_inertia_values(body: Any, frame: ReferenceFrame | None) -> bool:
    """Return whether a body's rotational inertia needs values.

    SymPy gives a ``RigidBody`` symbols of its own (``cart_ixx``, …) where it was given none. Of a body that never turns
    they are in no equation, and nobody declares them.

    Args:
        body: One that has a rotational inertia.
        frame: The inertial frame.
    """
    inertia = getattr(body, "inertia", None)
    if frame is None or inertia is None or not isinstance(inertia[0], Dyadic):
        return True
    coefficients = [sm.sympify(coefficient) for coefficient, _, _ in inertia[0].args]
    symbols = set().union(*(coefficient.free_symbols for coefficient in coefficients))
    own = {f"{body.name}_i{axes}" for axes in ("xx", "yy", "zz", "xy", "yz", "zx")}
    return not symbols or not {str(symbol) for symbol in symbols} <= own or _can_rotate(body.frame, frame)


def _can_rotate(frame: ReferenceFrame, inertial: ReferenceFrame) -> bool:
    """Return whether a frame can turn in the inertial frame; unconnected frames count as turning."""
    try:
        return bool(frame.ang_vel_in(inertial) != 0)
    except ValueError:
        return True


def body_potential_energy(body: Any) -> sm.Expr:
    """Return the potential energy that a body was given; 0 for classes without one."""
    return sm.sympify(getattr(body, "potential_energy", 0))


def loads(mechanics: Mechanics) -> tuple[Any, ...]:
    """Return forces and torques as given: ``(point or frame, vector)``, without those of actuators.

    What acts on the ground body (``System.apply_uniform_gravity`` pulls at it, too) moves nothing and is left out.
    """
    frame = inertial_frame(mechanics)
    ground = [body for body in _all_source_bodies(mechanics) if _is_ground(body, frame)]
    at_rest = {body.masscenter for body in ground} | {body.frame for body in ground}
    match mechanics:
        case System():
            found: Iterable[Any] = mechanics.loads
        case KanesMethod() | LagrangesMethod():
            found = mechanics.forcelist or ()
        case Parts():
            found = mechanics.loads
        case RecordBasedMechanics():
            found = ()
    return tuple(load for load in found if load[0] not in at_rest)


def actuators(mechanics: Mechanics) -> tuple[Any, ...]:
    """Return SymPy actuators; ``KanesMethod`` and ``LagrangesMethod`` hold only their loads."""
    return tuple(mechanics.actuators) if isinstance(mechanics, System | Parts) else ()


def joints(mechanics: Mechanics) -> tuple[Any, ...]:
    """Return SymPy joints; only a ``System`` has them."""
    return tuple(mechanics.joints) if isinstance(mechanics, System) else ()


def inertial_frame(mechanics: Mechanics) -> ReferenceFrame | FrameReference | None:
    """Return the inertial frame N; None for a Lagrangian that was given none."""
    match mechanics:
        case RecordBasedMechanics():
            return FrameReference(mechanics.ground)
        case KanesMethod():
            return mechanics._inertial
        case LagrangesMethod():
            return mechanics.inertial
    return mechanics.frame


def origin(mechanics: Mechanics) -> Point | NamedFramePoint | None:
    """Return a point fixed in N, the origin of positions.

    A ``System`` and ``Parts`` say it. Otherwise it is the nearest point, in steps of given positions from
    the first body's mass centre (from the loads' points where there are no bodies), whose velocity in N was set to
    zero; None if
    there is no such point: then the mechanism knows velocities, and no positions.
    """
    match mechanics:
        case System():
            return mechanics.fixed_point
        case Parts():
            return mechanics.origin
        case RecordBasedMechanics():
            return NamedFramePoint(mechanics.ground)
    frame = inertial_frame(mechanics)
    return next((point for point in _connected_load_points(mechanics) if point._vel_dict.get(frame) == 0), None)


def find_pivot_as_position_origin(mechanics: Mechanics) -> Point | None:
    """Return the origin of positions where no point has velocity zero: a pivot whose velocity is auxiliary speeds.

    They are zero in every motion, so that it rests. It is no ground: what pushes it does work at auxiliary speeds.
    """
    if isinstance(mechanics, (System, Parts, RecordBasedMechanics)) or origin(mechanics) is not None:
        return None
    frame, still = inertial_frame(mechanics), dict.fromkeys(speeds(mechanics).auxiliary, sm.S.Zero)
    for point in _connected_load_points(mechanics) if still else ():
        velocity = point._vel_dict.get(frame)
        if velocity is not None and all(c.xreplace(still) == 0 for m, _ in velocity.args for c in m):
            return point
    return None


def _connected_load_points(mechanics: Mechanics) -> Iterator[Point]:
    """Yield the points that are joined to mass centres and to points of loads by given positions."""
    starts = [body.masscenter for body in bodies(mechanics)]
    starts += [load[0] for load in loads(mechanics) if isinstance(load[0], Point)]
    for start in starts:
        yield from list_points_joined_by_positions(start)


def list_points_joined_by_positions(start: Point) -> list[Point]:
    """Return all points joined to ``start`` by given positions, nearest first."""
    found = {start: None}
    queue = deque([start])
    while queue:
        for neighbour in queue.popleft()._pos_dict:
            if neighbour not in found:
                found[neighbour] = None
                queue.append(neighbour)
    return list(found)


def _nonzero_equations(equations: Iterable[sm.Expr]) -> ExpressionTuple:
    """Return the equations that are not identically zero."""
    return tuple(equation for equation in equations if equation != 0)


def _all_source_bodies(mechanics: Mechanics) -> tuple[Any, ...]:
    """Return all bodies of a mechanics source, the ground included."""
    match mechanics:
        case KanesMethod():
            return tuple(mechanics.bodylist or ())
        case LagrangesMethod():
            return tuple(mechanics._bodies or ())
        case RecordBasedMechanics():
            return ()
    return tuple(mechanics.bodies)


def _is_ground(body: Any, frame: ReferenceFrame | FrameReference | None) -> bool:
    """Return whether a body is fixed in the inertial frame: its frame, and velocity zero."""
    return frame is not None and getattr(body, "frame", None) == frame and body.masscenter._vel_dict.get(frame) == 0
