"""The examples in systems/, each within its stated bound of the whole model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mb2fmu.pipeline.coupled import couple, joined_system
from mb2fmu.systems import simulate_system

FOLDER = Path(__file__).parents[2] / "systems"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("two_masses", {}),
        ("cut_pendulum", {"stop": 0.25}),
        ("quarter_truck", {"stop": 1.2}),
    ],
)
def test_an_example_is_within_its_bound(name: str, arguments: dict[str, float], tmp_path: Path) -> None:
    done = couple(FOLDER / name / "system.py", tmp_path, arguments=arguments)
    assert done.deviations
    worst = max(done.deviations, key=lambda each: each.relative)
    assert worst.relative <= (done.joined.system.run.bound or 0.0), worst.name
    assert done.motion.tally["unsettled"] == 0


def test_the_truck_stands_still_until_the_bump() -> None:
    """The start is consistent over the connections: the suspension carries the weight from the first moment."""
    joined = joined_system(FOLDER / "quarter_truck" / "system.py", arguments={"stop": 0.3, "step": 0.01})
    motion = simulate_system(joined)
    assert np.max(np.abs(motion["body.v"])) < 1e-9
