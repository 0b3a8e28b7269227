"""Turn declared connections into links of outputs to inputs: convert FMUs, resolve terminals, note delays."""

from __future__ import annotations

import difflib
import math

from mb2fmu.audit.description.description_records import TerminalMember
from mb2fmu.errors import Fault
from mb2fmu.systems.coupled_system import DeclaredConnection
from mb2fmu.systems.fmu_component import FmuComponent, unit_conversion
from mb2fmu.systems.power_bonds import TerminalBond
from mb2fmu.systems.wired_system import TerminalLink, WiringDiagnostics

Target = tuple[int, str]
"""(component, variable)."""


class ResolvedConnections:
    """The connections made so far.

    Attributes:
        links: Input → (component, output, factor, offset, where it was declared).
        delays: Input → delay in s.
        bonds: Of pairs of terminals.
        terminal_links: Pairs of terminals.
    """

    def __init__(self, told: WiringDiagnostics) -> None:
        """Begin without connections."""
        self._told = told
        self.links: dict[Target, tuple[int, str, float, float, str]] = {}
        self.delays: dict[Target, float] = {}
        self.bonds: list[TerminalBond] = []
        self.terminal_links: list[TerminalLink] = []

    def connect(self, declared: DeclaredConnection) -> None:
        """Add a connection, or a fault."""
        before = set(self.links)
        self._connect(declared)
        self._delay(declared, set(self.links) - before)

    def _delay(self, declared: DeclaredConnection, made: set[tuple[int, str]]) -> None:
        """Note the delay of links."""
        self.delays |= dict.fromkeys(made, declared.delay)
        if declared.delay == 0.0:
            return
        name, step = f"{declared.source} → {declared.target}", self._told.system.run.stepping.step
        if not step * (1.0 - 1e-9) <= declared.delay < float("inf"):
            what = f"{name}: its delay is {declared.delay:g} s, the communication step {step:g} s"
            self._told.faults.append(
                Fault(what, declared.where, "give a delay of at least one step, or a shorter step")
            )
        self._told.notes.append(
            f"{name} arrives {declared.delay:g} s late; other masters pass it on after their own step"
        )

    def _connect(self, declared: DeclaredConnection) -> None:
        """Join two variables or two terminals; add a fault with similar names where that cannot be done."""
        ends = [self._told.end(text, declared.where) for text in (declared.source, declared.target)]
        if None in ends:
            return
        (a, x), (b, y) = [end for end in ends if end is not None]
        first, second = self._told.components[a], self._told.components[b]
        known = (x in first.variables, y in second.variables)
        if known == (True, True):
            self._variables(a, x, b, y, declared.where, convert=declared.convert, after=declared.transformation)
            return
        if x in first.terminals and y in second.terminals:
            self._terminals(a, x, b, y, declared.where)
            if declared.transformation is not None or not declared.convert:
                what = f"{declared.source} and {declared.target} are terminals, whose members are converted as they are"
                remedy = "leave transformation= and convert= out, or connect the variables one by one"
                self._told.faults.append(Fault(what, declared.where, remedy))
            return
        unknown = [
            _unknown(component, name, declared.where)
            for component, name, is_variable in ((first, x, known[0]), (second, y, known[1]))
            if not is_variable and name not in component.terminals
        ]
        if unknown:
            self._told.faults += unknown
            return
        remedy = "connect a terminal with a terminal, or an output with an input"
        self._told.faults.append(Fault(f"{declared.source} and {declared.target} do not fit", declared.where, remedy))

    def _variables(
        self, a: int, x: str, b: int, y: str, where: str, sign: float = 1.0, *, convert: bool = True,
        after: tuple[float, float] | None = None,
    ) -> None:  # fmt: skip
        """Link an output to an input; ``after`` (factor, offset) follows the conversion of units."""
        source, target = self._told.components[a], self._told.components[b]
        names = f"{source.name}.{x}", f"{target.name}.{y}"
        if x not in source.outputs:
            kind = source.variables[x].causality
            remedy = "the first one must be an output" + ("; turn the connection around" if kind == "input" else "")
            self._told.faults.append(Fault(f"{names[0]} is no output, but {kind}", where, remedy))
        if y not in target.inputs:
            self._told.faults.append(Fault(f"{names[1]} is no input, but {target.variables[y].causality}", where,
                                      "the second one must be an input"))  # fmt: skip
        if x not in source.outputs or y not in target.inputs:
            return
        if (b, y) in self.links:
            other = self.links[b, y]
            first = f"{self._told.components[other[0]].name}.{other[1]}"
            remedy = f"keep one of {first} (at {other[4]}) and {names[0]}; sums need an input each, or an FMU that adds"
            self._told.faults.append(Fault(f"{names[1]} has two sources", where, remedy))
            return
        units = source.unit(x), target.unit(y)
        try:
            factor, offset = unit_conversion(*units) if convert else (1.0, 0.0)
        except ValueError as error:
            remedy = "connect quantities of the same kind, or put an FMU between them"
            self._told.faults.append(Fault(f"{names[0]} → {names[1]}: {error}", where, remedy))
            return
        if (units[0] is None) != (units[1] is None):
            bare = names[0] if units[0] is None else names[1]
            self._told.notes.append(f"{names[0]} → {names[1]}: {bare} has no unit, so nothing was checked or converted")
        if (factor, offset) != (1.0, 0.0) and units[0] and units[1]:
            self._told.notes.append(
                f"{names[0]} → {names[1]}: converted from {units[0].name} to {units[1].name} (× {factor:.9g}"
                + (f" + {offset:.9g})" if offset else ")")
            )
        if after is not None and not all(map(math.isfinite, after)):
            what = f"{names[0]} → {names[1]}: factor and offset are {after[0]!r} and {after[1]!r}"
            self._told.faults.append(Fault(what, where, "give finite numbers"))
            return
        if after is not None:
            factor, offset = after[0] * factor, after[0] * offset + after[1]
        self.links[b, y] = (a, x, sign * factor, sign * offset, where)

    def _terminals(self, a: int, x: str, b: int, y: str, where: str) -> None:
        """Link the members of two terminals."""
        first = {m.name: m for m in self._told.components[a].terminals[x]}
        second = {m.name: m for m in self._told.components[b].terminals[y]}
        names = f"{self._told.components[a].name}.{x}", f"{self._told.components[b].name}.{y}"
        before = set(self.links)
        for name in [each for each in first if each in second]:
            self._members((a, first[name]), (b, second[name]), f"{names[0]} and {names[1]}: member {name}", where)
        if set(self.links) == before:
            shared = ", ".join(first), ", ".join(second)
            what = f"no output of {names[0]} ({shared[0]}) meets an input of {names[1]} ({shared[1]}), or the reverse"
            remedy = "one side must give the motion and take the force, the other the reverse"
            self._told.faults.append(Fault(what, where, remedy))
            return
        self.terminal_links.append(TerminalLink(((a, x), (b, y)), frozenset(set(self.links) - before)))
        self.bonds.append(TerminalBond(f"{names[0]} – {names[1]}", self._told.components, ((a, first), (b, second))))

    def _members(self, one: tuple[int, TerminalMember], two: tuple[int, TerminalMember], what: str, where: str) -> None:
        """Join two members of terminals; flows into both sides sum to zero, so one gets the sign −1."""
        (a, m), (b, n) = one, two
        roles = [self._role(a, m.variable), self._role(b, n.variable)]
        flows = m.kind != "signal", n.kind != "signal"
        if flows[0] != flows[1]:
            remedy = "declare it as a flow on both sides, or on none"
            self._told.faults.append(Fault(f"{what} is a flow on one side only", where, remedy))
            return
        # Flows into both sides sum to zero: what one gives is minus what the other takes.
        sign = -1.0 if flows[0] and m.kind == n.kind else 1.0
        if roles == ["output", "input"]:
            self._variables(a, m.variable, b, n.variable, where, sign)
        elif roles == ["input", "output"]:
            self._variables(b, n.variable, a, m.variable, where, sign)
        elif roles == ["input", "input"]:
            remedy = "one side must give it: cut the mechanism so that one takes motion and gives force"
            self._told.faults.append(Fault(f"{what} is an input on both sides", where, remedy))
        # Two outputs of motion are redundant if the other one of the pair is connected; nothing to link.

    def _role(self, component: int, variable: str) -> str:
        """Return the causality of a component's variable; empty if it has none of that name."""
        each = self._told.components[component]
        return each.variables[variable].causality if variable in each.variables else ""


def _unknown(component: FmuComponent, name: str, where: str) -> Fault:
    """Return the fault of an unknown variable, or of one that is no scalar of doubles."""
    for each in component.description.variables:
        if each.name == name:
            shape = "an array" if each.dimensions else f"of type {each.type}"
            what = f"{component.name}.{name} is {shape}: only scalars of doubles can be connected"
            return Fault(what, where, "put the conversion into an FMU, or leave the connection out")
    names = list(dict.fromkeys((*component.inputs, *component.outputs, *component.terminals)))
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.4) or names[:8]
    remedy = (
        f"did you mean {', '.join(f'{component.name}.{each}' for each in near)}?"
        if near
        else ("it has none that can be connected")
    )
    return Fault(f"{component.name} has no variable or terminal {name}", where, remedy)
