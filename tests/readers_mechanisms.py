"""Mechanisms as readers of textbooks write them: constraints left in, loads lumped, frames turned for comfort."""

from __future__ import annotations

import sympy as sm
from strangers import T, body, declared, stranger, world
from sympy.physics import mechanics as me

from mb2fmu import Model


@stranger
def two_particles_on_one_string() -> Model:
    """One slides on a table, the other hangs through a hole: r − y = l, kept as a constraint of Lagrange's."""
    r, phi, y = me.dynamicsymbols("r phi y")
    m, m2, l, g = sm.symbols("m m2 l g")
    N, O = world()
    A = N.orientnew("A", "Axis", (phi, N.y))
    P, Q = O.locatenew("P", r * A.x), O.locatenew("Q", y * N.y)
    for point in (P, Q):
        point.set_vel(N, point.pos_from(O).dt(N))
    hanging = me.Particle("hanging", Q, m2)
    hanging.potential_energy = m2 * g * y
    L = me.Lagrangian(N, me.Particle("sliding", P, m), hanging)
    method = me.LagrangesMethod(L, [r, phi, y], hol_coneqs=[r - y - l], frame=N)
    method.form_lagranges_equations()
    starts = {r: 0.6, phi: 0.0, y: -0.4, r.diff(): 0.0, phi.diff(): 2.0, y.diff(): 0.0}
    return declared("String", method, "m=0.8 m2=0.5 l=1.0 g=9.81", starts, y=1, **{str(y.diff()): 1})


@stranger
def rolling_disc_with_friction() -> Model:
    """A disc that rolls upright on a slope, no slip as x = r q; air drag and a moment of rolling friction."""
    x, q, v, w = me.dynamicsymbols("x q v w")
    m, J, r, g, tilt, c, d = sm.symbols("m J r g tilt c d")
    N, O = world()
    ground = N.orientnew("ground", "Axis", (-tilt, N.z))
    A = ground.orientnew("A", "Axis", (-q, ground.z))
    A.set_ang_vel(ground, -w * ground.z)
    A.set_ang_vel(N, -w * ground.z)
    G = O.locatenew("G", x * ground.x + r * ground.y)
    G.set_vel(N, v * ground.x)
    disc = me.RigidBody("disc", G, A, m, (me.inertia(A, 0, 0, J), G))
    loads = [(G, -m * g * N.y - c * v * ground.x), (A, d * w * ground.z)]
    kane = me.KanesMethod(
        N, [x], [v], [x.diff() - v, q.diff() - w], q_dependent=[q], u_dependent=[w],
        configuration_constraints=[x - r * q], velocity_constraints=[v - r * w], bodies=[disc], forcelist=loads,
    )  # fmt: skip
    starts = {x: 0.0, q: 0.0, v: 0.1, w: 0.1 / 0.3}
    return declared("Disc", kane, "m=1.2 J=0.05 r=0.3 g=9.81 tilt=0.2 c=0.4 d=0.01", starts, q=1, w=1)


@stranger
def weight_and_tension_in_one_vector() -> Model:
    """A pendulum whose string's tension is asked for by an auxiliary speed, lumped with the weight."""
    q, u, ua, S = me.dynamicsymbols("q u ua S")
    m, l, g = sm.symbols("m l g")
    N, O = world()
    A = N.orientnew("A", "Axis", (q, N.z))
    A.set_ang_vel(N, u * N.z)
    P = O.locatenew("P", -l * A.y)
    P.set_vel(N, u * l * A.x + ua * A.y)
    kane = me.KanesMethod(
        N, [q], [u], [q.diff() - u], u_auxiliary=[ua], bodies=[me.Particle("bob", P, m)],
        forcelist=[(P, -m * g * N.y + S * A.y)],
    )  # fmt: skip
    kane.kanes_equations()
    model = declared("Tension", kane, "m=0.7 l=0.9 g=9.81", {q: 0.8, u: 0.0})
    model.constraint_force(S, "N")
    model.output("tension", S, "N")
    return model


@stranger
def springs_as_torques_of_lagrange() -> Model:
    """A double pendulum whose springs are generalized torques on its links, none of them an energy."""
    q1, q2 = me.dynamicsymbols("q1 q2")
    l, k = sm.symbols("l k")
    N, O = world()
    A, B = N.orientnew("A", "Axis", (q1, N.z)), N.orientnew("B", "Axis", (q2, N.z))
    P = O.locatenew("P", l * A.x)
    Q = P.locatenew("Q", l / 2 * B.x)
    for point in (P, Q):
        point.set_vel(N, point.pos_from(O).dt(N))
    links = [body("one", P, A), body("two", Q, B)]
    loads = [(A, (-k * q1 + k * (q2 - q1)) * N.z), (B, -k * (q2 - q1) * N.z)]
    method = me.LagrangesMethod(me.Lagrangian(N, *links), [q1, q2], forcelist=loads, frame=N)
    starts = {q1: 0.4, q2: -0.3, q1.diff(): 0.0, q2.diff(): 0.5}
    return declared("Torques", method, "m=0.6 J=0.05 l=0.5 k=3", starts)


