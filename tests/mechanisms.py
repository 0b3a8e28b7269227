"""Mechanisms for tests, built as a user does, and ways to evaluate their equations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import sympy as sm
from sympy.physics import mechanics as me

from mb2fmu.compiler.evaluation import EntryPointEvaluator, make_evaluator
from mb2fmu.compiler.lowering import lower_equations_to_program
from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion
from mb2fmu.mechanics.formulations import formulate
from mb2fmu.mechanics.mechanism import Mechanism, read_mechanism
from mb2fmu.mechanics.mechanism.numeric.numeric_mechanism_evaluation import MechanismEvaluator
from mb2fmu.mechanics.mechanism.sympy_import.kinematic_consistency_checks import free_parameter_values
from mb2fmu.model import check_model
from mb2fmu.model.model import Model
from mb2fmu.model.sources.mechanics_source import Mechanics
from mb2fmu.pipeline.derivation.model_derivation import load_model_and_mechanism
from mb2fmu.pipeline.derivation.stage_stopwatch import StageStopwatch

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class State:
    """A random state: ``x`` = (q, independent u, z)."""

    t: float
    x: Array
    r: Array
    p: Array


def model_of(name: str, mechanics: Mechanics, q: Sequence[sm.Expr], u: Sequence[sm.Expr], **values: float) -> Model:
    """A model whose coordinates and speeds start near zero; ``values`` are parameters by symbol name."""
    model = Model(name, mechanics)
    for symbol, value in values.items():
        model.parameter(sm.Symbol(symbol), value)
    for i, qi in enumerate(q):
        model.coordinate(qi, 0.1 + 0.05 * i)
    for ui in u:
        model.speed(ui, 0.0, kind="guess")
    return model


def mechanism_of(model: Model) -> Mechanism:
    """Checked and read."""
    return read_mechanism(check_model(model))


def closed_mechanism_of(model: Model | Path | str, arguments: Mapping[str, Any] | None = None) -> Mechanism:
    """Checked and read, its loops closed at the start: what references are formed from, without a program."""
    return load_model_and_mechanism(model, arguments, StageStopwatch(None))[1]


def random_states(mechanism: Mechanism, count: int, seed: int = 0, spread: float = 1.0) -> list[State]:
    """States near the start, parameters up to 20 % away from their values; nearer with a smaller ``spread``."""
    generator = np.random.default_rng(seed)
    d = mechanism.declared
    q = np.array([c.start for c in d.coordinates])
    z = np.array([s.start for s in d.auxiliary_states])
    r = np.array([i.start for i in d.inputs])
    p = np.array(free_parameter_values(mechanism))
    independent = range(len(mechanism.u)) if mechanism.holonomic else mechanism.u_independent  # all speeds are states
    n = len(independent)
    u = np.zeros(n) if spread == 1.0 else np.array([d.speeds[i].start for i in independent])
    states = []
    for _ in range(count):
        x = [q + spread * generator.uniform(-0.6, 0.6, q.shape), u + spread * generator.uniform(-1, 1, n), z]
        shifted = p * (1 + 0.2 * spread * generator.uniform(-1, 1, p.shape))
        states.append(State(float(generator.uniform(0, 1)), np.concatenate(x), r, shifted))
    return states


class Evaluated:
    """One formulation of a mechanism, through the Program."""

    def __init__(self, mechanism: Mechanism, method: str) -> None:
        self.mechanism = mechanism
        self.equations: EquationsOfMotion = formulate(mechanism, method)  # type: ignore[arg-type]
        self.program = lower_equations_to_program(self.equations)
        self._evaluators: dict[str, EntryPointEvaluator] = {}

    def __call__(self, entry: str, state: State) -> Array:
        if entry not in self._evaluators:
            self._evaluators[entry] = make_evaluator(self.program, entry)
        return np.asarray(self._evaluators[entry](state.t, state.x, state.r, state.p))

    def output(self, name: str, state: State) -> float:
        """One output by name."""
        return float(self("outputs", state)[self.program.entries["outputs"].labels.index(name)])


class Numeric:
    """The Newton-Euler equations in NumPy, with velocity constraints by multipliers."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        self.numeric = MechanismEvaluator(mechanism)

    def move(self, state: State) -> Array:
        """Goes to the state; returns all speeds."""
        m, n_q = self.mechanism, len(self.mechanism.q)
        independent = list(m.u_independent)
        dependent = [i for i in range(len(m.u)) if i not in independent]
        n_i = len(independent)
        q, u_i, z = state.x[:n_q], state.x[n_q : n_q + n_i], state.x[n_q + n_i :]
        parameters = self.numeric.parameters(list(state.p))
        u = np.zeros(len(m.u))
        u[independent] = u_i
        auxiliary = np.zeros(len(m.u_auxiliary))
        self.numeric.set_state(state.t, q, np.concatenate([u, auxiliary]), z, state.r, parameters)
        A, b, _ = self.numeric.velocity_constraint_terms()
        if dependent:
            u[dependent] = np.linalg.solve(A[:, dependent], -(A[:, independent] @ u_i + b))
            self.numeric.set_state(state.t, q, np.concatenate([u, auxiliary]), z, state.r, parameters)
        return u

    def accelerations(self, state: State) -> Array:
        """u' of all speeds."""
        self.move(state)
        n = len(self.mechanism.u)
        M, f = self.numeric.unconstrained_mass_and_forcing()
        A, _, gamma = self.numeric.velocity_constraint_terms()
        matrix = np.block([[M[:n, :n], A.T], [A, np.zeros((len(A), len(A)))]])
        return np.linalg.solve(matrix, np.concatenate([f[:n], -gamma]))[:n]

    def condition(self) -> float:
        """Of the mass matrix at the state last moved to."""
        n = len(self.mechanism.u)
        return float(np.linalg.cond(self.numeric.unconstrained_mass_and_forcing()[0][:n, :n]))


