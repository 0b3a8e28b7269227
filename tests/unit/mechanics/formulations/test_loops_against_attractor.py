"""Loops that PyMbs solves explicitly: three-bar transmission, steering, hexapod, a joint given by an expression.

Each is derived by ``explicit`` and by the attractor, two treatments that share no closed form; x' agrees to 1e-9.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Model, Parts, pipeline
from mb2fmu.compiler import evaluation
from mb2fmu.mechanics.formulations.loops.closed_form_loop_protocol import (
    AssemblyBranchStartValues,
    LoopClosureEquations,
    LoopKindMismatchError,
)
from mb2fmu.mechanics.formulations.loops.rod_and_hexapod_leg_closed_forms import HexapodLegLoopSolver
from mb2fmu.model import load

t = me.dynamicsymbols._t


class Made:
    """A mechanism in the making: coordinates with speeds, bodies, rows."""

    def __init__(self) -> None:
        self.N, self.O = me.ReferenceFrame("N"), me.Point("O")
        self.O.set_vel(self.N, 0)
        self.q: list[sm.Expr] = []
        self.u: list[sm.Expr] = []
        self.starts: list[tuple[float, bool]] = []
        self.bodies: list[me.RigidBody] = []
        self.rows: list[sm.Expr] = []

    def coordinate(self, name: str, start: float, *, guess: bool = False) -> tuple[sm.Expr, sm.Expr]:
        """A coordinate and its speed."""
        pair = me.dynamicsymbols(name), me.dynamicsymbols(f"d_{name}")
        self.q.append(pair[0])
        self.u.append(pair[1])
        self.starts.append((start, guess))
        return pair

    def turned(
        self, name: str, parent: me.ReferenceFrame, angle: tuple[sm.Expr, sm.Expr], axis: str
    ) -> me.ReferenceFrame:
        """A frame that turns about an axis of its parent."""
        frame, along = me.ReferenceFrame(name), getattr(parent, axis)
        frame.orient_axis(parent, along, angle[0])
        frame.set_ang_vel(parent, angle[1] * along)
        return frame

    def body(self, place: me.Point, frame: me.ReferenceFrame, mass: float) -> None:
        """A body with its mass centre there."""
        inertia = me.inertia(frame, 0.02 * mass, 0.03 * mass, 0.04 * mass)
        self.bodies.append(me.RigidBody(f"body{len(self.bodies)}", place, frame, mass, (inertia, place)))

    def model(self, wanted: Sequence[sm.Expr] = ()) -> Model:
        """With gravity; ``wanted`` are the dependent coordinates, if they are named."""
        parts = Parts(
            frame=self.N, origin=self.O, q=self.q, u=self.u, bodies=self.bodies, q_dependent=wanted,
            u_dependent=[self.u[self.q.index(q)] for q in wanted], holonomic_constraints=self.rows,
            kinematic_equations=[q.diff(t) - u for q, u in zip(self.q, self.u, strict=True)],
            loads=[(b.masscenter, -9.81 * b.mass * (0.6 * self.N.y + 0.8 * self.N.z)) for b in self.bodies],
        )  # fmt: skip
        model = Model("Made", parts)
        for (start, guess), q, u in zip(self.starts, self.q, self.u, strict=True):
            model.coordinate(q, start, kind="guess" if guess else "fixed")
            model.speed(u, 0.0, kind="guess" if guess else "fixed")
        return model

    def closed(self, gap: me.Vector, axes: str) -> None:
        """Rows: components of a gap in N."""
        self.rows += [gap.dot(getattr(self.N, axis)) for axis in axes]


def three_bar(given: str) -> Model:
    """A crank, and a cylinder between its end and the ground: the crank is given, or the cylinder's displacement."""
    made = Made()
    free = given == "crank"
    crank = made.coordinate("crank", 1.0, guess=not free)
    barrel = made.coordinate("barrel", 2.2, guess=True)
    out = made.coordinate("out", 0.4 if free else 0.45, guess=free)
    A, B = made.turned("A", made.N, crank, "z"), made.turned("B", made.N, barrel, "z")
    pin = made.O.locatenew("pin", 0.6 * A.x)
    foot = made.O.locatenew("foot", 1.0 * made.N.x)
    foot.set_vel(made.N, 0)
    rod = foot.locatenew("rod", (0.5 + out[0]) * B.x)
    rod.set_vel(made.N, out[1] * B.x + barrel[1] * (0.5 + out[0]) * B.y)
    for place, frame, mass in ((made.O.locatenew("a", 0.3 * A.x), A, 2.0), (foot.locatenew("b", 0.2 * B.x), B, 1.5)):
        place.v2pt_theory(made.O if frame is A else foot, made.N, frame)
        made.body(place, frame, mass)
    made.body(rod, B, 1.0)
    made.closed(pin.pos_from(rod), "xy")
    return made.model([barrel[0], out[0]] if free else [crank[0], barrel[0]])


