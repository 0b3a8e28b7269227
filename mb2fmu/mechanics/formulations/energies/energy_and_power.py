"""Energies and powers of a mechanism."""

from __future__ import annotations

import sympy as sm

from mb2fmu.mechanics.equations.equations_of_motion import EnergyBalance
from mb2fmu.mechanics.formulations.energies.load_potentials import (
    LoadPotential,
    find_load_potential,
    integrate_generalized_forces,
    is_load_potential,
)
from mb2fmu.mechanics.formulations.generalized_forces import load_power
from mb2fmu.mechanics.mechanism.records.mechanism_records import Lagrangian, Mechanism
from mb2fmu.mechanics.mechanism.symbolic.symbolic_kinematics import NamedKinematics

_PRESCRIBED_WORK_REASON = "a prescribed motion (time or a rate in the kinematics, a constraint that moves) does work"


def form_energy_balance(kinematics: NamedKinematics) -> EnergyBalance:
    """Return kinetic and potential energy, and the power of every load.

    T = sum of m v·v/2 + w·I w/2. V: see :func:`potential_energy`. Unknown forces have no power: all of them together do
    no work on the motion, so of each load what is known is counted.
    """
    m = kinematics.mechanism
    if m.lagrangian is not None and m.is_lagrangian_only:
        return _lagrangian_energy(kinematics, m.lagrangian)
    hidden = dict.fromkeys(m.constraint_forces, sm.S.Zero)
    powers = []
    for number, load in enumerate(m.loads):
        delivered = load_power(number, kinematics)
        powers.append((load.name, delivered.xreplace(hidden) if hidden else delivered))
    if m.potential_forces:
        total = sm.Add(*(force * u for force, u in zip(m.potential_forces, m.u, strict=True)))
        powers.append(("potential", total))
    prescribed = m.rheonomic or m.prescribed
    known = kinetic_energy(kinematics), potential_energy(kinematics)
    return EnergyBalance(*known, tuple(powers), not prescribed, _PRESCRIBED_WORK_REASON if prescribed else "")


def kinetic_energy(kinematics: NamedKinematics) -> sm.Expr:
    """Return T in J."""
    m = kinematics.mechanism
    if m.lagrangian is not None and m.is_lagrangian_only:
        return _quadratic_rate_part(m, m.lagrangian.expression)
    return kinematics.kinetic_energy()


def potential_energy(kinematics: NamedKinematics) -> sm.Expr | None:
    """Return V in J: as the user gave it, else of the Lagrangian and all loads; None if one of these is unknown.

    Where loads leave it open, what the bodies declare is V if its derivatives are all the loads' generalized forces.
    """
    m = kinematics.mechanism
    given = m.given_potential
    if given is not None:
        return given
    found = load_potential(kinematics)
    if not found.unknown:
        return sm.Add(found.energy, _lagrangian_potential(m))
    return _declared_potential(m) if m.lagrangian is None and not found.without else None


def load_potential(kinematics: NamedKinematics) -> LoadPotential:
    """Return the known potential energy of the loads; computed once."""
    m = kinematics.mechanism

    def find(_: int) -> LoadPotential:
        """Return the potential; of a Lagrangian only the generalized forces are known."""
        if m.lagrangian is None or not m.is_lagrangian_only:
            return find_load_potential(kinematics)
        still = dict.fromkeys([*m.u, *m.r], sm.S.Zero)
        forces = {q: force.xreplace(still) for q, force in zip(m.q, m.lagrangian.forces, strict=True)}
        standing: set[sm.Basic] = set().union(*(force.free_symbols for force in forces.values()))
        if standing & {m.t, *m.z}:
            return LoadPotential(sm.S.Zero, ("the loads",))
        return integrate_generalized_forces(forces, "the loads")

    return kinematics.once("potential energy", find)


def _declared_potential(m: Mechanism) -> sm.Expr | None:
    """Return the potential energies of the bodies, if ∂V/∂q are the generalized forces of all loads at rest."""
    total = m.declared_potential
    return total if total != 0 and is_load_potential(m, total) else None


def _lagrangian_potential(m: Mechanism) -> sm.Expr:
    """Return V of the Lagrangian itself: -L at q' = 0."""
    return sm.S.Zero if m.lagrangian is None else -m.lagrangian.expression.xreplace(dict.fromkeys(m.u, sm.S.Zero))


def _lagrangian_energy(kinematics: NamedKinematics, lagrangian: Lagrangian) -> EnergyBalance:
    """Return T and V from L = T2 + T1 - V by degree in q'.

    Only loads change T2 + V, unless L contains time, or a constraint does.
    """
    m = kinematics.mechanism
    kinetic = _quadratic_rate_part(m, lagrangian.expression)
    own = _lagrangian_potential(m)
    powers = (
        ("potential", -sm.Add(*(own.diff(q) * u for q, u in zip(m.q, m.u, strict=True)))),
        ("loads", sm.Add(*(force * u for force, u in zip(lagrangian.forces, m.u, strict=True)))),
    )
    reason = ""
    if {m.t, *m.r, *m.z} & lagrangian.expression.free_symbols:
        reason = "time stands in the Lagrangian: a prescribed motion does work"
    elif m.has_rheonomic_constraints:
        reason = _PRESCRIBED_WORK_REASON
    return EnergyBalance(kinetic, potential_energy(kinematics), powers, not reason, reason)


def _quadratic_rate_part(m: Mechanism, expression: sm.Expr) -> sm.Expr:
    """Return the part of degree two in q', the kinetic energy where nothing moves by prescription."""
    slopes = [expression.diff(u) for u in m.u]
    return sm.Add(*(a.diff(v) * u * v for a, u in zip(slopes, m.u, strict=True) for v in m.u)) / 2
