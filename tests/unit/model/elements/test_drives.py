"""Hydraulic cylinders and motors with gears against models written by hand, and springs within limits."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from scipy.integrate import solve_ivp

from mb2fmu import GearMotor, HydraulicCylinder, Model, Parts, SpringDamper, Valve, rhs
from mb2fmu.errors import ModelError
from mb2fmu.model import check_model

t = me.dynamicsymbols._t


def carriage(start: float = 0.9) -> tuple[Model, me.Point, me.Point]:
    """200 kg along N.x, pushed by 3 kN against it."""
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    x, v = me.dynamicsymbols("x v")
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    parts = Parts(frame=N, origin=O, q=[x], u=[v], kinematic_equations=[x.diff(t) - v],
                  bodies=[me.Particle("carriage", P, 200)], loads=[(P, -3e3 * N.x)])  # fmt: skip
    model = Model("Carriage", parts)
    model.coordinate(x, start, "m")
    model.speed(v, 0.0, "m/s")
    return model, O, P


def pushed(time: float, state: np.ndarray) -> list[float]:
    """The same with its cylinder and valve, written by hand: volumes, flows through each edge, momentum."""
    x, v, a, b = state
    opening = 0.6 * np.sin(3 * time)

    def through(high: float, low: float) -> float:
        return 8e-4 * (high - low) / ((high - low) ** 2 + 1e8) ** 0.25 / np.sqrt(3.5e6)

    into_a = opening * (through(1.5e7, a) if opening > 0 else through(a, 2e5))
    into_b = -opening * (through(b, 2e5) if opening > 0 else through(1.5e7, b))
    leak = 2e-12 * (a - b)
    out = x - 0.7
    a_rate = 1.2e9 * (into_a - 2e-3 * v - leak) / (5e-5 + 2e-3 * out)
    b_rate = 1.2e9 * (into_b + 1.2e-3 * v + leak) / (5e-5 + 1.2e-3 * (0.5 - out))
    return [v, (2e-3 * a - 1.2e-3 * b - 400 * v - 3e3) / 200, a_rate, b_rate]


def test_a_cylinder_with_its_valve_moves_as_written_by_hand():
    """Stiff: eigenvalues to -1e5/s and more; the whole motion to 1e-6 of each range."""
    model, O, P = carriage()
    valve = Valve(opening=0.6 * sm.sin(3 * t), flow=8e-4, pressure_drop=3.5e6, supply=1.5e7, tank=2e5)
    sizes = {"area": 2e-3, "rod_area": 1.2e-3, "stroke": 0.5, "retracted": 0.7, "dead_volume": 5e-5}
    oil = {"bulk_modulus": 1.2e9, "leakage": 2e-12, "friction": 400.0, "pressures": (3e6, 2.5e6)}
    model.add(HydraulicCylinder("boom", on=(O, P), valve=valve, **sizes, **oil))
    f = rhs(model, method="tmt")
    assert f.states[2:] == ("boom.pressure_a", "boom.pressure_b")
    assert f.x0 == pytest.approx([0.9, 0.0, 3e6, 2.5e6])
    settings = {"method": "LSODA", "rtol": 1e-8, "atol": 1e-9, "t_eval": np.linspace(0, 2.0, 41), "max_step": 0.05}
    ours, theirs = (solve_ivp(rate, (0, 2.0), f.x0, **settings) for rate in (f, pushed))
    span = np.ptp(theirs.y, axis=1)
    assert span[0] > 0.05  # it moves
    assert (np.abs(ours.y - theirs.y).max(axis=1) < 1e-6 * span).all()


def test_a_closed_cylinder_is_a_spring_of_oil():
    """Both ports closed: ω² = β (A_A²/V_A + A_B²/V_B) / m for small motions, of the linear equations."""
    model, O, P = carriage()
    model.add(
        HydraulicCylinder("ram", on=(O, P), area=2e-3, rod_area=1e-3, stroke=0.5, retracted=0.7, dead_volume=1e-4)
    )
    (leakage,) = (p for p in check_model(model).parameters if p.name == "ram.leakage")
    assert leakage.value == 0.0
    assert leakage.nominal == 1e-12, "an auditor would try a value of its unit, 1 m3/s at 1 Pa"
    f = rhs(model, method="tmt")
    step = np.diag([1e-7, 1e-7, 1.0, 1.0])
    A = np.column_stack([(f(0.0, f.x0 + d) - f(0.0, f.x0 - d)) / (2 * d.max()) for d in step])
    square = 1.4e9 * (2e-3**2 / (1e-4 + 2e-3 * 0.2) + 1e-3**2 / (1e-4 + 1e-3 * 0.3)) / 200
    assert np.abs(np.linalg.eigvals(A).imag).max() == pytest.approx(np.sqrt(square), rel=1e-6)


def arm(motor: str) -> tuple[Model, sm.Expr]:
    """A pin on a turntable: the arm swings about the table's x. ``motor``: as an element, or as a second body."""
    turning, swing, rotor = me.dynamicsymbols("turning swing rotor")
    w, u, s = me.dynamicsymbols("w u s")
    torque = me.dynamicsymbols("torque")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    T, A = me.ReferenceFrame("T"), me.ReferenceFrame("A")
    T.orient_axis(N, N.z, turning)
    T.set_ang_vel(N, w * N.z)
    A.orient_axis(T, T.x, swing)
    A.set_ang_vel(T, u * T.x)
    G = O.locatenew("G", -0.3 * A.z)
    G.v2pt_theory(O, N, A)
    table = me.RigidBody("table", O, T, 1.0, (me.inertia(T, 0.1, 0.1, 0.4), O))
    link = me.RigidBody("link", G, A, 2.0, (me.inertia(A, 0.05, 0.05, 0.01), G))
    q, speeds = [turning, swing], [w, u]
    bodies, loads, rows = [table, link], [(G, -2 * 9.81 * N.z)], []
    if motor == "body":
        R = me.ReferenceFrame("R")
        R.orient_axis(T, T.x, rotor)
        R.set_ang_vel(T, s * T.x)
        bodies.append(me.RigidBody("rotor", O, R, 0, (me.inertia(R, 3e-4, 0, 0), O)))
        drive = torque - 2e-3 * s
        loads += [(R, drive * T.x), (T, -drive * T.x)]
        q, speeds, rows = [*q, rotor], [*speeds, s], [rotor - 40 * swing]
    equations = [a.diff(t) - b for a, b in zip(q, speeds, strict=True)]
    parts = Parts(frame=N, origin=O, q=q, u=speeds, kinematic_equations=equations, bodies=bodies, loads=loads,
                  holonomic_constraints=rows)  # fmt: skip
    model = Model("Arm", parts)
    for symbol in q:
        model.coordinate(symbol, 0.0, "rad", kind="guess" if symbol == rotor else "fixed")
    for symbol in speeds:
        model.speed(symbol, 0.0, "rad/s", kind="guess" if symbol == s else "fixed")
    model.input(torque, 0.0, "N.m")
    if motor == "element":
        model.add(GearMotor("motor", on=(T, A, T.x), ratio=40.0, inertia=3e-4, torque=torque, friction=2e-3))
    return model, torque


