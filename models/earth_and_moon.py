"""Earth and Moon: two particles that attract each other by Newton's law of gravitation.

Coordinates: ``x1``, ``y1`` are the places of the Earth, ``x2``, ``y2`` those of the Moon in the plane of their orbits,
along ``N.x`` and ``N.y``; the speeds ``u1``, ``v1``, ``u2``, ``v2`` are their rates. The start is the perigee of an
ellipse with the mean semi-major axis and eccentricity, with the common centre of mass at rest in the origin.

Force along the line between them: G m1 m2 / r², from the potential V = -G m1 m2 / r. The motion of one about the other
is Kepler's ellipse, which closes after 2π sqrt(a³ / (G (m1 + m2))) = 27.3 days.

Source: J. K. Moore, Learn Multibody Dynamics, chapter "Energy and Power" (V of Newton's universal gravitation); L. D.
Landau, E. M. Lifshitz, Mechanics, 3rd ed., §15; values: NASA, Moon Fact Sheet.
"""

import math

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Model, Parts, Sphere

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 280 200" font-family="serif" font-size="15">
<rect width="280" height="200" fill="white"/>
<ellipse cx="134" cy="100" rx="106" ry="80" fill="none" stroke="#888" stroke-dasharray="5 4"/>
<path d="M155 100L222 55" stroke="#333"/>
<circle cx="155" cy="100" r="15" fill="#1f77b4"/><circle cx="222" cy="55" r="8" fill="#8a94a3"/>
<g stroke="#d62728" stroke-width="2"><path d="M168 91L186 79M215 60L199 71"/></g>
<g fill="#d62728"><path d="M193 74l-10 2l5 7z"/><path d="M192 76l5 -9l5 8z"/></g>
<g font-style="italic"><text x="126" y="132">m₁: x₁, y₁</text><text x="226" y="42">m₂: x₂, y₂</text>
<text x="178" y="68">r</text></g>
<path d="M20 184H52M20 184V152" stroke="#555" fill="none"/>
<text x="56" y="189" font-size="12">N.x</text><text x="12" y="147" font-size="12">N.y</text>
</svg>
"""

EARTH, MOON, GRAVITATION = 5.9722e24, 7.346e22, 6.6743e-11
SEMI_MAJOR_AXIS, ECCENTRICITY = 3.844e8, 0.0549


def earth_and_moon() -> Model:
    """Both at perigee, for two months."""
    t = me.dynamicsymbols._t  # noqa: SLF001  (the symbol of time that SymPy mechanics uses)
    q, u = me.dynamicsymbols("x1 y1 x2 y2"), me.dynamicsymbols("u1 v1 u2 v2")
    m1, m2, G = sm.symbols("m1 m2 G", positive=True)

    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    bodies = []
    for name, mass, place, speed in (("earth", m1, q[:2], u[:2]), ("moon", m2, q[2:], u[2:])):
        P = O.locatenew(name, place[0] * N.x + place[1] * N.y)
        P.set_vel(N, speed[0] * N.x + speed[1] * N.y)
        bodies.append(me.Particle(name, P, mass))
    line = me.LinearPathway(*(body.masscenter for body in bodies))
    parts = Parts(
        frame=N,
        origin=O,
        q=q,
        u=u,
        kinematic_equations=[place.diff(t) - speed for place, speed in zip(q, u, strict=True)],
        bodies=bodies,
        actuators=[me.ForceActuator(-G * m1 * m2 / line.length**2, line)],
    )

    model = Model("EarthAndMoon", parts, description="Two bodies under Newton's gravitation", diagram=DIAGRAM)
    model.parameter(m1, EARTH, "kg", min=1.0, description="mass of the Earth")
    model.parameter(m2, MOON, "kg", min=1.0, description="mass of the Moon")
    model.parameter(G, GRAVITATION, "m3/(kg.s2)", min=0.0, description="gravitational constant")
    distance = SEMI_MAJOR_AXIS * (1 - ECCENTRICITY)
    attraction = GRAVITATION * (EARTH + MOON)
    rate = math.sqrt(attraction * (2 / distance - 1 / SEMI_MAJOR_AXIS))
    shares = (-MOON / (EARTH + MOON), EARTH / (EARTH + MOON))
    for i, (body, share) in enumerate(zip(("Earth", "Moon"), shares, strict=True)):
        size = {"nominal": abs(share) * SEMI_MAJOR_AXIS}
        model.coordinate(q[2 * i], share * distance, "m", description=f"place of the {body} along N.x", **size)
        model.coordinate(q[2 * i + 1], 0.0, "m", description=f"place of the {body} along N.y", **size)
        size = {"nominal": abs(share) * rate}
        model.speed(u[2 * i], 0.0, "m/s", description=f"velocity of the {body} along N.x", **size)
        model.speed(u[2 * i + 1], share * rate, "m/s", description=f"velocity of the {body} along N.y", **size)
    model.output_distance("distance", *(body.masscenter for body in bodies))
    model.output_potential_energy()
    model.output_total_energy()
    for body, radius in zip(bodies, (1.6e7, 0.9e7), strict=True):
        model.visual(body, Sphere(radius))
        model.trace(body.masscenter)
    model.experiment(stop=60 * 86400.0, step=21600.0, tolerance=1e-8)
    return model
