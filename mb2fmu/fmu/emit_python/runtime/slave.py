"""The FMI 2.0 co-simulation slave: life cycle, variables, communication steps, state.

What pythonfmu's binary (0.7) does with this class, and what follows from it:

- ``do_step`` returning False becomes fmi2Discard: the step was refused and the state is as before.
- Any exception becomes fmi2Fatal, and the binary then releases its references to the instance, its class and its log
  queue, which it releases once more when the instance is freed. :func:`_guarded` adds those references, so that an
  importer may free (or go on with) an instance after an error.
- ``fmi2Reset`` makes a new instance: nothing is left of the old one.
- Messages go through a queue; the binary filters them by category. They are used as a format: no percent signs.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, ParamSpec, TypeVar
from weakref import WeakSet

from pythonfmu import Fmi2Slave
from pythonfmu.enums import Fmi2Status

from .dense_lu_solve import make_linear_solver
from .description import Description, SettableValue
from .dormand_prince import DormandPrince
from .entry_point_evaluation import Equations
from .failures import RefusedError, StepError, UndefinedValueError
from .integrator_base import Integrator, IntegratorMemory, Tolerance
from .rosenbrock_method import Rodas
from .runge_kutta import RungeKutta4
from .start_value_continuation import continue_to_set_values
from .state_snapshot import Snapshot, deserialize_fmu_snapshot, serialize_fmu_snapshot

P = ParamSpec("P")
R = TypeVar("R")

INSTANTIATED, INITIALIZATION, STEPPING, TERMINATED = range(4)
EPSILON = 2.0**-52
TIGHTEST = 1e-13
"""Tighter relative tolerances are below what the round-off of one step leaves."""
_keep: Callable[[ctypes.py_object[Any]], None] = ctypes.pythonapi.Py_IncRef
ctypes.pythonapi.Py_IncRef.restype = None
ctypes.pythonapi.Py_IncRef.argtypes = [ctypes.py_object]


def _guarded(method: Callable[P, R]) -> Callable[P, R]:
    """Log exceptions of a call; keep the objects alive that the binary releases once too often after one."""

    @functools.wraps(method)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except (RefusedError, UndefinedValueError) as error:
            _answer(args[0], error)
            raise

    return guarded


def _answer(slave: Any, error: Exception) -> None:
    """Report an error to the host, and keep the objects alive that the binary releases once too often after one."""
    for released in (slave, type(slave), slave.log_queue):
        _keep(ctypes.py_object(released))
    slave.report(Fmi2Status.error, str(error))


class _Values(dict[str, Sequence[float]]):
    """Vectors by name; those of entry points are computed when first read."""

    def __init__(self, compute: Callable[[str], Sequence[float]]) -> None:
        super().__init__()
        self._compute = compute

    def __missing__(self, name: str) -> Sequence[float]:
        values = self._compute(name)
        self[name] = values
        return values


class MechanismSlave(Fmi2Slave):  # type: ignore[misc]  # pythonfmu has no types
    """One instance of an FMU. Subclasses say which FMU it is.

    Attributes:
        unit: Which FMU it is.
        alive: All instances of this FMU (each FMU has a copy of this module).
    """

    unit: ClassVar[Description]
    alive: ClassVar[WeakSet[MechanismSlave]] = WeakSet()
    log_categories: ClassVar[Mapping[str, str]] = {}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        unit = self.unit
        self.modelName = unit.name
        self.alive.add(self)
        self.phase = INSTANTIATED
        self.steps = 0
        self.time = 0.0
        self.stop = math.inf
        self.tolerance = unit.tolerance
        self.x = [value.start for value in unit.states]
        self.declared = [*self.x] if "initialize" in unit.entries else []
        self.started = False
        self.r = [value.start for value in unit.inputs]
        self.p = [value.start for value in unit.parameters]
        self.remembered: Sequence[float] = unit.memory
        self.equations = Equations(unit, self.p)
        self.memory = IntegratorMemory()
        self.integrator = self._make_integrator()
        self.values = _Values(self._computed)
        self._forget()

    # --- life cycle ---------------------------------------------------------------------------------------------------

    @_guarded
    def setup_experiment(
        self, start_time: float, stop_time: float | None = None, tolerance: float | None = None
    ) -> None:
        """Take start time, stop time (s) and relative tolerance."""
        if not math.isfinite(start_time):
            raise RefusedError(f"the start time is {start_time!r}")
        if stop_time is not None and not stop_time > start_time:
            raise RefusedError(f"the stop time {stop_time!r} is not after the start time {start_time!r}")
        self.time = start_time
        self.stop = math.inf if stop_time is None else stop_time
        if tolerance is not None:
            self._take_tolerance(tolerance)
        self._forget()

    def _take_tolerance(self, tolerance: float) -> None:
        """Take the importer's tolerance, or warn and keep the old one where it is out of range."""
        if TIGHTEST <= tolerance < 1.0:
            self.tolerance = tolerance
            self.integrator = self._make_integrator()
        else:
            kept = f"the tolerance {tolerance!r} cannot be kept to; {self.tolerance!r} stays"
            self.report(Fmi2Status.warning, kept)

    def enter_initialization_mode(self) -> None:
        """Enter Initialization Mode; from now on guesses of start values are solved for, and can no longer be set."""
        self.phase = INITIALIZATION

    @_guarded
    def exit_initialization_mode(self) -> None:
        """Leave Initialization Mode; refuse it where a loop cannot be closed."""
        self._find_start()
        self._remember(self.time, self.x)
        if "position" in self.unit.entries:
            try:
                self.equations("position", self.time, self.x, self.r, self.remembered)
            except UndefinedValueError as undefined:  # an output may have no finite value; all else fails everywhere
                if undefined.__cause__ is not None:
                    raise
        self._check_motion()
        self.phase = STEPPING

    def _check_motion(self) -> None:
        """Raise if x' has no finite value at the start: no step could be made from there.

        Where it is the inputs that do not let it move, they can still be set to others.
        """
        if not self.x:
            return
        other = [value + 1.0 + 0.125 * i for i, value in enumerate(self.r)]
        try:
            self.equations("rhs", self.time, self.x, self.r, self.remembered)
        except UndefinedValueError as undefined:
            try:
                self.equations("rhs", self.time, self.x, other, self.remembered)
            except UndefinedValueError:
                reason = f"the FMU cannot move with these parameters and start values: {undefined}"
                raise UndefinedValueError(reason) from undefined

    def _remember(self, t: float, x: Sequence[float]) -> None:
        """Update the discrete memory after an accepted step, where the FMU has one."""
        if self.unit.memory:
            self.remembered = tuple(self.equations("remember", t, x, self.r, self.remembered))
            self._forget()

    def _find_start(self) -> None:
        """Solve for values that depend on the start values set in Initialization Mode."""
        if self.phase != INITIALIZATION or self.started:
            return
        self.started = True
        unit = self.unit
        if not self.declared and not unit.memory:
            return
        self.remembered, wanted = unit.memory, self.declared or self.x
        try:
            try:
                self._solve_start(self.equations, self.time, wanted)
            except UndefinedValueError:
                if not self._walk_to_start(wanted):
                    raise
        except UndefinedValueError:
            self.started, self.remembered = False, unit.memory
            raise
        self._forget()

    def _solve_start(self, equations: Equations, t: float, x: Sequence[float]) -> None:
        """Solve for guesses among the states, or for discrete memory."""
        if self.declared:
            self.x = [*equations("initialize", t, x, self.r)]
        else:
            self.remembered = tuple(equations("remember", t, x, self.r, self.remembered))

    def _walk_to_start(self, wanted: Sequence[float]) -> bool:
        """Follow the solution from the FMU's own start values; False where the importer has set guesses."""
        unit = self.unit
        guessed = [i for i, state in enumerate(unit.states) if state.approximate]
        own = [state.start for state in unit.states]
        if any(wanted[i] != own[i] for i in guessed):
            return False
        last = own

        def to(part: float, x: Sequence[float], p: Sequence[float]) -> None:
            nonlocal last
            guess = [last[i] if i in guessed else value for i, value in enumerate(x)]
            self._solve_start(Equations(unit, p), part * self.time, guess)
            last = self.x

        continue_to_set_values(to, (own, [value.start for value in unit.parameters]), (wanted, self.p))
        return True

    def terminate(self) -> None:
        """End the simulation; results stay readable."""
        self.phase = TERMINATED

    # --- variables ----------------------------------------------------------------------------------------------------

    @_guarded
    def get_real(self, vrs: Sequence[int]) -> list[float]:
        """Return values by value reference; compute only those that are out of date."""
        self._find_start()
        values, where = self.values, self.unit.variables
        try:
            return [values[source][index] for source, index in map(where.__getitem__, vrs)]
        except KeyError as unknown:
            raise RefusedError(f"there is no variable with value reference {unknown}") from unknown

    @_guarded
    def set_real(self, vrs: Sequence[int], values: Sequence[float]) -> None:
        """Set inputs, parameters and start values: all of them, or none if one is refused."""
        places = [self._settable(vr, value) for vr, value in zip(vrs, values, strict=True)]
        changed: set[int] = set()
        for (vector, index), value in zip(places, values, strict=True):
            if vector[index] != value:
                vector[index] = value
                changed.add(id(vector))
        if changed:
            self.started = False
            if self.phase == INSTANTIATED and self.declared:
                self.x = [*self.declared]
            if id(self.p) in changed:
                self.equations = Equations(self.unit, self.p)
            self.memory = self.memory.after_change()
            self._forget()

    @_guarded
    def _no_such_type(self, vrs: Sequence[int], values: Sequence[Any] = ()) -> list[Any]:
        """Refuse variables of other types: all variables are real numbers; an empty request is allowed."""
        if vrs or values:
            raise RefusedError(f"the variables with value references {list(vrs)} are of type Real")
        return []

    get_integer = get_boolean = get_string = _no_such_type
    set_integer = set_boolean = set_string = _no_such_type

    def _settable(self, vr: int, value: float) -> tuple[list[float], int]:
        """Return vector and index of a variable that may be set now; refuse it with the reason else."""
        source, index = self.unit.variables.get(vr, ("", 0))
        if not source:
            raise RefusedError(f"there is no variable with value reference {vr}")
        kinds: dict[str, tuple[list[float], Sequence[SettableValue]]] = {
            "input": (self.r, self.unit.inputs),
            "parameter": (self.p, self.unit.parameters),
            "state": (self.declared or self.x, self.unit.states),
        }
        if source not in kinds:
            raise RefusedError(f"the variable with value reference {vr} is computed and cannot be set")
        vector, declared = kinds[source]
        quantity = declared[index]
        if not math.isfinite(value):
            raise RefusedError(f"{quantity.name} cannot be {value!r}")
        if self.phase == TERMINATED:
            raise RefusedError(f"{quantity.name} cannot be set after termination")
        if self.phase == INITIALIZATION and quantity.approximate:
            raise RefusedError(f"{quantity.name} is a guess, which can be set before Initialization Mode only")
        if self.phase == STEPPING and source != "input" and not quantity.tunable:
            raise RefusedError(f"{quantity.name} can be set before the end of initialization only")
        return vector, index

    # --- steps --------------------------------------------------------------------------------------------------------

    def do_step(self, current_time: float, step_size: float) -> bool:
        """Advance from ``current_time`` by ``step_size`` (s) with inputs held.

        Returns:
            False if the step cannot be made; the state is then as before and the log says why.
        """
        before = self.remembered
        try:
            self._check_step(current_time, step_size)
            x, memory = self.integrator.advance(
                self._right_hand_side(), current_time, self.x, step_size, self.memory, self._accepted
            )
        except (RefusedError, StepError) as refusal:
            self.remembered = before
            self.report(Fmi2Status.discard, str(refusal))
            return False
        self.x, self.memory, self.time = x, memory, current_time + step_size
        self.steps += 1
        self._project()
        self._forget()
        if self.memory.slope:
            self.values["rhs"] = self.memory.slope
        return True

    def _accepted(self, t: float, x: Sequence[float]) -> None:
        """Update the discrete memory at an accepted step; an undefined value ends the run."""
        try:
            self._remember(t, x)
        except UndefinedValueError as undefined:
            raise StepError(f"at {t!r} s: {undefined}") from undefined

    def _project(self) -> None:
        """Project the state onto the constraints, which integration keeps only within its tolerance."""
        if "project" not in self.unit.entries:
            return
        try:
            projected = self.equations("project", self.time, self.x, self.r)
        except UndefinedValueError:
            return
        self.x = [*projected, *self.x[len(projected) :]]
        self.memory = IntegratorMemory(self.memory.step, self.memory.error)

    def _check_step(self, current_time: float, step_size: float) -> None:
        """Refuse a communication step that the FMU cannot take: wrong phase, time, size, or past the stop time."""
        if self.phase != STEPPING:
            raise RefusedError("a step is possible after initialization and before termination only")
        if not 0.0 < step_size < math.inf or not math.isfinite(current_time):
            raise RefusedError(f"a step of {step_size!r} s from {current_time!r} s is no step")
        end = current_time + step_size
        if end <= current_time:
            raise RefusedError(f"a step of {step_size!r} s from {current_time!r} s is lost in round-off")
        # An importer that adds up its steps may be off by half a unit in the last place for each of them.
        slack = 1e-6 * step_size + (self.steps + 16) * EPSILON * max(abs(current_time), abs(end))
        if abs(current_time - self.time) > slack:
            raise RefusedError(f"a step from {current_time!r} s is asked for, but the FMU is at {self.time!r} s")
        if end > self.stop + slack:
            raise RefusedError(f"a step to {end!r} s goes past the stop time {self.stop!r} s")

    def _right_hand_side(self) -> Callable[[float, Sequence[float]], Sequence[float]]:
        """Return x' as a function of t and x, with inputs and memory held."""
        equations, r = self.equations, self.r

        def rhs(t: float, x: Sequence[float]) -> Sequence[float]:
            return equations("rhs", t, x, r, self.remembered)

        return rhs

    def _linearize(self, t: float, x: Sequence[float]) -> tuple[list[list[float]], Sequence[float]]:
        """Return ∂x'/∂x as n × n rows, and ∂x'/∂t."""
        n = len(x)
        rows = [[0.0] * (n + 1) for _ in range(n)]
        for (i, j), value in zip(
            self.unit.jacobian, self.equations("jacobian", t, x, self.r, self.remembered), strict=True
        ):
            rows[i][j] = value
        return [row[:n] for row in rows], [row[n] for row in rows]

    def _make_integrator(self) -> Integrator:
        """Return the integrator that the FMU was exported with, at the present tolerance."""
        unit = self.unit
        if unit.solver == "fixed":
            return RungeKutta4(unit.internal_step)
        tolerance = Tolerance(self.tolerance, tuple(value.nominal for value in unit.states))
        if unit.solver == "implicit":
            return Rodas(tolerance, self._linearize, make_linear_solver)
        return DormandPrince(tolerance)

    # --- values -------------------------------------------------------------------------------------------------------

    def _computed(self, entry: str) -> Sequence[float]:
        """Return the results of an entry point at the present time and state."""
        return self.equations(entry, self.time, self.x, self.r, self.remembered)

    def _forget(self) -> None:
        """Drop all computed values, because their inputs have changed."""
        values = self.values
        values.clear()
        values["time"] = (self.time,)
        values["state"] = self.x
        values["input"] = self.r
        values["parameter"] = self.p

    # --- state --------------------------------------------------------------------------------------------------------

    @_guarded
    def _get_fmu_state(self) -> bytes:
        """Return the whole state as bytes that carry the FMU's token."""
        memory = self.memory
        numbers = [self.time, self.stop, self.tolerance, *self.declared, *self.x, *self.r, *self.p, *self.remembered]
        numbers += [memory.step, memory.error, *memory.slope]
        return serialize_fmu_snapshot(Snapshot(self.phase, self.steps, numbers), self.unit.token)

    @_guarded
    def _set_fmu_state(self, state: bytes) -> None:
        """Restore a state from bytes; refuse those of another unit or of the wrong length."""
        snapshot = deserialize_fmu_snapshot(state, self.unit.token)
        rest = list(snapshot.numbers)
        n_x, n_r, n_p, n_d = len(self.x), len(self.r), len(self.p), len(self.declared)
        n_m = len(self.remembered)
        if len(rest) - (5 + n_d + n_x + n_r + n_p + n_m) not in (0, n_x):
            raise RefusedError(f"the state holds {len(rest)} numbers, which does not fit this unit")
        self.phase, self.steps = snapshot.phase, snapshot.steps
        self.time, self.stop, tolerance = rest[:3]
        self.declared = rest[3 : 3 + n_d]
        self.started = False
        del rest[: 3 + n_d]
        self.x, self.r, self.p = rest[:n_x], rest[n_x : n_x + n_r], rest[n_x + n_r : n_x + n_r + n_p]
        del rest[: n_x + n_r + n_p]
        self.remembered = tuple(rest[:n_m])
        del rest[:n_m]
        self.memory = IntegratorMemory(rest[0], rest[1], tuple(rest[2:]))
        self.equations = Equations(self.unit, self.p)
        if tolerance != self.tolerance:
            self.tolerance = tolerance
            self.integrator = self._make_integrator()
        self._forget()

    @staticmethod
    def _fmu_state_to_bytes(state: bytes) -> bytes:
        """Return the state itself: it is bytes already."""
        return state

    @classmethod
    def _fmu_state_from_bytes(cls, state: bytes) -> bytes:
        """Return the state after checking that it is of this unit; report to all instances where not."""
        try:
            deserialize_fmu_snapshot(state, cls.unit.token)
        except RefusedError as error:
            # The binary does not say for which instance it asks: any of them may lose references.
            for slave in tuple(cls.alive):
                _answer(slave, error)
            raise
        return state

    # --- messages -----------------------------------------------------------------------------------------------------

    def report(self, status: Fmi2Status, message: str) -> None:
        """Queue a message in the category of its status."""
        self.log(message.replace("%", " percent"), status)
