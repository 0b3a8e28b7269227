"""Default experiments that cannot be run."""

import math

import pytest
import sympy as sm
from hypothesis import given
from hypothesis import strategies as st

from mb2fmu.model.declarations.declared_content_and_experiment import choose_communication_step

THIS = "test_bad_experiments.py:"


def only(faults):
    """The one fault there is."""
    assert len(faults) == 1, "\n".join(map(str, faults))
    return faults[0]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"stop": 0.0}, "stop time is 0.0"),
        ({"stop": math.nan}, "stop time is nan"),
        ({"step": -1.0}, "step is -1.0"),
        ({"stop": 1.0, "step": 2.0}, "step 2.0 is longer than the experiment"),
        ({"stop": 3.15e7, "step": 0.01}, "3.15e+09 communication steps, more than 1,000,000"),
        ({"tolerance": 0.0}, "tolerance is 0.0"),
        ({"tolerance": 0.1}, "tolerance is 0.1"),
        ({"internal_step": 1.0}, "internal step is 1.0"),
        ({"solver": "magic"}, "no solver 'magic'"),
    ],
)
def test_an_experiment_that_cannot_be_run(pendulum, faults_of, settings, says):
    model = pendulum.model()
    model.experiment(**settings)
    fault = only(faults_of(model))
    assert says in fault.what
    assert fault.remedy
    assert fault.where.startswith(THIS)


def test_signals_are_for_inputs_and_of_time_only(pendulum, faults_of):
    model = pendulum.model()
    model.experiment(signals={pendulum.torque: sm.sin(pendulum.q) * pendulum.m, pendulum.u: 1.0})
    faults = faults_of(model)
    assert [fault.what for fault in faults] == [
        "the signal of torque(t) contains m, q(t)",
        "the experiment has a signal for u(t), which is no input",
    ]
    assert "torque" in faults[1].remedy


@given(st.floats(1e-12, 1e15))
def test_a_step_that_is_left_out_suits_the_experiment(stop):
    step = choose_communication_step(stop)
    assert 20 <= stop / step * (1 + 1e-9) <= 20_000 * (1 + 1e-9)
    assert f"{step:.0e}"[0] in "125"
    assert float(f"{step:.0e}") == step


def test_steps_of_the_integration_stay_short(pendulum):
    model = pendulum.model()
    model.experiment(stop=1e5, solver="fixed")
    assert model.default_experiment.step == 0.01
    model.experiment(stop=1e5)
    assert model.default_experiment.step == 100.0
