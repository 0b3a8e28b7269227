"""Switches of equations as the reference finds them: one by one in SymPy's expressions, without any program.

Every switch becomes a symbol that is constant between events, an input of the equations; its surface, and what the
model's own events test and set, become further outputs of them.

    sign(a), Abs(a)                    σ, a σ             σ = ±1; of a sign that is held any number (see
    ``hybrid_equations``) a < b, Heaviside(a), Max, Min      B                  1 where b − a > 0, else 0; a <= b is not
    b < a floor(a), ceiling(a), Mod(a, b)    n                  the integer below
    a table of straight lines, of a    n                  which of them holds, counted at the kinks
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import sympy as sm
from sympy.core.relational import Relational

from mb2fmu.mechanics.equations.contact_equations import ContactEquations
from mb2fmu.mechanics.equations.equations_of_motion import (
    EquationsOfMotion,
    EventDefinition,
    LinearSystemAssignment,
    MassMatrixDynamics,
    OutputExpression,
    SymbolAssignment,
)
from mb2fmu.mechanics.equations.event_definitions import form_mode_change_indicator
from mb2fmu.mechanics.equations.latch_equations import LatchEquations
from mb2fmu.mechanics.equations.unilateral_constraint_rows import UnilateralRow
from mb2fmu.model.expression_traversal import iterate_distinct_subexpressions
from mb2fmu.model.supported_functions import LookupTable, LookupTableDerivative, NoEvent, Pre, StickingSign

ReferenceSwitchKind = Literal["truth", "integer", "sign"]
_ONE_HALF = sm.Rational(1, 2)
_CLOCK_ROUND_OFF = 2.0**-49  # of what a clock counts
_SIDE_WORDS = ("negative", "positive")
_SWITCHING_FUNCTIONS = (
    sm.sign, sm.Abs, sm.Min, sm.Max, sm.Heaviside, sm.floor, sm.ceiling, sm.Mod, sm.frac, StickingSign, Relational,
    LookupTableDerivative,
)  # fmt: skip


_LIMITED_FUNCTIONS = (sm.Pow, sm.log, sm.asin, sm.acos, sm.acosh, sm.atanh)
"""Functions that have no real value for some numbers."""
_STATELESS_SWITCHES = (sm.Abs, sm.Min, sm.Max, sm.Heaviside, Relational)
_MODE_FUNCTIONS = (sm.sign, StickingSign, sm.floor, sm.ceiling, sm.Mod, sm.frac, LookupTableDerivative, Pre, NoEvent)
"""Functions whose value between events depends on a mode, not on the present state alone."""


@dataclass(frozen=True, slots=True)
class ReferenceSwitch:
    """One switch: its surface, the kind of its mode, and the symbol for it.

    Attributes:
        symbol: That stands for its mode.
        kind: ``truth``: 1 where the surface is positive, else 0; ``integer``: the one below; ``sign``: 1 or −1, or
            what holds the surface at zero.
        surface: Expression whose sign or integer part decides the mode.
        limit: Of a sign's magnitude while it holds.
        name: For people.
        changes_only_at_events: Its surface is set by events and from outside, and does not move: a counter that
            is set to 3 stays there, and 3 <= n is true, whereas motion that comes to a surface goes through it.
        words: Of a truth, for people: what its modes 0 and 1 mean of what is named.
    """

    symbol: sm.Symbol
    kind: ReferenceSwitchKind
    surface: sm.Expr
    limit: sm.Expr
    name: str
    changes_only_at_events: bool = False
    words: tuple[str, str] = ("false", "true")


@dataclass(frozen=True)
class EquationsBetweenEvents:
    """Smooth equations between events, with the modes of all switches as inputs.

    Attributes:
        equations: Their last inputs are the switches' symbols, then those of contacts and latches, forces first
            (``_list_contact_and_latch_symbols``); their last outputs, in this order: surfaces; limits and rates of
            the surfaces of signs (0 of others); conditions; values that events set; of all contacts the fields of
            ``ContactsAtInstant``; of those with friction those of ``InstantFrictionContacts``; of all rows of latches
            those of ``ClosedLatchRows``.
        switches: In the order of their symbols.
        events: As in the equations before.
        inputs, outputs: How many of those there are without ours.
        replace_switches: Returns another expression of the model's with the symbols of its switches; of a switch that
            is not among ``switches`` the symbol is no input.
        contacts: Unilateral ones.
        latches: What is held from event to event.
    """

    equations: EquationsOfMotion
    switches: tuple[ReferenceSwitch, ...]
    events: tuple[EventDefinition, ...]
    inputs: int
    outputs: int
    replace_switches: Callable[[Any], Any]
    contacts: ContactEquations | None = None
    latches: LatchEquations | None = None

    @functools.cached_property
    def clock_switches(self) -> frozenset[int]:
        """Numbers of the switches that look at time alone."""
        e = self.equations
        constant = {e.t, *e.p, *(c.symbol for c in e.calculated_parameters)}
        return frozenset(i for i, s in enumerate(self.switches) if s.surface.free_symbols <= constant)

    @functools.cached_property
    def steady_clock_switches(self) -> frozenset[int]:
        """Numbers of those that grow as evenly as time does: their margins fall alike before each of their events."""
        t = self.equations.t
        return frozenset(i for i in self.clock_switches if not self.switches[i].surface.diff(t).has(t))

    @functools.cached_property
    def condition_switches(self) -> frozenset[int]:
        """Numbers of the switches that only conditions of events depend on."""
        e = self.equations
        first_condition = self.outputs + 3 * len(self.switches)
        condition_names = {o.name for o in e.outputs[first_condition : first_condition + len(self.events)]}
        outputs = [o.expression for o in e.outputs if o.name not in condition_names]
        used_parts = set(iterate_distinct_subexpressions([*_iterate_motion_expressions(e), *outputs]))
        return frozenset(i for i, s in enumerate(self.switches) if s.symbol not in used_parts)

    @functools.cached_property
    def conditions_know_impacts(self) -> bool:
        """Whether a condition of an event depends on what impacts and closing latches bring about at its instant."""
        e = self.equations
        unsolved: set[sm.Basic] = {*(self.contacts.impact_unknowns if self.contacts else ())}
        unsolved |= {*(self.latches.impact_unknowns if self.latches else ())}
        motion = sm.Tuple(*_iterate_motion_expressions(e))
        definitions: dict[sm.Basic, sm.Basic] = dict.fromkeys((*e.u_dot, *e.multipliers), motion)
        for item in (*e.intermediates, *e.late_intermediates):
            if isinstance(item, SymbolAssignment):
                definitions[item.symbol] = item.expression
            else:
                definitions |= dict.fromkeys(item.unknowns, sm.Tuple(item.matrix, item.right_hand_side))
        first = self.outputs + 3 * len(self.switches)
        reached: set[sm.Basic] = set()
        met: list[sm.Basic] = [output.expression for output in e.outputs[first : first + len(self.events)]]
        while met:
            symbols = met.pop().free_symbols - reached
            reached |= symbols
            met += [definitions[symbol] for symbol in symbols if symbol in definitions]
        return not reached.isdisjoint(unsolved)


def compute_distance_to_next_count(surface: float, mode: float, *, clock: bool) -> float:
    """Return how far what counts is from its next step; a clock within round-off of an instant is at it."""
    margin_above = mode + 1.0 - surface
    return 0.0 if clock and abs(margin_above) <= _CLOCK_ROUND_OFF * abs(surface) else min(surface - mode, margin_above)


def form_equations_between_events(equations: EquationsOfMotion) -> EquationsBetweenEvents | None:
    """Return the equations between events; None where nothing switches.

    Args:
        equations: With a mass matrix.
    """
    find_switches = _SwitchReplacer(equations)
    events = equations.all_events
    conditions = [find_switches(event.condition) for event in events]
    values = [find_switches(value) for event in events for _, value in event.settings]
    contacts = equations.contacts
    contact_requests = (
        [*_request_contacts(equations, contacts), *_request_contact_frictions(equations, contacts)] if contacts else []
    )
    contact_outputs = [find_switches(each) for each in contact_requests]
    latches = equations.latches
    latch_outputs = [find_switches(each) for each in _request_latch_rows(equations, latches)] if latches else []
    frozen = find_switches.equations()
    if not find_switches.switches and not events:
        return None
    switches = tuple(find_switches.switches.values())
    rates = [_differentiate_surface(frozen, s.surface) if s.kind == "sign" else sm.S.Zero for s in switches]
    condition_values = [sm.Piecewise((1, c), (0, True)) if c.is_Boolean else c for c in conditions]
    further_outputs = [
        *(s.surface for s in switches),
        *(s.limit for s in switches),
        *rates,
        *condition_values,
        *values,
        *contact_outputs,
        *latch_outputs,
    ]
    outputs = tuple(
        OutputExpression(f"ours {i}", sm.sympify(each), "acceleration") for i, each in enumerate(further_outputs)
    )
    return EquationsBetweenEvents(
        equations=replace(frozen, outputs=(*frozen.outputs, *outputs)),
        switches=switches,
        events=events,
        contacts=contacts,
        latches=latches,
        inputs=len(equations.r),
        outputs=len(frozen.outputs),
        replace_switches=find_switches,
    )


class _SwitchReplacer:
    """Replaces switches by symbols, from the inside out."""

    def __init__(self, equations: EquationsOfMotion) -> None:
        self._equations = equations
        constant = {*equations.p, *(c.symbol for c in equations.calculated_parameters)}
        self._constant: set[sm.Basic] = constant
        constant_states = {z for z, rate in zip(equations.z, equations.z_dot, strict=True) if rate == 0}
        self._event_constant: set[sm.Basic] = constant | constant_states | set(equations.r)
        self.switches: dict[tuple[str, sm.Expr, sm.Expr], ReferenceSwitch] = {}
        self._replacements: dict[sm.Basic, sm.Basic] = {}

    def __call__(self, expression: Any) -> Any:
        """Return the expression with symbols for its switches."""
        if not isinstance(expression, sm.Basic) or not expression.has(
            *_SWITCHING_FUNCTIONS, sm.Piecewise, Pre, NoEvent
        ):
            return expression
        for node in _iterate_switching_nodes(expression):
            if node not in self._replacements:
                self._replacements[node] = self._replace_node(node)
        return self._replacements[expression]

    def _replace_node(self, node: sm.Basic) -> sm.Basic:  # noqa: C901, PLR0911, PLR0912 (one function after the other)
        """Return an expression with its switch replaced by a mode symbol; arguments have been replaced before."""
        if isinstance(node, NoEvent):
            return node.args[0]
        arguments = [self._replacements.get(argument, argument) for argument in node.args]
        if isinstance(node, Pre):
            return arguments[0]
        if self._keeps_switches(node):
            return node
        is_switch = (
            isinstance(node, _SWITCHING_FUNCTIONS)
            and not isinstance(node, (sm.Eq, sm.Ne))
            and not node.free_symbols <= self._constant
        )
        if not is_switch:
            rebuilt = node.func(*arguments) if node.args and arguments != list(node.args) else node
            return self._end_at_domains(node, rebuilt) if isinstance(node, sm.Piecewise) else rebuilt
        name = str(node)
        if isinstance(node, sm.sign):
            return self._find_mode_symbol("sign", arguments[0], name)
        if isinstance(node, StickingSign):
            return self._find_mode_symbol("sign", arguments[0], name, arguments[1])
        if isinstance(node, sm.Abs):
            return arguments[0] * (2 * self._find_mode_symbol("truth", arguments[0], name, words=_SIDE_WORDS) - 1)
        if isinstance(node, sm.Heaviside):
            is_above = self._find_mode_symbol("truth", arguments[0], name, words=("0", "1"))
            return sm.Piecewise((arguments[1], sm.Eq(arguments[0], 0)), (is_above, True))
        if isinstance(node, (sm.floor, sm.frac)):
            integer_below = self._find_mode_symbol("integer", arguments[0], name)
            return integer_below if isinstance(node, sm.floor) else arguments[0] - integer_below
        if isinstance(node, sm.ceiling):
            return -self._find_mode_symbol("integer", -arguments[0], name)
        if isinstance(node, LookupTableDerivative):
            return self._replace_table(node, arguments[0], name)
        if isinstance(node, sm.Mod):
            return arguments[0] - arguments[1] * self._find_mode_symbol("integer", arguments[0] / arguments[1], name)
        if isinstance(node, (sm.Min, sm.Max)):
            return self._replace_extreme(node, arguments, name)
        return self._replace_comparison(node, arguments, name)

    def _keeps_switches(self, node: sm.Basic) -> bool:
        """Return whether a power or logarithm is evaluated with its switches as functions of the present state.

        Where a frozen ``Max(-y, 0)`` ends it is −y, just beyond y = 0 too, and has no real power there. Its mode and
        its event stay.
        """
        if isinstance(node, _LIMITED_FUNCTIONS):
            base = node.args[0]
            return not _is_whole_power(node) and base.has(*_STATELESS_SWITCHES) and not base.has(*_MODE_FUNCTIONS)
        return False

    def _end_at_domains(self, node: sm.Basic, rebuilt: sm.Basic) -> sm.Basic:
        """Return a Piecewise whose branches go on, beyond an event, with values at the ends of their domains.

        Where a comparison of ``node`` is as its mode says, a number outside of a domain stays a fault.
        """
        if not isinstance(rebuilt, sm.Piecewise):
            return rebuilt
        relations = [each for _, condition in node.args for each in condition.atoms(Relational)]
        relations = [each for each in relations if not each.has(*_MODE_FUNCTIONS) and each in self._replacements]
        surfaces = [each.lhs - each.rhs for each in relations]
        limited_functions = [
            each
            for expression, _ in rebuilt.args
            for each in expression.atoms(*_LIMITED_FUNCTIONS)
            if _is_limited(each, surfaces)
        ]
        changed = relations if limited_functions else ()  # SymPy is slow at what follows
        is_other_branch = sm.Or(*(sm.Xor(each, self._replacements[each], evaluate=False).to_nnf() for each in changed))
        if is_other_branch == sm.false:
            return rebuilt
        ended_functions = {each: _end_at_domain(each, is_other_branch) for each in limited_functions}
        pairs = [(expression.xreplace(ended_functions), condition) for expression, condition in rebuilt.args]
        return sm.Piecewise(*pairs, evaluate=False)

    def _replace_table(self, node: LookupTableDerivative, argument: sm.Expr, name: str) -> sm.Expr:
        """Return a table with kinks, or its slope, on the straight line that holds."""
        table, order = node.table, node.order
        if table.kind != "linear":
            return self._replace_smooth_table(node, argument, name)
        if order > 1:
            return node.func(argument, *node.args[1:])
        xs, ys = (np.array(column) for column in table.data)
        line_slopes = np.diff(ys) / np.diff(xs)
        outside_slopes = (0.0, 0.0) if table.extrapolation == "constant" else (line_slopes[0], line_slopes[-1])
        slopes = np.array([outside_slopes[0], *line_slopes, outside_slopes[1]])
        kinks = np.flatnonzero(slopes[1:] != slopes[:-1])
        if not len(kinks):
            return node.func(argument, *node.args[1:])
        line_mode = self._find_piece_mode(table, xs[kinks], argument, name)
        numbers = list(range(len(kinks) + 1))

        def on_line(values: Any) -> sm.Expr:
            """Return what is constant on each line, by its number."""
            return LookupTable(f"{table.name} by line", numbers, values, "linear", "constant")(line_mode)

        slope = on_line(slopes[[0, *(kinks + 1)]])
        line_ends = [kinks[0], *kinks]
        return slope if order else on_line(ys[line_ends]) + slope * (argument - on_line(xs[line_ends]))

    def _replace_smooth_table(self, node: LookupTableDerivative, argument: sm.Expr, name: str) -> sm.Expr:
        """Return a table of cubics with a mode for each end at which its slope jumps to that of a constant."""
        table, order = node.table, node.order
        if table.extrapolation != "constant":
            return node.func(argument, *node.args[1:])
        xs, ys = table.data
        unextrapolated_table = LookupTable(table.name, xs, ys, table.kind, "linear")
        slopes = unextrapolated_table.coefficients[1]
        has_kink = [abs(slopes[end]) > 1e-12 * max(map(abs, slopes)) for end in (0, -1)]
        kinks = [x for x, is_bent in zip((xs[0], xs[-1]), has_kink, strict=True) if is_bent]
        if not kinks:
            return node.func(argument, *node.args[1:])
        piece = self._find_piece_mode(table, kinks, argument, name)
        end_values = [0.0, 0.0] if order else [ys[0], ys[-1]]
        pieces = [(sm.Float(end_values[0], 17), piece < _ONE_HALF)] if has_kink[0] else []
        pieces += [(sm.Float(end_values[1], 17), piece > len(kinks) - _ONE_HALF)] if has_kink[1] else []
        return sm.Piecewise(
            *pieces,
            (
                unextrapolated_table(argument)
                if not order
                else LookupTableDerivative(argument, unextrapolated_table, order),
                True,
            ),
        )

    def _find_piece_mode(self, table: LookupTable, kinks: Any, argument: sm.Expr, name: str) -> sm.Expr:
        """Return the mode that counts the kinks below the argument."""
        span = table.data[0][-1] - table.data[0][0]
        count = len(kinks)
        counter = LookupTable(
            f"{table.name} line",
            [kinks[0] - span, *kinks, kinks[-1] + span],
            [0.5, *range(1, count + 1), count + 0.5],
            "linear",
            "constant",
        )
        return self._find_mode_symbol("integer", counter(argument), name)

    def _replace_extreme(self, node: sm.Basic, arguments: list[Any], name: str) -> sm.Expr:
        """Return Min and Max of several arguments, two by two."""
        result, extreme_name = arguments[0], str(node.args[0])
        for k, other in enumerate(arguments[1:], start=1):
            largest = isinstance(node, sm.Max)
            words = (str(node.args[k]), extreme_name) if largest else (extreme_name, str(node.args[k]))
            first = self._find_mode_symbol("truth", result - other, name, words=words)
            pair = (other, result) if largest else (result, other)
            result = sm.Piecewise((pair[1], first > _ONE_HALF), (pair[0], True))
            extreme_name = f"{node.func.__name__}({', '.join(map(str, node.args[: k + 1]))})"
        return result

    def _replace_comparison(self, node: sm.Basic, arguments: list[Any], name: str) -> sm.Basic:
        """Return a comparison by its mode: true at > ½ for < and >, at < ½ for ≤ and ≥, whose surface is reversed."""
        left, right = arguments
        if isinstance(node, (sm.LessThan, sm.StrictGreaterThan)):
            left, right = right, left
        strict = isinstance(node, (sm.StrictLessThan, sm.StrictGreaterThan))
        words = ("false", "true") if strict else ("true", "false")
        mode = self._find_mode_symbol("truth", right - left, name, words=words)
        return mode > _ONE_HALF if strict else mode < _ONE_HALF

    def _find_mode_symbol(
        self,
        kind: ReferenceSwitchKind,
        surface: sm.Expr,
        name: str,
        limit: sm.Expr = sm.S.One,
        words: tuple[str, str] = ("false", "true"),
    ) -> sm.Symbol:
        """Return the mode symbol of a surface; equal surfaces of one kind and limit share the first's."""
        key = (kind, surface, limit)
        if key not in self.switches:
            mode, set_only = sm.Dummy(f"mode_{len(self.switches)}"), surface.free_symbols <= self._event_constant
            self.switches[key] = ReferenceSwitch(mode, kind, surface, limit, name, set_only, words)
            self._event_constant.add(mode)
        return self.switches[key].symbol

    def equations(self) -> EquationsOfMotion:
        """Return all parts of the equations with symbols."""
        e = self._equations
        assert isinstance(e.dynamics, MassMatrixDynamics), "the reference's equations have a mass matrix"
        energy = replace(
            e.energy,
            kinetic=self(e.energy.kinetic),
            potential=self(e.energy.potential),
            powers=tuple((name, self(power)) for name, power in e.energy.powers),
        )
        friction_assignments = _assign_contact_frictions(e.contacts) if e.contacts else ()
        parts: dict[str, Any] = {
            "intermediates": (*friction_assignments, *map(self._rebuild_intermediate, e.intermediates)),
            "kinematics": replace(
                e.kinematics, matrix=self._matrix(e.kinematics.matrix), offset=self._matrix(e.kinematics.offset)
            ),
            "z_dot": tuple(map(self, e.z_dot)),
            "dynamics": MassMatrixDynamics(self._matrix(e.dynamics.mass_matrix), self._matrix(e.dynamics.forcing)),
            "late_intermediates": tuple(
                replace(a, expression=self(a.expression)) for a in (*_assign_mode_changes(e), *e.late_intermediates)
            ),
            "constraint_forces": e.constraint_forces and self._solve(e.constraint_forces),
            "energy": energy,
            "outputs": tuple(replace(o, expression=self(o.expression)) if o.events else o for o in e.outputs),
        }
        symbols = tuple(switch.symbol for switch in self.switches.values())
        equations_with_modes = replace(
            e, **parts, r=(*e.r, *symbols, *_list_contact_and_latch_symbols(e)), events=(), contacts=None, latches=None
        )
        return (
            _add_contact_and_latch_forces(equations_with_modes, e) if e.contacts or e.latches else equations_with_modes
        )

    def _matrix(self, matrix: sm.ImmutableMatrix) -> sm.ImmutableMatrix:
        """Return a matrix with the switches of all entries replaced."""
        return sm.ImmutableMatrix(*matrix.shape, [self(entry) for entry in matrix])

    def _rebuild_intermediate(
        self, item: SymbolAssignment | LinearSystemAssignment
    ) -> SymbolAssignment | LinearSystemAssignment:
        """Return an intermediate with its switches replaced."""
        return (
            replace(item, expression=self(item.expression)) if isinstance(item, SymbolAssignment) else self._solve(item)
        )

    def _solve(self, item: LinearSystemAssignment) -> LinearSystemAssignment:
        """Return a linear solve with the switches of matrix and right side replaced."""
        return replace(item, matrix=self._matrix(item.matrix), right_hand_side=self._matrix(item.right_hand_side))


