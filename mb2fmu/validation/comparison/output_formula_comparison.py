"""Outputs of mechanisms with events, written again from bodies and loads, mode by mode along the reference.

Where x' of the reference comes from another formulation's equations, FMU and reference have one formula of each output.
Here the outputs are written as the reference of smooth mechanisms writes them (``observables``, ``joint_wrenches``):
points, frames, momenta and masses in numbers, forces in cuts by Newton's and Euler's laws of the bodies beyond.
They are evaluated at instants of the reference in all of its modes, with the reference's x' and what friction,
contacts and latches hold there, and compared with what the reference recorded.

Multipliers λ and unknown forces c come from M u' + Aᵀ λ = f(c) + Σ Gᵀ N over all speeds, with the forces N of contacts
and latches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import sympy as sm

from mb2fmu.errors import ValidationError
from mb2fmu.mechanics.mechanism import Mechanism
from mb2fmu.mechanics.mechanism.numeric.numeric_mechanism_evaluation import MechanismEvaluator
from mb2fmu.mechanics.mechanism.records.mechanism_records import ForceLoad, Load, PathwayLoad, TorqueLoad, VectorTerms
from mb2fmu.mechanics.mechanism.records.output_and_joint_records import ExpressionOutput, OutputRecord, RequestedOutput
from mb2fmu.validation.evaluation_plans.expression_evaluation_plan import EvaluationPlanner
from mb2fmu.validation.evaluation_plans.kinematic_quantities import evaluate_kinematic_quantities
from mb2fmu.validation.modes.hybrid_equations_recognition import is_hybrid
from mb2fmu.validation.reference.reference_run import ReferenceRun
from mb2fmu.validation.reference_equations.numeric_equations import NumericEquations
from mb2fmu.validation.reference_equations.observables import form_observable_expressions

Floats = npt.NDArray[np.float64]

_MAX_INSTANTS = 40
"""Of one reference; shared among its modes."""
_ROUND_OFF = 4096 * float(np.finfo(float).eps)
_RELATIVE_CHANGE = 2.0**-22
_CHANGE_COUNT = 2
_REDUNDANT_ROW_TOLERANCE = 1e-9
_Change = Callable[[Any], Floats]


@dataclass(frozen=True, slots=True)
class ReferenceOutputComparison:
    """The reference's outputs against the same ones written from bodies and loads.

    Attributes:
        errors: (error over bound, output and time).
        instants: At how many.
        left_out: Names of outputs that could not be evaluated.
    """

    errors: tuple[tuple[float, str], ...]
    instants: int
    left_out: tuple[str, ...]


def compare_output_formulas(
    mechanism: Mechanism, references: Sequence[ReferenceRun]
) -> ReferenceOutputComparison | None:
    """Compare the outputs that a mechanism computes, and expressions of what is solved for.

    It is None where it has none, or the reference writes them so itself.

    Args:
        mechanism: As it was imported.
        references: Of one mechanism; the equations as functions of numbers are the first one's.
    """
    unknowns = {*mechanism.multipliers, *mechanism.constraint_forces}
    requests = tuple(
        output
        for output in mechanism.outputs
        if isinstance(output, RequestedOutput)
        or (isinstance(output, ExpressionOutput) and output.expression.free_symbols & unknowns)
    )
    numeric = references[0].numeric
    if not requests or numeric.mechanism is not None or not mechanism.bodies:
        return None
    observed = _OutputsFromBodyQuantities(mechanism, numeric, requests)
    if not observed.names:
        return None
    errors: list[tuple[float, str]] = []
    instants = 0
    for reference in references:
        for k in choose_comparison_instants(reference):
            instants += 1
            errors += observed.compare(reference, k)
    return ReferenceOutputComparison(tuple(errors), instants, (*observed.left_out, *(() if errors else observed.names)))


def choose_comparison_instants(reference: ReferenceRun) -> list[int]:
    """Return communication points: some of each mode, evenly spread over the time that it is taken."""
    numeric, count = reference.numeric, len(reference.experiment.time)
    points_by_mode: dict[tuple[float, ...], list[int]] = {}
    for k in range(count):
        key = numeric.list_modes(reference.states[k], reference.modes[k]) if is_hybrid(numeric) else ()
        points_by_mode.setdefault(key, []).append(k)
    modes = _spread([*points_by_mode.values()], _MAX_INSTANTS)
    share = max(1, _MAX_INSTANTS // len(modes))
    return sorted(k for points in modes for k in _spread(points, share))


def _spread(items: Sequence[Any], count: int) -> list[Any]:
    """Return at most so many items, evenly spread."""
    places = np.unique(np.linspace(0, len(items) - 1, min(count, len(items))).round().astype(int))
    return [items[k] for k in places.tolist()]


class _OutputsFromBodyQuantities:
    """Outputs of a mechanism in quantities of its bodies, at instants of a reference.

    Args:
        mechanism: With bodies.
        numeric: The reference's equations.
        requests: The outputs.
    """

    def __init__(self, mechanism: Mechanism, numeric: NumericEquations, requests: Sequence[OutputRecord]) -> None:
        m, e = mechanism, numeric.equations
        self._numeric, self._mechanism_speeds = numeric, len(m.u)
        self._auxiliary = np.zeros(len(m.u_auxiliary))
        freeze = numeric.frozen.replace_switches if is_hybrid(numeric) else lambda each: each
        observables = form_observable_expressions(replace(m, outputs=tuple(requests)), e)
        self._quantities = observables.kinematic_quantities.all
        expressions = {o.name: freeze(o.expression) if o.events else o.expression for o in observables.outputs}
        pathway_symbols = {assignment.symbol for assignment in observables.pathways}
        own_intermediates = [i for i in e.intermediates if getattr(i, "symbol", None) not in pathway_symbols]
        self._unknowns = (*m.multipliers, *m.constraint_forces)
        given = [e.t, *e.q, *e.u, *e.z, *e.r, *e.p, *(c.symbol for c in e.calculated_parameters)]
        slots = [*given, *observables.kinematic_quantities.symbols, *e.u_dot, *self._unknowns]
        planner = EvaluationPlanner(
            (*observables.pathways, *own_intermediates), {symbol: place for place, symbol in enumerate(slots)}
        )
        known = {*slots, *_list_defined_symbols(planner.intermediates)}
        self.left_out = [name for name, expression in expressions.items() if not expression.free_symbols <= known]
        self.names = [name for name in expressions if name not in self.left_out]
        place_by_name = {output.name: place for place, output in enumerate(e.outputs)}
        self._columns = [place_by_name[name] for name in self.names]
        needed = set().union(*(expressions[name].free_symbols for name in self.names))
        self._needs_unknowns = bool(needed & {*self._unknowns})
        rows = [*(m.contacts.rows if m.contacts else ()), *(m.latches.rows if m.latches else ())]
        row_forces = [sm.Add(*(each.jacobian[i] * each.force for each in rows)) for i in range(len(m.u))]
        auxiliary_rows = [] if m.auxiliary_rows is None else [*m.auxiliary_rows]
        self._row_forces = planner.plan([*map(freeze, row_forces), *auxiliary_rows], keep=False)
        self._outputs = planner.plan([expressions[name] for name in self.names], keep=False)
        self._slot_count, self._size = len(slots), planner.size
        loads, potential_forces = (_replace_in_load(load, freeze) for load in m.loads), map(freeze, m.potential_forces)
        in_modes = replace(m, outputs=(), z_dot=(), loads=(*loads,), potential_forces=(*potential_forces,), r=e.r)
        self._bodies = MechanismEvaluator(in_modes)

    def compare(self, reference: ReferenceRun, k: int) -> Iterator[tuple[float, str]]:
        """Yield error over bound of each output at a communication point."""
        run, x = reference.experiment, reference.states[k]
        t, r, prepared = float(run.time[k]), run.inputs_at(k).tolist(), self._numeric.prepare(run.parameters)
        if is_hybrid(self._numeric):
            own_inputs = self._numeric.find_observed_values(t, x, r, prepared, reference.modes[k])
            x_dot = self._numeric.evaluate_in_modes(t, x, r, prepared, own_inputs).motion.x_dot
            r = [*r, *own_inputs.tolist()]
        else:
            x_dot, _ = self._numeric.x_dot(t, x, r, prepared)
        n_q, n_u, n_z = self._numeric.n_q, self._numeric.n_u, self._numeric.n_z
        recorded = reference.trajectory.values[k]
        q, u, z = x[:n_q], recorded[n_q : n_q + n_u], x[len(x) - n_z :]
        self._bodies.set_state(t, q, np.concatenate([u, self._auxiliary]), z, np.array(r), np.array(prepared))
        given, rates = [t, *q.tolist(), *u.tolist(), *z.tolist(), *r, *prepared], x_dot[n_q : len(x) - n_z]
        try:
            own_values = self._evaluate(given, rates, None)
            random = np.random.default_rng(k)
            changed = [self._evaluate(given, rates, random) for _ in range(_CHANGE_COUNT)]
        except (ArithmeticError, ValueError, ValidationError):
            return  # a formula has no number there
        columns = [n_q + n_u + n_z + place for place in self._columns]
        spread = np.max(np.abs(np.array(changed) - own_values), axis=0) / _RELATIVE_CHANGE
        bounds = _ROUND_OFF * (np.abs(own_values) + spread + reference.scales[columns])
        ratios = np.abs(recorded[columns] - own_values) / bounds
        for name, ratio in zip(self.names, np.where(np.isfinite(ratios), ratios, np.inf).tolist(), strict=True):
            yield ratio, f"{name} at t = {t:.4g} s"

    def _evaluate(self, given: list[float], rates: Floats, random: np.random.Generator | None) -> Floats:
        """Return the outputs at u' of the independent speeds.

        Args:
            given: Values of the first slots.
            rates: Shape (independent speeds,).
            random: All numbers that the outputs are made of are changed a little; None: they are not.
        """

        def change(numbers: Any) -> Floats:
            """Return numbers, changed by a small part of each."""
            array = np.asarray(numbers, dtype=float)
            return array if random is None else array * (1 + _RELATIVE_CHANGE * random.choice([-1.0, 1.0], array.shape))

        u_dot = self._complete_accelerations(rates, change)
        all_rates = np.concatenate([u_dot, self._auxiliary])
        quantities = evaluate_kinematic_quantities(self._quantities, self._bodies, all_rates)
        values = change([*given, *quantities, *u_dot, *([0.0] * len(self._unknowns))]).tolist()
        values += [0.0] * (self._size - len(values))
        if self._needs_unknowns:
            first = self._slot_count - len(self._unknowns)
            values[first : self._slot_count] = self._solve_unknowns(values, all_rates, change).tolist()
        return np.array(self._outputs(values), dtype=float)

    def _complete_accelerations(self, rates: Floats, change: _Change) -> Floats:
        """Return u' of all speeds: those of dependent ones follow from the constraints' rates."""
        e, u_dot = self._numeric.equations, np.zeros(self._numeric.n_u)
        independent, dependent = list(e.u_independent), list(e.u_dependent)
        u_dot[independent] = change(rates)
        if dependent:
            A, _, gamma = map(change, self._bodies.velocity_constraint_terms())
            u_dot[dependent] = np.linalg.solve(A[:, dependent], -gamma - A[:, independent] @ u_dot[independent])
        return u_dot

    def _solve_unknowns(self, values: list[float], all_rates: Floats, change: _Change) -> Floats:
        """Return λ of least norm and unknown forces by which the bodies move as they do."""
        n, count = self._mechanism_speeds, len(self._unknowns)
        own = self._row_forces(values)
        A = change(self._bodies.velocity_constraint_terms()[0])
        auxiliary_rows = np.reshape(own[n:] or np.zeros(len(A) * len(self._auxiliary)), (len(A), len(self._auxiliary)))
        rows = np.concatenate([A, auxiliary_rows], axis=1)
        M, f = (change(each) for each in self._bodies.unconstrained_mass_and_forcing())
        unit_forces = np.eye(count - len(A))
        columns = [change(self._bodies.unconstrained_mass_and_forcing(each)[1]) - f for each in unit_forces.tolist()]
        f[:n] += own[:n]
        sizes = np.sqrt(np.abs(np.diag(M)))
        sizes[sizes == 0.0] = 1.0
        matrix = np.column_stack([rows.T, *(-column for column in columns)]) / sizes[:, None]
        right_side = (f - M @ all_rates) / sizes
        return np.asarray(np.linalg.lstsq(matrix, right_side, rcond=_REDUNDANT_ROW_TOLERANCE)[0])


def _list_defined_symbols(intermediates: Sequence[Any]) -> Iterator[sm.Symbol]:
    """Yield the symbols that intermediates define."""
    for item in intermediates:
        yield from (item.symbol,) if hasattr(item, "symbol") else item.unknowns


def _replace_in_load(load: Load, freeze: Any) -> Load:
    """Return a load with the switches of its size replaced."""

    def replace_in_terms(terms: VectorTerms) -> VectorTerms:
        """Return a vector with the switches of its components replaced."""
        return tuple((frame, (freeze(x), freeze(y), freeze(z))) for frame, (x, y, z) in terms)

    match load:
        case ForceLoad():
            return replace(load, force=replace_in_terms(load.force))
        case TorqueLoad():
            return replace(load, torque=replace_in_terms(load.torque))
        case PathwayLoad():
            return replace(load, force=freeze(load.force))
    return replace(load, torque=freeze(load.torque), axis=replace_in_terms(load.axis))
