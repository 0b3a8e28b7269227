"""Coordinates that form quaternions: bodies that fly and joints that turn freely, by every formulation."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import sympy as sm
from declared_constraints import falling_body, two_quaternions
from mechanisms import Evaluated, Numeric, close, mechanism_of, model_of, random_states
from representatives import by_night
from sympy.physics import mechanics as me

import mb2fmu
from mb2fmu import pipeline
from mb2fmu.compiler.evaluation import make_evaluator
from mb2fmu.compiler.lowering import lower_equations_to_program
from mb2fmu.errors import MechanismError
from mb2fmu.mechanics.formulations import check_applicability_of_all_formulations, formulate
from mb2fmu.mechanics.mechanism import Mechanism, solve_loop_closure_start_values
from mb2fmu.model.model import Model, Parts

T = me.dynamicsymbols._t
METHODS = ("kane", "tmt", "recursive-articulated", "recursive-composite")


def _body(name: str, point: me.Point, frame: me.ReferenceFrame) -> me.RigidBody:
    m, J = sm.symbols("m J")
    return me.RigidBody(name, point, frame, m, (me.inertia(frame, J, 2 * J, 2.5 * J, 0.1 * J, 0.2 * J, 0.3 * J), point))


def tumbling(*, speeds_along_body: bool = True, child: bool = True) -> Model:
    """A free body, and another on a ball joint at it: two quaternions, no Euler angle anywhere."""
    x, e, f = me.dynamicsymbols("x1:4"), me.dynamicsymbols("e0:4"), me.dynamicsymbols("f0:4")
    v, w, s = me.dynamicsymbols("v1:4"), me.dynamicsymbols("w1:4"), me.dynamicsymbols("s1:4")
    N, A, B = (me.ReferenceFrame(name) for name in "NAB")
    O = me.Point("O")
    O.set_vel(N, 0)
    equations = mb2fmu.orient_by_quaternion(A, N, e, w)
    centre = O.locatenew("centre", sum((xi * axis for xi, axis in zip(x, N, strict=True)), 0 * N.x))
    if speeds_along_body:  # components along the body: x' = N_C_A v
        square = sum(c**2 for c in e)
        centre.set_vel(N, sum((vi * axis for vi, axis in zip(v, A, strict=True)), 0 * N.x))
        turned = (N.dcm(A) / square) * sm.Matrix(v)
        equations += [xi.diff(T) - rate for xi, rate in zip(x, turned, strict=True)]
    else:
        centre.set_vel(N, sum((vi * axis for vi, axis in zip(v, N, strict=True)), 0 * N.x))
        equations += [xi.diff(T) - vi for xi, vi in zip(x, v, strict=True)]
    bodies, q, u = [_body("carrier", centre, A)], [*e, *x], [*w, *v]
    if child:
        equations += mb2fmu.orient_by_quaternion(B, A, f, s)
        ball = centre.locatenew("ball", 0.3 * A.x + 0.1 * A.z)
        bodies.append(_body("swinger", ball.locatenew("second", 0.2 * B.y - 0.1 * B.z), B))
        q, u = [*q, *f], [*u, *s]
    loads = [(body.masscenter, -sm.Symbol("g") * body.mass * N.z) for body in bodies]
    parts = Parts(frame=N, origin=O, q=q, u=u, kinematic_equations=equations, bodies=bodies, loads=loads)
    model = model_of("Tumbling", parts, [], [], m=1.2, J=0.3, g=9.81)
    for quaternion in (e, f) if child else (e,):
        for symbol, start in zip(quaternion, (1.0, 0.0, 0.0, 0.0), strict=True):
            model.coordinate(symbol, start)
    for symbol in x:
        model.coordinate(symbol, 0.0)
    for i, symbol in enumerate(u):
        model.speed(symbol, 0.3 * i - 0.5)
    return model


@cache
def free_body() -> Mechanism:
    """That of a free body alone."""
    return mechanism_of(tumbling(child=False))


@pytest.mark.parametrize("child", [False, pytest.param(True, marks=pytest.mark.repeats)])
def test_every_method_agrees_on_and_off_the_unit_sphere(child):
    mechanism = mechanism_of(tumbling(speeds_along_body=False, child=child))
    numeric = Numeric(mechanism)
    assert [m for m in METHODS if check_applicability_of_all_formulations(mechanism)[m].is_applicable] == list(METHODS)
    evaluated = {method: Evaluated(mechanism, method) for method in METHODS}
    for state in random_states(mechanism, 3):  # lengths of the quaternions far from 1
        expected, condition = numeric.accelerations(state), numeric.condition()
        for method, one in evaluated.items():
            assert close(one("accelerations", state), expected, condition), method
        rates = [one("rhs", state) for one in evaluated.values()]
        assert all(np.allclose(rate, rates[0], rtol=1e-10, atol=1e-10) for rate in rates)


def test_the_length_of_a_quaternion_does_not_change_the_motion():
    mechanism = free_body()
    one = Evaluated(mechanism, "recursive-articulated")
    state = random_states(mechanism, 1)[0]
    e = slice(0, 4)
    longer = type(state)(state.t, state.x.copy(), state.r, state.p)
    longer.x[e] *= 1.7
    assert np.allclose(one("accelerations", longer), one("accelerations", state), rtol=1e-12, atol=1e-12)
    assert np.allclose(one("rhs", longer)[4:], one("rhs", state)[4:], rtol=1e-12, atol=1e-12)
    across = one("rhs", longer)[e] - 1.7 * one("rhs", state)[e]
    assert np.allclose(np.cross(across[1:], state.x[1:4]), 0, atol=1e-12)  # the difference is along e


def test_quaternions_without_a_remedy_get_the_attractor_and_others_are_left_alone():
    mechanism = free_body()
    e = sm.Matrix(mechanism.q[:4])
    K, k0 = mechanism.kinematics.matrix[:4, :], mechanism.kinematics.offset[:4, :]
    radial = (e.T * (K * sm.Matrix(mechanism.u) + k0))[0]
    square = sum(c**2 for c in e)
    assert sm.expand(radial - (1 - square) * square) == 0


@pytest.mark.parametrize("name", ["sympy", *by_night("normalized", "inverse"), "own"])
def test_ways_to_write_a_quaternion(name):
    """SymPy's own angular velocity, a normalised matrix, K from SymPy's angular velocity, the user's attractor."""
    e, w = me.dynamicsymbols("e0:4"), me.dynamicsymbols("w1:4")
    N, A = me.ReferenceFrame("N"), me.ReferenceFrame("A")
    O = me.Point("O")
    O.set_vel(N, 0)
    equations = mb2fmu.orient_by_quaternion(A, N, e, w)
    square = sum(c**2 for c in e)
    if name == "normalized":
        matrix = N.dcm(A) / square
        A = me.ReferenceFrame("A")
        A.orient_explicit(N, matrix)
        A.set_ang_vel(N, w[0] * A.x + w[1] * A.y + w[2] * A.z)
    elif name in {"sympy", "inverse"}:
        A = me.ReferenceFrame("A")
        A.orient_quaternion(N, e)
        if name == "inverse":
            omega = A.ang_vel_in(N)
            equations = [omega.dot(axis) - wi for axis, wi in zip(A, w, strict=True)]
            equations.append(sum(c * c.diff(T) for c in e))
    elif name == "own":
        equations = [row - 5 * (1 - square) * c for row, c in zip(equations, e, strict=True)]
    body = _body("body", O, A)
    parts = Parts(
        frame=N, origin=O, q=list(e), u=list(w), kinematic_equations=equations, bodies=[body], loads=[(A, A.x)]
    )
    model = model_of("One", parts, [], list(w), m=1.0, J=0.2)
    for symbol, start in zip(e, (1.0, 0.0, 0.0, 0.0), strict=True):
        model.coordinate(symbol, start)
    mechanism = mechanism_of(model)
    numeric = Numeric(mechanism)
    one = Evaluated(mechanism, "recursive-articulated")
    program = make_evaluator(one.program, "rhs")
    for state in random_states(mechanism, 3):
        assert close(one("accelerations", state), numeric.accelerations(state), 1.0)
        rate = program(state.t, state.x, state.r, state.p)[:4]
        radial = state.x[:4] @ rate / (state.x[:4] @ state.x[:4])
        assert radial == pytest.approx((5 if name == "own" else 1) * (1 - state.x[:4] @ state.x[:4]), rel=1e-9)


