"""Two uniform rods on pins with a motor at the shoulder: a System with joints, chaotic.

Coordinates: ``shoulder.angle`` is the angle of the upper rod from the downward vertical, ``elbow.angle`` the angle of
the lower rod from the line of the upper one; both positive counter-clockwise about ``N.z`` (out of the page). ``N.x``
points to the right, ``N.y`` up. The input ``shoulder.torque`` acts on the upper rod, positive counter-clockwise.

Source: T. R. Kane, D. A. Levinson, Dynamics: Theory and Applications, McGraw-Hill 1985, ch. 4-6 (generalized forces of
pinned rods); any textbook on chaos.
"""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Cylinder, Model

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 260 250" font-family="serif" font-size="15">
<rect width="260" height="250" fill="white"/>
<path d="M60 30H160" stroke="#333" stroke-width="3"/>
<path d="M110 30V120" stroke="#888" stroke-dasharray="5 4"/>
<path d="M110 30L160 117" stroke="#1f77b4" stroke-width="7" stroke-linecap="round"/>
<path d="M160 117L195 178" stroke="#888" stroke-dasharray="5 4"/>
<path d="M160 117L235 150" stroke="#2ca02c" stroke-width="7" stroke-linecap="round"/>
<circle cx="110" cy="30" r="5" fill="white" stroke="#333" stroke-width="2"/>
<circle cx="160" cy="117" r="5" fill="white" stroke="#333" stroke-width="2"/>
<path d="M110 85A55 55 0 0 0 135 79" fill="none" stroke="#d62728" stroke-width="2"/>
<path d="M140 76l-9 0l4 8z" fill="#d62728"/>
<path d="M187 164A54 54 0 0 0 207 143" fill="none" stroke="#d62728" stroke-width="2"/>
<path d="M210 137l-8 5l7 5z" fill="#d62728"/>
<path d="M88 44A26 26 0 0 1 96 8" fill="none" stroke="#9467bd" stroke-width="2"/>
<path d="M94 50l-9 -2l6 -7z" fill="#9467bd"/>
<g font-style="italic"><text x="116" y="104" fill="#d62728">q₁</text><text x="205" y="172" fill="#d62728">q₂</text>
<text x="68" y="22" fill="#9467bd">τ</text><text x="146" y="68">m₁, l₁</text><text x="196" y="122">m₂, l₂</text>
<text x="38" y="118">g</text></g>
<path d="M28 90V126" stroke="#333" stroke-width="2"/><path d="M28 132l-5 -10h10z" fill="#333"/>
<path d="M20 230H52M20 230V198" stroke="#555" fill="none"/>
<text x="56" y="235" font-size="12">N.x</text><text x="12" y="193" font-size="12">N.y</text>
</svg>
"""


def double_pendulum() -> Model:
    """The rods, released with the upper one horizontal; a sinusoidal torque at the shoulder."""
    t = me.dynamicsymbols._t  # noqa: SLF001  (the symbol of time that SymPy mechanics uses)
    q1, q2, u1, u2, tau = me.dynamicsymbols("q1 q2 u1 u2 tau")
    m1, m2, l1, l2, g, I1, I2 = sm.symbols("m1 m2 l1 l2 g I1 I2", positive=True)

    ground = me.RigidBody("ground")
    system = me.System.from_newtonian(ground)
    N = system.frame
    A, B = me.ReferenceFrame("A"), me.ReferenceFrame("B")
    upper, lower = me.RigidBody("upper", frame=A, mass=m1), me.RigidBody("lower", frame=B, mass=m2)
    upper.central_inertia, lower.central_inertia = me.inertia(A, I1, 0, I1), me.inertia(B, I2, 0, I2)
    shoulder = me.PinJoint("shoulder", ground, upper, q1, u1, child_point=l1 / 2 * A.y, joint_axis=N.z)
    elbow = me.PinJoint(
        "elbow", upper, lower, q2, u2, parent_point=-l1 / 2 * A.y, child_point=l2 / 2 * B.y, joint_axis=A.z
    )
    system.add_joints(shoulder, elbow)
    system.apply_uniform_gravity(-g * N.y)
    motor = me.TorqueActuator.at_pin_joint(tau, shoulder)
    system.add_actuators(motor)
    tip = lower.masscenter.locatenew("tip", -l2 / 2 * B.y)
    tip.v2pt_theory(lower.masscenter, N, B)

    model = Model("DoublePendulum", system, description="Two uniform rods on pins, motor torque", diagram=DIAGRAM)
    for number, mass, length, inertia in (("upper", m1, l1, I1), ("lower", m2, l2, I2)):
        model.parameter(mass, 1.0, "kg", min=1e-6, description=f"mass of the {number} rod")
        model.parameter(length, 1.0, "m", min=1e-6, description=f"length of the {number} rod")
        model.parameter(
            inertia,
            mass * length**2 / 12,
            "kg.m2",
            description=f"central inertia of the {number} rod across its length",
        )
    model.parameter(g, 9.81, "m/s2", min=0.0, description="acceleration of gravity")
    model.input(tau, 0.0, "N.m", name="shoulder.torque", description="motor torque on the upper rod")
    for joint, q, u, start, what in (
        ("shoulder", q1, u1, sm.pi / 2, "upper rod from the downward vertical"),
        ("elbow", q2, u2, 0.0, "lower rod from the line of the upper one"),
    ):
        model.coordinate(
            q, float(start), "rad", name=f"{joint}.angle", display_unit="deg", description=f"angle of the {what}"
        )
        model.speed(
            u, 0.0, "rad/s", name=f"{joint}.speed", display_unit="rpm", description=f"angular speed of the {what}"
        )
    model.output_position("tip", tip)
    model.output_velocity("tip_velocity", tip)
    model.output_power("motor_power", motor)
    model.output_kinetic_energy()
    model.output_potential_energy()
    model.output_total_energy()
    model.visual(upper, Cylinder(l1, 0.03))
    model.visual(lower, Cylinder(l2, 0.03))
    model.trace(tip)
    # Chaotic: 4 s is as long as an error of 1e-8 stays below 1e-5.
    model.experiment(stop=4.0, step=0.01, tolerance=1e-8, signals={tau: 0.5 * sm.sin(2 * t)})
    return model
