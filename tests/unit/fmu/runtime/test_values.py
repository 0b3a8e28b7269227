"""Reading and setting by value reference, in both kinds: who may be set when, and what is refused."""

import ctypes as c
import math

import pytest
from native.fmi import CS, ERROR, ME, NAMES, OK, REALS, WARNING, bits, doubles, references

from mb2fmu.fmu.integration_method_table import SOLVERS

STATES, INPUTS, TUNABLE, FIXED = {"x", "v"}, {"force"}, {"mass", "stiffness"}, {"damping", "wall", "solver_step"}
HELD = STATES | INPUTS | TUNABLE | FIXED


def reach(unit, mode):
    """Brings a fresh FMU there."""
    if mode != "instantiated":
        assert unit.enter() == OK
    if mode in {"event", "continuous", "step"}:
        assert unit.call("ExitInitializationMode") == OK
    if mode == "continuous":
        assert unit.call("EnterContinuousTimeMode") == OK


@pytest.mark.parametrize("name", REALS)
@pytest.mark.parametrize(
    ("mode", "settable"),
    [
        ("instantiated", HELD),
        ("initialization", HELD),
        ("event", INPUTS | TUNABLE),
        ("continuous", INPUTS | TUNABLE | STATES),
        ("step", INPUTS | TUNABLE),
    ],
)
def test_who_may_be_set_when(fresh, mode, settable, name):
    unit = fresh(CS if mode == "step" else ME)
    reach(unit, mode)
    status = unit.set(name, 0.75)
    assert status == (OK if name in settable else ERROR)
    if name in settable:
        assert unit.get(name) == ((OK, [0.75]) if unit.fmi == 3 or mode != "instantiated" else (ERROR, [99.0]))
    else:
        shown = "'Dämpfung 50% #1'" if name == "damping" else name
        assert f"{shown} cannot be set" in unit.log[-1].text.replace("%%", "%").replace("##", "#")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", ["mass", "damping", "force", "x"])
def test_what_is_no_number_is_refused_by_name(fresh, kind, name, value):
    unit = fresh(kind)
    assert unit.enter() == OK
    assert unit.set("wall", 7.0, name, value, "stiffness", 3.0) == ERROR
    word = "NaN" if math.isnan(value) else "-infinity" if value < 0 else "infinity"
    assert f"would be {word}, not a finite number" in unit.log[-1].text
    assert unit.get("wall", "stiffness") == (OK, [10.0, 8.0])


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_times_states_and_experiments_must_be_numbers(fresh, value):
    unit = fresh(ME).start()
    assert unit.call("SetTime", c.c_double(value)) == ERROR
    assert "time would be" in unit.log[-1].text
    again = fresh(ME).start()
    assert again.call("SetContinuousStates", doubles([0.0, value]), c.c_size_t(2)) == ERROR
    assert "v would be" in again.log[-1].text
    assert fresh(ME).enter(start=value) == ERROR
    assert fresh(ME).enter(tolerance=value) == ERROR
    assert fresh(ME).enter(tolerance=-1.0) == ERROR
    assert fresh(ME).enter(stop=math.nan) == ERROR
    assert fresh(ME).enter(start=1.0, stop=0.5) == ERROR
    assert fresh(ME).enter(start=1.0, stop=math.inf) == OK


@pytest.mark.parametrize("reference", [len(NAMES), 2**32 - 1, NAMES.index("solver")])
def test_wrong_value_references(fresh, kind, reference):
    unit = fresh(kind).start()
    assert unit.get("x", reference)[0] == ERROR
    assert f"value reference {reference}" in unit.log[-1].text
    unit = fresh(kind).start()
    assert unit.set("force", 1.0, reference, 2.0) == ERROR
    assert unit.get("force") == (OK, [0.0])


def test_null_pointers_where_nothing_stands_behind_them(fresh, kind):
    unit = fresh(kind).start()
    none = (None, c.c_size_t(0), None, *([c.c_size_t(0)] if unit.fmi == 3 else []))
    for action in ("Get", "Set"):
        assert unit.call(action + ("Real" if unit.fmi == 2 else "Float64"), *none) == OK
    some = (references(["x"]), c.c_size_t(1), None, *([c.c_size_t(1)] if unit.fmi == 3 else []))
    assert unit.call("GetReal" if unit.fmi == 2 else "GetFloat64", *some) == ERROR
    assert "values is a null pointer" in unit.log[-1].text


