"""A slider-crank whose pin has play in the bush of the slider: it flies, strikes, slides along the bush and rests.

Coordinates: ``crank`` is the angle of the crank from ``N.x`` (along the guide, away from the shaft), ``coupler`` that
of the connecting rod, counter-clockwise about ``N.z``; ``slider`` is the distance of the bush's middle from the shaft
along N.x. No loop closes: the middle of the pin, at the end of the rod, is at e from the middle of the bush,

    e = (r cos(crank) + l cos(coupler) - slider,  r sin(crank) + l sin(coupler)),    |e| <= c

with the radial clearance c. Where |e| = c the pin touches the bush, with Coulomb's friction, and strikes it by
Poisson's law of restitution. The gap is written as (c^2 - e^2) / (2 c): where it is zero its rate is that of c - |e|,
and it has one in the middle of the bush too. The slip is that of the pin's surface, of radius R, which turns with the
rod:

    slip = (e x e') / c + R coupler'.

A flywheel drives the crank; nothing takes energy but impacts and friction. For c and mu to 0 the motion is that of the
ideal mechanism, ``crank_slider``.

Source: P. Flores, J. Ambrosio, J. C. P. Claro, H. M. Lankarani, Kinematics and Dynamics of Multibody Systems with
Imperfect Joints, Springer 2008, ch. 3 (revolute joint with clearance) and the slider-crank of its examples, with a
compliant contact there; the rigid contact is that of F. Pfeiffer and C. Glocker, Multibody Dynamics with Unilateral
Contacts, Wiley 1996, ch. 5 and 8.
"""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Box, Cylinder, Impact, Model

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 340 190" font-family="serif" font-size="15">
<rect width="340" height="190" fill="white"/>
<path d="M196 82H310M196 138H310" stroke="#333" stroke-width="2"/>
<circle cx="70" cy="110" r="48" fill="#f2f2f2" stroke="#888"/>
<path d="M20 110H190" stroke="#888" stroke-dasharray="5 4"/>
<rect x="216" y="84" width="60" height="52" fill="#ffe5cc" stroke="#ff7f0e" stroke-width="2"/>
<circle cx="246" cy="110" r="19" fill="white" stroke="#333" stroke-width="2"/>
<path d="M70 110L95 70" stroke="#1f77b4" stroke-width="7" stroke-linecap="round"/>
<path d="M95 70L240 107" stroke="#2ca02c" stroke-width="6" stroke-linecap="round"/>
<circle cx="240" cy="107" r="11" fill="#d9ead3" stroke="#333" stroke-width="2"/>
<g fill="white" stroke="#333" stroke-width="2"><circle cx="70" cy="110" r="5"/><circle cx="95" cy="70" r="4"/></g>
<path d="M98 110A28 28 0 0 0 86 87" fill="none" stroke="#d62728" stroke-width="2"/>
<path d="M70 140V176M246 140V176M74 170H242" stroke="#555"/>
<g font-style="italic"><text x="102" y="104" fill="#d62728">crank</text><text x="70" y="84">r</text>
<text x="160" y="78">l</text><text x="140" y="164">slider</text><text x="42" y="148">J</text>
<text x="284" y="66" fill="#d62728">c</text></g>
<path d="M262 104L286 70" stroke="#d62728"/>
</svg>
"""


def slider_crank_clearance() -> Model:
    """The machine at 40 rad/s for most of a turn, the pin resting in its bush at the start."""
    q = crank, coupler, slider = me.dynamicsymbols("crank coupler slider")
    u = omega, nu, v = me.dynamicsymbols("omega nu v")
    load = me.dynamicsymbols("load")
    r, length, J, m_wheel, mc, ms = sm.symbols("r l J m_wheel m_coupler m_slider", positive=True)
    c, radius, mu, e = sm.symbols("c R mu e", positive=True)

    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    A = N.orientnew("A", "Axis", (crank, N.z))
    B = N.orientnew("B", "Axis", (coupler, N.z))
    A.set_ang_vel(N, omega * N.z)
    B.set_ang_vel(N, nu * N.z)
    tip = O.locatenew("tip", r * A.x)
    tip.v2pt_theory(O, N, A)
    centre, pin = tip.locatenew("centre", length / 2 * B.x), tip.locatenew("pin", length * B.x)
    centre.v2pt_theory(tip, N, B)
    pin.v2pt_theory(tip, N, B)
    bush = O.locatenew("bush", slider * N.x)
    bush.set_vel(N, v * N.x)
    wheel = me.RigidBody("flywheel", O, A, m_wheel, (me.inertia(A, 0, 0, J), O))
    rod = me.RigidBody("rod", centre, B, mc, (me.inertia(B, 0, 0, mc * length**2 / 12), centre))
    block = me.Particle("block", bush, ms)
    rates = [place.diff() - speed for place, speed in zip(q, u, strict=True)]
    kane = me.KanesMethod(N, q, u, rates, bodies=[wheel, rod, block], forcelist=[(A, load * N.z)])

    model = Model("SliderCrankClearance", kane, description="A slider-crank whose pin has play", diagram=DIAGRAM)
    model.parameter(r, 0.05, "m", min=1e-6, description="length of the crank")
    model.parameter(length, 0.15, "m", min=1e-6, description="length of the rod, more than the crank's")
    model.parameter(J, 0.05, "kg.m2", min=1e-9, description="inertia of crank and flywheel about the shaft")
    model.parameter(m_wheel, 8.0, "kg", min=0.0, description="mass of crank and flywheel")
    model.parameter(mc, 0.3, "kg", min=1e-6, description="mass of the rod")
    model.parameter(ms, 0.5, "kg", min=1e-6, description="mass of the slider")
    model.parameter(c, 5e-4, "m", min=1e-9, description="radial clearance of the pin in its bush")
    model.parameter(radius, 0.01, "m", min=0.0, description="radius of the pin")
    model.parameter(e, 0.4, min=0.0, max=1.0, description="coefficient of restitution of the pin in its bush")
    model.parameter(mu, 0.1, min=0.0, description="coefficient of friction of the pin in its bush")
    model.input(load, 0.0, "N.m", description="torque on the crank from the ground, counter-clockwise positive")
    model.coordinate(crank, 0.0, "rad", display_unit="deg", description="angle of the crank from N.x")
    model.coordinate(coupler, 0.0, "rad", description="angle of the rod from N.x")
    model.coordinate(slider, 0.1995, "m", description="distance of the slider from the shaft")
    model.speed(omega, 40.0, "rad/s", nominal=10.0, description="angular speed of the crank")
    model.speed(nu, -40.0 / 3, "rad/s", nominal=10.0, description="angular speed of the rod")
    model.speed(v, 0.0, "m/s", description="velocity of the slider away from the shaft")
    off, rate = pin.pos_from(bush), pin.vel(N) - bush.vel(N)
    ex, ey, vx, vy = (each.dot(axis) for each in (off, rate) for axis in (N.x, N.y))
    model.add(
        Impact(
            "joint", (c**2 - ex**2 - ey**2) / (2 * c), slip=(ex * vy - ey * vx) / c + radius * nu, friction=mu,
            restitution=e, law="poisson", rest_below=0.01, starts_resting=True,
        )
    )  # fmt: skip
    for axis, part in (("x", ex), ("y", ey)):
        model.output(
            f"play.{axis}", part / c, description=f"the pin from the middle of its bush along N.{axis}, over c"
        )
    model.output_kinetic_energy()
    _draw(model, (wheel, rod, block), (O, tip, pin, bush), (r, length))
    model.experiment(stop=0.12, step=0.004, tolerance=1e-9, signals={load: sm.S.Zero})
    return model


def _draw(
    model: Model,
    bodies: tuple[me.RigidBody | me.Particle, ...],
    places: tuple[me.Point, ...],
    sizes: tuple[sm.Symbol, ...],
) -> None:
    """Flywheel behind the crank, the rod with its pin, the slider with its bush between two walls."""
    (O, tip, pin, bush), (r, length), (wheel, rod, block) = places, sizes, bodies
    N, A, B = bush.pos_from(O).separate().popitem()[0], wheel.frame, rod.frame
    model.visual(wheel, Cylinder(r / 6, 1.3 * r), at=-r / 3 * A.z, along=A.z, color="#c9ced6")
    model.link(wheel, O, tip, radius=r / 8)
    model.link(rod, tip, pin, radius=r / 10, color="#54a24b")
    model.visual(block, Box(r, 0.8 * r, 0.4 * r), at=-r / 3 * N.z)
    model.visual(N, Cylinder(r / 12, r / 4), at=bush, along=N.z, color="#5b6470")
    for place, frame in ((O, N), (tip, A), (pin, B)):
        model.visual(frame, Cylinder(r / 2, r / 7), at=place, along=frame.z, color="#8a94a3")
    for side in (-1, 1):
        wall = O.locatenew("wall", length * N.x + side * 0.47 * r * N.y)
        model.visual(N, Box(3.4 * r, 0.1 * r, 0.5 * r), at=wall, color="#8a94a3")
