"""Closed forms of compliant contact, by the reference to 1e-8 and by FMUs in Co-Simulation to 1e-7."""

from __future__ import annotations

from itertools import product

import fmpy
import numpy as np
import pytest
import touching
from mechanisms import closed_mechanism_of
from representatives import by_night

from mb2fmu import export
from mb2fmu.mechanics import formulations
from mb2fmu.validation.reference.reference_run import make_reference

RATIOS = {0.1: 0.937475579949905, 0.5: 0.748434931597434, 1.0: 0.593624260040040}
"""s, dissipation times speed of impact → restitution e: s - ln(1 + s) = -e s - ln(1 - e s)."""
DURATION = 3.21806545971904 * (2.0**2 / 1e4**2) ** 0.2
"""Of an impact of 2 kg at 1 m/s by Hertz's law of 1e4 N/m^1.5."""


def moved(model):
    mechanism = closed_mechanism_of(model)
    return make_reference(mechanism.declared, formulations.formulate(mechanism, "tmt"))


@pytest.mark.parametrize(("dissipation", "exponent"), [(0.1, 1.5), *by_night((0.5, 1), (1.0, 2.2))])
def test_the_reference_has_hunt_and_crossleys_restitution_whatever_the_exponent(dissipation, exponent):
    found = moved(touching.striking_ball(exponent, dissipation))
    assert found.trajectory.values[-1, found.trajectory.column("v")] == pytest.approx(RATIOS[dissipation], rel=1e-8)
    assert [sum(event.after) for event in found.events] == [2.0, 1.0]  # it closes, and opens


def test_the_reference_has_the_duration_of_hertz():
    closes, opens = (event.time for event in moved(touching.striking_ball(1.5, 0.0)).events)
    assert closes == pytest.approx(0.01, rel=1e-12)
    assert opens - closes == pytest.approx(DURATION, rel=1e-8)


@pytest.fixture(scope="module")
def unit(tmp_path_factory):
    return str(export(touching.striking_ball(), tmp_path_factory.mktemp("contact")).path)


def last(unit: str, kind: str, step: float, **start: float):
    found = fmpy.simulate_fmu(
        unit, fmi_type=kind, stop_time=0.4, output_interval=step, relative_tolerance=1e-9, start_values=start,
        output=["h", "v", "floor.force"],
    )  # fmt: skip
    return found[-1]


@pytest.mark.parametrize("step", [0.02, 0.4])
@pytest.mark.parametrize("dissipation", RATIOS)
def test_the_fmu_has_the_restitution_at_any_communication_step(unit, dissipation, step):
    for kind, accuracy in (("CoSimulation", 1e-7), ("ModelExchange", 1e-6)):
        end = last(unit, kind, step, **{"floor.dissipation": dissipation})
        assert end["v"] == pytest.approx(RATIOS[dissipation], rel=accuracy)
        assert end["floor.force"] == 0.0


def test_the_fmu_has_the_duration_of_hertz(unit):
    """It flies on at 1 m/s from where it left."""
    for kind, accuracy in (("CoSimulation", 1e-7), ("ModelExchange", 1e-6)):
        end = last(unit, kind, 0.01, **{"floor.dissipation": 0.0})
        assert 0.4 - 0.01 - (end["h"] - 0.05) == pytest.approx(DURATION, rel=accuracy)


def test_opening_and_closing_have_a_name(unit):
    variables = fmpy.read_model_description(unit).modelVariables
    reported = " ".join(v.description or "" for v in variables if v.name.startswith("event_indicator"))
    assert "floor.gap < 0" in reported


# --- friction that sticks ---------------------------------------------------------------------------------------------

ROLLS = 2 * 8 / (7 * 0.12 * 9.81), 12 * 8**2 / (49 * 0.12 * 9.81)
"""When and where a ball that is bowled without spin begins to roll: 2 v / (7 μ g), 12 v² / (49 μ g)."""


def test_a_bowling_ball_slides_and_then_rolls(tmp_path):
    assert pytest.approx((1.94165331780011, 13.3141941792007), rel=1e-14) == ROLLS
    model = touching.thrown_ball(8.0, bowled=True)
    found = moved(model)
    assert [event.time for event in found.events] == pytest.approx([ROLLS[0]], rel=1e-11)
    wanted = ROLLS[1] + 5 / 7 * 8 * (2.5 - ROLLS[0])
    assert found.trajectory.values[-1, found.trajectory.column("x")] == pytest.approx(wanted, rel=1e-11)
    unit = str(export(model, tmp_path).path)
    for kind, (stop, sticks) in product(
        ("CoSimulation", "ModelExchange"), ((ROLLS[0] - 1e-8, 0), (ROLLS[0] + 1e-8, 1))
    ):
        end = fmpy.simulate_fmu(unit, fmi_type=kind, stop_time=stop, output_interval=stop,
                                relative_tolerance=1e-9)[-1]  # fmt: skip
        assert end["floor.sticking"] == sticks
        assert end["x"] == pytest.approx(ROLLS[1], rel=1e-8)


@pytest.fixture(scope="module")
def thrown(tmp_path_factory):
    return str(export(touching.thrown_ball(0.3), tmp_path_factory.mktemp("thrown")).path)


def test_what_sticks_leaves_the_floor_and_comes_back(thrown):
    """In the air nothing presses, and friction neither holds nor pulls; straight up and down it is never asked.

    Its height is the same whatever its speed along the floor.
    """
    found = moved(touching.thrown_ball(0.3))
    column = found.trajectory.column
    values, gap = found.trajectory.values, found.trajectory.values[:, column("floor.gap")]
    assert np.all(values[gap > 0.0, column("floor.friction")] == 0.0)
    wanted = {name: values[-1, column(name)] for name in ("x", "y", "vx", "w")}
    assert wanted["vx"] == pytest.approx(5 / 7 * 0.3, rel=0.1)  # it rolls, pressed in
    for speed, ends in ((0.3, wanted), (0.0, dict.fromkeys(wanted, 0.0) | {"y": wanted["y"]})):
        for kind, accuracy in (("CoSimulation", 1e-7), ("ModelExchange", 1e-5)):
            end = fmpy.simulate_fmu(thrown, fmi_type=kind, stop_time=1.5, output_interval=0.05, relative_tolerance=1e-9,
                                    start_values={"vx": speed})[-1]  # fmt: skip
            for name, value in ends.items():
                assert end[name] == pytest.approx(value, rel=accuracy, abs=accuracy), name
