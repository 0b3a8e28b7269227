"""FMUs with events: closed forms at any communication step, both kinds and versions; planted faults are caught."""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path
from unittest.mock import patch

import fmpy
import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from event_models import particle, two_blocks
from event_runs import run_with_events, states_of_its_own
from judging import Judge, in_long_steps
from mechanisms import closed_mechanism_of
from planted.runtime import replaced
from representatives import by_night
from scipy import integrate

import mb2fmu.fmu.emit_c
from mb2fmu import Model, export, pre, validation
from mb2fmu.mechanics import formulations
from mb2fmu.model import load
from mb2fmu.validation.reference_and_bounds import make_reference_and_bounds

pytestmark = pytest.mark.slow
MODELS = Path(__file__).parents[2] / "models"
BALL, FRICTION, BELT = (
    MODELS / f"{name}.py" for name in ("bouncing_ball", "dry_friction_oscillator", "stick_slip_belt")
)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """The FMU of a model, made once for each version."""
    known = {}

    def unit(path: Path, fmi: str) -> Path:
        if (path, fmi) not in known:
            known[path, fmi] = export(path, tmp_path_factory.mktemp("events"), fmi=fmi).path
        return known[path, fmi]

    return unit


# FMUs of FMI 2 whose events are these validate themselves in test_models.
@pytest.fixture(scope="module", params=[*by_night("2"), "3"], ids=["fmi2", "fmi3"])
def units(request, exported):
    return {path: exported(path, request.param) for path in (BALL, FRICTION, BELT)}


def moved(unit: Path, kind: str, stop: float, step: float, tolerance: float = 1e-9):
    return fmpy.simulate_fmu(
        str(unit), fmi_type=kind, stop_time=stop, output_interval=step, relative_tolerance=tolerance
    )


@pytest.mark.parametrize("step", [0.05, 0.5])
def test_a_ball_is_where_it_should_be_at_any_communication_step(units, step):
    found = moved(units[BALL], "CoSimulation", 2.0, step)
    heights = np.interp([1.0, 2.0], found["time"], found["h"])
    assert heights == pytest.approx([0.225059760719034, 0.0424335478026277], rel=1e-9)


@pytest.mark.parametrize("width", [*by_night(1e-2), 1e-3])
@pytest.mark.parametrize("method", [1, *by_night(4), 5])
def test_what_friction_does_right_before_rest_alone_is_not_stepped_over(tmp_path_factory, width, method):
    """Stribeck's rise, of 2 N within a narrow range of speeds before rest; m v' = -F(v), so t = integral of dv/F.

    Elsewhere the force is constant, and no error asks for short steps: a long one goes past the instant of rest, and
    none of its stages lies in the rise.
    """
    model, _, _ = particle(0.0, 0.77, lambda _, v: -sm.sign(v) * (1 + 2 * sm.exp(-((v / width) ** 2))))
    unit = export(model, tmp_path_factory.mktemp("stribeck"), fmi="2").path
    found = fmpy.simulate_fmu(
        str(unit), fmi_type="CoSimulation", start_values={"solver": method}, stop_time=2.0, output_interval=0.5
    )
    slow = integrate.quad(lambda v: v / (1 + 2 * np.exp(-((v / width) ** 2))), 0.0, 0.77, points=[width, 5 * width])
    assert found["v"][-1] == pytest.approx(0.0, abs=1e-9)
    assert found["x"][-1] == pytest.approx(slow[0], abs=2e-8)


@pytest.mark.parametrize("step", [0.01, 1.0])
def test_a_ball_that_is_soon_back_does_not_fall_through_the_ground(units, step):
    """From 0.02 m without loss: behind an impact the next one is within a quarter of an internal step of 1 s."""
    found = fmpy.simulate_fmu(
        str(units[BALL]),
        fmi_type="CoSimulation",
        start_values={"h": 0.02, "e": 1.0},
        stop_time=10.0,
        output_interval=step,
        relative_tolerance=1e-9,
    )
    fall = np.sqrt(2 * 0.02 / 9.81)
    since = np.mod(found["time"] + fall, 2 * fall) - fall  # from the last top
    assert found["h"] == pytest.approx(0.02 - 9.81 * since**2 / 2, abs=1e-9)


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


@pytest.mark.parametrize(
    ("kind", "importer"),
    [
        ("CoSimulation", contextlib.nullcontext),
        ("ModelExchange", contextlib.nullcontext),
        ("ModelExchange", states_of_its_own),
    ],
    ids=["CoSimulation", "ModelExchange", "ModelExchange, flag ignored"],
)
def test_stick_slip_keeps_its_period(exported, kind, importer):
    """To 1e-6 s, in importers that ask for states that changed in an event and in those that do not."""
    slip = 3.90260540781452
    with importer():
        run = run_with_events(str(exported(BELT, "3")), kind, 60.0, 0.05, ["x", "v"], 1e-8)
    wanted = np.cumsum([5.0, slip] * 6)
    assert run.events[:-1] - run.events[0] == pytest.approx(wanted - 5.0, abs=1e-6 * 6)
    assert np.diff(run.events)[::2] == pytest.approx(slip, abs=1e-6)
    assert run.events[2:] - run.events[:-2] == pytest.approx(5.0 + slip, abs=1e-6)
    sliding = run.found["v"] < 0.199
    radius = np.hypot(run.found["x"] - 0.5, run.found["v"])[sliding]
    assert radius == pytest.approx(0.538516480713450, rel=2e-7)


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
    found = moved(unit, "ModelExchange", 2.0, 0.037)
    assert [found["x"][-1], found["v"][-1]] == pytest.approx([x, v], rel=1e-6)
    sampled_at = found["time"][np.flatnonzero(np.diff(found["f"]))]  # by indicators, an offset of 1e-10 periods late
    assert sampled_at == pytest.approx(np.round(sampled_at, 1), abs=2e-11)
    assert len(sampled_at) >= 18


