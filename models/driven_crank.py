"""A crank with prescribed motion moves a slider to and fro, from which a pendulum hangs.

Coordinates: ``swing`` is the angle of the pendulum from straight down, positive counter-clockwise about ``N.z``. The
crank's angle from ``N.x`` is no coordinate but an input, ``theta``, and so are its rate ``theta_rate`` and its
acceleration ``theta_acceleration``: whoever connects the FMU says how the crank turns. Coupler and slider follow; with
the coupler longer than the crank their places are known in closed form,

    coupler = -asin(r sin(theta)/l),    slider = r cos(theta) + l cos(coupler),

measured from N.x and from the shaft. The pendulum obeys L swing'' = -g sin(swing) - slider'' cos(swing). Gravity acts
along -N.y. The output ``drive_torque`` is the torque about N.z that turns the crank, whose inertia about the shaft is
``J``: Lagrange's expression of the coordinate that theta would be. ``hook`` is the force of its rod on the weight.

Source: E. J. Haug, Computer Aided Kinematics and Dynamics of Mechanical Systems, Allyn and Bacon 1989, ch. 3
(slider-crank, driving constraints); the equation of the pendulum is elementary.
"""

from typing import Any

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Box, Cylinder, Model, Parts, Sphere

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 340 210" font-family="serif" font-size="15">
<rect width="340" height="210" fill="white"/>
<path d="M200 108H320M200 72H320" stroke="#333" stroke-width="2"/>
<path d="M20 90H230" stroke="#888" stroke-dasharray="5 4"/>
<path d="M70 90L100 44" stroke="#1f77b4" stroke-width="7" stroke-linecap="round"/>
<path d="M100 44L252 90" stroke="#2ca02c" stroke-width="6" stroke-linecap="round"/>
<rect x="234" y="74" width="36" height="32" fill="#ffe5cc" stroke="#ff7f0e" stroke-width="2"/>
<path d="M252 90L290 176" stroke="#9467bd" stroke-width="3"/><circle cx="290" cy="176" r="9" fill="#9467bd"/>
<path d="M252 112V180" stroke="#888" stroke-dasharray="4 4"/>
<g fill="white" stroke="#333" stroke-width="2"><circle cx="70" cy="90" r="5"/><circle cx="100" cy="44" r="4"/>
<circle cx="252" cy="90" r="4"/></g>
<path d="M104 90A34 34 0 0 0 89 61" fill="none" stroke="#d62728" stroke-width="2"/>
<path d="M84 57l9 1l-5 8z" fill="#d62728"/>
<path d="M70 118V150M252 150V140M74 144H248" stroke="#555" fill="none"/>
<g font-style="italic"><text x="108" y="82" fill="#d62728">θ(t)</text><text x="70" y="62">r</text>
<text x="176" y="60">l</text><text x="136" y="162">slider</text><text x="216" y="198" fill="#9467bd">swing</text>
<text x="280" y="138">L</text><text x="304" y="186">m</text></g>
</svg>
"""


def driven_crank() -> Model:
    """The crank swings to and fro, faster than the pendulum would by itself."""
    t = me.dynamicsymbols._t  # noqa: SLF001  (the symbol of time that SymPy mechanics uses)
    theta, swing, omega = me.dynamicsymbols("theta swing omega")
    r, length, L, J, mc, ms, m, g = sm.symbols("r l L J m_coupler m_slider m g", positive=True)
    coupler = -sm.asin(r * sm.sin(theta) / length)
    place = r * sm.cos(theta) + length * sm.cos(coupler)

    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    A = N.orientnew("A", "Axis", (theta, N.z))
    B = N.orientnew("B", "Axis", (coupler, N.z))
    C = N.orientnew("C", "Axis", (swing, N.z))
    C.set_ang_vel(N, omega * N.z)
    pin = O.locatenew("pin", place * N.x)
    tip = O.locatenew("tip", r * A.x)
    centre = tip.locatenew("centre", length / 2 * B.x)
    bob = pin.locatenew("bob", -L * C.y)
    crank = me.RigidBody("crank", O, A, 0, (me.inertia(A, 0, 0, J), O))
    rod = me.RigidBody("rod", centre, B, mc, (me.inertia(B, 0, 0, mc * length**2 / 12), centre))
    block, weight = me.Particle("block", pin, ms), me.Particle("weight", bob, m)
    # By Lagrange, with the coordinate that theta would be.
    rates = [(body.mass, body.masscenter.pos_from(O).dt(N).subs(swing.diff(t), omega)) for body in (rod, block, weight)]
    kinetic = sum(mass * v.dot(v) / 2 for mass, v in rates)
    kinetic += (J * theta.diff(t) ** 2 + mc * length**2 / 12 * coupler.diff(t) ** 2) / 2
    potential = (mc * centre.pos_from(O) + m * bob.pos_from(O)).dot(g * N.y)
    torque = kinetic.diff(theta.diff(t)).diff(t) - kinetic.diff(theta) + potential.diff(theta)
    parts = Parts(
        frame=N,
        origin=O,
        q=(swing,),
        u=(omega,),
        kinematic_equations=(swing.diff(t) - omega,),
        bodies=(crank, rod, block, weight),
        loads=(me.Force(centre, -mc * g * N.y), me.Force(pin, -ms * g * N.y), me.Force(bob, -m * g * N.y)),
    )

    model = Model("DrivenCrank", parts, description="A crank with prescribed motion shakes a pendulum", diagram=DIAGRAM)
    model.parameter(r, 0.1, "m", min=1e-6, description="length of the crank")
    model.parameter(length, 0.3, "m", min=1e-6, description="length of the coupler, more than the crank's")
    model.parameter(L, 0.4, "m", min=1e-6, description="length of the pendulum")
    model.parameter(J, 2e-3, "kg.m2", min=0.0, description="inertia of the crank about the shaft")
    model.parameter(mc, 0.3, "kg", min=0.0, description="mass of the coupler")
    model.parameter(ms, 0.5, "kg", min=1e-6, description="mass of the slider")
    model.parameter(m, 1.0, "kg", min=1e-6, description="mass of the pendulum")
    model.parameter(g, 9.81, "m/s2", min=0.0, description="acceleration of gravity, along -N.y")
    motion = 1.2 + 0.9 * sm.sin(6 * t)
    signals = {theta.diff(t, k) if k else theta: motion.diff(t, k) if k else motion for k in range(3)}
    kinds = (
        ("theta", "rad", "angle"),
        ("theta_rate", "rad/s", "rate"),
        ("theta_acceleration", "rad/s2", "acceleration"),
    )
    for (symbol, signal), (name, unit, what) in zip(signals.items(), kinds, strict=True):
        start = float(signal.subs(t, 0))
        model.input(symbol, start, unit, name=name, description=f"{what} of the crank about N.z, from N.x")
    model.coordinate(swing, 0.2, "rad", display_unit="deg", description="angle of the pendulum from straight down")
    model.speed(omega, 0.0, "rad/s", description="angular speed of the pendulum")
    model.output("coupler", coupler, "rad", display_unit="deg", description="angle of the coupler from N.x")
    model.output("slider", place, "m", description="distance of the slider from the shaft")
    model.output("slider_acceleration", place.diff(t, 2), "m/s2", description="its acceleration")
    model.output("drive_torque", torque, "N.m", description="torque on the crank about N.z that this motion takes")
    model.output_position("bob", bob)
    model.output_reaction("hook", [weight], at=bob, torque=False)
    _draw(model, (crank, rod, block, weight), (O, tip, pin, bob), (r, length))
    model.experiment(stop=4.0, step=0.01, tolerance=1e-8, signals=signals)
    return model


def _draw(model: Model, bodies: tuple[Any, ...], places: tuple[me.Point, ...], sizes: tuple[sm.Symbol, ...]) -> None:
    """A disc with the crank on it, the coupler, the slider between its rails, the pendulum."""
    (crank, rod, block, weight), (O, tip, pin, bob), (r, length) = bodies, places, sizes
    A, B = crank.frame, rod.frame
    N, C = (end.pos_from(start).separate().popitem()[0] for start, end in ((O, pin), (pin, bob)))
    model.visual(crank, Cylinder(r / 8, 1.2 * r), at=-r / 4 * A.z, along=A.z, color="#c9ced6")
    model.link(crank, O, tip, radius=r / 12)
    model.visual(rod, Cylinder(length, r / 14), along=B.x)
    model.visual(block, Box(0.8 * r, 0.5 * r, 0.5 * r))
    model.link(C, pin, bob, radius=r / 25)
    model.visual(weight, Sphere(0.3 * r))
    for place, frame in ((O, N), (tip, A), (pin, C)):
        model.visual(frame, Cylinder(0.6 * r, 0.12 * r), at=place, along=frame.z, color="#5b6470")
    for side in (-1, 1):
        rail = O.locatenew("rail", length * N.x + side * 0.3 * r * N.y)
        model.visual(N, Box(3.2 * r, 0.1 * r, 0.3 * r), at=rail, color="#8a94a3")