def close(a: Array, b: Array, condition: float, tolerance: float = 1e-10) -> bool:
    """Agreement norm-wise, scaled by the condition of the mass matrix."""
    scale = max(float(np.linalg.norm(a)), float(np.linalg.norm(b)), 1.0)
    return bool(np.linalg.norm(a - b) <= tolerance * scale * max(1.0, condition * 1e-6))


def pendulum_with_reactions(axes: str = "xy") -> tuple[Model, tuple[sm.Expr, ...]]:
    """A rod on a pin whose reaction force comes out by auxiliary speeds (a KanesMethod handed over).

    Args:
        axes: Along which the force is wanted; there are two auxiliary speeds all the same.
    """
    m, l, g = sm.symbols("m l g")
    q, u, ax, ay, fx, fy = me.dynamicsymbols("q u ax ay fx fy")
    N, A = me.ReferenceFrame("N"), me.ReferenceFrame("A")
    A.orient_axis(N, N.z, q)
    A.set_ang_vel(N, u * N.z)
    O = me.Point("O")
    O.set_vel(N, 0)
    pin = O.locatenew("pin", 0)
    pin.set_vel(N, ax * N.x + ay * N.y)
    centre = pin.locatenew("centre", l / 2 * A.x)
    centre.v2pt_theory(pin, N, A)
    rod = me.RigidBody("rod", centre, A, m, (me.inertia(A, 0, m * l**2 / 12, m * l**2 / 12), centre))
    wanted = {"x": fx * N.x, "y": fy * N.y}
    loads = [(centre, -m * g * N.y), (pin, sum((wanted[axis] for axis in axes), me.Vector(0)))]
    kane = me.KanesMethod(N, [q], [u], [q.diff() - u], u_auxiliary=[ax, ay], bodies=[rod], forcelist=loads)
    model = model_of("Pin", kane, [q], [u], m=1.3, l=0.7, g=9.81)
    forces = tuple({"x": fx, "y": fy}[axis] for axis in axes)
    for axis, force in zip(axes, forces, strict=True):
        model.constraint_force(force)
        model.output(f"reaction_{axis}", force, "N")
    return model, forces


def sympy_rolling_disc() -> Model:
    """The rolling disc as SymPy's documentation writes it: the contact point's velocity is set to zero."""
    q1, q2, q3, u1, u2, u3 = me.dynamicsymbols("q1 q2 q3 u1 u2 u3")
    r, m, g = sm.symbols("r m g")
    N = me.ReferenceFrame("N")
    Y = N.orientnew("Y", "Axis", [q1, N.z])
    L = Y.orientnew("L", "Axis", [q2, Y.x])
    R = L.orientnew("R", "Axis", [q3, L.y])
    omega = R.ang_vel_in(N)
    R.set_ang_vel(N, u1 * L.x + u2 * L.y + u3 * L.z)
    C = me.Point("C")
    C.set_vel(N, 0)
    centre = C.locatenew("centre", r * L.z)
    centre.v2pt_theory(C, N, R)
    disc = me.RigidBody("disc", centre, R, m, (me.inertia(L, m / 4 * r**2, m / 2 * r**2, m / 4 * r**2), centre))
    equations = [omega.dot(axis) - speed for axis, speed in ((L.x, u1), (L.y, u2), (L.z, u3))]
    kane = me.KanesMethod(N, [q1, q2, q3], [u1, u2, u3], equations, bodies=[disc], forcelist=[(centre, -m * g * Y.z)])
    return model_of("Disc", kane, [q1, q2, q3], [u1, u2, u3], r=0.4, m=2.0, g=9.81)


