"""Rack-and-pinion steering: a hand wheel, a rack, a tie rod to the steering arm of either knuckle; two loops.

Seen from above, ``N.x`` forwards, ``N.y`` to the left, angles about ``N.z``, counter-clockwise positive. Coordinates:
``wheel`` is the angle of hand wheel and pinion, ``rack`` how far the rack is to the left, ``tie_left``, ``tie_right``
are the angles of the tie rods from N.y, ``steer_left``, ``steer_right`` those of the front wheels. The rack is ``h``
behind the king pins, which are ``b`` to either side; its ends are ``w`` from its middle; the steering arms end ``ax``
behind and ``ay`` within the king pins. The pinion rolls on the rack, and each tie rod ends at its steering arm:

    rack = r wheel,    (-h, ±w + rack) ± l (-sin tie, cos tie) = (0, ±b) + R(steer) (-ax, ∓ay).

The length of the tie rods, l, is such that both wheels are straight where the rack is in its middle. As the arms point
inwards the inner wheel is steered more than the outer one. The tyres draw back the wheels with stiffness ``c`` and
damping ``d``; the input ``torque`` turns the hand wheel.

With ``--constraints explicit`` the pinion is a ``TransmissionLoopSolver``, each tie rod a ``FourBarLoopSolver``.

Source: J. Reimpell, H. Stoll, J. W. Betzler, The Automotive Chassis, 2nd ed. 2001, sect. 4.2 (rack and pinion);
the loop is that of PyMbs' ``AddLoop.Steering`` (C. Schubert, TU Dresden).
"""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Box, Cylinder, Model, Parts

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 340 180" font-family="serif" font-size="15">
<rect width="340" height="180" fill="white"/>
<g fill="#d9dde3" stroke="#555"><rect x="22" y="22" width="16" height="60" rx="5" transform="rotate(-12 30 52)"/>
<rect x="302" y="22" width="16" height="60" rx="5" transform="rotate(-9 310 52)"/></g>
<path d="M48 52L66 98M292 52L280 100" stroke="#2ca02c" stroke-width="5" stroke-linecap="round"/>
<path d="M66 98L122 120M280 100L228 120" stroke="#ff7f0e" stroke-width="4"/>
<rect x="116" y="115" width="118" height="10" fill="#cfe2f3" stroke="#1f77b4"/>
<circle cx="170" cy="130" r="9" fill="#f2f2f2" stroke="#333" stroke-width="2"/>
<g fill="white" stroke="#333" stroke-width="2"><circle cx="48" cy="52" r="4"/><circle cx="292" cy="52" r="4"/>
<circle cx="66" cy="98" r="4"/><circle cx="280" cy="100" r="4"/><circle cx="122" cy="120" r="4"/>
<circle cx="228" cy="120" r="4"/></g>
<path d="M170 52V22M170 52H140" stroke="#333" stroke-width="2"/><path d="M170 16l-4 9h8zM134 52l9 -4v8z" fill="#333"/>
<path d="M194 138A26 26 0 0 1 160 156" fill="none" stroke="#d62728" stroke-width="2"/>
<path d="M196 130l-6 9l9 1z" fill="#d62728"/>
<g font-style="italic"><text x="178" y="24">x</text><text x="124" y="48">y</text><text x="86" y="122">l</text>
<text x="62" y="78">ax, ay</text><text x="198" y="158" fill="#d62728">wheel, torque</text>
<text x="200" y="110">rack</text>
<text x="4" y="102">steer</text></g>
</svg>
"""


def steering_linkage() -> Model:
    """The hand wheel swung from side to side."""
    t = me.dynamicsymbols._t  # noqa: SLF001  (the symbol of time that SymPy mechanics uses)
    q = wheel, rack, *_ = me.dynamicsymbols("wheel rack tie_left steer_left tie_right steer_right")
    u = w_wheel, v_rack, *_ = me.dynamicsymbols("w_wheel v_rack w_tie_left w_steer_left w_tie_right w_steer_right")
    torque = me.dynamicsymbols("torque")
    r, h, b, w, ax, ay, l = sm.symbols("r h b w ax ay l", positive=True)
    J, m_rack, m_tie, I_knuckle, c, d = sm.symbols("J m_rack m_tie I_knuckle c d", positive=True)

    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    hub = O.locatenew("hub", -2 * h * N.x)
    hub.set_vel(N, 0)
    W = N.orientnew("W", "Axis", (wheel, N.z))
    W.set_ang_vel(N, w_wheel * N.z)
    middle = O.locatenew("middle", -h * N.x + rack * N.y)
    middle.set_vel(N, v_rack * N.y)
    bodies = [
        me.RigidBody("hand_wheel", hub, W, 1, (me.inertia(W, 0, 0, J), hub)),
        me.Particle("rack", middle, m_rack),
    ]
    rows = {"pinion": rack - r * wheel}
    actuators = [me.TorqueActuator(torque, N.z, W, N)]
    looks = []
    for k, (side, name) in enumerate(((1, "left"), (-1, "right"))):
        T, K = (N.orientnew(f"{kind}_{name}", "Axis", (q[2 + 2 * k + i], N.z)) for i, kind in enumerate("TK"))
        T.set_ang_vel(N, u[2 + 2 * k] * N.z)
        K.set_ang_vel(N, u[3 + 2 * k] * N.z)
        inner = middle.locatenew(f"inner_{name}", side * w * N.y)
        outer = inner.locatenew(f"outer_{name}", side * l * T.y)
        king = O.locatenew(f"king_{name}", side * b * N.y)
        king.set_vel(N, 0)
        arm = king.locatenew(f"arm_{name}", -ax * K.x - side * ay * K.y)
        centre = inner.locatenew(f"centre_{name}", side * l / 2 * T.y)
        rod = me.RigidBody(f"tie_{name}", centre, T, m_tie, (me.inertia(T, 0, 0, m_tie * l**2 / 12), centre))
        knuckle = me.RigidBody(f"knuckle_{name}", king, K, 30, (me.inertia(K, 0, 0, I_knuckle), king))
        bodies += [rod, knuckle]
        gap = outer.pos_from(arm)
        rows |= {f"{name}.{axis}": gap.dot(getattr(N, axis)) for axis in "xy"}
        actuators.append(me.TorqueActuator(-c * q[3 + 2 * k] - d * u[3 + 2 * k], N.z, K, N))
        looks.append((rod, knuckle, (inner, outer, king, arm)))
    parts = Parts(
        frame=N,
        origin=O,
        q=q,
        u=u,
        kinematic_equations=tuple(speed - place.diff() for place, speed in zip(q, u, strict=True)),
        bodies=tuple(bodies),
        actuators=tuple(actuators),
        holonomic_constraints=tuple(rows.values()),
        q_dependent=q[1:],
        u_dependent=u[1:],
    )

    model = Model("SteeringLinkage", parts, description="Rack-and-pinion steering with its linkage", diagram=DIAGRAM)
    _declare_sizes(model, (r, h, b, w, ax, ay, l))
    _declare_masses(model, (J, m_rack, m_tie, I_knuckle, c, d))
    model.input(torque, 0.0, "N.m", description="torque on the hand wheel, counter-clockwise positive")
    _declare_motion(model, q, u)
    for name, row in rows.items():
        model.constraint(row, name)
    model.output_multiplier("tooth_force", rows["pinion"])
    model.output("wheel_acceleration", w_wheel.diff(), "rad/s2", description="angular acceleration of the hand wheel")
    model.output_power("hand_power", actuators[0])
    model.output_total_energy()
    _draw(model, bodies, looks, (r, h, w))
    model.experiment(stop=4.0, step=0.01, tolerance=1e-8, signals={torque: 2.4 * sm.sin(2.5 * t)})
    return model


def _declare_sizes(model: Model, symbols: tuple[sm.Symbol, ...]) -> None:
    """Lengths; that of the tie rods follows."""
    r, h, b, w, ax, ay, l = symbols
    model.parameter(r, 0.008, "m", min=1e-6, description="pitch radius of the pinion")
    model.parameter(h, 0.17, "m", min=1e-6, description="distance of the rack behind the king pins")
    model.parameter(b, 0.70, "m", min=1e-6, description="distance of each king pin from the middle")
    model.parameter(w, 0.33, "m", min=1e-6, description="distance of the rack's ends from its middle")
    model.parameter(ax, 0.14, "m", min=1e-6, description="how far the steering arms end behind the king pins")
    model.parameter(ay, 0.05, "m", min=1e-6, description="how far the steering arms end within the king pins")
    model.parameter(l, sm.sqrt((h - ax) ** 2 + (b - ay - w) ** 2), "m", description="length of the tie rods")


def _declare_masses(model: Model, symbols: tuple[sm.Symbol, ...]) -> None:
    """Masses, inertias, and what the tyres do."""
    J, m_rack, m_tie, I_knuckle, c, d = symbols
    model.parameter(J, 0.04, "kg.m2", min=1e-9, description="inertia of hand wheel, column and pinion")
    model.parameter(m_rack, 3.0, "kg", min=0.0, description="mass of the rack")
    model.parameter(m_tie, 0.9, "kg", min=0.0, description="mass of each tie rod, a uniform one")
    what = "inertia of each knuckle with its wheel about its king pin"
    model.parameter(I_knuckle, 0.8, "kg.m2", min=1e-9, description=what)
    model.parameter(c, 90.0, "N.m/rad", min=0.0, description="stiffness with which the tyres draw each wheel back")
    model.parameter(d, 8.0, "N.m.s/rad", min=0.0, description="their damping")


def _declare_motion(model: Model, q: tuple[sm.Expr, ...], u: tuple[sm.Expr, ...]) -> None:
    """Coordinates and speeds: the hand wheel is given, all else follows."""
    model.coordinate(q[0], 0.0, "rad", display_unit="deg", description="angle of hand wheel and pinion")
    model.coordinate(q[1], 0.0, "m", kind="guess", description="displacement of the rack to the left")
    model.speed(u[0], 0.0, "rad/s", description="angular speed of hand wheel and pinion")
    model.speed(u[1], 0.0, "m/s", kind="guess", description="velocity of the rack to the left")
    for k, (side, name) in enumerate(((1, "left"), (-1, "right"))):
        tie, steer = q[2 + 2 * k : 4 + 2 * k]
        text = f"angle of the {name} tie rod from N.y"
        model.coordinate(tie, -0.0935 * side, "rad", kind="guess", display_unit="deg", description=text)
        text = f"angle of the {name} front wheel"
        model.coordinate(steer, 0.0, "rad", kind="guess", display_unit="deg", description=text)
        model.speed(u[2 + 2 * k], 0.0, "rad/s", kind="guess", description=f"angular speed of the {name} tie rod")
        model.speed(u[3 + 2 * k], 0.0, "rad/s", kind="guess", description=f"angular speed of the {name} front wheel")


def _draw(model: Model, bodies: list, looks: list, sizes: tuple[sm.Symbol, ...]) -> None:
    """Hand wheel, rack in its housing, tie rods, knuckles with their tyres."""
    (hand, rack, *_), (_, h, w) = bodies, sizes
    N = rack.masscenter.vel(model.mechanics.frame).separate().popitem()[0]
    model.visual(hand, Cylinder(h / 12, h), along=hand.frame.z, color="#c9ced6")
    model.visual(hand, Box(1.8 * h, h / 8, h / 8), color="#5b6470")
    model.visual(N, Box(h / 6, 2 * w, h / 6), at=rack.masscenter, color="#8a94a3")
    for side, (rod, knuckle, (inner, outer, king, arm)) in zip((1, -1), looks, strict=True):
        model.link(rod, inner, outer, radius=h / 14)
        model.link(knuckle, king, arm, radius=h / 10)
        tyre = king.locatenew(f"tyre_{knuckle.name}", side * 0.8 * h * knuckle.frame.y)
        model.visual(knuckle, Cylinder(1.1 * h, 1.7 * h), at=tyre, along=knuckle.frame.y, color="#3b4048")
