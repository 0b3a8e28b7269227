"""The models' equations and what follows from them, without any unit, against published numbers and textbooks."""

from __future__ import annotations

import json

import numpy as np
import pytest
from end_to_end import closed_forms
from end_to_end.test_models import CASES, ROOT
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

import mb2fmu
from mb2fmu import pipeline
from mb2fmu.compiler import evaluation
from mb2fmu.errors import ModelError

angles = st.floats(-3.0, 3.0)
speeds = st.floats(-5.0, 5.0)
some = settings(max_examples=8)
few = settings(max_examples=3)
"""Of motions, each of which is integrated."""
_KEPT: dict[str, pipeline.RightHandSide] = {}


def _model(name: str):
    return ROOT / "models" / f"{name}.py"


def _rhs(name: str) -> pipeline.RightHandSide:
    """Derived once: hypothesis asks many times."""
    if name not in _KEPT:
        _KEPT[name] = mb2fmu.rhs(_model(name))
    return _KEPT[name]


def _integrated(rhs: pipeline.RightHandSide, stop: float, x0=None) -> np.ndarray:
    """The state at ``stop``, to about 1e-11."""
    start = rhs.x0 if x0 is None else x0
    return solve_ivp(rhs, (0.0, stop), start, method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1]


@pytest.mark.repeats  # by day its FMU has the accelerations, in test_published_tables
@pytest.mark.parametrize("method", ["kane", "tmt", "lagrange"])
def test_three_body_pendulum_has_the_published_numbers(method):
    case = json.loads((CASES / "three_body_pendulum.json").read_text())
    derivation = pipeline.derive(_model("three_body_pendulum"), method=method)
    assert derivation.equations.method == method
    x0, r0, p0 = pipeline.start_values(derivation)
    program = derivation.program
    M_f = evaluation.make_evaluator(program, "equations")(0.0, x0, r0, p0)
    u_dot = evaluation.make_evaluator(program, "accelerations")(0.0, x0, r0, p0)
    M = np.array(case["M"], dtype=float)
    forcing, ud = np.array(case["forcing"], dtype=float), np.array(case["ud"], dtype=float)
    np.testing.assert_allclose(M_f[:9].reshape(3, 3), M, rtol=0, atol=1e-12)
    np.testing.assert_allclose(M_f[9:], forcing, rtol=0, atol=1e-12)
    np.testing.assert_allclose(u_dot, ud, rtol=0, atol=1e-12)


def test_three_body_pendulum_starts_where_the_published_numbers_are():
    case = json.loads((CASES / "three_body_pendulum.json").read_text())["inputs"]
    rhs = _rhs("three_body_pendulum")
    degrees = [np.radians(float(q.removesuffix("deg"))) for q in case["q"][:2]]
    np.testing.assert_array_equal(rhs.x0, [*degrees, case["q"][2], *case["u"]])
    ours = dict(zip(rhs.parameters, rhs.p0, strict=True))
    assert ours == {"m": 1.0, "l": 0.6, "g": 9.81, "k_t": 0.01, "k_l": 2.0}
    assert case["p"] == {"m": 1.0, "l": 0.6, "g": 9.81, "kt": 0.01, "kl": 2.0}


@some
@given(q1=angles, q2=angles, u1=speeds, u2=speeds)
def test_two_rods_move_as_derived_by_hand(q1, q2, u1, u2):
    """T = (4/3 m l² + I cos² q2) u1²/2 + I u2²/2, V = -3/2 m g l cos q1 + k (q1² + q2²)/2, by Lagrange's equations."""
    m, length, g, k = 1.0, 0.6, 9.81, 0.5
    inertia = m * length**2 / 12
    sin, cos = np.sin(q2), np.cos(q2)
    u1_dot = 2 * inertia * u1 * u2 * sin * cos - k * q1 - 1.5 * m * g * length * np.sin(q1)
    u1_dot /= 4 / 3 * m * length**2 + inertia * cos**2
    u2_dot = -(u1**2) * sin * cos - k * q2 / inertia
    np.testing.assert_allclose(
        _rhs("two_rods")(0.0, [q1, q2, u1, u2]), [u1, u2, u1_dot, u2_dot], rtol=1e-11, atol=1e-10
    )


