"""Length of a robot's default experiment: short where the motion becomes chaotic, since a chaotic motion tells little.

And a note where its steps are far longer than what dampers take to stop a joint.
"""

from __future__ import annotations

import math

from mb2fmu.robots.robot_settings import RobotSettings

MAX_LENGTH_S = 2.0
"""s."""

MAX_DEVIATION_GROWTH = 1000.0
"""What a small deviation may become within the default experiment."""

MIN_STEP_COUNT = 25
"""Communication steps at least."""

_STIFFNESS_LIMIT = 1000.0
"""Times that what dampers stop may die away within a step; beyond that an explicit method takes many small steps."""


def choose_experiment_length(settings: RobotSettings, fall: float, *, by_laws: bool) -> float:
    """Return the length in s: as requested, else 2 s or until small deviations have grown a thousandfold.

    Args:
        settings: What is asked for.
        fall: Rate of the fastest exponential at the start, 1/s; 0 where nothing falls.
        by_laws: Drives with laws of their own hold the robot.
    """
    if settings.stop is not None:
        return settings.stop
    if by_laws or settings.role == "inverse-dynamics" or fall * MAX_LENGTH_S <= math.log(MAX_DEVIATION_GROWTH):
        return MAX_LENGTH_S
    steps = max(MIN_STEP_COUNT, round(math.log(MAX_DEVIATION_GROWTH) / (fall * settings.step)))
    return float(f"{min(MAX_LENGTH_S, steps * settings.step):.12g}")


def note_stiffness(settings: RobotSettings, rate: float) -> tuple[str, ...]:
    """Return a note if dampers stop joints at such a rate, in 1/s, that an explicit method takes very small steps."""
    if settings.role != "plant" or rate * settings.step <= _STIFFNESS_LIMIT:
        return ()
    when = f"dampers stop joints within {1.0 / rate:.1g} s, far below a step"
    return (f"{when}: the FMU's own solver is implicit (--solver explicit: it is not)",)
