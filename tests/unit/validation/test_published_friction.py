"""Published and closed-form cases of friction, clutches and stops, by reference and unit; event sequences are equal."""

from __future__ import annotations

import functools
from pathlib import Path

import fmpy
import lines
import numpy as np
import pytest
from event_runs import run_with_events
from judging import in_long_steps
from mechanisms import closed_mechanism_of
from representatives import by_night

from mb2fmu import export
from mb2fmu.mechanics import formulations
from mb2fmu.model import load
from mb2fmu.validation.reference.reference_run import make_reference

MODELS = Path(__file__).parents[3] / "models"
KINDS = [("CoSimulation", 1e-8), ("ModelExchange", 1e-6)]
"""How an FMU is run, and how near it comes, relative."""
LOCKS = [0.7096214747, 0.7916623592, 0.8311085061, 0.9068501928, 1.0002958599, 1.1439674925]
CLUTCHES_END = [3.247058272419, 7.486119099114]
BACKLASH_END = [-0.155581413450, -7.022937275580]
GAP_END = [-0.7078852941, 0.5375291877]
FRICTION_SLIPS, FRICTION_END = [0.4101431286, 2.4426904204, 4.4419424315], [1.7684896127751, 6.8648403415974]
STRIBECK_PERIOD = 12.0010312948
BLOCK_STOPS = 0.679578661230037


@functools.cache
def line(make):
    return moved(make())


def moved(model):
    mechanism = closed_mechanism_of(model)
    return make_reference(mechanism.declared, formulations.formulate(mechanism, "tmt"))


def ends(reference, *names: str) -> list[float]:
    values = reference.trajectory.values
    return [float(values[-1, reference.trajectory.column(name)]) for name in names]


def instants(reference, *, but: tuple[float, ...] = ()) -> list[float]:
    """Of events, without those at given times."""
    return [e.time for e in reference.events if all(abs(e.time - known) > 1e-9 for known in but)]


def test_coupled_clutches_lock_and_slip_when_they_should():
    """At 0.4 s and 0.9 s clutches are pressed, at 1.25 s the first is opened: no slip begins or ends there."""
    found = moved(in_long_steps(MODELS / "clutch_line.py", 0.1))
    assert instants(found, but=(0.4, 0.9, 1.25)) == pytest.approx(LOCKS, abs=2e-10)
    assert ends(found, "w1", "phi1") == pytest.approx(CLUTCHES_END, rel=1e-8)


@pytest.mark.parametrize(("kind", "accuracy"), by_night(*KINDS))
def test_the_fmu_of_coupled_clutches_is_as_published(clutches, kind, accuracy):
    run = run_with_events(clutches, kind, 1.5, 0.05, ["w1", "phi1"])
    assert run.events == pytest.approx(sorted([*LOCKS, 0.4, 0.9, 1.25]), rel=accuracy)
    assert [run.at("w1", 1.5), run.at("phi1", 1.5)] == pytest.approx(CLUTCHES_END, rel=accuracy)


@pytest.mark.parametrize("kind", ["CoSimulation", *by_night("ModelExchange")])
def test_each_clutch_says_that_it_sticks_while_it_does(clutches, kind):
    """What slides beside what is held is at its mode to the bit: elimination must not make it stick for an instant."""
    names = [f"clutch{i}.sticking" for i in (1, 2, 3)]
    found = fmpy.simulate_fmu(clutches, fmi_type=kind, stop_time=1.5, output_interval=0.01, output=names)
    changes = [found["time"][1:][np.diff(found[name]) != 0.0] for name in names]
    wanted = ([0.7916623592, 0.8311085061, 0.9068501928, 1.0002958599], [0.7096214747], [0.4, 1.1439674925])
    for seen, instants in zip(changes, wanted, strict=True):
        assert seen == pytest.approx(instants, abs=0.0101)


@pytest.fixture(scope="module")
def clutches(tmp_path_factory):
    return str(export(load(MODELS / "clutch_line.py"), tmp_path_factory.mktemp("clutches"), fmi="3").path)


def test_play_is_that_of_the_modelica_library():
    found = moved(in_long_steps(MODELS / "backlash_gear.py", 0.05))
    assert ends(found, "phi", "omega") == pytest.approx(BACKLASH_END, rel=1e-8)


def test_stops_push_and_never_pull():
    found = line(lines.elasto_gap)
    assert ends(found, "x1", "v1") == pytest.approx(GAP_END, rel=1e-8)
    x, force = (found.trajectory.values[:, found.trajectory.column(name)] for name in ("x1", "stops.force"))
    assert np.all(force * np.sign(x) <= 0.0)
    assert np.all(force[np.abs(x) < 0.5] == 0.0)


