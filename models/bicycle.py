"""The benchmark bicycle: two wheels with knife edges that roll without slipping, a frame with its rider, a handlebar.

Axes as in the source: ``N.x`` forward, ``N.y`` to the right, ``N.z`` down; the ground is z = 0. Coordinates: ``x``,
``y`` are the place of the rear contact, ``yaw`` the heading about N.z, ``lean`` about the heading axis (to the
right), ``pitch`` of the rear frame about its y axis, ``steer`` of the handlebar about the steering axis (to the
right), ``rear_angle`` and ``front_angle`` of the wheels about their axles (rolling forward they fall). Speeds: their
rates, but for the velocity of the rear contact, which is taken along the heading (``v``) and across it (``w``).

That the front wheel touches the ground is a holonomic constraint, which makes ``pitch`` a dependent coordinate; that
the wheels do not slip is four velocity constraints. Three degrees of freedom are left: lean, steer and rolling.
Nothing is divided by what can vanish: not upright, not at zero steer, not at rest.

Every part lies in the vertical plane at the start, the machine runs straight at 4.6 m/s, with a lean rate of 0.3
rad/s that its stability (from 4.292 to 6.024 m/s) takes out again.

Source: J. P. Meijaard, J. M. Papadopoulos, A. Ruina, A. L. Schwab, "Linearized dynamics equations for the balance and
steer of a bicycle: a benchmark and review", Proc. R. Soc. A 463 (2007) 1955-1982: parameters in table 1, eigenvalues in
table 2; F. J. W. Whipple, "The stability of the motion of a bicycle", Quart. J. Pure Appl. Math. 30 (1899) 312-348.
"""

from dataclasses import dataclass

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Box, Cylinder, Ellipsoid, Model, Parts, Sphere

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 320 220" font-family="serif" font-size="15">
<rect width="320" height="220" fill="white"/>
<path d="M10 190H310" stroke="#333" stroke-width="2"/>
<circle cx="80" cy="136" r="54" fill="none" stroke="#1f77b4" stroke-width="3"/>
<circle cx="240" cy="132" r="58" fill="none" stroke="#1f77b4" stroke-width="3"/>
<path d="M80 136L128 60H206M128 60L150 132L206 60M80 136H150" fill="none" stroke="#333" stroke-width="3"/>
<path d="M206 60L226 112L240 132" fill="none" stroke="#2ca02c" stroke-width="4"/>
<path d="M206 60L192 30H214" fill="none" stroke="#2ca02c" stroke-width="4"/>
<path d="M206 60L257 190" stroke="#888" stroke-dasharray="5 4"/>
<circle cx="80" cy="190" r="4" fill="#d62728"/><circle cx="240" cy="190" r="4" fill="#d62728"/>
<path d="M80 190H132" stroke="#555" stroke-width="1.500"/><path d="M140 190l-10 -4v8z" fill="#555"/>
<path d="M80 190V212" stroke="#555"/><path d="M80 218l-4 -9h8z" fill="#555"/>
<path d="M178 40A30 30 0 0 1 196 22" fill="none" stroke="#d62728" stroke-width="2"/><path d="M202 20l-11 -2l3 8z"
 fill="#d62728"/>
<path d="M42 108A46 46 0 0 0 42 164" fill="none" stroke="#d62728" stroke-width="2"/><path d="M40 100l8 8l-9 4z"
 fill="#d62728"/>
