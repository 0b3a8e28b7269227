"""An FMU with events under the master: a ball that bounces, on a spring below a box, against both as one model."""

from __future__ import annotations

import uuid
from functools import cache
from pathlib import Path
from typing import Any, Literal

import fmpy
import numpy as np
import numpy.typing as npt
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from fmpy.fmi1 import FMICallException
from fmpy.fmi2 import FMU2Slave
from fmpy.fmi3 import FMU3Slave

from mb2fmu import Model, export, pipeline, pre
from mb2fmu.pipeline.system_runs.monolithic_model_simulation import simulate_monolithic_model
from mb2fmu.systems import CoupledSystem, SystemTrajectories, read_fmu_component, simulate_system, wire_system

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
    return simulate_monolithic_model(pipeline.derive(part("Whole")), np.linspace(0.0, STOP, 321))


def coupled(units: dict[str, Path], step: float) -> tuple[SystemTrajectories, float]:
    """The motion, and the largest error of the ball's height at the multiples of the step."""
    system = CoupledSystem("Leash")
    for kind, path in units.items():
        system.component(kind.lower(), path)
    system.connect("ball.h", "box.s")
    system.connect("box.force", "ball.F")
    system.experiment(stop=STOP, step=step, tolerance=1e-11, order=2, passes=20, converged=1e-11)
    motion = simulate_system(
        wire_system(system, [read_fmu_component(each.name, each.source) for each in system.components])
    )
    grid = np.arange(round(STOP / step) + 1) * step
    rows = [int(np.flatnonzero(np.abs(motion.time - t) < 1e-9)[-1]) for t in grid]
    every = round(step / 0.0025)
    return motion, float(np.max(np.abs(motion["ball.h"][rows] - truth()["h"][::every])))


def test_steps_end_at_events_of_fmi_3_so_that_the_order_stays(units: dict[str, dict[str, Path]]) -> None:
    """Event Mode and early return of an FMU of ours: all components meet at each impact, and courses begin anew.

    Where in a step an impact comes is another matter at each size, so that the order is known roughly.
    """
    found = [coupled(units["3"], step) for step in (0.01, 0.005)]
    errors = [error for _, error in found]
    assert errors[0] < 1e-5
    assert np.log2(errors[0] / errors[1]) == pytest.approx(3.0, abs=0.4)
    motion = found[1][0]
    jumps = np.flatnonzero((motion["ball.v"][:-1] < -0.5) & (motion["ball.v"][1:] > 0.5))
    assert np.max(np.abs(motion["ball.h"][jumps + 1])) < 1e-6
    first = motion.time[jumps[0] + 1]
    assert abs(first - np.sqrt(0.6 / 9.81)) < 1e-4  # falls freely but for the spring, which is slack at first
    assert motion.statistics["early_returns"] >= len(jumps) >= 2


def test_fmus_of_fmi_2_bounce_within_their_steps(units: dict[str, dict[str, Path]]) -> None:
    """Nobody can be told of their events: right within less, and no order is left."""
    motion, error = coupled(units["2"], 0.005)
    assert error < 5e-4
    assert motion.statistics["events"] == motion.statistics["early_returns"] == 0


def instance(path: Path, folder: Path, *, events: bool = False) -> Any:
    """An FMU of Co-Simulation at the start of its run, in Step Mode."""
    described = fmpy.read_model_description(str(path))
    folder = Path(fmpy.extract(str(path), unzipdir=str(folder / str(uuid.uuid4()))))
    new = described.fmiVersion.startswith("3")
    made = (FMU3Slave if new else FMU2Slave)(
        guid=described.guid, unzipDirectory=str(folder), modelIdentifier=described.coSimulation.modelIdentifier
    )
    if new:
        made.instantiate(eventModeUsed=events, earlyReturnAllowed=events)
    else:
        made.instantiate()
        made.setupExperiment()
    made.enterInitializationMode()
    made.exitInitializationMode()
    if events:
        made.updateDiscreteStates()
        made.enterStepMode()
    return made


