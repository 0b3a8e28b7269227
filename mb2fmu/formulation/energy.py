"""Energies and powers of a mechanism."""

from __future__ import annotations

import sympy as sm

from mb2fmu.equations.motion import Energy
from mb2fmu.formulation.loads import power
from mb2fmu.mechanism.kinematics import NamedKinematics, dot, times
from mb2fmu.mechanism.records import ForceLoad, Mechanism, PathwayLoad
from mb2fmu.model import mechanics as door


def energy_of(kinematics: NamedKinematics) -> Energy:
    """Kinetic and potential energy, and the power of every load.

    T = sum of m v·v/2 + w·I w/2. V: as the user gave it; else of constant forces (-F·r), springs along pathways; where
    there is neither, what the bodies themselves declare. Loads that hold unknown forces have no power of their own
    (noncontributing forces do no work).
    """
    m = kinematics.mechanism
    if m.lagrangian is not None:
        return Energy(balanced=False, reason="a Lagrangian alone says nothing of bodies and loads", potential=_given(m))
    unknown = set(m.constraint_forces)
    powers = []
    for number, load in enumerate(m.loads):
        vector = [c for _, cs in load.force for c in cs] if isinstance(load, ForceLoad) else []
        if unknown and any(c.free_symbols & unknown for c in vector):
            continue
        powers.append((load.name, power(number, kinematics)))
    reason = "a prescribed motion (time in the kinematics or in a constraint) does work" if m.rheonomic else ""
    return Energy(kinetic_energy(kinematics), potential_energy(kinematics), tuple(powers), not m.rheonomic, reason)


def kinetic_energy(kinematics: NamedKinematics) -> sm.Expr:
    """T in J."""
    m = kinematics.mechanism
    total = sm.S.Zero
    for body in m.bodies:
        v = kinematics.velocity(body.masscenter)
        total += body.mass * dot(v, v) / 2
        if body.inertia is not None and not body.inertia.is_zero_matrix:
            w = times(kinematics.rotation(body.frame).T, kinematics.omega(body.frame))
            w = kinematics.named(w, f"wb_{body.name}")
            total += dot(w, times(body.inertia, w)) / 2
    return total


def potential_energy(kinematics: NamedKinematics) -> sm.Expr | None:
    """V in J, or None where nothing tells it."""
    m = kinematics.mechanism
    given = _given(m)
    if given is not None:
        return given
    constants = {*m.p, *(a.symbol for a in m.calculated_parameters)}
    found, total = False, sm.S.Zero
    for load in m.loads:
        if isinstance(load, ForceLoad) and all(frame == 0 for frame, _ in load.force) and m.points[load.point].located:
            for _, force in load.force:
                if all(c.free_symbols <= constants for c in force) and any(force):
                    total -= dot(force, kinematics.position(load.point))
                    found = True
        elif isinstance(load, PathwayLoad) and load.potential is not None:
            kinematics.pathway(load)
            total += load.potential
            found = True
    if found:
        return total
    declared = [body.potential_energy for body in door.bodies(m.definition.mechanics)]
    declared = [m.plain(v) for v in declared if v != 0]
    return sm.Add(*declared) if declared else None


def _given(m: Mechanism) -> sm.Expr | None:
    potential = m.definition.potential_energy
    return None if potential is None else m.plain(potential)
