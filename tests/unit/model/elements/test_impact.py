"""Impacts: the law of momentum in every formulation, closed forms, several at once, faults reported by name."""

from __future__ import annotations

from pathlib import Path

import lines
import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from event_models import reference_of
from scipy.optimize import nnls

from mb2fmu import Impact, Mb2FmuError, Model, Parts, derive, export, simulate
from mb2fmu.compiler.evaluation import make_evaluator
from mb2fmu.compiler.numerics.frictionless_impacts_and_resting_forces import solve_complementarity
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.scalar_program import ProgramVariableLayout
from mb2fmu.errors import MechanismError, ModelError
from mb2fmu.model import check_model, load

MODELS = Path(__file__).parents[4] / "models"


def behind(derivation, state: dict[str, float]) -> dict[str, float]:
    """States behind an impact at a state, and dependent speeds before it."""
    program = derivation.program
    known = {item.name: item.start for item in derivation.definition.quantities if hasattr(item, "start")}
    known |= state
    p = [item.value for item in derivation.definition.parameters if not item.calculated]
    r = [item.start for item in derivation.definition.inputs]
    names = {str(s): s for s in derivation.equations.states}
    plain = {name.replace(".", "_"): value for name, value in known.items()}
    x = [plain[name] for name in names]
    entry = program.entries["resets"]
    values = make_evaluator(program, "resets")(0.0, x, r, p)
    return {label.partition(":")[2]: value for label, value in zip(entry.labels, values, strict=True)}


# --- a loop, by every formulation and treatment -----------------------------------------------------------------------

CRANK, COUPLER = 0.9, float(-np.arcsin(0.05 * np.sin(0.9) / 0.15))
START = {"crank": CRANK, "coupler": COUPLER, "slider": 0.05 * np.cos(CRANK) + 0.15 * np.cos(COUPLER), "omega": -30.0}
START["nu"] = -0.05 * np.cos(CRANK) * START["omega"] / (0.15 * np.cos(COUPLER))
START["v"] = -0.05 * np.sin(CRANK) * START["omega"] - 0.15 * np.sin(COUPLER) * START["nu"]


def by_hand(e: float) -> tuple[np.ndarray, float]:
    """Speeds (crank, coupler, slider) behind an impact of the slider on a wall, and the impulse: M, A, G by hand."""
    r, length, mc = 0.05, 0.15, 0.6
    coupling = mc * r * length / 2 * np.cos(CRANK - COUPLER)
    M = np.array([[0.05 + mc * r**2, coupling, 0], [coupling, mc * length**2 / 3, 0], [0, 0, 0.5]])
    A = np.array(
        [
            [-r * np.sin(CRANK), -length * np.sin(COUPLER), -1.0],
            [r * np.cos(CRANK), length * np.cos(COUPLER), 0.0],
        ]
    )
    G, u = np.array([0.0, 0.0, -1.0]), np.array([START[name] for name in ("omega", "nu", "v")])
    matrix = np.zeros((6, 6))
    matrix[:3, :3], matrix[:3, 3:5], matrix[:3, 5] = M, A.T, -G
    matrix[3:5, :3], matrix[5, :3] = A, G
    found = np.linalg.solve(matrix, [0, 0, 0, 0, 0, -(1 + e) * (G @ u)])
    return u + found[:3], found[5]


def machine(order: str = "sequential") -> Model:
    model = load(MODELS / "crank_slider.py")
    slider = me.dynamicsymbols("slider")
    model.add(Impact("wall", START["slider"] - 1e-12 - slider, restitution=0.4, order=order))
    return model


METHODS = ("kane", "tmt", "lagrange", "recursive-composite")
TREATMENTS = ("attractor", "multipliers", "explicit", "partition")
BY_DAY = {
    ("tmt", "attractor"),
    ("tmt", "multipliers"),
    ("recursive-composite", "explicit"),
    ("recursive-composite", "partition"),
}


@pytest.mark.parametrize(
    ("method", "constraints"),
    [  # by day each treatment once, with a method that takes little time
        pytest.param(method, treatment, marks=() if (method, treatment) in BY_DAY else pytest.mark.repeats)
        for i, method in enumerate(METHODS)
        for k, treatment in enumerate(TREATMENTS)
    ],
)
def test_momentum_jumps_as_by_hand(method, constraints):
    assert START["v"] > 0.1  # towards the wall
    derivation = derive(machine(), method=method, constraints=constraints)
    found = behind(derivation, START)
    speeds, impulse = by_hand(0.4)
    for name, value in zip(("omega", "nu", "v"), speeds, strict=True):
        if name in found:
            assert found[name] == pytest.approx(value, rel=1e-11)
    assert found["omega"] == pytest.approx(speeds[0], rel=1e-11)
    assert found["wall_impulse"] == pytest.approx(impulse, rel=1e-11)
    assert (found["wall_impacts"], found["wall_resting"]) == (1.0, 0.0)


