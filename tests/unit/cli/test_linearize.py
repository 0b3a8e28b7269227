"""Linear equations about operating points, against closed forms; the bicycle has its own test."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import sympy as sm
from click.testing import CliRunner, Result
from lxml import etree
from sympy.physics import mechanics as me

import mb2fmu
from mb2fmu import Model, Parts, pipeline
from mb2fmu.analysis import Linearization, linearize, make_operating_point_start
from mb2fmu.cli import commands
from mb2fmu.errors import AnalysisError
from mb2fmu.report.figures.eigenvalue_figure import draw_eigenvalues, format_eigenvalues

MODELS = Path(__file__).parents[3] / "models"


def _oscillator(**start: float) -> Model:
    """Two masses between three springs, a damper at the first, a force on the second."""
    q, u = me.dynamicsymbols("q1:3"), me.dynamicsymbols("u1:3")
    force = me.dynamicsymbols("force")
    m, k, c = sm.symbols("m k c")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    points = [O.locatenew(f"P{i}", (i + q[i]) * N.x) for i in range(2)]
    bodies = [me.Particle(f"mass{i}", point, m) for i, point in enumerate(points)]
    pulls = [-k * q[0] + k * (q[1] - q[0]) - c * u[0], -k * q[1] - k * (q[1] - q[0]) + force]
    parts = Parts(
        frame=N, origin=O, q=q, u=u, kinematic_equations=[a.diff() - b for a, b in zip(q, u, strict=True)],
        bodies=bodies, loads=[(p, f * N.x) for p, f in zip(points, pulls, strict=True)],
    )  # fmt: skip
    model = Model("Oscillator", parts)
    for symbol, value in ((m, 2.0), (k, 50.0), (c, start.pop("c", 0.0))):
        model.parameter(symbol, value)
    model.input(force, 0.0, "N")
    for a, b in zip(q, u, strict=True):
        model.coordinate(a, start.get(str(a.func), 0.1), "m")
        model.speed(b, 0.3, "m/s")
    model.output("sum", q[0] + q[1], "m")
    model.output("push", force + u[1].diff(), "N")
    return model


@pytest.fixture(scope="module")
def disc() -> pipeline.DerivationResult:
    """Equations of a disc that rolls."""
    return pipeline.derive(MODELS / "rolling_disc.py")


def linearized(derivation: pipeline.DerivationResult, at: dict[str, float]) -> Linearization:
    """Linear equations of a model whose equations are known."""
    start = make_operating_point_start(derivation.definition, derivation.equations, at)
    return linearize(derivation.equations, derivation.program, start)


def test_two_masses():
    """Frequencies sqrt(k/m) and sqrt(3 k/m); B, C, D by hand."""
    found = mb2fmu.linearize(_oscillator())
    assert found.point.motion == "equilibrium"
    assert found.point.x == pytest.approx(np.zeros(4), abs=1e-12)
    assert sorted(abs(found.eigenvalues.imag)) == pytest.approx(sorted([5, 5, 75**0.5, 75**0.5]))
    assert np.allclose(found.eigenvalues.real, 0, atol=1e-12)
    assert pytest.approx(np.array([[0], [0], [0], [0.5]])) == found.B
    assert pytest.approx(np.array([[1, 1, 0, 0], [25, -50, 0, 0]])) == found.C
    assert pytest.approx(np.array([[0], [1.5]])) == found.D


def test_a_held_state_needs_a_trimmed_input():
    with pytest.raises(AnalysisError, match="residuals remain"):
        mb2fmu.linearize(_oscillator(), at={"q2": 0.2})
    found = mb2fmu.linearize(_oscillator(), at={"q2": 0.2}, trim=["force"])
    assert found.point.x[:2] == pytest.approx([0.1, 0.2])
    assert found.point.r == pytest.approx([50 * 0.3])


def _jack() -> Model:
    """A mass of 10 t on an arm, held by a force at half a metre from the hinge."""
    angle, rate, force = me.dynamicsymbols("angle rate force")
    m, g = sm.symbols("m g")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    A = N.orientnew("A", "Axis", (angle, N.z))
    P = O.locatenew("P", 3 * A.x)
    parts = Parts(
        frame=N, origin=O, q=[angle], u=[rate], kinematic_equations=[angle.diff() - rate],
        bodies=[me.Particle("mass", P, m)], loads=[(P, -m * g * N.y), (A, force / 2 * N.z)],
    )  # fmt: skip
    model = Model("Jack", parts)
    model.parameter(m, 1e4, "kg")
    model.parameter(g, 9.81, "m/s2")
    model.input(force, 0.0, "N")
    model.coordinate(angle, 0.3, "rad")
    model.speed(rate, 0.0, "rad/s")
    return model


def test_an_input_is_found_however_large_it_is():
    found = mb2fmu.linearize(_jack(), at={"angle": 0.5}, trim=["force"])
    assert found.point.r == pytest.approx([1e4 * 9.81 * 3 * np.cos(0.5) * 2], rel=1e-9)
    assert found.eigenvalues.real == pytest.approx(np.sqrt(9.81 / 3 * np.sin(0.5)) * np.array([1, -1]))


def test_loops_are_closed_far_from_where_they_start_or_it_is_said_that_they_cannot_be():
    derivation = pipeline.derive(MODELS / "four_bar.py")
    for angle in (0.6, 3.6):
        start = make_operating_point_start(derivation.definition, derivation.equations, {"q1": angle}, ["torque"])
        point = linearize(derivation.equations, derivation.program, start).point
        assert point.x[0] == angle
        assert abs(np.exp(1j * np.cumsum(point.x[:3])) @ [0.8, 2.0, 1.0] - 2.0) < 1e-9
    start = make_operating_point_start(derivation.definition, derivation.equations, {"q1": 1.0, "lb": 0.5}, ["torque"])
    with pytest.raises(AnalysisError, match=r"holonomic\[1\] = .* with q1 kept as given"):
        linearize(derivation.equations, derivation.program, start)


def _top(*, spinning_axes: bool) -> Model:
    """A symmetric top on its point, upright; its speeds along its own axes, or along those that do not spin with it."""
    q1, q2, q3, u1, u2, u3 = me.dynamicsymbols("q1:4 u1:4")
    m, l, A, C, g = sm.symbols("m l A C g")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    L, B = me.ReferenceFrame("L"), me.ReferenceFrame("B")
    L.orient_body_fixed(N, (q1, q2, 0), "123")
    B.orient_axis(L, L.z, q3)
    along = B if spinning_axes else L
    turning = B.ang_vel_in(N)
    B.set_ang_vel(N, u1 * along.x + u2 * along.y + u3 * along.z)
    centre = O.locatenew("centre", l * L.z)
    body = me.RigidBody("top", centre, B, m, (me.inertia(B, A, A, C), centre))
    kinematics = [turning.dot(axis) - u for axis, u in zip(along, (u1, u2, u3), strict=True)]
    parts = Parts(frame=N, origin=O, q=[q1, q2, q3], u=[u1, u2, u3], kinematic_equations=kinematics, bodies=[body],
                  loads=[(centre, -m * g * N.z)])  # fmt: skip
    model = Model("Top", parts)
    for symbol, value in ((m, 1.0), (l, 0.1), (A, 0.01), (C, 0.004), (g, 9.81)):
        model.parameter(symbol, value)
    for q in (q1, q2, q3):
        model.coordinate(q, 0.0, "rad")
    for u, start in ((u1, 0.0), (u2, 0.0), (u3, 75.0)):
        model.speed(u, start, "rad/s")
    return model


def test_a_sleeping_top_is_stable_from_its_critical_spin_on():
    """C² ω² > 4 A' m g l with A' about its point: Goldstein, Classical Mechanics, sect. 5.7."""
    critical = 2 * np.sqrt(0.02 * 9.81 * 0.1) / 0.004
    top = pipeline.derive(_top(spinning_axes=False))
    assert linearized(top, {"u3": 1.001 * critical}).eigenvalues.real.max() < 1e-9
    assert linearized(top, {"u3": 0.999 * critical}).eigenvalues.real.max() > 0.1


def test_what_keeps_an_angle_from_growing_is_reported():
    with pytest.raises(
        AnalysisError, match=r"q3 would have to stand still, since der\(q1\), der\(q2\), .* depend on it"
    ):
        mb2fmu.linearize(_top(spinning_axes=True), at={"u3": 75.0})


def test_parameters_inputs_and_instants():
    found = mb2fmu.linearize(_oscillator(), at={"k": 200.0, "c": 4.0, "force": 30.0})
    assert found.point.x[:2] == pytest.approx([0.05, 0.1])
    assert found.A[2, 2] == pytest.approx(-2.0)
    instant = mb2fmu.linearize(_oscillator(), search=False)
    assert instant.point.motion == "instant"
    assert instant.point.x == pytest.approx([0.1, 0.1, 0.3, 0.3])


def test_names_that_are_none(disc: pipeline.DerivationResult) -> None:
    with pytest.raises(AnalysisError) as error:
        mb2fmu.linearize(_oscillator(), at={"speed": 1.0, "force": np.inf}, trim=["push"])
    assert len(error.value.faults) == 3
    with pytest.raises(AnalysisError, match="follows from the constraints"):
        linearized(disc, {"u4": 1.0})


def test_values_out_of_their_bounds() -> None:
    """As everywhere else where a value is set; a sweep's values, too, and with every other fault."""
    pendulum = pipeline.load("double_pendulum")
    with pytest.raises(AnalysisError) as caught:
        mb2fmu.linearize(pendulum, at={"m1": -1.0, "th9": 2.0})
    assert ["th9" in caught.value.faults[0].what, "m1 = -1.0 lies outside" in caught.value.faults[1].what] == [True] * 2
    with pytest.raises(AnalysisError, match="m2 = 0"):
        pipeline.sweep(pendulum, "m2", np.array([0.0, 1.0]))


