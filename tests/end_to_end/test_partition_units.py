"""FMUs with discrete memory, in both backends: changed at accepted steps only, part of the state, lost by no fault."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from pathlib import Path

import fmpy
import numpy as np
import pytest
from fmpy import calloc, free
from fmpy.fmi1 import FMICallException
from fmpy.fmi2 import (
    FMU2Model,
    FMU2Slave,
    fmi2CallbackAllocateMemoryTYPE,
    fmi2CallbackFreeMemoryTYPE,
    fmi2CallbackFunctions,
    fmi2CallbackLoggerTYPE,
)
from scipy.integrate import solve_ivp

from mb2fmu import model, pipeline
from mb2fmu.errors import ToolError
from mb2fmu.fmu.package import write_fmu_archive
from mb2fmu.pipeline.derivation.right_hand_side_of_derivation import right_hand_side

STEP = 0.02


class Unit:
    """One instance of an FMU on disk, its messages collected."""

    def __init__(self, path: Path, folder: str, kind: str = "CoSimulation") -> None:
        description = fmpy.read_model_description(path)
        self.references = {v.name: v.valueReference for v in description.modelVariables}
        self.messages: list[str] = []
        self._callbacks = fmi2CallbackFunctions()
        self._callbacks.logger = fmi2CallbackLoggerTYPE(lambda *said: self.messages.append(said[-1].decode()))
        self._callbacks.allocateMemory = fmi2CallbackAllocateMemoryTYPE(calloc)
        self._callbacks.freeMemory = fmi2CallbackFreeMemoryTYPE(free)
        of_kind = description.coSimulation if kind == "CoSimulation" else description.modelExchange
        make = FMU2Slave if kind == "CoSimulation" else FMU2Model
        self.fmu = make(
            guid=description.guid, unzipDirectory=folder, modelIdentifier=of_kind.modelIdentifier, instanceName="unit"
        )
        self.fmu.instantiate(callbacks=self._callbacks, loggingOn=True)
        self.time = 0.0
        self.begin()

    def begin(self) -> None:
        self.fmu.setupExperiment(startTime=0.0)
        self.fmu.enterInitializationMode()
        self.fmu.exitInitializationMode()

    def read(self, *names: str) -> list[float]:
        return list(self.fmu.getReal([self.references[name] for name in names]))

    def walk(self, steps: int, size: float = STEP) -> None:
        for _ in range(steps):
            self.fmu.doStep(self.time, size)
            self.time += size

    def saved(self) -> bytes:
        state = self.fmu.getFMUstate()
        size = ctypes.c_size_t()
        self.fmu.fmi2SerializedFMUstateSize(self.fmu.component, state, ctypes.byref(size))
        room = (ctypes.c_char * size.value)()
        self.fmu.fmi2SerializeFMUstate(self.fmu.component, state, room, size)
        self.fmu.freeFMUState(state)
        return bytes(room)

    def restore(self, saved: bytes) -> None:
        state = ctypes.c_void_p()
        room = (ctypes.c_char * len(saved)).from_buffer_copy(saved)
        self.fmu.fmi2DeSerializeFMUstate(self.fmu.component, room, len(saved), ctypes.byref(state))
        self.fmu.setFMUstate(state)
        self.fmu.freeFMUState(state)


def rocker_leads():
    """The four-bar by the rocker's angle from the coupler, which turns back soon."""
    loaded = model.load("models/four_bar.py")
    parts = loaded.mechanics
    loaded.mechanics = replace(parts, q_dependent=parts.q[:2], u_dependent=parts.u[:2])
    return loaded


@pytest.fixture(scope="module", params=["native", "python"])
def unit(request, tmp_path_factory):
    """Path and unpacked folder."""
    derivation = pipeline.derive(rocker_leads(), method="tmt", constraints="partition")
    path = tmp_path_factory.mktemp("partition") / f"{request.param}.fmu"
    write_fmu_archive(pipeline.build(derivation, backend=request.param).core, path)
    return path, fmpy.extract(path), request.param


def test_memory_is_part_of_the_state(unit):
    path, folder, _ = unit
    first, second = (Unit(path, folder) for _ in range(2))
    first.walk(4)
    middle = first.saved()
    first.walk(4)
    second.restore(middle)
    second.time = 4 * STEP
    second.walk(4)
    names = ("q1", "q2", "q3", "u1", "loop_force.x")
    assert first.read(*names) == second.read(*names)
    assert first.saved() == second.saved()
    angles = np.cumsum(first.read("q1", "q2", "q3"))
    assert np.array([0.8, 2.0, 1.0]) @ np.exp(1j * angles) == pytest.approx(2.0, abs=1e-13)


