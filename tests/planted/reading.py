"""Faults of reading: a ``Mechanism`` that is not what the user wrote. All stages after it share them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import sympy as sm
from planted.fault import Mutant, Subject

from mb2fmu.mechanics.mechanism.records.mechanism_records import (
    Components,
    ForceLoad,
    Load,
    Mechanism,
    PathwayLoad,
    TorqueActuatorLoad,
    TorqueLoad,
    VectorTerms,
)

SLIGHTLY = sm.Float("1.03")
APART = sm.Float("0.005")
"""m or rad, by which a constraint is moved."""

_TURN = sm.ImmutableMatrix([[0, 0, 1], [1, 0, 0], [0, 1, 0]])
"""x → y → z → x."""


def mutants(subject: Subject) -> Iterator[Mutant]:
    """Every fault of reading that can be planted in a mechanism."""
    mechanism = subject.read
    for faults in (
        _of_bodies,
        _of_frames,
        _of_points,
        _of_loads,
        _of_constraints,
        _of_reactions,
        _of_kinematics,
        _of_lagrangian,
    ):
        yield from faults(mechanism)


def _planted(kind: str, place: str, change: Callable[[Mechanism], Mechanism]) -> Mutant:
    return Mutant(kind, "reading", place, change)


def _with(items: Sequence[Any], index: int, item: Any) -> tuple[Any, ...]:
    """The items with another one at an index."""
    return (*items[:index], item, *items[index + 1 :])


def _body(index: int, **changes: Any) -> Callable[[Mechanism], Mechanism]:
    """Replaces fields of a body."""
    return lambda m: replace(m, bodies=_with(m.bodies, index, replace(m.bodies[index], **changes)))


def _of_bodies(mechanism: Mechanism) -> Iterator[Mutant]:
    for i, body in enumerate(mechanism.bodies):
        yield _planted("mass", f"{body.name}: mass doubled", _body(i, mass=2 * body.mass))
        if body.inertia is None:
            continue
        lost = "read as a particle, without its inertia"
        yield _planted("inertia dropped", f"{body.name}: {lost}", _body(i, frame=-1, inertia=None))
        for k, axis in enumerate("xyz"):
            other = body.inertia.as_mutable()
            other[k, k] *= sm.Float("1.3")
            place = f"{body.name}: moment about {axis} times 1.3"
            yield _planted("inertia entry", place, _body(i, inertia=sm.ImmutableMatrix(other)))
        other = body.inertia.as_mutable()
        other[0, 1] = other[1, 0] = other[0, 1] + (other[0, 0] + other[1, 1]) / 10
        place = f"{body.name}: a product of inertia too many"
        yield _planted("inertia entry", place, _body(i, inertia=sm.ImmutableMatrix(other)))


def _turned(terms: VectorTerms, frames: Sequence[int]) -> VectorTerms:
    """The vector turned by ``_TURN`` where it is written in one of the frames."""
    found = []
    for frame, components in terms:
        turned: Components = tuple(_TURN * sm.ImmutableMatrix(components)) if frame in frames else components
        found.append((frame, turned))
    return tuple(found)


def _of_frames(mechanism: Mechanism) -> Iterator[Mutant]:
    for i, frame in enumerate(mechanism.frames):
        if frame.parent < 0 or not frame.oriented:
            continue
        angle = sm.ImmutableMatrix(sm.rot_axis3(-sm.Float("0.05")))

        def replaced(i: int, **changes: Any) -> Callable[[Mechanism], Mechanism]:
            return lambda m: replace(m, frames=_with(m.frames, i, replace(m.frames[i], **changes)))

        rotation, written = frame.rotation, (frame.parent, i)
        if frame.angular_velocity:
            turned = {
                "rotation": _TURN * rotation * _TURN.T,
                "angular_velocity": _turned(frame.angular_velocity, written),
            }
            yield _planted("joint axis", f"{frame.name}: turns about another axis", replaced(i, **turned))
            backwards = tuple((f, tuple(-c for c in cs)) for f, cs in frame.angular_velocity)
            changes = {"rotation": rotation.T, "angular_velocity": backwards}
            yield _planted("sign", f"{frame.name}: turns the other way round", replaced(i, **changes))
        place = f"{frame.name}: mounted askew by 0.05 rad about z"
        yield _planted("rotation of a frame", place, replaced(i, rotation=rotation * angle))


def _of_points(mechanism: Mechanism) -> Iterator[Mutant]:
    for i, point in enumerate(mechanism.points):

        def replaced(i: int, **changes: Any) -> Callable[[Mechanism], Mechanism]:
            return lambda m: replace(m, points=_with(m.points, i, replace(m.points[i], **changes)))

        if point.position and point.velocity is None:
            longer = _scaled(point.position, SLIGHTLY)
            yield _planted("length", f"{point.name}: 3 % too far away", replaced(i, position=longer))
        elif point.velocity:
            faster = _scaled(point.velocity, SLIGHTLY)
            yield _planted("velocity of a point", f"{point.name}: 3 % too fast", replaced(i, velocity=faster))
        if point.position and point.velocity is None and len(mechanism.frames) > 1:
            other = _reframed(point.position, mechanism)
            yield _planted("frame of a position", f"{point.name}: in another frame", replaced(i, position=other))


def _scaled(terms: VectorTerms, factor: sm.Expr) -> VectorTerms:
    """The vector times a factor."""
    return tuple((frame, (a * factor, b * factor, c * factor)) for frame, (a, b, c) in terms)


def _reframed(terms: VectorTerms, mechanism: Mechanism) -> VectorTerms:
    """The same components in another frame: the parent, or the next one where that is N."""
    return tuple((_other_frame(frame, mechanism), components) for frame, components in terms)


def _other_frame(frame: int, mechanism: Mechanism) -> int:
    oriented = [i for i, f in enumerate(mechanism.frames) if f.oriented and i != frame]
    parent = mechanism.frames[frame].parent
    if parent in oriented:
        return parent
    return oriented[0] if oriented else frame


def _load(index: int, load: Load) -> Callable[[Mechanism], Mechanism]:
    """Replaces a load, so that the numbers of the others stay."""
    return lambda m: replace(m, loads=_with(m.loads, index, load))


def times(load: Load, factor: sm.Expr) -> Load:
    """A load that is a multiple of another one."""
    if isinstance(load, ForceLoad):
        return replace(load, force=_scaled(load.force, factor))
    if isinstance(load, TorqueLoad):
        return replace(load, torque=_scaled(load.torque, factor))
    if isinstance(load, PathwayLoad):
        potential = None if load.potential is None else load.potential * factor
        return replace(load, force=load.force * factor, potential=potential)
    return replace(load, torque=load.torque * factor)


def _of_loads(mechanism: Mechanism) -> Iterator[Mutant]:
    for i, load in enumerate(mechanism.loads):
        yield _planted("factor of a load", f"{load.name} times 1.03", _load(i, times(load, SLIGHTLY)))
        yield _planted("sign", f"{load.name} times -1", _load(i, times(load, sm.S.NegativeOne)))
        yield _planted("load dropped", load.name, _load(i, times(load, sm.S.Zero)))
        yield from _of_one_load(mechanism, i, load)


def _of_one_load(mechanism: Mechanism, i: int, load: Load) -> Iterator[Mutant]:
    if isinstance(load, ForceLoad):
        other = replace(load, force=_reframed(load.force, mechanism))
        yield _planted("frame of a force", load.name, _load(i, other))
        if len(mechanism.points) > 2:
            point = load.point - 1 if load.point > 0 else load.point + 1
            place = f"{load.name}: at {mechanism.points[point].name}"
            yield _planted("point of a force", place, _load(i, replace(load, point=point)))
    elif isinstance(load, TorqueLoad):
        yield _planted("frame of a force", load.name, _load(i, replace(load, torque=_reframed(load.torque, mechanism))))
    elif isinstance(load, TorqueActuatorLoad):
        axis = _turned(load.axis, range(len(mechanism.frames)))
        yield _planted("axis of a torque", load.name, _load(i, replace(load, axis=axis)))
        if load.reaction >= 0:
            yield _planted("reaction dropped", load.name, _load(i, replace(load, reaction=-1)))
    if isinstance(load, PathwayLoad) and load.length in load.force.free_symbols:
        moved = {load.length: load.length * sm.Float("1.02")}
        potential = None if load.potential is None else load.potential.xreplace(moved)
        changed = replace(load, force=load.force.xreplace(moved), potential=potential)
        yield _planted("spring zero", load.name, _load(i, changed))
        if load.potential is not None:
            lost = replace(load, potential=load.potential * SLIGHTLY)
            yield _planted("potential", f"{load.name}: its potential times 1.03", _load(i, lost))
    elif isinstance(load, TorqueActuatorLoad):
        angles = [q for q in mechanism.q if q in load.torque.free_symbols]
        for q in angles:
            changed = replace(load, torque=load.torque.xreplace({q: q + sm.Float("0.05")}))
            yield _planted("spring zero", f"{load.name}: {q}", _load(i, changed))


def _of_constraints(mechanism: Mechanism) -> Iterator[Mutant]:
    constraints = mechanism.velocity_constraints
    for i, (name, phi) in enumerate(mechanism.holonomic):
        moved = (name, phi + APART)

        def apart(m: Mechanism, i: int = i, moved: Any = moved) -> Mechanism:
            return replace(m, holonomic=_with(m.holonomic, i, moved))

        yield _planted("constraint by a constant", name, apart)
        for q in [q for q in mechanism.q if q in phi.free_symbols]:
            change = _geared(mechanism, i, q)
            if change:
                yield _planted("gear ratio", f"{name}: {q} times 1.03", change)
    if constraints is None:
        return
    for i in range(len(mechanism.holonomic), len(constraints.names)):
        for j, u in enumerate(mechanism.u):
            if constraints.jacobian[i, j] != 0:
                place = f"{constraints.names[i]}: {u} times 1.03"
                yield _planted("velocity constraint", place, _scaled_column(i, j, u))


def _of_reactions(mechanism: Mechanism) -> Iterator[Mutant]:
    for i, acts in enumerate(mechanism.force_applications):
        for k, act in enumerate(acts):
            stronger = _with(acts, k, replace(act, vector=_scaled(act.vector, SLIGHTLY)))

            def react(m: Mechanism, i: int = i, stronger: Any = stronger) -> Mechanism:
                return replace(m, force_applications=_with(m.force_applications, i, stronger))

            yield _planted("reaction", f"force {k + 1} of constraint {i + 1} times 1.03", react)


def _geared(mechanism: Mechanism, row: int, q: sm.Symbol) -> Callable[[Mechanism], Mechanism] | None:
    """A holonomic row with 1.03 q for q, its rates alike; None where q' is not one speed."""
    k = mechanism.kinematics.matrix.row(mechanism.q.index(q))
    speeds = [j for j, entry in enumerate(k) if entry != 0]
    if len(speeds) != 1 or k[speeds[0]] != 1 or mechanism.velocity_constraints is None:
        return None
    column = speeds[0]
    u = mechanism.u[column]

    def change(m: Mechanism) -> Mechanism:
        assert m.velocity_constraints is not None
        c, moved = m.velocity_constraints, {q: q * SLIGHTLY, u: u * SLIGHTLY}
        jacobian, bias = c.jacobian.as_mutable(), c.bias.as_mutable()
        jacobian[row, :] = jacobian[row, :].xreplace(moved)
        jacobian[row, column] *= SLIGHTLY
        bias[row, 0] = bias[row, 0].xreplace(moved)
        changed = replace(c, jacobian=sm.ImmutableMatrix(jacobian), bias=sm.ImmutableMatrix(bias))
        name, phi = m.holonomic[row]
        holonomic = _with(m.holonomic, row, (name, phi.xreplace(moved)))
        return replace(m, velocity_constraints=changed, holonomic=holonomic)

    return change


