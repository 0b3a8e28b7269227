"""Models of the textbook's chapter on generalized forces and of its neighbours, each held against what is by hand."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from mechanisms import Evaluated, mechanism_of, model_of, random_states
from scipy.integrate import solve_ivp

import mb2fmu
from mb2fmu import Model, Parts
from mb2fmu.formulation.theory import named_quantities
from mb2fmu.mechanism import Mechanism

t = me.dynamicsymbols._t
m1, m2, m3, l1, l2, l3, g, k, G = sm.symbols("m1 m2 m3 l1 l2 l3 g k G")


def hung(masses: int, *, tensions: bool = False) -> Model:
    """Particles on strings one below the other, angles from the upright N.y downwards; with tensions where asked."""
    q, u = me.dynamicsymbols(f"q1:{masses + 1}"), me.dynamicsymbols(f"u1:{masses + 1}")
    aux, T = me.dynamicsymbols(f"w1:{masses + 1}"), me.dynamicsymbols(f"T1:{masses + 1}")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    bodies, loads, above = [], [], O
    for i in range(masses):
        A = me.ReferenceFrame(f"A{i + 1}")
        A.orient_axis(N, N.z, q[i])
        A.set_ang_vel(N, u[i] * N.z)
        P = above.locatenew(f"P{i + 1}", -(l1, l2, l3)[i] * A.y)
        P.set_vel(N, above.vel(N) + (l1, l2, l3)[i] * u[i] * A.x + (aux[i] * A.y if tensions else 0))
        loads.append((P, -(m1, m2, m3)[i] * g * N.y))
        if tensions:  # of the string above, along the string: on this particle and, opposite, on the one above
            loads += [(P, T[i] * A.y)] + ([(above, -T[i] * A.y)] if i else [])
        bodies.append(me.Particle(f"M{i + 1}", P, (m1, m2, m3)[i]))
        above = P
    kde = [qi.diff(t) - ui for qi, ui in zip(q, u, strict=True)]
    parts = Parts(frame=N, origin=O, q=q, u=u, kinematic_equations=kde, bodies=bodies, loads=loads,
                  u_auxiliary=aux if tensions else ())  # fmt: skip
    values = {"m1": 1.0, "m2": 0.7, "m3": 0.4, "l1": 0.6, "l2": 0.5, "l3": 0.3}
    used = {name: value for name, value in values.items() if int(name[1]) <= masses}
    model = model_of("Hung", parts, q, u, **used, g=9.81)
    for force in T if tensions else ():
        model.constraint_force(force, unit="N")
        model.output(f"tension_{force.func}", force, "N")
    return model


def symbols(m: Mechanism) -> dict[str, sm.Symbol]:
    return {s.name: s for s in (*m.q, *m.u, *m.u_dot, *m.p, *m.constraint_forces, *m.u_auxiliary)}


def of_all(m: Mechanism, kind: str) -> dict[str, sm.Expr]:
    """F_r or F_r* of all together, by speed."""
    shown = named_quantities(m, [kind])
    assert not [i for i in shown.intermediates if not hasattr(i, "symbol")]
    written = {item.symbol: item.expression for item in shown.intermediates}
    found = {str(q.index): q.value for q in shown[kind].quantities if not q.of}
    for _ in written:
        found = {name: value.xreplace(written) for name, value in found.items()}
    return found


def test_the_triple_pendulum_has_the_generalized_forces_of_the_book() -> None:
    """F_r = -(sum of the masses from r on) g l_r sin q_r; F_r* from v_r · a by hand."""
    m = mechanism_of(hung(3))
    s, F, inertia = symbols(m), of_all(m, "generalized-active-forces"), of_all(m, "generalized-inertia-forces")
    mass = [sum(s[f"m{j}"] for j in range(i, 4)) for i in (1, 2, 3)]
    for i in (1, 2, 3):
        by_hand = -mass[i - 1] * s["g"] * s[f"l{i}"] * sm.sin(s[f"q{i}"])
        assert sm.simplify(F[f"u{i}"] - by_hand) == 0
        star = 0
        for j in (1, 2, 3):  # M_ij = (mass beyond both) l_i l_j cos(q_i - q_j), with the centripetal terms
            angle, shared = s[f"q{i}"] - s[f"q{j}"], mass[max(i, j) - 1] * s[f"l{i}"] * s[f"l{j}"]
            star -= shared * (sm.cos(angle) * s[f"u{j}_d"] + sm.sin(angle) * s[f"u{j}"] ** 2)
        assert sm.simplify(sm.expand_trig(inertia[f"u{i}"] - star)) == 0


def test_tensions_do_not_contribute_and_come_out_of_auxiliary_speeds() -> None:
    """Of the double simple pendulum: no T in F_1 and F_2, T in the auxiliary ones, and values as by Newton's law."""
    m = mechanism_of(hung(2, tensions=True))
    s, F = symbols(m), of_all(m, "generalized-active-forces")
    for speed in ("u1", "u2"):
        assert not sm.simplify(F[speed]).free_symbols & {s["T1"], s["T2"]}
    assert sm.simplify(F["w1"].diff(s["T1"]) - 1) == 0
    assert sm.simplify(F["w2"].diff(s["T2"]) - 1) == 0
    unit = Evaluated(m, "tmt")
    for state in random_states(m, 3):
        p = dict(zip([x.name for x in m.p], state.p, strict=True))
        q1, q2, u1, _ = state.x
        d1, _ = unit("rhs", state)[2:]
        below = np.array([np.sin(q2), -np.cos(q2)])  # from P1 to P2
        along, beside = np.array([np.sin(q1), -np.cos(q1)]), np.array([np.cos(q1), np.sin(q1)])
        a1 = p["l1"] * (d1 * beside - u1**2 * along)
        pulled = p["m1"] * (a1 + np.array([0, p["g"]]))  # = -T1 along + T2 below
        T1, T2 = np.linalg.solve(np.column_stack([-along, below]), pulled)
        assert unit.output("tension_T1", state) == pytest.approx(T1, rel=1e-9)
        assert unit.output("tension_T2", state) == pytest.approx(T2, rel=1e-9)