def test_at_once_is_the_same_for_one_contact():
    found = behind(derive(machine("simultaneous"), constraints="multipliers"), START)
    assert found["v"] == pytest.approx(by_hand(0.4)[0][2], rel=1e-11)


# --- trees, and rows of the independent speeds alone ------------------------------------------------------------------


def chain() -> Model:
    """Five rods in a row that hang from a pin; the end of the last one meets a wall."""
    n = 5
    q, u = me.dynamicsymbols(f"q:{n}"), me.dynamicsymbols(f"u:{n}")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    bodies, at = [], O
    for i in range(n):
        B = N.orientnew(f"B{i}", "Axis", (q[i], N.z))
        B.set_ang_vel(N, u[i] * N.z)
        centre = at.locatenew(f"C{i}", -0.5 * B.y)
        at = at.locatenew(f"P{i}", -B.y)
        bodies.append(me.RigidBody(f"rod{i}", centre, B, 1 + i, (me.inertia(B, 0, 0, 0.1), centre)))
    kinematic = [speed - place.diff() for place, speed in zip(q, u, strict=True)]
    parts = Parts(frame=N, origin=O, q=q, u=u, kinematic_equations=tuple(kinematic), bodies=tuple(bodies))
    model = Model("Chain", parts)
    for i in range(n):
        model.coordinate(q[i], 0.3 * i, "rad")
        model.speed(u[i], 0.4 * i - 2.0, "rad/s")
    end = at.pos_from(O).dot(N.x)
    model.add(Impact("wall", sm.expand(end) - 10, restitution=0.5))  # far behind it
    model.experiment(stop=1.0, step=0.1)
    return model


def test_articulated_bodies_give_what_a_mass_matrix_gives():
    found = [behind(derive(chain(), method=method), {}) for method in ("tmt", "recursive-articulated")]
    assert found[0]["wall_impulse"] != 0.0
    assert found[1] == pytest.approx(found[0], rel=1e-11)


def skate() -> Model:
    """A sleigh with a blade whose side slips not: its body meets a wall."""
    x, y, a, v, s, w = me.dynamicsymbols("x y a v s w")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    B = N.orientnew("B", "Axis", (a, N.z))
    B.set_ang_vel(N, w * N.z)
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, v * B.x + s * B.y)
    C = P.locatenew("C", 0.3 * B.x)
    C.v2pt_theory(P, N, B)
    body = me.RigidBody("body", C, B, 2, (me.inertia(B, 0, 0, 0.5), C))
    rates = P.vel(N)
    kinematic = [x.diff() - rates.dot(N.x), y.diff() - rates.dot(N.y), a.diff() - w]
    kane = me.KanesMethod(N, [x, y, a], [v, w], kinematic, u_dependent=[s], velocity_constraints=[s], bodies=[body])
    model = Model("Skate", kane)
    for symbol, start in ((x, 0.0), (y, 0.0), (a, 0.4)):
        model.coordinate(symbol, start, "rad" if symbol == a else "m")
    for symbol, start in ((v, 1.5), (w, 0.2), (s, 0.0)):
        model.speed(symbol, start, "rad/s" if symbol == w else "m/s", kind="guess" if symbol == s else "fixed")
    model.add(Impact("wall", -x - 0.3 * sm.cos(a), restitution=0.3))
    model.experiment(stop=1.0, step=0.1)
    return model


def test_a_blade_holds_during_the_impact():
    """With v and w alone: M = diag(m, I + m c²), and the rate of the gap is -v cos a + c w sin a."""
    found = behind(derive(skate(), method="kane"), {})
    a, c, M = 0.4, 0.3, np.diag([2.0, 0.5 + 2 * 0.09])
    G, u = np.array([-np.cos(a), c * np.sin(a)]), np.array([1.5, 0.2])
    reach = np.linalg.solve(M, G)
    impulse = -1.3 * (G @ u) / (G @ reach)
    assert [found["v"], found["w"]] == pytest.approx(u + reach * impulse, rel=1e-12)
    assert found["wall_impulse"] == pytest.approx(impulse, rel=1e-12)


