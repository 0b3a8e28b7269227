"""Events of FMUs against the reference's own: instants, jumps, sequence; planted faults are found."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from event_models import ball, behind_a_clutch, belt, particle, reference_of, two_blocks
from representatives import by_night

from mb2fmu import Impact, Model, pre
from mb2fmu.fmu.runner.co_simulation_event_search import EventLocatingInstance
from mb2fmu.validation.bounds.event_time_tolerances import compute_event_time_bounds
from mb2fmu.validation.comparison import event_comparison
from mb2fmu.validation.comparison.event_comparison import (
    compare_events,
    describe_events_not_located,
    list_variables_to_read_at_events,
    plan_event_location_sessions,
    select_reference_events,
)
from mb2fmu.validation.comparison.motion_comparison import compute_error_bounds
from mb2fmu.validation.reference.start_error_growth import measure_start_error_growth

KINDS = ("CoSimulation", "ModelExchange")
DESCRIPTION = SimpleNamespace(state_derivative_pairs=(("x", "der(x)"), ("v", "der(v)")))


@pytest.fixture(scope="module", params=[lambda: ball(start=0.1), belt], ids=["ball", "belt"])
def judged(request):
    """A reference, its bounds, and its events."""
    reference = reference_of(request.param())
    limits = compute_error_bounds(reference, measure_start_error_growth(reference))
    return reference, limits, select_reference_events(reference, limits, DESCRIPTION)


def seen(looked, late=0.0, change=lambda row: row):
    """What an FMU would show: [time, before, time, after, time, time] of each event, moved along its own slopes."""
    found = []
    for watch in looked:
        time = watch.time_bound.simultaneous_events.time + late
        before, after = watch.values + late * watch.slopes
        found.append([time, before.tolist(), time, change(after.copy()).tolist(), time, time])
    return found


def results(judged, kind, found, further=()):
    reference, limits, looked = judged
    found = [each for watch, each in zip(looked, found, strict=True) if not watch.reason]
    noted = [*([each[0], each[1], each[3]] for each in found if isinstance(each, list)), *further]
    driven = SimpleNamespace(
        simulations=(SimpleNamespace(kind=kind),),
        recorded_values={"events 0": [found]},
        events=(sorted(noted, key=lambda each: each[0]),),
    )
    return compare_events(reference, limits, looked, driven, 0, DESCRIPTION)


def verdicts(*arguments, **keywords) -> list[str]:
    return [each.verdict for each in results(*arguments, **keywords)]


@pytest.mark.parametrize("kind", KINDS)
def test_the_reference_itself_passes(judged, kind):
    found = results(judged, kind, seen(judged[2]))
    assert found
    assert {each.verdict for each in found} == {"passed"}
    assert max(each.ratio for each in found) < 1e-2


@pytest.mark.parametrize("kind", KINDS)
def test_an_instant_within_what_is_allowed_passes_and_beyond_it_fails(judged, kind):
    looked = judged[2]
    allowed = min(watch.time_bound.allowed_differences[kind] for watch in looked)
    assert allowed < 5e-6
    assert set(verdicts(judged, kind, seen(looked, 0.3 * allowed))) == {"passed"}
    for late in (1e-4, -1e-4):
        assert set(verdicts(judged, kind, seen(looked, late))) == {"failed"}
        assert all(
            "1e-04 s" in each.reason or "0.0001 s" in each.reason for each in results(judged, kind, seen(looked, late))
        )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("factor", [1.001, 0.999, -1.0])
def test_a_jump_of_another_size_or_sign_is_found(judged, kind, factor):
    looked = judged[2]
    column = looked[0].variable_index

    def change(row):
        row[column] *= factor
        return row

    assert "failed" in verdicts(judged, kind, seen(looked, change=change))


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_event_is_found(judged, kind):
    found = seen(judged[2])
    found[-1] = "none"
    result = results(judged, kind, found)[len(found) - 1]
    assert result.verdict == "failed"
    assert "no such event" in result.reason


def test_an_event_that_the_reference_does_not_have_is_found(judged):
    reference, _, looked = judged
    row = reference.trajectory.values[1]
    before = np.append(row, [0.0, 0.0])
    after = before + np.append(0.0, np.full(len(before) - 1, 0.01))
    further = [[reference.trajectory.time[1] + 0.01, before.tolist(), after.tolist()]]
    assert verdicts(judged, "ModelExchange", seen(looked), further).count("failed") == 1
    assert results(judged, "ModelExchange", seen(looked), further)[-1].worst == "v"


def test_a_fmu_that_cannot_be_looked_into_is_not_judged(judged):
    reference, _, looked = judged
    names = list_variables_to_read_at_events(reference, DESCRIPTION)
    offers = SimpleNamespace(states=False)
    variables = {name: SimpleNamespace(reference=k) for k, name in enumerate(names)}
    unit = SimpleNamespace(variables=variables, capabilities={"CoSimulation": offers}, any_step=True)
    assert plan_event_location_sessions([looked], "CoSimulation", unit, names) == {}
    assert plan_event_location_sessions([looked], "ModelExchange", unit, names) == {}
    assert set(verdicts(judged, "CoSimulation", ["not looked at"] * len(looked))) == {"unjudged"}


def test_what_grazes_is_reported_as_grazing(judged):
    reference, limits, looked = judged
    events = [dataclasses.replace(event, grazing=True) for event in limits.event_time_bounds]
    grazing = select_reference_events(
        reference, dataclasses.replace(limits, event_time_bounds=tuple(events)), DESCRIPTION
    )
    for each in results((reference, limits, grazing), "ModelExchange", seen(looked)):
        assert each.grazing
        assert each.verdict == "unjudged"
        assert "grazes" in each.reason


def test_how_many_events_are_not_looked_at_is_said(judged, monkeypatch):
    reference, limits, looked = judged
    assert describe_events_not_located(limits, looked) == ""
    monkeypatch.setattr(event_comparison, "MAX_EVENTS_TO_LOCATE", 1)
    first = select_reference_events(reference, limits, DESCRIPTION)
    assert len(first) == 1
    last = first[0].time_bound.simultaneous_events.time
    later = [
        event
        for event in limits.event_time_bounds
        if event.simultaneous_events.time > last and not event.simultaneous_events.from_input_jump
    ]
    said = describe_events_not_located(limits, first)
    assert said.startswith(f"{len(later)} events after t = ") if later else said == ""


STIFF = 1e5  # N/m


def stopped() -> Model:
    """Meets a stiff spring at 0.51 s and has left it at the next communication point; at 0.514 s a weight is added."""
    weight = me.dynamicsymbols("weight")
    model, x, _ = particle(0.5 * 9.81 * 0.51**2, 0.0, lambda x, _: STIFF * sm.Max(0, -x) - sm.Float(9.81) - weight)
    model.discrete(weight, 0.0, "N", name="weight")
    model.once(0.514, {weight: 5.0})
    model.output("force", STIFF * sm.Max(0, -x), "N")
    return model


@pytest.mark.parametrize("kind", KINDS)
def test_a_force_between_communication_points_may_be_off_by_what_the_states_may(kind):
    reference = reference_of(stopped())
    limits = compute_error_bounds(reference, measure_start_error_growth(reference))
    looked = select_reference_events(reference, limits, SimpleNamespace(state_derivative_pairs=()))
    x, force = (reference.trajectory.column(name) for name in ("x", "force"))
    assert np.ptp(reference.trajectory.values[:, force]) == 0.0
    (number,) = (k for k, watch in enumerate(looked) if abs(watch.time_bound.simultaneous_events.time - 0.514) < 1e-9)
    row = int(np.searchsorted(reference.trajectory.time, 0.514))
    late = 0.5 * max(limits.values[row - 1, x], limits.values[row, x])

    def judged_with(depth, push):
        found = seen(looked)
        for side in (1, 3):
            found[number][side][x] -= depth
            found[number][side][force] += push
        return results((reference, limits, looked), kind, found)[number]

    assert STIFF * late > 10.0 * limits.values[row, force]
    assert judged_with(late, STIFF * late).verdict == "passed"
    wrong = judged_with(0.0, 4.0 * STIFF * late)
    assert wrong.verdict == "failed"
    assert "force" in wrong.reason
    assert judged_with(late, -0.1 * looked[number].values[0, force]).verdict == "failed"


def test_a_contact_that_is_pulled_from_the_start_on_is_judged():
    """It opens at 0 s and parts a microsecond later: at the start its mode is 1/4, and 1/4 and a little is no mode."""
    model, x, _ = particle(0.0, 0.0, lambda _, __: sm.Float(10.0))
    model.add(Impact("floor", x, rest_below=0.05, starts_resting=True))
    reference = reference_of(model)
    limits = compute_error_bounds(reference, measure_start_error_growth(reference))
    mode = reference.trajectory.column("floor.resting")
    assert reference.trajectory.values[:, mode].tolist() == [0.25, *[0.0] * (len(reference.trajectory.time) - 1)]
    assert limits.predictable_points[mode] == len(reference.trajectory.time)
    (parted,) = (event for event in limits.event_time_bounds if "parted" in event.simultaneous_events.first.name)
    assert not parted.grazing
    assert parted.simultaneous_events.time == pytest.approx(0.05 / 4000 / 10.0, rel=1e-6)
    assert parted.largest_allowed_difference < parted.simultaneous_events.time


def test_an_input_that_jumps_at_the_instant_of_an_event_has_two_values_before_it():
    """At a communication point: the FMU may come to it in the step before, the reference in the step behind it."""
    F = me.dynamicsymbols("F")
    model, _, v = particle(0.0, 1.0, lambda *_: F)
    model.input(F, 0.0, "N")
    model.output("push", 2 * F, "N")
    just_behind = sm.Float(0.4) + sm.Float(2e-15)  # exactly at the point it is part of the event of the input
    model.when(me.dynamicsymbols._t >= just_behind, {v: -pre(v) / 2}, name="kick")
    model.experiment(stop=0.8, step=0.05, tolerance=1e-8, signals={F: sm.sin(40 * me.dynamicsymbols._t)})
    reference = reference_of(model)
    limits = compute_error_bounds(reference, measure_start_error_growth(reference))
    looked = select_reference_events(reference, limits, DESCRIPTION)
    (watch,) = looked
    push = [variable.name for variable in reference.variables].index("push")
    inputs = reference.experiment.inputs[:, 0]

    def judged_with(step: int) -> str:
        (found,) = seen(looked)
        found[1][push] = 2.0 * float(inputs[step])
        (result,) = results((reference, limits, looked), "CoSimulation", [found])
        return result.verdict

    assert watch.time_bound.simultaneous_events.time == pytest.approx(0.4, abs=1e-13)
    assert [judged_with(step) for step in (6, 7, 8, 9)] == ["failed", "passed", "passed", "failed"]


def test_values_are_read_beyond_the_point_at_which_an_input_jumps():
    """Values before an event may be read in the communication step before it, in which another input holds."""
    F, t = me.dynamicsymbols("F"), me.dynamicsymbols._t
    model, _, v = particle(0.0, 1.0, lambda *_: F)
    model.input(F, 0.0, "N")
    model.output("push", 2 * F, "N")
    model.when(t >= 0.4 + 1e-4, {v: -pre(v) / 2}, name="kick")
    model.experiment(stop=0.8, step=0.05, tolerance=1e-8, signals={F: 1e3 * sm.sin(40 * t)})
    reference = reference_of(model)
    limits = compute_error_bounds(reference, measure_start_error_growth(reference))
    looked = select_reference_events(reference, limits, DESCRIPTION)
    names = [variable.name for variable in reference.variables]
    push, inputs = 2.0 * reference.experiment.inputs[:, 0], reference.experiment.inputs[:, 0]
    early = 3e-4  # before the event: 2e-4 s before the communication point at 0.4 s

    def judged_with(force: float, step: int) -> str:
        (found,) = seen(looked)
        before = looked[0].values[0].copy()
        x, v = before[names.index("x")], before[names.index("v")]
        v_point = v - 1e-4 * inputs[8]
        v_early = v_point - (early - 1e-4) * force
        before[names.index("x")] = x - 1e-4 * (v_point + v) / 2 - (early - 1e-4) * (v_early + v_point) / 2
        before[names.index("v")], before[names.index("push")] = v_early, push[step]
        found[0], found[1] = found[0] - early, before.tolist()
        (result,) = results((reference, limits, looked), "CoSimulation", [found])
        return result.verdict

    assert abs(inputs[7] - inputs[8]) > 100.0
    assert judged_with(inputs[7], 7) == "passed"
    assert judged_with(inputs[8], 8) == "failed"  # as if the input had not jumped
    assert judged_with(1.01 * inputs[7], 7) == "failed"


def test_what_next_to_nothing_decides_may_be_either_way():
    """Behind an open clutch a freewheel holds, or not, against the clutch's drag of 1e-10 N.m: no importer can tell."""
    open_now = reference_of(behind_a_clutch(-0.5))
    limits = compute_error_bounds(open_now, measure_start_error_growth(open_now))
    holds = open_now.trajectory.column("free.sticking")
    either = [k for k, sides in limits.sides_near_events.items() if np.ptp(sides.values[:, holds]) == 1.0]
    assert len(either) > 0.9 * len(open_now.trajectory.time)
    assert either[0] == 0  # at rest, where nothing drives anything
    pressed = reference_of(behind_a_clutch(0.2))
    limits = compute_error_bounds(pressed, measure_start_error_growth(pressed))
    still = np.flatnonzero(pressed.trajectory.values[:, holds] == 1.0)
    assert len(still) > 0
    clear = [
        k
        for k in still
        if k not in limits.sides_near_events or np.ptp(limits.sides_near_events[k].values[:, holds]) == 0.0
    ]
    assert len(clear) > 0.9 * len(still)


