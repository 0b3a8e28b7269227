"""How far states are moved where slopes are measured."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from mb2fmu.validation.reference.finite_differences import _compute_state_spans


def test_an_angle_is_moved_by_a_turn_at_most() -> None:
    """Seen: a right pendulum that spun up failed: steps of many turns at 1e9 rad agree, and say nothing of slopes."""
    reference = SimpleNamespace(
        states=np.array([[0.0, 0.0, 0.0, 2.0], [1e9, 0.5, 1e9, 2.0]]),
        state_scales=np.array([1e9, 0.5, 1e9, 2.0]),
        variables=[SimpleNamespace(unit=unit) for unit in ("rad", "rad", "rad/s", "m")],
        state_columns=range(4),
    )
    spans = _compute_state_spans(reference)  # type: ignore[arg-type]
    np.testing.assert_allclose(spans, [2 * np.pi, 0.5, 1e9, 0.02])
