"""Nominal values of states: what the experiment shows of them, as far as it can be followed."""

from __future__ import annotations

import pytest
import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Model, Parts, analysis, pipeline
from mb2fmu.analysis import nominal_values

t = me.dynamicsymbols._t
x, v = me.dynamicsymbols("x v")


def nominals(force: sm.Expr, position: float, stop: float) -> tuple[float, float]:
    """Nominal values of position and speed of a mass of 1 kg; 1 where there is none."""
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    parts = Parts(
        frame=N, origin=O, q=[x], u=[v], kinematic_equations=[x.diff(t) - v],
        bodies=[me.Particle("mass", P, sm.S(1))], loads=[(P, force * N.x)],
    )  # fmt: skip
    model = Model("Mass", parts)
    model.coordinate(x, position, "m")
    model.speed(v, 0.0, "m/s")
    model.experiment(stop=stop, step=stop / 10)
    done = pipeline.derive(model)
    found = analysis.add_nominal_values(done.definition, done.equations, done.program)
    return found.coordinates[0].nominal or 1.0, found.speeds[0].nominal or 1.0


def test_they_are_the_largest_magnitudes_of_the_experiment() -> None:
    """An oscillation of 1 mm with 1000 rad/s, which ends near x = 0, and a fall."""
    assert nominals(-(1000.0**2) * x, 1e-3, 0.011) == (1e-3, 1.0)
    assert nominals(sm.Float(2e4), 0.0, 1.0) == (1e4, 1e4)


def test_what_was_seen_before_x_dot_has_no_value_counts() -> None:
    """The force has no value after half of the experiment; by then the mass is at 7.1e4 m with 2.4e5 m/s."""
    assert nominals(1e6 * sm.sqrt(0.5 - t), 0.0, 1.0) == (1e5, 1e5)


@pytest.mark.parametrize("most", [100, 400])
def test_no_more_evaluations_are_made_than_are_allowed(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """An oscillation that is too fast to be followed to the end; what was seen of it counts."""
    times: list[float] = []
    make_evaluator = nominal_values.make_evaluator

    def make_counted(*arguments):
        function = make_evaluator(*arguments)

        def evaluate(time, *values):
            times.append(time)
            return function(time, *values)

        return evaluate

    monkeypatch.setattr(nominal_values, "make_evaluator", make_counted)
    monkeypatch.setattr(nominal_values, "MAX_EVALUATIONS", most)
    assert nominals(-(1e6**2) * x, 1e-3, 1.0)[1] == 1e3
    assert len(times) == most + 1  # the first one looks whether x' has a value at the start
    assert max(times) < 1.0