def test_driven_friction_slips_when_it_should():
    found = line(lines.driven_friction)
    assert ends(found, "x1", "v1") == pytest.approx(FRICTION_END, rel=1e-8)
    slips = [e.time for e in found.events if 0.0 not in e.after]
    assert slips == pytest.approx(FRICTION_SLIPS, abs=2e-10)


def test_stribecks_curve_has_its_period():
    slips = [e.time for e in line(lines.stribeck_belt).events if 0.0 not in e.after]
    assert np.diff(slips) == pytest.approx(STRIBECK_PERIOD, rel=1e-9)


def test_a_block_slides_as_far_as_it_should():
    found = line(lines.sliding_block)
    assert instants(found) == pytest.approx([BLOCK_STOPS], rel=1e-13)
    assert ends(found, "x1", "v1", "floor.sticking") == pytest.approx([BLOCK_STOPS, 0.0, 1.0], abs=1e-13)


def test_a_freewheel_lets_the_second_run_on():
    """Together w = 1 - cos t up to t = π, where the torque changes sign; then the first alone, w = 2 - 2 cos(t) - 2."""
    found = moved(lines.freewheel())
    w1, w2 = (found.trajectory.values[:, found.trajectory.column(name)] for name in ("w1", "w2"))
    time = found.trajectory.time
    joined = time < np.pi
    assert w1[joined] == pytest.approx(1 - np.cos(time[joined]), abs=1e-12)
    assert w2[joined] == pytest.approx(w1[joined], abs=1e-13)
    assert w2[~joined] == pytest.approx(2.0, abs=1e-12)
    assert w1[~joined] == pytest.approx(-2 * np.cos(time[~joined]), abs=1e-11)


# --- the FMUs of these -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def busy(tmp_path_factory):
    """All masses on one line, each with its own friction or stops: the FMU has the events of all."""
    return str(export(lines.busy_line(), tmp_path_factory.mktemp("line"), fmi="3").path)


@pytest.mark.parametrize(("kind", "accuracy"), [KINDS[0], *by_night(*KINDS[1:])])
def test_the_fmu_of_masses_with_stops_and_friction_is_as_published(busy, kind, accuracy):
    """Its events are those of the references of the single masses, which are as published, and no others."""
    run = run_with_events(busy, kind, 5.0, 0.25, ["x1", "v1", "x2", "v2", "x4", "v4"])
    single = [line(make).events for make in (lines.elasto_gap, lines.driven_friction, lines.sliding_block)]
    stribeck = [event for event in line(lines.stribeck_belt).events if event.time < 5.0]
    wanted = np.sort([event.time for events in (*single, stribeck) for event in events])
    wanted = wanted[np.diff(wanted, prepend=0.0) > 1e-9]
    assert run.events[run.events > 1e-9] == pytest.approx(wanted, rel=accuracy)
    for names, values in ((("x1", "v1"), GAP_END), (("x2", "v2"), FRICTION_END), (("x4", "v4"), (BLOCK_STOPS, 0.0))):
        assert [run.at(name, 5.0) for name in names] == pytest.approx(values, rel=accuracy, abs=1e-15)


@pytest.mark.parametrize(("kind", "accuracy"), by_night(*KINDS))
def test_the_fmu_of_stribecks_belt_has_its_period(busy, kind, accuracy):
    """Held and let go in turn; the other masses have events meanwhile."""
    run = run_with_events(busy, kind, 30.0, 0.5, ["belt.sticking"])
    lets_go = np.flatnonzero(np.diff(run.found["belt.sticking"]) < 0.0)
    slips = np.array(run.found["time"][lets_go])
    assert np.diff(slips) == pytest.approx([STRIBECK_PERIOD] * 2, rel=accuracy)


@pytest.mark.repeats  # by day on its reference, above
def test_the_fmu_with_play_is_that_of_the_modelica_library(tmp_path):
    unit = str(export(load(MODELS / "backlash_gear.py"), tmp_path, fmi="3").path)
    for kind, accuracy in (("CoSimulation", 1e-7), ("ModelExchange", 1e-5)):
        run = run_with_events(unit, kind, 1.0, 0.05, ["phi", "omega"])
        assert [run.at("phi", 1.0), run.at("omega", 1.0)] == pytest.approx(BACKLASH_END, rel=accuracy)