def test_round_off_of_efforts_is_that_of_the_limits_which_cancel():
    """A freewheel for 5 N.m transmits 1e-10 N.m; as any solution of the balance it is known to 1e-16 of 5 N.m only."""
    reference = reference_of(behind_a_clutch())
    limits = compute_error_bounds(reference, measure_start_error_growth(reference))
    torque = reference.trajectory.column("free.torque")
    assert np.max(np.abs(reference.trajectory.values[:, torque])) < 1e-9
    assert np.min(limits.values[:, torque]) > 5 * 2.2e-16
    assert np.max(limits.values[:, torque]) <= 0.06 * np.ptp(reference.trajectory.values[:, torque])


def test_what_is_watched_is_on_its_side_of_each_event_beyond_doubt():
    """Spring and damper behind a stop are two events 1 ms apart; bounds of a sensitive motion make one occasion of it.

    Its force jumps by the damper's then, and is back as soon as that was early by 1 ms: it cannot be watched.
    """
    model, x, v = particle(
        -0.05, 0.6, lambda x, v: -1000 * sm.Max(x, 0) - sm.Min(sm.Max(v, -1000 * sm.Max(x, 0)), 1000 * sm.Max(x, 0))
    )
    model.output("force", 1000 * sm.Max(x, 0) + sm.Min(sm.Max(v, -1000 * sm.Max(x, 0)), 1000 * sm.Max(x, 0)), "N")
    reference = reference_of(model)
    limits = compute_error_bounds(reference, measure_start_error_growth(reference))
    for wider in (1.0, 1e3, 5e3, 1e4, 2e4):
        allowed = dataclasses.replace(
            limits, event_time_bounds=compute_event_time_bounds(reference, wider * limits.values)
        )
        for watch in (each for each in select_reference_events(reference, allowed, DESCRIPTION) if not each.reason):
            for kind in KINDS:
                request = watch.localization_request(kind)
                for late in np.linspace(watch.earliest, watch.latest, 21) - watch.time_bound.simultaneous_events.time:
                    sides = watch.values + late * watch.slopes
                    passed = [
                        watch.has_passed(request, watch.time_bound.simultaneous_events.time + late, side)
                        for side in sides
                    ]
                    assert passed == [False, True]


