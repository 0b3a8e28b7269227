"""Thinning a signal keeps what a picture of it shows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mb2fmu.report.figures.svg_chart import decimate_signal, find_line_gaps

values = st.floats(-1e6, 1e6) | st.just(float("nan")) | st.just(float("inf"))
signals = st.lists(st.tuples(st.floats(0.0, 10.0), values), min_size=1, max_size=300)


def _arrays(signal):
    t, y = np.array(signal).T
    return np.sort(t), y


@given(signals, st.integers(1, 40))
def test_every_column_keeps_its_first_last_lowest_and_highest_sample(signal, columns):
    t, y = _arrays(signal)
    chosen = decimate_signal(t, y, columns)
    finite = np.flatnonzero(np.isfinite(y))
    span = t[-1] - t[0]
    column = np.clip(((t - t[0]) / span * columns).astype(int), 0, columns - 1) if span > 0 else np.zeros(t.size, int)
    for c in np.unique(column[finite]):
        members = finite[column[finite] == c]
        kept = [k for k in chosen if column[k] == c]
        assert kept[0] == members[0]
        assert kept[-1] == members[-1]
        assert min(y[kept]) == min(y[members])
        assert max(y[kept]) == max(y[members])
        assert len(kept) <= 4 or finite.size <= 2


@given(signals, st.integers(1, 40))
def test_indices_grow_and_are_finite(signal, columns):
    t, y = _arrays(signal)
    chosen = decimate_signal(t, y, columns)
    assert np.all(np.diff(chosen) > 0)
    assert np.all(np.isfinite(y[chosen]))


@given(signals, st.integers(1, 40))
def test_the_line_is_interrupted_exactly_where_numbers_are_missing(signal, columns):
    t, y = _arrays(signal)
    chosen = decimate_signal(t, y, columns)
    cuts = set(find_line_gaps(y, chosen).tolist())
    for k in range(1, chosen.size):
        missing = not np.all(np.isfinite(y[chosen[k - 1] : chosen[k] + 1]))
        assert (k in cuts) == missing


def test_one_spike_in_a_hundred_thousand_samples_is_kept():
    t = np.linspace(0.0, 10.0, 100_000)
    y = np.zeros_like(t)
    y[54_321] = 1.0
    chosen = decimate_signal(t, y, 400)
    assert 54_321 in chosen
    assert chosen.size <= 1_600


def test_wrong_arguments_are_refused():
    t = np.array([0.0, 1.0, 0.5])
    with pytest.raises(ValueError, match="backwards"):
        decimate_signal(t, t, 10)
    with pytest.raises(ValueError, match="shape"):
        decimate_signal(t, t[:2], 10)
    with pytest.raises(ValueError, match="columns"):
        decimate_signal(np.sort(t), t, 0)
