"""A planar arm of two links whose gripper picks up a load, carries it, and drops it; it bounces to rest on the floor.

Coordinates: ``q1`` turns the upper arm from ``N.x``, ``q2`` the forearm from the upper arm, counterclockwise about
``N.z``; ``x`` and ``y`` place the load, ``N.y`` is up and the floor is at y = 0. Both joints are driven to a planned
turn, which goes from the first pose to the second by half a cosine, by springs and dampers: the weight of the arm is
compensated, that of the load is not.

The gripper closes at ``t_grip``, if the load is within 20 mm of it, and opens at ``t_drop``. Closing is an impact
without restitution: hand and load go on together. From then on the load hangs in a pin at the hand.

Source: the mechanism is the project's own; latches and impacts as in F. Pfeiffer and C. Glocker, Multibody Dynamics
with Unilateral Contacts, 1996.
"""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Box, Impact, Latch, Model, Sphere

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 260 200" font-family="serif" font-size="15">
<rect width="260" height="200" fill="white"/>
<path d="M10 180H250" stroke="#333" stroke-width="3"/>
<path d="M60 180V100" stroke="#8a94a3" stroke-width="10"/>
<path d="M60 100L130 40L206 84" fill="none" stroke="#1f77b4" stroke-width="8" stroke-linejoin="round"/>
<circle cx="60" cy="100" r="7" fill="#333"/><circle cx="130" cy="40" r="7" fill="#333"/>
<path d="M194 104V88H218V104" fill="none" stroke="#333" stroke-width="4"/>
<rect x="197" y="92" width="18" height="18" fill="#d62728"/>
<path d="M206 114V172" stroke="#888" stroke-dasharray="4 4"/>
<path d="M60 100H112" stroke="#888" stroke-dasharray="4 4"/>
<path d="M96 100A36 36 0 0 0 87 77" fill="none" stroke="#d62728"/>
<path d="M160 14A40 40 0 0 1 165 60" fill="none" stroke="#2ca02c"/><path d="M130 40L160 14" stroke="#888"
 stroke-dasharray="4 4"/>
