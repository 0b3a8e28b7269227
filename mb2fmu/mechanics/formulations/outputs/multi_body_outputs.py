"""Outputs of several bodies together and of one body against another.

centre of mass      Σ m r / Σ m          its velocity    Σ m v / Σ m
momentum            Σ m v                about a point P or the centre of mass    Σ (r - r_P) × m v + I ω
of P in frame A     v_P - v_Q - ω_A × (r_P - r_Q), Q fixed in A
of B in frame A     α_B - α_A - ω_A × (ω_B - ω_A), the rate that A sees
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import sympy as sm

from mb2fmu.errors import Fault, FormulationError
from mb2fmu.mechanics.mechanism.records.mechanism_records import Body, Components
from mb2fmu.mechanics.mechanism.records.requested_quantities import RequestedOutput
from mb2fmu.mechanics.mechanism.symbolic.symbolic_kinematics import (
    ZERO,
    NamedKinematics,
    add_components,
    cross_product,
    multiply_matrix,
    scale_components,
)

MULTI_BODY_KINDS = frozenset(
    {
        "angular_acceleration",
        "relative_velocity",
        "centre_of_mass",
        "centre_of_mass_velocity",
        "linear_momentum",
        "angular_momentum",
    }
)


def form_vector_output(request: RequestedOutput, k: NamedKinematics) -> Components:
    """Return the vector that is asked for, components in the inertial frame.

    Raises:
        FormulationError: If a body's mass centre is nowhere, or the bodies have no mass.
    """
    if request.kind == "angular_acceleration":
        return _angular_acceleration(request.subject[0], request.relative_to, k)
    if request.kind == "relative_velocity":
        point, origin = request.subject
        return _relative_velocity(point, origin, request.relative_to or 0, k)
    bodies = [k.mechanism.bodies[i] for i in request.subject] or list(k.mechanism.bodies)
    _check_located(request, bodies, k)
    if request.kind == "linear_momentum":
        return linear_momentum(bodies, k)
    if request.kind == "angular_momentum":
        return angular_momentum(bodies, request.relative_to, k)
    return _mass_weighted_mean(bodies, k.position if request.kind == "centre_of_mass" else k.velocity)


def _subtract(a: Components, b: Components) -> Components:
    """Return a − b by components."""
    return add_components(a, scale_components(sm.S.NegativeOne, b))


def _angular_acceleration(frame: int, base: int | None, k: NamedKinematics) -> Components:
    """Return α of a frame as seen in a base frame: α_f − α_b − ω_b × (ω_f − ω_b); the absolute one without base."""
    if not base:
        return k.alpha(frame)
    swing = cross_product(k.omega(base), _subtract(k.omega(frame), k.omega(base)))
    return _subtract(_subtract(k.alpha(frame), k.alpha(base)), swing)


def _relative_velocity(point: int, origin: int, base: int, k: NamedKinematics) -> Components:
    """Return a point's velocity against an origin, as seen in a turning base: v_P − v_O − ω_b × r."""
    arm = _subtract(k.position(point), k.position(origin))
    return _subtract(_subtract(k.velocity(point), k.velocity(origin)), cross_product(k.omega(base), arm))


def _mass_weighted_sum(bodies: Iterable[Body], of: Callable[[int], Components]) -> Components:
    """Return the sum of mass times a quantity of the mass centre."""
    total = ZERO
    for body in bodies:
        total = add_components(total, scale_components(body.mass, of(body.masscenter)))
    return total


def _mass_weighted_mean(bodies: list[Body], of: Callable[[int], Components]) -> Components:
    """Return the mean of a point quantity over bodies, weighted by their masses."""
    return scale_components(1 / sm.Add(*(body.mass for body in bodies)), _mass_weighted_sum(bodies, of))


def linear_momentum(bodies: Iterable[Body], k: NamedKinematics) -> Components:
    """Return Σ m v in N, kg·m/s."""
    return _mass_weighted_sum(bodies, k.velocity)


def angular_momentum(bodies: list[Body], about: int | None, k: NamedKinematics) -> Components:
    """Return the angular momentum of all bodies about a point (None: mass centre), components in N, kg·m²/s."""
    place = k.position(about) if about is not None else k.named(_mass_weighted_mean(bodies, k.position), "r_com")
    total = ZERO
    for body in bodies:
        arm = _subtract(k.position(body.masscenter), place)
        total = add_components(total, cross_product(arm, scale_components(body.mass, k.velocity(body.masscenter))))
        if body.inertia is not None and not body.inertia.is_zero_matrix:
            R = k.rotation(body.frame)
            w = k.named(multiply_matrix(R.T, k.omega(body.frame)), f"wb_{body.name}")
            total = add_components(total, multiply_matrix(R, multiply_matrix(body.inertia, w)))
    return total


def _check_located(request: RequestedOutput, bodies: list[Body], k: NamedKinematics) -> None:
    """Refuse a sum over bodies whose mass centres have no position, or that have no mass at all."""
    if request.kind in {"centre_of_mass", "angular_momentum"}:
        lost = [body.name for body in bodies if not k.mechanism.points[body.masscenter].located]
        if lost:
            what = f"no chain of positions leads from the origin to the mass centre of {', '.join(lost)}"
            raise FormulationError("", [Fault(what, remedy="locate it by set_pos or locatenew")])
    if all(body.mass == 0 for body in bodies):
        what = f"{request.name}: the bodies have no mass"
        raise FormulationError("", [Fault(what, remedy="ask for bodies with a mass")])
