"""Explicit loops: closed forms against the rows that they solve, and the motion against other equations."""

import math
from functools import cache

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from hypothesis import given
from hypothesis import strategies as st
from representatives import examples, marked

from mb2fmu import Model, Parts, model, pipeline
from mb2fmu.compiler import evaluation
from mb2fmu.compiler.arithmetic.python_runtime import NonPositiveValueError
from mb2fmu.errors import FormulationError, ModelError
from mb2fmu.fmu.interface import form_fmu_interface
from mb2fmu.mechanics import formulations, mechanism
from mb2fmu.mechanics.formulations.loops import AssemblyBranchStartValues, LoopClosureEquations, LoopKindMismatchError
from mb2fmu.mechanics.formulations.loops.planar_loop_closed_forms import (
    CrankSliderLoopSolver,
    FourBarLoopSolver,
    SlidingLinkLoopSolver,
)
from mb2fmu.mechanics.formulations.loops.rod_and_hexapod_leg_closed_forms import RodLoopSolver
from mb2fmu.mechanics.mechanism.numeric.numeric_mechanism_evaluation import MechanismEvaluator
from mb2fmu.report.equation_display.equation_text import format_equations

# --- whole models ----------------------------------------------------------------------------------------------------

KINDS = {
    "transmission": ["Transmission", "Transmission"],
    "four_bar": ["FourBar"],
    "crank_slider": ["CrankSlider"],
    "excavator_arm": ["FourBarTrans", "FourBarTrans", "FourBar"],
    "n_four_bar": ["FourBar", "FourBar"],
}


@cache
def derived(name):
    return pipeline.derive(f"models/{name}.py", constraints="explicit", method="tmt")


@pytest.mark.parametrize("name", marked(KINDS, repeating=["excavator_arm"]))
def test_loops_are_recognised_and_said(name):
    derivation = derived(name)
    assert sorted(form.kind for form in derivation.equations.closed_forms) == sorted(KINDS[name])
    assert derivation.treated.startswith("explicit, as requested")
    assert all(form.name in derivation.treated for form in derivation.equations.closed_forms)


@pytest.mark.parametrize("name", marked(KINDS, repeating=["excavator_arm"]))
def test_the_motion_is_that_of_the_multipliers(name):
    """At random states: positions and speeds on the constraints, accelerations those of M u' + Aᵀλ = f, A u' = −γ."""
    derivation = derived(name)
    e, program, m = derivation.equations, derivation.program, derivation.mechanism
    x0, r, p = pipeline.start_values(derivation)
    numeric = MechanismEvaluator(m)
    phi = sm.lambdify([m.t, *m.q, *m.p], [row for _, row in m.holonomic])
    entries = {k: evaluation.make_evaluator(program, k) for k in ("position", "dependent_speeds", "accelerations")}
    outputs = sum(o.level == "position" for o in e.outputs)
    n_q = len(e.q_independent)
    generator = np.random.default_rng(5)
    for _ in range(5):
        x = x0 + 0.3 * generator.uniform(-1, 1, len(x0))
        q, u = np.zeros(len(e.q)), np.zeros(len(e.u))
        q[list(e.q_independent)], u[list(e.u_independent)] = x[:n_q], x[n_q : n_q + len(e.u_independent)]
        q[list(e.q_dependent)] = entries["position"](0.0, x, r, p)[outputs:]
        u[list(e.u_dependent)] = entries["dependent_speeds"](0.0, x, r, p)
        assert np.abs(phi(0.0, *q, *p)) == pytest.approx(0.0, abs=1e-13)
        numeric.set_state(0.0, q, u, np.zeros(0), r, numeric.parameters(p))
        A, b, gamma = numeric.velocity_constraint_terms()
        assert A @ u + b == pytest.approx(0.0, abs=1e-12 * (1 + np.abs(u).max()))
        M, f = numeric.unconstrained_mass_and_forcing()
        both = np.block([[M, A.T], [A, np.zeros((len(A), len(A)))]])
        expected = np.linalg.lstsq(both, np.concatenate([f, -gamma]), rcond=None)[0][: len(u)]
        found = entries["accelerations"](0.0, x, r, p)
        assert found == pytest.approx(expected, rel=1e-8, abs=1e-8 * np.max(np.abs(expected)))


