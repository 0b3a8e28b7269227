"""Find gravity once per mechanism, for recursions (as an acceleration) and for pictures.

It enters as loads: of SymPy's objects by ``sympy_import/load_import.py``, of robots by
``robots/tree/robot_mechanism.py``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import sympy as sm

from mb2fmu.mechanics.mechanism.records.kinematic_records import Components
from mb2fmu.mechanics.mechanism.records.mechanism_records import ForceLoad, Mechanism


@dataclass(frozen=True, slots=True)
class Gravity:
    """Acceleration of gravity, and the loads that are weights.

    Attributes:
        acceleration: The acceleration that pulls at every body alike, components in N, m/s²; it may contain time and
            inputs. None where there is none, or where the pulls differ.
        weights: Numbers of the loads that ``acceleration`` stands for; empty where it is None.
        pull: Sum of the constant forces on mass centres, components in N, N: the way down; None where there are none.
    """

    acceleration: Components | None = None
    weights: frozenset[int] = frozenset()
    pull: Components | None = None


def find_gravity(mechanism: Mechanism) -> Gravity:
    """Find gravity among the forces on mass centres that are written in N."""
    acceleration, weights = _common_acceleration(mechanism)
    return Gravity(acceleration, frozenset(weights), _constant_force_sum(mechanism))


def _common_acceleration(m: Mechanism) -> tuple[Components | None, set[int]]:
    """Divide each body's weight by its mass; return the common quotient, and the numbers of the weights."""
    nothing: tuple[None, set[int]] = None, set()
    pulls: dict[int, tuple[int, Components]] = {}
    for number, load in enumerate(m.loads):
        if isinstance(load, ForceLoad) and [frame for frame, _ in load.force] == [0]:
            pulls.setdefault(load.point, (number, load.force[0][1]))
    found: set[Components] = set()
    weights: set[int] = set()
    for body in m.bodies:
        if body.mass == 0:  # a rotor: gravity does not pull at it
            continue
        if body.masscenter not in pulls:
            return nothing
        number, force = pulls[body.masscenter]
        if number in weights:  # two bodies share a mass centre
            return nothing
        weights.add(number)
        found.add(_divide_force(force, body.mass))
        if len(found) > 1:
            return nothing
    gravity = next(iter(found), None)
    if gravity is None or any(c.free_symbols - {*_parameter_symbols(m), m.t, *m.r} for c in gravity):
        return nothing
    return gravity, weights


def _constant_force_sum(m: Mechanism) -> Components | None:
    """Return the sum of the forces on mass centres that are constant in N."""
    constants, centres = _parameter_symbols(m), {body.masscenter for body in m.bodies}
    total: list[sm.Expr] | None = None
    for load in m.loads:
        if isinstance(load, ForceLoad) and load.point in centres and len(load.force) == 1:
            frame, components = load.force[0]
            if frame == 0 and all(c.free_symbols <= constants for c in components):
                total = [a + b for a, b in zip(total or [sm.S.Zero] * 3, components, strict=True)]
    return None if total is None else (total[0], total[1], total[2])


def _parameter_symbols(m: Mechanism) -> set[sm.Symbol]:
    """Return free and calculated parameters."""
    return {*m.p, *(a.symbol for a in m.calculated_parameters)}


def _divide_force(force: Iterable[sm.Expr], mass: sm.Expr) -> Components:
    """Return force over mass."""
    x, y, z = (component / mass for component in force)
    return (x, y, z)
