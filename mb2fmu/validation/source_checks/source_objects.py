"""The user's SymPy objects, examined without mb2fmu's reading, and left unchanged.

The import (``mechanics.mechanism``) is part of what is to be validated, so nothing of it is used here: bodies, loads
and constraints are taken from the user's ``KanesMethod``, ``System``, ``LagrangesMethod`` or ``Parts`` itself.
"""
# ruff: noqa: SLF001 - what KanesMethod, points and frames were given stands in private attributes only

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import sympy as sm
from sympy.physics.mechanics import KanesMethod, LagrangesMethod, ReferenceFrame, System
from sympy.physics.mechanics.body_base import BodyBase
from sympy.physics.vector import Vector, dynamicsymbols

from mb2fmu.model.sources.frame_and_point_restoration import list_vector_frames, restore_frames_and_points
from mb2fmu.model.sources.mechanics_source import Mechanics, find_pivot_as_position_origin, origin
from mb2fmu.model.sources.parts_mechanics_source import Parts

Expressions = tuple[sm.Expr, ...]


@dataclass(frozen=True, slots=True)
class SympySourceObjects:
    """Parts of the user's mechanics, in SymPy's own objects and functions of time.

    Attributes:
        frame: The inertial frame; None for a Lagrangian that was given none.
        q: Coordinates, independent before dependent ones.
        u: Speeds, independent before dependent ones, without auxiliary ones.
        auxiliary: Auxiliary speeds.
        dependent: Those of ``u`` that follow from the velocity constraints.
        kinematic: Expressions that vanish, linear in q' and u.
        holonomic: Expressions of q and t that vanish.
        velocity: Expressions that vanish, linear in u or q': the rates of the holonomic ones and the others.
        bodies: Of all kinds, the ground too.
        loads: (point or frame, vector), those of actuators too.
        lagrangian: True where forces may come from a Lagrangian, too.
        origin: The point that positions count from; None if there is none.
    """

    frame: ReferenceFrame | None
    q: Expressions
    u: Expressions
    auxiliary: Expressions
    dependent: Expressions
    kinematic: Expressions
    holonomic: Expressions
    velocity: Expressions
    bodies: tuple[Any, ...]
    loads: tuple[tuple[Any, Vector], ...]
    lagrangian: bool = False
    origin: Any = None


def extract_mechanics_objects(mechanics: Mechanics, *, actuators: bool = True) -> SympySourceObjects:
    """Take the mechanics apart; call it within :func:`keep_mechanics_untouched`: actuators write results into points.

    Args:
        mechanics: As the model has it.
        actuators: False: without their loads, which may be too long to be composed.
    """
    return replace(
        _extract_parts(mechanics, actuators=actuators),
        origin=origin(mechanics) or find_pivot_as_position_origin(mechanics),
    )


def _extract_parts(mechanics: Mechanics, *, actuators: bool) -> SympySourceObjects:
    """Return the parts of any mechanics source, read from SymPy's own attributes."""
    match mechanics:
        case KanesMethod():
            return _extract_from_kane(mechanics)
        case System():
            return SympySourceObjects(
                mechanics.frame, tuple(mechanics.q), tuple(mechanics.u), tuple(mechanics.u_aux),
                tuple(mechanics.u_dep), tuple(mechanics.kdes), tuple(mechanics.holonomic_constraints),
                tuple(mechanics.velocity_constraints), tuple(mechanics.bodies),
                _place_loads(mechanics.loads, mechanics.actuators if actuators else ()),
            )  # fmt: skip
        case LagrangesMethod():
            bodies, loads = tuple(mechanics._bodies or ()), _place_loads(mechanics.forcelist or (), ())
            rates, rows = tuple(mechanics._qdots), tuple(mechanics.coneqs)
            holonomic = tuple(mechanics._hol_coneqs)
            return SympySourceObjects(
                mechanics.inertial,
                tuple(mechanics.q),
                rates,
                (),
                (),
                (),
                holonomic,
                rows,
                bodies,
                loads,
                lagrangian=True,
            )
    assert isinstance(mechanics, Parts)  # of recorded mechanics there are no objects
    return _extract_from_parts(mechanics, actuators=actuators)


