"""A valve train: an eccentric cam, a tappet with its pushrod, a rocker, a valve; joints given by expressions.

Coordinates: ``cam`` is the angle of the camshaft about ``N.z``, counter-clockwise positive, 0 where the eccentric
points straight down; ``lift`` is how far tappet and pushrod have gone up, ``rocker`` the angle of the rocker about N.z,
0 where it is level, ``valve`` how far the valve is open, downwards. The cam is a disc with its centre ``e`` beside the
axis, the tappet's face is flat, the rocker has balls at its ends, ``a`` and ``b`` from its pivot, which touch flat ends
of pushrod and stem. So each joint's place is an expression of the one before:

    lift = e (1 - cos(cam)),    rocker = asin(lift / a),    valve = b sin(rocker).

The spring closes the valve with ``F0 + k valve``. Gravity, little beside that, is left out. The rows hold to both
sides, as of a cam that also draws back; a train that only pushes moves like this as long as its forces are positive,
and the multipliers are these: ``cam_force`` of the cam on the tappet, ``rocker_torque`` of the pushrod on the rocker,
``valve_force`` of the rocker on the valve. In terms of the camshaft alone, with ' for the slope by ``cam`` and w its
angular speed,

    (J + m1 lift'² + I rocker'² + m2 valve'²) dw/dt + (m1 lift' lift'' + I rocker' rocker'' + m2 valve' valve'') w²
        = torque - d w - (F0 + k valve) valve'.

Source: R. L. Norton, Cam Design and Manufacturing Handbook, 2nd ed., Industrial Press 2009 (forces in valve trains);
the rows are elementary geometry, of the kind of PyMbs' ``AddLoop.ExpJoint`` (C. Schubert, TU Dresden).
"""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Box, Cylinder, Model, Parts, Sphere

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 320 250" font-family="serif" font-size="15">
<rect width="320" height="250" fill="white"/>
<circle cx="236" cy="212" r="30" fill="#cfe2f3" stroke="#1f77b4" stroke-width="2"/>
<path d="M236 196L236 212" stroke="#d62728" stroke-width="2"/><circle cx="236" cy="196" r="4" fill="white" stroke="#333"
stroke-width="2"/><circle cx="236" cy="212" r="2.500" fill="#d62728"/>
<path d="M210 180H262M236 180V66" stroke="#2ca02c" stroke-width="6"/><path d="M226 64H246" stroke="#2ca02c"
stroke-width="5"/>
<path d="M72 54L236 54" stroke="#ff7f0e" stroke-width="8" stroke-linecap="round"/>
<path d="M154 54L144 76H164z" fill="#d9dde3" stroke="#555"/><circle cx="154" cy="54" r="4" fill="white" stroke="#333"
stroke-width="2"/><circle cx="72" cy="56" r="6" fill="#ff7f0e"/><circle cx="236" cy="56" r="6" fill="#ff7f0e"/>
<path d="M72 64V206" stroke="#9467bd" stroke-width="5"/><path d="M60 65H84" stroke="#9467bd" stroke-width="5"/>
<path d="M48 206H96L84 196H60z" fill="#9467bd"/>
<path d="M60 72L84 82L60 92L84 102L60 112L84 122L60 130" fill="none" stroke="#555" stroke-width="2"/>
<path d="M36 132H108" stroke="#333" stroke-width="3"/>
<path d="M272 196A24 24 0 0 1 258 226" fill="none" stroke="#d62728" stroke-width="2"/>
<path d="M269 187l6 9h-8z" fill="#d62728"/>
<g font-style="italic"><text x="240" y="209" fill="#d62728">e</text><text x="276" y="222" fill="#d62728">cam</text>
<text x="248" y="130" fill="#2ca02c">lift</text><text x="190" y="44" fill="#ff7f0e">a</text>
<text x="108" y="44" fill="#ff7f0e">b</text><text x="140" y="94" fill="#ff7f0e">rocker</text>
<text x="104" y="186" fill="#9467bd">valve</text><text x="92" y="106">k, F₀</text></g>
</svg>
"""


def valve_train() -> Model:
    """A camshaft that is driven faster and faster."""
    t = me.dynamicsymbols._t  # noqa: SLF001  (the symbol of time that SymPy mechanics uses)
    q = cam, lift, rocker, valve = me.dynamicsymbols("cam lift rocker valve")
    u = w_cam, v_lift, w_rocker, v_valve = me.dynamicsymbols("w_cam v_lift w_rocker v_valve")
    torque = me.dynamicsymbols("torque")
    sizes = e, a, b = sm.symbols("e a b", positive=True)
    h = 4 * a  # the height of the rocker, which moves nothing
    masses = J, m_tappet, I_rocker, m_valve, k, F0, d = sm.symbols("J m_tappet I_rocker m_valve k F0 d", positive=True)

    N, O = me.ReferenceFrame("N"), me.Point("O")
    pivot = O.locatenew("pivot", -a * N.x + h * N.y)
    A, B = N.orientnew("A", "Axis", (cam, N.z)), N.orientnew("B", "Axis", (rocker, N.z))
    A.set_ang_vel(N, w_cam * N.z)
    B.set_ang_vel(N, w_rocker * N.z)
    top = O.locatenew("top", (h + lift) * N.y)
    tip = pivot.locatenew("tip", -b * N.x - valve * N.y)
    for place, velocity in ((O, 0), (pivot, 0), (top, v_lift * N.y), (tip, -v_valve * N.y)):
        place.set_vel(N, velocity)
    bodies = (
        me.RigidBody("camshaft", O, A, 2, (me.inertia(A, 0, 0, J), O)),
        me.Particle("tappet", top, m_tappet),
        me.RigidBody("rocker_arm", pivot, B, 0.2, (me.inertia(B, 0, 0, I_rocker), pivot)),
        me.Particle("stem", tip, m_valve),
    )
    rows = (e * (1 - sm.cos(cam)) - lift, sm.asin(lift / a) - rocker, b * sm.sin(rocker) - valve)
    drive = me.TorqueActuator(torque - d * w_cam, N.z, A, N)
    parts = Parts(
        frame=N,
        origin=O,
        q=q,
        u=u,
        kinematic_equations=tuple(speed - place.diff() for place, speed in zip(q, u, strict=True)),
        bodies=bodies,
        loads=(me.Force(tip, (F0 + k * valve) * N.y),),
        actuators=(drive,),
        holonomic_constraints=rows,
        q_dependent=q[1:],
        u_dependent=u[1:],
    )

    model = Model("ValveTrain", parts, description="A cam, a tappet, a rocker and a valve", diagram=DIAGRAM)
    _declare_numbers(model, sizes, masses)
    model.input(torque, 0.0, "N.m", description="torque on the camshaft, counter-clockwise positive")
    model.coordinate(cam, 0.3, "rad", description="angle of the camshaft, 0 where the valve is shut")
    model.coordinate(lift, 2e-4, "m", nominal=1e-2, kind="guess", description="tappet's displacement upwards")
    model.coordinate(rocker, 0.006, "rad", nominal=0.1, kind="guess", description="angle of the rocker, 0 where level")
    model.coordinate(valve, 3e-4, "m", nominal=1e-2, kind="guess", description="opening of the valve")
    model.speed(w_cam, 150.0, "rad/s", nominal=100.0, description="angular speed of the camshaft")
    model.speed(v_lift, 0.18, "m/s", kind="guess", description="velocity of the tappet upwards")
    model.speed(w_rocker, 5.9, "rad/s", nominal=10.0, kind="guess", description="angular speed of the rocker")
    model.speed(v_valve, 0.27, "m/s", kind="guess", description="velocity of the valve, opening")
    for name, row in zip(("cam_force", "rocker_torque", "valve_force"), rows, strict=True):
        model.output_multiplier(name, row)
    model.output("valve_acceleration", v_valve.diff(), "m/s2", nominal=100.0, description="acceleration of the valve")
    model.output_power("drive_power", drive)
    model.output_total_energy()
    _draw(model, bodies, (O, top, pivot, tip), sizes)
    model.experiment(stop=0.3, step=5e-4, tolerance=1e-8, signals={torque: 2 + sm.sin(40 * t)})
    return model


def _declare_numbers(model: Model, sizes: tuple[sm.Symbol, ...], masses: tuple[sm.Symbol, ...]) -> None:
    """Those of a car's engine."""
    (e, a, b), (J, m_tappet, I_rocker, m_valve, k, F0, d) = sizes, masses
    model.parameter(e, 0.004, "m", min=1e-6, description="distance of the eccentric's centre from the axis")
    model.parameter(a, 0.030, "m", min=1e-6, description="rocker's arm on the side of the pushrod, more than 2 e")
    model.parameter(b, 0.045, "m", min=1e-6, description="rocker's arm on the side of the valve")
    model.parameter(J, 4e-3, "kg.m2", min=1e-9, description="inertia of the camshaft with what turns with it")
    model.parameter(m_tappet, 0.12, "kg", min=0.0, description="mass of tappet and pushrod")
    model.parameter(I_rocker, 4e-5, "kg.m2", min=0.0, description="inertia of the rocker about its pivot")
    model.parameter(m_valve, 0.10, "kg", min=0.0, description="mass of the valve with its share of the spring")
    model.parameter(k, 3e4, "N/m", min=0.0, description="stiffness of the spring")
    model.parameter(F0, 250.0, "N", min=0.0, description="force of the spring where the valve is shut")
    model.parameter(d, 2e-3, "N.m.s/rad", min=0.0, description="damping of the camshaft")


