"""Kane's method: SymPy's ``KanesMethod`` on a fresh copy of the mechanism.

Fr + Fr* = 0 for every independent speed: with partial velocities v_r of mass centres and w_r of frames,

    sum_B [ v_r · (F - m a) + w_r · (T - I · alpha - w × I · w) ] = 0.

With velocity constraints A u + b = 0, split into A_i u_i + A_d u_d + b = 0, the dependent rows are added to the
independent ones with weights -(A_d⁻¹ A_i)ᵀ. That matrix is handed to SymPy as opaque symbols and solved numerically,
with pivoting: nothing is ever divided by an expression that can vanish.

Weights are among the loads that ``build_sympy_bodies`` copies; nothing here treats gravity apart.

Source: Kane and Levinson, Dynamics: Theory and Applications, 1985, ch. 4-6 (nonholonomic: eq. 6.1.2); auxiliary speeds
for noncontributing forces: section 4.9.
"""

from __future__ import annotations

from collections.abc import Callable

import sympy as sm
from sympy.physics.mechanics import KanesMethod

from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion, LinearSystemAssignment, MassMatrixDynamics
from mb2fmu.mechanics.formulations.equations_assembly import assemble_equations, form_constraint_force_system
from mb2fmu.mechanics.formulations.formulation_applicability import (
    FormulationApplicability,
    check_projection_applicability,
    declare_formulation_inapplicable,
)
from mb2fmu.mechanics.formulations.mechanism_to_sympy import build_sympy_bodies
from mb2fmu.mechanics.mechanism.records.mechanism_records import Mechanism
from mb2fmu.mechanics.mechanism.records.symbol_replacement_and_derivatives import replace_symbols_in_matrix
from mb2fmu.mechanics.mechanism.symbolic.symbolic_kinematics import SymbolicKinematics

LinearSolver = Callable[[sm.Matrix, sm.Matrix], sm.Matrix]


def check_applicability(mechanism: Mechanism) -> FormulationApplicability:
    """Return whether the method applies: it needs bodies, and speeds that are not prescribed."""
    answer = check_projection_applicability(mechanism)
    if answer.is_applicable and not mechanism.u:
        return declare_formulation_inapplicable(
            "all motion is prescribed: there are no speeds, and SymPy's method forms no equations"
        )
    return answer


def formulate(mechanism: Mechanism) -> EquationsOfMotion:
    """Form the rows of the independent speeds.

    Args:
        mechanism: With bodies.

    Returns:
        Equations whose mass matrix has shape (n_u - m, n_u), or (n_u, n_u) and is symmetric where there are no
        velocity constraints, and where holonomic constraints or outputs need their multipliers.
    """
    m = mechanism
    kinematics = SymbolicKinematics(m)
    function_of_symbol = _functions_of_time(m)
    model = build_sympy_bodies(kinematics, {u: function_of_symbol[u] for u in m.u})
    dynamic = [function_of_symbol[u] for u in m.u]
    # Over all speeds, as if there were no constraints, where multipliers are needed, or where a potential has a
    # force per speed; reduced rows are shorter.
    uses_all_speeds = bool(m.holonomic) or m.needs_multipliers or bool(m.potential_forces)
    independent = list(range(len(m.u)) if uses_all_speeds else m.u_independent)
    dependent = [i for i in range(len(m.u)) if i not in independent]
    solves: list[LinearSystemAssignment] = []
    method = KanesMethod(
        model.frames[0],
        [function_of_symbol[q] for q in m.q],
        [dynamic[i] for i in independent],
        kd_eqs=_kinematic_equations(m, function_of_symbol),
        u_dependent=[dynamic[i] for i in dependent] or None,
        velocity_constraints=(None if uses_all_speeds else _velocity_rows(m, function_of_symbol)) or None,
        u_auxiliary=[function_of_symbol[u] for u in m.u_auxiliary] or None,
        constraint_solver=_opaque_solver(kinematics, _plain_symbol_map(m, function_of_symbol), solves),
        kd_eqs_solver=lambda matrix, right: right if matrix == sm.eye(matrix.rows) else matrix.LUsolve(right),
    )
    method.kanes_equations(list(model.bodies), list(model.loads) or None)
    rows = len(independent)
    plain_symbols = _plain_symbol_map(m, function_of_symbol)
    M = replace_symbols_in_matrix(method.mass_matrix[:rows, :], plain_symbols)
    f = replace_symbols_in_matrix(
        method.forcing[:rows, :], {**plain_symbols, **dict.fromkeys(m.constraint_forces, sm.S.Zero)}
    )
    if m.potential_forces:  # of a Lagrangian, whose speeds are q'
        f = sm.ImmutableMatrix(f + sm.Matrix(m.potential_forces))
    order = [*independent, *dependent]
    columns = [order.index(i) for i in range(len(m.u))]
    dynamics = MassMatrixDynamics(M.extract(list(range(rows)), columns), f)
    forces = _constraint_forces(method, m, plain_symbols) if m.constraint_forces else None
    return assemble_equations("kane", kinematics, dynamics, constraint_forces=forces, extra=solves)


