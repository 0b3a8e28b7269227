"""Axes: shown range, ticks and their labels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mb2fmu.report.figures.signal_decimation import Samples
from mb2fmu.report.number_format import MINUS_SIGN, format_power_of_ten

AxisScale = Literal["linear", "log"]

# A range narrower than this part of the values would need more digits at its ticks than fit beside the axis; what
# varies by its last digits only is shown as the constant that it is, on an axis of its own size.
_NARROWEST, _CONSTANT = 4e-4, 1e-12
# Letters of a tick for which there is room beside the axis.
_MAX_TICK_LETTERS = 7
# Values this much below the largest are drawn on the lower edge of a logarithmic axis.
_MAX_DECADES = 14
# A signal keeps this part of a decade from the edges of a logarithmic axis.
_EDGE_MARGIN_DECADES = 0.1


@dataclass(frozen=True, slots=True)
class ChartAxis:
    """One axis: values from ``low`` to ``high``; on a logarithmic one both are > 0.

    Attributes:
        scale: ``linear`` or ``log``.
        low: Value at the start of the axis.
        high: Value at its end.
        ticks: (value, label) pairs within the range.
        factor: Exponent e: labels are in units of 10^e.
    """

    scale: AxisScale
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    factor: int = 0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise ValueError(f"an axis from {self.low} to {self.high}")
        if self.scale == "log" and self.low <= 0:
            raise ValueError(f"a logarithmic axis from {self.low}")

    def place(self, values: Samples) -> Samples:
        """Return positions of ``values``: 0 at ``low``, 1 at ``high``; a logarithmic axis cuts them at its ends."""
        if self.scale == "linear":
            return (values - self.low) / (self.high - self.low)
        span = math.log10(self.high) - math.log10(self.low)
        cut = np.clip(values, self.low, self.high)
        return (np.log10(cut) - math.log10(self.low)) / span


def choose_linear_axis(values: Samples, *, about: int = 4, tight: bool = False) -> ChartAxis:
    """Return a linear axis that shows all finite ``values``.

    Args:
        values: What is to be shown; may be empty.
        about: How many ticks are wanted, roughly.
        tight: True: the axis ends where the values end (time). False: it ends at ticks.
    """
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    largest = max(abs(low), abs(high))
    if high - low <= _NARROWEST * largest:
        part = 1.0 if high - low <= _CONSTANT * largest else _NARROWEST
        middle, half = (low + high) / 2, part * largest / 2
        low, high = middle - half, middle + half
    if low == high:
        low, high = low - 1.0, high + 1.0
    step = _round_tick_step((high - low) / about)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    if tight:
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    else:
        low, high = first * step, last * step
    power = math.floor(math.log10(max(abs(low), abs(high))) + 1e-9)
    digits = -math.floor(math.log10(step) + 1e-9)
    plain = max(power, 0) + 1 + (digits + 1 if digits > 0 else 0) + (low < 0)
    factor = 0 if -3 <= power < 5 and plain <= _MAX_TICK_LETTERS else power
    decimals = max(0, factor + digits)
    ticks = tuple((k * step, _format_tick(k * step / 10.0**factor, decimals)) for k in range(first, last + 1))
    return ChartAxis("linear", low, high, ticks, factor)


def choose_log_axis(*signals: Samples, about: int = 4) -> ChartAxis:
    """Return a logarithmic axis over whole decades, at most fourteen, on whose edges no signal lies.

    Args:
        signals: What is to be shown; each may be empty. Where an error crosses zero, its logarithm dives: what only one
            in a hundred samples of a signal reaches is drawn on the lower edge.
        about: How many ticks are wanted, roughly.
    """
    positive = [s[np.isfinite(s) & (s > 0)] for s in signals]
    positive = [s for s in positive if s.size]
    top = max((math.ceil(math.log10(float(s.max())) + _EDGE_MARGIN_DECADES) for s in positive), default=0)
    bottom = min(
        (math.floor(math.log10(float(np.quantile(s, 0.01))) - _EDGE_MARGIN_DECADES) for s in positive), default=top - 1
    )
    top = min(max(top, -306), 308)
    bottom = min(max(bottom, top - _MAX_DECADES, -307), top - 1)
    stride = max(1, math.ceil((top - bottom) / about))
    ticks = tuple((10.0**k, format_power_of_ten(k)) for k in range(top, bottom - 1, -1) if (top - k) % stride == 0)
    return ChartAxis("log", 10.0**bottom, 10.0**top, ticks)


def _round_tick_step(step: float) -> float:
    """Return 1, 2 or 5 times a power of ten, not smaller than ``step``."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(m * power for m in (1.0, 2.0, 5.0, 10.0) if m * power >= step * (1 - 1e-9))


def _format_tick(value: float, decimals: int) -> str:
    """Write the number at a tick: no sign before zero, a real minus before others."""
    text = f"{value:.{decimals}f}"
    if float(text) == 0:
        text = text.lstrip("-")
    return text.replace("-", MINUS_SIGN)
