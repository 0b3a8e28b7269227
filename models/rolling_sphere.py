"""A loaded ball that rolls down a slope without slipping: three contact constraints, the contact's force as output.

``N.x`` points down the slope, ``N.z`` away from it, the slope is z = 0. Coordinates: ``x``, ``y``, ``z`` are the
place of the ball's geometric centre, ``e0`` to ``e3`` its orientation as a quaternion (scalar first; only its
direction matters). Speeds: ``wx``, ``wy``, ``wz`` are the components of its angular velocity along N, ``vx``, ``vy``,
``vz`` (dependent) those of the centre's velocity. The mass centre lies ``a`` from the geometric centre, along the
ball's own z axis.

The particle of the ball that touches the slope does not move: three constraints, one along each axis. Minus their
multipliers are the components of the contact's force; it is requested once more as the reaction on the ball, by
Newton's law. The constraints determine vx, vy, vz with the unit matrix: nothing is ever singular.

With a = 0 the centre of a homogeneous ball falls with 5/7 g sin(slope), held back by 2/7 m g sin(slope).

Source: A. V. Borisov, I. S. Mamaev, "The rolling motion of a rigid body on a plane and a sphere", Regular and Chaotic
Dynamics 7 (2002) 177-200 (Chaplygin's ball); the homogeneous ball is in every textbook.
"""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Cylinder, Model, Parts, Sphere

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 300 220" font-family="serif" font-size="15">
<rect width="300" height="220" fill="white"/>
<path d="M20 90L280 190" stroke="#333" stroke-width="2"/><path d="M280 190H150" stroke="#888" stroke-dasharray="5 4"/>
<path d="M205 190A75 75 0 0 1 210 163" fill="none" stroke="#9467bd" stroke-width="2"/>
<circle cx="138" cy="80" r="52" fill="#c6dcef" stroke="#333" stroke-width="1.500"/>
<circle cx="138" cy="80" r="3" fill="#333"/><path d="M138 80L119 129" stroke="#888" stroke-dasharray="4 3"/>
<circle cx="119" cy="129" r="4" fill="#d62728"/>
<path d="M138 80L163 62" stroke="#1f77b4" stroke-width="2"/><circle cx="163" cy="62" r="5" fill="#1f77b4"/>
<path d="M138 80L204 105" stroke="#555"/><path d="M213 108l-11 0l4 -9z" fill="#555"/>
<path d="M138 80L163 15" stroke="#555"/><path d="M166 6l-8 9l9 3z" fill="#555"/>
<path d="M40 30V70" stroke="#333" stroke-width="2"/><path d="M40 77l-5 -10h10z" fill="#333"/>
<g font-style="italic"><text x="146" y="64" fill="#1f77b4">a</text>
<text x="116" y="104">r</text><text x="50" y="56">g</text>
<text x="160" y="184" fill="#9467bd">slope</text><text x="88" y="22">(x, y, z)</text></g>
<g font-size="12"><text x="208" y="124">N.x</text><text x="172" y="16">N.z</text></g>
</svg>
"""


def rolling_sphere() -> Model:
    """A ball whose mass centre is off by a third of its radius, on a slope of 6 degrees, thrown across it."""
    t = me.dynamicsymbols._t  # noqa: SLF001  (the symbol of time that SymPy mechanics uses)
    x, y, z = me.dynamicsymbols("x y z")
    e = me.dynamicsymbols("e0:4")
    w = wx, wy, wz = me.dynamicsymbols("wx wy wz")
    v = vx, vy, vz = me.dynamicsymbols("vx vy vz")
    m, r, a, inertia, slope, g = sm.symbols("m r a I slope g", positive=True)

    N, B = me.ReferenceFrame("N"), me.ReferenceFrame("B")
    B.orient_explicit(N, _rotation(e))
    B.set_ang_vel(N, wx * N.x + wy * N.y + wz * N.z)
    O = me.Point("O")
    O.set_vel(N, 0)
    centre = O.locatenew("centre", x * N.x + y * N.y + z * N.z)
    centre.set_vel(N, vx * N.x + vy * N.y + vz * N.z)
    mass_centre = centre.locatenew("mass_centre", a * B.z)
    mass_centre.v2pt_theory(centre, N, B)
    contact = centre.locatenew("contact", -r * N.z)
    slip = centre.vel(N) + B.ang_vel_in(N).cross(-r * N.z)
    rows = [slip.dot(axis) for axis in (N.x, N.y, N.z)]
    ball = me.RigidBody("ball", mass_centre, B, m, (me.inertia(B, inertia, inertia, inertia), mass_centre))
    weight = m * g * (sm.sin(slope) * N.x - sm.cos(slope) * N.z)
    parts = Parts(
        frame=N,
        origin=O,
        q=(x, y, z, *e),
        u=(*w, *v),
        kinematic_equations=(
            *(place.diff(t) - speed for place, speed in zip((x, y, z), v, strict=True)),
            *_quaternion_equations(e, w, t),
        ),
        bodies=(ball,),
        loads=(me.Force(mass_centre, weight),),
        velocity_constraints=rows,
        u_dependent=v,
    )

    model = Model("RollingSphere", parts, description="A loaded ball that rolls down a slope", diagram=DIAGRAM)
    model.parameter(m, 0.5, "kg", min=1e-6, description="mass of the ball")
    model.parameter(r, 0.06, "m", min=1e-6, description="radius of the ball")
    model.parameter(a, 0.02, "m", min=0.0, description="distance of the mass centre from the geometric centre")
    model.parameter(inertia, 2 * m * r**2 / 5, "kg.m2", description="central moment of inertia of the ball")
    model.parameter(slope, 6 * float(sm.pi) / 180, "rad", display_unit="deg", description="angle of the slope")
    model.parameter(g, 9.81, "m/s2", min=0.0, description="acceleration of gravity")
    for symbol, start, axis in zip((x, y, z), (0.0, 0.0, 0.06), "xyz", strict=True):
        model.coordinate(symbol, start, "m", description=f"place of the geometric centre along N.{axis}")
    for symbol, start in zip(e, (1.0, 0.0, 0.0, 0.0), strict=True):
        model.coordinate(symbol, start, min=-1.1, max=1.1, description="component of the ball's orientation quaternion")
    for symbol, start, axis in zip(w, (-8.0, 0.0, 1.0), "xyz", strict=True):
        model.speed(symbol, start, "rad/s", display_unit="rpm", description=f"angular velocity along N.{axis}")
    for symbol, start, axis in zip(v, (0.0, 0.48, 0.0), "xyz", strict=True):
        model.speed(symbol, start, "m/s", kind="guess", description=f"velocity of the centre along N.{axis}")
    for row, axis in zip(rows, "xyz", strict=True):
        model.constraint(row, f"contact.{axis}")
        model.output_multiplier(f"multiplier.{axis}", row)
    model.output_reaction("contact", ball, at=contact)
    model.output_total_energy()
    model.visual(ball, Sphere(r), at=centre)
    model.visual(ball, Cylinder(2.04 * r, r / 3), at=centre, along=B.z, color="#f58518")  # towards the mass centre
    model.trace(contact)
    model.experiment(stop=4.0, step=0.01, tolerance=1e-8)
    return model


def _rotation(e: tuple[sm.Expr, ...]) -> sm.Matrix:
    """Direction cosines N_C_B of the quaternion e, shape (3, 3): orthonormal whatever the length of e."""
    a, b, c, d = e
    products = sm.Matrix(
        [
            [a**2 + b**2 - c**2 - d**2, 2 * (b * c - a * d), 2 * (b * d + a * c)],
            [2 * (b * c + a * d), a**2 - b**2 + c**2 - d**2, 2 * (c * d - a * b)],
            [2 * (b * d - a * c), 2 * (c * d + a * b), a**2 - b**2 - c**2 + d**2],
        ]
    )
    return products / (a**2 + b**2 + c**2 + d**2)


def _quaternion_equations(e: tuple[sm.Expr, ...], w: tuple[sm.Expr, ...], t: sm.Symbol) -> list[sm.Expr]:
    """Expressions e' - (0, w) e / 2, which vanish, for w along the axes of N."""
    a, b, c, d = e
    wx, wy, wz = w
    rates = (
        -wx * b - wy * c - wz * d,
        wx * a + wy * d - wz * c,
        wy * a + wz * b - wx * d,
        wz * a + wx * c - wy * b,
    )
    return [component.diff(t) - rate / 2 for component, rate in zip(e, rates, strict=True)]