@some
@given(theta=angles, v=speeds, omega=speeds, force=st.floats(-20.0, 20.0))
def test_cart_pole_moves_as_its_docstring_says(theta, v, omega, force):
    M, m, length, g, c, b = 1.0, 0.1, 1.0, 9.81, 0.1, 0.001
    sin, cos = np.sin(theta), np.cos(theta)
    coupling = m * length / 2
    matrix = [[M + m, -coupling * cos], [-coupling * cos, m * length**2 / 3]]
    right = [force - c * v - coupling * sin * omega**2, coupling * g * sin - b * omega]
    found = _rhs("cart_pole")(0.0, [0.3, theta, v, omega], [force])
    np.testing.assert_allclose(found, [v, omega, *np.linalg.solve(matrix, right)], rtol=1e-11, atol=1e-10)


@pytest.mark.parametrize("n", [2, 10])
def test_chain_of_n_links_has_the_textbook_mass_matrix(n):
    """M_ij = m l² (n - max(i, j) + 1/2) cos(q_i - q_j), M_ii = m l² (n - i + 1/3), counted from 1."""
    derivation = pipeline.derive(_model("n_link_pendulum"), arguments={"n": n}, method="recursive-composite")
    x0, r0, p0 = pipeline.start_values(derivation)
    found = evaluation.make_evaluator(derivation.program, "equations")(0.0, x0, r0, p0)[: n * n].reshape(n, n)
    i, j = np.meshgrid(np.arange(1, n + 1), np.arange(1, n + 1), indexing="ij")
    share = np.where(i == j, n - i + 1 / 3, n - np.maximum(i, j) + 1 / 2)
    q = x0[:n]
    wanted = 0.5 * 0.4**2 * share * np.cos(q[i - 1] - q[j - 1])
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-13)


@pytest.mark.parametrize("n", [1, 11])
def test_chain_of_too_few_or_too_many_links_is_refused(n):
    with pytest.raises(ModelError, match="n must be 2 to 10"):
        pipeline.load(_model("n_link_pendulum"), {"n": n})


@some
@given(tilt=st.floats(0.3, 1.4), axial=st.floats(60.0, 300.0), slow=st.booleans())
def test_heavy_top_precesses_steadily_where_it_should(tilt, axial, slow):
    A, C, weight_moment = 0.002, 0.0008, 0.5 * 9.81 * 0.05
    precession = closed_forms.steady_precession(A, C, weight_moment, tilt, axial)[0 if slow else 1]
    spin = axial - precession * np.cos(tilt)
    x_dot = _rhs("heavy_top")(0.0, [0.4, tilt, 0.2, precession, 0.0, spin])
    # Its angular accelerations vanish next to the terms that cancel in them.
    scale = (precession**2 + abs(precession * axial) + weight_moment / A) * 1e-11
    assert np.abs(x_dot[3:]).max() < scale


@given(tilt=st.floats(0.3, 1.4), spin=st.floats(80.0, 200.0), precession=st.floats(-3.0, 3.0))
@few
def test_heavy_top_nutates_between_the_limits_of_the_closed_form(tilt, spin, precession):
    top = closed_forms.Top(0.002, 0.0008, 0.5 * 9.81 * 0.05, tilt, precession, spin)
    rhs = _rhs("heavy_top")
    state = _integrated(rhs, 0.3, [0.0, tilt, 0.0, precession, 0.0, spin])
    cosine, angle = top.nutation(np.array([0.3]))
    assert np.cos(state[1]) == pytest.approx(cosine[0], abs=1e-9)
    assert state[0] == pytest.approx(angle[0], abs=1e-9)


# A disc that rolls slower than s² = 20/9 g sin²/(r cos) finds no circle: s = 5.3 rad/s at a lean of 0.6.
@given(lean=st.floats(0.05, 0.6), roll_rate=st.floats(6.0, 15.0))
@few
def test_rolling_disc_keeps_its_steady_circle(lean, roll_rate):
    circle = closed_forms.DiscCircle(0.3, 9.81, lean, roll_rate)
    w = circle.heading_rate
    assert w < 0
    u = [0.0, roll_rate + w * np.sin(lean), w * np.cos(lean)]
    rhs = _rhs("rolling_disc")
    assert rhs.states == ("q1", "q2", "q3", "q4", "q5", "u1", "u2", "u3")
    x_dot = rhs(0.0, [0.7, lean, 0.4, 1.0, 2.0, *u])
    np.testing.assert_allclose(x_dot[:3], [w, 0.0, roll_rate], rtol=0, atol=1e-12)
    assert np.abs(x_dot[5:]).max() < 1e-10
    assert np.hypot(*x_dot[3:5]) == pytest.approx(0.3 * roll_rate, rel=1e-12)


