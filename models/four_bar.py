"""A planar four-bar linkage of point masses: one closed loop, and a crank that turns right round.

Coordinates: ``q1`` turns the crank A from ``N.x`` (to the right) about ``N.z``, ``q2`` the coupler B from A, ``q3`` the
rocker C from B, all positive counter-clockwise. P1 is the origin, P2 = P1 + la A.x, P3 = P2 + lb B.x,
P4 = P3 + lc C.x; the loop closes where P4 = P1 + ln N.x. Point masses ``m`` sit at P2 and P3; gravity acts along -N.y.
The input ``torque`` acts on the crank from the ground.

Source: J. K. Moore, Learn Multibody Dynamics, chapter "Equations of Motion with Holonomic Constraints" (his masses and
lengths, for which the crank turns right round); E. J. Haug, Computer Aided Kinematics and Dynamics of Mechanical
Systems, Allyn and Bacon 1989, ch. 3 (loop closure).
"""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Cylinder, Model, Parts, Sphere

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 320 230" font-family="serif" font-size="15">
<rect width="320" height="230" fill="white"/>
<path d="M30 190H300" stroke="#333" stroke-width="2"/>
<path d="M60 190L100 120L255 80L230 190" fill="none" stroke="#888" stroke-dasharray="5 4"/>
<path d="M60 190L100 120" stroke="#1f77b4" stroke-width="7" stroke-linecap="round"/>
<path d="M100 120L255 80" stroke="#2ca02c" stroke-width="7" stroke-linecap="round"/>
<path d="M255 80L230 190" stroke="#ff7f0e" stroke-width="7" stroke-linecap="round"/>
<g fill="white" stroke="#333" stroke-width="2"><circle cx="60" cy="190" r="5"/><circle cx="230" cy="190" r="5"/></g>
<circle cx="100" cy="120" r="8" fill="#333"/><circle cx="255" cy="80" r="8" fill="#333"/>
<path d="M90 190A30 30 0 0 0 76 164" fill="none" stroke="#d62728" stroke-width="2"/>
<path d="M71 160l10 2l-6 7z" fill="#d62728"/>
<g font-style="italic"><text x="94" y="176" fill="#d62728">q₁</text><text x="58" y="150">lₐ</text>
<text x="168" y="94">l<tspan dy="3" font-size="9">b</tspan></text>
<text x="250" y="146">l<tspan dy="3" font-size="9">c</tspan></text><text x="140" y="208">lₙ</text>
<text x="84" y="108">m</text><text x="262" y="70">m</text><text x="286" y="40">g</text></g>
<text x="52" y="212">P₁</text><text x="222" y="212">P₄</text>
<path d="M304 28V64" stroke="#333" stroke-width="2"/><path d="M304 70l-5 -10h10z" fill="#333"/>
</svg>
"""


def four_bar() -> Model:
    """The linkage, released from rest with the crank at 10°, and driven to and fro."""
    t = me.dynamicsymbols._t  # noqa: SLF001  (the symbol of time that SymPy mechanics uses)
    q1, q2, q3, u1, u2, u3, torque = me.dynamicsymbols("q1 q2 q3 u1 u2 u3 torque")
    la, lb, lc, ln, m, g = sm.symbols("la lb lc ln m g", positive=True)

    N, A, B, C = (me.ReferenceFrame(name) for name in "NABC")
    A.orient_axis(N, N.z, q1)
    B.orient_axis(A, A.z, q2)
    C.orient_axis(B, B.z, q3)
    A.set_ang_vel(N, u1 * N.z)
    B.set_ang_vel(A, u2 * A.z)
    C.set_ang_vel(B, u3 * B.z)
    P1 = me.Point("P1")
    P1.set_vel(N, 0)
    P2 = P1.locatenew("P2", la * A.x)
    P3 = P2.locatenew("P3", lb * B.x)
    P4 = P3.locatenew("P4", lc * C.x)
    loop = P4.pos_from(P1) - ln * N.x
    masses = (me.Particle("M2", P2, m), me.Particle("M3", P3, m))
    parts = Parts(
        frame=N,
        origin=P1,
        q=(q1, q2, q3),
        u=(u1, u2, u3),
        kinematic_equations=(u1 - q1.diff(), u2 - q2.diff(), u3 - q3.diff()),
        bodies=masses,
        loads=tuple(me.Force(mass.masscenter, -m * g * N.y) for mass in masses),
        actuators=(me.TorqueActuator(torque, N.z, A, N),),
        holonomic_constraints=(loop.dot(N.x), loop.dot(N.y)),
        q_dependent=(q2, q3),
        u_dependent=(u2, u3),
    )

    model = Model("FourBar", parts, description="A planar four-bar linkage of point masses", diagram=DIAGRAM)
    model.parameter(la, 0.8, "m", min=1e-6, description="length of the crank")
    model.parameter(lb, 2.0, "m", min=1e-6, description="length of the coupler")
    model.parameter(lc, 1.0, "m", min=1e-6, description="length of the rocker")
    model.parameter(ln, 2.0, "m", min=1e-6, description="distance of the ground pins")
    model.parameter(m, 1.0, "kg", min=1e-6, description="each mass")
    model.parameter(g, 9.81, "m/s2", min=0.0, description="acceleration of gravity, along -N.y")
    model.input(torque, 0.0, "N.m", description="torque on the crank from the ground, counter-clockwise positive")
    model.coordinate(q1, 0.17453292519943295, "rad", display_unit="deg", description="angle of the crank from N.x")
    guess = {"unit": "rad", "display_unit": "deg", "kind": "guess"}
    model.coordinate(q2, 0.11476003622, **guess, description="angle of the coupler from the crank")
    model.coordinate(q3, -2.6421428385, **guess, description="angle of the rocker from the coupler")
    model.speed(u1, 0.0, "rad/s", description="angular speed of the crank")
    model.speed(u2, 0.0, "rad/s", kind="guess", description="angular speed of the coupler relative to the crank")
    model.speed(u3, 0.0, "rad/s", kind="guess", description="angular speed of the rocker relative to the coupler")
    model.potential_energy(m * g * (P2.pos_from(P1) + P3.pos_from(P1)).dot(N.y))
    model.output_position("coupler_pin", P3)
    model.output("crank_acceleration", u1.diff(), "rad/s2", description="angular acceleration of the crank")
    model.output_total_energy()
    for axis, row in zip("xy", parts.holonomic_constraints, strict=True):
        model.output_multiplier(f"loop_force.{axis}", row)
    model.output_diagnostics(energy=False)
    # The rocker has no body of its own, and the right-hand pin no point: they are drawn for the eye.
    model.visual(C, Cylinder(lc, 0.02), at=P3.locatenew("rocker", lc / 2 * C.x), along=C.x, color="#8a94a3")
    pin = P1.locatenew("pin", ln * N.x)
    model.visual(N, Sphere(0.04), at=pin, color="#8a94a3")
    model.link(N, P1, pin, radius=0.012, color="#c9ced6")
    model.experiment(stop=4.0, step=0.02, tolerance=1e-8, signals={torque: 3 * sm.cos(2 * t)})
    return model
