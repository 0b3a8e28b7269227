"""The Pendulum example of the Modelica Standard Library, with its published results: a System with a damped joint.

Coordinates: ``phi`` is the angle of the body from ``N.x`` (horizontal, to the right), positive counter-clockwise
about ``N.z`` (out of the page); the mass centre lies at ``r_cm`` along the body. Gravity acts along -``N.y``. The
joint brakes with the torque -d phi'. FMU names are Modelica's: ``rev.phi``, ``rev.w``.

Equation: (I + m r_cm²) phi'' = -m g r_cm cos(phi) - d phi'.

Source: Modelica Standard Library 4.0.0, Modelica.Mechanics.MultiBody.Examples.Elementary.Pendulum, and its regression
results.
"""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Model

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 260 190" font-family="serif" font-size="15">
<rect width="260" height="190" fill="white"/>
<path d="M30 20V100" stroke="#333" stroke-width="3"/>
<path d="M30 60H240" stroke="#888" stroke-dasharray="5 4"/><path d="M250 60l-11 -5v10z" fill="#888"/>
<path d="M40 60L150 140" stroke="#1f77b4" stroke-width="5"/>
<circle cx="150" cy="140" r="14" fill="#1f77b4"/>
<circle cx="40" cy="60" r="6" fill="white" stroke="#333" stroke-width="2"/>
<path d="M104 60A64 64 0 0 1 97 90" fill="none" stroke="#d62728" stroke-width="2"/>
<path d="M92 99l0 -11l9 5z" fill="#d62728"/>
<g font-style="italic"><text x="110" y="86" fill="#d62728">φ &lt; 0</text><text x="60" y="116">r_cm</text>
<text x="170" y="146">m, I</text><text x="24" y="116">d</text><text x="218" y="128">g</text></g>
<path d="M208 102V138" stroke="#333" stroke-width="2"/><path d="M208 144l-5 -10h10z" fill="#333"/>
<text x="228" y="48" font-size="12">N.x</text>
</svg>
"""


def msl_pendulum() -> Model:
    """The pendulum, released from the horizontal at rest."""
    phi, w = me.dynamicsymbols("phi w")
    m, g, d, r_cm, inertia = sm.symbols("m g d r_cm I", positive=True)

    world = me.RigidBody("world")
    system = me.System.from_newtonian(world)
    N = system.frame
    A = me.ReferenceFrame("A")
    # Only the inertia about the joint's axis matters: a pin lets nothing else turn.
    body = me.RigidBody("body", frame=A, mass=m)
    body.central_inertia = me.inertia(A, inertia, inertia, inertia)
    joint = me.PinJoint("rev", world, body, phi, w, child_point=-r_cm * A.x, joint_axis=N.z)
    system.add_joints(joint)
    system.apply_uniform_gravity(-g * N.y)
    damper = me.TorqueActuator.at_pin_joint(-d * w, joint)
    system.add_actuators(damper)

    model = Model("MslPendulum", system, description="Modelica's Pendulum: one damped joint", diagram=DIAGRAM)
    model.parameter(m, 1.0, "kg", min=1e-6, description="mass of the body")
    model.parameter(r_cm, 0.5, "m", min=0.0, description="distance of the mass centre from the joint")
    model.parameter(inertia, 1e-3, "kg.m2", min=0.0, description="central moment of inertia about the joint's axis")
    model.parameter(d, 0.1, "N.m.s/rad", min=0.0, description="damping of the joint")
    model.parameter(g, 9.80665, "m/s2", min=0.0, description="acceleration of gravity, along -N.y")
    model.coordinate(phi, 0.0, "rad", name="rev.phi", display_unit="deg", description="angle of the body from N.x")
    model.speed(w, 0.0, "rad/s", name="rev.w", description="angular speed of the body")
    model.output_position("mass_centre", body.masscenter)
    model.output_force("damper_torque", damper, unit="N.m")
    model.output_power("damper_power", damper)
    model.output_total_energy()
    model.experiment(stop=5.0, step=0.01, tolerance=1e-8)
    return model