def _is_whole_power(node: sm.Basic) -> bool:
    """Return whether a node is a power with a whole exponent, which has a value for any base."""
    return isinstance(node, sm.Pow) and bool(node.exp.is_integer)


def _is_limited(function: sm.Expr, surfaces: Sequence[sm.Expr]) -> bool:
    """Return whether a function has no value for numbers that comparisons of ``surfaces`` with 0 may keep away.

    A power with a symbol as exponent has one wherever that is whole; there its base must be what is compared.
    """
    if _is_whole_power(function) or function.args[0].is_number:
        return False
    if isinstance(function, sm.Pow) and function.exp.is_number:
        return bool(function.exp.is_positive)
    if isinstance(function, sm.Pow):
        return any(_are_proportional(function.base, surface) for surface in surfaces)
    return True


def _end_at_domain(function: sm.Expr, is_other_branch: sm.Basic) -> sm.Expr:
    """Return a function that is constant outside of its domain, where ``is_other_branch`` is true."""
    argument = function.args[0]
    if isinstance(function, sm.Pow):
        end_pieces = [(sm.S.Zero, argument <= 0)]
    elif isinstance(function, sm.log):
        tiny = sm.Float(np.finfo(float).tiny, 17)
        end_pieces = [(sm.log(tiny), argument <= tiny)]
    elif isinstance(function, sm.acosh):
        end_pieces = [(sm.S.Zero, argument <= 1)]
    else:
        largest = sm.Float(1.0 - 2.0**-53, 17) if isinstance(function, sm.atanh) else sm.S.One
        end_pieces = [(function.func(-largest), argument <= -largest), (function.func(largest), argument >= largest)]
    return sm.Piecewise(
        *((value, sm.And(is_other_branch, outside)) for value, outside in end_pieces), (function, True), evaluate=False
    )


