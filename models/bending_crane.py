"""A mobile crane that slews with a load on its rope: the boom bends, in the lifting plane and sideways.

Coordinates: ``slew.angle`` turns the column about ``N.z`` (up), positive counter-clockwise as seen from above;
``luff.angle`` lifts the boom from the horizontal. The boom lies along the x axis of its frame; ``boom.eta[1]`` and
``[2]`` are its first two bending modes in the lifting plane (positive up), ``boom.eta[3]`` the first one sideways, each
the deflection of the head in m. Bending shortens the boom, so that the weight of load and boom makes it softer. The
load hangs from the head on a rope that stays straight; ``swing.outward`` and ``swing.sideways`` are the rope's angles
from the vertical, in the axes of the column. A hydraulic cylinder holds the boom: a stiff spring and a damper whose
length without force is the input ``cylinder.command``. The input ``slew.torque`` is the drive's.

Source: O. Sawodny, H. Aschemann, S. Lahres, An automated gantry crane as a large workspace robot, Control Engineering
Practice 10 (2002) 1323-1338 (loads on ropes); the boom is a cantilever of Euler and Bernoulli.
"""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import BeamSection, Box, Cylinder, FlexibleBody, Model, Sphere, SpringDamper

LENGTH, WIDTH, HEIGHT, PLATE = 20.0, 0.40, 0.55, 0.010
"""Of the boom, a box girder, and the thickness of its plates, m."""
LUG = 6.0
"""Distance of the cylinder's upper pin from the boom's foot, m."""

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 320 220" font-family="serif" font-size="15">
<rect width="320" height="220" fill="white"/>
<path d="M20 196H150" stroke="#333"/><rect x="50" y="140" width="60" height="56" fill="#d9dde3" stroke="#333"/>
<path d="M64 140C130 92 196 66 262 60" stroke="#d9a400" stroke-width="8" fill="none" stroke-linecap="round"/>
<path d="M64 140L270 40" stroke="#888" stroke-dasharray="5 4"/>
<path d="M104 168L134 96" stroke="#54a24b" stroke-width="5"/>
<path d="M262 60L276 160" stroke="#333"/><path d="M262 60V166" stroke="#888" stroke-dasharray="4 4"/>
<circle cx="277" cy="168" r="9" fill="#b0533c" stroke="#333"/>
<g fill="white" stroke="#333" stroke-width="2"><circle cx="64" cy="140" r="5"/><circle cx="104" cy="168" r="4"/>
<circle cx="134" cy="96" r="4"/></g>
<path d="M54 206A28 8 0 1 0 106 206" fill="none" stroke="#d62728" stroke-width="2"/>
<g font-style="italic"><text x="12" y="214" fill="#d62728">slew</text><text x="96" y="134">luff</text>
<text x="128" y="134" fill="#54a24b">cylinder</text>
<text x="180" y="60">boom</text><text x="282" y="132">swing</text></g>
<path d="M22 40V70" stroke="#333" stroke-width="2"/><path d="M22 76l-5 -10h10z" fill="#333"/>
<text x="30" y="62" font-style="italic">g</text>
</svg>
"""


def bending_crane() -> Model:
    """The load hangs still; the drive turns the crane for two seconds and brakes it again for two."""
    t = me.dynamicsymbols._t  # noqa: SLF001  (the symbol of time that SymPy mechanics uses)
    slew, luff, outward, sideways = angles = me.dynamicsymbols("slew luff outward sideways")
    speeds = me.dynamicsymbols("omega1:5")
    tau, command = me.dynamicsymbols("tau command")
    J, m, rope, g = sm.symbols("J m rope g", positive=True)
    ground, column = me.RigidBody("ground"), me.RigidBody("column", mass=0)
    column.central_inertia = me.inertia(column.frame, 0, 0, J)
    boom = _boom()
    system = me.System.from_newtonian(ground)
    N = system.frame
    turn = me.PinJoint("turn", ground, column, slew, speeds[0], joint_axis=N.z)
    foot = me.PinJoint("foot", column, boom.body, luff, speeds[1], child_point=boom.point(), joint_axis=-column.y)
    system.add_joints(turn, foot)
    boom.add_to_system(system)

    hanging = me.ReferenceFrame("hanging")
    hanging.orient_body_fixed(column.frame, (sideways, -outward, 0), "XYZ")
    head = boom.point(-1)
    load = me.Particle("load", head.locatenew("hook", -rope * hanging.z), m)
    system.add_bodies(load)
    system.add_coordinates(outward, sideways)
    system.add_speeds(*speeds[2:])
    system.add_kdes(*(angle.diff(t) - speed for angle, speed in zip(angles[2:], speeds[2:], strict=True)))
    system.apply_uniform_gravity(-g * N.z)
    system.add_actuators(me.TorqueActuator.at_pin_joint(tau, turn))

    model = Model("BendingCrane", system, description="A crane whose boom bends, with a load", diagram=DIAGRAM)
    model.parameter(J, 3e4, "kg.m2", name="column.inertia", min=0.0, description="of column and counterweight")
    model.parameter(m, 2000.0, "kg", name="load.mass", min=1e-6, description="mass of the load")
    model.parameter(rope, 8.0, "m", name="rope.length", min=1e-6, description="from the head to the load")
    model.parameter(g, 9.81, "m/s2", description="acceleration of gravity, along -N.z")
    model.input(tau, 0.0, "N.m", name="slew.torque", description="of the drive on the column")
    model.input(
        command,
        COMMAND,
        "m",
        name="cylinder.command",
        min=5.6,
        max=6.0,
        description="its length without force",
    )
    names = ("slew", "luff", "swing.outward", "swing.sideways")
    for i, (name, start) in enumerate(zip(names, (0.0, LUFF, 0.0, 0.0), strict=True)):
        label = name if "." in name else f"{name}.angle"
        rate = f"{name}_rate" if "." in name else f"{name}.speed"
        model.coordinate(angles[i], start, "rad", name=label, display_unit="deg", description=f"angle: {name}")
        model.speed(speeds[i], 0.0, "rad/s", name=rate, description=f"angular speed: {name}")
    model.add(boom)
    base = column.masscenter.locatenew("base", 1.5 * column.x - 1.0 * column.z)
    lug = boom.point(boom.node_near((LUG, 0.0, 0.0)))
    model.add(SpringDamper("cylinder", (base, lug), stiffness=1e7, damping=4e5, rest=command))
    model.output_position("load", load.masscenter)
    model.output_position("head", head)
    model.output_position("head_deflection", head, relative_to=boom.point(), expressed_in=boom.frame())
    model.output_velocity("load_velocity", load.masscenter)
    model.output_total_energy()
    _draw(model, column, boom, hanging, load)
    push = 4.5e4 * sm.sin(sm.pi * t / 2) * sm.Piecewise((1, t < 4), (0, True))
    model.experiment(stop=6.0, step=0.02, tolerance=1e-7, signals={tau: push, command: COMMAND})
    return model


COMMAND, LUFF, ETA = 5.8, 0.706585734957, (-0.175189079735, -0.0212118932979, 0.0)
"""Length of the cylinder without force, m; angle and modal coordinates (m) at rest, by ``mb2fmu linearize``."""


def _boom() -> FlexibleBody:
    """A box girder of steel, with two modes in the lifting plane and one sideways."""
    inner_width, inner_height = WIDTH - 2 * PLATE, HEIGHT - 2 * PLATE
    section = BeamSection(
        area=WIDTH * HEIGHT - inner_width * inner_height,
        I_y=(WIDTH * HEIGHT**3 - inner_width * inner_height**3) / 12,
        I_z=(HEIGHT * WIDTH**3 - inner_height * inner_width**3) / 12,
    )
    return FlexibleBody.beam(
        "boom",
        length=LENGTH,
        E=210e9,
        rho=7850.0,
        section=section,
        modes={"bending_z": 2, "bending_y": 1},
        damping=0.01,
        stations=[LUG],
        start=ETA,
    )


def _draw(
    model: Model, column: me.RigidBody, boom: FlexibleBody, hanging: me.ReferenceFrame, load: me.Particle
) -> None:
    """Column, boom, rope and load."""
    model.visual(column, Box(3.6, 2.4, 1.6), at=-1.2 * column.z, color="#8a94a3")
    model.visual(column, Cylinder(1.0, 0.6), at=-2.3 * column.z, along=column.z, color="#5b6470")
    boom.draw(model, box=(WIDTH, HEIGHT), color="#d9a400")
    model.link(hanging, boom.point(-1), load.masscenter, radius=0.04, color="#333333")
    model.visual(load, Sphere(0.6), color="#b0533c")
    model.trace(load.masscenter)
