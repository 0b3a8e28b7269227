"""Words that a study's plan chooses from; the command line shows them, too."""

from __future__ import annotations

from typing import Literal

Method = Literal["grid", "latin-hypercube", "sobol", "table"]
Take = Literal["end", "largest", "smallest", "mean", "rms", "first-crossing"]
Direction = Literal["either", "rising", "falling"]

SAMPLING_METHODS: tuple[Method, ...] = ("grid", "latin-hypercube", "sobol", "table")
REDUCTION_KINDS: tuple[Take, ...] = ("end", "largest", "smallest", "mean", "rms", "first-crossing")
CROSSING_DIRECTIONS: tuple[Direction, ...] = ("either", "rising", "falling")
