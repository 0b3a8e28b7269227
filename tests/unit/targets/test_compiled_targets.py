"""Fortran, C# and Julia: x', outputs and start values are those of the C code; steps are those of the same method."""

from __future__ import annotations

import contextlib
import csv
import io
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from representatives import by_night
from source_programs import TARGETS, Floats, Point, Values, compile_c, evaluate, evaluate_c, missing, run_program

from mb2fmu import pipeline
from mb2fmu.compiler.arithmetic.python_newton import SingularMatrixError
from mb2fmu.compiler.evaluation import make_evaluator
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.scalar_program import (
    EquationSolveBlock,
    PiecewisePolynomial,
    ProgramVariableLayout,
    ScalarProgram,
    read_initial_discrete_memory,
)
from mb2fmu.model.scalar_operation_table import Op

ROOT = Path(__file__).parents[3]
MODELS = ROOT / "models"

# A chain whose functions are cut into parts; a loop by remembered coordinates.
FEW = [("models/chain.py", {}), ("models/four_bar.py", {"constraints": "partition"})]
# Kane's method with dependent speeds; a loop by projection; quaternions with several inputs; explicit time; curves and
# auxiliary states; a parallel robot; robots without and with closed loops from files.
MANY = [
    ("models/rolling_disc.py", {"method": "kane"}),
    ("models/four_bar.py", {"constraints": "attractor"}),
    ("models/quadrotor_slung_load.py", {}),
    ("models/turntable_ball.py", {}),
    ("models/muscle_arm.py", {}),
    ("models/hexapod.py", {}),
    ("docs/pictures/arm.urdf", {}),
    ("docs/pictures/five_bar.urdf", {}),
    ("models/robot_arm.py", {"method": "recursive"}),
    ("models/hand.py", {}),
]

Case = tuple[pipeline.DerivationResult, list[Point], Values, Floats]


def points_of(derivation: pipeline.DerivationResult, count: int) -> list[Point]:
    """Random states near the start, with other inputs, parameters and times."""
    x0, r0, p0 = pipeline.start_values(derivation)
    g = np.random.default_rng(3)
    return [
        Point(
            float(g.uniform(0.0, 3.0)),
            x0 + g.uniform(-0.05, 0.05, len(x0)),
            r0 + g.uniform(-1.0, 1.0, len(r0)),
            p0 * g.uniform(0.99, 1.01, len(p0)),
        )
        for _ in range(count)
    ]


@pytest.fixture(
    scope="module",
    params=[*FEW, *(pytest.param(case, marks=pytest.mark.repeats) for case in MANY)],
    ids=lambda case: "-".join([Path(case[0]).stem, *case[1].values()]),
)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    path, options = request.param
    derivation = pipeline.derive(ROOT / path, **options)
    points = points_of(derivation, 50)
    wanted = evaluate_c(derivation, points, tmp_path_factory.mktemp("c"))
    return derivation, points, wanted, steps_by_numpy(derivation, points[:5], 1e-3)


def largest_error(found: Floats, wanted: Floats) -> float:
    """Largest difference, of the largest entry of its row or 1."""
    assert found.shape == wanted.shape
    scale = np.maximum(1.0, np.abs(wanted).max(axis=1, initial=0.0, keepdims=True))
    return float(np.max(np.abs(found - wanted) / scale, initial=0.0))


def steps_by_numpy(derivation: pipeline.DerivationResult, points: list[Point], h: float) -> Floats:
    """From each point a step of the classical Runge–Kutta method with x' by NumPy."""
    rhs, memory = make_evaluator(derivation.program, "rhs"), read_initial_discrete_memory(derivation.program)

    def slope(point: Point, part: float, moved: Floats) -> Floats:
        return np.asarray(rhs(point.t + part * h, point.x + part * h * moved, point.r, point.p, memory))

    moved = []
    for point in points:
        k1 = slope(point, 0.0, np.zeros_like(point.x))
        k2 = slope(point, 0.5, k1)
        k3 = slope(point, 0.5, k2)
        moved.append(point.x + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + slope(point, 1.0, k3)))
    return np.array(moved)


@pytest.mark.parametrize(  # by day JAX has these values in test_jax, which compiles each model for minutes
    "target", [pytest.param(each, marks=[pytest.mark.repeats] * (each == "jax")) for each in TARGETS]
)
def test_values_are_those_of_the_c_code(case: Case, target: str, tmp_path: Path) -> None:
    if reason := missing(target):
        pytest.skip(reason)
    derivation, points, wanted, stepped = case
    count = 5 if target == "julia" else len(points)  # executed by Python
    found = evaluate(target, derivation, points[:count], tmp_path)
    assert largest_error(found.dx, wanted.dx[:count]) < 1e-13
    assert largest_error(found.y, wanted.y[:count]) < 1e-13
    assert largest_error(found.start, wanted.start[:count]) < 1e-13
    assert found.stepped is not None
    assert largest_error(found.stepped[:5], stepped) < 1e-13


