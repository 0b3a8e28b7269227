"""Mechanisms as people write them who have never heard of mb2fmu: SymPy's, opty's and textbooks' ways."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise
from types import SimpleNamespace

import sympy as sm
from sympy.physics import mechanics as me

from mb2fmu import Model, Parts

T = me.dynamicsymbols._t
STRANGERS: dict[str, Callable[[], Model]] = {}


def stranger(function: Callable[[], Model]) -> Callable[[], Model]:
    STRANGERS[function.__name__] = function
    return function


def declared(name: str, mechanics: object, values: str, starts: dict[sm.Expr, float], **guesses: float) -> Model:
    """A model with parameters ``"m=1 l=2"``, coordinates and speeds in the mechanics' order."""
    model = Model(name, mechanics)
    for item in values.split():
        symbol, value = item.split("=")
        model.parameter(sm.Symbol(symbol), float(value))
    for symbol, value in starts.items():
        kind = "guess" if str(symbol.func) in guesses or str(symbol) in guesses else "fixed"
        speed = isinstance(symbol, sm.Derivative) or symbol in _speeds(mechanics)
        (model.speed if speed else model.coordinate)(symbol, value, kind=kind)
    return model


def _speeds(mechanics: object) -> Sequence[sm.Expr]:
    return [] if isinstance(mechanics, me.LagrangesMethod) else list(mechanics.u)


def world() -> tuple[me.ReferenceFrame, me.Point]:
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    return N, O


def body(name: str, point: me.Point, frame: me.ReferenceFrame) -> me.RigidBody:
    m, J = sm.symbols("m J")
    return me.RigidBody(name, point, frame, m, (me.inertia(frame, J, 1.5 * J, 2 * J), point))


# ---------------------------------------------------------------------- bodies


def _hinged_rod(*, central_inertia: bool) -> tuple[me.Body, me.Body, me.PinJoint, list[sm.Expr]]:
    q, u = me.dynamicsymbols("q u")
    m, l, g = sm.symbols("m l g")
    N = me.ReferenceFrame("N")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # me.Body is deprecated since SymPy 1.13
        ceiling = me.Body("ceiling", frame=N)
        inertia = me.inertia(N, 0, 0, m * l**2 / 12) if central_inertia else None
        rod = me.Body("rod", mass=m, central_inertia=inertia)
    joint = me.PinJoint("J", ceiling, rod, q, u, child_point=l / 2 * rod.frame.y, joint_axis=N.z)
    rod.apply_force(-m * g * N.y)
    return ceiling, rod, joint, [q, u]


@stranger
def rod_by_deprecated_body() -> Model:
    ceiling, rod, _, (q, u) = _hinged_rod(central_inertia=True)
    kane = me.KanesMethod(ceiling.frame, [q], [u], [q.diff() - u], bodies=[rod], forcelist=rod.loads)
    return declared("Rod", kane, "m=1 l=1.3 g=9.81", {q: 0.5, u: 0.2})


@stranger
def particle_by_deprecated_body() -> Model:
    ceiling, rod, _, (q, u) = _hinged_rod(central_inertia=False)
    kane = me.KanesMethod(ceiling.frame, [q], [u], [q.diff() - u], bodies=[rod], forcelist=rod.loads)
    return declared("Bob", kane, "m=1 l=1.3 g=9.81", {q: 0.5, u: 0.2})


@stranger
def rod_by_deprecated_body_in_a_system() -> Model:
    ceiling, rod, joint, (q, u) = _hinged_rod(central_inertia=True)
    system = me.System(ceiling.frame, ceiling.masscenter)
    ceiling.masscenter.set_vel(ceiling.frame, 0)
    system.add_joints(joint)
    system.add_bodies(*(b for b in (rod,) if b not in system.bodies))
    system.add_loads(*rod.loads)
    return declared("Rod", system, "m=1 l=1.3 g=9.81", {q: 0.5, u: 0.2})


