"""Events that time alone brings, in Model Exchange: the instant is reported, and found if nobody goes there.

Importers differ: some go to the instant that is reported and look at no indicators, some look at indicators alone, fmpy
does both and takes a time event for reached within 1e-9 of it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import fmpy
import lines
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from fmpy.fmi2 import FMU2Model
from fmpy.fmi3 import FMU3Model

from mb2fmu import export, pre

x, v, u, n, wake, alarms = me.dynamicsymbols("x1 v1 u n wake alarms")
PERIOD, OFFSET, STOP = 0.1, 0.03, 1.99
DUE = sorted(
    [
        *(OFFSET + k * PERIOD for k in range(20)),
        *(0.25 + 0.21 * k for k in range(9)),  # an alarm that sets itself
        *(0.3 * k for k in range(1, 7)),  # floor(t / T)
        *(k * 0.4 + part for k in range(5) for part in (0.0, 0.15)),
        0.77,
    ]
)
Way = Literal["both", "times", "indicators"]
CLASSES = {"2": (FMU2Model, "newDiscreteStates"), "3": (FMU3Model, "updateDiscreteStates")}


@pytest.fixture(scope="module")
def units(tmp_path_factory) -> dict[str, Path]:
    """A mass under forces of time in all forms that are linear in it between events."""
    t = me.dynamicsymbols._t
    turn, period = sm.symbols("turn T")
    square = sm.Piecewise((1, sm.Mod(t, 0.4) < 0.15), (-1, True))
    force = u + sm.Piecewise((0, t < turn), (2, True)) + square + 0.2 * sm.floor(t / period) - x
    model, *_ = lines.masses("Times", [(1.0, 0.5)], lambda _: [force])
    model.parameter(turn, 0.77, "s")
    model.parameter(period, 0.3, "s")
    for symbol, start in ((u, 0.0), (n, 0.0), (wake, 0.25), (alarms, 0.0)):
        model.discrete(symbol, start, name=str(symbol.func))
    model.every(PERIOD, {u: -2 * x - v, n: pre(n) + 1}, offset=OFFSET, name="sample")
    model.when(t >= wake, {wake: wake + 0.21, alarms: pre(alarms) + 1}, name="alarm")
    model.experiment(stop=STOP, step=STOP / 7, tolerance=1e-8)
    folder = tmp_path_factory.mktemp("times")
    return {fmi: export(model, folder / fmi, fmi=fmi).path for fmi in "23"}


@contextmanager
def importer(fmi: str, way: Way) -> Iterator[list[tuple[float, float]]]:
    """fmpy, blind to indicators or deaf to times: yields when events were, and what was reported of the next."""
    kind, name = CLASSES[fmi]
    reported: list[tuple[float, float]] = []
    now = [0.0]
    update, indicators, set_time = getattr(kind, name), kind.getEventIndicators, kind.setTime

    def updated(self, *arguments):
        *answers, known, at = update(self, *arguments)
        reported.append((now[0], at if known else math.inf))
        return (*answers, known and way != "indicators", at)

    def looked(self, places, count):
        indicators(self, places, count)
        for i in range(count if way == "times" else 0):
            places[i] = 1.0

    def timed(self, time, *arguments):
        now[0] = time
        return set_time(self, time, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kind, name, updated)
        patch.setattr(kind, "getEventIndicators", looked)
        patch.setattr(kind, "setTime", timed)
        yield reported


def ran(unit: Path, fmi: str, way: Way, step: float, solver: str = "CVode") -> tuple[list[tuple[float, float]], dict]:
    """Events and what was reported at each; values at the end."""
    with importer(fmi, way) as reported:
        run = fmpy.simulate_fmu(
            str(unit), fmi_type="ModelExchange", stop_time=STOP, output_interval=step, relative_tolerance=1e-9,
            output=["x1", "n", "alarms"], solver=solver, timeout=20,
        )  # fmt: skip
    return reported, {name: float(run[name][-1]) for name in ("x1", "n", "alarms")}


@pytest.mark.parametrize("fmi", "23")
@pytest.mark.parametrize("step", [0.01, 0.0731, 0.5])
def test_all_importers_come_to_the_same(units, fmi, step):
    ends = {}
    for way, late in (("both", 1e-12), ("times", 1e-12), ("indicators", 1e-9)):
        reported, ends[way] = ran(units[fmi], fmi, way, step)
        assert ends[way]["n"] == 20
        assert ends[way]["alarms"] == 9
        seen = [time for time, _ in reported]
        for due in DUE:  # each has its event, and what else there is is another look at one of them, or the start
            assert any(-1e-13 <= time - due <= late for time in seen), (way, due)
        assert all(min(abs(time - due) for due in (0.0, *DUE)) <= late for time in seen), way
        assert all(after > time for time, after in reported), way
        assert len(reported) < len(DUE) + 8
    assert ends["times"]["x1"] == pytest.approx(ends["both"]["x1"], rel=1e-7)
    assert ends["indicators"]["x1"] == pytest.approx(ends["both"]["x1"], rel=1e-7)


@pytest.mark.parametrize("fmi", "23")
def test_fixed_steps_end_at_what_is_reported(units, fmi):
    """Euler's method in fmpy takes no root of an indicator: what happens at set times is in time all the same."""
    reported, end = ran(units[fmi], fmi, "both", 0.0199)
    seen = [time for time, _ in reported]
    assert end["n"] == 20
    assert all(any(-1e-13 <= time - due <= 1e-12 for time in seen) for due in DUE)


