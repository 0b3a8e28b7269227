"""Functions of what a switch keeps in their domain: ``Max(-y, 0)**1.5``, ``Piecewise(((-y)**1.5, y < 0), …)``.

Between events a switch is frozen: in contact ``Max(-y, 0)`` is −y. Where an integrator looks for the end of the contact
it evaluates just beyond y = 0, and there the real power of −y has no value.

- A power's base is therefore evaluated as it is written, with its switches as functions of the present state; each of
  them still has its mode and its event. Power and base are continuous there, so nothing jumps within a step.
- In the branches of a selection such a function keeps the value of its domain's end, wherever a comparison of the
  selection is no longer as its mode says: beyond the event, and there alone. So the branch goes on continuously,
  whatever the other branch is, and where the comparison is as its mode says a number outside of the domain stays a
  fault.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from mb2fmu.compiler.events.node_linear_combinations import NodeLinearCombinations
from mb2fmu.compiler.program.scalar_program import Op, ScalarProgram

_POWERS = frozenset(map(int, (Op.SQRT, Op.POW, Op.LOG, Op.ASIN, Op.ACOS, Op.ACOSH, Op.ATANH)))
"""Operations that have no value for some numbers; ``acos(Min(1, c))`` ends as ``Max(-y, 0)**1.5`` does."""
_UNFROZEN = frozenset(map(int, (Op.MIN, Op.MAX, Op.ABS, Op.LT, Op.LE)))
"""Switches that are functions of the present state alone: of a sign that sticks the mode is a memory."""

_LOGIC = frozenset(map(int, (Op.NOT, Op.AND, Op.OR, Op.EQ)))


class SwitchGuardedPowerFinder:
    """Finds the powers of a program whose base depends on switches, and the selections that guard a power.

    Args:
        program: With switches.
        operands: Of each node.
        switches: Nodes that are frozen.
    """

    def __init__(self, program: ScalarProgram, operands: list[tuple[int, ...]], switches: Collection[int]) -> None:
        self._program, self._operands, self._switches = program, operands, frozenset(switches)
        self._op: list[int] = program.op.tolist()
        self._forms = NodeLinearCombinations(program)
        self._copies: dict[int, int] = {}
        self._has_power = self._mark_dependents([op in _POWERS for op in self._op])
        self._has_switch = self._mark_dependents([node in self._switches for node in range(len(program))])
        self._has_memory_switch = self._mark_dependents(
            [node in self._switches and op not in _UNFROZEN for node, op in enumerate(self._op)]
        )

    def _mark_dependents(self, marks: list[bool]) -> list[bool]:
        """Return marks of marked nodes and of all that scalar operations compute from them; blocks pass no mark on."""
        for node, operands in enumerate(self._operands):  # operands come first
            if not marks[node] and self._op[node] != Op.BLOCK:
                marks[node] = any(marks[operand] for operand in operands)
        return marks

    def is_power_of_switch(self, node: int) -> bool:
        """Return whether a node is one of ``_POWERS``, and its first operand contains switches of the present state."""
        if self._op[node] not in _POWERS:
            return False
        base = self._operands[node][0]
        return self._has_switch[base] and self._is_of_present_state(base)

    def is_switch(self, node: int) -> bool:
        """Return whether a node is frozen."""
        return node in self._switches

    def is_power_guard(self, node: int) -> bool:
        """Return whether a node selects by comparisons of the present state, with one of ``_POWERS`` in a branch."""
        if self._op[node] != Op.SELECT:
            return False
        condition, *branches = self._operands[node]
        return any(self._has_power[branch] for branch in branches) and bool(self.list_comparisons(condition))

    def list_comparisons(self, condition: int) -> tuple[int, ...]:
        """Return the frozen comparisons of the present state that a condition consists of."""
        return tuple(
            each
            for each in self._cone(condition, _LOGIC)
            if each in self._switches and self._op[each] in (Op.LT, Op.LE) and self._is_of_present_state(each)
        )

    def list_nodes_with_powers(self, branch: int) -> list[int]:
        """Return nodes that a branch is computed from and that contain one of ``_POWERS``, operands first."""
        return sorted(self._cone(branch, marks=self._has_power)) if self._has_power[branch] else []

    def is_limited(self, node: int, comparisons: Collection[int]) -> bool:
        """Return whether a node has no value for some numbers that the selection by ``comparisons`` may keep away.

        A power with an exponent that is no constant has one wherever the exponent is whole; there its base must be what
        is compared.
        """
        if self._op[node] not in _POWERS:
            return False
        if self._op[node] != Op.POW:
            return True
        base, exponent = self._operands[node]
        if self._op[exponent] == Op.CONSTANT:
            value = float(self._program.constants[int(self._program.a[exponent])])
            return value > 0.0 and not value.is_integer()
        surface = _scale(dict(self._forms.difference(base, -1)))
        return any(surface == _scale(dict(self._forms.difference(*self._operands[each]))) for each in comparisons)

    def _is_of_present_state(self, node: int) -> bool:
        """Return whether all switches in a node are functions of the present state."""
        return not self._has_memory_switch[node]

    def copy_unfrozen(self, node: int, frozen: list[int], copy: Callable[[int, tuple[int, ...]], int]) -> int:
        """Return the copy of a node in which its switches are functions of the present state.

        Args:
            node: Of the program.
            frozen: Node → its copy with frozen switches.
            copy: Builds the copy of a node from the copies of its operands.
        """
        for each in sorted(self._cone(node, marks=self._has_switch)):  # operands come first
            if each not in self._copies:
                operands = (self._copies.get(operand, frozen[operand]) for operand in self._operands[each])
                self._copies[each] = copy(each, tuple(operands))
        return self._copies.get(node, frozen[node])

    def _cone(
        self, node: int, through: Collection[int] | None = None, marks: Sequence[bool] | None = None
    ) -> Iterator[int]:
        """Yield a node and all that it is computed from by scalar operations; solved blocks are not entered.

        Args:
            node: Of the program.
            through: Operations whose operands are followed; None: all.
            marks: Operands that are followed; None: all.
        """
        stack, seen = [node], {node}
        while stack:
            top = stack.pop()
            yield top
            is_followed = self._op[top] != Op.BLOCK and (through is None or self._op[top] in through)
            for operand in self._operands[top] if is_followed else ():
                if operand not in seen and (marks is None or marks[operand]):
                    seen.add(operand)
                    stack.append(operand)


def _scale(form: dict[int, float]) -> dict[int, float]:
    """Return a linear form divided by its factor of the first atom."""
    if not form:
        return form
    first = form[min(form)]
    return {atom: factor / first for atom, factor in form.items()}