@pytest.mark.parametrize("name", marked(KINDS, repeating=["excavator_arm"]))
def test_states_are_independent_and_the_rest_is_calculated(name):
    derivation = derived(name)
    e = derivation.equations
    assert len(e.states) == len(e.q) + len(e.u) - len(e.holonomic) - len(e.velocity_constraints.names)
    variables = {v.name: v for v in form_fmu_interface(derivation.definition, e, derivation.program).variables}
    for i, coordinate in enumerate(derivation.definition.coordinates):
        found = variables[coordinate.name]
        dependent = i in e.q_dependent
        assert (found.initial, found.source) == (("calculated", "position") if dependent else ("exact", "state"))
        assert found.start == (None if dependent else coordinate.start)
        assert (f"der({coordinate.name})" in variables) != dependent
    assert "constraints.rate" not in variables


def test_a_crank_that_turns_round_and_round_has_continuous_angles():
    derivation = derived("four_bar")
    x, r, p = pipeline.start_values(derivation)
    place = evaluation.make_evaluator(derivation.program, "position")
    turns = np.linspace(0.0, 4 * math.pi, 400)
    angles = np.array([place(0.0, [x[0] + angle, 0.0], r, p)[-2:] for angle in turns])
    assert np.max(np.abs(np.diff(angles, axis=0))) < 0.2
    # From the ground the coupler comes back to where it was: from the crank it has lost two turns.
    assert angles[-1] - angles[0] == pytest.approx([-4 * math.pi, 0.0], abs=1e-12)
    starts = {c.name: c.start for c in derivation.definition.coordinates}
    assert angles[0] == pytest.approx([starts["q2"], starts["q3"]], abs=1e-12)


def test_the_python_listing_moves_as_the_program_does():
    derivation = derived("four_bar")
    code = {}
    exec(format_equations(derivation.equations, "FourBar", "python"), code)
    x, r, p = pipeline.start_values(derivation)
    x = x + np.array([0.7, 1.3])
    found = evaluation.make_evaluator(derivation.program, "rhs")(0.0, x, r, p)
    assert code["rhs"](0.0, x, r, p) == pytest.approx(found, rel=1e-12)
    assert "q2 = " in format_equations(derivation.equations, "FourBar")


def test_the_solution_ends_before_two_links_come_into_one_line():
    """An integrator that steps over it would go on with the speeds of the other branch, and nothing would show it."""
    derivation = derived("four_bar")
    x, r, p = pipeline.start_values(derivation)
    reach = list(derivation.program.layout.parameters).index("lb")
    rhs = evaluation.make_evaluator(derivation.program, "rhs")
    gap = np.hypot(2.0 - 0.8 * np.cos(x[0]), 0.8 * np.sin(x[0]))  # between the ends of crank and ground
    for sine, inside in ((0.02, True), (0.005, False)):
        stretched = np.sqrt(1.0 - sine**2)  # minus the cosine between coupler and rocker, which is 1 m long
        p[reach] = np.sqrt(stretched**2 + gap**2 - 1.0) - stretched
        if inside:
            assert np.isfinite(rhs(0.0, x, r, p)).all()
        else:
            with pytest.raises(NonPositiveValueError, match="comes to where two of its branches meet"):
                rhs(0.0, x, r, p)


def test_where_the_loop_cannot_close_that_is_said():
    derivation = derived("four_bar")
    x, r, p = pipeline.start_values(derivation)
    lengths = [list(derivation.program.layout.parameters).index(name) for name in ("lb", "lc")]
    p[lengths] = 0.7, 0.3  # with the crank at 10° their ends are 1.2 m apart
    with pytest.raises(
        NonPositiveValueError,
        match=r"the loop cannot be closed, or comes .* meet \(FourBar of holonomic\[1\], holonomic\[2\]\)",
    ):
        evaluation.make_evaluator(derivation.program, "rhs")(0.0, x, r, p)


# --- single loops ----------------------------------------------------------------------------------------------------

