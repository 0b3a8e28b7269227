"""Imported events, compared with the model's own expressions at points: gaps, slip, rows, conditions, settings.

FMU and reference take gaps with their rates, conditions and what events set from one import. Here the user's own
expressions are evaluated by ``lambdify``, and their rates are difference quotients along a motion; none of the imported
rates is used for them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import sympy as sm

from mb2fmu.mechanics.equations.unilateral_constraint_rows import UnilateralPositionRow
from mb2fmu.mechanics.mechanism import Mechanism
from mb2fmu.mechanics.mechanism.records.output_and_joint_records import ExpressionOutput, RequestedOutput
from mb2fmu.mechanics.mechanism.records.symbol_replacement_and_derivatives import replace_symbols
from mb2fmu.model.checked_model import CheckedModel
from mb2fmu.model.declarations.declared_outputs import OutputRequest
from mb2fmu.model.expression_traversal import iterate_distinct_subexpressions, list_free_symbols
from mb2fmu.model.quantity_declarations import DeclaredConstraint, Output
from mb2fmu.model.supported_functions import StickingSign
from mb2fmu.validation.evaluation_plans.lambdified_scalar_functions import compile_scalar_function
from mb2fmu.validation.source_checks.source_symbol_slots import Floats, SympySourceEvaluationError, make_unused_symbol

SAME_VALUE_TOLERANCE = 1e-9
"""Of magnitudes: two evaluations of one expression may differ by so much."""
RATE_TOLERANCE, SECOND_RATE_TOLERANCE = 1e-6, 1e-4
"""Of magnitudes: what difference quotients of first and second order may be off by."""
_STEP_FRACTION = 1e-3
"""Of the time in which coordinates move by their scale: the step of difference quotients."""
_DIFFERENCE_STENCIL = ((-2.0, 1.0 / 12.0), (-1.0, -2.0 / 3.0), (1.0, 2.0 / 3.0), (2.0, -1.0 / 12.0))


@dataclass(frozen=True, slots=True)
class _SourceAndImportedQuantity:
    """A quantity in the user's expression and in the imported one; numbers, or conditions as margins.

    Attributes:
        description: For messages.
        source: In the user's symbols.
        imported: In plain symbols.
        off_constraints: Compared beside the constraints: on them it is zero.
    """

    description: str
    source: sm.Expr
    imported: sm.Expr
    off_constraints: bool = False


@dataclass(frozen=True, slots=True)
class _QuantityWithRates:
    """What has rates: a position (gap, row), or a slip, which is linear in speeds.

    Attributes:
        description: For messages.
        source: In the user's symbols.
        imported: Its imported value: of a slip H u + d.
        rate: Of a position, G u + b; None of a slip.
        second: The rate of what is linear in the speeds: G u' + c.
    """

    description: str
    source: sm.Expr
    imported: sm.Expr
    rate: sm.Expr | None
    second: sm.Expr


class ModelSymbolSlots(Protocol):
    """Slots of the symbols of a model's expressions in one list of values, and functions of such lists."""

    @property
    def t(self) -> sm.Symbol:
        """Time."""

    @property
    def q(self) -> Sequence[Any]:
        """Coordinates."""

    @property
    def z(self) -> Sequence[Any]:
        """Auxiliary states."""

    @property
    def r(self) -> Sequence[Any]:
        """Inputs."""

    @property
    def slot(self) -> Mapping[Any, int]:
        """Symbol → its place in the list of values."""

    @property
    def z_dot(self) -> Callable[[Sequence[float]], list[float]]:
        """Values → derivatives of the auxiliary states."""

    def compile_function(
        self, expressions: Sequence[sm.Expr], further_symbols: Sequence[sm.Symbol] = ()
    ) -> Callable[[Sequence[float]], list[float]]:
        """Return a function of the slots' values, then of ``further_symbols``."""


class ModelCoordinateRates(Protocol):
    """q' in the slots of :class:`ModelSymbolSlots`: ``rates`` says where, one slot per coordinate."""

    @property
    def rates(self) -> Sequence[int]:
        """The slot of each q'."""

    def with_rates(self, values: list[float]) -> list[float]:
        """Return the values with q' as it follows from q and u."""


