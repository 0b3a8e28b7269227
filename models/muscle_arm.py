"""A forearm that the biceps lifts: SymPy's musculotendon model, whose activation is an auxiliary state.

Coordinates: ``elbow.angle`` is the flexion of the elbow, 0 with the forearm hanging straight down, positive counter-
clockwise about ``N.z`` (out of the page), so that the hand comes forward along ``N.x``. The upper arm is fixed and
hangs along -``N.y``. The biceps pulls along a straight line from its origin at the shoulder (a distance ``h`` above
the elbow and ``b`` in front of the bone) to its insertion on the forearm, a distance ``r`` from the elbow. The hand
holds a load.

The input ``excitation`` (0 to 1) is the neural signal; the state ``activation`` follows it with different time
constants for rise (15 ms) and decay (60 ms). The tendon is rigid, so its length and the fibre's follow from the
elbow's angle.

    F = -F_max (a f_active(l) f_speed(v) + f_passive(l) + beta v)   (contractile, along the pathway)

Source: F. De Groote, A. L. Kinney, A. V. Rao, B. J. Fregly, "Evaluation of direct collocation optimal control problem
formulations for solving the muscle redundancy problem", Ann. Biomed. Eng. 44 (2016) 2922-2936; peak force and fibre
length of the biceps' long head: K. R. S. Holzbaur, W. M. Murray, S. L. Delp, Ann. Biomed. Eng. 33 (2005) 829-840.
"""

import sympy as sm
import sympy.physics.mechanics as me
from sympy.physics.biomechanics import FirstOrderActivationDeGroote2016, MusculotendonDeGroote2016

