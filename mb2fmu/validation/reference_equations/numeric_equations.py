"""EquationsOfMotion as functions of numbers, by SymPy's ``lambdify``: the reference's side of the validation.

Nothing of the program is used, and the linear algebra is not the program's: constrained dynamics are solved in the
null space of the velocity constraints (by singular values) where the full mass matrix is known, as stacked rows
[M; A] u' = [f; -gamma] where the rows are reduced already.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import sympy as sm

from mb2fmu.errors import Fault, PlatformError, ToolError, ValidationError
from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion, Intermediate
from mb2fmu.mechanics.mechanism import Mechanism
from mb2fmu.validation.compiled import c_structures
from mb2fmu.validation.compiled.c_expressions import NoCExpressionError
from mb2fmu.validation.compiled.compiled_equations import CompiledEquations, CompiledFunctionError, EquationSizes
from mb2fmu.validation.evaluation_plans.expression_evaluation_plan import (
    EvaluationPlan,
    EvaluationPlanner,
    make_singular_matrix_error,
    solve_linear_system,
)
from mb2fmu.validation.evaluation_plans.kinematic_quantities import KinematicQuantity

Floats = npt.NDArray[np.float64]


_REDUNDANT_ROW_TOLERANCE = 1e-9
"""Singular values of a Jacobian below this part of the largest one are taken for redundant constraints."""

VANISHED_ROW_FRACTION = 1e-3
"""Of the usual length of a constraint row: where it is shorter, its direction is not known well any more."""
DEPENDENT_ROW_FRACTION = 1e-7
"""A row follows from others if no more than this part of it is left beside them."""

_ROW_ROTATION_RATE = 10.0  # how far rows turn against each other, at most, per distance from the constraints
_MAX_PROJECTION_STEPS = 30
_CONVERGED_STEP_FRACTION = 1e-9  # of each coordinate: the error that such a step leaves is its square
_ROUND_OFF_STEP_FRACTION = (
    1e-6  # of each coordinate or its typical magnitude: so near, steps that do not become smaller are round-off
)
_EPSILON = float(np.finfo(float).eps)
_STALLED_STEP_RATIO = 4.0


def _solve_least_norm(A: Floats, right_side: Floats, units: Floats) -> Floats:
    """Return the shortest x with A x = right, with each component measured in its unit."""
    return np.asarray(units * np.linalg.lstsq(A * units, right_side, rcond=_REDUNDANT_ROW_TOLERANCE)[0])


def _make_projection_error(t: float) -> ValidationError:
    """Return the error of a projection that finds nothing."""
    return ValidationError(
        "the reference cannot be integrated:",
        [Fault(f"at t = {t:.6g} s no coordinates near those found obey the holonomic constraints")],
    )


def translate_compiled_failures(error: CompiledFunctionError) -> ValidationError:
    """Turn failures of compiled functions into the same errors as those of NumPy."""
    return (
        make_singular_matrix_error(error.name)
        if error.status == c_structures.STATUS_SINGULAR_MATRIX
        else _make_projection_error(error.time)
    )


@dataclass(frozen=True, slots=True)
class InstantMotion:
    """All quantities at one instant.

    Attributes:
        u: All speeds, dependent ones included, shape (n_u,).
        x_dot: Derivative of (q, independent u, z).
        power: Sum of all powers delivered to the mechanism, W.
        kinetic: J; nan where it is not known.
        outputs: Shape (n_outputs,).
        residual: Of the constraints: phi(q, t), then A u + b.
    """

    u: Floats
    x_dot: Floats
    power: float
    kinetic: float
    outputs: Floats
    residual: Floats


@dataclass(frozen=True, slots=True)
class InstantMotions:
    """The quantities of :class:`InstantMotion` at many instants: a row, or a number, for each."""

    u: Floats
    x_dot: Floats
    power: Floats
    kinetic: Floats
    outputs: Floats
    residual: Floats

    @classmethod
    def of(cls, motions: Sequence[InstantMotion]) -> InstantMotions:
        """Put motions together, at least one."""
        return cls(*(np.array([getattr(motion, name) for motion in motions]) for name in cls.__dataclass_fields__))


@dataclass(frozen=True, slots=True)
class ObservedExpressions:
    """Observed quantities of a motion, and the symbols that they are written in.

    Attributes:
        kinetic: T in J; nan where it is not known.
        outputs: One expression per output.
        multipliers: Symbols of λ, where outputs are written in them; else ().
        intermediates: In order.
        quantity_symbols: Symbols whose numbers the mechanism gives when a motion is requested as a whole.
    """

    kinetic: sm.Expr
    outputs: tuple[sm.Expr, ...]
    multipliers: tuple[sm.Symbol, ...]
    intermediates: tuple[Intermediate, ...]
    quantity_symbols: tuple[sm.Symbol, ...] = ()


class NumericEquations:
    """The equations compiled: state x = (q, independent u, z) of length ``n_x``.

    Args:
        equations: Of any formulation.
        typical: Magnitude of each coordinate, then of each speed, > 0: what round-off is a part of where coordinates
            are zero, and the units in which ranks are decided and what is nearest is found. None: ones.

    ``formulation`` names where the accelerations come from. ``prepared`` is always what :meth:`prepare` gives for the
    parameter values; ``r`` are the values of the inputs.
    """

    formulation: str = ""
    mechanism: Mechanism | None = None
    """What the dynamics come from, where they do not come from the equations."""
    has_modes = False
    """Whether switches, contacts or latches have modes that events change: in ``HybridEquations``."""

    def __init__(self, equations: EquationsOfMotion, typical: Sequence[float] | None = None) -> None:
        e = self.equations = equations
        self.typical = np.array([1.0] * len((*e.q, *e.u)) if typical is None else [*typical], dtype=np.float64)
        if self.typical.shape != (len(e.q) + len(e.u),) or not np.all(self.typical > 0.0):
            raise ValueError("typical: one magnitude > 0 per coordinate and speed")
        self.formulation = self.formulation or e.method
        self.n_q, self.n_u, self.n_z = len(e.q), len(e.u), len(e.z)
        self.n_x = len(e.states)
        self._independent, self._dependent = list(e.u_independent), list(e.u_dependent)
        self._calculated = EvaluationPlanner(e.calculated_parameters, {s: i for i, s in enumerate(e.p)}).plan(
            [c.symbol for c in e.calculated_parameters]
        )
        given_symbols = [e.t, *e.q, *e.u, *e.z, *e.r, *e.p, *(c.symbol for c in e.calculated_parameters)]
        observed = self._form_observed_quantities()
        self._needs_multipliers = bool(observed.multipliers)
        self._first_quantity_slot = len(given_symbols)
        planner = EvaluationPlanner(
            observed.intermediates, {s: i for i, s in enumerate((*given_symbols, *observed.quantity_symbols))}
        )
        constraints = e.velocity_constraints
        self.m = len(constraints.names) if constraints else 0
        self._holonomic = planner.plan([phi for _, phi in e.position_rows], keep=False)
        slopes = [phi.diff(q) for _, phi in e.position_rows for q in e.q]
        self._holonomic_slopes = planner.plan(slopes, keep=False)
        # Kept plans below are always run in this order: each relies on what those before it have evaluated.
        self._constraints = planner.plan([*constraints.jacobian, *constraints.offset] if constraints else [])
        self._dynamics = self._plan_dynamics(planner)
        self._u_dot = planner.reserve(e.u_dot)
        self._multipliers = planner.reserve(observed.multipliers)
        self._late_plan = self._plan_late(planner)
        self._kinetic = planner.plan([observed.kinetic])
        self._outputs = planner.plan(list(observed.outputs))
        self._blank_values = [0.0] * planner.size
        self.compiled_equations: CompiledEquations | None = None
        self._last_prepared: tuple[Sequence[float], tuple[float, ...]] = ([], ())

    def compile(self) -> bool:
        """Use compiled functions from now on; return False, changing nothing, where there is no compiler."""
        if self.compiled_equations:
            return True
        try:
            self.compiled_equations = CompiledEquations(
                self._sizes(),
                self._independent,
                self.typical,
                self._plans(),
                self.mechanism,
                self._kinematic_quantities(),
            )
        except (ToolError, PlatformError, NoCExpressionError):
            return False
        return True

    def _sizes(self) -> EquationSizes:
        """Return the sizes of the equations, for the compiled functions."""
        e = self.equations
        return EquationSizes(
            n_q=self.n_q,
            n_u=self.n_u,
            n_z=self.n_z,
            n_r=len(e.r),
            n_p=len(e.p) + len(e.calculated_parameters),
            n_y=len(e.outputs),
            n_phi=len(e.position_rows),
            m=self.m,
            rows=self.rows,
            size=len(self._blank_values),
            u_dot=self._u_dot,
            multipliers=self._multipliers if self._needs_multipliers else -1,
            seen=self._first_quantity_slot,
        )

    def _plans(self) -> dict[str, EvaluationPlan]:
        """Return the plans by the names that the compiled functions know them by."""
        return {
            "holonomic": self._holonomic,
            "slopes": self._holonomic_slopes,
            "constraints": self._constraints,
            "dynamics": self._dynamics,
            "late": self._late_plan,
            "kinetic": self._kinetic,
            "outputs": self._outputs,
        }

    def _form_observed_quantities(self) -> ObservedExpressions:
        """Return energies and outputs, by the equations' own expressions."""
        e = self.equations
        return ObservedExpressions(
            kinetic=e.energy.kinetic if e.energy.kinetic is not None else sm.nan,
            outputs=tuple(output.expression for output in e.outputs),
            multipliers=e.multipliers,
            intermediates=(
                *e.intermediates,
                *((e.constraint_forces,) if e.constraint_forces else ()),
                *e.late_intermediates,
            ),
        )

    def _kinematic_quantities(self) -> tuple[KinematicQuantity, ...]:
        """Return the quantities requested of the mechanism: the numbers of ``ObservedExpressions.quantity_symbols``."""
        return ()

    def _plan_late(self, planner: EvaluationPlanner) -> EvaluationPlan:
        """Plan z' and the power of all loads."""
        e = self.equations
        return planner.plan([*e.z_dot, sm.Add(*(power for _, power in e.energy.powers))])

    def _plan_dynamics(self, planner: EvaluationPlanner) -> EvaluationPlan:
        """Plan q', M, f and gamma, entry by entry; note the number of rows of M."""
        e = self.equations
        self.rows = e.mass_and_forcing.mass_matrix.rows
        q_dot = e.kinematics.matrix * sm.Matrix(e.u) + e.kinematics.offset
        bias = list(e.velocity_constraints.bias) if e.velocity_constraints else []
        return planner.plan([*q_dot, *e.mass_and_forcing.mass_matrix, *e.mass_and_forcing.forcing, *bias])

    def prepare(self, parameters: Sequence[float]) -> tuple[float, ...]:
        """Return free parameters in the order of ``equations.p``, followed by the calculated ones.

        The same tuple gives the same one as the time before, which compiled functions need not read again.
        """
        if parameters is not self._last_prepared[0] or not isinstance(parameters, tuple):
            count = len(self.equations.calculated_parameters)
            prepared = (*parameters, *self._calculated([*parameters, *([0.0] * count)]))
            self._last_prepared = (parameters, prepared)
        return self._last_prepared[1]

    def x_dot(self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float]) -> tuple[Floats, float]:
        """Return the state derivative x' and the sum of all powers in W.

        Raises:
            ValidationError: If a matrix is singular.
            ArithmeticError, ValueError: Where an expression leaves its domain.
        """
        if self.compiled_equations:
            results = self._call_compiled(self.compiled_equations, t, x, r, prepared, "")
            return results["x_dot"], float(results["power"][0])
        return self._advance(t, x, r, prepared)[2:]

    @staticmethod
    def _call_compiled(
        compiled_equations: CompiledEquations,
        t: float,
        x: Floats,
        r: Sequence[float],
        prepared: Sequence[float],
        requested: str,
    ) -> dict[str, Floats]:
        """Return the compiled functions' answer; errors as for :meth:`x_dot`."""
        try:
            return compiled_equations.motion(t, x, r, prepared, requested)
        except CompiledFunctionError as error:
            raise translate_compiled_failures(error) from error

    def motion(self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float]) -> InstantMotion:
        """Return all quantities at one instant; errors as for :meth:`x_dot`."""
        if self.compiled_equations:
            results = self._call_compiled(self.compiled_equations, t, x, r, prepared, "u kinetic outputs residual")
            power, kinetic = float(results.pop("power")[0]), float(results.pop("kinetic")[0])
            return InstantMotion(power=power, kinetic=kinetic, **results)
        values, constraints, x_dot, power = self._advance(t, x, r, prepared)
        self._complete(values)
        u = np.array(values[1 + self.n_q : 1 + self.n_q + self.n_u])
        return InstantMotion(
            u=u,
            x_dot=x_dot,
            power=power,
            kinetic=self._kinetic(values)[0],
            outputs=np.array(self._outputs(values), dtype=float),
            residual=self._residual(values, u, constraints),
        )

    def motions(self, time: Floats, states: Floats, inputs: Floats, prepared: Sequence[float]) -> InstantMotions:
        """Return all quantities at many instants, each with a row of states and inputs; errors as for :meth:`x_dot`."""
        if self.compiled_equations:
            try:
                results = self.compiled_equations.motions(time, states, inputs, prepared, "u kinetic outputs residual")
            except CompiledFunctionError as error:
                raise translate_compiled_failures(error) from error
            power, kinetic = results.pop("power")[:, 0], results.pop("kinetic")[:, 0]
            return InstantMotions(power=power, kinetic=kinetic, **results)
        rows = zip(time.tolist(), states, inputs.tolist(), strict=True)
        return InstantMotions.of([NumericEquations.motion(self, t, x, r, prepared) for t, x, r in rows])

    def observe_outputs(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float]
    ) -> tuple[Floats, Floats]:
        """Return x' and all outputs at one instant; errors as for :meth:`x_dot`."""
        if self.compiled_equations:
            results = self._call_compiled(self.compiled_equations, t, x, r, prepared, "outputs")
            return results["x_dot"], results["outputs"]
        motion = NumericEquations.motion(self, t, x, r, prepared)
        return motion.x_dot, motion.outputs

    def observe_responses(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], inputs: Sequence[int], values: Floats
    ) -> tuple[Floats, Floats]:
        """Return x', shape (k, n_x), and all outputs, shape (k, n_y), with each of k inputs alone at another value.

        Errors as for :meth:`x_dot`.
        """
        if self.compiled_equations:
            try:
                return self.compiled_equations.responses(t, x, r, prepared, inputs, values)
            except CompiledFunctionError as error:
                raise translate_compiled_failures(error) from error
        rows = []
        for i, value in zip(inputs, values.tolist(), strict=True):
            changed_inputs = [*r]
            changed_inputs[i] = value
            rows.append(NumericEquations.observe_outputs(self, t, x, changed_inputs, prepared))
        return np.array([x_dot for x_dot, _ in rows]), np.array([outputs for _, outputs in rows])

    def _complete(self, values: list[float]) -> None:
        """Evaluate what energies and outputs need and :meth:`_advance` has not computed."""

    def residuals(self, points: Floats, prepared: Sequence[float]) -> Floats:
        """Return phi(q, t), then A u + b, for *given* speeds, dependent ones included; shape (n, n_phi + m).

        Args:
            points: One row (t, q, u, z, r) for each, shape (n, 1 + n_q + n_u + n_z + n_r), r the FMU's inputs.
            prepared: Parameter values.
        """
        modes = 1 + self.n_q + self.n_u + self.n_z + len(self.equations.r) - points.shape[1]
        points = np.pad(points, ((0, 0), (0, modes)))
        if self.compiled_equations:
            return self.compiled_equations.residuals(np.ascontiguousarray(points, dtype=np.float64), prepared)
        rows, speeds = [], slice(1 + self.n_q, 1 + self.n_q + self.n_u)
        for point in points:
            values = [*point.tolist(), *prepared]
            values += self._blank_values[len(values) :]
            rows.append(self._residual(values, point[speeds], self._constraints(values)))
        return np.array(rows).reshape(len(points), len(self.equations.position_rows) + self.m)

    def _append_modes(self, r: Sequence[float] | Floats) -> list[float]:
        """Return the inputs with zeros for modes, which follow them and stand in no row, where these are not given."""
        return [*r, *([0.0] * (len(self.equations.r) - len(r)))]

    def holonomic_slopes(
        self, t: float, q: Floats, z: Floats, r: Sequence[float] | Floats, prepared: Sequence[float]
    ) -> Floats:
        """Return ∂φ/∂q, shape (n_phi, n_q)."""
        values = [t, *q, *([0.0] * self.n_u), *z, *self._append_modes(r), *prepared]
        values += self._blank_values[len(values) :]
        return np.array(self._holonomic_slopes(values), dtype=float).reshape(-1, self.n_q)

    def keep_modes(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], after: Sequence[float] | None = None
    ) -> AbstractContextManager[None]:
        """Keep the modes of this instant, after an event if parameters change in one; here there are none."""
        del t, x, r, prepared, after
        return nullcontext()

    def state_after_parameter_change(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], after: Sequence[float]
    ) -> Floats:
        """Return the state after the event in which parameters become ``after``: unchanged without events."""
        del t, r, prepared, after
        return x

    def kinetic_energy(self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float]) -> float:
        """Return T in J; nan where it is not known."""
        return self.motion(t, x, r, prepared).kinetic

    def dependent_determinant_signs(
        self, points: Floats, prepared: Sequence[float], dependent: Sequence[int]
    ) -> Floats:
        """Return signs of det of A's columns of dependent speeds: where it changes they are undetermined.

        Args:
            points: One row (t, x, r) for each, shape (n, 1 + n_x + n_r).
            prepared: Parameter values.
            dependent: As many speeds as there are rows of A.
        """
        return np.asarray(np.linalg.slogdet(self._constraint_jacobians(points, prepared)[:, :, list(dependent)])[0])

    def has_redundant_rows(self, t: float, x: Floats, r: Sequence[float] | Floats, prepared: Sequence[float]) -> bool:
        """Return whether rows of A u + b = 0 follow from others at a state on the constraints."""
        return self.independent_rows(t, x, r, prepared) < self.m

    def independent_rows(self, t: float, x: Floats, r: Sequence[float] | Floats, prepared: Sequence[float]) -> int:
        """Return how many rows of A u + b = 0 follow from no others at a state on the constraints."""
        return int(np.sum(self.row_singular_values(t, x, r, prepared) > DEPENDENT_ROW_FRACTION))

    def row_singular_values(
        self,
        t: float,
        x: Floats,
        r: Sequence[float] | Floats,
        prepared: Sequence[float],
        *,
        usual_x: Floats | None = None,
    ) -> Floats:
        """Return the singular values of the rows of A, each over its length, speeds in their typical magnitudes.

        ``usual_x``: a state at which rows are as long as usual. A row that is far shorter than there is divided by its
        length there: divided by its own, a row that is mostly round-off would look like any other.
        """
        if not self.m:
            return np.zeros(0)
        A = self._constraint_jacobian(t, x, r, prepared) * self.typical[self.n_q :]
        lengths = np.linalg.norm(A, axis=1)
        if usual_x is not None:
            usual_A = self._constraint_jacobian(t, usual_x, r, prepared) * self.typical[self.n_q :]
            usual_lengths = np.linalg.norm(usual_A, axis=1)
            lengths = np.where(lengths < VANISHED_ROW_FRACTION * usual_lengths, usual_lengths, lengths)
        return np.asarray(np.linalg.svd(A / np.where(lengths > 0, lengths, 1.0)[:, None], compute_uv=False))

    def _constraint_jacobian(
        self, t: float, x: Floats, r: Sequence[float] | Floats, prepared: Sequence[float]
    ) -> Floats:
        """Return A of A u + b = 0, shape (m, n_u)."""
        return np.asarray(self._constraint_jacobians(np.array([[t, *x, *r]]), prepared)[0])

    def _constraint_jacobians(self, points: Floats, prepared: Sequence[float]) -> Floats:
        """Return A at rows (t, x, r), shape (n, m, n_u); of compiled rows what each speed alone, as usual, adds."""
        n_q, n_u, n_x, n_z = self.n_q, self.n_u, self.n_x, self.n_z
        t, x, r = points[:, 0], points[:, 1 : 1 + n_x], points[:, 1 + n_x :]
        if not self.compiled_equations:
            states = zip(t.tolist(), x, r, strict=True)
            return np.array([self._rows(self._constraints(self._values(*state, prepared)))[0] for state in states])
        rows = np.zeros((len(points), n_u + 1, 1 + n_q + n_u + n_z + len(self.equations.r)))
        speeds, first_z = self.typical[n_q:], 1 + n_q + n_u
        rows[:, :, : 1 + n_q] = points[:, None, : 1 + n_q]
        rows[:, :n_u, 1 + n_q : first_z] = np.diag(speeds)  # and none in the last one
        rows[:, :, first_z : first_z + n_z] = x[:, None, n_x - n_z :]
        rows[:, :, first_z + n_z : first_z + n_z + r.shape[1]] = r[:, None]  # modes stand in no row
        results = self.compiled_equations.residuals(rows.reshape(-1, rows.shape[2]), prepared)
        values = results[:, len(self.equations.position_rows) :].reshape(len(points), n_u + 1, -1)
        return np.asarray((values[:, :-1] - values[:, -1:]).transpose(0, 2, 1) / speeds)

    @property
    def has_state_constraints(self) -> bool:
        """Whether the constraints restrict states, which integration would violate."""
        return self.m > 0 and not self._dependent

    def project(self, t: float, x: Floats, r: Sequence[float] | Floats, prepared: Sequence[float]) -> Floats:
        """Return the projected state: coordinates, then speeds onto the constraints.

        Raises:
            ValidationError: If the coordinates do not find the constraints.
        """
        if self.compiled_equations:
            try:
                return self.compiled_equations.project(t, x, self._append_modes(r), prepared)
            except CompiledFunctionError as error:
                raise translate_compiled_failures(error) from error
        return (
            self._project_on_constraints(t, x, r, prepared)
            if self.has_state_constraints or self.equations.position_rows
            else x
        )

    def _values(self, t: float, x: Floats, r: Sequence[float] | Floats, prepared: Sequence[float]) -> list[float]:
        """Return slots at a state; all its speeds are states, or do not matter."""
        u = x[self.n_q : self.n_q + self.n_u] if self.has_state_constraints else np.zeros(self.n_u)
        values = [t, *x[: self.n_q].tolist(), *u.tolist(), *x[self.n_x - self.n_z :].tolist()]
        values += [*self._append_modes(r), *prepared]
        return values + self._blank_values[len(values) :]

    def _project_on_constraints(
        self, t: float, x: Floats, r: Sequence[float] | Floats, prepared: Sequence[float]
    ) -> Floats:
        """Return q by Gauss-Newton steps of least norm for phi(q) = 0, then the nearest speeds with A u + b = 0."""
        x, n_q, last_size = x.copy(), self.n_q, np.inf
        typical_coordinates, speed_units = self.typical[:n_q], self.typical[n_q:]
        for _ in range(_MAX_PROJECTION_STEPS if self.equations.position_rows else 0):
            values = self._values(t, x, r, prepared)
            phi = np.array(self._holonomic(values))
            step = _solve_least_norm(
                np.array(self._holonomic_slopes(values)).reshape(len(phi), n_q), phi, typical_coordinates
            )
            x[:n_q] -= step
            q, step = np.abs(x[:n_q]), np.abs(step)
            size = float(np.max(step / np.maximum(q, typical_coordinates)))
            if (
                np.all(step <= np.maximum(_CONVERGED_STEP_FRACTION * q, _EPSILON * typical_coordinates))
                or last_size / _STALLED_STEP_RATIO <= size <= _ROUND_OFF_STEP_FRACTION
            ):
                break
            last_size = size
        else:
            if self.equations.position_rows:
                raise _make_projection_error(t)
        if not self.has_state_constraints:
            return x
        values = self._values(t, x, r, prepared)
        A, b = self._rows(self._constraints(values))
        u = x[n_q : n_q + self.n_u]
        x[n_q : n_q + self.n_u] = u - _solve_least_norm(A, A @ u + b, speed_units)
        return x

    def _residual(self, values: list[float], u: Floats, constraints: list[float]) -> Floats:
        """Return φ(q, t) and A u + b, one after the other."""
        A, b = self._rows(constraints)
        return np.concatenate([np.array(self._holonomic(values), dtype=float), A @ u + b])

    def _rows(self, constraints: list[float]) -> tuple[Floats, Floats]:
        """Return A, shape (m, n_u), and b from the evaluated entries."""
        n = self.m * self.n_u
        return np.array(constraints[:n], dtype=float).reshape(self.m, self.n_u), np.array(constraints[n:], dtype=float)

    def _advance(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float]
    ) -> tuple[list[float], list[float], Floats, float]:
        """Return slots filled up to u', the constraints' entries, x' and power."""
        n_q, n_u, n_i = self.n_q, self.n_u, len(self._independent)
        state = x.tolist()
        u = [0.0] * n_u
        for i, value in zip(self._independent, state[n_q : n_q + n_i], strict=True):
            u[i] = value
        values = [t, *state[:n_q], *u, *state[n_q + n_i :], *r, *prepared]
        values += self._blank_values[len(values) :]
        constraints = self._constraints(values)
        if self._dependent:
            A, b = self._rows(constraints)
            independent_terms = A[:, self._independent] @ x[n_q : n_q + n_i] + b
            dependent_speeds = solve_linear_system(
                A[:, self._dependent], -independent_terms[:, None], "the dependent speeds"
            )[:, 0]
            for i, value in zip(self._dependent, dependent_speeds.tolist(), strict=True):
                values[1 + n_q + i] = value
        numbers = self._dynamics(values)
        u_dot = self._accelerations(values, numbers[n_q:], constraints)
        values[self._u_dot : self._u_dot + n_u] = u_dot.tolist()
        self._set_multipliers(values, numbers[n_q:], constraints, u_dot)
        *z_dot, power = self._late_plan(values)
        return values, constraints, np.array([*numbers[:n_q], *u_dot[self._independent], *z_dot]), power

    def _split_dynamics(self, numbers: Sequence[float]) -> tuple[Floats, Floats, Floats]:
        """Return M, shape (rows, n_u), f and gamma, from these row by row."""
        rows, n_u = self.rows, self.n_u
        M = np.array(numbers[: rows * n_u]).reshape(rows, n_u)
        return M, np.array(numbers[rows * n_u : rows * n_u + rows]), np.array(numbers[rows * n_u + rows :])

    def _set_multipliers(
        self, values: list[float], numbers: Sequence[float], constraints: list[float], u_dot: Floats
    ) -> None:
        """Set λ of least norm in A^T λ = f - M u', if outputs need it."""
        if not self._needs_multipliers:
            return
        M, f, _ = self._split_dynamics(numbers)
        A, _ = self._rows(constraints)
        speed_units = self.typical[self.n_q :]
        multipliers = np.linalg.lstsq(
            (A * speed_units).T, speed_units * (f - M @ u_dot), rcond=self._rank_tolerance(values)
        )[0]
        values[self._multipliers : self._multipliers + self.m] = multipliers.tolist()

    def _rank_tolerance(self, values: list[float]) -> float:
        """Return the fraction of A's largest singular value (speeds in own units) below which others count as zero.

        Rows that are redundant on the constraints need not be so beside them: five closing conditions of a Bricard
        mechanism have rank four where it is closed, but a fifth singular value as large as the distance from there,
        and stages of a Runge-Kutta method are off by some distance. It would take the mechanism its only freedom.
        """
        if not self.equations.position_rows:
            return _REDUNDANT_ROW_TOLERANCE
        phi = np.array(self._holonomic(values), dtype=float)
        G = np.array(self._holonomic_slopes(values)).reshape(len(phi), self.n_q)
        typical_coordinates = self.typical[: self.n_q]
        return max(
            _REDUNDANT_ROW_TOLERANCE,
            _ROW_ROTATION_RATE
            * float(np.linalg.norm(_solve_least_norm(G, phi, typical_coordinates) / typical_coordinates)),
        )

    def _accelerations(self, values: list[float], numbers: list[float], constraints: list[float]) -> Floats:
        """Return accelerations u' of all speeds from M, f, gamma (row by row) and A, at the slots' state."""
        M, f, gamma = self._split_dynamics(numbers)
        if not self.m:
            return solve_linear_system(M, f[:, None], "the accelerations")[:, 0]
        A, _ = self._rows(constraints)
        if self.rows < self.n_u:
            stacked_matrix = np.concatenate([M, A])
            return solve_linear_system(stacked_matrix, np.concatenate([f, -gamma])[:, None], "the accelerations")[:, 0]
        # Null space: A D = U S Vt, D the units of the speeds; u' = D (v_p + Z w) with A D Z = 0, and
        # Z^T D (M u' - f) = 0 removes the multipliers.
        speed_units = self.typical[self.n_q :]
        M, f = speed_units[:, None] * M * speed_units, speed_units * f
        U, S, Vt = np.linalg.svd(A * speed_units)
        rank = int(np.count_nonzero(self._rank_tolerance(values) * S[0] < S))
        particular = Vt[:rank].T @ ((U.T[:rank] @ -gamma) / S[:rank])
        Z = Vt[rank:].T
        w = solve_linear_system(Z.T @ M @ Z, (Z.T @ (f - M @ particular))[:, None], "the accelerations")[:, 0]
        return np.asarray(speed_units * (particular + Z @ w))
