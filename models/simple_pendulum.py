"""A point mass on a massless rod, given as a KanesMethod; closed form by elliptic functions.

Coordinates: ``theta`` is the angle of the rod from the downward vertical, positive counter-clockwise about ``N.z`` (out
of the page); ``N.x`` points to the right, ``N.y`` up. The speed ``omega`` is theta'.

Equation: m l² theta'' = -m g l sin(theta).

Source: L. D. Landau, E. M. Lifshitz, Mechanics, 3rd ed., §11 problem 1; the closed form in Jacobi's functions, F. M. S.
Lima, "Analytical study of the critical behavior of the nonlinear pendulum", Am. J. Phys. 78 (2010) 1146-1151.
"""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Model

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 240 210" font-family="serif" font-size="15">
<rect width="240" height="210" fill="white"/>
<path d="M70 30H170" stroke="#333" stroke-width="3"/>
<path d="M120 30V180" stroke="#888" stroke-dasharray="5 4"/>
<path d="M120 30L185 143" stroke="#1f77b4" stroke-width="4"/>
<circle cx="120" cy="30" r="5" fill="white" stroke="#333" stroke-width="2"/>
<circle cx="185" cy="143" r="13" fill="#1f77b4"/>
<path d="M120 105A75 75 0 0 0 157 95" fill="none" stroke="#d62728" stroke-width="2"/>
<path d="M160 93l-9 -1l5 8z" fill="#d62728"/>
<g fill="#333"><text x="130" y="122" font-style="italic" fill="#d62728">θ</text>
<text x="160" y="80" font-style="italic">l</text><text x="204" y="149" font-style="italic">m</text>
<text x="46" y="118" font-style="italic">g</text></g>
<path d="M36 90V126" stroke="#333" stroke-width="2"/><path d="M36 132l-5 -10h10z" fill="#333"/>
<path d="M20 190H52M20 190V158" stroke="#555" fill="none"/>
<text x="56" y="195" font-size="12">N.x</text><text x="12" y="153" font-size="12">N.y</text>
</svg>
"""


def simple_pendulum() -> Model:
    """The pendulum, released at 2 rad from rest."""
    t = me.dynamicsymbols._t  # noqa: SLF001  (the symbol of time that SymPy mechanics uses)
    theta, omega = me.dynamicsymbols("theta omega")
    mass, length, g = sm.symbols("m l g", positive=True)

    N = me.ReferenceFrame("N")
    A = me.ReferenceFrame("A")
    A.orient_axis(N, N.z, theta)
    A.set_ang_vel(N, omega * N.z)
    O = me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", -length * A.y)
    P.v2pt_theory(O, N, A)
    bob = me.Particle("bob", P, mass)
    kane = me.KanesMethod(N, [theta], [omega], [omega - theta.diff(t)])
    kane.kanes_equations([bob], [(P, -mass * g * N.y)])

    model = Model("SimplePendulum", kane, description="A point mass on a massless rod", diagram=DIAGRAM)
    model.parameter(mass, 1.0, "kg", min=1e-6, description="mass of the bob")
    model.parameter(length, 1.0, "m", min=1e-6, description="length of the rod")
    model.parameter(g, 9.81, "m/s2", min=0.0, description="acceleration of gravity")
    model.coordinate(theta, 2.0, "rad", display_unit="deg", description="angle from the downward vertical")
    model.speed(omega, 0.0, "rad/s", display_unit="rpm", description="angular speed of the rod")
    model.output("bob.x", length * sm.sin(theta), "m", description="position of the bob to the right of the pivot")
    model.output("bob.y", -length * sm.cos(theta), "m", description="position of the bob above the pivot")
    model.output(
        "rod_force",
        mass * (length * omega**2 + g * sm.cos(theta)),
        "N",
        description="tension of the rod; negative: it is pressed",
    )
    model.output_total_energy()
    model.experiment(stop=10.0, step=0.01, tolerance=1e-8)
    return model