# --- several contacts -------------------------------------------------------------------------------------------------


def cradle(order: str, law: str = "newton", e: float = 1.0, masses=(1, 1, 1)) -> Model:
    q, u = me.dynamicsymbols("x1:4"), me.dynamicsymbols("v1:4")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    bodies = []
    for i, mass in enumerate(masses):
        P = O.locatenew(f"P{i}", q[i] * N.x)
        P.set_vel(N, u[i] * N.x)
        bodies.append(me.Particle(f"ball{i}", P, mass))
    kane = me.KanesMethod(N, q, u, [a.diff() - b for a, b in zip(q, u, strict=True)], bodies=bodies)
    model = Model("Cradle", kane)
    for i in range(3):
        model.coordinate(q[i], float(i), "m")
        model.speed(u[i], 1.0 if i == 0 else 0.0, "m/s")
    for i in range(2):
        model.add(Impact(f"pair{i}", q[i + 1] - q[i] - 1, restitution=e, order=order, law=law))
    model.experiment(stop=1.0, step=0.1)
    return model


@pytest.mark.parametrize(
    ("order", "law", "speeds"),
    [
        ("sequential", "newton", (0, 0, 1)),
        ("simultaneous", "newton", (-1 / 3, 2 / 3, 2 / 3)),
        ("simultaneous", "poisson", (-1 / 3, 2 / 3, 2 / 3)),
    ],
)
def test_newtons_cradle(order, law, speeds):
    """Poisson's law at once: compression stops all at 1/3 with impulses 2/3 and 1/3, which then act once more."""
    found = behind(derive(cradle(order, law)), {})
    assert [found[f"v{i}"] for i in (1, 2, 3)] == pytest.approx(speeds, abs=1e-14)


@pytest.mark.parametrize("order", ["sequential", "simultaneous"])
def test_balls_that_meet_in_the_middle(order):
    """Two contacts close at the same instant; momentum stays, energy does not grow, nothing approaches any more."""
    state = {"v1": 1.0, "v2": 0.1, "v3": -0.7}
    found = behind(derive(cradle(order, e=0.6, masses=(1, 2, 3))), state)
    masses, u = np.array([1, 2, 3]), np.array([found[f"v{i}"] for i in (1, 2, 3)])
    before = np.array([*state.values()])
    assert masses @ u == pytest.approx(masses @ before, abs=1e-14)
    assert masses @ u**2 < masses @ before**2
    if order == "simultaneous":
        assert np.diff(u) == pytest.approx(-0.6 * np.diff(before), rel=1e-12)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_modes_that_are_chosen_are_complementary(size):
    draw = np.random.default_rng(size)
    layout = ProgramVariableLayout(
        states=tuple(f"x{i}" for i in range(size * size + size)), inputs=(), parameters=(), memory=(), seeds=()
    )
    b = ProgramBuilder(layout)
    nodes = [b.state(i) for i in range(size * size + size)]
    W = [nodes[size * i : size * i + size] for i in range(size)]
    b.entry("z", [f"z{i}" for i in range(size)], solve_complementarity(b, W, nodes[size * size :]))
    solve = make_evaluator(b.build(), "z")
    for _ in range(60):
        root = draw.normal(size=(size + 1, size))
        matrix, q = root.T @ root, draw.normal(size=size)
        z = solve(0.0, [*matrix.ravel(), *q], (), ())
        lower = np.linalg.cholesky(matrix)
        assert z == pytest.approx(nnls(lower.T, -np.linalg.solve(lower, q))[0], abs=1e-9)


def test_a_ball_meets_a_table_that_an_input_moves():
    """Seen: ``run`` ended with a KeyError. The table's rate, 0.3 m/s, is an input, too: v⁺ = (1 + e) w - e v⁻."""
    h, table = me.dynamicsymbols("x1 table")
    model, _, _, _ = lines.masses("Ball", [(0.5, 0.0)], lambda _: [sm.Float(-10)])
    model.input(table, 0.0, "m", rates=True)
    model.add(Impact("table", h - table, restitution=0.8))
    rate = me.dynamicsymbols("table").diff()
    model.experiment(stop=0.4, step=0.1, signals={rate: 0.3})
    found = reference_of(model)
    hit = np.sqrt(2 * 0.5 / 10)
    after = 1.8 * 0.3 + 0.8 * 10 * hit
    assert found.states[-1, 1] == pytest.approx(after - 10 * (0.4 - hit), abs=1e-9)