<g font-style="italic" fill="#d62728"><text x="134" y="26">steer</text><text x="50" y="164">rear</text>
<text x="256" y="128">front</text><text x="40" y="208">x, y</text></g>
<g font-size="12"><text x="136" y="206">N.x</text><text x="88" y="218">N.z</text><text x="244" y="206">trail</text></g>
</svg>
"""

PARAMETERS = (
    ("g", 9.81, "m/s2", "acceleration of gravity"),
    ("wheel_base", 1.02, "m", "distance of the contacts, upright"),
    ("trail", 0.08, "m", "of the steering axis' ground point ahead of the front contact"),
    ("tilt", float(sm.pi) / 10, "rad", "of the steering axis, its top backwards"),
    ("rR", 0.3, "m", "radius of the rear wheel"),
    ("mR", 2.0, "kg", "mass of the rear wheel"),
    ("IRxx", 0.0603, "kg.m2", "inertia of the rear wheel about a diameter"),
    ("IRyy", 0.12, "kg.m2", "inertia of the rear wheel about its axle"),
    ("xB", 0.3, "m", "mass centre of rear frame and rider ahead of the rear contact"),
    ("zB", -0.9, "m", "mass centre of rear frame and rider below the ground"),
    ("mB", 85.0, "kg", "mass of rear frame and rider"),
    ("IBxx", 9.2, "kg.m2", "inertia of rear frame and rider"),
    ("IByy", 11.0, "kg.m2", "inertia of rear frame and rider"),
    ("IBzz", 2.8, "kg.m2", "inertia of rear frame and rider"),
    ("IBxz", 2.4, "kg.m2", "off-diagonal inertia of rear frame and rider"),
    ("xH", 0.9, "m", "mass centre of the handlebar ahead of the rear contact"),
    ("zH", -0.7, "m", "mass centre of the handlebar below the ground"),
    ("mH", 4.0, "kg", "mass of handlebar and fork"),
    ("IHxx", 0.05892, "kg.m2", "inertia of handlebar and fork"),
    ("IHyy", 0.06, "kg.m2", "inertia of handlebar and fork"),
    ("IHzz", 0.00708, "kg.m2", "inertia of handlebar and fork"),
    ("IHxz", -0.00756, "kg.m2", "off-diagonal inertia of handlebar and fork"),
    ("rF", 0.35, "m", "radius of the front wheel"),
    ("mF", 3.0, "kg", "mass of the front wheel"),
    ("IFxx", 0.1405, "kg.m2", "inertia of the front wheel about a diameter"),
    ("IFyy", 0.28, "kg.m2", "inertia of the front wheel about its axle"),
)
P = {name: sm.Symbol(name) for name, *_ in PARAMETERS}


@dataclass(frozen=True)
class _Bicycle:
    """What the outputs are about."""

    parts: Parts
    front: me.RigidBody
    contacts: tuple[me.Point, me.Point]
    heading: me.ReferenceFrame
    rolling: tuple[sm.Expr, ...]
    head: me.Point


def bicycle(speed: float = 4.6) -> Model:
    """The bicycle, running straight at ``speed`` in m/s, pushed from the side."""
    q = me.dynamicsymbols("x y yaw lean pitch steer rear_angle front_angle")
    u = me.dynamicsymbols("v w yaw_rate lean_rate pitch_rate steer_rate rear_rate front_rate")
    inputs = me.dynamicsymbols("lean_torque steer_torque")
    machine = _mechanics(q, u, inputs)

    model = Model("Bicycle", machine.parts, description="The benchmark bicycle, both wheels rolling", diagram=DIAGRAM)
    for name, value, unit, what in PARAMETERS:
        bounds = {"min": 1e-6} if name[0] in "mr" else {}
        model.parameter(P[name], value, unit, description=what, **bounds)
    for symbol, what in zip(
        inputs, ("on the rear frame about the heading", "of the rider on the handlebar"), strict=True
    ):
        model.input(symbol, 0.0, "N.m", description=what)
    places = ("rear contact along N.x", "rear contact along N.y")
    angles = ("heading", "lean to the right", "pitch of the rear frame", "steering angle to the right")
    angles += ("angle of the rear wheel", "angle of the front wheel")
    for symbol, what in zip(q[:2], places, strict=True):
        model.coordinate(symbol, 0.0, "m", description=what)
    for symbol, what in zip(q[2:], angles, strict=True):
        kind = "guess" if symbol is q[4] else "fixed"
        model.coordinate(symbol, 0.0, "rad", kind=kind, display_unit="deg", description=what)
    model.speed(u[0], speed, "m/s", kind="guess", description="velocity of the rear contact along the heading")
    model.speed(u[1], 0.0, "m/s", kind="guess", description="velocity of the rear contact across the heading")
    start = {u[3]: 0.3, u[6]: -speed / 0.3, u[7]: -speed / 0.35}
    for symbol, what in zip(u[2:], angles, strict=True):
        kind = "fixed" if symbol in (u[3], u[5], u[6]) else "guess"
        model.speed(symbol, start.get(symbol, 0.0), "rad/s", kind=kind, description=f"rate of the {what}")
    _outputs(model, machine)
    _draw(model, machine)
    model.experiment(stop=5.0, step=0.01, tolerance=1e-8, signals=dict.fromkeys(inputs, 0.0))
    return model


def _mechanics(q: tuple[sm.Expr, ...], u: tuple[sm.Expr, ...], inputs: tuple[sm.Expr, ...]) -> _Bicycle:
    """Frames from the ground to the front wheel, points from contact to contact."""
    t = me.dynamicsymbols._t  # noqa: SLF001  (the symbol of time that SymPy mechanics uses)
    x, y, yaw, lean, pitch, steer, rear_angle, front_angle = q
    N, A, B, C, S, H, D, R, F = (me.ReferenceFrame(name) for name in "NABCSHDRF")
    turns = ((A, N, "z", yaw, 2), (B, A, "x", lean, 3), (C, B, "y", pitch, 4), (R, C, "y", rear_angle, 6))
    turns += (
        (S, C, "y", P["tilt"], -1),
        (H, S, "z", steer, 5),
        (D, H, "y", -P["tilt"], -1),
        (F, D, "y", front_angle, 7),
    )
    for frame, parent, axis, angle, rate in turns:
        frame.orient_axis(parent, getattr(parent, axis), angle)
        frame.set_ang_vel(parent, (u[rate] if rate >= 0 else 0) * getattr(parent, axis))

    O = me.Point("O")
    O.set_vel(N, 0)
    rear = O.locatenew("rear_contact", x * N.x + y * N.y)
    rear.set_vel(N, u[0] * A.x + u[1] * A.y)
    hub = rear.locatenew("rear_hub", -P["rR"] * B.z)
    hub.v2pt_theory(rear, N, B)
    trunk = hub.locatenew("trunk", P["xB"] * C.x + (P["zB"] + P["rR"]) * C.z)
    head = hub.locatenew("steering_axis", (P["wheel_base"] + P["trail"]) * C.x + P["rR"] * C.z)
    bar = head.locatenew("handlebar", (P["xH"] - P["wheel_base"] - P["trail"]) * D.x + P["zH"] * D.z)
    axle = head.locatenew("front_hub", -P["trail"] * D.x - P["rF"] * D.z)
    for point, base, frame in ((trunk, hub, C), (head, hub, C), (bar, head, D), (axle, head, D)):
        point.v2pt_theory(base, N, frame)

    # The lowest point of the front wheel: downward in its plane. Its particle does not move; its height is zero.
    across = N.z.dot(D.y)
    down = sm.sqrt(1 - across**2)
    arm = P["rF"] / down * (N.z - across * D.y)
    front = axle.locatenew("front_contact", arm)
    height = axle.pos_from(O).dot(N.z) + P["rF"] * down
    slip_rear = hub.vel(N) + R.ang_vel_in(N).cross(P["rR"] * B.z)
    slip_front = axle.vel(N) + F.ang_vel_in(N).cross(arm)
    rolling = tuple(slip.dot(axis) for slip in (slip_rear, slip_front) for axis in (A.x, A.y))

    def body(name: str, centre: me.Point, frame: me.ReferenceFrame, letter: str) -> me.RigidBody:
        I = {axis: P.get(f"I{letter}{axis}", 0) for axis in ("xx", "yy", "zz", "xz")}
        zz = I["zz"] or I["xx"]
        inertia = me.inertia(frame, I["xx"], I["yy"], zz, 0, 0, I["xz"])
        return me.RigidBody(name, centre, frame, P[f"m{letter}"], (inertia, centre))

    bodies = [body("rear_wheel", hub, R, "R"), body("rear_frame", trunk, C, "B")]
    bodies += [body("handlebar", bar, D, "H"), body("front_wheel", axle, F, "F")]
    loads = [me.Force(b.masscenter, b.mass * P["g"] * N.z) for b in bodies]
    loads += [me.Torque(C, inputs[0] * A.x - inputs[1] * S.z), me.Torque(D, inputs[1] * S.z)]
    parts = Parts(
        frame=N,
        origin=O,
        q=q,
        u=u,
        kinematic_equations=[
            x.diff(t) - rear.vel(N).dot(N.x),
            y.diff(t) - rear.vel(N).dot(N.y),
            *(angle.diff(t) - rate for angle, rate in zip(q[2:], u[2:], strict=True)),
        ],
        bodies=bodies,
        loads=loads,
        holonomic_constraints=[height],
        q_dependent=[pitch],
        velocity_constraints=rolling,
        u_dependent=[u[0], u[1], u[2], u[4], u[7]],
    )
    return _Bicycle(parts, bodies[-1], (rear, front), A, rolling, head)


def _outputs(model: Model, machine: _Bicycle) -> None:
    """Contact forces: of the front wheel from its constraints, of the rear wheel as what is left."""
    A, N = machine.heading, machine.parts.frame
    (height,), (rear, front) = machine.parts.holonomic_constraints, machine.contacts
    rows = {"rear.along": machine.rolling[0], "rear.across": machine.rolling[1]}
    rows |= {"front.along": machine.rolling[2], "front.across": machine.rolling[3], "front.height": height}
    wheels = {"rear": (rear, machine.parts.bodies[0]), "front": (front, machine.front)}
    for name, row in rows.items():
        wheel, _, direction = name.partition(".")
        axis = {"along": A.x, "across": A.y, "height": N.z}[direction]
        place, body = wheels[wheel]
        acts = [(place, axis, body)] if wheel == "front" else []
        model.constraint(row, name, acts=acts)
        model.output_multiplier(f"lambda.{name}", row)
    model.output_reaction("rear_contact", list(machine.parts.bodies), at=rear, expressed_in=A, torque=False)
    model.output_total_energy()


def _draw(model: Model, machine: _Bicycle) -> None:
    """Wheels with spokes, the frame with its rider, fork and handlebar; what the benchmark does not say is chosen."""
    rear, frame, bar, front = machine.parts.bodies
    C, D, head = frame.frame, bar.frame, machine.head
    for wheel, r in ((rear, P["rR"]), (front, P["rF"])):
        model.visual(wheel, Cylinder(r / 12, r), color="#4d5663", opacity=0.35)
        model.visual(wheel, Cylinder(r / 4, r / 8), color="#4d5663")
        for spoke in (Box(1.9 * r, r / 10, r / 25), Box(r / 25, r / 10, 1.9 * r)):
            model.visual(wheel, spoke, color="#f58518")
    base, thick = P["wheel_base"] + P["trail"], P["rR"] / 12
    # The steering axis meets the ground in head; along it is S.z, which leans back by the tilt.
    axis = sm.Matrix([sm.sin(P["tilt"]), 0, sm.cos(P["tilt"])])
    up = {
        name: [head.locatenew(f"{name}{h}", -h * P["rR"] * (axis[0] * F.x + axis[2] * F.z)) for h in (2.3, 3.0, 3.6)]
        for name, F in (("frame", C), ("fork", D))
    }
    hub, axle = rear.masscenter, front.masscenter
    crank = hub.locatenew("crank", 0.42 * base * C.x)
    saddle = hub.locatenew("saddle", 0.27 * base * C.x - 0.6 * base * C.z)
    low, high, _ = up["frame"]
    for start, end in ((hub, crank), (hub, saddle), (crank, saddle), (crank, low), (saddle, high), (low, high)):
        model.link(frame, start, end, radius=thick, color="#1f77b4")
    model.visual(frame, Box(0.28 * base, thick, 0.15 * base), at=saddle, along=C.z, color="#333333")
    chest = saddle.locatenew("chest", 0.1 * base * C.x - 0.36 * base * C.z)
    chin = chest.locatenew("chin", 0.08 * base * C.x - 0.42 * base * C.z)
    model.visual(frame, Ellipsoid(0.13 * base, 0.18 * base, 0.32 * base), at=chest, color="#54a24b", opacity=0.6)
    model.visual(frame, Sphere(0.11 * base), at=chin, color="#54a24b", opacity=0.6)
    for side in (-1, 1):
        hip = saddle.locatenew(f"hip{side}", side * 0.08 * base * C.y - 0.05 * base * C.z)
        knee = hip.locatenew(f"knee{side}", 0.3 * base * C.x + 0.2 * base * C.z)
        foot = crank.locatenew(f"foot{side}", side * 0.1 * base * C.y + side * 0.12 * base * C.x)
        for start, end in ((hip, knee), (knee, foot)):
            model.link(frame, start, end, radius=1.2 * thick, color="#54a24b")
    low, _, top = up["fork"]
    for start, end in ((axle, low), (low, top)):
        model.link(bar, start, end, radius=thick, color="#d62728")
    model.visual(bar, Cylinder(0.5 * base, thick), at=top, along=D.y, color="#d62728")
    for contact in machine.contacts:
        model.trace(contact)
