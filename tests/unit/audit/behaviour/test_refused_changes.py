"""An FMU that refuses states far from its constraints: its dependencies are looked at by smaller changes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from mb2fmu.audit.behaviour.fixture.dependency_effects import DependencyEffects
from mb2fmu.audit.behaviour.instance.fmi_c_interface import DISCARD, RefusedCallError
from mb2fmu.audit.behaviour.trials.dependency_trials import _record_effects_at_point
from mb2fmu.audit.behaviour.trials.model_exchange_trials import FmuEvaluationPoint


class Loop:
    """An instance with one angle that can be evaluated near its loop's position only; its output is twice the angle."""

    def __init__(self, reach: float) -> None:
        self.reach, self.angle = reach, 1.0

    def set_time(self, time: float) -> None:
        """Take the time."""

    def set_states(self, states: tuple[float, ...]) -> None:
        """Take the angle."""
        (self.angle,) = states

    def get(self, _unknowns: Any) -> list[float]:
        """Return the output; refuse where the loop does not close."""
        if abs(self.angle - 1.0) > self.reach:
            raise RefusedCallError("fmi2GetReal", DISCARD, "the loops do not close", "Continuous-Time Mode")
        return [2.0 * self.angle]


@pytest.mark.parametrize(("reach", "changes"), [(1.0, 2), (0.2, 2), (0.02, 2), (1e-3, 2), (1e-9, 0)])
def test_what_is_refused_is_changed_by_less(reach: float, changes: int) -> None:
    angle, output = SimpleNamespace(index=0), SimpleNamespace(index=1)
    fixture: Any = SimpleNamespace(
        states=[angle], inputs=[], description=SimpleNamespace(independent=None),
        typical_magnitude=lambda _: 1.0, clip_to_bounds=lambda _, value: value,
        choose_affordable=lambda items, *_: items,
    )  # fmt: skip
    instance: Any = Loop(reach)
    effects, unknowns, known = DependencyEffects(), [output], angle
    point = FmuEvaluationPoint(0.0, (1.0,), ())
    _record_effects_at_point(fixture, instance, point, unknowns, effects, (0, 0), lambda: True)  # type: ignore[arg-type]
    assert effects.change_counts[known.index] == changes
    assert ((output.index, known.index) in effects.visibly_changed) == bool(changes)
    quotients = effects.list_quotients(output, known)  # type: ignore[arg-type]
    assert [factor for _, factor, _ in quotients] == pytest.approx([2.0] * changes, rel=1e-9)
    assert instance.angle == 1.0  # where it was
