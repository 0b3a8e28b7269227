"""A snakeboard: a board on two steered pairs of wheels and a rotor; turning the rotor to and fro drives it forward.

Seen from above, ``N.x`` to the right, ``N.y`` up. Coordinates: ``x``, ``y`` are the place of the board's centre,
``theta`` its heading from N.x, ``rotor`` the angle of the rotor on it, ``front`` and ``back`` the steering angles of
the wheels, all counter-clockwise. Speeds: ``v`` along the board, ``w`` across it (dependent), ``omega`` = theta'
(dependent), and the rates of the three other angles. Wheels do not slip sideways:

    -v sin(front) + (w + l omega) cos(front) = 0        -v sin(back) + (w - l omega) cos(back) = 0

These determine w and omega as long as no pair of wheels stands across the board. A rider turns the rotor by a torque
between it and the board, and steers both pairs by opposite torques against springs and dampers.

The gait: rotor and wheels swing with the same frequency; the board begins to move though nothing pushes it. Its
momentum along the instantaneous axis of turning changes by what the wheels' forces do, which are outputs.

Source: A. Lewis, J. P. Ostrowski, R. M. Murray, J. W. Burdick, "Nonholonomic mechanics and locomotion: the snakeboard
example", IEEE International Conference on Robotics and Automation (1994) 2391-2397.
"""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Box, Cylinder, Model, Parts

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 300 220" font-family="serif" font-size="15">
<rect width="300" height="220" fill="white"/>
<path d="M30 200H285M30 200V30" stroke="#555" fill="none"/><path d="M290 200l-10 -4v8z" fill="#555"/>
<path d="M30 24l-4 10h8z" fill="#555"/>
<path d="M80 152L230 62" stroke="#9dc3e6" stroke-width="16" stroke-linecap="round"/>
<path d="M80 152L230 62" stroke="#333"/>
<path d="M155 107H215" stroke="#888" stroke-dasharray="5 4"/>
<path d="M200 107A45 45 0 0 0 194 84" fill="none" stroke="#d62728" stroke-width="2"/>
<path d="M222 36L238 88" stroke="#333" stroke-width="2"/>
<path d="M212 40L232 34M228 91L248 85" stroke="#1f77b4" stroke-width="6"/>
<path d="M68 127L92 177" stroke="#333" stroke-width="2"/>
<path d="M56 130L80 122M80 182L104 172" stroke="#1f77b4" stroke-width="6"/>
<path d="M138 68L172 146" stroke="#2ca02c" stroke-width="5"/><circle cx="155" cy="107" r="4" fill="#333"/>
<g font-style="italic"><text x="206" y="102" fill="#d62728">θ</text><text x="176" y="152" fill="#2ca02c">rotor</text>
<text x="252" y="62" fill="#1f77b4">front</text><text x="36" y="118" fill="#1f77b4">back</text>
<text x="112" y="104">(x, y)</text><text x="186" y="72">l</text></g>
<g font-size="12"><text x="262" y="216">N.x</text><text x="38" y="34">N.y</text></g>
</svg>
"""


def snakeboard() -> Model:
    """The board starts from rest and drives itself."""
    t = me.dynamicsymbols._t  # noqa: SLF001  (the symbol of time that SymPy mechanics uses)
    q = x, y, theta, rotor, front, back = me.dynamicsymbols("x y theta rotor front back")
    u = v, w, omega, rotor_rate, front_rate, back_rate = me.dynamicsymbols("v w omega rotor_rate front_rate back_rate")
    rotor_torque, steer_torque = me.dynamicsymbols("rotor_torque steer_torque")
    m, l, J, Jr, Jw, k, c = sm.symbols("m l J Jr Jw k c", positive=True)

    N, B, R, F, H = (me.ReferenceFrame(name) for name in "NBRFH")
    B.orient_axis(N, N.z, theta)
    B.set_ang_vel(N, omega * N.z)
    for frame, angle, rate in ((R, rotor, rotor_rate), (F, front, front_rate), (H, back, back_rate)):
        frame.orient_axis(B, B.z, angle)
        frame.set_ang_vel(B, rate * B.z)
    O = me.Point("O")
    O.set_vel(N, 0)
    centre = O.locatenew("centre", x * N.x + y * N.y)
    centre.set_vel(N, v * B.x + w * B.y)
    axles = [centre.locatenew(name, side * l * B.x) for name, side in (("front_axle", 1), ("back_axle", -1))]
    for axle in axles:
        axle.v2pt_theory(centre, N, B)
    rows = [axle.vel(N).dot(frame.y) for axle, frame in zip(axles, (F, H), strict=True)]

    bodies = [me.RigidBody("board", centre, B, m, (me.inertia(B, 0, 0, J), centre))]
    # The masses of rotor and wheels are in that of the board.
    bodies.append(me.RigidBody("rotor", centre, R, 0, (me.inertia(R, 0, 0, Jr), centre)))
    for name, frame, axle in zip(("front_wheels", "back_wheels"), (F, H), axles, strict=True):
        bodies.append(me.RigidBody(name, axle, frame, 0, (me.inertia(frame, 0, 0, Jw), axle)))
    actuators = [me.TorqueActuator(rotor_torque, B.z, R, B)]
    for frame, angle, rate, sign in ((F, front, front_rate, 1), (H, back, back_rate, -1)):
        actuators.append(me.TorqueActuator(sign * steer_torque - k * angle - c * rate, B.z, frame, B))
    parts = Parts(
        frame=N,
        origin=O,
        q=q,
        u=u,
        kinematic_equations=(
            x.diff(t) - centre.vel(N).dot(N.x),
            y.diff(t) - centre.vel(N).dot(N.y),
            *(angle.diff(t) - rate for angle, rate in zip(q[2:], u[2:], strict=True)),
        ),
        bodies=bodies,
        actuators=actuators,
        velocity_constraints=rows,
        u_dependent=(w, omega),
    )

    model = Model("Snakeboard", parts, description="A board that drives itself by turning", diagram=DIAGRAM)
    model.parameter(m, 6.0, "kg", min=1e-6, description="mass")
    model.parameter(l, 0.2, "m", min=1e-6, description="distance of the wheels from the centre")
    model.parameter(J, 0.016, "kg.m2", min=1e-9, description="central moment of inertia of the board")
    model.parameter(Jr, 0.072, "kg.m2", min=1e-9, description="moment of inertia of the rotor")
    model.parameter(Jw, 0.0013, "kg.m2", min=1e-9, description="moment of inertia of a pair of wheels about its pivot")
    model.parameter(k, 0.05, "N.m/rad", min=0.0, description="stiffness of the steering")
    model.parameter(c, 0.02, "N.m.s/rad", min=0.0, description="damping of the steering")
    model.input(rotor_torque, 0.0, "N.m", description="torque between board and rotor")
    model.input(steer_torque, 0.0, "N.m", description="torque that turns the wheels, front and back against each other")
    angles = (
        "heading of the board",
        "angle of the rotor on the board",
        "steering angle in front",
        "steering angle behind",
    )
    for symbol, axis in zip(q[:2], "xy", strict=True):
        model.coordinate(symbol, 0.0, "m", description=f"place of the board's centre along N.{axis}")
    for symbol, what in zip(q[2:], angles, strict=True):
        model.coordinate(symbol, 0.0, "rad", display_unit="deg", description=what)
    model.speed(v, 0.0, "m/s", description="velocity of the centre along the board")
    model.speed(w, 0.0, "m/s", kind="guess", description="velocity of the centre across the board")
    for symbol, what in zip(u[2:], angles, strict=True):
        kind = "guess" if symbol is omega else "fixed"
        model.speed(symbol, 0.0, "rad/s", kind=kind, description=f"rate of the {what}")
    for row, name, axle, frame in zip(rows, ("front", "back"), axles, (F, H), strict=True):
        slide = me.dynamicsymbols(f"{name}_multiplier")
        model.constraint(row, f"{name} wheels", multiplier=slide, acts=[(axle, frame.y)])
        model.output(f"{name}_force", -slide, "N", description="of the ground on the wheels, across them")
    model.output_kinetic_energy()
    _draw(model, bodies, l)
    gait = {rotor_torque: -0.6 * sm.cos(3 * t), steer_torque: 0.03 * sm.sin(3 * t)}
    model.experiment(stop=10.0, step=0.01, tolerance=1e-8, signals=gait)
    return model


def _draw(model: Model, bodies: list[me.RigidBody], l: sm.Symbol) -> None:
    """The board, the rotor above it, a pair of wheels at each end."""
    board, rotor, *pairs = bodies
    model.visual(board, Box(2 * l, l / 3, l / 12))
    model.visual(rotor, Box(l / 6, 1.5 * l, l / 12), at=l / 8 * rotor.frame.z)
    for pair in pairs:
        axle = pair.frame.y
        model.visual(pair, Cylinder(0.7 * l, l / 25), along=axle)
        for side in (-1, 1):
            model.visual(pair, Cylinder(l / 10, l / 6), at=side * 0.35 * l * axle, along=axle, color="#4d5663")
    model.trace(board.masscenter)
