"""Random sequences of calls against the standards' state machines: legal calls succeed, illegal ones are refused.

An illegal call never crashes, is answered with Error and a message, and leads into the state that only resetting,
freeing, or setting a state saved before leaves.
"""

import ctypes as c
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from native.fmi import CS, DISCARD, ERROR, ME, OK, EventInfo, Unit, doubles, references
from native.machine import Machine


class Importer:
    """Makes calls whose arguments are in order, and knows what must come of them."""

    def __init__(self, library, fmi, kind):
        self.unit = Unit(library, fmi, kind).instantiate()
        self.machine = Machine(fmi, kind)
        self.time = 0.0
        self.saved = None  # (state pointer, machine state, experiment, time)
        self.bytes = None

    def close(self):
        if self.saved:
            assert self.unit.free_state(self.saved[0]) == (OK)
        self.unit.free()

    # Arguments of calls that need some.

    def arguments(self, function):
        fmi3 = self.unit.fmi == 3
        none, one = c.c_size_t(0), c.c_size_t(1)
        flag = c.c_bool(0) if fmi3 else c.c_int(0)
        x, force, room = references(["x"]), references(["force"]), doubles([0.0, 0.0])
        answers = [c.byref(c.c_bool() if fmi3 else c.c_int()) for _ in range(5)]
        seeds = (doubles([1.0]), one, room, one) if fmi3 else (doubles([1.0]), room)
        derivative = (references(["load"]), one, force, one, *seeds)
        nothing = (None, none, None, *([none] if fmi3 else []))
        step = (c.c_double(self.time), c.c_double(0.125), flag)
        last = (*answers[:3], c.byref(c.c_double())) if fmi3 else ()
        made = {
            "SetDebugLogging": (c.c_bool(1) if fmi3 else 1, none, None),
            "SetupExperiment": (0, c.c_double(), c.c_double(0.0), 0, c.c_double()),
            "EnterInitializationMode": (flag, c.c_double(), c.c_double(0.0), flag, c.c_double()) if fmi3 else (),
            "GetReal": (x, one, room),
            "GetFloat64": (x, one, room, one),
            "SetReal": (force, one, doubles([0.5])),
            "SetFloat64": (force, one, doubles([0.5]), one),
            "GetBinary": (None, none, None, None, none),
            "GetDirectionalDerivative": derivative,
            "GetAdjointDerivative": derivative,
            "SetTime": (c.c_double(self.time),),
            "SetContinuousStates": (doubles([0.5, 0.25]), c.c_size_t(2)),
            "GetEventIndicators": (None, none),
            "CompletedIntegratorStep": (flag, *answers[:2]),
            "NewDiscreteStates": (c.byref(EventInfo()),),
            "UpdateDiscreteStates": (*answers, c.byref(c.c_double())),
            "DoStep": (*step, *last),
            "SetRealInputDerivatives": (force, one, (c.c_int * 1)(1), doubles([0.5])),
            "GetRealOutputDerivatives": (x, one, (c.c_int * 1)(1), room),
            "GetOutputDerivatives": (x, one, (c.c_int * 1)(1), room, one),
            "GetStatus": (0, c.byref(c.c_int())),
            "GetRealStatus": (2, c.byref(c.c_double())),
            "GetBooleanStatus": (3, c.byref(c.c_int())),
            "GetIntegerStatus": (0, c.byref(c.c_int())),
            "GetStringStatus": (1, c.byref(c.c_char_p())),
            "GetNumberOfEventIndicators": (c.byref(c.c_size_t()),),
            "GetNumberOfContinuousStates": (c.byref(c.c_size_t()),),
        }
        for name in ("GetDerivatives", "GetContinuousStateDerivatives", "GetContinuousStates"):
            made[name] = made["GetNominalsOfContinuousStates"] = (room, c.c_size_t(2))
        for name in ("Integer", "Boolean", "String", "Int64", "UInt8"):
            made["Get" + name] = made["Set" + name] = nothing
        return made.get(function, ())

    def call(self, function):
        """Calls it and checks the answer."""
        legal = self.machine.legal(function)
        if "FMU" in function:
            status = self.state_call(function)
        else:
            before = len(self.unit.log)
            status = self.unit.call(function, *self.arguments(function))
            if status != OK:
                assert len(self.unit.log) > before or function == "SetDebugLogging"
                assert self.unit.log[-1].status == status
                assert function in self.unit.log[-1].text
        if not legal:
            assert status == ERROR, (function, self.machine)
            self.machine.fail()
            return
        wanted = DISCARD if function in {"GetIntegerStatus", "GetStringStatus"} else OK
        assert status == wanted, (function, self.machine, self.unit.log)
        if function in {"SetupExperiment", "Reset", "EnterInitializationMode"}:
            self.time = 0.0
        if function == "DoStep":
            self.time += 0.125
        self.machine.succeed(function)

    def state_call(self, function):
        if function.startswith("Get"):
            place = self.saved[0] if self.saved else c.c_void_p()
            status = self.unit.call(function, c.byref(place))
            self.saved = (place, self.machine.state, self.machine.experiment, self.time)
            return status
        if function.startswith("Set"):
            if not self.saved:
                self.machine.fail()
                assert self.unit.set_state(None) == ERROR
                self.machine.state = "Reset first"
                self.call_reset()
                return OK
            status = self.unit.set_state(self.saved[0])
            _, self.machine.state, self.machine.experiment, self.time = self.saved
            return status
        if function.startswith("Serialize"):
            self.bytes = self.unit.saved()
            return OK
        status, state = self.unit.deserialize(self.bytes or self.unit.saved())
        assert self.unit.free_state(state) == OK
        return status

    def call_reset(self):
        assert self.unit.call("Reset") == OK
        self.machine.succeed("Reset")
        self.machine.state = "I"
        self.time = 0.0