def _by_joints_method(*, formed: bool) -> Model:
    ceiling, _, joint, (q, u) = _hinged_rod(central_inertia=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        method = me.JointsMethod(ceiling, joint)
    if formed:
        method.form_eoms()
    model = Model("Rod", method)
    for name, value in (("m", 1.0), ("l", 1.3), ("g", 9.81)):
        model.parameter(sm.Symbol(name), value)
    model.coordinate(q, 0.5, "rad")
    model.speed(u, 0.2, "rad/s")
    return model


@stranger
def joints_method_formed() -> Model:
    return _by_joints_method(formed=True)


@stranger
def joints_method_as_made() -> Model:
    return _by_joints_method(formed=False)


class Own(me.RigidBody):
    """A body class that never calls SymPy's initializer: it has no potential energy."""

    def __init__(self, name: str, point: me.Point, frame: me.ReferenceFrame) -> None:
        m, J = sm.symbols("m J")
        self._name, self._masscenter, self._frame, self._mass = name, point, frame, m
        self.inertia = (me.inertia(frame, J, J, J), point)


@stranger
def body_class_without_potential_energy() -> Model:
    q, u = me.dynamicsymbols("q u")
    N, O = world()
    A = me.ReferenceFrame("A")
    A.orient_axis(N, N.z, q)
    A.set_ang_vel(N, u * N.z)
    G = O.locatenew("G", sm.Symbol("l") * A.x)
    G.v2pt_theory(O, N, A)
    weight = (G, -sm.Symbol("m") * sm.Symbol("g") * N.y)
    kane = me.KanesMethod(N, [q], [u], [q.diff() - u], bodies=[Own("own", G, A)], forcelist=[weight])
    return declared("Own", kane, "m=1 l=1.3 g=9.81 J=0.4", {q: 0.5, u: 0.2})


# ---------------------------------------------------------------------- constraints


@stranger
def inertias_about_pivots() -> Model:
    """Two links by Lagrange: with less inertia about a pivot M is indefinite."""
    a, b = me.dynamicsymbols("a b")
    m, l, c, J, g = sm.symbols("m l c J g")
    N, O = world()
    A = N.orientnew("A", "Axis", (a, N.z))
    B = A.orientnew("B", "Axis", (b, A.z))
    E, G1 = O.locatenew("E", -l * A.y), O.locatenew("G1", -c * A.y)
    G2 = E.locatenew("G2", -c * B.y)
    E.v2pt_theory(O, N, A)
    G1.v2pt_theory(O, N, A)
    G2.v2pt_theory(E, N, B)
    upper = me.RigidBody("upper", G1, A, m, (me.inertia(A, 0, 0, J), O))
    lower = me.RigidBody("lower", G2, B, m, (me.inertia(B, 0, 0, J), E))
    weights = [(G1, -m * g * N.y), (G2, -m * g * N.y)]
    method = me.LagrangesMethod(me.Lagrangian(N, upper, lower), [a, b], forcelist=weights, frame=N)
    starts = {a: 0.5, b: 0.2, a.diff(): 0.0, b.diff(): 0.0}
    return declared("Pivots", method, "m=1 l=1 c=0.5 J=0.22 g=9.81", starts)


@stranger
def lagrangian_of_a_particle_on_a_circle() -> Model:
    x, y = me.dynamicsymbols("x y")
    m, l, g = sm.symbols("m l g")
    N, O = world()
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, P.pos_from(O).dt(N))
    L = me.Lagrangian(N, me.Particle("bob", P, m))
    method = me.LagrangesMethod(L, [x, y], hol_coneqs=[x**2 + y**2 - l**2], forcelist=[(P, m * g * N.x)], frame=N)
    starts = {x: 0.9, y: 0.4, x.diff(): 0.0, y.diff(): 0.0}
    model = declared("Circle", method, "m=1 l=1 g=9.81", starts, x=1, **{str(x.diff()): 1})
    model.output_total_energy()
    return model


@stranger
def three_coordinates_and_two_rows() -> Model:
    q, u = me.dynamicsymbols("x y z"), me.dynamicsymbols("vx vy vz")
    N, O = world()
    P = O.locatenew("P", sum((a * e for a, e in zip(q, N, strict=True)), me.Vector(0)))
    P.set_vel(N, sum((a * e for a, e in zip(u, N, strict=True)), me.Vector(0)))
    parts = Parts(
        frame=N,
        origin=O,
        q=q,
        u=u,
        kinematic_equations=[a.diff(T) - b for a, b in zip(q, u, strict=True)],
        bodies=[me.Particle("p", P, sm.Symbol("m"))],
        holonomic_constraints=[q[2] - q[0], q[1] ** 2 + q[2] ** 2 - 1],
    )
    names = ("y", "z", "vy", "vz")
    return declared("Rows", parts, "m=1", {**dict.fromkeys(q, 0.5), **dict.fromkeys(u, 0.1)}, **dict.fromkeys(names, 1))


