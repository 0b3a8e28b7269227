"""The reference: a model's experiment integrated directly, sharing as little with the FMU as possible."""

from __future__ import annotations

import itertools
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import scipy
import sympy as sm

from mb2fmu.equations.motion import DIAGNOSTICS, EquationsOfMotion
from mb2fmu.mechanism import Mechanism
from mb2fmu.model.definition import ModelDefinition
from mb2fmu.validation.collocation import integrate_stiff
from mb2fmu.validation.conditions import Conditions, conditions
from mb2fmu.validation.integration import TIGHTEST, HeldSlope, Slope, explicit_euler, integrate
from mb2fmu.validation.newton_euler import NewtonEuler
from mb2fmu.validation.numeric import NumericEquations
from mb2fmu.validation.trajectory import Trajectory

Floats = npt.NDArray[np.float64]
Kind = Literal["coordinate", "speed", "state", "output"]

COARSE = 1e-12
STRIDE = 4
SCOUT = 1e-6
SCOUTED = 200
BUDGET = 5_000_000
STIFF_BUDGET = 100_000
_NOTHING = 1e-15  # in SI units, of a state that is zero but for round-off


@dataclass(frozen=True, slots=True)
class Variable:
    """A compared variable: FMU name, what it is, its unit."""

    name: str
    kind: Kind
    unit: str


@dataclass(frozen=True, slots=True)
class Balance:
    """A quantity of the reference that should vanish.

    Attributes:
        name: What balances.
        formula: How it is computed.
        values: Relative to ``scale``, shape (n_t,).
        scale: In ``unit``.
        unit: Of ``scale``.
    """

    name: str
    formula: str
    values: Floats
    scale: float
    unit: str

    @property
    def worst(self) -> float:
        """The largest magnitude."""
        return float(np.max(np.abs(self.values)))


@dataclass(frozen=True, slots=True)
class Reference:
    """A trajectory with all that is needed to judge others by it.

    Attributes:
        trajectory: All coordinates, speeds (dependent ones too), auxiliary states and outputs.
        variables: One per column of the trajectory.
        states: x = (q, independent u, z) at each communication point, shape (n_t, n_x).
        state_columns: Columns of the trajectory that hold x.
        state_scales: Magnitude of each state, > 0, shape (n_x,).
        work: Integrated power delivered to the mechanism since t = 0, J, shape (n_t,).
        balances: The reference's own: energy, constraints.
        numeric: The equations as functions of numbers.
        conditions: The experiment.
    """

    trajectory: Trajectory
    variables: tuple[Variable, ...]
    states: Floats
    state_columns: tuple[int, ...]
    state_scales: Floats
    work: Floats
    balances: tuple[Balance, ...]
    numeric: NumericEquations
    conditions: Conditions

    @property
    def work_scale(self) -> float:
        """Magnitude of the work in J: of the energies that it is held against, > 0 where nothing moves too."""
        energies = [balance.scale for balance in self.balances if balance.name == "energy"]
        return largest_or_one(np.array([*self.work, *energies]))

    def undetermined(self) -> float | None:
        """When the motion first passes a position where the dependent speeds follow from no others, s; None: never.

        Found where the determinant that they are solved with changes its sign between communication points.
        """
        run, numeric = self.conditions, self.numeric
        if not numeric.m or not numeric.equations.u_dependent:
            return None
        prepared = numeric.prepare(run.parameters)
        signs = [numeric.determinacy(float(t), x, prepared) for t, x in zip(run.time, self.states, strict=True)]
        changes = np.flatnonzero(np.array(signs) * signs[0] < 0)
        return float(run.time[changes[0]]) if len(changes) else None


def largest_or_one(values: Floats) -> float:
    """The largest one; 1 where all are zero but for round-off."""
    largest = float(np.max(np.abs(values), initial=0.0))
    return largest if largest > _NOTHING else 1.0


