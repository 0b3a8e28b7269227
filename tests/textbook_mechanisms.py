"""More mechanisms as people write them: from SymPy's documentation, textbooks and scripts, in their own notation."""

from __future__ import annotations

import sympy as sm
from strangers import T, body, declared, stranger, world
from sympy.physics import mechanics as me

from mb2fmu import Model, Parts


@stranger
def system_joints_actuators() -> Model:
    q1, q2, u1, u2 = me.dynamicsymbols("q1 q2 u1 u2")
    m, l, g, k, c = sm.symbols("m l g k c")
    wall = me.RigidBody("wall")
    sysm = me.System.from_newtonian(wall)
    a = me.RigidBody("a", mass=m)
    b = me.RigidBody("b", mass=m)
    a.inertia = (me.inertia(a.frame, m * l**2 / 12, 0, m * l**2 / 12), a.masscenter)
    b.inertia = (me.inertia(b.frame, m * l**2 / 12, 0, m * l**2 / 12), b.masscenter)
    j1 = me.PinJoint("j1", wall, a, q1, u1, child_point=l / 2 * a.y, joint_axis=wall.z)
    j2 = me.PinJoint("j2", a, b, q2, u2, parent_point=-l / 2 * a.y, child_point=l / 2 * b.y, joint_axis=a.z)
    sysm.add_joints(j1, j2)
    sysm.add_actuators(me.TorqueActuator.at_pin_joint(-k * q2 - c * u2, j2))
    pa = wall.masscenter.locatenew("pa", l * wall.x)
    pb = b.masscenter.locatenew("pb", -l / 2 * b.y)
    sysm.add_actuators(
        me.LinearSpring(k, me.LinearPathway(pa, pb), equilibrium_length=l / 3),
        me.LinearDamper(c, me.LinearPathway(pa, pb)),
    )
    sysm.apply_uniform_gravity(-g * wall.y)
    model = declared("Stranger", sysm, "m=1 l=1 g=9.81 k=5 c=0.2", {q1: 0.3, q2: -0.4, u1: 0.2, u2: 0.1})
    model.output_total_energy()
    return model


@stranger
def kane_with_aux_unused() -> Model:
    q, u, ua = me.dynamicsymbols("q u ua")
    m, l, g = sm.symbols("m l g")
    N, O = world()
    A = N.orientnew("A", "Axis", [q, N.z])
    A.set_ang_vel(N, u * N.z)
    P = O.locatenew("P", l * A.x)
    P.set_vel(N, l * u * A.y + ua * A.x)
    p = me.Particle("p", P, m)
    k = me.KanesMethod(N, [q], [u], kd_eqs=[q.diff() - u], u_auxiliary=[ua])
    k.kanes_equations([p], [(P, -m * g * N.y)])
    return declared("Stranger", k, "m=1 l=1 g=9.81", {q: 0.3, u: 0.1})


@stranger
def lagrange_damping() -> Model:
    q1, q2 = me.dynamicsymbols("q1 q2")
    m, l, g, c = sm.symbols("m l g c")
    N, O = world()
    A = N.orientnew("A", "Axis", [q1, N.z])
    B = N.orientnew("B", "Axis", [q2, N.z])
    P = O.locatenew("P", l * A.x)
    Q = P.locatenew("Q", l * B.x)
    P.v2pt_theory(O, N, A)
    Q.v2pt_theory(P, N, B)
    pp, pq = me.Particle("pp", P, m), me.Particle("pq", Q, m)
    pp.potential_energy = m * g * P.pos_from(O).dot(N.y)
    pq.potential_energy = m * g * Q.pos_from(O).dot(N.y)
    L = me.Lagrangian(N, pp, pq)
    lm = me.LagrangesMethod(L, [q1, q2], forcelist=[(P, -c * P.vel(N)), (Q, -c * Q.vel(N))], bodies=[pp, pq], frame=N)
    model = declared("Stranger", lm, "m=1 l=1 g=9.81 c=.1", {q1: 0.3, q2: -0.4, q1.diff(): 0.2, q2.diff(): 0.1})
    model.output_total_energy()
    return model


