"""Lagrange's equations: SymPy's ``LagrangesMethod``; constraints by multipliers.

    d/dt (∂T/∂q') - ∂T/∂q = Q,    all loads in the generalized forces Q.

The kinetic energy is formed by us, in q and q', with u replaced by K⁻¹ (q' - k0): SymPy takes speeds u ≠ q' in a
Lagrangian for given functions of time, silently. The result, M_q q'' = f_q, is mapped back to the user's own speeds,
which stay the states: with q' = K u + k0,

    (Kᵀ M_q K) u' = Kᵀ (f_q - M_q (K' u + k0')).

A given ``LagrangesMethod`` is taken with its own Lagrangian and loads; its speeds are q'.

Constraints are left out of all that: the equations are formed over all speeds, Aᵀλ is added when they are solved. A
velocity constraint A u + b = 0 does no work on what it allows, so λ enters as in d'Alembert's principle (never as a
Lagrangian with λ times a velocity in it).

Source: Lanczos, The Variational Principles of Mechanics, ch. II (multipliers), V; Goldstein, Classical Mechanics,
section 2.4 (nonholonomic constraints); Moore, Learn Multibody Dynamics, chapter "Equations of
Motion with the Lagrange Method".
"""

from __future__ import annotations

import sympy as sm
from sympy.physics.mechanics import LagrangesMethod

from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion, MassMatrixDynamics
from mb2fmu.mechanics.formulations.equations_assembly import assemble_equations
from mb2fmu.mechanics.formulations.formulation_applicability import (
    FormulationApplicability,
    declare_formulation_applicable,
    declare_formulation_inapplicable,
)
from mb2fmu.mechanics.formulations.mechanism_to_sympy import SympyMechanismCopy, build_sympy_bodies
from mb2fmu.mechanics.mechanism.records.mechanism_records import Mechanism
from mb2fmu.mechanics.mechanism.records.symbol_replacement_and_derivatives import (
    invert_block_matrix,
    replace_symbols,
    replace_symbols_in_matrix,
)
from mb2fmu.mechanics.mechanism.symbolic.symbolic_kinematics import SymbolicKinematics
from mb2fmu.mechanics.mechanism.sympy_import.kinematic_consistency_checks import find_nonintegrable_velocities


def check_applicability(mechanism: Mechanism) -> FormulationApplicability:
    """Return whether the method applies: velocities must be derivatives of positions; any constraints will do."""
    if mechanism.is_lagrangian_only:
        return declare_formulation_applicable("the Lagrangian is given")
    reason = _explain_inapplicability(
        mechanism
    )  # of a LagrangesMethod too: the Lagrangian of such velocities is not the mechanism's
    if reason:
        return declare_formulation_inapplicable(reason)
    return declare_formulation_applicable("every velocity is the derivative of a position and q' determines u")


def _explain_inapplicability(m: Mechanism) -> str:
    """Return why Lagrange's equations of the second kind cannot be used; empty if they can."""
    names = ", ".join(m.points_using_constraints)
    obstacles = [
        (not m.q, "all motion is prescribed: there are no coordinates"),
        (len(m.q) != len(m.u), f"{len(m.q)} coordinates and {len(m.u)} speeds: q' does not determine u"),
        (bool(m.u_auxiliary), "auxiliary speeds have no coordinates: use kane or tmt"),
        (bool(names), f"the velocity of {names} already uses a constraint: it is not the derivative of a position"),
    ]
    reason = next((text for applies, text in obstacles if applies), "")
    if reason:
        return reason
    velocity_names = ", ".join(find_nonintegrable_velocities(m))
    return (
        f"the velocity of {velocity_names} is not the derivative of any position (nonholonomic)"
        if velocity_names
        else ""
    )


def formulate(mechanism: Mechanism) -> EquationsOfMotion:
    """Form M and f in the user's speeds.

    Args:
        mechanism: See :func:`check_applicability`.

    Returns:
        Equations whose mass matrix is symmetric, shape (n_u, n_u).
    """
    m = mechanism
    kinematics = SymbolicKinematics(m)
    t = m.t
    q = [m.dynamic[qi] for qi in m.q]
    if m.lagrangian is not None:
        method = LagrangesMethod(replace_symbols(m.lagrangian.expression, m.dynamic), q)
    else:
        rates = sm.Matrix([qi.diff(t) for qi in q])
        inverse = replace_symbols_in_matrix(invert_block_matrix(m.kinematics.matrix), m.dynamic)
        u = inverse * (rates - replace_symbols_in_matrix(m.kinematics.offset, m.dynamic))
        model = build_sympy_bodies(kinematics, dict(zip(m.u, u, strict=True)))
        method = LagrangesMethod(_kinetic_energy(m, model), q, list(model.loads) or None, None, model.frames[0])
    method.form_lagranges_equations()
    plain_symbols: dict[sm.Basic, sm.Expr] = {dynamic: plain for plain, dynamic in m.dynamic.items()}
    plain_symbols.update({qi.diff(t): dot for qi, dot in zip(q, kinematics.q_dot, strict=True)})
    M_q = replace_symbols_in_matrix(method.mass_matrix, plain_symbols)
    f_q = replace_symbols_in_matrix(method.forcing, plain_symbols)
    if m.lagrangian is not None:
        f_q = sm.ImmutableMatrix(f_q + sm.Matrix(m.lagrangian.forces))
    dynamics = _transform_to_speeds(kinematics, M_q, f_q)
    if m.lagrangian is None and m.potential_forces:  # a Lagrangian has these in it; a robot's efforts stand here
        f = sm.ImmutableMatrix(dynamics.forcing + sm.Matrix(m.potential_forces))
        dynamics = MassMatrixDynamics(dynamics.mass_matrix, f)
    return assemble_equations("lagrange", kinematics, dynamics)


def _kinetic_energy(m: Mechanism, model: SympyMechanismCopy) -> sm.Expr:
    """Return T in q and q'."""
    N = model.frames[0]
    total = sm.S.Zero
    for record, body in zip(m.bodies, model.bodies, strict=True):
        v = model.points[record.masscenter].vel(N)
        total += replace_symbols(record.mass, m.dynamic) * v.dot(v) / 2
        if record.inertia is not None and not record.inertia.is_zero_matrix:
            frame = model.frames[record.frame]
            w = frame.ang_vel_in(N)
            total += w.dot(body.central_inertia.dot(w)) / 2
    return total


def _transform_to_speeds(
    kinematics: SymbolicKinematics, M_q: sm.ImmutableMatrix, f_q: sm.ImmutableMatrix
) -> MassMatrixDynamics:
    """Return Kᵀ M_q K and Kᵀ (f_q - M_q q''|_{u'=0})."""
    second = sm.Matrix(kinematics.coordinate_acceleration_bias)
    K = kinematics.K
    if sm.eye(K.rows) == K and second.is_zero_matrix:
        return MassMatrixDynamics(M_q, f_q)
    named = {}
    for i in range(M_q.rows):
        for j in range(i, M_q.cols):
            named[i, j] = named[j, i] = kinematics.name(M_q[i, j], "Mq")
    M = sm.Matrix(M_q.rows, M_q.cols, lambda i, j: named[i, j])
    f = (f_q - M * second).applyfunc(lambda e: kinematics.name(e, "fq"))
    MK = (M * K).applyfunc(lambda e: kinematics.name(e, "MqK"))
    return MassMatrixDynamics(sm.ImmutableMatrix(K.T * MK), sm.ImmutableMatrix(K.T * f))
