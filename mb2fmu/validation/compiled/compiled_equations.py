"""``CompiledEquations``: compiled equations: x', all quantities at an instant, and whole trajectories."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.integrate._ivp import dop853_coefficients as coefficients

from mb2fmu.fmu.toolchain import compile_library
from mb2fmu.mechanics.mechanism import Mechanism
from mb2fmu.validation.compiled import c_structures
from mb2fmu.validation.compiled.c_expressions import C_PRELUDE, LookupTableDefinitions
from mb2fmu.validation.compiled.c_structures import array_address
from mb2fmu.validation.compiled.evaluation_plan_code import EvaluationPlanCode
from mb2fmu.validation.compiled.mechanism_c_tables import MechanismCTables
from mb2fmu.validation.evaluation_plans.evaluation_plan import EvaluationPlan
from mb2fmu.validation.evaluation_plans.kinematic_quantities import KinematicQuantity

Floats = npt.NDArray[np.float64]

_POINTS_PER_CALL = 64  # communication points between two looks at whether the user wants to stop
_C_MODULES = ("articulated", "bodies", "dense", "dop853", "equations", "mass_matrix", "modes")
_RUNTIME_FILES = (*(f"{name}.{kind}" for name in _C_MODULES for kind in "ch"), "nodes.h")


@cache
def compile_equations_runtime() -> ctypes.CDLL:
    """Compile the part that all equations share.

    Raises:
        ToolError: If there is no compiler, or it fails.
    """
    folder = resources.files("mb2fmu.validation.compiled") / "sources"
    library = compile_library({name: (folder / name).read_bytes() for name in _RUNTIME_FILES}, "reference", often=True)
    pointer, double = ctypes.c_void_p, ctypes.c_double
    library.reference_motion.argtypes = [pointer, double, pointer, pointer, pointer, pointer]
    whole = ctypes.c_int64
    library.reference_slopes.argtypes = [pointer, whole, *[pointer] * 6]
    library.reference_residual.argtypes = [pointer, double, pointer, pointer, pointer, pointer, pointer]
    library.reference_project.argtypes = [pointer, double, pointer, pointer]
    library.reference_integrate.argtypes = [pointer, pointer, pointer]
    library.reference_integrate_in_modes.argtypes = [pointer, pointer, pointer]
    library.reference_margins.argtypes = [pointer, pointer, double, *[pointer] * 4]
    library.reference_hold.argtypes = [pointer, pointer, double, *[pointer] * 3]
    library.reference_begin.argtypes = [pointer]
    library.reference_end.argtypes = [pointer]
    library.reference_end.restype = None
    return library


@cache
def _form_dop853_tableau() -> Floats:
    """Return the coefficients of Dormand and Prince's method as ``struct tableau`` has them."""
    n = c_structures.DOP853_STAGES
    parts = [coefficients.A[:n, :n], coefficients.B, coefficients.C[:n], coefficients.E3, coefficients.E5]
    parts += [coefficients.A[n + 1 :], coefficients.C[n + 1 :], coefficients.D]  # of dense output
    return np.concatenate([np.ravel(part) for part in parts])


@dataclass(frozen=True, slots=True)
class EquationSizes:
    """Sizes of the equations, named as in ``struct equations``."""

    n_q: int
    n_u: int
    n_z: int
    n_r: int
    n_p: int
    n_y: int
    n_phi: int
    m: int
    rows: int
    size: int
    u_dot: int
    multipliers: int
    seen: int


@dataclass(frozen=True, slots=True)
class _InstantResults:
    """Memory for the requested quantities of one instant, filled by C.

    Attributes:
        numbers: All of it, one after another.
        motion: The structure that points into them.
        at: Address of the structure.
        places: Names of its fields, and which numbers are theirs.
    """

    numbers: Floats
    motion: c_structures.InstantMotionStructure
    at: int
    places: tuple[tuple[str, slice], ...]


@dataclass(frozen=True, slots=True)
class _StateDerivativeSeries:
    """Memory for x' at several instants: inputs and results, with their addresses in this order."""

    times: Floats
    y: Floats
    r: Floats
    found: Floats
    at: tuple[int, ...]

    @classmethod
    def of(cls, k: int, width: int, n_r: int) -> _StateDerivativeSeries:
        """Allocate it for k instants."""
        arrays = (np.empty(k), np.empty((k, width)), np.empty(n_r), np.empty((k, width)))
        return cls(*arrays, tuple(map(array_address, arrays)))


class CompiledFunctionError(Exception):
    """A function of a machine gave up.

    Attributes:
        status: Why: one of the numbers in ``layout``.
        name: Of the singular matrix.
        time: When, in s.
    """

    def __init__(self, status: int, name: str, time: float) -> None:
        super().__init__(f"status {status} ({name}) at t = {time!r} s")
        self.status, self.name, self.time = status, name, time