def test_tumbling_for_long_by_coarse_explicit_steps_keeps_the_length_bounded():
    """Euler's explicit method with steps of 0.02 s at 8 rad/s lets |e| grow by 0.3 % a step without the attractor."""
    mechanism = free_body()
    one = Evaluated(mechanism, "recursive-articulated")
    x = np.array([1.0, 0, 0, 0, 0, 0, 0, 0.5, 8.0, 0.2, 0, 0, 0])
    state = random_states(mechanism, 1)[0]
    f = make_evaluator(lower_equations_to_program(one.equations), "rhs")
    p = state.p.copy()
    p[[q.name for q in mechanism.p].index("g")] = 0.0
    longest = 0.0
    for _ in range(1500):
        x = x + 0.02 * f(0.0, x, (), p)
        x[7:10] *= 8.0 / np.linalg.norm(x[7:10])  # Euler's method would spin the body up, too
        longest = max(longest, float(np.linalg.norm(x[:4])))
    assert 1.0 < longest < 1.1  # |e|² settles at 1 + h ω²/8 k = 1.16


def test_a_wrong_angular_velocity_is_still_found():
    model = tumbling(child=False)
    parts = model.mechanics
    A = parts.bodies[0].frame
    A.set_ang_vel(parts.frame, 2 * A.ang_vel_in(parts.frame))
    with pytest.raises(MechanismError, match="angular velocity of frame A"):
        mechanism_of(model)


