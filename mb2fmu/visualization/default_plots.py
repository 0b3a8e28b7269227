"""Choose the variables that deserve a first look."""

from __future__ import annotations

import numpy as np

from mb2fmu.visualization.scene.scene_pose_trajectories import PlotSignals

_CONSTANT_TOLERANCE = 1e-9
_MAX_PLOTS_PER_UNIT = 2
_ENERGY_WORDS = ("energy",)


def choose_default_plots(signals: PlotSignals, most: int = 4) -> tuple[str, ...]:
    """Return variables that move, in their own order, of different units, the liveliest first.

    A variable is lively if it changes in many steps and not only grows: its path, the sum of what it changes, over its
    range. What only grows (an angle of a wheel) comes last, derivatives and balances of energy after that.

    Args:
        signals: Over time.
        most: How many at most.
    """
    ranked = []
    for k, (name, unit) in enumerate(zip(signals.names, signals.units, strict=True)):
        values = signals.values[:, k]
        finite = values[np.isfinite(values)]
        if len(finite) < 2:
            continue
        span = float(np.ptp(finite))
        if span <= _CONSTANT_TOLERANCE * (1.0 + float(np.max(np.abs(finite)))):
            continue
        path = float(np.sum(np.abs(np.diff(finite)))) / span
        plain = not (name.startswith("der(") or any(word in name for word in _ENERGY_WORDS))
        ranked.append((not plain, path < 1.0 + 1e-6, _unit_rank(unit), k, name, unit))
    chosen: list[tuple[int, str]] = []
    counts: dict[str, int] = {}
    for *_, k, name, unit in sorted(ranked):
        if counts.get(unit, 0) < _MAX_PLOTS_PER_UNIT and len(chosen) < most:
            counts[unit] = counts.get(unit, 0) + 1
            chosen.append((k, name))
    return tuple(name for _, name in sorted(chosen))


def _unit_rank(unit: str) -> int:
    """Return the rank of a unit: positions and angles, then speeds, then forces, then all else."""
    kinds = (("m", "rad", "deg", "mm"), ("m/s", "rad/s", "rpm"), ("N", "N.m"))
    return next((rank for rank, units in enumerate(kinds) if unit in units), len(kinds))