Q1, Q2, Q3, S, T = sm.symbols("q1 q2 q3 s t", real=True)
LENGTHS = sm.symbols("a b c d e f", positive=True)
VALUES = (0.8, 2.0, 1.1, 1.9, 0.3, -0.2)


def turned(angle, x, y=0):
    return sm.Matrix([x * sm.cos(angle) - y * sm.sin(angle), x * sm.sin(angle) + y * sm.cos(angle)])


def closing(rows, start):
    """Start values of Q2 and the second unknown that close the rows, by Newton's method from ``start``."""
    unknowns = sorted(start, key=str)
    values = dict(zip(LENGTHS, VALUES, strict=True)) | {Q1: 0.4, T: 0.0}
    found = sm.nsolve([row.subs(values) for row in rows], unknowns, [start[q] for q in unknowns], prec=30)
    return values | {q: float(v) for q, v in zip(unknowns, found, strict=True)}


def compiled(form, rows):
    """Known values → unknowns and rows."""
    known = [Q1, *LENGTHS]
    steps, results = [(item.symbol, item.expression) for item in form.assignments], [*form.unknowns, *rows]
    return sm.lambdify(known, results, modules="math", cse=lambda _: (steps, results))


a, b, c, d, e, f = LENGTHS
SHAPES = {
    "relative angles": (
        FourBarLoopSolver(),
        turned(Q1, a) + turned(Q1 + Q2, b) + turned(Q1 + Q2 + Q3, c) - turned(0, d),
        {Q2: 0.1, Q3: -2.4},
    ),
    "absolute angles, bent links": (
        FourBarLoopSolver(),
        turned(Q1, a, e) + turned(Q2, b, f) - turned(Q3, c, e) - turned(0, d, f),
        {Q2: 0.5, Q3: 1.4},
    ),
    "the other way round, rows swapped": (
        FourBarLoopSolver(),
        sm.Matrix([[0, 1], [1, 0]]) * (turned(-Q1, a) + turned(-Q2, b) + turned(Q3, c) - turned(0, d)),
        {Q2: -0.6, Q3: 2.0},
    ),
    "crank-slider with offset": (
        CrankSliderLoopSolver(),
        turned(Q1, a) + turned(Q2, b) - turned(0, S, e),
        {Q2: -0.1, S: 2.6},
    ),
    "crank-slider, the other branch, inclined": (
        CrankSliderLoopSolver(),
        turned(Q1, a) + turned(Q2, b) - turned(e, S, f),
        {Q2: 3.0, S: -1.3},
    ),
    "cylinder": (SlidingLinkLoopSolver(), turned(Q1, a, e) - turned(0, d) + turned(Q2, S), {Q2: 0.1, S: 1.2}),
    "cylinder beside its pins": (
        SlidingLinkLoopSolver(),
        turned(Q1, a) - turned(0, d) + turned(Q2, S + c, f),
        {Q2: 0.1, S: 0.2},
    ),
    "negative displacement": (
        SlidingLinkLoopSolver(),
        turned(Q1, a) - turned(0, d) + turned(Q2, S, f),
        {Q2: 3.2, S: -1.2},
    ),
}


@cache
def solved(name):
    kind, rows, near = SHAPES[name]
    unknowns = tuple(near)
    values = closing(list(rows), near)
    # As SymPy's frames leave it: products of sines and cosines, not sums of angles.
    phi = tuple(sm.expand_trig(row) for row in rows)
    start = AssemblyBranchStartValues(dict(values), frozenset({Q1, Q2, Q3, S, T}))
    return compiled(kind.solve(LoopClosureEquations(("x", "y"), phi, unknowns), start), list(rows)), values, unknowns


@pytest.mark.parametrize("name", SHAPES)
@examples(6)
@given(st.floats(-0.5, 0.5), st.lists(st.floats(0.98, 1.02), min_size=6, max_size=6))
def test_closed_forms_solve_their_rows(name, way, factors):
    """At other places and lengths, on the branch of the start. With lengths farther off the first need not close."""
    function, start, unknowns = solved(name)
    lengths = [factor * value for factor, value in zip(factors, VALUES, strict=True)]
    assert function(start[Q1] + way, *lengths)[2:] == pytest.approx([0.0, 0.0], abs=1e-13)
    assert function(start[Q1], *VALUES)[:2] == pytest.approx([start[q] for q in unknowns], abs=1e-12)


