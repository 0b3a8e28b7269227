"""The flexible slider-crank of the Test Set for IVP Solvers: a rigid crank at a constant rate, a rod that bends.

The crank turns about ``N.z`` by the angle ``crank.speed`` · t from ``N.x``, the line of the slider. The rod's frame has
its x axis through both pins as they are undeformed; its end slides along N.x. Coordinates: ``rod.eta[1]`` and
``[2]`` are the lateral shapes sin(π x/L) and sin(2 π x/L), positive to the left of the rod; ``[3]`` and ``[4]`` are the
displacements of its middle and of its end along it, by quadratic shapes; all in m. No gravity, no damping.

Mass, coupling and stiffness terms are the published ones. The longitudinal block of that mass matrix is 15 times that
of its own shapes: pairs of masses that move against each other add what is missing. Not in it is the test set's
optional stiffness of third order, which its reference solution is without, too.

Source: B. Simeon, Modelling a flexible slider crank mechanism by a mixed system of DAEs and PDEs, Math. Modelling of
Systems 2 (1996) 1-18; F. Mazzia, C. Magherini, Test Set for Initial Value Problem Solvers, release 2.4, University of
Bari, 2008, ch. Slider crank: matrices, and initial values close to smooth motion.
"""

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Box, Cylinder, FlexibleBody, Model, Parts

CRANK, ROD, HEIGHT = 0.15, 0.30, 0.008
"""Lengths of crank and rod, and edge of the rod's square section, m."""
ROD_MASS, SLIDER_MASS, ROD_INERTIA = 0.151104, 0.075552, 0.0045339259
"""kg, kg, and kg·m² about the crank's pin."""
E, DENSITY = 0.20e12, 7870.0
"""Pa, kg/m³."""
START = (0.0, 0.0, 0.103339863e-4, 0.169327969e-4, 0.444896105, 0.463434311e-2, -0.178591076e-5, -0.268938672e-5)
"""Modal coordinates (m) and speeds (m/s), close to smooth motion."""

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 320 170" font-family="serif" font-size="15">
<rect width="320" height="170" fill="white"/>
<path d="M20 120H300" stroke="#888" stroke-dasharray="5 4"/><path d="M226 138H304" stroke="#333" stroke-width="2"/>
<path d="M60 120L104 56" stroke="#1f77b4" stroke-width="7" stroke-linecap="round"/>
<path d="M104 56L262 120" stroke="#888" stroke-dasharray="5 4"/>
<path d="M104 56C160 54 216 84 262 120" stroke="#2ca02c" stroke-width="6" fill="none" stroke-linecap="round"/>
<rect x="244" y="104" width="36" height="32" fill="#ffe5cc" stroke="#ff7f0e" stroke-width="2"/>
<g fill="white" stroke="#333" stroke-width="2"><circle cx="60" cy="120" r="5"/><circle cx="104" cy="56" r="4"/>
<circle cx="262" cy="120" r="4"/></g>
<path d="M92 120A32 32 0 0 0 79 94" fill="none" stroke="#d62728" stroke-width="2"/>
<path d="M74 90l10 1l-5 8z" fill="#d62728"/>
<g font-style="italic"><text x="96" y="112" fill="#d62728">Ω t</text><text x="62" y="84">r</text>
<text x="186" y="62" fill="#2ca02c">rod</text><text x="240" y="96">slider</text><text x="292" y="114">N.x</text></g>
</svg>
"""


def flexible_slider_crank() -> Model:
    """Two and a half turns of the crank; the test set's reference solution is at their end."""
    t = me.dynamicsymbols._t  # noqa: SLF001  (the symbol of time that SymPy mechanics uses)
    rate, m = sm.symbols("Omega m", positive=True)
    rod = _rod()
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    crank = N.orientnew("crank", "Axis", (rate * t, N.z))
    angle = -sm.asin(CRANK * sm.sin(rate * t) / (ROD + rod.q[3]))
    rod.frame().orient_axis(N, N.z, angle)
    rod.point().set_pos(O, CRANK * crank.x)
    slider = me.Particle("slider", rod.point(-1), m)
    parts = Parts(
        frame=N,
        origin=O,
        q=rod.q,
        u=rod.u,
        kinematic_equations=rod.kinematic_equations,
        bodies=[*rod.bodies, slider],
        loads=rod.loads,
    )
    model = Model("FlexibleSliderCrank", parts, description="A slider-crank whose rod bends", diagram=DIAGRAM)
    model.parameter(rate, 150.0, "rad/s", name="crank.speed", description="angular speed of the crank, constant")
    model.parameter(m, SLIDER_MASS, "kg", name="slider.mass", min=0.0, description="mass of the slider")
    model.add(rod)
    model.output("rod.angle", angle, "rad", description="of the rod's frame, from N.x about N.z")
    model.output_position("slider", slider.masscenter)
    model.output_position("middle", rod.point(-2), relative_to=rod.point(), expressed_in=rod.frame())
    shaft = Cylinder(0.012, 0.03)
    model.visual(crank, shaft, at=O, along=crank.z, color="#5b6470")
    model.link(crank, O, rod.point(), radius=0.006, color="#1f77b4")
    rod.draw(model, box=(HEIGHT, HEIGHT), color="#2ca02c", scale=20.0)
    model.visual(N, Box(0.04, 0.03, 0.03), at=slider.masscenter, color="#ff7f0e")
    model.experiment(stop=0.1, step=2e-4, tolerance=1e-8)
    return model.at({f"rod.eta_dot[{k + 1}]": speed for k, speed in enumerate(START[4:])})


