"""A ball that bounces: an event of the model's own, which sets its speed at each impact.

Coordinates: ``h`` is the height of the ball's lowest point above the ground, along ``N.y`` (up); the speed ``v`` is h'.
Between impacts h'' = -g. At the instant at which h comes to zero the speed becomes -e times what it was (Newton's
restitution). Impacts follow each other faster and faster: after the one at

    t_n = sqrt(2 h0 / g) (1 + 2 e (1 - e^n) / (1 - e)),    n = 0, 1, 2, …

the ball leaves the ground with e^(n + 1) sqrt(2 g h0), and at the limit of the t_n it would rest. The experiment ends
before that.

Source: any textbook; numbers as in W. Goldsmith, Impact, 1960, section 1.2, with e = 0.7.
"""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Box, Model, Sphere, pre

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 240 210" font-family="serif" font-size="15">
<rect width="240" height="210" fill="white"/>
<path d="M30 180H210" stroke="#333" stroke-width="3"/>
<circle cx="120" cy="70" r="20" fill="#1f77b4"/>
<path d="M150 180V90" stroke="#d62728"/><path d="M150 90l-4 10h8z" fill="#d62728"/>
<path d="M128 90H160" stroke="#888" stroke-dasharray="4 4"/>
<g font-style="italic"><text x="158" y="140" fill="#d62728">h</text><text x="60" y="118">g</text></g>
<path d="M50 90V126" stroke="#333" stroke-width="2"/><path d="M50 132l-5 -10h10z" fill="#333"/>
</svg>
"""


def bouncing_ball() -> Model:
    """The ball, dropped from 1 m."""
    h, v = me.dynamicsymbols("h v")
    m, g, e, radius = sm.symbols("m g e R", positive=True)
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", (h + radius) * N.y)
    P.set_vel(N, v * N.y)
    ball = me.Particle("ball", P, m)
    weight = (P, -m * g * N.y)
    kane = me.KanesMethod(N, [h], [v], [h.diff() - v], bodies=[ball], forcelist=[weight])

    model = Model("BouncingBall", kane, description="A ball that bounces on the ground", diagram=DIAGRAM)
    model.parameter(m, 1.0, "kg", min=1e-6, description="mass")
    model.parameter(radius, 0.05, "m", min=0.0, description="radius")
    model.parameter(g, 9.81, "m/s2", min=0.0, description="acceleration of gravity")
    model.parameter(e, 0.7, "1", min=0.0, max=1.0, description="coefficient of restitution")
    model.coordinate(h, 1.0, "m", description="height above the ground")
    model.speed(v, 0.0, "m/s", description="speed, upwards")
    model.when(h <= 0, {v: -e * pre(v)}, name="impact")
    model.output_total_energy()
    model.visual(ball, Sphere(radius))
    model.visual(N, Box(0.8, 0.02, 0.4), at=O.locatenew("ground", -0.01 * N.y), color="#8a94a3")
    model.experiment(stop=2.0, step=0.01, tolerance=1e-8)
    return model
