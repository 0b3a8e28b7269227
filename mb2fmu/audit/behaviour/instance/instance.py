"""One instance of an FMU, of any version and type: statuses are returned, or raised on request."""

from __future__ import annotations

import ctypes as c
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from mb2fmu.audit.behaviour.instance.fmi_types import (
    ALLOCATE,
    DISCARD,
    FREE,
    LOGGER2,
    LOGGER3,
    OK,
    PATTERN,
    TYPES2,
    TYPES3,
    UPDATE,
    WARNING,
    BooleanOutputs,
    Callbacks2,
    DiscreteStateUpdate,
    EventInfo2,
    FmuLibrary,
    FmuMemoryFunctions,
    MeaninglessValueError,
    MemoryBlock,
    RefusedCallError,
    StepResult,
    Value,
)
from mb2fmu.audit.behaviour.instance.grouped_reads import (
    WORTH_A_PLAN,
    GroupedReadPlan,
    VariableGroup,
    value_reference_array,
)
from mb2fmu.audit.behaviour.instance.logged_messages import LoggedMessages
from mb2fmu.audit.behaviour.instance.printf_logger import make_printf_logger as formatting
from mb2fmu.audit.description.description_records import DescribedModel, DescribedVariable

TERMINATED = 3
"""fmi2Terminated of fmi2StatusKind."""

MOST_BYTES = 1 << 30
"""Of a serialized state."""


def _array(kind: Any, values: Iterable[Any]) -> Any:
    """Return values as a ctypes array with room for one at least."""
    listed = list(values)
    return (kind * max(len(listed), 1))(*listed)