@cache
def systems() -> ScalarProgram:
    """Linear systems of every kind, the last of rank 2, and a lookup table with its slope; all depend on the states."""
    b, n = ProgramBuilder(ProgramVariableLayout(states=("x", "y"))), 3
    g = np.random.default_rng(8)
    x, y = b.state(0), b.state(1)

    def matrix(numbers: Floats, by: int) -> list[list[int]]:
        return [[b.mul(b.constant(float(value)), by) for value in row] for row in numbers]

    def lower(full: list[list[int]]) -> tuple[int, ...]:
        return tuple(full[i][j] for i in range(n) for j in range(i + 1))

    square, tall = g.uniform(-1.0, 1.0, (n, n)), g.uniform(-1.0, 1.0, (n, 2))
    square[0, 0] = 0.0  # rows are exchanged
    right = [b.add(b.constant(float(value)), y) for value in g.uniform(-1.0, 1.0, n)]
    definite = lower(matrix(square @ square.T + np.eye(n), b.add(x, b.constant(3.0))))
    blocks = [
        EquationSolveBlock("ldlt_factor", n, definite, name="a"),
        EquationSolveBlock("lu_factor", n, tuple(node for row in matrix(square, x) for node in row), name="b"),
        EquationSolveBlock("least_norm_factor", n, lower(matrix(tall @ tall.T, b.mul(x, x))), name="c", rank=2),
    ]
    results = [node for block in blocks for node in b.solution(b.block(block), right)]
    curve = PiecewisePolynomial("curve", (-1.0, 0.5, 1.0, 2.0), ((1.0, -2.0, 0.5), (0.3, 0.1, -0.7), (2.0, 0.0, 1.5)))
    results += [b.table(curve, order, each) for each in (x, y) for order in (0, 1)]
    b.entry("rhs", ("x", "y"), results[:2])
    b.entry("outputs", [f"v{i}" for i in range(len(results))], results)
    return b.build()


STATES = np.array([[0.7, -0.4], [-1.3, 0.9], [2.5, 1.7], [0.5, 1.0]])


@pytest.mark.parametrize("target", TARGETS)
def test_linear_systems_and_tables_are_those_of_the_program(target: str, tmp_path: Path) -> None:
    if reason := missing(target):
        pytest.skip(reason)
    f = make_evaluator(systems(), "outputs")
    wanted = np.array([f(0.0, x, (), ()) for x in STATES])
    assert largest_error(run_program(target, systems(), list(STATES), tmp_path), wanted) < 1e-13


CRANK = (0.17453292519943295, 0.8, 2.0, 1.0, 2.0)
"""Angle of the crank, lengths of crank, coupler, rocker and ground."""
FAR = [
    (-0.93, 1.0, 2.204, 1.27, 2.282),
    (-0.301, 0.765, 1.963, 1.157, 1.529),
    (-0.529, 0.711, 2.305, 0.708, 2.343),
    (-1.209, 0.776, 1.865, 1.032, 2.467),
]
"""Smooth steps lead across a singular position there: only the determinant's sign shows it."""


@cache
def linkage(*, with_limits: bool) -> ScalarProgram:
    """Angles of coupler and rocker from the link before; states: what :data:`CRANK` has, then the guess."""
    limits = (1.0, 1.0, 1e-9, 1e-9) if with_limits else ()
    names = ("crank", "la", "lb", "lc", "ln", *(f"limit{i}" for i in range(len(limits))))
    i = ProgramBuilder(ProgramVariableLayout(states=("coupler", "rocker"), parameters=names))
    crank, la, lb, lc, ln = map(i.parameter, range(5))
    b = i.add(crank, i.state(0))
    c = i.add(b, i.state(1))
    (xa, xb, xc), (ya, yb, yc) = (
        [i.mul(length, i.unary(op, angle)) for length, angle in ((la, crank), (lb, b), (lc, c))]
        for op in (Op.COS, Op.SIN)
    )
    gap_x, gap_y = i.sub(i.add(i.add(xa, xb), xc), ln), i.add(i.add(ya, yb), yc)
    slopes = j11, j12, j21, j22 = i.neg(i.add(yb, yc)), i.neg(yc), i.add(xb, xc), xc
    determinant = i.sub(i.mul(j11, j22), i.mul(j12, j21))
    step = [
        i.div(i.sub(i.mul(j12, gap_y), i.mul(j22, gap_x)), determinant),
        i.div(i.sub(i.mul(j21, gap_x), i.mul(j11, gap_y)), determinant),
    ]
    i.entry("residual", ("x", "y"), (gap_x, gap_y))
    i.entry("step", ("coupler", "rocker"), step)
    i.entry("jacobian", ("xc", "xr", "yc", "yr"), slopes)
    o = ProgramBuilder(ProgramVariableLayout(states=(*names[:5], "coupler", "rocker")))
    theta = [*map(o.state, range(5)), *map(o.constant, limits)]
    rows = ("along", "across") if with_limits else ()
    found = o.newton(i.build(), theta, [o.state(5), o.state(6)], "the linkage", rows)
    o.entry("rhs", o.build().layout.states, [*map(o.state, range(5)), *found])
    o.entry("outputs", ("coupler", "rocker"), found)
    return o.build()