def test_a_step_out_of_the_chart_is_discarded_by_name_and_leaves_no_trace(unit):
    path, folder, _ = unit
    one = Unit(path, folder)
    with pytest.raises(FMICallException, match="discard"):
        one.walk(100)
    before = one.saved()
    with pytest.raises(FMICallException, match="discard"):
        one.walk(1)
    assert "no solution is found for the dependent coordinates q1, q2: the motion leaves" in one.messages[-1]
    assert one.saved() == before
    one.walk(1, 1e-4)
    assert np.isfinite(one.read("q1", "u1")).all()
    one.fmu.reset()
    one.time = 0.0
    one.begin()
    one.walk(4)
    other = Unit(path, folder)
    other.walk(4)
    assert one.read("q1", "u3") == other.read("q1", "u3")


def test_the_proof_of_a_fmu_that_gives_up_tells_why(unit):
    with pytest.raises(ToolError, match=r"t = 0\.2\d s\n.*dependent coordinates q1, q2: the motion leaves"):
        pipeline.validate(unit[0], rocker_leads())


def test_the_fmu_starts_wherever_its_chart_reaches_and_nowhere_else(unit):
    """The rocker's angle from the coupler goes from -2.668 to -0.782; it starts at -2.642, on its way up."""
    path, folder, _ = unit
    one = Unit(path, folder)
    for angle, possible in ((-1.0, True), (-0.7, False), (-2.2, True)):
        one.fmu.reset()
        one.fmu.setupExperiment(startTime=0.0)
        one.fmu.enterInitializationMode()
        one.fmu.setReal([one.references["q3"]], [angle])
        if not possible:
            with pytest.raises(FMICallException):
                one.fmu.exitInitializationMode()
            assert any("for the dependent coordinates q1, q2" in message for message in one.messages), one.messages
            continue
        angles = np.cumsum(one.read("q1", "q2", "q3"))
        assert np.array([0.8, 2.0, 1.0]) @ np.exp(1j * angles) == pytest.approx(2.0, abs=1e-13)
        one.fmu.exitInitializationMode()
        assert np.cumsum(one.read("q1", "q2", "q3")) == pytest.approx(angles, abs=1e-13)
        one.time = 0.0
        one.walk(1)


def test_in_model_exchange_memory_changes_when_a_step_is_completed(unit):
    path, folder, backend = unit
    if backend == "python":
        assert fmpy.read_model_description(path).modelExchange is None
        return
    assert not fmpy.read_model_description(path).modelExchange.completedIntegratorStepNotNeeded
    one = Unit(path, folder, "ModelExchange")
    one.fmu.enterContinuousTimeMode()
    x = np.array([-2.66, -0.1])

    def move() -> bytes:
        one.fmu.setContinuousStates(x.ctypes.data_as(ctypes.POINTER(ctypes.c_double)), 2)
        one.read("q1", "u1")
        return one.saved()

    tried = move()
    assert move() == tried
    one.fmu.completedIntegratorStep()
    accepted = one.saved()
    assert accepted != tried  # what is remembered is all that has changed
    one.fmu.completedIntegratorStep()
    again = one.saved()
    one.fmu.completedIntegratorStep()
    assert one.saved() == again


def test_compiled_equations_find_the_memory_of_each_place():
    """Seen: the compiled function asked for m, which nobody has: "m has shape (0,): 2 values are needed"."""
    derivation = pipeline.derive("models/four_bar.py", constraints="partition")
    interpreted = right_hand_side(derivation)
    compiled = interpreted.compile()
    solution = solve_ivp(compiled, (0.0, 3.0), compiled.x0, rtol=1e-9, atol=1e-9)
    times, states = solution.t[::9], solution.y.T[::9]
    assert np.ptp(states[:, 0]) > np.pi
    for f, ours in ((interpreted, interpreted.outputs), (compiled, compiled.outputs)):
        for k in np.random.default_rng(1).permutation(len(times)):
            for g, same in ((f, interpreted), (ours, interpreted.outputs)):
                np.testing.assert_allclose(g(times[k], states[k]), same(times[k], states[k]), rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(f(times, states), [f(t, x) for t, x in zip(times, states, strict=True)])
