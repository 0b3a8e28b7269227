"""``convert_switches_to_modes``: turn every switch into a mode in discrete memory, with a margin that ends it.

A switch looks at its surface s(t, x, r, p): a comparison at the difference of its sides, ``Abs``, ``sign`` and the like
at their argument. Between events its mode m is a number:

    comparison, Abs, Min, Max    m = 1 where s > 0, else 0        margin (2 m − 1) s     (a <= b: not b < a)
    floor, ceiling               m = the largest integer <= s     margin min(s − m, m + 1 − s)
    sign that can be held        m = −1, 1, or 0: held            margin m s; held: limit − |factor|

A margin is positive as long as its mode is right. Where a comparison looks only at what events and inputs set, its
margin ends upon the surface (``_ON_SURFACE_TOLERANCE``): a counter that is set to 3 fulfils ``3 <= n``.

A sign whose argument its own value can keep at zero (dry friction: s is a speed, and ds/dt falls as the sign grows) has
the mode "held", in which its value is the factor that keeps ds/dt = 0 (Filippov 1988, section 2.2; ``sliding``).
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mb2fmu.compiler.events.branch_domain_extension import BranchDomainExtension
from mb2fmu.compiler.events.next_time_event import (
    AffineTimeExpression,
    TimeLinearityAnalysis,
    form_next_event_time,
)
from mb2fmu.compiler.events.node_linear_combinations import NodeLinearCombinations
from mb2fmu.compiler.events.program_switches import (
    MEMORY_LABEL_PREFIXES,
    NEXT_TIME_EVENT_ENTRY,
    ProgramSwitch,
    SwitchKind,
    find_motion_switches,
)
from mb2fmu.compiler.events.sliding_modes import SlidingModeSystem, form_sliding_mode_system
from mb2fmu.compiler.events.switch_guarded_powers import SwitchGuardedPowerFinder
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.program_copy import CopiedProgramNodes
from mb2fmu.compiler.program.program_pruning import find_needed_nodes, prune_program
from mb2fmu.compiler.program.scalar_program import Op, ScalarProgram

DEAD_CENTRE_RATIO = 1e4
"""Times what a sign can hold, that would be needed to hold it: nothing has brought it to rest."""

_ON_SURFACE_TOLERANCE = 4e-10
"""Of a surface's size: so near to it what is set counts as upon it. More than importers see indicators too late by."""
_SEPARATELY_COPIED_ENTRIES = (
    "switches",
    "break_away",
    "holding",
    "conditions",
    "resets",
    "energy",
    "equations",
    "outputs",
)


def convert_switches_to_modes(
    program: ScalarProgram, sizes: Callable[[ScalarProgram], Sequence[float]] | None = None
) -> ScalarProgram:
    """Return the program with modes; the very same one if nothing in it switches.

    Args:
        program: As it was lowered.
        sizes: Called for the magnitudes of the surfaces of a program with modes, which its own surfaces and margins are
            then divided by: what counts as nothing is a part of them. None: each in its own unit.
    """
    marked = find_motion_switches(program)
    if not marked and "conditions" not in program.entries:
        return program
    surfaces = _find_switch_surfaces(program, marked)
    names = list(program.entries["conditions"].labels) if "conditions" in program.entries else []
    sliding = _filter_sticking_signs(program, marked)
    plan = _ModeAssignment.number_modes(program, surfaces, [node for node in marked if node in sliding], names)
    held = (
        form_sliding_mode_system(plan.frozen(), plan.sticking, _find_holding_states(program)) if plan.sticking else None
    )
    assembly = _FrozenProgramAssembly(plan, held)
    if sizes is not None and plan.margins:
        assembly.sizes = sizes(prune_program(assembly.copy().build()))
    return prune_program(assembly.build())


def _describe_switch(program: ScalarProgram, node: int) -> str:
    """Return what is true where the mode of a switch is 1: as it was named when it was lowered, or its expression."""
    entry = program.entries["switches"]
    name = dict(zip(entry.results, entry.labels, strict=True))[node]
    return _format_switch_condition(program, node) if name.startswith("switch ") else name


def _find_holding_states(program: ScalarProgram) -> list[int]:
    """Return the states that are 1 where a contact rests or a latch is closed."""
    entry = program.entries.get("holding")
    return [int(program.a[node]) for node in entry.results] if entry else []