def hung(*, at: float = 0.5, door: str = "parts", length: bool = False) -> Model:
    """A body on a ball joint, half a metre from its mass centre, which is ``at`` metres away at the start."""
    e, w, x, v = (me.dynamicsymbols(names) for names in ("e0:4", "w1:4", "x1:4", "v1:4"))
    N, A, O = me.ReferenceFrame("N"), me.ReferenceFrame("A"), me.Point("O")
    equations = mb2fmu.orient_by_quaternion(A, N, e, w)
    equations += [xi.diff(T) - vi for xi, vi in zip(x, v, strict=True)]
    O.set_vel(N, 0)
    centre = O.locatenew("centre", sum((xi * axis for xi, axis in zip(x, N, strict=True)), 0 * N.x))
    centre.set_vel(N, sum((vi * axis for vi, axis in zip(v, N, strict=True)), 0 * N.x))
    end = centre.locatenew("end", A.x / 2)
    end.v2pt_theory(centre, N, A)
    rows = [end.pos_from(O).dot(axis) for axis in N]
    body, load = _body("body", centre, A), (centre, -sm.Symbol("g") * sm.Symbol("m") * N.z)
    if length:
        rows.append(sum(c**2 for c in e) - 1)
    if door == "parts":
        mechanics = Parts(
            frame=N, origin=O, q=[*x, *e], u=[*v, *w], kinematic_equations=equations, bodies=[body], loads=[load],
            holonomic_constraints=rows,
        )  # fmt: skip
    else:
        mechanics = me.KanesMethod(
            N, q_ind=e, q_dependent=x, u_ind=w, u_dependent=v, kd_eqs=equations, bodies=[body], forcelist=[load],
            configuration_constraints=rows, velocity_constraints=[end.vel(N).dot(axis) for axis in N],
        )  # fmt: skip
    model = model_of("Hung", mechanics, [], [], m=1.2, J=0.3, g=9.81)
    for symbol, start in zip(x, (0.0, -at, 0.0), strict=True):
        model.coordinate(symbol, start)
    for symbol, start in zip(e, (0.8, 0.0, 0.0, 0.6), strict=True):
        model.coordinate(symbol, start, kind="guess")
    for symbol in (*v, *w):
        model.speed(symbol, 0.0, kind="guess")
    model.output_multiplier("pull", rows[1])
    return model


