"""The simplest walker: two legs without mass on a hinge, point feet, walking down a slope by gravity alone.

The foot of the stance leg does not slip; it stands at ``place`` along ``N.x``, which points down the slope; ``N.y``
points away from it. Coordinates: ``theta`` turns the stance leg from ``N.y``, counterclockwise about ``N.z``, so that
the hip is behind the foot where theta > 0; ``phi`` is the angle of the stance leg against the swing leg, 0 where they
coincide. The mass of a foot is 1e-10 of that of the hip, which stands for the limit of no mass; then, with lengths and
times in units of l and sqrt(l / g):

    theta'' = sin(theta - gamma),    theta'' - phi'' + theta'^2 sin(phi) - cos(theta - gamma) sin(phi) = 0.

The swing foot strikes where phi = 2 theta, in front of the stance foot; that it scrapes the slope in passing counts as
nothing. The legs change their names there, and the impulse goes along the new stance leg:

    theta+ = -theta,  phi+ = -2 theta,  theta'+ = cos(2 theta) theta',  phi'+ = cos(2 theta) (1 - cos(2 theta)) theta',
    place+ = place - 2 l sin(theta).

So neither the hip nor a foot jumps, and the potential energy is continuous.

It starts on the stable gait of slope 0.009: theta, theta' behind each strike are .200310900495, -.199832472918, each
step takes 3.88246375; small disturbances die out, with multipliers -.19 +- .56 i.

Source: M. Garcia, A. Chatterjee, A. Ruina, M. Coleman, The Simplest Walking Model: Stability, Complexity, and Scaling,
ASME Journal of Biomechanical Engineering 120 (1998), 281-288; digits as in the authors' own program.
"""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Cylinder, Model, Parts, Sphere, pre

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 260 210" font-family="serif" font-size="15">
<rect width="260" height="210" fill="white"/>
<path d="M10 168L250 196" stroke="#333" stroke-width="3"/>
<path d="M130 182L104 60L60 174" fill="none" stroke="#1f77b4" stroke-width="5"/>
<path d="M130 182L144 66" stroke="#888" stroke-dasharray="4 4"/>
<circle cx="104" cy="60" r="12" fill="#d62728"/><circle cx="130" cy="182" r="4" fill="#333"/>
<circle cx="60" cy="174" r="4" fill="#333"/>
<path d="M139 104A78 78 0 0 0 114 106" fill="none" stroke="#d62728"/>
<path d="M111 92A34 34 0 0 1 92 91" fill="none" stroke="#2ca02c"/>
<path d="M220 60V100" stroke="#333" stroke-width="2"/><path d="M220 106l-5 -10h10z" fill="#333"/>
<g font-style="italic"><text x="118" y="98" fill="#d62728">θ</text><text x="94" y="110" fill="#2ca02c">φ</text>
<text x="118" y="44">M</text><text x="226" y="88">g</text><text x="78" y="120">l</text></g>
</svg>
"""


def simplest_walker() -> Model:
    """The walker, just behind a strike of its stable gait."""
    theta, phi, omega, psi, place, steps = me.dynamicsymbols("theta phi omega psi place steps")
    M, l, g, gamma = sm.symbols("M l g gamma", positive=True)
    m = M / 10**10
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    A = N.orientnew("A", "Axis", (theta, N.z))
    A.set_ang_vel(N, omega * N.z)
    B = N.orientnew("B", "Axis", (theta - phi, N.z))
    B.set_ang_vel(N, (omega - psi) * N.z)
    S = O.locatenew("S", place * N.x)
    S.set_vel(N, 0)
    H = S.locatenew("H", l * A.y)
    H.v2pt_theory(S, N, A)
    F = H.locatenew("F", -l * B.y)
    F.v2pt_theory(H, N, B)
    hip, foot = me.Particle("hip", H, M), me.Particle("foot", F, m)
    down = sm.sin(gamma) * N.x - sm.cos(gamma) * N.y
    loads = [(H, M * g * down), (F, m * g * down)]
    rates = [theta.diff() - omega, phi.diff() - psi]
    # The origin is said: S moves when the legs change their names, though its velocity is zero otherwise.
    parts = Parts(
        frame=N,
        origin=O,
        q=[theta, phi],
        u=[omega, psi],
        kinematic_equations=rates,
        bodies=[hip, foot],
        loads=loads,
    )

    model = Model("SimplestWalker", parts, description="The simplest walker, down a slope", diagram=DIAGRAM)
    model.parameter(M, 1.0, "kg", min=1e-6, description="mass of the hip")
    model.parameter(l, 1.0, "m", min=1e-6, description="length of the legs")
    model.parameter(g, 1.0, "m/s2", min=1e-6, description="acceleration of gravity")
    model.parameter(gamma, 0.009, "rad", min=0.0, max=0.019, description="slope")
    behind = 0.20031090049483, -0.19983247291764
    model.coordinate(theta, behind[0], "rad", description="turn of the stance leg, counterclockwise from N.y")
    model.coordinate(phi, 2 * behind[0], "rad", description="angle of the stance leg against the swing leg")
    model.speed(omega, behind[1], "rad/s", description="angular velocity of the stance leg")
    # phi' = (1 - cos 2 theta) theta' behind a strike
    model.speed(psi, -0.0158229999483, "rad/s", description="rate of the angle between the legs")
    model.discrete(place, 0.0, "m", description="where the stance foot is, down the slope")
    model.discrete(steps, 0.0, min=0.0, description="number of steps")
    swings = sm.cos(2 * pre(theta))
    model.when(
        sm.And(phi >= 2 * theta, theta < -sm.Rational(1, 20)),
        {
            theta: -pre(theta),
            phi: -2 * pre(theta),
            omega: swings * pre(omega),
            psi: swings * (1 - swings) * pre(omega),
            place: pre(place) - 2 * l * sm.sin(pre(theta)),
            steps: pre(steps) + 1,
        },
        name="strike",
    )
    model.output_total_energy()
    model.visual(hip, Sphere(0.07), color="#d62728")
    model.visual(foot, Sphere(0.02), color="#333333")
    for frame, start, end in ((A, S, H), (B, F, H)):
        model.link(frame, start, end, radius=0.015)
    model.visual(N, Cylinder(3.6, 0.01), at=O.locatenew("slope", N.x), along=N.x, color="#8a94a3")
    model.experiment(stop=20.0, step=0.1, tolerance=1e-9)
    return model
