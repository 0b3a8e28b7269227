"""Sampled controllers against their difference equations: dead-beat, delays, rates, quantizers, friction in the loop.

Source of the laws: K. J. Åström and B. Wittenmark, Computer-Controlled Systems, 3rd ed. 1997, chapters 2 to 4.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import fmpy
import lines
import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from judging import Judge
from mechanisms import closed_mechanism_of
from representatives import by_night

import mb2fmu
from mb2fmu import CoulombFriction, Model, export, pre
from mb2fmu.mechanics import formulations
from mb2fmu.validation.reference.reference_run import make_reference

x, v, u, seen = me.dynamicsymbols("x1 v1 u seen")
T = 0.1
STEPS = (0.03, 0.07, 0.25, 1 / 3)
"""Communication steps, in s: most do not divide a period."""
KINDS = [("2", "CoSimulation"), ("2", "ModelExchange"), *by_night(("3", "CoSimulation"), ("3", "ModelExchange"))]
"""All others here are FMUs of FMI 3."""
NEAR = {"CoSimulation": 1e-12, "ModelExchange": 1e-6}
"""Of the largest value that there was. In Model Exchange it is CVODE's accuracy at a tolerance of 1e-9."""
Law = Callable[[int, float, float, dict[str, float]], None]


def plant(name: str, stop: float = 0.98) -> tuple:
    """A mass of 1 kg at 1 m, 0.5 m/s, and the force u: (model, N, O, P)."""
    model, N, O, (P,) = lines.masses(name, [(1.0, 0.5)], lambda _: [u])
    model.discrete(u, 0.0, "N", name="u")
    model.experiment(stop=stop, step=stop / 7, tolerance=1e-9)
    return model, N, O, P


def moved(law: Law, period: float, stop: float = 0.98) -> tuple[float, float]:
    """Place and speed at the end: ``law`` sets the force in its memory at each sample."""
    at, speed, memory = 1.0, 0.5, {"u": 0.0, "seen": 0.0}
    samples = math.floor(stop / period + 1e-9)
    for k in range(samples + 1):
        law(k, at, speed, memory)
        h = period if k < samples else stop - samples * period
        at, speed = at + speed * h + memory["u"] * h * h / 2, speed + memory["u"] * h
    return at, speed


def all_agree(model: Model, wanted: tuple[float, float], folder, steps: tuple[float, ...] = (0.07, 1 / 3)) -> None:
    """The reference and an FMU of both kinds, at communication steps that do not divide a period."""
    mechanism = closed_mechanism_of(model)
    found = make_reference(mechanism.declared, formulations.formulate(mechanism, "tmt")).trajectory
    assert [found.values[-1, found.column(name)] for name in ("x1", "v1")] == pytest.approx(
        wanted, rel=1e-12, abs=1e-12
    )
    stop = model.default_experiment.stop
    fmu = str(export(model, folder, fmi="3").path)
    for kind, bound in NEAR.items():
        for step in steps:
            run = fmpy.simulate_fmu(
                fmu, fmi_type=kind, stop_time=stop, output_interval=step, relative_tolerance=1e-9, output=["x1", "v1"]
            )
            ends = [float(run[name][-1]) for name in ("x1", "v1")]
            within = bound * (1 + float(np.abs(run["v1"]).max()))
            assert ends == pytest.approx(wanted, rel=0, abs=within), (kind, step)


@pytest.mark.parametrize(("fmi", "kind"), KINDS)
def test_dead_beat_control_is_at_rest_after_two_samples(fmi, kind, tmp_path):
    """F = -x/T² - 3 v/(2 T): whatever the start, x = v = 0 from 2 T on."""
    model, *_ = plant("DeadBeat")
    model.every(T, {u: -x / T**2 - 1.5 * v / T})
    unit = str(export(model, tmp_path, fmi=fmi).path)
    for step in (*STEPS, 0.013, 0.05, 0.11):
        run = fmpy.simulate_fmu(
            unit, fmi_type=kind, stop_time=1.0, output_interval=step, relative_tolerance=1e-9, output=["x1", "v1"]
        )
        late = run["time"] > 2 * T + 1e-9
        for name in ("x1", "v1"):
            assert np.abs(run[name][late]).max() < NEAR[kind] * 10.25  # m/s, the largest speed: -107.5 N for 0.1 s


def test_a_controller_is_late_by_a_sample(tmp_path):
    def law(_: int, at: float, speed: float, memory: dict[str, float]) -> None:
        memory["u"], memory["seen"] = memory["seen"], -20 * at - 6 * speed

    all_agree(delayed(), moved(law, T), tmp_path)


def delayed(gain: float = 20.0) -> Model:
    """What is computed from a sample acts from the next one on; it samples at 0 s, too."""
    model, *_ = plant("Delayed")
    model.discrete(seen, 0.0, "N", name="computed")
    model.every(T, {u: pre(seen), seen: -gain * x - 6 * v})
    return model


def test_a_quantizer_in_the_loop(tmp_path):
    def law(_: int, at: float, speed: float, memory: dict[str, float]) -> None:
        memory["u"] = -20 * 0.05 * math.floor(at / 0.05) - 6 * speed

    model, *_ = plant("Quantized")
    model.every(T, {u: -20 * sm.Rational(1, 20) * sm.floor(20 * x) - 6 * v})
    all_agree(model, moved(law, T), tmp_path)


