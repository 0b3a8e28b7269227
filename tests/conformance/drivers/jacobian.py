"""An FMU in casadi: its Jacobian (declared sparsity, directional derivatives) against differences.

Arguments: FMU, file with points of the motion. The points are up to a reach (SI) away from those, the parameters up to
a third of it, relative.
"""

import json
import sys
import tempfile
import zipfile
from pathlib import Path

import casadi
import numpy as np

folder = tempfile.mkdtemp()
zipfile.ZipFile(sys.argv[1]).extractall(folder)
dae = casadi.DaeBuilder("unit", folder)
f = dae.create("f", ["t", "x", "u", "p"], ["ode"])
names = [f"jac:ode:{name}" for name in ("x", "u", "p")]
J = f.factory("J", ["t", "x", "u", "p"], names)
about = json.loads(Path(sys.argv[2]).read_text())
reach = about["reach"]
rng = np.random.default_rng(1)


def start(kind):
    return np.array(dae.start(list(getattr(dae, kind)())), dtype=float).reshape(-1)


def value(point):
    return np.array(f(*point)).reshape(-1)


def noise(point):
    """Of each derivative: how far it jumps where the knowns move by their own round-off."""
    eps = 4 * np.finfo(float).eps
    return np.ptp(
        [value([part * (1 + eps * rng.normal(size=np.shape(part))) for part in point]) for _ in range(8)], axis=0
    )


for place in about["points"][::2]:
    t = 0.3
    x = np.array([place[name] for name in dae.x()]) + reach * rng.uniform(0.2, 1, len(dae.x()))
    u = start("u") + reach * rng.uniform(0.2, 1, len(dae.u()))
    p = start("p") * (1 + reach / 3 * rng.uniform(0.2, 1, len(dae.p())))
    point = [t, x, u, p]
    jumps = noise(point)
    for number, exact in enumerate(J(*point), start=1):
        dense = np.array(casadi.DM(exact))
        for column in range(dense.shape[1]):
            slopes = []
            for h in (2e-4, 1e-4):
                ends = []
                for sign in (1, -1):
                    moved = [np.array(part, dtype=float) for part in point]
                    size = abs(moved[number][column])
                    # a small inertia stays an inertia
                    step = h * (size if number == 3 and size else max(size, 0.1))
                    moved[number][column] += sign * step
                    ends.append(value(moved))
                slopes.append((ends[0] - ends[1]) / (2 * step))
            found = (4 * slopes[1] - slopes[0]) / 3
            # a difference divides round-off by its step
            trust = np.abs(slopes[1] - slopes[0]) + 1e-6 * np.max(np.abs(slopes[1])) + 1e-9 + 3 * jumps / step
            worst = np.abs(found - dense[:, column]) / trust
            assert np.all(worst <= 1), (names[number - 1], column, found, dense[:, column])
sys.stdout.write(f"{len(dae.x())} states, {len(dae.u())} inputs, {len(dae.p())} parameters\nok\n")