def _are_proportional(base: sm.Expr, surface: sm.Expr) -> bool:
    """Return whether a base is a number times a surface."""
    return bool(sm.cancel(base / surface).is_number) if base.free_symbols == surface.free_symbols else False


def _iterate_motion_expressions(e: EquationsOfMotion) -> Iterator[sm.Basic]:
    """Yield all that the motion and its energy are computed from."""
    dynamics = e.mass_and_forcing
    yield from (e.kinematics.matrix, e.kinematics.offset, dynamics.mass_matrix, dynamics.forcing, *e.z_dot)
    for item in (*e.intermediates, *e.late_intermediates, *([e.constraint_forces] if e.constraint_forces else [])):
        if isinstance(item, SymbolAssignment):
            yield item.expression
        else:
            yield from (item.matrix, item.right_hand_side)
    yield from filter(None, (e.energy.kinetic, e.energy.potential, *(power for _, power in e.energy.powers)))


def _list_contact_and_latch_symbols(e: EquationsOfMotion) -> tuple[sm.Symbol, ...]:
    """Return symbols of contacts and latches: all forces, then results of impacts, then which rows are pinned."""
    forces: list[sm.Symbol] = []
    impact_results: list[sm.Symbol] = []
    pinned = e.contacts.held_by_latches if e.contacts else ()
    if e.contacts:
        forces += [*(contact.force for contact in e.contacts.each), *_iterate_sticking_forces(e.contacts)]
        impact_results += e.contacts.impact_unknowns
    if e.latches:
        forces += e.latches.forces
        impact_results += e.latches.impact_unknowns
    return (*forces, *impact_results, *pinned)


