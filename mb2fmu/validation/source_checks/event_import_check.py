"""Imported events, compared with the model's own expressions at points: gaps, slip, rows, conditions, settings.

FMU and reference take gaps with their rates, conditions and what events set from one reading. Here the user's own
expressions are asked by ``lambdify``, and their rates are difference quotients along a motion; of the reading's rates
nothing is used for them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sm

from mb2fmu.mechanics.mechanism import Mechanism
from mb2fmu.mechanics.mechanism.records.requested_quantities import ExpressionOutput, RequestedOutput
from mb2fmu.model.declarations.declared_outputs import OutputRequest
from mb2fmu.model.functions import StickingSign
from mb2fmu.model.model_definition import ModelDefinition
from mb2fmu.model.quantity_declarations import Constraint, Output
from mb2fmu.validation.evaluation_plans.scalar_functions import compile_scalar_function
from mb2fmu.validation.source_checks.source_constraints import SourceConstraints
from mb2fmu.validation.source_checks.source_symbols import Floats, NotFormedError, SourceSymbols, make_unused_symbol

SAME_VALUE_TOLERANCE = 1e-9
"""Of magnitudes: two evaluations of one expression may differ by so much."""
RATE_TOLERANCE, SECOND_RATE_TOLERANCE = 1e-6, 1e-4
"""Of magnitudes: what difference quotients of first and second order may be off by."""
_STEP_FRACTION = 1e-3
"""Of the time in which coordinates move by their scale: the step of difference quotients."""
_DIFFERENCE_STENCIL = ((-2.0, 1.0 / 12.0), (-1.0, -2.0 / 3.0), (1.0, 2.0 / 3.0), (2.0, -1.0 / 12.0))


@dataclass(frozen=True, slots=True)
class _SourceAndImport:
    """A quantity in the user's expression and in that which was read; numbers, or conditions as margins.

    Attributes:
        what: For messages.
        own: In the user's symbols.
        read: In plain symbols.
        beside: Compared beside the constraints: on them it is zero.
    """

    what: str
    own: sm.Expr
    read: sm.Expr
    beside: bool = False


@dataclass(frozen=True, slots=True)
class _QuantityWithRates:
    """What has rates: a position (gap, row), or a slip, which is linear in speeds.

    Attributes:
        what: For messages.
        own: In the user's symbols.
        read: The reading's value of it: of a slip H u + d.
        rate: Of a position, G u + b; None of a slip.
        second: The rate of what is linear in the speeds: G u' + c.
    """

    what: str
    own: sm.Expr
    read: sm.Expr
    rate: sm.Expr | None
    second: sm.Expr


class EventImportCheck:
    """Compares what was read of contacts, latches and events with what the model says.

    Args:
        definition: The checked model, in the user's symbols.
        mechanism: What was read from it.
        symbols: Slots of the user's symbols.
        constraints: The user's own kinematic equations.
        q_scale: How far each coordinate goes, in the order of ``symbols.q``.
    """

    def __init__(
        self,
        definition: ModelDefinition,
        mechanism: Mechanism,
        symbols: SourceSymbols,
        constraints: SourceConstraints,
        q_scale: Floats,
    ) -> None:
        self._d, self._m, self._symbols, self._constraints = definition, mechanism, symbols, constraints
        self._q_scale = q_scale
        self._random = np.random.default_rng(17)
        m = mechanism
        self._u_dot = [sm.Symbol(f"mb2fmu_rate_of_{i}") for i in range(len(m.u))]
        calculated = [each.symbol for each in m.calculated_parameters]
        self._solved = dict(_pair_unknown_forces(definition, m))
        self._plain = [m.t, *m.q, *m.u, *m.z, *m.r, *m.p, *calculated, *self._u_dot, *self._solved.values()]
        slot, said, d = symbols.slot, {item.name: item.symbol for item in definition.quantities}, m.declared
        free = [p for p in d.parameters if not p.calculated]
        every = [*d.coordinates, *d.speeds, *d.auxiliary_states, *d.inputs, *free]
        self._places = [0, *(slot[said[item.name]] for item in every)]
        self._speeds = [slot[said[speed.name]] for speed in d.speeds]
        self._calculate = [compile_scalar_function(self._plain, [each.expression]) for each in m.calculated_parameters]
        rates = [said[speed.name].diff(symbols.t) for speed in d.speeds]
        self._stand_ins = [make_unused_symbol(k, of="solved") for k in range(len(rates) + len(self._solved))]
        self._unknown = dict(zip((*rates, *self._solved), self._stand_ins, strict=True))
        self.wrong = list(self._list_mismatches())
        self.left_out: list[str] = []
        self._pairs = self._formed(self._all_pairs(), self._of_pair)
        self._moving = self._formed(self._all_moving(), self._of_moving)

    @property
    def nothing(self) -> bool:
        """Whether the model has neither events nor outputs of unknown forces."""
        d = self._d
        return not (d.contacts or d.latches or d.events or self._pairs)

    def _formed(self, items: Iterator[Any], form: Callable[[Any], Any]) -> list[Any]:
        """Return the items that can be evaluated; keep the names of the others in ``describe_unwatched_events``."""
        found = []
        for item in items:
            try:
                found.append((item, form(item)))
            except NotFormedError:
                self.left_out.append(item.what)
        return found

    def _of_pair(self, pair: _SourceAndImport) -> Any:
        """Return both sides as functions."""
        return self._own(pair.own), self._read([pair.read])

    def _own(self, expression: sm.Expr) -> Callable[[Sequence[float]], list[float]]:
        """Return a function of the slots' values, then of u' and of forces that are solved for."""
        return self._symbols.function([sm.sympify(expression).xreplace(self._unknown)], self._stand_ins)

    def _of_moving(self, item: _QuantityWithRates) -> Any:
        """Return the user's value, and all that was read of it."""
        read = [item.read, item.second, *([item.rate] if item.rate is not None else [])]
        own = self._symbols.function([item.own])
        return own, self._read(read)

    def _read(self, expressions: Sequence[sm.Expr]) -> Callable[[Sequence[float]], list[float]]:
        """Return a function of plain values of expressions that were read."""
        rates = dict(zip(self._m.u_dot, self._u_dot, strict=True))
        plain = [sm.sympify(each).xreplace(rates) for each in expressions]
        if any(each.free_symbols - set(self._plain) for each in plain):
            raise NotFormedError("it contains what is solved for")
        made = compile_scalar_function(self._plain, plain)
        return lambda values: list(made(*values))

    def _list_mismatches(self) -> Iterator[str]:
        """Yield differences that are no numbers: laws, order, instants, states that events set."""
        d, m = self._d, self._m
        contacts = m.contacts.each if m.contacts else ()
        latches = m.latches.each if m.latches else ()
        if [len(d.contacts), len(d.latches), len(d.events)] != [len(contacts), len(latches), len(m.events)]:
            yield "another number of contacts, latches or events was read"
            return
        for said, read in zip(d.contacts, contacts, strict=True):
            if m.contacts and (said.law, said.order) != (read.law, m.contacts.order):
                yield f"{said.name} was read with another law or order of impacts"
        name = {item.symbol: item.name for item in d.quantities}
        there = (*m.declared.coordinates, *m.declared.speeds, *m.declared.auxiliary_states)
        plain = {symbol: item.name for symbol, item in zip((*m.q, *m.u, *m.z), there, strict=True)}
        for event, own in zip(d.events, m.events, strict=True):
            if [name[symbol] for symbol in event.settings] != [plain[symbol] for symbol, _ in own.settings]:
                yield f"{event.name} was read to set other states"
            if (event.kind, event.period, event.offset) != (own.kind, own.period, own.offset):
                yield f"{event.name} was read with other instants"

    def _all_pairs(self) -> Iterator[_SourceAndImport]:
        """Yield all pairs of expressions that are compared at the points."""
        if self.wrong:
            return
        d, m = self._d, self._m
        for said, read in zip(d.contacts, m.contacts.each if m.contacts else (), strict=True):
            for part in ("restitution", "rest_below", "stabilization"):
                yield _SourceAndImport(f"{part} of {said.name}", getattr(said, part), getattr(read, part))
            if said.friction and read.friction:
                yield _SourceAndImport(f"friction of {said.name}", said.friction.coefficient, read.friction.coefficient)
        for latch, held in zip(d.latches, m.latches.each if m.latches else (), strict=True):
            yield _SourceAndImport(
                f"{latch.name} closes", compute_condition_margin(latch.close), compute_condition_margin(held.close)
            )
            yield _SourceAndImport(
                f"{latch.name} opens", compute_condition_margin(latch.open), compute_condition_margin(held.open)
            )
            for row in held.rows:
                yield _SourceAndImport(f"stabilization of {row.name}", latch.stabilization, row.stabilization)
        for event, own in zip(d.events, m.events, strict=True):
            yield _SourceAndImport(
                f"condition of {event.name}",
                compute_condition_margin(event.condition),
                compute_condition_margin(own.condition),
            )
            for (symbol, value), (_, there) in zip(event.settings.items(), own.settings, strict=True):
                yield _SourceAndImport(f"{symbol} as {event.name} sets it", sm.sympify(value), there)
        yield from self._of_outputs()

    def _of_outputs(self) -> Iterator[_SourceAndImport]:
        """Yield outputs that contain unknown forces or sticking friction; the FMU itself is asked for all others."""
        d, m = self._d, self._m
        written = {each.name: each.expression for each in m.outputs if isinstance(each, ExpressionOutput)}
        for output in d.outputs:
            if isinstance(output, Output) and output.name in written:
                own = sm.sympify(output.expression)
                if own.has(StickingSign):
                    here, there = _replace_sticking_signs(own), _replace_sticking_signs(written[output.name])
                    yield _SourceAndImport(f"output {output.name} while it sticks", here, there)
                elif own.atoms(sm.Function) & self._solved.keys():
                    yield _SourceAndImport(f"output {output.name}", own, written[output.name])
        yield from self._of_multipliers()

    def _of_multipliers(self) -> Iterator[_SourceAndImport]:
        """Yield constraints whose multipliers are outputs: the model's row and the row that was read.

        Signs are free. With quaternions rows are read at unit length, which is another expression beside it.
        """
        d, m = self._d, self._m
        if m.quaternions:
            return
        asked = {each.name: each for each in m.outputs if isinstance(each, RequestedOutput)}
        c = m.velocity_constraints
        rates = list(c.jacobian * sm.Matrix(m.u) + c.offset) if c else []
        rows = [(item.name, k, sm.sympify(item.row)) for item, k in _pair_multiplier_constraints(d, m)]
        rows += [
            (output.name, asked[output.name].subject[0], sm.sympify(output.subject[0]))
            for output in d.outputs
            if isinstance(output, OutputRequest) and output.kind == "multiplier" and output.name in asked
        ]
        for name, k, own in rows:
            moves = bool(own.atoms(*(s.symbol.func for s in d.speeds if s.symbol.is_Function), sm.Derivative))
            read = rates[k] if moves or k >= len(m.holonomic) else m.holonomic[k][1]
            yield _SourceAndImport(f"row of {name}", own**2, read**2, beside=True)

    def _all_moving(self) -> Iterator[_QuantityWithRates]:
        """Yield gaps, slip and rows of latches: they are compared with their rates."""
        if self.wrong:
            return
        d, m = self._d, self._m
        for said, read in zip(d.contacts, m.contacts.each if m.contacts else (), strict=True):
            yield self._position(f"gap of {said.name}", said.gap, read.gap, read)
            if said.friction and read.friction:
                f = read.friction
                second = sm.Add(*map(sm.Mul, f.jacobian, self._u_dot), f.bias)
                yield _QuantityWithRates(f"slip of {said.name}", said.friction.slip, f.slip(m.u), None, second)
        for latch, held in zip(d.latches, m.latches.each if m.latches else (), strict=True):
            for row, other in zip(latch.rows, held.rows, strict=True):
                yield self._position(row.name, row.position, other.position, other)

    def _position(self, what: str, own: sm.Expr, read: sm.Expr, rates: Any) -> _QuantityWithRates:
        """Return a position with the rates that were read."""
        second = sm.Add(*map(sm.Mul, rates.jacobian, self._u_dot), rates.bias)
        return _QuantityWithRates(what, own, read, rates.rate(self._m.u), second)

    def differences(self, values: Sequence[float]) -> Iterator[tuple[str, float, float]]:
        """Yield the name, error and bound of each comparison at a point; ``values`` of all slots, q' included."""
        u_dot = self._random.uniform(-1.0, 1.0, len(self._u_dot)) * (np.abs(np.array(values)[self._speeds]) + 1e-3)
        solved = [*u_dot.tolist(), *self._random.uniform(-2.0, 2.0, len(self._solved)).tolist()]
        plain = self._plain_values(values, solved)
        beside = self._beside(values)
        plain_beside = self._plain_values(beside, solved)
        for pair, (own, read) in self._pairs:
            at, plain_at = (beside, plain_beside) if pair.beside else (values, plain)
            here, there = own([*at, *solved])[0], read(plain_at)[0]
            yield pair.what, abs(here - there), SAME_VALUE_TOLERANCE * max(abs(here), abs(there))
        for item, (own, read) in self._moving:
            yield from self._of_motion(item, own, read(plain), list(values), u_dot)

    def _beside(self, values: Sequence[float]) -> list[float]:
        """Return the values with other coordinates and speeds, which do not keep the constraints."""
        found, slot = list(values), self._symbols.slot
        for q, size in zip(self._symbols.q, self._q_scale.tolist(), strict=True):
            found[slot[q]] += 0.3 * size * float(self._random.uniform(-1.0, 1.0))
        for k in self._speeds:
            found[k] *= 1.0 + 0.5 * float(self._random.uniform(-1.0, 1.0))
        return list(self._constraints.with_rates(found))

    def _plain_values(self, values: Sequence[float], solved: Sequence[float]) -> list[float]:
        """Return the values of the plain symbols."""
        found = [values[k] for k in self._places]
        blank = len(self._plain) - len(found)
        for k, calculate in enumerate(self._calculate):
            found.append(calculate(*found, *[0.0] * (blank - k))[0])
        return [*found, *solved]

    def _of_motion(
        self, item: _QuantityWithRates, own: Any, read: Sequence[float], values: list[float], u_dot: Floats
    ) -> Iterator[tuple[str, float, float]]:
        """Yield a value and its rates; a rate is left out where two steps disagree, since there is a kink."""
        here = own(values)[0]
        yield item.what, abs(here - read[0]), SAME_VALUE_TOLERANCE * max(abs(here), abs(read[0]))
        long = self._long(values)

        def rate_at(there: list[float]) -> tuple[float, float]:
            """Return the rate of the position, and the remainder where two steps disagree."""
            return _differentiate_at_zero(lambda s: own(self._moved(there, s, None))[0], _STEP_FRACTION * long)

        if item.rate is not None:
            found, apart = rate_at(values)
            bound = RATE_TOLERANCE * (abs(found) + abs(here) / long)
            if apart <= bound:
                yield f"rate of the {item.what}", abs(found - read[2]), bound
            size = (abs(found) + abs(here) / long) / long

            def linear(s: float) -> float:
                return rate_at(self._moved(values, s, u_dot))[0]
        else:
            size = abs(here) / long

            def linear(s: float) -> float:
                return float(own(self._moved(values, s, u_dot))[0])

        found, apart = _differentiate_at_zero(linear, 10 * _STEP_FRACTION * long)
        bound = SECOND_RATE_TOLERANCE * (abs(found) + size)
        if apart <= bound:
            yield f"second rate of the {item.what}", abs(found - read[1]), bound

    def _long(self, values: Sequence[float]) -> float:
        """Return the time in which the first of the coordinates, or speeds, has moved by its scale."""
        rates = np.array([values[k] for k in self._constraints.rates])
        fastest = float(np.max(np.abs(rates) / self._q_scale, initial=0.0))
        return min(1.0 / fastest if fastest > 0.0 else 1.0, self._d.experiment.stop)

    def _moved(self, values: Sequence[float], s: float, u_dot: Floats | None) -> list[float]:
        """Return the values after a time s along the motion; ``u_dot``: speeds and their kinematics move too."""
        found, symbols, t = list(values), self._symbols, self._symbols.t
        found[0] += s
        for k, rate in zip([symbols.slot[q] for q in symbols.q], self._constraints.rates, strict=True):
            found[k] += s * values[rate]
        for k, z_dot in zip([symbols.slot[z] for z in symbols.z], symbols.z_dot(values), strict=True):
            found[k] += s * z_dot
        for r in symbols.r:
            if r.diff(t) in symbols.slot:
                found[symbols.slot[r]] += s * values[symbols.slot[r.diff(t)]]
        if u_dot is None:
            return found
        for k, acceleration in zip(self._speeds, u_dot.tolist(), strict=True):
            found[k] += s * acceleration
        return list(self._constraints.with_rates(found))


