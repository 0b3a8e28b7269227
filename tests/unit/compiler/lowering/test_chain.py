"""SymPy's expansion never shows: a spatial chain, general inertia, by SymPy's own KanesMethod."""

import numpy as np
import pytest
import sympy as sm
from representatives import by_night
from sympy.physics.mechanics import KanesMethod, PinJoint, Point, ReferenceFrame, RigidBody, dynamicsymbols, inertia

from mb2fmu.compiler.evaluation import make_evaluator
from mb2fmu.compiler.lowering import lower_equations_to_program
from mb2fmu.compiler.program.program_result_dependencies import count_operations
from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion, KinematicEquations, MassMatrixDynamics


def kane_of_chain(n):
    """Joint axes z, y, x, z, …; joints offset in all three directions, mass centres and inertias general."""
    q, u = dynamicsymbols(f"q1:{n + 1}"), dynamicsymbols(f"u1:{n + 1}")
    g = sm.Symbol("g")
    parameters, joints, bodies, loads = [g], [], [], []
    parent = ground = RigidBody("ground")
    for i in range(n):
        moments = sm.symbols(f"I_xx{i} I_yy{i} I_zz{i} I_xy{i} I_yz{i} I_zx{i}")
        mass, *place = sm.symbols(f"m{i} a{i} b{i} c{i} x{i} y{i} z{i}")
        parameters += [*moments, mass, *place]
        frame, centre = ReferenceFrame(f"B{i}"), Point(f"C{i}")
        body = RigidBody(f"body{i}", centre, frame, mass, (inertia(frame, *moments), centre))
        axes = parent.frame
        offset = place[0] * axes.x + place[1] * axes.y + place[2] * axes.z if i else None
        to_joint = -(place[3] * frame.x + place[4] * frame.y + place[5] * frame.z)
        axis = (axes.z, axes.y, axes.x)[i % 3]
        joints.append(
            PinJoint(f"J{i}", parent, body, q[i], u[i], parent_point=offset, child_point=to_joint, joint_axis=axis)
        )
        bodies.append(body)
        loads.append((centre, -mass * g * ground.frame.z))
        parent = body
    kane = KanesMethod(ground.frame, q, u, kd_eqs=[equation for joint in joints for equation in joint.kdes])
    kane.kanes_equations(bodies, loads)
    return kane, tuple(parameters)


def equations_of(kane, parameters):
    n = len(kane.q)
    q, u, u_dot = (sm.symbols(f"{letter}1:{n + 1}") for letter in ("q", "u", "w"))
    plain = {**dict(zip(kane.q, q, strict=True)), **dict(zip(kane.u, u, strict=True))}
    return EquationsOfMotion(
        method="kane",
        t=dynamicsymbols._t,
        q=q,
        u=u,
        u_independent=tuple(range(n)),
        u_dot=u_dot,
        p=parameters,
        kinematics=KinematicEquations(sm.ImmutableMatrix(sm.eye(n)), sm.ImmutableMatrix.zeros(n, 1)),
        dynamics=MassMatrixDynamics(
            sm.ImmutableMatrix(kane.mass_matrix.xreplace(plain)),
            sm.ImmutableMatrix(kane.forcing.xreplace(kane.kindiffdict()).xreplace(plain)),
        ),
    )


@pytest.mark.slow
@pytest.mark.parametrize(("n", "operations"), [(2, 160), *by_night((3, 600), (4, 1_400), (6, 4_500))])
def test_few_operations_move_the_same(n, operations):
    kane, parameters = kane_of_chain(n)
    equations = equations_of(kane, parameters)
    program = lower_equations_to_program(equations)
    assert count_operations(program, "rhs").total() < operations
    rng = np.random.default_rng(1)
    x, p = rng.uniform(-1.0, 1.0, 2 * n), rng.uniform(1.0, 2.0, len(parameters))
    d = equations.dynamics
    exact = sm.lambdify([equations.q, equations.u, parameters], [d.mass_matrix, d.forcing], cse=True)
    mass, forcing = exact(x[:n], x[n:], p)
    expected = np.linalg.solve(mass, forcing).ravel()
    found = make_evaluator(program, "rhs")(0.0, x, (), p)
    np.testing.assert_array_equal(found[:n], x[n:])
    error = np.linalg.norm(found[n:] - expected) / np.linalg.norm(expected)
    assert error < 100 * np.finfo(float).eps * np.linalg.cond(mass)
