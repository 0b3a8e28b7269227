"""A free box thrown with a spin about its intermediate axis, which tips over again and again (Dzhanibekov).

Coordinates: the orientation of the box by body-fixed angles in the sequence z-x-y: ``q1`` about ``N.z``, then ``q2``
about the new x axis, then ``q3`` about the new y axis, which is the body's. The speeds ``u1``, ``u2``, ``u3`` are the
components of the angular velocity along the box's own axes, so they are not the derivatives of the coordinates. The
angles are singular at q2 = ±90°; the edges are chosen so that this motion stays below 30°.

Equations (Euler): I₁ u1' = (I₂ - I₃) u2 u3 and cyclic; with the edges a, b, c along x, y, z I₁ = m (b² + c²)/12 and
cyclic; q1' = (u3 cos q3 - u1 sin q3)/cos q2, q2' = u1 cos q3 + u3 sin q3, q3' = u2 - q1' sin q2.

Source: L. D. Landau, E. M. Lifshitz, Mechanics, 3rd ed., §36-37 (also the closed form in Jacobi's functions); the
angles: T. R. Kane, P. W. Likins, D. A. Levinson, Spacecraft Dynamics, McGraw-Hill 1983, app. I-II.
"""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Box, Model

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 300 230" font-family="serif" font-size="15">
<rect width="300" height="230" fill="white"/>
<g stroke="#333" stroke-width="1.5"><path d="M90 95L200 80L235 100L125 116z" fill="#c6dcef"/>
<path d="M90 95L125 116V196L90 173z" fill="#9dc3e6"/><path d="M125 116L235 100V178L125 196z" fill="#7fb0dc"/></g>
<g stroke="#d62728" stroke-width="2" fill="none"><path d="M163 98V32"/><path d="M108 144L58 166"/>
<path d="M235 139L276 133"/></g>
<g fill="#d62728"><path d="M163 22l-5 12h10z"/><path d="M48 170l8 -9l5 8z"/><path d="M287 131l-12 -3l1 10z"/></g>
<g font-style="italic"><text x="170" y="34" fill="#d62728">B.z, u₃</text>
<text x="16" y="188" fill="#d62728">B.x, u₁</text><text x="246" y="124" fill="#d62728">B.y, u₂</text>
<text x="94" y="196">a</text><text x="176" y="207">b</text><text x="78" y="138">c</text></g>
<path d="M150 52A14 6 0 1 0 172 48" fill="none" stroke="#9467bd" stroke-width="2"/>
<path d="M166 44l9 1l-5 7z" fill="#9467bd"/>
</svg>
"""


def rigid_body() -> Model:
    """The box, spinning at 10 rad/s about its intermediate axis with a disturbance of 0.01 rad/s."""
    t = me.dynamicsymbols._t  # noqa: SLF001  (the symbol of time that SymPy mechanics uses)
    q = q1, q2, q3 = me.dynamicsymbols("q1:4")
    u = u1, u2, u3 = me.dynamicsymbols("u1:4")
    m, a, b, c = sm.symbols("m a b c", positive=True)
    inertias = sm.symbols("I1:4", positive=True)

    N, B = me.ReferenceFrame("N"), me.ReferenceFrame("B")
    B.orient_body_fixed(N, q, "ZXY")
    B.set_ang_vel(N, u1 * B.x + u2 * B.y + u3 * B.z)
    O = me.Point("O")
    O.set_vel(N, 0)
    box = me.RigidBody("box", O, B, m, (me.inertia(B, *inertias), O))
    # Solved for q' by hand: SymPy would take sin(q3), which is 0 at the start, as a pivot.
    turn = (u3 * sm.cos(q3) - u1 * sm.sin(q3)) / sm.cos(q2)
    kinematics = [
        q1.diff(t) - turn,
        q2.diff(t) - u1 * sm.cos(q3) - u3 * sm.sin(q3),
        q3.diff(t) - u2 + turn * sm.sin(q2),
    ]
    kane = me.KanesMethod(N, q, u, kinematics, bodies=[box])
    kane.kanes_equations()

    model = Model("RigidBody", kane, description="A free box that tips over: Dzhanibekov's effect", diagram=DIAGRAM)
    model.parameter(m, 1.0, "kg", min=1e-6, description="mass")
    for edge, value, axis in ((a, 0.1, "x"), (b, 0.3, "y"), (c, 0.2, "z")):
        model.parameter(edge, value, "m", min=1e-6, description=f"edge along the box's {axis} axis")
    for inertia, (one, other), axis in zip(inertias, ((b, c), (a, c), (a, b)), "xyz", strict=True):
        model.parameter(
            inertia, m * (one**2 + other**2) / 12, "kg.m2", description=f"central inertia about the box's {axis} axis"
        )
    for coordinate, axis in zip(q, ("N.z", "the new x axis", "the new y axis"), strict=True):
        model.coordinate(coordinate, 0.0, "rad", display_unit="deg", description=f"angle about {axis}")
    for speed, start, axis in zip(u, (0.01, 0.0, 10.0), "xyz", strict=True):
        model.speed(
            speed, start, "rad/s", display_unit="rpm", description=f"angular velocity along the box's {axis} axis"
        )
    model.visual(box, Box(a, b, c))
    model.output_orientation("attitude", B)
    momentum = sum((inertia * speed * axis for inertia, speed, axis in zip(inertias, u, B, strict=True)), me.Vector(0))
    for name, axis in zip("xyz", N, strict=True):
        model.output(
            f"angular_momentum.{name}", momentum.dot(axis), "kg.m2/s", description=f"angular momentum along N.{name}"
        )
    model.output_kinetic_energy()
    # It tips over twice; so near to the separatrix an error of the start grows two hundredfold.
    model.experiment(stop=5.0, step=0.01, tolerance=1e-9)
    return model
