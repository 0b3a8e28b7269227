"""Reading: nothing of the user's is changed, contradictions are found, legal idioms are not mistaken for them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sympy as sm
from mechanisms import cart_with_pathways, mechanism_of, model_of, moving_pivot, sympy_rolling_disc
from own_equations import compared
from representatives import by_night
from rescaling import rescale
from sympy.physics import mechanics as me

from mb2fmu import pipeline
from mb2fmu.errors import FormulationError, MechanismError, ModelError
from mb2fmu.mechanics.formulations import formulate
from mb2fmu.model.model import Parts

MODELS = Path(__file__).parents[5] / "models"


def _rod(*, omega_factor: float = 1, velocity_factor: float = 1, mass: float = 1.0, equations: int = 1):
    m, l = sm.symbols("m l")
    q, u = me.dynamicsymbols("q u")
    N, A = me.ReferenceFrame("N"), me.ReferenceFrame("A")
    A.orient_axis(N, N.z, q)
    A.set_ang_vel(N, omega_factor * u * N.z)
    O = me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", l * A.x)
    P.set_vel(N, velocity_factor * l * u * A.y)
    parts = Parts(
        frame=N,
        origin=O,
        q=[q],
        u=[u],
        kinematic_equations=[q.diff() - u] * equations,
        bodies=[me.Particle("bob", P, m)],
    )
    return model_of("Rod", parts, [q], [u], m=mass, l=0.5)


def test_sympy_objects_stay_as_they_are():
    model = cart_with_pathways()
    system = model.mechanics
    before = {
        body: (dict(body.masscenter._vel_dict), dict(body.frame._ang_vel_dict), dict(body.frame._dcm_dict))
        for body in system.bodies
    }
    mechanism_of(model)
    after = {
        body: (dict(body.masscenter._vel_dict), dict(body.frame._ang_vel_dict), dict(body.frame._dcm_dict))
        for body in system.bodies
    }
    assert before == after


def test_consistent_kinematics_pass():
    mechanism = mechanism_of(_rod())
    assert mechanism.points[mechanism.bodies[0].masscenter].located


def test_a_negative_mass_is_named():
    with pytest.raises(MechanismError, match="the mass of body bob is negative: m = -1") as error:
        mechanism_of(_rod(mass=-1.0))
    assert "u moves no mass and no inertia" in str(error.value)
    with pytest.raises(MechanismError, match="u moves no mass and no inertia") as error:
        mechanism_of(_rod(mass=0.0))
    assert "negative:" not in str(error.value)


@pytest.mark.parametrize("factor", [3, -1, 1.0001])
def test_angular_velocity_that_contradicts_the_orientation_is_refused(factor):
    with pytest.raises(MechanismError, match="angular velocity of frame A") as error:
        mechanism_of(_rod(omega_factor=factor))
    assert "set_ang_vel" in str(error.value)


@pytest.mark.parametrize("factor", [2, -1, 1.0001])
def test_velocity_that_contradicts_the_position_moves_as_the_equations_say(factor):
    """The equations contain the velocity alone; the point's position, which is then not known, is refused."""
    model = _rod(velocity_factor=factor)
    mechanism = mechanism_of(model)
    assert all(name in mechanism.contradicted_positions[0] for name in ("point P", "point O"))
    assert compared(model, count=3).error < 1e-12
    assert not mechanism.points[1].located
    model.output_position("place", model.mechanics.bodies[0].masscenter)
    with pytest.raises(FormulationError, match="is unknown: the velocity of point P"):
        formulate(mechanism_of(model), "kane")


