"""A toy woodpecker on its pole: it swings on a spring, its sleeve jams and slides, its beak strikes.

Coordinates: ``y`` is the height of the sleeve along ``N.y`` (up), ``phi_M`` turns the sleeve and ``phi_S`` the bird,
counterclockwise about ``N.z``. Angles are small: displacements are linear in them, as published, so that the heights of
sleeve and bird are y and y + l_M phi_M + l_G phi_S. A spring c_phi joins the two. The pole is touched by the beak and
by two edges of the sleeve, whose hole is wider than the pole:

    beak   gap  l_M + l_G - l_S - r_O - h_S phi_S     slip  y' + l_M phi_M' + (l_G - l_S) phi_S'
    lower  gap  r_M - r_O + h_M phi_M                 slip  y' + r_M phi_M'
    upper  gap  r_M - r_O - h_M phi_M                 slip  y' + r_M phi_M'

with Coulomb's friction at all three. Where the sleeve jams the bird swings on, and by its swinging frees the sleeve: it
goes down by 19.4454 mm in each cycle of .1459761 s. What disturbs it dies out, by the factor -0.84 in each cycle.

Source: F. Pfeiffer and C. Glocker, Multibody Dynamics with Unilateral Contacts, 1996, section 11.3; parameters as in
the example WoodPecker of Siconos.
"""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Box, Cylinder, Impact, Model, Sphere

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 240 260" font-family="serif" font-size="15">
<rect width="240" height="260" fill="white"/>
<rect x="52" y="10" width="10" height="240" fill="#d9b98a" stroke="#333"/>
<g transform="rotate(-5 57 150)"><path d="M45 124H50V176H45ZM64 124H69V176H64Z" fill="#cfe2f3" stroke="#333"/></g>
<path d="M70 150h12l4 -8 8 16 8 -16 8 16 4 -8h16" fill="none" stroke="#333" stroke-width="2"/>
<g transform="rotate(-12 130 150)"><ellipse cx="146" cy="138" rx="22" ry="46" fill="#f4cccc" stroke="#333"/>
<circle cx="134" cy="84" r="15" fill="#d62728" stroke="#333"/><path d="M120 82L74 92 121 90z" fill="#555"/></g>
<path d="M24 250V156" stroke="#d62728"/><path d="M24 148l-4 10h8z" fill="#d62728"/>
<path d="M24 150H46" stroke="#888" stroke-dasharray="4 4"/>
<path d="M216 60V96" stroke="#333" stroke-width="2"/><path d="M216 102l-5 -10h10z" fill="#333"/>
<g font-style="italic"><text x="8" y="206" fill="#d62728">y</text><text x="222" y="84">g</text>
<text x="74" y="200">φ</text><text x="83" y="205" font-size="11">M</text><text x="176" y="190">φ</text>
<text x="185" y="195" font-size="11">S</text><text x="92" y="136">c</text></g>
</svg>
"""


def woodpecker() -> Model:
    """The bird on its limit cycle, swinging away from the pole; the sleeve has just come free of it."""
    y, phi_M, phi_S, v, omega_M, omega_S = me.dynamicsymbols("y phi_M phi_S v omega_M omega_S")
    m_M, m_S, J_M, J_S, c_phi, g = sm.symbols("m_M m_S J_M J_S c_phi g", positive=True)
    r_O, r_M, h_M, l_M, l_G, h_S, l_S = sm.symbols("r_O r_M h_M l_M l_G h_S l_S", positive=True)
    mu = sm.Symbol("mu", positive=True)
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    A, B = N.orientnew("A", "Axis", (phi_M, N.z)), N.orientnew("B", "Axis", (phi_S, N.z))
    A.set_ang_vel(N, omega_M * N.z)
    B.set_ang_vel(N, omega_S * N.z)
    M = O.locatenew("M", y * N.y)
    M.set_vel(N, v * N.y)
    S = O.locatenew("S", (l_M + l_G) * N.x + (y + l_M * phi_M + l_G * phi_S) * N.y)
    S.set_vel(N, (v + l_M * omega_M + l_G * omega_S) * N.y)
    sleeve = me.RigidBody("sleeve", M, A, m_M, (me.inertia(A, 0, 0, J_M), M))
    bird = me.RigidBody("bird", S, B, m_S, (me.inertia(B, 0, 0, J_S), S))
    spring = c_phi * (phi_S - phi_M) * N.z
    loads = [(M, -m_M * g * N.y), (S, -m_S * g * N.y), (A, spring), (B, -spring)]
    rates = [y.diff() - v, phi_M.diff() - omega_M, phi_S.diff() - omega_S]
    kane = me.KanesMethod(N, [y, phi_M, phi_S], [v, omega_M, omega_S], rates, bodies=[sleeve, bird], forcelist=loads)

    model = Model("Woodpecker", kane, description="A toy woodpecker on its pole", diagram=DIAGRAM)
    for symbol, value, unit, words in (
        (m_M, 3e-4, "kg", "mass of the sleeve"),
        (m_S, 4.5e-3, "kg", "mass of the bird"),
        (J_M, 5e-9, "kg.m2", "moment of inertia of the sleeve"),
        (J_S, 7e-7, "kg.m2", "moment of inertia of the bird"),
        (c_phi, 5.6e-3, "N.m/rad", "stiffness of the spring"),
        (g, 9.81, "m/s2", "acceleration of gravity"),
        (r_O, 2.5e-3, "m", "radius of the pole"),
        (r_M, 3.1e-3, "m", "radius of the hole of the sleeve"),
        (h_M, 5.8e-3, "m", "half the height of the sleeve"),
        (l_M, 0.01, "m", "from the middle of the sleeve to the spring"),
        (l_G, 0.015, "m", "from the spring to the mass centre of the bird"),
        (h_S, 0.02, "m", "height of the beak above the mass centre of the bird"),
        (l_S, 0.0201, "m", "from the mass centre of the bird to the beak"),
        (mu, 0.3, "1", "coefficient of friction"),
    ):
        model.parameter(symbol, value, unit, min=0.0, description=words)
    model.coordinate(y, 0.0, "m", description="height of the sleeve")
    model.coordinate(phi_M, 0.102161553572371, "rad", description="turn of the sleeve")
    model.coordinate(phi_S, 0.0918088089388835, "rad", description="turn of the bird")
    model.speed(v, 0.0506412209793104, "m/s", description="speed of the sleeve, upwards")
    model.speed(omega_M, -1.99754081738909, "rad/s", description="angular velocity of the sleeve")
    model.speed(omega_S, -6.05389938755075, "rad/s", description="angular velocity of the bird")
    beak, edge, tilt = l_M + l_G - l_S - r_O, r_M - r_O, h_M * phi_M
    along = v + l_M * omega_M + (l_G - l_S) * omega_S
    common = {"friction": mu, "order": "simultaneous"}
    model.add(Impact("beak", beak - h_S * phi_S, restitution=0.5, slip=along, **common))
    model.add(Impact("lower", edge + tilt, slip=v + r_M * omega_M, **common))
    model.add(Impact("upper", edge - tilt, slip=v + r_M * omega_M, **common))
    model.output_total_energy()
    _draw(model, sleeve, bird, N, O)
    model.experiment(stop=0.15, step=0.0025, tolerance=1e-9)
    return model


def _draw(model: Model, sleeve: me.RigidBody, bird: me.RigidBody, N: me.ReferenceFrame, O: me.Point) -> None:
    """Pole, sleeve and bird, in their own sizes: m."""
    A, B = sleeve.frame, bird.frame
    model.visual(N, Cylinder(0.09, 2.5e-3), at=O.locatenew("pole", -0.015 * N.y), color="#d9b98a")
    for side in (-1, 1):
        model.visual(sleeve, Box(1.5e-3, 0.0116, 0.006), at=side * 3.9e-3 * A.x, color="#1f77b4")
    for body, axis, middle in ((sleeve, A.x, 0.007), (bird, B.x, -0.0075)):
        model.visual(body, Cylinder(abs(2 * middle), 8e-4), at=middle * axis, along=axis, color="#5b6470")
    model.visual(bird, Cylinder(0.034, 0.006), color="#d62728")
    model.visual(bird, Sphere(0.006), at=-0.004 * B.x + 0.02 * B.y, color="#8c1d18")
    model.visual(bird, Cylinder(0.012, 1.2e-3), at=-0.0141 * B.x + 0.02 * B.y, along=B.x, color="#555555")
