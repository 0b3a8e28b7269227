"""The TMT method: Newton-Euler equations projected by the Jacobian of the velocities.

With the stacked velocities of all bodies w = T(q, t) u + w_t, the momenta M w, and ḡ their time derivative at u' = 0,

    M_d u' = f,      M_d = Tᵀ M T,      f = Tᵀ (F - ḡ).

Rows of T: three per particle (mass centre's velocity), six per rigid body (angular velocity too), all in the inertial
frame's components; inertia is turned into the inertial frame. Rheonomic terms w_t enter ḡ only. Loads at other points
are projected by those points' own partial velocities. u is arbitrary (u ≠ q' allowed). With velocity constraints
A u + b = 0 the equations are formed over *all* speeds; the Program reduces them to the independent ones, numerically.

Unknown (noncontributing) forces come out of the rows of the auxiliary speeds s: M_su u' = f_s.

Source: Moore, Learn Multibody Dynamics, chapter "Unconstrained Equations of Motion with the TMT Method"; Vallery and
Schwab, Advanced Dynamics, 2018, ch. 4 (TMT method); partial velocities as in Kane and Levinson, Dynamics, 1985, ch. 2.
"""

from __future__ import annotations

import sympy as sm

from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion, LinearSystemAssignment, MassMatrixDynamics
from mb2fmu.mechanics.formulations.applied_loads import list_applied_loads
from mb2fmu.mechanics.formulations.equations_assembly import assemble_equations, form_constraint_force_system
from mb2fmu.mechanics.formulations.formulation_applicability import (
    FormulationApplicability,
    check_projection_applicability,
)
from mb2fmu.mechanics.mechanism.records.mechanism_records import Body, Components, Mechanism
from mb2fmu.mechanics.mechanism.symbolic.component_vector_arithmetic import (
    ZERO,
    add_vector_components,
    cross_product,
    dot_product,
    multiply_matrix_by_vector,
    scale_components,
)
from mb2fmu.mechanics.mechanism.symbolic.symbolic_kinematics import Partials, SymbolicKinematics


def check_applicability(mechanism: Mechanism) -> FormulationApplicability:
    """Return whether the method applies: there must be bodies."""
    return check_projection_applicability(mechanism)


def formulate(mechanism: Mechanism) -> EquationsOfMotion:
    """Form M_d and f over all speeds.

    Args:
        mechanism: With bodies.

    Returns:
        Equations whose mass matrix is symmetric, shape (n_u, n_u).
    """
    kinematics = SymbolicKinematics(mechanism)
    n = len(mechanism.u)
    M, f, unknown = _project_equations(kinematics, range(len(mechanism.u_all)))
    for i, force in enumerate(mechanism.potential_forces):
        f[i] += force
    forces = _constraint_forces(mechanism, M, f, unknown)
    named = [kinematics.name(e, f"f_{u.name}") for u, e in zip(mechanism.u, f, strict=False)]
    dynamics = MassMatrixDynamics(sm.ImmutableMatrix(M[:n, :n]), sm.ImmutableMatrix(n, 1, named))
    return assemble_equations("tmt", kinematics, dynamics, constraint_forces=forces)


def form_equations_except_dynamics(mechanism: Mechanism) -> EquationsOfMotion:
    """Form everything but the dynamics, for a given u': motions, energies, outputs, unknown forces.

    M_d has n_u^2 entries, each a sum over bodies, which for a long chain are most of the work.

    Args:
        mechanism: With bodies.
    """
    kinematics = SymbolicKinematics(mechanism)
    auxiliary = range(len(mechanism.u), len(mechanism.u_all))
    forces = _constraint_forces(mechanism, *_project_equations(kinematics, auxiliary))
    return assemble_equations("tmt", kinematics, None, constraint_forces=forces)


def _project_equations(
    kinematics: SymbolicKinematics, rows: range
) -> tuple[sm.MutableDenseMatrix, list[sm.Expr], list[sm.Expr]]:
    """Return these rows of M_d, of f without unknown forces, and of the unknown forces' part; other rows are zero."""
    m = kinematics.mechanism
    n_all = len(m.u_all)
    M, f, unknown = sm.zeros(n_all, n_all), [sm.S.Zero] * n_all, [sm.S.Zero] * n_all
    if not rows:
        return M, f, unknown
    for body in m.bodies:
        _add_body(body, kinematics, M, f, rows)
    for load in list_applied_loads(kinematics):
        known_part, unknown_part = _split_unknown_forces(load.vector, m)
        for i in load.partials.keys() & rows:
            f[i] += dot_product(load.partials[i], known_part)
            unknown[i] += dot_product(load.partials[i], unknown_part)
    return M, f, unknown