class CompiledEquations:
    """Compiled equations, for use in one thread.

    Args:
        sizes: Numbers of everything.
        independent: Speeds that are states.
        typical: Magnitude of each coordinate, then of each speed, > 0.
        plans: By their names in ``layout.PLANS``.
        mechanism: Where the dynamics come from it, and not from a plan.
        sights: What is read off it for energies and outputs, from slot ``sizes.seen`` on.

    Raises:
        ToolError: If there is no compiler, or it fails.
        CannotWriteError: If there is no C for some expression.
    """

    def __init__(
        self,
        sizes: EquationSizes,
        independent: Sequence[int],
        typical: Floats,
        plans: dict[str, EvaluationPlan],
        mechanism: Mechanism | None = None,
        sights: Sequence[KinematicQuantity] = (),
    ) -> None:
        shared: LookupTableDefinitions = {}
        code = EvaluationPlanCode(shared)
        for name, plan in plans.items():
            code.add(name, plan)
        tables = MechanismCTables(mechanism, shared) if mechanism else None
        texts = [C_PRELUDE, *(text for _, text in shared.values()), code.text()]
        texts += [tables.values.text()] if tables else []
        self._library = compile_equations_runtime()
        own = compile_library({"expressions.c": "\n".join(texts).encode()}, "expressions")
        self._independent = np.array([*independent], dtype=np.int64)
        self._dependent = np.array([i for i in range(sizes.n_u) if i not in set(independent)], dtype=np.int64)
        e = self._equations = c_structures.EquationsStructure()
        for field in sizes.__dataclass_fields__.keys() - {"seen"}:
            setattr(e, field, getattr(sizes, field))
        for name in plans:
            setattr(e, name, code.plan(name, own))
        e.n_independent, e.largest = len(self._independent), code.largest
        e.independent, e.dependent = array_address(self._independent), array_address(self._dependent)
        self._typical = np.ascontiguousarray(typical, dtype=np.float64)
        e.typical = array_address(self._typical)
        self._kept = tables
        bodies = tables.structure(own, sights, sizes.seen) if tables else None
        if bodies:
            e.mechanism = ctypes.addressof(bodies)
        self._code = code
        self._sizes = sizes
        self.n_x = sizes.n_q + len(self._independent) + sizes.n_z
        self._at = ctypes.addressof(e)
        self._here = np.empty(self.n_x + sizes.n_r)
        self._here_at = array_address(self._here)
        self._done = ctypes.c_int64()
        self._done_at = ctypes.addressof(self._done)
        self._answers: dict[str, _InstantResults] = {}
        self._series: dict[int, _StateDerivativeSeries] = {}
        self._prepared: Sequence[float] | None = None
        if self._library.reference_begin(self._at) != c_structures.STATUS_OK:
            raise MemoryError("no memory for the reference")
        weakref.finalize(self, _free_memory, self._library, e, bodies)

    def motion(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], wanted: str
    ) -> dict[str, Floats]:
        """Return requested quantities at one instant, by the names of ``struct motion``; x_dot and power always.

        Raises:
            FailureError: If a matrix is singular.
        """
        answer = self._answers.get(wanted)
        if answer is None:
            answer = self._answers[wanted] = self._answer(wanted)
        n, n_r = self.n_x, self._sizes.n_r
        here = self._here
        here[:n], here[n : n + n_r] = x, r
        at, given = self._here_at, self._parameters(prepared)
        self._check(self._library.reference_motion(self._at, t, at, at + 8 * n, given, answer.at), t)
        found = answer.numbers.copy()
        return {name: found[place] for name, place in answer.places}

    def _answer(self, wanted: str) -> _InstantResults:
        """Return memory for requested quantities, reused: there are some hundred thousand requests."""
        s = self._sizes
        shapes = {"u": s.n_u, "kinetic": 1, "outputs": s.n_y, "residual": s.n_phi + s.m}
        sizes = {"x_dot": self.n_x, "power": 1} | {name: shapes[name] for name in wanted.split()}
        ends = np.cumsum([*sizes.values()]).tolist()
        places = tuple((name, slice(end - size, end)) for (name, size), end in zip(sizes.items(), ends, strict=True))
        numbers = np.empty(ends[-1])
        first = array_address(numbers)
        motion = c_structures.InstantMotionStructure(**{name: first + 8 * place.start for name, place in places})
        return _InstantResults(numbers, motion, ctypes.addressof(motion), places)

    def _parameters(self, prepared: Sequence[float]) -> int:
        """Return where parameters lie for C; a tuple, which nobody changes, is copied there once."""
        if self._prepared is not prepared or not isinstance(prepared, tuple):
            self._prepared_numbers = np.array(prepared, dtype=np.float64)
            self._prepared, self._prepared_at = prepared, array_address(self._prepared_numbers)
        return self._prepared_at

    def slopes(self, times: Floats, y: Floats, r: Sequence[float], prepared: Sequence[float]) -> Floats:
        """Return x' and the power of all loads at several instants, by one call.

        Args:
            times: Instants in s, shape (k,).
            y: (x, W) at each, shape (k, n_x + 1); W is not read.
            r: Inputs, the same at all.
            prepared: Free and calculated parameters.

        Returns:
            (x', W'), shape (k, n_x + 1).

        Raises:
            FailureError: If a matrix is singular; at the first such instant.
        """
        k = len(times)
        if k not in self._series:
            self._series[k] = _StateDerivativeSeries.of(k, self.n_x + 1, self._sizes.n_r)
        series = self._series[k]
        series.times[:], series.y[:], series.r[:] = times, y, r
        at = series.at
        status = self._library.reference_slopes(
            self._at, k, at[0], at[1], at[2], self._parameters(prepared), at[3], self._done_at
        )
        if status != c_structures.STATUS_OK:
            self._check(status, float(times[self._done.value]))
        return series.found.copy()

    def residual(self, t: float, q: Floats, u: Floats, z: Floats, prepared: Sequence[float]) -> Floats:
        """Return phi(q, t), then A u + b, for given speeds; shape (n_phi + m,).

        Raises:
            FailureError: If a matrix is singular.
        """
        result = np.empty(self._sizes.n_phi + self._sizes.m)
        given = [np.ascontiguousarray(a, dtype=np.float64) for a in (q, u, z, prepared)]
        self._check(self._library.reference_residual(self._at, t, *map(array_address, given), array_address(result)), t)
        return result

    def project(self, t: float, x: Floats, prepared: Sequence[float]) -> Floats:
        """Return the state projected onto the constraints.

        Raises:
            FailureError: If the coordinates do not find the constraints.
        """
        result = np.array(x, dtype=np.float64)
        given = np.array(prepared, dtype=np.float64)
        self._check(self._library.reference_project(self._at, t, array_address(result), array_address(given)), t)
        return result

    def integrate(
        self,
        time: Floats,
        inputs: Floats,
        prepared: Sequence[float],
        start: Floats,
        tolerance: float,
        relative: float,
        scales: Floats,
        budget: int,
        *,
        parts: int = 1,
        projected: bool = False,
    ) -> Floats:
        """Return (x, W) at all points, from ``start`` at the first one; shape (n_t, n_x + 1).

        Raises:
            FailureError: If it ends on the way.
        """
        y = np.empty((len(time), self.n_x + 1))
        y[0] = start
        arrays = [np.ascontiguousarray(a, dtype=np.float64) for a in (time, inputs, prepared, scales)]
        points, held, parameters, sizes = arrays
        journey = c_structures.TrajectoryIntegrationStructure(
            tableau=array_address(_form_dop853_tableau()),
            parameters=array_address(parameters),
            scales=array_address(sizes),
            tolerance=tolerance,
            relative=relative,
            budget=budget,
            parts=parts,
            projected=int(projected),
            step=np.inf,
        )
        for k in range(0, len(time) - 1, _POINTS_PER_CALL):
            rows = slice(k, k + _POINTS_PER_CALL + 1)
            here = points[rows]
            journey.time, journey.points = array_address(here), len(here)
            journey.inputs = array_address(held[k:])
            status = self._library.reference_integrate(self._at, ctypes.addressof(journey), array_address(y[k:]))
            self._check(status, journey.stuck)
        return y

    @property
    def library(self) -> ctypes.CDLL:
        """The part that all equations share."""
        return self._library

    @property
    def address(self) -> int:
        """Of ``struct equations``."""
        return self._at

    @property
    def tableau_address(self) -> int:
        """Of ``struct tableau``."""
        return array_address(_form_dop853_tableau())

    def _check(self, status: int, t: float) -> None:
        """Raise the error of a failed call."""
        if status == c_structures.STATUS_OK:
            return
        known = ("the dependent speeds", "the accelerations", *self._code.names)
        name = known[self._equations.singular] if status == c_structures.STATUS_SINGULAR_MATRIX else ""
        raise CompiledFunctionError(status, name, t)


def _free_memory(
    library: Any, equations: c_structures.EquationsStructure, _bodies: c_structures.MechanismStructure | None
) -> None:
    """Free the memory; ``_bodies`` are part of ``equations``."""
    library.reference_end(ctypes.addressof(equations))
