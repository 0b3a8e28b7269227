"""The PUMA 560, an industrial robot with six joints, moved by the torques of its motors.

Coordinates: ``joint[1].angle`` to ``joint[6].angle`` are the angles of the six revolute joints about the z axes of the
links, in the modified notation of Denavit and Hartenberg (Craig's), in which link i is fixed to frame i. ``N.z`` points
up. All angles 0: the upper arm lies along ``N.x``, the forearm hangs down. (0, -90°, 90°, 0, 0, 0) is the "ready" pose:
upper arm and forearm stand upright.

Every motor turns its joint through gears. As in the source, its inertia is the effective one, seen from the joint: a
flywheel with the angle of the joint, whose axis stands still, so that it adds to the diagonal of the mass matrix only.
Friction of a joint is viscous plus Coulomb friction, rounded between -w and w: -(B u + C tanh(u/w)).
Inputs are the torques at the joints; outputs are the position, velocity and orientation of the tool's flange.

    i       alpha_(i-1)   a_(i-1)    d_i        mass    mass centre in frame i   central inertia about x, y, z
    1         0           0          0          -       -                        -, -, 0.35
    2       -90°          0          0.2435    17.40    0.068   0.006  -0.016    0.130    0.524    0.539
    3         0           0.4318    -0.0934     4.80    0      -0.070   0.014    0.066    0.0125   0.086
    4        90°         -0.0203     0.4331     0.82    0       0      -0.019    1.8e-3   1.8e-3   1.3e-3
    5       -90°          0          0          0.34    0       0       0        0.3e-3   0.3e-3   0.4e-3
    6        90°          0          0          0.09    0       0       0.032    0.15e-3  0.15e-3  0.04e-3

Source: B. Armstrong, O. Khatib, J. Burdick, "The explicit dynamic model and inertial parameters of the PUMA 560 arm",
Proc. IEEE Int. Conf. Robotics and Automation, 1986, 510-518 (geometry, masses, inertias, effective motor inertias);
P. I. Corke, B. Armstrong-Helouvry, "A search for consensus among model parameters reported for the PUMA 560 robot",
Proc. IEEE Int. Conf. Robotics and Automation, 1994, 1608-1613 (friction, gear ratios).
"""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Cylinder, Model, Parts