def _add_body(
    body: Body, kinematics: SymbolicKinematics, M: sm.MutableDenseMatrix, f: list[sm.Expr], rows: range
) -> None:
    """Add one body's TᵀMT and -Tᵀḡ."""
    v = kinematics.velocity_partials(body.masscenter)
    momentum_rate = scale_components(body.mass, kinematics.acceleration0(body.masscenter))
    momentum_rate = kinematics.name_components(momentum_rate, f"ma_{body.name}")
    momenta = {j: scale_components(body.mass, column) for j, column in v.items()}
    _add_products(M, v, momenta, kinematics, f"mJv_{body.name}", rows)
    for i in v.keys() & rows:
        f[i] -= dot_product(v[i], momentum_rate)
    if body.inertia is None or body.inertia.is_zero_matrix:
        return
    R = kinematics.rotation(body.frame)
    inertia = _rotate_inertia(body, R, kinematics)
    w, omega = kinematics.omega_partials(body.frame), kinematics.omega(body.frame)
    momentum = kinematics.name_components(multiply_matrix_by_vector(inertia, omega), f"H_{body.name}")
    rate = add_vector_components(
        multiply_matrix_by_vector(inertia, kinematics.alpha0(body.frame)), cross_product(omega, momentum)
    )
    rate = kinematics.name_components(rate, f"Hdot_{body.name}")
    momenta = {j: multiply_matrix_by_vector(inertia, column) for j, column in w.items()}
    _add_products(M, w, momenta, kinematics, f"IJw_{body.name}", rows)
    for i in w.keys() & rows:
        f[i] -= dot_product(w[i], rate)


def _rotate_inertia(body: Body, R: sm.ImmutableMatrix, kinematics: SymbolicKinematics) -> sm.ImmutableMatrix:
    """R I Rᵀ, symmetric, its six entries named.

    A multiple of the identity turns into itself: taken off before and added after it leaves fewer axes to turn, of a
    wheel its axle only, whatever the wheel's angle, of a sphere none.
    """
    assert body.inertia is not None
    if sm.eye(3) == R:
        return body.inertia
    rests = [body.inertia - body.inertia[k, k] * sm.eye(3) for k in range(3)]
    k = min(range(3), key=lambda k: len(rests[k].todok()))
    rest = rests[k]
    turning = [j for j in range(3) if any(rest[:, j])]
    columns = {j: kinematics.name_components(R * rest[:, j], f"RI_{body.name}") for j in turning}
    entries = {}
    for i in range(3):
        for j in range(i, 3):
            value = sm.Add(*(columns[c][i] * R[j, c] for c in turning), body.inertia[k, k] if i == j else 0)
            entries[i, j] = entries[j, i] = kinematics.name(value, f"I_{body.name}")
    return sm.ImmutableMatrix(3, 3, lambda i, j: entries[i, j])


def _add_products(
    M: sm.MutableDenseMatrix,
    left_partials: Partials,
    right_partials: Partials,
    kinematics: SymbolicKinematics,
    hint: str,
    rows: range,
) -> None:
    """Add M[i, j] += left_i · right_j for a symmetric product; ``rows`` are the last ones."""
    right_partials = {j: kinematics.name_components(column, hint) for j, column in right_partials.items()}
    for i, a in left_partials.items():
        for j, b in right_partials.items():
            if i <= j and j in rows:
                M[i, j] += dot_product(a, b)
                if i < j:
                    M[j, i] = M[i, j]


def _split_unknown_forces(vector: Components, mechanism: Mechanism) -> tuple[Components, Components]:
    """Return the parts without and with unknown forces."""
    unknown = set(mechanism.constraint_forces)
    if not unknown or not any(c.free_symbols & unknown for c in vector):
        return vector, ZERO
    zero = dict.fromkeys(unknown, sm.S.Zero)
    known_part = (vector[0].xreplace(zero), vector[1].xreplace(zero), vector[2].xreplace(zero))
    unknown_part = add_vector_components(vector, scale_components(sm.S.NegativeOne, known_part))
    return known_part, (sm.expand(unknown_part[0]), sm.expand(unknown_part[1]), sm.expand(unknown_part[2]))


def _constraint_forces(
    mechanism: Mechanism, M: sm.MutableDenseMatrix, f: list[sm.Expr], unknown: list[sm.Expr]
) -> LinearSystemAssignment | None:
    """Return the rows of the auxiliary speeds, solved for the unknown forces: unknown + f - M u' - A_auxᵀ λ = 0."""
    if not mechanism.constraint_forces:
        return None
    n = len(mechanism.u)
    rest = sm.Matrix(f[n:]) - M[n:, :n] * sm.Matrix(mechanism.u_dot) - mechanism.auxiliary_reactions
    return form_constraint_force_system(mechanism, sm.Matrix(unknown[n:]) + rest)
