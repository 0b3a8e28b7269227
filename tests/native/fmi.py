"""The FMI functions of a shared library through ctypes, for both versions: statuses are handed back, never raised."""

from __future__ import annotations

import ctypes as c
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from native.building import TOKEN

OK, WARNING, DISCARD, ERROR, FATAL = range(5)
ME, CS = range(2)
NAMES = [
    "time",
    "x",
    "v",
    "der(x)",
    "der(v)",
    "force",
    "mass",
    "stiffness",
    "damping",
    "wall",
    "omega",
    "tip",
    "loss",
    "load",
    "twice",
    "speedup",
    "solver",
    "solver_step",
]
REALS = [name for name in NAMES if name != "solver"]
REFERENCE = {name: number for number, name in enumerate(NAMES)}

_LOGGER2 = c.CFUNCTYPE(None, c.c_void_p, c.c_char_p, c.c_int, c.c_char_p, c.c_char_p)
_LOGGER3 = c.CFUNCTYPE(None, c.c_void_p, c.c_int, c.c_char_p, c.c_char_p)
UPDATE = c.CFUNCTYPE(
    None, c.c_void_p, c.c_double, c.c_bool, c.c_bool, c.c_bool, c.c_bool, c.POINTER(c.c_bool), c.POINTER(c.c_double)
)


class _Callbacks(c.Structure):
    _fields_ = (
        ("logger", _LOGGER2),
        ("allocate", c.c_void_p),
        ("free", c.c_void_p),
        ("finished", c.c_void_p),
        ("environment", c.c_void_p),
    )


class EventInfo(c.Structure):
    """fmi2EventInfo."""

    _fields_ = (
        ("needed", c.c_int),
        ("terminate", c.c_int),
        ("nominals", c.c_int),
        ("values", c.c_int),
        ("defined", c.c_int),
        ("next", c.c_double),
    )


@dataclass
class Message:
    """Messages that a logger received."""

    status: int
    category: str
    text: str


def doubles(values: Iterable[float]) -> c.Array[c.c_double]:
    listed = list(values)
    return (c.c_double * max(len(listed), 1))(*listed)


def references(names: Sequence[str | int]) -> c.Array[c.c_uint]:
    numbers = [REFERENCE[name] if isinstance(name, str) else name for name in names]
    return (c.c_uint * max(len(numbers), 1))(*numbers)