def test_no_loop_is_closed_by_the_length_of_a_quaternion():
    f = pipeline.right_hand_side(mb2fmu.derive(hung(), method="tmt"))
    e = f.x0[:4]
    half_turned = 2 * np.arctan2(e[3], e[0])
    assert np.exp(1j * half_turned) == pytest.approx(1j, abs=1e-9)
    with pytest.raises(MechanismError, match="cannot"):
        mb2fmu.derive(hung(at=0.45), method="tmt")


@cache
def plainly() -> Evaluated:
    """Without its length, and with rows that are derivatives."""
    return Evaluated(mechanism_of(hung()), "tmt")


@pytest.mark.parametrize("other", [{"length": True}, {"door": "kane"}])
def test_constraints_on_a_quaternion_may_be_written_in_several_ways(other):
    """With its length as a constraint; with velocity rows that are no derivatives of expressions of it."""
    hung_plainly = plainly()
    one, two = hung_plainly.mechanism, mechanism_of(hung(**other))
    assert not one.is_rheonomic
    assert not two.is_rheonomic
    assert len(two.holonomic) == 3
    state = random_states(one, 1)[0]
    order = [one.q.index(q) for q in two.q] + [7 + one.u.index(u) for u in two.u]
    same = type(state)(state.t, state.x[order], state.r, state.p)
    found = [m.output("pull", s) for m, s in ((hung_plainly, state), (Evaluated(two, "tmt"), same))]
    assert found[1] == pytest.approx(found[0], rel=1e-9)


def test_a_guess_follows_from_the_declared_length():
    """q1 is fixed: q0 follows as any other guess does, and nothing else moves."""
    mechanism = mechanism_of(falling_body())
    assert not mechanism.holonomic
    assert [name for name, _ in mechanism.kinematic_invariants] == ["holonomic[1]"]
    start = {c.name: c.start for c in solve_loop_closure_start_values(mechanism).declared.coordinates}
    assert start["q0"] == pytest.approx(np.sqrt(0.75), abs=1e-12)
    assert start["q1"] == 0.5
    assert formulate(mechanism, "tmt").solved_start_states == {sm.Symbol("q0")}


def test_fixed_values_off_the_declared_length_are_refused():
    with pytest.raises(MechanismError, match=r"fixed start values of q1, q2, q3, q0 contradict holonomic\[1\]"):
        solve_loop_closure_start_values(mechanism_of(falling_body(q0=0.867, kind="fixed")))


def test_rates_of_points_do_not_depend_on_the_length():
    """x' = R(q) v is solved for with a matrix that is no rotation where |q| ≠ 1."""
    mechanism = mechanism_of(falling_body(given=True))  # where C is can be told, since its velocity is that of x, y, z
    assert all(point.located for point in mechanism.points)
    one = Evaluated(mechanism, "tmt")
    state = random_states(mechanism, 1)[0]
    e = [mechanism.q.index(q) for q in mechanism.q if q.name.startswith("q")]
    longer = type(state)(state.t, state.x.copy(), state.r, state.p)
    longer.x[e] *= 1.7
    assert one("rhs", longer)[:3] == pytest.approx(one("rhs", state)[:3], rel=1e-12)


def test_velocities_are_compared_at_unit_length():
    """What SymPy composes across two quaternions is right where both have unit length, and only there."""
    assert len(mechanism_of(two_quaternions()).quaternions) == 2