def _extract_from_kane(method: KanesMethod) -> SympySourceObjects:
    """Return the parts of a KanesMethod; its kinematic equations are put together again from their matrices."""
    kinematic = ()
    if method._k_kqdot_implicit:
        rows = method._k_kqdot_implicit * method._qdot + method._f_k_implicit + method._k_ku_implicit * method.u
        kinematic = tuple(rows)
    velocity = tuple(method._k_nh * method.u + method._f_nh) if method._k_nh else ()
    return SympySourceObjects(
        method._inertial, tuple(method.q), tuple(method.u), tuple(method._uaux), tuple(method._udep), kinematic,
        tuple(method._f_h), velocity, tuple(method.bodylist or ()), _place_loads(method.forcelist or (), ()),
    )  # fmt: skip


def _extract_from_parts(parts: Parts, *, actuators: bool) -> SympySourceObjects:
    """Return the given parts one by one; the origin gets velocity zero if the user gave none."""
    if parts.frame not in parts.origin._vel_dict:
        parts.origin.set_vel(parts.frame, 0)  # the origin is fixed in the inertial frame, by its definition
    independent = tuple(u for u in parts.u if u not in parts.u_dependent)
    coordinates = tuple(q for q in parts.q if q not in parts.q_dependent)
    rates = tuple(sm.diff(row, dynamicsymbols._t) for row in parts.holonomic_constraints)
    return SympySourceObjects(
        parts.frame, (*coordinates, *parts.q_dependent), (*independent, *parts.u_dependent), tuple(parts.u_auxiliary),
        tuple(parts.u_dependent), tuple(parts.kinematic_equations), tuple(parts.holonomic_constraints),
        (*rates, *parts.velocity_constraints), tuple(parts.bodies),
        _place_loads(parts.loads, parts.actuators if actuators else ()),
    )  # fmt: skip


def _place_loads(loads: Iterable[Any], actuators: Iterable[Any]) -> tuple[tuple[Any, Vector], ...]:
    """Return all loads at points and frames: a force on a body acts at its mass centre, as SymPy's ``Force`` has it."""
    all_loads = [*loads, *(load for actuator in actuators for load in actuator.to_loads())]
    return tuple((load[0].masscenter if isinstance(load[0], BodyBase) else load[0], load[1]) for load in all_loads)


@contextmanager
def keep_mechanics_untouched(mechanics: Mechanics) -> Iterator[None]:
    """Restore on leaving all that SymPy has written into frames and points in the meantime.

    ``Point.vel``, ``Point.pos_from`` and ``ReferenceFrame.dcm`` keep what they compute in the objects, and
    ``KanesMethod`` requests it. A point without a velocity would have one from then on, which is another model.

    Args:
        mechanics: Frames and points that its parts are linked with, directly or not, are restored.
    """
    with restore_frames_and_points(_list_frames_and_points(mechanics)):
        yield


def _list_frames_and_points(mechanics: Mechanics) -> list[Any]:
    """Return all frames and points that the mechanics refer to."""
    if isinstance(mechanics, KanesMethod | LagrangesMethod):
        bodies = mechanics.bodylist if isinstance(mechanics, KanesMethod) else mechanics._bodies
        roots: list[Any] = [mechanics._inertial if isinstance(mechanics, KanesMethod) else mechanics.inertial]
        loads: Iterable[Any] = mechanics.forcelist or ()
        actuators: Iterable[Any] = ()
    else:
        assert isinstance(mechanics, System | Parts)
        bodies, roots, loads, actuators = mechanics.bodies, [mechanics.frame], mechanics.loads, mechanics.actuators
        roots.append(mechanics.fixed_point if isinstance(mechanics, System) else mechanics.origin)
    for body in bodies or ():
        roots += [body.masscenter, getattr(body, "frame", None)]
    for place, vector in loads:
        roots += [place, getattr(place, "masscenter", None), *list_vector_frames(vector)]
    for actuator in actuators:
        roots += getattr(getattr(actuator, "pathway", None), "attachments", ())
        roots += [getattr(actuator, name, None) for name in ("target_frame", "reaction_frame")]
    return roots


def find_shortest_path_tree(root: Any, neighbours: Callable[[Any], Iterable[Any]]) -> dict[Any, Any]:
    """Return each node → its predecessor on a shortest path from the root; parents come first."""
    tree: dict[Any, Any] = {root: None}
    queue = deque([root])
    while queue:
        node = queue.popleft()
        for neighbour in neighbours(node):
            if neighbour not in tree:
                tree[neighbour] = node
                queue.append(neighbour)
    return tree