class Blocks:
    """What shows the values of two blocks, of which the second named stops a little later; Co-Simulation's calls."""

    def __init__(self, watch, columns, stops: tuple[float, float]) -> None:
        (self._before, self._after), self._slopes, self._stops = watch.values, watch.slopes, stops
        self._at, self._columns, self._time = watch.time_bound.simultaneous_events.time, columns, 0.0

    def row(self, time: float, passed: tuple[bool, bool]) -> list[float]:
        """All values at an instant, before or after each of the stops."""
        sides = np.array([self._before, self._after]) + (time - self._at) * self._slopes
        row = sides[0].copy()
        for column, has_stopped in zip(self._columns, passed, strict=True):
            row[column] = sides[int(has_stopped)][column]
        return row.tolist()

    def step(self, begin: float, size: float) -> None:
        self._time = begin + size

    def get(self, _read) -> list[float]:
        first, second = self._stops
        return self.row(self._time, (self._time > first, self._time > second))

    def save(self) -> float:
        return self._time

    def restore(self, state: float, _time: float) -> None:
        self._time = state

    def change(self, _references, _inputs) -> None: ...

    def forget(self, _state: float) -> None: ...


class Held:
    """What is held from 0.35 s to 0.95 s, and shows that; its bytes may lose it."""

    def __init__(self, *, loses: bool) -> None:
        self._loses, self._time, self._held = loses, 0.0, False

    def step(self, begin: float, size: float) -> None:
        self._time = begin + size
        self._held = (self._held or begin <= 0.35 < self._time) and self._time < 0.95

    def get(self, _read) -> list[float]:
        return [float(self._held)]

    def save(self) -> tuple[float, bool]:
        return self._time, self._held

    def restore(self, state: tuple[float, bool], _time: float) -> None:
        self._time, self._held = state

    def written(self, state: tuple[float, bool]) -> bytes:
        return repr((state[0], state[1] and not self._loses)).encode()

    def read(self, content: bytes) -> tuple[float, bool]:
        return eval(content)

    def change(self, _references, _inputs) -> None: ...

    def forget(self, _state: object) -> None: ...


