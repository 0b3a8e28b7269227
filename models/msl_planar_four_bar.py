"""The planar four-bar linkage of the Modelica Standard Library: boxes, one closed loop, a damper at the crank.

Coordinates: ``phi1`` turns body 1 about the origin, ``phi2`` body 2 about the tip of body 1, ``phi3`` body 4 about the
tip of body 3, which stands fixed in the world; all about N.z, zero as drawn in the bodies' own vectors. Body 1 reaches
along (0.4, 0, 0) m, body 2 along (0.1, 1.1, 0) m, body 3 along (-0.15, 1, 0) m and body 4 along (0.65, 0.1, 0) m; the
tips of bodies 2 and 4 are joined. The boxes have width and height 0.05 m and density 7700 kg/m³.

Source: Modelica Standard Library 4.0.0, Modelica.Mechanics.MultiBody.Examples.Loops.PlanarFourbar, and its regression
results.
"""

import math

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Box, Cylinder, Model, Parts

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 300 250" font-family="serif" font-size="15">
<rect width="300" height="250" fill="white"/>
<path d="M90 220L170 220" stroke="#1f77b4" stroke-width="8" stroke-linecap="round"/>
<path d="M170 220L190 30" stroke="#2ca02c" stroke-width="8" stroke-linecap="round"/>
<path d="M90 220L60 48" stroke="#bbb" stroke-width="8" stroke-linecap="round"/>
<path d="M60 48L190 30" stroke="#ff7f0e" stroke-width="8" stroke-linecap="round"/>
<g fill="white" stroke="#333" stroke-width="2"><circle cx="90" cy="220" r="5"/><circle cx="170" cy="220" r="5"/>
<circle cx="190" cy="30" r="5"/><circle cx="60" cy="48" r="5"/></g>
<g font-style="italic"><text x="100" y="240" fill="#d62728">φ₁</text><text x="182" y="214" fill="#d62728">φ₂</text>
<text x="64" y="74" fill="#d62728">φ₃</text><text x="258" y="60">g</text></g>
<text x="124" y="212">1</text><text x="188" y="130">2</text><text x="58" y="140">3</text><text x="120" y="32">4</text>
<path d="M272 48V84" stroke="#333" stroke-width="2"/><path d="M272 90l-5 -10h10z" fill="#333"/>
</svg>
"""

VECTORS = {"1": (0.4, 0.0), "2": (0.1, 1.1), "3": (-0.15, 1.0), "4": (0.65, 0.1)}


def msl_planar_four_bar() -> Model:
    """The linkage, released from rest."""
    phi = me.dynamicsymbols("phi1 phi2 phi3")
    w = me.dynamicsymbols("w1 w2 w3")
    g, d, density, width = sm.symbols("g d rho width", positive=True)

    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    B1 = N.orientnew("B1", "Axis", (phi[0], N.z))
    B2 = B1.orientnew("B2", "Axis", (phi[1], N.z))
    B4 = N.orientnew("B4", "Axis", (phi[2], N.z))
    B1.set_ang_vel(N, w[0] * N.z)
    B2.set_ang_vel(B1, w[1] * N.z)
    B4.set_ang_vel(N, w[2] * N.z)

    def reach(name: str, frame: me.ReferenceFrame, base: me.Point) -> tuple[me.Point, me.Point, float]:
        x, y = VECTORS[name]
        vector = x * frame.x + y * frame.y
        return base.locatenew(f"S{name}", vector / 2), base.locatenew(f"tip{name}", vector), math.hypot(x, y)

    bodies = []

    def box(name: str, frame: me.ReferenceFrame, base: me.Point) -> me.Point:
        centre, tip, length = reach(name, frame, base)
        mass = density * width**2 * length
        inertia = me.inertia(frame, 0, 0, mass * (length**2 + width**2) / 12)
        bodies.append(me.RigidBody(f"box{name}", centre, frame, mass, (inertia, centre)))
        return tip

    tip1 = box("1", B1, O)
    tip2 = box("2", B2, tip1)
    tip4 = box("4", B4, reach("3", N, O)[1])
    loop = tip2.pos_from(tip4)
    parts = Parts(
        frame=N,
        origin=O,
        q=tuple(phi),
        u=tuple(w),
        kinematic_equations=tuple(ui - qi.diff() for qi, ui in zip(phi, w, strict=True)),
        bodies=tuple(bodies),
        loads=tuple(me.Force(body.masscenter, -body.mass * g * N.y) for body in bodies),
        actuators=(me.TorqueActuator(-d * w[0], N.z, B1, N),),
        holonomic_constraints=(loop.dot(N.x), loop.dot(N.y)),
        q_dependent=tuple(phi[1:]),
        u_dependent=tuple(w[1:]),
    )

    description = "Planar four-bar linkage of the Modelica Standard Library"
    model = Model("MslPlanarFourBar", parts, description=description, diagram=DIAGRAM)
    model.parameter(g, 9.80665, "m/s2", min=0.0, description="acceleration of gravity, along -N.y")
    model.parameter(d, 0.1, "N.m.s/rad", min=0.0, description="damping of revolute 1")
    model.parameter(density, 7700.0, "kg/m3", min=1e-6, description="density of the boxes")
    model.parameter(width, 0.05, "m", min=1e-6, description="width and height of the boxes")
    for i, joint in enumerate(("body 1 in the world", "body 2 on body 1", "body 4 on body 3")):
        kind = "guess" if i else "fixed"
        model.coordinate(phi[i], 0.0, "rad", kind=kind, description=f"angle of {joint}")
        model.speed(w[i], 0.0, "rad/s", kind=kind, description=f"angular speed of {joint}")
    model.output_position("joined_tips", tip2)
    model.output("acceleration", w[0].diff(), "rad/s2", description="angular acceleration of body 1")
    for name, frame, base, body in (
        ("1", B1, O, bodies[0]),
        ("2", B2, tip1, bodies[1]),
        ("3", N, O, N),
        ("4", B4, reach("3", N, O)[1], bodies[2]),
    ):
        centre, _, reached = reach(name, frame, base)
        along = centre.pos_from(base)
        color = "#8a94a3" if body is N else ""
        model.visual(body, Box(width, reached, width), at=centre, along=along, color=color)
    for place, frame in ((O, N), (tip1, B1), (tip2, B2), (tip4, N)):
        model.visual(frame, Cylinder(1.8 * width, 0.35 * width), at=place, along=frame.z, color="#5b6470")
    model.experiment(stop=5.0, step=0.05, tolerance=1e-8)
    return model