def sliding_rod() -> Model:
    """A rod that slides on a pin and turns about it, held by a spring; s is the way from the pin to its centre."""
    q, s, u, v = me.dynamicsymbols("q s u v")
    m, l = sm.symbols("m l")
    N, A, O = me.ReferenceFrame("N"), me.ReferenceFrame("A"), me.Point("O")
    O.set_vel(N, 0)
    A.orient_axis(N, N.z, q)
    A.set_ang_vel(N, u * N.z)
    C = O.locatenew("C", s * A.x)
    C.set_vel(N, v * A.x + s * u * A.y)
    rod = me.RigidBody("rod", C, A, m, (me.inertia(A, 0, 0, m * l**2 / 12), C))
    parts = Parts(frame=N, origin=O, q=(q, s), u=(u, v), kinematic_equations=(q.diff(t) - u, s.diff(t) - v),
                  bodies=(rod,), loads=((C, m * g * N.x - k * s * A.x),))  # fmt: skip
    return model_of("SlidingRod", parts, (q, s), (u, v), m=1.2, l=0.8, g=9.81, k=30.0)


def test_the_sliding_rod_moves_as_by_hand() -> None:
    """(l²/12 + s²) u' = -2 s v u - g s sin q, v' = s u² + g cos q - k s / m."""
    m = mechanism_of(sliding_rod())
    for method in ("kane", "lagrange"):
        unit = Evaluated(m, method)
        for state in random_states(m, 2):
            p = dict(zip([x.name for x in m.p], state.p, strict=True))
            q, s, u, v = state.x
            turning = (-2 * s * v * u - p["g"] * s * np.sin(q)) / (p["l"] ** 2 / 12 + s**2)
            sliding = s * u**2 + p["g"] * np.cos(q) - p["k"] * s / p["m"]
            assert np.allclose(unit("rhs", state), (u, v, turning, sliding), rtol=1e-11, atol=1e-12)


