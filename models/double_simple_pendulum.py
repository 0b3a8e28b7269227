"""Two particles on massless rods; the tensions of the rods are brought to light by auxiliary speeds.

Coordinates: ``q1`` and ``q2`` are the angles of the rods from the downward vertical, positive counter-clockwise about
``N.z``; both are absolute. ``N.x`` points to the right, ``N.y`` up. The speeds are their rates. The auxiliary speeds
``w1`` and ``w2`` would lengthen the rods; they are zero, and to each belongs the tension of its rod.

Forces on the particles: R1 = -m1 g N.y + T1 A.y - T2 B.y and R2 = -m2 g N.y + T2 B.y, with A.y and B.y from the lower
to the upper end of a rod. The tensions contribute to no generalized active force of q1 and q2:
F_1 = -(m1 + m2) g l sin(q1), F_2 = -m2 g l sin(q2).

Source: J. K. Moore, Learn Multibody Dynamics, chapters "Generalized Forces" (double simple pendulum) and "Exposing
Noncontributing Forces"; T. R. Kane, D. A. Levinson, Dynamics: Theory and Applications, McGraw-Hill 1985, sect. 4.9.
"""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Model, Sphere

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 260 240" font-family="serif" font-size="15">
<rect width="260" height="240" fill="white"/>
<path d="M50 30H150" stroke="#333" stroke-width="3"/>
<g stroke="#888" stroke-dasharray="5 4"><path d="M100 30V120"/><path d="M145 110V190"/></g>
<path d="M100 30L145 110" stroke="#1f77b4" stroke-width="4"/>
<path d="M145 110L210 175" stroke="#2ca02c" stroke-width="4"/>
<circle cx="100" cy="30" r="5" fill="white" stroke="#333" stroke-width="2"/>
<circle cx="145" cy="110" r="10" fill="#1f77b4"/><circle cx="210" cy="175" r="10" fill="#2ca02c"/>
<g fill="none" stroke="#d62728" stroke-width="2"><path d="M100 92A62 62 0 0 0 130 84"/>
<path d="M145 168A58 58 0 0 0 186 151"/></g>
<g font-style="italic" fill="#d62728"><text x="104" y="112">q₁</text><text x="158" y="186">q₂</text></g>
<g stroke="#9467bd" stroke-width="2"><path d="M155 105L140 78M200 180L178 158"/></g>
<g fill="#9467bd"><path d="M136 71l1 11l7 -4z"/><path d="M173 153l4 10l6 -6z"/></g>
<g font-style="italic" fill="#9467bd"><text x="152" y="84">T₁</text><text x="166" y="216">T₂</text></g>
<g font-style="italic"><text x="98" y="70">l</text><text x="186" y="140">l</text>
<text x="164" y="112">m₁</text><text x="226" y="182">m₂</text><text x="26" y="130">g</text></g>
<path d="M44 104V140" stroke="#333" stroke-width="2"/><path d="M44 146l-5 -10h10z" fill="#333"/>
<path d="M20 220H52M20 220V188" stroke="#555" fill="none"/>
<text x="56" y="225" font-size="12">N.x</text><text x="12" y="183" font-size="12">N.y</text>
</svg>
"""


def double_simple_pendulum() -> Model:
    """The pendulum, released from rest with its rods at 60° and -30°."""
    t = me.dynamicsymbols._t  # noqa: SLF001  (the symbol of time that SymPy mechanics uses)
    q1, q2, u1, u2, w1, w2, T1, T2 = me.dynamicsymbols("q1 q2 u1 u2 w1 w2 T1 T2")
    m1, m2, l, g = sm.symbols("m1 m2 l g", positive=True)

    N, A, B = (me.ReferenceFrame(name) for name in "NAB")
    for frame, angle, speed in ((A, q1, u1), (B, q2, u2)):
        frame.orient_axis(N, N.z, angle)
        frame.set_ang_vel(N, speed * N.z)
    O = me.Point("O")
    O.set_vel(N, 0)
    P1 = O.locatenew("P1", -l * A.y)
    P1.set_vel(N, l * u1 * A.x + w1 * A.y)
    P2 = P1.locatenew("P2", -l * B.y)
    P2.set_vel(N, P1.vel(N) + l * u2 * B.x + w2 * B.y)
    particles = [me.Particle("particle1", P1, m1), me.Particle("particle2", P2, m2)]
    forces = [(P1, -m1 * g * N.y + T1 * A.y - T2 * B.y), (P2, -m2 * g * N.y + T2 * B.y)]
    kane = me.KanesMethod(N, [q1, q2], [u1, u2], [u1 - q1.diff(t), u2 - q2.diff(t)], u_auxiliary=[w1, w2])
    kane.kanes_equations(particles, forces)

    what = "Two particles on massless rods, with the rods' tensions"
    model = Model("DoubleSimplePendulum", kane, description=what, diagram=DIAGRAM)
    model.parameter(m1, 1.0, "kg", min=1e-6, description="mass of the upper particle")
    model.parameter(m2, 0.5, "kg", min=1e-6, description="mass of the lower particle")
    model.parameter(l, 0.5, "m", min=1e-6, description="length of each rod")
    model.parameter(g, 9.81, "m/s2", min=0.0, description="acceleration of gravity, along -N.y")
    angles = ("angle of the upper rod from the downward vertical", "angle of the lower rod from the downward vertical")
    for symbol, degrees, text in zip((q1, q2), (60, -30), angles, strict=True):
        model.coordinate(symbol, degrees * float(sm.pi) / 180, "rad", display_unit="deg", description=text)
    model.speed(u1, 0.0, "rad/s", description="angular speed of the upper rod")
    model.speed(u2, 0.0, "rad/s", description="angular speed of the lower rod")
    for tension, name in ((T1, "upper"), (T2, "lower")):
        model.constraint_force(tension, "N", description=f"tension of the {name} rod")
        model.output(f"tension_{name}", tension, "N", description=f"tension of the {name} rod; negative: pressed")
    model.potential_energy(-g * (m1 * l * sm.cos(q1) + m2 * l * (sm.cos(q1) + sm.cos(q2))))
    model.output_position("end", P2)
    model.output_total_energy()
    for frame, start, end, particle in ((A, O, P1, particles[0]), (B, P1, P2, particles[1])):
        model.link(frame, start, end, radius=0.01)
        model.visual(particle, Sphere(0.04))
    model.trace(P2)
    model.experiment(stop=5.0, step=0.01, tolerance=1e-8)
    return model
