"""What draws states back to the constraints, by either law; wrong signs, rates and factors are found."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from mb2fmu import model, pipeline
from mb2fmu.mechanics.formulations import formulate
from mb2fmu.validation.api_checks.constraint_stabilization_check import (
    _choose_rates,
    _displace_state,
    _find_rate_index,
    compare_stabilization,
    count_stabilization_rate_as_exercised,
)
from mb2fmu.validation.bounds.differences_with_bounds import BoundedDifferences
from mb2fmu.validation.reference.reference_run import make_reference
from mb2fmu.validation.validation_result import TOO_LITTLE_EFFECT, ExercisedQuantityResult

RATE = 7.0  # 1/s


class StabilizedFourBar:
    """A four-bar linkage drawn to its constraints by a law, and a reference of it."""

    def __init__(self, treatment: str) -> None:
        loaded = model.load("models/four_bar.py")
        loaded.experiment(stop=0.2, step=0.02)
        options = {"baumgarte": RATE} if treatment == "multipliers" else {}
        derivation = pipeline.derive(loaded, method="recursive-composite", constraints=treatment, **options)
        reference = make_reference(derivation.definition, formulate(derivation.mechanism, "tmt"))
        self.definition = derivation.definition
        self.check_point = SimpleNamespace(reference=reference, row=5)
        self.names = tuple(reference.trajectory.names[c] for c in reference.state_columns)
        self._rhs = pipeline.right_hand_side(derivation)
        self._parameters = np.array(reference.experiment.parameters)
        self.rate_index = _find_rate_index(self.check_point)

    def x_dot(self, rate: float) -> np.ndarray:
        """x' off the constraints."""
        parameters = self._parameters.copy()
        parameters[self.rate_index] = rate
        time = float(self.check_point.reference.experiment.time[self.check_point.row])
        return np.asarray(self._rhs(time, _displace_state(self.check_point), self._rhs.r0, parameters))

    def judge(self, slopes) -> float:
        """The largest error over its bound, if x' is ``slopes`` of a rate."""
        rates = _choose_rates(self.check_point, self.rate_index)
        recorded = {
            label: [[slopes(rate).tolist(), []]] for label, rate in zip(("first", "second"), rates, strict=True)
        }
        plan, table = SimpleNamespace(states=self.names), BoundedDifferences()
        compare_stabilization(SimpleNamespace(check_point=self.check_point, plan=plan), recorded, table)
        assert table.count == len(self.check_point.reference.numeric.equations.holonomic) * 2
        return table.ratio


@pytest.fixture(scope="module", params=["attractor", "multipliers"])
def linkage(request) -> StabilizedFourBar:
    return StabilizedFourBar(request.param)


def test_both_laws_pass(linkage):
    assert linkage.judge(linkage.x_dot) < 1e-6


@pytest.mark.parametrize("factor", [-1.0, 0.0, 1.02])
def test_what_draws_one_state_elsewhere_is_found(linkage, factor):
    """Away from the constraints, not at all, and too far; each dependent speed by itself."""

    def slopes(rate):
        without, right = linkage.x_dot(0.0), linkage.x_dot(rate)
        wrong = right.copy()
        wrong[-1] = without[-1] + factor * (right[-1] - without[-1])
        return wrong

    assert linkage.judge(slopes) > 1.0


def test_a_rate_that_is_not_taken_is_found(linkage):
    assert linkage.judge(lambda _: linkage.x_dot(RATE)) > 1.0


@pytest.mark.parametrize(("verdict", "exercised"), [("passed", True), ("failed", True), ("unjudged", False)])
def test_the_rate_is_exercised_where_it_was_judged(linkage, verdict, exercised):
    """A rate that is not taken leaves the constraints open by some hundred bounds; no experiment shows it."""
    quantities = [
        ExercisedQuantityResult(name=name, role="parameter", ratio=0.1, most="", reason=TOO_LITTLE_EFFECT)
        for name in ("la", "constraints.rate")
    ]
    checks = [SimpleNamespace(name="constraint stabilization", verdict=verdict)]
    found = count_stabilization_rate_as_exercised(quantities, linkage.definition, linkage.check_point, checks)
    assert [item.is_exercised for item in found] == [False, exercised]
