"""``NodeLinearCombinations``: sums of products with numbers, however they are written: equal surfaces are found.

SymPy writes one comparison in several ways: ``g <= 0`` and ``0 <= -g``, ``w < -x`` and ``x < -w``. Each is a
difference of its sides of its own, with other nodes. As a sum of atoms, each with its factor, they are one.
"""

from __future__ import annotations

from collections.abc import Mapping

from mb2fmu.compiler.program.scalar_program import Op, ScalarProgram

_MAX_ATOMS = 64
"""Longer sums are atoms themselves."""

_CONSTANT_ATOM = -1
"""The atom of numbers."""

LinearForm = Mapping[int, float]


class NodeLinearCombinations:
    """Sums of a program's nodes.

    Args:
        program: Has the nodes.
    """

    def __init__(self, program: ScalarProgram) -> None:
        self._program = program
        self._known: dict[int, LinearForm] = {}

    def difference(self, a: int, b: int) -> frozenset[tuple[int, float]]:
        """Return a − b as atoms with their factors, those with the factor zero left out.

        Args:
            a: Node.
            b: Node; negative: zero.
        """
        whole = self._of(a) if b < 0 else _add_forms(self._of(a), self._of(b), -1.0)
        return frozenset((atom, factor) for atom, factor in whole.items() if factor)

    def _of(self, node: int) -> LinearForm:
        """Return a node's sum."""
        pending = [node]
        while pending:  # no recursion: programs are deep
            top = pending[-1]
            missing = [part for part in self._parts(top) if part not in self._known]
            if top in self._known or not missing:
                self._known.setdefault(top, self._made(top))
                pending.pop()
            else:
                pending += missing
        return self._known[node]

    def _parts(self, node: int) -> tuple[int, ...]:
        """Return the operands that a node is a sum of; empty where it is an atom."""
        op, a, b = self._program.op[node], int(self._program.a[node]), int(self._program.b[node])
        if op in {Op.ADD, Op.SUB}:
            return a, b
        if op == Op.NEG:
            return (a,)
        if op == Op.MUL and self._number(a) is not None:
            return (b,)
        return (a,) if op == Op.MUL and self._number(b) is not None else ()

    def _number(self, node: int) -> float | None:
        """Return the value of a constant; None of anything else."""
        return float(self._program.constants[self._program.a[node]]) if self._program.op[node] == Op.CONSTANT else None

    def _made(self, node: int) -> LinearForm:
        """Return a node's sum from those of its operands."""
        parts = self._parts(node)
        op, forms = self._program.op[node], [self._known[part] for part in parts]
        if not parts:
            number = self._number(node)
            return {node: 1.0} if number is None else {_CONSTANT_ATOM: number}
        if op == Op.MUL:
            others = {int(self._program.a[node]), int(self._program.b[node])} - set(parts)
            factor = self._number(others.pop()) if others else self._number(parts[0])
            found = {atom: factor * each for atom, each in forms[0].items()} if factor is not None else {node: 1.0}
        elif op == Op.NEG:
            found = {atom: -each for atom, each in forms[0].items()}
        else:
            found = _add_forms(forms[0], forms[1], 1.0 if op == Op.ADD else -1.0)
        return found if len(found) <= _MAX_ATOMS else {node: 1.0}


def _add_forms(first: LinearForm, second: LinearForm, sign: float) -> dict[int, float]:
    """Return first + sign · second."""
    found = dict(first)
    for atom, factor in second.items():
        found[atom] = found.get(atom, 0.0) + sign * factor
    return found