def test_a_chain_hangs_with_the_frequencies_of_its_linear_theory():
    """K phi = w^2 M phi for small angles, of the model's own parameters."""
    found = mb2fmu.linearize(MODELS / "n_link_pendulum.py", arguments={"n": 4})
    J = found.A
    n = 4
    assert np.array_equal(J[:n, :n], np.zeros((n, n)))
    again = mb2fmu.linearize(MODELS / "n_link_pendulum.py", arguments={"n": 4}, method="tmt")
    assert np.sort_complex(found.eigenvalues) == pytest.approx(np.sort_complex(again.eigenvalues), rel=1e-9)
    assert np.all(found.eigenvalues.real < 0)


def test_a_rolling_disc_wobbles_as_its_closed_form_says(disc: pipeline.DerivationResult) -> None:
    """Upright and straight: w^2 = 12/5 s^2 - 4/5 g/r for a thin disc (stable above s^2 = g/(3 r))."""
    for rate in (3.0, 6.0):
        found = linearized(disc, {"u2": rate, "q2": 0.0, "u3": 0.0, "u1": 0.0})
        assert found.point.motion == "steady"
        squared = 2.4 * rate**2 - 0.8 * 9.81 / 0.3
        expected = sorted([abs(squared) ** 0.5] * 2)
        part = found.eigenvalues.imag if squared > 0 else found.eigenvalues.real
        assert sorted(np.abs(part))[-2:] == pytest.approx(expected, rel=1e-9)