<g font-style="italic"><text x="100" y="88" fill="#d62728">q</text><text x="108" y="92" font-size="11">1</text>
<text x="174" y="36" fill="#2ca02c">q</text><text x="182" y="40" font-size="11">2</text>
<text x="212" y="150">y</text><text x="222" y="106">m</text></g>
</svg>
"""


def gripper() -> Model:
    """The arm with its hand above the load, at rest."""
    q1, q2, x, y, u1, u2, vx, vy = me.dynamicsymbols("q1 q2 x y u1 u2 vx vy")
    t = me.dynamicsymbols._t  # noqa: SLF001  (the symbol of time that SymPy mechanics uses)
    M, l, m, r, g, k, d, T = sm.symbols("M l m r g k d T", positive=True)
    height, grip, drop = sm.symbols("height t_grip t_drop", positive=True)
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    A = N.orientnew("A", "Axis", (q1, N.z))
    B = N.orientnew("B", "Axis", (q1 + q2, N.z))
    A.set_ang_vel(N, u1 * N.z)
    B.set_ang_vel(N, (u1 + u2) * N.z)
    S = O.locatenew("S", height * N.y)
    S.set_vel(N, 0)
    E = S.locatenew("E", l * A.x)
    E.v2pt_theory(S, N, A)
    H = E.locatenew("H", l * B.x)
    H.v2pt_theory(E, N, B)
    C, D = S.locatenew("C", l / 2 * A.x), E.locatenew("D", l / 2 * B.x)
    C.v2pt_theory(S, N, A)
    D.v2pt_theory(E, N, B)
    L = O.locatenew("L", x * N.x + y * N.y)
    L.set_vel(N, vx * N.x + vy * N.y)
    J = M * l**2 / 12
    upper = me.RigidBody("upper", C, A, M, (me.inertia(A, 0, 0, J), C))
    forearm = me.RigidBody("forearm", D, B, M, (me.inertia(B, 0, 0, J), D))
    load = me.Particle("load", L, m)

    first, second = (sm.Rational(1, 2), -sm.Rational(7, 4)), (sm.Rational(11, 10), -sm.Rational(3, 2))
    part = sm.Piecewise((0, t <= grip), ((1 - sm.cos(sm.pi * (t - grip) / T)) / 2, t <= grip + T), (1, True))
    weights = [M * g * l * (3 * sm.cos(q1) + sm.cos(q1 + q2)) / 2, M * g * l * sm.cos(q1 + q2) / 2]
    torques = [
        k * (a + part * (b - a) - q) - d * u + weight
        for a, b, q, u, weight in zip(first, second, (q1, q2), (u1, u2), weights, strict=True)
    ]
    loads = [(A, (torques[0] - torques[1]) * N.z), (B, torques[1] * N.z)]
    loads += [(C, -M * g * N.y), (D, -M * g * N.y), (L, -m * g * N.y)]
    rates = [q1.diff() - u1, q2.diff() - u2, x.diff() - vx, y.diff() - vy]
    kane = me.KanesMethod(N, [q1, q2, x, y], [u1, u2, vx, vy], rates, bodies=[upper, forearm, load], forcelist=loads)

    model = Model("Gripper", kane, description="An arm that picks up a load and drops it", diagram=DIAGRAM)
    for symbol, value, unit, words in (
        (M, 2.0, "kg", "mass of each link, uniform"),
        (l, 0.5, "m", "length of each link"),
        (m, 1.0, "kg", "mass of the load"),
        (r, 0.05, "m", "half the height of the load"),
        (height, 0.29, "m", "of the shoulder above the floor"),
        (k, 200.0, "N.m/rad", "stiffness of the drives"),
        (d, 12.0, "N.m.s/rad", "damping of the drives"),
        (T, 0.6, "s", "time from the first pose to the second"),
        (grip, 0.1, "s", "when the gripper closes and the arm goes"),
        (drop, 0.8, "s", "when the gripper opens"),
        (g, 9.81, "m/s2", "acceleration of gravity"),
    ):
        # what lies on the floor cannot become thinner meanwhile
        model.parameter(symbol, value, unit, min=1e-6, tunable=symbol != r, description=words)
    model.coordinate(q1, 0.52, "rad", description="turn of the upper arm from N.x")
    model.coordinate(q2, -1.75, "rad", description="turn of the forearm from the upper arm")
    model.coordinate(x, 0.59, "m", description="load, from the shoulder along N.x")
    model.coordinate(y, 0.05, "m", description="middle of the load above the floor")
    for speed, unit, words in (
        (u1, "rad/s", "rate of q1"),
        (u2, "rad/s", "rate of q2"),
        (vx, "m/s", "rate of x"),
        (vy, "m/s", "rate of y"),
    ):
        model.speed(speed, 0.0, unit, description=words)
    model.add(Latch("grip", Latch.point(H, L, N), close=t >= grip, open=t >= drop, within=0.02))
    model.add(Impact("floor", y - r, restitution=0.4, rest_below=0.05, starts_resting=True))
    model.output_position("hand", H)
    for frame, start, end in ((A, S, E), (B, E, H)):
        model.link(frame, start, end, radius=0.03)
    model.visual(load, Box(0.1, 0.1, 0.1), color="#d62728")
    model.visual(upper, Sphere(0.04), at=S.locatenew("shoulder", 0 * N.x), color="#333333")
    model.visual(forearm, Sphere(0.03), at=E.locatenew("elbow", 0 * N.x), color="#333333")
    model.visual(N, Box(1.2, 0.01, 0.4), at=O.locatenew("floor", 0.4 * N.x - 0.005 * N.y), color="#8a94a3")
    model.experiment(stop=1.4, step=0.02, tolerance=1e-8)
    return model
