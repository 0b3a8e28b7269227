"""A crank-slider with a flywheel, driven by the force of gas on its slider: one loop, and two dead centres a turn.

Coordinates: ``crank`` is the angle of the crank from ``N.x`` (along the cylinder, away from the shaft), ``coupler``
that of the coupler, counter-clockwise about ``N.z``; ``slider`` is the distance of the slider's pin from the shaft
along N.x. The loop closes where the coupler ends at the pin:

    r cos(crank) + l cos(coupler) = slider,    r sin(crank) + l sin(coupler) = 0.

Crank and flywheel together are balanced, with inertia ``J`` about the shaft; the coupler is a uniform rod. The input
``gas`` pushes the slider towards the shaft, the input ``load`` turns the crank. No gravity. At the dead centres, crank
and coupler in one line, the slider stands still and cannot say how the crank turns: it is the flywheel that goes on.

``coupler_mass=False`` leaves the coupler without mass: it only transmits a force along its line, and the mass matrix of
the three coordinates is singular everywhere.

Source: E. J. Haug, Computer Aided Kinematics and Dynamics of Mechanical Systems, Allyn and Bacon 1989, ch. 3 and 8
(slider-crank mechanism); the slider's place in terms of the crank's angle is elementary.
"""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Box, Cylinder, Model, Parts

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 340 180" font-family="serif" font-size="15">
<rect width="340" height="180" fill="white"/>
<path d="M215 88H310M215 132H310" stroke="#333" stroke-width="2"/>
<circle cx="70" cy="110" r="48" fill="#f2f2f2" stroke="#888"/>
<path d="M20 110H210" stroke="#888" stroke-dasharray="5 4"/>
<rect x="232" y="90" width="40" height="40" fill="#ffe5cc" stroke="#ff7f0e" stroke-width="2"/>
<path d="M70 110L95 70" stroke="#1f77b4" stroke-width="7" stroke-linecap="round"/>
<path d="M95 70L252 110" stroke="#2ca02c" stroke-width="6" stroke-linecap="round"/>
<g fill="white" stroke="#333" stroke-width="2"><circle cx="70" cy="110" r="5"/><circle cx="95" cy="70" r="4"/>
<circle cx="252" cy="110" r="4"/></g>
<path d="M322 110H284" stroke="#d62728" stroke-width="3"/><path d="M276 110l11 -5v10z" fill="#d62728"/>
<path d="M98 110A28 28 0 0 0 86 87" fill="none" stroke="#d62728" stroke-width="2"/>
<path d="M70 140V170M252 140V170M74 164H248" stroke="#555"/>
<g font-style="italic"><text x="102" y="104" fill="#d62728">crank</text><text x="70" y="84">r</text>
<text x="172" y="80">l</text><text x="142" y="158">slider</text><text x="290" y="102" fill="#d62728">gas</text>
<text x="42" y="148">J</text></g>
</svg>
"""


def crank_slider(coupler_mass: bool = True) -> Model:
    """The machine, started at 30 rad/s: more than ten turns."""
    t = me.dynamicsymbols._t  # noqa: SLF001  (the symbol of time that SymPy mechanics uses)
    q = crank, coupler, slider = me.dynamicsymbols("crank coupler slider")
    u = omega, nu, v = me.dynamicsymbols("omega nu v")
    gas, load = me.dynamicsymbols("gas load")
    r, length, J, m_wheel, mc, ms = sm.symbols("r l J m_wheel m_coupler m_slider", positive=True)

    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    A = N.orientnew("A", "Axis", (crank, N.z))
    B = N.orientnew("B", "Axis", (coupler, N.z))
    A.set_ang_vel(N, omega * N.z)
    B.set_ang_vel(N, nu * N.z)
    tip = O.locatenew("tip", r * A.x)
    end = tip.locatenew("end", length * B.x)
    pin = O.locatenew("pin", slider * N.x)
    pin.set_vel(N, v * N.x)
    bodies = [
        me.RigidBody("flywheel", O, A, m_wheel, (me.inertia(A, 0, 0, J), O)),
        me.Particle("piston", pin, ms),
    ]
    if coupler_mass:
        centre = tip.locatenew("centre", length / 2 * B.x)
        bodies.append(me.RigidBody("rod", centre, B, mc, (me.inertia(B, 0, 0, mc * length**2 / 12), centre)))
    loop = end.pos_from(pin)
    rows = (loop.dot(N.x), loop.dot(N.y))
    push = me.Force(pin, -gas * N.x)
    parts = Parts(
        frame=N,
        origin=O,
        q=q,
        u=u,
        kinematic_equations=tuple(speed - place.diff() for place, speed in zip(q, u, strict=True)),
        bodies=tuple(bodies),
        loads=(push,),
        actuators=(me.TorqueActuator(load, N.z, A, N),),
        holonomic_constraints=rows,
        q_dependent=(coupler, slider),
        u_dependent=(nu, v),
    )

    model = Model("CrankSlider", parts, description="A crank-slider with a flywheel, driven by gas", diagram=DIAGRAM)
    model.parameter(r, 0.05, "m", min=1e-6, description="length of the crank")
    model.parameter(length, 0.15, "m", min=1e-6, description="length of the coupler, more than the crank's")
    model.parameter(J, 0.05, "kg.m2", min=1e-9, description="inertia of crank and flywheel about the shaft")
    model.parameter(m_wheel, 8.0, "kg", min=0.0, description="mass of crank and flywheel")
    if coupler_mass:
        model.parameter(mc, 0.6, "kg", min=0.0, description="mass of the coupler")
    model.parameter(ms, 0.5, "kg", min=1e-6, description="mass of the slider")
    model.input(gas, 0.0, "N", description="force of the gas on the slider, towards the shaft")
    model.input(load, 0.0, "N.m", description="torque on the crank from the ground, counter-clockwise positive")
    model.coordinate(crank, 0.3, "rad", display_unit="deg", description="angle of the crank from N.x")
    model.coordinate(coupler, -0.0987, "rad", kind="guess", description="angle of the coupler from N.x")
    model.coordinate(slider, 0.197, "m", kind="guess", description="distance of the slider from the shaft")
    model.speed(omega, 30.0, "rad/s", nominal=10.0, description="angular speed of the crank")
    model.speed(nu, -9.6, "rad/s", nominal=10.0, kind="guess", description="angular speed of the coupler")
    model.speed(v, -0.6, "m/s", kind="guess", description="velocity of the slider away from the shaft")
    for axis, row in zip("xy", rows, strict=True):
        model.output_multiplier(f"pin_force.{axis}", row)
    model.output("acceleration", v.diff(), "m/s2", nominal=10.0, description="acceleration of the slider")
    model.output_power("gas_power", push)
    model.output_kinetic_energy()
    _draw(model, bodies, (O, tip, end, pin), (r, length))
    signals = {gas: 30 * (1 + sm.cos(29 * t)), load: -0.1}
    model.experiment(stop=2.6, step=0.005, tolerance=1e-8, signals=signals)
    return model


def _draw(
    model: Model, bodies: list[me.RigidBody | me.Particle], places: tuple[me.Point, ...], sizes: tuple[sm.Symbol, ...]
) -> None:
    """Flywheel behind the crank, coupler (with a body or without), the slider between its walls."""
    (O, tip, end, pin), (r, length) = places, sizes
    wheel, piston, *rod = bodies
    N, A = pin.pos_from(O).separate().popitem()[0], wheel.frame
    B = end.pos_from(tip).separate().popitem()[0]
    model.visual(wheel, Cylinder(r / 6, 1.3 * r), at=-r / 3 * A.z, along=A.z, color="#c9ced6")
    model.link(wheel, O, tip, radius=r / 8)
    model.link(rod[0] if rod else B, tip, end, radius=r / 10, color="#54a24b")
    model.visual(piston, Box(r, 0.8 * r, 0.8 * r))
    for place, frame in ((O, N), (tip, A), (pin, N)):
        model.visual(frame, Cylinder(r / 2, r / 7), at=place, along=frame.z, color="#5b6470")
    for side in (-1, 1):
        wall = O.locatenew("wall", length * N.x + side * 0.47 * r * N.y)
        model.visual(N, Box(3.4 * r, 0.1 * r, 0.5 * r), at=wall, color="#8a94a3")