JOINTS = range(1, 7)
# alpha, a and d of the link before and of the joint: rad, m, m
GEOMETRY = (
    (0, 0, 0),
    (-sm.pi / 2, 0, 0.2435),
    (0, 0.4318, -0.0934),
    (sm.pi / 2, -0.0203, 0.4331),
    (-sm.pi / 2, 0, 0),
    (sm.pi / 2, 0, 0),
)
# kg, m, kg.m2: of link 1 only the inertia about its joint is felt
MASS = (0.0, 17.40, 4.80, 0.82, 0.34, 0.09)
CENTRE = ((0, 0, 0), (0.068, 0.006, -0.016), (0, -0.070, 0.014), (0, 0, -0.019), (0, 0, 0), (0, 0, 0.032))
INERTIA = (
    (0, 0, 0.35),
    (0.130, 0.524, 0.539),
    (0.066, 0.0125, 0.086),
    (1.8e-3, 1.8e-3, 1.3e-3),
    (0.3e-3, 0.3e-3, 0.4e-3),
    (0.15e-3, 0.15e-3, 0.04e-3),
)
MOTOR = (1.14, 4.71, 0.827, 0.200, 0.179, 0.193)  # kg.m2, seen from the joint
GEAR = (62.6111, 107.815, 53.7063, 76.0364, 71.923, 76.686)
VISCOUS = (1.48e-3, 0.817e-3, 1.38e-3, 71.2e-6, 82.6e-6, 36.7e-6)  # N.m.s/rad, seen from the motor
COULOMB = (0.415, 0.0985, 0.1185, 14.05e-3, 11.88e-3, 7.23e-3)  # N.m, seen from the motor, mean of both directions
FLANGE = 0.05625  # m, from the wrist along the z axis of link 6

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 330 290" font-family="serif" font-size="15">
<rect width="330" height="290" fill="white"/>
<path d="M60 270H150" stroke="#333" stroke-width="3"/>
<path d="M105 270V120" stroke="#888" stroke-width="22"/>
<path d="M105 110L218 82" stroke="#9dc3e6" stroke-width="22" stroke-linecap="round"/>
<path d="M218 82L262 176" stroke="#7fb0dc" stroke-width="15" stroke-linecap="round"/>
<path d="M262 176L276 206" stroke="#c6dcef" stroke-width="10" stroke-linecap="round"/>
<g fill="white" stroke="#333" stroke-width="2"><circle cx="105" cy="110" r="8"/><circle cx="218" cy="82" r="7"/>
<circle cx="262" cy="176" r="5"/></g>
<path d="M270 208l12 -6M276 206l4 9" stroke="#333" stroke-width="3"/>
<g fill="none" stroke="#d62728" stroke-width="2"><path d="M82 232A24 8 0 1 0 128 232"/>
<path d="M128 92A30 30 0 0 1 136 116"/>
<path d="M240 66A28 28 0 0 1 244 92"/><path d="M232 138A16 7 20 0 0 258 126"/><path d="M280 166A20 20 0 0 1 284 184"/>
<path d="M262 200A12 5 20 0 0 284 192"/></g>
<g font-style="italic" fill="#d62728"><text x="134" y="240">q₁</text><text x="142" y="106">q₂</text>
<text x="252" y="80">q₃</text><text x="212" y="146">q₄</text>
<text x="290" y="178">q₅</text><text x="240" y="208">q₆</text></g>
<g font-style="italic"><text x="286" y="224">tool</text><text x="36" y="106">g</text></g>
<path d="M26 78V118" stroke="#333" stroke-width="2"/><path d="M26 124l-5 -10h10z" fill="#333"/>
<path d="M180 262H212M180 262V230" stroke="#555" fill="none"/>
<text x="216" y="267" font-size="12">N.x</text><text x="172" y="225" font-size="12">N.z</text>
</svg>
"""


def robot_arm() -> Model:
    """The arm in the ready pose with a load at its flange; the motors swing it in slow rhythms."""
    t = me.dynamicsymbols._t  # noqa: SLF001  (the symbol of time that SymPy mechanics uses)
    q, u, torque = (me.dynamicsymbols(f"{name}1:7") for name in ("q", "u", "tau"))
    g, load, rounding = sm.symbols("g m_load w", positive=True)
    mass = sm.symbols("m1:7")
    motor, gear, viscous, coulomb = (sm.symbols(f"{name}1:7") for name in ("J_m", "G", "B", "C"))

    N, O = me.ReferenceFrame("N"), me.Point("O")
    bodies, loads, actuators = [], [], []
    link, origin = N, O
    joints = [O]
    for i in range(6):
        before = link
        link, origin = _next(before, origin, i, q[i], u[i])
        joints.append(origin)
        centre = origin.locatenew(f"centre{i + 1}", sum((c * e for c, e in zip(CENTRE[i], link, strict=True)), 0 * N.x))
        bodies.append(me.RigidBody(f"link{i + 1}", centre, link, mass[i], (me.inertia(link, *INERTIA[i]), centre)))
        loads.append(me.Force(centre, -mass[i] * g * N.z))
        flywheel = me.ReferenceFrame(f"motor{i + 1}")
        flywheel.orient_axis(N, N.z, q[i])
        flywheel.set_ang_vel(N, u[i] * N.z)
        bodies.append(me.RigidBody(f"motor{i + 1}", O, flywheel, 0, (me.inertia(flywheel, 0, 0, motor[i]), O)))
        friction = gear[i] ** 2 * viscous[i] * u[i] + gear[i] * coulomb[i] * sm.tanh(u[i] / rounding)
        actuators.append(me.TorqueActuator(torque[i] - friction, link.z, link, before))
    flange = origin.locatenew("flange", FLANGE * link.z)
    bodies.append(me.Particle("load", flange, load))
    loads.append(me.Force(flange, -load * g * N.z))
    parts = Parts(
        frame=N,
        origin=O,
        q=q,
        u=u,
        kinematic_equations=[speed - angle.diff(t) for angle, speed in zip(q, u, strict=True)],
        bodies=bodies,
        loads=loads,
        actuators=actuators,
    )

    model = Model("RobotArm", parts, description="The PUMA 560 arm: six joints, motors, friction", diagram=DIAGRAM)
    model.parameter(g, 9.81, "m/s2", min=0.0, description="acceleration of gravity, along -N.z")
    model.parameter(load, 2.0, "kg", name="load", min=0.0, description="mass held at the flange")
    model.parameter(rounding, 0.2, "rad/s", min=1e-6, description="speed of a joint by which Coulomb friction is full")
    _declare_parameters(model, (mass, motor, gear, viscous, coulomb))
    for i, start in zip(JOINTS, (0.0, -sm.pi / 2, sm.pi / 2, 0.0, 0.0, 0.0), strict=True):
        k, joint, angle = i - 1, f"joint[{i}]", f"angle of joint {i}"
        model.input(torque[k], 0.0, "N.m", name=f"{joint}.torque", description=f"of motor {i}, at the joint")
        model.coordinate(q[k], float(start), "rad", name=f"{joint}.angle", display_unit="deg", description=angle)
        model.speed(u[k], 0.0, "rad/s", name=f"{joint}.speed", description=f"angular speed of joint {i}")
    model.output_position("tool", flange)
    model.output_velocity("tool_velocity", flange)
    model.output_orientation("tool_orientation", link)
    model.output_kinetic_energy()
    _draw(model, N, [body for body in bodies if body.name.startswith("link")], [*joints, flange])
    swing = {torque[k]: size * sm.sin((k + 3) * t) for k, size in enumerate((60, -60, 20, 4, -4, 3))}
    model.experiment(stop=0.5, step=0.02, tolerance=1e-7, signals=swing)
    return model


def _next(
    before: me.ReferenceFrame, origin: me.Point, i: int, angle: sm.Expr, speed: sm.Expr
) -> tuple[me.ReferenceFrame, me.Point]:
    """Frame and origin of link i + 1, from those of the link before it."""
    alpha, a, d = GEOMETRY[i]
    twisted = before
    if alpha != 0:
        twisted = me.ReferenceFrame(f"twisted{i + 1}")
        twisted.orient_axis(before, before.x, alpha)
    link = me.ReferenceFrame(f"link{i + 1}")
    link.orient_axis(twisted, twisted.z, angle)
    link.set_ang_vel(twisted, speed * link.z)
    return link, origin.locatenew(f"joint{i + 1}", a * before.x + d * link.z)


def _declare_parameters(model: Model, symbols: tuple[tuple[sm.Symbol, ...], ...]) -> None:
    """Masses, motors, gears and friction, joint by joint."""
    for i, (mass, motor, gear, viscous, coulomb) in enumerate(zip(*symbols, strict=True)):
        joint = f"joint[{i + 1}]"
        model.parameter(mass, MASS[i], "kg", name=f"link[{i + 1}].mass", min=0.0, description=f"mass of link {i + 1}")
        for symbol, value, unit, name, what in (
            (motor, MOTOR[i], "kg.m2", "motor_inertia", "effective inertia of the motor, at the joint"),
            (gear, GEAR[i], "1", "gear_ratio", "turns of the motor for one of the joint"),
            (viscous, VISCOUS[i], "N.m.s/rad", "viscous_friction", "viscous friction, at the motor"),
            (coulomb, COULOMB[i], "N.m", "coulomb_friction", "Coulomb friction, at the motor"),
        ):
            model.parameter(symbol, value, unit, name=f"{joint}.{name}", min=0.0, description=what)


def _draw(model: Model, N: me.ReferenceFrame, links: list[me.RigidBody], joints: list[me.Point]) -> None:
    """Column, joints along their axes, links from joint to joint."""
    base, *places = joints
    model.visual(N, Cylinder(0.6, 0.09), at=base.locatenew("column", -0.3 * N.z), along=N.z, color="#8a94a3")
    model.visual(N, Cylinder(0.02, 0.18), at=base.locatenew("floor", -0.6 * N.z), along=N.z, color="#8a94a3")
    for i, (link, start, end) in enumerate(zip(links, places[:-1], places[1:], strict=True)):
        radius = 0.075 - 0.009 * i
        reach = end.pos_from(start).express(link.frame)
        model.visual(link, Cylinder(2.4 * radius, 1.1 * radius), at=start, along=link.frame.z)
        if reach.magnitude() != 0:
            middle = start.locatenew(f"middle{i + 1}", reach / 2)
            model.visual(link, Cylinder(reach.magnitude(), 0.8 * radius), at=middle, along=reach)
    model.trace(joints[-1])