def _functions_of_time(m: Mechanism) -> dict[sm.Basic, sm.Expr]:
    """Return plain symbol → function of time; a speed that equals q' gets its own, as SymPy requires."""
    function_of_speed = {u: sm.Function(u.name)(m.t) for u in m.u if isinstance(m.dynamic[u], sm.Derivative)}
    return {**m.dynamic, **function_of_speed}


def _kinematic_equations(m: Mechanism, function_of_symbol: dict[sm.Basic, sm.Expr]) -> list[sm.Expr]:
    """Return q' - K u - k0."""
    rates = m.kinematics.matrix * sm.Matrix(m.u) + m.kinematics.offset
    rates = replace_symbols_in_matrix(rates, function_of_symbol)
    return [function_of_symbol[q].diff(m.t) - rate for q, rate in zip(m.q, rates, strict=True)]


def _velocity_rows(m: Mechanism, function_of_symbol: dict[sm.Basic, sm.Expr]) -> list[sm.Expr]:
    """Return a u + b in functions of time."""
    if m.velocity_constraints is None:
        return []
    c = m.velocity_constraints
    return list(replace_symbols_in_matrix(c.jacobian * sm.Matrix(m.u) + c.offset, function_of_symbol))


def _opaque_solver(
    kinematics: SymbolicKinematics, plain_symbols: dict[sm.Basic, sm.Expr], solves: list[LinearSystemAssignment]
) -> LinearSolver:
    """Return a solver that returns symbols for A⁻¹ B and records their meaning."""

    def solve(matrix: sm.Matrix, right: sm.Matrix) -> sm.Matrix:
        """Return symbols for ``matrix``⁻¹ ``right``; columns of zeros are not solved."""
        if right.is_zero_matrix:
            return right
        symbols = [kinematics.make_symbol(f"Ars_{i + 1}_{j + 1}") for i in range(right.rows) for j in range(right.cols)]
        name = "dependent speeds in terms of the independent ones"
        left, right_side = (
            replace_symbols_in_matrix(matrix, plain_symbols),
            replace_symbols_in_matrix(right, plain_symbols),
        )
        solves.append(LinearSystemAssignment(tuple(symbols), left, right_side, name))
        return sm.Matrix(right.rows, right.cols, symbols)

    return solve


def _plain_symbol_map(m: Mechanism, function_of_symbol: dict[sm.Basic, sm.Expr]) -> dict[sm.Basic, sm.Expr]:
    """Return functions of time, q' and u' → plain symbols."""
    mapping: dict[sm.Basic, sm.Expr] = {dynamic: plain for plain, dynamic in function_of_symbol.items()}
    rates = m.kinematics.matrix * sm.Matrix(m.u) + m.kinematics.offset
    mapping.update({function_of_symbol[q].diff(m.t): rate for q, rate in zip(m.q, rates, strict=True)})
    mapping.update({function_of_symbol[u].diff(m.t): dot for u, dot in zip(m.u, m.u_dot, strict=True)})
    return mapping


def _constraint_forces(
    method: KanesMethod, m: Mechanism, plain_symbols: dict[sm.Basic, sm.Expr]
) -> LinearSystemAssignment:
    """Return the auxiliary equations, linear in the unknown forces."""
    rows = replace_symbols_in_matrix(method.auxiliary_eqs, plain_symbols) - m.auxiliary_reactions
    return form_constraint_force_system(m, rows)