def _rod() -> FlexibleBody:
    """The connecting rod: masses at Gauss points on both sides of its axis, then its middle and its end."""
    points, weights = np.polynomial.legendre.leggauss(24)
    xi, share = np.repeat((points + 1) / 2, 2), np.repeat(weights / 2, 2) / 2
    width = np.sqrt(ROD_INERTIA / ROD_MASS - ROD**2 / 3) * np.tile([1.0, -1.0], len(points))
    nodes, masses = np.column_stack([ROD * xi, width, 0 * xi]), ROD_MASS * share
    modes = _shapes(xi)
    own = DENSITY * HEIGHT**2 * ROD
    longitudinal = own * np.array([[8.0, 1.0], [1.0, 2.0]])
    extra = np.linalg.cholesky(longitudinal - longitudinal / 15)
    for k, at in enumerate((10, 30)):  # one node becomes two that move against each other
        difference = np.zeros((4, 3))
        difference[2:, 0] = extra[:, k] / np.sqrt(masses[at])
        nodes, modes = np.vstack([nodes, nodes[at]]), np.concatenate([modes, modes[:, at : at + 1]], axis=1)
        modes[:, at] += difference
        modes[:, -1] -= difference
        masses[at] /= 2
        masses = np.append(masses, masses[at])
    slender, stiff = (HEIGHT / ROD) ** 2, E * HEIGHT**2 / ROD
    stiffness = np.zeros((4, 4))
    stiffness[:2, :2] = np.diag([np.pi**4 / 24 * slender, np.pi**4 * 2 / 3 * slender])
    stiffness[2:, 2:] = [[16 / 3, -8 / 3], [-8 / 3, 7 / 3]]
    marks = np.array([0.5, 1.0])
    return FlexibleBody(
        "rod",
        nodes=np.vstack([nodes, np.column_stack([ROD * marks, 0 * marks, 0 * marks])]),
        mass=np.append(masses, 0 * marks),
        modes=np.concatenate([modes, _shapes(marks)], axis=1),
        stiffness=stiff * stiffness,
        start=START[:4],
    )


def _shapes(xi: np.ndarray) -> np.ndarray:
    """Two lateral shapes, and two longitudinal ones, at shares of the length, shape (4, n, 3)."""
    modes = np.zeros((4, len(xi), 3))
    modes[:2, :, 1] = np.sin(np.pi * xi), np.sin(2 * np.pi * xi)
    modes[2:, :, 0] = 4 * xi * (1 - xi), xi * (2 * xi - 1)
    return modes
