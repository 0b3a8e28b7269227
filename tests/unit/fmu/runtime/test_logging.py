"""Messages: formatted, escaped as each version wants it, only where they are wanted, in every locale the same."""

import ctypes as c

import pytest
from native.fmi import CS, DISCARD, ERROR, ME, OK

CATEGORIES = ("logStatusWarning", "logStatusDiscard", "logStatusError")


def set_logging(unit, on, *categories):
    flag = c.c_int(on) if unit.fmi == 2 else c.c_bool(on)
    listed = (c.c_char_p * max(len(categories), 1))(*[name.encode() for name in categories])
    return unit.call("SetDebugLogging", flag, c.c_size_t(len(categories)), listed if categories else None)


def fail(unit):
    """One Discard, one Error."""
    assert unit.step(0.0, 10.0) == DISCARD
    assert unit.step(0.0, -1.0) == ERROR
    seen = [message.category for message in unit.log]
    unit.log.clear()
    assert unit.call("Reset") == OK
    unit.start(force=50.0)
    return seen


def test_only_what_is_wanted_is_said(fresh):
    unit = fresh(CS).start(force=50.0)
    both = ["logStatusDiscard", "logStatusError"]
    assert fail(unit) == both
    assert set_logging(unit, 0) == OK
    assert fail(unit) == []
    assert set_logging(unit, 1, "logStatusDiscard") == OK
    assert fail(unit) == ["logStatusDiscard"]
    assert set_logging(unit, 1, "logStatusWarning", "logStatusError") == OK
    assert fail(unit) == both
    assert set_logging(unit, 0, "logStatusError") == OK
    assert fail(unit) == ["logStatusDiscard"]
    assert set_logging(unit, 1) == OK
    assert fail(unit) == both


def test_nothing_is_said_without_debug_logging(fresh, kind):
    unit = fresh(kind, logging=False)
    assert unit.enter(start=float("nan")) == ERROR
    assert unit.log == []


def test_logging_is_switched_on_later(fresh, kind):
    unit = fresh(kind, logging=False)
    assert set_logging(unit, 1, "logStatusError") == OK
    assert unit.enter(start=float("nan")) == ERROR
    assert [message.category for message in unit.log] == ["logStatusError"]


def test_categories_that_do_not_exist(fresh, kind):
    unit = fresh(kind)
    assert set_logging(unit, 1, "logStatusError", "logEverything") == ERROR
    assert "there is no log category 'logEverything'" in unit.log[-1].text
    none = fresh(kind)
    assert none.call("SetDebugLogging", 1, c.c_size_t(1), None) == ERROR


def test_characters_that_mean_something_are_doubled(fresh):
    unit = fresh(ME).start()
    assert unit.set("damping", 1.0) == ERROR
    shown = "'Dämpfung 50%% ##1'" if unit.fmi == 2 else "'Dämpfung 50% ##1'"
    function = "fmi2SetReal" if unit.fmi == 2 else "fmi3SetFloat64"
    assert unit.log[-1].text == f"{function}: {shown} cannot be set in Continuous-Time Mode"


@pytest.mark.parametrize(("value", "text"), [(0.1, "0.1"), (-1e-7, "-1e-07"), (123456.75, "123456.75")])
def test_numbers_are_as_a_person_wrote_them(fresh, value, text):
    unit = fresh(CS).start(start=2.0)
    assert unit.step(value, 1.0) == ERROR
    assert unit.log[-1].text.endswith(f"begins at {text} s, but the FMU is at 2 s")


def test_long_names_of_categories_are_cut_off_at_a_character(fresh, kind):
    unit = fresh(kind)
    assert set_logging(unit, 1, "ä" * 5000) == ERROR
    assert len(unit.log[-1].text) < 2048
    assert unit.log[-1].text.endswith("ä")