@pytest.mark.parametrize(
    ("target", "with_limits"),
    [(each, True) for each in TARGETS]
    + [("fortran", False), *by_night(("csharp", False), ("jax", False), ("julia", False))],
)
def test_newtons_method_goes_the_way_of_the_program(target: str, with_limits: bool, tmp_path: Path) -> None:
    """Also near singular positions, across them, and where the linkage cannot be closed."""
    if reason := missing(target):
        pytest.skip(reason)
    program, g = linkage(with_limits=with_limits), np.random.default_rng(4)
    evaluator = make_evaluator(program, "outputs")
    start = evaluator(0.0, (*CRANK, 0.3, -2.4), (), ())
    lengths = np.array(CRANK[1:]) * g.uniform(0.65, 1.35, (60, 4))
    moved = np.column_stack([CRANK[0] + g.uniform(-1.5, 1.5, 60), lengths])
    count = 12 if target == "julia" else 64  # executed by Python
    states = [np.array([*given, *start]) for given in (*FAR, *moved)][:count]
    wanted = np.full((len(states), 2), np.nan)
    for x, row in zip(states, wanted, strict=True):
        with contextlib.suppress(SingularMatrixError):
            row[:] = evaluator(0.0, x, (), ())
    solved = ~np.isnan(wanted[:, 0])
    assert count / 3 < solved.sum() < count - 4
    found = run_program(target, program, states, tmp_path)
    np.testing.assert_array_equal(np.isnan(found[:, 0]), ~solved)
    np.testing.assert_allclose(found[solved], wanted[solved], rtol=0.0, atol=1e-12)


@pytest.fixture(scope="module")
def projected() -> pipeline.DerivationResult:
    return pipeline.derive(MODELS / "four_bar.py", constraints="attractor")


@pytest.mark.parametrize(  # that JAX reports is seen of the linkage above
    "target", [pytest.param(each, marks=[pytest.mark.repeats] * (each == "jax")) for each in TARGETS]
)
def test_what_has_no_solution_is_reported(target: str, projected: pipeline.DerivationResult, tmp_path: Path) -> None:
    """A crank that is longer than the others together."""
    if reason := missing(target):
        pytest.skip(reason)
    (point, *_) = points_of(projected, 1)
    p = point.p.copy()
    p[0] = 50.0
    with pytest.raises(ArithmeticError, match="no solution is found for"):
        evaluate(target, projected, [Point(point.t, point.x, point.r, p)], tmp_path)


@pytest.mark.parametrize("target", ["fortran", "csharp"])
def test_the_main_program_moves_as_that_of_the_c_code(target: str, tmp_path: Path) -> None:
    if reason := missing(target):
        pytest.skip(reason)
    derivation = pipeline.derive(MODELS / "cart_pole.py")
    name = derivation.definition.name
    pipeline.export_target_source_code(derivation, "c", tmp_path / "c")
    pipeline.export_target_source_code(derivation, target, tmp_path)
    build, command = {
        "fortran": (["gfortran", "-std=f2008", f"{name}.f90", f"{name}_main.f90", "-o", "main"], ["./main"]),
        "csharp": (["mcs", f"{name}.cs", f"{name}Main.cs", "-out:main.exe"], ["mono", "main.exe"]),
    }[target]
    subprocess.run(build, cwd=tmp_path, check=True, timeout=300)
    printed = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True, timeout=300).stdout
    rows = np.array(list(csv.reader(io.StringIO(printed))), dtype=float)
    whole = subprocess.run([compile_c(tmp_path / "c", "main")], check=True, capture_output=True, text=True).stdout
    wanted = np.array(list(csv.reader(io.StringIO(whole)))[1:], dtype=float)
    n = len(derivation.program.layout.states)
    np.testing.assert_allclose(rows[:, : n + 1], wanted[:, : n + 1], rtol=1e-4, atol=1e-4)
