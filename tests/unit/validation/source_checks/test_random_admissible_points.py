"""Random admissible points of a mechanism whose constraints are redundant: it moves there as it does by default."""

from __future__ import annotations

import numpy as np
import pytest
from ball_joints import linkage
from cranks import carried, platform

from mb2fmu.mechanics.mechanism import read_mechanism, solve_loop_closure_start_values
from mb2fmu.model import check_model
from mb2fmu.validation.source_checks.source_accelerations import sample_source_accelerations


def test_three_cranks_swing_at_every_point(few_points):
    """Closed form: (M + m) l q'' = -(M + 3 m / 2) g sin(q). Seen: points where the cranks lie in line, or lock."""
    checked = check_model(platform())
    found = sample_source_accelerations(checked, solve_loop_closure_start_values(read_mechanism(checked)))
    assert len(found.samples) == few_points
    slot = found.starts
    for sample in found.samples:
        M, m, l, g = (sample.point.values[slot[name]] for name in ("M", "m", "l", "g"))
        expected = -(M + 1.5 * m) * g * np.sin(sample.states["q1"]) / ((M + m) * l)
        for name in ("u1", "u2", "u3"):
            off = abs(sample.rates["kinematics"][name] - expected)
            assert off <= sample.bounds[name], (name, sample.states)
        assert abs(sample.rates["kinematics"]["w"]) <= sample.bounds["w"], sample.states
        assert np.sin(sample.states["q1"]) == pytest.approx(np.sin(sample.states["q3"]), abs=1e-6)


def test_quaternions_in_loops_keep_length_1(few_points):
    """Rows in SymPy's words, whose matrix is no rotation at another length."""
    checked = check_model(linkage())
    mechanism = solve_loop_closure_start_values(read_mechanism(checked))
    found = sample_source_accelerations(checked, mechanism)
    assert len(found.samples) == few_points
    for sample in found.samples:
        assert np.linalg.norm([sample.states[f"e{i}"] for i in range(4)]) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.repeats  # points of redundant rows that lock: three cranks, by day
def test_massless_cranks_that_a_row_holds_swing_at_every_point(few_points):
    """Closed form: q'' = -g cos(q) / l. Seen: points that are nearly locked, and rows that vanish, taken for free."""
    checked = check_model(carried())
    found = sample_source_accelerations(
        checked, solve_loop_closure_start_values(read_mechanism(checked)), {"u1": 2.1, "u2": 2.1, "u3": 2.1, "u4": 0.0}
    )
    assert len(found.samples) >= 3 / 4 * few_points
    slot = found.starts
    for sample in found.samples:
        l, g = (sample.point.values[slot[name]] for name in ("l1", "g"))
        for number in (1, 2, 3):
            expected = -g * np.cos(sample.states[f"q{number}"]) / l
            off = abs(sample.rates["kinematics"][f"u{number}"] - expected)
            assert off <= sample.bounds[f"u{number}"], sample.states
        assert abs(sample.rates["kinematics"]["u4"]) <= sample.bounds["u4"], sample.states
