"""FMUs whose contacts have friction: validation of a thrown body, planted faults, Painlevé's rod."""

from __future__ import annotations

import fmpy
import numpy as np
import pytest
import sympy as sm
from fmpy.fmi1 import FMICallException
from fmpy.fmi2 import FMU2Slave
from fmpy.fmi3 import FMU3Slave
from judging import Judge
from touching import planar_body

from mb2fmu import Impact, Model, export

pytestmark = pytest.mark.slow
OUTPUTS = ["x", "y", "u", "w", "floor.sliding", "floor.resting", "floor.friction"]


def thrown(mu: float = 0.3) -> Model:
    """A ball thrown flat over a floor: it bounces, slides with backspin, and rolls."""
    starts = (0.0, 0.05, 0.0, 2.0, 0.0, 10.0)
    model, (_, y, _, u, _, w) = planar_body("Thrown", 2, sm.Rational(8, 1000), starts)
    model.add(Impact("floor", y, restitution=0.4, rest_below=0.2, law="poisson", slip=u + 0.1 * w, friction=mu))
    model.experiment(stop=0.5, step=0.05, tolerance=1e-9)
    return model


def rod() -> Model:
    """A rough uniform rod that leans at 63.4 degrees and sticks, until it is set in motion."""
    angle = np.arctan(2.0)
    starts = (np.cos(angle), np.sin(angle), angle, 0.0, 0.0, 0.0)
    model, (_, y, a, u, _, w) = planar_body("Rod", 1, sm.Rational(1, 3), starts)
    model.add(Impact("floor", y - sm.sin(a), slip=u + w * sm.sin(a), friction=2.0, starts_resting=True))
    model.once(0.005, {u: u - 1})
    model.experiment(stop=0.1, step=0.01)
    return model


def by_hand() -> tuple[float, float]:
    """When the ball begins to roll, and how fast it is then: bounces by Poisson's law, then mu g; rolling is kept."""
    g, mu, R, m, inertia = 9.81, 0.3, 0.1, 2.0, 0.008
    t, u, w, v = np.sqrt(2 * 0.05 / g), 2.0, 10.0, np.sqrt(2 * g * 0.05)
    while True:
        e = 0.4 if 0.4 * v >= 0.2 else 0.0
        normal, slip = (1 + e) * m * v, u + R * w
        along = -min(mu * normal, slip / (1 / m + R**2 / inertia))
        u, w = u + along / m, w + R * along / inertia
        if e == 0.0:
            break
        v *= e
        t += 2 * v / g
    t += (u + R * w) / (mu * g * (1 + m * R**2 / inertia))
    return t, u - mu * g * (u + R * w) / (mu * g * (1 + m * R**2 / inertia))


@pytest.fixture(scope="module")
def unit(tmp_path_factory):
    return export(thrown(), tmp_path_factory.mktemp("friction")).path


@pytest.fixture(scope="module")
def rods(tmp_path_factory):
    return str(export(rod(), tmp_path_factory.mktemp("rods"), fmi="3").path)


@pytest.fixture(scope="module")
def judge():
    return Judge()


@pytest.mark.parametrize(("kind", "near"), [("CoSimulation", 1e-9), ("ModelExchange", 1e-6)])
def test_a_thrown_ball_bounces_slides_and_rolls(unit, kind, near):
    rolls, speed = by_hand()
    assert 0.2 < rolls < 0.49
    for stop, sliding in ((rolls - 20 * near, 1), (rolls + 20 * near, 0)):
        found = fmpy.simulate_fmu(
            str(unit), fmi_type=kind, stop_time=stop, output_interval=stop / 4, relative_tolerance=1e-9, output=OUTPUTS
        )
        assert found["floor.sliding"][-1] == sliding
    found = fmpy.simulate_fmu(
        str(unit), fmi_type=kind, stop_time=0.5, output_interval=0.5, relative_tolerance=1e-9, output=OUTPUTS
    )
    assert found["u"][-1] == pytest.approx(speed, abs=10 * near)
    assert found["w"][-1] == pytest.approx(-speed / 0.1, abs=100 * near)
    assert abs(found["floor.friction"][-1]) < 1e-12