def test_rolling_disc_returns_on_its_steady_circle():
    circle = closed_forms.DiscCircle(0.3, 9.81, 0.3, 8.0)
    w = circle.heading_rate
    assert w < 0
    start = [0.0, 0.3, 0.0, 0.0, 0.0, 0.0, 8.0 + w * np.sin(0.3), w * np.cos(0.3)]
    turn = 2 * np.pi / abs(w)
    for t in (0.3 * turn, turn):
        state = _integrated(_rhs("rolling_disc"), t, start)
        heading, roll, x, y = (value[0] for value in circle.motion(np.array([t])))
        np.testing.assert_allclose(state[:5], [heading, 0.3, roll, x, y], rtol=0, atol=1e-8)


@given(vx=st.floats(-0.3, 0.3), vy=st.floats(-0.3, 0.3), x=st.floats(-0.3, 0.3), y=st.floats(-0.3, 0.3))
@few
def test_turntable_ball_runs_on_a_circle_from_any_start(vx, vy, x, y):
    table = 2 * np.pi * (100 / 3) / 60
    # The ball's particle at the contact moves with the table: v + w × (-r ez) = Omega ez × place.
    w = [(table * x - vy) / 0.05, (vx + table * y) / 0.05, 0.5]
    state = _integrated(_rhs("turntable_ball"), 2.0, [x, y, 1.0, 0.0, 0.0, 0.0, *w])
    wanted = closed_forms.turntable_ball(np.array([2.0]), table, (x, y), (vx, vy))
    np.testing.assert_allclose(state[:2], [c[0] for c in wanted], rtol=0, atol=1e-9)
    assert state[8] == pytest.approx(0.5, abs=1e-12)


@given(w=st.tuples(*3 * [st.floats(-8.0, -0.2) | st.floats(0.2, 8.0)]))
@few
def test_rigid_body_spins_by_jacobis_functions(w):
    inertia = (0.13 / 12, 0.05 / 12, 0.10 / 12)
    state = _integrated(_rhs("rigid_body"), 0.2, [0.0, 0.0, 0.0, *w])
    wanted = closed_forms.free_rigid_body(np.array([0.2]), inertia, w)
    np.testing.assert_allclose(state[3:], wanted[0], rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    ("name", "stop", "ends"),
    [
        ("msl_pendulum", 5.0, [-1.67963156508, -2.31817023299]),
        ("msl_double_pendulum", 3.0, [-2.31791567544, -1.73653457298, 4.09416473222, -0.05039453168]),
    ],
)
def test_msl_models_end_where_a_fresh_computation_ends(name, stop, ends):
    np.testing.assert_allclose(_integrated(_rhs(name), stop), ends, rtol=0, atol=1e-8)


@some
@given(
    angle=st.floats(0.0, 1.8),
    speed=st.floats(-2.0, 2.0),
    activation=st.floats(0.05, 0.95),
    excitation=st.floats(0.0, 1.0),
)
def test_muscle_arm_pulls_and_activates_as_published(angle, speed, activation, excitation):
    """De Groote 2016: the curves, and a' with 15 ms of rise, 60 ms of decay, smoothed by a tanh of steepness 10."""
    rhs = _rhs("muscle_arm")
    height, front, lever, optimal, slack = 0.28, 0.03, 0.04, 0.1157, 0.18
    line = np.array([lever * np.sin(angle) - front, -lever * np.cos(angle) - height])
    length = np.hypot(*line)
    rate = line @ [lever * np.cos(angle), lever * np.sin(angle)] / length * speed
    pull = closed_forms.biceps_force(
        activation, (length - slack) / optimal, rate / (10 * optimal), peak_force=624.3, damping=0.1
    )
    x = [angle, speed, activation]
    outputs = dict(zip(rhs.output_names, rhs.outputs(0.0, x, [excitation]), strict=True))
    assert outputs["biceps_length"] == pytest.approx(length, rel=1e-12)
    # The published constants have three digits; SymPy's are these.
    assert -outputs["biceps_force"] == pytest.approx(pull, rel=2e-3, abs=0.5)
    rising = 0.5 + 0.5 * np.tanh(10 * (excitation - activation))
    factor = 0.5 + 1.5 * activation
    wanted = (rising / (0.015 * factor) + (1 - rising) * factor / 0.06) * (excitation - activation)
    assert rhs(0.0, x, [excitation])[2] == pytest.approx(wanted, rel=1e-10, abs=1e-10)