def cart_with_pathways() -> Model:
    """A slider and a pendulum with a spring, a damper, a Duffing spring, a polyline actuator and a torque actuator."""
    m, l, g, k, c, k3, f, T = sm.symbols("m l g k c k3 f T")
    x, q, v, u = me.dynamicsymbols("x q v u")
    ground = me.RigidBody("ground")
    system = me.System.from_newtonian(ground)
    cart = me.RigidBody("cart", mass=2 * m)
    cart.central_inertia = me.inertia(cart.frame, m, m, m)
    bob = me.RigidBody("bob", mass=m)
    bob.central_inertia = me.inertia(bob.frame, m / 10, m / 10, m / 20)
    slide = me.PrismaticJoint("slide", ground, cart, x, v, joint_axis=ground.x)
    pin = me.PinJoint("pin", cart, bob, q, u, child_point=l * bob.y, joint_axis=cart.z)
    system.add_joints(slide, pin)
    wall = ground.masscenter.locatenew("wall", 3 * ground.x + ground.y)
    via = cart.masscenter.locatenew("via", l / 3 * cart.y)
    far = ground.masscenter.locatenew("far", -2 * ground.x + 0.5 * ground.z)
    bob_wall = me.LinearPathway(wall, bob.masscenter)
    system.add_actuators(
        me.LinearSpring(k, bob_wall, equilibrium_length=l),
        me.LinearDamper(c, me.LinearPathway(far, bob.masscenter)),
        me.DuffingSpring(k, k3, me.LinearPathway(far, cart.masscenter), l),
        me.ForceActuator(f, me.ObstacleSetPathway(wall, via, bob.masscenter)),
        me.TorqueActuator(T, cart.z, bob, cart),
    )
    system.apply_uniform_gravity(-g * ground.y)
    values = {"m": 1.1, "l": 0.6, "g": 9.81, "k": 30.0, "c": 2.0, "k3": 5.0, "f": 7.0, "T": 0.4}
    return model_of("Pathways", system, [x, q], [v, u], **values)


def moving_pivot() -> Model:
    """A pendulum whose pivot is moved sideways by a given function of time (rheonomic)."""
    m, l, g, a, w = sm.symbols("m l g a w")
    q, u = me.dynamicsymbols("q u")
    t = me.dynamicsymbols._t
    N = me.ReferenceFrame("N")
    A = me.ReferenceFrame("A")
    A.orient_axis(N, N.z, q)
    O = me.Point("O")
    pivot = O.locatenew("pivot", a * sm.sin(w * t) * N.x)
    bob = pivot.locatenew("bob", -l * A.y)
    from mb2fmu.model.model import Parts

    parts = Parts(
        frame=N,
        origin=O,
        q=[q],
        u=[u],
        kinematic_equations=[u - q.diff()],
        bodies=[me.Particle("bob", bob, m)],
        loads=[(bob, -m * g * N.y)],
    )
    return model_of("MovingPivot", parts, [q], [u], m=0.9, l=0.8, g=9.81, a=0.3, w=2.5)


def lagrangian_with_bodies() -> Model:
    """A spherical pendulum with a torque as a LagrangesMethod that was given its body and frame."""
    m, l, g, T = sm.symbols("m l g T")
    a, b = me.dynamicsymbols("a b")
    N = me.ReferenceFrame("N")
    A = N.orientnew("A", "Axis", [a, N.z])
    B = A.orientnew("B", "Axis", [b, A.x])
    O = me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", -l * B.z)
    P.v2pt_theory(O, N, B)
    J = m * l**2 / 20
    body = me.RigidBody("body", P, B, m, (me.inertia(B, J, J, J / 2), P))
    body.potential_energy = m * g * P.pos_from(O).dot(N.z)
    L = me.Lagrangian(N, body)
    method = me.LagrangesMethod(L, [a, b], bodies=[body], frame=N, forcelist=[(B, T * N.z)])
    return model_of("Spherical", method, [a, b], [a.diff(), b.diff()], m=1.2, l=0.7, g=9.81, T=0.3)
