"""A chain of n bodies in space on revolute joints (n = 8 unless said otherwise; 1 to 300), for measuring.

Coordinates: ``q[1]`` to ``q[n]`` are the angles of the joints, each about an axis of the body before it: z, y, x, z, y,
x, and so on; 0 where the axes of all bodies are parallel to ``N``'s. ``N.z`` points up. The first joint is at the
origin, each following one a distance (p_x, p_y, p_z) from the one before, in the axes of the body between them. All
bodies are alike: mass m, mass centre (c_x, c_y, c_z) from their joint, and a full central inertia. The inputs
``torque[i]`` act at the joints, between a body and the one before it.

This is also how a long chain is written: frames and points set up by hand from local relations (each frame from the
one before it, each point from the point before it). SymPy takes some 20 ms per body for that; ``PinJoint`` in
a ``System`` cost as much at first, and more with every joint.

Source: R. Featherstone, Rigid Body Dynamics Algorithms, Springer 2008, ch. 7 (the articulated-body algorithm, whose
cost such chains measure); numbers chosen so that no inertial parameter is zero.
"""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Model, Parts, Sphere

MOST = 300
INERTIA = {"xx": 0.1, "yy": 0.2, "zz": 0.3, "xy": 0.01, "yz": 0.03, "xz": 0.02}  # kg.m2
OFFSET = (0.3, 0.1, 0.2)  # m
CENTRE = (0.15, 0.02, 0.05)  # m

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 330 230" font-family="serif" font-size="15">
<rect width="330" height="230" fill="white"/>
<path d="M20 46H70" stroke="#333" stroke-width="3"/>
<g stroke-width="9" stroke-linecap="round" fill="none"><path d="M45 46L104 78" stroke="#9dc3e6"/>
<path d="M104 78L170 92" stroke="#7fb0dc"/><path d="M170 92L222 136" stroke="#5a96cc"/></g>
<path d="M228 142L282 184" stroke="#888" stroke-width="5" stroke-dasharray="2 8" stroke-linecap="round"/>
<g fill="white" stroke="#333" stroke-width="2"><circle cx="45" cy="46" r="7"/><circle cx="104" cy="78" r="7"/>
<circle cx="170" cy="92" r="7"/></g><g stroke="#d62728" stroke-width="2" fill="none"><path d="M45 39V12"/>
<path d="M104 71L92 48"/><path d="M177 92H206"/></g>
<g fill="#d62728"><path d="M45 6l-4 10h8z"/><path d="M89 42l0 11l8 -4z"/><path d="M213 92l-10 -4v8z"/></g>
<g font-style="italic"><text x="52" y="20" fill="#d62728">z, q₁</text><text x="64" y="62" fill="#d62728">y, q₂</text>
<text x="186" y="84" fill="#d62728">x, q₃</text><text x="62" y="90">m, c, I</text><text x="118" y="112">m, c, I</text>
<text x="16" y="116">g</text></g>
<path d="M10 88V128" stroke="#333" stroke-width="2"/><path d="M10 134l-5 -10h10z" fill="#333"/>
<path d="M20 206H52M20 206V174" stroke="#555" fill="none"/>
<text x="56" y="211" font-size="12">N.x</text><text x="12" y="169" font-size="12">N.z</text>
</svg>
"""


def chain(n: int = 8) -> Model:
    """The chain, released nearly straight while small torques act.

    Args:
        n: Number of bodies, 1 to 300.
    """
    if not 1 <= n <= MOST:
        msg = f"a chain of {n} bodies: n must be 1 to {MOST}"
        raise ValueError(msg)
    t = me.dynamicsymbols._t  # noqa: SLF001  (the symbol of time that SymPy mechanics uses)
    q, u, torque = (me.dynamicsymbols(f"{name}1:{n + 1}") for name in ("q", "u", "tau"))
    g, m = sm.symbols("g m", positive=True)
    offset, centre = sm.symbols("p_x p_y p_z"), sm.symbols("c_x c_y c_z")
    inertia = {name: sm.Symbol(f"I_{name}") for name in INERTIA}
    moments = [inertia[name] for name in ("xx", "yy", "zz", "xy", "yz", "xz")]

    N, O = me.ReferenceFrame("N"), me.Point("O")
    bodies, loads, actuators = [], [], []
    before, joints = N, [O]
    for i in range(n):
        B = me.ReferenceFrame(f"B{i + 1}")
        axis = (before.z, before.y, before.x)[i % 3]
        B.orient_axis(before, axis, q[i])
        B.set_ang_vel(before, u[i] * axis)
        middle = joints[-1].locatenew(f"C{i + 1}", _vector(centre, B))
        bodies.append(me.RigidBody(f"body{i + 1}", middle, B, m, (me.inertia(B, *moments), middle)))
        loads.append(me.Force(middle, -m * g * N.z))
        actuators.append(me.TorqueActuator(torque[i], axis, B, before))
        joints.append(joints[-1].locatenew(f"J{i + 2}", _vector(offset, B)))
        before = B
    parts = Parts(
        frame=N,
        origin=O,
        q=q,
        u=u,
        kinematic_equations=[speed - angle.diff(t) for angle, speed in zip(q, u, strict=True)],
        bodies=bodies,
        loads=loads,
        actuators=actuators,
    )

    model = Model("Chain", parts, description=f"A chain of {n} bodies in space on revolute joints", diagram=DIAGRAM)
    model.parameter(g, 9.81, "m/s2", min=0.0, description="acceleration of gravity, along -N.z")
    model.parameter(m, 1.5, "kg", min=1e-6, description="mass of each body")
    for symbol, value, axis in zip(offset, OFFSET, "xyz", strict=True):
        model.parameter(symbol, value, "m", description=f"from joint to joint along the body's {axis} axis")
    for symbol, value, axis in zip(centre, CENTRE, "xyz", strict=True):
        model.parameter(symbol, value, "m", description=f"mass centre from the joint along the body's {axis} axis")
    for name, symbol in inertia.items():
        model.parameter(symbol, INERTIA[name], "kg.m2", description=f"central inertia of each body, component {name}")
    for k in range(n):
        i = k + 1
        start, rate = 0.05 + 0.1 * (k % 7), 0.2 * (k % 5) - 0.3
        model.input(torque[k], 0.0, "N.m", name=f"torque[{i}]", description=f"torque at joint {i}")
        model.coordinate(q[k], start, "rad", name=f"q[{i}]", display_unit="deg", description=f"angle of joint {i}")
        model.speed(u[k], rate, "rad/s", name=f"u[{i}]", description=f"angular speed of joint {i}")
    model.output_position("tip", joints[-1])
    for body, start, end in zip(bodies, joints, joints[1:], strict=False):
        model.link(body, start, end, radius=0.02)
        model.visual(body, Sphere(0.05))
    model.output_kinetic_energy()
    model.experiment(
        stop=0.5, step=0.01, tolerance=1e-8, signals={torque[i]: 0.1 * (i % 3) * sm.cos(4 * t) for i in range(n)}
    )
    return model


def _vector(components: tuple[sm.Expr, ...], frame: me.ReferenceFrame) -> me.Vector:
    """Components along the axes of a frame."""
    return components[0] * frame.x + components[1] * frame.y + components[2] * frame.z
