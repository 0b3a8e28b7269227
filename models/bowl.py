"""A particle that slides in a spherical bowl: one holonomic constraint, its multiplier the force of the bowl.

Coordinates: ``x``, ``y``, ``z`` are the place of the particle from the centre of the bowl, ``N.z`` up; the speeds are
their rates. The distance from the centre is the radius R:

    phi = sqrt(x² + y² + z²) - R = 0

so that the multiplier is the force with which the bowl pushes the particle to its centre: in M u' + G^T lambda = f
the force on the particle is -lambda times the gradient of phi, the unit vector outward. From energy, with v² = v0² +
2 g (z0 - z), lambda = m (v² - g z) / R. The particle never leaves the bowl as long as that is positive.

Energy and the moment of momentum about N.z are constant; z(t) is an elliptic function.

Source: E. T. Whittaker, A Treatise on the Analytical Dynamics of Particles and Rigid Bodies, Cambridge 1904, section 55
(the spherical pendulum).
"""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Model, Sphere

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 280 210" font-family="serif" font-size="15">
<rect width="280" height="210" fill="white"/>
<path d="M30 60A110 110 0 0 0 250 60" fill="#f2f2f2" stroke="#333" stroke-width="2"/>
<ellipse cx="140" cy="60" rx="110" ry="26" fill="white" stroke="#333"/>
<ellipse cx="140" cy="126" rx="83" ry="18" fill="none" stroke="#888" stroke-dasharray="5 4"/>
<path d="M140 60V14M140 60H262" stroke="#555"/><path d="M140 8l-4 10h8z" fill="#555"/>
<path d="M268 60l-10 -4v8z" fill="#555"/>
<path d="M140 60L204 137" stroke="#888"/><circle cx="204" cy="137" r="6" fill="#1f77b4"/>
<path d="M204 137L182 110" stroke="#d62728" stroke-width="2.500"/><path d="M177 104l1 11l8 -6z" fill="#d62728"/>
<g font-style="italic"><text x="164" y="118" fill="#d62728">λ</text><text x="158" y="92">R</text>
<text x="214" y="148">(x, y, z)</text><text x="40" y="26">g</text></g>
<path d="M30 14V44" stroke="#333" stroke-width="2"/><path d="M30 50l-5 -10h10z" fill="#333"/>
<g font-size="12"><text x="150" y="18">N.z</text><text x="252" y="52">N.x</text></g>
</svg>
"""


def bowl() -> Model:
    """The particle, thrown along the bowl's wall."""
    q = x, y, z = me.dynamicsymbols("x y z")
    u = [symbol.diff() for symbol in q]
    m, R, g = sm.symbols("m R g", positive=True)
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y + z * N.z)
    P.set_vel(N, u[0] * N.x + u[1] * N.y + u[2] * N.z)
    particle = me.Particle("particle", P, m)
    particle.potential_energy = m * g * z
    phi = sm.sqrt(x**2 + y**2 + z**2) - R
    energy = me.Lagrangian(N, particle)
    method = me.LagrangesMethod(energy, q, hol_coneqs=[phi], frame=N, bodies=[particle])

    model = Model("Bowl", method, description="A particle in a spherical bowl", diagram=DIAGRAM)
    model.parameter(m, 0.1, "kg", min=1e-6, description="mass")
    model.parameter(R, 1.0, "m", min=1e-6, tunable=False, description="radius of the bowl")
    model.parameter(g, 9.81, "m/s2", min=0.0, description="acceleration of gravity")
    starts = zip(q, u, (0.6, 0.0, -0.8), (0.0, 2.5, 0.0), ("fixed", "fixed", "guess"), "xyz", strict=True)
    for place, speed, start, rate, kind, axis in starts:
        model.coordinate(place, start, "m", kind=kind, description=f"place of the particle along N.{axis}")
        model.speed(speed, rate, "m/s", kind=kind, description=f"velocity of the particle along N.{axis}")
    model.constraint(phi, "wall")
    model.output_multiplier("wall_force", phi)
    model.output("moment_of_momentum", m * (x * u[1] - y * u[0]), "kg.m2/s")
    model.output_total_energy()
    model.visual(N, Sphere(R), at=O, color="#c9ced6", opacity=0.3)
    model.visual(particle, Sphere(R / 20))
    model.trace(P)
    model.experiment(stop=5.0, step=0.01, tolerance=1e-8)
    return model
