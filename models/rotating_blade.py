"""A flexible blade clamped to a hub that a motor spins up: centrifugal stiffening, gravity across the blade.

Coordinates: ``hub.angle`` is the angle of the hub about ``N.z`` (up), positive counter-clockwise as seen from above.
The blade lies along the hub's x axis; modal coordinates ``blade.eta[1]`` and ``[2]`` are the first two bending modes
along ``z`` (flap, positive up), ``blade.eta[3]`` the first along ``y`` (lag, positive ahead), each the deflection of
the tip in m. Bending shortens the blade (of second order): that is what stiffens it as it spins. The input
``hub.torque`` is the motor's torque on the hub.

Source: T. R. Kane, R. R. Ryan, A. K. Banerjee, Dynamics of a Cantilever Beam Attached to a Moving Base, J. Guidance 10
(1987) 139-151; eigenfrequencies of spinning beams: A. D. Wright et al., J. Applied Mechanics 49 (1982) 197-202.
"""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import BeamSection, Cylinder, FlexibleBody, Model

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 300 170" font-family="serif" font-size="15">
<rect width="300" height="170" fill="white"/>
<ellipse cx="80" cy="100" rx="30" ry="10" fill="#d9dde3" stroke="#333"/>
<path d="M80 150V30" stroke="#888" stroke-dasharray="5 4"/>
<path d="M108 98H270" stroke="#888" stroke-dasharray="5 4"/>
<path d="M108 98C160 98 215 108 262 124" stroke="#1f77b4" stroke-width="6" fill="none" stroke-linecap="round"/>
<path d="M58 52A24 9 0 1 0 102 52" fill="none" stroke="#d62728" stroke-width="2"/>
<path d="M106 47l-9 3l7 6z" fill="#d62728"/>
<path d="M272 98V122" stroke="#2ca02c" stroke-width="2"/><path d="M272 127l-4 -9h8z" fill="#2ca02c"/>
<g font-style="italic"><text x="110" y="58" fill="#d62728">θ, τ</text><text x="278" y="117" fill="#2ca02c">η</text>
<text x="170" y="92">x</text><text x="88" y="36">N.z</text><text x="26" y="106">hub</text></g>
<path d="M30 26V56" stroke="#333" stroke-width="2"/><path d="M30 62l-5 -10h10z" fill="#333"/>
<text x="14" y="48" font-style="italic">g</text>
</svg>
"""


def rotating_blade() -> Model:
    """The blade at rest and straight, spun up by a torque that fades in and out."""
    t = me.dynamicsymbols._t  # noqa: SLF001  (the symbol of time that SymPy mechanics uses)
    theta, omega, tau = me.dynamicsymbols("theta omega tau")
    J, R, g = sm.symbols("J R g", positive=True)

    ground, hub = me.RigidBody("ground"), me.RigidBody("hub", mass=0)
    hub.central_inertia = me.inertia(hub.frame, 0, 0, J)
    blade = FlexibleBody.beam(
        "blade",
        length=1.0,
        E=70e9,
        rho=2700.0,
        section=BeamSection.rectangle(width=0.04, height=0.005),
        modes={"bending_z": 2, "bending_y": 1},
        damping=0.005,
    )
    system = me.System.from_newtonian(ground)
    N = system.frame
    axle = me.PinJoint("axle", ground, hub, theta, omega, joint_axis=N.z)
    root = me.WeldJoint("root", hub, blade.body, parent_point=R * hub.x, child_point=blade.point())
    system.add_joints(axle, root)
    blade.add_to_system(system)
    system.apply_uniform_gravity(-g * N.z)
    motor = me.TorqueActuator.at_pin_joint(tau, axle)
    system.add_actuators(motor)

    model = Model("RotatingBlade", system, description="A flexible blade on a driven hub", diagram=DIAGRAM)
    model.parameter(
        J, 0.02, "kg.m2", name="hub.inertia", min=0.0, description="inertia of hub and motor about the axle"
    )
    model.parameter(R, 0.1, "m", name="hub.radius", min=0.0, description="distance of the blade's root from the axle")
    model.parameter(g, 9.81, "m/s2", description="acceleration of gravity, along -N.z")
    model.input(tau, 0.0, "N.m", name="hub.torque", description="motor torque on the hub")
    model.coordinate(theta, 0.0, "rad", name="hub.angle", display_unit="deg", description="angle of the hub")
    model.speed(omega, 0.0, "rad/s", name="hub.speed", display_unit="rpm", description="angular speed of the hub")
    model.add(blade)
    tip = blade.point(-1)
    model.output_position("tip", tip)
    model.output_position("tip_deflection", tip, relative_to=blade.point(), expressed_in=blade.frame())
    model.output_orientation("tip_rotation", blade.frame(-1), relative_to=blade.frame(), representation="xyz")
    model.output_velocity("tip_velocity", tip)
    model.output_total_energy()
    model.visual(hub, Cylinder(0.05, 0.1), along=hub.z)
    blade.draw(model, box=(0.04, 0.005), color="#1f77b4")
    model.trace(tip)
    model.experiment(stop=2.0, step=0.01, tolerance=1e-7, signals={tau: 6 * sm.sin(sm.pi * t / 2) ** 2})
    return model
