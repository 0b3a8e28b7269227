"""The DoublePendulum example of the Modelica Standard Library: two boxes, published results; a System with joints.

Coordinates: ``revolute1.phi`` is the angle of the first box from ``N.x`` (horizontal, to the right),
``revolute2.phi`` the angle of the second box from the line of the first, both positive counter-clockwise about
``N.z`` (out of the page). Gravity acts along -``N.y``. Only the first joint is damped. Mass and inertia of the boxes
follow from density and edges.

Source: Modelica Standard Library 4.0.0, Modelica.Mechanics.MultiBody.Examples.Elementary.DoublePendulum, and its
regression results.
"""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Box, Model

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 300 210" font-family="serif" font-size="15">
<rect width="300" height="210" fill="white"/>
<path d="M30 20V100" stroke="#333" stroke-width="3"/>
<path d="M30 60H280" stroke="#888" stroke-dasharray="5 4"/><path d="M290 60l-11 -5v10z" fill="#888"/>
<path d="M40 60L130 110" stroke="#9dc3e6" stroke-width="16"/>
<path d="M130 110L226 163" stroke="#888" stroke-dasharray="5 4"/>
<path d="M130 110L170 190" stroke="#a1d99b" stroke-width="16"/>
<circle cx="40" cy="60" r="6" fill="white" stroke="#333" stroke-width="2"/>
<circle cx="130" cy="110" r="6" fill="white" stroke="#333" stroke-width="2"/>
<path d="M104 60A64 64 0 0 1 101 79" fill="none" stroke="#d62728" stroke-width="2"/>
<path d="M97 88l-1 -11l9 4z" fill="#d62728"/>
<path d="M184 140A62 62 0 0 1 160 164" fill="none" stroke="#d62728" stroke-width="2"/>
<path d="M151 167l11 -7l1 9z" fill="#d62728"/>
<g font-style="italic"><text x="110" y="84" fill="#d62728">φ₁ &lt; 0</text>
<text x="184" y="166" fill="#d62728">φ₂ &lt; 0</text>
<text x="62" y="112">l, b</text><text x="116" y="166">l, b</text><text x="24" y="116">d</text><text x="258" y="148">g
</text></g>
<path d="M248 122V158" stroke="#333" stroke-width="2"/><path d="M248 164l-5 -10h10z" fill="#333"/>
<text x="268" y="48" font-size="12">N.x</text>
</svg>
"""


def msl_double_pendulum() -> Model:
    """The boxes, released from the horizontal at rest."""
    phi1, phi2, w1, w2 = me.dynamicsymbols("phi1 phi2 w1 w2")
    density, length, edge, m, inertia, d, g = sm.symbols("rho l b m I d g", positive=True)

    world = me.RigidBody("world")
    system = me.System.from_newtonian(world)
    N = system.frame
    A, B = me.ReferenceFrame("A"), me.ReferenceFrame("B")
    # Only the inertia about the joints' axis matters, for the motion is plane.
    box1, box2 = me.RigidBody("box1", frame=A, mass=m), me.RigidBody("box2", frame=B, mass=m)
    for box in (box1, box2):
        box.central_inertia = me.inertia(box.frame, inertia, inertia, inertia)
    half_a, half_b = length / 2 * A.x, length / 2 * B.x
    joint1 = me.PinJoint("revolute1", world, box1, phi1, w1, child_point=-half_a, joint_axis=N.z)
    joint2 = me.PinJoint("revolute2", box1, box2, phi2, w2, parent_point=half_a, child_point=-half_b, joint_axis=A.z)
    system.add_joints(joint1, joint2)
    system.apply_uniform_gravity(-g * N.y)
    system.add_actuators(me.TorqueActuator.at_pin_joint(-d * w1, joint1))
    tip = box2.masscenter.locatenew("tip", half_b)
    tip.v2pt_theory(box2.masscenter, N, B)

    model = Model("MslDoublePendulum", system, description="Modelica's DoublePendulum: two boxes", diagram=DIAGRAM)
    model.parameter(density, 7700.0, "kg/m3", min=1e-6, description="density of the boxes")
    model.parameter(length, 0.5, "m", min=1e-6, description="length of each box, from joint to joint")
    model.parameter(edge, 0.06, "m", min=1e-6, description="width and height of each box")
    model.parameter(m, density * length * edge**2, "kg", description="mass of each box")
    model.parameter(
        inertia, m * (length**2 + edge**2) / 12, "kg.m2", description="central inertia of a box about the joints' axis"
    )
    model.parameter(d, 0.1, "N.m.s/rad", min=0.0, description="damping of the first joint")
    model.parameter(g, 9.80665, "m/s2", min=0.0, description="acceleration of gravity, along -N.y")
    for name, phi, w, what in (
        ("revolute1", phi1, w1, "first box from N.x"),
        ("revolute2", phi2, w2, "second box from the line of the first"),
    ):
        model.coordinate(phi, 0.0, "rad", name=f"{name}.phi", display_unit="deg", description=f"angle of the {what}")
        model.speed(w, 0.0, "rad/s", name=f"{name}.w", description=f"angular speed of the {what}")
    model.output_position("tip", tip)
    model.output_total_energy()
    for box in (box1, box2):
        model.visual(box, Box(length, edge, edge))
    model.experiment(stop=3.0, step=0.01, tolerance=1e-8)
    return model