@stranger
def lagrange_nonholonomic() -> Model:
    x, y, th = me.dynamicsymbols("x y theta")
    m, J, _F = sm.symbols("m J F")
    L = m * (x.diff() ** 2 + y.diff() ** 2) / 2 + J * th.diff() ** 2 / 2
    lm = me.LagrangesMethod(L, [x, y, th], nonhol_coneqs=[x.diff() * sm.sin(th) - y.diff() * sm.cos(th)])
    return declared(
        "Stranger",
        lm,
        "m=1 J=1",
        {x: 0.0, y: 0.0, th: 0.3, x.diff(): 0.5, y.diff(): 0.1, th.diff(): 1.0},
        **{str(y.diff()): 1},
    )


@stranger
def rolling_disc_sympy() -> Model:
    q1, q2, q3, u1, u2, u3 = me.dynamicsymbols("q1 q2 q3 u1 u2 u3")
    r, m, g = sm.symbols("r m g")
    N = me.ReferenceFrame("N")
    Y = N.orientnew("Y", "Axis", [q1, N.z])
    L = Y.orientnew("L", "Axis", [q2, Y.x])
    R = L.orientnew("R", "Axis", [q3, L.y])
    w = R.ang_vel_in(N)
    R.set_ang_vel(N, u1 * L.x + u2 * L.y + u3 * L.z)
    C = me.Point("C")
    C.set_vel(N, 0)
    D = C.locatenew("D", r * L.z)
    D.v2pt_theory(C, N, R)
    I = me.inertia(L, m / 4 * r**2, m / 2 * r**2, m / 4 * r**2)
    kd = [w.dot(uv) - s_ for uv, s_ in zip(L, (u1, u2, u3), strict=True)]
    k = me.KanesMethod(N, [q1, q2, q3], [u1, u2, u3], kd_eqs=kd)
    k.kanes_equations([me.RigidBody("b", D, R, m, (I, D))], [(D, -m * g * Y.z)])
    return declared("Stranger", k, "m=1 r=.5 g=9.81", {q1: 0.1, q2: 0.2, q3: 0.3, u1: 0.4, u2: 2.0, u3: 0.1})


@stranger
def rolling_disc_generalized_contact() -> Model:
    x, y, q1, q2, q3 = me.dynamicsymbols("x y q1 q2 q3")
    vx, vy, u1, u2, u3 = me.dynamicsymbols("vx vy u1 u2 u3")
    r, m, g = sm.symbols("r m g")
    N, O = world()
    Y = N.orientnew("Y", "Axis", [q1, N.z])
    L = Y.orientnew("L", "Axis", [q2, Y.x])
    R = L.orientnew("R", "Axis", [q3, L.y])
    w = R.ang_vel_in(N)
    kd = [w.dot(e) - s_ for e, s_ in zip(L, (u1, u2, u3), strict=True)]
    R.set_ang_vel(N, u1 * L.x + u2 * L.y + u3 * L.z)
    C = O.locatenew("C", x * N.x + y * N.y)
    D = C.locatenew("D", r * L.z)
    C.set_vel(N, vx * N.x + vy * N.y)
    D.set_vel(N, C.vel(N) + L.ang_vel_in(N).cross(r * L.z))
    kd = [x.diff() - vx, y.diff() - vy, *kd]
    I = me.inertia(L, m / 4 * r**2, m / 2 * r**2, m / 4 * r**2)
    con = [(D.vel(N) + R.ang_vel_in(N).cross(-r * L.z)).dot(e) for e in (N.x, N.y)]
    k = me.KanesMethod(N, [x, y, q1, q2, q3], [u1, u2, u3], kd_eqs=kd, u_dependent=[vx, vy], velocity_constraints=con)
    k.kanes_equations([me.RigidBody("b", D, R, m, (I, D))], [(D, -m * g * N.z)])
    return declared(
        "Stranger",
        k,
        "m=1 r=.5 g=9.81",
        {x: 0.0, y: 0.0, q1: 0.1, q2: 0.2, q3: 0.3, u1: 0.4, u2: 2.0, u3: 0.1, vx: 0.0, vy: 0.0},
        vx=1,
        vy=1,
    )