def find_sticking_signs(program: ScalarProgram) -> tuple[int, ...]:
    """Return the nodes of the signs that can be held at zero, in the order of the program."""
    return tuple(sorted(_filter_sticking_signs(program, find_motion_switches(program))))


def _filter_sticking_signs(program: ScalarProgram, marked: Sequence[int]) -> frozenset[int]:
    """Return the signs in x' whose argument moves by x'."""
    nodes, _ = find_needed_nodes(program, program.entries["rhs"].results)
    found = set()
    for node in marked:
        if program.op[node] == Op.SIGN and nodes[node]:
            within, _ = find_needed_nodes(program, [int(program.a[node])])
            if (within & (program.op == Op.STATE)).any():
                found.add(node)
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class _SwitchSurface:
    """Argument of switches: a − b (b −1: a alone), in the old program."""

    a: int
    b: int = -1
    steps: bool = False


def _find_switch_surfaces(program: ScalarProgram, marked: Sequence[int]) -> dict[int, _SwitchSurface]:
    """Return the surface of each switch; equal ones are equal records, however the model writes them.

    Opposite ones stay apart: of ``x <= 0`` and ``x >= 0`` both are true on the surface, where a motion may start.
    """
    found, first, forms = (
        {},
        dict[tuple[bool, frozenset[tuple[int, float]]], _SwitchSurface](),
        NodeLinearCombinations(program),
    )
    for node in marked:
        op, a, b = Op(program.op[node]), int(program.a[node]), int(program.b[node])
        if op in {Op.ABS, Op.SIGN}:
            found[node] = _SwitchSurface(a)
        elif op in {Op.FLOOR, Op.CEIL}:
            found[node] = _SwitchSurface(a, steps=True)
        elif op is Op.LE:
            found[node] = _SwitchSurface(a, b)  # not b < a: of both one is true where they are equal, too
        elif op in {Op.LT, Op.MIN, Op.MAX}:
            found[node] = _SwitchSurface(b, a)
        if node in found:
            each = found[node]
            found[node] = first.setdefault((each.steps, forms.difference(each.a, each.b)), each)
    return found


@dataclass(frozen=True, slots=True)
class _ModeAssignment:
    """Assigns modes to nodes.

    Attributes:
        program: With switches.
        surfaces: By node.
        modes: Surface → place of its mode among the margins; sticking signs have one of their own, behind.
        sticking: Their nodes in the order of their margins.
        switches: In the order of margins, then conditions.
    """

    program: ScalarProgram
    surfaces: Mapping[int, _SwitchSurface]
    modes: Mapping[_SwitchSurface, int]
    sticking: tuple[int, ...]
    switches: tuple[ProgramSwitch, ...]

    @classmethod
    def number_modes(
        cls,
        program: ScalarProgram,
        surfaces: Mapping[int, _SwitchSurface],
        sticking: Sequence[int],
        conditions: Sequence[str],
    ) -> _ModeAssignment:
        """Number the modes."""
        first = len(program.layout.memory)
        modes: dict[_SwitchSurface, int] = {}
        switches: list[ProgramSwitch] = []
        for node, surface in surfaces.items():
            if node not in sticking and surface not in modes:
                modes[surface] = len(modes)
                steps: SwitchKind = "steps" if surface.steps else "relation"
                switches.append(ProgramSwitch(_describe_switch(program, node), steps, first + len(switches)))
        for node in sticking:
            switches.append(
                ProgramSwitch(
                    format_program_expression(program, int(program.a[node])), "sticking", first + len(switches)
                )
            )
        for label in conditions:
            kind, _, name = label.partition(":")
            switches.append(
                ProgramSwitch(name, "ticks" if kind.endswith("ticks") else "condition", first + len(switches))
            )
        return cls(program, surfaces, modes, tuple(sticking), tuple(switches))

    @property
    def memory(self) -> tuple[str, ...]:
        """Labels of all discrete memory."""
        return (*self.program.layout.memory, *(MEMORY_LABEL_PREFIXES[each.kind] + each.name for each in self.switches))

    @property
    def margins(self) -> tuple[ProgramSwitch, ...]:
        """Switches that have a margin."""
        return tuple(each for each in self.switches if each.kind not in {"condition", "ticks"})

    def frozen(self) -> ScalarProgram:
        """Return the program with modes, in which the values of sticking signs are further inputs."""
        old = self.program
        factors = tuple(f"factor {i}" for i in range(len(self.sticking)))
        layout = dataclasses.replace(old.layout, memory=self.memory, inputs=(*old.layout.inputs, *factors))
        builder = ProgramBuilder(layout)
        first = len(old.layout.inputs)
        values = {node: builder.input(first + i) for i, node in enumerate(self.sticking)}
        copy = _ProgramCopyWithFrozenSwitches(self, builder, values)
        builder.entry("slip", factors, [copy.node[int(old.a[node])] for node in self.sticking])
        builder.entry("limits", factors, [copy.limit(node) for node in self.sticking])
        self._add_surfaces(copy)
        return builder.build()

    def _add_surfaces(self, copy: _ProgramCopyWithFrozenSwitches) -> None:
        """Add the surfaces of all modes but those of sticking signs."""
        b = copy.builder
        nodes = [copy.surface(surface) for surface in self.modes]
        b.entry("surfaces", [f"{i}" for i in range(len(nodes))], nodes)