def _iterate_sticking_forces(contacts: ContactEquations) -> Iterator[sm.Symbol]:
    """Yield the symbols of the forces that hold sticking contacts, without those of sliding friction."""
    yield from (sm.Symbol(f"held {f.force}") for f in contacts.frictions)


def _request_contact_frictions(e: EquationsOfMotion, contacts: ContactEquations) -> Iterator[sm.Expr]:
    """Yield requests for contacts with friction at an instant: one quantity of all, then the next."""
    pairs = [(c.stabilization, f) for c, f in zip(contacts.contacts_with_friction, contacts.frictions, strict=True)]
    yield from (f.stabilized_acceleration(e.u, e.u_dot, back) for back, f in pairs)
    yield from (f.rate(e.u) for _, f in pairs)
    yield from (f.minimum_slip(e.u) for _, f in pairs)
    yield from (f.coefficient for _, f in pairs)
    yield from (f.sliding for _, f in pairs)


def _assign_mode_changes(e: EquationsOfMotion) -> Iterator[SymbolAssignment]:
    """Yield whether modes of contacts with friction change."""
    if e.contacts and e.contacts.mode_change_due:
        indicator = form_mode_change_indicator(e.contacts, e.latches, tuple(e.u))
        yield SymbolAssignment(e.contacts.mode_change_due, indicator)


