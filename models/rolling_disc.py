"""A thin disc that rolls on a plane without slipping: nonholonomic, speeds that are no derivatives; a KanesMethod.

Coordinates: ``q1`` is the heading (yaw about the upward ``N.z``), ``q2`` the lean about the heading axis ``A.x`` (0
when the disc stands upright), ``q3`` the roll about the disc's axle ``B.y``; ``q4`` and ``q5`` are the place of the
contact point on the plane along ``N.x`` and ``N.y``. The speeds ``u1``, ``u2``, ``u3`` are the components of the
disc's angular velocity along the lean frame B, ``u4``, ``u5`` (dependent) the velocity of the contact point over the
plane:

    q1' = u3 / cos(q2)    q2' = u1    q3' = u2 - u3 tan(q2)    q4' = u4    q5' = u5

The material point of the disc at the contact does not move; its two velocity components along the plane are the
constraints. They are solved for u4 and u5, on which they depend with the unit matrix, so nothing is ever singular but
the angles, at q2 = ±90° (the disc lies flat).

The force at the contact is an output, along N: minus the multipliers are its components along the plane; as the
reaction on the disc, by Newton's law, it has the normal force too.

Steady circles: upright straight rolling, or with lean q2, heading rate w and roll rate s constant -5/4 r w² sin(q2)
cos(q2) - 3/2 r w s cos(q2) = g sin(q2) (see the closed forms of the end-to-end tests); the start values are near that
motion.

Source: O. M. O'Reilly, "The dynamics of rolling disks and sliding disks", Nonlinear Dynamics 10 (1996) 287-305; a
common example since T. R. Kane, D. A. Levinson, Dynamics: Theory and Applications, McGraw-Hill 1985.
"""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Box, Cylinder, Model

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 320 240" font-family="serif" font-size="15">
<rect width="320" height="240" fill="white"/>
<path d="M20 220L110 110H310L240 220z" fill="#f2f2f2" stroke="#bbb"/>
<path d="M84 214Q136 196 150 180Q186 146 256 134" fill="none" stroke="#888" stroke-dasharray="4 3"/>
<path d="M150 180L244 108" stroke="#888" stroke-width="1.500"/><path d="M252 102l-12 3l6 8z" fill="#888"/>
<path d="M150 180V40" stroke="#888" stroke-dasharray="5 4"/>
<path d="M186 60C205 46 212 61 202 94C192 127 169 166 150 180C131 194 124 179 134 146C144 113 167 74 186 60z"
 fill="#9dc3e6" fill-opacity="0.800" stroke="#333" stroke-width="2"/>
