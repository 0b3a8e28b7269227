"""Random admissible points of a mechanism whose constraints are redundant: it moves there as it does by default."""

from __future__ import annotations

import numpy as np
import pytest
from cranks import platform

from mb2fmu.mechanism import close_loops, read
from mb2fmu.model import check
from mb2fmu.validation.own_motion import POINTS, own_motions


def test_three_cranks_swing_at_every_point():
    """Closed form: (M + m) l q'' = -(M + 3 m / 2) g sin(q). Seen: points where the cranks lie in line, or lock."""
    checked = check(platform())
    found = own_motions(checked, close_loops(read(checked)))
    assert len(found.samples) == POINTS
    slot = found.starts
    for sample in found.samples:
        M, m, l, g = (sample.point.values[slot[name]] for name in ("M", "m", "l", "g"))
        expected = -(M + 1.5 * m) * g * np.sin(sample.states["q1"]) / ((M + m) * l)
        for name in ("u1", "u2", "u3"):
            off = abs(sample.rates["kinematics"][name] - expected)
            assert off <= sample.bounds[name], (name, sample.states)
        assert abs(sample.rates["kinematics"]["w"]) <= sample.bounds["w"], sample.states
        assert np.sin(sample.states["q1"]) == pytest.approx(np.sin(sample.states["q3"]), abs=1e-6)
