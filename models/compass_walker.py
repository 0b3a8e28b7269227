"""The compass walker: two legs with masses on a hip with a mass, walking down a slope by gravity alone.

The foot of the stance leg does not slip; it stands at ``place`` along ``N.x``, which points down the slope; ``N.y``
points away from it. Coordinates: ``theta`` turns the stance leg from ``N.y``, ``phi`` the swing leg, both
counterclockwise about ``N.z``, so that the hip is behind the foot where theta > 0. Each leg has its mass ``m`` at ``a``
from its foot and ``b`` from the hip, whose mass is ``mH``; a + b = l.

The swing foot strikes where phi = -theta, in front of the stance foot; that it scrapes the slope in passing counts as
nothing. The foot that touched down stays, and the old stance foot is free at once: the angular momentum of all about
the new stance foot stays, and that of the old stance leg about the hip. The legs change their names: with
c = cos(theta - phi),

    theta+ = phi,  phi+ = theta,  b phi'+ = l c theta'+ - a theta',
    theta'+ (mH l^2 + m a^2 + m l^2 - m l b c) + m phi'+ b (b - l c) = theta' (mH l^2 c + m a (2 l c - b)) - m a b phi'.

So neither the hip nor a foot jumps, and the potential energy is continuous.

It starts on the stable gait of slope 3 degrees: theta, theta', phi' behind each strike are .271028680499,
-1.09238358988, -.377373948907, each step takes .734346391159 s (by SciPy alone, from these equations); small
disturbances die out, with multipliers .13 and -.20 +- .54 i.

Source: A. Goswami, B. Thuilot, B. Espiau, A Study of the Passive Gait of a Compass-Like Biped Robot: Symmetry and
Chaos, The International Journal of Robotics Research 17 (1998), 1282-1301; its legs of 5 kg, hip of 10 kg, a = b.
"""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Cylinder, Model, Parts, Sphere, pre

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 260 210" font-family="serif" font-size="15">
<rect width="260" height="210" fill="white"/>
<path d="M10 168L250 196" stroke="#333" stroke-width="3"/>
<path d="M130 182L104 60L60 174" fill="none" stroke="#1f77b4" stroke-width="5"/>
<path d="M130 182L144 66M104 60L90 168" stroke="#888" stroke-dasharray="4 4"/>
<circle cx="104" cy="60" r="12" fill="#d62728"/><circle cx="117" cy="121" r="8" fill="#ff7f0e"/>
<circle cx="82" cy="117" r="8" fill="#ff7f0e"/>
<path d="M139 104A78 78 0 0 0 114 106" fill="none" stroke="#d62728"/>
<path d="M95 128A68 68 0 0 1 78 127" fill="none" stroke="#2ca02c"/>
<path d="M220 60V100" stroke="#333" stroke-width="2"/><path d="M220 106l-5 -10h10z" fill="#333"/>
<g font-style="italic"><text x="120" y="98" fill="#d62728">θ</text><text x="82" y="144" fill="#2ca02c">φ</text>
<text x="120" y="52">m<tspan dy="3" font-size="9">H</tspan></text>
<text x="130" y="130">m</text><text x="58" y="112">m</text>
<text x="130" y="158">a</text><text x="92" y="92">b</text><text x="226" y="88">g</text></g>
</svg>
"""


def compass_walker() -> Model:
    """The walker, just behind a strike of its stable gait."""
    theta, phi, omega, nu, place, steps = me.dynamicsymbols("theta phi omega nu place steps")
    m, mH, a, b, g, gamma = sm.symbols("m mH a b g gamma", positive=True)
    l = a + b
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    A = N.orientnew("A", "Axis", (theta, N.z))
    A.set_ang_vel(N, omega * N.z)
    B = N.orientnew("B", "Axis", (phi, N.z))
    B.set_ang_vel(N, nu * N.z)
    S = O.locatenew("S", place * N.x)
    S.set_vel(N, 0)
    C = S.locatenew("C", a * A.y)
    C.v2pt_theory(S, N, A)
    H = S.locatenew("H", l * A.y)
    H.v2pt_theory(S, N, A)
    D = H.locatenew("D", -b * B.y)
    D.v2pt_theory(H, N, B)
    F = H.locatenew("F", -l * B.y)
    F.v2pt_theory(H, N, B)
    hip, stance, swing = me.Particle("hip", H, mH), me.Particle("stance", C, m), me.Particle("swing", D, m)
    down = sm.sin(gamma) * N.x - sm.cos(gamma) * N.y
    # The origin is said: S moves when the legs change their names, though its velocity is zero otherwise.
    parts = Parts(
        frame=N,
        origin=O,
        q=[theta, phi],
        u=[omega, nu],
        kinematic_equations=[theta.diff() - omega, phi.diff() - nu],
        bodies=[hip, stance, swing],
        loads=[(body.masscenter, body.mass * g * down) for body in (hip, stance, swing)],
    )

    model = Model("CompassWalker", parts, description="The compass walker, down a slope", diagram=DIAGRAM)
    model.parameter(m, 5.0, "kg", min=1e-6, description="mass of each leg")
    model.parameter(mH, 10.0, "kg", min=1e-6, description="mass of the hip")
    model.parameter(a, 0.5, "m", min=1e-6, description="from a foot to the mass of its leg")
    model.parameter(b, 0.5, "m", min=1e-6, description="from the mass of a leg to the hip")
    model.parameter(g, 9.81, "m/s2", min=1e-6, description="acceleration of gravity")
    model.parameter(gamma, 0.05235987755982988, "rad", min=0.0, max=0.09, display_unit="deg", description="slope")
    behind = 0.2710286804988152
    model.coordinate(theta, behind, "rad", description="turn of the stance leg, counterclockwise from N.y")
    model.coordinate(phi, -behind, "rad", description="turn of the swing leg, counterclockwise from N.y")
    model.speed(omega, -1.092383589883587, "rad/s", description="angular velocity of the stance leg")
    model.speed(nu, -0.377373948907221, "rad/s", description="angular velocity of the swing leg")
    model.discrete(place, 0.0, "m", description="where the stance foot is, down the slope")
    model.discrete(steps, 0.0, min=0.0, description="number of steps")
    c = sm.cos(pre(theta) - pre(phi))
    momentum = pre(omega) * (mH * l**2 * c + m * a * (2 * l * c - b)) - m * a * b * pre(nu)
    of_hip = mH * l**2 + m * a**2 + m * l**2 - m * l * b * c
    lever = m * (b - l * c)
    stands = (momentum + lever * a * pre(omega)) / (of_hip + lever * l * c)
    model.when(
        sm.And(theta + phi <= 0, theta < -sm.Rational(1, 20)),
        {
            theta: pre(phi),
            phi: pre(theta),
            omega: stands,
            nu: (l * c * stands - a * pre(omega)) / b,
            place: pre(place) - 2 * l * sm.sin(pre(theta)),
            steps: pre(steps) + 1,
        },
        name="strike",
    )
    model.output_total_energy()
    model.visual(hip, Sphere(0.07), color="#d62728")
    for leg in (stance, swing):
        model.visual(leg, Sphere(0.045), color="#ff7f0e")
    for frame, start in ((A, S), (B, F)):
        model.link(frame, start, H, radius=0.015)
    model.visual(N, Cylinder(4.2, 0.01), at=O.locatenew("slope", 1.2 * N.x), along=N.x, color="#8a94a3")
    model.experiment(stop=4.0, step=0.05, tolerance=1e-9)
    return model