def test_a_rod_between_two_links_gives_one_angle_on_either_side():
    """The square of its length is all that is said of it."""
    apart = turned(Q1, a) + turned(Q2, b, e) - turned(0, d, f)
    row = sm.expand(apart.dot(apart) - c**2)
    known = dict(zip(LENGTHS, VALUES, strict=True)) | {Q1: 0.4}
    sides = []
    for guess in (0.5, 2.0, 0.5 + 4 * math.pi):
        there = float(sm.nsolve(row.subs(known), Q2, guess))
        form = RodLoopSolver().solve(
            LoopClosureEquations(("rod",), (row,), (Q2,)),
            AssemblyBranchStartValues(known | {Q2: there}, frozenset({Q1, Q2})),
        )
        function = compiled(form, [row])
        assert function(0.4, *VALUES)[0] == pytest.approx(there, abs=1e-12)
        assert [function(0.4 + way, *VALUES)[1] for way in (-0.2, 0.1, 0.3)] == pytest.approx([0.0] * 3, abs=1e-13)
        sides.append(there)
    assert abs(sides[0] - sides[1]) > 0.1
    with pytest.raises(LoopKindMismatchError, match="s is no angle in row"):
        RodLoopSolver().solve(
            LoopClosureEquations(("row",), (S * sm.cos(Q1) - a,), (S,)),
            AssemblyBranchStartValues(known | {S: 0.8}, frozenset({S, Q1})),
        )


def test_what_is_no_such_loop_is_reported_why():
    start = AssemblyBranchStartValues(
        {Q1: 0.4, Q2: 0.1, Q3: -2.4} | dict(zip(LENGTHS, VALUES, strict=True)), frozenset({Q1, Q2, Q3})
    )
    stretched = tuple(sm.Matrix([[1, 0], [0, 2]]) * (turned(Q1, a) + turned(Q2, b) + turned(Q3, c)))
    with pytest.raises(LoopKindMismatchError, match="not one vector in both rows"):
        FourBarLoopSolver().solve(LoopClosureEquations(("x", "y"), stretched, (Q2, Q3)), start)
    with pytest.raises(
        LoopKindMismatchError, match="not one arm and one slide, but an arm that turns with q2 and an arm"
    ):
        CrankSliderLoopSolver().solve(
            LoopClosureEquations(("x", "y"), tuple(turned(Q1, a) + turned(Q2, b) + turned(Q3, c)), (Q2, Q3)), start
        )
    wild = (turned(Q1, a) + turned(Q2, b))[0] + sm.sqrt(Q3), (turned(Q1, a) + turned(Q2, b))[1]
    with pytest.raises(LoopKindMismatchError, match="q3 stands in sqrt"):
        FourBarLoopSolver().solve(LoopClosureEquations(("x", "y"), wild, (Q2, Q3)), start)


def test_a_start_that_lies_flat_has_no_branch():
    flat = dict(zip(LENGTHS, VALUES, strict=True)) | {a: 0.5, b: 1.0, c: 0.5, d: 2.0, Q1: 0.0, Q2: 0.0, Q3: 0.0}
    rows = turned(Q1, a) + turned(Q2, b) + turned(Q3, c) - turned(0, d)
    with pytest.raises(LoopKindMismatchError, match="it lies flat, where its two branches meet"):
        FourBarLoopSolver().solve(
            LoopClosureEquations(("x", "y"), tuple(rows), (Q2, Q3)),
            AssemblyBranchStartValues(flat, frozenset({Q1, Q2, Q3})),
        )


def test_loops_of_no_known_kind_are_refused_with_the_reasons():
    with pytest.raises(FormulationError, match=r"no kind of loop gives .*Transmission: .* is not linear in"):
        pipeline.derive("models/bowl.py", constraints="explicit", method="tmt")


# --- loops that the model says itself --------------------------------------------------------------------------------