@stranger
def quaternion_with_a_dependent_rate() -> Model:
    e = q0, q1, q2, q3 = me.dynamicsymbols("q0:4")
    u0, wx, wy, wz = me.dynamicsymbols("u0 w_x w_y w_z")
    N, O = world()
    A = me.ReferenceFrame("A")
    A.orient_quaternion(N, e)
    w = A.ang_vel_in(N)
    rates = [u0 - q0.diff(T), *(s - w.dot(axis) for s, axis in zip((wx, wy, wz), A, strict=True))]
    A.set_ang_vel(N, wx * A.x + wy * A.y + wz * A.z)
    unit = sm.Matrix([q0**2 + q1**2 + q2**2 + q3**2 - 1])
    kane = me.KanesMethod(
        N,
        (q1, q2, q3),
        (wx, wy, wz),
        kd_eqs=rates,
        q_dependent=(q0,),
        u_dependent=(u0,),
        configuration_constraints=unit,
        velocity_constraints=unit.diff(T),
    )
    kane.kanes_equations([body("b", O, A)], [])
    starts = {q1: 0.0, q2: 0.0, q3: 0.0, q0: 1.0, wx: 1.0, wy: 0.1, wz: 0.2, u0: 0.0}
    return declared("Quaternion", kane, "J=1 m=1", starts, q0=1, u0=1)


@stranger
def force_in_the_joint_that_closes_a_loop() -> Model:
    """SymPy's four-bar tutorial: auxiliary speeds in the velocity constraints."""
    q, u = me.dynamicsymbols("q1:4"), me.dynamicsymbols("u1:4")
    ua, F = me.dynamicsymbols("uaux1:3"), me.dynamicsymbols("faux1:3")
    lengths, rho, g = sm.symbols("l1:5"), sm.Symbol("rho"), sm.Symbol("g")
    N = me.ReferenceFrame("N")
    links = []
    for i, l in enumerate(lengths):
        centre = me.Point(f"mc{i}")
        inertia = me.Inertia.from_inertia_scalars(centre, N, 0, 0, rho * l**3 / 12)
        frame = N if i == 0 else me.ReferenceFrame(f"F{i}")
        links.append(me.RigidBody(f"Link{i}", frame=frame, mass=rho * l, masscenter=centre, inertia=inertia))
    system = me.System.from_newtonian(links[0])
    for i, (one, other) in enumerate(pairwise(links)):
        at, to = lengths[i] / 2, -lengths[i + 1] / 2
        places = {"parent_point": at * one.x, "child_point": to * other.x, "joint_axis": one.z}
        system.add_joints(me.PinJoint(f"J{i}", one, other, coordinates=q[i], speeds=u[i], **places))
    start = links[0].masscenter.locatenew("start", -lengths[0] / 2 * links[0].x)
    end = links[3].masscenter.locatenew("end", lengths[3] / 2 * links[3].x)
    loop = end.pos_from(start)
    system.add_holonomic_constraints(loop.dot(N.x), loop.dot(N.y))
    system.q_ind, system.q_dep, system.u_ind, system.u_dep = [q[0]], [*q[1:]], [u[0]], [*u[1:]]
    shown = end.locatenew("end_aux", 0)
    shown.set_vel(N, end.vel(N) + ua[0] * N.x + ua[1] * N.y)
    system.velocity_constraints = [shown.vel(N).dot(N.x), shown.vel(N).dot(N.y)]
    force = F[0] * N.x + F[1] * N.y
    system.add_loads(me.Force(shown, force), me.Force(end, -force))
    system.u_aux = [*ua]
    system.apply_uniform_gravity(-g * N.y)
    starts = dict(zip([*q, *u], (1.4, 1.0, 1.2, 0.5, 0.0, 0.0), strict=True))
    model = declared("FourBar", system, "l1=2 l2=0.7 l3=2.2 l4=1.6 rho=5 g=9.81", starts, q2=1, q3=1, u2=1, u3=1)
    for i, f in enumerate(F):
        model.constraint_force(f, "N")
        model.output(f"force_{i}", f, "N")
    return model


