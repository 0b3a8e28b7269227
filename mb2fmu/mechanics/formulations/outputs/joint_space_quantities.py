"""Equations of motion as outputs: M, Jacobians, gravity efforts, and efforts of a given motion (inverse dynamics).

    M u' = f(q, u, r, t),   gravity effort = f without weights - f,   inverse effort = M a - f without drives

all along the speeds, before constraints. A recursion sweeps its links for them; every other formulation projects
Newton's and Euler's laws of each body on the partial velocities (Kane and Levinson, Dynamics, 1985, ch. 2).
"""

from __future__ import annotations

from functools import cached_property

import sympy as sm

from mb2fmu.mechanics.formulations.generalized_forces import applied_loads
from mb2fmu.mechanics.formulations.recursive_kinematics import RecursiveKinematics
from mb2fmu.mechanics.mechanism.records.mechanism_records import Body, Components, ForceLoad
from mb2fmu.mechanics.mechanism.records.requested_quantities import RequestedOutput
from mb2fmu.mechanics.mechanism.symbolic.gravity import find_gravity
from mb2fmu.mechanics.mechanism.symbolic.symbolic_kinematics import (
    ZERO,
    NamedKinematics,
    add_components,
    cross_product,
    dot_product,
    multiply_matrix,
    scale_components,
)

JOINT_SPACE_KINDS = frozenset(
    {"mass_matrix", "gravity_effort", "inverse_effort", "partial_velocity", "partial_angular_velocity"}
)


class JointSpaceQuantities:
    """Quantities along the speeds of one mechanism, each computed once.

    Args:
        kinematics: Takes the names.
    """

    def __init__(self, kinematics: NamedKinematics) -> None:
        self._k, self._m = kinematics, kinematics.mechanism

    def answer(self, request: RequestedOutput) -> sm.Expr:
        """Return one of :data:`JOINT_SPACE_KINDS`."""
        subject = request.subject
        if request.kind == "mass_matrix":
            return self._mass_matrix[subject]
        if request.kind in {"gravity_effort", "inverse_effort"}:
            return (self._gravity if request.kind == "gravity_effort" else self._inverse)[subject[0]]
        node, speed = subject
        assert request.component is not None
        of_point = request.kind == "partial_velocity"
        partials = self._k.velocity_partials(node) if of_point else self._k.omega_partials(node)
        return partials.get(speed, ZERO)[request.component]

    @cached_property
    def _mass_matrix(self) -> sm.MatrixBase:
        """Form M, in speeds: the sum over bodies of partial velocities times momenta."""
        k, n = self._k, len(self._m.u)
        if isinstance(k, RecursiveKinematics):
            return k.mass_matrix()
        M = sm.zeros(n, n)
        for body in self._m.bodies:
            for columns, momenta in self._momenta(body):
                for i in columns:
                    for j in momenta:
                        M[i, j] += dot_product(columns[i], momenta[j])
        return M

    def _momenta(self, body: Body) -> list[tuple[dict[int, Components], dict[int, Components]]]:
        """Return partial velocities and the momenta that they cause; the same for partial angular velocities."""
        k, n = self._k, len(self._m.u)
        v = {j: column for j, column in k.velocity_partials(body.masscenter).items() if j < n}
        found = [(v, {j: k.named(scale_components(body.mass, column), f"mJv_{body.name}") for j, column in v.items()})]
        if body.inertia is not None and not body.inertia.is_zero_matrix:
            w = {j: column for j, column in k.omega_partials(body.frame).items() if j < n}
            found.append((w, {j: self._spin(body, column, "IJw") for j, column in w.items()}))
        return found

    def _spin(self, body: Body, turning: Components, hint: str) -> Components:
        """Return the inertia times a vector, both in N."""
        k, R = self._k, self._k.rotation(body.frame)
        return k.named(
            multiply_matrix(R, multiply_matrix(body.inertia, multiply_matrix(R.T, turning))), f"{hint}_{body.name}"
        )

    @cached_property
    def _gravity(self) -> tuple[sm.Expr, ...]:
        """Form the generalized efforts of gravity, speed by speed."""
        k, m = self._k, self._m
        if isinstance(k, RecursiveKinematics):
            return k.gravity_efforts()
        efforts = [sm.S.Zero] * len(m.u)
        for number in find_gravity(m).weights:
            load = m.loads[number]
            assert isinstance(load, ForceLoad)
            for j, column in k.velocity_partials(load.point).items():
                efforts[j] -= dot_product(load.force[0][1], column)
        return tuple(efforts)

    @cached_property
    def _inverse(self) -> tuple[sm.Expr, ...]:
        """Form the efforts that given accelerations need: inertia, less passive forces and loads."""
        k, m = self._k, self._m
        if isinstance(k, RecursiveKinematics):
            return k.inverse_efforts()
        asked = m.inverse_dynamics
        assert asked is not None, "the reader gives it"
        efforts = [self._mass_matrix[i, :].dot(asked.accelerations) for i in range(len(m.u))]
        for j, force in enumerate(asked.passive):
            efforts[j] -= force
        for body in m.bodies:
            rate = k.named(scale_components(body.mass, k.acceleration0(body.masscenter)), f"ma_{body.name}")
            terms = [(k.velocity_partials(body.masscenter), rate)]
            if body.inertia is not None and not body.inertia.is_zero_matrix:
                omega = k.omega(body.frame)
                turning = add_components(
                    self._spin(body, k.alpha0(body.frame), "Ia"), cross_product(omega, self._spin(body, omega, "Iw"))
                )
                terms.append((k.omega_partials(body.frame), k.named(turning, f"Hdot_{body.name}")))
            for partials, momentum_rate in terms:
                for j, column in partials.items():
                    efforts[j] += dot_product(column, momentum_rate)
        for load in applied_loads(k):
            for j, column in load.partials.items():
                efforts[j] -= dot_product(column, load.vector)
        return tuple(efforts)