@stranger
def quaternion_all_rates() -> Model:
    e = me.dynamicsymbols("e0:4")
    w = me.dynamicsymbols("w1:4")
    N, O = world()
    A = me.ReferenceFrame("A")
    A.orient_quaternion(N, e)
    E = sm.Matrix([[-e[1], -e[2], -e[3]], [e[0], -e[3], e[2]], [e[3], e[0], -e[1]], [-e[2], e[1], e[0]]])
    kd = [a.diff() - b for a, b in zip(e, E * sm.Matrix(w) / 2, strict=True)]
    A.set_ang_vel(N, w[0] * A.x + w[1] * A.y + w[2] * A.z)
    k = me.KanesMethod(N, list(e), list(w), kd_eqs=kd, bodies=[body("b", O, A)])
    return declared(
        "Stranger", k, "m=1 J=1", {e[0]: 1.0, e[1]: 0.0, e[2]: 0.0, e[3]: 0.0, w[0]: 0.3, w[1]: 1.0, w[2]: 0.2}
    )


@stranger
def wrapping_pathway() -> Model:
    q, u = me.dynamicsymbols("q u")
    m, r, k, l, g = sm.symbols("m r k l g", positive=True)
    N, O = world()
    A = me.ReferenceFrame("A")
    A.orient_axis(N, q, N.z)
    A.set_ang_vel(N, u * N.z)
    P = O.locatenew("P", r * N.x)
    Q = O.locatenew("Q", r * A.x)
    Q.v2pt_theory(O, N, A)
    P.set_vel(N, 0)
    cyl = me.WrappingCylinder(r, O, N.z)
    path = me.WrappingPathway(P, Q, cyl)
    G = O.locatenew("G", l * A.x)
    G.v2pt_theory(O, N, A)
    parts = Parts(
        frame=N,
        origin=O,
        q=[q],
        u=[u],
        kinematic_equations=[q.diff() - u],
        bodies=[me.Particle("p", G, m)],
        loads=[(G, -m * g * N.y)],
        actuators=[me.ForceActuator(-k * path.length, path)],
    )
    model = Model("Stranger", parts)
    for p_, v in ((m, 1), (r, 0.2), (k, 5), (l, 1), (g, 9.81)):
        model.parameter(p_, v)
    model.coordinate(q, 1.2)
    model.speed(u, 0.1)
    return model


@stranger
def moving_ground_time() -> Model:
    q, u = me.dynamicsymbols("q u")
    m, l, g, a, w = sm.symbols("m l g a w")
    N, O = world()
    A = me.ReferenceFrame("A")
    A.orient_axis(N, q, N.z)
    A.set_ang_vel(N, u * N.z)
    S_ = O.locatenew("S", a * sm.sin(w * T) * N.y)
    S_.set_vel(N, (a * sm.sin(w * T)).diff(T) * N.y)
    P = S_.locatenew("P", -l * A.y)
    P.v2pt_theory(S_, N, A)
    k = me.KanesMethod(N, [q], [u], [q.diff() - u], bodies=[me.Particle("p", P, m)], forcelist=[(P, -m * g * N.y)])
    return declared("Stranger", k, "m=1 l=1 g=9.81 a=.2 w=3", {q: 0.3, u: 0.1})


@stranger
def spring_as_force_actuator_q() -> Model:
    q, u = me.dynamicsymbols("q u")
    m, k = sm.symbols("m k")
    N, O = world()
    P = O.locatenew("P", q * N.x)
    P.set_vel(N, u * N.x)
    parts = Parts(
        frame=N,
        origin=O,
        q=[q],
        u=[u],
        kinematic_equations=[q.diff() - u],
        bodies=[me.Particle("p", P, m)],
        actuators=[me.ForceActuator(-k * q, me.LinearPathway(O, P))],
    )
    return declared("Stranger", parts, "m=1 k=4", {q: 0.5, u: 0.1})


@stranger
def textbook_bead() -> Model:
    th, om = me.dynamicsymbols("theta omega")
    m, R, g, Om = sm.symbols("m R g Omega")
    N = me.ReferenceFrame("N")
    O = me.Point("O")
    O.set_vel(N, 0)
    F = N.orientnew("F", "Axis", [Om * T, N.z])
    H = F.orientnew("H", "Axis", [th, F.y])
    P = O.locatenew("P", -R * H.z)
    P.set_vel(N, (om * F.y + Om * F.z).cross(-R * H.z))
    H.set_ang_vel(F, om * F.y)
    k = me.KanesMethod(N, [th], [om], kd_eqs=[th.diff() - om])
    k.kanes_equations([me.Particle("bead", P, m)], [(P, -m * g * N.z)])
    return declared("Stranger", k, "m=1 R=1 g=9.81 Omega=2", {th: 0.3, om: 0.1})


