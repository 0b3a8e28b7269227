"""A block that rocks on its two lower corners: latches that take turns, closing is the impact on the other corner.

Coordinates: ``x``, ``y`` are the mass centre's, along ``N.x`` (right) and ``N.y`` (up); ``theta`` turns the block about
``N.z``, counterclockwise: at theta > 0 it stands on its left corner, at theta < 0 on its right one. A corner does not
slip, and the block stays on it until it stands upright; there the other corner is caught, and the first one released,
in one impact. With half the width b, half the height h, R = sqrt(b^2 + h^2) and alpha = atan(b / h):

    4/3 R theta'' = -g sin(alpha - theta)     while theta > 0
    theta'+ = (1 - 3/2 sin^2 alpha) theta'-   where theta = 0

so that each swing is smaller than the one before by what that takes. The latches hold and do not push alone: as long as
their forces ``left.force_y`` and ``right.force_y`` are positive the block stands.

Source: G. W. Housner, The behavior of inverted pendulum structures during earthquakes, Bulletin of the Seismological
Society of America 53 (1963), 403-417; b = .1 m, h = .4 m, released at rest from alpha / 2.
"""

import math

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Box, Latch, Model

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 220 240" font-family="serif" font-size="15">
<rect width="220" height="240" fill="white"/>
<path d="M20 210H200" stroke="#333" stroke-width="3"/>
<g transform="rotate(-10 80 210)"><rect x="80" y="70" width="56" height="140" fill="#cfe2f3" stroke="#333"/>
<path d="M108 140V70" stroke="#888" stroke-dasharray="4 4"/><circle cx="108" cy="140" r="3" fill="#333"/></g>
<path d="M80 210V90" stroke="#888" stroke-dasharray="4 4"/>
<path d="M80 120A90 90 0 0 0 64 121" stroke="#d62728" fill="none"/>
<path d="M180 60V96" stroke="#333" stroke-width="2"/><path d="M180 102l-5 -10h10z" fill="#333"/>
<g font-style="italic"><text x="62" y="112" fill="#d62728">θ</text><text x="186" y="84">g</text>
<text x="30" y="232">left</text><text x="130" y="232">right</text></g>
</svg>
"""


def rocking_block() -> Model:
    """The block, released at rest on its left corner."""
    x, y, theta, vx, vy, omega = me.dynamicsymbols("x y theta vx vy omega")
    m, b, h, g = sm.symbols("m b h g", positive=True)
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    B = N.orientnew("B", "Axis", (theta, N.z))
    B.set_ang_vel(N, omega * N.z)
    C = O.locatenew("C", x * N.x + y * N.y)
    C.set_vel(N, vx * N.x + vy * N.y)
    left, right = C.locatenew("left", -b * B.x - h * B.y), C.locatenew("right", b * B.x - h * B.y)
    block = me.RigidBody("block", C, B, m, (me.inertia(B, 0, 0, m * (b**2 + h**2) / 3), C))
    rates = [x.diff() - vx, y.diff() - vy, theta.diff() - omega]
    weight = (C, -m * g * N.y)
    kane = me.KanesMethod(N, [x, y, theta], [vx, vy, omega], rates, bodies=[block], forcelist=[weight])

    model = Model("RockingBlock", kane, description="A block that rocks on its corners", diagram=DIAGRAM)
    model.parameter(m, 1.0, "kg", min=1e-6, description="mass")
    model.parameter(b, 0.1, "m", min=1e-6, description="half the width")
    model.parameter(h, 0.4, "m", min=1e-6, description="half the height")
    model.parameter(g, 9.81, "m/s2", min=0.0, description="acceleration of gravity")
    tilt = math.atan(0.25) / 2
    model.coordinate(x, 0.1 * math.cos(tilt) - 0.4 * math.sin(tilt), "m", description="mass centre, to the right")
    model.coordinate(y, 0.1 * math.sin(tilt) + 0.4 * math.cos(tilt), "m", description="mass centre, up")
    model.coordinate(theta, tilt, "rad", description="turn, counterclockwise")
    model.speed(vx, 0.0, "m/s", description="speed to the right")
    model.speed(vy, 0.0, "m/s", description="speed upwards")
    model.speed(omega, 0.0, "rad/s", description="angular velocity")
    on_left, on_right = Latch.point(O, left, N), Latch.point(O, right, N)
    model.add(Latch("left", on_left, close=theta >= 0, open=theta < 0, starts_engaged=True, within=None))
    model.add(Latch("right", on_right, close=theta < 0, open=theta >= 0, within=None))
    model.output_total_energy()
    model.visual(block, Box(0.2, 0.8, 0.2))
    model.visual(N, Box(0.8, 0.02, 0.4), at=O.locatenew("ground", -0.01 * N.y), color="#8a94a3")
    model.experiment(stop=0.6, step=0.03, tolerance=1e-8)
    return model