def belt() -> Model:
    """A mass that slides on a belt whose speed is an input."""
    x, v, V = me.dynamicsymbols("x v V")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    loads = [(P, -sm.sign(v - V) * N.x / 2)]
    kane = me.KanesMethod(N, [x], [v], [x.diff() - v], bodies=[me.Particle("mass", P, 1)], forcelist=loads)
    model = Model("Belt", kane)
    model.coordinate(x, 0.0, "m")
    model.speed(v, 1.0, "m/s")
    model.input(V, 0.0, "m/s")
    model.experiment(stop=1.0, step=0.1, tolerance=1e-8)
    return model


def test_a_belt_that_overtakes_pulls_and_sets_no_speed(tmp_path):
    unit = export(belt(), tmp_path).path
    signal = np.array([(0, 0), (0.5, 0), (0.5, 2), (1, 2)], dtype=[("time", "f8"), ("V", "f8")])
    for kind in ("CoSimulation", "ModelExchange"):
        found = fmpy.simulate_fmu(
            str(unit), fmi_type=kind, stop_time=1.0, output_interval=0.1, input=signal, relative_tolerance=1e-9
        )
        assert found["v"] == pytest.approx(0.75 + 0.5 * np.abs(found["time"] - 0.5), abs=1e-8)


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


def ball() -> Model:
    return in_long_steps(BALL, 0.1)


def friction() -> Model:
    return in_long_steps(FRICTION, 0.2)


JUDGED = {BALL: ball, FRICTION: friction}


@pytest.fixture(scope="module")
def judge():
    return Judge()


NIGHTLY = {"early": "as late", "late in Model Exchange": "as late, and indicator turned"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.repeats if name in NIGHTLY else ()) for name in FAULTS]
)
def test_a_wrong_event_is_caught(judge, tmp_path, name):
    model, file, old, new = FAULTS[name]
    emit = mb2fmu.fmu.emit_c.emit_equation_sources
    change = replaced(file, old, new)
    with patch.object(mb2fmu.fmu.emit_c, "emit_equation_sources", lambda *a, **k: change(emit(*a, **k))):
        unit = export(model, tmp_path).path
    assert not judge.passes(JUDGED[model], unit)


def test_a_wrong_restitution_is_caught(judge, tmp_path):
    model = load(BALL)
    model.declared = [dataclasses.replace(item, value=0.7001) if item.name == "e" else item for item in model.declared]
    assert not judge.passes(ball, export(model, tmp_path).path)


def test_right_fmus_are_not_failed(judge, exported):
    for model, count in ((BALL, 4), (FRICTION, 8)):
        result = judge.result(JUDGED[model], exported(model, "3"))
        assert result.passed
        for kind in result.kinds:
            assert [event.verdict for event in kind.events] == ["passed"] * count
            assert max(abs(event.difference) for event in kind.events) < 2e-9


@pytest.mark.parametrize(("first", "second"), [(1.0, 1.00005), pytest.param(1.00005, 1.0, marks=pytest.mark.repeats)])
def test_two_stops_close_together_are_judged_as_one_occasion(judge, tmp_path, first, second):
    def make() -> Model:
        model = two_blocks(first, second)
        model.experiment(stop=1.1, step=0.004)
        return model

    unit = export(make(), tmp_path).path
    result = judge.result(make, unit)
    assert result.passed
    assert {event.verdict for kind in result.kinds for event in kind.events} == {"passed"}


LET_GO = "failed = mb2fmu_let_go(s, t, x, r, p, w, set);"


@pytest.fixture(scope="module")
def short_belt():
    """The belt for as long as it takes to stick, and what judges it, during the run too."""
    model = load(BELT)
    model.experiment(stop=5.0, step=0.25, tolerance=1e-8)
    mechanism = closed_mechanism_of(model)
    equations = formulations.formulate(mechanism, "lagrange")
    return model, mechanism.declared, equations, make_reference_and_bounds(mechanism.declared, equations)


@pytest.mark.parametrize(
    ("old", "new"), [("", ""), (LET_GO, "failed = 0;")], ids=["right", "held as the belt speeds up"]
)
def test_modes_behind_a_change_of_parameters_are_judged(short_belt, tmp_path, old, new):
    model, definition, equations, stick = short_belt
    emit = mb2fmu.fmu.emit_c.emit_equation_sources
    change = replaced("events.c", old, new) if old else (lambda motion: motion)
    with patch.object(mb2fmu.fmu.emit_c, "emit_equation_sources", lambda *a, **k: change(emit(*a, **k))):
        unit = export(model, tmp_path).path
    result = validation.validate(
        unit, definition, equations, reference_and_bounds=stick, conformance=False, time_limit=30.0
    )
    wrong = {(call.kind.split(",")[0], call.name) for call in result.api_checks if call.verdict == "failed"}
    tuned = "parameters changed during the run"
    assert all(kind.passed for kind in result.perturbed_experiment.kinds)
    assert {("CoSimulation", tuned), ("ModelExchange", tuned)} <= wrong if old else not wrong
