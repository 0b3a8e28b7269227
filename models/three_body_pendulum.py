"""Two pinned rods and a mass that slides on the second, three springs: a KanesMethod with published numbers.

Coordinates: ``q1`` turns rod A about ``N.z`` (axis of the pin in O, horizontal), ``q2`` turns rod B about ``A.x`` (the
line of rod A; B is pinned in its middle to the end of A), ``q3`` is the place of the mass Q along ``B.y`` from the
middle of rod B. Gravity acts along ``N.x``, so rod A hangs along it for q1 = 0; the rods are perpendicular to each
other. Springs resist each coordinate: ``k_t`` q1 and ``k_t`` q2 as torques, ``k_l`` q3 as a force.

Numbers: at q = (25°, 5°, 0.1 m), u = (0.1, 2.2, 0.3), g = 9.81, k_l = 2, k_t = 0.01, l = 0.6, m = 1 the accelerations
are u' = (-7.460564271676210, -1.065258623885586, 0.01418834419402813). These are the start values here.

Source: J. K. Moore, Learn Multibody Dynamics, chapters "Unconstrained Equations of Motion" and "Unconstrained Equations
of Motion with the TMT Method".
"""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Model

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 320 260" font-family="serif" font-size="15">
<rect width="320" height="260" fill="white"/>
<path d="M80 30H180" stroke="#333" stroke-width="3"/>
<path d="M130 30V150" stroke="#888" stroke-dasharray="5 4"/>
<path d="M130 30L175 160" stroke="#1f77b4" stroke-width="7" stroke-linecap="round"/>
<path d="M75 190L275 130" stroke="#2ca02c" stroke-width="7" stroke-linecap="round"/>
<path d="M175 160L190 203" stroke="#888" stroke-dasharray="5 4"/><path d="M194 212l-8 -8l8 -2z" fill="#888"/>
<circle cx="130" cy="30" r="5" fill="white" stroke="#333" stroke-width="2"/>
<circle cx="175" cy="160" r="5" fill="white" stroke="#333" stroke-width="2"/>
<circle cx="235" cy="142" r="11" fill="#ff7f0e" stroke="#333"/>
<path d="M130 95A65 65 0 0 0 151 91" fill="none" stroke="#d62728" stroke-width="2"/>
<path d="M157 88l-9 -1l4 8z" fill="#d62728"/>
<path d="M171 192A12 6 0 1 0 200 190" fill="none" stroke="#d62728" stroke-width="2"/>
<path d="M201 184l4 8l-8 1z" fill="#d62728"/>
<path d="M169 142L222 126" stroke="#d62728" stroke-width="2"/><path d="M231 123l-12 -1l3 8z" fill="#d62728"/>
<g font-style="italic"><text x="136" y="114" fill="#d62728">q₁</text><text x="206" y="208" fill="#d62728">q₂</text>
<text x="190" y="122" fill="#d62728">q₃</text><text x="162" y="80">A: m, l</text><text x="62" y="214">B: m, l</text>
<text x="250" y="162">Q: m/4</text><text x="112" y="22">O</text><text x="34" y="118">g</text></g>
<text x="198" y="228" font-size="12">A.x</text><text x="280" y="128" font-size="12">B.y</text>
<path d="M24 90V126" stroke="#333" stroke-width="2"/><path d="M24 132l-5 -10h10z" fill="#333"/>
<path d="M260 30H292M260 30V62" stroke="#555" fill="none"/>
<text x="296" y="35" font-size="12">N.y</text><text x="252" y="76" font-size="12">N.x</text>
</svg>
"""


def three_body_pendulum() -> Model:
    """The mechanism at the state for which numbers are published."""
    t = me.dynamicsymbols._t  # noqa: SLF001  (the symbol of time that SymPy mechanics uses)
    q = q1, q2, q3 = me.dynamicsymbols("q1 q2 q3")
    u = u1, u2, u3 = me.dynamicsymbols("u1 u2 u3")
    m, g, kt, kl, length, inertia = sm.symbols("m g k_t k_l l I", positive=True)

    N, A, B = (me.ReferenceFrame(name) for name in "NAB")
    A.orient_axis(N, N.z, q1)
    B.orient_axis(A, A.x, q2)
    A.set_ang_vel(N, u1 * N.z)
    B.set_ang_vel(A, u2 * A.x)
    O = me.Point("O")
    O.set_vel(N, 0)
    Ao, Bo = O.locatenew("Ao", length / 2 * A.x), O.locatenew("Bo", length * A.x)
    Ao.v2pt_theory(O, N, A)
    Bo.v2pt_theory(O, N, A)
    Q = Bo.locatenew("Q", q3 * B.y)
    Q.set_vel(B, u3 * B.y)
    Q.v1pt_theory(Bo, N, B)

    rod_a = me.RigidBody("A", Ao, A, m, (me.inertia(A, 0, inertia, inertia), Ao))
    rod_b = me.RigidBody("B", Bo, B, m, (me.inertia(B, inertia, 0, inertia), Bo))
    mass = me.Particle("Q", Q, m / 4)
    loads = [
        me.Force(Ao, m * g * N.x),
        me.Force(Bo, m * g * N.x + kl * q3 * B.y),
        me.Force(Q, m / 4 * g * N.x - kl * q3 * B.y),
        me.Torque(A, -kt * q1 * N.z + kt * q2 * A.x),
        me.Torque(B, -kt * q2 * A.x),
    ]
    kinematics = [speed - coordinate.diff(t) for coordinate, speed in zip(q, u, strict=True)]
    kane = me.KanesMethod(N, q, u, kinematics)
    kane.kanes_equations([rod_a, rod_b, mass], loads)

    model = Model("ThreeBodyPendulum", kane, description="Two rods, a sliding mass, three springs", diagram=DIAGRAM)
    model.parameter(m, 1.0, "kg", min=1e-6, description="mass of each rod; the sliding mass has a quarter of it")
    model.parameter(length, 0.6, "m", min=1e-6, description="length of each rod")
    model.parameter(inertia, m * length**2 / 12, "kg.m2", description="central inertia of a rod across its length")
    model.parameter(g, 9.81, "m/s2", min=0.0, description="acceleration of gravity, along N.x")
    model.parameter(kt, 0.01, "N.m/rad", min=0.0, description="stiffness of the torsion springs")
    model.parameter(kl, 2.0, "N/m", min=0.0, description="stiffness of the spring along rod B")
    deg = float(sm.pi / 180)
    model.coordinate(q1, 25 * deg, "rad", display_unit="deg", description="angle of rod A about the pin in O")
    model.coordinate(q2, 5 * deg, "rad", display_unit="deg", description="angle of rod B about the line of rod A")
    model.coordinate(q3, 0.1, "m", description="place of the sliding mass on rod B from its middle")
    model.speed(u1, 0.1, "rad/s", description="q1'")
    model.speed(u2, 2.2, "rad/s", description="q2'")
    model.speed(u3, 0.3, "m/s", description="q3'")
    # The springs are given as bare loads, so their energy has to be said.
    height = -(m * Ao.pos_from(O) + m * Bo.pos_from(O) + m / 4 * Q.pos_from(O)).dot(N.x)
    model.potential_energy(g * height + kt * (q1**2 + q2**2) / 2 + kl * q3**2 / 2)
    model.output_position("slider", Q)
    model.output_acceleration("slider_acceleration", Q)
    model.output_kinetic_energy()
    model.output_potential_energy()
    model.output_total_energy()
    model.experiment(stop=5.0, step=0.01, tolerance=1e-8)
    return model
