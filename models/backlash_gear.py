"""A wheel that meshes with play: it turns freely between the flanks of a fixed gear, and is thrown back by them.

Coordinates: ``phi`` turns the wheel about ``N.z``, ``omega`` is its angular speed. Within the play b, abs(phi) < b / 2,
only ``torque`` acts; beyond, a spring c and a damper d press the flanks together. The damper never pulls: the torque
between the flanks begins and ends at zero,

    J omega' = torque - (s + min(max(d omega, -abs(s)), abs(s))),    s = c (phi -+ b / 2).

The wheel is turned against a flank and released.

Source: ElastoBacklash of the Modelica Standard Library; parameters and start of Modelica.Mechanics.Rotational.Examples.
Backlash, where phi = -.155581413450 rad and omega = -7.022937275580 rad/s at 1 s.
"""

import math

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Backlash, Box, Cylinder, Model

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 240 200" font-family="serif" font-size="15">
<rect width="240" height="200" fill="white"/>
<circle cx="120" cy="110" r="54" fill="#cfe2f3" stroke="#1f77b4" stroke-width="2"/>
<circle cx="120" cy="110" r="5" fill="white" stroke="#333" stroke-width="2"/>
<path d="M113 58L116 34H124L127 58Z" fill="#1f77b4"/>
<path d="M84 24H100L104 52H80ZM140 52L144 24H160V52Z" fill="#888"/>
<path d="M102 44H114M126 44H142" stroke="#d62728"/>
<path d="M162 150A58 58 0 0 0 178 116" fill="none" stroke="#d62728" stroke-width="2"/>
<path d="M179 108l5 10h-10z" fill="#d62728"/>
<g font-style="italic"><text x="184" y="142" fill="#d62728">φ</text><text x="114" y="140">J</text>
<text x="116" y="20" fill="#d62728">b</text></g>
</svg>
"""


def backlash_gear() -> Model:
    """The wheel, a quarter turn from the middle of its play."""
    phi, omega, torque = me.dynamicsymbols("phi omega torque")
    J, m = sm.symbols("J m", positive=True)
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    A = N.orientnew("A", "Axis", (phi, N.z))
    A.set_ang_vel(N, omega * N.z)
    wheel = me.RigidBody("wheel", O, A, m, (me.inertia(A, 0, 0, J), O))
    kane = me.KanesMethod(N, [phi], [omega], [phi.diff() - omega], bodies=[wheel], forcelist=[(A, torque * N.z)])

    model = Model("BacklashGear", kane, description="A wheel that meshes with play", diagram=DIAGRAM)
    model.parameter(J, 5.0, "kg.m2", min=1e-6, description="moment of inertia of the wheel")
    model.parameter(m, 1.0, "kg", min=1e-6, description="mass of the wheel")
    model.input(torque, 0.0, "N.m", name="torque", description="on the wheel")
    model.coordinate(phi, math.pi / 2, "rad", description="turn from the middle of the play")
    model.speed(omega, 0.0, "rad/s", nominal=10.0, description="angular speed")
    teeth = (None, A, N.z)
    model.add(Backlash("gear", teeth, stiffness=20e3, damping=50.0, position=phi, play=math.pi / 4))
    model.output("acceleration", omega.diff(), "rad/s2", nominal=1000.0, description="angular acceleration")
    model.output_kinetic_energy()
    model.visual(wheel, Cylinder(0.2, 0.5), along=A.z, color="#1f77b4")
    model.visual(wheel, Box(0.1, 0.25, 0.2), at=0.6 * A.y)
    for side in (-1, 1):
        flank = O.locatenew("flank", 0.7 * (-side * sm.sin(sm.pi / 8 + 0.15) * N.x + sm.cos(sm.pi / 8 + 0.15) * N.y))
        model.visual(N, Box(0.1, 0.25, 0.2), at=flank, color="#8a94a3")
    model.experiment(stop=1.0, step=0.01, tolerance=1e-9, signals={torque: sm.S.Zero})
    return model
