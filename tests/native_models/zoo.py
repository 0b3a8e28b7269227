"""The solvers of native FMUs around hand-written models (zoo.c), called through ctypes."""

from __future__ import annotations

import ctypes
import enum
import math
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kept_compilations import compile_files

import mb2fmu.fmu.emit_c
from mb2fmu.fmu.integration_method_table import SOLVERS

HERE = Path(__file__).parent
RUNTIME = Path(mb2fmu.fmu.emit_c.__file__).parent / "runtime"
STRICT = [
    "-std=c99",
    *(f"-W{word}" for word in ("all", "extra", "pedantic", "conversion", "shadow", "strict-prototypes")),
    *("-Wmissing-prototypes", "-Werror", "-ffp-contract=off"),
]
COMPILERS = {"gcc": ["gcc"], "zig": [sys.executable, "-m", "ziglang", "cc", "-nostdlib", "-lc"]}
N = 4
MESSAGE_SIZE = 400


Solver = enum.IntEnum("Solver", {row.name.upper(): row.number for row in SOLVERS})
ADAPTIVE = tuple(Solver(row.number) for row in SOLVERS if not row.fixed)


class Outcome(enum.IntEnum):
    OK = 0
    TOO_SMALL = 1
    NOT_FINITE = 2
    SINGULAR = 3
    TOO_MANY = 4


class Answer(enum.IntFlag):
    GO_ON = 0
    INPUTS_CHANGED = 1
    STOP = 2


class Kind(enum.IntEnum):
    OSCILLATOR = 0
    PENDULUM = 1
    KEPLER = 2
    FORCED = 3
    DRIVEN = 4
    PROTHERO = 5
    VAN_DER_POL = 6
    UNDEFINED = 7
    SINGULAR = 8
    EXPLODING = 9
    KINEMATIC = 10
    SWITCHED = 11
    STIFF_DRIVEN = 12
    BAD_JACOBIAN = 13
    RESTING = 14


class StepError(Exception):
    """A communication step that was refused."""

    def __init__(self, outcome: int, message: str) -> None:
        super().__init__(message)
        self.outcome = Outcome(outcome)


Reals = ctypes.POINTER(ctypes.c_double)
Hook = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_double, Reals, Reals)


class Problem(ctypes.Structure):
    """The record mb2fmu_problem."""

    _fields_ = (
        ("p", Reals),
        ("w", Reals),
        ("r0", Reals),
        ("r1", Reals),
        ("t0", ctypes.c_double),
        ("accepted", Hook),
        ("host", ctypes.c_void_p),
        ("reached", ctypes.c_double),
        ("failed", ctypes.c_int),
        ("calls", ctypes.c_ulong),
        ("steps", ctypes.c_ulong),
        ("rejected", ctypes.c_ulong),
    )


def reals(values: Sequence[float]) -> ctypes.Array[ctypes.c_double]:
    return (ctypes.c_double * len(values))(*values)


def compiled(compiler: str, target: Path, source: str, *options: str) -> Path:
    """Compiles one of this folder's files, warnings as errors."""
    command = [*COMPILERS[compiler], *STRICT, "-O2", *options, f"-I{RUNTIME}", str(HERE / source), "-o", str(target)]
    assert not compile_files(target.parent, [*command, "-lm"])
    return target


def built(compiler: str, folder: Path, *options: str) -> Path:
    """The zoo as a library."""
    return compiled(compiler, folder / f"{compiler}.so", "zoo.c", "-fPIC", "-shared", "-fvisibility=hidden", *options)


def available(compiler: str) -> bool:
    return compiler == "zig" or shutil.which(compiler) is not None


class Library:
    """One compiled zoo."""

    def __init__(self, path: Path) -> None:
        self.c = ctypes.CDLL(str(path))
        self.c.zoo_size.restype = ctypes.c_ulong
        self.c.zoo_method.restype = ctypes.c_char_p
        self.c.zoo_memory_size.restype = ctypes.c_ulong

    def method(self, number: int) -> tuple[str, int, int] | None:
        """Name, order and order between the ends of a step, of the row in solver_methods.c."""
        orders = (ctypes.c_int * 2)()
        name = self.c.zoo_method(number, orders)
        return None if name is None else (name.decode(), *orders)

    def clock(self, start: float, h: float, n: int) -> tuple[float, float, int]:
        result = reals([0.0] * 3)
        self.c.zoo_clock(ctypes.c_double(start), ctypes.c_double(h), ctypes.c_long(n), result)
        return result[0], result[1], int(result[2])

    def _judged(self, name: str, start: float, h: float, n: int, point: float) -> bool:
        arguments = (ctypes.c_double(start), ctypes.c_double(h), ctypes.c_long(n), ctypes.c_double(point))
        return bool(getattr(self.c, name)(*arguments))

    def agrees(self, start: float, h: float, n: int, point: float) -> bool:
        return self._judged("zoo_clock_agrees", start, h, n, point)

    def passes(self, start: float, h: float, n: int, stop: float) -> bool:
        return self._judged("zoo_clock_passes", start, h, n, stop)