def model(name: str, **arguments: object) -> Model:
    """One of the repository's."""
    return load(Path(__file__).parents[4] / "models" / f"{name}.py", arguments)


def given_joint() -> Model:
    """A joint whose angle is an expression of another's and of time."""
    made = Made()
    crank, follower = made.coordinate("crank", 0.4), made.coordinate("follower", 0.3, guess=True)
    A = made.turned("A", made.N, crank, "z")
    elbow = made.O.locatenew("elbow", 0.5 * A.x)
    elbow.v2pt_theory(made.O, made.N, A)
    B = made.turned("B", A, follower, "y")
    tip = elbow.locatenew("tip", 0.3 * B.x)
    tip.v2pt_theory(elbow, made.N, B)
    made.body(elbow, A, 2.0)
    made.body(tip, B, 1.0)
    made.rows.append(follower[0] - (0.3 * sm.sin(2 * crank[0]) + 0.1 * crank[0] ** 3 + 0.05 * sm.cos(3 * t)))
    return made.model([follower[0]])


MECHANISMS: dict[str, tuple[Callable[[], Model], list[str]]] = {
    "three-bar, crank given": (lambda: three_bar("crank"), ["FourBarTrans"]),
    "three-bar, cylinder given": (lambda: three_bar("cylinder"), ["FourBar"]),
    "three-bar, in an excavator": (lambda: model("excavator_arm"), ["FourBar", "FourBarTrans", "FourBarTrans"]),
    "steering": (lambda: model("steering_linkage"), ["FourBar", "FourBar", "Transmission"]),
    "hexapod, platform given": (lambda: model("hexapod", given="platform", legs=1), ["Leg"]),
    "hexapod, legs given": (lambda: model("hexapod"), ["loop", "loop", "loop"]),
    "joint given by an expression of time": (given_joint, ["Transmission"]),
    "joints given by expressions": (lambda: model("valve_train"), ["Transmission", "Transmission", "Transmission"]),
}


NIGHTLY = (
    "three-bar, in an excavator", "three-bar, cylinder given", "joint given by an expression of time",
    "hexapod, legs given", "hexapod, platform given", "steering",
)  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.repeats] if name in NIGHTLY else []) for name in MECHANISMS],
)
def test_motion_is_that_of_the_attractor(name):
    """At random independent states: dependent ones from the closed form close the rows, and x' is the attractor's."""
    make, kinds = MECHANISMS[name]
    explicit, attractor = (pipeline.derive(make(), constraints=way, method="tmt") for way in ("explicit", "attractor"))
    e = explicit.equations
    assert sorted(form.kind for form in e.closed_forms) == sorted(kinds)
    rates = {way.treated: evaluation.make_evaluator(way.program, "rhs") for way in (explicit, attractor)}
    own, other = rates.values()
    entries = {
        k: evaluation.make_evaluator(explicit.program, k) for k in ("position", "dependent_speeds", "accelerations")
    }
    x0, r, p = pipeline.start_values(explicit)
    p_attractor = pipeline.start_values(attractor)[2]
    generator = np.random.default_rng(3)
    n_q = len(e.q_independent)
    for _ in range(3):
        x = x0 + np.concatenate([0.02 * generator.uniform(-1, 1, n_q), generator.uniform(-1, 1, len(x0) - n_q)])
        q, u = np.zeros(len(e.q)), np.zeros(len(e.u))
        q[list(e.q_independent)], u[list(e.u_independent)] = x[:n_q], x[n_q:]
        q[list(e.q_dependent)] = entries["position"](0.0, x, r, p)[-len(e.q_dependent) :]
        u[list(e.u_dependent)] = entries["dependent_speeds"](0.0, x, r, p)
        theirs = other(0.0, np.concatenate([q, u]), r, p_attractor)
        bound = {"rel": 1e-9, "abs": 1e-9 * np.abs(theirs).max()}
        assert entries["accelerations"](0.0, x, r, p) == pytest.approx(theirs[len(q) :], **bound)
        independent = [*e.q_independent, *(len(q) + i for i in e.u_independent)]
        assert own(0.0, x, r, p) == pytest.approx(theirs[independent], **bound)


