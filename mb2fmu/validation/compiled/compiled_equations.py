"""``CompiledEquations``: compiled equations: x', all quantities at an instant, and whole trajectories.

``_EvaluationPlanCode``: the plans of a set of equations as functions in C, and tables of their order.
"""

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

from mb2fmu.fmu.toolchain import compile_library
from mb2fmu.mechanics.mechanism import Mechanism
from mb2fmu.validation.compiled import c_structures
from mb2fmu.validation.compiled.c_expressions import C_PRELUDE, CExpressionWriter, LookupTableDefinitions
from mb2fmu.validation.compiled.c_structures import array_address
from mb2fmu.validation.compiled.compiled_check_tables import CompiledCheckTables
from mb2fmu.validation.compiled.unrolled_motion_equations import UNROLLED_FUNCTION_NAME
from mb2fmu.validation.evaluation_plans.expression_evaluation_plan import EvaluationPlan, EvaluationPlanStep
from mb2fmu.validation.evaluation_plans.kinematic_quantities import KinematicQuantity

FIRST_SOLVE_NUMBER = 2  # 0 and 1 are the dependent speeds and the accelerations


Floats = npt.NDArray[np.float64]
_POINTS_PER_CALL = 64  # communication points between two looks at whether the user wants to stop
_C_MODULES = (
    "articulated",
    "bodies",
    "contact_modes",
    "contacts",
    "dense",
    "dop853",
    "equations",
    "event_steps",
    "holding_forces",
    "settling",
    "mass_matrix",
    "modes",
    "radau",
    "sliding",
)
_RUNTIME_FILES = (
    *(f"{name}.{kind}" for name in _C_MODULES for kind in "ch"),
    "dop853_coefficients.h",
    "nodes.h",
    "solver.h",
)


class _EvaluationPlanCode:
    """Collects plans, then their compiled code.

    Args:
        tables: Lookup tables that were printed before; those that are met are added.

    Attributes:
        names: Of the linear solves, for messages: the number of one less :data:`FIRST_SOLVE_NUMBER` is its place.
        largest: Number of results of any step.
    """

    def __init__(self, tables: LookupTableDefinitions) -> None:
        self.names: list[str] = []
        self.largest = 0
        self._functions: list[str] = []
        self._tables = tables
        self._plans: dict[str, list[tuple[int, EvaluationPlanStep]]] = {}
        self._referenced_arrays: list[Any] = []

    def add(self, name: str, plan: EvaluationPlan) -> None:
        """Write the functions of a plan.

        Raises:
            NoCExpressionError: If there is no C for something in it.
        """
        self._plans[name] = [(self._write(step), step) for step in plan.steps if step.targets or step.assignments]

    def _write(self, step: EvaluationPlanStep) -> int:
        """Return the number of the function that is written for a step."""
        writer = CExpressionWriter({symbol: f"v[{slot}]" for symbol, slot in step.places.items()}, self._tables)
        for i, assignment in enumerate(step.assignments):
            value = writer.write_atom(assignment.expression)
            writer.lines.append(f"v[{step.first + i}] = {value};")
            writer.define(assignment.symbol, value)
        for i, target in enumerate(step.targets):
            writer.lines.append(f"results[{i}] = {writer.write_atom(target)};")
        number = len(self._functions)
        body = "\n    ".join(writer.lines)
        self._functions.append(
            f"EXPORTED void step_{number}(double v[], double results[]);\n"
            f"void step_{number}(double v[], double results[])\n{{\n    (void)v;\n    (void)results;\n    {body}\n}}\n"
        )
        self.largest = max(self.largest, len(step.targets))
        return number

    def text(self) -> str:
        """Return the source text; it needs the prelude of ``c_expressions`` and the tables."""
        return "\n".join(self._functions)

    def plan(self, name: str, library: ctypes.CDLL) -> c_structures.EvaluationPlanStruct:
        """Return the table of a plan, whose functions are in ``library``; it lives as long as this object."""
        steps = self._plans.get(name, [])
        table = (c_structures.EvaluationStepStruct * max(len(steps), 1))()
        for row, (number, step) in zip(table, steps, strict=False):
            row.function = ctypes.cast(getattr(library, f"step_{number}"), ctypes.c_void_p).value
            if step.solve:
                row.n, row.k = step.solve.right_hand_side.shape
                row.first, row.name = step.unknowns, FIRST_SOLVE_NUMBER + len(self.names)
                self.names.append(step.solve.name)
        self._referenced_arrays += [table, library]
        return c_structures.EvaluationPlanStruct(ctypes.addressof(table), len(steps))


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
    library.reference_motions.argtypes = [pointer, ctypes.c_int64, *[pointer] * 6]
    library.reference_responses.argtypes = [pointer, double, *[pointer] * 3, ctypes.c_int64, *[pointer] * 4]
    library.reference_residuals.argtypes = [pointer, ctypes.c_int64, *[pointer] * 3]
    library.reference_project.argtypes = [pointer, double, pointer, pointer, pointer]
    library.reference_integrate.argtypes = [pointer, pointer, pointer]
    library.reference_integrate_steps.argtypes = [pointer, pointer, pointer, pointer]
    library.reference_integrate_stiff.argtypes = [pointer, pointer, pointer, pointer]
    library.reference_integrate_in_modes.argtypes = [pointer, pointer, pointer]
    library.reference_margins.argtypes = [pointer, pointer, double, *[pointer] * 4]
    library.reference_hold.argtypes = [pointer, pointer, double, *[pointer] * 3]
    library.reference_contact_results.argtypes = [
        pointer, pointer, pointer, double, *[pointer] * 3, ctypes.c_int, ctypes.c_int
    ]  # fmt: skip
    library.reference_settle.argtypes = [pointer, pointer, double, ctypes.c_int64, pointer]
    library.reference_begin.argtypes = [pointer]
    library.reference_end.argtypes = [pointer]
    library.reference_end.restype = None
    return library


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
class _InstantMotionMemory:
    """Memory for the requested quantities of one instant, filled by C.

    Attributes:
        numbers: All of it, one after another.
        motion: The structure that points into them.
        address: Address of the structure.
        places: Names of its fields, and which numbers are theirs.
    """

    numbers: Floats
    motion: c_structures.InstantMotionStruct
    address: int
    places: tuple[tuple[str, slice], ...]


