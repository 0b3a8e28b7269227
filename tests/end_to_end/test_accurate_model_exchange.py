"""What the importer's integrator makes of a right FMU is no fault of the FMU; what the FMU does wrong stays one.

The nominal value of x is 100 m, as what a mechanism falls in 3 s; the ball moves by 0.05 m. CVODE measures absolute
tolerances by nominal values: the impacts were 1e-8 to 1e-5 s early.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import sympy as sm
import sympy.physics.mechanics as me
from judging import Judge
from wrong_units import changed_unit, packed

from mb2fmu import Impact, Model, Parts, pipeline
from mb2fmu.errors import Fault, ToolError
from mb2fmu.pipeline.derivation.pipeline_results import FmuBuildResult
from mb2fmu.validation import fmu_validation

OFFSET = ("events.h", "#define MB2FMU_OFFSET 1e-10")


def shaken_ball(gravity: float = 9.81) -> Model:
    """A ball on a table that shakes: an impact element whose gap contains the time."""
    model = ball_on_a_table("ShakenBall", gravity, nominal=100.0)
    x = me.dynamicsymbols("x")
    model.add(Impact("table", x - 0.004 * sm.sin(25 * me.dynamicsymbols._t), restitution=0.8))
    model.experiment(stop=0.8, step=0.01, tolerance=1e-9)
    return model


def heavier_ball() -> Model:
    """What weighs a ten-millionth more."""
    return shaken_ball(9.81 * (1 + 1e-7))


def ball_at_a_steep_gap() -> Model:
    """A ball whose gap is no length and steep; moved in the experiment, it comes to rest by ninety hops in a step."""
    model = ball_on_a_table("SteepGap", 9.81, nominal=None)
    x = me.dynamicsymbols("x")
    gap = sm.exp(40 * (x - 0.002 * sm.sin(60 * me.dynamicsymbols._t))) - 1
    model.add(Impact("table", gap, restitution=0.9))
    model.experiment(stop=1.0, step=0.01, tolerance=1e-10)
    return model


def ball_on_a_table(name: str, gravity: float, *, nominal: float | None) -> Model:
    """A ball of 1 kg at a height of 0.05 m, nothing below."""
    t = me.dynamicsymbols._t
    x, v = me.dynamicsymbols("x v")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.y)
    P.set_vel(N, v * N.y)
    parts = Parts(
        frame=N, origin=O, q=[x], u=[v], kinematic_equations=[x.diff(t) - v],
        bodies=[me.Particle("p", P, sm.S(1))], loads=[(P, -gravity * N.y)],
    )  # fmt: skip
    model = Model(name, parts)
    model.coordinate(x, 0.05, "m", nominal=nominal)
    model.speed(v, 0.0, "m/s", nominal=nominal and nominal / 10.0)
    return model


@pytest.fixture(scope="module")
def build() -> FmuBuildResult:
    return pipeline.build(pipeline.derive(shaken_ball()))


@pytest.fixture(scope="module")
def judge() -> Judge:
    """The disturbed motion is judged, too."""
    return Judge(perturb=True)


@pytest.mark.repeats  # as the balls below
def test_right_fmu_passes_where_the_integrator_is_converged(
    build: FmuBuildResult, judge: Judge, tmp_path: Path
) -> None:
    result = judge.result(shaken_ball, packed(build, tmp_path / "right.fmu"))
    assert result.passed, result.notes
    assert result.notes[0].startswith("Model Exchange was integrated again")  # the one that a terminal shows


def test_indicators_that_are_late_are_found(build: FmuBuildResult, judge: Judge, tmp_path: Path) -> None:
    file, text = OFFSET
    wrong = changed_unit(build, tmp_path / "late.fmu", {file: (text, text.replace("1e-10", "1e-8"))})
    result = judge.result(shaken_ball, wrong)
    failed = [one for one in result.other_interface_types if not one.passed]
    assert [one.simulation.kind for one in failed] == ["ModelExchange"]
    assert 1e-8 < min(event.difference for event in failed[0].events) < 1e-7


def test_derivative_off_by_a_ten_millionth_is_found(build: FmuBuildResult, judge: Judge, tmp_path: Path) -> None:
    result = judge.result(heavier_ball, packed(build, tmp_path / "right.fmu"))
    assert not result.passed
    wrong = {call.kind for call in result.api_checks if call.verdict == "failed"}
    assert "ModelExchange" in wrong  # no integrator does that, so the FMU is not integrated again
    assert result.notes == ()


def ball_in_a_bowl() -> Model:
    """Each step of 0.1 s has up to ten impacts; the last of them are lower than CVODE's error at first."""
    t = me.dynamicsymbols._t
    x, y, v, w = me.dynamicsymbols("x y v w")
    g = sm.Symbol("g")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, v * N.x + w * N.y)
    parts = Parts(
        frame=N, origin=O, q=[x, y], u=[v, w], kinematic_equations=[x.diff(t) - v, y.diff(t) - w],
        bodies=[me.Particle("p", P, sm.S(1))], loads=[(P, -g * N.y)],
    )  # fmt: skip
    model = Model("BallInABowl", parts)
    model.parameter(g, 9.81, "m/s2")
    for symbol, start, unit in ((x, 0.5, "m"), (y, 0.6, "m")):
        model.coordinate(symbol, start, unit)
    for symbol in (v, w):
        model.speed(symbol, 0.0, "m/s")
    model.add(Impact("bowl", y - x**2 / 2, restitution=0.6))
    model.experiment(stop=6.0, step=0.1)
    return model


def test_steps_with_other_parameters_may_be_the_integrators_error(
    judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as Model Exchange was not integrated again, steps with other parameters are off."""
    plan, before = fmu_validation._FmuRunPlan, []
    judge_again = plan.judge_again

    def record_judgement(*arguments):
        before.append(arguments[4])
        return judge_again(*arguments)

    monkeypatch.setattr(plan, "judge_again", record_judgement)
    build = pipeline.build(pipeline.derive(ball_in_a_bowl()))
    result = judge.result(ball_in_a_bowl, packed(build, tmp_path / "bowl.fmu"))
    assert result.passed, result.notes
    assert result.notes[0].startswith("Model Exchange was integrated again")
    (first,) = before
    assert result.variables is first.first.variables  # Co-Simulation ran once, and was judged once
    failed = [call for call in first.api_checks if call.verdict == "failed"]
    assert failed
    assert all(call.may_be_integration_error and call.where.startswith("step of") for call in failed)


def test_hops_that_add_up_are_integrated_more_finely_still(judge: Judge, tmp_path: Path) -> None:
    build = pipeline.build(pipeline.derive(ball_at_a_steep_gap()))
    result = judge.result(ball_at_a_steep_gap, packed(build, tmp_path / "steep.fmu"))
    assert result.passed, result.notes
    assert "absolute tolerances of 1% of what the states move by" in result.notes[0]


def test_verdict_stays_where_the_fmu_does_not_go_through_the_accurate_run(
    build: FmuBuildResult, judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = fmu_validation.run_fmu_process

    def run_coarsely_only(*arguments, state_scales=None, **settings):
        if state_scales is not None:
            raise ToolError("running the FMU failed:", [Fault("a step is too small")])
        return run(*arguments, **settings)

    monkeypatch.setattr(fmu_validation, "run_fmu_process", run_coarsely_only)
    result = judge.result(shaken_ball, packed(build, tmp_path / "right.fmu"))
    assert not result.passed
    assert result.notes[0].startswith("Model Exchange could not be integrated more accurately, though events were off")
    assert "a step is too small" in result.notes[0]
