"""x' of the user's objects at random admissible points, by their equations and by their kinematics."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import sympy as sm
from sympy.core.function import AppliedUndef
from sympy.physics.vector import dynamicsymbols

from mb2fmu.mechanics.mechanism import Mechanism
from mb2fmu.mechanics.mechanism.numeric.numeric_mechanism_evaluation import MechanismEvaluator
from mb2fmu.model.checked_model import CheckedModel
from mb2fmu.model.quantity_declarations import AuxiliaryState, Coordinate, Speed
from mb2fmu.model.scales.characteristic_units import choose_stabilization_rate
from mb2fmu.model.supported_functions import LookupTableDerivative, StickingSign
from mb2fmu.validation.source_checks.fmu_run_laws_of_motion_check import ExperimentRun, LawError, LawsOfMotionCheck
from mb2fmu.validation.source_checks.imported_event_check import ImportedEventComparison
from mb2fmu.validation.source_checks.numeric_kane_equations import (
    SCALE_BLEND_FRACTION,
    NumericKaneEquations,
    SympySourceMotion,
    has_negative_eigenvalue,
)
from mb2fmu.validation.source_checks.random_admissible_points import (
    RandomAdmissibleState,
    RandomAdmissibleStateGenerator,
)
from mb2fmu.validation.source_checks.source_acceleration_samples import (
    RANDOM_POINT_COUNT,
    ROUND_OFF_FRACTION,
    AccelerationSample,
    ImportDifferences,
    ImportDifferencesAtTime,
    SympySourceAccelerationSamples,
    draw_acceleration_samples,
    list_settable_slots,
)
from mb2fmu.validation.source_checks.source_equations import (
    MAX_FORMING_WORK,
    MAX_PATHWAY_WORK,
    SympySourceEquations,
    estimate_equation_forming_cost,
    estimate_pathway_length_cost,
)
from mb2fmu.validation.source_checks.source_kinematics_evaluation import SympySourceKinematicsEvaluator
from mb2fmu.validation.source_checks.source_objects import (
    SympySourceObjects,
    extract_mechanics_objects,
    keep_mechanics_untouched,
)
from mb2fmu.validation.source_checks.source_output_evaluation import (
    NamedOutputValues,
    SympySourceOutputEvaluator,
    list_points_and_frames_of_outputs,
)
from mb2fmu.validation.source_checks.source_symbol_slots import (
    Floats,
    SympySourceEvaluationError,
    SympySourceSymbolSlots,
)

_RELATIVE_CHANGE = 2.0**-22
_LARGEST_BOUND_FRACTION = 1e-6
_PERTURBATIONS_PER_POINT = 2
_NO_NUMBERS = (ArithmeticError, ValueError, np.linalg.LinAlgError)
"""What the objects raise where they themselves have no numbers."""
_SWITCHING_FUNCTIONS = (StickingSign, sm.sign, sm.Abs, sm.Min, sm.Max, sm.Heaviside, sm.Piecewise)


def sample_source_accelerations(
    definition: CheckedModel,
    mechanism: Mechanism,
    largest_speeds: Mapping[str, float] = MappingProxyType({}),
    computed_coordinates: Collection[str] = (),
    visited_coordinates: Sequence[Mapping[str, float]] = (),
    runs: Sequence[ExperimentRun] = (),
) -> SympySourceAccelerationSamples:
    """Return samples of x' from the mechanics themselves, which stay unchanged.

    Args:
        definition: The checked model.
        mechanism: Imported from it; it is compared with the objects where their equations are not formed.
        largest_speeds: FMU name of a speed → its largest magnitude in the experiments; some samples are faster.
        computed_coordinates: FMU names of coordinates that the FMU computes itself: samples are put together as the
            start is.
        visited_coordinates: FMU name of a coordinate → its value, at instants of the experiments; some samples are near
            these.
        runs: Results of the FMU in the experiments; they are judged by the laws of motion.
    """
    definition = _model_at_mechanism_parameters(definition, mechanism)
    with keep_mechanics_untouched(definition.mechanics):
        # Where a contact or latch is closed by then, the objects know nothing of it.
        has_events = definition.contacts or definition.latches or definition.events
        equations = _SympySourceObjectEquations(
            definition, mechanism, largest_speeds, computed_coordinates, () if has_events else visited_coordinates
        )
        samples = equations.draw_all_samples() if equations.methods else ()
        events = equations.compare_events() if equations.methods else []
        laws = equations.judge_laws(runs) if equations.methods else ()
    return SympySourceAccelerationSamples(
        samples,
        *list_settable_slots(definition, equations.symbols.slot),
        equations.missing,
        events=tuple(events),
        left_out=tuple(equations.left_out),
        latched_import_differences=tuple(equations.latched_import_differences),
        laws=laws,
        indefinite_points=equations.indefinite_points,
    )


def _model_at_mechanism_parameters(definition: CheckedModel, mechanism: Mechanism) -> CheckedModel:
    """Return the checked model at the parameters of the mechanism, and at start values that close its loops.

    Contacts and latches are open: the objects know nothing of what holds them.
    """
    declared = mechanism.declared
    moving: list[Coordinate | Speed] = [*declared.coordinates, *declared.speeds]
    starts = {item.name: item.start for item in moving}
    closed = {c.resting for c in definition.contacts} | {latch.engaged for latch in definition.latches}
    return replace(
        definition,
        parameters=declared.parameters,
        coordinates=tuple(replace(c, start=starts.get(c.name, c.start)) for c in definition.coordinates),
        speeds=tuple(replace(s, start=starts.get(s.name, s.start)) for s in definition.speeds),
        auxiliary_states=tuple(replace(z, start=0.0) if z.symbol in closed else z for z in definition.auxiliary_states),
    )


def _has_switched_loads(source_objects: SympySourceObjects) -> bool:
    """Return whether loads have switches, the modes of which an impact may change."""
    return _has_loads_with(source_objects, *_SWITCHING_FUNCTIONS)


def _has_loads_with(source_objects: SympySourceObjects, *functions: type[sm.Basic]) -> bool:
    """Return whether loads contain one of these functions."""
    return any(entry.has(*functions) for _, load in source_objects.loads for matrix, _ in load.args for entry in matrix)


def _has_time_dependent_loads(source_objects: SympySourceObjects) -> bool:
    """Return whether loads contain the time itself: between communication points they may do what nobody sees."""
    entries = [sm.sympify(entry) for _, load in source_objects.loads for matrix, _ in load.args for entry in matrix]
    at_rest = {f: sm.S.One for entry in entries for f in entry.atoms(AppliedUndef, sm.Derivative)}
    return any(dynamicsymbols._t in entry.xreplace(at_rest).free_symbols for entry in entries)  # noqa: SLF001


class _SympySourceObjectEquations:
    """The objects' own equations and kinematics, formed where possible: a source of accelerations."""

    def __init__(
        self,
        definition: CheckedModel,
        mechanism: Mechanism,
        largest_speeds: Mapping[str, float],
        computed_coordinates: Collection[str],
        visited_coordinates: Sequence[Mapping[str, float]],
    ) -> None:
        self._definition, self._quaternions = definition, mechanism.quaternions
        self._positions_are_contradicted = bool(mechanism.contradicted_positions)
        self._rate, self._usual_rate = mechanism.stabilization_rate, choose_stabilization_rate(mechanism.declared)
        self.missing: dict[str, str] = {}
        self.left_out: list[str] = []
        self.indefinite_points = 0
        self.latched_import_differences: list[ImportDifferencesAtTime] = []
        self._latched_points: list[RandomAdmissibleState] = []
        self._drawn_points: list[RandomAdmissibleState] = []
        cost = estimate_pathway_length_cost(definition.mechanics)
        parts = self._parts = extract_mechanics_objects(definition.mechanics, actuators=cost <= MAX_PATHWAY_WORK)
        self.symbols = SympySourceSymbolSlots(definition, parts)
        latched = [sm.And(latch.close, sm.Not(latch.open)) for latch in definition.latches]
        self._latched = (
            self.symbols.compile_function([sm.Piecewise((1, sm.Or(*latched)), (0, True))]) if latched else None
        )
        self._gaps = (
            self.symbols.compile_function([c.gap for c in definition.contacts]) if _has_switched_loads(parts) else None
        )
        self.methods: list[SympySourceEquations | NumericKaneEquations] = []
        if cost > MAX_PATHWAY_WORK:
            reason = f"the lengths of its pathways have about {cost:.1e} operations, more than {MAX_PATHWAY_WORK:.1e}"
            self.missing = {"equations": reason, "kinematics": reason}
            return
        self._equations, self._kinematics = self._form_equations(), self._form_kinematics()
        self.methods = [method for method in (self._equations, self._kinematics) if method is not None]
        self._import_comparison = None
        needs_comparison = self._equations is None or self._latched is not None
        if needs_comparison and self._kinematics is not None and mechanism.bodies:
            self._import_comparison = _MechanismImportComparison(mechanism, parts, self.symbols)
        if not self.methods:
            return
        try:
            constraints = self._constraints = SympySourceKinematicsEvaluator(parts, self.symbols, complex_step=False)
        except SympySourceEvaluationError as reason:
            self.methods = []
            self.missing = {"equations": str(reason), "kinematics": str(reason)} | self.missing
            return
        self._outputs = SympySourceOutputEvaluator(definition, self.symbols, self._kinematics, self._equations)
        self._points = RandomAdmissibleStateGenerator(
            definition, parts, self.symbols, constraints, self._quaternions, largest_speeds, computed_coordinates,
            visited_coordinates,
        )  # fmt: skip
        self._events = ImportedEventComparison(definition, mechanism, self.symbols, constraints, self._points.q_scale)
        self.left_out = self._events.left_out

    def _form_equations(self) -> SympySourceEquations | None:
        """Form the object's own equations; None, with the reason kept, where SymPy could not in a reasonable time."""
        if estimate_equation_forming_cost(self._definition.mechanics, self._parts) > MAX_FORMING_WORK:
            self.missing["equations"] = f"SymPy would compose more than {MAX_FORMING_WORK:.1e} operations to form them"
            return None
        try:
            return SympySourceEquations(self._definition.mechanics, self._parts, self.symbols)
        except SympySourceEvaluationError as reason:
            self.missing["equations"] = str(reason)
        return None

    def _form_kinematics(self) -> NumericKaneEquations | None:
        """Form Kane's equations from SymPy's own frames and points; None where a Lagrangian gives the forces."""
        if self._parts.lagrangian:
            self.missing["kinematics"] = "forces come from a Lagrangian"
            return None
        try:
            return NumericKaneEquations(self._parts, self.symbols, *list_points_and_frames_of_outputs(self._definition))
        except SympySourceEvaluationError as reason:
            self.missing["kinematics"] = str(reason)
        return None

    def draw_all_samples(self) -> tuple[AccelerationSample, ...]:
        """Return samples, and compare the import at points where a latch is closed if there are few."""
        samples = draw_acceleration_samples(self)
        if self._latched_points and not samples:
            reason = "a latch is closed wherever points were looked for, and the objects know nothing of it"
            self.missing = {"equations": reason, "kinematics": reason} | self.missing
        if len(samples) < RANDOM_POINT_COUNT:
            self._compare_import_where_latched(self._latched_points[:RANDOM_POINT_COUNT])
        return samples

    def draw_points(self) -> Iterator[RandomAdmissibleState]:
        """Yield points without end, and keep them."""
        for point in self._points.draw_points():
            self._drawn_points.append(point)
            yield point

    def sample_points(self, points: Sequence[RandomAdmissibleState]) -> Iterator[AccelerationSample]:
        """Yield x' at each point, with bounds, unless round-off alone exceeds 1e-6, or it has no numbers there."""
        groups: list[tuple[RandomAdmissibleState, list[list[float]]]] = []
        for point in filter(self._obeys_equations_only, points):
            with suppress(*_NO_NUMBERS):
                groups.append((point, [list(point.values), *self._perturb_values(point.values)]))
        size = 1 + _PERTURBATIONS_PER_POINT if self._equations is None or self._outputs.needs_motion else 1
        motions = iter(self._evaluate_motions([values for _, states in groups for values in states[:size]]))
        for point, states in groups:
            motions_of_point = list(itertools.islice(motions, size))
            with suppress(*_NO_NUMBERS):
                sample = self._form_sample(point, states, motions_of_point)
                if sample is not None:
                    yield sample

    def _obeys_equations_only(self, point: RandomAdmissibleState) -> bool:
        """Return whether no contact or latch is closed at a point: the objects know of none. Latched ones are kept."""
        if self._latched is not None and any(self._latched(list(point.values))):
            self._latched_points.append(point)
            return False
        # An impact there leaves the modes of other speeds, and the object has those of the point.
        return self._gaps is None or min(self._gaps(list(point.values)), default=0.0) >= 0.0

    def _perturb_values(self, values: Sequence[float]) -> Iterator[list[float]]:
        """Yield the values with relative changes of either sign of all; q' are to follow."""
        random = np.random.default_rng(len(values))
        for _ in range(_PERTURBATIONS_PER_POINT):
            signs = random.choice([-1.0, 1.0], len(values))
            yield self.symbols.complete_values((np.array(values) * (1 + _RELATIVE_CHANGE * signs)).tolist())

    def _evaluate_motions(self, states: Sequence[list[float]]) -> list[SympySourceMotion | None]:
        """Return the objects' own motion at each state; None where it has no numbers, or is not known at all."""
        if self._kinematics is None or not states:
            return [None] * len(states)
        try:
            return [*self._kinematics.evaluate_motions(states)]
        except _NO_NUMBERS:
            if len(states) == 1:
                return [None]
        return [motion for state in states for motion in self._evaluate_motions([state])]

    def _compare_import_where_latched(self, points: Sequence[RandomAdmissibleState]) -> None:
        """Compare the import with the objects where a latch is closed: the latch changes no compared quantity."""
        if self._import_comparison is None or self._kinematics is None:
            return
        states = [list(point.values) for point in points]
        for point, values, motion in zip(points, states, self._evaluate_motions(states), strict=True):
            if motion is not None:
                with suppress(*_NO_NUMBERS):
                    differences = self._import_comparison.differences(values, motion)
                    self.latched_import_differences.append((point.time, differences))

    def compare_events(self) -> list[tuple[float, str]]:
        """Compare the imported events with the model's own expressions, at the points that samples were drawn from."""
        if self._events.is_empty:
            return []
        points = itertools.islice(itertools.chain(self._drawn_points, self._points.draw_points()), RANDOM_POINT_COUNT)
        return self._events.compare_at((point.time, point.values) for point in points)

    def judge_laws(self, runs: Sequence[ExperimentRun]) -> tuple[tuple[str, tuple[LawError, ...]], ...]:
        """Judge runs of the FMU by the declared constraints, and by momentum where smooth loads alone act."""
        d, scales = self._definition, (self._points.q_scale, self._points.u_scale)
        judges_momentum = not (
            self._positions_are_contradicted  # the sum of m r would move otherwise than the momentum says
            or d.contacts
            or d.latches
            or d.events
            or _has_switched_loads(self._parts)
            or _has_time_dependent_loads(self._parts)
        )
        laws = LawsOfMotionCheck(
            d, self.symbols, self._constraints, self._kinematics if judges_momentum else None, scales,
            has_bent_loads=_has_loads_with(self._parts, LookupTableDerivative), quaternions=self._quaternions,
        )  # fmt: skip
        errors_by_law = (
            ("constraints", tuple(laws.judge_constraints(runs))),
            ("momentum", tuple(laws.judge_momentum(runs))),
        )
        return tuple((law, errors) for law, errors in errors_by_law if errors)

    def _form_sample(
        self, point: RandomAdmissibleState, states: Sequence[list[float]], motions: Sequence[SympySourceMotion | None]
    ) -> AccelerationSample | None:
        """Return x' at one point by every method, with round-off bounds; None where ill conditioned.

        Args:
            point: Where.
            states: Values there, and perturbed ones.
            motions: The objects' own at the first of these states, or at all.
        """
        values, motion = states[0], motions[0]
        if self._kinematics is not None and any(each is None for each in motions):
            return None
        if self._has_indefinite_mass(values, motion):
            self.indefinite_points += 1
            return None
        rates, scale = {}, np.zeros(len(self._list_state_names()))
        if self._equations is not None:
            rates["equations"], scale = self._evaluate_equations(values)
        if motion is not None:
            rates["kinematics"], size = self._evaluate_kinematics(values, motion)
            scale = np.maximum(scale, size)
        terms, scale = scale, scale + self._compute_stabilization_error(values)
        outputs = self._outputs.evaluate_outputs(values, self._u_dot(values, motion), motion)
        changed = list(itertools.zip_longest(states[1:], motions[1:]))
        changes, output_changes = self._measure_conditioning(changed, next(iter(rates.values())), outputs)
        if not np.all(np.isfinite([*changes, *scale, *np.concatenate(list(rates.values()))])):
            return None
        bound = ROUND_OFF_FRACTION * (scale + changes)
        if np.any(bound > _LARGEST_BOUND_FRACTION * np.maximum(scale, np.abs(next(iter(rates.values()))))):
            return None
        names = self._list_state_names()
        return AccelerationSample(
            point,
            {method: dict(zip(names, each.tolist(), strict=True)) for method, each in rates.items()},
            dict(zip(names, bound.tolist(), strict=True)),
            self._import_comparison.differences(values, motion)
            if self._import_comparison is not None and motion
            else {},
            {
                name: (value, ROUND_OFF_FRACTION * (size + output_changes[name]))
                for name, (value, size) in outputs.items()
                if name in output_changes
            },
            dict(zip(names, terms.tolist(), strict=True)),
            self._name_states(values),
        )

    def _has_indefinite_mass(self, values: list[float], motion: SympySourceMotion | None) -> bool:
        """Return whether the object's own M has a negative eigenvalue: no such mechanism exists, and FMUs refuse it."""
        if motion is not None:
            return has_negative_eigenvalue(motion.mass_matrix)
        assert self._equations is not None
        M = self._equations.mass_matrix(values)  # over independent speeds alone it is not symmetric
        return bool(np.allclose(M, M.T, atol=0.0, rtol=1e-9)) and has_negative_eigenvalue(M)

    def _name_states(self, values: list[float]) -> dict[str, float]:
        """Return the states by their FMU names."""
        d, slot = self._definition, self.symbols.slot
        items: list[Coordinate | Speed | AuxiliaryState] = [*d.coordinates, *d.speeds, *d.auxiliary_states]
        return {item.name: values[slot[item.symbol]] for item in items}

    def _u_dot(self, values: list[float], motion: SympySourceMotion | None) -> dict[Any, float]:
        """Return u' of all speeds."""
        if motion is not None:
            return dict(zip(self.symbols.u, motion.u_dot.tolist(), strict=True))
        assert self._equations is not None
        e = self._equations
        return dict(zip(e.u, e.x_dot(values)[0][len(e.q) :].tolist(), strict=True))

    def _compute_stabilization_error(self, values: list[float]) -> Floats:
        """Return the error of constraint stabilization acting on round-off of an FMU's states, per second.

        Small parts, as in :func:`add_floor_to_scales`: round-off of the states themselves, not of their derivatives.
        """
        d, slot = self._definition, self.symbols.slot
        if not self._parts.holonomic:
            return np.zeros(len(self._list_state_names()))
        rate = abs(values[slot[self._rate]]) if self._rate in slot else self._usual_rate
        scale = dict(zip(self.symbols.q, self._points.q_scale.tolist(), strict=True))
        q = [abs(values[slot[c.symbol]]) + scale[c.symbol] for c in d.coordinates]
        u = [abs(values[slot[s.symbol]]) for s in d.speeds]
        return np.array([SCALE_BLEND_FRACTION * rate * size for size in (*q, *u)] + [0.0] * len(d.auxiliary_states))

    def _list_state_names(self) -> list[str]:
        """Return the names of all states, in their order."""
        d = self._definition
        return [item.name for item in (*d.coordinates, *d.speeds, *d.auxiliary_states)]

    def _evaluate_equations(self, values: list[float]) -> tuple[Floats, Floats]:
        """Return x' by the object's own equations and the size of its terms, in the order of states."""
        assert self._equations is not None
        e = self._equations
        x_dot, scale = e.x_dot(values)
        return self._order_as_states(values, (*e.q, *e.u), x_dot, scale)

    def _evaluate_kinematics(self, values: list[float], motion: SympySourceMotion) -> tuple[Floats, Floats]:
        """Return x' by the object's own kinematics and the size of its terms, in the order of states."""
        s = self.symbols
        x_dot = np.concatenate([motion.q_dot, motion.u_dot])
        return self._order_as_states(values, (*s.q, *s.u), x_dot, np.concatenate([motion.rate_scale, motion.scale]))

    def _order_as_states(
        self, values: list[float], symbols: tuple[object, ...], x_dot: Floats, scale: Floats
    ) -> tuple[Floats, Floats]:
        """Return values and scales in the order of the definition, with those of z."""
        d = self._definition
        # A speed that is q' itself stands twice among them: its derivative comes after the coordinates' ones.
        last = {symbol: k for k, symbol in enumerate(symbols)}
        first = {symbol: k for k, symbol in reversed([*enumerate(symbols)])}
        places = [first[c.symbol] for c in d.coordinates] + [last[s.symbol] for s in d.speeds]
        z_dot = np.array(self.symbols.z_dot(values))
        return np.concatenate([x_dot[places], z_dot]), np.concatenate([scale[places], np.abs(z_dot)])

    def _measure_conditioning(
        self,
        changed: Sequence[tuple[list[float], SympySourceMotion | None]],
        x_dot: Floats,
        outputs: NamedOutputValues,
    ) -> tuple[Floats, dict[str, float]]:
        """Return how much x' and outputs change per relative change of all numbers they are computed from.

        Args:
            changed: Values with such changes, and the motion there where it is needed.
            x_dot: At the unchanged values.
            outputs: There.
        """
        changes, output_changes = np.zeros(len(x_dot)), dict.fromkeys(outputs, 0.0)
        for values, motion in changed:
            changed_values = list(values)
            if motion is not None:
                for k, rate in zip(self._constraints.rates, motion.q_dot.tolist(), strict=True):
                    changed_values[k] = rate
            elif self._kinematics is not None:
                changed_values = self._kinematics.constraints.with_rates(values)
            if self._equations is not None:
                changed_x_dot = self._evaluate_equations(changed_values)[0]
            else:
                assert motion is not None
                changed_x_dot = self._evaluate_kinematics(changed_values, motion)[0]
            changes = np.maximum(changes, np.abs(changed_x_dot - x_dot) / _RELATIVE_CHANGE)
            changed_outputs = self._outputs.evaluate_outputs(
                changed_values, self._u_dot(changed_values, motion), motion
            )
            common_names = output_changes.keys() & changed_outputs.keys()
            output_changes = {
                name: max(output_changes[name], abs(changed_outputs[name][0] - outputs[name][0]) / _RELATIVE_CHANGE)
                for name in common_names
            }
        return changes, output_changes