def test_a_circling_disc_leaves_its_place_and_heading_out(disc: pipeline.DerivationResult) -> None:
    found = linearized(disc, {})
    assert [found.names[i] for i in found.point.ignored] == ["q1", "q3", "q4", "q5"]
    assert found.states == ("q2", "u1", "u2", "u3")
    assert {"centre.x", "centre.y"} <= set(found.unsteady)


def test_the_length_of_a_quaternion_is_no_direction():
    found = mb2fmu.linearize(MODELS / "turntable_ball.py", at={"Omega": 3.0})
    assert len(found.states) == 8
    x = dict(zip(found.names, found.point.x, strict=True))
    assert sum(x[f"e{i}"] ** 2 for i in range(4)) == pytest.approx(1, abs=1e-6)
    pair = sorted(abs(found.eigenvalues.imag))[-2:]
    assert pair == pytest.approx([6 / 7] * 2, rel=1e-6)  # 2/7 of the table's speed


def test_time_in_the_equations_is_refused():
    q, u = me.dynamicsymbols("q u")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    P = O.locatenew("P", q * N.x)
    force = sm.sin(me.dynamicsymbols._t) * N.x
    parts = Parts(
        frame=N, origin=O, q=[q], u=[u], kinematic_equations=[q.diff() - u], bodies=[me.Particle("P", P, 1)],
        loads=[(P, force)],
    )  # fmt: skip
    model = Model("Driven", parts)
    model.coordinate(q, 0.0)
    model.speed(u, 0.0)
    with pytest.raises(AnalysisError, match="no motion is steady"):
        mb2fmu.linearize(model)
    assert pytest.approx(np.array([[0, 1], [0, 0]])) == mb2fmu.linearize(model, search=False).A