<path d="M150 180L196 27" stroke="#1f77b4" stroke-width="1.500"/><circle cx="168" cy="120" r="3.500" fill="#333"/>
<circle cx="150" cy="180" r="3.500" fill="#d62728"/>
<path d="M168 120L92 104" stroke="#888" stroke-width="1.500"/><path d="M83 102l12 -2l-2 9z" fill="#888"/>
<g fill="none" stroke="#d62728" stroke-width="2"><path d="M150 56A124 124 0 0 1 178 58"/>
<path d="M172 88Q198 68 190 98"/><path d="M216 174Q234 150 226 126"/></g>
<g fill="#d62728"><path d="M188 61l-10 -7l-1 9z"/><path d="M188 108l-3 -11l10 3z"/><path d="M222 118l8 7l-9 4z"/></g>
<g font-style="italic" fill="#d62728"><text x="156" y="48">q₂</text><text x="234" y="162">q₁</text>
<text x="172" y="108">q₃</text><text x="138" y="204">(q₄, q₅)</text></g>
<g font-style="italic"><text x="150" y="150">r</text><text x="34" y="78">g</text></g>
<path d="M24 50V86" stroke="#333" stroke-width="2"/><path d="M24 92l-5 -10h10z" fill="#333"/>
<g font-size="12"><text x="256" y="102">A.x</text><text x="124" y="44">N.z</text><text x="202" y="32">B.z</text>
<text x="62" y="98">B.y</text></g>
</svg>
"""


def rolling_disc() -> Model:
    """The disc on a nearly steady circle."""
    t = me.dynamicsymbols._t  # noqa: SLF001  (the symbol of time that SymPy mechanics uses)
    q = q1, q2, q3, q4, q5 = me.dynamicsymbols("q1:6")
    u1, u2, u3, u4, u5 = me.dynamicsymbols("u1:6")
    m, r, g, across, axial = sm.symbols("m r g I J", positive=True)

    N, A, B, C = (me.ReferenceFrame(name) for name in "NABC")
    A.orient_axis(N, N.z, q1)
    B.orient_axis(A, A.x, q2)
    C.orient_axis(B, B.y, q3)
    yaw_rate, roll_rate = u3 / sm.cos(q2), u2 - u3 * sm.tan(q2)
    A.set_ang_vel(N, yaw_rate * N.z)
    B.set_ang_vel(A, u1 * A.x)
    C.set_ang_vel(B, roll_rate * B.y)
    O = me.Point("O")
    O.set_vel(N, 0)
    contact = O.locatenew("contact", q4 * N.x + q5 * N.y)
    contact.set_vel(N, u4 * N.x + u5 * N.y)
    centre = contact.locatenew("centre", r * B.z)
    centre.v2pt_theory(contact, N, B)
    # The particle of the disc that touches the plane now, moving with the disc C.
    slip = centre.vel(N) + C.ang_vel_in(N).cross(-r * B.z)
    rows = [slip.dot(N.x), slip.dot(N.y)]

    disc = me.RigidBody("disc", centre, C, m, (me.inertia(C, across, axial, across), centre))
    kinematics = [
        q1.diff(t) - yaw_rate,
        q2.diff(t) - u1,
        q3.diff(t) - roll_rate,
        q4.diff(t) - u4,
        q5.diff(t) - u5,
    ]
    mechanics = me.KanesMethod(
        N,
        q,
        [u1, u2, u3],
        kinematics,
        u_dependent=[u4, u5],
        velocity_constraints=rows,
        bodies=[disc],
        forcelist=[me.Force(centre, -m * g * N.z)],
    )

    model = Model("RollingDisc", mechanics, description="A disc that rolls without slipping", diagram=DIAGRAM)
    _declare_quantities(model, (m, r, g, across, axial), q, (u1, u2, u3, u4, u5))
    model.visual(disc, Cylinder(r / 15, r))
    model.visual(disc, Box(1.9 * r, r / 12, r / 12), color="#f58518")  # a spoke, so that its roll is seen
    model.trace(contact)
    model.output_position("centre", centre)
    model.output("yaw_rate", yaw_rate, "rad/s", display_unit="rpm", description="rate of the heading")
    model.output("roll_rate", roll_rate, "rad/s", display_unit="rpm", description="rate of the roll about the axle")
    for row, axis in zip(rows, "xy", strict=True):
        model.constraint(row, f"contact.{axis}")
        model.output_multiplier(f"multiplier.{axis}", row)
    model.output_reaction("contact", disc, at=contact)
    model.output_kinetic_energy()
    model.output_potential_energy()
    model.output_total_energy()
    model.experiment(stop=10.0, step=0.01, tolerance=1e-8)
    return model


def _declare_quantities(
    model: Model, parameters: tuple[sm.Symbol, ...], q: tuple[sm.Expr, ...], u: tuple[sm.Expr, ...]
) -> None:
    """Values, units and meanings of parameters, coordinates and speeds."""
    m, r, g, across, axial = parameters
    model.parameter(m, 2.0, "kg", min=1e-6, description="mass")
    model.parameter(r, 0.3, "m", min=1e-6, description="radius")
    model.parameter(g, 9.81, "m/s2", min=0.0, description="acceleration of gravity")
    model.parameter(across, m * r**2 / 4, "kg.m2", description="central inertia about a diameter")
    model.parameter(axial, m * r**2 / 2, "kg.m2", description="central inertia about the axle")
    for symbol, start, what in zip(
        q[:3], (0.0, 0.2, 0.0), ("heading", "lean from upright", "roll about the axle"), strict=True
    ):
        model.coordinate(symbol, start, "rad", display_unit="deg", description=what)
    for symbol, axis in zip(q[3:], "xy", strict=True):
        model.coordinate(symbol, 0.0, "m", description=f"place of the contact point along N.{axis}")
    for symbol, start, axis in zip(u[:3], (0.0, 5.0, -1.0), "xyz", strict=True):
        model.speed(symbol, start, "rad/s", description=f"angular velocity of the disc along B.{axis}")
    for symbol, start, axis in zip(u[3:], (1.5, 0.0), "xy", strict=True):
        model.speed(symbol, start, "m/s", kind="guess", description=f"velocity of the contact point along N.{axis}")
