"""Plans: sequences of numeric functions that evaluate targets.

A plan knows its expressions; a function of Python is made of it when it is called first, and it may be written in C
instead (``compiled``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import sympy as sm

from mb2fmu.errors import Fault, ValidationError
from mb2fmu.mechanics.equations.equations_of_motion import Intermediate, LinearSystemAssignment, SymbolAssignment
from mb2fmu.model.expression_traversal import extract_repeated_subexpressions, rename_symbols
from mb2fmu.validation.evaluation_plans.lambdified_scalar_functions import compile_scalar_function

Floats = npt.NDArray[np.float64]


def _make_ordered_cse(
    assignments: Sequence[SymbolAssignment],
) -> Callable[[Sequence[sm.Expr]], tuple[list[tuple[sm.Symbol, sm.Expr]], list[sm.Expr]]]:
    """Return a ``cse`` for ``lambdify`` that keeps assignments before their uses.

    Args:
        assignments: In order; their symbols are local to the function that ``lambdify`` makes.

    Returns:
        A function that takes the expressions and gives (replacements in order of evaluation, reduced expressions).
    """

    def cse(expressions: Sequence[sm.Expr]) -> tuple[list[tuple[sm.Symbol, sm.Expr]], list[sm.Expr]]:
        """Return common subexpressions of all, and assignments among them, each before its first use."""
        shared, reduced = extract_repeated_subexpressions([*(a.expression for a in assignments), *expressions])
        split = len(assignments)
        pending = dict(shared)
        ordered: list[tuple[sm.Symbol, sm.Expr]] = []

        def emit(expression: sm.Expr) -> None:
            """Put the shared subexpressions that ``expression`` reads before it, innermost first."""
            for symbol in sorted(expression.free_symbols & pending.keys(), key=str):
                if symbol in pending:
                    inner_expression = pending.pop(symbol)
                    emit(inner_expression)
                    ordered.append((symbol, inner_expression))

        for assignment, expression in zip(assignments, reduced[:split], strict=True):
            emit(expression)
            ordered.append((assignment.symbol, expression))
        for expression in reduced[split:]:
            emit(expression)
        return ordered, list(reduced[split:])

    return cse


@dataclass(frozen=True)
class EvaluationPlanStep:
    """One function of the slots: assignments fill slots from ``first`` on, other results are returned.

    Attributes:
        assignments: In order; each may use those before it.
        targets: Other results.
        places: Slot of every symbol that the step reads from outside.
        first: Slot of the first assignment.
        solve: The other results are a matrix and right-hand sides of this solve; None: they are results.
        unknowns: Slot of the first unknown of ``solve_linear_system``.
    """

    assignments: tuple[SymbolAssignment, ...]
    targets: tuple[sm.Expr, ...]
    places: dict[sm.Symbol, int]
    first: int
    solve: LinearSystemAssignment | None = None
    unknowns: int = -1

    @cached_property
    def function(self) -> Callable[..., list[float]]:
        """The function of the values at ``places``, in order; assignments first."""
        local = {a.symbol: self.first + i for i, a in enumerate(self.assignments)}
        # Names of our own: a model's may be keywords, functions or constants of Python's math.
        placeholders = {s: sm.Symbol(f"_value{k}", **s.assumptions0) for s, k in (self.places | local).items()}
        expressions = rename_symbols([*(a.expression for a in self.assignments), *self.targets], placeholders)
        count = len(self.assignments)
        renamed = [
            SymbolAssignment(placeholders[a.symbol], expression)
            for a, expression in zip(self.assignments, expressions[:count], strict=True)
        ]
        results = [*(a.symbol for a in renamed), *expressions[count:]]
        return compile_scalar_function([placeholders[s] for s in self.places], results, _make_ordered_cse(renamed))

    def __call__(self, values: list[float]) -> list[float]:
        """Fill slots and return the targets.

        Raises:
            ValidationError: If the matrix of a linear solve is singular.
        """
        results = self.function(*[values[i] for i in self.places.values()])
        count = len(self.assignments)
        values[self.first : self.first + count] = results[:count]
        rest = results[count:]
        if self.solve:
            n, k = self.solve.right_hand_side.shape
            solution = solve_linear_system(
                np.array(rest[: n * n]).reshape(n, n), np.array(rest[n * n :]).reshape(n, k), self.solve.name
            )
            values[self.unknowns : self.unknowns + n * k] = solution.ravel().tolist()
        return rest


@dataclass(frozen=True, slots=True)
class EvaluationPlan:
    """Steps that evaluate targets from a list of values (one slot per symbol)."""

    steps: tuple[EvaluationPlanStep, ...]

    def __call__(self, values: list[float]) -> list[float]:
        """Fill the slots of intermediates and return the targets.

        Raises:
            ValidationError: If the matrix of a linear solve is singular.
        """
        rest: list[float] = []
        for step in self.steps:
            rest = step(values)
        return rest


def solve_linear_system(matrix: Floats, right_hand_side: Floats, name: str) -> Floats:
    """Return X of ``matrix`` X = ``right_hand_side``.

    Raises:
        SingularReferenceMatrixError: If the matrix is singular; ``name`` says of what.
    """
    try:
        return np.asarray(np.linalg.solve(matrix, right_hand_side), dtype=np.float64)
    except np.linalg.LinAlgError as error:
        raise make_singular_matrix_error(name) from error


class SingularReferenceMatrixError(ValidationError):
    """A matrix is singular at a state; an integrator tries a shorter step."""


def make_singular_matrix_error(name: str) -> SingularReferenceMatrixError:
    """Return the error of a matrix that is singular; ``name``: what was solved for."""
    return SingularReferenceMatrixError(
        "the reference cannot be integrated:",
        [Fault(f"the matrix of {name} is singular on the way", name, "start elsewhere or choose other coordinates")],
    )


@dataclass(slots=True)
class EvaluationPlanner:
    """Turns targets into plans; knows which symbols have a slot and are already evaluated."""

    intermediates: Sequence[Intermediate]
    slots: dict[sm.Symbol, int]
    evaluated: set[int] = field(default_factory=set)
    size: int = field(init=False)

    def __post_init__(self) -> None:
        self.size = len(self.slots)

    def plan(self, targets: Sequence[sm.Expr], *, keep: bool = True) -> EvaluationPlan:
        """Return a plan for ``targets`` that skips intermediates already evaluated by an earlier retained plan.

        ``keep`` False: the plan need not be run for later plans to be right.
        """
        evaluated_before = set(self.evaluated)
        steps: list[EvaluationPlanStep] = []
        pending_assignments: list[SymbolAssignment] = []
        for index in self._list_needed_steps(targets):
            item = self.intermediates[index]
            self.evaluated.add(index)
            if isinstance(item, SymbolAssignment):
                pending_assignments.append(item)
            else:
                steps.append(self._form_step(pending_assignments, [*item.matrix, *item.right_hand_side], item))
                pending_assignments = []
        steps.append(self._form_step(pending_assignments, targets))
        if not keep:
            self.evaluated = evaluated_before
        return EvaluationPlan(tuple(steps))

    def _list_needed_steps(self, targets: Sequence[sm.Expr]) -> list[int]:
        """Return numbers of the intermediates that targets need and that are not yet evaluated, in order."""
        needed_symbols: set[sm.Symbol] = set().union(*(t.free_symbols for t in targets)) if targets else set()
        needed_steps = []
        for index in range(len(self.intermediates) - 1, -1, -1):
            item = self.intermediates[index]
            defined = {item.symbol} if isinstance(item, SymbolAssignment) else set(item.unknowns)
            if index in self.evaluated or not defined & needed_symbols:
                continue
            needed_steps.append(index)
            expressions = (
                (item.expression,) if isinstance(item, SymbolAssignment) else (item.matrix, item.right_hand_side)
            )
            needed_symbols |= set().union(*(e.free_symbols for e in expressions))
        return needed_steps[::-1]

    def _form_step(
        self,
        pending: Sequence[SymbolAssignment],
        targets: Sequence[sm.Expr],
        solved: LinearSystemAssignment | None = None,
    ) -> EvaluationPlanStep:
        """Return one step, with slots reserved for what it gives."""
        local = {a.symbol for a in pending}
        targets = [sm.sympify(target) for target in targets]
        read_symbols = set().union(*(e.free_symbols for e in (*(a.expression for a in pending), *targets))) - local
        places = {s: self.slots[s] for s in sorted(read_symbols, key=lambda s: self.slots[s])}
        first = self.reserve([a.symbol for a in pending])
        unknowns = self.reserve(solved.unknowns) if solved else -1
        return EvaluationPlanStep(tuple(pending), tuple(targets), places, first, solved, unknowns)

    def reserve(self, symbols: Sequence[sm.Symbol]) -> int:
        """Give each symbol a slot; return the first one."""
        first = self.size
        self.slots.update(zip(symbols, range(first, first + len(symbols)), strict=True))
        self.size += len(symbols)
        return first