def test_types_the_fmu_does_not_have(fresh, kind):
    types = ["Boolean", "String"]
    if fresh.fmi == 3:
        types += ["Float32", "Int8", "UInt8", "Int16", "UInt16", "Int32", "UInt32", "UInt64"]
    for name in types:
        unit = fresh(kind)
        assert unit.enter() == OK
        size = [c.c_size_t(1)] if unit.fmi == 3 else []
        assert unit.call(f"Get{name}", references([0]), c.c_size_t(1), doubles([0.0]), *size) == ERROR
        assert f"no variables of type {name}" in unit.log[-1].text


def test_the_solver_is_a_fixed_enumeration(fresh, kind):
    unit = fresh(kind)
    for choice in (*(row.number for row in SOLVERS), 2):
        assert unit.set_choice("solver", choice) == OK
    assert unit.enter() == OK
    assert unit.set_choice("solver", 3) == OK
    assert unit.get_choice("solver") == (OK, 3)
    assert unit.get_choice("x")[0] == ERROR
    for wrong in (0, len(SOLVERS) + 1, -1):
        unit = fresh(kind)
        assert unit.set_choice("solver", wrong) == ERROR
        assert f"solver must be one of 1 to {len(SOLVERS)}" in unit.log[-1].text
    assert fresh(kind).start().set_choice("solver", 2) == ERROR


def test_calculated_parameters_follow(fresh, kind):
    unit = fresh(kind)
    assert unit.enter() == OK
    assert unit.set("mass", 4.0, "stiffness", 1.0) == OK
    assert unit.value("omega") == 0.5
    assert unit.set("omega", 1.0) == ERROR


def test_parameters_that_make_no_sense_end_the_initialization(fresh, kind):
    unit = fresh(kind)
    assert unit.enter() == OK
    assert unit.set("mass", -1.0) == OK
    assert unit.call("ExitInitializationMode") == ERROR
    assert "omega" in unit.log[-1].text


def test_reset_gives_the_bits_of_a_new_instance(fresh, kind):
    new, used = fresh(kind), fresh(kind)
    used.start(start=1.0, stop=20.0, tolerance=1e-4, mass=3.0, x=0.5)
    if kind == CS:
        assert used.step(1.0, 0.5) == OK
    assert used.set("force", 4.0) == OK
    assert used.saved() != new.saved()
    assert used.call("Reset") == OK
    assert used.saved() == new.saved()
    for unit in (new, used):
        unit.start()
        if kind == CS:
            assert unit.step(0.0, 0.25) == OK
    assert bits(new.get(*REALS)[1]) == bits(used.get(*REALS)[1])


def test_names_and_tokens_are_checked(library, kind):
    from native.fmi import Unit

    for arguments, reason in (
        ({"token": b"0b5b1a56-6b0e-5d5c-8e52-6ad1d0c7a002"}, "is not that of this unit"),
        ({"token": b""}, "is not that of this unit"),
        ({"token": None}, "is not that of this unit"),
        ({"name": b" \t"}, "name is missing or blank"),
        ({"name": b""}, "name is missing or blank"),
        ({"name": None}, "name is missing or blank"),
    ):
        unit = Unit(library[0], library[1], kind).instantiate(**arguments)
        assert not unit.handle
        assert reason in unit.log[-1].text
        assert unit.log[-1].status == ERROR
        silent = Unit(library[0], library[1], kind).instantiate(**arguments, logging=False)
        assert not silent.handle
        assert not silent.log


def test_values_out_of_bounds_are_taken_and_the_log_says_so(fresh, kind):
    unit = fresh(kind)
    assert unit.set("mass", -1.0) == OK
    assert (unit.log[-1].status, unit.log[-1].category) == (WARNING, "logStatusWarning")
    assert "mass is -1, less than its minimum 0" in unit.log[-1].text
    unit.log.clear()
    assert unit.set("mass", -1.0, "stiffness", -5.0) == OK  # said already; without bounds
    assert unit.log == []
    quiet = fresh(kind, logging=False)
    assert quiet.set("mass", -1.0) == OK
    assert quiet.log == []
    assert unit.enter() == OK
    assert unit.value("mass") == -1.0
