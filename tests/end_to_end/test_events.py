"""Units with events: closed forms at any communication step, both kinds and versions; planted faults are caught."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from unittest.mock import patch

import fmpy
import numpy as np
import pytest
import sympy.physics.mechanics as me
from planted.runtime import replaced

import mb2fmu.emit.c
from mb2fmu import Model, derive, export, formulation, pre, validation
from mb2fmu.model import load
from mb2fmu.validation.validate import make_yardstick

pytestmark = pytest.mark.slow
MODELS = Path(__file__).parents[2] / "models"
BALL, FRICTION, BELT = (
    MODELS / f"{name}.py" for name in ("bouncing_ball", "dry_friction_oscillator", "stick_slip_belt")
)


@pytest.fixture(scope="module", params=["2", "3"], ids=["fmi2", "fmi3"])
def units(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(f"events{request.param}")
    return {path: export(path, folder, fmi=request.param).path for path in (BALL, FRICTION, BELT)}


def moved(unit: Path, kind: str, stop: float, step: float, tolerance: float = 1e-9):
    return fmpy.simulate_fmu(
        str(unit), fmi_type=kind, stop_time=stop, output_interval=step, relative_tolerance=tolerance
    )


@pytest.mark.parametrize("step", [0.05, 0.5])
def test_a_ball_is_where_it_should_be_at_any_communication_step(units, step):
    found = moved(units[BALL], "CoSimulation", 2.0, step)
    heights = np.interp([1.0, 2.0], found["time"], found["h"])
    assert heights == pytest.approx([0.225059760719034, 0.0424335478026277], rel=1e-9)


def test_a_ball_bounces_in_model_exchange(units):
    found = moved(units[BALL], "ModelExchange", 2.0, 0.01)
    assert found["h"][-1] == pytest.approx(0.0424335478026277, rel=1e-4)
    speeds = found["v"]
    jumps = np.flatnonzero(np.diff(speeds) > 1.0)
    assert found["time"][jumps] == pytest.approx(
        [0.451523640985731, 1.08365673836575, 1.52614990653177, 1.835895124], rel=1e-7
    )
    assert speeds[jumps + 1] / speeds[jumps] == pytest.approx(-0.7, rel=1e-9)


@pytest.mark.parametrize("kind", ["CoSimulation", "ModelExchange"])
def test_dry_friction_rests_for_ever(units, kind):
    found = moved(units[FRICTION], kind, 20.0, 0.1)
    resting = found["time"] > 0.8 * np.pi
    assert found["x"][resting] == pytest.approx(0.008, rel=1e-5 if kind == "ModelExchange" else 1e-7)
    assert np.max(np.abs(found["v"][resting])) < 1e-16
    assert np.ptp(found["x"][resting]) < 1e-15


@pytest.mark.parametrize("kind", ["CoSimulation", "ModelExchange"])
def test_stick_slip_keeps_its_period(units, kind):
    found = moved(units[BELT], kind, 60.0, 0.05, 1e-8)
    period = 5.0 + 3.90260540781452
    first = found["time"] > 10.0
    shifted = np.interp(found["time"][first] + period, found["time"], found["x"])
    inside = found["time"][first] + period < 60.0
    assert shifted[inside] == pytest.approx(found["x"][first][inside], abs=2e-4)  # by linear interpolation
    assert np.max(found["x"]) == pytest.approx(0.5 + 0.538516480713450, abs=2e-4)
    assert np.min(found["x"]) == pytest.approx(0.5 - 0.538516480713450, abs=2e-4)


def sampled() -> Model:
    x, v, f = me.dynamicsymbols("x v f")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    mass = me.Particle("mass", P, 1)
    kane = me.KanesMethod(N, [x], [v], [x.diff() - v], bodies=[mass], forcelist=[(P, f * N.x)])
    model = Model("Sampled", kane)
    model.coordinate(x, 1.0, "m")
    model.speed(v, 0.0, "m/s")
    model.discrete(f, 0.0, "N")
    model.every(0.1, {f: -4 * x - 2 * v})
    model.once(1.05, {v: pre(v) + 1})
    model.experiment(stop=2.0, step=0.05, tolerance=1e-8)
    return model


def test_a_sampled_controller_is_exact_at_any_communication_step(tmp_path):
    x, v = 1.0, 0.0
    for k in range(20):
        f, spans = -4 * x - 2 * v, (0.05, 0.05) if k == 10 else (0.1,)
        for i, h in enumerate(spans):
            v += 1.0 if i else 0.0
            x, v = x + v * h + f * h * h / 2, v + f * h
    unit = export(sampled(), tmp_path).path
    for step in (0.05, 0.037, 0.4):
        found = moved(unit, "CoSimulation", 2.0, step)
        assert [found["x"][-1], found["v"][-1]] == pytest.approx([x, v], rel=1e-11)
    found = moved(unit, "ModelExchange", 2.0, 0.05)
    assert [found["x"][-1], found["v"][-1]] == pytest.approx([x, v], rel=1e-6)


# --- planted faults ---------------------------------------------------------------------------------------------------

FAULTS = {
    "early": (BALL, "events.h", "#define MB2FMU_SLACK 1e-13", "#define MB2FMU_SLACK (-1e-4)"),
    "late": (BALL, "events.h", "#define MB2FMU_SLACK 1e-13", "#define MB2FMU_SLACK 1e-4"),
    "late in Model Exchange": (BALL, "events.h", "#define MB2FMU_OFFSET 1e-10", "#define MB2FMU_OFFSET 1e-4"),
    "indicator turned": (
        BALL,
        "values.c",
        "instance->indicators[k] += MB2FMU_OFFSET;",
        "instance->indicators[k] = MB2FMU_OFFSET - instance->indicators[k];",
    ),
    "slips the wrong way": (
        FRICTION,
        "events.c",
        "*mode = s->surface[MB2FMU_N_INDICATORS + k] > 0.0 ? 1.0 : -1.0;",
        "*mode = s->surface[MB2FMU_N_INDICATORS + k] > 0.0 ? -1.0 : 1.0;",
    ),
    "nothing is set": (BALL, "events.c", "        x[i] = s->after[i];\n", ""),
}


@pytest.fixture(scope="module")
def judged():
    """Judges units of a model by one yardstick."""
    known = {}

    def judge(model: Path, unit: Path):
        if model not in known:
            derivation = derive(model)
            equations = formulation.formulate(derivation.mechanism, "lagrange")
            stick = make_yardstick(derivation.definition, equations, exercise=False)
            known[model] = (derivation.definition, equations, stick)
        definition, equations, stick = known[model]
        return validation.validate(
            unit, definition, equations, yardstick=stick, conformance=False, exercise=False, time_limit=30.0
        )

    return judge


def is_caught(judged, model: Path, unit: Path) -> bool:
    try:
        return not judged(model, unit).passed
    except mb2fmu.Mb2FmuError:
        return True


@pytest.mark.parametrize("name", FAULTS)
def test_a_wrong_event_is_caught(judged, tmp_path, name):
    model, file, old, new = FAULTS[name]
    emit = mb2fmu.emit.c.emit_motion
    change = replaced(file, old, new)
    with patch.object(mb2fmu.emit.c, "emit_motion", lambda *a, **k: change(emit(*a, **k))):
        unit = export(model, tmp_path).path
    assert is_caught(judged, model, unit)


def test_a_wrong_restitution_is_caught(judged, tmp_path):
    model = load(BALL)
    model.declared = [dataclasses.replace(item, value=0.7001) if item.name == "e" else item for item in model.declared]
    assert is_caught(judged, BALL, export(model, tmp_path).path)


def test_right_units_are_not_failed(judged, tmp_path):
    for model in (BALL, FRICTION):
        assert judged(model, export(model, tmp_path).path).passed