class _ProgramCopyWithFrozenSwitches(CopiedProgramNodes):
    """A copy in which switches read their modes."""

    def __init__(self, plan: _ModeAssignment, builder: ProgramBuilder, values: Mapping[int, int]) -> None:
        self._plan = plan
        self._values = values
        self._powers = SwitchGuardedPowerFinder(plan.program, plan.program.all_operands(), plan.surfaces)
        builder.constant(0.0)  # nothing is adopted: nodes change
        super().__init__(
            plan.program, builder, [n for n in plan.program.entries if n not in _SEPARATELY_COPIED_ENTRIES]
        )
        for name in ("conditions", "resets"):
            if name in plan.program.entries:
                entry = plan.program.entries[name]
                builder.entry(name, entry.labels, [self.node[result] for result in entry.results])

    def surface(self, surface: _SwitchSurface) -> int:
        """Return the node of a switch's argument."""
        a = self.node[surface.a]
        return a if surface.b < 0 else self.builder.sub(a, self.node[surface.b])

    def limit(self, node: int) -> int:
        """Return the limit of a sticking sign's factor."""
        entry = self.program.entries.get("break_away")
        pairs = entry.results if entry else ()
        limits = dict(zip(pairs[::2], pairs[1::2], strict=True))
        return self.node[limits[node]] if node in limits else self.builder.constant(1.0)

    def _copied(self, node: int) -> int:
        """Return the copy of a node; a switch is replaced by what it is in its present mode."""
        if node in self._values:
            return self._values[node]
        surface = self._plan.surfaces.get(node)
        if surface is not None:
            return self._frozen(node, surface)
        if self._powers.is_power_of_switch(node):
            return self._copied_power(node)
        if self._powers.is_power_guard(node):
            return self._branches.copy_selection(node)
        return super()._copied(node)

    def _copied_power(self, node: int) -> int:
        """Return a function of what is evaluated as it is written; of a power of zero, no slope is requested."""
        b, (base, *exponent) = self.builder, self._operands[node]
        op, unfrozen = Op(self.program.op[node]), self._unfrozen(base)
        if op not in (Op.SQRT, Op.POW):
            return b.unary(op, unfrozen)
        zero = b.constant(0.0)
        power = b.binary(op, unfrozen, self.node[exponent[0]]) if exponent else b.unary(op, unfrozen)
        at_zero = b.binary(op, zero, self.node[exponent[0]]) if exponent else zero
        return b.select(b.binary(Op.EQ, unfrozen, zero), at_zero, power)

    @functools.cached_property
    def _branches(self) -> BranchDomainExtension:
        """Copies selections whose branches end at their events."""
        return BranchDomainExtension(
            self.program, self._operands, self._powers, self.builder, self.node, self._unfrozen
        )

    def _unfrozen(self, node: int) -> int:
        """Return the copy of a node with its switches as functions of the present state."""
        b = self.builder

        def build(each: int, operands: tuple[int, ...]) -> int:
            op = Op(self.program.op[each])
            if op is Op.SELECT:
                return b.select(*operands)
            if op is Op.TABLE:
                return b.table(self.program.tables[int(self.program.a[each])], int(self.program.b[each]), operands[0])
            return b.unary(op, operands[0]) if len(operands) == 1 else b.binary(op, *operands)

        return self._powers.copy_unfrozen(node, self.node, build)

    def _frozen(self, node: int, surface: _SwitchSurface) -> int:
        """Return a switch's value in its mode: smooth, valid as long as its surface keeps its sign."""
        b = self.builder
        mode = b.memory(len(self.program.layout.memory) + self._plan.modes[surface])
        op = Op(self.program.op[node])
        a = self.node[int(self.program.a[node])]
        if op is Op.FLOOR:
            return mode
        if op is Op.CEIL:
            return b.add(mode, b.constant(1.0))
        if op in {Op.LT, Op.LE}:
            return mode if op is Op.LT else b.unary(Op.NOT, mode)
        if op is Op.SIGN:
            return b.sub(b.mul(b.constant(2.0), mode), b.constant(1.0))
        if op is Op.ABS:
            return b.select(mode, a, b.neg(a))
        other = self.node[int(self.program.b[node])]
        return b.select(mode, a, other) if op is Op.MIN else b.select(mode, other, a)