# --- what is wrong is reported ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"restitution": 1.2}, "its restitution is 1.2"),
        ({"restitution": -0.1}, "its restitution is -0.1"),
        ({"rest_below": 0.0}, "rest_below is 0"),
        ({"gap": None}, "its gap is None"),
        ({"gap": "x3 + 1"}, r"its gap is 'x3 \+ 1'"),
        ({"gap": sm.Symbol("r")}, "has no velocity"),
        ({"gap": me.dynamicsymbols("v1") - 1}, "must contain no speeds"),
        ({"gap": me.dynamicsymbols("x1") - me.dynamicsymbols("level")}, "the state level: its second derivative"),
        ({"gap": me.dynamicsymbols("x1") - me.dynamicsymbols("lift")}, "the input lift, and its first and second"),
        ({"order": "simultaneous"}, "wants simultaneous impacts"),
    ],
)
def test_faults_are_reported(arguments, words):
    model = cradle("sequential")
    level, lift = me.dynamicsymbols("level lift")
    model.add(Impact(**{"name": "third", "gap": me.dynamicsymbols("x3") + 1, **arguments}))
    model.state(level, -level, 0.1, "m")
    model.input(lift, 0.1, "m")
    if arguments.get("gap") == sm.Symbol("r"):
        model.parameter(sm.Symbol("r"), 1.0)
    with pytest.raises(ModelError, match=words):
        check_model(model)


def test_reactions_that_would_lack_the_contacts_forces_are_refused():
    model = cradle("sequential")
    kane = model.mechanics
    model.output_reaction("held", [kane.bodies[0]], at=kane.bodies[0].point)
    with pytest.raises(ModelError, match="is a reaction, and forces of contacts"):
        check_model(model)


def test_laws_are_not_mixed_at_once():
    model = cradle("simultaneous")
    model.add(Impact("third", me.dynamicsymbols("x3") + 1, restitution=1.0, order="simultaneous", law="poisson"))
    with pytest.raises(ModelError, match="third says poisson where another says otherwise"):
        check_model(model)


def test_a_gap_that_constraints_hold_is_reported():
    """The end of the coupler is at the slider's pin, whose height is zero: no impact can change it."""
    model = load(MODELS / "crank_slider.py")
    crank, coupler = me.dynamicsymbols("crank coupler")
    r, length = sm.symbols("r l", positive=True)
    model.add(Impact("floor", r * sm.sin(crank) + length * sm.sin(coupler) + 1, restitution=0.4))
    with pytest.raises(MechanismError, match="the constraints hold the gap of floor"):
        derive(model)


def test_a_gap_that_is_said_twice_is_reported():
    model = cradle("sequential")
    first, second = model.declared_contacts[0].gap, model.declared_contacts[1].gap
    model.add(Impact("again", 2 * first, restitution=1.0, order="sequential"))
    model.add(Impact("other", first + second, restitution=1.0, order="sequential"))
    model.add(Impact("against", -3 * second, restitution=1.0, order="sequential"))
    model.add(Impact("slot", 0.1 - second, restitution=1.0, order="sequential"))
    with pytest.raises(MechanismError) as raised:
        derive(model)
    assert [fault.what.partition(":")[0] for fault in raised.value.faults] == [
        "again has the gap of pair0, or a multiple of it", "against has the gap of pair1 with the other sign"
    ]  # fmt: skip


def test_a_model_with_impacts_is_simulated_by_its_fmu():
    found = simulate(cradle("sequential"))
    assert [found[f"v{i}"][-1] for i in (1, 2, 3)] == pytest.approx((0, 0, 1), abs=1e-14)
    assert found["x3"][-1] == pytest.approx(3.0, abs=1e-12)


def test_fmus_of_python_have_no_impacts_and_say_so(tmp_path):
    with pytest.raises(Mb2FmuError, match="which FMUs of Python do not have"):
        export(cradle("sequential"), tmp_path, backend="python")


def test_counts_and_modes_have_bounds():
    """Below zero a count would hide impacts from the unit and from the reference alike."""
    definition = check_model(load(MODELS / "slider_crank_clearance.py"))
    bounds = {z.name: (z.minimum, z.maximum) for z in definition.auxiliary_states}
    assert bounds["joint.resting"] == (0.0, 1.0)
    assert bounds["joint.sliding"] == (-1.0, 1.0)
    assert bounds["joint.impacts"] == bounds["joint.changes"] == (0.0, None)