@pytest.mark.parametrize("fmi", "23")
def test_what_is_looked_at_early_happens_once(units, fmi):
    """Where an importer takes it for reached, by its own measure: not lost, not twice, and not for ever."""
    unit = Instance(units[fmi], fmi)
    after = unit.event(0.0)
    for due in (0.03, 0.13):
        assert after == pytest.approx(due, abs=1e-15)
        count = unit.real("n")
        for early in (5e-10, 1e-13, 2e-16):
            at = due * (1 - early)
            if at < after:
                after = unit.event(at)
                assert at < after <= max(due, at) + 2e-13
                assert unit.real("n") == count
        following = unit.event(after)
        assert unit.real("n") == count + 1
        assert unit.event(after) == following
        assert unit.real("n") == count + 1
        after = next_sample(unit, following, due + PERIOD)
    unit.free()


@pytest.mark.parametrize("fmi", "23")
def test_what_the_beginning_of_a_ramp_decides_is_decided_with_it(ramp, fmi):
    """Seen: max(0, most ramp) turned on in the second update at one instant, though the first had asked for none."""
    unit = Instance(ramp[fmi], fmi)
    after = unit.event(0.0)
    assert after == pytest.approx(0.5, abs=1e-12)
    following = unit.event(after)
    assert following == pytest.approx(1.5, abs=1e-12)
    modes = [unit.real(f"mode[{k}]") for k in (1, 2, 3)]
    assert unit.event(after) == following
    assert [unit.real(f"mode[{k}]") for k in (1, 2, 3)] == modes
    unit.free()


@pytest.fixture(scope="module")
def ramp(tmp_path_factory) -> dict[str, Path]:
    """A mass under a force that begins at 0.5 s, is full at 1.5 s, and pushes only, as is said once more."""
    t = me.dynamicsymbols._t
    most = sm.Symbol("most")
    force = sm.Max(0, most * sm.Min(1, sm.Max(0, t - sm.Rational(1, 2)))) - x
    model, *_ = lines.masses("Ramp", [(1.0, 0.5)], lambda _: [force])
    model.parameter(most, 3.0, "N")
    model.experiment(stop=2.0, step=0.1)
    folder = tmp_path_factory.mktemp("ramp")
    return {fmi: export(model, folder / fmi, fmi=fmi).path for fmi in "23"}


def next_sample(unit: Instance, after: float, due: float) -> float:
    """Goes from event to event as far as the one before a sample."""
    while after < due - 1e-9:
        after = unit.event(after)
    return after


@pytest.mark.parametrize("fmi", "23")
def test_the_next_instant_is_that_of_the_restored_state(units, fmi):
    unit = Instance(units[fmi], fmi)
    reported = list(itertools.accumulate(range(12), lambda at, _: unit.event(at), initial=0.0))
    kept = unit.model.getFMUState()
    on = [unit.event(reported[-1])]
    on.append(unit.event(on[0]))
    assert on[1] > on[0] > reported[-1]
    unit.model.setFMUState(kept)
    assert [unit.event(reported[-1]), unit.event(on[0])] == on
    unit.free()


class Instance:
    """An FMU in Model Exchange that stands still: its states are not integrated."""

    def __init__(self, path: Path, fmi: str) -> None:
        description = fmpy.read_model_description(str(path))
        kind, self._update = CLASSES[fmi]
        self._at = {each.name: each.valueReference for each in description.modelVariables}
        self._folder = fmpy.extract(str(path))
        identifier = description.modelExchange.modelIdentifier
        self.model = kind(
            guid=description.guid, unzipDirectory=self._folder, modelIdentifier=identifier, instanceName="times"
        )
        self.model.instantiate()
        self._begin(fmi)
        self._in_event = True

    def _begin(self, fmi: str) -> None:
        """Initialize at 0 s."""
        if fmi == "2":
            self.model.setupExperiment(startTime=0.0)
        self.model.enterInitializationMode()
        self.model.exitInitializationMode()

    def event(self, time: float) -> float:
        """Event Mode at a time; when the next event is."""
        if not self._in_event:
            self.model.setTime(time)
            self.model.enterEventMode()
        self._in_event = False
        *_, known, at = getattr(self.model, self._update)()
        self.model.enterContinuousTimeMode()
        return at if known else math.inf

    def real(self, name: str) -> float:
        """The value of a variable."""
        read = getattr(self.model, "getReal", None) or self.model.getFloat64
        return float(read([self._at[name]])[0])

    def free(self) -> None:
        """Ends the instance."""
        self.model.terminate()
        self.model.freeInstance()