class _MechanismImportComparison:
    """Compares the mechanism that was read with the objects: velocities, kinetic energy, generalized forces."""

    def __init__(self, mechanism: Mechanism, parts: SympySourceObjects, symbols: SympySourceSymbolSlots) -> None:
        self._numeric, self._symbols = MechanismEvaluator(mechanism), symbols
        d = mechanism.declared
        self._q = [symbols.slot[c.symbol] for c in d.coordinates]
        self._u = [symbols.slot[s.symbol] for s in d.speeds]
        self._order = [list(symbols.u).index(s.symbol) for s in d.speeds]
        self._zero_auxiliary_speeds = np.zeros(len(mechanism.u_auxiliary))
        points = mechanism.points
        number = {(body.name, points[body.masscenter].name): k for k, body in enumerate(mechanism.bodies)}
        self._pairs = [
            (k, number[body.name, body.masscenter.name])
            for k, body in enumerate(parts.bodies)
            if (body.name, body.masscenter.name) in number
        ]
        self._all_speeds = len(d.speeds) == len(symbols.u)  # a speed that is the rate of a coordinate may be none here

    def differences(self, values: list[float], motion: SympySourceMotion) -> ImportDifferences:
        """Return (error, bound) of the worst velocity, angular velocity, energy and generalized force."""
        s, n, array = self._symbols, self._numeric, np.array(values)
        z, r, p = ([s.slot[symbol] for symbol in group] for group in (s.z, s.r, (*s.p, *s.calculated)))
        u_all = np.concatenate([array[self._u], self._zero_auxiliary_speeds])
        n.set_state(values[0], array[self._q], u_all, array[z], array[r], array[p])
        bodies = n.mechanism.bodies
        v = np.array([n.points[bodies[j].masscenter].velocity for _, j in self._pairs])
        w = np.array([n.frames[max(bodies[j].frame, 0)].omega for _, j in self._pairs])
        body_indices = [k for k, _ in self._pairs]
        Q = n.generalized_forces()[: len(self._order)]
        round_off = ROUND_OFF_FRACTION
        differences = {
            "velocities": _select_worst_error(
                v - motion.velocities[body_indices], round_off * np.max(np.abs(motion.velocities))
            ),
            "angular velocities": _select_worst_error(
                w - motion.omegas[body_indices], round_off * np.max(np.abs(motion.omegas))
            ),
            "kinetic energy": _select_worst_error(
                np.array([n.kinetic_energy() - motion.kinetic]), round_off * abs(motion.kinetic)
            ),
        }
        if self._all_speeds:
            bound = round_off * motion.force_scale[self._order]
            differences["generalized forces"] = _select_worst_error(Q - motion.forces[self._order], bound)
        return differences


def _select_worst_error(error: Floats, bound: Floats | float) -> tuple[float, float]:
    """Return the error that is largest in relation to its bound, and that bound."""
    error = np.abs(error).ravel()
    bounds = np.broadcast_to(bound, error.shape)
    if not len(error):
        return 0.0, 0.0
    k = int(np.argmax(np.where(bounds > 0, error / np.where(bounds > 0, bounds, 1.0), np.where(error > 0, np.inf, 0))))
    return float(error[k]), float(bounds[k])