class ImportedEventComparison:
    """Compares the imported contacts, latches and events with the model.

    Args:
        definition: The checked model, in the user's symbols.
        mechanism: The mechanism imported from it.
        symbols: Slots of the user's symbols; of a model in SymPy ``SympySourceSymbolSlots``.
        constraints: The user's own kinematic equations; of a model in SymPy ``SympySourceKinematicsEvaluator``.
        q_scale: How far each coordinate goes, in the order of ``symbols.q``.
    """

    def __init__(
        self,
        definition: CheckedModel,
        mechanism: Mechanism,
        symbols: ModelSymbolSlots,
        constraints: ModelCoordinateRates,
        q_scale: Floats,
    ) -> None:
        self._definition, self._mechanism, self._symbols, self._constraints = (
            definition,
            mechanism,
            symbols,
            constraints,
        )
        self._q_scale = q_scale
        self._rate_slots = _pair_slots_with_rates(symbols, constraints)
        self._state_slots = [symbols.slot[z] for z in symbols.z]
        self._random = np.random.default_rng(17)
        imported = mechanism
        self._u_dot = [sm.Symbol(f"mb2fmu_rate_of_{i}") for i in range(len(imported.u))]
        calculated_symbols = [each.symbol for each in imported.calculated_parameters]
        self._solved = dict(_pair_unknown_forces(definition, imported))
        self._import_symbols = [
            imported.t,
            *imported.q,
            *imported.u,
            *imported.z,
            *imported.r,
            *imported.p,
            *calculated_symbols,
            *self._u_dot,
            *self._solved.values(),
        ]
        slot, symbol_by_name, d = (
            symbols.slot,
            {item.name: item.symbol for item in definition.quantities},
            imported.declared,
        )
        free = [p for p in d.parameters if not p.calculated]
        items = [*d.coordinates, *d.speeds, *d.auxiliary_states, *d.inputs, *free]
        self._places = [0, *(slot[symbol_by_name[item.name]] for item in items)]
        self._speeds = [slot[symbol_by_name[speed.name]] for speed in d.speeds]
        self._calculate = [
            compile_scalar_function(self._import_symbols, [each.expression]) for each in imported.calculated_parameters
        ]
        rates = [symbol_by_name[speed.name].diff(symbols.t) for speed in d.speeds]
        self._unknown_symbols = [make_unused_symbol(k, purpose="solved") for k in range(len(rates) + len(self._solved))]
        self._unknown = dict(zip((*rates, *self._solved), self._unknown_symbols, strict=True))
        self.mismatches = list(self._list_mismatches())
        self.left_out: list[str] = []
        self._pairs = self._form_evaluable(self._iterate_pairs(), self._compile_pair)
        self._moving_events = self._form_evaluable(self._iterate_moving(), self._compile_moving)

    @property
    def is_empty(self) -> bool:
        """Whether the model has neither events nor outputs of unknown forces."""
        d = self._definition
        return not (d.contacts or d.latches or d.events or self._pairs)

    def _form_evaluable(self, items: Iterator[Any], form: Callable[[Any], Any]) -> list[Any]:
        """Return the items that can be evaluated; keep the names of the others in ``left_out``."""
        evaluable_events = []
        for item in items:
            try:
                evaluable_events.append((item, form(item)))
            except SympySourceEvaluationError:
                self.left_out.append(item.description)
        return evaluable_events

    def _compile_pair(self, pair: _SourceAndImportedQuantity) -> Any:
        """Return both sides as functions."""
        return self._compile_source(pair.source), self._compile_import([pair.imported])

    def _compile_source(self, expression: sm.Expr) -> Callable[[Sequence[float]], list[float]]:
        """Return a function of the slots' values, then of u' and of forces that are solved for."""
        return self._symbols.compile_function([sm.sympify(expression).xreplace(self._unknown)], self._unknown_symbols)

    def _compile_moving(self, item: _QuantityWithRates) -> Any:
        """Return the user's value, and all that was read of it."""
        import_expressions = [item.imported, item.second, *([item.rate] if item.rate is not None else [])]
        source_function = self._symbols.compile_function([item.source])
        return source_function, self._compile_import(import_expressions)

    def _compile_import(self, expressions: Sequence[sm.Expr]) -> Callable[[Sequence[float]], list[float]]:
        """Return a function of plain values of expressions that were read."""
        rates = dict(zip(self._mechanism.u_dot, self._u_dot, strict=True))
        expressions_in_import_symbols = [replace_symbols(sm.sympify(each), rates) for each in expressions]
        if list_free_symbols(expressions_in_import_symbols) - set(self._import_symbols):
            raise SympySourceEvaluationError("it contains what is solved for")
        function = compile_scalar_function(self._import_symbols, expressions_in_import_symbols)
        return lambda values: list(function(*values))

    def _list_mismatches(self) -> Iterator[str]:
        """Yield differences that are no numbers: laws, order, instants, states that events set."""
        d, m = self._definition, self._mechanism
        contacts = m.contacts.each if m.contacts else ()
        latches = m.latches.each if m.latches else ()
        if [len(d.contacts), len(d.latches), len(d.events)] != [len(contacts), len(latches), len(m.events)]:
            yield "another number of contacts, latches or events was read"
            return
        for declared, imported in zip(d.contacts, contacts, strict=True):
            if m.contacts and (declared.law, declared.order) != (imported.law, m.contacts.order):
                yield f"{declared.name} was read with another law or order of impacts"
        name = {item.symbol: item.name for item in d.quantities}
        imported_states = (*m.declared.coordinates, *m.declared.speeds, *m.declared.auxiliary_states)
        imported_name = {symbol: item.name for symbol, item in zip((*m.q, *m.u, *m.z), imported_states, strict=True)}
        for event, imported_event in zip(d.events, m.events, strict=True):
            if [name[symbol] for symbol in event.settings] != [
                imported_name[symbol] for symbol, _ in imported_event.settings
            ]:
                yield f"{event.name} was read to set other states"
            if (event.kind, event.period, event.offset) != (
                imported_event.kind,
                imported_event.period,
                imported_event.offset,
            ):
                yield f"{event.name} was read with other instants"

    def _iterate_pairs(self) -> Iterator[_SourceAndImportedQuantity]:
        """Yield all pairs of expressions that are compared at the points."""
        if self.mismatches:
            return
        d, m = self._definition, self._mechanism
        for declared, imported in zip(d.contacts, m.contacts.each if m.contacts else (), strict=True):
            yield _SourceAndImportedQuantity(
                f"restitution of {declared.name}", declared.restitution, imported.restitution
            )
            yield _SourceAndImportedQuantity(
                f"rest_below of {declared.name}", declared.rest_below, imported.resting_speed
            )
            yield _SourceAndImportedQuantity(
                f"stabilization of {declared.name}", declared.stabilization, imported.stabilization
            )
            if declared.friction and imported.friction:
                yield _SourceAndImportedQuantity(
                    f"friction of {declared.name}", declared.friction.coefficient, imported.friction.coefficient
                )
        for latch, imported_latch in zip(d.latches, m.latches.each if m.latches else (), strict=True):
            yield from _pair_conditions(f"{latch.name} closes", latch.close, imported_latch.close)
            yield from _pair_conditions(f"{latch.name} opens", latch.open, imported_latch.open)
            for row in imported_latch.rows:
                yield _SourceAndImportedQuantity(f"stabilization of {row.name}", latch.stabilization, row.stabilization)
        for event, imported_event in zip(d.events, m.events, strict=True):
            yield from _pair_conditions(f"condition of {event.name}", event.condition, imported_event.condition)
            for (symbol, value), (_, imported_value) in zip(
                event.settings.items(), imported_event.settings, strict=True
            ):
                yield _SourceAndImportedQuantity(f"{symbol} as {event.name} sets it", sm.sympify(value), imported_value)
        yield from self._iterate_output_pairs()

    def _iterate_output_pairs(self) -> Iterator[_SourceAndImportedQuantity]:
        """Yield outputs that contain unknown forces or sticking friction; the others are compared with the FMU."""
        d, m = self._definition, self._mechanism
        imported_expressions = {each.name: each.expression for each in m.outputs if isinstance(each, ExpressionOutput)}
        for output in d.outputs:
            if isinstance(output, Output) and output.name in imported_expressions:
                source = sm.sympify(output.expression)
                if source.has(StickingSign):
                    source_value, imported_value = (
                        _replace_sticking_signs(source),
                        _replace_sticking_signs(imported_expressions[output.name]),
                    )
                    yield _SourceAndImportedQuantity(
                        f"output {output.name} while it sticks", source_value, imported_value
                    )
                elif source.atoms(sm.Function) & self._solved.keys():
                    yield _SourceAndImportedQuantity(f"output {output.name}", source, imported_expressions[output.name])
        yield from self._iterate_multiplier_pairs()

    def _iterate_multiplier_pairs(self) -> Iterator[_SourceAndImportedQuantity]:
        """Yield constraints whose multipliers are outputs: the model's row and the row that was read.

        Signs are free. With quaternions rows are read at unit length, which is another expression beside it.
        """
        d, m = self._definition, self._mechanism
        if m.quaternions:
            return
        requested = {each.name: each for each in m.outputs if isinstance(each, RequestedOutput)}
        c = m.velocity_constraints
        rates = list(c.jacobian * sm.Matrix(m.u) + c.offset) if c else []
        rows = [(item.name, row_index, sm.sympify(item.row)) for item, row_index in _pair_multiplier_constraints(d, m)]
        rows += [
            (output.name, requested[output.name].subject[0], sm.sympify(output.subject[0]))
            for output in d.outputs
            if isinstance(output, OutputRequest) and output.kind == "multiplier" and output.name in requested
        ]
        speeds = {s.symbol for s in d.speeds if s.symbol.is_Function}
        for name, row_index, source_row in rows:
            is_velocity_row = any(
                part in speeds or isinstance(part, sm.Derivative)
                for part in iterate_distinct_subexpressions([source_row])
            )
            imported_row = (
                rates[row_index] if is_velocity_row or row_index >= len(m.holonomic) else m.holonomic[row_index][1]
            )
            # SymPy would ask of each term whether it is infinite.
            source, imported = (sm.Pow(row, 2, evaluate=False) for row in (source_row, imported_row))
            yield _SourceAndImportedQuantity(f"row of {name}", source, imported, off_constraints=True)

    def _iterate_moving(self) -> Iterator[_QuantityWithRates]:
        """Yield gaps, slip and rows of latches: they are compared with their rates."""
        if self.mismatches:
            return
        d, m = self._definition, self._mechanism
        for declared, imported in zip(d.contacts, m.contacts.each if m.contacts else (), strict=True):
            yield self._form_position(f"gap of {declared.name}", declared.gap, imported)
            if declared.friction and imported.friction:
                slip = imported.friction
                yield _QuantityWithRates(
                    f"slip of {declared.name}", declared.friction.slip, slip.rate(m.u), None,
                    slip.rate_derivative(self._u_dot),
                )  # fmt: skip
        for latch, imported_latch in zip(d.latches, m.latches.each if m.latches else (), strict=True):
            for row, imported_row in zip(latch.rows, imported_latch.rows, strict=True):
                yield self._form_position(row.name, row.position, imported_row)

    def _form_position(self, description: str, source: sm.Expr, row: UnilateralPositionRow) -> _QuantityWithRates:
        """Return a position with the rates that were read."""
        rate, second = row.rate(self._mechanism.u), row.rate_derivative(self._u_dot)
        return _QuantityWithRates(description, source, row.position, rate, second)

    def differences(self, values: Sequence[float]) -> Iterator[tuple[str, float, float]]:
        """Yield the name, error and bound of each comparison at a point; ``values`` of all slots, q' included."""
        u_dot = self._random.uniform(-1.0, 1.0, len(self._u_dot)) * (np.abs(np.array(values)[self._speeds]) + 1e-3)
        solved = [*u_dot.tolist(), *self._random.uniform(-2.0, 2.0, len(self._solved)).tolist()]
        import_values = self._plain_values(values, solved)
        values_off_constraints = self._leave_constraints(values)
        import_values_off_constraints = self._plain_values(values_off_constraints, solved)
        for pair, (source_function, import_function) in self._pairs:
            source_values, values_of_import = (
                (values_off_constraints, import_values_off_constraints)
                if pair.off_constraints
                else (values, import_values)
            )
            source_value, imported_value = (
                source_function([*source_values, *solved])[0],
                import_function(values_of_import)[0],
            )
            yield (
                pair.description,
                abs(source_value - imported_value),
                SAME_VALUE_TOLERANCE * max(abs(source_value), abs(imported_value)),
            )
        for item, (source_function, import_function) in self._moving_events:
            yield from self._compare_rates(item, source_function, import_function(import_values), list(values), u_dot)

    def compare_at(self, points: Iterable[tuple[float, Sequence[float]]]) -> list[tuple[float, str]]:
        """Return (error over bound, quantity and time) of each comparison at points (time, values)."""
        errors = [(math.inf, description) for description in self.mismatches]
        for time, values in points:
            try:
                for description, error, bound in self.differences(values):
                    ratio = error / bound if bound > 0.0 else (0.0 if error == 0.0 else math.inf)
                    errors.append((ratio, f"{description} at t = {time:.4g} s"))
            except (ArithmeticError, ValueError, np.linalg.LinAlgError):
                continue  # an expression has no number there
        return errors

    def _leave_constraints(self, values: Sequence[float]) -> list[float]:
        """Return the values with other coordinates and speeds, which do not keep the constraints."""
        changed, slot = list(values), self._symbols.slot
        for q, size in zip(self._symbols.q, self._q_scale.tolist(), strict=True):
            changed[slot[q]] += 0.3 * size * float(self._random.uniform(-1.0, 1.0))
        for k in self._speeds:
            changed[k] *= 1.0 + 0.5 * float(self._random.uniform(-1.0, 1.0))
        return list(self._constraints.with_rates(changed))

    def _plain_values(self, values: Sequence[float], solved: Sequence[float]) -> list[float]:
        """Return the values of the plain symbols."""
        import_values = [values[k] for k in self._places]
        missing_count = len(self._import_symbols) - len(import_values)
        for k, calculate in enumerate(self._calculate):
            import_values.append(calculate(*import_values, *[0.0] * (missing_count - k))[0])
        return [*import_values, *solved]

    def _compare_rates(
        self,
        item: _QuantityWithRates,
        source_function: Any,
        imported_values: Sequence[float],
        values: list[float],
        u_dot: Floats,
    ) -> Iterator[tuple[str, float, float]]:
        """Yield a value and its rates; a rate is left out where two steps disagree, since there is a kink."""
        source_value = source_function(values)[0]
        yield (
            item.description,
            abs(source_value - imported_values[0]),
            SAME_VALUE_TOLERANCE * max(abs(source_value), abs(imported_values[0])),
        )
        time_scale = self._choose_time_scale(values)

        def rate_at(values_there: list[float]) -> tuple[float, float]:
            """Return the rate of the position, and the remainder where two steps disagree."""
            return _differentiate_at_zero(
                lambda s: source_function(self._step_along_motion(values_there, s, None))[0],
                _STEP_FRACTION * time_scale,
            )

        if item.rate is not None:
            rate, disagreement = rate_at(values)
            bound = RATE_TOLERANCE * (abs(rate) + abs(source_value) / time_scale)
            if disagreement <= bound:
                yield f"rate of the {item.description}", abs(rate - imported_values[2]), bound
            size = (abs(rate) + abs(source_value) / time_scale) / time_scale

            def linear(s: float) -> float:
                return rate_at(self._step_along_motion(values, s, u_dot))[0]
        else:
            size = abs(source_value) / time_scale

            def linear(s: float) -> float:
                return float(source_function(self._step_along_motion(values, s, u_dot))[0])

        rate, disagreement = _differentiate_at_zero(linear, 10 * _STEP_FRACTION * time_scale)
        bound = SECOND_RATE_TOLERANCE * (abs(rate) + size)
        if disagreement <= bound:
            yield f"second rate of the {item.description}", abs(rate - imported_values[1]), bound

    def _choose_time_scale(self, values: Sequence[float]) -> float:
        """Return the time in which the first of the coordinates, or speeds, has moved by its scale."""
        rates = np.array([values[k] for k in self._constraints.rates])
        fastest = float(np.max(np.abs(rates) / self._q_scale, initial=0.0))
        return min(1.0 / fastest if fastest > 0.0 else 1.0, self._definition.experiment.stop)

    def _step_along_motion(self, values: Sequence[float], time_step: float, u_dot: Floats | None) -> list[float]:
        """Return the values after a time s along the motion; ``u_dot``: speeds and their kinematics move too."""
        stepped = list(values)
        stepped[0] += time_step
        for k, rate in self._rate_slots:
            stepped[k] += time_step * values[rate]
        for k, z_dot in zip(self._state_slots, self._symbols.z_dot(values), strict=True):
            stepped[k] += time_step * z_dot
        if u_dot is None:
            return stepped
        for k, acceleration in zip(self._speeds, u_dot.tolist(), strict=True):
            stepped[k] += time_step * acceleration
        return list(self._constraints.with_rates(stepped))