@stranger
def speeds_not_rates() -> Model:
    q1, q2, u1, u2 = me.dynamicsymbols("q1 q2 u1 u2")
    m, l, g = sm.symbols("m l g")
    N, O = world()
    A = N.orientnew("A", "Axis", [q1, N.z])
    B = A.orientnew("B", "Axis", [q2, A.z])
    A.set_ang_vel(N, u1 * N.z)
    B.set_ang_vel(N, u2 * N.z)
    P = O.locatenew("P", l * A.x)
    Q = P.locatenew("Q", l * B.x)
    P.v2pt_theory(O, N, A)
    Q.v2pt_theory(P, N, B)
    k = me.KanesMethod(N, [q1, q2], [u1, u2], kd_eqs=[q1.diff() - u1, q2.diff() - u2 + u1])
    k.kanes_equations([me.Particle("a", P, m), me.Particle("b", Q, m)], [(P, -m * g * N.y), (Q, -m * g * N.y)])
    return declared("Stranger", k, "m=1 l=1 g=9.81", {q1: 0.3, q2: 0.1, u1: 0.1, u2: 0.2})


@stranger
def euler_body_fixed_space() -> Model:
    q = me.dynamicsymbols("q1:4")
    u = me.dynamicsymbols("u1:4")
    N, O = world()
    A = me.ReferenceFrame("A")
    A.orient_space_fixed(N, q, "123")
    w = A.ang_vel_in(N)
    kd = [w.dot(a) - b for a, b in zip(A, u, strict=True)]
    A.set_ang_vel(N, u[0] * A.x + u[1] * A.y + u[2] * A.z)
    G = O.locatenew("G", 0.3 * A.x)
    G.v2pt_theory(O, N, A)
    m, g = sm.symbols("m g")
    k = me.KanesMethod(N, list(q), list(u), kd_eqs=kd)
    k.kanes_equations([body("b", G, A)], [(G, -m * g * N.z)])
    return declared(
        "Stranger", k, "m=1 J=.3 g=9.81", {q[0]: 0.2, q[1]: 0.3, q[2]: 0.1, u[0]: 1.0, u[1]: 0.2, u[2]: 0.3}
    )


@stranger
def weld_and_cyl() -> Model:
    q, u, x, v = me.dynamicsymbols("q u x v")
    m, g = sm.symbols("m g")
    wall = me.RigidBody("wall")
    y = me.System.from_newtonian(wall)
    a = me.RigidBody("a", mass=m)
    b = me.RigidBody("b", mass=m)
    a.inertia = (me.inertia(a.frame, 1, 2, 3), a.masscenter)
    b.inertia = (me.inertia(b.frame, 1, 2, 3), b.masscenter)
    y.add_joints(
        me.CylindricalJoint("c", wall, a, q, x, u, v, joint_axis=wall.z),
        me.WeldJoint("w", a, b, parent_point=0.3 * a.x + 0.1 * a.y),
    )
    y.apply_uniform_gravity(-g * (wall.y + wall.z))
    model = declared("Stranger", y, "m=1 g=9.81", {q: 0.2, x: 0.3, u: 0.4, v: 0.1})
    model.output_total_energy()
    return model


@stranger
def spherical_planar() -> Model:
    q = me.dynamicsymbols("q1:4")
    u = me.dynamicsymbols("u1:4")
    p = me.dynamicsymbols("p1:4")
    v = me.dynamicsymbols("v1:4")
    m, g = sm.symbols("m g")
    wall = me.RigidBody("wall")
    y = me.System.from_newtonian(wall)
    a = me.RigidBody("a", mass=m)
    b = me.RigidBody("b", mass=m)
    a.inertia = (me.inertia(a.frame, 1, 2, 3), a.masscenter)
    b.inertia = (me.inertia(b.frame, 1, 2, 3), b.masscenter)
    y.add_joints(
        me.PlanarJoint("p", wall, a, p[0], [p[1], p[2]], v[0], [v[1], v[2]]),
        me.SphericalJoint("s", a, b, list(q), list(u), child_point=0.4 * b.y),
    )
    y.apply_uniform_gravity(-g * wall.y)
    return declared("Stranger", y, "m=1 g=9.81", {**dict.fromkeys((*p, *q), 0.2), **dict.fromkeys((*v, *u), 0.1)})