class _FrozenProgramAssembly:
    """The whole program: motion with modes, margins, surfaces, and what an event does.

    ``sizes`` are what surfaces are divided by.
    """

    def __init__(self, plan: _ModeAssignment, held: SlidingModeSystem | None) -> None:
        self._plan = plan
        self.sizes: Sequence[float] = [1.0] * len(plan.margins)
        self._held = held
        old = plan.program
        layout = dataclasses.replace(old.layout, memory=plan.memory)
        self._builder = ProgramBuilder(layout)
        self._first = len(old.layout.memory)
        self._modes = [self._builder.memory(self._first + i) for i in range(len(plan.switches))]
        k = len(plan.modes)
        self._slips = self._modes[k : k + len(plan.sticking)]
        factors = held.sticking_factors(self._builder, self._slips) if held else []
        self._factors = factors
        self._copy = _ProgramCopyWithFrozenSwitches(plan, self._builder, dict(zip(plan.sticking, factors, strict=True)))

    def copy(self) -> _FrozenProgramAssembly:
        """Return an assembly with the same nodes, which is built by itself."""
        copied, nodes = copy.copy(self), copy.copy(self._copy)
        nodes.builder = self._builder.copy()
        vars(copied).update(_builder=nodes.builder, _copy=nodes)
        return copied

    def build(self) -> ScalarProgram:
        """Add all entry points, and return the program."""
        b, plan, nodes = self._builder, self._plan, self._copy
        surfaces = [self._sized(i, nodes.surface(surface)) for i, surface in enumerate(plan.modes)]
        slip = [nodes.node[int(plan.program.a[node])] for node in plan.sticking]
        limits = [nodes.limit(node) for node in plan.sticking]
        labels = [each.name for each in plan.margins]
        set_only = TimeLinearityAnalysis(b, self._resting_states(), inputs=True)
        margins = [self._margin(i, s, set_only.of(s)) for i, s in enumerate(surfaces)]
        slipping = [self._sized(len(surfaces) + i, node) for i, node in enumerate(slip)]
        drives = self._held.sticking_test_values(b, self._slips, self._factors, limits, slipping) if self._held else []
        bars, zero = self._held.sticking_slip_limits(b, self._slips) if self._held else [], b.constant(0.0)
        for mode, s, factor, limit, bar in zip(self._slips, slipping, drives, limits, bars, strict=True):
            left = b.sub(limit, b.unary(Op.ABS, factor))
            margins.append(b.select(b.binary(Op.EQ, mode, zero), left, b.sub(b.mul(mode, s), bar)))
        slipping = [self._beyond(s, bar) for s, bar in zip(slipping, bars, strict=True)]
        b.entry("indicators", labels, margins)
        factors = [*(zero for _ in surfaces), *drives]
        b.entry("surfaces", [*labels, *(f"factor of {each}" for each in labels)], [*surfaces, *slipping, *factors])
        self._add_instants()
        self._add_event([self._unless_dead(s, *each) for s, *each in zip(slip, drives, limits, strict=True)])
        self._add_memory()
        for name in ("conditions", "resets"):
            if name in plan.program.entries:
                b.forget(name)
        return b.build()

    def _sized(self, i: int, s: int) -> int:
        """Return a surface divided by its size; step functions count steps."""
        if self._plan.switches[i].kind == "steps" or self.sizes[i] == 1.0:
            return s
        return self._builder.mul(self._builder.constant(1.0 / self.sizes[i]), s)

    def _beyond(self, s: int, bar: int) -> int:
        """Return what slip is more than the bar; the slip itself where there is none."""
        b = self._builder
        if b.is_zero(bar):
            return s
        beyond = b.binary(Op.MAX, b.sub(b.unary(Op.ABS, s), bar), b.constant(0.0))
        return b.select(b.binary(Op.LT, b.constant(0.0), bar), b.mul(b.unary(Op.SIGN, s), beyond), s)

    def _margin(self, i: int, s: int, time_function: AffineTimeExpression | None) -> int:
        """Return the margin of a mode other than a sticking sign's.

        Motion that comes to a surface goes through it, and the mode changes behind it. What events set stays: a
        counter that is set to 3 fulfils ``3 <= n``, so that its mode has to change upon the surface itself.
        """
        b, mode = self._builder, self._modes[i]
        if self._plan.switches[i].kind == "steps":
            return b.binary(Op.MIN, b.sub(s, mode), b.sub(b.add(mode, b.constant(1.0)), s))
        if time_function is not None and b.is_zero(time_function.slope):
            return b.select(
                mode, b.sub(s, b.constant(_ON_SURFACE_TOLERANCE)), b.sub(b.constant(2.0 * _ON_SURFACE_TOLERANCE), s)
            )
        return b.select(mode, s, b.neg(s))

    def _resting_states(self) -> list[int]:
        """Return the states whose rate is zero: only events set them."""
        rates = self._plan.program.entries["rhs"].results
        return [i for i, rate in enumerate(rates) if self._builder.is_zero(self._copy.node[rate])]

    def _add_instants(self) -> None:
        """Add when each switch of time alone changes next."""
        b, plan = self._builder, self._plan
        time_functions = TimeLinearityAnalysis(b, self._resting_states())
        labels, instants = [], []
        for surface, i in plan.modes.items():
            time_function = time_functions.of(self._copy.surface(surface))
            if time_function is not None and not b.is_zero(time_function.slope):
                labels.append(f"{i}")
                instants.append(form_next_event_time(b, time_function, self._modes[i], steps=surface.steps))
        if instants:
            b.entry(NEXT_TIME_EVENT_ENTRY, labels, instants)

    def _unless_dead(self, slip: int, drive: int, limit: int) -> int:
        """Return a slip that is to end; zero at a dead centre, where round-off of it would stop all that moves."""
        b = self._builder
        dead = b.binary(Op.LT, b.mul(b.constant(DEAD_CENTRE_RATIO), limit), b.unary(Op.ABS, drive))
        return b.select(dead, b.constant(0.0), slip)

    def _add_event(self, slip: Sequence[int]) -> None:
        """Add the states after an event: held signs exactly at rest, and what the model's own events set."""
        b, plan = self._builder, self._plan
        old = plan.program
        x = [b.state(i) for i in range(len(old.layout.states))]
        if self._held:
            x = self._held.states_at_rest(b, self._slips, slip, x)
        conditions, fired = self._conditions()
        if "resets" in old.entries:
            self._set_states(x, fired)
        names = [f"condition {i}" for i in range(len(conditions))]
        b.entry("event", [*old.layout.states, *names], [*x, *conditions])

    def _set_states(self, x: list[int], fired: Sequence[int]) -> None:
        """Merge settings of events into states; infinity where two events disagree on a value.

        That is refused by the runtime, which names both. Those of contacts and latches come in their order.
        """
        b, copy, old = self._builder, self._copy, self._plan.program
        late = [label.startswith("late ") for label in old.entries["conditions"].labels]
        setters: dict[int, list[tuple[int, int]]] = {}
        for label, node in zip(old.entries["resets"].labels, old.entries["resets"].results, strict=True):
            clause, _, state = label.partition(":")
            k, i = int(clause), old.layout.states.index(state)
            value = found = copy.node[node]
            before = [] if late[k] else setters.setdefault(i, [])
            for other, theirs in before:
                differs = b.unary(Op.NOT, b.binary(Op.EQ, value, theirs))
                found = b.select(b.binary(Op.AND, fired[other], differs), b.constant(math.inf), found)
            before.append((k, value))
            x[i] = b.select(fired[k], found, x[i])

    def _conditions(self) -> tuple[list[int], list[int]]:
        """Return the conditions after the event, and those that have become true.

        Impacts and closings of latches (``late ticks``) wait: where an event of the model's own happens at the same
        instant they stay due, and see what it has set.
        """
        b, old = self._builder, self._plan.program
        if "conditions" not in old.entries:
            return [], []
        entry = old.entries["conditions"]
        now, before = [self._copy.node[n] for n in entry.results], self._modes[len(self._plan.margins) :]
        fired = [b.binary(Op.LT, was, value) for value, was in zip(now, before, strict=True)]
        own = [node for node, label in zip(fired, entry.labels, strict=True) if not label.startswith("late ")]
        late = [i for i, label in enumerate(entry.labels) if label.startswith("late ticks:")]
        if own and late:
            first = own[0]
            for other in own[1:]:
                first = b.binary(Op.OR, first, other)
            for i in late:
                now[i] = b.select(first, before[i], now[i])
                fired[i] = b.binary(Op.AND, fired[i], b.unary(Op.NOT, first))
        return now, fired

    def _add_memory(self) -> None:
        """Add memory: modes stay unchanged at accepted steps; they are initialized with the FMU."""
        b, plan = self._builder, self._plan
        old, zero = plan.program, b.constant(0.0)
        known = [self._copy.node[n] for n in old.entries["remember"].results] if "remember" in old.entries else []
        first = [self._copy.node[n] for n in old.entries["first_memory"].results] if known else []
        b.entry("remember", plan.memory, [*known, *self._modes])
        b.entry("first_memory", plan.memory, [*first, *(zero for _ in self._modes)])