def test_a_rotor_behind_a_gear_is_a_second_body():
    """Gyroscopic terms of the rotor on the turntable included; the other by a constraint between both angles."""
    ours = rhs(arm("element")[0], method="tmt")
    theirs = rhs(arm("body")[0], method="tmt", constraints="attractor")
    for turning, swing, w, u, torque in ((0.3, 0.5, 1.0, -2.0, 0.05), (0.0, -1.2, -3.0, 0.4, -0.2)):
        rates = ours(0.0, np.array([turning, swing, w, u]), r=[torque])
        other = theirs(0.0, np.array([turning, swing, 40 * swing, w, u, 40 * u]), r=[torque])
        assert rates[2:] == pytest.approx(other[[3, 4]], rel=1e-11)
    one = ours(0.0, np.zeros(4), r=[0.05])[3]
    assert one == pytest.approx(40 * 0.05 / (0.05 + 2 * 0.3**2 + 40**2 * 3e-4), rel=1e-13)  # I + n² J


@pytest.mark.parametrize("inductance", [None, 1e-3])
def test_a_voltage_drives_a_motor(inductance):
    """A fly-wheel on a pin: current by hand; the speed it ends with is v / (k n)."""
    ground, wheel = me.RigidBody("ground"), me.RigidBody("wheel", mass=1)
    wheel.central_inertia = me.inertia(wheel.frame, 1, 1, 0.2)
    joint = me.PinJoint("pin", ground, wheel, joint_axis=ground.z)
    system = me.System.from_newtonian(ground)
    system.add_joints(joint)
    model = Model("Wheel", system)
    model.coordinate(joint.coordinates[0], 0.0, "rad")
    model.speed(joint.speeds[0], 0.0, "rad/s")
    electric = {"voltage": 12.0, "resistance": 0.8, "constant": 0.05, "inductance": inductance}
    model.add(GearMotor("motor", on=joint, ratio=10.0, inertia=1e-4, **electric))
    f = rhs(model, method="tmt")
    current = (12.0 - 0.05 * 10 * 3.0) / 0.8 if inductance is None else 7.0
    x = np.array([0.2, 3.0, *([] if inductance is None else [7.0])])
    rates = f(0.0, x)
    assert rates[1] == pytest.approx(10 * 0.05 * current / (0.2 + 100 * 1e-4), rel=1e-13)
    if inductance is not None:
        assert rates[2] == pytest.approx((12.0 - 0.8 * 7.0 - 0.05 * 30.0) / 1e-3, rel=1e-13)
    ended = np.array([0.0, 24.0, *([] if inductance is None else [0.0])])
    assert f(0.0, ended)[1:] == pytest.approx(np.zeros(len(ended) - 1), abs=1e-9)


