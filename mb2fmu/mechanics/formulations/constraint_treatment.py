"""``apply_constraint_treatment``: choose how the equations of an FMU treat holonomic constraints (closed loops).

- **attractor**: all q and u are states; x' = f(P(x)) − rate (x − P(x)), P the projection onto the constraints. Nothing
  is chosen that may become wrong on the way: no independent coordinates, no branch, no memory.
- **multipliers**: all q and u are states; the constraints' second derivatives hold, and their values drift by what
  integration errs, or are drawn back by Baumgarte's terms. Fewest operations.
- **explicit**: independent q and u are states; dependent coordinates are in closed form of them (``loops``), dependent
  speeds and all accelerations follow from A u + b = 0. For loops of known kinds.

Source of the latter: Baumgarte, Computer Methods in Applied Mechanics and Engineering 1 (1972) 1-16.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt
import sympy as sm

from mb2fmu.errors import Fault, FormulationError
from mb2fmu.mechanics.equations.equations_of_motion import (
    ClosedFormLoopSolution,
    EquationsOfMotion,
    Treatment,
    VelocityConstraints,
)
from mb2fmu.mechanics.mechanism.numeric.numeric_constraints import ConstraintEvaluator
from mb2fmu.mechanics.mechanism.records.mechanism_records import Mechanism
from mb2fmu.mechanics.mechanism.sympy_import.kinematic_consistency_checks import free_parameter_values
from mb2fmu.mechanics.mechanism.sympy_import.redundant_constraint_search import (
    compute_row_norm_divisors,
    find_redundant_constraints,
    typical_row_lengths,
)
from mb2fmu.model.quantity_declarations import Parameter
from mb2fmu.model.scales.characteristic_units import choose_stabilization_rate

if TYPE_CHECKING:
    from mb2fmu.mechanics.formulations.loops import ClosedFormLoops

Floats = npt.NDArray[np.float64]
TreatmentOption = Literal["auto", "attractor", "multipliers", "explicit", "partition"]
_MIN_SINGULAR_VALUE = 1e-6  # smallest singular value of the dependent columns, as a part of the largest of all
_PARTITION_HEADLINE = "the coordinates cannot be partitioned:"
_TREATMENT_HEADLINE = "the constraints cannot be treated so:"
_TREATMENT_REASONS = {
    "auto": "attractor, which has no position where it fails: all coordinates and speeds are states, stabilized on "
    "the constraints",
    "attractor": "attractor, as requested: all coordinates and speeds are states, stabilized on the constraints",
    "multipliers": "multipliers, as requested: all coordinates and speeds are states; their distance from the "
    "constraints grows with the errors of the integration",
    "partition": "partition, as requested: the states are independent, the others by Newton's method from the last "
    "ones",
}
_HOLDING_REASON = (
    "multipliers, as requested: all coordinates and speeds are states; since contacts, latches or friction may hold a "
    "motion still, they are drawn back to the constraints"
)
_EXPLICIT_REASONS = {
    "auto": "explicit, since couplings have no position where it fails: the states are independent, and the others in "
    "closed form of them",
    "explicit": "explicit, as requested: the states are independent, and the others in closed form of them",
}


def add_stabilization_rate_parameter(
    mechanism: Mechanism, requested: TreatmentOption | Treatment | None = "auto", baumgarte: float | None = None
) -> Mechanism:
    """Return the mechanism with the parameter ``constraints.rate`` added, where the requested treatment uses it.

    Args:
        mechanism: As read, its loops closed.
        requested: As for :func:`apply_constraint_treatment`.
        baumgarte: As for :func:`apply_constraint_treatment`; the parameter's value.
    """
    attracted = choose_stabilization_rate(mechanism.declared)
    rates = {"multipliers": baumgarte, "auto": attracted, "attractor": attracted}
    value = rates.get(requested or "auto")
    if not mechanism.holonomic or value is None:
        return mechanism
    m = mechanism
    names = {item.name for item in (*m.declared.quantities, *m.outputs)}
    symbols = {str(s) for s in (*m.p, *m.q, *m.u_all, *m.u_dot, *m.z, *m.r, *m.multipliers, *m.constraint_forces, m.t)}
    symbols |= {str(item.symbol) for item in m.calculated_parameters}
    symbol = sm.Symbol(_make_unique_name("constraints_rate", symbols))
    rate = Parameter(
        name=_make_unique_name("constraints.rate", names),
        symbol=symbol,
        value=value,
        unit="1/s",
        minimum=0.0,
        description="how fast states that are off the constraints of closed loops are drawn back to them",
    )
    declared = dataclasses.replace(m.declared, parameters=(*m.declared.parameters, rate))
    return dataclasses.replace(m, declared=declared, p=(*m.p, symbol), stabilization_rate=symbol)


def _make_unique_name(name: str, taken_names: set[str]) -> str:
    """Return a name that is not taken: underscores are appended until it is free."""
    while name in taken_names:
        name += "_"
    return name


@dataclass(frozen=True, slots=True)
class ConstraintTreatmentPlan:
    """Treatment of holonomic constraints, the same for every formulation.

    Attributes:
        treatment: None where there are none.
        reason: Why so, a clause; empty where there are none.
        baumgarte: Rate of the treatment ``multipliers``, 1/s; None: without.
        redundant: Names of rows that follow from others at the start.
        row_lengths: Typical length of each row of the velocity constraints, powers of ten.
        loops: Of the treatment ``explicit``.
        parts: Of the treatment ``_partition_coordinates``.
    """

    treatment: Treatment | None = None
    reason: str = ""
    baumgarte: float | None = None
    redundant: tuple[str, ...] = ()
    loops: ClosedFormLoops | None = None
    parts: CoordinatePartition | None = None
    row_lengths: tuple[float, ...] = ()

    def apply(self, equations: EquationsOfMotion) -> EquationsOfMotion:
        """Return the equations so treated."""
        equations = dataclasses.replace(equations, redundant=self.redundant, row_lengths=self.row_lengths)
        if self.treatment == "multipliers":
            rate = equations.attractor_rate
            if rate not in equations.p:
                rate = sm.Float(self.baumgarte or 0.0, 17)
            terms = None if self.baumgarte is None else (rate, rate)
            return dataclasses.replace(equations, treatment="multipliers", attractor_rate=None, baumgarte=terms)
        if self.loops is not None:
            loops = self.loops
            return _select_independent_states(
                equations, "explicit", loops.q_dependent, loops.u_dependent, loops.closed_forms, loops.reduction
            )
        if self.parts is not None:
            parts = self.parts
            return _select_independent_states(
                equations,
                "partition",
                parts.q_dependent,
                parts.u_dependent,
                warm_start=parts.last,
                warm_start_at=parts.place,
            )
        return equations


def plan_constraint_treatment(
    mechanism: Mechanism,
    requested: TreatmentOption = "auto",
    baumgarte: float | None = None,
    independent: Collection[str] = (),
) -> ConstraintTreatmentPlan:
    """Choose the treatment of the mechanism's holonomic constraints, with the reason.

    Args:
        mechanism: As read, its loops closed.
        requested: ``auto``, or one treatment.
        baumgarte: Of ``multipliers``: rate a in 1/s of A u' + γ + 2 a (A u + b) + a² φ = 0; None: γ alone, but where
            contacts, latches or friction may hold a motion: these would hold what the drift makes of it.
        independent: Of ``_partition_coordinates`` and ``explicit``: all independent coordinates' names; (): as the
            mechanics say.

    Raises:
        FormulationError: If there are no such constraints and one treatment was requested; if Baumgarte's terms do not
            belong to the treatment; if loops have no closed form and it was requested; if constraints are redundant and
            independent coordinates were requested.
    """
    _check_options(requested, baumgarte, independent)
    if not mechanism.holonomic:
        if requested != "auto":
            problem = f"the mechanism has no holonomic constraints: there is nothing to treat by {requested}"
            raise FormulationError(_TREATMENT_HEADLINE, [Fault(problem, remedy="leave it out")])
        return ConstraintTreatmentPlan()
    rows = find_redundant_constraints(mechanism)
    lengths = tuple(_round_to_power_of_ten(length) for length in typical_row_lengths(mechanism).tolist())
    _check_redundancy(rows.redundant_rows, requested)
    dependent = _dependent_coordinates(mechanism, independent)
    if requested in ("auto", "explicit"):
        loops = _solve_loops(mechanism, dependent) if requested == "explicit" else _solve_couplings(mechanism)
        if loops is not None:
            kinds = "; ".join(form.name for form in loops.closed_forms)
            return ConstraintTreatmentPlan(
                "explicit", f"{_EXPLICIT_REASONS[requested]}: {kinds}", loops=loops, row_lengths=lengths
            )
    reason = _TREATMENT_REASONS[requested]
    if requested == "multipliers" and baumgarte is None and mechanism.can_hold_motion:
        baumgarte = choose_stabilization_rate(mechanism.declared)
        reason = f"{_HOLDING_REASON}, at {baumgarte:g}/s"
    if rows.redundant_rows:
        reason += f"; redundant: {', '.join(rows.redundant_rows)}. "
        reason += f"How {', '.join(rows.undetermined_rows)} share their forces is not "
        reason += "determined: multipliers are those of least norm"
    if rows.redundant_at_start:
        redundant_names = ", ".join(rows.redundant_at_start)
        reason += f"; the start is a singular position, where others follow from the rest: {redundant_names}"
    if requested == "multipliers":
        return ConstraintTreatmentPlan("multipliers", reason, baumgarte, rows.redundant_rows, row_lengths=lengths)
    if requested == "partition":
        parts = _partition_coordinates(mechanism, dependent)
        free = ", ".join(c.name for i, c in enumerate(mechanism.declared.coordinates) if i not in parts.q_dependent)
        return ConstraintTreatmentPlan("partition", f"{reason}; independent: {free}", parts=parts, row_lengths=lengths)
    return ConstraintTreatmentPlan("attractor", reason, redundant=rows.redundant_rows, row_lengths=lengths)


def _round_to_power_of_ten(value: float) -> float:
    """Return the nearest power of ten: round-off of a machine must not change it."""
    return float(f"1e{round(math.log10(value))}")


def _check_options(requested: TreatmentOption, baumgarte: float | None, independent: Collection[str]) -> None:
    """Raise for options that belong to another treatment than the requested one."""
    faults = []
    if baumgarte is not None and (requested != "multipliers" or baumgarte <= 0.0):
        faults.append(
            Fault(f"Baumgarte's terms need multipliers and a positive rate, not {requested} and {baumgarte:g}")
        )
    if independent and requested not in ("partition", "explicit"):
        problem = f"independent coordinates are chosen for partition or explicit, not for {requested}"
        faults.append(Fault(problem, remedy="add --constraints partition, or name none"))
    if faults:
        raise FormulationError(_TREATMENT_HEADLINE, faults)


def _dependent_coordinates(mechanism: Mechanism, independent: Collection[str]) -> tuple[int, ...]:
    """Return the indices of the dependent coordinates when those are named as independent; () if none is named."""
    if not independent:
        return ()
    names = [c.name for c in mechanism.declared.coordinates]
    coordinate_list = f"the coordinates are {', '.join(names)}"
    faults = [Fault(f"{name} is no coordinate", remedy=coordinate_list) for name in independent if name not in names]
    free = len(names) - len(mechanism.holonomic)
    if not faults and len(set(independent)) != free:
        problem = f"{len(set(independent))} independent coordinates are named; {len(names)} coordinates under "
        problem += f"{len(mechanism.holonomic)} constraints have {free}"
        faults.append(Fault(problem, remedy=f"name {free}; {coordinate_list}"))
    if faults:
        raise FormulationError(_TREATMENT_HEADLINE, faults)
    return tuple(i for i, name in enumerate(names) if name not in independent)


def _check_redundancy(rows: Sequence[str], requested: TreatmentOption) -> None:
    """Raise where constraints are redundant and the treatment needs a dependent coordinate for each of them."""
    if not rows or requested not in ("explicit", "partition"):
        return
    problem = f"{', '.join(rows)}: redundant, since they follow from the other constraints wherever these hold; "
    problem += f"{requested} wants as many dependent coordinates as there are constraints"
    remedy = "leave these out of the mechanics, or let the constraints be treated by attractor or multipliers"
    raise FormulationError(_TREATMENT_HEADLINE, [Fault(problem, remedy=remedy)])


def _solve_loops(mechanism: Mechanism, dependent: Sequence[int]) -> ClosedFormLoops:
    """Return the closed forms of all loops; raise where one has none."""
    from mb2fmu.mechanics.formulations.loops import find_closed_form_loops

    return find_closed_form_loops(mechanism, dependent=dependent)


def _solve_couplings(mechanism: Mechanism) -> ClosedFormLoops | None:
    """Return the closed forms if all constraints are couplings (gears, belts), which have no singular position."""
    from mb2fmu.mechanics.formulations.loops import TransmissionLoopSolver, find_closed_form_loops

    try:
        loops = find_closed_form_loops(mechanism, (TransmissionLoopSolver(),))
    except FormulationError:
        return None
    return loops if all(form.kind == TransmissionLoopSolver.name for form in loops.closed_forms) else None


def apply_constraint_treatment(
    equations: EquationsOfMotion,
    mechanism: Mechanism,
    requested: TreatmentOption = "auto",
    baumgarte: float | None = None,
) -> tuple[EquationsOfMotion, str]:
    """Return equations with holonomic constraints treated, and the reason; see :func:`plan_constraint_treatment`."""
    plan = plan_constraint_treatment(mechanism, requested, baumgarte)
    return plan.apply(equations), plan.reason


def _select_independent_states(
    equations: EquationsOfMotion,
    treatment: Treatment,
    q_dependent: Sequence[int],
    u_dependent: Sequence[int],
    closed_forms: Sequence[ClosedFormLoopSolution] = (),
    reduction: VelocityConstraints | None = None,
    warm_start: Sequence[float] = (),
    warm_start_at: Sequence[float] = (),
) -> EquationsOfMotion:
    """Return the equations with independent coordinates and speeds as the only states besides z.

    Args:
        equations: As formulated, over all speeds.
        treatment: ``explicit`` or ``_partition_coordinates``.
        q_dependent: Indices of the coordinates that follow from the holonomic constraints, one per row.
        u_dependent: Indices of the speeds that follow from the velocity constraints, one per row.
        closed_forms: Of those coordinates, by the treatment ``explicit``.
        reduction: Rows that dependent speeds follow from, in place of the velocity constraints.
        warm_start: Their start values, by the treatment ``_partition_coordinates``.
        warm_start_at: Start values of the other coordinates.
    """
    return dataclasses.replace(
        equations,
        treatment=treatment,
        attractor_rate=None,
        q_dependent=tuple(q_dependent),
        u_independent=tuple(i for i in range(len(equations.u)) if i not in u_dependent),
        closed_forms=tuple(closed_forms),
        reduction=reduction,
        warm_start=tuple(warm_start),
        warm_start_at=tuple(warm_start_at),
    )


@dataclass(frozen=True, slots=True)
class CoordinatePartition:
    """The dependent coordinates and speeds of a mechanism with loops (Wehage and Haug).

    The user names them, or the constraints determine them best at the start: QR factorization of the constraints'
    Jacobian with column pivoting. The choice is made once; it is valid as long as the motion stays in its chart.

    Attributes:
        q_dependent: Indices of coordinates, one per holonomic constraint.
        u_dependent: Indices of speeds, one per velocity constraint.
        last: Start values of those coordinates.
        place: Start values of the other coordinates.
    """

    q_dependent: tuple[int, ...]
    u_dependent: tuple[int, ...]
    last: tuple[float, ...]
    place: tuple[float, ...]


def _partition_coordinates(mechanism: Mechanism, dependent: tuple[int, ...] = ()) -> CoordinatePartition:
    """Choose dependent coordinates and speeds.

    Args:
        mechanism: Its loops closed at the start; no constraint follows from others wherever these hold.
        dependent: Indices of the dependent coordinates; () for those that the mechanics name.

    Raises:
        FormulationError: If constraints depend on each other at the start, or the named coordinates do not follow from
            the others there.
    """
    m, d = mechanism, mechanism.declared
    q = np.array([c.start for c in d.coordinates])
    z, r = (np.array([item.start for item in items]) for items in (d.auxiliary_states, d.inputs))
    A, _, K = ConstraintEvaluator(m).evaluate(0.0, q, z, r, free_parameter_values(m))
    if K.shape[0] != K.shape[1] or np.linalg.matrix_rank(K) < len(K):
        problem = f"there are {K.shape[0]} coordinates and {K.shape[1]} speeds, which must determine each other"
        raise FormulationError(
            _PARTITION_HEADLINE, [Fault(problem, remedy="let the constraints be treated by attractor")]
        )
    G = A[: len(m.holonomic)] @ np.linalg.inv(K)
    dependent_columns = dependent or tuple(i for i, c in enumerate(d.coordinates) if c.name in d.dependent)
    lengths = typical_row_lengths(m)
    names = [c.name for c in d.coordinates]
    q_dependent = _choose_dependent_columns(G, lengths[: len(G)], dependent_columns, names, "coordinates")
    dependent_speeds = tuple(i for i in range(len(m.u)) if i not in m.u_independent)
    if len(dependent_speeds) != len(A) or dependent:
        dependent_speeds = tuple(i for i in range(len(m.u)) if any(abs(K[j, i]) > 0.0 for j in q_dependent))
    u_dependent = _choose_dependent_columns(A, lengths, dependent_speeds, [s.name for s in d.speeds], "speeds")
    place = tuple(float(q[i]) for i in range(len(q)) if i not in q_dependent)
    return CoordinatePartition(q_dependent, u_dependent, tuple(float(q[i]) for i in q_dependent), place)


def _choose_dependent_columns(
    rows: Floats, lengths: Floats, named: tuple[int, ...], names: list[str], quantity: str
) -> tuple[int, ...]:
    """Return the dependent columns, as many as rows; named ones if complete; ``lengths``: typical, of rows."""
    import scipy.linalg

    rows = rows / compute_row_norm_divisors(rows, lengths)[:, None]
    if len(named) == len(rows):
        columns_chosen = sorted(named)
    else:
        columns_chosen = sorted(int(i) for i in scipy.linalg.qr(rows, mode="r", pivoting=True)[1][: len(rows)])
    weakest = float(np.linalg.svd(rows[:, columns_chosen])[1].min(initial=np.inf))
    if weakest > _MIN_SINGULAR_VALUE:
        return tuple(columns_chosen)
    if np.linalg.matrix_rank(rows, tol=_MIN_SINGULAR_VALUE) < len(rows):
        text = f"the {len(rows)} constraints are not independent at the start, a singular position"
        remedy = "start elsewhere, or let the constraints be treated by attractor"
        raise FormulationError(_PARTITION_HEADLINE, [Fault(text, remedy=remedy)])
    chosen_names = ", ".join(names[i] for i in columns_chosen)
    text = f"the {quantity} {chosen_names} do not follow from the others at the start"
    raise FormulationError(_PARTITION_HEADLINE, [Fault(text, remedy="name others as dependent, or none")])
