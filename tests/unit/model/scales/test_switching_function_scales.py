"""Sizes of what switches look at: natural magnitudes of units that nobody has written down."""

from __future__ import annotations

import functools
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mechanisms import mechanism_of
from representatives import examples
from rescaling import rescale

from mb2fmu import Model, derive
from mb2fmu.compiler.evaluation import make_evaluator
from mb2fmu.compiler.events import convert_switches_to_modes, list_program_switches
from mb2fmu.model import check_model, load
from mb2fmu.model.scales.characteristic_units import estimate_characteristic_units
from mb2fmu.model.scales.switching_function_scales import estimate_switching_scales
from mb2fmu.pipeline.run_and_report.validation_run import choose_reference_equations
from mb2fmu.validation.modes.hybrid_equations import HybridEquations
from mb2fmu.validation.reference.reference_run import drop_diagnostic_outputs, make_numeric_equations

MODELS = Path(__file__).parents[4] / "models"
POWERS = st.sampled_from([1e-6, 1e-3, 1.0, 1e3, 1e6])


@pytest.fixture(scope="module")
def declared():
    """A checked model: h in m and v in m/s are its states; restitution, gravity and more its parameters."""
    return check_model(load(MODELS / "bouncing_ball.py"))


@pytest.mark.parametrize(
    ("surface", "unit"),
    [
        (lambda h, v, t: h * (v * t > -1.0), "m"),
        (lambda h, v, t: 3.0 * h**2 * v + h**3 / t, "m3/s"),
        (lambda h, v, t: math.sqrt(h) - 2.0 * math.sqrt(v * t), "m(1/2)"),
        (lambda h, v, t: t + h / v, "s"),
        (lambda h, v, t: h / (v * t) - 1.0, "1"),
        (lambda h, v, t: h - 0.3 * v / v - t / t, None),
        (lambda h, v, t: 0.0 * h * v * t, None),
        (lambda h, v, t: math.inf * (h + v + t), None),
        (lambda h, v, t: math.acos(3.0 + h * v * t), None),
    ],
)
def test_a_unit_is_found_by_changing_units(declared, surface, unit):
    states = (*declared.coordinates, *declared.speeds)
    (found,) = estimate_switching_scales(declared, states, lambda t, x, *_: [surface(*x, t)], 1)
    natural = estimate_characteristic_units(declared)
    wanted = 1.0
    if unit:
        wanted = math.sqrt(natural.magnitude("m")) if unit == "m(1/2)" else natural.magnitude(unit)
    assert found == 2.0 ** round(math.log2(wanted))


def divided(model: Model) -> dict[str, float]:
    """Switches of a unit, and what their surfaces are divided by; those that are zero at the start are left out."""
    derivation = derive(model)
    frozen, sized = convert_switches_to_modes(derivation.program), derivation.program_with_modes
    names = [switch.name for switch in list_program_switches(frozen)]
    assert names == [switch.name for switch in list_program_switches(sized)]
    layout = sized.layout
    free = [p.value for p in derivation.definition.parameters if not p.calculated]
    at = (0.0, [0.3] * len(layout.states), [0.0] * len(layout.inputs), free, [1.0] * len(layout.memory))
    before, after = (make_evaluator(each, "surfaces")(*at) for each in (frozen, sized))
    return {n: a / b for n, a, b in zip(names, before, after, strict=False) if b}


@functools.cache
def divided_ball() -> dict[str, float]:
    return divided(load(MODELS / "bouncing_ball.py"))


@examples(3)
@given(length=POWERS, mass=POWERS, time=POWERS)
def test_sizes_follow_units(length, mass, time):
    known = divided_ball()
    found = divided(rescale(load(MODELS / "bouncing_ball.py"), length=length, mass=mass, time=time))
    assert found.keys() == known.keys() != set()
    for name, size in found.items():
        assert length / 2 <= size / known[name] <= length * 2


def test_fmu_and_reference_have_the_same_sizes():
    """Gaps of a contact that is open, forces of one that rests, and speeds: one expression may be any of them."""
    known = divided(load(MODELS / "slider_crank_clearance.py"))
    read = mechanism_of(load(MODELS / "slider_crank_clearance.py"))
    numeric = make_numeric_equations(
        drop_diagnostic_outputs(choose_reference_equations(read, None).equations), read.declared
    )
    assert {*known.values()} <= {*numeric.sizes}
    assert len({*known.values()}) >= 3


def test_sizes_are_the_same_without_a_compiler(monkeypatch):
    read = mechanism_of(load(MODELS / "clutch_line.py"))
    equations = drop_diagnostic_outputs(choose_reference_equations(read, None).equations)
    compiled = make_numeric_equations(equations, read.declared)
    monkeypatch.setattr(HybridEquations, "compile", lambda _: False)
    printed_for_python = make_numeric_equations(equations, read.declared)
    assert compiled.compiled_equations is not None
    assert printed_for_python.compiled_equations is None
    assert compiled.sizes.tolist() == printed_for_python.sizes.tolist()
    assert len({*compiled.sizes.tolist()}) >= 2