def bead(*branches):
    """A particle on a ring of radius l, in Cartesian coordinates, y upwards; it starts on the lower half."""
    q = x, y = me.dynamicsymbols("x y")
    u = vx, vy = me.dynamicsymbols("vx vy")
    l, m, g = sm.symbols("l m g", positive=True)
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, vx * N.x + vy * N.y)
    ring = x**2 + y**2 - l**2
    parts = Parts(
        frame=N,
        origin=O,
        q=q,
        u=u,
        kinematic_equations=[v - place.diff() for place, v in zip(q, u, strict=True)],
        bodies=[me.Particle("bead", P, m)],
        loads=[me.Force(P, -m * g * N.y)],
        holonomic_constraints=[ring],
    )
    made = Model("Bead", parts)
    for symbol, value in ((l, 0.5), (m, 2.0), (g, 9.81)):
        made.parameter(symbol, value, "1")
    made.coordinate(x, 0.3, "m")
    made.coordinate(y, -0.4, "m")
    made.speed(vx, 0.8, "m/s")
    made.speed(vy, 0.6, "m/s", kind="guess")
    root = sm.sqrt(l**2 - x**2)
    given = branches or ({y: root}, {y: -root})
    ways = [{{"x": x, "y": y}.get(key, key): value for key, value in branch.items()} for branch in given]
    made.loop([ring], *ways, positive=[l**2 - x**2], name="ring")
    return made


def test_a_closed_form_of_the_model_s_own_is_taken_on_the_branch_of_the_start():
    derivation = pipeline.derive(bead(), constraints="explicit", method="tmt")
    assert derivation.program.layout.states == ("x", "vx")
    x, r, p = pipeline.start_values(derivation)
    (y,) = evaluation.make_evaluator(derivation.program, "position")(0.0, x, r, p)
    ax, ay = evaluation.make_evaluator(derivation.program, "accelerations")(0.0, x, r, p)
    assert y == pytest.approx(-0.4, abs=1e-15)
    # Along the ring gravity acts, towards its centre v²/l does.
    assert [0.8 * ax + 0.6 * ay, -0.6 * ax + 0.8 * ay] == pytest.approx([-0.6 * 9.81, 1.0 / 0.5], abs=1e-12)
    with pytest.raises(
        NonPositiveValueError, match=r"the loop cannot be closed, or comes .* meet \(ring of holonomic\[1\]\)"
    ):
        evaluation.make_evaluator(derivation.program, "rhs")(0.0, np.array([0.6, 0.0]), r, p)


@pytest.mark.parametrize(
    ("branches", "wrong"),
    [
        ([{"y": sm.Float(0.4)}], "none of the 1 branches of ring is that of the start, y = -0.4"),
        ([{"y": sm.Float(-0.4)}, {"y": -sm.Float(0.4)}], "more than one of the 2 branches"),
        ([{"y": sm.Float(-0.4)}], "the closed form of ring does not solve its rows"),
        ([{"y": sm.Symbol("k") - 0.4}], "k in ring is no coordinate, parameter, or time"),
    ],
)
def test_a_wrong_closed_form_is_refused(branches, wrong):
    with pytest.raises(FormulationError, match=wrong):
        pipeline.derive(bead(*branches), constraints="explicit", method="tmt")


def test_a_closed_form_gives_one_coordinate_per_row():
    with pytest.raises(ModelError, match=r"each branch of ring must give the same 1 coordinates(.|\n)*w, which"):
        pipeline.derive(bead({"x": sm.S.One, "y": sm.S.One, sm.Symbol("w"): sm.S.One}), constraints="explicit")


def test_auto_takes_couplings_and_leaves_what_may_fail_on_the_way():
    definition = mechanism.solve_loop_closure_start_values(
        mechanism.read_mechanism(model.check_model(model.load("models/transmission.py")))
    )
    found = formulations.plan_constraint_treatment(definition)
    assert (found.treatment, len(found.loops.closed_forms)) == ("explicit", 2)
    assert "couplings have no position where it fails" in found.reason
    assert formulations.plan_constraint_treatment(definition, "attractor").treatment == "attractor"
    assert formulations.plan_constraint_treatment(derived("crank_slider").mechanism).treatment == "attractor"