class CompiledFunctionError(Exception):
    """A compiled function failed.

    Attributes:
        status: Why: one of the numbers in ``c_structures``.
        name: Of the singular matrix.
        time: When, in s.
        reached: (x, W) at the communication points before, of an integration; None otherwise.
    """

    def __init__(self, status: int, name: str, time: float) -> None:
        super().__init__(f"status {status} ({name}) at t = {time!r} s")
        self.status, self.name, self.time = status, name, time
        self.reached: Floats | None = None


class CompiledEquations:
    """Compiled equations, for use in one thread.

    Args:
        sizes: Numbers of everything.
        independent: Speeds that are states.
        typical: Magnitude of each coordinate, then of each speed, > 0.
        plans: By their names in ``c_structures.PLAN_NAMES``.
        mechanism: Where the dynamics come from it, and not from a plan.
        quantities: What is read off it for energies and outputs, from slot ``sizes.seen`` on.

    Raises:
        ToolError: If there is no compiler, or it fails.
        NoCExpressionError: If there is no C for some expression.
    """

    def __init__(
        self,
        sizes: EquationSizes,
        independent: Sequence[int],
        typical: Floats,
        plans: dict[str, EvaluationPlan],
        mechanism: Mechanism | None = None,
        quantities: Sequence[KinematicQuantity] = (),
    ) -> None:
        shared: LookupTableDefinitions = {}
        code = _EvaluationPlanCode(shared)
        for name, plan in plans.items():
            code.add(name, plan)
        tables = CompiledCheckTables(mechanism, shared) if mechanism else None
        texts = [C_PRELUDE, *(text for _, text in shared.values()), code.text()]
        texts += [tables.values.text(), tables.unrolled_text] if tables else []
        self._library = compile_equations_runtime()
        expressions_library = compile_library({"expressions.c": "\n".join(texts).encode()}, "expressions")
        self._independent = np.array([*independent], dtype=np.int64)
        self._dependent = np.array([i for i in range(sizes.n_u) if i not in set(independent)], dtype=np.int64)
        e = self._equations = c_structures.EquationsStruct()
        for field in sizes.__dataclass_fields__.keys() - {"seen"}:
            setattr(e, field, getattr(sizes, field))
        for name in plans:
            setattr(e, name, code.plan(name, expressions_library))
        e.n_independent, e.largest = len(self._independent), code.largest
        e.independent, e.dependent = array_address(self._independent), array_address(self._dependent)
        self._typical = np.ascontiguousarray(typical, dtype=np.float64)
        e.typical = array_address(self._typical)
        self._tables = tables
        bodies = tables.structure(expressions_library, quantities, sizes.seen) if tables else None
        if bodies:
            e.mechanism = ctypes.addressof(bodies)
        if tables and tables.unrolled_text:
            function = getattr(expressions_library, UNROLLED_FUNCTION_NAME)
            e.unrolled = ctypes.cast(function, ctypes.c_void_p).value
        self._code = code
        self._sizes = sizes
        self.n_x = sizes.n_q + len(self._independent) + sizes.n_z
        self._address = ctypes.addressof(e)
        self._state_and_inputs = np.empty(self.n_x + sizes.n_r)
        self._state_and_inputs_address = array_address(self._state_and_inputs)
        self._results: dict[str, _InstantMotionMemory] = {}
        self._prepared: Sequence[float] | None = None
        if self._library.reference_begin(self._address) != c_structures.STATUS_OK:
            raise MemoryError("no memory for the reference")
        weakref.finalize(self, _free_memory, self._library, e, bodies)

    def motion(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], requested: str
    ) -> dict[str, Floats]:
        """Return requested quantities at one instant, by the names of ``struct motion``; x_dot and power always.

        Raises:
            CompiledFunctionError: If a matrix is singular.
        """
        results = self._results.get(requested)
        if results is None:
            results = self._results[requested] = self._allocate_results(requested)
        n, n_r = self.n_x, self._sizes.n_r
        state_and_inputs = self._state_and_inputs
        state_and_inputs[:n], state_and_inputs[n : n + n_r] = x, r
        address, parameters = self._state_and_inputs_address, self._parameters(prepared)
        self._check(
            self._library.reference_motion(self._address, t, address, address + 8 * n, parameters, results.address), t
        )
        numbers = results.numbers.copy()
        return {name: numbers[place] for name, place in results.places}

    def motions(
        self, time: Floats, states: Floats, inputs: Floats, prepared: Sequence[float], requested: str
    ) -> dict[str, Floats]:
        """Return the quantities of :meth:`motion` at many instants, a row for each.

        Raises:
            CompiledFunctionError: If a matrix is singular.
        """
        t, x, r = (np.ascontiguousarray(each, dtype=np.float64) for each in (time, states, inputs))
        results = {name: np.empty((len(t), size)) for name, size in self._result_sizes(requested).items()}
        done = ctypes.c_int64()
        for k in range(0, len(t), _POINTS_PER_CALL):
            first = c_structures.InstantMotionStruct(
                **{name: array_address(numbers[k:]) for name, numbers in results.items()}
            )
            status = self._library.reference_motions(
                self._address, min(_POINTS_PER_CALL, len(t) - k), *map(array_address, (t[k:], x[k:], r[k:])),
                self._parameters(prepared), ctypes.addressof(first), ctypes.addressof(done),
            )  # fmt: skip
            self._check(status, float(t[min(k + done.value, len(t) - 1)]))
        return results

    def responses(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], inputs: Sequence[int], values: Floats
    ) -> tuple[Floats, Floats]:
        """Return x', shape (k, n_x), and outputs, shape (k, n_y), with each of k inputs alone at another value.

        Raises:
            CompiledFunctionError: If a matrix is singular.
        """
        n, count, places = self.n_x, len(inputs), np.array(inputs, dtype=np.int64)
        state_and_inputs, address = self._state_and_inputs, self._state_and_inputs_address
        state_and_inputs[:n], state_and_inputs[n:] = x, r
        results = np.empty(count * (n + self._sizes.n_y))
        first = array_address(results)
        self._check(
            self._library.reference_responses(
                self._address, t, address, address + 8 * n, self._parameters(prepared), count,
                array_address(places), array_address(values), first, first + 8 * count * n,
            ), t,
        )  # fmt: skip
        return results[: count * n].reshape(count, n), results[count * n :].reshape(count, self._sizes.n_y)

    def _result_sizes(self, requested: str) -> dict[str, int]:
        """Return the numbers of each requested quantity at one instant."""
        s = self._sizes
        sizes = {"u": s.n_u, "kinetic": 1, "outputs": s.n_y, "residual": s.n_phi + s.m}
        return {"x_dot": self.n_x, "power": 1} | {name: sizes[name] for name in requested.split()}

    def _allocate_results(self, requested: str) -> _InstantMotionMemory:
        """Return memory for requested quantities, reused: there are some hundred thousand requests."""
        sizes = self._result_sizes(requested)
        ends = np.cumsum([*sizes.values()]).tolist()
        places = tuple((name, slice(end - size, end)) for (name, size), end in zip(sizes.items(), ends, strict=True))
        numbers = np.empty(ends[-1])
        first = array_address(numbers)
        motion = c_structures.InstantMotionStruct(**{name: first + 8 * place.start for name, place in places})
        return _InstantMotionMemory(numbers, motion, ctypes.addressof(motion), places)

    def _parameters(self, prepared: Sequence[float]) -> int:
        """Return where parameters lie for C; a tuple, which nobody changes, is copied there once."""
        if self._prepared is not prepared or not isinstance(prepared, tuple):
            self._prepared_numbers = np.array(prepared, dtype=np.float64)
            self._prepared, self._prepared_at = prepared, array_address(self._prepared_numbers)
        return self._prepared_at

    def residuals(self, points: Floats, prepared: Sequence[float]) -> Floats:
        """Return phi(q, t), then A u + b, for given speeds; shape (n, n_phi + m).

        Args:
            points: One row (t, q, u, z, r) for each, C-contiguous, shape (n, 1 + n_q + n_u + n_z + n_r).
            prepared: Parameter values.

        Raises:
            CompiledFunctionError: If a matrix is singular.
        """
        results = np.empty((len(points), self._sizes.n_phi + self._sizes.m))
        self._check(
            self._library.reference_residuals(
                self._address, len(points), array_address(points), self._parameters(prepared), array_address(results)
            ), float(points[0, 0]) if len(points) else 0.0,
        )  # fmt: skip
        return results

    def project(self, t: float, x: Floats, r: Sequence[float] | Floats, prepared: Sequence[float]) -> Floats:
        """Return the state projected onto the constraints.

        Raises:
            CompiledFunctionError: If the coordinates do not find the constraints.
        """
        result = np.array(x, dtype=np.float64)
        arguments = [np.array(each, dtype=np.float64) for each in (r, prepared)]
        self._check(
            self._library.reference_project(self._address, t, array_address(result), *map(array_address, arguments)), t
        )
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
        collocation: c_structures.RadauCoefficientsStruct | None = None,
    ) -> Floats:
        """Return (x, W) at all points, from ``start`` at the first one; shape (n_t, n_x + 1).

        ``collocation``: the implicit method that integrates; ``budget`` counts its steps.

        Raises:
            CompiledFunctionError: If it ends on the way.
        """
        y = np.empty((len(time), self.n_x + 1))
        y[0] = start
        arrays = [np.ascontiguousarray(a, dtype=np.float64) for a in (time, inputs, prepared, scales)]
        points, input_rows, parameters, sizes = arrays
        integration = c_structures.TrajectoryIntegrationStruct(
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
            points_of_call = points[rows]
            integration.time, integration.points = array_address(points_of_call), len(points_of_call)
            integration.inputs = array_address(input_rows[k:])
            arguments = self._address, ctypes.addressof(integration)
            status = (
                self._library.reference_integrate(*arguments, array_address(y[k:]))
                if collocation is None
                else self._library.reference_integrate_stiff(
                    *arguments, ctypes.addressof(collocation), array_address(y[k:])
                )
            )
            try:
                self._check(status, integration.stuck)
            except CompiledFunctionError as error:
                error.reached = y[: int(np.searchsorted(points, error.time, side="right"))]
                raise
        return y

    def integrate_steps(
        self, time: Floats, inputs: Floats, prepared: Sequence[float], starts: Floats,
        tolerance: float, relative: float, scales: Floats, budget: int,
    ) -> Floats:  # fmt: skip
        """Return where each step leads from a start of its own, shape (n_t - 1, n_x + 1).

        Numbers are NaN from the first step on that does not come to its end. ``budget`` is of each.
        """
        y = np.full((len(time) - 1, 2, self.n_x + 1), np.nan)
        y[:, 0] = starts
        arrays = [np.ascontiguousarray(a, dtype=np.float64) for a in (time, inputs, prepared, scales)]
        points, input_rows, parameters, sizes = map(array_address, arrays)
        integration = c_structures.TrajectoryIntegrationStruct(
            time=points, points=len(time), inputs=input_rows, parameters=parameters, scales=sizes,
            tolerance=tolerance, relative=relative, budget=budget, parts=1, step=np.inf,
        )  # fmt: skip
        done = ctypes.c_int64()
        self._library.reference_integrate_steps(
            self._address, ctypes.addressof(integration), array_address(y), ctypes.addressof(done)
        )
        y[done.value :, 1] = np.nan
        return y[:, 1]

    @property
    def library(self) -> ctypes.CDLL:
        """The part that all equations share."""
        return self._library

    @property
    def address(self) -> int:
        """Of ``struct equations``."""
        return self._address

    def _check(self, status: int, t: float) -> None:
        """Raise the error of a failed call."""
        if status == c_structures.STATUS_OK:
            return
        solve_names = ("the dependent speeds", "the accelerations", *self._code.names)
        name = solve_names[self._equations.singular] if status == c_structures.STATUS_SINGULAR_MATRIX else ""
        raise CompiledFunctionError(status, name, t)


def _free_memory(
    library: Any, equations: c_structures.EquationsStruct, _bodies: c_structures.MechanismStruct | None
) -> None:
    """Free the memory; ``_bodies`` are part of ``equations``."""
    library.reference_end(ctypes.addressof(equations))