def _draw(
    model: Model,
    bodies: tuple[me.RigidBody | me.Particle, ...],
    places: tuple[me.Point, ...],
    sizes: tuple[sm.Symbol, ...],
) -> None:
    """The eccentric, tappet and pushrod, the rocker with its balls, the valve with its head."""
    (shaft, _, rocker, _), (O, top, pivot, tip), (e, a, b) = bodies, places, sizes
    R, h = 4 * e, 4 * a
    A, B = shaft.frame, rocker.frame
    N = top.pos_from(O).separate().popitem()[0]
    model.visual(shaft, Cylinder(R, R), at=-e * A.y, along=A.z)
    model.visual(shaft, Cylinder(2.6 * R, R / 3), along=A.z, color="#5b6470")
    face, end = top.locatenew("face", (R - e - h) * N.y), tip.locatenew("head", (2 * R - h) * N.y)
    model.visual(N, Cylinder(R / 4, R), at=face.locatenew("plate", R / 8 * N.y), along=N.y, color="#2ca02c")
    model.link(N, face, top.locatenew("under_ball", -R / 5 * N.y), radius=R / 6, color="#2ca02c")
    balls = (pivot.locatenew("ball", a * B.x), pivot.locatenew("ball", -b * B.x))
    model.link(rocker, *balls, radius=R / 5)
    model.visual(N, Box(R / 2, R / 2, 1.4 * R), at=pivot, color="#8a94a3")
    for ball in balls:
        model.visual(rocker, Sphere(0.28 * R), at=ball)
    model.link(N, tip.locatenew("under_ball", -R / 5 * N.y), end, radius=R / 7, color="#9467bd")
    model.visual(N, Cylinder(R / 5, 1.1 * R), at=end, along=N.y, color="#9467bd")
