"""A pole on a cart that a force pushes along a rail: the plant of many controllers, a System with joints.

Coordinates: ``x`` is the position of the cart along ``N.x`` (to the right), ``theta`` the angle of the pole from the
*upward* vertical, positive counter-clockwise about ``N.z`` (out of the page), so that the pole falls to the left for
theta > 0. The input ``force`` pushes the cart along ``N.x``. The rail brakes with ``c`` x', the hinge with ``b``
theta'.

Equations, with the central inertia I = m l²/12 of the uniform pole of length l:

    (M + m) x'' - m l/2 cos(theta) theta'' + m l/2 sin(theta) theta'² = F - c x'
    -m l/2 cos(theta) x'' + (I + m l²/4) theta'' = m g l/2 sin(theta) - b theta'

Source: R. V. Florian, "Correct equations for the dynamics of the cart-pole system", 2007 (there with the other sign of
theta).
"""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Box, Cylinder, Model

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 320 230" font-family="serif" font-size="15">
<rect width="320" height="230" fill="white"/>
<path d="M20 195H300" stroke="#333" stroke-width="3"/>
<rect x="140" y="145" width="90" height="36" fill="#ddd" stroke="#333"/>
<circle cx="160" cy="186" r="8" fill="white" stroke="#333"/><circle cx="210" cy="186" r="8" fill="white" stroke="#333"/>
<path d="M185 158V40" stroke="#888" stroke-dasharray="5 4"/>
<path d="M185 158L130 52" stroke="#1f77b4" stroke-width="7" stroke-linecap="round"/>
<circle cx="185" cy="158" r="5" fill="white" stroke="#333" stroke-width="2"/>
<path d="M185 88A70 70 0 0 0 157 94" fill="none" stroke="#d62728" stroke-width="2"/>
<path d="M151 97l6 -7l3 8z" fill="#d62728"/>
<path d="M90 163H128" stroke="#9467bd" stroke-width="3"/><path d="M138 163l-11 -5v10z" fill="#9467bd"/>
<path d="M40 195V215M40 210H176" stroke="#d62728" fill="none"/><path d="M184 210l-10 -4v8z" fill="#d62728"/>
<path d="M185 195V218" stroke="#d62728"/>
<g font-style="italic"><text x="163" y="82" fill="#d62728">θ</text><text x="108" y="226" fill="#d62728">x</text>
<text x="78" y="168" fill="#9467bd">F</text><text x="236" y="168">M</text><text x="112" y="112">m, l</text>
<text x="286" y="92">g</text></g>
<path d="M276 65V101" stroke="#333" stroke-width="2"/><path d="M276 107l-5 -10h10z" fill="#333"/>
<path d="M20 50H52M20 50V18" stroke="#555" fill="none"/>
<text x="56" y="55" font-size="12">N.x</text><text x="12" y="13" font-size="12">N.y</text>
</svg>
"""


def cart_pole() -> Model:
    """The pole falls from 0.1 rad while a sinusoidal force shakes the cart."""
    t = me.dynamicsymbols._t  # noqa: SLF001  (the symbol of time that SymPy mechanics uses)
    x, theta, v, omega, force = me.dynamicsymbols("x theta v omega F")
    M, m, length, g, c, b, inertia = sm.symbols("M m l g c b I", positive=True)

    rail = me.RigidBody("rail")
    system = me.System.from_newtonian(rail)
    N = system.frame
    # The inertia of the cart never matters, for it does not turn: it is left out by making the cart a particle.
    cart_frame, A = me.ReferenceFrame("C"), me.ReferenceFrame("A")
    cart = me.Particle("cart", mass=M)
    pole = me.RigidBody("pole", frame=A, mass=m)
    pole.central_inertia = me.inertia(A, inertia, 0, inertia)
    slide = me.PrismaticJoint("slide", rail, cart, x, v, child_interframe=cart_frame, joint_axis=N.x)
    hinge = me.PinJoint(
        "hinge",
        cart,
        pole,
        theta,
        omega,
        parent_interframe=cart_frame,
        child_point=-length / 2 * A.y,
        joint_axis=cart_frame.z,
    )
    system.add_joints(slide, hinge)
    system.apply_uniform_gravity(-g * N.y)
    push = me.Force(cart, force * N.x)
    system.add_loads(push, me.Force(cart, -c * v * N.x))
    system.add_actuators(me.TorqueActuator.at_pin_joint(-b * omega, hinge))
    tip = pole.masscenter.locatenew("tip", length / 2 * A.y)
    tip.v2pt_theory(pole.masscenter, N, A)

    model = Model("CartPole", system, description="A pole on a cart, pushed by a force", diagram=DIAGRAM)
    model.parameter(M, 1.0, "kg", min=1e-6, description="mass of the cart")
    model.parameter(m, 0.1, "kg", min=1e-6, description="mass of the pole")
    model.parameter(length, 1.0, "m", min=1e-6, description="length of the pole")
    model.parameter(inertia, m * length**2 / 12, "kg.m2", description="central inertia of the pole")
    model.parameter(g, 9.81, "m/s2", min=0.0, description="acceleration of gravity")
    model.parameter(c, 0.1, "N.s/m", min=0.0, description="viscous friction of the rail")
    model.parameter(b, 0.001, "N.m.s/rad", min=0.0, description="viscous friction of the hinge")
    model.input(force, 0.0, "N", name="force", description="force on the cart, to the right")
    model.coordinate(x, 0.0, "m", description="position of the cart")
    model.coordinate(theta, 0.1, "rad", display_unit="deg", description="angle of the pole from the upward vertical")
    model.speed(v, 0.0, "m/s", description="speed of the cart")
    model.speed(omega, 0.0, "rad/s", display_unit="rpm", description="angular speed of the pole")
    model.output_position("tip", tip)
    model.output("cart_acceleration", v.diff(t), "m/s2", description="acceleration of the cart")
    model.output_power("force_power", push)
    model.output_total_energy()
    model.visual(cart, Box(0.4, 0.16, 0.2))
    model.visual(pole, Cylinder(length, 0.02))
    model.trace(tip)
    model.arrow(push)
    model.experiment(stop=6.0, step=0.01, tolerance=1e-8, signals={force: 2 * sm.sin(3 * t)})
    return model