MAX_NAME_LENGTH = 60
_INFIX_SYMBOLS = {Op.ADD: " + ", Op.SUB: " - ", Op.MUL: "*", Op.DIV: "/", Op.LT: " < ", Op.LE: " <= ", Op.EQ: " == "}
_MAX_EXPRESSION_DEPTH = 6


def format_program_expression(program: ScalarProgram, node: int) -> str:
    """Return the expression in one line; parts that are too long are ``…``."""
    text = _format_node(program, node, _MAX_EXPRESSION_DEPTH, _find_output_names(program))
    return text if len(text) <= MAX_NAME_LENGTH else text[: MAX_NAME_LENGTH - 1] + "…"


def _format_switch_condition(program: ScalarProgram, node: int) -> str:
    """Return the condition that is true where a switch's mode is 1: of a <= b, b < a."""
    if program.op[node] != Op.LE:
        return format_program_expression(program, node)
    names = _find_output_names(program)
    text = " < ".join(
        _format_node(program, int(side[node]), _MAX_EXPRESSION_DEPTH - 1, names) for side in (program.b, program.a)
    )
    return text if len(text) <= MAX_NAME_LENGTH else text[: MAX_NAME_LENGTH - 1] + "…"


def _format_node(  # noqa: PLR0911 (one kind of node after the other)
    program: ScalarProgram, node: int, depth: int, outputs: Mapping[int, str]
) -> str:
    """Return a node as text, at most `depth` operations deep; … stands for what is deeper or a block."""
    op, a = Op(program.op[node]), int(program.a[node])
    layout = program.layout
    leaves = {Op.STATE: layout.states, Op.INPUT: layout.inputs, Op.PARAMETER: layout.parameters}
    if op is Op.CONSTANT:
        return f"{program.constants[a]:.6g}"
    if op is Op.TIME:
        return "time"
    if op in leaves:
        return leaves[op][a]
    if op is Op.MEMORY:
        return layout.memory[a]
    if node in outputs:
        return outputs[node]
    if depth == 0 or op is Op.BLOCK:
        return "…"
    parts = [_format_node(program, operand, depth - 1, outputs) for operand in program.operands(node)]
    if op is Op.LT and parts[0] == "0" and program.op[program.b[node]] == Op.NEG:
        parts = [parts[1].removeprefix("-"), "0"]
    if op is Op.NEG:
        return f"-{parts[0]}"
    if op in _INFIX_SYMBOLS:
        text = _INFIX_SYMBOLS[op].join(parts)
        return text if depth == _MAX_EXPRESSION_DEPTH else f"({text})"
    name = {Op.ABS: "abs", Op.TABLE: "table"}.get(op, op.name.lower())
    return f"{name}({', '.join(parts)})"


def _find_output_names(program: ScalarProgram) -> dict[int, str]:
    """Return node → the first output that it is."""
    entry = program.entries.get("outputs")
    return {} if entry is None else dict(reversed(list(zip(entry.results, entry.labels, strict=True))))