def _assign_contact_frictions(contacts: ContactEquations) -> Iterator[SymbolAssignment]:
    """Yield the friction of each contact: the holding force, less mu N in the sense of slip."""
    for sticking_force, c, f in zip(
        _iterate_sticking_forces(contacts), contacts.contacts_with_friction, contacts.frictions, strict=True
    ):
        sense = sm.Piecewise((1, f.sliding > _ONE_HALF), (-1, f.sliding < -_ONE_HALF), (0, True))
        yield SymbolAssignment(f.force, sticking_force - f.coefficient * sense * c.force)


def _request_latch_rows(e: EquationsOfMotion, latches: LatchEquations) -> Iterator[sm.Expr]:
    """Yield requests for rows of latches at an instant: one quantity of all, then the next."""
    yield from (row.stabilized_acceleration(e.u, e.u_dot) for row in latches.rows)
    yield from (row.rate(e.u) for row in latches.rows)
    yield from latches.engaged_states
    yield from latches.holding_flags
    yield from latches.closing_flags


def _request_contacts(e: EquationsOfMotion, contacts: ContactEquations) -> Iterator[sm.Expr]:
    """Yield requests for contacts at an instant: one quantity of all, then the next."""
    yield from (c.stabilized_acceleration(e.u, e.u_dot) for c in contacts.each)
    yield from (c.rate(e.u) for c in contacts.each)
    yield from (c.restitution for c in contacts.each)
    yield from (c.resting_speed for c in contacts.each)
    yield from (sm.Piecewise((1, c.contact_condition(e.u)), (0, True)) for c in contacts.each)
    yield from (c.resting for c in contacts.each)
    yield from (sm.Piecewise((1, c.impact_condition(tuple(e.u))), (0, True)) for c in contacts.each)