@stranger
def bead_on_a_hoop_that_turns() -> Model:
    """The hoop's angle is w t, written into its frame."""
    q, u = me.dynamicsymbols("q u")
    m, r, g, w, c = sm.symbols("m r g w c")
    N, O = world()
    H = N.orientnew("H", "Axis", (w * T, N.y))
    A = H.orientnew("A", "Axis", (q, H.z))
    A.set_ang_vel(H, u * H.z)
    P = O.locatenew("P", -r * A.y)
    P.v2pt_theory(O, N, A)
    loads = [(P, -m * g * N.y - c * u * r * A.x)]
    kane = me.KanesMethod(N, [q], [u], [q.diff() - u], bodies=[me.Particle("bead", P, m)], forcelist=loads)
    return declared("Hoop", kane, "m=0.2 r=0.5 g=9.81 w=6 c=0.05", {q: 0.3, u: 0.0})


@stranger
def spherical_pendulum_by_dependent_coordinates() -> Model:
    """x, y free, z from the length: Kane with one dependent coordinate and speed, starting below."""
    x, y, z, vx, vy, vz = me.dynamicsymbols("x y z v_x v_y v_z")
    m, l, g = sm.symbols("m l g")
    N, O = world()
    P = O.locatenew("P", x * N.x + y * N.y + z * N.z)
    P.set_vel(N, vx * N.x + vy * N.y + vz * N.z)
    phi = x**2 + y**2 + z**2 - l**2
    rate = 2 * (x * vx + y * vy + z * vz)
    kane = me.KanesMethod(
        N, [x, y], [vx, vy], [x.diff() - vx, y.diff() - vy, z.diff() - vz], q_dependent=[z], u_dependent=[vz],
        configuration_constraints=[phi], velocity_constraints=[rate], bodies=[me.Particle("bob", P, m)],
        forcelist=[(P, -m * g * N.z)],
    )  # fmt: skip
    starts = {x: 0.3, y: 0.0, z: -0.954, vx: 0.0, vy: 0.8, vz: 0.0}
    return declared("Spherical", kane, "m=1 l=1 g=9.81", starts, z=1, v_z=1)


@stranger
def elastic_pendulum_with_its_spring_along_the_string() -> Model:
    """Polar coordinates; the spring's force with its cubic part and the weight are one vector."""
    r, q, v, u = me.dynamicsymbols("r q v u")
    m, l, g, k, k3 = sm.symbols("m l g k k3")
    N, O = world()
    A = N.orientnew("A", "Axis", (q, N.z))
    A.set_ang_vel(N, u * N.z)
    P = O.locatenew("P", -r * A.y)
    P.set_vel(N, -v * A.y + r * u * A.x)
    e = r - l
    loads = [(P, (k * e + k3 * e**3) * A.y - m * g * N.y)]
    kane = me.KanesMethod(
        N, [r, q], [v, u], [r.diff() - v, q.diff() - u], bodies=[me.Particle("b", P, m)], forcelist=loads
    )
    return declared("Elastic", kane, "m=0.5 l=0.6 g=9.81 k=40 k3=300", {r: 0.7, q: 0.6, v: 0.0, u: 0.0})


@stranger
def inclined_block_with_a_pendulum_and_a_turned_ground() -> Model:
    """A block on a slope carries a pendulum; everything is written in the slope's frame, gravity is turned into it."""
    s, q, v, u = me.dynamicsymbols("s q v u")
    m, m2, l, g, tilt, k, c = sm.symbols("m m2 l g tilt k c")
    N, O = world()
    A = N.orientnew("A", "Axis", (q, N.z))
    A.set_ang_vel(N, u * N.z)
    B = O.locatenew("B", s * N.x)
    B.set_vel(N, v * N.x)
    P = B.locatenew("P", l * A.x)
    P.v2pt_theory(B, N, A)
    down = -sm.sin(tilt) * N.x - sm.cos(tilt) * N.y
    loads = [(B, m * g * down - (k * s + c * v) * N.x), (P, m2 * g * down)]
    bodies = [me.Particle("block", B, m), me.Particle("bob", P, m2)]
    kane = me.KanesMethod(N, [s, q], [v, u], [s.diff() - v, q.diff() - u], bodies=bodies, forcelist=loads)
    starts = {s: 0.1, q: -1.2, v: 0.0, u: 0.0}
    return declared("Slope", kane, "m=2 m2=0.5 l=0.4 g=9.81 tilt=0.3 k=60 c=0.5", starts)