def to_the_impact(ball: Any) -> float:
    """Steps until one ends early, and enters Event Mode; the time."""
    for k in range(100):
        event, _, early, time = ball.doStep(0.02 * k, 0.02)
        if event:
            assert early
            ball.enterEventMode()
            return time
    raise AssertionError("it never lands")


def onwards(ball: Any, time: float) -> list[bytes]:
    """From Event Mode through the impact and what else happens, 20 steps on; h and v by their bits after each."""
    seen = []
    event, now = True, time
    for _ in range(20):
        if event:
            ball.updateDiscreteStates()
            ball.enterStepMode()
        event, _, _, now = ball.doStep(now, 0.005)
        if event:
            ball.enterEventMode()
        seen.append(np.array([now, *ball.getFloat64(places(ball))]).tobytes())
    return seen


def places(ball: Any) -> tuple[int, int]:
    """References of h and v."""
    described = {each.name: each for each in fmpy.read_model_description(str(ball.unzipDirectory)).modelVariables}
    return described["h"].valueReference, described["v"].valueReference


def test_a_state_of_event_mode_goes_on_with_the_same_bits(units: dict[str, dict[str, Path]], tmp_path: Path) -> None:
    """Kept between a step that ended at an impact and the impact: in the instance, and as bytes in another one."""
    ball, other = (instance(units["3"]["Ball"], tmp_path, events=True) for _ in range(2))
    time = to_the_impact(ball)
    state = ball.getFMUState()
    kept = ball.serializeFMUState(state)
    wanted = onwards(ball, time)
    ball.setFMUState(state)
    assert onwards(ball, time) == wanted
    read = other.deserializeFMUState(kept)
    other.setFMUState(read)
    assert other.serializeFMUState(other.getFMUState()) == kept
    assert onwards(other, time) == wanted
    speeds = [np.frombuffer(each)[2] for each in wanted]
    assert max(speeds) > 1.0  # it bounced
    other.setFMUState(read)
    assert other.getFloat64([places(other)[1]])[0] < -1.0  # the state is that before the impact


@pytest.mark.parametrize("fmi", ["2", "3"])
def test_a_state_of_event_mode_is_refused_where_there_is_none(
    units: dict[str, dict[str, Path]], tmp_path: Path, fmi: str
) -> None:
    """By an instance without Event Mode: a true state of FMI 3, and in FMI 2 one that was forged, checksum and all."""
    plain = instance(units[fmi]["Ball"], tmp_path)
    keep, write, read = (
        (plain.getFMUState, plain.serializeFMUState, plain.deserializeFMUState)
        if fmi == "3"
        else (plain.getFMUstate, plain.serializeFMUstate, plain.deSerializeFMUstate)
    )
    own = bytes(write(keep()))
    token = int.from_bytes(own[16:24], "little")
    place = 24 + token + 6 * 8
    assert int.from_bytes(own[place : place + 8], "little") == STEP_MODE
    assert read(own)
    data = own[:place] + EVENT_MODE.to_bytes(8, "little") + own[place + 8 : -8]
    forged = data + checksum(data)
    assert checksum(own[:-8]) == own[-8:]
    with pytest.raises(FMICallException):
        read(forged)
    if fmi == "3":
        ball = instance(units["3"]["Ball"], tmp_path, events=True)
        to_the_impact(ball)
        with pytest.raises(FMICallException):
            read(ball.serializeFMUState(ball.getFMUState()))


EVENT_MODE, STEP_MODE = 4, 16
"""Of ``enum mb2fmu_mode`` in ``instance.h``."""


def checksum(data: bytes) -> bytes:
    """FNV-1a with 64 bits."""
    total = 0xCBF29CE484222325
    for byte in data:
        total = (total ^ byte) * 0x100000001B3 % 2**64
    return total.to_bytes(8, "little")
