"""Reads the channels of an animation page as its viewer does."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

from mb2fmu.visualization.animation_page import QUANTIZATION_STEPS

Floats = npt.NDArray[np.float64]


def decode_animation_channels(record: dict[str, Any], count: int) -> Floats:
    """Return the channels of ``encode_animation_channels``, as a viewer sees them, shape (count, n_channels)."""
    content = np.frombuffer(zlib.decompress(base64.b64decode(record["data"])), dtype=np.uint8).astype(np.int64)
    columns, at = [], 0
    for limits in record["ranges"]:
        if len(limits) == 1:
            columns.append(np.full(count, float(limits[0])))
            continue
        steps = np.cumsum(content[at : at + count] + 256 * content[at + count : at + 2 * count]) & 0xFFFF
        columns.append(limits[0] + steps / QUANTIZATION_STEPS * (limits[1] - limits[0]))
        at += 2 * count
    return np.stack(columns, axis=1) if columns else np.zeros((count, 0))
