"""Energies and powers of a mechanism."""

from __future__ import annotations

from collections.abc import Iterable

import sympy as sm

from mb2fmu.equations.motion import Energy
from mb2fmu.formulation.loads import power
from mb2fmu.mechanism.kinematics import NamedKinematics
from mb2fmu.mechanism.records import ForceLoad, Lagrangian, Load, Mechanism, PathwayLoad, TorqueLoad
from mb2fmu.model import mechanics as door


def energy_of(kinematics: NamedKinematics) -> Energy:
    """Kinetic and potential energy, and the power of every load.

    T = sum of m v·v/2 + w·I w/2. V: as the user gave it; else of constant forces (-F·r), springs along pathways; where
    there is neither, what the bodies themselves declare, or zero where no load can have a potential. Loads that hold
    unknown forces have no power of their own (noncontributing forces do no work).
    """
    m = kinematics.mechanism
    if m.lagrangian is not None and m.lagrangian_alone:
        return _energy_of_lagrangian(m, m.lagrangian)
    unknown = set(m.constraint_forces)
    powers = []
    for number, load in enumerate(m.loads):
        vector = [c for _, cs in load.force for c in cs] if isinstance(load, ForceLoad) else []
        if unknown and any(c.free_symbols & unknown for c in vector):
            continue
        powers.append((load.name, power(number, kinematics)))
    if m.potential_forces:
        total = sm.Add(*(force * u for force, u in zip(m.potential_forces, m.u, strict=True)))
        powers.append(("potential", total))
    reason = "a prescribed motion (time in the kinematics or in a constraint) does work" if m.rheonomic else ""
    return Energy(kinetic_energy(kinematics), potential_energy(kinematics), tuple(powers), not m.rheonomic, reason)


def kinetic_energy(kinematics: NamedKinematics) -> sm.Expr:
    """T in J."""
    m = kinematics.mechanism
    if m.lagrangian is not None and m.lagrangian_alone:
        return _quadratic_part(m, m.lagrangian.expression)
    return kinematics.kinetic_energy()


def potential_energy(kinematics: NamedKinematics) -> sm.Expr | None:
    """V in J, or None where nothing tells it."""
    m = kinematics.mechanism
    given = _given(m)
    if given is not None:
        return given
    if m.lagrangian is not None:
        return -m.lagrangian.expression.xreplace(dict.fromkeys(m.u, sm.S.Zero))
    constants = {*m.p, *(a.symbol for a in m.calculated_parameters)}
    terms: list[sm.Expr] = []  # added at once: SymPy sorts a sum each time that it grows
    for load in m.loads:
        if isinstance(load, ForceLoad) and all(frame == 0 for frame, _ in load.force) and m.points[load.point].located:
            for _, force in load.force:
                if all(c.free_symbols <= constants for c in force) and any(force):
                    terms += (-c * r for c, r in zip(force, kinematics.position(load.point), strict=True))
        elif isinstance(load, PathwayLoad) and load.potential is not None:
            kinematics.pathway(load)
            terms.append(load.potential)
    if terms:
        return sm.Add(*terms)
    declared = [door.potential_energy(body) for body in door.bodies(m.definition.mechanics)]
    declared = [m.plain(v) for v in declared if v != 0]
    if declared:
        return sm.Add(*declared)
    return sm.S.Zero if not loads_of_position(m) else None


def loads_of_position(m: Mechanism) -> tuple[str, ...]:
    """Names of the loads that are there without inputs and at rest: they may have a potential that nobody has told.

    Where there are none, there is no potential energy: motors, forces from outside, dampers.
    """
    return tuple(load.name for load in m.loads if any(_at_rest(m, load, c) != 0 for c in _scalars(load)))


def _scalars(load: Load) -> Iterable[sm.Expr]:
    """What the size of a load depends on."""
    match load:
        case ForceLoad():
            return [c for _, vector in load.force for c in vector]
        case TorqueLoad():
            return [c for _, vector in load.torque for c in vector]
        case PathwayLoad():
            return [load.force]
        case _:
            return [load.torque]


def _at_rest(m: Mechanism, load: Load, expression: sm.Expr) -> sm.Expr:
    moving = {*m.r, *m.u, *m.constraint_forces} | ({load.rate} if isinstance(load, PathwayLoad) else set())
    return expression.xreplace(dict.fromkeys(moving, sm.S.Zero))


def _energy_of_lagrangian(m: Mechanism, lagrangian: Lagrangian) -> Energy:
    """L = T2 + T1 - V by degree in q': T2 + V changes by the power of the loads alone, unless L contains time."""
    kinetic = _quadratic_part(m, lagrangian.expression)
    potential = -lagrangian.expression.xreplace(dict.fromkeys(m.u, sm.S.Zero))
    powers = (
        ("potential", -sm.Add(*(potential.diff(q) * u for q, u in zip(m.q, m.u, strict=True)))),
        ("loads", sm.Add(*(force * u for force, u in zip(lagrangian.forces, m.u, strict=True)))),
    )
    balanced = not {m.t, *m.r} & lagrangian.expression.free_symbols
    reason = "" if balanced else "time stands in the Lagrangian: a prescribed motion does work"
    given = _given(m)
    return Energy(kinetic, potential if given is None else given, powers, balanced, reason)


def _quadratic_part(m: Mechanism, expression: sm.Expr) -> sm.Expr:
    """The part of degree two in q', the kinetic energy where nothing moves by prescription."""
    slopes = [expression.diff(u) for u in m.u]
    return sm.Add(*(a.diff(v) * u * v for a, u in zip(slopes, m.u, strict=True) for v in m.u)) / 2


def _given(m: Mechanism) -> sm.Expr | None:
    potential = m.definition.potential_energy
    return None if potential is None else m.plain(potential)