@pytest.mark.parametrize("factor", [1, 2])
def test_what_hangs_on_a_contradicted_point_moves_with_its_velocity(factor):
    """A second pendulum, located from the first bob: SymPy adds to the velocity that was given to that."""
    m, l = sm.symbols("m l")
    q, p, u, v = me.dynamicsymbols("q p u v")
    N, A, B, O = me.ReferenceFrame("N"), me.ReferenceFrame("A"), me.ReferenceFrame("B"), me.Point("O")
    A.orient_axis(N, N.z, q)
    B.orient_axis(N, N.z, p)
    A.set_ang_vel(N, u * N.z)
    B.set_ang_vel(N, v * N.z)
    O.set_vel(N, 0)
    P = O.locatenew("P", l * A.x)
    P.set_vel(N, factor * l * u * A.y)
    H = P.locatenew("H", l / 3 * B.x)
    Q = H.locatenew("Q", l * B.x)
    R = H.locatenew("R", l * B.y)
    R.v2pt_theory(P, N, B)
    kane = me.KanesMethod(
        N,
        [q, p],
        [u, v],
        [q.diff() - u, p.diff() - v],
        bodies=[me.Particle("far", Q, m), me.Particle("side", R, 2 * m)],
        forcelist=[(Q, -m * l * N.y)],
    )
    model = model_of("Chain", kane, [q, p], [u, v], m=1.0, l=0.5)
    assert compared(model, count=3).error < 1e-12
    assert bool(mechanism_of(model).contradicted_positions) == (factor != 1)


def test_contradicted_position_of_a_spring_is_refused():
    """The spring's length contains the position, its rate the velocity."""
    model = _rod(velocity_factor=2)
    parts = model.mechanics
    wall = parts.origin.locatenew("wall", parts.frame.x)
    pathway = me.LinearPathway(parts.bodies[0].masscenter, wall)
    model = model_of(
        "Rod",
        replace(parts, actuators=[me.LinearSpring(sm.Symbol("k"), pathway)]),
        parts.q,
        parts.u,
        m=1.0,
        l=0.5,
        k=3.0,
    )
    with pytest.raises(MechanismError, match="velocity of point P"):
        mechanism_of(model)


@pytest.mark.parametrize("mass", [0.0, -1.0])
def test_mass_matrix_that_is_not_positive_definite_is_refused(mass):
    with pytest.raises(MechanismError, match="mass matrix") as error:
        mechanism_of(_rod(mass=mass))
    assert "u " in error.value.faults[-1].what


def test_contact_point_without_a_place_is_a_legal_idiom():
    mechanism = mechanism_of(sympy_rolling_disc())
    assert mechanism.points_using_constraints == ("centre",)
    assert not mechanism.points[mechanism.bodies[0].masscenter].located


def _loaded_coin(contact_from: str, place: str, velocity: str):
    """A rolling coin with contact C of velocity zero, and a further point that is loaded and carries a mass.

    Args:
        contact_from: "C": the centre G is located from C; "G": C from G; "O": as "C", and C from a resting O.
        place: "contact": the point lies in C, located from G; "beside": located by a point without a velocity.
        velocity: How it is set: "zero", "centre" (v2pt_theory), "none".
    """
    q1, q2, q3, u1, u2, u3 = me.dynamicsymbols("q1 q2 q3 u1 u2 u3")
    r, m, l, k = sm.symbols("r m l k")
    N, C, G, O = me.ReferenceFrame("N"), me.Point("C"), me.Point("G"), me.Point("O")
    Y = N.orientnew("Y", "Axis", [q1, N.z])
    L = Y.orientnew("L", "Axis", [q2, Y.x])
    R = L.orientnew("R", "Axis", [q3, L.y])
    equations = [R.ang_vel_in(N).dot(axis) - u for axis, u in ((L.x, u1), (L.y, u2), (L.z, u3))]
    R.set_ang_vel(N, u1 * L.x + u2 * L.y + u3 * L.z)
    C.set_vel(N, 0)
    if contact_from == "O":
        O.set_vel(N, 0)
        C.set_pos(O, k * N.x)
    (C.set_pos(G, -r * L.z) if contact_from == "G" else G.set_pos(C, r * L.z))
    G.v2pt_theory(C, N, R)
    P = me.Point("P")
    if place == "contact":
        P.set_pos(G, -r * L.z)
    else:
        P.set_pos(G.locatenew("H", l * L.y), l * L.x)
    if velocity == "zero":
        P.set_vel(N, 0)
    elif velocity == "centre":
        P.v2pt_theory(G, N, R if place == "contact" else L)
    coin = me.RigidBody("coin", G, R, m, (me.inertia(L, m * r**2 / 4, m * r**2 / 2, m * r**2 / 4), G))
    kane = me.KanesMethod(
        N,
        [q1, q2, q3],
        [u1, u2, u3],
        equations,
        bodies=[coin, me.Particle("weight", P, m)],
        forcelist=[(G, -m * k * N.z), (P, k * N.x)],
    )
    return model_of("Coin", kane, [q1, q2, q3], [u1, u2, u3], r=0.4, m=2.0, l=0.7, k=3.0)


