"""Outputs: the user's expressions in plain symbols, and requested kinematic, load and energy quantities."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sympy as sm
from sympy.physics.mechanics.joint import Joint

from mb2fmu.equations.motion import DIAGNOSTICS, OutputExpression
from mb2fmu.errors import Fault, FormulationError
from mb2fmu.formulation.energy import kinetic_energy, potential_energy, potential_of_loads
from mb2fmu.formulation.generalized_forces import in_inertial_frame, magnitude, power
from mb2fmu.formulation.reactions import Reactions
from mb2fmu.formulation.rotations import euler_angles, quaternion
from mb2fmu.mechanism.constraint_reading import find_row
from mb2fmu.mechanism.kinematics import NamedKinematics, add, dot, scale, times
from mb2fmu.mechanism.quaternions import of_unit_length
from mb2fmu.mechanism.records import ForceLoad, Mechanism, TorqueLoad
from mb2fmu.model.definition import OutputRequest
from mb2fmu.variables import Level, Output, Quantity

AXES = (".x", ".y", ".z")
_DIAGNOSTICS = {
    "position_residual": DIAGNOSTICS.position_residual,
    "velocity_residual": DIAGNOSTICS.velocity_residual,
    "constraint_rank": DIAGNOSTICS.rank,
    "constraint_condition": DIAGNOSTICS.condition,
}


def outputs_of(kinematics: NamedKinematics) -> tuple[OutputExpression, ...]:
    """All outputs as scalars, in declared order.

    Raises:
        FormulationError: With every request that the mechanism cannot answer.
    """
    scalars: list[tuple[Quantity, str, sm.Expr]] = []
    reactions = Reactions(kinematics)
    faults: list[Fault] = []
    for item in kinematics.mechanism.definition.outputs:
        try:
            if isinstance(item, Output):
                scalars.append((item, item.name, kinematics.mechanism.plain(item.expression)))
            else:
                scalars += [(item, name, expression) for name, expression in _answer(item, kinematics, reactions)]
        except FormulationError as error:
            faults += [Fault(fault.what, item.where, fault.remedy) for fault in error.faults]
    if faults:  # one line of the model may ask for several outputs: a reaction's force and its torque
        raise FormulationError("some outputs cannot be computed:", list(dict.fromkeys(faults)))
    moving = kinematics.moving() | {DIAGNOSTICS.velocity_residual}
    late = kinematics.accelerated | {a.symbol for a in kinematics.late}
    return tuple(
        OutputExpression(
            name=name,
            expression=expression,
            level=_level(expression, moving, late),
            unit=item.unit,
            display_unit=item.display_unit,
            nominal=item.nominal,
            description=item.description,
        )
        for item, name, expression in scalars
    )


def _level(expression: sm.Expr, moving: set[sm.Symbol], late: set[sm.Symbol]) -> Level:
    symbols = expression.free_symbols
    if symbols & late:
        return "acceleration"
    return "velocity" if symbols & moving else "position"


def _refuse(what: str, remedy: str = "") -> FormulationError:
    return FormulationError("", [Fault(what, remedy=remedy)])


def _answer(request: OutputRequest, k: NamedKinematics, reactions: Reactions) -> Iterator[tuple[str, sm.Expr]]:
    """(name, expression) of each scalar of a request."""
    m = k.mechanism
    if m.lagrangian_alone and not (
        request.kind.endswith("energy") or request.kind in {"multiplier", "momentum", *_DIAGNOSTICS}
    ):
        raise _refuse(
            f"a Lagrangian alone has no points, frames or bodies: {request.kind} is not known",
            "hand over a System, a KanesMethod or Parts, or write the output as an expression",
        )
    match request.kind:
        case "position" | "velocity" | "acceleration" | "angular_velocity":
            yield from _vector(request, k)
        case "orientation":
            yield from _orientation(request, k)
        case "distance":
            a, b = (_located(p, m) for p in request.subject)
            d = add(k.position(b), scale(sm.S.NegativeOne, k.position(a)))
            yield request.name, sm.sqrt(dot(d, d))
        case "force" | "power":
            yield from _load(request, k)
        case "reaction_force" | "reaction_torque" | "multiplier" | "momentum":
            yield from _dynamic(request, k, reactions)
        case "position_residual" | "velocity_residual" | "constraint_rank" | "constraint_condition":
            yield from _diagnosis(request, m)
        case "kinetic_energy":
            yield request.name, kinetic_energy(k)
        case _:
            potential = potential_energy(k)
            if potential is None:
                names = ", ".join(potential_of_loads(k).unknown)
                raise _refuse(
                    f"the potential energy is not known: whether {names} have one, nothing tells",
                    "give that of all loads by model.potential_energy(...), 0 if there is none",
                )
            yield request.name, potential + (kinetic_energy(k) if request.kind == "total_energy" else 0)


def _vector(request: OutputRequest, k: NamedKinematics) -> Iterator[tuple[str, sm.Expr]]:
    m = k.mechanism
    if request.kind == "angular_velocity":
        vector = k.omega(_frame(request.subject[0], m))
        if request.relative_to is not None:
            vector = add(vector, scale(sm.S.NegativeOne, k.omega(_frame(request.relative_to, m))))
    elif request.kind == "position":
        vector = k.position(_located(request.subject[0], m))
        if request.relative_to is not None:
            vector = add(vector, scale(sm.S.NegativeOne, k.position(_located(request.relative_to, m))))
    else:
        point = _point(request.subject[0], m)
        vector = k.velocity(point) if request.kind == "velocity" else k.acceleration(point)
    if request.expressed_in is not None:
        vector = times(k.rotation(_oriented(request.expressed_in, m)).T, vector)
    yield from zip((request.name + axis for axis in AXES), vector, strict=True)


def _orientation(request: OutputRequest, k: NamedKinematics) -> Iterator[tuple[str, sm.Expr]]:
    m = k.mechanism
    rotation = k.rotation(_oriented(request.subject[0], m))
    if request.relative_to is not None:
        rotation = k.rotation(_oriented(request.relative_to, m)).T * rotation
        rotation = sm.ImmutableMatrix(rotation).applyfunc(lambda e: k.name(e, f"C_{request.name}"))
    if request.representation == "quaternion":
        yield from zip((request.name + part for part in (".w", *AXES)), quaternion(rotation), strict=True)
        return
    try:
        angles = euler_angles(rotation, request.representation)
    except ValueError as error:
        raise _refuse(str(error), "use quaternion, or three axes such as zxy") from None
    yield from zip((f"{request.name}[{i}]" for i in (1, 2, 3)), angles, strict=True)


def _load(request: OutputRequest, k: NamedKinematics) -> Iterator[tuple[str, sm.Expr]]:
    m = k.mechanism
    number = m.load_of.get(id(request.subject[0]))
    if number is None:
        raise _refuse(
            f"{request.name} asks for a load that is not among those handed over",
            "pass the very object that was given to the mechanics",
        )
    load = m.loads[number]
    if request.kind == "power":
        yield request.name, power(number, k)
    elif isinstance(load, (ForceLoad, TorqueLoad)):
        vector = in_inertial_frame(load.force if isinstance(load, ForceLoad) else load.torque, k)
        yield from zip((request.name + axis for axis in AXES), vector, strict=True)
    else:
        yield request.name, magnitude(load, k)


def _diagnosis(request: OutputRequest, m: Mechanism) -> Iterator[tuple[str, sm.Expr]]:
    if m.velocity_constraints is None:
        raise _refuse(f"{request.name}: the mechanism has no constraints", "leave output_diagnostics out")
    if m.holonomic or request.kind != "position_residual":
        yield request.name, _DIAGNOSTICS[request.kind]


def _dynamic(request: OutputRequest, k: NamedKinematics, reactions: Reactions) -> Iterator[tuple[str, sm.Expr]]:
    if request.kind == "multiplier":
        yield request.name, _multiplier(request.subject[0], k.mechanism)
    elif request.kind == "momentum":
        yield request.name, _momentum(request.subject[0], k)
    else:
        yield from _reaction(request, k, reactions)


def _reaction(request: OutputRequest, k: NamedKinematics, reactions: Reactions) -> Iterator[tuple[str, sm.Expr]]:
    m, subject = k.mechanism, request.subject
    at = None if request.relative_to is None else _point(request.relative_to, m)
    is_joint = len(subject) == 1 and isinstance(subject[0], Joint)
    wrench = reactions.of_joint(subject[0], at) if is_joint else reactions.of_bodies(subject, at)
    vector = wrench.force if request.kind == "reaction_force" else wrench.torque
    if request.expressed_in is not None:
        vector = times(k.rotation(_oriented(request.expressed_in, m)).T, vector)
    yield from zip((request.name + axis for axis in AXES), vector, strict=True)


def _multiplier(row: sm.Expr, m: Mechanism) -> sm.Symbol:
    constraints = m.velocity_constraints
    rows = list(constraints.jacobian * sm.Matrix(m.u) + constraints.offset) if constraints else []
    index = find_row(of_unit_length(m.plain(row), m.quaternions, m.q), [phi for _, phi in m.holonomic], rows)
    if index is None:
        raise _refuse(
            f"{str(row)[:80]} is none of the mechanics' constraints", "give the expression given to the mechanics"
        )
    if m.given_by_constraint:
        names = ", ".join(m.given_by_constraint)
        raise _refuse(
            f"the velocity of {names} already uses a constraint, whose force is then not in the equations",
            "give velocities that follow from positions, or leave them out",
        )
    return m.multipliers[index]


def _momentum(speed: sm.Expr, k: NamedKinematics) -> sm.Expr:
    """dT/du = sum of m v · v_r + H · w_r."""
    m = k.mechanism
    plain = {m.dynamic[u]: j for j, u in enumerate(m.u)}
    if speed not in plain:
        raise _refuse(f"{speed} is no speed of the mechanics", f"take one of {', '.join(map(str, plain))}")
    j = plain[speed]
    if m.lagrangian is not None and m.lagrangian_alone:
        return m.lagrangian.expression.diff(m.u[j])
    total = sm.S.Zero
    for body in m.bodies:
        column = k.velocity_partials(body.masscenter).get(j)
        if column is not None:
            total += body.mass * dot(column, k.velocity(body.masscenter))
        column = k.omega_partials(body.frame).get(j) if body.inertia is not None else None
        if column is not None and body.inertia is not None:
            R = k.rotation(body.frame)
            w = k.named(times(R.T, k.omega(body.frame)), f"wb_{body.name}")
            total += dot(times(R.T, column), times(body.inertia, w))
    return total


def _frame(frame: Any, m: Mechanism) -> int:
    if frame not in m.frame_of:
        raise _refuse(f"frame {frame} is not connected to the inertial frame", "orient it")
    return m.frame_of[frame]


def _oriented(frame: Any, m: Mechanism) -> int:
    number = _frame(frame, m)
    if not m.frames[number].oriented:
        raise _refuse(f"of frame {frame} nothing but the angular velocity is known", "orient it")
    return number


def _point(point: Any, m: Mechanism) -> int:
    if point not in m.point_of:
        raise _refuse(f"point {point} is not connected to the mechanism", "locate it, or give its velocity")
    return m.point_of[point]


def _located(point: Any, m: Mechanism) -> int:
    number = _point(point, m)
    if not m.points[number].located:
        raise _refuse(
            f"no chain of positions leads from the origin to point {point}", "locate it by set_pos or locatenew"
        )
    return number
