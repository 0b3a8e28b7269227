"""Smaller and shorter perturbed experiments, and motions that are round-off of a file's constants."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Model
from mb2fmu.pipeline.derivation.model_derivation import load_model_and_mechanism
from mb2fmu.pipeline.derivation.stage_stopwatch import StageStopwatch
from mb2fmu.pipeline.run_and_report.validation_run import choose_reference_equations
from mb2fmu.validation import FmuSimulationResult, make_reference_and_bounds
from mb2fmu.validation.comparison.motion_comparison import compare_variables
from mb2fmu.validation.experiment import perturbed_experiment
from mb2fmu.validation.experiment.perturbed_experiment import TARGET_STEP_COUNT
from mb2fmu.validation.reference_and_bounds import ReferenceAndBounds

LINK = (
    '<link name="{}"><inertial><origin xyz="{}"/><mass value="{}"/>'
    '<inertia ixx="{}" iyy="{}" izz="{}" {}/></inertial></link>'
)
WHEEL = (
    '<joint name="{0}" type="continuous"><parent link="frame"/><child link="{0}_wheel"/>'
    '<origin xyz="{1} 0 0" rpy="0 1.5707963 0"/><axis xyz="0 0 1"/></joint>'
)


def reference_and_bounds(model: Model) -> ReferenceAndBounds:
    _, read = load_model_and_mechanism(model, None, StageStopwatch(None))
    source = choose_reference_equations(read, None)
    return make_reference_and_bounds(read.declared, source.equations, mechanism=source.mechanism)


@pytest.fixture(scope="module")
def two_wheels(tmp_path_factory: pytest.TempPathFactory) -> ReferenceAndBounds:
    """Symmetric but for the axes of its wheels, whose angle in the file is π/2 less 2.7e-8."""
    links = (
        LINK.format("frame", "0 0.03 0.02", 2.2, 0.0021, 0.0015, 0.0025, 'ixy="0" ixz="0" iyz="-0.00029"'),
        *(LINK.format(f"{k}_wheel", "0 0 0", 0.34, 1.74e-4, 1.74e-4, 3.45e-4, 'ixy="0" ixz="0" iyz="0"') for k in "lr"),
    )
    path = tmp_path_factory.mktemp("robot") / "wheels.urdf"
    text = "".join((*links, WHEEL.format("l", 0.1), WHEEL.format("r", -0.1)))
    path.write_text(f'<robot name="wheels">{text}</robot>')
    return reference_and_bounds(Model.from_urdf(path, base="floating"))


def test_round_off_of_constants_stands_still(two_wheels):
    """Seen: a rate that moves by 8e-11 rad/s of typical 7 could not be judged by its range, and failed a right FMU."""
    reference = two_wheels.reference
    ranges = np.ptp(reference.trajectory.values, axis=0)
    tiny = (ranges > 0) & (ranges < 1e-8 * reference.typical)
    assert tiny.any()
    assert np.all(two_wheels.limits.predictable_points >= 10)
    right = FmuSimulationResult(
        reference.trajectory.names, reference.trajectory.time, reference.trajectory.values, (), 0.0
    )
    assert all(result.verdict == "passed" for result in compare_variables(reference, two_wheels.limits, right))
    for column in np.flatnonzero(tiny).tolist():
        values = reference.trajectory.values.copy()
        values[5:, column] += 0.01 * reference.typical[column]
        wrong = compare_variables(reference, two_wheels.limits, replace(right, values=values))
        assert wrong[column].verdict == "failed"


def test_what_stands_still_by_default_may_be_moved(two_wheels):
    """Seen: no perturbed experiment, since all that moves 1e3 times more than by default was called wild."""
    assert two_wheels.perturbed is not None
    assert two_wheels.perturbed.perturbed_experiment.part == 1.0
    assert all(item.is_exercised for item in two_wheels.perturbed.exercised_quantities)


def upright(rate: float, start: float = 0.0) -> Model:
    """A mass that is driven away from where it stands exactly, at a rate in 1/s."""
    x, v = me.dynamicsymbols("x v")
    m, k = sm.symbols("m k")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    load = (P, k * x * N.x)
    kane = me.KanesMethod(N, [x], [v], [x.diff() - v], bodies=[me.Particle("body", P, m)], forcelist=[load])
    model = Model("Upright", kane)
    model.parameter(m, 1.0, "kg")
    model.parameter(k, rate**2, "N/m")
    model.coordinate(x, start, "m")
    model.speed(v, 0.0, "m/s")
    model.experiment(stop=2.0, step=0.01)
    return model


def test_a_shorter_experiment_is_tried():
    """At 40/s all moves grow beyond everything within the usual quarter of the time, and not within a sixteenth."""
    data = reference_and_bounds(upright(40.0))
    assert data.perturbed is not None
    assert data.perturbed.reference is not None
    assert data.perturbed.reference.trajectory.time[-1] < 0.01 * TARGET_STEP_COUNT
    assert all(item.is_exercised for item in data.perturbed.exercised_quantities)


def test_smaller_moves_are_tried(monkeypatch):
    """Seen with gaps and domains that a sixteenth of the moves leaves, and a 256th does not."""
    start = perturbed_experiment._start_experiment
    monkeypatch.setattr(
        perturbed_experiment,
        "_start_experiment",
        lambda intention, part: start(intention, part) if part < 0.01 else None,
    )
    data = reference_and_bounds(upright(3.0, 0.1))
    assert data.perturbed is not None
    assert data.perturbed.perturbed_experiment.part < 0.01
    assert all(item.is_exercised for item in data.perturbed.exercised_quantities)


def test_the_lack_of_an_experiment_says_why(monkeypatch):
    monkeypatch.setattr(perturbed_experiment, "_start_experiment", lambda *_: None)
    data = reference_and_bounds(upright(3.0, 0.1))
    assert data.perturbed is not None
    assert data.perturbed.reference is None
    assert data.perturbed.perturbed_experiment.text.endswith("the mechanism cannot be started with other values")
    assert not any(item.is_exercised for item in data.perturbed.exercised_quantities)
