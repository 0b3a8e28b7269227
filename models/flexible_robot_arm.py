"""A robot arm with two flexible links that slews: drives hold the joints, the links swing on.

Coordinates: ``waist.angle`` turns the column about ``N.z`` (up), positive counter-clockwise as seen from above;
``shoulder.angle`` lifts the upper arm from the horizontal; ``elbow.angle`` turns the forearm in the upper arm's plane,
positive upwards. Each link lies along the x axis of its frame; its modal coordinates ``[1]`` and ``[2]`` are the first
bending modes along its ``y`` (sideways) and ``z`` (up), the deflections of its end in m. The elbow sits at the end of
the upper arm and turns with its last section. The drives are a spring and a damper between each joint's angle and its
command (inputs ``waist.command``, …): a position servo.

Source: W. J. Book, Recursive Lagrangian Dynamics of Flexible Manipulator Arms, Int. J. Robotics Research 3(3) (1984)
87-101 (links by modes, joints by frames at their ends).
"""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import BeamSection, Cylinder, FlexibleBody, Model, Sphere

JOINTS = ("waist", "shoulder", "elbow")
LENGTHS = {"upper_arm": 1.2, "forearm": 1.0}
"""Of the links, m."""
SIZES = {"upper_arm": 0.030, "forearm": 0.022}
"""Edges of the links' square sections, m."""

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 320 200" font-family="serif" font-size="15">
<rect width="320" height="200" fill="white"/>
<rect x="48" y="110" width="24" height="62" fill="#d9dde3" stroke="#333"/><path d="M30 172H90" stroke="#333"/>
<path d="M60 110C100 82 130 68 164 62" stroke="#1f77b4" stroke-width="7" fill="none" stroke-linecap="round"/>
<path d="M164 62C200 66 236 82 266 106" stroke="#2ca02c" stroke-width="6" fill="none" stroke-linecap="round"/>
<g fill="white" stroke="#333" stroke-width="2"><circle cx="60" cy="110" r="6"/><circle cx="164" cy="62" r="5"/></g>
<circle cx="268" cy="108" r="9" fill="#ff7f0e" stroke="#333"/>
<path d="M60 110H140M164 62L214 40" stroke="#888" stroke-dasharray="5 4"/>
<path d="M36 138A26 9 0 1 0 84 138" fill="none" stroke="#d62728" stroke-width="2"/>
<path d="M88 133l-9 3l7 6z" fill="#d62728"/>
<g font-style="italic"><text x="92" y="150" fill="#d62728">waist</text><text x="112" y="104">shoulder</text>
<text x="206" y="60">elbow</text><text x="94" y="72">upper arm</text><text x="196" y="104">forearm</text>
<text x="246" y="138">payload</text></g>
<path d="M290 30V60" stroke="#333" stroke-width="2"/><path d="M290 66l-5 -10h10z" fill="#333"/>
<text x="298" y="52" font-style="italic">g</text>
</svg>
"""


def flexible_robot_arm() -> Model:
    """The arm at rest and straight in its links, which sag as it starts; then it slews by 60 degrees in 1 s."""
    t = me.dynamicsymbols._t  # noqa: SLF001  (the symbol of time that SymPy mechanics uses)
    angles, speeds = me.dynamicsymbols("waist shoulder elbow"), me.dynamicsymbols("omega1:4")
    commands = me.dynamicsymbols("command1:4")
    J, m, g = sm.symbols("J m g", positive=True)
    ground, column = me.RigidBody("ground"), me.RigidBody("column", mass=0)
    column.central_inertia = me.inertia(column.frame, 0, 0, J)
    upper, fore = (_link(name) for name in LENGTHS)
    payload = me.Particle("payload", fore.point(-1), m)

    system = me.System.from_newtonian(ground)
    N = system.frame
    waist = me.PinJoint("waist", ground, column, angles[0], speeds[0], joint_axis=N.z)
    shoulder = me.PinJoint(
        "shoulder", column, upper.body, angles[1], speeds[1], child_point=upper.point(), joint_axis=-column.y
    )
    elbow = me.PinJoint(
        "elbow",
        upper.interface(-1),
        fore.body,
        angles[2],
        speeds[2],
        parent_point=upper.point(-1),
        child_point=fore.point(),
        joint_axis=-upper.frame(-1).y,
    )
    joints = (waist, shoulder, elbow)
    system.add_joints(*joints)
    system.add_bodies(payload)
    upper.add_to_system(system)
    fore.add_to_system(system)
    system.apply_uniform_gravity(-g * N.z)
    k, d = sm.symbols("k1:4", positive=True), sm.symbols("d1:4", positive=True)
    for i, joint in enumerate(joints):
        drive = k[i] * (commands[i] - angles[i]) - d[i] * speeds[i]
        system.add_actuators(me.TorqueActuator.at_pin_joint(drive, joint))

    model = Model("FlexibleRobotArm", system, description="A robot arm whose links bend", diagram=DIAGRAM)
    model.parameter(J, 0.4, "kg.m2", name="column.inertia", min=0.0, description="inertia of the column about N.z")
    model.parameter(m, 2.0, "kg", name="payload.mass", min=0.0, description="mass at the end of the forearm")
    model.parameter(g, 9.81, "m/s2", description="acceleration of gravity, along -N.z")
    starts = (0.0, 0.5, -0.8)
    for i, (name, stiffness, damping) in enumerate(zip(JOINTS, (4e3, 6e3, 2e3), (250.0, 300.0, 60.0), strict=True)):
        model.parameter(k[i], stiffness, "N.m/rad", name=f"{name}.stiffness", min=0.0, description="of the drive")
        model.parameter(d[i], damping, "N.m.s/rad", name=f"{name}.damping", min=0.0, description="of the drive")
        angle = {"unit": "rad", "display_unit": "deg", "description": f"angle of the {name}"}
        model.input(commands[i], starts[i], name=f"{name}.command", **angle)
        model.coordinate(angles[i], starts[i], name=f"{name}.angle", **angle)
        model.speed(speeds[i], 0.0, "rad/s", name=f"{name}.speed", description=f"angular speed of the {name}")
    for link in (upper, fore):
        model.add(link)
    tip = fore.point(-1)
    model.output_position("tip", tip)
    model.output_velocity("tip_velocity", tip)
    model.output_acceleration("tip_acceleration", tip)
    for link in (upper, fore):
        end = link.point(-1)
        model.output_position(f"{link.name}.deflection", end, relative_to=link.point(), expressed_in=link.frame())
    model.output_total_energy()
    _draw(model, column, upper, fore, payload)
    slew = sm.pi / 3 * (t - sm.sin(2 * sm.pi * t) / (2 * sm.pi))  # 60 degrees in 1 s, without a jerk
    signals = {commands[0]: sm.Piecewise((slew, t < 1), (sm.pi / 3, True)), commands[1]: 0.5, commands[2]: -0.8}
    model.experiment(stop=2.0, step=0.01, tolerance=1e-7, signals=signals)
    return model


def _link(name: str) -> FlexibleBody:
    """A link of aluminium with its first bending mode in each plane, held at its root as a joint holds it."""
    size = SIZES[name]
    return FlexibleBody.beam(
        name,
        length=LENGTHS[name],
        E=70e9,
        rho=2700.0,
        section=BeamSection.rectangle(width=size, height=size),
        modes={"bending_y": 1, "bending_z": 1},
        foreshortening=False,  # the arm turns much slower than its links swing
        damping=0.01,
    )


def _draw(model: Model, column: me.RigidBody, upper: FlexibleBody, fore: FlexibleBody, payload: me.Particle) -> None:
    """Column, links, joints and payload."""
    model.visual(column, Cylinder(0.06, 0.5), at=-0.25 * column.z, along=column.z, color="#8a94a3")
    for link, color in ((upper, "#1f77b4"), (fore, "#2ca02c")):
        size = SIZES[link.name]
        link.draw(model, box=(size, size), color=color)
        hub = Cylinder(1.2 * size, 2.4 * size)
        model.visual(link.frame(), hub, at=link.point(), along=link.frame().y, color="#5b6470")
    model.visual(payload, Sphere(0.05), color="#ff7f0e")
    model.trace(payload.masscenter)