def test_a_spring_stays_within_its_limits():
    model, O, P = carriage()
    model.add(SpringDamper("spring", (O, P), stiffness=1e3, rest=0.5, limits=(-100.0, 250.0)))
    f = rhs(model, method="tmt")
    for x, pull in ((0.3, -100.0), (0.45, -50.0), (0.6, 100.0), (0.9, 250.0)):
        assert f(0.0, np.array([x, 0.0]))[1] == pytest.approx((-3e3 - pull) / 200, rel=1e-13)
    assert {"spring.lowest", "spring.highest"} <= {p.name for p in check_model(model).parameters}


def test_everything_wrong_is_reported_at_once():
    model, O, P = carriage()
    N, B = me.ReferenceFrame("N"), me.ReferenceFrame("B")
    valve = Valve(opening=0.5, flow=0.0, pressure_drop=-1.0, supply=-2.0)
    model.add(HydraulicCylinder("a", on=(O, O), area=0.0, stroke=-1.0, retracted=0.0, leakage=-1.0, valve=valve))
    model.add(HydraulicCylinder("b", on=(O, P), area=1.0, stroke=1.0, retracted=0.0, pressures=(1.0,)))
    model.add(GearMotor("c", on=(O, P, N.x), ratio=0.0, inertia=1.0, torque=1.0))
    model.add(GearMotor("d", on=(N, B, N.x), ratio=0.0, inertia=-1.0, torque=1.0, voltage=2.0))
    model.add(GearMotor("e", on=(N, B, N.x), ratio=1.0, inertia=1.0, torque=1.0, resistance=0.0))
    model.add(GearMotor("f", on=(N, B, N.x), ratio=1.0, inertia=1.0, voltage=1.0))
    model.add(SpringDamper("g", (O, P), stiffness=1.0, limits=(2.0, 1.0)))
    model.add(SpringDamper("h", (O, P), stiffness=1.0, limits=3.0))
    with pytest.raises(ModelError) as caught:
        check_model(model)
    message = str(caught.value)
    for part in (
        "a: both ends are O", "a: area is 0", "a: stroke is -1", "a: leakage is -1", "a: valve.flow is 0",
        "a: valve.pressure_drop is -1", "a: valve.supply is -2", "a: valve.opening is 0.5", "b: pressures are (1.0,)",
        "c: it acts on points", "d: ratio is 0", "d: inertia is -1", "d: it has both torque and voltage",
        "d: the speed is not known", "e: resistance is 0", "e: it has resistance and no voltage",
        "f: it has a voltage without resistance or constant", "g: limits are 2 and 1", "h: limits are 3.0",
        "test_drives.py:",
    ):  # fmt: skip
        assert part in message, message


def test_a_lagrangian_takes_no_rotor():
    q = me.dynamicsymbols("q")
    N, A, O = me.ReferenceFrame("N"), me.ReferenceFrame("A"), me.Point("O")
    O.set_vel(N, 0)
    A.orient_axis(N, N.z, q)
    body = me.RigidBody("body", O, A, 1, (me.inertia(A, 0, 0, 1), O))
    model = Model("Turning", me.LagrangesMethod(me.Lagrangian(N, body), [q], bodies=[body], frame=N))
    model.coordinate(q, 0.0, "rad")
    model.speed(q.diff(), 0.0, "rad/s")
    model.add(GearMotor("motor", on=(N, A, N.z), ratio=2.0, inertia=1.0, torque=1.0))
    with pytest.raises(ModelError, match="a LagrangesMethod takes no rotor"):
        check_model(model)
