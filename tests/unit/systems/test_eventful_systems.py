"""A unit with events under the master: a ball that bounces, on a spring below a box, against both as one model."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import pytest
import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Model, export, pipeline, pre
from mb2fmu.pipeline.coupled import whole_motion
from mb2fmu.systems import CoupledSystem, SystemMotion, join, read_component, simulate_system

STOP = 0.8
Kind = Literal["Ball", "Box", "Whole"]


def part(kind: Kind) -> Model:
    """The ball takes a force, the box on its spring the ball's height; or both."""
    h, v, x, w, force, s = me.dynamicsymbols("h v x w F s")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    A, B = O.locatenew("A", h * N.y), O.locatenew("B", x * N.y)
    A.set_vel(N, v * N.y)
    B.set_vel(N, w * N.y)
    spring = 20 * (x - (s if kind == "Box" else h) - sm.Rational(1, 2))
    pull, g = (force if kind == "Ball" else spring), sm.Float(9.81)
    ball, box = kind != "Box", kind != "Ball"
    kane = me.KanesMethod(
        N, [*[h] * ball, *[x] * box], [*[v] * ball, *[w] * box], [*[h.diff() - v] * ball, *[x.diff() - w] * box],
        bodies=[*[me.Particle("ball", A, 1)] * ball, *[me.Particle("box", B, 2)] * box],
        forcelist=[*[(A, (pull - g) * N.y)] * ball, *[(B, (-spring - 2 * g) * N.y)] * box],
    )  # fmt: skip
    model = Model(kind, kane)
    if ball:
        model.coordinate(h, 0.3, "m")
        model.speed(v, 0.0, "m/s")
        model.when(h <= 0, {v: -sm.Rational(9, 10) * pre(v)}, name="impact")
    if box:
        model.coordinate(x, 0.8, "m")
        model.speed(w, 0.0, "m/s")
    if kind == "Ball":
        model.input(force, 0.0, "N")
    if kind == "Box":
        model.input(s, 0.3, "m")
        model.output("force", spring, "N")
    model.experiment(stop=STOP, step=0.01, tolerance=1e-11)
    return model


@pytest.fixture(scope="module")
def units(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Path]]:
    """FMI version of the ball → its unit and that of the box, of FMI 3 in both."""
    folder = tmp_path_factory.mktemp("leash")
    box = export(part("Box"), folder, fmi="3").path
    return {
        fmi: {"Ball": export(part("Ball"), folder / fmi, fmi=fmi).path, "Box": box}  # type: ignore[call-arg]
        for fmi in ("2", "3")
    }


@cache
def truth() -> dict[str, npt.NDArray[np.float64]]:
    return whole_motion(pipeline.derive(part("Whole")), np.linspace(0.0, STOP, 161))


def coupled(units: dict[str, Path], step: float) -> tuple[SystemMotion, float]:
    """The motion, and the largest error of the ball's height at the multiples of the step."""
    system = CoupledSystem("Leash")
    for kind, path in units.items():
        system.component(kind.lower(), path)
    system.connect("ball.h", "box.s")
    system.connect("box.force", "ball.F")
    system.experiment(stop=STOP, step=step, tolerance=1e-11, order=2, passes=20, converged=1e-11)
    motion = simulate_system(join(system, [read_component(name, system.source_of(name)) for name in system.names]))
    grid = np.arange(round(STOP / step) + 1) * step
    rows = [int(np.flatnonzero(np.abs(motion.time - t) < 1e-9)[-1]) for t in grid]
    every = round(step / 0.005)
    return motion, float(np.max(np.abs(motion["ball.h"][rows] - truth()["h"][::every])))


def test_steps_end_at_events_of_fmi_3_so_that_the_order_stays(units: dict[str, dict[str, Path]]) -> None:
    """Event Mode and early return of a unit of ours: all components meet at each impact, and courses begin anew."""
    found = [coupled(units["3"], step) for step in (0.02, 0.01)]
    errors = [error for _, error in found]
    assert errors[1] < 1e-5
    assert np.log2(errors[0] / errors[1]) == pytest.approx(3.0, abs=0.2)
    motion = found[1][0]
    jumps = np.flatnonzero((motion["ball.v"][:-1] < -0.5) & (motion["ball.v"][1:] > 0.5))
    assert np.max(np.abs(motion["ball.h"][jumps])) < 1e-6
    first = motion.time[jumps[0]]
    assert abs(first - np.sqrt(0.6 / 9.81)) < 1e-4  # falls freely but for the spring, which is slack at first
    assert motion.tally["early"] >= len(jumps) >= 2


def test_units_of_fmi_2_bounce_within_their_steps(units: dict[str, dict[str, Path]]) -> None:
    """Nobody can be told of their events: right within less, and no order is left."""
    motion, error = coupled(units["2"], 0.005)
    assert error < 5e-4
    assert motion.tally["events"] == motion.tally["early"] == 0
