"""Forces that flexible bodies transmit at their interfaces, against balances of momentum over all nodes."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import sympy.physics.mechanics as me
from mechanisms import Evaluated, State, mechanism_of
from representatives import by_night
from scipy.optimize import root

from mb2fmu import BeamSection, FlexibleBody, Model
from mb2fmu.errors import FormulationError
from mb2fmu.mechanics.formulations import form_equations_except_dynamics
from mb2fmu.mechanics.mechanism.numeric.random_states import free_parameter_values
from mb2fmu.validation.reference_equations.newton_euler import NewtonEulerEquations

GRAVITY, BOB, PAYLOAD, FORCE, TORQUE, ARM = 9.81, 0.7, 0.4, 3.0, 0.5, 0.2
NAMES = ("root", "tip", "payload", "boom")


def boom_with_bob(modes: int = 2) -> tuple[Model, FlexibleBody]:
    """A boom on a pin; at its tip a particle and, on a pin, a bob; a force and a torque in its middle."""
    (theta, phi), (omega, w) = me.dynamicsymbols("theta phi"), me.dynamicsymbols("omega w")
    boom = FlexibleBody.beam(
        "boom", length=1.0, E=70e9, rho=2700.0, section=BeamSection.rectangle(0.01, 0.02),
        modes={"bending_y": modes}, rotary_inertia=False, stations=[0.5], damping=0.02,
    )  # fmt: skip
    ground = me.RigidBody("ground")
    system = me.System.from_newtonian(ground)
    N, middle = system.frame, boom.node_near((0.5, 0, 0))
    bob = me.Particle("bob", mass=BOB)
    payload = me.Particle("payload", boom.point(-1), PAYLOAD)
    carrier = me.RigidBody("carrier", mass=0)
    carrier.central_inertia = me.inertia(carrier.frame, 0, 0, 0)
    pin = me.PinJoint("pin", ground, boom.body, theta, omega, child_point=boom.point(), joint_axis=N.z)
    hinge = me.PinJoint("hinge", boom.interface(-1), carrier, phi, w, parent_point=boom.point(-1), joint_axis=N.z)
    bob.masscenter = carrier.masscenter.locatenew("bob_point", -ARM * carrier.y)
    system.add_joints(pin, hinge)
    system.add_bodies(bob, payload)
    boom.add_to_system(system)
    system.apply_uniform_gravity(-GRAVITY * N.y)
    section = boom.frame(middle)
    system.add_loads(me.Force(boom.point(middle), FORCE * section.y), me.Torque(section, TORQUE * N.z))
    model = Model("Boom", system)
    for symbol, start in ((theta, 0.1), (phi, 0.2)):
        model.coordinate(symbol, start, "rad")
    for symbol in (omega, w):
        model.speed(symbol, 0.0, "rad/s")
    model.add(boom)
    model.output_reaction("root", pin)
    model.output_reaction("tip", hinge)
    model.output_reaction("payload", payload, at=boom.point(-1))
    model.output_reaction("boom", boom, at=boom.point())
    return model, boom


class Balances:
    """Momenta by nodes: places and velocities in numbers, from the arrays alone. States: θ, φ, η, ω, w, η'."""

    def __init__(self, boom: FlexibleBody) -> None:
        self.data, self.middle = boom.data, boom.node_near((0.5, 0, 0))
        self.names = ("theta", "phi", "boom.eta[1]", "boom.eta[2]", "omega", "w", "boom.eta_dot[1]", "boom.eta_dot[2]")

    def motion(self, x: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Return (masses, places, velocities) of the boom's nodes, the payload and the bob."""
        theta, phi, eta, omega, w, rate = x[0], x[1], x[2:4], x[4], x[5], x[6:8]
        d, R, z = self.data, turn(x[0]), np.array([0.0, 0.0, 1.0])
        place = d.nodes + np.einsum("knj,k->nj", d.modes, eta) + np.einsum("klnj,k,l->nj", d.second_order, eta, eta) / 2
        speed = np.einsum("knj,k->nj", d.modes + np.einsum("klnj,l->knj", d.second_order, eta), rate)
        r = place @ R.T
        v = speed @ R.T + omega * np.cross(z, r)
        tilt = theta + np.sum(d.rotations[:, -1, 2] * eta)
        spin = omega + np.sum(d.rotations[:, -1, 2] * rate) + w
        arm = turn(tilt + phi) @ np.array([0.0, -ARM, 0.0])
        self.force = turn(theta + np.sum(d.rotations[:, self.middle, 2] * eta)) @ np.array([0.0, FORCE, 0.0])
        self.force_at = r[self.middle]
        return {
            "boom": (d.mass.diagonal(), r, v),
            "payload": (np.array([PAYLOAD]), r[-1:], v[-1:]),
            "bob": (np.array([BOB]), r[-1:] + arm, v[-1:] + spin * np.cross(z, arm)),
        }

    def needed_wrench(self, x: np.ndarray, x_dot: np.ndarray, bodies: tuple[str, ...], about: str) -> np.ndarray:
        """Return force and torque beside loads: the rate of the momenta less weights, force and torque."""
        point = np.zeros(3) if about == "root" else self.motion(x)["payload"][1][0]

        def momenta(s: float) -> np.ndarray:
            """Linear and angular momentum of the bodies about the point at rest, s along the motion."""
            moved = [self.motion(x + s * x_dot)[name] for name in bodies]
            linear = sum(m @ v for m, _, v in moved)
            return np.concatenate([linear, sum(np.einsum("n,nj->j", m, np.cross(r - point, v)) for m, r, v in moved)])

        h = 1e-5
        rate = (8 * (momenta(h) - momenta(-h)) - (momenta(2 * h) - momenta(-2 * h))) / (12 * h)
        for m, r, _ in (self.motion(x)[name] for name in bodies):
            weight = np.outer(m, [0.0, -GRAVITY, 0.0])
            rate -= np.concatenate([weight.sum(axis=0), np.cross(r - point, weight).sum(axis=0)])
        if "boom" in bodies:
            moment = np.cross(self.force_at - point, self.force)
            rate -= np.concatenate([self.force, moment + np.array([0.0, 0.0, TORQUE])])
        return rate


def turn(angle: float) -> np.ndarray:
    """Return the rotation about z."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


BODIES = {"root": ("boom", "payload", "bob"), "tip": ("bob",), "payload": ("payload",), "boom": ("boom",)}


def evaluate(evaluated: Evaluated, x: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return x', and force and torque by name."""
    state = State(0.0, x, np.zeros(0), np.array(free_parameter_values(evaluated.mechanism)))
    outputs = evaluated("outputs", state)
    names = evaluated.program.entries["outputs"].labels
    wrenches = {
        name: outputs[[i for i, each in enumerate(names) if each.startswith((f"{name}.force", f"{name}.torque"))]]
        for name in NAMES
    }
    return np.concatenate([x[4:], evaluated("accelerations", state)]), wrenches


@cache
def evaluated_boom(method: str) -> tuple[FlexibleBody, Evaluated]:
    """The boom, and its equations by a formulation."""
    model, boom = boom_with_bob()
    return boom, Evaluated(mechanism_of(model), method)


@pytest.mark.parametrize("method", [*by_night("kane"), "recursive-composite"])
def test_interface_forces_balance_weights_and_momenta(method):
    boom, evaluated = evaluated_boom(method)
    balances = Balances(boom)
    rng = np.random.default_rng(5)
    for _ in range(3):
        x = rng.normal(size=8) * np.array([1, 1, 0.05, 0.02, 2, 2, 0.3, 0.3])
        x_dot, wrenches = evaluate(evaluated, x)
        for name in NAMES:
            needed = balances.needed_wrench(x, x_dot, BODIES[name], "root" if name in ("root", "boom") else "tip")
            assert wrenches[name] == pytest.approx(needed, rel=1e-7, abs=1e-7 * np.max(np.abs(needed))), name


def test_at_rest_interfaces_carry_the_weight_of_the_rest():
    """Hanging straight down, without force and torque: what is below each interface, to round-off."""
    boom, evaluated = evaluated_boom("recursive-composite")

    def accelerations(y: np.ndarray) -> np.ndarray:
        """u' at rest."""
        return evaluate(evaluated, np.concatenate([y, np.zeros(4)]))[0][4:]

    rest = root(accelerations, [-1.0, -0.3, 0.001, 0.0], tol=1e-13)
    x = np.concatenate([rest.x, np.zeros(4)])
    assert np.max(np.abs(accelerations(rest.x))) < 1e-9
    wrenches = evaluate(evaluated, x)[1]
    below = {"root": boom.data.total_mass + PAYLOAD + BOB, "tip": BOB, "payload": PAYLOAD}
    force = Balances(boom)
    force.motion(x)
    for name, mass in below.items():
        beside = force.force[:2] if name == "root" else np.zeros(2)
        assert wrenches[name][:2] == pytest.approx([-beside[0], mass * GRAVITY - beside[1]], abs=1e-9)
    assert wrenches["root"][3:] == pytest.approx(np.zeros(3), abs=1e-9)  # pins carry no torque about their axis


def test_the_reference_computes_the_same_reactions():
    _, evaluated = evaluated_boom("recursive-composite")
    mechanism = evaluated.mechanism
    reference = NewtonEulerEquations(mechanism, form_equations_except_dynamics(mechanism))
    p = np.array(free_parameter_values(mechanism))
    x = np.array([0.5, -0.7, 0.03, 0.01, 1.5, -2.0, 0.2, 0.1])
    motion = reference.motion(0.0, x, [], reference.prepare(p))
    found = evaluated("outputs", State(0.0, x, np.zeros(0), p))
    assert motion.outputs == pytest.approx(found, rel=1e-9, abs=1e-9 * np.max(np.abs(found)))


def test_parts_of_a_flexible_body_have_no_reaction():
    model, boom = boom_with_bob(modes=1)
    model.output_reaction("part", boom.body, at=boom.point())
    with pytest.raises(FormulationError, match="the reaction of a part of boom is none"):
        Evaluated(mechanism_of(model), "recursive-composite")