def _pair_slots_with_rates(symbols: ModelSymbolSlots, constraints: ModelCoordinateRates) -> list[tuple[int, int]]:
    """Return the slots of coordinates, and of inputs whose rates are inputs, each with the slot of its rate."""
    inputs = [(symbols.slot[r], symbols.slot.get(r.diff(symbols.t))) for r in symbols.r]
    coordinates = zip([symbols.slot[q] for q in symbols.q], constraints.rates, strict=True)
    return [*coordinates, *((k, rate) for k, rate in inputs if rate is not None)]


def _pair_unknown_forces(definition: CheckedModel, mechanism: Mechanism) -> Iterator[tuple[sm.Expr, sm.Symbol]]:
    """Yield unknown forces: the user's symbol and the symbol that was read."""
    source_symbols = [each.symbol for each in definition.constraint_forces]
    source_symbols += [contact.force for contact in definition.contacts]
    source_symbols += [contact.friction.force for contact in definition.contacts if contact.friction]
    source_symbols += [row.force for latch in definition.latches for row in latch.rows]
    contacts, latches = mechanism.contacts, mechanism.latches
    imported_symbols = [
        *mechanism.constraint_forces,
        *(contacts.forces if contacts else ()),
        *(latches.forces if latches else ()),
    ]
    yield from zip(source_symbols, imported_symbols, strict=False)
    for item, k in _pair_multiplier_constraints(definition, mechanism):
        yield item.symbol, mechanism.multipliers[k]