def test_what_is_shown():
    found = mb2fmu.linearize(_oscillator(c=3.0))
    text = format_eigenvalues(found)
    assert "Equilibrium" in text
    assert "damping ratio" in text
    assert "undamped" in format_eigenvalues(mb2fmu.linearize(_oscillator(c=0.0)))
    assert etree.fromstring(draw_eigenvalues(found)).tag.endswith("svg")
    assert draw_eigenvalues(found) == draw_eigenvalues(found)
    assert draw_eigenvalues(found, form="png").startswith(b"\x89PNG")
    content = json.loads(found.to_json())
    assert np.array(content["A"]) == pytest.approx(found.A)
    assert content["states"] == list(found.states)


def test_the_command(tmp_path):
    def call(*more: object) -> Result:
        arguments = ["linearize", MODELS / "cart_pole.py", *more]
        return CliRunner().invoke(commands, [str(argument) for argument in arguments], prog_name="mb2fmu")

    picture, file = tmp_path / "s.png", tmp_path / "s.json"
    result = call("--plot", picture, "--json", file)
    assert result.exit_code == 0, result.output
    assert "Eigenvalues" in result.output
    rows = {words[0]: words[1:] for words in map(str.split, result.output.splitlines()) if words}
    assert (rows["A"], rows["B"]) == (["x", "theta", "v", "omega"], ["force"])
    assert float(rows["omega"][0]) == pytest.approx(json.loads(file.read_text())["B"][3][0], rel=1e-5)
    assert picture.exists()
    assert json.loads(file.read_text())["motion"] == "equilibrium"
    assert json.loads(call("--json", "-", "--at", "x=1").output)["point"]["x"] == 1.0
    assert call("--at", "theta=3.0").exit_code == 2  # held where nothing balances it
    assert "NAME=VALUE" in call("--at", "x").output


BENCHMARK = {  # Meijaard, Papadopoulos, Ruina, Schwab 2007, table 2
    0.0: [-5.53094371765393, -3.13164324790656, 3.13164324790656, 5.53094371765393],
    5.0: [-14.07838969279822, -0.32286642900409, -0.77534188219585 - 4.46486771378823j],
}


@pytest.mark.repeats  # by day a rolling disc has its closed form
def test_the_benchmark_bicycle():
    """Published eigenvalues at rest and at 5 m/s; finite at rest, upright, at zero steer; and what x' costs."""
    derivation = pipeline.derive(MODELS / "bicycle.py")
    assert derivation.operations < 2_700
    for speed, published in BENCHMARK.items():
        at = {"rear_rate": -speed / 0.3, "front_rate": -speed / 0.35, "v": speed, "lean_rate": 0.0}
        at = {name: value for name, value in at.items() if name in derivation.program.layout.states}
        start = make_operating_point_start(derivation.definition, derivation.equations, at)
        found = linearize(derivation.equations, derivation.program, start)
        assert found.point.motion == ("steady" if speed else "equilibrium")
        for value in published:
            assert np.min(np.abs(found.eigenvalues - value)) < 1e-9 * max(1, abs(value)), (speed, value)
        assert np.isfinite(found.y).all()
