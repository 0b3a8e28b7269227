"""A rod pinned to a block that slides along a horizontal line: a System of two joints, and a momentum that is kept.

Coordinates: ``q1`` is the place of the pin A along ``N.x``, ``q2`` the angle of the rod from the horizontal, positive
counter-clockwise about ``N.z``; ``N.y`` points up. The speeds are their rates. The rod R has the length l and is
uniform; the block has no mass.

Partial velocities: of A, (N.x, 0); of the end B, (N.x, l R.y); of the rod, (0, N.z). Nothing pushes along the line, so
q1 + l/2 cos(q2) moves with constant speed.

Source: J. K. Moore, Learn Multibody Dynamics, chapter "Generalized Forces" (rod R pinned at A on the horizontal line).
"""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Box, Model

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 300 190" font-family="serif" font-size="15">
<rect width="300" height="190" fill="white"/>
<path d="M40 70H270" stroke="#333" stroke-width="2"/>
<path d="M130 70L225 145" stroke="#1f77b4" stroke-width="8" stroke-linecap="round"/>
<rect x="116" y="60" width="28" height="20" fill="#d9dde3" stroke="#333"/>
<circle cx="130" cy="70" r="4" fill="white" stroke="#333" stroke-width="2"/>
<circle cx="60" cy="70" r="3" fill="#333"/>
<path d="M60 40H122" stroke="#d62728" stroke-width="2"/><path d="M130 40l-10 -5v10z" fill="#d62728"/>
<path d="M60 32V64M130 32V56" stroke="#888"/>
<path d="M190 70A60 60 0 0 1 177 107" fill="none" stroke="#d62728" stroke-width="2"/>
<g font-style="italic"><text x="88" y="32" fill="#d62728">q₁</text><text x="192" y="98" fill="#d62728">-q₂</text>
<text x="160" y="134">R: m, l</text><text x="124" y="100">A</text><text x="234" y="152">B</text>
<text x="54" y="90">O</text><text x="270" y="128">g</text></g>
<path d="M284 100V136" stroke="#333" stroke-width="2"/><path d="M284 142l-5 -10h10z" fill="#333"/>
<path d="M20 174H52M20 174V142" stroke="#555" fill="none"/>
<text x="56" y="179" font-size="12">N.x</text><text x="12" y="137" font-size="12">N.y</text>
</svg>
"""


def sliding_rod() -> Model:
    """The rod, released from the horizontal while it slides."""
    q1, q2, u1, u2 = me.dynamicsymbols("q1 q2 u1 u2")
    m, l, g = sm.symbols("m l g", positive=True)

    line = me.RigidBody("line")
    system = me.System.from_newtonian(line)
    N = system.frame
    block = me.RigidBody("block", mass=0)
    block.central_inertia = me.inertia(block.frame, 0, 0, 0)
    rod = me.RigidBody("R", mass=m)
    rod.central_inertia = me.inertia(rod.frame, 0, m * l**2 / 12, m * l**2 / 12)
    slide = me.PrismaticJoint("slide", line, block, q1, u1, joint_axis=N.x)
    pin = me.PinJoint("pin", block, rod, q2, u2, child_point=-l / 2 * rod.x, joint_axis=block.z)
    system.add_joints(slide, pin)
    system.apply_uniform_gravity(-g * N.y)
    A = rod.masscenter.locatenew("A", -l / 2 * rod.x)
    B = rod.masscenter.locatenew("B", l / 2 * rod.x)

    model = Model("SlidingRod", system, description="A rod pinned to what slides along a line", diagram=DIAGRAM)
    model.parameter(m, 1.2, "kg", min=1e-6, description="mass of the rod")
    model.parameter(l, 0.8, "m", min=1e-6, description="length of the rod")
    model.parameter(g, 9.81, "m/s2", min=0.0, description="acceleration of gravity, along -N.y")
    model.coordinate(q1, 0.0, "m", description="place of the pin along the line")
    model.coordinate(q2, 0.0, "rad", display_unit="deg", description="angle of the rod from the horizontal")
    model.speed(u1, 0.3, "m/s", description="speed of the pin")
    model.speed(u2, 0.0, "rad/s", description="angular speed of the rod")
    model.output_velocity("end_velocity", B)
    model.output_momentum("momentum", u1, unit="kg.m/s")
    model.output_reaction("line_force", slide)
    model.output_total_energy()
    model.visual(block, Box(0.08, 0.05, 0.05))
    model.link(rod, A, B, radius=0.015)
    model.trace(B)
    model.experiment(stop=5.0, step=0.01, tolerance=1e-8)
    return model