def _pair_unknown_forces(definition: ModelDefinition, mechanism: Mechanism) -> Iterator[tuple[sm.Expr, sm.Symbol]]:
    """Yield unknown forces: the user's symbol and the symbol that was read."""
    said = [each.symbol for each in definition.constraint_forces]
    said += [contact.force for contact in definition.contacts]
    said += [contact.friction.force for contact in definition.contacts if contact.friction]
    said += [row.force for latch in definition.latches for row in latch.rows]
    contacts, latches = mechanism.contacts, mechanism.latches
    read = [*mechanism.constraint_forces, *(contacts.forces if contacts else ()), *(latches.forces if latches else ())]
    yield from zip(said, read, strict=False)
    for item, k in _pair_multiplier_constraints(definition, mechanism):
        yield item.symbol, mechanism.multipliers[k]


def _pair_multiplier_constraints(definition: ModelDefinition, mechanism: Mechanism) -> Iterator[tuple[Constraint, int]]:
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
    coarse, fine = (
        math.fsum(w * function(place * h) for place, w in _DIFFERENCE_STENCIL) / h for h in (step, step / 2.0)
    )
    return fine, abs(fine - coarse)


def compute_condition_margin(condition: sm.Basic) -> sm.Expr:
    """Return a number that is positive where a condition holds, or the number itself; equalities as 1 or -1."""
    if condition in (sm.true, sm.false):
        return sm.Integer(1 if condition == sm.true else -1)
    if isinstance(condition, sm.Gt | sm.Ge | sm.Lt | sm.Le):
        return condition.gts - condition.lts
    if isinstance(condition, sm.And | sm.Or):
        parts = [compute_condition_margin(each) for each in condition.args]
        return sm.Min(*parts, evaluate=False) if isinstance(condition, sm.And) else sm.Max(*parts, evaluate=False)
    if isinstance(condition, sm.Not):
        return -compute_condition_margin(condition.args[0])
    if isinstance(condition, sm.logic.boolalg.Boolean):
        return sm.Piecewise((1, condition), (-1, True))
    return condition