@pytest.mark.parametrize(
    ("contact_from", "place", "velocity"),
    [  # each place and velocity by day, and each way to the contact
        pytest.param(way, *each, marks=() if (i - k) % 3 == 0 else pytest.mark.repeats)
        for i, way in enumerate(("C", "G", "O"))
        for k, each in enumerate(
            [("contact", "zero"), ("contact", "centre"), ("contact", "none"), ("beside", "centre"), ("beside", "none")]
        )
    ],
)
def test_points_of_a_rolling_coin_move_as_sympy_moves_them(contact_from, place, velocity):
    """Seen: a second point in the contact took the centre's velocity, and loads at it turned the coin."""
    assert compared(_loaded_coin(contact_from, place, velocity), count=2).error < 1e-10


def test_prescribed_motion_in_time_is_seen():
    assert mechanism_of(moving_pivot()).is_rheonomic
    assert not mechanism_of(_rod()).is_rheonomic


def _sleigh(start: float, kind: str):
    m = sm.Symbol("m")
    x, y, a, vx, vy, w = me.dynamicsymbols("x y a vx vy w")
    N, A = me.ReferenceFrame("N"), me.ReferenceFrame("A")
    A.orient_axis(N, N.z, a)
    O = me.Point("O")
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, vx * N.x + vy * N.y)
    body = me.RigidBody("sleigh", P, A, m, (me.inertia(A, m, m, m), P))
    parts = Parts(
        frame=N,
        origin=O,
        q=[x, y, a],
        u=[vx, w, vy],
        kinematic_equations=[x.diff() - vx, y.diff() - vy, a.diff() - w],
        bodies=[body],
        velocity_constraints=[-sm.sin(a) * vx + sm.cos(a) * vy],
        u_dependent=[vy],
    )
    model = model_of("Sleigh", parts, [x, y, a], [vx, w], m=1.0)
    model.declared[-2:] = []
    model.speed(vx, 1.0)
    model.speed(w, 0.3)
    model.speed(vy, start, kind=kind)
    return model


def test_fixed_start_that_contradicts_a_constraint_is_refused():
    with pytest.raises(MechanismError, match=r"fixed start value 0\.5 of vy") as error:
        mechanism_of(_sleigh(0.5, "fixed"))
    assert "guess" in error.value.faults[0].remedy


def test_fixed_start_that_obeys_a_constraint_and_any_guess_pass():
    exact = float(sm.tan(0.2))  # the third coordinate starts at 0.2
    assert mechanism_of(_sleigh(exact, "fixed")).u_independent == (0, 1)
    assert mechanism_of(_sleigh(0.5, "guess")).u_independent == (0, 1)