def make_reference(
    definition: ModelDefinition,
    equations: EquationsOfMotion,
    *,
    experiment: Conditions | None = None,
    mechanism: Mechanism | None = None,
    numeric: NumericEquations | None = None,
) -> Reference:
    """Integrates the equations over the experiment, twice: the difference is the reference's uncertainty.

    Method: Dormand-Prince 8(5, 3) with relative tolerance 2.3e-14 from communication point to communication point,
    inputs held in between. A second run has tolerance 1e-12 and longer steps: it lands on every fourth point only, or,
    where inputs change, takes one step where the first takes two. The uncertainty of a value is the running maximum of
    the difference between the two, plus 64 units of round-off of the variable's largest magnitude. Inputs jump at
    communication points: values there are those at the end of the step before (as an FMU shows them after ``doStep``).
    Where the model says stiff, both runs are made by Radau IIA collocation of order 13 instead.

    Args:
        definition: The checked model: names, experiment.
        equations: Of another formulation than the FMU's.
        experiment: Other numbers than the model's default experiment.
        mechanism: Given: the accelerations come from it by Newton-Euler, numerically; ``equations`` give outputs only.
        numeric: Of another reference of the same equations and mechanism, so that they are compiled once.

    Raises:
        ValidationError: If the experiment cannot be run: bad signals, singular or stiff equations.
    """
    run, equations = experiment or conditions(definition), comparable(equations)
    numeric = numeric or (NewtonEuler(mechanism, equations) if mechanism else NumericEquations(equations))
    prepared = numeric.prepare(run.parameters)
    start = np.concatenate([start_state(numeric, run), [0.0]])
    scout = solve(numeric, run.thinned(SCOUTED)[0], start, SCOUT, np.ones_like(start))
    scales = magnitudes(scout, numeric)
    fine = solve(numeric, run, start, TIGHTEST, scales, parts=1 if run.steady else 2)
    variables = describe(definition, equations)
    values, kinetic, residual = observe(numeric, run, fine[:, :-1], prepared)
    trajectory = Trajectory(
        names=tuple(v.name for v in variables),
        time=run.time,
        values=values,
        uncertainty=_uncertainty(numeric, run, start, scales, values),
        provenance=provenance(definition, numeric, run),
    )
    return Reference(
        trajectory=trajectory,
        variables=variables,
        states=fine[:, :-1],
        state_columns=state_columns(numeric),
        state_scales=scales[:-1],
        work=fine[:, -1],
        balances=balances(equations, kinetic, fine[:, -1], residual, values),
        numeric=numeric,
        conditions=run,
    )


