"""Andrews' squeezing mechanism: seven bodies in a plane, three closed loops, driven by a motor.

Coordinates, all angles in the plane, counter-clockwise positive: ``beta`` of the crank K1 about the motor's axis O (the
origin), ``Theta`` of K2 from the crank, ``gamma`` of K3 about B, ``Phi`` of K4 from K5, ``delta`` of K5 about A,
``Omega`` of K6 from K7, ``epsilon`` of K7 about A. Gravity does not act; the motor's torque on the crank is the input
``torque``; a spring pulls K3 towards C. K2, K3, K4 and K6 meet in one pin: six closing conditions hold seven
coordinates. The mechanism is small (centimetres, grams) and fast: 0.033 N.m turn its crank at 1,140 rad/s after 30 ms.

Source: E. Hairer, G. Wanner, Solving Ordinary Differential Equations II, section VII.7; F. Mazzia, C. Magherini, Test
Set for Initial Value Problem Solvers, problem Andrews' squeezing mechanism (numbers of the motion).
"""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Cylinder, Model, Parts

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 320 240" font-family="serif" font-size="14">
<rect width="320" height="240" fill="white"/>
<path d="M216 96L236 84" stroke="#1f77b4" stroke-width="6" stroke-linecap="round"/>
<path d="M236 84L152 112" stroke="#2ca02c" stroke-width="6" stroke-linecap="round"/>
<path d="M152 112L124 30L168 44Z" fill="#fdd0a2" stroke="#333"/>
<path d="M152 112L90 128M90 128L30 100" stroke="#9467bd" stroke-width="6" stroke-linecap="round"/>
<path d="M152 112L104 190M104 190L30 100" stroke="#d62728" stroke-width="6" stroke-linecap="round"/>
<path d="M168 44l12 -8l4 10l12 -12l4 10l12 -12l4 8" fill="none" stroke="#333"/>
<g fill="white" stroke="#333" stroke-width="2"><circle cx="216" cy="96" r="5"/><circle cx="152" cy="112" r="5"/>
<circle cx="30" cy="100" r="5"/><circle cx="124" cy="30" r="5"/><circle cx="216" cy="32" r="4"/></g>
<g font-style="italic"><text x="222" y="114">O</text><text x="16" y="92">A</text><text x="108" y="28">B</text>
<text x="224" y="30">C</text><text x="240" y="80" fill="#1f77b4">K₁ β</text>
<text x="186" y="92" fill="#2ca02c">K₂ Θ</text>
<text x="140" y="70">K₃ γ</text><text x="112" y="112" fill="#9467bd">K₄ Φ</text>
<text x="40" y="130" fill="#9467bd">K₅ δ</text>
<text x="134" y="160" fill="#d62728">K₆ Ω</text><text x="46" y="164" fill="#d62728">K₇ ε</text></g>
</svg>
"""

NUMBERS = {
    "m1": (0.04325, "kg"),
    "m2": (0.00365, "kg"),
    "m3": (0.02373, "kg"),
    "m4": (0.00706, "kg"),
    "m5": (0.0705, "kg"),
    "m6": (0.00706, "kg"),
    "m7": (0.05498, "kg"),
    "i1": (2.194e-6, "kg.m2"),
    "i2": (4.41e-7, "kg.m2"),
    "i3": (5.255e-6, "kg.m2"),
    "i4": (5.667e-7, "kg.m2"),
    "i5": (1.169e-5, "kg.m2"),
    "i6": (5.667e-7, "kg.m2"),
    "i7": (1.912e-5, "kg.m2"),
    "xa": (-0.06934, "m"),
    "ya": (-0.00227, "m"),
    "xb": (-0.03635, "m"),
    "yb": (0.03273, "m"),
    "xc": (0.014, "m"),
    "yc": (0.072, "m"),
    "d": (0.028, "m"),
    "da": (0.0115, "m"),
    "e": (0.02, "m"),
    "ea": (0.01421, "m"),
    "rr": (0.007, "m"),
    "ra": (0.00092, "m"),
    "ss": (0.035, "m"),
    "sa": (0.01874, "m"),
    "sb": (0.01043, "m"),
    "sc": (0.018, "m"),
    "sd": (0.02, "m"),
    "ta": (0.02308, "m"),
    "tb": (0.00916, "m"),
    "u": (0.04, "m"),
    "ua": (0.01228, "m"),
    "ub": (0.00449, "m"),
    "zf": (0.02, "m"),
    "zt": (0.04, "m"),
    "fa": (0.01421, "m"),
    "c0": (4530.0, "N/m"),
    "l0": (0.07785, "m"),
}
"""Masses, inertias, places, lengths, stiffness and free length of the spring, by their names in the source."""

START = {
    "beta": -0.0617138900142764496,
    "Theta": 0.0,
    "gamma": 0.45527981916307038,
    "Phi": 0.222668390165885885,
    "delta": 0.48736497954384255,
    "Omega": -0.222668390165885885,
    "epsilon": 1.230547444549821192,
}


def _places(N: me.ReferenceFrame, K: list[me.ReferenceFrame], p: dict[str, sm.Symbol]) -> dict[str, me.Point]:
    """Fixed points, pins, the three ends of the loops and the end of the spring, by name; O is the motor's axis."""
    O = me.Point("O")
    O.set_vel(N, 0)
    K1, K2, K3, K4, K5, K6, K7 = K
    A = O.locatenew("A", p["xa"] * N.x + p["ya"] * N.y)
    B = O.locatenew("B", p["xb"] * N.x + p["yb"] * N.y)
    pin1 = O.locatenew("pin1", p["rr"] * K1.x)
    pin5 = A.locatenew("pin5", p["zt"] * K5.x)
    pin7 = A.locatenew("pin7", -p["u"] * K7.y)
    points = (
        *(O, A, B, pin1, pin5, pin7),
        O.locatenew("C", p["xc"] * N.x + p["yc"] * N.y),
        pin1.locatenew("P", -p["d"] * K2.x),
        B.locatenew("P3", -p["ss"] * K3.y),
        pin5.locatenew("P5", -p["e"] * K4.y),
        pin7.locatenew("P7", p["zf"] * K6.x),
        B.locatenew("D", -p["sc"] * K3.y + p["sd"] * K3.x),
    )
    return {point.name: point for point in points}


