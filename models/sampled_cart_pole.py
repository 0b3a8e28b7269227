"""A pole on a cart that a digital controller balances: it samples, computes a force, and holds it to the next sample.

Coordinates: ``x`` is the position of the cart along ``N.x`` (to the right), ``theta`` the angle of the pole from the
*upward* vertical, counterclockwise about ``N.z``. With the central inertia I = m l²/12 of the uniform pole of length l:

    (M + m) x'' - m l/2 cos(theta) theta'' + m l/2 sin(theta) theta'² = F
    -m l/2 cos(theta) x'' + (I + m l²/4) theta'' = m g l/2 sin(theta)

At 0.01 s, 0.03 s, 0.05 s, … the controller of proportional and derivative parts sets

    F = kx (x - goal) + kv x' - kp theta - kd theta'

and between these instants F does not change: exact at any communication step, since samples are time events.

Source: R. V. Florian, "Correct equations for the dynamics of the cart-pole system", 2007 (there with the other sign of
theta); sampling with hold: K. J. Åström and B. Wittenmark, Computer-Controlled Systems, 3rd ed. 1997, chapter 2.
"""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Box, Cylinder, Model

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 320 230" font-family="serif" font-size="15">
<rect width="320" height="230" fill="white"/>
<path d="M20 195H300" stroke="#333" stroke-width="3"/>
<rect x="110" y="145" width="90" height="36" fill="#ddd" stroke="#333"/>
<circle cx="130" cy="186" r="8" fill="white" stroke="#333"/><circle cx="180" cy="186" r="8" fill="white" stroke="#333"/>
<path d="M155 158V40" stroke="#888" stroke-dasharray="5 4"/>
<path d="M155 158L122 48" stroke="#1f77b4" stroke-width="7" stroke-linecap="round"/>
<circle cx="155" cy="158" r="5" fill="white" stroke="#333" stroke-width="2"/>
<path d="M60 163H98" stroke="#9467bd" stroke-width="3"/><path d="M108 163l-11 -5v10z" fill="#9467bd"/>
<path d="M222 120V84H236V100H250V72H264V92H278V80" fill="none" stroke="#9467bd" stroke-width="2"/>
<g font-style="italic"><text x="132" y="70" fill="#d62728">θ</text><text x="48" y="168" fill="#9467bd">F</text>
<text x="206" y="168">M</text><text x="96" y="112">m, l</text><text x="282" y="76" fill="#9467bd">F(t)</text></g>
</svg>
"""


def sampled_cart_pole() -> Model:
    """The pole, tilted by 0.1 rad; the cart is to come to rest where it began."""
    x, theta, v, omega, force = me.dynamicsymbols("x theta v omega F")
    M, m, length, g, inertia = sm.symbols("M m l g I", positive=True)
    kx, kv, kp, kd, goal = gains = sm.symbols("kx kv kp kd goal", real=True)
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    A = N.orientnew("A", "Axis", (theta, N.z))
    A.set_ang_vel(N, omega * N.z)
    C = P.locatenew("C", length / 2 * A.y)
    C.v2pt_theory(P, N, A)
    cart, pole = me.Particle("cart", P, M), me.RigidBody("pole", C, A, m, (me.inertia(A, inertia, 0, inertia), C))
    loads = [(P, force * N.x), (C, -m * g * N.y)]
    rates = [x.diff() - v, theta.diff() - omega]
    kane = me.KanesMethod(N, [x, theta], [v, omega], rates, bodies=[cart, pole], forcelist=loads)

    model = Model("SampledCartPole", kane, description="A pole that a digital controller balances", diagram=DIAGRAM)
    model.parameter(M, 1.0, "kg", min=1e-6, description="mass of the cart")
    model.parameter(m, 0.1, "kg", min=1e-6, description="mass of the pole")
    model.parameter(length, 1.0, "m", min=1e-6, description="length of the pole")
    model.parameter(inertia, m * length**2 / 12, "kg.m2", description="central inertia of the pole")
    model.parameter(g, 9.81, "m/s2", min=0.0, description="acceleration of gravity")
    known = zip(gains, (3.0, 4.5, 35.0, 9.0, 0.0), ("N/m", "N.s/m", "N/rad", "N.s/rad", "m"), strict=True)
    words = ("gain of place", "gain of speed", "gain of angle", "gain of angular speed", "place to go to")
    for (symbol, value, unit), text in zip(known, words, strict=True):
        model.parameter(symbol, value, unit, description=text)
    model.coordinate(x, 0.0, "m", description="position of the cart")
    model.coordinate(theta, 0.1, "rad", display_unit="deg", description="angle of the pole from the upward vertical")
    model.speed(v, 0.0, "m/s", description="speed of the cart")
    model.speed(omega, 0.0, "rad/s", description="angular speed of the pole")
    model.discrete(force, 0.0, "N", name="force", description="force on the cart, held between samples")
    law = kx * (x - goal) + kv * v - kp * theta - kd * omega
    model.every(0.02, {force: law}, offset=0.01, name="sample")
    model.output("cart_acceleration", v.diff(), "m/s2", description="acceleration of the cart")
    model.output_kinetic_energy()
    model.visual(cart, Box(0.4, 0.16, 0.2))
    model.visual(pole, Cylinder(length, 0.02))
    model.trace(P.locatenew("tip", length * A.y))
    model.experiment(stop=2.0, step=0.04, tolerance=1e-8)
    return model