def _uncertainty(numeric: NumericEquations, run: Conditions, start: Floats, scales: Floats, values: Floats) -> Floats:
    """Running maximum of the difference to a coarser run, and round-off; the shape of ``values``."""
    coarse, rows = run.thinned((len(run.time) - 1) // STRIDE)
    rough = solve(numeric, coarse, start, COARSE, scales)
    seen, _, _ = observe(numeric, coarse, rough[:, :-1], numeric.prepare(run.parameters))
    difference = np.maximum.accumulate(np.abs(values[rows] - seen), axis=0)
    # Between the points of the coarser run: what it is at the next one.
    everywhere = difference[np.searchsorted(rows, np.arange(len(values)))]
    return np.asarray(everywhere + 64 * np.finfo(float).eps * np.max(np.abs(values), axis=0))


def solve(
    numeric: NumericEquations, run: Conditions, start: Floats, tolerance: float, scales: Floats, *, parts: int = 1
) -> Floats:
    """(x, W) at each communication point, shape (n_t, n_x + 1), from ``start`` = (x, W).

    Raises:
        ValidationError: See :func:`mb2fmu.validation.integration.integrate`.
    """
    if run.stiff:
        return integrate_stiff(held_slope(numeric, run), run.time, start, tolerance, scales, STIFF_BUDGET)
    slope = held_slope(numeric, run)
    return integrate(slope, run.time, start, tolerance, scales, BUDGET, parts, onto_constraints(numeric, run))


def onto_constraints(numeric: NumericEquations, run: Conditions) -> Callable[[float, Floats], Floats] | None:
    """The projection of (x, W) onto the constraints; None where no states are held by them."""
    if not numeric.constrained:
        return None
    prepared = numeric.prepare(run.parameters)
    return lambda t, y: np.append(numeric.project(t, y[:-1], prepared), y[-1])


def held_slope(numeric: NumericEquations, run: Conditions) -> HeldSlope:
    """For step k the slope of (x, W) with the inputs of that step."""
    prepared = numeric.prepare(run.parameters)

    def during(k: int) -> Slope:
        """The slope while the inputs of step k hold."""
        r: Sequence[float] = run.inputs[k].tolist()

        def slope(t: float, y: Floats) -> Floats:
            x_dot, power = numeric.x_dot(t, y[:-1], r, prepared)
            return np.append(x_dot, power)

        return slope

    return during


def start_state(numeric: NumericEquations, run: Conditions) -> Floats:
    """x at t = 0 from the start values; independent speeds keep theirs, dependent ones follow."""
    u = [run.u[i] for i in numeric.equations.u_independent]
    return numeric.project(0.0, np.array([*run.q, *u, *run.z]), numeric.prepare(run.parameters))


def state_columns(numeric: NumericEquations) -> tuple[int, ...]:
    """Where x = (q, independent u, z) stands among the compared variables (q, all u, z, outputs)."""
    n_q, n_u, n_z = numeric.n_q, numeric.n_u, numeric.n_z
    speeds = (n_q + i for i in numeric.equations.u_independent)
    return (*range(n_q), *speeds, *range(n_q + n_u, n_q + n_u + n_z))


def magnitudes(y: Floats, numeric: NumericEquations) -> Floats:
    """Largest magnitude of each state and of the work; one that hardly moves gets that of its kind (q, u, z), or 1.

    A kind that is nothing but round-off does not move: the angles of a bicycle that goes straight on.
    """
    largest = np.max(np.abs(y), axis=0)
    nothing = max(_NOTHING, 64 * float(np.finfo(float).eps) * float(np.max(largest, initial=0.0)))
    n_q, n_x = numeric.n_q, numeric.n_x
    ends = [0, n_q, n_x - numeric.n_z, n_x, n_x + 1]
    for begin, end in itertools.pairwise(ends):
        group = largest[begin:end]
        if len(group):
            group[group <= 1e-6 * max(group)] = max(group)
    largest[largest <= nothing] = 1.0
    return np.asarray(largest)


def observe(
    numeric: NumericEquations, run: Conditions, states: Floats, prepared: Sequence[float]
) -> tuple[Floats, Floats, Floats]:
    """All compared variables (n_t, n), kinetic energy (n_t,) and constraint residuals (n_t, n_phi + m)."""
    n_q, n_z = numeric.n_q, numeric.n_z
    rows, kinetic, residual = [], [], []
    for k, x in enumerate(states):
        motion = numeric.motion(float(run.time[k]), x, run.held(k).tolist(), prepared)
        rows.append(np.concatenate([x[:n_q], motion.u, x[len(x) - n_z :], motion.outputs]))
        kinetic.append(motion.kinetic)
        residual.append(motion.residual)
    return np.array(rows), np.array(kinetic), np.array(residual)


def describe(definition: ModelDefinition, equations: EquationsOfMotion) -> tuple[Variable, ...]:
    """The compared variables: coordinates, speeds, auxiliary states, outputs."""
    return (
        *(Variable(c.name, "coordinate", c.unit) for c in definition.coordinates),
        *(Variable(s.name, "speed", s.unit) for s in definition.speeds),
        *(Variable(z.name, "state", z.unit) for z in definition.auxiliary_states),
        *(Variable(o.name, "output", o.unit) for o in comparable(equations).outputs),
    )


def comparable(equations: EquationsOfMotion) -> EquationsOfMotion:
    """Without outputs that say something of a unit's own numbers, which no reference can know."""
    outputs = tuple(o for o in equations.outputs if not o.expression.free_symbols & DIAGNOSTICS.all)
    return replace(equations, outputs=outputs)


def largest_of_unit(variables: tuple[Variable, ...], values: Floats) -> Floats:
    """For each variable the largest magnitude among all of the same unit, shape (n,).

    1 where all are 0. Where they are nothing but what round-off leaves of larger values that cancel (torques about a
    point through which every force goes), that is below 1e-13 of the largest value of any unit, that value.
    """
    largest = np.max(np.abs(values), axis=0)
    overall = float(np.max(largest, initial=0.0))
    units = [v.unit for v in variables]
    of_unit = [max(m for m, u in zip(largest, units, strict=True) if u == unit) or 1.0 for unit in units]
    return np.array([magnitude if magnitude > 1e-13 * overall else overall for magnitude in of_unit])


def balances(
    equations: EquationsOfMotion, kinetic: Floats, work: Floats, residual: Floats, values: Floats
) -> tuple[Balance, ...]:
    """Energy balance (T - T(0) - W over the larger of T's maximum and W's range) and constraint residuals."""
    found = []
    if equations.energy.kinetic is not None and equations.energy.balanced:
        scale = largest_or_one(np.array([np.max(np.abs(kinetic)), np.ptp(work)]))
        found.append(Balance("energy", "T(t) − T(0) − W(t)", (kinetic - kinetic[0] - work) / scale, scale, "J"))
    if residual.shape[1]:
        n_q = len(equations.q)
        n_phi = len(equations.holonomic)
        speeds = values[:, n_q : n_q + len(equations.u)]
        scales = (largest_or_one(values[:, :n_q]), largest_or_one(speeds))
        for name, part, scale in (
            ("position constraints", residual[:, :n_phi], scales[0]),
            ("velocity constraints", residual[:, n_phi:], scales[1]),
        ):
            if part.shape[1]:
                formula = "φ(q, t)" if name.startswith("position") else "A u + b"
                found.append(Balance(name, formula, np.max(np.abs(part), axis=1) / scale, scale, "1"))
    return tuple(found)


def provenance(definition: ModelDefinition, numeric: NumericEquations, run: Conditions) -> dict[str, object]:
    """What made a reference; nothing of day, place or machine beyond the versions that its digits may depend on."""
    return {
        "model": definition.name,
        "formulation": numeric.formulation,
        "evaluation": "sympy.lambdify(cse=True), scalar",
        "integrator": f"{'Radau IIA 13' if run.stiff else 'DOP853'}, every communication step by itself, inputs held",
        "tolerances": [TIGHTEST, COARSE],
        "stop": float(run.time[-1]),
        "step": run.step,
        "parameters": dict(
            zip((p.name for p in definition.parameters if not p.calculated), run.parameters, strict=True)
        ),
        "signals": dict(run.signals),
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "sympy": sm.__version__,
        },
    }


def by_euler(
    definition: ModelDefinition, equations: EquationsOfMotion, step: float, *, experiment: Conditions | None = None
) -> Trajectory:
    """The same experiment by explicit Euler with a fixed step in s: for results that others published so.

    No uncertainty is claimed (zeros): the steps are what is asked for, not the motion.

    Raises:
        ValidationError: As :func:`make_reference`.
    """
    run = experiment or conditions(definition)
    numeric = NumericEquations(equations)
    start = np.append(start_state(numeric, run), 0.0)
    states = explicit_euler(held_slope(numeric, run), run.time, start, step)[:, :-1]
    values, _, _ = observe(numeric, run, states, numeric.prepare(run.parameters))
    names = tuple(v.name for v in describe(definition, equations))
    origin = provenance(definition, numeric, run) | {
        "integrator": f"explicit Euler, step {step!r} s",
        "tolerances": [],
    }
    return Trajectory(names, run.time, values, np.zeros_like(values), origin)