@pytest.mark.repeats  # 20 s: 24 coordinates, three treatments
def test_six_legs_carry_a_platform():
    """Platform given: six legs in closed form. Legs given: Newton's method, as there are 40 assemblies. From rest."""
    legs = [f"out[{i}]" for i in range(1, 7)]
    wanted = pipeline.derive(model("hexapod", given="platform"), constraints="attractor", method="tmt")
    rates = evaluation.make_evaluator(wanted.program, "rhs")(0.0, *pipeline.start_values(wanted))
    ways = {"explicit": {}, "partition": {"independent": legs}}
    for treatment, more in ways.items():
        found = pipeline.derive(model("hexapod", given="platform"), constraints=treatment, method="tmt", **more)
        e = found.equations
        assert treatment == "explicit" or [found.definition.coordinates[i].name for i in e.q_independent] == legs
        own = evaluation.make_evaluator(found.program, "rhs")(0.0, *pipeline.start_values(found))[6:]
        assert np.abs(own).max() > 0.5
        theirs = rates[[len(e.q) + i for i in e.u_independent]]
        assert own == pytest.approx(theirs, rel=1e-9, abs=1e-9 * np.abs(rates).max())


# --- the kind itself -------------------------------------------------------------------------------------------------

ALPHA, BETA, S, X, Y, Z = sm.symbols("alpha beta s x y z", real=True)


def spherical(alpha: sm.Expr, beta: sm.Expr) -> sm.Matrix:
    """About y, then z; along x."""
    return sm.rot_axis2(alpha).T * sm.rot_axis3(beta).T * sm.Matrix([1, 0, 0])


TILTED = sm.rot_axis1(sm.Rational(2, 5)) * sm.rot_axis3(X / 3)


@pytest.mark.parametrize(
    ("frame", "start"),  # each of both by day
    [
        pytest.param(frame, start, marks=() if k in {i, i + 3} else pytest.mark.repeats)
        for i, frame in enumerate((sm.eye(3), TILTED, sm.diag(1, -1, 1)))
        for k, start in enumerate([(0.3, 0.4, 0.9), (2.5, -0.6, 1.1), (0.3, 2.4, 0.9), (-4.0, 0.5, -1.6)])
    ],
)
def test_a_leg_ends_at_its_point(start, frame):
    """On the branch of the start: either sign of the displacement and of cos β, any number of turns, with an offset."""
    values = dict(zip((ALPHA, BETA, S), start, strict=True)) | {X: 0.2, Y: -0.1, Z: 0.4}
    centre = (frame * (S + sm.Rational(1, 4)) * spherical(ALPHA, -BETA)).subs(values) - sm.Matrix([0.2, -0.1, 0.4])
    rows = tuple(frame * (S + sm.Rational(1, 4)) * spherical(ALPHA, -BETA) - sm.Matrix([X, Y, Z]) - centre)
    numbers = AssemblyBranchStartValues(dict(values), frozenset(values))
    form = HexapodLegLoopSolver().solve(LoopClosureEquations(("x", "y", "z"), rows, (S, ALPHA, BETA)), numbers)
    steps = [(item.symbol, item.expression) for item in form.assignments]
    results = [*form.unknowns, *rows]
    function = sm.lambdify([X, Y, Z], results, modules="math", cse=lambda _: (steps, results))
    found = function(0.2, -0.1, 0.4)
    assert dict(zip(form.unknowns, found, strict=False)) == pytest.approx(
        {s: values[s] for s in form.unknowns}, abs=1e-12
    )
    for place in ((0.25, -0.15, 0.35), (0.1, 0.0, 0.45)):
        assert function(*place)[3:] == pytest.approx([0.0] * 3, abs=1e-14)


def test_what_is_no_leg_is_reported_why():
    start = AssemblyBranchStartValues(
        {ALPHA: 0.3, BETA: 0.4, S: 1.0, X: 0.2, Y: 0.1, Z: 0.4}, frozenset({ALPHA, BETA, S, X, Y, Z})
    )

    def rows(vector: sm.Matrix) -> LoopClosureEquations:
        return LoopClosureEquations(("x", "y", "z"), tuple(vector - sm.Matrix([X, Y, Z])), (S, ALPHA, BETA))

    with pytest.raises(LoopKindMismatchError, match="none of its unknowns is a displacement"):
        HexapodLegLoopSolver().solve(rows(S**2 * spherical(ALPHA, BETA)), start)
    with pytest.raises(LoopKindMismatchError, match="are not the angles of a universal joint"):
        HexapodLegLoopSolver().solve(rows(S * sm.diag(1, 2, 1) * spherical(ALPHA, BETA)), start)
    with pytest.raises(LoopKindMismatchError, match="the start does not close it"):
        HexapodLegLoopSolver().solve(rows(S * spherical(ALPHA, BETA)), start)
    upright = AssemblyBranchStartValues({**start.values, X: 0.0, Y: 1.0, Z: 0.0}, start.moving_symbols)
    with pytest.raises(LoopKindMismatchError, match="it points along the axis of its first hinge"):
        HexapodLegLoopSolver().solve(rows(S * spherical(ALPHA, BETA)), upright)