def _scaled_column(row: int, column: int, u: sm.Symbol) -> Callable[[Mechanism], Mechanism]:
    """A rolling condition with 1.03 u for u."""

    def change(m: Mechanism) -> Mechanism:
        assert m.velocity_constraints is not None
        c = m.velocity_constraints
        jacobian, bias = c.jacobian.as_mutable(), c.bias.as_mutable()
        jacobian[row, column] *= SLIGHTLY
        bias[row, 0] = bias[row, 0].xreplace({u: u * SLIGHTLY})
        changed = replace(c, jacobian=sm.ImmutableMatrix(jacobian), bias=sm.ImmutableMatrix(bias))
        return replace(m, velocity_constraints=changed)

    return change


def _of_kinematics(mechanism: Mechanism) -> Iterator[Mutant]:
    matrix = mechanism.kinematics.matrix
    for i in range(matrix.rows):
        for j in range(matrix.cols):
            if matrix[i, j] != 0:

                def change(m: Mechanism, i: int = i, j: int = j) -> Mechanism:
                    other = m.kinematics.matrix.as_mutable()
                    other[i, j] *= SLIGHTLY
                    return replace(m, kinematics=replace(m.kinematics, matrix=sm.ImmutableMatrix(other)))

                place = f"{mechanism.q[i]}' by {mechanism.u[j]} times 1.03"
                yield _planted("kinematic equation", place, change)
    for i, calculated in enumerate(mechanism.calculated_parameters):
        wrong = replace(calculated, expression=calculated.expression * SLIGHTLY)

        def calculate(m: Mechanism, i: int = i, wrong: Any = wrong) -> Mechanism:
            return replace(m, calculated_parameters=_with(m.calculated_parameters, i, wrong))

        yield _planted("calculated parameter", f"{calculated.symbol} times 1.03", calculate)
    for i, rate in enumerate(mechanism.z_dot):

        def slower(m: Mechanism, i: int = i, rate: Any = rate) -> Mechanism:
            return replace(m, z_dot=_with(m.z_dot, i, rate * SLIGHTLY))

        yield _planted("auxiliary state", f"{mechanism.z[i]}' times 1.03", slower)


def _of_lagrangian(mechanism: Mechanism) -> Iterator[Mutant]:
    if mechanism.lagrangian is None:
        return
    for i, term in enumerate(sm.Add.make_args(mechanism.lagrangian.expression)):

        def change(m: Mechanism, term: Any = term) -> Mechanism:
            assert m.lagrangian is not None
            other = m.lagrangian.expression + term * (SLIGHTLY - 1)
            return replace(m, lagrangian=replace(m.lagrangian, expression=other))

        yield _planted("term of the Lagrangian", f"term {i + 1} times 1.03", change)