def _add_contact_and_latch_forces(e: EquationsOfMotion, before: EquationsOfMotion) -> EquationsOfMotion:
    """Return the equations with the forces of contacts and latches."""
    rows: list[UnilateralRow] = [
        *(before.contacts.rows if before.contacts else ()),
        *(before.latches.rows if before.latches else ()),
    ]
    generalized_forces = [sm.Add(*(each.jacobian[i] * each.force for each in rows)) for i in range(len(e.u))]
    d, c = e.mass_and_forcing, e.velocity_constraints
    intermediates = e.intermediates
    if d.mass_matrix.rows < len(e.u):  # rows of the independent speeds: A_dᵀ y = what pushes the dependent ones
        assert c is not None
        dependent = list(e.u_dependent)
        y = tuple(sm.Dummy(f"y_{i}") for i in range(len(dependent)))
        matrix = c.jacobian.extract(list(range(len(c.names))), dependent).T
        right_side = sm.ImmutableMatrix([generalized_forces[i] for i in dependent])
        intermediates = (
            *intermediates,
            LinearSystemAssignment(y, sm.ImmutableMatrix(matrix), right_side, "the dependent speeds"),
        )
        carried_forces = c.jacobian.T * sm.Matrix(y)
        generalized_forces = [generalized_forces[i] - carried_forces[i] for i in e.u_independent]
    return replace(
        e,
        intermediates=intermediates,
        dynamics=MassMatrixDynamics(d.mass_matrix, sm.ImmutableMatrix(d.forcing + sm.Matrix(generalized_forces))),
        energy=replace(e.energy, powers=(*e.energy.powers, *_iterate_contact_powers(e, rows))),
    )