@stranger
def force_along_a_velocity_constraint() -> Model:
    x, y, u, v, ua, F = me.dynamicsymbols("x y u v ua F")
    m, g = sm.symbols("m g")
    N, O = world()
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, u * N.x + v * N.y)
    Q = P.locatenew("Q", 0)
    Q.set_vel(N, ua * N.x)
    system = me.System(N, O)
    system.add_bodies(me.Particle("p", P, m))
    system.add_coordinates(x, y)
    system.add_speeds(u, v)
    system.add_kdes(x.diff() - u, y.diff() - v)
    system.u_ind, system.u_dep = [v], [u]
    system.add_nonholonomic_constraints(u)
    system.velocity_constraints = [u + ua]
    system.u_aux = [ua]
    system.add_loads(me.Force(Q, F * N.x), me.Force(P, -m * g * N.y + m * g * N.x))
    model = declared("Along", system, "m=1.2 g=9.81", {x: 0.0, y: 0.0, v: 0.0, u: 0.0}, u=1)
    model.constraint_force(F, "N")
    model.output("force_0", F, "N")
    return model


# ---------------------------------------------------------------------- kinematics


@stranger
def loop_whose_rates_are_given_twice() -> Model:
    """A crank-rocker: dependent speeds solved for and put into angular velocities, rates beside the loop itself."""
    q, u = me.dynamicsymbols("q1:4"), me.dynamicsymbols("u1:4")
    lengths, (d, m, g) = sm.symbols("a b c"), sm.symbols("d m g")
    N, O = world()
    A, B, C = frames = [N.orientnew("A", "Axis", [q[0], N.z]), *(me.ReferenceFrame(name) for name in "BC")]
    B.orient_axis(A, q[1], N.z)
    C.orient_axis(B, q[2], N.z)
    points = [O, *(me.Point(f"P{i}") for i in range(3))]
    for (before, after), length, frame in zip(pairwise(points), lengths, frames, strict=True):
        after.set_pos(before, length * frame.x)
    loop = (points[3].pos_from(O) - d * N.x).to_matrix(N)[:2, :]
    rates = loop.diff(T).xreplace({qi.diff(T): ui for qi, ui in zip(q, u, strict=True)})
    jacobian, rest = rates.jacobian(u[1:]), rates.xreplace({u[1]: 0, u[2]: 0})
    solved = -jacobian.adjugate() * rest / jacobian.det()
    for frame, parent, speed in zip(frames, [N, A, B], [u[0], *solved], strict=True):
        frame.set_ang_vel(parent, speed * N.z)
    for (before, after), frame in zip(pairwise(points), frames, strict=True):
        after.v2pt_theory(before, N, frame)
    parts = Parts(
        frame=N, origin=O, q=q, q_dependent=q[1:], u=u, u_dependent=u[1:],
        kinematic_equations=[qi.diff(T) - ui for qi, ui in zip(q, u, strict=True)],
        holonomic_constraints=list(loop), velocity_constraints=list(rates),
        bodies=[me.Particle(point.name, point, m) for point in points[1:3]],
        loads=[(point, -m * g * N.y) for point in points[1:3]],
    )  # fmt: skip
    starts = dict(zip(q, (0.17453, 0.17453, -2.6), strict=True)) | dict.fromkeys(u, 0.0)
    guesses = dict.fromkeys(["q2", "q3", "u2", "u3"], 1.0)
    return declared("CrankRocker", parts, "a=0.8 b=2 c=1 d=2 m=1 g=9.81", starts, **guesses)


@stranger
def load_where_a_ball_touches_the_ground() -> Model:
    x, q, v, w = me.dynamicsymbols("x q v w")
    r, c = sm.symbols("r c")
    N, O = world()
    A = me.ReferenceFrame("A")
    A.orient_axis(N, N.z, q)
    A.set_ang_vel(N, w * N.z)
    G = O.locatenew("G", x * N.x + r * N.y)
    G.set_vel(N, v * N.x)
    C = G.locatenew("C", -r * N.y)
    C.v2pt_theory(G, N, A)
    kane = me.KanesMethod(
        N, [x, q], [v, w], [x.diff() - v, q.diff() - w], bodies=[body("b", G, A)], forcelist=[(C, -c * C.vel(N))]
    )
    return declared("Ball", kane, "m=1.1 r=0.4 c=0.7 J=0.3", {x: 0.0, q: 0.0, v: 1.0, w: 0.0})


