"""Lagrange's symmetric top with its tip held: a Lagrangian alone, without any body; closed form by elliptic functions.

Coordinates (Euler's angles z-x-z): ``psi`` is the precession about the upward vertical, ``theta`` the tilt of the axis
from the upward vertical, ``phi`` the spin about the axis; the speeds are their derivatives. A is the moment of inertia
about the tip across the axis, C about the axis, l the distance of the mass centre from the tip. The angles are singular
at theta = 0 and 180°.

    L = A/2 (theta'² + psi'² sin² theta) + C/2 (phi' + psi' cos theta)² - m g l cos theta

Conserved: energy, p_psi (vertical angular momentum), p_phi = C (phi' + psi' cos theta).

Source: H. Goldstein, C. Poole, J. Safko, Classical Mechanics, 3rd ed., §5.7.
"""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Cylinder, Model

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 260 240" font-family="serif" font-size="15">
<rect width="260" height="240" fill="white"/>
<path d="M40 215H200" stroke="#333" stroke-width="3"/>
<path d="M110 215V28" stroke="#888" stroke-dasharray="5 4"/><path d="M110 18l-5 12h10z" fill="#888"/>
<path d="M110 215L206 58" stroke="#888" stroke-width="2"/>
<path d="M110 215L113 128L189 175z" fill="#9dc3e6" stroke="#333"/>
<ellipse cx="151" cy="151.500" rx="44.700" ry="13" transform="rotate(31.700 151 151.500)" fill="#c6dcef" stroke="#333"/>
<circle cx="144" cy="159" r="3.500" fill="#333"/>
<g fill="none" stroke="#d62728" stroke-width="2"><path d="M110 75A140 140 0 0 1 176 92"/>
<path d="M92 44A18 7 0 1 0 126 42"/><path d="M186 76A13 5 31 1 0 209 84"/></g>
<g fill="#d62728"><path d="M183 96l-10 -1l5 -8z"/><path d="M121 36l8 3l-5 7z"/><path d="M210 76l2 10l-9 -3z"/></g>
<g font-style="italic" fill="#d62728"><text x="140" y="70">θ</text><text x="78" y="42">ψ</text>
<text x="218" y="92">φ</text></g>
<g font-style="italic"><text x="148" y="196">l</text><text x="90" y="140">A</text><text x="214" y="60">C</text>
<text x="34" y="112">g</text></g>
<path d="M24 84V120" stroke="#333" stroke-width="2"/><path d="M24 126l-5 -10h10z" fill="#333"/>
</svg>
"""


def heavy_top() -> Model:
    """The top, released at 40° with a fast spin and no precession: its axis draws cusps."""
    t = me.dynamicsymbols._t  # noqa: SLF001  (the symbol of time that SymPy mechanics uses)
    psi, theta, phi = me.dynamicsymbols("psi theta phi")
    A, C, m, g, length = sm.symbols("A C m g l", positive=True)
    precession, nutation, spin = psi.diff(t), theta.diff(t), phi.diff(t)

    axial = spin + precession * sm.cos(theta)
    kinetic = A / 2 * (nutation**2 + precession**2 * sm.sin(theta) ** 2) + C / 2 * axial**2
    potential = m * g * length * sm.cos(theta)
    mechanics = me.LagrangesMethod(kinetic - potential, [psi, theta, phi])

    model = Model("HeavyTop", mechanics, description="Lagrange's top: precession and nutation", diagram=DIAGRAM)
    model.parameter(A, 0.002, "kg.m2", min=1e-9, description="moment of inertia across the axis, about the tip")
    model.parameter(C, 0.0008, "kg.m2", min=1e-9, description="moment of inertia about the axis")
    model.parameter(m, 0.5, "kg", min=1e-6, description="mass")
    model.parameter(length, 0.05, "m", min=0.0, description="distance of the mass centre from the tip")
    model.parameter(g, 9.81, "m/s2", min=0.0, description="acceleration of gravity")
    model.coordinate(psi, 0.0, "rad", display_unit="deg", description="precession angle about the vertical")
    model.coordinate(
        theta,
        40 * float(sm.pi) / 180,
        "rad",
        display_unit="deg",
        description="tilt of the axis from the upward vertical",
    )
    model.coordinate(phi, 0.0, "rad", display_unit="deg", description="spin angle about the axis")
    model.speed(precession, 0.0, "rad/s", name="precession", display_unit="rpm", description="psi'")
    model.speed(nutation, 0.0, "rad/s", name="nutation", display_unit="rpm", description="theta'")
    model.speed(spin, 150.0, "rad/s", name="spin", display_unit="rpm", description="phi'")
    vertical = A * precession * sm.sin(theta) ** 2 + C * axial * sm.cos(theta)
    model.output("vertical_momentum", vertical, "kg.m2/s", description="angular momentum about the vertical (constant)")
    model.output("axial_momentum", C * axial, "kg.m2/s", description="angular momentum about the axis (constant)")
    model.output("height", length * sm.cos(theta), "m", description="mass centre above the tip")
    model.output("kinetic_energy", kinetic, "J", description="kinetic energy")
    model.output("total_energy", kinetic + potential, "J", description="sum of kinetic and potential energy")
    model.potential_energy(potential)
    _looks(model, (psi, theta, phi), length)
    model.experiment(stop=2.0, step=0.002, tolerance=1e-8)
    return model


def _looks(model: Model, angles: tuple[sm.Expr, sm.Expr, sm.Expr], length: sm.Symbol) -> None:
    """A disc on a stick: frames and points that only the pictures use."""
    psi, theta, phi = angles
    N, A, B, C = (me.ReferenceFrame(name) for name in "NABC")
    A.orient_axis(N, N.z, psi)
    B.orient_axis(A, A.x, theta)
    C.orient_axis(B, B.z, phi)
    tip = me.Point("tip")
    centre = tip.locatenew("centre", length * C.z)
    head = tip.locatenew("head", 1.7 * length * C.z)
    model.place_in(N, tip)
    model.visual(C, Cylinder(1.7 * length, 0.002), at=tip.locatenew("middle", 0.85 * length * C.z), along=C.z)
    model.visual(C, Cylinder(0.008, 0.03), at=centre, along=C.z)
    model.visual(C, Cylinder(0.0084, 0.004), at=centre.locatenew("mark", 0.02 * C.x), along=C.z, color="#f58518")
    model.trace(head)
