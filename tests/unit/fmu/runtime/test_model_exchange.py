"""Model Exchange of the shell: values, what can be set when, vectors, event mode."""

import ctypes as c
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from native.fmi import DISCARD, ERROR, ME, OK, REALS, EventInfo, bits

numbers = st.floats(-1e3, 1e3)


def expected(time, x, v, force, mass=2.0, stiffness=8.0, damping=0.5):
    """All variables, from the formulas in the oscillator's model.c, in the order of NAMES."""
    acceleration = (force - stiffness * x - damping * v + 1.0 / (1.0 + time * time)) / mass
    omega = math.sqrt(stiffness / mass)
    return [
        time, x, v, v, acceleration, force, mass, stiffness, damping, 1e9, omega, x * x + time, damping * v * v,
        acceleration + 0.5 * force, 2.0 * v, acceleration,
    ]  # fmt: skip


@settings(max_examples=30)
@given(time=numbers, x=numbers, v=numbers, force=numbers, mass=st.floats(0.1, 10.0))
def test_every_variable_is_what_the_formulas_say(library, time, x, v, force, mass):
    from native.fmi import Unit

    unit = Unit(library[0], library[1], ME).instantiate().start(wall=1e9, mass=mass)
    assert unit.call("SetTime", c.c_double(time)) == OK
    assert unit.call("SetContinuousStates", (c.c_double * 2)(x, v), c.c_size_t(2)) == OK
    assert unit.set("force", force) == OK
    status, values = unit.get(*REALS[:-1])
    wanted = expected(time, x, v, force, mass=mass)
    assert status == OK
    assert values == pytest.approx(wanted, rel=1e-13, abs=1e-9)
    assert unit.derivatives() == values[3:5]
    unit.free()


def test_start_values_and_nominals(fresh):
    unit = fresh(ME).start()
    assert unit.vector("GetContinuousStates") == (OK, [1.0, 0.0])
    assert unit.vector("GetNominalsOfContinuousStates") == (OK, [2.5, 1.0])


def test_states_can_be_set_one_by_one_too(fresh):
    unit = fresh(ME).start()
    assert unit.set("x", 0.25, "v", -3.0) == OK
    assert unit.vector("GetContinuousStates") == (OK, [0.25, -3.0])
    assert unit.derivatives()[0] == -3.0


def test_a_position_costs_no_solve(fresh):
    unit = fresh(ME).start()
    assert unit.set("x", 20.0) == OK
    assert unit.get("tip", "loss", "twice", "omega") == (OK, [400.0, 0.0, 0.0, 2.0])
    for name in ("der(v)", "load", "speedup"):
        assert unit.get(name)[0] == DISCARD
        assert "the wall is singular" in unit.log[-1].text
    assert unit.vector("GetDerivatives" if unit.fmi == 2 else "GetContinuousStateDerivatives")[0] == DISCARD
    assert unit.set("x", 1.0) == OK
    assert unit.get("load")[0] == OK


def test_what_is_no_number_is_not_handed_out(fresh):
    unit = fresh(ME).start(wall=1e300)
    assert unit.set("x", 1e200) == OK
    assert unit.get("tip")[0] == DISCARD
    assert unit.log[-1].text.endswith("tip is infinity, not a finite number")


def test_nothing_happens_in_event_mode(fresh):
    unit = fresh(ME)
    assert unit.enter() == OK
    assert unit.call("ExitInitializationMode") == OK
    if unit.fmi == 2:
        info = EventInfo(1, 1, 1, 1, 1, 5.0)
        assert unit.call("NewDiscreteStates", c.byref(info)) == OK
        assert [info.needed, info.terminate, info.nominals, info.values, info.defined] == [0] * 5
    else:
        flags = [c.c_bool(1) for _ in range(5)]
        assert unit.call("EvaluateDiscreteStates") == OK
        assert unit.call("UpdateDiscreteStates", *map(c.byref, flags), c.byref(c.c_double())) == OK
        assert not any(flag.value for flag in flags)
    assert unit.set("mass", 4.0) == OK
    assert unit.value("omega") == math.sqrt(2.0)
    assert unit.call("EnterContinuousTimeMode") == OK
    answers = [c.c_int(1), c.c_int(1)] if unit.fmi == 2 else [c.c_bool(1), c.c_bool(1)]
    truth = 1 if unit.fmi == 2 else c.c_bool(1)
    assert unit.call("CompletedIntegratorStep", truth, *map(c.byref, answers)) == OK
    assert [bool(answer.value) for answer in answers] == [False, False]
    assert unit.call("EnterEventMode") == OK


def test_no_event_indicators_even_through_null_pointers(fresh):
    unit = fresh(ME).start()
    assert unit.call("GetEventIndicators", None, c.c_size_t(0)) == OK
    if unit.fmi == 3:
        for name, wanted in (("EventIndicators", 0), ("ContinuousStates", 2)):
            number = c.c_size_t(99)
            assert unit.call(f"GetNumberOf{name}", c.byref(number)) == OK
            assert number.value == wanted
    assert unit.call("GetEventIndicators", (c.c_double * 1)(), c.c_size_t(1)) == ERROR


@pytest.mark.parametrize("n", [0, 1, 3])
@pytest.mark.parametrize("name", ["GetContinuousStates", "SetContinuousStates", "GetNominalsOfContinuousStates"])
def test_vectors_of_another_length_are_refused(fresh, name, n):
    unit = fresh(ME).start()
    assert unit.call(name, (c.c_double * 3)(), c.c_size_t(n)) == ERROR
    assert f"{n} values were given, the FMU has 2" in unit.log[-1].text


def test_looking_beyond_the_stop_time_is_no_fault_of_model_exchange(fresh):
    unit = fresh(ME).start(stop=1.0)
    assert unit.call("SetTime", c.c_double(1.5)) == OK
    assert unit.value("time") == 1.5


def test_explicit_euler_by_hand(fresh):
    unit = fresh(ME).start()
    x, v, h = 1.0, 0.0, 1e-3
    for step in range(100):
        dx = unit.derivatives()
        assert dx == pytest.approx([v, expected(step * h, x, v, 0.0)[4]], rel=1e-14)
        x, v = x + h * dx[0], v + h * dx[1]
        assert unit.call("SetTime", c.c_double((step + 1) * h)) == OK
        assert unit.call("SetContinuousStates", (c.c_double * 2)(x, v), c.c_size_t(2)) == OK
    assert bits(unit.vector("GetContinuousStates")[1]) == bits([x, v])
