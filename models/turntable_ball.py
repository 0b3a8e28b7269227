"""A ball rolling on a turntable: circles at 2/7 of the table's speed; rheonomic and nonholonomic.

Coordinates: ``x``, ``y`` are the place of the ball's centre in the inertial frame, whose z axis is the table's axis and
points up; ``e0`` to ``e3`` are the ball's orientation as a quaternion (scalar first; only its direction matters, its
length stays what it is at the start). Speeds: ``wx``, ``wy``, ``wz`` are the components of the ball's angular velocity
in the inertial frame, ``vx``, ``vy`` (dependent) those of its centre's velocity: six coordinates and five speeds.

The table T turns by the angle Omega t. The particle of the ball that touches it has no velocity relative to it: two
constraints, written along the table's own axes, so time stands in them explicitly.

Solution: for a homogeneous ball (I = 2/5 m r²) the centre runs with the angular velocity 2 Omega/7 on a circle whose
centre and radius follow from the start; wz never changes.

Source: Ju. I. Neimark, N. A. Fufaev, Dynamics of Nonholonomic Systems, AMS 1972; E. A. Milne, Vectorial Mechanics,
Methuen 1948; J. A. Burns, "Ball rolling on a turntable: analog for charged particle dynamics", Am. J. Phys. 49
(1981) 56-58.
"""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Box, Cylinder, Model, Parts, Sphere

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 300 250" font-family="serif" font-size="15">
<rect width="300" height="250" fill="white"/>
<circle cx="140" cy="130" r="108" fill="#f2f2f2" stroke="#333" stroke-width="2"/>
<path d="M140 130H272M140 130V10" stroke="#555"/><path d="M280 130l-10 -4v8z" fill="#555"/>
<path d="M140 4l-4 10h8z" fill="#555"/>
<circle cx="162" cy="104" r="46" fill="none" stroke="#888" stroke-dasharray="5 4"/>
<circle cx="201" cy="80" r="17" fill="#9dc3e6" stroke="#333" stroke-width="1.500"/>
<circle cx="201" cy="80" r="3" fill="#333"/><circle cx="140" cy="130" r="3" fill="#333"/>
<path d="M201 80V130M201 80H140" stroke="#d62728" stroke-dasharray="2 3"/>
<path d="M66 160A80 80 0 0 0 110 204" fill="none" stroke="#9467bd" stroke-width="2"/>
<path d="M120 208l-11 0l4 -8z" fill="#9467bd"/>
<path d="M190 68L176 47" stroke="#1f77b4" stroke-width="2"/><path d="M171 39l2 11l7 -5z" fill="#1f77b4"/>
<g font-style="italic"><text x="206" y="148" fill="#d62728">x</text><text x="124" y="85" fill="#d62728">y</text>
<text x="62" y="204" fill="#9467bd">Ω</text><text x="154" y="42" fill="#1f77b4">2Ω/7</text>
<text x="222" y="76">m, r</text></g>
<text x="270" y="148" font-size="12">N.x</text><text x="148" y="14" font-size="12">N.y</text>
</svg>
"""


def turntable_ball() -> Model:
    """A ball of 5 cm radius, released beside the centre of a table that turns at 33 1/3 rpm."""
    t = me.dynamicsymbols._t  # noqa: SLF001  (the symbol of time that SymPy mechanics uses)
    x, y = me.dynamicsymbols("x y")
    e = me.dynamicsymbols("e0:4")
    w = wx, wy, wz = me.dynamicsymbols("wx wy wz")
    vx, vy = me.dynamicsymbols("vx vy")
    m, r, inertia, Omega = sm.symbols("m r I Omega", positive=True)

    N, T, B = (me.ReferenceFrame(name) for name in "NTB")
    T.orient_axis(N, N.z, Omega * t)
    B.orient_explicit(N, _rotation(e))
    B.set_ang_vel(N, wx * N.x + wy * N.y + wz * N.z)
    O = me.Point("O")
    O.set_vel(N, 0)
    centre = O.locatenew("centre", x * N.x + y * N.y)
    centre.set_vel(N, vx * N.x + vy * N.y)
    of_ball = centre.vel(N) + B.ang_vel_in(N).cross(-r * N.z)
    of_table = T.ang_vel_in(N).cross(centre.pos_from(O))
    slip = of_ball - of_table
    ball = me.RigidBody("ball", centre, B, m, (me.inertia(B, inertia, inertia, inertia), centre))
    parts = Parts(
        frame=N,
        origin=O,
        q=(x, y, *e),
        u=(*w, vx, vy),
        kinematic_equations=(x.diff(t) - vx, y.diff(t) - vy, *_quaternion_equations(e, w, t)),
        bodies=(ball,),
        velocity_constraints=(slip.dot(T.x), slip.dot(T.y)),
        u_dependent=(vx, vy),
    )

    model = Model("TurntableBall", parts, description="A ball that rolls on a turning table", diagram=DIAGRAM)
    model.parameter(m, 0.5, "kg", min=1e-6, description="mass of the ball")
    model.parameter(r, 0.05, "m", min=1e-6, description="radius of the ball")
    model.parameter(inertia, 2 * m * r**2 / 5, "kg.m2", description="central moment of inertia of the ball")
    speed = 2 * float(sm.pi) * (100 / 3) / 60
    model.parameter(
        Omega, speed, "rad/s", tunable=False, display_unit="rpm", description="angular velocity of the table"
    )
    model.coordinate(x, 0.1, "m", description="place of the ball's centre along N.x")
    model.coordinate(y, 0.0, "m", description="place of the ball's centre along N.y")
    for symbol, start in zip(e, (1.0, 0.0, 0.0, 0.0), strict=True):
        model.coordinate(symbol, start, min=-1.1, max=1.1, description="component of the ball's orientation quaternion")
    # At the start the centre moves at (0.06, 0) m/s, and the ball turns as rolling on the moving table asks.
    for symbol, start, axis in zip(w, ((speed * 0.1 - 0.0) / 0.05, 0.06 / 0.05, 0.5), "xyz", strict=True):
        model.speed(
            symbol, start, "rad/s", display_unit="rpm", description=f"angular velocity of the ball along N.{axis}"
        )
    model.speed(vx, 0.06, "m/s", kind="guess", description="velocity of the centre along N.x")
    model.speed(vy, 0.0, "m/s", kind="guess", description="velocity of the centre along N.y")
    model.visual(ball, Sphere(r))
    model.visual(ball, Cylinder(2.04 * r, r / 3), color="#f58518")  # a pole through it, so that its turning is seen
    below = O.locatenew("below", -1.1 * r * N.z)
    model.visual(T, Cylinder(r / 5, 8 * r), at=below, along=T.z, color="#c9ced6")
    model.visual(T, Box(15 * r, r / 10, r / 4.6), at=below, color="#8a94a3")
    model.trace(centre)
    model.output_kinetic_energy()
    model.output_orientation("attitude", B)
    place = centre.pos_from(O)
    for name, axis in (("x", T.x), ("y", T.y)):
        model.output(
            f"on_table.{name}", place.dot(axis), "m", description=f"place of the contact on the table along T.{name}"
        )
    model.experiment(stop=10.0, step=0.01, tolerance=1e-8)
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