@stranger
def inertia_about_other_point() -> Model:
    q, u = me.dynamicsymbols("q u")
    m, l, g, J = sm.symbols("m l g J")
    N, O = world()
    A = N.orientnew("A", "Axis", [q, N.z])
    A.set_ang_vel(N, u * N.z)
    G = O.locatenew("G", l * A.x)
    G.v2pt_theory(O, N, A)
    b = me.RigidBody("b", G, A, m, (me.inertia(A, J, J, J + m * l**2), O))
    k = me.KanesMethod(N, [q], [u], kd_eqs=[q.diff() - u], bodies=[b], forcelist=[(G, -m * g * N.y)])
    return declared("Stranger", k, "m=1 l=1 g=9.81 J=.2", {q: 0.3, u: 0.1})


@stranger
def inertia_in_n_frame_of_other() -> Model:
    q, u = me.dynamicsymbols("q u")
    m, l, g, J = sm.symbols("m l g J")
    N, O = world()
    A = N.orientnew("A", "Axis", [q, N.z])
    A.set_ang_vel(N, u * N.z)
    B = A.orientnew("B", "Axis", [0.4, A.x])
    G = O.locatenew("G", l * A.x)
    G.v2pt_theory(O, N, A)
    b = me.RigidBody("b", G, A, m, (me.inertia(B, J, 2 * J, 3 * J, 0.1 * J), G))
    k = me.KanesMethod(N, [q], [u], kd_eqs=[q.diff() - u], bodies=[b], forcelist=[(G, -m * g * N.y)])
    return declared("Stranger", k, "m=1 l=1 g=9.81 J=.2", {q: 0.3, u: 0.1})


@stranger
def control_state() -> Model:
    q, u, z = me.dynamicsymbols("q u z")
    m, l, g, kp, ki = sm.symbols("m l g k_p k_i")
    r = me.dynamicsymbols("ref")
    N, O = world()
    A = N.orientnew("A", "Axis", [q, N.z])
    A.set_ang_vel(N, u * N.z)
    G = O.locatenew("G", l * A.x)
    G.v2pt_theory(O, N, A)
    k = me.KanesMethod(
        N,
        [q],
        [u],
        kd_eqs=[q.diff() - u],
        bodies=[me.Particle("b", G, m)],
        forcelist=[(G, -m * g * N.y), (A, (kp * (r - q) + z) * N.z)],
    )
    model = declared("Stranger", k, "m=1 l=1 g=9.81 k_p=20 k_i=3", {q: 0.3, u: 0.1})
    model.input(r, 0.2)
    model.state(z, ki * (r - q), 0.1)
    return model


@stranger
def kdes_with_constant() -> Model:
    q, u = me.dynamicsymbols("q u")
    m, l, g, w = sm.symbols("m l g w")
    N, O = world()
    A = N.orientnew("A", "Axis", [q, N.z])
    A.set_ang_vel(N, (u + w) * N.z)
    G = O.locatenew("G", l * A.x)
    G.v2pt_theory(O, N, A)
    k = me.KanesMethod(
        N, [q], [u], kd_eqs=[q.diff() - u - w], bodies=[me.Particle("b", G, m)], forcelist=[(G, -m * g * N.y)]
    )
    return declared("Stranger", k, "m=1 l=1 g=9.81 w=.7", {q: 0.3, u: 0.1})


@stranger
def belt_nonholonomic_offset() -> Model:
    x, y, th = me.dynamicsymbols("x y th")
    vx, vy, w = me.dynamicsymbols("vx vy w")
    _m, _J, b = sm.symbols("m J b")
    N, O = world()
    A = N.orientnew("A", "Axis", [th, N.z])
    A.set_ang_vel(N, w * N.z)
    G = O.locatenew("G", x * N.x + y * N.y)
    G.set_vel(N, vx * N.x + vy * N.y)
    k = me.KanesMethod(
        N,
        [x, y, th],
        [vx, w],
        kd_eqs=[x.diff() - vx, y.diff() - vy, th.diff() - w],
        u_dependent=[vy],
        velocity_constraints=[G.vel(N).dot(A.y) - b],
        bodies=[body("b", G, A)],
        forcelist=[],
    )
    return declared("Stranger", k, "m=1 J=.4 b=.3", {x: 0.0, y: 0.0, th: 0.3, vx: 0.5, w: 0.6, vy: 0.0}, vy=1)