@pytest.mark.parametrize("angle", [0.0, np.pi / 2])
def test_other_speeds_depend_where_the_named_one_is_not_determined(angle):
    """A blade along y leaves vy free, and determines vx: the choice is another, the motion is the same."""
    model = _sleigh(0.0, "guess")
    model.declared[:] = [item for item in model.declared if getattr(item, "symbol", None) not in model.mechanics.q]
    for q, start in zip(model.mechanics.q, (0.0, 0.0, angle), strict=True):
        model.coordinate(q, start)
    if angle:
        model.declared[:] = [item for item in model.declared if str(item.symbol) != "vx(t)"]
        model.speed(model.mechanics.u[0], 0.0)
    mechanism = mechanism_of(model)
    assert mechanism.u_independent == ((0, 1) if angle == 0.0 else (1, 2))
    assert bool(mechanism.import_notes) == bool(angle)
    assert compared(model, count=4).error < 1e-9


def test_velocity_constraint_that_is_not_linear_is_refused():
    model = _sleigh(0.0, "guess")
    parts = model.mechanics
    quadratic = [constraint + parts.u[0] ** 2 for constraint in parts.velocity_constraints]
    model.mechanics = Parts(**{**{k: getattr(parts, k) for k in parts.__slots__}, "velocity_constraints": quadratic})
    with pytest.raises(MechanismError, match="not linear"):
        mechanism_of(model)


def test_constraint_force_that_moves_the_mechanism_is_refused():
    q, u, push = me.dynamicsymbols("q u push")
    N = me.ReferenceFrame("N")
    O = me.Point("O")
    P = O.locatenew("P", q * N.x)
    slider = me.Particle("slider", P, sm.Symbol("m"))
    side = me.dynamicsymbols("side")
    P.set_vel(N, u * N.x + side * N.y)
    parts = Parts(
        frame=N,
        origin=O,
        q=[q],
        u=[u],
        kinematic_equations=[q.diff() - u],
        bodies=[slider],
        loads=[(P, push * N.x)],
        u_auxiliary=[side],
    )
    model = model_of("Slider", parts, [q], [u], m=1.0)
    model.constraint_force(push)
    with pytest.raises(MechanismError, match="push is declared a constraint force"):
        mechanism_of(model)


@pytest.mark.parametrize("further", [lambda fx, _: fx**2, lambda fx, fy: fx * fy], ids=["square", "product"])
def test_loads_that_are_not_linear_in_constraint_forces_are_refused(further):
    q, u, ax, ay, fx, fy = me.dynamicsymbols("q u ax ay fx fy")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, ax * N.x + ay * N.y)
    A = N.orientnew("A", "Axis", (q, N.z))
    A.set_ang_vel(N, u * N.z)
    P = O.locatenew("P", A.x)
    P.v2pt_theory(O, N, A)
    kane = me.KanesMethod(N, [q], [u], [q.diff() - u], u_auxiliary=[ax, ay])
    loads = [(O, fx * N.x + fy * N.y), (O, further(fx, fy) * N.x)]
    kane.kanes_equations([me.Particle("p", P, sm.Symbol("m"))], loads)
    model = model_of("Square", kane, [q], [u], m=1.0)
    model.constraint_force(fx)
    model.constraint_force(fy)
    with pytest.raises(MechanismError, match="not linear in the constraint forces fx, fy"):
        mechanism_of(model)


def test_a_constraint_force_whose_auxiliary_speed_moves_no_point_is_asked_of_its_constraint():
    """A way that scripts have: the row plus an auxiliary speed, and the unknown force where the row holds a point."""
    x, y, u, v, ua, push = me.dynamicsymbols("x y u v ua push")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, u * N.x + v * N.y)
    rates = [x.diff() - u, y.diff() - v]
    more = {"u_dependent": [u], "u_auxiliary": [ua], "velocity_constraints": [u + ua]}
    kane = me.KanesMethod(N, [x, y], [v], rates, **more)
    kane.kanes_equations([me.Particle("p", P, sm.Symbol("m"))], [(P, push * N.x)])
    model = model_of("Row", kane, [x, y], [v, u], m=1.0)
    model.constraint_force(push, "N")
    with pytest.raises(MechanismError) as caught:
        mechanism_of(model)
    (fault,) = caught.value.faults
    assert "push is declared a constraint force, but it does work at the speeds" in fault.what
    assert "model.constraint(row, multiplier=push, acts=[…])" in fault.remedy