def _iterate_contact_powers(e: EquationsOfMotion, rows: Sequence[UnilateralRow]) -> Iterator[tuple[str, sm.Expr]]:
    """Yield powers of contacts and latches: at moving surfaces, in sliding, and in stabilization."""
    for c in rows:
        rate = sm.Add(*(slope * speed for slope, speed in zip(c.jacobian, e.u, strict=True)))
        yield str(c.force), c.force * rate


def _iterate_switching_nodes(expression: sm.Basic) -> Iterator[sm.Basic]:
    """Yield all nodes, arguments first; parts without events are skipped."""
    stack: list[tuple[sm.Basic, bool]] = [(expression, False)]
    visited: set[sm.Basic] = set()
    while stack:
        node, is_expanded = stack.pop()
        if is_expanded:
            yield node
        elif node not in visited:
            visited.add(node)
            stack.append((node, True))
            inner_nodes = () if isinstance(node, NoEvent) else node.args
            stack.extend((argument, False) for argument in inner_nodes if isinstance(argument, sm.Basic))


def _differentiate_surface(e: EquationsOfMotion, surface: sm.Expr) -> sm.Expr:
    """Return the time derivative of a sign's argument, inputs held, in u'."""
    for item in reversed(e.intermediates):
        if isinstance(item, SymbolAssignment) and item.symbol in surface.free_symbols:
            surface = surface.xreplace({item.symbol: item.expression})
    q_dot = e.kinematics.matrix * sm.Matrix(e.u) + e.kinematics.offset if e.q else []
    rates = {e.t: sm.S.One, **dict(zip(e.q, q_dot, strict=True)), **dict(zip(e.u, e.u_dot, strict=True))}
    rates |= dict(zip(e.z, e.z_dot, strict=True))
    return sm.Add(*(surface.diff(symbol) * rate for symbol, rate in rates.items() if symbol in surface.free_symbols))