@stranger
def symbol_names() -> Model:
    lam, gam = me.dynamicsymbols("lambda gamma")
    m, I, E, S_ = sm.symbols("beta I E S")
    N, O = world()
    A = N.orientnew("A", "Axis", [lam, N.z])
    A.set_ang_vel(N, gam * N.z)
    G = O.locatenew("G", E * A.x)
    G.v2pt_theory(O, N, A)
    k = me.KanesMethod(
        N,
        [lam],
        [gam],
        kd_eqs=[lam.diff() - gam],
        bodies=[me.RigidBody("b", G, A, m, (me.inertia(A, I, I, I), G))],
        forcelist=[(G, -m * S_ * N.y)],
    )
    model = Model("Stranger", k)
    for p_, v in ((m, 1.0), (I, 0.2), (E, 0.5), (S_, 9.81)):
        model.parameter(p_, v)
    model.coordinate(lam, 0.3)
    model.speed(gam, 0.1)
    return model


@stranger
def duffing_and_lagrange_spring() -> Model:
    x = me.dynamicsymbols("x")
    m, k, k3 = sm.symbols("m k k3")
    N, O = world()
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, x.diff() * N.x)
    p = me.Particle("p", P, m)
    lm = me.LagrangesMethod(me.Lagrangian(N, p), [x], forcelist=[(P, (-k * x - k3 * x**3) * N.x)], bodies=[p], frame=N)
    model = declared("Stranger", lm, "m=1 k=4 k3=2", {x: 0.5, x.diff(): 0.1})
    model.output_total_energy()
    return model


@stranger
def lagrange_rheonomic() -> Model:
    q = me.dynamicsymbols("q")
    m, l, g, a, w = sm.symbols("m l g a w")
    N, O = world()
    A = N.orientnew("A", "Axis", [q, N.z])
    S_ = O.locatenew("S", a * sm.cos(w * T) * N.x)
    S_.set_vel(N, S_.pos_from(O).dt(N))
    P = S_.locatenew("P", -l * A.y)
    P.v2pt_theory(S_, N, A)
    p = me.Particle("p", P, m)
    p.potential_energy = m * g * P.pos_from(O).dot(N.y)
    lm = me.LagrangesMethod(me.Lagrangian(N, p), [q], bodies=[p], frame=N)
    return declared("Stranger", lm, "m=1 l=1 g=9.81 a=.1 w=3", {q: 0.3, q.diff(): 0.1})


@stranger
def torque_actuator_body_frames() -> Model:
    q, u = me.dynamicsymbols("q u")
    k, J, m = sm.symbols("k J m")
    N, O = world()
    par = me.RigidBody("par", frame=N, masscenter=O)
    A = me.RigidBody("A", mass=m)
    A.inertia = (me.inertia(A.frame, J, J, J), A.masscenter)
    y = me.System.from_newtonian(par)
    y.add_joints(me.PinJoint("j", par, A, q, u, joint_axis=N.x + N.y))
    y.add_actuators(me.TorqueActuator(-k * q, N.x + N.y, A, par))
    model = declared("Stranger", y, "m=1 J=.3 k=2", {q: 0.3, u: 0.1})
    model.output_total_energy()
    return model


@stranger
def obstacle_pathway() -> Model:
    q, u = me.dynamicsymbols("q u")
    m, l, g, k = sm.symbols("m l g k")
    N, O = world()
    A = N.orientnew("A", "Axis", [q, N.z])
    A.set_ang_vel(N, u * N.z)
    G = O.locatenew("G", l * A.x)
    G.v2pt_theory(O, N, A)
    p1 = O.locatenew("p1", l * N.x + l * N.y)
    p1.set_vel(N, 0)
    mid = O.locatenew("mid", l / 2 * A.x + 0.1 * A.y)
    mid.v2pt_theory(O, N, A)
    parts = Parts(
        frame=N,
        origin=O,
        q=[q],
        u=[u],
        kinematic_equations=[q.diff() - u],
        bodies=[me.Particle("p", G, m)],
        loads=[(G, -m * g * N.y)],
        actuators=[me.LinearSpring(k, me.ObstacleSetPathway(p1, mid, G), l)],
    )
    model = declared("Stranger", parts, "m=1 l=1 g=9.81 k=3", {q: 0.3, u: 0.1})
    model.output_total_energy()
    return model
