"""A mass on a moving belt, held by a spring: it sticks to the belt, is torn off, slides back and sticks again.

Coordinates: ``x`` is the position of the mass along ``N.x`` from where the spring is slack, the speed ``v`` is x'. The
belt moves with the speed ``V`` along ``N.x``. Friction takes up to ``F_s`` to hold the mass on the belt; while it
slides it is ``F_k`` against the slip v - V, and less than that which held it:

    m x'' = -k x - F_k sign(v - V)    while it slides;    v = V as long as k x <= F_s

With m = k = 1, V = 0.2, F_s = 1, F_k = 0.5 the motion is periodic from the first break-away on: an arc of a circle of
radius sqrt((F_s - F_k)² + V²) about (F_k, 0) in the plane (x, v), from (F_s, V) to (2 F_k - F_s, V), which takes
3.90260540781452 s, and a straight line back, which takes 5 s.

Source: J. P. Den Hartog, Mechanical Vibrations, 4th ed. 1956, section 7.1; the arc is elementary.
"""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Box, Cylinder, Model, sticking_sign

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 260 160" font-family="serif" font-size="15">
<rect width="260" height="160" fill="white"/>
<path d="M20 40V100" stroke="#333" stroke-width="3"/>
<path d="M20 80h20l6 -10 10 20 10 -20 10 20 10 -20 10 20 6 -10h18" fill="none" stroke="#333"/>
<rect x="120" y="56" width="60" height="46" fill="#ddd" stroke="#333"/>
<rect x="60" y="103" width="180" height="30" rx="15" fill="none" stroke="#333" stroke-width="3"/>
<path d="M130 118H166" stroke="#9467bd" stroke-width="2"/><path d="M176 118l-12 -5v10z" fill="#9467bd"/>
<path d="M150 56V32M150 38H186" stroke="#d62728" fill="none"/><path d="M194 38l-10 -4v8z" fill="#d62728"/>
<g font-style="italic"><text x="200" y="42" fill="#d62728">x</text><text x="66" y="60">k</text>
<text x="144" y="85">m</text><text x="184" y="123" fill="#9467bd">V</text></g>
</svg>
"""


def stick_slip_belt() -> Model:
    """The mass, put on the belt where the spring is slack, with the belt's speed."""
    t = me.dynamicsymbols._t  # noqa: SLF001  (the symbol of time that SymPy mechanics uses)
    x, v = me.dynamicsymbols("x v")
    m, k, V, F_s, F_k = sm.symbols("m k V F_s F_k", positive=True)
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    mass = me.Particle("mass", P, m)
    friction = -F_k * sticking_sign(v - V, F_s / F_k)
    loads = [(P, -k * x * N.x), (P, friction * N.x)]
    kane = me.KanesMethod(N, [x], [v], [x.diff(t) - v], bodies=[mass], forcelist=loads)

    model = Model("StickSlipBelt", kane, description="A mass that sticks to a belt and slips", diagram=DIAGRAM)
    model.parameter(m, 1.0, "kg", min=1e-6, description="mass")
    model.parameter(k, 1.0, "N/m", min=0.0, description="stiffness of the spring")
    model.parameter(V, 0.2, "m/s", description="speed of the belt")
    model.parameter(F_s, 1.0, "N", min=0.0, description="largest force that holds the mass on the belt")
    model.parameter(F_k, 0.5, "N", min=1e-9, description="force of friction while it slides")
    model.coordinate(x, 0.0, "m", description="position")
    model.speed(v, 0.2, "m/s", description="speed")
    model.output("friction", friction, "N", description="force of the friction on the mass")
    model.output("acceleration", v.diff(t), "m/s2", description="acceleration")
    model.visual(mass, Box(0.3, 0.2, 0.2))
    model.visual(N, Box(3.6, 0.06, 0.3), at=O.locatenew("belt", -0.13 * N.y), color="#333333")
    for name, side in (("driving", 1.8), ("driven", -1.8)):
        model.visual(N, Cylinder(0.32, 0.16), at=O.locatenew(name, side * N.x - 0.26 * N.y), along=N.z, color="#8a94a3")
    model.experiment(stop=20.0, step=0.02, tolerance=1e-8)
    return model