MOVES = {
    "SetupExperiment",
    "EnterInitializationMode",
    "ExitInitializationMode",
    "EnterContinuousTimeMode",
    "DoStep",
}
"""These lead on; drawn more often, so that sequences get somewhere."""


@settings(max_examples=4 * settings.default.max_examples)
@given(seed=st.integers(0, 2**64), kind=st.sampled_from([ME, CS]), bold=st.sampled_from([0.0, 0.05, 0.3]))
def test_random_sequences_of_calls(library, seed, kind, bold):
    rng = random.Random(seed)  # hypothesis' own choices prefer what is simple: few sequences would get anywhere
    importer = Importer(library[0], library[1], kind)
    try:
        rows = sorted(importer.machine.table)
        for _ in range(rng.randint(1, 60)):
            legal = [row for row in rows if importer.machine.legal(row)]
            moves = [row for row in legal if row in MOVES]
            dice = rng.random()
            importer.call(rng.choice(rows if dice < bold else moves if moves and dice > 0.7 else legal))
    finally:
        importer.close()


REACH = {
    "I": [],
    "N": ["SetupExperiment", "EnterInitializationMode"],
    "E": ["SetupExperiment", "EnterInitializationMode", "ExitInitializationMode"],
    "C": ["SetupExperiment", "EnterInitializationMode", "ExitInitializationMode", "EnterContinuousTimeMode"],
    "T": ["SetupExperiment", "EnterInitializationMode", "ExitInitializationMode", "Terminate"],
    "X": ["ExitInitializationMode"],
}
REACH["S"] = REACH["E"]


@pytest.mark.parametrize("state", "INECSTX")
def test_every_function_in_every_state(library, kind, state):
    if (state, kind) in {("E", CS), ("C", CS), ("S", ME)}:
        return  # there is no such state
    for function in Machine(library[1], kind).table:
        importer = Importer(library[0], library[1], kind)
        for step in REACH[state]:
            if step in importer.machine.table:
                importer.call(step)
        assert importer.machine.state == state
        importer.call(function)
        importer.close()


def test_every_function_after_a_step_that_could_not_be_made(library):
    fmi = library[1]
    for function in Machine(fmi, CS).table:
        importer = Importer(library[0], fmi, CS)
        importer.unit.start(force=50.0)
        assert importer.unit.step(0.0, 10.0) == DISCARD
        importer.machine.state = "F" if fmi == 2 else "S"
        importer.machine.experiment = True
        importer.call(function)
        importer.close()


IN_UPDATES = {"GetFloat64", "GetInt64", "GetBoolean", "GetBinary", "SetFloat64", "GetOutputDerivatives"}
"""Legal in Intermediate Update Mode (FMI 3.0.2 section 2.3.8), for the variables that were announced."""


def test_every_function_in_intermediate_updates(library):
    if library[1] == 2:
        return
    for function in Machine(3, CS).table:
        importer = Importer(library[0], 3, CS)
        importer.close()
        answers = []

        def update(*_, importer=importer, function=function, answers=answers):
            if not answers:
                place = (c.byref(c.c_void_p()),) if "FMU" in function else importer.arguments(function)
                answers.append(importer.unit.call(function, *place))

        importer.unit = Unit(library[0], 3, CS).instantiate(required=["x", "force"], update=update)
        importer.unit.start()
        legal = function in IN_UPDATES
        assert importer.unit.step(0.0, 0.125) == (OK if legal else ERROR), function
        assert answers == [OK if legal else ERROR], function
        if legal:
            assert importer.unit.step(0.125, 0.125) == OK
        else:
            assert importer.unit.value("time") == 0.0  # as before the step
        assert importer.unit.call("Reset") == OK
        importer.unit.free()


def test_pointers_that_are_no_instances(library):
    fmi = library[1]
    freed = Unit(library[0], fmi, CS).instantiate()
    freed.free()
    freed.free()
    importer = Importer(library[0], fmi, CS)
    wrong = [None, c.c_void_p(8), c.c_void_p(2**64 - 8), freed.handle, c.c_void_p(freed.handle.value + 1)]
    for handle in wrong:
        for function in Machine(fmi, CS).table:
            unit = Unit(library[0], fmi, CS, handle)
            arguments = importer.arguments(function) if "FMU" not in function else (None, None)
            assert unit.call(function, *arguments) == ERROR
        Unit(library[0], fmi, CS, handle).free()
    assert importer.unit.call("Reset") == OK
    importer.close()
