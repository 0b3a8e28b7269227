"""Three particles on massless rods, one below the other, in a plane: generalized forces of the textbook.

Coordinates: ``q1``, ``q2``, ``q3`` are the angles of the rods from the downward vertical, positive counter-clockwise
about ``N.z``; each is absolute. ``N.x`` points to the right, ``N.y`` up. The speeds are their rates.

Generalized active forces, with M_r the masses at the end of rod r and below it: F_r = -M_r g l_r sin(q_r). Generalized
inertia forces: F_r* = -sum over s of M_max(r, s) l_r l_s (cos(q_r - q_s) u_s' + sin(q_r - q_s) u_s²).

Source: J. K. Moore, Learn Multibody Dynamics, chapter "Generalized Forces" (3 link planar simple pendulum).
"""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Model, Sphere

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 260 260" font-family="serif" font-size="15">
<rect width="260" height="260" fill="white"/>
<path d="M50 24H130" stroke="#333" stroke-width="3"/>
<g stroke="#888" stroke-dasharray="5 4"><path d="M90 24V96"/><path d="M125 95V160"/><path d="M185 150V215"/></g>
<g stroke-width="4"><path d="M90 24L125 95" stroke="#1f77b4"/><path d="M125 95L185 150" stroke="#2ca02c"/>
<path d="M185 150L200 228" stroke="#ff7f0e"/></g>
<circle cx="90" cy="24" r="5" fill="white" stroke="#333" stroke-width="2"/>
<circle cx="125" cy="95" r="9" fill="#1f77b4"/><circle cx="185" cy="150" r="9" fill="#2ca02c"/>
<circle cx="200" cy="228" r="9" fill="#ff7f0e"/>
<g fill="none" stroke="#d62728" stroke-width="2"><path d="M90 76A52 52 0 0 0 113 71"/>
<path d="M125 140A45 45 0 0 0 158 125"/>
<path d="M185 200A50 50 0 0 0 194 199"/></g>
<g font-style="italic" fill="#d62728"><text x="94" y="96">q₁</text><text x="136" y="160">q₂</text>
<text x="172" y="222">q₃</text></g>
<g font-style="italic"><text x="114" y="56">l₁</text><text x="160" y="118">l₂</text><text x="202" y="190">l₃</text>
<text x="140" y="94">m₁</text>
<text x="200" y="150">m₂</text><text x="216" y="232">m₃</text><text x="22" y="152">g</text></g>
<path d="M40 130V166" stroke="#333" stroke-width="2"/><path d="M40 172l-5 -10h10z" fill="#333"/>
<path d="M20 240H52M20 240V208" stroke="#555" fill="none"/>
<text x="56" y="245" font-size="12">N.x</text><text x="12" y="203" font-size="12">N.y</text>
</svg>
"""


def triple_pendulum() -> Model:
    """The pendulum, released from rest with its rods at 30°, 45° and 60°."""
    t = me.dynamicsymbols._t  # noqa: SLF001  (the symbol of time that SymPy mechanics uses)
    q, u = me.dynamicsymbols("q1:4"), me.dynamicsymbols("u1:4")
    masses, lengths = sm.symbols("m1:4", positive=True), sm.symbols("l1:4", positive=True)
    g = sm.Symbol("g", positive=True)

    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    bodies, loads, frames, points = [], [], [], [O]
    for i in range(3):
        A = me.ReferenceFrame(f"A{i + 1}")
        A.orient_axis(N, N.z, q[i])
        A.set_ang_vel(N, u[i] * N.z)
        P = points[-1].locatenew(f"P{i + 1}", -lengths[i] * A.y)
        P.v2pt_theory(points[-1], N, A)
        bodies.append(me.Particle(f"particle{i + 1}", P, masses[i]))
        loads.append((P, -masses[i] * g * N.y))
        frames.append(A)
        points.append(P)
    kane = me.KanesMethod(N, q, u, [speed - angle.diff(t) for angle, speed in zip(q, u, strict=True)])
    kane.kanes_equations(bodies, loads)

    model = Model("TriplePendulum", kane, description="Three particles on massless rods", diagram=DIAGRAM)
    for i, (mass, length, start) in enumerate(zip((1.0, 0.7, 0.4), (0.6, 0.5, 0.3), (30, 45, 60), strict=True), 1):
        model.parameter(masses[i - 1], mass, "kg", min=1e-6, description=f"mass of particle {i}")
        model.parameter(lengths[i - 1], length, "m", min=1e-6, description=f"length of rod {i}")
        angle = start * float(sm.pi) / 180
        text = f"angle of rod {i} from the downward vertical"
        model.coordinate(q[i - 1], angle, "rad", display_unit="deg", description=text)
        model.speed(u[i - 1], 0.0, "rad/s", description=f"angular speed of rod {i}")
        model.link(frames[i - 1], points[i - 1], points[i], radius=0.01)
        model.visual(bodies[i - 1], Sphere(0.04))
    model.parameter(g, 9.81, "m/s2", min=0.0, description="acceleration of gravity, along -N.y")
    model.output_position("end", points[3])
    model.output_total_energy()
    model.trace(points[3])
    model.experiment(stop=5.0, step=0.01, tolerance=1e-8)
    return model