def test_the_right_fmu_passes(judge, unit):
    assert judge.passes(thrown, unit)


def test_a_wrong_coefficient_is_caught(judge, tmp_path):
    assert not judge.passes(thrown, export(thrown(mu=0.3001), tmp_path).path)


def test_where_no_motion_agrees_the_fmu_says_so(rods, tmp_path):
    """Painlevé: it is set in motion where friction would press it down harder than it pushes."""
    description = fmpy.read_model_description(rods)
    unit = FMU3Slave(
        guid=description.guid,
        unzipDirectory=fmpy.extract(rods, str(tmp_path / "unpacked")),
        modelIdentifier=description.coSimulation.modelIdentifier,
        instanceName="rod",
    )
    messages: list[str] = []
    log = fmpy.fmi3.fmi3LogMessageCallback(lambda _, __, ___, text: messages.append(text.decode()))
    unit.instantiate(loggingOn=True, logMessage=log)
    unit.enterInitializationMode(startTime=0.0)
    unit.exitInitializationMode()
    unit.doStep(0.0, 0.004)
    with pytest.raises(FMICallException) as caught:
        unit.doStep(0.004, 0.004)
    unit.freeInstance()
    assert caught.value.status == fmpy.fmi3.fmi3Discard
    assert "no motion agrees with Coulomb's friction of floor (Painleve's paradox)" in messages[-1]


def test_parameters_that_leave_no_motion_discard_the_step(tmp_path):
    """Nothing is stepped then, and with less friction the FMU goes on."""
    path = str(export(rod(), tmp_path, fmi="2").path)
    description = fmpy.read_model_description(path)
    unit = FMU2Slave(
        guid=description.guid,
        unzipDirectory=fmpy.extract(path, str(tmp_path / "unpacked")),
        modelIdentifier=description.coSimulation.modelIdentifier,
        instanceName="rod",
    )
    known = {v.name: v.valueReference for v in description.modelVariables}
    friction = [known["floor.friction_coefficient"]]
    unit.instantiate()
    unit.setupExperiment(startTime=0.0)
    unit.enterInitializationMode()
    unit.setReal(friction, [1.2])
    unit.exitInitializationMode()
    unit.doStep(0.0, 0.008)
    before = unit.getReal([known[name] for name in OUTPUTS])
    unit.setReal(friction, [2.0])
    with pytest.raises(FMICallException) as caught:
        unit.doStep(0.008, 0.004)
    assert caught.value.status == fmpy.fmi2.fmi2Discard
    unit.setReal(friction, [1.2])
    assert unit.getReal([known[name] for name in OUTPUTS]) == before
    unit.doStep(0.008, 0.004)
    unit.freeInstance()


@pytest.mark.parametrize("kind", ["CoSimulation", "ModelExchange"])
@pytest.mark.parametrize("beside", [-1e-3, 1e-3])
def test_the_paradox_begins_at_four_thirds(rods, kind, beside):
    """At tan(angle) = 2, where 1 + 3 cos (cos - mu sin) comes to zero first: a little below the FMU moves on."""
    messages: list[str] = []
    settings = {
        "fmi_type": kind,
        "stop_time": 0.02,
        "output_interval": 0.001,
        "output": OUTPUTS,
        "relative_tolerance": 1e-9,
    }
    settings |= {"start_values": {"floor.friction_coefficient": 4 / 3 + beside}, "debug_logging": True}

    def run(stop: float):
        return fmpy.simulate_fmu(
            rods, **{**settings, "stop_time": stop}, logger=lambda *words: messages.append(str(words))
        )

    before = run(0.004)
    assert all(np.isfinite(before[name]).all() for name in OUTPUTS)
    if beside < 0.0:
        found = run(0.02)
        assert all(np.isfinite(found[name]).all() for name in OUTPUTS)
        assert found["time"][-1] == pytest.approx(0.02)
    else:
        with pytest.raises(FMICallException):
            run(0.02)
        assert any("Painleve's paradox" in words for words in messages)
        assert not any("nan" in words.lower().split() for words in messages)