def test_a_particle_on_the_slope_slides_at_half_of_gravity() -> None:
    """q1 = q2, gravity along -q2: q1'' = q2'' = -g/2, and the constraint's force m g / sqrt(2) across the slope."""
    q, u = me.dynamicsymbols("q1 q2"), me.dynamicsymbols("u1 u2")
    m = sm.Symbol("m")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", q[0] * N.x + q[1] * N.y)
    P.set_vel(N, u[0] * N.x + u[1] * N.y)
    parts = Parts(frame=N, origin=O, q=q, u=u, kinematic_equations=[a.diff(t) - b for a, b in zip(q, u, strict=True)],
                  bodies=[me.Particle("P", P, m)],
                  loads=[(P, -m * g * N.y)], holonomic_constraints=[q[0] - q[1]])  # fmt: skip
    model = Model("Slope", parts)
    for symbol, value in ((m, 2.0), (g, 9.81)):
        model.parameter(symbol, value)
    for a, b in zip(q, u, strict=True):
        model.coordinate(a, 0.3, kind="fixed" if a is q[0] else "guess")
        model.speed(b, 0.5, kind="fixed" if b is u[0] else "guess")
    model.output_multiplier("normal", q[0] - q[1])
    f = mb2fmu.rhs(model)
    assert f(0.0, f.x0)[-1] == pytest.approx(-9.81 / 2, rel=1e-12)
    (multiplier,) = f.outputs(0.0, f.x0)
    assert abs(multiplier) * np.sqrt(2) == pytest.approx(2.0 * 9.81 / np.sqrt(2), rel=1e-12)


def test_newtons_gravitation_has_a_potential_and_kepler_his_third_law() -> None:
    """V = -G m1 m2 / r; an ellipse closes after 2π sqrt(a³ / (G (m1 + m2)))."""
    q, u = me.dynamicsymbols("x1 y1 x2 y2"), me.dynamicsymbols("u1 v1 u2 v2")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    points = [O.locatenew(f"P{i}", q[i] * N.x + q[i + 1] * N.y) for i in (0, 2)]
    for i, P in zip((0, 2), points, strict=True):
        P.set_vel(N, u[i] * N.x + u[i + 1] * N.y)
    way = me.LinearPathway(*points)
    bodies = [me.Particle("sun", points[0], m1), me.Particle("planet", points[1], m2)]
    kde = [a.diff(t) - b for a, b in zip(q, u, strict=True)]
    parts = Parts(frame=N, origin=O, q=q, u=u, kinematic_equations=kde, bodies=bodies,
                  actuators=[me.ForceActuator(-G * m1 * m2 / way.length**2, way)])  # fmt: skip
    model = model_of("Kepler", parts, q, u, m1=2.0, m2=0.5, G=1.0)
    model.output_potential_energy("V")
    unit = Evaluated(mechanism_of(model), "tmt")
    state = random_states(unit_mechanism := mechanism_of(model), 1)[0]
    p = dict(zip([x.name for x in unit_mechanism.p], state.p, strict=True))
    distance = np.hypot(state.x[2] - state.x[0], state.x[3] - state.x[1])
    assert unit.output("V", state) == pytest.approx(-p["G"] * p["m1"] * p["m2"] / distance, rel=1e-12)
    f = mb2fmu.rhs(model)
    start = np.array([0, 0, 1.0, 0, 0, -0.2 * 1.7, 0, 0.8 * 1.7])  # at rest together; at an apsis, v = 1.7
    mu, r, v = 2.5, 1.0, 1.7
    a = 1 / (2 / r - v**2 / mu)
    run = solve_ivp(f, (0, 2 * np.pi * np.sqrt(a**3 / mu)), start, rtol=1e-12, atol=1e-13)
    assert np.allclose(run.y[:, -1], start, atol=1e-8)