class FmuInstance:
    """One instance of an FMU.

    Args:
        library: Whose.
        kind: ``ModelExchange`` or ``CoSimulation``.
        token: Another than the description's, to see it refused.
        logging: Whether the FMU may write messages; None (FMI 3): there is no logger.
        callbacks: False: FMI 2's memory functions are null.
        update: Called at intermediate updates (FMI 3).
        required: Variables that ``update`` uses.
        early: Early return is allowed.
        event_mode: FMI 3 Co-Simulation with event mode.
        visible: It may show itself.
    """

    def __init__(
        self, library: FmuLibrary, kind: str, *, token: str | None = None, logging: bool | None = True,
        callbacks: bool = True, update: Callable[..., None] | None = None, required: Sequence[DescribedVariable] = (),
        early: bool = False, event_mode: bool = False, name: bytes = b"audited", visible: bool = False,
    ) -> None:  # fmt: skip
        self.library, self.kind = library, kind
        self.description = library.description
        self.version = library.description.version
        self.mode = "Instantiated"
        self._said = LoggedMessages(library.misdeeds, name)
        self.messages, self.environment = self._said.kept, self._said.environment
        self.time = 0.0
        self.memory = FmuMemoryFunctions()
        self.traps_lost, self.no_return = False, 1  # noSetFMUStatePriorToCurrentPoint of steps
        self.event_mode = event_mode
        self._visible = visible
        self._plans: dict[int, tuple[DescribedModel, GroupedReadPlan]] = {}
        self.types = TYPES2 if self.version == 2 else TYPES3
        written = (self.description.token if token is None else token).encode()
        library.pace.check()
        with library.pace.calling("fmi2Instantiate" if self.version == 2 else f"fmi3Instantiate{kind}"):
            if self.version == 2:
                self._instantiate2(name, written, logging, callbacks)
            else:
                self._instantiate3(name, written, logging, update, required, early)

    @property
    def alive(self) -> bool:
        """Whether the FMU returned an instance."""
        return bool(self._handle)

    def _instantiate2(self, name: bytes, token: bytes, logging: bool | None, callbacks: bool) -> None:
        """Instantiate for FMI 2; the name's memory is overwritten afterwards, as an importer may do."""
        # An FMU in another process calls the logger by way of ours, which gets finished texts.
        near = isinstance(self.library.handle, c.CDLL)
        logger, held = formatting(self._said.take) if near else (LOGGER2(self._said.take), None)
        table = Callbacks2(
            logger, ALLOCATE(self.memory.allocate) if callbacks else ALLOCATE(),
            FREE(self.memory.free) if callbacks else FREE(), None, self._said.environment,
        )  # fmt: skip
        self._keep: list[Any] = [logger, held, table]
        kind = {"ModelExchange": 0, "CoSimulation": 1}[self.kind]
        make = self.library.function("Instantiate")
        make.restype = c.c_void_p
        place = c.c_char_p(self.library.address.encode())
        lent = c.create_string_buffer(name)
        given = (lent, c.c_int(kind), c.c_char_p(token), place, c.byref(table))
        self._handle = c.c_void_p(make(*given, c.c_int(int(self._visible)), c.c_int(bool(logging))))
        c.memset(lent, ord("#"), len(name))  # the importer's memory is its own again after the call

    def _instantiate3(
        self, name: bytes, token: bytes, logging: bool | None, update: Callable[..., None] | None,
        required: Sequence[DescribedVariable], early: bool,
    ) -> None:  # fmt: skip
        """Instantiate for FMI 3; only Co-Simulation has event mode, early return and intermediate update."""
        logger = LOGGER3(lambda given, *told: self._said.take(given, None, *told)) if logging is not None else LOGGER3()
        hook = UPDATE(update) if update else UPDATE()
        self._keep = [logger, hook]
        make = self.library.function(f"Instantiate{self.kind}")
        make.restype = c.c_void_p
        place = c.c_char_p((self.library.resources.rstrip("/") + "/").encode())
        environment = c.c_void_p(self._said.environment)
        head = (c.c_char_p(name), c.c_char_p(token), place, c.c_bool(self._visible), c.c_bool(logging is not False))
        if self.kind == "CoSimulation":
            wanted = (value_reference_array(required), c.c_size_t(len(required)))
            tail: tuple[Any, ...] = (c.c_bool(self.event_mode), c.c_bool(early), *wanted, environment, logger, hook)
        else:
            tail = (environment, logger)
        self._handle = c.c_void_p(make(*head, *tail))

    # --- calls

    def call(self, name: str, *arguments: Any) -> int:
        """Call a function and return its status."""
        function, whole = self.library.called(name)
        pace = self.library.pace
        pace.check()
        pace.enter(whole)
        try:
            if self.library.traps:
                return self._trapped(function, arguments)
            return int(function(self._handle, *arguments))
        finally:
            pace.leave()

    def _trapped(self, function: Any, arguments: tuple[Any, ...]) -> int:
        """Call with floating-point traps on; Python's own arithmetic has them off."""
        mathematics, wanted = c.CDLL("libm.so.6"), self.library.traps  # traps are only ever asked for where it is
        mathematics.feclearexcept(wanted)
        mathematics.feenableexcept(wanted)
        status = int(function(self._handle, *arguments))
        left = mathematics.fedisableexcept(wanted)
        self.traps_lost = self.traps_lost or (left & wanted) != wanted
        return status

    def _filled(self, name: str, status: int, *rooms: MemoryBlock) -> list[Any]:
        """Return what a call wrote into its last array; misuse is remembered."""
        for room in rooms:
            wrong = room.misdeed(answered=status in {OK, WARNING})
            if wrong:
                self.library.misdeeds[f"fmi{self.version}{name} {wrong}"] = "life.writes"
        return rooms[-1].values()

    def _flagged(self, name: str, flags: BooleanOutputs, needed: Sequence[str] | None = None) -> list[bool]:
        """Return Booleans written by a call that answered OK; unwritten ones are remembered."""
        missing = [each for each in flags.unwritten() if needed is None or each in needed]
        if missing:
            self.library.misdeeds[f"fmi{self.version}{name} answers OK, but does not write {', '.join(missing)}"] = (
                "life.writes"
            )
        return flags.values()

    def told_since(self, seen: int) -> str:
        """Return messages after the first ``seen`` ones."""
        return self._said.since(seen)

    def do(self, name: str, *arguments: Any) -> None:
        """Call a function of an ordinary sequence.

        Raises:
            RefusedError: If the status is neither OK nor Warning.
        """
        seen = len(self.messages)
        status = self.call(name, *arguments)
        if status not in {OK, WARNING}:
            raise RefusedCallError(f"fmi{self.version}{name}", status, self.told_since(seen), self.mode)

    def free(self) -> None:
        """Free the instance."""
        if self.alive:
            function = self.library.function("FreeInstance")
            function.restype = None
            with self.library.pace.calling(f"fmi{self.version}FreeInstance"):
                function(self._handle)
            self._handle = c.c_void_p()

    def reset(self) -> None:
        """Reset to the state after instantiation."""
        self.do("Reset")
        self.mode = "Instantiated"

    def terminate(self) -> None:
        """End the run."""
        self.do("Terminate")
        self.mode = "Terminated"

    def enter(self, start: float, stop: float | None, tolerance: float | None) -> None:
        """Enter Initialization Mode."""
        flag = c.c_int if self.version == 2 else c.c_bool
        given = (
            flag(tolerance is not None),
            c.c_double(tolerance or 0.0),
            c.c_double(start),
            flag(stop is not None),
            c.c_double(stop or 0.0),
        )
        if self.version == 2:
            self.do("SetupExperiment", *given)
            self.do("EnterInitializationMode")
        else:
            self.do("EnterInitializationMode", *given)
        self.mode, self.time = "Initialization Mode", start

    def exit(self) -> None:
        """Leave Initialization Mode."""
        self.do("ExitInitializationMode")
        if self.kind == "ModelExchange" or self.event_mode:
            self.mode = "Event Mode"
        else:
            self.mode = "Step Mode"

    def update(self) -> DiscreteStateUpdate:
        """Update discrete states once."""
        names = (
            ("newDiscreteStatesNeeded" if self.version == 2 else "discreteStatesNeedUpdate"),
            "terminateSimulation", "nominalsOfContinuousStatesChanged", "valuesOfContinuousStatesChanged",
            "nextEventTimeDefined",
        )  # fmt: skip
        flags, time = BooleanOutputs(self.version, *names), c.c_double()
        if self.version == 2:
            info = EventInfo2()
            c.memset(c.byref(info), PATTERN, c.sizeof(info))
            self.do("NewDiscreteStates", c.byref(info))
            flags.take((info.needed, info.terminate, info.nominals, info.values, info.defined))
            time.value = info.next
            function = "NewDiscreteStates"
        else:
            function = "UpdateDiscreteStates"
            self.do(function, *flags.pointers, c.byref(time))
        exchange = self.kind == "ModelExchange"  # two of them are for Model Exchange only
        wanted = [each for each in names if exchange or "ContinuousStates" not in each]
        needed, terminate, nominals, values, defined = self._flagged(function, flags, wanted)
        return DiscreteStateUpdate(needed, terminate, nominals, values, time.value if defined else None)

    def event(self) -> None:
        """Enter Event Mode."""
        self.do("EnterEventMode")
        self.mode = "Event Mode"

    def go_on(self) -> None:
        """Leave Event Mode for Continuous-Time Mode or Step Mode."""
        exchange = self.kind == "ModelExchange"
        self.do("EnterContinuousTimeMode" if exchange else "EnterStepMode")
        self.mode = "Continuous-Time Mode" if exchange else "Step Mode"

    # --- Model Exchange

    def vector(self, name: str, size: int) -> list[float]:
        """Call a function that fills a vector of ``size`` numbers."""
        room = MemoryBlock(c.c_double, size)
        self.do(name, room.array, c.c_size_t(size))
        return self._filled(name, OK, room)

    def states(self, size: int) -> list[float]:
        """Return the continuous states."""
        return self.vector("GetContinuousStates", size)

    def slopes(self, size: int) -> list[float]:
        """Return the derivatives of the states."""
        return self.vector("GetDerivatives" if self.version == 2 else "GetContinuousStateDerivatives", size)

    def set_states(self, values: Sequence[float]) -> None:
        """Set the continuous states."""
        self.do("SetContinuousStates", _array(c.c_double, values), c.c_size_t(len(values)))

    def set_time(self, time: float) -> None:
        """Set the independent variable, s."""
        self.do("SetTime", c.c_double(time))
        self.time = time

    def completed(self) -> tuple[bool, bool]:
        """Complete an accepted step; return whether the FMU wants Event Mode, and whether it wants to end."""
        kind = c.c_int if self.version == 2 else c.c_bool
        flags = BooleanOutputs(self.version, "enterEventMode", "terminateSimulation")
        self.do("CompletedIntegratorStep", kind(1), *flags.pointers)
        event, end = self._flagged("CompletedIntegratorStep", flags)
        return event, end

    def count(self, name: str) -> int:
        """Return the number of states or event indicators (FMI 3)."""
        number = c.c_size_t()
        self.do(name, c.byref(number))
        return int(number.value)

    # --- Co-Simulation

    def step(self, point: float, size: float) -> StepResult:
        """Do one communication step; never raise."""
        self.time = point
        if self.version == 2:
            status = self.call("DoStep", c.c_double(point), c.c_double(size), c.c_int(self.no_return))
            return StepResult(status, terminate=status == DISCARD and self._terminated())
        flags = BooleanOutputs(self.version, "eventHandlingNeeded", "terminateSimulation", "earlyReturn")
        last = c.c_double(float("nan"))
        given = c.c_double(point), c.c_double(size), c.c_bool(self.no_return)
        status = self.call("DoStep", *given, *flags.pointers, c.byref(last))
        if status in {OK, WARNING}:
            events, terminate, returned = self._flagged("DoStep", flags)
            return StepResult(status, events, terminate, returned, last.value)
        return StepResult(status)

    def _terminated(self) -> bool:
        """Return whether an FMI 2 step was discarded because the FMU wants to end."""
        said = c.c_int(0)
        status = self.call("GetBooleanStatus", c.c_int(TERMINATED), c.byref(said))
        return status in {OK, WARNING} and bool(said.value)

    def must_step(self, point: float, size: float) -> StepResult:
        """Do one communication step of an ordinary run.

        Raises:
            RefusedError: If it is refused, or if the FMU wants to end.
        """
        seen = len(self.messages)
        done = self.step(point, size)
        if done.status not in {OK, WARNING} and not done.terminate:
            name = f"fmi{self.version}DoStep({point:.6g}, {size:.6g})"
            raise RefusedCallError(name, done.status, self.told_since(seen), self.mode)
        return done

    def derivatives_of(self, variables: Sequence[DescribedVariable], order: int) -> tuple[int, list[float]]:
        """Return derivatives of outputs by time."""
        room = MemoryBlock(c.c_double, len(variables))
        orders = _array(c.c_int, [order] * len(variables))
        name = "GetRealOutputDerivatives" if self.version == 2 else "GetOutputDerivatives"
        sizes = () if self.version == 2 else (c.c_size_t(len(variables)),)
        status = self.call(
            name, value_reference_array(variables), c.c_size_t(len(variables)), orders, room.array, *sizes
        )
        return status, self._filled(name, status, room)

    def ramp(self, variables: Sequence[DescribedVariable], slopes: Sequence[float]) -> int:
        """Set derivatives of inputs by time (FMI 2)."""
        orders, count = _array(c.c_int, [1] * len(variables)), c.c_size_t(len(variables))
        return self.call(
            "SetRealInputDerivatives", value_reference_array(variables), count, orders, _array(c.c_double, slopes)
        )  # fmt: skip

    # --- variables

    def get(self, variables: Sequence[DescribedVariable]) -> list[Value]:
        """Return values, in the requested order; arrays as tuples."""
        found: list[Any] = [None] * len(variables)
        for group in self._planned(variables).groups:
            for place, value in zip(group.places, group.divided(self._get(group)), strict=True):
                found[place] = value
        return found

    def _planned(self, variables: Sequence[DescribedVariable]) -> GroupedReadPlan:
        """Return how to read variables; plans are reused."""
        if len(variables) < WORTH_A_PLAN:
            return GroupedReadPlan(self.description, variables)
        kept = self._plans.get(id(variables))
        if kept is None or kept[0] is not self.description or not kept[1].fits(variables):
            kept = self._plans[id(variables)] = self.description, GroupedReadPlan(self.description, variables)
        return kept[1]

    def in_order(self, variables: Sequence[DescribedVariable]) -> list[Value]:
        """Return values of variables of one type by one call, in this order."""
        group = VariableGroup.of(self.description, variables, range(len(variables)))
        return list(group.divided(self._get(group)))

    def _get(self, group: VariableGroup) -> list[Any]:
        """Return the elements of variables of one type; functions must not write beyond the room they are given."""
        asked, count, total = group.references, c.c_size_t(len(group.variables)), group.total
        kind, first = group.variables[0].type, group.variables[0].name
        if kind == "Binary":
            sizes, places = MemoryBlock(c.c_size_t, total), MemoryBlock(c.c_void_p, total)
            self.do("GetBinary", asked, count, sizes.array, places.array, c.c_size_t(total))
            found = zip(self._filled("GetBinary", OK, sizes, places), sizes.values(), strict=True)
            return [c.string_at(place, size) if place else b"" for place, size in found]
        name, ctype = self.types[kind]
        room = MemoryBlock(ctype, total)
        given = () if self.version == 2 else (c.c_size_t(total),)
        self.do(f"Get{name}", asked, count, room.array, *given)
        read = self._filled(f"Get{name}", OK, room)
        return [self._said.checked(each, first) for each in read] if kind == "String" else read

    def put(self, variable: DescribedVariable, value: Value, *, spoil: bool = False) -> int:
        """Set one variable; return the status.

        Args:
            variable: That is set.
            value: Of it; a tuple for an array.
            spoil: Strings and binaries: uses their memory for something else afterwards.
        """
        return self.put_all({variable: value}, spoil=spoil)

    def put_all(self, given: Mapping[DescribedVariable, Value], *, spoil: bool = False) -> int:
        """Set variables of one type by one call; return the status."""
        kind = next(iter(given)).type
        values = [each for value in given.values() for each in (value if isinstance(value, tuple) else (value,))]
        asked, count = value_reference_array(list(given)), c.c_size_t(len(given))
        if kind in {"Binary", "String"}:
            buffers = [c.create_string_buffer(each) for each in values]
            places = _array(c.c_void_p, [c.addressof(each) for each in buffers])
            sizes = (_array(c.c_size_t, map(len, values)),) if kind == "Binary" else ()
            total = () if self.version == 2 else (c.c_size_t(len(values)),)
            status = self.call(f"Set{kind}", asked, count, *sizes, places, *total)
            for buffer in buffers if spoil else ():
                c.memset(buffer, ord("#"), max(len(buffer) - 1, 0))
            return status
        name, ctype = self.types[kind]
        sizes = () if self.version == 2 else (c.c_size_t(len(values)),)
        return self.call(f"Set{name}", asked, count, _array(ctype, values), *sizes)

    def set(self, values: Mapping[DescribedVariable, Value]) -> None:
        """Set variables of an ordinary sequence.

        Raises:
            RefusedError: If one is refused.
        """
        for variable, value in values.items():
            seen = len(self.messages)
            status = self.put(variable, value)
            if status not in {OK, WARNING}:
                raise RefusedCallError(
                    f'setting "{variable.name}" to {value!r}', status, self.told_since(seen), self.mode
                )

    # --- derivatives by variables

    def directional(
        self,
        unknowns: Sequence[DescribedVariable],
        knowns: Sequence[DescribedVariable],
        seed: Sequence[float],
        *,
        adjoint: bool = False,
    ) -> tuple[int, list[float]]:
        """Return directional (J v) or adjoint (vᵀ J) derivatives; scalars only."""
        size = len(knowns if adjoint else unknowns)
        room = MemoryBlock(c.c_double, size)
        pairs = (
            value_reference_array(unknowns),
            c.c_size_t(len(unknowns)),
            value_reference_array(knowns),
            c.c_size_t(len(knowns)),
        )
        if self.version == 2:
            name = "GetDirectionalDerivative"
            status = self.call(name, *pairs, _array(c.c_double, seed), room.array)
        else:
            name = "GetAdjointDerivative" if adjoint else "GetDirectionalDerivative"
            given = _array(c.c_double, seed), c.c_size_t(len(seed))
            status = self.call(name, *pairs, *given, room.array, c.c_size_t(size))
        return status, self._filled(name, status, room)

    # --- states

    def _state(self, action: str) -> str:
        """Return the name of a state function in this version."""
        if self.version == 2:
            return {"Deserialize": "DeSerializeFMUstate", "Size": "SerializedFMUstateSize"}.get(
                action, f"{action}FMUstate"
            )
        return {"Size": "SerializedFMUStateSize"}.get(action, f"{action}FMUState")

    def get_state(self, state: c.c_void_p | None = None) -> c.c_void_p:
        """Return a copy of the complete state, written into an earlier copy if that is given."""
        state = c.c_void_p() if state is None else state
        self.do(self._state("Get"), c.byref(state))
        return state

    def set_state(self, state: c.c_void_p) -> None:
        """Restore a copy of the state."""
        self.do(self._state("Set"), state)

    def free_state(self, state: c.c_void_p) -> None:
        """Free a copy of the state."""
        self.do(self._state("Free"), c.byref(state))

    def serialize(self, state: c.c_void_p) -> bytes:
        """Return a copy as bytes."""
        size = c.c_size_t()
        self.do(self._state("Size"), state, c.byref(size))
        if size.value > MOST_BYTES:
            raise MeaninglessValueError(f"{self._state('Size')} says that a state has {size.value} bytes")
        room = MemoryBlock(c.c_ubyte, size.value)
        self.do(self._state("Serialize"), state, room.array, size)
        return bytes(self._filled(self._state("Serialize"), OK, room))

    def deserialize(self, data: bytes) -> c.c_void_p:
        """Return a copy from bytes."""
        state = c.c_void_p()
        room = (c.c_ubyte * max(len(data), 1)).from_buffer_copy(data or b"\0")
        self.do(self._state("Deserialize"), room, c.c_size_t(len(data)), c.byref(state))
        return state