def _rotor(rate: sm.Expr) -> tuple[me.KanesMethod, list[sm.Expr]]:
    """A rotor without symmetry that hangs on a hinge and spins by its own angle."""
    q, u, a = me.dynamicsymbols("q u a")
    m, g, l = sm.symbols("m g l")
    N, O = world()
    B, R = me.ReferenceFrame("B"), me.ReferenceFrame("R")
    B.orient_axis(N, q, N.x)
    B.set_ang_vel(N, u * N.x)
    R.orient_axis(B, a, B.z)
    R.set_ang_vel(B, rate * B.z)
    P = O.locatenew("P", -l * B.z)
    P.v2pt_theory(O, N, B)
    bodies = [body("rotor", P, R)]
    return me.KanesMethod(N, [q], [u], [q.diff() - u], bodies=bodies, forcelist=[(P, -m * g * N.z)]), [q, u, a]


@stranger
def angle_with_a_constant_rate() -> Model:
    w = sm.Symbol("w")
    kane, (q, u, a) = _rotor(w)
    model = declared("Gyro", kane, "m=1 J=0.6 g=9.81 l=0.8 w=10", {q: 0.3, u: 0.0})
    model.state(a, w, 0.0, "rad")
    return model


@stranger
def angle_with_a_rate_that_lags_behind_an_input() -> Model:
    s, r = me.dynamicsymbols("s r")
    kane, (q, u, a) = _rotor(s)
    model = declared("Motor", kane, "m=1 J=0.6 g=9.81 l=0.8 tau=0.2", {q: 0.3, u: 0.1})
    model.input(r, 3.0, "rad/s")
    model.state(a, s, 0.2, "rad")
    model.state(s, (r - s) / sm.Symbol("tau"), 2.0, "rad/s")
    return model


@stranger
def speed_of_a_carriage_that_lags_behind_an_input() -> Model:
    q, u, s, r = me.dynamicsymbols("q u s r")
    m, l, g, tau = sm.symbols("m l g tau")
    N = me.ReferenceFrame("N")
    A, S = me.ReferenceFrame("A"), me.Point("S")
    A.orient_axis(N, N.z, q)
    A.set_ang_vel(N, u * N.z)
    S.set_vel(N, s * N.x)
    P = S.locatenew("P", -l * A.y)
    P.v2pt_theory(S, N, A)
    kane = me.KanesMethod(N, [q], [u], [q.diff() - u], bodies=[me.Particle("b", P, m)], forcelist=[(P, -m * g * N.y)])
    model = declared("Carriage", kane, "m=1 l=0.7 g=9.81 tau=0.3", {q: 0.3, u: 0.0})
    model.input(r, 1.0, "m/s")
    model.state(s, (r - s) / tau, 0.5, "m/s")
    return model


def axle(*, rows: int, dependent: int) -> Model:
    """Two wheels that roll on one axle: the two rows across the axle's way are one and the same."""
    q = x, y, heading, a1, a2 = me.dynamicsymbols("x y heading a1 a2")
    u = vx, vy, w, w1, w2 = me.dynamicsymbols("v_x v_y w w1 w2")
    r, b, torque = sm.symbols("r b torque")
    N, O = world()
    A, B1, B2 = (me.ReferenceFrame(name) for name in ("A", "B1", "B2"))
    A.orient_axis(N, N.z, heading)
    A.set_ang_vel(N, w * N.z)
    for wheel, angle, speed in ((B1, a1, w1), (B2, a2, w2)):
        wheel.orient_axis(A, A.y, angle)
        wheel.set_ang_vel(A, speed * A.y)
    G = O.locatenew("G", x * N.x + y * N.y + r * N.z)
    G.set_vel(N, vx * N.x + vy * N.y)
    hubs = [G.locatenew("C1", b * A.y + 0.1 * A.x), G.locatenew("C2", -b * A.y + 0.1 * A.x)]
    for hub in hubs:
        hub.v2pt_theory(G, N, A)
    m, J = sm.symbols("m J")
    spinning = [me.inertia(wheel, J, 2 * J, J) for wheel in (B1, B2)]
    wheels = [
        me.RigidBody(hub.name, hub, wheel, m, (inertia, hub))
        for hub, wheel, inertia in zip(hubs, (B1, B2), spinning, strict=True)
    ]
    touching = [hub.vel(N) + wheel.ang_vel_in(N).cross(-r * A.z) for hub, wheel in zip(hubs, (B1, B2), strict=True)]
    along = [v.dot(A.x) for v in touching]
    across = [v.dot(A.y) for v in touching]
    parts = Parts(
        frame=N,
        origin=O,
        q=q,
        u=u,
        kinematic_equations=[a.diff(T) - s for a, s in zip(q, u, strict=True)],
        bodies=[body("axle", G, A), *wheels],
        loads=[(B1, torque * A.y), (A, -torque * A.y)],
        velocity_constraints=[*along, *across][:rows],
        u_dependent=[vx, vy, w, w2][:dependent],
    )
    starts = {**dict.fromkeys(q, 0.1), **dict.fromkeys(u, 0.0), w1: 0.4}
    return declared("Axle", parts, "m=1 J=0.3 r=0.4 b=0.6 torque=0.8", starts, v_x=1, v_y=1, w=1, w2=1)