def two_rates(fast: float, ratio: int, stop: float = 0.98, offset: float = 0.0) -> Model:
    """A filter at each ``fast`` s, and a controller that reads it at every ``ratio`` of them."""
    model, *_ = plant("TwoRates", stop)
    model.discrete(seen, 0.0, "m", name="seen")
    model.every(float(f"{fast * ratio:.12g}"), {u: -20 * seen - 6 * v}, name="control", offset=offset)
    model.every(fast, {seen: (pre(seen) + x) / 2}, name="filter")
    return model


def filtered(ratio: int, first: int = 0) -> Law:
    def law(k: int, at: float, speed: float, memory: dict[str, float]) -> None:
        before = memory["seen"]
        memory["seen"] = (before + at) / 2
        if k >= first and (k - first) % ratio == 0:
            memory["u"] = -20 * before - 6 * speed

    return law


@pytest.mark.parametrize(("fast", "ratio", "first"), [(0.1, 3, 1), *by_night((0.05, 2, 0), (0.02, 5, 0), (0.07, 3, 2))])
def test_what_samples_at_one_instant_reads_what_was_before(fast, ratio, first, tmp_path):
    """The controller never sees what the filter sets at the same instant, however 3 * 0.1 and 0.3 are rounded."""
    model = two_rates(fast, ratio, offset=float(f"{first * fast:.12g}"))
    all_agree(model, moved(filtered(ratio, first), fast), tmp_path)


def test_rates_of_which_neither_divides_the_other(tmp_path):
    """0.04 s and 0.06 s: their common clock has steps of 0.02 s, at which nothing else may happen."""

    def law(k: int, at: float, speed: float, memory: dict[str, float]) -> None:
        before = memory["seen"]
        memory["seen"] = (before + at) / 2 if k % 2 == 0 else before
        memory["u"] = -20 * before - 6 * speed if k % 3 == 0 else memory["u"]

    model, *_ = plant("TwoRates", 0.99)
    model.discrete(seen, 0.0, "m", name="seen")
    model.every(0.06, {u: -20 * seen - 6 * v})
    model.every(0.04, {seen: (pre(seen) + x) / 2})
    all_agree(model, moved(law, 0.02, 0.99), tmp_path)


@pytest.mark.parametrize("make", [delayed, *by_night(functools.partial(two_rates, 0.07, 3))])
def test_the_proof_begins_behind_the_first_sample(make, tmp_path):
    """A controller that remembers is not sampled twice at 0 s: steps and errors that grow start where the FMU is."""
    judge = Judge()
    found = judge.result(make, export(make(), tmp_path).path)
    assert found.passed
    assert {each.verdict for each in found.variables} == {"passed"}
    if make is delayed:
        assert not judge.passes(make, export(delayed(20.001), tmp_path / "wrong").path)


def test_an_instant_that_is_a_sample_too(tmp_path):
    """At 0.3 s a set point moves; the controller that samples then reads the one before, and the next at 0.4 s."""

    def law(k: int, at: float, speed: float, memory: dict[str, float]) -> None:
        memory["u"] = -20 * (at - memory["seen"]) - 6 * speed
        memory["seen"] = 0.4 if k >= 3 else 0.0

    model, *_ = plant("SetPoint")
    model.discrete(seen, 0.0, "m", name="goal")
    model.once(0.3, {seen: 0.4})
    model.every(T, {u: -20 * (x - seen) - 6 * v})
    all_agree(model, moved(law, T), tmp_path)


def test_sensitivities_go_through_coinciding_samples():
    def end(at: complex) -> complex:
        speed, force, value = 0.5 + 0j, 0j, 0j
        for k in range(10):
            force, value = (-20 * value - 6 * speed if k % 2 == 0 else force), (value + at) / 2
            h = 0.05 if k < 9 else 0.04
            at, speed = at + speed * h + force * h * h / 2, speed + force * h
        return at

    found = mb2fmu.sensitivities(two_rates(0.05, 2), of=("x1",), to=("x1",), stop=0.49, step=0.07, tolerance=1e-11)
    assert found["x1", "x1"][-1] == pytest.approx(end(1 + 1e-30j).imag * 1e30, rel=1e-10)


def slides(at: float, speed: float, force: float, h: float) -> tuple[float, float]:
    """A constant force for a time against 2 N of friction, 2.6 N where it sticks."""
    while h > 0.0 and not (speed == 0.0 and abs(force) <= 2.6):
        a = force - 2 * math.copysign(1.0, speed or force)
        part = min(h, -speed / a if speed * a < 0 else math.inf)
        stops = part < h
        at, speed, h = at + speed * part + a * part**2 / 2, 0.0 if stops else speed + a * part, h - part
    return at, speed


def test_a_sampled_pi_controller_against_friction(tmp_path):
    """It sticks for more than ten samples; whether friction holds it is found at each of them."""
    at, speed, integral = 1.0, 0.5, 0.0
    stuck = 0
    for k in range(40):
        force = -20 * (at - 0.2) - 8 * speed - 10 * integral
        integral += T * (at - 0.2)
        at, speed = slides(at, speed, force, T if k < 39 else 0.05)
        stuck += speed == 0.0
    assert stuck > 10
    model, N, O, P = plant("Hunting", 3.95)
    model.discrete(seen, 0.0, "m.s", name="integral")
    model.add(CoulombFriction("rail", (O, P, N.x), kinetic=2.0, static=2.6, normal=1))
    model.every(T, {u: -20 * (x - 0.2) - 8 * v - 10 * seen, seen: pre(seen) + T * (x - 0.2)})
    all_agree(model, (at, speed), tmp_path, (0.03, 0.25))
