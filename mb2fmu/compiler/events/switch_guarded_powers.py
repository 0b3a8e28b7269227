"""Functions of what a switch keeps in their domain: ``Max(-y, 0)**1.5``, ``Piecewise(((-y)**1.5, y < 0), …)``.

Between events a switch is frozen: in contact ``Max(-y, 0)`` is −y. Where an integrator looks for the end of the contact
it evaluates just beyond y = 0, and there the real power of −y has no value. A power's base is therefore evaluated as it
is written, with its switches as functions of the present state; each of them still has its mode and its event. Power
and base are continuous there, so nothing jumps within a step.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from mb2fmu.compiler.events.linear_forms import LinearFormFinder
from mb2fmu.compiler.program.program import Op, Program

_POWERS = frozenset(map(int, (Op.SQRT, Op.POW, Op.LOG, Op.ASIN, Op.ACOS, Op.ACOSH, Op.ATANH)))
"""Operations that have no value for some numbers; ``acos(Min(1, c))`` ends as ``Max(-y, 0)**1.5`` does."""
_UNFROZEN = frozenset(map(int, (Op.MIN, Op.MAX, Op.ABS, Op.LT, Op.LE)))
"""Switches that are functions of the present state alone: of a sign that sticks the mode is a memory."""


class SwitchGuardedPowers:
    """Finds the powers of a program whose base depends on switches, and the selections that guard a power.

    Args:
        program: With switches.
        operands: Of each node.
        switches: Nodes that are frozen.
    """

    def __init__(self, program: Program, operands: list[tuple[int, ...]], switches: Collection[int]) -> None:
        self._program, self._operands, self._switches = program, operands, frozenset(switches)
        self._op: list[int] = program.op.tolist()
        self._forms = LinearFormFinder(program)
        self._copies: dict[int, int] = {}

    def is_power_of_switch(self, node: int) -> bool:
        """Return whether a node is one of ``_POWERS``, and its first operand contains switches of the present state."""
        if self._op[node] not in _POWERS:
            return False
        found = [each for each in self._cone(self._operands[node][0]) if each in self._switches]
        return bool(found) and all(self._op[each] in _UNFROZEN for each in found)

    def is_power_guard(self, node: int) -> bool:
        """Return whether a node selects by a comparison whose surface is the base of a power in a branch."""
        if self._op[node] != Op.SELECT or self._operands[node][0] not in self._switches:
            return False
        condition = self._operands[node][0]
        if self._op[condition] not in (Op.LT, Op.LE):
            return False
        surface = _scale(dict(self._forms.difference(*self._operands[condition])))
        return any(
            surface == _scale(dict(self._forms.difference(self._operands[each][0], -1)))
            for branch in self._operands[node][1:]
            for each in self._cone(branch)
            if self._op[each] in _POWERS
        )

    def copy_unfrozen(self, node: int, frozen: list[int], copy: Callable[[int, tuple[int, ...]], int]) -> int:
        """Return the copy of a node in which its switches are functions of the present state.

        Args:
            node: Of the program.
            frozen: Node → its copy with frozen switches.
            copy: Builds the copy of a node from the copies of its operands.
        """
        switched = {each for each in self._cone(node) if each in self._switches}
        for each in sorted(self._cone(node)):  # operands come first
            operands = self._operands[each]
            if each in self._copies or not (each in switched or switched & set(operands)):
                continue
            switched.add(each)
            self._copies[each] = copy(each, tuple(self._copies.get(operand, frozen[operand]) for operand in operands))
        return self._copies.get(node, frozen[node])

    def _cone(self, node: int) -> Iterator[int]:
        """Yield a node and all that it is computed from by scalar operations; solved blocks are not entered."""
        stack, seen = [node], {node}
        while stack:
            top = stack.pop()
            yield top
            for operand in self._operands[top] if self._op[top] != Op.BLOCK else ():
                if operand not in seen:
                    seen.add(operand)
                    stack.append(operand)


def _scale(form: dict[int, float]) -> dict[int, float]:
    """Return a linear form divided by its factor of the first atom."""
    if not form:
        return form
    first = form[min(form)]
    return {atom: factor / first for atom, factor in form.items()}
