"""Protocol of a kind of loop, and the helpers that it may use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import sympy as sm

from mb2fmu.mechanics.equations.equations_of_motion import ClosedFormLoopSolution, SymbolAssignment

SINGULARITY_MARGIN = 1e-4
"""Of sin² of the angle between two links of a loop: where they are nearer to one line, its solution ends.

Dependent coordinates move 100 times as fast as independent ones there, and in the line without bound. An integrator
that came nearer could step over it, and go on where the speeds of the true motion have the other sign.
"""


@dataclass(frozen=True, slots=True)
class LoopClosureEquations:
    """As many rows φ = 0 as there are unknowns in them.

    Attributes:
        names: Of the rows.
        phi: The rows.
        unknowns: Coordinates that they shall determine; all others are known.
    """

    names: tuple[str, ...]
    phi: tuple[sm.Expr, ...]
    unknowns: tuple[sm.Symbol, ...]


@dataclass(slots=True)
class AssemblyBranchStartValues:
    """Values at the start: they select the assembly branch and the number of full turns of an angle.

    Attributes:
        values: Of every symbol that rows may contain.
        moving_symbols: Coordinates and time.
        taken_names: Names that no new symbol may have.
    """

    values: dict[sm.Symbol, float]
    moving_symbols: frozenset[sm.Symbol]
    taken_names: set[str] = field(default_factory=set)

    def evaluate(self, expression: sm.Expr) -> float:
        """Return the value of an expression at the start."""
        value = sm.sympify(expression)
        numbers = {s: sm.Float(self.values[s], 17) for s in value.free_symbols if s in self.values}
        return float(value.xreplace(numbers).evalf(17))

    def define(self, name: str, expression: sm.Expr) -> SymbolAssignment:
        """Return a new symbol for an expression."""
        while name in self.taken_names:
            name += "_"
        self.taken_names.add(name)
        symbol = sm.Symbol(name, real=True)
        self.values[symbol] = self.evaluate(expression)
        return SymbolAssignment(symbol, expression)


class LoopKindMismatchError(Exception):
    """The rows do not have the shape of this kind of loop; the text says why."""


class LoopClosedFormSolver(Protocol):
    """One shape of rows that has a closed form.

    Attributes:
        name: As messages name it.
        size: How many rows, and unknowns, it has.
    """

    name: str
    size: int

    def solve(self, rows: LoopClosureEquations, start: AssemblyBranchStartValues) -> ClosedFormLoopSolution:
        """Return the closed form on the branch that the start is on.

        Raises:
            LoopKindMismatchError: Why the rows have not this shape.
        """
        ...


def make_closed_form_loop_solution(
    kind: LoopClosedFormSolver,
    rows: LoopClosureEquations,
    helpers: Sequence[SymbolAssignment],
    solution: Mapping[sm.Symbol, sm.Expr],
    conditions: Sequence[sm.Expr] = (),
    relation: Sequence[sm.Expr] = (),
) -> ClosedFormLoopSolution:
    """Return the record of a solution; arguments as for :class:`ClosedFormLoopSolution`."""
    assignments = (*helpers, *(SymbolAssignment(symbol, expression) for symbol, expression in solution.items()))
    return ClosedFormLoopSolution(kind.name, rows.names, rows.unknowns, assignments, tuple(conditions), tuple(relation))