def _pair_multiplier_constraints(
    definition: CheckedModel, mechanism: Mechanism
) -> Iterator[tuple[DeclaredConstraint, int]]:
    """Constraints whose multipliers the model's outputs may contain, and the numbers of the rows that were read."""
    rows = mechanism.velocity_constraints
    names = list(rows.names) if rows else []
    for item in definition.constraints:
        if item.symbol is not None and item.name in names:
            yield item, names.index(item.name)


def _replace_sticking_signs(expression: sm.Expr) -> sm.Expr:
    """Return an expression with signs that stick: a value within the limits, the same for the same slip and limit."""
    return expression.replace(StickingSign, lambda slip, ratio: ratio * slip / (1 + sm.Abs(slip)))


def _differentiate_at_zero(function: Callable[[float], float], step: float) -> tuple[float, float]:
    """Return the derivative at zero by central differences of fourth order, and the difference of two step sizes."""
    coarse_difference, fine_difference = (
        math.fsum(w * function(place * h) for place, w in _DIFFERENCE_STENCIL) / h for h in (step, step / 2.0)
    )
    return fine_difference, abs(fine_difference - coarse_difference)


def _pair_conditions(description: str, source: sm.Basic, imported: sm.Basic) -> Iterator[_SourceAndImportedQuantity]:
    """Yield the margins, and all comparisons together: one that decides nothing at the points is seen, too."""
    yield _SourceAndImportedQuantity(description, form_condition_margin(source), form_condition_margin(imported))
    sides = [
        sm.Add(*((each.lhs - each.rhs) ** 2 for each in condition.atoms(sm.core.relational.Relational)))
        for condition in (source, imported)
    ]
    if any(sides):
        yield _SourceAndImportedQuantity(description, *sides)


def form_condition_margin(condition: sm.Basic) -> sm.Expr:
    """Return a number that is positive where a condition holds, or the number itself; equalities as 1 or -1."""
    if condition in (sm.true, sm.false):
        return sm.Integer(1 if condition == sm.true else -1)
    if isinstance(condition, sm.Gt | sm.Ge | sm.Lt | sm.Le):
        return condition.gts - condition.lts
    if isinstance(condition, sm.And | sm.Or):
        parts = [form_condition_margin(each) for each in condition.args]
        return sm.Min(*parts, evaluate=False) if isinstance(condition, sm.And) else sm.Max(*parts, evaluate=False)
    if isinstance(condition, sm.Not):
        return -form_condition_margin(condition.args[0])
    if isinstance(condition, sm.logic.boolalg.Boolean):
        return sm.Piecewise((1, condition), (-1, True))
    return condition
