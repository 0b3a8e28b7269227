"""One instance of an FMU, of any version and type; methods named ``must_…`` raise if the FMU refuses."""

from __future__ import annotations

import ctypes as c
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Any, TypedDict

from mb2fmu.audit.behaviour.instance.fmi_c_interface import (
    C_TYPES_FMI2,
    C_TYPES_FMI3,
    DISCARD,
    FILL_BYTE,
    OK,
    SUCCEEDED,
    AllocateCallback,
    BooleanOutputArguments,
    DoStepResult,
    Fmi2CallbackFunctions,
    Fmi2EventInfo,
    FmuLibrary,
    FmuMemoryFunctions,
    FreeCallback,
    GuardedArray,
    IntermediateUpdateCallback,
    LoggerCallback2,
    LoggerCallback3,
    MeaninglessFmuValueError,
    RefusedCallError,
    UpdateDiscreteStatesResult,
    Value,
)
from mb2fmu.audit.behaviour.instance.fmu_log_messages import LoggedMessages, make_printf_logger
from mb2fmu.audit.behaviour.instance.grouped_variable_reads import (
    MAX_READ_PLANS,
    GroupedReadPlan,
    SameTypeVariableGroup,
    make_argument_array,
    make_value_reference_array,
)
from mb2fmu.audit.description.description_records import DescribedVariable

STEP_STATUS_KIND, LAST_SUCCESSFUL_TIME_KIND, TERMINATED_STATUS_KIND = 0, 2, 3
"""fmi2Terminated of fmi2StatusKind."""

MAX_SERIALIZED_BYTES = 1 << 30
"""Of a serialized state."""


class FmuInstanceOptions(TypedDict, total=False):
    """Options of an instance: see :class:`FmuInstance`."""

    token: str | None
    logging: bool | None
    memory_callbacks: bool
    intermediate_update: Callable[..., None] | None
    required_variables: Sequence[DescribedVariable]
    allow_early_return: bool
    event_mode: bool
    name: bytes
    visible: bool