@pytest.mark.parametrize("joined", [False, True])
def test_a_pivot_with_auxiliary_speeds_is_the_origin(joined):
    """SymPy's own way to bring a pin's force to light; a point at rest beside it is not needed."""
    m, l, g = sm.symbols("m l g")
    q, u, aux, R = me.dynamicsymbols("q u u_a R")
    N, A, O = me.ReferenceFrame("N"), me.ReferenceFrame("A"), me.Point("O")
    A.orient_axis(N, N.z, q)
    A.set_ang_vel(N, u * N.z)
    if joined:
        F = me.Point("F")
        F.set_vel(N, 0)
        O.set_pos(F, 0)
    O.set_vel(N, aux * N.y)
    P = O.locatenew("P", l * A.x)
    P.v2pt_theory(O, N, A)
    kane = me.KanesMethod(N, [q], [u], [q.diff() - u], u_auxiliary=[aux])
    kane.kanes_equations([me.Particle("bob", P, m)], [(O, R * N.y), (P, -m * g * N.y)])
    model = model_of("Rod", kane, [q], [u], m=2.0, l=0.5, g=9.81)
    model.constraint_force(R, "N")
    model.output("pin", R, "N")
    model.output_position("bob", P)
    model.output_potential_energy()
    found = pipeline.rhs(model)
    state = np.array([0.3, 0.7])
    outputs = dict(zip(found.output_names, found.outputs(0.0, state), strict=True))
    assert found(0.0, state)[1] == pytest.approx(-9.81 * np.cos(0.3) / 0.5, rel=1e-12)
    upwards = -0.5 * 0.7**2 * np.sin(0.3) - 9.81 * np.cos(0.3) ** 2
    assert outputs["pin"] == pytest.approx(2.0 * (9.81 + upwards), rel=1e-12)
    assert outputs["bob.x"] == pytest.approx(0.5 * np.cos(0.3), rel=1e-12)
    assert outputs["bob.y"] == pytest.approx(0.5 * np.sin(0.3), rel=1e-12)
    assert outputs["potential_energy"] == pytest.approx(2.0 * 9.81 * 0.5 * np.sin(0.3), rel=1e-12)


def test_a_drag_does_not_feel_auxiliary_speeds():
    """The pivot has one, and so has the bob's velocity, which its drag contains: zero in the motion."""
    m, l, c = sm.symbols("m l c")
    q, u, aux, R = me.dynamicsymbols("q u u_a R")
    N, A, O = me.ReferenceFrame("N"), me.ReferenceFrame("A"), me.Point("O")
    A.orient_axis(N, N.z, q)
    A.set_ang_vel(N, u * N.z)
    O.set_vel(N, aux * N.y)
    P = O.locatenew("P", l * A.x)
    P.v2pt_theory(O, N, A)
    kane = me.KanesMethod(N, [q], [u], [q.diff() - u], u_auxiliary=[aux])
    kane.kanes_equations([me.Particle("bob", P, m)], [(O, R * N.y), (P, -c * P.vel(N))])
    model = model_of("Rod", kane, [q], [u], m=2.0, l=0.5, c=0.3)
    model.constraint_force(R, "N")
    model.output("pin", R, "N")
    found = pipeline.rhs(model)
    state = np.array([0.3, 0.7])
    acceleration = found(0.0, state)[1]
    assert acceleration == pytest.approx(-0.3 / 2.0 * 0.7, rel=1e-12)
    upwards = 0.5 * (acceleration * np.cos(0.3) - 0.7**2 * np.sin(0.3))
    (pin,) = found.outputs(0.0, state)
    assert pin == pytest.approx(2.0 * upwards + 0.3 * 0.5 * 0.7 * np.cos(0.3), rel=1e-12)


