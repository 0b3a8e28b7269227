"""Where the growth of start errors is measured once more, with a smaller error."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from mb2fmu.validation import make_reference
from mb2fmu.validation.reference import start_error_growth


@pytest.mark.parametrize(
    ("at_end", "beyond"),
    [((5.0, 3.0), False), ((5e5, 3.0), True), ((5.0, 3e3), True), ((np.nan, 3.0), True)],
    ids=["small and still", "chaotic", "still, but its error grows", "no number"],
)
def test_error_of_a_state_that_stands_still_has_not_grown(at_end, beyond):
    """The second state stays at 3: any error is larger than a twentieth of its range."""
    reference = SimpleNamespace(state_columns=(0, 1), states=np.array([[0.0, 3.0], [1.0, 3.0]]))
    assert start_error_growth._grows_beyond_small(reference, np.array([(1.0, 3.0), at_end])) == beyond


def test_chaos_is_measured_with_a_smaller_error_too(cases, monkeypatch):
    case = cases["double_pendulum"]((2.5, 2.5), stop=20.0)
    reference = make_reference(case.definition, case.equations)
    errors = []
    measure = start_error_growth._measure_growth
    monkeypatch.setattr(
        start_error_growth, "_measure_growth", lambda run, error: errors.append(error) or measure(run, error)
    )
    growth = start_error_growth.measure_start_error_growth(reference)
    assert errors == [start_error_growth.RELATIVE_START_ERROR, start_error_growth.SMALLER_START_ERROR]
    assert np.all(growth >= measure(reference, start_error_growth.SMALLER_START_ERROR))