@pytest.mark.parametrize("loses", [False, True])
def test_states_before_events_go_through_bytes(loses):
    """A mode that is in no state but in memory: bytes that lose it end it before its event."""
    watch = {"low": 0.85, "high": 1.0, "at": 0.95, "near": 1e-3, "around": 0.0, "fine": 1e-9}
    watch |= {"place": 0, "sign": -1.0, "level": 0.5, "rate": 0.0}
    locator = EventLocatingInstance(Held(loses=loses), [0], serializes=True)
    (found,) = locator.locate_watched_events({"step": 0.1, "inputs": []}, [[]] * 11, [watch])
    assert found == "before" if loses else found[0] == pytest.approx(0.95, abs=1e-8)


@pytest.fixture(scope="module", params=[*by_night(50e-6, -50e-6), 1e-6])
def both_stopped(request):
    """By how much the second block stops later, the reference of both, and its bounds."""
    reference = reference_of(two_blocks(1.0, 1.0 + request.param))
    return request.param, reference, compute_error_bounds(reference, measure_start_error_growth(reference))


@pytest.mark.parametrize("kind", KINDS)
def test_before_and_after_are_beyond_all_events_whose_order_is_open(kind, both_stopped):
    """Two blocks come to rest within less than the bounds allow: neither stop fails because of the other."""
    late, reference, limits = both_stopped
    description = SimpleNamespace(state_derivative_pairs=())
    (watch,) = select_reference_events(reference, limits, description)
    assert (watch.reason, watch.is_of_several) == ("", True)
    names = [variable.name for variable in reference.variables]
    columns = [[names.index(name) for name in of] for of in (
        ("x", "v", "a.force", "a.slip", "a.sticking"), ("y", "w", "b.force", "b.slip", "b.sticking")
    )]  # fmt: skip
    stops = (1.0, 1.0 + late)
    blocks = Blocks(watch, columns, stops)

    def result(change=lambda rows: rows):
        if kind == "CoSimulation":
            watches = [watch.localization_request(kind)]
            step = float(reference.trajectory.time[1])
            count = len(reference.trajectory.time) - 1
            locator = EventLocatingInstance(blocks, [], serializes=False)
            found = locator.locate_watched_events({"step": step, "inputs": []}, [[]] * count, watches)
            found[0][3] = change(found[0][3])
            recorded, events = {"events 0": [found]}, ()
        else:
            order = (0, 1) if late > 0 else (1, 0)
            halfway = tuple(number == order[0] for number in (0, 1))
            passed = ((False, False), halfway, (True, True))
            events = ([
                [stops[number], blocks.row(stops[number], passed[k]), blocks.row(stops[number], passed[k + 1])]
                for k, number in enumerate(order)
            ],)  # fmt: skip
            events[0][-1][2] = change(events[0][-1][2])
            recorded = {}
        driven = SimpleNamespace(
            simulations=(SimpleNamespace(kind=kind),), recorded_values=recorded, events=events
        )  # fmt: skip
        (found,) = compare_events(reference, limits, [watch], driven, 0, description)
        return found

    assert result().verdict == "passed"
    assert abs(result().difference) < 1e-7  # from that of both in which what is watched changes
    for name in ("a.sticking", "b.sticking", "b.force"):
        wrong = result(lambda row, name=name: [1.0 - x if i == names.index(name) else x for i, x in enumerate(row)])
        assert (wrong.verdict, wrong.worst) == ("failed", name)
