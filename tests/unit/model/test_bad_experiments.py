"""Default experiments that cannot be run."""

import math

import pytest
import sympy as sm

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
