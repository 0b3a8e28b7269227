"""A particle on the slope q1 = q2: a Lagrangian with one constraint, whose force is known.

Coordinates: ``q1``, ``q2``, ``q3`` are the places of the particle along ``N.x``, ``N.y``, ``N.z``; ``N.z`` points up,
and gravity pulls along -N.z. The constraint q1 = q2 keeps the particle on a plane; its force is F N.x - F N.y, across
the plane, and the multiplier ``slope_force`` is -F. The input ``push`` is a force along N.x.

Equations: m q1'' = push + F, m q2'' = -F, m q3'' = -m g, q1'' = q2''. So F = -push/2, and q1'' = q2'' = push/(2 m).

Source: J. K. Moore, Learn Multibody Dynamics, chapter "Equations of Motion with the Lagrange Method" (Lagrange
multipliers); the push is added.
"""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Box, Model, Sphere

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 260 200" font-family="serif" font-size="15">
<rect width="260" height="200" fill="white"/>
<path d="M60 150L190 100V20L60 70Z" fill="#d9dde3" stroke="#555"/>
<path d="M60 150H230M60 150L150 186" stroke="#333" stroke-width="2"/>
<path d="M60 150V20" stroke="#333" stroke-width="2"/>
<path d="M236 150l-10 -5v10zM156 189l-11 -1l4 -9zM60 14l-5 10h10z" fill="#333"/>
<circle cx="125" cy="85" r="9" fill="#1f77b4"/>
<path d="M136 85H182" stroke="#d62728" stroke-width="2"/><path d="M190 85l-10 -5v10z" fill="#d62728"/>
<path d="M125 96V124" stroke="#333" stroke-width="2"/><path d="M125 130l-5 -10h10z" fill="#333"/>
<g font-style="italic"><text x="194" y="90" fill="#d62728">push</text><text x="106" y="74">P: m</text>
<text x="134" y="124">m g</text></g>
<g font-size="13"><text x="236" y="168">N.x, q₁</text>
<text x="160" y="186">N.y, q₂</text><text x="14" y="14">N.z, q₃</text></g>
</svg>
"""


def particle_on_slope() -> Model:
    """The particle, thrown upwards along the slope while something pushes it to and fro."""
    t = me.dynamicsymbols._t  # noqa: SLF001  (the symbol of time that SymPy mechanics uses)
    q = q1, q2, q3 = me.dynamicsymbols("q1 q2 q3")
    push = me.dynamicsymbols("push")
    m, g = sm.symbols("m g", positive=True)

    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", q1 * N.x + q2 * N.y + q3 * N.z)
    P.set_vel(N, q1.diff(t) * N.x + q2.diff(t) * N.y + q3.diff(t) * N.z)
    particle = me.Particle("P", P, m)
    particle.potential_energy = m * g * q3
    row = q1 - q2
    lagrangian = me.Lagrangian(N, particle)
    load = (P, push * N.x)
    mechanics = me.LagrangesMethod(lagrangian, q, hol_coneqs=[row], forcelist=[load], bodies=[particle], frame=N)

    model = Model("ParticleOnSlope", mechanics, description="A particle on the slope q1 = q2", diagram=DIAGRAM)
    model.parameter(m, 2.0, "kg", min=1e-6, description="mass of the particle")
    model.parameter(g, 9.81, "m/s2", min=0.0, description="acceleration of gravity, along -N.z")
    model.input(push, 0.0, "N", description="force on the particle along N.x")
    model.coordinate(q1, 0.3, "m", description="place along N.x")
    model.coordinate(q2, 0.3, "m", kind="guess", description="place along N.y")
    model.coordinate(q3, 0.0, "m", description="height")
    model.speed(q1.diff(t), 0.5, "m/s", name="v1", description="velocity along N.x")
    model.speed(q2.diff(t), 0.5, "m/s", name="v2", kind="guess", description="velocity along N.y")
    model.speed(q3.diff(t), 5.0, "m/s", name="v3", description="velocity upwards")
    model.output_multiplier("slope_force", row)
    model.output("acceleration", q1.diff(t, 2), "m/s2", description="acceleration along N.x")
    model.output_total_energy()
    model.visual(particle, Sphere(0.1))
    middle = O.locatenew("middle", 2 * (N.x + N.y) - 4 * N.z)
    model.visual(N, Box(6, 0.02, 11), at=middle, along=N.y - N.x, color="#8a94a3", opacity=0.5)
    model.trace(P)
    model.experiment(stop=2.0, step=0.01, tolerance=1e-8, signals={push: 3 * sm.sin(4 * t)})
    return model