@dataclass
class Unit:
    """One instance of a library.

    Attributes:
        library: Loaded shared library.
        fmi: 2 or 3.
        kind: ME or CS.
        handle: The importer's pointer.
        log: All messages.
    """

    library: c.CDLL
    fmi: int
    kind: int
    handle: c.c_void_p = field(default_factory=c.c_void_p)
    log: list[Message] = field(default_factory=list)
    keep: list[object] = field(default_factory=list)

    def call(self, name: str, *arguments: object) -> int:
        """Calls ``fmiN`` + name with the handle."""
        return int(getattr(self.library, f"fmi{self.fmi}{name}")(self.handle, *arguments))

    # --- life

    def instantiate(
        self,
        name: bytes | None = b"one",
        token: bytes | None = TOKEN.encode(),
        *,
        logging: bool = True,
        event_mode: bool = False,
        early_return: bool = False,
        required: Sequence[str | int] = (),
        update: Callable[..., None] | None = None,
    ) -> Unit:
        if self.fmi == 2:
            make = self.library.fmi2Instantiate
            logger: object = _LOGGER2(
                lambda _e, _n, status, category, text: self.log.append(
                    Message(status, category.decode(), text.decode())
                )
            )
            callbacks = _Callbacks(logger, None, None, None, None)
            arguments: tuple[object, ...] = (name, self.kind, token, None, c.byref(callbacks), 0, int(logging))
            self.keep = [logger, callbacks]
        else:
            logger = _LOGGER3(
                lambda _e, status, category, text: self.log.append(Message(status, category.decode(), text.decode()))
            )
            self.keep = [logger]
            head = (name, token, None, c.c_bool(0), c.c_bool(logging))
            if self.kind == ME:
                make = self.library.fmi3InstantiateModelExchange
                arguments = (*head, None, logger)
            else:
                make = self.library.fmi3InstantiateCoSimulation
                hook = UPDATE(update) if update else UPDATE()
                self.keep.append(hook)
                flags = (c.c_bool(event_mode), c.c_bool(early_return))
                arguments = (*head, *flags, references(required), c.c_size_t(len(required)), None, logger, hook)
        make.restype = c.c_void_p
        self.handle = c.c_void_p(make(*arguments))
        return self

    def enter(self, start: float = 0.0, stop: float | None = None, tolerance: float | None = None) -> int:
        """Up to Initialization Mode."""
        if self.fmi == 2:
            status = self.call("SetupExperiment", *self._experiment(start, stop, tolerance))
            return status or self.call("EnterInitializationMode")
        return self.call("EnterInitializationMode", *self._experiment(start, stop, tolerance))

    def _experiment(self, start: float, stop: float | None, tolerance: float | None) -> tuple[object, ...]:
        flag = c.c_int if self.fmi == 2 else c.c_bool
        return (
            flag(tolerance is not None),
            c.c_double(tolerance or 0.0),
            c.c_double(start),
            flag(stop is not None),
            c.c_double(stop or 0.0),
        )

    def start(self, start: float = 0.0, stop: float | None = None, tolerance: float | None = None, **values: float):
        """Through Initialization Mode: ME into Continuous-Time Mode, CS ready for steps."""
        assert self.enter(start, stop, tolerance) == OK
        for name, value in values.items():
            assert self.set(name, value) == OK
        assert self.call("ExitInitializationMode") == OK
        if self.kind == ME:
            assert self.call("EnterContinuousTimeMode") == OK
        return self

    def free(self) -> None:
        getattr(self.library, f"fmi{self.fmi}FreeInstance")(self.handle)

    # --- variables

    def _real(self, action: str) -> str:
        return f"{action}{'Real' if self.fmi == 2 else 'Float64'}"

    def get(self, *names: str | int) -> tuple[int, list[float]]:
        values = doubles([99.0] * len(names))
        sizes = (c.c_size_t(len(names)),) if self.fmi == 3 else ()
        status = self.call(self._real("Get"), references(names), c.c_size_t(len(names)), values, *sizes)
        return status, list(values)[: len(names)]

    def value(self, name: str | int) -> float:
        status, values = self.get(name)
        assert status == OK, self.log
        return values[0]

    def set(self, *pairs: str | float) -> int:
        names, values = pairs[::2], pairs[1::2]
        sizes = (c.c_size_t(len(names)),) if self.fmi == 3 else ()
        return self.call(self._real("Set"), references(names), c.c_size_t(len(names)), doubles(values), *sizes)

    def set_choice(self, name: str | int, value: int) -> int:
        if self.fmi == 2:
            return self.call("SetInteger", references([name]), c.c_size_t(1), (c.c_int * 1)(value))
        return self.call("SetInt64", references([name]), c.c_size_t(1), (c.c_int64 * 1)(value), c.c_size_t(1))

    def get_choice(self, name: str | int) -> tuple[int, int]:
        if self.fmi == 2:
            place: c.Array = (c.c_int * 1)(99)
            return self.call("GetInteger", references([name]), c.c_size_t(1), place), place[0]
        place = (c.c_int64 * 1)(99)
        return self.call("GetInt64", references([name]), c.c_size_t(1), place, c.c_size_t(1)), place[0]

    def vector(self, name: str, n: int = 2) -> tuple[int, list[float]]:
        values = doubles([99.0] * n)
        return self.call(name, values, c.c_size_t(n)), list(values)

    def derivatives(self) -> list[float]:
        status, values = self.vector("GetDerivatives" if self.fmi == 2 else "GetContinuousStateDerivatives")
        assert status == OK, self.log
        return values

    # --- stepping

    def step(self, point: float, size: float) -> int:
        if self.fmi == 2:
            return self.call("DoStep", c.c_double(point), c.c_double(size), 1)
        return self.step3(point, size)[0]

    def step3(self, point: float, size: float) -> tuple[int, bool, bool, bool, float]:
        """FMI 3: status, eventHandlingNeeded, terminateSimulation, earlyReturn, lastSuccessfulTime."""
        flags = [c.c_bool(1) for _ in range(3)]
        last = c.c_double(99.0)
        status = self.call(
            "DoStep", c.c_double(point), c.c_double(size), c.c_bool(1), *map(c.byref, flags), c.byref(last)
        )
        return status, flags[0].value, flags[1].value, flags[2].value, last.value

    def slopes(self, *names: str, order: int = 1) -> tuple[int, list[float]]:
        values = doubles([99.0] * len(names))
        orders = (c.c_int * len(names))(*[order] * len(names))
        sizes = (c.c_size_t(len(names)),) if self.fmi == 3 else ()
        function = "GetRealOutputDerivatives" if self.fmi == 2 else "GetOutputDerivatives"
        return self.call(function, references(names), c.c_size_t(len(names)), orders, values, *sizes), list(values)

    def set_slope(self, name: str | int, value: float, order: int = 1) -> int:
        return self.call(
            "SetRealInputDerivatives", references([name]), c.c_size_t(1), (c.c_int * 1)(order), doubles([value])
        )

    # --- derivatives and states

    def directional(
        self,
        unknowns: Sequence[str | int],
        knowns: Sequence[str | int],
        seed: Sequence[float],
        *,
        adjoint: bool = False,
    ) -> tuple[int, list[float]]:
        n = len(knowns if adjoint else unknowns)
        out = doubles([99.0] * n)
        pairs = (references(unknowns), c.c_size_t(len(unknowns)), references(knowns), c.c_size_t(len(knowns)))
        if self.fmi == 2:
            return self.call("GetDirectionalDerivative", *pairs, doubles(seed), out), list(out)[:n]
        name = "GetAdjointDerivative" if adjoint else "GetDirectionalDerivative"
        return self.call(name, *pairs, doubles(seed), c.c_size_t(len(seed)), out, c.c_size_t(n)), list(out)[:n]

    def _state(self, action: str) -> str:
        word = "state" if self.fmi == 2 else "State"
        de = "DeSerialize" if self.fmi == 2 else "Deserialize"
        return action.replace("Deserialize", de) + f"FMU{word}"

    def get_state(self) -> c.c_void_p:
        state = c.c_void_p()
        assert self.call(self._state("Get"), c.byref(state)) == OK, self.log
        return state

    def set_state(self, state: c.c_void_p | None) -> int:
        return self.call(self._state("Set"), state)

    def free_state(self, state: c.c_void_p) -> int:
        return self.call(self._state("Free"), c.byref(state))

    def serialize(self, state: c.c_void_p) -> bytes:
        size = c.c_size_t()
        word = "state" if self.fmi == 2 else "State"
        assert self.call(f"SerializedFMU{word}Size", state, c.byref(size)) == OK
        room = (c.c_ubyte * size.value)()
        assert self.call(self._state("Serialize"), state, room, size) == OK
        return bytes(room)

    def deserialize(self, data: bytes) -> tuple[int, c.c_void_p]:
        state = c.c_void_p()
        room = (c.c_ubyte * max(len(data), 1)).from_buffer_copy(data or b"\0")
        return self.call(self._state("Deserialize"), room, c.c_size_t(len(data)), c.byref(state)), state

    def saved(self) -> bytes:
        """The whole state as bytes."""
        state = self.get_state()
        data = self.serialize(state)
        assert self.free_state(state) == OK
        return data

    def restore(self, data: bytes) -> int:
        status, state = self.deserialize(data)
        if status == OK:
            status = self.set_state(state)
            assert self.free_state(state) == OK
        return status


def bits(values: Iterable[float]) -> bytes:
    listed = list(values)
    return struct.pack(f"{len(listed)}d", *listed)


def load(path: Path) -> c.CDLL:
    return c.CDLL(str(path))
