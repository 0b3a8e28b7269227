"""Chaplygin's sleigh: a body on ice with one blade that cannot slip sideways; nonholonomic, closed form.

Coordinates: ``x``, ``y`` are the place of the blade's contact point P along ``N.x`` (right) and ``N.y`` (up), seen
from above, ``theta`` is the heading of the blade from ``N.x``, positive counter-clockwise. The mass centre G lies a
distance ``a`` ahead of P. Speeds: ``v`` along the blade, ``omega`` = theta', and the dependent ``w`` across the
blade, which the constraint w = 0 holds at zero. With v and omega as the independent speeds nothing is ever singular.

    m (v' - a omega²) = 0        (I + m a²) omega' + m a v omega = 0

Source: S. A. Chaplygin, "On the theory of motion of nonholonomic systems: the reducing-multiplier theorem" (1911),
Regular and Chaotic Dynamics 13 (2008) 369-376; A. M. Bloch, Nonholonomic Mechanics and Control, Springer 2003, §1.7.
"""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Box, Model, Parts

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 290 220" font-family="serif" font-size="15">
<rect width="290" height="220" fill="white"/>
<path d="M30 195H275M30 195V25" stroke="#555" fill="none"/><path d="M280 195l-10 -4v8z" fill="#555"/>
<path d="M30 20l-4 10h8z" fill="#555"/>
<ellipse cx="160" cy="92" rx="78" ry="38" transform="rotate(-35 160 92)" fill="#c6dcef" stroke="#333"/>
<path d="M101 133L130 113" stroke="#1f77b4" stroke-width="6"/>
<path d="M115 123H210" stroke="#888" stroke-dasharray="5 4"/>
<path d="M115 123L242 34" stroke="#888" stroke-dasharray="5 4"/>
<circle cx="115" cy="123" r="4" fill="#d62728"/><circle cx="172" cy="83" r="4" fill="#333"/>
<path d="M180 123A65 65 0 0 0 169 86" fill="none" stroke="#d62728" stroke-width="2"/>
<path d="M168 80l-3 10l9 -2z" fill="#d62728"/>
<path d="M115 123L145 102" stroke="#9467bd" stroke-width="2"/><path d="M154 96l-11 2l6 8z" fill="#9467bd"/>
<path d="M115 123V195M115 123H30" stroke="#d62728" stroke-dasharray="2 3" fill="none"/>
<g font-style="italic"><text x="184" y="112" fill="#d62728">θ</text><text x="70" y="212" fill="#d62728">x</text>
<text x="14" y="164" fill="#d62728">y</text><text x="132" y="92" fill="#9467bd">v</text>
<text x="178" y="78">G</text><text x="98" y="118">P</text><text x="154" y="116">a</text></g>
<text x="256" y="212" font-size="12">N.x</text><text x="38" y="28" font-size="12">N.y</text>
</svg>
"""


def chaplygin_sleigh() -> Model:
    """The sleigh, pushed backwards with a slight turn: it turns round and glides away straight."""
    t = me.dynamicsymbols._t  # noqa: SLF001  (the symbol of time that SymPy mechanics uses)
    x, y, theta, v, omega, w = me.dynamicsymbols("x y theta v omega w")
    m, a, inertia = sm.symbols("m a I", positive=True)

    N, B = me.ReferenceFrame("N"), me.ReferenceFrame("B")
    B.orient_axis(N, N.z, theta)
    B.set_ang_vel(N, omega * N.z)
    O = me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, v * B.x + w * B.y)
    G = P.locatenew("G", a * B.x)
    G.v2pt_theory(P, N, B)
    sleigh = me.RigidBody("sleigh", G, B, m, (me.inertia(B, 0, 0, inertia), G))
    parts = Parts(
        frame=N,
        origin=O,
        q=(x, y, theta),
        u=(v, omega, w),
        kinematic_equations=(
            x.diff(t) - P.vel(N).dot(N.x),
            y.diff(t) - P.vel(N).dot(N.y),
            theta.diff(t) - omega,
        ),
        bodies=(sleigh,),
        velocity_constraints=(P.vel(N).dot(B.y),),
        u_dependent=(w,),
    )

    model = Model(
        "ChaplyginSleigh", parts, description="A sleigh on one blade that cannot slip sideways", diagram=DIAGRAM
    )
    model.parameter(m, 10.0, "kg", min=1e-6, description="mass")
    model.parameter(a, 0.2, "m", min=0.0, description="distance of the mass centre ahead of the blade")
    model.parameter(inertia, 0.6, "kg.m2", min=1e-9, description="central moment of inertia about the vertical")
    model.coordinate(x, 0.0, "m", description="place of the blade along N.x")
    model.coordinate(y, 0.0, "m", description="place of the blade along N.y")
    model.coordinate(theta, 0.0, "rad", display_unit="deg", description="heading of the blade")
    model.speed(v, -1.0, "m/s", description="speed along the blade, forwards")
    model.speed(omega, 0.1, "rad/s", display_unit="rpm", description="rate of turn")
    model.speed(w, 0.0, "m/s", kind="guess", description="speed across the blade, held at zero")
    model.visual(sleigh, Box(0.6, 0.3, 0.08))
    model.visual(sleigh, Box(0.24, 0.02, 0.1), at=P, color="#333333")
    model.trace(P)
    model.output_position("mass_centre", G)
    model.output_kinetic_energy()
    blade_force = m * G.acc(N).dot(B.y).subs({theta.diff(t): omega})
    model.output("blade_force", blade_force, "N", description="force of the ice across the blade")
    model.experiment(stop=10.0, step=0.02, tolerance=1e-8)
    return model
