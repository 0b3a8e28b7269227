"""``join``: a declared system and its units become wiring, or all that is wrong is told at once."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mb2fmu.errors import Fault, Mb2FmuError
from mb2fmu.systems.component import Component, Member, UnitOfMeasure
from mb2fmu.systems.coupled_system import CoupledSystem, DeclaredBond, DeclaredConnection
from mb2fmu.systems.coupling import ORDERS, Bond, BondSide, Link, Port, Signal, Wiring
from mb2fmu.systems.master.dependency_order import levels, loop_text, sequence
from mb2fmu.units import parse_unit


class CouplingError(Mb2FmuError):
    """Units cannot be coupled as asked, or their coupling cannot work."""


@dataclass(frozen=True, slots=True)
class Mapped:
    """A variable that follows a parameter of the system: value = factor * parameter + offset, each in its own unit.

    Attributes:
        parameter: Index into the system's declared parameters.
        component: Index.
        variable: Of the component.
        factor: Conversion of units included.
        offset: In the variable's unit.
    """

    parameter: int
    component: int
    variable: str
    factor: float
    offset: float


@dataclass(frozen=True, slots=True)
class TerminalLink:
    """Two connected terminals.

    Attributes:
        ends: (component, terminal) of each, in the order of declaration.
        targets: (component, variable) of the inputs that this connection feeds.
    """

    ends: tuple[tuple[int, str], tuple[int, str]]
    targets: frozenset[tuple[int, str]]


@dataclass(frozen=True)
class Joined:
    """A system whose connections were checked.

    Attributes:
        system: As declared.
        components: Its units, in order.
        wiring: For the master.
        values: Per component: variable → value in its own unit; those of mapped parameters are among them.
        notes: What a user should know, though nothing is wrong.
        mapped: Variables that follow parameters of the system.
        terminals: Connections that were made of terminals, not of variables.
    """

    system: CoupledSystem
    components: tuple[Component, ...]
    wiring: Wiring
    values: tuple[Mapping[str, float], ...]
    notes: tuple[str, ...]
    mapped: tuple[Mapped, ...] = ()
    terminals: tuple[TerminalLink, ...] = ()


def join(system: CoupledSystem, components: Sequence[Component]) -> Joined:
    """Resolves a system.

    Args:
        system: As declared.
        components: Its units, in the order of declaration.

    Raises:
        CouplingError: With everything that is wrong.
    """
    return _Join(system, components).joined()


def name_faults(system: CoupledSystem) -> Iterator[Fault]:
    """What is wrong with names and numbers before any unit is looked at."""
    if not system.name.isidentifier():
        yield Fault(f"a system cannot be called {system.name!r}", system.where, "use letters, digits and _")
    seen: dict[str, str] = {}
    for each in system.components:
        if not each.name.isidentifier():
            yield Fault(f"a component cannot be called {each.name!r}", each.where, "use letters, digits and _")
        if each.name.casefold() in seen:
            what = f"two components are called {each.name}"
            yield Fault(what, each.where, f"rename it; the other stands at {seen[each.name.casefold()]}")
        seen.setdefault(each.name.casefold(), each.where)
    if not system.components:
        yield Fault("it has no components", system.where, "add them by component(name, source)")
    yield from _number_faults(system)


def _number_faults(system: CoupledSystem) -> Iterator[Fault]:
    run, stepping = system.run, system.run.stepping
    for name, value in (("stop", run.stop), ("step", stepping.step), ("tolerance", run.tolerance)):
        if not 0.0 < value < float("inf"):
            yield Fault(f"{name} is {value!r}", system.where, "give a positive number")
    if stepping.order not in ORDERS:
        yield Fault(f"order is {stepping.order!r}", system.where, "give 0 (held), 1 (lines) or 2 (parabolas)")
    for name, count in (("passes", stepping.passes), ("substeps", stepping.substeps)):
        if count < 1:
            yield Fault(f"{name} is {count!r}", system.where, "give 1 or more")


def conversion(source: UnitOfMeasure | None, target: UnitOfMeasure | None) -> tuple[float, float]:
    """(factor, offset) from one unit to another: target value = factor * source value + offset.

    Angles may be left out of a unit (N.m for N.m/rad): as a pure number a radian is 1.

    Raises:
        ValueError: If they measure different quantities.
    """
    if source is None or target is None or source.name == target.name:
        return 1.0, 0.0
    if source.exponents is None or target.exponents is None:
        raise ValueError(f"{source.name} and {target.name} cannot be compared: one of them is declared by name only")
    if source.exponents[:-1] != target.exponents[:-1]:
        raise ValueError(f"{source.name} is not {target.name}")
    return source.factor / target.factor, (source.offset - target.offset) / target.factor


class _Join:
    """One joining; faults are gathered."""

    def __init__(self, system: CoupledSystem, components: Sequence[Component]) -> None:
        self._system, self._components = system, tuple(components)
        self._place = {each.name: k for k, each in enumerate(components)}
        self._faults: list[Fault] = list(name_faults(system))
        self._notes: list[str] = []
        self._links: dict[tuple[int, str], tuple[int, str, float, float, str]] = {}
        self._delays: dict[tuple[int, str], float] = {}
        self._bond_makers: list[_TerminalBond] = []
        self._terminal_links: list[TerminalLink] = []

    def joined(self) -> Joined:
        """The system, joined."""
        for connection in self._system.connections:
            before = set(self._links)
            self._connect(connection)
            self._delay(connection, set(self._links) - before)
        values = tuple(self._values(k) for k in range(len(self._components)))
        mapped = tuple(self._mapped(values))
        inputs = [Port(k, v, *self._numbers(k, v)) for k, each in enumerate(self._components) for v in each.inputs
                  if (k, v) in self._links]  # fmt: skip
        outputs = [Port(k, v, *self._numbers(k, v)) for k, each in enumerate(self._components) for v in each.outputs]
        ins = {(p.component, p.name): i for i, p in enumerate(inputs)}
        outs = {(p.component, p.name): i for i, p in enumerate(outputs)}
        links = tuple(
            Link(outs[k, v], ins[target], factor, offset, self._delays[target], self._started(target, values))
            for target, (k, v, factor, offset, _) in self._links.items()
        )
        through = frozenset(
            (ins[k, i], outs[k, o])
            for k, each in enumerate(self._components)
            for o in each.outputs
            for i in each.feedthrough(o)
            if (k, i) in ins
        )
        names = tuple(each.name for each in self._components)
        wiring = Wiring(names, tuple(inputs), tuple(outputs), links, through)
        bonds = [bond for make in self._bond_makers for bond in make(ins, outs)]
        bonds += [bond for each in self._system.bonds if (bond := self._declared_bond(each, ins, outs))]
        self._judge(wiring)
        if self._faults:
            raise CouplingError(f"{self._system.name} cannot be coupled:", self._faults)
        wiring = Wiring(names, tuple(inputs), tuple(outputs), links, through, tuple(bonds))
        return Joined(
            self._system, self._components, wiring, values, tuple(self._notes), mapped, tuple(self._terminal_links)
        )

    def _numbers(self, component: int, variable: str) -> tuple[int, str]:
        each = self._components[component]
        unit = each.unit(variable)
        return each.variables[variable].reference or 0, unit.name if unit else ""

    # --- connections

    def _delay(self, declared: DeclaredConnection, made: set[tuple[int, str]]) -> None:
        """Notes the delay of links."""
        self._delays |= dict.fromkeys(made, declared.delay)
        if declared.delay == 0.0:
            return
        name, step = f"{declared.source} → {declared.target}", self._system.run.stepping.step
        if not step * (1.0 - 1e-9) <= declared.delay < float("inf"):
            what = f"{name}: its delay is {declared.delay:g} s, the communication step {step:g} s"
            self._faults.append(Fault(what, declared.where, "give a delay of at least one step, or a shorter step"))
        self._notes.append(f"{name} arrives {declared.delay:g} s late; other masters pass it on after their own step")

    def _started(self, target: tuple[int, str], values: Sequence[Mapping[str, float]]) -> float:
        """Start value of an input."""
        component, name = target
        own = self._components[component].variables[name].get("start")
        return values[component].get(name, float(own or 0.0))

    def _connect(self, declared: DeclaredConnection) -> None:
        """Join two variables or two terminals; add a fault with similar names where that cannot be done."""
        ends = [self._end(text, declared.where) for text in (declared.source, declared.target)]
        if None in ends:
            return
        (a, x), (b, y) = [end for end in ends if end is not None]
        first, second = self._components[a], self._components[b]
        known = (x in first.variables, y in second.variables)
        if known == (True, True):
            self._variables(a, x, b, y, declared.where, convert=declared.convert, after=declared.transformation)
            return
        if x in first.terminals and y in second.terminals:
            self._terminals(a, x, b, y, declared.where)
            if declared.transformation is not None or not declared.convert:
                what = f"{declared.source} and {declared.target} are terminals, whose members are converted as they are"
                remedy = "leave transformation= and convert= out, or connect the variables one by one"
                self._faults.append(Fault(what, declared.where, remedy))
            return
        for component, name, is_variable in ((first, x, known[0]), (second, y, known[1])):
            if not is_variable and name not in component.terminals:
                names = [*component.inputs, *component.outputs, *component.terminals]
                near = difflib.get_close_matches(name, names, n=3, cutoff=0.4) or names[:8]
                remedy = f"did you mean {', '.join(f'{component.name}.{each}' for each in near)}?"
                what = f"{component.name} has no variable or terminal {name}"
                self._faults.append(Fault(what, declared.where, remedy))
                return
        remedy = "connect a terminal with a terminal, or an output with an input"
        self._faults.append(Fault(f"{declared.source} and {declared.target} do not fit", declared.where, remedy))

    def _end(self, text: str, where: str) -> tuple[int, str] | None:
        """Return component and variable of component.variable; None, with a fault, if there is no such component."""
        name, dot, variable = text.partition(".")
        if not dot or name not in self._place:
            near = difflib.get_close_matches(name, self._place, n=2) or list(self._place)
            remedy = f"write component.variable; components are {', '.join(near)}"
            self._faults.append(Fault(f"{text!r} names no component", where, remedy))
            return None
        return self._place[name], variable

    def _variables(
        self, a: int, x: str, b: int, y: str, where: str, sign: float = 1.0, *, convert: bool = True,
        after: tuple[float, float] | None = None,
    ) -> None:  # fmt: skip
        """Links an output to an input; ``after`` (factor, offset) follows the conversion of units."""
        source, target = self._components[a], self._components[b]
        names = f"{source.name}.{x}", f"{target.name}.{y}"
        if x not in source.outputs:
            kind = source.variables[x].causality
            remedy = "the first one must be an output" + ("; turn the connection around" if kind == "input" else "")
            self._faults.append(Fault(f"{names[0]} is no output, but {kind}", where, remedy))
        if y not in target.inputs:
            self._faults.append(Fault(f"{names[1]} is no input, but {target.variables[y].causality}", where,
                                      "the second one must be an input"))  # fmt: skip
        if x not in source.outputs or y not in target.inputs:
            return
        if (b, y) in self._links:
            other = self._links[b, y]
            first = f"{self._components[other[0]].name}.{other[1]}"
            remedy = f"keep one of {first} (at {other[4]}) and {names[0]}; sums need an input each, or a unit that adds"
            self._faults.append(Fault(f"{names[1]} has two sources", where, remedy))
            return
        units = source.unit(x), target.unit(y)
        try:
            factor, offset = conversion(*units) if convert else (1.0, 0.0)
        except ValueError as error:
            remedy = "connect quantities of the same kind, or put a unit between them"
            self._faults.append(Fault(f"{names[0]} → {names[1]}: {error}", where, remedy))
            return
        if (units[0] is None) != (units[1] is None):
            bare = names[0] if units[0] is None else names[1]
            self._notes.append(f"{names[0]} → {names[1]}: {bare} has no unit, so nothing was checked or converted")
        if (factor, offset) != (1.0, 0.0) and units[0] and units[1]:
            self._notes.append(
                f"{names[0]} → {names[1]}: converted from {units[0].name} to {units[1].name} (× {factor:.9g}"
                + (f" + {offset:.9g})" if offset else ")")
            )
        if after is not None:
            factor, offset = after[0] * factor, after[0] * offset + after[1]
        self._links[b, y] = (a, x, sign * factor, sign * offset, where)

    def _terminals(self, a: int, x: str, b: int, y: str, where: str) -> None:
        """Links between the members of two terminals."""
        first = {m.name: m for m in self._components[a].terminals[x]}
        second = {m.name: m for m in self._components[b].terminals[y]}
        names = f"{self._components[a].name}.{x}", f"{self._components[b].name}.{y}"
        before = set(self._links)
        for name in [each for each in first if each in second]:
            self._members((a, first[name]), (b, second[name]), f"{names[0]} and {names[1]}: member {name}", where)
        if set(self._links) == before:
            shared = ", ".join(first), ", ".join(second)
            what = f"no output of {names[0]} ({shared[0]}) meets an input of {names[1]} ({shared[1]}), or the reverse"
            remedy = "one side must give the motion and take the force, the other the reverse"
            self._faults.append(Fault(what, where, remedy))
            return
        self._terminal_links.append(TerminalLink(((a, x), (b, y)), frozenset(set(self._links) - before)))
        self._bond_makers.append(_TerminalBond(f"{names[0]} – {names[1]}", self._components, ((a, first), (b, second))))

    def _members(self, one: tuple[int, Member], two: tuple[int, Member], what: str, where: str) -> None:
        """Join two members of terminals; flows into both sides sum to zero, so one gets the sign −1."""
        (a, m), (b, n) = one, two
        roles = [self._role(a, m.variable), self._role(b, n.variable)]
        flows = m.kind != "signal", n.kind != "signal"
        if flows[0] != flows[1]:
            remedy = "declare it as a flow on both sides, or on none"
            self._faults.append(Fault(f"{what} is a flow on one side only", where, remedy))
            return
        # Flows into both sides sum to zero: what one gives is minus what the other takes.
        sign = -1.0 if flows[0] and m.kind == n.kind else 1.0
        if roles == ["output", "input"]:
            self._variables(a, m.variable, b, n.variable, where, sign)
        elif roles == ["input", "output"]:
            self._variables(b, n.variable, a, m.variable, where, sign)
        elif roles == ["input", "input"]:
            remedy = "one side must give it: cut the mechanism so that one takes motion and gives force"
            self._faults.append(Fault(f"{what} is an input on both sides", where, remedy))
        # Two outputs of motion are redundant if the other one of the pair is connected; nothing to link.

    def _role(self, component: int, variable: str) -> str:
        each = self._components[component]
        return each.variables[variable].causality if variable in each.variables else ""

    # --- bonds

    def _declared_bond(
        self, declared: DeclaredBond, ins: Mapping[tuple[int, str], int], outs: Mapping[tuple[int, str], int]
    ) -> Bond | None:
        """Return a bond that the system declares; None, with a fault, if a side is no effort * flow."""
        sides = []
        for text in declared.sides:
            match = re.fullmatch(r"\s*(-?)\s*(\S+)\s*\*\s*(\S+)\s*", text)
            signals = [self._signal(part, ins, outs) for part in match.groups()[1:]] if match else [None]
            if match is None or None in signals:
                remedy = "write effort * flow of connected inputs and outputs: left.F * der(left.x)"
                self._faults.append(Fault(f"{text!r} is no power of the bond {declared.name}", declared.where, remedy))
                return None
            (component, effort), (_, flow) = [each for each in signals if each is not None]
            sides.append(BondSide(component, effort, flow, -1.0 if match[1] else 1.0))
        return Bond(declared.name, tuple(sides))

    def _signal(
        self, text: str, ins: Mapping[tuple[int, str], int], outs: Mapping[tuple[int, str], int]
    ) -> tuple[int, Signal] | None:
        """Return component and signal of a connected variable, or of der(variable); None if it is not connected."""
        match = re.fullmatch(r"der\((.+)\)", text)
        inner = match[1] if match else text
        name, _, variable = inner.partition(".")
        component = self._place.get(name, -1)
        unit = self._components[component].unit(variable) if (component, variable) in {*ins, *outs} else None
        factor = unit.factor if unit else 1.0
        if (component, variable) in ins:
            return component, Signal("input", ins[component, variable], factor, bool(match))
        if (component, variable) in outs:
            return component, Signal("output", outs[component, variable], factor, bool(match))
        return None

    # --- values, judgement

    def _values(self, k: int) -> dict[str, float]:
        component, declared = self._components[k], self._system.components[k]
        found = {}
        for name, given in declared.values.items():
            where = f"{declared.where}, {component.name}.{name}"
            value, unit = given if isinstance(given, tuple) else (given, None)
            if (conversion := self._settable(component, name, unit, where)) is not None:
                found[name] = conversion[0] * float(value) + conversion[1]
        return found

    def _mapped(self, values: Sequence[dict[str, float]]) -> Iterator[Mapped]:
        """Parameters of the system at the variables that follow them; what they give is added to ``values``."""
        names: set[str] = set()
        for index, declared in enumerate(self._system.parameters):
            if not declared.targets or declared.name in names:
                what = f"the parameter {declared.name} " + (
                    "goes nowhere" if not declared.targets else "is there twice"
                )
                self._faults.append(Fault(what, declared.where, "name it once, with the variables that follow it"))
            names.add(declared.name)
            value, unit = declared.value if isinstance(declared.value, tuple) else (declared.value, None)
            for target in declared.targets:
                if (end := self._end(target.variable, declared.where)) is None:
                    continue
                k, name = end
                where = f"{declared.where}, {target.variable}"
                if name in values[k]:
                    remedy = "give it once: by component(values=) or by one parameter of the system"
                    self._faults.append(Fault(f"{target.variable} has two values", where, remedy))
                    continue
                taken = self._settable(self._components[k], name, unit if target.convert else None, where)
                if taken is None:
                    continue
                made = Mapped(index, k, name, target.factor * taken[0], target.factor * taken[1] + target.offset)
                values[k][name] = made.factor * float(value) + made.offset
                yield made

    def _settable(self, component: Component, name: str, unit: str | None, where: str) -> tuple[float, float] | None:
        """(factor, offset) from a unit to that of a variable that can be set; None after a fault."""
        if name not in component.variables:
            near = difflib.get_close_matches(name, component.variables, n=3)
            remedy = f"did you mean {', '.join(near)}?" if near else "see its modelDescription.xml"
            self._faults.append(Fault("the unit has no such variable", where, remedy))
            return None
        variable = component.variables[name]
        if variable.initial not in {"exact", "approx"} and variable.causality != "input":
            what = f"cannot be set: it is {variable.causality}, {variable.initial or variable.variability}"
            self._faults.append(Fault(what, where, "set parameters, inputs and start values"))
            return None
        try:
            return self._to_own(component, name, unit)
        except ValueError as error:
            self._faults.append(Fault(str(error), where, "give the value in a unit of the same quantity"))
            return None

    def _to_own(self, component: Component, name: str, unit: str | None) -> tuple[float, float]:
        if unit is None:
            return 1.0, 0.0
        read = parse_unit(unit)
        return conversion(UnitOfMeasure(unit, read.exponents, read.factor, read.offset), component.unit(name))

    def _judge(self, wiring: Wiring) -> None:
        """Loops, and components that cannot do what the stepping needs."""
        stepping, where = self._system.run.stepping, self._system.where
        found = levels(wiring)
        for group, loop in zip(found.groups, found.loops, strict=True):
            if loop:
                self._judge_loop(loop_text(wiring, group))
        for each in self._components:
            if stepping.goes_back and not each.abilities.back:
                why = "repeated passes" if stepping.passes > 1 else "steps of adapted size"
                what = f"{why} need units that can go back, which {each.name} cannot"
                remedy = "use a unit with canGetAndSetFMUstate, or passes=1 and no accuracy"
                self._faults.append(Fault(what, where, remedy))
            if (stepping.accuracy is not None or stepping.substeps > 1) and not each.abilities.any_step:
                what = f"{each.name} makes no steps of any size"
                self._faults.append(Fault(what, where, "leave out accuracy and substeps"))
        try:
            sequence(wiring, stepping.sequence)
        except ValueError as error:
            self._faults.append(Fault(str(error), where))

    def _judge_loop(self, text: str) -> None:
        if self._system.run.stepping.loops == "solve":
            self._notes.append(f"algebraic loop, solved at each communication point: {text}; other masters do not")
            return
        remedy = (
            "cut elsewhere or by a compliant element, pass accelerations through a filter, or "
            'let the master solve it: experiment(loops="solve")'
        )
        self._faults.append(Fault(f"algebraic loop: {text}", self._system.where, remedy))


@dataclass(frozen=True)
class _TerminalBond:
    """The bond of two connected terminals, once ports are numbered."""

    name: str
    components: tuple[Component, ...]
    sides: tuple[tuple[int, Mapping[str, Member]], ...]

    def __call__(self, ins: Mapping[tuple[int, str], int], outs: Mapping[tuple[int, str], int]) -> Iterator[Bond]:
        """The bond, if both sides have a flow and a motion."""
        made = []
        for component, members in self.sides:
            side = self._side(component, members, ins, outs)
            if side is None:
                return
            made.append(side)
        yield Bond(self.name, tuple(made))

    def _side(
        self, k: int, members: Mapping[str, Member], ins: Mapping[tuple[int, str], int],
        outs: Mapping[tuple[int, str], int],
    ) -> BondSide | None:  # fmt: skip
        """Return effort and flow of one side: its one flow member and a rate; None if it has not both."""

        def signal(variable: str, *, rate: bool) -> Signal | None:
            unit = self.components[k].unit(variable) if variable in self.components[k].variables else None
            factor = unit.factor if unit else 1.0
            if (k, variable) in ins:
                return Signal("input", ins[k, variable], factor, rate)
            return Signal("output", outs[k, variable], factor, rate) if (k, variable) in outs else None

        flows = [each for each in members.values() if each.kind != "signal"]
        rates = [members[each] for each in ("v", "w") if each in members]
        places = [members[each] for each in ("s", "phi") if each in members]
        if len(flows) != 1:
            return None
        effort = signal(flows[0].variable, rate=False)
        found = [each for m in rates if (each := signal(m.variable, rate=False))]
        found += [each for m in places if (each := signal(m.variable, rate=True))]
        if effort is None or not found:
            return None
        return BondSide(k, effort, found[0], 1.0 if flows[0].kind == "inflow" else -1.0)
