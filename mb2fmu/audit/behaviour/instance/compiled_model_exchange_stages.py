"""Runge-Kutta stages of Model Exchange FMUs without Python between the calls: ``compiled_stages/runge_kutta_stages.c``.

The library is compiled once, kept in the user's cache, and loaded by the process that runs the FMU. Without it, and
where each call needs something of Python (an FMU in another process, floating-point traps), calls are made one by one.
"""

from __future__ import annotations

import ctypes as c
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mb2fmu.audit.behaviour.instance.fmi_c_interface import GUARD_ELEMENTS, RefusedCallError

if TYPE_CHECKING:
    from mb2fmu.audit.behaviour.instance.fmu_instance import FmuInstance

_NAME_BYTES = 96


class _FmuFunctionsStruct(c.Structure):
    """``fmu`` of the source."""

    _fields_ = (
        ("instance", c.c_void_p),
        ("set_time", c.c_void_p),
        ("set_states", c.c_void_p),
        ("get_derivatives", c.c_void_p),
        ("calls", c.c_void_p),
        ("name", c.c_void_p),
        ("names", c.c_char_p),
        ("n_states", c.c_size_t),
        ("given", c.c_void_p),
    )


class CompiledRungeKuttaStages:
    """Stages of steps of one instance.

    Args:
        stage_library: The compiled library.
        instance: In Continuous-Time Mode, in this process.
        n_states: Number of its continuous states, at least 1.
        rows: Of the method: factors of the stages before, for each stage behind the first.
        nodes: Of the method: times of these stages, in step sizes.
        error_weights: Of the method: factors of all stages in the error of a step.
    """

    def __init__(
        self, stage_library: c.CDLL, instance: FmuInstance, n_states: int, rows: Sequence[Sequence[float]],
        nodes: Sequence[float], error_weights: Sequence[float],
    ) -> None:  # fmt: skip
        library, derivatives = instance.library, instance.derivatives_function
        known = [library.status_function(name) for name in ("SetTime", "SetContinuousStates", derivatives)]
        self._functions = [name for _, name in known]
        self._instance, self._n_states = instance, n_states
        self._observer = library.trial_budget
        calls, name = self._observer.observer.note_addresses()
        given = (c.c_double * (n_states + GUARD_ELEMENTS))()
        self._fmu = _FmuFunctionsStruct(
            instance.address, *(c.cast(function, c.c_void_p) for function, _ in known), calls, name,
            b"".join(name.encode().ljust(_NAME_BYTES, b"\0") for name in self._functions), n_states, c.addressof(given),
        )  # fmt: skip
        count = len(rows)
        padded = [factor for row in rows for factor in (*row, *[0.0] * (count - len(row)))]
        self._stages, self._state = (c.c_double * ((count + 1) * n_states))(), (c.c_double * n_states)()
        self._before, self._status = (c.c_double * n_states)(), c.c_int()
        self._method = c.c_size_t(count), (c.c_double * len(padded))(*padded), (c.c_double * count)(*nodes)
        self._error_weights = (c.c_double * (count + 1))(*error_weights)
        self._nominals = (c.c_double * n_states)()
        self._kept_alive = given
        self._integrate, self._measure_error = stage_library.integrate_stages, stage_library.measure_step_error
        self._measure_error.restype = c.c_double

    def integrate(
        self, time: float, size: float, states: Sequence[float], first_stage: Sequence[float]
    ) -> tuple[list[float], list[float]] | None:
        """Return x' and states of the last stage; None where calls one by one must say what is wrong.

        Args:
            time: At the beginning of the step, s.
            size: Of the step, s.
            states: At its beginning.
            first_stage: x' there.

        Raises:
            RefusedCallError: If the FMU refuses a call.
        """
        size_of, instance = self._n_states, self._instance
        self._before[:size_of], self._stages[:size_of] = list(states), list(first_stage)
        message_count = len(instance.messages)
        self._observer.check()
        self._observer.begin_call(self._functions[0])
        refused = self._integrate(
            c.byref(self._fmu), *self._method, c.c_double(time), c.c_double(size), self._before, self._stages,
            self._state, c.byref(self._status),
        )  # fmt: skip
        self._observer.end_call()
        self._observer.calls += self._method[0].value * len(self._functions) - 1
        instance.time = time + size
        if refused > 0:
            messages = instance.messages_since(message_count)
            raise RefusedCallError(self._functions[refused - 1], self._status.value, messages, instance.mode)
        if refused:
            return None
        return self._stages[-size_of:], self._state[:]

    def measure_error(self, size: float, tolerance: float, nominals: Sequence[float]) -> float:
        """Return the largest error of the step that was integrated last, relative to its limit.

        Args:
            size: Of the step, s.
            tolerance: Relative tolerance.
            nominals: Magnitudes of the states, > 0.
        """
        self._nominals[: self._n_states] = list(nominals)
        return float(
            self._measure_error(
                c.c_size_t(self._n_states), self._method[0], self._error_weights, c.c_double(size),
                c.c_double(tolerance), self._nominals, self._before, self._state, self._stages,
            )
        )  # fmt: skip
