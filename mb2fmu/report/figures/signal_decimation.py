"""Thin out long signals for drawing without changing any pixel column.

A column of pixels shows where the line enters, where it leaves and how far it reaches up and down. Keeping each
column's first, last, lowest and highest sample (Jugel and others, "M4: a visualization-oriented time series data
aggregation", 2014) draws the same picture as all samples, however short a spike is.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Samples = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]


def decimate_signal(t: Samples, y: Samples, columns: int) -> Indices:
    """Return indices of the samples that draw the same line as all of them.

    Args:
        t: Shape (n,), not decreasing, finite.
        y: Shape (n,). Samples that are not finite are left out.
        columns: Number of pixel columns that the range of ``t`` fills, ≥ 1.

    Returns:
        Increasing indices into ``t`` and ``y``, at most four per column: first, lowest, highest and last of each.

    Raises:
        ValueError: If the shapes differ, ``t`` decreases, or ``columns`` < 1.
    """
    if t.shape != y.shape or t.ndim != 1:
        raise ValueError(f"t has shape {t.shape}, y has shape {y.shape}")
    if columns < 1:
        raise ValueError(f"columns = {columns}")
    if np.any(np.diff(t) < 0):
        raise ValueError("time runs backwards")
    finite = np.flatnonzero(np.isfinite(y))
    if finite.size <= 2:
        return finite
    column = _pixel_columns(t[finite], float(t[0]), float(t[-1]), columns)
    first = np.flatnonzero(np.diff(column, prepend=-1))
    last = np.append(first[1:], column.size) - 1
    lowest = _find_first_extremes(y[finite], np.minimum.reduceat(y[finite], first), first)
    highest = _find_first_extremes(y[finite], np.maximum.reduceat(y[finite], first), first)
    chosen = np.unique(np.concatenate([first, lowest, highest, last]))
    return np.asarray(finite[chosen], dtype=np.intp)


def find_line_gaps(y: Samples, indices: Indices) -> Indices:
    """Return positions in ``indices`` where a line must be interrupted, because samples before are not finite.

    Args:
        y: Shape (n,), the whole signal.
        indices: Increasing indices into ``y``, from :func:`decimate_signal`.

    Returns:
        Positions k ≥ 1 such that some sample between ``indices[k - 1]`` and ``indices[k]`` is not finite.
    """
    missing = np.cumsum(~np.isfinite(y))
    return np.flatnonzero(np.diff(missing[indices]) > 0) + 1


def _pixel_columns(t: Samples, start: float, stop: float, columns: int) -> Indices:
    """Return the pixel column of each time, 0 … columns − 1."""
    if stop <= start:
        return np.zeros(t.size, dtype=np.intp)
    position = (t - start) / (stop - start) * columns
    return np.clip(position.astype(np.intp), 0, columns - 1)


def _find_first_extremes(y: Samples, extremes: Samples, first: Indices) -> Indices:
    """Return the index of each group's first sample (groups start at ``first``) that equals the group's extreme."""
    counts = np.diff(np.append(first, y.size))
    group = np.repeat(np.arange(first.size), counts)
    candidates = np.flatnonzero(y == extremes[group])
    _, positions = np.unique(group[candidates], return_index=True)
    return np.asarray(candidates[positions], dtype=np.intp)