@stranger
def wheels_on_an_axle() -> Model:
    return axle(rows=3, dependent=3)


# ---------------------------------------------------------------------- springs that are written as something else


def _arm(loads: Callable[[SimpleNamespace], list[object]]) -> tuple[Parts, list[sm.Expr], list[sm.Expr]]:
    """Two links in a plane under a tilted weight, and loads made of N, A, B, O, P1, P2, q, u."""
    q, u = me.dynamicsymbols("q1:3"), me.dynamicsymbols("u1:3")
    m, g, tilt = sm.symbols("m g tilt")
    N, O = world()
    ground = N.orientnew("ground", "Axis", (tilt, N.z))
    A, B = me.ReferenceFrame("A"), me.ReferenceFrame("B")
    A.orient_axis(N, N.z, q[0])
    A.set_ang_vel(N, u[0] * N.z)
    B.orient_axis(A, A.z, q[1])
    B.set_ang_vel(A, u[1] * A.z)
    P1 = O.locatenew("P1", 0.5 * A.x)
    P2 = P1.locatenew("P2", 0.4 * B.x)
    P1.v2pt_theory(O, N, A)
    P2.v2pt_theory(P1, N, B)
    bodies = [body("one", P1, A), body("two", P2, B)]
    weights = [(point, -m * g * ground.y) for point in (P1, P2)]
    parts = Parts(
        frame=N,
        origin=O,
        q=q,
        u=u,
        kinematic_equations=[a.diff(T) - b for a, b in zip(q, u, strict=True)],
        bodies=bodies,
        loads=[*weights, *loads(SimpleNamespace(N=N, A=A, B=B, O=O, P1=P1, P2=P2, q=q, u=u))],
    )
    return parts, [*q], [*u]


def sprung_arm(loads: Callable[[SimpleNamespace], list[object]], values: str = "") -> Model:
    parts, q, u = _arm(loads)
    starts = {q[0]: 0.3, q[1]: -0.4, u[0]: 0.5, u[1]: -0.2}
    model = declared("Arm", parts, f"m=1 J=0.2 g=9.81 tilt=0.4 {values}", starts)
    model.output_total_energy()
    return model


SPRINGS: dict[str, Callable[[SimpleNamespace], list[object]]] = {
    "none": lambda _: [],
    "torques on both frames": lambda a: [(a.B, -7 * a.q[1] * a.N.z), (a.A, 7 * a.q[1] * a.N.z)],
    "torques summed up by frame": lambda a: [
        (a.A, (-5 * a.q[0] + 7 * (a.q[1] - 0.2)) * a.A.z),
        (a.B, -7 * (a.q[1] - 0.2) * a.B.z),
    ],
    "cubic, to the ground": lambda a: [(a.B, -4 * (a.q[0] + a.q[1]) ** 3 * a.N.z)],
    "sine of an angle": lambda a: [(a.A, -3 * sm.sin(2 * a.q[0]) * a.N.z)],
    "a force by its coordinate": lambda a: [
        (a.P2, -20 * a.P2.pos_from(a.O).dot(a.N.x) * a.N.x - 10 * a.P2.pos_from(a.O).dot(a.N.y) * a.N.y)
    ],
    "a stop on one side": lambda a: [(a.A, sm.Max(0, -a.q[0]) * 50 * a.N.z)],
    "one vector for weight and spring": lambda a: [(a.P1, -30 * a.P1.pos_from(a.O).dot(a.N.y) * a.N.y)],
}