class FmuInstance:
    """One instance of an FMU.

    Args:
        library: Whose.
        interface: ``ModelExchange`` or ``CoSimulation``.
        token: Instantiation token; None: that of the description.
        logging: Whether the FMU may write messages; None (FMI 3): there is no logger.
        memory_callbacks: False: FMI 2's memory functions are null.
        intermediate_update: Called at intermediate updates (FMI 3).
        required_variables: Variables that ``intermediate_update`` uses.
        allow_early_return: Early return is allowed.
        event_mode: FMI 3 Co-Simulation with event mode.
        visible: Argument ``visible`` of the instantiation.
    """

    def __init__(
        self,
        library: FmuLibrary,
        interface: str,
        *,
        token: str | None = None,
        logging: bool | None = True,
        memory_callbacks: bool = True,
        intermediate_update: Callable[..., None] | None = None,
        required_variables: Sequence[DescribedVariable] = (),
        allow_early_return: bool = False,
        event_mode: bool = False,
        name: bytes = b"audited",
        visible: bool = False,
    ) -> None:
        self.library, self.interface = library, interface
        self.description = library.description
        self.version = library.description.version
        self.mode = "Instantiated"
        self._log = LoggedMessages(library.violations, name)
        self.messages, self.environment = self._log.messages, self._log.environment
        self.time = 0.0
        self.memory = FmuMemoryFunctions()
        self.traps_lost, self.no_set_state_before = False, 1  # noSetFMUStatePriorToCurrentPoint of steps
        self.event_mode = event_mode
        self._visible = visible
        self.types = C_TYPES_FMI2 if self.version == 2 else C_TYPES_FMI3
        token_bytes = (self.description.token if token is None else token).encode()
        library.trial_budget.check()
        with library.trial_budget.observe_call(
            "fmi2Instantiate" if self.version == 2 else f"fmi3Instantiate{interface}"
        ):
            if self.version == 2:
                self._instantiate2(name, token_bytes, logging, memory_callbacks)
            else:
                self._instantiate3(
                    name, token_bytes, logging, intermediate_update, required_variables, allow_early_return
                )

    @property
    def alive(self) -> bool:
        """Whether the FMU returned an instance."""
        return bool(self._handle)

    @property
    def address(self) -> int | None:
        """Address of the FMU's instance; None if it returned none."""
        return self._handle.value

    def _instantiate2(self, name: bytes, token: bytes, logging: bool | None, memory_callbacks: bool) -> None:
        """Instantiate for FMI 2; the name's memory is overwritten afterwards, as an importer may do."""
        # An FMU in another process calls the logger by way of ours, which gets finished texts.
        in_process = isinstance(self.library.handle, c.CDLL)
        logger, kept_logger = (
            make_printf_logger(self._log.record) if in_process else (LoggerCallback2(self._log.record), None)
        )
        callback_table = Fmi2CallbackFunctions(
            logger, AllocateCallback(self.memory.allocate) if memory_callbacks else AllocateCallback(),
            FreeCallback(self.memory.free) if memory_callbacks else FreeCallback(), None, self._log.environment,
        )  # fmt: skip
        self._kept_alive: list[Any] = [logger, kept_logger, callback_table]
        interface_code = {"ModelExchange": 0, "CoSimulation": 1}[self.interface]
        instantiate = self.library.function("Instantiate")
        instantiate.restype = c.c_void_p
        resources = c.c_char_p(self.library.resources_uri.encode())
        name_buffer = c.create_string_buffer(name)
        arguments = (name_buffer, c.c_int(interface_code), c.c_char_p(token), resources, c.byref(callback_table))
        self._handle = c.c_void_p(instantiate(*arguments, c.c_int(int(self._visible)), c.c_int(bool(logging))))
        c.memset(name_buffer, ord("#"), len(name))  # the importer's memory is its own again after the call

    def _instantiate3(
        self, name: bytes, token: bytes, logging: bool | None, intermediate_update: Callable[..., None] | None,
        required_variables: Sequence[DescribedVariable], allow_early_return: bool,
    ) -> None:  # fmt: skip
        """Instantiate for FMI 3; only Co-Simulation has event mode, early return and intermediate update."""
        logger = (
            LoggerCallback3(lambda logger_environment, *message: self._log.record(logger_environment, None, *message))
            if logging is not None
            else LoggerCallback3()
        )
        update_callback = (
            IntermediateUpdateCallback(intermediate_update) if intermediate_update else IntermediateUpdateCallback()
        )
        self._kept_alive = [logger, update_callback]
        instantiate = self.library.function(f"Instantiate{self.interface}")
        instantiate.restype = c.c_void_p
        resources = c.c_char_p((self.library.resources.rstrip("/") + "/").encode())
        environment = c.c_void_p(self._log.environment)
        common_arguments = (
            c.c_char_p(name),
            c.c_char_p(token),
            resources,
            c.c_bool(self._visible),
            c.c_bool(logging is not False),
        )
        if self.interface == "CoSimulation":
            required_arguments = (make_value_reference_array(required_variables), c.c_size_t(len(required_variables)))
            final_arguments: tuple[Any, ...] = (
                c.c_bool(self.event_mode),
                c.c_bool(allow_early_return),
                *required_arguments,
                environment,
                logger,
                update_callback,
            )
        else:
            final_arguments = (environment, logger)
        self._handle = c.c_void_p(instantiate(*common_arguments, *final_arguments))

    # --- calls

    def call(self, name: str, *arguments: Any) -> int:
        """Call a function and return its status."""
        library = self.library
        function, full_name = library.status_function(name)
        trial_budget = library.trial_budget
        if monotonic() >= trial_budget.next_clock_read:  # seldom: there are thousands of calls
            trial_budget.check()
        trial_budget.begin_call(full_name)
        try:
            if library.traps:
                return self._call_with_traps(function, arguments)
            status: int = function(self._handle, *arguments)
            return status
        finally:
            trial_budget.end_call()

    def _call_with_traps(self, function: Any, arguments: tuple[Any, ...]) -> int:
        """Call with floating-point traps on; Python's own arithmetic has them off."""
        math_library, traps = c.CDLL("libm.so.6"), self.library.traps  # traps are used only where this library exists
        math_library.feclearexcept(traps)
        math_library.feenableexcept(traps)
        status = int(function(self._handle, *arguments))
        enabled_traps = math_library.fedisableexcept(traps)
        self.traps_lost = self.traps_lost or (enabled_traps & traps) != traps
        return status

    def _read_block(self, name: str, status: int, *blocks: GuardedArray) -> list[Any]:
        """Return the content of the last array of a call; record faults of the write access."""
        values: list[Any] = []
        for block in blocks:
            values, violation = block.read(succeeded=status in SUCCEEDED)
            if violation:
                self.library.violations[f"fmi{self.version}{name} {violation}"] = "life.writes"
        return values

    def _read_flags(
        self, name: str, flags: BooleanOutputArguments, required_names: Sequence[str] | None = None
    ) -> list[bool]:
        """Return Booleans written by a call that returned OK; record unwritten ones."""
        unwritten_flags = [
            flag_name for flag_name in flags.unwritten_names() if required_names is None or flag_name in required_names
        ]
        if unwritten_flags:
            self.library.violations[
                f"fmi{self.version}{name} returns OK, but does not write {', '.join(unwritten_flags)}"
            ] = "life.writes"
        return flags.values()

    def messages_since(self, count: int) -> str:
        """Return messages after the first ``count`` ones."""
        return self._log.messages_since(count)

    def must_call(self, name: str, *arguments: Any) -> None:
        """Call a function of an ordinary sequence.

        Raises:
            RefusedCallError: If the status is neither OK nor Warning.
        """
        message_count = len(self.messages)
        status = self.call(name, *arguments)
        if status not in SUCCEEDED:
            raise RefusedCallError(f"fmi{self.version}{name}", status, self.messages_since(message_count), self.mode)

    def free(self) -> None:
        """Free the instance."""
        if self.alive:
            function = self.library.function("FreeInstance")
            function.restype = None
            with self.library.trial_budget.observe_call(f"fmi{self.version}FreeInstance"):
                function(self._handle)
            self._handle = c.c_void_p()

    def reset(self) -> None:
        """Reset to the state after instantiation."""
        self.must_call("Reset")
        self.mode = "Instantiated"

    def terminate(self) -> None:
        """End the run."""
        self.must_call("Terminate")
        self.mode = "Terminated"

    def enter_initialization(self, start: float, stop: float | None, tolerance: float | None) -> None:
        """Enter Initialization Mode."""
        flag_type = c.c_int if self.version == 2 else c.c_bool
        arguments = (
            flag_type(tolerance is not None),
            c.c_double(tolerance or 0.0),
            c.c_double(start),
            flag_type(stop is not None),
            c.c_double(stop or 0.0),
        )
        if self.version == 2:
            self.must_call("SetupExperiment", *arguments)
            self.must_call("EnterInitializationMode")
        else:
            self.must_call("EnterInitializationMode", *arguments)
        self.mode, self.time = "Initialization Mode", start

    def exit_initialization(self) -> None:
        """Leave Initialization Mode."""
        self.must_call("ExitInitializationMode")
        if self.interface == "ModelExchange" or self.event_mode:
            self.mode = "Event Mode"
        else:
            self.mode = "Step Mode"

    def update_discrete_states(self) -> UpdateDiscreteStatesResult:
        """Update discrete states once."""
        names = (
            ("newDiscreteStatesNeeded" if self.version == 2 else "discreteStatesNeedUpdate"),
            "terminateSimulation", "nominalsOfContinuousStatesChanged", "valuesOfContinuousStatesChanged",
            "nextEventTimeDefined",
        )  # fmt: skip
        flags, time = BooleanOutputArguments(self.version, *names), c.c_double()
        if self.version == 2:
            info = Fmi2EventInfo()
            c.memset(c.byref(info), FILL_BYTE, c.sizeof(info))
            self.must_call("NewDiscreteStates", c.byref(info))
            flags.set_values((info.needed, info.terminate, info.nominals, info.values, info.defined))
            time.value = info.next
            function = "NewDiscreteStates"
        else:
            function = "UpdateDiscreteStates"
            self.must_call(function, *flags.pointers, c.byref(time))
        is_model_exchange = self.interface == "ModelExchange"  # two of them are for Model Exchange only
        required_names = [name for name in names if is_model_exchange or "ContinuousStates" not in name]
        update_needed, terminate_requested, nominals_changed, values_changed, next_time_defined = self._read_flags(
            function, flags, required_names
        )
        return UpdateDiscreteStatesResult(
            update_needed,
            terminate_requested,
            nominals_changed,
            values_changed,
            time.value if next_time_defined else None,
        )

    def enter_event_mode(self) -> None:
        """Enter Event Mode."""
        self.must_call("EnterEventMode")
        self.mode = "Event Mode"

    def leave_event_mode(self) -> None:
        """Leave Event Mode for Continuous-Time Mode or Step Mode."""
        is_model_exchange = self.interface == "ModelExchange"
        self.must_call("EnterContinuousTimeMode" if is_model_exchange else "EnterStepMode")
        self.mode = "Continuous-Time Mode" if is_model_exchange else "Step Mode"

    # --- Model Exchange

    def get_vector(self, name: str, size: int) -> list[float]:
        """Call a function that fills a vector of ``size`` numbers."""
        block = GuardedArray(c.c_double, size)
        self.must_call(name, block.array, c.c_size_t(size))
        return self._read_block(name, OK, block)

    def get_states(self, size: int) -> list[float]:
        """Return the continuous states."""
        return self.get_vector("GetContinuousStates", size)

    def get_derivatives(self, size: int) -> list[float]:
        """Return the derivatives of the states."""
        return self.get_vector(self.derivatives_function, size)

    @property
    def derivatives_function(self) -> str:
        """Name of the function that returns x'."""
        return "GetDerivatives" if self.version == 2 else "GetContinuousStateDerivatives"

    def set_states(self, values: Sequence[float]) -> None:
        """Set the continuous states."""
        self.must_call("SetContinuousStates", make_argument_array(c.c_double, values), c.c_size_t(len(values)))

    def set_time(self, time: float) -> None:
        """Set the independent variable, s."""
        self.must_call("SetTime", c.c_double(time))
        self.time = time

    def complete_step(self) -> tuple[bool, bool]:
        """Complete an accepted step; return whether the FMU wants Event Mode, and whether it wants to end."""
        flag_type = c.c_int if self.version == 2 else c.c_bool
        flags = BooleanOutputArguments(self.version, "enterEventMode", "terminateSimulation")
        self.must_call("CompletedIntegratorStep", flag_type(1), *flags.pointers)
        enters_event_mode, wants_to_terminate = self._read_flags("CompletedIntegratorStep", flags)
        return enters_event_mode, wants_to_terminate

    def get_count(self, name: str) -> int:
        """Return the number of states or event indicators (FMI 3)."""
        number = c.c_size_t()
        self.must_call(name, c.byref(number))
        return int(number.value)

    # --- Co-Simulation

    def do_step(self, begin_time: float, step_size: float) -> DoStepResult:
        """Do one communication step; never raise."""
        self.time = begin_time
        if self.version == 2:
            status = self.call(
                "DoStep", c.c_double(begin_time), c.c_double(step_size), c.c_int(self.no_set_state_before)
            )
            return DoStepResult(status, terminate=status == DISCARD and self._wants_to_terminate())
        flags = BooleanOutputArguments(self.version, "eventHandlingNeeded", "terminateSimulation", "earlyReturn")
        last_time = c.c_double(float("nan"))
        arguments = c.c_double(begin_time), c.c_double(step_size), c.c_bool(self.no_set_state_before)
        status = self.call("DoStep", *arguments, *flags.pointers, c.byref(last_time))
        if status in SUCCEEDED:
            event_needed, terminate, returned_early = self._read_flags("DoStep", flags)
            return DoStepResult(status, event_needed, terminate, returned_early, last_time.value)
        return DoStepResult(status)

    def _wants_to_terminate(self) -> bool:
        """Return whether an FMI 2 step was discarded because the FMU wants to end."""
        status, terminated = self.get_step_report("Boolean", TERMINATED_STATUS_KIND)
        return status in SUCCEEDED and bool(terminated)

    def get_step_report(self, type_name: str, kind: int) -> tuple[int, float]:
        """Return status and value of what an FMU of FMI 2 reports of its last step; never raise.

        Args:
            type_name: "Real", "Boolean" or, for a status, "".
            kind: One of fmi2StatusKind.
        """
        value: c.c_double | c.c_int = c.c_double(float("nan"))
        if type_name != "Real":
            value = c.c_int(0 if type_name == "Boolean" else -1)
        return self.call(f"Get{type_name}Status", c.c_int(kind), c.byref(value)), value.value

    def must_step(self, begin_time: float, step_size: float) -> DoStepResult:
        """Do one communication step of an ordinary run.

        Raises:
            RefusedCallError: If it is refused, or if the FMU wants to end.
        """
        message_count = len(self.messages)
        result = self.do_step(begin_time, step_size)
        if result.status not in SUCCEEDED and not result.terminate:
            name = f"fmi{self.version}DoStep({begin_time:.6g}, {step_size:.6g})"
            raise RefusedCallError(name, result.status, self.messages_since(message_count), self.mode)
        return result

    def get_output_derivatives(self, variables: Sequence[DescribedVariable], order: int) -> tuple[int, list[float]]:
        """Return derivatives of outputs by time."""
        block = GuardedArray(c.c_double, len(variables))
        orders = make_argument_array(c.c_int, [order] * len(variables))
        name = "GetRealOutputDerivatives" if self.version == 2 else "GetOutputDerivatives"
        sizes = () if self.version == 2 else (c.c_size_t(len(variables)),)
        status = self.call(
            name, make_value_reference_array(variables), c.c_size_t(len(variables)), orders, block.array, *sizes
        )
        return status, self._read_block(name, status, block)

    def set_input_derivatives(self, variables: Sequence[DescribedVariable], derivatives: Sequence[float]) -> int:
        """Set derivatives of inputs by time (FMI 2)."""
        orders, count = make_argument_array(c.c_int, [1] * len(variables)), c.c_size_t(len(variables))
        return self.call(
            "SetRealInputDerivatives", make_value_reference_array(variables), count, orders,
            make_argument_array(c.c_double, derivatives)
        )  # fmt: skip

    # --- variables

    def get(self, variables: Sequence[DescribedVariable]) -> list[Value]:
        """Return values, in the requested order; arrays as tuples."""
        plan, values = self._read_plan(variables), []
        for group in plan.groups:
            values += group.split_values(self._get_group(group))
        return plan.arrange(values)

    def _read_plan(self, variables: Sequence[DescribedVariable]) -> GroupedReadPlan:
        """Return a plan to read variables; instances share those of the same variables and sizes of arrays."""
        plans, key = self.library.read_plans, (id(self.description), *map(id, variables))
        if key not in plans:
            if len(plans) >= MAX_READ_PLANS:
                plans.clear()
            plans[key] = GroupedReadPlan(self.description, variables)
        return plans[key]

    def get_in_order(self, variables: Sequence[DescribedVariable]) -> list[Value]:
        """Return values of variables of one type by one call, in this order."""
        group = SameTypeVariableGroup.of(self.description, variables)
        return group.split_values(self._get_group(group))

    def _get_group(self, group: SameTypeVariableGroup) -> list[Any]:
        """Return the elements of variables of one type; the FMU must not write beyond the arrays."""
        references, count, total = group.references, c.c_size_t(len(group.variables)), group.total
        type_name, first_name = group.variables[0].type, group.variables[0].name
        if type_name == "Binary":
            sizes, pointers = GuardedArray(c.c_size_t, total), GuardedArray(c.c_void_p, total)
            self.must_call("GetBinary", references, count, sizes.array, pointers.array, c.c_size_t(total))
            contents = zip(self._read_block("GetBinary", OK, sizes, pointers), sizes.array, strict=False)
            return [c.string_at(pointer, size) if pointer else b"" for pointer, size in contents]
        type_suffix, ctype = self.types[type_name]
        block = GuardedArray(ctype, total)
        size_arguments = () if self.version == 2 else (c.c_size_t(total),)
        self.must_call(f"Get{type_suffix}", references, count, block.array, *size_arguments)
        values = self._read_block(f"Get{type_suffix}", OK, block)
        return [self._log.check_text(text, first_name) for text in values] if type_name == "String" else values

    def try_set(self, variable: DescribedVariable, value: Value, *, overwrite_buffers: bool = False) -> int:
        """Set one variable; return the status.

        Args:
            variable: That is set.
            value: Of it; a tuple for an array.
            overwrite_buffers: Strings and binaries: uses their memory for something else afterwards.
        """
        if variable.dimensions or variable.type not in self.types or variable.type == "String":
            return self.try_set_all({variable: value}, overwrite_buffers=overwrite_buffers)
        name, ctype = self.types[variable.type]  # most of what is set: one number
        references, count = self._read_plan((variable,)).groups[0].references, c.c_size_t(1)
        return self.call(f"Set{name}", references, count, (ctype * 1)(value), *((count,) if self.version != 2 else ()))

    def try_set_all(
        self, values_by_variable: Mapping[DescribedVariable, Value], *, overwrite_buffers: bool = False
    ) -> int:
        """Set variables of one type by one call; return the status."""
        type_name = next(iter(values_by_variable)).type
        values = [
            element
            for value in values_by_variable.values()
            for element in (value if isinstance(value, tuple) else (value,))
        ]
        references, count = make_value_reference_array(list(values_by_variable)), c.c_size_t(len(values_by_variable))
        if type_name in {"Binary", "String"}:
            buffers = [c.create_string_buffer(element) for element in values]
            pointers = make_argument_array(c.c_void_p, [c.addressof(element) for element in buffers])
            sizes = (make_argument_array(c.c_size_t, [*map(len, values)]),) if type_name == "Binary" else ()
            total = () if self.version == 2 else (c.c_size_t(len(values)),)
            status = self.call(f"Set{type_name}", references, count, *sizes, pointers, *total)
            for buffer in buffers if overwrite_buffers else ():
                c.memset(buffer, ord("#"), max(len(buffer) - 1, 0))
            return status
        name, ctype = self.types[type_name]
        sizes = () if self.version == 2 else (c.c_size_t(len(values)),)
        return self.call(f"Set{name}", references, count, make_argument_array(ctype, values), *sizes)

    def set(self, values: Mapping[DescribedVariable, Value]) -> None:
        """Set variables of an ordinary sequence.

        Raises:
            RefusedCallError: If one is refused.
        """
        for variable, value in values.items():
            message_count = len(self.messages)
            status = self.try_set(variable, value)
            if status not in SUCCEEDED:
                raise RefusedCallError(
                    f'setting "{variable.name}" to {value!r}', status, self.messages_since(message_count), self.mode
                )

    # --- derivatives by variables

    def get_partial_derivatives(
        self,
        unknowns: Sequence[DescribedVariable],
        knowns: Sequence[DescribedVariable],
        seed: Sequence[float],
        *,
        adjoint: bool = False,
    ) -> tuple[int, list[float]]:
        """Return directional (J v) or adjoint (vᵀ J) derivatives; scalars only."""
        size = len(knowns if adjoint else unknowns)
        block = GuardedArray(c.c_double, size)
        reference_arguments = (
            make_value_reference_array(unknowns),
            c.c_size_t(len(unknowns)),
            make_value_reference_array(knowns),
            c.c_size_t(len(knowns)),
        )
        if self.version == 2:
            name = "GetDirectionalDerivative"
            status = self.call(name, *reference_arguments, make_argument_array(c.c_double, seed), block.array)
        else:
            name = "GetAdjointDerivative" if adjoint else "GetDirectionalDerivative"
            seed_arguments = make_argument_array(c.c_double, seed), c.c_size_t(len(seed))
            status = self.call(name, *reference_arguments, *seed_arguments, block.array, c.c_size_t(size))
        return status, self._read_block(name, status, block)

    # --- states

    def _state_function_name(self, action: str) -> str:
        """Return the name of a state function in this version."""
        if self.version == 2:
            return {"Deserialize": "DeSerializeFMUstate", "Size": "SerializedFMUstateSize"}.get(
                action, f"{action}FMUstate"
            )
        return {"Size": "SerializedFMUStateSize"}.get(action, f"{action}FMUState")

    def get_state(self, state: c.c_void_p | None = None) -> c.c_void_p:
        """Return a copy of the complete state, written into an earlier copy if that is given."""
        state = c.c_void_p() if state is None else state
        self.must_call(self._state_function_name("Get"), c.byref(state))
        return state

    def set_state(self, state: c.c_void_p) -> None:
        """Restore a copy of the state."""
        self.must_call(self._state_function_name("Set"), state)

    def free_state(self, state: c.c_void_p) -> None:
        """Free a copy of the state."""
        self.must_call(self._state_function_name("Free"), c.byref(state))

    def serialize_state(self, state: c.c_void_p) -> bytes:
        """Return a copy as bytes."""
        size = c.c_size_t()
        self.must_call(self._state_function_name("Size"), state, c.byref(size))
        if size.value > MAX_SERIALIZED_BYTES:
            raise MeaninglessFmuValueError(
                f"{self._state_function_name('Size')} reports that a state has {size.value} bytes"
            )
        block = GuardedArray(c.c_ubyte, size.value)
        self.must_call(self._state_function_name("Serialize"), state, block.array, size)
        return bytes(self._read_block(self._state_function_name("Serialize"), OK, block))

    def deserialize_state(self, data: bytes) -> c.c_void_p:
        """Return a copy from bytes."""
        state = c.c_void_p()
        buffer = (c.c_ubyte * max(len(data), 1)).from_buffer_copy(data or b"\0")
        self.must_call(self._state_function_name("Deserialize"), buffer, c.c_size_t(len(data)), c.byref(state))
        return state
