"""Two rods that turn about different axes, with torsion springs: the mechanics in parts.

Coordinates: ``q1`` turns rod A about ``N.z`` (horizontal axis of the pin in O), ``q2`` turns rod B about ``A.x``, the
line of rod A; rod B is pinned in its middle to the end of rod A and lies along ``B.y``. Gravity acts along ``N.x``,
so rod A hangs along it for q1 = 0. A torsion spring of stiffness ``k`` resists each coordinate.

Source: J. K. Moore, Learn Multibody Dynamics, chapter "Generalized Forces" (two rods in three dimensions); method of
T. R. Kane, D. A. Levinson, Dynamics: Theory and Applications, McGraw-Hill 1985, pp. 99-124.
"""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Model, Parts

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 320 260" font-family="serif" font-size="15">
<rect width="320" height="260" fill="white"/>
<path d="M80 30H180" stroke="#333" stroke-width="3"/>
<path d="M130 30V150" stroke="#888" stroke-dasharray="5 4"/>
<path d="M130 30L175 160" stroke="#1f77b4" stroke-width="7" stroke-linecap="round"/>
<path d="M75 190L275 130" stroke="#2ca02c" stroke-width="7" stroke-linecap="round"/>
<path d="M175 160L190 203" stroke="#888" stroke-dasharray="5 4"/><path d="M194 212l-8 -8l8 -2z" fill="#888"/>
<circle cx="130" cy="30" r="5" fill="white" stroke="#333" stroke-width="2"/>
<circle cx="175" cy="160" r="5" fill="white" stroke="#333" stroke-width="2"/>
<path d="M130 95A65 65 0 0 0 151 91" fill="none" stroke="#d62728" stroke-width="2"/>
<path d="M157 88l-9 -1l4 8z" fill="#d62728"/>
<path d="M171 192A12 6 0 1 0 200 190" fill="none" stroke="#d62728" stroke-width="2"/>
<path d="M201 184l4 8l-8 1z" fill="#d62728"/>
<g font-style="italic"><text x="136" y="114" fill="#d62728">q₁</text><text x="206" y="208" fill="#d62728">q₂</text>
<text x="162" y="80">A: m, l</text><text x="62" y="214">B: m, l</text>
<text x="112" y="22">O</text><text x="34" y="118">g</text></g>
<text x="198" y="228" font-size="12">A.x</text><text x="280" y="128" font-size="12">B.y</text>
<path d="M24 90V126" stroke="#333" stroke-width="2"/><path d="M24 132l-5 -10h10z" fill="#333"/>
<path d="M260 30H292M260 30V62" stroke="#555" fill="none"/>
<text x="296" y="35" font-size="12">N.y</text><text x="252" y="76" font-size="12">N.x</text>
</svg>
"""


def two_rods() -> Model:
    """The rods, released with rod A at 40° and rod B spinning slowly."""
    t = me.dynamicsymbols._t  # noqa: SLF001  (the symbol of time that SymPy mechanics uses)
    q1, q2, u1, u2 = me.dynamicsymbols("q1 q2 u1 u2")
    m, g, k, length, inertia = sm.symbols("m g k l I", positive=True)

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
    tip = Bo.locatenew("tip", length / 2 * B.y)
    tip.v2pt_theory(Bo, N, B)
    rod_a = me.RigidBody("A", Ao, A, m, (me.inertia(A, 0, inertia, inertia), Ao))
    rod_b = me.RigidBody("B", Bo, B, m, (me.inertia(B, inertia, 0, inertia), Bo))
    spring_b = me.TorqueActuator(-k * q2, A.x, B, A)
    parts = Parts(
        frame=N,
        origin=O,
        q=(q1, q2),
        u=(u1, u2),
        kinematic_equations=(u1 - q1.diff(t), u2 - q2.diff(t)),
        bodies=(rod_a, rod_b),
        loads=(me.Force(Ao, m * g * N.x), me.Force(Bo, m * g * N.x)),
        actuators=(me.TorqueActuator(-k * q1, N.z, A, N), spring_b),
    )

    model = Model("TwoRods", parts, description="Two rods about different axes, torsion springs", diagram=DIAGRAM)
    model.parameter(m, 1.0, "kg", min=1e-6, description="mass of each rod")
    model.parameter(length, 0.6, "m", min=1e-6, description="length of each rod")
    model.parameter(inertia, m * length**2 / 12, "kg.m2", description="central inertia of a rod across its length")
    model.parameter(g, 9.81, "m/s2", min=0.0, description="acceleration of gravity, along N.x")
    model.parameter(k, 0.5, "N.m/rad", min=0.0, description="stiffness of both torsion springs")
    model.coordinate(q1, 40 * float(sm.pi) / 180, "rad", display_unit="deg", description="angle of rod A about the pin")
    model.coordinate(q2, 0.3, "rad", display_unit="deg", description="angle of rod B about the line of rod A")
    model.speed(u1, 0.0, "rad/s", description="angular speed of rod A")
    model.speed(u2, 2.0, "rad/s", description="angular speed of rod B relative to rod A")
    height = -(Ao.pos_from(O) + Bo.pos_from(O)).dot(N.x)
    model.potential_energy(m * g * height + k * (q1**2 + q2**2) / 2)
    model.output_position("tip", tip)
    model.output_angular_velocity("rod_b", B, expressed_in=B)
    model.output_force("spring_b_torque", spring_b, unit="N.m")
    model.output_total_energy()
    model.experiment(stop=10.0, step=0.01, tolerance=1e-8)
    return model
