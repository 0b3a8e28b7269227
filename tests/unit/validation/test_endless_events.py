"""Events that never come to an end, or contradict each other, are reported by the reference: who, when, what to do."""

from __future__ import annotations

import re

import fmpy
import numpy as np
import pytest
import sympy as sm
from event_models import belt, particle, reference_of
from fmpy.fmi1 import FMICallException

from mb2fmu import export
from mb2fmu.errors import ValidationError


def falling(*settings):
    """A particle that falls for 0.5 s, then upon events."""
    model, x, v = particle(1.22625, 0.0, lambda *_: -sm.Float(9.81))
    for name, condition, value in settings:
        model.when(condition(x, v), {v: value(x, v)}, name=name)
    return model


def torn():
    """Two events that come together by the motion, though their conditions differ: x <= 0 and x (x + 2) <= 0."""
    return falling(
        ("floor", lambda x, _: x <= 0, lambda _, v: -v), ("mat", lambda x, _: x * (x + 2) <= 0, lambda *_: 0)
    )


UNIT: list = []


def test_two_events_that_set_the_same_at_one_instant_are_both_named():
    model = torn()
    with pytest.raises(
        ValidationError, match=r"t = 0\.5 s the events floor and mat set .*v.* to different values"
    ) as raised:
        reference_of(model)
    assert "let one of them set it" in str(raised.value)


@pytest.mark.parametrize("kind", ["CoSimulation", "ModelExchange"])
def test_the_fmu_names_both_too(tmp_path_factory, kind):
    if not UNIT:
        # in FMI 2 fmpy makes a step again and again that is discarded
        UNIT.append(export(torn(), tmp_path_factory.mktemp("torn"), fmi="3").path)
    said: list[str] = []
    with pytest.raises(FMICallException):
        fmpy.simulate_fmu(
            str(UNIT[0]), fmi_type=kind, stop_time=1.0, output_interval=0.1, debug_logging=True,
            logger=lambda *words: said.append(str(words)),
        )  # fmt: skip
    assert "two values at once" in " ".join(said)
    assert {"floor", "mat"} <= set(re.findall(r"floor|mat\b", " ".join(said)))


def test_two_events_that_set_the_same_value_agree():
    model = falling(("floor", lambda x, _: x <= 0, lambda _, v: -v), ("mat", lambda x, _: 2 * x <= 0, lambda _, v: -v))
    assert reference_of(model).events[0].sets_state


def test_events_that_make_each_other_true_are_named():
    model = falling(("down", lambda _, v: v > -4, lambda *_: -5), ("up", lambda _, v: v < -4, lambda *_: -3))
    with pytest.raises(ValidationError, match=r"to and fro 50 times at one instant: .*(up.*down|down.*up)"):
        reference_of(model)


def test_friction_that_holds_less_than_it_slides_with_holds_what_it_slides_with():
    less, equal = (reference_of(belt(ratio)).trajectory.values for ratio in (0.5, 1.0))
    assert np.array_equal(less, equal)
