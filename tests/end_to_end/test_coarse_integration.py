"""A right FMU whose solver is too coarse for a stiff model is told so; a solver that is wrong is not called coarse."""

from __future__ import annotations

from pathlib import Path

import pytest
import sympy as sm
import sympy.physics.mechanics as me
from judging import Judge
from wrong_units import changed_unit, packed

from mb2fmu import Model, pipeline
from mb2fmu.pipeline.derivation.pipeline_results import FmuBuildResult
from mb2fmu.report.sections.validation_failure_diagnosis import describe_likeliest_failure_cause

pytestmark = pytest.mark.slow


def stiff_pendulum(start: float = 0.9) -> Model:
    """A double pendulum with smooth and steep friction in its joints, driven at the first."""
    q1, q2, u1, u2 = me.dynamicsymbols("q1 q2 u1 u2")
    drive = me.dynamicsymbols("drive")
    N, A, B, O = me.ReferenceFrame("N"), me.ReferenceFrame("A"), me.ReferenceFrame("B"), me.Point("O")
    for frame, angle, rate in ((A, q1, u1), (B, q2, u2)):
        frame.orient_axis(N, angle, N.z)
        frame.set_ang_vel(N, rate * N.z)
    O.set_vel(N, 0)
    P = O.locatenew("P", -sm.Rational(1, 2) * A.y)
    P.v2pt_theory(O, N, A)
    Q = P.locatenew("Q", -sm.Rational(2, 5) * B.y)
    Q.v2pt_theory(P, N, B)
    first, second = (-sm.tanh(100 * rate) / 20 for rate in (u1, u2 - u1))
    loads = [(P, -4.9 * N.y), (Q, -2.94 * N.y), (A, (drive + first - second) * N.z), (B, second * N.z)]
    bodies = [me.Particle("p", P, 0.5), me.Particle("q", Q, 0.3)]
    equations = [q1.diff() - u1, q2.diff() - u2]
    model = Model("Stiff", me.KanesMethod(N, [q1, q2], [u1, u2], equations, bodies=bodies, forcelist=loads))
    model.input(drive, 0.0, "N.m")
    model.coordinate(q1, start, "rad")
    model.coordinate(q2, 0.2, "rad")
    model.speed(u1, 0.0, "rad/s")
    model.speed(u2, 0.0, "rad/s")
    return model


@pytest.fixture(scope="module")
def build() -> FmuBuildResult:
    return pipeline.build(pipeline.derive(stiff_pendulum()))


@pytest.fixture(scope="module")
def judge() -> Judge:
    """The disturbed motion is judged, too."""
    return Judge(perturb=True)


def test_a_right_fmu_is_said_to_integrate_too_coarsely(build: FmuBuildResult, judge: Judge, tmp_path: Path) -> None:
    result = judge.result(stiff_pendulum, packed(build, tmp_path / "right.fmu"))
    assert not result.passed
    assert result.agreeing_tolerance == pytest.approx(1e-7)
    assert "set model.experiment(tolerance=1e-7)" in describe_likeliest_failure_cause(result)
    assert not [call for call in result.api_checks if call.verdict == "failed"]


def test_a_wrong_solver_is_not_called_coarse(build: FmuBuildResult, judge: Judge, tmp_path: Path) -> None:
    edit = {"dopri5.h": ("(125.0 / 192.0)", "(125.5 / 192.0)")}
    result = judge.result(stiff_pendulum, changed_unit(build, tmp_path / "wrong.fmu", edit))
    assert result.agreeing_tolerance is None
    assert "too coarsely" not in describe_likeliest_failure_cause(result)
    assert {"each solver", "ramps of inputs"} <= {call.name for call in result.api_checks if call.verdict == "failed"}
