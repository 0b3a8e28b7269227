"""Latches: momentum where they close, what they hold, every formulation, faults reported by name."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from representatives import by_night

from mb2fmu import Impact, Latch, Model, Parts, derive
from mb2fmu.compiler.evaluation import make_evaluator
from mb2fmu.compiler.lowering import lower_equations_to_program
from mb2fmu.errors import LoweringError, MechanismError, ModelError
from mb2fmu.model import check_model, load
from mb2fmu.model.elements.latch import LatchConstraintRow

MODELS = Path(__file__).parents[4] / "models"


@functools.cache
def derived(make: Callable[[], Model], method: str = "tmt", constraints: str = "auto"):
    return derive(make(), method=method, constraints=constraints)


def values(derivation, entry: str, state: dict[str, float]) -> dict[str, float]:
    """What an entry gives at a state."""
    program = derivation.program
    known = {item.name: item.start for item in derivation.definition.quantities if hasattr(item, "start")}
    plain = {name.replace(".", "_"): value for name, value in (known | state).items()}
    p = [item.value for item in derivation.definition.parameters if not item.calculated]
    by_name = {str(symbol): plain.get(str(symbol), 0.0) for symbol in derivation.equations.states}
    r = [1.0 for _ in derivation.definition.inputs]
    found = make_evaluator(program, entry)(0.0, [*by_name.values()], r, p)
    return {label.partition(":")[2] or label: v for label, v in zip(program.entries[entry].labels, found, strict=True)}


# --- a loop, by every formulation and treatment -----------------------------------------------------------------------

CRANK, R, L = 0.9, 0.05, 0.15
COUPLER = float(-np.arcsin(R * np.sin(CRANK) / L))
START = {"crank": CRANK, "coupler": COUPLER, "slider": R * np.cos(CRANK) + L * np.cos(COUPLER), "omega": -30.0}
START["nu"] = -R * np.cos(CRANK) * START["omega"] / (L * np.cos(COUPLER))
START["v"] = -R * np.sin(CRANK) * START["omega"] - L * np.sin(COUPLER) * START["nu"]


def machine() -> Model:
    """A slider that is caught on its way."""
    model = load(MODELS / "crank_slider.py")
    slider = me.dynamicsymbols("slider")
    model.add(Latch("hook", slider - 0.1, close=slider > 0.0, within=None, stabilization=0.0))
    return model


@pytest.mark.parametrize(
    ("method", "constraints"),
    [
        ("tmt", "attractor"),
        ("recursive-composite", "partition"),
        *by_night(("kane", "explicit"), ("lagrange", "multipliers")),
    ],
)
def test_a_machine_that_is_caught_stands_still(method, constraints):
    """One freedom, and its slider held: all speeds end, by an impulse that takes all energy: u M u = -v Lambda."""
    derivation = derived(machine, method, constraints)
    found = values(derivation, "resets", START)
    assert found["omega"] == pytest.approx(0.0, abs=1e-10)
    mc = 0.6
    coupling = mc * R * L / 2 * np.cos(CRANK - COUPLER)
    M = np.array([[0.05 + mc * R**2, coupling, 0], [coupling, mc * L**2 / 3, 0], [0, 0, 0.5]])
    u = np.array([START[name] for name in ("omega", "nu", "v")])
    assert found["hook_impulse_0"] * START["v"] == pytest.approx(-u @ M @ u, rel=1e-10)
    assert (found["hook_engaged"], found["hook_changes"]) == (1.0, 1.0)
    assert found["hook_held_at_0"] == pytest.approx(START["slider"] - 0.1, rel=1e-12)
    still = START | {"omega": 0.0, "nu": 0.0, "v": 0.0, "hook_changes": 1.0}
    assert abs(values(derivation, "rhs", still)["omega"]) > 1.0
    assert values(derivation, "rhs", still | {"hook_engaged": 1.0})["omega"] == pytest.approx(0.0, abs=1e-9)


# --- points, hinges and welds in space --------------------------------------------------------------------------------


def bodies(rows: str, **more) -> Model:
    """Two free bodies, turned by angles about x, y, z; the second one is latched to the first."""
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    q, u, made, kinematic = [], [], [], []
    for name in "ab":
        x, angle = me.dynamicsymbols(f"{name}x:3"), me.dynamicsymbols(f"{name}t:3")
        v, w = me.dynamicsymbols(f"{name}v:3"), me.dynamicsymbols(f"{name}w:3")
        F, P = N.orientnew(name.upper(), "Body", angle, "123"), me.Point(f"P{name}")
        P.set_pos(O, sum((x[i] * e for i, e in enumerate(N)), me.Vector(0)))
        P.set_vel(N, sum((v[i] * e for i, e in enumerate(N)), me.Vector(0)))
        kinematic += [x[i].diff() - v[i] for i in range(3)]
        turning = F.ang_vel_in(N)
        kinematic += [turning.dot(e) - w[i] for i, e in enumerate(F)]
        F.set_ang_vel(N, sum((w[i] * e for i, e in enumerate(F)), me.Vector(0)))
        inertia = me.inertia(F, *((0.2, 0.3, 0.4) if name == "a" else (0.1, 0.05, 0.08)))
        made.append((me.RigidBody(name, P, F, 2 if name == "a" else 1, (inertia, P)), F, P))
        q, u = [*q, *x, *angle], [*u, *v, *w]
    (first, A, Pa), (second, B, Pb) = made
    hand, ring = Pa.locatenew("hand", 0.5 * A.x), Pb.locatenew("ring", -0.3 * B.y)
    parts = Parts(frame=N, origin=O, q=q, u=u, kinematic_equations=tuple(kinematic), bodies=(first, second))
    model = Model("Bodies", parts)
    draw = np.random.default_rng(3)
    for symbol in q:
        turns = "t" in str(symbol.func)
        model.coordinate(symbol, float(draw.normal() * 0.3), "rad" if turns else "m")
    for symbol in u:
        model.speed(symbol, float(draw.normal()), "rad/s" if "w" in str(symbol.func) else "m/s")
    held = {
        "point": lambda: Latch.point(hand, ring, A),
        "hinge": lambda: Latch.hinge(hand, ring, A.z, B.z),
        "weld": lambda: Latch.weld(hand, ring, A, B),
    }[rows]()
    model.add(Latch("grip", held, within=None, **more))
    model.experiment(stop=1.0, step=0.1)
    return model


@pytest.mark.parametrize(("rows", "count"), [("point", 3), *by_night(("hinge", 5), ("weld", 6))])
def test_momenta_stay_and_rates_end_as_a_latch_closes_in_space(rows, count):
    """Linear momentum, and angular momentum about the origin, of both bodies together; M, G and the rows by numbers."""
    model = bodies(rows, close=sm.true)
    derivation = derive(model, method="recursive-composite")
    start = {item.name: item.start for item in derivation.definition.quantities if hasattr(item, "start")}
    found = start | values(derivation, "resets", {})
    impulses = [name for name in found if "impulse" in name and name.startswith("grip_")]
    assert len(impulses) == count

    def momenta(s):
        total, about = np.zeros(3), np.zeros(3)
        for name, mass, inertia in (("a", 2, (0.2, 0.3, 0.4)), ("b", 1, (0.1, 0.05, 0.08))):
            x, v, w = (np.array([s[f"{name}{part}{i}"] for i in range(3)]) for part in "xvw")
            C = turned(*(s[f"{name}t{i}"] for i in range(3)))
            total += mass * v
            about += mass * np.cross(x, v) + C @ (np.array(inertia) * w)
        return np.append(total, about)

    def relative(s):
        C = {name: turned(*(s[f"{name}t{i}"] for i in range(3))) for name in "ab"}
        w = {name: C[name] @ [s[f"{name}w{i}"] for i in range(3)] for name in "ab"}
        v = {name: np.array([s[f"{name}v{i}"] for i in range(3)]) for name in "ab"}
        hand = v["a"] + np.cross(w["a"], C["a"] @ [0.5, 0, 0])
        ring = v["b"] + np.cross(w["b"], C["b"] @ [0, -0.3, 0])
        return ring - hand, w["b"] - w["a"], C

    assert momenta(found) == pytest.approx(momenta(start), rel=1e-11, abs=1e-11)
    gap, turn, C = relative(found)
    assert np.linalg.norm(relative(start)[0]) > 0.5
    if rows == "weld":
        assert turn == pytest.approx(0.0, abs=1e-10)
    if rows == "hinge":
        axis = np.cross(turn, C["b"][:, 2])  # the rate of the second axis as the first body sees it
        assert C["a"][:, :2].T @ axis == pytest.approx(0.0, abs=1e-10)
        return
    way = np.array([found[f"bx{i}"] - found[f"ax{i}"] for i in range(3)])
    way += C["b"] @ [0, -0.3, 0] - C["a"] @ [0.5, 0, 0]
    # rows are along axes of the first body: what is held at a distance turns with it
    assert gap == pytest.approx(np.cross(C["a"] @ [found[f"aw{i}"] for i in range(3)], way), abs=1e-10)


def turned(x: float, y: float, z: float) -> np.ndarray:
    """Direction cosines of a frame that is turned about x, then its y, then its z."""

    def about(i: int, angle: float) -> np.ndarray:
        j, k = (i + 1) % 3, (i + 2) % 3
        C = np.eye(3)
        C[j, j] = C[k, k] = np.cos(angle)
        C[j, k], C[k, j] = -np.sin(angle), np.sin(angle)
        return C

    return about(0, x) @ about(1, y) @ about(2, z)


def test_rows_that_nothing_changes_are_left_out():
    x, y, a = me.dynamicsymbols("x y a")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    B = N.orientnew("B", "Axis", (a, N.z))
    P = O.locatenew("P", x * N.x + y * N.y)
    rows = Latch.weld(O, P, N, B)
    assert [(row.effort, row.label) for row in rows] == [("force", "x"), ("force", "y"), ("torque", "z")]
    assert sm.simplify(rows[2].position - sm.sin(a)) == 0
    assert [row.label for row in Latch.hinge(O, P, N.z, B.z)] == ["x", "y"]
    tilted = Latch.hinge(O, P, N.x, B.x)
    assert [row.effort for row in tilted] == ["force", "force", "torque"]
    assert sm.simplify(tilted[2].position ** 2 - sm.sin(a) ** 2) == 0


# --- with contacts ----------------------------------------------------------------------------------------------------


def train() -> Model:
    """Two wagons, coupled or not, the first of which meets a wall."""
    x1, x2, v1, v2 = me.dynamicsymbols("x1 x2 v1 v2")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    wagons = []
    for i, (x, v, mass) in enumerate(((x1, v1, 2), (x2, v2, 3))):
        P = O.locatenew(f"P{i}", x * N.x)
        P.set_vel(N, v * N.x)
        wagons.append(me.Particle(f"wagon{i}", P, mass))
    kane = me.KanesMethod(N, [x1, x2], [v1, v2], [x1.diff() - v1, x2.diff() - v2], bodies=wagons)
    model = Model("Train", kane)
    for symbol, start in ((x1, 0.0), (x2, 1.0)):
        model.coordinate(symbol, start, "m")
    for symbol in (v1, v2):
        model.speed(symbol, -2.0, "m/s")
    model.add(Latch("coupling", x2 - x1, close=x2 - x1 < 0, within=None))
    model.add(Impact("wall", x1, restitution=0.5))
    model.experiment(stop=1.0, step=0.1)
    return model


@pytest.mark.parametrize(("engaged", "impulse"), [(0.0, 6.0), (1.0, 15.0)])
def test_an_impact_moves_what_is_latched(engaged, impulse):
    state = {"coupling_engaged": engaged, "coupling_changes": 1.0}
    found = values(derived(train), "resets", state)
    assert found["wall_impulse"] == pytest.approx(impulse, rel=1e-13)


def test_forward_and_inverse_dynamics_are_refused():
    """They would leave out what holds."""
    for make in (train, machine):
        equations = derived(make).equations
        for entry in ("forward", "inverse"):
            with pytest.raises(LoweringError, match="leave out the forces of contacts that rest"):
                lower_equations_to_program(equations, [entry])


# --- what is wrong is reported ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"within": 0.0}, "within is 0"),
        ({"close": False}, "it never closes"),
        ({"close": me.dynamicsymbols("x1") + 1}, "is no condition"),
        ({"rows": []}, "it holds 0 rows"),
        ({"rows": me.dynamicsymbols("v1")}, "must contain no speeds"),
        ({"rows": sm.Integer(3)}, "has no velocity"),
        ({"unit": "s"}, "a row is in s"),
        ({"stabilization": -1.0}, "stabilization is -1"),
        ({"rows": [LatchConstraintRow(me.dynamicsymbols("x1"), "m", "x")] * 2}, "two rows are called force x"),
    ],
)
def test_faults_are_reported(arguments, words):
    model = train()
    x1 = me.dynamicsymbols("x1")
    model.add(Latch(**{"name": "hook", "rows": x1, "close": x1 < 0, "within": None, **arguments}))
    with pytest.raises(ModelError, match=words):
        check_model(model)


def test_what_constraints_hold_already_is_reported():
    """The end of the coupler is at the slider's pin, whose height is zero."""
    model = load(MODELS / "crank_slider.py")
    crank, coupler = me.dynamicsymbols("crank coupler")
    r, length = sm.symbols("r l", positive=True)
    model.add(Latch("hook", r * sm.sin(crank) + length * sm.sin(coupler), close=crank > 1, within=None))
    with pytest.raises(MechanismError, match=r"the constraints hold hook\.force already"):
        derive(model)