from mb2fmu import Model

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 300 270" font-family="serif" font-size="15">
<rect width="300" height="270" fill="white"/>
<path d="M60 24H150" stroke="#333" stroke-width="3"/>
<path d="M100 24V160" stroke="#bbb" stroke-width="12"/>
<path d="M100 160V252" stroke="#888" stroke-dasharray="5 4"/>
<path d="M100 160L215 215" stroke="#bbb" stroke-width="12" stroke-linecap="round"/>
<circle cx="226" cy="220" r="15" fill="#9dc3e6" stroke="#333"/>
<path d="M118 30L134 176" stroke="#c44" stroke-width="2"/>
<path d="M120 60Q144 104 129 146Q112 104 120 60z" fill="#e57373" stroke="#c44"/>
<circle cx="118" cy="30" r="3.500" fill="#333"/><circle cx="134" cy="176" r="3.500" fill="#333"/>
<circle cx="100" cy="160" r="6" fill="white" stroke="#333" stroke-width="2"/>
<path d="M100 228A68 68 0 0 0 153 203" fill="none" stroke="#d62728" stroke-width="2"/>
<path d="M161 193l-11 5l7 6z" fill="#d62728"/>
<path d="M76 30V160" stroke="#333"/><path d="M76 24l-4 10h8zM76 160l-4 -10h8z" fill="#333"/>
<g font-style="italic"><text x="126" y="238" fill="#d62728">q</text><text x="62" y="98">h</text>
<text x="106" y="50">b</text>
<text x="122" y="200">r</text><text x="246" y="226">load</text><text x="166" y="184">m, I</text>
<text x="146" y="108" fill="#c44">biceps: F, a</text><text x="256" y="110">g</text></g>
<path d="M246 82V118" stroke="#333" stroke-width="2"/><path d="M246 124l-5 -10h10z" fill="#333"/>
<path d="M20 250H52M20 250V218" stroke="#555" fill="none"/>
<text x="56" y="255" font-size="12">N.x</text><text x="12" y="213" font-size="12">N.y</text>
</svg>
"""


def muscle_arm() -> Model:
    """The hanging forearm; the biceps is excited in a slow rhythm."""
    t = me.dynamicsymbols._t  # noqa: SLF001  (the symbol of time that SymPy mechanics uses)
    q, u = me.dynamicsymbols("q u")
    m, inertia, load, g, d = sm.symbols("m I m_load g d", positive=True)
    geometry = height, front, lever, centre, hand = sm.symbols("h b r l_c l_h", positive=True)
    fibre = F_max, l_opt, l_slack, _, v_max, alpha_opt, beta = sm.symbols("F_max l_opt l_slack k_v v_max alpha beta")

    upper_arm = me.RigidBody("upper_arm")
    system = me.System.from_newtonian(upper_arm)
    N, elbow_point = system.frame, system.fixed_point
    A = me.ReferenceFrame("A")
    forearm = me.RigidBody("forearm", frame=A, mass=m)
    forearm.central_inertia = me.inertia(A, inertia, 0, inertia)
    elbow = me.PinJoint("elbow", upper_arm, forearm, q, u, child_point=centre * A.y, joint_axis=N.z)
    system.add_joints(elbow)
    hand_point = forearm.masscenter.locatenew("hand", -(hand - centre) * A.y)
    hand_point.v2pt_theory(forearm.masscenter, N, A)
    system.add_bodies(me.Particle("load", hand_point, load))
    system.apply_uniform_gravity(-g * N.y)
    system.add_actuators(me.TorqueActuator.at_pin_joint(-d * u, elbow))

    origin = elbow_point.locatenew("origin", height * N.y + front * N.x)
    origin.set_vel(N, 0)
    insertion = forearm.masscenter.locatenew("insertion", (centre - lever) * A.y)
    insertion.v2pt_theory(forearm.masscenter, N, A)
    pathway = me.LinearPathway(origin, insertion)
    activation = FirstOrderActivationDeGroote2016.with_defaults("biceps")
    biceps = MusculotendonDeGroote2016.with_defaults(
        "biceps",
        pathway,
        activation,
        tendon_slack_length=l_slack,
        peak_isometric_force=F_max,
        optimal_fiber_length=l_opt,
        maximal_fiber_velocity=v_max,
        optimal_pennation_angle=alpha_opt,
        fiber_damping_coefficient=beta,
    )
    system.add_actuators(biceps)

    model = Model("MuscleArm", system, description="A forearm lifted by the biceps, with activation", diagram=DIAGRAM)
    _declare_parameters(model, (m, inertia, load, g, d), geometry, fibre)
    excitation = activation.excitation
    model.input(excitation, 0.0, name="excitation", min=0.0, max=1.0, description="neural excitation of the biceps")
    model.coordinate(q, 0.2, "rad", name="elbow.angle", display_unit="deg", description="flexion of the elbow")
    model.speed(u, 0.0, "rad/s", name="elbow.speed", description="angular speed of the forearm")
    model.state(
        activation.activation,
        biceps.rhs()[0],
        0.3,
        name="activation",
        min=0.0,
        max=1.0,
        description="activation of the biceps",
    )
    model.output_position("hand", hand_point)
    model.output_force("biceps_force", biceps)
    model.output_power("biceps_power", biceps)
    model.output_distance("biceps_length", origin, insertion)
    model.output_kinetic_energy()
    model.experiment(stop=4.0, step=0.01, tolerance=1e-7, signals={excitation: 0.4 - 0.1 * sm.cos(sm.pi * t)})
    return model


def _declare_parameters(
    model: Model, masses: tuple[sm.Symbol, ...], geometry: tuple[sm.Symbol, ...], fibre: tuple[sm.Symbol, ...]
) -> None:
    """Values, units and meanings of the parameters."""
    m, inertia, load, g, d = masses
    model.parameter(m, 1.5, "kg", min=1e-6, description="mass of forearm and hand")
    model.parameter(inertia, 0.02, "kg.m2", min=1e-9, description="central inertia of forearm and hand")
    model.parameter(load, 2.0, "kg", min=0.0, description="mass held in the hand")
    model.parameter(g, 9.81, "m/s2", min=0.0, description="acceleration of gravity, along -N.y")
    model.parameter(d, 0.3, "N.m.s/rad", min=0.0, description="damping of the elbow")
    height, front, lever, centre, hand = geometry
    model.parameter(height, 0.28, "m", min=1e-3, description="origin of the biceps above the elbow")
    model.parameter(front, 0.03, "m", min=1e-3, description="origin of the biceps in front of the bone")
    model.parameter(lever, 0.04, "m", min=1e-3, description="insertion of the biceps from the elbow")
    model.parameter(centre, 0.16, "m", min=1e-3, description="mass centre of forearm and hand from the elbow")
    model.parameter(hand, 0.35, "m", min=1e-3, description="hand from the elbow")
    F_max, l_opt, l_slack, shortening, v_max, alpha_opt, beta = fibre
    model.parameter(F_max, 624.3, "N", min=1e-3, description="peak isometric force")
    model.parameter(l_opt, 0.1157, "m", min=1e-3, description="optimal fibre length")
    model.parameter(l_slack, 0.18, "m", min=1e-3, description="slack length of the tendon")
    model.parameter(shortening, 10.0, "1/s", min=1e-3, description="fastest shortening, in optimal lengths per second")
    # SymPy divides the fibre's speed in m/s by this; its default of 10 would be 10 m/s.
    model.parameter(v_max, shortening * l_opt, "m/s", description="fastest shortening of the fibre")
    model.parameter(alpha_opt, 0.0, "rad", min=0.0, max=1.0, description="pennation angle at the optimal length")
    model.parameter(beta, 0.1, min=0.0, description="damping of the fibre")
