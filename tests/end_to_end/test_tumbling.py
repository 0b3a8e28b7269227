"""A free body tumbles for 10,000 s in Model Exchange: its quaternions keep their length, by the attraction alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mb2fmu import pipeline

ROOT = Path(__file__).parents[2]
STOP = 10_000.0
SCRIPT = """
import json, sys
import numpy as np
from fmpy import simulate_fmu
fmu, values, stop = sys.argv[1], json.loads(sys.argv[2]), float(sys.argv[3])
names = [f"{q}[{i}]" for q in ("attitude", "swing") for i in range(1, 5)]
result = simulate_fmu(
    fmu, fmi_type="ModelExchange", solver="CVode", stop_time=stop, output_interval=50.0, relative_tolerance=1e-5,
    start_values=values, output=[*names, "kinetic_energy"],
)
columns = np.array([result[name] for name in names])
lengths = [np.sqrt(np.sum(columns[i : i + 4] ** 2, axis=0)) for i in (0, 4)]
print(json.dumps({"time": result["time"][-1], "lengths": [l.tolist() for l in lengths],
                  "turned": float(np.max(np.ptp(columns[:4], axis=1))), "energy": result["kinetic_energy"].tolist()}))
"""


def _tumble(fmu: Path, stop: float, **values: float) -> dict:
    """Weightless, without thrust, spinning about no principal axis."""
    start = {"g": 0.0, "rate.x": 0.1, "rate.y": -0.05, "rate.z": 0.15, "load_rate.x": -0.05, **values}
    command = [sys.executable, "-c", SCRIPT, str(fmu), json.dumps(start), str(stop)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.repeats  # by day the attraction is known in test_ball_joints, from its closed form
def test_quaternions_keep_their_length(tmp_path):
    fmu = pipeline.export(ROOT / "models" / "quadrotor_slung_load.py", tmp_path).path
    seen = _tumble(fmu, STOP)
    assert seen["time"] == STOP
    assert seen["turned"] > 1.0  # it did turn over
    lengths = np.abs(np.array(seen["lengths"]) - 1)
    half = lengths.shape[1] // 2
    assert np.max(lengths) < 1e-3  # a hundred times the solver's tolerance
    assert np.max(lengths[:, half:]) < 3 * np.max(lengths[:, :half])  # and no more in the second half than in the first
    # without the attraction what the solver does to the length stays, and adds up
    free = np.abs(np.array(_tumble(fmu, STOP / 5, k=0.0)["lengths"]) - 1)
    assert np.max(free[:, -1]) > 5 * np.max(lengths), np.max(free)
