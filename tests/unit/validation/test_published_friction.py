"""Published and closed-form cases of friction, clutches and stops, by the reference; event sequences are equal."""

from __future__ import annotations

from pathlib import Path

import fmpy
import lines
import numpy as np
import pytest
from judging import in_long_steps

from mb2fmu import derive, export, formulation
from mb2fmu.model import load
from mb2fmu.validation.reference import make_reference

MODELS = Path(__file__).parents[3] / "models"


def moved(model):
    derivation = derive(model)
    return make_reference(derivation.definition, formulation.formulate(derivation.mechanism, "lagrange"))


def ends(reference, *names: str) -> list[float]:
    values = reference.trajectory.values
    return [float(values[-1, reference.trajectory.column(name)]) for name in names]


def instants(reference, *, but: tuple[float, ...] = ()) -> list[float]:
    """Of events, without those at given times."""
    return [e.time for e in reference.events if all(abs(e.time - known) > 1e-9 for known in but)]


def test_coupled_clutches_lock_and_slip_when_they_should():
    """At 0.4 s and 0.9 s clutches are pressed, at 1.25 s the first is opened: no slip begins or ends there."""
    found = moved(in_long_steps(MODELS / "clutch_line.py", 0.1))
    wanted = [0.7096214747, 0.7916623592, 0.8311085061, 0.9068501928, 1.0002958599, 1.1439674925]
    assert instants(found, but=(0.4, 0.9, 1.25)) == pytest.approx(wanted, abs=2e-10)
    assert ends(found, "w1", "phi1") == pytest.approx([3.247058272419, 7.486119099114], rel=1e-8)


@pytest.mark.parametrize(("kind", "accuracy"), [("CoSimulation", 1e-8), ("ModelExchange", 2e-6)])
def test_the_unit_of_coupled_clutches_ends_where_it_should(clutches, kind, accuracy):
    found = fmpy.simulate_fmu(clutches, fmi_type=kind, stop_time=1.5, output_interval=0.01, relative_tolerance=1e-9)
    assert [found["w1"][-1], found["phi1"][-1]] == pytest.approx([3.247058272419, 7.486119099114], rel=accuracy)


@pytest.mark.parametrize("kind", ["CoSimulation", "ModelExchange"])
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
    return str(export(load(MODELS / "clutch_line.py"), tmp_path_factory.mktemp("clutches")).path)


def test_play_is_that_of_the_modelica_library():
    found = moved(in_long_steps(MODELS / "backlash_gear.py", 0.05))
    assert ends(found, "phi", "omega") == pytest.approx([-0.155581413450, -7.022937275580], rel=1e-8)


def test_stops_push_and_never_pull():
    found = moved(lines.elasto_gap())
    assert ends(found, "x1", "v1") == pytest.approx([-0.7078852941, 0.5375291877], rel=1e-8)
    x, force = (found.trajectory.values[:, found.trajectory.column(name)] for name in ("x1", "stops.force"))
    assert np.all(force * np.sign(x) <= 0.0)
    assert np.all(force[np.abs(x) < 0.5] == 0.0)


def test_driven_friction_slips_when_it_should():
    found = moved(lines.driven_friction())
    assert ends(found, "x1", "v1") == pytest.approx([1.7684896127751, 6.8648403415974], rel=1e-8)
    slips = [e.time for e in found.events if 0.0 not in e.after]
    assert slips == pytest.approx([0.4101431286, 2.4426904204, 4.4419424315], abs=2e-10)


def test_stribecks_curve_has_its_period():
    slips = [e.time for e in moved(lines.stribeck_belt()).events if 0.0 not in e.after]
    assert np.diff(slips) == pytest.approx(12.0010312948, rel=1e-9)


def test_a_block_slides_as_far_as_it_should():
    found = moved(lines.sliding_block())
    assert instants(found) == pytest.approx([0.679578661230037], rel=1e-13)
    assert ends(found, "x1", "v1", "floor.sticking") == pytest.approx([0.679578661230037, 0.0, 1.0], abs=1e-13)


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