@dataclass
class Unit:
    """An integrator with its problem.

    Attributes:
        library: Compiled zoo.
        solver: Which method.
        kind: Which problem, with parameters ``a`` and ``b``.
        tolerance: Relative.
        fixed_step: s; 0: one internal step per communication step.
    """

    library: Library
    solver: int
    kind: Kind
    a: float = 0.0
    b: float = 0.0
    tolerance: float = 1e-6
    fixed_step: float = 0.0
    r0: float = 0.0
    r1: float | None = None
    t0: float = 0.0
    hook: Callable[[float, list[float], Reals], int] | None = None
    problem: Problem = field(init=False)

    def __post_init__(self) -> None:
        self.memory = ctypes.create_string_buffer(self.library.c.zoo_size())
        self.message = ctypes.create_string_buffer(MESSAGE_SIZE)
        self.p = reals([float(self.kind), self.a, self.b])
        self.problem = Problem(p=self.p, w=self.p, t0=self.t0)
        self.set_input(self.r0, self.r1)
        if self.hook is not None:
            hook = self.hook
            self.problem.accepted = Hook(lambda _host, t, x, until: int(hook(t, x[:N], until)))
        self.reset()

    def reset(self) -> None:
        self.library.c.zoo_reset(
            self.memory, self.solver, ctypes.c_double(self.tolerance), ctypes.c_double(self.fixed_step)
        )

    def set_input(self, r0: float, r1: float | None = None) -> None:
        self.inputs = reals([r0]), reals([r1 or 0.0])
        self.problem.r0 = self.inputs[0]
        self.problem.r1 = self.inputs[1] if r1 is not None else Reals()

    def invalidate(self) -> None:
        self.library.c.zoo_invalidate(self.memory)

    def lasting(self) -> bytes:
        """The part that belongs to the FMU state."""
        return self.memory.raw[: self.library.c.zoo_memory_size()]

    def _judge(self, outcome: int, x: ctypes.Array[ctypes.c_double]) -> list[float]:
        text = self.message.value.decode()
        if outcome:
            raise StepError(outcome, text)
        assert not text
        return list(x)

    def raw_step(self, t: float, h: float, x: ctypes.Array[ctypes.c_double], size: int = MESSAGE_SIZE) -> int:
        return int(
            self.library.c.zoo_integrate(
                self.memory,
                ctypes.byref(self.problem),
                ctypes.c_double(t),
                ctypes.c_double(h),
                x,
                self.message,
                ctypes.c_size_t(size),
            )
        )

    def step(self, t: float, h: float, x: Sequence[float]) -> list[float]:
        state = reals(x)
        return self._judge(self.raw_step(t, h, state), state)

    def refused(self, t: float, h: float, x: Sequence[float]) -> StepError:
        """A step that must fail, and must leave everything as it was."""
        state, before = reals(x), self.lasting()
        bits = bytes(state)
        outcome = self.raw_step(t, h, state)
        assert outcome != Outcome.OK
        assert bytes(state) == bits
        assert self.lasting() == before
        assert self.problem.reached == t or math.isnan(t)
        return StepError(outcome, self.message.value.decode())

    def march(self, t: float, h: float, n: int, x: Sequence[float]) -> list[float]:
        """n communication steps of h."""
        state = reals(x)
        outcome = self.library.c.zoo_march(
            self.memory,
            ctypes.byref(self.problem),
            ctypes.c_double(t),
            ctypes.c_double(h),
            ctypes.c_long(n),
            state,
            self.message,
            ctypes.c_size_t(MESSAGE_SIZE),
        )
        return self._judge(outcome, state)

    def dense(self, t: float) -> list[float] | None:
        x = reals([math.nan] * N)
        return None if self.library.c.zoo_dense(self.memory, ctypes.c_double(t), x) else list(x)

    def save(self) -> tuple[list[float], list[int]]:
        numbers, integers = reals([math.nan] * (5 + N)), (ctypes.c_int64 * 2)()
        self.library.c.zoo_save(self.memory, numbers, integers)
        return list(numbers), list(integers)

    def load(self, numbers: Sequence[float], integers: Sequence[int]) -> int:
        return int(self.library.c.zoo_load(self.memory, reals(numbers), (ctypes.c_int64 * 2)(*integers)))

    def output_slope(self, t: float, x: Sequence[float]) -> list[float]:
        out = reals([math.nan] * 6)
        outcome = self.library.c.zoo_output_slope(
            self.memory, ctypes.byref(self.problem), ctypes.c_double(t), reals(x), out
        )
        assert outcome == Outcome.OK
        return list(out)