@pytest.mark.parametrize("auxiliary", [False, True])
@pytest.mark.parametrize("place", ["contact", "centre"])
def test_where_a_wheel_touches_the_ground_is_no_origin(auxiliary, place):
    """The contact has velocity zero, or auxiliary speeds, and moves. Seen: its position was put out as zero."""
    q, u, aux, R = me.dynamicsymbols("q u u_a R")
    r, m = sm.symbols("r m")
    N, W, C = me.ReferenceFrame("N"), me.ReferenceFrame("W"), me.Point("C")
    W.orient_axis(N, N.z, q)
    W.set_ang_vel(N, u * N.z)
    C.set_vel(N, aux * N.x if auxiliary else 0)
    centre = C.locatenew("G", r * N.y)
    centre.v2pt_theory(C, N, W)
    wheel = me.RigidBody("wheel", centre, W, m, (me.inertia(W, 0, 0, m * r**2), centre))
    kane = me.KanesMethod(N, [q], [u], [q.diff() - u], u_auxiliary=[aux] if auxiliary else [])
    kane.kanes_equations([wheel], [(C, R * N.x)] if auxiliary else [])
    model = model_of("Wheel", kane, [q], [u], r=0.5, m=1.0)
    if auxiliary:
        model.constraint_force(R, "N")
    model.output_position("place", C if place == "contact" else centre)
    with pytest.raises(FormulationError, match="is unknown"):
        formulate(mechanism_of(model), "kane")


@pytest.mark.parametrize("scale", [{"length": 1e6}, {"time": 1e-6}, *by_night({"length": 1e-6}, {"mass": 1e6})])
def test_unknown_forces_are_judged_alike_at_every_scale(scale):
    """Seen: with lengths of 1e6 m a tension "moved the mechanism", by round-off of much larger weights."""
    model = pipeline.load(MODELS / "double_simple_pendulum.py")
    assert mechanism_of(rescale(model, **scale)).constraint_forces


@pytest.mark.parametrize("plain", [False, True])
def test_a_frame_that_only_directs_a_force_may_be_turned_by_an_input_without_rates(plain: bool) -> None:
    """A rocket's nozzle: x' is that of the force along the rocket's axes; a body on the frame needs rates."""
    y, q, v, w, thrust = me.dynamicsymbols("y q v w F")
    angle = sm.Symbol("delta") if plain else me.dynamicsymbols("delta")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    B = N.orientnew("B", "Axis", (q, N.z))
    B.set_ang_vel(N, w * N.z)
    gimbal = B.orientnew("gimbal", "Axis", (angle, B.x))
    nozzle = gimbal.orientnew("nozzle", "Axis", (2 * angle, gimbal.z))
    G = O.locatenew("G", y * N.y)
    G.set_vel(N, v * N.y)
    T = G.locatenew("T", -B.y / 2)
    T.v2pt_theory(G, N, B)
    body = me.RigidBody("rocket", G, B, 3, (me.inertia(B, 0, 0, 2), G))
    rates = []
    for force, bodies in (
        (thrust * (nozzle.y + B.x), [body]),
        (thrust * (nozzle.y.express(B) + B.x), [body]),
        (thrust * nozzle.y, [body, me.RigidBody("bell", T, nozzle, 1, (me.inertia(nozzle, 1, 1, 1), T))]),
    ):
        kane = me.KanesMethod(N, [y, q], [v, w], [y.diff() - v, q.diff() - w], bodies=bodies, forcelist=[(T, force)])
        model = model_of("Rocket", kane, [y, q], [v, w])
        model.input(angle, 0.0, "rad")
        model.input(thrust, 0.0, "N")
        if len(bodies) == 2:
            with pytest.raises(ModelError, match="plain symbol" if plain else "prescribed by the input delta"):
                mechanism_of(model)
        else:
            f = pipeline.right_hand_side(pipeline.derive(model))
            rates.append(f(0.0, np.array([0.1, 0.4, 0.2, -0.3]), np.array([0.3, 5.0])))
    assert rates[0] == pytest.approx(rates[1], rel=1e-13)
    assert abs(rates[0][3]) > 0.1