def _bodies(K: list[me.ReferenceFrame], at: dict[str, me.Point], p: dict[str, sm.Symbol]) -> tuple[me.RigidBody, ...]:
    K1, K2, K3, K4, K5, K6, K7 = K
    arms = (
        (at["O"], p["ra"] * K1.x),
        (at["pin1"], -p["da"] * K2.x),
        (at["B"], -p["sa"] * K3.y + p["sb"] * K3.x),
        (at["pin5"], -(p["e"] - p["ea"]) * K4.y),
        (at["A"], p["ta"] * K5.x + p["tb"] * K5.y),
        (at["pin7"], (p["zf"] - p["fa"]) * K6.x),
        (at["A"], -p["ua"] * K7.y - p["ub"] * K7.x),
    )
    bodies = []
    for i, (frame, (base, arm)) in enumerate(zip(K, arms, strict=True), 1):
        centre = base.locatenew(f"S{i}", arm)
        inertia = me.inertia(frame, 0, 0, p[f"i{i}"])
        bodies.append(me.RigidBody(f"K{i}", centre, frame, p[f"m{i}"], (inertia, centre)))
    return tuple(bodies)


def _draw(
    model: Model, N: me.ReferenceFrame, K: list[me.ReferenceFrame], at: dict[str, me.Point], size: sm.Expr
) -> None:
    """Rods between the pins of each body, pins, and the path of the common pin."""
    rods = ("O pin1", "pin1 P", "B P3", "pin5 P5", "A pin5", "pin7 P7", "A pin7")
    for i, rod in (*enumerate(rods, 1), (3, "B D"), (3, "D P3")):
        base, end = rod.split()
        model.link(K[i - 1], at[base], at[end], radius=size / 20)
    for name, frame in {**dict.fromkeys("OABC", N), "pin1": K[0], "pin5": K[4], "pin7": K[6], "P": K[1]}.items():
        color = "#5b6470" if frame is N else "#aeb6c1"
        model.visual(frame, Cylinder(size / 5, size / 14), at=at[name], along=frame.z, color=color)
    model.trace(at["P"])


def andrews() -> Model:
    """The mechanism, started from rest by the motor's constant torque, for 30 ms."""
    q = me.dynamicsymbols("beta Theta gamma Phi delta Omega epsilon")
    u = me.dynamicsymbols("u_beta u_Theta u_gamma u_Phi u_delta u_Omega u_epsilon")
    torque = me.dynamicsymbols("torque")
    p = {name: sm.Symbol(name, positive=name[0] not in "xy") for name in NUMBERS}
    beta, theta, gamma, phi, delta, omega, epsilon = q

    N = me.ReferenceFrame("N")
    angles = (beta, beta + theta, gamma, phi + delta, delta, omega + epsilon, epsilon)
    rates = (u[0], u[0] + u[1], u[2], u[3] + u[4], u[4], u[5] + u[6], u[6])
    K = [me.ReferenceFrame(f"K{i + 1}") for i in range(7)]
    for frame, angle, rate in zip(K, angles, rates, strict=True):
        frame.orient_axis(N, N.z, angle)
        frame.set_ang_vel(N, rate * N.z)
    at = _places(N, K, p)
    bodies = _bodies(K, at, p)
    loops = tuple(at["P"].pos_from(at[end]).dot(axis) for end in ("P3", "P5", "P7") for axis in (N.x, N.y))
    spring = me.LinearSpring(p["c0"], me.LinearPathway(at["D"], at["C"]), equilibrium_length=p["l0"])
    parts = Parts(
        frame=N,
        origin=at["O"],
        q=tuple(q),
        u=tuple(u),
        kinematic_equations=tuple(ui - qi.diff() for qi, ui in zip(q, u, strict=True)),
        bodies=bodies,
        actuators=(me.TorqueActuator(torque, N.z, K[0], N), spring),
        holonomic_constraints=loops,
        q_dependent=tuple(q[1:]),
        u_dependent=tuple(u[1:]),
    )

    description = "Andrews' squeezing mechanism: seven bodies, three loops"
    model = Model("Andrews", parts, description=description, diagram=DIAGRAM)
    for name, (value, unit) in NUMBERS.items():
        model.parameter(p[name], value, unit, description=f"{name} of the source")
    model.input(torque, 0.033, "N.m", description="torque of the motor on the crank")
    for angle, rate in zip(q, u, strict=True):
        name, kind = angle.func.__name__, "fixed" if angle is beta else "guess"
        model.coordinate(angle, START[name], "rad", kind=kind, description=f"angle {name}")
        model.speed(rate, 0.0, "rad/s", nominal=100.0, kind=kind, description=f"angular speed of {name}")
    for i, row in enumerate(loops, 1):
        model.output_multiplier(f"lambda[{i}]", row)
    model.output("crank_acceleration", u[0].diff(), "rad/s2", nominal=1e4, description="acceleration of the crank")
    model.output_position("pin", at["P"])
    _draw(model, N, K, at, p["d"])
    model.experiment(stop=0.03, step=3e-4, tolerance=1e-9, signals={torque: 0.033})
    return model
