"""Encode numbers over time in few characters: details below a picture's resolution are dropped.

A channel is one number over time. One that does not change is sent once; the others as 65,536 steps between their
smallest and largest value (a picture of 4,000 pixels needs a sixteenth of that), each as its difference from the one
before, so that smooth motion compresses well. ``viewer.js`` reads it.
"""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

STEPS = 65535
_STILL = 1e-9


def encoded(values: Floats) -> dict[str, Any]:
    """Return channels as a record for JSON.

    Args:
        values: Shape (n_t, n_channels), finite.

    Returns:
        ``ranges``: per channel [value] or [smallest, largest]; ``data``: base64 of a zlib stream, for each channel that
        changes the low bytes of all differences, then the high bytes.
    """
    low, high = values.min(axis=0), values.max(axis=0)
    scale = np.maximum(np.abs(low), np.abs(high))
    still = high - low <= _STILL * np.maximum(scale, 1e-30)
    span = np.where(still, 1.0, high - low)
    steps = np.rint((values - low) / span * STEPS)[:, ~still].astype(np.int64)
    differences = (np.diff(steps, axis=0, prepend=np.zeros((1, steps.shape[1]), dtype=np.int64)) & 0xFFFF).T
    content = b"".join(
        (row & 0xFF).astype(np.uint8).tobytes() + (row >> 8).astype(np.uint8).tobytes() for row in differences
    )
    ranges = [[_short(a)] if s else [_short(a), _short(b)] for a, b, s in zip(low, high, still, strict=True)]
    return {"ranges": ranges, "data": base64.b64encode(zlib.compress(content, 9)).decode()}


def decoded(record: dict[str, Any], count: int) -> Floats:
    """Return the channels of :func:`encoded`, as a viewer sees them, shape (count, n_channels)."""
    content = np.frombuffer(zlib.decompress(base64.b64decode(record["data"])), dtype=np.uint8).astype(np.int64)
    columns, at = [], 0
    for limits in record["ranges"]:
        if len(limits) == 1:
            columns.append(np.full(count, float(limits[0])))
            continue
        steps = np.cumsum(content[at : at + count] + 256 * content[at + count : at + 2 * count]) & 0xFFFF
        columns.append(limits[0] + steps / STEPS * (limits[1] - limits[0]))
        at += 2 * count
    return np.stack(columns, axis=1) if columns else np.zeros((count, 0))


def _short(value: float) -> float:
    """Return a number rounded to nine digits."""
    return float(f"{value:.9g}")
