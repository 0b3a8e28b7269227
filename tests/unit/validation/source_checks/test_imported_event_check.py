"""Imported events, values and outputs, compared with the model's own expressions: faults are found."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import sympy as sm
from event_models import particle
from planted import touch_reading
from planted.fault import Subject
from representatives import by_night
from strangers import quaternion_with_a_dependent_rate

from mb2fmu import Impact, Latch, pipeline
from mb2fmu.mechanics.mechanism.records.output_and_joint_records import ExpressionOutput
from mb2fmu.model.supported_functions import StickingSign
from mb2fmu.pipeline.derivation.model_derivation import load_model_and_mechanism
from mb2fmu.pipeline.derivation.stage_stopwatch import StageStopwatch
from mb2fmu.validation.independent_checks import check_event_import, check_imported_declarations
from mb2fmu.validation.source_checks.imported_event_check import _pair_conditions, form_condition_margin
from mb2fmu.validation.source_checks.source_accelerations import sample_source_accelerations

MODELS = Path(__file__).resolve().parents[4] / "models"


def said(checked, mechanism):
    """The independent checks of what was read."""
    made = sample_source_accelerations(checked, mechanism)
    return [*check_event_import(made, checked), check_imported_declarations(checked, mechanism)]


def caught_between_stops():
    """A mass that a stop throws back and a hook catches: a contact and a latch in one small model."""
    model, x, _ = particle(0.0, 1.0, lambda x, v: -20 * x - v)
    model.add(Impact("stop", sm.Rational(1, 10) - x, restitution=0.4, rest_below=0.05))
    model.add(Latch("hook", x + sm.Rational(1, 5), close=x < -sm.Rational(1, 10), open=x > 0, within=None))
    return model


def loaded(name):
    """A model of this file, or of the project."""
    return caught_between_stops() if name == "caught_between_stops" else pipeline.load(MODELS / f"{name}.py")


@cache
def first_of_each_kind(name):
    """The right reading, and one fault of each kind."""
    checked, mechanism = load_model_and_mechanism(loaded(name), None, StageStopwatch(None))
    subject = Subject(name, lambda: loaded(name))
    subject.__dict__["read"] = mechanism  # no unit is needed
    kinds = {}
    for mutant in touch_reading.mutants(subject):
        kinds.setdefault(mutant.kind, mutant)
    return checked, mechanism, kinds


@pytest.mark.parametrize(
    "name", ["bouncing_ball", "sampled_cart_pole", *by_night("rocking_block", "gripper"), "rolling_disc"]
)
@pytest.mark.usefixtures("few_points")
def test_what_was_read_is_as_the_model_says(name):
    checked, mechanism, _ = first_of_each_kind(name)
    checks = said(checked, mechanism)
    assert [check.verdict for check in checks] == ["passed"] * len(checks), checks
    assert checks[0].ratio < 1e-2


@pytest.mark.usefixtures("few_points")
def test_the_rate_of_a_quaternions_length_is_no_speed():
    """A dependent speed of SymPy's way to write quaternions is left out by the reading, rightly."""
    checked, mechanism = load_model_and_mechanism(quaternion_with_a_dependent_rate(), None, StageStopwatch(None))
    assert len(mechanism.declared.speeds) < len(checked.speeds)
    assert check_imported_declarations(checked, mechanism).verdict == "passed"


CONTACT_AND_LATCH = {"gap of a contact", "rate of a gap", "restitution", "row of a latch", "condition of a latch"}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("bouncing_ball", {"what an event sets", "condition of an event", "value as read", "unit as read"}),
        ("sampled_cart_pole", {"what an event sets", "condition of an event", "signal as read"}),
        ("rolling_disc", {"request of position", "request of multiplier", "unit as read"}),
        ("caught_between_stops", CONTACT_AND_LATCH),
        *by_night(
            ("gripper", CONTACT_AND_LATCH),
            ("slider_crank_clearance", {"friction of a contact", "slip of a contact"}),
        ),
    ],
)
def test_faults_of_reading_are_found(name, expected):
    checked, mechanism, kinds = first_of_each_kind(name)
    signals = mechanism.declared.experiment.signals
    expected = expected - (set() if signals else {"signal as read"})
    assert expected <= kinds.keys()
    for kind in sorted(expected):
        checks = said(checked, kinds[kind].change(mechanism))
        assert "failed" in [check.verdict for check in checks], (kind, kinds[kind].place)


@pytest.mark.parametrize("name", [*by_night("clutch_line"), "stick_slip_belt"])
def test_outputs_are_compared_as_they_are_while_something_sticks(name):
    checked, mechanism, _ = first_of_each_kind(name)
    right, _ = said(checked, mechanism)
    assert right.verdict == "passed"
    wrong = 0
    for i, output in enumerate(mechanism.outputs):
        if isinstance(output, ExpressionOutput) and output.expression.has(StickingSign):
            other = replace(output, expression=output.expression * sm.Float("1.03"))
            outputs = (*mechanism.outputs[:i], other, *mechanism.outputs[i + 1 :])
            found, _ = said(checked, replace(mechanism, outputs=outputs))
            assert found.verdict == "failed", output.name
            assert output.name in found.worst
            wrong += 1
    assert wrong >= 1


def test_another_limit_of_what_sticks_is_found():
    checked, mechanism, _ = first_of_each_kind("clutch_line")

    def looser(output):
        if not isinstance(output, ExpressionOutput):
            return output
        expression = output.expression.replace(StickingSign, lambda slip, ratio: StickingSign(slip, 1.03 * ratio))
        return replace(output, expression=expression)

    found, _ = said(checked, replace(mechanism, outputs=tuple(map(looser, mechanism.outputs))))
    assert found.verdict == "failed"


def test_a_comparison_that_decides_nothing_is_compared():
    """A latch that closes by itself where its row is zero: a bound of the row is another condition all the same."""
    row, bound, start = *sm.symbols("row bound"), {"row": 0.6, "bound": 0.5}
    closes = row <= 0
    for condition, same in ((closes, True), (sm.Ge(0, row, evaluate=False), True), (closes & (row >= -bound), False)):
        pairs = list(_pair_conditions("closes", closes, condition))
        assert all(pair.source.subs(start) == pair.imported.subs(start) for pair in pairs) == same
        assert pairs[0].source.subs(start) == pairs[0].imported.subs(start)


def test_conditions_have_margins():
    a, b = sm.symbols("a b")
    inside = form_condition_margin(sm.And(a > 1, sm.Not(b >= 2)))
    assert [inside.subs({a: 3, b: x}) for x in (0, 1, 3)] == [2, 1, -1]
    assert form_condition_margin(sm.Or(a < 0, b <= a)).subs({a: 4, b: 1}) == 3
    assert form_condition_margin(sm.true) == 1
    assert form_condition_margin(sm.Eq(a, b)).subs({a: 1, b: 1}) == 1
